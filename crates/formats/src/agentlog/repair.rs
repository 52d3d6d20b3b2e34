//! Makes the ids and parents of a trace right, and changes nothing else.
//!
//! Ids are made again from payloads; whatever names a record by its old id follows, the nearest record before
//! it that had the id. What names a record by its new id already stays. Parents that name no record before
//! them, or one of the wrong kind, are hung where the specification wants them. New ids and parents are put into
//! the text of a line: the order of keys, spaces, unknown fields and the ends of lines stay as they are. Times
//! are never changed.
//!
//! One pass over the file. Of a record that has passed, its old and its new id are kept.

use std::collections::{BTreeMap, HashMap};
use std::hash::{BuildHasher as _, RandomState};
use std::io::{self, Read, Write};

use quipu_model::json::{Node, Tape};

use quipu_exchange::lines::{Limits, LineInfo, Lines};

use super::reader::{Fault, Item, Passed, parse_line, trim};
use super::record::{Field, Record};
use super::{Canon, ContentId, Kind, LIMITS};

/// Changes kept per sort; the rest are counted.
const KEPT: u64 = 100;

/// Calls that are remembered, so that results find them. More are hung under the record before.
const MAX_CALLS: usize = 1_000_000;

/// Fields of payloads that name records by their ids.
const REFERENCES: [&str; 3] = ["baseline_of", "baseline_trace_id", "outcome_record_id"];

/// What to mend.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RepairOptions {
    /// What is read at most.
    pub limits: Limits,
    /// Make every id again from its payload.
    pub rehash: bool,
    /// Hang records anew whose parent is missing, unknown, not before them, or of the wrong kind.
    pub relink: bool,
    /// Leave out a last line that was cut off.
    pub drop_torn: bool,
}

impl RepairOptions {
    /// All that can be mended.
    pub const ALL: Self = Self {
        limits: LIMITS,
        rehash: true,
        relink: true,
        drop_torn: true,
    };
}

/// Sorts of changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Sort {
    /// An id was made again.
    Rehashed,
    /// A parent has a new id.
    Followed,
    /// A field of a payload names a record that has a new id.
    Referred,
    /// A record has another parent.
    Relinked,
    /// A line that was cut off was left out.
    Dropped,
}

impl Sort {
    /// The sort's stable name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Rehashed => "rehashed",
            Self::Followed => "followed",
            Self::Referred => "referred",
            Self::Relinked => "relinked",
            Self::Dropped => "dropped-torn",
        }
    }
}

/// One change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// The line.
    pub line: u64,
    /// What sort it is.
    pub sort: Sort,
    /// The field.
    pub field: &'static str,
    /// What was there, as JSON; `None` when the field was not there.
    pub from: Option<String>,
    /// What is there now, as JSON; `None` when it was left out.
    pub to: Option<String>,
}

/// What was changed.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Report {
    /// How many records there are.
    pub records: u64,
    /// The changes that were kept.
    pub changes: Vec<Change>,
    /// How many of each sort there were, kept or not.
    pub counts: BTreeMap<Sort, u64>,
}

impl Report {
    fn add(&mut self, change: Change) {
        let count = self.counts.entry(change.sort).or_default();
        *count += 1;
        if *count <= KEPT {
            self.changes.push(change);
        }
    }
}

/// Why a trace is not mended.
#[derive(Debug, thiserror::Error)]
pub enum RepairError {
    /// A line is no record, and no repair makes it one.
    #[error("line {line}: {fault}")]
    Line {
        /// Which.
        line: u64,
        /// Why.
        fault: Fault,
    },
    /// The source is larger than allowed.
    #[error("the trace is larger than {0} bytes")]
    TooLarge(u64),
    /// The source failed.
    #[error("could not read")]
    Read(#[source] io::Error),
    /// The destination failed.
    #[error("could not write")]
    Write(#[source] io::Error),
}

/// Writes a mended copy of a trace.
///
/// # Errors
///
/// When a line is no record (a last line that was cut off only unless it is to be left out), the source fails
/// or is larger than allowed, or the destination fails. What was written by then is of no use.
pub fn repair(
    source: impl Read,
    out: impl Write,
    options: &RepairOptions,
) -> Result<Report, RepairError> {
    let mut lines = Lines::new(source, options.limits);
    let mut mender = Mender::new(out, options);
    loop {
        let info = lines.advance().map_err(|error| match error.kind() {
            io::ErrorKind::FileTooLarge => RepairError::TooLarge(options.limits.max_total_bytes),
            _ => RepairError::Read(error),
        })?;
        let Some(info) = info else {
            mender.out.flush().map_err(RepairError::Write)?;
            return Ok(mender.report);
        };
        mender.line(lines.current(), &info)?;
    }
}

/// A record that others can be hung under.
#[derive(Debug, Clone, Copy)]
struct ParentRecord {
    /// Its id as it is in the new file, where it is one.
    id: ContentId,
    kind: Option<Kind>,
}

/// A text that takes the place of another.
struct Edit {
    /// Where in the line; an empty range puts something in.
    from: usize,
    to: usize,
    text: String,
}

struct Mender<'o, W> {
    out: W,
    options: &'o RepairOptions,
    report: Report,
    hasher: RandomState,
    canon: Canon,
    tape: Tape,
    /// Records by the hash of their old id, as a text.
    past: HashMap<u64, ParentRecord>,
    /// Records by the hash of their new id, where that is another.
    made: HashMap<u64, ParentRecord>,
    /// Calls by the hash of their `tool_call_id`.
    calls: HashMap<u64, ContentId>,
    previous: Option<ContentId>,
    /// The last record that is no summary.
    last: Option<ContentId>,
    request: Option<ContentId>,
}

impl<'o, W: Write> Mender<'o, W> {
    fn new(out: W, options: &'o RepairOptions) -> Self {
        Self {
            out,
            options,
            report: Report::default(),
            hasher: RandomState::new(),
            canon: Canon::new(),
            tape: Tape::new(),
            past: HashMap::new(),
            made: HashMap::new(),
            calls: HashMap::new(),
            previous: None,
            last: None,
            request: None,
        }
    }

