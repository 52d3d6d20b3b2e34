//! Tests of the archive: what they share.

mod concurrency;
mod damage;
mod keeping;
mod layout;
mod manifests;
mod slices;
mod sweeping;

use std::io::Read as _;
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use tempfile::TempDir;

use super::{Archive, ArchiveError, Sizes, Snapshot, SourceKey};

/// Small enough that a few hundred bytes make every case.
const TINY: Sizes = Sizes {
    chunk: 64,
    small: 16,
    frame: 64,
};

/// An archive in a directory of its own.
struct Kit {
    home: TempDir,
    archive: Archive,
}

impl Kit {
    fn new() -> Self {
        Self::with(|directory| Archive::open(directory).unwrap())
    }

    fn tiny() -> Self {
        Self::with(|directory| Archive::with_sizes(directory, TINY).unwrap())
    }

    fn with(open: impl Fn(&Path) -> Archive) -> Self {
        let home = tempfile::tempdir().unwrap();
        let archive = open(&home.path().join("archive"));
        Self { home, archive }
    }

    fn root(&self) -> PathBuf {
        self.home.path().join("archive")
    }

    fn begin(&self, key: &SourceKey, bytes: &[u8]) -> Snapshot {
        let mut writer = self.archive.begin(key).unwrap();
        writer.write(bytes).unwrap();
        writer.finish(time(0), None, None).unwrap()
    }

    fn grow(&self, snapshot: &Snapshot, bytes: &[u8]) -> Snapshot {
        let mut writer = self.archive.grow(snapshot).unwrap();
        writer.write(bytes).unwrap();
        writer.finish(time(1), None, None).unwrap()
    }

    fn rewrite(&self, snapshot: &Snapshot, bytes: &[u8]) -> Snapshot {
        let mut writer = self.archive.rewrite(snapshot).unwrap();
        writer.write(bytes).unwrap();
        writer.finish(time(2), None, None).unwrap()
    }

    fn read(&self, snapshot: &Snapshot) -> Vec<u8> {
        let mut bytes = Vec::new();
        let mut reader = self.archive.read(snapshot);
        reader.read_to_end(&mut bytes).unwrap();
        bytes
    }

    fn latest(&self, key: &SourceKey) -> Snapshot {
        self.archive.latest(key).unwrap().unwrap()
    }

    fn manifest(&self, key: &SourceKey) -> PathBuf {
        self.archive.inner.sources.path_of(&key.id())
    }

    fn chunk(&self, snapshot: &Snapshot, index: usize) -> PathBuf {
        let id = snapshot.chunks[index].id;
        self.archive.inner.chunks.path_of(&id)
    }

    /// How many chunks there are, and how many bytes they take on disk.
    fn stored(&self) -> (u64, u64) {
        let usage = self.archive.usage().unwrap();
        (usage.chunks, usage.compressed_bytes)
    }
}

fn key(name: &str) -> SourceKey {
    SourceKey::new("claude", format!("/logs/{name}.jsonl"))
}

fn time(second: i64) -> Timestamp {
    Timestamp::from_second(1_790_000_000 + second).unwrap()
}

/// Bytes that do not compress and do not repeat, the same for the same seed.
fn noise(len: usize, seed: u64) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    std::iter::repeat_with(|| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.to_le_bytes()
    })
    .flatten()
    .take(len)
    .collect()
}

/// Overwrites a file, as no code of ours does.
fn overwrite(path: &Path, bytes: &[u8]) {
    use std::io::Write as _;
    let mut file = std::fs::File::create(path).unwrap();
    file.write_all(bytes).unwrap();
}

/// A manifest whose lines have no sums, as an earlier version wrote them.
fn without_sums(text: &str) -> String {
    let mut lines = String::new();
    for line in text.lines() {
        let before = line.split(",\"sum\":").next().unwrap();
        let end = if before.len() < line.len() {
            "}\n"
        } else {
            "\n"
        };
        lines.extend([before, end]);
    }
    lines
}

/// The archive's own error inside that of a reader.
fn inner(error: &std::io::Error) -> &ArchiveError {
    error.get_ref().unwrap().downcast_ref().unwrap()
}
