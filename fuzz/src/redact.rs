//! Redacting what is no more than bytes.

use quipu_redact::raw::{RawOptions, Shape, redact};
use quipu_redact::rule::{Kind, Pattern};
use quipu_redact::{Engine, Key, Rule, RuleSet};

/// A word that is looked for, and a name whose value is.
fn engine() -> Engine {
    let rule = |id: &str, pattern| Rule::new(id, Kind::Secret, pattern);
    let named = Pattern::Named {
        names: vec!["pass".into()],
        value: "[a-z]{4,}".into(),
    };
    let rules = RuleSet {
        rules: vec![
            rule("word", Pattern::Regex(r"\btok_[0-9a-z]{4}\b".into())),
            rule("name", named),
        ],
        allow: Vec::new(),
    };
    Engine::new(&rules, |_| true).expect("the rules are right")
}

fn run(engine: &Engine, options: &RawOptions, input: &[u8]) -> Vec<u8> {
    let mut output = Vec::new();
    let mut findings = 0;
    let mut read = input;
    let summary = redact(engine, options, &mut read, &mut output, &mut |_| {
        findings += 1
    });
    let summary = summary.expect("memory does not fail");
    assert_eq!(summary.bytes, input.len() as u64);
    assert_eq!(summary.redacted + summary.near, findings);
    output
}

/// Redacts some bytes: with nothing to look for they stay as they are; otherwise JSON stays JSON, lines stay lines, and
/// redacting again changes nothing.
pub fn raw(bytes: &[u8]) {
    let Some((&how, input)) = bytes.split_first() else {
        return;
    };
    let shape = [
        None,
        Some(Shape::Jsonl),
        Some(Shape::Json),
        Some(Shape::Text),
    ][usize::from(how & 3)];
    let mut options = RawOptions::new(Key::from_bytes([1; 32]));
    options.shape = shape;
    options.files = false;
    options.max_line = if how & 4 == 0 { 1 << 20 } else { 64 };
    let nothing = Engine::new(&RuleSet::default(), |_| true).expect("there are no rules");
    assert_eq!(run(&nothing, &options, input), input);
    let engine = engine();
    options.files = how & 8 == 0;
    let once = run(&engine, &options, input);
    options.threads = 2;
    assert_eq!(run(&engine, &options, input), once);
    if shape == Some(Shape::Jsonl) && how & 4 == 0 {
        let valid =
            |line: &[u8]| serde_json::from_slice::<&serde_json::value::RawValue>(line).is_ok();
        let lines = |bytes: &[u8]| {
            bytes
                .split(|byte| *byte == b'\n')
                .map(<[u8]>::to_vec)
                .collect::<Vec<_>>()
        };
        let (before, after) = (lines(input), lines(&once));
        assert_eq!(before.len(), after.len());
        for (before, after) in before.iter().zip(&after) {
            assert!(!valid(before) || valid(after));
        }
        assert_eq!(run(&engine, &options, &once), once);
    }
}
