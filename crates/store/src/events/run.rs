//! The events of a recorded run, read from its own file.

use std::collections::{HashMap, VecDeque};
use std::ops::RangeInclusive;
use std::path::Path;

use quipu_agents::{About, Entry, Feed, Framing, Origin, Position, Reader, Sink};
use quipu_exchange::encode_log;
use quipu_model::{Attachment, Body, Event, Timestamp, ToolCallId};
use quipu_record::{LogFollower, RunLog};

use super::Fault;

/// How many events are held at a time.
const HELD: usize = 256;

/// The file of a recorded run.
#[derive(Debug)]
pub(super) struct RunFile {
    log: RunLog,
}

impl RunFile {
    pub(super) fn open(path: &Path) -> Result<Self, Fault> {
        RunLog::open(path)
            .map(|log| Self { log })
            .map_err(Fault::Run)
    }

    /// How many events it has now.
    pub(super) fn len(&self) -> Result<u64, Fault> {
        self.log.len().map_err(Fault::Run)
    }

    pub(super) fn follow(&self, from: u64) -> Result<LogFollower, Fault> {
        self.log.follow(from).map_err(Fault::Run)
    }

    /// Up to so many events from one on, as many as fit into memory at once.
    fn some(&self, from: u64, most: usize) -> Result<Batch, Fault> {
        let page = self.log.page(from, most).map_err(Fault::Run)?;
        let events = &page.events;
        let bad = page.bad.iter().map(|bad| {
            let before = events.partition_point(|it| it.decoded.at.offset < bad.at.offset);
            let behind = before.checked_sub(1).and_then(|at| events.get(at));
            let number = bad.number.or(behind.map(|it| it.number));
            number.unwrap_or(from.saturating_sub(1))
        });
        let bad = bad.collect();
        let events = page.events.into_iter().map(|event| {
            let position = Position {
                offset: event.decoded.at.offset,
                line: event.number,
            };
            let mut event = event.decoded.event;
            event.seq = position.line;
            (event, position)
        });
        Ok(Batch {
            events: events.collect(),
            bad,
            next: page.next,
        })
    }

    /// Gives these events, in order, until there is no more or it is enough; and says behind which of them are lines
    /// that are not events.
    fn each(
        &self,
        wanted: &RangeInclusive<u64>,
        mut give: impl FnMut(Event, Position) -> bool,
        mut bad_behind: impl FnMut(u64),
    ) -> Result<(), Fault> {
        let (mut from, last) = (*wanted.start(), *wanted.end());
        while from <= last {
            let some = self.some(from, held(from, last))?;
            some.bad.into_iter().for_each(&mut bad_behind);
            for (event, position) in some.events {
                if !give(event, position) {
                    return Ok(());
                }
            }
            match some.next {
                Some(next) => from = next,
                None => return Ok(()),
            }
        }
        Ok(())
    }

    /// Gives these events one at a time, marked where what follows them tells, for as long as `take` wants more. Says at
    /// which one it was enough, and how many lines among them are not events. A few are in memory at a time.
    pub(super) fn marked(
        &self,
        wanted: &RangeInclusive<u64>,
        take: &mut dyn FnMut(Event) -> bool,
    ) -> Result<(Option<u64>, u64), Fault> {
        let (mut from, last) = (*wanted.start(), *wanted.end());
        let mut bad = 0;
        while from <= last {
            let some = self.some(from, held(from, last))?;
            let mut events: Vec<Event> = some.events.into_iter().map(|(event, _)| event).collect();
            self.mark(&mut events)?;
            for event in events {
                let seq = event.seq;
                if !take(event) {
                    bad += some.bad.iter().filter(|behind| **behind <= seq).count() as u64;
                    return Ok((Some(seq), bad));
                }
            }
            bad += some.bad.len() as u64;
            match some.next {
                Some(next) => from = next,
                None => break,
            }
        }
        Ok((None, bad))
    }

