//! What the rules at hand are about, found out by asking them.

use super::keys::Class;
use crate::rule::{Kind, expand};
use crate::{Context, Engine, Scratch};

/// How many digits a number has at most that only counts. Numbers of cards and the like have more.
pub(super) const LONGEST_COUNT: usize = 8;

/// What rules answer.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Asked {
    /// The rule that finds passwords by their name, if there is one.
    pub(super) password: Option<usize>,
    /// Whether no rule is about what only counts or tells records apart, so that it may be passed by.
    pub(super) passes: bool,
}

impl Asked {
    /// What the rules of an engine answer for a file. They are asked once.
    pub(super) fn of(engine: &Engine, file: Option<&str>) -> Self {
        let asked = *engine.asked.get_or_init(|| Self {
            password: password(engine),
            passes: passes(engine),
        });
        Self {
            passes: asked.passes && !file.is_some_and(|file| engine.has_rules_for(file)),
            ..asked
        }
    }
}

/// Which rule says that something is a password because of its name.
fn password(engine: &Engine) -> Option<usize> {
    let sample = expand("Kx7-{alnum:12}", 1)?;
    let context = Context {
        name: Some("password"),
        ..Context::default()
    };
    let mut found = Vec::new();
    engine.scan(&mut Scratch::default(), &sample.text, context, &mut found);
    let rule = found.first()?.rule;
    (engine.rules().rules[rule].kind == Kind::Secret).then_some(rule)
}

/// Whether nothing is found in counts, times and ids under the keys that are known for them. They stand on every line,
/// and are never twice the same. Rules that somebody wrote may be about a single one of them, which no sample shows.
fn passes(engine: &Engine) -> bool {
    const UNIQUE: [&str; 8] = [
        "{uuid}",
        "toolu_01{alnum:22}",
        "req_011{alnum:22}",
        "msg_{lownum:24}",
        "{hex:8}-{hex:4}-4{hex:3}-b{hex:3}-{hex:12}",
        "019{hex:5}-{hex:4}-7{hex:3}-8{hex:3}-{hex:12}",
        "202{digit:1}-0{digit:1}-1{digit:1}T1{digit:1}:0{digit:1}:4{digit:1}Z",
        "202{digit:1}-1{digit:1}-0{digit:1}T0{digit:1}:5{digit:1}:1{digit:1}.{digit:3}Z",
    ];
    const COUNTS: [&str; 3] = ["1{digit:3}", "2{digit:5}", "3{digit:7}"];
    if !engine.rules().rules.iter().all(|rule| rule.comes_along) {
        return false;
    }
    let mut scratch = Scratch::default();
    let mut found = Vec::new();
    for (class, templates) in [(Class::UNIQUE, &UNIQUE[..]), (Class::COUNT, &COUNTS)] {
        let samples = templates.iter().zip(1..);
        let samples = samples.filter_map(|(template, seed)| expand(template, seed));
        for sample in samples {
            for name in class.keys() {
                let context = Context {
                    name: Some(name),
                    file: None,
                    near: true,
                };
                engine.scan(&mut scratch, &sample.text, context, &mut found);
            }
        }
    }
    found.is_empty()
}
