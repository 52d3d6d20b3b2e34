//! From a request to a run: where it may run, what it is given, and whether it began.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use indexmap::IndexMap;
use quipu_flow::agent::Stub;
use quipu_flow::definition::inputs::resolve;
use quipu_flow::definition::places::Places;
use quipu_flow::definition::{Budget, Workflow};
use quipu_flow::engine::{
    Cancelling, Engine, EngineError, EngineOptions, Observer, Person, ResumeOptions, Secrets,
    Survey, Verdict, new_run_id,
};
use quipu_flow::launch::{Checked, Launch, audit_file};
use quipu_model::{RunId, hex};
use quipu_record::{RecorderOptions, Storage};
use serde_json::Value;
use sha2::{Digest as _, Sha256};

use super::body::{self, InputsBody, StartBody, StubBody};
use super::others::Standing;
use super::runs::{About, End, Run, Runs, with_source};
use super::{others, workflows};
use crate::App;
use crate::problem::Problem;
use quipu_api::execution::ExecutionStatus;

/// Does work that reads files, off the threads that serve sockets.
pub(super) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, Problem> + Send + 'static,
) -> Result<T, Problem> {
    let done = tokio::task::spawn_blocking(work).await;
    done.map_err(|_| Problem::internal())?
}

/// The id that somebody names.
pub(super) fn id_of(id: &str) -> Result<RunId, Problem> {
    RunId::new(id).map_err(|error| Problem::bad_parameter("id", error))
}

/// The directory that a caller names, if it is beneath the work directory. Links are followed before that is decided.
pub(super) fn beneath(work: &Path, named: Option<&str>) -> Result<PathBuf, Problem> {
    let cannot = |error: std::io::Error| {
        Problem::store(format!("the work directory {}: {error}", work.display()))
    };
    let work = std::fs::canonicalize(work).map_err(cannot)?;
    let Some(named) = named else {
        return Ok(work);
    };
    // The same answer for what is elsewhere and for what is not there: a caller does not learn what is elsewhere.
    let wrong = || {
        Problem::bad_parameter(
            "root",
            "not a directory beneath the server's work directory",
        )
        .hint(format!("the work directory is {}", work.display()))
    };
    if named.contains('\0') || named.len() > 4096 {
        return Err(wrong());
    }
    let found = std::fs::canonicalize(work.join(named)).map_err(|_| wrong())?;
    if found.starts_with(&work) && found.is_dir() {
        return Ok(found);
    }
    Err(wrong())
}

/// A workflow that may run, and what it is given.
struct Ready {
    workflow: Workflow,
    root: PathBuf,
    places: Places,
    texts: IndexMap<String, String>,
}

fn ready(
    work: &Path,
    named: &str,
    root: Option<&str>,
    inputs: &InputsBody,
    simulated: bool,
) -> Result<Ready, Problem> {
    let root = beneath(work, root)?;
    let places = Places::from_env(&root);
    let file = workflows::find(&places, named)?;
    let workflow = checked(&file, &places, simulated)?;
    let texts = body::texts(&workflow, inputs)?;
    Ok(Ready {
        workflow,
        root,
        places,
        texts,
    })
}

/// A workflow without errors.
fn checked(file: &Path, places: &Places, simulated: bool) -> Result<Workflow, Problem> {
    let checked = Checked::load(file, places, simulated);
    let errors = checked.errors();
    if let (Some(workflow), 0) = (checked.workflow, errors) {
        return Ok(workflow);
    }
    let found: Vec<String> = checked.found.iter().map(ToString::to_string).collect();
    Err(Problem::new(
        http::StatusCode::UNPROCESSABLE_ENTITY,
        "workflow_invalid",
        "The workflow cannot run",
    )
    .detail(found.join("\n"))
    .hint("POST /api/v1/workflows/validate lists what is wrong with it"))
}

/// The id of a run that is started with an `Idempotency-Key`: one half from who asks and the key, one from the body. So a retry finds
/// the run again, also after the server was restarted.
fn id_for(user: &str, key: &str, body: &[u8]) -> Result<RunId, Problem> {
    let who = Sha256::digest(format!("{user}\0{key}").as_bytes());
    let what = Sha256::digest(body);
    let mut bytes = [0_u8; 16];
    bytes[..8].copy_from_slice(&who[..8]);
    bytes[8..].copy_from_slice(&what[..8]);
    // A UUID of version 8: its bits are its maker's.
    bytes[6] = (bytes[6] & 0x0f) | 0x80;
    bytes[8] = (bytes[8] & 0x3f) | 0x80;
    let hex = hex::encode(&bytes);
    let parts = [
        &hex[..8],
        &hex[8..12],
        &hex[12..16],
        &hex[16..20],
        &hex[20..],
    ];
    RunId::new(&parts.join("-")).map_err(|_| Problem::internal())
}

