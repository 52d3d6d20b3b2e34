//! Goldens, and what holds for any session.

use proptest::prelude::*;
use quipu_model::{Event, Header};

use super::{TextOptions, writer};
use crate::html::tests::{fixture, golden};
use crate::loss::Loss;
use crate::projection::Nowhere;

fn written(header: &Header, events: &[Event], options: &TextOptions) -> (String, Loss) {
    let mut out = Vec::new();
    let mut writer = writer(header, options, Box::new(&mut out), Box::new(Nowhere)).unwrap();
    for event in events {
        writer.event(event).unwrap();
    }
    let loss = writer.finish().unwrap();
    (String::from_utf8(out).unwrap(), loss)
}

#[test]
fn a_session_is_the_same_as_ever() {
    let (header, events) = fixture::session();
    let (text, loss) = written(&header, &events, &TextOptions::default());
    golden::check("src/text/golden/session.txt", text.as_bytes());
    assert_eq!((loss.carried, loss.events), (47, 47));
    let lost: Vec<_> = loss.dropped.keys().map(AsRef::as_ref).collect();
    assert_eq!(lost, ["attachment bytes", "model_call"]);
    assert!(!text.contains('\u{1b}'));
}

#[test]
fn what_is_not_wanted_is_counted() {
    let (header, events) = fixture::session();
    let options = TextOptions {
        reasoning: false,
        notes: false,
        tools: false,
    };
    let (text, loss) = written(&header, &events, &options);
    assert_eq!(loss.dropped["tool.call"].count, 15);
    assert_eq!(loss.dropped["note:compaction"].count, 1);
    assert!(!text.contains("npm run e2e"));
    let left_out: u64 = loss
        .dropped
        .iter()
        .filter(|(name, _)| {
            name.contains("note:") || name.contains("tool.") || name.contains("message.")
        })
        .map(|(_, tally)| tally.count)
        .sum();
    assert_eq!(loss.carried + left_out, loss.events);
}

proptest! {
    #[test]
    fn any_session_is_written_and_nothing_acts_on_a_screen((header, events) in crate::arbitrary::session()) {
        let (text, loss) = written(&header, &events, &TextOptions::default());
        prop_assert_eq!(loss.events, events.len() as u64);
        prop_assert_eq!(loss.carried, loss.events);
        prop_assert!(!text.chars().any(|c| c.is_control() && !matches!(c, '\n' | '\t')));
        for event in &events {
            let line = format!("\n[{}] ", event.seq);
            prop_assert!(text.contains(&line));
        }
        prop_assert_eq!(written(&header, &events, &TextOptions::default()).0, text);
    }
}
