//! Reading what the catalogue has.

use std::collections::{HashMap, HashSet};

use quipu_agents::{Activity, service_of};
use quipu_model::{Money, Usage};
use rusqlite::types::Value;
use rusqlite::{Row, params_from_iter};

use super::calendar::slot_of_millis;
use super::cost::Spent;
use super::table::{Of, Place, Subject, Table, Tally};
use super::{By, Question};
use crate::catalogue::{Catalogue, Filter, Result};

/// The table that answers a question.
pub(super) fn table(catalogue: &Catalogue, question: &Question<'_>) -> Result<Table> {
    let mut tally = Tally::new(question);
    if question.check().is_err() {
        return Ok(tally.finish());
    }
    let places = places(catalogue, question, &mut tally)?;
    let read = Read {
        catalogue,
        places,
        bounds: Bounds::of(question.filter),
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
    catalogue: &Catalogue,
    question: &Question<'_>,
    tally: &mut Tally<'_>,
) -> Result<Option<HashMap<i64, Place>>> {
    let filter = Filter {
        model: None,
        since: None,
        until: None,
        subagents: true,
        duplicates: true,
        ..question.filter.clone()
    };
    let restricted = filter.is_restricted() || question.directories.is_some();
    if !restricted && !question.by.iter().any(|by| by.is_of_transcript()) {
        return Ok(None);
    }
    let subjects = subjects(catalogue, &filter, question.directories)?;
    let places = subjects
        .iter()
        .map(|(id, subject)| (*id, tally.place(subject)));
    Ok(Some(places.collect()))
}

/// What is known of transcripts.
pub(crate) fn subjects(
    catalogue: &Catalogue,
    filter: &Filter,
    directories: Option<&[String]>,
) -> Result<HashMap<i64, Subject>> {
    let roots = roots(catalogue)?;
    let directories: Option<HashSet<&str>> =
        directories.map(|all| all.iter().map(String::as_str).collect());
    let (condition, values) = filter.sql();
    let query = format!(
        "select t.id, t.run_id, t.native, t.parent, t.title, t.agent, t.cwd, t.repository, t.branch,
             (select origin from temp.home) || '-' || substr(s.key, 1, 16)
         from transcript t join source s on s.id = t.source where {condition}"
    );
    catalogue.run(|database| {
        let mut statement = database.prepare(&query)?;
        let mut rows = statement.query(params_from_iter(values))?;
        let mut subjects = HashMap::new();
        while let Some(row) = rows.next()? {
            let cwd: Option<String> = row.get(6)?;
            let is_meant = directories
                .as_ref()
                .is_none_or(|those| cwd.as_deref().is_some_and(|cwd| those.contains(cwd)));
            if !is_meant {
                continue;
            }
            let run_id: String = row.get(1)?;
            let native: String = row.get(2)?;
            let parent: Option<String> = row.get(3)?;
            let session = match &parent {
                Some(_) => root(&roots, &native).unwrap_or_else(|| run_id.clone()),
                None => run_id.clone(),
            };
            let repository: Option<String> = row.get(7)?;
            subjects.insert(
                row.get(0)?,
                Subject {
                    session,
                    title: row.get(4)?,
                    agent: row.get(5)?,
                    project: cwd.or_else(|| repository.map(|address| plain_address(&address))),
                    branch: row.get(8)?,
                    address: row.get(9)?,
                    is_subagent: parent.is_some(),
                    run_id,
                },
            );
        }
        Ok(subjects)
    })
}

/// The parent and the run id of each session, by its own id.
type Roots = HashMap<String, (Option<String>, String)>;

fn roots(catalogue: &Catalogue) -> Result<Roots> {
    catalogue.run(|database| {
        let mut statement = database.prepare(
            "select native, parent, run_id from transcript
             where not duplicate or native = run_id order by run_id = native",
        )?;
        let rows = statement.query_map([], |row| Ok((row.get(0)?, (row.get(1)?, row.get(2)?))))?;
        rows.collect()
    })
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

/// From which slot to which, where that is asked for.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Bounds {
    pub(super) since: Option<i64>,
    pub(super) until: Option<i64>,
}

impl Bounds {
    pub(super) fn of(filter: &Filter) -> Self {
        Self {
            since: filter.since.map(slot_of_millis),
            // What is before a time in the middle of a slot ends with that slot.
            until: filter
                .until
                .map(|until| slot_of_millis(until.saturating_sub(1)).saturating_add(1)),
        }
    }

    pub(super) fn sql(&self) -> String {
        let since = self.since.map(|since| format!(" and slot >= {since}"));
        let until = self.until.map(|until| format!(" and slot < {until}"));
        format!(
            "1 = 1{}{}",
            since.unwrap_or_default(),
            until.unwrap_or_default()
        )
    }

    fn is_open(&self) -> bool {
        self.since.is_none() && self.until.is_none()
    }

    /// Whether a slot is within. What has no time is nowhere, unless everywhere is meant.
    pub(super) fn contain(&self, slot: Option<i64>) -> bool {
        match slot {
            None => self.is_open(),
            Some(slot) => {
                self.since.is_none_or(|since| slot >= since)
                    && self.until.is_none_or(|until| slot < until)
            }
        }
    }
}

struct Read<'r> {
    catalogue: &'r Catalogue,
    places: Option<HashMap<i64, Place>>,
    bounds: Bounds,
    model: Option<&'r str>,
}

