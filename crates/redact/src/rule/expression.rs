//! Expressions of rules, as they are written and as they are understood.
//!
//! Rules of gitleaks are written for Go, which takes a brace that begins no repetition for a brace and knows no sets
//! within classes. Text is bytes here: `\w` is ASCII, and a class is a table of 256 entries.

use regex_automata::meta::{self, Regex};
use regex_syntax::hir::{Hir, HirKind};
use regex_syntax::{Parser, ParserBuilder};

/// What one expression may take of memory; the largest of gitleaks' rules takes a tenth.
const NFA_BYTES: usize = 8 << 20;
/// Steps that are surely below it: those with more are built to see.
const SURE_STEPS: usize = 40_000;

/// An expression that is known to work.
#[derive(Debug, Clone)]
pub(crate) struct Expression {
    pub(crate) hir: Hir,
}

impl Expression {
    /// Reads one.
    pub(crate) fn parse(source: &str) -> Result<Self, String> {
        let hir = match Parser::parse(&mut parser(false), &translate(source, false)) {
            Ok(hir) => hir,
            // Letters of other scripts cannot be said in bytes.
            Err(_) => Parser::parse(&mut parser(true), &translate(source, true))
                .map_err(|error| short(&error))?,
        };
        let expression = Self { hir };
        if steps(&expression.hir) > SURE_STEPS {
            build(&expression.hir)?;
        }
        Ok(expression)
    }

    /// How many groups it has, beside the whole.
    pub(crate) fn groups(&self) -> usize {
        self.hir.properties().explicit_captures_len()
    }
}

fn parser(unicode: bool) -> Parser {
    ParserBuilder::new()
        .unicode(unicode)
        .utf8(false)
        .nest_limit(100)
        .build()
}

/// The first line that says what is wrong, without the picture of where.
fn short(error: &regex_syntax::Error) -> String {
    let text = match error {
        regex_syntax::Error::Parse(error) => error.kind().to_string(),
        regex_syntax::Error::Translate(error) => error.kind().to_string(),
        other => other.to_string(),
    };
    format!("no expression: {text}")
}

/// Makes an expression ready to be looked for.
pub(crate) fn build(hir: &Hir) -> Result<Regex, String> {
    build_with(hir, true)
}

/// The same; or for short texts only, which takes less to be made ready.
pub(crate) fn build_with(hir: &Hir, search: bool) -> Result<Regex, String> {
    let config = meta::Config::new()
        .nfa_size_limit(Some(NFA_BYTES))
        .onepass_size_limit(Some(1 << 20))
        .hybrid_cache_capacity(1 << 20)
        .hybrid(search)
        .auto_prefilter(search)
        .utf8_empty(false);
    let built = Regex::builder().configure(config).build_from_hir(hir);
    built.map_err(|_| "the expression is too large".to_owned())
}

/// How many steps an automaton of it has at most, roughly.
fn steps(hir: &Hir) -> usize {
    match hir.kind() {
        HirKind::Empty | HirKind::Look(_) => 1,
        HirKind::Literal(literal) => literal.0.len(),
        HirKind::Class(class) => match class {
            regex_syntax::hir::Class::Bytes(_) => 1,
            // A range of characters is a few sequences of bytes.
            regex_syntax::hir::Class::Unicode(class) => class.ranges().len().saturating_mul(8),
        },
        HirKind::Capture(capture) => steps(&capture.sub).saturating_add(2),
        HirKind::Repetition(repetition) => {
            let times = repetition.max.unwrap_or(repetition.min + 1).max(1);
            steps(&repetition.sub)
                .saturating_add(1)
                .saturating_mul(times as usize)
        }
        HirKind::Concat(parts) | HirKind::Alternation(parts) => parts
            .iter()
            .fold(1, |sum, part| sum.saturating_add(steps(part))),
    }
}

