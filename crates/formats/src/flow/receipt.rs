//! Receipts: what a step was, how it ended and what it took.
//!
//! Six writers made receipts of one name and as many shapes, and later versions added more. What is common
//! has a field here; every other field is kept as it stands ([`Receipt::rest`]).

use quipu_model::json::{Kind, Node};
use quipu_model::{Json, Money, Usage};

use super::names;
use super::time::{self, Time};
use crate::shape::Wanted;

/// A receipt, as far as it says.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Receipt {
    /// The engine, such as `claude-step`.
    pub engine: Option<String>,
    /// The model; `claude-stub` for one that only pretends.
    pub model: Option<String>,
    /// The step.
    pub step_id: Option<String>,
    /// The flow.
    pub flow_key: Option<String>,
    /// The run.
    pub run_id: Option<String>,
    /// The agent.
    pub agent_key: Option<String>,
    /// When it began.
    pub started_at: Option<Time>,
    /// When it ended.
    pub completed_at: Option<Time>,
    /// How long it took.
    pub duration_ms: Option<u64>,
    /// `succeeded` or `failed`; others are kept as written.
    pub status: Option<String>,
    /// The word that stood in place of [`Receipt::status`] before it was one of those two.
    pub native_status: Option<String>,
    /// Tokens.
    pub tokens: Tokens,
    /// The transcript, relative to the directory of the flow.
    pub transcript_path: Option<String>,
    /// `stub`, `sdk` or `cli`.
    pub mode: Option<String>,
    /// Why it failed.
    pub error: Option<String>,
    /// Tools that were called.
    pub tool_calls: ToolCalls,
    /// The session in the agent's own terms.
    pub session_id: Option<String>,
    /// The commit.
    pub git_sha: Option<String>,
    /// The branch.
    pub git_branch: Option<String>,
    /// The directory that was worked in.
    pub workspace_root: Option<String>,
    /// What it cost.
    pub cost_usd: Option<Money>,
    /// What the run cost until then.
    pub cumulative_run_usd: Option<Money>,
    /// The SHA-256 of the transcript.
    pub transcript_sha256: Option<String>,
    /// The version of the receipt.
    pub schema_version: Option<String>,
    /// Which iteration of the step it is, from 1.
    pub iteration: Option<u64>,
    /// The run that called this one.
    pub parent_run_id: Option<String>,
    /// What the step is called, where that is not its id.
    pub step_name: Option<String>,
    /// What kind of step it is, where it is not one of an agent.
    pub step_kind: Option<String>,
    /// Where in a recorded run the step was.
    pub step_path: Option<String>,
    /// The passes through the loops around it, from 0, outermost first.
    pub iterations: Vec<u64>,
    /// Which attempt it was, from 1.
    pub attempt: Option<u64>,
    /// What the step produced.
    pub result: Option<Json>,
    /// Whether the writer says that it is of two phases (`lifecycle_mode`).
    pub lifecycle: bool,
    /// Every other field, in order.
    pub rest: Vec<(String, Json)>,
}

/// Tokens, as a receipt counts them: the prompt has what was read from caches in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Tokens {
    /// All of the prompt.
    pub prompt: Option<u64>,
    /// All that the model produced.
    pub completion: Option<u64>,
    /// Both.
    pub total: Option<u64>,
    /// Of the prompt: read from a cache.
    pub cache_read: Option<u64>,
    /// Of the prompt: written to a cache.
    pub cache_write: Option<u64>,
    /// Of what was written to a cache: kept for an hour.
    pub cache_write_1h: Option<u64>,
    /// Of the completion: reasoning.
    pub reasoning: Option<u64>,
    /// How many of these hold something that is no count, such as -1.
    pub unread: u64,
}

/// What a receipt says of tools. The field changed from a number to a list between two versions.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum ToolCalls {
    /// Nothing.
    #[default]
    Unsaid,
    /// How many there were.
    Count(u64),
    /// Each of them.
    List(Vec<Json>),
}

/// Who wrote a receipt, by what stands in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Generation {
    /// As documented, and nothing else.
    Documented,
    /// A stub.
    Stub,
    /// A stub of two phases, which names no transcript.
    StubLifecycle,
    /// The command of Claude.
    Cli,
    /// The command of Gemini.
    Gemini,
    /// The SDK, one call a step.
    SdkLegacy,
    /// The SDK, with a session.
    SdkSession,
    /// The later version, with git and tools.
    Dev,
    /// This program.
    Quipu,
}

/// What a file among receipts is. Decided by what stands in it: one of the two kinds has a name that the
/// other could have as well.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Document {
    /// The receipt of a step.
    Step(Box<Receipt>),
    /// How a prompt was put together. It says nothing of how the step went.
    Prompt {
        /// The step.
        step_id: Option<String>,
    },
    /// Something else.
    Other,
}

