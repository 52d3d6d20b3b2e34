//! How tools were used.

use super::kit::*;
use crate::catalogue::Filter;

fn session() -> Session {
    let mut session = Session::default();
    session.user(0, "go");
    for n in 0..20_i64 {
        let id = format!("t{n}");
        let input = format!(r#"{{"file_path":"/code/{}.rs"}}"#, n % 3);
        session
            .answer(
                n * 10_000,
                &format!("m{n}"),
                &tool(&id, "Read", &input),
                (1, 0, 1),
            )
            .result(n * 10_000 + n * 100, &id, "text", n % 7 == 3);
    }
    session.answer(
        300_000,
        "last",
        &tool("x1", "Bash", r#"{"command":"ls"}"#),
        (1, 0, 1),
    );
    session
}

#[test]
fn a_transcript_has_a_ledger_of_its_tools() {
    let (_machine, store, row) = session().import();
    let ledger = store.tools(&row).unwrap();
    assert!(ledger.from_events);
    let names: Vec<_> = ledger.tools.iter().map(|it| it.tool.as_deref()).collect();
    assert_eq!(names, [Some("Read"), Some("Bash")]);
    let read = &ledger.tools[0];
    assert_eq!((read.calls, read.failures), (20, 3));
    assert_eq!((read.denials, read.dangling), (Some(0), Some(0)));
    let time = read.time.as_ref().unwrap();
    assert_eq!((time.calls, time.total_ms), (20, 19_000));
    assert_eq!((time.median_ms, time.p95_ms), (900, 1_800));
    assert_eq!((time.slowest_ms, time.slowest.seq), (1_900, 40));
    assert_eq!(time.slowest.transcript.as_ref(), Some(&row.address));
    // The results of calls 3, 10 and 17.
    let failed: Vec<u64> = read.first_failures.iter().map(|it| it.seq).collect();
    assert_eq!(failed, [9, 23, 37]);
    let files: Vec<_> = read
        .files
        .iter()
        .map(|file| (file.path.as_str(), file.calls, file.seq))
        .collect();
    assert_eq!(
        files,
        [
            ("/code/0.rs", 7, 2),
            ("/code/1.rs", 7, 4),
            ("/code/2.rs", 6, 6)
        ]
    );
    assert_eq!(read.files_total, Some(3));
    let bash = &ledger.tools[1];
    assert_eq!((bash.calls, bash.dangling), (1, Some(1)));
    assert_eq!((bash.time.as_ref(), bash.untimed), (None, Some(1)));
    assert_eq!(bash.bytes_in, Some(16));
    assert_eq!((ledger.total.calls, ledger.total.failures), (21, 3));
    assert_eq!(ledger.orphans, Some(0));
}

#[test]
fn sums_over_many_say_what_they_do_not_know() {
    let (_machine, store, row) = session().import();
    let ledger = store.tools_over(&Filter::default(), None).unwrap();
    assert!(!ledger.from_events);
    assert_eq!((ledger.transcript, ledger.transcripts), (None, 1));
    assert_eq!((ledger.total.calls, ledger.total.failures), (21, 3));
    assert_eq!((ledger.total.denials, ledger.total.time), (None, None));
    let of = |filter: Filter| store.tools_over(&filter, None).unwrap().total.calls;
    let since = |ms: i64| Filter {
        since: Some(at(ms).as_millisecond()),
        ..Filter::default()
    };
    // All happened in the first quarter of an hour.
    assert_eq!((of(since(0)), of(since(20 * 60_000))), (21, 0));
    let agents = |agent: &str| Filter {
        agents: vec![agent.to_owned()],
        ..Filter::default()
    };
    assert_eq!((of(agents(&row.agent)), of(agents("codex"))), (21, 0));
    let nowhere = ["/elsewhere".to_owned()];
    let below = store.tools_over(&Filter::default(), Some(&nowhere));
    assert_eq!(below.unwrap().total.calls, 0);
}

#[test]
fn secrets_in_paths_are_masked() {
    let mut session = Session::default();
    let secret = format!("ghp_{}", "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8");
    let input = format!(r#"{{"file_path":"/code/{secret}/x"}}"#);
    session
        .user(0, "go")
        .answer(1_000, "m", &tool("t", "Read", &input), (1, 0, 1));
    let (_machine, store, row) = session.import();
    let ledger = store.tools(&row).unwrap();
    assert_eq!(ledger.tools[0].files.len(), 1);
    assert!(!serde_json::to_string(&ledger).unwrap().contains(&secret));
}
