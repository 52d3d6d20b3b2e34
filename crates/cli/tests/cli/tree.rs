use super::env::TestEnv;

fn emit(env: &TestEnv, run: &str, events: &[&str]) {
    let ran = env.run_with(&["emit", "--run", run], events.join("\n"));
    assert_eq!((ran.code, ran.stderr.as_str()), (0, ""));
}

fn event(kind: &str, path: &str, iteration: u64, step: &str, more: &str) -> String {
    let name = path.rsplit('.').next().unwrap();
    format!(
        r#"{{"type":"{kind}","path":"{path}","iteration":{iteration},"payload":{{"name":"{name}","kind":"{step}"}}{more}}}"#
    )
}

fn start(path: &str, iteration: u64, kind: &str) -> String {
    event("step.started", path, iteration, kind, "")
}

fn end(path: &str, iteration: u64, kind: &str) -> String {
    event("step.completed", path, iteration, kind, "")
}

fn call(which: &str, path: &str, child: &str) -> String {
    let more = format!(r#","child_run_id":"{child}""#);
    event(
        &format!("step.call_workflow.{which}"),
        path,
        0,
        "call_workflow",
        &more,
    )
}

/// Durations vary; everything else does not.
fn without_durations(text: &str) -> String {
    let words = text.split(' ').collect::<Vec<_>>();
    let mut kept = Vec::new();
    let mut skip = false;
    for (n, word) in words.iter().enumerate() {
        let unit = |w: &&str| {
            w.trim_end_matches(|c: char| !c.is_ascii_lowercase()) == "ms" || w.starts_with("ms\n")
        };
        if skip {
            skip = false;
            kept.extend(
                word.strip_prefix("ms")
                    .filter(|rest| !rest.is_empty())
                    .map(str::to_owned),
            );
        } else if word.parse::<f64>().is_ok() && words.get(n + 1).is_some_and(unit) {
            skip = true;
        } else {
            kept.push((*word).to_owned());
        }
    }
    kept.join(" ").replace(" \n", "\n")
}

/// Three levels of runs, with parallel branches and loops, written by another program through `emit`.
fn three_levels(env: &TestEnv) {
    let parent =
        |id: &str, event: String| event.replacen('{', &format!(r#"{{"parent_run_id":"{id}","#), 1);
    let root = [
        r#"{"type":"run.started","payload":{"name":"nightly","kind":"workflow"}}"#.to_owned(),
        start("build", 0, "parallel"),
        start("build.lint", 0, "command"),
        start("build.test", 0, "for_each"),
        start("build.test.suite", 0, "command"),
        end("build.lint", 0, "command"),
        end("build.test.suite", 0, "command"),
        start("build.test.suite", 1, "while"),
        start("build.test.suite.try", 0, "command"),
        end("build.test.suite.try", 0, "command"),
        start("build.test.suite.try", 1, "command"),
        end("build.test.suite.try", 1, "command"),
        end("build.test.suite", 1, "while"),
        end("build.test", 0, "for_each"),
        end("build", 0, "parallel"),
        call("started", "release", "mid"),
        call("completed", "release", "mid"),
        r#"{"type":"run.completed"}"#.to_owned(),
    ];
    let mid = [
        parent("root", start("package", 0, "command")),
        end("package", 0, "command"),
        call("started", "publish", "leaf"),
        call("completed", "publish", "leaf"),
        call("started", "notify", "nowhere"),
        call("started", "again", "root"),
    ];
    let leaf = [
        parent("mid", start("upload", 0, "agent")),
        r#"{"type":"message.user","path":"upload","payload":{"role":"user","blocks":[]}}"#.to_owned(),
        r#"{"type":"tool.call","path":"upload","payload":{"name":"Bash","call_id":"c1","input":{},"fidelity":"router"}}"#.to_owned(),
    ];
    for (run, events) in [("root", &root[..]), ("mid", &mid[..]), ("leaf", &leaf[..])] {
        emit(
            env,
            run,
            &events.iter().map(String::as_str).collect::<Vec<_>>(),
        );
    }
}

#[test]
fn three_levels_with_branches_and_loops() {
    let env = TestEnv::new();
    three_levels(&env);
    let ran = env.run(&["tree", "root"]);
    assert_eq!(
        without_durations(&ran.stdout),
        "run root nightly ok (18 events)
├─ build parallel ok
│  ├─ lint command ok
│  └─ test for_each ok
│     ├─ suite #0 command ok
│     └─ suite #1 while ok
│        ├─ try #0 command ok
│        └─ try #1 command ok
└─ release call_workflow ok → run mid (6 events)
   ├─ package command ok
   ├─ publish call_workflow ok → run leaf (3 events)
   │  └─ upload agent open [1 message, 1 tool call] Bash c1 without a result
   ├─ notify call_workflow open → run nowhere missing: no transcript
   └─ again call_workflow open → run root cycle: this run is its own caller
"
    );
    assert_eq!((ran.code, ran.stderr.as_str()), (0, ""));
}

#[test]
fn json_is_flat() {
    let env = TestEnv::new();
    three_levels(&env);
    let document: serde_json::Value =
        serde_json::from_str(&env.run(&["tree", "--json", "root"]).stdout).unwrap();
    assert_eq!(document["whole"], false);
    assert_eq!(document["runs"].as_array().unwrap().len(), 3);
    assert_eq!(document["runs"][0]["steps"][6]["parent"], 4);
    assert_eq!(document["runs"][0]["steps"][7]["link"]["run"], 1);
    assert_eq!(
        document["runs"][1]["steps"][2]["link"]["missing"],
        "no transcript"
    );
    assert_eq!(document["runs"][1]["steps"][3]["link"]["cycle"], true);
    assert_eq!(
        document["runs"][2]["steps"][0]["tally"]["dangling"][0]["call_id"],
        "c1"
    );
}

#[test]
fn lines_that_cannot_be_read_are_named() {
    let env = TestEnv::new();
    three_levels(&env);
    let path = env.run_path("leaf");
    let text = std::fs::read_to_string(&path).unwrap() + "oops\n";
    std::fs::write(&path, text).unwrap();
    let ran = env.run(&["tree", "root"]);
    assert!(
        ran.stderr
            .starts_with("HOME/transcripts/leaf.jsonl: line 4 "),
        "{}",
        ran.stderr
    );
    assert_eq!(ran.code, 3);
    assert!(
        ran.stdout.contains("upload agent open"),
        "the tree is there all the same"
    );
}

/// Drawn and built without recursion.
#[test]
fn thousands_of_levels() {
    let env = TestEnv::new();
    let mut path = String::new();
    let mut events = Vec::new();
    for n in 0..3_000 {
        path = if n == 0 {
            "s".to_owned()
        } else {
            format!("{path}.s")
        };
        events.push(start(&path, 0, "command"));
    }
    emit(
        &env,
        "deep",
        &events.iter().map(String::as_str).collect::<Vec<_>>(),
    );
    let ran = env.run(&["tree", "--json", "deep"]);
    assert_eq!(ran.code, 0);
}
