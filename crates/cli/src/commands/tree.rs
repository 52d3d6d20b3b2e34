//! `quipu tree`

use std::collections::HashMap;
use std::io::{self, Write};

use quipu_api::tree::{SessionTree, TreeSession};
use quipu_exchange::Warning;
use quipu_exchange::lines::Limits;
use quipu_model::tree::{Forest, Link, Node, Placed, RunTree, State, Tally, TreeBuilder};
use quipu_model::{Body, Event, Place, Step, StepEnd};
use quipu_record::{RemarkKind, Storage};

use quipu_store::Store;
use quipu_store::catalogue::TranscriptRow;

use crate::args::Tree;
use crate::error::{CommandError, Exit, Result, io_error};
use crate::locate::Resolved;
use crate::redaction::secrets;
use crate::terminal::{
    BOLD, DIM, Drawing, GREEN, RED, YELLOW, clean_line, count, duration, out, say,
};
use crate::{foreign, json, locate};

/// Remarks shown before the rest are only counted.
const SHOWN_REMARKS: u64 = 20;

pub(crate) fn run(args: &Tree, place: &locate::HomePlace) -> Result<Exit> {
    let path = match place.meant(&args.run)? {
        Resolved::Run(path) => path,
        Resolved::Session(found) if found.1.dialect.as_deref() == Some(RUN) => {
            let transcript = found.0.read(found.1)?;
            return steps(args, &transcript.events);
        }
        Resolved::Session(found) => return sessions(args, &found.0, found.1),
        Resolved::Log(path) if path.is_dir() => {
            let read = foreign::read(&path);
            let log = read.map_err(io_error(format!("could not read {}", path.display())))?;
            let log = log.ok_or_else(|| locate::no_log(&path))?;
            return steps(args, &log.events);
        }
        Resolved::Log(path) => {
            let error = anyhow::anyhow!("{} is not imported", path.display());
            return Err(CommandError::new(Exit::Data, error)
                .hint("import it with `quipu import`, then give the id of the session"));
        }
    };
    let (mut bad, mut remarks) = (0u64, 0u64);
    let forest = Storage::around(&path)
        .forest(&path, Limits::default(), |remark| {
            let text = match &remark.what {
                RemarkKind::Bad(fault) => {
                    bad += 1;
                    fault.to_string()
                }
                // Does not touch the tree.
                RemarkKind::Odd(Warning::UnknownField(_) | Warning::CarriageReturn) => return,
                RemarkKind::Odd(warning) => warning.to_string(),
            };
            remarks += 1;
            if remarks <= SHOWN_REMARKS {
                say(&format!("{}: {}: {text}", remark.path.display(), remark.at));
            }
        })
        .map_err(io_error(format!("could not read {}", path.display())))?;
    if remarks > SHOWN_REMARKS {
        say(&format!("… and {} more", remarks - SHOWN_REMARKS));
    }
    write_tree(args, forest)?;
    if bad > 0 {
        let error = anyhow::anyhow!(
            "{} could not be read; the tree lacks them",
            count(bad, "line")
        );
        return Err(CommandError::new(Exit::Data, error)
            .hint("`quipu verify` tells more, `quipu repair` mends a torn end"));
    }
    Ok(Exit::Done)
}

fn write_tree(args: &Tree, mut forest: Forest) -> Result<()> {
    quipu_store::documents::hide_names(&mut forest, secrets());
    let mut out = out();
    if args.json {
        writeln!(out, "{}", json::document(&json::forest(&forest))?)?;
    } else {
        write_forest(&mut out, &forest, Drawing::for_locale())?;
    }
    Ok(out.flush()?)
}

/// The dialect of run directories, which have steps.
const RUN: &str = "flow-run";

/// Shows the flows of a run, and the steps of each.
fn steps(args: &Tree, events: &[Event]) -> Result<Exit> {
    let mut builder = TreeBuilder::default();
    // The flow that is shown, and how often each was.
    let mut flow: Option<Place> = None;
    let mut times: HashMap<&str, u64> = HashMap::new();
    for event in events {
        let body = &event.body;
        let of = event.place.path.split_once('.').map(|(of, _)| of);
        let begins = matches!(body, Body::StepStarted(_));
        let is_other = flow.as_ref().map(|flow| flow.path.as_str()) != of;
        if (begins && is_other) || matches!(body, Body::RunCompleted(_)) {
            if let Some(place) = flow.take() {
                builder.observe(&end_of_flow(event, place));
            }
            if let Some(of) = of.filter(|_| begins) {
                let nth = times.entry(of).or_default();
                let place = Place::flat(of, *nth);
                *nth += 1;
                let step = Step::new(of, "flow");
                builder.observe(&at(event, place.clone(), Body::StepStarted(step)));
                flow = Some(place);
            }
        }
        builder.observe(&at(event, event.place.clone(), body.clone()));
    }
    if let (Some(place), Some(last)) = (flow, events.last()) {
        builder.observe(&end_of_flow(last, place));
    }
    let forest = Forest::grow(builder.finish(), |_| Err("not looked for".to_owned()));
    write_tree(args, forest)?;
    Ok(Exit::Done)
}

