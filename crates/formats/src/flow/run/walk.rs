//! A directory as records.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::fs;
use std::io::{self, Read};
use std::path::Path;

use quipu_model::json::Tape;
use quipu_model::{Place, Timestamp};
use sha2::Digest as _;

use super::journal::{self, Counts, Journal};
use super::meta::{self, Meta};
use super::plan::Plan;
use crate::flow::FlowError;
use crate::flow::receipt::Receipt;
use crate::flow::record::{self, Part, Record, RunEnd, RunFacts, path_of};
use crate::flow::scan::{self, DEPTH, File, MAX_DOCUMENT, Root, Scan, Unit};
use crate::flow::time;
use crate::flow::verify::{Findings, Rule, check_costs};
use quipu_exchange::lines::{Limits, Lines};

/// What a walk through a directory found, beside the records.
#[derive(Debug)]
pub struct Walked {
    /// What is known of the run as a whole.
    pub facts: RunFacts,
    /// The receipts of its steps.
    pub receipts: Vec<Receipt>,
    /// The lines of its journal.
    pub journal: Counts,
    pub(super) findings: Findings,
}

/// Takes records.
type Take<'t> = &'t mut dyn FnMut(Record<'_>) -> io::Result<()>;

/// Reads a run directory and gives its records, in the order in which the run is told. Files that `refuse` says are
/// not to be opened are left out.
///
/// # Errors
///
/// When it cannot be read at all, is not a run, or whoever takes the records refuses.
pub fn walk(
    dir: &Path,
    limits: &Limits,
    refuse: &dyn Fn(&Path) -> bool,
    take: &mut dyn FnMut(Record<'_>) -> io::Result<()>,
) -> Result<Walked, FlowError> {
    let Scan {
        root,
        mut units,
        mut findings,
    } = scan::scan(dir, refuse)?;
    let meta = Meta::read(&root, &mut findings);
    let journal = Journal::read(&root, limits, &mut findings)?;
    if units.is_empty() && !meta.is_there && !journal.is_there {
        return Err(FlowError::NotARun(dir.to_owned()));
    }
    let run_id = identity(&units, &meta, &journal, &root);
    check_identity(&run_id, &units, &meta, &journal, &root, &mut findings);
    order(&mut units, limits);
    let plan = Plan::new(&mut units, &journal, &mut findings);
    let facts = facts(run_id, &units, &meta, &journal, &plan);
    let mut walk = Walk {
        limits,
        root: &root,
        units: &units,
        plan: &plan,
        findings,
        handoffs: BTreeMap::new(),
        take,
    };
    walk.put(Record::Run(Box::new(facts.clone())))?;
    let mut rest = inventory(&root, &units, refuse);
    let documents = rest.documents.iter();
    for file in documents.filter(|file| !file.rel.contains('/')) {
        walk.document(file, None, None)?;
    }
    for file in std::mem::take(&mut rest.handoffs) {
        let key = handoff_of(&file);
        walk.handoffs.entry(key).or_default().push(file);
    }
    if journal.is_there {
        walk.journal()?;
    } else {
        walk.others_until(None, &mut 0)?;
    }
    for files in std::mem::take(&mut walk.handoffs).into_values() {
        for file in files {
            walk.document(&file, None, None)?;
        }
    }
    for file in rest.documents.iter().filter(|it| it.rel.contains('/')) {
        walk.document(file, None, None)?;
    }
    for (file, size) in rest.left {
        walk.put(Record::Left {
            file: Cow::Owned(file),
            size,
        })?;
    }
    if let Some(end) = ended(&meta, &journal) {
        walk.put(Record::Done(Box::new(end)))?;
    }
    let mut findings = walk.findings;
    by_completion(&units, &mut findings);
    let receipts = units.into_iter().filter_map(|unit| unit.receipt);
    Ok(Walked {
        facts,
        receipts: receipts.map(|(_, receipt)| *receipt).collect(),
        journal: journal.counts,
        findings,
    })
}

struct Walk<'w> {
    limits: &'w Limits,
    root: &'w Root,
    units: &'w [Unit],
    plan: &'w Plan,
    findings: Findings,
    /// What steps handed on, by flow and step. Told when the last execution of the step is.
    handoffs: BTreeMap<(String, String), Vec<File>>,
    take: Take<'w>,
}

impl Walk<'_> {
    fn put(&mut self, record: Record<'_>) -> Result<(), FlowError> {
        (self.take)(record).map_err(FlowError::io(self.root.path()))
    }

    /// Gives the lines of the journal, and steps where it tells of them.
    fn journal(&mut self) -> Result<(), FlowError> {
        let plan = self.plan;
        let path = self.root.path().join(journal::NAME);
        let opened = fs::File::open(&path).map_err(FlowError::io(&path))?;
        let mut lines = Lines::new(opened, *self.limits);
        let mut tape = Tape::new();
        let mut next = 0;
        let mut ended = HashSet::new();
        // The iteration that each step is in.
        let mut current: HashMap<String, u64> = HashMap::new();
        while let Some(info) = lines.advance().map_err(FlowError::io(&path))? {
            let mut part = Part {
                file: Cow::Borrowed(journal::NAME),
                line: info.number,
                offset: info.offset,
                size: info.len,
                terminated: info.terminated,
                ..Part::default()
            };
            if info.too_long {
                self.put(Record::Cut(part))?;
                continue;
            }
            let text = String::from_utf8_lossy(lines.current());
            if let Ok(node) = tape.read(text.trim_start_matches('\u{feff}'), DEPTH) {
                self.others_until(journal::time_of(node), &mut next)?;
                if let Some(step) = node.text("step_id").filter(|step| !step.is_empty()) {
                    let flow = node.text("flow_key").unwrap_or_default();
                    let path = path_of(&flow, &step);
                    let iteration = current.get(&path).copied().unwrap_or(0);
                    part.place = Some(Place::flat(path, iteration));
                } else if let Some(flow) = node.text("flow_key").filter(|flow| !flow.is_empty()) {
                    part.place = Some(Place::step(flow));
                }
            }
            let here = plan.at.get(&info.number).map_or(&[][..], Vec::as_slice);
            for &at in here {
                let place = plan.steps[at].execution.place();
                current.insert(place.path.clone(), place.iteration());
                part.place = Some(place);
                if plan.steps[at].begins == info.number {
                    self.begin(at)?;
                }
                if plan.steps[at].ends == info.number {
                    self.files(at)?;
                }
            }
            part.bytes = Cow::Borrowed(lines.current());
            self.put(Record::Line(part))?;
            for &at in here {
                if plan.steps[at].ends == info.number {
                    self.end(at)?;
                    ended.insert(at);
                }
            }
        }
        // What began and has no end in the journal, but files.
        for (at, step) in plan.steps.iter().enumerate() {
            if step.begins > 0 && step.unit.is_some() && !ended.contains(&at) {
                self.files(at)?;
                self.end(at)?;
            }
        }
        self.others_until(None, &mut next)
    }

    /// Gives the steps that the journal does not tell of and that began until then; all of them without a time.
    fn others_until(
        &mut self,
        until: Option<Timestamp>,
        next: &mut usize,
    ) -> Result<(), FlowError> {
        let plan = self.plan;
        while let Some(&at) = plan.others.get(*next) {
            let started = plan.started(at);
            let is_due = until.is_none_or(|until| started.is_some_and(|started| started <= until));
            if !is_due {
                return Ok(());
            }
            *next += 1;
            self.begin(at)?;
            self.files(at)?;
            self.end(at)?;
        }
        Ok(())
    }

    fn begin(&mut self, at: usize) -> Result<(), FlowError> {
        let execution = self.plan.steps[at].execution.clone();
        self.put(Record::Begin(Box::new(execution)))
    }

    fn end(&mut self, at: usize) -> Result<(), FlowError> {
        let step = &self.plan.steps[at];
        let (execution, outcome) = (step.execution.clone(), step.outcome.clone());
        let place = execution.place();
        let key = (execution.flow.clone(), execution.step.clone());
        self.put(Record::End(Box::new(execution), outcome))?;
        if step.is_last {
            for file in self.handoffs.remove(&key).unwrap_or_default() {
                self.document(&file, None, Some(place.clone()))?;
            }
        }
        Ok(())
    }

    /// Gives the transcript and the receipt of an execution.
    fn files(&mut self, at: usize) -> Result<(), FlowError> {
        let step = &self.plan.steps[at];
        let Some(unit) = step.unit.map(|unit| &self.units[unit]) else {
            return Ok(());
        };
        let of = Some(step.execution.number);
        if let Some(file) = &unit.transcript {
            let receipt = unit.receipt.as_ref().map(|(_, receipt)| &**receipt);
            self.transcript(file, of, receipt)?;
        }
        if let Some((file, _)) = &unit.receipt {
            self.document(file, of, None)?;
        }
        Ok(())
    }

    fn transcript(
        &mut self,
        file: &File,
        of: Option<u64>,
        receipt: Option<&Receipt>,
    ) -> Result<(), FlowError> {
        let opened = fs::File::open(&file.path).map_err(FlowError::io(&file.path))?;
        let expected = receipt.and_then(|receipt| receipt.transcript_sha256.as_deref());
        let mut hasher = Hashing {
            inner: opened,
            hash: expected.map(|_| sha2::Sha256::new()),
        };
        let mut lines = Lines::new(&mut hasher, *self.limits);
        while let Some(info) = lines.advance().map_err(FlowError::io(&file.path))? {
            let part = Part {
                file: Cow::Borrowed(&file.rel),
                of,
                place: None,
                line: info.number,
                offset: info.offset,
                size: info.len,
                terminated: info.terminated,
                bytes: Cow::Borrowed(lines.current()),
            };
            self.put(if info.too_long {
                Record::Cut(part)
            } else {
                Record::Line(part)
            })?;
        }
        let hash = hasher
            .hash
            .map(|hash| quipu_model::hex::encode(&hash.finalize()));
        if let (Some(hash), Some(expected)) = (hash, expected)
            && !expected.eq_ignore_ascii_case(&hash)
        {
            self.findings.add(Rule::HashMismatch, &file.rel, None, || {
                format!("its SHA-256 is {hash}, its receipt has {expected}")
            });
        }
        Ok(())
    }

    /// Gives a file as a whole.
    fn document(
        &mut self,
        file: &File,
        of: Option<u64>,
        place: Option<Place>,
    ) -> Result<(), FlowError> {
        let about = || FlowError::io(&file.path);
        let opened = fs::File::open(&file.path).map_err(about())?;
        let size = opened.metadata().map_err(about())?.len();
        let mut part = Part {
            file: Cow::Borrowed(&file.rel),
            of,
            place,
            size,
            terminated: true,
            ..Part::default()
        };
        if size > MAX_DOCUMENT {
            return self.put(Record::Cut(part));
        }
        let mut bytes = Vec::new();
        let mut limited = opened.take(MAX_DOCUMENT);
        limited.read_to_end(&mut bytes).map_err(about())?;
        part.size = bytes.len() as u64;
        part.bytes = Cow::Owned(bytes);
        self.put(Record::Document(part))
    }
}

