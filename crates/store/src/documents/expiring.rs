//! Logs that are deleted soon.

use jiff::Timestamp;
use quipu_api::Time;
use quipu_api::home::{self, ExpiringAgent, ExpiringLog};

use super::path;
use crate::facade::{Expiring, Expiry, LogState};

/// The most logs that are named.
const MOST: usize = 100;

/// Logs that are deleted soon and are not kept, as they were found at this time.
pub fn expiring(found: &Expiring, looked_at: Timestamp, now: Timestamp) -> home::Expiring {
    let expiry = found.expiry;
    let logs = found.logs.iter().take(MOST).map(|(log, state)| {
        let modified = log.stamp.modified.map(i128::from);
        let modified = modified.and_then(|at| Timestamp::from_nanosecond(at).ok());
        ExpiringLog {
            agent: Expiry::AGENT.to_owned(),
            path: path(&log.path),
            bytes: log.stamp.size,
            modified: modified.map(Time::of),
            days_left: modified.map(|at| expiry.days_left(at, now)),
            changed: *state == LogState::Changed,
        }
    });
    let agent = ExpiringAgent {
        agent: Expiry::AGENT.to_owned(),
        after_days: expiry.days,
        expiring: found.all,
        expiring_new: found.logs.len() as u64,
    };
    home::Expiring {
        looked_at: Some(Time::of(looked_at)),
        agents: if found.all > 0 {
            vec![agent]
        } else {
            Vec::new()
        },
        logs: logs.collect(),
        more: found.logs.len().saturating_sub(MOST) as u64,
    }
}
