//! The kinds of records.

macro_rules! kinds {
    ($($(#[$doc:meta])* $kind:ident = $word:literal,)+) => {
        /// What a record is.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum Kind { $($(#[$doc])* $kind,)+ }

        impl Kind {
            /// Every kind.
            pub const ALL: &'static [Self] = &[$(Self::$kind,)+];

            /// The kind as it is written.
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$kind => $word,)+ }
            }

            /// The kind that is written so.
            pub fn from_word(word: &str) -> Option<Self> {
                match word { $($word => Some(Self::$kind),)+ _ => None }
            }
        }
    };
}

kinds! {
    /// The root of a trace, or where a session begins inside of it.
    Metadata = "metadata",
    /// What was sent to a model.
    ChatRequest = "chat_request",
    /// What came back.
    ChatResponse = "chat_response",
    /// A tool was called.
    ToolCall = "tool_call",
    /// A tool gave back.
    ToolResult = "tool_result",
    /// Something failed.
    Error = "error",
    /// How a replay came out.
    ReplaySummary = "replay_summary",
    /// A piece of a response, as it came.
    Chunk = "chunk",
    /// Something the program around the model did: a retry, a trim, a limit.
    HarnessEvent = "harness_event",
    /// Bytes that are kept outside of the trace.
    BlobRef = "blob_ref",
}

impl std::fmt::Display for Kind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}
