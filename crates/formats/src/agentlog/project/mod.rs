//! Sessions as traces: events of the model become records of the format.
//!
//! A log says what happened; a trace says what was asked of a model and what it answered. So requests are
//! put together from all that was said before, and what the format wants and the log does not have is
//! filled in and counted ([`Loss`]). `docs/agentlog.md` has the whole mapping.
//!
//! | module | what it owns |
//! |---|---|
//! | `events` | events that are one record each, both ways |
//! | `facts` | what is known of the session as a whole: the root |
//! | `view` | an event, whichever vocabulary it comes in |
//! | `lane` | what is held between events: conversations, the answer that comes in, calls under way |
//! | `history` | the messages of the next request |
//! | `latency` | how long a call took, as far as that is known |
//! | `calls` | calls to models as records |
//! | `tools` | calls of tools and what they give back |
//! | `notes` | which notes have a place in the format |
//! | `settings` | what requests were made with |
//! | `parts` | blocks and values as the format wants them |
//! | `out` | times, ids, and what stands beside payloads |
//! | `writer` | all of it behind the seam that every format has |
//! | `mend` | payloads that cannot be written as they are |
//!
//! # When records are written
//!
//! The answer of a model comes in over several events, so it is held until it is known to be whole: at the
//! next prompt, step, or event of another call; where the log does not name calls, also at the first result
//! of a tool; and when the session is closed ([`Projector::flush`]). The calls of tools in it, and what they
//! give back meanwhile, are written right behind it. Nothing else is held, so memory does not grow with the
//! session.

mod calls;
mod events;
mod facts;
mod history;
mod lane;
mod latency;
mod mend;
mod notes;
mod out;
mod parts;
mod settings;
mod text;
mod tools;
mod view;
mod writer;

#[cfg(test)]
mod tests;

use std::collections::HashSet;
use std::io;

use quipu_model::{Attachment, Body, Event, Place, RunId, StepKind, SubagentId};

pub use events::{event_of, mapped};
pub use facts::Facts;
pub use writer::writer;

use self::lane::{Calls, Lane, Piece, Queued, Stop};
use self::notes::Fate;
use self::out::{Making, Out};
use self::text::Object;
use self::view::{StepView, View, What};
use super::{ContentId, Kind};
use crate::loss::Loss;
use crate::plain;

/// How many conversations are held at once. The one that was silent the longest is ended for another.
const LANES: usize = 65;

/// Where records go.
pub trait Sink {
    /// Takes the next record.
    ///
    /// # Errors
    ///
    /// Whatever keeps the sink from it; the projection ends with it.
    fn record(&mut self, made: &Made<'_>) -> io::Result<()>;

    /// Takes bytes that a record refers to: text that is too long for a line.
    ///
    /// # Errors
    ///
    /// Whatever keeps the sink from it; the projection ends with it.
    fn blob(&mut self, attachment: &Attachment, bytes: &[u8]) -> io::Result<()>;
}

/// A record that was made.
#[derive(Debug, Clone, Copy)]
pub struct Made<'a> {
    /// The event it was made of; 0 for the root.
    pub seq: u64,
    /// Its id.
    pub id: ContentId,
    /// What it is.
    pub kind: Kind,
    /// Its line, the line end included.
    pub line: &'a [u8],
}

/// How a projection behaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProjectionOptions {
    /// A request has all messages while they are no longer than this, and from then on only new ones.
    pub max_request_bytes: usize,
    /// An answer that grows longer than this with all that is held behind it is written in parts.
    pub max_held_bytes: usize,
}

impl Default for ProjectionOptions {
    fn default() -> Self {
        Self {
            max_request_bytes: 256 << 10,
            max_held_bytes: 8 << 20,
        }
    }
}

/// Turns the events of one session into the records of a trace.
#[derive(Debug)]
pub struct Projector {
    facts: Facts,
    options: ProjectionOptions,
    out: Out,
    /// The first is the agent's own.
    lanes: Vec<Lane>,
    calls: Calls,
    /// The agent steps that are under way. Each is a conversation of its own.
    asking: HashSet<Place>,
    first_seq: u64,
    last_seq: u64,
}

impl Projector {
    /// For a session of which this is known.
    pub fn new(facts: Facts, options: ProjectionOptions) -> Self {
        let out = Out::new(facts.run_id.as_str(), facts.trace_id());
        Self {
            facts,
            options,
            out,
            lanes: Vec::new(),
            calls: Calls::default(),
            asking: HashSet::new(),
            first_seq: 0,
            last_seq: 0,
        }
    }

