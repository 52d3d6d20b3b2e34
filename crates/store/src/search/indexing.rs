//! Putting what is read into the search index.
//!
//! Every thread that reads logs fills a part of the index of its own. A part that is full is written by that
//! thread; the thread that writes to the catalogue adds it to the index, and then puts down which passes are
//! in it. See `catalogue/passes.rs` for what happens when the process dies in between.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use quipu_agents::{Entry, Position};
use quipu_model::Timestamp;
use quipu_redact::Guard;
use quipu_search::index::{Index as _, IndexError, Part, Parts, TantivyIndex, Writer, Written};
use quipu_search::{Document, Facet, Tag};

use super::document::{EventPlace, EventText};
use crate::catalogue::{Catalogue, Pass, Passed};
use crate::import::ImportError;

/// What all parts together take in memory before they are written.
const MEMORY: u64 = 112 << 20;

/// What a part takes at least: an empty one is not much smaller, and must not seem to be full.
const LEAST: u64 = 16 << 20;

/// The name under which the catalogue knows its index.
const INDEX: &str = "search_index";

/// The search index of a home.
pub fn index_path(home: &Path) -> PathBuf {
    home.join("search")
}

/// Where threads put what they read.
#[derive(Debug)]
pub(crate) struct Indexing {
    parts: Box<dyn Parts>,
    /// What is hidden from the index.
    guard: Arc<Guard>,
    next: AtomicU64,
    idle: Mutex<Vec<Filling>>,
    done: Mutex<Done>,
    stopped: AtomicBool,
}

/// What is to be added to the index, and put down.
#[derive(Debug, Default)]
struct Done {
    parts: Vec<Written>,
    /// Passes all of whose events are in these parts, or in earlier ones.
    passes: Vec<u64>,
    /// Passes that were begun and not finished.
    abandoned: Vec<u64>,
    failed: Option<IndexError>,
}

/// What one thread fills.
#[derive(Debug, Default)]
struct Filling {
    part: Option<Box<dyn Part>>,
    /// Passes that were finished since a part was written.
    finished: Vec<u64>,
    said: EventText,
}

impl Filling {
    fn new(guard: &Arc<Guard>) -> Self {
        Self {
            part: None,
            finished: Vec::new(),
            said: EventText::guarded(guard),
        }
    }
}

/// Adds to the index.
#[derive(Debug)]
pub(crate) struct Adding {
    writer: Box<dyn Writer>,
    /// Which index it is.
    name: String,
    /// Passes that are in the index and of which the catalogue knows nothing yet.
    unknown: Vec<u64>,
}

/// Whether an index can be used.
enum Fitness {
    Fit,
    /// Why not.
    Unfit(String),
    /// There never was one.
    Never,
}

/// Whether the index of a home can be used with its catalogue. What only reading all of it would tell is not seen.
fn fitness(home: &Path, catalogue: &dyn Catalogue) -> Result<Fitness, ImportError> {
    let known = catalogue.meta(INDEX)?;
    let opened = TantivyIndex::open(&index_path(home)).and_then(|index| match index {
        Some(index) => Ok(index.mark()?.map(|mark| (mark, index.damages(false)))),
        None => Ok(None),
    });
    Ok(match (opened, &known) {
        (_, None) => Fitness::Never,
        (Ok(Some((mark, _))), Some(known))
            if Mark::parse(&mark).is_none_or(|it| it.name != *known) =>
        {
            Fitness::Unfit("it belongs to another catalogue".to_owned())
        }
        (Ok(Some((_, damages))), _) => match damages.into_iter().next() {
            Some(damage) => Fitness::Unfit(damage),
            None => Fitness::Fit,
        },
        (Err(error), _) => Fitness::Unfit(error.to_string()),
        // A process that died before anything was in it leaves one that is not there, too.
        (Ok(None), _) if catalogue.live_passes()?.is_empty() => Fitness::Never,
        (Ok(None), _) => Fitness::Unfit("it was not there".to_owned()),
    })
}

/// Why the next import makes the index anew, if it does and there was one.
pub(crate) fn unfit(home: &Path, catalogue: &dyn Catalogue) -> Result<Option<String>, ImportError> {
    Ok(match fitness(home, catalogue)? {
        Fitness::Unfit(why) => Some(why),
        Fitness::Fit | Fitness::Never => None,
    })
}

