//! The JSON that commands write. Field names here are part of the contract with scripts.

use std::borrow::Cow;

use quipu_formats::exchange::verify::{Finding, Report};
use quipu_model::tree::{Forest, Link, Node, Placed, RunTree, Span, State, Tally};
use quipu_model::{RunId, Usage};
use quipu_record::Mended;
use quipu_store::catalogue::TranscriptRow;
use quipu_store::import::{Problem, Report as ImportReport};
use serde_json::{Value, json};

use crate::terminal::is_active;
use crate::when;

/// JSON as it goes out: characters that a terminal might act on, or that make text look like other text,
/// are written as escapes. To a reader of JSON it is the same.
pub(crate) fn escape(text: &str) -> Cow<'_, str> {
    // White space between values is no part of a text.
    let is_escaped = |c: char| is_active(c) && c != '\r';
    if !text.contains(is_escaped) {
        return Cow::Borrowed(text);
    }
    let mut escaped = String::with_capacity(text.len() + 16);
    let mut units = [0; 2];
    for c in text.chars() {
        if is_escaped(c) {
            for unit in c.encode_utf16(&mut units) {
                escaped.push_str("\\u");
                let digits = [12, 8, 4, 0].map(|shift| u32::from(*unit >> shift & 15));
                escaped.extend(digits.map(|digit| char::from_digit(digit, 16).unwrap_or('0')));
            }
        } else {
            escaped.push(c);
        }
    }
    Cow::Owned(escaped)
}

/// A document, over several lines.
pub(crate) fn document(value: &Value) -> String {
    escape(&format!("{value:#}")).into_owned()
}

/// A document on one line.
pub(crate) fn line(value: &Value) -> String {
    escape(&value.to_string()).into_owned()
}

/// What an import did.
pub(crate) fn import(report: &ImportReport) -> Value {
    let agents: serde_json::Map<_, _> = report
        .agents
        .iter()
        .map(|(name, agent)| {
            let agent = json!({
                "files": agent.files,
                "sessions": agent.sessions,
                "records": agent.records,
                "mapped": agent.mapped,
                "noted": agent.noted,
                "events": agent.events,
                "notes": agent.notes,
                "dropped": agent.dropped,
                "mended": agent.mended,
                "unknown": agent.unknown,
                "left_out": agent.left_out,
            });
            (name.clone(), agent)
        })
        .collect();
    let unknown = report.unknown_examples.iter();
    json!({
        "files": report.files,
        "unchanged": report.unchanged,
        "read": report.read,
        "kept": report.kept,
        "unknown": report.unknown,
        "empty": report.empty,
        "credentials": report.credentials,
        "bytes": report.bytes,
        "new_bytes": report.new_bytes,
        "copies": report.copies,
        "index_anew": report.index_anew,
        "kept_again": report.kept_again,
        "lost": report.lost,
        "agents": agents,
        "problems": report.problems.iter().map(problem).collect::<Vec<_>>(),
        "unknown_files": unknown.map(|path| path.display().to_string()).collect::<Vec<_>>(),
    })
}

pub(crate) fn problem(problem: &Problem) -> Value {
    json!({
        "path": problem.path.display().to_string(),
        "what": problem.what,
        "count": problem.count,
    })
}

/// All that the catalogue says of a transcript. Times are RFC 3339.
pub(crate) fn transcript(row: &TranscriptRow) -> Value {
    let at = |millis: Option<i64>| millis.and_then(when::of_millis).map(|at| at.to_string());
    let modified = row.modified.and_then(when::of_nanos);
    let figures = &row.figures;
    json!({
        "run_id": row.run_id,
        "native": row.native,
        "agent": row.agent,
        "agent_version": row.agent_version,
        "title": row.title,
        "cwd": row.cwd,
        "branch": row.branch,
        "repository": row.repository,
        "commit": row.commit,
        "parent": row.parent,
        "parent_call": row.parent_call,
        "forked_from": row.forked_from,
        "copy_of": row.copy_of,
        "copied_events": row.copied_events,
        "duplicate": row.duplicate,
        "reconstructed": row.reconstructed,
        "started_at": at(row.started_at),
        "ended_at": at(row.ended_at),
        "events": figures.events,
        "notes": figures.notes,
        "prompts": figures.prompts,
        "replies": figures.replies,
        "tool_calls": figures.tool_calls,
        "failures": figures.failures,
        "denials": figures.denials,
        "errors": figures.errors,
        "compactions": figures.compactions,
        "attachments": figures.attachments,
        "dangling": figures.dangling,
        "orphans": figures.orphans,
        "calls": figures.calls,
        "models": row.models,
        "usage": usage(&row.usage),
        "vendor_usage": usage(&row.vendor_usage),
        "vendor_cost": row.vendor_cost,
        "path": row.path.display().to_string(),
        "part": row.part,
        "dialect": row.dialect,
        "key": row.key,
        "size": row.size,
        "modified": modified.map(|at| at.to_string()),
    })
}

/// Disjoint buckets; `null` is unknown, which is not zero.
fn usage(usage: &Usage) -> Value {
    json!({
        "input": usage.input,
        "cache_read": usage.cache_read,
        "cache_write": usage.cache_write,
        "output": usage.output,
        "reasoning": usage.reasoning,
    })
}

