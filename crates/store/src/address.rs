//! Names made of content: SHA-256, in hex, over two levels of directories.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use quipu_model::hex;
use sha2::Digest as _;

use crate::FileError;

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

/// A directory of files that are named by a digest: `ab/cdef…`, so that no directory gets too large.
#[derive(Debug)]
pub(crate) struct Shelf {
    root: PathBuf,
    /// How file names end, with the dot; may be empty.
    extension: &'static str,
}

impl Shelf {
    pub(crate) fn new(root: PathBuf, extension: &'static str) -> Self {
        Self { root, extension }
    }

    /// Where the file with this name is, or would be.
    pub(crate) fn path_of(&self, digest: &Digest) -> PathBuf {
        let name = digest.to_string();
        let (fan, rest) = name.split_at(2);
        self.root
            .join(fan)
            .join(format!("{rest}{}", self.extension))
    }

    /// All files, in the order of their digests. Files whose names are of another form are not ours
    /// and not listed.
    pub(crate) fn entries(
        &self,
    ) -> impl Iterator<Item = Result<(Digest, PathBuf), FileError>> + use<> {
        let extension = self.extension;
        let (fans, failed) = match list(&self.root) {
            Ok(fans) => (fans, None),
            Err(e) => (Vec::new(), Some(Err(e))),
        };
        let files = fans.into_iter().flat_map(move |(fan, directory)| {
            let is_fan = fan.len() == 2 && hex::is_lowercase(&fan);
            let listed = if is_fan {
                list(&directory)
            } else {
                Ok(Vec::new())
            };
            match listed {
                Err(e) => vec![Err(e)],
                Ok(names) => names
                    .into_iter()
                    .filter_map(|(name, path)| {
                        let rest = name.strip_suffix(extension)?;
                        Some(Ok((format!("{fan}{rest}").parse().ok()?, path)))
                    })
                    .collect(),
            }
        });
        failed.into_iter().chain(files)
    }
}

/// The names in a directory, sorted. A directory that is not there is empty.
fn list(directory: &Path) -> Result<Vec<(String, PathBuf)>, FileError> {
    let entries = match std::fs::read_dir(directory) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries.map_err(FileError::at("list", directory))?,
    };
    let mut names = Vec::new();
    for entry in entries {
        let entry = entry.map_err(FileError::at("list", directory))?;
        // A name that is not UTF-8 is not one of ours.
        if let Ok(name) = entry.file_name().into_string() {
            names.push((name, entry.path()));
        }
    }
    names.sort();
    Ok(names)
}

#[cfg(test)]
mod tests {
    use super::*;

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
        let shelf = Shelf::new(root.path().to_owned(), ".x");
        let mut expected = Vec::new();
        for text in ["a", "b", "c", "d"] {
            let digest = Digest::of(text.as_bytes());
            let path = shelf.path_of(&digest);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::File::create(&path).unwrap();
            std::fs::File::create(path.with_extension("other")).unwrap();
            expected.push((digest, path));
        }
        expected.sort();
        std::fs::create_dir(root.path().join("tmp")).unwrap();
        std::fs::File::create(root.path().join("zz")).unwrap();
        let found: Result<Vec<_>, _> = shelf.entries().collect();
        assert_eq!(found.unwrap(), expected);

        std::fs::File::create(root.path().join("00")).unwrap();
        assert!(shelf.entries().next().unwrap().is_err());
        assert_eq!(shelf.entries().flatten().count(), 4);
    }
}
