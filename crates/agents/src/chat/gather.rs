//! Sessions that lie together: in an export, in a database, in a directory of events.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use quipu_model::Json;
use quipu_model::json::{Kind, Node, Tape};
use serde::{Deserialize, Serialize};

use super::PART;
use super::exports::Exports;
use super::normalize::Messages;
use super::openhands::OpenHands;
use crate::rows::Cell;
use crate::{
    Dialect, Gather, GatherError, Gathered, Origin, Out, Reader, Session, capture, rows, state,
};

/// The largest export that is read. It is held as a whole.
const LARGEST: u64 = 1 << 30;

/// Takes sessions out of exports of `ChatGPT` and Claude.ai (`conversations.json`, or the directory it is
/// in), of the database of Hermes, and of the directories of `OpenHands`.
pub(super) struct Many;

impl Gather for Many {
    fn parts(&self, from: &Gathered<'_>) -> Result<Vec<crate::Part>, GatherError> {
        match from {
            Gathered::Database(database) => hermes_parts(database),
            Gathered::Tree(directory) if is_openhands(directory) => {
                let events = events(directory)?;
                let id = directory.file_name().and_then(|name| name.to_str());
                Ok(vec![crate::Part {
                    id: id.unwrap_or_default().to_owned(),
                    stamp: format!("{}.{}", events.len(), newest(&events)),
                }])
            }
            Gathered::Tree(directory) => export_parts(&directory.join(EXPORT)),
            Gathered::File(file) => export_parts(file),
        }
    }

    fn write(
        &self,
        from: &Gathered<'_>,
        part: &str,
        to: &mut dyn Write,
    ) -> Result<(), GatherError> {
        match from {
            Gathered::Database(database) => hermes_write(database, part, to),
            Gathered::Tree(directory) if is_openhands(directory) => openhands(directory, to),
            Gathered::Tree(directory) => export_write(&directory.join(EXPORT), part, to),
            Gathered::File(file) => export_write(file, part, to),
        }
    }

    fn dialect(&self) -> Dialect {
        PART
    }

    fn holds(&self, directory: &Path) -> bool {
        is_openhands(directory) || is_export(&directory.join(EXPORT))
    }
}

const EXPORT: &str = "conversations.json";

fn is_openhands(directory: &Path) -> bool {
    directory.join("base_state.json").is_file() && directory.join("events").is_dir()
}

/// Whether a file begins as a list of conversations does.
fn is_export(file: &Path) -> bool {
    use std::io::Read as _;
    let mut head = Vec::new();
    let opened = fs::File::open(file).map(|file| file.take(64 * 1024).read_to_end(&mut head));
    let Ok(Ok(_)) = opened else {
        return false;
    };
    let head = String::from_utf8_lossy(&head);
    head.trim_start().starts_with('[')
        && ["\"mapping\"", "\"chat_messages\""]
            .iter()
            .any(|mark| head.contains(mark))
}

fn export_parts(file: &Path) -> Result<Vec<crate::Part>, GatherError> {
    let mut parts = Vec::new();
    each_conversation(file, |id, conversation| {
        parts.push(crate::Part {
            id: id.to_owned(),
            stamp: format!("{:016x}", crate::hash(conversation.raw().get().as_bytes())),
        });
        Ok(())
    })?;
    Ok(parts)
}

fn export_write(file: &Path, part: &str, to: &mut dyn Write) -> Result<(), GatherError> {
    each_conversation(file, |id, conversation| {
        if id == part {
            write_line(conversation, to)?;
        }
        Ok(())
    })
}

/// Writes a value on one line. Line ends outside of strings mean nothing, and inside there are none.
fn write_line(value: Node<'_>, to: &mut dyn Write) -> Result<(), GatherError> {
    let text = value.raw().get();
    for piece in text.split(['\n', '\r']) {
        to.write_all(piece.as_bytes())?;
    }
    to.write_all(b"\n")?;
    Ok(())
}

