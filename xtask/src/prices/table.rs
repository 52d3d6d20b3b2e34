//! The table, as it is written.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use quipu_model::Money;

/// Which package a price is from, by the letter that stands for it.
pub(crate) const GENAI: &str = "g";
pub(crate) const LITELLM: &str = "l";
/// From the first, which has a later date; since ever by the second, which says the same.
pub(crate) const BOTH: &str = "gl";
/// By hand, from a vendor's page.
pub(crate) const HAND: &str = "v";

/// Prices per million tokens; of searches, per thousand.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Rates {
    pub(crate) input: Option<Money>,
    pub(crate) cache_read: Option<Money>,
    pub(crate) write_5m: Option<Money>,
    pub(crate) write_1h: Option<Money>,
    pub(crate) output: Option<Money>,
    pub(crate) reasoning: Option<Money>,
    pub(crate) searches: Option<Money>,
}

/// A price within a span of time: when in the day, for prompts longer than what.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Line {
    /// As `00:30-16:30`; empty for the rest of the day.
    pub(crate) hours: String,
    pub(crate) above: u64,
    pub(crate) rates: Rates,
    pub(crate) source: &'static str,
}

/// All prices from a date until the next one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Span {
    /// As `2026-03-13`; empty for all time before the next.
    pub(crate) from: String,
    pub(crate) lines: Vec<Line>,
}

/// What one model costs, by service.
#[derive(Debug, Default)]
pub(crate) struct Model {
    pub(crate) services: BTreeMap<&'static str, Vec<Span>>,
}

/// A rule that leads from a name to a model.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Name {
    pub(crate) name: String,
    /// `=` for the name itself, `^` for what begins with it.
    pub(crate) kind: char,
}

/// Everything one provider sells.
#[derive(Debug, Default)]
pub(crate) struct Provider {
    pub(crate) models: BTreeMap<String, Model>,
    pub(crate) names: BTreeMap<Name, String>,
    /// Whose names and prices hold where it has none of its own.
    pub(crate) resells: Vec<String>,
}

/// The whole table.
pub(crate) type Catalogue = BTreeMap<String, Provider>;

impl Rates {
    /// All of them, in the order of the columns.
    pub(crate) fn all(&self) -> [Option<Money>; 7] {
        [
            self.input,
            self.cache_read,
            self.write_5m,
            self.write_1h,
            self.output,
            self.reasoning,
            self.searches,
        ]
    }
}

impl Provider {
    /// Adds a model with its names. A name that another model has is that one's: the first rule holds.
    pub(crate) fn add(&mut self, id: &str, names: Vec<Name>, model: Model) {
        let id = id.to_lowercase();
        let own = Name {
            name: id.clone(),
            kind: '=',
        };
        for name in names.into_iter().chain([own]) {
            self.names.entry(name).or_insert_with(|| id.clone());
        }
        self.models.entry(id).or_insert(model);
    }

    /// Whether some name leads to a model, in the way the library looks for it.
    pub(crate) fn knows(&self, name: &str) -> bool {
        self.names.keys().any(|rule| match rule.kind {
            '=' => rule.name == name,
            _ => name
                .strip_prefix(rule.name.as_str())
                .is_some_and(|rest| !rest.starts_with(|c: char| c.is_ascii_alphanumeric())),
        })
    }
}

/// Drops what changes nothing: a span that says what the one before it says.
pub(crate) fn merged(spans: Vec<Span>) -> Vec<Span> {
    let mut kept: Vec<Span> = Vec::new();
    for span in spans {
        if kept
            .last()
            .is_none_or(|last| !same(&last.lines, &span.lines))
        {
            kept.push(span);
        }
    }
    kept
}

/// Whether two lists of lines say the same, whoever says it.
fn same(some: &[Line], others: &[Line]) -> bool {
    let what = |line: &Line| (line.hours.clone(), line.above, line.rates.clone());
    some.iter().map(what).eq(others.iter().map(what))
}

/// The rows of the table, without its head.
pub(crate) fn rows(catalogue: &Catalogue) -> String {
    let mut lines = BTreeSet::new();
    for (provider, about) in catalogue {
        for (id, model) in &about.models {
            for (service, spans) in &model.services {
                for span in spans {
                    for line in &span.lines {
                        lines.insert(row(provider, id, service, span, line));
                    }
                }
            }
        }
    }
    lines.into_iter().collect()
}

fn row(provider: &str, model: &str, service: &str, span: &Span, line: &Line) -> String {
    let or_dash = |text: &str| if text.is_empty() { "-" } else { text }.to_owned();
    let mut row = [provider, model, service].join("\t");
    for text in [&span.from, &line.hours] {
        row.push('\t');
        row.push_str(&or_dash(text));
    }
    write!(row, "\t{}", line.above).expect("a String takes all text");
    for rate in line.rates.all() {
        row.push('\t');
        // Twelve places are what a price can have. Only repeating fractions of resellers have more.
        row.push_str(&rate.map_or("-".to_owned(), |rate| rate.rounded(12).to_string()));
    }
    writeln!(row, "\t{}", line.source).expect("a String takes all text");
    row
}

/// The rules for names, without their head.
pub(crate) fn names(catalogue: &Catalogue) -> String {
    let mut lines = BTreeSet::new();
    for (provider, about) in catalogue {
        for (name, model) in &about.names {
            // What begins with a name is also the name itself.
            let wider = Name {
                kind: '^',
                ..name.clone()
            };
            if name.kind == '=' && about.names.get(&wider) == Some(model) {
                continue;
            }
            lines.insert(format!(
                "{provider}\t{}\t{}\t{model}\n",
                name.name, name.kind
            ));
        }
        for other in &about.resells {
            lines.insert(format!("{provider}\t*\t>\t{other}\n"));
        }
    }
    lines.into_iter().collect()
}
