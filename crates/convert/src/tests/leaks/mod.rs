//! Plays the attacker: what can be had again from a copy of what its profile removed?
//!
//! Every session there is goes through every profile, and [`attack`] looks for dates in ids, digests that can be
//! looked up, names, and what links two copies of one person. What remains is listed in `docs/profiles.md` with a
//! reason, and that list is what is allowed here.

mod attack;
mod decode;
mod planted;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use quipu_formats::normalized::Submitter;
use quipu_formats::projection::Nowhere;
use quipu_model::Header;
use quipu_redact::session::Decisions;
use quipu_redact::{Engine, Key, Profile, RuleSet};
use serde_json::Value;

use self::attack::{Facts, Leak, links};
use super::{READING, put, tell};
use crate::source::{Redacted, Removal};
use crate::{Format, Source, TargetOptions, open, write};

const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/profiles.md");

/// A profile, and what remains under it that is known to.
struct Shared {
    removal: Removal,
    allowed: BTreeSet<String>,
    /// How often each class was met, and the first of each.
    found: BTreeMap<&'static str, (u64, String)>,
    bad: Vec<String>,
}

impl Shared {
    fn new(name: &str) -> Self {
        let profile = Profile::builtin(name).unwrap();
        let engine = Engine::new(&RuleSet::builtin(), |rule| profile.wants(rule)).unwrap();
        let key = Key::from_bytes([7; 32]);
        // As `share` writes it without a submission key.
        let submitter = Submitter {
            key_id: None,
            pseudonym: Some(key.pseudonym("anon", "submitter")),
            identity_linked: Some(profile.identity_linked),
        };
        Self {
            removal: Removal {
                engine: Arc::new(engine),
                profile,
                key,
                decisions: Decisions::default(),
                submitter: Some(submitter),
            },
            allowed: allowed(name),
            found: BTreeMap::new(),
            bad: Vec::new(),
        }
    }

    fn copy(&self, source: Box<dyn Source>) -> Value {
        document(&mut Redacted::new(source, self.removal.clone()))
    }

    fn take(&mut self, of: &str, leaks: BTreeSet<Leak>) {
        for Leak { class, fact, at } in leaks {
            let example = format!("{of} {at}: {fact}");
            let entry = self.found.entry(class).or_insert((0, example.clone()));
            entry.0 += 1;
            if !self.allowed.contains(class) {
                self.bad.push(format!("{class}: {example}"));
            }
        }
    }

    /// Tells what was found, and fails on what is not listed.
    fn end(self) {
        let name = &self.removal.profile.name;
        for (class, (count, example)) in &self.found {
            let listed = if self.allowed.contains(*class) {
                "listed"
            } else {
                "LEAK"
            };
            tell(format_args!(
                "{name}: {class}: {count} ({listed}), such as {example}"
            ));
        }
        tell(format_args!("{name}: {} leaks", self.bad.len()));
        let some: Vec<&String> = self.bad.iter().take(20).collect();
        assert!(
            self.bad.is_empty(),
            "{name}: {} leaks, such as {some:#?}",
            self.bad.len()
        );
    }
}

/// The classes that docs/profiles.md says remain under a profile.
fn allowed(profile: &str) -> BTreeSet<String> {
    let page = std::fs::read_to_string(PAGE).unwrap();
    let Some((_, list)) = page.split_once("<!-- remains -->") else {
        return BTreeSet::new();
    };
    let (list, _) = list.split_once("<!-- end -->").unwrap();
    let mut allowed = BTreeSet::new();
    for line in list.lines().filter(|line| line.starts_with("| `")) {
        let cells: Vec<&str> = line.split('|').map(str::trim).collect();
        let class = cells[1].trim_matches('`').to_owned();
        if cells[2].split(',').any(|name| name.trim() == profile) {
            allowed.insert(class);
        }
    }
    allowed
}

