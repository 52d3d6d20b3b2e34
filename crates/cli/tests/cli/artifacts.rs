//! What `quipu run` leaves beside the transcript: files of steps (`--artifacts flow`) and traces (`--agentlog`).

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use serde_json::Value;

use super::env::TestEnv;

/// A `claude` that reads a file, answers, and says what it took. It fails once where it is asked for something
/// flaky, and waits where it is asked to be slow.
const CLAUDE: &str = r#"#!/bin/sh
case "$*" in
*flaky*) if [ ! -e flaky-once ]; then : > flaky-once; echo '{"type":"system","subtype":"init","session_id":"s0","model":"claude-sonnet-4-20250514"}'; echo 'no connection' >&2; exit 1; fi ;;
*slow*) if [ ! -e go ]; then : > waiting; exec sleep 20; fi ;;
esac
cat <<'END'
{"type":"system","subtype":"init","session_id":"s1","cwd":"/w","model":"claude-sonnet-4-20250514","tools":["Read"]}
{"type":"assistant","message":{"id":"m1","type":"message","role":"assistant","model":"claude-sonnet-4-20250514","content":[{"type":"text","text":"I read the file."},{"type":"tool_use","id":"t1","name":"Read","input":{"file_path":"a.txt"}}],"usage":{"input_tokens":10,"output_tokens":5,"cache_read_input_tokens":100,"cache_creation_input_tokens":20}},"session_id":"s1"}
{"type":"user","message":{"role":"user","content":[{"tool_use_id":"t1","type":"tool_result","content":"the text of a.txt"}]},"session_id":"s1"}
{"type":"assistant","message":{"id":"m2","type":"message","role":"assistant","model":"claude-sonnet-4-20250514","content":[{"type":"text","text":"It is fine."}],"usage":{"input_tokens":12,"output_tokens":7,"cache_read_input_tokens":120,"cache_creation_input_tokens":0}},"session_id":"s1"}
{"type":"result","subtype":"success","is_error":false,"num_turns":2,"result":"It is fine.","session_id":"s1","total_cost_usd":0.0123,"usage":{"input_tokens":22,"output_tokens":12,"cache_read_input_tokens":220,"cache_creation_input_tokens":20}}
END
"#;

const REVIEW: &str = r#"
name: review
states:
  initial: plan
  plan: {type: agent, provider: claude, prompt: "Plan it", system_prompt: "Be brief.", on_success: both}
  both: {type: parallel, parallel: [left, right], strategy: all_succeed, on_success: each}
  left: {type: agent, provider: claude, prompt: "Look left"}
  right: {type: agent, provider: claude, prompt: "Look right"}
  each: {type: for_each, items: "a,b", body: [check_it], on_complete: unsure}
  check_it: {type: agent, provider: claude, prompt: "Check {{.loop.Item}}"}
  unsure: {type: agent, provider: claude, prompt: "flaky", retry: {max_attempts: 2, initial_delay: 1ms}, on_success: call}
  call: {type: call_workflow, workflow: child, on_success: last}
  last: {type: agent, provider: claude, prompt: "slow", on_success: done}
  done: {type: terminal, status: success}
"#;

const CHILD: &str = r#"
name: child
states:
  initial: look
  look: {type: agent, provider: claude, prompt: "Look deeper", on_success: done}
  done: {type: terminal, status: success}
"#;

/// A home, and a directory with workflows and an agent.
struct World {
    env: TestEnv,
}

