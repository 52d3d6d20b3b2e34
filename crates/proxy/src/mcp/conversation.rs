//! Lines, understood: which are calls of tools, and which results belong to them.

use std::collections::{HashMap, VecDeque};
use std::time::{Duration, Instant};

use quipu_model::ToolCallId;
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use super::lines::{Line, Lines};

/// The most requests whose answers are waited for. The oldest are given up first.
const MAX_OPEN: usize = 10_000;

/// The longest name and id of a request that is waited for.
const MAX_NAME: usize = 1024;

/// How much is shown of a line that is not a message.
const MAX_SHOWN: usize = 200;

/// Who said something.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Side {
    /// The agent, to the server.
    Agent,
    /// The server, to the agent.
    Server,
}

impl Side {
    /// The word for it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Agent => "agent",
            Self::Server => "server",
        }
    }

    fn other(self) -> Self {
        match self {
            Self::Agent => Self::Server,
            Self::Server => Self::Agent,
        }
    }
}

/// A call of a tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Call {
    /// Who calls. Most often the agent; the protocol allows both.
    pub from: Side,
    /// The tool, as the server names it.
    pub name: String,
    /// The id of the call: the model's where the agent says it beside the call, else `mcp-1`, `mcp-2`, … in the order
    /// of the calls. MCP's own ids are used again after an answer.
    pub call_id: ToolCallId,
    /// The arguments as they were sent: a JSON text. Only with the call itself, not with what comes of it: they may be
    /// large.
    pub input: Option<String>,
}

