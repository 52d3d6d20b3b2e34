//! Lines of transcripts, in the nine shapes that were ever written.
//!
//! One shape is documented, three contradict it, two are the raw streams of other programs. A line is known
//! by what stands in it; where that is not enough, by the line before it. Whatever the shape, it becomes the
//! same few things ([`Statement`]). Where not all of a line is understood, that is said ([`Line::keep`]), and
//! whoever reads keeps the line.

mod python;
mod role;
mod sdk;
mod vendor;

#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::collections::VecDeque;

use quipu_model::json::{Node, RawJson};
use quipu_model::{Json, Money, NoteKind, Status, Timestamp, Usage};
use serde::{Deserialize, Serialize};

use super::time::{self, Time};

/// Which of the shapes a line has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Shape {
    /// T1: as documented.
    Documented,
    /// T2: of a stub.
    Stub,
    /// T3: of a stub that does the work of a step only.
    StubWorker,
    /// T4: of the SDK, as it was meant.
    SdkLegacy,
    /// T5: of the SDK, as it came out: values as Python prints them.
    SdkClasses,
    /// T6: of the SDK with a session.
    SdkSession,
    /// T7: the stream of Claude's command.
    ClaudeCli,
    /// T8: the stream of Gemini's command.
    GeminiCli,
    /// T9: of another document of the same program.
    Contract,
}

impl Shape {
    /// All of them.
    pub const ALL: &'static [Self] = &[
        Self::Documented,
        Self::Stub,
        Self::StubWorker,
        Self::SdkLegacy,
        Self::SdkClasses,
        Self::SdkSession,
        Self::ClaudeCli,
        Self::GeminiCli,
        Self::Contract,
    ];

    /// Its short name: `T1` to `T9`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Documented => "T1",
            Self::Stub => "T2",
            Self::StubWorker => "T3",
            Self::SdkLegacy => "T4",
            Self::SdkClasses => "T5",
            Self::SdkSession => "T6",
            Self::ClaudeCli => "T7",
            Self::GeminiCli => "T8",
            Self::Contract => "T9",
        }
    }

    /// Whether it is one that stubs write.
    pub const fn is_stub(self) -> bool {
        matches!(self, Self::Stub | Self::StubWorker)
    }
}

/// A line that was read.
#[derive(Debug, Clone)]
pub struct Line<'a> {
    /// Its shape; `None` when it has none of them.
    pub shape: Option<Shape>,
    /// When, where it says.
    pub at: Option<Time>,
    /// What it says.
    pub said: Vec<Statement<'a>>,
    /// The model that said it.
    pub model: Option<Cow<'a, str>>,
    /// The tokens of the whole step, where the line is its end.
    pub usage: Option<Usage>,
    /// What the whole step cost, where the line is its end.
    pub cost: Option<Money>,
    /// Why the line is to be kept as it stands beside what it says: not all of it is in that.
    pub keep: Option<NoteKind>,
}

/// Something that a line says.
#[derive(Debug, Clone)]
pub enum Statement<'a> {
    /// Something was said.
    Message {
        /// By whom.
        who: Who,
        /// What.
        content: Content<'a>,
        /// Whether it is a piece of a message that goes on.
        piece: bool,
    },
    /// A tool was called.
    Call {
        /// The tool.
        name: Cow<'a, str>,
        /// The call.
        id: Cow<'a, str>,
        /// The arguments.
        input: Option<Data<'a>>,
    },
    /// A tool gave back.
    Result {
        /// The tool.
        name: Cow<'a, str>,
        /// The call.
        id: Cow<'a, str>,
        /// What it gave back.
        output: Option<Data<'a>>,
        /// Why it failed.
        error: Option<Cow<'a, str>>,
        /// How it ended, where more is said than that it failed.
        status: Option<Status>,
        /// When, where that is not the time of the line.
        at: Option<Timestamp>,
        /// How long it took.
        duration_ms: Option<u64>,
    },
    /// Something beside the conversation.
    Note {
        /// What it is about.
        kind: NoteKind,
        /// What it says.
        text: Option<Cow<'a, str>>,
    },
}

/// Who said something.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Who {
    /// A program.
    System,
    /// Whoever asks.
    User,
    /// The agent.
    Assistant,
}

