//! `docs/search.md` says what is so.

use super::*;

/// The tables of the page whose first column has this heading: the code in each cell, row by row.
fn rows(heading: &str) -> Vec<Vec<Vec<String>>> {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/search.md");
    let page = std::fs::read_to_string(path).unwrap();
    let mut found = Vec::new();
    let mut inside = false;
    for line in page.lines() {
        // A bar inside of a cell is written with a backslash.
        let line = line.replace(r"\|", "\u{1}");
        if !line.starts_with('|') {
            inside = false;
        } else if line.starts_with(&format!("| {heading} |")) {
            inside = true;
        } else if inside && !line.starts_with("|---") {
            let cells = line.trim_matches('|').split('|');
            let code = |cell: &str| {
                let pieces = cell.split('`').skip(1).step_by(2);
                pieces.map(|code| code.replace('\u{1}', "|")).collect()
            };
            found.push(cells.map(code).collect());
        }
    }
    assert!(!found.is_empty(), "no table with {heading}");
    found
}

#[test]
fn what_can_be_written_reads() {
    let mut examples = 0;
    for heading in ["write", "filter"] {
        for row in rows(heading) {
            assert!(!row[0].is_empty(), "a row without an example: {row:?}");
            for text in &row[0] {
                read(text);
                examples += 1;
            }
        }
    }
    assert!(examples > 50, "{examples}");
    for row in rows("time") {
        for text in &row[0] {
            read(&format!("since:{text} until:{text}"));
        }
    }
}

#[test]
fn what_is_the_same_is_the_same() {
    for row in rows("this") {
        for (text, same) in row[0].iter().zip(&row[1]) {
            assert_eq!(read(text), read(same), "{text}");
        }
    }
}

#[test]
fn what_is_wrong_is_refused_with_these_words() {
    for row in rows("wrong") {
        let error = Query::parse(&row[0][0], &clock()).unwrap_err();
        assert_eq!(error.what.to_string(), row[1][0], "{}", row[0][0]);
    }
}

#[test]
fn everything_that_there_is_is_named() {
    let filters = rows("filter");
    let named = |start: &str| {
        let mut examples = filters.iter().flat_map(|row| row.concat());
        examples.any(|example| example.starts_with(start))
    };
    for field in Field::ALL {
        assert!(named(&format!("{field}:")), "{field}");
    }
    for role in Role::ALL {
        assert!(
            named(&format!("role:{role}")) || named(role.as_str()),
            "{role}"
        );
    }
    for status in quipu_model::Status::ALL {
        assert!(
            named(&format!("status:{status}")) || named(status.as_str()),
            "{status}"
        );
    }
    for has in Has::ALL {
        assert!(named(&format!("has:{has}")), "{has}");
    }
}
