//! Values of secret inputs, kept out of transcripts.

use std::sync::Arc;

use indexmap::IndexMap;
use quipu_model::{Block, Body, Content, Draft, Json, StepEnd};
use quipu_record::Masker;
use serde_json::Value;

use super::audit::is_secret;
use super::run::MASKED;

/// Values shorter than this would be found everywhere.
const SHORTEST: usize = 4;

/// The values of secret inputs, by their names (`SECRET_…`, `API_KEY…`, `PASSWORD…`, `TOKEN…`), the longest first.
pub(super) fn secrets(inputs: &IndexMap<String, Value>) -> Vec<String> {
    let mut values: Vec<String> = inputs
        .iter()
        .filter(|(name, _)| is_secret(name))
        .map(|(_, value)| match value {
            Value::String(text) => text.clone(),
            other => other.to_string(),
        })
        .filter(|value| value.len() >= SHORTEST)
        .collect();
    // A value inside another is masked after it.
    values.sort_by_key(|value| std::cmp::Reverse(value.len()));
    values
}

/// The values of secret inputs of a run. A program that shows what a run says hides them.
#[derive(Clone, Default)]
pub struct Secrets(Vec<String>);

impl std::fmt::Debug for Secrets {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Secrets({})", self.0.len())
    }
}

impl Secrets {
    /// The secrets among inputs, by their names (`SECRET_…`, `API_KEY…`, `PASSWORD…`, `TOKEN…`).
    pub fn of(inputs: &IndexMap<String, Value>) -> Self {
        Self(secrets(inputs))
    }

    /// Whether an input is a secret, by its name.
    pub fn is_secret(name: &str) -> bool {
        is_secret(name)
    }

    /// A text without them.
    pub fn hide(&self, text: &str) -> String {
        without(&self.0, text)
    }

    /// The value of an input as it may be shown.
    pub fn shown(&self, name: &str, value: &str) -> String {
        if is_secret(name) {
            MASKED.to_owned()
        } else {
            self.hide(value)
        }
    }
}

/// A text without secrets.
pub(super) fn without(secrets: &[String], text: &str) -> String {
    let mut text = text.to_owned();
    for secret in secrets {
        if text.contains(secret.as_str()) {
            text = text.replace(secret.as_str(), MASKED);
        }
    }
    text
}

/// Masks secrets wherever they are in an event, and then what `rules` find.
pub(super) fn masker(secrets: Vec<String>, rules: Arc<Masker>) -> Arc<Masker> {
    Arc::new(move |draft| {
        if !secrets.is_empty() {
            Masking { secrets: &secrets }.draft(draft);
        }
        rules(draft);
    })
}

struct Masking<'a> {
    secrets: &'a [String],
}

impl Masking<'_> {
    fn text(&self, text: &mut String) {
        if self
            .secrets
            .iter()
            .any(|secret| text.contains(secret.as_str()))
        {
            *text = without(self.secrets, text);
        }
    }

    fn value(&self, value: &mut Value) {
        match value {
            Value::String(text) => self.text(text),
            Value::Number(number) => {
                let text = number.to_string();
                if self
                    .secrets
                    .iter()
                    .any(|secret| text.contains(secret.as_str()))
                {
                    *value = MASKED.into();
                }
            }
            Value::Array(items) => items.iter_mut().for_each(|item| self.value(item)),
            Value::Object(fields) => {
                let is_clean = |name: &String| {
                    !self
                        .secrets
                        .iter()
                        .any(|secret| name.contains(secret.as_str()))
                };
                if fields.keys().all(is_clean) {
                    fields.values_mut().for_each(|field| self.value(field));
                } else {
                    let all = std::mem::take(fields);
                    for (mut name, mut field) in all {
                        self.text(&mut name);
                        self.value(&mut field);
                        fields.insert(name, field);
                    }
                }
            }
            Value::Null | Value::Bool(_) => {}
        }
    }

    fn json(&self, json: &mut Json) {
        // What stands in it as it is, or escaped: the tree is only made where there may be something to find.
        let may_be = |secret: &String| {
            let quoted = serde_json::to_string(secret).unwrap_or_default();
            let inside = quoted
                .get(1..quoted.len().saturating_sub(1))
                .unwrap_or_default();
            json.get().contains(inside) || json.get().contains('\\')
        };
        if !self.secrets.iter().any(may_be) {
            return;
        }
        if let Ok(mut value) = serde_json::from_str::<Value>(json.get()) {
            let before = value.clone();
            self.value(&mut value);
            if value != before
                && let Ok(masked) = Json::of(&value)
            {
                *json = masked;
            }
        }
    }

    fn some(&self, json: &mut Option<Json>) {
        if let Some(json) = json {
            self.json(json);
        }
    }

    fn end(&self, end: &mut StepEnd) {
        if let Some(error) = &mut end.error {
            self.text(error);
        }
        self.some(&mut end.result);
    }

    fn block(&self, block: &mut Block) {
        match &mut block.content {
            Content::Text(text)
            | Content::Thinking(text)
            | Content::Command(text)
            | Content::Stream(text) => self.text(text),
            Content::ToolUse { input: json, .. } | Content::ToolResult { content: json, .. } => {
                self.some(json);
            }
            Content::Unknown(json) => self.json(json),
        }
    }

    fn draft(&self, draft: &mut Draft) {
        match &mut draft.body {
            Body::UserMessage(blocks)
            | Body::AssistantMessage(blocks)
            | Body::SystemMessage(blocks) => {
                for block in blocks {
                    self.block(block);
                }
            }
            Body::RunCompleted(Some(end))
            | Body::StepCompleted(end)
            | Body::CallCompleted { end, .. } => self.end(end),
            Body::ToolCall(call) => self.some(&mut call.input),
            Body::ToolResult(result) => {
                self.some(&mut result.input);
                self.some(&mut result.output);
                if let Some(error) = &mut result.error {
                    self.text(error);
                }
            }
            Body::Chunk(chunk) => {
                self.text(&mut chunk.text);
                self.some(&mut chunk.delta);
            }
            Body::Harness(event) => self.some(&mut event.attributes),
            Body::Error(failure) => self.text(&mut failure.message),
            Body::ModelCall(call) => {
                self.some(&mut call.params);
                if let Some(error) = &mut call.error {
                    self.text(error);
                }
            }
            Body::Note(note) => {
                if let Some(text) = &mut note.text {
                    self.text(text);
                }
                self.some(&mut note.raw);
            }
            Body::Unknown(unknown) => self.json(&mut unknown.payload),
            Body::RunStarted(_)
            | Body::RunCompleted(None)
            | Body::StepStarted(_)
            | Body::CallStarted { .. }
            | Body::Blob(_) => {}
        }
        if draft.annotations.extra.is_some() {
            self.some(&mut draft.annotations.extra);
        }
    }
}
