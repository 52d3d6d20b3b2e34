//! Ending a program with all that it started.

use rustix::process::{Pid, Signal, kill_process, kill_process_group};

/// Sends a signal to the process group of `pid` and to every descendant of it: SIGKILL when `by_force`, else SIGTERM.
pub fn end_tree(pid: u32, by_force: bool) {
    let signal = if by_force { Signal::KILL } else { Signal::TERM };
    let Some(leader) = i32::try_from(pid).ok().and_then(Pid::from_raw) else {
        return;
    };
    // Looked up first: children of a process that has ended belong to another parent.
    let below = descendants(pid);
    // The group may have ended by itself.
    kill_process_group(leader, signal).ok();
    for pid in below {
        if let Some(pid) = i32::try_from(pid).ok().and_then(Pid::from_raw) {
            kill_process(pid, signal).ok();
        }
    }
}

/// The processes below `pid`, as `/proc` tells; none where there is no `/proc`.
fn descendants(pid: u32) -> Vec<u32> {
    let mut found = Vec::new();
    let mut todo = vec![pid];
    while let Some(parent) = todo.pop() {
        let tasks = std::fs::read_dir(format!("/proc/{parent}/task"));
        for task in tasks.into_iter().flatten().flatten() {
            let children = std::fs::read_to_string(task.path().join("children"));
            for child in children.unwrap_or_default().split_ascii_whitespace() {
                if let Ok(child) = child.parse()
                    && !found.contains(&child)
                {
                    found.push(child);
                    todo.push(child);
                }
            }
        }
    }
    found
}

/// Makes this process the parent of descendants whose own parent has ended, so that they are found when a run is
/// cancelled. For programs that run workflows; Linux only, elsewhere it does nothing.
pub fn adopt_orphans() {
    #[cfg(target_os = "linux")]
    rustix::process::set_child_subreaper(Some(rustix::process::getpid())).ok();
}
