//! Places each event of one run.

use std::collections::{BTreeSet, HashMap};

use super::{Node, NodeId, Placed, RunTree, Span, State, Tally};
use crate::{Body, Event, Place, RunId, Step, StepEnd, StepKind, ToolCallId};

/// Paths with more segments than this are not searched for ancestors: no workflow is that deep, and
/// the search is quadratic in it.
const MAX_SEGMENTS: usize = 256;

/// How many open executions are looked at where one of several must be chosen. Keeps the work per
/// event constant whatever a file holds.
const MAX_CANDIDATES: usize = 64;

/// Takes the events of one run, in file order, and gives its tree.
///
/// ```
/// use quipu_model::{tree::TreeBuilder, Annotations, Body, Event, Place, RunId, Step, Timestamp};
///
/// let mut builder = TreeBuilder::default();
/// for (seq, path) in [(1, "build"), (2, "build.lint")] {
///     builder.observe(&Event {
///         seq,
///         run_id: RunId::new("r1").unwrap(),
///         parent_run_id: None,
///         timestamp: Timestamp::UNIX_EPOCH,
///         place: Place::step(path),
///         body: Body::StepStarted(Step::new(path, "command")),
///         annotations: Annotations::default(),
///     });
/// }
/// let tree = builder.finish();
/// assert_eq!(tree.roots, [0]);
/// assert_eq!(tree.nodes[0].children, [1]);
/// ```
#[derive(Debug, Default)]
pub struct TreeBuilder {
    run_id: Option<RunId>,
    parent_run_id: Option<RunId>,
    name: Option<String>,
    state: Option<State>,
    span: Span,
    events: u64,
    tally: Tally,
    nodes: Vec<Node>,
    roots: Vec<NodeId>,
    /// Every step by its path, in the order they began.
    by_path: HashMap<String, Vec<NodeId>>,
    /// The steps that have begun and not ended.
    open: Open,
    /// Tool calls that wait for their result, by call id.
    waiting: HashMap<ToolCallId, Vec<Waiting>>,
}

/// A tool call that waits for its result.
#[derive(Debug)]
struct Waiting {
    /// Which event of the run it is, from 1.
    order: u64,
    node: Option<NodeId>,
    name: String,
}

/// Steps that have begun and not ended, by everything an event may find them by. Ids grow, so the
/// last of a set is the one that began last.
#[derive(Debug, Default)]
struct Open {
    all: BTreeSet<NodeId>,
    exact: HashMap<(Place, Option<RunId>), Vec<NodeId>>,
    by_path: HashMap<String, BTreeSet<NodeId>>,
    agents: BTreeSet<NodeId>,
    loops_by_depth: HashMap<usize, BTreeSet<NodeId>>,
}

impl Open {
    fn insert(&mut self, id: NodeId, node: &Node) {
        self.all.insert(id);
        self.exact
            .entry((node.place.clone(), node.calls.clone()))
            .or_default()
            .push(id);
        self.by_path
            .entry(node.place.path.clone())
            .or_default()
            .insert(id);
        if node.kind == StepKind::Agent {
            self.agents.insert(id);
        }
        if node.kind.is_loop() {
            self.loops_by_depth
                .entry(loop_depth(&node.place.path))
                .or_default()
                .insert(id);
        }
    }

    fn remove(&mut self, id: NodeId, node: &Node) {
        self.all.remove(&id);
        let key = (node.place.clone(), node.calls.clone());
        if let Some(same) = self.exact.get_mut(&key) {
            // Ends are matched with the latest, so this is among the last.
            if let Some(at) = same.iter().rposition(|&other| other == id) {
                same.remove(at);
            }
            if same.is_empty() {
                self.exact.remove(&key);
            }
        }
        if let Some(same) = self.by_path.get_mut(&node.place.path) {
            same.remove(&id);
            if same.is_empty() {
                self.by_path.remove(&node.place.path);
            }
        }
        self.agents.remove(&id);
        if let Some(loops) = self.loops_by_depth.get_mut(&loop_depth(&node.place.path)) {
            loops.remove(&id);
        }
    }

    /// The open executions of a step, the latest first.
    fn executions(&self, path: &str) -> impl Iterator<Item = NodeId> + Clone {
        self.by_path
            .get(path)
            .into_iter()
            .flatten()
            .rev()
            .copied()
            .take(MAX_CANDIDATES)
    }
}

