//! Sessions of Claude Code with all that a page has to draw: prompts, answers with lists and code, reasoning, tool calls and errors.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use anyhow::Result;
use jiff::Timestamp;

use crate::corpus::dice::Dice;
use crate::files::put;

/// When the first session begins: the beginning of 2026.
const BEGINNING: i64 = 1_767_225_600;

/// Words to say; `search` looks for them.
pub(super) const WORDS: [&str; 16] = [
    "the", "parser", "fails", "on", "empty", "lines", "because", "a", "buffer", "is", "reused",
    "between", "two", "calls", "of", "read",
];

struct Log {
    dice: Dice,
    text: String,
    id: String,
    project: usize,
    parent: String,
    second: i64,
    events: usize,
}

/// Writes a session of so many events, and gives its id.
pub(super) fn session(home: &Path, n: usize, events: usize) -> Result<String> {
    let mut dice = Dice::new(n as u64 + 1);
    let mut log = Log {
        id: dice.uuid(),
        dice,
        text: String::new(),
        project: n % 20,
        parent: "null".to_owned(),
        second: BEGINNING + i64::try_from(n)? * 3_600,
        events: 0,
    };
    let mut call = 0;
    while log.events < events {
        let prompt = log.words(30);
        log.line(
            "user",
            &format!(r#"{{"role":"user","content":"{prompt}"}}"#),
        )?;
        for _ in 0..=log.dice.below(10) {
            call += 1;
            if log.events < events {
                log.step(n, call)?;
            }
        }
    }
    let directory = home.join(format!(".claude/projects/-code-p{}", log.project));
    fs::create_dir_all(&directory)?;
    put(
        &directory.join(format!("{}.jsonl", log.id)),
        log.text.as_bytes(),
    )?;
    Ok(log.id)
}

impl Log {
    /// An answer, a tool call and its result.
    fn step(&mut self, n: usize, call: usize) -> Result<()> {
        if call.is_multiple_of(5) {
            let thought = self.words(60);
            self.block(
                n,
                call,
                &format!(r#"{{"type":"thinking","thinking":"{thought}","signature":"x"}}"#),
            )?;
        }
        let (long, brief) = (self.words(20), self.words(9));
        let code = r#"```rust\nfn main() { println!(\"{}\", 1 + 2); }\n```"#;
        self.block(n, call, &format!(r#"{{"type":"text","text":"**Looking** at `src/lib.rs`:\n\n- {long}\n- {brief}\n\n{code}\n"}}"#))?;
        let what = self.words(4);
        self.block(n, call, &format!(r#"{{"type":"tool_use","id":"toolu_{n}_{call}","name":"Bash","input":{{"command":"cargo test {what}"}}}}"#))?;
        let output: Vec<String> = (0..12).map(|_| self.words(12)).collect();
        let (output, failed) = (output.join("\\n"), call.is_multiple_of(40));
        self.line("user", &format!(r#"{{"role":"user","content":[{{"type":"tool_result","tool_use_id":"toolu_{n}_{call}","content":"{output}","is_error":{failed}}}]}}"#))
    }

    /// A block of an answer.
    fn block(&mut self, n: usize, call: usize, block: &str) -> Result<()> {
        self.line("assistant", &format!(
            r#"{{"model":"claude-sonnet-4-5-20250929","id":"msg_{n}_{call}","type":"message","role":"assistant","content":[{block}],"stop_reason":null,"usage":{{"input_tokens":12,"output_tokens":34,"cache_read_input_tokens":9000,"cache_creation_input_tokens":20}}}}"#
        ))
    }

    /// A line of the log, which is an event.
    fn line(&mut self, kind: &str, message: &str) -> Result<()> {
        let uuid = self.dice.uuid();
        let at = Timestamp::from_second(self.second)?;
        let (parent, project, id) = (&self.parent, self.project, &self.id);
        writeln!(
            self.text,
            r#"{{"parentUuid":{parent},"isSidechain":false,"userType":"external","cwd":"/code/p{project}","sessionId":"{id}","version":"2.1.200","gitBranch":"main","type":"{kind}","message":{message},"uuid":"{uuid}","timestamp":"{at:.3}"}}"#
        )?;
        self.parent = format!("\"{uuid}\"");
        self.second += 1 + i64::try_from(self.dice.below(20))?;
        self.events += 1;
        Ok(())
    }

    fn words(&mut self, some: usize) -> String {
        let words: Vec<&str> = (0..some).map(|_| self.dice.pick(&WORDS)).collect();
        words.join(" ")
    }
}
