//! Looks at one record: a line of JSON, or text.

use std::ops::Range;

use quipu_model::json::Tape;
use rustc_hash::FxHashMap;

use super::clean::Clean;
use super::edit::{Edit, Form, What};
use super::escape;
use super::join::{ceil, floor};
use super::keys::{Keys, Name};
use super::plan::{Plan, placeholders, touches_placeholder};
use super::taint::Tainted;
use super::walk::{Level, Walk};
use crate::engine::Certainty;
use crate::sensitive::{Exposes, in_patch};
use crate::{Context, Found, Scratch, is_placeholder};

/// How deep JSON may nest. What is deeper is looked at as text.
pub(super) const MAX_DEPTH: usize = 1024;

/// What was seen in a record.
#[derive(Debug, Default)]
pub(super) struct Analysis {
    /// In order, and without overlaps.
    pub(super) edits: Vec<Edit>,
    /// Calls that show what is secret.
    pub(super) taints: Vec<(u64, Exposes)>,
    /// Calls that something in it came of.
    pub(super) refs: Vec<u64>,
    /// What goes on in the next record.
    pub(super) pieces: Vec<Piece>,
    /// Placeholders that it had before.
    pub(super) given: Vec<String>,
    /// Whether it looked like JSON, and was none, or nests too deep.
    pub(super) broken: bool,
}

/// A string that goes on in the next record of its stream.
pub(super) struct Piece {
    /// Which stream.
    pub(super) lane: u64,
    /// What stands between its quotes.
    pub(super) raw: Range<usize>,
    /// What it says.
    pub(super) text: String,
    pub(super) field: String,
}

impl std::fmt::Debug for Piece {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Piece")
            .field("raw", &self.raw)
            .finish_non_exhaustive()
    }
}

/// A part of a text that is to be removed whatever rules find in the text alone.
#[derive(Debug, Clone)]
pub(super) struct Marked {
    pub(super) range: Range<usize>,
    pub(super) what: What,
}

impl Marked {
    /// What is of secret files.
    pub(super) fn file(range: Range<usize>) -> Self {
        Self {
            range,
            what: What::File,
        }
    }
}

/// What a thread works with, kept from record to record and from input to input.
pub(super) struct Kept {
    pub(super) scratch: Scratch,
    pub(super) found: Vec<Found>,
    pub(super) keys: Keys,
    pub(super) clean: Clean,
    pub(super) tapes: Vec<Tape>,
    pub(super) levels: Vec<Level>,
    /// What is secret within the record at hand.
    pub(super) local: FxHashMap<u64, Exposes>,
    mended: Vec<u8>,
    /// What keys and clean texts were looked at with.
    with: With,
}

/// What decides whether something is found in a text.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
struct With {
    engine: u64,
    near: bool,
    /// Where some rule or allowlist asks for it.
    file: Option<String>,
}

impl Kept {
    pub(super) fn new() -> Self {
        Self {
            scratch: Scratch::default(),
            found: Vec::new(),
            keys: Keys::new(),
            clean: Clean::new(),
            tapes: Vec::new(),
            levels: Vec::new(),
            local: FxHashMap::default(),
            mended: Vec::new(),
            with: With::default(),
        }
    }

    /// Begins with another input. What was seen in others is forgotten where it may not hold for this one.
    fn begin(&mut self, plan: &Plan<'_>) {
        let asked = plan.file.filter(|_| plan.engine.asks_for_files());
        let with = With {
            engine: plan.engine.number(),
            near: plan.near,
            file: asked.map(str::to_owned),
        };
        if self.with != with {
            self.keys = Keys::new();
            self.clean = Clean::new();
            self.with = with;
        }
        self.scratch.shrink();
    }
}

/// Looks at records. One for each thread.
pub(super) struct Scanner<'p> {
    pub(super) plan: &'p Plan<'p>,
    pub(super) kept: &'p mut Kept,
}

impl<'p> Scanner<'p> {
    pub(super) fn new(plan: &'p Plan<'p>, kept: &'p mut Kept) -> Self {
        kept.begin(plan);
        Self { plan, kept }
    }

    /// Looks at a record. `json` is where in it JSON begins, if it does; `tainted` is what earlier records tell.
    pub(super) fn record(
        &mut self,
        bytes: &[u8],
        json: Option<usize>,
        tainted: &Tainted,
    ) -> Analysis {
        let mut mended = std::mem::take(&mut self.kept.mended);
        let text = text_of(bytes, &mut mended);
        let mut out = Analysis::default();
        let done = match json {
            Some(base) => self.json(&text[base..], base, tainted, &mut out),
            None => false,
        };
        if done {
            note_placeholders(bytes, &mut out);
        } else {
            out = self.plain(text.as_bytes(), json.is_some());
            out.broken = json.is_some();
        }
        self.kept.mended = mended;
        out
    }

    /// Looks at bytes as text. Those that should be JSON are opened up, so that escapes hide nothing.
    pub(super) fn plain(&mut self, bytes: &[u8], json: bool) -> Analysis {
        let mut mended = Vec::new();
        let mut opened;
        let mut text = bytes;
        if json && memchr::memchr(b'\\', bytes).is_some() {
            opened = bytes.to_vec();
            escape::open_up(&mut opened);
            text = &opened;
        }
        let mut out = Analysis::default();
        self.text(text_of(text, &mut mended), &mut out);
        note_placeholders(bytes, &mut out);
        out
    }

    /// Looks at a text that is all of a record.
    fn text(&mut self, text: &str, out: &mut Analysis) {
        if self.plan.secret_file {
            secret_lines(text, out);
            return;
        }
        let context = Context {
            name: None,
            file: self.plan.file,
            near: self.plan.near,
        };
        let patched = if self.plan.files {
            in_patch(text).into_iter().map(Marked::file).collect()
        } else {
            Vec::new()
        };
        self.spans(text, context, Name::OTHER, patched, &mut |edit| {
            out.edits.push(edit);
        });
    }

