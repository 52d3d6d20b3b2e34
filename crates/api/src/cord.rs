//! The shape of a transcript.

use crate::describe::document;

document! {
    /// A transcript at a glance: what kind each event is of, and what was asked and answered.
    pub struct Cord {
        /// The id of the transcript.
        pub transcript: Option<String>,
        /// Its events.
        pub events: u64,
        /// A letter for each event, the first for the event 1: `u` a message of a person, `a` an answer, `s` a text that a program put in, `r` reasoning, `t` a tool call, `p` the result of a tool call before it, `o` a result without a call, `n` a note, `q` a note of the agent for itself. Upper case means that it failed; a call whose result failed is upper case, too.
        pub kinds: String,
        /// Tool calls whose result is more than 32 events away: the seq of the call, then the seq of the result.
        pub far: Vec<Vec<u64>>,
        /// The first lines of messages, in their order, at most 3,000.
        pub lines: Vec<CordLine>,
        /// How many messages have no line here, because there are too many.
        pub more_lines: u64,
    }
}

document! {
    /// The first line of a message.
    pub struct CordLine {
        /// The seq of the message.
        pub seq: u64,
        /// Whether a person wrote it. Otherwise the agent did.
        pub person: bool,
        /// The line, at most 120 characters.
        pub text: String,
    }
}

document! {
    /// Who asks.
    pub struct Me {
        /// Who it is: `owner`, `local`, `key` or `nobody`.
        pub who: String,
        /// Whether they may read.
        pub read: bool,
        /// Whether they may change something.
        pub write: bool,
        /// The token to change something with, for a page that the owner opened on this machine. Null for everybody else.
        pub token: Option<String>,
    }
}
