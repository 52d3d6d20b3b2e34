//! How each rule is looked for, worked out once.

use std::sync::OnceLock;

use regex_automata::hybrid::dfa::DFA;
use regex_automata::meta::Regex;
use regex_automata::nfa::thompson;
use regex_syntax::hir::Hir;

use super::boundary;
use super::facts::{self, Facts, Way};
use super::shape::{self, Anchor, Reach, Set};
use super::triggers::Triggers;
use super::words::{Word, Words};
use crate::rule::{Check, Expression, Pattern, Rule, build, build_with};

/// All rules, and the words that lead to them.
#[derive(Debug)]
pub(super) struct Plan {
    /// One for each rule.
    pub(super) programs: Vec<Program>,
    pub(super) words: Words,
    /// What is done where a word stands, by the number of the word.
    pub(super) actions: Vec<Vec<Action>>,
    /// The names that a word stands in, each as a rule and one of its names. What is given to them is held against the rule.
    pub(super) names: Vec<Vec<(usize, usize)>>,
    /// Rules that are tried where digits stand, and how.
    pub(super) triggers: Triggers,
    /// Rules that are looked for in every text.
    pub(super) always: Vec<usize>,
    /// Rules about whole files.
    pub(super) files: Vec<usize>,
    /// How far before a place that tells something a rule may be tried.
    pub(super) back: usize,
}

/// What is done where a word stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Action {
    /// A rule is tried so many bytes before it.
    Try { rule: usize, offset: usize },
    /// A rule is looked for around it.
    Around { rule: usize, reach: Reach },
    /// A rule is looked for in the whole text.
    Whole { rule: usize },
}

/// What a rule does with its expression. What it needs for that is made when it is first needed: of most rules nothing is
/// ever found.
#[derive(Debug)]
pub(super) struct Program {
    /// The expression; none of a rule about whole files.
    source: Option<String>,
    /// Whether it is one of a value that has a name.
    named: bool,
    /// Whether a word has to begin where a match begins.
    pub(super) boundary: bool,
    /// How many groups there are beside the whole.
    pub(super) groups: usize,
    /// The least and the most bytes of a match.
    pub(super) least: usize,
    pub(super) most: Option<usize>,
    /// How special it is: what is special wins.
    pub(super) rank: u8,
    /// Words that stand in a match, as their numbers; for the slow way.
    pub(super) keywords: Vec<usize>,
    hir: OnceLock<Option<Hir>>,
    captured: OnceLock<Option<Regex>>,
    searched: OnceLock<Option<Regex>>,
    tried: OnceLock<Option<Box<DFA>>>,
    swept: OnceLock<Option<Regex>>,
}

impl Program {
    fn new(rule: &Rule, facts: &Facts) -> Self {
        let (source, named) = match &rule.pattern {
            Pattern::Regex(source) => (Some(source.clone()), false),
            Pattern::Named { value, .. } => (Some(value.clone()), true),
            Pattern::File => (None, false),
        };
        Self {
            source,
            named,
            boundary: facts.boundary,
            groups: facts.groups,
            least: facts.least,
            most: facts.most,
            rank: rank(rule),
            keywords: Vec::new(),
            hir: OnceLock::new(),
            captured: OnceLock::new(),
            searched: OnceLock::new(),
            tried: OnceLock::new(),
            swept: OnceLock::new(),
        }
    }

    /// What is tried and searched for.
    fn hir(&self) -> Option<&Hir> {
        let read = || {
            let source = self.source.as_deref()?;
            Some(facts::core(source, self.named).ok()?.hir)
        };
        self.hir.get_or_init(read).as_ref()
    }

    /// The expression, for the groups of a match whose begin and end are known. It costs a fraction of one to search with.
    pub(super) fn captured(&self) -> Option<&Regex> {
        let build = || build_with(self.hir()?, false).ok();
        self.captured.get_or_init(build).as_ref()
    }

    /// The expression, for searching and for its groups.
    pub(super) fn searched(&self) -> Option<&Regex> {
        let build = || build(self.hir()?).ok();
        self.searched.get_or_init(build).as_ref()
    }

    /// The expression, for trying it at one place and knowing how much was read.
    pub(super) fn tried(&self) -> Option<&DFA> {
        let build = || {
            let nfa = thompson::Compiler::new()
                .configure(
                    thompson::Config::new()
                        .which_captures(thompson::WhichCaptures::None)
                        .utf8(false),
                )
                .build_from_hir(self.hir()?)
                .ok()?;
            let config = DFA::config()
                .cache_capacity(1 << 19)
                .skip_cache_capacity_check(true)
                .unicode_word_boundary(true);
            let built = DFA::builder().configure(config).build_from_nfa(nfa);
            built.ok().map(Box::new)
        };
        self.tried.get_or_init(build).as_deref()
    }

    /// The expression with what stands before a word, for going over the rest of a text once.
    pub(super) fn swept(&self) -> Option<&Regex> {
        let built = || {
            let hir = self.hir()?.clone();
            if !self.boundary {
                return build(&hir).ok();
            }
            let before = Expression::parse(boundary::BEGINS).ok()?.hir;
            build(&Hir::concat(vec![before, group(hir, self.groups)])).ok()
        };
        self.swept.get_or_init(built).as_ref()
    }
}

