//! References between steps, and whether every way ends.

use super::super::diagnostic::Findings;
use super::super::ways::{Ways, Why, named};
use super::super::{Action, OnFailure, Step, Text, Workflow};
use crate::names::did_you_mean;

pub(super) fn check(workflow: &Workflow, ways: &Ways<'_>, findings: &mut Findings) {
    let names = || workflow.steps.keys().map(String::as_str);
    let exists = |name: &Text| workflow.steps.contains_key(&name.text);
    if !workflow.initial.text.is_empty() && !exists(&workflow.initial) {
        findings.error(
            "missing-step",
            workflow.initial.at,
            format!("`initial`: there is no step {}", workflow.initial.text),
            did_you_mean(&workflow.initial.text, names()),
        );
    }
    let terminal = |step: &Step| matches!(step.action, Action::Terminal(_));
    if !workflow.steps.is_empty() && !workflow.steps.values().any(terminal) {
        findings.error(
            "no-terminal",
            workflow.initial.at,
            "no step ends the run",
            Some("add a step with `type: terminal`".to_owned()),
        );
    }
    for (number, step) in ways.steps.iter().enumerate() {
        let inner = !ways.inside[number].is_empty();
        for (why, name) in named(step) {
            if exists(name) {
                continue;
            }
            let message = format!("step {}: there is no step {}", step.name, name.text);
            let hint = did_you_mean(&name.text, names());
            // awf goes on with the next step of the body here, and so do we.
            if inner && !matches!(why, Why::Branch | Why::Body) {
                findings.warning("missing-step", name.at, message, hint);
            } else {
                findings.error("missing-step", name.at, message, hint);
            }
        }
        for name in &step.depends_on {
            if !exists(name) {
                findings.error(
                    "missing-step",
                    name.at,
                    format!("step {}: there is no step {}", step.name, name.text),
                    did_you_mean(&name.text, names()),
                );
            }
        }
        next_step(step, inner, findings);
        members(step, findings);
    }
    contains_itself(ways, findings);
    unreachable(workflow, ways, findings);
    endless(workflow, ways, findings);
}

/// Whether a step says where the run goes.
fn next_step(step: &Step, inner: bool, findings: &mut Findings) {
    if inner || matches!(step.action, Action::Terminal(_)) {
        return;
    }
    let body = loop_body(step);
    let complete = body.is_some_and(|body| body.on_complete.is_some());
    if step.on_success.is_none() && step.transitions.is_empty() && !complete {
        let key = if body.is_some() {
            "on_complete"
        } else {
            "on_success"
        };
        findings.error(
            "no-next-step",
            step.at,
            format!(
                "step {} does not say where the run goes after it",
                step.name
            ),
            Some(format!("add `{key}`, or `transitions`")),
        );
    }
    let always = step.transitions.iter().any(|way| way.when.is_none());
    if !step.transitions.is_empty() && !always && step.on_success.is_none() && !complete {
        findings.warning(
            "no-default",
            step.transitions[0].goto.at,
            format!(
                "step {}: when no condition holds, the run has no next step",
                step.name
            ),
            Some("add a last transition without `when`, or `on_success`".to_owned()),
        );
    }
    if let Some(at) = step.transitions.iter().position(|way| way.when.is_none())
        && let Some(dead) = step.transitions.get(at + 1)
    {
        findings.warning(
            "dead-transition",
            dead.goto.at,
            format!("step {}: this transition is never taken", step.name),
            Some("the one before it has no `when`, so it is always taken".to_owned()),
        );
    }
}

fn loop_body(step: &Step) -> Option<&super::super::LoopBody> {
    match &step.action {
        Action::ForEach(each) => Some(&each.body),
        Action::While(each) => Some(&each.body),
        _ => None,
    }
}

/// The steps in a loop or a parallel step.
fn members(step: &Step, findings: &mut Findings) {
    let (key, list) = match &step.action {
        Action::Parallel(parallel) => ("parallel", &parallel.branches),
        _ => match loop_body(step) {
            Some(body) => ("body", &body.steps),
            None => return,
        },
    };
    if list.is_empty() {
        findings.error(
            "empty-list",
            step.at,
            format!("step {}: `{key}` names no step", step.name),
            None,
        );
    }
    let mut seen = std::collections::HashSet::new();
    for name in list {
        if !seen.insert(&name.text) {
            findings.error(
                "twice",
                name.at,
                format!("step {}: `{key}` names {} twice", step.name, name.text),
                None,
            );
        }
    }
}

/// Loops and parallel steps that contain themselves.
fn contains_itself(ways: &Ways<'_>, findings: &mut Findings) {
    // 0: not seen, 1: on the way down, 2: done.
    let mut state = vec![0_u8; ways.steps.len()];
    for first in 0..ways.steps.len() {
        let mut stack = vec![(first, 0)];
        while let Some((step, member)) = stack.pop() {
            if member == 0 && state[step] != 0 {
                continue;
            }
            state[step] = 1;
            let inner = named(ways.steps[step])
                .into_iter()
                .filter(|(why, _)| matches!(why, Why::Branch | Why::Body))
                .nth(member);
            let Some((_, name)) = inner else {
                state[step] = 2;
                continue;
            };
            stack.push((step, member + 1));
            if let Some(to) = ways.number(&name.text) {
                if state[to] == 1 {
                    findings.error(
                        "contains-itself",
                        name.at,
                        format!("step {} is inside of itself", name.text),
                        None,
                    );
                } else if state[to] == 0 {
                    stack.push((to, 0));
                }
            }
        }
    }
}

fn unreachable(workflow: &Workflow, ways: &Ways<'_>, findings: &mut Findings) {
    let reached = ways.reachable(&workflow.initial.text);
    for (step, reached) in ways.steps.iter().zip(reached) {
        if !reached {
            findings.warning(
                "unreachable",
                step.at,
                format!("no run reaches step {}", step.name),
                None,
            );
        }
    }
}

/// Ways that lead round and round.
fn endless(workflow: &Workflow, ways: &Ways<'_>, findings: &mut Findings) {
    let reached = ways.reachable(&workflow.initial.text);
    // Where a reference is missing or nothing follows, another finding says so.
    let ends = (0..ways.steps.len()).filter(|number| {
        let step = ways.steps[*number];
        matches!(step.action, Action::Terminal(_))
            || matches!(step.on_failure, Some(OnFailure::Inline { .. }))
            || ways.next[*number].is_empty()
            || named(step)
                .iter()
                .any(|(_, name)| ways.number(&name.text).is_none())
    });
    let ends = ways.leading_to(ends);
    let mut said = vec![false; ways.steps.len()];
    for number in 0..ways.steps.len() {
        if ends[number] || !reached[number] || said[number] {
            continue;
        }
        let after = ways.after(number);
        let mut round = Vec::new();
        for (other, after) in after.iter().enumerate() {
            if *after {
                said[other] = true;
                if round.len() < 5 {
                    round.push(ways.steps[other].name.as_str());
                }
            }
        }
        said[number] = true;
        findings.error(
            "endless",
            ways.steps[number].at,
            format!(
                "no way leads from step {} to an end: {}",
                ways.steps[number].name,
                round.join(", ")
            ),
            Some("let one of them go to a terminal step".to_owned()),
        );
    }
}
