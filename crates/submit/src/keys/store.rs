//! The keys that were given out, in a file: one JSON object a line.
//!
//! The file is read whenever it is asked, so that a key that was revoked by one process is refused by the other.

use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use quipu_model::Timestamp;
use quipu_model::hex;
use quipu_record::{Clock, SystemClock};
use quipu_redact::{Key, KeyError};
use serde::{Deserialize, Serialize};
use subtle::ConstantTimeEq as _;

use super::{KeyId, Keys, Refused, Scope, Scopes, SecretKey};

/// The longest file that is read: some ten thousand keys.
const MAX_FILE: u64 = 16 << 20;
/// How long the prefix of an id is that is enough to name a key.
const SHORTEST_PREFIX: usize = 4;
/// How long a label may be.
const MAX_LABEL: usize = 200;

/// What is known of a key that was given out.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct KeyEntry {
    /// Its public id, `key_2a9f…`.
    key_id: String,
    /// What its submissions are grouped by.
    pseudonym: String,
    /// What it is for, in the words of whoever made it.
    label: String,
    created_at: Timestamp,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    revoked_at: Option<Timestamp>,
    /// What it may do. A line of before there were scopes has none, and means `submit`.
    #[serde(default)]
    scopes: Scopes,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    expires_at: Option<Timestamp>,
    salt: String,
    hash: String,
}

/// Neither the salt nor the hash.
impl std::fmt::Debug for KeyEntry {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("KeyEntry")
            .field("key_id", &self.key_id)
            .field("label", &self.label)
            .field("scopes", &self.scopes)
            .field("revoked_at", &self.revoked_at)
            .field("expires_at", &self.expires_at)
            .finish_non_exhaustive()
    }
}

impl KeyEntry {
    /// Its public id.
    pub fn key_id(&self) -> &str {
        &self.key_id
    }

    /// What its submissions are grouped by.
    pub fn pseudonym(&self) -> &str {
        &self.pseudonym
    }

    /// What it is for.
    pub fn label(&self) -> &str {
        &self.label
    }

    /// When it was made.
    pub fn created_at(&self) -> Timestamp {
        self.created_at
    }

    /// When it was revoked, if it was.
    pub fn revoked_at(&self) -> Option<Timestamp> {
        self.revoked_at
    }

    /// What it may do.
    pub fn scopes(&self) -> &Scopes {
        &self.scopes
    }

    /// Whether it may do this.
    pub fn may(&self, scope: Scope) -> bool {
        self.scopes.allow(scope)
    }

    /// When it stops being accepted; `None` for a key that does not expire.
    pub fn expires_at(&self) -> Option<Timestamp> {
        self.expires_at
    }

    fn is_of(&self, key: &SecretKey) -> bool {
        let (Some(salt), Some(hash)) = (
            hex::decode_array(&self.salt),
            hex::decode_array::<32>(&self.hash),
        ) else {
            return false;
        };
        key.hash(&Key::from_bytes(salt)).ct_eq(&hash).into()
    }
}

/// Why the file of keys is of no use.
#[derive(Debug, thiserror::Error)]
pub enum KeyStoreError {
    /// It cannot be read or written.
    #[error("{}: {source}", path.display())]
    Io {
        /// The file, or its directory.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// A line is no key.
    #[error("{}:{line}: this is no key that was given out", path.display())]
    Line {
        /// The file.
        path: PathBuf,
        /// The line, from one.
        line: usize,
    },
    /// It is longer than any such file is.
    #[error("{} is longer than {MAX_FILE} bytes", path.display())]
    TooLong {
        /// The file.
        path: PathBuf,
    },
    /// No key is meant.
    #[error("no key begins with {0:?}")]
    NoSuchKey(String),
    /// More than one key may be meant.
    #[error("{0:?} is not enough to tell which key is meant")]
    Ambiguous(String),
    /// What a key is for takes more words than there is room for.
    #[error("a label is one line of at most {MAX_LABEL} characters")]
    Label,
    /// A key would never be accepted.
    #[error("a key has to expire in the future")]
    Expiry,
    /// A key could not be made.
    #[error(transparent)]
    Random(#[from] KeyError),
}

/// What a key is to be like.
#[derive(Debug, Clone, Default)]
pub struct NewKey<'a> {
    /// What it is for.
    pub label: &'a str,
    /// What it may do.
    pub scopes: Scopes,
    /// When it stops being accepted.
    pub expires_at: Option<Timestamp>,
}

/// The keys that were given out.
#[derive(Clone)]
pub struct KeyStore {
    path: PathBuf,
    /// What decides whether a key has expired.
    clock: Arc<dyn Clock>,
}

impl std::fmt::Debug for KeyStore {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("KeyStore")
            .field("path", &self.path)
            .finish_non_exhaustive()
    }
}

