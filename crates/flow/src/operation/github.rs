//! `github.*`: issues and pull requests, by way of the program `gh`.
//!
//! Arguments are given to `gh` directly, never to a shell, and values are joined to the names of their options, so
//! that no text is taken for an option.

use std::ffi::OsString;
use std::time::Duration;

use serde_json::{Map, Value, json};
use tokio_util::sync::CancellationToken;

use super::builtin::{Builtin, Done, failed, response};
use super::inputs::{Inputs, text};
use super::{OperationContext, OperationError, Operations as _};
use crate::process::{self, Ended, Listener, Program};

/// The most bytes of output that are kept.
const MAX_OUTPUT: usize = 5 << 20;

/// How long `gh` may take.
const TIMEOUT: Duration = Duration::from_secs(60);

/// The most operations of a batch.
const MAX_BATCH: usize = 1000;

const ISSUE: &str = "number,title,body,state,author,labels,assignees,url,createdAt,updatedAt";
const PULL: &str = "number,title,body,state,author,labels,assignees,url,createdAt,updatedAt,baseRefName,headRefName,isDraft,mergeable";

pub(super) async fn run(
    builtin: &Builtin,
    operation: &str,
    inputs: Inputs<'_>,
    context: &OperationContext,
    cancel: &CancellationToken,
) -> Done {
    if operation == "batch" {
        return batch(builtin, inputs, context, cancel).await;
    }
    let mut argv: Vec<String> = vec!["gh".to_owned()];
    let number = inputs.integer("number").unwrap_or_default();
    if inputs.value("number").is_some() && number < 1 {
        return Err(OperationError::Inputs(format!(
            "github.{operation}: number must be 1 or more"
        )));
    }
    let number = number.to_string();
    let mut add = |parts: &[&str]| argv.extend(parts.iter().map(|it| (*it).to_owned()));
    match operation {
        "get_issue" => add(&["issue", "view", &number, "--json", ISSUE]),
        "get_pr" => add(&["pr", "view", &number, "--json", PULL]),
        "list_comments" => add(&["issue", "view", &number, "--json", "comments"]),
        "add_comment" => add(&["issue", "comment", &number]),
        "add_labels" => add(&["issue", "edit", &number]),
        "create_issue" => add(&["issue", "create"]),
        _ => add(&["pr", "create"]),
    }
    for (name, option) in [("title", "--title"), ("head", "--head"), ("base", "--base")] {
        if let Some(value) = inputs.some_text(name) {
            add(&[&format!("{option}={value}")]);
        }
    }
    // `gh` asks a person for what is missing of a new one.
    if operation.starts_with("create_") || inputs.value("body").is_some() {
        add(&[&format!("--body={}", inputs.text("body"))]);
    }
    let label = if operation == "add_labels" {
        "--add-label"
    } else {
        "--label"
    };
    for (name, option) in [("labels", label), ("assignees", "--assignee")] {
        for value in inputs.list(name).unwrap_or_default() {
            add(&[&format!("{option}={}", text(&value))]);
        }
    }
    if inputs.boolean("draft") == Some(true) {
        add(&["--draft"]);
    }
    if let Some(repo) = inputs.some_text("repo") {
        add(&[&format!("--repo={}", repository(&repo)?)]);
    }
    let output = ask(builtin, argv, context, cancel).await?;
    answer(operation, inputs, &output)
}

/// What `gh` said, as a response.
fn answer(operation: &str, inputs: Inputs<'_>, output: &str) -> Done {
    let object = || -> Result<Map<String, Value>, OperationError> {
        serde_json::from_str(output)
            .map_err(|error| failed(format!("gh did not answer with JSON: {error}")))
    };
    match operation {
        "get_issue" | "get_pr" => object(),
        "list_comments" => {
            let comments = object()?.remove("comments").unwrap_or(json!([]));
            let Value::Array(mut comments) = comments else {
                return Err(failed("gh did not answer with comments"));
            };
            if let Some(limit) = inputs.integer("limit") {
                comments.truncate(usize::try_from(limit).unwrap_or_default());
            }
            let count = comments.len();
            Ok(response([
                ("comments", comments.into()),
                ("count", count.into()),
            ]))
        }
        "add_labels" => {
            let number = inputs.integer("number").unwrap_or_default();
            let labels = inputs.list("labels").unwrap_or_default();
            Ok(response([
                ("number", number.into()),
                ("labels", labels.into()),
            ]))
        }
        _ => {
            let url = output.lines().rev().map(str::trim);
            let url = url.clone().find(|it| it.starts_with("http"));
            let Some(url) = url else {
                return Err(failed("gh did not answer with an address"));
            };
            let end = url.split(['#', '?']).next().unwrap_or(url);
            let number = end.rsplit('/').next().and_then(|it| it.parse::<u64>().ok());
            Ok(response([
                ("url", url.into()),
                ("number", number.map_or(Value::Null, Value::from)),
            ]))
        }
    }
}

/// `owner/name`, perhaps with a host before it.
fn repository(repo: &str) -> Result<&str, OperationError> {
    let parts: Vec<_> = repo.split('/').collect();
    let word = |it: &&str| {
        !it.is_empty()
            && !it.starts_with('-')
            && it
                .chars()
                .all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c))
    };
    if (2..=3).contains(&parts.len()) && parts.iter().all(word) {
        return Ok(repo);
    }
    Err(OperationError::Inputs(format!(
        "repo: {repo:?} is not of the form owner/name"
    )))
}

