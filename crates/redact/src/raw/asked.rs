//! What the rules at hand are about, found out by asking them.

use crate::rule::{Kind, expand};
use crate::{Context, Engine, Scratch};

/// How many digits a number has at most that only counts. Numbers of cards and the like have more.
pub(super) const LONGEST_COUNT: usize = 8;

/// Whether no rule is about what only counts or tells records apart, so that it need not be looked at: counts, times and ids
/// under the keys that are known for them stand on every line, and are never twice the same. Of the rules that come with the
/// program a test says so. Rules that somebody wrote may be about a single one of them, which no sample shows.
pub(super) fn passes(engine: &Engine, file: Option<&str>) -> bool {
    engine.rules().rules.iter().all(|rule| rule.comes_along)
        && !file.is_some_and(|file| engine.has_rules_for(file))
}

/// Which rule says that something is a password because of its name, if there is one. It is asked for once.
pub(super) fn password(engine: &Engine) -> Option<usize> {
    *engine.password.get_or_init(|| find_password(engine))
}

fn find_password(engine: &Engine) -> Option<usize> {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::RuleSet;
    use crate::raw::keys::Class;

    #[test]
    fn no_rule_that_comes_along_is_about_counts_times_and_ids() {
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
        let engine = Engine::new(&RuleSet::builtin(), |_| true).unwrap();
        let mut scratch = Scratch::default();
        for (class, templates) in [(Class::UNIQUE, &UNIQUE[..]), (Class::COUNT, &COUNTS)] {
            for (template, seed) in templates
                .iter()
                .flat_map(|one| (1..9).map(move |seed| (one, seed)))
            {
                let sample = expand(template, seed).unwrap();
                for name in class.keys() {
                    let context = Context {
                        name: Some(name),
                        file: None,
                        near: true,
                    };
                    let mut found = Vec::new();
                    engine.scan(&mut scratch, &sample.text, context, &mut found);
                    assert_eq!(found, [], "{name}: {}", sample.text);
                }
            }
        }
    }
}
