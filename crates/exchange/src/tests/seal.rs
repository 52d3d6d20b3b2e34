//! Checksums of recorded lines.

use proptest::prelude::*;

use super::{line, run};
use crate::verify::{Rule, verify};
use crate::{Chain, Escapes, Reader};
use quipu_formats::arbitrary;

/// Lines with their checksums, as a recorder writes them.
fn sealed(lines: &[String]) -> String {
    let (mut chain, mut file) = (Chain::default(), String::new());
    for line in lines {
        let mut bytes = format!("{line}\n").into_bytes();
        chain = chain.seal(&mut bytes);
        file += std::str::from_utf8(&bytes).unwrap();
    }
    file
}

fn checksums(file: &str) -> Vec<u64> {
    let report = verify(&mut Reader::new(file.as_bytes())).unwrap();
    let found = report.findings.iter();
    found
        .filter(|finding| finding.rule == Rule::Checksum)
        .map(|finding| finding.at.unwrap().line)
        .collect()
}

#[test]
fn a_sealed_line_ends_in_its_checksum() {
    let file = sealed(&[run(1), run(2)]);
    let first = r#","payload":null,"check":"70638000ce5849c0"}"#;
    assert!(file.lines().next().unwrap().ends_with(first), "{file}");
    let report = verify(&mut Reader::new(file.as_bytes())).unwrap();
    assert_eq!(report.findings, [], "the field is known");
}

#[test]
fn what_was_changed_is_found_where_it_was_changed() {
    let lines: Vec<String> = (1..=5).map(run).collect();
    let file = sealed(&lines);
    assert_eq!(checksums(&file), [0u64; 0]);
    let changed = |n: usize, from: &str, to: &str| {
        let mut lines: Vec<String> = file.lines().map(str::to_owned).collect();
        lines[n] = lines[n].replacen(from, to, 1);
        lines.join("\n") + "\n"
    };
    assert_eq!(checksums(&changed(2, "08:14:42Z", "08:14:43Z")), [3]);
    assert_eq!(checksums(&changed(2, "\"a\"", "\"b\"")), [3]);
    assert_eq!(checksums(&changed(2, "check", "cheak")), [3, 4]);
    let one = sealed(&[run(1)]);
    assert_eq!(checksums(&one.replace("check", "chack")), [1]);
    // A letter of the name or a digit that is not even a text any more.
    let name = one.find("check").unwrap();
    let bytes = [0xff, 0xe5, 0, b'G', b'"'];
    for (at, byte) in (name..name + 24).flat_map(|at| bytes.map(|byte| (at, byte))) {
        let mut damaged = one.clone().into_bytes();
        if std::mem::replace(&mut damaged[at], byte) == byte {
            continue;
        }
        let report = verify(&mut Reader::new(&damaged[..])).unwrap();
        assert_eq!(
            report.worst(),
            Some(crate::verify::Severity::Error),
            "{byte} at {at}"
        );
    }
    // What other engines say is not taken for a checksum.
    for payload in [r#"{"a":1,"check":"0123456789abcdef"}"#, r#"{"check":"0"}"#] {
        assert_eq!(checksums(&(line(1, "x", payload) + "\n")), [0u64; 0]);
    }
    // A line that is left out, and one that was put in by something else.
    let without: String = file
        .lines()
        .filter(|line| !line.starts_with("{\"seq\":3"))
        .flat_map(|line| [line, "\n"])
        .collect();
    assert_eq!(checksums(&without), [3]);
    assert_eq!(checksums(&format!("{file}{}\n", run(6))), [6]);
}

#[test]
fn a_file_without_checksums_is_continued_with_them() {
    let old = format!("{}\n{}\n", run(1), run(2));
    let mut bytes = format!("{}\n", run(3)).into_bytes();
    let chain = Chain::after(run(2).as_bytes()).seal(&mut bytes);
    let third = String::from_utf8(bytes).unwrap();
    assert_eq!(Chain::after(third.trim_end().as_bytes()), chain);
    let file = old + &third;
    assert_eq!(checksums(&file), [0u64; 0]);
    assert_eq!(checksums(&file.replacen("\"seq\":2", "\"seq\":7", 1)), [3]);
    assert_eq!(
        checksums(&format!("{}\n{}\n", run(1), line(2, "x", "7"))),
        [0u64; 0]
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    /// Whatever bit is turned, the check of the file notices.
    #[test]
    fn every_bit_counts(
        (_, events) in arbitrary::session(),
        flips in proptest::collection::vec(any::<proptest::sample::Index>(), 64),
    ) {
        let lines: Vec<String> = events
            .iter()
            .map(|event| event.body.clone())
            .zip(1..)
            .map(|(body, seq)| {
                let event = quipu_model::Event { seq, ..super::event(body) };
                super::encode(&event, Escapes::Plain).trim_end().to_owned()
            })
            .collect();
        prop_assume!(!lines.is_empty());
        let file = sealed(&lines).into_bytes();
        let before = verify(&mut Reader::new(&file[..])).unwrap();
        prop_assert!(!before.counts.contains_key(&Rule::Checksum));
        for flip in flips {
            let bit = flip.index(8 * file.len());
            let mut damaged = file.clone();
            damaged[bit / 8] ^= 1 << (bit % 8);
            let after = verify(&mut Reader::new(&damaged[..])).unwrap();
            let new = |rule: &Rule| {
                rule.severity() == crate::verify::Severity::Error
                    && after.counts[rule] > before.counts.get(rule).copied().unwrap_or(0)
            };
            prop_assert!(
                after.counts.keys().any(new),
                "bit {bit}: {}",
                String::from_utf8_lossy(&damaged)
            );
        }
    }
}
