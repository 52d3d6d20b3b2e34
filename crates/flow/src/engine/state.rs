//! What a step leaves behind: for the steps after it, and in the transcript.

use quipu_model::{Attachment, Json};
use quipu_store::blobs::{BlobId, Blobs};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::text::first_bytes;
use crate::agent::SessionHandle;

/// Output up to this many bytes is in the transcript itself; longer output is a blob, and its beginning is in the
/// transcript.
const INLINE: usize = 64 << 10;
const PREVIEW: usize = 4 << 10;

/// How a step ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StepStatus {
    /// It did what it should.
    #[default]
    Completed,
    /// It did not.
    Failed,
    /// It was made to end before.
    Cancelled,
    /// It waits for a person.
    Paused,
}

impl StepStatus {
    /// The word for it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Completed => "completed",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
            Self::Paused => "paused",
        }
    }
}

/// Tokens that a step used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct StepTokens {
    /// Those of prompts, cached ones included.
    pub input: u64,
    /// Those of answers.
    pub output: u64,
    /// Whether they were worked out from lengths of texts.
    #[serde(default)]
    pub estimated: bool,
}

/// What a step leaves behind.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct StepState {
    /// How it ended.
    pub status: StepStatus,
    /// Standard output of a command, the answer of an agent, a sentence for others.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub output: String,
    /// Standard error.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub stderr: String,
    /// The exit code of a program.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    /// What an operation or a called workflow gave.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub response: Option<Value>,
    /// The answer of an agent, read as JSON.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub json: Option<Value>,
    /// Values by name: captured output, values that were set.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub data: Map<String, Value>,
    /// Tokens of an agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokens: Option<StepTokens>,
    /// What it cost in dollars; `None` when that is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost_usd: Option<String>,
    /// The session of an agent, so that a later step can go on with it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<SessionHandle>,
    /// Where a loop or a body sends the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub leads_to: Option<String>,
    /// The event that says so; 0 when it is not recorded.
    #[serde(skip)]
    pub seq: u64,
    /// Why it failed. In the transcript it is the error of the event.
    #[serde(skip)]
    pub error: Option<String>,
}

impl StepState {
    /// A state with an output.
    pub fn said(output: impl Into<String>) -> Self {
        Self {
            output: output.into(),
            ..Self::default()
        }
    }

    /// A state of something that failed.
    pub fn failed(error: impl Into<String>) -> Self {
        Self {
            status: StepStatus::Failed,
            error: Some(error.into()),
            ..Self::default()
        }
    }

    /// Whether the step did what it should.
    pub fn is_ok(&self) -> bool {
        self.error.is_none()
    }

    /// A field by the name that templates use, e.g. `Output`.
    pub fn field(&self, name: &str) -> Option<Value> {
        let tokens = self.tokens.unwrap_or_default();
        Some(match name {
            "Output" | "output" => json!(self.output),
            "Stderr" | "stderr" => json!(self.stderr),
            "ExitCode" | "exit_code" => json!(self.exit_code.unwrap_or(0)),
            "Status" | "status" => json!(self.status.as_str()),
            "Response" | "response" => self.response.clone().unwrap_or_else(|| json!({})),
            "JSON" | "json" => self.json.clone().unwrap_or(Value::Null),
            "Data" | "data" => Value::Object(self.data.clone()),
            "Error" | "error" => json!(self.error.as_deref().unwrap_or_default()),
            "TokensUsed" | "tokens_used" => json!(tokens.input + tokens.output),
            "TokensInput" | "tokens_input" => json!(tokens.input),
            "TokensOutput" | "tokens_output" => json!(tokens.output),
            "TokensEstimated" | "tokens_estimated" => json!(tokens.estimated),
            _ => return None,
        })
    }

    /// All fields, by the names that templates use.
    pub fn all_fields(&self) -> Value {
        let names = [
            "Output",
            "Stderr",
            "ExitCode",
            "Status",
            "Response",
            "JSON",
            "Data",
            "Error",
            "TokensUsed",
            "TokensInput",
            "TokensOutput",
            "TokensEstimated",
        ];
        names
            .into_iter()
            .filter_map(|name| Some((name.to_owned(), self.field(name)?)))
            .collect::<Map<_, _>>()
            .into()
    }

    /// The state as the result of a `step.completed` event. Long output goes to blobs, which are kept before this
    /// returns.
    ///
    /// # Errors
    ///
    /// When a blob cannot be kept.
    pub(super) fn to_result(
        &self,
        blobs: Option<&Blobs>,
        masked: &dyn Fn(&str) -> String,
    ) -> Result<(Json, Vec<Attachment>), quipu_store::blobs::BlobError> {
        let mut attachments = Vec::new();
        let mut result = serde_json::to_value(self).unwrap_or_default();
        if let (Some(blobs), Some(fields)) = (blobs, result.as_object_mut()) {
            let names: Vec<String> = fields.keys().cloned().collect();
            for name in names {
                let (text, mime) = match fields.get(&name) {
                    Some(Value::String(text)) => (text.clone(), "text/plain"),
                    Some(Value::Null) | None => continue,
                    Some(other) => (other.to_string(), "application/json"),
                };
                if text.len() <= INLINE {
                    continue;
                }
                let text = masked(&text);
                let id = blobs.put(text.as_bytes())?;
                let sha256 = id.digest().to_string();
                attachments.push(Attachment {
                    mime: mime.to_owned(),
                    bytes: text.len() as u64,
                    sha256: sha256.clone(),
                });
                if mime == "text/plain" {
                    let short = first_bytes(&text, PREVIEW).to_owned();
                    fields.insert(name.clone(), short.into());
                } else {
                    fields.remove(&name);
                }
                fields.insert(format!("{name}_blob"), sha256.into());
            }
        }
        Ok((
            Json::of(&result).unwrap_or_else(|_| Json::null()),
            attachments,
        ))
    }

    /// The state that the result of a `step.completed` event tells.
    pub(super) fn from_result(
        result: Option<&Json>,
        error: Option<&str>,
        blobs: Option<&Blobs>,
    ) -> Option<Self> {
        let mut value: Value = serde_json::from_str(result?.get()).ok()?;
        let fields = value.as_object_mut()?;
        let moved: Vec<(String, Value)> = fields
            .iter()
            .filter_map(|(name, id)| Some((name.strip_suffix("_blob")?.to_owned(), id.clone())))
            .collect();
        for (name, id) in moved {
            let id: BlobId = id.as_str()?.parse().ok()?;
            let text = String::from_utf8(blobs?.get(&id).ok()?).ok()?;
            let whole = match name.as_str() {
                "output" | "stderr" => Value::String(text),
                _ => serde_json::from_str(&text).ok()?,
            };
            fields.insert(name, whole);
        }
        let mut state: Self = serde_json::from_value(value).ok()?;
        state.error = error.map(str::to_owned);
        Some(state)
    }
}
