use quipu_model::{
    Attachment, Block, Body, Content, Fidelity, Json, Money, Note, NoteKind, Notes, Status, Step,
    ToolCall, ToolResult, Usage,
};
use serde_json::json;

use super::super::{AtifOptions, Version};
use super::{Folder, Story, validator, written_with};
use crate::projection::Nowhere;

fn block(content: Content) -> Block {
    Block {
        fidelity: Fidelity::AgentEmitted,
        content,
    }
}

fn user(text: &str) -> Body {
    Body::UserMessage(vec![block(Content::Text(text.into()))])
}

fn agent(text: &str) -> Body {
    Body::AssistantMessage(vec![block(Content::Text(text.into()))])
}

fn thought(text: &str) -> Body {
    Body::AssistantMessage(vec![block(Content::Thinking(text.into()))])
}

fn call(id: &str, name: &str, input: &str) -> Body {
    Body::ToolCall(ToolCall {
        name: name.into(),
        call_id: id.into(),
        input: Some(Json::parse(input).unwrap()),
        fidelity: Fidelity::AgentEmitted,
    })
}

fn result(id: &str, output: &str) -> Body {
    Body::ToolResult(ToolResult {
        name: "shell".into(),
        call_id: id.into(),
        input: None,
        output: Some(Json::parse(output).unwrap()),
        error: None,
        fidelity: Fidelity::AgentEmitted,
    })
}

fn note(kind: NoteKind, text: &str) -> Body {
    Body::Note(Note {
        kind,
        text: Some(text.into()),
        raw: None,
    })
}

fn of_call(call: &str) -> Notes {
    Notes {
        model: Some("m-1".into()),
        model_call: Some(call.into()),
        ..Notes::default()
    }
}

fn none() -> Notes {
    Notes::default()
}

