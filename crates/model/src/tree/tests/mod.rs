//! Events are written as short lines, trees are compared as indented text.
//!
//! | line | event |
//! |---|---|
//! | `run w` / `done w` | `run.started` / `run.completed` of workflow `w` |
//! | `start a.b#1 agent` / `end a.b#1` | a step, here in iteration 1, begins / ends |
//! | `call a child` / `return a child` | a call of the run `child` begins / ends |
//! | `msg a` | a message with the path `a`; `-` is the empty path |
//! | `tool c1 a` / `result c1 a` | a tool call / result with the path `a` |
//! | `odd a` | an event outside the vocabulary |
//!
//! `!why` at the end of a line is an error. In a rendered tree `~` marks a place that was inferred,
//! `?` one that is ambiguous.

mod forest;
mod hostile;
mod steps;

use std::collections::HashMap;
use std::fmt::Write as _;

use super::*;
use crate::{
    Annotations, Body, Event, Fidelity, Json, Step, StepEnd, ToolCall, ToolResult, Unknown,
};

/// The events of a script, numbered from 1.
fn events(run: &str, script: &str) -> Vec<Event> {
    let mut kinds: HashMap<String, &str> = HashMap::new();
    let lines = script.lines().map(str::trim).filter(|l| !l.is_empty());
    lines
        .zip(1..)
        .map(|(line, seq)| {
            let (line, error) = match line.split_once(" !") {
                Some((line, error)) => (line, Some(error.to_owned())),
                None => (line, None),
            };
            let words: Vec<&str> = line.split(' ').collect();
            let word = |n: usize| words.get(n).copied().unwrap_or("-");
            let at = match words[0] {
                "tool" | "result" => word(2),
                "run" | "done" => "-",
                _ => word(1),
            };
            let place = place(at);
            let name = place.path.rsplit(['.', '/']).next().unwrap_or("");
            if words[0] == "start" {
                kinds.insert(name.to_owned(), word(2));
            }
            let step = Step::new(name, kinds.get(name).copied().unwrap_or("command"));
            let end = |step| StepEnd {
                step,
                error: error.clone(),
                result: None,
            };
            let child_run_id = || RunId::new(word(2)).unwrap();
            let workflow = || (word(1) != "-").then(|| Step::new(word(1), "workflow"));
            let call = Step::new(name, "call_workflow");
            let body = match words[0] {
                "run" => Body::RunStarted(workflow()),
                "done" => Body::RunCompleted(workflow().map(end)),
                "start" => Body::StepStarted(step),
                "end" => Body::StepCompleted(end(step)),
                "call" => Body::CallStarted {
                    child_run_id: child_run_id(),
                    step: call,
                },
                "return" => Body::CallCompleted {
                    child_run_id: child_run_id(),
                    end: end(call),
                },
                "msg" => Body::UserMessage(Vec::new()),
                "tool" => Body::ToolCall(ToolCall {
                    name: "Bash".to_owned(),
                    call_id: word(1).into(),
                    input: None,
                    fidelity: Fidelity::Router,
                }),
                "result" => Body::ToolResult(ToolResult {
                    name: "Bash".to_owned(),
                    call_id: word(1).into(),
                    input: None,
                    output: None,
                    error: error.clone(),
                    fidelity: Fidelity::Router,
                }),
                "odd" => return event(run, seq, place, odd()),
                other => panic!("no such line: {other}"),
            };
            event(run, seq, place, body)
        })
        .collect()
}

fn place(text: &str) -> Place {
    let (path, iteration) = text.split_once('#').unwrap_or((text, "0"));
    Place::flat(path.trim_matches('-'), iteration.parse().unwrap())
}

fn odd() -> Body {
    Body::Unknown(Unknown {
        event_type: "step.exploded".to_owned(),
        child_run_id: None,
        payload: Json::null(),
    })
}

