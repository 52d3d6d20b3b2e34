//! What a trace has said already.
//!
//! A request repeats the conversation, or some of it: all that came before, a window over the newest messages,
//! or a history from which something was cut. Several conversations may take turns in one trace. So each
//! request is laid beside the conversation it goes on with, and what is in that, in the same order, is no
//! news. Messages are known by hashes; what is held is bounded.

use std::collections::{HashMap, VecDeque};

use quipu_model::json::{Kind, Node, Tape};
use serde::{Deserialize, Serialize};

use crate::history::Turn;
use crate::{Value, hash};

/// How many conversations are told apart, and how many messages of those that rest are remembered. The one
/// that goes on is remembered as a whole: it is no longer than a line can be.
const CHAINS: usize = 16;
const RESTING: usize = 64 * 1024;

/// How many system prompts and tool calls are remembered.
const SYSTEMS: usize = 256;
const CALLS: usize = 16 * 1024;

/// A message of a request.
#[derive(Debug, Clone, Copy)]
pub(super) struct Message {
    hash: u64,
    /// Instructions, which many conversations begin with alike.
    system: bool,
    /// Whether it calls tools whose calls were not told yet.
    calls_anew: bool,
}

/// What was said.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct Conversations {
    /// The conversations; the one that went on last is the last.
    chains: VecDeque<Chain>,
    systems: VecDeque<u64>,
    calls: HashMap<u64, Call>,
    /// The calls in the order in which they came to be known.
    order: VecDeque<u64>,
}

#[derive(Debug, Default, Serialize, Deserialize)]
struct Chain {
    /// The messages of the last request, then the answers to it.
    seen: Vec<u64>,
    asked: usize,
    /// The record of that request.
    request: u64,
}

/// A tool call.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
struct Call {
    arguments: u64,
    /// Whether a record of its own told that it was made.
    made: bool,
    result: Given,
}

/// Where a result was told.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
enum Given {
    Nowhere,
    InRequest,
    InRecord,
}

/// What the record of a tool call adds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Made {
    /// A call that was not told yet.
    New,
    /// Nothing: the model asked for just this.
    AsAsked,
    /// That it was not made as the model asked for it.
    Otherwise,
}

impl Conversations {
    /// A session begins: nothing was said in it.
    pub(super) fn begin(&mut self) {
        *self = Self::default();
    }

    /// A message of a request, as it is compared.
    pub(super) fn message(&self, message: Node<'_>) -> Message {
        let role = message.text("role").unwrap_or_default();
        if role == "assistant" {
            let (hash, calls) = reply(message);
            let calls_anew = calls.iter().any(|id| !self.calls.contains_key(id));
            return Message {
                hash,
                system: false,
                calls_anew,
            };
        }
        Message {
            hash: Turn::of(message).hash,
            system: matches!(&*role, "system" | "developer"),
            calls_anew: false,
        }
    }

    /// Takes in a request. Tells of each message whether it was said before.
    pub(super) fn request(&mut self, record: &str, messages: &[Message]) -> Vec<bool> {
        let mut chain = match self.goes_on(messages) {
            Some(at) => self.chains.remove(at).unwrap_or_default(),
            None => Chain::default(),
        };
        let mut said = chain.align(messages);
        for (said, message) in said.iter_mut().zip(messages) {
            *said &= !message.calls_anew;
            if message.system && !*said {
                *said = self.systems.contains(&message.hash);
                if !*said {
                    if self.systems.len() == SYSTEMS {
                        self.systems.pop_front();
                    }
                    self.systems.push_back(message.hash);
                }
            }
        }
        chain.seen.clear();
        chain
            .seen
            .extend(messages.iter().map(|message| message.hash));
        chain.asked = messages.len();
        chain.request = hash(record.as_bytes());
        self.rest();
        self.chains.push_back(chain);
        said
    }

    /// Makes room for one more conversation.
    fn rest(&mut self) {
        let mut held: usize = self.chains.iter().map(|chain| chain.seen.len()).sum();
        while self.chains.len() >= CHAINS || held > RESTING {
            let Some(oldest) = self.chains.pop_front() else {
                return;
            };
            held -= oldest.seen.len();
        }
    }

    /// The conversation that a request goes on with: the last one, if they have anything in common, or another
    /// that it has all of.
    fn goes_on(&self, messages: &[Message]) -> Option<usize> {
        let score = |said: &[bool]| {
            let both = said.iter().zip(messages);
            both.filter(|(said, message)| **said && !message.system)
                .count()
        };
        let last = self.chains.len().checked_sub(1)?;
        let of_last = score(&self.chains[last].align(messages));
        let best = (0..last)
            .rev()
            .filter_map(|at| {
                let chain = &self.chains[at];
                let more = messages.len() > chain.asked;
                let whole = more && chain.common(messages) >= chain.asked;
                whole.then(|| (score(&vec![true; chain.asked]), at))
            })
            // The latest of equals.
            .fold(
                None,
                |best: Option<(usize, usize)>, (score, at)| match best {
                    Some((most, _)) if most >= score => best,
                    _ => Some((score, at)),
                },
            );
        match best {
            Some((score, at)) if score > of_last => Some(at),
            _ => (of_last > 0).then_some(last),
        }
    }

    /// Takes in the answer to a request.
    pub(super) fn answer(&mut self, request: Option<&str>, answer: Node<'_>) {
        let (answer, _) = reply(answer);
        let request = request.map(|request| hash(request.as_bytes()));
        let of = self
            .chains
            .iter()
            .rposition(|chain| Some(chain.request) == request)
            .or(self.chains.len().checked_sub(1));
        match of.and_then(|at| self.chains.get_mut(at)) {
            Some(chain) => chain.seen.push(answer),
            None => self.chains.push_back(Chain {
                seen: vec![answer],
                ..Chain::default()
            }),
        }
    }

