//! One session through each profile, byte for byte. `QUIPU_BLESS=1` writes them anew.

use std::path::Path;

use quipu_formats::normalized::{Beyond, NormalizedOptions};
use quipu_model::{Block, Body, Content, Fidelity, Origin, Source, Status, Usage};

use super::{Events, call, check, key, profiles, result, said, session, share, token};
use crate::receipt::Against;

/// A session with something of everything that is removed.
fn example() -> (quipu_model::Header, Events) {
    let block = |content| Block {
        fidelity: Fidelity::AgentEmitted,
        content,
    };
    let (mut header, mut events) = session(vec![
        said(&format!(
            "Deploy it with {}, and mail ada@example.com",
            token(1)
        )),
        Body::AssistantMessage(vec![block(Content::Thinking(
            "The token goes to the loom.".to_owned(),
        ))]),
        call(
            "c1",
            "Read",
            r#"{"file_path":"/home/ada/code/app/src/loom.rs"}"#,
        ),
        result("c1", "Read", r#""fn weave() {}\nfn spin() {}\n""#),
        call(
            "c2",
            "Bash",
            &format!(
                r#"{{"command":"curl -H 'Authorization: {}' https://example.com"}}"#,
                token(1)
            ),
        ),
        result("c2", "Bash", r#"{"stdout":"ok from /home/bob/x","code":0}"#),
        said("thanks"),
    ]);
    header.title = Some("Deploy the loom".to_owned());
    header.origin = Some(Origin {
        agent: "claude-code".to_owned(),
        path: Some("/home/ada/.claude/projects/-home-ada-code-app/x.jsonl".to_owned()),
        ..Origin::default()
    });
    let notes = &mut events[5].0.annotations;
    (notes.status, notes.duration_ms) = (Some(Status::Ok), Some(4200));
    events[1].0.annotations.usage = Some(Usage {
        input: Some(12),
        output: Some(40),
        ..Usage::default()
    });
    events[0].0.annotations.source = Some(Source {
        file: "/home/ada/.claude/projects/-home-ada-code-app/x.jsonl".to_owned(),
        offset: 0,
        line: 1,
    });
    header.totals.usage = events[1].0.annotations.usage.unwrap_or_default();
    (header, events)
}

#[test]
fn a_session_through_each_profile() {
    let (header, events) = example();
    let options = NormalizedOptions {
        adapter_version: Some("1".to_owned()),
        ..NormalizedOptions::default()
    };
    for profile in profiles() {
        let (_, _, bytes) = share(&header, &options, &events, &profile);
        check(&bytes);
        let mut against = Against::new(&bytes[..], &header, &options, Some(&key())).unwrap();
        for (event, beyond) in &events {
            against.event(event, beyond).unwrap();
        }
        let report = against.finish().unwrap();
        assert!(report.is_good(), "{}: {:?}", profile.name, report.problems);
        assert_eq!(report.opened, report.spans);
        let path = Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("src/session/tests/golden")
            .join(format!("{}.json", profile.name));
        // The example's token is made up each time anew from its template, and is not to be in a file.
        let text = String::from_utf8(bytes)
            .unwrap()
            .replace(&token(1), "TOKEN");
        if std::env::var_os("QUIPU_BLESS").is_some() {
            let mut file = std::fs::File::create(&path).unwrap();
            std::io::Write::write_all(&mut file, text.as_bytes()).unwrap();
        }
        let expected = std::fs::read_to_string(&path).unwrap();
        assert_eq!(text, expected, "{}", path.display());
    }
    assert!(
        events
            .iter()
            .all(|(_, beyond)| *beyond == Beyond::default())
    );
}