/// Several operations, some at once. Each result says whether it succeeded.
async fn batch(
    builtin: &Builtin,
    inputs: Inputs<'_>,
    context: &OperationContext,
    cancel: &CancellationToken,
) -> Done {
    let wrong = |why: String| OperationError::Inputs(format!("github.batch: {why}"));
    let strategy = inputs
        .some_text("strategy")
        .unwrap_or("all_succeed".to_owned());
    if !["all_succeed", "any_succeed", "best_effort"].contains(&strategy.as_str()) {
        return Err(wrong(format!(
            "strategy: {strategy:?} is not one of all_succeed, any_succeed, best_effort"
        )));
    }
    let list = inputs.list("operations").unwrap_or_default();
    if list.len() > MAX_BATCH {
        return Err(wrong(format!("more than {MAX_BATCH} operations")));
    }
    let mut work = Vec::new();
    for (n, item) in list.iter().enumerate() {
        let name = item.get("operation").or_else(|| item.get("name"));
        let Some(name) = name.and_then(Value::as_str) else {
            return Err(wrong(format!("operations[{n}] names no operation")));
        };
        let name = if name.starts_with("github.") {
            name.to_owned()
        } else {
            format!("github.{name}")
        };
        if name == "github.batch" {
            return Err(wrong(format!("operations[{n}] is itself a batch")));
        }
        let inputs = item.get("inputs").cloned().unwrap_or(json!({}));
        let Value::Object(inputs) = inputs else {
            return Err(wrong(format!("operations[{n}].inputs is not an object")));
        };
        work.push((name, inputs));
    }
    let at_once = inputs.integer("max_concurrent").unwrap_or(4).clamp(1, 64);
    let at_once = usize::try_from(at_once).unwrap_or(4);
    let total = work.len();
    let mut results: Vec<Value> = vec![Value::Null; total];
    let (mut left, mut running) = (work.into_iter().enumerate(), tokio::task::JoinSet::new());
    let (mut succeeded, mut stopped) = (0, None);
    loop {
        while running.len() < at_once && stopped.is_none() {
            let Some((n, (name, inputs))) = left.next() else {
                break;
            };
            let (builtin, context, cancel) = (builtin.clone(), context.clone(), cancel.clone());
            running.spawn(async move {
                let done = builtin.run(&name, &inputs, &context, &cancel).await;
                (n, name, done)
            });
        }
        let Some(joined) = running.join_next().await else {
            break;
        };
        let (n, name, done) = joined.map_err(|_| failed("the operation broke down"))?;
        results[n] = match done {
            Ok(output) => {
                succeeded += 1;
                json!({"operation": name, "success": true, "response": output.response})
            }
            Err(OperationError::Cancelled) => return Err(OperationError::Cancelled),
            Err(error) => {
                let why = error.to_string();
                if strategy == "all_succeed" && stopped.is_none() {
                    stopped = Some(format!("operations[{n}] ({name}) failed: {why}"));
                }
                json!({"operation": name, "success": false, "error": why})
            }
        };
    }
    if let Some(why) = stopped {
        let why = format!("{why} ({succeeded} of {total} succeeded)");
        return Err(failed(why));
    }
    if strategy == "any_succeed" && succeeded == 0 && total > 0 {
        return Err(failed(format!("none of {total} operations succeeded")));
    }
    Ok(response([
        ("results", results.into()),
        ("total", total.into()),
        ("succeeded", succeeded.into()),
        ("failed", (total - succeeded).into()),
    ]))
}

/// Runs a program that must succeed, and gives what it printed.
pub(super) async fn ask(
    builtin: &Builtin,
    argv: Vec<String>,
    context: &OperationContext,
    cancel: &CancellationToken,
) -> Result<String, OperationError> {
    let name = argv.first().cloned().unwrap_or_default();
    let mut program = Program::new(argv);
    program.dir = Some(context.root.clone());
    program.timeout = Some(TIMEOUT);
    program.env.insert("GH_PROMPT_DISABLED".into(), "1".into());
    if let Some(path) = &builtin.path {
        program.env.insert("PATH".into(), OsString::clone(path));
    }
    let mut heard = Heard::default();
    let ended = process::run(&program, &mut heard, cancel).await;
    let ended = ended.map_err(|error| match error {
        process::ProcessError::Start { program, source } => {
            failed(format!("cannot start {program}: {source}"))
        }
        error @ (process::ProcessError::NotFound { .. }
        | process::ProcessError::Directory { .. }) => failed(error.to_string()),
    })?;
    let said = String::from_utf8_lossy(&heard.err);
    match ended {
        Ended::Exited(0) if heard.over => Err(failed(format!(
            "{name} printed more than {MAX_OUTPUT} bytes"
        ))),
        Ended::Exited(0) => Ok(String::from_utf8_lossy(&heard.out).into_owned()),
        Ended::Cancelled => Err(OperationError::Cancelled),
        Ended::TimedOut => Err(failed(format!("{name} did not end within {TIMEOUT:?}"))),
        ended => Err(failed(format!(
            "{name} ended with exit code {}: {}",
            ended.code(),
            said.trim()
        ))),
    }
}

/// The beginning of what a program prints.
#[derive(Default)]
struct Heard {
    out: Vec<u8>,
    err: Vec<u8>,
    over: bool,
}

impl Listener for Heard {
    fn stdout(&mut self, bytes: &[u8]) {
        let room = MAX_OUTPUT - self.out.len();
        self.over |= bytes.len() > room;
        self.out.extend_from_slice(&bytes[..bytes.len().min(room)]);
    }

    fn stderr(&mut self, bytes: &[u8]) {
        let room = 4096 - self.err.len().min(4096);
        self.err.extend_from_slice(&bytes[..bytes.len().min(room)]);
    }
}
