//! The time, as the recorder has it.

use std::fmt;
use std::sync::Arc;

use quipu_model::Timestamp;

/// The clock of a run: that of its recorder, so that tests can set it.
#[derive(Clone)]
pub(super) struct Clock(pub(super) Arc<dyn quipu_record::Clock>);

impl Clock {
    pub(super) fn now(&self) -> Timestamp {
        self.0.now()
    }
}

impl fmt::Debug for Clock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Clock")
    }
}
