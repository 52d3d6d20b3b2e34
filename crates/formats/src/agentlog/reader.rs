//! The lines of a trace, one at a time.
//!
//! What the specification leaves open: a byte order mark at the beginning is passed over, lines may end in
//! CR LF, lines of nothing but white space are passed over; each is counted. The last line may lack its end;
//! when it also ends in the middle of a value, it was torn. A line counts with its end, as in the reference implementation: one
//! of exactly the limit is read, one byte more is not.

use std::io::{self, Read};

use quipu_model::json::{SyntaxError, SyntaxProblem, Tape};

use quipu_exchange::lines::{Limits, LineInfo, Lines};

use super::record::{At, NotARecord, Record};

/// What is read where nothing else is said: lines of 16 MiB with their end, a trace of 1 GiB.
pub const LIMITS: Limits = Limits {
    max_line_bytes: 16 << 20,
    max_total_bytes: 1 << 30,
    max_depth: 1024,
};

/// What a line is.
#[derive(Debug)]
#[expect(
    clippy::large_enum_variant,
    reason = "nearly all items are records, and an item is gone before the next"
)]
pub enum Item<'a> {
    /// A record.
    Record(Record<'a>),
    /// No record.
    Bad {
        /// Where.
        at: At,
        /// Why.
        fault: Fault,
        /// The line without its end; empty when it is too long to be held.
        bytes: &'a [u8],
    },
}

/// Why a line is no record.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// The file ends in the middle of it.
    #[error("cut off: the file ends in the middle of this line")]
    Torn,
    /// It is not UTF-8.
    #[error("not UTF-8 (column {})", .0 + 1)]
    Utf8(usize),
    /// It is not JSON.
    #[error("not JSON: {0}")]
    Syntax(SyntaxError),
    /// It is JSON, but no record.
    #[error("no record: {0}")]
    NotARecord(#[from] NotARecord),
    /// It nests deeper than allowed.
    #[error("nested deeper than {0} levels")]
    TooDeep(usize),
    /// It has more values than are held at once.
    #[error("more than {} values, keys counted", Tape::MAX_VALUES)]
    TooManyValues,
    /// It is longer than allowed.
    #[error("{len} bytes long with its end, more than the {limit} allowed")]
    TooLong {
        /// How long it is, with its end.
        len: u64,
        /// How long it may be.
        limit: usize,
    },
}

/// What was passed over.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Passed {
    /// Whether the file begins with a byte order mark.
    pub bom: bool,
    /// Lines that end in CR LF.
    pub cr_lf: u64,
    /// Lines of nothing but white space.
    pub blank: u64,
    /// Whether the last line has no end.
    pub unterminated: bool,
}

/// Reads the records of a trace.
#[derive(Debug)]
pub struct Reader<R> {
    lines: Lines<R>,
    limits: Limits,
    tape: Tape,
    passed: Passed,
}

impl<R: Read> Reader<R> {
    /// Reads with the limits of the format, [`LIMITS`].
    pub fn new(source: R) -> Self {
        Self::with_limits(source, LIMITS)
    }

    /// Reads with other limits.
    pub fn with_limits(source: R, limits: Limits) -> Self {
        Self {
            lines: Lines::new(source, limits),
            limits,
            tape: Tape::new(),
            passed: Passed::default(),
        }
    }

    /// The next record, or the next line that is none; `None` at the end. After a line that is no record,
    /// reading goes on behind it.
    ///
    /// # Errors
    ///
    /// When the source fails, or is larger than allowed.
    #[expect(
        clippy::should_implement_trait,
        reason = "items borrow from the reader"
    )]
    pub fn next(&mut self) -> io::Result<Option<Item<'_>>> {
        loop {
            let Some(info) = self.lines.advance()? else {
                return Ok(None);
            };
            if let Some(bytes) = trim(self.lines.current(), &info, &mut self.passed) {
                // Looked at once more, because what is borrowed in a loop is borrowed for all of it.
                let start = bytes.as_ptr() as usize - self.lines.current().as_ptr() as usize;
                let range = start..start + bytes.len();
                let bytes = &self.lines.current()[range];
                return Ok(Some(parse_line(bytes, &info, &self.limits, &mut self.tape)));
            }
        }
    }

    /// What was passed over so far.
    pub fn passed(&self) -> Passed {
        self.passed
    }

    /// The offset of the byte behind what was read.
    pub fn position(&self) -> u64 {
        self.lines.position()
    }
}

/// A line without what does not belong to its record; `None` when there is nothing else.
pub fn trim<'a>(line: &'a [u8], info: &LineInfo, passed: &mut Passed) -> Option<&'a [u8]> {
    let mut bytes = line;
    if info.offset == 0
        && let Some(behind) = bytes.strip_prefix(b"\xef\xbb\xbf")
    {
        passed.bom = true;
        bytes = behind;
    }
    if info.terminated
        && let Some(before) = bytes.strip_suffix(b"\r")
    {
        passed.cr_lf += 1;
        bytes = before;
    }
    passed.unterminated = !info.terminated;
    if !info.too_long && bytes.trim_ascii().is_empty() {
        passed.blank += 1;
        return None;
    }
    Some(bytes)
}

