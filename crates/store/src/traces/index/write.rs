//! Putting down what was found in a trace.

use std::collections::BTreeMap;

use quipu_formats::agentlog::ContentId;
use rusqlite::{Connection, OptionalExtension as _, params};

use super::Index;
use crate::address::Digest;
use crate::blobs::BlobId;
use crate::blobs::phash::DHash;
use crate::traces::error::Result;
use crate::traces::survey::Survey;

/// A file, and what is in it.
#[derive(Debug)]
pub(in crate::traces) struct Entry {
    /// Below the directory of traces.
    pub(in crate::traces) path: String,
    /// The root that the file is named by.
    pub(in crate::traces) root: ContentId,
    pub(in crate::traces) size: u64,
    /// Nanoseconds since 1970.
    pub(in crate::traces) modified: i64,
    pub(in crate::traces) sha256: Digest,
    pub(in crate::traces) survey: Survey,
}

/// What a file was when it was read last.
#[derive(Debug)]
pub(in crate::traces) struct Known {
    /// Below the directory of traces.
    pub(in crate::traces) path: String,
    pub(in crate::traces) sha256: Digest,
    pub(in crate::traces) records: u64,
    pub(in crate::traces) wrong_ids: u64,
}

impl Known {
    fn read(row: &rusqlite::Row<'_>) -> rusqlite::Result<Self> {
        let count = |at: usize| row.get(at).map(|n: i64| u64::try_from(n).unwrap_or(0));
        let sha256: String = row.get(1)?;
        Ok(Self {
            path: row.get(0)?,
            sha256: sha256.parse().map_err(|_| rusqlite::Error::InvalidQuery)?,
            records: count(2)?,
            wrong_ids: count(3)?,
        })
    }
}

/// Whole numbers as the database has them. What does not fit is as large as can be.
fn signed(n: u64) -> i64 {
    i64::try_from(n).unwrap_or(i64::MAX)
}

impl Index {
    /// What each file looked like when it was read: its size and when it was modified.
    pub(in crate::traces) fn seen(&self) -> Result<BTreeMap<String, (i64, i64)>> {
        self.run(|database| {
            let mut select = database.prepare("select path, size, modified from quipu_files")?;
            select
                .query_map([], |row| Ok((row.get(0)?, (row.get(1)?, row.get(2)?))))?
                .collect()
        })
    }

    /// What each file was when it was read last.
    pub(in crate::traces) fn known(&self) -> Result<Vec<Known>> {
        self.run(|database| {
            let mut select = database.prepare(
                "select path, sha256, records, wrong_ids from quipu_files order by path",
            )?;
            select.query_map([], Known::read)?.collect()
        })
    }

    /// What a file was when it was read last.
    pub(in crate::traces) fn known_of(&self, path: &str) -> Result<Option<Known>> {
        self.run(|database| {
            let mut select = database.prepare_cached(
                "select path, sha256, records, wrong_ids from quipu_files where path = ?1",
            )?;
            select.query_row([path], Known::read).optional()
        })
    }

    /// Puts down files, in place of what was known of them, and forgets others.
    pub(in crate::traces) fn put(&self, entries: &[Entry], gone: &[String]) -> Result<()> {
        self.at_once(|database| {
            for path in gone {
                forget(database, path)?;
            }
            for entry in entries {
                database
                    .prepare_cached("delete from quipu_files where path = ?1")?
                    .execute([&entry.path])?;
                put_trace(database, entry)?;
                put_file(database, entry)?;
            }
            put_replays(database)
        })
    }

    /// Puts down what a blob was found to be.
    pub(in crate::traces) fn put_blobs(
        &self,
        blobs: &[(BlobId, u64, String, Option<DHash>)],
    ) -> Result<()> {
        self.at_once(|database| {
            let mut insert = database
                .prepare_cached("insert or replace into quipu_blobs values (?1, ?2, ?3, ?4)")?;
            for (blob, size, mime, phash) in blobs {
                let phash = phash.map(|hash| hash.0.cast_signed());
                insert.execute(params![blob.to_string(), signed(*size), mime, phash])?;
            }
            Ok(())
        })
    }

    /// Forgets blobs that are not there any more.
    pub(in crate::traces) fn forget_blobs(&self, blobs: &[BlobId]) -> Result<()> {
        self.at_once(|database| {
            let mut delete = database.prepare_cached("delete from quipu_blobs where blob = ?1")?;
            for blob in blobs {
                delete.execute([blob.to_string()])?;
            }
            Ok(())
        })
    }

    /// Puts down replays that another program knows of.
    pub(in crate::traces) fn put_foreign_replays(
        &self,
        rows: &[[rusqlite::types::Value; 5]],
    ) -> Result<()> {
        self.at_once(|database| {
            let mut insert = database.prepare_cached(
                "insert or ignore into replays select ?1, ?2, ?3, ?4, ?5
                 where exists (select 1 from traces where id = ?2)",
            )?;
            for row in rows {
                insert.execute(rusqlite::params_from_iter(row))?;
            }
            Ok(())
        })
    }
}

