//! What is read, and what is said of it.

use std::io;

use quipu_formats::loss::Loss;
use quipu_formats::projection::Projection;
use quipu_model::{Event, Header};

use super::{READING, fixture, read};
use crate::{SourceError, open, pump};

#[test]
fn the_header_is_what_the_events_come_to() {
    let (header, given) = read(&fixture("claude.jsonl"));
    let mut counted = Header::new(header.run_id.clone());
    for event in &given.events {
        counted.observe(event);
    }
    assert_eq!(counted.totals, header.totals);
    assert!(header.totals.cost.is_some(), "it is priced");
    assert_eq!(counted.children, header.children);
    assert_eq!(
        header.title.as_deref(),
        Some("Retry with backoff in the relay client")
    );
    assert_eq!(header.environment.cwd.as_deref(), Some("/code/relay"));
    assert_eq!(given.blobs.len(), 1);
    assert!(
        given
            .events
            .iter()
            .any(|event| event.annotations.flags.dangling)
    );
}

#[test]
fn what_is_not_known_is_refused() {
    let home = tempfile::tempdir().unwrap();
    for (name, bytes, says) in [
        ("a.txt", &b"hello"[..], "in no format that is known"),
        (
            "b.db",
            b"SQLite format 3\0....",
            "a database of many sessions",
        ),
        (".credentials.json", b"{}", "in no format that is known"),
    ] {
        let path = home.path().join(name);
        std::io::Write::write_all(&mut std::fs::File::create(&path).unwrap(), bytes).unwrap();
        let error = open(&path, &READING).err().unwrap().to_string();
        assert!(error.contains(says), "{error}");
    }
    let error = open(&home.path().join("none"), &READING).err().unwrap();
    assert!(matches!(error, SourceError::Io { .. }), "{error}");
}

/// Refuses after some events.
struct Full(u64);

impl Projection for Full {
    fn event(&mut self, _event: &Event) -> io::Result<()> {
        self.0 = self.0.checked_sub(1).ok_or(io::ErrorKind::StorageFull)?;
        Ok(())
    }

    fn finish(self: Box<Self>) -> io::Result<Loss> {
        Ok(Loss::default())
    }
}

#[test]
fn a_full_disk_ends_the_reading() {
    let mut sources = open(&fixture("claude.jsonl"), &READING).unwrap();
    let error = pump(&mut *sources[0], &mut Full(3)).unwrap_err();
    let SourceError::Refused(error) = error else {
        panic!("{error}");
    };
    assert_eq!(error.kind(), io::ErrorKind::StorageFull);
}
