//! Events come from the event log as the adapter made them, whatever happened to the log or the file meanwhile.

use std::fs;
use std::path::{Path, PathBuf};

use quipu_agents::Collect;
use quipu_model::Event;

use super::{ALL, Events};
use crate::Store;
use crate::catalogue::TranscriptRow;
use crate::import::tests::kit::*;
use crate::transcript::{Bytes, read_again, snapshot};

mod follow;

/// What the adapter makes of what is kept of a log.
fn as_adapted(store: &Store, row: &TranscriptRow) -> Vec<Event> {
    let run_id = quipu_agents::run_id(&row.run_id);
    let mut collect = Collect::new(run_id, &row.path.to_string_lossy());
    let snapshot = snapshot(store.archive(), row).unwrap();
    let bytes = Bytes::Archived(&snapshot);
    let about = read_again(store.archive(), row, &bytes, &mut collect).unwrap();
    let mut marks = quipu_agents::Marks::default();
    // The marks of a collection are its own; those of a second reading are the same.
    let mut observe = Observe(&mut marks);
    read_again(store.archive(), row, &bytes, &mut observe).unwrap();
    about.close(&mut marks);
    let mut events = collect.events;
    for event in &mut events {
        marks.mark(event);
    }
    events
}

struct Observe<'m>(&'m mut quipu_agents::Marks);

impl quipu_agents::Sink for Observe<'_> {
    fn entry(
        &mut self,
        _seq: u64,
        _at: quipu_model::Timestamp,
        _position: quipu_agents::Position,
        entry: &quipu_agents::Entry<'_>,
    ) {
        self.0.observe(entry);
    }
}

fn by_pages(store: &Store, row: &TranscriptRow, most: usize) -> Vec<Event> {
    let mut events = Vec::new();
    loop {
        let page = store.page(row, events.len() as u64 + 1, most).unwrap();
        assert!(page.events.len() <= most);
        if page.events.is_empty() {
            assert_eq!(page.len, events.len() as u64);
            return events;
        }
        events.extend(page.events);
    }
}

fn file(store: &Store, row: &TranscriptRow) -> PathBuf {
    Events::of(store.home()).path(&row.key)
}

#[test]
fn pages_and_the_whole_are_what_adapters_make() {
    let machine = Machine::new();
    let store = machine.store();
    import_corpus(&machine, &store);
    let rows = rows(&store);
    assert!(rows.len() > 60, "{}", rows.len());
    for row in rows {
        let expected = as_adapted(&store, &row);
        assert!(file(&store, &row).is_file(), "{}", row.path.display());
        assert_eq!(
            by_pages(&store, &row, 7),
            expected,
            "{}",
            row.path.display()
        );
        let whole = store.read(row).unwrap();
        assert_eq!(whole.events, expected);
    }
}

fn long(lines: std::ops::Range<usize>) -> String {
    let pair = |n: usize| {
        prompt("s1", &format!("u{n}"), "ask")
            + &reply("s1", &format!("a{n}"), &"word ".repeat(n % 90))
    };
    lines.map(pair).collect()
}

/// A session of 1,200 events.
fn machine() -> (Machine, Store) {
    let machine = Machine::new();
    write(&machine.session("s1.jsonl"), long(0..600));
    let store = machine.store();
    machine.import(&store);
    (machine, store)
}

#[test]
fn a_log_that_grows_by_any_steps_has_the_events_of_one_that_is_read_at_once() {
    let whole = long(0..600);
    for step in [9_000, 30_001, 111_111] {
        let machine = Machine::new();
        let path = machine.session("s1.jsonl");
        write(&path, "");
        let store = machine.store();
        for piece in whole.as_bytes().chunks(step) {
            append(&path, piece);
            machine.import(&store);
            let row = rows(&store).remove(0);
            assert_eq!(
                store.read(row.clone()).unwrap().events,
                as_adapted(&store, &row)
            );
        }
        let row = rows(&store).remove(0);
        assert_eq!(by_pages(&store, &row, 250).len(), 1_200);
        let (_other, at_once) = self::machine();
        let (grown, at_once) = (
            fs::metadata(file(&store, &row)).unwrap().len(),
            fs::metadata(file(&at_once, &rows(&at_once)[0]))
                .unwrap()
                .len(),
        );
        assert!(grown < at_once * 2 + (256 << 10), "{grown} and {at_once}");
    }
}

#[test]
fn a_page_is_read_without_the_events_before_it() {
    let (_machine, store) = machine();
    let row = rows(&store).remove(0);
    let whole = store.read(row.clone()).unwrap().events;
    let path = file(&store, &row);
    // All but the last block is lost, and nobody notices who does not look at it.
    let kept = Events::of(store.home()).open(&row.key).unwrap();
    let last = kept.tail().blocks.last().unwrap().offset;
    let mut bytes = fs::read(&path).unwrap();
    let first = usize::try_from(super::file::HEAD).unwrap();
    bytes[first..usize::try_from(last).unwrap()].fill(0);
    write(&path, &bytes);
    assert_eq!(store.page(&row, 1_190, 20).unwrap().events, whole[1_189..]);
}

