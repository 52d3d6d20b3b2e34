//! What is asked of the catalogue.

use std::collections::BTreeMap;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Path, PathBuf};

use quipu_model::Usage;
use rusqlite::types::Value;
use rusqlite::{OptionalExtension as _, Row, params_from_iter};

use super::write::{COPY_DIGITS, copy_run_id};
use super::{CatalogueError, Received, Result, SqliteCatalogue, Transcripts, origin};

/// One transcript, as a list shows it. Times are milliseconds since 1970.
#[derive(Debug, Clone)]
pub struct TranscriptRow {
    /// Its number in the catalogue.
    pub id: i64,
    /// A name for it: the id of its session for the best of several copies, so that it may become another's. What is
    /// to hold for good is [`TranscriptRow::address`].
    pub run_id: String,
    /// The id that copies of the same session share.
    pub native: String,
    /// The agent.
    pub agent: String,
    /// The agent's version.
    pub agent_version: Option<String>,
    /// A name, or the first prompt.
    pub title: Option<String>,
    /// The directory it ran in.
    pub cwd: Option<String>,
    /// The branch.
    pub branch: Option<String>,
    /// The repository.
    pub repository: Option<String>,
    /// The commit.
    pub commit: Option<String>,
    /// The session whose sub-agent this is.
    pub parent: Option<String>,
    /// The call in the parent that began it.
    pub parent_call: Option<String>,
    /// The session it branched off from.
    pub forked_from: Option<String>,
    /// The transcript that part of this one is a copy of, by its run id.
    pub copy_of: Option<String>,
    /// The same, by its address.
    pub original: Option<String>,
    /// How many of its events are copies.
    pub copied_events: u64,
    /// Whether all of it is a copy.
    pub duplicate: bool,
    /// Whether the log itself is gone.
    pub reconstructed: bool,
    /// When it began.
    pub started_at: Option<i64>,
    /// When it ended, so far.
    pub ended_at: Option<i64>,
    /// What is in it.
    pub figures: Figures,
    /// The tokens, copies not counted.
    pub usage: Usage,
    /// The vendor's own sum.
    pub vendor_usage: Usage,
    /// The vendor's own cost.
    pub vendor_cost: Option<String>,
    /// The models that its log names.
    pub models: Vec<String>,
    /// The log.
    pub path: PathBuf,
    /// Which session of several in the log.
    pub part: Option<String>,
    /// How the log reads.
    pub dialect: Option<String>,
    /// The name of its manifest in the archive.
    pub key: String,
    /// How long the log is.
    pub size: u64,
    /// When the log was last written to, in nanoseconds since 1970.
    pub modified: Option<i64>,
    /// The version of the log in the archive that was read; 0 for what the archive does not have.
    pub version: u32,
    /// How much of it was read.
    pub read_to: u64,
    /// Whether Quipu recorded it: then its file is its own original.
    pub recorded: bool,
    /// What it is known by for good: given once, to this log of this home.
    pub address: String,
    /// Who submitted it, by pseudonym; `None` for what is one's own, empty where it is not known any more.
    pub received_from: Option<String>,
    /// The key that it was submitted with.
    pub received_key: Option<String>,
}

/// How much of what.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Figures {
    /// Events, notes not counted.
    pub events: u64,
    /// Notes.
    pub notes: u64,
    /// Prompts by a person.
    pub prompts: u64,
    /// Messages of the agent.
    pub replies: u64,
    /// Tool calls.
    pub tool_calls: u64,
    /// Failed tool calls.
    pub failures: u64,
    /// Refused tool calls.
    pub denials: u64,
    /// Errors outside of tools.
    pub errors: u64,
    /// Compactions.
    pub compactions: u64,
    /// Images and the like.
    pub attachments: u64,
    /// Tool calls without a result.
    pub dangling: u64,
    /// Results without a call.
    pub orphans: u64,
    /// Calls to models, copies not counted.
    pub calls: u64,
}

