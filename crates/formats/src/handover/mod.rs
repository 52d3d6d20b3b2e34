//! What the writers of agents' own session files share.
//!
//! Such a file is opened again by the agent, and what is in it is sent to a model. So it has to hold to what
//! the model's provider accepts: names and ids of certain characters, a result for every call.

pub(crate) mod content;
pub(crate) mod own;
#[cfg(test)]
pub(crate) mod testkit;

use std::io::{self, Write};

use quipu_model::hex;
use quipu_model::{Body, Event, Header, Note, NoteKind, Timestamp, Usage};
use serde::Serialize as _;
use sha2::{Digest as _, Sha256};

/// What is put before the conversion's name in ids, so that they are no one else's.
const NAMESPACE: &str = "quipu";

/// How much is gathered before it is written.
const FLUSH: usize = 64 * 1024;

/// The longest name of a tool, and the longest id of a call, that every provider takes.
const LONGEST: usize = 64;

/// Lines of JSON on their way to a file.
pub(crate) struct Lines<'w> {
    out: Box<dyn Write + 'w>,
    bytes: Vec<u8>,
}

impl<'w> Lines<'w> {
    pub(crate) fn new(out: Box<dyn Write + 'w>) -> Self {
        Self {
            out,
            bytes: Vec::with_capacity(FLUSH * 2),
        }
    }

    /// Adds a text that is JSON.
    pub(crate) fn raw(&mut self, text: &str) -> &mut Self {
        self.bytes.extend_from_slice(text.as_bytes());
        self
    }

    /// Adds a string.
    pub(crate) fn string(&mut self, text: &str) -> &mut Self {
        text.serialize(&mut serde_json::Serializer::new(&mut self.bytes))
            .expect("a str serialises and a Vec takes it");
        self
    }

    /// Adds `,"key":"text"` when there is a text.
    pub(crate) fn field(&mut self, key: &str, text: Option<&str>) -> &mut Self {
        if let Some(text) = text {
            self.raw(",\"").raw(key).raw("\":").string(text);
        }
        self
    }

    /// Adds a number.
    pub(crate) fn number(&mut self, number: u64) -> &mut Self {
        self.raw(itoa::Buffer::new().format(number))
    }

    /// Adds a time, as a string with milliseconds.
    pub(crate) fn time(&mut self, at: Timestamp) -> &mut Self {
        let text = millis(at);
        self.raw("\"").raw(&text).raw("\"")
    }

    /// Ends a line.
    pub(crate) fn end(&mut self) -> io::Result<()> {
        self.bytes.push(b'\n');
        if self.bytes.len() >= FLUSH {
            self.out.write_all(&self.bytes)?;
            self.bytes.clear();
        }
        Ok(())
    }

    /// Writes all that is left.
    pub(crate) fn finish(mut self) -> io::Result<()> {
        self.out.write_all(&self.bytes)?;
        self.out.flush()
    }

