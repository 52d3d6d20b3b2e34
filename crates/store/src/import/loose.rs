//! Reading logs where they are, without keeping anything.
//!
//! The same search, the same adapters and the same rules for what is a copy as an import has, so that what is
//! counted is the same. Nothing is written but private copies of databases, in a directory for what is temporary.

use std::fs::{self, File};
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use quipu_agents::{
    Dialect, FAMILIES, Family, Feed, Gather, Gathered, Head, Known, Origin, Session, Sink, Summary,
    is_credential,
};

use quipu_redact::Guard;

use super::database;
use super::find::{self, Candidate, Found};
use super::keep::{self, KeepError, SIDECAR};
use super::plan::plain_path;
use super::report::Problem;
use crate::hide::Hide;

/// How much is read at a time: what a processor's cache can hold until it is looked at.
const PIECE: usize = 128 << 10;

/// A log that was read.
#[derive(Debug)]
pub(crate) struct Loose {
    pub(crate) agent: String,
    pub(crate) place: LoosePlace,
    /// When it was last written to, in nanoseconds since 1970.
    pub(crate) modified: Option<i64>,
    pub(crate) session: Session,
    pub(crate) summary: Summary,
    pub(crate) units: Vec<u64>,
}

/// Where a log is, and how it reads.
#[derive(Clone)]
pub(crate) struct LoosePlace {
    /// The file itself.
    file: PathBuf,
    /// Its name, without the ending of compressed ones.
    pub(crate) path: PathBuf,
    pub(crate) part: Option<String>,
    family: &'static dyn Family,
    pub(crate) dialect: Dialect,
    skim: bool,
}

/// What is to be read, and of whom.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Reading<'r> {
    /// Only of these agents.
    pub(crate) agents: &'r [String],
    /// Only calls to models.
    pub(crate) skim: bool,
    /// Where temporary files go.
    pub(crate) temporary: &'r Path,
    /// What is hidden, where names and titles are asked for.
    pub(crate) guard: Option<&'r Arc<Guard>>,
}

impl std::fmt::Debug for LoosePlace {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LoosePlace")
            .field("path", &self.path)
            .field("part", &self.part)
            .finish_non_exhaustive()
    }
}

/// What became of a file.
#[derive(Debug)]
pub(crate) enum LooseRead {
    /// It was read.
    Log(Box<Loose>),
    /// No adapter knows it.
    Unknown,
    /// Something is wrong with it.
    Problem(Problem),
}

/// Sums up.
#[derive(Default)]
pub(crate) struct Sums {
    pub(crate) summary: Summary,
    hide: Option<Hide>,
}

impl Sums {
    pub(crate) fn new(guard: Option<&Arc<Guard>>) -> Self {
        Self {
            summary: Summary::default(),
            hide: guard.map(Hide::new),
        }
    }

    pub(crate) fn observe(&mut self, entry: &quipu_agents::Entry<'_>) {
        match &mut self.hide {
            Some(hide) => {
                let entry = hide.entry(entry);
                hide.observe(&mut self.summary, &entry);
            }
            None => self.summary.observe(entry),
        }
    }
}

impl Sink for Sums {
    fn entry(
        &mut self,
        _seq: u64,
        _at: quipu_model::Timestamp,
        _position: quipu_agents::Position,
        entry: &quipu_agents::Entry<'_>,
    ) {
        self.observe(entry);
    }
}

/// Reads what a search found.
pub(crate) fn read(candidate: &Candidate, how: Reading<'_>, take: &mut dyn FnMut(LooseRead)) {
    if candidate.found == Found::Keep {
        return;
    }
    if let Err(error) = try_read(candidate, how, take) {
        take(LooseRead::Problem(Problem::new(
            &candidate.path,
            error.to_string(),
        )));
    }
}

