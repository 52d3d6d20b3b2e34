//! The log of an agent.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use quipu_agents::{
    About, Dialect, Entry, Family, Feed, Marks, Origin as LogOrigin, Position, Session, Sink,
    Summary, What, is_credential,
};
use quipu_formats::flow::record::Record;
use quipu_formats::flow::{Files, Originals};
use quipu_model::json::Tape;
use quipu_model::{Attachment, Distinct, Environment, Header, Origin, RunId, Timestamp, Totals};
use quipu_prices::Prices;

use super::environment::{Told, here};
use super::{Account, Receiver, Source, SourceError, modified_at, unreadable};
use crate::Format;
use crate::pricing::Pricing;

/// How much is read at a time: what a processor's cache can hold until it is looked at.
const PIECE: usize = 128 << 10;

/// The dialect of run directories.
const RUN: &str = "flow-run";

/// How deep the records of a run directory nest.
const DEPTH: usize = 136;
/// The dialect of ATIF trajectories, which are written as well as read.
const ATIF: &str = "atif";

/// Agents tell their models where they run among the first things that they say.
const BEGINNING: u64 = 24;

/// A document beside a log is no longer than this.
const SIDECAR: u64 = 16 << 20;

/// The bytes of a log, which can be read more than once.
pub trait Bytes: Send {
    /// Gives all bytes in pieces of any size, until `take` says that it is enough.
    ///
    /// # Errors
    ///
    /// Whatever keeps them from being read.
    fn pieces(&self, take: &mut dyn FnMut(&[u8]) -> bool) -> io::Result<()>;

    /// All bytes from the beginning, for whoever wants them in pieces of their own.
    ///
    /// # Errors
    ///
    /// Whatever keeps them from being read.
    fn reader(&self) -> io::Result<Box<dyn Read + '_>>;

    /// When they were as they are.
    fn captured_at(&self) -> Option<Timestamp> {
        None
    }

    /// The small documents beside the log, by name.
    ///
    /// # Errors
    ///
    /// Whatever keeps them from being read.
    fn beside(&self, names: &[PathBuf]) -> io::Result<Vec<(String, Vec<u8>)>>;
}

/// The entries of a log, which were kept when it was read.
pub trait Entries: Send {
    /// Gives all of them, in order, for as long as the sink wants more.
    ///
    /// # Errors
    ///
    /// Whatever keeps them from being read.
    fn replay(&self, sink: &mut dyn Sink) -> io::Result<About>;
}

/// A log that is a file.
#[derive(Debug)]
pub struct LogFile(pub PathBuf);

