//! The beginning of a log, by which its format is known.

use std::borrow::Cow;
use std::cell::OnceCell;

use quipu_model::json::{Kind, Node, Parts, PartsError, Tape};

/// How much of a log is looked at.
pub const HEAD: usize = 256 * 1024;

/// How many records are looked at.
const RECORDS: usize = 12;

/// How many lines are looked at, records or not.
const LINES: usize = 256;

/// The records a log begins with.
pub struct Head<'a> {
    text: &'a str,
    tapes: &'a [(Tape, &'a str)],
    is_document: bool,
    spans_lines: bool,
    is_sse: bool,
    tables: &'a [String],
    /// Looked for when they are first asked for.
    fields: OnceCell<Vec<Field>>,
}

/// A field of the document at hand, or an item of the list that it breaks off in.
struct Field {
    key: String,
    index: Option<u64>,
    value: String,
    tape: Tape,
}

impl Head<'_> {
    /// Looks at the first bytes of a log. `whole` says that there are no more.
    pub fn look<T>(bytes: &[u8], whole: bool, then: impl FnOnce(&Head<'_>) -> T) -> T {
        let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
        let text = match simdutf8::basic::from_utf8(bytes) {
            Ok(text) => Cow::Borrowed(text),
            Err(_) => String::from_utf8_lossy(bytes),
        };
        let text = if memchr::memchr(0, text.as_bytes()).is_some() {
            Cow::Owned(text.replace('\0', "\\u0000"))
        } else {
            text
        };
        let Lines { mut tapes, is_sse } = Lines::look(&text, whole);
        // A document that is spread over lines: few of them are values of their own.
        let trimmed = text.trim();
        let mut document = Tape::new();
        let is_document =
            whole && trimmed.starts_with(['{', '[']) && document.read(trimmed, 128).is_ok();
        let spans_lines = is_document && trimmed.contains('\n');
        if is_document {
            tapes = vec![(document, trimmed)];
        }
        then(&Head {
            text: &text,
            tapes: &tapes,
            is_document,
            spans_lines,
            is_sse,
            tables: &[],
            fields: OnceCell::new(),
        })
    }

    /// The beginning of a database.
    pub fn of_database<T>(tables: &[String], then: impl FnOnce(&Head<'_>) -> T) -> T {
        then(&Head {
            text: "",
            tapes: &[],
            is_document: false,
            spans_lines: false,
            is_sse: false,
            tables,
            fields: OnceCell::new(),
        })
    }

    /// The first records, or the document as the only one.
    pub fn records(&self) -> impl Iterator<Item = Node<'_>> {
        self.tapes.iter().map(|(tape, text)| tape.root(text))
    }

    /// Whether most of the first records are of a kind. A record of another kind between them may be one
    /// that the agent began to write only lately.
    pub fn mostly(&self, is: impl Fn(Node<'_>) -> bool) -> bool {
        let (mut fitting, mut all) = (0_usize, 0_usize);
        for record in self.records() {
            fitting += usize::from(is(record));
            all += 1;
        }
        fitting * 2 > all
    }

    /// The first record that is an object.
    pub fn first(&self) -> Option<Node<'_>> {
        self.records().find(|node| node.kind() == Kind::Object)
    }

    /// The first record of a kind, or else the first that is an object.
    pub fn first_that(&self, is: impl Fn(Node<'_>) -> bool) -> Option<Node<'_>> {
        self.records().find(|record| is(*record)).or(self.first())
    }

    /// The log, when it is one JSON document. A log of one line is that as well.
    pub fn document(&self) -> Option<Node<'_>> {
        self.records().next().filter(|_| self.is_document)
    }

    /// The fields of a document that is an object, as far as they are there and not longer than [`HEAD`]. Of a
    /// list in the middle of which the first [`HEAD`] bytes end, the first items are given, each with its index.
    /// Nothing when something follows the object, which then is a record.
    ///
    /// Thus a document is known that is too long to be looked at as a whole.
    pub fn fields(&self) -> impl Iterator<Item = (&str, Option<u64>, Node<'_>)> {
        let fields = self.fields.get_or_init(|| divide(self.text));
        fields.iter().map(|field| {
            let node = field.tape.root(&field.value);
            (field.key.as_str(), field.index, node)
        })
    }

    /// A field of the document, if it is wholly in the first bytes.
    pub fn field(&self, key: &str) -> Option<Node<'_>> {
        self.fields()
            .find(|(name, index, _)| *name == key && index.is_none())
            .map(|(_, _, node)| node)
    }

    /// The first item of a field of the document that is a list, however much of the list is there.
    pub fn first_item(&self, key: &str) -> Option<Node<'_>> {
        self.fields()
            .find(|(name, ..)| *name == key)
            .and_then(|(_, index, node)| match index {
                Some(_) => Some(node),
                None => node.items().next(),
            })
    }

    /// Whether the log is one JSON document that is spread over lines, so that no line is a record.
    pub fn spans_lines(&self) -> bool {
        self.spans_lines
    }

    /// Whether there are server-sent events.
    pub fn is_sse(&self) -> bool {
        self.is_sse
    }

    /// The text.
    pub fn text(&self) -> &str {
        self.text
    }

    /// The tables, when it is a database.
    pub fn tables(&self) -> &[String] {
        self.tables
    }
}

