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

use crate::{Dialect, Family};

/// See the module.
pub(crate) struct Exchange;

pub(crate) const RUN: Dialect = Dialect::lines("exchange", "exchange");

impl Family for Exchange {
    // It has no places: engines are told where to put them.
    crate::family::known!("exchange", [RUN]);
    crate::family::opened!(_dialect, _origin => normalize::Run::default());
}
