//! Whatever goes in.

use proptest::prelude::*;

use super::*;

/// Text in which there may be something to find.
fn text() -> impl Strategy<Value = String> {
    prop_oneof![
        4 => "[a-z =\\n\"\\\\é😀./]{0,16}",
        1 => (0_u64..4).prop_map(token),
        1 => (0_u64..4).prop_map(|seed| format!("x\n{} y", token(seed))),
        1 => (0_u64..4).prop_map(|seed| token(seed)[..13].to_owned()),
        1 => (0_u64..4).prop_map(|seed| token(seed)[13..].to_owned()),
        1 => Just("cat .env".to_owned()),
        1 => Just(".env".to_owned()),
        1 => Just("call_1".to_owned()),
        1 => Just("echo A=1 > .env".to_owned()),
        1 => Just("[REDACTED:github]".to_owned()),
    ]
}

fn key() -> impl Strategy<Value = String> {
    let known = [
        "file_path",
        "content",
        "text",
        "id",
        "tool_use_id",
        "input",
        "command",
        "output",
        "delta",
        "name",
        "value",
        "password",
        "type",
        "state",
        "toolUseResult",
        "args",
    ];
    prop_oneof![
        6 => proptest::sample::select(known.to_vec()).prop_map(str::to_owned),
        1 => text(),
    ]
}

fn value() -> impl Strategy<Value = serde_json::Value> {
    let leaf = prop_oneof![
        4 => text().prop_map(serde_json::Value::from),
        1 => any::<i64>().prop_map(serde_json::Value::from),
        1 => (0_u64..4).prop_map(|seed| {
            let card = expand("4{digit:15}", seed).unwrap().text;
            serde_json::Value::from(card.parse::<u64>().unwrap())
        }),
        1 => Just(serde_json::Value::Null),
    ];
    leaf.prop_recursive(4, 24, 5, |inner| {
        prop_oneof![
            1 => proptest::collection::vec(inner.clone(), 0..4).prop_map(serde_json::Value::from),
            3 => proptest::collection::vec((key(), inner.clone()), 0..5)
                .prop_map(|fields| serde_json::Value::Object(fields.into_iter().collect())),
            1 => inner.prop_map(|value| serde_json::Value::from(value.to_string())),
        ]
    })
}

fn records() -> impl Strategy<Value = String> {
    let line = prop_oneof![
        6 => value().prop_map(|value| value.to_string()),
        1 => value().prop_map(|value| serde_json::to_string_pretty(&value).unwrap()),
        1 => text(),
        1 => value().prop_map(|value| value.to_string().chars().take(9).collect()),
    ];
    let end = prop_oneof![4 => Just("\n"), 1 => Just("\r\n"), 1 => Just("\n\n")];
    proptest::collection::vec((line, end), 0..6)
        .prop_map(|lines| lines.into_iter().map(|(line, end)| line + end).collect())
}

fn shape() -> impl Strategy<Value = Option<Shape>> {
    prop_oneof![
        3 => Just(Some(Shape::Jsonl)),
        1 => Just(Some(Shape::Json)),
        1 => Just(Some(Shape::Text)),
        2 => Just(None),
    ]
}

/// Rules that are about some files only, beside the others.
fn engine_that_asks_for_files() -> Engine {
    let mut rules = rules();
    let mut only = Rule::new("words", Kind::Secret, Pattern::Regex("[a-z]{9,}".into()));
    only.path = Some(r"a\.txt$".into());
    rules.rules.push(only);
    rules.allow.push(Allow {
        files: vec![r"b\.txt$".into()],
        ..Allow::default()
    });
    Engine::new(&rules, |_| true).unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn what_was_looked_at_before_changes_nothing(
        inputs in proptest::collection::vec((records(), any::<bool>(), 0_usize..4, any::<bool>()), 1..6),
    ) {
        let engines = [engine(), engine_that_asks_for_files()];
        for (input, near, file, other) in inputs {
            let files = [None, Some("a.txt"), Some("b.txt"), Some("c.txt")];
            let options = RawOptions { near, file: files[file].map(str::to_owned), ..options() };
            let engine = &engines[usize::from(other)];
            let used = run(engine, &options, input.as_bytes());
            // A thread of its own has looked at nothing yet.
            let fresh = std::thread::scope(|scope| {
                scope.spawn(|| run(engine, &options, input.as_bytes())).join().unwrap()
            });
            prop_assert_eq!(used.text(), fresh.text());
            prop_assert_eq!(used.findings, fresh.findings);
            prop_assert_eq!(used.summary, fresh.summary);
        }
    }

    #[test]
    fn redacting_twice_changes_nothing(input in records(), shape in shape()) {
        let engine = engine();
        let shape = Some(shape.unwrap_or(Shape::Jsonl));
        let options = RawOptions { shape, ..options() };
        let once = run(&engine, &options, input.as_bytes());
        let twice = run(&engine, &options, &once.bytes);
        prop_assert_eq!(twice.text(), once.text());
    }

    #[test]
    fn json_stays_json_and_no_token_is_left(input in records(), shape in shape()) {
        let engine = engine();
        let done = run(&engine, &RawOptions { shape, ..options() }, input.as_bytes());
        for seed in 0..4 {
            // As a word of its own; pieces of it are put next to other letters as well.
            let token = token(seed);
            let word = |text: &str| text.match_indices(&token).any(|(at, _)| {
                let letter = |c: char| c.is_ascii_alphanumeric() || c == '_';
                !text[..at].ends_with(letter) && !text[at + token.len()..].starts_with(letter)
            });
            prop_assert!(!word(done.text()), "{}", done.text());
        }
        prop_assert!(done.findings.iter().all(|finding| finding.offset < done.summary.bytes));
        if shape == Some(Shape::Jsonl) {
            prop_assert_eq!(done.text().lines().count(), input.lines().count());
            for (before, after) in input.lines().zip(done.text().lines()) {
                let valid = |line: &str| serde_json::from_str::<serde_json::Value>(line).is_ok();
                prop_assert!(!valid(before) || valid(after), "{} {}", before, after);
            }
        }
    }

    #[test]
    fn how_it_arrives_and_how_many_look_makes_no_difference(input in records(), times in 1_usize..3) {
        let engine = engine();
        let options = RawOptions { shape: Some(Shape::Jsonl), ..options() };
        let input = input.repeat(times);
        let one = run(&engine, &options, input.as_bytes());
        let mut slow = Vec::new();
        let mut found = Vec::new();
        let mut reader = Slow(input.as_bytes());
        redact(&engine, &options, &mut reader, &mut slow, &mut |finding| found.push(finding)).unwrap();
        prop_assert_eq!(String::from_utf8(slow).unwrap(), one.text());
        prop_assert_eq!(found, one.findings);
    }

    #[test]
    fn any_bytes(input in proptest::collection::vec(any::<u8>(), 0..200), shape in shape()) {
        let engine = Engine::new(&RuleSet::default(), |_| true).unwrap();
        let options = RawOptions { shape, files: false, ..options() };
        prop_assert_eq!(run(&engine, &options, &input).bytes, input);
    }
}

