//! The implementations that come with the store pass, and one that does not do what it should is found out.

use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use super::{MemoryBus, MemoryEvents, MemoryObjects, Report, bus, catalogue, events, objects};
use crate::FileError;
use crate::archive::{Archive, SourceKey};
use crate::blobs::Blobs;
use crate::catalogue::{Catalogue, SqliteCatalogue};
use crate::events::EventFiles;
use crate::live::{Bus as _, BusFile, Change, Heard, What};
use crate::objects::{Directory, Look, Object, ObjectName, Objects};

fn passes(report: &Report) {
    assert_eq!(report.failed, []);
    assert!(!report.passed.is_empty());
}

fn directory(root: &Path) -> Directory {
    Directory::new(root.join("objects"), root.join("tmp"))
}

#[test]
fn objects_in_a_directory_and_in_memory_pass() {
    let root = tempfile::tempdir().unwrap();
    passes(&objects::conformance(&directory(root.path())));
    passes(&objects::conformance(&MemoryObjects::default()));
}

#[test]
fn event_blocks_in_files_and_in_memory_pass() {
    let root = tempfile::tempdir().unwrap();
    let files = EventFiles::new(root.path().join("events"));
    passes(&events::conformance(&files));
    passes(&events::conformance(&MemoryEvents::default()));
}

#[test]
fn a_catalogue_in_a_file_passes() {
    let root = tempfile::tempdir().unwrap();
    let (at, next) = (root.path().to_owned(), AtomicUsize::new(0));
    let make = move || -> Arc<dyn Catalogue> {
        let nth = next.fetch_add(1, Ordering::Relaxed);
        let directory = at.join(nth.to_string());
        std::fs::create_dir(&directory).unwrap();
        Arc::new(SqliteCatalogue::open(&directory.join("index.sqlite")).unwrap())
    };
    passes(&catalogue::conformance(&make));
}

#[test]
fn a_bus_in_a_file_and_one_in_memory_pass() {
    let root = tempfile::tempdir().unwrap();
    passes(&bus::conformance(&BusFile::new(root.path())));
    // Files that give way again and again.
    let often = root.path().join("often");
    let often = BusFile::new(&often).giving_way_at(4096);
    let report = bus::conformance(&often);
    // A follower of tiny files misses what others hear, and says so.
    let failed: Vec<&str> = report.failed.iter().map(|failure| failure.check).collect();
    assert_eq!(failed, ["several may publish at the same time"]);
    passes(&bus::conformance(&MemoryBus::default()));
}

/// As another process would: nothing is shared but the directory.
#[test]
fn a_bus_in_a_file_is_heard_by_others() {
    let root = tempfile::tempdir().unwrap();
    let mut follower = BusFile::new(root.path()).follow().unwrap();
    let change = Change {
        key: "ab".repeat(32),
        what: What::Read,
    };
    BusFile::new(root.path())
        .publish(std::slice::from_ref(&change))
        .unwrap();
    let heard = follower.next(Duration::from_secs(10)).unwrap();
    assert_eq!(heard, Heard::Change(change.clone()));
    // Somebody removes the file, and another one is begun.
    std::fs::remove_file(root.path().join("changes.jsonl")).unwrap();
    BusFile::new(root.path()).publish(&[change]).unwrap();
    let heard = follower.next(Duration::from_secs(10)).unwrap();
    assert_eq!(heard, Heard::Missed);
}

/// Puts over what is there.
#[derive(Debug, Default)]
struct Careless(MemoryObjects);

impl Objects for Careless {
    fn put_if_absent(&self, name: &ObjectName, bytes: &[u8]) -> Result<bool, FileError> {
        self.0.replace(name, bytes)?;
        Ok(true)
    }

    fn replace(&self, name: &ObjectName, bytes: &[u8]) -> Result<(), FileError> {
        self.0.replace(name, bytes)
    }

    fn open(&self, name: &ObjectName) -> Result<Option<Box<dyn Object>>, FileError> {
        self.0.open(name)
    }

    fn look(&self, name: &ObjectName) -> Result<Option<Look>, FileError> {
        self.0.look(name)
    }

    fn list(
        &self,
        _prefix: &str,
    ) -> Box<dyn Iterator<Item = Result<ObjectName, FileError>> + Send> {
        self.0.list("")
    }

    fn delete(&self, name: &ObjectName) -> Result<bool, FileError> {
        self.0.delete(name)
    }

    fn touch(&self, name: &ObjectName) {
        self.0.touch(name);
    }

    fn sync(&self) -> Result<(), FileError> {
        self.0.sync()
    }

    fn place(&self, name: &ObjectName) -> PathBuf {
        self.0.place(name)
    }
}

#[test]
fn objects_that_are_put_over_others_are_found_out() {
    let report = objects::conformance(&Careless::default());
    let failed: Vec<&str> = report.failed.iter().map(|failure| failure.check).collect();
    assert_eq!(
        failed,
        [
            "an object that is there is not put again",
            "of several who put at once, one does",
            "names are listed in order, by how they begin",
            "what is deleted is gone",
        ]
    );
}

#[test]
fn an_archive_keeps_its_chunks_in_any_objects() {
    let root = tempfile::tempdir().unwrap();
    let memory = Arc::new(MemoryObjects::default());
    let archive = Archive::with_chunks(root.path(), memory.clone()).unwrap();
    let key = SourceKey::new("claude", "/logs/a.jsonl");
    let log = b"a line\n".repeat(1_000_000);
    let mut writer = archive.begin(&key).unwrap();
    writer.write(&log).unwrap();
    let kept = writer
        .finish(quipu_model::Timestamp::UNIX_EPOCH, None, None)
        .unwrap();
    archive.sync().unwrap();
    assert!(!root.path().join("chunks").exists());
    assert_eq!(memory.list("").count(), kept.chunks.len());
    let mut read = Vec::new();
    archive.read(&kept).read_to_end(&mut read).unwrap();
    assert!(read == log);
    let mut piece = Vec::new();
    archive
        .slices(&kept)
        .reader()
        .append(4_999_998, 9, &mut piece)
        .unwrap();
    assert_eq!(piece, log[4_999_998..][..9]);
    archive.forget(&key).unwrap();
    let swept = archive
        .sweep(quipu_model::Timestamp::UNIX_EPOCH, false)
        .unwrap();
    assert_eq!(swept.chunks, kept.chunks.len() as u64);
    assert_eq!(memory.list("").count(), 0);
}

#[test]
fn blobs_lie_in_any_objects() {
    let blobs = Blobs::in_objects(Arc::new(MemoryObjects::default()));
    let id = blobs.put(b"png").unwrap();
    assert_eq!(blobs.put(b"png").unwrap(), id);
    assert_eq!(blobs.get(&id).unwrap(), b"png");
    assert_eq!(blobs.iter().collect::<Result<Vec<_>, _>>().unwrap(), [id]);
    blobs.remove(&id).unwrap();
    assert!(blobs.get(&id).is_err());
}
