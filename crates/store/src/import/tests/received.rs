//! Transcripts that others submitted.

use std::fs;

use std::path::Path;
use std::sync::Arc;

use jiff::tz::TimeZone;
use quipu_convert::{Format, TargetOptions};
use quipu_formats::projection::Nowhere;
use quipu_model::Timestamp;
use quipu_prices::Prices;
use quipu_record::SystemClock;
use quipu_search::query::{Clock, Query};
use quipu_submit::server::{Disk, Request, Service, Taken};
use quipu_submit::testkit::{fresh_id, transcript};
use quipu_submit::{EngineScan, KeyStore, Receipt, SecretKey, TranscriptId};

use super::kit::{Machine, prompt, reply, rows, write};
use crate::Store;
use crate::catalogue::{Filter, Order, Received, TranscriptRow};
use crate::import::ImportError;
use crate::search::{Ask, Show, Sort};
use crate::stats::Question;

fn now() -> Timestamp {
    "2026-11-15T12:00:00Z".parse().unwrap()
}

/// What a server does when it hears of something.
struct Follows(Store);

impl Taken for Follows {
    fn kept(&self, receipt: &Receipt, document: Option<&Path>) {
        assert!(document.unwrap().is_file());
        let report = self
            .0
            .receive_submission(&receipt.transcript_id, now())
            .unwrap();
        assert_eq!((report.read, report.problems.len()), (1, 0), "{report:?}");
    }

    fn removed(&self, id: &TranscriptId) {
        assert!(self.0.forget_received(id, now()).unwrap());
    }
}

struct Server {
    service: Service<Disk, SystemClock>,
    key: SecretKey,
}

impl Server {
    /// A server whose store hears of what becomes of transcripts, or not.
    fn new(store: &Store, follows: bool) -> Self {
        let keys = KeyStore::at(store.home().join("keys.jsonl"));
        let (_, key) = keys.create("test", &SystemClock).unwrap();
        let engine = quipu_redact::Engine::new(&quipu_redact::RuleSet::default(), |_| true);
        let scan = Box::new(EngineScan::for_secrets(engine.unwrap()));
        let disk = Disk::open(&store.submissions()).unwrap();
        let mut service = Service::new(disk, SystemClock, Box::new(keys), scan);
        if follows {
            service = service.with_taken(Box::new(Follows(store.clone())));
        }
        Self { service, key }
    }

    fn ask(&self, method: &str, id: &TranscriptId, mut body: &[u8]) -> u16 {
        let digest = crate::address::Digest::of(body).to_string();
        let headers = [
            ("Authorization", format!("Bearer {}", self.key.expose())),
            ("Content-Type", "application/json".to_owned()),
            ("Transcript-Sha256", digest),
        ];
        let headers = headers.map(|(name, value)| (name.to_owned(), value));
        let request = Request {
            method,
            path: &format!("/v1/transcripts/{id}"),
            headers: &headers,
            body: &mut body,
        };
        self.service.handle(request).status
    }

    /// Submits a transcript in which something is said, of a session of this id.
    fn submit(&self, said: &str, session: Option<&str>) -> (TranscriptId, Vec<u8>) {
        let id = fresh_id().unwrap();
        let document = transcript(&id, &self.key.submitter(false), said);
        let mut value: serde_json::Value = serde_json::from_slice(&document).unwrap();
        if let Some(session) = session {
            value["source"]["sessionId"] = session.into();
        }
        let usage = serde_json::json!({"input": 1_000_000, "output": 500_000});
        value["metrics"]["tokens"] = usage.clone();
        value["events"][1]["model"] = "claude-opus-4-1".into();
        value["events"][1]["usage"] = usage;
        let document = serde_json::to_vec_pretty(&value).unwrap();
        assert_eq!(self.ask("PUT", &id, &document), 201);
        (id, document)
    }
}

fn theirs(store: &Store) -> Vec<TranscriptRow> {
    let filter = Filter {
        received: Received::Only,
        subagents: true,
        duplicates: true,
        ..Filter::default()
    };
    store
        .catalogue()
        .list(&filter, Order::Oldest, None)
        .unwrap()
}

fn tokens(store: &Store, received: Received) -> u64 {
    let filter = Filter {
        received,
        ..Filter::default()
    };
    let table = store.stats(&Question {
        filter: &filter,
        directories: None,
        by: &[],
        zone: &TimeZone::UTC,
        prices: &Prices::builtin(),
    });
    let spent = table.unwrap().total.spent;
    spent.map_or(0, |spent| spent.tokens.total())
}

