//! Finds what rules describe, in one pass over a text.
//!
//! ```text
//! survey.rs ─► which bytes there are; where numbers and rows of base64 stand: most of what follows is not done then
//! words.rs ──► where a word of a rule stands ───┬► the rule is tried there (scan.rs), by its shape (shape.rs, plan.rs)
//! triggers.rs ► where digits, colons, `@` stand ┘
//! assign.rs ─► what is given to a name ─────────► generic.rs: is it a secret?    letters.rs: or are these words?
//!                                                check/: are its digits right?   allow.rs: may it stand?
//! encoded.rs ► base64, percent signs, look-alikes, colours: the same again on what they say
//! overlap.rs ► which of two findings stands
//! ```
//!
//! Each of these looks by what is seldom: a word by the four bytes of it that are (often.rs), a number by its first bytes
//! (prefix.rs). A text is gone over in parts, and what was found in a part is tried before the next is looked at, so what is
//! held does not grow with the text.

mod allow;
mod assign;
mod attempts;
mod boundary;
mod check;
mod encoded;
mod facts;
mod generic;
mod innocent;
mod judge;
mod letters;
mod nameless;
mod numbers;
mod often;
mod overlap;
mod plan;
mod prefix;
mod scan;
mod shape;
mod survey;
mod triggers;
#[cfg(any(test, feature = "testkit"))]
pub mod whole;
mod words;

use std::ops::Range;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use regex_automata::meta::Regex;

use self::allow::Allows;
pub(crate) use self::facts::Facts;
use self::plan::Plan;
pub use self::scan::Scratch;
use crate::rule::{Expression, Kind, RuleSet, build};
use crate::{RuleError, Severity};

/// Rules, ready to be looked for.
#[derive(Debug)]
pub struct Engine {
    rules: RuleSet,
    plan: Plan,
    allows: Allows,
    /// The files that a rule is about.
    paths: Vec<Option<Regex>>,
    /// Whether some rule or allowlist is about certain files.
    asks_for_files: bool,
    /// Which engine it is: what is kept from text to text is of one.
    number: u64,
    /// The rule that finds passwords by their name, once it was asked for.
    pub(crate) password: OnceLock<Option<usize>>,
    /// The paths of its allowlists.
    pub(crate) fields: OnceLock<crate::raw::Fields>,
}

/// What is known of a text before it is looked at.
#[derive(Debug, Clone, Copy, Default)]
pub struct Context<'a> {
    /// The name the text is given to: the key of a JSON object, a header, a variable.
    pub name: Option<&'a str>,
    /// The file that the text is of, where it is the content of one.
    pub file: Option<&'a str>,
    /// Whether what is nearly a finding is wanted as well.
    pub near: bool,
}

/// Something in a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    /// Which rule, by its place in [`Engine::rules`].
    pub rule: usize,
    /// The bytes that are to be removed.
    pub span: Range<usize>,
    /// Whether it is one.
    pub certainty: Certainty,
}

/// How sure a finding is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Certainty {
    /// It is to be removed.
    Sure,
    /// It is to be looked at.
    Near(Why),
}

/// Why something is not a finding, but nearly one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Why {
    /// It looks like one, but its characters are not random enough.
    Entropy,
    /// It looks like one, but its check digits are wrong.
    Check,
    /// It has the shape of a secret, and its name does not say what it is.
    Unnamed,
    /// An allowlist lets it pass.
    Allowed,
}

impl Why {
    /// The word for it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Entropy => "entropy",
            Self::Check => "check",
            Self::Unnamed => "unnamed",
            Self::Allowed => "allowed",
        }
    }

    /// Whether nobody has said yet that it may stay.
    pub fn is_suspicious(self) -> bool {
        self != Self::Allowed
    }
}

static ENGINES: AtomicU64 = AtomicU64::new(1);

impl Engine {
    /// Gets rules ready: those that `wanted` says yes to.
    ///
    /// # Errors
    ///
    /// A rule whose expression is none; nothing is ready then.
    pub fn new(rules: &RuleSet, wanted: impl Fn(&crate::Rule) -> bool) -> Result<Self, RuleError> {
        let rules = RuleSet {
            rules: rules
                .rules
                .iter()
                .filter(|rule| wanted(rule))
                .cloned()
                .collect(),
            allow: rules.allow.clone(),
        };
        let error = |rule: Option<usize>, why| RuleError::Rule {
            file: "rules".into(),
            rule: rule.map_or_else(
                || "of [[allowlists]]".to_owned(),
                |rule| rules.rules[rule].id.clone(),
            ),
            why,
        };
        let plan = plan::plan(&rules.rules).map_err(|(rule, why)| error(Some(rule), why))?;
        let allows = Allows::new(&rules).map_err(|(rule, why)| error(rule, why))?;
        let mut paths = Vec::with_capacity(rules.rules.len());
        for (index, rule) in rules.rules.iter().enumerate() {
            let path = rule.path.as_deref().map(|source| {
                let expression = Expression::parse(source)?;
                build(&expression.hir)
            });
            paths.push(path.transpose().map_err(|why| error(Some(index), why))?);
        }
        Ok(Self {
            plan,
            asks_for_files: paths.iter().any(Option::is_some) || allows.ask_for_files(),
            allows,
            paths,
            rules,
            number: ENGINES.fetch_add(1, Ordering::Relaxed),
            password: OnceLock::new(),
            fields: OnceLock::new(),
        })
    }

    /// The rules that are looked for. [`Found::rule`] is a place among them.
    pub fn rules(&self) -> &RuleSet {
        &self.rules
    }

    /// Whether there are rules for a certain file.
    pub(crate) fn has_rules_for(&self, file: &str) -> bool {
        self.paths.iter().flatten().any(|path| path.is_match(file))
    }

    /// A number that no other engine has.
    pub(crate) fn number(&self) -> u64 {
        self.number
    }

    /// Whether what is found may depend on the name of the file that a text is of.
    pub(crate) fn asks_for_files(&self) -> bool {
        self.asks_for_files
    }

    /// The kind and severity of what a finding is of.
    pub fn grade(&self, found: &Found) -> (Kind, Severity) {
        let rule = &self.rules.rules[found.rule];
        (rule.kind, rule.severity)
    }

    /// What an allowlist names a value by: SHA-256 in hex.
    pub fn hash(value: &str) -> String {
        allow::hash(value)
    }

    /// Looks at a text. What is found is added to `found`, in order and without overlaps.
    pub fn scan(
        &self,
        scratch: &mut Scratch,
        text: &str,
        context: Context<'_>,
        found: &mut Vec<Found>,
    ) {
        scan::scan(self, scratch, text, context, found);
    }
}

#[cfg(test)]
mod tests;