/// A session with everything that ATIF has a shape for.
fn everything() -> Story {
    let mut story = Story::new();
    story.header.title = Some("List <files> & \"more\"".into());
    story.header.environment.cwd = Some("/code".into());
    story.add(
        Body::SystemMessage(vec![block(Content::Text("Be brief.".into()))]),
        none(),
    );
    story.add(
        user("What is here?"),
        Notes {
            native_id: Some("u1".into()),
            ..none()
        },
    );
    story.add(
        thought("I should look."),
        Notes {
            usage: Some(Usage {
                input: Some(10),
                cache_read: Some(100),
                cache_write: Some(7),
                output: Some(20),
                reasoning: Some(5),
                ..Usage::default()
            }),
            cost: Money::parse("0.0123"),
            ..of_call("c1")
        },
    );
    story.add(agent("Let me look."), of_call("c1"));
    story.add(call("t1", "shell", r#"{"command":"ls"}"#), of_call("c1"));
    story.add(call("t2", "task", r#"{"prompt":"count"}"#), of_call("c1"));
    story.add(
        result("t1", r#""a.txt\nb.txt""#),
        Notes {
            status: Some(Status::Ok),
            duration_ms: Some(12),
            ..none()
        },
    );
    let sub = |call: &str| Notes {
        subagent_id: Some("t2".into()),
        ..of_call(call)
    };
    story.add(
        user("count"),
        Notes {
            model: None,
            model_call: None,
            ..sub("")
        },
    );
    story.add(
        agent("two"),
        Notes {
            usage: Some(Usage {
                input: Some(3),
                output: Some(1),
                ..Usage::default()
            }),
            ..sub("c2")
        },
    );
    story.add(result("t2", r#"[{"type":"text","text":"two"}]"#), none());
    story.add(note(NoteKind::Title, "Listing"), none());
    story.add(note(NoteKind::Compaction, "Everything so far."), none());
    story.add(
        user("<reminder>"),
        Notes {
            flags: quipu_model::Flags {
                synthetic: true,
                ..quipu_model::Flags::default()
            },
            ..none()
        },
    );
    story.add(call("t3", "shell", r#""raw""#), of_call("c3"));
    story
}

#[test]
fn golden() {
    let (text, _) = everything().written();
    let path = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/src/atif/tests/golden/v1.7.json"
    );
    golden_file(path, &text);
    let story = everything();
    let options = AtifOptions {
        version: Version::V1_8,
        ..AtifOptions::default()
    };
    let (text, _) = written_with(&story.header, &story.events, &options, Nowhere, &[]);
    assert_eq!(validator::wrongs(&text), Vec::<String>::new());
    let path = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/src/atif/tests/golden/v1.8.json"
    );
    golden_file(path, &text);
}

#[expect(
    clippy::disallowed_methods,
    reason = "a test writes its own expectation"
)]
fn golden_file(path: &str, text: &str) {
    if std::env::var_os("QUIPU_BLESS").is_some() {
        std::fs::write(path, text).unwrap();
    }
    assert_eq!(std::fs::read_to_string(path).unwrap(), text, "{path}");
}

#[test]
fn a_call_to_a_model_is_a_step_with_its_results() {
    let document = everything().document();
    let steps = document["steps"].as_array().unwrap();
    let sources: Vec<&str> = steps
        .iter()
        .map(|step| step["source"].as_str().unwrap())
        .collect();
    assert_eq!(
        sources,
        ["system", "user", "agent", "system", "user", "agent"]
    );
    let step = &steps[2];
    assert_eq!(step["message"], "Let me look.");
    assert_eq!(step["reasoning_content"], "I should look.");
    assert_eq!(step["model_name"], "m-1");
    assert_eq!(step["llm_call_count"], 1);
    assert_eq!(step["tool_calls"][0]["arguments"], json!({"command": "ls"}));
    let results = step["observation"]["results"].as_array().unwrap();
    assert_eq!(results[0]["source_call_id"], "t1");
    assert_eq!(results[0]["content"], "a.txt\nb.txt");
    assert_eq!(results[0]["extra"]["duration_ms"], 12);
    assert_eq!(results[0]["extra"]["status"], "ok");
    assert_eq!(
        results[1]["content"],
        json!([{"type": "text", "text": "two"}])
    );
    assert_eq!(
        step["metrics"],
        json!({"prompt_tokens": 117, "completion_tokens": 20, "cached_tokens": 100, "cost_usd": 0.0123,
               "extra": {"cache_creation_input_tokens": 7, "reasoning_tokens": 5}})
    );
    assert_eq!(document["final_metrics"]["total_prompt_tokens"], 117);
    assert_eq!(document["final_metrics"]["total_steps"], 6);
}

#[test]
fn a_sub_agent_has_a_trajectory_that_its_result_refers_to() {
    let document = everything().document();
    let child = &document["subagent_trajectories"][0];
    assert_eq!(child["extra"]["quipu"]["subagent_id"], "t2");
    assert_eq!(child["steps"].as_array().unwrap().len(), 2);
    assert_eq!(child["final_metrics"]["total_prompt_tokens"], 3);
    let result = &document["steps"][2]["observation"]["results"][1];
    assert_eq!(
        result["subagent_trajectory_ref"],
        json!([{"trajectory_id": child["trajectory_id"]}])
    );
}

#[test]
fn notes_and_marks_stand_under_extra() {
    let (text, loss) = everything().written();
    let document: serde_json::Value = serde_json::from_str(&text).unwrap();
    let steps = &document["steps"];
    assert_eq!(steps[2]["extra"]["quipu"]["notes"][0]["text"], "Listing");
    assert_eq!(steps[3]["message"], "Everything so far.");
    assert_eq!(
        steps[3]["extra"]["context_management"],
        json!({"type": "compaction", "boundary": "replace"})
    );
    assert_eq!(steps[4]["extra"]["quipu"]["synthetic"], true);
    assert_eq!(
        steps[5]["tool_calls"][0]["arguments"],
        json!({"_raw": "raw"})
    );
    assert_eq!((loss.events, loss.carried), (14, 14));
    assert!(loss.is_complete(), "{loss}");
    let wrapped: Vec<&str> = loss.wrapped.keys().map(|key| &**key).collect();
    assert_eq!(wrapped, ["arguments that are no object", "note:title"]);
}

#[test]
fn an_empty_session_says_that_it_is() {
    let story = Story::new();
    let (_, loss) = story.written();
    assert_eq!(loss.inferred["steps"].count, 1);
    let step = &story.document()["steps"][0];
    assert_eq!(step["source"], "system");
    assert_eq!(step["message"], "This session has no events.");
    let mut story = Story::new();
    story.add(note(NoteKind::Title, "T"), none());
    let document = story.document();
    assert_eq!(
        document["steps"][0]["extra"]["quipu"]["notes"][0]["text"],
        "T"
    );
}

#[test]
fn results_without_a_call_point_nowhere() {
    let mut story = Story::new();
    story.add(result("gone", "\"late\""), none());
    story.add(result("", "\"nameless\""), none());
    story.add(agent("so"), none());
    let (_, loss) = story.written();
    assert_eq!(loss.wrapped["tool.result without its call"].count, 2);
    let document = story.document();
    let step = &document["steps"][0];
    assert_eq!(
        (&step["source"], &step["llm_call_count"]),
        (&json!("agent"), &json!(0))
    );
    let results = step["observation"]["results"].as_array().unwrap();
    assert_eq!(results[0]["source_call_id"], json!(null));
    assert_eq!(results[0]["extra"]["quipu"]["call_id"], "gone");
    assert_eq!(results[1]["content"], "nameless");
}

#[test]
fn a_result_that_comes_too_late_has_a_step_of_its_own() {
    let mut story = Story::new();
    story.add(call("t1", "shell", "{}"), of_call("c1"));
    for _ in 0..40 {
        story.add(user("and?"), none());
    }
    story.add(result("t1", "\"at last\""), none());
    let (_, loss) = story.written();
    assert_eq!(loss.wrapped["tool.result without its call"].count, 1);
    let document = story.document();
    assert_eq!(document["steps"].as_array().unwrap().len(), 42);
}

#[test]
fn parallel_calls_that_are_told_one_by_one_are_one_step() {
    let mut story = Story::new();
    story.add(call("t1", "shell", "{}"), of_call("c1"));
    story.add(result("t1", "\"1\""), none());
    story.add(call("t2", "shell", "{}"), of_call("c1"));
    story.add(result("t2", "\"2\""), none());
    story.add(agent("done"), of_call("c2"));
    let document = story.document();
    assert_eq!(document["steps"].as_array().unwrap().len(), 2);
    assert_eq!(
        document["steps"][0]["tool_calls"].as_array().unwrap().len(),
        2
    );
}

#[test]
fn what_is_told_in_a_message_and_by_an_event_is_told_once() {
    let mut story = Story::new();
    let uses = Content::ToolUse {
        name: "shell".into(),
        id: "t1".into(),
        input: Some(Json::parse("{}").unwrap()),
    };
    let body = Body::AssistantMessage(vec![block(Content::Text("go".into())), block(uses)]);
    story.add(body, none());
    story.add(call("t1", "shell", "{}"), none());
    story.add(result("t1", "\"ok\""), none());
    let back = Content::ToolResult {
        id: "t1".into(),
        content: Some(Json::string("ok")),
    };
    story.add(Body::UserMessage(vec![block(back)]), none());
    let document = story.document();
    let steps = document["steps"].as_array().unwrap();
    assert_eq!(steps.len(), 1);
    assert_eq!(steps[0]["tool_calls"].as_array().unwrap().len(), 1);
    assert_eq!(
        steps[0]["observation"]["results"].as_array().unwrap().len(),
        1
    );
}

fn picture(mime: &str, digit: &str) -> Attachment {
    Attachment {
        mime: mime.into(),
        bytes: 3,
        sha256: digit.repeat(64),
    }
}

#[test]
fn images_lie_beside_the_document() {
    let mut story = Story::new();
    let (png, pdf) = (picture("image/png", "a"), picture("application/pdf", "b"));
    let notes = |attachments: &[&Attachment]| Notes {
        attachments: attachments.iter().map(|it| (*it).clone()).collect(),
        ..none()
    };
    story.add(user("look"), notes(&[&png, &pdf]));
    story.add(call("t1", "shot", "{}"), none());
    let inside = format!(
        r#"[{{"type":"text","text":"here"}},{{"type":"image","source":{{"data":"agentlog-blob://quipu/{}"}}}}]"#,
        png.sha256
    );
    story.add(result("t1", &inside), notes(&[&png]));
    let folder = Folder::default();
    let blobs: [(&Attachment, &[u8]); 2] = [(&png, b"png"), (&pdf, b"pdf")];
    let (text, loss) = written_with(
        &story.header,
        &story.events,
        &AtifOptions::default(),
        folder.clone(),
        &blobs,
    );
    assert_eq!(validator::wrongs(&text), Vec::<String>::new());
    let document: serde_json::Value = serde_json::from_str(&text).unwrap();
    let path = format!("images/{}.png", png.sha256);
    let shown = json!({"type": "image", "source": {"media_type": "image/png", "path": path}});
    let message = &document["steps"][0]["message"];
    assert_eq!(message[1], shown);
    assert!(
        message[2]["text"]
            .as_str()
            .unwrap()
            .contains("application/pdf")
    );
    assert_eq!(
        document["steps"][1]["observation"]["results"][0]["content"][1],
        shown
    );
    assert_eq!(folder.0.borrow().keys().collect::<Vec<_>>(), [&path]);
    assert_eq!(loss.dropped["attachment bytes"].count, 1);

    let (text, loss) = written_with(
        &story.header,
        &story.events,
        &AtifOptions::default(),
        Nowhere,
        &blobs,
    );
    assert_eq!(validator::wrongs(&text), Vec::<String>::new());
    assert_eq!(loss.dropped["attachment bytes"].count, 3);
}

#[test]
fn sound_needs_the_newer_version() {
    let mut story = Story::new();
    let wav = picture("audio/wav", "c");
    let notes = Notes {
        attachments: vec![wav.clone()],
        ..none()
    };
    story.add(user("listen"), notes);
    for (version, lost) in [(Version::V1_7, 1), (Version::V1_8, 0)] {
        let blobs: [(&Attachment, &[u8]); 1] = [(&wav, b"wav")];
        let options = AtifOptions {
            version,
            ..AtifOptions::default()
        };
        let (text, loss) = written_with(
            &story.header,
            &story.events,
            &options,
            Folder::default(),
            &blobs,
        );
        assert_eq!(validator::wrongs(&text), Vec::<String>::new());
        let dropped = loss
            .dropped
            .get("attachment bytes")
            .map_or(0, |tally| tally.count);
        assert_eq!(dropped, lost);
    }
}

#[test]
fn a_hash_that_is_none_names_no_file() {
    let mut story = Story::new();
    let mut evil = picture("image/png", "a");
    evil.sha256 = "../../etc/passwd".into();
    let notes = Notes {
        attachments: vec![evil.clone()],
        ..none()
    };
    story.add(user("look"), notes);
    let folder = Folder::default();
    let blobs: [(&Attachment, &[u8]); 1] = [(&evil, b"x")];
    written_with(
        &story.header,
        &story.events,
        &AtifOptions::default(),
        folder.clone(),
        &blobs,
    );
    assert!(folder.0.borrow().is_empty());
}

#[test]
fn deep_values_are_carried_as_text() {
    let mut story = Story::new();
    let deep = format!("{{\"a\":{}1{}}}", "[".repeat(110), "]".repeat(110));
    story.add(call("t1", "x", &deep), none());
    story.add(
        Body::Note(Note {
            kind: NoteKind::UnknownRecord,
            text: None,
            raw: Some(Json::parse(&deep).unwrap()),
        }),
        none(),
    );
    let document = story.document();
    assert_eq!(
        document["steps"][0]["tool_calls"][0]["arguments"]["_raw"],
        deep
    );
}

#[test]
fn the_work_of_ten_thousand_sub_agents_is_one_trajectory_each() {
    let mut story = Story::new();
    story.add(user("go"), none());
    for n in 0..10_000 {
        let sub = Notes {
            subagent_id: Some(format!("a{n}").into()),
            ..none()
        };
        story.add(agent("done"), sub);
    }
    let document = story.document();
    assert_eq!(
        document["subagent_trajectories"].as_array().unwrap().len(),
        10_000
    );
}

#[test]
fn sub_agents_of_sub_agents_stand_inside_them_and_circles_do_not() {
    let mut story = Story::new();
    let of = |name: &str| Notes {
        subagent_id: Some(name.into()),
        ..none()
    };
    // Each calls the next, and the last calls the first.
    for n in 0..8 {
        let (me, next) = (format!("a{n}"), format!("a{}", (n + 1) % 8));
        story.add(call(&next, "task", "{}"), of(&me));
        story.add(result(&next, "\"ok\""), of(&me));
        story.add(user("next"), of(&me));
    }
    let document = story.document();
    let mut count = 0;
    let mut open: Vec<&serde_json::Value> = vec![&document];
    while let Some(of) = open.pop() {
        count += 1;
        open.extend(of["subagent_trajectories"].as_array().into_iter().flatten());
    }
    assert_eq!(count, 9);
}

#[test]
fn notes_without_end_get_steps_of_their_own() {
    let mut story = Story::new();
    story.add(user("go"), none());
    for _ in 0..300 {
        story.add(note(NoteKind::Progress, &"x".repeat(100)), none());
    }
    let document = story.document();
    assert!(document["steps"].as_array().unwrap().len() > 4);
}

#[test]
fn usage_is_counted_once_wherever_it_stands() {
    let mut story = Story::new();
    let spent = |n: u64| Notes {
        usage: Some(Usage {
            input: Some(n),
            output: Some(1),
            ..Usage::default()
        }),
        ..none()
    };
    story.add(user("hi"), spent(1));
    story.add(note(NoteKind::Usage, "so much"), spent(10));
    story.add(call("t", "x", "{}"), spent(100));
    story.add(result("t", "\"y\""), spent(1000));
    story.add(Body::StepStarted(Step::new("a", "b")), spent(10_000));
    let document = story.document();
    assert_eq!(document["final_metrics"]["total_prompt_tokens"], 11_111);
    let sum: u64 = document["steps"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|step| step["metrics"]["prompt_tokens"].as_u64())
        .sum();
    assert_eq!(sum, 11_111);
}