/// What a line is, its end and a byte order mark taken off ([`trim`]).
pub fn parse_line<'a>(
    bytes: &'a [u8],
    info: &LineInfo,
    limits: &Limits,
    tape: &'a mut Tape,
) -> Item<'a> {
    let at = At {
        line: info.number,
        offset: info.offset,
    };
    let len = info.len + u64::from(info.terminated);
    if info.too_long || len > limits.max_line_bytes as u64 {
        let limit = limits.max_line_bytes;
        let fault = Fault::TooLong { len, limit };
        return Item::Bad {
            at,
            fault,
            bytes: &[],
        };
    }
    match read_line(bytes, at, limits, tape) {
        Ok(record) => Item::Record(record),
        Err(_) if !info.terminated && is_cut(bytes, limits) => Item::Bad {
            at,
            fault: Fault::Torn,
            bytes,
        },
        Err(fault) => Item::Bad { at, fault, bytes },
    }
}

/// Whether a line could go on behind its last byte. One that is whole, but wrong, was not cut off: it may be a
/// record that is only deeper than allowed.
#[cold]
fn is_cut(bytes: &[u8], limits: &Limits) -> bool {
    let text = match str::from_utf8(bytes) {
        Ok(text) => text,
        // The last character is not all there. What is before it has to lack something as well.
        Err(error) if error.error_len().is_none() => {
            str::from_utf8(&bytes[..error.valid_up_to()]).unwrap_or_default()
        }
        Err(_) => return false,
    };
    let read = Tape::new().read(text, limits.max_depth).map(|_| ());
    read.is_err_and(|error| error.what == SyntaxProblem::End)
}

