//! Which runs there are: those of other programs in the directories that the options name, and our own.

use std::collections::{BTreeMap, HashSet};
use std::path::{Component, Path, PathBuf};

use quipu_flow::beneath::{Root, entries};
use rustix::fs::FileType;

/// How many runs of one directory are listed.
const MOST: usize = 100_000;

/// The ending of recorded transcripts.
const RECORDED: &str = ".jsonl";

/// What a run is among others.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Kind {
    /// One to learn from: in a directory that is called `examples`.
    Example,
    /// One that was really made.
    Active,
}

impl Kind {
    pub(super) fn word(self) -> &'static str {
        match self {
            Self::Example => "example",
            Self::Active => "active",
        }
    }
}

/// A run.
#[derive(Debug, Clone)]
pub(super) struct Run {
    /// What it is called in requests: the name of its directory, or its run id.
    pub(super) id: String,
    pub(super) kind: Kind,
    /// Its directory; one of our own may have none.
    pub(super) directory: Option<PathBuf>,
    /// The transcript that Quipu recorded.
    pub(super) transcript: Option<PathBuf>,
}

impl Run {
    /// Where it is.
    pub(super) fn path(&self) -> &Path {
        let own = self.directory.as_deref().or(self.transcript.as_deref());
        own.unwrap_or(Path::new(""))
    }
}

/// A directory of runs.
#[derive(Debug, Clone)]
pub(super) struct Source {
    pub(super) path: PathBuf,
    pub(super) kind: Kind,
}

/// All places where runs are.
#[derive(Debug)]
pub(super) struct Places {
    /// Examples first.
    pub(super) sources: Vec<Source>,
    /// Step files of our own runs.
    own: PathBuf,
    /// Their transcripts.
    transcripts: PathBuf,
}

impl Places {
    pub(super) fn new(home: &Path, directories: &[PathBuf]) -> Self {
        let source = |path: &PathBuf| {
            let is_examples = path.file_name().is_some_and(|name| name == "examples");
            let kind = if is_examples {
                Kind::Example
            } else {
                Kind::Active
            };
            let path = path.clone();
            Source { path, kind }
        };
        let mut sources: Vec<Source> = directories.iter().map(source).collect();
        sources.sort_by_key(|source| source.kind);
        Self {
            sources,
            own: home.join("runs"),
            transcripts: home.join("transcripts"),
        }
    }

    /// The run with this id. Where several places have one, the first counts: examples come first.
    pub(super) fn find(&self, id: &str) -> Option<Run> {
        if !is_name(id) {
            return None;
        }
        for source in &self.sources {
            if let Some(directory) = below(&source.path, id) {
                return Some(Run {
                    id: id.to_owned(),
                    kind: source.kind,
                    directory: Some(directory),
                    transcript: None,
                });
            }
        }
        let directory = below(&self.own, id);
        let file = format!("{id}{RECORDED}");
        let recorded = Root::open(&self.transcripts)
            .ok()
            .filter(|root| matches!(root.kind(Path::new(&file)), Ok(FileType::RegularFile)));
        let transcript = recorded.map(|root| root.path().join(&file));
        (directory.is_some() || transcript.is_some()).then(|| Run {
            id: id.to_owned(),
            kind: Kind::Active,
            directory,
            transcript,
        })
    }

    /// All runs, each once, in no order that matters.
    pub(super) fn all(&self) -> Vec<Run> {
        let mut known = HashSet::new();
        let mut all = Vec::new();
        for source in &self.sources {
            for (id, directory) in directories(&source.path) {
                if known.insert(id.clone()) {
                    all.push(Run {
                        id,
                        kind: source.kind,
                        directory: Some(directory),
                        transcript: None,
                    });
                }
            }
        }
        let mut own: BTreeMap<String, Run> = BTreeMap::new();
        let run = |id: &str| Run {
            id: id.to_owned(),
            kind: Kind::Active,
            directory: None,
            transcript: None,
        };
        for (id, directory) in directories(&self.own) {
            let one = own.entry(id.clone()).or_insert_with(|| run(&id));
            one.directory = Some(directory);
        }
        for (file, path) in list(&self.transcripts, FileType::RegularFile) {
            let Some(id) = file.strip_suffix(RECORDED).filter(|id| is_name(id)) else {
                continue;
            };
            let one = own.entry(id.to_owned()).or_insert_with(|| run(id));
            one.transcript = Some(path);
        }
        all.extend(own.into_values().filter(|run| known.insert(run.id.clone())));
        all
    }
}

/// Whether a text can be the name of a run: one part of a path, which hides nothing.
fn is_name(text: &str) -> bool {
    let mut parts = Path::new(text).components();
    let is_one = matches!(parts.next(), Some(Component::Normal(name)) if name == text);
    is_one && parts.next().is_none() && !text.starts_with(['.', '_']) && !text.contains('\0')
}

/// The directory of this name, if it is really in there.
fn below(directory: &Path, name: &str) -> Option<PathBuf> {
    let root = Root::open(directory).ok()?;
    root.real_directory(Path::new(name)).ok()
}

fn directories(directory: &Path) -> Vec<(String, PathBuf)> {
    let all = list(directory, FileType::Directory).into_iter();
    all.filter(|(name, _)| is_name(name)).collect()
}

/// What is in a directory. Links are left out: they could lead anywhere.
fn list(directory: &Path, wanted: FileType) -> Vec<(String, PathBuf)> {
    let Ok(root) = Root::open(directory) else {
        return Vec::new();
    };
    let Ok(opened) = root.directory(Path::new(".")) else {
        return Vec::new();
    };
    let Ok((found, _)) = entries(&opened, MOST) else {
        return Vec::new();
    };
    let found = found.into_iter().filter(|entry| entry.kind == wanted);
    let named = found.filter_map(|entry| {
        let name = entry.name.into_string().ok()?;
        let path = root.path().join(&name);
        Some((name, path))
    });
    named.collect()
}
