//! Takes sessions out of the database, and out of the tree of small files that was before it.
//!
//! The rows of a session are written so that a session that grows changes as little as possible of what
//! was written before. First comes what never changes of the session itself; then its messages in the
//! order in which they were made, each with its parts right behind it; then what is to be done and the
//! whole row of the session, which changes with every step. A message and its parts change until the
//! message ends. So what is new is at the end, behind the last message that had ended. What a person went
//! back from is in the first row, because that has to be known before the messages; going back is rare.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use quipu_model::Json;
use quipu_model::json::{Node, Tape};
use rusqlite::Connection;

use super::ROWS;
use crate::rows::{self, columns, tables};
use crate::{Dialect, Gather, GatherError, Gathered, Part};

/// Takes out sessions.
pub(super) struct Sessions;

/// What of a session does not change.
const FIRST: [&str; 7] = [
    "id",
    "project_id",
    "parent_id",
    "directory",
    "version",
    "time_created",
    "revert",
];

/// Columns of a session that hold JSON.
const JSON: &[&str] = &[
    "summary_diffs",
    "revert",
    "permission",
    "goal",
    "model",
    "metadata",
];

/// The deepest nesting of a file.
const DEPTH: usize = 120;

impl Gather for Sessions {
    fn parts(&self, from: &Gathered<'_>) -> Result<Vec<Part>, GatherError> {
        match from {
            Gathered::Database(database) => database_parts(database),
            Gathered::Tree(root) => tree_parts(root),
            Gathered::File(_) => Err(unknown()),
        }
    }

    fn write(
        &self,
        from: &Gathered<'_>,
        part: &str,
        to: &mut dyn Write,
    ) -> Result<(), GatherError> {
        match from {
            Gathered::Database(database) => write_database(database, part, to),
            Gathered::Tree(root) => write_tree(root, part, to),
            Gathered::File(_) => Err(unknown()),
        }
    }

    fn dialect(&self) -> Dialect {
        ROWS
    }

    fn holds(&self, directory: &Path) -> bool {
        ["session", "message", "part"]
            .iter()
            .all(|name| directory.join(name).is_dir())
    }
}

fn unknown() -> GatherError {
    GatherError::Unknown("neither the database nor the directory of OpenCode".to_owned())
}

/// The tables that the database has.
struct Schema(Vec<String>);

impl Schema {
    fn of(database: &Connection) -> Result<Self, GatherError> {
        let schema = Self(tables(database)?);
        if schema.has("session") {
            Ok(schema)
        } else {
            Err(unknown())
        }
    }

    fn has(&self, name: &str) -> bool {
        self.0.iter().any(|table| table == name)
    }

    fn has_messages(&self) -> bool {
        self.has("message") && self.has("part")
    }
}

/// A part is told of only by its message: looking at every part would read most of a database that can
/// be many gigabytes, and when a part ends its message does so soon after.
fn database_parts(database: &Connection) -> Result<Vec<Part>, GatherError> {
    let schema = Schema::of(database)?;
    let count = |there: bool, query: &'static str| if there { query } else { "'0'" };
    let messages = count(
        schema.has_messages(),
        "(select count(*) || '.' || coalesce(max(time_updated), 0) || '.' ||
            (select count(*) from part where part.session_id = session.id)
          from message where message.session_id = session.id)",
    );
    let second = count(
        schema.has("session_message"),
        "(select count(*) || '.' || coalesce(max(time_updated), 0)
          from session_message where session_message.session_id = session.id)",
    );
    let query = format!(
        "select id, coalesce(time_updated, 0), {messages}, {second} from session
         order by time_created, id"
    );
    let mut statement = database.prepare(&query)?;
    let mut rows = statement.query([])?;
    let mut parts = Vec::new();
    while let Some(row) = rows.next()? {
        let (id, updated): (String, i64) = (row.get(0)?, row.get(1)?);
        let (messages, second): (String, String) = (row.get(2)?, row.get(3)?);
        // A session in which nothing was said yet.
        if messages.starts_with('0') && second.starts_with('0') {
            continue;
        }
        parts.push(Part {
            id,
            stamp: format!("{updated}.{messages}.{second}"),
        });
    }
    Ok(parts)
}

