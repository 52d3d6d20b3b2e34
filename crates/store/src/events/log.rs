//! One event log for sessions and runs.

use std::ops::RangeInclusive;

use quipu_agents::{About, Collect, Entry, Marks, Position, Sink};
use quipu_convert::Pricing;
use quipu_model::{Event, RunId, Timestamp};
use quipu_prices::Prices;

use super::run::RunFile;
use super::{ALL, EventFile, EventFollower, Fault, Original, State};
use crate::catalogue::TranscriptRow;
use crate::transcript::Kept;

/// Some events of a transcript.
#[derive(Debug)]
pub struct Page {
    /// The events, in order, marked where only the whole log tells.
    pub events: Vec<Event>,
    /// How many events the transcript has.
    pub len: u64,
    /// Lines of a recorded run among these that are not events. What could not be read of an imported log was counted when it
    /// was imported.
    pub bad: u64,
}

/// What became of reading events one at a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Given {
    /// The first event that was not given.
    pub next: u64,
    /// How many events the transcript has.
    pub len: u64,
    /// Lines of a recorded run among those that were given that are not events.
    pub bad: u64,
}

/// The events of a transcript, whether it was imported or recorded.
#[derive(Debug)]
pub struct EventLog {
    row: TranscriptRow,
    from: From,
}

#[derive(Debug)]
enum From {
    /// What an adapter made of a log, and the log.
    Kept(Box<KeptLog>),
    /// The run's own file, which may grow.
    Run(Box<RunFile>),
}

#[derive(Debug)]
struct KeptLog {
    file: EventFile,
    log: Original,
    /// Opens it again.
    kept: Kept,
}

impl EventLog {
    pub(crate) fn kept(row: TranscriptRow, file: EventFile, log: Original, kept: Kept) -> Self {
        Self {
            row,
            from: From::Kept(Box::new(KeptLog { file, log, kept })),
        }
    }

    pub(crate) fn run(row: TranscriptRow) -> Result<Self, Fault> {
        let file = RunFile::open(&row.path)?;
        Ok(Self {
            row,
            from: From::Run(Box::new(file)),
        })
    }

    /// What the catalogue says of the transcript.
    pub fn header(&self) -> &TranscriptRow {
        &self.row
    }

    /// How many events there are. Of a run that is recorded: now.
    ///
    /// # Errors
    ///
    /// When they cannot be read.
    pub fn len(&self) -> Result<u64, Fault> {
        match &self.from {
            From::Kept(kept) => Ok(kept.file.len()),
            From::Run(file) => file.len(),
        }
    }

    /// Whether there are none.
    ///
    /// # Errors
    ///
    /// When they cannot be read.
    pub fn is_empty(&self) -> Result<bool, Fault> {
        self.len().map(|len| len == 0)
    }

    /// Up to `most` events, from one on, of those that a filter wants.
    ///
    /// # Errors
    ///
    /// When they cannot be read.
    pub fn page(
        &self,
        from: u64,
        most: usize,
        filter: &dyn Fn(&Event) -> bool,
    ) -> Result<Page, Fault> {
        let len = self.len()?;
        let (mut events, mut from, mut bad) = (Vec::new(), from.max(1), 0);
        // As many as are wanted at first: mostly all of them pass.
        let mut step = most;
        while events.len() < most && from <= len {
            let last = from.saturating_add(step as u64 - 1).min(len);
            let (some, bad_behind) = self.read(from..=last)?;
            for event in some {
                if events.len() < most && filter(&event) {
                    events.push(event);
                }
            }
            // The next page begins behind the last of a full one.
            let end = events.last().filter(|_| events.len() == most);
            let end = end.map_or(u64::MAX, |event: &Event| event.seq);
            bad += bad_behind.iter().filter(|seq| **seq <= end).count() as u64;
            from = last + 1;
            step = (most - events.len()).max(HELD);
        }
        Ok(Page { events, len, bad })
    }

