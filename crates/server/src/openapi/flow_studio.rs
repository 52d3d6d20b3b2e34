//! Flow Studio's interface: what `docs/flow-studio.md` says, for programs.

use serde_json::{Value, json};

use super::merge;
use super::op::{Op, Who, schema};

const TAG: &str = "flow-studio";

/// What can go wrong with every request here.
const USUAL: [(&str, &str); 6] = [
    ("400", "Fault"),
    ("401", "FaultOrProblem"),
    ("403", "FaultOrProblem"),
    ("421", "Misdirected"),
    ("500", "Fault"),
    ("503", "FaultOrProblem"),
];

const MISSING: [(&str, &str); 2] = [("404", "Fault"), ("429", "FaultOrProblem")];

/// What an id of a file is: no slash, no control character, no way out.
fn id() -> Value {
    json!({ "type": "string", "minLength": 1, "maxLength": 255, "pattern": "^(?!.*\\.\\.)[^/\\\\\\u0000-\\u001F\\u007F-\\u009F]+$" })
}

fn read(name: &str, summary: &str) -> Op {
    Op::new(TAG, name, summary, Who::Local("read"))
        .also(&USUAL)
        .also(&MISSING)
        .also(&[("304", "NotModified")])
}

fn write(name: &str, summary: &str) -> Op {
    Op::new(TAG, name, summary, Who::Owner("admin"))
        .also(&USUAL)
        .also(&MISSING)
}

const STEP: [&str; 3] = ["id", "flow", "step"];

/// The id of an operation, the end of its path, what it is for, its ids and the fields it always gives.
type Row<'r> = (&'r str, &'r str, &'r str, &'r [&'r str], &'r [&'r str]);

trait Ids {
    fn ids(self, names: &[&str]) -> Self;
}

impl Ids for Op {
    fn ids(mut self, names: &[&str]) -> Self {
        for name in names {
            let about = match *name {
                "id" => "The id of the run",
                "flow" => "The flow, such as `build`",
                "step" => "The step",
                "agent" => "The agent",
                _ => "The engine, such as `claude`",
            };
            self = self.path(name, about, id());
        }
        self
    }
}

/// An object with at least these fields.
fn with(fields: &[&str]) -> Value {
    json!({ "type": "object", "required": fields })
}

/// Adds the operations and what they give.
pub(super) fn add(document: &mut Value) {
    let fault = || json!({ "application/json": { "schema": schema("Fault") } });
    let mut both = fault();
    both["application/problem+json"] = json!({ "schema": schema("HttpProblem") });
    merge(
        document,
        &["components", "responses"],
        json!({
            "Fault": { "description": "What went wrong, as Flow Studio says it", "content": fault() },
            "FaultOrProblem": { "description": "What went wrong, as Flow Studio or the server itself says it", "content": both },
        }),
    );
    merge(document, &["components", "schemas"], schemas());
    lists(document);
    runs(document);
    steps(document);
    configuration(document);
}

fn lists(document: &mut Value) {
    let whole = |usual: u64| json!({ "type": "integer", "default": usual });
    read("listRuns", "The runs: examples first, then the newest")
        .query(
            "limit",
            "How many; numbers beyond 1 to 500 are taken for the nearest",
            whole(100),
        )
        .query(
            "offset",
            "How many to skip; a negative number is taken for 0",
            whole(0),
        )
        .json("200", "A page of runs", schema("RunPage"))
        .also(&[("422", "Fault")])
        .at(document, "get", "/api/runs");
    let name = || json!({ "type": "string", "minLength": 1, "maxLength": 255 });
    read("compareRuns", "A flow of two runs, beside each other")
        .query("run_a", "One run", name())
        .required()
        .query("run_b", "The other run", name())
        .required()
        .query("flow", "The flow", name())
        .required()
        .json(
            "200",
            "Step by step",
            with(&["run_a", "run_b", "flow", "flow_status", "steps", "summary"]),
        )
        .at(document, "get", "/api/runs/compare");
    read(
        "listExemplars",
        "Runs that people marked as ones to learn from",
    )
    .json("200", "Their `meta.json`, with `run_id`", with(&["runs"]))
    .at(document, "get", "/api/runs/exemplars");
    write(
        "startRun",
        "Always refused: `/api/v1/executions` starts workflows",
    )
    .at(document, "post", "/api/run");
    read("listBackends", "What made the runs that are here")
        .json("200", "The backends", with(&["backends"]))
        .at(document, "get", "/api/backends");
}

