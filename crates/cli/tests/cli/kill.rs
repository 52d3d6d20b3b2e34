//! Kill -9 at random instants while eight threads record and child runs open and close.
//!
//! The victim is this test binary, run again with a directory in its environment. It says on its
//! standard output what it was told is on disk; whatever it said must be there afterwards.

use std::collections::HashMap;
use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use quipu_exchange::{Fault, Item, Reader};
use quipu_model::{Block, Body, Content, Draft, Fidelity, Json, Place, RunId, Step};
use quipu_record::{Durability, Recorder, RecorderOptions, Storage};

use super::env::TestEnv;

const DIRECTORY: &str = "QUIPU_TEST_KILL_DIRECTORY";
const ROUNDS: &str = "QUIPU_TEST_KILL_ROUNDS";
const THREADS: u64 = 8;

#[derive(Default)]
struct Summary {
    files: u64,
    events: u64,
    acknowledged: u64,
    torn: u64,
}

#[test]
fn killed_at_random_instants() {
    let rounds = std::env::var(ROUNDS)
        .ok()
        .and_then(|n| n.parse().ok())
        .unwrap_or(500);
    let mut random = Random::seeded();
    let mut summary = Summary::default();
    let began = Instant::now();
    for round in 0..rounds {
        let seed = random.0;
        let env = TestEnv::new();
        let acknowledged = run_and_kill(env.dir.path(), round, &mut random);
        inspect(&env, &acknowledged, &mut summary)
            .unwrap_or_else(|wrong| panic!("round {round}, seed {seed:#x}: {wrong}"));
    }
    let Summary {
        files,
        events,
        acknowledged,
        torn,
    } = summary;
    eprintln!(
        "killed {rounds} times in {:.0} s: {files} files, {events} events, {acknowledged} of them \
         acknowledged and all there, {torn} torn tails, every file 1..n, repaired and clean",
        began.elapsed().as_secs_f64()
    );
    assert!(
        events > 0 && acknowledged > 0 && torn > 0,
        "the test must have something to test"
    );
}

/// Starts a victim, lets it work for a while, kills it; gives the last acknowledged event per run.
fn run_and_kill(directory: &Path, round: u64, random: &mut Random) -> HashMap<String, u64> {
    let mut victim = Command::new(std::env::current_exe().unwrap())
        .args([
            "--exact",
            "cli::kill::victim",
            "--nocapture",
            "--test-threads=1",
        ])
        .env(DIRECTORY, directory)
        .env(ROUNDS, round.to_string())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let stdout = BufReader::new(victim.stdout.take().unwrap());
    let (started, wait) = std::sync::mpsc::sync_channel(1);
    let listen = std::thread::spawn(move || {
        let mut acknowledged = HashMap::new();
        for line in stdout.lines().map_while(Result::ok) {
            let Some(("ack", said)) = line.split_once(' ') else {
                continue;
            };
            let (run, seq) = said.split_once(' ').unwrap();
            let last = acknowledged.entry(run.to_owned()).or_insert(0);
            *last = seq.parse::<u64>().unwrap().max(*last);
            started.try_send(()).ok();
        }
        acknowledged
    });
    wait.recv_timeout(Duration::from_secs(20))
        .expect("the victim starts to record");
    std::thread::sleep(Duration::from_micros(random.below(25_000)));
    victim.kill().unwrap();
    victim.wait().unwrap();
    listen.join().unwrap()
}

fn inspect(
    env: &TestEnv,
    acknowledged: &HashMap<String, u64>,
    summary: &mut Summary,
) -> Result<(), String> {
    let mut files = Vec::new();
    for entry in fs::read_dir(env.path("transcripts")).unwrap() {
        let path = entry.unwrap().path();
        if path
            .extension()
            .is_none_or(|extension| extension != "jsonl")
        {
            continue;
        }
        let (last, torn) = read(&path)?;
        let id = path.file_stem().unwrap().to_str().unwrap();
        let promised = acknowledged.get(id).copied().unwrap_or(0);
        if promised > last {
            return Err(format!(
                "{id}: event {promised} was acknowledged, the last is {last}"
            ));
        }
        summary.files += 1;
        summary.events += last;
        summary.acknowledged += promised;
        summary.torn += torn;
        files.push(path.to_str().unwrap().to_owned());
    }
    if let Some(run) = acknowledged.keys().find(|run| !env.run_path(run).exists()) {
        return Err(format!("run {run} was acknowledged and is not there"));
    }
    for command in ["repair", "verify"] {
        let mut args = vec![command];
        args.extend(files.iter().map(String::as_str));
        let ran = env.run(&args);
        if ran.code != 0 {
            return Err(format!("quipu {command}: {}{}", ran.stdout, ran.stderr));
        }
    }
    Ok(())
}

