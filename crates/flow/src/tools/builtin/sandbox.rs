//! Keeping a command from writing outside the workspace.
//!
//! Landlock confines a thread and what it starts from then on. A command is therefore started on a thread of its own
//! that is confined first; the rest of the process is not.

use std::path::{Path, PathBuf};

/// Confines this thread, and what it starts, to writing in these directories and to existing devices.
/// What it may read does not change.
#[cfg(target_os = "linux")]
pub(super) fn confine(writable: &[PathBuf]) -> Result<(), String> {
    use landlock::{
        ABI, AccessFs, CompatLevel, Compatible as _, PathBeneath, PathFd, Ruleset,
        RulesetAttr as _, RulesetCreatedAttr as _, RulesetStatus,
    };
    // What older kernels do not know of these is left out.
    let all = AccessFs::from_write(ABI::V5);
    let confined = || -> Result<RulesetStatus, Box<dyn std::error::Error>> {
        let ruleset = Ruleset::default()
            .set_compatibility(CompatLevel::BestEffort)
            .handle_access(all)?;
        let mut ruleset = ruleset.create()?;
        for path in writable {
            if let Ok(dir) = PathFd::new(path) {
                ruleset = ruleset.add_rule(PathBeneath::new(dir, all))?;
            }
        }
        if let Ok(devices) = PathFd::new("/dev") {
            let write = AccessFs::WriteFile | AccessFs::IoctlDev | AccessFs::Truncate;
            ruleset = ruleset.add_rule(PathBeneath::new(devices, write))?;
        }
        Ok(ruleset.restrict_self()?.ruleset)
    };
    match confined() {
        Ok(RulesetStatus::NotEnforced) => Err("the kernel has no landlock".to_owned()),
        Ok(_) => Ok(()),
        Err(error) => Err(format!("landlock refused: {error}")),
    }
}

#[cfg(not(target_os = "linux"))]
pub(super) fn confine(_: &[PathBuf]) -> Result<(), String> {
    Err("this system has no landlock".to_owned())
}

/// Where a command may write: the root, the directory for temporary files, and what was named.
pub(super) fn writable(root: &Path, more: &[PathBuf]) -> Vec<PathBuf> {
    let mut all = vec![root.to_owned(), std::env::temp_dir()];
    all.extend_from_slice(more);
    all
}