#[test]
fn events_that_are_deleted_or_damaged_are_made_again() {
    let (machine, store) = machine();
    let row = rows(&store).remove(0);
    let path = file(&store, &row);
    let whole = store.read(row.clone()).unwrap().events;
    let sound = fs::read(&path).unwrap();

    fs::remove_file(&path).unwrap();
    assert_eq!(store.read(row.clone()).unwrap().events, whole);
    assert!(path.is_file(), "reading made them again");
    fs::remove_file(&path).unwrap();
    machine.import(&store);
    assert!(path.is_file(), "an import made them again");

    for at in (0..sound.len()).step_by(sound.len() / 97) {
        let mut damaged = sound.clone();
        damaged[at] ^= 0x20;
        write(&path, &damaged);
        assert_eq!(store.read(row.clone()).unwrap().events, whole, "byte {at}");
    }
    for len in (0..sound.len()).step_by(sound.len() / 61) {
        write(&path, &sound[..len]);
        assert_eq!(
            store.read(row.clone()).unwrap().events,
            whole,
            "{len} bytes"
        );
    }
}

#[test]
fn what_a_killed_import_left_does_no_harm() {
    let (machine, store) = machine();
    let row = rows(&store).remove(0);
    let path = file(&store, &row);
    // Blocks behind the current tail, and no tail behind them.
    append(&path, [7; 5_000]);
    let before = store.read(row.clone()).unwrap().events;
    assert_eq!(before.len(), 1_200);
    append(&machine.session("s1.jsonl"), long(600..700));
    machine.import(&store);
    let row = rows(&store).remove(0);
    assert_eq!(
        store.read(row.clone()).unwrap().events,
        as_adapted(&store, &row)
    );
    // The log was kept, and the import ended before its events were.
    append(&machine.session("s1.jsonl"), long(700..710));
    let (archive, kept) = (store.archive(), snapshot(store.archive(), &row).unwrap());
    let mut writer = archive.grow(&kept).unwrap();
    writer.write(long(700..710).as_bytes()).unwrap();
    writer.finish(options().now, None, None).unwrap();
    // What the catalogue knows is read, as while the import is at work.
    assert_eq!(store.read(row.clone()).unwrap().events.len(), 1_400);
    machine.import(&store);
    let row = rows(&store).remove(0);
    assert_eq!(
        store.read(row.clone()).unwrap().events,
        as_adapted(&store, &row)
    );
}

#[test]
fn whoever_reads_meanwhile_reads_what_was_there() {
    let (machine, store) = machine();
    let row = rows(&store).remove(0);
    let read = |kept: &super::EventLog| kept.events(ALL).unwrap().len();
    let before = store.kept().open(&row, &ALL).unwrap();
    append(&machine.session("s1.jsonl"), long(600..650));
    machine.import(&store);
    assert_eq!((read(&before), before.len().unwrap()), (1_200, 1_200));
    let grown = store.kept().open(&rows(&store)[0], &ALL).unwrap();
    assert_eq!(grown.len().unwrap(), 1_300);
    // Rewritten by its agent.
    write(&machine.session("s1.jsonl"), long(0..10));
    machine.import(&store);
    assert_eq!((read(&before), read(&grown)), (1_200, 1_300));
    assert_eq!(
        store
            .kept()
            .open(&rows(&store)[0], &ALL)
            .unwrap()
            .len()
            .unwrap(),
        20
    );
    // Forgotten.
    let holdings = store.holdings(rows(&store)).unwrap();
    let path = file(&store, &rows(&store)[0]);
    store.prune(&holdings, options().now).unwrap();
    assert!(!path.exists());
    assert_eq!(read(&grown), 1_300);
}

#[test]
fn damage_to_what_events_refer_to_is_said_and_names_the_log() {
    let (machine, store) = machine();
    let row = rows(&store).remove(0);
    let whole = store.read(row.clone()).unwrap().events;
    let events = fs::read(file(&store, &row)).unwrap();
    let chunks = files_below(&store.home().join("archive/chunks"));
    assert_eq!(chunks.len(), 1);
    let sound = fs::read(&chunks[0]).unwrap();

    let refused = |store: &Store| {
        let error = store.read(row.clone()).unwrap_err().to_string();
        assert!(error.contains("s1.jsonl"), "{error}");
        assert!(error.contains("import --rebuild"), "{error}");
    };
    let mut damaged = sound.clone();
    let middle = damaged.len() / 2;
    damaged[middle] ^= 1;
    write(&chunks[0], &damaged);
    refused(&store);
    fs::remove_file(&chunks[0]).unwrap();
    refused(&store);
    assert_eq!(
        fs::read(file(&store, &row)).unwrap(),
        events,
        "they are not to blame"
    );

    // The log is still there, and is kept again.
    let (store, _) = machine.rebuild(store);
    let row = rows(&store).remove(0);
    assert_eq!(store.read(row).unwrap().events, whole);
}

