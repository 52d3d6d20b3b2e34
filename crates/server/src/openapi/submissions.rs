//! Submissions: what `docs/submission.md` says, for programs.

use serde_json::{Value, json};

use super::merge;
use super::op::{Op, Who, schema};

const TAG: &str = "submissions";

/// Everything that can refuse a request which says who it is from.
const USUAL: [(&str, &str); 7] = [
    ("400", "Refused"),
    ("401", "Refused"),
    ("403", "RefusedOrForeign"),
    ("405", "Refused"),
    ("421", "Misdirected"),
    ("429", "RefusedForNow"),
    ("500", "Refused"),
];

const OWN: Who = Who::Key(&[]);
const SUBMIT: Who = Who::Key(&["submit"]);
const READ: Who = Who::Key(&["read"]);

fn id() -> Value {
    json!({ "type": "string", "minLength": 8, "maxLength": 64, "pattern": "^[A-Za-z0-9][A-Za-z0-9_-]{7,63}$" })
}

fn digest() -> Value {
    json!({ "type": "string", "pattern": "^[0-9a-f]{64}$" })
}

fn upload_id() -> Value {
    json!({ "type": "string", "pattern": "^[0-9a-f]{32}$" })
}

fn count() -> Value {
    json!({ "type": "integer", "minimum": 0 })
}

fn time() -> Value {
    json!({ "type": "string", "format": "date-time" })
}

/// Adds the operations and what they take and give.
pub(super) fn add(document: &mut Value) {
    merge(document, &["components", "schemas"], schemas());
    merge(document, &["components", "schemas"], more_schemas());
    merge(document, &["components", "responses"], responses());
    about(document);
    transcripts(document);
    uploads(document);
}

fn about(document: &mut Value) {
    Op::new(
        TAG,
        "getSubmissionLimits",
        "What the server accepts at most",
        Who::Anybody,
    )
    .json("200", "The limits", schema("SubmissionLimits"))
    .also(&[
        ("403", "RefusedOrForeign"),
        ("421", "Misdirected"),
        ("429", "RefusedForNow"),
        ("500", "Refused"),
    ])
    .at(document, "get", "/v1/limits");
    Op::new(TAG, "getOwnKey", "What the key that asks may do", OWN)
        .json("200", "The key", schema("SubmissionKey"))
        .also(&USUAL)
        .at(document, "get", "/v1/keys/self");
    Op::new(TAG, "listSubmitters", "Who submitted how much", READ)
        .json("200", "The submitters", schema("Submitters"))
        .also(&USUAL)
        .at(document, "get", "/v1/submitters");
    let text = || json!({ "type": "string" });
    Op::new(
        TAG,
        "listSubmissions",
        "What the key may see: its own, or everything with the scope read",
        OWN,
    )
    .query(
        "limit",
        "How many at most",
        json!({ "type": "integer", "minimum": 1, "maximum": 200, "default": 50 }),
    )
    .query("after", "The `next` of the page before", id())
    .query("pseudonym", "Only of this submitter", text())
    .query(
        "keyId",
        "Only of this key",
        json!({ "type": "string", "pattern": "^key_[0-9a-f]{12}$" }),
    )
    .query("agent", "Only of this agent", text())
    .query("since", "Only received at this time or later", time())
    .query("until", "Only received before this time", time())
    .json(
        "200",
        "A page; `next` is there when more follow",
        schema("SubmissionPage"),
    )
    .also(&USUAL)
    .at(document, "get", "/v1/transcripts");
}

