//! Sharing a session and checking what was shared, through the binary.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use quipu_redact::rule::expand;
use serde_json::Value;

use super::env::{Ran, TestEnv};

const LOG: &str = include_str!("../../../convert/fixtures/claude.jsonl");

const PROFILES: [&str; 6] = [
    "local",
    "team",
    "research",
    "public",
    "hiring-signal",
    "structure-only",
];

fn done(ran: &Ran) {
    assert_eq!(ran.code, 0, "{ran:?}");
}

fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}

/// The made-up log with a secret in what somebody said.
fn log_with(secret: &str) -> String {
    let mut lines: Vec<String> = LOG.lines().map(str::to_owned).collect();
    let at = lines
        .iter()
        .position(|line| line.contains("\"type\":\"user\""))
        .unwrap();
    let mut record: Value = json(&lines[at]);
    record["message"]["content"] = format!("please use {secret} for it").into();
    lines[at] = record.to_string();
    lines.join("\n") + "\n"
}

#[test]
fn a_session_goes_through_every_profile_and_can_be_checked() {
    let env = TestEnv::new();
    let secret = expand("ghp_{alnum:36}", 21).unwrap().text;
    let log = env.file("log.jsonl", log_with(&secret));
    for profile in PROFILES {
        let out = env.path(&format!("{profile}.json"));
        let out = out.to_str().unwrap();
        done(&env.run(&["share", &log, "--profile", profile, "--yes", "-o", out]));
        let text = fs::read_to_string(out).unwrap();
        assert_eq!(text.contains(&secret), profile == "local", "{profile}");
        assert_eq!(
            fs::metadata(out).unwrap().permissions().mode() & 0o777,
            0o600
        );
        let document = json(&text);
        let privacy = &document["privacy"];
        assert_eq!(privacy["profile"], profile);
        assert_eq!(
            document["submitter"]["identityLinked"],
            profile == "hiring-signal"
        );
        if profile != "local" {
            assert!(privacy["redactionCount"].as_u64() > Some(0), "{profile}");
            assert!(privacy["commitment"]["root"].is_string(), "{profile}");
        }
        done(&env.run(&["verify", out]));
        done(&env.run(&["verify", out, "--against", &log]));
        // The same again gives the same bytes.
        done(&env.run(&[
            "share",
            &log,
            "--profile",
            profile,
            "--yes",
            "--force",
            "-o",
            out,
        ]));
        assert_eq!(fs::read_to_string(out).unwrap(), text, "{profile}");
        if ["research", "public", "structure-only"].contains(&profile) {
            assert!(!text.contains("/home/ada"), "{profile}");
        }
    }
}

#[test]
fn a_copy_that_was_tampered_with_is_caught() {
    let env = TestEnv::new();
    let secret = expand("ghp_{alnum:36}", 22).unwrap().text;
    let log = env.file("log.jsonl", log_with(&secret));
    let out = env.path("shared.json");
    let out = out.to_str().unwrap();
    done(&env.run(&["share", &log, "--profile", "team", "--yes", "-o", out]));
    let text = fs::read_to_string(out).unwrap();
    for (from, to) in [
        ("please use", "please lose"),
        ("please use [REDACTED:github]", "please use it"),
        ("\"redactionCount\":", "\"redactionCount\":1"),
    ] {
        let tampered = text.replacen(from, to, 1);
        assert_ne!(tampered, text, "{from}");
        let path = env.file("tampered.json", &tampered);
        let ran = env.run(&["verify", &path]);
        assert_eq!(ran.code, 1, "{from}: {ran:?}");
        let ran = env.run(&["verify", &path, "--against", &log]);
        assert_eq!(ran.code, 1, "{from}: {ran:?}");
        assert!(!format!("{ran:?}").contains(&secret));
    }
    // A session that says something else is not the one that was shared.
    let other = env.file(
        "other.jsonl",
        log_with(&secret).replace("please use", "please loose"),
    );
    let ran = env.run(&["verify", out, "--against", &other]);
    assert_eq!(ran.code, 1, "{ran:?}");
    // Nor one with another secret, which only the key can tell.
    let second = expand("ghp_{alnum:36}", 23).unwrap().text;
    let other = env.file("other.jsonl", log_with(&second));
    let ran = env.run(&["verify", out, "--against", &other]);
    assert_eq!(ran.code, 1, "{ran:?}");
}

