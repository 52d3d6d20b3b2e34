//! The `OpenAPI` 3.1 document of everything that is served.
//!
//! ```text
//!  annotations of handlers ─► utoipa ─► finish ─┐
//!  submissions, otlp, flow_studio: by hand ─────┴─► openapi()  ─► /api/v1/openapi.json, docs/openapi.json
//! ```
//!
//! Handlers of `/api/v1` say what they take and give. What every one of them can answer besides (a wrong key, a foreign host, a
//! busy server) is added here, so that no handler can forget it. The other interfaces have shapes of other people's
//! making, and are described by hand.

mod finish;
mod flow_studio;
mod op;
mod otlp;
mod submissions;
#[cfg(test)]
mod tests;

use serde_json::{Map, Value, json};

use crate::routes::documented;

/// What each tag is about, in the order in which they are shown.
const TAGS: [(&str, &str); 11] = [
    (
        "runs",
        "Workflow runs: started, cancelled, approved, answered and resumed.",
    ),
    (
        "transcripts",
        "What agents said and did: lists, one transcript, its events and what can be worked out of them.",
    ),
    ("search", "Search over everything that is kept."),
    (
        "figures",
        "Tokens, dollars, tools, and what need not have been paid for.",
    ),
    (
        "export",
        "Transcripts in other formats, with or without what a profile removes.",
    ),
    (
        "annotations",
        "Labels and notes of people, kept beside transcripts and never inside.",
    ),
    (
        "live",
        "Server-sent events: history first, then what is added. docs/live.md is the manual.",
    ),
    (
        "server",
        "The server itself: whether it is there, what it does, what it measures.",
    ),
    (
        "submissions",
        "Transcripts that others hand over. docs/submission.md is the manual. Errors are refusals with a `code`.",
    ),
    (
        "otlp",
        "OpenTelemetry: spans and log records of instrumented programs become transcripts. docs/formats/otlp.md says which.",
    ),
    (
        "flow-studio",
        "Flow Studio's interface, for clients and pages that know no other. docs/flow-studio.md is the manual. Errors are `{\"error\"}` or \
         `{\"detail\"}`, as there.",
    ),
];

/// The `OpenAPI` document of everything that is served.
pub fn openapi() -> Value {
    let (_, native) = documented().split_for_parts();
    let mut document = serde_json::to_value(native).unwrap_or_default();
    document["info"] = json!({
        "title": "Quipu",
        "description": "What agents said and did: kept, searched, priced and followed live. docs/api.md is the manual.",
        "version": env!("CARGO_PKG_VERSION"),
        "license": { "name": "MIT OR Apache-2.0", "identifier": "MIT OR Apache-2.0" },
    });
    document["servers"] = json!([{
        "url": "http://127.0.0.1:7847",
        "description": "Where `quipu up` listens, unless told otherwise or the port is in use",
    }]);
    let about =
        |(name, description): &(&str, &str)| json!({ "name": name, "description": description });
    let mut tags: Vec<Value> = TAGS.iter().map(about).collect();
    finish::finish(&mut document);
    submissions::add(&mut document);
    otlp::add(&mut document);
    flow_studio::add(&mut document);
    // Tags of other modules, which come with their own words or none.
    for tag in used_tags(&document) {
        if !TAGS.iter().any(|(name, _)| *name == tag) {
            tags.push(json!({ "name": tag }));
        }
    }
    document["tags"] = tags.into();
    document["components"]["securitySchemes"] = json!({
        "key": {
            "type": "http",
            "scheme": "bearer",
            "bearerFormat": "qk_…",
            "description": "A key that `quipu keys new` made. What it may do is up to its scopes: submit, read, admin. \
                Beyond loopback every request needs one.",
        },
        "token": {
            "type": "apiKey",
            "in": "header",
            "name": crate::access::TOKEN_HEADER,
            "description": "The token of this start, which is in server.json in Quipu's home. It works on the server's own machine, and \
                allows everything.",
        },
    });
    sorted(document)
}

fn used_tags(document: &Value) -> Vec<String> {
    let items = document["paths"]
        .as_object()
        .into_iter()
        .flat_map(Map::values);
    let operations = items.filter_map(Value::as_object).flat_map(Map::values);
    let tags = operations.filter_map(|operation| operation.get("tags")?.as_array());
    let mut tags: Vec<String> = tags
        .flatten()
        .filter_map(|tag| tag.as_str().map(str::to_owned))
        .collect();
    tags.sort();
    tags.dedup();
    tags
}

/// The fields of all objects in order, whatever order they were put in: the document is compared with one on disk.
fn sorted(value: Value) -> Value {
    match value {
        Value::Object(fields) => {
            let mut fields: Vec<(String, Value)> = fields.into_iter().collect();
            fields.sort_by(|(a, _), (b, _)| a.cmp(b));
            let fields = fields.into_iter();
            Value::Object(fields.map(|(name, value)| (name, sorted(value))).collect())
        }
        Value::Array(values) => Value::Array(values.into_iter().map(sorted).collect()),
        value => value,
    }
}

/// Adds operations and schemas to the document.
fn merge(document: &mut Value, section: &[&str], more: Value) {
    let mut at = document;
    for name in section {
        at = &mut at[*name];
    }
    if !at.is_object() {
        *at = json!({});
    }
    if let (Value::Object(all), Value::Object(more)) = (at, more) {
        all.extend(more);
    }
}
