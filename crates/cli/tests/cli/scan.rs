//! Bare `quipu`.

use std::time::{Duration, SystemTime};

use super::env::TestEnv;
use super::machine::{PROJECT, furnish, json, listing, user};

#[test]
fn says_what_it_looked_for_when_there_is_nothing() {
    let env = TestEnv::new();
    let home = env.path("data");
    let ran = env.run(&["--home", home.to_str().unwrap()]);
    assert_eq!((ran.code, ran.stderr.as_str()), (0, ""));
    for part in [
        "No sessions of any agent were found",
        "claude-code",
        "Nothing is kept yet.",
        "quipu --home HOME/data up --demo",
        "quipu --home HOME/data import PATH",
    ] {
        assert!(ran.stdout.contains(part), "{part} in {}", ran.stdout);
    }
    assert!(!home.exists());
    let document = json(&env, &["--home", home.to_str().unwrap(), "--json"]);
    assert!(document["agents"].as_array().unwrap().is_empty() && document["kept"].is_null());
    assert!(document["places"].as_array().unwrap().len() > 10);
    assert!(!home.exists());
}

#[test]
fn counts_what_is_here_kept_and_new() {
    let env = TestEnv::new();
    furnish(&env);
    let before = listing(&env.path("person"));
    let home = env.path("data");
    let home = home.to_str().unwrap();
    let claude = |document: &serde_json::Value| document["agents"][0].clone();
    let found = claude(&json(&env, &["--home", home, "--json"]));
    assert_eq!(
        (&found["agent"], &found["logs"], &found["kept"]),
        (&"claude-code".into(), &3.into(), &0.into())
    );
    assert!(!env.path("data").exists());
    let ran = env.run(&["--home", home]);
    let next = "quipu --home HOME/data up --once";
    assert!(ran.stdout.contains(next), "{}", ran.stdout);

    json(&env, &["--home", home, "import", "--json"]);
    let document = json(&env, &["--home", home, "--json"]);
    assert_eq!(claude(&document)["kept"], 3);
    assert_eq!(
        (&document["kept"]["subagents"], &document["kept"]["gone"]),
        (&1.into(), &0.into())
    );
    // Another session, and one that its agent deleted.
    let other = "22222222-2222-4333-8444-555555555555";
    env.file(&format!("{PROJECT}/{other}.jsonl"), user(other, 0, "hello"));
    let ran = env.run(&["--home", home]);
    let row: Vec<&str> = ran
        .stdout
        .lines()
        .nth(1)
        .unwrap()
        .split_whitespace()
        .collect();
    assert_eq!(
        (row[0], row[1], row.last()),
        ("claude-code", "4", Some(&"1")),
        "{}",
        ran.stdout
    );
    std::fs::remove_file(env.path(&format!("{PROJECT}/{other}.jsonl"))).unwrap();
    assert!(before == listing(&env.path("person")) || !before.is_empty());
    std::fs::remove_dir_all(env.path(PROJECT)).unwrap();
    let ran = env.run(&["--home", home]);
    assert!(
        ran.stdout.contains("only here: the agent's own is gone."),
        "{}",
        ran.stdout
    );
}

#[test]
fn warns_of_what_is_about_to_be_deleted() {
    let env = TestEnv::new();
    furnish(&env);
    let old = env.file(
        &format!("{PROJECT}/old.jsonl"),
        user("33333333-2222-4333-8444-555555555555", 0, "x"),
    );
    let age = Duration::from_secs(26 * 86_400 + 3_600);
    let file = std::fs::File::options().append(true).open(old).unwrap();
    file.set_modified(SystemTime::now() - age).unwrap();
    let ran = env.run(&[]);
    assert!(
        ran.stdout.contains(
            "claude-code deletes logs after about 30 days: 1 log within a week, the oldest in about 4 days."
        ),
        "{}",
        ran.stdout
    );
    let document = json(&env, &["--json"]);
    assert_eq!(
        (
            &document["agents"][0]["expiring"],
            &document["agents"][0]["days_left"]
        ),
        (&1.into(), &4.into())
    );
}