/// The fields that the format asks for.
pub(crate) const REQUIRED: &[(&str, Wanted)] = &[
    ("engine", Wanted::Text),
    ("model", Wanted::Text),
    ("step_id", Wanted::Text),
    ("flow_key", Wanted::Text),
    ("run_id", Wanted::Text),
    ("agent_key", Wanted::Text),
    ("started_at", Wanted::Text),
    ("completed_at", Wanted::Text),
    ("duration_ms", Wanted::Number),
    ("status", Wanted::Text),
    ("tokens", Wanted::Object),
    ("transcript_path", Wanted::Text),
];

/// The counts among the tokens that the format asks for.
pub const COUNTS: &[&str] = &["prompt", "completion", "total"];

/// What a file among receipts is.
pub fn classify(document: Node<'_>) -> Document {
    let has = |key: &str| document.get(key).is_some();
    let is_prompt = has("prompt_hash") && (has("fragment_manifest") || has("compiler_version"));
    if is_prompt && !has("status") && !has("tokens") {
        let step_id = document.text("step_id").map(Into::into);
        return Document::Prompt { step_id };
    }
    let told = ["step_id", "agent_key", "tokens", "status", "engine"];
    if told.into_iter().filter(|key| has(key)).count() >= 2 {
        return Document::Step(Box::new(Receipt::of(document)));
    }
    Document::Other
}

/// Whether a word for how a step or a run ended says that it went well. One that is not known does not: a step that was
/// skipped, or stopped, must not pass for one that was done.
pub(super) fn is_success(word: &str) -> bool {
    [
        "succeeded",
        "success",
        "ok",
        "passed",
        "completed",
        "complete",
        "done",
    ]
    .iter()
    .any(|known| word.eq_ignore_ascii_case(known))
}

impl Receipt {
    /// Reads a receipt. What is of another type than it should be is as good as not there, but kept.
    pub fn of(document: Node<'_>) -> Self {
        let mut receipt = Self::default();
        for (key, value) in document.fields() {
            let key = key.to_text_lossy();
            if !value.is_null() && !receipt.take(&key, value) {
                receipt.rest.push((key.into_owned(), value.raw().into()));
            }
        }
        receipt
    }

    /// Takes in a field; `false` when it has no place.
    fn take(&mut self, key: &str, value: Node<'_>) -> bool {
        let text = |to: &mut Option<String>| match value.as_str() {
            Some(text) => {
                *to = Some(text.into_owned());
                true
            }
            None => false,
        };
        let money = |to: &mut Option<Money>| {
            *to = (value.kind() == Kind::Number)
                .then(|| Money::parse(value.raw().get()))
                .flatten();
            to.is_some()
        };
        let time = |to: &mut Option<Time>| {
            *to = value.as_str().and_then(|text| time::parse(&text));
            to.is_some()
        };
        let count = |to: &mut Option<u64>| {
            *to = value.as_u64();
            to.is_some()
        };
        match key {
            "engine" => text(&mut self.engine),
            "model" => text(&mut self.model),
            "step_id" => text(&mut self.step_id),
            "flow_key" => text(&mut self.flow_key),
            "run_id" => text(&mut self.run_id),
            "agent_key" => text(&mut self.agent_key),
            "started_at" => time(&mut self.started_at),
            "completed_at" => time(&mut self.completed_at),
            "duration_ms" => count(&mut self.duration_ms),
            "status" => text(&mut self.status),
            "native_status" => text(&mut self.native_status),
            "tokens" => self.tokens.take(value),
            "tokens_in" => count(&mut self.tokens.prompt),
            "tokens_out" => count(&mut self.tokens.completion),
            "transcript_path" => text(&mut self.transcript_path),
            "mode" => text(&mut self.mode),
            "error" => text(&mut self.error),
            "tool_calls" | "tool_calls_count" => self.tool_calls.take(value),
            "session_id" => text(&mut self.session_id),
            "git_sha" => text(&mut self.git_sha),
            "git_branch" => text(&mut self.git_branch),
            "workspace_root" => text(&mut self.workspace_root),
            "cost_usd" => money(&mut self.cost_usd),
            "cumulative_run_usd" => money(&mut self.cumulative_run_usd),
            "transcript_sha256" => text(&mut self.transcript_sha256),
            "schema_version" => text(&mut self.schema_version),
            "iteration" => count(&mut self.iteration),
            "parent_run_id" => text(&mut self.parent_run_id),
            "step_name" => text(&mut self.step_name),
            "step_kind" => text(&mut self.step_kind),
            "step_path" => text(&mut self.step_path),
            "attempt" => count(&mut self.attempt),
            "iterations" => {
                let passes: Option<Vec<u64>> = value.items().map(|item| item.as_u64()).collect();
                let is_list = value.kind() == Kind::List;
                match passes.filter(|_| is_list) {
                    Some(passes) => {
                        self.iterations = passes;
                        true
                    }
                    None => false,
                }
            }
            "lifecycle_mode" => {
                self.lifecycle = value.as_bool() == Some(true);
                self.lifecycle
            }
            "result" => {
                self.result = Some(value.raw().into());
                true
            }
            _ => false,
        }
    }