/// The flow and the step of a handoff: `<flow>/handoff/<step>.json`, or `….draft.json`.
fn handoff_of(file: &File) -> (String, String) {
    let flow = file.rel.split('/').next().unwrap_or_default();
    let name = file.rel.rsplit('/').next().unwrap_or_default();
    let step = name.strip_suffix(".json").unwrap_or(name);
    let step = step.strip_suffix(".draft").unwrap_or(step);
    (flow.to_owned(), step.to_owned())
}

/// The files of a run that are not read for its steps.
#[derive(Default)]
struct Inventory {
    /// Read as a whole.
    documents: Vec<File>,
    /// What steps handed on.
    handoffs: Vec<File>,
    /// Not part of the transcript.
    left: Vec<(String, u64)>,
}

/// How many files that are not part of the transcript are named.
const MOST_LEFT: usize = 10_000;

/// How deep directories are looked into.
const DEEPEST: usize = 8;

/// Directories of a flow whose documents say something of its steps.
pub(in crate::flow) const SAID_IN: [&str; 6] =
    ["handoff", "routing", "nav", "forensics", "receipts", "llm"];

/// Finds all files of a run. Links are not followed.
fn inventory(root: &Root, units: &[Unit], refuse: &dyn Fn(&Path) -> bool) -> Inventory {
    let mut known: HashSet<&str> = HashSet::from([journal::NAME]);
    for unit in units {
        known.extend(unit.transcript.iter().map(|file| file.rel.as_str()));
        known.extend(unit.receipt.iter().map(|(file, _)| file.rel.as_str()));
    }
    let mut found = Inventory::default();
    let mut looked_at = 0;
    let mut open = vec![(root.path().to_owned(), 0)];
    while let Some((directory, depth)) = open.pop() {
        let Ok(listing) = fs::read_dir(&directory) else {
            continue;
        };
        for entry in listing.flatten() {
            looked_at += 1;
            let Ok(metadata) = entry.metadata() else {
                continue;
            };
            let file = root.file(entry.path());
            if known.contains(file.rel.as_str()) {
                continue;
            }
            if metadata.is_dir() && depth < DEEPEST {
                open.push((file.path, depth + 1));
            } else if !metadata.is_file() || refuse(&file.path) {
                found.left.push((file.rel, metadata.len()));
            } else {
                found.add(file, metadata.len());
            }
            if looked_at >= scan::MAX_FILES || found.left.len() >= MOST_LEFT {
                open.clear();
                found.left.push(("(and more)".to_owned(), 0));
                break;
            }
        }
    }
    found.documents.sort_by(|a, b| a.rel.cmp(&b.rel));
    found.handoffs.sort_by(|a, b| a.rel.cmp(&b.rel));
    found.left.sort();
    found
}

