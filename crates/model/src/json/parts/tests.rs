use proptest::prelude::*;

use super::*;
use crate::json::Tape;

const LISTS: &[&str] = &["events", "é\n"];

type Found = (String, Option<u64>, String, u64, u64);

fn divide(text: &[u8], cuts: &[usize], limit: usize) -> (Vec<Found>, Result<(), PartsError>) {
    let mut parts = Parts::new(LISTS, limit);
    let mut found = Vec::new();
    let mut from = 0;
    let mut result = Ok(());
    for &cut in cuts.iter().chain([&text.len()]) {
        let pushed = parts.push(&text[from..cut], &mut |part| {
            let value = String::from_utf8_lossy(part.value).into_owned();
            found.push((
                part.key.to_owned(),
                part.index,
                value,
                part.offset,
                part.line,
            ));
        });
        from = cut;
        assert!(parts.held() <= 2 * limit.max(1));
        if result.is_ok() {
            result = pushed;
        }
    }
    let result = result.and(parts.finish());
    (found, result)
}

fn check(text: &str, expected: &[(&str, Option<u64>, &str)]) {
    let (found, result) = divide(text.as_bytes(), &[], 1 << 20);
    result.unwrap();
    let found: Vec<_> = found
        .iter()
        .map(|(key, index, value, ..)| (key.as_str(), *index, value.as_str()))
        .collect();
    assert_eq!(found, expected, "{text}");
}

#[test]
fn fields_and_items() {
    check("{}", &[]);
    check(" \n{ \"a\" : 1 }\n", &[("a", None, "1")]);
    check(
        r#"{"a":true,"events":[1,"]",{"x":[{}]},[ ]],"b":{"events":[1]}}"#,
        &[
            ("a", None, "true"),
            ("events", Some(0), "1"),
            ("events", Some(1), "\"]\""),
            ("events", Some(2), "{\"x\":[{}]}"),
            ("events", Some(3), "[ ]"),
            ("b", None, "{\"events\":[1]}"),
        ],
    );
    check(r#"{"events":[],"events":{}}"#, &[("events", None, "{}")]);
    check(
        r#"{"\u00e9\n":["\\\"",-1.5e3]}"#,
        &[("é\n", Some(0), r#""\\\"""#), ("é\n", Some(1), "-1.5e3")],
    );
    check("\u{feff}{\"a\":null}", &[("a", None, "null")]);
}

#[test]
fn places_are_those_of_the_document() {
    let text = "{\n \"a\": 1,\n \"events\": [\n  {\"x\":\n 1},\n  2\n ]\n}\n";
    for cut in 0..text.len() {
        let (found, result) = divide(text.as_bytes(), &[cut], 1 << 20);
        result.unwrap();
        for (_, _, value, offset, line) in &found {
            let at = usize::try_from(*offset).unwrap();
            assert!(text[at..].starts_with(value));
            let before = text[..at].matches('\n').count() as u64;
            assert_eq!(*line, before + 1, "cut at {cut}");
        }
        assert_eq!(found.len(), 3);
    }
}

#[test]
fn what_is_no_object_is_an_error_with_its_place() {
    for (text, expected, at) in [
        ("[1]", "an object", 0),
        ("  x", "an object", 2),
        ("{1:2}", "a key or '}'", 1),
        ("{\"a\":1,}", "a key", 7),
        ("{\"a\" 1}", "':'", 5),
        ("{\"a\":}", "a value", 5),
        ("{\"a\":1 2}", "',' or '}'", 7),
        ("{\"events\":[1 2]}", "',' or ']'", 13),
        ("{\"events\":[1,]}", "a value", 13),
        ("{} {}", "nothing more", 3),
    ] {
        let (_, result) = divide(text.as_bytes(), &[], 1 << 20);
        let error = PartsError::Syntax {
            expected,
            offset: at,
        };
        assert_eq!(result, Err(error), "{text}");
    }
}

#[test]
fn a_document_that_is_cut_off_says_where() {
    let text = r#"{"a":1,"events":[{"x":1},{"y":2}]}"#;
    for end in 0..text.len() {
        let (_, result) = divide(&text.as_bytes()[..end], &[], 1 << 20);
        let Err(PartsError::Cut { offset, .. }) = result else {
            panic!("{end}: {result:?}")
        };
        assert_eq!(offset, end as u64);
    }
    let (_, result) = divide(&text.as_bytes()[..28], &[], 1 << 20);
    let said = result.unwrap_err().to_string();
    assert_eq!(said, "the document ends at byte 28, in `events[1]`");
}

#[test]
fn a_part_that_is_too_long_is_named_and_passed_over() {
    let text = r#"{"events":[1,"too long for it",2],"b":3}"#;
    for cut in 0..text.len() {
        let (found, result) = divide(text.as_bytes(), &[cut], 8);
        let error = PartsError::TooLong {
            key: "events".into(),
            index: Some(1),
            offset: 13,
            limit: 8,
        };
        assert_eq!(result, Err(error.clone()));
        assert_eq!(found.len(), 3, "what follows is still given");
        let said = "`events[1]` at byte 13 has more than 8 bytes";
        assert_eq!(error.to_string(), said);
    }
}

#[test]
fn memory_is_that_of_the_largest_part() {
    let mut parts = Parts::new(LISTS, 1 << 20);
    let mut items = 0_u64;
    let item = format!("{{\"text\":\"{}\"}},", "x".repeat(10_000));
    parts.push(b"{\"events\":[", &mut |_| {}).unwrap();
    for _ in 0..2000 {
        for piece in item.as_bytes().chunks(4096) {
            parts.push(piece, &mut |_| items += 1).unwrap();
        }
    }
    assert_eq!(items, 2000);
    assert!(parts.capacity() < 64 * 1024, "{}", parts.capacity());
}

fn json() -> impl Strategy<Value = serde_json::Value> {
    let leaf = prop_oneof![
        Just(serde_json::Value::Null),
        any::<bool>().prop_map(Into::into),
        any::<i64>().prop_map(Into::into),
        "[\"\\\\{}\\[\\]:,a-c é\n]{0,8}".prop_map(Into::into),
    ];
    leaf.prop_recursive(3, 24, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Into::into),
            prop::collection::vec(("[\"\\\\{}a-c]{0,3}", inner), 0..4)
                .prop_map(|fields| serde_json::Value::Object(fields.into_iter().collect())),
        ]
    })
}

