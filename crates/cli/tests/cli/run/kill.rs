//! Runs that are ended from outside, in the middle of a step of every kind, and disks that take no more.

use std::fmt::Write as _;
use std::process::{Child, Stdio};

use rustix::process::{Pid, Signal, kill_process, kill_process_group};
use serde_json::Value;

use super::{Project, claude_says, serve, until, wait};

/// Says that it is there, waits until it may go on, and does so at once when it is run again.
const HOLD: &str = "echo $$ > pid; touch begun; while [ ! -e go ]; do sleep 0.05; done";

fn started(project: &Project, args: &[&str]) -> Child {
    project
        .command(args)
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

fn pid(project: &Project, file: &str) -> Option<Pid> {
    Pid::from_raw(project.read(file).trim().parse().ok()?)
}

/// Whether a process is still there and has not ended.
fn lives(pid: Pid) -> bool {
    let stat =
        std::fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_nonzero())).unwrap_or_default();
    !stat.is_empty() && !stat.contains(") Z ")
}

/// How often each line is in the log of the commands.
fn twice(log: &str) -> Vec<&str> {
    let mut lines: Vec<&str> = log.lines().collect();
    lines.sort_unstable();
    lines
        .windows(2)
        .filter(|pair| pair[0] == pair[1])
        .map(|pair| pair[0])
        .collect()
}

fn ends(project: &Project) -> Vec<String> {
    let (_, events) = project.only_run();
    let of_run = events
        .iter()
        .filter(|event| event["type"] == "run.completed");
    of_run
        .map(|event| event["payload"]["result"]["status"].to_string())
        .collect()
}

/// Kills a run when `is_under_way`, then goes on with it: all of `log` is done, each line once.
fn killed_and_resumed(
    what: &str,
    project: &Project,
    steps: &str,
    mut is_under_way: impl FnMut() -> bool,
    log: &[&str],
) {
    let text = format!(
        "name: killed\nstates:\n  initial: before\n  before: {{type: command, command: 'echo before >> log', on_success: work}}\n{steps}\n  after: {{type: command, command: 'echo after >> log', on_success: done}}\n  done: {{type: terminal, status: success}}\n"
    );
    project.file("killed.yaml", &text);
    let mut run = started(project, &["run", "killed.yaml", "--quiet"]);
    until(&format!("{what} is under way"), &mut is_under_way);
    run.kill().unwrap();
    run.wait().unwrap();
    // What the run had started goes on without it; a machine that loses its power would have ended it as well.
    if let Some(group) = pid(project, "pid") {
        kill_process_group(group, Signal::KILL).ok();
        until("its process ends", || !lives(group));
    }
    let (id, before) = project.only_run();
    project.file("go", "");
    let resumed = project.quipu(&["run", "--resume", "last", "--quiet"]);
    assert_eq!(resumed.code, 0, "{what}: {}", resumed.stderr);
    let (same, events) = project.only_run();
    assert_eq!(same, id, "{what}: the same run in the same file");
    let kept = before.iter().zip(&events).all(|(old, new)| old == new);
    assert!(kept, "{what}: what was there stays");
    let done = project.read("log");
    assert_eq!(
        twice(&done),
        Vec::<&str>::new(),
        "{what}: nothing that completed runs twice"
    );
    let mut lines: Vec<&str> = done.lines().collect();
    let mut expected = [&["before", "after"], log].concat();
    lines.sort_unstable();
    expected.sort_unstable();
    assert_eq!(lines, expected, "{what}");
    let count = |kind: &str| events.iter().filter(|event| event["type"] == kind).count();
    assert_eq!(
        (count("run.started"), count("run.completed")),
        (2, 2),
        "{what}: each execution begins and ends"
    );
    assert_eq!(
        events.last().unwrap()["payload"]["result"]["status"],
        "succeeded",
        "{what}"
    );
    project.verified(what);
}

fn with_begun(project: &Project) -> impl FnMut() -> bool + '_ {
    || project.root().join("begun").exists()
}

/// Whether the transcript of the run has an event of this type at this path.
fn has(project: &Project, kind: &str, path: &str) -> bool {
    let texts = project
        .transcripts()
        .into_iter()
        .filter_map(|file| std::fs::read_to_string(file).ok());
    let lines: Vec<String> = texts
        .flat_map(|text| text.lines().map(str::to_owned).collect::<Vec<_>>())
        .collect();
    lines
        .iter()
        .filter_map(|line| serde_json::from_str::<Value>(line).ok())
        .any(|event| event["type"] == kind && event["path"] == path)
}

