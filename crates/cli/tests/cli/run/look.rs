//! A run with agents in parallel, a loop, tools and a called run, looked at with everything that looks at runs.

use serde_json::Value;

use super::{Project, claude_says, repository};

const PARENT: &str = r#"
name: show-all
states:
  initial: before
  before: {type: command, command: "echo quokka", on_success: both}
  both: {type: parallel, parallel: [security, style], on_success: each}
  security: {type: agent, provider: claude, prompt: "Look at security"}
  style: {type: agent, provider: claude, prompt: "Look at style"}
  each: {type: for_each, items: "a,b", body: [judge], on_complete: call}
  judge: {type: agent, provider: claude, prompt: "Judge {{.loop.Item}}"}
  call: {type: call_workflow, workflow: child.yaml, outputs: {sum: sum}, on_success: done}
  done: {type: terminal, status: success, message: "{{.states.call.Response.sum}}"}
"#;

const CHILD: &str = r#"
name: child
states:
  initial: sum
  sum: {type: agent, provider: claude, prompt: "Sum up", on_success: done}
  done: {type: terminal, status: success}
"#;

/// Runs it; gives the id of the run.
fn shown(project: &Project) -> String {
    project.file("parent.yaml", PARENT);
    project.file("child.yaml", CHILD);
    // The second branch calls a tool; its stream has 40 tokens in and 25 out in two calls to the model.
    let with_a_tool = std::fs::read_to_string(
        repository().join("crates/agents/fixtures/claude-stream/stdout.jsonl"),
    )
    .unwrap();
    // Four others: 1,000 tokens in and 200 out each. Each call to a model has an id of its own.
    let says = |text: &str, id: &str| claude_says(text).replace("msg_1", id);
    project.agent(
        "claude",
        &[
            (
                "Look at security",
                &says("The zanzibar lock is weak.", "msg_s"),
                0,
            ),
            ("Look at style", &with_a_tool, 0),
            ("Judge a", &says("An okapi.", "msg_a"), 0),
            ("Judge b", &says("A numbat.", "msg_b"), 0),
        ],
        says("All is well, says the axolotl.", "msg_c").as_bytes(),
    );
    let ran = project.quipu(&["run", "parent.yaml"]);
    assert_eq!(
        (ran.code, ran.stdout.as_str()),
        (0, "All is well, says the axolotl.\n"),
        "{}",
        ran.stderr
    );
    project.verified("the run that is shown");
    project.only_run().0
}

fn json(project: &Project, args: &[&str]) -> Value {
    let ran = project.quipu(args);
    assert_eq!(ran.code, 0, "{args:?}: {}", ran.stderr);
    serde_json::from_str(&ran.stdout)
        .unwrap_or_else(|error| panic!("{args:?}: {error}: {}", ran.stdout))
}

#[test]
fn search_finds_what_an_agent_of_a_branch_said_and_names_its_step() {
    let project = Project::empty();
    let run = shown(&project);
    for (word, path, passes) in [
        ("zanzibar", "both.security", Value::from(Vec::<u64>::new())),
        ("numbat", "each.judge", Value::from(vec![1])),
    ] {
        let hits = json(&project, &["search", "--json", word]);
        let said: Vec<&Value> = hits
            .as_array()
            .unwrap()
            .iter()
            .filter(|hit| hit["role"] == "assistant")
            .collect();
        assert_eq!(said.len(), 1, "{word}: {hits}");
        assert_eq!(
            (&said[0]["path"], &said[0]["iterations"]),
            (&Value::from(path), &passes),
            "{word}"
        );
        assert_eq!(said[0]["run_id"], run.as_str(), "{word}");
    }
    let pattern = json(
        &project,
        &["search", "--json", "--regex", "zanz[a-z]+ lock"],
    );
    assert_eq!(pattern[0]["path"], "both.security", "{pattern}");
    let page = project.quipu(&["search", "numbat"]);
    assert!(
        page.stdout.contains("each.judge[1]  assistant"),
        "{}",
        page.stdout
    );
    let child = json(&project, &["search", "--json", "axolotl"]);
    let in_child = child
        .as_array()
        .unwrap()
        .iter()
        .any(|hit| hit["path"] == "sum" && hit["run_id"] != run.as_str());
    assert!(
        in_child,
        "what an agent of a called run said is found in that run: {child}"
    );
}

