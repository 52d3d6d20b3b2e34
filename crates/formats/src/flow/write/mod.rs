//! A session as a run directory: the documented files, and nothing that contradicts them.
//!
//! Everything is written beside ([`Beside`]): `<flow>/llm/<step>-<agent>-<engine>.jsonl`,
//! `<flow>/receipts/<step>-<agent>.json`, and a `meta.json` for what is true of the run. What goes to the
//! output itself is the list of those files, one a line.
//!
//! The plain name of a step is that of its latest iteration, the earlier ones are `….i1`, `….i2`. So the latest
//! is held until it is known that nothing follows it; the format leaves no other way.

mod document;
mod journal;
mod line;
mod meta;
mod steps;
mod told;
mod unit;

use std::collections::{BTreeMap, HashSet};
use std::io::{self, Write};

use quipu_model::{Attachment, Body, Event, Header, Money};

use self::journal::Journal;
use self::meta::RunMeta;
use self::told::Told;
use self::unit::{Done, Unit};
use super::names;
use super::run::JOURNAL;
use crate::loss::{Field, Loss};
use crate::plain;
use crate::projection::{Beside, Projection};

pub(super) use document::{Object, receipt_of_stub};
pub(super) use line::message as message_line;
pub use steps::StepFiles;

/// The model of a receipt where no event names one. The format asks for a text.
pub const UNKNOWN: &str = "unknown";

/// What to put where the session does not say.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FlowOptions {
    /// The flow of steps that are in none; `session` otherwise.
    pub flow: Option<String>,
    /// The step of what is in none; `main` otherwise.
    pub step: Option<String>,
    /// The agent of what no sub-agent did; that of the session otherwise.
    pub agent: Option<String>,
    /// The engine; told from the session's agent or from the model otherwise.
    pub engine: Option<String>,
}

/// What has a place in the format, in one kind of event or another.
pub const CARRIES: &[Field] = &[
    Field::Timestamp,
    Field::RunLinks,
    Field::Place,
    Field::Subagent,
    Field::Model,
    Field::Usage,
    Field::UsageCache,
    Field::UsageCache1h,
    Field::UsageReasoning,
    Field::Cost,
    Field::Duration,
    Field::Status,
    Field::Synthetic,
    Field::Dangling,
    Field::Title,
    Field::Agent,
    Field::AgentVersion,
    Field::SessionId,
    Field::Cwd,
    Field::Branch,
    Field::Commit,
];

/// What a line of a message has a place for.
const OF_MESSAGES: &[Field] = &[
    Field::Timestamp,
    Field::RunLinks,
    Field::Place,
    Field::Subagent,
    Field::Model,
    Field::Usage,
    Field::UsageCache,
    Field::UsageCache1h,
    Field::UsageReasoning,
    Field::Cost,
    Field::Synthetic,
];

/// Which step an event belongs to, and who did it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Key {
    flow: String,
    step: String,
    agent: String,
}

/// Writes a session as a run directory. `out` gets the list of the files.
///
/// # Errors
///
/// None at this point.
pub fn writer<'w>(
    header: &Header,
    options: &FlowOptions,
    out: Box<dyn Write + 'w>,
    beside: Box<dyn Beside + 'w>,
) -> io::Result<Box<dyn Projection + 'w>> {
    let mut loss = Loss::default();
    loss.header(header, CARRIES);
    Ok(Box::new(Writer {
        header: header.clone(),
        options: options.clone(),
        out,
        beside,
        loss,
        open: Vec::new(),
        held: BTreeMap::new(),
        used: HashSet::new(),
        files: Vec::new(),
        meta: RunMeta::default(),
        journal: Journal::default(),
        spent: None,
        blobs: 0,
    }))
}

struct Writer<'w> {
    header: Header,
    options: FlowOptions,
    out: Box<dyn Write + 'w>,
    beside: Box<dyn Beside + 'w>,
    loss: Loss,
    /// Steps that have not ended, in the order in which they began.
    open: Vec<(Key, u64, Unit)>,
    /// The latest iteration of each step.
    held: BTreeMap<Key, Done>,
    /// The names that are taken, in small letters: some file systems do not tell them apart.
    used: HashSet<String>,
    files: Vec<String>,
    meta: RunMeta,
    journal: Journal,
    /// What the run cost so far.
    spent: Option<Money>,
    blobs: u64,
}

