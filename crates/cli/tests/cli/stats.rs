//! `quipu stats`

use super::env::TestEnv;
use super::machine::json;

const FIRST: &str = "aaaaaaaa-2222-4333-8444-555555555555";
const FORK: &str = "bbbbbbbb-2222-4333-8444-555555555555";
const PROJECT: &str = "person/.claude/projects/-code-engine";

/// A line of a session at a time; lines with the same number are copies of each other.
fn line(session: &str, n: u32, time: &str, kind: &str, message: &str) -> String {
    format!(
        r#"{{"type":"{kind}","uuid":"cccccccc-0000-4000-8000-{n:012}","parentUuid":null,"sessionId":"{session}","cwd":"/code/engine","gitBranch":"main","version":"2.1.200","timestamp":"{time}","message":{message}}}"#
    ) + "\n"
}

fn prompt(session: &str, n: u32, time: &str, text: &str) -> String {
    let message = format!(r#"{{"role":"user","content":"{text}"}}"#);
    line(session, n, time, "user", &message)
}

fn reply(session: &str, n: u32, time: &str, model: &str, usage: &str) -> String {
    let message = format!(
        r#"{{"id":"msg_{n:020}","role":"assistant","model":"{model}","content":[{{"type":"text","text":"done"}}],"usage":{{{usage}}}}}"#
    );
    line(session, n, time, "assistant", &message)
}

const OPUS: &str = "claude-opus-4-5-20251101";

/// Two sessions, one of them a fork of the other; two calls on either side of midnight in Berlin.
fn furnish(env: &TestEnv) {
    let shared = |session: &str| {
        [
            prompt(session, 1, "2026-11-03T22:50:00Z", "Build the engine"),
            reply(
                session,
                2,
                "2026-11-03T22:58:00Z",
                OPUS,
                r#""input_tokens":1000,"cache_creation_input_tokens":20000,"cache_creation":{"ephemeral_1h_input_tokens":20000},"output_tokens":500"#,
            ),
        ]
        .concat()
    };
    let first = shared(FIRST)
        + &reply(
            FIRST,
            3,
            "2026-11-03T23:01:00Z",
            OPUS,
            r#""input_tokens":10,"cache_read_input_tokens":21000,"cache_creation_input_tokens":0,"output_tokens":100"#,
        );
    let fork = shared(FORK)
        + &reply(
            FORK,
            4,
            "2026-11-05T10:00:00Z",
            "=nobody-sells-this",
            r#""input_tokens":7,"output_tokens":5"#,
        );
    env.file(&format!("{PROJECT}/{FIRST}.jsonl"), first);
    env.file(&format!("{PROJECT}/{FORK}.jsonl"), fork);
}

fn imported() -> TestEnv {
    let env = TestEnv::new();
    furnish(&env);
    json(&env, &["import", "--json"]);
    env
}

#[test]
fn forks_are_counted_once_and_days_are_local() {
    let env = imported();
    let table = json(&env, &["stats", "--json", "--zone", "Europe/Berlin"]);
    let days: Vec<&str> = table["rows"]
        .as_array()
        .unwrap()
        .iter()
        .map(|row| row["day"].as_str().unwrap())
        .collect();
    assert_eq!(days, ["2026-11-03", "2026-11-04", "2026-11-05"]);
    // 1,000 at 5, 20,000 at 10 (an hour) and 500 at 25 dollars per million.
    assert_eq!(table["rows"][0]["spent"]["usd"], "0.2175");
    assert_eq!(
        table["rows"][0]["spent"]["tokens"]["cache_write_1h"],
        20_000
    );
    assert_eq!(table["rows"][1]["spent"]["usd"], "0.01305");
    assert!(
        table["rows"][2]["spent"]["usd"].is_null(),
        "no price is not zero"
    );
    assert_eq!(table["total"]["spent"]["calls"], 3);
    assert_eq!(table["total"]["spent"]["usd"], "0.23055");
    assert_eq!(table["unpriced"][0]["model"], "=nobody-sells-this");
    let utc = json(&env, &["stats", "--json", "--zone", "UTC"]);
    assert_eq!(utc["rows"].as_array().unwrap().len(), 2);
    assert_eq!(utc["total"], table["total"]);
    // Without a store it is the same.
    let person = env.path("person");
    let logs = person.to_str().unwrap();
    let loose = json(
        &env,
        &["stats", "--json", "--zone", "UTC", "--from-logs", logs],
    );
    assert_eq!(loose, utc);
}

#[test]
fn people_see_a_table() {
    let env = imported();
    let ran = env.run(&["stats"]);
    assert_eq!(ran.code, 0);
    assert!(
        ran.stderr
            .contains("no price: 12 tokens of =nobody-sells-this (1 call)"),
        "{}",
        ran.stderr
    );
    let lines: Vec<&str> = ran.stdout.lines().collect();
    assert!(lines[0].starts_with("DAY"), "{}", ran.stdout);
    let first: Vec<&str> = lines[1].split_whitespace().collect();
    assert_eq!(first[0], "2026-11-03");
    assert!(first.contains(&"$0.23"), "{}", ran.stdout);
    assert!(
        lines[1].ends_with('█') && lines[2].contains("no price"),
        "{}",
        ran.stdout
    );
    assert!(
        lines[3].starts_with("total") && lines[3].contains("$0.23 + ?"),
        "{}",
        ran.stdout
    );
    let ran = env.run(&["stats", "--by", "session"]);
    assert!(ran.stdout.contains("Build the engine"), "{}", ran.stdout);
    let ran = env.run(&["stats", "--since", "2027-01-01"]);
    assert_eq!(
        (ran.stdout.as_str(), ran.stderr.as_str()),
        ("", "nothing that is kept is like that\n")
    );
    let ran = env.run(&["stats", "--by", "tool,model"]);
    assert_eq!(ran.code, 2);
    assert!(
        ran.stderr.contains("tools cannot be told apart by model"),
        "{}",
        ran.stderr
    );
    let ran = env.run(&["stats", "--zone", "Mars/Olympus"]);
    assert_eq!(ran.code, 2);
}

#[test]
fn explanations_show_the_rates_and_their_date() {
    let env = imported();
    let ran = env.run(&["stats", "explain", "aaaa", "--zone", "UTC"]);
    for part in [
        "prices, in dollars per million tokens",
        "[1] anthropic/claude-opus-4-5",
        "as of 20",
        "input $5, cache read $0.5, cache write $6.25, cache write 1h $10, output $25; 1,000 web searches $10",
    ] {
        assert!(ran.stdout.contains(part), "{part} in\n{}", ran.stdout);
    }
    let ran = env.run(&["stats", "explain", "aaaa", "--jsonl"]);
    let one: serde_json::Value = serde_json::from_str(ran.stdout.lines().next().unwrap()).unwrap();
    let price = &one["calls"][0]["price"];
    assert_eq!(price["per_million"]["input"]["usd"], "5");
    assert_eq!(price["per_million"]["output"]["assumed"], false);
    assert_eq!(price["per_thousand_searches"], "10");
    assert_eq!(one["calls"][0]["priced_by"], "table");
}

#[test]
fn what_has_no_price_leads_to_the_configuration() {
    let env = imported();
    let ran = env.run(&["stats"]);
    let hint = "[[prices.model]] name = \"=nobody-sells-this\"";
    assert!(ran.stderr.contains(hint), "{}", ran.stderr);
    let price = "[[prices.model]]\nname = \"=nobody-sells-this\"\nfree = true\n";
    env.file("config.toml", price);
    let ran = env.run(&["stats"]);
    assert_eq!(ran.stderr, "");
}

#[test]
fn spreadsheets_run_nothing() {
    let env = imported();
    let ran = env.run(&["stats", "--by", "model", "--csv"]);
    let lines: Vec<&str> = ran.stdout.split("\r\n").collect();
    assert!(lines[0].starts_with("model,calls,input,cache_read,cache_write,cache_write_1h,output"));
    assert!(
        lines[1].starts_with(&format!("{OPUS},2,1010,21000,20000,20000,600,")),
        "{}",
        ran.stdout
    );
    assert!(lines[1].contains(",0.23055,0,"), "{}", ran.stdout);
    assert!(
        lines[2].starts_with("'=nobody-sells-this,1,7,,,,5,,12,,12,"),
        "{}",
        ran.stdout
    );
}

#[test]
fn explanations_say_what_is_left_out() {
    let env = imported();
    let ran = env.run(&["stats", "explain", "--zone", "UTC"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    for part in [
        "2026-11-03 22:58:00",
        "$0.2175",
        "$0.01305",
        "anthropic/claude-opus-4-5",
        "not counted: 1 call copied from aaaaaaaa-2222-4333-8444-555555555555",
        "no price is known for",
        "sum  $0.23055 and 12 tokens without a price",
    ] {
        assert!(ran.stdout.contains(part), "{part} in\n{}", ran.stdout);
    }
    let ran = env.run(&["stats", "explain", "bbbb", "--jsonl"]);
    let one: serde_json::Value = serde_json::from_str(ran.stdout.lines().next().unwrap()).unwrap();
    assert_eq!(one["left_out"][0]["why"], "copied");
    assert_eq!(one["left_out"][0]["of"], FIRST);
    assert_eq!(one["calls"].as_array().unwrap().len(), 1);
    // Only what is asked for.
    let ran = env.run(&[
        "stats",
        "explain",
        "--since",
        "2026-11-03T23:00:00Z",
        "--brief",
    ]);
    assert!(
        ran.stdout.contains("of another time or model"),
        "{}",
        ran.stdout
    );
}

#[test]
fn budgets_warn_and_fail_scripts() {
    let env = imported();
    let ran = env.run(&["stats", "budget"]);
    assert_eq!(ran.code, 2, "none is set");
    let month = ["stats", "budget", "--month", "100", "--json"];
    assert_eq!(json(&env, &month)["budgets"][0]["exceeded"], false);
    env.file(
        "config.toml",
        "colour = 1\n[budget.project]\n\"/code\" = 0\n",
    );
    let ran = env.run(&["stats"]);
    assert!(
        ran.stderr.contains("config.toml: colour is not known"),
        "{}",
        ran.stderr
    );
    env.file("config.toml", "[budget]\nday = \"much\"\n");
    let ran = env.run(&["stats"]);
    assert_eq!(ran.code, 3);
    assert!(
        ran.stderr.contains("config.toml:2: budget.day"),
        "{}",
        ran.stderr
    );
}

/// A budget of the session that is going on, to the last digit.
#[test]
fn a_budget_is_exceeded_by_the_smallest_unit() {
    let env = TestEnv::new();
    let now = jiff::Timestamp::now().to_string();
    let session = "dddddddd-2222-4333-8444-555555555555";
    let usage = r#""input_tokens":1000000,"output_tokens":1"#;
    env.file(
        &format!("{PROJECT}/{session}.jsonl"),
        prompt(session, 1, &now, "go") + &reply(session, 2, &now, OPUS, usage),
    );
    json(&env, &["import", "--json"]);
    // A million at 5 dollars and one token at 25 per million.
    let spent = json(&env, &["stats", "--json"])["total"]["spent"]["usd"].clone();
    let spent = spent.as_str().unwrap();
    env.file(
        "config.toml",
        format!("[budget]\nday = \"{spent}\"\nsession = \"{spent}\"\n"),
    );
    let ran = env.run(&["stats", "--check"]);
    assert_eq!((ran.code, ran.stderr.as_str()), (0, ""));
    env.file(
        "config.toml",
        "[budget]\nday = 5\nsession = 5.00002499\n[budget.project]\n\"/code\" = 5\n",
    );
    let ran = env.run(&["stats"]);
    assert_eq!(ran.code, 0);
    assert_eq!(
        ran.stderr
            .matches("warning: over budget: $5.00 of $5.00 for the")
            .count(),
        3,
        "{}",
        ran.stderr
    );
    assert_eq!(env.run(&["stats", "--check"]).code, 1);
    assert_eq!(env.run(&["stats", "budget"]).code, 1);
    assert_eq!(
        env.run(&["stats", "budget", "--day", "6", "--session", "6"])
            .code,
        1
    );
}

#[test]
fn bare_quipu_tells_dollars() {
    let env = imported();
    let ran = env.run(&[]);
    assert!(ran.stdout.contains(" tokens, $0.23 + ?."), "{}", ran.stdout);
    let document = json(&env, &["--json"]);
    assert_eq!(document["kept"]["usd"], "0.23055");
}
