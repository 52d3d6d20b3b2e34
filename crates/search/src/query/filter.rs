//! What can be asked for beside words.

use std::fmt;

use quipu_model::{Money, Status, Timestamp};

/// Makes an enum whose members have a word each, and may have others that mean the same.
macro_rules! words {
    ($(#[$doc:meta])* $name:ident { $($(#[$vdoc:meta])* $variant:ident = $word:literal $(| $alias:literal)*,)+ }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum $name { $($(#[$vdoc])* $variant,)+ }

        impl $name {
            /// Every member.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)+];

            /// Its word.
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $word,)+ }
            }

            /// Looks a word up, without regard to case.
            pub fn from_word(word: &str) -> Option<Self> {
                $(if [$word $(, $alias)*].iter().any(|known| known.eq_ignore_ascii_case(word)) {
                    return Some(Self::$variant);
                })+
                None
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
                to.write_str(self.as_str())
            }
        }
    };
}

words! {
    /// What a filter is about: the word before its colon.
    Field {
        /// The agent.
        Agent = "agent",
        /// The model.
        Model = "model",
        /// Who speaks.
        Role = "role",
        /// The tool that is called or answers.
        Tool = "tool",
        /// What the agent worked on.
        Project = "project",
        /// A file that is named.
        Path = "path",
        /// The branch of the repository.
        Branch = "branch",
        /// Not earlier.
        Since = "since",
        /// Not later.
        Until = "until",
        /// How a tool call ended.
        Status = "status",
        /// Something that an event has.
        Has = "has",
        /// What the session cost.
        Cost = "cost",
        /// The session.
        Session = "session",
        /// The title of the session.
        Title = "title",
    }
}

words! {
    /// Who speaks in an event, or what kind of event it is.
    Role {
        /// A prompt.
        User = "user",
        /// An answer.
        Assistant = "assistant",
        /// What the model thought before it answered.
        Reasoning = "reasoning" | "thinking",
        /// Instructions that a program put into the conversation.
        System = "system",
        /// What a tool was asked to do.
        ToolCall = "tool_call" | "call",
        /// What a tool answered.
        ToolResult = "tool_result" | "result",
        /// Either of both.
        Tool = "tool",
        /// Something that the agent wrote down beside the conversation.
        Note = "note",
    }
}

words! {
    /// Something that an event has.
    Has {
        /// It says that something went wrong: a tool call that did not end well, or a failure of the agent.
        Error = "error",
        /// Something is attached: an image, a document.
        Attachment = "attachment",
    }
}

/// One condition that is not about words of the text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Filter {
    /// The name of the agent.
    Agent(Pattern),
    /// The name of the model.
    Model(Pattern),
    /// Who speaks.
    Role(Role),
    /// The name of the tool that is called or answers.
    Tool(Pattern),
    /// The project that the session belongs to.
    Project(Pattern),
    /// A path, or some of the names in it, that the event names.
    Path(String),
    /// The branch that the session was on.
    Branch(Pattern),
    /// At this time or later.
    Since(Timestamp),
    /// Before this time. The end of a day is the beginning of the next one, which is no part of it.
    Until(Timestamp),
    /// How the tool call ended.
    Status(Status),
    /// Something that the event has.
    Has(Has),
    /// What the session cost, compared with a sum.
    Cost(Comparison, Money),
    /// The beginning of the id of the session.
    Session(String),
    /// Words of the title of the session.
    Title(String),
}

impl Filter {
    /// What it is about.
    pub fn field(&self) -> Field {
        match self {
            Self::Agent(_) => Field::Agent,
            Self::Model(_) => Field::Model,
            Self::Role(_) => Field::Role,
            Self::Tool(_) => Field::Tool,
            Self::Project(_) => Field::Project,
            Self::Path(_) => Field::Path,
            Self::Branch(_) => Field::Branch,
            Self::Since(_) => Field::Since,
            Self::Until(_) => Field::Until,
            Self::Status(_) => Field::Status,
            Self::Has(_) => Field::Has,
            Self::Cost(..) => Field::Cost,
            Self::Session(_) => Field::Session,
            Self::Title(_) => Field::Title,
        }
    }
}

/// A name, or the beginning of one. Compared without case.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Pattern {
    /// The whole name.
    Exact(String),
    /// How the name begins.
    Prefix(String),
}

impl Pattern {
    /// What was written, without the asterisk.
    pub fn text(&self) -> &str {
        match self {
            Self::Exact(text) | Self::Prefix(text) => text,
        }
    }

    /// Whether a name is meant.
    pub fn matches(&self, name: &str) -> bool {
        let mut name = name.chars().flat_map(char::to_lowercase);
        let mut wanted = self.text().chars().flat_map(char::to_lowercase);
        wanted.all(|c| name.next() == Some(c))
            && (matches!(self, Self::Prefix(_)) || name.next().is_none())
    }
}

/// How two sums compare.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Comparison {
    /// `<`
    Less,
    /// `<=`
    AtMost,
    /// `=`
    Equal,
    /// `>=`
    AtLeast,
    /// `>`
    More,
}

impl Comparison {
    /// Every way, those with a longer sign before those whose sign begins theirs.
    pub(super) const ALL: [Self; 5] = [
        Self::AtMost,
        Self::AtLeast,
        Self::Less,
        Self::More,
        Self::Equal,
    ];

    /// Its sign.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Less => "<",
            Self::AtMost => "<=",
            Self::Equal => "=",
            Self::AtLeast => ">=",
            Self::More => ">",
        }
    }

    /// Whether it is true of these two, in this order.
    pub fn holds(self, left: Money, right: Money) -> bool {
        let order = left.cmp(&right);
        match self {
            Self::Less => order.is_lt(),
            Self::AtMost => order.is_le(),
            Self::Equal => order.is_eq(),
            Self::AtLeast => order.is_ge(),
            Self::More => order.is_gt(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_read_back_and_have_aliases() {
        for field in Field::ALL {
            assert_eq!(Field::from_word(field.as_str()), Some(*field));
        }
        for role in Role::ALL {
            assert_eq!(Role::from_word(&role.as_str().to_uppercase()), Some(*role));
        }
        for (alias, role) in [
            ("thinking", Role::Reasoning),
            ("call", Role::ToolCall),
            ("result", Role::ToolResult),
        ] {
            assert_eq!(Role::from_word(alias), Some(role));
        }
        assert_eq!(Has::from_word("errors"), None);
    }

    #[test]
    fn patterns_match_without_case() {
        let exact = Pattern::Exact("WebFetch".to_owned());
        let prefix = Pattern::Prefix("Über".to_owned());
        for (pattern, name, matches) in [
            (&exact, "webfetch", true),
            (&exact, "webfetch2", false),
            (&exact, "webfetc", false),
            (&exact, "", false),
            (&prefix, "übergang", true),
            (&prefix, "ÜBER", true),
            (&prefix, "übe", false),
        ] {
            assert_eq!(pattern.matches(name), matches, "{pattern:?} {name}");
        }
    }

    #[test]
    fn comparisons_compare() {
        let table = [
            (Comparison::Less, [true, false, false]),
            (Comparison::AtMost, [true, true, false]),
            (Comparison::Equal, [false, true, false]),
            (Comparison::AtLeast, [false, true, true]),
            (Comparison::More, [false, false, true]),
        ];
        for (comparison, holds) in table {
            let sums = [1, 2, 3].map(Money::from_atto);
            assert_eq!(sums.map(|left| comparison.holds(left, sums[1])), holds);
        }
    }
}
