//! Running workflows: what a step costs beyond the program that it starts, and what recording adds to that.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::{Context as _, Result, ensure};
use quipu_record::{Clock as _, SystemClock};

use crate::command::{self, Took};
use crate::files::put;
use crate::setup::place;
use crate::table::{Goal, Table, median, now};

/// Steps of the workflow of commands.
const STEPS: usize = 1_000;
/// What a step may cost beyond its program, in milliseconds.
const PER_STEP: f64 = 3.0;
/// Branches that are under way at once, and how long each takes in seconds.
const BRANCHES: usize = 64;
const BRANCH: f64 = 1.0;
/// Items of the shorter and the longer loop.
const ITEMS: [usize; 2] = [10_000, 100_000];
/// Steps of the file that is checked, and how long that may take in milliseconds.
const CHECKED: usize = 500;
const CHECK: f64 = 50.0;
/// Events of the run that is resumed.
const EVENTS: usize = 100_000;

/// What is measured, and with what.
#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// Where to work
    #[arg(long, default_value = "target/bench")]
    directory: PathBuf,
    /// The quipu binary
    #[arg(long, default_value = "target/release/quipu")]
    quipu: PathBuf,
    /// How often each pair is measured
    #[arg(long, default_value_t = 5)]
    rounds: usize,
    /// Only the parts whose name holds this: steps, branches, items, check, resume
    #[arg(long, default_value = "")]
    only: String,
}

/// A directory with workflows, and homes for their runs.
struct Bench {
    quipu: PathBuf,
    root: PathBuf,
    rounds: usize,
}

pub(crate) fn measure(table: &mut Table, options: &Options) -> Result<()> {
    let missing = || format!("there is no quipu binary at {}", options.quipu.display());
    let bench = Bench {
        quipu: fs::canonicalize(&options.quipu).with_context(missing)?,
        root: place(&options.directory, "run")?,
        rounds: options.rounds,
    };
    let wanted = |part: &str| part.contains(options.only.as_str());
    if wanted("steps") {
        bench.steps(table)?;
    }
    if wanted("branches") {
        bench.branches(table)?;
    }
    if wanted("items") {
        bench.items(table)?;
    }
    if wanted("check") {
        bench.check(table)?;
    }
    if wanted("resume") {
        bench.resume(table)?;
    }
    Ok(())
}

impl Bench {
    fn workflow(&self, name: &str, states: &str) -> Result<PathBuf> {
        let path = self.root.join(format!("{name}.yaml"));
        let text = format!("name: {name}\nversion: \"1.0.0\"\nstates:\n{states}");
        put(&path, text.as_bytes())?;
        Ok(path)
    }

    /// A home that nothing is in.
    fn home(&self, name: &str) -> Result<PathBuf> {
        let home = self.root.join(name);
        if home.exists() {
            fs::remove_dir_all(&home)?;
        }
        fs::create_dir_all(&home)?;
        Ok(home)
    }

    fn quipu(&self, home: &Path, args: &[&str]) -> Command {
        let mut command = command::quipu(&self.quipu, home, &self.root);
        command.arg("run").args(args).current_dir(&self.root);
        command
    }

    fn run(&self, home: &Path, workflow: &Path, args: &[&str]) -> Result<Took> {
        let mut command = self.quipu(home, &["--quiet"]);
        command.arg(workflow).args(args);
        command::run(command)
    }