/// The half of such an id that is from who asks and the key.
const HALF: usize = "01234567-0123-0123".len();

/// A run that was started with the same key, whatever its body was.
fn twin(app: &App, id: &RunId) -> Option<RunId> {
    let half = &id.as_str()[..HALF];
    let here = app.control().runs.beginning(half);
    here.or_else(|| {
        let files = std::fs::read_dir(app.home().join("transcripts")).ok()?;
        files.flatten().find_map(|file| {
            let name = file.file_name();
            let id = name.to_str()?.strip_suffix(".jsonl")?;
            id.starts_with(half).then(|| RunId::new(id).ok())?
        })
    })
}

fn other_body(id: &RunId) -> Problem {
    Problem::conflict(format!(
        "this Idempotency-Key started {id} with another body"
    ))
    .hint("use a new key for a new run")
}

/// Starts a run, and answers when its beginning is recorded.
///
/// # Errors
///
/// When it may not run, or did not begin.
pub(super) async fn start(
    app: &App,
    user: String,
    key: Option<&str>,
    body: StartBody,
    bytes: &[u8],
) -> Result<RunId, Problem> {
    let id = match key {
        None => new_run_id().map_err(|error| refused(&error))?,
        Some(key) => {
            let id = id_for(&user, key, bytes)?;
            match twin(app, &id) {
                None => id,
                Some(same) if same == id => {
                    if let Some(run) = app.control().runs.get(&id) {
                        run.begun().await;
                    }
                    return Ok(id);
                }
                Some(other) => return Err(other_body(&other)),
            }
        }
    };
    let budget = body::budget(body.budget_usd)?;
    let stub = body
        .stub
        .as_ref()
        .map(StubBody::stub)
        .transpose()?
        .flatten();
    let (work, simulated) = (app.options().work_directory.clone(), stub.is_some());
    let (named, root, inputs) = (body.workflow, body.root, body.inputs);
    let ready = blocking(move || ready(&work, &named, root.as_deref(), &inputs, simulated)).await?;
    let inputs = resolve(&ready.workflow, &ready.texts).map_err(|errors| {
        let lines: Vec<String> = errors.iter().map(ToString::to_string).collect();
        Problem::bad_parameter("inputs", lines.join("; "))
    })?;
    let secrets = Secrets::of(&inputs);
    let shown = |(name, value): (&String, &Value)| {
        let text = value
            .as_str()
            .map_or_else(|| value.to_string(), str::to_owned);
        (name.clone(), secrets.shown(name, &text))
    };
    let about = About {
        workflow: ready.workflow.name.clone(),
        file: ready.workflow.file.clone(),
        root: ready.root.clone(),
        inputs: inputs.iter().map(shown).collect(),
        secrets: secrets.clone(),
        starter: user.clone(),
        started_at: app.clock().now(),
        spent: (quipu_model::Money::ZERO, 0),
        stub: body.stub,
    };
    let permit = app.control().runs.permit()?;
    let run = new_run(app, id, about);
    let half = key.map(|_| &run.id.as_str()[..HALF]);
    if let Err(there) = app.control().runs.put(&run, half) {
        // Another request with the same key came in this moment.
        there.begun().await;
        if there.id != run.id {
            return Err(other_body(&there.id));
        }
        return Ok(there.id.clone());
    }
    let options = options(app, &run, ready.places, &ready.root, stub, budget, user);
    let (id, cancel) = (run.id.clone(), run.cancel.clone());
    let workflow = Arc::new(ready.workflow);
    let work = async move {
        let engine = Engine::new(options);
        engine.run_as(id, workflow, inputs, &cancel).await
    };
    Runs::spawn(app.clone(), Arc::clone(&run), permit, work);
    begin(app, &run, None).await?;
    Ok(run.id.clone())
}

fn new_run(app: &App, id: RunId, about: About) -> Arc<Run> {
    let transcript = Storage::at(app.home()).path_of(&id);
    let cancel = app.ending().child_token();
    Run::new(id, about, transcript, Arc::clone(app.clock()), cancel)
}

