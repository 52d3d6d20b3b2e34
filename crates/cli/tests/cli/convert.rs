//! Sessions from any format to any other, through the binary.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt as _;

use serde_json::Value;

use super::env::{Ran, TestEnv};

const LOG: &str = include_str!("../../../convert/fixtures/claude.jsonl");
const ID: &str = "7c1e5a90-2b3d-4f6a-8c9d-0e1f2a3b4c5d";

/// Every format that is one file.
const FILES: &[&str] = &[
    "normalized",
    "exchange",
    "agentlog",
    "html",
    "markdown",
    "text",
    "atif",
    "otlp",
    "huggingface",
    "claude-code",
    "codex",
];

fn done(ran: &Ran) {
    assert_eq!(ran.code, 0, "{ran:?}");
}

fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}

#[test]
fn a_log_becomes_every_format_with_an_account_of_what_was_lost() {
    let env = TestEnv::new();
    let log = env.file("log.jsonl", LOG);
    for format in FILES {
        let out = env.path(&format!("out/{format}.out"));
        fs::create_dir_all(out.parent().unwrap()).unwrap();
        let report = env.path(&format!("out/{format}.report"));
        let (out, report) = (out.to_str().unwrap(), report.to_str().unwrap());
        let ran = env.run(&[
            "convert", &log, "--to", format, "-o", out, "--report", report,
        ]);
        done(&ran);
        assert_eq!(ran.stdout, "", "{format}");
        assert!(
            ran.stderr.contains(" events carried"),
            "{format}: {}",
            ran.stderr
        );
        let report = json(&fs::read_to_string(report).unwrap());
        assert_eq!(
            (&report["from"], &report["to"]),
            (&"claude".into(), &(*format).into())
        );
        assert_eq!(report["run_id"], ID);
        let (events, carried) = (report["events"].as_u64(), report["carried"].as_u64());
        assert!(
            events >= Some(25) && carried <= events,
            "{format}: {report}"
        );
        for tally in report["dropped"].as_object().unwrap().values() {
            assert!(tally["count"].as_u64() > Some(0), "{format}");
            assert!(
                !tally["examples"].as_array().unwrap().is_empty(),
                "{format}"
            );
        }
        let mode = fs::metadata(out).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode, 0o600, "{format}");
        // The same again is refused, and by force it is the same.
        let first = fs::read(out).unwrap();
        let again = ["convert", &log, "--to", format, "-o", out];
        assert_eq!(env.run(&again).code, 4, "{format}");
        done(&env.run(&[&again[..], &["--force"]].concat()));
        assert!(fs::read(out).unwrap() == first, "{format}");
    }
}

#[test]
fn strict_fails_when_something_is_lost_and_only_then() {
    let env = TestEnv::new();
    let text = LOG
        .lines()
        .find(|line| line.contains("Use `cargo add`"))
        .unwrap();
    let log = env.file("log.jsonl", text);
    let convert = |to| env.run(&["convert", &log, "--to", to, "--strict"]);
    assert_eq!(convert("normalized").code, 0);
    assert_eq!(convert("text").code, 1);
}

#[test]
fn a_pipe_is_converted_as_a_file_is() {
    let env = TestEnv::new();
    let ran = env.run_with(&["convert", "-", "--to", "normalized"], LOG);
    done(&ran);
    let transcript = json(&ran.stdout);
    assert_eq!(transcript["schemaVersion"], "0.1.0");
    let again = env.run_with(&["convert", "-", "--to", "text"], ran.stdout);
    done(&again);
    assert!(again.stdout.contains("all 12 tests pass"));
    assert!(!again.stdout.contains('\u{1b}') && !again.stdout.contains('\u{202e}'));
}

#[test]
fn what_is_not_known_is_said_and_nothing_is_written() {
    let env = TestEnv::new();
    let junk = env.file("junk.txt", "no log at all\n");
    let out = env.path("out.json");
    let out = out.to_str().unwrap();
    let ran = env.run(&["convert", &junk, "--to", "atif", "-o", out]);
    assert_eq!(ran.code, 3);
    assert!(
        ran.stderr
            .contains("junk.txt is in no format that is known"),
        "{}",
        ran.stderr
    );
    assert!(!fs::exists(out).unwrap());
    assert_eq!(env.run(&["convert", "gone.jsonl", "--to", "text"]).code, 4);
    assert_eq!(env.run(&["convert", &junk, "--to", "word"]).code, 2);
    assert_eq!(env.run(&["export", "--to", "text"]).code, 2);
}

