//! A machine with logs on it, and a store.

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use quipu_agents::Host;
use tempfile::TempDir;

use crate::Store;
use crate::catalogue::{Filter, Order, SqliteCatalogue, TranscriptRow};
use crate::import::{ImportOptions, Progress, Report};

pub(crate) struct Machine {
    pub(crate) directory: TempDir,
}

impl Machine {
    pub(crate) fn new() -> Self {
        Self {
            directory: tempfile::tempdir().unwrap(),
        }
    }

    /// A path below the user's home.
    pub(crate) fn home(&self, below: &str) -> PathBuf {
        self.directory.path().join("home").join(below)
    }

    /// Where a session of Claude Code is.
    pub(crate) fn session(&self, name: &str) -> PathBuf {
        self.home(".claude/projects/-code").join(name)
    }

    pub(crate) fn host(&self) -> Host {
        Host::new(self.home(""), |_| None)
    }

    pub(crate) fn store(&self) -> Store {
        self.store_named("quipu")
    }

    pub(crate) fn store_named(&self, name: &str) -> Store {
        Store::open(&self.directory.path().join(name)).unwrap()
    }

    /// Makes the catalogue of a store again.
    pub(crate) fn rebuild(&self, store: Store) -> (Store, Report) {
        let home = store.home().to_owned();
        drop(store);
        Store::rebuild(&home, &self.host(), &options(), &Progress::default()).unwrap()
    }

    pub(crate) fn import(&self, store: &Store) -> Report {
        store
            .import(&self.host(), &options(), &Progress::default())
            .unwrap()
    }
}

pub(crate) fn options() -> ImportOptions {
    ImportOptions {
        now: "2026-11-15T12:00:00Z".parse().unwrap(),
        agents: Vec::new(),
        dry_run: false,
        threads: 2,
        redact: None,
    }
}

pub(crate) fn write(path: &Path, contents: impl AsRef<[u8]>) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    let mut file = fs::File::create(path).unwrap();
    file.write_all(contents.as_ref()).unwrap();
}

pub(crate) fn append(path: &Path, contents: impl AsRef<[u8]>) {
    let mut file = fs::OpenOptions::new().append(true).open(path).unwrap();
    file.write_all(contents.as_ref()).unwrap();
}

/// A prompt. Ids are made as long as real ones: short ones are nobody's.
pub(crate) fn prompt(session: &str, id: &str, text: &str) -> String {
    format!(
        r#"{{"type":"user","uuid":"{id:0>36}","sessionId":"{session}","timestamp":"2026-01-02T03:04:05.000Z","cwd":"/code","message":{{"role":"user","content":"{text}"}}}}"#
    ) + "\n"
}

/// A reply of one line, of a call that cost 10 tokens in and 5 out.
pub(crate) fn reply(session: &str, id: &str, text: &str) -> String {
    format!(
        r#"{{"type":"assistant","uuid":"{id:0>36}","sessionId":"{session}","timestamp":"2026-01-02T03:04:06.000Z","message":{{"id":"msg-{id}","role":"assistant","model":"m-1","content":[{{"type":"text","text":"{text}"}}],"usage":{{"input_tokens":10,"output_tokens":5}}}}}}"#
    ) + "\n"
}

/// Everything that a list can show, copies and sub-agents as well.
pub(crate) fn rows(store: &Store) -> Vec<TranscriptRow> {
    let filter = Filter {
        subagents: true,
        duplicates: true,
        ..Filter::default()
    };
    store
        .catalogue()
        .list(&filter, Order::Oldest, None)
        .unwrap()
}

/// What a list shows by default, by run id.
pub(crate) fn listed(store: &Store) -> Vec<String> {
    let rows = store
        .catalogue()
        .list(&Filter::default(), Order::Oldest, None)
        .unwrap();
    rows.into_iter().map(|row| row.run_id).collect()
}

/// What is known, without what differs from store to store.
pub(crate) fn known(store: &Store) -> Vec<String> {
    let mut known: Vec<String> = rows(store)
        .into_iter()
        .map(|mut row| {
            row.id = 0;
            row.address.clear();
            row.original = None;
            row.version = 0;
            format!("{row:?}")
        })
        .collect();
    known.sort();
    known
}

/// All tokens that are counted.
pub(crate) fn output_tokens(store: &Store) -> u64 {
    rows(store).iter().filter_map(|row| row.usage.output).sum()
}

/// The texts of a transcript's messages.
pub(crate) fn texts(store: &Store, run_id: &str) -> Vec<String> {
    let row = store.catalogue().find(run_id).unwrap();
    let transcript = store.read(row).unwrap();
    transcript
        .events
        .iter()
        .filter(|event| !matches!(event.body, quipu_model::Body::SystemMessage(_)))
        .filter_map(|event| event.body.texts().next().map(str::to_owned))
        .collect()
}

/// Imports every log that there is: ours, and the real ones where they are there.
pub(crate) fn import_corpus(machine: &Machine, store: &Store) {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let real = crates.join("../../shared/fixtures");
    let mut all = vec![crates.join("agents/fixtures")];
    if real.is_dir() {
        all.push(real);
    } else {
        #[expect(clippy::print_stderr, reason = "a test says what it left out")]
        {
            eprintln!(
                "{} is not there: only our own logs are read",
                real.display()
            );
        }
    }
    store
        .import_paths(&machine.host(), &all, &options(), &Progress::default())
        .unwrap();
}

/// Changes the catalogue behind the back of the store.
pub(crate) fn tamper(store: &Store, sql: &str) {
    let catalogue = SqliteCatalogue::open(store.catalogue().path()).unwrap();
    catalogue.execute(sql).unwrap();
}
