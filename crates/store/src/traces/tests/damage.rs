//! Damage is seen, stays seen until it is mended, and the remedy that is named works.

use std::fs::{self, File, FileTimes};
use std::io::Write as _;
use std::path::{Path, PathBuf};

use super::kit::{root, trace};
use crate::blobs::{BlobError, BlobId, Blobs};
use crate::traces::{Checks, Filter, How, Traces};

/// A home with one trace of three records, and where that is.
fn home() -> (tempfile::TempDir, String, PathBuf) {
    let home = tempfile::tempdir().unwrap();
    let text = trace(&root("dev"), &[r#"{"n":1}"#, r#"{"n":2}"#]);
    let traces = Traces::open(home.path()).unwrap();
    let kept = traces.put(text.as_bytes(), &Checks::default()).unwrap();
    (home, text, kept.path)
}

fn put(path: impl AsRef<Path>, bytes: impl AsRef<[u8]>) {
    let mut file = File::create(path).unwrap();
    file.write_all(bytes.as_ref()).unwrap();
}

/// What is wrong, each time in a process of its own.
fn problems(home: &Path) -> Vec<String> {
    let traces = Traces::open(home).unwrap();
    let told = |problem: &crate::traces::Problem| problem.why.clone();
    traces.problems().iter().map(told).collect()
}

fn checked(home: &Path) -> Vec<String> {
    let problems = Traces::open(home).unwrap().check().unwrap();
    problems.into_iter().map(|problem| problem.why).collect()
}

#[test]
fn a_trace_that_lost_records_is_told_until_it_is_kept_again() {
    let (home, text, path) = home();
    let first_two = text.lines().take(2).map(|line| line.len() + 1).sum();
    for cut in [first_two, first_two + 40, 10] {
        put(&path, &text.as_bytes()[..cut]);
        for _ in 0..2 {
            let told = problems(home.path());
            assert!(told[0].starts_with("it had 3 records and has "), "{told:?}");
            assert!(told[0].contains("quipu agentlog keep"), "{told:?}");
        }
        assert_eq!(checked(home.path()).len(), 1);
        let traces = Traces::open(home.path()).unwrap();
        let rows = traces.list(&Filter::default()).unwrap();
        assert_eq!(rows[0].records, 3, "what was known stays known");
        let kept = traces.put(text.as_bytes(), &Checks::default()).unwrap();
        assert_eq!(kept.how, How::Continued);
        assert_eq!(problems(home.path()), [""; 0]);
        assert_eq!(checked(home.path()), [""; 0]);
        assert_eq!(fs::read_to_string(&path).unwrap(), text);
    }
}

#[test]
fn a_record_that_was_changed_is_told_until_the_file_is_gone() {
    let (home, text, path) = home();
    put(&path, text.replace(r#"{"n":1}"#, r#"{"n":9}"#));
    let told = problems(home.path());
    assert!(
        told[0].starts_with("1 of its records were changed"),
        "{told:?}"
    );
    fs::remove_file(&path).unwrap();
    assert_eq!(problems(home.path()), [""; 0]);
}

#[test]
fn damage_that_leaves_size_and_time_is_found_by_reading() {
    let (home, text, path) = home();
    let before = fs::metadata(&path).unwrap().modified().unwrap();
    put(&path, text.replace(r#"{"n":1}"#, r#"{"n":9}"#));
    let file = File::options().write(true).open(&path).unwrap();
    file.set_times(FileTimes::new().set_modified(before))
        .unwrap();
    assert_eq!(problems(home.path()), [""; 0]);
    let told = checked(home.path());
    assert!(
        told[0].starts_with("its content is not what was kept"),
        "{told:?}"
    );
}

#[test]
fn a_trace_that_grows_is_not_damaged() {
    let (home, _, path) = home();
    let mut file = File::options().append(true).open(&path).unwrap();
    // A line on its way, and the same line set aside after a crash.
    file.write_all(b"{\"version\":\"0.1\",\"id\"").unwrap();
    assert_eq!(problems(home.path()), [""; 0]);
    let whole = fs::metadata(&path).unwrap().len() - 21;
    file.set_len(whole).unwrap();
    assert_eq!(problems(home.path()), [""; 0]);
    assert_eq!(checked(home.path()), [""; 0]);
}

#[test]
fn a_lost_row_and_a_lost_index_come_back_by_themselves() {
    let (home, _, _) = home();
    let index = home.path().join("traces/index.sqlite");
    let count = || {
        let traces = Traces::open(home.path()).unwrap();
        assert_eq!(traces.problems(), []);
        assert_eq!(traces.check().unwrap(), []);
        traces.list(&Filter::default()).unwrap().len()
    };
    for table in ["quipu_files", "traces"] {
        let database = rusqlite::Connection::open(&index).unwrap();
        database.execute_batch("pragma foreign_keys = on").unwrap();
        database
            .execute(&format!("delete from {table}"), [])
            .unwrap();
        drop(database);
        assert_eq!(count(), 1, "{table}");
    }
    put(&index, b"SQLite format 3\0 and then nothing");
    assert_eq!(count(), 1);
    fs::remove_file(&index).unwrap();
    assert_eq!(count(), 1);
}

#[test]
fn a_damaged_blob_is_mended_when_its_trace_is_kept_again() {
    let home = tempfile::tempdir().unwrap();
    let bytes = b"a picture";
    let id = BlobId::of(bytes);
    let payload = format!(r#"{{"mime":"image/png","size_bytes":9,"blob_id":"sha256:{id}"}}"#);
    let text = trace(&root("dev"), &[&payload]);
    let beside = Blobs::open(&home.path().join("x.agentlog.blobs")).unwrap();
    beside.put(bytes).unwrap();
    let traces = Traces::open(home.path()).unwrap();
    let kept = traces.put(text.as_bytes(), &Checks::default()).unwrap();
    assert_eq!(traces.take_blobs(&kept.survey, &beside).unwrap(), 1);
    put(traces.blobs().path(&id), b"a pigture");
    assert!(matches!(
        traces.blobs().get(&id),
        Err(BlobError::Damaged(_))
    ));
    let kept = traces.put(text.as_bytes(), &Checks::default()).unwrap();
    assert_eq!(traces.take_blobs(&kept.survey, &beside).unwrap(), 0);
    assert_eq!(traces.blobs().get(&id).unwrap(), bytes);
}