fn options(
    app: &App,
    run: &Arc<Run>,
    places: Places,
    root: &Path,
    stub: Option<Stub>,
    budget: Option<Budget>,
    user: String,
) -> EngineOptions {
    let launch = Launch {
        home: app.home(),
        root,
        places,
        prices: Arc::clone(app.prices()),
        stub,
        budget,
        masker: Some(app.control().masker()),
        user,
    };
    let mut options = launch.options();
    options.observer = Arc::clone(run) as Arc<dyn Observer>;
    options.person = Some(Arc::clone(run) as Arc<dyn Person>);
    options
}

/// Waits until a run has begun. One that did not is taken out again.
async fn begin(app: &App, run: &Arc<Run>, before: Option<Arc<Run>>) -> Result<(), Problem> {
    run.begun().await;
    let why = run.look(|state| match &state.end {
        Some(End::Refused(error)) => Some(refused(error)),
        _ => None,
    });
    match why {
        None => Ok(()),
        Some(why) => {
            app.control().runs.take_back(run, before);
            Err(why)
        }
    }
}

fn refused(error: &EngineError) -> Problem {
    match error {
        EngineError::Resume(why) if why.contains("was masked") => {
            Problem::conflict(why).hint("send it again in `inputs`")
        }
        EngineError::Resume(_)
        | EngineError::Running(_)
        | EngineError::Taken(_)
        | EngineError::Environment(_) => Problem::conflict(error),
        EngineError::Recording(_) | EngineError::Storing(_) | EngineError::Audit { .. } => {
            Problem::store(with_source(error))
        }
    }
}

/// How a run is to go on.
#[derive(Default)]
pub(super) struct Resume {
    pub(super) from: Option<String>,
    pub(super) inputs: InputsBody,
    pub(super) verdict: Option<Verdict>,
    pub(super) stub: Option<StubBody>,
    pub(super) budget_usd: Option<f64>,
}

/// What the transcript of a run says.
///
/// # Errors
///
/// When there is no such run.
pub(super) async fn survey(app: &App, id: &RunId) -> Result<Survey, Problem> {
    blocking(reading(app, id)).await
}

/// The same, and how the run is.
///
/// # Errors
///
/// When there is no such run.
pub(super) async fn surveyed(app: &App, id: &RunId) -> Result<(Survey, Standing), Problem> {
    let read = reading(app, id);
    let path = Storage::at(app.home()).path_of(id);
    blocking(move || {
        let survey = read()?;
        let standing = others::standing(&path, survey.end.as_ref());
        if standing.status != ExecutionStatus::Lost {
            return Ok((survey, standing));
        }
        // It may have ended between the two looks.
        let survey = read()?;
        let standing = others::standing(&path, survey.end.as_ref());
        Ok((survey, standing))
    })
    .await
}

fn reading(app: &App, id: &RunId) -> impl Fn() -> Result<Survey, Problem> + Send + use<> {
    let (home, prices, id) = (app.home().to_owned(), Arc::clone(app.prices()), id.clone());
    move || {
        let storage = Storage::at(&home);
        let missing = || {
            Problem::not_found(format!("there is no run {id}"))
                .hint("GET /api/v1/executions lists runs")
        };
        if !storage.path_of(&id).is_file() {
            return Err(missing());
        }
        let survey = Survey::of(&storage, &id, &prices);
        survey.map_err(Problem::store)?.ok_or_else(missing)
    }
}

/// Records that a run which no process runs is cancelled. Nothing of it runs again.
///
/// # Errors
///
/// When somebody runs it now, or its end cannot be recorded.
pub(super) async fn record_cancelled(app: &App, user: String, id: &RunId) -> Result<(), Problem> {
    let (home, masker, run) = (app.home().to_owned(), app.control().masker(), id.clone());
    let cancelled = blocking(move || {
        let cancelling = Cancelling {
            home: &home,
            audit: audit_file(&home),
            recorder: RecorderOptions {
                masker: Some(masker),
                ..RecorderOptions::default()
            },
            user: &user,
        };
        cancelling.record(&run).map_err(|error| refused(&error))
    });
    cancelled.await?;
    // What is known here is not how it is any more.
    app.control().runs.forget(id);
    app.freshness().bump();
    Ok(())
}