/// Something that passed.
#[derive(Debug)]
pub enum Seen<'a> {
    /// A tool is called.
    Call(&'a Call),
    /// A call has its result.
    Result {
        /// The call.
        call: &'a Call,
        /// The result or the error as it was sent: a JSON text.
        output: &'a str,
        /// Why it failed; `None` when it did not.
        error: Option<String>,
        /// The time between the two.
        took: Duration,
    },
    /// Whoever called does not want the result any more. One may come nevertheless.
    Cancelled {
        /// The call.
        call: &'a Call,
        /// Why, where that is said.
        reason: Option<String>,
    },
    /// Who the two are and which tools there are: `initialize`, `server/discover`, `tools/list`, and the answers.
    About {
        /// Who says it.
        from: Side,
        /// The method.
        method: &'a str,
        /// Whether it is the answer.
        is_answer: bool,
        /// The message as it was sent: a JSON text.
        message: &'a str,
    },
    /// A line that is not a message, or not one that can be followed.
    Odd {
        /// Who sent it.
        from: Side,
        /// What is odd about it.
        why: &'static str,
        /// How many bytes it has.
        bytes: u64,
        /// Its beginning.
        start: String,
    },
    /// A line that is longer than what is looked at. It was passed on.
    TooLong {
        /// Who sent it.
        from: Side,
        /// How many bytes it has.
        bytes: u64,
    },
    /// A call that had no result when the conversation ended.
    Unanswered(&'a Call),
}

/// What passes between an agent and a server, understood.
#[derive(Debug, Default)]
pub struct Conversation {
    agent: Lines,
    server: Lines,
    state: State,
}

#[derive(Debug, Default)]
struct State {
    open: HashMap<Key, Open>,
    order: VecDeque<(Key, u64)>,
    calls: u64,
    requests: u64,
}

/// Who asked, and the id as it was written.
type Key = (Side, String);

#[derive(Debug)]
struct Open {
    asked: Asked,
    since: Instant,
    number: u64,
}

#[derive(Debug)]
enum Asked {
    Call(Call),
    About(&'static str),
}

#[derive(Deserialize)]
struct Message<'a> {
    #[serde(borrow, default)]
    id: Option<&'a RawValue>,
    #[serde(default)]
    method: Option<String>,
    #[serde(borrow, default)]
    params: Option<&'a RawValue>,
    #[serde(borrow, default)]
    result: Option<&'a RawValue>,
    #[serde(borrow, default)]
    error: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct CallParams<'a> {
    name: String,
    #[serde(borrow, default)]
    arguments: Option<&'a RawValue>,
    #[serde(borrow, default, rename = "_meta")]
    meta: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Cancelled<'a> {
    #[serde(borrow, default, rename = "requestId")]
    request_id: Option<&'a RawValue>,
    #[serde(default)]
    reason: Option<String>,
}

const ABOUT: [&str; 3] = ["initialize", "server/discover", "tools/list"];

impl Conversation {
    /// A conversation of which lines of at most so many bytes are looked at.
    pub fn new(most: usize) -> Self {
        Self {
            agent: Lines::new(most),
            server: Lines::new(most),
            state: State::default(),
        }
    }

    /// Takes bytes that one side sent, and shows what they say.
    pub fn push(&mut self, from: Side, bytes: &[u8], see: &mut dyn FnMut(&Seen<'_>)) {
        let (lines, state) = self.of(from);
        lines.push(bytes, &mut |line| state.line(from, line, see));
    }

    /// One side sends no more.
    pub fn end_of(&mut self, from: Side, see: &mut dyn FnMut(&Seen<'_>)) {
        let (lines, state) = self.of(from);
        lines.finish(&mut |line| state.line(from, line, see));
    }

    /// The conversation has ended: shows the calls that have no result.
    pub fn finish(&mut self, see: &mut dyn FnMut(&Seen<'_>)) {
        for side in [Side::Agent, Side::Server] {
            self.end_of(side, see);
        }
        let mut left: Vec<Open> = self.state.open.drain().map(|it| it.1).collect();
        left.sort_by_key(|it| it.number);
        for open in left {
            if let Asked::Call(call) = open.asked {
                see(&Seen::Unanswered(&call));
            }
        }
    }

    fn of(&mut self, from: Side) -> (&mut Lines, &mut State) {
        let lines = match from {
            Side::Agent => &mut self.agent,
            Side::Server => &mut self.server,
        };
        (lines, &mut self.state)
    }
}

impl State {
    fn line(&mut self, from: Side, line: Line<'_>, see: &mut dyn FnMut(&Seen<'_>)) {
        let line = match line {
            Line::Whole(line) => line.trim_ascii(),
            Line::TooLong(bytes) => return see(&Seen::TooLong { from, bytes }),
        };
        if line.is_empty() {
            return;
        }
        let odd = |why| Seen::Odd {
            from,
            why,
            bytes: line.len() as u64,
            start: shown(line),
        };
        let Ok(text) = std::str::from_utf8(line) else {
            return see(&odd("it is not UTF-8"));
        };
        if text.starts_with('[') {
            // A batch, as the protocol of 2025-03-26 allows.
            let Ok(all) = serde_json::from_str::<Vec<&RawValue>>(text) else {
                return see(&odd("it is not JSON"));
            };
            for one in all {
                self.message(from, one.get(), see);
            }
            return;
        }
        self.message(from, text, see);
    }

    fn message(&mut self, from: Side, text: &str, see: &mut dyn FnMut(&Seen<'_>)) {
        let odd = |why| Seen::Odd {
            from,
            why,
            bytes: text.len() as u64,
            start: shown(text.as_bytes()),
        };
        let Ok(message) = serde_json::from_str::<Message<'_>>(text) else {
            return see(&odd("it is not a JSON-RPC message"));
        };
        let id = message.id.filter(|it| it.get() != "null");
        match (&message.method, id) {
            (Some(method), Some(id)) => self.request(from, method, id, &message, text, see),
            (Some(method), None) => self.notification(from, method, &message, see),
            (None, Some(id)) if message.result.is_some() || message.error.is_some() => {
                self.answer(from, id, &message, text, see);
            }
            _ => see(&odd("it is not a JSON-RPC message")),
        }
    }

    fn request(
        &mut self,
        from: Side,
        method: &str,
        id: &RawValue,
        message: &Message<'_>,
        text: &str,
        see: &mut dyn FnMut(&Seen<'_>),
    ) {
        let asked = if method == "tools/call" {
            let params = message.params.map_or("", RawValue::get);
            let params = serde_json::from_str::<CallParams<'_>>(params).ok();
            let params =
                params.filter(|it| it.name.len() <= MAX_NAME && id.get().len() <= MAX_NAME);
            let Some(params) = params else {
                return see(&Seen::Odd {
                    from,
                    why: "it calls a tool without a name or id that can be kept",
                    bytes: text.len() as u64,
                    start: shown(text.as_bytes()),
                });
            };
            self.calls += 1;
            let said = params.meta.and_then(|it| models_id(it.get()));
            let call_id = said.unwrap_or_else(|| format!("mcp-{}", self.calls));
            let mut call = Call {
                from,
                name: params.name,
                call_id: call_id.into(),
                input: params.arguments.map(|it| it.get().to_owned()),
            };
            see(&Seen::Call(&call));
            call.input = None;
            Asked::Call(call)
        } else if let Some(method) = ABOUT.into_iter().find(|it| *it == method) {
            if id.get().len() > MAX_NAME {
                return;
            }
            see(&Seen::About {
                from,
                method,
                is_answer: false,
                message: text,
            });
            Asked::About(method)
        } else {
            return;
        };
        self.wait(from, id, asked, see);
    }

    /// Waits for the answer to a request.
    fn wait(&mut self, from: Side, id: &RawValue, asked: Asked, see: &mut dyn FnMut(&Seen<'_>)) {
        self.requests += 1;
        let number = self.requests;
        let key = (from, id.get().to_owned());
        self.order.push_back((key.clone(), number));
        let open = Open {
            asked,
            since: Instant::now(),
            number,
        };
        let replaced = self.open.insert(key, open);
        let mut given_up = Vec::from_iter(replaced);
        while self.order.len() > MAX_OPEN {
            let Some((key, number)) = self.order.pop_front() else {
                break;
            };
            // An id may be used again after its answer.
            if self.open.get(&key).is_some_and(|it| it.number == number) {
                given_up.extend(self.open.remove(&key));
            }
        }
        for open in given_up {
            if let Asked::Call(call) = open.asked {
                see(&Seen::Unanswered(&call));
            }
        }
    }

    fn notification(
        &mut self,
        from: Side,
        method: &str,
        message: &Message<'_>,
        see: &mut dyn FnMut(&Seen<'_>),
    ) {
        if method != "notifications/cancelled" {
            return;
        }
        let params = message.params.map_or("", RawValue::get);
        let Ok(params) = serde_json::from_str::<Cancelled<'_>>(params) else {
            return;
        };
        let Some(id) = params.request_id else { return };
        let open = self.open.get(&(from, id.get().to_owned()));
        if let Some(Asked::Call(call)) = open.map(|it| &it.asked) {
            see(&Seen::Cancelled {
                call,
                reason: params.reason,
            });
        }
    }

    /// Answers to requests that are not looked at are not looked at either.
    fn answer(
        &mut self,
        from: Side,
        id: &RawValue,
        message: &Message<'_>,
        text: &str,
        see: &mut dyn FnMut(&Seen<'_>),
    ) {
        let key = (from.other(), id.get().to_owned());
        let Some(open) = self.open.remove(&key) else {
            return;
        };
        match open.asked {
            Asked::About(method) => see(&Seen::About {
                from,
                method,
                is_answer: true,
                message: text,
            }),
            Asked::Call(call) => {
                let output = message
                    .error
                    .or(message.result)
                    .map_or("null", RawValue::get);
                let error = match (message.error, message.result) {
                    (Some(error), _) => Some(rpc_error(error.get())),
                    (None, Some(result)) => tool_error(result.get()),
                    (None, None) => None,
                };
                see(&Seen::Result {
                    call: &call,
                    output,
                    error,
                    took: open.since.elapsed(),
                });
            }
        }
    }
}

/// The model's id of a call, where the agent says it beside the call.
fn models_id(meta: &str) -> Option<String> {
    let meta: serde_json::Map<String, Value> = serde_json::from_str(meta).ok()?;
    meta.iter().find_map(|(key, value)| {
        let key = key.rsplit('/').next().unwrap_or(key);
        let known = ["toolUseId", "tool_use_id", "toolCallId", "tool_call_id"];
        let value = value
            .as_str()
            .filter(|it| (1..=MAX_NAME).contains(&it.len()))?;
        known.contains(&key).then(|| value.to_owned())
    })
}

fn rpc_error(error: &str) -> String {
    #[derive(Deserialize)]
    struct Error {
        code: Option<i64>,
        message: Option<String>,
    }
    let said = serde_json::from_str::<Error>(error);
    let (code, message) = said.map_or((None, None), |it| (it.code, it.message));
    let message = message.unwrap_or_else(|| "it failed".to_owned());
    code.map_or(message.clone(), |code| format!("{message} ({code})"))
}

/// Why a tool failed, where its result says that it did.
fn tool_error(result: &str) -> Option<String> {
    #[derive(Deserialize)]
    struct Flag {
        #[serde(default, rename = "isError")]
        is_error: Option<bool>,
    }
    let flag: Flag = serde_json::from_str(result).ok()?;
    if flag.is_error != Some(true) {
        return None;
    }
    let whole: Value = serde_json::from_str(result).unwrap_or(Value::Null);
    let parts = whole["content"].as_array().into_iter().flatten();
    let texts: Vec<_> = parts.filter_map(|it| it["text"].as_str()).collect();
    let text = texts.join("\n");
    Some(if text.is_empty() {
        "it failed".to_owned()
    } else {
        text
    })
}

/// The beginning of a line, for people.
fn shown(line: &[u8]) -> String {
    String::from_utf8_lossy(&line[..line.len().min(MAX_SHOWN)]).into_owned()
}
