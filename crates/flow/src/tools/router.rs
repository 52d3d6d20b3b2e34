//! From the name of a tool to its result, with everything on the way recorded.

use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, OnceLock};
use std::task::Poll;
use std::time::{Duration, Instant};

use jsonschema::Validator;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::{ToolOutcome, ToolRecorder, ToolRequest, ToolSpec, Toolbox};

/// How long a tool may take unless something else is said.
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(600);

/// The most bytes of output that a model is given unless something else is said. Quipu's own tools give at most
/// 5 MiB and a note.
const DEFAULT_OUTPUT: usize = (5 << 20) + 4096;

/// How much is said of an input that does not fit.
const MAX_COMPLAINT: usize = 2000;

/// What may be called, for how long, and how much a model is given of the output.
#[derive(Debug, Clone)]
pub struct Rules {
    /// The tools that may be called; all when it is `None`. `*` in a name means anything.
    pub allow: Option<Vec<String>>,
    /// Tools that may not be called, whatever is allowed. `*` in a name means anything.
    pub deny: Vec<String>,
    /// How long a call may take.
    pub timeout: Duration,
    /// The most bytes of output that a model is given.
    pub most_output: usize,
}

impl Default for Rules {
    fn default() -> Self {
        Self {
            allow: None,
            deny: Vec::new(),
            timeout: DEFAULT_TIMEOUT,
            most_output: DEFAULT_OUTPUT,
        }
    }
}

/// The router. Cheap to clone.
#[derive(Clone, Default)]
pub struct Router {
    inner: Arc<Inner>,
}

#[derive(Default)]
struct Inner {
    boxes: Vec<Arc<dyn Toolbox>>,
    tools: Vec<Tool>,
    by_name: HashMap<String, usize>,
    rules: Rules,
}

struct Tool {
    spec: ToolSpec,
    toolbox: usize,
    /// Made when the tool is first called; `None` where its schema is not one.
    validator: OnceLock<Option<Validator>>,
}

impl std::fmt::Debug for Router {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Router")
            .field("boxes", &self.inner.boxes.len())
            .field("tools", &self.inner.by_name.keys())
            .finish_non_exhaustive()
    }
}

impl Router {
    /// A router over these, in the order in which names are looked up.
    pub fn new(boxes: Vec<Arc<dyn Toolbox>>) -> Self {
        Self::with_rules(boxes, Rules::default())
    }

    /// A router that keeps to rules. Where two toolboxes have a tool of the same name, the first one has it.
    pub fn with_rules(boxes: Vec<Arc<dyn Toolbox>>, rules: Rules) -> Self {
        let mut tools = Vec::new();
        let mut by_name = HashMap::new();
        for (toolbox, tools_of) in boxes.iter().enumerate() {
            for spec in tools_of.tools() {
                if by_name.contains_key(&spec.name) {
                    continue;
                }
                by_name.insert(spec.name.clone(), tools.len());
                tools.push(Tool {
                    spec,
                    toolbox,
                    validator: OnceLock::new(),
                });
            }
        }
        Self {
            inner: Arc::new(Inner {
                boxes,
                tools,
                by_name,
                rules,
            }),
        }
    }

    /// The tools that may be called.
    pub fn tools(&self) -> Vec<ToolSpec> {
        let tools = self.inner.tools.iter();
        let allowed = tools.filter(|tool| self.inner.refusal(&tool.spec.name).is_none());
        allowed.map(|tool| tool.spec.clone()).collect()
    }

    /// Calls a tool. Whatever happens, a call and a result are recorded, and there is an outcome for the model.
    pub async fn call(
        &self,
        request: ToolRequest,
        recorder: &dyn ToolRecorder,
        cancel: &CancellationToken,
    ) -> ToolOutcome {
        let began = Instant::now();
        recorder.call(&request);
        // The result is recorded also when nobody waits for it any more.
        let mut open = Open {
            request: &request,
            recorder,
            began,
            done: false,
        };
        let outcome = self.inner.outcome(&request, recorder, cancel).await;
        let outcome = self.inner.capped(&request, recorder, outcome);
        open.done = true;
        recorder.result(&request, &outcome, began.elapsed());
        outcome
    }
}

