//! The names in an expression, and its limits, found before the expression is read.
//!
//! The parser recurses for each parenthesis and its tree is not public, so depth is bounded and names are found here.

use crate::template::ROOTS;

/// How deep parentheses may be nested, and how many operators may follow one another.
const MOST_DEPTH: usize = 64;

/// How deep square brackets may be nested: the parser reads the inside of each twice, so that its time doubles with
/// every level.
const MOST_BRACKETS: usize = 8;

/// A path that an expression names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Name {
    /// Its parts: `states`, `build`, `ExitCode`.
    pub path: Vec<String>,
    /// Where it begins in the expression, in bytes.
    pub at: usize,
}

/// The paths that begin with one of the known roots; an error is an offset and what is wrong there.
pub(super) fn names(source: &str) -> Result<Vec<Name>, (usize, String)> {
    let mut scanner = Scanner { source, at: 0 };
    let mut found: Vec<Name> = Vec::new();
    let mut depth = 0_usize;
    let mut brackets = 0_usize;
    let mut prefixes = 0_usize;
    while let Some(c) = scanner.peek() {
        let at = scanner.at;
        match c {
            '"' | '\'' | '`' => {
                scanner.quoted();
                prefixes = 0;
            }
            '(' | '[' | '{' => {
                depth += 1;
                brackets += usize::from(c == '[');
                if depth > MOST_DEPTH || brackets > MOST_BRACKETS {
                    return Err((at, "nested too deep".to_owned()));
                }
                scanner.at += 1;
            }
            ')' | ']' | '}' => {
                depth = depth.saturating_sub(1);
                brackets = brackets.saturating_sub(usize::from(c == ']'));
                scanner.at += 1;
                prefixes = 0;
            }
            '.' if scanner.rest().starts_with("..") => {
                return Err((at, "ranges (a..b) are not available".to_owned()));
            }
            '.' | '#' => {
                // The field of some value; its name is not the beginning of a path.
                scanner.at += 1;
                scanner.word();
            }
            '/' if scanner.rest().starts_with("//") || scanner.rest().starts_with("/*") => {
                scanner.comment();
            }
            c if is_name(c) && !c.is_ascii_digit() => {
                let word = scanner.word();
                if word == "$env" {
                    return Err((
                        at,
                        "$env is not available; name inputs.x or env.X".to_owned(),
                    ));
                }
                prefixes = if matches!(word, "not" | "if") {
                    prefixes + 1
                } else {
                    0
                };
                if ROOTS.contains(&word) {
                    let mut path = vec![word.to_owned()];
                    path.extend(scanner.fields());
                    found.push(Name { path, at });
                }
            }
            '!' | '?' | '-' | '+' => {
                prefixes += 1;
                scanner.at += 1;
            }
            c => {
                if c.is_alphanumeric() {
                    prefixes = 0;
                }
                scanner.at += c.len_utf8();
            }
        }
        if prefixes > MOST_DEPTH {
            return Err((at, format!("more than {MOST_DEPTH} operators in a row")));
        }
    }
    // Longer paths lead into the values of shorter ones.
    found.sort_by_key(|name| name.path.len());
    Ok(found)
}

struct Scanner<'s> {
    source: &'s str,
    at: usize,
}

impl<'s> Scanner<'s> {
    fn rest(&self) -> &'s str {
        &self.source[self.at..]
    }

    fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    fn word(&mut self) -> &'s str {
        let rest = self.rest();
        let end = rest.find(|c| !is_name(c)).unwrap_or(rest.len());
        self.at += end;
        &rest[..end]
    }

    fn comment(&mut self) {
        let rest = self.rest();
        let length = if rest.starts_with("//") {
            rest.find('\n').unwrap_or(rest.len())
        } else {
            rest.find("*/").map_or(rest.len(), |end| end + 2)
        };
        self.at += length;
    }

    /// Goes past a text in quotes; its content, where it has no escapes.
    fn quoted(&mut self) -> Option<&'s str> {
        let rest = self.rest();
        let quote = rest.chars().next()?;
        let mut escaped = false;
        for (at, c) in rest.char_indices().skip(1) {
            if escaped {
                escaped = false;
            } else if c == '\\' && quote != '`' {
                escaped = true;
            } else if c == quote {
                self.at += at + 1;
                let inner = &rest[1..at];
                return (!inner.contains('\\')).then_some(inner);
            }
        }
        self.at = self.source.len();
        None
    }

    /// The names after a root: `.name`, `?.name` and `["name"]`.
    fn fields(&mut self) -> Vec<String> {
        let mut fields = Vec::new();
        loop {
            let begin = self.at;
            self.at += self.rest().len() - self.rest().trim_start().len();
            let rest = self.rest();
            let dot = rest.strip_prefix("?.").or_else(|| rest.strip_prefix('.'));
            if let Some(after) = dot
                && after
                    .trim_start()
                    .starts_with(|c: char| is_name(c) && !c.is_ascii_digit())
            {
                let after = after.trim_start();
                self.at += rest.len() - after.len();
                fields.push(self.word().to_owned());
                continue;
            }
            if rest.starts_with('[') && rest[1..].trim_start().starts_with(['"', '\'', '`']) {
                let inner = rest[1..].trim_start();
                self.at += rest.len() - inner.len();
                if let Some(name) = self.quoted()
                    && self.rest().trim_start().starts_with(']')
                {
                    self.at += self.rest().len() - self.rest().trim_start().len() + 1;
                    fields.push(name.to_owned());
                    continue;
                }
            }
            self.at = begin;
            return fields;
        }
    }
}

fn is_name(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '_' | '$')
}