impl Inventory {
    fn add(&mut self, file: File, size: u64) {
        let parts: Vec<&str> = file.rel.split('/').collect();
        let is_document = has_ending(&file.rel);
        match parts[..] {
            [name] if meta::DOCUMENTS.contains(&name) || name == "run_state.json" => {
                self.documents.push(file);
            }
            [_, "handoff", _] if is_document => self.handoffs.push(file),
            [_, folder, _] | [folder, _] if is_document && SAID_IN.contains(&folder) => {
                self.documents.push(file);
            }
            _ => self.left.push((file.rel, size)),
        }
    }
}

fn has_ending(name: &str) -> bool {
    let ending = Path::new(name).extension();
    ending.is_some_and(|ending| ending == "json" || ending == "jsonl")
}

/// The first time that a transcript tells, in its first few lines.
fn first_time(file: &File, limits: &Limits) -> Option<Timestamp> {
    let mut lines = Lines::new(fs::File::open(&file.path).ok()?, *limits);
    let mut tape = Tape::new();
    for _ in 0..8 {
        lines.advance().ok()??;
        let text = String::from_utf8_lossy(lines.current());
        if let Ok(node) = tape.read(&text, DEPTH)
            && let Some(text) = node.text("timestamp")
            && let Some(time) = time::parse(&text)
        {
            return Some(time.at);
        }
    }
    None
}