    /// A workflow of commands, beside a loop that starts the same commands and does nothing else.
    fn steps(&self, table: &mut Table) -> Result<()> {
        let mut states = String::from("  initial: s0\n");
        for step in 0..STEPS {
            writeln!(
                states,
                "  s{step}: {{type: command, command: \"true\", on_success: s{}}}",
                step + 1
            )?;
        }
        writeln!(states, "  s{STEPS}: {{type: terminal, status: success}}")?;
        let workflow = self.workflow("steps", &states)?;
        // Nothing can be recorded below a file.
        let file = self.root.join("a-file");
        put(&file, b"")?;
        let nowhere = file.join("storage").to_string_lossy().into_owned();
        let (mut beyond, mut costs, mut shares) = (Vec::new(), Vec::new(), Vec::new());
        let per_step = |seconds: f64| seconds * 1e3 / STEPS as f64;
        for round in 0..self.rounds {
            now(&format!("steps, round {}", round + 1));
            let bare = commands(STEPS)?;
            let home = self.home("steps-home")?;
            let recorded = self.run(&home, &workflow, &[])?;
            let mut command =
                self.quipu(&home, &["--quiet", "--unrecorded", "--storage", &nowhere]);
            command.arg(&workflow).env("QUIPU_AUDIT_LOG", "off");
            let unrecorded = command::run(command)?;
            beyond.push(per_step(recorded.wall - bare));
            // Processor time: the time of a thousand programs varies more than recording takes.
            costs.push(per_step(recorded.cpu - unrecorded.cpu));
            shares.push((recorded.cpu - unrecorded.cpu) / unrecorded.cpu);
        }
        let (beyond, cost, share) = (median(beyond), median(costs), median(shares));
        table.row(
            "a command step, beyond its program",
            &format!("{beyond:.2} ms"),
            &format!("{PER_STEP:.0} ms"),
            beyond / PER_STEP,
            Goal::AtMost(1.0),
        );
        table.row(
            "recording a command step, processor time",
            &format!("{cost:.3} ms"),
            &format!("{:.1} ms", PER_STEP * 0.1),
            cost / PER_STEP,
            Goal::AtMost(0.10),
        );
        table.row(
            "the same, beside the run without it",
            &format!("{:.1} %", share * 100.0),
            "not recorded",
            share,
            Goal::AtMost(0.10),
        );
        Ok(())
    }

    /// Branches that all wait at the same time.
    fn branches(&self, table: &mut Table) -> Result<()> {
        let names: Vec<String> = (0..BRANCHES).map(|branch| format!("b{branch}")).collect();
        let mut states = format!(
            "  initial: all\n  all: {{type: parallel, parallel: [{}], strategy: all_succeed, max_concurrent: {BRANCHES}, on_success: done}}\n",
            names.join(", ")
        );
        for name in &names {
            writeln!(
                states,
                "  {name}: {{type: command, command: \"sleep {BRANCH}\"}}"
            )?;
        }
        states.push_str("  done: {type: terminal, status: success}\n");
        let many = self.workflow("branches", &states)?;
        let states = format!(
            "  initial: one\n  one: {{type: command, command: \"sleep {BRANCH}\", on_success: done}}\n  done: {{type: terminal, status: success}}\n"
        );
        let one = self.workflow("branch", &states)?;
        let (mut walls, mut ratios) = (Vec::new(), Vec::new());
        for _ in 0..self.rounds {
            let home = self.home("branches-home")?;
            let alone = self.run(&home, &one, &[])?.wall;
            let all = self.run(&home, &many, &[])?.wall;
            walls.push(all);
            ratios.push(all / alone);
        }
        let (wall, ratio) = (median(walls), median(ratios));
        table.row(
            &format!("{BRANCHES} branches at once"),
            &format!("{wall:.2} s"),
            "one branch",
            ratio,
            Goal::AtMost(1.5),
        );
        Ok(())
    }

    /// A short and a long loop.
    fn items(&self, table: &mut Table) -> Result<()> {
        let mut memory = Vec::new();
        let mut walls = Vec::new();
        for items in ITEMS {
            let workflow = self.workflow(&format!("items-{items}"), &looped(items, "done"))?;
            let mut took = Vec::new();
            for _ in 0..self.rounds.min(3) {
                now(&format!("a loop over {items} items"));
                took.push(self.run(&self.home("items-home")?, &workflow, &[])?);
            }
            let took = command::middle(&took);
            memory.push(took.memory);
            walls.push(took.wall);
        }
        table.row(
            &format!("for_each of {} items, peak memory", ITEMS[1]),
            &format!("{:.0} MiB", memory[1]),
            &format!("{} items: {:.0} MiB", ITEMS[0], memory[0]),
            memory[1] / memory[0],
            Goal::AtMost(1.5),
        );
        table.row(
            &format!("for_each of {} items, time", ITEMS[1]),
            &format!("{:.2} s", walls[1]),
            &format!("{} items: {:.2} s", ITEMS[0], walls[0]),
            walls[1] / walls[0],
            Goal::Free,
        );
        Ok(())
    }

