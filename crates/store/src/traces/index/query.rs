//! What can be asked.

use std::collections::BTreeMap;

use rusqlite::types::Value;
use rusqlite::{Connection, Row};

use super::Index;
use crate::blobs::BlobId;
use crate::blobs::phash::DHash;
use crate::traces::error::Result;
use crate::traces::name::Asked;

/// Which traces are asked for. Of several conditions, all apply.
#[derive(Debug, Clone, Default)]
pub struct Filter {
    /// Tags of the root: the key, and perhaps the value.
    pub tags: Vec<(String, Option<String>)>,
    /// Tags of sessions, of any session marker.
    pub session_tags: Vec<String>,
    /// Kinds of records that are in it, as they are written.
    pub kinds: Vec<String>,
    /// Models that were asked or answered.
    pub models: Vec<String>,
    /// Tools that were called.
    pub tools: Vec<String>,
    /// Something was at this time or later, in milliseconds since 1970.
    pub since: Option<i64>,
    /// Something was before this time.
    pub until: Option<i64>,
    /// Replays of the trace with this id: `sha256:…`.
    pub replays_of: Option<String>,
    /// Traces that may refer to this blob.
    pub blob: Option<BlobId>,
    /// No more than these, the newest.
    pub limit: Option<usize>,
}

/// A trace, as the index has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TraceRow {
    /// The id of its root record: `sha256:…`.
    pub id: String,
    /// The SHA-256 of the file, in hex.
    pub sha256: String,
    /// How many files have the same id. When it is more than one, the id does not tell which is meant.
    pub same_id: u64,
    /// The file, below the directory of traces.
    pub path: String,
    /// How large it is.
    pub size: u64,
    /// Lines that are records.
    pub records: u64,
    /// Lines that are not.
    pub bad_lines: u64,
    /// Records whose id is not that of their payload.
    pub wrong_ids: u64,
    /// The line of the first of them.
    pub first_wrong: Option<u64>,
    /// Whether the first record is a root, with the id that the file is named by and its payload has.
    pub is_rooted: bool,
    /// When it began, in milliseconds since 1970.
    pub created_at: i64,
    /// The earliest time in it.
    pub first_ts: Option<i64>,
    /// The latest.
    pub last_ts: Option<i64>,
    /// The tag of the root's session.
    pub session_tag: Option<String>,
    /// The tags of all sessions in it.
    pub session_tags: Vec<String>,
    /// What `meta.trace_id` of its records says.
    pub trace_ids: Vec<String>,
    /// The tags of its root.
    pub tags: BTreeMap<String, String>,
    /// How many records there are of each kind.
    pub kinds: BTreeMap<String, u64>,
    /// Models, and in how many records.
    pub models: BTreeMap<String, u64>,
    /// Tools, and how often they were called.
    pub tools: BTreeMap<String, u64>,
    /// The traces it is a replay of.
    pub replay_of: Vec<String>,
    /// Names that were too many, or too long, to be in the index.
    pub left_out: u64,
}

impl TraceRow {
    /// The 64 digits of its id.
    pub fn hex(&self) -> &str {
        self.id.strip_prefix("sha256:").unwrap_or(&self.id)
    }

    /// The full name, which names this file and no other.
    pub fn name(&self) -> String {
        format!("{}~{}", self.hex(), &self.sha256[..16])
    }
}

/// The columns that [`row`] reads.
const COLUMNS: &str = "f.id, f.trace_id, f.sha256,
    (select count(*) from quipu_files g where g.trace_id = f.trace_id), f.path, f.size, f.records,
    f.bad_lines, f.wrong_ids, f.first_wrong, f.is_rooted, f.created_at, f.first_ts, f.last_ts,
    f.session_tag, f.left_out";

fn unsigned(row: &Row<'_>, at: usize) -> rusqlite::Result<u64> {
    Ok(u64::try_from(row.get::<_, i64>(at)?).unwrap_or(0))
}

fn row(row: &Row<'_>) -> rusqlite::Result<(i64, TraceRow)> {
    let first_wrong: Option<i64> = row.get(9)?;
    let found = TraceRow {
        id: row.get(1)?,
        sha256: row.get(2)?,
        same_id: unsigned(row, 3)?,
        path: row.get(4)?,
        size: unsigned(row, 5)?,
        records: unsigned(row, 6)?,
        bad_lines: unsigned(row, 7)?,
        wrong_ids: unsigned(row, 8)?,
        first_wrong: first_wrong.and_then(|line| line.try_into().ok()),
        is_rooted: row.get(10)?,
        created_at: row.get(11)?,
        first_ts: row.get(12)?,
        last_ts: row.get(13)?,
        session_tag: row.get(14)?,
        left_out: unsigned(row, 15)?,
        session_tags: Vec::new(),
        trace_ids: Vec::new(),
        tags: BTreeMap::new(),
        kinds: BTreeMap::new(),
        models: BTreeMap::new(),
        tools: BTreeMap::new(),
        replay_of: Vec::new(),
    };
    Ok((row.get(0)?, found))
}

