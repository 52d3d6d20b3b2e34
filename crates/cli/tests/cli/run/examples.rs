//! Every workflow of `examples/workflows` and of `tests/workflows`, from its file to its tree.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::{Project, events_of, repository, serve};

/// A workflow file that says how it is tried and how it ends.
struct Example {
    name: String,
    line: String,
    exit: i32,
}

impl Example {
    fn read(path: &Path) -> Self {
        let text = std::fs::read_to_string(path).unwrap();
        let said = |key: &str| {
            let line = text.lines().find_map(|line| line.strip_prefix(key));
            line.unwrap_or_else(|| panic!("{} has a line `{key} …`", path.display()))
                .to_owned()
        };
        Self {
            name: path.file_stem().unwrap().to_str().unwrap().to_owned(),
            line: said("# try: "),
            exit: said("# exit: ").parse().unwrap(),
        }
    }
}

fn examples_in(dir: &Path) -> Vec<Example> {
    let entries = std::fs::read_dir(dir)
        .unwrap()
        .map(|entry| entry.unwrap().path());
    let mut files: Vec<PathBuf> = entries
        .filter(|path| path.extension().is_some_and(|it| it == "yaml"))
        .collect();
    files.sort();
    files.iter().map(|path| Example::read(path)).collect()
}

/// Where a step was when it ran, as the event says.
type Spot = (String, String, Vec<u64>, u64);

fn spot(event: &Value) -> Spot {
    let passes = match &event["iterations"] {
        Value::Array(passes) => passes.iter().map(|pass| pass.as_u64().unwrap()).collect(),
        _ => Vec::new(),
    };
    let text = |key: &str| event[key].as_str().unwrap_or_default().to_owned();
    (
        text("run_id"),
        text("path"),
        passes,
        event["attempt"].as_u64().unwrap_or(1),
    )
}

/// A step as it was executed, or as the tree has it.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord, Clone)]
struct Executed {
    run: String,
    started: u64,
    ended: Option<u64>,
    path: String,
    iteration: u64,
    name: String,
    kind: String,
    error: Option<String>,
    calls: Option<String>,
    /// The seq with which the step above it began.
    above: Option<u64>,
}

/// The steps, from the events that were printed while the run was under way.
fn executed(live: &[Value]) -> Vec<Executed> {
    let mut steps: Vec<Executed> = Vec::new();
    let mut open: BTreeMap<Spot, usize> = BTreeMap::new();
    for event in live {
        let kind = event["type"].as_str().unwrap();
        let here = spot(event);
        let text = |value: &Value| value.as_str().map(str::to_owned);
        let payload = &event["payload"];
        if matches!(kind, "step.started" | "step.call_workflow.started") {
            let above = here.1.rsplit_once('.').map(|(above, _)| {
                let around = open.iter().filter(|((run, path, passes, _), _)| {
                    *run == here.0 && path == above && here.2.starts_with(passes)
                });
                // The passes of the step above are as many as its own loops: the longest that fits is the innermost.
                let found =
                    around.max_by_key(|((_, _, passes, attempt), _)| (passes.len(), *attempt));
                let (_, at) =
                    found.unwrap_or_else(|| panic!("{event}: nothing above it is under way"));
                steps[*at].started
            });
            let was = open.insert(here.clone(), steps.len());
            assert_eq!(was, None, "{event}: two at one place");
            steps.push(Executed {
                run: here.0,
                started: event["seq"].as_u64().unwrap(),
                ended: None,
                path: here.1,
                iteration: event["iteration"].as_u64().unwrap_or_default(),
                name: text(&payload["name"]).unwrap(),
                kind: text(&payload["kind"]).unwrap(),
                error: None,
                calls: text(&event["child_run_id"]),
                above,
            });
        } else if matches!(kind, "step.completed" | "step.call_workflow.completed") {
            let at = open
                .remove(&here)
                .unwrap_or_else(|| panic!("{event} has no beginning"));
            steps[at].ended = event["seq"].as_u64();
            steps[at].error = text(&payload["error"]);
        }
    }
    steps.sort();
    steps
}

/// The steps, as the tree that is rebuilt from files has them.
fn rebuilt(tree: &Value) -> Vec<Executed> {
    let mut steps = Vec::new();
    for run in tree["runs"].as_array().unwrap() {
        let all = run["steps"].as_array().unwrap();
        let text = |value: &Value| value.as_str().map(str::to_owned);
        for step in all {
            assert_eq!(step["placed"], "by_path", "{step}");
            assert_eq!(step["tally"]["inferred"], 0, "{step}");
            let above = step["parent"].as_u64().map(|at| {
                all[usize::try_from(at).unwrap()]["started_seq"]
                    .as_u64()
                    .unwrap()
            });
            let state = match (step["ended_seq"].is_null(), step["error"].is_null()) {
                (true, _) => "open",
                (false, true) => "done",
                (false, false) => "failed",
            };
            assert_eq!(step["state"], state, "{step}");
            steps.push(Executed {
                run: text(&run["run_id"]).unwrap(),
                started: step["started_seq"].as_u64().unwrap(),
                ended: step["ended_seq"].as_u64(),
                path: text(&step["path"]).unwrap(),
                iteration: step["iteration"].as_u64().unwrap(),
                name: text(&step["name"]).unwrap(),
                kind: text(&step["kind"]).unwrap(),
                error: text(&step["error"]),
                calls: text(&step["calls"]),
                above,
            });
        }
    }
    steps.sort();
    steps
}

