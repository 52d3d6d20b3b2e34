use proptest::prelude::*;
use quipu_formats::atif::{AtifOptions, writer};
use quipu_formats::projection::Nowhere;
use quipu_model::{Event, Header};

use super::story::{done, noted, said, session, usage};
use crate::testkit::read;

fn written(header: &Header, events: &[Event]) -> Vec<u8> {
    let mut out = Vec::new();
    let options = AtifOptions::default();
    let mut to = writer(header, &options, Box::new(&mut out), Box::new(Nowhere)).unwrap();
    for event in events {
        to.event(event).unwrap();
    }
    to.finish().unwrap();
    out
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn what_is_written_reads_back((header, events) in session(true)) {
        let text = written(&header, &events);
        let read = read(&text, "t.json").unwrap();
        prop_assert_eq!(read.dialect.name, "atif");
        prop_assert_eq!(said(&read.events), said(&events), "{}", String::from_utf8_lossy(&text));
        prop_assert_eq!(done(&read.events), done(&events), "{}", String::from_utf8_lossy(&text));
        prop_assert_eq!(noted(&read.events), noted(&events), "{}", String::from_utf8_lossy(&text));
        prop_assert_eq!(usage(&read.events), usage(&events), "{}", String::from_utf8_lossy(&text));
        prop_assert!(read.ledger.drift.unknown.is_empty());
        prop_assert_eq!(read.ledger.orphans, 0);
    }
}
