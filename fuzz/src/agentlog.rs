//! What is done with `.agentlog` traces.

use std::collections::BTreeMap;

use quipu_formats::agentlog::reader::Passed;
use quipu_formats::agentlog::verify::{VerifyOptions, verify};
use quipu_formats::agentlog::{Canon, ContentId, Form, Item, Reader};
use quipu_exchange::lines::Limits;
use quipu_model::json::Tape;
use sha2::{Digest as _, Sha256};

use crate::{LIMITS, slow};

/// Reads a trace to its end: every line is a record, or said to be none, or passed over and counted.
pub fn reader(bytes: &[u8]) {
    let mut reader = Reader::with_limits(bytes, LIMITS);
    let mut mentioned = BTreeMap::new();
    let mut canon = Canon::new();
    while let Ok(Some(item)) = reader.next() {
        let (at, text) = match &item {
            Item::Record(record) => (record.at, Some(record.text().to_owned())),
            Item::Bad { at, .. } => (*at, None),
        };
        assert!(
            mentioned.insert(at.line, at.offset).is_none(),
            "line {}",
            at.line
        );
        let (Item::Record(record), Some(text)) = (item, text) else {
            continue;
        };
        let id = record.content_id_by(&mut canon);
        assert_eq!(id, record.content_id());
        // As it stands, the record is a line that reads the same.
        let line = format!("{text}\n");
        let mut again = Reader::with_limits(line.as_bytes(), Limits::default());
        let Some(Item::Record(same)) = again.next().unwrap() else {
            panic!("{text}");
        };
        assert_eq!(same.text(), text);
        assert_eq!(
            (same.id(), same.kind(), same.ts()),
            (record.id(), record.kind(), record.ts())
        );
        assert_eq!(same.parent(), record.parent());
        assert_eq!(same.content_id().ok(), id.ok());
    }
    covers(bytes, &mentioned, reader.passed());
}

fn covers(bytes: &[u8], mentioned: &BTreeMap<u64, u64>, passed: Passed) {
    let bom = bytes.starts_with(b"\xef\xbb\xbf");
    let (mut offset, mut blank) = (0, 0);
    for (n, line) in (1..).zip(bytes.split_inclusive(|&byte| byte == b'\n')) {
        let text = line.strip_suffix(b"\n").unwrap_or(line);
        let long = text.len() > LIMITS.max_line_bytes;
        if n == 1 {
            // Of a line that is too long, nothing is looked at.
            assert_eq!(passed.bom, bom && !long);
        }
        let text = if bom && n == 1 { &text[3..] } else { text };
        if text.trim_ascii().is_empty() && !long {
            blank += 1;
            assert!(!mentioned.contains_key(&n), "line {n}");
        } else {
            assert_eq!(mentioned.get(&n), Some(&offset), "line {n}");
        }
        offset += line.len() as u64;
    }
    assert_eq!(passed.blank, blank);
}

/// The canonical form is the one that the slow way finds, is its own canonical form, and is what is hashed.
pub fn canon(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else {
        return;
    };
    let slow = slow::canonical(text, LIMITS.max_depth);
    let (mut tape, mut canon, mut form) = (Tape::new(), Canon::new(), Vec::new());
    let Ok(node) = tape.read(text, LIMITS.max_depth) else {
        assert_eq!(slow, Err(slow::None));
        return;
    };
    let written = canon.write(node, &mut form);
    let id = canon.id(node);
    assert_eq!(Form::default().id(node), id.as_ref().ok().copied());
    if let Err(error) = written {
        assert_eq!(slow, Err(slow::None), "{error}");
        assert!(error.offset < text.len());
        assert_eq!(id, Err(error));
        return;
    }
    let form = String::from_utf8(form).unwrap();
    assert_eq!(slow.as_deref(), Ok(&form[..]));
    assert_eq!(id, Ok(ContentId(Sha256::digest(&form).into())));
    let mut again = Vec::new();
    let node = tape.read(&form, LIMITS.max_depth).unwrap();
    canon.write(node, &mut again).unwrap();
    assert_eq!(form.as_bytes(), again);
}

/// Checks a trace with one thread and with several, which find the same.
pub fn check(bytes: &[u8]) {
    let options = |strict, threads| VerifyOptions {
        limits: LIMITS,
        strict,
        threads,
    };
    let strict = verify(bytes, &options(true, 1));
    let several = verify(bytes, &options(true, 3));
    let permissive = verify(bytes, &options(false, 1));
    let (Ok(strict), Ok(several), Ok(permissive)) = (&strict, &several, &permissive) else {
        assert!(strict.is_err() && several.is_err() && permissive.is_err());
        return;
    };
    assert_eq!(strict, several);
    // To be permissive is to make less of what is there, and never more.
    for (rule, times) in &permissive.counts {
        assert!(strict.counts.get(rule) >= Some(times), "{rule:?}");
    }
    assert!(permissive.worst() <= strict.worst());
    assert_eq!(strict.bytes, bytes.len() as u64);

    let mut reader = Reader::with_limits(bytes, LIMITS);
    let (mut records, mut bad, mut wrong) = (0, 0, 0);
    while let Some(item) = reader.next().unwrap() {
        match item {
            Item::Record(record) => {
                records += 1;
                let id = record.content_id().ok();
                wrong += u64::from(record.payload().is_none() || record.id() != id);
            }
            Item::Bad { .. } => bad += 1,
        }
    }
    assert_eq!(strict.records, records);
    assert!(bad == 0 || !strict.is_clean());
    assert!(wrong == 0 || !strict.is_clean());
    assert_eq!(strict.passed, reader.passed());
}
