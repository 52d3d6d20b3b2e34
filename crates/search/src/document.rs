//! An event, as it is handed to the index.

/// An event, as far as it can be looked for.
#[derive(Debug, Clone, Default)]
pub struct Document {
    /// The pass over a log in which it was read.
    pub pass: u64,
    /// Its number in the transcript.
    pub seq: u64,
    /// Milliseconds since 1970.
    pub at: Option<i64>,
    /// Where it stands in the log, in whatever terms the store has for it.
    pub place: u64,
    /// What it says.
    pub text: String,
    /// The files it names, each on a line.
    pub paths: String,
    /// What it is.
    pub tags: Vec<Tag>,
}

/// Something that an event is, in one word.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tag(pub(crate) String);

/// What a tag is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Facet {
    /// The agent.
    Agent,
    /// Who speaks.
    Role,
    /// The tool that is called or answers.
    Tool,
    /// The model that produced it.
    Model,
    /// How a tool call ended.
    Status,
    /// Something that it has.
    Has,
}

impl Facet {
    const fn letter(self) -> char {
        match self {
            Self::Agent => 'a',
            Self::Role => 'r',
            Self::Tool => 't',
            Self::Model => 'm',
            Self::Status => 's',
            Self::Has => 'h',
        }
    }
}

impl Tag {
    /// What an event is. Compared without case.
    pub fn new(facet: Facet, value: &str) -> Self {
        /// A longer name is a mistake, or meant to be a nuisance.
        const LONGEST: usize = 200;
        let mut tag = String::with_capacity(2 + value.len().min(LONGEST));
        tag.push(facet.letter());
        tag.push(':');
        for c in value.chars().take(LONGEST) {
            tag.extend(c.to_lowercase());
        }
        Self(tag)
    }
}
