//! Sessions of Claude Code, as it writes them.
//!
//! Each content block of an answer is a line that repeats the tokens of the whole; while the answer comes in, its
//! output is counted lower than it turns out. A session that is resumed under another id begins with the lines of
//! the first. Behind some gateways requests have no ids.

use super::planted::Planted;
use super::session::{Line, Pen, quote};
use super::truth::{Tokens, Usage};

/// A session that was written, for another that goes on from it.
pub(super) struct Session {
    pub(super) id: String,
    pub(super) project: usize,
    pub(super) lines: Vec<Line>,
}

/// What a session is written into.
struct Log {
    lines: Vec<Line>,
    len: usize,
    parent: String,
    at: i64,
    id: String,
    project: usize,
}

const MODELS: [&str; 3] = [
    "claude-sonnet-4-5-20250929",
    "claude-opus-4-1-20250805",
    "claude-haiku-4-5-20251001",
];

/// Writes a session, from its beginning or from what another has in common with it.
pub(super) fn session(
    pen: &mut Pen,
    project: usize,
    from: Option<&Session>,
    usage: &mut Usage,
) -> Session {
    let mut log = Log {
        lines: Vec::new(),
        len: 0,
        parent: "null".to_owned(),
        at: pen.begin(),
        id: pen.dice.uuid(),
        project,
    };
    if let Some(from) = from {
        for line in &from.lines[..from.lines.len() / 2] {
            let text = line.text.replace(&from.id, &log.id);
            log.len += text.len() + 1;
            log.lines.push(Line {
                text,
                ..line.clone()
            });
        }
    }
    let end = log.len + pen.length();
    let how = How {
        model: pen.dice.pick(&MODELS),
        named: pen.dice.chance(95),
    };
    while log.len < end {
        let (said, planted) = pen.prose(5, 60);
        let prompt = format!(r#"{{"role":"user","content":{said}}}"#);
        log.line(pen, "user", &prompt, "");
        log.puts(planted);
        for _ in 0..=pen.dice.below(12) {
            step(pen, &mut log, &how, usage);
        }
    }
    Session {
        id: log.id,
        project,
        lines: log.lines,
    }
}

/// What is the same for all calls of a session.
struct How {
    model: &'static str,
    /// Whether requests have ids.
    named: bool,
}

impl Log {
    fn line(&mut self, pen: &mut Pen, kind: &str, message: &str, more: &str) {
        let (uuid, at) = (pen.dice.uuid(), pen.later(&mut self.at));
        let (parent, project, id) = (&self.parent, self.project, &self.id);
        let text = format!(
            r#"{{"parentUuid":{parent},"isSidechain":false,"userType":"external","cwd":"/code/p{project}","sessionId":"{id}","version":"2.1.200","gitBranch":"main","type":"{kind}","message":{message}{more},"uuid":"{uuid}","timestamp":"{at:.3}"}}"#
        );
        self.parent = quote(&uuid);
        self.len += text.len() + 1;
        self.lines.push(Line {
            text,
            planted: None,
            unnamed: None,
        });
    }

    /// Puts down what was put into the last line.
    fn puts(&mut self, planted: Option<Planted>) {
        if let Some(line) = self.lines.last_mut() {
            line.planted = planted;
        }
    }

    /// Puts down the tokens of the last line.
    fn tells(&mut self, tokens: Tokens, how: &How) {
        if let Some(line) = self.lines.last_mut() {
            line.unnamed = (!how.named).then_some(tokens);
        }
    }
}

/// An answer, a tool call and its result.
fn step(pen: &mut Pen, log: &mut Log, how: &How, usage: &mut Usage) {
    let model = how.model;
    let (message, call) = (pen.dice.opaque(24), pen.dice.opaque(24));
    let request = if how.named {
        format!(r#","requestId":"req_{}""#, pen.dice.opaque(22))
    } else {
        String::new()
    };
    let written = pen.dice.below(3_000) as u64;
    let last = Tokens {
        input: pen.dice.below(20) as u64,
        cache_read: 10_000 + pen.dice.below(90_000) as u64,
        cache_write: written,
        output: 50 + pen.dice.below(900) as u64,
    };
    let first = Tokens {
        output: if pen.dice.chance(40) {
            1 + pen.dice.below(9) as u64
        } else {
            last.output
        },
        ..last
    };
    usage.call(&[first, last], how.named);
    let head = format!(
        r#"{{"model":"{model}","id":"msg_{message}","type":"message","role":"assistant","content":["#
    );
    let tail = |tokens: Tokens| {
        let Tokens {
            input,
            cache_read,
            cache_write,
            output,
        } = tokens;
        format!(
            r#"],"stop_reason":null,"stop_sequence":null,"usage":{{"input_tokens":{input},"cache_creation_input_tokens":{cache_write},"cache_read_input_tokens":{cache_read},"cache_creation":{{"ephemeral_5m_input_tokens":{cache_write},"ephemeral_1h_input_tokens":0}},"output_tokens":{output},"service_tier":"standard"}}}}"#
        )
    };
    let thinks = pen.dice.below(3) == 0;
    let (said, planted) = pen.prose(20, 80);
    let block = if thinks {
        let signature = pen.dice.opaque(300);
        format!(r#"{{"type":"thinking","thinking":{said},"signature":"{signature}"}}"#)
    } else {
        format!(r#"{{"type":"text","text":{said}}}"#)
    };
    let answer = format!("{head}{block}{}", tail(first));
    log.line(pen, "assistant", &answer, &request);
    log.puts(planted);
    log.tells(first, how);

    let (name, input) = tool(pen);
    let block =
        format!(r#"{{"type":"tool_use","id":"toolu_{call}","name":"{name}","input":{input}}}"#);
    let asked = format!("{head}{block}{}", tail(last));
    log.line(pen, "assistant", &asked, &request);
    log.tells(last, how);

    let (output, planted) = pen.output();
    let result = format!(
        r#"{{"role":"user","content":[{{"tool_use_id":"toolu_{call}","type":"tool_result","content":{output}}}]}}"#
    );
    let twin = format!(r#","toolUseResult":{{"stdout":{output},"stderr":"","interrupted":false}}"#);
    log.line(pen, "user", &result, &twin);
    log.puts(planted);
}

/// A tool and what it is asked.
fn tool(pen: &mut Pen) -> (&'static str, String) {
    let (a, b) = (pen.name(), pen.name());
    match pen.dice.below(4) {
        0 | 1 => (
            "Bash",
            format!(r#"{{"command":"rg -n {a} src/{b}","description":"Search"}}"#),
        ),
        2 => ("Read", format!(r#"{{"file_path":"/code/src/{a}/{b}.rs"}}"#)),
        _ => ("Grep", format!(r#"{{"pattern":"{a}","path":"src/{b}"}}"#)),
    }
}