impl Read<'_> {
    fn place(&self, transcript: i64) -> Option<Place> {
        match &self.places {
            None => Some(Place::default()),
            Some(places) => places.get(&transcript).copied(),
        }
    }

    fn rows(
        &self,
        columns: &str,
        table: &str,
        mut take: impl FnMut(Place, &Row<'_>) -> rusqlite::Result<()>,
    ) -> Result<()> {
        let mut query = format!("select {columns} from {table} where {}", self.bounds.sql());
        let mut values = Vec::new();
        if let Some(model) = self.model.filter(|_| table == "spend") {
            query.push_str(" and instr(lower(model), lower(?1)) > 0");
            values.push(Value::Text(model.to_owned()));
        }
        self.catalogue.run(|database| {
            let mut statement = database.prepare(&query)?;
            let mut rows = statement.query(params_from_iter(values))?;
            while let Some(row) = rows.next()? {
                if let Some(place) = self.place(row.get(0)?) {
                    take(place, row)?;
                }
            }
            Ok(())
        })
    }

    fn spend(&self, tally: &mut Tally<'_>) -> Result<()> {
        let columns = "transcript, slot, model, subagent, service, context, calls, input,
            cache_read, cache_write, cache_write_1h, output, reasoning, searches, told";
        self.rows(columns, "spend", |place, row| {
            let of = Of {
                slot: row.get(1)?,
                model: text(row, 2)?,
                subagent: text(row, 3)?,
                service: service_of(row.get(4)?).unwrap_or_default(),
                context: row.get(5)?,
                told: row.get_ref(14)?.as_str_or_null()?.and_then(Money::parse),
                tool: "",
            };
            let spent = Spent {
                calls: count(row, 6)?,
                tokens: usage(row, 7)?,
                searches: count(row, 13)?,
                ..Spent::default()
            };
            tally.spend(&place, &of, spent);
            Ok(())
        })
    }

    fn activity(&self, tally: &mut Tally<'_>) -> Result<()> {
        let columns = "transcript, slot, subagent, prompts, replies, tool_calls, failures, denials,
            active_ms";
        self.rows(columns, "activity", |place, row| {
            let of = Of {
                slot: row.get(1)?,
                subagent: text(row, 2)?,
                ..Of::default()
            };
            let did = Activity {
                prompts: count(row, 3)?,
                replies: count(row, 4)?,
                tool_calls: count(row, 5)?,
                failures: count(row, 6)?,
                denials: count(row, 7)?,
                active_ms: count(row, 8)?,
            };
            tally.activity(&place, &of, &did);
            Ok(())
        })
    }

    fn tools(&self, tally: &mut Tally<'_>) -> Result<()> {
        let columns = "transcript, slot, subagent, tool, calls, failures";
        self.rows(columns, "tool_use", |place, row| {
            let of = Of {
                slot: row.get(1)?,
                subagent: text(row, 2)?,
                tool: text(row, 3)?,
                ..Of::default()
            };
            let did = Activity {
                tool_calls: count(row, 4)?,
                failures: count(row, 5)?,
                ..Activity::default()
            };
            tally.activity(&place, &of, &did);
            Ok(())
        })
    }

    /// Tokens that have no time, where a time is asked for.
    fn undated(&self) -> Result<u64> {
        if self.bounds.is_open() {
            return Ok(0);
        }
        let all = Read {
            catalogue: self.catalogue,
            places: self.places.clone(),
            bounds: Bounds::default(),
            model: self.model,
        };
        let mut tokens: u64 = 0;
        let columns =
            "transcript, input, cache_read, cache_write, cache_write_1h, output, reasoning";
        // A table of its own, so that the index on it is of use.
        all.rows(
            columns,
            "(select * from spend where slot is null)",
            |_, row| {
                tokens = tokens.saturating_add(usage(row, 1)?.total());
                Ok(())
            },
        )?;
        Ok(tokens)
    }
}

pub(super) fn text<'r>(row: &'r Row<'_>, at: usize) -> rusqlite::Result<&'r str> {
    Ok(row.get_ref(at)?.as_str().unwrap_or_default())
}

pub(super) fn count(row: &Row<'_>, at: usize) -> rusqlite::Result<u64> {
    row.get::<_, i64>(at).map(i64::unsigned_abs)
}

/// The six buckets from a column on.
pub(super) fn usage(row: &Row<'_>, at: usize) -> rusqlite::Result<Usage> {
    let bucket = |n: usize| {
        row.get::<_, Option<i64>>(at + n)
            .map(|tokens| tokens.map(i64::unsigned_abs))
    };
    Ok(Usage {
        input: bucket(0)?,
        cache_read: bucket(1)?,
        cache_write: bucket(2)?,
        cache_write_1h: bucket(3)?,
        output: bucket(4)?,
        reasoning: bucket(5)?,
    })
}