/// Which transcripts are meant. What is empty does not restrict.
#[derive(Debug, Clone, Default)]
pub struct Filter {
    /// Agents, by name or the beginning of it.
    pub agents: Vec<String>,
    /// Directories, by path or a part of it.
    pub project: Option<String>,
    /// Branches, by name.
    pub branch: Option<String>,
    /// Models, by name or a part of it.
    pub model: Option<String>,
    /// Titles, by a part of them.
    pub title: Option<String>,
    /// Ended at or after this.
    pub since: Option<i64>,
    /// Began before this.
    pub until: Option<i64>,
    /// Sub-agents as well. Those whose parent is not kept are always meant.
    pub subagents: bool,
    /// Copies as well.
    pub duplicates: bool,
    /// Only what was imported: neither recorded runs nor traces that are kept.
    pub imported: bool,
    /// What others submitted.
    pub received: Received,
    /// Only what comes behind this one, in its order.
    pub after: Option<After>,
}

/// The last transcript of a page: where the next page begins. It holds while transcripts come and go.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct After {
    /// The order of the pages.
    pub order: Order,
    /// What the order goes by, of the last transcript.
    pub key: Option<i64>,
    /// Its run id, which decides between equals.
    pub run_id: String,
}

impl After {
    /// Behind this transcript.
    pub fn of(order: Order, row: &TranscriptRow) -> Self {
        let signed = |n: u64| i64::try_from(n).unwrap_or(i64::MAX);
        let bucket = |n: Option<u64>| n.unwrap_or(0);
        let key = match order {
            Order::Newest => row.ended_at.or(row.started_at),
            Order::Oldest => row.started_at.or(row.ended_at),
            Order::Tokens => {
                let usage = &row.usage;
                let all = [
                    usage.input,
                    usage.cache_read,
                    usage.cache_write,
                    usage.output,
                ];
                let sum = all.into_iter().map(bucket).fold(0, u64::saturating_add);
                Some(signed(sum))
            }
            Order::Size => Some(signed(row.size)),
            Order::Events => Some(signed(row.figures.events)),
        };
        Self {
            order,
            key,
            run_id: row.run_id.clone(),
        }
    }
}

/// In which order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Order {
    /// The latest first.
    #[default]
    Newest,
    /// The earliest first.
    Oldest,
    /// Those with the most tokens first.
    Tokens,
    /// The longest logs first.
    Size,
    /// Those with the most events first.
    Events,
}

/// Sums over transcripts.
#[derive(Debug, Clone, Default)]
pub struct Sum {
    /// What they have in common.
    pub name: String,
    /// How many.
    pub transcripts: u64,
    /// Sub-agents among them.
    pub subagents: u64,
    /// Events.
    pub events: u64,
    /// Bytes of logs.
    pub bytes: u64,
    /// Tokens.
    pub usage: Usage,
    /// The earliest begin.
    pub first: Option<i64>,
    /// The latest end.
    pub last: Option<i64>,
}

