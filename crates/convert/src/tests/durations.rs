//! How long something took is what the log says, or the time between two times that it has.

use std::fs;
use std::path::Path;

use quipu_formats::projection::Nowhere;
use quipu_model::{
    Annotations, Block, Body, Event, Fidelity, Flags, Header, Json, Notes, Place, RunId, Step,
    Timestamp, ToolCall, ToolResult,
};
use serde_json::Value;

use crate::output::Folder;
use crate::{Format, Shape, TargetOptions, writer};

/// A year.
const LONG_MS: f64 = 365.0 * 86_400_000.0;

/// Prompt, call, result and answer; what is not dated has the time that logs without times are read with.
fn session(dated: [bool; 4]) -> (Header, Vec<Event>) {
    let run = RunId::new("r1").unwrap();
    let step = Step::new("review", "agent");
    let text = |text: &str| vec![Block::text(Fidelity::AgentEmitted, text)];
    let result = ToolResult {
        name: "bash".to_owned(),
        call_id: "t1".into(),
        input: None,
        output: Some(Json::string("x")),
        error: None,
        fidelity: Fidelity::AgentEmitted,
    };
    let call = ToolCall {
        name: "bash".to_owned(),
        call_id: "t1".into(),
        input: None,
        fidelity: Fidelity::AgentEmitted,
    };
    let bodies = [
        Body::UserMessage(text("go")),
        Body::ToolCall(call),
        Body::ToolResult(result),
        Body::AssistantMessage(text("Done.")),
    ];
    let bodies = dated.into_iter().zip(bodies);
    let steps = [
        (dated[0], Body::StepStarted(step.clone())),
        (dated[3], Body::StepCompleted(step.succeeded(None))),
    ];
    let [begins, ends] = steps;
    let all = std::iter::once(begins).chain(bodies).chain([ends]);
    let mut header = Header::new(run.clone());
    let events: Vec<_> = (1..)
        .zip(all)
        .map(|(seq, (is_dated, body))| Event {
            seq,
            run_id: run.clone(),
            parent_run_id: None,
            timestamp: if is_dated {
                Timestamp::from_second(1_780_000_000 + i64::try_from(seq).unwrap()).unwrap()
            } else {
                Timestamp::UNIX_EPOCH
            },
            place: Place::step("review"),
            body,
            annotations: Annotations::from(Notes {
                model: Some("m".to_owned()),
                flags: Flags {
                    undated: !is_dated,
                    ..Flags::default()
                },
                ..Notes::default()
            }),
        })
        .collect();
    for event in &events {
        header.observe(event);
    }
    (header, events)
}

/// Numbers that say how long something took, in milliseconds.
fn durations(value: &Value, found: &mut Vec<(String, f64)>) {
    if let Value::Object(fields) = value {
        let nanos = |key: &str| fields.get(key)?.as_str()?.parse::<f64>().ok();
        if let (Some(from), Some(to)) = (nanos("startTimeUnixNano"), nanos("endTimeUnixNano")) {
            found.push(("span".to_owned(), (to - from) / 1e6));
        }
        for (key, value) in fields {
            let name = key.to_ascii_lowercase();
            let is_duration = ["duration", "latency", "elapsed", "took"]
                .iter()
                .any(|word| name.contains(word));
            let number = value.as_f64().filter(|_| is_duration);
            let scale = if name.contains("ms") { 1.0 } else { 1000.0 };
            found.extend(number.map(|number| (key.clone(), number * scale)));
            durations(value, found);
        }
    }
    if let Value::Array(items) = value {
        for item in items {
            durations(item, found);
        }
    }
}

fn files(below: &Path, found: &mut Vec<String>) {
    for entry in fs::read_dir(below).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files(&path, found);
        } else {
            found.push(fs::read_to_string(path).unwrap());
        }
    }
}

#[test]
fn no_format_makes_a_duration_of_a_time_that_is_missing() {
    let mut seen = 0;
    for bits in 0..16_u8 {
        let dated = [1, 2, 4, 8].map(|bit| bits & bit != 0);
        let (header, events) = session(dated);
        for &format in Format::ALL {
            if format.shape() == Shape::Tables {
                continue;
            }
            let home = tempfile::tempdir().unwrap();
            let mut bytes = Vec::new();
            let beside: Box<dyn quipu_formats::projection::Beside> = match format.shape() {
                Shape::Directory => Box::new(Folder::new(home.path())),
                _ => Box::new(Nowhere),
            };
            let options = TargetOptions::default();
            let mut to = writer(format, &header, &options, Box::new(&mut bytes), beside).unwrap();
            for event in &events {
                to.event(event).unwrap();
            }
            to.finish().unwrap();
            let mut texts = vec![String::from_utf8(bytes).unwrap()];
            files(home.path(), &mut texts);
            for text in texts {
                let mut found = Vec::new();
                match serde_json::from_str::<Value>(&text) {
                    Ok(whole) => durations(&whole, &mut found),
                    Err(_) => {
                        for line in text.lines() {
                            if let Ok(line) = serde_json::from_str(line) {
                                durations(&line, &mut found);
                            }
                        }
                    }
                }
                seen += found.len();
                for (key, millis) in found {
                    assert!(
                        millis.abs() < LONG_MS,
                        "{format}, {dated:?}: {key} is {millis} ms"
                    );
                }
                // Years are written in days or hours where they are written for people.
                let for_people = matches!(format, Format::Text | Format::Markdown);
                let long = text.split_whitespace().find(|word| {
                    let digits = word.trim_end_matches(['d', 'h', 's', 'm']);
                    digits.len() < word.len() && digits.parse::<u64>().is_ok_and(|n| n > 100_000)
                });
                assert!(
                    !for_people || long.is_none(),
                    "{format}, {dated:?}: {long:?}"
                );
            }
        }
    }
    assert!(seen > 100, "{seen} durations");
}
