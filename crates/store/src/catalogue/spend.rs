//! What was spent and done, by the quarter of an hour.

use std::collections::HashMap;

use quipu_agents::{Activity, Waste, service_of};
use quipu_model::{Money, Service, Usage};
use rusqlite::types::Value;
use rusqlite::{Row, params_from_iter};

use super::{Filter, Result, Spending, SqliteCatalogue};

/// Which quarters of an hour are meant, by their numbers.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Slots {
    /// All, and what has no time.
    #[default]
    All,
    /// From one on, up to another that is not among them.
    Between {
        /// The first.
        since: Option<i64>,
        /// The first that is not meant any more.
        until: Option<i64>,
    },
    /// What has no time.
    Undated,
    /// All of one transcript.
    Of(i64),
    /// All of these transcripts. They are written into the question, so some thousands at a time.
    Among(Vec<i64>),
}

impl Slots {
    /// Whether something in this quarter of an hour, or without a time, is meant.
    pub fn contain(&self, slot: Option<i64>) -> bool {
        match (self, slot) {
            (Self::All | Self::Of(_) | Self::Among(_), _) | (Self::Undated, None) => true,
            (Self::Between { .. }, None) | (Self::Undated, Some(_)) => false,
            (Self::Between { since, until }, Some(slot)) => {
                since.is_none_or(|since| slot >= since) && until.is_none_or(|until| slot < until)
            }
        }
    }

    fn sql(&self) -> String {
        match self {
            Self::All => "1 = 1".to_owned(),
            Self::Undated => "slot is null".to_owned(),
            Self::Of(transcript) => format!("transcript = {transcript}"),
            Self::Among(all) => {
                let all: Vec<String> = all.iter().map(i64::to_string).collect();
                format!("transcript in ({})", all.join(","))
            }
            Self::Between { since, until } => {
                let since = since.map(|since| format!(" and slot >= {since}"));
                let until = until.map(|until| format!(" and slot < {until}"));
                let (since, until) = (since.unwrap_or_default(), until.unwrap_or_default());
                format!("slot is not null{since}{until}")
            }
        }
    }
}

/// What calls to a model took.
#[derive(Debug, Clone, Copy)]
pub struct SpendRow<'r> {
    /// The transcript.
    pub transcript: i64,
    /// The quarter of an hour; `None` where the log does not say when.
    pub slot: Option<i64>,
    /// The model, as the log names it.
    pub model: &'r str,
    /// The sub-agent that made the calls, within the transcript; empty for the session itself.
    pub subagent: &'r str,
    /// How the calls were served.
    pub service: Service,
    /// How long prompts were, as prices distinguish it.
    pub context: u8,
    /// How many calls.
    pub calls: u64,
    /// Their tokens.
    pub tokens: Usage,
    /// Searches on the web.
    pub searches: u64,
    /// What the log says that they cost.
    pub told: Option<Money>,
}

/// What was done.
#[derive(Debug, Clone, Copy)]
pub struct ActivityRow<'r> {
    /// The transcript.
    pub transcript: i64,
    /// The quarter of an hour; `None` where the log does not say when.
    pub slot: Option<i64>,
    /// The sub-agent that did it, within the transcript; empty for the session itself.
    pub subagent: &'r str,
    /// The tool, where rows are of single tools; else empty.
    pub tool: &'r str,
    /// What was done.
    pub did: Activity,
}

/// What need not have been paid for.
#[derive(Debug, Clone, Copy)]
pub struct WasteRow<'r> {
    /// The transcript.
    pub transcript: i64,
    /// The quarter of an hour; `None` where the log does not say when.
    pub slot: Option<i64>,
    /// What kind of waste it is.
    pub kind: Waste,
    /// The model, as the log names it.
    pub model: &'r str,
    /// How the calls were served.
    pub service: Service,
    /// How long prompts were, as prices distinguish it.
    pub context: u8,
    /// How often.
    pub times: u64,
    /// The tokens.
    pub tokens: Usage,
}

/// What is known of a transcript whose figures are asked for.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SubjectRow {
    /// The transcript.
    pub transcript: i64,
    /// Its id.
    pub run_id: String,
    /// Its own id of the session.
    pub native: String,
    /// The session that it is a sub-agent of.
    pub parent: Option<String>,
    /// Its title.
    pub title: Option<String>,
    /// The agent.
    pub agent: String,
    /// The directory it ran in.
    pub cwd: Option<String>,
    /// The address of its repository.
    pub repository: Option<String>,
    /// Its branch.
    pub branch: Option<String>,
    /// Its address.
    pub address: String,
}

/// The parent and the run id of each session, by its own id.
pub type Roots = HashMap<String, (Option<String>, String)>;

