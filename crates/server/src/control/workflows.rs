//! The workflows that there are.

use std::path::{Path, PathBuf};

use axum::extract::State;
use axum::response::Response;
use http::{HeaderMap, Uri};
use quipu_api::execution::{
    WorkflowAbout, WorkflowChecked, WorkflowFinding, WorkflowInput, WorkflowRow, WorkflowStep,
};
use quipu_flow::definition::graph::{Format, render};
use quipu_flow::definition::load::parse;
use quipu_flow::definition::places::{Listed, Places};
use quipu_flow::definition::{Diagnostic, InputKind, Workflow};
use quipu_flow::engine::{Secrets, kind_of};
use quipu_flow::launch::Checked;
use serde::Deserialize;

use super::body::{JsonBody, ValidateBody, query};
use super::launch::{beneath, blocking};
use crate::App;
use crate::access::{MayRead, MayWrite};
use crate::answer::json;
use crate::api::Path as Named;
use crate::problem::Problem;

/// Workflows that can be run by their name: those that no other of the same name hides.
fn listed(places: &Places) -> impl Iterator<Item = Listed> {
    places.list().into_iter().filter(|one| !one.hidden)
}

/// The file of a workflow. Only a name finds it: paths of callers are not looked at.
pub(super) fn find(places: &Places, name: &str) -> Result<PathBuf, Problem> {
    let found = listed(places).find(|one| one.name == name);
    found.map(|one| one.path).ok_or_else(|| {
        let shown: String = name.chars().take(100).collect();
        Problem::not_found(format!("there is no workflow {shown:?}"))
            .parameter("workflow")
            .hint("GET /api/v1/workflows lists the workflows that there are")
    })
}

/// Whether a file is that of a workflow that can be run by its name.
pub(super) fn is_listed(places: &Places, file: &Path) -> bool {
    let Ok(file) = std::fs::canonicalize(file) else {
        return false;
    };
    listed(places).any(|one| std::fs::canonicalize(one.path).is_ok_and(|path| path == file))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct InRoot {
    root: Option<String>,
}

fn places(app: &App, root: Option<&str>) -> Result<Places, Problem> {
    let root = beneath(&app.options().work_directory, root)?;
    Ok(Places::from_env(&root))
}

/// The workflows that can be run by their name.
#[utoipa::path(
    get,
    path = "/api/v1/workflows",
    operation_id = "listWorkflows",
    tag = "runs",
    params(("root" = Option<String>, Query, description = "A directory beneath the server's work directory")),
    responses((status = 200, body = Vec<WorkflowRow>), (status = 400, body = Problem))
)]
pub(crate) async fn list(
    State(app): State<App>,
    _: MayRead,
    uri: Uri,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let InRoot { root } = query(&uri)?;
    let rows: Vec<WorkflowRow> = blocking(move || {
        let places = places(&app, root.as_deref())?;
        let row = |one: Listed| WorkflowRow {
            name: one.name,
            path: one.path.display().to_string(),
        };
        Ok(listed(&places).map(row).collect())
    })
    .await?;
    json(&rows, &headers)
}

/// A workflow: its inputs, its steps and the ways between them.
#[utoipa::path(
    get,
    path = "/api/v1/workflows/{name}",
    operation_id = "getWorkflow",
    tag = "runs",
    params(
        ("name" = String, Path, description = "Its name; `pack%2Fname` for one of a pack"),
        ("root" = Option<String>, Query, description = "A directory beneath the server's work directory")
    ),
    responses((status = 200, body = WorkflowAbout), (status = 404, body = Problem), (status = 422, body = Problem))
)]
pub(crate) async fn one(
    State(app): State<App>,
    _: MayRead,
    Named(name): Named<String>,
    uri: Uri,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let InRoot { root } = query(&uri)?;
    let about = blocking(move || {
        let places = places(&app, root.as_deref())?;
        let file = find(&places, &name)?;
        let checked = Checked::load(&file, &places, true);
        let found = findings(&checked.found);
        if let Some(workflow) = checked.workflow {
            return Ok(about(name, &workflow, found));
        }
        let lines: Vec<String> = checked.found.iter().map(ToString::to_string).collect();
        Err(Problem::new(
            http::StatusCode::UNPROCESSABLE_ENTITY,
            "workflow_invalid",
            "The workflow cannot be read",
        )
        .detail(lines.join("\n")))
    })
    .await?;
    json(&about, &headers)
}

/// Says what is wrong with a workflow: one that can be named, or a text.
#[utoipa::path(
    post,
    path = "/api/v1/workflows/validate",
    operation_id = "validateWorkflow",
    tag = "runs",
    request_body = ValidateBody,
    responses((status = 200, body = WorkflowChecked), (status = 400, body = Problem), (status = 404, body = Problem))
)]
pub(crate) async fn validate(
    State(app): State<App>,
    _: MayWrite,
    headers: HeaderMap,
    JsonBody(body, _): JsonBody<ValidateBody>,
) -> Result<Response, Problem> {
    let checked = blocking(move || {
        let places = places(&app, body.root.as_deref())?;
        let checked = match (body.workflow, body.text) {
            (Some(name), None) => {
                let file = find(&places, &name)?;
                Checked::load(&file, &places, body.stub)
            }
            (None, Some(text)) => {
                let file = places.cwd.join("workflow.yaml");
                Checked::of(parse(&text, &file, &places), &places, body.stub)
            }
            _ => return Err(Problem::bad_request("give either `workflow` or `text`")),
        };
        Ok(WorkflowChecked {
            valid: checked.workflow.is_some() && checked.errors() == 0,
            findings: findings(&checked.found),
        })
    })
    .await?;
    json(&checked, &headers)
}

fn findings(found: &[Diagnostic]) -> Vec<WorkflowFinding> {
    let finding = |one: &Diagnostic| {
        let is_placed = one.at.line > 0;
        WorkflowFinding {
            severity: one.severity.to_string(),
            code: one.code.to_owned(),
            line: is_placed.then_some(one.at.line.into()),
            column: is_placed.then_some(one.at.column.into()),
            message: one.message.clone(),
            hint: one.hint.clone(),
        }
    };
    found.iter().map(finding).collect()
}

fn about(name: String, workflow: &Workflow, findings: Vec<WorkflowFinding>) -> WorkflowAbout {
    let nothing = Secrets::default();
    let inputs = workflow.inputs.iter().map(|input| {
        let default = input.default.as_ref().map(|value| {
            let text = value
                .as_str()
                .map_or_else(|| value.to_string(), str::to_owned);
            nothing.shown(&input.name, &text)
        });
        WorkflowInput {
            name: input.name.clone(),
            kind: match input.kind {
                InputKind::String => "string",
                InputKind::Integer => "integer",
                InputKind::Boolean => "boolean",
            }
            .to_owned(),
            description: input.description.clone(),
            required: input.required,
            default,
            secret: Secrets::is_secret(&input.name),
        }
    });
    let steps = workflow.steps.values().map(|step| WorkflowStep {
        name: step.name.clone(),
        kind: kind_of(&step.action).as_str().to_owned(),
        description: step.description.clone(),
    });
    WorkflowAbout {
        name,
        path: workflow.file.display().to_string(),
        version: workflow.version.clone(),
        description: workflow.description.clone(),
        inputs: inputs.collect(),
        steps: steps.collect(),
        initial: workflow.initial.text.clone(),
        graph: render(workflow, Format::Text),
        mermaid: render(workflow, Format::Mermaid),
        findings,
    }
}
