//! Which files of a run belong together.
//!
//! Nothing outside of the run is opened: neither what a receipt names nor what a link leads to.

mod pair;
mod root;

use std::fs;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use quipu_model::Timestamp;
use quipu_model::json::Tape;

pub(super) use root::{Resolved, Root};

use super::names::{Known, Name};
use super::receipt::{Document, Receipt, classify};
use super::verify::{Findings, Rule, check_receipt};
use super::{FlowError, names};

/// How many files are looked at.
pub(super) const MAX_FILES: usize = 200_000;

/// The largest document that is read.
pub(super) const MAX_DOCUMENT: u64 = 16 * 1024 * 1024;

/// How deep documents may nest.
pub(super) const DEPTH: usize = 128;

/// One execution of a step.
#[derive(Debug)]
pub(super) struct Unit {
    pub(super) flow: String,
    pub(super) name: Name,
    /// Which iteration it is, from 1.
    pub(super) iteration: u64,
    pub(super) transcript: Option<File>,
    pub(super) receipt: Option<(File, Box<Receipt>)>,
    /// When it began, as far as that is known before it is read.
    pub(super) started: Option<Timestamp>,
}

/// A file of the run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct File {
    /// Where it is.
    pub(super) path: PathBuf,
    /// The same, relative to the run.
    pub(super) rel: String,
}

/// What is in a run directory.
pub(super) struct Scan {
    pub(super) root: Root,
    pub(super) units: Vec<Unit>,
    pub(super) findings: Findings,
}

/// The files of one flow.
#[derive(Default)]
struct Flow {
    key: String,
    dir: PathBuf,
    transcripts: Vec<(File, String)>,
    receipts: Vec<(File, String, Box<Receipt>)>,
    known: Known,
}

/// Looks through a run directory. Files that `refuse` says are not to be opened are left out.
pub(super) fn scan(dir: &Path, refuse: &dyn Fn(&Path) -> bool) -> Result<Scan, FlowError> {
    let root = Root::open(dir)?;
    let mut findings = Findings::default();
    let mut left = MAX_FILES;
    let mut units = Vec::new();
    let is_flow = |dir: &Path| dir.join("llm").is_dir() || dir.join("receipts").is_dir();
    let mut flows = Vec::new();
    if is_flow(root.path()) {
        flows.push(root.path().to_owned());
    }
    let below = root.list(root.path(), &mut left, &mut findings)?;
    flows.extend(
        below
            .into_iter()
            .filter(|path| path.is_dir() && is_flow(path)),
    );
    for path in flows {
        let mut flow = Flow {
            key: key_of(&path),
            dir: path,
            ..Flow::default()
        };
        files(&root, &mut flow, (refuse, &mut left), &mut findings)?;
        units.extend(pair::pair(&root, flow, &mut findings));
    }
    Ok(Scan {
        root,
        units,
        findings,
    })
}

/// The flow that a directory is of.
fn key_of(dir: &Path) -> String {
    let name = dir.file_name().map(|name| name.to_string_lossy());
    let name = name.unwrap_or_default();
    names::unescape(&name).into_owned()
}

/// Finds the transcripts and receipts of a flow, and reads the receipts.
fn files(
    root: &Root,
    flow: &mut Flow,
    (refuse, left): (&dyn Fn(&Path) -> bool, &mut usize),
    findings: &mut Findings,
) -> Result<(), FlowError> {
    for path in root.list(&flow.dir.join("llm"), left, findings)? {
        let name = file_name(&path);
        if refuse(&path) {
            continue;
        }
        if has_ending(&path, "jsonl") && path.is_file() {
            flow.transcripts.push((root.file(path), name));
        }
    }
    for path in root.list(&flow.dir.join("receipts"), left, findings)? {
        let name = file_name(&path);
        if !has_ending(&path, "json") || refuse(&path) {
            continue;
        }
        let is_file = path.is_file();
        let file = root.file(path);
        if !is_file {
            findings.add(Rule::ReceiptUnreadable, &file.rel, None, || {
                "it is no file".to_owned()
            });
            continue;
        }
        let receipt = match document(&file.path, |node| classify_and_check(node, &file, findings)) {
            Ok(receipt) => receipt,
            Err(why) => {
                findings.add(Rule::ReceiptUnreadable, &file.rel, None, || why);
                None
            }
        };
        let body = receipt.as_deref().and_then(Receipt::who);
        // Neither the name of a prompt's receipt nor one that is not known says what steps there are.
        if let Some(receipt) = receipt {
            flow.known.receipt(
                &name,
                body.as_ref()
                    .map(|(step, agent)| (step.as_str(), agent.as_str())),
            );
            flow.receipts.push((file, name, receipt));
        }
    }
    Ok(())
}

fn classify_and_check(
    node: quipu_model::json::Node<'_>,
    file: &File,
    findings: &mut Findings,
) -> Option<Box<Receipt>> {
    match classify(node) {
        Document::Step(receipt) => {
            check_receipt(node, &receipt, &file.rel, findings);
            Some(receipt)
        }
        Document::Prompt { .. } => None,
        Document::Other => {
            findings.add(Rule::ReceiptUnknown, &file.rel, None, || {
                "it has none of the fields of a receipt".to_owned()
            });
            None
        }
    }
}

impl Receipt {
    /// The step and the agent, where both are told.
    fn who(&self) -> Option<(String, String)> {
        Some((self.step_id.clone()?, self.agent_key.clone()?))
    }
}

/// Names are told apart by their endings as they are written: another spelling is another file.
fn has_ending(path: &Path, ending: &str) -> bool {
    path.extension().is_some_and(|own| own == ending)
}

fn file_name(path: &Path) -> String {
    let name = path.file_name().map(|name| name.to_string_lossy());
    name.unwrap_or_default().into_owned()
}

/// Reads a document that is one JSON object.
pub(super) fn document<T>(
    path: &Path,
    then: impl FnOnce(quipu_model::json::Node<'_>) -> T,
) -> Result<T, String> {
    let mut bytes = Vec::new();
    let mut file = fs::File::open(path).map_err(|e| e.to_string())?;
    let read = file.by_ref().take(MAX_DOCUMENT + 1).read_to_end(&mut bytes);
    read.map_err(|e| e.to_string())?;
    if bytes.len() as u64 > MAX_DOCUMENT {
        return Err(format!("it is larger than {MAX_DOCUMENT} bytes"));
    }
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(&bytes);
    let text = String::from_utf8_lossy(bytes);
    let mut tape = Tape::new();
    let node = tape.read(&text, DEPTH).map_err(|e| e.to_string())?;
    if node.kind() != quipu_model::json::Kind::Object {
        return Err("it is no object".to_owned());
    }
    Ok(then(node))
}
