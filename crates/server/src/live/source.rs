//! What a stream is made of: the events of a transcript, or everything that becomes known.

use std::path::PathBuf;
use std::time::Duration;

use quipu_store::Store;
use quipu_store::catalogue::TranscriptRow;
use quipu_store::events::{EventFollower, FollowedLines};

use super::frame::{self, Name};
use super::journal::{self, Journal};
use super::ring::{Chunk, ChunkBuilder};
use crate::problem::Problem;

/// Where the frames of a stream come from.
#[derive(Debug, Clone)]
pub(crate) enum Source {
    /// The file of a recorded run.
    Run(PathBuf),
    /// The events of an imported session.
    Kept(Box<TranscriptRow>),
    /// All transcripts: their events, or only which of them were added.
    Everything {
        /// Whether events are given.
        events: bool,
    },
}

/// What became of a stream.
#[derive(Debug)]
pub(crate) enum Step {
    /// More frames.
    Frames(Chunk),
    /// What was given from this place on does not hold any more.
    Again { from: u64 },
    /// There is nothing to follow any more, for now.
    Gone,
    /// All places mean something else now; the next one is this.
    Reset { next: u64 },
}

/// What was found by looking once.
#[derive(Debug, Default)]
pub(crate) struct Looked {
    pub(crate) steps: Vec<Step>,
    /// Whether there may be more already.
    pub(crate) more: bool,
    /// When to look again even if nothing seems to change.
    pub(crate) again_in: Option<Duration>,
}

/// So many bytes are made at a time, but for the last line.
pub(crate) const BATCH: usize = 128 << 10;

impl Source {
    /// What the stream is known by in this process.
    pub(crate) fn key(&self) -> String {
        match self {
            Self::Run(path) => format!("run {}", path.display()),
            Self::Kept(row) => format!("log {}", row.key),
            Self::Everything { events } => format!("everything {events}"),
        }
    }

    fn follow(&self, store: &Store, from: u64) -> Result<EventFollower, Problem> {
        Ok(match self {
            Self::Run(path) => EventFollower::of_file(path, from)?,
            Self::Kept(row) => store.follow(row, from)?,
            Self::Everything { .. } => return Err(Problem::internal()),
        })
    }

    /// The last place that there is now.
    pub(crate) fn last(&self, store: &Store) -> Result<u64, Problem> {
        Ok(match self {
            Self::Run(path) => {
                let log = quipu_record::RunLog::open(path).and_then(|log| log.ended());
                log.map_err(Problem::store)?
            }
            Self::Kept(row) => store.events(row)?.len()?,
            Self::Everything { .. } => store.catalogue().advances_span()?.last,
        })
    }

    /// Begins to follow, at the last thing that there is.
    pub(crate) fn begin(&self, store: &Store) -> Result<Feed, Problem> {
        if let Self::Everything { events } = self {
            return Ok(Feed::Journal(Box::new(Journal::begin(store, *events)?)));
        }
        // An imported session may turn out to end otherwise: its follower has to know how it seemed to end.
        let known = if matches!(self, Self::Kept(_)) { 63 } else { 0 };
        let from = self.last(store)?.saturating_sub(known).max(1);
        Ok(Feed::Transcript(Box::new(Following {
            follower: self.follow(store, from)?,
            next: from,
            held: Vec::new(),
            takes_all: true,
        })))
    }

    /// Frames from a place on, for a client that wants what others have had long ago. About `most` bytes.
    pub(crate) fn page(
        &self,
        store: &Store,
        from: u64,
        most: usize,
    ) -> Result<Vec<Chunk>, Problem> {
        if let Self::Everything { events } = self {
            return journal::page(store, *events, from, most);
        }
        let mut following = Following {
            follower: self.follow(store, from)?,
            next: from,
            held: Vec::new(),
            takes_all: false,
        };
        let looked = following.look(most)?;
        let chunks = looked.steps.into_iter().map_while(|step| match step {
            Step::Frames(chunk) => Some(chunk),
            // Whoever follows the file for all of them notices as well, and says so.
            Step::Again { .. } | Step::Gone | Step::Reset { .. } => None,
        });
        Ok(chunks.collect())
    }
}

/// Something that is followed.
pub(crate) enum Feed {
    Transcript(Box<Following>),
    Journal(Box<Journal>),
}

impl Feed {
    /// The file that changes when there is something new. `None` where it is the home.
    pub(crate) fn path(&self) -> Option<PathBuf> {
        match self {
            Self::Transcript(following) => Some(following.follower.path().to_owned()),
            Self::Journal(_) => None,
        }
    }

    /// The next place.
    pub(crate) fn next(&self) -> u64 {
        match self {
            Self::Transcript(following) => following.next,
            Self::Journal(journal) => journal.next(),
        }
    }

    /// What places mean something with, on the stream of everything.
    pub(crate) fn generation(&self) -> String {
        match self {
            Self::Transcript(_) => String::new(),
            Self::Journal(journal) => journal.generation().to_owned(),
        }
    }

    /// Looks for what is new.
    pub(crate) fn look(&mut self) -> Result<Looked, Problem> {
        match self {
            Self::Transcript(following) => following.look(BATCH),
            Self::Journal(journal) => journal.look(),
        }
    }
}

/// A transcript that is followed.
pub(crate) struct Following {
    follower: EventFollower,
    next: u64,
    /// Frames about lines that are not events, to be said before the next event.
    held: Vec<u8>,
    /// Whether all that is read is given, or the rest of it left to whoever reads the next page.
    takes_all: bool,
}

impl Following {
    fn look(&mut self, most: usize) -> Result<Looked, Problem> {
        let mut looked = Looked::default();
        let mut chunk = ChunkBuilder::new(self.next);
        while chunk.len() < most {
            let Some(news) = self.follower.try_next_lines()? else {
                looked.steps.extend(chunk.finish(None).map(Step::Frames));
                return Ok(looked);
            };
            match news {
                FollowedLines::Lines(lines) => {
                    for (seq, line) in lines.iter() {
                        if !self.takes_all && chunk.is_full(line.len(), most) {
                            looked.more = true;
                            looked.steps.extend(chunk.finish(None).map(Step::Frames));
                            return Ok(looked);
                        }
                        if chunk.len() >= most {
                            let full = std::mem::replace(&mut chunk, ChunkBuilder::new(seq));
                            looked.steps.extend(full.finish(None).map(Step::Frames));
                        }
                        let name = Name::of(line);
                        chunk.bytes.append(&mut self.held);
                        frame::event(seq, name.as_str(), line, &mut chunk.bytes);
                        chunk.end_frame(seq);
                        chunk.ends_run = name.ends_run();
                        self.next = seq + 1;
                    }
                }
                FollowedLines::Bad(bad) => self.held.append(&mut frame::bad(&bad)),
                FollowedLines::Again { from } => {
                    let before = std::mem::replace(&mut chunk, ChunkBuilder::new(from));
                    looked.steps.extend(before.finish(None).map(Step::Frames));
                    looked.steps.push(Step::Again { from });
                    self.next = from;
                }
                FollowedLines::Gone => {
                    let before = std::mem::replace(&mut chunk, ChunkBuilder::new(self.next));
                    looked.steps.extend(before.finish(None).map(Step::Frames));
                    looked.steps.push(Step::Gone);
                }
            }
        }
        looked.more = true;
        looked.steps.extend(chunk.finish(None).map(Step::Frames));
        Ok(looked)
    }
}