/// What was said.
#[derive(Debug, Clone)]
pub enum Content<'a> {
    /// A text.
    Text(Cow<'a, str>),
    /// Reasoning.
    Thinking(Cow<'a, str>),
    /// A command.
    Command(Cow<'a, str>),
    /// A piece of a stream.
    Stream(Cow<'a, str>),
    /// A tool that a message asks for.
    ToolUse {
        /// The tool.
        name: Cow<'a, str>,
        /// The call.
        id: Cow<'a, str>,
        /// The arguments.
        input: Option<Data<'a>>,
    },
    /// What a message says that a tool gave back.
    ToolResult {
        /// The call.
        id: Cow<'a, str>,
        /// What it gave back.
        content: Option<Data<'a>>,
    },
}

/// A value.
#[derive(Debug, Clone)]
pub enum Data<'a> {
    /// As it stands in the line.
    Raw(RawJson<'a>),
    /// A text.
    Text(Cow<'a, str>),
    /// Made of what stands there.
    Made(Json),
}

impl Data<'_> {
    /// The value as JSON of its own.
    pub fn to_json(&self) -> Json {
        match self {
            Self::Raw(raw) => (*raw).into(),
            Self::Text(text) => Json::string(text),
            Self::Made(json) => json.clone(),
        }
    }
}

impl<'a> From<Node<'a>> for Data<'a> {
    fn from(node: Node<'a>) -> Self {
        Self::Raw(node.raw())
    }
}

/// How many calls wait for their results at most, and how much of their names is kept.
const OPEN: usize = 1024;
const LONGEST_NAME: usize = 200;

/// Reads the lines of one transcript, in order.
///
/// Calls and results have no ids in most shapes. Each call is given one, and a result is taken for that of
/// the oldest call of the same tool that has none yet.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Transcript {
    /// What the ids of calls begin with.
    prefix: String,
    last: Option<Shape>,
    open: VecDeque<(String, String)>,
    line: u64,
    made: u64,
}

impl Transcript {
    /// For a transcript whose calls are to have ids that begin like this.
    pub fn new(prefix: impl Into<String>) -> Self {
        Self {
            prefix: prefix.into(),
            ..Self::default()
        }
    }

    /// The shape of the last line that had one.
    pub fn shape(&self) -> Option<Shape> {
        self.last
    }

    /// Reads a line. `number` is its number in the file, from 1.
    pub fn read<'a>(&mut self, line: Node<'a>, number: u64) -> Line<'a> {
        let shape = classify(line, self.last);
        self.line = number;
        self.made = 0;
        self.last = shape.or(self.last);
        let at = line.text("timestamp").and_then(|text| time::parse(&text));
        let mut read = Line {
            shape,
            at,
            said: Vec::new(),
            model: None,
            usage: None,
            cost: None,
            keep: None,
        };
        match shape {
            Some(Shape::Documented | Shape::Stub | Shape::StubWorker) => {
                role::read(self, line, &mut read);
            }
            Some(Shape::Contract) if line.get("type").is_none() => {
                role::read(self, line, &mut read);
            }
            Some(Shape::SdkLegacy | Shape::Contract) => sdk::legacy(self, line, &mut read),
            Some(Shape::SdkClasses) => sdk::classes(self, line, &mut read),
            Some(Shape::SdkSession) => sdk::session(self, line, &mut read),
            Some(Shape::ClaudeCli) => vendor::claude(self, line, &mut read),
            Some(Shape::GeminiCli) => vendor::gemini(self, line, &mut read),
            None => read.keep = Some(NoteKind::UnknownRecord),
        }
        read
    }

    /// The id for a call, given or made, that waits for its result.
    fn call(&mut self, name: &str, given: Option<&str>) -> String {
        let id = match given.filter(|id| !id.is_empty()) {
            Some(id) => id.to_owned(),
            None => self.make(),
        };
        if self.open.len() == OPEN {
            self.open.pop_front();
        }
        let name = name.chars().take(LONGEST_NAME).collect();
        self.open.push_back((name, id.clone()));
        id
    }

    /// The call that a result answers, by its id or else by the tool: tool and id.
    fn answer(&mut self, name: &str, given: Option<&str>) -> Option<(String, String)> {
        let name: String = name.chars().take(LONGEST_NAME).collect();
        let at = match given {
            Some(given) => self.open.iter().position(|(_, id)| id == given),
            None => self.open.iter().position(|(tool, _)| *tool == name),
        };
        self.open.remove(at?)
    }

    /// An id for a call that has none: where it stands.
    fn make(&mut self) -> String {
        self.made += 1;
        match self.made {
            1 => format!("{}line-{}", self.prefix, self.line),
            n => format!("{}line-{}.{n}", self.prefix, self.line),
        }
    }
}

/// What shape a line has, given that of the line before it.
pub fn classify(line: Node<'_>, before: Option<Shape>) -> Option<Shape> {
    let has = |key: &str| line.get(key).is_some();
    let kind = line.text("type");
    let Some(kind) = kind else {
        return role::classify(line, before);
    };
    if has("phase") {
        return Some(Shape::SdkSession);
    }
    if vendor::is_claude(line, &kind) {
        return Some(Shape::ClaudeCli);
    }
    if kind.ends_with("Message") {
        return Some(Shape::SdkClasses);
    }
    if vendor::is_gemini(line, &kind) {
        return Some(Shape::GeminiCli);
    }
    let of_tool = matches!(&*kind, "tool_use" | "tool_result") && has("tool");
    let plain = matches!(
        before,
        Some(Shape::Documented | Shape::Stub | Shape::StubWorker | Shape::Contract)
    );
    if of_tool && plain {
        return Some(Shape::Contract);
    }
    let same = |shape| before == Some(shape);
    match &*kind {
        "result" | "error" | "message" if same(Shape::GeminiCli) => Some(Shape::GeminiCli),
        "result" if same(Shape::ClaudeCli) => Some(Shape::ClaudeCli),
        "result" if same(Shape::SdkClasses) => Some(Shape::SdkClasses),
        "message" if has("role") => Some(Shape::SdkLegacy),
        "error" | "result" => Some(Shape::SdkLegacy),
        _ if of_tool => Some(Shape::SdkLegacy),
        _ => None,
    }
}

/// Whether an object has fields other than these.
fn has_more(line: Node<'_>, known: &[&str]) -> bool {
    line.fields()
        .any(|(key, _)| !known.iter().any(|known| key.is(known)))
}

/// A text that has exactly as many characters as some writers cut texts to.
fn is_cut(text: &str) -> bool {
    text.len() >= CUT && text.chars().count() == CUT
}

const CUT: usize = 500;

/// Says that a text was most likely cut.
fn cut<'a>() -> Statement<'a> {
    Statement::Note {
        kind: NoteKind::Truncated,
        text: Some(Cow::Borrowed("cut at 500 characters, as its writer does")),
    }
}
