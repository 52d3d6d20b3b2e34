//! Checks a trajectory against the rules of ATIF.
//!
//! What keys an object may have, of which type and since which version, is a table (`schema.rs`); what has to
//! do with other parts of the document is code. Findings are capped per rule, so that a hostile document does
//! not make a long list.

mod rules;
mod schema;

use std::borrow::Cow;
use std::collections::{BTreeMap, HashSet};

use quipu_model::Timestamp;
use quipu_model::json::{Kind, Node, Tape};

pub use quipu_exchange::verify::Severity;
pub use rules::Rule;
use schema::Shape;

/// How deep a document may nest. Common readers stop there.
const DEEPEST: usize = 128;

/// Findings kept per rule.
const KEPT_PER_RULE: usize = 100;

/// Something that is not as the format wants it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// The rule.
    pub rule: Rule,
    /// How much it matters.
    pub severity: Severity,
    /// Where in the document: `steps/3/observation`. Empty for the document itself.
    pub path: String,
    /// What is the matter, in words.
    pub message: String,
}

/// Checks a document. Nothing is found in one that is as it should be.
///
/// ```
/// use quipu_formats::atif;
///
/// let text = r#"{"schema_version":"ATIF-v1.7","agent":{"name":"a","version":"1"},
///     "steps":[{"step_id":2,"source":"user","message":"hi"}]}"#;
/// let found = atif::verify(text);
/// assert_eq!(found[0].rule, atif::verify::Rule::StepOrder);
/// assert_eq!(found[0].path, "steps/0/step_id");
/// ```
pub fn verify(text: &str) -> Vec<Finding> {
    let mut check = Check::default();
    let mut tape = Tape::new();
    match tape.read(text, DEEPEST) {
        Ok(document) => check.trajectory(document, ""),
        Err(error) => check.found(Rule::Syntax, "", error.to_string()),
    }
    check.findings
}

#[derive(Default)]
struct Check {
    findings: Vec<Finding>,
    counts: BTreeMap<Rule, usize>,
    /// The version of the document at hand: 7 for 1.7.
    version: u32,
}

/// What a step may refer to.
struct Around<'a> {
    trajectories: HashSet<Cow<'a, str>>,
}

/// What the steps of a trajectory come to.
#[derive(Default)]
struct Sums {
    prompt: u128,
    completion: u128,
    cached: u128,
    steps: u128,
}

fn join(at: &str, key: impl std::fmt::Display) -> String {
    if at.is_empty() {
        key.to_string()
    } else {
        format!("{at}/{key}")
    }
}

fn items<'a>(node: Node<'a>, key: &str) -> impl Iterator<Item = (usize, Node<'a>)> {
    let list = node.get(key).filter(|list| list.kind() == Kind::List);
    list.into_iter().flat_map(Node::items).enumerate()
}

fn count(node: Option<Node<'_>>, key: &str) -> Option<u128> {
    node?.get(key)?.raw().get().parse().ok()
}

impl Check {
    fn found(&mut self, rule: Rule, path: &str, message: impl Into<String>) {
        let count = self.counts.entry(rule).or_default();
        *count += 1;
        if *count <= KEPT_PER_RULE {
            self.findings.push(Finding {
                rule,
                severity: rule.severity(),
                path: path.to_owned(),
                message: message.into(),
            });
        }
    }

    /// Holds an object to its table. `false` when it is no object.
    fn shape(&mut self, node: Node<'_>, at: &str, shape: &Shape) -> bool {
        if node.kind() != Kind::Object {
            self.found(Rule::WrongType, at, "is not an object");
            return false;
        }
        let mut seen = HashSet::new();
        for (key, value) in node.fields() {
            let key = key.to_text_lossy();
            let here = join(at, &key);
            if !seen.insert(key.clone().into_owned()) {
                self.found(Rule::DuplicateKey, &here, "stands there twice");
            }
            let Some(field) = shape.iter().find(|field| field.key == key) else {
                self.found(Rule::UnknownKey, &here, "is no key of the format");
                continue;
            };
            if value.is_null() && !field.required {
                continue;
            }
            if !field.kind.fits(value) {
                let message = format!("is not {}", field.kind.as_str());
                self.found(Rule::WrongType, &here, message);
            }
            if field.since > self.version {
                let message = format!("came with version 1.{}", field.since);
                self.found(Rule::TooNew, &here, message);
            }
        }
        for field in shape.iter().filter(|field| field.required) {
            if !seen.contains(field.key) {
                let message = format!("has no {}", field.key);
                self.found(Rule::MissingKey, at, message);
            }
        }
        true
    }

