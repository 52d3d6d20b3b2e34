//! What people write is kept, whatever happens around it.

use std::collections::BTreeSet;
use std::fs;
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;

use proptest::prelude::*;

use super::*;
use crate::catalogue::Order;
use crate::facade::Listing;
use crate::import::tests::kit::*;

const A: &str = "0a1b2c3d-0123456789abcdef";
const B: &str = "0a1b2c3d-fedcba9876543210";

fn who(by: &str) -> Who<'_> {
    Who {
        by,
        now: "2026-11-15T12:00:00Z".parse().unwrap(),
    }
}

fn on(transcript: &str, seq: Option<u64>) -> Target<'_> {
    Target { transcript, seq }
}

fn home() -> (tempfile::TempDir, Annotations) {
    let home = tempfile::tempdir().unwrap();
    let annotations = Annotations::of_home(home.path());
    (home, annotations)
}

fn journal(home: &tempfile::TempDir) -> std::path::PathBuf {
    home.path().join("annotations.jsonl")
}

fn labels(annotations: &Annotations, transcript: &str) -> Vec<(Option<u64>, String)> {
    let all = annotations.list(transcript).unwrap().labels;
    all.into_iter().map(|it| (it.seq, it.label)).collect()
}

#[test]
fn labels_are_put_counted_and_taken_away() {
    let (home, annotations) = home();
    assert_eq!(annotations.labels().unwrap(), []);
    assert!(!journal(&home).exists(), "looking makes no file");
    let first = annotations
        .add_label(on(A, None), "good", who("ada"))
        .unwrap();
    let again = annotations
        .add_label(on(A, None), "good", who("bob"))
        .unwrap();
    assert_eq!(first, again, "it was there already");
    annotations
        .add_label(on(A, Some(7)), "good", who("ada"))
        .unwrap();
    annotations
        .add_label(on(B, Some(1)), "bad", who("ada"))
        .unwrap();
    assert_eq!(
        labels(&annotations, A),
        [(None, "good".to_owned()), (Some(7), "good".to_owned())]
    );
    let counts = annotations.labels().unwrap();
    let counts: Vec<_> = counts
        .iter()
        .map(|it| (it.label.as_str(), it.transcripts, it.events))
        .collect();
    assert_eq!(counts, [("bad", 1, 1), ("good", 1, 1)]);
    assert_eq!(
        annotations.labelled("bad").unwrap(),
        BTreeSet::from([B.to_owned()])
    );
    annotations
        .remove_label(on(A, None), "good", who("bob"))
        .unwrap();
    let gone = annotations.remove_label(on(A, None), "good", who("bob"));
    assert!(matches!(gone, Err(AnnotationError::NoLabel { .. })));
    assert_eq!(labels(&annotations, A), [(Some(7), "good".to_owned())]);
    // Another process reads the same.
    let other = Annotations::of_home(home.path());
    assert_eq!(other.list(A).unwrap(), annotations.list(A).unwrap());
    let mode = fs::metadata(journal(&home)).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
}

#[test]
fn notes_are_written_changed_and_deleted() {
    let (home, annotations) = home();
    let late = annotations
        .add_note(on(A, Some(9)), "why?\nsee \u{202e}x", who("ada"))
        .unwrap();
    let whole = annotations
        .add_note(on(A, None), "all in all", who("bob"))
        .unwrap();
    assert_ne!(late.id, whole.id);
    let notes = annotations.list(A).unwrap().notes;
    assert_eq!(
        notes,
        [whole.clone(), late.clone()],
        "of the transcript first"
    );
    let edited = annotations
        .edit_note(A, &late.id, "because", who("eve"))
        .unwrap();
    assert_eq!(
        (edited.text.as_str(), edited.by.as_str()),
        ("because", "ada")
    );
    assert_eq!(edited.edited_by.as_deref(), Some("eve"));
    assert_eq!(edited.seq, Some(9));
    let elsewhere = annotations.edit_note(B, &late.id, "x", who("eve"));
    assert!(matches!(elsewhere, Err(AnnotationError::NoNote { .. })));
    annotations.delete_note(A, &whole.id, who("eve")).unwrap();
    assert_eq!(annotations.list(A).unwrap().notes, [edited]);
    // Nothing of the journal was changed: four lines, one for each thing that was done.
    let lines = fs::read_to_string(journal(&home)).unwrap();
    assert_eq!(lines.lines().count(), 4);
    assert!(lines.contains("all in all"));
}