impl Bytes for LogFile {
    fn pieces(&self, take: &mut dyn FnMut(&[u8]) -> bool) -> io::Result<()> {
        let mut file = File::open(&self.0)?;
        let mut piece = vec![0; PIECE];
        loop {
            match file.read(&mut piece) {
                Ok(0) => return Ok(()),
                Ok(read) if take(&piece[..read]) => {}
                Ok(_) => return Ok(()),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }

    fn reader(&self) -> io::Result<Box<dyn Read + '_>> {
        Ok(Box::new(File::open(&self.0)?))
    }

    fn captured_at(&self) -> Option<Timestamp> {
        modified_at(&self.0)
    }

    fn beside(&self, names: &[PathBuf]) -> io::Result<Vec<(String, Vec<u8>)>> {
        let mut found = Vec::new();
        for path in names {
            let small = fs::metadata(path).is_ok_and(|it| it.is_file() && it.len() <= SIDECAR);
            if small && !is_credential(path) {
                let name = path.file_name().unwrap_or_default().to_string_lossy();
                found.push((name.into_owned(), fs::read(path)?));
            }
        }
        Ok(found)
    }
}

/// A log of some dialect.
pub struct Log<B> {
    /// Its bytes.
    pub bytes: B,
    /// Where it lies, or lay.
    pub path: PathBuf,
    /// Which session of those in it.
    pub part: Option<String>,
    /// Whose it is.
    pub family: &'static dyn Family,
    /// How it reads.
    pub dialect: Dialect,
    /// The agent, where it is another than the dialect's.
    pub agent: Option<String>,
    /// Its session in the agent's own terms, where that is known already.
    pub native: Option<String>,
    /// The call that began it, where another log tells of it.
    pub parent_call: Option<String>,
    /// Its run, where it has a name already.
    pub run_id: Option<RunId>,
    /// What tokens cost.
    pub prices: Arc<Prices>,
    /// What is doubtful about whose log it is.
    pub doubt: Option<String>,
    /// Its entries, where they are kept: then no adapter reads it again.
    pub entries: Option<Box<dyn Entries>>,
    /// What the first reading found.
    surveyed: Option<(RunId, Marks)>,
}

impl<B: Bytes> Log<B> {
    /// A log of this dialect.
    pub fn new(
        bytes: B,
        path: &Path,
        (family, dialect): (&'static dyn Family, Dialect),
        prices: &Arc<Prices>,
    ) -> Self {
        Self {
            bytes,
            path: path.to_owned(),
            part: None,
            parent_call: None,
            family,
            dialect,
            agent: None,
            native: None,
            run_id: None,
            prices: Arc::clone(prices),
            doubt: None,
            entries: None,
            surveyed: None,
        }
    }

    /// Reads all of it into a sink, as far as that wants more.
    fn feed(&self, sink: &mut dyn Sink) -> Result<About, SourceError> {
        if let Some(entries) = &self.entries {
            return entries.replay(sink).map_err(unreadable(&self.path));
        }
        let origin = LogOrigin {
            path: &self.path,
            part: self.part.as_deref(),
        };
        let reader = self.family.open(&self.dialect, &origin, None);
        let reader = reader.ok_or_else(|| SourceError::Unknown(self.path.clone()))?;
        let mut feed = Feed::new(self.dialect.framing, reader);
        let read = self.bytes.pieces(&mut |piece| {
            feed.push(piece, sink);
            !sink.is_done()
        });
        read.map_err(unreadable(&self.path))?;
        if sink.is_done() {
            return Ok(About::new(&feed, None));
        }
        let beside = self.bytes.beside(&self.family.sidecars(&self.path));
        for (name, bytes) in beside.map_err(unreadable(&self.path))? {
            feed.sidecar(&name, &bytes, sink);
        }
        let problem = feed.finish(sink).err();
        Ok(About::new(&feed, problem.as_ref()))
    }

    fn header_of(&self, session: &Session, survey: &Survey<'_>) -> Header {
        let name = self.path.file_stem().unwrap_or_default().to_string_lossy();
        let own = self.native.as_deref().or(session.id.as_deref());
        let native = own.unwrap_or(&name);
        let run_id = self.run_id.clone();
        let parent = session.parent.as_deref().map(quipu_agents::run_id);
        let first = survey.first;
        let told = Told::or(survey.told.clone(), || here(&self.path, self.family));
        let title = session
            .title
            .clone()
            .or_else(|| survey.summary.title.clone());
        Header {
            parent_run_id: parent,
            parent_call: session
                .parent_call
                .clone()
                .or(self.parent_call.clone())
                .map(Into::into),
            forked_from: session.forked_from.clone().map(Into::into),
            children: survey.children.clone(),
            title,
            origin: Some(Origin {
                agent: self
                    .agent
                    .clone()
                    .or_else(|| session.agent.clone())
                    .unwrap_or_else(|| self.dialect.brand.to_owned()),
                agent_version: session.version.clone(),
                adapter: Some(self.dialect.name.to_owned()),
                session_id: Some(native.into()),
                path: Some(self.path.to_string_lossy().into_owned()),
            }),
            environment: Environment {
                cwd: session.cwd.clone(),
                git_branch: session.branch.clone(),
                repository: session.repository.clone(),
                commit: session.commit.clone(),
                os: session.os.clone().or(told.os),
                shell: session.shell.clone().or(told.shell),
            },
            started_at: first.into_iter().chain(session.started()).min(),
            ended_at: survey.last,
            totals: survey.totals.clone(),
            ..Header::new(run_id.unwrap_or_else(|| quipu_agents::run_id(native)))
        }
    }
}

impl<B: Bytes> Source for Log<B> {
    fn format(&self) -> &'static str {
        self.dialect.name
    }