/// What the run is called: as most receipts say, or else one of the other files, or the directory.
fn identity(units: &[Unit], meta: &Meta, journal: &Journal, root: &Root) -> String {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    let receipts = units.iter().filter_map(|unit| unit.receipt.as_ref());
    for id in receipts.filter_map(|(_, receipt)| receipt.run_id.as_deref()) {
        *counts.entry(id).or_default() += 1;
    }
    let most = counts.iter().rev().max_by_key(|(_, count)| **count);
    let of_receipts = most.map(|(id, _)| (*id).to_owned());
    of_receipts
        .or_else(|| meta.id.clone())
        .or_else(|| journal.run_id.clone())
        .or_else(|| root.name())
        .filter(|id| !id.is_empty())
        .unwrap_or_else(|| "run".to_owned())
}

fn check_identity(
    run_id: &str,
    units: &[Unit],
    meta: &Meta,
    journal: &Journal,
    root: &Root,
    findings: &mut Findings,
) {
    for unit in units {
        if let Some((file, receipt)) = &unit.receipt
            && let Some(other) = receipt.run_id.as_ref().filter(|other| *other != run_id)
        {
            findings.add(Rule::RunIdMismatch, &file.rel, None, || {
                format!("it belongs to {other:?}, the others to {run_id:?}")
            });
        }
    }
    for (name, other) in [("meta.json", &meta.id), (journal::NAME, &journal.run_id)] {
        if let Some(other) = other.as_ref().filter(|other| *other != run_id) {
            findings.add(Rule::RunIdMismatch, name, None, || {
                format!("it belongs to {other:?}, receipts to {run_id:?}")
            });
        }
    }
    if let Some(name) = root.name().filter(|name| name != run_id) {
        findings.add(Rule::DirectoryName, "", None, || {
            format!("the run is {run_id:?}, its directory {name:?}")
        });
    }
}