    /// These events, marked where what follows them tells, and behind which of them are lines that are not
    /// events.
    pub(super) fn events(
        &self,
        wanted: &RangeInclusive<u64>,
    ) -> Result<(Vec<Event>, Vec<u64>), Fault> {
        let mut events = Vec::new();
        let mut bad = Vec::new();
        let take = |event: Event, _| {
            events.push(event);
            true
        };
        self.each(wanted, take, |behind| bad.push(behind))?;
        self.mark(&mut events)?;
        Ok((events, bad))
    }

    /// Marks calls that nothing behind them answers.
    fn mark(&self, events: &mut [Event]) -> Result<(), Fault> {
        let mut calls = OpenCalls::default();
        for (at, event) in events.iter().enumerate() {
            calls.observe(event, Some(at));
        }
        if let Some(last) = events.last()
            && !calls.is_empty()
        {
            // Results mostly follow their calls closely.
            let answer = |event: Event, _| {
                calls.observe(&event, None);
                !calls.is_empty()
            };
            self.each(&(last.seq.saturating_add(1)..=u64::MAX), answer, |_| {})?;
        }
        for at in calls.left() {
            events[at].annotations.flags.dangling = true;
        }
        Ok(())
    }

    /// Gives these events to a sink as the adapter of runs reads them: a message of several blocks as several entries
    /// with the number of the message.
    pub(super) fn replay(
        &self,
        wanted: &RangeInclusive<u64>,
        sink: &mut dyn Sink,
    ) -> Result<About, Fault> {
        let mut feed = Feed::new(Framing::Lines, self.reader());
        let mut line = Vec::new();
        let give = |event: Event, position| {
            line.clear();
            encode_log(&event, &mut line);
            feed.push(&line, &mut At { sink, position });
            !sink.is_done()
        };
        self.each(wanted, give, |_| {})?;
        let end = Position::default();
        let problem = feed
            .finish(&mut At {
                sink,
                position: end,
            })
            .err();
        Ok(About::new(&feed, problem.as_ref()))
    }

    fn reader(&self) -> Box<dyn Reader> {
        let origin = Origin {
            path: self.log.path(),
            part: None,
        };
        let opened = quipu_agents::dialect("exchange")
            .and_then(|(family, dialect)| family.open(&dialect, &origin, None));
        opened.unwrap_or_else(|| unreachable!("the family of recorded runs reads them"))
    }
}

/// Events that are in memory at once.
struct Batch {
    events: Vec<(Event, Position)>,
    /// Behind which events are lines that are not events.
    bad: Vec<u64>,
    /// Where the next ones begin.
    next: Option<u64>,
}

/// How many of these events are read at a time.
fn held(from: u64, last: u64) -> usize {
    usize::try_from(last - from).unwrap_or(HELD).min(HELD - 1) + 1
}

/// Calls whose results are not there, by their ids. A result answers the first call with its id.
#[derive(Debug, Default)]
struct OpenCalls(HashMap<ToolCallId, VecDeque<usize>>);

impl OpenCalls {
    /// Takes in an event; `at` is its place among those that are marked.
    fn observe(&mut self, event: &Event, at: Option<usize>) {
        match (&event.body, at) {
            (Body::ToolCall(call), Some(at)) if !call.call_id.is_empty() => {
                self.0
                    .entry(call.call_id.clone())
                    .or_default()
                    .push_back(at);
            }
            (Body::ToolResult(result), _) => {
                if let Some(calls) = self.0.get_mut(&result.call_id) {
                    calls.pop_front();
                    if calls.is_empty() {
                        self.0.remove(&result.call_id);
                    }
                }
            }
            _ => {}
        }
    }

    fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    fn left(self) -> impl Iterator<Item = usize> {
        self.0.into_values().flatten()
    }
}

/// Says where entries are in the file, not in what is fed.
struct At<'s> {
    sink: &'s mut dyn Sink,
    position: Position,
}

impl Sink for At<'_> {
    fn entry(&mut self, _seq: u64, at: Timestamp, _position: Position, entry: &Entry<'_>) {
        self.sink
            .entry(self.position.line, at, self.position, entry);
    }

    fn blob(&mut self, attachment: &Attachment, bytes: &[u8]) {
        self.sink.blob(attachment, bytes);
    }
}
