//! The home of a person who uses Claude Code, below a test's own directory.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::env::TestEnv;

pub(crate) const SESSION: &str = "11111111-2222-4333-8444-555555555555";
pub(crate) const DELETED: &str = "99999999-2222-4333-8444-555555555555";
pub(crate) const PROJECT: &str = "person/.claude/projects/-w-demo";

/// A line of a session. `n` is the minute, and makes the line's id.
fn envelope(session: &str, n: usize, kind: &str, message: &str, more: &str) -> String {
    let begin: String = session.chars().take(13).collect();
    let uuid = format!("{begin}-{n:04}-8000-000000000000");
    format!(
        r#"{{"type":"{kind}","uuid":"{uuid}","parentUuid":null,"sessionId":"{session}","cwd":"/w/demo","gitBranch":"main","version":"2.1.200","isSidechain":false,"timestamp":"2026-11-0{}T10:{:02}:00Z","message":{message}{more}}}"#,
        1 + n / 60 % 9,
        n % 60,
    ) + "\n"
}

pub(crate) fn user(session: &str, n: usize, text: &str) -> String {
    let text = serde_json::Value::from(text);
    let message = format!(r#"{{"role":"user","content":{text}}}"#);
    envelope(session, n, "user", &message, "")
}

pub(crate) fn assistant(session: &str, n: usize, block: &str) -> String {
    let message = format!(
        r#"{{"id":"m{n}","role":"assistant","model":"claude-test-1","content":[{block}],"usage":{{"input_tokens":10,"output_tokens":5,"cache_read_input_tokens":100}}}}"#
    );
    envelope(session, n, "assistant", &message, "")
}

pub(crate) fn text(said: &str) -> String {
    let said = serde_json::Value::from(said);
    format!(r#"{{"type":"text","text":{said}}}"#)
}

pub(crate) fn call(id: &str, name: &str, input: &serde_json::Value) -> String {
    format!(r#"{{"type":"tool_use","id":"{id}","name":"{name}","input":{input}}}"#)
}

pub(crate) fn result(session: &str, n: usize, id: &str, said: &str, more: &str) -> String {
    let said = serde_json::Value::from(said);
    let block = format!(r#"{{"type":"tool_result","tool_use_id":"{id}","content":{said}{more}}}"#);
    let message = format!(r#"{{"role":"user","content":[{block}]}}"#);
    envelope(session, n, "user", &message, "")
}

/// A session with a tool that worked, one that failed, an edit and one that was refused.
pub(crate) fn main_session() -> String {
    let edit = serde_json::json!({"file_path": "/w/demo/a.rs", "old_string": "one\ntwo\n", "new_string": "one\n2\n"});
    [
        user(SESSION, 0, "Make it work"),
        assistant(
            SESSION,
            1,
            r#"{"type":"thinking","thinking":"It is broken.","signature":"x"}"#,
        ),
        assistant(SESSION, 1 + 60, &text("I will look.")),
        assistant(
            SESSION,
            2,
            &call("t1", "Bash", &serde_json::json!({"command": "ls -l"})),
        ),
        result(SESSION, 3, "t1", "a.rs\nb.rs\nc.rs\nd.rs\ne.rs", ""),
        assistant(
            SESSION,
            4,
            &call("t2", "Bash", &serde_json::json!({"command": "false"})),
        ),
        result(SESSION, 5, "t2", "Exit code 1", r#","is_error":true"#),
        assistant(SESSION, 6, &call("t3", "Edit", &edit)),
        result(SESSION, 7, "t3", "updated", ""),
        assistant(
            SESSION,
            8,
            &call("t4", "Bash", &serde_json::json!({"command": "rm -rf /"})),
        ),
        result(
            SESSION,
            9,
            "t4",
            "The user doesn't want to proceed with this tool use.",
            r#","is_error":true"#,
        ),
        assistant(
            SESSION,
            10,
            &call(
                "t5",
                "Task",
                &serde_json::json!({"description": "Look around"}),
            ),
        ),
        assistant(SESSION, 11, &text("Done.")),
    ]
    .concat()
}

/// Everything that a home may have: a session with a sub-agent, what lies beside it, the history of
/// prompts with a session that is gone, and credentials.
pub(crate) fn furnish(env: &TestEnv) {
    env.file(&format!("{PROJECT}/{SESSION}.jsonl"), main_session());
    let beside = format!("{PROJECT}/{SESSION}");
    let sub = [
        user(SESSION, 20, "Look around"),
        assistant(SESSION, 21, &text("Nothing to see.")),
    ]
    .concat()
    .replace(
        r#""isSidechain":false"#,
        r#""isSidechain":true,"agentId":"a1""#,
    );
    env.file(&format!("{beside}/subagents/agent-a1.jsonl"), sub);
    env.file(
        &format!("{beside}/subagents/agent-a1.meta.json"),
        r#"{"agentType":"Explore","description":"Look around","toolUseId":"t5"}"#,
    );
    env.file(
        &format!("{beside}/tool-results/big.txt"),
        "a large output\n".repeat(100),
    );
    env.file(
        &format!("{beside}/tool-results/credentials.json"),
        "hunter2",
    );
    let prompt = |session: &str, text: &str, n: u64| {
        format!(
            "{{\"display\":\"{text}\",\"pastedContents\":{{}},\"timestamp\":{},\"project\":\"/w/demo\",\"sessionId\":\"{session}\"}}\n",
            1_780_000_000_000 + n
        )
    };
    let history = prompt(DELETED, "What was that?", 0)
        + &prompt(SESSION, "Make it work", 1)
        + &prompt(DELETED, "And then?", 2);
    env.file("person/.claude/history.jsonl", history);
    // Whoever opens this waits for ever.
    let made = Command::new("mkfifo")
        .arg(env.path("person/.claude/.credentials.json"))
        .status();
    assert!(made.unwrap().success());
}

/// A database as `OpenCode` keeps one, with something in its write-ahead log as long as it is open.
pub(crate) fn database(env: &TestEnv) -> quipu_store::catalogue::SqliteCatalogue {
    let path = env.path("person/.local/share/opencode/opencode.db");
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    let database = quipu_store::catalogue::SqliteCatalogue::open(&path).unwrap();
    database
        .execute(
            r#"create table session (id text primary key, project_id text, parent_id text, slug text,
                   directory text, title text, version text, time_created integer, time_updated integer);
               create table message (id text primary key, session_id text, time_created integer,
                   time_updated integer, data text);
               create table part (id text primary key, message_id text, session_id text,
                   time_created integer, time_updated integer, data text);
               insert into session values ('ses_1', 'p', null, 's', '/w/demo', 'From a database',
                   '1.3.0', 1790000000000, 1790000001000);
               insert into message values ('msg_1', 'ses_1', 1790000000000, 1790000000000,
                   '{"role":"user","time":{"created":1790000000000},"agent":"build"}');
               insert into part values ('prt_1', 'msg_1', 'ses_1', 1790000000000, 1790000000000,
                   '{"type":"text","text":"hello from a row"}');"#,
        )
        .unwrap();
    database
}

/// Every file below a directory: name, what it holds, when it was written.
pub(crate) fn listing(directory: &Path) -> Vec<(PathBuf, i64, i64, Vec<u8>)> {
    let mut found = Vec::new();
    let mut left = vec![directory.to_owned()];
    while let Some(path) = left.pop() {
        let metadata = fs::symlink_metadata(&path).unwrap();
        if metadata.is_dir() {
            left.extend(
                fs::read_dir(&path)
                    .unwrap()
                    .map(|entry| entry.unwrap().path()),
            );
        }
        let bytes = if metadata.is_file() {
            fs::read(&path).unwrap()
        } else {
            Vec::new()
        };
        found.push((path, metadata.mtime(), metadata.mtime_nsec(), bytes));
    }
    found.sort();
    found
}

/// The document that a command wrote.
pub(crate) fn json(env: &TestEnv, args: &[&str]) -> serde_json::Value {
    let ran = env.run(args);
    assert_eq!(ran.code, 0, "{args:?}: {}", ran.stderr);
    serde_json::from_str(&ran.stdout).unwrap()
}

/// Everything that the catalogue has, in figures.
pub(crate) fn figures(env: &TestEnv, home: &str) -> Vec<serde_json::Value> {
    let home = env.path(home);
    let home = home.to_str().unwrap();
    let ran = env.run(&["--home", home, "list", "--all", "--limit", "0", "--jsonl"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let mut rows: Vec<serde_json::Value> = ran
        .stdout
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .map(|mut row: serde_json::Value| {
            // That of another home is another.
            row["id"].take();
            row["original"].take();
            row
        })
        .collect();
    rows.sort_by_key(|row| row["run_id"].as_str().unwrap().to_owned());
    rows
}