#[test]
fn a_run_that_is_killed_in_a_command_goes_on() {
    let project = Project::empty();
    let steps = format!(
        "  work: {{type: command, command: '{HOLD}; echo work >> log', on_success: after}}"
    );
    killed_and_resumed("command", &project, &steps, with_begun(&project), &["work"]);
}

#[test]
fn a_run_that_is_killed_while_an_agent_answers_goes_on() {
    let project = Project::empty();
    let answer = project.env.file("bin/answer", claude_says("Done."));
    project.program(
        "claude",
        &format!("#!/bin/sh\nhead -2 '{answer}'\n{HOLD}\necho work >> log\ntail -1 '{answer}'\n"),
    );
    let steps = "  work: {type: agent, provider: claude, prompt: Go, on_success: after}";
    let is_under_way =
        || project.root().join("begun").exists() && has(&project, "message.assistant", "work");
    killed_and_resumed("agent", &project, steps, is_under_way, &["work"]);
    let (_, events) = project.only_run();
    let said = events
        .iter()
        .filter(|event| event["type"] == "message.assistant" && event["as"].is_null());
    let attempts: Vec<u64> = said
        .map(|event| event["attempt"].as_u64().unwrap_or(1))
        .collect();
    assert_eq!(
        attempts,
        [1, 2],
        "what the agent said before it was killed stays"
    );
}

#[test]
fn a_run_that_is_killed_in_a_branch_goes_on_without_the_branches_that_ended() {
    let project = Project::empty();
    let steps = format!(
        "  work: {{type: parallel, parallel: [quick, slow], on_success: after}}\n  quick: {{type: command, command: 'echo quick >> log'}}\n  slow: {{type: command, command: '{HOLD}; echo slow >> log'}}"
    );
    let is_under_way =
        || project.root().join("begun").exists() && has(&project, "step.completed", "work.quick");
    killed_and_resumed(
        "parallel",
        &project,
        &steps,
        is_under_way,
        &["quick", "slow"],
    );
}

#[test]
fn a_run_that_is_killed_in_a_pass_goes_on_with_that_pass() {
    let project = Project::empty();
    let steps = format!(
        "  work: {{type: for_each, items: 'a,b,c', body: [item], on_complete: after}}\n  item: {{type: command, command: 'if [ {{{{.loop.Item}}}} = b ]; then {HOLD}; fi; echo {{{{.loop.Item}}}} >> log'}}"
    );
    killed_and_resumed(
        "for_each",
        &project,
        &steps,
        with_begun(&project),
        &["a", "b", "c"],
    );
}

#[test]
fn a_run_that_is_killed_in_a_while_loop_goes_on_with_that_pass() {
    let project = Project::empty();
    let steps = format!(
        "  work: {{type: while, while: \"states.count.Output != 'xxx'\", body: [count], on_complete: after}}\n  count: {{type: command, command: 'if [ -s grown ]; then {HOLD}; fi; echo pass {{{{.loop.Index}}}} >> log; printf x >> grown; cat grown'}}"
    );
    killed_and_resumed(
        "while",
        &project,
        &steps,
        with_begun(&project),
        &["pass 0", "pass 1", "pass 2"],
    );
}

#[test]
fn a_run_that_is_killed_in_a_called_workflow_goes_on_inside_of_it() {
    let project = Project::empty();
    let child = format!(
        "name: child\nstates:\n  initial: one\n  one: {{type: command, command: 'echo one >> log', on_success: two}}\n  two: {{type: command, command: '{HOLD}; echo two >> log', on_success: done}}\n  done: {{type: terminal, status: success}}\n"
    );
    project.file("child.yaml", &child);
    let steps = "  work: {type: call_workflow, workflow: child.yaml, on_success: after}";
    killed_and_resumed(
        "call_workflow",
        &project,
        steps,
        with_begun(&project),
        &["one", "two"],
    );
    assert_eq!(
        project.transcripts().len(),
        2,
        "the called run keeps its file"
    );
}

#[test]
fn a_run_that_is_killed_while_it_waits_goes_on() {
    let project = Project::empty();
    let steps = "  work: {type: wait, duration: 700ms, on_success: after}";
    killed_and_resumed(
        "wait",
        &project,
        steps,
        || has(&project, "step.started", "work"),
        &[],
    );
}

