//! What is planted is there, and other tools are understood.

use std::collections::BTreeSet;

use quipu_redact::rule::expand;
use serde_json::Value;

use super::beside::{by_utf16, overlaps};
use super::decoys::DECOYS;
use super::held_out::HELD_OUT;
use super::score::spellings;
use super::settings::SETTINGS;
use super::trees::{Class, classes, shown};
use super::unseen;

#[test]
fn every_template_is_one_and_says_what_is_secret() {
    for (kind, template) in HELD_OUT {
        let sample = expand(template, 1).unwrap_or_else(|| panic!("{kind}"));
        let secret = sample
            .secret
            .unwrap_or_else(|| panic!("{kind} has no mark"));
        assert!(secret.len() >= 7, "{kind}");
    }
    for (kind, template) in DECOYS {
        assert!(expand(template, 1).is_some(), "{kind}");
    }
    let kinds: BTreeSet<&str> = HELD_OUT.iter().chain(DECOYS).map(|it| it.0).collect();
    assert_eq!(
        kinds.len(),
        HELD_OUT.len() + DECOYS.len(),
        "each has a name of its own"
    );
}

#[test]
fn a_text_can_be_found_wherever_it_is_put() {
    for text in ["KEY=a\"b\\c", "two\nlines"] {
        for (setting, write) in SETTINGS {
            let line = write(text, 3);
            assert!(!line.contains('\n'), "{setting}");
            assert!(serde_json::from_str::<Value>(&line).is_ok(), "{setting}");
            let there = spellings(text)
                .iter()
                .any(|spelling| line.contains(spelling.as_str()));
            assert!(there, "{setting}: {line}");
        }
    }
}

#[test]
fn ranges_in_utf16_are_lines_and_texts() {
    let text = "😀a\nbé secret!\n";
    let units: Vec<u16> = text.encode_utf16().collect();
    let at = String::from_utf16(&units)
        .unwrap()
        .find("secret")
        .map(|at| text[..at].encode_utf16().count());
    let at = at.unwrap();
    assert_eq!(by_utf16(text, [at, at + 6]), (1, "secret".to_owned()));
}

#[test]
fn a_tool_that_finds_part_of_a_secret_found_it() {
    let secret = "postgres_0123456789_0123456789";
    assert!(overlaps(None, Some(secret)));
    assert!(overlaps(
        Some("url=postgres_0123456789_0123456789@host"),
        Some(secret)
    ));
    assert!(overlaps(Some("0123456789_0123"), Some(secret)));
    assert!(!overlaps(Some("012"), Some(secret)));
    assert!(!overlaps(Some("something else"), Some(secret)));
}

#[test]
fn what_was_found_in_trees_has_a_class() {
    let known = classes(include_str!("../../data/trees.tsv")).unwrap();
    assert!(known.values().any(|class| *class == Class::Credential));
    assert!(known.keys().all(|hash| hash.len() == 16));
    assert!(classes("0123456789abcdef\tmaybe").is_err());
    assert!(classes("a\tfalse\na\tfalse").is_err());
}

#[test]
fn a_finding_is_shown_without_its_value() {
    let text = b"let key = \"abcdefghijkl\";\n";
    assert_eq!(
        shown(text, 11, 23),
        "let key = \"\u{ab}abcdef\u{2026}12\u{bb}\"; "
    );
    assert_eq!(shown(b"x=abc", 2, 5), "x=\u{ab}a\u{2026}3\u{bb}");
}

#[test]
fn every_unseen_kind_is_in_every_carrier_and_differs_each_time() {
    let mut list = Vec::new();
    for (_, text) in unseen::LISTS {
        list.extend(unseen::list(text).unwrap().kind);
    }
    assert!(list.len() >= 120, "{}", list.len());
    let names: BTreeSet<&str> = list.iter().map(|kind| kind.name.as_str()).collect();
    assert_eq!(names.len(), list.len(), "each has a name of its own");
    for (number, kind) in list.iter().enumerate() {
        let all = kind.carried(1, number as u64).unwrap();
        let carriers: BTreeSet<&str> = all.iter().map(|carried| carried.carrier).collect();
        for carrier in [
            "prose",
            "environment",
            "JSON in a string",
            "shell",
            "YAML",
            ".properties",
            "TOML",
        ] {
            assert!(carriers.contains(carrier), "{}: {carrier}", kind.name);
        }
        let values: BTreeSet<&str> = all.iter().map(|carried| carried.value.as_str()).collect();
        assert!(values.len() > 1, "{}", kind.name);
    }
}
