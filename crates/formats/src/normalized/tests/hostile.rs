//! Documents with a value of the wrong kind anywhere, or cut off anywhere: what is read of them is written, and
//! reads back as the same.

use serde_json::Value;

use super::round_trip::rewrite;
use crate::normalized::{read_with, verify};

const GOLDEN: &str = include_str!("golden/transcript-0.1.0.json");

fn check(document: &[u8]) {
    verify(document).unwrap();
    let mut first = Vec::new();
    let Ok(read) = read_with(document, &mut |event, beyond| first.push((event, beyond))) else {
        return;
    };
    let (again, loss) = rewrite(document);
    assert_eq!(loss.carried, read.events);
    let mut second = Vec::new();
    let same = read_with(&again[..], &mut |event, _| second.push(event)).unwrap();
    assert_eq!(same.header, read.header);
    let first: Vec<_> = first.into_iter().map(|(event, _)| event).collect();
    assert_eq!(first, second);
    let twice = String::from_utf8(rewrite(&again).0).unwrap();
    assert_eq!(twice, String::from_utf8(again).unwrap());
}

/// Where the values inside a value are.
fn places(value: &Value, place: &str, found: &mut Vec<String>) {
    found.push(place.to_owned());
    match value {
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                places(item, &format!("{place}/{index}"), found);
            }
        }
        Value::Object(fields) => {
            for (key, item) in fields {
                places(item, &format!("{place}/{key}"), found);
            }
        }
        _ => {}
    }
}

#[test]
fn a_wrong_value_anywhere_does_no_harm() {
    let whole: Value = serde_json::from_str(GOLDEN).unwrap();
    let mut found = Vec::new();
    places(&whole, "", &mut found);
    let wrong = [
        "null",
        "true",
        "-1",
        "1.5",
        "18446744073709551615",
        "\"\"",
        "\"x\"",
        "[]",
        "{}",
    ];
    let wrong = wrong
        .into_iter()
        .chain(["[null,[],{}]", "{\"kind\":\"step\",\"type\":[]}"]);
    let wrong: Vec<Value> = wrong
        .map(|text| serde_json::from_str(text).unwrap())
        .collect();
    for place in found {
        for value in &wrong {
            let mut changed = whole.clone();
            *changed.pointer_mut(&place).unwrap() = value.clone();
            check(changed.to_string().as_bytes());
        }
    }
}

#[test]
fn a_document_that_is_cut_off_anywhere_is_an_error() {
    for end in 0..GOLDEN.trim_end().len() {
        let document = &GOLDEN.as_bytes()[..end];
        assert!(read_with(document, &mut |_, _| {}).is_err(), "{end}");
        assert!(!verify(document).unwrap().is_valid(), "{end}");
    }
}