/// The last event of a file whose lines are the events 1 to n, and whether its tail is torn.
fn read(path: &Path) -> Result<(u64, u64), String> {
    let mut reader = Reader::new(fs::File::open(path).unwrap());
    let (mut last, mut torn) = (0, 0);
    while let Some(item) = reader.next().unwrap() {
        match item {
            Item::Event(found) if torn == 0 && found.scan.seq == last + 1 => last += 1,
            Item::Event(found) => {
                return Err(format!(
                    "{}: {} after {last}",
                    path.display(),
                    found.scan.seq
                ));
            }
            Item::Bad(bad) if bad.fault == Fault::Torn => torn += 1,
            Item::Bad(bad) => return Err(format!("{}: {}: {}", path.display(), bad.at, bad.fault)),
        }
    }
    Ok((last, torn))
}

/// What is killed. Does nothing unless it was started to be.
#[test]
fn victim() {
    let Some(directory) = std::env::var_os(DIRECTORY) else {
        return;
    };
    let round: u64 = std::env::var(ROUNDS).unwrap().parse().unwrap();
    let durability = match round % 3 {
        0 => Durability::None,
        1 => Durability::Group(Duration::from_millis(2)),
        _ => Durability::Each,
    };
    let options = RecorderOptions {
        durability,
        ..RecorderOptions::default()
    };
    let storage = Storage::at(Path::new(&directory));
    let recorder = storage
        .record(&RunId::new("root").unwrap(), options)
        .unwrap();
    let children = AtomicU64::new(0);
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let (recorder, children) = (&recorder, &children);
            scope.spawn(move || {
                // One thread does nothing but write large events: a kill in the middle of such a
                // write is what tears a line. They are made once, so that writing is all it does.
                let large = message(256 << 10);
                for n in 0.. {
                    if thread == 0 {
                        recorder.record(&large).unwrap();
                        std::thread::sleep(Duration::from_millis(1));
                        continue;
                    }
                    record(recorder);
                    if thread % 2 == 1 && n % 5 == 0 {
                        call(recorder, children.fetch_add(1, Ordering::Relaxed));
                    }
                }
            });
        }
    });
}

fn message(len: usize) -> Draft {
    let content = Some(Json::string(&"x".repeat(len)));
    let content = Content::ToolResult {
        id: "c".into(),
        content,
    };
    let block = Block {
        fidelity: Fidelity::Router,
        content,
    };
    Draft::new(Place::step("talk"), Body::UserMessage(vec![block]))
}

/// Records an event and says when it is on disk.
fn record(recorder: &Recorder) {
    let block = Block::text(Fidelity::AgentEmitted, "x".repeat(200));
    let draft = Draft::new(Place::step("talk"), Body::AssistantMessage(vec![block]));
    acknowledge(recorder, recorder.record(&draft).unwrap());
}

fn acknowledge(recorder: &Recorder, seq: u64) {
    recorder.wait_durable(seq).unwrap();
    let line = format!("ack {} {seq}\n", recorder.run_id());
    std::io::stdout().lock().write_all(line.as_bytes()).unwrap();
}

fn call(recorder: &Recorder, n: u64) {
    let child_run_id = RunId::new(&format!("child-{n}")).unwrap();
    let step = Step::new("sub", "call_workflow");
    let place = || Place::flat("sub", n);
    let child = recorder.child(&child_run_id).unwrap();
    let started = Body::CallStarted {
        child_run_id: child_run_id.clone(),
        step: step.clone(),
    };
    recorder.record(&Draft::new(place(), started)).unwrap();
    (0..4).for_each(|_| record(&child));
    child.close().unwrap();
    let end = step.succeeded(None);
    recorder
        .record(&Draft::new(
            place(),
            Body::CallCompleted { child_run_id, end },
        ))
        .unwrap();
}

/// Random enough to pick instants.
struct Random(u64);

impl Random {
    fn seeded() -> Self {
        let nanos = Instant::now().elapsed().as_nanos();
        let id = u64::from(std::process::id());
        Self(0x9e37_79b9_7f4a_7c15 ^ (id << 20) ^ u64::try_from(nanos).unwrap_or(1))
    }

    fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % bound
    }
}
