//! A run that is cancelled has ended.

use serde_json::{Value, json};

use super::{Lab, is_alive, within};

/// A shell, a child of it, a child that left its group, and a grandchild whose parent has ended.
const SLEEPS: &str = r"
states:
  initial: sleep
  sleep:
    type: command
    command: |
      echo $$ > pids
      sleep 300 & echo $! >> pids
      setsid sleep 300 & echo $! >> pids
      (setsid sh -c 'echo $$ >> pids; exec sleep 300' &)
      touch started
      wait
    on_success: done
  done: {type: terminal, status: success}
";

fn pids(lab: &Lab) -> Vec<u32> {
    assert!(within(
        || lab.read("pids").lines().count() == 4 && lab.work.path().join("started").exists()
    ));
    let text = lab.read("pids");
    text.lines().map(|line| line.parse().unwrap()).collect()
}

#[test]
fn everything_that_a_run_started_is_gone_when_it_is_cancelled() {
    let lab = Lab::new(&[("sleeps", SLEEPS)]);
    let id = lab.start(&json!({"workflow": "sleeps"}));
    let pids = pids(&lab);
    assert!(pids.iter().all(|pid| is_alive(*pid)), "{pids:?}");
    let running = lab.see(&id);
    assert_eq!(
        (&running["status"], &running["steps"][0]["path"]),
        (&json!("running"), &json!("sleep"))
    );
    let answer = lab.act("", &id, "cancel", &json!({}));
    let left: Vec<&u32> = pids.iter().filter(|pid| is_alive(**pid)).collect();
    assert_eq!(answer.status, 200, "{}", answer.text());
    assert!(left.is_empty(), "{left:?} of {pids:?} are left");
    assert_eq!(answer.json()["status"], "cancelled");
    assert_eq!(answer.json()["steps"], json!([]));
    let last = lab.transcript(&id);
    assert!(
        last.lines()
            .last()
            .unwrap()
            .contains("\"status\":\"cancelled\""),
        "{last}"
    );
    // Once more is fine, and changes nothing.
    let again = lab.act("", &id, "cancel", &json!({}));
    assert_eq!(
        (again.status, again.json()["status"].as_str()),
        (200, Some("cancelled"))
    );
    assert_eq!(lab.transcript(&id), last);
}

#[test]
fn who_does_not_want_to_wait_is_told_that_the_run_still_ends() {
    let stubborn = r#"
states:
  initial: sleep
  sleep: {type: command, command: "trap '' TERM; touch started; sleep 300 & wait; wait; sleep 300", on_success: done}
  done: {type: terminal, status: success}
"#;
    let lab = Lab::new(&[("stubborn", stubborn)]);
    let id = lab.start(&json!({"workflow": "stubborn"}));
    assert!(within(|| lab.work.path().join("started").exists()));
    let path = format!("/api/v1/executions/{id}/cancel");
    let answer = lab.post(&format!("{path}?wait=0"), &json!({}));
    assert_eq!(
        (answer.status, answer.json()["status"].as_str()),
        (202, Some("running"))
    );
    let answer = lab.post(&path, &json!({}));
    assert_eq!(
        (answer.status, answer.json()["status"].as_str()),
        (200, Some("cancelled"))
    );
    assert_eq!(lab.post(&format!("{path}?wait=61"), &json!({})).status, 400);
}

#[test]
fn as_many_run_at_once_as_are_allowed() {
    let lab = Lab::with(&[("sleeps", SLEEPS)], |_| {}, |options| options.runs = 1);
    let id = lab.start(&json!({"workflow": "sleeps"}));
    let more = lab.post("/api/v1/executions", &json!({"workflow": "sleeps"}));
    assert_eq!(
        (more.status, more.json()["type"].as_str()),
        (429, Some("too_many_runs"))
    );
    assert!(more.header("retry-after").is_some());
    assert_eq!(lab.act("", &id, "resume", &json!({})).status, 409);
    assert_eq!(lab.act("", &id, "cancel", &json!({})).status, 200);
    let other = lab.start(&json!({"workflow": "sleeps"}));
    assert_eq!(lab.act("", &other, "cancel", &json!({})).status, 200);
}

