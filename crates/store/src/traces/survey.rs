//! One reading of a trace: whether it is one, and what the index is to know of it.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Read};

use quipu_exchange::lines::Limits;
use quipu_formats::agentlog::record::Field;
use quipu_formats::agentlog::{Canon, ContentId, Fault, Item, Kind, Parent, Reader, Record};
use quipu_model::json::{Kind as JsonKind, Node};

use super::uses;
use crate::blobs::{BlobId, BlobRef};

/// No more different names of one sort are remembered of one trace, and none that is longer. What a hostile
/// trace can make of memory is bounded so.
const MOST_NAMES: usize = 10_000;
const LONGEST_NAME: usize = 1_024;

/// No more blobs are remembered of one trace. One that refers to more keeps all blobs from being collected.
const MOST_BLOBS: usize = 100_000;

/// What a trace is found to be.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Survey {
    /// The first record, where the first line is one.
    pub root: Option<Root>,
    /// Lines that are records.
    pub records: u64,
    /// Lines that are not.
    pub bad_lines: u64,
    /// Records whose id is not that of their payload.
    pub wrong_ids: u64,
    /// The line of the first of them.
    pub first_wrong: Option<u64>,
    /// How many there are of each kind, as the records have it.
    pub kinds: BTreeMap<String, u64>,
    /// Models that were asked or answered, and in how many records.
    pub models: BTreeMap<String, u64>,
    /// Tools that were called, and how often.
    pub tools: BTreeMap<String, u64>,
    /// The earliest time, in milliseconds since 1970.
    pub first_ts: Option<i64>,
    /// The latest.
    pub last_ts: Option<i64>,
    /// The session tags of all session markers.
    pub session_tags: BTreeSet<String>,
    /// The ids that `meta.trace_id` of its records says.
    pub trace_ids: BTreeSet<String>,
    /// What it is a replay of.
    pub replays: Vec<Replay>,
    /// The blobs it may refer to, with what a `blob_ref` says of them.
    pub blobs: BTreeMap<BlobId, Option<BlobRef>>,
    /// Names that were too many, or too long, to be remembered.
    pub left_out: u64,
    /// Whether there may be more blobs than are remembered: there are too many, or a line is too long to be
    /// looked at.
    pub blobs_left_out: bool,
    /// Calls that were made, while reading.
    calls: BTreeMap<String, u64>,
}

/// The first record of a trace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Root {
    /// The id that it says, where that is an id.
    pub said: Option<ContentId>,
    /// The id that its payload has, where it has one.
    pub is: Option<ContentId>,
    /// Whether it is what the first record has to be: metadata that follows nothing.
    pub is_root: bool,
    /// Its time, in milliseconds since 1970.
    pub ts: Option<i64>,
    /// The tag of its session.
    pub session_tag: Option<String>,
    /// Its tags.
    pub tags: BTreeMap<String, String>,
}

/// That a trace is a replay of another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Replay {
    /// The trace that was replayed, as it is named there.
    pub baseline: String,
    /// The record that sums it up, where there is one.
    pub outcome: Option<ContentId>,
    /// When that was written.
    pub at: Option<i64>,
}

impl Survey {
    /// Reads a trace to its end.
    ///
    /// # Errors
    ///
    /// When the source fails, or is larger than allowed.
    pub fn read(source: impl Read, limits: Limits) -> io::Result<Self> {
        let mut survey = Self::default();
        let mut canon = Canon::new();
        let mut reader = Reader::with_limits(source, limits);
        let mut first = true;
        while let Some(item) = reader.next()? {
            match item {
                Item::Record(record) => survey.record(&record, first, &mut canon),
                Item::Bad { fault, bytes, .. } => survey.bad(&fault, bytes),
            }
            first = false;
        }
        // A call is there twice: where the model asks for it, and where it is made. Either may be missing.
        for (name, calls) in std::mem::take(&mut survey.calls) {
            let asked = survey.tools.entry(name).or_default();
            *asked = calls.max(*asked);
        }
        Ok(survey)
    }

    /// What is no record may refer to blobs all the same: it was torn, or nests deeper than is read.
    fn bad(&mut self, fault: &Fault, bytes: &[u8]) {
        self.bad_lines += 1;
        self.blobs_left_out |= matches!(fault, Fault::TooLong { .. });
        uses::find_in_line(bytes, &mut |blob| self.blob(blob));
    }

    fn blob(&mut self, blob: BlobId) {
        if self.blobs.len() < MOST_BLOBS {
            self.blobs.entry(blob).or_default();
        } else {
            self.blobs_left_out |= !self.blobs.contains_key(&blob);
        }
    }

