//! What a person is shown before they share is what then goes.

use std::path::Path;
use std::sync::Arc;

use quipu_redact::session::Decisions;
use quipu_redact::{Certainty, Engine, Key, Profile, RuleSet};

use super::{READING, tell};
use crate::open;
use crate::source::{Redacted, Removal, Source as _};

#[test]
fn the_review_shows_as_much_as_is_removed() {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut paths = Vec::new();
    for below in ["fixtures", "../agents/fixtures", "../../../shared/fixtures"] {
        let below = here.join(below);
        if below.is_dir() {
            super::documents::files(&below, &mut paths);
        } else {
            tell(format_args!(
                "SKIPPED: found no logs at {}",
                below.display()
            ));
        }
    }
    // Each log by one profile, so that all profiles meet all kinds of logs.
    let profiles = Profile::NAMES
        .iter()
        .filter_map(|name| Profile::builtin(name));
    let removals: Vec<Removal> = profiles.map(removal).collect();
    let (mut sessions, mut shown) = (0_u64, 0);
    for (index, path) in paths.iter().enumerate() {
        let removal = &removals[index % removals.len()];
        for source in open(path, &READING).unwrap_or_default() {
            let mut source = Redacted::new(source, removal.clone());
            let mut count = 0;
            let each = Box::new(|finding: &quipu_redact::session::Finding<'_>| {
                count += u64::from(finding.certainty == Certainty::Sure);
            });
            let Ok(reviewed) = source.review(each) else {
                continue;
            };
            source.header().unwrap();
            let removed = source.outcome().unwrap().redactions;
            let before = already(&mut open(path, &READING).unwrap().remove(0));
            let name = format!("{} by {}", path.display(), removal.profile.name);
            assert_eq!(
                (count + before, reviewed.redactions),
                (removed, removed),
                "{name}"
            );
            sessions += 1;
            shown += count;
        }
    }
    tell(format_args!(
        "{shown} redactions of {sessions} sessions were shown"
    ));
    assert!(shown > 0);
}

fn removal(profile: Profile) -> Removal {
    let engine = Engine::new(&RuleSet::builtin(), |rule| profile.wants(rule)).unwrap();
    Removal {
        engine: Arc::new(engine),
        profile,
        key: Key::from_bytes([7; 32]),
        decisions: Decisions::default(),
        submitter: None,
    }
}

/// What had been removed before.
fn already(source: &mut Box<dyn crate::Source>) -> u64 {
    struct Counts(u64);
    impl crate::source::Receiver for Counts {
        fn blob(&mut self, _: &quipu_model::Attachment, _: &[u8]) -> std::io::Result<()> {
            Ok(())
        }
        fn event(&mut self, _: quipu_model::Event) -> std::io::Result<()> {
            Ok(())
        }
        fn event_and_more(
            &mut self,
            _: quipu_model::Event,
            more: quipu_formats::normalized::Beyond,
        ) -> std::io::Result<()> {
            self.0 += more.redactions.len() as u64;
            Ok(())
        }
    }
    let mut counts = Counts(0);
    source.header().unwrap();
    source.read(&mut counts).unwrap();
    let privacy = source
        .document()
        .and_then(|document| document.privacy.as_ref());
    let of_sections = privacy.and_then(|privacy| privacy.redactions.as_ref());
    counts.0 + of_sections.map_or(0, |list| list.len() as u64)
}
