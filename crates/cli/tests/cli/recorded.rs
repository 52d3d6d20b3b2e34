//! Recorded runs are listed, searched, priced and counted like imported sessions, also while they are recorded.

use serde_json::Value;

use super::env::TestEnv;
use super::machine::{assistant, json, text, user};

const STARTED: &str = r#"{"type":"run.started","payload":{"name":"nightly","kind":"workflow"}}"#;

fn said(who: &str, said: &str, more: &str) -> String {
    let role = who.trim_start_matches("message.");
    format!(
        r#"{{"type":"{who}","path":"review","payload":{{"role":"{role}","blocks":[{{"type":"text","fidelity":"router","text":"first part"}},{{"type":"text","fidelity":"router","text":"{said}"}}]}}{more}}}"#
    )
}

fn spent() -> &'static str {
    r#","model":"claude-sonnet-4-5","model_call":"c1","usage":{"input":1000,"output":200}"#
}

fn lines() -> Vec<String> {
    vec![
        STARTED.to_owned(),
        said("message.user", "look for the quetzal", ""),
        said("message.assistant", "the quetzal is in the forest", spent()),
        r#"{"type":"tool.call","path":"review","payload":{"name":"Read","call_id":"t1","input":{"path":"bird.md"},"fidelity":"router"}}"#.to_owned(),
        r#"{"type":"tool.result","path":"review","payload":{"name":"Read","call_id":"t1","output":"a bird","fidelity":"router"}}"#.to_owned(),
    ]
}

pub(crate) fn home() -> TestEnv {
    let env = TestEnv::new();
    let ran = env.run_with(&["emit", "--run", "run-1"], lines().join("\n") + "\n");
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let id = "5d2cf00d-0000-4000-8000-000000000003";
    let log = user(id, 1, "where is the quetzal") + &assistant(id, 2, &text("no quetzal here"));
    let log = env.file("logs/s.jsonl", log);
    let ran = env.run(&["import", &log]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    env
}

fn row<'l>(list: &'l Value, agent: &str) -> &'l Value {
    let rows = list.as_array().unwrap();
    rows.iter().find(|row| row["agent"] == agent).unwrap()
}

#[test]
fn a_run_and_a_session_are_listed_with_the_same_figures() {
    let env = home();
    let list = json(&env, &["list", "--json"]);
    assert_eq!(list.as_array().unwrap().len(), 2, "{list:#}");
    let run = row(&list, "quipu");
    assert_eq!(run["run_id"], "run-1");
    assert_eq!(run["title"], "nightly");
    assert_eq!(run["events"], 5);
    assert_eq!(
        run["prompts"], 2,
        "as many as parts that were put to the agent"
    );
    assert_eq!(run["tool_calls"], 1);
    assert_eq!(run["usage"]["input"], 1000);
    let shown = env.run(&["list"]).stdout;
    assert!(
        shown.contains("nightly") && shown.contains("quetzal"),
        "{shown}"
    );
}

#[test]
fn a_run_is_searched_and_a_hit_has_the_number_of_its_event() {
    let env = home();
    let found = json(&env, &["search", "quetzal", "--json"]);
    let hits = found.as_array().unwrap();
    let of_run: Vec<u64> = hits
        .iter()
        .filter(|hit| hit["run_id"] == "run-1")
        .map(|hit| hit["seq"].as_u64().unwrap())
        .collect();
    assert_eq!(of_run.len(), 2, "{found:#}");
    assert!(of_run.contains(&2) && of_run.contains(&3), "{of_run:?}");
    for hit in hits {
        assert!(
            hit["snippet"].as_str().unwrap().contains("quetzal"),
            "{hit:#}"
        );
    }
    assert!(hits.len() >= 4, "{found:#}");
}

#[test]
fn a_run_is_priced_and_its_figures_are_proved() {
    let env = home();
    let stats = json(&env, &["stats", "--by", "agent", "--json"]);
    let text = stats.to_string();
    assert!(
        text.contains("quipu") && text.contains("claude-code"),
        "{stats:#}"
    );
    let proof = env.run(&["stats", "explain", "run-1"]);
    assert_eq!(proof.code, 0, "{}", proof.stderr);
    assert!(
        proof.stdout.contains("claude-sonnet-4-5"),
        "{}",
        proof.stdout
    );
}