impl Projection for Writer<'_> {
    fn blob(&mut self, _attachment: &Attachment, _bytes: &[u8]) -> io::Result<()> {
        self.blobs += 1;
        Ok(())
    }

    fn event(&mut self, given: &Event) -> io::Result<()> {
        let event = &*plain::plain(given);
        self.loss.events += 1;
        for _ in 0..std::mem::take(&mut self.blobs) {
            self.loss.dropped("attachment bytes", event.seq);
        }
        let carried = match &event.body {
            Body::UserMessage(_) | Body::AssistantMessage(_) | Body::SystemMessage(_) => {
                OF_MESSAGES
            }
            _ => CARRIES,
        };
        self.loss.fields(event, carried);
        let notes = &event.annotations;
        let spends = notes.usage.is_some() || notes.cost.is_some();
        match &event.body {
            Body::RunStarted(step) => {
                self.meta.started(event, step.as_ref(), &mut self.loss);
            }
            Body::RunCompleted(end) => {
                self.meta.completed(event, end.as_ref(), &mut self.loss);
            }
            Body::CallStarted { .. } | Body::CallCompleted { .. } => {
                self.loss.dropped(plain::name(event), event.seq);
            }
            Body::Note(note) => {
                let told = Told::of(note).and_then(|told| Some((told, self.find(event)?)));
                if let Some((told, at)) = told {
                    self.open[at].2.take_told(told, event.seq, &mut self.loss);
                } else if !self.journal.take(event, note) {
                    self.loss.dropped(plain::name(given), event.seq);
                }
            }
            _ => return self.in_step(event),
        }
        // What it took is counted all the same: the totals are those of the session.
        if spends {
            let at = self.unit(event);
            self.open[at].2.take_totals(event, &mut self.loss);
        }
        Ok(())
    }

    fn finish(mut self: Box<Self>) -> io::Result<Loss> {
        // What the run has cost is told in the order in which steps end.
        let mut open = std::mem::take(&mut self.open);
        open.sort_by_key(|(_, _, unit)| unit.until());
        for (key, iteration, unit) in open {
            self.close(key, iteration, unit)?;
        }
        for (key, done) in std::mem::take(&mut self.held) {
            self.put(&key, &done, None)?;
        }
        if !self.journal.is_empty() {
            if self.beside.put(JOURNAL, self.journal.bytes())? {
                self.loss.carried += self.journal.events();
                self.files.push(JOURNAL.to_owned());
            } else {
                self.loss.dropped("files", 0);
            }
        }
        let meta = self.meta.document(&self.header);
        if self.beside.put("meta.json", &meta)? {
            self.loss.carried += self.meta.events();
            self.files.push("meta.json".to_owned());
        } else {
            self.loss.dropped("files", 0);
        }
        for file in &self.files {
            writeln!(self.out, "{file}")?;
        }
        self.out.flush()?;
        Ok(self.loss)
    }
}

