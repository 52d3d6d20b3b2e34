//! What an event says, as far as it can be looked for.

use std::borrow::Cow;
use std::sync::Arc;

use quipu_agents::{Entry, Position, Text, Value, What};
use quipu_model::json::{Kind, Node, Tape};
use quipu_model::{NoteKind, Status, Timestamp};
use quipu_redact::Guard;
use quipu_search::{Document, Facet, Tag};

use crate::hide::Hide;

/// A longer text becomes several documents with the same number.
pub const PIECE: usize = 1 << 20;

/// How deep arguments and results of tools are looked into.
const DEPTH: usize = 128;

/// Under these names tools are told which files they are to work on.
const PATHS: [&str; 16] = [
    "path",
    "paths",
    "file",
    "files",
    "file_path",
    "filePath",
    "filepath",
    "filename",
    "notebook_path",
    "target_file",
    "absolute_path",
    "relative_path",
    "relativePath",
    "dir_path",
    "old_path",
    "new_path",
];

/// What stands before the name of a file in a patch.
const PATCHED: [&str; 6] = [
    "*** Update File: ",
    "*** Add File: ",
    "*** Delete File: ",
    "*** Move to: ",
    "+++ b/",
    "--- a/",
];

/// Who speaks in an event: the word for it in a query.
pub fn role(what: &What<'_>) -> &'static str {
    match what {
        What::User(_) => "user",
        What::Assistant(_) => "assistant",
        What::Reasoning(_) => "reasoning",
        What::System(_) => "system",
        What::Call { .. } => "tool_call",
        What::Result { .. } => "tool_result",
        What::Note { .. } => "note",
    }
}

/// Counts the events that a record becomes.
#[derive(Debug, Default)]
pub struct EventPlace {
    offset: Option<u64>,
    nth: u64,
}

impl EventPlace {
    /// Where the next event is: where its record begins, and the how-manieth event of it this is, counted as
    /// far as [`Self::MOST`].
    pub fn next(&mut self, position: Position) -> u64 {
        if self.offset == Some(position.offset) {
            self.nth = (self.nth + 1).min(Self::MOST);
        } else {
            *self = Self {
                offset: Some(position.offset),
                nth: 0,
            };
        }
        position.offset.saturating_mul(Self::MOST + 1) + self.nth
    }

    /// Events of a record beyond this many are not told apart.
    pub const MOST: u64 = 255;

    /// The offset of the record, and which event of it.
    pub fn parse(place: u64) -> (u64, u64) {
        (place / (Self::MOST + 1), place % (Self::MOST + 1))
    }
}

/// Takes the text out of events, without the secrets in it where there is a guard.
#[derive(Debug, Default)]
pub struct EventText {
    tape: Tape,
    text: String,
    paths: String,
    hide: Option<Hide>,
}

impl EventText {
    /// Hides what a guard finds.
    pub fn guarded(guard: &Arc<Guard>) -> Self {
        Self {
            hide: Some(Hide::new(guard)),
            ..Self::default()
        }
    }

    fn hide<'t>(&self, text: &'t str, name: Option<&str>) -> Cow<'t, str> {
        match &self.hide {
            Some(hide) => hide.text(text, name),
            None => Cow::Borrowed(text),
        }
    }

    /// An event whose names hold no secret.
    pub(super) fn named<'e, 'a>(&mut self, entry: &'e Entry<'a>) -> Cow<'e, Entry<'a>> {
        match &mut self.hide {
            Some(hide) => hide.entry(entry),
            None => Cow::Borrowed(entry),
        }
    }

    /// What an event says. This is the text that offsets of matches refer to.
    pub fn text(&mut self, entry: &Entry<'_>) -> &str {
        let entry = self.named(entry);
        self.take(&entry);
        &self.text
    }

    /// What an event is put into the index as: nothing, one document, or several when it says a great deal.
    pub(crate) fn documents(
        &mut self,
        entry: &Entry<'_>,
        seq: u64,
        at: Timestamp,
        place: u64,
        mut give: impl FnMut(Document),
    ) {
        self.take(entry);
        if self.text.is_empty() && self.paths.is_empty() && matches!(entry.what, What::Note { .. })
        {
            return;
        }
        let known = entry.at.is_some() || at != Timestamp::UNIX_EPOCH;
        let document = |text: &str, paths: &str| Document {
            pass: 0,
            seq,
            at: known.then(|| at.as_millisecond()),
            place,
            text: text.to_owned(),
            paths: paths.to_owned(),
            tags: tags(entry),
        };
        let mut rest = self.text.as_str();
        let mut paths = self.paths.as_str();
        while rest.len() > PIECE {
            let (piece, behind) = rest.split_at(boundary(rest));
            give(document(piece, std::mem::take(&mut paths)));
            rest = behind;
        }
        give(document(rest, paths));
    }

    fn take(&mut self, entry: &Entry<'_>) {
        self.text.clear();
        self.paths.clear();
        match &entry.what {
            What::User(text)
            | What::Assistant(text)
            | What::Reasoning(text)
            | What::System(text) => {
                self.tell(&text.read());
            }
            What::Call { name, input, .. } => {
                self.text.push_str(name);
                if let Some(input) = input {
                    self.value(input, true);
                }
            }
            What::Result { output, error, .. } => {
                if let Some(output) = output {
                    self.value(output, false);
                }
                if let Some(error) = error {
                    self.tell(&error.read());
                }
            }
            What::Note { kind, text, raw } => {
                if let Some(text) = text {
                    self.tell(&text.read());
                }
                if let Some(raw) = raw
                    && !is_repeated(*kind)
                {
                    self.value(raw, false);
                }
            }
        }
    }

    fn value(&mut self, value: &Value<'_>, paths: bool) {
        match value {
            Value::Text(text) => self.said(text, paths),
            Value::Raw(raw) => drop(self.json(raw.get(), paths)),
            Value::Owned(json) => drop(self.json(json.get(), paths)),
        }
    }

    fn said(&mut self, text: &Text<'_>, paths: bool) {
        let text = text.read();
        // Some agents put the arguments and the results of tools into a string.
        if is_object(&text) && self.json(&text, paths) {
            return;
        }
        let text = self.hide(&text, None);
        if paths {
            patched(&text, &mut self.paths);
        }
        line(&mut self.text, &text);
    }

    /// Adds a text.
    fn tell(&mut self, text: &str) {
        let text = self.hide(text, None);
        line(&mut self.text, &text);
    }

    /// Takes what stands in a JSON text. `false` when it is none.
    fn json(&mut self, json: &str, paths: bool) -> bool {
        let mut tape = std::mem::take(&mut self.tape);
        let read = tape.read(json, DEPTH);
        let is_json = read.is_ok();
        if let Ok(root) = read {
            // A text that is all of a result may again be written as JSON.
            match Text::of(root) {
                Some(text) => self.said(&text, paths),
                None => self.walk(root, None, paths, 0),
            }
        }
        tape.shrink();
        self.tape = tape;
        is_json
    }

    /// Adds what the strings and numbers of a value say, each on a line.
    fn walk(&mut self, node: Node<'_>, key: Option<&str>, is_input: bool, depth: usize) {
        match node.kind() {
            Kind::String => {
                // Says what kind of value this is, in the words of a format.
                if key == Some("type") {
                    return;
                }
                let said = node.as_str().unwrap_or_default();
                let is_path = is_input && key.is_some_and(|key| PATHS.contains(&key));
                let said = match &self.hide {
                    Some(hide) if is_path => hide.path(&said),
                    _ => self.hide(&said, key),
                };
                if is_path {
                    line(&mut self.paths, &said);
                } else if is_input {
                    patched(&said, &mut self.paths);
                }
                line(&mut self.text, &said);
            }
            Kind::Number => {
                let said = self.hide(node.raw().get(), key);
                line(&mut self.text, &said);
            }
            Kind::List => {
                for item in node.items() {
                    self.walk(item, key, is_input, depth + 1);
                }
            }
            Kind::Object if depth < DEPTH => {
                for (key, value) in node.fields() {
                    let key = key.to_text_lossy();
                    self.walk(value, Some(&key), is_input, depth + 1);
                }
            }
            Kind::Object | Kind::Null | Kind::Bool => {}
        }
    }
}

