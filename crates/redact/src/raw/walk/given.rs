//! What values are given to by where they stand, read the way a text says it: the words of a command line that are a
//! list, the header of a request that is a field.

use std::borrow::Cow;
use std::ops::Range;

use quipu_model::json::{Kind, Node};

use super::Walk;
use super::frame::{Frame, Here, Level};
use crate::Context;
use crate::engine::Certainty;
use crate::raw::asked;
use crate::raw::edit::What;
use crate::raw::scan::Marked;

/// The longest line that values are put together to.
const LONGEST_LINE: usize = 16 << 10;

/// Headers whose value is more than a secret.
const HEADERS: [&str; 4] = [
    "authorization",
    "proxy-authorization",
    "cookie",
    "set-cookie",
];

/// How names end that are given a password. Those in the second list are words of their own.
const PASSWORDS: [&str; 6] = [
    "password",
    "passwd",
    "passphrase",
    "passcode",
    "pwd",
    "secret",
];
const WORDS: [&str; 2] = ["pin", "pass"];

/// What a part of a string is, by its place on the tape.
#[derive(Debug)]
pub(super) struct Given {
    pub(super) place: u32,
    pub(super) marked: Marked,
}

impl Walk<'_, '_> {
    /// Looks at the items of a list as the words of a command line, if one of them is a flag. What is behind a flag may
    /// be what the flag is given.
    pub(super) fn arguments(&mut self, level: &mut Level, here: Here<'_>, list: &Frame) {
        let items = (list.at + 1..list.end).map(|place| here.root.go_to(place));
        let mut flags = false;
        for item in items.clone() {
            if matches!(item.kind(), Kind::List | Kind::Object) {
                return;
            }
            flags |= is_flag(item);
        }
        if !flags {
            return;
        }
        let mut line = String::new();
        let mut words: Vec<Range<usize>> = Vec::new();
        for item in items {
            let word = item.as_str().unwrap_or(Cow::Borrowed(item.raw().get()));
            if line.len() + word.len() > LONGEST_LINE {
                break;
            }
            let quote = if word.contains([' ', '\t', '\n']) {
                "\""
            } else {
                ""
            };
            line.push_str(quote);
            words.push(line.len()..line.len() + word.len());
            line.push_str(&word);
            line.push_str(quote);
            line.push(' ');
        }
        for (span, what) in self.found_in(&line) {
            let word = words.partition_point(|word| word.start <= span.start);
            let Some(word) = word.checked_sub(2).map(|flag| flag + 1) else {
                continue;
            };
            let within = &words[word];
            let place = list.at + 1 + u32::try_from(word).unwrap_or_default();
            if span.end <= within.end && is_flag(here.root.go_to(place - 1)) {
                let range = span.start - within.start..span.end - within.start;
                level.given.push(Given {
                    place,
                    marked: Marked { range, what },
                });
            }
        }
        // The first is taken first, from the end.
        level.given.reverse();
    }

    /// What a header says, if a text is given to one.
    pub(super) fn header(&mut self, name: Option<&str>, text: &str) -> Vec<Marked> {
        let Some(name) = name.filter(|name| {
            HEADERS
                .iter()
                .any(|header| header.eq_ignore_ascii_case(name))
        }) else {
            return Vec::new();
        };
        if text.len() > LONGEST_LINE {
            return Vec::new();
        }
        let begin = name.len() + 2;
        self.found_in(&format!("{name}: {text}"))
            .into_iter()
            .filter(|(span, _)| span.start >= begin)
            .map(|(span, what)| Marked {
                range: span.start - begin..span.end - begin,
                what,
            })
            .collect()
    }

    /// Whether all of a number is a password, by its name.
    pub(super) fn digits(&self, name: Option<&str>, number: &str) -> Option<Marked> {
        let long = number.len() >= 6 && number.bytes().all(|byte| byte.is_ascii_digit());
        if !long || !name.is_some_and(names_password) {
            return None;
        }
        Some(Marked {
            range: 0..number.len(),
            what: What::Rule(asked::password(self.scanner.plan.engine)?),
        })
    }

    /// What is surely to be removed from a text that was put together.
    fn found_in(&mut self, text: &str) -> Vec<(Range<usize>, What)> {
        let scanner = &mut *self.scanner;
        let context = Context {
            name: None,
            file: scanner.plan.file,
            near: false,
        };
        let mut found = Vec::new();
        scanner
            .plan
            .engine
            .scan(&mut scanner.kept.scratch, text, context, &mut found);
        found
            .into_iter()
            .filter(|found| found.certainty == Certainty::Sure)
            .map(|found| (found.span, What::Rule(found.rule)))
            .collect()
    }
}

/// Whether it is `-x` or `--long-name`.
fn is_flag(item: Node<'_>) -> bool {
    let Some([b'-', rest @ ..]) = item.plain_bytes() else {
        return false;
    };
    let name = rest.strip_prefix(b"-").unwrap_or(rest);
    name.first().is_some_and(u8::is_ascii_alphabetic)
        && name
            .iter()
            .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.'))
}

/// Whether a name is that of a password, rather than of something about one.
fn names_password(name: &str) -> bool {
    let lower = name.to_ascii_lowercase();
    let counts = ["count", "num", "max", "min", "total", "length", "attempt"];
    if counts.iter().any(|word| lower.contains(word)) {
        return false;
    }
    let word = |word: &&str| {
        let Some(before) = lower.strip_suffix(*word) else {
            return false;
        };
        let begins = name.as_bytes()[before.len()].is_ascii_uppercase();
        match name.as_bytes()[..before.len()].last() {
            Some(last) => !last.is_ascii_alphanumeric() || begins && last.is_ascii_lowercase(),
            None => true,
        }
    };
    PASSWORDS.iter().any(|end| lower.ends_with(end)) || WORDS.iter().any(word)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_passwords() {
        for name in [
            "password",
            "dbPassword",
            "PIN",
            "userPin",
            "user_pin",
            "pass",
            "root-pass",
        ] {
            assert!(names_password(name), "{name}");
        }
        for name in [
            "",
            "spin",
            "SPIN",
            "bypass",
            "pin_x",
            "passwords_total",
            "max_password",
        ] {
            assert!(!names_password(name), "{name}");
        }
    }
}