    /// Takes the next event.
    ///
    /// # Errors
    ///
    /// Those of the sink.
    pub fn event(&mut self, event: &Event, sink: &mut dyn Sink) -> io::Result<()> {
        if let Body::StepStarted(step) = &event.body
            && step.kind == StepKind::Agent
        {
            self.asking.insert(event.place.clone());
            return self.take(event, sink);
        }
        if !self.asking.contains(&event.place) {
            return self.take(event, sink);
        }
        let mut named = event.clone();
        let subagent = &mut named.annotations.subagent_id;
        subagent.get_or_insert_with(|| speaker(&event.place));
        self.take(&named, sink)?;
        if matches!(&event.body, Body::StepCompleted(_)) {
            self.asking.remove(&event.place);
            self.answered(&event.place, sink)?;
        }
        Ok(())
    }

    /// Ends the conversation of a step.
    fn answered(&mut self, place: &Place, sink: &mut dyn Sink) -> io::Result<()> {
        let key = Some(speaker(place));
        match self.lanes.iter().position(|lane| lane.key == key) {
            Some(lane) => {
                self.end(lane, sink)?;
                self.lanes.remove(lane);
                Ok(())
            }
            None => Ok(()),
        }
    }

    fn take(&mut self, event: &Event, sink: &mut dyn Sink) -> io::Result<()> {
        let parent = event.parent_run_id.as_ref();
        if let Some(view) = View::new(event) {
            return self.view(&view, parent, sink);
        }
        plain::count(event, &mut self.out.loss);
        let noted = plain::plain(event);
        match View::new(&noted) {
            Some(view) => self.view(&view, parent, sink),
            None => Ok(()),
        }
    }

    /// Writes what is held, because the session is closed. If it goes on afterwards, an answer that was
    /// not whole goes on in a second response. Records that are written here say after which event that was:
    /// `meta.quipu.flushed`.
    ///
    /// # Errors
    ///
    /// Those of the sink.
    pub fn flush(&mut self, sink: &mut dyn Sink) -> io::Result<()> {
        self.out.closing = Some(self.last_seq);
        for lane in 0..self.lanes.len() {
            self.end(lane, sink)?;
        }
        self.out.closing = None;
        Ok(())
    }

    /// Writes what is held, and says what the trace does not have.
    ///
    /// # Errors
    ///
    /// Those of the sink.
    pub fn finish(mut self, sink: &mut dyn Sink) -> io::Result<Loss> {
        self.flush(sink)?;
        Ok(self.out.loss)
    }

    /// What became of the events so far.
    pub fn loss(&self) -> &Loss {
        &self.out.loss
    }

    /// The last event that was taken; 0 when there was none.
    pub fn last_seq(&self) -> u64 {
        self.last_seq
    }

    fn view(
        &mut self,
        view: &View<'_>,
        parent: Option<&RunId>,
        sink: &mut dyn Sink,
    ) -> io::Result<()> {
        self.out.loss.events += 1;
        self.last_seq = view.seq;
        if self.lanes.is_empty() {
            self.first_seq = view.seq;
            self.root(view, parent, sink)?;
        }
        let lane = self.lane(view, sink)?;
        let carried = match &view.what {
            What::User(parts) => self.user(lane, view, parts, sink)?,
            What::System(parts) => self.system(lane, view, parts, sink)?,
            What::Assistant(parts) => self.assistant(lane, view, parts, sink)?,
            What::Call(call) => self.called(lane, view, call, sink)?,
            What::Result(result) => self.result(lane, view, result, sink)?,
            What::Step(step) => self.step(lane, view, step, sink)?,
            What::Note(note) => self.note(lane, view, note, sink)?,
            What::Single(kind, body) => self.single(lane, view, *kind, body, sink)?,
            What::Unknown(foreign) => {
                let about = Object::new()
                    .text("path", &view.place.path)
                    .number("iteration", view.place.iteration())
                    .text_if("child_run_id", foreign.child_run_id.as_deref())
                    .raw("payload", foreign.payload.get());
                let name = match foreign.event_type.as_str() {
                    "" => "unknown",
                    name => name,
                };
                self.out
                    .loss
                    .wrapped("events that are not known, as harness events", view.seq);
                let payload = notes::harness("tool_lifecycle", name, "info", about);
                self.leaf(lane, making(Kind::HarnessEvent, view, payload), sink)?;
                true
            }
        };
        // Tokens are counted wherever they are told; answers and notes have counted theirs.
        if !matches!(
            view.what,
            What::Assistant(_) | What::Call(_) | What::Note(_) | What::Single(Kind::Chunk, _)
        ) {
            self.usage_aside(lane, view);
        }
        let is_told = |attachment: &Attachment| match &view.what {
            What::Note(note) => notes::tells_of(note, attachment),
            What::Single(_, Body::Blob(blob)) => blob == attachment,
            _ => false,
        };
        for attachment in &view.notes.attachments {
            if is_told(attachment) {
                continue;
            }
            if attachment.mime.is_empty() {
                self.out.loss.inferred("blob_ref.mime", view.seq);
            }
            let payload = out::blob_ref(attachment);
            self.leaf(lane, making(Kind::BlobRef, view, payload), sink)?;
        }
        self.out.loss.carried += u64::from(carried || !view.notes.attachments.is_empty());
        let held = self.lanes[lane].open.as_ref().map_or(0, |call| call.bytes);
        if held > self.options.max_held_bytes {
            self.close(lane, sink)?;
        }
        Ok(())
    }

