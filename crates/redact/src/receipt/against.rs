//! Holds a shared copy against the original.

use std::borrow::Cow;
use std::io;

use quipu_formats::normalized::path::{self, Characters, Target};
use quipu_formats::normalized::{self, Beyond, NormalizedOptions, Writer};
use quipu_model::hex;
use quipu_model::json::{Kind, Node, Tape};
use quipu_model::{Event, Header, Money, Timestamp};
use rustc_hash::FxHashMap;
use sha2::Digest as _;

use super::tree::DEEPEST;
use super::verify::{Check, Shared, Span};
use super::{Report, What, begun, salt, salts};
use crate::Key;
use crate::profile::Pseudonyms;
use crate::session::{
    CUT, REPLACES, id_stands_for, naming, round, round_money, stands_for_hash, transcript,
    whole_seconds,
};

/// Events of the original whose numbers are kept when they are not in the shared copy.
const KEPT: usize = 1000;

/// Holds a shared copy against the original, event by event.
pub struct Against<R> {
    shared: Shared<R>,
    check: Check,
    header: Header,
    options: NormalizedOptions,
    salts: Option<Key>,
    /// What the copy says was changed everywhere in the same way.
    changes: Changes,
    next: Option<(u64, u64, String)>,
    missing: (u64, Vec<u64>),
    /// How many events the shared copy says were cut off.
    cut: Option<u64>,
    buffer: Vec<u8>,
}

/// What the copy says was changed everywhere in the same way, and what is known of it.
#[derive(Debug)]
struct Changes {
    /// Whether times were moved, and by how much: by what the first says.
    times: Times,
    /// Whether ids were replaced.
    ids: Option<Ids>,
    /// Whether numbers were rounded.
    rounds: bool,
}

/// What is known of how ids were replaced.
#[derive(Debug, Default)]
struct Ids {
    /// The keys that they may have been replaced by, where the owner's is there.
    keys: Vec<Key>,
    /// What stands for each, and the other way round, without it.
    stands: FxHashMap<String, String>,
    back: FxHashMap<String, String>,
}

/// Ids that are held against each other.
const IDS: usize = 1 << 16;

impl Ids {
    /// Whether one may stand for the other: what the key says; without it, whether it always does, and for nothing else.
    fn stands_for(&mut self, stands: &str, id: &str, is_hash: bool) -> bool {
        if !self.keys.is_empty() {
            return self.keys.iter().any(|key| {
                if is_hash {
                    stands_for_hash(key, id) == stands
                } else {
                    id_stands_for(key, id).is_some_and(|it| it == stands)
                }
            });
        }
        if self.stands.len() >= IDS {
            return true;
        }
        let known = self.stands.entry(id.to_owned());
        let back = self.back.entry(stands.to_owned());
        known.or_insert_with(|| stands.to_owned()) == stands
            && back.or_insert_with(|| id.to_owned()) == id
    }
}

/// What is known of how times were moved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Times {
    Kept,
    Moved(Option<i128>),
}

impl<R: io::Read> Against<R> {
    /// Gets ready. `header` and `options` are the original's. With the key, what stood at each span is checked as well.
    ///
    /// # Errors
    ///
    /// The shared copy cannot be read.
    pub fn new(
        shared: R,
        header: &Header,
        options: &NormalizedOptions,
        key: Option<&Key>,
    ) -> io::Result<Self> {
        let mut shared = Shared::new(shared);
        shared.begin()?;
        let sections = shared.sections();
        let mut tape = Tape::new();
        let read = tape.read(&sections, DEEPEST + 1).ok();
        let says = |name: &str| {
            read.and_then(|node| node.path(&["privacy", name])?.as_bool()) == Some(true)
        };
        let transcript = transcript(header, options);
        let keys = key.map_or_else(Vec::new, |key| {
            let scopes = [Pseudonyms::Person, Pseudonyms::Transcript];
            scopes.map(|scope| naming(key, scope, &transcript)).to_vec()
        });
        // Its own, which is another than the original's where ids were replaced.
        let shared_as = read.and_then(|node| node.text("transcriptId").map(Cow::into_owned));
        let shared_as = shared_as.unwrap_or_else(|| transcript.clone());
        let changes = Changes {
            times: if says("timeShift") {
                Times::Moved(None)
            } else {
                Times::Kept
            },
            ids: says("idsReplaced").then(|| Ids {
                keys,
                ..Ids::default()
            }),
            rounds: says("numbersRounded"),
        };
        let mut against = Self {
            shared,
            check: Check::default(),
            header: header.clone(),
            options: options.clone(),
            salts: key.map(|key| salts(key, &shared_as)),
            changes,
            next: None,
            missing: (0, Vec::new()),
            cut: None,
            buffer: Vec::new(),
        };
        against.advance()?;
        Ok(against)
    }

