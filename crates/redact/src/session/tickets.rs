//! Numbers of issues, pull requests and runs of a forge. With what a session is about, one of them names the repository.

use std::ops::Range;

use rustc_hash::FxHashSet;

/// Numbers that are remembered.
const MOST: usize = 4096;

/// Digits from which on a number that was told once is known wherever it is.
const TELLING: usize = 4;

/// What such a number is behind in addresses.
const IN_ADDRESSES: [&str; 9] = [
    "/issues/",
    "/pull/",
    "/pulls/",
    "/merge_requests/",
    "/discussions/",
    "/actions/runs/",
    "/runs/",
    "/jobs/",
    "/milestone/",
];

/// What `gh` and `glab` are asked for by number.
const COMMANDS: [&str; 6] = [
    "gh issue ",
    "gh pr ",
    "gh run ",
    "glab issue ",
    "glab mr ",
    "glab ci ",
];

/// Words before a number that say what it is of, in lower case.
const WORDS: [&str; 12] = [
    "issue",
    "issues",
    "pr",
    "prs",
    "pull",
    "request",
    "mr",
    "fixes",
    "closes",
    "resolves",
    "bug",
    "discussion",
];

/// The numbers that a session tells.
#[derive(Debug, Clone, Default)]
pub(super) struct Tickets(FxHashSet<String>);

impl Tickets {
    /// Takes in the numbers that a text says outright.
    pub(super) fn learn(&mut self, text: &str) {
        if !text.bytes().any(|byte| byte.is_ascii_digit()) {
            return;
        }
        for span in told(text) {
            if self.0.len() < MOST {
                self.0.insert(text[span].to_owned());
            }
        }
    }

    /// Where such numbers are in a text.
    pub(super) fn find(&self, text: &str, to: &mut Vec<Range<usize>>) {
        to.extend(told(text));
        to.extend(numbers(text).filter(|span| {
            let number = &text[span.clone()];
            let before = text[..span.start].chars().next_back();
            self.0.contains(number) && (before == Some('#') || number.len() >= TELLING)
        }));
        to.sort_by_key(|span| span.start);
        to.dedup();
    }
}

/// Numbers that a text says to be of an issue, a pull request or a run.
fn told(text: &str) -> impl Iterator<Item = Range<usize>> {
    numbers(text).filter(|span| {
        let before = &text[..span.start];
        IN_ADDRESSES.iter().any(|front| before.ends_with(front))
            || is_asked_for(before)
            || is_named(before)
    })
}

/// Whether a command asks for what comes next: `gh issue view 12`.
fn is_asked_for(before: &str) -> bool {
    let line = before.rsplit('\n').next().unwrap_or(before);
    COMMANDS.iter().any(|command| {
        let asked = line.rfind(command).map(|at| &line[at + command.len()..]);
        // The verb, and nothing else.
        asked.is_some_and(|verb| {
            let verb = verb.strip_suffix(' ');
            verb.is_some_and(|verb| {
                !verb.is_empty()
                    && verb
                        .bytes()
                        .all(|byte| byte.is_ascii_lowercase() || byte == b'-')
            })
        })
    })
}

/// Whether a word says so: `issue #12`, `PR 12`, `fixes owner/name#12`.
fn is_named(before: &str) -> bool {
    let (before, has_sign) = match before.strip_suffix('#') {
        Some(before) => (before, true),
        None => (before, false),
    };
    // `[#12](…/issues/12)`, `owner/name#12`
    let before = before.trim_end_matches(['[', '(', '*', '`']);
    if has_sign && before.ends_with(|c: char| c.is_ascii_alphanumeric()) {
        let word = before
            .rsplit(|c: char| c.is_whitespace() || c == '(')
            .next()
            .unwrap_or_default();
        return word.contains('/') && !word.contains("://");
    }
    let before = before.trim_end_matches([' ', ':']);
    let from = before.rfind(|c: char| !c.is_ascii_alphabetic());
    let word = &before[from.map_or(0, |at| {
        at + before[at..].chars().next().map_or(1, char::len_utf8)
    })..];
    let word = word.to_ascii_lowercase();
    WORDS.contains(&word.as_str()) && (has_sign || !matches!(&*word, "pull" | "request"))
        || word == "request" && before.to_ascii_lowercase().ends_with("pull request")
}

/// Numbers that are words by themselves.
fn numbers(text: &str) -> impl Iterator<Item = Range<usize>> {
    let bytes = text.as_bytes();
    let is_word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    let mut at = 0;
    std::iter::from_fn(move || {
        while at < bytes.len() {
            if !is_word(bytes[at]) {
                at += 1;
                continue;
            }
            let start = at;
            at += bytes[at..]
                .iter()
                .take_while(|byte| is_word(**byte))
                .count();
            let is_number = bytes[start..at].iter().all(u8::is_ascii_digit);
            let is_fraction = |next: Option<&u8>| next == Some(&b'.');
            // `1.25` and `10.0.0.1` are other numbers.
            let is_part = (start >= 2
                && bytes[start - 1] == b'.'
                && bytes[start - 2].is_ascii_digit())
                || is_fraction(bytes.get(at)) && bytes.get(at + 1).is_some_and(u8::is_ascii_digit);
            if is_number && at - start <= 12 && !is_part {
                return Some(start..at);
            }
        }
        None
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found<'t>(told: &str, text: &'t str) -> Vec<&'t str> {
        let (mut tickets, mut spans) = (Tickets::default(), Vec::new());
        tickets.learn(told);
        tickets.find(text, &mut spans);
        spans.into_iter().map(|span| &text[span]).collect()
    }

    #[test]
    fn numbers_that_a_text_says_to_be_of_an_issue_are_found() {
        for (text, number) in [
            ("https://github.com/o/r/issues/7668", "7668"),
            ("see https://github.com/o/r/pull/12#discussion_r99", "12"),
            ("https://gitlab.com/g/p/-/merge_requests/5", "5"),
            ("gh issue view 7668 --repo o/r", "7668"),
            ("gh pr checkout 31", "31"),
            ("**Issue [#7668](x)**", "7668"),
            ("Fixes #12.", "12"),
            ("this is PR 431", "431"),
            ("the pull request 9 is open", "9"),
            ("fixed in spf13/cobra#1234", "1234"),
        ] {
            assert_eq!(found("", text), [number], "{text}");
        }
    }

    #[test]
    fn a_number_that_was_told_is_known_again() {
        let told = "https://github.com/o/r/issues/7668 and issue #12";
        assert_eq!(
            found(told, "#7668, 7668 and #12, but 12 of 76680"),
            ["7668", "7668", "12"]
        );
        assert_eq!(found("", "#7668 of 7668"), [""; 0]);
    }

    #[test]
    fn other_numbers_stay() {
        let told = "issue 8080";
        for text in [
            "took 1.8080 s",
            "10.0.0.8080",
            "a8080",
            "line 12",
            "colour #336699",
            "v8080.1",
        ] {
            assert_eq!(found(told, text), [""; 0], "{text}");
        }
    }
}