#[test]
fn a_run_that_is_killed_in_an_operation_goes_on() {
    let project = Project::empty();
    let root = project.root().to_owned();
    let url = serve(move |_, _| {
        std::fs::write(root.join("begun"), "").unwrap();
        until("the answer may be given", || root.join("go").exists());
        ("text/plain", "hello".to_owned())
    });
    let steps = format!(
        "  work: {{type: operation, operation: http.request, inputs: {{url: '{url}'}}, on_success: after}}"
    );
    killed_and_resumed("operation", &project, &steps, with_begun(&project), &[]);
}

#[test]
fn a_run_that_waits_for_an_approval_goes_on_when_it_is_given_and_repeats_nothing() {
    let project = Project::empty();
    project.file(
        "gate.yaml",
        "name: gate\nstates:\n  initial: before\n  before: {type: command, command: 'echo before >> log', on_success: gate}\n  gate: {type: approval, message: 'Go on?', on_success: after}\n  after: {type: command, command: 'echo after >> log', on_success: done}\n  done: {type: terminal, status: success}\n",
    );
    let paused = project.quipu(&["run", "gate.yaml"]);
    assert_eq!(paused.code, 1, "{}", paused.stderr);
    let token = paused
        .stderr
        .split("--approve ")
        .nth(1)
        .unwrap()
        .split('`')
        .next()
        .unwrap()
        .to_owned();
    let wrong = project.quipu(&["run", "--resume", "last", "--approve", "0123"]);
    assert_eq!(
        wrong.code, 3,
        "a token that nobody gave out approves nothing: {}",
        wrong.stderr
    );
    assert!(
        wrong
            .stderr
            .contains("does not wait for an answer to this token")
    );
    assert_eq!(project.read("log"), "before\n");
    let done = project.quipu(&[
        "run",
        "--resume",
        "last",
        "--approve",
        token.trim_end_matches(','),
    ]);
    assert_eq!(done.code, 0, "{}", done.stderr);
    assert_eq!(project.read("log"), "before\nafter\n");
    assert_eq!(ends(&project).last().unwrap(), "\"succeeded\"");
    project.verified("approval");
}

/// A run in a command that started another process, both of which end only when they are made to, or when asked.
fn in_a_command(project: &Project, stubborn: bool) -> Child {
    let trap = if stubborn {
        "trap \"\" INT TERM HUP; "
    } else {
        ""
    };
    project.file(
        "slow.yaml",
        &format!(
            "name: slow\nstates:\n  initial: work\n  work: {{type: command, command: '{trap}sleep 30 & echo $! > below; echo $$ > pid; touch begun; wait; sleep 30', on_success: after}}\n  after: {{type: command, command: 'touch after', on_success: done}}\n  done: {{type: terminal, status: success}}\n"
        ),
    );
    let run = started(project, &["run", "slow.yaml"]);
    until("the command runs", || project.root().join("begun").exists());
    run
}

fn send(run: &Child, signal: Signal) {
    kill_process(Pid::from_child(run), signal).unwrap();
}

#[test]
fn a_signal_cancels_the_run_ends_what_it_started_and_the_transcript_says_so() {
    for signal in [Signal::INT, Signal::TERM] {
        let project = Project::empty();
        let mut run = in_a_command(&project, false);
        send(&run, signal);
        assert_eq!(wait(&mut run), 130, "{signal:?}");
        for file in ["pid", "below"] {
            let pid = pid(&project, file).unwrap();
            until("all that the run started has ended", || !lives(pid));
        }
        assert_eq!(ends(&project), ["\"cancelled\""], "{signal:?}");
        let (_, events) = project.only_run();
        let end = events
            .iter()
            .find(|event| event["type"] == "step.completed" && event["path"] == "work")
            .unwrap();
        assert_eq!(end["payload"]["result"]["status"], "cancelled", "{end}");
        assert!(!project.root().join("after").exists());
        let audit = std::fs::read_to_string(project.env.path("audit.jsonl")).unwrap();
        let last: Value = serde_json::from_str(audit.lines().last().unwrap()).unwrap();
        assert_eq!(
            (audit.lines().count(), last["exit_code"].as_i64()),
            (2, Some(130)),
            "{audit}"
        );
        project.verified("cancelled");
    }
}

