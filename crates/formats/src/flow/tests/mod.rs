//! What the tests of run directories share.

mod bad_days;
mod generations;
mod golden;
mod honest;
mod round_trip;
mod runs;
mod shapes;
mod step_files;

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::rc::Rc;

use quipu_model::{Event, Header};

pub(super) use self::golden::session as golden_session;
use super::{FlowOptions, Rule, Run};
use crate::loss::Loss;
use crate::projection::Beside;

/// A run directory that is made up.
pub(super) struct Dir {
    folder: tempfile::TempDir,
    run: String,
}

impl Dir {
    /// An empty one, with a name that fits the run.
    pub(super) fn new(run: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join(run)).unwrap();
        Self {
            folder,
            run: run.to_owned(),
        }
    }

    pub(super) fn path(&self) -> PathBuf {
        self.folder.path().join(&self.run)
    }

    /// A directory beside the run.
    pub(super) fn outside(&self) -> &Path {
        self.folder.path()
    }

    pub(super) fn put(&self, name: &str, bytes: impl AsRef<[u8]>) -> &Self {
        let path = self.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        let mut file = std::fs::File::create(path).unwrap();
        file.write_all(bytes.as_ref()).unwrap();
        self
    }

    pub(super) fn text(&self, name: &str) -> String {
        std::fs::read_to_string(self.path().join(name)).unwrap()
    }

    /// Changes a file.
    pub(super) fn edit(&self, name: &str, from: &str, to: &str) -> &Self {
        let text = self.text(name);
        assert!(text.contains(from), "{name} has no {from}: {text}");
        self.put(name, text.replacen(from, to, 1))
    }

    pub(super) fn remove(&self, name: &str) -> &Self {
        std::fs::remove_file(self.path().join(name)).unwrap();
        self
    }

    pub(super) fn read(&self) -> (Run, Vec<Event>) {
        let mut events = Vec::new();
        let run = super::read(&self.path(), &mut |event| events.push(event)).unwrap();
        (run, events)
    }

    /// The rules that are broken.
    pub(super) fn broken(&self) -> Vec<Rule> {
        let report = super::verify(&self.path()).unwrap();
        report.findings.iter().map(|finding| finding.rule).collect()
    }
}

/// Keeps files in memory.
#[derive(Default, Clone)]
pub(super) struct Files(pub(super) Rc<RefCell<BTreeMap<String, Vec<u8>>>>);

impl Beside for Files {
    fn put(&mut self, name: &str, bytes: &[u8]) -> io::Result<bool> {
        let mut files = self.0.borrow_mut();
        assert!(!files.contains_key(name), "{name} is written twice");
        files.insert(name.to_owned(), bytes.to_vec());
        Ok(true)
    }
}

/// Writes a session.
pub(super) fn write(
    header: &Header,
    events: &[Event],
    options: &FlowOptions,
) -> (BTreeMap<String, Vec<u8>>, Loss, String) {
    let files = Files::default();
    let mut list = Vec::new();
    let loss = {
        let beside = Box::new(files.clone());
        let mut writer = super::writer(header, options, Box::new(&mut list), beside).unwrap();
        for event in events {
            writer.event(event).unwrap();
        }
        writer.finish().unwrap()
    };
    let files = files.0.borrow().clone();
    (files, loss, String::from_utf8(list).unwrap())
}

/// Events as lines.
pub(super) fn lines(events: &[Event]) -> String {
    let mut text = Vec::new();
    for event in events {
        quipu_exchange::encode_log(event, &mut text);
    }
    String::from_utf8(text).unwrap()
}

/// Compares with a file beside the tests, or writes it anew (`QUIPU_BLESS=1`).
pub(super) fn golden(name: &str, text: &str) {
    let path = Path::new(concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/src/flow/tests/golden"
    ))
    .join(name);
    if std::env::var_os("QUIPU_BLESS").is_some_and(|bless| bless == "1") {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        let mut file = std::fs::File::create(&path).unwrap();
        file.write_all(text.as_bytes()).unwrap();
    }
    let kept = std::fs::read_to_string(&path).unwrap_or_default();
    assert_eq!(
        text,
        kept,
        "{}; QUIPU_BLESS=1 writes it anew",
        path.display()
    );
}
