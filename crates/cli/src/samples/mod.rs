//! Sessions that come with Quipu, for whoever has none yet.
//!
//! They are written by us and told as such. They live in a home of their own, beside the real one, and
//! never mix with what a person has: a directory that looks like that of a person who uses several
//! agents is made in it, and imported the way any such directory is.

mod run;

use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use quipu_agents::Host;
use quipu_record::{Clock as _, SystemClock};
use quipu_store::Store;
use quipu_store::import::{ImportOptions, Progress, Report};

use crate::error::{Result, io_error};

pub(crate) use run::RUN;

/// The files, by their places below a person's home.
const FILES: &[(&str, &str)] = &[
    (
        ".claude/history.jsonl",
        include_str!("../../samples/claude/history.jsonl"),
    ),
    (
        ".claude/projects/-home-ada-src-relay/5d2c1f0e-8a4b-4c6d-9e2f-71b3a0c4d5e6.jsonl",
        include_str!(
            "../../samples/claude/projects/-home-ada-src-relay/5d2c1f0e-8a4b-4c6d-9e2f-71b3a0c4d5e6.jsonl"
        ),
    ),
    (
        ".claude/projects/-home-ada-src-relay/5d2c1f0e-8a4b-4c6d-9e2f-71b3a0c4d5e6/subagents/agent-a1f3c2d.jsonl",
        include_str!(
            "../../samples/claude/projects/-home-ada-src-relay/5d2c1f0e-8a4b-4c6d-9e2f-71b3a0c4d5e6/subagents/agent-a1f3c2d.jsonl"
        ),
    ),
    (
        ".claude/projects/-home-ada-src-relay/5d2c1f0e-8a4b-4c6d-9e2f-71b3a0c4d5e6/subagents/agent-a1f3c2d.meta.json",
        include_str!(
            "../../samples/claude/projects/-home-ada-src-relay/5d2c1f0e-8a4b-4c6d-9e2f-71b3a0c4d5e6/subagents/agent-a1f3c2d.meta.json"
        ),
    ),
    (
        ".codex/sessions/2026/11/11/rollout-2026-11-11T16-02-00-019a5c11-7a40-7c31-9d52-6f0e8b1c2a90.jsonl",
        include_str!(
            "../../samples/codex/rollout-2026-11-11T16-02-00-019a5c11-7a40-7c31-9d52-6f0e8b1c2a90.jsonl"
        ),
    ),
    (
        ".copilot/session-state/b7e4d210-3c5a-4f8e-a1b2-0d9c8e7f6a54/events.jsonl",
        include_str!("../../samples/copilot/b7e4d210-3c5a-4f8e-a1b2-0d9c8e7f6a54/events.jsonl"),
    ),
    (
        ".local/share/opencode/storage/message/ses_4f1a2b3c4d5e6f7a8b9c/msg_4f1a0001.json",
        include_str!(
            "../../samples/opencode/storage/message/ses_4f1a2b3c4d5e6f7a8b9c/msg_4f1a0001.json"
        ),
    ),
    (
        ".local/share/opencode/storage/message/ses_4f1a2b3c4d5e6f7a8b9c/msg_4f1a0002.json",
        include_str!(
            "../../samples/opencode/storage/message/ses_4f1a2b3c4d5e6f7a8b9c/msg_4f1a0002.json"
        ),
    ),
    (
        ".local/share/opencode/storage/part/msg_4f1a0001/prt_4f1a0001.json",
        include_str!("../../samples/opencode/storage/part/msg_4f1a0001/prt_4f1a0001.json"),
    ),
    (
        ".local/share/opencode/storage/part/msg_4f1a0002/prt_4f1a0002.json",
        include_str!("../../samples/opencode/storage/part/msg_4f1a0002/prt_4f1a0002.json"),
    ),
    (
        ".local/share/opencode/storage/part/msg_4f1a0002/prt_4f1a0003.json",
        include_str!("../../samples/opencode/storage/part/msg_4f1a0002/prt_4f1a0003.json"),
    ),
    (
        ".local/share/opencode/storage/part/msg_4f1a0002/prt_4f1a0004.json",
        include_str!("../../samples/opencode/storage/part/msg_4f1a0002/prt_4f1a0004.json"),
    ),
    (
        ".local/share/opencode/storage/part/msg_4f1a0002/prt_4f1a0005.json",
        include_str!("../../samples/opencode/storage/part/msg_4f1a0002/prt_4f1a0005.json"),
    ),
    (
        ".local/share/opencode/storage/part/msg_4f1a0002/prt_4f1a0006.json",
        include_str!("../../samples/opencode/storage/part/msg_4f1a0002/prt_4f1a0006.json"),
    ),
    (
        ".local/share/opencode/storage/session/relay/ses_4f1a2b3c4d5e6f7a8b9c.json",
        include_str!("../../samples/opencode/storage/session/relay/ses_4f1a2b3c4d5e6f7a8b9c.json"),
    ),
];

/// The home of samples that belongs to a home.
pub(crate) fn home(of: &Path) -> PathBuf {
    match of.file_name() {
        Some(name) => {
            let mut name = name.to_owned();
            name.push("-samples");
            of.with_file_name(name)
        }
        None => of.join("quipu-samples"),
    }
}

/// Brings the samples into a home. What is there already stays as it is.
pub(crate) fn load(home: &Path) -> Result<Report> {
    let store = Store::open(home)?;
    // Not a temporary directory: samples name their place, and loading them twice is to change nothing.
    let person = home.join("machine");
    for (name, text) in FILES {
        let path = person.join(name);
        write(&path, text).map_err(io_error(format!("could not write {}", path.display())))?;
    }
    run::record(home)?;
    let options = ImportOptions {
        now: SystemClock.now(),
        agents: Vec::new(),
        dry_run: false,
        threads: 0,
        redact: None,
    };
    let host = Host::new(&person, |_| None);
    Ok(store.import(&host, &options, &Progress::default())?)
}

fn write(path: &Path, text: &str) -> io::Result<()> {
    if fs::read(path).is_ok_and(|there| there == text.as_bytes()) {
        return Ok(());
    }
    let directory = path.parent().unwrap_or(path);
    quipu_files::create_directory(directory)?;
    let mut options = quipu_files::options();
    options.write(true).create(true).truncate(true);
    options.open(path)?.write_all(text.as_bytes())
}
