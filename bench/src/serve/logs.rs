//! What is served: sessions of Claude Code and a recorded run, as many and as long as is wanted.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use anyhow::Result;
use jiff::Timestamp;
use quipu_record::{Durability, Storage};

use crate::corpus::dice::Dice;
use crate::files::put;
use crate::sample::{draft, options, run_id};

/// When the first session begins: the beginning of 2026.
const BEGINNING: i64 = 1_767_225_600;

/// Words to say.
const WORDS: [&str; 16] = [
    "the", "parser", "fails", "on", "empty", "lines", "because", "a", "buffer", "is", "reused",
    "between", "two", "calls", "of", "read",
];

/// Writes a session of so many messages, each of some bytes, and gives its id.
pub(super) fn session(home: &Path, n: usize, messages: usize, bytes: usize) -> Result<String> {
    let mut dice = Dice::new(n as u64 + 1);
    let id = dice.uuid();
    let mut log = String::new();
    let mut parent = "null".to_owned();
    for message in 0..messages {
        let (uuid, mut text) = (dice.uuid(), String::new());
        while text.len() < bytes {
            text.push_str(dice.pick(&WORDS));
            text.push(' ');
        }
        let second = BEGINNING + i64::try_from(n * 60 + message)?;
        let at = Timestamp::from_second(second)?;
        let (kind, said) = if message % 2 == 0 {
            let said = format!(r#"{{"role":"user","content":"{text}"}}"#);
            ("user", said)
        } else {
            let said = format!(
                r#"{{"model":"claude-sonnet-4-5-20250929","id":"msg_{n}_{message}","type":"message","role":"assistant","content":[{{"type":"text","text":"{text}"}}],"stop_reason":"end_turn","usage":{{"input_tokens":12,"output_tokens":34}}}}"#
            );
            ("assistant", said)
        };
        writeln!(
            log,
            r#"{{"parentUuid":{parent},"isSidechain":false,"userType":"external","cwd":"/code/p{}","sessionId":"{id}","version":"2.1.200","gitBranch":"main","type":"{kind}","message":{said},"uuid":"{uuid}","timestamp":"{at:.3}"}}"#,
            n % 20
        )?;
        parent = format!("\"{uuid}\"");
    }
    let directory = home.join(format!(".claude/projects/-code-p{}", n % 20));
    fs::create_dir_all(&directory)?;
    put(&directory.join(format!("{id}.jsonl")), log.as_bytes())?;
    Ok(id)
}

/// Records a run of so many events, and gives its id.
pub(super) fn run(home: &Path, events: usize) -> Result<String> {
    let id = run_id(1);
    let recorder = Storage::at(home).record(&id, options(Durability::None))?;
    let draft = draft();
    for _ in 0..events {
        recorder.record(&draft)?;
    }
    recorder.close()?;
    Ok(id.as_str().to_owned())
}
