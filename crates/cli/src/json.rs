//! The JSON that commands write. Field names here are part of the contract with scripts.

use quipu_formats::exchange::verify::{Finding, Report};
use quipu_model::RunId;
use quipu_model::tree::{Forest, Link, Node, Placed, RunTree, Span, State, Tally};
use quipu_record::Mended;
use serde_json::{Value, json};

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
        "iteration": node.place.iteration,
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