    /// Reading and checking a long file, the start of the program included.
    fn check(&self, table: &mut Table) -> Result<()> {
        let mut states = String::from("  initial: s0\n");
        for step in 0..CHECKED - 1 {
            let before = step.saturating_sub(1);
            writeln!(
                states,
                "  s{step}:\n    type: command\n    command: \"echo '{{{{.states.s{before}.Output}}}}' {{{{.inputs.name}}}}\"\n    timeout: 5s\n    retry: {{max_attempts: 3, initial_delay: 100ms}}\n    transitions:\n      - {{when: \"states.s{step}.ExitCode == 0\", goto: s{}}}\n      - {{goto: s{}}}",
                step + 1,
                CHECKED - 1
            )?;
        }
        writeln!(
            states,
            "  s{}: {{type: terminal, status: success}}",
            CHECKED - 1
        )?;
        let path = self.root.join("check.yaml");
        let text = format!(
            "name: check\nversion: \"1.0.0\"\ninputs:\n  - {{name: name, type: string, default: world}}\nstates:\n{states}"
        );
        put(&path, text.as_bytes())?;
        let home = self.home("check-home")?;
        let mut walls = Vec::new();
        for _ in 0..self.rounds * 4 {
            let mut command = self.quipu(&home, &["--validate"]);
            command.arg(&path);
            walls.push(command::run(command)?.wall * 1e3);
        }
        let wall = median(walls);
        table.row(
            &format!("check a file of {CHECKED} steps"),
            &format!("{wall:.1} ms"),
            &format!("{CHECK:.0} ms"),
            wall / CHECK,
            Goal::AtMost(1.0),
        );
        Ok(())
    }

    /// From the start of the program until a step runs that did not run before.
    fn resume(&self, table: &mut Table) -> Result<()> {
        // Each pass is two events.
        let states = looped(EVENTS / 2, "last")
            + "  last: {type: command, command: \"test -e go && date +%s%N > began\", on_success: done}\n";
        let workflow = self.workflow("resume", &states)?;
        let mut seconds = Vec::new();
        for round in 0..self.rounds.min(3) {
            now(&format!("resume, round {}", round + 1));
            let home = self.home("resume-home")?;
            let (go, began) = (self.root.join("go"), self.root.join("began"));
            for file in [&go, &began] {
                if file.exists() {
                    fs::remove_file(file)?;
                }
            }
            let mut command = self.quipu(&home, &["--quiet"]);
            command.arg(&workflow);
            command::run_into(command, None, &|code| code != 0)?;
            put(&go, b"")?;
            let from = SystemClock.now().as_nanosecond();
            command::run(self.quipu(&home, &["--quiet", "--resume", "last"]))?;
            let until: i128 = fs::read_to_string(&began)?.trim().parse()?;
            seconds.push((until - from) as f64 / 1e9);
        }
        let wall = median(seconds);
        table.row(
            &format!("resume of {EVENTS} events, until a new step runs"),
            &format!("{wall:.2} s"),
            "1 s",
            wall,
            Goal::AtMost(1.0),
        );
        Ok(())
    }
}

/// States of a loop that sets a value for each item, and then goes on.
fn looped(items: usize, then: &str) -> String {
    format!(
        "  initial: list\n  list: {{type: command, command: \"seq -s , {items}\", on_success: each}}\n  each: {{type: for_each, items: '{{{{.states.list.Output}}}}', body: [note], max_iterations: {items}, on_complete: {then}}}\n  note: {{type: set, values: {{v: '{{{{.loop.Item}}}}'}}}}\n  done: {{type: terminal, status: success}}\n"
    )
}

/// Starts commands one after the other, as a step does: by the shell, with its output read.
fn commands(count: usize) -> Result<f64> {
    let began = Instant::now();
    for _ in 0..count {
        let output = Command::new("/bin/sh")
            .args(["-c", "true"])
            .stdin(Stdio::null())
            .output()?;
        ensure!(output.status.success(), "`true` failed");
    }
    Ok(began.elapsed().as_secs_f64())
}
