//! Replies that were written down beforehand, or that an agent once gave.

use std::collections::{BTreeMap, HashSet};
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use quipu_model::{Body, Content, Event, Json, Money, Usage};
use serde::Deserialize;
use serde_json::Value;

/// Replies, each to be given once, in order.
#[derive(Debug, Default)]
pub struct Script {
    replies: Vec<Reply>,
    used: Mutex<HashSet<usize>>,
}

/// One reply.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Reply {
    /// The step that it is for; any step when it is `None`.
    pub step: Option<String>,
    /// The answer.
    pub text: String,
    /// What the model thought before.
    pub thinking: Option<String>,
    /// Tools that are called before the answer.
    pub tools: Vec<ReplyTool>,
    /// Tokens; none unless given.
    pub usage: Option<Usage>,
    /// What it costs. Without it, tokens cost what they cost, and none cost nothing.
    pub cost: Option<Money>,
    /// The model; `<provider>-stub` unless given.
    pub model: Option<String>,
    /// Why the agent fails.
    pub fail: Option<String>,
    /// With which exit code it fails; without one, the agent says that it failed.
    pub exit_code: Option<i32>,
    /// How long it takes.
    pub delay_ms: u64,
    /// Whether it is given again and again.
    pub repeat: bool,
}

/// A tool call of a reply.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ReplyTool {
    /// The tool.
    pub name: String,
    /// The id of the call.
    pub id: Option<String>,
    /// The arguments.
    pub input: Value,
    /// What it gave back. With neither this nor an error, the tool is really called where there is a router.
    pub output: Option<Value>,
    /// Why it failed.
    pub error: Option<String>,
}

impl ReplyTool {
    pub(super) fn has_result(&self) -> bool {
        self.output.is_some() || self.error.is_some()
    }
}

/// Why a script could not be read.
#[derive(Debug, thiserror::Error)]
#[error("{file}{}: {why}", line.map_or_else(String::new, |line| format!(" line {line}")))]
pub struct ScriptError {
    /// The file.
    pub file: String,
    /// The line, where one is to blame.
    pub line: Option<usize>,
    /// What is wrong.
    pub why: String,
}

