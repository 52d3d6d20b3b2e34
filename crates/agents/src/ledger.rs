//! What has been counted, linked and seen so far in one log.
//!
//! The ledger is where every adapter's rules meet: a sequence number for each event, one usage for each
//! call to a model, a name for each tool result, and an account of each record. It is kept with a
//! checkpoint, so that reading goes on where it stopped as if it had never stopped.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap, HashSet};

use quipu_model::{Status, Timestamp, Usage};
use serde::{Deserialize, Serialize};

use crate::calls::Calls;
use crate::session::Tokens;
use crate::{Drift, Entry, What, hash};

/// How many calls wait for their results at most, and how much of their names is kept.
const OPEN_CALLS: usize = 16 * 1024;
const LONGEST_NAME: usize = 200;

/// A longer time between two events is a pause: nobody was at work.
const PAUSE_MS: i64 = 5 * 60 * 1000;

/// A shorter id than this is likely to be used by other logs as well, for something else.
const STRONG: usize = 16;

/// The account of one log.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Ledger {
    /// The last sequence number given.
    pub seq: u64,
    /// Records read: lines, or the items of a document.
    pub records: u64,
    /// Records that became at least one event of the conversation.
    pub mapped: u64,
    /// Records that became notes only.
    pub noted: u64,
    /// Records that became nothing, by the reason for it.
    pub dropped: BTreeMap<Dropped, u64>,
    /// Irregularities that were mended on the way.
    pub mended: BTreeMap<Mended, u64>,
    /// Blank lines.
    pub blank: u64,
    /// Results whose call is not there.
    pub orphans: u64,
    /// What the adapter does not know.
    pub drift: Drift,
    /// The identities of records, in order, by which copies in other logs are known.
    pub units: Vec<u64>,
    /// The one that what is read now belongs to, if other logs could know it.
    unit: Option<u64>,
    /// Identities that only mean something within this log.
    weak: HashSet<u64>,
    /// What records were seen to say, where a record may come again and say more.
    said: HashSet<u64>,
    #[serde(skip)]
    seen: HashSet<u64>,
    counted: Tokens,
    open: HashMap<u64, OpenCall>,
    calls: Calls,
    last_at: Option<i128>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
struct OpenCall {
    name: String,
    at: Option<i128>,
    seq: u64,
    /// What it is known by among calls that ask for the same.
    asked: Option<u64>,
}

/// Why a record became nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Dropped {
    /// The same record was read before.
    DuplicateRecord,
    /// Another channel of the same log says the same.
    RepeatedChannel,
    /// Token counts that were counted before.
    RepeatedUsage,
    /// A part of a message that also comes whole.
    StreamDelta,
    /// A sign of life without content.
    KeepAlive,
    /// It has no content.
    Empty,
    /// It is longer than is read. The bytes are in the archive.
    TooLong,
    /// The end of the log is cut off in the middle of it.
    TornTail,
    /// Zeros, as a crash leaves them.
    Padding,
}

impl Dropped {
    /// The word for it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::DuplicateRecord => "duplicate_record",
            Self::RepeatedChannel => "repeated_channel",
            Self::RepeatedUsage => "repeated_usage",
            Self::StreamDelta => "stream_delta",
            Self::KeepAlive => "keep_alive",
            Self::Empty => "empty",
            Self::TooLong => "too_long",
            Self::TornTail => "torn_tail",
            Self::Padding => "padding",
        }
    }
}

/// What was mended in order to read a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Mended {
    /// Bytes that are no UTF-8 became U+FFFD.
    InvalidUtf8,
    /// Raw zeros became `\u0000`.
    Nul,
    /// Several records stood on one line.
    Glued,
    /// A time was not written as the standard says.
    Timestamp,
}

impl Mended {
    /// The word for it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::InvalidUtf8 => "invalid_utf8",
            Self::Nul => "nul",
            Self::Glued => "glued",
            Self::Timestamp => "timestamp",
        }
    }
}

impl Ledger {
    /// Takes in the identity of a record. `false` when it was there before.
    pub fn unit(&mut self, id: &str) -> bool {
        if self.seen.len() < self.units.len() {
            self.seen.extend(self.units.iter().copied());
        }
        let unit = hash(id.as_bytes());
        if id.len() < STRONG {
            self.unit = None;
            return self.weak.insert(unit);
        }
        let new = self.seen.insert(unit);
        if new {
            self.units.push(unit);
            self.unit = Some(unit);
        }
        new
    }

