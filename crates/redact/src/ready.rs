//! What is known of the rules that come with the program, written down so that it need not be worked out at each start:
//! the rules themselves, and how they are looked for.
//!
//! `rules/ready/rules.bin` has the rules of each file, by a hash of its text; `rules/ready/facts.bin` what follows from
//! each rule, by a hash of that. Where one of them is older than the rules, what is missing is worked out as for any other
//! rule: only the start takes longer. A test says when that is so, and writes them anew with `QUIPU_BLESS=1`.

use std::hash::{Hash as _, Hasher as _};

use rustc_hash::{FxHashMap, FxHasher};

use crate::engine::Facts;
use crate::{Rule, RuleSet};

static RULES: &[u8] = include_bytes!("../rules/ready/rules.bin");
static FACTS: &[u8] = include_bytes!("../rules/ready/facts.bin");

/// Rules, by the text of their file.
pub(crate) struct Rules(Vec<(u64, Option<RuleSet>)>);

/// The rules that are written down.
pub(crate) fn rules() -> Rules {
    Rules(postcard::from_bytes(RULES).unwrap_or_default())
}

impl Rules {
    /// Takes the rules of a file out.
    pub(crate) fn of(&mut self, text: &str) -> Option<RuleSet> {
        let hash = hash_of_text(text);
        let known = self.0.iter_mut().find(|(known, _)| *known == hash)?;
        known.1.take()
    }
}

/// What follows from rules.
pub(crate) struct Written(FxHashMap<u64, Facts>);

/// What is written down of rules.
pub(crate) fn facts() -> Written {
    let all: Vec<(u64, Facts)> = postcard::from_bytes(FACTS).unwrap_or_default();
    Written(all.into_iter().collect())
}

impl Written {
    /// What is known of a rule that came with the program.
    pub(crate) fn of(&mut self, rule: &Rule) -> Option<Facts> {
        if !rule.comes_along {
            return None;
        }
        self.0.remove(&hash_of_rule(rule))
    }
}

fn hash_of_text(text: &str) -> u64 {
    let mut hasher = FxHasher::default();
    text.hash(&mut hasher);
    hasher.finish()
}

/// Of all that facts follow from.
fn hash_of_rule(rule: &Rule) -> u64 {
    let mut hasher = FxHasher::default();
    rule.id.hash(&mut hasher);
    rule.pattern.hash(&mut hasher);
    rule.keywords.hash(&mut hasher);
    rule.check.hash(&mut hasher);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;
    use crate::rule::builtin::FILES;

    fn fresh(name: &str, is: &[u8], should: &[u8]) {
        let path = format!("{}/rules/ready/{name}", env!("CARGO_MANIFEST_DIR"));
        if std::env::var_os("QUIPU_BLESS").is_some() {
            let mut file = std::fs::File::create(path).unwrap();
            file.write_all(should).unwrap();
            return;
        }
        assert!(
            is == should,
            "{name} is older than the rules: QUIPU_BLESS=1 writes it anew"
        );
    }

    #[test]
    fn what_is_written_down_follows_from_the_rules() {
        let files = FILES.iter().map(|(name, text)| {
            let rules = RuleSet::tested(name, text);
            (hash_of_text(text), Some(rules))
        });
        let files: Vec<(u64, Option<RuleSet>)> = files.collect();
        let rules = files.iter().filter_map(|(_, rules)| rules.as_ref());
        let rules = rules.flat_map(|rules| &rules.rules);
        let facts = rules.map(|rule| (hash_of_rule(rule), Facts::of(rule).unwrap()));
        let facts: Vec<(u64, Facts)> = facts.collect();
        fresh("rules.bin", RULES, &postcard::to_stdvec(&files).unwrap());
        fresh("facts.bin", FACTS, &postcard::to_stdvec(&facts).unwrap());
    }
}