    fn root(
        &mut self,
        view: &View<'_>,
        parent: Option<&RunId>,
        sink: &mut dyn Sink,
    ) -> io::Result<()> {
        // The name of a workflow is known once its run begins.
        if let What::Step(StepView {
            step: Some(step), ..
        }) = &view.what
            && view.seq == 1
            && self.facts.title.is_none()
        {
            self.facts.title = Some(step.name.clone());
        }
        if let What::Note(note) = &view.what
            && let Fate::Kept(Kind::Metadata, payload) = notes::fate(note)
        {
            self.facts.metadata = Some(payload);
        }
        let at = match self.facts.started_at {
            Some(start) if view.notes.flags.undated => start,
            Some(start) => start.min(view.at),
            None => view.at,
        };
        let making = Making {
            kind: Kind::Metadata,
            seq: 0,
            at,
            vague: true,
            payload: self.facts.root(parent),
            marks: Object::new(),
        };
        let root = self.out.put(making, None, sink)?;
        let root =
            root.ok_or_else(|| io::Error::other("the root of the trace cannot be written"))?;
        self.lanes.push(Lane::new(None, root, at));
        Ok(())
    }

    /// The conversation that an event belongs to.
    fn lane(&mut self, view: &View<'_>, sink: &mut dyn Sink) -> io::Result<usize> {
        let key = &view.notes.subagent_id;
        let found = self.lanes.iter().position(|lane| lane.key == *key);
        let lane = if let Some(lane) = found {
            lane
        } else {
            if self.lanes.len() >= LANES {
                let others = self.lanes.iter().enumerate().skip(1);
                let silent = others.min_by_key(|(_, lane)| lane.used);
                let silent = silent.map_or(1, |(n, _)| n);
                self.end(silent, sink)?;
                self.lanes.remove(silent);
            }
            let main = &self.lanes[0];
            let new = Lane::new(key.clone(), main.cursor, main.asked.at);
            self.lanes.push(new);
            self.lanes.len() - 1
        };
        self.lanes[lane].used = view.seq;
        Ok(lane)
    }

    /// Writes a record that nothing follows, or holds it until the answer before it is written.
    fn leaf(&mut self, lane: usize, making: Making, sink: &mut dyn Sink) -> io::Result<()> {
        let lane = &mut self.lanes[lane];
        if let Some(open) = &mut lane.open {
            open.queue(Queued::Leaf(making));
            return Ok(());
        }
        self.out.put(making, Some(lane.cursor), sink).map(drop)
    }

    /// Writes a record that follows all that was before it: where a session begins, and what a replay came to.
    fn boundary(&mut self, making: Making, sink: &mut dyn Sink) -> io::Result<()> {
        // The root of the trace that this was read from is part of the root of this one.
        if making.kind == Kind::Metadata && making.seq == self.first_seq {
            return Ok(());
        }
        for lane in 0..self.lanes.len() {
            self.end(lane, sink)?;
        }
        let parent = match making.kind {
            Kind::Metadata => self.out.before,
            _ => self.out.before_summaries,
        };
        let begins = making.kind == Kind::Metadata;
        let made = self.out.put(making, parent, sink)?;
        if let (true, Some(root)) = (begins, made) {
            for lane in &mut self.lanes {
                *lane = Lane::new(lane.key.take(), root, lane.asked.at);
            }
        }
        Ok(())
    }

    fn step(
        &mut self,
        lane: usize,
        view: &View<'_>,
        step: &StepView<'_>,
        sink: &mut dyn Sink,
    ) -> io::Result<bool> {
        self.close(lane, sink)?;
        self.out.loss.wrapped("steps, as harness events", view.seq);
        let severity = if step.failed() { "error" } else { "info" };
        let event = Object::new()
            .text("category", "tool_lifecycle")
            .text("name", step.word)
            .text("severity", severity)
            .raw("attributes", &step.attributes(view.place));
        self.leaf(lane, making(Kind::HarnessEvent, view, event.end()), sink)?;
        Ok(true)
    }