#[test]
fn many_go_into_a_directory_and_one_that_fails_does_not_stop_the_others() {
    let env = TestEnv::new();
    let one = env.file("one.jsonl", LOG);
    let two = env.file(
        "two.jsonl",
        LOG.replace(ID, "8c1e5a90-2b3d-4f6a-8c9d-0e1f2a3b4c5d"),
    );
    let junk = env.file("junk", "nothing");
    let out = env.path("out");
    let dir = out.to_str().unwrap();
    let ran = env.run(&["convert", &one, &junk, &two, "--to", "markdown", "-o", dir]);
    assert_eq!(ran.code, 3);
    assert!(ran.stderr.contains("2 sessions written"), "{}", ran.stderr);
    let mut names: Vec<_> = fs::read_dir(&out)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    assert_eq!(names, [format!("{ID}.md"), format!("8{}.md", &ID[1..])]);
    assert_eq!(
        fs::metadata(&out).unwrap().permissions().mode() & 0o777,
        0o700
    );
    // Several do not go to standard output.
    assert_eq!(
        env.run(&["convert", &one, &two, "--to", "markdown"]).code,
        2
    );
}

#[test]
fn kept_sessions_are_exported_by_id_and_by_filter() {
    let env = TestEnv::new();
    let log = env.file("logs/one.jsonl", LOG);
    done(&env.run(&["import", &log]));
    fs::remove_file(&log).unwrap();
    let by_id = env.run(&["export", "7c1e", "--to", "normalized"]);
    done(&by_id);
    assert_eq!(json(&by_id.stdout)["source"]["agent"], "claude-code");
    let out = env.path("out");
    let out = out.to_str().unwrap();
    let filtered = ["export", "--project", "/code/relay", "--to", "html", "-o"];
    done(&env.run(&[&filtered[..], &[out]].concat()));
    let page = fs::read_to_string(format!("{out}/{ID}.html")).unwrap();
    assert!(page.contains("id=\"quipu-transcript\""));
    let none = env.run(&["export", "--project", "/nowhere", "--to", "text"]);
    assert_eq!(none.code, 3, "{none:?}");
}

#[test]
fn a_page_imports_back() {
    let env = TestEnv::new();
    let log = env.file("log.jsonl", LOG);
    let page = env.path("page.html");
    let page = page.to_str().unwrap();
    done(&env.run(&["convert", &log, "--to", "html", "-o", page]));
    let direct = env.run(&["convert", &log, "--to", "normalized"]);
    let back = env.run(&["convert", page, "--to", "normalized"]);
    done(&back);
    assert!(direct.stdout == back.stdout, "the same, byte for byte");
    done(&env.run(&["import", page]));
    let found = env.run(&["search", "backoff", "--count"]);
    assert_eq!(found.code, 0, "{found:?}");
    let listed = env.run(&["list", "--json"]);
    assert_eq!(
        json(&listed.stdout)[0]["agent"],
        "claude-code",
        "{}",
        listed.stdout
    );
}

/// What went out comes back: a document that is imported and exported in its format is that document, whoever wrote it
/// and whatever was removed from it.
#[test]
fn a_document_that_is_kept_is_given_back_as_it_was() {
    let write = TestEnv::new();
    let log = write.file("log.jsonl", LOG);
    let shared = write.path("shared.json");
    let shared = shared.to_str().unwrap();
    done(&write.run(&[
        "share",
        &log,
        "--profile",
        "research",
        "--yes",
        "-o",
        shared,
    ]));
    let page = write.path("shared.html");
    let page = page.to_str().unwrap();
    done(&write.run(&["convert", shared, "--to", "html", "-o", page]));
    let own = write.path("own.json");
    let own = own.to_str().unwrap();
    done(&write.run(&["convert", &log, "--to", "normalized", "-o", own]));
    let trajectory = write.path("atif.json");
    let trajectory = trajectory.to_str().unwrap();
    done(&write.run(&["convert", &log, "--to", "atif", "-o", trajectory]));
    for (path, format) in [
        (shared, "normalized"),
        (page, "html"),
        (own, "normalized"),
        (trajectory, "atif"),
    ] {
        let env = TestEnv::new();
        done(&env.run(&["import", path]));
        let listed = env.run(&["list", "--json"]);
        let id = json(&listed.stdout)[0]["run_id"]
            .as_str()
            .unwrap()
            .to_owned();
        let back = env.path("back");
        let back = back.to_str().unwrap();
        done(&env.run(&["export", &id, "--to", format, "-o", back]));
        let (was, is) = (fs::read(path).unwrap(), fs::read(back).unwrap());
        assert!(was == is, "{path} as {format}");
        if format == "html" {
            // Also out of the page, with all that proves what was removed.
            let out = env.run(&["export", &id, "--to", "normalized"]);
            done(&out);
            assert!(out.stdout.as_bytes() == fs::read(shared).unwrap());
        }
        done(&env.run(&["verify", back]));
    }
}

