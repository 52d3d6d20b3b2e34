//! How a tool call ended, which is told in the text of its result.

use quipu_model::Status;
use quipu_model::json::{Node, RawStr, Tape};
use serde::{Deserialize, Serialize};

use crate::Text;

/// What is known of how a tool call ended.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(super) struct Ending {
    status: Option<u8>,
    /// How long it took.
    pub(super) duration_ms: Option<u64>,
    /// The session of the sub-agent that it began.
    pub(super) child: Option<String>,
}

/// From the least to the most that applies.
const STATUSES: [Status; 4] = [Status::Ok, Status::Error, Status::Timeout, Status::Denied];

impl Ending {
    /// How it ended.
    pub(super) fn status(&self) -> Option<Status> {
        STATUSES.get(usize::from(self.status?)).copied()
    }

    /// Takes in that it ended so; what weighs more stays.
    pub(super) fn ended(&mut self, status: Status) {
        let rank = STATUSES.iter().position(|s| *s == status).unwrap_or(0);
        let rank = u8::try_from(rank).unwrap_or(0);
        self.status = Some(self.status.map_or(rank, |before| before.max(rank)));
    }

    /// Takes in what else is known.
    pub(super) fn merge(&mut self, other: Ending) {
        if let Some(status) = other.status() {
            self.ended(status);
        }
        self.duration_ms = self.duration_ms.or(other.duration_ms);
        self.child = self.child.take().or(other.child);
    }

    fn exit(&mut self, code: i64) {
        self.ended(if code == 0 { Status::Ok } else { Status::Error });
    }
}

/// What an event that ends a call says of it.
pub(super) fn of_event(event: Node<'_>) -> Ending {
    let mut ending = Ending::default();
    for (key, value) in event.fields() {
        match key.plain() {
            Some("exit_code") => {
                if let Some(code) = value.as_i64() {
                    ending.exit(code);
                }
            }
            Some("success") => match value.as_bool() {
                Some(true) => ending.ended(Status::Ok),
                Some(false) => ending.ended(Status::Error),
                None => {}
            },
            Some("status") => match value.as_raw_str().and_then(RawStr::plain) {
                Some("declined" | "denied") => ending.ended(Status::Denied),
                Some("failed") => ending.ended(Status::Error),
                Some("completed") => ending.ended(Status::Ok),
                _ => {}
            },
            Some("error") if !value.is_null() => ending.ended(Status::Error),
            Some("result") => {
                let failed = value.get("Err").is_some()
                    || ["isError", "is_error"].iter().any(|key| {
                        value
                            .get(key)
                            .or(value.path(&["Ok", key]))
                            .is_some_and(is_true)
                    });
                if failed {
                    ending.ended(Status::Error);
                }
            }
            Some("duration") => ending.duration_ms = duration(value),
            Some("duration_ms") => ending.duration_ms = value.as_u64(),
            Some("agent_thread_id" | "new_thread_id") => {
                ending.child = value.as_str().map(std::borrow::Cow::into_owned);
            }
            _ => {}
        }
    }
    ending
}

fn is_true(node: Node<'_>) -> bool {
    node.as_bool() == Some(true)
}

/// `{"secs":1,"nanos":5000000}`, in milliseconds.
fn duration(node: Node<'_>) -> Option<u64> {
    let secs = node.get("secs")?.as_u64()?;
    let nanos = node.get("nanos").and_then(|n| n.as_u64()).unwrap_or(0);
    Some(secs.saturating_mul(1000).saturating_add(nanos / 1_000_000))
}

/// How much of a text is looked at from either end.
const NEAR: usize = 400;

/// The longest result that is looked at as JSON.
const SMALL: usize = 4096;

/// What the text of a result says. Only its beginning, or its end, is looked at, and that as it stands in
/// the log, where a line end is `\n`.
pub(super) fn of_text(text: &Text<'_>, raw: &str) -> Ending {
    let mut ending = Ending::default();
    let inner = raw.trim_matches('"');
    if inner.starts_with("{\\\"") {
        of_json(inner, &mut ending);
        return ending;
    }
    let mut head = near_start(inner);
    if let Some(end) = memchr::memmem::find(head.as_bytes(), b"Output:") {
        head = &head[..end];
    } else if is_denied(text) {
        ending.ended(Status::Denied);
    } else if FAILURES.iter().any(|failure| inner.starts_with(failure)) {
        ending.ended(Status::Error);
    }
    if let Some(code) = ["Process exited with code ", "Exit code: "]
        .iter()
        .find_map(|label| whole(after(head, label)?))
    {
        ending.exit(code);
    }
    if head.starts_with("Script failed") {
        ending.ended(Status::Error);
    } else if head.starts_with("Script completed") {
        ending.ended(Status::Ok);
    }
    ending.duration_ms = ["Wall time: ", "Wall time "]
        .iter()
        .find_map(|label| millis(after(head, label)?));
    if inner.starts_with("command timed out") || after(near_start(inner), TIMED_OUT).is_some() {
        ending.ended(Status::Timeout);
    }
    ending
}

const TIMED_OUT: &str = "Output:\\ncommand timed out after ";

