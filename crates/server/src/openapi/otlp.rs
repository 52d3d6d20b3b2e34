//! OTLP: what `docs/formats/otlp.md` says, for programs.

use serde_json::{Value, json};

use super::merge;
use super::op::{Op, Who, schema};

const PROTOBUF: &str = "application/x-protobuf";

/// Adds the two operations.
pub(super) fn add(document: &mut Value) {
    let refusal = json!({
        "OtlpRefused": {
            "description": "A `google.rpc.Status` in the encoding of the request, or a problem",
            "content": {
                "application/json": { "schema": schema("OtlpStatus") },
                (PROTOBUF): { "schema": {} },
                "application/problem+json": { "schema": schema("HttpProblem") },
            },
        },
    });
    merge(document, &["components", "responses"], refusal);
    merge(
        document,
        &["components", "schemas"],
        json!({
            "OtlpStatus": {
                "description": "Why nothing of a request was kept, as google.rpc.Status", "type": "object",
                "required": ["code", "message"],
                "properties": { "code": { "type": "integer" }, "message": { "type": "string" } },
            },
            "OtlpAnswer": {
                "description": "What was kept. `partialSuccess` is there when some records were rejected", "type": "object",
                "properties": { "partialSuccess": { "type": "object" } },
            },
        }),
    );
    for (path, id, summary, field) in [
        (
            "/v1/traces",
            "exportTraces",
            "Takes spans: an ExportTraceServiceRequest",
            "resourceSpans",
        ),
        (
            "/v1/logs",
            "exportLogs",
            "Takes log records: an ExportLogsServiceRequest",
            "resourceLogs",
        ),
    ] {
        let request = json!({
            "type": "object",
            "properties": { (field): { "type": ["array", "null"], "items": { "type": "object" } } },
        });
        let encoding = json!({ "type": "string", "enum": ["identity", "gzip", "zstd"] });
        Op::new("otlp", id, summary, Who::Local("submit"))
            .header(
                "Content-Encoding",
                "How the body is packed; not at all unless told",
                encoding,
            )
            .body(
                true,
                &[("application/json", request), (PROTOBUF, json!({}))],
            )
            .gives(
                "200",
                "It is on disk, and is imported soon after",
                &[
                    ("application/json", schema("OtlpAnswer")),
                    (PROTOBUF, json!({})),
                ],
            )
            .also(&[
                ("400", "OtlpRefused"),
                ("401", "Unauthorized"),
                ("403", "Forbidden"),
                ("408", "OtlpRefused"),
                ("413", "OtlpRefused"),
                ("415", "OtlpRefused"),
                ("421", "Misdirected"),
                ("429", "TooManyRequests"),
                ("500", "Failed"),
                ("503", "OtlpRefused"),
            ])
            .at(document, "post", path);
    }
}
