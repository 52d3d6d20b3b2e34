//! What reading a log puts into the catalogue.

use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Path, PathBuf};

use quipu_agents::{Ledger, Session, Summary};
use quipu_model::Usage;
use rusqlite::{OptionalExtension as _, named_params, params};

use super::{Passed, ReceivedFrom, Result, Sources, SqliteCatalogue};

/// What a log looked like when it was read. As long as it still looks like that, it need not be read.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Stamp {
    /// Its length.
    pub size: u64,
    /// When it was last written to, in nanoseconds since 1970.
    pub modified: Option<i64>,
    /// Its number in the file system.
    pub inode: Option<i64>,
    /// What stands for all of this where it is one of many sessions in a file.
    pub part: Option<String>,
}

/// A log that was read before.
#[derive(Debug, Clone)]
pub struct SourceRow {
    /// Its number in the catalogue.
    pub id: i64,
    /// The name of its manifest in the archive.
    pub key: String,
    /// The agent.
    pub agent: String,
    /// How it reads.
    pub dialect: Option<String>,
    /// Where it is.
    pub path: PathBuf,
    /// Which session of several.
    pub part: Option<String>,
    /// What it looked like.
    pub stamp: Stamp,
    /// The adapters that read it.
    pub adapters: i64,
    /// Why it could not be read.
    pub problem: Option<String>,
    /// The version in the archive that was read; 0 where nothing was.
    pub version: u32,
    /// How much of it was read.
    pub read_to: u64,
    /// How long the manifest was when it was read, where that is known.
    pub manifest: Option<u64>,
}

/// What was found out by reading a log.
#[derive(Debug)]
pub struct Reading {
    /// The name of its manifest in the archive.
    pub key: String,
    /// The agent.
    pub agent: String,
    /// How it reads; `None` when it could not be told.
    pub dialect: Option<&'static str>,
    /// Where it is.
    pub path: PathBuf,
    /// Which session of several.
    pub part: Option<String>,
    /// What it looked like.
    pub stamp: Stamp,
    /// The version in the archive.
    pub version: u32,
    /// How much was read.
    pub read_to: u64,
    /// How long the manifest in the archive is up to that version.
    pub manifest: Option<u64>,
    /// Where reading can go on.
    pub checkpoint: Option<Vec<u8>>,
    /// What was counted.
    pub ledger: Ledger,
    /// What the log says of the session.
    pub session: Session,
    /// What the session comes to.
    pub summary: Summary,
    /// The blobs it refers to, as far as they were read now.
    pub blobs: Vec<String>,
    /// When the log was first seen to be written to, where that is known from before.
    pub first_modified: Option<i64>,
    /// What of it was put into the search index.
    pub passes: Passed,
    /// Why it could not be read, or not wholly.
    pub problem: Option<String>,
    /// Who submitted it; `None` for what is one's own.
    pub received: Option<ReceivedFrom>,
}

impl SourceRow {
    /// Whether the log still looks as it did when it was read, and was read as it would be now.
    pub fn unchanged(&self, now: &Stamp) -> bool {
        let Stamp {
            size,
            modified,
            inode,
            part,
        } = &self.stamp;
        self.is_current()
            && *size == now.size
            && *modified == now.modified
            && *part == now.part
            // What was made from the archive alone does not know.
            && (inode.is_none() || *inode == now.inode)
    }

    /// Whether adapters of an earlier version read it. What is damaged was read by none.
    pub(crate) fn is_outdated(&self) -> bool {
        (1..ADAPTERS).contains(&self.adapters)
    }

    /// Whether it is kept where it is, and not copied into the archive: a recorded run or a trace.
    pub fn is_in_place(&self) -> bool {
        self.version == 0 && self.part.is_none()
    }

    /// Whether today's adapters read it.
    pub fn is_current(&self) -> bool {
        self.adapters == ADAPTERS
    }
}

/// Changes when what is made of the same bytes changes, so that logs are read again: by adapters, or by what masks
/// secrets.
pub const ADAPTERS: i64 = 7;

impl Sources for SqliteCatalogue {
    fn sources(&self) -> Result<Vec<SourceRow>> {
        self.sources_where("1 = 1", &[])
    }