/// A reply as it is written down.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    step: Option<String>,
    #[serde(default)]
    text: String,
    thinking: Option<String>,
    #[serde(default)]
    tools: Vec<WrittenTool>,
    usage: Option<WrittenUsage>,
    cost_usd: Option<Value>,
    model: Option<String>,
    fail: Option<String>,
    exit_code: Option<i32>,
    #[serde(default)]
    delay_ms: u64,
    #[serde(default)]
    repeat: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenTool {
    name: String,
    id: Option<String>,
    #[serde(default)]
    input: Value,
    output: Option<Value>,
    error: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenUsage {
    input: Option<u64>,
    cache_read: Option<u64>,
    cache_write: Option<u64>,
    output: Option<u64>,
    reasoning: Option<u64>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Replies {
    replies: Vec<Written>,
}

impl Script {
    /// These replies.
    pub fn new(replies: Vec<Reply>) -> Self {
        Self {
            replies,
            used: Mutex::default(),
        }
    }

    /// Reads a script: JSON lines (`.jsonl`), a reply each, or YAML with a list of
    /// replies, as such or under the name `replies`.
    ///
    /// # Errors
    ///
    /// What is wrong, and in which line.
    pub fn parse(file: &Path, text: &str) -> Result<Self, ScriptError> {
        let name = file.display().to_string();
        let wrong = |line, why: String| ScriptError {
            file: name.clone(),
            line,
            why,
        };
        let ending = file.extension().and_then(|ending| ending.to_str());
        if matches!(ending, Some("jsonl" | "ndjson")) {
            let mut replies = Vec::new();
            for (index, line) in text.lines().enumerate() {
                if line.trim().is_empty() {
                    continue;
                }
                let reply = serde_json::from_str::<Written>(line)
                    .map_err(|error| error.to_string())
                    .and_then(Written::reply);
                replies.push(reply.map_err(|why| wrong(Some(index + 1), why))?);
            }
            return Ok(Self::new(replies));
        }
        // A list as such, or under the name `replies`.
        let begin = text
            .lines()
            .map(str::trim)
            .find(|line| !line.is_empty() && !line.starts_with('#') && !line.starts_with("---"));
        let written = if begin.is_none_or(|line| line.starts_with(['-', '['])) {
            serde_saphyr::from_str::<Vec<Written>>(text)
        } else {
            serde_saphyr::from_str::<Replies>(text).map(|written| written.replies)
        };
        let written = written.map_err(|error| {
            let line = error.location();
            let line = line.and_then(|at| usize::try_from(at.line()).ok());
            wrong(line, error.to_string())
        })?;
        let replies: Result<_, String> = written.into_iter().map(Written::reply).collect();
        Ok(Self::new(replies.map_err(|why| wrong(None, why))?))
    }

    /// The replies that agents gave in a transcript: what was said and called between one prompt and the next, by
    /// step. Those of a session that has no steps are for any step.
    pub fn from_events(events: impl IntoIterator<Item = Event>) -> Self {
        let mut making = Making::default();
        for event in events {
            making.take(event);
        }
        making.finish()
    }

    /// How many replies there are.
    pub fn len(&self) -> usize {
        self.replies.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.replies.is_empty()
    }

    /// The next reply for a step.
    ///
    /// # Errors
    ///
    /// When all replies for it were given.
    pub fn next(&self, step: &str) -> Result<Reply, String> {
        let mut used = self.used.lock().unwrap_or_else(PoisonError::into_inner);
        let is_for = |reply: &Reply| reply.step.as_deref().is_none_or(|it| it == step);
        let left = |(index, reply): &(usize, &Reply)| is_for(reply) && !used.contains(index);
        // What is written for the step itself comes before what is for any.
        let own = |(_, reply): &(usize, &Reply)| reply.step.is_some();
        let next = self.replies.iter().enumerate().filter(left).find(own);
        let next = next.or_else(|| self.replies.iter().enumerate().find(left));
        let Some((index, reply)) = next else {
            let given = self.replies.iter().filter(|reply| is_for(reply)).count();
            return Err(format!(
                "the script has no reply left for step {step:?}; it had {given}"
            ));
        };
        if !reply.repeat {
            used.insert(index);
        }
        Ok(reply.clone())
    }

    /// Passes over the next reply for a step, which was given before a run was resumed.
    pub fn skip(&self, step: &str) {
        self.next(step).ok();
    }
}

impl Written {
    fn reply(self) -> Result<Reply, String> {
        let cost = match &self.cost_usd {
            None | Some(Value::Null) => None,
            Some(cost) => {
                let text = cost
                    .as_str()
                    .map_or_else(|| cost.to_string(), str::to_owned);
                Some(
                    Money::parse(&text)
                        .ok_or(format!("cost_usd is {text}, not a sum of dollars"))?,
                )
            }
        };
        Ok(Reply {
            step: self.step.filter(|step| step != "*"),
            text: self.text,
            thinking: self.thinking,
            tools: self.tools.into_iter().map(WrittenTool::tool).collect(),
            usage: self.usage.map(|usage| Usage {
                input: usage.input,
                cache_read: usage.cache_read,
                cache_write: usage.cache_write,
                cache_write_1h: None,
                output: usage.output,
                reasoning: usage.reasoning,
            }),
            cost,
            model: self.model,
            fail: self.fail,
            exit_code: self.exit_code,
            delay_ms: self.delay_ms,
            repeat: self.repeat,
        })
    }
}

impl WrittenTool {
    fn tool(self) -> ReplyTool {
        ReplyTool {
            name: self.name,
            id: self.id,
            input: self.input,
            output: self.output,
            error: self.error,
        }
    }
}

/// Replies in the making, one for each step at a time.
#[derive(Default)]
struct Making {
    open: BTreeMap<(String, Vec<u64>, u64), Reply>,
    done: Vec<Reply>,
}

impl Making {
    fn take(&mut self, event: Event) {
        let place = event.place;
        let key = (place.path, place.iterations, place.attempt);
        let is_own = event.annotations.subagent_id.is_none();
        match event.body {
            Body::UserMessage(_) | Body::StepCompleted(_) | Body::RunCompleted(_) if is_own => {
                self.close(&key);
            }
            Body::AssistantMessage(blocks) if is_own => {
                let reply = self.reply(key);
                for block in blocks {
                    match block.content {
                        Content::Text(text) => line(&mut reply.text, &text),
                        Content::Thinking(text) if !text.is_empty() => {
                            line(reply.thinking.get_or_insert_default(), &text);
                        }
                        Content::ToolUse { name, id, input } => {
                            reply.call(name, id.as_str(), input.as_ref());
                        }
                        Content::ToolResult { id, content } => {
                            reply.result(id.as_str(), content.as_ref(), None);
                        }
                        _ => {}
                    }
                }
            }
            Body::ToolCall(call) if is_own => {
                let reply = self.reply(key);
                reply.call(call.name, call.call_id.as_str(), call.input.as_ref());
            }
            Body::ToolResult(result) if is_own => {
                let reply = self.reply(key);
                let id = result.call_id.as_str();
                reply.result(id, result.output.as_ref(), result.error);
            }
            _ => {}
        }
    }

    fn reply(&mut self, key: (String, Vec<u64>, u64)) -> &mut Reply {
        let step = Some(key.0.clone()).filter(|step| !step.is_empty());
        self.open.entry(key).or_insert_with(|| Reply {
            step,
            ..Reply::default()
        })
    }

    fn close(&mut self, key: &(String, Vec<u64>, u64)) {
        self.done.extend(self.open.remove(key));
    }

    fn finish(mut self) -> Script {
        self.done
            .extend(std::mem::take(&mut self.open).into_values());
        Script::new(self.done)
    }
}

impl Reply {
    /// A call; one that two channels report counts once.
    fn call(&mut self, name: String, id: &str, input: Option<&Json>) {
        let is_known = |tool: &ReplyTool| !id.is_empty() && tool.id.as_deref() == Some(id);
        if self.tools.iter().any(is_known) {
            return;
        }
        self.tools.push(ReplyTool {
            name,
            id: Some(id.to_owned()).filter(|id| !id.is_empty()),
            input: parsed(input).unwrap_or_default(),
            output: None,
            error: None,
        });
    }

    fn result(&mut self, id: &str, output: Option<&Json>, error: Option<String>) {
        let call = self
            .tools
            .iter_mut()
            .find(|tool| tool.id.as_deref() == Some(id));
        if let Some(call) = call
            && !call.has_result()
        {
            // A result without content is one nevertheless: the tool is not called again.
            call.output = Some(parsed(output).unwrap_or_default());
            call.error = error;
        }
    }
}

fn parsed(json: Option<&Json>) -> Option<Value> {
    json.and_then(|json| serde_json::from_str(json.get()).ok())
}

fn line(text: &mut String, more: &str) {
    if !text.is_empty() {
        text.push('\n');
    }
    text.push_str(more);
}
