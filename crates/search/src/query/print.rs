//! Queries as text, in one form.

use std::fmt::{self, Display, Formatter};

use super::lex::{Kind, Lexer, Term};
use super::{Expr, Filter, Pattern, Query, Side};

/// A text that reads as the same query, with times in UTC. A word that could not stand as it is, which the
/// parser makes none of, is printed as a phrase.
impl Display for Query {
    fn fmt(&self, to: &mut Formatter<'_>) -> fmt::Result {
        match &self.expr {
            Expr::All => Ok(()),
            expr => expr.fmt(to),
        }
    }
}

impl Display for Expr {
    fn fmt(&self, to: &mut Formatter<'_>) -> fmt::Result {
        match self {
            // Only the whole query is everything, and that is empty.
            Self::All => to.write_str("*"),
            Self::Word { text, prefix } => word(to, text, *prefix),
            Self::Phrase { text, prefix, slop } => {
                to.write_str(&quote(text))?;
                star(to, *prefix)?;
                match slop {
                    0 => Ok(()),
                    slop => write!(to, "~{slop}"),
                }
            }
            Self::Near {
                left,
                right,
                distance,
            } => {
                side(to, left)?;
                write!(to, " NEAR/{distance} ")?;
                side(to, right)
            }
            Self::Filter(filter) => filter.fmt(to),
            Self::Not(expr) => {
                to.write_str(if takes_minus(expr) { "-" } else { "NOT " })?;
                let group = matches!(**expr, Self::And(_) | Self::Or(_) | Self::Near { .. });
                in_group(to, expr, group)
            }
            Self::And(parts) => joined(to, parts, " ", |part| matches!(part, Self::Or(_))),
            Self::Or(parts) => joined(to, parts, " OR ", |_| false),
        }
    }
}

/// Before some words a minus would be a part of the word.
fn takes_minus(expr: &Expr) -> bool {
    match expr {
        Expr::Word { text, .. } => text.starts_with(char::is_alphanumeric),
        Expr::Not(_) => false,
        _ => true,
    }
}

fn joined(
    to: &mut Formatter<'_>,
    parts: &[Expr],
    between: &str,
    group: fn(&Expr) -> bool,
) -> fmt::Result {
    for (n, part) in parts.iter().enumerate() {
        if n > 0 {
            to.write_str(between)?;
        }
        in_group(to, part, group(part))?;
    }
    Ok(())
}

fn in_group(to: &mut Formatter<'_>, expr: &Expr, group: bool) -> fmt::Result {
    if group {
        write!(to, "({expr})")
    } else {
        expr.fmt(to)
    }
}

fn star(to: &mut Formatter<'_>, prefix: bool) -> fmt::Result {
    to.write_str(if prefix { "*" } else { "" })
}

fn side(to: &mut Formatter<'_>, side: &Side) -> fmt::Result {
    match side {
        Side::Word(text) => word(to, text, false),
        Side::Phrase(text) => to.write_str(&quote(text)),
    }
}

fn word(to: &mut Formatter<'_>, text: &str, prefix: bool) -> fmt::Result {
    let written = format!("{text}{}", if prefix { "*" } else { "" });
    let word = Kind::Term(Term::Word { text, prefix });
    let read = Lexer::new(&written).next();
    if matches!(read, Ok(Some(token)) if token.kind == word) {
        return to.write_str(&written);
    }
    to.write_str(&quote(text))?;
    star(to, prefix)
}

/// In quotation marks.
pub(super) fn quote(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', r"\\").replace('"', "\\\""))
}

impl Display for Filter {
    fn fmt(&self, to: &mut Formatter<'_>) -> fmt::Result {
        write!(to, "{}:", self.field())?;
        match self {
            Self::Agent(pattern)
            | Self::Model(pattern)
            | Self::Tool(pattern)
            | Self::Project(pattern)
            | Self::Branch(pattern) => {
                value(to, pattern.text())?;
                star(to, matches!(pattern, Pattern::Prefix(_)))
            }
            Self::Path(text) | Self::Session(text) | Self::Title(text) => value(to, text),
            Self::Role(role) => role.fmt(to),
            Self::Status(status) => status.fmt(to),
            Self::Has(has) => has.fmt(to),
            Self::Since(at) | Self::Until(at) => at.fmt(to),
            Self::Cost(comparison, sum) => write!(to, "{}{sum}", comparison.as_str()),
        }
    }
}

fn value(to: &mut Formatter<'_>, text: &str) -> fmt::Result {
    let plain = |c: char| c.is_alphanumeric() || "_-./@+#%=~:".contains(c);
    // A colon at the beginning would make the filter a word.
    if !text.is_empty() && !text.starts_with(':') && text.chars().all(plain) {
        to.write_str(text)
    } else {
        to.write_str(&quote(text))
    }
}
