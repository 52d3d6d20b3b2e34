//! An entry that is read back from its line is the entry that was written.

use quipu_model::json::Tape;
use quipu_model::{Attachment, Timestamp};

use super::{Line, read, write};
use crate::{Entry, Feed, Origin, Position, Record, Sink, run_id};

/// Everything that an entry says, in a form that can be compared.
fn says(seq: u64, at: Timestamp, position: Position, entry: &Entry<'_>) -> String {
    let event = entry.to_event(seq, at, &run_id("run"), position, "log");
    let Entry {
        at: own,
        calls,
        searches,
        service,
        as_told,
        superseded,
        voids,
        unit,
        begins_call,
        repeats,
        charge,
        when,
        active_ms,
        missed,
        repeat,
        in_run,
        ..
    } = entry;
    format!(
        "{event:?} {own:?} {calls:?} {searches:?} {service:?} {as_told} {superseded} {voids:?} {unit:?} {begins_call} \
         {repeats:?} {charge:?} {when:?} {active_ms} {missed:?} {repeat:?} {in_run:?}"
    )
}

#[derive(Default)]
struct Checking {
    tape: Tape,
    log: Vec<u8>,
    line: Line,
    /// A line that never learns of a record, so all of it is written out.
    copied: Line,
    entries: u64,
    /// How many bytes are written out, and how many are referred to.
    written: usize,
    referred: usize,
    wrong: Vec<String>,
}

/// The line with the bytes of the log in their places.
fn spliced(line: &Line, log: &[u8]) -> Vec<u8> {
    let (mut whole, mut from) = (Vec::new(), 0);
    for reference in line.references() {
        whole.extend_from_slice(&line.bytes()[from..reference.place]);
        let offset = usize::try_from(reference.offset).expect("an offset in memory");
        whole.extend_from_slice(&log[offset..][..reference.len]);
        from = reference.place;
    }
    whole.extend_from_slice(&line.bytes()[from..]);
    whole
}

impl Sink for Checking {
    fn record(&mut self, record: Option<Record<'_>>) {
        self.line.record(record);
    }

    fn entry(&mut self, seq: u64, at: Timestamp, position: Position, entry: &Entry<'_>) {
        self.entries += 1;
        write(seq, at, position, entry, &mut self.line);
        write(seq, at, position, entry, &mut self.copied);
        assert_eq!(self.copied.references(), []);
        self.written += self.line.bytes().len();
        self.referred += self.copied.bytes().len() - self.line.bytes().len();
        let line = spliced(&self.line, &self.log);
        let line = std::str::from_utf8(&line).expect("UTF-8");
        if line.as_bytes() != self.copied.bytes() {
            let copied = String::from_utf8_lossy(self.copied.bytes());
            self.wrong.push(format!("{line}\nshould be\n{copied}"));
            return;
        }
        let Some(kept) = read(line, &mut self.tape) else {
            self.wrong.push(format!("cannot be read: {line}"));
            return;
        };
        let before = says(seq, at, position, entry);
        let after = says(kept.seq, kept.at, kept.position, &kept.entry);
        if before != after {
            self.wrong.push(format!("{line}\n{before}\n{after}"));
        }
    }

    fn blob(&mut self, _attachment: &Attachment, _bytes: &[u8]) {}
}

const PIECE: usize = 10_007;

fn check(name: &str, log: &[u8], checking: &mut Checking) {
    let Some((family, dialect)) = crate::identify(log, true) else {
        return;
    };
    let origin = Origin {
        path: std::path::Path::new(name),
        part: None,
    };
    let Some(reader) = family.open(&dialect, &origin, None) else {
        return;
    };
    let mut feed = Feed::new(dialect.framing, reader);
    checking.log = log.to_vec();
    // Records that are cut by the end of a piece are put together elsewhere in memory.
    for piece in log.chunks(PIECE) {
        feed.push(piece, checking);
    }
    // How a log ends matters to others.
    drop(feed.finish(checking));
}

#[test]
fn entries_of_every_dialect_read_back() {
    let mut checking = Checking::default();
    for (name, log) in crate::fixtures::logs() {
        check(&name, &log, &mut checking);
    }
    assert!(checking.entries > 500, "{}", checking.entries);
    assert!(checking.wrong.is_empty(), "{}", checking.wrong.join("\n"));
}

#[test]
fn entries_of_real_logs_read_back() {
    let Some(root) = crate::corpus::fixtures() else {
        return;
    };
    let mut paths = Vec::new();
    crate::corpus::files(&root, &mut paths);
    let mut checking = Checking::default();
    for path in paths {
        let Ok(log) = std::fs::read(&path) else {
            continue;
        };
        if log.len() < 20 << 20 {
            check(&path.to_string_lossy(), &log, &mut checking);
        }
    }
    assert!(checking.entries > 1_000, "{}", checking.entries);
    assert!(
        checking.wrong.is_empty(),
        "{} of {}: {}",
        checking.wrong.len(),
        checking.entries,
        checking.wrong[..checking.wrong.len().min(3)].join("\n")
    );
}

/// A prompt of a Claude log.
fn prompt(id: usize, text: &str) -> String {
    format!(
        r#"{{"type":"user","uuid":"u{id}","sessionId":"s","timestamp":"2026-11-15T10:00:00Z","message":{{"role":"user","content":"{text}"}}}}"#
    ) + "\n"
}

#[test]
fn most_of_a_long_log_is_referred_to() {
    let text = "All work and no play. ".repeat(50);
    let log: String = (0..100).map(|id| prompt(id, &text)).collect();
    let mut checking = Checking::default();
    check("long", log.as_bytes(), &mut checking);
    assert_eq!(checking.entries, 100);
    assert!(checking.wrong.is_empty(), "{}", checking.wrong.join("\n"));
    assert!(
        checking.referred > 5 * checking.written,
        "{} bytes are written out and {} referred to",
        checking.written,
        checking.referred
    );
}

/// A record that was mended may come to lie where another one was before.
#[test]
fn what_was_mended_is_written_out() {
    let text = "Nothing is lost. ".repeat(20) + "?";
    let mut log = Vec::new();
    for id in 0..80 {
        let mut line = prompt(id, &text).into_bytes();
        let mark = line.iter().position(|byte| *byte == b'?').expect("a mark");
        line[mark] = [b'?', 0xff, b'?', 0][id % 4];
        log.extend(line);
    }
    let mut checking = Checking::default();
    check("mended", &log, &mut checking);
    assert_eq!(checking.entries, 80);
    assert!(checking.wrong.is_empty(), "{}", checking.wrong.join("\n"));
    let half = 40 * text.len();
    assert!(
        (half..half + 200).contains(&checking.referred),
        "{}",
        checking.referred
    );
}

#[test]
fn fields_that_nest_too_deep_read_back_as_they_would_without_a_line() {
    let mut checking = Checking::default();
    for depth in [1, 60, 115, 116, 117, 118, 119, 120, 121, 122] {
        let nested = format!("{}{}", "[".repeat(depth), "]".repeat(depth));
        let line = format!(
            r#"{{"type":"user","uuid":"u1","sessionId":"s","timestamp":"2026-11-15T10:00:00Z","strange":{nested},"message":{{"role":"user","content":"hello there"}}}}"#
        );
        check("deep", format!("{line}\n").as_bytes(), &mut checking);
    }
    assert!(checking.entries >= 10, "{}", checking.entries);
    assert!(checking.wrong.is_empty(), "{}", checking.wrong.join("\n"));
}
