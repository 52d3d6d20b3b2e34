//! What every operation of the native interface has, whatever its handler says.

use serde_json::{Map, Value, json};

use super::merge;
use super::op::{Who, response, schema};

/// Addresses that anybody may ask.
const OPEN: [&str; 4] = ["/", "/api/v1/me", "/healthz", "/readyz"];

/// Numbers beyond this are not exact in JavaScript.
const LARGEST: u64 = (1 << 53) - 1;

/// Answers that many operations share: their name, status and words.
const SHARED: [(&str, &str, &str); 13] = [
    (
        "BadRequest",
        "400",
        "The request cannot be understood: a parameter or the body is wrong, or an id means several transcripts",
    ),
    (
        "Unauthorized",
        "401",
        "A key or the token of this start is needed, or the one that was sent is wrong",
    ),
    (
        "Forbidden",
        "403",
        "The key lacks a scope, or a page of another site asks",
    ),
    ("NotFound", "404", "What was asked for does not exist"),
    ("Conflict", "409", "Something else is there, or is going on"),
    ("TooLarge", "413", "The body is larger than is accepted"),
    (
        "UnsupportedType",
        "415",
        "The body has a type or an encoding that is not accepted",
    ),
    (
        "BadRange",
        "416",
        "Nothing is in the range that was asked for; Content-Range has the length",
    ),
    ("Misdirected", "421", "The Host header names another server"),
    (
        "Unprocessable",
        "422",
        "The transcript cannot be written in this format",
    ),
    (
        "TooManyRequests",
        "429",
        "Too many requests with this key, or too many wrong keys from this address; Retry-After says when to come back",
    ),
    (
        "Failed",
        "500",
        "The archive cannot be read, or the server failed",
    ),
    (
        "Busy",
        "503",
        "Too much is asked for at once; Retry-After says when to come back",
    ),
];

/// Completes what handlers say.
pub(super) fn finish(document: &mut Value) {
    merge(document, &["components", "responses"], shared());
    if let Some(Value::Object(paths)) = document.get_mut("paths") {
        for (path, item) in paths {
            for (method, operation) in item.as_object_mut().into_iter().flatten() {
                complete(path, method, operation);
            }
        }
    }
}

fn shared() -> Value {
    let all = SHARED.iter().map(|(name, status, about)| {
        let content = json!({ "application/problem+json": { "schema": schema("HttpProblem") } });
        let mut answer = json!({ "description": about, "content": content });
        if matches!(*status, "429" | "503") {
            answer["headers"] = json!({ "Retry-After": { "description": "Seconds to wait", "schema": { "type": "integer", "minimum": 0 } } });
        }
        ((*name).to_owned(), answer)
    });
    let mut all: Map<String, Value> = all.collect();
    let unchanged = json!({ "description": "The client has this answer already: its ETag was in If-None-Match" });
    all.insert("NotModified".to_owned(), unchanged);
    Value::Object(all)
}

fn is_get(method: &str) -> bool {
    method == "get"
}

fn complete(path: &str, method: &str, operation: &mut Value) {
    let is_open = OPEN.contains(&path);
    let who = match method {
        _ if is_open => Who::Anybody,
        // Who has keys is for nobody who only reads.
        "get" if path != "/api/v1/keys" => Who::Local("read"),
        _ => Who::Owner("admin"),
    };
    operation["security"] = who.security();
    if operation.get("tags").is_none() {
        operation["tags"] = json!(["live"]);
    }
    let mut takes = operation.get("requestBody").is_some();
    if let Some(Value::Array(parameters)) = operation.get_mut("parameters") {
        takes |= !parameters.is_empty();
        parameters.iter_mut().for_each(narrow);
    }
    let has_body = operation.get("requestBody").is_some();
    let summary = operation["summary"].clone();
    let Some(Value::Object(responses)) = operation.get_mut("responses") else {
        return;
    };
    // Problems have one shape and one type, so each is described once.
    for (name, status, _) in SHARED {
        let is_possible = match status {
            "400" => takes,
            "401" | "429" => !is_open,
            "413" | "415" => has_body,
            "403" | "421" | "500" | "503" => true,
            _ => responses.contains_key(status),
        };
        if is_possible {
            responses.insert(status.to_owned(), response(name));
        }
    }
    for response in responses.values_mut() {
        retype(response);
        let says = |field: &str| {
            response[field]
                .as_str()
                .is_some_and(|text| !text.is_empty())
        };
        if !says("description") && !says("$ref") {
            response["description"] = summary.clone();
        }
    }
    // What is an answer of JSON has an ETag.
    let json = |response: &Value| response.pointer("/content/application~1json").is_some();
    if is_get(method) && responses.get("200").is_some_and(json) {
        responses.insert("304".to_owned(), response("NotModified"));
        if let Some(fine) = responses.get_mut("200") {
            fine["headers"] = json!({ "ETag": { "description": "What to send in If-None-Match to be told whether this changed", "schema": { "type": "string" } } });
        }
    }
}

/// Problems have a type of their own, and bytes that are not text have no schema.
fn retype(response: &mut Value) {
    let Some(Value::Object(content)) = response.get_mut("content") else {
        return;
    };
    if content
        .get("application/json")
        .is_some_and(|body| body["schema"] == schema("HttpProblem"))
        && let Some(body) = content.remove("application/json")
    {
        content.insert("application/problem+json".to_owned(), body);
    }
    for (kind, body) in content {
        if !kind.ends_with("json") && !kind.starts_with("text/") {
            body["schema"] = json!({});
        }
    }
}

/// A parameter is there or is left out; it is never null. Numbers have an end.
fn narrow(parameter: &mut Value) {
    let is_transcript = parameter["in"] == "path" && parameter["name"] == "id";
    let Some(schema) = parameter.get_mut("schema") else {
        return;
    };
    if let Some(Value::Array(kinds)) = schema.get_mut("type") {
        kinds.retain(|kind| kind != "null");
        if let [kind] = kinds.as_slice() {
            schema["type"] = kind.clone();
        }
    }
    let only = schema.get("oneOf").and_then(Value::as_array).map(|kinds| {
        let kinds = kinds.iter().filter(|kind| kind["type"] != "null");
        kinds.cloned().collect::<Vec<Value>>()
    });
    if let Some([kind]) = only.as_deref() {
        *schema = kind.clone();
    }
    if schema["type"] == "integer" && schema.get("maximum").is_none() {
        schema["maximum"] = LARGEST.into();
    }
    if is_transcript {
        schema["minLength"] = 1.into();
        schema["maxLength"] = 512.into();
    }
}
