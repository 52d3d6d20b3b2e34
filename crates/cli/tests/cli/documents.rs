//! What commands write reads back as the types of `quipu-api`, and nothing of it is lost on the way.

use quipu_api::{
    convert, doctor, explain, home, import, keys, prune, redact, repair, search, share, show,
    stats, trace, transcript, tree, verify,
};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::env::{TestEnv, line};
use super::machine::{SESSION, furnish};

const RECORD: &str = r#"{"version":"0.1","id":"sha256:636e34a27907c2fc3b3a06439bb176fc1daa573733de66c02e2420b6bcd27a59","kind":"metadata","ts":"2026-04-21T10:00:00.000Z","parent":null,"payload":{"sdk":{"name":"x","version":"1"}}}"#;

/// A document as the type; it says the same as what was written.
fn reads<T: Serialize + DeserializeOwned>(text: &str, about: &[&str]) -> T {
    let written: Value =
        serde_json::from_str(text).unwrap_or_else(|why| panic!("{about:?}: {why}: {text}"));
    let document: T = serde_json::from_value(written.clone())
        .unwrap_or_else(|why| panic!("{about:?}: {why}: {text}"));
    assert_eq!(
        serde_json::to_value(&document).unwrap(),
        written,
        "{about:?}"
    );
    document
}

fn json<T: Serialize + DeserializeOwned>(env: &TestEnv, args: &[&str]) -> T {
    reads(&env.run(args).stdout, args)
}

fn jsonl<T: Serialize + DeserializeOwned>(env: &TestEnv, args: &[&str]) -> Vec<T> {
    let ran = env.run(args);
    let lines: Vec<T> = ran.stdout.lines().map(|text| reads(text, args)).collect();
    assert!(!lines.is_empty(), "{args:?}: {}", ran.stderr);
    lines
}

#[test]
fn documents_of_a_home_read_back() {
    let env = TestEnv::new();
    furnish(&env);
    let before: home::Home = json(&env, &["--json"]);
    assert!(before.kept.is_none() && before.agents[0].logs > 0);
    let imported: import::Import = json(&env, &["import", "--json"]);
    assert!(imported.agents["claude-code"].events > 0, "{imported:?}");
    let after: home::Home = json(&env, &["--json"]);
    assert!(after.kept.is_some_and(|kept| kept.events > 0));

    let rows: Vec<transcript::Transcript> = json(&env, &["list", "--all", "--json"]);
    assert_eq!(
        jsonl::<transcript::Transcript>(&env, &["list", "--all", "--jsonl"]),
        rows
    );
    let query = ["search", "look", "--context", "1"];
    let hits: Vec<search::Hit> = json(&env, &[&query[..], &["--json"]].concat());
    assert!(
        hits.iter()
            .any(|hit| !hit.after.is_empty() && !hit.matches.is_empty())
    );
    assert_eq!(
        jsonl::<search::Hit>(&env, &[&query[..], &["--jsonl"]].concat()),
        hits
    );
    let found: search::Matches = json(&env, &["search", "look", "--count", "--json"]);
    assert_eq!(found.matches, hits.len() as u64);

    let shown: show::ShownSession = json(&env, &["show", SESSION, "--json"]);
    assert_eq!(shown.session.run_id, SESSION);
    assert_eq!(
        jsonl::<Value>(&env, &["show", SESSION, "--jsonl"]),
        shown.events
    );
    let family: tree::SessionTree = json(&env, &["tree", SESSION, "--json"]);
    assert_eq!(family.sessions.iter().map(|it| it.depth).max(), Some(1));

    for by in ["day", "session,model", "tool"] {
        let stats: stats::Stats = json(&env, &["stats", "--by", by, "--json"]);
        assert!(!stats.rows.is_empty(), "{by}");
    }
    let lines: Vec<explain::ExplainLine> = jsonl(&env, &["stats", "explain", "--jsonl"]);
    assert!(matches!(lines[0], explain::ExplainLine::Session(_)));
    assert!(matches!(lines.last(), Some(explain::ExplainLine::Sum(_))));
    let waste: stats::WasteReport = json(&env, &["stats", "waste", "--json"]);
    assert!(!waste.waste.is_empty());
    let budgets: stats::Budgets = json(&env, &["stats", "budget", "--day", "1", "--json"]);
    assert_eq!(budgets.budgets[0].budget, "day");

    let doctor: doctor::Doctor = json(&env, &["doctor", "--check", "--json"]);
    assert!(doctor.archive.checked.is_some());
    let filter = ["prune", "--larger-than", "1B", "--json"];
    let asked: prune::Pruned = json(&env, &filter);
    assert!(asked.removal.removed.is_none() && asked.removal.would_remove.is_some());
    let done: prune::Pruned = json(&env, &[&filter[..], &["--yes", "--last-copies"]].concat());
    assert!(done.removal.would_remove.is_none() && done.removal.swept.is_some());
    let receipt = done
        .receipt
        .unwrap()
        .replace("HOME", env.dir.path().to_str().unwrap());
    let receipt: prune::Removal = reads(&std::fs::read_to_string(receipt).unwrap(), &["receipt"]);
    assert_eq!(receipt.swept, done.removal.swept);
}