fn write_database(
    database: &Connection,
    session: &str,
    to: &mut dyn Write,
) -> Result<(), GatherError> {
    let schema = Schema::of(database)?;
    let there = columns(database, "session")?;
    let first: Vec<&str> = FIRST
        .into_iter()
        .filter(|column| there.iter().any(|there| there == column))
        .collect();
    let query = format!("select {} from session where id = ?1", first.join(", "));
    rows::write(database, "session", &query, &[&session], JSON, to)?;
    if schema.has("project") {
        let query = "select id, worktree from project
            where id = (select project_id from session where id = ?1)";
        rows::write(database, "project", query, &[&session], &[], to)?;
    }
    let mut written = 0;
    if schema.has_messages() {
        let mut statement = database
            .prepare("select id from message where session_id = ?1 order by time_created, id")?;
        let mut ids = statement.query([session])?;
        while let Some(row) = ids.next()? {
            let id: String = row.get(0)?;
            let query = "select id, session_id, time_created, time_updated, data
                from message where id = ?1";
            written += rows::write(database, "message", query, &[&id], &["data"], to)?;
            let query = "select id, message_id, session_id, time_created, time_updated, data
                from part where message_id = ?1 order by time_created, id";
            rows::write(database, "part", query, &[&id], &["data"], to)?;
        }
    }
    // Both kinds are there while one takes the place of the other, and say the same.
    if schema.has("session_message") && written == 0 {
        let columns = columns(database, "session_message")?;
        let order = if columns.iter().any(|column| column == "seq") {
            "seq"
        } else {
            "time_created, id"
        };
        let query = format!("select * from session_message where session_id = ?1 order by {order}");
        rows::write(
            database,
            "session_message",
            &query,
            &[&session],
            &["data"],
            to,
        )?;
    }
    if schema.has("todo") {
        let query = "select * from todo where session_id = ?1 order by position";
        rows::write(database, "todo", query, &[&session], &[], to)?;
    }
    let query = "select * from session where id = ?1";
    rows::write(database, "session", query, &[&session], JSON, to)?;
    Ok(())
}

/// The JSON files of a directory, by name; none when it is not there.
fn files(directory: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(directory) else {
        return Vec::new();
    };
    let mut paths: Vec<PathBuf> = entries
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.extension().is_some_and(|ending| ending == "json"))
        .collect();
    paths.sort();
    paths
}

/// Looks into a JSON file. `None` when it cannot be read, or is none.
fn look<T>(path: &Path, then: impl FnOnce(Node<'_>) -> T) -> Option<T> {
    let bytes = fs::read(path).ok()?;
    let text = String::from_utf8_lossy(&bytes);
    let mut tape = Tape::new();
    let node = tape.read(&text, DEPTH).ok()?;
    Some(then(node))
}

/// The files of all sessions.
fn session_files(root: &Path) -> Vec<PathBuf> {
    let Ok(projects) = fs::read_dir(root.join("session")) else {
        return Vec::new();
    };
    let mut projects: Vec<PathBuf> = projects
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.is_dir())
        .collect();
    projects.sort();
    projects.iter().flat_map(|project| files(project)).collect()
}

/// Whether an id can be the name of a directory here, and of none elsewhere.
fn is_name(id: &str) -> bool {
    !id.is_empty() && !id.starts_with('.') && !id.contains(['/', '\\', '\0'])
}

fn tree_parts(root: &Path) -> Result<Vec<Part>, GatherError> {
    if !root.join("session").is_dir() {
        return Err(unknown());
    }
    let mut parts = Vec::new();
    for path in session_files(root) {
        let found = look(&path, |info| {
            let updated = info
                .path(&["time", "updated"])
                .map(|n| n.raw().get().to_owned());
            Some((info.text("id")?.into_owned(), updated.unwrap_or_default()))
        });
        let Some((id, updated)) = found.flatten().filter(|(id, _)| is_name(id)) else {
            continue;
        };
        let messages = files(&root.join("message").join(&id));
        if messages.is_empty() {
            continue;
        }
        let mut newest = 0;
        let mut count = 0;
        for message in &messages {
            newest = newest.max(changed(message));
            let Some(name) = message.file_stem() else {
                continue;
            };
            for part in files(&root.join("part").join(name)) {
                newest = newest.max(changed(&part));
                count += 1;
            }
        }
        parts.push(Part {
            id,
            stamp: format!("{updated}.{}.{count}.{newest}", messages.len()),
        });
    }
    Ok(parts)
}