fn document(source: &mut dyn Source) -> Value {
    let mut bytes = Vec::new();
    let out = Box::new(&mut bytes);
    write(
        source,
        Format::Normalized,
        &TargetOptions::default(),
        out,
        Box::new(Nowhere),
    )
    .unwrap();
    serde_json::from_slice(&bytes).unwrap()
}

/// The sessions of a file, with what they are in themselves; none where it is not a session.
fn originals(path: &Path) -> Vec<(Header, Value)> {
    let Ok(sources) = open(path, &READING) else {
        return Vec::new();
    };
    let each = sources.into_iter().filter_map(|mut source| {
        let header = source.header().ok()?;
        Some((header, document(&mut *source)))
    });
    each.collect()
}

fn attack(shared: &mut Shared, path: &Path, name: &str, sessions: &[(Header, Value)]) {
    let sources = open(path, &READING).unwrap();
    for (source, (header, original)) in sources.into_iter().zip(sessions) {
        let copy = shared.copy(source);
        let facts = Facts::of(header, original);
        let leaks = facts.in_copy(&copy, &shared.removal.profile);
        shared.take(name, leaks);
    }
}

/// Planted sessions, as files.
fn planted(home: &Path) -> Vec<(&'static str, PathBuf)> {
    let each = planted::all().into_iter().map(|session| {
        let path = home.join(format!("{}.jsonl", session.name));
        put(&path, session.log.as_bytes());
        (session.name, path)
    });
    each.collect()
}

/// Our own logs, and those beside the project.
fn corpus(below: &Path) -> Vec<PathBuf> {
    let mut paths = Vec::new();
    if below.is_dir() {
        super::documents::files(below, &mut paths);
    } else {
        tell(format_args!(
            "SKIPPED: found no logs at {}",
            below.display()
        ));
    }
    paths.retain(|path| {
        path.extension()
            .is_none_or(|it| it != "expected" && it != "tsv")
    });
    paths.sort();
    paths
}

fn every_log(profile: &str, below: &Path) {
    let mut shared = Shared::new(profile);
    let mut read = 0;
    for path in corpus(below) {
        let sessions = originals(&path);
        read += u64::from(!sessions.is_empty());
        if !sessions.is_empty() {
            let name = path.strip_prefix(below).unwrap().display().to_string();
            attack(&mut shared, &path, &name, &sessions);
        }
    }
    tell(format_args!(
        "{profile}: {read} logs of {}",
        below.display()
    ));
    shared.end();
}

fn planted_facts(profile: &str) {
    let home = tempfile::tempdir().unwrap();
    let mut shared = Shared::new(profile);
    let mut copies = Vec::new();
    for (name, path) in planted(home.path()) {
        let sessions = originals(&path);
        assert_eq!(sessions.len(), 1, "{name}");
        attack(&mut shared, &path, name, &sessions);
        copies.push((name, shared.copy(open(&path, &READING).unwrap().remove(0))));
    }
    // Two sessions of one person.
    for (one, other) in [(0, 1), (2, 3)] {
        let leaks = links(&copies[one].1, &copies[other].1);
        shared.take(copies[one].0, leaks);
    }
    shared.end();
}

macro_rules! profiles {
    ($($name:ident: $profile:literal),+ $(,)?) => {$(
        mod $name {
            use std::path::Path;

            #[test]
            fn planted_facts_are_not_given_back() {
                super::planted_facts($profile);
            }

            #[test]
            fn our_own_logs_give_nothing_back() {
                super::every_log($profile, &Path::new(env!("CARGO_MANIFEST_DIR")).join("../agents/fixtures"));
            }

            #[test]
            fn logs_beside_the_project_give_nothing_back() {
                let beside = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/fixtures");
                let given = std::env::var_os("QUIPU_FIXTURES");
                super::every_log($profile, &given.map_or(beside, Into::into));
            }
        }
    )+};
}

profiles! {
    local: "local",
    team: "team",
    hiring_signal: "hiring-signal",
    research: "research",
    public: "public",
    structure_only: "structure-only",
}