fn try_read(
    candidate: &Candidate,
    how: Reading<'_>,
    take: &mut dyn FnMut(LooseRead),
) -> Result<(), KeepError> {
    let temporary = how.temporary;
    let path = &candidate.path;
    if path.is_dir() {
        return parts(candidate, candidate.place, &Gathered::Tree(path), how, take);
    }
    let mut file = File::open(path)?;
    if database::is_database(&mut file)? {
        drop(file);
        let copy = database::Copy::of(path, temporary)?;
        let family = family_of(&copy)?;
        let place = place_of(candidate, family);
        let from = Gathered::Database(copy.connection());
        return parts(candidate, place, &from, how, take);
    }
    if candidate.found == Found::Many {
        return parts(candidate, candidate.place, &Gathered::File(path), how, take);
    }
    let mut file = plain(path, file, temporary)?;
    let size = file.metadata()?.len();
    let known = keep::recognise(&mut file, size, candidate.place, &plain_path(path))?;
    let Some(Known {
        family, dialect, ..
    }) = known
    else {
        take(LooseRead::Unknown);
        return Ok(());
    };
    let brand = match candidate.place {
        Some((brand, place)) if place.name() == family.name() => brand,
        _ => dialect.brand,
    };
    if !find::wanted(how.agents, brand) {
        return Ok(());
    }
    let place = LoosePlace {
        skim: how.skim,
        file: path.clone(),
        path: plain_path(path),
        part: None,
        family,
        dialect,
    };
    let mut sums = Sums::new(how.guard);
    let feed = place.feed_file(&mut file, &mut sums)?;
    take(done(candidate, brand, place, &feed, sums));
    Ok(())
}

fn done(
    candidate: &Candidate,
    brand: &str,
    place: LoosePlace,
    feed: &Feed,
    mut sums: Sums,
) -> LooseRead {
    let mut session = feed.session().clone();
    if let Some(hide) = &mut sums.hide {
        hide.session(&mut session);
    }
    LooseRead::Log(Box::new(Loose {
        agent: brand.to_owned(),
        modified: candidate.stamp.modified.filter(|_| place.part.is_none()),
        place,
        session,
        summary: sums.summary,
        units: feed.ledger().units.clone(),
    }))
}

type Holder = Option<(&'static str, &'static dyn Family)>;

/// Whose database it is, by its tables.
fn family_of(copy: &database::Copy) -> Result<Option<&'static dyn Family>, KeepError> {
    let tables = quipu_agents::rows::tables(copy.connection())?;
    Ok(Head::of_database(&tables, |head| {
        FAMILIES
            .iter()
            .find(|family| family.sniff(head).is_some())
            .copied()
    }))
}

fn place_of(candidate: &Candidate, family: Option<&'static dyn Family>) -> Holder {
    match (candidate.place, family) {
        (Some((brand, place)), Some(family)) if place.name() == family.name() => {
            Some((brand, family))
        }
        (_, Some(family)) => {
            let brand = family.gather().map_or("", |gather| gather.dialect().brand);
            Some((brand, family))
        }
        (place, None) => place,
    }
}

fn parts(
    candidate: &Candidate,
    place: Holder,
    from: &Gathered<'_>,
    how: Reading<'_>,
    take: &mut dyn FnMut(LooseRead),
) -> Result<(), KeepError> {
    let held = place.and_then(|(brand, family)| Some((brand, family, family.gather()?)));
    let Some((brand, family, gather)) = held else {
        take(LooseRead::Unknown);
        return Ok(());
    };
    if !find::wanted(how.agents, brand) {
        return Ok(());
    }
    for part in gather.parts(from)? {
        let place = LoosePlace {
            skim: how.skim,
            file: candidate.path.clone(),
            path: candidate.path.clone(),
            part: Some(part.id),
            family,
            dialect: gather.dialect(),
        };
        let mut sums = Sums::new(how.guard);
        match place.feed_part(gather, from, &mut sums) {
            Ok(feed) => take(done(candidate, brand, place, &feed, sums)),
            // The others may be all right.
            Err(error) => {
                let problem = Problem::new(&candidate.path, error.to_string());
                take(LooseRead::Problem(problem));
            }
        }
    }
    Ok(())
}

