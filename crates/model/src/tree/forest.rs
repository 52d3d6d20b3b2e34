//! Runs and the runs they called.

use std::collections::HashMap;

use super::{NodeId, RunTree, State};
use crate::RunId;

/// A run and all the runs it called, however deep.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Forest {
    /// The runs; the first is the one asked for.
    pub runs: Vec<RunTree>,
    /// Where each calling step leads, by the index of its run and its own. Without the
    /// [`Link::Cycle`]s there is no way from a run back to it.
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
                    runs.push(load(&child)?);
                    Ok(runs.len() - 1)
                });
                let link = match found {
                    Ok(run) => Link::Run(*run),
                    Err(why) => Link::Missing(why.clone()),
                };
                links.insert((at, node), link);
            }
            at += 1;
        }
        let mut forest = Self { runs, links };
        forest.mark_cycles();
        forest
    }

    /// Marks the links that lead back to a caller, so that following the others always ends. A run
    /// with several callers may be reached before the one it leads back to is known to call it, so
    /// this takes a walk of its own.
    fn mark_cycles(&mut self) {
        #[derive(Clone, Copy, PartialEq)]
        enum Walk {
            Ahead,
            Inside,
            Behind,
        }
        let mut walks = vec![Walk::Ahead; self.runs.len()];
        walks[0] = Walk::Inside;
        // The runs from the root to here, each with the next of its steps to look at.
        let mut trail: Vec<(usize, NodeId)> = vec![(0, 0)];
        while let Some((run, node)) = trail.last_mut() {
            if *node == self.runs[*run].nodes.len() {
                walks[*run] = Walk::Behind;
                trail.pop();
                continue;
            }
            let step = (*run, *node);
            *node += 1;
            let Some(link) = self.links.get_mut(&step) else {
                continue;
            };
            let Link::Run(called) = *link else { continue };
            match walks[called] {
                Walk::Inside => *link = Link::Cycle,
                Walk::Behind => {}
                Walk::Ahead => {
                    walks[called] = Walk::Inside;
                    trail.push((called, 0));
                }
            }
        }
    }

    /// Where a step leads; `None` when it calls no run.
    pub fn link(&self, run: usize, node: NodeId) -> Option<&Link> {
        self.links.get(&(run, node))
    }

    /// Whether nothing is open, missing or circular anywhere.
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
