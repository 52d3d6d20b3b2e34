//! Checks a document: by the published schema, and by what a schema cannot say.
//!
//! Pure reading, part by part. What is remembered of an event is its number and a hash of its id.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::io;

use quipu_model::json::{Node, Part, Parts, PartsError, Tape};
use quipu_model::{Body, Header, Json, Timestamp};

use super::path::{self, Characters, Target};
use super::read::{Base, Head, LISTS, MAX_DEPTH, MAX_PART, decode};
use super::schema::Schema;
use super::{NormalizedError, SCHEMA_VERSION};
use quipu_exchange::rules;
pub use quipu_exchange::verify::Severity;

/// Findings kept per rule; the rest are counted.
const KEPT_PER_RULE: u64 = 100;

rules! {
    /// It is no JSON object, or not a whole one.
    Document = "document", Error, "a transcript is one JSON object; was it cut off?";
    /// A part is longer than is read.
    TooLong = "too-long", Error, "large content belongs outside of a transcript, as an attachment";
    /// A section or an event is no JSON.
    NotJson = "not-json", Error, "the part cannot be mended without its author";
    /// The version of the format is not known.
    Version = "version", Error, "versions 0.1.x are known; is there a newer Quipu?";
    /// A section is missing.
    SectionMissing = "section-missing", Error, "readers expect every section; one that is not known is null";
    /// A section is there twice.
    SectionTwice = "section-twice", Error, "readers take the first or the last of them, and which is not said";
    /// A section stands behind the events.
    SectionLate = "section-late", Note, "those who read as it comes know it too late";
    /// Something is not as the schema says.
    Schema = "schema", Error, "docs/schema has the schema";
    /// A time is none.
    Timestamp = "timestamp", Error, "times are RFC 3339, such as 2026-06-22T10:00:03Z";
    /// A sequence number is not greater than the one before.
    SeqOrder = "seq-order", Error, "seq is the order of events; number them again";
    /// Two events have the same id.
    IdTwice = "id-twice", Error, "what refers to the id refers to both";
    /// A tool's result without its call.
    ResultWithoutCall = "result-without-call", Warning, "the call was left out, or the result names another";
    /// A tool call without a result that is not marked as such.
    CallWithoutResult = "call-without-result", Warning, "a call that has none is marked: \"dangling\": true";
    /// A metric is not what the events come to.
    Metrics = "metrics", Error, "count again; metrics are what lists are sorted by";
    /// A placeholder is not in the field that it was put into.
    Placeholder = "placeholder", Error, "the redaction was not done, was undone, or names another field";
    /// The count of what was removed is not what is listed.
    RedactionCount = "redaction-count", Error, "a receipt was added or left out";
}

/// One finding.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// The rule.
    pub rule: Rule,
    /// How much it matters.
    pub severity: Severity,
    /// The field, such as `events[3].tool.status`.
    pub path: String,
    /// The event, by its number.
    pub seq: Option<u64>,
    /// The line that the part at hand begins on.
    pub line: Option<u64>,
    /// What is wrong.
    pub message: String,
}

/// What a check found.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Report {
    /// The findings, in order; at most a hundred of each rule.
    pub findings: Vec<Finding>,
    /// How often each rule was broken, where it was.
    pub counts: BTreeMap<Rule, u64>,
    /// How many events there were.
    pub events: u64,
}

impl Report {
    /// How many findings there are of this severity or a higher one.
    pub fn count(&self, least: Severity) -> u64 {
        let broken = self.counts.iter();
        broken
            .filter(|(rule, _)| rule.severity() >= least)
            .map(|(_, n)| n)
            .sum()
    }

    /// Whether the document is as it should be.
    pub fn is_valid(&self) -> bool {
        self.count(Severity::Error) == 0
    }
}