    /// Another field, by its name.
    pub fn other(&self, key: &str) -> Option<&Json> {
        self.rest
            .iter()
            .find(|(name, _)| name == key)
            .map(|(_, value)| value)
    }

    /// Who wrote it.
    pub fn generation(&self) -> Generation {
        let has = |key: &str| self.other(key).is_some();
        let is = |field: &Option<String>, word: &str| field.as_deref() == Some(word);
        if self.transcript_sha256.is_some() {
            Generation::Quipu
        } else if self.git_sha.is_some() || matches!(self.tool_calls, ToolCalls::List(_)) {
            Generation::Dev
        } else if self.lifecycle {
            Generation::StubLifecycle
        } else if has("phases") || has("telemetry") {
            Generation::SdkSession
        } else if has("handoff_envelope_path") || has("routing_signal") {
            Generation::SdkLegacy
        } else if is(&self.mode, "cli") && !is(&self.engine, "gemini-step") {
            Generation::Cli
        } else if is(&self.engine, "gemini-step") {
            Generation::Gemini
        } else if is(&self.mode, "stub") {
            Generation::Stub
        } else {
            Generation::Documented
        }
    }

    /// Whether the events of its step say all that it says. That is true of receipts that this program wrote for a
    /// run of this agent.
    pub(super) fn is_all_told(&self, agent: Option<&str>) -> bool {
        let by = agent.or(self.model.as_deref()).unwrap_or_default();
        let engine = format!("{}-step", names::engine_of(by));
        self.generation() == Generation::Quipu
            && self.engine.as_deref() == Some(&engine)
            && self.rest.is_empty()
            && self.mode.is_none()
            && !matches!(self.tool_calls, ToolCalls::List(_))
            && self.unknown_status().is_none()
            && self.tokens.unread == 0
    }

    /// Whether nothing was done, only pretended.
    pub fn is_stub(&self) -> bool {
        let is_stub = |model: &str| model.ends_with("-stub");
        self.mode.as_deref() == Some("stub") || self.model.as_deref().is_some_and(is_stub)
    }

    /// How it ended, in the word of whoever wrote it first.
    pub fn said_status(&self) -> Option<&str> {
        self.native_status.as_deref().or(self.status.as_deref())
    }

    /// The status, where it is another than the two that are known.
    pub fn unknown_status(&self) -> Option<&str> {
        self.said_status().filter(|_| self.succeeded().is_none())
    }

    /// Whether it ended well, where that is said.
    pub fn succeeded(&self) -> Option<bool> {
        match self.said_status()? {
            "succeeded" => Some(true),
            "failed" => Some(false),
            _ => None,
        }
    }
}

impl Tokens {
    fn take(&mut self, value: Node<'_>) -> bool {
        for (key, to) in [
            ("prompt", &mut self.prompt),
            ("completion", &mut self.completion),
            ("total", &mut self.total),
            ("cache_read", &mut self.cache_read),
            ("cache_write", &mut self.cache_write),
            ("cache_write_1h", &mut self.cache_write_1h),
            ("reasoning", &mut self.reasoning),
        ] {
            let Some(count) = value.get(key).filter(|count| !count.is_null()) else {
                continue;
            };
            *to = count.as_u64().or(*to);
            self.unread += u64::from(count.as_u64().is_none());
        }
        value.kind() == Kind::Object
    }

    /// The tokens in disjoint buckets. Zeros throughout are what writers put there that know nothing, and say
    /// nothing.
    pub fn usage(&self) -> Option<Usage> {
        let all = [self.prompt, self.completion, self.total];
        if all.into_iter().flatten().all(|n| n == 0) {
            return None;
        }
        let cached = self
            .cache_read
            .unwrap_or(0)
            .saturating_add(self.cache_write.unwrap_or(0));
        let usage = Usage {
            input: self.prompt.map(|prompt| prompt.saturating_sub(cached)),
            cache_read: self.cache_read,
            cache_write: self.cache_write,
            cache_write_1h: self.cache_write_1h,
            output: self.completion,
            reasoning: self.reasoning,
        };
        (!usage.is_empty()).then_some(usage)
    }
}

impl ToolCalls {
    fn take(&mut self, value: Node<'_>) -> bool {
        match (value.kind(), value.as_u64()) {
            (Kind::List, _) => {
                *self = Self::List(value.items().map(|item| item.raw().into()).collect());
                true
            }
            (_, Some(count)) => {
                // A list says more than its length.
                if !matches!(self, Self::List(_)) {
                    *self = Self::Count(count);
                }
                true
            }
            _ => false,
        }
    }
}
