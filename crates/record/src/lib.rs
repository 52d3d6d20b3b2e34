//! The recorder.
mod clock;
mod commit;
mod error;
mod fanout;
mod follow;
mod journal;
mod medium;
mod recorder;
mod recover;
mod sync;

pub use clock::{Clock, SystemClock};
pub use commit::Durability;
pub use error::Error;
pub use fanout::{
    Batch, FanOutStats, LagWarning, Line, Next, SubscriberStats, Subscription, TryNextError,
};
pub use follow::{Followed, Follower};
pub use journal::{Journal, repair};
pub use medium::Medium;
pub use recorder::{Masker, OnLag, Options, Recorder};
pub use recover::{Mended, SetAside, torn_path};