    /// What rules find in a text, and what is known of it otherwise, as edits of the text itself. `name` is a number for
    /// the name that the context has; a text that is of another file than usual has none.
    pub(super) fn spans(
        &mut self,
        text: &str,
        context: Context<'_>,
        name: Name,
        marked: Vec<Marked>,
        each: &mut dyn FnMut(Edit),
    ) {
        self.kept.found.clear();
        if !self.kept.clean.knows(name, text.as_bytes()) {
            self.plan
                .engine
                .scan(&mut self.kept.scratch, text, context, &mut self.kept.found);
            if self.kept.found.is_empty() && marked.is_empty() {
                self.kept.clean.remember(name, text.as_bytes());
            }
        }
        if self.kept.found.is_empty() && marked.is_empty() {
            return;
        }
        let found = std::mem::take(&mut self.kept.found);
        let mut marked = marked.into_iter().peekable();
        let mut end = 0;
        for found in &found {
            let span = floor(text, found.span.start)..ceil(text, found.span.end);
            while let Some(mark) = marked.next_if(|mark| mark.range.start <= span.start) {
                // What the text says by itself is known better.
                if mark.what == What::File || mark.range.end <= span.start {
                    take(text, mark, &mut end, each);
                }
            }
            if span.start < end || span.is_empty() || touches_placeholder(text, &span) {
                continue;
            }
            if found.certainty == Certainty::Sure {
                end = span.end;
            }
            each(edit(text, span, What::Rule(found.rule), found.certainty));
        }
        for mark in marked {
            take(text, mark, &mut end, each);
        }
        self.kept.found = found;
    }

    fn json(&mut self, text: &str, base: usize, tainted: &Tainted, out: &mut Analysis) -> bool {
        let mut tape = self.kept.tapes.pop().unwrap_or_default();
        let read = tape.read(text, MAX_DEPTH).is_ok();
        if read {
            self.kept.local.clear();
            let mut hit = None;
            // Once more when something further down tells of something further up; what that finds tells no more.
            for _ in 0..3 {
                *out = Analysis::default();
                let mut walk = Walk::new(self, tainted, hit, base, out);
                walk.tree(0, text, tape.root(text), None);
                if !walk.again() {
                    break;
                }
                hit = walk.hit();
            }
        }
        tape.shrink();
        self.kept.tapes.push(tape);
        read
    }
}

/// Takes what was marked, as far as it is behind what was taken before.
fn take(text: &str, mark: Marked, end: &mut usize, each: &mut dyn FnMut(Edit)) {
    let Marked { range, what } = mark;
    let redacted = match what {
        What::Rule(_) => range.start < *end || touches_placeholder(text, &range),
        What::File | What::Environment => is_placeholder(text[range.clone()].trim()),
    };
    let range = range.start.max(*end)..range.end;
    if !redacted && !range.is_empty() {
        *end = range.end;
        each(edit(text, range, what, Certainty::Sure));
    }
}

/// An edit of a text by itself.
pub(super) fn edit(text: &str, raw: Range<usize>, what: What, certainty: Certainty) -> Edit {
    Edit {
        value: text[raw.clone()].to_owned(),
        raw,
        what,
        certainty,
        field: String::new(),
        form: Form::Text(0),
    }
}

fn note_placeholders(bytes: &[u8], out: &mut Analysis) {
    out.given = placeholders(bytes);
}

/// The text of some bytes, of the same length: bytes that are no UTF-8 become a character that is in no secret.
pub(super) fn text_of<'t>(bytes: &'t [u8], mended: &'t mut Vec<u8>) -> &'t str {
    if let Ok(text) = simdutf8::basic::from_utf8(bytes) {
        return text;
    }
    mended.clear();
    for chunk in bytes.utf8_chunks() {
        mended.extend_from_slice(chunk.valid().as_bytes());
        mended.resize(mended.len() + chunk.invalid().len(), 0x7f);
    }
    std::str::from_utf8(mended).unwrap_or_default()
}

/// All of a secret file. Its lines stay lines, and what is assigned in them keeps its name.
fn secret_lines(text: &str, out: &mut Analysis) {
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        let bare = line.trim_end_matches(['\n', '\r']);
        let from = value_of(bare).unwrap_or(0);
        let value = bare[from..].trim();
        if !value.is_empty() && !is_placeholder(value) && !bare.trim_start().starts_with('#') {
            out.edits.push(edit(
                text,
                at + from..at + bare.len(),
                What::File,
                Certainty::Sure,
            ));
        }
        at += line.len();
    }
}

/// Where the value begins in `NAME=value`, also with `export` before it.
pub(super) fn value_of(line: &str) -> Option<usize> {
    let start = line.len() - line.trim_start().len();
    let rest = &line[start..];
    let start = start + rest.strip_prefix("export ").map_or(0, |_| "export ".len());
    let start = start
        + line[start..]
            .strip_prefix("declare -x ")
            .map_or(0, |_| "declare -x ".len());
    let (name, _) = line[start..].split_once('=')?;
    let word = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.');
    (!name.is_empty() && name.bytes().all(word)).then_some(start + name.len() + 1)
}

/// The values of an environment that is printed a variable a line.
pub(super) fn environment(text: &str) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        let bare = line.trim_end_matches(['\n', '\r']);
        if let Some(from) = value_of(bare)
            && from < bare.len()
            && !is_placeholder(bare[from..].trim_matches(['"', '\'']))
        {
            found.push(at + from..at + bare.len());
        }
        at += line.len();
    }
    found
}