    fn record(&mut self, record: &Record<'_>, first: bool, canon: &mut Canon) {
        self.records += 1;
        uses::find(record, &mut |blob| self.blob(blob));
        let said = record.id();
        let is = record.content_id_by(canon).ok();
        if said.is_none() || said != is {
            self.wrong_ids += 1;
            self.first_wrong.get_or_insert(record.at.line);
        }
        let ts = record.ts().map(quipu_model::Timestamp::as_millisecond);
        if let Some(ts) = ts {
            self.first_ts = Some(self.first_ts.map_or(ts, |before| before.min(ts)));
            self.last_ts = Some(self.last_ts.map_or(ts, |before| before.max(ts)));
        }
        let kind = record.get(Field::Kind).and_then(|kind| kind.as_str());
        self.left_out += count(&mut self.kinds, kind.as_deref().unwrap_or(""));
        if let Some(meta) = record.get(Field::Meta) {
            for (key, set) in [
                ("session_tag", &mut self.session_tags),
                ("trace_id", &mut self.trace_ids),
            ] {
                if let Some(value) = meta.text(key) {
                    self.left_out += remember(set, &value);
                }
            }
        }
        if first {
            self.root = Some(Root::of(record, said, is, ts, &mut self.left_out));
        }
        if let Some(payload) = record.payload() {
            self.payload(record, payload, said, ts);
        }
    }

    fn payload(
        &mut self,
        record: &Record<'_>,
        payload: Node<'_>,
        id: Option<ContentId>,
        ts: Option<i64>,
    ) {
        match record.kind() {
            Some(Kind::ChatRequest) => self.model(payload),
            Some(Kind::ChatResponse) => {
                self.model(payload);
                let content = payload.get("content");
                let blocks = content.into_iter().flat_map(Node::items);
                for block in blocks.filter(|it| it.get("type").is_some_and(|it| it.is("tool_use")))
                {
                    if let Some(name) = block.text("name") {
                        self.left_out += count(&mut self.tools, &name);
                    }
                }
            }
            Some(Kind::ToolCall) => {
                if let Some(name) = payload.text("tool_name") {
                    self.left_out += count(&mut self.calls, &name);
                }
            }
            Some(Kind::Metadata) => {
                let meta = record.get(Field::Meta);
                let said = payload.text("baseline_of");
                let said = said.or_else(|| meta.and_then(|meta| meta.text("baseline_of")));
                self.replay(said.as_deref(), None, ts);
            }
            Some(Kind::ReplaySummary) => {
                self.replay(payload.text("baseline_trace_id").as_deref(), id, ts);
            }
            Some(Kind::BlobRef) => {
                if let Some(reference) = BlobRef::read(payload)
                    && let Some(known) = self.blobs.get_mut(&reference.blob_id)
                {
                    // The index has no use for it, and it is large.
                    let embedding = None;
                    *known = Some(BlobRef {
                        embedding,
                        ..reference
                    });
                }
            }
            _ => {}
        }
    }

    fn model(&mut self, payload: Node<'_>) {
        if let Some(model) = payload.text("model") {
            self.left_out += count(&mut self.models, &model);
        }
    }

    /// A summary says more than a root, and takes its place.
    fn replay(&mut self, baseline: Option<&str>, outcome: Option<ContentId>, at: Option<i64>) {
        let Some(baseline) = baseline else {
            return;
        };
        if baseline.len() > LONGEST_NAME || self.replays.len() >= MOST_NAMES {
            self.left_out += 1;
            return;
        }
        let same = |it: &&mut Replay| it.baseline == baseline && it.outcome.is_none();
        match self.replays.iter_mut().find(same) {
            Some(known) => {
                known.outcome = outcome;
                known.at = at;
            }
            None => self.replays.push(Replay {
                baseline: baseline.to_owned(),
                outcome,
                at,
            }),
        }
    }
}

impl Root {
    fn of(
        record: &Record<'_>,
        said: Option<ContentId>,
        is: Option<ContentId>,
        ts: Option<i64>,
        left_out: &mut u64,
    ) -> Self {
        let mut tags = BTreeMap::new();
        let node = record.payload().and_then(|payload| payload.get("tags"));
        for (key, value) in node.into_iter().flat_map(Node::fields) {
            // A tag is a string; what is not is shown as it stands.
            let value = value.as_str().unwrap_or(value.raw().get().into());
            let key = key.to_text_lossy();
            if tags.len() >= MOST_NAMES || key.len().max(value.len()) > LONGEST_NAME {
                *left_out += 1;
            } else {
                tags.insert(key.into_owned(), value.into_owned());
            }
        }
        let meta = record.get(Field::Meta);
        let session_tag = meta.and_then(|meta| meta.text("session_tag"));
        let payload = record.payload();
        Self {
            said,
            is,
            is_root: record.kind() == Some(Kind::Metadata)
                && matches!(record.parent(), Parent::Null | Parent::Missing)
                && payload.is_some_and(|payload| payload.kind() == JsonKind::Object),
            ts,
            session_tag: session_tag
                .filter(|tag| tag.len() <= LONGEST_NAME)
                .map(Into::into),
            tags,
        }
    }
}

/// Counts a name. Gives 1 when it was left out.
fn count(names: &mut BTreeMap<String, u64>, name: &str) -> u64 {
    if let Some(n) = names.get_mut(name) {
        *n += 1;
        return 0;
    }
    if names.len() >= MOST_NAMES || name.len() > LONGEST_NAME {
        return 1;
    }
    names.insert(name.to_owned(), 1);
    0
}

/// Remembers a name. Gives 1 when it was left out.
fn remember(names: &mut BTreeSet<String>, name: &str) -> u64 {
    if names.contains(name) {
        return 0;
    }
    if names.len() >= MOST_NAMES || name.len() > LONGEST_NAME {
        return 1;
    }
    names.insert(name.to_owned());
    0
}