/// Puts the whole behind the other groups, so that it is known where it begins.
fn group(hir: Hir, groups: usize) -> Hir {
    Hir::capture(regex_syntax::hir::Capture {
        index: u32::try_from(groups + 1).unwrap_or(u32::MAX),
        name: None,
        sub: Box::new(hir),
    })
}

/// What has a form of its own is more special than what has only a name, and that than what has only a common one.
fn rank(rule: &Rule) -> u8 {
    match (&rule.pattern, rule.check) {
        (_, Some(Check::Secret | Check::Password)) => 2,
        (Pattern::Named { .. }, _) => 3,
        (Pattern::Regex(_), _) if rule.kind == crate::Kind::Secret && rule.group == "generic" => 2,
        (Pattern::File, _) => 5,
        (Pattern::Regex(_), _) => match rule.kind {
            crate::Kind::Secret => 4,
            crate::Kind::Pii => 1,
            crate::Kind::Path | crate::Kind::Identity => 0,
        },
    }
}

/// Works out how rules are looked for.
pub(super) fn plan(rules: &[Rule]) -> Result<Plan, (usize, String)> {
    let mut lexicon = Lexicon::default();
    let mut plan = Plan {
        programs: Vec::with_capacity(rules.len()),
        words: Words::default(),
        actions: Vec::new(),
        names: Vec::new(),
        triggers: Triggers::default(),
        always: Vec::new(),
        files: Vec::new(),
        back: 0,
    };
    let mut written = crate::ready::facts();
    let facts = rules.iter().enumerate().map(|(index, rule)| {
        let facts = written.of(rule);
        facts.map_or_else(|| Facts::of(rule).map_err(|why| (index, why)), Ok)
    });
    let facts: Vec<Facts> = facts.collect::<Result<_, _>>()?;
    let mut triggers = Vec::new();
    for (index, (rule, facts)) in rules.iter().zip(&facts).enumerate() {
        let mut program = Program::new(rule, facts);
        match &facts.way {
            Way::File => plan.files.push(index),
            Way::Named(leads) => {
                for (place, words) in leads.iter().enumerate() {
                    for word in words {
                        lexicon.add_name(word, index, place);
                    }
                }
            }
            Way::Trigger(trigger, begins) => triggers.push((index, *trigger, begins.as_slice())),
            Way::Always => plan.always.push(index),
            Way::Anchors(anchors) => {
                for Anchor { word, offset, next } in anchors {
                    let action = Action::Try {
                        rule: index,
                        offset: *offset,
                    };
                    let word = lexicon.add(word, next.unwrap_or(Set::ALL), action);
                    if !program.keywords.contains(&word) {
                        program.keywords.push(word);
                    }
                }
            }
            Way::Around(reach) => {
                let action = reach.map_or(Action::Whole { rule: index }, |reach| Action::Around {
                    rule: index,
                    reach,
                });
                for keyword in &rule.keywords {
                    let word = lexicon.add(keyword, Set::ALL, action);
                    program.keywords.push(word);
                }
            }
        }
        plan.programs.push(program);
    }
    plan.words = Words::new(&lexicon.words);
    plan.actions = lexicon.actions;
    plan.names = lexicon.names;
    plan.triggers = Triggers::new(triggers);
    plan.back = plan.words.longest() + shape::PREFIX + 64;
    Ok(plan)
}

#[derive(Default)]
struct Lexicon<'a> {
    words: Vec<Word<'a>>,
    actions: Vec<Vec<Action>>,
    names: Vec<Vec<(usize, usize)>>,
    known: rustc_hash::FxHashMap<&'a str, usize>,
}

impl<'a> Lexicon<'a> {
    fn word(&mut self, word: &'a str, next: Set) -> usize {
        let index = *self.known.entry(word).or_insert_with(|| {
            self.words.push(Word {
                spelled: word,
                next: Set::default(),
            });
            self.actions.push(Vec::new());
            self.names.push(Vec::new());
            self.words.len() - 1
        });
        self.words[index].next.union(&next);
        index
    }

    fn add_name(&mut self, word: &'a str, rule: usize, name: usize) {
        let index = self.word(word, Set::ALL);
        self.names[index].push((rule, name));
    }

    /// Adds what is done where a word stands with one of some bytes behind it.
    fn add(&mut self, word: &'a str, next: Set, action: Action) -> usize {
        let index = self.word(word, next);
        if !self.actions[index].contains(&action) {
            self.actions[index].push(action);
        }
        index
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Otherwise every text is searched for them from end to end.
    #[test]
    fn rules_that_come_along_are_tried_where_their_words_stand() {
        let rules = crate::RuleSet::builtin();
        let plan = plan(&rules.rules).unwrap();
        let always = plan
            .always
            .iter()
            .map(|rule| rules.rules[*rule].id.as_str());
        assert_eq!(always.collect::<Vec<_>>(), Vec::<&str>::new());
        let whole = plan
            .actions
            .iter()
            .flatten()
            .filter_map(|action| match action {
                Action::Whole { rule } => Some(rules.rules[*rule].id.as_str()),
                _ => None,
            });
        let whole: std::collections::BTreeSet<&str> = whole.collect();
        assert!(whole.len() <= 6, "{whole:?}");
    }
}
