//! For tests: a server on this machine, and the suite that every server has to pass.

mod document;
mod host;
mod suite;

pub use document::{fresh_id, transcript};
pub use host::{Fault, Host};
pub use suite::{Failure, Leaky, Report, Subjects, conformance};