#[test]
fn a_script_is_refused_what_nobody_looked_at() {
    let env = TestEnv::new();
    let odd = expand("{alnum:40}", 24).unwrap().text;
    let log = env.file("log.jsonl", log_with(&odd));
    let out = env.path("shared.json");
    let out = out.to_str().unwrap();
    let share = ["share", &log, "--profile", "team", "-o", out];
    // Without a terminal somebody has to say so.
    let ran = env.run(&share);
    assert_eq!(ran.code, 2, "{ran:?}");
    let review = env.run(&["share", &log, "--profile", "team", "--review", "--json"]);
    done(&review);
    assert!(!review.stdout.contains(&odd), "{}", review.stdout);
    let values = json(&review.stdout)["values"].as_array().unwrap().clone();
    let risky: Vec<&Value> = values
        .iter()
        .filter(|value| value["risky"] == true)
        .collect();
    assert!(!risky.is_empty(), "{}", review.stdout);
    let yes: Vec<&str> = share.iter().copied().chain(["--yes"]).collect();
    let ran = env.run(&yes);
    assert_eq!(ran.code, 1, "{ran:?}");
    assert!(!fs::exists(out).unwrap());
    let mut decided = yes.clone();
    for value in &risky {
        decided.extend(["--remove", value["mark"].as_str().unwrap()]);
    }
    done(&env.run(&decided));
    assert!(!fs::read_to_string(out).unwrap().contains(&odd));
    done(&env.run(&["verify", out, "--against", &log]));
    let mut kept = yes.clone();
    kept.push("--force");
    for value in &risky {
        kept.extend(["--keep", value["mark"].as_str().unwrap()]);
    }
    done(&env.run(&kept));
    assert!(fs::read_to_string(out).unwrap().contains(&odd));
    let wrong = env.run(&[&yes[..], &["--keep", "ffffffffff"]].concat());
    assert_eq!(wrong.code, 2, "{wrong:?}");
}

#[test]
fn a_bundle_and_a_page_are_written() {
    let env = TestEnv::new();
    // What is no session makes nobody an identity.
    let text = env.file("notes.txt", "no session\n");
    let refused = env.run(&["share", &text, "--yes", "-o", "x.json"]);
    assert_eq!(refused.code, 3, "{refused:?}");
    assert!(!env.path("identity.key").exists());
    let log = env.file("log.jsonl", LOG);
    let bundle = env.path("bundle");
    let to = bundle.to_str().unwrap();
    done(&env.run(&["share", &log, "--yes", "--to", "bundle", "-o", to]));
    let receipt = json(&fs::read_to_string(bundle.join("receipt.json")).unwrap());
    assert!(
        receipt["files"]["transcript.json"]
            .as_str()
            .unwrap()
            .starts_with("sha256:")
    );
    let (transcript, page) = (
        bundle.join("transcript.json"),
        bundle.join("transcript.html"),
    );
    done(&env.run(&["verify", transcript.to_str().unwrap(), "--against", &log]));
    done(&env.run(&["verify", page.to_str().unwrap()]));
    assert_eq!(
        env.run(&["share", &log, "--yes", "--to", "bundle", "-o", to])
            .code,
        4
    );
}

#[test]
fn keys_are_shown_once_listed_and_revoked() {
    let env = TestEnv::new();
    let made = env.run(&["keys", "new", "--label", "laptop"]);
    done(&made);
    let key = made.stdout.trim().to_owned();
    assert!(key.starts_with("qk_"), "{key}");
    let kept = fs::read_to_string(env.path("keys.jsonl")).unwrap();
    let secret = key.rsplit('_').next().unwrap();
    assert!(!kept.contains(secret) && kept.contains("laptop"));
    let list = json(&env.run(&["keys", "list", "--json"]).stdout);
    let id = list[0]["keyId"].as_str().unwrap();
    assert_eq!(list[0]["revokedAt"], Value::Null);
    done(&env.run(&["keys", "revoke", id]));
    let list = json(&env.run(&["keys", "list", "--json"]).stdout);
    assert!(list[0]["revokedAt"].is_string());
    assert_eq!(env.run(&["keys", "revoke", "key_ffffffff"]).code, 2);
}
