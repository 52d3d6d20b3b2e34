//! Run directories of Flow Studio, from their files to their files, through the command.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::env::TestEnv;

const LOOP: &str = "stepwise-loop-claude";
const GEMINI: &str = "stepwise-gemini";
const SHAPES: &str = "run-20251209-143022-abc123";

/// A file that a step left, which is not part of the transcript.
const ARTIFACT: &str = "impl_changes.md";

/// What the files of each run call it.
const IDS: [(&str, &str); 3] = [
    (LOOP, "run-20251209-102043-k4loop"),
    (GEMINI, "run-20251209-103000-q7gemi"),
    (SHAPES, SHAPES),
];

fn fixtures() -> PathBuf {
    Path::new(concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../formats/fixtures/flow"
    ))
    .to_owned()
}

fn write(path: &Path, bytes: impl AsRef<[u8]>) {
    use std::io::Write as _;
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    let mut file = fs::File::create(path).unwrap();
    file.write_all(bytes.as_ref()).unwrap();
}

/// The files below a directory, by their names.
fn files(root: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut found = BTreeMap::new();
    let mut open = vec![root.to_owned()];
    while let Some(path) = open.pop() {
        if path.is_dir() {
            open.extend(fs::read_dir(&path).unwrap().map(|it| it.unwrap().path()));
        } else {
            let rel = path.strip_prefix(root).unwrap().to_str().unwrap();
            found.insert(rel.to_owned(), fs::read(&path).unwrap());
        }
    }
    found
}

/// Puts the runs into a directory of their own.
fn runs(env: &TestEnv) -> PathBuf {
    let root = env.path("swarm/runs");
    for (name, bytes) in files(&fixtures()) {
        write(&root.join(name), bytes);
    }
    root
}

fn json(env: &TestEnv, args: &[&str]) -> Value {
    let ran = env.run(args);
    assert!(ran.code <= 1, "{args:?}: {}", ran.stderr);
    serde_json::from_str(&ran.stdout).unwrap_or_else(|error| panic!("{error}: {}", ran.stdout))
}

fn done(env: &TestEnv, args: &[&str]) -> String {
    let ran = env.run(args);
    assert_eq!(ran.code, 0, "{args:?}: {}{}", ran.stdout, ran.stderr);
    ran.stdout + &ran.stderr
}

fn listed(env: &TestEnv) -> Vec<Value> {
    let list = json(env, &["list", "--all", "--json"]);
    list.as_array()
        .or_else(|| list["sessions"].as_array())
        .unwrap()
        .clone()
}

fn of_type<'v>(shown: &'v Value, word: &str) -> Vec<&'v Value> {
    let events = shown["events"].as_array().unwrap();
    events
        .iter()
        .filter(|event| event["type"] == word)
        .collect()
}

#[test]
fn a_run_directory_is_one_transcript() {
    let env = TestEnv::new();
    let root = runs(&env);
    let report = json(&env, &["import", root.to_str().unwrap(), "--json"]);
    assert_eq!(report["unknown"], 0, "{report}");
    assert_eq!(listed(&env).len(), 3);
    let mut steps = 0;
    for (name, id) in IDS {
        let kept = json(&env, &["show", id, "--json"]);
        let dir = root.join(name);
        let there = json(&env, &["show", dir.to_str().unwrap(), "--json"]);
        // What is kept is what is read where it lies.
        assert_eq!(kept["events"], there["events"], "{name}");
        let begun = of_type(&kept, "step.started");
        steps += begun.len();
        assert_eq!(
            begun.len(),
            of_type(&kept, "step.completed").len(),
            "{name}"
        );
        assert_eq!(of_type(&kept, "run.started").len(), 1);
        assert_eq!(of_type(&kept, "run.completed").len(), 1);
    }
    assert_eq!(steps, 25);
}

#[test]
fn any_file_of_a_run_stands_for_it() {
    let env = TestEnv::new();
    let root = runs(&env).join(SHAPES);
    let whole = json(&env, &["show", root.to_str().unwrap(), "--json"]);
    let checked = json(&env, &["verify", root.to_str().unwrap(), "--json"]);
    for file in [
        "events.jsonl",
        "meta.json",
        "build",
        "build/llm/impl-loop-code-implementer-claude.jsonl",
        "gate/llm/cli-gatekeeper-claude.jsonl",
        "build/receipts/impl-loop-code-implementer.json",
        "build/handoff/sdk.json",
        "build/impl_changes.md",
    ] {
        let path = root.join(file);
        let path = path.to_str().unwrap();
        let shown = json(&env, &["show", path, "--json"]);
        assert_eq!(shown["events"], whole["events"], "{file}");
        done(&env, &["tree", path]);
        if !file.ends_with(ARTIFACT) {
            let found = json(&env, &["verify", path, "--json"]);
            assert_eq!(found[0]["findings"], checked[0]["findings"], "{file}");
            let fresh = TestEnv::new();
            done(&fresh, &["import", path]);
            let list = listed(&fresh);
            assert_eq!(list.len(), 1, "{file}");
            assert!(list[0].to_string().contains(SHAPES), "{file}");
        }
    }
}