/// Why a transcript was not found.
#[derive(Debug, thiserror::Error)]
pub enum NotFound {
    /// There is none.
    #[error("no imported session {0:?}")]
    None(String),
    /// There are several.
    #[error("{0:?} is the beginning of several sessions: {names}", names = .1.join(", "))]
    Several(String, Vec<String>),
    /// It could not be looked up.
    #[error(transparent)]
    Catalogue(#[from] CatalogueError),
}

/// The word for the latest transcript.
const LAST: &str = "last";

const COLUMNS: &str = "t.id, t.run_id, t.native, t.agent, t.agent_version, t.title, t.cwd, t.branch,
    t.repository, t.commit_id, t.parent,
    coalesce(t.parent_call, (select c.call from spawned c join transcript p on p.id = c.transcript
        where c.child = t.native and p.native = t.parent and t.parent is not null limit 1)),
    t.forked_from,
    (select o.run_id from transcript o where o.id = t.copy_of), t.copied_events, t.duplicate,
    t.reconstructed, t.started_at, t.ended_at, t.events, t.notes, t.prompts, t.replies, t.tool_calls,
    t.failures, t.denials, t.errors, t.compactions, t.attachments, t.dangling, t.orphans, t.calls,
    t.input, t.cache_read, t.cache_write, t.output, t.reasoning, t.vendor_input,
    t.vendor_cache_read, t.vendor_cache_write, t.vendor_output, t.vendor_reasoning, t.vendor_cost,
    s.path, s.part, s.dialect, s.key, s.size, s.modified,
    (select group_concat(m.model, char(10)) from
        (select model from model_named where transcript = t.id order by 1) m), t.cache_write_1h,
    s.version = 0 and s.part is null and s.dialect is not 'agentlog',
    (select origin from temp.home) || '-' || substr(s.key, 1, 16),
    (select (select origin from temp.home) || '-' || substr(os.key, 1, 16)
        from transcript o join source os on os.id = o.source where o.id = t.copy_of),
    s.version, s.read_to, t.received_from, t.received_key";

fn read(row: &Row<'_>) -> rusqlite::Result<TranscriptRow> {
    let count = |at: usize| row.get::<_, i64>(at).map(i64::unsigned_abs);
    let tokens = |at: usize| {
        let bucket = |n: usize| {
            row.get::<_, Option<i64>>(at + n)
                .map(|n| n.map(i64::unsigned_abs))
        };
        Ok::<_, rusqlite::Error>(Usage {
            input: bucket(0)?,
            cache_read: bucket(1)?,
            cache_write: bucket(2)?,
            cache_write_1h: None,
            output: bucket(3)?,
            reasoning: bucket(4)?,
        })
    };
    let models: Option<String> = row.get(49)?;
    Ok(TranscriptRow {
        id: row.get(0)?,
        run_id: row.get(1)?,
        native: row.get(2)?,
        agent: row.get(3)?,
        agent_version: row.get(4)?,
        title: row.get(5)?,
        cwd: row.get(6)?,
        branch: row.get(7)?,
        repository: row.get(8)?,
        commit: row.get(9)?,
        parent: row.get(10)?,
        parent_call: row.get(11)?,
        forked_from: row.get(12)?,
        copy_of: row.get(13)?,
        original: row.get(53)?,
        copied_events: count(14)?,
        duplicate: row.get(15)?,
        reconstructed: row.get(16)?,
        started_at: row.get(17)?,
        ended_at: row.get(18)?,
        figures: Figures {
            events: count(19)?,
            notes: count(20)?,
            prompts: count(21)?,
            replies: count(22)?,
            tool_calls: count(23)?,
            failures: count(24)?,
            denials: count(25)?,
            errors: count(26)?,
            compactions: count(27)?,
            attachments: count(28)?,
            dangling: count(29)?,
            orphans: count(30)?,
            calls: count(31)?,
        },
        usage: Usage {
            cache_write_1h: row.get::<_, Option<i64>>(50)?.map(i64::unsigned_abs),
            ..tokens(32)?
        },
        vendor_usage: tokens(37)?,
        vendor_cost: row.get(42)?,
        path: PathBuf::from(std::ffi::OsString::from_vec(row.get(43)?)),
        part: row.get(44)?,
        dialect: row.get(45)?,
        key: row.get(46)?,
        size: count(47)?,
        modified: row.get(48)?,
        recorded: row.get(51)?,
        version: row.get(54)?,
        read_to: count(55)?,
        address: row.get(52)?,
        received_from: row.get(56)?,
        received_key: row.get(57)?,
        models: models
            .iter()
            .flat_map(|names| names.split('\n'))
            .filter(|name| !name.is_empty())
            .map(str::to_owned)
            .collect(),
    })
}

impl TranscriptRow {
    /// Whether the archive has its log. Recorded runs and traces are kept where they are.
    pub fn is_archived(&self) -> bool {
        !self.recorded && !self.is_trace()
    }

