//! Holds adapters to what they say of fields: each field of a record is read into a place of its own, is kept with
//! an event, or is counted by its name as not carried.
//!
//! What was looked at is noted while a record is read and events are made of it. What was not is listed; the list is
//! kept in a file, so that no field vanishes by being put on a list of known ones.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::ops::Range;

use quipu_model::json::{Kind, Node, watch};

thread_local! {
    static FOUND: RefCell<Option<BTreeMap<String, u64>>> = const { RefCell::new(None) };
}

/// A record is about to be read.
pub(crate) fn begin() {
    if FOUND.with_borrow(Option::is_some) {
        watch::begin();
    }
}

/// A record was read, and did become something.
pub(crate) fn end(record: Node<'_>, is_dropped: bool) {
    if FOUND.with_borrow(Option::is_none) {
        return;
    }
    let mut seen = watch::end();
    if is_dropped {
        return;
    }
    seen.sort_by_key(|range| (range.start, std::cmp::Reverse(range.end)));
    let mut lost = Vec::new();
    look(record, &mut String::new(), &seen, &mut lost);
    let label = label(record);
    FOUND.with_borrow_mut(|found| {
        let found = found.get_or_insert_default();
        for path in lost {
            *found.entry(format!("{label} {path}")).or_default() += 1;
        }
    });
}

/// What kind of record it is.
fn label(record: Node<'_>) -> String {
    let mut label = record.text("type").unwrap_or_default().into_owned();
    for inner in ["payload", "part", "data", "item"] {
        if let Some(inner) = record.get(inner).and_then(|inner| inner.text("type")) {
            label.push('/');
            label.push_str(&inner);
        }
    }
    if label.is_empty() {
        label.push('-');
    }
    label
}

/// Finds values that were not looked at, and says whether any in this one was.
fn look(node: Node<'_>, path: &mut String, seen: &[Range<usize>], lost: &mut Vec<String>) -> bool {
    let bytes = node.bytes().as_ptr_range();
    let own = bytes.start as usize..bytes.end as usize;
    let before = seen.partition_point(|range| range.start <= own.start);
    if seen[..before].iter().any(|range| range.end >= own.end) {
        return true;
    }
    let mut is_seen = false;
    let had = lost.len();
    let was = path.len();
    match node.kind() {
        Kind::Null => return true,
        Kind::Object => {
            let mut is_empty = true;
            for (key, value) in node.fields() {
                is_empty = false;
                if !path.is_empty() {
                    path.push('.');
                }
                path.push_str(&key.to_text_lossy());
                is_seen |= look(value, path, seen, lost);
                path.truncate(was);
            }
            is_seen |= is_empty;
        }
        Kind::List => {
            let mut is_empty = true;
            for item in node.items() {
                is_empty = false;
                path.push_str("[]");
                is_seen |= look(item, path, seen, lost);
                path.truncate(was);
            }
            is_seen |= is_empty;
        }
        Kind::Bool | Kind::Number | Kind::String => {}
    }
    if !is_seen {
        // All of it was lost: its name is enough.
        lost.truncate(had);
        lost.push(path.clone());
    }
    is_seen
}

mod tests {
    use std::fmt::Write as _;
    use std::path::Path;

    use super::FOUND;
    use crate::corpus;
    use crate::testkit;

    /// Logs of the agents and interfaces that most sessions are of.
    const FIRST_CLASS: &[&str] = &[
        "claude",
        "claude-stream",
        "codex",
        "codex-exec",
        "opencode",
        "copilot",
        "gemini",
        "gemini-stream",
        "anthropic-http",
        "openai-chat-http",
        "openai-responses-http",
        "gemini-http",
    ];

    /// What is not read, because something else that is read says it: how the path ends, and what says it.
    const IMPLIED: &[(&str, &str)] = &[
        ("role", "the kind of the record, or of the item"),
        ("type", "what is in it"),
        ("object", "what is in it"),
        ("sessionId", "the first line"),
        ("session_id", "the first line"),
        ("sessionID", "the first record"),
        ("messageID", "the message it is listed under"),
        ("projectDirectory", "the first record"),
        ("model", "the first piece"),
        ("modelVersion", "the first piece"),
        (
            "ephemeral_5m_input_tokens",
            "all that is written to the cache, and what of it for an hour",
        ),
        ("sequence_number", "the order of the records"),
        ("ordinal", "the order of the lines"),
        ("time.end", "kept with the part as it was told last"),
        ("candidates[].content", "it has no parts"),
        ("output[].status", "the item has no content"),
    ];

    /// What the end of a stream repeats of items that came before it.
    const REPEATED: &str = "response.completed response.output";

    #[test]
    fn every_field_of_real_logs_is_mapped_kept_or_counted() {
        if corpus::fixtures().is_none() {
            return;
        }
        let mut made = String::new();
        for folder in FIRST_CLASS {
            FOUND.set(Some(std::collections::BTreeMap::new()));
            let mut counted = std::collections::BTreeSet::new();
            for (name, bytes) in corpus::logs(folder) {
                if let Some((family, dialect)) = crate::identify(&bytes, true) {
                    let read = testkit::in_pieces(family, dialect, &bytes, &name, &[]);
                    let names = read.ledger.drift.names_left_out();
                    counted.extend(names.map(|(name, _)| name.to_owned()));
                }
            }
            for (what, count) in FOUND.take().unwrap_or_default() {
                let path = what.rsplit(' ').next().unwrap_or_default();
                let key = path.rsplit('.').next().unwrap_or_default();
                let implied = IMPLIED.iter().find(|(end, _)| {
                    let before = path.strip_suffix(end);
                    before.is_some_and(|before| before.is_empty() || before.ends_with('.'))
                });
                let why = match implied {
                    _ if what.starts_with(REPEATED) => "said by items before it",
                    Some((_, by)) => by,
                    None if counted
                        .iter()
                        .any(|name| name.rsplit('.').next() == Some(key)) =>
                    {
                        "counted"
                    }
                    None => "LOST",
                };
                writeln!(made, "{folder}: {what} {count} ({why})").unwrap();
            }
        }
        let lost: Vec<&str> = made
            .lines()
            .filter(|line| line.ends_with("(LOST)"))
            .collect();
        assert!(lost.is_empty(), "fields vanish: {lost:#?}");
        let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/fields.golden.txt");
        if std::env::var_os("QUIPU_BLESS").is_some() {
            let mut file = std::fs::File::create(&golden).unwrap();
            std::io::Write::write_all(&mut file, made.as_bytes()).unwrap();
        }
        let kept = std::fs::read_to_string(&golden).unwrap_or_default();
        assert!(
            made == kept,
            "fields reach no event that did before; QUIPU_BLESS=1 writes {}",
            golden.display()
        );
    }
}
