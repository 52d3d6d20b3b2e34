//! What a record has to do with those before it.
//!
//! Ids repeat within a file: the same request twice has the same one. A parent is the nearest record before
//! that has the id.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::hash::{BuildHasherDefault, Hasher, RandomState};

use super::super::reader::{Item, Passed, parse_line, trim};
use super::super::record::At;
use super::super::{ContentId, Kind};
use super::batch::Batch;
use super::diagnose::Diagnosis;
use super::examine::{Detail, Named, Seen, Sight, Sighted};
use super::found::Found;
use super::time::Moment;
use super::{Report, Rule, VerifyOptions};
use quipu_exchange::lines::LineInfo;

/// Tool uses or streams that are remembered at once. Few in tests, so that they get there.
const MAX_WAITING: usize = if cfg!(test) { 1000 } else { 1_000_000 };

/// Keys are hashes already, with a secret of this process.
#[derive(Debug, Default)]
struct AsItIs(u64);

impl Hasher for AsItIs {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, _: &[u8]) {
        unreachable!("keys are 64 bits");
    }

    fn write_u64(&mut self, key: u64) {
        self.0 = key;
    }
}

type Hashed = BuildHasherDefault<AsItIs>;

/// What is remembered of a record.
#[derive(Debug, Clone, Copy)]
struct Past {
    /// The end of the hash of the call it makes.
    call: u32,
    kind: Option<Kind>,
}

/// Chunks of a request whose response has not come.
#[derive(Debug, Clone, Copy)]
struct Stream {
    next: u64,
    nanos: u64,
    /// The last chunk.
    at: At,
}

#[derive(Debug)]
pub(super) struct Sequence {
    options: VerifyOptions,
    hasher: RandomState,
    report: Report,
    found: Found,
    diagnosis: Diagnosis,
    past: HashMap<u64, Past, Hashed>,
    uses: HashSet<u64, Hashed>,
    streams: HashMap<u64, Stream, Hashed>,
    /// Findings about a parent that is not there, to be said more of when it comes later.
    sought: HashMap<u64, Vec<usize>, Hashed>,
    previous: Option<u64>,
    /// The last record that is no summary.
    last: Option<u64>,
    ts: Option<Moment>,
    /// Lines that are no records: after the last record, and in all before it.
    bad: u64,
    unread: u64,
    /// Parents that may be on lines that could not be read, no more than there are lines.
    hidden: HashSet<u64, Hashed>,
    capped: bool,
}

impl Sequence {
    pub(super) fn new(options: &VerifyOptions) -> Self {
        Self {
            options: *options,
            hasher: RandomState::new(),
            report: Report {
                strict: options.strict,
                ..Report::default()
            },
            found: Found::new(options.strict),
            diagnosis: Diagnosis::default(),
            past: HashMap::default(),
            uses: HashSet::default(),
            streams: HashMap::default(),
            sought: HashMap::default(),
            previous: None,
            last: None,
            ts: None,
            bad: 0,
            unread: 0,
            hidden: HashSet::default(),
            capped: false,
        }
    }

    /// What ids are hashed with.
    pub(super) fn hasher(&self) -> RandomState {
        self.hasher.clone()
    }

    /// Takes what the next batch showed.
    pub(super) fn take(&mut self, batch: &Batch, seen: &mut Seen) {
        self.found.take(&mut seen.found);
        let Passed {
            bom,
            cr_lf,
            blank,
            unterminated,
        } = seen.passed;
        let passed = &mut self.report.passed;
        passed.bom |= bom;
        passed.cr_lf += cr_lf;
        passed.blank += blank;
        passed.unterminated = unterminated;
        let mut uses = seen.uses.as_slice();
        for sight in &seen.sights {
            let (own, rest) = uses.split_at(sight.uses);
            uses = rest;
            self.record(batch, sight, own);
        }
        self.bad += seen.bad;
    }

    fn find(&mut self, rule: Rule, sight: &Sight, field: &str, message: std::fmt::Arguments<'_>) {
        self.found.add(rule, Some(sight.at), Some(&field), message);
    }