    /// Adds where a session comes from: an object with all that is known of it as a whole.
    pub(crate) fn converted_from(&mut self, header: &Header) -> &mut Self {
        let origin = header.origin.as_ref();
        let at = &header.environment;
        self.raw(r#"{"by":"quipu","run_id":"#)
            .string(header.run_id.as_str());
        for (key, text) in [
            ("agent", header.agent()),
            (
                "agent_version",
                origin.and_then(|it| it.agent_version.as_deref()),
            ),
            ("adapter", origin.and_then(|it| it.adapter.as_deref())),
            ("session_id", origin.and_then(|it| it.session_id.as_deref())),
            ("path", origin.and_then(|it| it.path.as_deref())),
            ("title", header.title.as_deref()),
            ("parent_call", header.parent_call.as_deref()),
            ("forked_from", header.forked_from.as_deref()),
            ("cwd", at.cwd.as_deref()),
            ("git_branch", at.git_branch.as_deref()),
            ("repository", at.repository.as_deref()),
            ("commit", at.commit.as_deref()),
            ("os", at.os.as_deref()),
            ("shell", at.shell.as_deref()),
        ] {
            self.field(key, text);
        }
        self.field(
            "parent_run_id",
            header
                .parent_run_id
                .as_ref()
                .map(quipu_model::RunId::as_str),
        );
        for (index, child) in header.children.iter().enumerate() {
            self.raw(if index == 0 { ",\"children\":[" } else { "," })
                .string(child.as_str());
        }
        if !header.children.is_empty() {
            self.raw("]");
        }
        self.raw("}")
    }
}

/// A time with milliseconds, as both agents write it.
pub(crate) fn millis(at: Timestamp) -> String {
    at.strftime("%Y-%m-%dT%H:%M:%S%.3fZ").to_string()
}

/// Whether a time has more than milliseconds.
pub(crate) fn is_finer(at: Timestamp) -> bool {
    at.subsec_nanosecond() % 1_000_000 != 0
}

/// An id that follows from what it is the id of: the same each time, and no one else's.
pub(crate) fn uuid(parts: &[&str]) -> String {
    let hash = digest(parts);
    let digits = |range: std::ops::Range<usize>| hex::encode(&hash[range]);
    // Version 8 is for ids of one's own making.
    let version = 0x80 | (hash[6] & 0x0f);
    let variant = 0x80 | (hash[8] & 0x3f);
    format!(
        "{}-{}-{version:02x}{:02x}-{variant:02x}{:02x}-{}",
        digits(0..4),
        digits(4..6),
        hash[7],
        hash[9],
        digits(10..16)
    )
}

/// A short id of this kind, for what needs no UUID.
pub(crate) fn short(parts: &[&str]) -> String {
    hex::encode(&digest(parts)[..12])
}

fn digest(parts: &[&str]) -> [u8; 32] {
    let mut hash = Sha256::new();
    for part in std::iter::once(&NAMESPACE).chain(parts) {
        hash.update((part.len() as u64).to_le_bytes());
        hash.update(part.as_bytes());
    }
    hash.finalize().into()
}

/// Whether a text is a UUID.
pub(crate) fn is_uuid(text: &str) -> bool {
    text.len() == 36
        && text.bytes().enumerate().all(|(i, b)| match i {
            8 | 13 | 18 | 23 => b == b'-',
            _ => b.is_ascii_hexdigit(),
        })
}

/// The id of the session that is written: the one that was asked for, or one that follows from the run. Never that of
/// the session it was made from.
pub(crate) fn session_id(kind: &str, header: &Header, wanted: Option<&str>) -> String {
    match wanted {
        Some(id) if is_uuid(id) => id.to_ascii_lowercase(),
        Some(other) => uuid(&[kind, "session", other]),
        None => uuid(&[kind, "run", header.run_id.as_str()]),
    }
}

fn is_plain(text: &str) -> bool {
    let fits = |b: u8| b.is_ascii_alphanumeric() || b == b'_' || b == b'-';
    !text.is_empty() && text.len() <= LONGEST && text.bytes().all(fits)
}

/// The name of a tool as providers take it. `None` when it is one already.
pub(crate) fn tool_name(name: &str) -> Option<String> {
    if is_plain(name) {
        return None;
    }
    let plain: String = name
        .chars()
        .map(|c| {
            if c.is_ascii_alphanumeric() || c == '-' {
                c
            } else {
                '_'
            }
        })
        .take(LONGEST)
        .collect();
    Some(if plain.is_empty() {
        "unnamed".to_owned()
    } else {
        plain
    })
}

/// The id of a call as providers take it. `None` when it is one already.
pub(crate) fn call_id(id: &str, run: &str, seq: &str) -> Option<String> {
    (!is_plain(id)).then(|| format!("call_{}", short(&["call", run, seq, id])))
}

/// What the session is called: its title and where it comes from, so that it is not taken for the original.
pub(crate) fn title(header: &Header) -> String {
    let mark = match header.agent() {
        Some(agent) => format!("(from {agent})"),
        None => "(converted)".to_owned(),
    };
    match header.title.as_deref().map(str::trim) {
        Some(title) if title.ends_with(&mark) => title.to_owned(),
        Some(title) if !title.is_empty() => format!("{title} {mark}"),
        _ => format!("Session {} {mark}", header.run_id),
    }
}

/// What tells a person that a session was converted.
pub(crate) fn mark(header: &Header) -> String {
    let agent = header.agent().unwrap_or("another program");
    let id = header
        .origin
        .as_ref()
        .and_then(|origin| origin.session_id.as_deref())
        .unwrap_or(header.run_id.as_str());
    format!(
        "Converted by quipu from session {id} of {agent}. Tools that are called here may not exist in this agent."
    )
}

/// A command to be given in a directory. A name that could forge lines of what is shown is left out.
pub(crate) fn resume(cwd: &str, command: &str) -> String {
    let forges = |c: char| {
        c.is_control()
            || matches!(c, '\u{2028}' | '\u{2029}' | '\u{200e}' | '\u{200f}')
            || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
    };
    if cwd.contains(forges) {
        return command.to_owned();
    }
    format!("cd '{}' && {command}", cwd.replace('\'', r"'\''"))
}

/// Whether the text of a note is a summary that took the place of what came before it, and not only word that there was one.
pub(crate) fn is_summary(note: &Note) -> bool {
    let says = note
        .text
        .as_deref()
        .is_some_and(|text| !text.trim().is_empty());
    // Claude Code writes the summary into a line of its own; Codex into the line that tells of it.
    let whole = note.raw.as_ref().is_none_or(|raw| {
        raw.get().contains("\"type\":\"compacted\"")
            || raw.get().contains("\"type\":\"compaction\"")
    });
    note.kind == NoteKind::Compaction && says && whole
}

/// Whether any bucket counts something.
pub(crate) fn counts(usage: &Usage) -> bool {
    usage.total() > 0 || usage.reasoning.is_some_and(|n| n > 0)
}

/// Whether an event does nothing but count tokens.
pub(crate) fn is_counter(event: &Event) -> bool {
    let is_counted = event.annotations.usage.is_some_and(|usage| counts(&usage));
    matches!(&event.body, Body::Note(note) if note.kind == NoteKind::Usage) && is_counted
}

#[cfg(test)]
mod tests {
    use super::*;
    use quipu_model::RunId;