/// What is in other tables of a file.
fn complete(database: &Connection, file: i64, row: &mut TraceRow) -> rusqlite::Result<()> {
    let mut counts =
        database.prepare_cached("select what, name, n from quipu_counts where file = ?1")?;
    let mut rows = counts.query([file])?;
    while let Some(count) = rows.next()? {
        let what: String = count.get(0)?;
        let names = match what.as_str() {
            "kind" => &mut row.kinds,
            "model" => &mut row.models,
            _ => &mut row.tools,
        };
        names.insert(count.get(1)?, unsigned(count, 2)?);
    }
    let mut marks =
        database.prepare_cached("select what, value from quipu_marks where file = ?1")?;
    let mut rows = marks.query([file])?;
    while let Some(mark) = rows.next()? {
        let what: String = mark.get(0)?;
        if what == "session_tag" {
            row.session_tags.push(mark.get(1)?);
        } else {
            row.trace_ids.push(mark.get(1)?);
        }
    }
    let mut tags = database.prepare_cached("select key, value from tags where trace_id = ?1")?;
    row.tags = tags
        .query_map([&row.id], |tag| Ok((tag.get(0)?, tag.get(1)?)))?
        .collect::<rusqlite::Result<_>>()?;
    let mut replays = database.prepare_cached(
        "select baseline from quipu_replays where file = ?1
         union select baseline_trace_id from replays where id = ?2 or outcome_record_id in
             (select outcome from quipu_replays where file = ?1)
         order by 1",
    )?;
    row.replay_of = replays
        .query_map(rusqlite::params![file, row.id], |replay| replay.get(0))?
        .collect::<rusqlite::Result<_>>()?;
    Ok(())
}

impl Filter {
    /// The condition, and what is to be put into it.
    fn condition(&self) -> (String, Vec<Value>) {
        let mut all = Vec::new();
        let mut values: Vec<Value> = Vec::new();
        let mut add = |sql: &str, with: &[Value]| {
            all.push(sql.to_owned());
            values.extend_from_slice(with);
        };
        for (key, value) in &self.tags {
            let key = Value::from(key.clone());
            let begin = "exists (select 1 from tags t where t.trace_id = f.trace_id and t.key = ?";
            match value {
                None => add(&format!("{begin})"), &[key]),
                Some(value) => add(
                    &format!("{begin} and t.value = ?)"),
                    &[key, value.clone().into()],
                ),
            }
        }
        let marked = "exists (select 1 from quipu_marks m
            where m.file = f.id and m.what = 'session_tag' and m.value = ?)";
        for tag in &self.session_tags {
            add(marked, &[tag.clone().into()]);
        }
        let counted = [
            ("kind", &self.kinds),
            ("model", &self.models),
            ("tool", &self.tools),
        ];
        for (what, names) in counted {
            for name in names {
                let sql = "exists (select 1 from quipu_counts c
                    where c.file = f.id and c.what = ? and c.name = ?)";
                add(sql, &[what.to_owned().into(), name.clone().into()]);
            }
        }
        if let Some(since) = self.since {
            add("coalesce(f.last_ts, f.created_at) >= ?", &[since.into()]);
        }
        if let Some(until) = self.until {
            add("coalesce(f.first_ts, f.created_at) < ?", &[until.into()]);
        }
        if let Some(baseline) = &self.replays_of {
            let sql =
                "(exists (select 1 from quipu_replays r where r.file = f.id and r.baseline = ?)
                or exists (select 1 from replays r where r.baseline_trace_id = ?
                    and (r.id = f.trace_id or r.outcome_record_id in
                        (select q.outcome from quipu_replays q where q.file = f.id))))";
            add(sql, &[baseline.clone().into(), baseline.clone().into()]);
        }
        if let Some(blob) = &self.blob {
            let sql = "exists (select 1 from quipu_blob_use u where u.file = f.id and u.blob = ?)";
            add(sql, &[blob.to_string().into()]);
        }
        if all.is_empty() {
            all.push("1".to_owned());
        }
        (all.join(" and "), values)
    }
}