/// Brings steps into the order in which they began.
fn order(units: &mut [Unit], limits: &Limits) {
    for unit in units.iter_mut().filter(|unit| unit.started.is_none()) {
        let transcript = unit.transcript.as_ref();
        unit.started = transcript.and_then(|file| first_time(file, limits));
    }
    units.sort_by_cached_key(|unit| {
        (
            // What nobody knows the time of comes last.
            unit.started.unwrap_or(Timestamp::MAX),
            unit.flow.clone(),
            unit.name.step.clone(),
            unit.name.agent.clone(),
            unit.iteration,
        )
    });
}

fn facts(run_id: String, units: &[Unit], meta: &Meta, journal: &Journal, plan: &Plan) -> RunFacts {
    let receipts = || units.iter().filter_map(|unit| unit.receipt.as_ref());
    let said = |field: fn(&Receipt) -> &Option<String>| {
        receipts().find_map(|(_, receipt)| field(receipt).clone())
    };
    let first = || plan.steps.iter().find_map(|step| step.execution.started_at);
    let told = meta.started_at.or(journal.started_at);
    let started_at = told.or(meta.created_at).or(journal.first_at);
    let parent = meta.parent_run_id.clone();
    RunFacts {
        run_id,
        title: meta.title.clone(),
        agent: meta.agent.clone(),
        agent_version: meta.agent_version.clone(),
        parent_run_id: parent.or_else(|| said(|receipt| &receipt.parent_run_id)),
        session_id: said(|receipt| &receipt.session_id),
        cwd: said(|receipt| &receipt.workspace_root),
        branch: said(|receipt| &receipt.git_branch),
        commit: said(|receipt| &receipt.git_sha),
        started_at: started_at.or_else(first),
        workflow: meta
            .step
            .clone()
            .map(|step| (step.name, step.kind.to_string())),
        stub: !units.is_empty()
            && units.iter().all(|unit| {
                let receipt = unit.receipt.as_ref();
                receipt.is_some_and(|(_, receipt)| receipt.is_stub())
            }),
    }
}

/// How the run ended. One that goes on has not ended; one of which nothing is known is taken for ended.
fn ended(meta: &Meta, journal: &Journal) -> Option<RunEnd> {
    if meta.goes_on() && journal.completed_at.is_none() {
        return None;
    }
    let error = meta.error.clone();
    let step = meta.ended.as_ref().or(meta.step.as_ref()).cloned();
    Some(RunEnd {
        at: meta.completed_at.or(journal.completed_at),
        error: error.or_else(|| meta.ended_badly().map(str::to_owned)),
        workflow: step.map(|step| (step.name, step.kind.to_string())),
        result: record::result(meta.result.as_ref()),
    })
}

/// Checks what depends on the order in which steps were completed.
fn by_completion(units: &[Unit], findings: &mut Findings) {
    let mut receipts: Vec<_> = units
        .iter()
        .filter_map(|unit| unit.receipt.as_ref())
        .collect();
    receipts.sort_by_key(|(_, receipt)| {
        let completed = receipt.completed_at.map(|time| time.at);
        // Of those that were completed at once, the sum tells which was written first.
        (completed, receipt.cumulative_run_usd)
    });
    let receipts = receipts
        .iter()
        .map(|(file, receipt)| (file.rel.as_str(), &**receipt));
    check_costs(receipts, findings);
}

/// Hashes what is read.
struct Hashing<R> {
    inner: R,
    hash: Option<sha2::Sha256>,
}

impl<R: Read> Read for Hashing<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let n = self.inner.read(buffer)?;
        if let Some(hash) = &mut self.hash {
            hash.update(&buffer[..n]);
        }
        Ok(n)
    }
}
