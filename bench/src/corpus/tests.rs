use std::collections::BTreeMap;

use serde_json::Value;

use super::planted::PHRASES;
use super::*;

fn all(home: &Path) -> Vec<(String, String)> {
    let logs = crate::files::logs(home).unwrap();
    let read = |path: PathBuf| {
        (
            path.display().to_string(),
            fs::read_to_string(path).unwrap(),
        )
    };
    logs.into_iter().map(|(path, _)| read(path)).collect()
}

#[test]
fn the_same_seed_gives_the_same_logs() {
    let (a, b, c) = (
        tempfile::tempdir().unwrap(),
        tempfile::tempdir().unwrap(),
        tempfile::tempdir().unwrap(),
    );
    write(a.path(), 2_000_000, 7).unwrap();
    write(b.path(), 2_000_000, 7).unwrap();
    write(c.path(), 2_000_000, 8).unwrap();
    let texts = |home: &Path| all(home).into_iter().map(|it| it.1).collect::<Vec<_>>();
    assert_eq!(texts(a.path()), texts(b.path()));
    assert_ne!(texts(a.path()), texts(c.path()));
}

/// Counts what the truth says, from the lines alone.
#[test]
fn the_truth_is_what_stands_in_the_logs() {
    let home = tempfile::tempdir().unwrap();
    let truth = write(home.path(), 12_000_000, 1).unwrap();
    let mut claude: BTreeMap<String, (Tokens, Tokens)> = BTreeMap::new();
    let (mut calls, mut planted, mut copied) = (0, BTreeMap::<String, u64>::new(), 0);
    let (mut named, mut unnamed) = (BTreeMap::new(), 0);
    for (path, text) in all(home.path()) {
        for line in text.lines() {
            let value: Value = serde_json::from_str(line).unwrap();
            // Said again for show, and no event.
            if value["payload"]["type"] != "user_message" {
                let said = line.to_lowercase();
                for phrase in &PHRASES {
                    let there = u64::from(said.contains(phrase.text));
                    *planted.entry(phrase.text.to_owned()).or_default() += there;
                }
            }
            calls += u64::from(value["payload"]["type"] == "token_count");
            let usage = &value["message"]["usage"];
            if usage.is_object() {
                let number = |name: &str| usage[name].as_u64().unwrap();
                let tokens = Tokens {
                    input: number("input_tokens"),
                    cache_read: number("cache_read_input_tokens"),
                    cache_write: number("cache_creation_input_tokens"),
                    output: number("output_tokens"),
                };
                let id = value["message"]["id"].as_str().unwrap().to_owned();
                if value["requestId"].is_string() {
                    named.insert(id.clone(), tokens.output);
                } else {
                    unnamed += tokens.output;
                }
                let known = claude.entry(id).or_insert((tokens, tokens));
                copied += u64::from(!path.contains(value["sessionId"].as_str().unwrap()));
                known.1 = tokens;
            }
        }
    }
    assert_eq!(
        (calls, claude.len() as u64),
        (truth.codex.calls, truth.claude.calls)
    );
    assert_eq!(copied, 0, "a line tells the session it stands in");
    let sum = |which: fn(&(Tokens, Tokens)) -> Tokens| {
        claude.values().map(|it| which(it).output).sum::<u64>()
    };
    assert_eq!(sum(|it| it.0), truth.claude.first_told.output);
    assert_eq!(sum(|it| it.1), truth.claude.right.output);
    assert!(truth.claude.first_told.output < truth.claude.right.output);
    let apart = named.values().sum::<u64>() + unnamed;
    assert!(unnamed > 0 && apart == truth.claude.unnamed_apart.output);
    for (phrase, sessions) in &truth.planted {
        assert_eq!(sessions.values().sum::<u64>(), planted[phrase], "{phrase}");
    }
    assert_eq!(truth.planted.len(), PHRASES.len());
}
