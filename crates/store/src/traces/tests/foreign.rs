//! Directories that are not ours.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::kit::{root, trace};
use crate::address::Digest;
use crate::traces::{Checks, How, TraceError, Traces};

/// A directory as Shadow makes it, with an index in which somebody has put a replay; some of that is still in
/// the journal.
fn shadow(at: &Path) -> (PathBuf, String, rusqlite::Connection) {
    let shadow = at.join(".shadow");
    let text = trace(&root("dev"), &[r#"{"n":1}"#]);
    let id = text.split('"').nth(7).unwrap().to_owned();
    let hex = id.strip_prefix("sha256:").unwrap();
    let directory = shadow.join("traces").join(&hex[..2]);
    std::fs::create_dir_all(&directory).unwrap();
    let file = directory.join(format!("{}.agentlog", &hex[2..]));
    std::io::Write::write_all(&mut std::fs::File::create(file).unwrap(), text.as_bytes()).unwrap();
    let database = rusqlite::Connection::open(shadow.join("index.sqlite")).unwrap();
    database
        .execute_batch(
            "pragma journal_mode = wal; pragma wal_autocheckpoint = 0;
             create table traces (id text primary key, created_at integer not null, session_tag text,
                 root_record_id text not null);
             create table tags (trace_id text, key text, value text, primary key (trace_id, key));
             create table replays (id text primary key, baseline_trace_id text not null
                 references traces (id) on delete cascade, config_hash text not null,
                 outcome_record_id text, created_at integer not null);",
        )
        .unwrap();
    database
        .execute("insert into traces values (?1, 1, null, ?1)", [&id])
        .unwrap();
    database
        .execute(
            "insert into replays values (?1, ?1, 'c0ffee', null, 1)",
            [&id],
        )
        .unwrap();
    (shadow, id, database)
}

/// Every file below a directory, with its content.
fn everything(directory: &Path) -> BTreeMap<PathBuf, Digest> {
    let mut found = BTreeMap::new();
    for entry in std::fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(everything(&path));
        } else {
            let content = Digest::of(&std::fs::read(&path).unwrap());
            found.insert(path, content);
        }
    }
    found
}

#[test]
fn reading_writes_nothing() {
    let home = tempfile::tempdir().unwrap();
    let (shadow, id, _database) = shadow(home.path());
    let before = everything(home.path());
    assert!(before.keys().any(|path| path.ends_with("index.sqlite-wal")));
    let traces = Traces::open_foreign(&shadow).unwrap();
    let row = traces.find(&id).unwrap();
    assert!(row.is_rooted && row.tags["env"] == "dev");
    // Its own index says so, in the journal.
    assert_eq!(traces.replays_of(&id).unwrap(), [row]);
    let refused = traces.put(trace(&root("x"), &[]).as_bytes(), &Checks::default());
    assert!(matches!(refused, Err(TraceError::ReadOnly(_))));
    assert!(traces.blob_rows(None).unwrap().is_empty());
    assert_eq!(everything(home.path()), before);
    let none = Traces::open_foreign(home.path()).unwrap_err();
    assert!(matches!(none, TraceError::NoTraces(_)), "{none}");
}

#[test]
fn writing_where_it_is_asked_for_leaves_what_others_put_down() {
    let home = tempfile::tempdir().unwrap();
    let (shadow, id, database) = shadow(home.path());
    let traces = Traces::open_foreign_to_write(&shadow).unwrap();
    let other = trace(&root("dev"), &[r#"{"n":2}"#]);
    assert_eq!(
        traces
            .put(other.as_bytes(), &Checks::default())
            .unwrap()
            .how,
        How::Beside
    );
    assert_eq!(traces.recent(9).unwrap().len(), 2);
    let kept: String = database
        .query_row(
            "select config_hash from replays where id = ?1",
            [&id],
            |row| row.get(0),
        )
        .unwrap();
    assert_eq!(kept, "c0ffee");
    assert!(!shadow.join("traces/index.sqlite").exists());
}