/// Checks a document of any length.
///
/// # Errors
///
/// When it cannot be brought here at all. Whatever is wrong with it is a finding.
pub fn verify(mut input: impl io::Read) -> Result<Report, NormalizedError> {
    let mut check = Check::new();
    let mut parts = Parts::new(LISTS, MAX_PART);
    let mut piece = vec![0; 128 * 1024];
    loop {
        let n = match input.read(&mut piece) {
            Ok(0) => break,
            Ok(n) => n,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error.into()),
        };
        match parts.push(&piece[..n], &mut |part| check.part(part)) {
            Ok(()) => {}
            Err(error @ PartsError::TooLong { .. }) => {
                check.find(Rule::TooLong, String::new(), error.to_string());
            }
            Err(error) => {
                check.line = Some(parts.position().1);
                check.find(Rule::Document, String::new(), error.to_string());
                return Ok(check.report);
            }
        }
    }
    if let Err(error) = parts.finish() {
        check.line = Some(parts.position().1);
        check.find(Rule::Document, String::new(), error.to_string());
        return Ok(check.report);
    }
    Ok(check.end())
}

struct Check {
    schema: &'static Schema,
    tape: Tape,
    report: Report,
    head: Head,
    base: Option<Base>,
    counted: Option<Header>,
    sections: HashSet<String>,
    ids: HashSet<u64>,
    last_seq: Option<u64>,
    calls: HashMap<u64, Call>,
    /// How much is listed as removed.
    redactions: u64,
    /// The sections, which things are removed from as well.
    texts: String,
    /// The part at hand.
    line: Option<u64>,
    seq: Option<u64>,
}