#[test]
fn a_page_with_a_passphrase_opens_with_it_and_not_without() {
    let env = TestEnv::new();
    let log = env.file("log.jsonl", LOG);
    let right = env.file("right", "correct horse\n");
    let wrong = env.file("wrong", "battery staple\n");
    let page = env.path("page.html");
    let page = page.to_str().unwrap();
    done(&env.run(&[
        "convert",
        &log,
        "--to",
        "html",
        "-o",
        page,
        "--passphrase-file",
        &right,
    ]));
    let text = fs::read_to_string(page).unwrap();
    for said in ["backoff", "relay", "cargo"] {
        assert!(
            !text.contains(&format!("{said} ")) || said == "relay",
            "{said} is in clear"
        );
    }
    assert!(!text.contains("Retry with backoff"));
    let open = |more: &[&str]| env.run(&[&["convert", page, "--to", "text"], more].concat());
    assert_eq!(open(&[]).code, 3);
    assert_eq!(open(&["--passphrase-file", &wrong]).code, 3);
    let opened = open(&["--passphrase-file", &right]);
    done(&opened);
    assert!(opened.stdout.contains("all 12 tests pass"));
}

#[test]
fn tables_hold_many_sessions() {
    let env = TestEnv::new();
    let one = env.file("one.jsonl", LOG);
    let two = env.file(
        "two.jsonl",
        LOG.replace(ID, "8c1e5a90-2b3d-4f6a-8c9d-0e1f2a3b4c5d"),
    );
    let out = env.path("tables");
    let dir = out.to_str().unwrap();
    done(&env.run(&["convert", &one, &two, "--to", "parquet", "-o", dir]));
    for name in ["events.parquet", "calls.parquet"] {
        let bytes = fs::read(out.join(name)).unwrap();
        assert!(
            bytes.starts_with(b"PAR1") && bytes.ends_with(b"PAR1"),
            "{name}"
        );
    }
    assert_eq!(env.run(&["convert", &one, "--to", "parquet"]).code, 2);
}

/// Where nothing could be read, nothing is there: no tables, no directories.
#[test]
fn what_could_not_be_read_leaves_nothing_behind() {
    let env = TestEnv::new();
    let broken = env.file("broken.json", "{\"schemaVersion\":\"0.1.0\",\"transcriptId\":\"t\",\"source\":{\"agent\":\"a\"},\"events\":[{");
    for (format, out) in [
        ("parquet", "tables"),
        ("flow", "runs"),
        ("huggingface", "dataset/"),
        ("claude-code", "agent/"),
    ] {
        let path = env.path(out);
        let ran = env.run(&[
            "convert",
            &broken,
            "--to",
            format,
            "-o",
            &format!("{}/", path.to_str().unwrap()),
        ]);
        assert_eq!(ran.code, 3, "{format}: {ran:?}");
        assert!(!path.exists(), "{format}");
    }
}

