//! Sessions written as files of Claude Code and of Codex, and read again: the proof that the files are what those agents
//! write, by readers that were made for theirs.

use std::io;

use quipu_formats::loss::Loss;
use quipu_formats::projection::{Nowhere, Projection};
use quipu_formats::{claude, codex};
use quipu_model::{Body, Content, Event, Header, Origin, Usage};

use crate::corpus::logs;
use crate::testkit::{Read, read};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Target {
    Claude,
    Codex,
}

/// What is known of a session as a whole, as an export knows it.
fn header(read: &Read) -> Header {
    let session = &read.session;
    let id = session.id.as_deref().unwrap_or("session");
    let mut header = Header::new(crate::run_id(id));
    header.title.clone_from(&session.title);
    header.origin = Some(Origin {
        agent: read.dialect.brand.to_owned(),
        agent_version: session.version.clone(),
        adapter: Some(read.dialect.name.to_owned()),
        session_id: session.id.clone().map(Into::into),
        path: None,
    });
    header.environment.cwd.clone_from(&session.cwd);
    header.environment.git_branch.clone_from(&session.branch);
    for event in &read.events {
        header.observe(event);
    }
    header
}

/// A session in another agent's file, and the path at which that agent has it.
fn write(read: &Read, target: Target) -> (Vec<u8>, String, Loss) {
    let header = header(read);
    let mut bytes = Vec::new();
    let out: Box<dyn io::Write + '_> = Box::new(&mut bytes);
    let (mut writer, place) = match target {
        Target::Claude => {
            let options = claude::ClaudeOptions {
                instructions: true,
                ..claude::ClaudeOptions::default()
            };
            let writer = claude::writer(&header, &options, out, Box::new(Nowhere)).unwrap();
            (writer, claude::place(&header, &options))
        }
        Target::Codex => {
            let options = codex::CodexOptions {
                instructions: true,
                ..codex::CodexOptions::default()
            };
            let writer = codex::writer(&header, &options, out, Box::new(Nowhere)).unwrap();
            (writer, codex::place(&header, &options))
        }
    };
    for event in &read.events {
        writer.event(event).unwrap();
    }
    let loss = Projection::finish(writer).unwrap();
    (bytes, place.to_str().unwrap().to_owned(), loss)
}

/// What was said and done, in order: who, what.
fn said(events: &[Event], target: Target) -> Vec<(&'static str, String)> {
    let mut said = Vec::new();
    let mut called_before = std::collections::BTreeSet::new();
    for event in events {
        let notes = &event.annotations;
        // Codex has no place for those.
        if target == Target::Codex && notes.subagent_id.is_some() && !is_sub_agents_own(events) {
            continue;
        }
        match &event.body {
            Body::UserMessage(blocks) => {
                said.extend(texts(blocks).map(|text| ("user", text)));
            }
            Body::AssistantMessage(blocks) => {
                said.extend(texts(blocks).map(|text| ("agent", text)));
                let thought = blocks.iter().filter_map(|block| match &block.content {
                    Content::Thinking(text) if !text.is_empty() => Some(text.clone()),
                    _ => None,
                });
                said.extend(thought.map(|text| ("thought", text)));
            }
            Body::ToolCall(call) => {
                called_before.insert(call.call_id.clone());
                said.push(("call", called(call, target)));
            }
            // Codex has no place for a result without a call, nor for a second one.
            Body::ToolResult(result)
                if target == Target::Claude || called_before.remove(&result.call_id) =>
            {
                let output = result.output.as_ref().map(plain).unwrap_or_default();
                let error = result.error.as_deref().unwrap_or_default();
                // Why it failed may be what it gave back, and a list that failed has no text of its own.
                let error = if output.is_empty() { error } else { "" };
                let text = format!("{output}{error}");
                // What was filled in, because a call has to have a result.
                if !FILLED_IN.contains(&&*text) {
                    said.push(("result", text));
                }
            }
            _ => {}
        }
    }
    said
}

const FILLED_IN: [&str; 2] = ["No result of this call was recorded.", "aborted"];

/// A call as the target has it: a name of plain characters, and for Claude Code an object.
fn called(call: &quipu_model::ToolCall, target: Target) -> String {
    let input = call.input.as_ref().map_or("{}", |input| input.get());
    let input = if input == "null" { "{}" } else { input };
    let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    let mut name = call.name.replace(|c| !is_plain(c), "_");
    // What is between the name of a server and that of its tool may be more than one character.
    while name.contains("__") {
        name = name.replace("__", "_");
    }
    if target == Target::Claude && !input.starts_with('{') {
        return format!("{name} {{\"input\":{input}}}");
    }
    format!("{name} {input}")
}

/// What a tool gave back as a text: the texts of a list, or the JSON of what is no text.
fn plain(output: &quipu_model::Json) -> String {
    let value: serde_json::Value = match serde_json::from_str(output.get()) {
        Ok(value) => value,
        Err(_) => return output.get().to_owned(),
    };
    match value {
        serde_json::Value::String(text) => text,
        serde_json::Value::Array(items) => {
            let text = |item: &serde_json::Value| {
                let kind = item["type"].as_str().unwrap_or_default();
                match kind {
                    "text" | "input_text" => item["text"].as_str().map(str::to_owned),
                    "image" | "input_image" => Some("[image not included]".to_owned()),
                    _ => None,
                }
            };
            let texts: Option<Vec<String>> = items.iter().map(text).collect();
            texts.map_or_else(|| output.get().to_owned(), |texts| texts.join("|"))
        }
        _ => output.get().to_owned(),
    }
}

