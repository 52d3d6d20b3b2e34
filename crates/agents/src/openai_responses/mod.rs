//! OpenAiResponses: not written yet.

#[cfg(test)]
mod tests;

use crate::{Dialect, Family, Head, Host, Match, Origin, Place, Reader};

/// See the module.
pub(crate) struct OpenAiResponses;

impl Family for OpenAiResponses {
    fn name(&self) -> &'static str {
        "openai_responses"
    }

    fn dialects(&self) -> &'static [Dialect] {
        &[]
    }

    fn places(&self, _host: &Host) -> Vec<Place> {
        Vec::new()
    }

    fn sniff(&self, _head: &Head<'_>) -> Option<Match> {
        None
    }

    fn open(
        &self,
        _dialect: &Dialect,
        _origin: &Origin<'_>,
        _saved: Option<&[u8]>,
    ) -> Option<Box<dyn Reader>> {
        None
    }
}