impl TreeBuilder {
    /// Takes the next event.
    pub fn observe(&mut self, event: &Event) {
        self.events += 1;
        self.span.widen(event.timestamp);
        self.run_id.get_or_insert_with(|| event.run_id.clone());
        if self.parent_run_id.is_none() {
            self.parent_run_id.clone_from(&event.parent_run_id);
        }
        match &event.body {
            Body::RunStarted(step) => {
                // Also after an end: a run that is resumed is under way again.
                self.state = Some(State::Open);
                if let Some(step) = step {
                    self.name.get_or_insert_with(|| step.name.clone());
                }
            }
            Body::RunCompleted(end) => {
                self.state = Some(outcome(end.as_ref().and_then(|end| end.error.as_deref())));
                if let Some(end) = end {
                    self.name.get_or_insert_with(|| end.step.name.clone());
                }
            }
            Body::StepStarted(step) => self.begin(event, step, None),
            Body::CallStarted { child_run_id, step } => {
                self.begin(event, step, Some(child_run_id));
            }
            Body::StepCompleted(end) => self.end(event, end, None),
            Body::CallCompleted { child_run_id, end } => self.end(event, end, Some(child_run_id)),
            Body::UserMessage(_) | Body::AssistantMessage(_) | Body::SystemMessage(_) => {
                self.tally_at(&event.place).messages += 1;
            }
            Body::Unknown(_) => self.tally_at(&event.place).foreign += 1,
            // They say how a step went, not what was said or done in it.
            Body::ModelCall(_)
            | Body::Chunk(_)
            | Body::Harness(_)
            | Body::Blob(_)
            | Body::Error(_)
            | Body::Note(_) => {}
            Body::ToolCall(call) => {
                let (node, inferred) = self.locate(&event.place);
                let tally = self.tally(node);
                tally.tool_calls += 1;
                tally.inferred += u64::from(inferred);
                self.waiting
                    .entry(call.call_id.clone())
                    .or_default()
                    .push(Waiting {
                        order: self.events,
                        node,
                        name: call.name.clone(),
                    });
            }
            Body::ToolResult(result) => {
                let call = self.waiting.get_mut(&result.call_id).and_then(Vec::pop);
                let tally = match &call {
                    Some(call) => self.tally(call.node),
                    None => self.tally_at(&event.place),
                };
                tally.tool_failures += u64::from(result.error.is_some());
                if call.is_none() {
                    tally
                        .orphans
                        .push((result.name.clone(), result.call_id.clone()));
                }
            }
        }
    }

    /// The tree, with everything still open marked so.
    pub fn finish(mut self) -> RunTree {
        let mut dangling: Vec<_> = std::mem::take(&mut self.waiting)
            .into_iter()
            .flat_map(|(id, calls)| calls.into_iter().map(move |call| (call, id.clone())))
            .collect();
        dangling.sort_unstable_by_key(|(call, _)| call.order);
        for (call, id) in dangling {
            self.tally(call.node).dangling.push((call.name, id));
        }
        self.adopt_branches();
        RunTree {
            run_id: self.run_id,
            parent_run_id: self.parent_run_id,
            name: self.name,
            state: self.state.unwrap_or(State::Unmarked),
            span: self.span,
            events: self.events,
            tally: self.tally,
            nodes: self.nodes,
            roots: self.roots,
        }
    }

    fn begin(&mut self, event: &Event, step: &Step, child: Option<&RunId>) {
        let (parent, placed) = self.parent_of(&event.place);
        let id = self.insert(event, step, child, parent, placed);
        self.nodes[id].started_seq = Some(event.seq);
        self.nodes[id].span.from = Some(event.timestamp);
        self.open.insert(id, &self.nodes[id]);
    }

    fn end(&mut self, event: &Event, end: &StepEnd, child: Option<&RunId>) {
        let id = if let Some(id) = self.opened(event, end, child) {
            self.open.remove(id, &self.nodes[id]);
            id
        } else {
            let (parent, placed) = self.parent_of(&event.place);
            self.insert(event, &end.step, child, parent, placed)
        };
        let node = &mut self.nodes[id];
        node.state = outcome(end.error.as_deref());
        node.ended_seq = Some(event.seq);
        node.span.to = Some(event.timestamp);
    }

