//! How long a client may keep the server waiting.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::time::{Instant, Sleep};

/// The slowest that bytes may come and go, in bytes a second, after some time to spare.
const PACE: u64 = 1024;

/// Time to spare, which waiting uses up and bytes fill up again. So a client that moves a byte now and then does not last, and a slow
/// one that goes on does.
#[derive(Debug)]
pub(super) struct Patience {
    most: Duration,
    spare: Duration,
    waiting: Option<(Instant, Pin<Box<Sleep>>)>,
}

impl Patience {
    /// So much time to spare.
    pub(super) fn new(most: Duration) -> Self {
        Self {
            most,
            spare: most,
            waiting: None,
        }
    }

    /// So many bytes went through.
    pub(super) fn moved(&mut self, bytes: usize) {
        if let Some((since, _)) = self.waiting.take() {
            self.spare = self.spare.saturating_sub(since.elapsed());
        }
        let bytes = u64::try_from(bytes).unwrap_or(u64::MAX);
        let earned = Duration::from_millis(bytes.saturating_mul(1000) / PACE);
        self.spare = self.spare.saturating_add(earned).min(self.most);
    }

    /// Waits for the client; ready when there is no more time to spare.
    pub(super) fn wait(&mut self, context: &mut Context<'_>) -> Poll<io::Error> {
        let spare = self.spare;
        let (_, sleep) = self
            .waiting
            .get_or_insert_with(|| (Instant::now(), Box::pin(tokio::time::sleep(spare))));
        let late = || io::Error::new(io::ErrorKind::TimedOut, "the client took too long");
        sleep.as_mut().poll(context).map(|()| late())
    }
}
