//! Agent steps that can be relied on.

use quipu_model::Body;
use serde_json::Value;

use super::World;
use crate::engine::RunStatus;

const SCHEMA: &str = r#"
  initial: ask
  ask:
    type: agent
    provider: claude
    prompt: "How many?"
    output:
      schema: {type: object, required: [n], properties: {n: {type: integer}}}
      max_corrections: 2
    on_success: done
  done: {type: terminal, status: success, message: "{{.states.ask.JSON.n}}"}
"#;

fn prompts(events: &[quipu_model::Event]) -> Vec<String> {
    let users = events
        .iter()
        .filter(|event| matches!(event.body, Body::UserMessage(_)));
    users
        .map(|event| event.body.texts().next().unwrap_or_default().to_owned())
        .collect()
}

#[tokio::test]
async fn an_answer_that_does_not_fit_is_sent_back_with_its_errors() {
    let world = World::scripted(
        r#"
- {step: ask, text: "many"}
- {step: ask, text: '{"n": "three"}'}
- {step: ask, text: '```json
{"n": 3}
```'}
"#,
    );
    let ran = world.run(SCHEMA).await;
    assert_eq!(
        ran.outcome.message.as_deref(),
        Some("3"),
        "{:?}",
        ran.outcome.error
    );
    let prompts = prompts(&ran.events);
    assert_eq!(prompts.len(), 3);
    assert!(prompts[1].contains("not JSON"), "{}", prompts[1]);
    assert!(prompts[2].contains("at /n"), "{}", prompts[2]);
    let corrected = ("guardrail".to_owned(), "answer_corrected".to_owned());
    assert_eq!(ran.harness(), [corrected.clone(), corrected]);
}

#[tokio::test]
async fn an_answer_that_never_fits_costs_exactly_the_configured_calls() {
    let world = World::scripted(
        "- {step: ask, text: no}\n- {step: ask, text: no}\n- {step: ask, text: no}\n- {step: ask, text: '{\"n\": 1}'}\n",
    );
    let ran = world.run(SCHEMA).await;
    assert_eq!(ran.outcome.status, RunStatus::Failed);
    assert_eq!(
        prompts(&ran.events).len(),
        3,
        "one question and two corrections"
    );
    let mut names = ran.harness().into_iter().map(|(_, name)| name);
    assert_eq!(names.next_back().as_deref(), Some("answer_rejected"));
}

#[tokio::test]
async fn a_failed_check_asks_the_agent_again_with_its_output() {
    let world = World::scripted("- {step: ask, text: one}\n- {step: ask, text: two}\n");
    let ran = world
        .run(
            r#"
  initial: ask
  ask:
    type: agent
    provider: claude
    prompt: "Write it"
    checks: [{name: tests, command: "echo x >> tries; echo broken; test $(wc -l < tries) -ge 2"}]
    max_check_rounds: 1
    on_success: done
  done: {type: terminal, status: success, message: "{{.states.ask.Output}}"}
"#,
        )
        .await;
    assert_eq!(
        ran.outcome.message.as_deref(),
        Some("two"),
        "{:?}",
        ran.outcome.error
    );
    assert!(prompts(&ran.events)[1].contains("broken"));
    let names: Vec<String> = ran.harness().into_iter().map(|(_, name)| name).collect();
    assert_eq!(names, ["check_failed", "check_passed"]);
}

#[tokio::test]
async fn a_budget_ends_the_run_and_survives_a_resume() {
    let script = "- {step: a, text: one, model: claude-opus-4-5-20251101, usage: {input: 1000, output: 20000}}\n- {step: b, text: two, model: claude-opus-4-5-20251101, usage: {input: 1000, output: 20000}}\n- {step: b, text: three, model: claude-opus-4-5-20251101, usage: {input: 1, output: 1}}\n";
    let world = World::scripted(script);
    let text = r#"
name: costly
budget_usd: 0.6
states:
  initial: a
  a: {type: agent, provider: claude, prompt: "A", on_success: b}
  b: {type: agent, provider: claude, prompt: "B", on_success: c, on_failure: c}
  c: {type: command, command: "touch c", on_success: done}
  done: {type: terminal, status: success}
"#;
    let ran = world.run(text).await;
    assert_eq!(ran.outcome.status, RunStatus::Failed);
    let error = ran.outcome.error.clone().expect("an error");
    assert!(
        error.contains("the budget of the run is spent: $1.0"),
        "{error}"
    );
    assert!(
        !world.root().join("c").exists(),
        "a budget of the run is not a failure that a step handles"
    );
    assert!(
        ran.harness()
            .contains(&("budget".to_owned(), "budget_exceeded".to_owned()))
    );
    let again = world
        .resume(&ran.outcome.run_id, crate::engine::ResumeOptions::default())
        .await
        .expect("it goes on");
    assert_eq!(
        again.status,
        RunStatus::Failed,
        "what was spent stays spent"
    );
    assert_eq!(
        prompts(&world.events(&ran.outcome.run_id)).len(),
        2,
        "nobody was asked again"
    );
}

#[tokio::test]
async fn an_answer_from_the_transcript_is_not_billed_again() {
    let script = "- {step: a, text: one, model: claude-opus-4-5-20251101, usage: {input: 1000, output: 1000}}\n";
    let world = World::scripted(script);
    let steps = r#"
  initial: a
  a: {type: agent, provider: claude, prompt: "A", on_success: b}
  b: {type: command, command: "test -e ok", on_success: done}
  done: {type: terminal, status: success}
"#;
    let first = world.run(steps).await;
    world.file("ok", "");
    let second = world
        .resume(
            &first.outcome.run_id,
            crate::engine::ResumeOptions::default(),
        )
        .await
        .expect("it goes on");
    assert_eq!(second.status, RunStatus::Succeeded);
    assert_eq!(
        (second.dollars, second.tokens),
        (first.outcome.dollars, first.outcome.tokens)
    );
    assert!(second.tokens > 0);
}

#[tokio::test]
async fn the_message_holds_the_prompt_and_the_system_prompt_that_were_sent() {
    let world = World::new();
    world.file(
        ".quipu/roles/critic/AGENTS.md",
        "---\nname: critic\n---\nYou are strict.\n",
    );
    world.file(".quipu/skills/brief/SKILL.md", "Be brief.\n");
    let ran = world
        .run(
            r#"
  initial: ask
  ask: {type: agent, provider: claude, prompt: "Read {{.workflow.Name}}", system_prompt: "Answer in French.", role: critic, skills: [brief], on_success: done}
  done: {type: terminal, status: success, message: "{{.states.ask.Output}}"}
"#,
        )
        .await;
    let message = ran
        .events
        .iter()
        .find(|event| matches!(event.body, Body::UserMessage(_)))
        .expect("a message");
    let texts: Vec<&str> = message.body.texts().collect();
    assert_eq!(
        texts,
        [
            "<skill_content name=\"brief\">\nBe brief.\n</skill_content>\n\nRead test",
            "You are strict.\n\nAnswer in French."
        ]
    );
    assert_eq!(message.place.path, "ask");
    assert!(
        ran.outcome
            .message
            .as_ref()
            .expect("a reply")
            .starts_with("[STUB] Completed step ask.")
    );
    let result = ran.result("ask");
    assert_eq!(result["data"]["simulated"], Value::Bool(true));
}

#[tokio::test]
async fn a_conversation_records_every_turn() {
    use crate::engine::{Line, Question, Saying};
    struct Talk(std::sync::Mutex<Vec<&'static str>>);
    impl crate::engine::Person for Talk {
        fn line<'a>(&'a self, question: Question<'a>) -> Saying<'a, Line> {
            assert_eq!(question.place.path, "talk");
            let said = self.0.lock().expect("not poisoned").pop();
            Box::pin(async move {
                let (text, by) = (said?.to_owned(), Some("grace".to_owned()));
                Some(Line { text, by })
            })
        }
        fn consents<'a>(&'a self, _: Question<'a>) -> Saying<'a, bool> {
            Box::pin(async { None })
        }
    }
    let mut world = World::scripted(
        "- {step: talk, text: one}\n- {step: talk, text: two}\n- {step: talk, text: three}\n",
    );
    world.person = Some(std::sync::Arc::new(Talk(std::sync::Mutex::new(vec![
        "quit",
        "and then?",
        "go on",
    ]))));
    let ran = world
        .run(
            r#"
  initial: talk
  talk: {type: agent, provider: claude, mode: conversation, prompt: "Hello", on_success: done}
  done: {type: terminal, status: success, message: "{{.states.talk.Output}}"}
"#,
        )
        .await;
    assert_eq!(prompts(&ran.events), ["Hello", "go on", "and then?"]);
    let asked = ["question_asked", "question_answered"];
    let told: Vec<String> = ran.harness().into_iter().map(|(_, name)| name).collect();
    assert_eq!(told, [asked, asked, asked].concat());
    assert_eq!(ran.outcome.message.as_deref(), Some("three"));
}
