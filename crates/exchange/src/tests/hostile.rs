//! No bytes make the reader panic, lose something or take for ever.

use std::time::{Duration, Instant};

use proptest::collection::vec;
use proptest::prelude::*;

use super::{encode, run};
use crate::lines::Limits;
use crate::{Escapes, Fault, Item, Reader, verify};
use quipu_formats::arbitrary;

const LIMITS: Limits = Limits {
    max_line_bytes: 400,
    max_total_bytes: u64::MAX,
    max_depth: 16,
};

/// A line is either not told from its bytes (it was mended or too long), or its items and the white
/// space between them are exactly its bytes.
fn check(input: &[u8]) -> Result<(), TestCaseError> {
    let mut reader = Reader::with_limits(input, LIMITS);
    // Up to where the input is accounted for.
    let mut covered = 0;
    let mut items = 0;
    while let Some(item) = reader.next().unwrap() {
        items += 1;
        prop_assert!(
            items <= 2 * input.len(),
            "there are no more items than bytes"
        );
        let (at, bytes, fault) = match &item {
            Item::Event(found) => (found.at, found.text.as_bytes().to_vec(), None),
            Item::Bad(bad) => (bad.at, bad.bytes.to_vec(), Some(bad.fault.clone())),
        };
        let line = *reader.line();
        let (start, len) = (to_usize(line.offset), to_usize(line.len));
        let line_bytes = &input[start..start + len];
        prop_assert_eq!(at.line, line.number);
        let mended = line_bytes.contains(&0) || std::str::from_utf8(line_bytes).is_err();
        if mended || line.too_long {
            prop_assert_eq!(line.too_long, matches!(fault, Some(Fault::TooLong { .. })));
            covered = start + len;
            continue;
        }
        let at = to_usize(at.offset);
        prop_assert!(covered <= at, "items do not overlap");
        prop_assert!(
            blank(&input[covered..at]),
            "nothing is left out before an item"
        );
        prop_assert_eq!(
            &input[at..at + bytes.len()],
            &bytes[..],
            "an item is its bytes"
        );
        covered = at + bytes.len();
    }
    prop_assert!(blank(&input[covered..]), "nothing is left out at the end");
    prop_assert_eq!(reader.position(), input.len() as u64);
    Ok(())
}

fn to_usize(n: u64) -> usize {
    usize::try_from(n).unwrap()
}

fn blank(bytes: &[u8]) -> bool {
    let mark = b"\xef\xbb\xbf";
    bytes
        .strip_prefix(mark)
        .unwrap_or(bytes)
        .iter()
        .all(u8::is_ascii_whitespace)
}

/// Everything that is decoded can be written and read again.
fn check_decoded(input: &[u8]) -> Result<(), TestCaseError> {
    let mut reader = Reader::with_limits(input, LIMITS);
    while let Some(item) = reader.next_decoded().unwrap() {
        let Ok(decoded) = item else { continue };
        let event = decoded.event;
        let mut lines = vec![Vec::new()];
        crate::encode_log(&event, &mut lines[0]);
        let mut in_file = Vec::new();
        if crate::encode(&event, Escapes::Plain, &mut in_file).is_ok() {
            lines.push(in_file);
        }
        for line in lines {
            let mut again = Reader::new(&line[..]);
            let read = again.next_decoded().unwrap().unwrap().unwrap();
            prop_assert_eq!(&read.event.body, &event.body);
        }
    }
    verify::verify(&mut Reader::with_limits(input, LIMITS)).unwrap();
    Ok(())
}

/// What files are made of, whole and broken.
fn part() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        4 => arbitrary::event().prop_map(|event| encode(&event, Escapes::Plain).into_bytes()),
        2 => (1u64..9).prop_map(|seq| run(seq).into_bytes()),
        2 => (1u64..9, 0usize..110).prop_map(|(seq, cut)| run(seq).as_bytes()[..cut].to_vec()),
        3 => prop::sample::select(vec![
            &b"\n"[..], b"\r\n", b" ", b"\0", b"\0\0\0", b"\xff", b"\xef\xbb\xbf", b"{", b"}", b",",
            b"{\"seq\":", b"{\"seq\":1,\"type\":\"x\"}", b"[[[[[[[[[[[[[[[[[[[[", b"\"", b"\\", b"null",
            b"\x0c",
        ]).prop_map(<[u8]>::to_vec),
        1 => vec(any::<u8>(), 0..20),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn any_bytes(input in vec(any::<u8>(), 0..200)) {
        check(&input)?;
        check_decoded(&input)?;
    }

    #[test]
    fn broken_files(parts in vec(part(), 0..12)) {
        let input = parts.concat();
        check(&input)?;
        check_decoded(&input)?;
    }

    #[test]
    fn files_with_some_bytes_changed(
        events in vec(arbitrary::event(), 1..4),
        changes in vec((any::<prop::sample::Index>(), any::<u8>(), 0..3), 1..5),
    ) {
        let mut input: Vec<u8> = events
            .iter()
            .flat_map(|event| encode(event, Escapes::Plain).into_bytes())
            .collect();
        for (at, byte, how) in changes {
            let at = at.index(input.len());
            match how {
                0 => input[at] = byte,
                1 => input.insert(at, byte),
                _ => drop(input.drain(at..(at + usize::from(byte)).min(input.len()))),
            }
            if input.is_empty() { break }
        }
        check(&input)?;
        check_decoded(&input)?;
    }
}

#[test]
fn a_long_line_of_many_events_takes_as_long_as_many_lines() {
    const N: usize = 30_000;
    let start = Instant::now();
    let short = r#"{"seq":1,"type":"x"}"#;
    for between in ["", "x", "\0", "\u{feff}", "{\"seq\":"] {
        let input = format!("{short}{between}").repeat(N);
        let mut reader = Reader::new(input.as_bytes());
        let mut events = 0;
        while let Some(item) = reader.next().unwrap() {
            events += usize::from(matches!(item, Item::Event(_)));
        }
        assert_eq!(events, N, "{between:?}");
    }
    let taken = start.elapsed();
    assert!(taken < Duration::from_secs(10), "took {taken:?}");
}
