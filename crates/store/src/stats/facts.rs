//! Reading what the catalogue has.

use std::collections::{HashMap, HashSet};

use super::calendar::slot_of_millis;
use super::cost::Spent;
use super::table::{GroupPlace, Of, Subject, Table, Tally};
use super::{By, Question};
use crate::catalogue::{
    ActivityRow, Catalogue, Filter, Order, Received, Result, Roots, Slots, SpendRow, SubjectRow,
};

/// The table that answers a question.
pub(super) fn table(catalogue: &dyn Catalogue, question: &Question<'_>) -> Result<Table> {
    let mut tally = Tally::new(question);
    if question.check().is_err() {
        return Ok(tally.finish());
    }
    let places = places(catalogue, question, &mut tally)?;
    let read = Read {
        catalogue,
        places,
        slots: slots(question.filter),
        model: question.filter.model.as_deref(),
    };
    if question.by.contains(&By::Tool) {
        read.tools(&mut tally)?;
    } else {
        read.spend(&mut tally)?;
        read.activity(&mut tally)?;
    }
    let undated = read.undated()?;
    Ok(Table {
        undated,
        outdated: catalogue.outdated()?,
        ..tally.finish()
    })
}

/// The places of the transcripts that are meant; `None` when all are and it does not matter which.
fn places(
    catalogue: &dyn Catalogue,
    question: &Question<'_>,
    tally: &mut Tally<'_>,
) -> Result<Option<HashMap<i64, GroupPlace>>> {
    let filter = Filter {
        model: None,
        since: None,
        until: None,
        subagents: true,
        duplicates: true,
        received: question.filter.received.in_figures(),
        ..question.filter.clone()
    };
    let restricted = filter.is_restricted()
        || question.directories.is_some()
        || filter.received == Received::Without && has_received(catalogue)?;
    if !restricted && !question.by.iter().any(|by| by.is_of_transcript()) {
        return Ok(None);
    }
    let subjects = subjects(catalogue, &filter, question.directories)?;
    let places = subjects
        .iter()
        .map(|(id, subject)| (*id, tally.place(subject)));
    Ok(Some(places.collect()))
}

/// Whether anything is there that others submitted.
fn has_received(catalogue: &dyn Catalogue) -> Result<bool> {
    let theirs = Filter {
        subagents: true,
        duplicates: true,
        received: Received::Only,
        ..Filter::default()
    };
    let any = catalogue.list(&theirs, Order::default(), Some(1))?;
    Ok(!any.is_empty())
}

/// What is known of transcripts.
pub(crate) fn subjects(
    catalogue: &dyn Catalogue,
    filter: &Filter,
    directories: Option<&[String]>,
) -> Result<HashMap<i64, Subject>> {
    let roots = catalogue.roots()?;
    let directories: Option<HashSet<&str>> =
        directories.map(|all| all.iter().map(String::as_str).collect());
    let is_meant = |row: &SubjectRow| {
        let cwd = row.cwd.as_deref();
        directories
            .as_ref()
            .is_none_or(|those| cwd.is_some_and(|cwd| those.contains(cwd)))
    };
    let rows = catalogue.subjects(filter)?.into_iter().filter(is_meant);
    let subject = |row: SubjectRow| {
        let session = match &row.parent {
            Some(_) => root(&roots, &row.native).unwrap_or_else(|| row.run_id.clone()),
            None => row.run_id.clone(),
        };
        let repository = row.repository.map(|address| plain_address(&address));
        let subject = Subject {
            session,
            title: row.title,
            agent: row.agent,
            project: row.cwd.or(repository),
            branch: row.branch,
            address: Some(row.address),
            is_subagent: row.parent.is_some(),
            run_id: row.run_id,
        };
        (row.transcript, subject)
    };
    Ok(rows.map(subject).collect())
}

/// The session at the top, as far up as it is there. A chain that bites its own tail ends.
fn root(roots: &Roots, native: &str) -> Option<String> {
    let mut at = roots.get(native)?;
    for _ in 0..100 {
        match at.0.as_deref().and_then(|parent| roots.get(parent)) {
            Some(above) => at = above,
            None => break,
        }
    }
    Some(at.1.clone())
}

/// The address of a repository without what differs between the ways to reach it, and without what lets one
/// in.
pub(super) fn plain_address(address: &str) -> String {
    let rest = address.split_once("://").map_or(address, |(_, rest)| rest);
    let rest = match rest.split_once('@') {
        Some((user, rest)) if !user.contains('/') => rest,
        _ => rest,
    };
    let scp = !address.contains("://");
    let rest = match rest.split_once(':') {
        Some((host, path)) if scp && !host.contains('/') => format!("{host}/{path}"),
        _ => rest.to_owned(),
    };
    rest.trim_end_matches('/')
        .trim_end_matches(".git")
        .to_owned()
}

/// The quarters of an hour that a filter means.
pub(crate) fn slots(filter: &Filter) -> Slots {
    if filter.since.or(filter.until).is_none() {
        return Slots::All;
    }
    Slots::Between {
        since: filter.since.map(slot_of_millis),
        // What is before a time in the middle of a slot ends with that slot.
        until: filter
            .until
            .map(|until| slot_of_millis(until.saturating_sub(1)).saturating_add(1)),
    }
}

struct Read<'r> {
    catalogue: &'r dyn Catalogue,
    places: Option<HashMap<i64, GroupPlace>>,
    slots: Slots,
    model: Option<&'r str>,
}

impl Read<'_> {
    fn place(&self, transcript: i64) -> Option<GroupPlace> {
        match &self.places {
            None => Some(GroupPlace::default()),
            Some(places) => places.get(&transcript).copied(),
        }
    }

    fn spend(&self, tally: &mut Tally<'_>) -> Result<()> {
        self.catalogue
            .each_spend(&self.slots, self.model, &mut |row| {
                let Some(place) = self.place(row.transcript) else {
                    return;
                };
                let of = Of {
                    slot: row.slot,
                    model: row.model,
                    subagent: row.subagent,
                    service: row.service,
                    context: row.context,
                    told: row.told,
                    tool: "",
                };
                let spent = Spent {
                    calls: row.calls,
                    tokens: row.tokens,
                    searches: row.searches,
                    ..Spent::default()
                };
                tally.spend(&place, &of, spent);
            })
    }

    fn activity(&self, tally: &mut Tally<'_>) -> Result<()> {
        let mut take = |row: &ActivityRow<'_>| self.did(row, tally);
        self.catalogue.each_activity(&self.slots, &mut take)
    }

    fn tools(&self, tally: &mut Tally<'_>) -> Result<()> {
        let mut take = |row: &ActivityRow<'_>| self.did(row, tally);
        self.catalogue.each_tool_use(&self.slots, &mut take)
    }

    fn did(&self, row: &ActivityRow<'_>, tally: &mut Tally<'_>) {
        if let Some(place) = self.place(row.transcript) {
            let of = Of {
                slot: row.slot,
                subagent: row.subagent,
                tool: row.tool,
                ..Of::default()
            };
            tally.activity(&place, &of, &row.did);
        }
    }

    /// Tokens that have no time, where a time is asked for.
    fn undated(&self) -> Result<u64> {
        let mut tokens: u64 = 0;
        if self.slots == Slots::All {
            return Ok(tokens);
        }
        let mut take = |row: &SpendRow<'_>| {
            if self.place(row.transcript).is_some() {
                tokens = tokens.saturating_add(row.tokens.total());
            }
        };
        self.catalogue
            .each_spend(&Slots::Undated, self.model, &mut take)?;
        Ok(tokens)
    }
}