#[test]
fn the_end_of_the_server_cancels_its_runs_and_records_it() {
    let lab = Lab::new(&[("sleeps", SLEEPS)]);
    let id = lab.start(&json!({"workflow": "sleeps"}));
    let pids = pids(&lab);
    lab.served.app.ending().cancel();
    let ended = within(|| {
        let events = lab.transcript(&id);
        events
            .lines()
            .last()
            .unwrap()
            .contains("\"status\":\"cancelled\"")
    });
    assert!(ended, "{}", lab.transcript(&id));
    assert!(!pids.iter().any(|pid| is_alive(*pid)), "{pids:?}");
}

const WAITS: &str = r#"
inputs:
  - {name: SECRET_key, type: string}
states:
  initial: ask
  ask: {type: approval, message: "Go on?", on_success: done}
  done: {type: terminal, status: success}
"#;

/// Starts a run that waits, with a secret that the transcript does not have.
fn waiting(lab: &Lab) -> String {
    let inputs = json!({"SECRET_key": "abcdef-123456"});
    let id = lab.start(&json!({"workflow": "waits", "inputs": inputs}));
    lab.until_is(&id, "paused");
    assert!(!lab.transcript(&id).contains("abcdef-123456"));
    id
}

fn is_cancelled(lab: &Lab, id: &str) {
    let answer = lab.act("", id, "cancel", &json!({}));
    assert_eq!(
        (answer.status, answer.json()["status"].as_str()),
        (200, Some("cancelled")),
        "{}",
        answer.text()
    );
    let outcome = &answer.json()["outcome"];
    assert_eq!(
        (&outcome["exit_code"], &outcome["error"]),
        (&json!(130), &json!("cancelled"))
    );
    let text = lab.transcript(id);
    let last: Value = serde_json::from_str(text.lines().last().unwrap()).unwrap();
    assert!(last.to_string().contains("cancelled"), "{last}");
    let again = lab.act("", id, "cancel", &json!({}));
    assert_eq!((again.status, lab.transcript(id)), (200, text));
}

#[test]
fn a_run_that_waits_is_cancelled_whatever_became_of_its_workflow() {
    let lab = Lab::new(&[("waits", WAITS)]);
    let id = waiting(&lab);
    is_cancelled(&lab, &id);
    let second = waiting(&lab);
    let third = waiting(&lab);
    let file = lab.work.path().join(".quipu/workflows/waits.yaml");
    super::put(&file, "states: [broken");
    is_cancelled(&lab, &second);
    std::fs::remove_file(file).unwrap();
    is_cancelled(&lab, &third);
    // It is not asked any more.
    let answer = lab.act("", &third, "approve", &json!({"token": "x"}));
    assert_eq!(answer.status, 409, "{}", answer.text());
}

#[test]
fn a_run_that_was_lost_is_recorded_as_cancelled() {
    let lab = Lab::new(&[("waits", WAITS)]);
    let id = waiting(&lab);
    // As a process leaves it that was killed in the middle of a line.
    let text = lab.transcript(&id);
    let end = text.trim_end().rfind('\n').unwrap();
    let run = quipu_model::RunId::new(&id).unwrap();
    let path = quipu_record::Storage::at(lab.served.home()).path_of(&run);
    super::put(&path, &text[..end + 20]);
    assert_eq!(lab.see(&id)["status"], "lost");
    is_cancelled(&lab, &id);
}

#[test]
fn flow_studio_cancels_runs_of_this_server() {
    let lab = Lab::new(&[("sleeps", SLEEPS), ("waits", WAITS)]);
    let cancel = |id: &str| lab.post(&format!("/api/runs/{id}/cancel"), &json!({}));
    let id = lab.start(&json!({"workflow": "sleeps"}));
    let pids = pids(&lab);
    for id in [id, waiting(&lab)] {
        let answer = cancel(&id);
        assert_eq!(
            (answer.status, answer.json()),
            (200, json!({"status": "cancelled", "run_id": id}))
        );
        assert_eq!(lab.see(&id)["status"], "cancelled");
        assert_eq!(cancel(&id).status, 404, "it is over");
        let row = lab.served.get(&format!("/api/runs/{id}")).json();
        assert_eq!(row["status"], "canceled", "{row}");
    }
    assert!(!pids.iter().any(|pid| is_alive(*pid)), "{pids:?}");
}