    fn path(&self) -> &Path {
        &self.path
    }

    fn copy(&self, to: &mut dyn Write) -> Result<(), SourceError> {
        let mut written = Ok(());
        let read = self.bytes.pieces(&mut |piece| {
            written = to.write_all(piece);
            written.is_ok()
        });
        read.map_err(unreadable(&self.path))?;
        written.map_err(SourceError::Refused)
    }

    fn has_originals(&self) -> bool {
        self.dialect.name == RUN
    }

    fn originals(
        &self,
        put: &mut dyn FnMut(&str, &[u8]) -> io::Result<bool>,
    ) -> Result<Originals, SourceError> {
        let mut files = Files::new(put);
        let mut refused = Ok(());
        let mut tape = Tape::new();
        let mut line = Vec::new();
        let mut take = |line: &[u8]| {
            let text = String::from_utf8_lossy(line);
            match tape.read(&text, DEPTH).ok().and_then(Record::decode) {
                Some(record) => files.take(record),
                None => Ok(()),
            }
        };
        let read = self.bytes.pieces(&mut |mut piece| {
            while let Some(end) = memchr::memchr(b'\n', piece) {
                line.extend_from_slice(&piece[..end]);
                refused = take(&line);
                line.clear();
                piece = &piece[end + 1..];
                if refused.is_err() {
                    return false;
                }
            }
            line.extend_from_slice(piece);
            true
        });
        read.map_err(unreadable(&self.path))?;
        refused.map_err(SourceError::Refused)?;
        files.finish().map_err(SourceError::Refused)
    }

    fn captured_at(&self) -> Option<Timestamp> {
        self.bytes.captured_at()
    }

    fn original(&self, to: Format) -> Option<io::Result<Box<dyn Read + '_>>> {
        let is_it = self.dialect.name == ATIF && to == Format::Atif && self.part.is_none();
        is_it.then(|| self.bytes.reader())
    }

    fn header(&mut self) -> Result<Header, SourceError> {
        let prices = Arc::clone(&self.prices);
        let mut survey = Survey::new(&prices);
        let about = self.feed(&mut survey)?;
        about.close(&mut survey.marks);
        let header = self.header_of(&about.session, &survey);
        self.surveyed = Some((header.run_id.clone(), survey.marks));
        Ok(header)
    }

    fn read(&mut self, to: &mut dyn Receiver) -> Result<Account, SourceError> {
        if self.surveyed.is_none() {
            self.header()?;
        }
        let (run_id, marks) = self.surveyed.clone().unwrap_or_else(|| {
            unreachable!("the header is read before the events, and leaves what it found")
        });
        let prices = Arc::clone(&self.prices);
        let mut giving = Giving {
            to,
            marks,
            run_id,
            file: self.path.to_string_lossy().into_owned(),
            pricing: Pricing::new(&prices),
            refused: None,
        };
        let about = self.feed(&mut giving)?;
        if let Some(refused) = giving.refused {
            return Err(SourceError::Refused(refused));
        }
        let dropped = about.dropped.iter();
        let mended = about.mended.iter();
        Ok(Account {
            records: about.records,
            dropped: dropped
                .map(|(why, n)| (why.as_str().to_owned(), *n))
                .collect(),
            mended: mended
                .map(|(what, n)| (what.as_str().to_owned(), *n))
                .collect(),
            remarks: self.doubt.iter().cloned().chain(left_out(&about)).collect(),
            problems: about.problem.into_iter().collect(),
            ..Account::default()
        })
    }
}

