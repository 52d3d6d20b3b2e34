//! Spans, and the batches they are written in.

use std::io::{self, Write};

use quipu_model::{RunId, Timestamp};

use super::facts::Facts;
use super::ids::{Of, SpanId, TraceId};
use super::json::{self, Attrs};
use crate::loss::Loss;

/// How many bytes of events a span that is not yet at its end may hold. What is more is written as a span
/// of its own.
const MAX_HELD_EVENTS: usize = 32 << 10;

/// A point in time, as OTLP counts: nanoseconds since 1970, not before.
pub(super) type Nanos = u64;

/// What kind of span it is, as a number of the protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SpanKind {
    Internal = 1,
    Client = 3,
}

/// Why what a span stands for failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Fault {
    pub(super) kind: &'static str,
    /// In words, where content is wanted.
    pub(super) message: Option<String>,
}

/// A span under way, or just before it is written.
#[derive(Debug)]
pub(super) struct Span {
    pub(super) id: SpanId,
    pub(super) parent: Option<SpanId>,
    pub(super) kind: SpanKind,
    pub(super) name: String,
    pub(super) start: Nanos,
    pub(super) end: Nanos,
    pub(super) attrs: Attrs,
    pub(super) fault: Option<Fault>,
    events: Vec<u8>,
    events_from: Nanos,
    events_to: Nanos,
    links: Vec<u8>,
    /// The event it begins with.
    pub(super) seq: u64,
    /// How often its events were written as spans of their own.
    spilled: u64,
}

impl Span {
    pub(super) fn new(id: SpanId, parent: Option<SpanId>, seq: u64, at: Nanos) -> Self {
        Self {
            id,
            parent,
            kind: SpanKind::Internal,
            name: String::new(),
            start: at,
            end: at,
            attrs: Attrs::default(),
            fault: None,
            events: Vec::new(),
            events_from: 0,
            events_to: 0,
            links: Vec::new(),
            seq,
            spilled: 0,
        }
    }

    /// Holds events for a span that has not begun. Should it have to write them early, they are children
    /// of `parent`.
    pub(super) fn stand_in(parent: SpanId, seq: u64, at: Nanos) -> Self {
        Self {
            // The span that an event begins writes events of its own early, counted from one.
            spilled: 1 << 32,
            ..Self::new(parent, None, seq, at)
        }
    }

    /// Something of it happened then.
    pub(super) fn touch(&mut self, at: Nanos) {
        self.start = self.start.min(at);
        self.end = self.end.max(at);
    }

    /// How much memory it holds, nearly.
    pub(super) fn weight(&self) -> usize {
        self.attrs.len() + self.events.len() + self.links.len() + self.name.len() + 256
    }

    /// Something that happened while it was under way.
    pub(super) fn event(&mut self, name: &str, at: Nanos, attrs: &Attrs) {
        if self.events.is_empty() {
            (self.events_from, self.events_to) = (at, at);
        } else {
            self.events.push(b',');
        }
        self.events_from = self.events_from.min(at);
        self.events_to = self.events_to.max(at);
        let out = &mut self.events;
        out.extend_from_slice(b"{\"timeUnixNano\":\"");
        json::number(at, out);
        out.extend_from_slice(b"\",\"name\":");
        json::string(name, out);
        out.extend_from_slice(b",\"attributes\":[");
        out.extend_from_slice(attrs.as_bytes());
        out.extend_from_slice(b"]}");
    }

    /// Moves the events of another to this one.
    pub(super) fn take_events(&mut self, other: &mut Self) {
        if other.events.is_empty() {
            return;
        }
        if self.events.is_empty() {
            self.events = std::mem::take(&mut other.events);
            (self.events_from, self.events_to) = (other.events_from, other.events_to);
            return;
        }
        self.events.push(b',');
        self.events.append(&mut other.events);
        self.events_from = self.events_from.min(other.events_from);
        self.events_to = self.events_to.max(other.events_to);
    }

    /// When the first and the last of its events happened.
    pub(super) fn events_span(&self) -> (Nanos, Nanos) {
        (self.events_from, self.events_to)
    }

    /// Points to the root of another run's trace.
    pub(super) fn link(&mut self, run: &RunId, relation: &str) {
        if !self.links.is_empty() {
            self.links.push(b',');
        }
        let out = &mut self.links;
        out.extend_from_slice(b"{\"traceId\":\"");
        TraceId::of(run).write(out);
        out.extend_from_slice(b"\",\"spanId\":\"");
        SpanId::root(run).write(out);
        let mut attrs = Attrs::default();
        attrs.text("quipu.run_id", run.as_str());
        attrs.text("quipu.relation", relation);
        out.extend_from_slice(b"\",\"attributes\":[");
        out.extend_from_slice(attrs.as_bytes());
        out.extend_from_slice(b"]}");
    }
}

/// Writes spans in lines of bounded size, each a request of its own.
pub(super) struct Batches<'w> {
    out: Box<dyn Write + 'w>,
    run: RunId,
    trace: TraceId,
    /// What every line begins with, up to the first span.
    head: Vec<u8>,
    line: Vec<u8>,
    max_bytes: usize,
    /// What a span begins with that only holds events.
    aside: Attrs,
    /// The earliest start and the latest end of what was written.
    pub(super) bounds: Option<(Nanos, Nanos)>,
}

