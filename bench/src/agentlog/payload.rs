//! What the records of a made-up trace say. Fields are written in the order in which they stand here.

use serde::ser::SerializeMap as _;
use serde::{Serialize, Serializer};

#[derive(Serialize)]
pub(super) struct Meta<'a> {
    pub(super) session_tag: String,
    pub(super) trace_id: &'a str,
}

#[derive(Serialize)]
pub(super) struct Metadata {
    pub(super) sdk: Sdk,
    pub(super) runtime: Runtime,
    pub(super) tags: Tags,
}

#[derive(Serialize)]
pub(super) struct Sdk {
    pub(super) name: &'static str,
    pub(super) version: &'static str,
}

#[derive(Serialize)]
pub(super) struct Runtime {
    pub(super) python: &'static str,
    pub(super) platform: &'static str,
}

#[derive(Serialize)]
pub(super) struct Tags {
    pub(super) env: &'static str,
    pub(super) session: String,
}

#[derive(Serialize)]
pub(super) struct Request<'a> {
    pub(super) model: &'a str,
    pub(super) messages: &'a [Message],
    pub(super) params: Params,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) tools: Option<&'a [Tool]>,
}

#[derive(Serialize)]
pub(super) struct Message {
    pub(super) role: &'static str,
    pub(super) content: Content,
}

#[derive(Serialize)]
#[serde(untagged)]
pub(super) enum Content {
    Text(String),
    Parts(Vec<Part>),
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum Part {
    Text {
        text: String,
    },
    ToolUse {
        id: String,
        name: &'static str,
        input: Arguments,
    },
    ToolResult {
        tool_use_id: String,
        content: String,
    },
}

#[derive(Serialize)]
pub(super) struct Params {
    pub(super) temperature: f64,
    pub(super) top_p: f64,
    pub(super) max_tokens: u32,
}

#[derive(Serialize)]
pub(super) struct Tool {
    pub(super) name: &'static str,
    pub(super) description: String,
    pub(super) input_schema: Schema,
}

/// What a tool takes. The first property is required.
pub(super) struct Schema(pub(super) Vec<(&'static str, Property)>);

#[derive(Serialize)]
pub(super) struct Property {
    #[serde(rename = "type")]
    pub(super) kind: &'static str,
    pub(super) description: String,
}

impl Serialize for Schema {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let required: Vec<&str> = self.0.iter().map(|(name, _)| *name).take(1).collect();
        let mut schema = serializer.serialize_map(Some(3))?;
        schema.serialize_entry("type", "object")?;
        schema.serialize_entry("properties", &Properties(&self.0))?;
        schema.serialize_entry("required", &required)?;
        schema.end()
    }
}

/// As a map in their order.
struct Properties<'a>(&'a [(&'static str, Property)]);

impl Serialize for Properties<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(name, property)| (name, property)))
    }
}

#[derive(Serialize)]
pub(super) struct Reply<'a> {
    pub(super) model: &'a str,
    pub(super) content: &'a [Part],
    pub(super) stop_reason: &'static str,
    pub(super) stop_sequence: Option<&'static str>,
    pub(super) usage: Spent,
    pub(super) latency_ms: i64,
}

#[derive(Serialize)]
#[expect(clippy::struct_field_names, reason = "they are written so")]
pub(super) struct Spent {
    input_tokens: usize,
    output_tokens: usize,
    thinking_tokens: usize,
    cache_read_input_tokens: usize,
    cache_creation_input_tokens: usize,
}

impl Spent {
    pub(super) fn of(input_tokens: usize, output_tokens: usize) -> Self {
        Self {
            input_tokens,
            output_tokens,
            thinking_tokens: 0,
            cache_read_input_tokens: 0,
            cache_creation_input_tokens: 0,
        }
    }
}

#[derive(Serialize)]
pub(super) struct Call {
    pub(super) tool_name: &'static str,
    pub(super) tool_call_id: String,
    pub(super) arguments: Arguments,
}

#[derive(Clone, Serialize)]
pub(super) struct Arguments {
    pub(super) query: String,
    pub(super) order_id: String,
    pub(super) amount: f64,
}

#[derive(Serialize)]
pub(super) struct Answer<'a> {
    pub(super) tool_call_id: &'a str,
    pub(super) output: Output,
    pub(super) is_error: bool,
    pub(super) latency_ms: i64,
}

#[derive(Serialize)]
#[serde(untagged)]
pub(super) enum Output {
    Text(String),
    Rows { rows: Vec<Row>, total: usize },
}

#[derive(Serialize)]
pub(super) struct Row {
    pub(super) id: usize,
    pub(super) name: String,
    pub(super) score: f64,
    pub(super) ok: bool,
}

#[derive(Serialize)]
pub(super) struct Failure {
    source: &'static str,
    code: &'static str,
    message: String,
    retriable: bool,
    upstream_status: u16,
}

impl Failure {
    pub(super) fn rate_limit(seconds: usize) -> Self {
        Self {
            source: "llm",
            code: "rate_limit_exceeded",
            message: format!("Try again in {seconds} s."),
            retriable: true,
            upstream_status: 429,
        }
    }
}