/// Fields of the log that are known and reach no event, in a sentence.
fn left_out(about: &About) -> Vec<String> {
    const MOST: usize = 8;
    let names: Vec<String> = about
        .left_out
        .iter()
        .map(|(name, count)| format!("{count} {name}"))
        .collect();
    if names.is_empty() {
        return Vec::new();
    }
    let more = match names.len().saturating_sub(MOST) {
        0 => String::new(),
        more => format!("; and {more} more"),
    };
    let shown = names[..names.len().min(MOST)].join("; ");
    vec![format!("fields that reach no event: {shown}{more}")]
}

/// What the first reading is for. Texts are not looked at, but for the first few.
struct Survey<'p> {
    summary: Summary,
    totals: Totals,
    children: Distinct<RunId>,
    first: Option<Timestamp>,
    last: Option<Timestamp>,
    told: Told,
    marks: Marks,
    pricing: Pricing<'p>,
}

impl<'p> Survey<'p> {
    fn new(prices: &'p Prices) -> Self {
        Self {
            summary: Summary::default(),
            totals: Totals::default(),
            children: Distinct::default(),
            first: None,
            last: None,
            told: Told::default(),
            marks: Marks::default(),
            pricing: Pricing::new(prices),
        }
    }
}

impl Sink for Survey<'_> {
    fn entry(&mut self, _seq: u64, at: Timestamp, _position: Position, entry: &Entry<'_>) {
        // Of the summary only the title is wanted, which the first prompt gives.
        if self.summary.title.is_none() {
            self.summary.observe(entry);
        }
        if self.totals.events < BEGINNING {
            self.told.look(entry);
        }
        self.marks.observe(entry);
        let totals = &mut self.totals;
        totals.events += 1;
        match entry.what {
            What::User(_) | What::Assistant(_) | What::System(_) => totals.messages += 1,
            What::Call { .. } => totals.tool_calls += 1,
            What::Reasoning(_) | What::Result { .. } | What::Note { .. } => {}
        }
        if let Some(usage) = &entry.usage {
            totals.usage.add(usage);
        }
        if let Some(cost) = self.pricing.cost(entry) {
            totals.cost = Some(totals.cost.map_or(cost, |sum| sum.saturating_add(cost)));
        }
        if let Some(model) = entry.model.as_deref()
            && !totals.models.iter().any(|known| known == model)
        {
            totals.models.push(model.to_owned());
        }
        if entry.at.is_some() {
            self.first = Some(self.first.map_or(at, |first| first.min(at)));
            self.last = Some(self.last.map_or(at, |last| last.max(at)));
        }
        if let Some(child) = entry.child.as_deref().map(quipu_agents::run_id) {
            self.children.add(&child);
        }
    }
}

/// Gives events on.
struct Giving<'r, 'p> {
    to: &'r mut dyn Receiver,
    marks: Marks,
    run_id: RunId,
    file: String,
    pricing: Pricing<'p>,
    refused: Option<io::Error>,
}

impl Sink for Giving<'_, '_> {
    fn entry(&mut self, seq: u64, at: Timestamp, position: Position, entry: &Entry<'_>) {
        if self.refused.is_some() {
            return;
        }
        let mut event = entry.to_event(seq, at, &self.run_id, position, &self.file);
        self.marks.mark(&mut event);
        if let Some(cost) = self.pricing.cost(entry) {
            event.annotations.cost = Some(cost);
        }
        self.refused = self.to.event(event).err();
    }

    fn blob(&mut self, attachment: &Attachment, bytes: &[u8]) {
        if self.refused.is_none() {
            self.refused = self.to.blob(attachment, bytes).err();
        }
    }

    fn wants_blobs(&self) -> bool {
        true
    }

    fn is_done(&self) -> bool {
        self.refused.is_some()
    }
}
