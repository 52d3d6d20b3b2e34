//! The page of promises names tests that exist.

use std::collections::BTreeSet;
use std::path::Path;

use super::repository;

/// The names of all tests below a directory.
fn tests_in(dir: &Path, found: &mut BTreeSet<String>) {
    for entry in std::fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            tests_in(&path, found);
        } else if path.extension().is_some_and(|ending| ending == "rs") {
            let text = std::fs::read_to_string(&path).unwrap();
            let mut is_test = false;
            for line in text.lines().map(str::trim) {
                let name = line
                    .strip_prefix("async ")
                    .unwrap_or(line)
                    .strip_prefix("fn ");
                match name.and_then(|rest| rest.split_once('(')) {
                    Some((name, _)) if is_test => {
                        found.insert(name.to_owned());
                        is_test = false;
                    }
                    Some(_) => {}
                    None => {
                        is_test |= line.starts_with("#[test]") || line.starts_with("#[tokio::test");
                    }
                }
            }
        }
    }
}

#[test]
fn every_test_that_the_page_of_promises_names_exists() {
    let page = std::fs::read_to_string(repository().join("docs/awf.md")).unwrap();
    let mut tests = BTreeSet::new();
    tests_in(&repository().join("crates"), &mut tests);
    let rows: Vec<&str> = page
        .lines()
        .filter(|line| line.starts_with("| ") && line.contains('`'))
        .collect();
    let mut named = 0;
    for row in &rows {
        let column = row.trim_end_matches(['|', ' ']).rsplit('|').next().unwrap();
        let names: Vec<&str> = column.split('`').skip(1).step_by(2).collect();
        assert!(!names.is_empty(), "a row without a test: {row}");
        for name in names {
            assert!(tests.contains(name), "no test is called {name}");
            named += 1;
        }
    }
    assert!(
        (rows.len(), named) >= (41, 60),
        "{} rows name {named} tests",
        rows.len()
    );
    let numbers = (1..=25).all(|number| page.contains(&format!("\n| {number} | ")));
    assert!(numbers, "every promise of the transcript has its row");
}
