//! The directory of a run: which files it has, read without ever leaving it.
//!
//! Ids from requests are compared with the names that a directory lists. They never become a path, so there is nothing to
//! escape from. What is opened is opened beneath the run, so a link cannot lead out of it either.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::UNIX_EPOCH;

use quipu_flow::beneath::{Root, entries};
use quipu_formats::flow::names::{self, Known, Name};
use quipu_formats::flow::receipt::{Document, Receipt, classify};
use quipu_model::json::Tape;
use rustix::fs::FileType;
use serde_json::Value;

use super::made::MadeFiles;

/// How many names of one directory are looked at.
const MOST: usize = 50_000;

/// The largest document that is read.
pub(super) const DOCUMENT: u64 = 16 << 20;

/// How deep documents may nest.
const DEPTH: usize = 128;

/// The directory of a run.
#[derive(Debug)]
pub(super) struct Folder {
    root: Root,
    /// Files that were made for it. They stay as long as somebody reads them.
    made: Option<Arc<MadeFiles>>,
}

/// A transcript or a receipt.
#[derive(Debug, Clone)]
pub(super) struct Named {
    /// The file's own name.
    pub(super) file: String,
    /// What the name says.
    pub(super) name: Name,
    /// What is in it, if it is a receipt.
    pub(super) receipt: Option<Box<Receipt>>,
}

/// The files of a flow.
#[derive(Debug, Default)]
pub(super) struct Flow {
    /// The name of its directory.
    pub(super) directory: String,
    /// Whether it has a directory for transcripts.
    pub(super) has_transcripts: bool,
    /// Whether it has a directory for receipts.
    pub(super) has_receipts: bool,
    pub(super) transcripts: Vec<Named>,
    pub(super) receipts: Vec<Named>,
}

/// What a file looked like: when it was written, and how long it is.
pub(super) type Stamp = (u128, u64);

impl Folder {
    /// Opens a run.
    pub(super) fn open(path: &Path) -> Option<Self> {
        let root = Root::open(path).ok()?;
        Some(Self { root, made: None })
    }

    /// The same, of files that were made.
    pub(super) fn holding(mut self, made: Arc<MadeFiles>) -> Self {
        self.made = Some(made);
        self
    }

    /// Where it is.
    pub(super) fn path(&self) -> &Path {
        match &self.made {
            Some(made) => &made.path,
            None => self.root.path(),
        }
    }

    /// The names in a directory of the run that are regular files or directories, in order.
    fn list(&self, path: &Path, wanted: FileType) -> Vec<String> {
        let Ok(directory) = self.root.directory(path) else {
            return Vec::new();
        };
        let Ok((found, _)) = entries(&directory, MOST) else {
            return Vec::new();
        };
        let names = found.into_iter().filter_map(|entry| {
            let name = entry.name.into_string().ok()?;
            let kind = match entry.kind {
                // As far as it stays in the run.
                FileType::Symlink => self.root.kind(&path.join(&name)).ok()?,
                kind => kind,
            };
            (kind == wanted).then_some(name)
        });
        names.collect()
    }

    /// The names of the directories of the run.
    pub(super) fn directories(&self) -> Vec<String> {
        let all = self.list(Path::new("."), FileType::Directory).into_iter();
        all.filter(|name| !name.starts_with(['.', '_'])).collect()
    }

    /// Whether this file is there.
    pub(super) fn has(&self, path: &Path) -> bool {
        matches!(self.root.kind(path), Ok(FileType::RegularFile))
    }

    /// Whether this directory is there.
    pub(super) fn has_directory(&self, path: &Path) -> bool {
        matches!(self.root.kind(path), Ok(FileType::Directory))
    }

    /// Opens a file.
    pub(super) fn file(&self, path: &Path) -> Option<File> {
        self.root.read(path).ok()
    }

    /// A whole file, if it is there and not too large.
    pub(super) fn bytes(&self, path: &Path) -> Option<Vec<u8>> {
        self.root.read_all(path, DOCUMENT).ok()
    }

    /// A JSON document, if it is there and can be read.
    pub(super) fn json(&self, path: &str) -> Option<Value> {
        let bytes = self.bytes(Path::new(path))?;
        let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(&bytes);
        serde_json::from_slice(bytes).ok()
    }

    /// What a file looks like.
    pub(super) fn stamp(&self, path: &Path) -> Option<Stamp> {
        stamp(&self.file(path)?)
    }

