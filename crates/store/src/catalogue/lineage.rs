//! Which transcripts have something in common.

use std::os::unix::ffi::OsStringExt as _;
use std::path::{Path, PathBuf};

use quipu_agents::{Session, Summary};
use rusqlite::{OptionalExtension as _, named_params, params};

use super::uses;
use super::write::{copy_run_id, native_of, signed};
use super::{Lineages, Result, SqliteCatalogue};

/// What decides which of several transcripts is the original of what they share.
#[derive(Debug)]
pub struct Lineage {
    /// The number of the transcript.
    pub id: i64,
    /// The identities of its records, in order, each once.
    pub units: Vec<u64>,
    /// The id that copies of the session share.
    pub native: String,
    /// The session that it was forked from.
    pub forked_from: Option<String>,
    /// The session that it is a sub-agent of.
    pub parent: Option<String>,
    /// When its log was first seen to be written to.
    pub first_modified: Option<i64>,
    /// Whether part of it is held to be a copy.
    pub marked: bool,
    /// Whether it was put together from something else than a log of its own.
    pub reconstructed: bool,
    /// The agent.
    pub agent: String,
    /// How its log reads.
    pub dialect: Option<String>,
    /// Its log.
    pub path: PathBuf,
    /// One session of several in it.
    pub part: Option<String>,
}

/// How a trace reads.
const TRACE: &str = "agentlog";

/// The dialect of run directories.
const DIRECTORY: &str = "flow-run";

impl Lineage {
    /// Of a log that is in no catalogue.
    #[expect(clippy::too_many_arguments, reason = "what a lineage is made of")]
    pub(crate) fn of_log(
        id: i64,
        units: &[u64],
        native: &str,
        session: &Session,
        first_modified: Option<i64>,
        agent: &str,
        dialect: &str,
        path: &Path,
        part: Option<&str>,
    ) -> Self {
        Self {
            id,
            units: units.to_vec(),
            native: native.to_owned(),
            forked_from: session.forked_from.as_deref().map(native_of),
            parent: session.parent.as_deref().map(native_of),
            first_modified,
            marked: false,
            reconstructed: session.reconstructed,
            agent: agent.to_owned(),
            dialect: Some(dialect.to_owned()),
            path: path.to_owned(),
            part: part.map(str::to_owned),
        }
    }

    /// Whether this is another account of the same session, of which it cannot be told record by record what
    /// it repeats: what an agent wrote to standard output, prompts from a history, a trace that was made of it.
    pub(crate) fn retells(&self, other: &Self) -> bool {
        let in_other_words = self.units.is_empty() || (self.reconstructed && !other.reconstructed);
        in_other_words
            && self.native == other.native
            // A trace says which session it was made of, not whose; so does a directory of a recorded run.
            && (self.agent == other.agent
                || self.dialect.as_deref() == Some(TRACE)
                || (self.reconstructed && self.dialect.as_deref() == Some(DIRECTORY)))
            && self.dialect != other.dialect
    }

    /// The place among accounts of the same session; the least is the best.
    pub(crate) fn rank(&self) -> impl Ord + use<'_> {
        let captured = self.dialect.as_deref().is_some_and(|dialect| {
            ["-stream", "-exec", "-run", "-events", "-sse", "-chunks"]
                .iter()
                .any(|ending| dialect.ends_with(ending))
        });
        (
            self.reconstructed,
            captured,
            std::cmp::Reverse(self.units.len()),
            &self.path,
            &self.part,
        )
    }
}

/// How much of a transcript is copied.
#[derive(Debug, Default)]
pub struct Copied {
    /// The transcript that has the originals.
    pub copy_of: Option<i64>,
    /// How many events.
    pub events: u64,
    /// Whether it is nothing but a copy.
    pub duplicate: bool,
}

impl Lineages for SqliteCatalogue {
    fn compared_with(&self, key: &str) -> Result<Vec<i64>> {
        let id: Option<i64> = self.run(|database| {
            database
                .prepare_cached(
                    "select t.id from transcript t join source s on s.id = t.source
                     where s.key = ?1",
                )?
                .query_row([key], |row| row.get(0))
                .optional()
        })?;
        let Some(id) = id else {
            return Ok(Vec::new());
        };
        let mut compared = self.relatives(id)?;
        compared.extend(self.run(|database| {
            let mut copies =
                database.prepare_cached("select id from transcript where copy_of = ?1")?;
            let rows = copies.query_map([id], |row| row.get::<_, i64>(0))?;
            rows.collect::<rusqlite::Result<Vec<_>>>()
        })?);
        Ok(compared)
    }

