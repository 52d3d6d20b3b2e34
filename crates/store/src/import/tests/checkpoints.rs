//! Checkpoints tell a session twice, and each tells again what those before it told.

use super::kit::{Machine, listed, options, prompt, reply, rows, write};
use crate::import::Progress;

const METADATA: &str = r#"{"session_id":"s1","agent":"Claude Code","branch":"main"}"#;

fn line(who: &str, id: &str, text: &str) -> String {
    format!(
        r#"{{"v":1,"agent":"claude-code","cli_version":"0.6.0","type":"{who}","ts":"2026-01-02T03:04:05.000Z","id":"{id}","input_tokens":10,"output_tokens":5,"content":[{{"type":"text","text":"{text}"}}]}}"#
    ) + "\n"
}

#[test]
fn a_session_of_checkpoints_counts_once() {
    let machine = Machine::new();
    let checkpoint = |name: &str| machine.home(&format!("checkpoints/{name}"));
    let first = line("user", "", "hello") + &line("assistant", "msg-0000000000000001", "hi");
    let second = first.clone() + &line("assistant", "msg-0000000000000002", "and more");
    for (name, transcript) in [("1a/0", &first), ("2b/0", &second)] {
        write(&checkpoint(name).join("metadata.json"), METADATA);
        write(&checkpoint(name).join("transcript.jsonl"), transcript);
    }
    let store = machine.store();
    let import = || {
        let given = [machine.home("checkpoints")];
        let host = machine.host();
        store
            .import_paths(&host, &given, &options(), &Progress::default())
            .unwrap()
    };
    let tokens = || -> u64 {
        let rows = rows(&store).into_iter().filter(|row| !row.duplicate);
        rows.filter_map(|row| row.usage.output).sum()
    };
    let report = import();
    assert_eq!(report.read, 2, "{report:?}");
    assert_eq!(listed(&store), ["s1"], "{:?}", rows(&store));
    assert_eq!(tokens(), 10);
    // With the agent's own log beside it, that is the session.
    let log =
        prompt("s1", "u1", "hello") + &reply("s1", "u2", "hi") + &reply("s1", "u3", "and more");
    write(&checkpoint("2b/0").join("full.jsonl"), log);
    import();
    assert_eq!(listed(&store), ["s1"], "{:?}", rows(&store));
    assert_eq!(tokens(), 10);
    let kept = rows(&store).into_iter().find(|row| !row.duplicate).unwrap();
    assert_eq!(kept.dialect.as_deref(), Some("claude"));
}