#[test]
fn stats_counts_every_call_of_a_run_and_of_the_runs_it_called_once() {
    let project = Project::empty();
    shown(&project);
    for by in ["total", "model", "session"] {
        let args: &[&str] = match by {
            "total" => &["stats", "--json"],
            by => &["stats", "--json", "--by", by],
        };
        let stats = json(&project, args);
        let spent = &stats["total"]["spent"];
        let tokens = (
            spent["tokens"]["input"].as_u64(),
            spent["tokens"]["output"].as_u64(),
            spent["calls"].as_u64(),
        );
        assert_eq!(tokens, (Some(4040), Some(825), Some(6)), "by {by}: {spent}");
        if by != "model" {
            assert_eq!(stats["total"]["did"]["tool_calls"], 1, "by {by}: {stats}");
        }
        // 4,040 tokens at 3 dollars a million, and 825 at 15.
        let usd: f64 = match &spent["usd"] {
            Value::String(text) => text.parse().unwrap(),
            other => other.as_f64().unwrap_or_else(|| panic!("{other}")),
        };
        assert!((usd - 0.024_495).abs() < 1e-9, "by {by}: {usd}");
    }
}

#[test]
fn a_command_of_a_step_is_not_counted_as_a_question_in_the_list() {
    let project = Project::empty();
    let run = shown(&project);
    let listed = json(&project, &["list", "--json"]);
    let rows = listed
        .as_array()
        .cloned()
        .unwrap_or_else(|| listed["sessions"].as_array().cloned().unwrap_or_default());
    let row = rows
        .iter()
        .find(|row| row["run_id"] == run.as_str())
        .unwrap_or_else(|| panic!("{listed}"));
    assert_eq!(
        row["prompts"], 4,
        "four questions to agents, and a command: {row}"
    );
    assert_eq!(row["tool_calls"], 1, "{row}");
}

#[test]
fn tree_show_and_tail_say_where_everything_happened() {
    let project = Project::empty();
    let run = shown(&project);
    let tree = project.quipu(&["tree", &run]).stdout;
    for line in [
        "security agent ok",
        "style agent ok",
        "judge #1 agent ok",
        "call call_workflow ok ",
        "sum agent ok",
    ] {
        assert!(tree.contains(line), "{line}: {tree}");
    }
    let show = project.quipu(&["show", &run]).stdout;
    for words in [
        "both.security",
        "zanzibar",
        "each.judge",
        "numbat",
        "echo quokka",
    ] {
        assert!(show.contains(words), "{words}: {show}");
    }
    let tail = project.quipu(&["tail", &run]).stdout;
    for words in ["each.judge", "numbat", "step.call_workflow.completed"] {
        assert!(tail.contains(words), "{words}: {tail}");
    }
}

#[test]
fn a_secret_of_an_input_is_in_no_file_of_a_masked_run() {
    let project = Project::empty();
    project.file(
        "secret.yaml",
        "name: secret\ninputs: [{name: API_KEY_X, type: string, required: true}]\nstates:\n  initial: use\n  use: {type: command, command: \"echo using {{.inputs.API_KEY_X}}\", on_success: done}\n  done: {type: terminal, status: success}\n",
    );
    let secret = "sesame-7f3a9c1e";
    let ran = project.quipu(&[
        "run",
        "secret.yaml",
        "--mask",
        "-i",
        &format!("API_KEY_X={secret}"),
    ]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let mut looked = 0;
    for path in project
        .transcripts()
        .into_iter()
        .chain([project.env.path("audit.jsonl")])
    {
        let text = std::fs::read_to_string(&path).unwrap();
        assert!(!text.contains(secret), "{}: {text}", path.display());
        looked += 1;
    }
    assert_eq!(looked, 2);
}