fn created_at(entry: &Entry) -> i64 {
    let said = entry.survey.root.as_ref().and_then(|root| root.ts);
    said.or(entry.survey.first_ts)
        .unwrap_or(entry.modified.div_euclid(1_000_000))
}

/// The row that all files with the same root share: of equal roots, tags are equal as well.
fn put_trace(database: &Connection, entry: &Entry) -> rusqlite::Result<()> {
    let id = entry.root.to_string();
    let root = entry.survey.root.as_ref();
    let session_tag = root.and_then(|root| root.session_tag.as_deref());
    let said = root.and_then(|root| root.said).unwrap_or(entry.root);
    database
        .prepare_cached(
            "insert into traces values (?1, ?2, ?3, ?4)
             on conflict (id) do update set created_at = min(created_at, excluded.created_at),
                 session_tag = coalesce(session_tag, excluded.session_tag)",
        )?
        .execute(params![
            id,
            created_at(entry),
            session_tag,
            said.to_string()
        ])?;
    database
        .prepare_cached("delete from tags where trace_id = ?1")?
        .execute([&id])?;
    let mut insert = database.prepare_cached("insert into tags values (?1, ?2, ?3)")?;
    for (key, value) in root.into_iter().flat_map(|root| &root.tags) {
        insert.execute([&id, key, value])?;
    }
    Ok(())
}

fn put_file(database: &Connection, entry: &Entry) -> rusqlite::Result<()> {
    let survey = &entry.survey;
    let root = survey.root.as_ref();
    let is_rooted = root.is_some_and(|root| {
        root.is_root && root.said == Some(entry.root) && root.is == Some(entry.root)
    });
    database
        .prepare_cached(
            "insert into quipu_files values
                 (null, ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16)",
        )?
        .execute(params![
            entry.root.to_string(),
            entry.path,
            signed(entry.size),
            entry.modified,
            entry.sha256.to_string(),
            signed(survey.records),
            signed(survey.bad_lines),
            signed(survey.wrong_ids),
            survey.first_wrong.map(signed),
            is_rooted,
            created_at(entry),
            root.and_then(|root| root.session_tag.as_deref()),
            survey.first_ts,
            survey.last_ts,
            signed(survey.left_out),
            survey.blobs_left_out,
        ])?;
    let file = database.last_insert_rowid();
    let mut insert = database.prepare_cached("insert into quipu_counts values (?1, ?2, ?3, ?4)")?;
    let counts = [
        ("kind", &survey.kinds),
        ("model", &survey.models),
        ("tool", &survey.tools),
    ];
    for (what, names) in counts {
        for (name, n) in names {
            insert.execute(params![file, what, name, signed(*n)])?;
        }
    }
    let mut insert = database.prepare_cached("insert into quipu_marks values (?1, ?2, ?3)")?;
    let marks = [
        ("session_tag", &survey.session_tags),
        ("trace_id", &survey.trace_ids),
    ];
    for (what, values) in marks {
        for value in values {
            insert.execute(params![file, what, value])?;
        }
    }
    let mut insert =
        database.prepare_cached("insert into quipu_replays values (?1, ?2, ?3, ?4)")?;
    for replay in &survey.replays {
        let outcome = replay.outcome.map(|id| id.to_string());
        insert.execute(params![file, replay.baseline, outcome, replay.at])?;
    }
    let mut insert =
        database.prepare_cached("insert into quipu_blob_use values (?1, ?2, ?3, ?4, ?5)")?;
    for (blob, said) in &survey.blobs {
        let said = said.as_ref();
        insert.execute(params![
            file,
            blob.to_string(),
            said.map(|said| &said.mime),
            said.map(|said| signed(said.size_bytes)),
            said.and_then(|said| said.phash)
                .map(|hash| hash.0.cast_signed()),
        ])?;
    }
    Ok(())
}

/// Forgets a file, and the trace if no other file is of it. What others have put down of a trace whose file
/// is not known stays.
fn forget(database: &Connection, path: &str) -> rusqlite::Result<()> {
    // Only what was derived: of other replays, we do not know what they were made of.
    database
        .prepare_cached(
            "delete from replays where config_hash is null and id in
                 (select coalesce(r.outcome, f.trace_id) from quipu_files f
                  join quipu_replays r on r.file = f.id where f.path = ?1)",
        )?
        .execute([path])?;
    database
        .prepare_cached(
            "delete from traces where id = (select trace_id from quipu_files where path = ?1)
             and not exists (select 1 from quipu_files f where f.trace_id = traces.id and f.path <> ?1)",
        )?
        .execute([path])?;
    database
        .prepare_cached("delete from quipu_files where path = ?1")?
        .execute([path])?;
    Ok(())
}

/// Fills the specification's table of replays with those whose baseline is here. One is told by the record
/// that sums it up, else by the trace it is.
fn put_replays(database: &Connection) -> rusqlite::Result<()> {
    database.execute_batch(
        "insert or ignore into replays (id, baseline_trace_id, config_hash, outcome_record_id, created_at)
         select coalesce(r.outcome, f.trace_id), r.baseline, null, r.outcome, coalesce(r.at, f.created_at)
         from quipu_replays r join quipu_files f on f.id = r.file
         where exists (select 1 from traces where id = r.baseline)",
    )
}