fn transcripts(document: &mut Value) {
    const PATH: &str = "/v1/transcripts/{id}";
    let about = "The id of the transcript, as in the document";
    Op::new(TAG, "submitTranscript", "Submits a transcript in one request", SUBMIT)
        .path("id", about, id())
        .header("Transcript-Sha256", "The SHA-256 of the document before it is packed", digest())
        .required()
        .header(
            "Content-Encoding",
            "How the document is packed; not at all unless told",
            json!({ "type": "string", "enum": ["identity", "gzip", "zstd"] }),
        )
        .body(true, &[("application/json", json!({ "type": "object", "description": "A normalized transcript: docs/formats/normalized.md" }))])
        .json("200", "The same document was there already", schema("SubmissionReceipt"))
        .json("201", "It is on disk", schema("SubmissionReceipt"))
        .also(&USUAL)
        .also(&[("409", "Refused"), ("413", "Refused"), ("415", "Refused"), ("422", "Refused"), ("507", "Refused")])
        .at(document, "put", PATH);
    Op::new(
        TAG,
        "getSubmissionReceipt",
        "The receipt of a transcript",
        OWN,
    )
    .path("id", about, id())
    .json("200", "The receipt", schema("SubmissionReceipt"))
    .also(&USUAL)
    .also(&[("404", "Refused"), ("410", "Refused")])
    .at(document, "get", PATH);
    Op::new(TAG, "deleteSubmission", "Deletes what came with the key; with the scope admin, anything", OWN)
        .path("id", about, id())
        .body(
            false,
            &[("application/json", json!({
                "type": "object", "additionalProperties": false,
                "properties": { "reason": { "type": "string", "maxLength": 500, "description": "One line" } },
            }))],
        )
        .json("200", "It is gone", schema("Deletion"))
        .also(&USUAL)
        .also(&[("404", "Refused"), ("413", "Refused")])
        .at(document, "delete", PATH);
    let bytes = || json!({ "type": "object", "description": "The accepted bytes" });
    Op::new(
        TAG,
        "getSubmittedDocument",
        "The accepted bytes, unpacked and otherwise unchanged",
        OWN,
    )
    .path("id", about, id())
    .header("Range", "One range of bytes", json!({ "type": "string" }))
    .header(
        "If-None-Match",
        "ETags that the client has",
        json!({ "type": "string" }),
    )
    .json("200", "The document, as an attachment", bytes())
    .gives(
        "206",
        "The bytes of the range",
        &[("application/json", json!({}))],
    )
    .empty("304", "The client has it already")
    .also(&USUAL)
    .also(&[("404", "Refused"), ("410", "Refused"), ("416", "Refused")])
    .at(document, "get", "/v1/transcripts/{id}/document");
}

fn uploads(document: &mut Value) {
    const PATH: &str = "/v1/uploads/{id}";
    let about = "The id of the upload";
    Op::new(
        TAG,
        "beginUpload",
        "Begins an upload in pieces, or finds the one that was begun",
        SUBMIT,
    )
    .body(true, &[("application/json", schema("NewUpload"))])
    .json(
        "200",
        "It was begun before, or the document is there already",
        json!({ "anyOf": [schema("Upload"), schema("SubmissionReceipt")] }),
    )
    .json("201", "It was begun", schema("Upload"))
    .also(&USUAL)
    .also(&[
        ("409", "Refused"),
        ("413", "Refused"),
        ("415", "Refused"),
        ("507", "Refused"),
    ])
    .at(document, "post", "/v1/uploads");
    Op::new(
        TAG,
        "getUploadOffset",
        "How far an upload came: Upload-Offset and Upload-Length",
        SUBMIT,
    )
    .path("id", about, upload_id())
    .empty("200", "How far it came")
    .also(&USUAL)
    .also(&[("404", "Refused")])
    .at(document, "head", PATH);
    Op::new(
        TAG,
        "appendToUpload",
        "Adds a piece; the last one submits the document",
        SUBMIT,
    )
    .path("id", about, upload_id())
    .header("Upload-Offset", "Where the piece begins", count())
    .required()
    .body(true, &[("application/octet-stream", json!({}))])
    .json(
        "200",
        "The same document was there already",
        schema("SubmissionReceipt"),
    )
    .json(
        "201",
        "It was the last piece, and the document is on disk",
        schema("SubmissionReceipt"),
    )
    .empty(
        "204",
        "The piece is there; Upload-Offset says how far it came",
    )
    .also(&USUAL)
    .also(&[
        ("404", "Refused"),
        ("409", "Refused"),
        ("413", "Refused"),
        ("422", "Refused"),
        ("507", "Refused"),
    ])
    .at(document, "patch", PATH);
    Op::new(TAG, "abandonUpload", "Throws an upload away", SUBMIT)
        .path("id", about, upload_id())
        .empty("204", "It is gone")
        .also(&USUAL)
        .also(&[("404", "Refused")])
        .at(document, "delete", PATH);
}

fn responses() -> Value {
    let refusal = || json!({ "application/json": { "schema": schema("Refusal") } });
    let problem = json!({ "schema": schema("HttpProblem") });
    let mut foreign = refusal();
    foreign["application/problem+json"] = problem;
    json!({
        "Refused": { "description": "A refusal: `code` says why", "content": refusal() },
        "RefusedOrForeign": {
            "description": "The key was revoked, has expired or lacks a scope; or a page of another site asks",
            "content": foreign,
        },
        "RefusedForNow": {
            "description": "Too many requests, or too many wrong keys",
            "headers": { "Retry-After": { "description": "Seconds to wait", "schema": { "type": "integer", "minimum": 0 } } },
            "content": refusal(),
        },
    })
}