fn each_conversation(
    file: &Path,
    mut take: impl FnMut(&str, Node<'_>) -> Result<(), GatherError>,
) -> Result<(), GatherError> {
    if fs::metadata(file)?.len() > LARGEST {
        return Err(GatherError::Unknown("the export is too large".to_owned()));
    }
    let bytes = fs::read(file)?;
    let text = String::from_utf8_lossy(&bytes);
    let text = text.trim_start_matches('\u{feff}');
    let mut tape = Tape::new();
    let document = tape
        .read(text, 128)
        .map_err(|error| GatherError::Unknown(format!("not an export: {error}")))?;
    if document.kind() != Kind::List {
        return Err(GatherError::Unknown(
            "not a list of conversations".to_owned(),
        ));
    }
    for conversation in document.items() {
        let id = ["conversation_id", "id", "uuid"]
            .iter()
            .find_map(|key| capture::id(conversation, key));
        if let Some(id) = id {
            take(&id, conversation)?;
        }
    }
    Ok(())
}

/// The events of a conversation, in order of their numbers.
fn events(directory: &Path) -> Result<Vec<PathBuf>, GatherError> {
    let mut events = Vec::new();
    for entry in fs::read_dir(directory.join("events"))? {
        let path = entry?.path();
        if path.extension().is_some_and(|ending| ending == "json") {
            events.push(path);
        }
    }
    events.sort();
    Ok(events)
}

/// When the newest of these files changed, in nanoseconds since 1970. An event that was being written has
/// the same place when it is whole.
fn newest(files: &[PathBuf]) -> u128 {
    let changed = files.iter().filter_map(|file| {
        let at = fs::metadata(file).ok()?.modified().ok()?;
        Some(at.duration_since(std::time::UNIX_EPOCH).ok()?.as_nanos())
    });
    changed.max().unwrap_or(0)
}

fn openhands(directory: &Path, to: &mut dyn Write) -> Result<(), GatherError> {
    let mut tape = Tape::new();
    let mut put = |path: &Path, name: Option<&str>, to: &mut dyn Write| {
        let bytes = fs::read(path)?;
        let text = String::from_utf8_lossy(&bytes);
        let Ok(value) = tape.read(&text, 128) else {
            // The settings hold keys, so nothing is kept of what is left of them.
            if name.is_none() {
                let path = path.file_name().unwrap_or_default().to_string_lossy();
                let (path, text) = (Json::string(&path), Json::string(&text));
                let (path, text) = (path.get(), text.get());
                writeln!(
                    to,
                    "{{\"kind\":\"file\",\"file\":{{\"path\":{path},\"text\":{text}}}}}"
                )?;
            }
            return Ok(());
        };
        match name {
            Some(name) => {
                let line = format!("{{\"{name}\":{}}}", base_state(value).get());
                to.write_all(line.replace(['\n', '\r'], "").as_bytes())?;
                to.write_all(b"\n")?;
                Ok::<(), GatherError>(())
            }
            None => write_line(value, to),
        }
    };
    put(&directory.join("base_state.json"), Some("base_state"), to)?;
    for event in events(directory)? {
        put(&event, None, to)?;
    }
    Ok(())
}

/// The settings of a conversation hold keys; only what is said of the session is taken.
fn base_state(state: Node<'_>) -> Json {
    let model = state.path(&["agent", "llm", "model"]);
    let agent = model.map(|model| format!(r#"{{"llm":{{"model":{}}}}}"#, model.raw().get()));
    let kept = ["id", "workspace"]
        .into_iter()
        .filter_map(|key| Some((key, state.get(key)?.raw().get())))
        .chain(agent.as_deref().map(|agent| ("agent", agent)))
        .map(|(key, value)| (Json::string(key), value));
    let kept: Vec<(Json, &str)> = kept.collect();
    let kept = kept.iter().map(|(key, value)| (key.get(), *value));
    capture::object(kept).unwrap_or_else(capture::empty)
}

fn hermes_parts(database: &rusqlite::Connection) -> Result<Vec<crate::Part>, GatherError> {
    let columns = rows::columns(database, "messages")?;
    let has = |name: &str| columns.iter().any(|column| column == name);
    if !["id", "session_id", "role", "content"].into_iter().all(has) {
        return Err(GatherError::Unknown(
            "no messages as Hermes keeps them".to_owned(),
        ));
    }
    let mut statement = database.prepare(
        "select s.id, count(m.id), coalesce(max(m.id), 0) from sessions s \
         left join messages m on m.session_id = s.id group by s.id order by s.id",
    )?;
    let parts = statement.query_map([], |row| {
        let (count, last) = (Cell::of(row, 1)?.text(), Cell::of(row, 2)?.text());
        Ok(crate::Part {
            id: Cell::of(row, 0)?.text(),
            stamp: format!("{count}:{last}"),
        })
    })?;
    let mut parts = parts.collect::<Result<Vec<crate::Part>, _>>()?;
    parts.retain(|part| !part.id.is_empty());
    Ok(parts)
}

fn hermes_write(
    database: &rusqlite::Connection,
    part: &str,
    to: &mut dyn Write,
) -> Result<(), GatherError> {
    let key = rows::key(database, "sessions", "id", part)?;
    let key = key.ok_or_else(|| GatherError::Unknown(format!("no session {part}")))?;
    let session = "select * from sessions where id = ?1";
    rows::write(database, "sessions", session, &[&key], &[], to)?;
    let messages = "select * from messages where session_id = ?1 order by id";
    rows::write(database, "messages", messages, &[&key], &[], to)?;
    Ok(())
}

/// Reads a session that was taken out. What it is of, its first line tells.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Part {
    id: Option<String>,
    inner: Inner,
}

#[derive(Debug, Serialize, Deserialize)]
enum Inner {
    Unknown(Session),
    Export(Exports),
    OpenHands(OpenHands),
    Hermes(Messages),
}

impl Part {
    pub(super) fn new(origin: &Origin<'_>) -> Self {
        let id = origin.part.map(str::to_owned);
        Self {
            inner: Inner::Unknown(Session {
                id: id.clone(),
                ..Session::default()
            }),
            id,
        }
    }

    fn begin(&mut self, record: Node<'_>) {
        let origin = Origin {
            path: Path::new(""),
            part: self.id.as_deref(),
        };
        let has = |key: &str| record.get(key).is_some();
        if has("mapping") || has("chat_messages") {
            self.inner = Inner::Export(Exports::default());
        } else if has("table") {
            self.inner = Inner::Hermes(Messages::hermes(&origin));
        } else if has("base_state") || has("kind") {
            self.inner = Inner::OpenHands(OpenHands::new(&origin));
        }
    }

    fn reader(&mut self) -> Option<&mut dyn Reader> {
        match &mut self.inner {
            Inner::Unknown(_) => None,
            Inner::Export(reader) => Some(reader),
            Inner::OpenHands(reader) => Some(reader),
            Inner::Hermes(reader) => Some(reader),
        }
    }
}

impl Reader for Part {
    fn record(&mut self, record: Node<'_>, out: &mut Out<'_>) {
        if matches!(self.inner, Inner::Unknown(_)) {
            self.begin(record);
        }
        if let Some(reader) = self.reader() {
            reader.record(record, out);
        }
    }

    fn finish(&mut self, out: &mut Out<'_>) {
        if let Some(reader) = self.reader() {
            reader.finish(out);
        }
    }

    fn session(&self) -> &Session {
        match &self.inner {
            Inner::Unknown(session) => session,
            Inner::Export(reader) => reader.session(),
            Inner::OpenHands(reader) => reader.session(),
            Inner::Hermes(reader) => reader.session(),
        }
    }

    fn save(&self) -> state::Saved {
        state::save(self)
    }
}