impl KeyStore {
    /// The keys in a file, which need not be there yet.
    pub fn at(path: impl Into<PathBuf>) -> Self {
        Self {
            path: path.into(),
            clock: Arc::new(SystemClock),
        }
    }

    /// With another clock to tell whether a key has expired.
    #[must_use]
    pub fn with_clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.clock = clock;
        self
    }

    /// Makes a key that may submit. Its secret is in what is given back, and nowhere else.
    ///
    /// # Errors
    ///
    /// The file cannot be read or written, or the system gives no random bytes.
    pub fn create(
        &self,
        label: &str,
        clock: &dyn Clock,
    ) -> Result<(KeyEntry, SecretKey), KeyStoreError> {
        let new = NewKey {
            label,
            ..NewKey::default()
        };
        self.make(new, clock)
    }

    /// Makes a key. Its secret is in what is given back, and nowhere else.
    ///
    /// # Errors
    ///
    /// The file cannot be read or written, the label is too long, the key would have expired already, or the system
    /// gives no random bytes.
    pub fn make(
        &self,
        new: NewKey<'_>,
        clock: &dyn Clock,
    ) -> Result<(KeyEntry, SecretKey), KeyStoreError> {
        let (label, now) = (new.label, clock.now());
        if new.expires_at.is_some_and(|at| at <= now) {
            return Err(KeyStoreError::Expiry);
        }
        if label.chars().count() > MAX_LABEL || label.chars().any(char::is_control) {
            return Err(KeyStoreError::Label);
        }
        let _lock = self.lock()?;
        let mut entries = self.list()?;
        let key = loop {
            let key = SecretKey::random()?;
            let id = key.id().to_string();
            if entries.iter().all(|entry| entry.key_id != id) {
                break key;
            }
        };
        let salt = Key::random()?;
        let entry = KeyEntry {
            key_id: key.id().to_string(),
            pseudonym: key.pseudonym(),
            label: label.to_owned(),
            created_at: now,
            revoked_at: None,
            scopes: new.scopes,
            expires_at: new.expires_at,
            salt: hex::encode(salt.as_bytes()),
            hash: hex::encode(&key.hash(&salt)),
        };
        entries.push(entry.clone());
        self.replace(&entries)?;
        Ok((entry, key))
    }

    /// Every key, in the order they were made in.
    ///
    /// # Errors
    ///
    /// The file cannot be read, or holds something else.
    pub fn list(&self) -> Result<Vec<KeyEntry>, KeyStoreError> {
        let mut text = String::new();
        match File::open(&self.path) {
            Ok(file) => {
                let read = file.take(MAX_FILE + 1).read_to_string(&mut text);
                read.map_err(|source| self.io(source))?;
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(source) => return Err(self.io(source)),
        }
        if text.len() as u64 > MAX_FILE {
            let path = self.path.clone();
            return Err(KeyStoreError::TooLong { path });
        }
        let mut entries = Vec::new();
        for (index, line) in text.lines().enumerate() {
            if line.trim().is_empty() {
                continue;
            }
            // What the parser says may repeat what is there.
            let entry: Option<KeyEntry> = serde_json::from_str(line).ok();
            let entry = entry.filter(|entry| KeyId::parse(&entry.key_id).is_some());
            entries.push(entry.ok_or_else(|| KeyStoreError::Line {
                path: self.path.clone(),
                line: index + 1,
            })?);
        }
        Ok(entries)
    }

    /// Revokes the key whose id begins so, with or without `key_`. One that was revoked before stays as it is.
    ///
    /// # Errors
    ///
    /// No key is meant or more than one, or the file cannot be read or written.
    pub fn revoke(&self, prefix: &str, clock: &dyn Clock) -> Result<KeyEntry, KeyStoreError> {
        let digits = prefix.strip_prefix("key_").unwrap_or(prefix);
        if digits.len() < SHORTEST_PREFIX {
            return Err(KeyStoreError::Ambiguous(prefix.to_owned()));
        }
        let _lock = self.lock()?;
        let mut entries = self.list()?;
        let whole = format!("key_{}", digits.to_ascii_lowercase());
        let mut meant = entries
            .iter_mut()
            .filter(|it| it.key_id.starts_with(&whole));
        let Some(entry) = meant.next() else {
            return Err(KeyStoreError::NoSuchKey(prefix.to_owned()));
        };
        if meant.next().is_some() {
            return Err(KeyStoreError::Ambiguous(prefix.to_owned()));
        }
        if entry.revoked_at.is_none() {
            entry.revoked_at = Some(clock.now());
        }
        let entry = entry.clone();
        self.replace(&entries)?;
        Ok(entry)
    }

    fn io(&self, source: io::Error) -> KeyStoreError {
        let path = self.path.clone();
        KeyStoreError::Io { path, source }
    }

    fn directory(&self) -> &Path {
        match self.path.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => parent,
            _ => Path::new("."),
        }
    }

    /// Keeps other writers out, as long as it is held.
    fn lock(&self) -> Result<File, KeyStoreError> {
        let directory = self.directory();
        let at = |source| KeyStoreError::Io {
            path: directory.to_owned(),
            source,
        };
        quipu_files::create_directory(directory).map_err(at)?;
        let mut path = self.path.clone().into_os_string();
        path.push(".lock");
        let file = quipu_files::open_lock(path.as_ref()).map_err(|source| self.io(source))?;
        file.lock().map_err(|source| self.io(source))?;
        Ok(file)
    }

    /// The old file or the new one is there, and never a part of one.
    fn replace(&self, entries: &[KeyEntry]) -> Result<(), KeyStoreError> {
        let write = || -> io::Result<()> {
            let mut file = tempfile::Builder::new()
                .permissions(quipu_files::file_permissions())
                .tempfile_in(self.directory())?;
            for entry in entries {
                serde_json::to_writer(&mut file, entry)?;
                file.write_all(b"\n")?;
            }
            file.as_file().sync_all()?;
            file.persist(&self.path).map_err(|error| error.error)?;
            File::open(self.directory())?.sync_all()
        };
        write().map_err(|source| self.io(source))
    }
}

