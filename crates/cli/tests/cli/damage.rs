//! Every kind of file of a home, damaged in every way: `doctor` sees it, what it says to do heals it or says what is
//! lost, and every other session can still be read.
//!
//! The places are random. `QUIPU_DAMAGE_SEED` repeats a run, `QUIPU_DAMAGES` sets how many damages each kind gets.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use quipu_store::Store;
use quipu_store::catalogue::{Filter, Order};

use super::env::{Ran, TestEnv};
use super::machine::{PROJECT, SESSION, assistant, database, furnish, text, user};

/// A generator of numbers that gives the same ones for the same seed.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0.wrapping_mul(0x9E37_79B9_7F4A_7C15)
    }

    fn below(&mut self, end: usize) -> usize {
        usize::try_from(self.next() >> 16).unwrap() % end.max(1)
    }
}

const HOWS: [&str; 6] = ["zeroed", "flipped", "cut", "deleted", "garbage", "empty"];

/// Damages a file. Gives what was done to it.
fn damage(path: &Path, how: &str, random: &mut Random) -> String {
    let mut bytes = std::fs::read(path).unwrap();
    if bytes.is_empty() {
        // A lock holds nothing; then it is damage that something is in it.
        bytes.push(b'x');
    }
    let at = random.below(bytes.len());
    match how {
        "zeroed" => {
            let page = (at / 4096 * 4096)..(at / 4096 * 4096 + 4096).min(bytes.len());
            bytes[page].fill(0);
        }
        "flipped" => bytes[at] ^= 1 << random.below(8),
        "cut" => bytes.truncate(at),
        "garbage" => bytes
            .iter_mut()
            .for_each(|byte| *byte = random.next().to_le_bytes()[3]),
        "empty" => bytes.clear(),
        _ => {
            std::fs::remove_file(path).unwrap();
            return format!("{} {how}", path.display());
        }
    }
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o600);
    std::fs::set_permissions(path, mode).unwrap();
    std::fs::write(path, bytes).unwrap();
    format!("{} {how} at {at}", path.display())
}

/// Everything below a directory, copied.
fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o700);
    std::fs::set_permissions(to, mode).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let to = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy(&entry.path(), &to);
        } else {
            std::fs::copy(entry.path(), to).unwrap();
        }
    }
}

fn files(below: &Path, found: &mut Vec<PathBuf>) {
    let Ok(entries) = std::fs::read_dir(below) else {
        return;
    };
    for entry in entries {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files(&path, found);
        } else {
            found.push(path);
        }
    }
    found.sort();
}

/// A home with sessions, sub-agents, a database, a picture, and a session that is nowhere else any more.
struct Bench {
    env: TestEnv,
}