    /// Takes in the next event of the original.
    ///
    /// # Errors
    ///
    /// The shared copy cannot be read.
    pub fn event(&mut self, event: &Event, beyond: &Beyond) -> io::Result<()> {
        while let Some((_, seq, _)) = self.next.as_ref().filter(|(_, seq, _)| *seq < event.seq) {
            let seq = *seq;
            self.check.report.add(Some(seq), "", What::NotInOriginal);
            self.advance()?;
        }
        let Some((_, seq, text)) = self.next.as_ref().filter(|(_, seq, _)| *seq == event.seq)
        else {
            self.missing.0 += 1;
            if self.missing.1.len() < KEPT {
                self.missing.1.push(event.seq);
            }
            return Ok(());
        };
        let mut buffer = std::mem::take(&mut self.buffer);
        buffer.clear();
        normalized::encode(&self.header, event, beyond, &mut buffer);
        let original = String::from_utf8_lossy(&buffer);
        let (mut one, mut other) = (Tape::new(), Tape::new());
        let mut compare = Compare {
            report: &mut self.check.report,
            salts: self.salts.as_ref(),
            changes: &mut self.changes,
            seq: *seq,
            path: String::new(),
            spans: FxHashMap::default(),
        };
        match (one.read(text, DEEPEST), other.read(&original, DEEPEST)) {
            (Ok(shared), Ok(original)) => compare.event(shared, original),
            // The check of the copy itself says so.
            _ => compare.differs(),
        }
        self.buffer = buffer;
        self.advance()
    }

    /// Says what was found, when the original has no more events.
    ///
    /// # Errors
    ///
    /// The shared copy cannot be read.
    pub fn finish(mut self) -> io::Result<Report> {
        while let Some((_, seq, text)) = self.next.take() {
            match cut(&text) {
                Some(events) if self.cut.is_none() => self.cut = Some(events),
                _ => self.check.report.add(Some(seq), "", What::NotInOriginal),
            }
            self.advance()?;
        }
        let (missing, numbers) = &self.missing;
        match self.cut {
            Some(stated) if stated == *missing => {}
            Some(stated) => {
                let what = What::Count {
                    stated,
                    counted: *missing,
                };
                self.check.report.add(None, "events", what);
            }
            None => {
                for seq in numbers {
                    self.check.report.add(Some(*seq), "", What::Missing);
                }
                self.check.report.count += missing - numbers.len() as u64;
            }
        }
        self.sections()?;
        if let Some(why) = self.shared.failed() {
            self.check.report.add(None, "", What::Document(why));
        }
        self.check.sections(&self.shared.sections());
        Ok(self.check.report)
    }

    /// Goes on to the next event of the shared copy.
    fn advance(&mut self) -> io::Result<()> {
        self.next = None;
        let Some((index, text)) = self.shared.next()? else {
            return Ok(());
        };
        self.check.event(index, &text);
        let mut tape = Tape::new();
        let seq = tape
            .read(&text, DEEPEST)
            .ok()
            .and_then(|node| node.get("seq")?.as_u64());
        self.next = Some((index, seq.unwrap_or(index + 1), text));
        Ok(())
    }