impl World {
    fn new() -> Self {
        let env = TestEnv::new();
        let claude = env.file("bin/claude", CLAUDE);
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o700);
        fs::set_permissions(claude, mode).unwrap();
        env.file("w/review.yaml", REVIEW);
        env.file("w/.quipu/workflows/child.yaml", CHILD);
        env.file("w/go", "");
        Self { env }
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = self.env.command(args);
        let path = format!("{}:/usr/bin:/bin", self.env.path("bin").display());
        command.env("PATH", path).current_dir(self.env.path("w"));
        command
    }

    /// Runs a command; gives its exit code, and what it wrote.
    fn quipu(&self, args: &[&str]) -> (i32, String, String) {
        let output = self.command(args).output().unwrap();
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        (
            output.status.code().unwrap_or(-1),
            text(output.stdout),
            text(output.stderr),
        )
    }

    fn json(&self, args: &[&str]) -> Value {
        let (code, out, err) = self.quipu(args);
        assert_eq!(code, 0, "{args:?}: {err}");
        serde_json::from_str(&out).unwrap()
    }

    /// The ids of the runs, the called ones last.
    fn runs(&self) -> Vec<String> {
        let mut runs: Vec<(bool, String)> = fs::read_dir(self.env.path("transcripts"))
            .unwrap()
            .filter_map(|entry| {
                entry
                    .unwrap()
                    .file_name()
                    .into_string()
                    .ok()?
                    .strip_suffix(".jsonl")
                    .map(str::to_owned)
            })
            .map(|id| {
                (
                    self.events(&id)[0]
                        .get("parent_run_id")
                        .is_some_and(Value::is_string),
                    id,
                )
            })
            .collect();
        runs.sort();
        runs.into_iter().map(|(_, id)| id).collect()
    }

    fn events(&self, id: &str) -> Vec<Value> {
        let text = fs::read_to_string(self.env.run_path(id)).unwrap();
        text.lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect()
    }

    fn files(&self, id: &str) -> PathBuf {
        self.env.path("runs").join(id)
    }

    fn receipts(&self, id: &str, flow: &str) -> BTreeMap<String, Value> {
        let mut receipts = BTreeMap::new();
        for entry in fs::read_dir(self.files(id).join(flow).join("receipts")).unwrap() {
            let entry = entry.unwrap();
            let text = fs::read(entry.path()).unwrap();
            receipts.insert(
                entry.file_name().into_string().unwrap(),
                serde_json::from_slice(&text).unwrap(),
            );
        }
        receipts
    }

    /// Kills the command once its agent waits.
    fn kill_while_it_waits(&self, args: &[&str]) {
        let waiting = self.env.path("w/waiting");
        let mut child = self
            .command(args)
            .stderr(std::process::Stdio::null())
            .spawn()
            .unwrap();
        let began = Instant::now();
        while !waiting.exists() {
            assert!(
                began.elapsed() < Duration::from_secs(60),
                "the agent was not asked"
            );
            std::thread::sleep(Duration::from_millis(20));
        }
        // What was recorded until then reaches the files beside it.
        std::thread::sleep(Duration::from_millis(500));
        child.kill().unwrap();
        child.wait().unwrap();
    }
}

/// Everything below a directory: names, and when each was written.
fn written(root: &Path) -> BTreeMap<PathBuf, std::time::SystemTime> {
    let (mut found, mut left) = (BTreeMap::new(), vec![root.to_owned()]);
    while let Some(path) = left.pop() {
        if path.is_dir() {
            left.extend(
                fs::read_dir(&path)
                    .unwrap()
                    .map(|entry| entry.unwrap().path()),
            );
        } else {
            let at = path.metadata().unwrap().modified().unwrap();
            found.insert(path, at);
        }
    }
    found
}

/// What the format's own program takes the names of files for.
fn upstream(name: &str, is_receipt: bool) -> Option<(&str, &str)> {
    let word = |text: &str| {
        !text.is_empty() && text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
    };
    let stem = name.strip_suffix(if is_receipt { ".json" } else { ".jsonl" })?;
    let stem = if is_receipt {
        stem
    } else {
        let is_word = |engine: &str| engine.bytes().all(|b| b.is_ascii_alphanumeric());
        stem.rsplit_once('-')
            .filter(|(_, engine)| is_word(engine))?
            .0
    };
    stem.split_once('-')
        .filter(|(step, agent)| word(step) && !agent.is_empty())
}

