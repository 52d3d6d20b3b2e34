//! One word for all that decides what is found.

use sha2::{Digest as _, Sha256};

use super::{Allow, Pattern, Rule, RuleSet, Target};

impl RuleSet {
    /// SHA-256 in hex over everything that decides what is found: the same for the same rules in the same order,
    /// wherever they were read from. Descriptions and samples do not count.
    pub fn digest(&self) -> String {
        let mut sum = Sum(Sha256::new());
        sum.count(self.rules.len());
        for rule in &self.rules {
            sum.rule(rule);
        }
        sum.allow(&self.allow);
        quipu_model::hex::encode(&sum.0.finalize())
    }
}

/// Every text with its length before it, so that no two sets of rules run into the same bytes.
struct Sum(Sha256);

impl Sum {
    fn count(&mut self, count: usize) {
        self.0.update((count as u64).to_le_bytes());
    }

    fn text(&mut self, text: &str) {
        self.count(text.len());
        self.0.update(text);
    }

    fn texts(&mut self, texts: &[String]) {
        self.count(texts.len());
        for text in texts {
            self.text(text);
        }
    }

    fn rule(&mut self, rule: &Rule) {
        for text in [&rule.id, rule.kind.as_str(), &rule.group, &rule.label] {
            self.text(text);
        }
        self.text(rule.severity.as_str());
        self.texts(&rule.keywords);
        match &rule.pattern {
            Pattern::Regex(expression) => {
                self.text("regex");
                self.text(expression);
            }
            Pattern::Named { names, value } => {
                self.text("named");
                self.texts(names);
                self.text(value);
            }
            Pattern::File => self.text("file"),
        }
        self.count(rule.secret_group.map_or(0, |group| group + 1));
        self.count(rule.entropy.map_or(0, |entropy| {
            usize::try_from(entropy.to_bits()).unwrap_or(usize::MAX)
        }));
        self.text(rule.check.map_or("", super::Check::as_str));
        self.text(rule.path.as_deref().unwrap_or_default());
        self.allow(&rule.allow);
    }

    fn allow(&mut self, allows: &[Allow]) {
        self.count(allows.len());
        for allow in allows {
            for texts in [
                &allow.rules,
                &allow.regexes,
                &allow.stopwords,
                &allow.files,
                &allow.fields,
                &allow.values,
            ] {
                self.texts(texts);
            }
            self.text(match allow.target {
                Target::Secret => "secret",
                Target::Match => "match",
                Target::Line => "line",
            });
            self.count(usize::from(allow.all));
        }
    }
}