    fn line(&mut self, line: &[u8], info: &LineInfo) -> Result<(), RepairError> {
        let end: &[u8] = if info.terminated { b"\n" } else { b"" };
        let Some(bytes) = trim(line, info, &mut Passed::default()) else {
            return self.write(&[line, end]);
        };
        let begin = bytes.as_ptr() as usize - line.as_ptr() as usize;
        let (before, after) = (&line[..begin], &line[begin + bytes.len()..]);
        let mut tape = std::mem::take(&mut self.tape);
        let edits = match parse_line(bytes, info, &self.options.limits, &mut tape) {
            Item::Record(record) => self.record(&record),
            Item::Bad {
                fault: Fault::Torn, ..
            } if self.options.drop_torn => {
                self.dropped(info);
                return Ok(());
            }
            Item::Bad { at, fault, .. } => {
                return Err(RepairError::Line {
                    line: at.line,
                    fault,
                });
            }
        };
        self.tape = tape;
        self.tape.shrink();
        if edits.is_empty() {
            return self.write(&[line, end]);
        }
        let text = str::from_utf8(bytes).expect("it was read as a record");
        let text = splice(text, 0, edits);
        self.write(&[before, text.as_bytes(), after, end])
    }

    fn write(&mut self, parts: &[&[u8]]) -> Result<(), RepairError> {
        let mut parts = parts.iter();
        parts
            .try_for_each(|part| self.out.write_all(part))
            .map_err(RepairError::Write)
    }

    fn dropped(&mut self, info: &LineInfo) {
        self.report.add(Change {
            line: info.number,
            sort: Sort::Dropped,
            field: "",
            from: Some(format!("{} bytes", info.len)),
            to: None,
        });
    }

    /// What is to be changed in a record.
    fn record(&mut self, record: &Record<'_>) -> Vec<Edit> {
        self.report.records += 1;
        let mut edits = Vec::new();
        let said: Option<ContentId> = record.id();
        let id = if self.options.rehash {
            self.rehash(record, said, &mut edits).or(said)
        } else {
            said
        };
        self.parent(record, &mut edits);
        self.remember(record, id);
        edits
    }

    /// Makes the id again. `None` when the payload has none.
    fn rehash(
        &mut self,
        record: &Record<'_>,
        said: Option<ContentId>,
        edits: &mut Vec<Edit>,
    ) -> Option<ContentId> {
        let payload = record.payload()?;
        let referring = edits.len();
        self.references(record, payload, edits);
        let id = if edits.len() == referring {
            self.canon.id(payload).ok()?
        } else {
            // Other ids in the payload are another payload.
            let inner = edits.drain(referring..).collect();
            let text = splice(payload.raw().get(), payload.offset(), inner);
            let mut tape = Tape::new();
            let changed = tape.read(&text, self.options.limits.max_depth).ok()?;
            let id = self.canon.id(changed).ok()?;
            edits.push(Edit {
                from: payload.offset(),
                to: payload.offset() + payload.raw().get().len(),
                text,
            });
            id
        };
        if said != Some(id) {
            self.put(
                record,
                Field::Id,
                &format!("\"{id}\""),
                Sort::Rehashed,
                edits,
            );
        }
        Some(id)
    }

    /// Fields of the payload that name a record that has another id now.
    fn references(&mut self, record: &Record<'_>, payload: Node<'_>, edits: &mut Vec<Edit>) {
        for (key, value) in payload.fields() {
            let Some(&field) = REFERENCES.iter().find(|name| key.is(name)) else {
                continue;
            };
            let Some(text) = value.as_str() else { continue };
            let Some(place) = self.known(&text) else {
                continue;
            };
            let id = place.id.to_string();
            if id != *text {
                let to = format!("\"{id}\"");
                self.report.add(Change {
                    line: record.at.line,
                    sort: Sort::Referred,
                    field,
                    from: Some(excerpt(value.raw().get())),
                    to: Some(to.clone()),
                });
                edits.push(replace(value, to));
            }
        }
    }

