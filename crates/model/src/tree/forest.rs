//! Runs and the runs they called.

use std::collections::HashMap;

use super::{NodeId, RunTree, State};
use crate::RunId;

/// A run and all the runs it called, however deep.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Forest {
    /// The runs; the first is the one asked for.
    pub runs: Vec<RunTree>,
    /// Where each calling step leads, by the index of its run and its own.
    links: HashMap<(usize, NodeId), Link>,
}

/// Where a calling step leads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Link {
    /// To this run of [`Forest::runs`].
    Run(usize),
    /// To a run that was not found, or could not be read, for this reason.
    Missing(String),
    /// To a run that it is itself, directly or not, called by.
    Cycle,
}

impl Forest {
    /// Follows the links of `root`, asking `load` for each child once.
    ///
    /// `load` gives the reason when it has no such run; the forest shows it and goes on.
    pub fn grow(root: RunTree, mut load: impl FnMut(&RunId) -> Result<RunTree, String>) -> Self {
        let mut runs = vec![root];
        let mut called_by: Vec<Option<usize>> = vec![None];
        let mut index: HashMap<RunId, Result<usize, String>> = HashMap::new();
        if let Some(id) = &runs[0].run_id {
            index.insert(id.clone(), Ok(0));
        }
        let mut links = HashMap::new();
        let mut at = 0;
        while at < runs.len() {
            for node in 0..runs[at].nodes.len() {
                let Some(child) = runs[at].nodes[node].calls.clone() else {
                    continue;
                };
                let found = index.entry(child.clone()).or_insert_with(|| {
                    let tree = load(&child)?;
                    called_by.push(Some(at));
                    runs.push(tree);
                    Ok(runs.len() - 1)
                });
                let link = match found {
                    Ok(run) if is_ancestor(&called_by, at, *run) => Link::Cycle,
                    Ok(run) => Link::Run(*run),
                    Err(why) => Link::Missing(why.clone()),
                };
                links.insert((at, node), link);
            }
            at += 1;
        }
        Self { runs, links }
    }

    /// Where a step leads; `None` when it calls no run.
    pub fn link(&self, run: usize, node: NodeId) -> Option<&Link> {
        self.links.get(&(run, node))
    }

    /// Whether anything is open, missing or circular anywhere.
    pub fn is_whole(&self) -> bool {
        let unlinked = self
            .links
            .values()
            .any(|link| !matches!(link, Link::Run(_)));
        let open = |run: &RunTree| {
            run.state == State::Open || run.nodes.iter().any(|node| node.state == State::Open)
        };
        !unlinked && !self.runs.iter().any(open)
    }
}

/// Whether `candidate` is `run` or was, directly or not, its caller.
fn is_ancestor(called_by: &[Option<usize>], run: usize, candidate: usize) -> bool {
    std::iter::successors(Some(run), |&at| called_by[at]).any(|at| at == candidate)
}
