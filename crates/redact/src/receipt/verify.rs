//! Checks a shared copy by itself.

use std::borrow::Cow;
use std::collections::{BTreeMap, VecDeque};
use std::io;

use quipu_formats::normalized::path::{self, Characters};
use quipu_formats::normalized::{LISTS, MAX_PART};
use quipu_model::Json;
use quipu_model::json::{Kind, Node, Parts, Tape};
use rustc_hash::FxHashMap;

use super::tree::DEEPEST;
use super::{ALGORITHM, Leaves, commitment};

/// Rules that are told apart.
const RULES: usize = 10_000;

/// Problems that are kept; the rest are counted.
const KEPT: usize = 1000;

/// What is wrong with a shared copy, if anything.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Report {
    /// The first problems, in order.
    pub problems: Vec<Problem>,
    /// How many there are.
    pub count: u64,
    /// Events that were looked at.
    pub events: u64,
    /// Spans that were looked at.
    pub spans: u64,
    /// Spans of which what stood there was checked.
    pub opened: u64,
    /// The root of the tree, as it is by the values that are there.
    pub root: Option<String>,
    /// Whether the copy says that something was removed from it: by another profile than `local`, or by receipts.
    pub is_shared: bool,
}

impl Report {
    /// Whether nothing is wrong.
    pub fn is_good(&self) -> bool {
        self.count == 0
    }

    pub(super) fn add(&mut self, seq: Option<u64>, field: impl Into<String>, what: What) {
        self.count += 1;
        if self.problems.len() < KEPT {
            self.problems.push(Problem {
                seq,
                field: field.into(),
                what,
            });
        }
    }
}

/// Something that is wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// The event; `None` for what is said of the transcript as a whole.
    pub seq: Option<u64>,
    /// The field.
    pub field: String,
    /// What is wrong.
    pub what: What,
}

impl std::fmt::Display for Problem {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if let Some(seq) = self.seq {
            write!(f, "event {seq}: ")?;
        }
        if !self.field.is_empty() {
            write!(f, "{}: ", self.field)?;
        }
        write!(f, "{}", self.what)
    }
}

/// What is wrong.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum What {
    /// It is no document, or not a whole one.
    #[error("it is no transcript: {0}")]
    Document(String),
    /// It commits to nothing.
    #[error(
        "it says that something was removed, and has no commitment: whoever changed it would not be found out"
    )]
    NoCommitment,
    /// It commits in a way that is not known.
    #[error("its commitment is made in a way that is not known here: {0}")]
    Algorithm(String),
    /// Something was changed, added or left out.
    #[error("something was changed, added or left out: the root is {counted}, not {stated}")]
    Root {
        /// What the document says.
        stated: String,
        /// What it comes to.
        counted: String,
    },
    /// A count is not what is there.
    #[error("it says {stated}, but there are {counted}")]
    Count {
        /// What the document says.
        stated: u64,
        /// What there is.
        counted: u64,
    },
    /// A placeholder is not where the receipt says.
    #[error("the placeholder is not where the receipt says")]
    Placeholder,
    /// A receipt lacks its place or its commitment.
    #[error("the receipt has no place or no commitment")]
    Receipt,
    /// Two spans overlap, or are out of order.
    #[error("its spans overlap, or are out of order")]
    Overlap,
    /// The text that is made from the blocks is another.
    #[error("it is not what the blocks say")]
    Derived,
    /// What is kept is not what stands in the original.
    #[error("it is not what stands in the original")]
    Differs,
    /// What stood at a span is not what was committed to.
    #[error("what stood there is not what was committed to")]
    Opened,
    /// The original has no such event.
    #[error("the original has no such event")]
    NotInOriginal,
    /// An event of the original is not there, and nothing says that it was cut.
    #[error("it is in the original, and not in the shared copy")]
    Missing,
    /// A time was moved by something else than the others.
    #[error("it was moved by something else than the other times")]
    Time,
}

/// The parts of a shared copy, one after the other.
pub(super) struct Shared<R> {
    input: R,
    parts: Parts,
    events: VecDeque<(u64, String)>,
    /// The sections, as fields of one object; its end is to be added.
    sections: String,
    failed: Option<String>,
    is_over: bool,
    is_too_long: bool,
    piece: Vec<u8>,
}

impl<R: io::Read> Shared<R> {
    pub(super) fn new(input: R) -> Self {
        Self {
            input,
            parts: Parts::new(LISTS, MAX_PART),
            events: VecDeque::new(),
            sections: String::new(),
            failed: None,
            is_over: false,
            is_too_long: false,
            piece: vec![0; 128 * 1024],
        }
    }

    /// The next event, with its place.
    pub(super) fn next(&mut self) -> io::Result<Option<(u64, String)>> {
        while self.events.is_empty() && !self.is_over {
            self.more()?;
        }
        Ok(self.events.pop_front())
    }

