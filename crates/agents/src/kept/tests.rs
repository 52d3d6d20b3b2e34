//! An entry that is read back from its line is the entry that was written.

use quipu_model::json::Tape;
use quipu_model::{Attachment, Timestamp};

use super::{read, write};
use crate::{Entry, Feed, Origin, Position, Sink, run_id};

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
    line: Vec<u8>,
    entries: u64,
    wrong: Vec<String>,
}

impl Sink for Checking {
    fn entry(&mut self, seq: u64, at: Timestamp, position: Position, entry: &Entry<'_>) {
        self.entries += 1;
        self.line.clear();
        write(seq, at, position, entry, &mut self.line);
        let line = std::str::from_utf8(&self.line).expect("UTF-8");
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
    feed.push(log, checking);
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
