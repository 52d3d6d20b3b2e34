//! Logs and machines on a bad day.

use std::ffi::OsString;
use std::fs;
use std::os::unix::ffi::OsStringExt as _;
use std::os::unix::fs::{PermissionsExt as _, symlink};

use super::kit::*;
use crate::import::Progress;

/// Whatever lies beside it, a good log is read.
fn with_a_good_one(machine: &Machine) -> (crate::Store, crate::import::Report) {
    write(&machine.session("good.jsonl"), prompt("good", "g1", "fine"));
    let store = machine.store();
    let report = machine.import(&store);
    assert_eq!(texts(&store, "good"), ["fine"]);
    (store, report)
}

#[test]
fn damaged_logs_are_read_as_far_as_they_go() {
    let machine = Machine::new();
    let whole = prompt("s", "u1", "one") + &prompt("s", "u2", "two");
    write(&machine.session("torn.jsonl"), &whole[..whole.len() - 20]);
    write(&machine.session("empty.jsonl"), "");
    write(
        &machine.session("binary.jsonl"),
        [0xff, 0xfe, 0, 1, 2, 3, 200, 10, 0, 0, 10],
    );
    let mut bad = prompt("utf8", "u1", "caf\u{e9}").into_bytes();
    let at = bad.iter().position(|b| *b == 0xc3).unwrap();
    bad.remove(at);
    write(&machine.session("utf8.jsonl"), bad);
    write(
        &machine.session("glued.jsonl"),
        prompt("glued", "u1", "one").trim_end().to_owned() + &prompt("glued", "u2", "two"),
    );
    write(
        &machine.session("time.jsonl"),
        prompt("time", "u1", "when").replace("05.000Z", "05+00:00Z")
            + &prompt("time", "u2", "never").replace("2026-01-02T03:04:05.000Z", "soon"),
    );
    let (store, report) = with_a_good_one(&machine);
    assert_eq!(report.empty, 1);
    assert_eq!(texts(&store, "s"), ["one"]);
    assert_eq!(texts(&store, "utf8"), ["caf\u{fffd}"]);
    assert_eq!(texts(&store, "glued"), ["one", "two"]);
    assert_eq!(texts(&store, "time"), ["when", "never"]);
    let agent = &report.agents["claude-code"];
    assert_eq!(agent.dropped["torn_tail"], 1);
    assert_eq!(agent.mended["invalid_utf8"], 1);
    assert_eq!(agent.mended["glued"], 1);
    let records = agent.mapped + agent.noted + agent.dropped.values().sum::<u64>();
    assert_eq!(agent.records, records);
}

#[test]
fn a_line_that_is_too_long_is_counted_and_the_rest_goes_on() {
    let machine = Machine::new();
    let long = prompt("long", "u2", &"x".repeat(33 << 20));
    let log = prompt("long", "u1", "before") + &long + &prompt("long", "u3", "behind");
    write(&machine.session("long.jsonl"), log);
    let (store, report) = with_a_good_one(&machine);
    assert_eq!(texts(&store, "long"), ["before", "behind"]);
    assert_eq!(report.agents["claude-code"].dropped["too_long"], 1);
}

#[test]
fn names_may_be_anything() {
    let machine = Machine::new();
    let mut path = machine.session("").into_os_string();
    path.push(OsString::from_vec(b"caf\xe9 \xff.jsonl".to_vec()));
    let path = std::path::PathBuf::from(path);
    write(&path, prompt("odd", "u1", "named"));
    let (store, _) = with_a_good_one(&machine);
    assert_eq!(texts(&store, "odd"), ["named"]);
    let report = machine.import(&store);
    assert_eq!((report.read, report.unchanged), (0, 2));
    let row = store.catalogue().find("odd").unwrap();
    assert_eq!(row.path, path);
}

#[test]
fn links_pipes_and_loops_lead_nowhere() {
    let machine = Machine::new();
    fs::create_dir_all(machine.session("")).unwrap();
    symlink(machine.session(""), machine.session("loop")).unwrap();
    symlink("/nowhere", machine.session("dangling.jsonl")).unwrap();
    let pipe = machine.session("pipe.jsonl");
    let made = std::process::Command::new("mkfifo").arg(&pipe).status();
    assert!(made.is_ok_and(|status| status.success()));
    write(&machine.session("auth.json"), "{}");
    let (store, report) = with_a_good_one(&machine);
    assert_eq!(report.problems.len(), 1, "{:?}", report.problems);
    assert_eq!(listed(&store), ["good"]);
    // The same, as a directory that was named.
    let paths = [machine.home("")];
    let report = store
        .import_paths(&machine.host(), &paths, &options(), &Progress::default())
        .unwrap();
    assert_eq!(report.credentials, 1);
    assert_eq!(listed(&store), ["good"]);
}

#[test]
fn what_may_not_be_read_is_said_once() {
    let machine = Machine::new();
    for n in 0..3 {
        let path = machine.session(&format!("secret{n}.jsonl"));
        write(&path, prompt("secret", "u1", "x"));
        fs::set_permissions(&path, fs::Permissions::from_mode(0o000)).unwrap();
    }
    let (_, report) = with_a_good_one(&machine);
    // Whoever may read everything may read these, too.
    if report.read == 1 {
        assert_eq!(report.problems.len(), 1);
        assert_eq!(report.problems[0].count, 3);
    }
}