#[test]
fn each_execution_of_an_agent_step_leaves_a_transcript_and_a_receipt() {
    let world = World::new();
    let (code, _, err) = world.quipu(&["run", "review.yaml", "--artifacts", "flow"]);
    assert_eq!(code, 0, "{err}");
    let runs = world.runs();
    let [run, child] = runs.as_slice() else {
        panic!("{runs:?}")
    };
    let receipts = world.receipts(run, "review");
    let names: Vec<&str> = receipts.keys().map(String::as_str).collect();
    assert_eq!(
        names,
        [
            "both_left-claude.json",
            "both_right-claude.json",
            "each_check_it__i1-claude.json",
            "each_check_it__i2-claude.json",
            "last-claude.json",
            "plan-claude.json",
            "unsure-claude.json",
            "unsure__a2-claude.json",
        ]
    );
    for (name, receipt) in &receipts {
        let (step, agent) = upstream(name, true).expect("a name that the format's program reads");
        assert_eq!(
            (receipt["step_id"].as_str(), receipt["agent_key"].as_str()),
            (Some(step), Some(agent))
        );
        let transcript = receipt["transcript_path"].as_str().unwrap();
        let file = transcript.strip_prefix("llm/").unwrap();
        assert_eq!(upstream(file, false), Some((step, agent)));
        assert!(
            world.files(run).join("review").join(transcript).is_file(),
            "{transcript}"
        );
        assert_eq!(receipt["run_id"], run.as_str());
        assert_eq!(
            (&receipt["engine"], &receipt["mode"], &receipt["provider"]),
            (&"claude-step".into(), &"cli".into(), &"claude".into())
        );
        // The directory is not a work tree of git.
        assert!(
            ["git_sha", "git_branch", "workspace_root"]
                .iter()
                .all(|key| receipt[*key].is_null())
        );
    }
    let plan = &receipts["plan-claude.json"];
    assert_eq!(plan["status"], "succeeded");
    assert_eq!(plan["model"], "claude-sonnet-4-20250514");
    assert_eq!(
        (&plan["tokens"]["prompt"], &plan["tokens"]["completion"]),
        (&262.into(), &12.into())
    );
    assert!(
        plan["cost_usd"].as_f64().is_some_and(|usd| usd > 0.0),
        "{plan}"
    );
    assert_eq!(plan["session_id"], "s1");
    let failed = &receipts["unsure-claude.json"];
    assert_eq!(failed["status"], "failed");
    assert!(
        failed["error"]
            .as_str()
            .is_some_and(|error| error.contains("exit")),
        "{failed}"
    );
    assert_eq!(
        (
            &receipts["unsure__a2-claude.json"]["attempt"],
            &failed["attempt"]
        ),
        (&2.into(), &1.into())
    );
    assert_eq!(
        receipts["each_check_it__i2-claude.json"]["iterations"],
        serde_json::json!([1])
    );
    let inner = world.receipts(child, "child");
    assert_eq!(inner["look-claude.json"]["parent_run_id"], run.as_str());
}

#[test]
fn the_transcript_of_a_step_has_a_line_for_each_message_and_tool() {
    let world = World::new();
    let (code, _, err) = world.quipu(&["run", "review.yaml", "--artifacts", "flow"]);
    assert_eq!(code, 0, "{err}");
    let run = &world.runs()[0];
    let lines =
        fs::read_to_string(world.files(run).join("review/llm/plan-claude-claude.jsonl")).unwrap();
    let roles: Vec<(String, Value)> = lines
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap())
        .map(|line| {
            (
                line["role"].as_str().unwrap().to_owned(),
                line.get("content")
                    .or(line.get("tool_output"))
                    .cloned()
                    .unwrap_or_default(),
            )
        })
        .collect();
    let said: Vec<(&str, &str)> = roles
        .iter()
        .map(|(role, content)| (role.as_str(), content.as_str().unwrap()))
        .collect();
    assert_eq!(
        said,
        [
            ("system", "Be brief."),
            ("user", "Plan it"),
            ("assistant", "I read the file."),
            ("tool", "the text of a.txt"),
            ("assistant", "It is fine."),
        ]
    );
}

