//! What is true of the repository.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("../..")
        .canonicalize()
        .unwrap()
}

fn packages() -> BTreeMap<String, serde_json::Value> {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--no-deps", "--format-version=1", "--offline"])
        .current_dir(root())
        .output()
        .unwrap();
    let metadata: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let packages = metadata["packages"].as_array().unwrap();
    packages
        .iter()
        .map(|p| (p["name"].as_str().unwrap().to_owned(), p.clone()))
        .collect()
}

/// Arrows point one way: model <- exchange <- formats <- redact; exchange, formats <- record; redact, record <- submit; formats, prices <- agents; agents, redact <- convert; model <- search;
/// all of them <- store <- flow, proxy <- cli.
#[test]
fn crates_depend_in_one_direction() {
    let order = [
        "quipu-api",
        "quipu-browser",
        "quipu-files",
        "quipu-http",
        "quipu-model",
        "quipu-exchange",
        "quipu-formats",
        "quipu-redact",
        "quipu-prices",
        "quipu-agents",
        "quipu-convert",
        "quipu-record",
        "quipu-submit",
        "quipu-search",
        "quipu-store",
        "quipu-proxy",
        "quipu-flow",
        "quipu",
    ];
    for (name, package) in packages() {
        let Some(own) = order.iter().position(|other| *other == name) else {
            continue;
        };
        for dependency in package["dependencies"].as_array().unwrap() {
            let on = dependency["name"].as_str().unwrap();
            // Tests of a crate may want its own testkit, or one of a crate above it.
            let for_tests = dependency["kind"] == "dev"
                && dependency["features"]
                    .as_array()
                    .unwrap()
                    .iter()
                    .any(|it| it == "testkit");
            if on == name || for_tests {
                continue;
            }
            if let Some(other) = order.iter().position(|other| *other == on) {
                assert!(other < own, "{name} must not depend on {on}");
            }
        }
    }
}

/// An agent that records itself does not build every format.
#[test]
fn the_recorder_needs_no_more_than_the_model_and_its_own_format() {
    let packages = packages();
    let needed = packages["quipu-record"]["dependencies"].as_array().unwrap();
    let needed = needed
        .iter()
        .filter(|it| it["kind"].is_null() && it["optional"] == false);
    let needed: Vec<&str> = needed.map(|it| it["name"].as_str().unwrap()).collect();
    let own = needed.iter().filter(|name| name.starts_with("quipu"));
    let own: Vec<&&str> = own.collect();
    assert_eq!(own, [&"quipu-exchange", &"quipu-model"]);
    assert!(needed.len() <= 7, "{needed:?}");
}

/// Rust files of a directory and what they say, but for tests. Names are relative to the directory.
fn sources(directory: &Path) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    let mut left = vec![directory.to_owned()];
    while let Some(at) = left.pop() {
        for entry in std::fs::read_dir(&at).unwrap() {
            let path = entry.unwrap().path();
            let name = path.strip_prefix(directory).unwrap().to_str().unwrap();
            if path.is_dir() {
                left.push(path);
            } else if path.extension().is_some_and(|it| it == "rs") && !name.contains("tests") {
                found.insert(name.to_owned(), std::fs::read_to_string(&path).unwrap());
            }
        }
    }
    found
}

/// SQL is behind the catalogue and the index of traces, so that another database can take their place. Agents' own
/// databases are read from private copies.
#[test]
fn the_store_uses_its_databases_in_two_folders_only() {
    let store = sources(&root().join("crates/store/src"));
    let allowed = ["catalogue/", "traces/index/", "import/database.rs"];
    let using: Vec<&String> = store
        .iter()
        .filter(|(_, text)| text.contains("rusqlite"))
        .map(|(name, _)| name)
        .filter(|name| !allowed.iter().any(|allowed| name.starts_with(allowed)))
        .collect();
    assert!(using.is_empty(), "rusqlite is used in {using:?}");
    for allowed in allowed {
        let there = store
            .iter()
            .any(|(name, text)| name.starts_with(allowed) && text.contains("rusqlite"));
        assert!(there, "{allowed} need not be allowed any more");
    }
}

