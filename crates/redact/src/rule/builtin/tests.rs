//! Every rule finds its own examples, all of the secret and no more, and none of its counterexamples.

use std::collections::HashSet;
use std::ops::Range;

use regex_automata::meta::Regex;
use regex_automata::util::syntax;
use serde::Deserialize;

use super::FILES;
use crate::rule::{Sample, expand};

const SEEDS: Range<u64> = 0..12;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    rules: Vec<Rule>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Rule {
    id: String,
    description: String,
    label: String,
    #[serde(default)]
    kind: Option<String>,
    #[serde(default)]
    severity: Option<String>,
    #[serde(default)]
    keywords: Vec<String>,
    #[serde(default)]
    regex: Option<String>,
    #[serde(default)]
    names: Vec<String>,
    #[serde(default)]
    value: Option<String>,
    #[serde(default)]
    secret_group: Option<usize>,
    #[serde(default)]
    entropy: Option<f64>,
    #[serde(default)]
    check: Option<String>,
    examples: Vec<String>,
    #[serde(default)]
    counterexamples: Vec<String>,
    #[serde(default)]
    allowlists: Vec<Allow>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Allow {
    #[serde(default)]
    regexes: Vec<String>,
    #[serde(default)]
    stopwords: Vec<String>,
}

fn rules() -> Vec<(&'static str, Rule)> {
    let mut all = Vec::new();
    for (name, text) in FILES {
        let file: File = toml::from_str(text).unwrap_or_else(|error| panic!("{name}: {error}"));
        all.extend(file.rules.into_iter().map(|rule| (*name, rule)));
    }
    all
}

fn compile(rule: &str, expression: &str) -> Regex {
    let syntax = syntax::Config::new().unicode(false).utf8(false);
    let built = Regex::builder().syntax(syntax).build(expression);
    built.unwrap_or_else(|error| panic!("{rule}: {error}"))
}

fn bits(secret: &[u8]) -> f64 {
    let mut counts = [0_u32; 256];
    for byte in secret {
        counts[usize::from(*byte)] += 1;
    }
    let total = f64::from(u32::try_from(secret.len()).unwrap());
    let share = |count: u32| f64::from(count) / total;
    let seen = counts.iter().filter(|count| **count > 0);
    seen.map(|count| -share(*count) * share(*count).log2())
        .sum()
}

fn joined(name: &str) -> String {
    let letters = name.chars().filter(char::is_ascii_alphanumeric);
    letters.collect::<String>().to_ascii_lowercase()
}

/// A rule, ready to be tried.
struct Ready<'a> {
    rule: &'a Rule,
    expression: Regex,
    allow: Vec<Regex>,
}

impl<'a> Ready<'a> {
    fn new(rule: &'a Rule) -> Self {
        let expression = match (&rule.regex, &rule.value) {
            (Some(regex), None) => compile(&rule.id, regex),
            (None, Some(value)) => compile(&rule.id, &format!("^(?:{value})$")),
            _ => panic!("{}: either a regex or names with a value", rule.id),
        };
        let lists = rule.allowlists.iter().flat_map(|list| &list.regexes);
        Self {
            rule,
            expression,
            allow: lists.map(|regex| compile(&rule.id, regex)).collect(),
        }
    }

    fn passes(&self, secret: &str) -> bool {
        let lower = secret.to_ascii_lowercase();
        let mut words = self.rule.allowlists.iter().flat_map(|list| &list.stopwords);
        self.rule
            .entropy
            .is_none_or(|least| bits(secret.as_bytes()) >= least)
            && !self.allow.iter().any(|allow| allow.is_match(secret))
            && !words.any(|word| lower.contains(word.as_str()))
    }

    /// What a rule with an expression finds; of one with names, whether it would take the secret of a sample.
    fn find(&self, sample: &Sample) -> Vec<Range<usize>> {
        let text = sample.text.as_str();
        let mut found = Vec::new();
        if self.rule.regex.is_some() {
            for captures in self.expression.captures_iter(text) {
                let first = captures.get_group(1).or_else(|| captures.get_group(0));
                let span = self
                    .rule
                    .secret_group
                    .map_or(first, |group| captures.get_group(group));
                found.extend(span.map(|span| span.range()));
            }
        } else if let Some(secret) = sample.secret.clone() {
            let name = joined(&text[..secret.start]);
            let named = self
                .rule
                .names
                .iter()
                .any(|word| name.contains(word.as_str()));
            if named && self.expression.is_match(&text[secret.clone()]) {
                found.push(secret);
            }
        } else {
            // Without a secret that is marked, every word of the text is a value.
            let mut at = 0;
            for word in text.split([' ', '=', '"', '\'', ',']) {
                let named = joined(&text[..at]);
                let named = self
                    .rule
                    .names
                    .iter()
                    .any(|name| named.contains(name.as_str()));
                if named && self.expression.is_match(word) {
                    found.push(at..at + word.len());
                }
                at += word.len() + 1;
            }
        }
        found.retain(|span| self.passes(&text[span.clone()]));
        found
    }
}

