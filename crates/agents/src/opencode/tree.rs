//! Takes sessions out of the tree of small files: `session/<project>/<session>.json`,
//! `message/<session>/<message>.json` and `part/<message>/<part>.json`.
//!
//! Such a tree is seldom whole. Files were torn when the machine stopped, and of a session that was
//! deleted some are left. Nothing that is there is left out: a file that is not what its place says is
//! written as it is, and what belongs to no session becomes one of its own, with the name of its
//! directory.

use std::collections::HashSet;
use std::ffi::OsString;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use quipu_model::Json;
use quipu_model::json::{Kind, Node, Tape};

use super::gather::unknown;
use crate::{GatherError, Part};

/// The deepest nesting of a file.
const DEPTH: usize = 120;

/// The session that is made of files which lie where none should be.
const STRAY: &str = "stray files";

/// The sessions that are there, and those that are made up for what belongs to none.
pub(super) fn parts(root: &Path) -> Result<Vec<Part>, GatherError> {
    if !root.join("session").is_dir() {
        return Err(unknown());
    }
    let mut parts = Vec::new();
    let mut taken = HashSet::new();
    let mut messages = HashSet::new();
    let mut sessions = Vec::new();
    for path in session_files(root) {
        let info = look(&path, |info| {
            let updated = info.path(&["time", "updated"]);
            let updated = updated.map_or_else(String::new, |n| n.raw().get().to_owned());
            Some((info.text("id")?.into_owned(), updated))
        });
        let info = info.flatten().filter(|(id, _)| is_name(id));
        let is_named = info.as_ref().is_some_and(|(id, _)| *id == stem(&path));
        sessions.push((!is_named, path, info));
    }
    // One that has the name of its file is the session of that name.
    sessions.sort_by_key(|(is_other, _, _)| *is_other);
    for (_, path, info) in sessions {
        let (id, updated) = match info {
            Some((id, updated)) if !taken.contains(&id) => (id, Some(updated)),
            // It is written with the one of the same name.
            _ => (stem(&path), None),
        };
        if !taken.insert(id.clone()) {
            continue;
        }
        let mut seen = Seen::default();
        seen.messages(root, &id, &mut messages);
        // A session in which nothing was said yet.
        if seen.messages == 0 && updated.is_some() {
            continue;
        }
        seen.newest = seen.newest.max(changed(&path));
        parts.push(seen.part(id, &updated.unwrap_or_default()));
    }
    for name in directories(&root.join("message")) {
        let id = name.to_string_lossy().into_owned();
        if taken.insert(id.clone()) {
            let mut seen = Seen::default();
            seen.messages(root, &id, &mut messages);
            if seen.messages > 0 {
                parts.push(seen.part(id, ""));
            }
        }
    }
    for name in directories(&root.join("part")) {
        let id = name.to_string_lossy().into_owned();
        if !messages.contains(&name) && taken.insert(id.clone()) {
            let mut seen = Seen::default();
            seen.parts(&root.join("part").join(&name));
            if seen.parts > 0 {
                parts.push(seen.part(id, ""));
            }
        }
    }
    let stray = stray(root);
    if !stray.is_empty() {
        let mut seen = Seen::default();
        for path in &stray {
            seen.parts += 1;
            seen.newest = seen.newest.max(changed(path));
        }
        parts.push(seen.part(STRAY.to_owned(), ""));
    }
    Ok(parts)
}

/// What a stamp is made of.
#[derive(Default)]
struct Seen {
    messages: usize,
    parts: usize,
    /// When the newest file changed, in nanoseconds since 1970.
    newest: u128,
}

impl Seen {
    /// Looks at the messages of a session, and at their parts.
    fn messages(&mut self, root: &Path, session: &str, names: &mut HashSet<OsString>) {
        let Some(directory) = child(&root.join("message"), session) else {
            return;
        };
        for message in files(&directory) {
            self.messages += 1;
            self.newest = self.newest.max(changed(&message));
            if let Some(name) = message.file_stem() {
                self.parts(&root.join("part").join(name));
                names.insert(name.to_owned());
            }
        }
    }