fn end_of_flow(event: &Event, place: Place) -> Event {
    let end = StepEnd {
        step: Step::new(place.path.clone(), "flow"),
        error: None,
        result: None,
    };
    at(event, place, Body::StepCompleted(end))
}

fn at(event: &Event, place: Place, body: Body) -> Event {
    Event {
        seq: event.seq,
        run_id: event.run_id.clone(),
        parent_run_id: event.parent_run_id.clone(),
        timestamp: event.timestamp,
        place,
        body,
        annotations: event.annotations.clone(),
    }
}

/// Sub-agents of sub-agents are followed so deep.
const DEEPEST: usize = 32;

/// A session, and where it is in the tree.
struct Branch {
    row: TranscriptRow,
    depth: usize,
    prefix: String,
    last: bool,
}

/// Shows a session with its sub-agents, and theirs.
fn sessions(args: &Tree, store: &Store, root: TranscriptRow) -> Result<Exit> {
    let drawing = Drawing::for_locale();
    let mut stack = vec![Branch {
        row: root,
        depth: 0,
        prefix: String::new(),
        last: true,
    }];
    let mut seen = std::collections::HashSet::new();
    let (mut out, mut sessions) = (out(), Vec::new());
    while let Some(Branch {
        row,
        depth,
        prefix,
        last,
    }) = stack.pop()
    {
        let again = !seen.insert(row.run_id.clone());
        if args.json {
            sessions.push(TreeSession {
                transcript: json::transcript(&row),
                depth: depth as u64,
            });
        } else {
            if depth > 0 {
                let branch = if last { drawing.last } else { drawing.branch };
                write!(out, "{DIM}{prefix}{branch}{DIM:#}")?;
            }
            write_session(&mut out, &row)?;
            if again {
                write!(out, " {DIM}(shown above){DIM:#}")?;
            }
            writeln!(out)?;
        }
        if again || depth >= DEEPEST {
            continue;
        }
        let below = match (depth, last) {
            (0, _) => "",
            (_, true) => drawing.gap,
            (_, false) => drawing.bar,
        };
        let children = store.children(&row.native)?;
        let count = children.len();
        for (n, row) in children.into_iter().enumerate().rev() {
            stack.push(Branch {
                row,
                depth: depth + 1,
                prefix: format!("{prefix}{below}"),
                last: n + 1 == count,
            });
        }
    }
    if args.json {
        writeln!(out, "{}", json::document(&SessionTree { sessions })?)?;
    }
    out.flush()?;
    Ok(Exit::Done)
}

fn write_session(out: &mut impl Write, row: &TranscriptRow) -> io::Result<()> {
    write!(out, "{BOLD}session {}{BOLD:#} {}", row.run_id, row.agent)?;
    if let Some(title) = &row.title {
        write!(out, " {}", clean_line(title, 60))?;
    }
    if let (Some(from), Some(to)) = (row.started_at, row.ended_at) {
        let millis = u64::try_from(to - from).unwrap_or(0);
        if millis > 0 {
            write!(out, " {DIM}{}{DIM:#}", duration(millis))?;
        }
    }
    let figures = &row.figures;
    write!(out, " {DIM}({}){DIM:#}", count(figures.events, "event"))?;
    let tally = Tally {
        messages: figures.prompts + figures.replies,
        tool_calls: figures.tool_calls,
        tool_failures: figures.failures,
        ..Tally::default()
    };
    write_tally(out, &tally)?;
    for (n, what) in [
        (figures.denials, "denied"),
        (figures.dangling, "without a result"),
    ] {
        if n > 0 {
            write!(out, " {YELLOW}{n} {what}{YELLOW:#}")?;
        }
    }
    if figures.errors > 0 {
        write!(out, " {RED}{}{RED:#}", count(figures.errors, "error"))?;
    }
    if row.reconstructed {
        write!(out, " {YELLOW}reconstructed{YELLOW:#}")?;
    }
    Ok(())
}

/// A line yet to be drawn.
struct Pending {
    run: usize,
    node: usize,
    prefix: String,
    last: bool,
}