fn found(store: &Store, words: &str) -> usize {
    let clock = Clock {
        now: now(),
        zone: TimeZone::UTC,
    };
    let ask = Ask {
        query: &Query::parse(words, &clock).unwrap(),
        sort: Sort::Relevance,
        limit: 20,
        context: 0,
        copies: false,
        snippet: 80,
        guard: Show::default(),
    };
    store.search(&ask, &Prices::builtin()).unwrap().found.len()
}

#[test]
fn a_submission_is_listed_searched_shown_and_exported_until_it_is_deleted() {
    let machine = Machine::new();
    let log = prompt("own-session", "1", "hello") + &reply("own-session", "2", "hi");
    write(&machine.session("own-session.jsonl"), log);
    let store = machine.store();
    machine.import(&store);
    let own = tokens(&store, Received::AsUsual);
    assert_eq!(own, 15);

    let server = Server::new(&store, true);
    let (id, document) = server.submit("quokkas everywhere", None);
    let listed = theirs(&store);
    let [row] = listed.as_slice() else {
        panic!("{listed:?}");
    };
    assert_eq!(row.received_from, Some(server.key.pseudonym()));
    assert_eq!(row.received_key, Some(server.key.id().to_string()));
    assert_eq!(row.agent, "claude-code");
    assert!(
        row.run_id.ends_with(&server.key.pseudonym()),
        "{}",
        row.run_id
    );
    assert_eq!(store.find(&id.as_str()[..13]).unwrap().id, row.id);
    assert_eq!(rows(&store).len(), 2, "lists have it");
    assert_eq!(store.find("last").unwrap().received_from, None);
    assert_eq!(found(&store, "quokkas"), 1);
    let shown = store.read(row.clone()).unwrap();
    assert!(format!("{:?}", shown.events).contains("quokkas everywhere"));
    // What others spent is not one's own.
    assert_eq!(tokens(&store, Received::AsUsual), own);
    assert_eq!(tokens(&store, Received::With), own + 1_500_000);
    assert_eq!(tokens(&store, Received::Only), 1_500_000);
    let from = |who: &str| tokens(&store, Received::From(who.to_owned()));
    assert_eq!(from(&server.key.pseudonym()[..9]), 1_500_000);
    assert_eq!(from("anon_nobody"), 0);
    // The accepted bytes, from the archive.
    assert_eq!(exported(&store, row), document);

    // A catalogue that is made again knows whose it is.
    let (store, _) = machine.rebuild(store);
    let again = theirs(&store);
    assert_eq!(again.len(), 1);
    assert_eq!(again[0].received_from, Some(server.key.pseudonym()));
    assert_eq!(again[0].run_id, row.run_id);
    assert_eq!(store.follow_submissions(now()).unwrap().received, 0);

    let server = Server {
        key: server.key,
        ..Server::new(&store, true)
    };
    assert_eq!(server.ask("DELETE", &id, b""), 200);
    assert_eq!(theirs(&store).len(), 0);
    assert_eq!(found(&store, "quokkas"), 0);
    assert_eq!(found(&store, "hello"), 1);
    assert!(store.find(id.as_str()).is_err());
    drop(server);
    nowhere(store.home(), b"quokkas");
    let (store, _) = machine.rebuild(store);
    assert_eq!(theirs(&store).len(), 0, "it does not come back");
    assert_eq!(store.follow_submissions(now()).unwrap().received, 0);
}

/// What an export in its own format gives.
fn exported(store: &Store, row: &TranscriptRow) -> Vec<u8> {
    let prices = Arc::new(Prices::builtin());
    let mut source = store.export(row, &prices).unwrap();
    let mut out = Vec::new();
    quipu_convert::write(
        &mut *source,
        Format::Normalized,
        &TargetOptions::default(),
        Box::new(&mut out),
        Box::new(Nowhere),
    )
    .unwrap();
    out
}

/// That these bytes are in no file, also not compressed.
fn nowhere(directory: &Path, text: &[u8]) {
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            nowhere(&path, text);
            continue;
        }
        let bytes = fs::read(&path).unwrap();
        let mut plain = Vec::new();
        drop(zstd::stream::copy_decode(&bytes[..], &mut plain));
        for bytes in [bytes, plain] {
            let has = bytes.windows(text.len()).any(|part| part == text);
            assert!(!has, "{}", path.display());
        }
    }
}

