//! What is damaged or gone, and comes back.

use std::fs;
use std::path::{Path, PathBuf};

use super::kit::*;
use crate::Store;
use crate::archive::SourceKey;
use crate::health::Health;

/// The manifest of a log of Claude Code.
fn manifest(store: &Store, path: &Path) -> PathBuf {
    let path = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let id = SourceKey::new("claude-code", path).id().to_string();
    let below = format!("archive/sources/{}/{}.jsonl", &id[..2], &id[2..]);
    store.home().join(below)
}

fn two(machine: &Machine) -> (Store, PathBuf) {
    let path = machine.session("s1.jsonl");
    write(
        &path,
        prompt("s1", "u1", "hello") + &reply("s1", "u2", "hi"),
    );
    write(&machine.session("s2.jsonl"), prompt("s2", "v1", "fine"));
    let store = machine.store();
    machine.import(&store);
    (store, path)
}

fn sound(store: &Store) -> Health {
    Health::of(store.home(), Some(store), true)
}

#[test]
fn a_lost_or_cut_manifest_is_noticed_and_the_log_kept_again() {
    for cut in [None, Some(0), Some(10)] {
        let machine = Machine::new();
        let (store, path) = two(&machine);
        let before = known(&store);
        assert!(sound(&store).lost.is_empty());
        let manifest = manifest(&store, &path);
        match cut {
            None => fs::remove_file(&manifest).unwrap(),
            Some(len) => {
                let file = fs::OpenOptions::new().write(true).open(&manifest);
                file.unwrap().set_len(len).unwrap();
            }
        }
        assert_eq!(sound(&store).lost.len(), 1, "{cut:?}");
        let report = machine.import(&store);
        assert_eq!(
            (report.kept_again, report.lost, report.unchanged),
            (1, 0, 1),
            "{cut:?}"
        );
        assert_eq!(texts(&store, "s1"), ["hello", "hi"]);
        assert_eq!(known(&store), before);
        let health = sound(&store);
        assert!(
            health.lost.is_empty() && health.archive.is_empty(),
            "{health:?}"
        );
    }
}

#[test]
fn a_manifest_that_lost_its_last_line_is_noticed() {
    let machine = Machine::new();
    let (store, path) = two(&machine);
    append(&path, reply("s1", "u3", "more"));
    machine.import(&store);
    let manifest = manifest(&store, &path);
    let lines = fs::read_to_string(&manifest).unwrap();
    assert_eq!(lines.lines().count(), 2);
    write(&manifest, lines.split_inclusive('\n').next().unwrap());
    assert_eq!(sound(&store).lost.len(), 1);
    assert_eq!(machine.import(&store).kept_again, 1);
    assert_eq!(texts(&store, "s1"), ["hello", "hi", "more"]);
    assert!(sound(&store).lost.is_empty());
}

#[test]
fn an_end_that_is_nowhere_any_more_is_said_to_be_lost() {
    let machine = Machine::new();
    let (store, path) = two(&machine);
    append(&path, reply("s1", "u3", "more"));
    machine.import(&store);
    let manifest = manifest(&store, &path);
    let lines = fs::read_to_string(&manifest).unwrap();
    write(&manifest, lines.split_inclusive('\n').next().unwrap());
    fs::remove_file(&path).unwrap();
    let (store, report) = machine.rebuild(store);
    assert_eq!((report.kept_again, report.lost), (0, 1));
    let said = &report.problems[0].what;
    assert!(
        said.starts_with("lost: ") && said.contains("session s1"),
        "{said}"
    );
    assert_eq!(texts(&store, "s1"), ["hello", "hi"]);
    assert!(sound(&store).lost.is_empty());
}

#[test]
fn what_neither_the_archive_nor_the_agent_has_is_said_to_be_lost() {
    let machine = Machine::new();
    let (store, path) = two(&machine);
    fs::remove_file(manifest(&store, &path)).unwrap();
    fs::remove_file(&path).unwrap();
    for _ in 0..2 {
        let report = machine.import(&store);
        assert_eq!((report.kept_again, report.lost), (0, 1));
        assert_eq!(report.problems[0].path.file_name(), path.file_name());
        assert!(
            report.problems[0].what.starts_with("lost"),
            "{:?}",
            report.problems
        );
    }
    let (store, report) = machine.rebuild(store);
    assert_eq!(report.lost, 1);
    assert!(
        report.problems[0].what.contains("session s1"),
        "{:?}",
        report.problems
    );
    assert_eq!(listed(&store), ["s2"]);
    assert!(sound(&store).lost.is_empty());
    assert_eq!(machine.import(&store).lost, 0, "it is said once");
}