fn files_below(directory: &Path) -> Vec<PathBuf> {
    let folders = fs::read_dir(directory).unwrap();
    folders
        .flat_map(|folder| fs::read_dir(folder.unwrap().path()).unwrap())
        .map(|file| file.unwrap().path())
        .collect()
}

#[test]
fn events_do_not_repeat_long_texts() {
    let machine = Machine::new();
    let texts = (0..200).map(|n| reply("s1", &format!("a{n}"), &long_text(n)));
    write(&machine.session("s1.jsonl"), texts.collect::<String>());
    let store = machine.store();
    machine.import(&store);
    let row = rows(&store).remove(0);
    let (events, log) = (
        fs::metadata(file(&store, &row)).unwrap().len(),
        fs::metadata(machine.session("s1.jsonl")).unwrap().len(),
    );
    assert!(
        events * 20 < log,
        "{events} bytes of events for a log of {log}"
    );
    assert_eq!(by_pages(&store, &row, 50), as_adapted(&store, &row));
}

/// Words in an order that does not compress well.
fn long_text(seed: usize) -> String {
    let words = (0..400).map(|n| (seed * 7919 + n * n * 104_729) % 99_991);
    words.map(|word| word.to_string() + " ").collect()
}

/// A recorded run with a call that has no result, one that has, and a line that is not an event.
fn recorded(machine: &Machine) -> Store {
    let line = |seq: u64, kind: &str, payload: &str| {
        format!(
            r#"{{"seq":{seq},"run_id":"r1","type":"{kind}","path":"","iteration":0,"timestamp":"2026-06-08T08:14:40Z","payload":{payload}}}"#
        ) + "\n"
    };
    let call = |seq: u64, id: &str| {
        let payload =
            format!(r#"{{"name":"Bash","call_id":"{id}","input":{{}},"fidelity":"router"}}"#);
        line(seq, "tool.call", &payload)
    };
    let result = |seq: u64, id: &str| {
        let payload =
            format!(r#"{{"name":"Bash","call_id":"{id}","output":"ok","fidelity":"router"}}"#);
        line(seq, "tool.result", &payload)
    };
    let mut text = call(1, "c1") + &call(2, "c2") + "not an event\n" + &result(3, "c2");
    text += &call(4, "c3");
    for seq in 5..600 {
        let payload =
            r#"{"role":"user","blocks":[{"type":"text","fidelity":"router","text":"go on"}]}"#;
        text += &line(seq, "message.user", payload);
    }
    text += &result(600, "c3");
    let store = machine.store();
    write(&store.home().join("transcripts/r1.jsonl"), text);
    store.refresh_runs().unwrap();
    store
}

#[test]
fn pages_of_a_run_count_what_is_not_an_event_and_mark_calls_without_a_result() {
    let machine = Machine::new();
    let store = recorded(&machine);
    let row = rows(&store).remove(0);
    assert_eq!(row.figures.dangling, 1);
    let log = store.events(&row).unwrap();
    let dangling = |events: &[Event]| -> Vec<u64> {
        let marked = events.iter().filter(|it| it.annotations.flags.dangling);
        marked.map(|event| event.seq).collect()
    };
    for most in [1, 3, 7, 300, 1_000] {
        let (mut seqs, mut marked, mut bad, mut from) = (Vec::new(), Vec::new(), 0, 1);
        while from <= log.len().unwrap() {
            let page = log.page(from, most, &|_| true).unwrap();
            seqs.extend(page.events.iter().map(|event| event.seq));
            marked.extend(dangling(&page.events));
            bad += page.bad;
            from += page.events.len() as u64;
        }
        assert_eq!(seqs, (1..=600).collect::<Vec<u64>>());
        assert_eq!((marked, bad), (vec![1], 1), "{most} at a time");
    }
    // As of one that was imported.
    let other = machine.store_named("other");
    let path = store.home().join("transcripts/r1.jsonl");
    let imported = other.import_paths(
        &machine.host(),
        &[path],
        &options(),
        &crate::import::Progress::default(),
    );
    assert_eq!(imported.unwrap().problems.len(), 0);
    let row = rows(&other).remove(0);
    assert!(!row.recorded);
    let events = other.read(row).unwrap().events;
    let calls = events.iter().filter(|it| it.annotations.flags.dangling);
    assert!(
        calls
            .map(|it| &it.body)
            .all(|body| matches!(body, quipu_model::Body::ToolCall(call) if call.call_id == "c1"))
    );
    assert_eq!(dangling(&events).len(), 1);
}
