//! Takes conversations out of databases: that of the editor, which holds all of them, and those of the
//! agent on the command line, which hold one each.
//!
//! The bubbles, or messages, come first and in order; what is known of the conversation as a whole
//! changes all the time and comes last.

use std::collections::HashSet;
use std::io::Write;

use quipu_model::Json;
use quipu_model::json::{Kind, Node, Tape};
use rusqlite::{Connection, OptionalExtension as _};

use super::ROWS;
use super::wire::OLD_KEY;
use crate::rows::{self, Cell, tables};
use crate::{Dialect, Gather, GatherError, Gathered, Part};

/// Takes out conversations.
pub(super) struct Conversations;

/// The deepest nesting of a value.
const DEPTH: usize = 120;

impl Gather for Conversations {
    fn parts(&self, from: &Gathered<'_>) -> Result<Vec<Part>, GatherError> {
        let database = database(from)?;
        let tables = tables(database)?;
        let has = |name: &str| tables.iter().any(|table| table == name);
        let mut parts = Vec::new();
        if has("cursorDiskKV") {
            composers(database, &mut parts)?;
        }
        if has("ItemTable") {
            each_tab(database, |id, tab| {
                let count = tab.get("bubbles").into_iter().flat_map(Node::items).count();
                if count > 0 || tab.kind() != Kind::Object {
                    let hash = crate::hash(tab.raw().get().as_bytes());
                    parts.push(Part {
                        id: id.to_owned(),
                        stamp: format!("{count}.{hash:016x}"),
                    });
                }
                Ok(())
            })?;
        }
        if has("blobs")
            && has("meta")
            && let Some(chat) = Chat::of(database)?
        {
            parts.push(Part {
                id: chat.id,
                stamp: chat.root,
            });
        }
        Ok(parts)
    }

    fn write(
        &self,
        from: &Gathered<'_>,
        part: &str,
        to: &mut dyn Write,
    ) -> Result<(), GatherError> {
        let database = database(from)?;
        let tables = tables(database)?;
        let has = |name: &str| tables.iter().any(|table| table == name);
        if has("cursorDiskKV") && write_composer(database, part, to)? {
            return Ok(());
        }
        if has("ItemTable") {
            let mut written = false;
            each_tab(database, |id, tab| {
                if id == part && !written {
                    written = true;
                    pair(to, "ItemTable", OLD_KEY, &Json::from(tab.raw()))?;
                }
                Ok(())
            })?;
            if written {
                return Ok(());
            }
        }
        if has("blobs")
            && has("meta")
            && let Some(chat) = Chat::of(database)?.filter(|chat| chat.id == part)
        {
            return chat.write(database, to);
        }
        Err(GatherError::Unknown(format!("no conversation {part}")))
    }

    fn dialect(&self) -> Dialect {
        ROWS
    }
}

fn database<'a>(from: &'a Gathered<'_>) -> Result<&'a Connection, GatherError> {
    match from {
        Gathered::Database(database) => Ok(database),
        Gathered::Tree(_) | Gathered::File(_) => Err(GatherError::Unknown(
            "conversations are in a database".to_owned(),
        )),
    }
}

/// A value, be it stored as text or as bytes.
fn value(database: &Connection, query: &str, key: &str) -> Result<Option<Vec<u8>>, GatherError> {
    let found = database
        .query_row(query, [key], |row| {
            let value = row.get_ref(0)?;
            Ok(value.as_bytes_or_null().ok().flatten().map(<[u8]>::to_vec))
        })
        .optional()?;
    Ok(found.flatten())
}

fn disk(database: &Connection, key: &str) -> Result<Option<Vec<u8>>, GatherError> {
    value(
        database,
        "select value from cursorDiskKV where key = ?1",
        key,
    )
}

/// All keys that begin so. A range is found by the index, whatever else the database holds.
fn range(prefix: &str) -> (String, String) {
    // `;` comes right after `:`.
    let end = prefix.trim_end_matches(':').to_owned() + ";";
    (prefix.to_owned(), end)
}

/// Of so many conversations, the newest, every value is looked at. An edit need not change how long it is.
const NEWEST: usize = 50;

/// A conversation, and when it changed last.
struct Composer {
    id: String,
    stamp: String,
    changed: i64,
}

