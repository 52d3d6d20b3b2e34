//! `quipu verify` and `quipu repair` of `.agentlog` traces.

use std::os::unix::fs::PermissionsExt as _;

use serde_json::Value;

use super::env::{TestEnv, line};

const ROOT: &str = r#"{"version":"0.1","id":"sha256:636e34a27907c2fc3b3a06439bb176fc1daa573733de66c02e2420b6bcd27a59","kind":"metadata","ts":"2026-04-21T10:00:00.000Z","parent":null,"payload":{"sdk":{"name":"x","version":"1"}}}"#;
const REQUEST: &str = r#"{"version":"0.1","id":"sha256:15b50b00ac7007711e3b7710d5c7ea96ff5cafc00104b13aeddd4cc33dab9a56","kind":"chat_request","ts":"2026-04-21T10:00:01.000Z","parent":"sha256:636e34a27907c2fc3b3a06439bb176fc1daa573733de66c02e2420b6bcd27a59","payload":{"model":"m","messages":[{"role":"user","content":"hi"}],"params":{}}}"#;

fn whole() -> String {
    format!("{ROOT}\n{REQUEST}\n")
}

/// The request was changed after it was written, and has lost its parent.
fn broken() -> String {
    whole().replace("\"hi\"", "\"ho\"").replace(
        "\"parent\":\"sha256:636e34a27907c2fc3b3a06439bb176fc1daa573733de66c02e2420b6bcd27a59\"",
        "\"parent\" : null",
    )
}

#[test]
fn a_trace_that_is_right_is_ok() {
    let env = TestEnv::new();
    let file = env.file("x.agentlog", whole());
    let ran = env.run(&["verify", &file]);
    assert_eq!(ran.stdout, "HOME/x.agentlog: ok, 2 records, 1 session\n");
    assert_eq!((ran.code, ran.stderr.as_str()), (0, ""));
    // By what it is, not by its name; and from standard input.
    let named = env.file("x.jsonl", whole());
    assert!(env.run(&["verify", &named]).stdout.contains("2 records"));
    let piped = env.run_with(&["verify", "-"], whole());
    assert_eq!(piped.stdout, "-: ok, 2 records, 1 session\n");
}

#[test]
fn tells_what_is_wrong_where_and_what_to_do() {
    let env = TestEnv::new();
    let text = whole()
        .replace("\"user\"", "\"boss\"")
        .replace("10:00:01", "09:00:00");
    let file = env.file("x.agentlog", format!("\n{text}{{\"version"));
    let ran = env.run(&["verify", &file]);
    let id = id_in(&ran.stdout);
    let request = 1 + ROOT.len() + 1;
    let tail = request + REQUEST.len() + 1;
    assert_eq!(
        ran.stdout,
        format!(
            "HOME/x.agentlog: broken, 2 records, 1 session
  error[message-role] line 3 (byte {request}), payload.messages[0].role: \"boss\" is none of system, user, assistant, tool
  error[id-mismatch] line 3 (byte {request}), id: sha256:15b50b00ac7007711e3b7710d5c7ea96ff5cafc00104b13aeddd4cc33dab9a56, but the payload's is {id}
  error[ts-order] line 3 (byte {request}), ts: before the record before it
  error[torn-tail] line 4 (byte {tail}): cut off: the file ends in the middle of this line
  note[blank-line] blank lines: 1
  torn-tail (§1.1): `quipu repair --drop-torn` leaves it out; the records before it are whole
  id-mismatch (§6): changed after it was written, or hashed otherwise; if the content is trusted, `quipu repair --rehash`
  ts-order (§3.3): times are not changed by any repair; order the records when they are written
  message-role (§4.1): system, user, assistant or tool; --permissive allows others
"
        )
    );
    assert_eq!((ran.code, ran.stderr.as_str()), (1, ""));
    assert!(
        !env.run(&["verify", "--quiet", &file])
            .stdout
            .contains("blank")
    );
}

