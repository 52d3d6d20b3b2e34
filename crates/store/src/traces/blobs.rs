//! The blobs beside traces: what they are, who refers to them, and which look alike.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Read as _};

use super::Traces;
use super::error::Result;
use super::index::Looked;
use crate::FileError;
use crate::blobs::phash::{DHash, NEAR};
use crate::blobs::{BlobError, BlobId, hash, mime};
use crate::catalogue::Catalogue;

/// Larger ones are not looked at but for how they begin.
const MAX_LOOKED: u64 = 64 << 20;

/// How much of a large one is looked at.
const HEAD: u64 = 8 * 1024;

/// So many are put into the index at once.
const BATCH: usize = 256;

/// A blob, and what is known of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BlobRow {
    /// Its name.
    pub id: BlobId,
    /// How large it is, or is said to be.
    pub size: u64,
    /// Its type: what its bytes show, or what is said where it is missing.
    pub mime: String,
    /// What it looks like, where it is a picture.
    pub phash: Option<DHash>,
    /// Whether it is here. What a trace refers to may be kept elsewhere.
    pub is_here: bool,
    /// Whether its bytes are not those that its name stands for.
    pub is_damaged: bool,
    /// The full names of the traces that may refer to it.
    pub traces: Vec<String>,
    /// Whether an imported session refers to it.
    pub in_session: bool,
}

/// A blob that looks like another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Near {
    /// The blob.
    pub id: BlobId,
    /// In how many of 64 bits they differ.
    pub distance: u32,
}

impl Traces {
    /// All blobs that are here or that a `blob_ref` of a trace names, in order. Those that are new are
    /// looked at. `catalogue` knows which of them imported sessions refer to.
    ///
    /// # Errors
    ///
    /// When the index or the system refuses.
    pub fn blob_rows(&self, catalogue: Option<&dyn Catalogue>) -> Result<Vec<BlobRow>> {
        let damaged = self.look_at_blobs()?;
        let mut all = self.index.said_of_blobs()?;
        let mut here = self.index.blobs()?;
        for id in &damaged {
            let nothing = Looked {
                size: 0,
                mime: "application/octet-stream".to_owned(),
                phash: None,
            };
            here.insert(*id, all.get(id).cloned().unwrap_or(nothing));
        }
        let mut users = self.index.users_of_blobs()?;
        for (id, looked) in &here {
            // What somebody said of a picture that cannot be read here is better than nothing.
            let said = all.get(id).and_then(|said| said.phash);
            let mut looked = looked.clone();
            looked.phash = looked.phash.or(said);
            all.insert(*id, looked);
        }
        let mut rows = Vec::new();
        for (id, looked) in all {
            let in_session = match catalogue {
                Some(catalogue) => catalogue.uses_blob(&id.to_string()).map_err(|error| {
                    super::TraceError::Index {
                        path: catalogue.path().to_owned(),
                        why: error.to_string(),
                        damaged: false,
                    }
                })?,
                None => false,
            };
            rows.push(BlobRow {
                id,
                size: looked.size,
                mime: looked.mime,
                phash: looked.phash,
                is_here: here.contains_key(&id),
                is_damaged: damaged.contains(&id),
                traces: users.remove(&id).unwrap_or_default(),
                in_session,
            });
        }
        Ok(rows)
    }

    /// The blobs that look like this, the nearest first: those that differ in [`NEAR`] bits or fewer.
    ///
    /// # Errors
    ///
    /// When the index or the system refuses.
    pub fn near(&self, hash: DHash) -> Result<Vec<Near>> {
        self.look_at_blobs()?;
        let mut hashes: BTreeMap<BlobId, DHash> = BTreeMap::new();
        for looked in [self.index.said_of_blobs()?, self.index.blobs()?] {
            hashes.extend(
                looked
                    .into_iter()
                    .filter_map(|(id, looked)| Some((id, looked.phash?))),
            );
        }
        let mut near: Vec<Near> = hashes
            .into_iter()
            .map(|(id, other)| Near {
                id,
                distance: hash.distance(other),
            })
            .filter(|near| near.distance <= NEAR)
            .collect();
        near.sort_by_key(|near| (near.distance, near.id));
        Ok(near)
    }

