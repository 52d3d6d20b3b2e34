//! What fills the window of a model.

use crate::Time;
use crate::describe::document;
use crate::stats::Tokens;

document! {
    /// What fills the window of the model, call by call. Tokens are those that the log states; bytes are bytes of text, and nobody makes tokens of them.
    pub struct ContextTurns {
        /// The id of the transcript.
        pub transcript: Option<String>,
        /// Its events.
        pub events: u64,
        /// How many calls of models it has.
        pub turns_total: u64,
        /// The calls of this page, in the order of their first events.
        pub turns: Vec<ContextTurn>,
        /// The `from` of the next page; null when this is the last one.
        pub next: Option<u64>,
        /// How often the conversation was compacted.
        pub compactions_total: u64,
        /// The compactions, at most 1,000.
        pub compactions: Vec<Compaction>,
        /// How often the window lost much of its content otherwise.
        pub resets_total: u64,
        /// When it did, at most 1,000.
        pub resets: Vec<ContextReset>,
        /// The fullest window; null when the log states no tokens.
        pub fullest: Option<FullestWindow>,
        /// Calls for which the log states no tokens.
        pub unstated: u64,
    }
}

document! {
    /// A call of a model.
    pub struct ContextTurn {
        /// Its number among the calls of the transcript, from 0.
        pub turn: u64,
        /// The seq of its first event.
        pub seq_from: u64,
        /// The seq of its last event.
        pub seq_to: u64,
        /// When its first event happened.
        pub at: Option<Time>,
        /// The model.
        pub model: Option<String>,
        /// The sub-agent that made it, where it shares the log. Each has a window of its own.
        pub subagent: Option<String>,
        /// The step that it happened in; empty outside of steps.
        pub path: String,
        /// The id of the call, as the log gives it.
        pub call_id: Option<String>,
        /// Its tokens; null when the log states none.
        pub tokens: Option<Tokens>,
        /// The prompt: input, cached or not. Null when the log states no input, or states tokens apart from an answer, which may be those of several calls.
        pub prompt_tokens: Option<u64>,
        /// The window after the answer: the prompt and the output.
        pub window_tokens: Option<u64>,
        /// How large the window can be; null when nothing says so.
        pub limit_tokens: Option<u64>,
        /// How much larger the prompt is than the window after the call before it. Null when either is unknown. What is negative was removed.
        pub grown_tokens: Option<i64>,
        /// What was added since the call before it in the same window.
        pub added: ContextAdded,
        /// Why the answer ended, in the provider's own word.
        pub stop_reason: Option<String>,
    }
}

document! {
    /// What was put into a window between two calls, in bytes of text. What the model itself had said before is part of it.
    pub struct ContextAdded {
        /// What people wrote.
        pub user_bytes: u64,
        /// What the model answered.
        pub assistant_bytes: u64,
        /// What the model reasoned. Providers may drop it from later prompts.
        pub thinking_bytes: u64,
        /// What the model asked of tools.
        pub tool_call_bytes: u64,
        /// What tools gave back.
        pub tool_result_bytes: u64,
        /// The same by tool, the most first.
        pub tool_results: Vec<ToolBytes>,
        /// Tools that are not in that list, because it is too long.
        pub other_tools: u64,
        /// Instructions, and texts that a program put into the conversation.
        pub system_bytes: u64,
        /// Files that are attached.
        pub attachments: u64,
        /// Their bytes.
        pub attachment_bytes: u64,
    }
}

document! {
    /// What a tool gave back.
    pub struct ToolBytes {
        /// The tool.
        pub tool: String,
        /// How often.
        pub results: u64,
        /// How much.
        pub bytes: u64,
    }
}

document! {
    /// A compaction.
    pub struct Compaction {
        /// The seq of the first event that tells of it.
        pub seq_from: u64,
        /// The seq of the last one.
        pub seq_to: u64,
        /// When.
        pub at: Option<Time>,
        /// The sub-agent whose window it is.
        pub subagent: Option<String>,
        /// How many tokens there were before, by the log's own word; null when it does not say.
        pub stated_before_tokens: Option<u64>,
        /// The window after the call before it.
        pub before_tokens: Option<u64>,
        /// The prompt of the call after it.
        pub after_tokens: Option<u64>,
        /// How long the summary is that takes the place of what was said; null when the log has none.
        pub summary_bytes: Option<u64>,
    }
}

document! {
    /// The window lost much of its content, and not by a compaction.
    pub struct ContextReset {
        /// The seq of the event that tells of it.
        pub seq: u64,
        /// When.
        pub at: Option<Time>,
        /// The sub-agent whose window it is.
        pub subagent: Option<String>,
        /// What happened.
        pub kind: ResetKind,
        /// The prompt of the call before it.
        pub before_tokens: Option<u64>,
        /// The prompt of the call after it.
        pub after_tokens: Option<u64>,
    }
}

document! {
    /// How a window lost its content.
    pub words enum ResetKind {
        /// The conversation went back to an earlier point.
        Rewind,
        /// The prompt is less than half of that of the call before it, and no event says why.
        Shrunk,
    }
}

document! {
    /// The fullest window of a transcript.
    pub struct FullestWindow {
        /// The seq of the first event of the call.
        pub seq: u64,
        /// The window after the answer.
        pub window_tokens: u64,
        /// How large it can be.
        pub limit_tokens: Option<u64>,
    }
}
