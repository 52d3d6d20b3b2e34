//! `quipu demo`: a small nested run, recorded, shown and checked.

use std::io::Write as _;
use std::path::PathBuf;

use quipu_formats::lines::Limits;
use quipu_model::{
    Block, Body, Content, Draft, Fidelity, Json, Place, RunId, Step, ToolCall, ToolResult, Usage,
};
use quipu_record::{Options, Recorder, Storage};

use super::tree::write_forest;
use crate::args::Demo;
use crate::error::{Exit, Result, io_error};
use crate::locate;
use crate::terminal::{Drawing, GREEN, RED, count, out};

pub(crate) fn run(args: &Demo, _: &locate::Place) -> Result<Exit> {
    let root = match &args.storage {
        Some(root) => root.clone(),
        None => new_directory(),
    };
    let storage = Storage::at(&root);
    let run = new_run_id();
    let recorder = storage.record(&run, Options::default())?;
    record_review(&recorder)?;
    recorder.close()?;

    let path = storage.path_of(&run);
    let mut out = out();
    writeln!(out, "Recorded a run with two child runs:\n")?;
    let forest = storage
        .forest(&path, Limits::default(), |_| {})
        .map_err(io_error(format!("could not read {}", path.display())))?;
    write_forest(&mut out, &forest, Drawing::for_locale())?;
    writeln!(out)?;
    let mut all_clean = true;
    for tree in &forest.runs {
        let Some(run_id) = &tree.run_id else { continue };
        let report = storage
            .verify(&storage.path_of(run_id), Limits::default())
            .map_err(io_error("could not verify"))?;
        all_clean &= report.is_clean();
        let verdict = if report.is_clean() {
            format!("{GREEN}verified{GREEN:#}")
        } else {
            format!("{RED}not clean{RED:#}")
        };
        writeln!(
            out,
            "{verdict}  run {run_id}  {}, seq 1 to {}",
            count(report.events, "event"),
            report.last_seq
        )?;
    }
    let path = path.display();
    writeln!(
        out,
        "\nNext:\n  quipu show {path}\n  quipu tree {path}\n  quipu verify {path}"
    )?;
    out.flush()?;
    Ok(if all_clean { Exit::Done } else { Exit::Found })
}

/// A name that nobody has; the recorder makes the directory, private to the user.
fn new_directory() -> PathBuf {
    std::env::temp_dir().join(format!("quipu-demo-{}", uuid::Uuid::new_v4().simple()))
}

fn new_run_id() -> RunId {
    RunId::new(&uuid::Uuid::new_v4().to_string()).expect("a UUID is a run id")
}

/// A review of a repository: tests and lints in parallel, then each finding in a loop, then a release
/// that another workflow does, which calls a third.
fn record_review(recorder: &Recorder) -> Result<()> {
    let workflow = Step::new("nightly-review", "workflow");
    at(
        recorder,
        Place::run(),
        Body::RunStarted(Some(workflow.clone())),
    )?;

    let checks = Step::new("checks", "parallel");
    at(
        recorder,
        Place::step("checks"),
        Body::StepStarted(checks.clone()),
    )?;
    // Branches run at once; each records from its own thread.
    std::thread::scope(|scope| {
        let branches = [
            ("lint", "cargo clippy", "ok: no warnings"),
            ("test", "cargo test", "ok: 212 passed"),
        ];
        let running = branches.map(|(name, command, output)| {
            scope.spawn(move || {
                record_command(recorder, &format!("checks.{name}"), name, command, output)
            })
        });
        running
            .into_iter()
            .try_for_each(|branch| branch.join().expect("a branch does not panic"))
    })?;
    at(
        recorder,
        Place::step("checks"),
        Body::StepCompleted(checks.succeeded(None)),
    )?;

    let findings = Step::new("findings", "for_each");
    at(
        recorder,
        Place::step("findings"),
        Body::StepStarted(findings.clone()),
    )?;
    for (n, file) in ["src/retry.rs", "src/cache.rs", "src/lib.rs"]
        .into_iter()
        .enumerate()
    {
        record_agent(recorder, n as u64, file)?;
    }
    at(
        recorder,
        Place::step("findings"),
        Body::StepCompleted(findings.succeeded(None)),
    )?;

    call(recorder, "release", "build-release", |child| {
        record_command(
            child,
            "package",
            "package",
            "cargo build --profile dist",
            "ok: 4.1 MB",
        )?;
        call(child, "publish", "publish", |grandchild| {
            record_command(grandchild, "upload", "upload", "upload quipu-0.1.0", "ok")
        })
    })?;
    at(
        recorder,
        Place::run(),
        Body::RunCompleted(Some(workflow.succeeded(None))),
    )
}

