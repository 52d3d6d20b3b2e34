use super::env::TestEnv;
use super::machine::{PROJECT, SESSION, figures, furnish, json, listing, user};

const OTHER: &str = "22222222-2222-4333-8444-555555555555";

fn two(env: &TestEnv) {
    furnish(env);
    let other = user(OTHER, 0, "Another").replace("/w/demo", "/w/other");
    env.file(&format!("{PROJECT}/{OTHER}.jsonl"), other);
    json(env, &["import", "--json"]);
}

fn receipts(env: &TestEnv) -> Vec<std::path::PathBuf> {
    match std::fs::read_dir(env.path("receipts")) {
        Ok(entries) => entries.map(|entry| entry.unwrap().path()).collect(),
        Err(_) => Vec::new(),
    }
}

#[test]
fn nothing_goes_unless_it_is_said_so() {
    let env = TestEnv::new();
    two(&env);
    let before = figures(&env, "");
    let archive = listing(&env.path("archive"));
    let ran = env.run(&["prune", "--project", "other"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert!(
        ran.stdout.contains("22222222") && !ran.stdout.contains("11111111"),
        "{}",
        ran.stdout
    );
    assert!(ran.stdout.contains("1 session of"), "{}", ran.stdout);
    assert!(
        ran.stdout.ends_with("would go; --yes does it.\n"),
        "{}",
        ran.stdout
    );
    assert_eq!(before, figures(&env, ""));
    assert!(archive == listing(&env.path("archive")) && receipts(&env).is_empty());
    let ran = env.run(&["prune"]);
    assert_eq!(ran.code, 2);
    assert!(ran.stderr.contains("--older-than"), "{}", ran.stderr);
}

#[test]
fn what_goes_is_written_down() {
    let env = TestEnv::new();
    two(&env);
    let person = listing(&env.path("person"));
    let ran = env.run(&["prune", "--project", "demo", "--yes"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert!(
        ran.stderr.contains("the next import brings them back"),
        "{}",
        ran.stderr
    );
    let receipts = receipts(&env);
    let [receipt] = &receipts[..] else {
        panic!("{receipts:?}");
    };
    let name = receipt.file_name().unwrap().to_str().unwrap();
    assert!(ran.stdout.contains(name), "{}", ran.stdout);
    let mode = std::os::unix::fs::MetadataExt::mode(&receipt.metadata().unwrap());
    assert_eq!(mode & 0o777, 0o600);
    let receipt: serde_json::Value =
        serde_json::from_slice(&std::fs::read(receipt).unwrap()).unwrap();
    let removed = receipt["removed"].as_array().unwrap();
    let main = removed.iter().find(|it| it["run_id"] == SESSION).unwrap();
    let paths: Vec<&str> = main["sources"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| it["path"].as_str().unwrap())
        .collect();
    assert!(
        paths
            .iter()
            .any(|path| path.ends_with("tool-results/big.txt")),
        "{paths:?}"
    );
    assert_eq!(main["sources"][0]["chunks"][0].as_str().unwrap().len(), 64);
    assert!(receipt["swept"]["chunks"].as_u64() > Some(0), "{receipt}");

    let left = figures(&env, "");
    assert_eq!(left.len(), 1);
    assert_eq!(left[0]["run_id"], OTHER);
    assert_eq!(env.run(&["show", SESSION]).code, 3);
    assert_eq!(env.run(&["show", OTHER]).code, 0);
    assert_eq!(env.run(&["doctor", "--check"]).code, 0);
    assert!(
        person == listing(&env.path("person")),
        "the agent's own files stay"
    );
    // And they are imported again, because they are still there.
    json(&env, &["import", "--json"]);
    assert_eq!(env.run(&["show", SESSION]).code, 0);
}

#[test]
fn by_age_and_size() {
    let env = TestEnv::new();
    two(&env);
    let count = |args: &[&str]| {
        let mut all = vec!["prune", "--json"];
        all.extend(args);
        json(&env, &all)["would_remove"].as_array().unwrap().len()
    };
    let all = figures(&env, "").len();
    assert_eq!(count(&["--older-than", "0h"]), all);
    assert_eq!(count(&["--older-than", "90y"]), 0);
    assert_eq!(
        count(&["--larger-than", "1kB", "--agent", "claude-code"]),
        1
    );
    assert_eq!(count(&["--larger-than", "1GB"]), 0);
    assert_eq!(count(&["--larger-than", "0", "--project", "other"]), 1);
    assert_eq!(count(&["--agent", "codex"]), 0);
    assert!(receipts(&env).is_empty());
}

#[test]
fn an_empty_home_has_nothing_to_forget() {
    let env = TestEnv::new();
    let ran = env.run(&["prune", "--agent", "claude-code", "--yes"]);
    assert_eq!(
        (ran.code, ran.stderr.as_str()),
        (0, "nothing is kept, so nothing can go\n")
    );
}

#[test]
fn the_last_copy_needs_another_word() {
    let env = TestEnv::new();
    two(&env);
    std::fs::remove_file(env.path(&format!("{PROJECT}/{OTHER}.jsonl"))).unwrap();
    let args = ["prune", "--project", "other"];
    let ran = env.run(&args);
    assert!(ran.stdout.contains("  only here\n"), "{}", ran.stdout);
    assert!(
        ran.stdout.ends_with(
            "would go; --yes --last-copies does it.\n1 of these exists only here; this cannot be undone.\n"
        ),
        "{}",
        ran.stdout
    );
    let before = figures(&env, "");
    let ran = env.run(&[&args[..], &["--yes"]].concat());
    assert_eq!(ran.code, 2);
    assert!(ran.stderr.contains("--yes --last-copies"), "{}", ran.stderr);
    assert!(before == figures(&env, "") && receipts(&env).is_empty());
    assert_eq!(env.run(&[&args[..], &["--last-copies"]].concat()).code, 2);
    let document = json(&env, &[&args[..], &["--json"]].concat());
    assert_eq!(
        (&document["only_here"], &document["removed"]),
        (&1.into(), &().into())
    );
    let document = json(
        &env,
        &[&args[..], &["--yes", "--last-copies", "--json"]].concat(),
    );
    assert_eq!(document["removed"][0]["run_id"], OTHER);
    assert_eq!(env.run(&["show", OTHER]).code, 3);
}

#[test]
fn a_beginning_is_not_enough_to_forget() {
    let env = TestEnv::new();
    two(&env);
    let ran = env.run(&["prune", "--agent", "claude"]);
    assert_eq!(ran.code, 2);
    assert!(ran.stderr.contains("claude-code"), "{}", ran.stderr);
    for project in ["othe", "Other", "/w/othe"] {
        let ran = env.run(&["prune", "--project", project]);
        assert_eq!((ran.code, ran.stdout.as_str()), (0, ""), "{project}");
    }
    let ran = env.run(&["prune", "--project", "/w/other"]);
    assert!(ran.stdout.contains("22222222"), "{}", ran.stdout);
}
