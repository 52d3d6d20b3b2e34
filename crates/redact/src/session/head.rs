//! What is said of a session as a whole.

use std::io;

use quipu_formats::normalized::{Privacy, Section};
use quipu_model::Header;

use super::content::{Shaper, named};
use super::names::stands_for;
use super::numbers::{round_money, round_usage};
use super::old::Old;
use super::review::NameOf;
use super::{Outcome, Redactor, receipts, times};
use crate::profile::{Environment, Pseudonyms};
use crate::rule::Kind;
use crate::{Context, RuleSet, receipt};

impl Redactor<'_> {
    /// Redacts the header and what the document says beside it.
    pub(super) fn redact_header(&mut self) {
        self.mask.seq = 0;
        let before = self
            .options
            .privacy
            .as_mut()
            .and_then(|privacy| privacy.redactions.take());
        self.mask.old = Old::new(before.unwrap_or_default());
        self.origin();
        self.environment();
        self.title();
        self.extra();
        self.of_header = receipts(&mut self.mask);
        self.shown = std::mem::take(&mut self.mask.pending);
        self.ids();
        if let Some(shift) = self.shift {
            let moved = |at: Option<quipu_model::Timestamp>| at.map(|at| times::moved(at, shift));
            self.header.started_at = moved(self.header.started_at);
            self.header.ended_at = moved(self.header.ended_at);
            self.options.captured_at = moved(self.options.captured_at);
        }
    }

    /// Replaces ids, and what is made of them.
    fn ids(&mut self) {
        let Some(key) = &self.mask.traces.ids.0 else {
            return;
        };
        self.mask.traces.ids.header(&mut self.header);
        // It is made from the run's id, so that the same run has the same.
        self.options.transcript_id = None;
        let submitter = self.options.submitter.as_mut();
        if let Some(submitter) = submitter.filter(|it| it.key_id.is_none())
            && let Some(pseudonym) = &mut submitter.pseudonym
            && self.profile.pseudonyms == Pseudonyms::Transcript
        {
            *pseudonym = key.pseudonym("anon", pseudonym);
        }
    }

    fn origin(&mut self) {
        let Some(origin) = &mut self.header.origin else {
            return;
        };
        let Some(path) = &mut origin.path else { return };
        let field = "source.path";
        if self.profile.environment == Environment::Keep {
            self.mask
                .text(&|| field.to_owned(), path, Context::default());
            return;
        }
        let label = "[REDACTED:path]".to_owned();
        let kind = Kind::Path.as_str();
        self.mask
            .whole(field, path, "environment-path", kind, label);
    }

    fn environment(&mut self) {
        let how = self.profile.environment;
        let at = &mut self.header.environment;
        let mut commit_of = |field: &str, text: &mut Option<String>, of: NameOf| {
            if let Some(text) = text
                && let Some(stands) = stands_for(of, text, how, &self.mask.naming)
            {
                self.mask
                    .whole(field, text, of.rule(), Kind::Identity.as_str(), stands);
            } else {
                self.mask.optional(field, text);
            }
        };
        commit_of("session.environment.cwd", &mut at.cwd, NameOf::Directory);
        commit_of(
            "session.environment.repo.remote",
            &mut at.repository,
            NameOf::Repository,
        );
        commit_of(
            "session.environment.repo.branch",
            &mut at.git_branch,
            NameOf::Branch,
        );
        if let Some(commit) = &mut at.commit
            && how != Environment::Keep
        {
            let label = match how {
                Environment::Drop => "[REDACTED:commit]".to_owned(),
                _ => self.mask.traces.digest(commit),
            };
            let field = "session.environment.repo.commit";
            self.mask.whole(
                field,
                commit,
                "environment-commit",
                Kind::Identity.as_str(),
                label,
            );
        } else {
            self.mask
                .optional("session.environment.repo.commit", &mut at.commit);
        }
        self.mask.optional("session.environment.os", &mut at.os);
        self.mask
            .optional("session.environment.shell", &mut at.shell);
    }

    fn title(&mut self) {
        let Some(title) = &mut self.header.title else {
            return;
        };
        let mut shaper = Shaper {
            mask: &mut self.mask,
            profile: self.profile,
            files: &mut self.files,
            is_exposed: false,
        };
        let part = self.profile.text.clone();
        shaper.text("session.title", title, &part, "text", &[]);
    }

    /// Fields that are not known here.
    fn extra(&mut self) {
        let mut extra = std::mem::take(&mut self.options.extra);
        let mut shaper = Shaper {
            mask: &mut self.mask,
            profile: self.profile,
            files: &mut self.files,
            is_exposed: false,
        };
        for field in &mut extra {
            let path = named(section(field.section), &field.key);
            let is_place = matches!(field.section, Section::Environment | Section::Repo);
            if is_place && self.profile.environment != Environment::Keep {
                let label = "[REDACTED:environment]".to_owned();
                shaper.mask.whole_json(
                    &path,
                    &mut field.value,
                    "environment",
                    Kind::Identity.as_str(),
                    label,
                );
            } else {
                shaper.unknown(&path, &mut field.value);
            }
        }
        self.options.extra = extra;
    }

    /// What became of the session, when all of its events were there.
    pub(super) fn outcome(mut self) -> io::Result<Outcome> {
        for redaction in std::mem::take(&mut self.of_header) {
            self.count(&redaction.rule_id.clone());
            self.of_header.push(redaction);
        }
        let header = self.header_at_end();
        let matched: Vec<(String, u64)> = std::mem::take(&mut self.matched).into_iter().collect();
        let mut options = self.options.clone();
        options.privacy = Some(self.privacy(&matched));
        let leaves = std::mem::take(&mut self.leaves);
        let commitment = receipt::sections(leaves, &header, &options)?;
        if let Some(privacy) = &mut options.privacy {
            privacy.commitment = Some(commitment);
        }
        Ok(Outcome {
            header,
            options,
            matched,
            redactions: self.redactions,
            near: self.mask.near,
            cut: self.cut,
        })
    }

    /// The header. What it says its events come to is what they come to where some are missing.
    fn header_at_end(&mut self) -> Header {
        let mut header = self.header.clone();
        if self.cut.events > 0 {
            let counted = &self.counted;
            header.totals = counted.totals.clone();
            header.children.clone_from(&counted.children);
            (header.started_at, header.ended_at) = (counted.started_at, counted.ended_at);
        } else if self.mask.rounds {
            let (usage, cost) = &self.exact;
            let (totals, counted) = (&mut header.totals, &self.counted.totals);
            // What the events come to is what they come to now; what was said beside them is rounded as well.
            if totals.usage == *usage {
                totals.usage = counted.usage;
            } else {
                round_usage(&mut totals.usage);
            }
            totals.cost = if totals.cost == *cost {
                counted.cost
            } else {
                totals.cost.map(round_money)
            };
        }
        header
    }

    fn privacy(&mut self, matched: &[(String, u64)]) -> Privacy {
        let profile = self.profile;
        let was = self.options.privacy.take().unwrap_or_default();
        let is_changed = !profile.changes_nothing();
        let names = [Kind::Path, Kind::Identity]
            .iter()
            .any(|kind| profile.kinds.contains(kind));
        // Which rules were there to be applied is what the digest says.
        let mut applied: Vec<String> = matched.iter().map(|(rule, _)| rule.clone()).collect();
        let before = was.rules_applied.unwrap_or_default().into_iter();
        applied.extend(before.filter(|rule| !matched.iter().any(|(new, _)| new == rule)));
        applied.sort();
        Privacy {
            profile: Some(profile.name.clone()),
            redaction_applied: Some(is_changed || was.redaction_applied == Some(true)),
            anonymization_applied: Some(
                profile.environment != Environment::Keep
                    || names
                    || was.anonymization_applied == Some(true),
            ),
            rules_applied: Some(applied),
            redaction_count: Some(self.redactions),
            content_policy: Some(profile.policy()),
            rules_digest: Some(self.digest()),
            rules_matched: Some(matched.to_vec()),
            time_shift: Some(self.shift.is_some() || was.time_shift == Some(true)),
            ids_replaced: self
                .mask
                .traces
                .ids
                .0
                .as_ref()
                .map(|_| true)
                .or(was.ids_replaced),
            numbers_rounded: self.mask.rounds.then_some(true).or(was.numbers_rounded),
            redactions: Some(std::mem::take(&mut self.of_header)),
            commitment: None,
        }
    }

    fn rules(&self) -> impl Iterator<Item = &crate::Rule> {
        let rules = self.mask.engine.rules().rules.iter();
        rules
            .zip(&self.mask.wanted)
            .filter(|(_, wanted)| **wanted)
            .map(|(rule, _)| rule)
    }

    /// Which version of the rules it was.
    fn digest(&self) -> String {
        let rules = RuleSet {
            rules: self.rules().cloned().collect(),
            allow: self.mask.engine.rules().allow.clone(),
        };
        format!("sha256:{}", rules.digest())
    }
}

/// Where a section's fields are in a document.
fn section(section: Section) -> &'static str {
    match section {
        Section::Document => "",
        Section::Source => "source",
        Section::Session => "session",
        Section::Environment => "session.environment",
        Section::Repo => "session.environment.repo",
        Section::Metrics => "metrics",
        Section::Tokens => "metrics.tokens",
        Section::Submitter => "submitter",
        Section::Privacy => "privacy",
        Section::ContentPolicy => "privacy.contentPolicy",
    }
}