fn record_command(
    recorder: &Recorder,
    path: &str,
    name: &str,
    command: &str,
    output: &str,
) -> Result<()> {
    let step = Step::new(name, "command");
    let place = || Place::step(path);
    at(recorder, place(), Body::StepStarted(step.clone()))?;
    let call_id = format!("call-{name}");
    let tool = "Bash".to_owned();
    let input = Json::of(&serde_json::json!({ "command": command })).ok();
    at(
        recorder,
        place(),
        Body::ToolCall(ToolCall {
            name: tool.clone(),
            call_id: call_id.clone(),
            input,
            fidelity: Fidelity::Router,
        }),
    )?;
    at(
        recorder,
        place(),
        Body::ToolResult(ToolResult {
            name: tool,
            call_id,
            input: None,
            output: Some(Json::from(output)),
            error: None,
            fidelity: Fidelity::Router,
        }),
    )?;
    at(
        recorder,
        place(),
        Body::StepCompleted(step.succeeded(Some(Json::from(output)))),
    )
}

fn record_agent(recorder: &Recorder, n: u64, file: &str) -> Result<()> {
    let step = Step::new("review", "agent");
    let place = || Place::step("findings.review").iteration(n);
    at(recorder, place(), Body::StepStarted(step.clone()))?;
    let prompt = format!("Review {file} and say what is wrong with it.");
    at(
        recorder,
        place(),
        Body::UserMessage(vec![Block::text(Fidelity::Router, prompt)]),
    )?;
    let mut answer = Draft::new(
        place(),
        Body::AssistantMessage(vec![
            Block {
                fidelity: Fidelity::AgentEmitted,
                content: Content::Thinking(format!("I should read {file} first.")),
            },
            Block::text(Fidelity::AgentEmitted, format!("{file} looks right to me.")),
        ]),
    );
    answer.annotations.model = Some("demo-model".to_owned());
    answer.annotations.usage = Some(Usage {
        input: Some(412),
        output: Some(38),
        ..Usage::default()
    });
    recorder.record(&answer)?;
    at(recorder, place(), Body::StepCompleted(step.succeeded(None)))
}

/// Calls a child run: its own file, linked both ways.
fn call(
    recorder: &Recorder,
    path: &str,
    workflow: &str,
    run: impl FnOnce(&Recorder) -> Result<()>,
) -> Result<()> {
    let step = Step::new(path, "call_workflow");
    let child_run_id = new_run_id();
    let child = recorder.child(&child_run_id)?;
    let started = Body::CallStarted {
        child_run_id: child_run_id.clone(),
        step: step.clone(),
    };
    at(recorder, Place::step(path), started)?;
    let workflow = Step::new(workflow, "workflow");
    at(
        &child,
        Place::run(),
        Body::RunStarted(Some(workflow.clone())),
    )?;
    run(&child)?;
    at(
        &child,
        Place::run(),
        Body::RunCompleted(Some(workflow.succeeded(None))),
    )?;
    child.close()?;
    let end = step.succeeded(None);
    at(
        recorder,
        Place::step(path),
        Body::CallCompleted { child_run_id, end },
    )
}

fn at(recorder: &Recorder, place: Place, body: Body) -> Result<()> {
    recorder.record(&Draft::new(place, body))?;
    Ok(())
}
