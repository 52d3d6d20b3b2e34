//! Importing logs: reading, keeping, and doing nothing when nothing changed.

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::{Context as _, Result, ensure};
use quipu_agents::{Entry, Feed, Origin, Position, Sink, Summary};
use quipu_model::Timestamp;

use crate::corpus;
use crate::table::{Goal, Table, median};

/// What is imported, and with what.
pub(crate) struct Setup {
    pub(crate) quipu: PathBuf,
    pub(crate) directory: PathBuf,
    /// Logs that are there already, laid out as in a home; made up where there are none.
    pub(crate) home: Option<PathBuf>,
    pub(crate) bytes: u64,
    pub(crate) rounds: usize,
    pub(crate) agentsview: Option<PathBuf>,
}

/// Finds agentsview, or installs it beside what is measured. `None` where that does not work.
pub(crate) fn peer(directory: &Path) -> Option<PathBuf> {
    let peers = directory.join("peers");
    let program = peers.join("bin/agentsview");
    if !program.exists() {
        let quiet = |command: &mut Command| {
            let status = command.stdout(Stdio::null()).stderr(Stdio::null()).status();
            status.is_ok_and(|status| status.success())
        };
        let made = quiet(Command::new("python3").args(["-m", "venv"]).arg(&peers));
        let pip = peers.join("bin/pip");
        if !made || !quiet(Command::new(pip).args(["install", "-q", "agentsview"])) {
            return None;
        }
    }
    fs::canonicalize(program).ok()
}

/// What a command took.
struct Took {
    wall: f64,
    cpu: f64,
    memory: f64,
}

pub(crate) fn measure(table: &mut Table, setup: &Setup) -> Result<()> {
    fs::create_dir_all(&setup.directory)?;
    let directory = fs::canonicalize(&setup.directory)?;
    let made_up = directory.join(format!("home-{}", setup.bytes));
    let home = setup.home.clone().unwrap_or(made_up);
    if !home.exists() {
        let files = corpus::write(&home, setup.bytes, 1)?;
        println!("made {files} logs in {}", home.display());
    }
    let quipu = fs::canonicalize(&setup.quipu).context("the quipu binary")?;
    let logs = logs(&home)?;
    let bytes: u64 = logs.iter().map(|log| log.1).sum();
    println!("{} logs, {:.0} MB", logs.len(), bytes as f64 / 1e6);

    let store = directory.join("store");
    let theirs = directory.join("agentsview");
    let import = || {
        let mut command = Command::new(&quipu);
        command.arg("--home").arg(&store).arg("import");
        clean(&mut command, &home);
        command
    };
    let sync = setup.agentsview.as_ref().map(|program| {
        let (home, theirs) = (home.clone(), theirs.clone());
        move || {
            let mut command = Command::new(program);
            command.arg("sync");
            clean(&mut command, &home);
            command
                .env("AGENTSVIEW_NO_DAEMON", "1")
                .env("AGENTSVIEW_DATA_DIR", &theirs)
                .env("CLAUDE_PROJECTS_DIR", home.join(".claude/projects"))
                .env("CODEX_SESSIONS_DIR", home.join(".codex/sessions"));
            command
        }
    });
    let (mut ratios, mut ours, mut peers) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..setup.rounds.min(3) {
        remove(&store)?;
        let took = run(import())?;
        if let Some(sync) = &sync {
            remove(&theirs)?;
            let peer = run(sync())?;
            ratios.push(peer.cpu / took.cpu);
            peers.push(peer);
        }
        ours.push(took);
    }
    let show = |took: &[Took]| {
        let middle = |figure: fn(&Took) -> f64| median(took.iter().map(figure).collect());
        (middle(|t| t.wall), middle(|t| t.cpu), middle(|t| t.memory))
    };
    let (wall, cpu, memory) = show(&ours);
    let rate = bytes as f64 / 1e6 / cpu;
    println!("import: {wall:.2} s wall, {cpu:.2} s cpu, {rate:.0} MB/s cpu, {memory:.0} MiB");
    if peers.is_empty() {
        println!(
            "skipped: no agentsview to compare with (pip install agentsview; --agentsview PATH)"
        );
    } else {
        let (peer_wall, peer_cpu, peer_memory) = show(&peers);
        println!("agentsview: {peer_wall:.2} s wall, {peer_cpu:.2} s cpu, {peer_memory:.0} MiB");
        let (ours, limit) = (format!("{cpu:.2} s"), format!("agentsview {peer_cpu:.2} s"));
        table.row(
            "import by cpu time, times faster",
            &ours,
            &limit,
            median(ratios),
            Goal::AtLeast(6.0),
        );
    }
    let memory_text = format!("{memory:.0} MiB");
    table.row(
        "import, peak memory / 256 MiB",
        &memory_text,
        "256 MiB",
        memory / 256.0,
        Goal::AtMost(1.0),
    );
    let kept = size_of(&store.join("archive"))? + size_of(&store.join("index.sqlite"))?;
    let kept_text = format!("{:.0} MB", kept as f64 / 1e6);
    let share = kept as f64 / bytes as f64;
    table.row(
        "archive + catalogue / logs",
        &kept_text,
        &format!("{:.0} MB", bytes as f64 / 1e6),
        share,
        Goal::AtMost(0.30),
    );

    unchanged(table, setup, &import, sync.as_ref())?;
    grown(table, &import, &logs, setup.rounds)?;
    bare(table, &quipu, &store, &home)?;
    // Last, because a command that is run from a process that has held much is said to have held it.
    parse(table, &logs, setup.rounds)
}