/// Draws the tree. Keeps its own stack, so that depth is no danger.
pub(crate) fn write_forest(
    out: &mut impl Write,
    forest: &Forest,
    drawing: Drawing,
) -> io::Result<()> {
    write_run(out, &forest.runs[0])?;
    let mut stack = Vec::new();
    push_children(&mut stack, 0, &forest.runs[0].roots, "");
    let mut drawn = vec![false; forest.runs.len()];
    while let Some(Pending {
        run,
        node: id,
        prefix,
        last,
    }) = stack.pop()
    {
        let node = &forest.runs[run].nodes[id];
        let (branch, below) = if last {
            (drawing.last, drawing.gap)
        } else {
            (drawing.branch, drawing.bar)
        };
        write!(out, "{DIM}{prefix}{branch}{DIM:#}")?;
        write_step(out, node, &forest.runs[run])?;
        let prefix = format!("{prefix}{below}");
        let mut children: Vec<(usize, usize)> = node.children.iter().map(|&id| (run, id)).collect();
        if let (Some(child), Some(link)) = (&node.calls, forest.link(run, id)) {
            write!(out, " {} {BOLD}run {child}{BOLD:#}", drawing.arrow)?;
            match link {
                Link::Missing(why) => {
                    write!(out, " {RED}missing: {}{RED:#}", clean_line(why, 100))?;
                }
                Link::Cycle => write!(out, " {RED}cycle: this run is its own caller{RED:#}")?,
                Link::Run(child) if drawn[*child] => write!(out, " {DIM}(shown above){DIM:#}")?,
                Link::Run(child) => {
                    drawn[*child] = true;
                    let tree = &forest.runs[*child];
                    write_run_facts(out, tree)?;
                    children.extend(tree.roots.iter().map(|&id| (*child, id)));
                }
            }
        }
        writeln!(out)?;
        let count = children.len();
        for (n, (run, node)) in children.into_iter().enumerate().rev() {
            stack.push(Pending {
                run,
                node,
                prefix: prefix.clone(),
                last: n + 1 == count,
            });
        }
    }
    Ok(())
}

fn push_children(stack: &mut Vec<Pending>, run: usize, nodes: &[usize], prefix: &str) {
    for (n, &node) in nodes.iter().enumerate().rev() {
        let last = n + 1 == nodes.len();
        stack.push(Pending {
            run,
            node,
            prefix: prefix.to_owned(),
            last,
        });
    }
}

fn write_run(out: &mut impl Write, tree: &RunTree) -> io::Result<()> {
    match &tree.run_id {
        Some(id) => write!(out, "{BOLD}run {id}{BOLD:#}")?,
        None => write!(out, "{BOLD}a run without events{BOLD:#}")?,
    }
    write_run_facts(out, tree)?;
    if let Some(parent) = &tree.parent_run_id {
        write!(out, " {DIM}called by {parent}{DIM:#}")?;
    }
    writeln!(out)
}

fn write_run_facts(out: &mut impl Write, tree: &RunTree) -> io::Result<()> {
    if let Some(name) = &tree.name {
        write!(out, " {}", clean_line(name, 60))?;
    }
    write_state(out, &tree.state)?;
    if let Some(millis) = tree.span.millis() {
        write!(out, " {DIM}{}{DIM:#}", duration(millis))?;
    }
    write!(out, " {DIM}({}){DIM:#}", count(tree.events, "event"))?;
    write_tally(out, &tree.tally)
}

fn write_step(out: &mut impl Write, node: &Node, tree: &RunTree) -> io::Result<()> {
    write!(out, "{}", clean_line(&node.name, 60))?;
    let in_loop = node
        .parent
        .is_some_and(|parent| tree.nodes[parent].kind.is_loop());
    if in_loop || node.place.iteration() > 0 {
        write!(out, " {DIM}#{}{DIM:#}", node.place.iteration())?;
    }
    write!(out, " {DIM}{}{DIM:#}", clean_line(&node.kind, 30))?;
    write_state(out, &node.state)?;
    if node.started_seq.is_none() {
        write!(out, " {RED}its start is missing{RED:#}")?;
    }
    if let Some(millis) = node.span.millis() {
        write!(out, " {DIM}{}{DIM:#}", duration(millis))?;
    }
    match node.placed {
        Placed::ByPath => {}
        Placed::Inferred => write!(out, " {DIM}(place inferred){DIM:#}")?,
        Placed::Ambiguous => write!(out, " {YELLOW}(place uncertain){YELLOW:#}")?,
    }
    write_tally(out, &node.tally)
}

fn write_state(out: &mut impl Write, state: &State) -> io::Result<()> {
    match state {
        State::Done => write!(out, " {GREEN}ok{GREEN:#}"),
        State::Open => write!(out, " {YELLOW}open{YELLOW:#}"),
        State::Failed(error) => write!(out, " {RED}failed: {}{RED:#}", clean_line(error, 100)),
        State::Unmarked => Ok(()),
    }
}

fn write_tally(out: &mut impl Write, tally: &Tally) -> io::Result<()> {
    let mut parts = Vec::new();
    for (n, what) in [(tally.messages, "message"), (tally.tool_calls, "tool call")] {
        if n > 0 {
            parts.push(count(n, what));
        }
    }
    if tally.tool_failures > 0 {
        parts.push(format!("{} failed", tally.tool_failures));
    }
    if tally.foreign > 0 {
        parts.push(count(tally.foreign, "unknown event"));
    }
    if !parts.is_empty() {
        write!(out, " {DIM}[{}]{DIM:#}", parts.join(", "))?;
    }
    for (word, calls) in [
        ("without a result", &tally.dangling),
        ("without a call", &tally.orphans),
    ] {
        if let Some((name, id)) = calls.first() {
            let more = calls.len() - 1;
            let more = if more > 0 {
                format!(" and {more} more")
            } else {
                String::new()
            };
            let (name, id) = (clean_line(name, 40), clean_line(id, 40));
            write!(out, " {YELLOW}{name} {id}{more} {word}{YELLOW:#}")?;
        }
    }
    Ok(())
}
