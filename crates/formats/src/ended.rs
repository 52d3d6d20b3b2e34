//! Why an answer ended: the words of providers, and the words of formats that have a list of their own.

/// Why an answer ended, as far as the providers' words agree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ended {
    /// The answer is whole. Some providers say so whether a tool was called or not.
    Whole,
    /// The model had said all it wanted to say, and waits for no tool.
    Said,
    /// The model called a tool.
    ToolUse,
    /// The answer reached the most tokens it may have.
    Length,
    /// The model wrote one of the sequences that end an answer.
    Sequence,
    /// The provider or the model refused to go on.
    Filtered,
    /// Something went wrong.
    Error,
}

impl Ended {
    /// What a provider's word means; `None` for a word that is not known here.
    pub(crate) fn of(word: &str) -> Option<Self> {
        Some(match word {
            "STOP" | "completed" => Self::Whole,
            "end_turn" | "stop" => Self::Said,
            "tool_use" | "tool_calls" | "tool-calls" | "tool_call" | "function_call" => {
                Self::ToolUse
            }
            "max_tokens"
            | "length"
            | "MAX_TOKENS"
            | "max_output_tokens"
            | "model_context_window_exceeded" => Self::Length,
            "stop_sequence" => Self::Sequence,
            "refusal" | "content_filter" | "content-filter" | "SAFETY" | "RECITATION"
            | "BLOCKLIST" | "PROHIBITED_CONTENT" | "SPII" | "IMAGE_SAFETY" => Self::Filtered,
            "error" | "failed" | "MALFORMED_FUNCTION_CALL" => Self::Error,
            _ => return None,
        })
    }

    /// The word of traces (`.agentlog`) for an answer that called a tool or did not.
    pub(crate) fn in_traces(self, called: bool) -> &'static str {
        match self {
            Self::Whole if called => "tool_use",
            Self::Whole | Self::Said => "end_turn",
            Self::ToolUse => "tool_use",
            Self::Length => "max_tokens",
            Self::Sequence => "stop_sequence",
            Self::Filtered => "content_filter",
            Self::Error => "error",
        }
    }

    /// The word of the `GenAI` conventions for an answer that called a tool or did not.
    pub(crate) fn in_gen_ai(self, called: bool) -> &'static str {
        match self {
            Self::Whole if called => "tool_call",
            Self::Whole | Self::Said | Self::Sequence => "stop",
            Self::ToolUse => "tool_call",
            Self::Length => "length",
            Self::Filtered => "content_filter",
            Self::Error => "error",
        }
    }
}