/// Makes the index anew when it cannot be used, or is another one than the catalogue knows. Says why, unless
/// there never was one.
pub(crate) fn prepare(
    home: &Path,
    catalogue: &dyn Catalogue,
) -> Result<Option<String>, ImportError> {
    let path = index_path(home);
    let why = match fitness(home, catalogue)? {
        // What is taken out of an index stays in its files for a while.
        Fitness::Fit if catalogue.outdated()? > 0 => {
            Some("an earlier version made it, which masked fewer secrets".to_owned())
        }
        Fitness::Fit => return Ok(None),
        Fitness::Unfit(why) => Some(why),
        Fitness::Never => None,
    };
    quipu_files::create_directory(&path).map_err(|source| ImportError::Home {
        path: path.clone(),
        source,
    })?;
    let index = TantivyIndex::create_anew(&path)?;
    let name = Mark::random();
    let next = catalogue.next_pass()?;
    // First the catalogue: should this be all that is done, the next import does it again.
    catalogue.at_once(|| {
        catalogue.forget_passes()?;
        catalogue.put_meta(INDEX, &name)?;
        catalogue.put_next_pass(next)
    })?;
    let mut writer = index.writer()?;
    writer.commit(&Mark { name, next }.to_string())?;
    writer.finish()?;
    Ok(why)
}

impl Indexing {
    /// Opens the index, which is prepared.
    pub(crate) fn open(
        home: &Path,
        catalogue: &dyn Catalogue,
        threads: usize,
        bytes: u64,
        guard: &Arc<Guard>,
    ) -> Result<(Arc<Self>, Adding), ImportError> {
        let index = TantivyIndex::open_or_create(&index_path(home))?;
        let mark = index.mark()?.and_then(|mark| Mark::parse(&mark));
        let Some(Mark { name, next }) = mark else {
            return Err(IndexError::Unusable {
                path: index_path(home),
                why: "it is not marked".to_owned(),
            }
            .into());
        };
        let next = next.max(catalogue.next_pass()?);
        let adding = Adding {
            writer: index.writer()?,
            name,
            unknown: Vec::new(),
        };
        Self::disown(catalogue, next)?;
        // A part takes about one and a half times the bytes of the text that is in it.
        let budget = (MEMORY / threads.max(1) as u64).min(bytes * 2).max(LEAST);
        let indexing = Self {
            parts: index.parts(usize::try_from(budget).unwrap_or(usize::MAX)),
            guard: Arc::clone(guard),
            next: AtomicU64::new(next),
            idle: Mutex::default(),
            done: Mutex::default(),
            stopped: AtomicBool::new(false),
        };
        Ok((Arc::new(indexing), adding))
    }

    /// Takes nothing in any more.
    pub(crate) fn stop(&self) {
        self.stopped.store(true, Ordering::Relaxed);
    }

    /// What is in the index, but was not put down before the process died, is to be taken out.
    fn disown(catalogue: &dyn Catalogue, next: u64) -> Result<(), ImportError> {
        let settled = catalogue.settled_pass()?;
        let mut lost = Vec::new();
        for pass in settled..next {
            if !catalogue.knows_pass(pass)? {
                lost.push(pass);
            }
        }
        Ok(catalogue.put_dead(&lost)?)
    }

    /// Begins a pass over a log.
    pub(crate) fn scribe(&self, agent: &str, whole: bool) -> Scribe<'_> {
        let idle = lock(&self.idle).pop();
        let filling = idle.unwrap_or_else(|| Filling::new(&self.guard));
        Scribe {
            indexing: self,
            filling,
            agent: Tag::new(Facet::Agent, agent),
            whole,
            passes: Vec::new(),
            place: EventPlace::default(),
            finished: false,
        }
    }

    /// Writes a part that nobody fills any more.
    pub(crate) fn flush(&self) {
        let filling = lock(&self.idle).pop();
        if let Some(mut filling) = filling {
            self.write(&mut filling);
        }
    }

    fn write(&self, filling: &mut Filling) {
        let written = filling.part.take().map(Part::write);
        let mut done = lock(&self.done);
        match written {
            Some(Err(error)) => {
                done.failed.get_or_insert(error);
                done.abandoned.append(&mut filling.finished);
            }
            Some(Ok(part)) => done.parts.push(part),
            None => {}
        }
        done.passes.append(&mut filling.finished);
    }

    fn add(&self, filling: &mut Filling, document: Document) -> Result<(), IndexError> {
        let part = match &mut filling.part {
            Some(part) => part,
            none => none.insert(self.parts.begin()?),
        };
        part.add(document)?;
        if part.is_full() {
            self.write(filling);
        }
        Ok(())
    }

    fn fail(&self, error: IndexError) {
        self.stop();
        lock(&self.done).failed.get_or_insert(error);
    }
}

/// Puts the events of one log into the index.
#[derive(Debug)]
pub(crate) struct Scribe<'i> {
    indexing: &'i Indexing,
    filling: Filling,
    agent: Tag,
    whole: bool,
    passes: Vec<Pass>,
    place: EventPlace,
    finished: bool,
}