fn texts(blocks: &[quipu_model::Block]) -> impl Iterator<Item = String> + '_ {
    blocks.iter().filter_map(|block| match &block.content {
        Content::Text(text) if !text.is_empty() => Some(text.clone()),
        _ => None,
    })
}

fn total(usage: Usage) -> [u64; 5] {
    [
        usage.input,
        usage.cache_read,
        usage.cache_write,
        usage.output,
        usage.reasoning,
    ]
    .map(|count| count.unwrap_or(0))
}

/// The kinds of what was said, by how many of each.
fn kinds(said: &[(&'static str, String)]) -> std::collections::BTreeMap<&'static str, usize> {
    let mut kinds = std::collections::BTreeMap::new();
    for (kind, _) in said {
        *kinds.entry(*kind).or_default() += 1;
    }
    kinds
}

/// Writes a log as another agent's and reads it again.
fn across(name: &str, from: &Read, target: Target) -> (Read, Loss) {
    let (bytes, place, loss) = write(from, target);
    assert!(loss.carried <= loss.events, "{name}: {loss}");
    let again = read(&bytes, &place).unwrap_or_else(|| panic!("{name} reads as nothing"));
    let dialect = match target {
        Target::Claude => "claude",
        Target::Codex => "codex",
    };
    assert_eq!(again.dialect.name, dialect, "{name}");
    assert!(
        again.ledger.drift.unknown.is_empty(),
        "{name}: {:?}",
        again.ledger.drift
    );
    assert_eq!(again.error, None, "{name}");
    (again, loss)
}

const FOLDERS: [&str; 5] = ["claude", "codex", "codex-exec", "grok", "qwen"];

fn every_log(mut check: impl FnMut(&str, &Read)) {
    for folder in FOLDERS {
        for (name, bytes) in logs(folder) {
            let Some(read) = read(&bytes, &name) else {
                continue;
            };
            if read.events.len() > 1 {
                check(&format!("{folder}/{name}"), &read);
            }
        }
    }
}

/// Whether a log is that of a sub-agent itself: then what it says is the conversation.
fn is_sub_agents_own(events: &[Event]) -> bool {
    let mut said = events
        .iter()
        .filter(|event| !matches!(event.body, Body::Note(_)));
    said.all(|event| event.annotations.subagent_id.is_some())
}

/// What differs between a log and what was written of it and read again.
fn differs(name: &str, from: &Read, target: Target) -> Option<String> {
    let (again, _) = across(name, from, target);
    let before = said(&from.events, target);
    let after = said(&again.events, target);
    let first = before
        .iter()
        .zip(&after)
        .position(|(one, other)| one != other);
    if let Some(at) = first {
        return Some(format!(
            "{name}, {at}: {:?} and {:?}",
            before[at], after[at]
        ));
    }
    if before.len() != after.len() {
        return Some(format!(
            "{name}: {:?} and {:?}",
            kinds(&before),
            kinds(&after)
        ));
    }
    let (one, other) = (total(from.usage()), total(again.usage()));
    (one != other).then(|| format!("{name}: {one:?} and {other:?} tokens"))
}

fn check(target: Target) {
    let mut found = Vec::new();
    every_log(|name, from| found.extend(differs(name, from, target)));
    assert!(found.is_empty(), "{}", found.join("\n"));
}

#[test]
fn what_is_written_for_claude_code_reads_as_its_own() {
    check(Target::Claude);
}

#[test]
fn what_is_written_for_codex_reads_as_its_own() {
    check(Target::Codex);
}

/// From one to the other and back: what both have a place for is the same at the end.
#[test]
fn a_session_comes_back_from_the_other_agent() {
    let mut found = Vec::new();
    every_log(|name, from| {
        for (there, back) in [
            (Target::Claude, Target::Codex),
            (Target::Codex, Target::Claude),
        ] {
            let (once, _) = across(name, from, there);
            found.extend(differs(&format!("{name} by {there:?}"), &once, back));
        }
    });
    assert!(found.is_empty(), "{}", found.join("\n"));
}

/// Written again from the same session, a file is the same; written from what was written, it has another id.
#[test]
fn ids_follow_from_the_session() {
    let log = concat!(
        r#"{"type":"user","uuid":"u1","parentUuid":null,"sessionId":"0a1b2c3d-4e5f-4061-8071-2a3b4c5d6e7f","cwd":"/code","timestamp":"2026-06-08T08:14:42.123Z","message":{"role":"user","content":"hello"}}"#,
        "\n",
        r#"{"type":"assistant","uuid":"u2","parentUuid":"u1","sessionId":"0a1b2c3d-4e5f-4061-8071-2a3b4c5d6e7f","timestamp":"2026-06-08T08:14:43.123Z","message":{"id":"msg_1","role":"assistant","model":"claude-x","content":[{"type":"text","text":"hi"}],"usage":{"input_tokens":3,"output_tokens":2}}}"#,
        "\n",
    );
    let from = read(log.as_bytes(), "0a1b2c3d-4e5f-4061-8071-2a3b4c5d6e7f.jsonl").unwrap();
    for target in [Target::Claude, Target::Codex] {
        let (one, place, loss) = write(&from, target);
        assert_eq!(one, write(&from, target).0);
        let again = read(&one, &place).unwrap();
        assert_ne!(again.session.id, from.session.id);
        assert_eq!(again.session.cwd.as_deref(), Some("/code"));
        assert!(
            place.contains(again.session.id.as_deref().unwrap()),
            "{place}"
        );
        assert_eq!(loss.carried, 2, "{loss}");
        assert_eq!(said(&from.events, target), said(&again.events, target));
    }
}