/// Reading alone, against a bare parse of the same lines.
fn parse(table: &mut Table, logs: &[(PathBuf, u64)], rounds: usize) -> Result<()> {
    for family in ["claude", "codex"] {
        let mut files = Vec::new();
        let mut len = 0;
        for (path, size) in logs {
            if path
                .iter()
                .any(|part| part.to_string_lossy().contains(family))
                && len < 64_000_000
            {
                files.push(fs::read(path)?);
                len += size;
            }
        }
        if files.is_empty() {
            continue;
        }
        let (mut ratios, mut speeds, mut limits) = (Vec::new(), Vec::new(), Vec::new());
        for _ in 0..rounds {
            let began = Instant::now();
            tape(&files)?;
            let bare = began.elapsed().as_secs_f64();
            let began = Instant::now();
            read(&files)?;
            let ours = began.elapsed().as_secs_f64();
            ratios.push(bare / ours);
            speeds.push(len as f64 / 1e6 / ours);
            limits.push(len as f64 / 1e6 / bare);
        }
        table.row(
            &format!("parse and normalise, {family}"),
            &format!("{:.0} MB/s", median(speeds)),
            &format!("simd-json {:.0} MB/s", median(limits)),
            median(ratios),
            Goal::AtLeast(0.5),
        );
    }
    Ok(())
}

fn tape(files: &[Vec<u8>]) -> Result<()> {
    let (mut line, mut buffers) = (Vec::new(), simd_json::Buffers::default());
    for file in files {
        let mut from = 0;
        for end in memchr::memchr_iter(b'\n', file) {
            line.clear();
            line.extend_from_slice(&file[from..end]);
            from = end + 1;
            let tape = simd_json::to_tape_with_buffers(&mut line, &mut buffers)?;
            std::hint::black_box(&tape);
        }
    }
    Ok(())
}

struct Sums(Summary);

impl Sink for Sums {
    fn entry(&mut self, _: u64, _: Timestamp, _: Position, entry: &Entry<'_>) {
        self.0.observe(entry);
    }
}

fn read(files: &[Vec<u8>]) -> Result<()> {
    for file in files {
        let head = &file[..file.len().min(quipu_agents::HEAD)];
        let (family, dialect) =
            quipu_agents::identify(head, head.len() == file.len()).context("a known log")?;
        let origin = Origin {
            path: Path::new("log.jsonl"),
            part: None,
        };
        let reader = family.open(&dialect, &origin, None).context("a reader")?;
        let mut feed = Feed::new(dialect.framing, reader);
        let mut sums = Sums(Summary::default());
        for piece in file.chunks(1 << 20) {
            feed.push(piece, &mut sums);
        }
        feed.finish(&mut sums)?;
        std::hint::black_box(&sums.0);
    }
    Ok(())
}