    fn record(&mut self, batch: &Batch, sight: &Sight, uses: &[u64]) {
        let bad = std::mem::take(&mut self.bad) + sight.bad;
        self.unread += bad;
        let first = self.report.records == 0;
        if bad > 0 {
            // It may be what was meant: nothing is said about the line before.
            (self.previous, self.last) = (None, None);
        }
        self.report.records += 1;
        match sight.kind {
            Some(kind) => *self.report.kinds.entry(kind).or_default() += 1,
            None => self.report.unknown_kinds += 1,
        }
        if let (Some(said), Some(is)) = (sight.id, sight.true_id)
            && said.id != is
        {
            self.mismatch(batch, sight, said.id, is);
        }
        self.time(sight);
        // Behind lines that could not be read, the first may be a root or follow one of those.
        if first && (bad == 0 || matches!(sight.parent, Sighted::Null)) {
            self.root(sight);
        } else {
            self.parent(sight);
        }
        self.remember(sight, uses);
    }

    fn root(&mut self, sight: &Sight) {
        self.report.root = sight.id.map(|named| named.id);
        // Of a kind that is not known, it is not known either whether it may be a root.
        if let Some(kind) = sight.kind
            && kind != Kind::Metadata
        {
            let message = format_args!("the first record is a {kind}");
            self.find(Rule::RootKind, sight, "kind", message);
        }
        if let Sighted::Id(parent) = sight.parent {
            let parent = parent.id;
            self.find(
                Rule::RootParent,
                sight,
                "parent",
                format_args!("the first record follows {parent}"),
            );
        }
    }

    fn time(&mut self, sight: &Sight) {
        if let Some(ts) = sight.ts {
            if self.ts.is_some_and(|before| ts < before) {
                self.find(
                    Rule::TsOrder,
                    sight,
                    "ts",
                    format_args!("before the record before it"),
                );
            }
            // So that one time in the far future is not said of all that follow.
            self.ts = Some(ts);
        }
    }

    fn parent(&mut self, sight: &Sight) {
        let parent = match sight.parent {
            Sighted::Id(parent) => parent,
            Sighted::Broken => return,
            Sighted::Null => {
                let what = if sight.kind == Some(Kind::Metadata) {
                    "a second root: another trace begins here"
                } else {
                    "only the first record has no parent"
                };
                self.find(Rule::ParentNull, sight, "parent", format_args!("{what}"));
                return;
            }
        };
        match self.past.get(&parent.key).copied() {
            Some(past) => self.known_parent(sight, parent, past),
            None if sight.id.is_some_and(|own| own.key == parent.key) => {
                self.find(
                    Rule::ParentSelf,
                    sight,
                    "parent",
                    format_args!("the record follows itself"),
                );
            }
            None => self.unknown_parent(sight, parent),
        }
    }

    fn unknown_parent(&mut self, sight: &Sight, parent: Named) {
        let is_hidden = self.hidden.contains(&parent.key)
            || ((self.hidden.len() as u64) < self.unread && self.hidden.insert(parent.key));
        let (rule, why) = if is_hidden {
            (
                Rule::ParentUnread,
                "; a line before that could not be read may have it",
            )
        } else {
            (Rule::ParentUnknown, "")
        };
        let message = format_args!("no record before has the id {}{why}", parent.id);
        let field = Some(&"parent" as &dyn std::fmt::Display);
        let kept = self.found.add(rule, Some(sight.at), field, message);
        if kept.is_some() {
            let index = self.found.kept.len() - 1;
            self.sought.entry(parent.key).or_default().push(index);
        }
    }

