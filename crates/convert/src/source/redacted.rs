//! A session without what a profile removes.
//!
//! It is a source like the one it is made of, so whatever can be written can be written without it. What was removed
//! is known only at the end and said at the beginning of a transcript, so the session is redacted twice: once when
//! its header is asked for, and once when its events are. Both give the same. Before that, where names are removed, it
//! is read once to learn them: what is said at the end is a name at the beginning as well.

use std::io::{self, Write};
use std::path::Path;
use std::sync::Arc;

use quipu_formats::normalized::{self, Beyond, Submitter};
use quipu_model::{Attachment, Event, Header};
use quipu_redact::profile::Environment;
use quipu_redact::session::{Decisions, Learned, Outcome, Redactor, Review};
use quipu_redact::{Engine, Key, Profile};

use super::{Account, Receiver, Source, SourceError};

/// What is removed, and by whom.
#[derive(Debug, Clone)]
pub struct Removal {
    /// The rules.
    pub engine: Arc<Engine>,
    /// What is removed for whom.
    pub profile: Profile,
    /// The key of whoever shares it: pseudonyms and proofs are made with it.
    pub key: Key,
    /// What a person decided.
    pub decisions: Decisions,
    /// Who shares it.
    pub submitter: Option<Submitter>,
}

/// A session without what a profile removes.
pub struct Redacted {
    inner: Box<dyn Source>,
    removal: Removal,
    learned: Option<Learned>,
    outcome: Option<Outcome>,
}

impl std::fmt::Debug for Redacted {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Redacted").finish_non_exhaustive()
    }
}

impl Redacted {
    /// A session, to be given without what is removed.
    pub fn new(inner: Box<dyn Source>, removal: Removal) -> Self {
        Self {
            inner,
            removal,
            learned: None,
            outcome: None,
        }
    }

    /// What was removed. After [`Source::header`].
    pub fn outcome(&self) -> Option<&Outcome> {
        self.outcome.as_ref()
    }

    /// What was decided from now on. Names that were to be replaced still are.
    pub fn decide(&mut self, decisions: Decisions) {
        let Decisions {
            keep,
            remove,
            names,
        } = decisions;
        let decided = &mut self.removal.decisions;
        (decided.keep, decided.remove) = (keep, remove);
        decided.names.extend(names);
        self.outcome = None;
    }

    /// Tells what would be removed, one by one.
    ///
    /// # Errors
    ///
    /// The session cannot be read.
    pub fn review(&mut self, each: Box<Review<'_>>) -> Result<Outcome, SourceError> {
        self.pass(Some(each), &mut Nobody).map(|it| it.0)
    }

    /// Learns the names that the session tells along the way, once.
    fn learn(&mut self, header: &Header) -> Result<(), SourceError> {
        if self.learned.is_some() {
            return Ok(());
        }
        let mut learning = Learning {
            header,
            learned: Learned::default(),
        };
        if self.removal.profile.environment != Environment::Keep {
            learning.learned.header(header);
            self.inner.read(&mut learning)?;
        }
        self.learned = Some(learning.learned);
        Ok(())
    }

    fn pass<'p>(
        &'p mut self,
        review: Option<Box<Review<'p>>>,
        to: &mut dyn Receiver,
    ) -> Result<(Outcome, Account), SourceError> {
        let header = self.inner.header()?;
        self.learn(&header)?;
        let captured_at = self.inner.captured_at();
        let of_log = || normalized::NormalizedOptions {
            captured_at,
            ..normalized::NormalizedOptions::default()
        };
        let mut options = self.inner.document().cloned().unwrap_or_else(of_log);
        options.submitter = self.removal.submitter.clone().or(options.submitter);
        let Removal {
            engine,
            profile,
            key,
            decisions,
            ..
        } = &self.removal;
        let nothing = Learned::default();
        let learned = self.learned.as_ref().unwrap_or(&nothing);
        let mut redactor =
            Redactor::new(engine, profile, key, decisions, &header, &options, learned);
        if let Some(review) = review {
            redactor = redactor.with_review(review);
        }
        let mut receiver = Redacting {
            redactor,
            keep_files: profile.file_contents,
            to,
        };
        let account = self.inner.read(&mut receiver)?;
        let Redacting { redactor, to, .. } = receiver;
        let outcome = redactor
            .finish(&mut |event, more| give(to, event, more))
            .map_err(SourceError::Refused)?;
        Ok((outcome, account))
    }
}

impl Source for Redacted {
    fn format(&self) -> &'static str {
        self.inner.format()
    }

    fn path(&self) -> &Path {
        self.inner.path()
    }

    fn is_redacted(&self) -> bool {
        true
    }

    /// Its bytes are not redacted, so they are not given.
    fn copy(&self, _to: &mut dyn Write) -> Result<(), SourceError> {
        Err(SourceError::Refused(io::Error::new(
            io::ErrorKind::Unsupported,
            "a log as it is cannot be without what is removed; `quipu redact` does that",
        )))
    }

    fn header(&mut self) -> Result<Header, SourceError> {
        if let Some(outcome) = &self.outcome {
            return Ok(outcome.header.clone());
        }
        let (outcome, _) = self.pass(None, &mut Nobody)?;
        let header = outcome.header.clone();
        self.outcome = Some(outcome);
        Ok(header)
    }

    fn document(&self) -> Option<&normalized::NormalizedOptions> {
        self.outcome.as_ref().map(|outcome| &outcome.options)
    }

    fn read(&mut self, to: &mut dyn Receiver) -> Result<Account, SourceError> {
        self.pass(None, to).map(|it| it.1)
    }
}

/// Redacts what passes through.
struct Redacting<'r, 'e> {
    redactor: Redactor<'e>,
    keep_files: bool,
    to: &'r mut dyn Receiver,
}

impl Receiver for Redacting<'_, '_> {
    fn blob(&mut self, attachment: &Attachment, bytes: &[u8]) -> io::Result<()> {
        // Nobody looks into pictures: they go with the files.
        if self.keep_files {
            return self.to.blob(attachment, bytes);
        }
        Ok(())
    }

    fn event(&mut self, event: Event) -> io::Result<()> {
        self.event_and_more(event, Beyond::default())
    }

    fn event_and_more(&mut self, event: Event, more: Beyond) -> io::Result<()> {
        let to = &mut *self.to;
        self.redactor
            .event(event, more, &mut |event, more| give(to, event, more))
    }
}

fn give(to: &mut dyn Receiver, event: Event, more: Beyond) -> io::Result<()> {
    if more.is_empty() {
        to.event(event)
    } else {
        to.event_and_more(event, more)
    }
}

/// Learns names from what passes by.
struct Learning<'h> {
    header: &'h Header,
    learned: Learned,
}

impl Receiver for Learning<'_> {
    fn blob(&mut self, _attachment: &Attachment, _bytes: &[u8]) -> io::Result<()> {
        Ok(())
    }

    fn event(&mut self, event: Event) -> io::Result<()> {
        self.event_and_more(event, Beyond::default())
    }

    fn event_and_more(&mut self, event: Event, more: Beyond) -> io::Result<()> {
        self.learned.event(self.header, &event, &more);
        Ok(())
    }
}

/// Takes everything and does nothing.
struct Nobody;

impl Receiver for Nobody {
    fn blob(&mut self, _attachment: &Attachment, _bytes: &[u8]) -> io::Result<()> {
        Ok(())
    }

    fn event(&mut self, _event: Event) -> io::Result<()> {
        Ok(())
    }
}
