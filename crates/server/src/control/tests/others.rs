//! Runs of other processes.

use std::process::{Child, Command, Stdio};

use quipu_flow::definition::load::load;
use quipu_flow::definition::places::Places;
use quipu_flow::engine::{Engine, EngineOptions};
use serde_json::json;
use tokio_util::sync::CancellationToken;

use super::{Lab, is_alive, within};

const SLEEP: &str = r#"
states:
  initial: sleep
  sleep: {type: command, command: "echo $$ > pid; sleep 300", on_success: done}
  done: {type: terminal, status: success}
"#;

const HOME: &str = "QUIPU_TEST_OTHER_HOME";
const WORK: &str = "QUIPU_TEST_OTHER_WORK";

/// What `quipu run` does: runs a workflow, and cancels it when it is asked to end. Only as a process of its own; else it does
/// nothing.
#[test]
fn run_as_another_process() {
    let (Some(home), Some(work)) = (std::env::var_os(HOME), std::env::var_os(WORK)) else {
        return;
    };
    let (home, work) = (
        std::path::PathBuf::from(home),
        std::path::PathBuf::from(work),
    );
    let places = Places::from_lookup(&work, |_| None);
    let file = places.find("sleep").unwrap();
    let workflow = load(&file, &places).unwrap().workflow;
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        use tokio::signal::unix::{SignalKind, signal};
        let mut asked = signal(SignalKind::terminate()).unwrap();
        let cancel = CancellationToken::new();
        let end = cancel.clone();
        tokio::spawn(async move {
            asked.recv().await;
            end.cancel();
        });
        let mut options = EngineOptions::new(&home, &work, places);
        options.user = "grace".to_owned();
        let engine = Engine::new(options);
        engine
            .run(workflow.into(), indexmap::IndexMap::default(), &cancel)
            .await
            .unwrap();
    });
}

/// Starts this program again, as one that runs a workflow or as one that does something else.
struct Other(Child);

impl Other {
    fn start(lab: &Lab, word: &str) -> Self {
        let own = std::env::current_exe().unwrap();
        let child = Command::new(own)
            .args([
                word,
                "control::tests::others::run_as_another_process",
                "--exact",
            ])
            .env(HOME, lab.served.home())
            .env(WORK, lab.work.path())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        Self(child)
    }
}

impl Drop for Other {
    fn drop(&mut self) {
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

/// The id of the only run that is listed.
fn only(lab: &Lab) -> String {
    let mut id = None;
    assert!(within(|| {
        let list = lab.served.get("/api/v1/executions?status=running").json();
        id = list["items"][0]["id"].as_str().map(str::to_owned);
        id.is_some() && !lab.read("pid").trim().is_empty()
    }));
    id.unwrap()
}

#[test]
fn a_run_of_another_process_is_seen_and_really_stops() {
    let lab = Lab::new(&[("sleep", SLEEP)]);
    let mut other = Other::start(&lab, "run");
    let id = only(&lab);
    let seen = lab.see(&id);
    assert_eq!(
        (&seen["status"], &seen["here"]),
        (&json!("running"), &json!(false))
    );
    assert_eq!(
        (&seen["started_by"], &seen["steps"][0]["path"]),
        (&json!("grace"), &json!("sleep"))
    );
    assert_eq!(seen["pid"], other.0.id());
    for (what, body) in [("resume", json!({})), ("answer", json!({"text": "x"}))] {
        let answer = lab.act("", &id, what, &body);
        assert_eq!(answer.status, 409, "{}", answer.text());
        assert!(
            answer.text().contains(&other.0.id().to_string()),
            "{}",
            answer.text()
        );
    }
    let sleeping = lab.read("pid").trim().parse().unwrap();
    assert!(is_alive(sleeping));
    let answer = lab.act("", &id, "cancel", &json!({}));
    assert_eq!(
        (answer.status, answer.json()["status"].as_str()),
        (200, Some("cancelled")),
        "{}",
        answer.text()
    );
    assert!(!is_alive(sleeping));
    assert!(other.0.wait().unwrap().success());
}

#[test]
fn a_process_that_is_not_provably_a_run_is_not_signalled() {
    let lab = Lab::new(&[("sleep", SLEEP)]);
    let mut other = Other::start(&lab, "serve");
    let id = only(&lab);
    let answer = lab.act("", &id, "cancel", &json!({}));
    assert_eq!(answer.status, 409, "{}", answer.text());
    assert!(
        answer.text().contains(&format!("process {}", other.0.id())),
        "{}",
        answer.text()
    );
    assert!(other.0.try_wait().unwrap().is_none());
    // When it dies, the run is lost.
    let sleeping: i32 = lab.read("pid").trim().parse().unwrap();
    other.0.kill().unwrap();
    other.0.wait().unwrap();
    assert!(within(|| lab.see(&id)["status"] == "lost"));
    // What is lost can be cancelled: nobody is left to be asked.
    let answer = lab.act("", &id, "cancel", &json!({}));
    assert_eq!(
        (answer.status, answer.json()["status"].as_str()),
        (200, Some("cancelled")),
        "{}",
        answer.text()
    );
    let pid = rustix::process::Pid::from_raw(sleeping).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::KILL).ok();
}
