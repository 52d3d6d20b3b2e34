//! Calls that are seen twice: by the tee, and in the stream of the agent that made them.
//!
//! MCP has no id of the model, so calls are matched by what they are: the tool's name at the end of the name that the
//! agent uses (`mcp__files__read`, `files_read`, `files.read`), the same arguments, and the order among equal calls.

use std::collections::{HashMap, VecDeque};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use quipu_model::ToolCallId;
use serde_json::Value;

/// The most calls of each kind that wait for their match. The oldest are forgotten first.
const MAX_WAITING: usize = 10_000;

/// Matches calls that the tee sees with calls that an agent reports, in whichever order they come.
#[derive(Debug, Default)]
pub struct Matcher {
    reported: Waiting<ToolCallId>,
    seen: Waiting<u64>,
    count: u64,
    matched: u64,
}

impl Matcher {
    /// A matcher that knows no calls.
    pub fn new() -> Self {
        Self::default()
    }

    /// An agent reports a call. Gives the number of the call that the tee has seen already, where it is the same:
    /// numbers count the calls given to [`seen`](Self::seen), from 1.
    pub fn reported(&mut self, name: &str, input: &Value, call_id: ToolCallId) -> Option<u64> {
        let inputs = fingerprint(input);
        let found = self.seen.take(inputs, |tool| is_same(name, tool));
        if found.is_some() {
            self.matched += 1;
        } else {
            self.reported.add(inputs, name, call_id);
        }
        found
    }

    /// The tee has seen a call. Gives the id by which the agent has reported it, where it has.
    pub fn seen(&mut self, name: &str, input: &Value) -> Option<ToolCallId> {
        self.count += 1;
        let inputs = fingerprint(input);
        let found = self
            .reported
            .take(inputs, |reported| is_same(reported, name));
        if found.is_some() {
            self.matched += 1;
        } else {
            self.seen.add(inputs, name, self.count);
        }
        found
    }

    /// How many calls were seen by both.
    pub fn matched(&self) -> u64 {
        self.matched
    }

    /// How many calls an agent has reported that the tee has not seen, and how many the tee has seen that no agent has
    /// reported, of those that are remembered.
    pub fn unmatched(&self) -> (usize, usize) {
        (self.reported.count, self.seen.count)
    }
}

/// Calls that wait for their match, by a fingerprint of their arguments.
#[derive(Debug)]
struct Waiting<T> {
    calls: HashMap<u64, VecDeque<(u64, String, T)>>,
    order: VecDeque<(u64, u64)>,
    next: u64,
    count: usize,
}

impl<T> Default for Waiting<T> {
    fn default() -> Self {
        Self {
            calls: HashMap::new(),
            order: VecDeque::new(),
            next: 0,
            count: 0,
        }
    }
}

impl<T> Waiting<T> {
    fn add(&mut self, inputs: u64, name: &str, what: T) {
        self.next += 1;
        let calls = self.calls.entry(inputs).or_default();
        calls.push_back((self.next, name.to_owned(), what));
        self.order.push_back((inputs, self.next));
        self.count += 1;
        while self.order.len() > MAX_WAITING {
            let Some((inputs, number)) = self.order.pop_front() else {
                break;
            };
            self.remove(inputs, |it| it.0 == number);
        }
    }

    /// The first call with these arguments whose name fits.
    fn take(&mut self, inputs: u64, fits: impl Fn(&str) -> bool) -> Option<T> {
        self.remove(inputs, |it| fits(&it.1))
    }

    fn remove(&mut self, inputs: u64, fits: impl Fn(&(u64, String, T)) -> bool) -> Option<T> {
        let calls = self.calls.get_mut(&inputs)?;
        let at = calls.iter().position(fits)?;
        let found = calls.remove(at);
        if calls.is_empty() {
            self.calls.remove(&inputs);
        }
        self.count -= 1;
        found.map(|it| it.2)
    }
}

/// Whether the name that an agent uses is a server's tool. Agents write the server's name before it, and replace what
/// models do not take in a name.
fn is_same(reported: &str, tool: &str) -> bool {
    let plain = |text: &str| -> String {
        let plain = |c: char| {
            if c.is_alphanumeric() || c == '-' {
                c
            } else {
                '_'
            }
        };
        text.chars().map(plain).collect()
    };
    let (reported, tool) = (plain(reported), plain(tool));
    let Some(before) = reported.strip_suffix(&tool) else {
        return false;
    };
    before.is_empty() || before.ends_with(['_', '-'])
}

/// The same for arguments that mean the same: the order of names does not count, nor whether none are written as
/// nothing, `null` or `{}`.
fn fingerprint(input: &Value) -> u64 {
    let mut hasher = DefaultHasher::new();
    match input {
        Value::Object(map) if map.is_empty() => write(&Value::Null, &mut hasher),
        other => write(other, &mut hasher),
    }
    hasher.finish()
}

fn write(value: &Value, hasher: &mut DefaultHasher) {
    match value {
        Value::Null => 0_u8.hash(hasher),
        Value::Bool(it) => (1_u8, it).hash(hasher),
        Value::Number(number) => {
            // 1 and 1.0 are the same number to some programs on the way.
            let number = number.as_f64().unwrap_or_default();
            (2_u8, (number + 0.0).to_bits()).hash(hasher);
        }
        Value::String(text) => (3_u8, text).hash(hasher),
        Value::Array(all) => {
            (4_u8, all.len()).hash(hasher);
            for one in all {
                write(one, hasher);
            }
        }
        Value::Object(map) => {
            (5_u8, map.len()).hash(hasher);
            let mut names: Vec<_> = map.keys().collect();
            names.sort();
            for name in names {
                name.hash(hasher);
                write(&map[name], hasher);
            }
        }
    }
}