#[test]
fn what_is_not_a_label_a_note_or_a_transcript_is_refused() {
    let (home, annotations) = home();
    let long = "x".repeat(LONGEST_LABEL + 1);
    for label in ["", "-x", "a b", "a\nb", "ä", "a\u{1b}[31m", "<b>", &long] {
        let refused = annotations.add_label(on(A, None), label, who("ada"));
        assert!(matches!(refused, Err(AnnotationError::Label)), "{label:?}");
    }
    let long = "x".repeat(LONGEST_NOTE + 1);
    for text in ["", " \n", "a\0b", "\u{1b}[31m", &long] {
        let refused = annotations.add_note(on(A, None), text, who("ada"));
        assert!(matches!(refused, Err(AnnotationError::Note)));
    }
    for transcript in ["", "../etc", "a b", &"a".repeat(65)] {
        let refused = annotations.add_label(on(transcript, None), "x", who("ada"));
        assert!(
            matches!(refused, Err(AnnotationError::Transcript)),
            "{transcript:?}"
        );
    }
    let zero = annotations.add_label(on(A, Some(0)), "x", who("ada"));
    assert!(matches!(zero, Err(AnnotationError::Seq)));
    let nobody = annotations.add_label(on(A, None), "x", who("a\nb"));
    assert!(matches!(nobody, Err(AnnotationError::Name)));
    assert!(!journal(&home).exists());
}

#[test]
fn a_torn_line_is_passed_over_and_never_destroyed() {
    let (home, annotations) = home();
    annotations
        .add_label(on(A, None), "one", who("ada"))
        .unwrap();
    let torn = br#"{"v":1,"id":"x","by":"#;
    let mut file = fs::OpenOptions::new()
        .append(true)
        .open(journal(&home))
        .unwrap();
    file.write_all(torn).unwrap();
    assert_eq!(labels(&annotations, A).len(), 1);
    assert_eq!(
        annotations.unread_lines().unwrap(),
        0,
        "it may still be written"
    );
    annotations
        .add_label(on(A, None), "two", who("ada"))
        .unwrap();
    assert_eq!(labels(&annotations, A).len(), 2);
    assert_eq!(annotations.unread_lines().unwrap(), 1);
    let bytes = fs::read(journal(&home)).unwrap();
    assert!(bytes.windows(torn.len()).any(|it| it == torn));
    // Lines of a later version, of other programs, and far too long ones stay as well.
    file.write_all(b"{\"v\":2}\n\xff\xff\n").unwrap();
    file.write_all(&vec![b'x'; 300_000]).unwrap();
    file.write_all(b"\n").unwrap();
    annotations
        .add_label(on(A, None), "three", who("ada"))
        .unwrap();
    let fresh = Annotations::of_home(home.path());
    for it in [&annotations, &fresh] {
        assert_eq!((labels(it, A).len(), it.unread_lines().unwrap()), (3, 4));
    }
}

#[test]
fn what_others_write_is_seen_and_a_file_that_was_replaced_is_read_anew() {
    let (home, annotations) = home();
    let other = Annotations::of_home(home.path());
    annotations
        .add_label(on(A, None), "one", who("ada"))
        .unwrap();
    other.add_label(on(A, None), "two", who("bob")).unwrap();
    assert_eq!(labels(&annotations, A).len(), 2);
    assert_eq!(labels(&other, A).len(), 2);
    let removed = other.forget(&BTreeSet::from([A.to_owned()])).unwrap();
    assert_eq!(removed, 2);
    assert_eq!(labels(&annotations, A), []);
    annotations
        .add_label(on(B, None), "three", who("ada"))
        .unwrap();
    assert_eq!(labels(&other, B).len(), 1);
    fs::remove_file(journal(&home)).unwrap();
    assert_eq!(labels(&other, B), []);
}