#[test]
fn every_rule_finds_its_examples_and_nothing_else() {
    let mut wrong = Vec::new();
    for (_, rule) in &rules() {
        let ready = Ready::new(rule);
        for (template, seed) in rule
            .examples
            .iter()
            .flat_map(|template| SEEDS.map(move |seed| (template, seed)))
        {
            let Some(sample) = expand(template, seed) else {
                wrong.push(format!("{}: no template: {template}", rule.id));
                break;
            };
            let Some(secret) = sample.secret.clone() else {
                wrong.push(format!("{}: nothing is marked: {template}", rule.id));
                break;
            };
            let found = ready.find(&sample);
            if !found.contains(&secret) {
                wrong.push(format!(
                    "{}: {template} (seed {seed}): {secret:?} is not in {found:?}",
                    rule.id
                ));
                break;
            }
        }
        // What these look at is known to the engine alone.
        if matches!(rule.check.as_deref(), Some("secret" | "password")) {
            continue;
        }
        for (template, seed) in rule
            .counterexamples
            .iter()
            .flat_map(|template| SEEDS.map(move |seed| (template, seed)))
        {
            let sample =
                expand(template, seed).unwrap_or_else(|| panic!("{}: {template}", rule.id));
            let found = ready.find(&sample);
            if !found.is_empty() {
                wrong.push(format!(
                    "{}: counterexample {template} (seed {seed}): {found:?}",
                    rule.id
                ));
                break;
            }
        }
    }
    assert!(
        wrong.is_empty(),
        "{}\n{} wrong",
        wrong.join("\n"),
        wrong.len()
    );
}

#[test]
fn rules_are_well_made() {
    let mut ids = HashSet::new();
    let mut wrong = Vec::new();
    for (_, rule) in &rules() {
        let mut say = |what: &str| wrong.push(format!("{}: {what}", rule.id));
        if !ids.insert(rule.id.clone()) {
            say("there are two of this id");
        }
        if rule.description.is_empty() || rule.examples.is_empty() {
            say("description and examples are wanted");
        }
        let label = |byte: &u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || *byte == b'-';
        if rule.label.is_empty() || !rule.label.as_bytes().iter().all(label) {
            say("the label is a word in lower case");
        }
        let secret = rule.kind.as_deref().is_none_or(|kind| kind == "secret");
        if rule.regex.is_some() && rule.keywords.is_empty() && secret {
            say("a secret has keywords");
        }
        for word in rule.keywords.iter().chain(&rule.names) {
            if word.len() < 3 || *word != word.to_ascii_lowercase() {
                say("words have three letters or more, in lower case");
            }
        }
        if rule.names.iter().any(|name| *name != joined(name)) {
            say("names are written without what joins words");
        }
        for sample in rule
            .examples
            .iter()
            .filter_map(|template| expand(template, 1))
        {
            let text = sample.text.to_ascii_lowercase();
            if !rule.keywords.is_empty()
                && !rule
                    .keywords
                    .iter()
                    .any(|word| text.contains(word.as_str()))
            {
                say("an example has none of the keywords");
            }
        }
        if !matches!(rule.severity.as_deref(), None | Some("low" | "medium")) {
            say("no such severity");
        }
        let checks = "luhn iban ipv4 ipv6 phone email jwt national-id secret password";
        if rule
            .check
            .as_deref()
            .is_some_and(|check| !checks.split(' ').any(|known| known == check))
        {
            say("no such check");
        }
    }
    assert!(
        wrong.is_empty(),
        "{}\n{} wrong",
        wrong.join("\n"),
        wrong.len()
    );
}

#[test]
fn there_are_rules_for_230_kinds_of_secrets() {
    let all = rules();
    let secrets = all
        .iter()
        .filter(|(_, rule)| rule.kind.as_deref().is_none_or(|kind| kind == "secret"));
    assert!(secrets.count() >= 230);
}
