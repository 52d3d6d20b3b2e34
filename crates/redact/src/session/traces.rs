//! What gives back in a text what a profile removes elsewhere: times, and digests that can be looked up.

use std::ops::Range;

use super::clock::{Clock, Tells, find_ids};
use super::digests::Digests;
use super::ids::Ids;
use super::mask::Cut;
use crate::Key;
use crate::profile::Environment;
use crate::rule::Kind;

/// Finds times and digests in texts, and says what stands for them.
#[derive(Debug, Default)]
pub(super) struct Traces {
    pub(super) clock: Option<Clock>,
    pub(super) ids: Ids,
    /// Ids of the session itself, which texts may name.
    pub(super) own: Vec<String>,
    /// The digests of the session, what stands for them, and by which key.
    pub(super) digests: Option<(Digests, Environment, Key)>,
}

impl Traces {
    /// Whether nothing is looked for.
    pub(super) fn is_idle(&self) -> bool {
        self.clock.is_none() && self.digests.is_none() && self.ids.0.is_none()
    }

    /// What is to be taken out of a text.
    pub(super) fn find(&self, text: &str) -> Vec<Cut> {
        let mut cuts = Vec::new();
        let cut = |span, rule: &str, placeholder| Cut {
            span,
            rule: rule.to_owned(),
            kind: Kind::Identity.as_str(),
            placeholder,
        };
        for own in &self.own {
            for (at, _) in text.match_indices(own.as_str()) {
                if let Some(stands) = self.ids.of(own) {
                    cuts.push(cut(at..at + own.len(), "id", stands));
                }
            }
        }
        if text.len() < 7 || !text.bytes().any(|byte| byte.is_ascii_digit()) {
            return cuts;
        }
        if self.ids.0.is_some() {
            let mut found = Vec::new();
            find_ids(text, &mut found);
            for span in found {
                if let Some(stands) = self.ids.of(whole_id(text, &span)) {
                    cuts.push(cut(prefixed(text, &span), "id", stands));
                }
            }
        }
        if let Some(clock) = self.clock {
            let mut found = Vec::new();
            clock.find(text, &mut found);
            for (span, tells) in found {
                let time = || "[REDACTED:time]".to_owned();
                let stands = match tells {
                    Tells::Time => time(),
                    Tells::Id => self.ids.of(&text[span.clone()]).unwrap_or_else(time),
                };
                cuts.push(cut(span, "time", stands));
            }
        }
        if let Some((digests, ..)) = &self.digests {
            let mut found = Vec::new();
            digests.find(text, &mut found);
            for span in found {
                let stands = self.digest(&text[span.clone()]);
                cuts.push(cut(span, "environment-hash", stands));
            }
        }
        cuts
    }

    /// What stands for a digest: the same for all that is written of it.
    pub(super) fn digest(&self, word: &str) -> String {
        match &self.digests {
            Some((digests, Environment::Pseudonym, key)) => {
                key.pseudonym("hash", &digests.whole(word).to_ascii_lowercase())
            }
            _ => "[REDACTED:hash]".to_owned(),
        }
    }
}

/// Where an id is together with the prefix that it is written with: `toolu_…` is known by all of it.
fn prefixed(text: &str, span: &Range<usize>) -> Range<usize> {
    let before = &text.as_bytes()[..span.start];
    let Some((b'_' | b'-', before)) = before.split_last() else {
        return span.clone();
    };
    let letters = before
        .iter()
        .rev()
        .take_while(|byte| byte.is_ascii_lowercase())
        .count();
    let is_uuid = span.len() == 36;
    if is_uuid || letters == 0 {
        return span.clone();
    }
    span.start - 1 - letters..span.end
}

fn whole_id<'t>(text: &'t str, span: &Range<usize>) -> &'t str {
    &text[prefixed(text, span)]
}
