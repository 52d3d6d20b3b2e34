//! What is written reads back as it was.

use proptest::prelude::*;
use quipu_model::{Event, Header};

use crate::arbitrary;
use crate::loss::Loss;
use crate::normalized::{Beyond, NormalizedOptions, Read, Writer, read, read_with, verify};
use crate::projection::Nowhere;

pub(super) fn write(
    header: &Header,
    options: &NormalizedOptions,
    events: &[Event],
) -> (Vec<u8>, Loss) {
    let mut out = Vec::new();
    let mut writer =
        super::super::writer(header, options, Box::new(&mut out), Box::new(Nowhere)).unwrap();
    for event in events {
        writer.event(event).unwrap();
    }
    let loss = writer.finish().unwrap();
    (out, loss)
}

pub(super) fn read_all(bytes: &[u8]) -> (Read, Vec<(Event, Beyond)>) {
    let mut events = Vec::new();
    let read = read_with(bytes, &mut |event, beyond| events.push((event, beyond))).unwrap();
    (read, events)
}

/// Writes what was read again.
pub(super) fn rewrite(bytes: &[u8]) -> (Vec<u8>, Loss) {
    let (read, events) = read_all(bytes);
    let mut writer = Writer::new(&read.header, &read.options, Vec::new()).unwrap();
    for (event, beyond) in &events {
        writer.write(event, beyond).unwrap();
    }
    let (loss, out) = writer.end().unwrap();
    (out, loss)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(if cfg!(debug_assertions) { 300 } else { 2000 }))]

    #[test]
    fn a_session_reads_back_as_it_was((header, events) in arbitrary::session()) {
        let (bytes, loss) = write(&header, &NormalizedOptions::default(), &events);
        let mut back = Vec::new();
        let read = read(&bytes[..], &mut |event| back.push(event)).unwrap();
        prop_assert_eq!(&back, &events);
        prop_assert_eq!(&read.header, &header);
        prop_assert_eq!(&read.options, &NormalizedOptions::default());
        prop_assert_eq!(read.beyond, 0);
        prop_assert!(read.mismatches.is_empty(), "{:?}", read.mismatches);
        prop_assert!(read.unread.is_empty(), "{:?}", read.unread);

        let attached = events.iter().map(|event| event.blobs().count() as u64).sum();
        prop_assert_eq!((loss.events, loss.carried), (events.len() as u64, events.len() as u64));
        let dropped: Vec<_> = loss.dropped.iter().map(|(what, tally)| (what.as_ref(), tally.count)).collect();
        let expected: Vec<(&str, u64)> = Some(("attachment bytes", attached)).filter(|(_, n)| *n > 0).into_iter().collect();
        prop_assert_eq!(dropped, expected);
        prop_assert!(loss.wrapped.is_empty());

        let again = rewrite(&bytes).0;
        prop_assert_eq!(String::from_utf8(again), String::from_utf8(bytes.clone()));

        // It is JSON to others as well, and valid by its own schema.
        let whole: serde_json::Value = serde_json::from_slice(&bytes).unwrap_or_default();
        if !whole.is_null() {
            prop_assert_eq!(whole["events"].as_array().map(Vec::len), Some(events.len()));
        }
        let report = verify(&bytes[..]).unwrap();
        prop_assert!(report.is_valid(), "{:?}", report.findings);
    }
}