    /// Reads until the first event is there, so that the sections before it are.
    pub(super) fn begin(&mut self) -> io::Result<()> {
        while self.events.is_empty() && !self.is_over {
            self.more()?;
        }
        Ok(())
    }

    fn more(&mut self) -> io::Result<()> {
        let n = match self.input.read(&mut self.piece) {
            Ok(n) => n,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => return Ok(()),
            Err(error) => return Err(error),
        };
        let (events, sections, too_long) =
            (&mut self.events, &mut self.sections, &mut self.is_too_long);
        let mut take = |part: quipu_model::json::Part<'_>| {
            let text = String::from_utf8_lossy(part.value).into_owned();
            match part.index {
                Some(index) => events.push_back((index, text)),
                None if sections.len() + text.len() > MAX_PART => *too_long = true,
                None => {
                    sections.push(if sections.is_empty() { '{' } else { ',' });
                    sections.push_str(Json::string(part.key).get());
                    sections.push(':');
                    sections.push_str(&text);
                }
            }
        };
        let result = match n {
            0 => self.parts.finish(),
            n => self.parts.push(&self.piece[..n], &mut take),
        };
        self.is_over |= n == 0;
        if let Err(error) = result {
            self.failed.get_or_insert_with(|| error.to_string());
            self.is_over = true;
        }
        Ok(())
    }

    /// Why it is no document.
    pub(super) fn failed(&mut self) -> Option<String> {
        let too_long = self
            .is_too_long
            .then(|| "its sections are too long".to_owned());
        self.failed.take().or(too_long)
    }

    /// The sections that were there so far, as one object.
    pub(super) fn sections(&self) -> String {
        match self.sections.as_str() {
            "" => "{}".to_owned(),
            fields => format!("{fields}}}"),
        }
    }
}

/// Checks a shared copy: that its root is what its values come to, that a placeholder stands wherever a receipt says so,
/// and that there are as many receipts as it says.
///
/// # Errors
///
/// When it cannot be brought here at all. Whatever is wrong with it is in the report.
pub fn verify(input: impl io::Read) -> io::Result<Report> {
    let mut shared = Shared::new(input);
    let mut check = Check::default();
    while let Some((index, text)) = shared.next()? {
        check.event(index, &text);
    }
    if let Some(why) = shared.failed() {
        check.report.add(None, "", What::Document(why));
    }
    check.sections(&shared.sections());
    Ok(check.report)
}

/// What checks a shared copy, part by part.
#[derive(Debug, Default)]
pub(super) struct Check {
    pub(super) report: Report,
    leaves: Leaves,
    tape: Tape,
    listed: u64,
    /// How many receipts name each rule: at most as many rules as there can be.
    by_rule: BTreeMap<String, u64>,
}

impl Check {
    pub(super) fn event(&mut self, index: u64, text: &str) {
        self.report.events += 1;
        let mut tape = std::mem::take(&mut self.tape);
        match tape.read(text, DEEPEST) {
            Ok(node) => {
                let seq = node
                    .get("seq")
                    .and_then(|seq| seq.as_u64())
                    .or(Some(index + 1));
                self.leaves.of_event(node, index);
                self.spans(seq, node.get("redactions"), node);
                self.derived(seq, node);
            }
            Err(error) => self
                .report
                .add(Some(index + 1), "", What::Document(error.to_string())),
        }
        tape.shrink();
        self.tape = tape;
    }

