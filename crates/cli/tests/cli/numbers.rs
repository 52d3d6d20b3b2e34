//! Numbers that cannot be, in logs of every kind, beside a log that is all right.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::env::TestEnv;
use super::machine::{PROJECT, SESSION, assistant, json, text, user};

/// What no honest log says.
const HOSTILE: [&str; 7] = [
    "9223372036854775807",
    "4611686018427387904",
    "18446744073709551615",
    "1e308",
    "-1",
    "\"12\"",
    "1.5",
];

/// One log of each kind: those in the repository, and the smallest of each folder of real ones where they are.
#[expect(clippy::print_stderr, reason = "a test that does less has to say so")]
fn logs() -> Vec<PathBuf> {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut logs = Vec::new();
    let mut left = vec![here.join("samples")];
    while let Some(path) = left.pop() {
        if path.is_dir() {
            left.extend(
                std::fs::read_dir(path)
                    .unwrap()
                    .map(|it| it.unwrap().path()),
            );
        } else if path.extension().is_some_and(|it| it == "jsonl") {
            logs.push(path);
        }
    }
    let fixtures = here.join("../../../shared/fixtures");
    let Ok(folders) = std::fs::read_dir(&fixtures) else {
        eprintln!("skipped: no real logs at {}", fixtures.display());
        return logs;
    };
    for folder in folders
        .map(|it| it.unwrap().path())
        .filter(|it| it.is_dir())
    {
        let mut files: Vec<(u64, PathBuf)> = std::fs::read_dir(&folder)
            .unwrap()
            .map(|it| it.unwrap().path())
            .filter(|path| {
                path.extension()
                    .is_some_and(|it| it == "jsonl" || it == "json")
            })
            .map(|path| (path.metadata().unwrap().len(), path))
            .filter(|(size, _)| *size < 300_000)
            .collect();
        files.sort();
        // The smallest may say nothing of tokens.
        let middle = files.len() / 2;
        logs.extend(files.into_iter().nth(middle).map(|(_, path)| path));
    }
    logs
}

/// The text of a log with some of its numbers replaced. `None` when it has none of them.
fn with_numbers(log: &str, key: Option<&str>, number: &str) -> Option<String> {
    fn mark(value: &mut Value, of: Option<&str>, key: Option<&str>, marked: &mut bool) {
        match value {
            Value::Number(_) if key.is_none() || key == of => {
                *value = "\u{1}".into();
                *marked = true;
            }
            Value::Array(items) => items.iter_mut().for_each(|it| mark(it, of, key, marked)),
            Value::Object(fields) => {
                for (name, field) in fields {
                    mark(field, Some(name), key, marked);
                }
            }
            _ => {}
        }
    }
    let mut marked = false;
    let mut change = |text: &str| -> Option<String> {
        let mut value: Value = serde_json::from_str(text).ok()?;
        mark(&mut value, None, key, &mut marked);
        Some(value.to_string().replace("\"\\u0001\"", number))
    };
    let changed = match change(log) {
        Some(document) => document,
        None => log
            .lines()
            .map(|line| change(line).unwrap_or_else(|| line.to_owned()) + "\n")
            .collect(),
    };
    marked.then_some(changed)
}

/// The names of fields that hold numbers.
fn keys(log: &str) -> BTreeSet<String> {
    fn find(value: &Value, of: Option<&str>, found: &mut BTreeSet<String>) {
        match (value, of) {
            (Value::Number(_), Some(key)) => drop(found.insert(key.to_owned())),
            (Value::Array(items), _) => items.iter().for_each(|it| find(it, of, found)),
            (Value::Object(fields), _) => fields
                .iter()
                .for_each(|(key, field)| find(field, Some(key), found)),
            _ => {}
        }
    }
    let mut found = BTreeSet::new();
    let documents: Vec<Value> = match serde_json::from_str(log) {
        Ok(document) => vec![document],
        Err(_) => log
            .lines()
            .filter_map(|it| serde_json::from_str(it).ok())
            .collect(),
    };
    for document in &documents {
        find(document, None, &mut found);
    }
    found
}

fn good_log(env: &TestEnv) {
    let log = user(SESSION, 0, "count me") + &assistant(SESSION, 1, &text("Counted."));
    env.file(&format!("{PROJECT}/{SESSION}.jsonl"), log);
}

