//! What was added to transcripts, in the order in which it became known.

use rusqlite::{OptionalExtension as _, params};

use super::write::signed;
use super::{Advances, IndexedPasses as _, Result, SqliteCatalogue, origin};

/// How many rows are kept. Whoever is further behind has to look at everything.
const KEPT: i64 = 16_384;

/// Rows of one transcript in a row become one up to so many events, so that a long run does not push out all others.
const LONGEST: u64 = 4096;

/// What became of a transcript.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AdvanceKind {
    /// Events were added.
    Grown,
    /// From the first of these events on, all are other ones than before.
    Again,
    /// It is not kept any more.
    Gone,
}

impl AdvanceKind {
    const GROWN: i64 = 0;

    fn number(self) -> i64 {
        match self {
            Self::Grown => Self::GROWN,
            Self::Again => 1,
            Self::Gone => 2,
        }
    }

    fn of(number: i64) -> Self {
        match number {
            Self::GROWN => Self::Grown,
            1 => Self::Again,
            _ => Self::Gone,
        }
    }
}

/// Events of a transcript that became known together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Advance {
    /// The place of the first event.
    pub first: u64,
    /// The place of the last event.
    pub last: u64,
    /// The name of the manifest of the log.
    pub key: String,
    /// What the transcript is known by for good.
    pub address: String,
    /// The agent; `None` when the transcript is not there any more.
    pub agent: Option<String>,
    /// The directory it ran in.
    pub cwd: Option<String>,
    /// The first event.
    pub from: u64,
    /// The last event. Less than `from` where a log was cut short and nothing has followed yet.
    pub to: u64,
    /// What became of the transcript.
    pub kind: AdvanceKind,
}

/// Which places are known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Span {
    /// Another one in every catalogue: a place means something only with it.
    pub generation: String,
    /// The first place that is known.
    pub first: u64,
    /// The last place that was given; 0 when none was.
    pub last: u64,
}

impl Advances for SqliteCatalogue {
    fn put_advance(&self, key: &str, events: u64, holds: u64) -> Result<()> {
        let told = self.run(|database| {
            database
                .prepare_cached("select last from reach where key = ?1")?
                .query_row([key], |row| Ok(row.get::<_, i64>(0)?.unsigned_abs()))
                .optional()
        })?;
        let told = told.unwrap_or(0);
        let holds = holds.min(events).min(told);
        let kind = if holds < told {
            AdvanceKind::Again
        } else {
            AdvanceKind::Grown
        };
        if kind == AdvanceKind::Grown && events == told {
            return Ok(());
        }
        let from = holds + 1;
        self.run(|database| {
            database
                .prepare_cached("insert or replace into reach values (?1, ?2)")?
                .execute(params![key, signed(events)])
        })?;
        self.add(key, kind, from, events)
    }

    fn advances(&self, behind: u64, most: usize) -> Result<Vec<Advance>> {
        // Places have no gaps, and rows no more events than that: there is no need to count them.
        let query = format!(
            "select a.first, a.last, a.key,
                 (select origin from temp.home) || '-' || substr(a.key, 1, {digits}),
                 t.agent, t.cwd, a.from_seq, a.to_seq, a.kind
             from advance a left join source s on s.key = a.key left join transcript t on t.source = s.id
             where a.last > ?1 order by a.last limit ?2",
            digits = origin::DIGITS
        );
        self.run(|database| {
            let mut statement = database.prepare_cached(&query)?;
            let most = i64::try_from(most).unwrap_or(i64::MAX);
            let rows = statement.query_map(params![signed(behind), most], |row| {
                let count =
                    |at: usize| Ok::<_, rusqlite::Error>(row.get::<_, i64>(at)?.unsigned_abs());
                let (first, from) = (count(0)?, count(6)?);
                let had = behind.saturating_add(1).saturating_sub(first);
                let kind = AdvanceKind::of(row.get(8)?);
                Ok(Advance {
                    first: first + had,
                    last: count(1)?,
                    key: row.get(2)?,
                    address: row.get(3)?,
                    agent: row.get(4)?,
                    cwd: row.get(5)?,
                    from: from + had,
                    to: count(7)?,
                    // Whoever has some of them knows that they are others.
                    kind: if had > 0 && kind == AdvanceKind::Again {
                        AdvanceKind::Grown
                    } else {
                        kind
                    },
                })
            })?;
            rows.collect()
        })
    }

    fn advances_span(&self) -> Result<Span> {
        let generation = self.meta("advances")?.unwrap_or_default();
        let (first, last) = self.run(|database| {
            let query =
                "select (select first from advance order by id limit 1), max(last) from advance";
            database.prepare_cached(query)?.query_row([], |row| {
                let number = |at: usize| {
                    let number: Option<i64> = row.get(at)?;
                    Ok::<_, rusqlite::Error>(number.map(i64::unsigned_abs))
                };
                Ok((number(0)?, number(1)?))
            })
        })?;
        Ok(Span {
            generation,
            first: first.unwrap_or(1),
            last: last.unwrap_or(0),
        })
    }
}

impl SqliteCatalogue {
    /// Adds a row, or some events to the last one.
    fn add(&self, key: &str, kind: AdvanceKind, from: u64, to: u64) -> Result<()> {
        // A log that was only cut short takes one place.
        let events = (to + 1).saturating_sub(from).max(1);
        self.run(|database| {
            let mut last = database.prepare_cached(
                "select id, last, key, from_seq, to_seq, kind from advance order by id desc limit 1",
            )?;
            let last = last
                .query_row([], |row| {
                    let number = |at: usize| row.get::<_, i64>(at);
                    Ok((
                        number(0)?,
                        number(1)?,
                        row.get::<_, String>(2)?,
                        number(3)?.unsigned_abs(),
                        number(4)?.unsigned_abs(),
                        number(5)?,
                    ))
                })
                .optional()?;
            if let Some((id, end, of, first, up_to, AdvanceKind::GROWN)) = &last
                && of == key
                && kind == AdvanceKind::Grown
                && up_to + 1 == from
                && to - first < LONGEST
            {
                database
                    .prepare_cached("update advance set last = ?2, to_seq = ?3 where id = ?1")?
                    .execute(params![id, end + signed(events), signed(to)])?;
                return Ok(());
            }
            let end = last.as_ref().map_or(0, |last| last.1);
            database
                .prepare_cached(
                    "insert into advance (first, last, key, from_seq, to_seq, kind)
                     values (?1, ?2, ?3, ?4, ?5, ?6)",
                )?
                .execute(params![
                    end + 1,
                    end + signed(events),
                    key,
                    signed(from),
                    signed(to),
                    kind.number()
                ])?;
            database
                .prepare_cached("delete from advance where id <= ?1")?
                .execute([database.last_insert_rowid() - KEPT])?;
            Ok(())
        })
    }
}