/// The lines a log begins with.
#[derive(Default)]
struct Lines<'t> {
    tapes: Vec<(Tape, &'t str)>,
    is_sse: bool,
}

/// What a line is, seen by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Shape {
    /// A record, or a line of an event that a server sent.
    Record,
    /// What may be left of a record, or a part of one.
    Torn,
    /// The edge of a block of code, as prose has them.
    Fence,
    /// Anything else.
    Other,
}

impl<'t> Lines<'t> {
    /// Looks for records. There are none in a text that only quotes some: either the first line is one, or most
    /// lines are, for what ran the agent may have said something before it.
    fn look(text: &'t str, whole: bool) -> Self {
        let mut found = Self::default();
        let begins = begins(text.trim_start());
        let (mut records, mut others, mut quotes) = (0_usize, 0_usize, false);
        let mut lines = text.split_inclusive('\n').take(LINES).peekable();
        while let Some(line) = lines.next() {
            if begins && found.tapes.len() == RECORDS {
                break;
            }
            let complete = whole || line.ends_with('\n') || lines.peek().is_some();
            let line = line.trim();
            if line.is_empty() || !complete {
                continue;
            }
            match found.line(line) {
                Shape::Record => records += 1,
                Shape::Torn => {}
                Shape::Fence => quotes = true,
                Shape::Other => others += 1,
            }
        }
        if begins || (records > others && !quotes) {
            return found;
        }
        Self::default()
    }

    /// Takes in a line.
    fn line(&mut self, line: &'t str) -> Shape {
        let data = line.strip_prefix("data:").map(str::trim_start);
        let is_sse = data.is_some() || line.starts_with("event:");
        self.is_sse |= is_sse;
        let line = data.unwrap_or(line);
        if line.starts_with(['{', '[']) {
            let mut tape = Tape::new();
            if self.tapes.len() == RECORDS {
                // Enough are known; the others only count.
                return if line.ends_with(['}', ']']) {
                    Shape::Record
                } else {
                    Shape::Torn
                };
            }
            if tape.read_first(line, 128).is_ok() {
                self.tapes.push((tape, line));
                return Shape::Record;
            }
        }
        if is_sse {
            Shape::Record
        } else if line.starts_with("```") || line.starts_with("~~~") {
            Shape::Fence
        } else if line.starts_with('{') || line.ends_with('}') || line.starts_with("\\u0000") {
            Shape::Torn
        } else {
            Shape::Other
        }
    }
}

/// Whether a text begins as a record, a document or an event of a server does. A link in brackets does not.
fn begins(text: &str) -> bool {
    if ["data:", "event:", "id:", ": "]
        .iter()
        .any(|word| text.starts_with(word))
    {
        return true;
    }
    let mut marks = text.chars().filter(|mark| !mark.is_whitespace());
    match (marks.next(), marks.next()) {
        (Some('{'), next) => matches!(next, None | Some('"' | '}')),
        (Some('['), next) => matches!(next, None | Some('{' | '[' | '"' | ']')),
        _ => false,
    }
}