    /// Compares what is said of the session as a whole.
    fn sections(&mut self) -> io::Result<()> {
        let (_, document) = Writer::new(&self.header, &self.options, Vec::new())?.end()?;
        let original = String::from_utf8_lossy(&document);
        let shared = self.shared.sections();
        let (mut one, mut other) = (Tape::new(), Tape::new());
        let mut compare = Compare {
            report: &mut self.check.report,
            salts: self.salts.as_ref(),
            changes: &mut self.changes,
            seq: 0,
            path: String::new(),
            spans: FxHashMap::default(),
        };
        match (
            one.read(&shared, DEEPEST + 1),
            other.read(&original, DEEPEST + 1),
        ) {
            (Ok(shared), Ok(original)) => {
                let receipts = shared.path(&["privacy", "redactions"]);
                compare.take_spans(receipts, shared);
                for name in ["source", "session"] {
                    name.clone_into(&mut compare.path);
                    match (shared.get(name), original.get(name)) {
                        (Some(shared), Some(original)) => {
                            compare.section(shared, original, self.cut.is_some());
                        }
                        _ => compare.differs(),
                    }
                }
            }
            _ => compare.differs(),
        }
        Ok(())
    }
}

impl<R> std::fmt::Debug for Against<R> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Against")
            .field("report", &self.check.report)
            .finish_non_exhaustive()
    }
}

/// How many events a note says were cut off; `None` when it says nothing of the kind.
fn cut(text: &str) -> Option<u64> {
    let mut tape = Tape::new();
    let node = tape.read(text, DEEPEST).ok()?;
    let is_made = node.get("synthetic").and_then(|made| made.as_bool()) == Some(true);
    let meta = node
        .get("meta")
        .filter(|meta| is_made && meta.get("kind").is_some_and(|kind| kind.is("truncated")))?;
    meta.path(&["raw", CUT, "events"])?.as_u64()
}

/// Compares one event, or one section.
struct Compare<'c, 'n> {
    report: &'c mut Report,
    salts: Option<&'c Key>,
    changes: &'c mut Changes,
    seq: u64,
    path: String,
    /// The spans of a value, or of the name of a field that has the value; by its place.
    spans: FxHashMap<(u32, bool), Vec<(u64, Span<'n>)>>,
}

impl<'n> Compare<'_, 'n> {
    fn differs(&mut self) {
        self.add(What::Differs);
    }

    fn add(&mut self, what: What) {
        let seq = Some(self.seq).filter(|seq| *seq > 0);
        self.report.add(seq, self.path.clone(), what);
    }

    fn take_spans(&mut self, list: Option<Node<'n>>, of: Node<'n>) {
        let Some(list) = list else { return };
        let spans: Vec<Span<'n>> = list.items().filter_map(Span::of).collect();
        let found = path::resolve_all(of, spans.iter().map(|span| &*span.field));
        let places: Vec<Option<(u32, bool)>> = spans
            .iter()
            .map(|span| match found.get(&*span.field)? {
                Target::Value(node) => Some((node.place(), false)),
                Target::Name(node, _) => Some((node.place(), true)),
            })
            .collect();
        drop(found);
        for (span, place) in spans.into_iter().zip(places) {
            // What leads nowhere is found by the check of the copy itself.
            if let Some(place) = place {
                let of = self.spans.entry(place).or_default();
                of.push((of.len() as u64, span));
            }
        }
    }

    fn event(&mut self, shared: Node<'n>, original: Node<'_>) {
        self.take_spans(shared.get("redactions"), shared);
        let replaces = shared.get("meta").and_then(|meta| meta.text(REPLACES));
        let is_made = shared.get("synthetic").and_then(|made| made.as_bool()) == Some(true);
        if let Some(replaces) =
            replaces.filter(|_| is_made && original.path(&["meta", REPLACES]).is_none())
        {
            return self.replaced(&replaces, shared, original);
        }
        let has_blocks = shared.get("blocks").is_some() && original.get("blocks").is_some();
        self.fields(shared, original, &|name| {
            name == "redactions" || name == "text" && has_blocks
        });
    }

