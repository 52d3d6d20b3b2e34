//! Keys that are shown: who has them, what they may do, and how often somebody may be wrong.

use std::collections::HashMap;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use http::header::{HeaderValue, RETRY_AFTER};
use parking_lot::Mutex;
use quipu_record::Clock;
use quipu_submit::KeyStore;
use quipu_submit::keys::{KeyEntry, Scope, authenticate};
use quipu_submit::protocol::Code;
use quipu_submit::server::{Gate as _, RateLimit};
use sha2::{Digest as _, Sha256};

use crate::access::KeyHolder;
use crate::app::KeyCheck;
use crate::problem::Problem;

/// The keys of a home, behind limits on how often they are used and guessed.
pub struct HomeKeys {
    keys: KeyStore,
    path: PathBuf,
    clock: Arc<dyn Clock>,
    limits: Arc<RateLimit>,
    known: Mutex<Known>,
}

impl std::fmt::Debug for HomeKeys {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("HomeKeys")
            .field("keys", &self.keys)
            .finish_non_exhaustive()
    }
}

/// Keys that were shown and are right, by their digest, as long as the file of keys is this one.
#[derive(Default)]
struct Known {
    file: Option<FileState>,
    entries: HashMap<[u8; 32], KeyEntry>,
}

/// How many of them are kept.
const KNOWN: usize = 1024;

/// Which file, and when it last changed. Whoever changes keys puts another file in its place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct FileState {
    inode: (u64, u64),
    size: u64,
    modified: (i64, i64),
    changed: (i64, i64),
}

impl FileState {
    fn of(path: &Path) -> Option<Self> {
        use std::os::unix::fs::MetadataExt as _;
        let file = std::fs::metadata(path).ok()?;
        Some(Self {
            inode: (file.dev(), file.ino()),
            size: file.size(),
            modified: (file.mtime(), file.mtime_nsec()),
            changed: (file.ctime(), file.ctime_nsec()),
        })
    }
}

impl HomeKeys {
    /// The keys in `keys.jsonl`. Whether the file has changed is looked at with each request, so that a key that is revoked is
    /// refused at once.
    pub fn new(home: &Path, clock: Arc<dyn Clock>, limits: Arc<RateLimit>) -> Self {
        let path = home.join("keys.jsonl");
        let keys = KeyStore::at(path.clone()).with_clock(Arc::clone(&clock));
        Self {
            keys,
            path,
            clock,
            limits,
            known: Mutex::default(),
        }
    }

    /// Whether somebody may show a key at all.
    fn may_try(&self, peer: Option<IpAddr>) -> Result<(), Problem> {
        let wait = peer.map_or(Ok(()), |peer| self.limits.may_try(peer));
        wait.map_err(|wait| too_many(wait, "too many wrong keys came from this address"))
    }

    fn admit(&self, entry: &KeyEntry) -> Result<KeyHolder, Problem> {
        let wait = self.limits.admit(entry);
        wait.map_err(|wait| too_many(wait, "too many requests came with this key"))?;
        Ok(KeyHolder {
            submit: entry.may(Scope::Submit),
            read: entry.may(Scope::Read),
            admin: entry.may(Scope::Admin),
            key_id: entry.key_id().to_owned(),
        })
    }

    /// A key that was right when it was last looked up in this file.
    fn known(&self, key: &str) -> Option<KeyEntry> {
        let now = FileState::of(&self.path)?;
        let known = self.known.lock();
        let entry = known.entries.get(&digest(key))?;
        let is_over = entry.expires_at().is_some_and(|at| at <= self.clock.now());
        (known.file == Some(now) && !is_over).then(|| entry.clone())
    }

    fn keep(&self, key: &str, file: Option<FileState>, entry: &KeyEntry) {
        let mut known = self.known.lock();
        if known.file != file || known.entries.len() >= KNOWN {
            known.entries.clear();
            known.file = file;
        }
        known.entries.insert(digest(key), entry.clone());
    }
}

fn digest(key: &str) -> [u8; 32] {
    Sha256::digest(key.as_bytes()).into()
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
        self.may_try(peer)?;
        // Before it is read: what changes meanwhile is read again.
        let file = FileState::of(&self.path);
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
        self.keep(key, file, &entry);
        self.admit(&entry)
    }

    fn recall(&self, key: &str, peer: Option<IpAddr>) -> Option<Result<KeyHolder, Problem>> {
        let entry = self.known(key)?;
        Some(self.may_try(peer).and_then(|()| self.admit(&entry)))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicI64, Ordering};

    use quipu_model::Timestamp;
    use quipu_record::SystemClock;
    use quipu_submit::keys::{NewKey, Scopes};

    use super::*;

    struct Ahead(AtomicI64);

    impl Clock for Ahead {
        fn now(&self) -> Timestamp {
            let seconds = jiff::SignedDuration::from_secs(self.0.load(Ordering::SeqCst));
            SystemClock.now().checked_add(seconds).unwrap()
        }
    }

    #[test]
    fn a_key_is_remembered_until_the_file_changes_or_it_expires() {
        let home = tempfile::tempdir().unwrap();
        let store = KeyStore::at(home.path().join("keys.jsonl"));
        let make = |seconds: Option<i64>| {
            let after = |s| SystemClock.now() + jiff::SignedDuration::from_secs(s);
            let new = NewKey {
                scopes: Scopes::new([Scope::Read]),
                expires_at: seconds.map(after),
                ..NewKey::default()
            };
            store.make(new, &SystemClock).unwrap().1
        };
        let (one, hour) = (make(None), make(Some(3600)));
        let clock = Arc::new(Ahead(AtomicI64::new(0)));
        let shared: Arc<dyn Clock> = Arc::<Ahead>::clone(&clock);
        let limits = RateLimit::new(Arc::clone(&shared), RateLimit::KEYS, RateLimit::FAILURES);
        let keys = HomeKeys::new(home.path(), shared, Arc::new(limits));
        let (one_text, hour_text) = (one.expose(), hour.expose());
        assert!(
            keys.recall(&one_text, None).is_none(),
            "it was not shown yet"
        );
        for key in [&one_text, &hour_text] {
            assert!(keys.check(key, None).unwrap().read);
            let again = keys.recall(key, None).unwrap().unwrap();
            assert!(again.read && !again.submit);
        }
        assert!(keys.recall(&one_text[..one_text.len() - 1], None).is_none());
        // A key that was right is refused when it has expired, although the file is the same.
        clock.0.store(3601, Ordering::SeqCst);
        assert!(keys.recall(&hour_text, None).is_none());
        assert!(keys.check(&hour_text, None).is_err());
        assert!(keys.recall(&one_text, None).is_some());
        // From the next request on.
        store.revoke(&one.id().to_string(), &SystemClock).unwrap();
        assert!(keys.recall(&one_text, None).is_none());
        assert!(keys.check(&one_text, None).is_err());
        assert!(keys.recall(&one_text, None).is_none());
        // An address that guessed too often does not get in with what is remembered, either.
        clock.0.store(0, Ordering::SeqCst);
        keys.check(&hour_text, None).unwrap();
        let peer = Some("203.0.113.7".parse().unwrap());
        while keys.check("qk_wrong", peer).unwrap_err().status() != 429 {}
        assert!(keys.recall(&hour_text, peer).unwrap().is_err());
        assert!(keys.recall(&hour_text, None).unwrap().is_ok());
    }
}