const TAIL: &[u8] = b"]}]}]}\n";

impl<'w> Batches<'w> {
    pub(super) fn new(
        out: Box<dyn Write + 'w>,
        resource: &Attrs,
        facts: &Facts,
        max_bytes: usize,
    ) -> Self {
        let mut head = b"{\"resourceSpans\":[{\"resource\":{\"attributes\":[".to_vec();
        head.extend_from_slice(resource.as_bytes());
        head.extend_from_slice(b"]},\"scopeSpans\":[{\"scope\":{\"name\":\"quipu\"},");
        if let Some(schema) = facts.schema() {
            head.extend_from_slice(b"\"schemaUrl\":");
            json::string(schema, &mut head);
            head.push(b',');
        }
        head.extend_from_slice(b"\"spans\":[");
        Self {
            out,
            run: facts.run.clone(),
            trace: TraceId::of(&facts.run),
            line: head.clone(),
            head,
            max_bytes,
            aside: facts.aside(),
            bounds: None,
        }
    }

    /// Adds what happened to a span that is under way, and writes it early when it holds too much.
    pub(super) fn event(
        &mut self,
        span: &mut Span,
        name: &str,
        at: Nanos,
        attrs: &Attrs,
    ) -> io::Result<()> {
        span.event(name, at, attrs);
        if span.events.len() > MAX_HELD_EVENTS {
            self.spill(span)?;
        }
        Ok(())
    }

    /// Writes the events of a span as a child of it.
    fn spill(&mut self, span: &mut Span) -> io::Result<()> {
        let id = SpanId::of(&self.run, Of::Notes, span.seq, span.spilled + 1);
        let parent = Some(span.id);
        let (from, to) = span.events_span();
        span.spilled += 1;
        span.touch(from);
        span.touch(to);
        let mut notes = Span::new(id, parent, span.seq, from);
        notes.touch(to);
        "quipu.notes".clone_into(&mut notes.name);
        notes.attrs = self.aside.clone();
        notes.take_events(span);
        self.span(&notes)
    }

    /// Writes a span that is at its end.
    pub(super) fn span(&mut self, span: &Span) -> io::Result<()> {
        let need = span.weight() + TAIL.len();
        if self.line.len() > self.head.len() {
            if self.line.len() + need > self.max_bytes {
                self.flush()?;
            } else {
                self.line.push(b',');
            }
        }
        let end = span.end.max(span.start);
        let (from, to) = self.bounds.unwrap_or((span.start, end));
        self.bounds = Some((from.min(span.start), to.max(end)));
        let out = &mut self.line;
        out.extend_from_slice(b"{\"traceId\":\"");
        self.trace.write(out);
        out.extend_from_slice(b"\",\"spanId\":\"");
        span.id.write(out);
        if let Some(parent) = span.parent {
            out.extend_from_slice(b"\",\"parentSpanId\":\"");
            parent.write(out);
        }
        out.extend_from_slice(b"\",\"name\":");
        json::string(&span.name, out);
        out.extend_from_slice(b",\"kind\":");
        json::number(span.kind as u64, out);
        out.extend_from_slice(b",\"startTimeUnixNano\":\"");
        json::number(span.start, out);
        out.extend_from_slice(b"\",\"endTimeUnixNano\":\"");
        json::number(end, out);
        out.extend_from_slice(b"\",\"attributes\":[");
        out.extend_from_slice(span.attrs.as_bytes());
        out.push(b']');
        for (name, list) in [("events", &span.events), ("links", &span.links)] {
            if !list.is_empty() {
                out.extend_from_slice(b",\"");
                out.extend_from_slice(name.as_bytes());
                out.extend_from_slice(b"\":[");
                out.extend_from_slice(list);
                out.push(b']');
            }
        }
        out.extend_from_slice(b",\"status\":{");
        if let Some(fault) = &span.fault {
            out.extend_from_slice(b"\"code\":2");
            if let Some(message) = &fault.message {
                out.extend_from_slice(b",\"message\":");
                json::string(message, out);
            }
        }
        out.extend_from_slice(b"}}");
        Ok(())
    }

    /// Writes the line that is under way.
    fn flush(&mut self) -> io::Result<()> {
        if self.line.len() > self.head.len() {
            self.line.extend_from_slice(TAIL);
            self.out.write_all(&self.line)?;
            self.line.clear();
            if self.line.capacity() > 2 * self.max_bytes {
                self.line = Vec::new();
            }
            self.line.extend_from_slice(&self.head);
        }
        Ok(())
    }

    /// Writes what is left.
    pub(super) fn finish(&mut self) -> io::Result<()> {
        self.flush()?;
        self.out.flush()
    }
}

/// A time as OTLP has it. What is out of its range is moved to the end of it, and counted.
pub(super) fn nanos(at: Timestamp, seq: u64, loss: &mut Loss) -> Nanos {
    let nanos = at.as_nanosecond();
    Nanos::try_from(nanos).unwrap_or_else(|_| {
        loss.inferred("time, of which OTLP has only the years 1970 to 2554", seq);
        if nanos < 0 { 0 } else { Nanos::MAX }
    })
}