#[test]
fn a_second_signal_kills_at_once_and_leaves_nothing_running() {
    let project = Project::empty();
    let mut run = in_a_command(&project, true);
    let stderr = run.stderr.take().unwrap();
    let mut lines = std::io::BufRead::lines(std::io::BufReader::new(stderr)).map_while(Result::ok);
    send(&run, Signal::INT);
    assert!(lines.any(|line| line.contains("once more to kill")));
    send(&run, Signal::INT);
    let began = std::time::Instant::now();
    assert_eq!(wait(&mut run), 130);
    assert!(
        began.elapsed() < std::time::Duration::from_millis(1500),
        "it did not wait: {:?}",
        began.elapsed()
    );
    for file in ["pid", "below"] {
        let pid = pid(&project, file).unwrap();
        until("all that the run started has ended", || !lives(pid));
    }
    project.verified("killed by a second signal");
    assert!(!project.root().join("after").exists());
}

/// Commands that leave a file each.
fn many(project: &Project, count: usize) {
    let mut text = String::from("name: many\nstates:\n  initial: s0\n");
    for n in 0..count {
        let next = if n + 1 == count {
            "done".to_owned()
        } else {
            format!("s{}", n + 1)
        };
        writeln!(
            text,
            "  s{n}: {{type: command, command: 'mkdir -p made-{n}', on_success: {next}}}"
        )
        .unwrap();
    }
    project.file(
        "many.yaml",
        &(text + "  done: {type: terminal, status: success}\n"),
    );
}

fn made(project: &Project) -> usize {
    let entries = std::fs::read_dir(project.root()).unwrap();
    entries
        .filter(|entry| {
            entry
                .as_ref()
                .unwrap()
                .file_name()
                .to_str()
                .unwrap()
                .starts_with("made-")
        })
        .count()
}

#[test]
fn a_disk_that_takes_no_more_stops_the_run_before_the_next_effect_and_a_resume_goes_on() {
    let project = Project::empty();
    many(&project, 20);
    // A limit on the size of files is the disk that is full: 4,096 bytes are a few steps.
    let full = project.shell("trap '' XFSZ; ulimit -f 8; exec quipu run many.yaml");
    assert_eq!(full.code, 4, "{}", full.stderr);
    assert!(full.stderr.contains("--unrecorded"), "{}", full.stderr);
    let after_full = made(&project);
    assert!(after_full < 20, "{after_full}");
    let (_, events) = project.only_run();
    let begun = events
        .iter()
        .filter(|event| event["type"] == "step.started")
        .count();
    assert!(
        after_full <= begun,
        "{after_full} steps had an effect, {begun} are on the record"
    );
    // The step whose end could not be written down runs again: a command that may run twice is made for that.
    let resumed = project.quipu(&["run", "--resume", "last"]);
    assert_eq!(
        (resumed.code, made(&project)),
        (0, 20),
        "{}",
        resumed.stderr
    );
    project.verified("full disk");
}

#[test]
fn a_run_that_may_go_on_unrecorded_does_all_of_it_on_a_full_disk() {
    let project = Project::empty();
    many(&project, 20);
    let full = project.shell("trap '' XFSZ; ulimit -f 8; exec quipu run many.yaml --unrecorded");
    assert_eq!(full.code, 0, "{}", full.stderr);
    assert_eq!(made(&project), 20);
    project.verified("what was recorded before");
}

#[test]
fn a_place_that_cannot_hold_transcripts_stops_the_run_before_anything_happens() {
    let project = Project::empty();
    many(&project, 2);
    project
        .env
        .file("transcripts", "a file, where a directory has to be");
    let refused = project.quipu(&["run", "many.yaml"]);
    assert_eq!((refused.code, made(&project)), (4, 0), "{}", refused.stderr);
    let unrecorded = project.quipu(&["run", "many.yaml", "--unrecorded"]);
    assert_eq!(
        (unrecorded.code, made(&project)),
        (0, 2),
        "{}",
        unrecorded.stderr
    );
}

#[test]
fn a_run_that_is_killed_in_its_first_step_goes_on() {
    let project = Project::empty();
    project.file(
        "first.yaml",
        &format!("name: first\nstates:\n  initial: work\n  work: {{type: command, command: '{HOLD}; echo work >> log', on_success: done}}\n  done: {{type: terminal, status: success}}\n"),
    );
    let mut run = started(&project, &["run", "first.yaml"]);
    until("the first step is under way", with_begun(&project));
    run.kill().unwrap();
    run.wait().unwrap();
    kill_process_group(pid(&project, "pid").unwrap(), Signal::KILL).ok();
    project.file("go", "");
    let resumed = project.quipu(&["run", "--resume", "last"]);
    assert_eq!(
        (resumed.code, project.read("log").as_str()),
        (0, "work\n"),
        "{}",
        resumed.stderr
    );
    project.only_run();
    project.verified("killed in the first step");
}