impl Scribe<'_> {
    pub(crate) fn entry(&mut self, seq: u64, at: Timestamp, position: Position, entry: &Entry<'_>) {
        let place = self.place.next(position);
        if self.indexing.stopped.load(Ordering::Relaxed) {
            return;
        }
        let pass = match self.passes.last() {
            Some(pass) => pass.id,
            None => self.begin(false),
        };
        let mut said = std::mem::take(&mut self.filling.said);
        said.documents(entry, seq, at, place, |mut document| {
            document.pass = pass;
            document.tags.push(self.agent.clone());
            if let Err(error) = self.indexing.add(&mut self.filling, document) {
                self.indexing.fail(error);
            }
        });
        self.filling.said = said;
    }

    /// The title of the session, which is not always said in an event.
    pub(crate) fn title(&mut self, title: &str, at: Option<i64>) {
        let pass = match self.passes.last() {
            Some(pass) => pass.id,
            None => self.begin(true),
        };
        let document = Document {
            pass,
            at,
            text: self.indexing.guard.mask(title, None).into_owned(),
            tags: vec![Tag::new(Facet::Role, "note"), self.agent.clone()],
            ..Document::default()
        };
        if let Err(error) = self.indexing.add(&mut self.filling, document) {
            self.indexing.fail(error);
        }
    }

    /// What comes now is to be replaced when the log goes on.
    pub(crate) fn provisional(&mut self) {
        self.begin(true);
    }

    fn begin(&mut self, provisional: bool) -> u64 {
        let id = self.indexing.next.fetch_add(1, Ordering::Relaxed);
        self.passes.push(Pass { id, provisional });
        id
    }

    /// All of the log was read.
    pub(crate) fn finish(mut self) -> Passed {
        self.finished = true;
        // A log of which nothing can be looked for was looked at, too.
        if self.whole && self.passes.is_empty() {
            self.begin(false);
        }
        let passes = std::mem::take(&mut self.passes);
        let ids = passes.iter().map(|pass| pass.id);
        self.filling.finished.extend(ids);
        if self.whole {
            Passed::Whole(passes)
        } else {
            Passed::More(passes)
        }
    }
}

impl Drop for Scribe<'_> {
    fn drop(&mut self) {
        if !self.finished {
            let ids = self.passes.iter().map(|pass| pass.id);
            lock(&self.indexing.done).abandoned.extend(ids);
        }
        lock(&self.indexing.idle).push(std::mem::take(&mut self.filling));
    }
}

impl Adding {
    /// Adds what was written, and puts it down. Does nothing when there is nothing to add; at the end,
    /// `all`, also what is to be taken out.
    pub(crate) fn add(
        &mut self,
        indexing: &Indexing,
        catalogue: &dyn Catalogue,
        all: bool,
    ) -> Result<(), ImportError> {
        let Done {
            parts,
            passes,
            abandoned,
            failed,
        } = std::mem::take(&mut *lock(&indexing.done));
        if let Some(error) = failed {
            return Err(error.into());
        }
        if parts.is_empty() && !all {
            let mut done = lock(&indexing.done);
            done.passes.splice(0..0, passes);
            done.abandoned.splice(0..0, abandoned);
            return Ok(());
        }
        let dead = catalogue.dead_passes()?;
        let nothing = parts.is_empty() && dead.is_empty() && abandoned.is_empty();
        for part in parts {
            self.writer.add(part)?;
        }
        for pass in dead.iter().chain(&abandoned) {
            self.writer.remove(*pass);
        }
        let next = indexing.next.load(Ordering::Relaxed);
        if !nothing {
            self.writer.commit(&self.mark(next))?;
        }
        self.unknown.extend(passes);
        let passes = std::mem::take(&mut self.unknown);
        if nothing && passes.is_empty() && (!all || catalogue.settled_pass()? == next) {
            return Ok(());
        }
        self.unknown = catalogue.at_once(|| {
            let unknown = catalogue.put_live(&passes)?;
            catalogue.bury(&dead)?;
            if all {
                catalogue.put_next_pass(next)?;
            }
            Ok::<_, ImportError>(unknown)
        })?;
        Ok(())
    }

    /// Ends the work on the index.
    pub(crate) fn finish(self) -> Result<(), ImportError> {
        Ok(self.writer.finish()?)
    }

    /// Takes out what is to be taken out, and also out of the files.
    pub(crate) fn purge(
        mut self,
        indexing: &Indexing,
        catalogue: &dyn Catalogue,
    ) -> Result<(), ImportError> {
        self.writer.keep_apart();
        self.add(indexing, catalogue, true)?;
        self.writer.purge()?;
        self.finish()
    }

    fn mark(&self, next: u64) -> String {
        let name = self.name.clone();
        Mark { name, next }.to_string()
    }
}

/// What the index is marked with: which index it is, and the number of the next pass.
struct Mark {
    name: String,
    next: u64,
}

impl std::fmt::Display for Mark {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {}", self.name, self.next)
    }
}

impl Mark {
    fn parse(mark: &str) -> Option<Self> {
        let (name, next) = mark.split_once(' ')?;
        Some(Self {
            name: name.to_owned(),
            next: next.parse().ok()?,
        })
    }

    /// A name that no other index has.
    fn random() -> String {
        use std::hash::{BuildHasher as _, Hasher as _, RandomState};
        format!("{:016x}", RandomState::new().build_hasher().finish())
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // What a thread left behind that failed is whole: everything is taken out and put back as one.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
