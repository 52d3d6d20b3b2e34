//! Following transcripts, whoever adds to them.

use std::time::{Duration, Instant};

use quipu_model::Event;

use super::{file, long, machine};
use crate::Store;
use crate::catalogue::TranscriptRow;
use crate::events::{EventFollower, Followed};
use crate::import::tests::kit::*;

fn follow(store: &Store, row: &TranscriptRow, from: u64) -> EventFollower {
    store.events(row).unwrap().follow(from).unwrap()
}

/// All that there is: events as a consumer has them who does what he is told.
fn take(follower: &mut EventFollower, events: &mut Vec<Event>) -> Vec<Followed> {
    let mut told = Vec::new();
    while let Some(news) = follower.try_next().unwrap() {
        match news {
            Followed::Events(more) => events.extend(more),
            Followed::Again { from } => {
                events.retain(|event| event.seq < from);
                told.push(Followed::Again { from });
            }
            other => told.push(other),
        }
    }
    told
}

#[test]
fn a_session_is_followed_from_any_event_on_while_imports_add_to_it() {
    let (machine, store) = machine();
    let row = rows(&store).remove(0);
    let mut events = Vec::new();
    let mut follower = follow(&store, &row, 1_190);
    assert_eq!(take(&mut follower, &mut events), []);
    assert_eq!(events.len(), 11);
    assert_eq!(follower.try_next().unwrap(), None);
    // By another process, as far as the follower can tell.
    let other = machine.store();
    for begin in [600, 601, 640, 900] {
        let end = begin + if begin == 640 { 260 } else { 1 };
        append(&machine.session("s1.jsonl"), long(begin..end));
        machine.import(&other);
        assert_eq!(take(&mut follower, &mut events), []);
    }
    let now = store.read(rows(&store).remove(0)).unwrap().events;
    let expected: Vec<u64> = (1_190..=now.len() as u64).collect();
    let seqs: Vec<u64> = events.iter().map(|event| event.seq).collect();
    assert_eq!(seqs, expected);
    assert_eq!(events, now[1_189..]);
}

#[test]
fn following_begins_without_the_events_before() {
    let (_machine, store) = machine();
    let row = rows(&store).remove(0);
    let whole = store.read(row.clone()).unwrap().events;
    let path = file(&store, &row);
    let kept = crate::events::Events::of(store.home())
        .open(&row.key)
        .unwrap();
    let last = usize::try_from(kept.tail().blocks.last().unwrap().offset).unwrap();
    let mut bytes = std::fs::read(&path).unwrap();
    bytes[usize::try_from(crate::events::file::HEAD).unwrap()..last].fill(0);
    write(&path, &bytes);
    // Opened for an event of the last block: what is damaged is not looked at.
    let log = store.kept().open(&row, &(1_195..=1_195)).unwrap();
    let mut events = Vec::new();
    take(&mut log.follow(1_195).unwrap(), &mut events);
    assert_eq!(events, whole[1_194..]);
}

#[test]
fn waiting_ends_when_an_import_adds_events() {
    let (machine, store) = machine();
    let row = rows(&store).remove(0);
    let mut follower = follow(&store, &row, 1_201);
    assert_eq!(
        follower.recv_timeout(Duration::from_millis(30)).unwrap(),
        None
    );
    let importer = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(50));
        append(&machine.session("s1.jsonl"), long(600..601));
        machine.import(&machine.store());
        machine
    });
    let begun = Instant::now();
    let news = follower.recv_timeout(Duration::from_secs(20)).unwrap();
    assert!(matches!(news, Some(Followed::Events(events)) if events[0].seq == 1_201));
    assert!(begun.elapsed() < Duration::from_secs(15));
    importer.join().unwrap();
}

#[test]
fn a_log_that_is_written_anew_is_given_again_and_one_that_is_pruned_is_gone() {
    let (machine, store) = machine();
    let row = rows(&store).remove(0);
    let mut events = Vec::new();
    let mut follower = follow(&store, &row, 1);
    assert_eq!(take(&mut follower, &mut events), []);
    assert_eq!(events.len(), 1_200);
    // Shorter, and otherwise the same.
    write(&machine.session("s1.jsonl"), long(0..590));
    machine.import(&store);
    assert_eq!(
        take(&mut follower, &mut events),
        [Followed::Again { from: 1_181 }]
    );
    let now = store.read(rows(&store).remove(0)).unwrap().events;
    assert_eq!(events, now);
    // Something else altogether.
    write(
        &machine.session("s1.jsonl"),
        prompt("s1", "other", "another"),
    );
    machine.import(&store);
    assert_eq!(
        take(&mut follower, &mut events),
        [Followed::Again { from: 1 }]
    );
    assert_eq!(events, store.read(rows(&store).remove(0)).unwrap().events);
    let holdings = store.holdings(rows(&store)).unwrap();
    store.prune(&holdings, options().now).unwrap();
    assert_eq!(take(&mut follower, &mut events), [Followed::Gone]);
    assert_eq!(take(&mut follower, &mut events), []);
}

#[test]
fn the_end_of_a_log_that_reads_otherwise_later_is_given_again() {
    let machine = Machine::new();
    let path = machine.session("s1.jsonl");
    let line = reply("s1", "a1", "the whole of it");
    let (half, rest) = line.split_at(line.len() / 2);
    write(&path, prompt("s1", "u1", "ask") + half);
    let store = machine.store();
    machine.import(&store);
    let row = rows(&store).remove(0);
    let mut events = Vec::new();
    let mut follower = follow(&store, &row, 1);
    take(&mut follower, &mut events);
    for more in [rest.to_owned(), long(1..3)] {
        append(&path, more);
        machine.import(&store);
        take(&mut follower, &mut events);
        assert_eq!(events, store.read(rows(&store).remove(0)).unwrap().events);
    }
}

#[test]
fn pages_are_read_while_the_log_grows_is_rewritten_and_is_pruned() {
    let (machine, store) = machine();
    let row = rows(&store).remove(0);
    let stop = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        let reader = scope.spawn(|| {
            let own = machine.store();
            let (mut pages, mut refused) = (0_u64, 0_u64);
            while !stop.load(std::sync::atomic::Ordering::SeqCst) {
                for from in [1, 5, 333] {
                    match own.page(&row, from, 40) {
                        Ok(page) => {
                            let seqs = page.events.iter().map(|event| event.seq);
                            assert!(seqs.eq(from..from + page.events.len() as u64));
                            pages += 1;
                        }
                        Err(_) => refused += 1,
                    }
                }
            }
            (pages, refused)
        });
        for round in 0..4 {
            for n in 0..6 {
                append(&machine.session("s1.jsonl"), long(600 + n..601 + n));
                machine.import(&store);
            }
            write(&machine.session("s1.jsonl"), long(0..400 + round));
            machine.import(&store);
        }
        stop.store(true, std::sync::atomic::Ordering::SeqCst);
        let (pages, refused) = reader.join().unwrap();
        assert!(pages > 10, "{pages}");
        assert_eq!(refused, 0, "nothing was pruned yet");
    });
    let holdings = store.holdings(rows(&store)).unwrap();
    let open = store.events(&row).unwrap();
    store.prune(&holdings, options().now).unwrap();
    assert_eq!(open.page(1, 40, &|_| true).unwrap().events.len(), 40);
    let said = store.page(&row, 1, 40).unwrap_err().to_string();
    assert!(said.contains("s1.jsonl"), "{said}");
}