fn composers(database: &Connection, parts: &mut Vec<Part>) -> Result<(), GatherError> {
    let (from, to) = range("composerData:");
    let query = "select key from cursorDiskKV where key >= ?1 and key < ?2 order by key";
    let mut bubbles = database.prepare(
        "select count(*), coalesce(sum(length(value)), 0) from cursorDiskKV
         where key >= ?1 and key < ?2",
    )?;
    let mut ids = Vec::new();
    for key in rows::cells(database, query, &[&from, &to])? {
        ids.extend(key.text().strip_prefix("composerData:").map(str::to_owned));
    }
    // Bubbles are left of conversations that are gone.
    let known: HashSet<String> = ids.iter().cloned().collect();
    let lone = bubble_owners(database)?;
    ids.extend(lone.into_iter().filter(|id| !known.contains(id)));
    let mut composers = Vec::new();
    for id in ids {
        let (first, behind) = range(&format!("bubbleId:{id}:"));
        let (count, size): (i64, i64) =
            bubbles.query_row([&first, &behind], |row| Ok((row.get(0)?, row.get(1)?)))?;
        let bytes = disk(database, &format!("composerData:{id}"))?.unwrap_or_default();
        let text = String::from_utf8_lossy(&bytes);
        let mut tape = Tape::new();
        let composer = tape.read(&text, DEPTH).ok();
        let field = |key: &str| composer.and_then(|composer| composer.get(key));
        let inside = field("conversation")
            .into_iter()
            .flat_map(Node::items)
            .count();
        // Nothing was said in it.
        if count == 0 && inside == 0 && (composer.is_some() || bytes.is_empty()) {
            continue;
        }
        let updated = field("lastUpdatedAt").map_or("", |n| n.raw().get());
        let number = |key: &str| field(key).and_then(|n| n.as_i64());
        composers.push(Composer {
            stamp: format!("{updated}.{count}.{size}.{inside}.{}", bytes.len()),
            changed: number("lastUpdatedAt").or(number("createdAt")).unwrap_or(0),
            id,
        });
    }
    let mut newest: Vec<&mut Composer> = composers.iter_mut().collect();
    newest.sort_by_key(|composer| std::cmp::Reverse(composer.changed));
    for composer in newest.into_iter().take(NEWEST) {
        let hash = values(database, &composer.id)?;
        composer.stamp = format!("{}.{hash:016x}", composer.stamp);
    }
    parts.extend(composers.into_iter().map(|composer| Part {
        id: composer.id,
        stamp: composer.stamp,
    }));
    Ok(())
}

/// The conversations that bubbles are of. Each is found by one look into the index, however many bubbles
/// it has.
fn bubble_owners(database: &Connection) -> Result<Vec<String>, GatherError> {
    const PREFIX: &[u8] = b"bubbleId:";
    let mut statement = database.prepare(
        "select key from cursorDiskKV where key >= ?1 and key < 'bubbleId;' order by key limit 1",
    )?;
    let mut owners = Vec::new();
    let mut from = PREFIX.to_vec();
    loop {
        let found = statement
            .query_row([Cell::Text(from)], |row| Cell::of(row, 0))
            .optional()?;
        let Some(Cell::Text(mut key)) = found else {
            return Ok(owners);
        };
        let ids = key.get(PREFIX.len()..).unwrap_or_default();
        if let Some(end) = ids.iter().position(|byte| *byte == b':') {
            owners.push(String::from_utf8_lossy(&ids[..end]).into_owned());
            // `;` comes right after `:`, and so after all bubbles of this one.
            key.truncate(PREFIX.len() + end);
            key.push(b';');
        } else {
            key.push(b':');
        }
        from = key;
    }
}

/// All values of a conversation as one number.
fn values(database: &Connection, id: &str) -> Result<u64, GatherError> {
    let (first, behind) = range(&format!("bubbleId:{id}:"));
    let mut statement = database.prepare(
        "select key, value from cursorDiskKV where key >= ?1 and key < ?2
         union all select key, value from cursorDiskKV where key = ?3",
    )?;
    let mut rows = statement.query([&first, &behind, &format!("composerData:{id}")])?;
    let mut sum = 0_u64;
    while let Some(row) = rows.next()? {
        let hash = |index: usize| -> Result<u64, GatherError> {
            let value = row.get_ref(index)?.as_bytes_or_null().ok().flatten();
            Ok(crate::hash(value.unwrap_or_default()))
        };
        // In whatever order they come.
        sum = sum.wrapping_add(hash(1)?.wrapping_mul(hash(0)? | 1));
    }
    Ok(sum)
}

/// Writes a conversation. `false` when there is none of this id.
fn write_composer(
    database: &Connection,
    id: &str,
    to: &mut dyn Write,
) -> Result<bool, GatherError> {
    let key = format!("composerData:{id}");
    let bytes = disk(database, &key)?.unwrap_or_default();
    let text = String::from_utf8_lossy(&bytes);
    let mut tape = Tape::new();
    let composer = tape.read(&text, DEPTH).ok();
    let mut count = 0;
    let query = "select key, value from cursorDiskKV where key = ?1";
    let mut written = HashSet::new();
    let headers = composer.and_then(|composer| composer.get("fullConversationHeadersOnly"));
    for header in headers.into_iter().flat_map(Node::items) {
        let Some(bubble) = header.text("bubbleId") else {
            continue;
        };
        let key = format!("bubbleId:{id}:{bubble}");
        if written.insert(key.clone()) {
            count += rows::write(database, "cursorDiskKV", query, &[&key], &["value"], to)?;
        }
    }
    // Bubbles that the conversation no longer names, in the order in which they were made.
    let (from, behind) = range(&format!("bubbleId:{id}:"));
    let unnamed = "select key from cursorDiskKV where key >= ?1 and key < ?2 order by rowid";
    for key in rows::cells(database, unnamed, &[&from, &behind])? {
        if !written.contains(&key.text()) {
            count += rows::write(database, "cursorDiskKV", query, &[&key], &["value"], to)?;
        }
    }
    count += rows::write(database, "cursorDiskKV", query, &[&key], &["value"], to)?;
    Ok(count > 0)
}

