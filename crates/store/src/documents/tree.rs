//! The tree of a run and of the runs that it called.

use quipu_api::{Time, tree};
use quipu_model::tree::{Forest, Link, Node, Placed, RunTree, Span, State, Tally};
use quipu_model::{RunId, ToolCallId};
use quipu_redact::Guard;

/// Masks secrets in what runs call their steps, and in why they failed.
pub fn hide_names(forest: &mut Forest, guard: &Guard) {
    let masked = |text: &str| guard.mask_path(text).into_owned();
    let state = |state: &mut State| {
        if let State::Failed(error) = state {
            *error = masked(error);
        }
    };
    let tally = |tally: &mut Tally| {
        for (name, id) in tally.dangling.iter_mut().chain(&mut tally.orphans) {
            (*name, *id) = (masked(name), masked(id).into());
        }
    };
    for run in &mut forest.runs {
        run.name = run.name.as_deref().map(masked);
        state(&mut run.state);
        tally(&mut run.tally);
        for node in &mut run.nodes {
            node.place.path = masked(&node.place.path);
            node.name = masked(&node.name);
            node.kind = masked(&node.kind).into();
            state(&mut node.state);
            tally(&mut node.tally);
        }
    }
}

/// A run, and the runs that it called.
pub fn forest(forest: &Forest) -> tree::Forest {
    let run = |(index, run): (usize, &RunTree)| {
        let nodes = run.nodes.iter().enumerate();
        tree::Run {
            run: index as u64,
            run_id: run.run_id.as_ref().map(id),
            parent_run_id: run.parent_run_id.as_ref().map(id),
            name: run.name.clone(),
            state: state(&run.state),
            error: error(&run.state),
            span: span(run.span),
            events: run.events,
            tally: tally(&run.tally),
            roots: indexes(&run.roots),
            steps: nodes
                .map(|(id, node)| step(id, node, forest.link(index, id)))
                .collect(),
        }
    };
    tree::Forest {
        whole: forest.is_whole(),
        runs: forest.runs.iter().enumerate().map(run).collect(),
    }
}

fn indexes(indexes: &[usize]) -> Vec<u64> {
    indexes.iter().map(|index| *index as u64).collect()
}

fn step(index: usize, node: &Node, link: Option<&Link>) -> tree::Step {
    tree::Step {
        step: index as u64,
        parent: node.parent.map(|parent| parent as u64),
        children: indexes(&node.children),
        path: node.place.path.clone(),
        iteration: node.place.iteration(),
        name: node.name.clone(),
        kind: node.kind.to_string(),
        state: state(&node.state),
        error: error(&node.state),
        started_seq: node.started_seq,
        ended_seq: node.ended_seq,
        span: span(node.span),
        tally: tally(&node.tally),
        placed: match node.placed {
            Placed::ByPath => tree::Placed::ByPath,
            Placed::Inferred => tree::Placed::Inferred,
            Placed::Ambiguous => tree::Placed::Ambiguous,
        },
        calls: node.calls.as_ref().map(id),
        link: link.map(|link| match link {
            Link::Run(run) => tree::Link::Run(*run as u64),
            Link::Missing(why) => tree::Link::Missing(why.clone()),
            Link::Cycle => tree::Link::Cycle(true),
        }),
    }
}

fn state(state: &State) -> tree::State {
    match state {
        State::Open => tree::State::Open,
        State::Done => tree::State::Done,
        State::Failed(_) => tree::State::Failed,
        State::Unmarked => tree::State::Unmarked,
    }
}

fn error(state: &State) -> Option<String> {
    match state {
        State::Failed(error) => Some(error.clone()),
        _ => None,
    }
}

fn span(span: Span) -> tree::Span {
    tree::Span {
        from: span.from.map(Time::of),
        to: span.to.map(Time::of),
        millis: span.millis(),
    }
}

fn tally(tally: &Tally) -> tree::Tally {
    let calls = |calls: &[(String, ToolCallId)]| -> Vec<tree::NamedCall> {
        let named = calls.iter().map(|(name, id)| tree::NamedCall {
            name: name.clone(),
            call_id: id.to_string(),
        });
        named.collect()
    };
    tree::Tally {
        messages: tally.messages,
        tool_calls: tally.tool_calls,
        tool_failures: tally.tool_failures,
        dangling: calls(&tally.dangling),
        orphans: calls(&tally.orphans),
        foreign: tally.foreign,
        inferred: tally.inferred,
    }
}

fn id(id: &RunId) -> String {
    id.as_str().to_owned()
}
