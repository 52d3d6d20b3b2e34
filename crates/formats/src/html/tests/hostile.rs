//! A session in which every field that can hold text holds an attack.

use quipu_model::{
    Attachment, Block, Body, Content, Environment, Event, Fidelity, Header, Json, Note, NoteKind,
    Notes, Origin, Place, RunId, Source, Status, Step, ToolCall, ToolResult, Usage,
};

/// Each of these leaves a mark on the document or asks for something, where it is taken for HTML.
pub(super) const HTML: &str = concat!(
    "<script>document.documentElement.setAttribute('data-pwned','1');console.log('pwned')</script>",
    "<img src='http://evil.example/a.png' onerror=\"document.documentElement.setAttribute('data-pwned','2')\">",
    "<svg onload=\"document.documentElement.setAttribute('data-pwned','3')\"><script href='http://evil.example/b.js'/></svg>",
    "<iframe src='http://evil.example/c'></iframe><link rel=stylesheet href='http://evil.example/d.css'>",
    "<style>@import 'http://evil.example/e.css';</style><base href='http://evil.example/'>",
    "<form action='http://evil.example/f'><input autofocus onfocus=\"document.documentElement.setAttribute('data-pwned','4')\"></form>",
    "<details open ontoggle=\"document.documentElement.setAttribute('data-pwned','5')\">x</details>",
);

/// This one leads away, where no mark could be seen.
const LEADS_AWAY: &str = "<meta http-equiv=refresh content='0;url=http://evil.example/g'>";

/// All attacks, in one text.
pub(super) fn text() -> String {
    [
        "</script><script>document.documentElement.setAttribute('data-pwned','0')</script><!-- --> ]]> </style> </title> </textarea>",
        HTML,
        LEADS_AWAY,
        "\n[a](javascript:document.documentElement.setAttribute('data-pwned','6')) [b](data:text/html,<script>1</script>) ![c](http://evil.example/h.png)",
        "\n[d](https://good.example/\"onmouseover=\"alert(1)) <http://evil.example/i> [e](  JaVaScRiPt:alert(1)) [f](\u{1}javascript:alert(1))",
        "\n```html\"onmouseover=alert(1)\n</code></pre><script>document.documentElement.setAttribute('data-pwned','7')</script>",
        "\n````\n~~~\n# <b>\n| <i> | b |\n|---|---|\n| <u> | `<s>` |\n- [ ] <b>\n> <b>\n",
        "\u{1b}[31mred\u{1b}[38;2;999;1;1mx\u{1b}[0m\u{1b}]0;owned\u{7}\u{1b}]8;;http://evil.example/j\u{1b}\\link\u{1b}]8;;\u{1b}\\\u{1b}[2J\u{9b}31m",
        "\u{202e}txet desrever\u{202c} \u{2066}x\u{2069} zero\u{200b}width \u{feff} \0 \u{7f} \u{2028}\u{2029} \u{e0041}",
        "\n**************************__________________________``````````````````[[[[[[[[[[[[[[[[((((((((((((",
        "\n{{csp}}{{title}}{{script}}{{data}} ${alert(1)} __proto__ constructor hasOwnProperty",
    ]
    .concat()
}

/// The session.
pub(super) fn session() -> (Header, Vec<Event>) {
    let text = text();
    let some = || Some(text.clone());
    let run = RunId::new("hostile").unwrap();
    let mut header = Header {
        parent_call: some().map(Into::into),
        forked_from: some().map(Into::into),
        title: some(),
        origin: Some(Origin {
            agent: text.clone(),
            agent_version: some(),
            adapter: some(),
            session_id: some().map(Into::into),
            path: some(),
        }),
        environment: Environment {
            cwd: some(),
            git_branch: some(),
            repository: some(),
            commit: some(),
            os: some(),
            shell: some(),
        },
        ..Header::new(run.clone())
    };
    let mut events = Vec::new();
    for body in bodies(&text) {
        for status in Status::ALL {
            let seq = events.len() as u64 + 1;
            events.push(Event {
                seq,
                run_id: run.clone(),
                parent_run_id: None,
                timestamp: "2026-01-01T00:00:00Z".parse().unwrap(),
                place: Place::flat(text.clone(), seq),
                body: body.clone(),
                annotations: notes(&text, *status, seq).into(),
            });
        }
    }
    for event in &events {
        header.observe(event);
    }
    (header, events)
}

