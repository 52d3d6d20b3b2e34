use insta::assert_snapshot;

use super::gather::Tasks;
use super::{Cline, HISTORY, SESSION, SHOWN, TASK};
use crate::testkit::{hostile, read, read_as};
use crate::{Family as _, Gather as _, Gathered};

const MESSAGES: &str = include_str!("../../fixtures/cline/session.json");

#[test]
fn a_session() {
    let read = read(MESSAGES.as_bytes(), "s1/s1.messages.json").unwrap();
    assert_snapshot!(read.lines());
    let usage = read.usage();
    assert_eq!(
        (
            usage.input,
            usage.cache_read,
            usage.cache_write,
            usage.output
        ),
        (Some(35), Some(60), Some(10), Some(8))
    );
    assert_eq!(read.session.vendor_cost.as_deref(), Some("0.3"));
}

#[test]
fn an_agent_of_a_session() {
    for (own, id) in [("s1", "s1.scout"), ("s1__scout", "s1__scout")] {
        let log = format!(
            r#"{{"version":1,"updated_at":"x","agent":"subagent","sessionId":"{own}","messages":[]}}"#
        );
        let read = read(log.as_bytes(), "s1/scout.messages.json").unwrap();
        assert_eq!(read.session.id.as_deref(), Some(id));
        assert_eq!(read.session.parent.as_deref(), Some("s1"));
    }
}

const HISTORY_LOG: &str = include_str!("../../fixtures/cline-history/session.json");

const SHOWN_LOG: &str = include_str!("../../fixtures/cline-ui/session.json");

#[test]
fn a_conversation_alone() {
    let read = read(HISTORY_LOG.as_bytes(), "1767323045000/api.json").unwrap();
    assert_eq!(read.dialect, HISTORY);
    assert_eq!(read.session.id.as_deref(), Some("1767323045000"));
    assert_snapshot!(read.lines());
}

#[test]
fn what_was_shown_alone() {
    let read = read(SHOWN_LOG.as_bytes(), "ui_messages.json").unwrap();
    assert_eq!(read.dialect, SHOWN);
    assert_snapshot!(read.lines());
    let usage = read.usage();
    assert_eq!(
        (
            usage.input,
            usage.cache_read,
            usage.cache_write,
            usage.output
        ),
        (Some(14), Some(8), Some(3), Some(6))
    );
    assert_eq!(read.session.vendor_cost.as_deref(), Some("0.03"));
}

fn put(path: &std::path::Path, text: &str) {
    use std::io::Write as _;
    let mut file = std::fs::File::create(path).unwrap();
    file.write_all(text.as_bytes()).unwrap();
}

fn gathered(task: &std::path::Path) -> String {
    let from = Gathered::Tree(task);
    let parts = Tasks.parts(&from).unwrap();
    assert_eq!(parts.len(), 1, "{parts:?}");
    let mut lines = Vec::new();
    Tasks.write(&from, &parts[0].id, &mut lines).unwrap();
    String::from_utf8(lines).unwrap()
}

#[test]
fn a_task_is_brought_together() {
    let directory = tempfile::tempdir().unwrap();
    let task = directory.path().join("1767323045000");
    std::fs::create_dir(&task).unwrap();
    put(&task.join("api_conversation_history.json"), HISTORY_LOG);
    put(&task.join("ui_messages.json"), SHOWN_LOG);
    put(
        &task.join("task_metadata.json"),
        r#"{"files_in_context":[],"model_usage":[{"ts":1767323045400,"model_id":"m","model_provider_id":"anthropic","mode":"act"}]}"#,
    );
    put(
        &task.join("history_item.json"),
        r#"{"id":"1767323045000","ts":1767323045000,"task":"list","workspace":"/code","parentTaskId":"1767323040000","tokensIn":20}"#,
    );
    assert!(Tasks.holds(&task));
    assert!(!Tasks.holds(directory.path()));
    let lines = gathered(&task);
    // The directory of all tasks holds the same.
    assert_eq!(lines, gathered(directory.path()));
    let read = read(lines.as_bytes(), "1767323045000").unwrap();
    assert_eq!(read.dialect, TASK);
    assert_snapshot!(read.lines());
    assert_eq!(read.usage().total(), 31);
    assert_eq!(read.session.cwd.as_deref(), Some("/code"));
    assert_eq!(read.session.parent.as_deref(), Some("1767323040000"));
}