/// What results begin with whose call could not be carried out.
const FAILURES: [&str; 14] = [
    "failed in sandbox",
    "execution error",
    "sandbox error",
    "failed to parse function arguments",
    "unsupported call",
    "unsupported custom tool call",
    "apply_patch verification failed",
    "exec_command failed",
    "write_stdin failed",
    "aborted by user",
    "collab spawn failed",
    "collab tool failed",
    "err: ",
    "tool call error",
];

fn is_denied(text: &Text<'_>) -> bool {
    const REFUSALS: [&str; 6] = [
        "patch rejected by user",
        "exec command rejected by user",
        "rejected by user",
        "command rejected by user",
        "execution denied",
        "user rejected MCP tool call",
    ];
    REFUSALS.iter().any(|refusal| text.starts_with(refusal))
        || (text.starts_with("exec_command failed") && text.read().contains("rejected by user"))
}

/// `{"output":…,"metadata":{"exit_code":0,"duration_seconds":0.1}}`, in a string. What is looked for
/// stands at its end.
fn of_json(inner: &str, ending: &mut Ending) {
    if inner.starts_with("{\\\"output\\\":") {
        let tail = near_end(inner);
        if let Some(at) = tail.rfind("\\\"metadata\\\":{") {
            let metadata = &tail[at..];
            if let Some(code) = after(metadata, "\\\"exit_code\\\":").and_then(whole) {
                ending.exit(code);
                // Timeouts are told by the code that `timeout` would give, and in the text.
                if code == 124 && near_start(inner).contains("command timed out after") {
                    ending.ended(Status::Timeout);
                }
            }
            ending.duration_ms = after(metadata, "\\\"duration_seconds\\\":").and_then(millis);
            return;
        }
    }
    // Small results that are JSON: those of the tools for sub-agents, among others.
    if inner.len() > SMALL {
        return;
    }
    let quoted = format!("\"{inner}\"");
    let mut outer = Tape::new();
    let Some(text) = outer.read(&quoted, 1).ok().and_then(|node| node.as_str()) else {
        return;
    };
    let mut tape = Tape::new();
    let Ok(node) = tape.read(&text, 64) else {
        return;
    };
    ending.child = node
        .text("agent_id")
        .map(std::borrow::Cow::into_owned)
        .filter(|id| !id.is_empty());
    let metadata = node.get("metadata").unwrap_or(node);
    if let Some(code) = metadata.get("exit_code").and_then(|n| n.as_i64()) {
        ending.exit(code);
    }
    if node.get("timed_out").is_some_and(is_true) {
        ending.ended(Status::Timeout);
    }
}

/// An output that the log holds as JSON inside a text, with its figures.
pub(super) struct Envelope {
    pub(super) output: String,
    exit_code: Option<i64>,
}

impl Envelope {
    /// Why the call failed: its exit code, and what it said.
    pub(super) fn why(&self) -> String {
        let code = self.exit_code.filter(|code| *code != 0);
        match (code, self.output.trim_end()) {
            (None, _) => self.output.clone(),
            (Some(code), "") => format!("exit code {code}"),
            (Some(code), _) => format!("exit code {code}\n{}", self.output),
        }
    }
}

/// What is in `{"output":…,"metadata":{"exit_code":0,"duration_seconds":0.1}}`, if it is that and nothing more.
pub(super) fn enveloped(text: &Text<'_>) -> Option<Envelope> {
    if !text.starts_with("{\"output\":\"") {
        return None;
    }
    let text = text.read();
    let mut tape = Tape::new();
    let whole = tape.read(&text, 8).ok()?;
    let metadata = whole.get("metadata")?;
    let mut about = metadata.fields().map(|(key, _)| key);
    let is_known = about.all(|key| key.is("exit_code") || key.is("duration_seconds"));
    if !is_known || whole.fields().count() != 2 {
        return None;
    }
    Some(Envelope {
        output: whole.text("output")?.into_owned(),
        exit_code: metadata.get("exit_code").and_then(|code| code.as_i64()),
    })
}

fn near_start(text: &str) -> &str {
    let mut end = text.len().min(NEAR);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

fn near_end(text: &str) -> &str {
    let mut start = text.len().saturating_sub(NEAR);
    while !text.is_char_boundary(start) {
        start -= 1;
    }
    &text[start..]
}

fn after<'t>(text: &'t str, label: &str) -> Option<&'t str> {
    let at = memchr::memmem::find(text.as_bytes(), label.as_bytes())?;
    text.get(at + label.len()..)
}

/// The whole number that a text begins with.
fn whole(text: &str) -> Option<i64> {
    let digits = text.strip_prefix('-').unwrap_or(text);
    let len = digits.bytes().take_while(u8::is_ascii_digit).count();
    text[..text.len() - digits.len() + len].parse().ok()
}

/// The seconds that a text begins with, in milliseconds.
fn millis(text: &str) -> Option<u64> {
    let len = text
        .bytes()
        .take_while(|byte| byte.is_ascii_digit() || *byte == b'.')
        .count();
    let seconds: f64 = text[..len].parse().ok()?;
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "it has no sign, and a cast stops at the largest number"
    )]
    Some((seconds * 1000.0).round() as u64)
}
