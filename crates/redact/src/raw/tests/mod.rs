//! What comes out, for what goes in.

mod corpus;
mod files;
mod given;
mod property;
mod shapes;
mod split;

use super::{Finding, RawOptions, Shape, Summary, redact};
use crate::rule::{Allow, Kind, Pattern, Rule, RuleSet, expand};
use crate::{Engine, Key};

pub(super) fn rule(id: &str, label: &str, kind: Kind, pattern: Pattern) -> Rule {
    Rule {
        group: "test".into(),
        label: label.into(),
        ..Rule::new(id, kind, pattern)
    }
}

/// A token, a card, a password by its name, and a key over lines.
pub(super) fn rules() -> RuleSet {
    let regex = |text: &str| Pattern::Regex(text.into());
    let mut token = rule(
        "token",
        "github",
        Kind::Secret,
        regex(r"\bghp_[0-9A-Za-z]{36}\b"),
    );
    token.keywords = vec!["ghp_".into()];
    let card = rule("card", "card", Kind::Pii, regex(r"\b4[0-9]{15}\b"));
    let named = Pattern::Named {
        names: vec![
            "password".into(),
            "apikey".into(),
            "api_key".into(),
            "authorization".into(),
        ],
        value: r"\S{4,}".into(),
    };
    let password = rule("password", "password", Kind::Secret, named);
    let mut pem = rule(
        "pem",
        "private-key",
        Kind::Secret,
        regex(r"-----BEGIN PRIVATE KEY-----[\s\S]*?-----END PRIVATE KEY-----"),
    );
    pem.keywords = vec!["-----begin".into()];
    RuleSet {
        rules: vec![token, card, password, pem],
        allow: Vec::new(),
    }
}

pub(super) fn engine() -> Engine {
    Engine::new(&rules(), |_| true).unwrap()
}

pub(super) fn engine_with(allow: Allow) -> Engine {
    let mut rules = rules();
    rules.allow.push(allow);
    Engine::new(&rules, |_| true).unwrap()
}

pub(super) fn options() -> RawOptions {
    RawOptions::new(Key::from_bytes([7; 32]))
}

pub(super) fn token(seed: u64) -> String {
    expand("ghp_{alnum:36}", seed).unwrap().text
}

pub(super) struct Done {
    pub(super) bytes: Vec<u8>,
    pub(super) findings: Vec<Finding>,
    pub(super) summary: Summary,
}

impl Done {
    pub(super) fn text(&self) -> &str {
        std::str::from_utf8(&self.bytes).unwrap()
    }
}

pub(super) fn run(engine: &Engine, options: &RawOptions, input: &[u8]) -> Done {
    let (mut bytes, mut findings) = (Vec::new(), Vec::new());
    let summary = redact(
        engine,
        options,
        &mut &input[..],
        &mut bytes,
        &mut |finding| {
            findings.push(finding);
        },
    )
    .unwrap();
    assert_eq!(summary.bytes, input.len() as u64);
    Done {
        bytes,
        findings,
        summary,
    }
}

/// What is left of a text.
pub(super) fn left(input: &str) -> String {
    run(&engine(), &options(), input.as_bytes())
        .text()
        .to_owned()
}

/// The same, as lines.
pub(super) fn left_lines(input: &str) -> String {
    let options = RawOptions {
        shape: Some(Shape::Jsonl),
        ..options()
    };
    run(&engine(), &options, input.as_bytes()).text().to_owned()
}