/// A call whose result is not recorded yet.
struct Open<'a> {
    request: &'a ToolRequest,
    recorder: &'a dyn ToolRecorder,
    began: Instant,
    done: bool,
}

impl Drop for Open<'_> {
    fn drop(&mut self) {
        if !self.done && !std::thread::panicking() {
            let outcome = ToolOutcome::failed("cancelled");
            let attributes = about(self.request, json!({}));
            self.recorder
                .harness("tool_lifecycle", "cancelled", attributes);
            self.recorder
                .result(self.request, &outcome, self.began.elapsed());
        }
    }
}

impl Inner {
    async fn outcome(
        &self,
        request: &ToolRequest,
        recorder: &dyn ToolRecorder,
        cancel: &CancellationToken,
    ) -> ToolOutcome {
        let Some(tool) = self.by_name.get(&request.name).map(|&it| &self.tools[it]) else {
            let like = self.like(&request.name);
            let attributes = about(request, json!({"did_you_mean": like}));
            recorder.harness("tool_lifecycle", "unknown_tool", attributes);
            let hint = like.map(|it| format!("; did you mean {it}?"));
            let name = &request.name;
            return ToolOutcome::failed(format!(
                "there is no tool {name:?}{}",
                hint.unwrap_or_default()
            ));
        };
        if let Some(rule) = self.refusal(&request.name) {
            let attributes = about(request, json!({"rule": rule}));
            recorder.harness("guardrail", "tool_denied", attributes);
            let name = &request.name;
            return ToolOutcome::failed(format!("{name} may not be called here: {rule}"));
        }
        if let Some(complaint) = complaint(tool, request, recorder) {
            let attributes = about(request, json!({"errors": complaint}));
            recorder.harness("tool_lifecycle", "invalid_input", attributes);
            return ToolOutcome::failed(format!("the input does not fit the tool: {complaint}"));
        }
        let toolbox = &self.boxes[tool.toolbox];
        let outcome = self.run(toolbox.as_ref(), request, recorder, cancel).await;
        for remark in toolbox.remarks() {
            recorder.harness(remark.category, remark.name, remark.attributes);
        }
        outcome
    }

    /// Calls a tool until it ends, its time is up or it is cancelled.
    async fn run(
        &self,
        toolbox: &dyn Toolbox,
        request: &ToolRequest,
        recorder: &dyn ToolRecorder,
        cancel: &CancellationToken,
    ) -> ToolOutcome {
        let ended = cancel.child_token();
        let _end_with_this = ended.clone().drop_guard();
        let mut work = toolbox.call(request, &ended);
        // A tool that panics is a tool that failed.
        let work = std::future::poll_fn(|cx| {
            catch_unwind(AssertUnwindSafe(|| work.as_mut().poll(cx)))
                .map_or_else(|_| Poll::Ready(None), |poll| poll.map(Some))
        });
        let timeout = self.rules.timeout;
        let (name, attributes, why) = tokio::select! {
            biased;
            outcome = work => match outcome {
                Some(outcome) => return outcome,
                None => ("panicked", json!({}), "the tool broke down".to_owned()),
            },
            () = cancel.cancelled() => ("cancelled", json!({}), "cancelled".to_owned()),
            () = tokio::time::sleep(timeout) => (
                "timeout",
                json!({"seconds": timeout.as_secs_f64()}),
                format!("no result within {timeout:?}"),
            ),
        };
        recorder.harness("tool_lifecycle", name, about(request, attributes));
        ToolOutcome::failed(why)
    }

    /// The rule by which a tool may not be called.
    fn refusal(&self, name: &str) -> Option<String> {
        let denied = self.rules.deny.iter().find(|it| fits(it, name));
        if let Some(rule) = denied {
            return Some(format!("{rule} is on the list of denied tools"));
        }
        let allow = self.rules.allow.as_ref()?;
        let allowed = allow.iter().any(|it| fits(it, name));
        (!allowed).then(|| "it is not on the list of allowed tools".to_owned())
    }

