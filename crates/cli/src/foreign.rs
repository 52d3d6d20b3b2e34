//! Reading an agent's log where it lies, without keeping it.

use std::fs::File;
use std::io::{self, BufWriter, Read as _, Write};
use std::path::Path;

use quipu_agents::{
    Collect, Dialect, FAMILIES, Family, Feed, FeedError, GatherError, Gathered, Origin, Session,
    Summary,
};
use quipu_agents::{Entry, Position, Sink, is_credential};
use quipu_model::{Attachment, Event, Timestamp, Usage};
use quipu_store::catalogue::{Figures, TranscriptRow};
use quipu_store::facade::identify;

/// A log, read.
pub(crate) struct Log {
    /// The agent that wrote it.
    pub(crate) agent: &'static str,
    /// How it reads.
    pub(crate) dialect: &'static str,
    /// What it says of the session.
    pub(crate) session: Session,
    /// What the session comes to.
    pub(crate) summary: Summary,
    pub(crate) events: Vec<Event>,
    /// Why it could not be read wholly.
    pub(crate) problem: Option<FeedError>,
    /// What is doubtful about whose log it is.
    pub(crate) doubt: Option<String>,
    dangling: u64,
    orphans: u64,
}

impl Log {
    /// What the catalogue would say of it.
    pub(crate) fn row(&self, path: &Path) -> TranscriptRow {
        let (session, summary) = (&self.session, &self.summary);
        let name = path.file_stem().unwrap_or_default().to_string_lossy();
        let id = quipu_agents::run_id(session.id.as_deref().unwrap_or(&name));
        let metadata = path.metadata().ok();
        let started = session.started_at.or(summary.first_at);
        TranscriptRow {
            id: 0,
            run_id: id.to_string(),
            native: id.to_string(),
            agent: self.agent.to_owned(),
            agent_version: session.version.clone(),
            title: session.title.clone().or_else(|| summary.title.clone()),
            cwd: session.cwd.clone(),
            branch: session.branch.clone(),
            repository: session.repository.clone(),
            commit: session.commit.clone(),
            parent: session.parent.clone(),
            parent_call: session.parent_call.clone(),
            forked_from: session.forked_from.clone(),
            copy_of: None,
            copied_events: 0,
            duplicate: false,
            reconstructed: session.reconstructed,
            started_at: started.min(summary.first_at).or(started),
            ended_at: summary.last_at,
            figures: Figures {
                events: summary.events,
                notes: summary.notes,
                prompts: summary.prompts,
                replies: summary.replies,
                tool_calls: summary.tool_calls,
                failures: summary.failures,
                denials: summary.denials,
                errors: summary.errors,
                compactions: summary.compactions,
                attachments: summary.attachments,
                dangling: self.dangling,
                orphans: self.orphans,
                calls: summary.calls(),
            },
            usage: summary.usage(),
            vendor_usage: session.vendor_usage.map(Usage::from).unwrap_or_default(),
            vendor_cost: session.vendor_cost.clone(),
            models: summary.models.iter().cloned().collect(),
            path: path.to_owned(),
            part: None,
            dialect: Some(self.dialect.to_owned()),
            key: String::new(),
            size: metadata.map_or(0, |metadata| metadata.len()),
            modified: None,
            recorded: false,
            version: 0,
            read_to: 0,
            address: String::new(),
            original: None,
            received_from: None,
            received_key: None,
        }
    }
}

/// Keeps events and sums them up.
struct Both {
    events: Collect,
    summary: Summary,
}

impl Sink for Both {
    fn entry(&mut self, seq: u64, at: Timestamp, position: Position, entry: &Entry<'_>) {
        self.summary.observe(entry);
        self.events.entry(seq, at, position, entry);
    }

    // Images are not shown, so they need not be held.
    fn blob(&mut self, _attachment: &Attachment, _bytes: &[u8]) {}
}

/// Why sessions cannot be taken out of what holds them.
fn unreadable(error: GatherError) -> io::Error {
    match error {
        GatherError::Io(error) => error,
        error => io::Error::new(io::ErrorKind::InvalidData, error),
    }
}

