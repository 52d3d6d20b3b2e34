//! What an argument means: a path, the id of a run or session, its address, the beginning of an id, or `last`.

use std::fs::File;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use quipu_agents::{HEAD, Known, Limits, is_credential};
use quipu_convert::whose;
use quipu_exchange::{Item, Reader};
use quipu_formats::flow;
use quipu_record::{NotFound as RunNotFound, Storage};

use crate::Store;
use crate::catalogue::{CatalogueError, NotFound, TranscriptRow};

/// What an argument means.
#[derive(Debug)]
pub enum Resolved {
    /// A transcript in the exchange format, recorded in the home or anywhere else.
    Run(PathBuf),
    /// An imported session.
    Session(Box<(Store, TranscriptRow)>),
    /// The log of an agent, which need not be imported.
    Log(PathBuf),
}

/// Why nothing is meant, or not one thing.
#[derive(Debug, thiserror::Error)]
pub enum Unresolved {
    /// Nothing begins so.
    #[error("no session or run begins with {0:?}")]
    None(String),
    /// Several sessions or runs begin so.
    #[error("{argument:?} is the beginning of several sessions or runs")]
    Several {
        /// What was asked for.
        argument: String,
        /// Those it may mean.
        rows: Vec<TranscriptRow>,
        /// What has them.
        store: Box<Store>,
    },
    /// Several runs begin so that no catalogue has.
    #[error(transparent)]
    SeveralRuns(RunNotFound),
    /// It is a path, and there is no such file.
    #[error("there is no file {0}")]
    NoFile(String),
    /// It is a directory, and not that of a run.
    #[error("{} is a directory, and not a run", .0.display())]
    NotARun(PathBuf),
    /// It is a file that is neither a transcript nor a log.
    #[error("{} is no transcript, nor a log of an agent that is known", .0.display())]
    NotALog(PathBuf),
    /// It could not be looked up.
    #[error(transparent)]
    Catalogue(#[from] CatalogueError),
}

impl Store {
    /// What an argument means.
    ///
    /// # Errors
    ///
    /// When nothing is meant, or several things are.
    pub fn resolve(&self, argument: &str) -> Result<Resolved, Unresolved> {
        resolve(self.home(), argument, || Ok(Some(self.clone())))
    }
}

/// What an argument means in a home that there may be no store in. The store is asked for only when it is needed: a path
/// needs none.
///
/// # Errors
///
/// When nothing is meant or several things are, or the store cannot be used.
pub fn resolve<E: From<Unresolved>>(
    home: &Path,
    argument: &str,
    store: impl Fn() -> Result<Option<Store>, E>,
) -> Result<Resolved, E> {
    let path = Path::new(argument);
    let looks_like_a_path = argument.contains(['/', '\\']) || path.extension().is_some();
    let is_meant = |is_there: bool| -> Result<bool, E> {
        Ok(is_there && (looks_like_a_path || !has(home, argument, &store)?))
    };
    if is_meant(path.is_dir())? {
        match flow::run_around(path) {
            Some(run) => return Ok(Resolved::Log(run)),
            None if looks_like_a_path => return Err(Unresolved::NotARun(path.to_owned()).into()),
            // The beginning of an id, more likely.
            None => {}
        }
    }
    if is_meant(path.is_file())? {
        return Ok(file(path)?);
    }
    if let Some(path) = given_path(argument)? {
        return Ok(Resolved::Run(path));
    }
    let store = store()?;
    let found = match &store {
        Some(store) => store.catalogue().find(argument),
        None => Err(NotFound::None(argument.to_owned())),
    };
    match (found, store) {
        (Ok(row), Some(_)) if row.recorded => Ok(Resolved::Run(row.path)),
        (Ok(row), Some(store)) => Ok(Resolved::Session(Box::new((store, row)))),
        (Err(NotFound::Several(argument, ids)), Some(store)) => {
            let found = |id: &String| store.catalogue().find(id).ok();
            let rows = ids.iter().filter_map(found).collect();
            Err(Unresolved::Several {
                argument,
                rows,
                store: Box::new(store),
            }
            .into())
        }
        (Err(NotFound::Catalogue(error)), _) => Err(Unresolved::from(error).into()),
        _ => match Storage::at(home).find_by_prefix(argument) {
            // Known by a label before its id, or not an event in it yet.
            Ok(path) => Ok(Resolved::Run(path)),
            Err(error @ RunNotFound::Several(..)) => Err(Unresolved::SeveralRuns(error).into()),
            Err(RunNotFound::None(..)) => Err(Unresolved::None(argument.to_owned()).into()),
        },
    }
}

/// What a file means.
fn file(path: &Path) -> Result<Resolved, Unresolved> {
    // A file of a run stands for the whole of it.
    if let Some(run) = flow::run_of(path) {
        return Ok(Resolved::Log(run));
    }
    let is_agents = !is_exchange(path) && is_known(path);
    if is_agents {
        return Ok(Resolved::Log(path.to_owned()));
    }
    if may_be_transcript(path) {
        return Ok(Resolved::Run(path.to_owned()));
    }
    let run = flow::run_around(path);
    run.map(Resolved::Log)
        .ok_or_else(|| Unresolved::NotALog(path.to_owned()))
}

/// Whether there is a run or session of exactly this id.
fn has<E>(home: &Path, id: &str, store: impl Fn() -> Result<Option<Store>, E>) -> Result<bool, E> {
    let run = quipu_model::RunId::new(id)
        .ok()
        .and_then(|id| Storage::at(home).find(&id));
    if run.is_some() {
        return Ok(true);
    }
    let Some(store) = store()? else {
        return Ok(false);
    };
    Ok(store.catalogue().find(id).is_ok_and(|row| row.run_id == id))
}

impl Resolved {
    /// The path that an argument is, if it is one.
    ///
    /// # Errors
    ///
    /// When it looks like a path, and there is no such file.
    pub fn path(argument: &str) -> Result<Option<PathBuf>, Unresolved> {
        given_path(argument)
    }
}

fn given_path(argument: &str) -> Result<Option<PathBuf>, Unresolved> {
    let path = Path::new(argument);
    let looks_like_a_path =
        argument.contains(['/', '\\']) || path.extension().is_some_and(|it| it == "jsonl");
    // A directory that happens to have the name of a run is not what is meant.
    if path.exists() && (looks_like_a_path || !path.is_dir()) {
        return Ok(Some(path.to_owned()));
    }
    if looks_like_a_path {
        return Err(Unresolved::NoFile(argument.to_owned()));
    }
    Ok(None)
}

/// Whether something in a file is an event, or there is nothing in it at all.
fn may_be_transcript(path: &Path) -> bool {
    /// An event is looked for in so many lines.
    const LOOKED_AT: usize = 1_000;
    /// How a line begins that the recorder wrote, whatever became of the rest of it.
    const BEGIN: &[u8] = b"{\"seq\":";
    let mut begin = Vec::new();
    let Ok(file) = File::open(path) else {
        // Whoever reads it says why it cannot be read.
        return true;
    };
    if file
        .take(BEGIN.len() as u64)
        .read_to_end(&mut begin)
        .is_err()
        || BEGIN.starts_with(&begin)
        || is_database(path)
    {
        return true;
    }
    let Ok(file) = File::open(path) else {
        return true;
    };
    let mut reader = Reader::new(file);
    for _ in 0..LOOKED_AT {
        match reader.next() {
            Ok(Some(Item::Event(_))) | Err(_) => return true,
            Ok(Some(Item::Bad(_))) => {}
            Ok(None) => return false,
        }
    }
    false
}

/// Whether a file is a database, which has many sessions in it.
pub fn is_database(path: &Path) -> bool {
    let mut magic = [0; 16];
    // What is read from a pipe is gone.
    path.is_file()
        && File::open(path)
            .and_then(|mut file| file.read_exact(&mut magic))
            .is_ok()
        && magic == *b"SQLite format 3\0"
}

/// Whether a file begins as a transcript does.
fn is_exchange(path: &Path) -> bool {
    let Ok(file) = File::open(path) else {
        return false;
    };
    matches!(Reader::new(file).next(), Ok(Some(Item::Event(_))))
}

/// Whether a file is the log of an agent that is known.
fn is_known(path: &Path) -> bool {
    let is_packed = path.extension().is_some_and(|ending| ending == "zst");
    !is_packed && !is_credential(path) && identify(path).is_ok_and(|found| found.is_some())
}

/// Whose log a file is.
///
/// # Errors
///
/// When it cannot be read.
pub fn identify(path: &Path) -> io::Result<Option<Known>> {
    let mut file = File::open(path)?;
    let size = file.metadata()?.len();
    let mut bytes = Vec::new();
    file.by_ref().take(HEAD as u64).read_to_end(&mut bytes)?;
    let whole = bytes.len() < HEAD;
    let found = whose(path, &bytes, whole);
    // A document is only known by its whole.
    if found.is_some() || whole || size > Limits::default().document as u64 {
        return Ok(found);
    }
    file.read_to_end(&mut bytes)?;
    Ok(whose(path, &bytes, true))
}
