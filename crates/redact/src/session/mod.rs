//! Redacts a session: what is said of it as a whole, and its events one by one.
//!
//! ```text
//! Learned::event(…) × n    names that the session tells along the way
//! Redactor::new(engine, profile, key, decisions, header, options, learned)
//!     event(…) × n   ──► the same events, in order, each with its receipts (Beyond::redactions)
//!     finish()       ──► Outcome: the header and the options to write the document with, privacy among them
//! ```
//!
//! What a document says of itself stands before its events, and is known behind them. So a session is gone through
//! twice: once with a sink that throws away, for the [`Outcome`], and once to write. Both give the same, because nothing
//! here is random: what looks so depends on the key.
//!
//! One event in is one event out, under the same number. Events of a stream are held back until what follows is there,
//! because a secret may be cut in two; the last come with [`Redactor::finish`], and so does the note that says what caps
//! cut off.
//!
//! **Invariant:** calls stay linked with their results, and numbers stay what they are.
//! **Invariant:** redacting what was redacted gives the same bytes.

mod clock;
mod common;
mod content;
mod digests;
mod escape;
mod files;
mod head;
mod ids;
mod json;
mod kinds;
mod learn;
mod mask;
mod names;
mod numbers;
mod old;
mod record;
mod review;
mod tickets;
mod times;
mod traces;

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::io;

use quipu_formats::normalized::{self, Beyond, NormalizedOptions, Redaction, ToolOutput};
use quipu_model::{
    Annotations, Block, Body, Chunk, Content, Event, Header, Json, Money, Note, NoteKind, Notes,
    Place, Timestamp, ToolCallId, Usage,
};
use rustc_hash::FxHashSet;

use self::clock::Clock;
pub use self::common::is_common;
pub(crate) use self::content::REPLACES;
use self::content::{Shaper, is_own};
use self::files::Files;
pub(crate) use self::ids::{stands_for as id_stands_for, stands_for_hash};
pub use self::learn::Learned;
use self::mask::{Cut, Kit, Mask};
use self::names::Names;
pub(crate) use self::numbers::{round, round_money};
use self::old::Old;
pub use self::record::masker;
use self::review::Shown;
pub use self::review::{Decisions, Excerpt, Finding, Name, NameOf, Review, ValueHash};
pub(crate) use self::times::whole_seconds;
use self::traces::Traces;
use crate::profile::{Environment, Numbers, Pseudonyms, Times};
use crate::receipt::{self, Leaves};
use crate::{Engine, Key, Placeholders, Profile};

/// Where redacted events go.
pub type Sink<'s> = dyn FnMut(Event, Beyond) -> io::Result<()> + 's;

/// Bytes of a stream that are held back at most, and how many of them a secret may go over.
const HELD: usize = 64 * 1024;
const OVER: usize = 4 * 1024;
/// The same of events.
const HELD_EVENTS: usize = 16 * 1024;
const OVER_EVENTS: usize = 4 * 1024;

/// Redacts a session.
pub struct Redactor<'a> {
    profile: &'a Profile,
    /// The same, for results of calls whose content is beyond a cap.
    bare: Profile,
    mask: Mask<'a>,
    files: Files,
    header: Header,
    options: NormalizedOptions,
    /// The log, as it is called and as it is shared. Events that were read from it do not name it again.
    log: Option<(String, String)>,
    /// What was taken out of the header.
    of_header: Vec<Redaction>,
    /// The same, for whoever looks it over.
    shown: Vec<Shown>,
    /// By how much times are moved.
    shift: Option<i64>,
    /// What the events counted before that was rounded.
    exact: (Usage, Option<Money>),
    held: Vec<Held>,
    held_bytes: usize,
    leaves: Leaves,
    counted: Header,
    matched: BTreeMap<String, u64>,
    redactions: u64,
    bytes: u64,
    cut: Cuts,
    is_cut: bool,
    /// Calls whose result is to come.
    open: FxHashSet<ToolCallId>,
    last: Option<(u64, Timestamp)>,
    buffer: Vec<u8>,
}

/// An event of a stream, and what of its blocks was found together with others.
struct Held {
    event: Event,
    beyond: Beyond,
    given: Vec<(usize, Cut)>,
    length: usize,
}