    /// Trajectories stand inside each other no deeper than the document nests.
    fn trajectory(&mut self, node: Node<'_>, at: &str) {
        let version = node.text("schema_version").unwrap_or_default();
        let minor = version.strip_prefix("ATIF-v1.");
        self.version = minor.and_then(|minor| minor.parse().ok()).unwrap_or(8);
        if !self.shape(node, at, schema::TRAJECTORY) {
            return;
        }
        let is_known = minor.is_some_and(|minor| matches!(minor.as_bytes(), [b'0'..=b'8']));
        if !is_known && !version.is_empty() {
            let message = format!("{version:?} is not known");
            self.found(Rule::Version, &join(at, "schema_version"), message);
        }
        if let Some(agent) = node.get("agent") {
            self.shape(agent, &join(at, "agent"), schema::AGENT);
        }
        let mut around = Around {
            trajectories: HashSet::new(),
        };
        for (n, child) in items(node, "subagent_trajectories") {
            let here = join(at, format_args!("subagent_trajectories/{n}"));
            match child.text("trajectory_id") {
                None => self.found(Rule::MissingKey, &here, "has no trajectory_id"),
                Some(id) => {
                    if !around.trajectories.insert(id) {
                        self.found(Rule::DuplicateTrajectory, &here, "has the id of another");
                    }
                }
            }
            let version = self.version;
            self.trajectory(child, &here);
            self.version = version;
        }
        let mut sums = Sums::default();
        let mut expected = 1;
        for (n, step) in items(node, "steps") {
            let here = join(at, format_args!("steps/{n}"));
            self.step(step, &here, &around, &mut sums);
            let id = step.get("step_id").and_then(|id| id.as_u64());
            if let Some(id) = id {
                if id != expected {
                    let message = format!("is {id}, after {}", expected - 1);
                    self.found(Rule::StepOrder, &join(&here, "step_id"), message);
                }
                expected = id;
            }
            expected = expected.saturating_add(1);
        }
        if sums.steps == 0 && node.get("steps").is_some() {
            self.found(Rule::NoSteps, &join(at, "steps"), "is empty");
        }
        if let Some(of) = node.get("final_metrics").filter(|of| !of.is_null()) {
            self.totals(of, &join(at, "final_metrics"), &sums);
        }
    }

    fn totals(&mut self, node: Node<'_>, at: &str, sums: &Sums) {
        if !self.shape(node, at, schema::FINAL_METRICS) {
            return;
        }
        for (key, sum) in [
            ("total_prompt_tokens", sums.prompt),
            ("total_completion_tokens", sums.completion),
            ("total_cached_tokens", sums.cached),
            ("total_steps", sums.steps),
        ] {
            if let Some(said) = count(Some(node), key)
                && said != sum
            {
                let message = format!("is {said}, and its steps come to {sum}");
                self.found(Rule::Totals, &join(at, key), message);
            }
        }
    }

    fn step(&mut self, node: Node<'_>, at: &str, around: &Around<'_>, sums: &mut Sums) {
        sums.steps += 1;
        if !self.shape(node, at, schema::STEP) {
            return;
        }
        let has = |key: &str| node.get(key).is_some_and(|value| !value.is_null());
        let source = node.text("source").unwrap_or_default();
        if !matches!(&*source, "system" | "user" | "agent") {
            let message = format!("is {source:?}, not system, user or agent");
            self.found(Rule::Source, &join(at, "source"), message);
        } else if source != "agent" {
            for key in schema::AGENT_ONLY.iter().filter(|key| has(key)) {
                self.found(Rule::AgentOnly, &join(at, key), "is for steps of an agent");
            }
        }
        let is_zero = |n: Node<'_>| n.as_u64() == Some(0);
        if node.get("llm_call_count").is_some_and(is_zero)
            && (has("metrics") || has("reasoning_content"))
        {
            let message = "is 0, and there are tokens or reasoning";
            self.found(Rule::NoModelCall, &join(at, "llm_call_count"), message);
        }
        if let Some(time) = node.text("timestamp")
            && !is_time(&time)
        {
            let message = format!("{time:?} is no time");
            self.found(Rule::Time, &join(at, "timestamp"), message);
        }
        if let Some(message) = node.get("message") {
            self.content(message, &join(at, "message"));
        }
        self.metrics(node, at, sums);
        let mut calls = HashSet::new();
        for (n, call) in items(node, "tool_calls") {
            let here = join(at, format_args!("tool_calls/{n}"));
            self.shape(call, &here, schema::TOOL_CALL);
            if let Some(id) = call.text("tool_call_id")
                && !calls.insert(id)
            {
                self.found(Rule::DuplicateCall, &here, "has the id of another call");
            }
        }
        if let Some(observation) = node.get("observation").filter(|it| !it.is_null()) {
            let here = join(at, "observation");
            if self.shape(observation, &here, schema::OBSERVATION) {
                self.results(observation, &here, &calls, around);
            }
        }
    }