    #[test]
    fn ids_follow_from_what_they_are_of() {
        let one = uuid(&["a", "bc"]);
        assert!(is_uuid(&one), "{one}");
        assert_eq!(one, uuid(&["a", "bc"]));
        assert_ne!(one, uuid(&["ab", "c"]));
        assert_eq!(one.as_bytes()[14], b'8');
        let header = Header::new(RunId::new("r").unwrap());
        let own = session_id("claude-code", &header, None);
        assert_ne!(own, session_id("codex", &header, None));
        let given = "0199AAAA-0000-7000-8000-000000000001";
        assert_eq!(
            session_id("codex", &header, Some(given)),
            given.to_ascii_lowercase()
        );
        assert!(is_uuid(&session_id("codex", &header, Some("mine"))));
    }

    #[test]
    fn names_and_ids_become_what_providers_take() {
        for (name, plain) in [
            ("Bash", None),
            ("mcp__x__y", None),
            ("mcp.server/tool", Some("mcp_server_tool")),
            ("", Some("unnamed")),
            ("é", Some("_")),
        ] {
            assert_eq!(tool_name(name).as_deref(), plain, "{name:?}");
        }
        assert_eq!(tool_name(&"x".repeat(99)).unwrap().len(), LONGEST);
        assert_eq!(call_id("toolu_01", "r", "1"), None);
        let made = call_id("a b", "r", "1").unwrap();
        assert!(is_plain(&made), "{made}");
        assert_ne!(Some(made), call_id("a b", "r", "2"));
    }

    #[test]
    fn times_have_milliseconds() {
        let at: Timestamp = "2026-06-08T08:14:42.1239Z".parse().unwrap();
        assert_eq!(millis(at), "2026-06-08T08:14:42.123Z");
        assert!(is_finer(at));
        let whole: Timestamp = "2026-06-08T08:14:42Z".parse().unwrap();
        assert_eq!(millis(whole), "2026-06-08T08:14:42.000Z");
        assert!(!is_finer(whole));
    }

    #[test]
    fn a_title_says_where_it_comes_from_once() {
        let mut header = Header::new(RunId::new("r").unwrap());
        assert_eq!(title(&header), "Session r (converted)");
        header.title = Some("Mend the build".to_owned());
        header.origin = Some(quipu_model::Origin {
            agent: "codex".to_owned(),
            ..quipu_model::Origin::default()
        });
        assert_eq!(title(&header), "Mend the build (from codex)");
        header.title = Some(title(&header));
        assert_eq!(title(&header), "Mend the build (from codex)");
    }
}
