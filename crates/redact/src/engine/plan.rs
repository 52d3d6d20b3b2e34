//! How each rule is looked for, worked out once.

use std::sync::OnceLock;

use regex_automata::hybrid::dfa::DFA;
use regex_automata::meta::Regex;
use regex_automata::nfa::thompson;
use regex_syntax::hir::{Hir, HirKind};

use super::boundary;
use super::encoded::LEAST;
use super::numbers::Trigger;
use super::often::is_everyday;
use super::shape::{self, Anchor, Reach, Sequence, Set};
use super::triggers::Triggers;
use super::words::{Word, Words};
use crate::rule::{Check, Expression, Pattern, Rule, build};

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

/// What a rule does with its expression.
#[derive(Debug)]
pub(super) struct Program {
    hir: Option<Hir>,
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
    searched: OnceLock<Option<Regex>>,
    tried: OnceLock<Option<DFA>>,
    swept: OnceLock<Option<Regex>>,
}

impl Program {
    fn new(rule: &Rule) -> Result<Self, String> {
        let (mut boundary, mut groups, mut hir) = (false, 0, None);
        match &rule.pattern {
            Pattern::Regex(source) => {
                let expression = Expression::parse(source)?;
                groups = expression.groups();
                let core = shape::core(&expression.hir, groups == 0);
                boundary = core.boundary;
                hir = Some(core.hir);
            }
            Pattern::Named { value, .. } => {
                let expression = Expression::parse(&format!(r"\A(?:{value})\z"))?;
                groups = expression.groups();
                hir = Some(expression.hir);
            }
            Pattern::File => {}
        }
        let properties = hir.as_ref().map(Hir::properties);
        Ok(Self {
            boundary,
            groups,
            least: properties
                .and_then(regex_syntax::hir::Properties::minimum_len)
                .unwrap_or(0),
            most: properties.and_then(regex_syntax::hir::Properties::maximum_len),
            rank: rank(rule),
            keywords: Vec::new(),
            hir,
            searched: OnceLock::new(),
            tried: OnceLock::new(),
            swept: OnceLock::new(),
        })
    }