    /// What all transcripts, receipts and the journal look like, as one number. It changes when one of them does.
    pub(super) fn look(&self) -> u64 {
        use std::hash::{Hash as _, Hasher as _};
        let mut hasher = rustc_hash::FxHasher::default();
        for name in ["meta.json", "spec.json", "run.json", "events.jsonl"] {
            self.stamp(Path::new(name)).hash(&mut hasher);
        }
        for directory in self.directories() {
            for part in ["llm", "receipts"] {
                let path = Path::new(&directory).join(part);
                for name in self.list(&path, FileType::RegularFile) {
                    name.hash(&mut hasher);
                    self.stamp(&path.join(&name)).hash(&mut hasher);
                }
            }
        }
        hasher.finish()
    }

    /// The directory of a flow.
    pub(super) fn directory_of(&self, flow: &str) -> Option<String> {
        let all = self.directories();
        let exact = all.iter().find(|name| *name == flow);
        let found = exact.or_else(|| all.iter().find(|name| *names::unescape(name) == *flow));
        found.cloned()
    }

    /// The keys of the flows that have transcripts or receipts.
    pub(super) fn flow_keys(&self) -> Vec<String> {
        let is_flow = |name: &String| {
            let has = |part: &str| self.has_directory(&Path::new(name).join(part));
            has("llm") || has("receipts")
        };
        let all = self.directories().into_iter().filter(is_flow);
        all.map(|name| names::unescape(&name).into_owned())
            .collect()
    }

    /// The files of a flow.
    pub(super) fn flow(&self, key: &str) -> Option<Flow> {
        let directory = self.directory_of(key)?;
        let part = |part: &str| PathBuf::from(&directory).join(part);
        let (llm, receipts) = (part("llm"), part("receipts"));
        let mut flow = Flow {
            has_transcripts: self.has_directory(&llm),
            has_receipts: self.has_directory(&receipts),
            directory,
            ..Flow::default()
        };
        let mut known = Known::default();
        let mut read = Vec::new();
        for file in self.list(&receipts, FileType::RegularFile) {
            if Path::new(&file)
                .extension()
                .is_none_or(|ending| ending != "json")
            {
                continue;
            }
            let bytes = self.bytes(&receipts.join(&file)).unwrap_or_default();
            let Some(receipt) = receipt(&bytes) else {
                continue;
            };
            let said = receipt.step_id.as_deref().zip(receipt.agent_key.as_deref());
            known.receipt(&file, said);
            read.push((file, receipt));
        }
        for (file, receipt) in read {
            let Some(mut name) = known.of_receipt(&file) else {
                continue;
            };
            if let (Some(step), Some(agent)) = (&receipt.step_id, &receipt.agent_key) {
                (name.step, name.agent) = (step.clone(), agent.clone());
                name.ambiguous = false;
            }
            name.iteration = name
                .iteration
                .or(receipt.iteration.filter(|_| has_number(&file)));
            flow.receipts.push(Named {
                file,
                name,
                receipt: Some(receipt),
            });
        }
        for file in self.list(&llm, FileType::RegularFile) {
            if let Some(name) = known.transcript(&file) {
                flow.transcripts.push(Named {
                    file,
                    name,
                    receipt: None,
                });
            }
        }
        Some(flow)
    }
}

/// Whether the name of a receipt says which iteration it is.
fn has_number(file: &str) -> bool {
    let known = Known::default();
    known
        .of_receipt(file)
        .is_some_and(|name| name.iteration.is_some())
}

/// The receipt of a step, if these bytes are one.
fn receipt(bytes: &[u8]) -> Option<Box<Receipt>> {
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    let text = String::from_utf8_lossy(bytes);
    let mut tape = Tape::new();
    match classify(tape.read(&text, DEPTH).ok()?) {
        Document::Step(receipt) => Some(receipt),
        Document::Prompt { .. } | Document::Other => None,
    }
}

/// What an open file looks like.
pub(super) fn stamp(file: &File) -> Option<Stamp> {
    let there = file.metadata().ok()?;
    let at = there.modified().ok()?.duration_since(UNIX_EPOCH);
    Some((at.map_or(0, |at| at.as_nanos()), there.len()))
}

impl Named {
    /// Whether it is of this step. A name that could be taken apart in another way may be of several.
    pub(super) fn is_of(&self, step: &str) -> bool {
        let begins = |text: &str| {
            let rest = self
                .file
                .strip_prefix(text)
                .and_then(|it| it.strip_prefix('-'));
            rest.is_some_and(|rest| !rest.is_empty())
        };
        self.name.step == step
            || (self.name.ambiguous && !step.is_empty() && begins(&names::escape(step)))
    }

    /// Those that are surer come first, then the latest iteration, then by name.
    pub(super) fn rank(&self, step: &str) -> impl Ord + use<> {
        let newest = std::cmp::Reverse(self.name.iteration.unwrap_or(u64::MAX));
        let is_other = self.name.step != step;
        (is_other, newest, self.file.clone())
    }
}
