//! Normalized transcripts: the document in which sessions are shared, whichever agent they are of.
//!
//! What stands in one is known to `quipu_formats::normalized`, which also writes them; here its events become
//! entries, so that a transcript from elsewhere is searched and priced like a log of one's own. There is no
//! `wire.rs` for that reason. A document may be of any length: it is read in parts.
//!
//! Pages that hold such a document are not read here, because their bytes are no JSON;
//! `quipu_formats::normalized::embedded` takes the document out of a page.

mod discover;
mod normalize;

#[cfg(test)]
mod tests;

use crate::{Dialect, Family, Framing, Head, Host, Match, Origin, Place, Reader};

/// See the module.
pub(crate) struct Normalized;

pub(crate) const TRANSCRIPT: Dialect = Dialect {
    name: "normalized",
    brand: "quipu",
    framing: Framing::Parts,
};

impl Family for Normalized {
    fn name(&self) -> &'static str {
        "normalized"
    }

    fn dialects(&self) -> &'static [Dialect] {
        &[TRANSCRIPT]
    }

    /// None: transcripts lie wherever someone put them.
    fn places(&self, _host: &Host) -> Vec<Place> {
        Vec::new()
    }

    fn sniff(&self, head: &Head<'_>) -> Option<Match> {
        discover::sniff(head)
    }

    fn open(
        &self,
        _dialect: &Dialect,
        _origin: &Origin<'_>,
        saved: Option<&[u8]>,
    ) -> Option<Box<dyn Reader>> {
        // Documents are read as a whole each time, so that there is nothing to go on from.
        match saved {
            Some(_) => None,
            None => Some(Box::new(normalize::Transcript::default())),
        }
    }
}