impl Keys for KeyStore {
    fn check(&self, presented: &SecretKey) -> Result<KeyEntry, Refused> {
        let entries = self.list().map_err(|_| Refused::Unavailable)?;
        let id = presented.id().to_string();
        let Some(entry) = entries.into_iter().find(|entry| entry.key_id == id) else {
            // As long as it takes when the id is known.
            let _ = presented.hash(&Key::from_bytes([0; 32])).ct_eq(&[0; 32]);
            return Err(Refused::Unknown);
        };
        if !entry.is_of(presented) {
            return Err(Refused::Unknown);
        }
        if entry.revoked_at.is_some() {
            return Err(Refused::Revoked(presented.id()));
        }
        if entry.expires_at.is_some_and(|at| at <= self.clock.now()) {
            return Err(Refused::Expired(presented.id()));
        }
        Ok(entry)
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;
    use quipu_record::SystemClock;

    fn store() -> (tempfile::TempDir, KeyStore) {
        let directory = tempfile::tempdir().unwrap();
        let store = KeyStore::at(directory.path().join("deep/keys.jsonl"));
        (directory, store)
    }

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().permissions().mode() & 0o777
    }

    #[test]
    fn a_key_is_shown_once_and_kept_hashed() {
        let (directory, store) = store();
        assert_eq!(store.list().unwrap(), []);
        let (entry, key) = store.create("laptop", &SystemClock).unwrap();
        assert_eq!((entry.label(), entry.revoked_at()), ("laptop", None));
        assert_eq!(entry.key_id(), key.id().to_string());
        assert_eq!(entry.pseudonym(), key.pseudonym());
        let text = fs::read_to_string(&store.path).unwrap();
        assert!(
            !text.contains(&key.expose()[16..]),
            "the secret is not in the file"
        );
        assert_eq!(mode(&store.path), 0o600);
        assert_eq!(mode(&directory.path().join("deep")), 0o700);
        assert_eq!(store.check(&key).unwrap(), entry);
        let (second, _) = store.create("", &SystemClock).unwrap();
        assert_eq!(store.list().unwrap(), [entry, second]);
    }

    #[test]
    fn a_revoked_key_is_refused_and_another_is_not_known() {
        let (_directory, store) = store();
        let (_, key) = store.create("a", &SystemClock).unwrap();
        let (_, other) = store.create("b", &SystemClock).unwrap();
        let forged = format!("{}{}", &key.expose()[..16], &other.expose()[16..]);
        let forged = SecretKey::parse(&forged).unwrap();
        assert_eq!(store.check(&forged), Err(Refused::Unknown));
        assert_eq!(
            store.check(&SecretKey::random().unwrap()),
            Err(Refused::Unknown)
        );
        let id = key.id().to_string();
        let revoked = store.revoke(&id, &SystemClock).unwrap();
        assert!(revoked.revoked_at().is_some());
        assert_eq!(
            store.revoke(&id["key_".len()..], &SystemClock).unwrap(),
            revoked
        );
        assert_eq!(store.check(&key), Err(Refused::Revoked(key.id())));
        // That it was revoked is not told to one who has the id only.
        assert_eq!(store.check(&forged), Err(Refused::Unknown));
        assert!(store.check(&other).is_ok());
    }