#[test]
fn what_is_said_anywhere_in_a_run_is_found() {
    let env = TestEnv::new();
    let root = runs(&env);
    done(&env, &["import", root.to_str().unwrap()]);
    // In a transcript, and in the reason of a route that the journal has.
    let found = done(&env, &["search", "heliotrope", "--json"]);
    assert!(found.contains(SHAPES), "{found}");
    assert!(found.contains("Implement the"), "{found}");
    let found = done(&env, &["search", "quota", "--json"]);
    assert!(found.contains("run-20251209-103000-q7gemi"), "{found}");
    // A hit leads to the file and the line.
    let shown = json(&env, &["show", SHAPES, "--json"]);
    let said = of_type(&shown, "message.user");
    let said = said.iter().find(|it| it.to_string().contains("heliotrope"));
    let said = said.unwrap().to_string();
    assert!(
        said.contains("build/llm/impl-loop-code-implementer-claude.jsonl"),
        "{said}"
    );
}

#[test]
fn a_run_comes_out_of_the_archive_as_it_was() {
    let env = TestEnv::new();
    let root = runs(&env);
    done(&env, &["import", root.to_str().unwrap()]);
    for (name, id) in IDS {
        let before = files(&root.join(name));
        // The archive is all there is.
        fs::remove_dir_all(root.join(name)).unwrap();
        let out = env.path(&format!("out-{name}"));
        let ran = env.run(&["export", id, "--to", "flow", "-o", out.to_str().unwrap()]);
        assert!(ran.code <= 1, "{}", ran.stderr);
        let mut after = files(&out);
        // The directory may be in another one, by the name of the run.
        let nested: Vec<String> = after
            .keys()
            .filter_map(|key| key.strip_prefix(&format!("{id}/")).map(str::to_owned))
            .collect();
        if !nested.is_empty() {
            after = files(&out.join(id));
        }
        for (file, bytes) in &before {
            if file.ends_with(ARTIFACT) {
                assert!(!after.contains_key(file));
                let told = ran.stdout.clone() + &ran.stderr;
                assert!(told.contains("not part of the transcript"), "{told}");
                continue;
            }
            assert!(after.get(file) == Some(bytes), "{name}/{file}");
        }
        let left = before
            .keys()
            .filter(|file| file.ends_with(ARTIFACT))
            .count();
        assert_eq!(after.len(), before.len() - left, "{name}");
    }
}

#[test]
fn a_run_that_grows_is_read_again_and_one_that_does_not_is_left_alone() {
    let env = TestEnv::new();
    let root = runs(&env).join(GEMINI);
    let path = root.to_str().unwrap();
    let steps = |env: &TestEnv| {
        let shown = json(env, &["show", "run-20251209-103000-q7gemi", "--json"]);
        of_type(&shown, "step.started").len()
    };
    done(&env, &["import", path]);
    let archive = files(&env.path("archive"));
    assert_eq!(steps(&env), 4);
    done(&env, &["import", path]);
    assert!(files(&env.path("archive")) == archive);
    // A step more: its files, and what the journal says.
    let mut journal = fs::read(root.join("events.jsonl")).unwrap();
    for kind in ["step_start", "step_end"] {
        let line = format!(
            "{{\"run_id\": \"run-20251209-103000-q7gemi\", \"ts\": \"2025-12-09T10:40:00Z\", \"kind\": \"{kind}\", \"flow_key\": \"plan\", \"step_id\": \"policy\", \"agent_key\": \"policy-analyst\", \"payload\": {{\"status\": \"succeeded\"}}}}\n"
        );
        journal.extend_from_slice(line.as_bytes());
    }
    write(&root.join("events.jsonl"), &journal);
    write(
        &root.join("plan/llm/policy-policy-analyst-gemini.jsonl"),
        "{\"timestamp\": \"2025-12-09T10:40:00Z\", \"role\": \"assistant\", \"content\": \"The policy is periwinkle.\"}\n",
    );
    done(&env, &["import", path]);
    assert_eq!((steps(&env), listed(&env).len()), (5, 1));
    let found = done(&env, &["search", "periwinkle", "--json"]);
    assert!(found.contains("q7gemi"), "{found}");
    // What the catalogue says can be made again from the archive.
    let before = json(&env, &["show", "run-20251209-103000-q7gemi", "--json"]);
    done(&env, &["import", "--rebuild"]);
    let after = json(&env, &["show", "run-20251209-103000-q7gemi", "--json"]);
    assert_eq!(before["events"], after["events"]);
    done(&env, &["doctor", "--check"]);
    done(&env, &["prune", "--agent", "flow-studio", "--yes"]);
    assert_eq!(listed(&env).len(), 0);
    assert_eq!(env.run(&["show", "run-20251209-103000-q7gemi"]).code, 3);
    done(&env, &["doctor", "--check"]);
}

