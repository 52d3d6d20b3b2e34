//! The fields of a line.

/// Every field of an event, the additive ones included.
pub(super) const EVENT: &[&str] = &[
    "seq",
    "run_id",
    "parent_run_id",
    "child_run_id",
    "type",
    "path",
    "iteration",
    "timestamp",
    "payload",
    "native_id",
    "parent_id",
    "subagent_id",
    "model",
    "usage",
    "cost_usd",
    "model_call",
    "duration_ms",
    "status",
    "child",
    "attachments",
    "source",
    "flags",
    "check",
];
