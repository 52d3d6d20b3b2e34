//! Keys that are shown: who has them, what they may do, and how often somebody may be wrong.

use std::net::IpAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use http::header::{HeaderValue, RETRY_AFTER};
use quipu_record::Clock;
use quipu_submit::KeyStore;
use quipu_submit::keys::{Scope, authenticate};
use quipu_submit::protocol::Code;
use quipu_submit::server::{Gate as _, RateLimit};

use crate::access::KeyHolder;
use crate::app::KeyCheck;
use crate::problem::Problem;

/// The keys of a home, behind limits on how often they are used and guessed.
#[derive(Debug)]
pub struct HomeKeys {
    keys: KeyStore,
    limits: Arc<RateLimit>,
}

impl HomeKeys {
    /// The keys in `keys.jsonl`. They are looked up at each request, so that one that is revoked is refused at once.
    pub fn new(home: &Path, clock: Arc<dyn Clock>, limits: Arc<RateLimit>) -> Self {
        let keys = KeyStore::at(home.join("keys.jsonl")).with_clock(clock);
        Self { keys, limits }
    }
}

/// How long to wait, in whole seconds.
pub(crate) fn seconds(wait: Duration) -> u64 {
    wait.as_secs() + u64::from(wait.subsec_nanos() > 0)
}

fn too_many(wait: Duration, what: &str) -> Problem {
    Problem::new(
        http::StatusCode::TOO_MANY_REQUESTS,
        "too_many_requests",
        "Too many requests",
    )
    .detail(format!("{what}; try again in {} s", seconds(wait)))
    .header(RETRY_AFTER, HeaderValue::from(seconds(wait)))
}

impl KeyCheck for HomeKeys {
    fn check(&self, key: &str, peer: Option<IpAddr>) -> Result<KeyHolder, Problem> {
        if let Some(peer) = peer {
            let wait = self.limits.may_try(peer);
            wait.map_err(|wait| too_many(wait, "too many wrong keys came from this address"))?;
        }
        let entry = match authenticate(&self.keys, Some(&format!("Bearer {key}"))) {
            Ok(entry) => entry,
            Err(refusal) => {
                if refusal.code == Code::Internal {
                    return Err(Problem::store("the keys cannot be read"));
                }
                if let Some(peer) = peer {
                    self.limits.failed(peer);
                }
                return Err(match refusal.code {
                    Code::Unauthorized => Problem::unauthorized("this key is not known"),
                    _ => Problem::forbidden(refusal.message),
                });
            }
        };
        let wait = self.limits.admit(&entry);
        wait.map_err(|wait| too_many(wait, "too many requests came with this key"))?;
        Ok(KeyHolder {
            submit: entry.may(Scope::Submit),
            read: entry.may(Scope::Read),
            admin: entry.may(Scope::Admin),
            key_id: entry.key_id().to_owned(),
        })
    }
}