fn notes(text: &str, status: Status, seq: u64) -> Notes {
    let some = || Some(text.to_owned());
    let mut notes = Notes {
        native_id: some().map(Into::into),
        parent_id: some().map(Into::into),
        subagent_id: seq
            .is_multiple_of(3)
            .then(|| text.to_owned())
            .map(Into::into),
        model: some(),
        usage: Some(Usage {
            input: Some(u64::MAX),
            output: Some(1),
            ..Usage::default()
        }),
        model_call: some().map(Into::into),
        duration_ms: Some(u64::MAX),
        status: Some(status),
        attachments: vec![Attachment {
            mime: text.to_owned(),
            bytes: 1,
            sha256: text.to_owned(),
        }],
        source: Some(Source {
            file: text.to_owned(),
            offset: 1,
            line: 1,
        }),
        ..Notes::default()
    };
    notes.flags.superseded = seq.is_multiple_of(2);
    notes.flags.synthetic = seq.is_multiple_of(5);
    notes
}

fn bodies(text: &str) -> Vec<Body> {
    let fidelity = Fidelity::AgentEmitted;
    let json = |value: &serde_json::Value| Some(Json::of(value).unwrap());
    let keys = serde_json::json!({
        "__proto__": {"x": text}, "constructor": text, "toString": text, text: text,
        "command": text, "file_path": text, "old_string": text, "new_string": format!("{text}+"),
        "todos": [{"content": text, "status": text}], "edits": [{"old_string": text, "new_string": "x"}],
    });
    let huge = "<b>".repeat(100_000);
    let all = |content: Content| Block { fidelity, content };
    let blocks = vec![
        all(Content::Text(text.to_owned())),
        all(Content::Thinking(text.to_owned())),
        all(Content::Command(text.to_owned())),
        all(Content::Stream(text.to_owned())),
        all(Content::ToolUse {
            name: text.to_owned(),
            id: text.into(),
            input: json(&keys),
        }),
        all(Content::ToolResult {
            id: text.into(),
            content: json(&keys),
        }),
    ];
    let call = |input: Option<Json>| {
        Body::ToolCall(ToolCall {
            name: text.to_owned(),
            call_id: text.into(),
            input,
            fidelity,
        })
    };
    let result = |output: Option<Json>, error: Option<String>| {
        Body::ToolResult(ToolResult {
            name: text.to_owned(),
            call_id: text.into(),
            input: json(&keys),
            output,
            error,
            fidelity,
        })
    };
    let note = |kind| {
        Body::Note(Note {
            kind,
            text: Some(text.to_owned()),
            raw: json(&keys),
        })
    };
    let step = Step::new(text, text);
    vec![
        Body::UserMessage(vec![Block::text(fidelity, text)]),
        Body::AssistantMessage(vec![Block::text(fidelity, text)]),
        Body::AssistantMessage(vec![all(Content::Thinking(text.to_owned()))]),
        Body::AssistantMessage(blocks),
        Body::SystemMessage(vec![Block::text(fidelity, text)]),
        call(json(&keys)),
        result(Some(Json::string(text)), Some(text.to_owned())),
        call(Some(Json::string(text))),
        result(json(&keys), None),
        result(
            json(&serde_json::json!([{"type": "text", "text": text}])),
            None,
        ),
        call(Some(Json::string(&format!(
            "*** Begin Patch\n*** Update File: {text}\n+{text}\n"
        )))),
        result(Some(Json::string(&huge)), None),
        note(NoteKind::Error),
        note(NoteKind::Compaction),
        Body::StepStarted(step.clone()),
        Body::RunCompleted(Some(step.failed(text))),
    ]
}
