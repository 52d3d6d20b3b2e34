//! What Quipu keeps, and where.
//!
//! Agents delete their own logs, shorten them and change their format. So the original bytes are kept
//! first, as they were, and everything else can be made again from them.
//!
//! ```text
//! <home>/archive/    the original bytes of imported logs, compressed     Archive
//! <home>/blobs/      images and other large things, as they are          Blobs
//! <home>/traces/     traces in the .agentlog format, as they are          Traces
//! <home>/received/   what other programs sent, as OTLP/JSON lines         Receiver
//! ```
//!
//! All are plain files with documented names (`docs/archive.md`): `zstd`, `jq` and `cat` are enough to
//! read them, and no database has to survive. What is kept is named by the SHA-256 of its content, so
//! the same bytes are kept once, damage is noticed, and nothing is ever changed in place.
//!
//! # An example
//!
//! A log is kept, grows, and only its new end is stored:
//!
//! ```
//! use std::io::{Cursor, Read as _};
//! use quipu_store::archive::{Archive, Prefix, SourceKey};
//!
//! # let home = tempfile::tempdir()?;
//! let archive = Archive::open(&home.path().join("archive"))?;
//! let key = SourceKey::new("claude", "/home/ada/.claude/projects/x/1.jsonl");
//! let noon = "2026-11-15T12:00:00Z".parse()?;
//!
//! // The first import.
//! let mut writer = archive.begin(&key)?;
//! writer.write(b"{\"type\":\"user\"}\n")?;
//! writer.finish(noon, None, None)?;
//!
//! // Later the file is longer. Is its beginning what is kept? Then the rest is all there is to do.
//! let mut file = Cursor::new(b"{\"type\":\"user\"}\n{\"type\":\"assistant\"}\n");
//! let kept = archive.latest(&key)?.expect("it was imported");
//! assert_eq!(kept.matches_prefix(&mut file)?, Prefix::Same);
//! let mut writer = archive.grow(&kept)?;
//! writer.write(&file.get_ref()[16..])?;
//! let kept = writer.finish(noon, None, None)?;
//! archive.sync()?;
//! assert_eq!((kept.version, kept.size), (1, 37));
//!
//! let mut text = String::new();
//! archive.read(&kept).read_to_string(&mut text)?;
//! assert!(text.ends_with("{\"type\":\"assistant\"}\n"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Threat model
//!
//! Logs hold prompts, code and secrets: directories are made 0700 and files 0600. Whoever can write to
//! the archive can destroy it, but not change it unnoticed, nor make a reader use more memory than one
//! chunk: what is read is checked against its name, and decompression is capped.
//!
//! # Where things are
//!
//! | module | what it owns |
//! |---|---|
//! | [`archive`] | original bytes: chunks, manifests, versions, sweeping |
//! | [`blobs`] | large things that events refer to; what they look like, which are not used |
//! | [`traces`] | `.agentlog` traces by the id of their root, and an index of them |
//! | [`analysis`] | timelines, windows of models, tools, blocks: what events come to |
//! | [`annotations`] | labels and notes of people, kept beside transcripts |
//! | [`facade`] | what programs ask: what there is, what an argument means, what needs attention |
//! | [`health`] | whether all of it is sound |
//! | [`documents`] | all of it as the documents that programs read |
//! | [`receive`] | what other programs send: spans and log records, a file a conversation |
//! | [`live`] | the live bus: what changed, for whoever follows |
//! | [`catalogue`] | what is known of logs and transcripts: the traits, and `SQLite` behind them |
//! | [`events`] | events by number: the blocks they are in, and reading them |
//! | [`objects`] | where chunks and blobs lie: the trait, and a directory of them |
//! | [`address`] | names made of content, and the directories they are in |
//! | `batches` | all events of a transcript, a few at a time |
//! | `source` | kept sessions as something that can be converted |
//! | `files` | private directories, files that appear whole |
//! | `durable` | bringing many files to disk at once |

pub mod address;
pub mod analysis;
pub mod annotations;
pub mod archive;
mod batches;
pub mod blobs;
pub mod catalogue;
pub mod documents;
mod durable;
pub mod events;
pub mod facade;
mod files;
pub mod health;
mod hide;
pub mod import;
pub mod live;
pub mod objects;
mod receipts;
pub mod receive;
pub mod search;
mod source;
pub mod stats;
#[cfg(any(test, feature = "testkit"))]
pub mod testkit;
pub mod traces;
pub mod transcript;

pub use batches::Batches;
pub use files::FileError;
pub use import::Store;