/// The fields that stand wholly in a document, or in the beginning of one.
fn divide(text: &str) -> Vec<Field> {
    let mut fields = Vec::new();
    let mut take = |key: &str, index: Option<u64>, value: &[u8]| {
        let value = String::from_utf8_lossy(value).into_owned();
        let mut tape = Tape::new();
        if tape.read(&value, 128).is_ok() {
            fields.push(Field {
                key: key.to_owned(),
                index,
                value,
                tape,
            });
        }
    };
    let bytes = text.as_bytes();
    let (beginning, rest) = bytes.split_at(bytes.len().min(HEAD));
    let mut parts = Parts::new(&[], HEAD);
    let pushed = parts.push(beginning, &mut |part| take(part.key, None, part.value));
    if pushed.is_err() {
        return Vec::new();
    }
    if let Some(open) = parts
        .unfinished()
        .filter(|part| part.value.starts_with(b"["))
    {
        // The list by itself, as the only field of a document.
        let mut items = Parts::new(&[""], HEAD);
        let mut found = 0;
        let mut first = |value: &[u8]| {
            if found < RECORDS {
                take(open.key, Some(found as u64), value);
            }
            found += 1;
        };
        for piece in [b"{\"\":", open.value] {
            // What cannot be divided ends what is found, and is for the reader to speak of.
            if items.push(piece, &mut |part| first(part.value)).is_err() {
                break;
            }
        }
    }
    match parts.push(rest, &mut |part| take(part.key, None, part.value)) {
        // What is too long to be looked at is passed over, and the rest is as good as it was.
        Ok(()) | Err(PartsError::TooLong { .. }) => fields,
        Err(_) => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fields(text: &str, whole: bool) -> Vec<(String, Option<u64>, String)> {
        Head::look(text.as_bytes(), whole, |head| {
            head.fields()
                .map(|(key, index, node)| (key.to_owned(), index, node.raw().get().to_owned()))
                .collect()
        })
    }

    #[test]
    fn a_document_is_known_by_the_fields_that_are_there() {
        let text = r#"{"v":"1","list":[1,{"a":2}],"events":[{"x":1},{"y":[2]},{"z""#;
        let field = |key: &str, index, value: &str| (key.to_owned(), index, value.to_owned());
        let expected = [
            field("v", None, "\"1\""),
            field("list", None, r#"[1,{"a":2}]"#),
            field("events", Some(0), r#"{"x":1}"#),
            field("events", Some(1), r#"{"y":[2]}"#),
        ];
        assert_eq!(fields(text, false), expected);
        Head::look(text.as_bytes(), false, |head| {
            assert!(head.document().is_none());
            assert_eq!(
                head.field("v").and_then(|v| v.as_str()).as_deref(),
                Some("1")
            );
            assert!(head.field("events").is_none());
            let first = |key| head.first_item(key).map(|item| item.raw().get().to_owned());
            assert_eq!(first("events").as_deref(), Some(r#"{"x":1}"#));
            assert_eq!(first("list").as_deref(), Some("1"));
            assert_eq!(first("v"), None);
        });
    }

    #[test]
    fn a_record_of_many_is_no_document() {
        assert!(fields("{\"v\":1}\n{\"v\":2}\n", true).is_empty());
        assert!(fields("[1]", true).is_empty());
        assert!(fields("", true).is_empty());
        assert!(fields("no json", false).is_empty());
        assert_eq!(fields("{\"v\":1}\n", true).len(), 1);
    }

    /// A document of one line, with a list of about a megabyte in it.
    fn long(before: &str, item: &str, after: &str) -> String {
        let items = vec![item; 1_000_000 / item.len()];
        format!("{before}[{}]{after}", items.join(","))
    }

    #[test]
    fn a_long_document_of_one_line_is_known() {
        let event = r#"{"id":"ev_001","seq":1,"timestamp":"2026-06-22T10:00:03Z","type":"user_message","role":"user","text":"hello"}"#;
        let step = r#"{"step_id":1,"source":"user","message":"hello"}"#;
        let sample = r#"{"id":1,"epoch":1,"input":"x","messages":[{"role":"user","content":"x"}]}"#;
        let spec = r#"{"version":2,"status":"success","eval":{"task":"t","model":"m","dataset":{"name":"d"},"eval_id":"e"},"#;
        for (document, dialect) in [
            (
                long(
                    r#"{"schemaVersion":"0.1.0","transcriptId":"t","source":{"agent":"codex"},"events":"#,
                    event,
                    "}",
                ),
                "normalized",
            ),
            (
                long(
                    r#"{"schema_version":"ATIF-v1.6","session_id":"s","steps":"#,
                    step,
                    "}",
                ),
                "atif",
            ),
            // The version behind the steps.
            (
                long(
                    r#"{"session_id":"s","steps":"#,
                    step,
                    r#","schema_version":"ATIF-v1.6"}"#,
                ),
                "atif",
            ),
            (long(&format!("{spec}\"samples\":"), sample, "}"), "inspect"),
        ] {
            for (bytes, whole) in [
                (document.as_bytes(), true),
                (document.as_bytes(), false),
                (&document.as_bytes()[..500_000], false),
                (&document.as_bytes()[..HEAD], false),
            ] {
                let found = crate::identify(bytes, whole).map(|(family, _)| family.name());
                assert_eq!(found, Some(dialect), "{} bytes, {whole}", bytes.len());
            }
        }
    }

    const RECORD: &str = r#"{"type":"user","uuid":"u1","sessionId":"s1","timestamp":"2025-12-09T10:20:43Z","cwd":"/code","message":{"role":"user","content":"hi"}}"#;

    fn records(text: &str) -> usize {
        Head::look(text.as_bytes(), true, |head| head.records().count())
    }

    #[test]
    fn a_text_that_quotes_records_is_no_log() {
        let fenced = format!("# A session\n\nIt said:\n\n```json\n{RECORD}\n```\n");
        let many = format!("# Logs\n\n```\n{}```\n", format!("{RECORD}\n").repeat(20));
        let badge = format!("[![build](x.svg)](y)\n\n{RECORD}\n\nand more\n");
        let prose = format!("One\ntwo\nthree\n{RECORD}\nfour\n");
        let data = format!("Notes\n\n- one\n- two\ndata: {RECORD}\nmore\n");
        for text in [&fenced, &many, &badge, &prose, &data] {
            assert_eq!(records(text), 0, "{text}");
            assert!(crate::identify(text.as_bytes(), true).is_none(), "{text}");
        }
        let link = format!("[link](x)\n{RECORD}\n");
        assert_eq!(records(&link), 0);
    }

    #[test]
    fn a_log_may_begin_with_something_else() {
        let two = format!("{RECORD}\n{RECORD}\n");
        let three = format!("{two}{RECORD}\n");
        for text in [
            format!("\u{feff}{RECORD}\n"),
            format!("\n\n{RECORD}\n"),
            format!("\0\0\0\n{RECORD}\n"),
            format!("\0\0\0{RECORD}\n{RECORD}\n"),
            format!("nt\":\"hi\"}}}}\n{RECORD}\n"),
            format!("{{\"type\":\"us\n{RECORD}\n"),
            format!("Loaded 3 tools\n{two}"),
            format!("npm warn: old\n[main] ready\n{three}"),
            format!("{RECORD}\nit broke off\nand again\nand again\n"),
            format!("event: message\ndata: {RECORD}\n\n"),
        ] {
            assert!(records(&text) > 0, "{text}");
            assert!(crate::identify(text.as_bytes(), true).is_some(), "{text}");
        }
    }

    #[test]
    fn pages_of_our_own_are_no_logs() {
        let formats = concat!(env!("CARGO_MANIFEST_DIR"), "/../formats/src");
        let mut found = Vec::new();
        for folder in ["markdown", "text"] {
            let folder = std::path::Path::new(formats).join(folder);
            crate::corpus::files(&folder, &mut found);
        }
        found.retain(|path| path.extension().is_some_and(|it| it == "md" || it == "txt"));
        assert!(!found.is_empty());
        for path in found {
            let text = std::fs::read(&path).unwrap();
            let known = crate::identify(&text, true).map(|(_, dialect)| dialect.name);
            assert_eq!(known, None, "{}", path.display());
        }
    }
}