fn read_line<'a>(
    bytes: &'a [u8],
    at: At,
    limits: &Limits,
    tape: &'a mut Tape,
) -> Result<Record<'a>, Fault> {
    let text = match simdutf8::basic::from_utf8(bytes) {
        Ok(text) => text,
        Err(_) => str::from_utf8(bytes).map_err(|error| Fault::Utf8(error.valid_up_to()))?,
    };
    let node = tape
        .read(text, limits.max_depth)
        .map_err(|error| match error.what {
            SyntaxProblem::Depth => Fault::TooDeep(limits.max_depth),
            SyntaxProblem::Values => Fault::TooManyValues,
            _ => Fault::Syntax(error),
        })?;
    Ok(Record::read(node, at)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agentlog::Parent;

    const ROOT: &str = r#"{"version":"0.1","id":"sha256:44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a","kind":"metadata","ts":"2026-04-24T10:00:00.000Z","parent":null,"payload":{}}"#;

    /// What each line is: `ok`, or why not.
    fn read(input: &[u8], limits: Limits) -> (Vec<String>, Passed) {
        let mut reader = Reader::with_limits(input, limits);
        let mut found = Vec::new();
        while let Some(item) = reader.next().unwrap() {
            found.push(match item {
                Item::Record(record) => format!("{} ok", record.at.line),
                Item::Bad { at, fault, .. } => format!("{} {fault}", at.line),
            });
        }
        (found, reader.passed())
    }

    #[test]
    fn line_ends_marks_and_blanks_are_passed_over_and_counted() {
        let input = format!("\u{feff}{ROOT}\r\n\n   \n\r\n  {ROOT}  \n{ROOT}");
        let (found, passed) = read(input.as_bytes(), LIMITS);
        assert_eq!(found, ["1 ok", "5 ok", "6 ok"]);
        let expected = Passed {
            bom: true,
            cr_lf: 2,
            blank: 3,
            unterminated: true,
        };
        assert_eq!(passed, expected);
        assert!(!read(format!("{ROOT}\n").as_bytes(), LIMITS).1.unterminated);
    }

    #[test]
    fn reading_goes_on_behind_what_is_no_record() {
        let deep = format!("{}{}", "[".repeat(1025), "]".repeat(1025));
        let twice = ROOT.replace("\"parent\"", "\"id\"");
        let array = r#"["0.1","sha256:x","metadata","2026-04-24T10:00:00.000Z",null,null,{}]"#;
        let mut input = format!("{ROOT}\nnull\n{array}\n{twice}\n{{\"a\":NaN}}\n{deep}\n{ROOT}x\n");
        input.push_str("{\"a\":\"\u{1}\"}\n");
        let mut input = input.into_bytes();
        input.extend_from_slice(b"{\"a\":\"\xff\"}\n");
        input.extend_from_slice(&ROOT.as_bytes()[..80]);
        let (found, _) = read(&input, LIMITS);
        assert_eq!(
            found,
            [
                "1 ok",
                "2 no record: not an object",
                "3 no record: not an object",
                "4 no record: field `id` is there twice",
                "5 not JSON: expected a value (column 6)",
                "6 nested deeper than 1024 levels",
                &format!(
                    "7 not JSON: something follows the value (column {})",
                    ROOT.len() + 1
                ),
                "8 not JSON: control character in a string (column 7)",
                "9 not UTF-8 (column 7)",
                "10 cut off: the file ends in the middle of this line",
            ]
        );
    }

    #[test]
    fn only_what_could_go_on_was_cut_off() {
        let torn = "1 cut off: the file ends in the middle of this line";
        // Wherever a record ends too early, also in the middle of a character.
        let record = ROOT.replace("{}", r#"{"a":"é\u00e9\n","b":[true,-1.5e3,null]}"#);
        for end in 1..record.len() {
            assert_eq!(read(&record.as_bytes()[..end], LIMITS).0, [torn], "{end}");
        }
        let deep = format!("{}{}", "[".repeat(1025), "]".repeat(1025));
        let twice = ROOT.replace("\"parent\"", "\"id\"");
        for (whole, why) in [
            (deep.as_bytes(), "nested deeper than 1024 levels"),
            (b"[1,2]", "no record: not an object"),
            (twice.as_bytes(), "no record: field `id` is there twice"),
            (b"words", "not JSON: expected a value (column 1)"),
            (b"{\"a\":\"\xff", "not UTF-8 (column 7)"),
            (b"{\"a\":1}\xc3", "not UTF-8 (column 8)"),
            (b"words\xc3", "not UTF-8 (column 6)"),
        ] {
            assert_eq!(read(whole, LIMITS).0, [format!("1 {why}")]);
        }
    }

    #[test]
    fn too_many_values_are_told_from_what_is_no_json() {
        let mut line = "[".to_owned() + &"0,".repeat(Tape::MAX_VALUES);
        line.push_str("0]\n");
        let (found, _) = read(line.as_bytes(), LIMITS);
        assert_eq!(found, ["1 more than 4194304 values, keys counted"]);
    }

    #[test]
    fn a_line_of_exactly_the_limit_is_read() {
        let line = |len: usize| {
            let (begin, end) = ROOT.split_at(ROOT.len() - 2);
            let fill = "x".repeat(len - ROOT.len() - 6 - 1);
            format!("{begin}{{\"a\":\"{fill}\"}}{}\n", &end[1..]).replace("{{", "{")
        };
        let limit = LIMITS.max_line_bytes;
        for (len, read_it) in [(limit - 1, true), (limit, true), (limit + 1, false)] {
            let input = line(len);
            assert_eq!(input.len(), len);
            let (found, _) = read(input.as_bytes(), LIMITS);
            let expected = if read_it {
                "1 ok".to_owned()
            } else {
                format!("1 {len} bytes long with its end, more than the {limit} allowed")
            };
            assert_eq!(found, [expected]);
        }
        // Settable, and what follows a line that is too long is read.
        let limits = Limits {
            max_line_bytes: 300,
            ..LIMITS
        };
        let input = format!("{}{ROOT}\n", line(400));
        let (found, _) = read(input.as_bytes(), limits);
        assert_eq!(found[1], "2 ok");
    }

    #[test]
    fn the_total_is_capped() {
        let limits = Limits {
            max_total_bytes: 1000,
            ..LIMITS
        };
        let input = format!("{ROOT}\n").repeat(20);
        let mut reader = Reader::with_limits(input.as_bytes(), limits);
        let error = loop {
            match reader.next() {
                Ok(Some(_)) => {}
                Ok(None) => panic!("more was read than allowed"),
                Err(error) => break error,
            }
        };
        assert_eq!(error.kind(), io::ErrorKind::FileTooLarge);
    }

    #[test]
    fn a_record_tells_what_stands_there() {
        let line = ROOT
            .replace("\"parent\":null", "\"parent\":7,\"extra\":[1]")
            .replace("metadata", "meta\\u0064ata");
        let mut tape = Tape::new();
        let node = tape.read(&line, 64).unwrap();
        let record = Record::read(node, At::default()).unwrap();
        assert_eq!(record.kind(), Some(crate::agentlog::Kind::Metadata));
        assert_eq!(record.parent(), Parent::Other("7".into()));
        assert_eq!(record.extra().count(), 1);
        assert_eq!(record.content_id().ok(), record.id());
        assert_eq!(record.text(), line);
        for (ts, read) in [
            ("2026-04-24T10:00:00.000Z", true),
            ("2026-04-24T10:00:00Z", true),
            ("2026-02-30T10:00:00.000Z", false),
            ("2026-04-24T10:00:00.000+00:00", false),
            ("yesterday", false),
        ] {
            let line = ROOT.replace("2026-04-24T10:00:00.000Z", ts);
            let mut tape = Tape::new();
            let record = Record::read(tape.read(&line, 64).unwrap(), At::default()).unwrap();
            assert_eq!(record.ts().is_some(), read, "{ts}");
        }
    }
}
