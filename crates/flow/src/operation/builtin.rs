//! Quipu's own operations.

use std::ffi::OsString;

use serde_json::{Map, Value};
use tokio_util::sync::CancellationToken;

use super::inputs::{Inputs, like, needed, optional};
use super::{
    InputSpec, InputType as T, OperationContext, OperationError, OperationOutput, Operations,
};
use super::{files, github, json, web};

/// Quipu's own operations.
#[derive(Debug, Clone, Default)]
pub struct Builtin {
    /// Where programs such as `gh` are looked for; the `PATH` of this process unless it is given.
    pub path: Option<OsString>,
}

/// What an operation gives back, or why it failed.
pub(super) type Done = Result<Map<String, Value>, OperationError>;

const OPERATIONS: &[(&str, &[InputSpec])] = &[
    (
        "file.append",
        &[needed("path", T::Text), needed("content", T::Text)],
    ),
    (
        "file.copy",
        &[needed("from", T::Text), needed("to", T::Text)],
    ),
    (
        "file.delete",
        &[needed("path", T::Text), optional("missing_ok", T::Boolean)],
    ),
    ("file.exists", &[needed("path", T::Text)]),
    ("file.read", &[needed("path", T::Text)]),
    (
        "file.write",
        &[needed("path", T::Text), needed("content", T::Text)],
    ),
    (
        "github.add_comment",
        &[needed("number", T::Integer), needed("body", T::Text), REPO],
    ),
    (
        "github.add_labels",
        &[
            needed("number", T::Integer),
            needed("labels", T::List),
            REPO,
        ],
    ),
    (
        "github.batch",
        &[
            needed("operations", T::List),
            optional("strategy", T::Text),
            optional("max_concurrent", T::Integer),
        ],
    ),
    (
        "github.create_issue",
        &[
            needed("title", T::Text),
            optional("body", T::Text),
            optional("labels", T::List),
            optional("assignees", T::List),
            REPO,
        ],
    ),
    (
        "github.create_pr",
        &[
            needed("title", T::Text),
            optional("body", T::Text),
            optional("head", T::Text),
            optional("base", T::Text),
            optional("draft", T::Boolean),
            optional("labels", T::List),
            REPO,
        ],
    ),
    ("github.get_issue", &[needed("number", T::Integer), REPO]),
    ("github.get_pr", &[needed("number", T::Integer), REPO]),
    (
        "github.list_comments",
        &[
            needed("number", T::Integer),
            optional("limit", T::Integer),
            REPO,
        ],
    ),
    (
        "http.request",
        &[
            needed("url", T::Text),
            optional("method", T::Text),
            optional("headers", T::Object),
            optional("body", T::Any),
            optional("timeout", T::Duration),
            optional("retryable_status_codes", T::List),
        ],
    ),
    (
        "json.get",
        &[
            needed("value", T::Any),
            needed("path", T::Text),
            optional("default", T::Any),
        ],
    ),
    ("json.merge", &[needed("values", T::List)]),
    ("json.parse", &[needed("text", T::Text)]),
    (
        "json.set",
        &[
            needed("value", T::Any),
            needed("path", T::Text),
            needed("to", T::Any),
        ],
    ),
    (
        "notify.send",
        &[
            needed("backend", T::Text),
            needed("message", T::Text),
            optional("title", T::Text),
            optional("priority", T::Text),
            optional("webhook_url", T::Text),
        ],
    ),
];

const REPO: InputSpec = optional("repo", T::Text);

/// The names of Quipu's own operations, in alphabetical order.
pub fn names() -> Vec<&'static str> {
    OPERATIONS.iter().map(|it| it.0).collect()
}

/// What an operation of Quipu's own is given; `None` where there is none of that name.
pub fn inputs_of(name: &str) -> Option<&'static [InputSpec]> {
    let found = OPERATIONS.iter().find(|it| it.0 == name)?;
    Some(found.1)
}

impl Builtin {
    async fn done(
        &self,
        name: &str,
        inputs: &Map<String, Value>,
        context: &OperationContext,
        cancel: &CancellationToken,
    ) -> Done {
        let Some(specs) = inputs_of(name) else {
            let all = OPERATIONS.iter().map(|it| it.0);
            return Err(OperationError::Unknown {
                name: name.to_owned(),
                like: like(name, all).map(str::to_owned),
            });
        };
        let inputs = Inputs::check(name, specs, inputs)?;
        if cancel.is_cancelled() {
            return Err(OperationError::Cancelled);
        }
        let (group, operation) = name.split_once('.').unwrap_or((name, ""));
        match (group, operation) {
            ("file", operation) => files::run(operation, inputs, context).await,
            ("github", operation) => github::run(self, operation, inputs, context, cancel).await,
            ("http", _) => web::request(inputs, cancel).await,
            ("json", operation) => json::run(operation, inputs),
            _ => web::notify(self, inputs, context, cancel).await,
        }
    }
}

impl Operations for Builtin {
    fn names(&self) -> Vec<String> {
        names().into_iter().map(str::to_owned).collect()
    }

    fn run<'a>(
        &'a self,
        name: &'a str,
        inputs: &'a Map<String, Value>,
        context: &'a OperationContext,
        cancel: &'a CancellationToken,
    ) -> std::pin::Pin<Box<dyn Future<Output = Result<OperationOutput, OperationError>> + Send + 'a>>
    {
        Box::pin(async move {
            let response = self.done(name, inputs, context, cancel).await?;
            Ok(OperationOutput { response })
        })
    }
}

/// A response with these keys, in this order.
pub(super) fn response<const N: usize>(keys: [(&str, Value); N]) -> Map<String, Value> {
    keys.into_iter()
        .map(|(key, value)| (key.to_owned(), value))
        .collect()
}

pub(super) fn failed(why: impl Into<String>) -> OperationError {
    OperationError::Failed(why.into())
}
