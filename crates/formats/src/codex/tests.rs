use proptest::prelude::*;
use quipu_model::RunId;
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
            &CodexOptions::default(),
            out,
            Box::new(crate::projection::Nowhere),
        )
        .unwrap()
    });
    golden("codex/golden/rollout.jsonl", &bytes);
    golden(
        "codex/golden/rollout.loss.txt",
        format!("{loss}\n").as_bytes(),
    );
}

/// What the provider refuses: calls without results, results without calls, names and ids of the wrong kind.
fn refused(lines: &[Value]) -> Option<String> {
    let mut open = std::collections::HashSet::new();
    let mut used = std::collections::HashSet::new();
    for line in lines.iter().filter(|line| line["type"] == "response_item") {
        let item = &line["payload"];
        let id = item["call_id"].as_str().unwrap_or_default().to_owned();
        match item["type"].as_str().unwrap_or_default() {
            "function_call" | "custom_tool_call" => {
                let text = item["arguments"].as_str().or(item["input"].as_str());
                if text.is_none() || !used.insert(id.clone()) {
                    return Some(format!("a call that is none: {item}"));
                }
                open.insert(id);
            }
            "function_call_output" | "custom_tool_call_output" if !open.remove(&id) => {
                return Some(format!("a result without a call: {item}"));
            }
            "reasoning" => return Some("reasoning".to_owned()),
            _ => {}
        }
    }
    (!open.is_empty()).then(|| format!("no results of {open:?}"))
}

proptest! {
    #[test]
    fn what_is_sent_is_what_the_provider_takes((header, events) in arbitrary::session(), instructions: bool) {
        let options = CodexOptions { instructions, ..CodexOptions::default() };
        let go = || write(&events, &[], |out| {
            writer(&header, &options, out, Box::new(crate::projection::Nowhere)).unwrap()
        });
        let (bytes, loss) = go();
        prop_assert_eq!(&bytes, &go().0);
        prop_assert_eq!(loss.events, events.len() as u64);
        prop_assert!(loss.carried <= loss.events);
        let lines = lines(&bytes);
        prop_assert_eq!(lines[0]["type"].as_str(), Some("session_meta"));
        prop_assert_eq!(lines[0]["payload"]["id"].as_str(), Some(&*session_id(&header, &options)));
        prop_assert_eq!(refused(&lines), None);
    }
}

#[test]
fn a_session_has_its_place() {
    let mut header = Header::new(RunId::new("r1").unwrap());
    header.started_at = Some("2026-06-08T08:14:42.123Z".parse().unwrap());
    header.environment.cwd = Some("/home/ada's".to_owned());
    let options = CodexOptions::default();
    let id = session_id(&header, &options);
    let expected = format!("sessions/2026/06/08/rollout-2026-06-08T08-14-42-{id}.jsonl");
    assert_eq!(place(&header, &options).to_str(), Some(&*expected));
    assert_eq!(
        resume_hint(&header, &options),
        format!(r"cd '/home/ada'\''s' && codex resume {id}")
    );
}

#[test]
fn a_directory_forges_no_lines() {
    let mut header = Header::new(RunId::new("r1").unwrap());
    let options = CodexOptions::default();
    let plain = format!("codex resume {}", session_id(&header, &options));
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
    let (header, events) = of_subagent();
    let (bytes, loss) = write(&events, &[], |out| {
        let beside = Box::new(crate::projection::Nowhere);
        writer(&header, &CodexOptions::default(), out, beside).unwrap()
    });
    assert_eq!((loss.events, loss.carried), (5, 4));
    assert_eq!(loss.wrapped[MAIN].count, 4);
    let text = String::from_utf8(bytes).unwrap();
    assert!(text.contains("Look around.") && text.contains("Looked.") && !text.contains("Below."));
}