    fn parts(&mut self, directory: &Path) {
        for part in files(directory) {
            self.parts += 1;
            self.newest = self.newest.max(changed(&part));
        }
    }

    fn part(&self, id: String, updated: &str) -> Part {
        let (messages, parts, newest) = (self.messages, self.parts, self.newest);
        Part {
            id,
            stamp: format!("{updated}.{messages}.{parts}.{newest}"),
        }
    }
}

/// Writes a session.
pub(super) fn write(root: &Path, session: &str, to: &mut dyn Write) -> Result<(), GatherError> {
    let (main, others) = files_of(root, session);
    let messages = child(&root.join("message"), session);
    let mut written = main.is_some() || !others.is_empty() || messages.is_some();
    let name = Json::string(session);
    let info = main.and_then(|path| look(&path, |info| (first(info), Json::from(info.raw()))));
    if let Some((first, _)) = &info {
        line(to, "session", &name, "", first)?;
    }
    if let Some(messages) = messages {
        write_messages(root, &messages, &name, to)?;
    }
    for path in others {
        raw(root, &path, to)?;
    }
    if let Some((_, whole)) = &info {
        line(to, "session", &name, "", whole.get())?;
    }
    // Parts of a message that is not there.
    if !written && let Some(directory) = child(&root.join("part"), session) {
        written = true;
        write_parts(root, &directory, &name, "", to)?;
    }
    if !written && session == STRAY {
        for path in stray(root) {
            written = true;
            raw(root, &path, to)?;
        }
    }
    if written {
        Ok(())
    } else {
        Err(GatherError::Unknown(format!("no session {session}")))
    }
}

/// What never changes of a session, in the same words.
fn first(info: Node<'_>) -> String {
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
    kept + "\"time\":{\"created\":" + created + "}}"
}

fn write_messages(
    root: &Path,
    directory: &Path,
    session: &Json,
    to: &mut dyn Write,
) -> Result<(), GatherError> {
    // Those that do not tell their time come last, so that what was written before stays as it was.
    let mut messages: Vec<(i64, String, PathBuf)> = Vec::new();
    for path in files(directory) {
        let found = look(&path, |info| {
            let created = info.path(&["time", "created"]).and_then(|n| n.as_i64());
            (created, info.text("id").map(String::from))
        });
        let (created, id) = match found {
            Some((created, id)) => (created.unwrap_or(0), id.unwrap_or_else(|| stem(&path))),
            None => (i64::MAX, stem(&path)),
        };
        messages.push((created, id, path));
    }
    messages.sort();
    let of = format!("\"session_id\":{},", session.get());
    for (_, id, path) in messages {
        let message = Json::string(&id);
        match look(&path, |info| Json::from(info.raw())) {
            Some(info) => line(to, "message", &message, &of, info.get())?,
            None => raw(root, &path, to)?,
        }
        if let Some(name) = path.file_stem() {
            write_parts(root, &root.join("part").join(name), &message, &of, to)?;
        }
    }
    Ok(())
}