    /// The expression, for searching and for its groups.
    pub(super) fn searched(&self) -> Option<&Regex> {
        let build = || build(self.hir.as_ref()?).ok();
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
                .build_from_hir(self.hir.as_ref()?)
                .ok()?;
            let config = DFA::config()
                .cache_capacity(1 << 19)
                .skip_cache_capacity_check(true)
                .unicode_word_boundary(true);
            DFA::builder().configure(config).build_from_nfa(nfa).ok()
        };
        self.tried.get_or_init(build).as_ref()
    }

    /// The expression with what stands before a word, for going over the rest of a text once.
    pub(super) fn swept(&self) -> Option<&Regex> {
        let built = || {
            let hir = self.hir.clone()?;
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
    let mut triggers = Vec::new();
    for (index, rule) in rules.iter().enumerate() {
        let mut program = Program::new(rule).map_err(|why| (index, why))?;
        match &rule.pattern {
            Pattern::File => plan.files.push(index),
            Pattern::Named { names, .. } => {
                for (place, name) in names.iter().enumerate() {
                    for word in leads(name) {
                        lexicon.add_name(&word, index, place);
                    }
                }
            }
            Pattern::Regex(_) if rule.keywords.is_empty() => match keyless(rule, &program) {
                Some((trigger, begins)) => triggers.push((index, trigger, begins)),
                None => plan.always.push(index),
            },
            Pattern::Regex(_) => keyed(index, rule, &mut program, &mut lexicon),
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
struct Lexicon {
    words: Vec<Word>,
    actions: Vec<Vec<Action>>,
    names: Vec<Vec<(usize, usize)>>,
    known: rustc_hash::FxHashMap<String, usize>,
}

impl Lexicon {
    fn word(&mut self, word: &str, next: Set) -> usize {
        let index = *self.known.entry(word.to_owned()).or_insert_with(|| {
            self.words.push(Word {
                spelled: word.to_owned(),
                next: Set::default(),
            });
            self.actions.push(Vec::new());
            self.names.push(Vec::new());
            self.words.len() - 1
        });
        self.words[index].next.union(&next);
        index
    }

    fn add_name(&mut self, word: &str, rule: usize, name: usize) {
        let index = self.word(word, Set::ALL);
        self.names[index].push((rule, name));
    }

    /// Adds what is done where a word stands with one of some bytes behind it.
    fn add(&mut self, word: &str, next: Set, action: Action) -> usize {
        let index = self.word(word, next);
        if !self.actions[index].contains(&action) {
            self.actions[index].push(action);
        }
        index
    }
}

fn keyed(rule: usize, data: &Rule, program: &mut Program, lexicon: &mut Lexicon) {
    let Some(hir) = &program.hir else { return };
    let mut keywords = Vec::new();
    if let Some(anchors) = shape::anchors(hir, &data.keywords) {
        for Anchor { word, offset, next } in anchors {
            let index = lexicon.add(
                &word,
                next.unwrap_or(Set::ALL),
                Action::Try { rule, offset },
            );
            if !keywords.contains(&index) {
                keywords.push(index);
            }
        }
    } else {
        let action = match shape::reach(hir, &data.keywords) {
            Some(reach) if reach.before.is_some() => Action::Around { rule, reach },
            _ => Action::Whole { rule },
        };
        for keyword in &data.keywords {
            keywords.push(lexicon.add(keyword, Set::ALL, action));
        }
    }
    program.keywords = keywords;
}

/// How a rule without keywords is found without looking everywhere, if it can be.
fn keyless(rule: &Rule, program: &Program) -> Option<(Trigger, Vec<Sequence>)> {
    let hir = program.hir.as_ref()?;
    let parts = match hir.kind() {
        HirKind::Concat(parts) => parts.as_slice(),
        _ => std::slice::from_ref(hir),
    };
    if let Some(reach) = shape::reach(hir, &["@".to_owned()])
        && let Some(before) = reach.before
    {
        let trigger = Trigger::At {
            before,
            behind: reach.behind,
        };
        return Some((trigger, Vec::new()));
    }
    if let Some((before, between)) = dotted(parts).filter(|_| program.boundary) {
        return Some((Trigger::Dots { before, between }, Vec::new()));
    }
    let sequences = shape::sequences(parts)?;
    let trigger = by_digits(rule, program, hir, &sequences)?;
    Some((trigger, sequences))
}

/// How a rule is found by the digits it begins with.
fn by_digits(rule: &Rule, program: &Program, hir: &Hir, sequences: &[Sequence]) -> Option<Trigger> {
    let alphabet = shape::alphabet(hir)?;
    if !program.boundary
        && !sequences.iter().all(|one| {
            one.sets
                .first()
                .is_some_and(|set| set.all(|byte| matches!(byte, b'+' | b'(')))
        })
    {
        return None;
    }
    let first = |is: &dyn Fn(u8) -> bool| {
        sequences
            .iter()
            .all(|one| one.sets.first().is_some_and(|set| set.all(is)))
    };
    let plus = |one: &shape::Sequence| {
        let digit = one
            .sets
            .get(1)
            .is_some_and(|set| set.all(|byte| byte.is_ascii_digit()));
        digit && one.sets[0].all(|byte| byte == b'+')
    };
    if !program.boundary && sequences.iter().all(plus) {
        return Some(Trigger::Plus);
    }
    let needs = |byte: u8| shape::reach(hir, &[char::from(byte).to_string()]).is_some();
    let several = rule.check == Some(Check::Ipv6) || program.least >= 11;
    if several && first(&|byte| byte.is_ascii_hexdigit()) && needs(b':') {
        return Some(Trigger::Colons {
            least: program.least,
            address: rule.check == Some(Check::Ipv6),
        });
    }
    if first(&|byte| byte.is_ascii_digit() || matches!(byte, b'+' | b'(')) {
        let numeric = alphabet.all(|byte| byte.is_ascii_digit() || super::numbers::joint(byte));
        let rows = sequences.iter().map(|one| {
            let digits = one
                .sets
                .iter()
                .skip_while(|set| set.all(|byte| matches!(byte, b'+' | b'(')))
                .take_while(|set| set.all(|byte| byte.is_ascii_digit()));
            digits.count()
        });
        let row = rows.min().unwrap_or(0);
        let long = row >= super::numbers::LEAST_DIGITS;
        let numeric = numeric && program.least >= 7;
        return (numeric || long).then_some(Trigger::Number);
    }
    // Some letters and then a digit: accounts of banks, plates.
    let letters = sequences
        .first()?
        .sets
        .iter()
        .take_while(|set| set.all(|byte| byte.is_ascii_alphabetic()))
        .count();
    let same = sequences.iter().all(|one| {
        let lettered = one
            .sets
            .iter()
            .take(letters)
            .all(|set| set.all(|byte| byte.is_ascii_alphabetic()));
        lettered
            && one
                .sets
                .get(letters)
                .is_some_and(|set| set.all(|byte| byte.is_ascii_digit()))
    });
    (same && (1..=8).contains(&letters)).then_some(Trigger::Lettered { letters })
}

/// How many bytes stand before a first dot at least, when they are many, and how many between it and a second.
fn dotted(parts: &[Hir]) -> Option<(usize, usize)> {
    let dot = |part: &Hir| matches!(part.kind(), HirKind::Literal(literal) if *literal.0 == *b".");
    let first = parts.iter().position(dot)?;
    let least = |part: &Hir| part.properties().minimum_len();
    let before: usize = parts[..first].iter().map(least).sum::<Option<usize>>()?;
    let [between, second, ..] = &parts[first + 1..] else {
        return None;
    };
    let length = least(between).filter(|_| between.properties().maximum_len() == least(between))?;
    (before >= LEAST && dot(second)).then_some((before, length))
}

/// Words of names that stand for what kind of thing it is, not whose.
const COMMON: &[&str] = &[
    "key",
    "api",
    "token",
    "secret",
    "client",
    "access",
    "auth",
    "password",
    "passwd",
    "pass",
    "pwd",
    "url",
    "uri",
    "account",
    "app",
    "cli",
    "dsn",
    "webhook",
    "private",
    "service",
    "bot",
    "user",
    "license",
    "signing",
    "id",
    "credential",
    "credentials",
    "encryption",
    "master",
    "admin",
    "refresh",
    "session",
    "bearer",
    "shared",
    "storage",
    "connection",
    "string",
    "phrase",
    "code",
    "sas",
    "db",
    "database",
    "root",
    "oauth",
    "personal",
    "deploy",
    "publish",
    "read",
    "write",
    "project",
    "data",
    "number",
    "name",
    "address",
    "birth",
    "of",
    "date",
    "seed",
    "pair",
    "street",
    "first",
    "last",
    "given",
    "family",
    "full",
    "real",
    "middle",
    "maiden",
    "become",
    "vault",
    "insurance",
    "routing",
    "tax",
    "security",
    "social",
    "card",
    "holder",
    "postal",
];

/// The words that a name is found by: the one of its parts that is its own, or the longest. Where that is short or in
/// everybody's mouth, it is two parts in a row however they are joined.
fn leads(name: &str) -> Vec<String> {
    let parts = split(name);
    let own = parts
        .iter()
        .filter(|part| part.len() >= 5 && !COMMON.contains(part) && !is_everyday(part))
        .max_by_key(|part| part.len());
    let longest = own.or_else(|| parts.iter().max_by_key(|part| part.len()));
    let lead = longest.copied().unwrap_or(name);
    match parts.as_slice() {
        [.., one, two] if lead.len() < 5 || is_everyday(lead) => ["", "_", "-", ".", " "]
            .iter()
            .map(|joint| format!("{one}{joint}{two}"))
            .collect(),
        _ => vec![lead.to_owned()],
    }
}

fn split(name: &str) -> Vec<&str> {
    let mut parts = Vec::new();
    let mut rest = name;
    while let Some(word) = COMMON
        .iter()
        .filter(|word| rest.ends_with(**word))
        .max_by_key(|word| word.len())
    {
        let (before, word) = rest.split_at(rest.len() - word.len());
        parts.push(word);
        rest = before;
        if rest.is_empty() {
            break;
        }
    }
    if !rest.is_empty() {
        parts.push(rest);
    }
    parts.reverse();
    parts
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

    #[test]
    fn names_are_found_by_their_longest_part() {
        assert_eq!(leads("heroku"), ["heroku"]);
        assert_eq!(leads("togetherapi"), ["together"]);
        assert_eq!(leads("clientsecret"), ["secret"]);
        assert_eq!(
            leads("apikey"),
            ["apikey", "api_key", "api-key", "api.key", "api key"]
        );
        assert_eq!(leads("exakey")[1], "exa_key");
        assert_eq!(leads("key"), ["key"]);
        assert_eq!(leads("etsykeystring")[1], "key_string");
        assert_eq!(leads("freshservice"), ["fresh"]);
    }
}