    fn related(&self, ids: &[i64]) -> Result<Vec<i64>> {
        self.run(|database| {
            database.execute_batch(
                "create temp table if not exists changed (id integer primary key);
                 delete from temp.changed;",
            )?;
            {
                let mut insert =
                    database.prepare_cached("insert or ignore into temp.changed values (?1)")?;
                for id in ids {
                    insert.execute([id])?;
                }
            }
            let mut statement = database.prepare(
                "with pairs (a, b) as (
                     select c.id, o.id from temp.changed n join transcript c on c.id = n.id
                         join transcript o on o.native = c.native and o.id <> c.id
                     union select c.id, o.id from temp.changed n join transcript c on c.id = n.id
                         join transcript o on o.first_unit = c.first_unit and o.agent = c.agent
                             and o.id <> c.id
                     union select c.id, o.id from temp.changed n join transcript c on c.id = n.id
                         join transcript o on o.native = c.forked_from and o.id <> c.id
                     union select c.id, o.id from temp.changed n join transcript c on c.id = n.id
                         join transcript o on o.forked_from = c.native and o.id <> c.id
                     union select c.id, o.id from temp.changed n join transcript c on c.id = n.id
                         join transcript o on o.parent = c.native and o.agent = c.agent
                         where c.copied_events > 0 or exists (
                             select 1 from spend where transcript = c.id and subagent <> '')
                     union select c.id, o.id from temp.changed n join transcript c on c.id = n.id
                         join transcript o on o.native = c.parent and o.agent = c.agent
                         where o.copied_events > 0 or exists (
                             select 1 from spend where transcript = o.id and subagent <> ''))
                 select a from pairs union select b from pairs
                 union select t.id from temp.changed n join transcript t on t.id = n.id
                     where t.copy_of is not null or t.duplicate
                 order by 1",
            )?;
            let rows = statement.query_map([], |row| row.get(0))?;
            rows.collect()
        })
    }

    fn relatives(&self, id: i64) -> Result<Vec<i64>> {
        self.run(|database| {
            let mut statement = database.prepare_cached(
                "with own as (select * from transcript where id = ?1)
                 select t.id from transcript t, own
                     where t.native = own.native and t.id <> own.id
                 union select t.id from transcript t, own
                     where t.first_unit = own.first_unit and t.agent = own.agent and t.id <> own.id
                 union select t.id from transcript t, own
                     where t.native = own.forked_from and t.id <> own.id
                 union select t.id from transcript t, own
                     where t.forked_from = own.native and t.id <> own.id
                 union select t.id from transcript t, own
                     where t.parent = own.native and t.agent = own.agent
                         and (own.copied_events > 0 or exists (
                             select 1 from spend where transcript = own.id and subagent <> ''))
                 union select t.id from transcript t, own
                     where t.native = own.parent and t.agent = own.agent
                         and (t.copied_events > 0 or exists (
                             select 1 from spend where transcript = t.id and subagent <> ''))
                 order by 1",
            )?;
            let rows = statement.query_map([id], |row| row.get(0))?;
            rows.collect()
        })
    }

    fn lineage(&self, id: i64) -> Result<Lineage> {
        self.run(|database| {
            database
                .prepare_cached(
                    "select t.units, t.native, t.reconstructed, t.forked_from, s.first_modified,
                            s.path, s.part, t.agent, s.dialect,
                            t.copied_events > 0 or t.duplicate, t.parent
                     from transcript t join source s on s.id = t.source where t.id = ?1",
                )?
                .query_row([id], |row| {
                    let units: Vec<u8> = row.get(0)?;
                    Ok(Lineage {
                        id,
                        marked: row.get(9)?,
                        units: units
                            .as_chunks::<8>()
                            .0
                            .iter()
                            .map(|unit| u64::from_le_bytes(*unit))
                            .collect(),
                        native: row.get(1)?,
                        reconstructed: row.get(2)?,
                        forked_from: row.get(3)?,
                        parent: row.get(10)?,
                        first_modified: row.get(4)?,
                        path: PathBuf::from(std::ffi::OsString::from_vec(row.get(5)?)),
                        part: row.get(6)?,
                        agent: row.get(7)?,
                        dialect: row.get(8)?,
                    })
                })
        })
    }

    fn put_copied(&self, id: i64, copied: &Copied, own: Option<&Summary>) -> Result<()> {
        self.run(|database| {
            database
                .prepare_cached(
                    "update transcript set copy_of = ?2, copied_events = ?3, duplicate = ?4
                     where id = ?1",
                )?
                .execute(params![
                    id,
                    copied.copy_of,
                    signed(copied.events),
                    copied.duplicate
                ])?;
            let Some(own) = own else {
                return Ok(());
            };
            let usage = own.usage();
            let calls = own.calls();
            database
                .prepare_cached(
                    "update transcript set calls = :calls, input = :input,
                         cache_read = :cache_read, cache_write = :cache_write,
                         cache_write_1h = :cache_write_1h, output = :output, reasoning = :reasoning
                     where id = :id",
                )?
                .execute(named_params! {
                    ":id": id,
                    ":calls": signed(calls),
                    ":input": usage.input.map(signed),
                    ":cache_read": usage.cache_read.map(signed),
                    ":cache_write": usage.cache_write.map(signed),
                    ":cache_write_1h": usage.cache_write_1h.map(signed),
                    ":output": usage.output.map(signed),
                    ":reasoning": usage.reasoning.map(signed),
                })?;
            uses::put(database, id, own)
        })
    }

    fn settle_run_ids(&self) -> Result<()> {
        self.run(|database| {
            let mut shared = database.prepare_cached(
                "select native from transcript group by native
                 having count(*) > 1 or min(run_id) <> native order by 1",
            )?;
            let natives: Vec<String> = shared
                .query_map([], |row| row.get(0))?
                .collect::<rusqlite::Result<_>>()?;
            for native in natives {
                let mut copies = database.prepare_cached(
                    "select t.id, t.run_id, s.key from transcript t
                     join source s on s.id = t.source where t.native = ?1
                     order by t.duplicate, t.reconstructed, length(t.units) desc, t.events desc,
                         s.path, s.part",
                )?;
                let rows: Vec<(i64, String, String)> = copies
                    .query_map([&native], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?
                    .collect::<rusqlite::Result<_>>()?;
                let settled = rows.first().is_some_and(|first| first.1 == native);
                if settled {
                    continue;
                }
                let mut rename =
                    database.prepare_cached("update transcript set run_id = ?2 where id = ?1")?;
                for (id, _, key) in &rows {
                    rename.execute(params![id, copy_run_id(&native, key)])?;
                }
                if let Some((first, ..)) = rows.first() {
                    rename.execute(params![first, native])?;
                }
            }
            Ok(())
        })
    }
}