#[test]
fn a_run_that_is_recorded_is_known_as_far_as_it_got() {
    let env = TestEnv::new();
    let mut emit = env.start(&["emit", "--run", "run-2"]);
    let all = lines();
    for (n, line) in all[..3].iter().enumerate() {
        emit.send(line);
        assert_eq!(emit.line(), (n + 1).to_string());
    }
    let events = |env: &TestEnv| json(env, &["list", "--json"])[0]["events"].clone();
    assert_eq!(events(&env), 3);
    let hits = |env: &TestEnv, word: &str| {
        let found = json(env, &["search", word, "--json"]);
        found.as_array().unwrap().len()
    };
    assert_eq!(hits(&env, "forest"), 1);
    assert_eq!(hits(&env, "bird"), 0);
    for line in &all[3..] {
        emit.send(line);
        emit.line();
    }
    assert_eq!(events(&env), 5);
    assert!(hits(&env, "bird") > 0);
    drop(emit);
    // Killed: the half of a line at the end is not an event.
    let path = env.run_path("run-2");
    let mut file = std::fs::OpenOptions::new()
        .append(true)
        .open(&path)
        .unwrap();
    std::io::Write::write_all(&mut file, b"{\"seq\":6,\"run_id\":\"run-2\",\"ty").unwrap();
    assert_eq!(events(&env), 5);
    // Gone: nothing is known of it any more.
    std::fs::remove_file(&path).unwrap();
    assert_eq!(json(&env, &["list", "--json"]).as_array().unwrap().len(), 0);
    assert_eq!(hits(&env, "forest"), 0);
}

#[test]
fn what_a_run_refers_to_is_an_attachment_and_is_not_collected() {
    let env = TestEnv::new();
    // The SHA-256 of "data", "x" and "b".
    let [in_blob, in_call, loose] = [
        (
            "3a6eb0790f39ac87c94f3856b2dd2c5d110e6811602261a9a923d3bb23adc8b7",
            "data",
        ),
        (
            "2d711642b726b04401627ca9fbac32f5c8530fb1903cc4db02258717921a4881",
            "x",
        ),
        (
            "c2356069e9d1e79ca924378153cfbbfb4d4416b1f99d41a2940bfdb66c5319db",
            "b",
        ),
    ]
    .map(|(sha, bytes)| {
        let file = env.file(&format!("blobs/{}/{}", &sha[..2], &sha[2..]), bytes);
        let long_ago = std::time::UNIX_EPOCH + std::time::Duration::from_secs(1_700_000_000);
        let opened = std::fs::File::open(&file).unwrap();
        opened.set_modified(long_ago).unwrap();
        (sha, std::path::PathBuf::from(file))
    });
    let lines = [
        STARTED.to_owned(),
        format!(
            r#"{{"type":"blob","payload":{{"mime":"text/plain","bytes":4,"sha256":"{}"}}}}"#,
            in_blob.0
        ),
        format!(
            r#"{{"type":"model.call","payload":{{"request":{{"mime":"application/json","bytes":1,"sha256":"{}"}}}}}}"#,
            in_call.0
        ),
    ];
    let ran = env.run_with(&["emit", "--run", "run-1"], lines.join("\n") + "\n");
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    // Nobody has looked at the run yet.
    let ran = env.run(&["agentlog", "gc", "--yes"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert!(!loose.1.exists(), "nothing refers to it");
    assert!(in_blob.1.exists() && in_call.1.exists());
    assert_eq!(json(&env, &["list", "--json"])[0]["attachments"], 2);
    // The same of a run that was imported.
    let copy = env.path("copy.jsonl");
    std::fs::rename(env.run_path("run-1"), &copy).unwrap();
    let ran = env.run(&["import", copy.to_str().unwrap()]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert_eq!(json(&env, &["list", "--json"])[0]["attachments"], 2);
    assert_eq!(env.run(&["agentlog", "gc", "--yes"]).code, 0);
    assert!(in_blob.1.exists() && in_call.1.exists());
}