    fn known_parent(&mut self, sight: &Sight, parent: Named, past: Past) {
        let Some(kind) = sight.kind else { return };
        let is = past.kind.map_or("record of an unknown kind", Kind::as_str);
        // What a newer kind of record may be the parent of is not known.
        let may_be = |wanted: Kind| {
            past.kind == Some(wanted) || (past.kind.is_none() && !self.options.strict)
        };
        match kind {
            Kind::ChatResponse => {
                if !may_be(Kind::ChatRequest) {
                    let message = format_args!("a response follows a chat_request, not a {is}");
                    self.find(Rule::ResponseParent, sight, "parent", message);
                }
                self.streams.remove(&parent.key);
            }
            Kind::Error => {
                // A stream that failed has no response.
                self.streams.remove(&parent.key);
            }
            Kind::ToolResult => {
                if !may_be(Kind::ToolCall) {
                    let message = format_args!("a result follows a tool_call, not a {is}");
                    self.find(Rule::ResultParent, sight, "parent", message);
                } else if let Detail::Call(call) = sight.detail
                    && past.kind.is_some()
                    && low(call) != past.call
                {
                    let message = format_args!("not the tool_call_id of the call it follows");
                    self.find(Rule::ResultCallId, sight, "payload.tool_call_id", message);
                }
            }
            Kind::Chunk => {
                if may_be(Kind::ChatRequest) {
                    self.chunk(sight, parent.key);
                } else {
                    let message = format_args!("a chunk follows a chat_request, not a {is}");
                    self.find(Rule::ChunkParent, sight, "parent", message);
                }
            }
            Kind::Metadata => {
                if self.previous.is_some_and(|previous| previous != parent.key) {
                    let message = format_args!("a session follows the record right before it");
                    self.find(Rule::MarkerParent, sight, "parent", message);
                }
            }
            Kind::ReplaySummary => {
                if self.last.is_some_and(|last| last != parent.key) {
                    let message = format_args!("a summary follows the last record that is none");
                    self.find(Rule::SummaryParent, sight, "parent", message);
                }
            }
            Kind::ChatRequest | Kind::ToolCall | Kind::HarnessEvent | Kind::BlobRef => {}
        }
    }

    fn chunk(&mut self, sight: &Sight, request: u64) {
        let Detail::Chunk { index, nanos } = sight.detail else {
            return;
        };
        let begun = self.streams.get(&request).copied();
        if begun.is_none() && self.streams.len() >= MAX_WAITING {
            self.capped = true;
            return;
        }
        let expected = begun.map_or(0, |stream| stream.next);
        if let Some(index) = index
            && index != expected
        {
            let message = format_args!("chunk {index} where {expected} should be");
            self.find(Rule::ChunkIndex, sight, "payload.chunk_index", message);
        }
        let before = begun.map_or(0, |stream| stream.nanos);
        if nanos.is_some_and(|nanos| nanos < before) {
            let message = format_args!("before the chunk before it");
            self.find(Rule::ChunkTime, sight, "payload.time_unix_nano", message);
        }
        let stream = Stream {
            next: index.unwrap_or(expected).saturating_add(1),
            nanos: nanos.unwrap_or(before),
            at: sight.at,
        };
        self.streams.insert(request, stream);
    }

    fn remember(&mut self, sight: &Sight, uses: &[u64]) {
        for &id in uses {
            if self.uses.len() < MAX_WAITING {
                self.uses.insert(id);
            } else {
                self.capped = true;
            }
        }
        let mut past = Past {
            call: 0,
            kind: sight.kind,
        };
        match (sight.kind, sight.detail) {
            (Some(Kind::ToolCall), Detail::Call(call)) => {
                past.call = low(call);
                if !self.capped && !self.uses.contains(&call) {
                    let message = format_args!("no response before has a tool_use with this id");
                    self.find(Rule::ToolCallId, sight, "payload.tool_call_id", message);
                }
            }
            (Some(Kind::BlobRef), Detail::Blob(bytes)) => {
                self.report.blobs += 1;
                self.report.blob_bytes += u128::from(bytes);
            }
            _ => {}
        }
        let key = sight.id.map(|id| id.key);
        self.previous = key;
        if sight.kind != Some(Kind::ReplaySummary) {
            self.last = key;
        }
        let Some(key) = key else { return };
        if sight.kind == Some(Kind::ChatRequest)
            && let Some(stream) = self.streams.remove(&key)
        {
            self.unanswered(stream);
        }
        if self.past.insert(key, past).is_some() {
            self.report.repeated_ids += 1;
        } else if !self.sought.is_empty()
            && let Some(findings) = self.sought.remove(&key)
        {
            for index in findings {
                let later = format!("; it comes later, on line {}", sight.at.line);
                self.found.kept[index].message.push_str(&later);
            }
        }
    }

