//! Values of secret inputs, kept out of transcripts.

use indexmap::IndexMap;
use quipu_model::{Block, Body, Content, Draft, Json, StepEnd};

use super::audit::is_secret;
use super::run::MASKED;

/// Values shorter than this would be found everywhere.
const SHORTEST: usize = 4;

/// Masks the values of secret inputs, by their names (`SECRET_…`, `API_KEY…`, `PASSWORD…`, `TOKEN…`), wherever they are
/// in an event. For [`quipu_record::RecorderOptions::masker`].
pub fn mask_inputs(inputs: &IndexMap<String, String>) -> impl Fn(&mut Draft) + Send + Sync + use<> {
    let mut values: Vec<String> = inputs
        .iter()
        .filter(|(name, value)| is_secret(name) && value.len() >= SHORTEST)
        .map(|(_, value)| value.clone())
        .collect();
    // A value inside another is masked after it.
    values.sort_by_key(|value| std::cmp::Reverse(value.len()));
    move |draft| {
        if !values.is_empty() {
            Masking { values: &values }.draft(draft);
        }
    }
}

struct Masking<'a> {
    values: &'a [String],
}

impl Masking<'_> {
    fn text(&self, text: &mut String) {
        for value in self.values {
            if text.contains(value.as_str()) {
                *text = text.replace(value.as_str(), MASKED);
            }
        }
    }

    fn json(&self, json: &mut Json) {
        for value in self.values {
            let quoted = serde_json::to_string(value).unwrap_or_default();
            let inside = quoted.trim_start_matches('"').trim_end_matches('"');
            if !inside.is_empty()
                && json.get().contains(inside)
                && let Ok(masked) = Json::parse(&json.get().replace(inside, MASKED))
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