impl Bench {
    fn new() -> Self {
        let env = TestEnv::new();
        furnish(&env);
        drop(database(&env));
        let gone = "77777777-2222-4333-8444-555555555555";
        let only_here = env.file(
            &format!("{PROJECT}/{gone}.jsonl"),
            user(gone, 40, "only here") + &assistant(gone, 41, &text("and nowhere else")),
        );
        let picture = "88888888-2222-4333-8444-555555555555";
        let image = r#"{"type":"image","source":{"type":"base64","media_type":"image/png","data":"aGVsbG8gd29ybGQ="}}"#;
        let log = assistant(picture, 44, &text("seen"));
        let shown =
            user(picture, 43, "x").replace(r#""content":"x""#, &format!(r#""content":[{image}]"#));
        env.file(&format!("{PROJECT}/{picture}.jsonl"), shown + &log);
        let bench = Self { env };
        assert_eq!(bench.run("home", &["import"]).code, 0);
        std::fs::remove_file(only_here).unwrap();
        std::fs::write(
            bench.path("home/config.toml"),
            "[stats]\nzone = \"UTC\"\n[budget]\nday = 20\n",
        )
        .unwrap();
        // One more session, whose rows are still in the journal: as a process leaves it that was killed.
        let store = Store::open(&bench.path("home")).unwrap();
        let last = "66666666-2222-4333-8444-555555555555";
        bench.env.file(
            &format!("{PROJECT}/{last}.jsonl"),
            user(last, 50, "the last") + &assistant(last, 51, &text("of all")),
        );
        assert_eq!(bench.run("home", &["import"]).code, 0);
        copy(&bench.path("home"), &bench.path("pristine"));
        drop(std::fs::remove_file(
            bench.path("pristine/index.sqlite-shm"),
        ));
        drop(store);
        assert!(
            bench
                .path("pristine/index.sqlite-wal")
                .metadata()
                .unwrap()
                .len()
                > 0
        );
        bench
    }

    fn path(&self, name: &str) -> PathBuf {
        self.env.path(name)
    }

    fn run(&self, home: &str, args: &[&str]) -> Ran {
        let home = self.path(home);
        let mut all = vec!["--home", home.to_str().unwrap()];
        all.extend(args);
        self.env.run(&all)
    }

    /// A home as it was before anything was damaged.
    fn restore(&self) {
        drop(std::fs::remove_dir_all(self.path("home")));
        copy(&self.path("pristine"), &self.path("home"));
    }

    /// Everything that can be asked of a home, by session. What cannot be answered is an answer, too.
    fn answers(&self) -> BTreeMap<String, String> {
        let mut answers = BTreeMap::new();
        let store = match Store::open_existing(&self.path("home")) {
            Ok(Some(store)) => store,
            other => {
                answers.insert("home".to_owned(), format!("{:?}", other.is_ok()));
                return answers;
            }
        };
        let all = Filter {
            subagents: true,
            duplicates: true,
            ..Filter::default()
        };
        let rows = store.catalogue().list(&all, Order::Oldest, None);
        for mut row in rows.unwrap_or_default() {
            row.id = 0;
            let id = row.run_id.clone();
            let shown = format!("{row:?}");
            let read = match store.read(row) {
                Ok(read) => format!("{:?} {:?}", read.session, read.events),
                Err(error) => format!("unreadable: {error}"),
            };
            answers.insert(id, format!("{shown}\n{read}"));
        }
        for blob in store.blobs().iter() {
            let Ok(blob) = blob else {
                answers.insert("blobs".to_owned(), "unlisted".to_owned());
                continue;
            };
            let read = store.blobs().get(&blob).map(|bytes| bytes.len());
            answers.insert(format!("blob {blob}"), format!("{:?}", read.ok()));
        }
        drop(store);
        for query in ["look", "\"only here\"", "path:demo/a.rs"] {
            let ran = self.run("home", &["search", query, "--json", "--limit", "0"]);
            answers.insert(
                format!("search {query}"),
                format!("{} {}", ran.code, ran.stdout),
            );
        }
        answers
    }

    /// The files of one kind.
    fn of_kind(&self, kind: &str) -> Vec<PathBuf> {
        let mut found = Vec::new();
        match kind {
            "catalogue" => found.push(self.path("home/index.sqlite")),
            "journal" => found.push(self.path("home/index.sqlite-wal")),
            "chunk" => files(&self.path("home/archive/chunks"), &mut found),
            "manifest" => files(&self.path("home/archive/sources"), &mut found),
            "blob" => files(&self.path("home/blobs"), &mut found),
            "search index" => {
                files(&self.path("home/search"), &mut found);
                found.retain(|path| path.extension().is_none_or(|it| it != "lock"));
            }
            "settings" => found.push(self.path("home/config.toml")),
            _ => {
                for lock in ["import.lock", "archive/lock", "archive/README.txt"] {
                    found.push(self.path("home").join(lock));
                }
            }
        }
        found
    }
}

#[derive(Debug, Default)]
struct Tally {
    damages: u32,
    harmless: u32,
    seen: u32,
    healed: u32,
    said_lost: u32,
}

/// What `doctor` says to do, as commands. Files that are to be moved away or deleted are.
fn remedies(bench: &Bench, said: &str) -> Vec<Vec<&'static str>> {
    let mut commands = Vec::new();
    if said.contains("move the file away") {
        drop(std::fs::remove_file(bench.path("home/config.toml")));
        commands.push(vec!["list"]);
    }
    if said.contains("delete the file") {
        std::fs::remove_file(bench.path("home/index.sqlite")).unwrap();
    }
    if said.contains("`quipu import --rebuild`") {
        commands.push(vec!["import", "--rebuild"]);
    } else if said.contains("`quipu import`") {
        commands.push(vec!["import"]);
    }
    commands
}

