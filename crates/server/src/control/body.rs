//! What callers send: bodies, queries, and the limits on both.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use axum::extract::{FromRequest, Request};
use bytes::Bytes;
use http::header::CONTENT_TYPE;
use http::{StatusCode, Uri};
use http_body_util::{BodyExt as _, LengthLimitError, Limited};
use indexmap::IndexMap;
use quipu_flow::agent::{Script, Stub};
use quipu_flow::definition::Workflow;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use utoipa::ToSchema;

use crate::App;
use crate::problem::Problem;

/// The largest body.
pub(super) const MOST_BYTES: usize = 1 << 20;

/// The most inputs that are looked at.
const MOST_INPUTS: usize = 256;

/// A JSON body of at most 1 MiB, and its bytes. An empty one is `{}`.
pub(crate) struct JsonBody<T>(pub(super) T, pub(super) Bytes);

impl<T: DeserializeOwned> FromRequest<App> for JsonBody<T> {
    type Rejection = Problem;

    async fn from_request(request: Request, app: &App) -> Result<Self, Problem> {
        let (head, body) = request.into_parts();
        let kind = head.headers.get(CONTENT_TYPE);
        let is_json = kind
            .and_then(|kind| kind.to_str().ok())
            .is_some_and(|kind| {
                let kind = kind.split(';').next().unwrap_or_default();
                kind.trim().eq_ignore_ascii_case("application/json")
            });
        let read = Limited::new(body, MOST_BYTES).collect();
        let read = tokio::time::timeout(app.options().body_timeout, read).await;
        let slow = || {
            Problem::new(StatusCode::REQUEST_TIMEOUT, "slow", "Too slow")
                .detail("the body did not arrive in time")
        };
        let bytes = match read.map_err(|_| slow())? {
            Ok(body) => body.to_bytes(),
            Err(error) if error.is::<LengthLimitError>() => {
                return Err(Problem::too_large(MOST_BYTES as u64));
            }
            Err(_) => return Err(Problem::bad_request("the body was cut off")),
        };
        let text: &[u8] = match bytes.trim_ascii() {
            b"" => b"{}",
            _ if !is_json => {
                return Err(Problem::new(
                    StatusCode::UNSUPPORTED_MEDIA_TYPE,
                    "not_json",
                    "The body is not JSON",
                )
                .detail("send the header Content-Type: application/json"));
            }
            text => text,
        };
        let body = serde_json::from_slice(text).map_err(|error| {
            Problem::bad_request(format!("the body: {error}"))
                .hint("unknown fields are rejected; docs/run-control.md lists those that there are")
        })?;
        Ok(Self(body, bytes))
    }
}

/// The query of an address.
///
/// # Errors
///
/// When it has a parameter that is not known, or wrong.
pub(super) fn query<T: DeserializeOwned>(uri: &Uri) -> Result<T, Problem> {
    axum::extract::Query::try_from_uri(uri)
        .map(|axum::extract::Query(query)| query)
        .map_err(|error| {
            use std::error::Error as _;
            let why = error
                .source()
                .map_or(error.to_string(), ToString::to_string);
            Problem::bad_request(format!("the query: {why}"))
        })
}

/// Replies of agents that nobody asks: `true`, or a list of replies as `quipu run --stub FILE` reads it.
#[derive(Clone, Deserialize, ToSchema)]
#[serde(untagged)]
pub(crate) enum StubBody {
    /// Whether agents are not asked and answer with a fixed text.
    Fixed(bool),
    /// The replies, each given once, in order.
    Replies(Vec<Value>),
}

impl StubBody {
    /// The replies.
    ///
    /// # Errors
    ///
    /// When a reply cannot be read.
    pub(super) fn stub(&self) -> Result<Option<Stub>, Problem> {
        match self {
            Self::Fixed(false) => Ok(None),
            Self::Fixed(true) => Ok(Some(Stub::Fixed)),
            Self::Replies(replies) => {
                let lines: Vec<String> = replies.iter().map(Value::to_string).collect();
                let script = Script::parse(Path::new("stub.jsonl"), &lines.join("\n"));
                let script = script.map_err(|error| Problem::bad_parameter("stub", error))?;
                Ok(Some(Stub::Script(Arc::new(script))))
            }
        }
    }
}

/// Inputs by name: texts, numbers, true or false. Not shown in `Debug`: they may be secrets.
pub(super) type InputsBody = BTreeMap<String, Value>;