    /// What a blob looks like; `None` when it is no picture that can be read.
    ///
    /// # Errors
    ///
    /// When the index or the system refuses.
    pub fn looks_like(&self, id: &BlobId) -> Result<Option<DHash>> {
        self.look_at_blobs()?;
        let looked = self.index.blobs()?.remove(id);
        let said = self.index.said_of_blobs()?.remove(id);
        Ok(looked
            .and_then(|it| it.phash)
            .or(said.and_then(|it| it.phash)))
    }

    /// Whether a trace may refer to a blob.
    ///
    /// # Errors
    ///
    /// When the index refuses.
    pub fn uses_blob(&self, id: &BlobId) -> Result<bool> {
        self.index.uses_blob(id)
    }

    /// Traces that may refer to more blobs than the index remembers.
    pub(crate) fn overflowing(&self) -> Result<Vec<String>> {
        self.index.overflowing()
    }

    /// The blob that is meant: any form of its name, or the beginning of one that is here.
    ///
    /// # Errors
    ///
    /// When none is meant, or several are.
    pub fn find_blob(&self, argument: &str) -> Result<BlobId> {
        if let Ok(id) = argument.parse() {
            return Ok(id);
        }
        let begin = argument.strip_prefix("sha256:").unwrap_or(argument);
        let mut found = Vec::new();
        for id in self.blobs.iter() {
            let id = id?;
            if !begin.is_empty() && id.to_string().starts_with(begin) {
                found.push(id);
            }
        }
        match found[..] {
            [id] => Ok(id),
            [] => Err(super::TraceError::NoBlob(argument.to_owned())),
            _ => Err(super::TraceError::SeveralBlobs {
                argument: argument.to_owned(),
                names: found.iter().map(ToString::to_string).collect(),
            }),
        }
    }

    /// Looks at blobs that are new, and forgets those that are gone. Gives those that are damaged.
    fn look_at_blobs(&self) -> Result<BTreeSet<BlobId>> {
        let mut damaged = BTreeSet::new();
        let mut known = self.index.blobs()?;
        let mut looked = Vec::new();
        for id in self.blobs.iter() {
            let id = id?;
            if known.remove(&id).is_some() {
                continue;
            }
            match self.look(&id) {
                Ok((size, mime, phash)) => looked.push((id, size, mime, phash)),
                // Gone since it was listed.
                Err(BlobError::Missing(_)) => {}
                Err(BlobError::Damaged(_)) => drop(damaged.insert(id)),
                Err(error) => return Err(error.into()),
            }
            if looked.len() >= BATCH {
                self.index.put_blobs(&looked)?;
                looked.clear();
            }
        }
        if !looked.is_empty() {
            self.index.put_blobs(&looked)?;
        }
        if !known.is_empty() {
            let gone: Vec<BlobId> = known.into_keys().collect();
            self.index.forget_blobs(&gone)?;
        }
        Ok(damaged)
    }

    fn look(&self, id: &BlobId) -> Result<(u64, String, Option<DHash>), BlobError> {
        let path = self.blobs.path(id);
        let refuse = |error: io::Error| match error.kind() {
            io::ErrorKind::NotFound => BlobError::Missing(path.clone()),
            _ => FileError::at("read", &path)(error).into(),
        };
        let size = std::fs::metadata(&path).map_err(refuse)?.len();
        if size > MAX_LOOKED {
            let mut head = Vec::new();
            let file = std::fs::File::open(&path).map_err(refuse)?;
            file.take(HEAD).read_to_end(&mut head).map_err(refuse)?;
            return Ok((size, mime::of(&head).to_owned(), None));
        }
        let bytes = self.blobs.get(id)?;
        let mime = mime::of(&bytes);
        let phash = mime.starts_with("image/").then(|| hash(&bytes)).flatten();
        Ok((size, mime.to_owned(), phash))
    }
}