    /// The model asks for a call. An id that was used before stands for another call from now on.
    pub(super) fn asks(&mut self, id: &str, input: Option<&Value<'_>>) {
        let call = Call {
            arguments: arguments(input),
            made: false,
            result: Given::Nowhere,
        };
        self.know(id, call);
    }

    fn know(&mut self, id: &str, call: Call) {
        if id.is_empty() {
            return;
        }
        let id = hash(id.as_bytes());
        if self.calls.insert(id, call).is_none() {
            self.order.push_back(id);
        }
        if self.order.len() > CALLS
            && let Some(oldest) = self.order.pop_front()
        {
            self.calls.remove(&oldest);
        }
    }

    /// Whether a call of this id was told.
    pub(super) fn knows_call(&self, id: &str) -> bool {
        self.calls.contains_key(&hash(id.as_bytes()))
    }

    /// Takes in the record of a call.
    pub(super) fn made(&mut self, id: &str, input: Option<&Value<'_>>) -> Made {
        let arguments = arguments(input);
        match self.calls.get_mut(&hash(id.as_bytes())) {
            Some(call) if !call.made => {
                call.made = true;
                if call.arguments == arguments {
                    Made::AsAsked
                } else {
                    Made::Otherwise
                }
            }
            _ => {
                let call = Call {
                    arguments,
                    made: true,
                    result: Given::Nowhere,
                };
                self.know(id, call);
                Made::New
            }
        }
    }

    /// Takes in a result that stands in a request. Tells whether it is news.
    pub(super) fn result_in_request(&mut self, id: &str) -> bool {
        match self.calls.get_mut(&hash(id.as_bytes())) {
            Some(call) if call.result != Given::Nowhere => false,
            Some(call) => {
                call.result = Given::InRequest;
                true
            }
            None => {
                self.only_result(id, Given::InRequest);
                true
            }
        }
    }

    /// Takes in the record of a result. Tells whether it is news.
    pub(super) fn result_in_record(&mut self, id: &str) -> bool {
        if let Some(call) = self.calls.get_mut(&hash(id.as_bytes())) {
            return std::mem::replace(&mut call.result, Given::InRecord) != Given::InRequest;
        }
        self.only_result(id, Given::InRecord);
        true
    }

    /// A result of a call that nobody told of.
    fn only_result(&mut self, id: &str, result: Given) {
        let call = Call {
            arguments: 0,
            made: true,
            result,
        };
        self.know(id, call);
    }
}

impl Chain {
    /// How many messages a request has in common with what was seen, from the beginning.
    fn common(&self, messages: &[Message]) -> usize {
        self.seen
            .iter()
            .zip(messages)
            .take_while(|(seen, message)| **seen == message.hash)
            .count()
    }

    /// Which messages of a request were seen, in the order in which they were.
    fn align(&self, messages: &[Message]) -> Vec<bool> {
        let common = self.common(messages);
        let mut said = vec![true; common];
        let mut places: HashMap<u64, Vec<usize>> = HashMap::new();
        if common < messages.len() {
            for (at, seen) in self.seen.iter().enumerate().skip(common) {
                places.entry(*seen).or_default().push(at);
            }
        }
        let mut from = common;
        said.extend(messages[common..].iter().map(|message| {
            let places = places.get(&message.hash).map_or(&[][..], Vec::as_slice);
            let next = places.partition_point(|at| *at < from);
            match places.get(next) {
                Some(at) => {
                    from = at + 1;
                    true
                }
                None => false,
            }
        }));
        said
    }
}

/// What a reply of the model is known by, and the calls in it. Agents do not send it back as it came: the
/// reasoning is left out, texts are trimmed, a list of one text becomes the text. So its words count, and
/// where it has none its calls.
fn reply(message: Node<'_>) -> (u64, Vec<u64>) {
    let mut calls = Vec::new();
    let mut words = String::new();
    let content = message.get("content");
    if let Some(text) = content.and_then(|content| content.as_str()) {
        words.push_str(&text);
    }
    let called = |call: Node<'_>| {
        let id = ["id", "tool_call_id"].iter().find_map(|key| call.text(key));
        hash(id.unwrap_or_default().as_bytes())
    };
    for part in content.into_iter().flat_map(Node::items) {
        let kind = part.text("type").unwrap_or_default();
        if kind.ends_with("tool_use") {
            calls.push(called(part));
        } else if !matches!(&*kind, "thinking" | "reasoning" | "redacted_thinking")
            && let Some(text) = part.text("text")
        {
            words.push_str(&text);
        }
    }
    for call in message.get("tool_calls").into_iter().flat_map(Node::items) {
        calls.push(called(call));
    }
    let words = words.trim();
    let hash = if words.is_empty() {
        let calls: Vec<u8> = calls.iter().flat_map(|id| id.to_le_bytes()).collect();
        hash(&[b"assistant calls", &calls[..]].concat())
    } else {
        hash(format!("assistant\n{words}").as_bytes())
    };
    (hash, calls)
}

/// What arguments are known by, however they are written. None are the same as no arguments.
fn arguments(input: Option<&Value<'_>>) -> u64 {
    let json = input.map(Value::to_json);
    let text = json.as_ref().map_or("{}", |json| json.get());
    let mut tape = Tape::new();
    match tape.read(text, 256) {
        Ok(node) if matches!(node.kind(), Kind::Null) => arguments(None),
        Ok(node) => Turn::of(node).hash,
        Err(_) => hash(text.as_bytes()),
    }
}