fn write_parts(
    root: &Path,
    directory: &Path,
    message: &Json,
    of: &str,
    to: &mut dyn Write,
) -> Result<(), GatherError> {
    let of = format!("{of}\"message_id\":{},", message.get());
    for path in files(directory) {
        let part = look(&path, |part| {
            let id = part.get("id").map(|id| Json::from(id.raw()));
            (id.unwrap_or_else(Json::null), Json::from(part.raw()))
        });
        match part {
            Some((part, whole)) => line(to, "part", &part, &of, whole.get())?,
            None => raw(root, &path, to)?,
        }
    }
    Ok(())
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

/// Writes a file as it is.
fn raw(root: &Path, path: &Path, to: &mut dyn Write) -> Result<(), GatherError> {
    let below = path.strip_prefix(root).unwrap_or(path);
    let below: Vec<_> = below.iter().map(|name| name.to_string_lossy()).collect();
    let (key, held) = match fs::read(path) {
        Ok(bytes) => ("text", String::from_utf8_lossy(&bytes).into_owned()),
        Err(error) => ("error", error.to_string()),
    };
    let (below, held) = (Json::string(&below.join("/")), Json::string(&held));
    writeln!(
        to,
        "{{\"table\":\"file\",\"row\":{{\"path\":{},\"{key}\":{}}}}}",
        below.get(),
        held.get()
    )?;
    Ok(())
}

/// The entries of a directory, by name; none when it is not there.
fn entries(directory: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(directory) else {
        return Vec::new();
    };
    let mut paths: Vec<PathBuf> = entries
        .filter_map(|entry| Some(entry.ok()?.path()))
        .collect();
    paths.sort();
    paths
}

/// The JSON files of a directory, by name.
fn files(directory: &Path) -> Vec<PathBuf> {
    let mut paths = entries(directory);
    paths.retain(|path| path.extension().is_some_and(|ending| ending == "json"));
    paths
}

/// The names of the directories in a directory.
fn directories(directory: &Path) -> Vec<OsString> {
    entries(directory)
        .iter()
        .filter(|path| path.is_dir())
        .filter_map(|path| Some(path.file_name()?.to_owned()))
        .collect()
}

/// The directory of this name in a directory.
fn child(directory: &Path, name: &str) -> Option<PathBuf> {
    let path = directory.join(name);
    if is_name(name) && path.is_dir() {
        return Some(path);
    }
    // Its name may be no text.
    let mut names = directories(directory).into_iter();
    names
        .find(|found| found.to_string_lossy() == name)
        .map(|found| directory.join(found))
}

/// Looks into a JSON file. `None` when it cannot be read, or holds no object.
fn look<T>(path: &Path, then: impl FnOnce(Node<'_>) -> T) -> Option<T> {
    let bytes = fs::read(path).ok()?;
    let text = String::from_utf8_lossy(&bytes);
    let mut tape = Tape::new();
    let node = tape.read(&text, DEPTH).ok()?;
    (node.kind() == Kind::Object).then(|| then(node))
}

/// The files of all sessions.
fn session_files(root: &Path) -> Vec<PathBuf> {
    let sessions = root.join("session");
    let projects = directories(&sessions);
    let projects = projects.iter().map(|project| sessions.join(project));
    projects.flat_map(|project| files(&project)).collect()
}

/// The file of a session, and others that have its name.
fn files_of(root: &Path, id: &str) -> (Option<PathBuf>, Vec<PathBuf>) {
    let all = session_files(root);
    let is =
        |path: &Path| look(path, |info| info.get("id").is_some_and(|n| n.is(id))) == Some(true);
    let (mut named, others): (Vec<PathBuf>, Vec<PathBuf>) =
        all.into_iter().partition(|path| stem(path) == id);
    // Nearly always the file has the name of the session.
    let main = named.iter().position(|path| is(path));
    let main = match main {
        Some(index) => Some(named.remove(index)),
        None => others.into_iter().find(|path| is(path)),
    };
    (main.filter(|_| is_name(id)), named)
}

/// Files that lie in none of the directories they should be in.
fn stray(root: &Path) -> Vec<PathBuf> {
    let places = ["session", "message", "part"].into_iter();
    let mut paths: Vec<PathBuf> = places.flat_map(|name| files(&root.join(name))).collect();
    paths.retain(|path| path.is_file());
    paths
}

/// Whether an id can be the name of a directory here, and of none elsewhere.
fn is_name(id: &str) -> bool {
    !id.is_empty() && !id.starts_with('.') && !id.contains(['/', '\\', '\0'])
}

/// The name of a file without its ending.
fn stem(path: &Path) -> String {
    let stem = path.file_stem().unwrap_or_default();
    stem.to_string_lossy().into_owned()
}

/// When a file changed last, in nanoseconds since 1970.
fn changed(path: &Path) -> u128 {
    fs::metadata(path)
        .and_then(|metadata| metadata.modified())
        .ok()
        .and_then(|at| at.duration_since(std::time::UNIX_EPOCH).ok())
        .map_or(0, |since| since.as_nanos())
}
