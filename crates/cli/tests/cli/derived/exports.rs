//! Exports that people read and hand on say what is in them.

use quipu_redact::rule::expand;
use serde_json::Value;

use crate::cli::env::{Ran, TestEnv};
use crate::cli::machine::{PROJECT, SESSION, assistant, call, result, text, user};

const CLEAN: &str = "22222222-2222-4333-8444-555555555555";

/// A session with two secrets, one of them twice, and one with none.
fn two_sessions() -> TestEnv {
    let env = TestEnv::new();
    let token = |seed| expand("ghp_{alnum:36}", seed).unwrap().text;
    let (one, two) = (token(1), token(2));
    let command = serde_json::json!({ "command": format!("curl -u me:{two} example.org") });
    let log = user(SESSION, 0, &format!("log in with {one}"))
        + &assistant(SESSION, 1, &call("t1", "Bash", &command))
        + &result(SESSION, 2, "t1", &format!("logged in with\n{one}\n"), "");
    env.file(&format!("{PROJECT}/{SESSION}.jsonl"), log);
    let log = user(CLEAN, 0, "say hello") + &assistant(CLEAN, 1, &text("hello"));
    env.file(&format!("{PROJECT}/{CLEAN}.jsonl"), log);
    assert_eq!(env.run(&["import"]).code, 0);
    env
}

/// What an export said, and how many secrets its report tells of.
fn export(env: &TestEnv, id: &str, format: &str, more: &[&str]) -> (Ran, Value) {
    let report = env.path("report.json");
    let mut args = vec!["export", id, "--to", format, "-o"];
    let file = env.path("out");
    let file = file.to_str().unwrap();
    args.extend([file, "--force", "--report", report.to_str().unwrap()]);
    args.extend(more);
    let ran = env.run(&args);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let report: Value = serde_json::from_slice(&std::fs::read(report).unwrap()).unwrap();
    (ran, report["secrets"].clone())
}

fn says_what_it_holds(format: &str) {
    let env = two_sessions();
    let (ran, secrets) = export(&env, SESSION, format, &[]);
    assert_eq!(secrets, 2, "{format}: {}", ran.stderr);
    let said = format!("what was written as {format} holds 2 secrets; --profile team");
    assert!(ran.stderr.contains(&said), "{}", ran.stderr);
    for (id, more) in [(SESSION, &["--profile", "team"][..]), (CLEAN, &[])] {
        let (ran, secrets) = export(&env, id, format, more);
        assert_eq!(secrets, 0, "{format}: {}", ran.stderr);
        assert!(!ran.stderr.contains("secret"), "{}", ran.stderr);
    }
}

#[test]
fn a_page_says_how_many_secrets_it_holds() {
    says_what_it_holds("html");
}

#[test]
fn markdown_says_how_many_secrets_it_holds() {
    says_what_it_holds("markdown");
}

#[test]
fn text_says_how_many_secrets_it_holds() {
    says_what_it_holds("text");
}

/// Programs read the others; they are not looked at.
#[test]
fn formats_for_programs_count_no_secrets() {
    let env = two_sessions();
    let (ran, secrets) = export(&env, SESSION, "normalized", &[]);
    assert_eq!(secrets, Value::Null);
    assert!(!ran.stderr.contains("secret"), "{}", ran.stderr);
}
