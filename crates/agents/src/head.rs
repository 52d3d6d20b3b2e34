//! The beginning of a log, by which its format is known.

use std::borrow::Cow;
use std::cell::OnceCell;

use quipu_model::json::{Kind, Node, Parts, Tape};

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
        let mut tapes = Vec::new();
        let mut sse = 0;
        let mut lines = text.split_inclusive('\n').peekable();
        let mut looked = 0;
        while let Some(line) = lines.next() {
            looked += 1;
            if tapes.len() == RECORDS || looked > LINES {
                break;
            }
            let complete = whole || line.ends_with('\n') || lines.peek().is_some();
            let line = line.trim();
            let data = line.strip_prefix("data:").map(str::trim_start);
            sse += usize::from(data.is_some() || line.starts_with("event:"));
            let line = data.unwrap_or(line);
            if complete && line.starts_with(['{', '[']) {
                let mut tape = Tape::new();
                if tape.read_first(line, 128).is_ok() {
                    tapes.push((tape, line));
                }
            }
        }
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
            is_sse: sse > 0,
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

    /// The first record that is an object.
    pub fn first(&self) -> Option<Node<'_>> {
        self.records().find(|node| node.kind() == Kind::Object)
    }

    /// The log, when it is one JSON document. A log of one line is that as well.
    pub fn document(&self) -> Option<Node<'_>> {
        self.records().next().filter(|_| self.is_document)
    }

    /// The fields of a document that is an object, as far as they are wholly in the first bytes. Of a list
    /// in the middle of which the first bytes end, the first items are given, each with its index. Nothing
    /// when something follows the object, which then is a record.
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

/// The fields that stand wholly in the beginning of a document.
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
    let mut parts = Parts::new(&[], HEAD);
    let pushed = parts.push(text.as_bytes(), &mut |part| {
        take(part.key, None, part.value);
    });
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
    fields
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
}