/// What a receipt's field is.
enum Where<'n> {
    Text(Cow<'n, str>),
    /// Some other value, as it is written.
    Json(&'n str),
    Nowhere,
}

impl<'n> Where<'n> {
    fn of(target: Option<&Target<'n>>) -> Self {
        match target {
            Some(target) => match (target.text(), target) {
                (Some(text), _) => Self::Text(text),
                (None, Target::Value(value)) => Self::Json(value.raw().get()),
                (None, Target::Name(..)) => Self::Nowhere,
            },
            None => Self::Nowhere,
        }
    }
}

/// A call or its result, or both.
#[derive(Debug, Clone, Copy, Default)]
struct Call {
    /// The number of the call, and of the result.
    asked: Option<u64>,
    answered: Option<u64>,
    dangling: bool,
}

impl Check {
    fn new() -> Self {
        Self {
            schema: Schema::published(),
            tape: Tape::new(),
            report: Report::default(),
            head: Head::default(),
            base: None,
            counted: None,
            sections: HashSet::new(),
            ids: HashSet::new(),
            last_seq: None,
            calls: HashMap::new(),
            redactions: 0,
            texts: String::new(),
            line: None,
            seq: None,
        }
    }

    fn find(&mut self, rule: Rule, path: String, message: String) {
        let count = self.report.counts.entry(rule).or_default();
        *count += 1;
        if *count <= KEPT_PER_RULE {
            self.report.findings.push(Finding {
                rule,
                severity: rule.severity(),
                path,
                seq: self.seq,
                line: self.line,
                message,
            });
        }
    }

    fn part(&mut self, part: Part<'_>) {
        self.line = Some(part.line);
        self.seq = None;
        let path = match part.index {
            Some(index) => format!("{}[{index}]", part.key),
            None => part.key.to_owned(),
        };
        let Ok(text) = simdutf8::basic::from_utf8(part.value) else {
            return self.find(Rule::NotJson, path, "it is not UTF-8".to_owned());
        };
        let mut tape = std::mem::take(&mut self.tape);
        match tape.read(text, MAX_DEPTH) {
            Ok(node) => match part.index {
                Some(index) => self.event(index, &path, node),
                None => self.section(part.key, node),
            },
            Err(error) => self.find(Rule::NotJson, path, error.to_string()),
        }
        tape.shrink();
        self.tape = tape;
    }

    fn by_schema(&mut self, prefix: &str, problems: Vec<(String, String)>) {
        for (path, message) in problems {
            let dot = if prefix.is_empty() || path.is_empty() {
                ""
            } else {
                "."
            };
            self.find(Rule::Schema, format!("{prefix}{dot}{path}"), message);
        }
    }

    fn section(&mut self, key: &str, node: Node<'_>) {
        if !self.sections.insert(key.to_owned()) {
            self.find(
                Rule::SectionTwice,
                key.to_owned(),
                "it was there before".to_owned(),
            );
        }
        if self.report.events > 0 {
            let message = "it stands behind the events".to_owned();
            self.find(Rule::SectionLate, key.to_owned(), message);
        }
        if key == "schemaVersion" && !node.as_str().is_some_and(|v| v.starts_with("0.1.")) {
            let message = format!("it is {}, not {SCHEMA_VERSION:?}", node.raw().get());
            return self.find(Rule::Version, key.to_owned(), message);
        }
        let mut problems = Vec::new();
        self.schema.field(key, node, &mut |path, message| {
            problems.push((path.to_owned(), message));
        });
        self.by_schema("", problems);
        if key == "session" {
            for name in ["startedAt", "endedAt", "capturedAt"] {
                let time = node.get(name);
                self.time(&format!("session.{name}"), time);
            }
        }
        self.keep(key, node);
        // A version that cannot be read was found above.
        drop(self.head.take(key, node));
    }

    /// Keeps a section, as a field of one object of them all, as long as they are no more than a part may be.
    fn keep(&mut self, key: &str, node: Node<'_>) {
        let text = node.raw().get();
        if self.texts.len() + text.len() <= MAX_PART {
            self.texts
                .push(if self.texts.is_empty() { '{' } else { ',' });
            self.texts.push_str(Json::string(key).get());
            self.texts.push(':');
            self.texts.push_str(text);
        }
    }

    fn time(&mut self, path: &str, node: Option<Node<'_>>) {
        if let Some(text) = node.and_then(|node| node.as_str())
            && text.parse::<Timestamp>().is_err()
        {
            self.find(
                Rule::Timestamp,
                path.to_owned(),
                format!("{text:?} is no time"),
            );
        }
    }

    fn event(&mut self, index: u64, path: &str, node: Node<'_>) {
        self.report.events += 1;
        self.sections.insert("events".to_owned());
        self.seq = node.get("seq").and_then(|seq| seq.as_u64());
        let mut problems = Vec::new();
        self.schema.item("events", node, &mut |path, message| {
            problems.push((path.to_owned(), message));
        });
        self.by_schema(path, problems);
        self.time(&format!("{path}.timestamp"), node.get("timestamp"));
        if let Some(seq) = self.seq {
            if let Some(last) = self.last_seq.filter(|last| *last >= seq) {
                let message = format!("it is {seq}, after {last}");
                self.find(Rule::SeqOrder, format!("{path}.seq"), message);
            }
            self.last_seq = Some(seq);
        }
        if let Some(id) = node.text("id")
            && !self.ids.insert(hash(&id))
        {
            let message = format!("{id:?} is the id of an event before");
            self.find(Rule::IdTwice, format!("{path}.id"), message);
        }
        self.placeholders(&format!("{path}."), node.get("redactions"), node);
        let base = self.base.get_or_insert_with(|| self.head.base());
        let (event, _) = decode(node, index, base);
        let run = &base.run_id;
        let counted = self.counted.get_or_insert_with(|| Header::new(run.clone()));
        counted.observe(&event);
        match &event.body {
            Body::ToolCall(call) => {
                let entry = self.calls.entry(hash(&call.call_id)).or_default();
                entry.asked.get_or_insert(event.seq);
                entry.dangling |= event.annotations.flags.dangling;
            }
            Body::ToolResult(result) => {
                let entry = self.calls.entry(hash(&result.call_id)).or_default();
                entry.answered.get_or_insert(event.seq);
            }
            _ => {}
        }
    }

    /// Looks for what was put in place of something, in what `path` names.
    fn placeholders(&mut self, path: &str, list: Option<Node<'_>>, of: Node<'_>) {
        let Some(list) = list else { return };
        let fields: Vec<Cow<'_, str>> = list.items().filter_map(|it| it.text("field")).collect();
        let found = path::resolve_all(of, fields.iter().map(Cow::as_ref));
        let mut texts: HashMap<String, (Where<'_>, Characters)> = HashMap::new();
        for (index, redaction) in list.items().enumerate() {
            self.redactions += 1;
            let (Some(field), Some(placeholder)) =
                (redaction.text("field"), redaction.text("placeholder"))
            else {
                continue;
            };
            let place = |name: &str| redaction.get(name).and_then(|place| place.as_u64());
            let (text, characters) = texts
                .entry(field.to_string())
                .or_insert_with(|| (Where::of(found.get(&*field)), Characters::default()));
            let stands = match (text, place("start"), place("end")) {
                (Where::Text(text), Some(start), Some(end)) => {
                    characters.slice(text, start, end) == Some(&*placeholder)
                }
                (Where::Text(text), None, None) => text.contains(&*placeholder),
                (Where::Json(text), None, None) => text.contains(&*placeholder),
                _ => false,
            };
            if !stands {
                let message =
                    format!("{placeholder:?} is not in `{field}`, or not where it should be");
                self.find(
                    Rule::Placeholder,
                    format!("{path}redactions[{index}]"),
                    message,
                );
            }
        }
    }

    /// The same in the sections, which is known when all of them were read.
    fn placeholders_of_sections(&mut self) {
        let mut all = std::mem::take(&mut self.texts);
        all.push('}');
        let mut tape = Tape::new();
        // Each of them was read before.
        let Ok(sections) = tape.read(&all, MAX_DEPTH + 1) else {
            return;
        };
        let Some(node) = sections.get("privacy") else {
            return;
        };
        self.placeholders("privacy.", node.get("redactions"), sections);
        let stated = node.get("redactionCount").and_then(|count| count.as_u64());
        let counted = self.redactions;
        if node.get("commitment").is_some() && stated.is_some_and(|stated| stated != counted) {
            let message = format!("it is {}, but {counted} are listed", stated.unwrap_or(0));
            self.find(
                Rule::RedactionCount,
                "privacy.redactionCount".to_owned(),
                message,
            );
        }
    }

    fn end(mut self) -> Report {
        (self.line, self.seq) = (None, None);
        self.placeholders_of_sections();
        let missing: Vec<String> = self
            .schema
            .required()
            .filter(|name| *name != "events" && !self.sections.contains(*name))
            .map(str::to_owned)
            .collect();
        for name in missing {
            let message = format!("there is no `{name}`");
            self.find(Rule::SectionMissing, name, message);
        }
        let mut calls: Vec<Call> = self.calls.values().copied().collect();
        calls.sort_by_key(|call| call.asked.or(call.answered));
        for call in calls {
            let (rule, message) = match call {
                Call { asked: None, .. } => (Rule::ResultWithoutCall, "no call has its callId"),
                Call {
                    answered: None,
                    dangling: false,
                    ..
                } => (Rule::CallWithoutResult, "no result has its callId"),
                _ => continue,
            };
            self.seq = call.asked.or(call.answered);
            self.find(rule, "tool.callId".to_owned(), message.to_owned());
        }
        self.seq = None;
        let base = self.base.take().unwrap_or_else(|| self.head.base());
        let counted = self
            .counted
            .take()
            .unwrap_or_else(|| Header::new(base.run_id));
        let head = std::mem::take(&mut self.head);
        for mismatch in head.end(&counted).2 {
            let message = format!(
                "it is {}, but {} was counted",
                mismatch.stated, mismatch.counted
            );
            self.find(
                Rule::Metrics,
                format!("metrics.{}", mismatch.field),
                message,
            );
        }
        self.report
    }
}

fn hash(text: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    text.hash(&mut hasher);
    hasher.finish()
}