    /// Which open step an end belongs to.
    fn opened(&mut self, event: &Event, end: &StepEnd, child: Option<&RunId>) -> Option<NodeId> {
        let exact = self.open.exact.get(&(event.place.clone(), child.cloned()));
        if let Some(&latest) = exact.and_then(|same| same.last()) {
            return Some(latest);
        }
        // One engine names a step by the loops that happen to run anywhere, so a step may end under
        // another path than it began. If only one open step has the name, it is that one.
        let by_loops = |path: &str| loop_depth(path) > 0;
        let ends_by_loops = by_loops(&event.place.path);
        let mut same = self
            .open
            .all
            .iter()
            .rev()
            .copied()
            .take(MAX_CANDIDATES)
            .filter(|&id| {
                let node = &self.nodes[id];
                (node.name == end.step.name && node.kind == end.step.kind)
                    && (ends_by_loops || by_loops(&node.place.path))
            });
        let found = (same.next()).filter(|_| same.next().is_none())?;
        self.nodes[found].placed = Placed::Ambiguous;
        Some(found)
    }

    fn insert(
        &mut self,
        event: &Event,
        step: &Step,
        child: Option<&RunId>,
        parent: Option<NodeId>,
        placed: Placed,
    ) -> NodeId {
        let id = self.nodes.len();
        self.nodes.push(Node {
            place: event.place.clone(),
            name: step.name.clone(),
            kind: step.kind.clone(),
            state: State::Open,
            started_seq: None,
            ended_seq: None,
            span: Span::default(),
            tally: Tally::default(),
            calls: child.cloned(),
            placed,
            parent,
            children: Vec::new(),
        });
        match parent {
            Some(parent) => self.nodes[parent].children.push(id),
            None => self.roots.push(id),
        }
        self.by_path
            .entry(event.place.path.clone())
            .or_default()
            .push(id);
        id
    }

    /// The step that a new step hangs from.
    fn parent_of(&self, place: &Place) -> (Option<NodeId>, Placed) {
        let depth = loop_depth(&place.path);
        if depth > 0 {
            return self.enclosing_loop(depth);
        }
        let mut prefix = place.path.as_str();
        for _ in 0..MAX_SEGMENTS {
            let Some(dot) = prefix.rfind('.') else {
                return (None, Placed::ByPath);
            };
            prefix = &prefix[..dot];
            if let Some(known) = self.by_path.get(prefix) {
                return self.execution(prefix, known, &place.iterations);
            }
        }
        (None, Placed::Ambiguous)
    }

    /// Which execution of a step a sub-step belongs to.
    fn execution(
        &self,
        path: &str,
        known: &[NodeId],
        iterations: &[u64],
    ) -> (Option<NodeId>, Placed) {
        let mut open = self.open.executions(path);
        let Some(latest) = open.next() else {
            return (known.last().copied(), Placed::ByPath);
        };
        let Some(other) = open.next() else {
            return (Some(latest), Placed::ByPath);
        };
        // Several executions of the step run at once. Inside a loop the sub-step counts its own
        // iterations behind those of its parent, where it names them; otherwise it has its parent's.
        let all = [latest, other].into_iter().chain(open);
        let parents = match iterations {
            [parents @ .., _] if self.nodes[latest].kind.is_loop() && !parents.is_empty() => {
                Some(parents)
            }
            _ if self.nodes[latest].kind.is_loop() => None,
            same => Some(same),
        };
        if let Some(parents) = parents {
            let mut same = all
                .clone()
                .filter(|&id| self.nodes[id].place.iterations == parents);
            if let (Some(one), None) = (same.next(), same.next()) {
                return (Some(one), Placed::ByPath);
            }
        }
        (self.shared_parent(all), Placed::Ambiguous)
    }

    /// The step that all of these hang from; `None`, which is the run, when they differ.
    fn shared_parent(&self, nodes: impl Iterator<Item = NodeId>) -> Option<NodeId> {
        let mut parents = nodes.map(|id| self.nodes[id].parent);
        let first = parents.next()??;
        parents.all(|parent| parent == Some(first)).then_some(first)
    }

    /// The open loop that a `loop:0/loop:1/step` path lies in. Such paths give the iterations of
    /// the loops but not their names.
    fn enclosing_loop(&self, depth: usize) -> (Option<NodeId>, Placed) {
        let loops = self
            .open
            .loops_by_depth
            .get(&(depth - 1))
            .into_iter()
            .flatten()
            .rev()
            .copied()
            .take(MAX_CANDIDATES);
        let mut some = loops.clone();
        match (some.next(), some.next()) {
            (Some(one), None) => (Some(one), Placed::Inferred),
            _ => (self.shared_parent(loops), Placed::Ambiguous),
        }
    }

