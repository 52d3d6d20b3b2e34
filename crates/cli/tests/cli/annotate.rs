//! `quipu label`, `quipu note`, and lists by label

use std::os::unix::fs::PermissionsExt as _;

use super::env::TestEnv;
use super::machine::{SESSION, furnish, json};

fn imported() -> TestEnv {
    let env = TestEnv::new();
    furnish(&env);
    json(&env, &["import", "--json"]);
    env
}

/// Ends well, and gives what it wrote.
fn done(env: &TestEnv, args: &[&str]) -> String {
    let ran = env.run(args);
    assert_eq!(ran.code, 0, "{args:?}: {}", ran.stderr);
    ran.stdout
}

#[test]
fn labels_are_put_found_listed_and_taken_away() {
    let env = imported();
    let by = ["--by", "ada"];
    done(
        &env,
        &[&["label", SESSION, "add", "good", "area/engine"][..], &by].concat(),
    );
    done(
        &env,
        &[&["label", SESSION, "add", "slow", "--seq", "3"][..], &by].concat(),
    );
    let ids = |label: &str| -> Vec<String> {
        let rows = json(&env, &["list", "--label", label, "--json"]);
        let rows = rows.as_array().unwrap();
        rows.iter()
            .map(|row| row["run_id"].as_str().unwrap().to_owned())
            .collect()
    };
    assert_eq!(ids("good"), [SESSION]);
    assert_eq!(ids("slow"), [SESSION], "a label on an event is one as well");
    assert_eq!(ids("none"), Vec::<String>::new());
    let empty = env.run(&["list", "--label", "none"]);
    assert_eq!(empty.stderr, "No sessions match these filters.\n");
    let there = json(&env, &["label", SESSION, "list", "--json"]);
    let labels = there["labels"].as_array().unwrap();
    assert_eq!(labels.len(), 3);
    assert_eq!(
        (&labels[2]["label"], &labels[2]["seq"]),
        (&"slow".into(), &3.into())
    );
    assert_eq!(labels[0]["by"], "ada");
    let address = json(&env, &["list", "--label", "good", "--json"])[0]["id"].clone();
    assert_eq!(there["transcript"], address);
    let shown = done(&env, &["label", SESSION]);
    assert!(
        shown.contains("area/engine") && shown.contains("slow #3"),
        "{shown}"
    );
    assert!(done(&env, &["label"]).contains("LABEL"));
    let all = json(&env, &["label", "--json"]);
    assert_eq!(all.as_array().unwrap().len(), 3);
    done(&env, &["label", SESSION, "remove", "good"]);
    assert_eq!(ids("good"), Vec::<String>::new());
    let again = env.run(&["label", SESSION, "remove", "good"]);
    assert_eq!(
        (again.code, again.stderr.as_str()),
        (3, "error: the label good is not there\n")
    );
    let mode = env
        .path("annotations.jsonl")
        .metadata()
        .unwrap()
        .permissions()
        .mode();
    assert_eq!(mode & 0o777, 0o600);
}

#[test]
fn notes_are_written_read_changed_and_deleted() {
    let env = imported();
    let hostile = "see \u{1b}[31mred\u{202e}";
    let refused = env.run(&["note", SESSION, hostile]);
    assert_eq!(refused.code, 2, "{}", refused.stderr);
    let id = done(
        &env,
        &[
            "note",
            SESSION,
            "--seq",
            "2",
            "--by",
            "ada",
            "first\nsecond \u{202e}line",
        ],
    );
    let id = id.trim_end();
    let shown = done(&env, &["note", SESSION]);
    assert!(
        shown.contains(id) && shown.contains("#2") && shown.contains("    first"),
        "{shown}"
    );
    assert!(!shown.contains('\u{202e}'), "{shown}");
    done(&env, &["note", SESSION, "--edit", id, "other"]);
    let there = json(&env, &["note", SESSION, "--json"]);
    assert_eq!(there["notes"][0]["text"], "other");
    assert_eq!(there["notes"][0]["by"], "ada");
    assert_eq!(
        there["notes"][0]["edited_by"], "unknown",
        "nobody says who is at the keyboard"
    );
    done(&env, &["note", SESSION, "--delete", id]);
    let gone = env.run(&["note", SESSION, "--delete", id]);
    assert_eq!(gone.code, 3, "{}", gone.stderr);
    assert_eq!(
        env.run(&["note", SESSION]).stderr,
        format!("No notes on {SESSION}\n")
    );
}

#[test]
fn wrong_usage_says_what_to_do() {
    let env = imported();
    for (args, code, said) in [
        (vec!["label", SESSION, "add"], 2, "which label?"),
        (
            vec!["label", SESSION, "add", "two words"],
            2,
            "a label is 1 to 64",
        ),
        (
            vec!["label", SESSION, "list", "x"],
            2,
            "`list` takes no labels",
        ),
        (
            vec!["label", SESSION, "add", "x", "--seq", "99"],
            2,
            "has events 1 to",
        ),
        (
            vec!["label", SESSION, "add", "x", "--seq", "0"],
            2,
            "has events 1 to",
        ),
        (
            vec!["label", "nobody-has-this", "add", "x"],
            3,
            "no session or run begins with",
        ),
        (vec!["note", SESSION, "  "], 2, "a note is 1 to"),
    ] {
        let ran = env.run(&args);
        assert_eq!(
            (ran.code, ran.stdout.as_str()),
            (code, ""),
            "{args:?}: {}",
            ran.stderr
        );
        assert!(ran.stderr.contains(said), "{args:?}: {}", ran.stderr);
    }
    assert!(!env.path("annotations.jsonl").exists());
}

#[test]
fn a_rebuild_and_a_prune_keep_annotations_unless_asked() {
    let env = imported();
    done(&env, &["label", SESSION, "add", "good"]);
    let journal = || std::fs::read_to_string(env.path("annotations.jsonl")).unwrap();
    let before = journal();
    done(&env, &["import", "--rebuild"]);
    assert_eq!(
        json(&env, &["list", "--label", "good", "--json"])
            .as_array()
            .unwrap()
            .len(),
        1
    );
    done(
        &env,
        &["prune", "--agent", "claude-code", "--yes", "--last-copies"],
    );
    assert_eq!(journal(), before);
    done(&env, &["import"]);
    assert_eq!(
        json(&env, &["list", "--label", "good", "--json"])
            .as_array()
            .unwrap()
            .len(),
        1
    );
    done(
        &env,
        &[
            "prune",
            "--agent",
            "claude-code",
            "--yes",
            "--last-copies",
            "--annotations",
        ],
    );
    assert_eq!(journal(), "");
}

#[test]
fn recorded_runs_are_annotated_like_sessions() {
    let env = TestEnv::new();
    let ran = env.run_with(
        &["emit", "--run", "run-1"],
        "{\"type\":\"run.started\",\"payload\":{\"name\":\"w\",\"kind\":\"workflow\"}}\n",
    );
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    done(&env, &["label", "run-1", "add", "mine", "--seq", "1"]);
    let rows = json(&env, &["list", "--label", "mine", "--json"]);
    assert_eq!(rows[0]["run_id"], "run-1");
}
