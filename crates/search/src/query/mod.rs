//! The language of `quipu search`: text in, [`Query`] out.
//!
//! ```text
//! query   = any                       any  = all { ("OR" | "|") all }
//! all     = not { ["AND"] not }       not  = { "NOT" | "-" } (near | term)
//! near    = side { "NEAR" ["/" number] side }
//! term    = "(" any ")" | word ["*"] | phrase ["*" | "~" number] | field ":" value { "," value }
//! ```
//!
//! It reads, and does not look anything up: a word is given as it was written, and what is a word of the
//! text is the index's to say. Nothing is guessed either: what could mean two things is an error that
//! points at the place. `docs/search.md` tells all of it to users, and a test reads its examples.
//!
//! **Invariant:** a query that was read is printed as a text that reads as the same query, unless that is so
//! much longer that it is beyond the limits.
//! **Invariant:** reading takes time in proportion to the text, and is nested at most
//! [`Query::MAX_DEPTH`] deep, so whoever walks a query may recurse.
//!
//! ```
//! use quipu_search::query::{Clock, Expr, Query};
//! use jiff::{Timestamp, tz::TimeZone};
//!
//! let clock = Clock { now: Timestamp::UNIX_EPOCH, zone: TimeZone::UTC };
//! let query = Query::parse(r#"panic "index out of bounds" -role:tool"#, &clock)?;
//! assert!(matches!(&query.expr, Expr::And(parts) if parts.len() == 3));
//! assert_eq!(query.words().count(), 2);
//!
//! let wrong = "panic rule:tool";
//! let error = Query::parse(wrong, &clock).unwrap_err();
//! assert_eq!(error.render(wrong), "  panic rule:tool\n        ^^^^^");
//! assert_eq!(error.hint.as_deref(), Some(r#"did you mean role:? to look for the text, quote it: "rule:tool""#));
//! # Ok::<(), quipu_search::query::QueryError>(())
//! ```

mod error;
mod filter;
mod lex;
mod parse;
mod print;
mod render;
#[cfg(test)]
mod tests;
mod value;

pub use crate::when::Clock;
pub use error::{Problem, QueryError};
pub use filter::{Comparison, Field, Filter, Has, Pattern, Role};

/// What is looked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Query {
    /// What an event has to be. [`Expr::All`] when nothing was asked for.
    pub expr: Expr,
}

/// A condition that an event meets or does not.
///
/// The parser makes them in one form only, which [`Expr::and`], [`Expr::or`] and [`Expr::not`] make as well:
/// `And` and `Or` have two parts or more, none of which is of the same kind; `Not` is not doubled; `All` is
/// no part of anything.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Expr {
    /// Every event meets it.
    All,
    /// A word, as it was written: `foo`, but also `foo_bar`, `src/x.rs` and `->`, which the index divides
    /// into words of its own, or finds none in.
    Word {
        /// As it was written, without the asterisk.
        text: String,
        /// Whether it may go on.
        prefix: bool,
    },
    /// Words in a row.
    Phrase {
        /// What stood between the quotation marks.
        text: String,
        /// Whether the last word may go on. Then `slop` is zero.
        prefix: bool,
        /// By how many places in all the words may be away from where they should be.
        slop: u32,
    },
    /// Two words or phrases that are not far from each other, in either order.
    Near {
        /// The one.
        left: Side,
        /// The other.
        right: Side,
        /// How many words at most stand between them.
        distance: u32,
    },
    /// Something that is not about words of the text.
    Filter(Filter),
    /// The opposite.
    Not(Box<Expr>),
    /// All of these.
    And(Vec<Expr>),
    /// At least one of these.
    Or(Vec<Expr>),
}

/// What stands on a side of `NEAR`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Side {
    /// A word, as it was written.
    Word(String),
    /// Words in a row.
    Phrase(String),
}

/// A word or phrase that a query looks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sought<'q> {
    /// As it was written.
    pub text: &'q str,
    /// Whether its last word may go on.
    pub prefix: bool,
}

impl Query {
    /// The longest query, in bytes.
    pub const MAX_BYTES: usize = 256 * 1024;
    /// The most terms: words, phrases and values of filters.
    pub const MAX_TERMS: usize = 10_000;
    /// How deep parentheses may be nested.
    pub const MAX_DEPTH: usize = 64;
    /// The most that may be written after `~` and `NEAR/`.
    pub const MAX_DISTANCE: u32 = 1_000;
    /// How many words may stand between the sides of a plain `NEAR`.
    pub const NEAR: u32 = 10;

    /// Reads a query. Times in it are of the clock's zone, and ages go back from its time.
    pub fn parse(text: &str, clock: &Clock) -> Result<Self, QueryError> {
        parse::parse(text, clock).map(|expr| Self { expr })
    }

    /// The words and phrases that it looks for, in their order. Those that it rules out are none of them.
    pub fn words(&self) -> impl Iterator<Item = Sought<'_>> {
        let mut rest = vec![&self.expr];
        let mut right = None;
        std::iter::from_fn(move || {
            if let Some(side) = right.take() {
                return Some(Sought::side(side));
            }
            while let Some(expr) = rest.pop() {
                match expr {
                    Expr::Word { text, prefix } | Expr::Phrase { text, prefix, .. } => {
                        let prefix = *prefix;
                        return Some(Sought { text, prefix });
                    }
                    Expr::Near {
                        left, right: other, ..
                    } => {
                        right = Some(other);
                        return Some(Sought::side(left));
                    }
                    Expr::And(parts) | Expr::Or(parts) => rest.extend(parts.iter().rev()),
                    Expr::All | Expr::Filter(_) | Expr::Not(_) => {}
                }
            }
            None
        })
    }
}

impl<'q> Sought<'q> {
    fn side(side: &'q Side) -> Self {
        let (Side::Word(text) | Side::Phrase(text)) = side;
        Self {
            text,
            prefix: false,
        }
    }
}

impl Expr {
    /// All of these.
    pub fn and(parts: Vec<Self>) -> Self {
        let mut flat = Vec::with_capacity(parts.len());
        for part in parts {
            match part {
                Self::All => {}
                Self::And(inner) => flat.extend(inner),
                part => flat.push(part),
            }
        }
        match flat.len() {
            0 => Self::All,
            1 => flat.remove(0),
            _ => Self::And(flat),
        }
    }

    /// At least one of these; of no condition at all, every event is one that meets it.
    pub fn or(parts: Vec<Self>) -> Self {
        let mut flat = Vec::with_capacity(parts.len());
        for part in parts {
            match part {
                Self::All => return Self::All,
                Self::Or(inner) => flat.extend(inner),
                part => flat.push(part),
            }
        }
        match flat.len() {
            0 => Self::All,
            1 => flat.remove(0),
            _ => Self::Or(flat),
        }
    }

    /// The opposite of this.
    #[expect(
        clippy::should_implement_trait,
        reason = "it is named like its variant"
    )]
    pub fn not(expr: Self) -> Self {
        match expr {
            Self::Not(expr) => *expr,
            expr => Self::Not(Box::new(expr)),
        }
    }
}