    /// Whether it is a trace that is kept: then its file is its own original, as that of a recorded run is.
    pub fn is_trace(&self) -> bool {
        let is_kept = !self.address.is_empty();
        let is_in_place = self.version == 0 && self.part.is_none();
        is_kept && is_in_place && self.dialect.as_deref() == Some("agentlog")
    }
}

impl Filter {
    /// Whether any session is left out, but for sub-agents and copies.
    pub(crate) fn is_restricted(&self) -> bool {
        let Self {
            agents,
            project,
            branch,
            model,
            title,
            since,
            until,
            subagents: _,
            duplicates: _,
            imported: _,
            after: _,
            received,
        } = self;
        let texts = [project, branch, model, title];
        !agents.is_empty()
            || texts.iter().any(|text| text.is_some())
            || since.or(*until).is_some()
            || matches!(received, Received::Only | Received::From(_))
    }

    /// The condition in SQL, and what is put into it.
    pub(super) fn sql(&self) -> (String, Vec<Value>) {
        let (mut all, mut values) = (vec!["1 = 1".to_owned()], Vec::new());
        let mut add = |condition: &str, value: Option<Value>| {
            if let Some(value) = value {
                values.push(value);
                all.push(condition.replace('?', &format!("?{}", values.len())));
            }
        };
        let text = |text: &Option<String>| text.clone().map(Value::Text);
        add("instr(lower(t.cwd), lower(?)) > 0", text(&self.project));
        add("t.branch = ?", text(&self.branch));
        add("instr(lower(t.title), lower(?)) > 0", text(&self.title));
        add(
            "exists (select 1 from model_named m where m.transcript = t.id
                 and instr(lower(m.model), lower(?)) > 0)",
            text(&self.model),
        );
        add(
            "coalesce(t.ended_at, t.started_at) >= ?",
            self.since.map(Value::Integer),
        );
        add("t.started_at < ?", self.until.map(Value::Integer));
        if let Some(After { order, key, run_id }) = &self.after {
            let of = order.key();
            let beyond = if order.is_ascending() { ">" } else { "<" };
            values.push(Value::Text(run_id.clone()));
            let id = values.len();
            all.push(match key {
                // Those without a key come last.
                None => format!("({of} is null and t.run_id > ?{id})"),
                Some(key) => {
                    values.push(Value::Integer(*key));
                    let key = values.len();
                    format!(
                        "({of} is null or {of} {beyond} ?{key} or ({of} = ?{key} and t.run_id > ?{id}))"
                    )
                }
            });
        }
        if !self.agents.is_empty() {
            let mut any = Vec::new();
            for agent in &self.agents {
                values.push(Value::Text(agent.to_lowercase()));
                any.push(format!(
                    "substr(t.agent, 1, length(?{0})) = ?{0}",
                    values.len()
                ));
            }
            all.push(format!("({})", any.join(" or ")));
        }
        if !self.subagents {
            // A sub-agent whose parent is not kept stands for itself; otherwise no list would have it.
            let shown = if self.duplicates {
                ""
            } else {
                " and not p.duplicate"
            };
            all.push(format!(
                "(t.parent is null or not exists (select 1 from transcript p
                     where p.native = t.parent and p.id <> t.id{shown}))"
            ));
        }
        if !self.duplicates {
            all.push("not t.duplicate".to_owned());
        }
        if self.imported {
            let imported =
                "t.source in (select id from source where version > 0 or part is not null)";
            all.push(imported.to_owned());
        }
        if let Some((condition, value)) = self.received.sql(values.len() + 1) {
            all.push(condition);
            values.extend(value);
        }
        (all.join(" and "), values)
    }
}

impl Order {
    /// What it goes by.
    const fn key(self) -> &'static str {
        match self {
            Self::Newest => "coalesce(t.ended_at, t.started_at)",
            Self::Oldest => "coalesce(t.started_at, t.ended_at)",
            Self::Tokens => {
                "(coalesce(t.input, 0) + coalesce(t.cache_read, 0) + coalesce(t.cache_write, 0)
                     + coalesce(t.output, 0))"
            }
            Self::Size => "s.size",
            Self::Events => "t.events",
        }
    }

    const fn is_ascending(self) -> bool {
        matches!(self, Self::Oldest)
    }

    fn sql(self) -> String {
        let direction = if self.is_ascending() { "asc" } else { "desc" };
        format!("{} {direction} nulls last, t.run_id", self.key())
    }
}