/// Events are a second apart.
fn event(run: &str, seq: u64, place: Place, body: Body) -> Event {
    Event {
        seq,
        run_id: RunId::new(run).unwrap(),
        parent_run_id: None,
        timestamp: Timestamp::from_second(i64::try_from(seq).unwrap()).unwrap(),
        place,
        body,
        annotations: Annotations::default(),
    }
}

fn grow<'a>(events: impl IntoIterator<Item = &'a Event>) -> RunTree {
    let mut builder = TreeBuilder::default();
    for event in events {
        builder.observe(event);
    }
    builder.finish()
}

fn tree(script: &str) -> RunTree {
    grow(&events("r1", script))
}

fn render(tree: &RunTree) -> String {
    let mut text = format!(
        "{}{}",
        tree.name.as_deref().unwrap_or("-"),
        said(&tree.tally)
    );
    write!(text, "{}", state(&tree.state, &State::Unmarked)).unwrap();
    let mut left: Vec<(usize, NodeId)> = tree.roots.iter().rev().map(|&id| (1, id)).collect();
    while let Some((depth, id)) = left.pop() {
        let node = &tree.nodes[id];
        write!(text, "\n{}{}", "  ".repeat(depth), node.place.path).unwrap();
        if node.place.iteration() > 0 {
            write!(text, "#{}", node.place.iteration()).unwrap();
        }
        text.push_str(match node.placed {
            Placed::ByPath => "",
            Placed::Inferred => " ~",
            Placed::Ambiguous => " ?",
        });
        if let Some(child) = &node.calls {
            write!(text, " -> {child}").unwrap();
        }
        if node.started_seq.is_none() {
            text.push_str(" never began");
        }
        write!(
            text,
            "{}{}",
            state(&node.state, &State::Done),
            said(&node.tally)
        )
        .unwrap();
        left.extend(node.children.iter().rev().map(|&id| (depth + 1, id)));
    }
    text
}

fn state(state: &State, usual: &State) -> String {
    match state {
        state if state == usual => String::new(),
        State::Open => " open".to_owned(),
        State::Done => " done".to_owned(),
        State::Failed(why) => format!(" failed: {why}"),
        State::Unmarked => " unmarked".to_owned(),
    }
}

fn said(tally: &Tally) -> String {
    let mut text = String::new();
    for (n, what) in [
        (tally.messages, "messages"),
        (tally.tool_calls, "tools"),
        (tally.tool_failures, "failed"),
        (tally.foreign, "odd"),
        (tally.inferred, "inferred"),
    ] {
        if n > 0 {
            write!(text, " {what}={n}").unwrap();
        }
    }
    for (what, calls) in [("dangling", &tally.dangling), ("orphan", &tally.orphans)] {
        for (_, id) in calls {
            write!(text, " {what}:{id}").unwrap();
        }
    }
    text
}

/// Every step is in the tree once, and parents and children agree.
fn check_links(tree: &RunTree) {
    let mut seen = vec![false; tree.nodes.len()];
    let mut visit = |parent: Option<NodeId>, children: &[NodeId]| {
        for &id in children {
            assert!(!std::mem::replace(&mut seen[id], true), "{id} hangs twice");
            assert_eq!(tree.nodes[id].parent, parent, "parent of {id}");
            assert!(
                parent.is_none_or(|parent| parent < id),
                "parents come first"
            );
        }
    };
    visit(None, &tree.roots);
    for (id, node) in tree.nodes.iter().enumerate() {
        visit(Some(id), &node.children);
    }
    assert!(
        seen.into_iter().all(|seen| seen),
        "every step hangs somewhere"
    );
}

#[track_caller]
fn check(script: &str, expected: &str) {
    let tree = tree(script);
    check_links(&tree);
    let found = render(&tree);
    // The indent of the first line of `expected` is that of the source code.
    let expected = expected.trim_end().trim_start_matches('\n');
    let indent = expected.len() - expected.trim_start().len();
    let expected: Vec<&str> = expected
        .lines()
        .map(|line| line.get(indent..).unwrap_or("").trim_end())
        .collect();
    assert_eq!(found, expected.join("\n"), "\nfound:\n{found}\n");
}
