//! Keeping traces, and finding them again.

use serde_json::Value;

use super::env::TestEnv;
use super::machine::{furnish, json};

/// A trace whose root has this tag and whose second record this text. The ids come from the command itself.
fn trace(env: &TestEnv, tag: &str, text: &str) -> String {
    let root = format!(r#"{{"sdk":{{"name":"t","version":"1"}},"tags":{{"env":"{tag}"}}}}"#);
    let event = format!(r#"{{"category":"retry","name":"{text}","severity":"info"}}"#);
    let id = |payload: &str| {
        let ran = env.run_with(&["agentlog", "id"], payload);
        assert_eq!(ran.code, 0, "{}", ran.stderr);
        ran.stdout.trim().to_owned()
    };
    let (first, second) = (id(&root), id(&event));
    let line = |id: &str, kind: &str, second: u8, parent: &str, payload: &str| {
        format!(
            "{{\"version\":\"0.1\",\"id\":\"{id}\",\"kind\":\"{kind}\",\
             \"ts\":\"2026-04-24T10:00:0{second}.000Z\",\"parent\":{parent},\"payload\":{payload}}}\n"
        )
    };
    line(&first, "metadata", 0, "null", &root)
        + &line(&second, "harness_event", 1, &format!("\"{first}\""), &event)
}

fn names(env: &TestEnv, args: &[&str]) -> Vec<Value> {
    let all = [&["agentlog", "list", "--json"][..], args].concat();
    json(env, &all).as_array().unwrap().clone()
}

#[test]
fn what_is_kept_is_listed_and_given_back() {
    let env = TestEnv::new();
    let text = trace(&env, "dev", "a");
    let file = env.file("in/a.agentlog", &text);
    let ran = env.run(&["agentlog", "list"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (0, ""));
    assert!(!env.path("traces").exists(), "listing makes nothing");

    let ran = env.run(&["agentlog", "keep", &file]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert!(
        ran.stdout.starts_with("HOME/in/a.agentlog: kept  "),
        "{}",
        ran.stdout
    );
    let ran = env.run_with(&["agentlog", "keep", "-"], &text);
    assert!(
        ran.stdout.starts_with("-: already kept  "),
        "{}",
        ran.stdout
    );

    let rows = names(&env, &[]);
    let [row] = &rows[..] else { panic!("{rows:?}") };
    assert_eq!(
        (&row["records"], &row["kinds"]["harness_event"]),
        (&2.into(), &1.into())
    );
    let id = row["id"].as_str().unwrap();
    let ran = env.run(&["agentlog", "get", &id[..20]]);
    assert_eq!((ran.code, ran.stdout), (0, text.clone()));
    let to = env.path("copy").to_str().unwrap().to_owned();
    assert_eq!(env.run(&["agentlog", "get", id, "-o", &to]).code, 0);
    assert_eq!(std::fs::read_to_string(&to).unwrap(), text);
    // Nothing is written over.
    assert_eq!(env.run(&["agentlog", "get", id, "-o", &to]).code, 4);
    assert_eq!(env.run(&["agentlog", "get", "0000"]).code, 3);
    let ran = env.run(&["agentlog", "list"]);
    assert!(
        ran.stdout.contains("2026-04-24 10:00") && ran.stdout.contains("env=dev"),
        "{}",
        ran.stdout
    );
}

#[test]
fn an_id_that_names_two_is_an_error_that_names_both() {
    let env = TestEnv::new();
    let files =
        ["a", "b"].map(|text| env.file(&format!("{text}.agentlog"), trace(&env, "dev", text)));
    let ran = env.run(&["agentlog", "keep", &files[0], &files[1]]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert!(
        ran.stdout
            .contains("b.agentlog: kept beside another with the same root"),
        "{}",
        ran.stdout
    );
    let rows = names(&env, &[]);
    let id = rows[0]["id"].as_str().unwrap();
    let ran = env.run(&["agentlog", "get", id]);
    assert_eq!((ran.code, ran.stdout.as_str()), (3, ""));
    for row in &rows {
        let name = row["name"].as_str().unwrap();
        assert!(ran.stderr.contains(name), "{}", ran.stderr);
        assert_eq!(env.run(&["agentlog", "get", name]).code, 0);
        // As the table shows it.
        let shown = &name[..12].to_owned();
        let hash = &row["sha256"].as_str().unwrap()[..8];
        assert_eq!(
            env.run(&["agentlog", "get", &format!("{shown}~{hash}")])
                .code,
            0
        );
    }
    let table = env.run(&["agentlog", "list"]).stdout;
    assert_eq!(table.matches("2 with this root").count(), 2, "{table}");
}

#[test]
fn filters_are_combined() {
    let env = TestEnv::new();
    for (tag, text) in [("dev", "a"), ("prod", "b")] {
        let file = env.file(&format!("{tag}.agentlog"), trace(&env, tag, text));
        assert_eq!(env.run(&["agentlog", "keep", &file]).code, 0);
    }
    let count = |args: &[&str]| names(&env, args).len();
    assert_eq!(count(&["--tag", "env"]), 2);
    assert_eq!(count(&["--tag", "env=prod", "--kind", "harness_event"]), 1);
    assert_eq!(count(&["--tag", "env=prod", "--kind", "chunk"]), 0);
    assert_eq!(
        count(&[
            "--since",
            "2026-04-24T10:00:01Z",
            "--until",
            "2026-04-25T00:00:00Z"
        ]),
        2
    );
    assert_eq!(count(&["--until", "2026-04-24T10:00:00Z"]), 0);
    assert_eq!(count(&["--limit", "1"]), 1);
    let lines = env.run(&["agentlog", "list", "--jsonl"]).stdout;
    assert_eq!(lines.lines().count(), 2);
}

#[test]
fn what_is_no_trace_is_refused_and_the_others_are_kept() {
    let env = TestEnv::new();
    let good = env.file("good.agentlog", trace(&env, "dev", "a"));
    let bad = env.file("bad.agentlog", "hello\n");
    let ran = env.run(&["agentlog", "keep", &bad, &good]);
    assert_eq!(ran.code, 3, "{}", ran.stderr);
    assert!(
        ran.stderr.contains("bad.agentlog: no trace"),
        "{}",
        ran.stderr
    );
    assert_eq!(names(&env, &[]).len(), 1);
}

#[test]
fn names_of_others_do_nothing_to_the_terminal() {
    let env = TestEnv::new();
    let file = env.file("a.agentlog", trace(&env, "\\u001b]0;x", "a"));
    assert_eq!(env.run(&["agentlog", "keep", &file]).code, 0);
    let ran = env.run(&["agentlog", "list"]);
    assert!(
        !ran.stdout.contains('\x1b') && ran.stdout.contains("env=␛]0;x"),
        "{}",
        ran.stdout
    );
}

#[test]
fn a_full_disk_is_told_and_leaves_nothing() {
    let env = TestEnv::new();
    // Room for the index, but not for the trace.
    let text = trace(&env, "dev", "a");
    let many = text.clone() + &"\n".repeat(4 << 20);
    let file = env.file("in/a.agentlog", many);
    assert_eq!(names(&env, &[]).len(), 0);
    let quipu = env!("CARGO_BIN_EXE_quipu");
    let script = format!("ulimit -f 2048; exec {quipu} agentlog keep {file}");
    let mut shell = std::process::Command::new("sh");
    let ran = shell
        .args(["-c", &script])
        .env("QUIPU_HOME", env.dir.path())
        .output()
        .unwrap();
    let stderr = String::from_utf8(ran.stderr).unwrap();
    assert_eq!(ran.status.code(), Some(4), "{stderr}");
    assert!(stderr.contains("could not write"), "{stderr}");
    assert_eq!(
        std::fs::read_dir(env.path("traces/tmp")).unwrap().count(),
        0
    );
    assert_eq!(names(&env, &[]).len(), 0);
}

#[test]
fn many_processes_at_once_lose_nothing() {
    let env = TestEnv::new();
    let files: Vec<String> = ["a", "b", "c", "d", "e", "f"]
        .map(|text| env.file(&format!("{text}.agentlog"), trace(&env, "dev", text)))
        .to_vec();
    let running: Vec<_> = files
        .iter()
        .map(|file| env.command(&["agentlog", "keep", file]).spawn().unwrap())
        .collect();
    for mut child in running {
        assert!(child.wait().unwrap().success());
    }
    let rows = names(&env, &[]);
    assert_eq!(rows.len(), 6);
    assert!(rows.iter().all(|row| row["same_id"] == 6));
}

#[test]
fn a_directory_of_others_is_only_read() {
    let env = TestEnv::new();
    let text = trace(&env, "dev", "a");
    let id = text
        .split('"')
        .nth(7)
        .unwrap()
        .strip_prefix("sha256:")
        .unwrap()
        .to_owned();
    let path = format!("project/.shadow/traces/{}/{}.agentlog", &id[..2], &id[2..]);
    env.file(&path, &text);
    let project = env.path("project");
    let before = super::machine::listing(&project);
    for at in [project.clone(), project.join(".shadow")] {
        let at = at.to_str().unwrap();
        assert_eq!(names(&env, &["--at", at]).len(), 1);
        let ran = env.run(&["agentlog", "get", &id[..10], "--at", at]);
        assert_eq!((ran.code, &ran.stdout), (0, &text));
    }
    assert!(before == super::machine::listing(&project));
    assert!(!env.path("traces").exists());
}

#[test]
fn blobs_that_nothing_refers_to_go_when_it_is_said() {
    let env = TestEnv::new();
    furnish(&env);
    json(&env, &["import", "--json"]);
    let sha = "3a6eb0790f39ac87c94f3856b2dd2c5d110e6811602261a9a923d3bb23adc8b7";
    let used = format!("agentlog-blob://elsewhere/{sha}");
    let file = env.file("a.agentlog", trace(&env, "dev", &used));
    assert_eq!(env.run(&["agentlog", "keep", &file]).code, 0);
    let blob = env.file(&format!("blobs/{}/{}", &sha[..2], &sha[2..]), "data");
    let other = "c2356069e9d1e79ca924378153cfbbfb4d4416b1f99d41a2940bfdb66c5319db";
    let loose = env.file(&format!("blobs/{}/{}", &other[..2], &other[2..]), "b");
    let before = json(&env, &["agentlog", "gc", "--json"]);
    assert_eq!(before["young"], 1, "{before}");
    for file in [&blob, &loose] {
        let long_ago = std::time::UNIX_EPOCH + std::time::Duration::from_secs(1_700_000_000);
        std::fs::File::open(file)
            .unwrap()
            .set_modified(long_ago)
            .unwrap();
    }
    let found = json(&env, &["agentlog", "gc", "--json"]);
    assert_eq!(
        (&found["removed"], &found["bytes"]),
        (&false.into(), &1.into()),
        "{found}"
    );
    assert!(std::path::Path::new(&loose).exists());
    let ran = env.run(&["agentlog", "gc", "--yes"]);
    assert_eq!(
        (ran.code, ran.stdout.as_str()),
        (0, "Removed 1 blob; 1 B freed.\n"),
        "{}",
        ran.stderr
    );
    assert!(!std::path::Path::new(&loose).exists() && std::path::Path::new(&blob).exists());

    let ran = env.run(&["agentlog", "blob", &used]);
    assert_eq!((ran.code, ran.stdout.as_str()), (0, "data"));
    assert_eq!(env.run(&["agentlog", "blob", &sha[..10]]).stdout, "data");
    assert_eq!(env.run(&["agentlog", "blob", other]).code, 3);
    let rows = json(&env, &["agentlog", "blobs", "--json"]);
    let row = rows
        .as_array()
        .unwrap()
        .iter()
        .find(|row| row["size_bytes"] == 4)
        .unwrap();
    assert_eq!(
        (&row["mime"], row["traces"].as_array().unwrap().len()),
        (&"text/plain".into(), 1)
    );
    let ran = env.run(&["agentlog", "blobs"]);
    assert!(ran.stdout.contains(&sha[..12]), "{}", ran.stdout);
}

#[test]
fn what_is_not_there_is_said_as_what_it_is() {
    let env = TestEnv::new();
    let file = env.file("a.agentlog", trace(&env, "dev", "a"));
    let ran = env.run(&["agentlog", "keep", "/code/none.agentlog", &file]);
    assert_eq!(ran.code, 3, "{}", ran.stderr);
    assert!(
        ran.stderr.contains("there is no file /code/none.agentlog"),
        "{}",
        ran.stderr
    );
    assert_eq!(names(&env, &[]).len(), 1, "the other is kept");
    for args in [["blobs", "--near", "/code/none.png"], ["blob", "-o", "x"]] {
        let args = [
            &["agentlog"][..],
            &args,
            &["0123"][..usize::from(args[0] == "blob")],
        ];
        let ran = env.run(&args.concat());
        assert_eq!(ran.code, 3, "{}", ran.stderr);
        assert!(
            ran.stderr.contains("no blob begins") && !ran.stderr.contains("no trace"),
            "{}",
            ran.stderr
        );
    }
}

#[test]
fn blobs_beside_a_file_are_kept_with_it() {
    let env = TestEnv::new();
    let sha = "3a6eb0790f39ac87c94f3856b2dd2c5d110e6811602261a9a923d3bb23adc8b7";
    let file = env.file("a.agentlog", trace(&env, "dev", sha));
    let name = format!("a.agentlog.blobs/{}/{}", &sha[..2], &sha[2..]);
    let beside = env.file(&name, "data");
    assert_eq!(env.run(&["agentlog", "keep", &file]).code, 0);
    std::fs::remove_file(beside).unwrap();
    let ran = env.run(&["agentlog", "blob", sha]);
    assert_eq!((ran.code, ran.stdout.as_str()), (0, "data"));
}

#[test]
fn the_trace_of_a_run_is_not_written_over_something_else() {
    let env = TestEnv::new();
    let diary = "dear diary\ntoday";
    let file = env.file("diary.txt", diary);
    let event = r#"{"type":"step.started","path":"a","payload":{"name":"a","kind":"command"}}"#;
    let flag = format!("--agentlog={file}");
    let ran = env.run_with(&["emit", "--run", "r1", &flag], event);
    assert_eq!(
        (ran.code, ran.stdout.as_str()),
        (3, "1\n"),
        "{}",
        ran.stderr
    );
    assert!(ran.stderr.contains("line 1 is no record"), "{}", ran.stderr);
    assert_eq!(std::fs::read_to_string(file).unwrap(), diary);
}