    fn sources_at(&self, path: &Path) -> Result<Vec<SourceRow>> {
        self.sources_where("path = ?1", &[&path.as_os_str().as_bytes()])
    }

    fn in_place(&self) -> Result<Vec<SourceRow>> {
        self.sources_where("version = 0 and part is null", &[])
    }

    fn source(&self, key: &str) -> Result<Option<SourceRow>> {
        Ok(self.sources_where("key = ?1", &[&key])?.pop())
    }

    fn outdated(&self) -> Result<u64> {
        let query = "select count(*) from source where adapters between 1 and ?1";
        let count: i64 =
            self.run(|database| database.query_row(query, [ADAPTERS - 1], |row| row.get(0)))?;
        Ok(count.unsigned_abs())
    }

    fn compact(&self) -> Result<()> {
        self.run(|database| {
            database.execute_batch("vacuum")?;
            database.query_row("pragma wal_checkpoint(truncate)", [], |_| Ok(()))
        })
    }

    fn knows(&self, key: &str) -> Result<bool> {
        self.run(|database| {
            database
                .prepare_cached("select 1 from source where key = ?1 and adapters = ?2")?
                .exists(params![key, ADAPTERS])
        })
    }

    fn distrust(&self, key: &str) -> Result<()> {
        self.run(|database| {
            database.execute("update source set adapters = 0 where key = ?1", [key])
        })?;
        Ok(())
    }

    fn checkpoint(&self, key: &str) -> Result<Option<(u32, Vec<u8>)>> {
        self.run(|database| {
            database
                .query_row(
                    "select version, checkpoint from source
                     where key = ?1 and checkpoint is not null and adapters = ?2",
                    params![key, ADAPTERS],
                    |row| Ok((row.get(0)?, row.get(1)?)),
                )
                .optional()
        })
    }

    fn put(&self, reading: &Reading) -> Result<Option<i64>> {
        let source = self.put_source(reading)?;
        let has_transcript = reading.summary.events + reading.summary.notes > 0;
        if !has_transcript {
            self.run(|database| {
                database.execute("delete from transcript where source = ?1", [source])
            })?;
            self.put_passes(source, &Passed::Nothing)?;
            return Ok(None);
        }
        self.put_passes(source, &reading.passes)?;
        self.put_transcript(source, reading).map(Some)
    }

    fn forget_whole(&self, path: &Path) -> Result<()> {
        self.run(|database| {
            database.execute(
                "delete from source where path = ?1 and part = ''",
                [path.as_os_str().as_bytes()],
            )
        })?;
        Ok(())
    }

    fn keep_only(&self, keys: &std::collections::HashSet<String>) -> Result<()> {
        for row in self.sources()? {
            if !keys.contains(&row.key) && !row.is_in_place() {
                self.forget(&row.key)?;
            }
        }
        Ok(())
    }

    fn blobs(&self) -> Result<Vec<String>> {
        self.run(|database| {
            let mut statement =
                database.prepare("select distinct blob from blob_use order by 1")?;
            statement.query_map([], |row| row.get(0))?.collect()
        })
    }

    fn uses_blob(&self, blob: &str) -> Result<bool> {
        self.run(|database| {
            database
                .prepare_cached("select 1 from blob_use where blob = ?1")?
                .exists([blob])
        })
    }

    fn forget(&self, key: &str) -> Result<()> {
        self.run(|database| database.execute("delete from source where key = ?1", [key]))?;
        Ok(())
    }
}

impl SqliteCatalogue {
    fn sources_where(
        &self,
        condition: &str,
        values: &[&dyn rusqlite::ToSql],
    ) -> Result<Vec<SourceRow>> {
        self.run(|database| {
            let mut statement = database.prepare(&format!(
                "select id, key, agent, dialect, path, part, size, modified, inode, stamp, adapters,
                        problem, version, read_to, manifest
                 from source where {condition}"
            ))?;
            let rows = statement.query_map(values, |row| {
                Ok(SourceRow {
                    id: row.get(0)?,
                    key: row.get(1)?,
                    agent: row.get(2)?,
                    dialect: row.get(3)?,
                    path: PathBuf::from(std::ffi::OsString::from_vec(row.get(4)?)),
                    part: row.get(5)?,
                    stamp: Stamp {
                        size: row.get::<_, i64>(6)?.unsigned_abs(),
                        modified: row.get(7)?,
                        inode: row.get(8)?,
                        part: row.get(9)?,
                    },
                    adapters: row.get(10)?,
                    problem: row.get(11)?,
                    version: row.get(12)?,
                    read_to: row.get::<_, i64>(13)?.unsigned_abs(),
                    manifest: row.get::<_, Option<i64>>(14)?.map(i64::unsigned_abs),
                })
            })?;
            rows.collect()
        })
    }

