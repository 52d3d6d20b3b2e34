//! From any log to any format.
//!
//! A **source** is whatever holds a session: an agent's log, a recorded run, a file in one of the formats that can be
//! read, a session of the archive. A **target** is a format to write. Between them stands the model, so what is
//! converted is what the source says, and what the target cannot carry is counted on the way
//! ([`Loss`](quipu_formats::loss::Loss)).
//!
//! ```no_run
//! use quipu_convert::{Format, TargetOptions, Reading, open, write};
//! use quipu_formats::projection::Nowhere;
//! use std::path::Path;
//!
//! for mut source in open(Path::new("session.jsonl"), &Reading::default())? {
//!     let out = Box::new(std::io::stdout().lock());
//!     let report = write(&mut *source, Format::Markdown, &TargetOptions::default(), out, Box::new(Nowhere))?;
//!     eprintln!("{}", report.loss);
//! }
//! # Ok::<(), quipu_convert::SourceError>(())
//! ```

mod format;
mod original;
pub mod output;
mod pipe;
mod pricing;
mod report;
#[cfg(feature = "http")]
pub mod send;
pub mod source;
mod target;

#[cfg(test)]
mod tests;

pub use format::{Format, Shape};
pub use original::copy;
pub use pipe::pump;
pub use pricing::Pricing;
pub use report::Report;
pub use source::{Account, Reading, Source, SourceError, open, open_as, whose};
#[cfg(feature = "parquet")]
pub use target::add;
pub use target::{TargetOptions, write, writer};
