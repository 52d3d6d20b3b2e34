//! Logs to import: sessions of Claude Code and Codex, made up, the same for the same seed.
//!
//! Shapes and sizes are like those of real logs: short lines of bookkeeping, code and command output with
//! much repetition, now and then a very long line, opaque reasoning that does not compress.

use std::fs;
use std::io::Write as _;
use std::path::Path;

use anyhow::Result;

/// Random enough.
pub(crate) struct Dice(u64);

impl Dice {
    fn next(&mut self) -> u64 {
        // xorshift64*
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    fn below(&mut self, n: usize) -> usize {
        usize::try_from(self.next() >> 33).unwrap_or(0) % n.max(1)
    }

    fn uuid(&mut self) -> String {
        let (a, b) = (self.next(), self.next());
        format!(
            "{:08x}-{:04x}-4{:03x}-8{:03x}-{:012x}",
            a >> 32,
            a >> 16 & 0xffff,
            a & 0xfff,
            b >> 48 & 0xfff,
            b & 0xffff_ffff_ffff
        )
    }

    fn opaque(&mut self, len: usize) -> String {
        const LETTERS: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
        (0..len)
            .map(|_| char::from(LETTERS[self.below(LETTERS.len())]))
            .collect()
    }

    fn word(&mut self) -> &'static str {
        const WORDS: [&str; 64] = [
            "the", "buffer", "parse", "token", "when", "file", "returns", "error", "config", "of",
            "and", "handler", "request", "async", "match", "value", "test", "module", "write",
            "queue", "index", "to", "session", "cache", "state", "build", "branch", "commit", "in",
            "render", "should", "struct", "field", "thread", "lock", "is", "retry", "timeout",
            "stream", "encode", "decode", "path", "update", "remove", "add", "check", "fails",
            "because", "after", "before", "lines", "output", "command", "result", "types",
            "schema", "query", "row", "table", "user", "client", "server", "message", "event",
        ];
        WORDS[self.below(WORDS.len())]
    }

    fn prose(&mut self, words: usize) -> String {
        let mut text = String::new();
        for n in 0..words {
            if n > 0 {
                text.push(' ');
            }
            text.push_str(self.word());
        }
        text
    }

    /// Something like source code, with the escapes it has inside JSON.
    fn code(&mut self, lines: usize) -> String {
        let mut text = String::new();
        for n in 0..lines {
            let indent = self.below(4) * 4;
            let (a, b, c) = (self.word(), self.word(), self.word());
            let number = self.below(10_000);
            let line = match self.below(5) {
                0 => format!("{:indent$}let {a}_{b} = {c}::new({number});\\n", ""),
                1 => format!(
                    "{:indent$}if {a}.{b}() {{ return Err(\\\"{c}\\\".into()); }}\\n",
                    ""
                ),
                2 => format!("{n:>6}\\tpub fn {a}_{b}(&self, {c}: usize) -> Result<()> {{\\n"),
                3 => format!("{:indent$}// {a} {b} {c} {number}\\n", ""),
                _ => format!("src/{a}/{b}.rs:{number}:{n}: {c} {a} {b}\\n"),
            };
            text.push_str(&line);
        }
        text
    }

    /// How many lines an output has: mostly few, sometimes very many.
    fn lines(&mut self) -> usize {
        match self.below(100) {
            0..60 => 5 + self.below(30),
            60..95 => 30 + self.below(150),
            _ => 300 + self.below(3_000),
        }
    }
}

/// Writes about `bytes` of logs below `home`, as the two agents lay them out.
pub(crate) fn write(home: &Path, bytes: u64, seed: u64) -> Result<u64> {
    let mut dice = Dice(seed | 1);
    let (mut written, mut files) = (0, 0);
    while written < bytes {
        let (path, text) = if dice.below(100) < 60 {
            let id = dice.uuid();
            let project = dice.below(20);
            let path = home.join(format!(".claude/projects/-code-p{project}/{id}.jsonl"));
            (path, claude(&mut dice, &id, project))
        } else {
            let id = dice.uuid();
            let day = 1 + dice.below(28);
            let path = home.join(format!(
                ".codex/sessions/2026/03/{day:02}/rollout-2026-03-{day:02}T10-00-00-{id}.jsonl"
            ));
            (path, codex(&mut dice, &id, day))
        };
        if let Some(directory) = path.parent() {
            fs::create_dir_all(directory)?;
        }
        fs::File::create(&path)?.write_all(text.as_bytes())?;
        written += text.len() as u64;
        files += 1;
    }
    Ok(files)
}

