//! What is indexed: the texts of events, taken out of the logs, so that others can be given the same.
//!
//! `texts` has the texts, each after its length; `events` has a line for each with what else is known of it.

use std::fs::{self, File};
use std::io::{BufRead as _, BufReader, BufWriter, Read as _, Write as _};
use std::os::unix::fs::FileExt as _;
use std::path::Path;

use anyhow::{Context as _, Result};
use quipu_agents::{Entry, Feed, Origin, Position, Sink, What};
use quipu_model::Timestamp;
use quipu_store::search::document::{EventText, role};

/// Takes the texts out of the logs below `home`.
pub(crate) fn extract(home: &Path, to: &Path) -> Result<()> {
    fs::create_dir_all(to)?;
    let mut taking = Taking {
        texts: BufWriter::new(File::create(to.join("texts"))?),
        events: BufWriter::new(File::create(to.join("events"))?),
        said: EventText::default(),
        of_log: Vec::new(),
        failed: None,
    };
    let mut piece = vec![0; 1 << 20];
    for (path, _) in crate::files::logs(home)? {
        let mut file = File::open(&path)?;
        let mut head = Vec::new();
        (&mut file)
            .take(quipu_agents::HEAD as u64)
            .read_to_end(&mut head)?;
        let whole = head.len() < quipu_agents::HEAD;
        let known = quipu_agents::identify(&head, whole);
        let (family, dialect) = known.with_context(|| format!("{}: no log", path.display()))?;
        let origin = Origin {
            path: &path,
            part: None,
        };
        let reader = family.open(&dialect, &origin, None).context("a reader")?;
        let mut feed = Feed::new(dialect.framing, reader);
        feed.push(&head, &mut taking);
        loop {
            let read = file.read(&mut piece)?;
            if read == 0 {
                break;
            }
            feed.push(&piece[..read], &mut taking);
        }
        feed.finish(&mut taking)?;
        let directory = feed.session().cwd.clone().unwrap_or_default();
        taking.end(directory.rsplit('/').next().unwrap_or_default())?;
    }
    taking.texts.flush()?;
    taking.events.flush()?;
    Ok(())
}

struct Taking {
    texts: BufWriter<File>,
    events: BufWriter<File>,
    said: EventText,
    /// The events of a log, until it is known which project they are of.
    of_log: Vec<Event>,
    failed: Option<std::io::Error>,
}

impl Sink for Taking {
    fn entry(&mut self, _: u64, at: Timestamp, _: Position, entry: &Entry<'_>) {
        let text = self.said.text(entry);
        if text.is_empty() && entry.is_note() {
            return;
        }
        let tool = match &entry.what {
            What::Call { name, .. } | What::Result { name, .. } => name.to_lowercase(),
            _ => String::new(),
        };
        self.of_log.push(Event {
            from: 0,
            len: text.len(),
            at: at.as_millisecond(),
            role: role(&entry.what).to_owned(),
            tool,
            project: String::new(),
        });
        let len = u32::try_from(text.len()).unwrap_or(u32::MAX).to_le_bytes();
        let written = self.texts.write_all(&len);
        let written = written.and_then(|()| self.texts.write_all(text.as_bytes()));
        if let Err(error) = written {
            self.failed.get_or_insert(error);
        }
    }
}

impl Taking {
    fn end(&mut self, project: &str) -> Result<()> {
        if let Some(error) = self.failed.take() {
            return Err(error.into());
        }
        for event in self.of_log.drain(..) {
            let Event {
                len,
                at,
                role,
                tool,
                ..
            } = event;
            writeln!(self.events, "{len}\t{at}\t{role}\t{tool}\t{project}")?;
        }
        Ok(())
    }
}

/// Gives each text to `take`, in the order of the logs.
pub(crate) fn each(from: &Path, mut take: impl FnMut(&str) -> Result<()>) -> Result<()> {
    let mut texts = BufReader::with_capacity(1 << 20, File::open(from.join("texts"))?);
    let (mut len, mut text) = ([0; LEN], Vec::new());
    while !texts.fill_buf()?.is_empty() {
        texts.read_exact(&mut len)?;
        text.resize(usize::try_from(u32::from_le_bytes(len))?, 0);
        texts.read_exact(&mut text)?;
        take(std::str::from_utf8(&text)?)?;
    }
    Ok(())
}

/// What the length of a text takes.
pub(crate) const LEN: usize = 4;

/// An event.
#[derive(Debug, Clone)]
pub(crate) struct Event {
    /// Where its text stands.
    from: u64,
    len: usize,
    pub(crate) at: i64,
    pub(crate) role: String,
    pub(crate) tool: String,
    pub(crate) project: String,
}

/// All texts, in the order of their time.
pub(crate) struct Texts {
    file: File,
    pub(crate) events: Vec<Event>,
}

impl Texts {
    pub(crate) fn open(from: &Path) -> Result<Self> {
        let lines = BufReader::new(File::open(from.join("events"))?);
        let (mut events, mut at) = (Vec::new(), 0);
        for line in lines.lines() {
            let event = Event::parse(&line?, at).context("the list of events is damaged")?;
            at = event.from + event.len as u64;
            events.push(event);
        }
        events.sort_by_key(|event| event.at);
        Ok(Self {
            file: File::open(from.join("texts"))?,
            events,
        })
    }

    pub(crate) fn read(&self, event: &Event) -> Result<String> {
        let mut text = vec![0; event.len];
        self.file.read_exact_at(&mut text, event.from)?;
        Ok(String::from_utf8(text)?)
    }
}

impl Event {
    fn parse(line: &str, at: u64) -> Option<Self> {
        let mut fields = line.split('\t');
        Some(Self {
            from: at + LEN as u64,
            len: fields.next()?.parse().ok()?,
            at: fields.next()?.parse().ok()?,
            role: fields.next()?.to_owned(),
            tool: fields.next()?.to_owned(),
            project: fields.next()?.to_owned(),
        })
    }
}