pub(crate) fn report(path: &str, report: &Report) -> Value {
    let counts: serde_json::Map<_, _> = report
        .counts
        .iter()
        .map(|(rule, n)| (rule.name().to_owned(), json!(n)))
        .collect();
    json!({
        "file": path,
        "clean": report.is_clean(),
        "run_id": report.run_id.as_ref().map(RunId::as_str),
        "parent_run_id": report.parent_run_id.as_ref().map(RunId::as_str),
        "children": report.children.iter().map(|c| c.run_id.as_str()).collect::<Vec<_>>(),
        "events": report.events,
        "last_seq": report.last_seq,
        "bytes": report.bytes,
        "counts": counts,
        "findings": report.findings.iter().map(finding).collect::<Vec<_>>(),
    })
}

fn finding(finding: &Finding) -> Value {
    json!({
        "rule": finding.rule.name(),
        "severity": finding.rule.severity().to_string(),
        "line": finding.at.map(|at| at.line),
        "offset": finding.at.map(|at| at.offset),
        "seq": finding.seq,
        "message": finding.message,
        "hint": finding.rule.hint(),
    })
}

pub(crate) fn mended(path: &str, mended: &Mended) -> Value {
    json!({
        "file": path,
        "mended": !mended.is_empty(),
        "ended_line": mended.ended_line,
        "made_private_from": mended.made_private.map(|mode| format!("{mode:o}")),
        "set_aside": mended.set_aside.as_ref().map(|torn| json!({
            "offset": torn.offset,
            "bytes": torn.bytes,
            "file": torn.path.display().to_string(),
        })),
    })
}

/// Flat lists, because a tree may nest deeper than JSON parsers go.
pub(crate) fn forest(forest: &Forest) -> Value {
    let run = |(index, tree): (usize, &RunTree)| {
        let nodes = tree.nodes.iter().enumerate();
        json!({
            "run": index,
            "run_id": tree.run_id.as_ref().map(RunId::as_str),
            "parent_run_id": tree.parent_run_id.as_ref().map(RunId::as_str),
            "name": tree.name,
            "state": state(&tree.state),
            "error": error(&tree.state),
            "span": span(tree.span),
            "events": tree.events,
            "tally": tally(&tree.tally),
            "roots": tree.roots,
            "steps": nodes.map(|(id, node)| step(id, node, forest.link(index, id))).collect::<Vec<_>>(),
        })
    };
    json!({
        "whole": forest.is_whole(),
        "runs": forest.runs.iter().enumerate().map(run).collect::<Vec<_>>(),
    })
}

fn step(id: usize, node: &Node, link: Option<&Link>) -> Value {
    json!({
        "step": id,
        "parent": node.parent,
        "children": node.children,
        "path": node.place.path,
        "iteration": node.place.iteration(),
        "name": node.name,
        "kind": node.kind,
        "state": state(&node.state),
        "error": error(&node.state),
        "started_seq": node.started_seq,
        "ended_seq": node.ended_seq,
        "span": span(node.span),
        "tally": tally(&node.tally),
        "placed": match node.placed {
            Placed::ByPath => "by_path",
            Placed::Inferred => "inferred",
            Placed::Ambiguous => "ambiguous",
        },
        "calls": node.calls.as_ref().map(RunId::as_str),
        "link": link.map(|link| match link {
            Link::Run(run) => json!({ "run": run }),
            Link::Missing(why) => json!({ "missing": why }),
            Link::Cycle => json!({ "cycle": true }),
        }),
    })
}

fn state(state: &State) -> &'static str {
    match state {
        State::Open => "open",
        State::Done => "done",
        State::Failed(_) => "failed",
        State::Unmarked => "unmarked",
    }
}

fn error(state: &State) -> Option<&str> {
    match state {
        State::Failed(error) => Some(error),
        _ => None,
    }
}

fn span(span: Span) -> Value {
    json!({
        "from": span.from.map(|t| t.to_string()),
        "to": span.to.map(|t| t.to_string()),
        "millis": span.millis(),
    })
}

fn tally(tally: &Tally) -> Value {
    let calls = |calls: &[(String, String)]| -> Vec<Value> {
        calls
            .iter()
            .map(|(name, id)| json!({ "name": name, "call_id": id }))
            .collect()
    };
    json!({
        "messages": tally.messages,
        "tool_calls": tally.tool_calls,
        "tool_failures": tally.tool_failures,
        "dangling": calls(&tally.dangling),
        "orphans": calls(&tally.orphans),
        "foreign": tally.foreign,
        "inferred": tally.inferred,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_terminal_might_act_on_is_escaped_and_reads_the_same() {
        let text = "a\u{9b}b\u{7f}c\u{202e}d\u{200d}e\u{e0041}f\n\té🙂\x1b";
        let value = json!({ text: [text] });
        for written in [document(&value), line(&value)] {
            assert!(!written.contains(is_active), "{written:?}");
            assert!(written.contains("a\\u009bb\\u007fc\\u202ed\\u200de\\udb40\\udc41f\\n\\té🙂"));
            assert_eq!(serde_json::from_str::<Value>(&written).unwrap(), value);
        }
        assert_eq!(escape("{\r\n}"), "{\r\n}");
    }
}
