//! What sessions are, for queries that ask for it.

use std::cell::OnceCell;
use std::collections::{HashMap, HashSet};
use std::path::Path;
use std::sync::Arc;

use jiff::tz::TimeZone;
use quipu_model::Money;
use quipu_prices::Prices;
use quipu_search::index::{IndexError, Passes, Result, Sessions};
use quipu_search::query::{Filter, Pattern};
use quipu_search::words;

use crate::catalogue::{self, Catalogue, CatalogueError};
use crate::stats::{By, Question, Subject};

/// What the catalogue knows of sessions, for whoever looks something up in the index alone. Asks it at most once, so
/// that what comes later is not seen.
pub struct Known<'c> {
    catalogue: &'c dyn Catalogue,
    prices: &'c Prices,
    passes: OnceCell<Vec<(u64, Arc<Subject>)>>,
    costs: OnceCell<HashMap<String, Money>>,
}

impl<'c> Known<'c> {
    /// Nothing is asked for yet.
    pub fn new(catalogue: &'c dyn Catalogue, prices: &'c Prices) -> Self {
        Self {
            catalogue,
            prices,
            passes: OnceCell::new(),
            costs: OnceCell::new(),
        }
    }

    /// Passes that count, with what they are of.
    fn passes(&self) -> Result<&[(u64, Arc<Subject>)], CatalogueError> {
        if let Some(passes) = self.passes.get() {
            return Ok(passes);
        }
        let all = catalogue::Filter {
            subagents: true,
            duplicates: true,
            ..catalogue::Filter::default()
        };
        let subjects = crate::stats::subjects(self.catalogue, &all, None)?;
        let subjects = subjects.into_iter().map(|(id, it)| (id, Arc::new(it)));
        let subjects: HashMap<i64, Arc<Subject>> = subjects.collect();
        let passes = self.catalogue.passes_of_transcripts()?;
        let passes = passes
            .into_iter()
            .filter_map(|(pass, transcript)| Some((pass, subjects.get(&transcript)?.clone())));
        Ok(self.passes.get_or_init(|| passes.collect()))
    }

    /// What each session cost, as far as it has a price, with its sub-agents.
    pub(super) fn costs(&self) -> Result<&HashMap<String, Money>, CatalogueError> {
        if let Some(costs) = self.costs.get() {
            return Ok(costs);
        }
        let table = self.catalogue.stats(&Question {
            filter: &catalogue::Filter {
                received: catalogue::Received::With,
                ..catalogue::Filter::default()
            },
            directories: None,
            by: &[By::Session],
            zone: &TimeZone::UTC,
            prices: self.prices,
        })?;
        let rows = table.rows.into_iter();
        let costs = rows.filter_map(|mut row| {
            let cost = row.spent?.dollars()?;
            Some((row.key.pop()?, cost))
        });
        Ok(self.costs.get_or_init(|| costs.collect()))
    }

    /// The place of each pass in the order of what its session cost: the dearest has the highest.
    pub(super) fn by_cost(&self) -> Result<Vec<u64>, CatalogueError> {
        let costs = self.costs()?;
        let mut order: Vec<Money> = costs.values().copied().collect();
        order.sort_unstable();
        order.dedup();
        let mut ranks = Vec::new();
        for (pass, subject) in self.passes()? {
            let Some(cost) = costs.get(&subject.session) else {
                continue;
            };
            let rank = order.partition_point(|other| other <= cost) as u64;
            let at = usize::try_from(*pass).unwrap_or(usize::MAX);
            if ranks.len() <= at {
                ranks.resize(at + 1, 0);
            }
            ranks[at] = rank;
        }
        Ok(ranks)
    }

    fn matches(&self, filter: &Filter, subject: &Subject) -> Result<bool, CatalogueError> {
        Ok(match filter {
            Filter::Project(name) => subject
                .project
                .as_deref()
                .is_some_and(|project| is_project(name, project)),
            Filter::Branch(name) => subject
                .branch
                .as_deref()
                .is_some_and(|branch| name.matches(branch)),
            Filter::Session(id) => {
                let begins = |run: &str| run.starts_with(id.as_str());
                let is_address = subject.address.as_deref().is_some_and(begins);
                is_address || begins(&subject.run_id) || begins(&subject.session)
            }
            Filter::Title(words) => {
                let title = subject.title.as_deref().unwrap_or_default();
                has_words(title, words)
            }
            Filter::Cost(comparison, sum) => {
                let cost = self.costs()?.get(&subject.session);
                cost.is_some_and(|cost| comparison.holds(*cost, *sum))
            }
            // The index itself knows of these.
            _ => false,
        })
    }
}

impl Sessions for Known<'_> {
    fn passes(&self, filter: &Filter) -> Result<Passes> {
        let failed = |error: CatalogueError| IndexError::Sessions(Box::new(error));
        let mut found = Vec::new();
        for (pass, subject) in self.passes().map_err(failed)? {
            if self.matches(filter, subject).map_err(failed)? {
                found.push(*pass);
            }
        }
        Ok(found.into_iter().collect())
    }
}

/// Whether a project is meant: by a directory that it is in, or by names of its path, one behind the other.
fn is_project(name: &Pattern, project: &str) -> bool {
    let text = name.text().trim_end_matches('/');
    if text.starts_with('/') {
        return match name {
            Pattern::Exact(_) => Path::new(project).starts_with(text),
            Pattern::Prefix(_) => project.starts_with(text),
        };
    }
    let wanted: Vec<&str> = text.split('/').filter(|part| !part.is_empty()).collect();
    let Some((last, before)) = wanted.split_last() else {
        return false;
    };
    let last = match name {
        Pattern::Exact(_) => Pattern::Exact((*last).to_owned()),
        Pattern::Prefix(_) => Pattern::Prefix((*last).to_owned()),
    };
    let parts: Vec<&str> = project.split('/').collect();
    parts.windows(wanted.len()).any(|window| {
        let same = before.iter().zip(window);
        let all = same.into_iter().all(|(a, b)| a.eq_ignore_ascii_case(b));
        all && window.last().is_some_and(|part| last.matches(part))
    })
}

/// Whether a text has all of these words in it.
fn has_words(text: &str, wanted: &str) -> bool {
    let mut there = HashSet::new();
    words::each(text, |word| {
        there.insert(word.text.to_owned());
    });
    let mut all = true;
    words::whole(wanted, |word| all &= there.contains(word.text));
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn projects_are_named_by_their_directories() {
        for (pattern, project, expected) in [
            ("quipu", "/home/ada/code/quipu", true),
            ("Quipu", "/home/ada/code/quipu/crates", true),
            ("code/quipu", "/home/ada/code/quipu", true),
            ("ada/quipu", "/home/ada/code/quipu", false),
            ("qui", "/home/ada/code/quipu", false),
            ("/home/ada/code", "/home/ada/code/quipu", true),
            ("/home/ada/co", "/home/ada/code/quipu", false),
            ("", "/home/ada", false),
        ] {
            let name = Pattern::Exact(pattern.to_owned());
            assert_eq!(is_project(&name, project), expected, "{pattern}");
        }
        let begins = Pattern::Prefix("qui".to_owned());
        assert!(is_project(&begins, "/home/ada/code/quipu"));
    }
}
