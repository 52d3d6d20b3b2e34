//! Sessions, redacted.

mod golden;
mod policy;
mod property;
mod tamper;

use quipu_formats::normalized::{self, Beyond, NormalizedOptions, Writer};
use quipu_model::{
    Annotations, Block, Body, Event, Fidelity, Header, Json, Place, RunId, ToolCall, ToolResult,
};

use super::{Decisions, Learned, Outcome, Redactor};
use crate::rule::{Kind, Pattern, Rule, RuleSet, expand};
use crate::{Engine, Key, Profile};

/// A few rules of each kind.
pub(crate) fn engine() -> Engine {
    let rule = |id: &str, kind, pattern: Pattern| Rule {
        group: "test".to_owned(),
        ..Rule::new(id, kind, pattern)
    };
    let regex = |expression: &str| Pattern::Regex(expression.to_owned());
    let named = Pattern::Named {
        names: vec!["password".to_owned()],
        value: r"\S{6,}".to_owned(),
    };
    let rules = RuleSet {
        rules: vec![
            rule("github", Kind::Secret, regex(r"ghp_[0-9A-Za-z]{36}")),
            rule("password", Kind::Secret, named),
            rule("card", Kind::Pii, regex(r"\b[0-9]{16}\b")),
            rule("email", Kind::Pii, regex(r"[a-z]+@[a-z]+\.[a-z]{2,3}")),
            rule("path", Kind::Path, regex(r"/home/[a-z]+[^\s]*")),
        ],
        allow: Vec::new(),
    };
    Engine::new(&rules, |_| true).unwrap()
}

pub(crate) fn key() -> Key {
    Key::from_bytes([5; 32])
}

/// A token that looks like one.
pub(crate) fn token(seed: u64) -> String {
    expand("ghp_{alnum:36}", seed).unwrap().text
}

pub(crate) type Events = Vec<(Event, Beyond)>;

/// Goes through a session as callers do: once for the outcome, once to write.
pub(crate) fn share(
    header: &Header,
    options: &NormalizedOptions,
    events: &Events,
    profile: &Profile,
) -> (Outcome, Events, Vec<u8>) {
    share_with(header, options, events, profile, &Decisions::default())
}

pub(crate) fn share_with(
    header: &Header,
    options: &NormalizedOptions,
    events: &Events,
    profile: &Profile,
    decisions: &Decisions,
) -> (Outcome, Events, Vec<u8>) {
    let engine = engine();
    let mut learned = Learned::default();
    learned.header(header);
    for (event, beyond) in events {
        learned.event(header, event, beyond);
    }
    let pass = |sink: &mut super::Sink<'_>| {
        let mut redactor = Redactor::new(
            &engine,
            profile,
            &key(),
            decisions,
            header,
            options,
            &learned,
        );
        for (event, beyond) in events {
            redactor.event(event.clone(), beyond.clone(), sink).unwrap();
        }
        redactor.finish(sink).unwrap()
    };
    let outcome = pass(&mut |_, _| Ok(()));
    let mut writer = Writer::new(&outcome.header, &outcome.options, Vec::new()).unwrap();
    let mut shared = Vec::new();
    let again = pass(&mut |event, beyond| {
        writer.write(&event, &beyond)?;
        shared.push((event, beyond));
        Ok(())
    });
    assert_eq!(again, outcome, "twice is not the same");
    (outcome, shared, writer.end().unwrap().1)
}

pub(crate) fn profiles() -> Vec<Profile> {
    Profile::NAMES
        .iter()
        .filter_map(|name| Profile::builtin(name))
        .collect()
}

pub(crate) fn header() -> Header {
    let mut header = Header::new(RunId::new("run-1").unwrap());
    header.environment.cwd = Some("/home/ada/code/app".to_owned());
    header.environment.repository = Some("https://example.com/lovelace/engine.git".to_owned());
    header.environment.git_branch = Some("fix/loom-7".to_owned());
    header.environment.commit = Some("a1b2c3d".to_owned());
    header
}

pub(crate) fn event(seq: u64, body: Body) -> Event {
    Event {
        seq,
        run_id: RunId::new("run-1").unwrap(),
        parent_run_id: None,
        timestamp: format!("2026-06-22T10:00:{:02}.5Z", seq % 60)
            .parse()
            .unwrap(),
        place: Place::run(),
        body,
        annotations: Annotations::default(),
    }
}

pub(crate) fn said(text: &str) -> Body {
    Body::UserMessage(vec![Block::text(Fidelity::AgentEmitted, text)])
}

pub(crate) fn call(id: &str, name: &str, input: &str) -> Body {
    Body::ToolCall(ToolCall {
        name: name.to_owned(),
        call_id: id.into(),
        input: Some(Json::parse(input).unwrap()),
        fidelity: Fidelity::AgentEmitted,
    })
}

pub(crate) fn result(id: &str, name: &str, output: &str) -> Body {
    Body::ToolResult(ToolResult {
        name: name.to_owned(),
        call_id: id.into(),
        input: None,
        output: Some(Json::parse(output).unwrap()),
        error: None,
        fidelity: Fidelity::AgentEmitted,
    })
}

/// A session of these, numbered from 1.
pub(crate) fn session(bodies: Vec<Body>) -> (Header, Events) {
    let mut header = header();
    let events: Events = (1..)
        .zip(bodies)
        .map(|(seq, body)| (event(seq, body), Beyond::default()))
        .collect();
    for (event, _) in &events {
        header.observe(event);
    }
    (header, events)
}

/// What is written, as text.
pub(crate) fn written(bodies: Vec<Body>, profile: &str) -> String {
    let (header, events) = session(bodies);
    let profile = Profile::builtin(profile).unwrap();
    let (_, _, bytes) = share(&header, &NormalizedOptions::default(), &events, &profile);
    check(&bytes);
    String::from_utf8(bytes).unwrap()
}

/// The copy is good by itself.
pub(crate) fn check(bytes: &[u8]) {
    let report = crate::receipt::verify(bytes).unwrap();
    assert!(
        report.is_good(),
        "{:?}\n{}",
        report.problems,
        String::from_utf8_lossy(bytes)
    );
    let report = normalized::verify(bytes).unwrap();
    assert!(
        report.is_valid(),
        "{:?}\n{}",
        report.findings,
        String::from_utf8_lossy(bytes)
    );
}