/// The sum of a column, in two halves: `sum` of `SQLite` fails when it leaves 64 bits, and then so does every
/// command that asks for it. [`whole`] puts the halves together.
fn halves(column: &str) -> String {
    format!("sum(({column}) >> 32), sum(({column}) & 4294967295)")
}

/// A sum whose upper half is in this column and whose lower half is in the next. `None` where nothing was known;
/// the largest or smallest number where it is beyond those.
fn whole(row: &Row<'_>, at: usize) -> rusqlite::Result<Option<u64>> {
    let (upper, lower): (Option<i64>, Option<i64>) = (row.get(at)?, row.get(at + 1)?);
    Ok(upper.zip(lower).map(|(upper, lower)| {
        let sum = (i128::from(upper) << 32) + i128::from(lower);
        u64::try_from(sum.max(0)).unwrap_or(u64::MAX)
    }))
}

impl Transcripts for SqliteCatalogue {
    fn list(
        &self,
        filter: &Filter,
        order: Order,
        limit: Option<usize>,
    ) -> Result<Vec<TranscriptRow>> {
        let (condition, values) = filter.sql();
        let limit = limit.map_or(-1, |n| i64::try_from(n).unwrap_or(-1));
        let query = format!(
            "select {COLUMNS} from transcript t join source s on s.id = t.source
             where {condition} order by {} limit {limit}",
            order.sql()
        );
        self.run(|database| {
            let mut statement = database.prepare(&query)?;
            let rows = statement.query_map(params_from_iter(values), read)?;
            rows.collect()
        })
    }

    fn by_agent(&self, filter: &Filter) -> Result<Vec<Sum>> {
        let (condition, values) = filter.sql();
        let sums = [
            "t.parent is not null",
            "t.events",
            "s.size",
            "t.input",
            "t.cache_read",
            "t.cache_write",
            "t.output",
            "t.reasoning",
        ];
        let query = format!(
            "select t.agent, count(*), min(t.started_at), max(t.ended_at), {}
             from transcript t join source s on s.id = t.source
             where {condition} group by t.agent order by count(*) desc, t.agent",
            sums.map(halves).join(", ")
        );
        self.run(|database| {
            let mut statement = database.prepare(&query)?;
            let rows = statement.query_map(params_from_iter(values), |row| {
                // The sums follow four other columns.
                let sum = |n: usize| whole(row, 4 + 2 * n);
                let count = |n: usize| sum(n).map(Option::unwrap_or_default);
                Ok(Sum {
                    name: row.get(0)?,
                    transcripts: row.get::<_, i64>(1)?.unsigned_abs(),
                    subagents: count(0)?,
                    events: count(1)?,
                    bytes: count(2)?,
                    usage: Usage {
                        input: sum(3)?,
                        cache_read: sum(4)?,
                        cache_write: sum(5)?,
                        cache_write_1h: None,
                        output: sum(6)?,
                        reasoning: sum(7)?,
                    },
                    first: row.get(2)?,
                    last: row.get(3)?,
                })
            })?;
            rows.collect()
        })
    }

    fn find(&self, id: &str) -> Result<TranscriptRow, NotFound> {
        if let Some(row) = self.at_address(id)? {
            return Ok(row);
        }
        let mut found = self.where_id(
            "substr(t.run_id, 1, length(?1)) = ?1",
            "t.run_id = ?1 desc, t.run_id",
            id,
        )?;
        if found.first().is_some_and(|row| row.run_id == id) {
            found.truncate(1);
        }
        // The sub-agents and copies of a session have ids that begin with its own.
        if let Some(first) = found.first().map(|row| row.run_id.clone())
            && found.iter().all(|row| {
                row.run_id == first
                    || row
                        .run_id
                        .strip_prefix(&first)
                        .is_some_and(|r| r.starts_with('.'))
            })
        {
            found.truncate(1);
        }
        if found.is_empty() {
            found = self.copy(id)?.into_iter().collect();
        }
        if found.is_empty() {
            found = self.begins_address(id)?;
        }
        match found.len() {
            0 if id == LAST => self.latest(),
            0 => Err(NotFound::None(id.to_owned())),
            1 => Ok(found.remove(0)),
            _ => Err(NotFound::Several(
                id.to_owned(),
                found.into_iter().map(|row| row.run_id).collect(),
            )),
        }
    }

