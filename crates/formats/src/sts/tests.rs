use proptest::prelude::*;
use quipu_model::json::{Kind, Node, Tape};
use quipu_model::{
    Annotations, Block, Body, Content, Event, Fidelity, Header, Json, Notes, Origin, Place, RunId,
    Timestamp, ToolCall, ToolResult, Usage,
};

use super::{CardEntry, CardOptions, StsOptions, card, writer};
use crate::arbitrary;
use crate::loss::Loss;
use crate::projection::Nowhere;

fn written(header: &Header, events: &[Event]) -> (String, Loss) {
    let mut out = Vec::new();
    let options = StsOptions::default();
    let mut to = writer(header, &options, Box::new(&mut out), Box::new(Nowhere)).unwrap();
    for event in events {
        to.event(event).unwrap();
    }
    let loss = to.finish().unwrap();
    (String::from_utf8(out).unwrap(), loss)
}

/// The rules of the lines, from the list of their fields.
fn wrongs(text: &str) -> Vec<String> {
    let mut wrongs = Vec::new();
    for (n, line) in text.lines().enumerate() {
        let mut tape = Tape::new();
        match tape.read(line, 128) {
            Ok(node) if n == 0 => keys(node, "type! harness! id! name!", &mut wrongs),
            Ok(node) => {
                keys(node, "type! message!", &mut wrongs);
                match node.get("message") {
                    Some(message) => check(message, &mut wrongs),
                    None => wrongs.push("no message".to_owned()),
                }
            }
            Err(error) => wrongs.push(error.to_string()),
        }
        let kind = if n == 0 { "session" } else { "message" };
        if !line.starts_with(&format!("{{\"type\":\"{kind}\"")) {
            wrongs.push(format!("line {n} is no {kind}"));
        }
    }
    wrongs
}

fn keys(node: Node<'_>, keys: &str, wrongs: &mut Vec<String>) {
    for (key, _) in node.fields() {
        if !keys
            .split(' ')
            .any(|known| key.is(known.trim_end_matches('!')))
        {
            wrongs.push(format!("key {}", key.to_text_lossy()));
        }
    }
    for key in keys.split(' ').filter_map(|key| key.strip_suffix('!')) {
        if node.get(key).is_none() {
            wrongs.push(format!("no {key}"));
        }
    }
}

fn check(message: Node<'_>, wrongs: &mut Vec<String>) {
    let role = message.text("role").unwrap_or_default();
    // All of them in each, so that whatever is read first has the columns of all.
    keys(
        message,
        "role! content! reasoningContent! toolCalls! toolCallId! timestamp! model!",
        wrongs,
    );
    let is = |key: &str, kind: Kind| {
        let value = message.get(key);
        value.is_some_and(|value| value.kind() == kind)
    };
    let optional = |key: &str, kind: Kind| is(key, kind) || is(key, Kind::Null);
    let fits = match &*role {
        "assistant" => is("toolCallId", Kind::Null),
        "tool" => is("toolCallId", Kind::String) && is("reasoningContent", Kind::Null),
        "user" | "system" => is("toolCallId", Kind::Null) && is("reasoningContent", Kind::Null),
        _ => false,
    };
    let fits = fits
        && is("toolCalls", Kind::List)
        && ["reasoningContent", "toolCallId", "model"]
            .iter()
            .all(|key| optional(key, Kind::String))
        && optional("timestamp", Kind::Number);
    if !fits {
        wrongs.push(format!(
            "a message of {role} has something else in its keys"
        ));
    }
    if !message
        .get("content")
        .is_some_and(|content| content.kind() == Kind::String)
    {
        wrongs.push("content is no text".to_owned());
    }
    for call in message.get("toolCalls").into_iter().flat_map(Node::items) {
        keys(call, "id! function!", wrongs);
        let arguments = call.path(&["function", "arguments"]);
        let text = arguments.and_then(|it| it.as_raw_str());
        let is_json = text.is_some_and(|text| Json::parse(&text.to_text_lossy()).is_ok());
        if !is_json {
            wrongs.push("arguments are no JSON in a string".to_owned());
        }
    }
    if let Some(time) = message.get("timestamp")
        && !time.is_null()
        && time.as_i64().is_none()
    {
        wrongs.push("a time is no number".to_owned());
    }
}