/// Hands out a few bytes at a time.
struct Slow<'a>(&'a [u8]);

impl std::io::Read for Slow<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let len = self.0.len().min(7).min(buffer.len());
        buffer[..len].copy_from_slice(&self.0[..len]);
        self.0 = &self.0[len..];
        Ok(len)
    }
}

#[test]
fn threads_make_no_difference() {
    let mut input = String::new();
    for round in 0..6000_u64 {
        let own = token(round % 50);
        let line = match round % 5 {
            0 => format!(
                "{{\"id\":\"t{round}\",\"input\":{{\"file_path\":\".env\"}},\"x\":\"{own}\"}}\n"
            ),
            1 => format!(
                "{{\"tool_use_id\":\"t{}\",\"content\":\"A={round} x\"}}\n",
                round - 1
            ),
            2 => format!("{{\"delta\":{{\"text\":\" {}\"}}}}\n", &own[..20]),
            3 => format!(
                "{{\"delta\":{{\"text\":\"{}\"}}}}\n",
                &token((round - 1) % 50)[20..]
            ),
            _ => format!("{{\"text\":\"{}\"}}\n", "words ".repeat(60)),
        };
        input.push_str(&line);
    }
    let engine = engine();
    let one = run(&engine, &options(), input.as_bytes());
    let four = run(
        &engine,
        &RawOptions {
            threads: 4,
            ..options()
        },
        input.as_bytes(),
    );
    assert!(one.bytes == four.bytes);
    assert_eq!(one.findings, four.findings);
    assert!(one.findings.len() >= 3600);
}

#[test]
fn no_record_takes_long() {
    // Each of these takes minutes where something is done for each part that looks at all parts.
    let times = if cfg!(debug_assertions) {
        4_000
    } else {
        20_000
    };
    let many = |part: &str| {
        let parts: Vec<String> = (0..times)
            .map(|at| part.replace('#', &at.to_string()))
            .collect();
        parts.join(",")
    };
    let token = token(1);
    for input in [
        format!(
            "{{\"call_id\":\"c\",{}}}",
            many("\"f#\":{\"path\":\".env\"}")
        ),
        format!(
            "{{{},\"list\":[{}]}}",
            many("\"k#\":1"),
            many("{\"type\":\"a_chunk\",\"text\":\"x\"}")
        ),
        format!(
            "{{\"s\":\"{}\"}}",
            format!("\\n{token}\\u0020").repeat(times)
        ),
        format!(
            "{{\"content\":[{}]}}",
            many(&format!(
                "{{\"text\":\" {}\"}},{{\"text\":\"{}\"}}",
                &token[..9],
                &token[9..]
            ))
        ),
        format!("{{\"args\":\"[{}]\"}}", many(&format!("\\\"{token}\\\""))),
        format!(
            "{{\"command\":\"{}\"}}",
            "echo 'a | tee .env <<E ".repeat(times)
        ),
        format!("{}{}", "{\"\":[".repeat(400), "[REDACTED:".repeat(times)),
    ] {
        run(&engine(), &options(), input.as_bytes());
    }
    let options = RawOptions {
        shape: Some(Shape::Json),
        ..options()
    };
    let done = run(&engine(), &options, "{}\n".repeat(10 * times).as_bytes());
    assert_eq!(done.findings, []);
}