/// The id that a payload should have, as it was said.
fn id_in(text: &str) -> String {
    let (_, behind) = text.split_once("payload's is ").unwrap();
    behind[..71].to_owned()
}

#[test]
fn permissive_is_for_what_may_be_newer() {
    let env = TestEnv::new();
    let file = env.file("x.agentlog", whole().replace("\"0.1\"", "\"2.0\""));
    assert_eq!(env.run(&["verify", &file]).code, 1);
    assert_eq!(env.run(&["verify", "--permissive", &file]).code, 0);
}

#[test]
fn json_holds_the_same() {
    let env = TestEnv::new();
    let good = env.file("a.agentlog", whole());
    let bad = env.file("b.agentlog", broken());
    let run = env.file("r.jsonl", line(1, "run.started", "", "null"));
    let ran = env.run(&["verify", "--json", "--threads", "3", &good, &bad, &run]);
    assert_eq!(ran.code, 1);
    let document: Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!(document[0]["clean"], true);
    assert_eq!(document[0]["kinds"]["chat_request"], 1);
    assert_eq!(document[0]["root"].as_str().unwrap(), &ROOT[23..94]);
    assert_eq!(document[1]["counts"]["id-mismatch"], 1);
    let finding = &document[1]["findings"][0];
    assert_eq!(
        (&finding["line"], &finding["field"]),
        (&2.into(), &"id".into())
    );
    assert_eq!(document[2]["events"], 1);
}

#[test]
fn limits_files_that_are_not_there_and_empty_ones() {
    let env = TestEnv::new();
    let file = env.file("x.agentlog", whole());
    let ran = env.run(&["verify", "--max-total", "100", &file]);
    assert_eq!(ran.code, 3);
    assert_eq!(
        ran.stderr,
        "error: HOME/x.agentlog is larger than 100 bytes\nhint: --max-total allows more\n"
    );
    let ran = env.run(&["verify", "--max-line", "300", &file]);
    assert_eq!(ran.code, 1);
    assert!(
        ran.stdout.contains("error[line-too-long] line 2"),
        "{}",
        ran.stdout
    );
    let ran = env.run(&["verify", "nope.agentlog"]);
    assert_eq!(
        (ran.code, ran.stderr.as_str()),
        (3, "error: there is no file nope.agentlog\n")
    );
    let empty = env.file("e.agentlog", "");
    let ran = env.run(&["verify", &empty]);
    assert_eq!(ran.code, 1);
    assert!(ran.stdout.contains("error[empty-trace] no record is in it"));
}

#[test]
fn threads_are_capped() {
    let env = TestEnv::new();
    let file = env.file("x.agentlog", whole());
    assert_eq!(env.run(&["verify", "--threads", "1024", &file]).code, 0);
    for wrong in ["0", "100000"] {
        let ran = env.run(&["verify", "--threads", wrong, &file]);
        assert_eq!(ran.code, 2, "{}", ran.stderr);
        assert!(ran.stderr.contains("1..=1024"), "{}", ran.stderr);
    }
}

#[test]
fn what_is_only_too_deep_is_not_left_out() {
    let env = TestEnv::new();
    let deep = format!("{{\"x\":{}{}}}", "[".repeat(1100), "]".repeat(1100));
    let file = env.file("x.agentlog", whole() + &deep);
    let new = env.path("new.agentlog");
    let new = new.to_str().unwrap();
    let ran = env.run(&["repair", "--drop-torn", &file, "-o", new]);
    assert_eq!(
        (ran.code, ran.stderr.as_str()),
        (
            3,
            "error: line 3: nested deeper than 1024 levels\nhint: --max-depth allows deeper ones\n"
        )
    );
    assert!(!std::path::Path::new(new).exists());
}

