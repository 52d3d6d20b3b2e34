use std::collections::HashMap;

use proptest::prelude::*;
use quipu_model::{Body, Content, Json, RunId};
use serde_json::Value;

use super::*;
use crate::arbitrary;
use crate::handover::own::MAIN;
use crate::handover::testkit::{golden, lines, of_subagent, sample, write};

#[test]
fn a_session_is_written_as_it_always_was() {
    let (header, events, blobs) = sample();
    let (bytes, loss) = write(&events, &blobs, |out| {
        writer(
            &header,
            &ClaudeOptions::default(),
            out,
            Box::new(crate::projection::Nowhere),
        )
        .unwrap()
    });
    golden("claude/golden/session.jsonl", &bytes);
    golden(
        "claude/golden/session.loss.txt",
        format!("{loss}\n").as_bytes(),
    );
}

/// What Claude Code sends: the lines that lead to the last one.
fn live(lines: &[Value]) -> Vec<&Value> {
    let by_id: HashMap<&str, &Value> = lines
        .iter()
        .filter_map(|line| Some((line["uuid"].as_str()?, line)))
        .collect();
    let last = lines
        .iter()
        .rev()
        .find(|line| line["uuid"].is_string() && line["isSidechain"] == false);
    let mut live = Vec::new();
    let mut at = last;
    while let Some(line) = at {
        live.push(line);
        at = line["parentUuid"]
            .as_str()
            .and_then(|id| by_id.get(id).copied());
    }
    live.reverse();
    live
}

/// What the provider refuses.
fn refused(live: &[&Value]) -> Option<String> {
    let mut open: HashMap<String, usize> = HashMap::new();
    let mut used = std::collections::HashSet::new();
    let mut reply = String::new();
    for line in live {
        if line["type"] == "system" {
            continue;
        }
        let message = &line["message"];
        if line["type"] == "assistant" {
            let id = message["id"].as_str().unwrap_or_default();
            if id != reply && !open.is_empty() {
                return Some(format!("a reply before the results of {open:?}"));
            }
            id.clone_into(&mut reply);
        }
        let content = match &message["content"] {
            Value::String(text) if text.trim().is_empty() => {
                return Some("a blank text".to_owned());
            }
            Value::Array(blocks) => blocks.as_slice(),
            _ => &[],
        };
        for block in content {
            let id = |key: &str| block[key].as_str().unwrap_or_default().to_owned();
            match block["type"].as_str().unwrap_or_default() {
                "thinking" if id("signature").is_empty() => {
                    return Some("thinking without a signature".to_owned());
                }
                "text" if id("text").trim().is_empty() => return Some("a blank text".to_owned()),
                "tool_use" => {
                    if !block["input"].is_object()
                        || !used.insert(id("id"))
                        || id("name").is_empty()
                    {
                        return Some(format!("a call that is none: {block}"));
                    }
                    open.insert(id("id"), 1);
                }
                "tool_result" if open.remove(&id("tool_use_id")).is_none() => {
                    return Some(format!("a result without a call: {block}"));
                }
                _ => {}
            }
        }
    }
    (!open.is_empty()).then(|| format!("no results of {open:?}"))
}

proptest! {
    #[test]
    fn what_is_sent_is_what_the_provider_takes((header, events) in arbitrary::session(), instructions: bool) {
        let options = ClaudeOptions { instructions, ..ClaudeOptions::default() };
        let go = || write(&events, &[], |out| {
            writer(&header, &options, out, Box::new(crate::projection::Nowhere)).unwrap()
        });
        let (bytes, loss) = go();
        prop_assert_eq!(&bytes, &go().0);
        prop_assert_eq!(loss.events, events.len() as u64);
        prop_assert!(loss.carried <= loss.events);
        let lines = lines(&bytes);
        let mut ids = std::collections::HashSet::new();
        for line in &lines {
            prop_assert_eq!(line["sessionId"].as_str(), Some(&*session_id(&header, &options)));
            if let Some(id) = line["uuid"].as_str() {
                prop_assert!(ids.insert(id.to_owned()), "{} twice", id);
            }
        }
        prop_assert_eq!(refused(&live(&lines)), None);
    }
}