fn refuse_packed(path: &Path) -> io::Result<()> {
    if path.extension().is_some_and(|ending| ending == "zst") {
        let error = "a compressed log; `quipu import` reads it";
        return Err(io::Error::new(io::ErrorKind::Unsupported, error));
    }
    Ok(())
}

/// Reads the log of an agent. `None` when it is not known whose it is.
pub(crate) fn read(path: &Path) -> io::Result<Option<Log>> {
    if path.is_dir() {
        return read_directory(path);
    }
    refuse_packed(path)?;
    let Some(known) = identify(path)? else {
        return Ok(None);
    };
    let (family, dialect) = (known.family, known.dialect);
    let Some((mut feed, mut sink)) = begin(path, family, dialect) else {
        return Ok(None);
    };
    let mut file = File::open(path)?;
    let mut piece = vec![0; 1 << 18];
    loop {
        match file.read(&mut piece) {
            Ok(0) => break,
            Ok(read) => feed.push(&piece[..read], &mut sink),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    for beside in family.sidecars(path) {
        if is_credential(&beside) || !beside.is_file() {
            continue;
        }
        let name = beside.file_name().unwrap_or_default().to_string_lossy();
        feed.sidecar(&name, &std::fs::read(&beside)?, &mut sink);
    }
    Ok(Some(Log {
        doubt: known.warning(),
        ..done(feed, sink, dialect)
    }))
}

/// Reads a directory that is one session.
fn read_directory(path: &Path) -> io::Result<Option<Log>> {
    let holder = FAMILIES.iter().find_map(|family| {
        let gather = family.gather().filter(|gather| gather.holds(path))?;
        Some((*family, gather))
    });
    let Some((family, gather)) = holder else {
        return Ok(None);
    };
    let dialect = gather.dialect();
    let from = Gathered::Tree(path);
    let parts = gather.parts(&from).map_err(unreadable)?;
    let [part] = &parts[..] else {
        let error = "a directory of several sessions; `quipu import` reads them";
        return Err(io::Error::new(io::ErrorKind::Unsupported, error));
    };
    let Some((feed, sink)) = begin(path, family, dialect) else {
        return Ok(None);
    };
    let mut feeding = Feeding { feed, sink };
    {
        let mut pieces = BufWriter::with_capacity(1 << 18, &mut feeding);
        let written = gather.write(&from, &part.id, &mut pieces);
        written.map_err(unreadable)?;
        pieces.flush()?;
    }
    Ok(Some(done(feeding.feed, feeding.sink, dialect)))
}

/// Reads what is written to it.
struct Feeding {
    feed: Feed,
    sink: Both,
}

impl Write for Feeding {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.feed.push(bytes, &mut self.sink);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// What a log is read with.
fn begin(path: &Path, family: &'static dyn Family, dialect: Dialect) -> Option<(Feed, Both)> {
    let origin = Origin { path, part: None };
    let reader = family.open(&dialect, &origin, None)?;
    let name = path.file_stem().unwrap_or_default().to_string_lossy();
    let sink = Both {
        events: Collect::new(quipu_agents::run_id(&name), &path.to_string_lossy()),
        summary: Summary::default(),
    };
    Some((Feed::new(dialect.framing, reader), sink))
}

/// What was read.
fn done(mut feed: Feed, mut sink: Both, dialect: Dialect) -> Log {
    let problem = feed.finish(&mut sink).err();
    sink.events.mark(feed.ledger());
    let mut events = sink.events.events;
    if let Some(id) = &feed.session().id {
        let id = quipu_agents::run_id(id);
        for event in &mut events {
            event.run_id = id.clone();
        }
    }
    Log {
        agent: dialect.brand,
        dialect: dialect.name,
        session: feed.session().clone(),
        summary: sink.summary,
        events,
        problem,
        doubt: None,
        dangling: feed.ledger().open_calls().count() as u64,
        orphans: feed.ledger().orphans,
    }
}
