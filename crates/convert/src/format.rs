//! What a session can be written as.

macro_rules! formats {
    ($($(#[$doc:meta])* $name:ident = $word:literal, $ending:literal, $shape:ident, $about:literal;)+) => {
        /// A format that sessions can be written in.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum Format { $($(#[$doc])* $name,)+ }

        impl Format {
            /// All of them.
            pub const ALL: &'static [Self] = &[$(Self::$name,)+];

            /// The word for it.
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$name => $word,)+ }
            }

            /// The format of this name.
            pub fn from_word(word: &str) -> Option<Self> {
                match word { $($word => Some(Self::$name),)+ _ => None }
            }

            /// What names of its files end with, the dot included.
            pub const fn ending(self) -> &'static str {
                match self { $(Self::$name => $ending,)+ }
            }

            /// What it is, in a line.
            pub const fn about(self) -> &'static str {
                match self { $(Self::$name => $about,)+ }
            }

            /// What is written.
            pub const fn shape(self) -> Shape {
                match self { $(Self::$name => Shape::$shape,)+ }
            }
        }
    };
}

/// What is written for a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    /// A text file that says all, perhaps with pictures beside it.
    File,
    /// A directory of files.
    Directory,
    /// Tables that many sessions share.
    Tables,
}

formats! {
    /// The normalized transcript.
    Normalized = "normalized", ".json", File, "the normalized transcript: one JSON document that carries everything";
    /// The exchange transcript.
    Exchange = "exchange", ".jsonl", File, "the exchange transcript: an event a line, as runs are recorded";
    /// A trace of content-addressed records.
    Agentlog = "agentlog", ".agentlog", File, "a trace of content-addressed records";
    /// A page.
    Html = "html", ".html", File, "one page to hand to a person: opens anywhere, loads nothing";
    /// Markdown.
    Markdown = "markdown", ".md", File, "Markdown";
    /// Plain text.
    Text = "text", ".txt", File, "plain text";
    /// ATIF.
    Atif = "atif", ".json", File, "ATIF 1.7, the trajectory format of Harbor";
    /// OpenTelemetry.
    Otlp = "otlp", ".jsonl", File, "OpenTelemetry traces (OTLP/JSON, GenAI conventions)";
    /// Hugging Face.
    HuggingFace = "huggingface", ".jsonl", File, "a session as the Hugging Face Hub shows it";
    /// Claude Code.
    ClaudeCode = "claude-code", ".jsonl", File, "a session file that Claude Code resumes";
    /// Codex.
    Codex = "codex", ".jsonl", File, "a session file that Codex resumes";
    /// Flow artifacts.
    Flow = "flow", "", Directory, "a run directory: transcripts and receipts of workflow steps";
    /// Parquet.
    Parquet = "parquet", ".parquet", Tables, "tables of events and calls, for DuckDB and the like";
}

impl std::fmt::Display for Format {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}