    fn put_source(&self, reading: &Reading) -> Result<i64> {
        let Reading { ledger, stamp, .. } = reading;
        let source = self.run(|database| {
            let mut statement = database.prepare_cached(
                "insert into source (key, agent, dialect, path, part, size, modified, inode, stamp,
                     first_modified, version, read_to, checkpoint, adapters, records, mapped, noted,
                     blank, problem, manifest)
                 values (:key, :agent, :dialect, :path, :part, :size, :modified, :inode, :stamp,
                     :first_modified, :version, :read_to, :checkpoint, :adapters, :records, :mapped, :noted,
                     :blank, :problem, :manifest)
                 on conflict (key) do update set agent = excluded.agent, dialect = excluded.dialect,
                     size = excluded.size, modified = excluded.modified, inode = excluded.inode,
                     stamp = excluded.stamp, version = excluded.version, read_to = excluded.read_to,
                     checkpoint = excluded.checkpoint, adapters = excluded.adapters,
                     records = excluded.records, mapped = excluded.mapped, noted = excluded.noted,
                     blank = excluded.blank, problem = excluded.problem, path = excluded.path,
                     manifest = excluded.manifest
                 returning id",
            )?;
            statement.query_row(
                named_params! {
                    ":key": reading.key,
                    ":agent": reading.agent,
                    ":dialect": reading.dialect,
                    ":path": reading.path.as_os_str().as_bytes(),
                    ":part": reading.part,
                    ":size": signed(stamp.size),
                    ":modified": stamp.modified,
                    ":first_modified": reading.first_modified.or(stamp.modified),
                    ":inode": stamp.inode,
                    ":stamp": stamp.part,
                    ":version": reading.version,
                    ":read_to": signed(reading.read_to),
                    ":checkpoint": reading.checkpoint,
                    ":adapters": ADAPTERS,
                    ":records": signed(ledger.records),
                    ":mapped": signed(ledger.mapped),
                    ":noted": signed(ledger.noted),
                    ":blank": signed(ledger.blank),
                    ":problem": reading.problem,
                    ":manifest": reading.manifest.map(signed),
                },
                |row| row.get::<_, i64>(0),
            )
        })?;
        // The same log, when less of it was there, may have seemed to be another agent's.
        self.run(|database| {
            database
                .prepare_cached("delete from source where path = ?1 and part is ?2 and key <> ?3")?
                .execute(params![
                    reading.path.as_os_str().as_bytes(),
                    reading.part,
                    reading.key
                ])
        })?;
        self.run(|database| {
            for table in ["dropped", "mended", "drift"] {
                database
                    .prepare_cached(&format!("delete from {table} where source = ?1"))?
                    .execute([source])?;
            }
            for (reason, n) in &ledger.dropped {
                database
                    .prepare_cached("insert into dropped values (?1, ?2, ?3)")?
                    .execute(params![source, reason.as_str(), signed(*n)])?;
            }
            for (what, n) in &ledger.mended {
                database
                    .prepare_cached("insert into mended values (?1, ?2, ?3)")?
                    .execute(params![source, what.as_str(), signed(*n)])?;
            }
            for (name, sighting) in &ledger.drift.unknown {
                database
                    .prepare_cached("insert into drift values (?1, ?2, ?3, ?4, ?5)")?
                    .execute(params![
                        source,
                        name,
                        signed(sighting.count),
                        signed(sighting.first.offset),
                        signed(sighting.first.line)
                    ])?;
            }
            Ok(source)
        })
    }

    #[expect(clippy::too_many_lines, reason = "one statement, a line per column")]
    fn put_transcript(&self, source: i64, reading: &Reading) -> Result<i64> {
        let Reading {
            session, summary, ..
        } = reading;
        let received = reading.received.as_ref();
        let named = |native: String| match received {
            Some(from) => from.among_theirs(&native),
            None => native,
        };
        let native = named(native_id(
            session.id.as_deref(),
            &reading.path,
            reading.part.as_deref(),
        ));
        // By this, logs are compared whatever their sessions are called.
        let first_unit = reading.ledger.units.first().filter(|_| received.is_none());
        let usage = summary.usage();
        let vendor: Usage = session.vendor_usage.map(Into::into).unwrap_or_default();
        let calls = summary.calls();
        let started = session.started_at.or(summary.first_at);
        let started = match (started, summary.first_at) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        };
        let units: Vec<u8> = reading
            .ledger
            .units
            .iter()
            .flat_map(|unit| unit.to_le_bytes())
            .collect();
        let run_id = self.free_run_id(source, &native, &reading.key)?;
        self.run(|database| {
            let mut statement = database.prepare_cached(
                "insert into transcript (source, run_id, native, agent, agent_version, title, cwd,
                     branch, repository, commit_id, parent, parent_call, forked_from, reconstructed,
                     started_at, ended_at, events, notes, prompts, replies, tool_calls, failures,
                     denials, errors, compactions, attachments, dangling, orphans, calls, input,
                     cache_read, cache_write, cache_write_1h, output, reasoning, vendor_input,
                     vendor_cache_read, vendor_cache_write, vendor_output, vendor_reasoning, vendor_cost, first_unit,
                     units, received_from, received_key)
                 values (:source, :run_id, :native, :agent, :agent_version, :title, :cwd,
                     :branch, :repository, :commit_id, :parent, :parent_call, :forked_from,
                     :reconstructed, :started_at, :ended_at, :events, :notes, :prompts, :replies,
                     :tool_calls, :failures, :denials, :errors, :compactions, :attachments, :dangling,
                     :orphans, :calls, :input, :cache_read, :cache_write, :cache_write_1h, :output, :reasoning,
                     :vendor_input, :vendor_cache_read, :vendor_cache_write, :vendor_output,
                     :vendor_reasoning, :vendor_cost, :first_unit, :units,
                     :received_from, :received_key)
                 on conflict (source) do update set run_id = excluded.run_id,
                     native = excluded.native, agent = excluded.agent,
                     agent_version = excluded.agent_version, title = excluded.title,
                     cwd = excluded.cwd, branch = excluded.branch, repository = excluded.repository,
                     commit_id = excluded.commit_id, parent = excluded.parent,
                     parent_call = excluded.parent_call, forked_from = excluded.forked_from,
                     reconstructed = excluded.reconstructed, started_at = excluded.started_at,
                     ended_at = excluded.ended_at, events = excluded.events, notes = excluded.notes,
                     prompts = excluded.prompts, replies = excluded.replies,
                     tool_calls = excluded.tool_calls, failures = excluded.failures,
                     denials = excluded.denials, errors = excluded.errors,
                     compactions = excluded.compactions, attachments = excluded.attachments,
                     dangling = excluded.dangling, orphans = excluded.orphans,
                     calls = excluded.calls, input = excluded.input,
                     cache_read = excluded.cache_read, cache_write = excluded.cache_write,
                     cache_write_1h = excluded.cache_write_1h,
                     output = excluded.output, reasoning = excluded.reasoning,
                     vendor_input = excluded.vendor_input,
                     vendor_cache_read = excluded.vendor_cache_read,
                     vendor_cache_write = excluded.vendor_cache_write,
                     vendor_output = excluded.vendor_output,
                     vendor_reasoning = excluded.vendor_reasoning,
                     vendor_cost = excluded.vendor_cost, first_unit = excluded.first_unit,
                     units = excluded.units, received_from = excluded.received_from,
                     received_key = excluded.received_key, copy_of = null, copied_events = 0, duplicate = 0
                 returning id",
            )?;
            let title = session.title.as_ref().or(summary.title.as_ref());
            let dangling = reading.ledger.open_calls().count() as u64;
            let transcript: i64 = statement.query_row(
                named_params! {
                    ":source": source,
                    ":run_id": run_id,
                    ":native": native,
                    ":agent": reading.agent,
                    ":agent_version": session.version,
                    ":title": title,
                    ":cwd": session.cwd,
                    ":branch": session.branch,
                    ":repository": session.repository,
                    ":commit_id": session.commit,
                    ":parent": session.parent.as_deref().map(native_of).map(named),
                    ":parent_call": session.parent_call,
                    ":forked_from": session.forked_from.as_deref().map(native_of).map(named),
                    ":reconstructed": session.reconstructed,
                    ":started_at": started,
                    ":ended_at": summary.last_at,
                    ":events": signed(summary.events),
                    ":notes": signed(summary.notes),
                    ":prompts": signed(summary.prompts),
                    ":replies": signed(summary.replies),
                    ":tool_calls": signed(summary.tool_calls),
                    ":failures": signed(summary.failures),
                    ":denials": signed(summary.denials),
                    ":errors": signed(summary.errors),
                    ":compactions": signed(summary.compactions),
                    ":attachments": signed(summary.attachments),
                    ":dangling": signed(dangling),
                    ":orphans": signed(reading.ledger.orphans),
                    ":calls": signed(calls),
                    ":input": usage.input.map(signed),
                    ":cache_read": usage.cache_read.map(signed),
                    ":cache_write": usage.cache_write.map(signed),
                    ":cache_write_1h": usage.cache_write_1h.map(signed),
                    ":output": usage.output.map(signed),
                    ":reasoning": usage.reasoning.map(signed),
                    ":vendor_input": vendor.input.map(signed),
                    ":vendor_cache_read": vendor.cache_read.map(signed),
                    ":vendor_cache_write": vendor.cache_write.map(signed),
                    ":vendor_output": vendor.output.map(signed),
                    ":vendor_reasoning": vendor.reasoning.map(signed),
                    ":vendor_cost": session.vendor_cost,
                    ":first_unit": first_unit.map(|unit| unit.cast_signed()),
                    ":units": units,
                    ":received_from": received.map(|from| &from.pseudonym),
                    ":received_key": received.and_then(|from| from.key_id.as_ref()),
                },
                |row| row.get(0),
            )?;
            super::uses::put(database, transcript, summary)?;
            super::uses::put_names(database, transcript, summary, &named)?;
            for blob in &reading.blobs {
                database
                    .prepare_cached("insert or ignore into blob_use values (?1, ?2)")?
                    .execute(params![transcript, blob])?;
            }
            Ok(transcript)
        })
    }

    /// A run id that no other source has: the plain one, or the plain one and a piece of the source's
    /// key. Which of several copies gets the plain one is settled afterwards.
    fn free_run_id(&self, source: i64, native: &str, key: &str) -> Result<String> {
        let taken: Option<i64> = self.run(|database| {
            database
                .prepare_cached("select source from transcript where run_id = ?1")?
                .query_row([native], |row| row.get(0))
                .optional()
        })?;
        Ok(match taken {
            Some(other) if other != source => copy_run_id(native, key),
            _ => native.to_owned(),
        })
    }
}

