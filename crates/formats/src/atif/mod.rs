//! ATIF, the Agent Trajectory Interchange Format.
//!
//! A trajectory is one JSON document: the agent, its steps, and sums. A step is what a person, a program or
//! the agent did in one go; that of an agent is one call to a model, with the tools it called *and what they
//! gave back*. Logs tell these one after the other, so a step is held until its results are there.
//!
//! Its readers refuse keys that they do not know. What ATIF has no field for goes where anything may stand,
//! under `extra.quipu`: the events of a step with their ids and times, and the notes beside it. So nothing is
//! lost on the way there; what is in a shape of its own is counted.
//!
//! [`writer`] writes; [`verify()`] checks a document of anybody's against the rules of the format.

mod attach;
mod details;
pub(crate) mod json;
mod metrics;
mod output;
mod pictures;
mod step;
mod take;
mod track;
pub mod verify;
mod write;

#[cfg(test)]
mod tests;

use std::io::{self, Write};

use quipu_model::Header;

use crate::loss::Field;
use crate::normalized::{Privacy, Submitter};
use crate::projection::{Beside, Projection};

pub use verify::verify;

/// How a trajectory is written.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AtifOptions {
    /// The version that is written.
    pub version: Version,
    /// Who shares the session and what was removed from it, where that is known. It goes under `extra.quipu`.
    pub shared: Option<Shared>,
}

/// Who shares a session, and what was removed from it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Shared {
    /// Who shares it.
    pub submitter: Option<Submitter>,
    /// What was removed.
    pub privacy: Option<Privacy>,
}

/// A version that can be written.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Version {
    /// The one that most programs read.
    #[default]
    V1_7,
    /// With sound: audio is put beside the document as images are. Without it, a text says that it was there.
    V1_8,
}

impl Version {
    /// As it stands in a document.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::V1_7 => "ATIF-v1.7",
            Self::V1_8 => "ATIF-v1.8",
        }
    }
}

/// What ATIF has a place for: all of it, because anything may stand under `extra`.
pub const CARRIES: &[Field] = Field::ALL;

/// Writes a session as a trajectory. Images go beside it, into `images/`.
///
/// # Errors
///
/// Those of whatever is written to.
pub fn writer<'w>(
    header: &Header,
    options: &AtifOptions,
    out: Box<dyn Write + 'w>,
    beside: Box<dyn Beside + 'w>,
) -> io::Result<Box<dyn Projection + 'w>> {
    Ok(Box::new(write::Writer::new(header, options, out, beside)))
}
