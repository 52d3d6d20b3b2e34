//! Documents that are read in parts.

use quipu_model::json::Node;
use quipu_model::{Body, NoteKind};

use super::*;
use crate::{Collect, What};

/// Makes a message of each item, and notes of nothing.
#[derive(Default)]
struct Items(Session);

impl Reader for Items {
    fn record(&mut self, _record: Node<'_>, _out: &mut Out<'_>) {}

    fn lists(&self) -> &'static [&'static str] {
        &["events"]
    }

    fn part(&mut self, key: &str, index: Option<u64>, value: Node<'_>, out: &mut Out<'_>) {
        match (key, index) {
            ("id", None) => {
                self.0.id = value.as_str().map(Cow::into_owned);
                out.skip(Dropped::Empty);
            }
            ("events", Some(_)) => {
                if let Some(text) = value.text("text") {
                    out.push(Entry::new(What::User(text.into())));
                }
            }
            _ => {}
        }
    }

    fn session(&self) -> &Session {
        &self.0
    }

    fn save(&self) -> crate::state::Saved {
        crate::state::Saved::default()
    }
}

fn read(text: &[u8], piece: usize, line: usize) -> (Collect, Feed, Result<(), FeedError>) {
    let limits = Limits {
        line,
        document: 1,
        ..Limits::default()
    };
    let mut feed = Feed::new(Framing::Parts, Box::new(Items::default())).limits(limits);
    let mut sink = Collect::default();
    for piece in text.chunks(piece) {
        feed.push(piece, &mut sink);
        assert!(feed.checkpoint().is_none());
    }
    let result = feed.finish(&mut sink);
    let ledger = feed.ledger();
    let dropped: u64 = ledger.dropped.values().sum();
    assert_eq!(ledger.records, ledger.mapped + ledger.noted + dropped);
    (sink, feed, result)
}

fn words(sink: &Collect) -> Vec<String> {
    let word = |body: &Body| match body {
        Body::Note(note) => format!("note.{}", note.kind),
        body => body.type_word().to_owned(),
    };
    sink.events.iter().map(|event| word(&event.body)).collect()
}

const DOCUMENT: &str = "{\"id\":\"s1\",\n\"events\":[\n{\"text\":\"one\"},\n{\"other\":2},\n\n{\"text\":\"three\"}],\"more\":1}\n";

#[test]
fn each_item_is_a_record_with_its_place() {
    for piece in 1..DOCUMENT.len() {
        let (sink, feed, result) = read(DOCUMENT.as_bytes(), piece, 1 << 20);
        assert_eq!(result, Ok(()));
        assert_eq!(feed.session().id.as_deref(), Some("s1"));
        let expected = [
            "message.user",
            "note.unknown_record",
            "message.user",
            "note.unknown_record",
        ];
        assert_eq!(words(&sink), expected);
        assert_eq!(feed.ledger().records, 5);
        for event in &sink.events {
            let source = event.annotations.source.as_ref().unwrap();
            let at = usize::try_from(source.offset).unwrap();
            assert!(DOCUMENT[at..].starts_with(['{', '1']));
            let line = DOCUMENT[..at].matches('\n').count() as u64 + 1;
            assert_eq!(source.line, line);
        }
    }
}

#[test]
fn what_is_too_long_or_broken_is_counted_and_the_rest_is_read() {
    let (sink, feed, result) = read(DOCUMENT.as_bytes(), 7, 15);
    assert_eq!(result, Ok(()));
    assert_eq!(feed.ledger().dropped[&Dropped::TooLong], 1);
    assert_eq!(sink.events.len(), 3);

    let broken = DOCUMENT.replace("{\"other\":2}", "{\"other\":tru}");
    let (sink, _, result) = read(broken.as_bytes(), 7, 1 << 20);
    assert_eq!(result, Ok(()));
    assert_eq!(words(&sink)[1], format!("note.{}", NoteKind::MalformedLine));
    assert_eq!(sink.events.len(), 4);

    let (sink, _, result) = read(b"{\"events\":[{\"text\":\"x\"} 1]}", 3, 1 << 20);
    let said = "not a JSON document: expected ',' or ']' at byte 24";
    assert_eq!(result.unwrap_err().to_string(), said);
    assert_eq!(words(&sink), ["message.user", "note.malformed_line"]);
}

#[test]
fn a_document_that_is_cut_off_gives_what_is_there() {
    for end in 0..DOCUMENT.trim_end().len() {
        let (sink, feed, result) = read(&DOCUMENT.as_bytes()[..end], 5, 1 << 20);
        assert!(matches!(result, Err(FeedError::NotJson(_))), "{end}");
        assert_eq!(feed.ledger().dropped[&Dropped::TornTail], 1);
        assert!(sink.events.len() <= 4);
    }
}
