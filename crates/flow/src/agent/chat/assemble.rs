//! From the pieces of an answer to the answer.

use quipu_model::Usage;
use serde_json::{Value, json};

/// The answer to one request, as far as it has come.
#[derive(Debug, Default)]
pub(super) struct Turn {
    pub(super) id: Option<String>,
    pub(super) model: Option<String>,
    pub(super) text: String,
    pub(super) thinking: String,
    pub(super) calls: Vec<Call>,
    pub(super) usage: Option<Usage>,
    pub(super) stop_reason: Option<String>,
    /// What the server says went wrong after it had begun to answer.
    pub(super) error: Option<String>,
}

/// A tool call that the model asks for.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Call {
    index: u64,
    pub(super) id: String,
    pub(super) name: String,
    /// The arguments as the model wrote them.
    pub(super) arguments: String,
}

impl Turn {
    /// Takes in a chunk of a stream, or a whole answer. Gives the text that it adds.
    pub(super) fn take(&mut self, chunk: &Value) -> String {
        for (mine, key) in [(&mut self.id, "id"), (&mut self.model, "model")] {
            if mine.is_none() {
                let text = chunk[key].as_str().filter(|text| !text.is_empty());
                *mine = text.map(str::to_owned);
            }
        }
        if let Some(usage) = usage(&chunk["usage"]) {
            self.usage = Some(usage);
        }
        if !chunk["error"].is_null() {
            self.error = Some(message(chunk));
        }
        let choice = &chunk["choices"][0];
        if let Some(reason) = choice["finish_reason"].as_str() {
            self.stop_reason = Some(reason.to_owned());
        }
        let delta = match &choice["delta"] {
            Value::Null => &choice["message"],
            delta => delta,
        };
        for key in ["reasoning_content", "reasoning"] {
            if let Some(text) = delta[key].as_str() {
                self.thinking.push_str(text);
                break;
            }
        }
        for (at, call) in delta["tool_calls"]
            .as_array()
            .into_iter()
            .flatten()
            .enumerate()
        {
            self.call(at as u64, call);
        }
        let mut added = String::new();
        for key in ["content", "refusal"] {
            match &delta[key] {
                Value::String(text) => added.push_str(text),
                // Some servers answer with a list of parts.
                Value::Array(parts) => {
                    let texts = parts.iter().filter_map(|part| part["text"].as_str());
                    added.extend(texts);
                }
                _ => {}
            }
        }
        self.text.push_str(&added);
        added
    }

    /// A fragment of a call. The first of a call has its id and name; arguments are put one after the other.
    fn call(&mut self, at: u64, fragment: &Value) {
        let index = fragment["index"].as_u64();
        let id = fragment["id"].as_str().unwrap_or_default();
        let known = self.calls.iter_mut().rev().find(|call| match index {
            Some(index) => {
                call.index == index && (id.is_empty() || call.id.is_empty() || call.id == id)
            }
            None => !id.is_empty() && call.id == id,
        });
        let call = if let Some(call) = known {
            call
        } else {
            self.calls.push(Call {
                index: index.unwrap_or(at),
                ..Call::default()
            });
            let Some(last) = self.calls.last_mut() else {
                return;
            };
            last
        };
        if call.id.is_empty() {
            id.clone_into(&mut call.id);
        }
        let function = &fragment["function"];
        if call.name.is_empty() {
            function["name"]
                .as_str()
                .unwrap_or_default()
                .clone_into(&mut call.name);
        }
        match &function["arguments"] {
            Value::String(text) => call.arguments.push_str(text),
            Value::Null => {}
            object => call.arguments.push_str(&object.to_string()),
        }
    }

    /// Whether anything of an answer has come.
    pub(super) fn has_begun(&self) -> bool {
        !self.text.is_empty() || !self.thinking.is_empty() || !self.calls.is_empty()
    }

    /// How long what has come is.
    pub(super) fn length(&self) -> usize {
        let arguments = self.calls.iter().map(|call| call.arguments.len());
        self.text.len() + self.thinking.len() + arguments.sum::<usize>()
    }

    /// The message as the next request repeats it.
    pub(super) fn message(&self) -> Value {
        let content = match (&*self.text, self.calls.is_empty()) {
            ("", false) => Value::Null,
            (text, _) => json!(text),
        };
        let mut message = json!({"role": "assistant", "content": content});
        if !self.calls.is_empty() {
            let call = |call: &Call| {
                json!({"id": call.id, "type": "function",
                    "function": {"name": call.name, "arguments": call.arguments}})
            };
            message["tool_calls"] = self.calls.iter().map(call).collect();
        }
        message
    }
}

impl Call {
    /// The arguments as JSON.
    pub(super) fn input(&self) -> Result<Value, String> {
        if self.arguments.trim().is_empty() {
            return Ok(json!({}));
        }
        serde_json::from_str(&self.arguments)
            .map_err(|error| format!("the arguments are not JSON: {error}"))
    }
}

/// Tokens in disjoint buckets.
fn usage(usage: &Value) -> Option<Usage> {
    let count = |key: &str| usage[key].as_u64();
    let prompt = count("prompt_tokens");
    let output = count("completion_tokens");
    if prompt.is_none() && output.is_none() {
        return None;
    }
    let cached = usage["prompt_tokens_details"]["cached_tokens"].as_u64();
    let cached = cached.or_else(|| count("prompt_cache_hit_tokens"));
    Some(Usage {
        input: prompt.map(|prompt| prompt.saturating_sub(cached.unwrap_or(0))),
        cache_read: cached,
        cache_write: None,
        cache_write_1h: None,
        output,
        reasoning: usage["completion_tokens_details"]["reasoning_tokens"].as_u64(),
    })
}

/// What an answer says went wrong.
pub(super) fn message(answer: &Value) -> String {
    let error = &answer["error"];
    let places = [
        &error["message"],
        error,
        &answer["message"],
        &answer["detail"],
    ];
    let said = places.into_iter().find_map(Value::as_str);
    said.map_or_else(|| answer.to_string(), str::to_owned)
}