/// A task that grows is written so that it grows at its end.
#[test]
fn a_task_grows_at_its_end() {
    let directory = tempfile::tempdir().unwrap();
    let task = directory.path();
    let until = |text: &str, count: usize| {
        let items: Vec<serde_json::Value> = serde_json::from_str(text).unwrap();
        serde_json::to_string(&items[..count]).unwrap()
    };
    let mut before = String::new();
    for (said, shown) in [(1, 3), (2, 6), (3, 9), (4, 12), (6, 14)] {
        let history = until(HISTORY_LOG, said);
        put(&task.join("api_conversation_history.json"), &history);
        put(&task.join("ui_messages.json"), &until(SHOWN_LOG, shown));
        let lines = gathered(task);
        assert!(lines.starts_with(&before), "{before}\n{lines}");
        before = lines;
    }
}

#[test]
fn what_a_prompt_counts_depends_on_who_wrote_it() {
    const TOKENS: &str = r#"{"tokensIn":100,"tokensOut":1,"cacheWrites":10,"cacheReads":20}"#;
    const RECENT: i64 = 1_767_323_045_000;
    const EARLY: i64 = 1_700_000_000_000;
    let usage = |text: &str, ts, protocol, provider| {
        let mut tape = quipu_model::json::Tape::new();
        let node = tape.read(text, 8).unwrap();
        let usage = super::wire::request_usage(node, Some(ts), protocol, provider).unwrap();
        usage.input.unwrap()
    };
    // Cline counts what came from no cache, but for some providers.
    assert_eq!(usage(TOKENS, RECENT, None, Some("anthropic")), 100);
    assert_eq!(usage(TOKENS, RECENT, None, Some("openai")), 70);
    // Roo Code counts all of it, but for some time did not.
    assert_eq!(usage(TOKENS, RECENT, Some("anthropic"), None), 70);
    assert_eq!(usage(TOKENS, EARLY, Some("anthropic"), None), 100);
    assert_eq!(usage(TOKENS, EARLY, Some("openai"), None), 70);
    let little = r#"{"tokensIn":5,"tokensOut":1,"cacheWrites":10,"cacheReads":20}"#;
    assert_eq!(usage(little, RECENT, Some("openai"), None), 5);
}

#[test]
fn broken_documents() {
    hostile(&Cline, SESSION, MESSAGES);
    hostile(&Cline, HISTORY, HISTORY_LOG);
    hostile(&Cline, SHOWN, SHOWN_LOG);
    let rows: String = [
        ("api_conversation_history.json", HISTORY_LOG),
        ("ui_messages.json", SHOWN_LOG),
    ]
    .iter()
    .flat_map(|(file, log)| {
        let items: Vec<serde_json::Value> = serde_json::from_str(log).unwrap();
        items.into_iter().enumerate().map(move |(index, row)| {
            format!("{{\"file\":\"{file}\",\"index\":{index},\"row\":{row}}}\n")
        })
    })
    .collect();
    let read = read_as(&Cline, TASK, rows.as_bytes(), "task");
    assert!(read.ledger.records > 15);
    hostile(&Cline, TASK, &rows);
}

/// What each message of a real session cost comes to what is said.
#[test]
fn real_tokens() {
    for (name, bytes) in crate::corpus::logs("cline") {
        let read = read(&bytes, &name).unwrap();
        let document: serde_json::Value = serde_json::from_slice(&bytes).unwrap();
        let messages = document["messages"].as_array().cloned().unwrap_or_default();
        let sum = |key: &str| -> u64 {
            let counts = messages.iter();
            counts.filter_map(|m| m["metrics"][key].as_u64()).sum()
        };
        assert_eq!(
            read.usage().total(),
            sum("inputTokens") + sum("outputTokens"),
            "{name}"
        );
        assert!(read.ledger.drift.is_empty(), "{name}");
    }
}

#[test]
fn places_of_the_machine() {
    use crate::{Host, Pick};
    let host = Host::new("/home/u", |_| None);
    let places = Cline.places(&host);
    let roo = places.iter().find(|place| place.brand == "roo").unwrap();
    assert_eq!((roo.pick)("1767323045000".as_ref()), Pick::Gather);
    assert_eq!((roo.pick)("_index.json".as_ref()), Pick::Skip);
    assert_eq!(
        (roo.pick)("1767323045000/ui_messages.json".as_ref()),
        Pick::Skip
    );
    let sidecars = Cline.sidecars("/s/s1/s1.messages.json".as_ref());
    assert_eq!(sidecars, [std::path::Path::new("/s/s1/s1.json")]);
}

/// Lists of messages that could be anyone's are left to others.
#[test]
fn bare_lists_are_not_claimed() {
    for list in [
        r#"[{"role":"user","content":"hi"},{"role":"assistant","content":"hello"}]"#,
        r#"[{"role":"user","content":[{"type":"text","text":"hi"}]}]"#,
        "[1,2]",
        "[]",
    ] {
        let claim = crate::Head::look(list.as_bytes(), true, |head| Cline.sniff(head));
        assert_eq!(claim, None, "{list}");
    }
}
