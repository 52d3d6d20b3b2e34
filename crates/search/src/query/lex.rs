//! From characters to words, signs and filters.

use std::borrow::Cow;
use std::ops::Range;

use super::error::{clip, quoted};
use super::{Field, Problem, Query, QueryError};

/// A piece of a query, and where it stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Token<'q> {
    pub(super) kind: Kind<'q>,
    pub(super) at: Range<usize>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Kind<'q> {
    Open,
    Close,
    Or,
    And,
    Not,
    /// `-` before something, with nothing between.
    Minus,
    Near(u32),
    Term(Term<'q>),
}

/// What is looked for, as opposed to signs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Term<'q> {
    Word {
        text: &'q str,
        prefix: bool,
    },
    Phrase {
        text: Cow<'q, str>,
        prefix: bool,
        slop: u32,
    },
    Filter {
        field: Field,
        values: Vec<Value<'q>>,
    },
}

/// A value of a filter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Value<'q> {
    /// Without quotation marks and asterisk.
    pub(super) text: Cow<'q, str>,
    /// Whether there was an asterisk behind it.
    pub(super) prefix: bool,
    pub(super) at: Range<usize>,
}

pub(super) struct Lexer<'q> {
    query: &'q str,
    at: usize,
}

impl<'q> Lexer<'q> {
    pub(super) fn new(query: &'q str) -> Self {
        Self { query, at: 0 }
    }

