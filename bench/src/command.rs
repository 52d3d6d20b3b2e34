//! What other programs take.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::{Context as _, Result, ensure};

use crate::table::median;

/// What a command took.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Took {
    /// Seconds.
    pub(crate) wall: f64,
    /// Seconds.
    pub(crate) cpu: f64,
    /// The most it held, in MiB.
    pub(crate) memory: f64,
}

/// Only what is meant to be there is there.
pub(crate) fn clean(command: &mut Command, home: &Path) {
    command
        .env_clear()
        .env("HOME", home)
        .env("PATH", "/usr/bin:/bin");
}

/// The quipu binary with a home of its own, on a machine where nothing but `logs` is.
pub(crate) fn quipu(program: &Path, home: &Path, logs: &Path) -> Command {
    let mut command = Command::new(program);
    command.arg("--home").arg(home);
    clean(&mut command, logs);
    command
}

/// Runs a command to its end, which has to be a good one.
pub(crate) fn run(command: Command) -> Result<Took> {
    run_into(command, None, &|code| code == 0)
}

/// The same, with something to read.
pub(crate) fn run_from(command: Command, input: Stdio) -> Result<Took> {
    measure(command, input, Stdio::null(), &|code| code == 0)
}

/// The same, with what it writes kept in a file, and with a say in which ends are good ones.
pub(crate) fn run_into(
    command: Command,
    out: Option<&Path>,
    is_good: &dyn Fn(i32) -> bool,
) -> Result<Took> {
    let out = match out {
        Some(path) => Stdio::from(std::fs::File::create(path)?),
        None => Stdio::null(),
    };
    measure(command, Stdio::null(), out, is_good)
}

fn measure(
    mut command: Command,
    input: Stdio,
    out: Stdio,
    is_good: &dyn Fn(i32) -> bool,
) -> Result<Took> {
    command.stdin(input).stdout(out).stderr(Stdio::null());
    let began = Instant::now();
    let child = command
        .spawn()
        .with_context(|| format!("run {command:?}"))?;
    let pid = libc::pid_t::try_from(child.id())?;
    let (mut status, mut usage) = (0, std::mem::MaybeUninit::<libc::rusage>::zeroed());
    #[expect(unsafe_code, reason = "std does not tell what a child used")]
    // SAFETY: the child is ours and not waited for elsewhere; both places may be written to, and a
    // zeroed rusage is a valid one.
    let (waited, usage) = unsafe {
        let waited = libc::wait4(pid, &raw mut status, 0, usage.as_mut_ptr());
        (waited, usage.assume_init())
    };
    let wall = began.elapsed().as_secs_f64();
    let ended = waited == pid && libc::WIFEXITED(status) && is_good(libc::WEXITSTATUS(status));
    ensure!(ended, "{command:?} failed: {status}");
    let seconds = |time: libc::timeval| time.tv_sec as f64 + time.tv_usec as f64 / 1e6;
    Ok(Took {
        wall,
        cpu: seconds(usage.ru_utime) + seconds(usage.ru_stime),
        memory: usage.ru_maxrss as f64 / 1024.0,
    })
}

/// What a command writes.
pub(crate) fn output(mut command: Command) -> Result<String> {
    let output = command
        .stdin(Stdio::null())
        .output()
        .with_context(|| format!("run {command:?}"))?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{command:?} failed: {said}");
    Ok(String::from_utf8(output.stdout)?)
}

/// The median of each figure.
pub(crate) fn middle(took: &[Took]) -> Took {
    let middle = |figure: fn(&Took) -> f64| median(took.iter().map(figure).collect());
    Took {
        wall: middle(|it| it.wall),
        cpu: middle(|it| it.cpu),
        memory: middle(|it| it.memory),
    }
}