#[test]
fn documents_of_runs_and_traces_read_back() {
    let env = TestEnv::new();
    let call = r#"{"name":"call","kind":"call_workflow"}"#;
    let child = r#""path":"call","child_run_id":"gone""#;
    let events = line(1, "run.started", "", "null")
        + &line(2, "step.call_workflow.started", "call", call).replace(r#""path":"call""#, child);
    let run = env.file("transcripts/r.jsonl", format!("{events}oops\n{{\"seq\":4"));
    let shown: show::ShownRun = json(&env, &["show", &run, "--json"]);
    assert_eq!((shown.events.len(), shown.bad_line_count), (2, 2));
    let forest: tree::Forest = json(&env, &["tree", &run, "--json"]);
    assert!(matches!(
        forest.runs[0].steps[0].link,
        Some(tree::Link::Missing(_))
    ));

    let wrong = RECORD.replace("\"x\"", "\"y\"");
    let good = env.file("good.agentlog", format!("{RECORD}\n"));
    let bad = env.file("bad.agentlog", format!("{wrong}\nno record\n"));
    let atif = env.file("a.json", r#"{"schema_version":"ATIF-v1.6","session_id":"s","agent":{"name":"a","version":"1"},"steps":[{"step_id":7,"source":"user","message":"hi"}]}"#);
    let checked: Vec<verify::Checked> = json(
        &env,
        &["verify", "--json", &run, &good, &bad, &atif, "nowhere"],
    );
    let kind = |checked: &verify::Checked| match checked {
        verify::Checked::Transcript(it) => ("transcript", it.clean),
        verify::Checked::Trace(it) => ("trace", it.clean),
        verify::Checked::Other(it) => ("other", it.clean),
        verify::Checked::Failed(_) => ("failed", false),
    };
    assert_eq!(
        checked.iter().map(kind).collect::<Vec<_>>(),
        [
            ("transcript", false),
            ("trace", true),
            ("trace", false),
            ("other", false),
            ("failed", false)
        ]
    );
    let mended: Vec<repair::Mended> = json(&env, &["repair", "--json", &run, &good, "nowhere"]);
    assert!(matches!(
        &mended[..],
        [repair::Mended::Transcript(it), repair::Mended::Trace(_), repair::Mended::Failed(_)]
            if it.set_aside.is_some()
    ));

    let kept: Vec<trace::KeptTrace> = json(&env, &["agentlog", "keep", "--json", &good]);
    assert_eq!(kept[0].how, trace::KeptHow::New);
    let traces: Vec<trace::Trace> = json(&env, &["agentlog", "list", "--json"]);
    assert_eq!(
        jsonl::<trace::Trace>(&env, &["agentlog", "list", "--jsonl"]),
        traces
    );
    let log: trace::Log = json(&env, &["log", "--json", &good]);
    assert_eq!(
        jsonl::<trace::LogRecord>(&env, &["log", "--jsonl", &good]),
        log.records
    );
    let _: Vec<trace::Blob> = json(&env, &["agentlog", "blobs", "--json"]);
    let unused: trace::UnusedBlobs = json(&env, &["agentlog", "gc", "--json"]);
    assert!(!unused.removed);
}

#[test]
fn documents_of_what_leaves_the_machine_read_back() {
    let env = TestEnv::new();
    furnish(&env);
    let log = env.path(&format!("{}/{SESSION}.jsonl", super::machine::PROJECT));
    let log = log.to_str().unwrap();
    let secret = env.file(
        "secret.txt",
        "key ghp_0123456789abcdefghijABCDEFGHIJ012345 end\n",
    );
    let found: redact::Redacted = json(&env, &["redact", "--check", "--json", &secret]);
    assert_eq!((found.total, found.findings.len()), (1, 1));
    let rules: redact::Rules = json(&env, &["redact", "--list-rules", "--json"]);
    assert_eq!(rules.digest, found.rules_digest);

    let review: share::Review = json(&env, &["share", log, "--review", "--json"]);
    assert!(review.redactions > 0 && !review.values.is_empty());
    let bundle = env.path("bundle");
    let to = bundle.to_str().unwrap();
    let shared = env.run(&["share", log, "--yes", "--to", "bundle", "-o", to]);
    assert_eq!(shared.code, 0, "{}", shared.stderr);
    let receipt = std::fs::read_to_string(bundle.join("receipt.json")).unwrap();
    let receipt: share::Bundle = reads(&receipt, &["receipt.json"]);
    assert!(receipt.privacy.is_some_and(|it| it.commitment.is_some()));

    let report = env.path("report.json");
    let (to, at) = (env.path("x.json"), report.to_str().unwrap());
    let ran = env.run(&[
        "convert",
        log,
        "--to",
        "atif",
        "-o",
        to.to_str().unwrap(),
        "--report",
        at,
    ]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let report: convert::Conversion =
        reads(&std::fs::read_to_string(&report).unwrap(), &["report"]);
    assert_eq!(report.to, "atif");

    let made: keys::NewKey = json(&env, &["keys", "new", "--label", "laptop", "--json"]);
    let listed: Vec<keys::Key> = json(&env, &["keys", "list", "--json"]);
    assert_eq!(listed, [made.entry]);
}
