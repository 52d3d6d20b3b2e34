//! Approvals and questions.

use serde_json::{Value, json};

use super::{Lab, within};

const RELEASE: &str = r#"
states:
  initial: build
  build: {type: command, command: "echo built >> built.txt", on_success: ask}
  ask: {type: approval, message: "Release it?", not_starter: true, on_success: done, on_failure: no}
  done: {type: terminal, status: success, message: "{{.states.ask.Output}}"}
  no: {type: terminal, status: failure, message: "{{.states.ask.Error}}"}
"#;

#[test]
fn somebody_else_approves_what_the_starter_may_not() {
    let lab = Lab::new(&[("release", RELEASE)]);
    let id = lab.start_as("qk_ada", &json!({"workflow": "release"}));
    let paused = lab.until_is(&id, "paused");
    assert_eq!(paused["started_by"], "ada");
    assert_eq!(
        (&paused["pause"]["path"], &paused["pause"]["message"]),
        (&json!("ask"), &json!("Release it?"))
    );
    assert!(paused["outcome"].is_null(), "{paused}");
    let token = json!({"token": paused["pause"]["token"]});
    assert!(token["token"].is_string());
    // Whoever may not approve does not see what approves.
    let path = format!("/api/v1/executions/{id}");
    for seen in [
        lab.served.get(&path),
        lab.ask("qk_reader", "GET", &path, &json!({})),
    ] {
        assert_eq!(
            (&seen.json()["status"], &seen.json()["pause"]["token"]),
            (&json!("paused"), &Value::Null)
        );
    }
    assert_eq!(lab.act("qk_reader", &id, "approve", &token).status, 403);
    assert_eq!(
        lab.act("qk_bob", &id, "approve", &json!({"token": "guessed"}))
            .status,
        409
    );
    let own = lab.act("qk_ada", &id, "approve", &token);
    assert_eq!(own.status, 403, "{}", own.text());
    assert!(own.text().contains("ada started the run"), "{}", own.text());
    assert!(lab.transcript(&id).contains("approval_refused"));
    let still = lab.see(&id);
    assert_eq!(
        (&still["status"], &still["pause"]["token"]),
        (&json!("paused"), &token["token"])
    );
    let other = lab.act("qk_bob", &id, "approve", &token);
    assert_eq!(other.status, 202, "{}", other.text());
    let run = lab.until_is(&id, "succeeded");
    assert_eq!(run["outcome"]["message"], "approved by bob");
    assert_eq!(
        (&run["started_by"], lab.read("built.txt").as_str()),
        (&json!("ada"), "built\n")
    );
    assert_eq!(lab.act("qk_bob", &id, "approve", &token).status, 409);
}

#[test]
fn a_denial_fails_the_step() {
    let lab = Lab::new(&[("release", RELEASE)]);
    let id = lab.start_as("qk_ada", &json!({"workflow": "release"}));
    let token = lab.until_is(&id, "paused")["pause"]["token"].clone();
    let answer = lab.act("qk_bob", &id, "deny", &json!({"token": token}));
    assert_eq!(answer.status, 202, "{}", answer.text());
    let run = lab.until_is(&id, "failed");
    assert!(
        run["outcome"].to_string().contains("denied by bob"),
        "{run}"
    );
}

#[test]
fn only_who_is_named_approves() {
    let steps = RELEASE.replace("not_starter: true", "required_approver: bob");
    let lab = Lab::new(&[("release", &steps)]);
    let id = lab.start(&json!({"workflow": "release"}));
    let paused = lab.until_is(&id, "paused");
    assert_eq!(paused["pause"]["approvers"], json!(["bob"]));
    let token = json!({"token": paused["pause"]["token"]});
    for who in ["", "qk_ada"] {
        assert_eq!(lab.act(who, &id, "approve", &token).status, 403, "{who}");
    }
    let resume = json!({"approve": token["token"]});
    assert_eq!(lab.act("qk_bob", &id, "resume", &resume).status, 202);
    lab.until_is(&id, "succeeded");
}

#[test]
fn a_run_that_waits_since_before_this_server_asks_again() {
    let lab = Lab::new(&[("release", RELEASE)]);
    let id = lab.start_as("qk_ada", &json!({"workflow": "release"}));
    let old = lab.until_is(&id, "paused")["pause"]["token"].clone();
    let events = lab.transcript(&id);
    let work = lab.work.path().to_owned();
    let fill = |home: &std::path::Path| {
        super::put(&home.join(format!("transcripts/{id}.jsonl")), &events);
    };
    let next = Lab::with(&[], fill, |options| options.work_directory = work);
    let seen = next.see(&id);
    assert_eq!(
        (&seen["status"], &seen["pause"]["message"]),
        (&json!("paused"), &json!("Release it?"))
    );
    assert_eq!(
        (&seen["pause"]["token"], &seen["here"]),
        (&Value::Null, &json!(false))
    );
    let list = next.served.get("/api/v1/executions?status=paused").json();
    assert_eq!(list["items"][0]["id"], *id);
    assert_eq!(next.act("qk_ada", &id, "resume", &json!({})).status, 202);
    let token = next.until(&id, |run| run["pause"]["token"].is_string())["pause"]["token"].clone();
    assert_ne!(token, old);
    // Whoever resumed it is not who started it: the transcript says who did.
    assert_eq!(
        next.act("qk_ada", &id, "approve", &json!({"token": token}))
            .status,
        403
    );
    assert_eq!(
        next.act("qk_bob", &id, "approve", &json!({"token": token}))
            .status,
        202
    );
    next.until_is(&id, "succeeded");
    assert_eq!(next.see(&id)["started_by"], "ada");
}