impl LoosePlace {
    /// Reads the log again, into a sink.
    pub(crate) fn again(&self, temporary: &Path, sink: &mut dyn Sink) -> Result<(), Problem> {
        self.try_again(temporary, sink)
            .map_err(|error| Problem::new(&self.path, error.to_string()))
    }

    fn try_again(&self, temporary: &Path, sink: &mut dyn Sink) -> Result<(), KeepError> {
        if self.part.is_none() {
            let mut file = plain(&self.file, File::open(&self.file)?, temporary)?;
            self.feed_file(&mut file, sink)?;
            return Ok(());
        }
        let Some(gather) = self.family.gather() else {
            return Ok(());
        };
        if self.file.is_dir() {
            self.feed_part(gather, &Gathered::Tree(&self.file), sink)?;
        } else if database::is_database(&mut File::open(&self.file)?)? {
            let copy = database::Copy::of(&self.file, temporary)?;
            self.feed_part(gather, &Gathered::Database(copy.connection()), sink)?;
        } else {
            self.feed_part(gather, &Gathered::File(&self.file), sink)?;
        }
        Ok(())
    }

    fn feed(&self) -> Result<Feed, KeepError> {
        let origin = Origin {
            path: &self.path,
            part: self.part.as_deref(),
        };
        let reader = self.family.open(&self.dialect, &origin, None);
        let reader = reader.ok_or(KeepError::NoAdapter)?;
        let feed = Feed::new(self.dialect.framing, reader);
        Ok(if self.skim { feed.skim() } else { feed })
    }

    fn feed_file(&self, file: &mut File, sink: &mut dyn Sink) -> Result<Feed, KeepError> {
        let mut feed = self.feed()?;
        file.seek(SeekFrom::Start(0))?;
        let size = usize::try_from(file.metadata()?.len()).unwrap_or(PIECE);
        let mut piece = vec![0; PIECE.min(size.max(1))];
        loop {
            match file.read(&mut piece) {
                Ok(0) => break,
                Ok(read) => feed.push(&piece[..read], sink),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error.into()),
            }
        }
        for beside in self.family.sidecars(&self.file) {
            let small = fs::metadata(&beside).is_ok_and(|it| it.is_file() && it.len() <= SIDECAR);
            if small && !is_credential(&beside) {
                let name = beside.file_name().unwrap_or_default().to_string_lossy();
                feed.sidecar(&name, &fs::read(&beside)?, sink);
            }
        }
        // What is wrong with the end of a log does not change what came before it.
        drop(feed.finish(sink));
        Ok(feed)
    }

    fn feed_part(
        &self,
        gather: &dyn Gather,
        from: &Gathered<'_>,
        sink: &mut dyn Sink,
    ) -> Result<Feed, KeepError> {
        let mut feeding = Feeding {
            feed: self.feed()?,
            sink,
        };
        let part = self.part.as_deref().unwrap_or_default();
        {
            let mut pieces = io::BufWriter::with_capacity(PIECE, &mut feeding);
            gather.write(from, part, &mut pieces)?;
            io::Write::flush(&mut pieces)?;
        }
        drop(feeding.feed.finish(feeding.sink));
        Ok(feeding.feed)
    }
}

/// Reads what is written to it, so that it need not be held.
struct Feeding<'s> {
    feed: Feed,
    sink: &'s mut dyn Sink,
}

impl io::Write for Feeding<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.feed.push(bytes, self.sink);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A log as a plain file.
fn plain(path: &Path, file: File, temporary: &Path) -> Result<File, KeepError> {
    if path.extension().is_none_or(|ending| ending != "zst") {
        return Ok(file);
    }
    super::keep::unpacked(&file, temporary)
}