    /// Hangs steps that began while a parallel step ran from that step, where no path says
    /// otherwise: one engine gives the branches of a parallel step bare names. If one of the
    /// branches is itself parallel, what begins while it runs may belong to either.
    fn adopt_branches(&mut self) {
        let has_branches: Vec<bool> = self
            .nodes
            .iter()
            .map(|node| !node.children.is_empty())
            .collect();
        let mut levels = vec![std::mem::take(&mut self.roots)];
        levels.extend(
            self.nodes
                .iter_mut()
                .map(|node| std::mem::take(&mut node.children)),
        );
        for (level, siblings) in levels.into_iter().enumerate() {
            let owner = level.checked_sub(1);
            let mut kept: Vec<NodeId> = Vec::with_capacity(siblings.len());
            let mut running: Option<NodeId> = None;
            // A branch of `running` that is parallel too: the one of those that ends last.
            let mut inner: Option<NodeId> = None;
            for id in siblings {
                running = running.filter(|&p| self.began_inside(id, p));
                inner = inner.filter(|&p| running.is_some() && self.began_inside(id, p));
                match running {
                    Some(parallel)
                        if self.nodes[id].placed != Placed::ByPath || owner.is_none() =>
                    {
                        let node = &mut self.nodes[id];
                        node.parent = Some(parallel);
                        if inner.is_some() {
                            node.placed = Placed::Ambiguous;
                        } else if node.placed == Placed::ByPath {
                            node.placed = Placed::Inferred;
                        }
                        self.nodes[parallel].children.push(id);
                        if self.nodes[id].kind == StepKind::Parallel
                            && !has_branches[id]
                            && inner.is_none_or(|other| self.outlasts(id, other))
                        {
                            inner = Some(id);
                        }
                    }
                    _ => {
                        if self.nodes[id].kind == StepKind::Parallel && !has_branches[id] {
                            running = Some(id);
                        }
                        kept.push(id);
                    }
                }
            }
            match owner {
                Some(owner) => {
                    let mut children = kept;
                    children.append(&mut self.nodes[owner].children);
                    children.sort_unstable();
                    self.nodes[owner].children = children;
                }
                None => self.roots = kept,
            }
        }
    }

    fn began_inside(&self, id: NodeId, outer: NodeId) -> bool {
        let (node, outer) = (&self.nodes[id], &self.nodes[outer]);
        let Some(at) = node.started_seq.or(node.ended_seq) else {
            return false;
        };
        outer.started_seq.is_some_and(|from| from < at) && outer.ended_seq.is_none_or(|to| at < to)
    }

    fn outlasts(&self, id: NodeId, other: NodeId) -> bool {
        let end = |id: NodeId| self.nodes[id].ended_seq.unwrap_or(u64::MAX);
        end(id) > end(other)
    }

    /// The step a message or tool event belongs to, and whether that is inferred.
    fn locate(&self, place: &Place) -> (Option<NodeId>, bool) {
        if let Some(known) = self.by_path.get(&place.path) {
            let same = |id: &NodeId| {
                let node = &self.nodes[*id].place;
                node.iterations == place.iterations && node.attempt == place.attempt
            };
            let recent = || known.iter().rev().copied().take(MAX_CANDIDATES);
            let found = (self.open.executions(&place.path).find(same))
                .or_else(|| recent().find(same))
                .or_else(|| self.open.executions(&place.path).next())
                .or_else(|| recent().next());
            return (found, false);
        }
        // One engine gives the workflow's name, or nothing, as the path of messages and tools. If
        // one agent alone was at work, it was that agent's.
        let mut agents = self.open.agents.iter();
        match (agents.next(), agents.next()) {
            (Some(&agent), None) => (Some(agent), true),
            _ => (None, false),
        }
    }

    fn tally_at(&mut self, place: &Place) -> &mut Tally {
        let (node, inferred) = self.locate(place);
        let tally = self.tally(node);
        tally.inferred += u64::from(inferred);
        tally
    }

    fn tally(&mut self, node: Option<NodeId>) -> &mut Tally {
        match node {
            Some(id) => &mut self.nodes[id].tally,
            None => &mut self.tally,
        }
    }
}

fn outcome(error: Option<&str>) -> State {
    error.map_or(State::Done, |error| State::Failed(error.to_owned()))
}

/// How many `loop:N/` prefixes a path has.
pub(super) fn loop_depth(path: &str) -> usize {
    let is_loop_segment = |segment: &&str| {
        segment
            .strip_prefix("loop:")
            .is_some_and(|n| !n.is_empty() && n.bytes().all(|b| b.is_ascii_digit()))
    };
    let segments = path.matches('/').count();
    path.split('/')
        .take(segments)
        .take_while(is_loop_segment)
        .count()
}
