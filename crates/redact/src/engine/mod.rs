//! Finds what rules describe, in one pass over a text.

use std::ops::Range;

use regex_automata::meta::Regex;
use regex_automata::util::syntax;

use crate::rule::{Kind, Pattern, RuleSet};
use crate::{RuleError, Severity};

/// Rules, ready to be looked for.
#[derive(Debug)]
pub struct Engine {
    rules: RuleSet,
    expressions: Vec<Option<Regex>>,
}

/// What is reused from text to text.
#[derive(Debug, Default)]
pub struct Scratch {}

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

impl Engine {
    /// Gets rules ready: those that `wanted` says yes to.
    ///
    /// # Errors
    ///
    /// A rule whose expression is none; nothing is ready then.
    pub fn new(rules: &RuleSet, wanted: impl Fn(&crate::Rule) -> bool) -> Result<Self, RuleError> {
        let mut rules = rules.clone();
        rules.rules.retain(|rule| wanted(rule));
        let mut expressions = Vec::new();
        for rule in &rules.rules {
            let expression = match &rule.pattern {
                Pattern::Regex(expression) => expression.clone(),
                Pattern::Named { value, .. } => format!("^(?:{value})$"),
                Pattern::File => {
                    expressions.push(None);
                    continue;
                }
            };
            let syntax = syntax::Config::new().unicode(false).utf8(false);
            let built = Regex::builder().syntax(syntax).build(&expression);
            expressions.push(Some(built.map_err(|error| RuleError::Rule {
                file: "rules".into(),
                rule: rule.id.clone(),
                why: error.to_string(),
            })?));
        }
        Ok(Self { rules, expressions })
    }

    /// The rules that are looked for. [`Found::rule`] is a place among them.
    pub fn rules(&self) -> &RuleSet {
        &self.rules
    }

    /// The kind and severity of what a finding is of.
    pub fn grade(&self, found: &Found) -> (Kind, Severity) {
        let rule = &self.rules.rules[found.rule];
        (rule.kind, rule.severity)
    }

    /// Looks at a text. What is found is added to `found`, in order and without overlaps.
    pub fn scan(
        &self,
        _scratch: &mut Scratch,
        text: &str,
        context: Context<'_>,
        found: &mut Vec<Found>,
    ) {
        let from = found.len();
        for (index, rule) in self.rules.rules.iter().enumerate() {
            let Some(expression) = &self.expressions[index] else {
                continue;
            };
            if let Pattern::Named { names, .. } = &rule.pattern {
                let name = context.name.unwrap_or_default().to_ascii_lowercase();
                if !names.iter().any(|word| name.contains(word.as_str())) {
                    continue;
                }
            }
            for captures in expression.captures_iter(text) {
                let first = captures.get_group(1).or_else(|| captures.get_group(0));
                let span = match rule.secret_group {
                    Some(group) => captures.get_group(group),
                    None => first,
                };
                let Some(span) = span else { continue };
                found.push(Found {
                    rule: index,
                    span: span.range(),
                    certainty: Certainty::Sure,
                });
            }
        }
        found[from..].sort_by_key(|found| (found.span.start, found.span.end));
        let mut end = 0;
        let mut at = 0;
        found.retain(|found| {
            at += 1;
            let keep = at <= from || found.span.start >= end;
            if keep && at > from {
                end = found.span.end;
            }
            keep
        });
    }
}