    /// The next piece, if there is one.
    pub(super) fn next(&mut self) -> Result<Option<Token<'q>>, QueryError> {
        self.at = self.query.len() - self.rest().trim_start().len();
        let start = self.at;
        let kind = match self.peek() {
            None => return Ok(None),
            Some('(') => self.sign(1, Kind::Open),
            Some(')') => self.sign(1, Kind::Close),
            Some('|') if self.rest().starts_with("||") => self.sign(2, Kind::Or),
            Some('|') => self.sign(1, Kind::Or),
            Some(c) if is_quote(c) => self.phrase()?,
            Some('-') if self.is_minus()? => self.sign(1, Kind::Minus),
            Some(_) => self.word()?,
        };
        let at = start..self.at;
        Ok(Some(Token { kind, at }))
    }

    fn rest(&self) -> &'q str {
        &self.query[self.at..]
    }

    fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    fn sign(&mut self, length: usize, kind: Kind<'q>) -> Kind<'q> {
        self.at += length;
        kind
    }

    /// Whether the `-` here rules out what follows. It does not in `--force`, `->` and the like, which are
    /// looked for in logs of commands and code.
    fn is_minus(&self) -> Result<bool, QueryError> {
        let behind = &self.rest()[1..];
        match behind.chars().next() {
            Some(c) if c == '(' || is_quote(c) => Ok(true),
            Some(c) if !ends_term(c) => {
                let word = &self.query[self.at..self.end_of_word(false)];
                let only_signs = word.chars().all(|c| c.is_ascii_punctuation());
                Ok(!only_signs && !word.starts_with("--"))
            }
            _ => Err(
                QueryError::new(self.at..self.at + 1, Problem::NothingAfter("-"))
                    .hint("write it right before what is ruled out: -word; or quote it: \"-\""),
            ),
        }
    }

    /// Where the word ends that begins here. Parentheses inside of it are part of it when all of them are
    /// closed in it: `main()` is a word, and `f(x y)` is one before a group.
    fn end_of_word(&self, in_list: bool) -> usize {
        let (mut depth, mut outermost) = (0_usize, self.at);
        for (at, c) in self.rest().char_indices() {
            let at = self.at + at;
            match c {
                '(' => {
                    if depth == 0 {
                        outermost = at;
                    }
                    depth += 1;
                }
                ')' if depth == 0 => return at,
                ')' => depth -= 1,
                ',' if in_list && depth == 0 => return at,
                c if is_quote(c) || c == '|' || c.is_whitespace() => {
                    return if depth == 0 { at } else { outermost };
                }
                _ => {}
            }
        }
        if depth == 0 {
            self.query.len()
        } else {
            outermost
        }
    }

    /// A word, an operator or a filter.
    fn word(&mut self) -> Result<Kind<'q>, QueryError> {
        if let Some(operator) = self.operator()? {
            return Ok(operator);
        }
        if let Some(filter) = self.filter()? {
            return Ok(filter);
        }
        let end = self.end_of_word(false);
        let (text, prefix) = self.starred(end)?;
        Ok(Kind::Term(Term::Word { text, prefix }))
    }

    /// Takes the text up to `end`, and the asterisk that may be its end.
    fn starred(&mut self, end: usize) -> Result<(&'q str, bool), QueryError> {
        let start = self.at;
        let written = &self.query[start..end];
        let (text, prefix) = match written.strip_suffix('*') {
            Some(text) => (text, true),
            None => (written, false),
        };
        let misplaced = if text.is_empty() {
            Some(0)
        } else {
            text.find('*')
        };
        if let Some(at) = misplaced {
            let at = start + at;
            let error = QueryError::new(at..at + 1, Problem::MisplacedStar);
            return Err(match quoted(written) {
                Some(text) => error.hint(format!("to look for the text, quote it: {text}")),
                None => error.hint("to look for the text, quote it"),
            });
        }
        self.at = end;
        Ok((text, prefix))
    }

    fn operator(&mut self) -> Result<Option<Kind<'q>>, QueryError> {
        let rest = self.rest();
        let end = rest.find(|c| ends_term(c) || is_quote(c) || c == '(');
        let word = &rest[..end.unwrap_or(rest.len())];
        let kind = match word {
            "OR" => Kind::Or,
            "AND" => Kind::And,
            "NOT" => Kind::Not,
            "NEAR" => Kind::Near(Query::NEAR),
            word => {
                let Some(number) = word.strip_prefix("NEAR/") else {
                    return Ok(None);
                };
                let at = self.at + "NEAR/".len();
                Kind::Near(distance(number, at..at + number.len())?)
            }
        };
        Ok(Some(self.sign(word.len(), kind)))
    }

    fn phrase(&mut self) -> Result<Kind<'q>, QueryError> {
        let text = self.between_quotes()?;
        let prefix = self.take('*');
        let mut slop = 0;
        if self.peek() == Some('~') {
            let sign = self.at;
            self.at += 1;
            let rest = self.rest();
            let end = rest.find(|c| ends_term(c) || is_quote(c) || c == '(');
            let number = &rest[..end.unwrap_or(rest.len())];
            if prefix || number.ends_with('*') {
                let at = sign..sign + 1 + number.len();
                return Err(QueryError::new(at, Problem::StarAndDistance));
            }
            slop = distance(number, self.at..self.at + number.len())?;
            self.at += number.len();
        }
        Ok(Kind::Term(Term::Phrase { text, prefix, slop }))
    }

    fn take(&mut self, c: char) -> bool {
        let taken = self.peek() == Some(c);
        if taken {
            self.at += c.len_utf8();
        }
        taken
    }

    /// What stands between the quotation mark here and the one that closes it. Straight ones are closed by
    /// straight ones; curved ones by any, because keyboards and languages differ in how they pair them.
    fn between_quotes(&mut self) -> Result<Cow<'q, str>, QueryError> {
        let start = self.at;
        let opening = self.peek().unwrap_or('"');
        let closes = |c: char| c == '"' || (opening != '"' && is_quote(c));
        let begin = start + opening.len_utf8();
        let mut text = Cow::Borrowed("");
        // What was not copied into `text` yet begins here.
        let mut from = begin;
        let mut escaped = false;
        for (at, c) in self.query[begin..].char_indices() {
            let at = begin + at;
            if escaped && (c == '\\' || is_quote(c)) {
                text += &self.query[from..at - 1];
                from = at;
                escaped = false;
            } else if c == '\\' {
                escaped = true;
            } else if closes(c) {
                self.at = at + c.len_utf8();
                text += &self.query[from..at];
                if text.trim().is_empty() {
                    return Err(QueryError::new(start..self.at, Problem::EmptyPhrase));
                }
                return Ok(text);
            } else {
                escaped = false;
            }
        }
        let error = QueryError::new(start..begin, Problem::OpenQuote);
        let escaped_last = self.query.trim_end().ends_with("\\\"");
        Err(if escaped_last {
            error
                .hint("a quotation mark after \\ is text; a \\ before the last one is written \\\\")
        } else {
            error.hint("close it; a quotation mark inside of a phrase is written \\\"")
        })
    }

    /// A filter, if there is one here, or something that was meant to be one.
    fn filter(&mut self) -> Result<Option<Kind<'q>>, QueryError> {
        let rest = self.rest();
        let Some(colon) = rest.find(|c: char| !c.is_ascii_alphabetic()) else {
            return Ok(None);
        };
        let (name, Some(value)) = (&rest[..colon], rest[colon..].strip_prefix(':')) else {
            return Ok(None);
        };
        // `path::PathBuf`
        if name.is_empty() || value.starts_with(':') {
            return Ok(None);
        }
        let Some(field) = Field::from_word(name) else {
            if looks_like_filter(name, value) {
                return Err(self.unknown_filter(name));
            }
            return Ok(None);
        };
        let start = self.at;
        self.at += colon;
        let mut values = Vec::new();
        loop {
            self.at += 1;
            values.push(self.value(field, start)?);
            if self.peek() != Some(',') {
                return Ok(Some(Kind::Term(Term::Filter { field, values })));
            }
        }
    }

    fn value(&mut self, field: Field, filter: usize) -> Result<Value<'q>, QueryError> {
        let start = self.at;
        let (text, prefix) = match self.peek() {
            Some(c) if is_quote(c) => {
                let text = self.between_quotes()?;
                (text, self.take('*'))
            }
            Some(c) if !ends_term(c) && c != ',' && c != '(' => {
                let end = self.end_of_word(true);
                let (text, prefix) = self.starred(end)?;
                (Cow::Borrowed(text), prefix)
            }
            next => {
                let error = QueryError::new(filter..start, Problem::NoValue(field));
                return Err(match next {
                    Some('(') => error.hint(format!("write several values as {field}:one,other")),
                    _ => error.hint("write it right behind, without a space"),
                });
            }
        };
        let at = start..self.at;
        Ok(Value { text, prefix, at })
    }

    fn unknown_filter(&self, name: &str) -> QueryError {
        let end = self.at + name.len() + 1;
        let what = Problem::UnknownFilter(format!("{}:", clip(name)));
        let written = self.query.get(self.at..self.end_of_word(false));
        let whole = written.filter(|written| written.len() > name.len() + 1);
        let text = whole.and_then(quoted);
        let text = text.map_or(String::new(), |text| format!(": {text}"));
        let hint = match meant(name) {
            Some(field) => format!("did you mean {field}:? to look for the text, quote it{text}"),
            None => format!("to look for the text, quote it{text}"),
        };
        QueryError::new(self.at..end, what).hint(hint)
    }
}

