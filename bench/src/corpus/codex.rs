//! Sessions of Codex, as it writes them. Tokens are running totals.

use jiff::Timestamp;

use super::planted::Planted;
use super::session::{Line, Pen};
use super::truth::{Tokens, Usage};

/// A session that was written.
pub(super) struct Session {
    pub(super) id: String,
    pub(super) began: Timestamp,
    pub(super) lines: Vec<Line>,
}

struct Log {
    lines: Vec<Line>,
    len: usize,
    at: i64,
}

/// What is counted, in the agent's own terms: what was read from the cache is part of the input.
#[derive(Default, Clone, Copy)]
struct Counted {
    input: u64,
    cached: u64,
    output: u64,
    reasoning: u64,
}

impl Log {
    fn line(&mut self, pen: &mut Pen, kind: &str, payload: &str, planted: Option<Planted>) {
        let at = pen.later(&mut self.at);
        let text = format!(r#"{{"timestamp":"{at:.3}","type":"{kind}","payload":{payload}}}"#);
        self.len += text.len() + 1;
        self.lines.push(Line {
            text,
            planted,
            unnamed: None,
        });
    }
}

pub(super) fn session(pen: &mut Pen, project: usize, usage: &mut Usage) -> Session {
    let id = pen.dice.uuid();
    let mut log = Log {
        lines: Vec::new(),
        len: 0,
        at: pen.begin(),
    };
    let began = Timestamp::from_millisecond(log.at).unwrap_or(Timestamp::UNIX_EPOCH);
    let model = pen.dice.pick(&["gpt-5-codex", "gpt-5.1-codex"]);
    let meta = format!(
        r#"{{"id":"{id}","timestamp":"{began:.3}","cwd":"/code/p{project}","originator":"codex_cli_rs","cli_version":"0.120.0","source":"cli","model_provider":"openai"}}"#
    );
    log.line(pen, "session_meta", &meta, None);
    let end = pen.length();
    let mut sum = Counted::default();
    while log.len < end {
        let turn = pen.dice.uuid();
        let context = format!(
            r#"{{"turn_id":"{turn}","cwd":"/code/p{project}","approval_policy":"on-request","model":"{model}","effort":"medium","summary":"auto"}}"#
        );
        log.line(pen, "turn_context", &context, None);
        let (said, planted) = pen.prose(5, 60);
        let message = format!(
            r#"{{"type":"message","role":"user","content":[{{"type":"input_text","text":{said}}}]}}"#
        );
        log.line(pen, "response_item", &message, planted);
        // The same once more, for whoever shows the session. It is one event.
        let shown = format!(r#"{{"type":"user_message","message":{said}}}"#);
        log.line(pen, "event_msg", &shown, None);
        for _ in 0..=pen.dice.below(12) {
            step(pen, &mut log, &mut sum, usage);
        }
    }
    Session {
        id,
        began,
        lines: log.lines,
    }
}

fn step(pen: &mut Pen, log: &mut Log, sum: &mut Counted, usage: &mut Usage) {
    let call = pen.dice.opaque(24);
    let (thought, planted) = pen.prose(10, 30);
    let len = 200 + pen.dice.below(1_200);
    let payload = format!(
        r#"{{"type":"reasoning","summary":[{{"type":"summary_text","text":{thought}}}],"content":null,"encrypted_content":"{}"}}"#,
        pen.dice.opaque(len)
    );
    log.line(pen, "response_item", &payload, planted);
    let (a, b) = (pen.name(), pen.name());
    let payload = format!(
        r#"{{"type":"function_call","name":"shell","arguments":"{{\"command\":[\"bash\",\"-lc\",\"rg -n {a} src/{b}\"]}}","call_id":"call_{call}"}}"#
    );
    log.line(pen, "response_item", &payload, None);
    let (shown, planted) = pen.output();
    let payload =
        format!(r#"{{"type":"function_call_output","call_id":"call_{call}","output":{shown}}}"#);
    log.line(pen, "response_item", &payload, planted);
    let this = Counted {
        input: 5_000 + pen.dice.below(20_000) as u64,
        cached: 4_000,
        output: 100 + pen.dice.below(500) as u64,
        reasoning: 50,
    };
    sum.input += this.input;
    sum.cached += this.cached;
    sum.output += this.output;
    sum.reasoning += this.reasoning;
    let told = Tokens {
        input: this.input - this.cached,
        cache_read: this.cached,
        cache_write: 0,
        output: this.output,
    };
    usage.call(&[told], true);
    let payload = format!(
        r#"{{"type":"token_count","info":{{"total_token_usage":{},"last_token_usage":{},"model_context_window":272000}}}}"#,
        counted(*sum),
        counted(this)
    );
    log.line(pen, "event_msg", &payload, None);
}

fn counted(tokens: Counted) -> String {
    let Counted {
        input,
        cached,
        output,
        reasoning,
    } = tokens;
    let total = input + output;
    format!(
        r#"{{"input_tokens":{input},"cached_input_tokens":{cached},"output_tokens":{output},"reasoning_output_tokens":{reasoning},"total_tokens":{total}}}"#
    )
}
