//! Secrets out of files, recordings, imports, searches and exports, through the binary.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use quipu_redact::rule::expand;
use serde_json::{Value, json};

use super::env::{Ran, TestEnv};

/// A token of GitHub that nobody was ever given.
fn token(seed: u64) -> String {
    expand("ghp_{alnum:36}", seed).unwrap().text
}

fn done(ran: &Ran) {
    assert_eq!(ran.code, 0, "{ran:?}");
}

/// A made-up log of Claude Code in which tokens stand.
fn log(said: &[&str]) -> String {
    let mut log = String::new();
    for (n, text) in said.iter().enumerate() {
        let record = json!({
            "type": "user",
            "uuid": format!("0000000{n}-0000-4000-8000-000000000000"),
            "parentUuid": null,
            "sessionId": "7c1e5a90-2b3d-4f6a-8c9d-0e1f2a3b4c5d",
            "cwd": "/home/ada/engine",
            "gitBranch": "secret-branch",
            "version": "2.0.1",
            "timestamp": format!("2026-06-22T10:00:0{n}.000Z"),
            "message": {"role": "user", "content": text},
        });
        log.push_str(&record.to_string());
        log.push('\n');
    }
    log
}

#[test]
fn a_filter_changes_nothing_but_what_it_finds() {
    let env = TestEnv::new();
    let (one, two) = (token(1), token(2));
    let input = format!(
        "{{ \"b\":1,\"a\" : \"x\\n{one} y\", \"n\": 1.50e1 }}\r\nplain {two} and {one}\n{{\"a\":\"\\u0041\"}}"
    );
    let expected = "{ \"b\":1,\"a\" : \"x\\n[REDACTED:github] y\", \"n\": 1.50e1 }\r\nplain [REDACTED:github#2] and [REDACTED:github]\n{\"a\":\"\\u0041\"}";
    for args in [&["redact"][..], &["redact", "-"]] {
        let ran = env.run_with(args, &input);
        done(&ran);
        assert_eq!(ran.stdout, expected);
        assert!(!ran.stderr.contains(&one), "{}", ran.stderr);
    }
    // What was redacted has nothing to redact.
    let again = env.run_with(&["redact"], expected);
    assert_eq!(again.stdout, expected);
    done(&env.run_with(&["redact", "--check"], expected));
}

#[test]
fn files_are_written_beside_elsewhere_or_in_place() {
    let env = TestEnv::new();
    let secret = token(3);
    let text = format!("export GITHUB_TOKEN={secret}\n");
    let file = env.file("in/notes.txt", &text);
    done(&env.run(&["redact", &file]));
    let beside = env.path("in/notes.redacted.txt");
    let clean = "export GITHUB_TOKEN=[REDACTED:github]\n";
    assert_eq!(fs::read_to_string(&beside).unwrap(), clean);
    assert_eq!(
        fs::metadata(&beside).unwrap().permissions().mode() & 0o777,
        0o600
    );
    assert_eq!(fs::read_to_string(&file).unwrap(), text);
    // Not over what is there.
    assert_eq!(env.run(&["redact", &file]).code, 4);
    done(&env.run(&["redact", "--force", &file]));
    fs::remove_file(&beside).unwrap();
    let (from, to) = (env.path("in"), env.path("out"));
    done(&env.run(&["redact", from.to_str().unwrap(), "-o", to.to_str().unwrap()]));
    assert_eq!(fs::read_to_string(to.join("notes.txt")).unwrap(), clean);
    done(&env.run(&["redact", "--in-place", &file]));
    assert_eq!(fs::read_to_string(&file).unwrap(), clean);
    // Standard input has neither a place nor a name.
    assert_eq!(env.run_with(&["redact", "--in-place", "-"], "x").code, 2);
    let gone = env.run(&["redact", "gone.txt"]);
    assert_eq!(gone.code, 4);
    assert!(
        !gone.stderr.contains("nothing was found"),
        "{}",
        gone.stderr
    );
}

