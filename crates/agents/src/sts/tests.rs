use insta::assert_snapshot;
use proptest::prelude::*;
use quipu_formats::projection::Nowhere;
use quipu_formats::sts::{StsOptions, writer};

use super::{LINES, Sts};
use crate::atif::tests::story::{Done, done, said, session};
use crate::testkit::{hostile, read};

const SESSION: &str = include_str!("../../fixtures/sts/session.jsonl");

#[test]
fn a_session() {
    let read = read(SESSION.as_bytes(), "s.jsonl").unwrap();
    assert_snapshot!(read.lines());
    assert_eq!(read.session.title.as_deref(), Some("Listing"));
}

#[test]
fn broken_lines() {
    hostile(&Sts, LINES, SESSION);
}

#[test]
fn logs_of_pi_stay_its_own() {
    let pi = r#"{"type":"session","version":3,"id":"s","timestamp":"2026-01-02T03:04:05Z","cwd":"/code","harness":"pi"}
{"type":"message","id":"0a1b2c3d","parentId":null,"timestamp":"2026-01-02T03:04:05Z","message":{"role":"user","content":[{"type":"text","text":"hi"}],"timestamp":1767323045000}}
"#;
    let (family, _) = crate::identify(pi.as_bytes(), true).unwrap();
    assert_eq!(family.name(), "pi");
    // Without a harness, it is no session of the Hub's.
    let other = r#"{"type":"session","id":"s"}"#;
    let found = crate::identify(other.as_bytes(), true);
    assert!(found.is_none_or(|(family, _)| family.name() != "sts"));
}

/// What the Hub has no value for: it is read as the text that it was carried as.
fn as_text(done: Vec<Done>) -> Vec<Done> {
    let text = |(word, id, name, value): Done| {
        let is_text = value.as_ref().is_some_and(|value| value.starts_with('"'));
        let value = match value {
            Some(value) if word == "tool.result" && !is_text => {
                Some(quipu_model::Json::string(&value).get().to_owned())
            }
            value => value,
        };
        (word, id, name, value)
    };
    done.into_iter().map(text).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn what_is_written_reads_back((mut header, events) in session(false)) {
        header.title = Some("A \"title\"".to_owned());
        let mut text = Vec::new();
        let options = StsOptions::default();
        let mut to = writer(&header, &options, Box::new(&mut text), Box::new(Nowhere)).unwrap();
        for event in &events {
            to.event(event).unwrap();
        }
        to.finish().unwrap();
        let read = read(&text, "s.jsonl").unwrap();
        prop_assert_eq!(read.dialect.name, "sts");
        prop_assert_eq!(&read.session.title, &header.title);
        prop_assert_eq!(said(&read.events), said(&events), "{}", String::from_utf8_lossy(&text));
        prop_assert_eq!(done(&read.events), as_text(done(&events)), "{}", String::from_utf8_lossy(&text));
        prop_assert!(read.ledger.drift.unknown.is_empty());
    }
}
