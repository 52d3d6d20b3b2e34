//! The beginning of a log, by which its format is known.

use std::borrow::Cow;

use quipu_model::json::{Kind, Node, Tape};

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
