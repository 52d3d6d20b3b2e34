//! Names made of content: SHA-256, in hex, over two levels of directories.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;
use std::sync::Arc;

use quipu_model::hex;
use sha2::Digest as _;

use crate::FileError;
use crate::objects::{Object, ObjectName, Objects};

/// The SHA-256 of some bytes. Shown and parsed as 64 lowercase hex digits.
///
/// ```
/// use quipu_store::address::Digest;
///
/// let digest = Digest::of(b"");
/// assert!(digest.to_string().starts_with("e3b0c442"));
/// assert_eq!(digest.to_string().parse(), Ok(digest));
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Digest([u8; 32]);

impl Digest {
    /// The digest of these bytes.
    pub fn of(bytes: &[u8]) -> Self {
        Self(sha2::Sha256::digest(bytes).into())
    }

    /// The digest as bytes.
    pub fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

impl From<[u8; 32]> for Digest {
    fn from(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&hex::encode(&self.0))
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// The text is not a digest.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("not a SHA-256 in 64 lowercase hex digits: {0:?}")]
pub struct NotADigest(String);

impl FromStr for Digest {
    type Err = NotADigest;

    fn from_str(text: &str) -> Result<Self, NotADigest> {
        // One spelling only, because names of files are compared as text.
        let digits = Some(text).filter(|text| hex::is_lowercase(text));
        digits
            .and_then(hex::decode_array)
            .map(Self)
            .ok_or_else(|| NotADigest(text.to_owned()))
    }
}

/// Objects that are named by a digest.
#[derive(Debug)]
pub(crate) struct Shelf {
    objects: Arc<dyn Objects>,
    /// How names end, with the dot; may be empty.
    extension: &'static str,
}

impl Shelf {
    pub(crate) fn new(objects: Arc<dyn Objects>, extension: &'static str) -> Self {
        Self { objects, extension }
    }

    /// What the objects are in.
    pub(crate) fn objects(&self) -> &dyn Objects {
        &*self.objects
    }

    /// The name of the object with this digest.
    pub(crate) fn name_of(&self, digest: &Digest) -> ObjectName {
        ObjectName::of_digest(digest, self.extension)
    }

    /// Where the object with this digest is, or would be.
    pub(crate) fn path_of(&self, digest: &Digest) -> PathBuf {
        self.objects.place(&self.name_of(digest))
    }

    /// Opens the object with this digest.
    pub(crate) fn open(&self, digest: &Digest) -> Result<Option<Box<dyn Object>>, FileError> {
        self.objects.open(&self.name_of(digest))
    }

    /// All digests, in order. Objects whose names are of another form are not ours and not listed.
    pub(crate) fn digests(&self) -> impl Iterator<Item = Result<Digest, FileError>> + use<> {
        let extension = self.extension;
        let listed = self.objects.list("");
        listed.filter_map(move |name| match name {
            Err(error) => Some(Err(error)),
            Ok(name) => {
                let (folder, rest) = name.parts();
                let rest = rest.strip_suffix(extension)?;
                let digits = (folder.len() == 2).then(|| format!("{folder}{rest}"))?;
                digits.parse().ok().map(Ok)
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::objects::Directory;

    #[test]
    fn a_digest_has_one_spelling() {
        let digest = Digest::of(b"abc");
        assert_eq!(
            digest.to_string(),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
        );
        let upper = digest.to_string().to_uppercase();
        for wrong in ["", "ab", &upper, &format!("{digest}00"), &"é".repeat(32)] {
            assert!(wrong.parse::<Digest>().is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn a_shelf_lists_its_own_files_in_order() {
        let root = tempfile::tempdir().unwrap();
        let at = root.path().to_owned();
        let objects = Directory::new(at.clone(), at.join("tmp"));
        let shelf = Shelf::new(Arc::new(objects), ".x");
        let mut expected = Vec::new();
        for text in ["a", "b", "c", "d"] {
            let digest = Digest::of(text.as_bytes());
            let path = shelf.path_of(&digest);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::File::create(&path).unwrap();
            std::fs::File::create(path.with_extension("other")).unwrap();
            expected.push(digest);
        }
        expected.sort();
        std::fs::create_dir(root.path().join("tmp")).unwrap();
        std::fs::File::create(root.path().join("zz")).unwrap();
        std::fs::File::create(root.path().join("00")).unwrap();
        let found: Result<Vec<_>, _> = shelf.digests().collect();
        assert_eq!(found.unwrap(), expected);
    }
}