#[test]
fn thinking_is_handed_over_with_its_own_signature_and_with_no_other() {
    let thought = |agent: &str, text: &str, extra: &str| {
        let (mut header, mut events, _) = sample();
        if let Some(origin) = &mut header.origin {
            agent.clone_into(&mut origin.agent);
        }
        events.truncate(5);
        let Body::AssistantMessage(blocks) = &mut events[3].body else {
            panic!()
        };
        blocks[0].content = Content::Thinking(text.to_owned());
        events[3].annotations.extra = Json::parse(extra).ok();
        events[4].annotations.stop_reason = Some("max_tokens".to_owned());
        let (bytes, _) = write(&events, &[], |out| {
            let beside = Box::new(crate::projection::Nowhere);
            writer(&header, &ClaudeOptions::default(), out, beside).unwrap()
        });
        let lines = lines(&bytes);
        let sent: Vec<Value> = live(&lines)
            .iter()
            .filter(|line| line["type"] == "assistant")
            .map(|line| line["message"]["content"][0].clone())
            .collect();
        let stop = lines
            .iter()
            .find(|line| line["message"]["content"][0]["type"] == "text");
        assert_eq!(stop.unwrap()["message"]["stop_reason"], "max_tokens");
        sent
    };
    let text = serde_json::json!({"type": "text", "text": "I look."});
    let signed = r#"{"requestId":"r","block":{"signature":"c2ln"}}"#;
    let sealed = serde_json::json!({"type": "thinking", "thinking": "so", "signature": "c2ln"});
    assert_eq!(thought("claude-code", "so", signed), [sealed, text.clone()]);
    let hidden = serde_json::json!({"type": "redacted_thinking", "data": "x"});
    assert_eq!(
        thought("claude-code", "", r#"{"block":{"data":"x"}}"#),
        [hidden, text.clone()]
    );
    for (agent, said, extra) in [
        ("opencode", "so", signed),
        ("claude-code", "so [REDACTED:email]", signed),
        ("claude-code", "so", r#"{"redacted":"[REDACTED:raw]"}"#),
        ("claude-code", "so", r#"{"block":{"signature":""}}"#),
    ] {
        assert_eq!(
            thought(agent, said, extra),
            std::slice::from_ref(&text),
            "{agent} {extra}"
        );
    }
}

#[test]
fn a_session_has_its_place() {
    let mut header = Header::new(RunId::new("r1").unwrap());
    let options = ClaudeOptions::default();
    let id = session_id(&header, &options);
    header.environment.cwd = Some("/home/ada/my project.d/é😀".to_owned());
    let place = place(&header, &options);
    let expected = format!("projects/-home-ada-my-project-d----/{id}.jsonl");
    assert_eq!(place.to_str(), Some(&*expected));
    assert_eq!(
        resume_hint(&header, &options),
        format!("cd '/home/ada/my project.d/é😀' && claude --resume {id}")
    );
    header.environment.cwd = Some(format!("/{}", "x".repeat(300)));
    let long = project(cwd(&header, &options));
    assert!(long.len() < 230 && long.starts_with("-xxx"), "{long}");
}

#[test]
fn a_directory_forges_no_lines() {
    let mut header = Header::new(RunId::new("r1").unwrap());
    let options = ClaudeOptions::default();
    let plain = format!("claude --resume {}", session_id(&header, &options));
    for name in [
        "/a\nrm -rf b",
        "/\u{1b}[2J",
        "/\u{202e}x",
        "/\u{2028}x",
        "/\u{9b}x",
    ] {
        header.environment.cwd = Some(name.to_owned());
        assert_eq!(resume_hint(&header, &options), plain, "{name:?}");
    }
}

#[test]
fn the_line_of_a_log_that_is_a_sub_agents_own_is_the_main_one() {
    let go = |header: &Header, events: &[_]| {
        let (bytes, loss) = write(events, &[], |out| {
            let beside = Box::new(crate::projection::Nowhere);
            writer(header, &ClaudeOptions::default(), out, beside).unwrap()
        });
        (lines(&bytes), loss)
    };
    let (mut header, events) = of_subagent();
    for parent in [None, Some(RunId::new("p").unwrap())] {
        header.parent_run_id = parent;
        let (lines, loss) = go(&header, &events);
        let side = lines.iter().filter(|line| line["isSidechain"] == true);
        assert_eq!(side.count(), 1, "its own sub-agent");
        assert_eq!((loss.carried, loss.wrapped[MAIN].count), (5, 4));
        let live = live(&lines);
        assert_eq!(refused(&live), None);
        let said = |text: &str| live.iter().any(|line| line.to_string().contains(text));
        assert!(said("Look around.") && said("Looked."));
        // Its own sub-agents are beside it.
        assert!(!said("Below."));
    }
    // A log that begins with a sub-agent is not its own when the agent speaks as well.
    header.parent_run_id = None;
    let mut both = events;
    both.extend(sample().1);
    let (lines, loss) = go(&header, &both);
    assert!(!loss.wrapped.contains_key(MAIN));
    let side = |line: &&Value| line["isSidechain"] == true;
    assert!(lines.iter().filter(side).count() > 4);
}
