//! Ending a program with all that it started.

use std::collections::BTreeSet;

use rustix::process::{Pid, Signal, kill_process, kill_process_group};

/// A program and all that it started, as far as is known.
#[derive(Debug)]
pub struct ProcessTree {
    leader: u32,
    mark: Option<String>,
    /// Remembered: children of a process that has ended belong to another parent.
    below: BTreeSet<u32>,
}

impl ProcessTree {
    /// The tree of a program that leads a process group.
    pub fn of(leader: u32) -> Self {
        Self {
            leader,
            mark: None,
            below: BTreeSet::new(),
        }
    }

    /// What carries this mark in its environment belongs to the tree, whoever its parent is by now.
    #[must_use]
    pub(super) fn marked(mut self, mark: &str) -> Self {
        self.mark = Some(mark.to_owned());
        self
    }

    /// Kills every descendant of a process, but not the process itself.
    pub fn kill_all_below(process: u32) {
        for below in descendants(process).into_iter().filter_map(pid) {
            kill_process(below, Signal::KILL).ok();
        }
    }

    /// Sends a signal to the process group and to every descendant: SIGKILL when `by_force`, else SIGTERM.
    pub fn end(&mut self, by_force: bool) {
        let signal = if by_force { Signal::KILL } else { Signal::TERM };
        self.below.extend(descendants(self.leader));
        if let Some(mark) = &self.mark {
            self.below.extend(carriers(mark));
        }
        if let Some(leader) = pid(self.leader) {
            // The group may have ended by itself.
            kill_process_group(leader, signal).ok();
        }
        for process in self.below.iter().copied().filter_map(pid) {
            kill_process(process, signal).ok();
        }
    }
}

impl ProcessTree {
    /// Whether all that is known of it has ended. A process that ended and that its parent has not asked for counts as such.
    pub(super) fn is_gone(&self) -> bool {
        self.below.iter().chain([&self.leader]).all(|process| {
            let stat = std::fs::read_to_string(format!("/proc/{process}/stat"));
            // The name before the state is in brackets and may hold anything.
            stat.ok().is_none_or(|stat| {
                let state = stat.rsplit_once(')').map(|(_, rest)| rest.trim_start());
                state.is_some_and(|state| state.starts_with(['Z', 'X']))
            })
        })
    }
}

fn pid(number: u32) -> Option<Pid> {
    i32::try_from(number).ok().and_then(Pid::from_raw)
}

/// The variable that carries the mark of a program.
pub(super) const MARK: &str = "QUIPU_PROGRAM";

/// The processes that carry a mark. Those of other users cannot be looked at, and are not ours.
fn carriers(mark: &str) -> BTreeSet<u32> {
    let wanted = format!("{MARK}={mark}");
    let processes = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    processes
        .filter_map(|entry| {
            let process = entry.file_name().to_str()?.parse::<u32>().ok()?;
            let environment = std::fs::read(entry.path().join("environ")).ok()?;
            let mut variables = environment.split(|byte| *byte == 0);
            variables
                .any(|variable| variable == wanted.as_bytes())
                .then_some(process)
        })
        .collect()
}

/// The processes below one, as `/proc` tells; none where there is no `/proc`.
fn descendants(of: u32) -> BTreeSet<u32> {
    let mut pairs = Vec::new();
    for entry in std::fs::read_dir("/proc").into_iter().flatten().flatten() {
        let name = entry.file_name();
        let Some(process) = name.to_str().and_then(|name| name.parse::<u32>().ok()) else {
            continue;
        };
        if let Ok(stat) = std::fs::read_to_string(entry.path().join("stat"))
            && let Some(parent) = parent_in(&stat)
        {
            pairs.push((parent, process));
        }
    }
    let mut found = BTreeSet::new();
    let mut todo = vec![of];
    while let Some(parent) = todo.pop() {
        for (_, child) in pairs.iter().filter(|(p, _)| *p == parent) {
            if found.insert(*child) {
                todo.push(*child);
            }
        }
    }
    found
}

/// The parent that a line of `/proc/<pid>/stat` names. The name before it is in brackets and may hold anything.
fn parent_in(stat: &str) -> Option<u32> {
    let (_, rest) = stat.rsplit_once(')')?;
    rest.split_ascii_whitespace().nth(1)?.parse().ok()
}

/// Makes this process the parent of descendants whose own parent has ended, so that none is left to nobody when a run
/// is cancelled. For programs that run workflows; Linux only, elsewhere it does nothing.
pub fn adopt_orphans() {
    #[cfg(target_os = "linux")]
    rustix::process::set_child_subreaper(Some(rustix::process::getpid())).ok();
}
