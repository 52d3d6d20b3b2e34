//! `.agentlog` traces: content-addressed records, one a line.
//!
//! A record's id is the SHA-256 of the canonical JSON of its payload; its parent is the id of a record
//! before it. So a trace can be checked by anyone, whoever wrote it, and that is what this module is for.
//! `docs/agentlog.md` says how what the specification leaves open is read here.
//!
//! | module | what it owns |
//! |---|---|
//! | [`canon`] | the canonical form that is hashed |
//! | [`form`] | other programs' readings of it, to tell what an id that does not match was made by |
//! | [`inline`] | moving files that are written inline out of a payload |
//! | [`record`] | what is on a line |
//! | [`reader`] | lines of a file, one at a time, in bounded memory |
//! | [`mod@write`] | records to bytes |
//! | [`project`] | sessions as traces |
//! | [`verify`] | whether a trace is as it should be |
//! | [`repair`] | a trace with its ids and parents made right |
//!
//! ```
//! use quipu_formats::agentlog::{Draft, Item, Kind, Reader, Writer};
//! use quipu_model::Json;
//!
//! let mut writer = Writer::new(Vec::new());
//! let at = "2026-04-24T10:00:00.000Z".parse().unwrap();
//! let root = Json::parse(r#"{"sdk":{"name":"quipu","version":"0.1.0"}}"#).unwrap();
//! let root = writer.append(&Draft::new(Kind::Metadata, at, None, &root)).unwrap();
//!
//! let file = writer.into_inner();
//! let mut reader = Reader::new(&file[..]);
//! let Some(Item::Record(record)) = reader.next().unwrap() else { panic!() };
//! assert_eq!(record.id(), Some(root));
//! assert_eq!(record.content_id().unwrap(), root);
//! ```

pub mod canon;
pub mod form;
mod id;
pub mod inline;
mod kind;
pub mod project;
pub mod reader;
pub mod record;
pub mod repair;
pub mod verify;
pub mod write;

pub use canon::{Canon, CanonError, CanonProblem};
pub use form::Form;
pub use id::{ContentId, NotAnId};
pub use kind::Kind;
pub use reader::{Fault, Item, LIMITS, Reader, parse_line};
pub use record::{Parent, Record};
pub use write::{Draft, Writer, encode};

/// The version of the format that is written, and the only one there is.
pub const VERSION: &str = "0.1";
