//! The events of a recorded run, read from its own file.

use std::ops::RangeInclusive;
use std::path::Path;

use quipu_agents::{About, Entry, Feed, Framing, Origin, Position, Reader, Sink};
use quipu_formats::exchange::encode_log;
use quipu_model::{Attachment, Event, Timestamp};
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

    /// Gives these events, in order, until there is no more or it is enough.
    fn each(
        &self,
        wanted: &RangeInclusive<u64>,
        mut give: impl FnMut(Event, Position) -> bool,
    ) -> Result<(), Fault> {
        let (mut from, last) = (*wanted.start(), *wanted.end());
        while from <= last {
            let most = usize::try_from(last - from).unwrap_or(HELD).min(HELD - 1) + 1;
            let page = self.log.page(from, most).map_err(Fault::Run)?;
            for event in page.events {
                let at = event.decoded.at;
                let position = Position {
                    offset: at.offset,
                    line: event.number,
                };
                let mut event = event.decoded.event;
                event.seq = position.line;
                if !give(event, position) {
                    return Ok(());
                }
            }
            match page.next {
                Some(next) => from = next,
                None => return Ok(()),
            }
        }
        Ok(())
    }

    /// These events.
    pub(super) fn events(&self, wanted: &RangeInclusive<u64>) -> Result<Vec<Event>, Fault> {
        let mut events = Vec::new();
        self.each(wanted, |event, _| {
            events.push(event);
            true
        })?;
        Ok(events)
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
        self.each(wanted, |event, position| {
            line.clear();
            encode_log(&event, &mut line);
            feed.push(&line, &mut At { sink, position });
            !sink.is_done()
        })?;
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
