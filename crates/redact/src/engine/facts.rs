//! What is worked out of a rule before it is looked for. All of it follows from the rule, so it is written down for the
//! rules that come with the program (`ready.rs`): reading an expression takes longer than looking at a short text.

use regex_syntax::hir::{Hir, HirKind, Properties};
use serde::{Deserialize, Serialize};

use super::encoded::LEAST;
use super::numbers::Trigger;
use super::often::is_everyday;
use super::prefix;
use super::shape::{self, Anchor, Core, Reach, Sequence};
use crate::rule::{Check, Expression, Pattern, Rule};

/// What is known of a rule.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Facts {
    /// Whether a word has to begin where a match begins.
    pub(super) boundary: bool,
    /// How many groups there are beside the whole.
    pub(super) groups: usize,
    /// The least and the most bytes of a match.
    pub(super) least: usize,
    pub(super) most: Option<usize>,
    pub(super) way: Way,
}

/// How a rule is looked for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Way {
    /// By the file.
    File,
    /// By names: for each of them the words that lead to it.
    Named(Vec<Vec<String>>),
    /// Where words stand, of which one is in every match.
    Anchors(Vec<Anchor>),
    /// Around its keywords, so far, or in the whole text where one of them stands.
    Around(Option<Reach>),
    /// By digits, colons or an `@`, and by what a match begins with.
    Trigger(Trigger, Vec<Sequence>),
    /// In every text.
    Always,
}

/// What is tried and searched for of an expression. That of a value that has a name is held against all of the value.
pub(super) fn core(source: &str, named: bool) -> Result<Core, String> {
    if named {
        return Ok(Core {
            hir: Expression::parse(&format!(r"\A(?:{source})\z"))?.hir,
            boundary: false,
        });
    }
    let expression = Expression::parse(source)?;
    Ok(shape::core(&expression.hir, expression.groups() == 0))
}

impl Facts {
    /// Works out what is to be known of a rule.
    ///
    /// # Errors
    ///
    /// Its expression is none.
    pub(crate) fn of(rule: &Rule) -> Result<Self, String> {
        let (source, names) = match &rule.pattern {
            Pattern::Regex(source) => (source, None),
            Pattern::Named { names, value } => (value, Some(names)),
            Pattern::File => {
                return Ok(Self {
                    boundary: false,
                    groups: 0,
                    least: 0,
                    most: None,
                    way: Way::File,
                });
            }
        };
        let Core { hir, boundary } = core(source, names.is_some())?;
        let properties = hir.properties();
        let mut facts = Self {
            boundary,
            groups: properties.explicit_captures_len(),
            least: properties.minimum_len().unwrap_or(0),
            most: Properties::maximum_len(properties),
            way: Way::Always,
        };
        facts.way = match names {
            Some(names) => Way::Named(names.iter().map(|name| leads(name)).collect()),
            None if rule.keywords.is_empty() => keyless(rule, &facts, &hir)
                .map_or(Way::Always, |(trigger, begins)| {
                    Way::Trigger(trigger, prefix::heads(begins))
                }),
            None => {
                let around = || {
                    let reach = shape::reach(&hir, &rule.keywords);
                    Way::Around(reach.filter(|reach| reach.before.is_some()))
                };
                shape::anchors(&hir, &rule.keywords).map_or_else(around, Way::Anchors)
            }
        };
        Ok(facts)
    }
}

/// How a rule without keywords is found without looking everywhere, if it can be.
fn keyless(rule: &Rule, facts: &Facts, hir: &Hir) -> Option<(Trigger, Vec<Sequence>)> {
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
    if let Some((before, between)) = dotted(parts).filter(|_| facts.boundary) {
        return Some((Trigger::Dots { before, between }, Vec::new()));
    }
    let sequences = shape::sequences(parts)?;
    let trigger = by_digits(rule, facts, hir, &sequences)?;
    Some((trigger, sequences))
}

/// How a rule is found by the digits it begins with.
fn by_digits(rule: &Rule, facts: &Facts, hir: &Hir, sequences: &[Sequence]) -> Option<Trigger> {
    let alphabet = shape::alphabet(hir)?;
    if !facts.boundary
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
    if !facts.boundary && sequences.iter().all(plus) {
        return Some(Trigger::Plus);
    }
    let needs = |byte: u8| shape::reach(hir, &[char::from(byte).to_string()]).is_some();
    let several = rule.check == Some(Check::Ipv6) || facts.least >= 11;
    if several && first(&|byte| byte.is_ascii_hexdigit()) && needs(b':') {
        return Some(Trigger::Colons {
            least: facts.least,
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
        let numeric = numeric && facts.least >= 7;
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