    /// Whether placeholders stand where receipts say.
    fn spans(&mut self, seq: Option<u64>, list: Option<Node<'_>>, of: Node<'_>) {
        let Some(list) = list else { return };
        let fields: Vec<Cow<'_, str>> = list
            .items()
            .filter_map(|receipt| receipt.text("field"))
            .collect();
        let found = path::resolve_all(of, fields.iter().map(Cow::as_ref));
        let mut texts: FxHashMap<String, (Option<Cow<'_, str>>, Characters, u64)> =
            FxHashMap::default();
        for receipt in list.items() {
            self.listed += 1;
            self.report.spans += 1;
            let rule = receipt.text("ruleId").unwrap_or_default();
            if let Some(count) = self.by_rule.get_mut(&*rule) {
                *count += 1;
            } else if self.by_rule.len() < RULES {
                self.by_rule.insert(rule.into_owned(), 1);
            }
            let Some(span) = Span::of(receipt) else {
                let field = receipt.text("field").unwrap_or_default();
                self.report.add(seq, field, What::Receipt);
                continue;
            };
            let Span {
                field,
                placeholder,
                start,
                end,
                ..
            } = span;
            let (text, characters, last) = texts.entry(field.to_string()).or_insert_with(|| {
                let text = found.get(&*field).and_then(|target| target.text());
                (text, Characters::default(), 0)
            });
            if start < *last {
                self.report.add(seq, field, What::Overlap);
                continue;
            }
            let stands = text
                .as_deref()
                .and_then(|text| characters.slice(text, start, end));
            if stands != Some(&*placeholder) {
                self.report.add(seq, field, What::Placeholder);
            }
            *last = end;
        }
    }

    /// The text of a message of several blocks is that of its blocks.
    fn derived(&mut self, seq: Option<u64>, node: Node<'_>) {
        let (Some(text), Some(blocks)) = (node.get("text"), node.get("blocks")) else {
            return;
        };
        let texts: Vec<Cow<'_, str>> = blocks
            .items()
            .filter(|block| block.get("type").is_some_and(|kind| kind.is("text")))
            .filter_map(|block| block.text("text"))
            .collect();
        if text.as_str().is_some_and(|text| text != texts.join("\n\n")) {
            self.report.add(seq, "text", What::Derived);
        }
    }

    pub(super) fn sections(&mut self, sections: &str) {
        let mut tape = Tape::new();
        let mut stated = None;
        match tape.read(sections, DEEPEST + 1) {
            Ok(all) => {
                for (key, node) in all.fields() {
                    self.leaves.section(&key.to_text_lossy(), node);
                }
                if let Some(privacy) = all.get("privacy") {
                    stated = privacy.get("commitment").map(|node| {
                        let text = |key: &str| node.text(key).unwrap_or_default().into_owned();
                        let leaves = node.get("leaves").and_then(|leaves| leaves.as_u64());
                        (text("algorithm"), text("root"), leaves)
                    });
                    self.privacy(privacy, all);
                }
            }
            Err(error) => self.report.add(None, "", What::Document(error.to_string())),
        }
        self.report.is_shared |= self.listed > 0;
        let counted = commitment(std::mem::take(&mut self.leaves));
        let root = counted.root.clone();
        match stated {
            None => self
                .report
                .add(None, "privacy.commitment", What::NoCommitment),
            Some((algorithm, _, _)) if algorithm != ALGORITHM => {
                self.report.add(
                    None,
                    "privacy.commitment.algorithm",
                    What::Algorithm(algorithm),
                );
            }
            Some((_, stated, leaves)) => {
                if stated != root {
                    self.report.add(
                        None,
                        "privacy.commitment.root",
                        What::Root {
                            stated,
                            counted: root.clone(),
                        },
                    );
                }
                if leaves != Some(counted.leaves) {
                    let what = What::Count {
                        stated: leaves.unwrap_or(0),
                        counted: counted.leaves,
                    };
                    self.report.add(None, "privacy.commitment.leaves", what);
                }
            }
        }
        self.report.root = Some(root);
    }

    fn privacy(&mut self, node: Node<'_>, sections: Node<'_>) {
        self.spans(None, node.get("redactions"), sections);
        let says = |name: &str| node.get(name).and_then(|it| it.as_bool()) == Some(true);
        let profile = node.text("profile");
        self.report.is_shared = profile.is_some_and(|profile| profile != "local")
            || says("redactionApplied")
            || says("anonymizationApplied");
        let stated = node.get("redactionCount").and_then(|count| count.as_u64());
        let counted = self.listed;
        if let Some(stated) = stated.filter(|stated| *stated != counted) {
            self.report.add(
                None,
                "privacy.redactionCount",
                What::Count { stated, counted },
            );
        }
        let matched = node
            .get("rulesMatched")
            .filter(|matched| matched.kind() == Kind::Object);
        let Some(matched) = matched else { return };
        let mut listed = std::mem::take(&mut self.by_rule);
        for (rule, stated) in matched.fields() {
            let rule = rule.to_text_lossy();
            let (stated, counted) = (
                stated.as_u64().unwrap_or(0),
                listed.remove(&*rule).unwrap_or(0),
            );
            if stated != counted {
                let field = format!("privacy.rulesMatched.{rule}");
                self.report
                    .add(None, field, What::Count { stated, counted });
            }
        }
        for (rule, counted) in listed {
            let field = format!("privacy.rulesMatched.{rule}");
            let what = What::Count { stated: 0, counted };
            self.report.add(None, field, what);
        }
    }
}

/// A receipt with all that is needed to check it.
#[derive(Debug, Clone)]
pub(super) struct Span<'n> {
    pub(super) field: Cow<'n, str>,
    pub(super) placeholder: Cow<'n, str>,
    pub(super) start: u64,
    pub(super) end: u64,
    pub(super) commitment: Cow<'n, str>,
}

impl<'n> Span<'n> {
    pub(super) fn of(receipt: Node<'n>) -> Option<Self> {
        let place = |key: &str| receipt.get(key).and_then(|place| place.as_u64());
        Some(Self {
            field: receipt.text("field")?,
            placeholder: receipt.text("placeholder")?,
            start: place("start")?,
            end: place("end").filter(|end| *end > 0)?,
            commitment: receipt.text("commitment")?,
        })
    }
}
