//! `quipu stats blocks`

use super::env::TestEnv;
use super::machine::json;

const SESSION: &str = "aaaaaaaa-2222-4333-8444-555555555555";

fn reply(n: u32, time: &str) -> String {
    format!(
        r#"{{"type":"assistant","uuid":"cccccccc-0000-4000-8000-{n:012}","parentUuid":null,"sessionId":"{SESSION}","cwd":"/code","version":"2.1.200","timestamp":"{time}","message":{{"id":"msg_{n:020}","role":"assistant","model":"claude-opus-4-5-20251101","content":[{{"type":"text","text":"done"}}],"usage":{{"input_tokens":1000,"output_tokens":100}}}}}}"#
    ) + "\n"
}

fn imported(times: &[String]) -> TestEnv {
    let env = TestEnv::new();
    let lines: String = (1..).zip(times).map(|(n, time)| reply(n, time)).collect();
    env.file(
        &format!("person/.claude/projects/-code/{SESSION}.jsonl"),
        lines,
    );
    json(&env, &["import", "--json"]);
    env
}

fn old() -> TestEnv {
    imported(&["2026-01-02T03:20:00Z", "2026-01-02T08:10:00Z"].map(str::to_owned))
}

#[test]
fn blocks_are_listed_and_written() {
    let env = old();
    let ran = env.run(&["stats", "blocks"]);
    assert_eq!((ran.code, ran.stderr.as_str()), (0, ""));
    let lines: Vec<&str> = ran.stdout.lines().collect();
    assert_eq!(lines.len(), 3, "{}", ran.stdout);
    assert!(lines[1].contains("claude-code"), "{}", ran.stdout);
    assert!(
        lines[1].contains("2026-01-02 03:00 to 08:00"),
        "{}",
        ran.stdout
    );
    assert!(
        lines[2].contains("2026-01-02 08:00 to 13:00"),
        "{}",
        ran.stdout
    );
    let document = json(&env, &["stats", "blocks", "--json"]);
    let blocks = document["blocks"].as_array().unwrap();
    assert_eq!(blocks.len(), 2);
    assert_eq!(blocks[0]["start"], "2026-01-02T03:00:00Z");
    assert_eq!(blocks[0]["spent"]["tokens"]["total"], 1100);
    assert_eq!(blocks[0]["spent"]["usd"], "0.0075");
    assert_eq!(
        (&blocks[0]["left_ms"], &blocks[0]["projection"]),
        (&serde_json::Value::Null, &serde_json::Value::Null)
    );
    let read: quipu_api::blocks::Blocks = serde_json::from_value(document.clone()).unwrap();
    assert_eq!(read.agents, ["claude-code"]);
    let lines = env.run(&[
        "stats",
        "blocks",
        "--jsonl",
        "--since",
        "2026-01-02T08:00:00Z",
    ]);
    let lines: Vec<serde_json::Value> = lines
        .stdout
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(lines, [blocks[1].clone()]);
}

#[test]
fn what_is_not_there_is_said() {
    let env = old();
    for (args, said) in [
        (vec!["--active"], "No block is active."),
        (vec!["--agent", "codex"], "No usage matches these filters."),
    ] {
        let ran = env.run(&[vec!["stats", "blocks"], args].concat());
        assert_eq!((ran.code, ran.stdout.as_str()), (0, ""));
        assert!(ran.stderr.starts_with(said), "{}", ran.stderr);
    }
    let unknown = env.run(&["stats", "blocks", "--agent", "nobody-knows-it"]);
    assert_eq!(unknown.code, 2, "{}", unknown.stderr);
    let empty = TestEnv::new();
    assert_eq!(empty.run(&["stats", "blocks"]).code, 0);
    assert_eq!(
        json(&empty, &["stats", "blocks", "--json"])["blocks"]
            .as_array()
            .unwrap()
            .len(),
        0
    );
}

#[test]
fn the_block_at_hand_says_how_much_is_left() {
    // Twenty minutes apart are two quarters of an hour, whenever it is.
    let now = jiff::Timestamp::now();
    let before = |minutes: i64| {
        let at = now - jiff::SignedDuration::from_mins(minutes);
        at.to_string()
    };
    let env = imported(&[before(21), before(1)]);
    let document = json(&env, &["stats", "blocks", "--active", "--json"]);
    let blocks = document["blocks"].as_array().unwrap();
    assert_eq!(blocks.len(), 1, "{document}");
    assert_eq!(blocks[0]["active"], true);
    assert!(blocks[0]["left_ms"].as_u64().unwrap() <= 5 * 60 * 60 * 1000);
    assert_eq!(blocks[0]["projection"]["is_projection"], true);
    assert!(blocks[0]["projection"]["tokens"].as_u64().unwrap() >= 2200);
    let ran = env.run(&["stats", "blocks", "--active"]);
    assert!(
        ran.stdout.contains("left") && ran.stdout.contains("projection"),
        "{}",
        ran.stdout
    );
}
