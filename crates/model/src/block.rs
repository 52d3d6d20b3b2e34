//! What messages are made of.

use crate::{BlockType, Fidelity, Json, ToolCallId};

/// One block of a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Block {
    /// Who saw it.
    pub fidelity: Fidelity,
    /// What it holds.
    pub content: Content,
}

/// The content of a block; each variant has the fields of its block type and no others.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Content {
    /// Plain text, verbatim.
    Text(String),
    /// Reasoning, verbatim. Empty where the provider withholds it.
    Thinking(String),
    /// A tool invocation as the agent wrote it.
    ToolUse {
        /// The tool's name; empty where the source gives none.
        name: String,
        /// The provider's token that links the use to its result; empty where there is none.
        id: ToolCallId,
        /// The arguments.
        input: Option<Json>,
    },
    /// A tool's output as the agent was given it.
    ToolResult {
        /// The token of the tool use this answers; empty where there is none.
        id: ToolCallId,
        /// The output.
        content: Option<Json>,
    },
    /// A shell command after interpolation.
    Command(String),
    /// One chunk of a provider's stream.
    Stream(String),
    /// A block of another type, as it was read.
    Unknown(Json),
}

impl Block {
    /// A text block.
    pub fn text(fidelity: Fidelity, text: impl Into<String>) -> Self {
        Self {
            fidelity,
            content: Content::Text(text.into()),
        }
    }

    /// A block that was read and does not fit the vocabulary, as it is.
    pub fn unknown(block: Json) -> Self {
        Self {
            fidelity: Fidelity::AgentEmitted,
            content: Content::Unknown(block),
        }
    }

    /// The block's type; `None` when the vocabulary does not have it.
    pub fn block_type(&self) -> Option<BlockType> {
        Some(match self.content {
            Content::Text(_) => BlockType::Text,
            Content::Thinking(_) => BlockType::Thinking,
            Content::ToolUse { .. } => BlockType::ToolUse,
            Content::ToolResult { .. } => BlockType::ToolResult,
            Content::Command(_) => BlockType::Command,
            Content::Stream(_) => BlockType::Stream,
            Content::Unknown(_) => return None,
        })
    }
}