    /// A note that stands for an event as a whole.
    fn replaced(&mut self, replaces: &str, shared: Node<'n>, original: Node<'_>) {
        let stood = match replaces {
            "reasoning"
                if original
                    .get("type")
                    .is_some_and(|kind| kind.is("reasoning")) =>
            {
                original.text("text").map(std::borrow::Cow::into_owned)
            }
            "event" => Some(original.raw().get().to_owned()),
            "meta" => original.get("meta").map(|meta| meta.raw().get().to_owned()),
            _ => None,
        };
        path::push_name(&mut self.path, "text");
        match (stood, shared.get("text")) {
            (Some(stood), Some(text)) if self.spans.contains_key(&(text.place(), false)) => {
                self.text(text, &stood);
            }
            // Nothing stood there.
            (Some(stood), Some(text)) if text.is(&stood) => {}
            _ => self.differs(),
        }
        self.path.clear();
        if replaces != "event" {
            let own = [
                "type",
                "role",
                "text",
                "meta",
                "fidelity",
                "redactions",
                "synthetic",
            ];
            self.fields(shared, original, &|name| own.contains(&name));
        }
    }

    fn section(&mut self, shared: Node<'n>, original: Node<'_>, is_cut: bool) {
        let is_given = |name: &str| match name {
            "adapterVersion" => true,
            "capturedAt" => original.get("capturedAt").is_none(),
            // Events that were cut have no part in it.
            "startedAt" | "endedAt" | "children" => is_cut,
            _ => false,
        };
        self.fields(shared, original, &is_given);
    }

    /// Compares the fields of two objects, but for some.
    fn fields(&mut self, shared: Node<'n>, original: Node<'_>, skip: &dyn Fn(&str) -> bool) {
        let mut one = shared
            .fields()
            .filter(|(name, _)| !skip(&name.to_text_lossy()));
        let mut other = original
            .fields()
            .filter(|(name, _)| !skip(&name.to_text_lossy()));
        loop {
            let ((name, shared), (was, original)) = match (one.next(), other.next()) {
                (Some(one), Some(other)) => (one, other),
                (None, None) => return,
                _ => return self.differs(),
            };
            let length = self.path.len();
            path::push_name(&mut self.path, &name.to_text_lossy());
            if let Some(spans) = self.spans.remove(&(shared.place(), true)) {
                self.spanned(&spans, &name.to_text_lossy(), &was.to_text_lossy());
            } else if !name.is(&was.to_text_lossy()) && name.raw() != was.raw() {
                self.differs();
                self.path.truncate(length);
                return;
            }
            self.value(shared, original);
            self.path.truncate(length);
        }
    }

    fn value(&mut self, shared: Node<'n>, original: Node<'_>) {
        if self.spans.contains_key(&(shared.place(), false)) {
            let stood = original.as_str();
            let stood = stood.unwrap_or(std::borrow::Cow::Borrowed(original.raw().get()));
            return self.text(shared, &stood);
        }
        if matches!(
            self.path.as_str(),
            "timestamp" | "session.startedAt" | "session.endedAt" | "session.capturedAt"
        ) {
            return self.time(shared, original);
        }
        if self.path == "meta.fields.arrived_at" && shared.raw() != original.raw() {
            return self.time(shared, original);
        }
        if shared.raw() != original.raw() && self.is_changed(shared, original) {
            return;
        }
        match (shared.kind(), original.kind()) {
            (Kind::Object, Kind::Object) => {
                // The name of a repository follows from its address.
                let is_repo =
                    self.path == "session.environment.repo" && shared.get("remote").is_some();
                if self.path == "tool" {
                    return self.tool(shared, original);
                }
                self.fields(shared, original, &|name| is_repo && name == "name");
            }
            (Kind::List, Kind::List) => {
                let (mut one, mut other) = (shared.items(), original.items());
                for index in 0.. {
                    let (shared, original) = match (one.next(), other.next()) {
                        (Some(one), Some(other)) => (one, other),
                        (None, None) => return,
                        _ => return self.differs(),
                    };
                    let length = self.path.len();
                    path::push_index(&mut self.path, index);
                    self.value(shared, original);
                    self.path.truncate(length);
                }
            }
            (Kind::String, Kind::String) if shared.as_str() == original.as_str() => {}
            _ if shared.raw() == original.raw() => {}
            _ => self.differs(),
        }
    }

