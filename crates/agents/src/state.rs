//! What is kept between two readings of the same log, as bytes.

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::Reader;

/// Changes whenever the adapters do, because a reader's state only means something to the code that
/// wrote it. A state of another version is not used; the log is read again from its beginning.
const VERSION: u16 = 3;

/// What is kept, and the texts in it: whoever keeps it may not want to keep each text.
#[derive(Debug, Clone, Default)]
pub struct Saved {
    /// As bytes.
    pub bytes: Vec<u8>,
    /// The texts.
    pub texts: Vec<String>,
}

/// As bytes, with the texts that are in them.
pub fn save<T: Serialize>(state: &T) -> Saved {
    Saved {
        bytes: bytes(state),
        texts: crate::texts::texts(state),
    }
}

/// As bytes.
pub fn bytes<T: Serialize>(state: &T) -> Vec<u8> {
    // Only types that always serialise are kept: numbers, texts, lists and maps of them.
    postcard::to_stdvec(&(VERSION, state)).unwrap_or_default()
}

/// A reader that goes on from where another was, or a new one. `None` when the state is not understood.
pub(crate) fn open<R>(saved: Option<&[u8]>, new: impl FnOnce() -> R) -> Option<Box<dyn Reader>>
where
    R: Reader + DeserializeOwned + 'static,
{
    Some(Box::new(match saved {
        Some(saved) => load(saved)?,
        None => new(),
    }))
}

/// A reader whose field `session` is what it knows of the session, and all of which is kept.
macro_rules! keeps_session {
    () => {
        fn session(&self) -> &$crate::Session {
            &self.session
        }

        fn save(&self) -> $crate::state::Saved {
            $crate::state::save(self)
        }
    };
}

pub(crate) use keeps_session;

/// From bytes; `None` when another version wrote them, or they are damaged.
pub fn load<T: DeserializeOwned>(bytes: &[u8]) -> Option<T> {
    let (version, rest) = postcard::take_from_bytes::<u16>(bytes).ok()?;
    if version != VERSION {
        return None;
    }
    postcard::from_bytes(rest).ok()
}
