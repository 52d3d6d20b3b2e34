use proptest::prelude::*;

use super::*;

#[test]
fn keeps_the_text() {
    let text = r#"{"b":12345678901234567890123,"a":1.0}"#;
    assert_eq!(Json::parse(text).unwrap().get(), text);
}

#[test]
fn is_one_line() {
    let json = Json::parse("{\n  \"a\": \"x\\ny\"\r\n}").unwrap();
    assert!(!json.get().contains(['\n', '\r']));
    assert!(json.get().contains(r"x\ny"), "escapes are not touched");
}

#[test]
fn strings_are_borrowed_unless_escaped() {
    assert!(matches!(
        Json::from("plain").as_str(),
        Some(Cow::Borrowed("plain"))
    ));
    assert_eq!(Json::from("a\"b").as_str().as_deref(), Some("a\"b"));
    assert_eq!(Json::from(true).as_str(), None);
    for half in [
        r#""\ud800""#,
        r#""\ud800x""#,
        r#""\udc00""#,
        r#""\ud800\u0041""#,
    ] {
        assert_eq!(
            Json::parse(half).unwrap().as_str(),
            None,
            "half a surrogate pair: {half}"
        );
    }
}

#[test]
fn halves_of_pairs_are_replaced_where_a_text_is_needed() {
    for (key, text) in [
        (r#""a\ud800b""#, "a\u{fffd}b"),
        (r#""\ud800\u0041""#, "\u{fffd}A"),
        (r#""\udc00\ud83d\ude00""#, "\u{fffd}\u{1f600}"),
        (r#""\n\u00e9""#, "\né"),
    ] {
        let object = format!("{{{key}:1}}");
        let mut keys = Vec::new();
        Cursor::new(&object, 1)
            .object(|key, cursor| {
                keys.push(key.to_text_lossy().into_owned());
                cursor.value().map(drop)
            })
            .unwrap();
        assert_eq!(keys, [text], "{key}");
    }
}

#[test]
fn control_characters_are_found_wherever_they_are() {
    for len in [0, 1000, 1020, 1021, 1022, 1023, 1024, 1025, 3000] {
        let text = format!("[\"{}\u{1}\",\"\"]", "x".repeat(len));
        let InvalidJson::Syntax(error) = Json::parse(&text).unwrap_err() else {
            panic!()
        };
        assert_eq!(
            (error.what, error.offset),
            (SyntaxProblem::Control, len + 2)
        );
        let text = format!("[\"{}\",\n\"x\"\n]", "x".repeat(len));
        assert!(
            Json::parse(&text).is_ok(),
            "outside a string it is white space"
        );
    }
}

#[test]
fn many_cursors_over_one_text_cost_what_they_pass() {
    let text = r#"{"a":1} "#.repeat(50_000);
    let start = std::time::Instant::now();
    let mut at = 0;
    while at < text.len() - 1 {
        let mut cursor = Cursor::new(&text[at..], 1);
        cursor.value().unwrap();
        at += cursor.offset();
    }
    assert!(start.elapsed() < std::time::Duration::from_secs(5));
}

#[test]
fn values_of_other_types() {
    assert_eq!(Json::of(&["a", "b"]).unwrap().get(), r#"["a","b"]"#);
    let keys = std::collections::BTreeMap::from([(vec![1], 1)]);
    assert!(matches!(Json::of(&keys), Err(InvalidJson::Serialize(_))));
    assert!(Json::null().is_null() && !Json::from(false).is_null());
    assert_eq!(format!("{:?}", Json::from("x")), "\"x\"");
}

#[test]
fn depth_is_bounded_and_strings_do_not_count() {
    let nested = |n: usize| format!("{}{}", "[".repeat(n), "]".repeat(n));
    assert!(Json::parse(&nested(Json::MAX_DEPTH)).is_ok());
    for deep in [Json::MAX_DEPTH + 1, 100_000] {
        let InvalidJson::Syntax(error) = Json::parse(&nested(deep)).unwrap_err() else {
            panic!()
        };
        assert_eq!(
            (error.what, error.offset),
            (SyntaxProblem::Depth, Json::MAX_DEPTH)
        );
    }
    assert!(
        Json::parse(&format!("[{}[]]", "[],".repeat(500))).is_ok(),
        "siblings are not depth"
    );
    let text = Json::string(&"[\"{\\".repeat(500));
    assert!(Json::parse(text.get()).is_ok());
}

#[test]
fn errors_say_what_and_where() {
    for (text, said) in [
        ("", "the text ends too early (column 1)"),
        ("{\"a\":", "the text ends too early (column 6)"),
        ("\"abc", "the text ends too early (column 5)"),
        ("{\"a\" 1}", "expected ':' (column 6)"),
        ("{1:2}", "expected a key (column 2)"),
        (
            "[1 2]",
            "expected ',' or the end of the list or object (column 4)",
        ),
        ("[1,]", "expected a value (column 4)"),
        ("tru_", "expected a value (column 4)"),
        ("01", "something follows the value (column 2)"),
        ("-", "the text ends too early (column 2)"),
        ("\"\\q\"", "invalid escape (column 3)"),
        ("\"\\u12g4\"", "invalid escape (column 6)"),
        ("\"a\u{1}\"", "control character in a string (column 3)"),
        ("{} {}", "something follows the value (column 4)"),
    ] {
        let error = Json::parse(text).unwrap_err();
        assert_eq!(
            error.to_string(),
            format!("not a JSON value: {said}"),
            "{text:?}"
        );
    }
}

/// Texts that are JSON or nearly so.
fn nearly_json() -> impl Strategy<Value = String> {
    let part = prop_oneof![
        Just("{"),
        Just("}"),
        Just("["),
        Just("]"),
        Just(","),
        Just(":"),
        Just("\"a\""),
        Just("\"\\n\\u00e9\\ud83d\\ude00\""),
        Just("\"\\ud800\""),
        Just("\"\\x\""),
        Just("\""),
        Just("1"),
        Just("-0.5e+3"),
        Just("01"),
        Just("."),
        Just("true"),
        Just("null"),
        Just("nul"),
        Just(" "),
        Just("\t"),
        Just("\n"),
        Just("\u{0}"),
        Just("é"),
        Just("\\"),
    ];
    proptest::collection::vec(part, 0..12).prop_map(|parts| parts.concat())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4096))]

    #[test]
    fn accepts_what_serde_json_accepts(text in nearly_json()) {
        let theirs = serde_json::from_str::<&serde_json::value::RawValue>(&text).is_ok();
        prop_assert_eq!(Json::parse(&text).is_ok(), theirs, "{:?}", text);
    }

    #[test]
    fn strings_read_as_serde_json_reads_them(text in nearly_json()) {
        let quoted = format!("\"{}\"", text.replace('"', ""));
        if let Ok(json) = Json::parse(&quoted) {
            let theirs = serde_json::from_str::<String>(&quoted).ok();
            prop_assert_eq!(json.as_str().map(Cow::into_owned), theirs);
        }
    }

    #[test]
    fn beginnings_are_those_of_the_text(text in "(\\PC|[\n\u{1f600}\"\\\\]){0,9}", prefix in "(\\PC|[\n\"]){0,3}", len in 0..9usize) {
        let json = Json::string(&text);
        let units: Vec<String> = text.encode_utf16().map(|unit| format!("\\u{unit:04x}")).collect();
        let escaped = format!("\"{}\"", units.concat());
        let own: String = text.chars().take(len).collect();
        for written in [json.get(), &escaped] {
            let mut tape = Tape::new();
            let raw = tape.read(written, 1).unwrap().as_raw_str().unwrap();
            prop_assert!(raw.starts_with(&own));
            prop_assert_eq!(raw.starts_with(&prefix), text.starts_with(&prefix));
        }
    }

    #[test]
    fn strings_read_back(text in ".*") {
        let json = Json::string(&text);
        prop_assert_eq!(json.as_str().map(Cow::into_owned), Some(text));
        prop_assert_eq!(Json::parse(json.get()).unwrap(), json);
    }
}

/// What a tape says, as a tree of the usual kind. Escapes that serde refuses are compared as text.
fn tree(node: Node<'_>) -> serde_json::Value {
    match node.kind() {
        Kind::Object => node
            .fields()
            .map(|(key, value)| (key.to_text_lossy().into_owned(), tree(value)))
            .collect::<serde_json::Map<_, _>>()
            .into(),
        Kind::List => node.items().map(tree).collect::<Vec<_>>().into(),
        Kind::String => node.as_str().unwrap().into_owned().into(),
        _ => serde_json::from_str(node.raw().get()).unwrap(),
    }
}

#[test]
fn a_tape_is_looked_into() {
    let mut tape = Tape::new();
    let text = r#" {"a":{"b":[1,-2,[],{}, "x\ny"],"":null},"c":true,"a":0} {"#;
    let (node, end) = tape.read_first(text, 9).unwrap();
    assert_eq!(&text[end..], " {");
    let list = node.path(&["a", "b"]).unwrap();
    assert_eq!(list.items().count(), 5);
    assert_eq!(list.items().next().unwrap().as_u64(), Some(1));
    assert_eq!(list.items().nth(1).unwrap().as_i64(), Some(-2));
    assert!(list.items().nth(4).unwrap().is("x\ny"));
    assert_eq!(node.get("c").unwrap().as_bool(), Some(true));
    assert!(node.path(&["a", ""]).unwrap().is_null());
    assert!(node.get("d").is_none() && list.get("a").is_none());
    assert_eq!(node.fields().count(), 3);
    assert!(tape.read(text, 9).is_err());
    assert!(tape.read("[[1]]", 1).is_err());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4096))]

    #[test]
    fn a_tape_reads_what_serde_json_reads(text in nearly_json()) {
        let mut tape = Tape::new();
        let ours = tape.read(&text, Json::MAX_DEPTH);
        prop_assert_eq!(
            ours.as_ref().err().map(ToString::to_string),
            Json::parse(&text).err().map(|e| e.to_string().replace("not a JSON value: ", ""))
        );
        if let (Ok(node), Ok(theirs)) = (ours, serde_json::from_str::<serde_json::Value>(&text)) {
            prop_assert_eq!(tree(node), theirs);
        }
    }

    /// What is built of the parts of a value is what its text reads as.
    #[test]
    fn an_object_built_of_parts_reads_as_its_parts(text in nearly_json()) {
        let mut tape = Tape::new();
        let Ok(node) = tape.read(&text, Json::MAX_DEPTH) else { return Ok(()) };
        let mut object = Building::default();
        prop_assert!(object.is_empty());
        object.inside("none", |_| {});
        prop_assert!(object.is_empty());
        object.named("whole", node.raw());
        object.inside("fields", |object| {
            for (key, value) in node.fields() {
                object.field(key, value.raw());
            }
        });
        let built = object.finish();
        let (Ok(built), Ok(whole)) = (built, serde_json::from_str::<serde_json::Value>(&text)) else {
            return Ok(());
        };
        prop_assert!(!built.get().contains(['\n', '\r']));
        let built: serde_json::Value = serde_json::from_str(built.get()).unwrap();
        prop_assert_eq!(&built["whole"], &whole);
        let has_fields = whole.as_object().is_some_and(|whole| !whole.is_empty());
        prop_assert_eq!(built.get("fields"), has_fields.then_some(&whole));
    }
}

#[test]
fn an_object_that_nests_too_deep_is_given_back_as_text() {
    let deep = format!(
        "{}{}",
        "[".repeat(Json::MAX_DEPTH),
        "]".repeat(Json::MAX_DEPTH)
    );
    let wide = format!("[{}1]", "[],".repeat(2 * Json::MAX_DEPTH));
    for (text, fits) in [(deep, false), (wide, true)] {
        let value = Json::parse(&text).unwrap();
        let mut object = Building::default();
        object.named("it", value.as_raw());
        let made = format!("{{\"it\":{text}}}");
        match object.finish() {
            Ok(json) => assert!(fits && json.get() == made),
            Err(text) => assert!(!fits && text == made),
        }
    }
}
