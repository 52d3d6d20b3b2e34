//! Runs of other processes: what their transcripts say, who has them open, and how they are told to stop.

use std::collections::HashMap;
use std::fs::{File, TryLockError};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use parking_lot::Mutex;
use quipu_api::execution::ExecutionStatus;
use quipu_flow::engine::{Glance, RecordedEnd};
use rustc_hash::FxBuildHasher;

/// How a run is that this process does not run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Standing {
    pub(super) status: ExecutionStatus,
    /// The process that runs it, where the system says.
    pub(super) pid: Option<u32>,
}

/// How a run is, by its transcript and by whether somebody has that open.
pub(super) fn status(path: &Path, end: Option<&RecordedEnd>) -> ExecutionStatus {
    let said = end.map(|end| (end.status.as_str(), end.error.is_some()));
    match said {
        Some(("cancelled", _)) => ExecutionStatus::Cancelled,
        Some(("paused", _)) => ExecutionStatus::Paused,
        None | Some(("interrupted", _)) if is_locked(path) => ExecutionStatus::Running,
        None | Some(("interrupted", _)) => ExecutionStatus::Lost,
        Some(("failed", _) | (_, true)) => ExecutionStatus::Failed,
        Some((_, false)) => ExecutionStatus::Succeeded,
    }
}

/// The same, with the process that runs it.
pub(super) fn standing(path: &Path, end: Option<&RecordedEnd>) -> Standing {
    let status = status(path, end);
    let is_running = status == ExecutionStatus::Running;
    let pid = is_running.then(|| holder(path)).flatten();
    Standing { status, pid }
}

/// Whether some process writes the transcript. Whoever wants to write in the moment of the look tries again
/// (`quipu_flow`), so that the look does not turn anybody away.
pub(crate) fn is_locked(path: &Path) -> bool {
    let file = File::open(path);
    file.is_ok_and(|file| matches!(file.try_lock_shared(), Err(TryLockError::WouldBlock)))
}

/// The process that has the lock on a transcript: the system says of each open file which locks it has.
pub(super) fn holder(path: &Path) -> Option<u32> {
    let path = std::fs::canonicalize(path).ok()?;
    let processes = std::fs::read_dir("/proc").ok()?.flatten();
    processes
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .find(|process| holds(*process, &path))
}

fn holds(process: u32, path: &Path) -> bool {
    // Files of other users' processes cannot be looked at.
    let files = std::fs::read_dir(format!("/proc/{process}/fd"));
    files.into_iter().flatten().flatten().any(|file| {
        std::fs::read_link(file.path()).is_ok_and(|open| open == path)
            && file.file_name().to_str().is_some_and(|number| {
                let about = std::fs::read_to_string(format!("/proc/{process}/fdinfo/{number}"));
                let about = about.unwrap_or_default();
                let mut lines = about.lines();
                lines.any(|line| {
                    line.starts_with("lock:") && line.contains("FLOCK") && line.contains("WRITE")
                })
            })
    })
}

/// Why a process was not told to stop.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum Unproven {
    #[error("another process runs it, and the system does not say which")]
    Unknown,
    #[error("process {0} runs it, and it is not a `quipu run` of this program")]
    Stranger(u32),
    #[error("process {0} runs it, and it cannot be signalled: {1}")]
    Refused(u32, String),
}

/// Asks the process that runs a run to end it, if that process is provably `quipu run`: it has the lock on the transcript, it is
/// this program, and it was started to run a workflow. `quipu run` cancels its run at this signal.
#[cfg(target_os = "linux")]
pub(super) fn stop(path: &Path) -> Result<u32, Unproven> {
    use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
    let process = holder(path).ok_or(Unproven::Unknown)?;
    let refused = |error: rustix::io::Errno| Unproven::Refused(process, error.to_string());
    let pid = i32::try_from(process).ok().and_then(Pid::from_raw);
    let pid = pid.ok_or(Unproven::Unknown)?;
    // From here on the handle means this process, also if it ends and its number is given to another.
    let handle = pidfd_open(pid, PidfdFlags::empty()).map_err(refused)?;
    if process == std::process::id() || !is_quipu_run(process) {
        return Err(Unproven::Stranger(process));
    }
    if holder(path) != Some(process) {
        return Err(Unproven::Unknown);
    }
    pidfd_send_signal(handle, Signal::TERM).map_err(refused)?;
    Ok(process)
}

#[cfg(not(target_os = "linux"))]
pub(super) fn stop(_: &Path) -> Result<u32, Unproven> {
    Err(Unproven::Unknown)
}

/// Whether a process is this program, started to run a workflow.
#[cfg(target_os = "linux")]
fn is_quipu_run(process: u32) -> bool {
    use std::os::unix::fs::MetadataExt as _;
    let file = |process: &str| {
        let about = std::fs::metadata(format!("/proc/{process}/exe")).ok()?;
        Some((about.dev(), about.ino()))
    };
    let own = file("self");
    let arguments = std::fs::read(format!("/proc/{process}/cmdline")).unwrap_or_default();
    let mut arguments = arguments.split(|byte| *byte == 0).skip(1);
    own.is_some() && file(&process.to_string()) == own && arguments.any(|word| word == b"run")
}

/// What was seen of transcripts, so that each is looked at again only when it changed.
#[derive(Default)]
pub(super) struct Others {
    seen: Mutex<HashMap<PathBuf, Seen, FxBuildHasher>>,
}

#[derive(Clone)]
struct Seen {
    length: u64,
    modified: Option<SystemTime>,
    glance: Option<Glance>,
}

impl Others {
    /// All runs of workflows, but those that other runs called.
    pub(super) fn all(&self, transcripts: &Path) -> Vec<(PathBuf, Glance)> {
        let mut now = HashMap::default();
        let mut all = Vec::new();
        let files = std::fs::read_dir(transcripts);
        for file in files.into_iter().flatten().flatten() {
            let path = file.path();
            let about = file.metadata().ok().filter(std::fs::Metadata::is_file);
            let (Some(about), Some("jsonl")) = (about, path.extension().and_then(|it| it.to_str()))
            else {
                continue;
            };
            let (length, modified) = (about.len(), about.modified().ok());
            let known = self.seen.lock().get(&path).cloned();
            let seen = known
                .filter(|seen| seen.length == length && seen.modified == modified)
                .unwrap_or_else(|| Seen {
                    length,
                    modified,
                    // A file of another name is not that of the run, so it cannot be resumed by its id.
                    glance: Glance::at(&path).filter(|glance| {
                        path.file_stem().and_then(|stem| stem.to_str())
                            == Some(glance.run_id.as_str())
                    }),
                });
            if let Some(glance) = &seen.glance {
                all.push((path.clone(), glance.clone()));
            }
            now.insert(path, seen);
        }
        // What is gone is forgotten.
        *self.seen.lock() = now;
        all
    }
}