    /// Gives these events in order, marked where only the whole log tells, for as long as `take` wants more: it says so of each
    /// that it took. However long events are, only a few are in memory. With prices, events of imported logs say what they
    /// cost.
    ///
    /// # Errors
    ///
    /// When they cannot be read.
    pub fn each(
        &self,
        wanted: &RangeInclusive<u64>,
        prices: Option<&Prices>,
        take: &mut dyn FnMut(Event) -> bool,
    ) -> Result<Given, Fault> {
        let len = self.len()?;
        let first = (*wanted.start()).max(1);
        let wanted = first..=len.min(*wanted.end());
        let mut given = Given {
            next: first,
            len,
            bad: 0,
        };
        if wanted.is_empty() {
            return Ok(given);
        }
        let enough = match &self.from {
            From::Kept(kept) => {
                let mut giving = Giving {
                    run_id: quipu_agents::run_id(&self.row.run_id),
                    path: self.row.path.to_string_lossy().into_owned(),
                    marks: kept.file.marks(),
                    pricing: prices.map(Pricing::new),
                    take,
                    enough: None,
                };
                kept.file.replay(wanted.clone(), &kept.log, &mut giving)?;
                giving.enough
            }
            From::Run(file) => {
                let (enough, bad) = file.marked(&wanted, take)?;
                given.bad = bad;
                enough
            }
        };
        given.next = enough.unwrap_or(*wanted.end()).saturating_add(1);
        Ok(given)
    }

    /// These events, in order.
    ///
    /// # Errors
    ///
    /// When they cannot be read.
    pub fn events(&self, wanted: RangeInclusive<u64>) -> Result<Vec<Event>, Fault> {
        Ok(self.read(wanted)?.0)
    }

    /// These events, and behind which of them are lines that are not events.
    fn read(&self, wanted: RangeInclusive<u64>) -> Result<(Vec<Event>, Vec<u64>), Fault> {
        let KeptLog { file, log, .. } = match &self.from {
            From::Kept(kept) => &**kept,
            From::Run(file) => return file.events(&wanted),
        };
        let run_id = quipu_agents::run_id(&self.row.run_id);
        let mut collect = Collect::new(run_id, &self.row.path.to_string_lossy());
        file.replay(wanted, log, &mut collect)?;
        let mut marks = file.marks();
        for event in &mut collect.events {
            marks.mark(event);
        }
        Ok((collect.events, Vec::new()))
    }

    /// Follows the events, from one on: those that are there, then those that are added, by whatever process.
    ///
    /// # Errors
    ///
    /// When they cannot be read.
    pub fn follow(&self, from: u64) -> Result<EventFollower, Fault> {
        match &self.from {
            From::Kept(kept) => {
                let (kept, row) = (kept.kept.clone(), self.row.clone());
                Ok(EventFollower::of_kept(kept, row, from))
            }
            From::Run(file) => Ok(EventFollower::of_run(file.follow(from)?)),
        }
    }

    /// Which state of a kept log the events are of.
    pub(super) fn state(&self) -> Option<State> {
        match &self.from {
            From::Kept(kept) => Some(kept.file.state()),
            From::Run(_) => None,
        }
    }

    /// Gives events to a sink as an adapter read them. Says what the log tells as a whole, if all are wanted.
    pub(crate) fn replay(
        &self,
        wanted: &RangeInclusive<u64>,
        sink: &mut dyn Sink,
    ) -> Result<About, Fault> {
        match &self.from {
            From::Kept(kept) => {
                kept.file.replay(wanted.clone(), &kept.log, sink)?;
                Ok(kept.file.about().clone())
            }
            From::Run(file) => file.replay(wanted, sink),
        }
    }

    /// What the log tells as a whole.
    pub(crate) fn about(&self) -> Result<About, Fault> {
        struct Nobody;
        impl Sink for Nobody {
            fn entry(
                &mut self,
                _seq: u64,
                _at: quipu_model::Timestamp,
                _position: quipu_agents::Position,
                _entry: &quipu_agents::Entry<'_>,
            ) {
            }
        }
        match &self.from {
            From::Kept(kept) => Ok(kept.file.about().clone()),
            From::Run(file) => file.replay(&ALL, &mut Nobody),
        }
    }
}

/// Gives events on, one at a time.
struct Giving<'t> {
    run_id: RunId,
    path: String,
    marks: Marks,
    pricing: Option<Pricing<'t>>,
    take: &'t mut dyn FnMut(Event) -> bool,
    /// The event at which it was enough.
    enough: Option<u64>,
}

impl Sink for Giving<'_> {
    fn entry(&mut self, seq: u64, at: Timestamp, position: Position, entry: &Entry<'_>) {
        let mut event = entry.to_event(seq, at, &self.run_id, position, &self.path);
        self.marks.mark(&mut event);
        if let Some(cost) = self
            .pricing
            .as_mut()
            .and_then(|pricing| pricing.cost(entry))
        {
            event.annotations.cost = Some(cost);
        }
        if !(self.take)(event) {
            self.enough = Some(seq);
        }
    }

    fn is_done(&self) -> bool {
        self.enough.is_some()
    }
}

/// Events are looked through so many at a time.
const HELD: usize = 256;
