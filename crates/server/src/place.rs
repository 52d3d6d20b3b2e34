//! Where the server of a home is: `server.json`, and the lock that makes it the only one.

use std::fs::File;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

/// The file that says where the server is. Only its owner can read it: it has the token.
const NAME: &str = "server.json";
const LOCK: &str = "server.lock";

/// How often a home that is taken is looked at again, and how soon.
const LOOKS: u32 = 40;
const LOOK: std::time::Duration = std::time::Duration::from_millis(10);

/// Where the server of a home is.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Place {
    /// The process.
    pub pid: u32,
    /// Its version.
    pub version: String,
    /// When it started.
    pub started_at: String,
    /// Where it listens on TCP.
    pub urls: Vec<String>,
    /// Its Unix sockets.
    pub sockets: Vec<PathBuf>,
    /// The token of this start.
    pub token: String,
}

/// Without the token.
impl std::fmt::Debug for Place {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Place")
            .field("pid", &self.pid)
            .field("urls", &self.urls)
            .field("sockets", &self.sockets)
            .finish_non_exhaustive()
    }
}

/// Keeps a home for one server. It is given up when this is dropped, or the process ends in any way.
#[derive(Debug)]
pub struct Claim {
    home: PathBuf,
    _lock: File,
}

/// Why a home could not be claimed.
#[derive(Debug, thiserror::Error)]
pub enum ClaimError {
    /// Another server has it. Where that is, if it says so.
    #[error("another server serves this home")]
    Taken(Option<Box<Place>>),
    /// The home cannot be used.
    #[error("cannot use {path}: {source}", path = .path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
}

impl Claim {
    /// Claims a home.
    ///
    /// # Errors
    ///
    /// [`ClaimError::Taken`] when another server has it.
    pub fn new(home: &Path) -> Result<Self, ClaimError> {
        let path = home.join(LOCK);
        let fault = |path: &Path| {
            let path = path.to_owned();
            move |source| ClaimError::Io { path, source }
        };
        quipu_files::create_directory(home).map_err(fault(home))?;
        let mut options = quipu_files::options();
        let lock = options.read(true).write(true).create(true).truncate(false);
        let lock = lock.open(&path).map_err(fault(&path))?;
        let mut left = LOOKS;
        loop {
            match lock.try_lock() {
                Ok(()) => {
                    // What a killed server left would lead others to where it was.
                    drop(std::fs::remove_file(home.join(NAME)));
                    return Ok(Self {
                        home: home.to_owned(),
                        _lock: lock,
                    });
                }
                Err(std::fs::TryLockError::Error(source)) => return Err(fault(&path)(source)),
                Err(std::fs::TryLockError::WouldBlock) => {}
            }
            // Whoever asks where the server is has the lock for a moment, which makes nobody a server; and one that is
            // starting says soon where it is.
            left -= 1;
            let there = read(home).filter(|_| left < LOOKS / 2);
            if there.is_some() || left == 0 {
                return Err(ClaimError::Taken(there.map(Box::new)));
            }
            std::thread::sleep(LOOK);
        }
    }

    /// Says where the server is.
    ///
    /// # Errors
    ///
    /// When the file cannot be written.
    pub fn announce(&self, place: &Place) -> Result<(), ClaimError> {
        let path = self.home.join(NAME);
        let fault = |source| ClaimError::Io {
            path: path.clone(),
            source,
        };
        let text = serde_json::to_vec_pretty(place).map_err(|error| fault(error.into()))?;
        let mut file = tempfile::NamedTempFile::new_in(&self.home).map_err(fault)?;
        file.write_all(&text).map_err(fault)?;
        file.persist(&path).map_err(|error| fault(error.error))?;
        Ok(())
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        // Whoever comes next writes it anew.
        drop(std::fs::remove_file(self.home.join(NAME)));
    }
}

fn read(home: &Path) -> Option<Place> {
    let bytes = std::fs::read(home.join(NAME)).ok()?;
    serde_json::from_slice(&bytes).ok()
}

/// Where the server of a home is, if one runs.
pub fn running(home: &Path) -> Option<Place> {
    let lock = File::open(home.join(LOCK)).ok()?;
    match lock.try_lock_shared() {
        Err(std::fs::TryLockError::WouldBlock) => read(home),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_server_has_a_home_and_says_where_it_is() {
        let home = tempfile::tempdir().unwrap();
        assert_eq!(running(home.path()), None);
        let claim = Claim::new(home.path()).unwrap();
        let place = Place {
            pid: 1,
            version: "0".to_owned(),
            started_at: "2026-01-01T00:00:00Z".to_owned(),
            urls: vec!["http://127.0.0.1:1".to_owned()],
            sockets: Vec::new(),
            token: "secret".to_owned(),
        };
        claim.announce(&place).unwrap();
        assert_eq!(running(home.path()), Some(place.clone()));
        let taken = Claim::new(home.path()).unwrap_err();
        assert!(matches!(taken, ClaimError::Taken(Some(there)) if *there == place));
        assert!(!format!("{place:?}").contains("secret"));
        drop(claim);
        assert_eq!(running(home.path()), None);
        // Whoever just looks is not in the way.
        let looking = File::open(home.path().join(LOCK)).unwrap();
        looking.try_lock_shared().unwrap();
        let looked = std::thread::spawn(move || {
            std::thread::sleep(LOOK * 3);
            drop(looking);
        });
        let mut left = File::create(home.path().join(NAME)).unwrap();
        left.write_all(&serde_json::to_vec(&place).unwrap())
            .unwrap();
        let claim = Claim::new(home.path()).unwrap();
        looked.join().unwrap();
        // Nor is what a killed server left believed, while the next one starts.
        assert_eq!(running(home.path()), None);
        let taken = Claim::new(home.path()).unwrap_err();
        assert!(matches!(taken, ClaimError::Taken(None)));
        drop(claim);
    }
}