#[test]
fn agents_files_are_not_touched() {
    let machine = Machine::new();
    let path = machine.session("s1.jsonl");
    write(&path, prompt("s1", "u1", "hello"));
    let database = machine.home(".local/share/goose/sessions/sessions.db");
    fs::create_dir_all(database.parent().unwrap()).unwrap();
    let agent = rusqlite::Connection::open(&database).unwrap();
    agent
        .execute_batch("pragma journal_mode = wal; create table t (a); insert into t values (1);")
        .unwrap();
    let picture = |root: &std::path::Path| {
        let mut left = vec![root.to_owned()];
        let mut seen = Vec::new();
        while let Some(path) = left.pop() {
            let metadata = fs::symlink_metadata(&path).unwrap();
            if metadata.is_dir() {
                left.extend(fs::read_dir(&path).unwrap().map(|e| e.unwrap().path()));
            } else {
                seen.push((
                    path.clone(),
                    metadata.modified().unwrap(),
                    fs::read(&path).unwrap(),
                ));
            }
        }
        seen.sort();
        seen
    };
    let before = picture(&machine.home(""));
    let (store, _) = {
        let store = machine.store();
        let report = machine.import(&store);
        (store, report)
    };
    let paths = [machine.home("")];
    store
        .import_paths(&machine.host(), &paths, &options(), &Progress::default())
        .unwrap();
    assert_eq!(picture(&machine.home("")), before);
    // The agent can still write: nothing of it is locked.
    agent.execute_batch("insert into t values (2)").unwrap();
}

#[test]
fn a_damaged_database_is_reported() {
    let machine = Machine::new();
    let mut bytes = b"SQLite format 3\0".to_vec();
    bytes.extend(std::iter::repeat_n(0x5a, 8192));
    write(&machine.home("x.db"), bytes);
    let store = machine.store();
    let paths = [machine.home("x.db")];
    let report = store
        .import_paths(&machine.host(), &paths, &options(), &Progress::default())
        .unwrap();
    assert_eq!(report.problems.len(), 1);
    assert!(
        report.problems[0].what.contains("database"),
        "{:?}",
        report.problems
    );
}

#[test]
fn two_imports_at_once_do_not_meet() {
    let machine = Machine::new();
    let (store, _) = with_a_good_one(&machine);
    let lock = store.lock().unwrap();
    let refused = store.import(&machine.host(), &options(), &Progress::default());
    assert!(matches!(refused, Err(crate::import::ImportError::Busy(_))));
    // Whoever does not take long is waited for.
    let done = std::thread::spawn(move || {
        std::thread::sleep(std::time::Duration::from_millis(100));
        drop(lock);
    });
    let imported = store.import(&machine.host(), &options(), &Progress::default());
    assert!(imported.is_ok(), "{imported:?}");
    done.join().unwrap();
}

#[test]
fn files_of_ours_are_private() {
    let machine = Machine::new();
    let (store, _) = with_a_good_one(&machine);
    let mut left = vec![store.home().to_owned()];
    while let Some(path) = left.pop() {
        let metadata = fs::metadata(&path).unwrap();
        let mode = metadata.permissions().mode() & 0o777;
        if metadata.is_dir() {
            assert_eq!(mode, 0o700, "{}", path.display());
            left.extend(fs::read_dir(&path).unwrap().map(|e| e.unwrap().path()));
        } else {
            assert_eq!(mode, 0o600, "{}", path.display());
        }
    }
}

#[test]
fn links_to_credentials_are_not_opened() {
    let machine = Machine::new();
    let secret = machine.home(".codex/auth.json");
    write(
        &secret,
        r#"{"type":"user","sessionId":"x","uuid":"y","message":{"content":"token"}}"#,
    );
    fs::create_dir_all(machine.session("")).unwrap();
    symlink(&secret, machine.session("innocent.jsonl")).unwrap();
    let (store, report) = with_a_good_one(&machine);
    assert_eq!(report.credentials, 1);
    assert_eq!(rows(&store).len(), 1);
}

#[test]
fn copies_that_a_kill_left_are_removed() {
    let machine = Machine::new();
    let store = machine.store();
    write(&store.home().join("tmp/left/copy.db"), "secrets");
    machine.import(&store);
    assert!(!store.home().join("tmp/left").exists());
}

#[test]
fn two_agents_may_claim_one_log() {
    let machine = Machine::new();
    let codex = r#"{"timestamp":"2026-01-02T03:04:05Z","type":"session_meta","payload":{"id":"019b7a00-0000-7000-8000-000000000001","timestamp":"2026-01-02T03:04:05Z","cwd":"/w","originator":"codex_cli_rs","cli_version":"0.120.0"}}"#;
    let path = machine.home("mixed.jsonl");
    write(&path, format!("{codex}\n") + &prompt("s1", "u1", "hello"));
    let store = machine.store();
    let report = store
        .import_paths(&machine.host(), &[path], &options(), &Progress::default())
        .unwrap();
    assert_eq!(report.read, 1);
    assert_eq!(report.problems.len(), 1, "{report:?}");
    assert!(report.problems[0].what.contains("claude"), "{report:?}");
}

#[test]
fn what_is_not_looked_at_is_said() {
    let machine = Machine::new();
    let deep = "d/".repeat(40);
    write(
        &machine.home(&format!("{deep}s.jsonl")),
        prompt("s", "u1", "deep"),
    );
    let agent = machine.session("s1/subagents/agent-a7.jsonl");
    write(&agent, prompt("s1", "u1", "x"));
    write(
        &agent.with_extension("meta.json"),
        "x".repeat((1 << 20) + 1),
    );
    let store = machine.store();
    let report = store
        .import_paths(
            &machine.host(),
            &[machine.home("")],
            &options(),
            &Progress::default(),
        )
        .unwrap();
    let mut said: Vec<&str> = report.problems.iter().map(|p| p.what.as_str()).collect();
    said.sort_unstable();
    assert_eq!(said.len(), 2, "{said:?}");
    assert!(
        said[0].contains("beside a log") && said[1].contains("directories deep"),
        "{said:?}"
    );
    assert_eq!(rows(&store).len(), 1, "and the log is read all the same");
}