/// One damage: is it seen, and does what is said about it help?
fn suffer(bench: &Bench, what: &str, before: &BTreeMap<String, String>, tally: &mut Tally) {
    tally.damages += 1;
    let doctor = bench.run("home", &["doctor", "--check"]);
    let said = format!("{}{}", doctor.stdout, doctor.stderr);
    let about = format!("{what}\n{said}");
    assert!(!said.contains("panicked"), "{about}");
    if doctor.code == 0 {
        // Then every question has the same answer as before.
        let now = bench.answers();
        assert_eq!(now, *before, "not seen: {about}");
        tally.harmless += 1;
        return;
    }
    assert_eq!(doctor.code, 1, "{about}");
    tally.seen += 1;
    let commands = remedies(bench, &said);
    assert!(!commands.is_empty(), "nothing to do about it: {about}");
    let mut told = String::new();
    for command in commands {
        let ran = bench.run("home", &command);
        told.extend([format!("{command:?}: "), ran.stdout, ran.stderr]);
        assert!(matches!(ran.code, 0 | 1), "{about}\n{told}");
    }
    let after = bench.run("home", &["doctor", "--check"]);
    let left = format!("{about}\n{told}\n{}", after.stdout);
    let again = remedies(bench, &after.stdout);
    if after.code == 1 && !again.is_empty() {
        // What import cannot heal it says, and what takes it off the list.
        for command in again {
            let ran = bench.run("home", &command);
            told.extend([format!("{command:?}: "), ran.stdout, ran.stderr]);
        }
        let after = bench.run("home", &["doctor", "--check"]);
        assert_eq!(after.code, 0, "{left}\n{told}\n{}", after.stdout);
    } else {
        assert_eq!(after.code, 0, "{left}");
    }
    let now = bench.answers();
    let differ: Vec<&String> = before
        .iter()
        .filter(|(id, answer)| now.get(*id) != Some(answer))
        .map(|(id, _)| id)
        .collect();
    if differ.is_empty() {
        tally.healed += 1;
        return;
    }
    assert!(told.contains("lost"), "{differ:?} and nothing said: {left}");
    for id in differ {
        // What was said of a lost session is not found either.
        let path = before[id]
            .split("path: \"")
            .nth(1)
            .and_then(|it| it.split('"').next());
        let named = path.is_some_and(|path| {
            told.contains(&path.replace(bench.env.dir.path().to_str().unwrap(), "HOME"))
        });
        assert!(
            id.starts_with("search ") || id.starts_with("blob ") || named,
            "{id}: {left}"
        );
    }
    tally.said_lost += 1;
}

#[test]
#[expect(
    clippy::print_stderr,
    reason = "what was damaged is part of the result"
)]
fn whatever_is_damaged_is_seen_and_healed_or_said_to_be_lost() {
    let number = |name: &str| {
        std::env::var(name)
            .ok()
            .and_then(|it| it.parse::<u64>().ok())
    };
    let seed = number("QUIPU_DAMAGE_SEED").unwrap_or_else(|| u64::from(std::process::id()) | 1);
    let each = number("QUIPU_DAMAGES").unwrap_or(6);
    eprintln!("QUIPU_DAMAGE_SEED={seed} QUIPU_DAMAGES={each}");
    let mut random = Random(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1);
    let bench = Bench::new();
    bench.restore();
    let before = bench.answers();
    assert!(
        before.contains_key(SESSION) && before.len() > 10,
        "{:?}",
        before.keys()
    );
    let healthy = bench.run("home", &["doctor", "--check"]);
    assert_eq!(healthy.code, 0, "{}", healthy.stdout);
    let mut table = BTreeMap::new();
    for kind in [
        "catalogue",
        "journal",
        "chunk",
        "manifest",
        "blob",
        "search index",
        "settings",
        "locks",
    ] {
        let tally: &mut Tally = table.entry(kind).or_default();
        for n in 0..each {
            bench.restore();
            let found = bench.of_kind(kind);
            let file = &found[random.below(found.len())];
            let how = HOWS[usize::try_from(n).unwrap() % HOWS.len()];
            let what = damage(file, how, &mut random);
            suffer(&bench, &format!("seed {seed}: {what}"), &before, tally);
        }
    }
    eprintln!(
        "{:14} {:>8} {:>9} {:>5} {:>7} {:>10}",
        "file", "damages", "harmless", "seen", "healed", "said lost"
    );
    for (kind, it) in table {
        eprintln!(
            "{kind:14} {:>8} {:>9} {:>5} {:>7} {:>10}",
            it.damages, it.harmless, it.seen, it.healed, it.said_lost
        );
    }
}