#[test]
fn files_of_steps_are_clean_and_count_what_the_run_counts_once() {
    let world = World::new();
    let (code, _, err) = world.quipu(&["run", "review.yaml", "--artifacts", "flow"]);
    assert_eq!(code, 0, "{err}");
    let runs = world.runs();
    for run in &runs {
        let directory = world.files(run).to_str().unwrap().to_owned();
        let (code, out, err) = world.quipu(&["verify", &directory]);
        assert_eq!(code, 0, "{out}{err}");
    }
    let spent = |stats: &Value| stats["total"]["spent"].clone();
    let before = world.json(&["stats", "--json"]);
    assert_eq!(spent(&before)["tokens"]["total"], 2192, "{before}");
    for run in &runs {
        let directory = world.files(run).to_str().unwrap().to_owned();
        let (code, _, err) = world.quipu(&["import", &directory]);
        assert_eq!(code, 0, "{err}");
    }
    assert_eq!(
        world.json(&["stats", "--json"]),
        before,
        "the run and its files are counted as two"
    );

    // Where the run itself is not known, its files count the same.
    let other = TestEnv::new();
    let ran = other.run(&["import", world.env.path("runs").to_str().unwrap()]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let ran = other.run(&["stats", "--json"]);
    let stats: Value = serde_json::from_str(&ran.stdout).unwrap();
    for key in ["tokens", "usd"] {
        assert_eq!(spent(&stats)[key], spent(&before)[key], "{key}");
    }
}

#[test]
fn a_resumed_run_adds_files_and_leaves_those_that_are_there() {
    let world = World::new();
    fs::remove_file(world.env.path("w/go")).unwrap();
    world.kill_while_it_waits(&["run", "review.yaml", "--artifacts", "flow", "--quiet"]);
    let run = world.runs()[0].clone();
    let before = written(&world.env.path("runs"));
    assert!(
        before.keys().any(|path| path.ends_with("plan-claude.json")),
        "{before:?}"
    );
    assert!(
        !before.keys().any(|path| path.ends_with("last-claude.json")),
        "{before:?}"
    );
    world.env.file("w/go", "");
    let (code, _, err) = world.quipu(&["run", "--resume", &run, "--artifacts", "flow"]);
    assert_eq!(code, 0, "{err}");
    let after = written(&world.env.path("runs"));
    for (path, at) in before {
        if !path.ends_with("meta.json") {
            assert_eq!(
                after.get(&path),
                Some(&at),
                "{} was written again",
                path.display()
            );
        }
    }
    let receipts = world.receipts(&run, "review");
    assert_eq!(
        receipts["last-claude.json"]["status"], "failed",
        "the one that was killed"
    );
    assert_eq!(receipts["last__a2-claude.json"]["status"], "succeeded");
    let meta = fs::read(world.files(&run).join("meta.json")).unwrap();
    let meta: Value = serde_json::from_slice(&meta).unwrap();
    assert_eq!(meta["status"], "succeeded");
    let (code, out, err) = world.quipu(&["verify", world.files(&run).to_str().unwrap()]);
    assert_eq!(code, 0, "{out}{err}");
}

#[test]
fn files_of_steps_say_that_a_stub_did_nothing() {
    let world = World::new();
    let (code, _, err) = world.quipu(&["run", "review.yaml", "--stub", "--artifacts", "flow"]);
    assert_eq!(code, 0, "{err}");
    let run = world.runs()[0].clone();
    for (name, receipt) in world.receipts(&run, "review") {
        assert_eq!(
            (&receipt["mode"], &receipt["model"]),
            (&"stub".into(), &"claude-stub".into()),
            "{name}"
        );
        assert_eq!(receipt["tokens"]["total"], 0, "{name}");
        let transcript = world
            .files(&run)
            .join("review")
            .join(receipt["transcript_path"].as_str().unwrap());
        let text = fs::read_to_string(transcript).unwrap();
        let last: Value = serde_json::from_str(text.lines().last().unwrap()).unwrap();
        assert!(
            last["content"].as_str().unwrap().starts_with("[STUB]"),
            "{name}: {last}"
        );
    }
}

#[test]
fn receipts_say_where_in_git_the_steps_ran() {
    let world = World::new();
    let git = |args: &[&str]| {
        let output = Command::new("git")
            .args([
                "-c",
                "user.name=t",
                "-c",
                "user.email=t@example.com",
                "-c",
                "init.defaultBranch=trunk",
            ])
            .args(args)
            .current_dir(world.env.path("w"))
            .output()
            .unwrap();
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    };
    git(&["init", "-q"]);
    git(&["add", "-A"]);
    git(&["commit", "-q", "-m", "one"]);
    let sha = git(&["rev-parse", "HEAD"]);
    let (code, _, err) = world.quipu(&["run", "review.yaml", "--stub", "--artifacts", "flow"]);
    assert_eq!(code, 0, "{err}");
    let receipts = world.receipts(&world.runs()[0], "review");
    let plan = &receipts["plan-claude.json"];
    assert_eq!(
        (&plan["git_sha"], &plan["git_branch"]),
        (&sha.into(), &"trunk".into())
    );
    let root = fs::canonicalize(world.env.path("w")).unwrap();
    assert_eq!(plan["workspace_root"], root.to_str().unwrap());
}

/// The traces of a home.
fn traces(world: &World) -> Vec<PathBuf> {
    let files = written(&world.env.path("traces")).into_keys();
    files
        .filter(|path| path.extension().is_some_and(|ending| ending == "agentlog"))
        .collect()
}

#[test]
fn a_run_and_the_runs_that_it_calls_have_traces_that_verify() {
    let world = World::new();
    let (code, _, err) = world.quipu(&["run", "review.yaml", "--agentlog"]);
    assert_eq!(code, 0, "{err}");
    let traces = traces(&world);
    assert_eq!(traces.len(), 2, "one for each run: {traces:?}");
    let mut all = String::new();
    for trace in &traces {
        let (code, out, err) = world.quipu(&["verify", trace.to_str().unwrap()]);
        assert_eq!(code, 0, "{out}{err}");
        all += &fs::read_to_string(trace).unwrap();
    }
    let kinds: std::collections::BTreeSet<String> = all
        .lines()
        .map(|line| {
            serde_json::from_str::<Value>(line).unwrap()["kind"]
                .as_str()
                .unwrap()
                .to_owned()
        })
        .collect();
    for kind in [
        "metadata",
        "chat_request",
        "chat_response",
        "tool_call",
        "tool_result",
        "harness_event",
    ] {
        assert!(kinds.contains(kind), "{kind} is not in {kinds:?}");
    }
    // Each agent step is a conversation of its own, also when several speak at the same time.
    let records = all
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap());
    let of = |step: &str, kind: &str| -> Vec<Value> {
        let is_one =
            |record: &Value| record["meta"]["quipu"]["subagent"] == step && record["kind"] == kind;
        records.clone().filter(is_one).collect()
    };
    for (step, prompt) in [
        ("both.left", "Look left"),
        ("both.right", "Look right"),
        ("each.check_it[1]", "Check b"),
    ] {
        let asked = of(step, "chat_request");
        assert_eq!(asked.len(), 2, "{step}");
        assert_eq!(
            asked[0]["payload"]["messages"],
            serde_json::json!([{"role": "user", "content": prompt}])
        );
        assert_eq!(
            asked[1]["payload"]["messages"].as_array().map(Vec::len),
            Some(3),
            "{step}: {}",
            asked[1]
        );
        for kind in ["chat_response", "tool_call", "tool_result"] {
            assert!(!of(step, kind).is_empty(), "{step} has no {kind}");
        }
    }
}

#[test]
fn a_trace_goes_on_where_a_killed_run_left_it() {
    let world = World::new();
    fs::remove_file(world.env.path("w/go")).unwrap();
    world.kill_while_it_waits(&["run", "review.yaml", "--agentlog", "--quiet"]);
    let before: BTreeMap<PathBuf, Vec<u8>> = traces(&world)
        .into_iter()
        .map(|path| (path.clone(), fs::read(path).unwrap()))
        .collect();
    assert_eq!(before.len(), 2, "the run and the one that it called");
    world.env.file("w/go", "");
    let run = world.runs()[0].clone();
    let (code, _, err) = world.quipu(&["run", "--resume", &run, "--agentlog"]);
    assert_eq!(code, 0, "{err}");
    let after = traces(&world);
    assert_eq!(after.len(), 2, "{after:?}");
    let mut grew = 0;
    for (path, old) in before {
        let new = fs::read(&path).unwrap();
        assert!(new.starts_with(&old), "{} was written anew", path.display());
        grew += u32::from(new.len() > old.len());
        let (code, out, err) = world.quipu(&["verify", path.to_str().unwrap()]);
        assert_eq!(code, 0, "{out}{err}");
    }
    assert_eq!(grew, 1, "only the run that was killed goes on");
}