/// Goes on with a run, and answers when that is recorded.
///
/// # Errors
///
/// When it runs, or cannot go on, or not here.
pub(super) async fn resume(
    app: &App,
    user: String,
    id: &RunId,
    how: Resume,
) -> Result<Arc<Run>, Problem> {
    let known = app.control().runs.get(id);
    if known.as_ref().is_some_and(|run| !run.has_ended()) {
        return Err(Problem::conflict(format!("{id} is running")));
    }
    let survey = survey(app, id).await?;
    let budget = body::budget(how.budget_usd)?;
    let remembered = known.as_ref().and_then(|run| run.about.stub.clone());
    let stub_body = how.stub.or(remembered);
    let stub = stub_body
        .as_ref()
        .map(StubBody::stub)
        .transpose()?
        .flatten();
    let (work, simulated) = (app.options().work_directory.clone(), stub.is_some());
    let transcript = Storage::at(app.home()).path_of(id);
    let (survey, ready) = blocking(move || {
        let ready = ready_again(&work, &survey, &transcript, &how.inputs, simulated)?;
        Ok((survey, ready))
    })
    .await?;
    let mut all: IndexMap<String, Value> = survey.inputs.into_iter().collect();
    let given = ready.texts.iter();
    all.extend(given.map(|(name, text)| (name.clone(), text.clone().into())));
    let secrets = Secrets::of(&all);
    let shown = |(name, value): (&String, &Value)| {
        let text = value
            .as_str()
            .map_or_else(|| value.to_string(), str::to_owned);
        (name.clone(), secrets.shown(name, &text))
    };
    let about = About {
        workflow: ready.workflow.name.clone(),
        file: ready.workflow.file.clone(),
        root: ready.root.clone(),
        inputs: all.iter().map(shown).collect(),
        secrets: secrets.clone(),
        starter: survey.starter,
        started_at: survey.started_at,
        spent: (survey.dollars, survey.tokens),
        stub: stub_body,
    };
    let permit = app.control().runs.permit()?;
    let run = new_run(app, id.clone(), about);
    let before = app.control().runs.put(&run, None);
    let before = before.map_err(|_| Problem::conflict(format!("{id} is running")))?;
    let options = options(app, &run, ready.places, &ready.root, stub, budget, user);
    let resuming = ResumeOptions {
        from: how.from,
        verdict: how.verdict,
        inputs: ready.texts,
        root: Some(ready.root),
        workflow: Some(Arc::new(ready.workflow)),
    };
    let (id, cancel) = (run.id.clone(), run.cancel.clone());
    let work = async move { Engine::new(options).resume(&id, resuming, &cancel).await };
    Runs::spawn(app.clone(), Arc::clone(&run), permit, work);
    begin(app, &run, before).await?;
    Ok(run)
}

/// A run that may go on here: in the directory that it began in, with the workflow that it was.
fn ready_again(
    work: &Path,
    survey: &Survey,
    transcript: &Path,
    inputs: &InputsBody,
    simulated: bool,
) -> Result<Ready, Problem> {
    let id = &survey.run_id;
    let elsewhere = |why: String| {
        Problem::conflict(why).hint(format!("`quipu run --resume {id}` goes on with it"))
    };
    if let Some(caller) = &survey.parent {
        let why = format!("{id} was called by another run; resume {caller}");
        return Err(Problem::conflict(why));
    }
    let Some(file) = &survey.workflow_file else {
        let why = format!("{id} is not a run of a workflow, so it cannot be resumed");
        return Err(Problem::conflict(why));
    };
    let standing = others::standing(transcript, survey.end.as_ref());
    if standing.status == ExecutionStatus::Running {
        let who = standing
            .pid
            .map_or("another process".to_owned(), |pid| format!("process {pid}"));
        return Err(Problem::conflict(format!("{id} is running: {who} runs it")));
    }
    let dir = survey.dir.as_deref().and_then(Path::to_str);
    let root = dir.and_then(|dir| beneath(work, Some(dir)).ok());
    let root = root.ok_or_else(|| {
        elsewhere(format!(
            "{id} began in a directory that is not beneath the server's work directory"
        ))
    })?;
    let places = Places::from_env(&root);
    if !workflows::is_listed(&places, file) {
        let why = format!("the workflow of {id} is not one that can be run by its name any more");
        return Err(elsewhere(why));
    }
    let workflow = checked(file, &places, simulated)?;
    let texts = body::texts(&workflow, inputs)?;
    Ok(Ready {
        workflow,
        root,
        places,
        texts,
    })
}
