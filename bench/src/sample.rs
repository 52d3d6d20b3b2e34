//! Events to measure with.

use quipu_model::{Body, Draft, Fidelity, Json, Place, RunId, ToolResult};
use quipu_record::{Durability, RecorderOptions};

/// The length of a sample line.
pub(crate) const LINE: usize = 500;

pub(crate) fn run_id(n: usize) -> RunId {
    RunId::new(&format!("550e8400-e29b-41d4-a716-{n:012}")).expect("a valid id")
}

/// A tool result whose line is [`LINE`] bytes long, once there are some 100,000 of them.
pub(crate) fn draft() -> Draft {
    Draft::new(
        Place::flat("build.test", 3),
        Body::ToolResult(ToolResult {
            name: "Bash".to_owned(),
            call_id: "toolu_01H8XGJWBWBAQ4Z".into(),
            input: None,
            output: Some(Json::string(&("ok: 12 tests passed\n".repeat(11) + "done"))),
            error: None,
            fidelity: Fidelity::Router,
        }),
    )
}

pub(crate) fn options(durability: Durability) -> RecorderOptions {
    RecorderOptions {
        durability,
        ..RecorderOptions::default()
    }
}