#[test]
fn many_who_write_at_once_lose_nothing() {
    let (home, _) = home();
    std::thread::scope(|scope| {
        for writer in 0..4 {
            let path = home.path();
            scope.spawn(move || {
                // Each as a process of its own would.
                let annotations = Annotations::of_home(path);
                for n in 0..10 {
                    let text = format!("{writer} {n}");
                    annotations
                        .add_note(on(A, Some(n + 1)), &text, who("ada"))
                        .unwrap();
                }
            });
        }
    });
    let notes = Annotations::of_home(home.path()).list(A).unwrap().notes;
    let texts: BTreeSet<String> = notes.iter().map(|note| note.text.clone()).collect();
    let ids: BTreeSet<&String> = notes.iter().map(|note| &note.id).collect();
    assert_eq!((texts.len(), ids.len()), (40, 40));
}

#[test]
fn a_transcript_has_room_for_so_many_and_no_more() {
    let (home, annotations) = home();
    let line = |n: usize| {
        format!(
            r#"{{"v":1,"id":"{n}","at":"2026-11-15T12:00:00Z","by":"ada","transcript":"{A}","seq":{n},"do":"label_add","label":"x"}}"#
        ) + "\n"
    };
    let lines: String = (1..=MOST_ANNOTATIONS + 5).map(line).collect();
    write(&journal(&home), lines);
    assert_eq!(labels(&annotations, A).len(), MOST_ANNOTATIONS);
    assert_eq!(annotations.unread_lines().unwrap(), 5);
    let more = annotations.add_label(on(A, None), "y", who("ada"));
    assert!(matches!(more, Err(AnnotationError::TooMany)));
    annotations
        .remove_label(on(A, Some(1)), "x", who("ada"))
        .unwrap();
    annotations.add_label(on(A, None), "y", who("ada")).unwrap();
}

#[test]
fn lists_are_narrowed_by_label_and_a_rebuild_and_a_prune_keep_annotations() {
    let machine = Machine::new();
    for name in ["s1", "s2"] {
        let log = prompt(name, &format!("u{name}"), "ask") + &reply(name, &format!("a{name}"), "x");
        write(&machine.session(&format!("{name}.jsonl")), log);
    }
    let store = machine.store();
    machine.import(&store);
    let row = store.find("s1").unwrap();
    let target = on(&row.address, Some(2));
    store
        .annotations()
        .add_label(target, "keep", who("ada"))
        .unwrap();
    let wanted = |label: &str| Listing {
        label: Some(label.to_owned()),
        limit: Some(1),
        ..Listing::of(crate::catalogue::Filter::default(), Order::Newest)
    };
    let ids = |store: &crate::Store, label: &str| -> Vec<String> {
        let rows = store.list(&wanted(label)).unwrap();
        rows.into_iter().map(|row| row.run_id).collect()
    };
    assert_eq!(ids(&store, "keep"), ["s1"]);
    assert_eq!(ids(&store, "other"), Vec::<String>::new());
    assert_eq!(store.count(&wanted("keep")).unwrap(), 1);
    let (store, _) = machine.rebuild(store);
    assert_eq!(ids(&store, "keep"), ["s1"]);
    let holdings = store.holdings(vec![store.find("s1").unwrap()]).unwrap();
    store.prune(&holdings, options().now).unwrap();
    assert_eq!(ids(&store, "keep"), Vec::<String>::new());
    assert_eq!(
        store.annotations().list(&row.address).unwrap().labels.len(),
        1
    );
    // The log is still there: imported again it has the address that it had.
    machine.import(&store);
    assert_eq!(ids(&store, "keep"), ["s1"]);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Whatever is in the file, reading it does not fail, and what is added behind it is found.
    #[test]
    fn any_bytes_can_stand_before_an_annotation(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        let (home, annotations) = home();
        write(&journal(&home), &bytes);
        annotations.list(A).unwrap();
        annotations.add_label(on(A, None), "x", who("ada")).unwrap();
        prop_assert_eq!(labels(&annotations, A).len(), 1);
        prop_assert!(fs::read(journal(&home)).unwrap().starts_with(&bytes));
        prop_assert_eq!(labels(&Annotations::of_home(home.path()), A).len(), 1);
    }
}
