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

use crate::{Dialect, Family, Framing};

/// See the module.
pub(crate) struct Atif;

pub(crate) const TRAJECTORY: Dialect = Dialect::framed("atif", "atif", Framing::Parts);

impl Family for Atif {
    crate::family::known!("atif", [TRAJECTORY]);
    crate::family::placed!();

    fn dialect_at(&self, _brand: &str, _path: &Path) -> Option<Dialect> {
        Some(TRAJECTORY)
    }

    crate::family::opened!(_dialect, _origin => normalize::Trajectory::default());
}