/// Looks at each conversation that an old version kept.
fn each_tab(
    database: &Connection,
    mut look: impl FnMut(&str, Node<'_>) -> Result<(), GatherError>,
) -> Result<(), GatherError> {
    let query = "select value from ItemTable where key = ?1";
    let Some(bytes) = value(database, query, OLD_KEY)? else {
        return Ok(());
    };
    let text = String::from_utf8_lossy(&bytes);
    let mut tape = Tape::new();
    let Ok(data) = tape.read(&text, DEPTH) else {
        // It is no JSON, and still all that there is.
        let text = Json::string(&text);
        let mut tape = Tape::new();
        return match tape.read(text.get(), DEPTH) {
            Ok(text) => look(OLD_KEY, text),
            Err(_) => Ok(()),
        };
    };
    let tabs = data.get("tabs").into_iter().flat_map(Node::items);
    for (index, tab) in tabs.enumerate() {
        let id = tab.text("tabId").filter(|id| !id.is_empty());
        let id = id.unwrap_or_else(|| format!("tab {index}").into());
        look(&id, tab)?;
    }
    Ok(())
}

fn pair(to: &mut dyn Write, table: &str, key: &str, value: &Json) -> Result<(), GatherError> {
    let key = Json::string(key);
    writeln!(
        to,
        "{{\"table\":\"{table}\",\"row\":{{\"key\":{},\"value\":{}}}}}",
        key.get(),
        value.get()
    )?;
    Ok(())
}

/// A conversation of the agent on the command line.
struct Chat {
    id: String,
    /// The blob that names all messages.
    root: String,
    meta: Json,
}

impl Chat {
    /// What is known of it is JSON, written in hexadecimal.
    fn of(database: &Connection) -> Result<Option<Self>, GatherError> {
        let Some(bytes) = value(database, "select value from meta where key = ?1", "0")? else {
            return Ok(None);
        };
        let bytes = quipu_model::hex::decode(&bytes).unwrap_or(bytes);
        let text = String::from_utf8_lossy(&bytes);
        let mut tape = Tape::new();
        let Ok(meta) = tape.read(&text, DEPTH) else {
            return Ok(None);
        };
        let (Some(id), Some(root)) = (meta.text("agentId"), meta.text("latestRootBlobId")) else {
            return Ok(None);
        };
        Ok(Some(Self {
            id: id.into_owned(),
            root: root.into_owned(),
            meta: Json::from(meta.raw()),
        }))
    }

    fn write(&self, database: &Connection, to: &mut dyn Write) -> Result<(), GatherError> {
        let root = value(database, "select data from blobs where id = ?1", &self.root)?;
        for id in named(&root.unwrap_or_default()) {
            let query = "select id, data from blobs where id = ?1";
            rows::write(database, "blobs", query, &[&id], &["data"], to)?;
        }
        pair(to, "meta", "0", &self.meta)
    }
}

/// The blobs that the root names, in order: the first field of a message in the encoding of Protocol
/// Buffers, as often as there are messages, each a hash of 32 bytes.
fn named(root: &[u8]) -> Vec<String> {
    let mut ids = Vec::new();
    let mut rest = root;
    while let Some((tag, behind)) = varint(rest) {
        let skipped = match tag & 7 {
            0 => varint(behind).map(|(_, behind)| behind),
            1 => behind.get(8..),
            5 => behind.get(4..),
            2 => varint(behind).and_then(|(length, behind)| {
                let length = usize::try_from(length).ok()?;
                let (value, behind) = behind.split_at_checked(length)?;
                if tag >> 3 == 1 && value.len() == 32 {
                    ids.push(quipu_model::hex::encode(value));
                }
                Some(behind)
            }),
            _ => None,
        };
        let Some(behind) = skipped else {
            break;
        };
        rest = behind;
    }
    ids
}

fn varint(bytes: &[u8]) -> Option<(u64, &[u8])> {
    let mut number = 0_u64;
    for (index, byte) in bytes.iter().take(10).enumerate() {
        number |= u64::from(byte & 0x7f) << (7 * index);
        if byte & 0x80 == 0 {
            return Some((number, &bytes[index + 1..]));
        }
    }
    None
}