#[expect(clippy::too_many_lines, reason = "one address after the other")]
fn runs(document: &mut Value) {
    const ONE: [&str; 1] = ["id"];
    const FLOW: [&str; 2] = ["id", "flow"];
    read("getRun", "One run")
        .ids(&ONE)
        .json(
            "200",
            "The row of the list, with `flows`, `error` and `meta`",
            schema("RunRow"),
        )
        .at(document, "get", "/api/runs/{id}");
    write(
        "markExemplar",
        "Marks a run as one to learn from, or takes the mark away",
    )
    .ids(&ONE)
    .query(
        "is_exemplar",
        "Whether it is one",
        json!({ "type": "boolean", "default": true }),
    )
    .json(
        "200",
        "The mark is kept",
        with(&["status", "run_id", "is_exemplar"]),
    )
    .also(&[("422", "Fault")])
    .at(document, "post", "/api/runs/{id}/exemplar");
    write(
        "cancelRun",
        "Always refused: other programs execute these runs",
    )
    .ids(&ONE)
    .also(&[("409", "Fault")])
    .at(document, "post", "/api/runs/{id}/cancel");
    let rows: [Row<'_>; 8] = [
        (
            "getRunSummary",
            "summary",
            "What is there and what is missing, flow by flow",
            &ONE[..],
            &["run_id", "run_type", "path", "flows"][..],
        ),
        (
            "getRunSdlc",
            "sdlc",
            "How each flow went",
            &ONE,
            &["run_id", "sdlc"],
        ),
        (
            "getRunTimeline",
            "timeline",
            "What happened when",
            &ONE,
            &["run_id", "events"],
        ),
        (
            "getRunTiming",
            "timing",
            "How long flows and steps took",
            &ONE,
            &["run_id", "timing", "message"],
        ),
        (
            "getFlow",
            "flows/{flow}",
            "One flow of a run",
            &FLOW,
            &["status", "steps"],
        ),
        (
            "getFlowTiming",
            "flows/{flow}/timing",
            "How long the steps of a flow took",
            &FLOW,
            &["run_id", "flow_key", "timing", "message"],
        ),
        (
            "listRunTranscripts",
            "transcripts",
            "The transcripts of a run",
            &ONE,
            &["run_id", "transcripts", "total", "issues"],
        ),
        (
            "listRunReceipts",
            "receipts",
            "The receipts of a run, with totals",
            &ONE,
            &["run_id", "receipts", "totals", "total", "issues"],
        ),
    ];
    for (id, path, summary, ids, fields) in rows {
        read(id, summary)
            .ids(ids)
            .json("200", summary, with(fields))
            .at(document, "get", &format!("/api/runs/{{id}}/{path}"));
    }
    read("getRunWisdom", "The bytes of `wisdom/wisdom_summary.json`")
        .ids(&ONE)
        .json("200", "The file", json!({}))
        .at(document, "get", "/api/runs/{id}/wisdom/summary");
    let event_id = || json!({ "type": "string", "pattern": "^[0-9]{1,15}(\\.[0-9]{1,9})?$" });
    read(
        "getRunEvents",
        "What happened: a list, or a stream with `Accept: text/event-stream`",
    )
    .ids(&ONE)
    .query(
        "limit",
        "How many at most in a list; numbers beyond 1 to 50,000 are taken for the nearest",
        json!({ "type": "integer" }),
    )
    .query("after", "In a list: only behind this id", event_id())
    .gives(
        "200",
        "Events",
        &[
            ("application/json", with(&["run_id", "events"])),
            ("text/event-stream", json!({ "type": "string" })),
        ],
    )
    .also(&[("422", "Fault")])
    .at(document, "get", "/api/runs/{id}/events");
}