impl Writer<'_> {
    /// Takes an event that belongs into a transcript or a receipt.
    fn in_step(&mut self, event: &Event) -> io::Result<()> {
        let mut at = self.unit(event);
        // A step that begins again is another execution of it.
        if matches!(&event.body, Body::StepStarted(_)) && self.open[at].2.has_begun() {
            let (key, iteration, unit) = self.open.remove(at);
            self.close(key, iteration, unit)?;
            at = self.unit(event);
        }
        self.open[at].2.take(event, &mut self.loss);
        if matches!(&event.body, Body::StepCompleted(_)) {
            let (key, iteration, unit) = self.open.remove(at);
            self.close(key, iteration, unit)?;
        }
        Ok(())
    }

    /// The step that an event is in, if that has begun.
    fn find(&self, event: &Event) -> Option<usize> {
        let (key, _) = self.key(event);
        let same = |(other, iteration, _): &(Key, u64, Unit)| {
            *other == key && *iteration == event.place.iteration()
        };
        self.open.iter().rposition(same)
    }

    /// Which step an event is in, and what of that is not said.
    fn key(&self, event: &Event) -> (Key, [Option<&'static str>; 3]) {
        let place = &event.place;
        let (flow, step) = match place.path.split_once('.') {
            Some((flow, step)) if !flow.is_empty() && !step.is_empty() => (Some(flow), Some(step)),
            _ => (
                None,
                Some(place.path.as_str()).filter(|path| !path.is_empty()),
            ),
        };
        let own = event.annotations.subagent_id.as_deref();
        let agent = own.filter(|agent| !agent.is_empty());
        let options = &self.options;
        let known = agent.or(options.agent.as_deref()).or(self.header.agent());
        let known = known.filter(|agent| !agent.is_empty());
        let key = Key {
            flow: flow
                .or(options.flow.as_deref())
                .unwrap_or("session")
                .to_owned(),
            step: step
                .or(options.step.as_deref())
                .unwrap_or("main")
                .to_owned(),
            agent: known.unwrap_or("agent").to_owned(),
        };
        let missing = [
            flow.is_none().then_some("flow_key"),
            step.is_none().then_some("step_id"),
            known.is_none().then_some("agent_key"),
        ];
        (key, missing)
    }

    /// The step that an event is in, which may begin with it.
    fn unit(&mut self, event: &Event) -> usize {
        if let Some(at) = self.find(event) {
            return at;
        }
        let (key, missing) = self.key(event);
        for what in missing.into_iter().flatten() {
            self.loss.inferred(what, event.seq);
        }
        let iteration = event.place.iteration();
        self.open.push((key, iteration, Unit::new(event)));
        self.open.len() - 1
    }

    /// Ends a step: its receipt is made, and the iteration before it is written.
    fn close(&mut self, key: Key, iteration: u64, unit: Unit) -> io::Result<()> {
        if unit.is_bare() && !self.journal.is_empty() {
            // The journal tells of it, and there is nothing else that files could say.
            self.loss.carried += unit.carried();
            return Ok(());
        }
        let before = self.held.remove(&key);
        let mut number = iteration.saturating_add(1);
        if let Some(before) = &before
            && number <= before.iteration
        {
            number = before.iteration.saturating_add(1);
            self.loss.wrapped("iteration", unit.first_seq());
        }
        self.spent = match (self.spent, unit.cost()) {
            (Some(spent), Some(cost)) => Some(spent + cost),
            (spent, cost) => spent.or(cost),
        };
        let engine = self.engine(&unit);
        let done = unit.end(number, engine, self.spent, &mut self.loss);
        if let Some(before) = before {
            self.put(&key, &before, Some(before.iteration))?;
        }
        self.held.insert(key, done);
        Ok(())
    }

    /// What ran the step, in one word.
    fn engine(&mut self, unit: &Unit) -> String {
        if let Some(engine) = unit.told().and_then(Told::engine_word) {
            return engine;
        }
        let agent = self.header.agent().filter(|agent| *agent != super::PROGRAM);
        let named = self.options.engine.as_deref().or(agent);
        if named.is_none() {
            self.loss.inferred("engine", unit.first_seq());
        }
        let word = named.or(unit.model()).unwrap_or_default();
        names::engine_of(word)
    }

    /// Writes the two files of a step.
    fn put(&mut self, key: &Key, done: &Done, iteration: Option<u64>) -> io::Result<()> {
        let (transcript, receipt) = self.names(key, done, iteration);
        let below = transcript.split_once('/').map_or("", |(_, below)| below);
        // A transcript that was not there is not made up: what is missing stays missing.
        let missing = done.missing();
        let below = missing.and_then(Told::transcript_path).unwrap_or(below);
        let document = document::receipt(&self.header, key, done, below);
        let there = (missing.is_some() || self.beside.put(&transcript, &done.transcript)?)
            && self.beside.put(&receipt, &document)?;
        if there {
            self.loss.carried += done.carried;
            if missing.is_none() {
                self.files.push(transcript);
            }
            self.files.push(receipt);
        } else {
            self.loss.dropped("files", done.first_seq);
        }
        Ok(())
    }

    /// The names of a step's files. What is not safe in a name is escaped; what another step is called
    /// already is told apart.
    fn names(&mut self, key: &Key, done: &Done, iteration: Option<u64>) -> (String, String) {
        let (flow, step, agent) = (
            names::escape(&key.flow),
            names::escape(&key.step),
            names::escape(&key.agent),
        );
        for (name, text) in [(&flow, &key.flow), (&step, &key.step), (&agent, &key.agent)] {
            if **name != **text {
                self.loss.wrapped("file name", done.first_seq);
            }
        }
        let ending = iteration.map_or_else(String::new, |number| format!(".i{number}"));
        let plain = format!("{step}-{agent}");
        let apart = format!("{}-{agent}", step.replace('-', "%2D"));
        let numbered = (2u64..).map(|n| format!("{plain}~~{n}"));
        for stem in [plain.clone(), apart].into_iter().chain(numbered) {
            let transcript = format!("{flow}/llm/{stem}-{}{ending}.jsonl", done.engine);
            let receipt = format!("{flow}/receipts/{stem}{ending}.json");
            let taken = [&transcript, &receipt]
                .iter()
                .any(|name| self.used.contains(&name.to_ascii_lowercase()));
            if !taken {
                for name in [&transcript, &receipt] {
                    self.used.insert(name.to_ascii_lowercase());
                }
                return (transcript, receipt);
            }
        }
        unreachable!("there are more numbers than steps")
    }
}
