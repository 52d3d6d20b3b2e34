//! What the logs of other programs say beside the conversation.

use crate::Json;
use crate::vocabulary::vocabulary;

/// Something that was written down beside the conversation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Note {
    /// What it is about.
    pub kind: NoteKind,
    /// What it says, for a person.
    pub text: Option<String>,
    /// The record it was read from, where nothing else keeps all of it.
    pub raw: Option<Json>,
}

vocabulary! {
    /// What a note is about.
    NoteKind, "note kind" {
        /// Something attached to a message: a file, a selection, an image.
        Attachment = "attachment",
        /// The history was condensed.
        Compaction = "compaction",
        /// The environment: directory, branch, settings of a turn.
        Context = "context",
        /// A call to a model, without content of its own.
        ModelCall = "model_call",
        /// Something went wrong outside of a tool.
        Error = "error",
        /// A snapshot or a change of files.
        FileSnapshot = "file_snapshot",
        /// The session is a copy or a branch of another.
        Fork = "fork",
        /// A hook ran.
        Hook = "hook",
        /// A line that is no record.
        MalformedLine = "malformed_line",
        /// The mode of the agent changed.
        Mode = "mode",
        /// The model changed.
        ModelChange = "model_change",
        /// A permission was asked for, given or refused.
        Permission = "permission",
        /// A sign of life while something runs.
        Progress = "progress",
        /// A prompt was queued, or taken from the queue.
        Queue = "queue",
        /// The session went on after it had ended.
        Resume = "resume",
        /// A call is tried again.
        Retry = "retry",
        /// The conversation went back to an earlier point.
        Rewind = "rewind",
        /// The session as such: its beginning, its end, its settings.
        Session = "session",
        /// A sub-agent began or ended.
        Subagent = "subagent",
        /// A summary of the conversation.
        Summary = "summary",
        /// A list of things to do.
        Todo = "todo",
        /// A name for the session.
        Title = "title",
        /// Part of the content was cut off by the agent.
        Truncated = "truncated",
        /// A turn began or ended.
        Turn = "turn",
        /// Token counts.
        Usage = "usage",
        /// A record of a kind that is not known.
        UnknownRecord = "unknown_record",
    }
}

vocabulary! {
    /// How a tool call ended. The first that applies: denied, timeout, error, ok.
    Status, "status" {
        /// It did what it was asked.
        Ok = "ok",
        /// It failed.
        Error = "error",
        /// It was not allowed to run.
        Denied = "denied",
        /// It took too long.
        Timeout = "timeout",
    }
}

/// Content that is kept outside of the event: an image, a document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attachment {
    /// Its media type, as the log says; empty where it does not.
    pub mime: String,
    /// How many bytes it has.
    pub bytes: u64,
    /// The SHA-256 of its bytes, in lowercase hexadecimal.
    pub sha256: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_word_reads_back() {
        for kind in NoteKind::ALL {
            assert_eq!(NoteKind::from_word(kind.as_str()), Some(*kind));
        }
        for status in Status::ALL {
            assert_eq!(Status::from_word(status.as_str()), Some(*status));
        }
    }
}