    /// A time that is set.
    #[derive(Debug)]
    struct Hand(std::sync::Mutex<Timestamp>);

    impl Clock for Hand {
        fn now(&self) -> Timestamp {
            *self.0.lock().unwrap()
        }
    }

    #[test]
    fn a_key_may_do_what_its_scopes_say_until_it_expires() {
        let (_directory, store) = store();
        let clock = Arc::new(Hand(std::sync::Mutex::new(
            "2026-06-22T10:00:00Z".parse().unwrap(),
        )));
        let store = store.with_clock(Arc::<Hand>::clone(&clock));
        let end: Timestamp = "2026-06-23T10:00:00Z".parse().unwrap();
        let new = NewKey {
            label: "reader",
            scopes: Scopes::new([Scope::Read]),
            expires_at: Some(end),
        };
        let (entry, key) = store.make(new.clone(), &*clock).unwrap();
        assert!(entry.may(Scope::Read) && !entry.may(Scope::Submit));
        assert_eq!(store.check(&key).unwrap(), entry);
        assert_eq!(store.list().unwrap(), std::slice::from_ref(&entry));
        *clock.0.lock().unwrap() = end;
        assert_eq!(store.check(&key), Err(Refused::Expired(key.id())));
        assert!(matches!(
            store.make(new, &*clock),
            Err(KeyStoreError::Expiry)
        ));
        let header = format!("Bearer {}", key.expose());
        let refusal = super::super::authenticate(&store, Some(&header)).unwrap_err();
        assert_eq!(refusal.code, crate::protocol::Code::Expired);
        store.revoke(entry.key_id(), &*clock).unwrap();
        assert_eq!(store.check(&key), Err(Refused::Revoked(key.id())));
    }

    #[test]
    fn a_line_of_before_there_were_scopes_may_submit() {
        let (_directory, store) = store();
        let (_, key) = store.create("old", &SystemClock).unwrap();
        let text = fs::read_to_string(&store.path).unwrap();
        let old = text.replacen("\"scopes\":[\"submit\"],", "", 1);
        assert_ne!(old, text);
        let mut file = File::create(&store.path).unwrap();
        file.write_all(old.as_bytes()).unwrap();
        let entry = store.check(&key).unwrap();
        assert!(entry.may(Scope::Submit) && !entry.may(Scope::Read));
        let header = format!("bearer {}", key.expose());
        let allowed = super::super::authorize(&store, Some(&header), Scope::Submit);
        assert_eq!(allowed.unwrap(), entry);
        let refusal = super::super::authorize(&store, Some(&header), Scope::Admin).unwrap_err();
        assert_eq!(refusal.code, crate::protocol::Code::Forbidden);
        assert!(refusal.message.contains("`admin`"), "{}", refusal.message);
        let refusal = super::super::authenticate(&store, None).unwrap_err();
        assert_eq!(refusal.code, crate::protocol::Code::Unauthorized);
    }

    #[test]
    fn a_prefix_names_one_key_or_none() {
        let (_directory, store) = store();
        store.create("a", &SystemClock).unwrap();
        for (prefix, why) in [
            ("key_", "not enough"),
            ("", "not enough"),
            ("zzzz", "no key"),
        ] {
            let error = store.revoke(prefix, &SystemClock).unwrap_err();
            assert!(error.to_string().contains(why), "{error}");
        }
        let mut entries = store.list().unwrap();
        let mut twin = entries[0].clone();
        twin.key_id = format!("{}0", &twin.key_id[..15]);
        entries[0].key_id = format!("{}1", &twin.key_id[..15]);
        entries.push(twin);
        store.replace(&entries).unwrap();
        let prefix = &entries[0].key_id[..12];
        let error = store.revoke(prefix, &SystemClock).unwrap_err();
        assert!(matches!(error, KeyStoreError::Ambiguous(_)), "{error}");
    }

    #[test]
    fn a_line_that_is_no_key_is_named_and_not_repeated() {
        let (_directory, store) = store();
        store.create("a", &SystemClock).unwrap();
        let mut file = File::options().append(true).open(&store.path).unwrap();
        file.write_all(b"{\"keyId\":\"hunter2\"}\n").unwrap();
        let error = store.list().unwrap_err();
        assert!(error.to_string().contains("keys.jsonl:2"), "{error}");
        assert!(!format!("{error} {error:?}").contains("hunter2"));
        assert_eq!(
            store.check(&SecretKey::random().unwrap()),
            Err(Refused::Unavailable)
        );
        assert!(
            store.create("b", &SystemClock).is_err(),
            "nothing is lost by writing"
        );
        let label = "x".repeat(201);
        assert!(matches!(
            store.create(&label, &SystemClock),
            Err(KeyStoreError::Label)
        ));
    }
}
