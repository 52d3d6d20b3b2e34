//! `quipu run`

mod artifacts;
mod display;
mod look;
mod person;
mod replies;

use std::path::Path;
use std::sync::Arc;

use indexmap::IndexMap;
use quipu_flow::definition::inputs::resolve;
use quipu_flow::definition::places::Places;
use quipu_flow::definition::{Budget, Workflow};
use quipu_flow::engine::{
    Engine, EngineError, EngineOptions, Outcome, ResumeOptions, RunStatus, Verdict,
};
use quipu_flow::launch::{Checked, Launch, system_user};
use quipu_flow::process::{ProcessTree, adopt_orphans};
use quipu_model::RunId;
use quipu_record::Storage;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use super::emit;
use crate::args::Run;
use crate::config::Config;
use crate::error::{CommandError, Exit, Result, io_error};
use crate::locate;
use crate::terminal::say;

use artifacts::StepArtifacts;
use display::Display;
use person::Terminal;

pub(crate) fn run(args: &Run, place: &locate::HomePlace) -> Result<Exit> {
    let cwd = std::env::current_dir().map_err(io_error("cannot find the current directory"))?;
    let places = Places::from_env(&cwd);
    if args.list {
        return look::list(&places);
    }
    if args.schema {
        return look::schema();
    }
    let workflow = match &args.workflow {
        None => None,
        Some(name) => {
            let only_look = args.validate || args.dry_run || args.graph.is_some();
            match checked(name, &places, args)? {
                Some(workflow) if !only_look => Some(Arc::new(workflow)),
                Some(workflow) => return look::at(args, &workflow),
                None => return Ok(Exit::Data),
            }
        }
    };
    let root = match &args.root {
        Some(root) => cwd.join(root),
        None => cwd,
    };
    if !root.is_dir() {
        let message = format!("--root: there is no directory {}", root.display());
        return Err(CommandError::usage(message));
    }
    let storage_root = match &args.storage {
        Some(root) => root.clone(),
        None => place.home()?,
    };
    let inputs = inputs(&args.inputs)?;
    let artifacts = args
        .artifacts
        .map(|_| StepArtifacts::new(&storage_root, &root));
    let display = Arc::new(Display::new(args, &storage_root, artifacts));
    let options = options(args, place, places, &root, &storage_root, &display)?;
    adopt_orphans();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(io_error("cannot start threads"))?;
    let cancel = CancellationToken::new();
    let ended = runtime.block_on(async {
        tokio::spawn(interrupted(cancel.clone()));
        match (&args.resume, workflow) {
            (Some(id), workflow) => resume(args, options, id, inputs, workflow, &cancel).await,
            (None, Some(workflow)) => {
                let inputs = resolved(&workflow, &inputs)?;
                Engine::new(options)
                    .run(workflow, inputs, &cancel)
                    .await
                    .map_err(failed)
            }
            (None, None) => Err(CommandError::usage(
                "name a workflow, or a run with --resume",
            )),
        }
    });
    // A thread that still waits for a person must not hold up the end.
    runtime.shutdown_background();
    display.finish()?;
    let outcome = ended?;
    tell(&outcome, place);
    Ok(exit_of(&outcome))
}

fn exit_of(outcome: &Outcome) -> Exit {
    match outcome.exit_code {
        0 => Exit::Done,
        code => Exit::Code(code),
    }
}

/// Reads a workflow and says all that is wrong with it; `None` when it cannot run.
fn checked(name: &str, places: &Places, args: &Run) -> Result<Option<Workflow>> {
    let file = places.find(name).map_err(|error| {
        CommandError::new(Exit::Data, error)
            .hint("`quipu run --list` shows the workflows that there are")
    })?;
    let checked = Checked::load(&file, places, args.stub.is_some());
    for one in &checked.found {
        say(one.to_string().trim_end());
    }
    let errors = checked.errors() as u64;
    let Some(workflow) = checked.workflow.as_ref().filter(|_| errors == 0) else {
        // What is wrong with a file that cannot be understood is said above, all of it.
        if checked.workflow.is_some() {
            say(&format!(
                "{} in {}",
                crate::terminal::count(errors, "error"),
                file.display()
            ));
        }
        return Ok(None);
    };
    if args.validate {
        let steps = workflow.steps.len() as u64;
        say(&format!(
            "{} is a workflow with {}",
            file.display(),
            crate::terminal::count(steps, "step")
        ));
    }
    Ok(checked.workflow)
}

/// The inputs of the command line, as texts.
fn inputs(given: &[String]) -> Result<IndexMap<String, String>> {
    let mut inputs = IndexMap::new();
    for given in given {
        let Some((name, value)) = given.split_once('=') else {
            return Err(CommandError::usage(format!("{given:?} is not NAME=VALUE")));
        };
        let value = match value.strip_prefix('@') {
            Some(file) => {
                std::fs::read_to_string(file).map_err(io_error(format!("cannot read {file}")))?
            }
            None => value.to_owned(),
        };
        inputs.insert(name.to_owned(), value);
    }
    Ok(inputs)
}

/// The inputs that a workflow gets, or all that is wrong with them.
fn resolved(
    workflow: &Workflow,
    given: &IndexMap<String, String>,
) -> Result<IndexMap<String, Value>> {
    let mut given = given.clone();
    person::ask_missing(workflow, &mut given);
    resolve(workflow, &given).map_err(|errors| {
        let lines = errors.iter().map(ToString::to_string);
        CommandError::usage("the inputs do not fit the workflow").details(lines)
    })
}

