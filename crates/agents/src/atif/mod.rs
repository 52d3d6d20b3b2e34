//! ATIF, the Agent Trajectory Interchange Format, versions 1.0 to 1.8.
//!
//! A trajectory is one document, which is read in parts: step by step, and one sub-agent after the other. What
//! Quipu itself put under `extra.quipu` is put back where it came from, as far as there is a place for it.

mod discover;
mod normalize;
mod parts;
mod results;
mod wire;

#[cfg(test)]
pub(crate) mod tests;

use std::path::Path;

use crate::{Dialect, Family, Framing, Head, Host, Match, Origin, Place, Reader, state};

/// See the module.
pub(crate) struct Atif;

pub(crate) const TRAJECTORY: Dialect = Dialect {
    name: "atif",
    brand: "atif",
    framing: Framing::Parts,
};

impl Family for Atif {
    fn name(&self) -> &'static str {
        "atif"
    }

    fn dialects(&self) -> &'static [Dialect] {
        &[TRAJECTORY]
    }

    fn places(&self, host: &Host) -> Vec<Place> {
        discover::places(host)
    }

    fn sniff(&self, head: &Head<'_>) -> Option<Match> {
        discover::sniff(head)
    }

    fn dialect_at(&self, _brand: &str, _path: &Path) -> Option<Dialect> {
        Some(TRAJECTORY)
    }

    fn open(
        &self,
        _dialect: &Dialect,
        _origin: &Origin<'_>,
        saved: Option<&[u8]>,
    ) -> Option<Box<dyn Reader>> {
        Some(match saved {
            Some(saved) => Box::new(state::load::<normalize::Trajectory>(saved)?),
            None => Box::<normalize::Trajectory>::default(),
        })
    }
}
