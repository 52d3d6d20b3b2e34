//! How transcripts of steps are known, and where their receipts are.

use std::path::{Path, PathBuf};

use quipu_formats::flow::record::Record;
use quipu_formats::flow::shape::{self, Shape};
use quipu_formats::flow::time::{self, Form};
use quipu_model::json::{Kind, Node};

use super::{RUN, TRANSCRIPT, wire};
use crate::{Head, Match};

/// `llm/<step>-<agent>-<engine>.jsonl` has its receipt in `receipts/<step>-<agent>.json`.
pub(super) fn sidecars(log: &Path) -> Vec<PathBuf> {
    let receipt = || {
        let directory = log
            .parent()
            .filter(|dir| dir.file_name().is_some_and(|name| name == "llm"))?;
        let name = log.file_name()?.to_str()?.strip_suffix(".jsonl")?;
        // The iteration is behind the engine, which a receipt does not name.
        let (name, iteration) = match name.rsplit_once(".i") {
            Some((name, number)) if number.parse::<u64>().is_ok() => (name, Some(number)),
            _ => (name, None),
        };
        let (step, _engine) = name.rsplit_once('-')?;
        let ending = iteration.map_or_else(String::new, |number| format!(".i{number}"));
        let receipts = directory.parent()?.join("receipts");
        Some(receipts.join(format!("{step}{ending}.json")))
    };
    receipt().into_iter().collect()
}

pub(super) fn sniff(head: &Head<'_>) -> Option<Match> {
    if head.spans_lines() || head.is_sse() {
        return None;
    }
    if head.records().any(Record::begins) {
        return Match::sure(RUN);
    }
    let mut before = None;
    let mut sure = false;
    let (mut more, mut foreign) = (false, false);
    let (mut own, mut others) = (0_usize, 0_usize);
    for record in head.records() {
        foreign |= FOREIGN.iter().any(|key| record.get(key).is_some());
        let Some(shape) = shape::classify(record, before) else {
            others += 1;
            continue;
        };
        let fits = match shape {
            Shape::Documented | Shape::Stub | Shape::StubWorker => {
                sure |= is_of_a_step(record);
                more |= !wire::only(record, wire::ROLE);
                begins_dated(record)
            }
            Shape::SdkLegacy | Shape::Contract if record.get("type").is_none() => {
                more |= !wire::only(record, wire::ROLE);
                begins_dated(record)
            }
            Shape::SdkLegacy | Shape::Contract => {
                sure |= record.get("tool").is_some();
                more |= !wire::only(record, wire::TYPE);
                begins_dated(record)
            }
            Shape::SdkClasses => {
                let printed = record
                    .text("content")
                    .is_some_and(|text| text.contains("Block("));
                sure |= printed || record.get("parent_tool_use_id").is_some();
                is_dated(record)
            }
            Shape::SdkSession => {
                sure |= record.get("phase").is_some_and(|phase| phase.is("work"));
                is_dated(record)
            }
            // Those have families of their own.
            Shape::ClaudeCli | Shape::GeminiCli => false,
        };
        if !fits {
            return None;
        }
        before = Some(shape);
        own += 1;
    }
    if own <= others {
        return None;
    }
    // A line with more fields than are known may be of another program, unless a line says that it is not.
    let more = more || others > 0;
    match (sure, more) {
        (true, false) => Match::sure(TRANSCRIPT),
        (false, true) if foreign => None,
        _ => Match::likely(TRANSCRIPT),
    }
}

/// Fields that other programs write beside a time and a role.
const FOREIGN: [&str; 6] = ["id", "model", "session_id", "sessionId", "uuid", "message"];

/// Whether a line has a time, as this program writes them.
fn is_dated(record: Node<'_>) -> bool {
    form(record).is_some_and(|form| matches!(form, Form::Strict | Form::TwoZones))
}

fn form(record: Node<'_>) -> Option<Form> {
    let text = record.text("timestamp")?;
    time::parse(&text).map(|time| time.form)
}

/// Whether a line has a time, before all else.
fn begins_dated(record: Node<'_>) -> bool {
    let first = record.fields().next();
    first.is_some_and(|(key, _)| key.is("timestamp")) && is_dated(record)
}

/// Whether a line cannot be of another program.
fn is_of_a_step(record: Node<'_>) -> bool {
    let content = record
        .get("content")
        .and_then(|content| content.as_raw_str());
    let begins = |prefix: &str| content.is_some_and(|content| content.starts_with(prefix));
    let tool = record.get("role").is_some_and(|role| role.is("tool"));
    let input = record.get("tool_input").map(|input| input.kind());
    (tool && input == Some(Kind::Object))
        || form(record) == Some(Form::TwoZones)
        || begins("Executing step ")
        || begins("[STUB")
}