/// What became of a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outcome {
    /// What is true of the session as a whole, as it is shared.
    pub header: Header,
    /// What the document is written with; [`normalized::Privacy`] is in it.
    pub options: NormalizedOptions,
    /// How often each rule took something out, where it did. What a profile leaves out whatever it says is under names
    /// that begin with `policy-` and `environment-`.
    pub matched: Vec<(String, u64)>,
    /// How much was taken out.
    pub redactions: u64,
    /// How much was nearly taken out, where that was looked for.
    pub near: u64,
    /// What caps cut off.
    pub cut: Cuts,
}

/// What caps cut off.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Cuts {
    /// Events.
    pub events: u64,
    /// Their bytes.
    pub bytes: u64,
}

impl<'a> Redactor<'a> {
    /// Gets ready. Of the engine's rules, those are applied that the profile wants; where it has others as well, of two
    /// that overlap the other may have been taken, so that an engine with only those is better.
    pub fn new(
        engine: &'a Engine,
        profile: &'a Profile,
        key: &Key,
        decisions: &'a Decisions,
        header: &Header,
        options: &NormalizedOptions,
        learned: &Learned,
    ) -> Self {
        let transcript = transcript(header, options);
        let naming = naming(key, profile.pseudonyms, &transcript);
        let was = options.privacy.as_ref();
        let was_moved = was.and_then(|privacy| privacy.time_shift) == Some(true);
        let was_replaced = was.and_then(|privacy| privacy.ids_replaced) == Some(true);
        let is_timed = profile.times != Times::Keep && !(was_moved && was_replaced);
        let is_named = profile.replaces_ids() && !was_replaced;
        let traces = Traces {
            clock: is_timed.then(|| Clock::of(header, was_moved)),
            ids: ids::Ids(is_named.then(|| naming.clone())),
            own: if is_named {
                own_ids(header)
            } else {
                Vec::new()
            },
            digests: (profile.environment != Environment::Keep).then(|| {
                let found = (learned.digests.clone(), learned.tickets.clone());
                (found, profile.environment, naming.clone())
            }),
        };
        // The copy's own id, by which whoever has the key opens what was removed.
        let mut renamed = Header::new(header.run_id.clone());
        traces.ids.header(&mut renamed);
        let shared_as = if is_named {
            normalized::transcript_id(&renamed.run_id)
        } else {
            transcript.clone()
        };
        let mask = Mask {
            engine,
            wanted: engine
                .rules()
                .rules
                .iter()
                .map(|rule| profile.wants(rule))
                .collect(),
            secrets: profile.kinds.contains(&crate::Kind::Secret),
            key: key.clone(),
            salts: Some(receipt::salts(key, &shared_as)),
            names: Names::of(
                header,
                &decisions.names,
                learned,
                profile.environment,
                &naming,
            ),
            naming,
            traces,
            rounds: profile.numbers == Numbers::Rounded,
            decisions,
            review: None,
            shows: true,
            pending: Vec::new(),
            kit: Kit::new(Placeholders::new(key.derive("placeholders", &transcript))),
            seq: 0,
            list: Vec::new(),
            old: Old::default(),
            near: 0,
        };
        let shift = times::shift(profile.times, header, key, &transcript).filter(|_| !was_moved);
        let mut bare = profile.clone();
        (bare.tool_input, bare.tool_output) = (ToolOutput::None, ToolOutput::None);
        let mut redactor = Self {
            profile,
            bare,
            mask,
            files: Files::default(),
            header: header.clone(),
            options: options.clone(),
            log: None,
            of_header: Vec::new(),
            shown: Vec::new(),
            shift,
            exact: (Usage::default(), None),
            held: Vec::new(),
            held_bytes: 0,
            leaves: Leaves::default(),
            counted: Header::new(header.run_id.clone()),
            matched: BTreeMap::new(),
            redactions: 0,
            bytes: 0,
            cut: Cuts::default(),
            is_cut: false,
            open: FxHashSet::default(),
            last: None,
            buffer: Vec::new(),
        };
        redactor.redact_header();
        redactor.mask.shows = false;
        let path = |header: &Header| header.origin.as_ref()?.path.clone();
        redactor.log = path(header).zip(path(&redactor.header));
        redactor
    }

