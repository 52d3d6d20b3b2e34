//! What is made of logs holds none of their secrets.

mod exports;
mod older;
mod plant;

use std::collections::{BTreeMap, HashSet};
use std::fmt::Write as _;
use std::path::Path;

use self::plant::{Planted, Samples, below, plant};
use super::env::TestEnv;

/// What holds originals, which are kept as they are, and the events that adapters made of them.
const ORIGINALS: [&str; 5] = ["archive", "blobs", "events", "traces", "transcripts"];

/// Where secrets were found, and which.
#[derive(Default)]
struct Sightings(BTreeMap<String, HashSet<usize>>);

impl Sightings {
    fn look(&mut self, planted: &Planted, place: &str, bytes: &[u8]) {
        let found = self.0.entry(place.to_owned()).or_default();
        planted.found_in(bytes, found);
    }

    /// Runs a command and looks at what it says.
    fn run(&mut self, planted: &Planted, env: &TestEnv, args: &[&str]) -> String {
        let ran = env.run(args);
        assert!((0..=1).contains(&ran.code), "{args:?}: {}", ran.stderr);
        self.look(planted, args[0], ran.stdout.as_bytes());
        self.look(planted, args[0], ran.stderr.as_bytes());
        ran.stdout
    }

    /// Looks at every file of the home but originals, and at every word of the search index. Gives how many words
    /// that has.
    fn home(&mut self, planted: &Planted, env: &TestEnv) -> usize {
        let mut left = below(env.dir.path());
        while let Some(path) = left.pop() {
            let name = path.strip_prefix(env.dir.path()).unwrap();
            let top = name.iter().next().unwrap().to_str().unwrap();
            if ORIGINALS.contains(&top) || top == "logs" {
                continue;
            }
            if path.is_dir() {
                left.extend(below(&path));
            } else {
                self.look(
                    planted,
                    &format!("file {top}"),
                    &std::fs::read(&path).unwrap(),
                );
            }
        }
        self.index(planted, &env.path("search"))
    }

    fn index(&mut self, planted: &Planted, path: &Path) -> usize {
        let found = self.0.entry("words of the index".to_owned()).or_default();
        let words = Self::words(path);
        for word in &words {
            if let Ok(word) = std::str::from_utf8(word) {
                found.extend(planted.found_as(word));
            }
            planted.found_in(word, found);
        }
        words.len()
    }

    /// Every word of a search index.
    fn words(path: &Path) -> Vec<Vec<u8>> {
        let index = tantivy::Index::open_in_dir(path).unwrap();
        let searcher = index.reader().unwrap().searcher();
        let mut words = Vec::new();
        for segment in searcher.segment_readers() {
            for (field, entry) in index.schema().fields() {
                if entry.is_indexed() {
                    let terms = segment.inverted_index(field).unwrap();
                    let mut stream = terms.terms().stream().unwrap();
                    while stream.advance() {
                        words.push(stream.key().to_owned());
                    }
                }
            }
        }
        words
    }

    /// A table of what was found where, with examples; empty when nothing was.
    fn table(&self, planted: &Planted) -> String {
        let mut table = String::new();
        for (place, found) in &self.0 {
            if found.is_empty() {
                continue;
            }
            let mut fields: Vec<&str> = found.iter().map(|n| &*planted.fields[*n]).collect();
            fields.sort_unstable();
            fields.dedup();
            let all = planted.fields.len();
            writeln!(table, "{place}: {} of {all}", found.len()).unwrap();
            let most = if std::env::var_os("QUIPU_PLANT_SHOW").is_some() {
                usize::MAX
            } else {
                12
            };
            for field in fields.iter().take(most) {
                writeln!(table, "    {field}").unwrap();
            }
        }
        table
    }
}

/// Every field of every dialect's log holds secrets of many rules, each a different one. Default runs take one field
/// in three; `QUIPU_PLANT=all` takes all of them.
#[test]
fn no_secret_of_a_log_is_in_what_is_made_of_it() {
    let env = TestEnv::new();
    let all = std::env::var("QUIPU_PLANT").is_ok_and(|it| it == "all");
    let mut samples = Samples::new(0);
    let planted = plant(
        &mut samples,
        |nth| all || nth % 3 == 0,
        |name, text| {
            env.file(&format!("logs{name}"), text);
        },
    );
    let logs = env.path("logs");
    let logs = logs.to_str().unwrap();
    let rules = samples.rules.len();
    assert!(
        rules * 10 > samples.all_rules() * 8,
        "{rules} of {} rules",
        samples.all_rules()
    );
    let mut seen = Sightings::default();
    seen.run(&planted, &env, &["import", "--json", logs]);
    seen.run(&planted, &env, &["import", logs]);
    let words = seen.home(&planted, &env);
    assert!(words > 1000, "{words} words in the index");
    let ids = listed(&seen.run(
        &planted,
        &env,
        &["list", "--all", "--limit", "0", "--jsonl"],
    ));
    seen.run(&planted, &env, &["list", "--all", "--limit", "0"]);
    for by in ["tool", "model", "project", "branch", "session"] {
        seen.run(&planted, &env, &["stats", "--by", by, "--limit", "0"]);
        seen.run(&planted, &env, &["stats", "--by", by, "--json"]);
    }
    for query in [
        "role:user",
        "role:assistant",
        "role:tool_call",
        "role:note",
        "has:error",
    ] {
        let args = [
            "search",
            query,
            "--copies",
            "--limit",
            "2000",
            "--json",
            "--context",
            "1",
        ];
        seen.run(&planted, &env, &args);
    }
    for args in [&["doctor"][..], &["doctor", "--drift", "--json"]] {
        seen.run(&planted, &env, args);
    }
    // All of them: which ones a sample took would depend on their order.
    for id in &ids {
        seen.run(&planted, &env, &["log", id]);
        if all {
            seen.run(&planted, &env, &["tree", id]);
            seen.run(&planted, &env, &["log", "--json", id]);
        }
    }
    let prune = ["prune", "--larger-than", "1b"];
    seen.run(&planted, &env, &prune);
    seen.run(&planted, &env, &["prune", "--larger-than", "1b", "--json"]);
    seen.run(&planted, &env, &["prune", "--larger-than", "1b", "--yes"]);
    seen.home(&planted, &env);
    let table = seen.table(&planted);
    assert!(table.is_empty(), "found:\n{table}");
}

fn listed(jsonl: &str) -> Vec<String> {
    let id = |line: &str| {
        let row: serde_json::Value = serde_json::from_str(line).unwrap();
        row["run_id"].as_str().unwrap().to_owned()
    };
    jsonl.lines().map(id).collect()
}