fn unchanged(
    table: &mut Table,
    setup: &Setup,
    import: &dyn Fn() -> Command,
    sync: Option<&impl Fn() -> Command>,
) -> Result<()> {
    let (mut ratios, mut ours, mut theirs) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..setup.rounds {
        let took = run(import())?.cpu;
        if let Some(sync) = sync {
            let peer = run(sync())?.cpu;
            ratios.push(took / peer);
            theirs.push(peer);
        }
        ours.push(took);
    }
    let ours = median(ours);
    if theirs.is_empty() {
        println!("nothing changed: {ours:.3} s cpu");
        return Ok(());
    }
    let limit = format!("agentsview {:.3} s", median(theirs));
    table.row(
        "nothing changed, cpu",
        &format!("{ours:.3} s"),
        &limit,
        median(ratios),
        Goal::AtMost(0.5),
    );
    Ok(())
}

fn grown(
    table: &mut Table,
    import: &dyn Fn() -> Command,
    logs: &[(PathBuf, u64)],
    rounds: usize,
) -> Result<()> {
    let claude = |log: &&(PathBuf, u64)| log.0.iter().any(|part| part == ".claude");
    let Some((path, _)) = logs.iter().find(claude) else {
        return Ok(());
    };
    let mut walls = Vec::new();
    for round in 0..rounds {
        let before = fs::metadata(path)?.len();
        let more = corpus::more(10_000_000, 1000 + round as u64);
        fs::OpenOptions::new()
            .append(true)
            .open(path)?
            .write_all(more.as_bytes())?;
        walls.push(run(import())?.wall * 1e3);
        fs::OpenOptions::new()
            .write(true)
            .open(path)?
            .set_len(before)?;
        run(import())?;
    }
    let wall = median(walls);
    table.row(
        "one log grown by 10 MB, wall",
        &format!("{wall:.0} ms"),
        "100 ms",
        wall / 100.0,
        Goal::AtMost(1.0),
    );
    Ok(())
}

fn bare(table: &mut Table, quipu: &Path, store: &Path, home: &Path) -> Result<()> {
    let mut command = Command::new(quipu);
    command.arg("--home").arg(store);
    clean(&mut command, home);
    let took = run(command)?;
    let text = format!("{:.0} MiB, {:.2} s", took.memory, took.wall);
    table.row(
        "bare quipu, peak memory / 60 MiB",
        &text,
        "60 MiB",
        took.memory / 60.0,
        Goal::AtMost(1.0),
    );
    Ok(())
}

/// Only what is meant to be there is there.
fn clean(command: &mut Command, home: &Path) {
    command
        .env_clear()
        .env("HOME", home)
        .env("PATH", "/usr/bin:/bin");
}

fn run(mut command: Command) -> Result<Took> {
    command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
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
    ensure!(waited == pid && status == 0, "{command:?} failed: {status}");
    let seconds = |time: libc::timeval| time.tv_sec as f64 + time.tv_usec as f64 / 1e6;
    Ok(Took {
        wall,
        cpu: seconds(usage.ru_utime) + seconds(usage.ru_stime),
        memory: usage.ru_maxrss as f64 / 1024.0,
    })
}

fn logs(home: &Path) -> Result<Vec<(PathBuf, u64)>> {
    let (mut logs, mut left) = (Vec::new(), vec![home.to_owned()]);
    while let Some(directory) = left.pop() {
        for entry in fs::read_dir(&directory)? {
            let entry = entry?;
            if entry.file_type()?.is_dir() {
                left.push(entry.path());
            } else if entry
                .path()
                .extension()
                .is_some_and(|ending| ending == "jsonl")
            {
                logs.push((entry.path(), entry.metadata()?.len()));
            }
        }
    }
    logs.sort();
    Ok(logs)
}

fn size_of(path: &Path) -> Result<u64> {
    let metadata = fs::metadata(path)?;
    if metadata.is_file() {
        return Ok(metadata.len());
    }
    let mut sum = 0;
    for entry in fs::read_dir(path)? {
        sum += size_of(&entry?.path())?;
    }
    Ok(sum)
}

fn remove(directory: &Path) -> Result<()> {
    match fs::remove_dir_all(directory) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(error.into()),
        _ => Ok(()),
    }
}
