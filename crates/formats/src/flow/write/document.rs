//! Documents of a run, as the program itself lays them out: two spaces a level, no line end at the end.

use quipu_model::hex;
use quipu_model::{Header, Timestamp};
use sha2::Digest as _;

use super::told::Told;
use super::unit::{Done, elapsed_ms};
use super::{Key, UNKNOWN};
use crate::flow::receipt::is_success;
use crate::flow::{SCHEMA_VERSION, time};

/// An object that is being written.
#[derive(Debug, Default)]
pub(in crate::flow) struct Object {
    text: String,
    level: usize,
    keys: Vec<String>,
}

impl Object {
    /// Adds a field.
    pub(in crate::flow) fn raw(&mut self, key: &str, value: &str) {
        self.keys.push(key.to_owned());
        self.text
            .push_str(if self.text.is_empty() { "{" } else { "," });
        self.text.push('\n');
        self.text.push_str(&"  ".repeat(self.level + 1));
        self.text.push_str(quipu_model::Json::string(key).get());
        self.text.push_str(": ");
        self.text.push_str(value);
    }

    /// Whether it has a field.
    fn has(&self, key: &str) -> bool {
        self.keys.iter().any(|known| known == key)
    }

    /// Adds a text.
    pub(in crate::flow) fn text(&mut self, key: &str, value: &str) {
        self.raw(key, quipu_model::Json::string(value).get());
    }

    /// Adds a text, if there is one.
    pub(in crate::flow) fn some(&mut self, key: &str, value: Option<&str>) {
        if let Some(value) = value {
            self.text(key, value);
        }
    }

    /// Adds a time.
    pub(in crate::flow) fn time(&mut self, key: &str, at: Timestamp) {
        self.text(key, &time::format(at));
    }

    /// Adds an object.
    pub(in crate::flow) fn object(&mut self, key: &str, fill: impl FnOnce(&mut Self)) {
        let mut inner = Self {
            level: self.level + 1,
            ..Self::default()
        };
        fill(&mut inner);
        let inner = inner.end();
        self.raw(key, &inner);
    }

    /// The whole object.
    pub(in crate::flow) fn end(mut self) -> String {
        if self.text.is_empty() {
            return "{}".to_owned();
        }
        self.text.push('\n');
        self.text.push_str(&"  ".repeat(self.level));
        self.text.push('}');
        self.text
    }
}

/// What every receipt begins with.
fn begin(made: &mut Object, engine: &str, model: &str, key: &Key, run_id: &str) {
    made.text("engine", engine);
    made.text("model", model);
    made.text("step_id", &key.step);
    made.text("flow_key", &key.flow);
    made.text("run_id", run_id);
    made.text("agent_key", &key.agent);
}

fn times(made: &mut Object, started: Timestamp, completed: Timestamp) {
    made.time("started_at", started);
    made.time("completed_at", completed);
    made.raw("duration_ms", &elapsed_ms(started, completed).to_string());
}

/// The receipt of a step: first what is documented, then what is added.
pub(super) fn receipt(header: &Header, key: &Key, done: &Done, transcript_path: &str) -> Vec<u8> {
    let mut made = Object::default();
    let model = done.model.as_deref().unwrap_or(UNKNOWN);
    let told = done.told.as_ref();
    let engine = told.and_then(Told::engine).map(str::to_owned);
    let engine = engine.unwrap_or_else(|| format!("{}-step", done.engine));
    begin(&mut made, &engine, model, key, header.run_id.as_str());
    times(&mut made, done.started, done.completed);
    let native = told.and_then(Told::native_status);
    let failed = done.error.is_some() || native.is_some_and(|word| !is_success(word));
    made.text("status", if failed { "failed" } else { "succeeded" });
    let tokens = &done.tokens;
    made.object("tokens", |made| {
        let (prompt, completion) = (tokens.prompt(), tokens.completion());
        made.raw("prompt", &prompt.to_string());
        made.raw("completion", &completion.to_string());
        made.raw("total", &prompt.saturating_add(completion).to_string());
        for (key, count) in [
            ("cache_read", tokens.cache_read),
            ("cache_write", tokens.cache_write),
            ("cache_write_1h", tokens.cache_write_1h),
            ("reasoning", tokens.reasoning),
        ] {
            if let Some(count) = count {
                made.raw(key, &count.to_string());
            }
        }
    });
    made.text("transcript_path", transcript_path);
    made.some("native_status", native);
    made.some("error", done.error.as_deref());
    made.raw("tool_calls_count", &done.tool_calls.to_string());
    for (key, sum) in [("cost_usd", done.cost), ("cumulative_run_usd", done.spent)] {
        // What is not known is not zero.
        made.raw(
            key,
            &sum.map_or_else(|| "null".to_owned(), |sum| sum.to_string()),
        );
    }
    let at = &header.environment;
    made.some("git_sha", at.commit.as_deref());
    made.some("git_branch", at.git_branch.as_deref());
    made.some("workspace_root", at.cwd.as_deref());
    // A run is not a session of its engine: where nothing names one, there is none to write.
    let origin = header.origin.as_ref();
    let own = origin.and_then(|origin| origin.session_id.as_deref());
    let session = match told {
        Some(told) => told.session_id(),
        None if header.agent() == Some(crate::flow::PROGRAM) => None,
        None => own.filter(|own| *own != header.run_id.as_str()),
    };
    made.some("session_id", session);
    let parent = header.parent_run_id.as_ref();
    made.some("parent_run_id", parent.map(quipu_model::RunId::as_str));
    made.raw("iteration", &done.iteration.to_string());
    made.some(
        "step_name",
        done.name.as_deref().filter(|name| *name != key.step),
    );
    made.some(
        "step_kind",
        done.kind.as_deref().filter(|kind| *kind != "agent"),
    );
    if let Some(result) = &done.result {
        made.raw("result", result.get());
    }
    for (key, value) in told.map(Told::more).unwrap_or_default() {
        if !made.has(key) {
            made.raw(key, &value);
        }
    }
    for (key, value) in &done.more {
        if !made.has(key) {
            made.raw(key, value);
        }
    }
    if done.missing().is_none() {
        let hash = sha2::Sha256::digest(&done.transcript);
        made.text("transcript_sha256", &hex::encode(&hash));
    }
    made.text("schema_version", SCHEMA_VERSION);
    made.end().into_bytes()
}

/// The receipt of a stub, with nothing in it that is not documented.
pub(in crate::flow) fn receipt_of_stub(step: &crate::flow::stub::Step<'_>) -> String {
    let key = Key {
        flow: step.flow_key.to_owned(),
        step: step.step_id.to_owned(),
        agent: step.agent_key.to_owned(),
    };
    let mut made = Object::default();
    begin(&mut made, "claude-step", "claude-stub", &key, step.run_id);
    times(&mut made, step.started_at, step.completed_at());
    made.text("status", "succeeded");
    made.object("tokens", |made| {
        for key in crate::flow::receipt::COUNTS {
            made.raw(key, "0");
        }
    });
    made.text(
        "transcript_path",
        &format!("llm/{}", step.transcript_name()),
    );
    made.end()
}
