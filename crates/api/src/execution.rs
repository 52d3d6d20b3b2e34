//! Runs of workflows that the server starts, lists and ends, and the workflows that there are.

use std::collections::BTreeMap;

use crate::describe::document;
use crate::{Time, Usd};

document! {
    /// How a run is.
    pub words enum ExecutionStatus {
        /// It runs.
        Running,
        /// It waits for an approval. No process runs.
        Paused,
        /// It ended as it should.
        Succeeded,
        /// It did not get to a good end.
        Failed,
        /// It was cancelled.
        Cancelled,
        /// Its process died before it could say how the run ended. It can be resumed.
        Lost,
    }
}

document! {
    /// A run in a list.
    pub struct ExecutionRow {
        /// Its id; also the id of its transcript.
        pub id: String,
        /// Its workflow.
        pub workflow: String,
        /// How it is.
        pub status: ExecutionStatus,
        /// Who started it: a user of the system, or the id of a key.
        pub started_by: String,
        /// When it began.
        pub started_at: Time,
        /// When it ended; null while it runs, and where nobody knows.
        pub ended_at: Option<Time>,
        /// Whether this server runs it, or ran it.
        pub here: bool,
        /// Where to go from here.
        pub links: ExecutionLinks,
    }
}

document! {
    /// A page of runs, the newest first.
    pub struct ExecutionPage {
        /// The runs.
        pub items: Vec<ExecutionRow>,
        /// What to send as `cursor` for the next page; null on the last one.
        pub next: Option<String>,
    }
}

document! {
    /// A run: how far it came, and what it waits for.
    pub struct Execution {
        /// Its id; also the id of its transcript.
        pub id: String,
        /// Its workflow.
        pub workflow: String,
        /// The workflow's file.
        pub workflow_file: Option<String>,
        /// How it is.
        pub status: ExecutionStatus,
        /// Who started it: a user of the system, or the id of a key.
        pub started_by: String,
        /// When it began.
        pub started_at: Time,
        /// When it ended; null while it runs, and where nobody knows.
        pub ended_at: Option<Time>,
        /// The directory in which its steps begin.
        pub root: Option<String>,
        /// Its inputs as texts; secrets are masked.
        pub inputs: BTreeMap<String, String>,
        /// Whether this server runs it, or ran it.
        pub here: bool,
        /// The other process that runs it, where the system says which.
        pub pid: Option<u64>,
        /// The steps that run now.
        pub steps: Vec<ExecutionStep>,
        /// The approval that it waits for.
        pub pause: Option<ExecutionPause>,
        /// Questions that wait for a person's answer.
        pub questions: Vec<ExecutionQuestion>,
        /// What it cost so far, all executions and called runs included.
        pub cost: ExecutionCost,
        /// How it ended; null while it runs, and where nobody knows.
        pub outcome: Option<ExecutionOutcome>,
        /// Where to go from here.
        pub links: ExecutionLinks,
    }
}

document! {
    /// A step that runs.
    pub struct ExecutionStep {
        /// Its path, with the passes through the loops around it.
        pub path: String,
        /// What it does: `command`, `agent`, …
        pub kind: String,
        /// Since when.
        pub started_at: Time,
    }
}

document! {
    /// An approval that a run waits for.
    pub struct ExecutionPause {
        /// The step.
        pub path: String,
        /// What is asked.
        pub message: String,
        /// Who may approve; anybody who may write when it is empty.
        pub approvers: Vec<String>,
        /// What whoever approves has to send. Null for callers who may not write, and where this server did not give it out:
        /// resuming the run asks again, with a new token.
        pub token: Option<String>,
        /// Why the last answer was not taken.
        pub refused: Option<String>,
    }
}

document! {
    /// A question that waits for a person's answer.
    pub struct ExecutionQuestion {
        /// The step that asks.
        pub path: String,
        /// What the agent said last; the first 64 KiB of it.
        pub text: String,
        /// Since when it waits.
        pub asked_at: Time,
    }
}

document! {
    /// What a run cost.
    pub struct ExecutionCost {
        /// What it cost, as far as it is known.
        pub dollars: Usd,
        /// How many calls have no known price; null while it is not known.
        pub calls_without_price: Option<u64>,
        /// The tokens it used.
        pub tokens: u64,
    }
}

document! {
    /// How a run ended.
    pub struct ExecutionOutcome {
        /// The exit code that `quipu run` would have.
        pub exit_code: Option<u64>,
        /// What the terminal step said.
        pub message: Option<String>,
        /// Why it failed.
        pub error: Option<String>,
    }
}

document! {
    /// Where to go from a run.
    pub struct ExecutionLinks {
        /// The run itself.
        pub execution: String,
        /// Its transcript.
        pub transcript: String,
        /// Its events as they happen.
        pub stream: String,
    }
}

document! {
    /// A workflow that can be run by its name.
    pub struct WorkflowRow {
        /// Its name: `name`, or `pack/name`.
        pub name: String,
        /// Its file.
        pub path: String,
    }
}

document! {
    /// What is known of a workflow.
    pub struct WorkflowAbout {
        /// The name that runs it.
        pub name: String,
        /// Its file.
        pub path: String,
        /// Its version.
        pub version: Option<String>,
        /// What it is for.
        pub description: Option<String>,
        /// What it can be given.
        pub inputs: Vec<WorkflowInput>,
        /// Its steps, in the order of the file.
        pub steps: Vec<WorkflowStep>,
        /// Where it begins.
        pub initial: String,
        /// The ways between its steps, as text.
        pub graph: String,
        /// The same for Mermaid.
        pub mermaid: String,
        /// What is wrong with it, or looks so.
        pub findings: Vec<WorkflowFinding>,
    }
}

document! {
    /// An input of a workflow.
    pub struct WorkflowInput {
        /// Its name.
        pub name: String,
        /// `string`, `integer` or `boolean`.
        pub kind: String,
        /// What it is for.
        pub description: Option<String>,
        /// Whether it has to be given.
        pub required: bool,
        /// What it is when it is not given; masked for secrets.
        pub default: Option<String>,
        /// Whether its value is a secret, which is masked wherever it is kept.
        pub secret: bool,
    }
}

document! {
    /// A step of a workflow.
    pub struct WorkflowStep {
        /// Its name.
        pub name: String,
        /// What it does: `command`, `agent`, …
        pub kind: String,
        /// What it is for.
        pub description: Option<String>,
    }
}

document! {
    /// Something that is wrong with a workflow, or looks so.
    pub struct WorkflowFinding {
        /// `error`: it does not run. `warning`: it runs, but perhaps not as it is meant.
        pub severity: String,
        /// A word for programs, such as `unknown-key`.
        pub code: String,
        /// The line, from 1; null where it is about the whole file.
        pub line: Option<u64>,
        /// The column, from 1.
        pub column: Option<u64>,
        /// What is wrong.
        pub message: String,
        /// What to do.
        pub hint: Option<String>,
    }
}

document! {
    /// Whether a workflow can run.
    pub struct WorkflowChecked {
        /// Whether it can.
        pub valid: bool,
        /// What is wrong with it, or looks so.
        pub findings: Vec<WorkflowFinding>,
    }
}