    fn metrics(&mut self, step: Node<'_>, at: &str, sums: &mut Sums) {
        let metrics = step.get("metrics").filter(|metrics| !metrics.is_null());
        let Some(of) = metrics else {
            return;
        };
        let here = join(at, "metrics");
        self.shape(of, &here, schema::METRICS);
        let prompt = count(metrics, "prompt_tokens");
        let cached = count(metrics, "cached_tokens");
        if prompt.is_some() && cached > prompt {
            let message = "is more than prompt_tokens, which it is a part of";
            self.found(Rule::Cached, &join(&here, "cached_tokens"), message);
        }
        let completion = count(metrics, "completion_tokens");
        for (sum, more) in [
            (&mut sums.prompt, prompt),
            (&mut sums.cached, cached),
            (&mut sums.completion, completion),
        ] {
            *sum = sum.saturating_add(more.unwrap_or(0));
        }
    }

    fn results(
        &mut self,
        observation: Node<'_>,
        at: &str,
        calls: &HashSet<Cow<'_, str>>,
        around: &Around<'_>,
    ) {
        for (n, result) in items(observation, "results") {
            let here = join(at, format_args!("results/{n}"));
            if !self.shape(result, &here, schema::RESULT) {
                continue;
            }
            if let Some(id) = result.text("source_call_id")
                && !calls.contains(&id)
            {
                let message = format!("{id:?} is no call of this step");
                self.found(Rule::Observation, &join(&here, "source_call_id"), message);
            }
            if let Some(content) = result.get("content").filter(|it| !it.is_null()) {
                self.content(content, &join(&here, "content"));
            }
            for (n, of) in items(result, "subagent_trajectory_ref") {
                let here = join(&here, format_args!("subagent_trajectory_ref/{n}"));
                if self.shape(of, &here, schema::REF) {
                    self.reference(of, &here, around);
                }
            }
        }
    }

    fn reference(&mut self, node: Node<'_>, at: &str, around: &Around<'_>) {
        let (id, path) = (node.text("trajectory_id"), node.text("trajectory_path"));
        match (id, path) {
            // Before 1.7 a session was what was referred to.
            (None, None) if self.version >= 7 => {
                self.found(Rule::Reference, at, "names no trajectory");
            }
            (Some(id), None) if !around.trajectories.contains(&id) => {
                let message = format!("{id:?} is not among subagent_trajectories");
                self.found(Rule::Reference, &join(at, "trajectory_id"), message);
            }
            _ => {}
        }
    }

    fn content(&mut self, node: Node<'_>, at: &str) {
        if node.kind() != Kind::List {
            return;
        }
        if self.version < 6 {
            self.found(Rule::TooNew, at, "parts came with version 1.6");
        }
        for (n, part) in node.items().enumerate() {
            let here = join(at, n);
            let kind = part.text("type").unwrap_or_default();
            let (shape, source) = match &*kind {
                "text" => (schema::TEXT, None),
                "image" => (schema::MEDIA, Some(schema::IMAGE)),
                "audio" => (schema::MEDIA, Some(schema::AUDIO)),
                _ => {
                    let message = format!("is of the type {kind:?}");
                    self.found(Rule::Part, &here, message);
                    continue;
                }
            };
            if kind == "audio" && self.version < 8 {
                self.found(Rule::TooNew, &here, "audio came with version 1.8");
            }
            if !self.shape(part, &here, shape) {
                continue;
            }
            let Some((source, shape)) = part.get("source").zip(source) else {
                continue;
            };
            let here = join(&here, "source");
            self.shape(source, &here, shape);
            self.media(source, &here, &kind);
        }
    }

    fn media(&mut self, source: Node<'_>, at: &str, kind: &str) {
        let media_type = source.text("media_type").unwrap_or_default();
        let is_known = match kind {
            "image" => schema::IMAGES.contains(&&*media_type),
            _ => media_type.starts_with("audio/"),
        };
        if !is_known {
            let message = format!("{media_type:?} is none of the format's");
            self.found(Rule::MediaType, &join(at, "media_type"), message);
        }
        let path = source.text("path").unwrap_or_default();
        if path.starts_with("data:") {
            let message = "is content; the format wants the path of a file";
            self.found(Rule::Inline, &join(at, "path"), message);
        }
    }
}

/// A time with or without a zone.
fn is_time(text: &str) -> bool {
    text.parse::<Timestamp>().is_ok() || format!("{text}Z").parse::<Timestamp>().is_ok()
}