    /// Whether a record with this identity was read.
    pub fn knows_unit(&mut self, id: &str) -> bool {
        if self.seen.len() < self.units.len() {
            self.seen.extend(self.units.iter().copied());
        }
        let unit = hash(id.as_bytes());
        self.seen.contains(&unit) || self.weak.contains(&unit)
    }

    /// What is read now belongs to this identity, whether it was there before or not.
    pub fn belongs_to(&mut self, id: &str) {
        if !self.unit(id) && id.len() >= STRONG {
            self.unit = Some(hash(id.as_bytes()));
        }
    }

    /// Takes in an identity by which other logs may know part of this one, beside that of the record at hand.
    pub fn also(&mut self, id: &str) {
        let own = self.unit;
        self.unit(id);
        self.unit = own;
    }

    /// Takes in a part of what the record with this identity says. `false` when a record with this identity said
    /// the same before.
    pub fn says(&mut self, id: &str, part: &[u8]) -> bool {
        let mut both = [0; 16];
        both[..8].copy_from_slice(&hash(id.as_bytes()).to_le_bytes());
        both[8..].copy_from_slice(&hash(part).to_le_bytes());
        self.said.insert(hash(&both))
    }

    /// Whether a usage of this call would add to what was counted of it.
    pub fn would_count(&self, call: &str, usage: &Usage) -> bool {
        self.calls.would_count(call, usage)
    }

    /// Calls whose results are not there.
    pub fn open_calls(&self) -> impl Iterator<Item = u64> {
        self.open.values().map(|call| call.seq)
    }

    /// Gives an entry its number and its time, and settles what depends on what came before it.
    pub(crate) fn settle(&mut self, entry: &mut Entry<'_>) -> Timestamp {
        self.seq += 1;
        let before = self.last();
        if let Some(at) = entry.at {
            self.last_at = Some(at.as_nanosecond());
            let gap = before.map(|before| at.as_millisecond() - before.as_millisecond());
            let active = gap.filter(|gap| (0..=PAUSE_MS).contains(gap));
            entry.active_ms = active.unwrap_or(0).unsigned_abs();
        }
        entry.when = self.last();
        entry.unit = self.unit;
        self.calls.settle(entry, entry.when);
        if let Some(usage) = &entry.usage {
            let mut sum = self.counted();
            sum.add(usage);
            self.counted = sum.into();
        }
        self.pair(entry);
        entry.when.unwrap_or(Timestamp::UNIX_EPOCH)
    }

    /// The last time that the log told.
    fn last(&self) -> Option<Timestamp> {
        Timestamp::from_nanosecond(self.last_at?).ok()
    }

    /// Pairs a tool's result with its call.
    fn pair(&mut self, entry: &mut Entry<'_>) {
        let nanos = entry.at.map(Timestamp::as_nanosecond);
        let asked = self.calls.ask(entry);
        match &mut entry.what {
            What::Call { name, id, .. } if !id.is_empty() && self.open.len() < OPEN_CALLS => {
                let call = OpenCall {
                    name: name.chars().take(LONGEST_NAME).collect(),
                    at: nanos,
                    seq: self.seq,
                    asked,
                };
                self.open.insert(hash(id.as_bytes()), call);
            }
            What::Result {
                name, id, error, ..
            } => {
                let failed = error.is_some();
                let by_error = if failed { Status::Error } else { Status::Ok };
                if entry.status.is_none() && (failed || !entry.as_told) {
                    entry.status = Some(by_error);
                }
                let status = entry.status.unwrap_or(by_error);
                match self.open.remove(&hash(id.as_bytes())) {
                    None => self.orphans += 1,
                    Some(call) => {
                        if name.is_empty() {
                            *name = Cow::Owned(call.name);
                        }
                        if let Some(asked) = call.asked
                            && status != Status::Ok
                        {
                            self.calls.failed(asked);
                        }
                        if entry.duration_ms.is_none()
                            && !entry.as_told
                            && let (Some(from), Some(to)) = (call.at, nanos)
                        {
                            entry.duration_ms = u64::try_from((to - from) / 1_000_000).ok();
                        }
                    }
                }
            }
            _ => {}
        }
    }

    /// Whether a usage of this call was counted.
    pub fn knows_call(&self, call: &str) -> bool {
        self.calls.knows(call)
    }

    /// The tokens counted so far.
    pub fn counted(&self) -> Usage {
        self.counted.into()
    }

    /// Counts a record that became nothing.
    pub(crate) fn drop(&mut self, why: Dropped) {
        *self.dropped.entry(why).or_default() += 1;
    }

    /// Counts something that was mended.
    pub fn mend(&mut self, what: Mended) {
        *self.mended.entry(what).or_default() += 1;
    }
}