#[test]
fn the_tree_of_a_run_has_its_flows_steps_and_iterations() {
    let env = TestEnv::new();
    let root = runs(&env).join(LOOP);
    let there = done(&env, &["tree", root.to_str().unwrap()]);
    done(&env, &["import", root.to_str().unwrap()]);
    let kept = done(&env, &["tree", "run-20251209-102043-k4loop"]);
    assert_eq!(there, kept);
    assert_eq!(there.matches("implement").count(), 2, "{there}");
    assert_eq!(there.matches("author_reqs").count(), 3, "{there}");
    for told in [
        "signal flow",
        "build flow",
        "author_reqs #2",
        "critique_code #1",
    ] {
        assert!(there.contains(told), "{told:?} in {there}");
    }
    assert!(
        !there.contains("missing") && !there.contains("open"),
        "{there}"
    );
}

#[test]
fn nothing_outside_of_a_run_is_read_or_written() {
    let env = TestEnv::new();
    let root = runs(&env).join(SHAPES);
    let said = r#"{"timestamp": "2025-12-09T14:30:24Z", "role": "user", "content": "VERMILION"}"#;
    write(&env.path("outside/secret.jsonl"), format!("{said}\n"));
    write(
        &env.path("outside/handoff/x.json"),
        r#"{"summary": "VERMILION"}"#,
    );
    let link = |from: &str, to: &str| {
        std::os::unix::fs::symlink(env.path(from), root.join(to)).unwrap();
    };
    link("outside/secret.jsonl", "build/llm/leak-x-claude.jsonl");
    link("outside/handoff", "gate/handoff");
    link("outside", "outside");
    let path = root.to_str().unwrap();
    done(&env, &["import", path]);
    let shown = done(&env, &["show", SHAPES, "--json"]);
    assert!(!shown.contains("VERMILION"));
    let shown = done(&env, &["show", path, "--json"]);
    assert!(!shown.contains("VERMILION"));
}

#[test]
fn a_copy_of_a_run_is_counted_once() {
    let env = TestEnv::new();
    let root = runs(&env);
    done(&env, &["import", root.to_str().unwrap()]);
    let spent = |env: &TestEnv| {
        let stats = json(env, &["stats", "--json"]);
        stats["total"]["spent"].clone()
    };
    let before = spent(&env);
    assert!(
        before["calls"].as_u64().is_some_and(|calls| calls > 0),
        "{before}"
    );
    for (name, bytes) in files(&root.join(SHAPES)) {
        write(&env.path("backup").join(SHAPES).join(name), bytes);
    }
    done(&env, &["import", env.path("backup").to_str().unwrap()]);
    assert_eq!(spent(&env), before);
}

#[test]
fn a_directory_that_is_not_a_run_is_refused() {
    let env = TestEnv::new();
    write(&env.path("work/notes.md"), "x");
    let path = env.path("work");
    for command in ["show", "tree"] {
        let ran = env.run(&[command, path.to_str().unwrap()]);
        assert_eq!(ran.code, 3, "{}", ran.stderr);
        assert!(ran.stderr.contains("not a run"), "{}", ran.stderr);
    }
}

#[test]
fn findings_of_a_run_name_their_file_as_documented() {
    let env = TestEnv::new();
    let root = runs(&env).join(LOOP);
    let found = json(&env, &["verify", root.to_str().unwrap(), "--json"]);
    let findings = found[0]["findings"].as_array().unwrap();
    assert!(findings.iter().any(|it| it["file"] == "events.jsonl"));
    let docs = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/formats/flow.md");
    let docs = fs::read_to_string(docs).unwrap();
    let mut keys: Vec<&str> = findings[0]
        .as_object()
        .unwrap()
        .keys()
        .map(String::as_str)
        .collect();
    keys.sort_unstable();
    let shape = docs
        .lines()
        .find(|line| line.contains("`{\"rule\""))
        .unwrap();
    for key in keys {
        assert!(shape.contains(&format!("\"{key}\"")), "{key} in {shape}");
    }
}
