//! What can go wrong, each case naming the thing it went wrong with.

use std::io;
use std::path::PathBuf;

use quipu_exchange::{Fault, Position};
use quipu_model::RunId;

/// Why an event was not recorded, or a run not opened. Unless it is [`Error::SyncFailed`], no sequence
/// number was used up.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The recorder was closed.
    #[error("the recorder of run {0} is closed")]
    Closed(RunId),
    /// A file of the exchange format may not hold the event.
    #[error(transparent)]
    Unwritable(#[from] quipu_exchange::Closed),
    /// The event would be longer than allowed.
    #[error("the event is {len} bytes long, more than the {limit} allowed")]
    TooLarge {
        /// How long it would be.
        len: usize,
        /// How long it may be.
        limit: usize,
    },
    /// Another recorder, here or in another process, has the run open.
    #[error("another process is recording to {}", .0.display())]
    Locked(PathBuf),
    /// The run's file is a symbolic link, or not a file at all.
    #[error("{} is not a regular file", .0.display())]
    NotAFile(PathBuf),
    /// Something took the file away or put another in its place.
    #[error("{} was moved, deleted or replaced while recording", .0.display())]
    Replaced(PathBuf),
    /// Something other than the recorder changed the length of the file.
    #[error("{} was changed by something else while recording: {found} bytes, expected {expected}", path.display())]
    Changed {
        /// The file.
        path: PathBuf,
        /// How long the recorder left it.
        expected: u64,
        /// How long it is.
        found: u64,
    },
    /// The file cannot be continued, because its sequence numbers are not 1 to n in order.
    #[error("{} cannot be continued: {why}", path.display())]
    NotDense {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        why: String,
    },
    /// A whole line of the file is beyond the limits it is read with, so what it says is not known.
    #[error("{}, {at}: {fault}; the file is left as it is", path.display())]
    BeyondLimits {
        /// The file.
        path: PathBuf,
        /// The line.
        at: Position,
        /// Which limit.
        fault: Fault,
    },
    /// The file holds something, but no event.
    #[error("{} is not a transcript: there is no event in it", .0.display())]
    NotATranscript(PathBuf),
    /// The file holds another run.
    #[error("{} holds run {found}, not {expected}", path.display())]
    OtherRun {
        /// The file.
        path: PathBuf,
        /// The run in it.
        found: String,
        /// The run that was asked for.
        expected: RunId,
    },
    /// The run was recorded with another parent.
    #[error("run {run} was recorded with {}, not with {}", described(found.as_ref()), described(expected.as_ref()))]
    OtherParent {
        /// The run.
        run: RunId,
        /// The parent in the file.
        found: Option<RunId>,
        /// The parent that was asked for.
        expected: Option<RunId>,
    },
    /// The last event of the file cannot be read.
    #[error("the end of {} cannot be read: {fault}", path.display())]
    Tail {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        fault: Fault,
    },
    /// The event that was asked about is not recorded.
    #[error("run {run} has no event {seq} yet; its last is {last}")]
    NotRecorded {
        /// The run.
        run: RunId,
        /// The event that was asked about.
        seq: u64,
        /// The last event.
        last: u64,
    },
    /// Data could not be brought to disk. What was not acknowledged may be lost, so the recorder
    /// takes no more.
    #[error("could not sync {}: {message}", path.display())]
    SyncFailed {
        /// The file.
        path: PathBuf,
        /// What the system said.
        message: String,
    },
    /// The operating system refused.
    #[error("could not {action} {}: {source}", path.display())]
    Io {
        /// What was tried.
        action: &'static str,
        /// On what.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
}

fn described(parent: Option<&RunId>) -> String {
    parent.map_or_else(
        || "no parent".to_owned(),
        |parent| format!("parent {parent}"),
    )
}

impl Error {
    pub(crate) fn io(
        action: &'static str,
        path: impl Into<PathBuf>,
    ) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        move |source| Self::Io {
            action,
            path,
            source,
        }
    }
}