#[test]
fn a_damaged_manifest_is_set_aside_and_its_log_kept_again() {
    let machine = Machine::new();
    let (store, path) = two(&machine);
    let before = known(&store);
    let manifest = manifest(&store, &path);
    let text = fs::read_to_string(&manifest).unwrap();
    // A line that can be read, and is not what was written.
    write(
        &manifest,
        text.replace("\"taken\":\"2026", "\"taken\":\"2025"),
    );
    assert_eq!(sound(&store).archive.len(), 1);
    let (store, report) = machine.rebuild(store);
    assert_eq!(
        (report.kept_again, report.lost),
        (1, 0),
        "{:?}",
        report.problems
    );
    assert_eq!(known(&store), before);
    assert!(sound(&store).archive.is_empty());
    let aside = fs::read_dir(store.home().join("archive/damaged")).unwrap();
    assert_eq!(aside.count(), 1);
}

#[test]
fn of_a_log_that_is_nowhere_else_what_is_left_is_kept() {
    let machine = Machine::new();
    let path = machine.session("s1.jsonl");
    let long = "x".repeat(300_000);
    write(&path, prompt("s1", "u1", "first"));
    let store = machine.store();
    machine.import(&store);
    // Each is a chunk of its own: the one before it is not small enough to be merged.
    for n in 0..3 {
        append(
            &path,
            prompt("s1", &format!("w{n}"), &format!("{n} {long}")),
        );
        machine.import(&store);
    }
    let id = SourceKey::new("claude-code", fs::canonicalize(&path).unwrap());
    let kept = store.archive().latest(&id).unwrap().unwrap();
    assert!(kept.chunks.len() > 2, "{:?}", kept.chunks);
    let chunk = kept.chunks[kept.chunks.len() - 2].id.to_string();
    let below = format!("archive/chunks/{}/{}.zst", &chunk[..2], &chunk[2..]);
    fs::remove_file(store.home().join(below)).unwrap();
    fs::remove_file(&path).unwrap();
    assert_eq!(
        Health::of(store.home(), Some(&store), false).archive.len(),
        1
    );
    let (store, report) = machine.rebuild(store);
    assert_eq!((report.kept_again, report.lost), (0, 1));
    assert!(
        report.problems[0].what.contains("bytes are lost"),
        "{:?}",
        report.problems
    );
    let left = texts(&store, "s1");
    assert_eq!((left.len(), left[0].as_str()), (3, "first"));
    assert!(sound(&store).archive.is_empty());
}

#[test]
fn a_damaged_blob_is_taken_out_of_the_log_again() {
    let machine = Machine::new();
    let image = r#"[{"type":"image","source":{"type":"base64","media_type":"image/png","data":"aGVsbG8="}}]"#;
    let log = prompt("s1", "u1", "x").replace("\"x\"", image);
    write(&machine.session("s1.jsonl"), log);
    let store = machine.store();
    machine.import(&store);
    let blob = store.blobs().iter().next().unwrap().unwrap();
    for damage in [&b"other"[..], b""] {
        write(&store.blobs().path(&blob), damage);
        assert_eq!(sound(&store).blobs.len(), 1);
    }
    fs::remove_file(store.blobs().path(&blob)).unwrap();
    assert_eq!(Health::of(store.home(), Some(&store), false).blobs.len(), 1);
    let (store, _) = machine.rebuild(store);
    assert!(store.blobs().get(&blob).is_ok() && sound(&store).blobs.is_empty());
}