    /// An event that is one record.
    fn single(
        &mut self,
        lane: usize,
        view: &View<'_>,
        kind: Kind,
        body: &Body,
        sink: &mut dyn Sink,
    ) -> io::Result<bool> {
        if let Body::Chunk(chunk) = body {
            if chunk.arrived_at.is_none() {
                let what = "chunk.time_unix_nano, from when it was recorded";
                self.out.loss.inferred(what, view.seq);
            }
            let piece = Piece::event(view, chunk);
            let open = self.opened(lane, view, sink)?;
            open.bytes += piece.bytes();
            open.chunks.push(piece);
            return Ok(true);
        }
        if kind == Kind::Error
            && let Some(open) = &mut self.lanes[lane].open
            && open.content.is_empty()
        {
            open.stop = open.stop.max(Stop::Error);
        }
        if matches!(body, Body::Harness(event) if event.category == "context_trim") {
            self.close(lane, sink)?;
            self.lanes[lane].history.compacted();
        }
        let making = events::making(kind, view, body, &mut self.out.loss);
        self.leaf(lane, making, sink)?;
        Ok(true)
    }

    /// Whether a note says no more than why the answer that comes in ended, and what else is known of it.
    fn ends(&self, lane: usize, view: &View<'_>, note: &quipu_model::Note) -> bool {
        let open = self.lanes[lane].open.as_ref();
        let is_of_it = open.is_some_and(|call| {
            call.notes.model_call.is_some() && call.notes.model_call == view.notes.model_call
        });
        let told = open.and_then(|call| call.notes.stop_reason.as_deref());
        is_of_it && note.text.is_some() && note.text.as_deref() == told
    }

    fn note(
        &mut self,
        lane: usize,
        view: &View<'_>,
        note: &quipu_model::Note,
        sink: &mut dyn Sink,
    ) -> io::Result<bool> {
        use quipu_model::NoteKind;
        let fate = match notes::fate(note) {
            Fate::Record(..) if self.ends(lane, view, note) => Fate::Call,
            fate => fate,
        };
        let is_kept = matches!(fate, Fate::Kept(..));
        let told = view.notes.usage.is_some();
        if fate == Fate::Call {
            return self.model_call(lane, view, note, sink);
        }
        if told {
            self.usage_aside(lane, view);
        }
        match fate {
            Fate::Settings(settings) => {
                if !settings.whole {
                    let what = "settings that are no parameters of a request";
                    self.out.loss.dropped(what, view.seq);
                }
                for key in &settings.unfit {
                    let what = format!("chat_request.{key} that breaks its format");
                    self.out.loss.dropped(what, view.seq);
                }
                self.lanes[lane].settings = Some(settings);
                Ok(true)
            }
            Fate::Ended(word) => {
                let Some(open) = &mut self.lanes[lane].open else {
                    self.out
                        .loss
                        .dropped(format!("note:{}", note.kind), view.seq);
                    return Ok(told);
                };
                open.notes.stop_reason = Some(word);
                Ok(true)
            }
            Fate::Kept(Kind::Chunk, payload) => {
                let open = self.opened(lane, view, sink)?;
                open.chunks.push(Piece::kept(view, payload));
                Ok(true)
            }
            Fate::Kept(kind @ (Kind::Metadata | Kind::ReplaySummary), payload) => {
                self.boundary(making(kind, view, payload), sink)?;
                Ok(true)
            }
            Fate::Record(kind, payload) | Fate::Kept(kind, payload) => {
                match note.kind {
                    NoteKind::Compaction => {
                        self.close(lane, sink)?;
                        self.lanes[lane].history.compacted();
                    }
                    NoteKind::Error => {
                        if !is_kept {
                            self.out
                                .loss
                                .inferred("error.source, code and retriable", view.seq);
                        }
                        if let Some(open) = &mut self.lanes[lane].open
                            && open.content.is_empty()
                        {
                            open.stop = open.stop.max(Stop::Error);
                        }
                    }
                    _ => {}
                }
                self.leaf(lane, making(kind, view, payload), sink)?;
                Ok(true)
            }
            Fate::Dropped | Fate::Call => {
                // Of a note with tokens or attachments, these are carried and what it says is not.
                let says = note.text.is_some() || note.raw.is_some();
                if says || (!told && view.notes.attachments.is_empty()) {
                    self.out
                        .loss
                        .dropped(format!("note:{}", note.kind), view.seq);
                }
                Ok(told)
            }
        }
    }
}

/// Who speaks in an agent step, as a name: steps that run at the same time are told apart by it.
fn speaker(place: &Place) -> SubagentId {
    let name = match place.attempt {
        1 => place.label(),
        attempt => format!("{}#{attempt}", place.label()),
    };
    name.as_str().into()
}

fn making(kind: Kind, view: &View<'_>, payload: String) -> Making {
    Making::of(kind, view.seq, view.at, view.notes, payload)
}
