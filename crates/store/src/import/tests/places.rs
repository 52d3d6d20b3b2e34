//! Where a log lies decides where its content does not.

use super::kit::{Machine, append, options, rows, write};
use crate::import::Progress;

/// A line of Vibe that has nothing by which Vibe's are known.
fn said(role: &str, text: &str) -> String {
    format!("{{\"role\":\"{role}\",\"content\":\"{text}\",\"xNew\":1}}\n")
}

fn drift(store: &crate::Store) -> Vec<(String, String)> {
    let rows = store.catalogue().drift().unwrap();
    rows.into_iter().map(|row| (row.agent, row.name)).collect()
}

#[test]
fn a_log_that_its_content_does_not_tell_is_read_by_its_place() {
    let machine = Machine::new();
    let log = said("user", "hello") + &said("assistant", "hi");
    let path = machine.home(".vibe/logs/session/s1/messages.jsonl");
    write(&path, &log);
    let elsewhere = machine.home("elsewhere.jsonl");
    write(&elsewhere, &log);
    let store = machine.store();
    let report = machine.import(&store);
    let found = rows(&store);
    assert_eq!(found.len(), 1, "{report:?}");
    assert_eq!(
        (found[0].agent.as_str(), found[0].dialect.as_deref()),
        ("vibe", Some("vibe"))
    );
    assert_eq!(found[0].figures.events, 2);
    // The report says so, and so does the list of what is not known.
    assert_eq!(report.problems.len(), 1, "{report:?}");
    let said_so = &report.problems[0].what;
    assert!(said_so.contains("vibe keeps its logs there"), "{said_so}");
    let by_place = (
        "vibe".to_owned(),
        "format:vibe, known by its place only".to_owned(),
    );
    assert!(drift(&store).contains(&by_place), "{:?}", drift(&store));
    // It stays that way when the log grows, and when all is made again from the archive.
    append(&path, said("user", "more"));
    machine.import(&store);
    assert_eq!(rows(&store)[0].figures.events, 3);
    assert!(drift(&store).contains(&by_place), "{:?}", drift(&store));
    let (store, _) = machine.rebuild(store);
    assert_eq!(rows(&store)[0].figures.events, 3);
    assert!(drift(&store).contains(&by_place), "{:?}", drift(&store));
    // The same log is nobody's where no agent keeps logs.
    let given = [elsewhere];
    let report = store
        .import_paths(&machine.host(), &given, &options(), &Progress::default())
        .unwrap();
    assert_eq!((report.read, report.unknown), (0, 1), "{report:?}");
}

#[test]
fn two_that_claim_a_log_are_told_apart_by_its_place() {
    let codex = r#"{"timestamp":"2026-01-02T03:04:05Z","type":"session_meta","payload":{"id":"019b7a00-0000-7000-8000-000000000001","timestamp":"2026-01-02T03:04:05Z","cwd":"/w","originator":"codex_cli_rs","cli_version":"0.120.0"}}"#;
    let log = format!("{codex}\n") + &super::kit::prompt("s1", "u1", "hello");
    for (place, agent) in [
        (".codex/sessions/2026/01/02/rollout-1.jsonl", "codex"),
        (".claude/projects/-code/s1.jsonl", "claude-code"),
    ] {
        let machine = Machine::new();
        write(&machine.home(place), &log);
        let store = machine.store();
        let report = machine.import(&store);
        assert_eq!(rows(&store)[0].agent, agent);
        let told = &report.problems[0].what;
        assert!(
            told.contains(&format!("{agent} keeps its logs there")),
            "{told}"
        );
        let by_place = drift(&store)
            .into_iter()
            .find(|(_, name)| name.contains("its place"));
        assert_eq!(by_place.unwrap().0, agent);
    }
}

#[test]
fn what_no_adapter_can_read_stays_unread_wherever_it_lies() {
    let machine = Machine::new();
    let path = machine.home(".vibe/logs/session/s1/messages.jsonl");
    write(&path, "{\"x\":1}\n{\"y\":[2]}\n");
    let store = machine.store();
    let report = machine.import(&store);
    assert!(rows(&store).is_empty());
    assert_eq!(report.problems.len(), 1, "{report:?}");
    assert!(
        report.problems[0].what.contains("no adapter knows"),
        "{report:?}"
    );
}