fn session() -> (Header, Vec<Event>) {
    let mut header = Header::new(RunId::new("run-1").unwrap());
    header.title = Some("List files".to_owned());
    header.origin = Some(Origin {
        agent: "goose".to_owned(),
        session_id: Some("s-1".into()),
        ..Origin::default()
    });
    let fidelity = Fidelity::AgentEmitted;
    let text = |text: &str| vec![Block::text(fidelity, text)];
    let thinking = Block {
        fidelity,
        content: Content::Thinking("hm".to_owned()),
    };
    let call = |id: &str| {
        Body::ToolCall(ToolCall {
            name: "shell".to_owned(),
            call_id: id.into(),
            input: Some(Json::parse(r#"{"command":"ls"}"#).unwrap()),
            fidelity,
        })
    };
    let result = Body::ToolResult(ToolResult {
        name: "shell".to_owned(),
        call_id: "t1".into(),
        input: None,
        output: Some(Json::string("a.txt")),
        error: None,
        fidelity,
    });
    let agent = Notes {
        model: Some("m".to_owned()),
        model_call: Some("c1".into()),
        usage: Some(Usage {
            input: Some(1),
            ..Usage::default()
        }),
        ..Notes::default()
    };
    let none = Notes::default();
    let events = [
        (Body::SystemMessage(text("Be brief.")), &none),
        (Body::UserMessage(text("What is here?")), &none),
        (Body::AssistantMessage(vec![thinking]), &agent),
        (Body::AssistantMessage(text("Let me look.")), &agent),
        (call("t1"), &agent),
        (call("t2"), &agent),
        (result, &none),
        (Body::AssistantMessage(text("One file.")), &none),
    ];
    let events = (1..).zip(events).map(|(seq, (body, notes))| Event {
        seq,
        run_id: header.run_id.clone(),
        parent_run_id: None,
        timestamp: Timestamp::from_second(1_767_323_045).unwrap(),
        place: Place::run(),
        body,
        annotations: Annotations::from(notes.clone()),
    });
    let events = events.collect();
    (header, events)
}

#[expect(
    clippy::disallowed_methods,
    reason = "a test writes its own expectation"
)]
fn golden(name: &str, text: &str) {
    let path = format!("{}/src/sts/golden/{name}", env!("CARGO_MANIFEST_DIR"));
    if std::env::var_os("QUIPU_BLESS").is_some() {
        std::fs::write(&path, text).unwrap();
    }
    assert_eq!(std::fs::read_to_string(&path).unwrap(), text, "{path}");
}

#[test]
fn golden_files() {
    let (header, events) = session();
    let (text, loss) = written(&header, &events);
    golden("session.jsonl", &text);
    assert_eq!(wrongs(&text), Vec::<String>::new());
    assert_eq!((loss.events, loss.carried), (8, 8));
    let dropped: Vec<&str> = loss.dropped.keys().map(|key| &**key).collect();
    assert_eq!(dropped, ["model_call", "usage"]);

    let entry = |file: &str, agent: &str, as_is| CardEntry {
        file: file.to_owned(),
        agent: Some(agent.to_owned()),
        models: vec!["m-1".to_owned()],
        events: 8,
        usage: Usage {
            input: Some(10),
            output: Some(2),
            ..Usage::default()
        },
        as_is,
        profile: None,
    };
    let entries = [
        entry("sessions/a.jsonl", "goose", false),
        entry("native/b.jsonl", "claude-code", true),
    ];
    let options = CardOptions {
        name: Some("Ada's sessions".to_owned()),
        languages: vec!["en".to_owned()],
        ..CardOptions::default()
    };
    golden("README.md", &card(&entries, &options));
}

/// The columns are told, and files of different kinds are tables of their own even where they lie together.
#[test]
fn a_card_tells_the_columns_of_each_kind_of_file() {
    let entry = |file: &str, as_is| CardEntry {
        file: file.to_owned(),
        as_is,
        ..CardEntry::default()
    };
    let page = card(&[entry("a.jsonl", false)], &CardOptions::default());
    assert!(page.contains("path: \"*.jsonl\""), "{page}");
    assert!(page.contains("dataset_info:\n  - config_name: \"default\"\n    features:\n"));
    let both = [
        entry("a.jsonl", false),
        entry("b.jsonl", true),
        entry("c.jsonl", false),
    ];
    let page = card(&both, &CardOptions::default());
    assert!(
        page.contains("          - \"a.jsonl\"\n          - \"c.jsonl\"\n"),
        "{page}"
    );
    assert!(page.contains("config_name: \"native\""), "{page}");
    assert_eq!(page.matches("    features:").count(), 1, "{page}");
}

