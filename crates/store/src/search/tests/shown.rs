//! For every log that there is: what a hit shows is what was put into the index, and what is exported is what is read.

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;

use quipu_agents::{Entry, Position, Sink};
use quipu_convert::source::Receiver;
use quipu_model::{Attachment, Event, Timestamp};
use quipu_prices::Prices;
use quipu_redact::Guard;
use quipu_search::words;

use super::{Show, Sort, query};
use crate::Store;
use crate::catalogue::TranscriptRow;
use crate::hide::Hide;
use crate::import::tests::kit::*;
use crate::search::document::{EventText, PIECE};
use crate::search::{Ask, window};
use crate::transcript::{Bytes, read_again, snapshot};

/// What is put into the index when a log is imported, by event.
struct Indexed {
    hide: Hide,
    said: EventText,
    texts: BTreeMap<u64, String>,
}

impl Sink for Indexed {
    fn entry(&mut self, seq: u64, at: Timestamp, _position: Position, entry: &Entry<'_>) {
        let entry = self.hide.entry(entry);
        let texts = &mut self.texts;
        self.said.documents(&entry, seq, at, 0, |document| {
            texts.entry(seq).or_default().push_str(&document.text);
        });
    }
}

fn indexed(store: &Store, row: &TranscriptRow, guard: &Arc<Guard>) -> BTreeMap<u64, String> {
    let mut indexed = Indexed {
        hide: Hide::new(guard),
        said: EventText::guarded(guard),
        texts: BTreeMap::new(),
    };
    let snapshot = snapshot(store.archive(), row).unwrap();
    let bytes = Bytes::Archived(&snapshot);
    read_again(store.archive(), row, &bytes, &mut indexed).unwrap();
    indexed.texts
}

/// A word that can be asked for as it is.
fn plain_word(text: &str) -> Option<String> {
    let mut found = None;
    words::each(text, |word| {
        let is_plain = word.text.len() > 4 && word.text.bytes().all(|b| b.is_ascii_lowercase());
        if found.is_none() && is_plain {
            found = Some(word.text.to_owned());
        }
    });
    found
}

/// A session with a secret in what is said, asked and answered.
fn with_secret(machine: &Machine) -> String {
    let secret = format!("ghp_{}", "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8");
    let log = prompt("secret", "u1", &format!("use {secret} for the quetzal"))
        + &reply("secret", "a1", &format!("I pushed with {secret} to it"));
    write(&machine.session("secret.jsonl"), log);
    secret
}

#[test]
fn what_a_hit_shows_is_what_was_indexed_with_secrets_masked_in_both() {
    let machine = Machine::new();
    let secret = with_secret(&machine);
    let store = machine.store();
    machine.import(&store);
    import_corpus(&machine, &store);
    let guard = store.guard().unwrap();
    let (mut events, mut looked_up) = (0, 0);
    for row in rows(&store) {
        let path = row.path.display().to_string();
        let indexed = indexed(&store, &row, guard);
        let shown = window::events(&store.kept(), &row, Some(guard), 1, u64::MAX).unwrap();
        let mut asked = false;
        for event in &shown {
            events += 1;
            let expected = indexed.get(&event.seq).map_or("", String::as_str);
            assert_eq!(event.text, expected, "event {} of {path}", event.seq);
            if event.text.len() < PIECE {
                assert_eq!(guard.mask(&event.text, None), event.text, "{path}");
            }
            if !asked
                && !row.duplicate
                && let Some(word) = plain_word(&event.text)
            {
                (asked, looked_up) = (true, looked_up + 1);
                is_found(&store, &row, event.seq, &word);
            }
        }
        let last = shown.last().map_or(0, |event| event.seq);
        assert!(indexed.keys().all(|seq| *seq <= last), "{path}");
    }
    assert!(events > 1_000 && looked_up > 50, "{events}, {looked_up}");
    // Its words are not in the index, and what is shown of its events does not have it.
    let found = super::answer(&store, "quetzal", Sort::Relevance, 1).found;
    assert!(!found.is_empty());
    assert!(!format!("{found:?}").contains(&secret));
    let hits = super::answer(&store, &secret, Sort::Relevance, 0).found;
    assert!(hits.is_empty(), "{hits:?}");
}

/// Whether a search finds this event of this transcript, and shows the word.
fn is_found(store: &Store, row: &TranscriptRow, seq: u64, word: &str) {
    let query = query(&format!("session:{} {word}", row.address));
    let ask = Ask {
        query: &query,
        sort: Sort::Newest,
        limit: 5_000,
        context: 0,
        copies: true,
        snippet: 80,
        guard: Show::default(),
    };
    let answer = store.search(&ask, &Prices::builtin()).unwrap();
    let of_event = answer.found.iter().find(|found| found.event.seq == seq);
    let of_event = of_event.unwrap_or_else(|| panic!("{word} in {seq} of {}", row.path.display()));
    assert_eq!(of_event.row.id, row.id);
    assert!(
        !of_event.marks.is_empty(),
        "{word} in {:?}",
        of_event.event.text
    );
}

#[derive(Default)]
struct Exported(Vec<Event>);

impl Receiver for Exported {
    fn blob(&mut self, _attachment: &Attachment, _bytes: &[u8]) -> io::Result<()> {
        Ok(())
    }

    fn event(&mut self, event: Event) -> io::Result<()> {
        self.0.push(event);
        Ok(())
    }
}

#[test]
fn what_is_exported_is_what_is_read() {
    let machine = Machine::new();
    let store = machine.store();
    import_corpus(&machine, &store);
    let prices = Arc::new(Prices::builtin());
    let mut compared = 0;
    for row in rows(&store) {
        // These are read by their own readers, which know more than events.
        let own = [
            "exchange",
            quipu_agents::NORMALIZED,
            quipu_agents::NORMALIZED_PAGE,
        ];
        if row
            .dialect
            .as_deref()
            .is_some_and(|dialect| own.contains(&dialect))
        {
            continue;
        }
        let mut source = store.export(&row, &prices).unwrap();
        let mut exported = Exported::default();
        source.header().unwrap();
        source.read(&mut exported).unwrap();
        let read = store.read(row.clone()).unwrap().events;
        let path = row.path.display();
        assert_eq!(exported.0.len(), read.len(), "{path}");
        for (exported, read) in exported.0.iter().zip(&read) {
            assert_eq!(
                (exported.seq, &exported.body),
                (read.seq, &read.body),
                "{path}"
            );
        }
        compared += 1;
    }
    assert!(compared > 50, "{compared}");
}
