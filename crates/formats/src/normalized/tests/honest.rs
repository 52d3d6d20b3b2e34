//! What is written from a document claims nothing that the document does not.

use quipu_model::{Body, NoteKind, Status};

use super::round_trip::{read_all, rewrite};

fn document(sections: &str, events: &str) -> String {
    format!(
        r#"{{"schemaVersion":"0.1.0","transcriptId":"t-1","source":{{"agent":"codex"}}{sections},"events":[{events}]}}"#
    )
}

fn result(tool: &str) -> String {
    document(
        "",
        &format!(
            r#"{{"id":"ev_001","seq":1,"timestamp":"2026-06-22T10:00:03Z","type":"tool_result","role":"tool","tool":{{"name":"Bash","callId":"c1","output":"x"{tool}}}}}"#
        ),
    )
}

fn again(document: &str) -> String {
    let (bytes, _) = rewrite(document.as_bytes());
    let once = String::from_utf8(bytes).unwrap();
    let twice = String::from_utf8(rewrite(once.as_bytes()).0).unwrap();
    assert_eq!(once, twice);
    once
}

#[test]
fn a_status_that_is_not_known_is_not_ok() {
    for (word, status) in [
        ("failed", Status::Error),
        ("odd", Status::Error),
        ("skipped", Status::Error),
        ("rejected", Status::Denied),
        ("permission-denied", Status::Denied),
        ("timed_out", Status::Timeout),
        ("success", Status::Ok),
        ("Completed", Status::Ok),
    ] {
        let document = result(&format!(r#","status":"{word}""#));
        let (_, events) = read_all(document.as_bytes());
        assert_eq!(events[0].0.annotations.status, Some(status), "{word}");
        let written = format!(r#""status":"{}","nativeStatus":"{word}""#, status.as_str());
        let again = again(&document);
        assert!(again.contains(&written), "{again}");
        let (_, loss) = rewrite(document.as_bytes());
        assert!(loss.is_complete(), "{loss}");
    }
    // What a writer could not tell is not made up from the word that stands for it.
    let document = result(r#","status":"failed","nativeStatus":null"#);
    let (_, events) = read_all(document.as_bytes());
    assert_eq!(events[0].0.annotations.status, Some(Status::Error));
    let document = result(r#","status":"ok","nativeStatus":null"#);
    let (_, events) = read_all(document.as_bytes());
    assert_eq!(events[0].0.annotations.status, None);
}

#[test]
fn the_status_of_a_call_stays_as_it_is() {
    let call = document(
        "",
        r#"{"id":"ev_001","seq":1,"timestamp":"2026-06-22T10:00:03Z","type":"tool_call","role":"assistant","tool":{"name":"Bash","callId":"c1","input":{},"status":"running"}}"#,
    );
    let (_, events) = read_all(call.as_bytes());
    assert_eq!(events[0].0.annotations.status, None);
    assert!(again(&call).contains(r#""status":"running""#));
}

#[test]
fn half_a_character_is_counted() {
    let event = |fields: &str| {
        document(
            "",
            &format!(
                r#"{{"id":"ev_001","seq":1,"timestamp":"2026-06-22T10:00:03Z","type":"user_message","role":"user",{fields}}}"#
            ),
        )
    };
    for (fields, place) in [
        (r#""text":"a\ud83d b""#, Some("events[0].text")),
        (r#""text":"a\udc00""#, Some("events[0].text")),
        (r#""text":"\\\ud83d""#, Some("events[0].text")),
        (
            r#""blocks":[{"type":"text","text":"x"},{"type":"text","text":"\uD83D\u0041"}]"#,
            Some("events[0].blocks.text"),
        ),
        (r#""text":"x","model":"\ud800""#, Some("events[0].model")),
        // A whole pair, what only looks like one half, U+FFFD itself, and what is kept as it stands.
        (r#""text":"\ud83d\ude00""#, None),
        (r#""text":"\\ud83d""#, None),
        (r#""text":"\ufffd""#, None),
        (r#""text":"x","mood":"\ud83d""#, None),
    ] {
        let (read, _) = read_all(event(fields).as_bytes());
        let found: Vec<&str> = read.mismatches.iter().map(|it| it.field.as_ref()).collect();
        assert_eq!(found, place.into_iter().collect::<Vec<_>>(), "{fields}");
        assert_eq!(read.altered, u64::from(place.is_some()), "{fields}");
    }
    let output = result(r#","input":{"a":"\ud83d"}"#);
    assert_eq!(read_all(output.as_bytes()).0.altered, 0);
    assert!(again(&output).contains(r#"{"a":"\ud83d"}"#));
    let title = document(r#","session":{"title":"\ud83d"}"#, "");
    assert_eq!(read_all(title.as_bytes()).0.altered, 1);
}

#[test]
fn an_event_of_another_type_is_written_as_it_is() {
    let odd = r#"{"id":"x-9","seq":1,"timestamp":"2026-06-22T10:00:03Z","type":"applause","role":"crowd","clap":[1, 2.50],"text":"half \ud83d"}"#;
    let meta = r#"{"kind":"applause","n":1.0}"#;
    let document = document(
        "",
        &format!(
            r#"{odd},{{"id":"ev_002","seq":2,"timestamp":"2026-06-22T10:00:04Z","type":"meta","role":"system","meta":{meta}}}"#
        ),
    );
    let (read, events) = read_all(document.as_bytes());
    for (event, beyond) in &events {
        assert!(matches!(&event.body, Body::Note(note) if note.kind == NoteKind::UnknownRecord));
        assert!(!beyond.is_empty());
    }
    assert_eq!(read.beyond, 2);
    let again = again(&document);
    assert!(again.contains(odd), "{again}");
    assert!(again.contains(&format!(r#""meta":{meta}"#)), "{again}");
}

#[test]
fn what_a_document_does_not_say_stays_unsaid() {
    let privacy = |document: &str| {
        let again = again(document);
        let line = again.lines().find(|line| line.starts_with("\"privacy\""));
        line.unwrap().trim_end_matches(',').to_owned()
    };
    for (said, written) in [
        ("", "null"),
        (r#","privacy":null"#, "null"),
        (r#","privacy":{}"#, "{}"),
        (
            r#","privacy":{"redactionApplied":true}"#,
            r#"{"redactionApplied":true}"#,
        ),
        (
            r#","privacy":{"contentPolicy":{}}"#,
            r#"{"contentPolicy":{}}"#,
        ),
        (
            r#","privacy":{"profile":"x","contentPolicy":{"toolOutput":"none"}}"#,
            r#"{"profile":"x","contentPolicy":{"toolOutput":"none"}}"#,
        ),
    ] {
        let document = document(said, "");
        assert_eq!(privacy(&document), format!("\"privacy\":{written}"));
    }
    let submitter = document(r#","submitter":{"keyId":"k"}"#, "");
    assert!(!again(&submitter).contains("identityLinked"));
}