/// What was redacted is not said to be as it was.
#[test]
fn a_card_says_what_was_removed() {
    let entry = |profile: Option<&str>| CardEntry {
        profile: profile.map(str::to_owned),
        ..CardEntry::default()
    };
    let page = card(
        &[entry(Some("research")), entry(None)],
        &CardOptions::default(),
    );
    assert!(!page.contains("Not redacted"), "{page}");
    assert!(
        page.contains("research removes from 1 of 2 sessions"),
        "{page}"
    );
}

#[test]
fn a_call_to_a_model_is_one_message_and_its_result_another() {
    let (header, events) = session();
    let (text, _) = written(&header, &events);
    let lines: Vec<serde_json::Value> = text
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(lines.len(), 6);
    assert_eq!(lines[0]["harness"], "goose");
    let said = &lines[3]["message"];
    assert_eq!(
        (&said["content"], &said["reasoningContent"]),
        (&"Let me look.".into(), &"hm".into())
    );
    assert_eq!(said["toolCalls"][1]["id"], "t2");
    assert_eq!(
        said["toolCalls"][0]["function"]["arguments"],
        r#"{"command":"ls"}"#
    );
    assert_eq!(said["timestamp"], 1_767_323_045_000_i64);
    assert_eq!(lines[4]["message"]["toolCallId"], "t1");
}

/// What stands between the two lines of dashes reads as a few plain fields, whatever the names are.
fn is_plain(page: &str) -> bool {
    let Some((head, _)) = page
        .strip_prefix("---\n")
        .and_then(|rest| rest.split_once("\n---\n"))
    else {
        return false;
    };
    head.is_ascii()
        && head.lines().all(|line| {
            let line = line.trim_start().trim_start_matches("- ");
            let field = line.split_once(": ").filter(|_| !line.starts_with('"'));
            let value = field.map_or(line, |(_, value)| value);
            let is_key = line.ends_with(':')
                && line[..line.len() - 1]
                    .bytes()
                    .all(|b| b.is_ascii_lowercase() || b == b'_');
            line.starts_with('#')
                || is_key
                || serde_json::from_str::<String>(&no_long_escapes(value)).is_ok()
        })
}

/// YAML has an escape with eight digits that JSON does not have.
fn no_long_escapes(text: &str) -> String {
    text.replace("\\\\", "__").replace("\\U", "U")
}

#[test]
fn hostile_names_stay_names() {
    let evil = "x\"\n---\nlicense: mit\n\u{85}\u{2028}# <script>alert(1)</script> | [a](javascript:b) `c` \u{202e}";
    let entry = CardEntry {
        file: format!("{evil}/a.jsonl"),
        agent: Some(evil.to_owned()),
        models: vec![evil.to_owned()],
        ..CardEntry::default()
    };
    let options = CardOptions {
        name: Some(evil.to_owned()),
        license: Some(evil.to_owned()),
        languages: vec![evil.to_owned()],
        tags: vec![evil.to_owned()],
    };
    let page = card(&[entry], &options);
    assert!(is_plain(&page), "{page}");
    assert_eq!(page.matches("\n---\n").count(), 1);
    let (_, body) = page.split_once("\n---\n").unwrap();
    assert!(!body.contains("<script>") && !body.contains('\u{202e}'));
    assert!(!body.contains("[a](") && !body.contains("`c`"));
}

proptest! {
    #[test]
    fn any_session_is_lines_of_messages((header, events) in arbitrary::session()) {
        let (text, loss) = written(&header, &events);
        prop_assert_eq!(wrongs(&text), Vec::<String>::new(), "{}", text);
        prop_assert_eq!(loss.events, events.len() as u64);
        prop_assert!(loss.carried <= loss.events);
        let left_out = events.iter().filter(|event| match &event.body {
            Body::ToolCall(_) | Body::ToolResult(_) => false,
            body => body.blocks().is_none(),
        });
        prop_assert_eq!(loss.events - loss.carried, left_out.count() as u64);
        prop_assert_eq!(&written(&header, &events).0, &text);
    }

    #[test]
    fn any_name_is_escaped(name in arbitrary::text()) {
        let options = CardOptions { name: Some(name), ..CardOptions::default() };
        prop_assert!(is_plain(&card(&[], &options)));
    }
}