    /// The name of a tool that is much like this one.
    fn like(&self, name: &str) -> Option<&str> {
        let near = |it: &&Tool| {
            strsim::normalized_damerau_levenshtein(
                &it.spec.name.to_lowercase(),
                &name.to_lowercase(),
            )
        };
        let callable = self.tools.iter();
        let callable = callable.filter(|it| self.refusal(&it.spec.name).is_none());
        let best = callable.max_by(|a, b| near(a).total_cmp(&near(b)))?;
        (near(&best) >= 0.6).then_some(best.spec.name.as_str())
    }

    /// The outcome with no more output than a model is given.
    fn capped(
        &self,
        request: &ToolRequest,
        recorder: &dyn ToolRecorder,
        mut outcome: ToolOutcome,
    ) -> ToolOutcome {
        let most = self.rules.most_output;
        let text = match &outcome.output {
            Value::String(text) if text.len() > most => text.clone(),
            Value::String(_) | Value::Null | Value::Bool(_) | Value::Number(_) => return outcome,
            other => {
                let text = other.to_string();
                if text.len() <= most {
                    return outcome;
                }
                text
            }
        };
        let kept = head(&text, most);
        let attributes = about(request, json!({"bytes": text.len(), "kept": kept.len()}));
        recorder.harness("tool_lifecycle", "output_cut", attributes);
        let more = text.len() - kept.len();
        outcome.output = Value::String(format!("{kept}\n[{more} more bytes were left out]"));
        outcome
    }
}

/// What does not fit about the input of a call.
fn complaint(tool: &Tool, request: &ToolRequest, recorder: &dyn ToolRecorder) -> Option<String> {
    let mut bad_schema = None;
    let validator = tool.validator.get_or_init(|| {
        let made = jsonschema::validator_for(&tool.spec.input_schema);
        made.map_err(|error| bad_schema = Some(error.to_string()))
            .ok()
    });
    if let Some(why) = bad_schema {
        let attributes = about(request, json!({"error": head(&why, MAX_COMPLAINT)}));
        recorder.harness("tool_lifecycle", "bad_schema", attributes);
    }
    misfits(validator.as_ref()?, &request.input)
}

/// What does not fit a schema about a value, in so many words.
pub(crate) fn misfits(validator: &Validator, value: &Value) -> Option<String> {
    let mut all = String::new();
    for error in validator.iter_errors(value) {
        let place = error.instance_path().to_string();
        let text = if place.is_empty() {
            error.to_string()
        } else {
            format!("{place}: {error}")
        };
        if !all.is_empty() {
            all.push_str("; ");
        }
        all.push_str(head(&text, MAX_COMPLAINT));
        if all.len() >= MAX_COMPLAINT {
            break;
        }
    }
    (!all.is_empty()).then_some(all)
}

/// The attributes of a harness event about a call.
fn about(request: &ToolRequest, mut attributes: Value) -> Value {
    if let Value::Object(map) = &mut attributes {
        map.insert("tool".to_owned(), request.name.clone().into());
        map.insert("call_id".to_owned(), request.call_id.as_str().into());
    }
    attributes
}

/// The first bytes of a text, at most so many, in whole characters.
pub(crate) fn head(text: &str, most: usize) -> &str {
    let mut end = most.min(text.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

/// Whether a name fits one of a list of tools, in which `*` means anything.
fn fits(pattern: &str, name: &str) -> bool {
    let Some((first, rest)) = pattern.split_once('*') else {
        return pattern == name;
    };
    let Some(mut name) = name.strip_prefix(first) else {
        return false;
    };
    let (middle, last) = rest.rsplit_once('*').unwrap_or(("", rest));
    for part in middle.split('*') {
        match name.find(part) {
            Some(at) => name = &name[at + part.len()..],
            None => return false,
        }
    }
    name.ends_with(last)
}
