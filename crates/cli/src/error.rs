//! Errors as a user meets them, and what the process ends with.

use std::io;
use std::path::Path;
use std::process::ExitCode;

use crate::terminal;

/// What the process ends with. Part of the contract with scripts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Exit {
    /// Done.
    Done,
    /// Done, and something was found: a failed check.
    Found,
    /// Wrong usage.
    Usage,
    /// Bad input data.
    Data,
    /// The environment refused: I/O, permissions.
    Environment,
    /// What a workflow or a program says.
    Code(u8),
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(match exit {
            Exit::Done => 0,
            Exit::Found => 1,
            Exit::Usage => 2,
            Exit::Data => 3,
            Exit::Environment => 4,
            Exit::Code(code) => code,
        })
    }
}

/// Why a command did not do what it was asked.
#[derive(Debug)]
pub(crate) struct CommandError {
    exit: Exit,
    source: anyhow::Error,
    details: Vec<String>,
    hints: Vec<String>,
}

pub(crate) type Result<T, E = CommandError> = std::result::Result<T, E>;

impl CommandError {
    pub(crate) fn new(exit: Exit, source: impl Into<anyhow::Error>) -> Self {
        Self {
            exit,
            source: source.into(),
            details: Vec::new(),
            hints: Vec::new(),
        }
    }

    pub(crate) fn usage(message: impl Into<String>) -> Self {
        Self::new(Exit::Usage, anyhow::Error::msg(message.into()))
    }

    /// Some lines of a file are no events.
    pub(crate) fn bad_lines(n: u64, path: &Path) -> Self {
        let lines = terminal::count(n, "line");
        let error = anyhow::anyhow!("{lines} of {} could not be read", path.display());
        let hint = "`quipu verify` tells more, `quipu repair` mends a torn end";
        Self::new(Exit::Data, error).hint(hint)
    }

    /// Says what can be done about it.
    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hints.push(hint.into());
        self
    }

    /// Lines that come between what went wrong and what can be done.
    pub(crate) fn details(mut self, lines: impl IntoIterator<Item = String>) -> Self {
        self.details.extend(lines);
        self
    }

    /// Says what it is about.
    pub(crate) fn about(mut self, what: &str) -> Self {
        self.source = self.source.context(what.to_owned());
        self
    }

    pub(crate) fn exit(&self) -> Exit {
        self.exit
    }

    /// Whether the reader of our output went away, which is its right.
    pub(crate) fn is_broken_pipe(&self) -> bool {
        self.source.chain().any(|cause| {
            cause.downcast_ref::<io::Error>().map(io::Error::kind)
                == Some(io::ErrorKind::BrokenPipe)
        })
    }

    /// Writes it to stderr.
    pub(crate) fn report(&self) {
        terminal::say(&format!("error: {self}"));
        for line in &self.details {
            terminal::say(&format!("  {line}"));
        }
        for hint in &self.hints {
            terminal::say(&format!("hint: {hint}"));
        }
    }
}

impl std::fmt::Display for CommandError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // Causes that repeat what was said are left out: library errors name theirs.
        let mut said = self.source.to_string();
        for cause in self.source.chain().skip(1) {
            let cause = cause.to_string();
            if !said.contains(&cause) {
                said = format!("{said}: {cause}");
            }
        }
        f.write_str(&said)
    }
}

/// Reading or writing failed.
pub(crate) fn io_error(what: impl Into<String>) -> impl FnOnce(io::Error) -> CommandError {
    let what = what.into();
    move |error| CommandError::new(Exit::Environment, anyhow::Error::new(error).context(what))
}

impl From<io::Error> for CommandError {
    fn from(error: io::Error) -> Self {
        Self::new(Exit::Environment, error)
    }
}

impl From<quipu_record::Error> for CommandError {
    fn from(error: quipu_record::Error) -> Self {
        use quipu_record::Error as E;
        let (exit, hint) = match &error {
            E::Locked(_) => (
                Exit::Environment,
                Some("close it there first; reading is always possible"),
            ),
            E::NotAFile(_) => (
                Exit::Environment,
                Some("a transcript is a regular file, not a link or a device"),
            ),
            E::NotDense { .. } | E::Tail { .. } => (
                Exit::Data,
                Some("record to a new run id, or look at it with `quipu verify`"),
            ),
            E::BeyondLimits { .. } => (
                Exit::Data,
                Some(
                    "it was recorded with larger limits; continue it with those, or record to a new run id",
                ),
            ),
            E::OtherRun { .. }
            | E::OtherParent { .. }
            | E::TooLarge { .. }
            | E::NotATranscript(_) => (Exit::Data, None),
            _ => (Exit::Environment, None),
        };
        let error = Self::new(exit, error);
        match hint {
            Some(hint) => error.hint(hint),
            None => error,
        }
    }
}

impl From<quipu_store::import::ImportError> for CommandError {
    fn from(error: quipu_store::import::ImportError) -> Self {
        use quipu_store::import::ImportError as E;
        let hint = match &error {
            E::Busy(_) => Some("wait for it, or end it; reading is always possible"),
            _ => None,
        };
        let error = Self::new(Exit::Environment, error);
        match hint {
            Some(hint) => error.hint(hint),
            None => error,
        }
    }
}

impl From<quipu_store::catalogue::CatalogueError> for CommandError {
    fn from(error: quipu_store::catalogue::CatalogueError) -> Self {
        Self::new(Exit::Environment, error)
    }
}

impl From<quipu_store::archive::ArchiveError> for CommandError {
    fn from(error: quipu_store::archive::ArchiveError) -> Self {
        Self::new(Exit::Environment, error)
    }
}

impl From<quipu_store::facade::ListError> for CommandError {
    fn from(error: quipu_store::facade::ListError) -> Self {
        use quipu_store::facade::ListError as E;
        match error {
            E::Catalogue(error) => error.into(),
            E::Annotations(error) => error.into(),
        }
    }
}

impl From<quipu_store::annotations::AnnotationError> for CommandError {
    fn from(error: quipu_store::annotations::AnnotationError) -> Self {
        use quipu_store::annotations::AnnotationError as E;
        let exit = match &error {
            E::Io { .. } | E::Full(_) => Exit::Environment,
            E::NoLabel { .. } | E::NoNote { .. } | E::TooMany => Exit::Data,
            E::Label | E::Note | E::Name | E::Transcript | E::Seq => Exit::Usage,
        };
        Self::new(exit, error)
    }
}