fn steps(document: &mut Value) {
    let which = |op: Op| {
        let name = || json!({ "type": "string", "maxLength": 255 });
        op.query("agent", "Only files of this agent", name())
            .query("engine", "Only files of this engine", name())
            .query(
                "iteration",
                "Which time the step ran, from 1",
                json!({ "type": "integer", "minimum": 1, "maximum": 1_000_000 }),
            )
            .also(&[("422", "Fault")])
    };
    let path = |rest: &str| format!("/api/runs/{{id}}/flows/{{flow}}/steps/{{step}}{rest}");
    read("getStep", "One step of a flow")
        .ids(&STEP)
        .json(
            "200",
            "What is there and what is missing",
            with(&["step_id", "status"]),
        )
        .at(document, "get", &path(""));
    which(
        read(
            "getStepTranscript",
            "The transcript of a step, as a list of messages",
        )
        .ids(&STEP),
    )
    .json(
        "200",
        "The latest iteration, unless told",
        with(&[
            "run_id",
            "flow_key",
            "step_id",
            "transcript_file",
            "messages",
        ]),
    )
    .also(&[("413", "Fault")])
    .at(document, "get", &path("/transcript"));
    which(read("getStepReceipt", "The receipt of a step").ids(&STEP))
        .json(
            "200",
            "The latest iteration, unless told",
            with(&["run_id", "flow_key", "step_id", "receipt", "receipt_file"]),
        )
        .at(document, "get", &path("/receipt"));
    let iteration = |op: Op| {
        op.query(
            "iteration",
            "Which time the step ran, from 1",
            json!({ "type": "integer", "minimum": 1, "maximum": 1_000_000 }),
        )
        .also(&[("422", "Fault")])
    };
    iteration(
        read(
            "getRawTranscript",
            "The transcript of a step, byte for byte",
        )
        .ids(&["id", "flow", "step", "agent", "engine"]),
    )
    .gives(
        "200",
        "The file",
        &[("application/x-ndjson", json!({ "type": "string" }))],
    )
    .at(
        document,
        "get",
        "/api/runs/{id}/transcript/{flow}/{step}/{agent}/{engine}",
    );
    iteration(
        read("getRawReceipt", "The receipt of a step, byte for byte")
            .ids(&["id", "flow", "step", "agent"]),
    )
    .json("200", "The file", json!({}))
    .at(
        document,
        "get",
        "/api/runs/{id}/receipt/{flow}/{step}/{agent}",
    );
}

fn configuration(document: &mut Value) {
    read("getStudioHealth", "Flows and agents of the newest 200 runs")
        .json(
            "200",
            "What there is",
            with(&[
                "status",
                "version",
                "timestamp",
                "flows",
                "agents",
                "capabilities",
            ]),
        )
        .at(document, "get", "/api/health");
    read("listFlows", "The flows of the newest 200 runs")
        .json("200", "The flows", with(&["flows"]))
        .at(document, "get", "/api/flows");
    read("getFlowDefinition", "The steps and agents of a flow")
        .ids(&["flow"])
        .json("200", "The flow", with(&["flow", "steps", "agents"]))
        .at(document, "get", "/api/flows/{flow}");
    read(
        "getFlowGraph",
        "Steps, and the agents that are assigned to them",
    )
    .ids(&["flow"])
    .json("200", "The graph", with(&["nodes", "edges"]))
    .at(document, "get", "/api/graph/{flow}");
}

fn schemas() -> Value {
    let text = || json!({ "type": ["string", "null"] });
    json!({
        "Fault": {
            "description": "What went wrong: `error` in words, with `hint` and what there is instead; or `detail`, as FastAPI has it",
            "anyOf": [
                { "type": "object", "required": ["error"], "properties": { "error": { "type": "string" }, "hint": { "type": "string" } } },
                { "type": "object", "required": ["detail"], "properties": { "detail": { "type": ["string", "array"] } } },
            ],
        },
        "RunPage": {
            "type": "object", "required": ["runs", "total", "limit", "offset", "has_more"],
            "properties": {
                "runs": { "type": "array", "items": schema("RunRow") },
                "total": { "type": "integer", "minimum": 0 },
                "limit": { "type": "integer", "minimum": 1, "maximum": 500 },
                "offset": { "type": "integer", "minimum": 0 },
                "has_more": { "type": "boolean" },
            },
        },
        "RunRow": {
            "description": "A run. What is unknown is null; `backend` is left out then", "type": "object",
            "required": ["run_id", "run_type", "path", "title", "description", "tags", "is_exemplar", "status", "created_at",
                "started_at", "completed_at", "tokens", "cost_usd", "simulated", "recorded"],
            "properties": {
                "run_id": { "type": "string" }, "run_type": { "type": "string", "enum": ["active", "example"] },
                "path": { "type": "string" }, "title": text(), "description": text(),
                "tags": { "type": "array", "items": { "type": "string" } }, "is_exemplar": { "type": "boolean" },
                "status": text(), "created_at": text(), "started_at": text(), "completed_at": text(),
                "tokens": { "type": ["object", "null"] }, "cost_usd": { "type": ["number", "null"] },
                "simulated": { "type": ["boolean", "null"] }, "recorded": { "type": "boolean" },
                "backend": { "type": "string" },
            },
        },
    })
}