    /// Calls a function with everything that is taken out, and with what rules nearly find.
    #[must_use]
    pub fn with_review(mut self, mut review: Box<Review<'a>>) -> Self {
        for shown in std::mem::take(&mut self.shown) {
            review(&shown.finding());
        }
        self.mask.review = Some(review);
        self.mask.shows = true;
        self
    }

    /// What is true of the session as a whole, as far as it is known before its events.
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// Redacts an event. It is handed on, now or with one of the next.
    ///
    /// # Errors
    ///
    /// Those of the sink.
    pub fn event(&mut self, event: Event, beyond: Beyond, sink: &mut Sink<'_>) -> io::Result<()> {
        let Some(length) = streamed(&event) else {
            self.release(0, sink)?;
            return self.one(event, beyond, &[], sink);
        };
        self.held.push(Held {
            event,
            beyond,
            given: Vec::new(),
            length,
        });
        self.held_bytes += length;
        if self.held_bytes >= HELD || self.held.len() >= HELD_EVENTS {
            self.release(OVER, sink)?;
        }
        Ok(())
    }

    /// Hands on the rest, and says what became of the session.
    ///
    /// # Errors
    ///
    /// Those of the sink.
    pub fn finish(mut self, sink: &mut Sink<'_>) -> io::Result<Outcome> {
        self.release(0, sink)?;
        if self.cut.events > 0 {
            let note = self.note();
            self.encode(&note, &Beyond::default());
            self.emit(note, Beyond::default(), sink)?;
        }
        self.outcome()
    }

    /// Hands on what is held of a stream, but for the last bytes.
    fn release(&mut self, keep: usize, sink: &mut Sink<'_>) -> io::Result<()> {
        if self.held.is_empty() {
            return Ok(());
        }
        let mut held = std::mem::take(&mut self.held);
        if held.len() > 1 {
            let mut places = Vec::new();
            let mut texts = Vec::new();
            for (event, held) in held.iter().enumerate() {
                for (block, text) in chunks(&held.event).enumerate() {
                    places.push((event, block));
                    texts.push(text);
                }
            }
            let across = self.mask.across(&texts);
            for ((event, block), given) in places.into_iter().zip(across) {
                held[event]
                    .given
                    .extend(given.into_iter().map(|given| (block, given)));
            }
        }
        let (mut behind, mut kept) = (0, 0);
        for held in held.iter().rev().take(OVER_EVENTS) {
            if behind + held.length > keep || keep == 0 {
                break;
            }
            behind += held.length;
            kept += 1;
        }
        self.held_bytes = behind;
        self.held = held.split_off(held.len() - kept);
        for Held {
            event,
            beyond,
            given,
            ..
        } in held
        {
            self.one(event, beyond, &given, sink)?;
        }
        Ok(())
    }

    fn one(
        &mut self,
        mut event: Event,
        mut beyond: Beyond,
        given: &[(usize, Cut)],
        sink: &mut Sink<'_>,
    ) -> io::Result<()> {
        self.traces(&mut event, &mut beyond);
        self.last = Some((event.seq, event.timestamp));
        let is_open = match &event.body {
            Body::ToolResult(result) => self.open.contains(&result.call_id),
            _ => false,
        };
        let is_own = is_own(&event, &beyond) || is_cut_note(&event);
        self.is_cut |= self.counted.totals.events >= self.profile.max_events && !is_own;
        if self.is_cut && !is_open && !is_own {
            self.encode(&event, &beyond);
            self.leave_out();
            return Ok(());
        }
        // A result is in, whatever caps say; beyond them, without content.
        let whole = (is_open && self.profile.max_bytes != u64::MAX && !self.is_cut)
            .then(|| (event.clone(), beyond.clone()));
        self.shape(&mut event, &mut beyond, given, is_own);
        let is_beyond =
            || self.bytes.saturating_add(self.buffer.len() as u64) > self.profile.max_bytes;
        if !self.is_cut && !is_own && is_beyond() {
            self.is_cut = true;
            let Some(whole) = whole else {
                self.leave_out();
                return Ok(());
            };
            (event, beyond) = whole;
            self.shape(&mut event, &mut beyond, &[], false);
        }
        self.bytes = self.bytes.saturating_add(self.buffer.len() as u64);
        self.emit(event, beyond, sink)
    }