fn options(
    args: &Run,
    place: &locate::HomePlace,
    places: Places,
    root: &Path,
    storage_root: &Path,
    display: &Arc<Display>,
) -> Result<EngineOptions> {
    let home = place.home()?;
    let config = Config::load(&home)?;
    let stub = args
        .stub
        .as_ref()
        .map(|from| replies::stub(from.as_deref(), place))
        .transpose()?;
    let launch = Launch {
        home: storage_root,
        root,
        places,
        prices: Arc::new(config.prices()),
        stub,
        budget: args.budget_usd.map(|usd| Budget {
            usd,
            enforce: !args.audit_budget,
        }),
        masker: emit::masker(args.mask, place)?,
        user: system_user(),
    };
    let mut options = launch.options();
    options.go_on_unrecorded = args.unrecorded;
    options.observer = Arc::clone(display) as _;
    options.person = Terminal::if_there(args, display);
    Ok(options)
}

async fn resume(
    args: &Run,
    options: EngineOptions,
    id: &str,
    inputs: IndexMap<String, String>,
    workflow: Option<Arc<Workflow>>,
    cancel: &CancellationToken,
) -> Result<Outcome> {
    let run_id = run_named(&options.storage, id)?;
    let verdict = match (&args.approve, &args.deny) {
        (Some(token), _) => Some(Verdict {
            token: token.clone(),
            consents: true,
        }),
        (None, Some(token)) => Some(Verdict {
            token: token.clone(),
            consents: false,
        }),
        (None, None) => None,
    };
    let how = ResumeOptions {
        from: args.from.clone(),
        verdict,
        inputs,
        root: args.root.is_some().then(|| options.root.clone()),
        workflow,
    };
    Engine::new(options)
        .resume(&run_id, how, cancel)
        .await
        .map_err(failed)
}

/// The run that an id, the beginning of one, or `last` names.
fn run_named(storage: &Storage, id: &str) -> Result<RunId> {
    let path = match id {
        "last" => look::last_run(storage)?,
        id => storage
            .find_by_prefix(id)
            .map_err(|error| CommandError::new(Exit::Data, error))?,
    };
    let stem = path
        .file_stem()
        .and_then(|stem| stem.to_str())
        .unwrap_or_default();
    RunId::new(stem).map_err(|error| CommandError::new(Exit::Data, error))
}

fn failed(error: EngineError) -> CommandError {
    match &error {
        EngineError::Resume(_) | EngineError::Taken(_) => CommandError::new(Exit::Data, error),
        EngineError::Running(_) => {
            CommandError::new(Exit::Data, error).hint("`quipu tail -f ID` follows it")
        }
        EngineError::Recording(_) | EngineError::Storing(_) => {
            CommandError::new(Exit::Environment, error)
                .hint("nothing runs that cannot be recorded; --unrecorded goes on without a record")
        }
        EngineError::Audit { .. } => CommandError::new(Exit::Environment, error)
            .hint("QUIPU_AUDIT_LOG=off writes no audit file"),
        EngineError::Environment(_) => CommandError::new(Exit::Environment, error),
    }
}

/// Cancels the run at the first request to end, and kills everything at the second.
async fn interrupted(cancel: CancellationToken) {
    use tokio::signal::unix::{SignalKind, signal};
    let kinds = [
        SignalKind::interrupt(),
        SignalKind::terminate(),
        SignalKind::hangup(),
    ];
    let mut signals = Vec::new();
    for kind in kinds {
        match signal(kind) {
            Ok(signal) => signals.push(signal),
            Err(_) => return,
        }
    }
    let [interrupt, terminate, hangup] = signals.as_mut_slice() else {
        return;
    };
    loop {
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
            _ = hangup.recv() => {}
        }
        if cancel.is_cancelled() {
            say("killed; `quipu run --resume last` goes on");
            ProcessTree::kill_all_below(std::process::id());
            #[expect(
                clippy::exit,
                reason = "the user asked twice; nothing is left to wait for"
            )]
            std::process::exit(130);
        }
        say("cancelling; once more to kill");
        cancel.cancel();
    }
}

/// Says how the run ended, and what can be done next.
fn tell(outcome: &Outcome, place: &locate::HomePlace) {
    let id = outcome.run_id.as_str();
    let flag = place.flag();
    match outcome.status {
        RunStatus::Paused => {
            if let Some(pause) = &outcome.pause {
                say(&format!(
                    "{} waits for an approval: {}",
                    pause.path,
                    crate::terminal::clean(&pause.message)
                ));
                if let Some(refused) = &pause.refused {
                    say(&format!(
                        "not approved: {}",
                        crate::terminal::clean(refused)
                    ));
                }
                if !pause.approvers.is_empty() {
                    say(&format!("may approve: {}", pause.approvers.join(", ")));
                }
                say(&format!(
                    "hint: `quipu {flag}run --resume {id} --approve {}`, or --deny",
                    pause.token
                ));
            }
        }
        RunStatus::Failed | RunStatus::Cancelled => {
            say(&format!(
                "hint: `quipu {flag}show {id}` shows what happened, `quipu {flag}run --resume {id}` goes on"
            ));
        }
        RunStatus::Succeeded => {}
    }
}