/// Every command works, and the tokens of the good log are what they are.
fn everything_works(env: &TestEnv) {
    for args in [
        &["list", "--all", "--limit", "0"][..],
        &["list", "--sort", "tokens"],
        &["stats"],
        &["stats", "--by", "agent", "--json"],
        &["stats", "--by", "session"],
        &["stats", "--by", "model"],
        &["doctor"],
        &["doctor", "--drift"],
        &["prune", "--older-than", "1d"],
        &["search", "counted"],
        &["show", SESSION],
        &["up", "--once"],
        &[],
        &["import"],
        &["import", "--rebuild"],
        &["list"],
    ] {
        let ran = env.run(args);
        let said = format!("{args:?}: {}\n{}", ran.stdout, ran.stderr);
        assert!(matches!(ran.code, 0 | 1), "{said}");
        assert!(
            !said.contains("overflow") && !said.contains("panicked"),
            "{said}"
        );
    }
    let rows = env.run(&["list", "--all", "--limit", "0", "--jsonl"]);
    let row = rows
        .stdout
        .lines()
        .find(|row| row.contains(SESSION))
        .unwrap();
    let row: Value = serde_json::from_str(row).unwrap();
    let tokens = &row["usage"];
    assert_eq!(
        (&tokens["input"], &tokens["output"], &tokens["cache_read"]),
        (&10.into(), &5.into(), &100.into()),
        "{row}"
    );
    for row in rows.stdout.lines() {
        let row: Value = serde_json::from_str(row).unwrap();
        for usage in ["usage", "vendor_usage"] {
            let buckets = row[usage].as_object().unwrap();
            for (bucket, tokens) in buckets {
                // A log has a few hundred calls of at most a million million tokens.
                let tokens = tokens.as_u64().unwrap_or(0);
                assert!(tokens < 1_000_000_000_000_000_000, "{bucket}: {row}");
            }
        }
    }
}

#[test]
fn logs_with_numbers_that_cannot_be_harm_nothing() {
    let env = TestEnv::new();
    good_log(&env);
    let mut made = 0;
    for (n, path) in logs().iter().enumerate() {
        let log = String::from_utf8_lossy(&std::fs::read(path).unwrap()).into_owned();
        let ending = path.extension().unwrap().to_str().unwrap();
        let mut write = |what: &str, changed: Option<String>| {
            if let Some(changed) = changed {
                made += 1;
                env.file(&format!("logs/{n}/{what}.{ending}"), changed);
            }
        };
        for (m, number) in HOSTILE.iter().enumerate() {
            write(&format!("all-{m}"), with_numbers(&log, None, number));
        }
        for (k, key) in keys(&log).iter().take(60).enumerate() {
            let number = HOSTILE[k % 3];
            write(&format!("one-{k}"), with_numbers(&log, Some(key), number));
        }
    }
    assert!(made > 50, "{made}");
    assert_eq!(env.run(&["import"]).code, 0);
    let logs = env.path("logs");
    let report = json(&env, &["import", logs.to_str().unwrap(), "--json"]);
    assert!(report["read"].as_u64() > Some(50), "{report}");
    everything_works(&env);
}

#[test]
fn one_number_that_cannot_be_is_unknown_and_named_with_its_place() {
    for number in &HOSTILE[..3] {
        let env = TestEnv::new();
        good_log(&env);
        let other = "22222222-2222-4333-8444-555555555555";
        let log = user(other, 0, "hello") + &assistant(other, 1, &text("hi"));
        let log = log.replace("\"input_tokens\":10", &format!("\"input_tokens\":{number}"));
        let path = env.file(&format!("{PROJECT}/{other}.jsonl"), log);
        let ran = env.run(&["import"]);
        assert_eq!(ran.code, 0, "{}", ran.stderr);
        let drift = json(&env, &["doctor", "--json"]);
        let drift = drift["drift"].as_array().unwrap();
        let named = drift
            .iter()
            .find(|it| it["name"] == "value:usage.input")
            .unwrap();
        let name = path.rsplit('/').next().unwrap();
        assert!(named["path"].as_str().unwrap().ends_with(name), "{named}");
        assert_eq!(named["line"], 2);
        let rows = env.run(&["list", "--jsonl"]).stdout;
        let row = rows.lines().find(|row| row.contains(other)).unwrap();
        let row: Value = serde_json::from_str(row).unwrap();
        assert_eq!(
            row["usage"]["input"],
            Value::Null,
            "unknown, not cut: {row}"
        );
        assert_eq!(row["usage"]["output"], 5);
    }
}

/// As version 0.1.0 left it: the number is in the catalogue, and nothing could be done any more.
#[test]
fn a_home_that_could_not_be_used_opens_again() {
    let env = TestEnv::new();
    good_log(&env);
    let other = "22222222-2222-4333-8444-555555555555";
    let log = user(other, 0, "hello") + &assistant(other, 1, &text("hi"));
    let log = log.replace(
        "\"input_tokens\":10",
        "\"input_tokens\":9223372036854775807",
    );
    env.file(&format!("{PROJECT}/{other}.jsonl"), log);
    assert_eq!(env.run(&["import"]).code, 0);
    {
        let catalogue =
            quipu_store::catalogue::SqliteCatalogue::open(&env.path("index.sqlite")).unwrap();
        let set =
            "update transcript set input = 9223372036854775807, cache_read = 9223372036854775807;
            update spend set input = 9223372036854775807, cache_read = 9223372036854775807;
            update source set adapters = 2;";
        catalogue.execute(set).unwrap();
    }
    for args in [&["list"][..], &["stats"], &["doctor"], &[]] {
        let ran = env.run(args);
        assert!(matches!(ran.code, 0 | 1), "{args:?}: {}", ran.stderr);
    }
    assert_eq!(env.run(&["import"]).code, 0);
    everything_works(&env);
}