    /// Changes an event as the profile says, and writes it to the buffer.
    fn shape(
        &mut self,
        event: &mut Event,
        beyond: &mut Beyond,
        given: &[(usize, Cut)],
        is_own: bool,
    ) {
        self.mask.seq = event.seq;
        self.mask.pending.clear();
        self.mask.old = Old::new(std::mem::take(&mut beyond.redactions));
        let of_log = |event: &Event, log: &(String, String)| {
            let source = event.annotations.source.as_ref();
            source.is_some_and(|source| source.file == log.0)
        };
        let log = self.log.as_ref().filter(|log| of_log(event, log));
        // What the header says already is not taken out again of every event.
        let source = log.and_then(|_| event.annotations.source.take());
        if !is_own {
            let profile = if self.is_cut {
                &self.bare
            } else {
                self.profile
            };
            let mut shaper = Shaper {
                mask: &mut self.mask,
                profile,
                files: &mut self.files,
                is_exposed: false,
            };
            shaper.event(event, beyond, given);
        }
        if let (Some(mut source), Some((_, shared))) = (source, &self.log) {
            source.file.clone_from(shared);
            event.annotations.source = Some(source);
        }
        beyond.redactions = receipts(&mut self.mask);
        self.encode(event, beyond);
    }

    fn encode(&mut self, event: &Event, beyond: &Beyond) {
        self.buffer.clear();
        normalized::encode(&self.header, event, beyond, &mut self.buffer);
    }

    /// Changes what an event tells beside what it says: when it was, its ids, how much was counted.
    fn traces(&mut self, event: &mut Event, beyond: &mut Beyond) {
        self.move_time(event);
        self.mask.traces.ids.event(event, beyond);
        if !self.profile.file_contents {
            self.mask.traces.ids.attachments(event);
        }
        if self.mask.rounds {
            let (usage, cost) = &mut self.exact;
            if let Some(used) = &event.annotations.usage {
                usage.add(used);
            }
            if let Some(more) = event.annotations.cost {
                *cost = Some(cost.map_or(more, |sum| sum.saturating_add(more)));
            }
            numbers::round_event(event);
        }
    }

    /// Counts the event in the buffer as one that a cap cuts off.
    fn leave_out(&mut self) {
        self.mask.pending.clear();
        self.cut.events += 1;
        self.cut.bytes += self.buffer.len() as u64;
    }

    /// Hands on the event that is in the buffer.
    fn emit(&mut self, event: Event, beyond: Beyond, sink: &mut Sink<'_>) -> io::Result<()> {
        let index = self.counted.totals.events;
        self.leaves
            .event(&self.buffer, index)
            .map_err(io::Error::other)?;
        self.counted.observe(&event);
        for redaction in &beyond.redactions {
            self.count(&redaction.rule_id);
        }
        self.mask.show_pending();
        match &event.body {
            Body::ToolCall(call) => {
                self.open.insert(call.call_id.clone());
            }
            Body::ToolResult(result) => {
                self.open.remove(&result.call_id);
            }
            _ => {}
        }
        sink(event, beyond)
    }

    fn count(&mut self, rule: &str) {
        self.redactions += 1;
        match self.matched.get_mut(rule) {
            Some(count) => *count += 1,
            None => {
                self.matched.insert(rule.to_owned(), 1);
            }
        }
    }

    fn move_time(&mut self, event: &mut Event) {
        let Some(shift) = &mut self.shift else { return };
        if self.header.started_at.is_none()
            && self.last.is_none()
            && self.profile.times == crate::profile::Times::Relative
        {
            *shift = times::from(event.timestamp);
        }
        event.timestamp = times::moved(event.timestamp, *shift);
        if let Body::Chunk(Chunk {
            arrived_at: Some(at),
            ..
        }) = &mut event.body
        {
            *at = times::moved(*at, *shift);
        }
    }