/// When a file changed last, in nanoseconds since 1970.
fn changed(path: &Path) -> u128 {
    fs::metadata(path)
        .and_then(|metadata| metadata.modified())
        .ok()
        .and_then(|at| at.duration_since(std::time::UNIX_EPOCH).ok())
        .map_or(0, |since| since.as_nanos())
}

/// The file of a session.
fn session_file(root: &Path, id: &str) -> Option<PathBuf> {
    let all = session_files(root);
    let is =
        |path: &Path| look(path, |info| info.get("id").is_some_and(|n| n.is(id))) == Some(true);
    // Nearly always the file has the name of the session.
    let named = all
        .iter()
        .find(|path| path.file_stem().is_some_and(|stem| stem == id) && is(path));
    named.or_else(|| all.iter().find(|path| is(path))).cloned()
}

fn write_tree(root: &Path, session: &str, to: &mut dyn Write) -> Result<(), GatherError> {
    let file = session_file(root, session).filter(|_| is_name(session));
    let file = file.ok_or_else(|| GatherError::Unknown(format!("no session {session}")))?;
    let name = Json::string(session);
    let first = look(&file, |info| {
        // What never changes of it, in the same words.
        let fields = [
            "id",
            "projectID",
            "parentID",
            "directory",
            "version",
            "revert",
        ];
        let kept: String = fields
            .iter()
            .filter_map(|field| Some((field, Json::from(info.get(field)?.raw()))))
            .fold(String::from("{"), |kept, (field, value)| {
                kept + "\"" + field + "\":" + value.get() + ","
            });
        let created = info
            .path(&["time", "created"])
            .map_or("null", |n| n.raw().get());
        let kept = kept + "\"time\":{\"created\":" + created + "}}";
        (kept, Json::from(info.raw()))
    });
    let Some((first, whole)) = first else {
        return Err(GatherError::Unknown(format!("no session {session}")));
    };
    line(to, "session", &name, "", &first)?;
    let mut messages: Vec<(i64, String, PathBuf)> = Vec::new();
    for path in files(&root.join("message").join(session)) {
        let found = look(&path, |info| {
            let created = info.path(&["time", "created"]).and_then(|n| n.as_i64());
            Some((created.unwrap_or(0), info.text("id")?.into_owned()))
        });
        if let Some((created, id)) = found.flatten() {
            messages.push((created, id, path));
        }
    }
    messages.sort();
    for (_, id, path) in messages {
        let Some(info) = look(&path, |info| Json::from(info.raw())) else {
            continue;
        };
        let message = Json::string(&id);
        let of = format!("\"session_id\":{},", name.get());
        line(to, "message", &message, &of, info.get())?;
        if !is_name(&id) {
            continue;
        }
        for path in files(&root.join("part").join(&id)) {
            let part = look(&path, |part| {
                let id = part.get("id").map(|id| Json::from(id.raw()));
                (id.unwrap_or_else(Json::null), Json::from(part.raw()))
            });
            if let Some((part, whole)) = part {
                let of = format!("{of}\"message_id\":{},", message.get());
                line(to, "part", &part, &of, whole.get())?;
            }
        }
    }
    line(to, "session", &name, "", whole.get())
}

fn line(
    to: &mut dyn Write,
    table: &str,
    id: &Json,
    of: &str,
    data: &str,
) -> Result<(), GatherError> {
    let id = id.get();
    writeln!(
        to,
        "{{\"table\":\"{table}\",\"row\":{{\"id\":{id},{of}\"data\":{data}}}}}"
    )?;
    Ok(())
}