/// The files of a crate in which one of these words is.
fn using(files: &BTreeMap<String, String>, words: &[&str]) -> Vec<String> {
    let has = |text: &String| words.iter().any(|word| text.contains(word));
    let found = files.iter().filter(|(_, text)| has(text));
    found.map(|(name, _)| name.clone()).collect()
}

/// The command asks the store, and not what the store is made of.
#[test]
fn the_command_asks_the_store_only() {
    let cli = sources(&root().join("crates/cli/src"));
    let inner = [
        "rusqlite",
        "tantivy",
        ".catalogue()",
        ".archive()",
        "SqliteCatalogue",
        "TantivyIndex",
        "Archive::open",
    ];
    assert_eq!(using(&cli, &inner), [] as [String; 0]);
}

/// Adapters are given bytes, a private copy of a database, or a tree of files to gather from: only those that gather
/// open files.
#[test]
fn adapters_open_no_files() {
    let agents = sources(&root().join("crates/agents/src"));
    let opening = using(&agents, &["File::open", "fs::read", "OpenOptions"]);
    let others: Vec<&String> = opening
        .iter()
        .filter(|name| !name.ends_with("gather.rs") && !GATHERING.contains(&name.as_str()))
        .collect();
    assert!(others.is_empty(), "files are opened in {others:?}");
    for name in GATHERING {
        let opens = opening.iter().any(|other| other == name);
        assert!(opens, "{name} need not be allowed any more");
    }
}

/// What gathers sessions from files under another name, and what only tests use.
const GATHERING: [&str; 7] = [
    "claude/history.rs",
    "corpus.rs",
    "fields.rs",
    "fixtures.rs",
    "head.rs",
    "inspect/archive.rs",
    "opencode/tree.rs",
];

/// A reason that is not about input or output has an error of its own.
#[test]
fn errors_of_input_and_output_are_about_that() {
    for (of, allowed) in [
        ("crates/store/src", &["traces/put.rs"][..]),
        (
            "crates/cli/src",
            &[
                "commands/convert/work.rs",
                "commands/emit.rs",
                "commands/share/write.rs",
            ],
        ),
    ] {
        let found = using(&sources(&root().join(of)), &["Error::other"]);
        assert_eq!(found, allowed, "{of}");
    }
}

/// The crate table of ARCHITECTURE.md is what the crates say of themselves.
#[test]
fn the_architecture_document_describes_every_crate() {
    let text = std::fs::read_to_string(root().join("ARCHITECTURE.md")).unwrap();
    for (name, package) in packages() {
        let description = package["description"].as_str().unwrap_or_default();
        let row = format!("`{name}` | {description} |");
        assert!(
            !description.is_empty() && text.contains(&row),
            "no row: | … | {row}"
        );
    }
}

/// A test file that no `mod` names would never run.
#[test]
fn no_test_file_is_forgotten() {
    let directory = root().join("crates/cli/tests/cli");
    let modules = std::fs::read_to_string(directory.join("mod.rs")).unwrap();
    for entry in std::fs::read_dir(directory).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        let stem = name.strip_suffix(".rs").unwrap_or(&name);
        assert!(
            stem == "mod" || modules.contains(&format!("mod {stem};\n")),
            "{name}"
        );
    }
}

/// The commands of the README's first screen are those that are run here.
#[test]
fn the_readme_and_ci_say_the_same() {
    let readme = std::fs::read_to_string(root().join("README.md")).unwrap();
    let ci = std::fs::read_to_string(root().join(".ci/run")).unwrap();
    let first_screen: Vec<&str> = readme.lines().take(40).collect();
    for command in ["cargo run --release -- up", "cargo xtask test"] {
        assert!(
            first_screen.iter().any(|line| line.trim() == command),
            "{command}"
        );
    }
    assert!(ci.contains("cargo xtask test"));
}
