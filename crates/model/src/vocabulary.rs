//! The vocabularies: event types, block types, fidelity, roles.
//!
//! A reader that meets another word keeps it as a string (see [`crate::Unknown`] and [`crate::Content::Unknown`]).

/// A word that is not in the closed vocabulary it was looked up in.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unknown {vocabulary}: {word:?}")]
pub struct UnknownWord {
    /// Which vocabulary was asked, e.g. `event type`.
    pub vocabulary: &'static str,
    /// The word that is not in it.
    pub word: String,
}

macro_rules! vocabulary {
    ($(#[$doc:meta])* $name:ident, $label:literal { $($(#[$vdoc:meta])* $variant:ident = $word:literal,)+ }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum $name { $($(#[$vdoc])* $variant,)+ }

        impl $name {
            /// Every member, in the order of the specification.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)+];

            /// The word as it stands in a file.
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $word,)+ }
            }

            /// Looks a word up; `None` when it is not in the vocabulary.
            pub fn from_word(word: &str) -> Option<Self> {
                match word { $($word => Some(Self::$variant),)+ _ => None }
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.as_str())
            }
        }

        impl std::str::FromStr for $name {
            type Err = $crate::UnknownWord;

            fn from_str(word: &str) -> Result<Self, $crate::UnknownWord> {
                Self::from_word(word)
                    .ok_or_else(|| $crate::UnknownWord { vocabulary: $label, word: word.to_owned() })
            }
        }
    };
}

pub(crate) use vocabulary;

vocabulary! {
    /// What an event reports.
    EventType, "event type" {
        /// A workflow run begins.
        RunStarted = "run.started",
        /// A workflow run ends.
        RunCompleted = "run.completed",
        /// A step begins.
        StepStarted = "step.started",
        /// A step ends, well or badly.
        StepCompleted = "step.completed",
        /// A sub-workflow is invoked; the event names the child run.
        CallStarted = "step.call_workflow.started",
        /// A sub-workflow is seen to end; the event names the child run.
        CallCompleted = "step.call_workflow.completed",
        /// What was put to the agent.
        UserMessage = "message.user",
        /// What the agent said.
        AssistantMessage = "message.assistant",
        /// A tool invocation begins.
        ToolCall = "tool.call",
        /// A tool invocation ends.
        ToolResult = "tool.result",
        /// What a program put into the conversation.
        SystemMessage = "message.system",
        /// A request to a model, and what came of it.
        ModelCall = "model.call",
        /// One chunk of a response that was streamed.
        Chunk = "chunk",
        /// The program around the model did or met something.
        Harness = "harness",
        /// Bytes are kept outside of events.
        Blob = "blob",
        /// Something went wrong outside of a tool.
        Error = "error",
        /// Something was written down beside the conversation.
        Note = "note",
    }
}

impl EventType {
    /// The ten types that a file of the exchange format may name, in the order of its specification.
    pub const EXCHANGE: &'static [Self] = Self::ALL.split_at(10).0;

    /// Whether a file of the exchange format may name it. The other types are carried by lines of these.
    pub fn is_exchange(self) -> bool {
        Self::EXCHANGE.contains(&self)
    }
}

vocabulary! {
    /// What a content block holds.
    BlockType, "block type" {
        /// Plain text.
        Text = "text",
        /// Reasoning.
        Thinking = "thinking",
        /// A tool invocation.
        ToolUse = "tool_use",
        /// A tool's output.
        ToolResult = "tool_result",
        /// A shell command.
        Command = "command",
        /// One chunk of a provider's stream.
        Stream = "stream",
    }
}

vocabulary! {
    /// Who saw it. Consumers use this to count a call once when two channels report it.
    Fidelity, "fidelity" {
        /// Seen at the tool router: authoritative.
        Router = "router",
        /// Reported by the agent.
        AgentEmitted = "agent_emitted",
    }
}

vocabulary! {
    /// Who speaks in a message.
    Role, "role" {
        /// The side that prompts.
        User = "user",
        /// The agent.
        Assistant = "assistant",
        /// A program.
        System = "system",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_word_reads_back() {
        for t in EventType::ALL {
            assert_eq!(t.as_str().parse::<EventType>().as_ref(), Ok(t));
        }
        for t in BlockType::ALL {
            assert_eq!(BlockType::from_word(t.as_str()), Some(*t));
        }
        for f in Fidelity::ALL {
            assert_eq!(Fidelity::from_word(f.as_str()), Some(*f));
        }
        assert_eq!((EventType::EXCHANGE.len(), BlockType::ALL.len()), (10, 6));
        assert!(EventType::ToolResult.is_exchange() && !EventType::SystemMessage.is_exchange());
    }

    #[test]
    fn other_words_are_named() {
        let err = "step.exploded".parse::<EventType>().unwrap_err();
        assert_eq!(err.to_string(), r#"unknown event type: "step.exploded""#);
        assert_eq!(Role::from_word("User"), None, "words are case-sensitive");
    }
}
