//! The recorder: what happens in a run, durably, in order, and live.
//!
//! # What it promises
//!
//! * **Line N has seq N.** Taking a sequence number, writing the line and handing it to subscribers is
//!   one critical section. A failure of any kind (an event that is too large, a full disk, a panic in a
//!   caller, a cancelled task) uses up no number and leaves no gap.
//! * **Lines are whole.** A write that fails half-way is undone before anything else is written. A
//!   process that is killed leaves at most one torn line at the end, which the next to open the run sets
//!   aside in a `.torn` file, and says so. Nothing is ever glued to it, and no byte is destroyed.
//!   Only bytes behind the last event that have no line end, or are not an event at all, are set aside: a whole line
//!   that is beyond [`RecorderOptions::limits`] is an error, and its number stays taken.
//! * **Lines are sealed.** Each ends in a checksum that covers it and the line before
//!   ([`quipu_exchange::Chain`]); `quipu verify` tells a bit that has turned since.
//! * **A run has one writer.** A second process is refused, with an error that says why.
//! * **Durability is the caller's choice** ([`Durability`]), and [`Recorder::wait_durable`] tells when
//!   an event is on disk.
//! * **Subscribers never hold up the writer.** Each has a bounded buffer; what does not fit is missed,
//!   the subscriber is told exactly which events, and they can be had from the file
//!   ([`Recorder::follow`] does that by itself).
//! * **Any event is found quickly**, by way of a sparse index beside a long run. [`RunLog`] reads pages of events and
//!   follows a run from any process, while it is recorded and after.
//! * **Many runs cost two threads**: all recorders of a process share one that syncs and one that wakes.
//!
//! # Threat model
//!
//! Transcripts hold prompts, code and secrets. Files are 0600, also when they existed before, and
//! directories are made 0700 (`quipu verify` tells when one that existed is not). A run id cannot lead out of its directory ([`quipu_model::RunId`]), a run's file
//! cannot be a symbolic link, a device or a pipe. Nothing is masked by default; [`RecorderOptions::masker`] sees
//! each event before it is written. A file that is moved, replaced or changed by something else while it
//! is recorded to is noticed within 100 ms, before any acknowledgement that an event is on disk, and
//! recording stops with an error.
//!
//! # An example
//!
//! ```
//! use quipu_model::{Block, Body, Draft, Fidelity, Place, RunId, Step};
//! use quipu_record::{Next, RecorderOptions, Storage};
//!
//! # let root = tempfile::tempdir()?;
//! let storage = Storage::at(root.path());
//! let run = RunId::new("550e8400-e29b-41d4-a716-446655440000")?;
//! let recorder = storage.record(&run, RecorderOptions::default())?;
//! let mut live = recorder.subscribe();
//!
//! recorder.record(&Draft::new(Place::run(), Body::RunStarted(Some(Step::new("nightly", "workflow")))))?;
//! let seq = recorder.record(&Draft::new(
//!     Place::step("review"),
//!     Body::AssistantMessage(vec![Block::text(Fidelity::AgentEmitted, "Found 2 issues.")]),
//! ))?;
//! recorder.wait_durable(seq)?;
//!
//! let Some(Next::Line(first)) = live.recv() else { panic!("an event") };
//! assert_eq!(first.seq(), 1);
//! recorder.close()?;
//! assert!(storage.verify(&storage.path_of(&run), Default::default())?.is_clean());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Where things are
//!
//! | module | what it owns |
//! |---|---|
//! | `recorder` | the critical section |
//! | `journal` | the file of a run: lock, append, undo |
//! | `recover` | the end of a file: survey, set aside, mend |
//! | `commit` | group commit |
//! | `fanout` | live events |
//! | `hub` | the two threads that all runs of a process share |
//! | `index` | where events begin in a file, and the `.idx` file beside it |
//! | `history` | events that are in the file of a run that is recorded to |
//! | `follow` | history and live as one |
//! | `log` | a run's file read by its events, from any process |
//! | `storage` | the directory: names, links, permissions, trees |
//! | `trace` | the same run as an `.agentlog` trace, live (feature `trace`, on unless left out: it needs all formats) |

mod clock;
mod commit;
mod error;
mod fanout;
#[cfg(test)]
#[cfg_attr(
    feature = "shuttle",
    expect(dead_code, reason = "the fan-out's tests need little of it")
)]
mod faulty;
mod follow;
mod history;
mod hub;
mod index;
mod journal;
mod log;
mod medium;
mod recorder;
mod recover;
#[cfg(all(test, feature = "shuttle"))]
mod shuttle_tests;
mod storage;
mod sync;
#[cfg(all(test, not(feature = "shuttle")))]
mod tests;
#[cfg(feature = "trace")]
mod trace;

pub use clock::{Clock, SystemClock};
pub use commit::Durability;
pub use error::Error;
pub use fanout::{
    Batch, FanOutStats, LagWarning, Line, Next, SubscriberStats, Subscription, TryNextError,
};
pub use follow::Follower;
pub use journal::{Journal, repair};
pub use log::{BadLine, FileLook, FileWatch, LogFollower, News, Page, PageEvent, RunLog};
pub use medium::Medium;
pub use recorder::{Masker, OnLag, Recorder, RecorderOptions};
pub use recover::{Mended, SetAside, torn_path};
pub use storage::{NotFound, Remark, RemarkKind, Storage};
#[cfg(feature = "trace")]
pub use trace::{KeepBlob, TraceError, TraceOptions, TracePlace, TraceWriter, Traced};