    /// The note that says what caps cut off.
    fn note(&self) -> Event {
        let Cuts { events, bytes } = self.cut;
        let (seq, timestamp) = self.last.unwrap_or((0, Timestamp::UNIX_EPOCH));
        let mut notes = Notes::default();
        (notes.flags.synthetic, notes.flags.undated) = (true, true);
        let raw = format!(r#"{{"{CUT}":{{"events":{events},"bytes":{bytes}}}}}"#);
        Event {
            seq: seq.saturating_add(1),
            run_id: self.header.run_id.clone(),
            parent_run_id: self.header.parent_run_id.clone(),
            timestamp,
            place: Place::run(),
            body: Body::Note(Note {
                kind: NoteKind::Truncated,
                text: Some(format!(
                    "{events} events of {bytes} bytes were left out: the profile {} has room for no more. Their numbers are missing.",
                    self.profile.name
                )),
                raw: Json::parse(&raw).ok(),
            }),
            annotations: Annotations::from(notes),
        }
    }
}

/// What the note says that tells of what caps cut off.
pub(crate) const CUT: &str = "cut";

/// Whether this is the note that says what caps cut off.
fn is_cut_note(event: &Event) -> bool {
    let Body::Note(note) = &event.body else {
        return false;
    };
    event.annotations.flags.synthetic
        && note.kind == NoteKind::Truncated
        && note
            .raw
            .as_ref()
            .is_some_and(|raw| raw.get().starts_with(r#"{"cut":{"events":"#))
}

/// The receipts of what was taken out, and of what had been before.
fn receipts(mask: &mut Mask<'_>) -> Vec<Redaction> {
    let mut list = mask.old.rest();
    list.append(&mut mask.list);
    list
}

/// How long the chunks of a stream are that an event is made of; `None` when it is something else.
fn streamed(event: &Event) -> Option<usize> {
    if let Body::Chunk(chunk) = &event.body {
        return Some(chunk.text.len());
    }
    let (Body::AssistantMessage(blocks) | Body::UserMessage(blocks)) = &event.body else {
        return None;
    };
    let is_stream = |block: &Block| matches!(block.content, Content::Stream(_));
    (!blocks.is_empty() && blocks.iter().all(is_stream)).then(|| chunks(event).map(str::len).sum())
}

fn chunks(event: &Event) -> impl Iterator<Item = &str> {
    let (blocks, chunk) = match &event.body {
        Body::AssistantMessage(blocks) | Body::UserMessage(blocks) => (blocks.as_slice(), None),
        Body::Chunk(chunk) => (&[][..], Some(chunk.text.as_str())),
        _ => (&[][..], None),
    };
    let of_blocks = blocks.iter().map(|block| match &block.content {
        Content::Stream(text) => text.as_str(),
        _ => "",
    });
    of_blocks.chain(chunk)
}

/// The ids of a session that texts may name: in paths of its files, in links to it.
fn own_ids(header: &Header) -> Vec<String> {
    const SHORTEST: usize = 8;
    const MOST: usize = 64;
    let session = header
        .origin
        .as_ref()
        .and_then(|it| it.session_id.as_deref());
    let parent = header.parent_run_id.as_ref().map(AsRef::as_ref);
    let children = header.children.iter().take(MOST).map(AsRef::as_ref);
    let mut own: Vec<String> = [session, parent, header.forked_from.as_deref()]
        .into_iter()
        .flatten()
        .chain([header.run_id.as_str()])
        .chain(children)
        // A word may be an id as well, and is not to be looked for.
        .filter(|id| id.len() >= SHORTEST && id.bytes().any(|byte| byte.is_ascii_digit()))
        .map(str::to_owned)
        .collect();
    own.sort();
    own.dedup();
    own
}

/// The key that pseudonyms are made with.
pub(crate) fn naming(key: &Key, pseudonyms: Pseudonyms, transcript: &str) -> Key {
    match pseudonyms {
        Pseudonyms::Person => key.clone(),
        Pseudonyms::Transcript => key.derive("transcript", transcript),
    }
}

/// The id of the document.
pub(crate) fn transcript(header: &Header, options: &NormalizedOptions) -> String {
    let id = options.transcript_id.clone();
    id.unwrap_or_else(|| normalized::transcript_id(&header.run_id))
}

/// The last place at or before a byte that is between two characters.
fn floor(text: &str, at: usize) -> usize {
    let at = at.min(text.len());
    (0..=at)
        .rev()
        .find(|at| text.is_char_boundary(*at))
        .unwrap_or(0)
}

/// The first place at or behind a byte that is between two characters.
fn ceil(text: &str, at: usize) -> usize {
    (at..text.len())
        .find(|at| text.is_char_boundary(*at))
        .unwrap_or(text.len())
}

impl std::fmt::Debug for Redactor<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Redactor")
            .field("profile", &self.profile.name)
            .finish_non_exhaustive()
    }
}