fn schemas() -> Value {
    let text = || json!({ "type": "string" });
    let maybe = || json!({ "type": ["string", "null"] });
    let when = || json!({ "type": ["string", "null"], "format": "date-time" });
    let receipt = json!({
        "transcriptId": id(), "keyId": text(), "pseudonym": text(), "identityLinked": { "type": "boolean" },
        "sha256": digest(), "bytes": count(), "events": count(), "receivedAt": time(), "duplicate": { "type": "boolean" },
    });
    let all = [
        "transcriptId",
        "keyId",
        "pseudonym",
        "identityLinked",
        "sha256",
        "bytes",
        "events",
        "receivedAt",
        "duplicate",
    ];
    let mut listed = receipt.clone();
    for (name, shape) in [
        ("agent", maybe()),
        ("title", maybe()),
        ("startedAt", when()),
        ("endedAt", when()),
    ] {
        listed[name] = shape;
    }
    json!({
        "SubmissionReceipt": {
            "description": "The proof that a transcript was accepted", "type": "object", "required": all, "properties": receipt,
        },
        "ListedSubmission": {
            "description": "A receipt, and what the document says of itself", "type": "object", "required": all, "properties": listed,
        },
        "SubmissionPage": {
            "type": "object", "required": ["transcripts"],
            "properties": {
                "transcripts": { "type": "array", "items": schema("ListedSubmission") },
                "next": { "type": "string", "description": "What to send as `after` for the next page" },
                "unreadable": { "type": "integer", "minimum": 1, "description": "Transcripts whose receipt is damaged" },
            },
        },
        "Deletion": {
            "description": "The receipt of a deletion", "type": "object",
            "required": ["transcriptId", "sha256", "bytes", "keyId", "pseudonym", "receivedAt", "deletedAt", "deletedBy", "deletedAs"],
            "properties": {
                "transcriptId": id(), "sha256": digest(), "bytes": count(), "keyId": text(), "pseudonym": text(),
                "receivedAt": time(), "deletedAt": time(), "deletedBy": text(), "deletedAs": text(), "reason": text(),
            },
        },
        "NewUpload": {
            "type": "object", "required": ["transcriptId", "sha256", "size", "encoding"],
            "properties": {
                "transcriptId": id(), "sha256": digest(),
                "size": { "type": "integer", "minimum": 0, "description": "The bytes that are sent" },
                "encoding": { "type": "string", "enum": ["identity", "gzip", "zstd"] },
            },
        },
        "Upload": {
            "type": "object", "required": ["uploadId", "offset", "size"],
            "properties": { "uploadId": upload_id(), "offset": count(), "size": count() },
        },
    })
}

fn more_schemas() -> Value {
    let text = || json!({ "type": "string" });
    json!({
        "SubmissionLimits": {
            "type": "object", "required": ["encodedBytes", "documentBytes", "openUploads", "uploadSeconds"],
            "properties": {
                "encodedBytes": { "type": "integer", "description": "The longest body, as it is sent" },
                "documentBytes": { "type": "integer", "description": "The longest document, unpacked" },
                "openUploads": { "type": "integer", "description": "How many uploads a key may have open" },
                "uploadSeconds": { "type": "integer", "description": "How long an upload is kept that nothing is added to" },
            },
        },
        "SubmissionKey": {
            "type": "object", "required": ["keyId", "pseudonym", "label", "scopes", "createdAt"],
            "properties": {
                "keyId": text(), "pseudonym": text(), "label": text(),
                "scopes": { "type": "array", "items": { "type": "string", "enum": ["submit", "read", "admin"] } },
                "createdAt": time(), "expiresAt": time(),
            },
        },
        "Submitters": {
            "type": "object", "required": ["submitters"],
            "properties": {
                "submitters": { "type": "array", "items": {
                    "type": "object",
                    "required": ["pseudonym", "keyId", "transcripts", "events", "bytes", "firstAt", "lastAt"],
                    "properties": {
                        "pseudonym": text(), "keyId": text(), "transcripts": count(), "events": count(), "bytes": count(),
                        "firstAt": time(), "lastAt": time(),
                    },
                } },
                "unreadable": { "type": "integer", "minimum": 1 },
            },
        },
        "Refusal": {
            "description": "Why a request of the submission protocol was refused", "type": "object", "required": ["code", "message"],
            "properties": {
                "code": { "type": "string", "description": "A word for programs; docs/submission.md lists them. New ones may come" },
                "message": { "type": "string", "description": "What to mend" },
                "findings": { "type": "array", "items": {
                    "type": "object", "required": ["rule", "field"],
                    "properties": { "rule": text(), "field": text(), "seq": count() },
                } },
                "more": { "type": "integer", "minimum": 1, "description": "Findings beyond those" },
                "limit": { "type": "object", "required": ["name", "bytes"], "properties": { "name": text(), "bytes": count() } },
                "deletion": schema("Deletion"),
            },
        },
    })
}