#[test]
fn a_rebuild_needs_nothing_of_the_old_catalogue() {
    let machine = Machine::new();
    let (store, _) = two(&machine);
    let (before, home) = (known(&store), store.home().to_owned());
    drop(store);
    let whole = fs::read(home.join("index.sqlite")).unwrap();
    let pages = whole.len() / 4096;
    for page in 0..pages {
        let mut bytes = whole.clone();
        bytes[page * 4096..(page + 1) * 4096].fill(0);
        write(&home.join("index.sqlite"), &bytes);
        let progress = crate::import::Progress::default();
        let (store, report) =
            Store::rebuild(&home, &machine.host(), &options(), &progress).unwrap();
        assert_eq!(known(&store), before, "page {page}");
        assert_eq!(report.lost, 0, "page {page}: {:?}", report.problems);
        assert!(sound(&store).catalogue.is_empty(), "page {page}");
    }
}

#[test]
fn a_database_that_is_damaged_is_said_to_be() {
    let machine = Machine::new();
    let path = machine.home(".local/share/opencode/opencode.db");
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    let database = rusqlite::Connection::open(&path).unwrap();
    database
        .execute_batch(
            r#"create table session (id text primary key, project_id text, parent_id text, slug text,
                   directory text, title text, version text, time_created integer, time_updated integer);
               create table message (id text primary key, session_id text, time_created integer,
                   time_updated integer, data text);
               create index message_session on message (session_id);
               create table part (id text primary key, message_id text, session_id text,
                   time_created integer, time_updated integer, data text);
               insert into session values ('ses_1', 'p', null, 's', '/w', 'A title', '1.3.0', 1790000000000, 1790000001000);
               with recursive n (n) as (select 1 union all select n + 1 from n where n < 400)
               insert into message select 'msg_' || n, 'ses_1', 1790000000000 + n, 1790000000000,
                   '{"role":"user","time":{"created":1790000000000},"agent":"build"}' from n;
               insert into part select 'prt_' || id, id, 'ses_1', 1790000000000, 1790000000000,
                   '{"type":"text","text":"hello from a row"}' from message;"#,
        )
        .unwrap();
    drop(database);
    let whole = fs::read(&path).unwrap();
    let (mut said, mut silent) = (0, Vec::new());
    let figures = |store: &Store| -> Vec<u64> {
        rows(store)
            .iter()
            .map(|row| row.figures.events + row.figures.notes)
            .collect()
    };
    let good = machine.store_named("good");
    machine.import(&good);
    let expected = figures(&good);
    for page in 1..whole.len() / 4096 {
        let mut bytes = whole.clone();
        // A few bytes in the middle of a page: what they are depends on the page.
        for at in [16, 900, 2048] {
            bytes[page * 4096 + at] ^= 0x15;
        }
        write(&path, &bytes);
        let store = machine.store_named(&format!("damaged-{page}"));
        let report = machine.import(&store);
        if !report.problems.is_empty() {
            said += 1;
        } else if figures(&store) != expected {
            silent.push(page);
        }
    }
    assert!(silent.is_empty(), "nothing was said of pages {silent:?}");
    assert!(said > 3, "{said}");
}

#[test]
fn what_unpacks_to_far_too_much_is_not_kept() {
    let machine = Machine::new();
    let mut bomb = zstd::Encoder::new(Vec::new(), 3).unwrap();
    let line = prompt("bomb", "u1", &"x".repeat(1 << 20));
    for _ in 0..80 {
        std::io::Write::write_all(&mut bomb, line.as_bytes()).unwrap();
    }
    let bomb = bomb.finish().unwrap();
    assert!(bomb.len() < 200_000, "{}", bomb.len());
    write(&machine.home("packed/bomb.jsonl.zst"), bomb);
    let packed = zstd::encode_all(prompt("s1", "u1", "hello").as_bytes(), 3).unwrap();
    write(&machine.home("packed/s1.jsonl.zst"), packed);
    let store = machine.store();
    let (paths, progress) = ([machine.home("packed")], crate::import::Progress::default());
    let report = store
        .import_paths(&machine.host(), &paths, &options(), &progress)
        .unwrap();
    assert_eq!(listed(&store), ["s1"]);
    assert_eq!(report.problems.len(), 1);
    assert!(
        report.problems[0].what.contains("unpack to more than"),
        "{:?}",
        report.problems
    );
    assert_eq!(store.archive().sources().count(), 1);
}