#[test]
fn a_submission_takes_nothing_from_ones_own_sessions() {
    let machine = Machine::new();
    let log = prompt("own-session", "1", "hello") + &reply("own-session", "2", "hi");
    write(&machine.session("own-session.jsonl"), log);
    let store = machine.store();
    machine.import(&store);
    let before = store.find("own-session").unwrap();
    let server = Server::new(&store, true);
    // It says that it is that session, and has more to tell.
    server.submit("mine now", Some("own-session"));
    let other = Server::new(&store, true);
    other.submit("no, mine", Some("own-session"));
    let after = store.find("own-session").unwrap();
    assert_eq!((after.id, after.duplicate), (before.id, false));
    assert_eq!((after.copied_events, after.copy_of), (0, None));
    assert_eq!(tokens(&store, Received::AsUsual), 15);
    let all = theirs(&store);
    assert_eq!(all.len(), 2);
    assert!(
        all.iter()
            .all(|row| !row.duplicate && row.native != "own-session")
    );
    // The same submitter again: this is a copy, as of any log.
    server.submit("mine now", Some("own-session"));
    assert_eq!(theirs(&store).len(), 3);
}

#[test]
fn what_was_missed_is_caught_up_with() {
    let machine = Machine::new();
    let store = machine.store();
    let server = Server::new(&store, false);
    assert_eq!(store.follow_submissions(now()).unwrap().received, 0);
    let (first, _) = server.submit("one quokka", None);
    let (second, _) = server.submit("two quokkas", None);
    assert_eq!(theirs(&store).len(), 0, "nobody told it");
    let done = store.follow_submissions(now()).unwrap();
    assert_eq!((done.received, done.forgotten, done.unreadable), (2, 0, 0));
    assert_eq!(done.problems.len(), 0, "{done:?}");
    assert_eq!(theirs(&store).len(), 2);
    assert_eq!(server.ask("DELETE", &first, b""), 200);
    assert_eq!(theirs(&store).len(), 2);
    let done = store.follow_submissions(now()).unwrap();
    assert_eq!((done.received, done.forgotten), (0, 1));
    assert_eq!(theirs(&store).len(), 1);
    assert_eq!(found(&store, "quokka"), 0);
    assert_eq!(found(&store, "quokkas"), 1);
    // A home that was moved knows what it has.
    drop(server);
    let moved = machine.directory.path().join("moved");
    let from = store.home().to_owned();
    drop(store);
    fs::rename(from, &moved).unwrap();
    let store = Store::open(&moved).unwrap();
    assert_eq!(store.follow_submissions(now()).unwrap().received, 0);
    assert!(store.forget_received(&second, now()).unwrap());
    assert!(!store.forget_received(&second, now()).unwrap());
    assert_eq!(theirs(&store).len(), 0);
}

#[test]
fn nobody_waits_while_an_import_is_at_work_and_what_it_missed_is_caught_up_with() {
    let machine = Machine::new();
    let store = machine.store();
    let server = Server::new(&store, false);
    let (first, _) = server.submit("one quokka", None);
    assert_eq!(store.follow_submissions(now()).unwrap().received, 1);
    let (second, _) = server.submit("two quokkas", None);
    let held = crate::import::lock(store.home()).unwrap();
    let begun = std::time::Instant::now();
    let busy = store.receive_submission(&second, now());
    assert!(matches!(busy, Err(ImportError::Busy(_))), "{busy:?}");
    assert_eq!(server.ask("DELETE", &first, b""), 200);
    for id in [&first, &second] {
        let busy = store.forget_received(id, now());
        assert!(matches!(busy, Err(ImportError::Busy(_))), "{busy:?}");
    }
    assert!(begun.elapsed() < std::time::Duration::from_secs(5));
    // Whoever is patient is there when it ends.
    let patient = store.another().unwrap();
    let follows = std::thread::spawn(move || patient.follow_submissions(now()).unwrap());
    std::thread::sleep(std::time::Duration::from_millis(100));
    drop(held);
    let done = follows.join().unwrap();
    assert_eq!((done.received, done.forgotten), (1, 1), "{done:?}");
}
