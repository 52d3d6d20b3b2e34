//! A recorded run: nested, with parallel steps, agents, child runs and an error.

use std::path::Path;

use quipu_model::{
    Block, Body, Content, Draft, Fidelity, Json, Place, RunId, Step, ToolCall, ToolCallId,
    ToolResult, Usage,
};
use quipu_record::{Recorder, RecorderOptions, Storage};

use crate::error::Result;

/// The run that is to be looked at.
pub(crate) const RUN: &str = "sample-nightly-review";

/// Records the run, unless it is there.
pub(super) fn record(home: &Path) -> Result<()> {
    let storage = Storage::at(home);
    let run = id(RUN);
    if storage.find(&run).is_some() {
        return Ok(());
    }
    let recorder = storage.record(&run, RecorderOptions::default())?;
    record_review(&recorder)?;
    recorder.close()?;
    Ok(())
}

fn id(name: &str) -> RunId {
    RunId::new(name).expect("the names of samples are run ids")
}

/// A review of a repository: tests and lints in parallel, then each finding in a loop, then a release
/// that another workflow does, which calls a third. The upload is refused.
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
            ("lint", "cargo clippy", Ok("ok: no warnings")),
            ("test", "cargo test", Ok("ok: 212 passed")),
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

    let refused = "upload: 403 the token has expired";
    call(recorder, "release", "build-release", refused, |child| {
        let package = "cargo build --profile dist";
        record_command(child, "package", "package", package, Ok("ok: 4.1 MB"))?;
        call(child, "publish", "publish", refused, |grandchild| {
            let upload = "upload relay-0.3.0";
            record_command(grandchild, "upload", "upload", upload, Err(refused))
        })
    })?;
    let end = workflow.failed(refused);
    at(recorder, Place::run(), Body::RunCompleted(Some(end)))
}

fn record_command(
    recorder: &Recorder,
    path: &str,
    name: &str,
    command: &str,
    output: Result<&str, &str>,
) -> Result<()> {
    let step = Step::new(name, "command");
    let place = || Place::step(path);
    at(recorder, place(), Body::StepStarted(step.clone()))?;
    let call_id = ToolCallId::from(format!("call-{name}"));
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
            output: output.ok().map(Json::from),
            error: output.err().map(str::to_owned),
            fidelity: Fidelity::Router,
        }),
    )?;
    let end = match output {
        Ok(output) => step.succeeded(Some(Json::from(output))),
        Err(error) => step.failed(error),
    };
    at(recorder, place(), Body::StepCompleted(end))
}

fn record_agent(recorder: &Recorder, n: u64, file: &str) -> Result<()> {
    let step = Step::new("review", "agent");
    let place = || Place::flat("findings.review", n);
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
    answer.annotations.model = Some("sample-model".to_owned());
    answer.annotations.usage = Some(Usage {
        input: Some(412),
        output: Some(38),
        ..Usage::default()
    });
    recorder.record(&answer)?;
    at(recorder, place(), Body::StepCompleted(step.succeeded(None)))
}

/// Calls a child run that fails: its own file, linked both ways.
fn call(
    recorder: &Recorder,
    path: &str,
    workflow: &str,
    error: &str,
    run: impl FnOnce(&Recorder) -> Result<()>,
) -> Result<()> {
    let step = Step::new(path, "call_workflow");
    let child_run_id = id(&format!("sample-{workflow}"));
    let child = recorder.child(&child_run_id)?;
    let started = Body::CallStarted {
        child_run_id: child_run_id.clone(),
        step: step.clone(),
    };
    at(recorder, Place::step(path), started)?;
    let workflow = Step::new(workflow, "workflow");
    let begin = Body::RunStarted(Some(workflow.clone()));
    at(&child, Place::run(), begin)?;
    run(&child)?;
    let end = workflow.failed(error);
    at(&child, Place::run(), Body::RunCompleted(Some(end)))?;
    child.close()?;
    let end = step.failed(error);
    let completed = Body::CallCompleted { child_run_id, end };
    at(recorder, Place::step(path), completed)
}

fn at(recorder: &Recorder, place: Place, body: Body) -> Result<()> {
    recorder.record(&Draft::new(place, body))?;
    Ok(())
}