    fn row(&self, id: i64) -> Result<TranscriptRow> {
        let query = format!(
            "select {COLUMNS} from transcript t join source s on s.id = t.source where t.id = ?1"
        );
        self.run(|database| database.prepare_cached(&query)?.query_row([id], read))
    }

    fn run_ids(&self) -> Result<Vec<String>> {
        self.run(|database| {
            let mut statement = database.prepare("select run_id from transcript order by 1")?;
            let rows = statement.query_map([], |row| row.get(0))?;
            rows.collect()
        })
    }

    fn transcripts_at(&self, path: &Path) -> Result<Vec<TranscriptRow>> {
        let query = format!(
            "select {COLUMNS} from transcript t join source s on s.id = t.source
             where s.path = ?1 order by t.run_id"
        );
        self.run(|database| {
            let mut statement = database.prepare_cached(&query)?;
            let rows = statement.query_map([path.as_os_str().as_bytes()], read)?;
            rows.collect()
        })
    }

    fn child_counts(&self) -> Result<BTreeMap<String, u64>> {
        self.run(|database| {
            let mut statement = database.prepare(
                "select parent, count(*) from transcript
                 where parent is not null and not duplicate group by 1",
            )?;
            let rows = statement.query_map([], |row| {
                Ok((row.get(0)?, row.get::<_, i64>(1)?.unsigned_abs()))
            })?;
            rows.collect()
        })
    }

    fn children(&self, native: &str) -> Result<Vec<TranscriptRow>> {
        let query = format!(
            "select {COLUMNS} from transcript t join source s on s.id = t.source
             where t.parent = ?1 and not t.duplicate order by t.started_at, t.run_id"
        );
        self.run(|database| {
            let mut statement = database.prepare(&query)?;
            let rows = statement.query_map([native], read)?;
            rows.collect()
        })
    }

    fn below(&self, natives: &[&str]) -> Result<Vec<(String, i64)>> {
        let natives = serde_json::Value::from(natives.to_vec()).to_string();
        self.run(|database| {
            // A chain that bites its own tail ends: what was met is not met again.
            let mut statement = database.prepare(
                "with recursive below (root, id, native) as (
                     select j.value, t.id, t.native from json_each(?1) j
                         join transcript t on t.parent = j.value where not t.duplicate
                     union
                     select b.root, t.id, t.native from below b
                         join transcript t on t.parent = b.native where not t.duplicate)
                 select root, id from below where native <> root",
            )?;
            let rows = statement.query_map([natives], |row| Ok((row.get(0)?, row.get(1)?)))?;
            rows.collect()
        })
    }

    fn drift(&self) -> Result<Vec<DriftRow>> {
        self.run(|database| {
            let mut statement = database.prepare(&format!(
                "select s.agent, coalesce(t.agent_version, ''), d.name, count(*), s.path, d.line,
                        d.byte_offset, {}
                 from drift d join source s on s.id = d.source
                 left join transcript t on t.source = s.id
                 group by 1, 2, 3 order by 1, 8 desc, 9 desc, 3, 2",
                halves("d.sightings")
            ))?;
            let rows = statement.query_map([], |row| {
                Ok(DriftRow {
                    agent: row.get(0)?,
                    version: row.get(1)?,
                    name: row.get(2)?,
                    sightings: whole(row, 7)?.unwrap_or_default(),
                    logs: row.get::<_, i64>(3)?.unsigned_abs(),
                    path: PathBuf::from(std::ffi::OsString::from_vec(row.get(4)?)),
                    line: row.get::<_, i64>(5)?.unsigned_abs(),
                    offset: row.get::<_, i64>(6)?.unsigned_abs(),
                })
            })?;
            rows.collect()
        })
    }

    fn dropped(&self) -> Result<Vec<(String, u64)>> {
        self.run(|database| {
            let mut statement = database.prepare(&format!(
                "select reason, {} from dropped group by 1 order by 2 desc, 3 desc",
                halves("records")
            ))?;
            let rows = statement.query_map([], |row| {
                Ok((row.get(0)?, whole(row, 1)?.unwrap_or_default()))
            })?;
            rows.collect()
        })
    }
}

