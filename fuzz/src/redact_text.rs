//! Files of rules, and texts that are looked at.

use std::path::Path;
use std::sync::LazyLock;

use quipu_redact::{Context, Engine, RuleSet, Scratch};

/// Reads a file of rules. What is read can be used, on the file itself.
pub fn rules(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else {
        return;
    };
    // No file that another is to stand on is looked for on the disk.
    if text.contains("path") {
        return;
    }
    let Ok(rules) = RuleSet::parse(text, Path::new("fuzz.toml")) else {
        return;
    };
    assert_eq!(rules.digest(), rules.digest());
    let engine = Engine::new(&rules, |_| true).expect("what was read can be used");
    look(&engine, text, None);
}

/// Looks at a text. A line that ends at the first byte zero, if there is one, is the name it is given to.
pub fn scan(bytes: &[u8]) {
    static ENGINE: LazyLock<Engine> = LazyLock::new(|| {
        Engine::new(&RuleSet::builtin(), |_| true).expect("rules that come along")
    });
    let text = String::from_utf8_lossy(bytes);
    match text.split_once('\0') {
        Some((name, text)) => look(&ENGINE, text, Some(name)),
        None => look(&ENGINE, &text, None),
    }
}

/// Findings are in order, apart, and of whole characters, also when the same scratch is used again.
fn look(engine: &Engine, text: &str, name: Option<&str>) {
    let mut scratch = Scratch::default();
    let mut all = [Vec::new(), Vec::new()];
    for found in &mut all {
        let context = Context {
            name,
            file: None,
            near: true,
        };
        engine.scan(&mut scratch, text, context, found);
        let mut end = 0;
        for found in found.iter() {
            assert!(found.span.start >= end && !found.span.is_empty());
            assert!(text.get(found.span.clone()).is_some());
            assert!(found.rule < engine.rules().rules.len());
            end = found.span.end;
        }
    }
    assert_eq!(all[0], all[1]);
}