/// How many digits of its key are in the run id of a copy.
pub(super) const COPY_DIGITS: usize = 8;

/// The run id of a session whose own id another copy of it has.
pub(crate) fn copy_run_id(native: &str, key: &str) -> String {
    let native: String = native.chars().take(118).collect();
    let key: String = key.chars().take(COPY_DIGITS).collect();
    format!("{native}.{key}")
}

pub(super) fn native_of(id: &str) -> String {
    quipu_agents::run_id(id).as_str().to_owned()
}

/// The id that copies of a session share.
pub(crate) fn native_id(id: Option<&str>, path: &Path, part: Option<&str>) -> String {
    match id {
        Some(id) => native_of(id),
        None => native_of(&fallback_id(path, part)),
    }
}

/// The id of a session whose log gives it none: the name of its file, and enough of a hash of its path
/// that no other has the same.
fn fallback_id(path: &Path, part: Option<&str>) -> String {
    let name = path.file_stem().unwrap_or_default().to_string_lossy();
    let hash = quipu_agents::hash(path.as_os_str().as_bytes());
    match part {
        Some(part) => part.to_owned(),
        None => format!("{name}-{:08x}", hash >> 32),
    }
}

/// `SQLite` has no unsigned numbers. A count beyond 63 bits is a lie of the log's.
pub(crate) fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}
