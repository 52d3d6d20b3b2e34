//! Homes of earlier versions, which put titles down as they were.

use std::path::{Path, PathBuf};

use quipu_redact::rule::expand;
use quipu_search::Document;
use quipu_search::index::{Index as _, TantivyIndex};
use quipu_store::catalogue::SqliteCatalogue;

use super::plant::below;
use super::{ORIGINALS, Sightings};
use crate::cli::env::TestEnv;
use crate::cli::machine::{PROJECT, SESSION, assistant, call, result, text, user};

/// The home of an earlier version: a secret in titles, paths and names, in the words of the index, and in the receipt of
/// what was removed.
fn older_home(env: &TestEnv, secret: &str) {
    let prompt = format!("use {secret} for it");
    let log = user(SESSION, 0, &prompt) + &assistant(SESSION, 1, &text("I will."));
    env.file(&format!("{PROJECT}/{SESSION}.jsonl"), log);
    assert_eq!(env.run(&["import"]).code, 0);
    let catalogue = SqliteCatalogue::open(&env.path("index.sqlite")).unwrap();
    let set = format!(
        "update transcript set title = 'use {secret} for it', cwd = '/w/{secret}', branch = '{secret}';
         insert into tool_use (transcript, slot, subagent, tool, calls, failures)
             select id, 0, '', '{secret}', 1, 0 from transcript;
         update source set adapters = 3, checkpoint = cast('{secret}' as blob);"
    );
    catalogue.execute(&set).unwrap();
    drop(catalogue);
    let index = TantivyIndex::open(&env.path("search")).unwrap().unwrap();
    let mark = index.mark().unwrap().unwrap();
    let mut part = index.parts(16 << 20).begin().unwrap();
    part.add(Document {
        pass: 1,
        seq: 9,
        text: secret.to_owned(),
        paths: format!("/w/{secret}"),
        ..Document::default()
    })
    .unwrap();
    let mut writer = index.writer().unwrap();
    writer.add(part.write().unwrap()).unwrap();
    writer.commit(&mark).unwrap();
    writer.finish().unwrap();
    let receipt = serde_json::json!({
        "filters": {"project": null},
        "removed": [{"run_id": "gone", "title": format!("use {secret} for it"), "project": format!("/w/{secret}")}],
    });
    env.file("receipts/prune-20260101T000000Z.json", receipt.to_string());
}

/// The files of a home, originals left out, that hold a text, and whether the index has it as a word.
fn holding(env: &TestEnv, secret: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut left = below(env.dir.path());
    while let Some(path) = left.pop() {
        let name = path.strip_prefix(env.dir.path()).unwrap();
        let top = name.iter().next().unwrap().to_str().unwrap();
        if ORIGINALS.contains(&top) || top == "person" {
            continue;
        }
        if path.is_dir() {
            left.extend(below(&path));
        } else if contains(&std::fs::read(&path).unwrap(), secret) {
            found.push(name.to_owned());
        }
    }
    let words = Sightings::words(&env.path("search"));
    let mut parts = Vec::new();
    quipu_search::words::each(secret, |word| parts.push(word.text.to_owned()));
    let longest = parts.iter().max_by_key(|word| word.len()).unwrap();
    if words.iter().any(|word| word == longest.as_bytes()) {
        found.push(Path::new("words of the index").to_owned());
    }
    found.sort();
    found
}

fn contains(bytes: &[u8], text: &str) -> bool {
    bytes
        .windows(text.len())
        .any(|window| window == text.as_bytes())
}

fn mended_by(args: &[&str]) {
    let env = TestEnv::new();
    let secret = expand("ghp_{alnum:36}", 5).unwrap().text;
    older_home(&env, &secret);
    let before = holding(&env, &secret);
    for place in [
        "index.sqlite",
        "receipts/prune-20260101T000000Z.json",
        "words of the index",
    ] {
        assert!(before.contains(&PathBuf::from(place)), "{before:?}");
    }
    let ran = env.run(&["doctor"]);
    assert_eq!(ran.code, 1, "{}", ran.stderr);
    let said = ran.stdout + &ran.stderr;
    assert!(said.contains("read by an earlier version"), "{said}");
    let ran = env.run(args);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert_eq!(holding(&env, &secret), Vec::<PathBuf>::new());
    let ran = env.run(&["list"]);
    assert!(ran.stdout.contains("use [REDACTED:"), "{}", ran.stdout);
    let ran = env.run(&["doctor"]);
    assert_eq!(ran.code, 0, "{}{}", ran.stdout, ran.stderr);
    let receipt = env.path("receipts/prune-20260101T000000Z.json");
    let mode = std::os::unix::fs::MetadataExt::mode(&receipt.metadata().unwrap());
    assert_eq!(mode & 0o777, 0o600);
}

#[test]
fn a_rebuild_masks_what_an_earlier_version_put_down() {
    mended_by(&["import", "--rebuild"]);
}

#[test]
fn an_import_masks_what_an_earlier_version_put_down() {
    mended_by(&["import"]);
}

/// Where reading stopped is put down as well, with what the reader then knew.
#[test]
fn a_log_that_grows_is_masked_as_one_that_is_read_at_once() {
    let secret = expand("ghp_{alnum:36}", 6).unwrap().text;
    let title = format!(
        r#"{{"type":"custom-title","customTitle":"use {secret} now","sessionId":"{SESSION}"}}"#
    );
    let tool = call("t1", &format!("mcp__{secret}"), &serde_json::json!({}));
    let first = [
        user(SESSION, 0, "hello"),
        format!("{title}\n"),
        assistant(SESSION, 1, &tool),
    ]
    .concat()
    .replace("/w/demo", &format!("/w/{secret}"));
    let more = result(SESSION, 2, "t1", "done", "") + &assistant(SESSION, 3, &text("Done."));
    let figures = |pieces: &[&str]| {
        let env = TestEnv::new();
        let mut log = String::new();
        for piece in pieces {
            log += piece;
            env.file(&format!("{PROJECT}/{SESSION}.jsonl"), &log);
            assert_eq!(env.run(&["import"]).code, 0);
            assert_eq!(holding(&env, &secret), Vec::<PathBuf>::new());
        }
        let mut rows = crate::cli::machine::figures(&env, "");
        assert_eq!(rows.len(), 1);
        let row = rows.remove(0);
        assert_eq!(row["title"], "use [REDACTED:github] now", "{row}");
        assert_eq!(row["cwd"], "/w/[REDACTED:github]", "{row}");
        (
            row["events"].clone(),
            row["tool_calls"].clone(),
            row["usage"].clone(),
        )
    };
    assert_eq!(
        figures(&[&first, &more]),
        figures(&[&format!("{first}{more}")])
    );
}
