//! Which readings of logs are in the search index.
//!
//! The index and the catalogue are two files, and a process can die between the two. So the events in the
//! index bear the number of the pass in which they were read, and the catalogue says which passes count:
//! whatever else is in the index is as good as not there, and is taken out by the next import; whatever is
//! missing is read again.

use rusqlite::{OptionalExtension as _, params};

use super::write::signed;
use super::{IndexedPasses, Result, SqliteCatalogue};

/// What of a reading was put into the search index.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Passed {
    /// Nothing: all of it has to be read again for that.
    #[default]
    Nothing,
    /// All of it, in place of what was there.
    Whole(Vec<Pass>),
    /// What is new.
    More(Vec<Pass>),
}

/// A pass over a log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pass {
    /// Its number.
    pub id: u64,
    /// Whether it is replaced when the log goes on.
    pub provisional: bool,
}

/// The name under which the number of the next pass is kept.
const NEXT: &str = "next_pass";

impl IndexedPasses for SqliteCatalogue {
    fn put_live(&self, passes: &[u64]) -> Result<Vec<u64>> {
        let mut unknown = Vec::new();
        for pass in passes {
            let known = self.run(|database| {
                database
                    .prepare_cached("update pass set live = 1 where id = ?1")?
                    .execute([signed(*pass)])
            })?;
            if known == 0 {
                unknown.push(*pass);
            }
        }
        Ok(unknown)
    }

    fn dead_passes(&self) -> Result<Vec<u64>> {
        self.numbers("select id from dead_pass")
    }

    fn put_dead(&self, passes: &[u64]) -> Result<()> {
        for pass in passes {
            self.run(|database| {
                database
                    .prepare_cached("insert or ignore into dead_pass values (?1)")?
                    .execute([signed(*pass)])
            })?;
        }
        Ok(())
    }

    fn bury(&self, passes: &[u64]) -> Result<()> {
        for pass in passes {
            self.run(|database| {
                database
                    .prepare_cached("delete from dead_pass where id = ?1")?
                    .execute([signed(*pass)])
            })?;
        }
        Ok(())
    }

    fn forget_passes(&self) -> Result<()> {
        self.run(|database| database.execute_batch("delete from pass; delete from dead_pass;"))
    }

    fn not_indexed(&self) -> Result<Vec<String>> {
        self.run(|database| {
            let mut statement = database.prepare(&format!("select s.key {NOT_INDEXED}"))?;
            statement.query_map([], |row| row.get(0))?.collect()
        })
    }

    fn kept_keys(&self) -> Result<Vec<String>> {
        self.run(|database| {
            let query = "select s.key from transcript t join source s on s.id = t.source
                where s.version > 0";
            let mut statement = database.prepare(query)?;
            statement.query_map([], |row| row.get(0))?.collect()
        })
    }

    fn count_not_indexed(&self) -> Result<u64> {
        // Every pass belongs to a log that has a transcript, so that it is enough to count.
        self.run(|database| {
            database.query_row(
                "select (select count(*) from transcript) - (select count(*) from
                     (select 1 from pass group by source having min(live)))",
                [],
                |row| Ok(u64::try_from(row.get::<_, i64>(0)?).unwrap_or(0)),
            )
        })
    }

    fn live_passes(&self) -> Result<Vec<u64>> {
        self.numbers("select id from pass where live")
    }

    fn passes_of_transcripts(&self) -> Result<Vec<(u64, i64)>> {
        self.run(|database| {
            let mut statement = database.prepare_cached(
                "select p.id, t.id from pass p join transcript t on t.source = p.source where p.live",
            )?;
            let rows = statement
                .query_map([], |row| Ok((row.get::<_, i64>(0)?.unsigned_abs(), row.get(1)?)))?;
            rows.collect()
        })
    }

    fn knows_pass(&self, pass: u64) -> Result<bool> {
        self.run(|database| {
            database
                .prepare_cached("select 1 from pass where id = ?1")?
                .exists([signed(pass)])
        })
    }

    fn transcript_of_pass(&self, pass: u64) -> Result<Option<i64>> {
        self.run(|database| {
            database
                .prepare_cached(
                    "select t.id from pass p join transcript t on t.source = p.source
                     where p.id = ?1 and p.live",
                )?
                .query_row([signed(pass)], |row| row.get(0))
                .optional()
        })
    }

    fn settled_pass(&self) -> Result<u64> {
        let settled = self.meta(NEXT)?.and_then(|next| next.parse().ok());
        Ok(settled.unwrap_or(1))
    }

    fn next_pass(&self) -> Result<u64> {
        let highest = self.numbers(
            "select coalesce(max(id), 0) from (select id from pass union all select id from dead_pass)",
        )?;
        let highest = highest.first().copied().unwrap_or(0);
        Ok(self.settled_pass()?.max(highest + 1))
    }

    fn put_next_pass(&self, next: u64) -> Result<()> {
        self.put_meta(NEXT, &next.to_string())
    }

    fn meta(&self, name: &str) -> Result<Option<String>> {
        self.run(|database| {
            database
                .query_row("select value from meta where name = ?1", [name], |row| {
                    row.get(0)
                })
                .optional()
        })
    }

    fn put_meta(&self, name: &str, value: &str) -> Result<()> {
        self.run(|database| {
            database.execute(
                "insert or replace into meta values (?1, ?2)",
                params![name, value],
            )
        })?;
        Ok(())
    }
}

impl SqliteCatalogue {
    pub(super) fn put_passes(&self, source: i64, passed: &Passed) -> Result<()> {
        let (replaced, passes) = match passed {
            Passed::Nothing => ("1", &[][..]),
            Passed::Whole(passes) => ("1", passes.as_slice()),
            Passed::More(passes) => ("provisional", passes.as_slice()),
        };
        self.run(|database| {
            database
                .prepare_cached(&format!(
                    "delete from pass where source = ?1 and {replaced}"
                ))?
                .execute([source])?;
            for pass in passes {
                database
                    .prepare_cached(
                        "insert into pass (id, source, provisional) values (?1, ?2, ?3)",
                    )?
                    .execute(params![signed(pass.id), source, pass.provisional])?;
            }
            Ok(())
        })
    }

    fn numbers(&self, sql: &str) -> Result<Vec<u64>> {
        self.run(|database| {
            let mut statement = database.prepare_cached(sql)?;
            let rows = statement.query_map([], |row| Ok(row.get::<_, i64>(0)?.unsigned_abs()))?;
            rows.collect()
        })
    }
}

const NOT_INDEXED: &str = "from source s join transcript t on t.source = s.id
    where not exists (select 1 from pass p where p.source = s.id and p.live)
       or exists (select 1 from pass p where p.source = s.id and not p.live)
       or (select count(*) from pass p where p.source = s.id) > 256";