const TALK: &str = r#"
states:
  initial: talk
  talk: {type: agent, provider: claude, mode: conversation, prompt: "Hello", on_success: done}
  done: {type: terminal, status: success, message: "{{.states.talk.Output}}"}
"#;

#[test]
fn a_person_answers_over_http() {
    let lab = Lab::new(&[("talk", TALK)]);
    let stub = json!([
        {"step": "talk", "text": "Which colour?"},
        {"step": "talk", "text": "Blue it is."},
    ]);
    let id = lab.start(&json!({"workflow": "talk", "stub": stub}));
    let asked = lab.until(&id, |run| run["questions"][0]["text"] == "Which colour?");
    assert_eq!(
        (&asked["status"], &asked["questions"][0]["path"]),
        (&json!("running"), &json!("talk"))
    );
    assert!(lab.transcript(&id).contains("question_asked"));
    assert_eq!(
        lab.act("qk_reader", &id, "answer", &json!({"text": "red"}))
            .status,
        403
    );
    let wrong = json!({"text": "red", "step": "other"});
    assert_eq!(lab.act("", &id, "answer", &wrong).status, 409);
    let answer = lab.act("qk_bob", &id, "answer", &json!({"text": "blue"}));
    assert_eq!(answer.status, 202, "{}", answer.text());
    lab.until(&id, |run| run["questions"][0]["text"] == "Blue it is.");
    let end = json!({"text": "", "step": "talk"});
    assert_eq!(lab.act("qk_bob", &id, "answer", &end).status, 202);
    let run = lab.until_is(&id, "succeeded");
    assert_eq!(run["outcome"]["message"], "Blue it is.");
    let events = lab.transcript(&id);
    assert!(
        events.contains("question_answered") && events.contains("\"by\":\"bob\""),
        "{events}"
    );
    assert_eq!(
        lab.act("", &id, "answer", &json!({"text": "late"})).status,
        409
    );
}

#[test]
fn a_question_is_withdrawn_when_the_run_is_cancelled() {
    let lab = Lab::new(&[("talk", TALK)]);
    let id = lab.start(&json!({"workflow": "talk", "stub": true}));
    lab.until(&id, |run| {
        run["questions"]
            .as_array()
            .is_some_and(|all| all.len() == 1)
    });
    let answer = lab.act("", &id, "cancel", &json!({}));
    assert_eq!(
        (answer.status, &answer.json()["questions"]),
        (200, &json!([]))
    );
}

#[test]
fn secrets_are_not_shown() {
    let steps = r#"
inputs:
  - {name: SECRET_WORD, type: string, required: true}
  - {name: who, type: string, default: "nobody"}
states:
  initial: use
  use: {type: command, command: "printf 'the word is %s' \"$SECRET_WORD\"", on_success: talk}
  talk: {type: agent, provider: claude, mode: conversation, prompt: "It is {{.inputs.SECRET_WORD}}", on_success: ask}
  ask: {type: approval, message: "Is {{.inputs.SECRET_WORD}} good?", on_success: done}
  done: {type: terminal, status: success, message: "{{.inputs.SECRET_WORD}}"}
"#;
    let secret = "xyzzy-plugh-4711";
    let lab = Lab::new(&[("secret", steps)]);
    let stub = json!([{"step": "talk", "text": format!("so it is {secret}")}]);
    let inputs = json!({"SECRET_WORD": secret});
    let id = lab.start(&json!({"workflow": "secret", "stub": stub, "inputs": inputs}));
    let asked = lab.until(&id, |run| run["questions"][0].is_object());
    assert_eq!(
        asked["inputs"],
        json!({"SECRET_WORD": "***", "who": "nobody"})
    );
    assert_eq!(asked["questions"][0]["text"], "so it is ***");
    assert_eq!(lab.act("", &id, "answer", &json!({"text": ""})).status, 202);
    let paused = lab.until_is(&id, "paused");
    assert_eq!(paused["pause"]["message"], "Is *** good?");
    let token = &paused["pause"]["token"];
    let without = lab.act("", &id, "approve", &json!({"token": token}));
    assert_eq!(without.status, 409, "{}", without.text());
    assert!(without.text().contains("SECRET_WORD"), "{}", without.text());
    let with = json!({"token": token, "inputs": inputs});
    assert_eq!(lab.act("", &id, "approve", &with).status, 202);
    let mut run = Value::Null;
    assert!(within(|| {
        run = lab.see(&id);
        // A step whose output was masked runs again, and so does the conversation.
        if run["questions"][0].is_object() {
            lab.act("", &id, "answer", &json!({"text": ""}));
        }
        run["status"] != "running"
    }));
    for text in [run.to_string(), lab.transcript(&id)] {
        assert!(!text.contains(secret), "{text}");
    }
    let audit = std::fs::read_to_string(lab.served.home().join("audit.jsonl")).unwrap();
    assert!(!audit.contains(secret) && audit.contains(&id), "{audit}");
}