/// An agent's directory need not be there, and a session need not know where it took place.
#[test]
fn a_session_is_handed_over_into_a_directory_that_is_not_there_yet() {
    let env = TestEnv::new();
    let line = r#"{"type":"session","harness":"goose","id":"s-1"}"#;
    let said = r#"{"type":"message","message":{"role":"user","content":"hi"}}"#;
    let log = env.file("hub.jsonl", format!("{line}\n{said}\n"));
    let agent = env.path("new/.claude");
    let to = [
        "convert",
        &log,
        "--to",
        "claude-code",
        "-o",
        agent.to_str().unwrap(),
    ];
    done(&env.run(&[&to[..], &["--cwd", "/code/my app"]].concat()));
    let place = agent.join("projects/-code-my-app");
    let found: Vec<_> = fs::read_dir(&place).unwrap().collect();
    assert_eq!(found.len(), 1);
    let path = found[0].as_ref().unwrap().path();
    let text = fs::read_to_string(path).unwrap();
    assert!(text.contains(r#""cwd":"/code/my app""#), "{text}");
    // Without one, it goes on where the command was given, and that is said.
    let ran = env.run(&to);
    done(&ran);
    assert!(ran.stderr.contains("environment.cwd"), "{}", ran.stderr);
    assert!(!agent.join("projects/-").exists());
    let wrong = env.run(&["convert", &log, "--to", "text", "--cwd", "/x"]);
    assert_eq!(wrong.code, 2, "{wrong:?}");
}

#[test]
fn a_run_directory_is_written_checked_and_read_back() {
    let env = TestEnv::new();
    let log = env.file("log.jsonl", LOG);
    let out = env.path("runs");
    let dir = out.to_str().unwrap();
    done(&env.run(&["convert", &log, "--to", "flow", "-o", dir]));
    let run = out.join(ID);
    let run = run.to_str().unwrap();
    let checked = env.run(&["verify", run, "--json"]);
    assert_eq!(checked.code, 0, "{checked:?}");
    let back = env.run(&["convert", run, "--to", "text"]);
    done(&back);
    assert!(back.stdout.contains("all 12 tests pass"));
}

#[test]
fn a_dataset_for_the_hub_has_a_card_and_native_logs_as_they_are() {
    let env = TestEnv::new();
    let log = env.file("log.jsonl", LOG);
    let out = env.path("dataset/");
    let dir = format!("{}/", out.to_str().unwrap());
    done(&env.run(&[
        "convert",
        &log,
        "--to",
        "huggingface",
        "--native",
        "-o",
        &dir,
    ]));
    let card = fs::read_to_string(out.join("README.md")).unwrap();
    assert!(card.starts_with("---\n"), "{card}");
    let copy = fs::read_to_string(out.join(format!("{ID}.jsonl"))).unwrap();
    assert!(copy == LOG);
}

#[test]
fn traces_are_sent_to_an_endpoint() {
    let env = TestEnv::new();
    let log = env.file("log.jsonl", LOG);
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://user:secret@{}", listener.local_addr().unwrap());
    let served = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        stream
            .set_read_timeout(Some(std::time::Duration::from_secs(20)))
            .unwrap();
        let mut request = Vec::new();
        let mut piece = [0; 4096];
        loop {
            let read = stream.read(&mut piece).unwrap();
            request.extend_from_slice(&piece[..read]);
            let text = String::from_utf8_lossy(&request);
            let Some((head, body)) = text.split_once("\r\n\r\n") else {
                continue;
            };
            let length = head
                .lines()
                .find_map(|line| {
                    line.to_lowercase()
                        .strip_prefix("content-length:")
                        .map(str::to_owned)
                })
                .map_or(0, |length| length.trim().parse::<usize>().unwrap());
            if read == 0 || body.len() >= length {
                break;
            }
        }
        stream
            .write_all(b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 2\r\nconnection: close\r\n\r\n{}")
            .unwrap();
        String::from_utf8(request).unwrap()
    });
    let ran = env.run(&["convert", &log, "--to", "otlp", "--endpoint", &url]);
    done(&ran);
    assert!(!ran.stderr.contains("secret"), "{}", ran.stderr);
    let request = served.join().unwrap();
    assert!(request.starts_with("POST /v1/traces "), "{request}");
    let body = json(request.split_once("\r\n\r\n").unwrap().1);
    assert!(body["resourceSpans"][0]["scopeSpans"][0]["spans"].is_array());
    // What was said is not in it, because nobody asked for it.
    assert!(!request.contains("all 12 tests pass"));
}

#[test]
fn copies_that_share_an_id_do_not_take_each_others_place() {
    let env = TestEnv::new();
    let one = env.file("one.jsonl", LOG);
    let two = env.file("two.jsonl", LOG.replace("five", "nine"));
    let out = env.path("out");
    let dir = out.to_str().unwrap();
    for format in ["text", "flow", "huggingface"] {
        let args = ["convert", &one, &two, "--to", format, "-o", dir, "--force"];
        done(&env.run(&args));
        let ending = if format == "flow" {
            ""
        } else if format == "text" {
            ".txt"
        } else {
            ".jsonl"
        };
        assert!(out.join(format!("{ID}{ending}")).exists(), "{format}");
        assert!(out.join(format!("{ID}-2{ending}")).exists(), "{format}");
    }
    let text = fs::read_to_string(out.join(format!("{ID}-2.txt"))).unwrap();
    assert!(text.contains("nine"));
    assert_eq!(
        env.run(&["convert", &one, &two, "--to", "codex", "-o", dir])
            .code,
        2
    );
}

#[test]
fn nothing_but_the_same_run_is_replaced_by_one() {
    let env = TestEnv::new();
    let log = env.file("log.jsonl", LOG.replace(ID, "src"));
    let kept = env.file("work/src/main.rs", "fn main() {}");
    let dir = env.path("work");
    let dir = dir.to_str().unwrap();
    let force = ["convert", &log, "--to", "flow", "-o", dir, "--force"];
    assert_eq!(env.run(&force).code, 2);
    assert!(fs::exists(&kept).unwrap());
    // The same run is replaced; the run itself, as a source, is not.
    let log = env.file("log.jsonl", LOG);
    let force = ["convert", &log, "--to", "flow", "-o", dir, "--force"];
    done(&env.run(&force));
    done(&env.run(&force));
    let run = format!("{dir}/{ID}");
    let over = env.run(&["convert", &run, "--to", "flow", "-o", dir, "--force"]);
    assert_eq!(over.code, 2, "{over:?}");
    assert!(fs::exists(format!("{run}/meta.json")).unwrap());
    let names = fs::read_dir(dir).unwrap().count();
    assert_eq!(names, 2, "nothing else is left");
}

#[test]
fn a_report_is_refused_before_anything_is_done() {
    let env = TestEnv::new();
    let log = env.file("log.jsonl", LOG);
    let report = env.file("report.json", "mine");
    let out = env.path("out.txt");
    let out = out.to_str().unwrap();
    let ran = env.run(&[
        "convert", &log, "--to", "text", "-o", out, "--report", &report,
    ]);
    assert_eq!(ran.code, 4, "{ran:?}");
    assert!(ran.stderr.contains("--force"), "{}", ran.stderr);
    assert!(!fs::exists(out).unwrap());
    assert_eq!(fs::read_to_string(&report).unwrap(), "mine");
    let same = format!("{}/{ID}.txt", env.path("dir").display());
    let dir = format!("{}/", env.path("dir").display());
    let ran = env.run(&[
        "convert", &log, "--to", "text", "-o", &dir, "--report", &same,
    ]);
    assert_ne!(ran.code, 0, "{ran:?}");
}

#[test]
fn what_comes_through_a_pipe_is_read_once_and_named_as_it_was() {
    let env = TestEnv::new();
    let one = env.run_with(&["convert", "/dev/stdin", "--to", "normalized"], LOG);
    done(&one);
    let two = env.run_with(&["convert", "/dev/stdin", "--to", "normalized"], LOG);
    // What comes through a pipe is captured when it comes.
    let but_when = |document: &str| {
        let (before, rest) = document.split_once("\"capturedAt\":\"").unwrap();
        let (_, after) = rest.split_once('"').unwrap();
        format!("{before}{after}")
    };
    assert_eq!(but_when(&one.stdout), but_when(&two.stdout));
    assert!(
        one.stdout.contains("\"path\":\"/dev/stdin\""),
        "{}",
        &one.stdout[..900]
    );
}

#[test]
fn what_could_not_be_read_is_said() {
    let env = TestEnv::new();
    let log = env.file("log.jsonl", format!("{LOG}{{\"type\":\"user\",\"mess"));
    let ran = env.run(&["convert", &log, "--to", "normalized", "--strict"]);
    assert_eq!(ran.code, 1);
    assert!(
        ran.stderr.contains("1 record cut off at the end"),
        "{}",
        ran.stderr
    );
    assert!(ran.stderr.contains("--strict"), "{}", ran.stderr);
}

#[test]
fn other_files_are_no_broken_recordings() {
    let env = TestEnv::new();
    let log = env.file("log.jsonl", LOG);
    let document = env.file("doc.json", "{\"schemaVersion\":\"1.0.0\",\"events\":[]}");
    let text = env.file("notes.txt", "nothing of the kind");
    for (path, says) in [
        (&log, "a log of claude-code"),
        (&document, "a version that is not known"),
    ] {
        let ran = env.run(&["verify", path]);
        assert_eq!(ran.code, 3, "{ran:?}");
        assert!(ran.stderr.contains(says), "{}", ran.stderr);
    }
    for path in [&log, &document, &text] {
        let before = fs::read(path).unwrap();
        let ran = env.run(&["repair", path]);
        assert_eq!(ran.code, 3, "{ran:?}");
        assert!(fs::read(path).unwrap() == before);
    }
}
