//! Where a run can go from each step.

use std::collections::{HashMap, VecDeque};

use super::{Action, OnFailure, Step, Text, Workflow};

/// Why a run goes from one step to another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Why<'w> {
    Success,
    Failure,
    /// A transition, with its condition.
    When(Option<&'w str>),
    /// The step is a branch.
    Branch,
    /// The step is in the body.
    Body,
    /// The loop is over.
    Complete,
}

/// The steps that a step names, in the order of the file.
pub(super) fn named(step: &Step) -> Vec<(Why<'_>, &Text)> {
    let mut ways = Vec::new();
    match &step.action {
        Action::Parallel(parallel) => {
            ways.extend(parallel.branches.iter().map(|text| (Why::Branch, text)));
        }
        Action::ForEach(super::ForEachStep { body, .. })
        | Action::While(super::WhileStep { body, .. }) => {
            ways.extend(body.steps.iter().map(|text| (Why::Body, text)));
            ways.extend(body.on_complete.as_ref().map(|text| (Why::Complete, text)));
        }
        _ => {}
    }
    for transition in &step.transitions {
        let when = transition.when.as_ref().map(|when| when.text.as_str());
        ways.push((Why::When(when), &transition.goto));
    }
    ways.extend(step.on_success.as_ref().map(|text| (Why::Success, text)));
    if let Some(OnFailure::Step(text)) = &step.on_failure {
        ways.push((Why::Failure, text));
    }
    ways
}

/// The steps by number, and the ways between them.
pub(super) struct Ways<'w> {
    pub(super) steps: Vec<&'w Step>,
    numbers: HashMap<&'w str, usize>,
    /// From each step: those that may run after it, a body's return to its loop included.
    pub(super) next: Vec<Vec<usize>>,
    /// The loops and parallel steps that each step is directly in.
    pub(super) inside: Vec<Vec<usize>>,
}

impl<'w> Ways<'w> {
    pub(super) fn new(workflow: &'w Workflow) -> Self {
        let steps: Vec<&Step> = workflow.steps.values().collect();
        let numbers: HashMap<&str, usize> = workflow
            .steps
            .keys()
            .enumerate()
            .map(|(number, name)| (name.as_str(), number))
            .collect();
        let mut next = vec![Vec::new(); steps.len()];
        let mut inside = vec![Vec::new(); steps.len()];
        for (from, step) in steps.iter().enumerate() {
            for (why, name) in named(step) {
                let Some(&to) = numbers.get(name.text.as_str()) else {
                    continue;
                };
                next[from].push(to);
                if matches!(why, Why::Branch | Why::Body) {
                    next[to].push(from);
                    inside[to].push(from);
                }
            }
        }
        Self {
            steps,
            numbers,
            next,
            inside,
        }
    }

    pub(super) fn number(&self, name: &str) -> Option<usize> {
        self.numbers.get(name).copied()
    }

    /// The steps that may run after `from`; itself only where a way leads back to it.
    pub(super) fn after(&self, from: usize) -> Vec<bool> {
        let mut seen = vec![false; self.steps.len()];
        let mut todo: VecDeque<usize> = self.next[from].iter().copied().collect();
        while let Some(step) = todo.pop_front() {
            if !std::mem::replace(&mut seen[step], true) {
                todo.extend(&self.next[step]);
            }
        }
        seen
    }

    /// The steps that a run can reach.
    pub(super) fn reachable(&self, initial: &str) -> Vec<bool> {
        match self.number(initial) {
            Some(first) => {
                let mut seen = self.after(first);
                seen[first] = true;
                seen
            }
            None => vec![true; self.steps.len()],
        }
    }

    /// The steps from which one of `goals` can be reached, the goals included.
    pub(super) fn leading_to(&self, goals: impl Iterator<Item = usize>) -> Vec<bool> {
        let mut before = vec![Vec::new(); self.steps.len()];
        for (from, next) in self.next.iter().enumerate() {
            for &to in next {
                before[to].push(from);
            }
        }
        let mut seen = vec![false; self.steps.len()];
        let mut todo: VecDeque<usize> = goals.collect();
        while let Some(step) = todo.pop_front() {
            if !std::mem::replace(&mut seen[step], true) {
                todo.extend(&before[step]);
            }
        }
        seen
    }

    /// For each step whether it is in a loop, at any depth.
    pub(super) fn in_loops(&self) -> Vec<bool> {
        let mut seen = vec![false; self.steps.len()];
        let mut todo: VecDeque<usize> = VecDeque::new();
        let is_loop = |step: usize| {
            matches!(
                self.steps[step].action,
                Action::ForEach(_) | Action::While(_)
            )
        };
        for (step, inside) in self.inside.iter().enumerate() {
            if inside.iter().any(|outer| is_loop(*outer)) {
                todo.push_back(step);
            }
        }
        while let Some(step) = todo.pop_front() {
            if std::mem::replace(&mut seen[step], true) {
                continue;
            }
            for (why, name) in named(self.steps[step]) {
                if matches!(why, Why::Branch | Why::Body)
                    && let Some(inner) = self.number(&name.text)
                {
                    todo.push_back(inner);
                }
            }
        }
        seen
    }
}