    /// The record that an id names: one that had it, or else one that has it now.
    fn known(&self, id: &str) -> Option<ParentRecord> {
        let key = self.hasher.hash_one(id);
        self.past.get(&key).or_else(|| self.made.get(&key)).copied()
    }

    fn parent(&mut self, record: &Record<'_>, edits: &mut Vec<Edit>) {
        let node = record.get(Field::Parent);
        let named = node.and_then(|node| node.as_str());
        let known = named.as_ref().and_then(|text| self.known(text));
        if self.options.relink {
            if self.report.records == 1 {
                if !node.is_some_and(|node| node.is_null()) {
                    self.put(record, Field::Parent, "null", Sort::Relinked, edits);
                }
                return;
            }
            if let Some(id) = self.better(record, known) {
                let to = format!("\"{id}\"");
                if node.is_none_or(|node| node.raw().get() != to) {
                    self.put(record, Field::Parent, &to, Sort::Relinked, edits);
                }
                return;
            }
        }
        if let (Some(place), Some(text)) = (known, named) {
            let id = place.id.to_string();
            if id != *text {
                self.put(
                    record,
                    Field::Parent,
                    &format!("\"{id}\""),
                    Sort::Followed,
                    edits,
                );
            }
        }
    }

    /// Where a record is to be hung, when it does not hang where it should.
    fn better(&self, record: &Record<'_>, known: Option<ParentRecord>) -> Option<ContentId> {
        let is = known.and_then(|place| place.kind);
        let right = match record.kind() {
            Some(Kind::Metadata) => known.is_some_and(|place| Some(place.id) == self.previous),
            Some(Kind::ReplaySummary) => known.is_some_and(|place| Some(place.id) == self.last),
            Some(Kind::ChatResponse | Kind::Chunk) => is == Some(Kind::ChatRequest),
            Some(Kind::ToolResult) => is == Some(Kind::ToolCall),
            _ => known.is_some(),
        };
        if right {
            return None;
        }
        let wanted = match record.kind() {
            Some(Kind::ReplaySummary) => self.last,
            Some(Kind::ChatResponse | Kind::Chunk) => self.request,
            Some(Kind::ToolResult) => self
                .call_id(record)
                .and_then(|id| self.calls.get(&id))
                .copied(),
            _ => self.previous,
        };
        // Where there is nothing better, a parent that is there stays.
        wanted.or(if known.is_none() { self.previous } else { None })
    }

    fn call_id(&self, record: &Record<'_>) -> Option<u64> {
        let id = record.payload()?.text("tool_call_id")?;
        Some(self.hasher.hash_one(&*id))
    }

    fn remember(&mut self, record: &Record<'_>, id: Option<ContentId>) {
        let kind = record.kind();
        self.previous = id;
        if kind != Some(Kind::ReplaySummary) {
            self.last = id;
        }
        let Some(id) = id else { return };
        if kind == Some(Kind::ChatRequest) {
            self.request = Some(id);
        }
        if kind == Some(Kind::ToolCall)
            && self.calls.len() < MAX_CALLS
            && let Some(call) = self.call_id(record)
        {
            self.calls.insert(call, id);
        }
        let place = ParentRecord { id, kind };
        let new = self.hasher.hash_one(id.to_string());
        let old = record.get(Field::Id).and_then(|node| node.as_str());
        let old = old.map_or(new, |text| self.hasher.hash_one(&*text));
        self.past.insert(old, place);
        if new != old {
            self.made.insert(new, place);
        }
    }

    /// Puts a value into a field of the envelope, which may not be there.
    fn put(
        &mut self,
        record: &Record<'_>,
        field: Field,
        to: &str,
        sort: Sort,
        edits: &mut Vec<Edit>,
    ) {
        let old = record.get(field);
        self.report.add(Change {
            line: record.at.line,
            sort,
            field: field.as_str(),
            from: old.map(|node| excerpt(node.raw().get())),
            to: Some(to.to_owned()),
        });
        if let Some(node) = old {
            edits.push(replace(node, to.to_owned()));
            return;
        }
        // In front of all others, which a record that is changed has.
        let begin = record.node().offset() + 1;
        let comma = if record.node().fields().next().is_some() {
            ","
        } else {
            ""
        };
        edits.push(Edit {
            from: begin,
            to: begin,
            text: format!("\"{}\":{to}{comma}", field.as_str()),
        });
    }
}

fn excerpt(text: &str) -> String {
    text.chars().take(80).collect()
}

fn replace(node: Node<'_>, text: String) -> Edit {
    let from = node.offset();
    let to = from + node.raw().get().len();
    Edit { from, to, text }
}

/// A text with some of it changed. `begin` is where it begins in what the places of the edits count from.
fn splice(text: &str, begin: usize, mut edits: Vec<Edit>) -> String {
    edits.sort_by_key(|edit| edit.from);
    let mut new = String::with_capacity(text.len() + 128);
    let mut done = 0;
    for edit in edits {
        new.push_str(&text[done..edit.from - begin]);
        new.push_str(&edit.text);
        done = edit.to - begin;
    }
    new.push_str(&text[done..]);
    new
}

#[cfg(test)]
mod tests;
