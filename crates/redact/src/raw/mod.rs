//! Redacts JSONL, JSON and text as they stand: bytes in which nothing was found come out as they went in.
//!
//! ```text
//! Read ─► Source ─► lines      a line of JSON, or lines of text ─┐
//!                 ► document   a value, or the parts of it       ├─► Scanner ─► Analysis ─► Streams ─► Sink ─► Write
//!                 ► text       windows that overlap             ─┘   (threads)   edits      held back   placeholders
//! ```
//!
//! A record is read with a tape, and every key, string and number of it is looked at: what it *says*, not how it is
//! spelled, with the name it is given to. What is found becomes an edit of the record's bytes. Strings that are JSON
//! are walked as JSON, two strings deep.
//!
//! Some things are secret because of where they stand. An object that names a secret file (see
//! [`sensitive`](crate::sensitive)) holds its content; a call that reads one has it as its result, in the same record
//! or in a later one that names the call. All strings in there are removed but words of the format (types, ids, states:
//! no more than 64 bytes and without spaces, under the keys that are known for them); numbers, exit codes say, stay.
//! Where a command prints the environment, names stay and values are removed. What a command printed that shows a
//! secret file is removed where it looks like one: commands print listings, errors and more beside it.
//!
//! A value is given to the key it stands under, and to more than that: to the name beside it (`{"name":…,"value":…}`), to
//! what its object is called (`{"password":{"value":…}}`), to the flag before it in a list (`["--password",…]`). Headers
//! and lists of arguments are put together the way they stand in a text, so that the rules for texts hold for them
//! (`walk/given.rs`).
//!
//! Most of what is in a log is on every line of it. Keys are classed once (`keys.rs`), short texts that were found clean
//! are not looked at again (`clean.rs`), and times, ids and counts under the keys known for them are passed by, if the
//! rules say that they are not about such (`asked.rs`).
//!
//! Records are held back only while they are pieces of a stream; `stream.rs` has the bounds.
//!
//! **Invariant:** what comes out does not depend on the number of threads nor on how the input arrives.
//! **Invariant:** what is held is bounded by [`RawOptions::max_line`], whatever the input.

mod allow;
mod asked;
mod clean;
mod document;
mod edit;
mod escape;
mod join;
mod keys;
mod lines;
mod plan;
mod render;
mod scan;
mod sniff;
mod source;
mod stream;
mod taint;
mod text;
mod walk;

#[cfg(test)]
mod tests;

use std::cell::RefCell;
use std::io::{self, Read, Write};

pub(crate) use allow::Fields;
pub use edit::{Finding, What};
pub use render::Summary;

use crate::{Engine, Key};
use plan::Plan;
use render::Sink;
use scan::{Kept, Scanner};
use source::Source;
use text::Until;

/// What an input is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Shape {
    /// A JSON value a line. Lines that are none are text.
    Jsonl,
    /// JSON values over any number of lines.
    Json,
    /// Anything else.
    Text,
}

/// How an input is redacted.
#[derive(Debug, Clone)]
pub struct RawOptions {
    /// What it is; found out by how it begins without.
    pub shape: Option<Shape>,
    /// What it is called. A secret file is removed line by line.
    pub file: Option<String>,
    /// For the numbers of placeholders.
    pub key: Key,
    /// Whether what is nearly a finding is told as well.
    pub near: bool,
    /// Whether what is of secret files is removed as a whole.
    pub files: bool,
    /// The longest line, or document, that is held. What is longer is looked at as text, in pieces that overlap.
    pub max_line: usize,
    /// How many threads look at records.
    pub threads: usize,
}

impl RawOptions {
    /// As most inputs are redacted.
    pub fn new(key: Key) -> Self {
        Self {
            shape: None,
            file: None,
            key,
            near: false,
            files: true,
            max_line: 256 << 20,
            threads: 1,
        }
    }
}

/// An input could not be redacted to its end.
#[derive(Debug, thiserror::Error)]
pub enum RawError {
    /// Reading the input, or writing what is left of it, failed.
    #[error("cannot read or write: {0}")]
    Io(#[from] io::Error),
}

/// What a thread works with, kept from one input to the next: automata that were built, keys and short texts in which
/// nothing is found, and a buffer. Making them takes longer than looking at a small file.
#[derive(Default)]
struct Reused {
    /// One for each thread that looks at records.
    kept: Vec<Kept>,
    buffer: Vec<u8>,
}

thread_local! {
    static REUSED: RefCell<Reused> = RefCell::default();
}

/// Redacts an input. What is found is told as it is written.
///
/// # Errors
///
/// When reading or writing fails. What was written until then is redacted.
pub fn redact(
    engine: &Engine,
    options: &RawOptions,
    input: &mut dyn Read,
    output: &mut dyn Write,
    report: &mut dyn FnMut(Finding),
) -> Result<Summary, RawError> {
    run(engine, options, input, Some(output), report)
}

/// Tells what is found in an input, and writes nothing.
///
/// # Errors
///
/// When reading fails.
pub fn check(
    engine: &Engine,
    options: &RawOptions,
    input: &mut dyn Read,
    report: &mut dyn FnMut(Finding),
) -> Result<Summary, RawError> {
    run(engine, options, input, None, report)
}

fn run(
    engine: &Engine,
    options: &RawOptions,
    input: &mut dyn Read,
    output: Option<&mut dyn Write>,
    report: &mut dyn FnMut(Finding),
) -> Result<Summary, RawError> {
    let plan = Plan::new(engine, options);
    // Whoever is told of a finding may look at another input meanwhile.
    let Reused { mut kept, buffer } = REUSED.take();
    let threads = options.threads.max(1);
    if kept.len() < threads {
        kept.resize_with(threads, Kept::new);
    }
    let mut source = Source::new(input, buffer);
    let mut scanners: Vec<Scanner<'_>> = kept[..threads]
        .iter_mut()
        .map(|kept| Scanner::new(&plan, kept))
        .collect();
    let mut output = output;
    let output = output
        .as_mut()
        .map(|output| &mut **output as &mut dyn Write);
    let mut sink = Sink::new(&plan, options.key.clone(), output, report);
    let shape = match options.shape {
        Some(shape) => shape,
        None => sniff::shape(&mut source)?,
    };
    match shape {
        Shape::Jsonl => lines::lines(&mut source, &mut scanners, &mut sink, options.max_line)?,
        Shape::Json => {
            document::document(&mut source, &mut scanners[0], &mut sink, options.max_line)?;
        }
        Shape::Text => text::text(&mut source, &mut scanners[0], &mut sink, Until::End, false)?,
    }
    let place = source.place;
    sink.summary.bytes = place.offset;
    sink.summary.lines = place.line - u64::from(place.column == 0);
    let summary = sink.summary;
    let buffer = source.into_buffer();
    REUSED.set(Reused { kept, buffer });
    Ok(summary)
}