/// More lines of a session of Claude Code.
pub(crate) fn more(bytes: usize, seed: u64) -> String {
    let mut dice = Dice(seed | 1);
    let id = dice.uuid();
    let mut text = String::new();
    while text.len() < bytes {
        text.push_str(&claude(&mut dice, &id, 1));
    }
    let end = text[..bytes].rfind('\n').map_or(0, |end| end + 1);
    text.truncate(end);
    text
}

/// One turn after the other until the session is long enough.
fn session_len(dice: &mut Dice) -> usize {
    60_000 + dice.below(900_000)
}

pub(crate) fn claude(dice: &mut Dice, id: &str, project: usize) -> String {
    let (mut text, mut parent) = (String::new(), "null".to_owned());
    let (end, mut second) = (session_len(dice), 0);
    while text.len() < end {
        let mut line = |text: &mut String,
                        dice: &mut Dice,
                        kind: &str,
                        message: &str,
                        more: &str| {
            let uuid = dice.uuid();
            second += 1 + dice.below(5);
            let written = format!(
                r#"{{"parentUuid":{parent},"isSidechain":false,"userType":"external","cwd":"/code/p{project}","sessionId":"{id}","version":"2.1.200","gitBranch":"main","type":"{kind}","message":{message}{more},"uuid":"{uuid}","timestamp":"2026-03-{:02}T{:02}:{:02}:{:02}.123Z"}}"#,
                1 + second / 86_400 % 28,
                second / 3600 % 24,
                second / 60 % 60,
                second % 60
            );
            text.push_str(&written);
            text.push('\n');
            parent = format!("\"{uuid}\"");
        };
        let words = 5 + dice.below(60);
        let prompt = format!(r#"{{"role":"user","content":"{}"}}"#, dice.prose(words));
        line(&mut text, dice, "user", &prompt, "");
        for _ in 0..=dice.below(12) {
            let (message, call) = (dice.opaque(24), dice.opaque(24));
            let request = format!(r#","requestId":"req_{}""#, dice.opaque(22));
            let (read, output) = (10_000 + dice.below(90_000), 50 + dice.below(900));
            let usage = format!(
                r#""usage":{{"input_tokens":{},"cache_creation_input_tokens":{},"cache_read_input_tokens":{read},"output_tokens":{output},"service_tier":"standard"}}"#,
                dice.below(20),
                dice.below(3000)
            );
            let head = format!(
                r#"{{"model":"claude-sonnet-4-5","id":"msg_{message}","type":"message","role":"assistant","content":["#
            );
            let tail = format!(r#"],"stop_reason":"tool_use","stop_sequence":null,{usage}}}"#);
            let words = 20 + dice.below(80);
            let block = match dice.below(3) {
                0 => format!(
                    r#"{{"type":"thinking","thinking":"{}","signature":"{}"}}"#,
                    dice.prose(words),
                    dice.opaque(300)
                ),
                _ => format!(r#"{{"type":"text","text":"{}"}}"#, dice.prose(words)),
            };
            line(
                &mut text,
                dice,
                "assistant",
                &format!("{head}{block}{tail}"),
                &request,
            );
            let (a, b) = (dice.word(), dice.word());
            let block = format!(
                r#"{{"type":"tool_use","id":"toolu_{call}","name":"Bash","input":{{"command":"rg -n {a} src/{b}","description":"Search"}}}}"#
            );
            line(
                &mut text,
                dice,
                "assistant",
                &format!("{head}{block}{tail}"),
                &request,
            );
            let lines = dice.lines();
            let output = dice.code(lines);
            let result = format!(
                r#"{{"role":"user","content":[{{"tool_use_id":"toolu_{call}","type":"tool_result","content":"{output}"}}]}}"#
            );
            let twin = format!(
                r#","toolUseResult":{{"stdout":"{output}","stderr":"","interrupted":false}}"#
            );
            line(&mut text, dice, "user", &result, &twin);
        }
    }
    text
}

fn codex(dice: &mut Dice, id: &str, day: usize) -> String {
    let mut text = String::new();
    let (end, mut second) = (session_len(dice), 36_000);
    let mut line = |text: &mut String, dice: &mut Dice, kind: &str, payload: &str| {
        second += 1 + dice.below(4);
        let written = format!(
            r#"{{"timestamp":"2026-03-{day:02}T{:02}:{:02}:{:02}.456Z","type":"{kind}","payload":{payload}}}"#,
            second / 3600 % 24,
            second / 60 % 60,
            second % 60
        );
        text.push_str(&written);
        text.push('\n');
    };
    let meta = format!(
        r#"{{"id":"{id}","timestamp":"2026-03-{day:02}T10:00:00.000Z","cwd":"/code/codex","originator":"codex_cli_rs","cli_version":"0.120.0","source":"cli","model_provider":"openai"}}"#
    );
    line(&mut text, dice, "session_meta", &meta);
    let (mut input, mut cached, mut output, mut reasoning) = (0, 0, 0, 0);
    while text.len() < end {
        let turn = dice.uuid();
        let context = format!(
            r#"{{"turn_id":"{turn}","cwd":"/code/codex","approval_policy":"on-request","model":"gpt-5-codex","effort":"medium","summary":"auto"}}"#
        );
        line(&mut text, dice, "turn_context", &context);
        let words = 5 + dice.below(60);
        let said = dice.prose(words);
        line(
            &mut text,
            dice,
            "response_item",
            &format!(
                r#"{{"type":"message","role":"user","content":[{{"type":"input_text","text":"{said}"}}]}}"#
            ),
        );
        line(
            &mut text,
            dice,
            "event_msg",
            &format!(r#"{{"type":"user_message","message":"{said}"}}"#),
        );
        for _ in 0..=dice.below(12) {
            let call = dice.opaque(24);
            let len = 200 + dice.below(1200);
            let words = 10 + dice.below(30);
            let payload = format!(
                r#"{{"type":"reasoning","summary":[{{"type":"summary_text","text":"{}"}}],"content":null,"encrypted_content":"{}"}}"#,
                dice.prose(words),
                dice.opaque(len)
            );
            line(&mut text, dice, "response_item", &payload);
            let (a, b) = (dice.word(), dice.word());
            let payload = format!(
                r#"{{"type":"function_call","name":"shell","arguments":"{{\"command\":[\"bash\",\"-lc\",\"rg -n {a} src/{b}\"]}}","call_id":"call_{call}"}}"#
            );
            line(&mut text, dice, "response_item", &payload);
            let lines = dice.lines();
            let shown = dice.code(lines);
            line(
                &mut text,
                dice,
                "response_item",
                &format!(
                    r#"{{"type":"function_call_output","call_id":"call_{call}","output":"{shown}"}}"#
                ),
            );
            input += 5_000 + dice.below(20_000);
            cached += 4_000;
            output += 100 + dice.below(500);
            reasoning += 50;
            let total = input + output;
            let payload = format!(
                r#"{{"type":"token_count","info":{{"total_token_usage":{{"input_tokens":{input},"cached_input_tokens":{cached},"output_tokens":{output},"reasoning_output_tokens":{reasoning},"total_tokens":{total}}},"last_token_usage":{{"input_tokens":5000,"cached_input_tokens":4000,"output_tokens":100,"reasoning_output_tokens":50,"total_tokens":5100}},"model_context_window":272000}}}}"#
            );
            line(&mut text, dice, "event_msg", &payload);
        }
    }
    text
}