    fn unanswered(&mut self, stream: Stream) {
        let message = format_args!(
            "the last of {} chunks, and no response follows",
            stream.next
        );
        self.found
            .add(Rule::ChunkResponse, Some(stream.at), None, message);
    }

    #[cold]
    fn mismatch(&mut self, batch: &Batch, sight: &Sight, said: ContentId, is: ContentId) {
        let line = batch.line_at(sight.at.offset);
        let info = LineInfo {
            number: sight.at.line,
            offset: sight.at.offset,
            len: line.len() as u64,
            terminated: true,
            too_long: false,
        };
        let mut tape = quipu_model::json::Tape::new();
        let bytes = trim(line, &info, &mut Passed::default()).unwrap_or_default();
        let dialect = match parse_line(bytes, &info, &self.options.limits, &mut tape) {
            Item::Record(record) => self.diagnosis.explain(&record, said),
            Item::Bad { .. } => None,
        };
        if let Some(dialect) = &dialect {
            *self.report.dialects.entry(dialect.clone()).or_default() += 1;
        }
        let message = match &dialect {
            Some(dialect) => {
                format!("{said}, but the payload's is {is}; this one is made by: {dialect}")
            }
            None => format!("{said}, but the payload's is {is}"),
        };
        let field = Some(&"id" as &dyn std::fmt::Display);
        let kept = self.found.add(
            Rule::IdMismatch,
            Some(sight.at),
            field,
            format_args!("{message}"),
        );
        if let Some(finding) = kept {
            finding.dialect = dialect;
        }
    }

    /// What was found in all.
    pub(super) fn finish(mut self, bytes: u64) -> Report {
        let mut open: Vec<Stream> = self.streams.drain().map(|(_, stream)| stream).collect();
        open.sort_by_key(|stream| stream.at.line);
        for stream in open {
            self.unanswered(stream);
        }
        let torn = self.found.count(Rule::TornTail) > 0;
        let mut whole = |rule, message: String| {
            self.found.add(rule, None, None, format_args!("{message}"));
        };
        if self.report.records == 0 {
            whole(Rule::EmptyTrace, "no record is in it".to_owned());
        }
        let passed = self.report.passed;
        if passed.bom {
            whole(
                Rule::ByteOrderMark,
                "the file begins with a byte order mark".to_owned(),
            );
        }
        if passed.cr_lf > 0 {
            whole(
                Rule::CrLf,
                format!("lines that end in CR LF: {}", passed.cr_lf),
            );
        }
        if passed.blank > 0 {
            whole(Rule::BlankLine, format!("blank lines: {}", passed.blank));
        }
        // A line that was cut off has no end either; that was said.
        if passed.unterminated && !torn {
            whole(Rule::Unterminated, "the last line has no end".to_owned());
        }
        if self.capped {
            whole(
                Rule::PairingCapped,
                format!("more than {MAX_WAITING} tool uses or streams"),
            );
        }
        if self.diagnosis.capped {
            whole(
                Rule::DiagnosisCapped,
                "not every id that is wrong was explained".to_owned(),
            );
        }
        let mut report = self.report;
        report.bytes = bytes;
        report.sessions = report.kinds.get(&Kind::Metadata).copied().unwrap_or(0);
        report.counts = self.found.counts().collect::<BTreeMap<_, _>>();
        report.findings = self.found.kept;
        // What is about the whole file comes last.
        report
            .findings
            .sort_by_key(|finding| finding.at.map_or(u64::MAX, |at| at.line));
        report
    }
}

/// What of a hash is kept of every call.
fn low(hash: u64) -> u32 {
    u32::try_from(hash & u64::from(u32::MAX)).unwrap_or_default()
}