#[test]
fn a_check_tells_where_and_never_what() {
    let env = TestEnv::new();
    let secret = token(4);
    let file = env.file(
        "a.jsonl",
        format!("{{\"x\":1}}\n{{\"tool\":{{\"out\":\"{secret}\"}}}}\n"),
    );
    let before = fs::read(&file).unwrap();
    let ran = env.run(&["redact", "--check", &file]);
    assert_eq!(ran.code, 1, "{ran:?}");
    assert!(ran.stdout.contains(":2 github"), "{}", ran.stdout);
    let as_json = env.run(&["redact", "--check", "--json", &file]);
    let found: Value = serde_json::from_str(&as_json.stdout).unwrap();
    assert_eq!(found["total"], 1);
    let finding = &found["findings"][0];
    assert_eq!(
        (&finding["line"], &finding["field"]),
        (&json!(2), &json!("tool.out"))
    );
    assert_eq!(finding["severity"], "high");
    for ran in [&ran, &as_json] {
        assert!(!format!("{ran:?}").contains(&secret));
    }
    assert_eq!(fs::read(&file).unwrap(), before);
    assert!(!env.path("a.redacted.jsonl").exists());
    // By its hash, a rule file lets it pass.
    let hash = env.run_with(&["redact", "--hash"], &secret).stdout;
    let rules = env.file(
        "allow.toml",
        format!("[[allowlists]]\nvalues = [\"{}\"]\n", hash.trim()),
    );
    done(&env.run(&["redact", "--check", "--rules", &rules, &file]));
}

#[test]
fn a_broken_rule_is_named_and_nothing_is_done() {
    let env = TestEnv::new();
    let rules = env.file(
        "rules.toml",
        "[[rules]]\nid = \"mine\"\nregex = '''(['''\nkeywords = [\"mine\"]\n",
    );
    let file = env.file("a.txt", "x\n");
    let ran = env.run(&["redact", "--rules", &rules, &file]);
    assert_eq!(ran.code, 3, "{ran:?}");
    assert!(
        ran.stderr.contains("rules.toml") && ran.stderr.contains("mine"),
        "{}",
        ran.stderr
    );
    assert!(!env.path("a.redacted.txt").exists());
    let ran = env.run(&["redact", "--profile", "nobody", &file]);
    assert_eq!(ran.code, 2, "{ran:?}");
    assert!(ran.stderr.contains("structure-only"), "{}", ran.stderr);
}

