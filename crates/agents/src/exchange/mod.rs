//! Exchange transcripts: runs that another engine recorded, or Quipu on another machine.
//!
//! Every line is an event of a run (`docs/formats/exchange.md`). Messages and tool events become what they are; what
//! happens to runs and steps becomes notes that keep the line. Runs that this Quipu recorded are not imported: they
//! are listed and shown from their own files.

mod discover;
mod normalize;
mod wire;

#[cfg(test)]
mod tests;

use crate::{Dialect, Family, Framing, Head, Host, Match, Origin, Place, Reader, state};

/// See the module.
pub(crate) struct Exchange;

pub(crate) const RUN: Dialect = Dialect {
    name: "exchange",
    brand: "exchange",
    framing: Framing::Lines,
};

impl Family for Exchange {
    fn name(&self) -> &'static str {
        "exchange"
    }

    fn dialects(&self) -> &'static [Dialect] {
        &[RUN]
    }

    /// None: engines are told where to put them.
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
        Some(match saved {
            Some(saved) => Box::new(state::load::<normalize::Run>(saved)?),
            None => Box::<normalize::Run>::default(),
        })
    }
}
