//! The suite that every server has to pass. It knows a server by its address, and nothing of what is behind it.

mod checks;
mod kept;
mod talk;

use std::fmt;

use crate::keys::SecretKey;

/// What a server is tried with.
#[derive(Debug, Clone)]
pub struct Subjects {
    /// A key that the server knows, with the scope `submit` alone.
    pub key: SecretKey,
    /// Another of the same kind.
    pub other: SecretKey,
    /// One that was revoked.
    pub revoked: SecretKey,
    /// One with the scope `read` alone.
    pub reader: SecretKey,
    /// One with the scope `admin`.
    pub admin: SecretKey,
    /// A text that the server must not let pass.
    pub leak: Leaky,
}

/// A text in which there is a secret.
#[derive(Clone)]
pub struct Leaky {
    /// The text.
    pub text: String,
    /// What of it must not be repeated.
    pub secret: String,
    /// The rule that finds it.
    pub rule: String,
}

impl fmt::Debug for Leaky {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Leaky")
            .field("rule", &self.rule)
            .finish_non_exhaustive()
    }
}

/// What a server did otherwise than it should.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// What was tried.
    pub check: &'static str,
    /// What happened.
    pub why: String,
}

/// What became of the checks.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Report {
    /// Those that went as they should.
    pub passed: Vec<&'static str>,
    /// Those that did not.
    pub failed: Vec<Failure>,
    /// Those that could not be tried: what cuts a connection speaks without TLS only.
    pub skipped: Vec<&'static str>,
}

/// Tries whether a server does what `docs/submission.md` says. Transcripts with new ids are left there.
pub fn conformance(address: &str, subjects: &Subjects) -> Report {
    let mut report = Report::default();
    let talk = talk::Talk::new(address, subjects);
    for (check, run) in checks::ALL.iter().chain(kept::ALL) {
        match run(&talk) {
            Ok(checks::Done::Passed) => report.passed.push(check),
            Ok(checks::Done::Skipped) => report.skipped.push(check),
            Err(why) => report.failed.push(Failure {
                check,
                why: talk.hide(&why),
            }),
        }
    }
    report
}