/// Runs an example and looks at all that it leaves behind.
fn holds(project: &Project, example: &Example, url: &str) {
    let name = &example.name;
    let before: BTreeSet<PathBuf> = project.transcripts().into_iter().collect();
    let line = example.line.replace("http://127.0.0.1:8080", url);
    let ran = project.shell(&format!("{line} --json"));
    assert_eq!(
        ran.code, example.exit,
        "{name}: {}\n{}",
        ran.stderr, ran.stdout
    );
    let live = events_of(&ran.stdout);

    let new: Vec<PathBuf> = project
        .transcripts()
        .into_iter()
        .filter(|path| !before.contains(path))
        .collect();
    let mut files: Vec<Value> = new
        .iter()
        .flat_map(|path| events_of(&std::fs::read_to_string(path).unwrap()))
        .collect();
    let mut printed = live.clone();
    let by_place = |event: &Value| (event["run_id"].to_string(), event["seq"].as_u64());
    files.sort_by_key(by_place);
    printed.sort_by_key(by_place);
    let home = project.env.dir.path().to_str().unwrap();
    let files: Vec<String> = files
        .iter()
        .map(|event| event.to_string().replace(home, "HOME"))
        .collect();
    let printed: Vec<String> = printed.iter().map(ToString::to_string).collect();
    assert_eq!(printed, files, "{name}: what is printed is what is kept");

    for event in &live {
        let kind = event["type"].as_str().unwrap();
        let of_step =
            kind.starts_with("step.") || kind.starts_with("message.") || kind.starts_with("tool.");
        // What hooks of the whole workflow do happens in none of its steps.
        let of_run =
            event["as"] == "harness" && event["event"]["name"].as_str().unwrap().contains("hook");
        assert!(
            !of_step || of_run || event["path"] != "",
            "{name}: {event} names its step"
        );
    }
    for path in &new {
        let id = path.file_stem().unwrap().to_str().unwrap();
        let of_run: Vec<&Value> = live.iter().filter(|event| event["run_id"] == id).collect();
        assert_eq!(of_run.first().unwrap()["type"], "run.started", "{name}");
        assert_eq!(of_run.last().unwrap()["type"], "run.completed", "{name}");
        assert_eq!(id.len(), 36, "{name}: a run has a UUID");
    }
    // Runs are printed each by its own thread: the events of one are in order, those of several may mix.
    let root = live.iter().find(|event| event["parent_run_id"].is_null());
    let root = root.unwrap()["run_id"].as_str().unwrap();
    let tree = project.quipu(&["tree", "--json", root]);
    assert_eq!(tree.code, 0, "{name}: {}", tree.stderr);
    let tree: Value = serde_json::from_str(&tree.stdout).unwrap();
    assert_eq!(tree["whole"], true, "{name}");
    assert_eq!(
        tree["runs"].as_array().unwrap().len(),
        new.len(),
        "{name}: every run is in the tree"
    );
    assert_eq!(rebuilt(&tree), executed(&live), "{name}");

    let checked = project.shell(&format!("{line} --validate"));
    assert_eq!(checked.code, 0, "{name}: {}", checked.stderr);
    assert_eq!(
        checked.stderr.lines().count(),
        1,
        "{name}: nothing is wrong with it: {}",
        checked.stderr
    );
}

fn all_hold(project: &Project, examples: &[Example]) {
    let url = serve(|request, _| match request {
        _ if request.starts_with("GET /status") => {
            ("application/json", r#"{"ok":true}"#.to_owned())
        }
        _ => ("text/plain", "thanks".to_owned()),
    });
    for example in examples {
        holds(project, example, &url);
    }
    project.verified("all examples");
}

#[test]
fn every_example_runs_ends_as_it_says_and_its_tree_is_rebuilt_from_files() {
    let project = Project::examples();
    let examples = examples_in(project.root());
    assert!(examples.len() >= 40, "{} examples", examples.len());
    all_hold(&project, &examples);
    let pack = examples_in(&project.root().join(".quipu/workflow-packs/house/workflows"));
    all_hold(&project, &pack);
}

#[test]
fn odd_workflows_run_end_as_they_say_and_their_tree_is_rebuilt_from_files() {
    let project = Project::examples();
    let from = repository().join("crates/cli/tests/workflows");
    for entry in std::fs::read_dir(&from).unwrap() {
        let path = entry.unwrap().path();
        std::fs::copy(&path, project.root().join(path.file_name().unwrap())).unwrap();
    }
    all_hold(&project, &examples_in(&from));
}

#[test]
fn an_example_is_short_and_says_what_it_is_for() {
    for dir in ["examples/workflows", "crates/cli/tests/workflows"] {
        for entry in std::fs::read_dir(repository().join(dir)).unwrap() {
            let path = entry.unwrap().path();
            if path.extension().is_none_or(|it| it != "yaml") {
                continue;
            }
            let text = std::fs::read_to_string(&path).unwrap();
            assert!(
                text.starts_with("# ") && !text.starts_with("# try"),
                "{}",
                path.display()
            );
            assert!(text.lines().count() <= 40, "{} is short", path.display());
        }
    }
}