/// What Go reads differently, said so that it is read as Go does: also where other scripts may stand, words are of ASCII.
fn translate(source: &str, unicode: bool) -> String {
    let bytes = source.as_bytes();
    let mut out = String::with_capacity(source.len() + 8);
    let mut class: Option<usize> = None;
    let mut at = 0;
    while at < bytes.len() {
        let width = source[at..].chars().next().map_or(1, char::len_utf8);
        let this = &source[at..at + width];
        match (this, class) {
            ("\\", _) => {
                let mut behind = source[at + 1..].chars().next().map_or(0, char::len_utf8);
                // `\p{Greek}` and `\x{e9}` have braces of their own.
                let braced = matches!(bytes.get(at + 1..at + 3), Some(b"p{" | b"P{" | b"x{"));
                if let Some(end) = source[at..].find('}').filter(|_| braced) {
                    behind = end;
                }
                let escape = &source[at..at + 1 + behind];
                match escape {
                    "\\Z" => out.push_str("\\z"),
                    "\\b" | "\\B" | "\\w" | "\\d" | "\\s" if unicode && class.is_none() => {
                        out.push_str("(?-u:");
                        out.push_str(escape);
                        out.push(')');
                    }
                    _ => out.push_str(escape),
                }
                at += 1 + behind;
                continue;
            }
            ("{", None) if !repeats(&bytes[at..]) => out.push_str("\\{"),
            ("[", None) => {
                out.push('[');
                if bytes.get(at + 1) == Some(&b'^') {
                    out.push('^');
                    at += 1;
                }
                class = Some(at + 1);
            }
            ("[", Some(_)) if bytes.get(at + 1) != Some(&b':') => out.push_str("\\["),
            ("[", Some(_)) => {
                let length = source[at..].find(":]").map_or(1, |end| end + 2);
                out.push_str(&source[at..at + length]);
                at += length;
                continue;
            }
            ("]", Some(begin)) if at > begin => {
                class = None;
                out.push(']');
            }
            ("]", Some(_)) => out.push_str("\\]"),
            ("&" | "~", Some(_)) => {
                out.push('\\');
                out.push_str(this);
            }
            ("-", Some(_)) if bytes.get(at + 1) == Some(&b'-') => out.push_str("\\-"),
            _ => out.push_str(this),
        }
        at += width;
    }
    out
}

/// Whether a brace begins `{2}`, `{2,}` or `{2,5}`.
fn repeats(bytes: &[u8]) -> bool {
    let inside = bytes[1..].iter().position(|byte| *byte == b'}');
    let Some(inside) = inside.map(|end| &bytes[1..=end]) else {
        return false;
    };
    let mut parts = inside.split(|byte| *byte == b',');
    let number = |part: &[u8]| !part.is_empty() && part.iter().all(u8::is_ascii_digit);
    let low = parts.next().is_some_and(number);
    let high = parts
        .next()
        .is_none_or(|part| part.is_empty() || number(part));
    low && high && parts.next().is_none()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_go_reads_is_read_as_go_reads_it() {
        let cases = [
            (r"^\$(?:\d+|{\d+})$", "${1}", true),
            (r"^\$(?:\d+|{\d+})$", "$1", true),
            (r"^\${(?:[A-Z_]+|[a-z_]+)}$", "${HOME}", true),
            (r"^\{\{[ \t]*[\w ().|]+[ \t]*}}$", "{{ a }}", true),
            (r"^/Users/(?i)[a-z0-9]+/[\w .-/]+$", "/Users/Ada/x y", true),
            (r"^[[a]$", "[", true),
            (r"^[]a]+$", "]a", true),
            (r"^[a&&b~~c--]+$", "&~-", true),
            (r"^[[:alpha:]]+$", "abc", true),
            (r"^a{,3}$", "a{,3}", true),
            (r"^a{2,3}$", "aaa", true),
        ];
        for (source, text, expected) in cases {
            let regex = build(&Expression::parse(source).unwrap().hir).unwrap();
            assert_eq!(regex.is_match(text), expected, "{source} on {text}");
        }
    }

    #[test]
    fn other_scripts_can_be_said_and_too_much_cannot() {
        assert!(Expression::parse(r"\p{Greek}{4}").is_ok());
        assert!(Expression::parse(r"(?:(?:a{1000}){1000}){1000}").is_err());
        assert!(
            Expression::parse("(")
                .unwrap_err()
                .contains("no expression")
        );
    }
}