impl Index {
    /// The traces that are asked for, the newest first.
    pub(in crate::traces) fn list(&self, filter: &Filter) -> Result<Vec<TraceRow>> {
        let (condition, values) = filter.condition();
        let limit = filter
            .limit
            .map_or(-1, |limit| i64::try_from(limit).unwrap_or(-1));
        let sql = format!(
            "select {COLUMNS} from quipu_files f where {condition}
             order by f.created_at desc, f.trace_id, f.path limit {limit}"
        );
        self.rows(&sql, values)
    }

    fn rows(&self, sql: &str, values: Vec<Value>) -> Result<Vec<TraceRow>> {
        self.run(|database| {
            let mut select = database.prepare(sql)?;
            let rows = select.query_map(rusqlite::params_from_iter(values), row)?;
            let rows: Vec<(i64, TraceRow)> = rows.collect::<rusqlite::Result<_>>()?;
            rows.into_iter()
                .map(|(file, mut row)| complete(database, file, &mut row).map(|()| row))
                .collect()
        })
    }

    /// The traces whose name begins so.
    pub(in crate::traces) fn named(&self, asked: &Asked<'_>) -> Result<Vec<TraceRow>> {
        // Only digits are asked for, so nothing in it is a pattern.
        let sql = format!(
            "select {COLUMNS} from quipu_files f
             where f.trace_id like ?1 and f.sha256 like ?2 order by f.trace_id, f.path limit 100"
        );
        let root = format!("sha256:{}%", asked.root);
        let content = format!("{}%", asked.content);
        self.rows(&sql, vec![root.into(), content.into()])
    }

    /// Whether a trace may refer to this blob.
    pub(in crate::traces) fn uses_blob(&self, blob: &BlobId) -> Result<bool> {
        self.run(|database| {
            database
                .prepare_cached("select 1 from quipu_blob_use where blob = ?1")?
                .exists([blob.to_string()])
        })
    }

    /// The full names of the traces that may refer to each blob.
    pub(in crate::traces) fn users_of_blobs(&self) -> Result<BTreeMap<BlobId, Vec<String>>> {
        self.run(|database| {
            let mut select = database.prepare(
                "select u.blob, substr(f.trace_id, 8) || '~' || substr(f.sha256, 1, 16)
                 from quipu_blob_use u join quipu_files f on f.id = u.file
                 where u.mime is not null or u.blob in (select blob from quipu_blobs)
                 order by f.created_at desc, f.trace_id, f.path",
            )?;
            let mut rows = select.query([])?;
            let mut users: BTreeMap<BlobId, Vec<String>> = BTreeMap::new();
            while let Some(row) = rows.next()? {
                if let Ok(id) = row.get::<_, String>(0)?.parse() {
                    users.entry(id).or_default().push(row.get(1)?);
                }
            }
            Ok(users)
        })
    }

    /// Traces that refer to more blobs than are remembered.
    pub(in crate::traces) fn overflowing(&self) -> Result<Vec<String>> {
        self.run(|database| {
            let mut select = database
                .prepare("select path from quipu_files where blobs_left_out order by path")?;
            select.query_map([], |row| row.get(0))?.collect()
        })
    }

    /// The blobs that were looked at.
    pub(in crate::traces) fn blobs(&self) -> Result<BTreeMap<BlobId, Looked>> {
        self.looked("select blob, size, mime, phash from quipu_blobs")
    }

    /// What traces say of blobs, where a `blob_ref` says it.
    pub(in crate::traces) fn said_of_blobs(&self) -> Result<BTreeMap<BlobId, Looked>> {
        self.looked(
            "select blob, max(size), max(mime), max(phash) from quipu_blob_use
             where mime is not null group by blob",
        )
    }

    fn looked(&self, sql: &str) -> Result<BTreeMap<BlobId, Looked>> {
        self.run(|database| {
            let mut select = database.prepare(sql)?;
            let mut rows = select.query([])?;
            let mut blobs = BTreeMap::new();
            while let Some(row) = rows.next()? {
                let phash: Option<i64> = row.get(3)?;
                let looked = Looked {
                    size: unsigned(row, 1)?,
                    mime: row.get(2)?,
                    phash: phash.map(|bits| DHash(bits.cast_unsigned())),
                };
                if let Ok(id) = row.get::<_, String>(0)?.parse() {
                    blobs.insert(id, looked);
                }
            }
            Ok(blobs)
        })
    }
}

/// What is known of a blob.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::traces) struct Looked {
    pub(in crate::traces) size: u64,
    pub(in crate::traces) mime: String,
    pub(in crate::traces) phash: Option<DHash>,
}
