//! What an engine writes that only pretends to work: three lines and a receipt without tokens.
//!
//! It is for trying out a flow, and for tests of what reads one. It is exactly what is documented, so it says
//! that it succeeded; `claude-stub` is how it is told from work that was done.

use std::time::Duration;

use quipu_model::Timestamp;

use super::names;
use super::write::{message_line, receipt_of_stub};

/// A step to pretend.
#[derive(Debug, Clone, Copy)]
pub struct Step<'a> {
    /// The run.
    pub run_id: &'a str,
    /// The flow.
    pub flow_key: &'a str,
    /// The step.
    pub step_id: &'a str,
    /// The agent.
    pub agent_key: &'a str,
    /// What the agent is to do.
    pub role: &'a str,
    /// When it begins. It takes a tenth of a second.
    pub started_at: Timestamp,
}

/// A file of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Written {
    /// Its name, relative to the run.
    pub name: String,
    /// What is in it.
    pub bytes: Vec<u8>,
}

const TOOK: Duration = Duration::from_millis(100);

impl Step<'_> {
    pub(super) fn completed_at(&self) -> Timestamp {
        self.started_at
            .saturating_add(TOOK)
            .unwrap_or(Timestamp::MAX)
    }

    fn stem(&self) -> String {
        format!(
            "{}-{}",
            names::escape(self.step_id),
            names::escape(self.agent_key)
        )
    }

    pub(super) fn transcript_name(&self) -> String {
        format!("{}-claude.jsonl", self.stem())
    }
}

/// The files of a pretended step: its transcript and its receipt.
pub fn files(step: &Step<'_>) -> [Written; 2] {
    let Step {
        step_id,
        agent_key,
        role,
        started_at,
        ..
    } = step;
    let mut lines = Vec::new();
    let asked = format!("Executing step {step_id} with agent {agent_key}");
    message_line(&mut lines, *started_at, "system", &asked);
    message_line(
        &mut lines,
        *started_at,
        "user",
        &format!("Step role: {role}"),
    );
    let done = format!(
        "[STUB] Completed step {step_id}. In production, this would contain the actual Claude response."
    );
    message_line(&mut lines, step.completed_at(), "assistant", &done);
    let flow = names::escape(step.flow_key);
    [
        Written {
            name: format!("{flow}/llm/{}", step.transcript_name()),
            bytes: lines,
        },
        Written {
            name: format!("{flow}/receipts/{}.json", step.stem()),
            bytes: receipt_of_stub(step).into_bytes(),
        },
    ]
}