proptest! {
    /// Cut anywhere, the parts of a document are the fields and items that are in it.
    #[test]
    fn parts_are_what_is_in_the_document(
        fields in prop::collection::vec(
            (prop_oneof![Just("events".to_owned()), "[\"\\\\{}a-c\n]{0,3}"], json()), 0..6),
        pretty in any::<bool>(),
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..12),
    ) {
        let write = |value: &serde_json::Value| if pretty {
            serde_json::to_string_pretty(value).unwrap()
        } else {
            value.to_string()
        };
        let mut text = String::from("{");
        let mut expected = Vec::new();
        for (at, (key, value)) in fields.iter().enumerate() {
            let comma = if at == 0 { "" } else { "," };
            let name = serde_json::to_string(key).unwrap();
            text.extend([comma, &name, ":", &write(value)]);
            match value {
                serde_json::Value::Array(items) if LISTS.contains(&key.as_str()) => {
                    let items = items.iter().zip(0_u64..);
                    expected.extend(items.map(|(item, at)| (key.clone(), Some(at), item.clone())));
                }
                _ => expected.push((key.clone(), None, value.clone())),
            }
        }
        text.push('}');
        let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(text.len())).collect();
        cuts.sort_unstable();
        let (found, result) = divide(text.as_bytes(), &cuts, 1 << 20);
        prop_assert_eq!(result, Ok(()));
        let read: Vec<_> = found
            .iter()
            .map(|(key, index, value, ..)| {
                (key.clone(), *index, serde_json::from_str(value).unwrap())
            })
            .collect();
        prop_assert_eq!(read, expected);
        prop_assert_eq!(found, divide(text.as_bytes(), &[], 1 << 20).0);
    }

    /// Whatever comes, however it is cut: the same parts and the same end.
    #[test]
    fn cuts_change_nothing(
        text in "[{}\\[\\],:\"\\\\a1 \n]{0,40}",
        events in any::<bool>(),
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..6),
        limit in 1_usize..20,
    ) {
        let text = if events { format!("{{\"events\":[{text}") } else { text };
        let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(text.len() + 1)).collect();
        cuts.sort_unstable();
        let whole = divide(text.as_bytes(), &[], limit.max(8));
        let pieces = divide(text.as_bytes(), &cuts, limit.max(8));
        prop_assert_eq!(&whole.0, &pieces.0);
        prop_assert_eq!(whole.1.is_ok(), pieces.1.is_ok());
        // What is a document to a reader of JSON is one here.
        let mut tape = Tape::new();
        let object = text.trim_start().starts_with('{');
        if object && tape.read(&text, 64).is_ok() {
            let (_, result) = divide(text.as_bytes(), &cuts, 1 << 20);
            prop_assert_eq!(result, Ok(()));
        }
    }
}