/// A run to start.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct StartBody {
    /// The name of the workflow, as `GET /api/v1/workflows` lists it.
    pub(super) workflow: String,
    /// Its inputs: texts, numbers, true or false. Only those that the workflow declares.
    #[serde(default)]
    pub(super) inputs: BTreeMap<String, Value>,
    /// Replies of agents that are not asked.
    pub(super) stub: Option<StubBody>,
    /// What the run may cost, in place of what its workflow says.
    pub(super) budget_usd: Option<f64>,
    /// The directory in which steps begin, beneath the server's work directory.
    pub(super) root: Option<String>,
}

/// How a run is resumed.
#[derive(Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ResumeBody {
    /// The step to run again from.
    pub(super) from: Option<String>,
    /// Inputs that are masked in the transcript, or are to be changed.
    #[serde(default)]
    pub(super) inputs: BTreeMap<String, Value>,
    /// The token of the approval that it waits for.
    pub(super) approve: Option<String>,
    /// Replies of agents that are not asked; those of its start, while this server remembers them, unless it is given.
    pub(super) stub: Option<StubBody>,
    /// What the run may cost in all.
    pub(super) budget_usd: Option<f64>,
}

/// An answer to an approval.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct TokenBody {
    /// The token that the paused run shows.
    pub(super) token: String,
    /// Inputs that are masked in the transcript.
    #[serde(default)]
    pub(super) inputs: BTreeMap<String, Value>,
}

/// An answer to a question.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct AnswerBody {
    /// What to say. Nothing, `exit` or `quit` ends the conversation.
    pub(super) text: String,
    /// The step that asks, where several do.
    pub(super) step: Option<String>,
}

/// Nothing to say.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct EmptyBody {}

/// A workflow to look at: its name or its text.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ValidateBody {
    /// The name of a workflow.
    pub(super) workflow: Option<String>,
    /// The text of a workflow file.
    pub(super) text: Option<String>,
    /// Whether agents need not be installed.
    #[serde(default)]
    pub(super) stub: bool,
    /// The directory in which it would run, beneath the server's work directory.
    pub(super) root: Option<String>,
}

/// Inputs as texts. Only those that the workflow declares: they become variables of commands.
///
/// # Errors
///
/// When one is not declared, or has another type.
pub(super) fn texts(
    workflow: &Workflow,
    given: &InputsBody,
) -> Result<IndexMap<String, String>, Problem> {
    if given.len() > MOST_INPUTS {
        return Err(Problem::bad_parameter(
            "inputs",
            format!("at most {MOST_INPUTS}"),
        ));
    }
    let mut texts = IndexMap::new();
    for (name, value) in given {
        if !workflow.inputs.iter().any(|input| input.name == *name) {
            let shown: String = name.chars().take(100).collect();
            let known: Vec<&str> = workflow.inputs.iter().map(|input| &*input.name).collect();
            let known = match known.as_slice() {
                [] => "the workflow has no inputs".to_owned(),
                known => format!("its inputs are: {}", known.join(", ")),
            };
            let why = format!("the workflow does not declare {shown:?}");
            return Err(Problem::bad_parameter("inputs", why).hint(known));
        }
        let text = match value {
            Value::String(text) => text.clone(),
            Value::Number(number) => number.to_string(),
            Value::Bool(is) => is.to_string(),
            Value::Null | Value::Array(_) | Value::Object(_) => {
                let why = "give a text, a number, true or false";
                return Err(Problem::bad_parameter(format!("inputs.{name}"), why));
            }
        };
        if text.contains('\0') {
            let why = "it may not contain NUL";
            return Err(Problem::bad_parameter(format!("inputs.{name}"), why));
        }
        texts.insert(name.clone(), text);
    }
    Ok(texts)
}

/// What a run may cost.
///
/// # Errors
///
/// When it is not a sum.
pub(super) fn budget(usd: Option<f64>) -> Result<Option<quipu_flow::definition::Budget>, Problem> {
    match usd {
        None => Ok(None),
        Some(usd) if usd.is_finite() && usd > 0.0 => {
            let enforce = true;
            Ok(Some(quipu_flow::definition::Budget { usd, enforce }))
        }
        Some(_) => Err(Problem::bad_parameter(
            "budget_usd",
            "give dollars, more than 0",
        )),
    }
}