#[test]
fn what_is_recorded_is_masked_before_it_is_written() {
    let env = TestEnv::new();
    let secret = token(5);
    let payload = format!(
        r#"{{"role":"user","blocks":[{{"type":"text","fidelity":"router","text":"use {secret}"}}]}}"#
    );
    let event =
        format!(r#"{{"type":"message.user","path":"a","iteration":0,"payload":{payload}}}"#);
    let ran = env.run_with(&["emit", "--run", "masked", "--mask"], format!("{event}\n"));
    done(&ran);
    let written = fs::read_to_string(env.run_path("masked")).unwrap();
    assert!(
        written.contains("[REDACTED:github]") && !written.contains(&secret),
        "{written}"
    );
    done(&env.run_with(&["emit", "--run", "plain"], format!("{event}\n")));
    let plain = fs::read_to_string(env.run_path("plain")).unwrap();
    assert!(plain.contains(&secret));
    env.file("config.toml", "[redact]\nrecord = true\n");
    done(&env.run_with(&["emit", "--run", "configured"], format!("{event}\n")));
    let written = fs::read_to_string(env.run_path("configured")).unwrap();
    assert!(!written.contains(&secret));
}

#[test]
fn secrets_are_not_in_the_index_and_hidden_in_what_is_found() {
    let env = TestEnv::new();
    let secret = token(6);
    let log = env.file(
        "log.jsonl",
        log(&[&format!("zanzibar uses {secret} today")]),
    );
    done(&env.run(&["import", &log]));
    let found = env.run(&["search", "zanzibar"]);
    done(&found);
    assert!(
        found.stdout.contains("[REDACTED:github]"),
        "{}",
        found.stdout
    );
    assert!(!found.stdout.contains(&secret));
    assert!(
        env.run(&["search", "zanzibar", "--json"])
            .stdout
            .contains("REDACTED")
    );
    assert!(
        env.run(&["search", "zanzibar", "--reveal"])
            .stdout
            .contains(&secret)
    );
    assert_eq!(env.run(&["search", "--count", &secret]).stdout.trim(), "0");
    let by_pattern = env.run(&["search", "--regex", "zanzibar.*today"]);
    assert!(by_pattern.stdout.contains("REDACTED") && !by_pattern.stdout.contains(&secret));
    // No file of the index has it.
    let mut below = vec![env.path("search")];
    while let Some(path) = below.pop() {
        if path.is_dir() {
            below.extend(
                fs::read_dir(&path)
                    .unwrap()
                    .map(|entry| entry.unwrap().path()),
            );
            continue;
        }
        let bytes = fs::read(&path).unwrap();
        let lower = secret.to_lowercase();
        for needle in [secret.as_bytes(), lower.as_bytes(), &lower.as_bytes()[4..]] {
            let is_there = bytes.windows(needle.len()).any(|window| window == needle);
            assert!(!is_there, "{}", path.display());
        }
    }
}

#[test]
fn an_import_that_redacts_keeps_no_secret() {
    let env = TestEnv::new();
    let (one, two) = (token(7), token(8));
    let first = log(&[&format!("first {one}")]);
    let path = env.file("log.jsonl", &first);
    done(&env.run(&["import", "--redact", "team", &path]));
    let more = log(&["x", &format!("second {two} and {one}")]);
    let grown = format!("{first}{}\n", more.lines().nth(1).unwrap());
    env.file("log.jsonl", &grown);
    done(&env.run(&["import", "--redact", "team", &path]));
    let id = "7c1e5a90";
    let shown = env.run(&["show", id]);
    done(&shown);
    assert!(
        shown.stdout.contains("first [REDACTED:github]")
            && shown
                .stdout
                .contains("second [REDACTED:github#2] and [REDACTED:github]"),
        "{}",
        shown.stdout
    );
    // A log that has grown is one log with one version.
    assert_eq!(fs::read_to_string(&path).unwrap(), grown);
    done(&env.run(&["import", "--rebuild"]));
    let shown = env.run(&["show", id, "--json"]);
    assert!(!shown.stdout.contains(&one) && !shown.stdout.contains(&two));
}

#[test]
fn exports_are_without_what_a_profile_removes() {
    let env = TestEnv::new();
    let secret = token(9);
    let log = env.file(
        "log.jsonl",
        log(&[&format!("zanzibar uses {secret}"), "ok"]),
    );
    for format in [
        "normalized",
        "html",
        "markdown",
        "text",
        "atif",
        "exchange",
        "agentlog",
        "claude-code",
        "codex",
        "huggingface",
    ] {
        let ran = env.run(&[
            "convert",
            &log,
            "--to",
            format,
            "-o",
            "-",
            "--profile",
            "team",
        ]);
        done(&ran);
        assert!(!ran.stdout.contains(&secret), "{format}");
        assert!(
            ran.stdout.contains("[REDACTED:github]"),
            "{format}: {}",
            ran.stdout
        );
    }
    let ran = env.run(&[
        "convert",
        &log,
        "--to",
        "huggingface",
        "--native",
        "-o",
        "-",
        "--profile",
        "team",
    ]);
    assert!(!ran.stdout.contains(&secret), "{ran:?}");
    // As the configuration says, unless something else is asked for.
    env.file("config.toml", "[redact]\nprofile = \"team\"\n");
    let ran = env.run(&["convert", &log, "--to", "text", "-o", "-"]);
    assert!(!ran.stdout.contains(&secret));
    let ran = env.run(&[
        "convert",
        &log,
        "--to",
        "text",
        "-o",
        "-",
        "--profile",
        "local",
    ]);
    assert!(ran.stdout.contains(&secret));
}