/// The files that the arguments of a tool name, as they are written there.
pub(crate) fn named_files(input: &str) -> Vec<String> {
    let mut text = EventText::default();
    text.json(input, true);
    text.paths.lines().map(str::to_owned).collect()
}

/// Whether a text seems to be a JSON object.
fn is_object(text: &str) -> bool {
    text.starts_with('{') && text.trim_end().ends_with('}')
}

fn line(to: &mut String, text: &str) {
    if text.is_empty() {
        return;
    }
    if !to.is_empty() {
        to.push('\n');
    }
    to.push_str(text);
}

fn patched(text: &str, paths: &mut String) {
    if !text.contains("*** ") && !text.contains("+++ b/") {
        return;
    }
    for written in text.lines() {
        if let Some(path) = PATCHED.iter().find_map(|mark| written.strip_prefix(mark)) {
            line(paths, path);
        }
    }
}

/// Records that only say again what other records say, or nothing in words.
fn is_repeated(kind: NoteKind) -> bool {
    matches!(
        kind,
        NoteKind::Usage | NoteKind::Progress | NoteKind::ModelCall | NoteKind::FileSnapshot
    )
}

fn tags(entry: &Entry<'_>) -> Vec<Tag> {
    let mut tags = vec![Tag::new(Facet::Role, role(&entry.what))];
    let failed = match &entry.what {
        What::Call { name, .. } => {
            tags.push(Tag::new(Facet::Tool, name));
            false
        }
        What::Result { name, .. } => {
            tags.push(Tag::new(Facet::Tool, name));
            if let Some(status) = entry.status {
                tags.push(Tag::new(Facet::Status, status.as_str()));
            }
            matches!(
                entry.status,
                Some(Status::Error | Status::Timeout | Status::Denied)
            )
        }
        What::Note { kind, .. } => *kind == NoteKind::Error,
        _ => false,
    };
    if failed {
        tags.push(Tag::new(Facet::Has, "error"));
    }
    if !entry.attachments.is_empty() {
        tags.push(Tag::new(Facet::Has, "attachment"));
    }
    if let Some(model) = &entry.model {
        tags.push(Tag::new(Facet::Model, model));
    }
    tags
}

/// Where a long text can be divided: between words if there is a place nearby.
fn boundary(text: &str) -> usize {
    const NEAR: usize = 4096;
    let bytes = text.as_bytes();
    let space = bytes[PIECE - NEAR..PIECE]
        .iter()
        .rposition(u8::is_ascii_whitespace);
    match space {
        Some(at) => PIECE - NEAR + at + 1,
        None => (0..=PIECE)
            .rev()
            .find(|at| text.is_char_boundary(*at))
            .unwrap_or(text.len()),
    }
}