impl Spending for SqliteCatalogue {
    fn each_spend(
        &self,
        slots: &Slots,
        model: Option<&str>,
        take: &mut dyn FnMut(&SpendRow<'_>),
    ) -> Result<()> {
        let columns = "transcript, slot, model, subagent, service, context, calls, input,
            cache_read, cache_write, cache_write_1h, output, reasoning, searches, told";
        self.each(columns, "spend", slots, model, |row| {
            take(&SpendRow {
                transcript: row.get(0)?,
                slot: row.get(1)?,
                model: text(row, 2)?,
                subagent: text(row, 3)?,
                service: service_of(row.get(4)?).unwrap_or_default(),
                context: row.get(5)?,
                calls: count(row, 6)?,
                tokens: usage(row, 7)?,
                searches: count(row, 13)?,
                told: row.get_ref(14)?.as_str_or_null()?.and_then(Money::parse),
            });
            Ok(())
        })
    }

    fn each_activity(&self, slots: &Slots, take: &mut dyn FnMut(&ActivityRow<'_>)) -> Result<()> {
        let columns = "transcript, slot, subagent, prompts, replies, tool_calls, failures, denials,
            active_ms";
        self.each(columns, "activity", slots, None, |row| {
            take(&ActivityRow {
                transcript: row.get(0)?,
                slot: row.get(1)?,
                subagent: text(row, 2)?,
                tool: "",
                did: Activity {
                    prompts: count(row, 3)?,
                    replies: count(row, 4)?,
                    tool_calls: count(row, 5)?,
                    failures: count(row, 6)?,
                    denials: count(row, 7)?,
                    active_ms: count(row, 8)?,
                },
            });
            Ok(())
        })
    }

    fn each_tool_use(&self, slots: &Slots, take: &mut dyn FnMut(&ActivityRow<'_>)) -> Result<()> {
        let columns = "transcript, slot, subagent, tool, calls, failures";
        self.each(columns, "tool_use", slots, None, |row| {
            take(&ActivityRow {
                transcript: row.get(0)?,
                slot: row.get(1)?,
                subagent: text(row, 2)?,
                tool: text(row, 3)?,
                did: Activity {
                    tool_calls: count(row, 4)?,
                    failures: count(row, 5)?,
                    ..Activity::default()
                },
            });
            Ok(())
        })
    }

    fn each_waste(&self, slots: &Slots, take: &mut dyn FnMut(&WasteRow<'_>)) -> Result<()> {
        let columns = "transcript, slot, kind, model, service, context, times, input, cache_read,
            cache_write, cache_write_1h, output, reasoning";
        self.each(columns, "waste", slots, None, |row| {
            // A kind that a later version knows.
            let Some(kind) = Waste::ALL.get(usize::from(row.get::<_, u8>(2)?)).copied() else {
                return Ok(());
            };
            take(&WasteRow {
                transcript: row.get(0)?,
                slot: row.get(1)?,
                kind,
                model: text(row, 3)?,
                service: service_of(row.get(4)?).unwrap_or_default(),
                context: row.get(5)?,
                times: count(row, 6)?,
                tokens: usage(row, 7)?,
            });
            Ok(())
        })
    }

    fn subjects(&self, filter: &Filter) -> Result<Vec<SubjectRow>> {
        let (condition, values) = filter.sql();
        let query = format!(
            "select t.id, t.run_id, t.native, t.parent, t.title, t.agent, t.cwd, t.repository, t.branch,
                 (select origin from temp.home) || '-' || substr(s.key, 1, 16)
             from transcript t join source s on s.id = t.source where {condition}"
        );
        self.run(|database| {
            let mut statement = database.prepare(&query)?;
            let rows = statement.query_map(params_from_iter(values), |row| {
                Ok(SubjectRow {
                    transcript: row.get(0)?,
                    run_id: row.get(1)?,
                    native: row.get(2)?,
                    parent: row.get(3)?,
                    title: row.get(4)?,
                    agent: row.get(5)?,
                    cwd: row.get(6)?,
                    repository: row.get(7)?,
                    branch: row.get(8)?,
                    address: row.get(9)?,
                })
            })?;
            rows.collect()
        })
    }

    fn roots(&self) -> Result<Roots> {
        self.run(|database| {
            let mut statement = database.prepare(
                "select native, parent, run_id from transcript
                 where not duplicate or native = run_id order by run_id = native",
            )?;
            let rows =
                statement.query_map([], |row| Ok((row.get(0)?, (row.get(1)?, row.get(2)?))))?;
            rows.collect()
        })
    }

    fn directories(&self) -> Result<Vec<String>> {
        self.run(|database| {
            let mut statement = database
                .prepare("select distinct cwd from transcript where cwd is not null order by 1")?;
            let rows = statement.query_map([], |row| row.get(0))?;
            rows.collect()
        })
    }
}

impl SqliteCatalogue {
    fn each(
        &self,
        columns: &str,
        table: &str,
        slots: &Slots,
        model: Option<&str>,
        mut take: impl FnMut(&Row<'_>) -> rusqlite::Result<()>,
    ) -> Result<()> {
        let mut query = format!("select {columns} from {table} where {}", slots.sql());
        let mut values = Vec::new();
        if let Some(model) = model {
            query.push_str(" and instr(lower(model), lower(?1)) > 0");
            values.push(Value::Text(model.to_owned()));
        }
        self.run(|database| {
            let mut statement = database.prepare(&query)?;
            let mut rows = statement.query(params_from_iter(values))?;
            while let Some(row) = rows.next()? {
                take(row)?;
            }
            Ok(())
        })
    }
}

fn text<'r>(row: &'r Row<'_>, at: usize) -> rusqlite::Result<&'r str> {
    Ok(row.get_ref(at)?.as_str().unwrap_or_default())
}

fn count(row: &Row<'_>, at: usize) -> rusqlite::Result<u64> {
    row.get::<_, i64>(at).map(i64::unsigned_abs)
}

/// The six buckets from a column on.
fn usage(row: &Row<'_>, at: usize) -> rusqlite::Result<Usage> {
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
