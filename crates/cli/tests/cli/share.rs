//! Sharing a session and checking what was shared, through the binary.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use quipu_model::Timestamp;
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

/// Whoever takes the proof away may write anything.
#[test]
fn a_copy_without_its_commitment_is_caught() {
    let env = TestEnv::new();
    let log = env.file("log.jsonl", LOG);
    for profile in PROFILES {
        let out = env.path("shared.json");
        let out = out.to_str().unwrap();
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
        let mut document = json(&fs::read_to_string(out).unwrap());
        let privacy = document["privacy"].as_object_mut().unwrap();
        privacy.remove("commitment").unwrap();
        document["events"][0]["text"] = "something that nobody said".into();
        let path = env.file("tampered.json", document.to_string());
        let ran = env.run(&["verify", &path]);
        assert_eq!(
            ran.code,
            i32::from(profile != "local"),
            "{profile}: {ran:?}"
        );
        // Nor by saying that nothing was removed, while receipts say what was.
        document["privacy"]["profile"] = "local".into();
        let path = env.file("tampered.json", document.to_string());
        let ran = env.run(&["verify", &path]);
        assert_eq!(
            ran.code,
            i32::from(profile != "local"),
            "{profile}: {ran:?}"
        );
    }
}

#[test]
fn the_review_counts_what_is_then_removed() {
    let env = TestEnv::new();
    let secret = expand("ghp_{alnum:36}", 25).unwrap().text;
    let log = env.file("log.jsonl", log_with(&secret));
    for profile in PROFILES {
        let review = env.run(&["share", &log, "--profile", profile, "--review", "--json"]);
        done(&review);
        let review = json(&review.stdout);
        let out = env.path("shared.json");
        let out = out.to_str().unwrap();
        let ran = env.run(&[
            "share",
            &log,
            "--profile",
            profile,
            "--yes",
            "--force",
            "-o",
            out,
        ]);
        done(&ran);
        let copy = json(&fs::read_to_string(out).unwrap());
        assert_eq!(
            review["redactions"], copy["privacy"]["redactionCount"],
            "{profile}"
        );
        let listed: u64 = review["values"]
            .as_array()
            .unwrap()
            .iter()
            .filter(|value| value["removed"] == true)
            .map(|value| value["count"].as_u64().unwrap())
            .sum();
        assert_eq!(review["redactions"], listed, "{profile}");
    }
    // What the profile leaves out whatever it says is not anybody's to keep.
    let review = env.run(&["share", &log, "--profile", "research", "--review", "--json"]);
    let values = json(&review.stdout)["values"].as_array().unwrap().clone();
    let left_out = values
        .iter()
        .find(|value| value["type"] == "policy")
        .unwrap();
    let mark = left_out["mark"].as_str().unwrap();
    let ran = env.run(&["share", &log, "--yes", "-o", "x.json", "--keep", mark]);
    assert_eq!(ran.code, 2, "{ran:?}");
}

#[test]
fn names_of_files_do_not_stop_a_script() {
    let env = TestEnv::new();
    let odd = expand("{alnum:40}", 24).unwrap().text;
    for (text, code) in [
        (format!("/code/relay/assets/{odd}.js"), 0),
        (format!("./dist/{odd}/index.html"), 0),
        (odd.clone(), 1),
        (format!("https://example.com/hooks/{odd}"), 1),
    ] {
        let log = env.file("log.jsonl", log_with(&text));
        let out = env.path("shared.json");
        let out = out.to_str().unwrap();
        let ran = env.run(&[
            "share",
            &log,
            "--profile",
            "team",
            "--yes",
            "--force",
            "-o",
            out,
        ]);
        assert_eq!(ran.code, code, "{text}: {ran:?}");
    }
}

/// Somebody else's copy is kept with all that it says of itself.
#[test]
fn a_shared_transcript_comes_back_from_the_archive_as_it_was() {
    let env = TestEnv::new();
    let log = env.file("log.jsonl", LOG);
    let shared = env.path("shared.json");
    let shared = shared.to_str().unwrap();
    done(&env.run(&["share", &log, "--profile", "public", "--yes", "-o", shared]));
    let was = fs::read_to_string(shared).unwrap();
    let archive = TestEnv::new();
    done(&archive.run(&["import", shared]));
    let list = json(&archive.run(&["list", "--json"]).stdout);
    let id = list[0]["run_id"].as_str().unwrap().to_owned();
    let back = archive.path("back.json");
    let back = back.to_str().unwrap();
    done(&archive.run(&["export", &id, "--to", "normalized", "-o", back]));
    assert_eq!(fs::read_to_string(back).unwrap(), was);
    done(&archive.run(&["verify", back]));
    let page = archive.path("page.html");
    let page = page.to_str().unwrap();
    done(&archive.run(&["export", &id, "--to", "html", "-o", page]));
    done(&archive.run(&["verify", page]));
    let report = archive.path("report.json");
    let report = report.to_str().unwrap();
    let to = archive.path("claude.jsonl");
    let ran = archive.run(&[
        "export",
        &id,
        "--to",
        "claude-code",
        "-o",
        to.to_str().unwrap(),
        "--report",
        report,
    ]);
    done(&ran);
    let report = fs::read_to_string(report).unwrap();
    assert!(
        report.contains("\"privacy\"") && report.contains("\"redactions\""),
        "{report}"
    );
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
    // The secret may hold the sign that is before it.
    let secret = key.splitn(3, '_').nth(2).unwrap();
    assert!(!kept.contains(secret) && kept.contains("laptop"));
    let list = json(&env.run(&["keys", "list", "--json"]).stdout);
    let id = list[0]["key_id"].as_str().unwrap();
    assert_eq!(list[0]["revoked_at"], Value::Null);
    done(&env.run(&["keys", "revoke", id]));
    let list = json(&env.run(&["keys", "list", "--json"]).stdout);
    assert!(list[0]["revoked_at"].is_string());
    assert_eq!(env.run(&["keys", "revoke", "key_ffffffff"]).code, 2);
}

#[test]
fn keys_have_scopes_and_may_expire() {
    let env = TestEnv::new();
    let new = [
        "keys",
        "new",
        "--scope",
        "read",
        "--scope",
        "submit",
        "--expires",
        "90d",
    ];
    done(&env.run(&new));
    done(&env.run(&["keys", "new", "--label", "plain"]));
    let list = json(&env.run(&["keys", "list", "--json"]).stdout);
    assert_eq!(list[0]["scopes"], serde_json::json!(["submit", "read"]));
    let days =
        |key: &Value, field: &str| -> Timestamp { key[field].as_str().unwrap().parse().unwrap() };
    let lasts = days(&list[0], "expires_at").duration_since(days(&list[0], "created_at"));
    // Summer time may begin or end in between.
    assert!((lasts.as_hours() - 90 * 24).abs() <= 2, "{lasts:?}");
    assert_eq!(list[1]["scopes"], serde_json::json!(["submit"]));
    assert_eq!(list[1]["expires_at"], Value::Null);
    let shown = env.run(&["keys", "list"]).stdout;
    assert!(shown.contains("submit, read"), "{shown}");
    let wrong = env.run(&["keys", "new", "--scope", "write"]);
    assert_eq!(wrong.code, 2);
    assert!(
        wrong.stderr.contains("submit, read or admin"),
        "{}",
        wrong.stderr
    );
    assert_eq!(env.run(&["keys", "new", "--expires", "soon"]).code, 2);
}