impl SqliteCatalogue {
    /// Some transcripts that an id fits.
    fn where_id(&self, condition: &str, order: &str, id: &str) -> Result<Vec<TranscriptRow>> {
        let query = format!(
            "select {COLUMNS} from transcript t join source s on s.id = t.source
             where {condition} order by {order} limit 9"
        );
        self.run(|database| {
            let mut statement = database.prepare_cached(&query)?;
            let rows = statement.query_map([id], read)?;
            rows.collect()
        })
    }

    /// The copy that had this run id before it became the best one.
    fn copy(&self, id: &str) -> Result<Option<TranscriptRow>> {
        let Some((native, digits)) = id.rsplit_once('.') else {
            return Ok(None);
        };
        let fits = digits.len() == COPY_DIGITS && digits.bytes().all(|b| b.is_ascii_hexdigit());
        if !fits {
            return Ok(None);
        }
        let query = format!(
            "select {COLUMNS} from source s join transcript t on t.source = s.id
             where s.key >= ?1 and s.key < ?1 || 'g' and substr(t.native, 1, length(?2)) = ?2"
        );
        self.run(|database| {
            let mut statement = database.prepare_cached(&query)?;
            let rows = statement.query_map([digits, native], read)?;
            let rows: Vec<TranscriptRow> = rows.collect::<rusqlite::Result<_>>()?;
            let mut rows = rows
                .into_iter()
                .filter(|row| copy_run_id(&row.native, &row.key) == id);
            Ok(rows.next())
        })
    }

    /// Transcripts whose address begins so: with the whole origin, and some of what is behind it.
    fn begins_address(&self, begin: &str) -> Result<Vec<TranscriptRow>> {
        let is_some = begin
            .split_once('-')
            .is_some_and(|(_, some)| !some.is_empty());
        if !is_some {
            return Ok(Vec::new());
        }
        self.where_id(
            "(select origin from temp.home) || '-' || substr(s.key, 1, 16) between ?1 and ?1 || 'g'",
            "s.key",
            begin,
        )
    }

    /// The transcript in which something happened last, copies and sub-agents aside, and what others submitted.
    fn latest(&self) -> Result<TranscriptRow, NotFound> {
        let own = Filter {
            received: Received::Without,
            ..Filter::default()
        };
        let mut rows = self.list(&own, Order::Newest, Some(1))?;
        rows.pop().ok_or_else(|| NotFound::None(LAST.to_owned()))
    }

    /// The transcript at an address.
    fn at_address(&self, address: &str) -> Result<Option<TranscriptRow>> {
        let Some((origin, digits)) = address.split_once('-') else {
            return Ok(None);
        };
        if digits.len() != origin::DIGITS {
            return Ok(None);
        }
        let query = format!(
            "select {COLUMNS} from source s join transcript t on t.source = s.id
             where s.key >= ?2 and s.key < ?2 || 'g' and ?1 in (?3, (select origin from temp.home))"
        );
        self.run(|database| {
            let mut statement = database.prepare_cached(&query)?;
            let asked = [origin, digits, &origin::unknown()];
            statement.query_row(asked, read).optional()
        })
    }
}

/// Something that adapters do not know.
#[derive(Debug, Clone)]
pub struct DriftRow {
    /// The agent.
    pub agent: String,
    /// Its version; empty where the log does not say.
    pub version: String,
    /// `type:…` or `field:…`.
    pub name: String,
    /// How often it was seen.
    pub sightings: u64,
    /// In how many logs.
    pub logs: u64,
    /// One of them.
    pub path: PathBuf,
    /// The first line in it.
    pub line: u64,
    /// The first byte of that line.
    pub offset: u64,
}
