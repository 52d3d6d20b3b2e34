//! `http.request` and `notify.send`.

use std::time::Duration;

use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::builtin::{Builtin, Done, failed, response};
use super::github::ask;
use super::inputs::{Inputs, text};
use super::{OperationContext, OperationError};
use crate::http::{HttpError, Request};

/// The most bytes of an answer that are kept.
const MAX_BODY: usize = 5 << 20;

/// How long a request may take that sets no time.
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(30);

impl From<HttpError> for OperationError {
    fn from(error: HttpError) -> Self {
        match error {
            HttpError::Cancelled => Self::Cancelled,
            error @ (HttpError::Address { .. } | HttpError::Request(_)) => {
                Self::Inputs(error.to_string())
            }
            error => Self::Failed(error.to_string()),
        }
    }
}

/// Sends a request. Every answer is a success, whatever its status, unless the status is one of those that are to be
/// tried again. Nothing of the request is in the response: its headers may hold keys.
pub(super) async fn request(inputs: Inputs<'_>, cancel: &CancellationToken) -> Done {
    let method = inputs.some_text("method");
    let method = method.map_or("GET".to_owned(), |it| it.to_uppercase());
    let mut request = Request::new(&method, &inputs.text("url"))?;
    let mut has_type = false;
    for (name, value) in inputs.object("headers").unwrap_or_default() {
        has_type |= name.eq_ignore_ascii_case("content-type");
        request = request.header(&name, &text(&value))?;
    }
    match inputs.value("body") {
        Some(body @ (Value::Object(_) | Value::Array(_))) => {
            if !has_type {
                request = request.header("content-type", "application/json")?;
            }
            request = request.body(body.to_string());
        }
        Some(body) => request = request.body(text(body)),
        None => {}
    }
    let timeout = inputs.duration("timeout").filter(|it| !it.is_zero());
    let request = request.timeout(Some(timeout.unwrap_or(DEFAULT_TIMEOUT)));
    let again = codes(inputs)?;
    let answer = request.send(cancel).await?;
    let status = answer.status;
    if again.contains(&status) {
        return Err(failed(format!(
            "the server answered {status}, which is to be tried again"
        )));
    }
    let headers = answer.headers().into_iter();
    let headers: Value = headers.map(|(k, v)| (k, Value::from(v))).collect();
    let (body, cut) = answer.read(MAX_BODY).await?;
    Ok(response([
        ("status_code", status.into()),
        ("body", String::from_utf8_lossy(&body).into()),
        ("headers", headers),
        ("body_truncated", cut.into()),
    ]))
}

fn codes(inputs: Inputs<'_>) -> Result<Vec<u16>, OperationError> {
    let given = inputs.list("retryable_status_codes").unwrap_or_default();
    let codes = given.iter().map(|it| {
        let code = text(it).trim().parse().ok();
        let code = code.filter(|it| (100..1000).contains(it));
        code.ok_or_else(|| {
            let it = text(it);
            OperationError::Inputs(format!("retryable_status_codes: {it:?} is not a status"))
        })
    });
    codes.collect()
}

/// Tells a person something, on this machine's screen or by a webhook.
pub(super) async fn notify(
    builtin: &Builtin,
    inputs: Inputs<'_>,
    context: &OperationContext,
    cancel: &CancellationToken,
) -> Done {
    let backend = inputs.text("backend");
    let message = inputs.text("message");
    let title = inputs.some_text("title").unwrap_or("Quipu".to_owned());
    let priority = inputs.some_text("priority").unwrap_or("default".to_owned());
    if !["low", "default", "normal", "high", "urgent"].contains(&priority.as_str()) {
        return Err(OperationError::Inputs(format!(
            "priority: {priority:?} is not one of low, default, high, urgent"
        )));
    }
    let status = match backend.as_str() {
        "desktop" => {
            let argv = desktop(&title, &message, &priority);
            ask(builtin, argv, context, cancel).await?;
            Value::Null
        }
        "webhook" => {
            let Some(url) = inputs.some_text("webhook_url") else {
                return Err(OperationError::Inputs(
                    "notify.send: webhook_url is missing".to_owned(),
                ));
            };
            let body = json!({"title": title, "message": message, "priority": priority});
            let request = Request::new("POST", &url)?
                .header("content-type", "application/json")?
                .body(body.to_string())
                .timeout(Some(DEFAULT_TIMEOUT));
            let answer = request.send(cancel).await?;
            let status = answer.status;
            if !(200..300).contains(&status) {
                let (body, _) = answer.read(2000).await?;
                let body = String::from_utf8_lossy(&body).into_owned();
                return Err(failed(format!("the webhook answered {status}: {body}")));
            }
            status.into()
        }
        other => {
            return Err(OperationError::Inputs(format!(
                "backend: {other:?} is not one of desktop, webhook"
            )));
        }
    };
    Ok(response([
        ("backend", backend.into()),
        ("sent", true.into()),
        ("status_code", status),
    ]))
}

/// The program that shows a message, with its arguments. None of them is read by a shell or as a script.
fn desktop(title: &str, message: &str, priority: &str) -> Vec<String> {
    let argv: Vec<&str> = if cfg!(target_os = "macos") {
        let show = "display notification (item 2 of argv) with title (item 1 of argv)";
        vec![
            "osascript",
            "-e",
            "on run argv",
            "-e",
            show,
            "-e",
            "end run",
            "--",
            title,
            message,
        ]
    } else {
        let urgency = match priority {
            "low" => "low",
            "high" | "urgent" => "critical",
            _ => "normal",
        };
        vec!["notify-send", "--urgency", urgency, "--", title, message]
    };
    argv.into_iter().map(str::to_owned).collect()
}