/// Whether a name that is no filter's, with a colon and a value behind it, was meant to be one. Addresses,
/// drives, and names with a port or a version are not.
fn looks_like_filter(name: &str, value: &str) -> bool {
    let lower_case = name.bytes().all(|byte| byte.is_ascii_lowercase());
    let Some(first) = value.chars().next() else {
        return false;
    };
    if !lower_case || ends_term(first) || first == '\\' || value.starts_with("//") {
        return false;
    }
    if first.is_ascii_digit() || first == '/' {
        return nearest(name, Field::ALL.iter().map(|field| field.as_str())).is_some();
    }
    true
}

/// The filter that was probably meant: one that is written almost like it, or goes by this name elsewhere.
fn meant(name: &str) -> Option<Field> {
    let known = nearest(name, Field::ALL.iter().map(|field| field.as_str()));
    known.and_then(Field::from_word).or(match name {
        "after" | "date" | "from" | "newer" | "on" => Some(Field::Since),
        "before" | "older" | "to" => Some(Field::Until),
        "author" | "by" | "type" | "kind" => Some(Field::Role),
        "client" | "source" => Some(Field::Agent),
        "cwd" | "dir" | "directory" | "repo" | "repository" | "workspace" => Some(Field::Project),
        "file" | "filename" => Some(Field::Path),
        "id" | "run" => Some(Field::Session),
        "is" | "state" => Some(Field::Status),
        "price" | "usd" => Some(Field::Cost),
        _ => None,
    })
}

/// The one of some words that is written almost like this one.
pub(super) fn nearest<'w>(word: &str, known: impl Iterator<Item = &'w str>) -> Option<&'w str> {
    // Measuring takes time in proportion to the length, and nothing that long is near.
    if word.len() > 32 {
        return None;
    }
    let word = word.to_ascii_lowercase();
    known
        .map(|known| (strsim::osa_distance(&word, known), known))
        // One slip of the finger in a short word, two in a long one.
        .filter(|(distance, known)| *distance <= known.len().min(word.len()) / 3)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, known)| known)
}

fn distance(text: &str, at: Range<usize>) -> Result<u32, QueryError> {
    let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let number = digits.then(|| text.parse().ok()).flatten();
    number
        .filter(|number| *number <= Query::MAX_DISTANCE)
        .ok_or_else(|| {
            QueryError::new(at, Problem::NoDistance(clip(text)))
                .hint(format!("write a number up to {}", Query::MAX_DISTANCE))
        })
}

/// Straight, and curved in the ways that languages have.
fn is_quote(c: char) -> bool {
    matches!(c, '"' | '\u{201c}' | '\u{201d}' | '\u{201e}')
}

/// Whether no word goes on here.
fn ends_term(c: char) -> bool {
    c.is_whitespace() || matches!(c, ')' | '|')
}