#[test]
fn repair_says_what_could_be_done_and_does_nothing() {
    let env = TestEnv::new();
    let file = env.file("x.agentlog", broken());
    let ran = env.run(&["repair", &file]);
    assert_eq!(ran.code, 1);
    assert!(
        ran.stdout
            .starts_with("HOME/x.agentlog: 2 changes could be made\n  line 2: rehashed id: ")
    );
    assert!(
        ran.stdout
            .contains("relinked parent: null to \"sha256:636e")
    );
    assert_eq!(std::fs::read_to_string(&file).unwrap(), broken());
    let good = env.file("y.agentlog", whole());
    let ran = env.run(&["repair", &good]);
    assert_eq!(
        (ran.code, ran.stdout.as_str()),
        (0, "HOME/y.agentlog: nothing to mend\n")
    );
    assert_eq!(std::fs::read_dir(env.dir.path()).unwrap().count(), 2);
}

#[test]
fn repair_writes_a_new_file_and_never_over_another() {
    let env = TestEnv::new();
    let file = env.file("x.agentlog", broken());
    let new = env.path("new.agentlog");
    let new = new.to_str().unwrap();
    let ran = env.run(&["repair", "--rehash", "--relink", &file, "-o", new]);
    assert_eq!(ran.code, 0, "{ran:?}");
    assert!(
        ran.stdout.starts_with(
            "HOME/x.agentlog: 2 records with 2 changes written to HOME/new.agentlog\n"
        )
    );
    assert!(ran.stdout.ends_with("  nothing is left to mend\n"));
    assert_eq!(std::fs::read_to_string(&file).unwrap(), broken());
    let mended = std::fs::read_to_string(new).unwrap();
    assert!(mended.contains("\"parent\" : \"sha256:636e"), "spaces stay");
    assert_eq!(
        std::fs::metadata(new).unwrap().permissions().mode() & 0o777,
        0o600
    );
    assert_eq!(env.run(&["verify", new]).code, 0);
    let again = env.run(&["repair", "--rehash", &file, "-o", new]);
    assert_eq!(again.code, 4);
    assert!(
        again
            .stderr
            .starts_with("error: HOME/new.agentlog is there already\n")
    );
    assert_eq!(std::fs::read_to_string(new).unwrap(), mended);
    assert_eq!(std::fs::read_dir(env.dir.path()).unwrap().count(), 2);
}

#[test]
fn repair_says_what_is_left() {
    let env = TestEnv::new();
    let text = broken().replace("10:00:01", "09:00:00");
    let file = env.file("x.agentlog", format!("{text}{{\"ver"));
    let new = env.path("new.agentlog");
    let new = new.to_str().unwrap();
    let ran = env.run(&["repair", "--rehash", &file, "-o", new]);
    assert_eq!(ran.code, 3);
    assert_eq!(
        ran.stderr,
        "error: line 3: cut off: the file ends in the middle of this line\nhint: --drop-torn leaves it out\n"
    );
    assert!(!std::path::Path::new(new).exists());
    let ran = env.run(&[
        "repair",
        "--json",
        "--rehash",
        "--drop-torn",
        &file,
        "-o",
        new,
    ]);
    assert_eq!(ran.code, 1);
    let document: Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!(document[0]["counts"]["dropped-torn"], 1);
    let left = document[0]["left"]["counts"].as_object().unwrap();
    assert_eq!(left.keys().collect::<Vec<_>>(), ["parent-null", "ts-order"]);
}

#[test]
fn repair_wants_to_be_told_where_and_what() {
    let env = TestEnv::new();
    let file = env.file("x.agentlog", broken());
    let run = env.file("r.jsonl", line(1, "run.started", "", "null"));
    assert_eq!(env.run(&["repair", "--rehash", &file]).code, 2);
    assert_eq!(env.run(&["repair", "-o", "new", &file]).code, 2);
    assert_eq!(
        env.run(&["repair", "--rehash", "-o", "new", &file, &file])
            .code,
        2
    );
    assert_eq!(env.run(&["repair", "--rehash", "-o", "new", &run]).code, 2);
}