    /// A call or its result. The text of what was given back follows from the value beside it, or from the error.
    fn tool(&mut self, shared: Node<'n>, original: Node<'_>) {
        let follows = |tool: Node<'_>| {
            let (output, error) = (tool.text("output"), tool.text("error"));
            tool.get("outputValue").is_some() || output.is_some() && output == error
        };
        // Output and error may have become the same text, and then the writer says the output twice.
        let repeats = shared.get("output").is_some_and(|output| {
            let value = shared.get("outputValue").and_then(|value| value.as_str());
            value.is_some()
                && value == output.as_str()
                && self.spans.contains_key(&(output.place(), false))
        });
        let value = shared.get("outputValue").filter(|_| !repeats);
        match (value, original.get("outputValue")) {
            (None, None) if repeats => {
                self.fields(shared, original, &|name| name == "outputValue");
            }
            (None, Some(value)) => {
                // All of it was taken out, so that a text stands there.
                self.fields(shared, original, &|name| {
                    matches!(name, "output" | "outputValue")
                });
                if let Some(output) = shared.get("output") {
                    let length = self.path.len();
                    path::push_name(&mut self.path, "output");
                    self.value(output, value);
                    self.path.truncate(length);
                }
            }
            _ => {
                let is_said_twice = follows(shared) && follows(original);
                self.fields(shared, original, &|name| is_said_twice && name == "output");
            }
        }
    }

    /// Whether a value is what the other becomes where ids are replaced and numbers rounded.
    fn is_changed(&mut self, shared: Node<'_>, original: Node<'_>) -> bool {
        let of_blob =
            self.path.starts_with("attachments[") || self.path.starts_with("meta.fields.");
        let is_hash = of_blob && self.path.ends_with(".sha256");
        if is_hash || is_id(&self.path) {
            let (Some(ids), Some(stands), Some(id)) =
                (&mut self.changes.ids, shared.as_str(), original.as_str())
            else {
                return false;
            };
            return ids.stands_for(&stands, &id, is_hash);
        }
        if !self.changes.rounds {
            return false;
        }
        let was = original.raw().get();
        let rounded = match self.path.as_str() {
            "costUsd" => Money::parse(was).map(|sum| round_money(sum).to_string()),
            "durationMs"
            | "tool.durationMs"
            | "source.offset"
            | "meta.fields.first_token_ms"
            | "meta.fields.bytes"
            | "meta.fields.request.bytes"
            | "meta.fields.response.bytes" => original.as_u64().map(|n| round(n).to_string()),
            path if path.starts_with("usage.") || path.starts_with("attachments[") => {
                original.as_u64().map(|n| round(n).to_string())
            }
            _ => None,
        };
        rounded.is_some_and(|rounded| rounded == shared.raw().get())
    }

    fn time(&mut self, shared: Node<'_>, original: Node<'_>) {
        let read = |node: Node<'_>| node.as_str().and_then(|at| at.parse::<Timestamp>().ok());
        let (Some(now), Some(was)) = (read(shared), read(original)) else {
            if shared.raw() != original.raw() {
                self.differs();
            }
            return;
        };
        // Times that were moved are in whole seconds; those of older copies have what is behind them.
        let is_whole = now.subsec_nanosecond() == 0;
        let by = match self.changes.times {
            Times::Moved(_) if is_whole => now.as_nanosecond() - whole_seconds(was),
            _ => now.as_nanosecond() - was.as_nanosecond(),
        };
        // At the ends of what can be said, a time stays there.
        let is_at_end = now == Timestamp::MIN || now == Timestamp::MAX;
        match self.changes.times {
            Times::Kept if by != 0 => self.differs(),
            Times::Moved(None) if !is_at_end => self.changes.times = Times::Moved(Some(by)),
            Times::Moved(Some(known)) if known != by && !is_at_end => self.add(What::Time),
            Times::Kept | Times::Moved(_) => {}
        }
    }

    fn text(&mut self, shared: Node<'_>, stood: &str) {
        let spans = self
            .spans
            .remove(&(shared.place(), false))
            .unwrap_or_default();
        match shared.as_str() {
            Some(text) => self.spanned(&spans, &text, stood),
            None => self.differs(),
        }
    }

    /// Compares a text that has something taken out of it with what it was.
    fn spanned(&mut self, spans: &[(u64, Span<'_>)], text: &str, stood: &str) {
        let mut characters = Characters::default();
        let mut kept = Vec::with_capacity(spans.len() + 1);
        let mut from = 0;
        for (_, span) in spans {
            let places = (
                characters.place(text, span.start),
                characters.place(text, span.end),
            );
            let (Some(start), Some(end)) = places else {
                return self.differs();
            };
            if start < from || end < start {
                return self.differs();
            }
            kept.push(&text[from..start]);
            from = end;
        }
        let last = &text[from..];
        let Some(stood) = stood
            .strip_prefix(kept[0])
            .and_then(|stood| stood.strip_suffix(last))
        else {
            return self.differs();
        };
        let mut rest = stood;
        for (index, (n, span)) in spans.iter().enumerate() {
            let next = kept.get(index + 1).copied();
            let length = match self.salts {
                Some(salts) => opened(salts, self.seq, *n, span, rest, next),
                None => filled(rest, next),
            };
            let Some(length) = length else {
                return match self.salts {
                    Some(_) => self.add(What::Opened),
                    None => self.differs(),
                };
            };
            self.report.opened += u64::from(self.salts.is_some());
            rest = &rest[length + next.map_or(0, str::len)..];
        }
    }
}

/// Whether a field is an id.
fn is_id(path: &str) -> bool {
    const IDS: [&str; 15] = [
        "id",
        "nativeId",
        "parentId",
        "agentId",
        "modelCall",
        "child",
        "runId",
        "parentRunId",
        "tool.callId",
        "meta.childRunId",
        "source.sessionId",
        "session.runId",
        "session.parentRunId",
        "session.parentCall",
        "session.forkedFrom",
    ];
    IDS.contains(&path)
        || path.starts_with("session.children[")
        || path.starts_with("blocks[") && path.ends_with("].callId")
}

/// How long something is that is followed by what is kept next, or by nothing.
fn filled(rest: &str, next: Option<&str>) -> Option<usize> {
    let first = rest.chars().next()?.len_utf8();
    match next {
        Some(next) => rest[first..].find(next).map(|at| first + at),
        None => Some(rest.len()),
    }
}

/// How long what was committed to is. It begins where `rest` does, and `next` follows.
fn opened(
    salts: &Key,
    seq: u64,
    n: u64,
    span: &Span<'_>,
    rest: &str,
    next: Option<&str>,
) -> Option<usize> {
    let mut hash = begun(&salt(salts, seq, &span.field, n));
    let is_it = |hash: sha2::Sha256| hex::encode(&hash.finalize()) == span.commitment;
    let Some(next) = next else {
        hash.update(rest);
        return is_it(hash).then_some(rest.len());
    };
    let mut hashed = 0;
    for (at, character) in rest.char_indices() {
        let end = at + character.len_utf8();
        if rest[end..].starts_with(next) {
            hash.update(&rest[hashed..end]);
            hashed = end;
            if is_it(hash.clone()) {
                return Some(end);
            }
        }
    }
    None
}
