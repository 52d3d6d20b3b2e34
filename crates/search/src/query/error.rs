//! What can be wrong with a query.

use std::ops::Range;

use super::{Field, Query};
use crate::when::WhenError;

/// Something is wrong with a query, at some place in it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{what} (at byte {})", .at.start)]
pub struct QueryError {
    /// The place, in bytes of the query. It may be empty, where something is missing.
    pub at: Range<usize>,
    /// What is wrong.
    pub what: Problem,
    /// What to do about it.
    pub hint: Option<String>,
}

/// What is wrong with a query.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Problem {
    /// It is too long.
    #[error("the query is longer than {} bytes", Query::MAX_BYTES)]
    TooLong,
    /// It has too many terms.
    #[error("the query has more than {} terms", Query::MAX_TERMS)]
    TooManyTerms,
    /// Too many parentheses are open.
    #[error("parentheses are nested more than {} deep", Query::MAX_DEPTH)]
    TooDeep,
    /// A quotation mark has no second one.
    #[error("the quotation mark is never closed")]
    OpenQuote,
    /// A parenthesis has no second one.
    #[error("the parenthesis is never closed")]
    OpenGroup,
    /// A parenthesis has no first one.
    #[error("the parenthesis was never opened")]
    StrayClose,
    /// `()`
    #[error("there is nothing between the parentheses")]
    EmptyGroup,
    /// `""`
    #[error("there is nothing between the quotation marks")]
    EmptyPhrase,
    /// An operator where something should come first.
    #[error("there is nothing before {0}")]
    NothingBefore(&'static str),
    /// An operator with nothing, or another one, behind it.
    #[error("there is nothing after {0}")]
    NothingAfter(&'static str),
    /// An asterisk that is not at the end of a word.
    #[error("* may only stand at the end of a word")]
    MisplacedStar,
    /// `NEAR` beside something else than words and phrases.
    #[error("NEAR takes a word or a phrase on each side")]
    NearSide,
    /// What follows `~` or `NEAR/` is no number, or too large a one.
    #[error("{0:?} is no distance")]
    NoDistance(String),
    /// A phrase with both an asterisk and a distance.
    #[error("a phrase takes * or ~, not both")]
    StarAndDistance,
    /// It looks like a filter, but there is none of that name.
    #[error("there is no filter {0:?}")]
    UnknownFilter(String),
    /// A filter without a value, or a comma without one.
    #[error("{0}: has no value")]
    NoValue(Field),
    /// Several values where there can be one.
    #[error("{0}: takes one value")]
    OneValue(Field),
    /// An asterisk where a value is not a name.
    #[error("{0}: takes no *")]
    NoStar(Field),
    /// A value that is none of those that a filter takes.
    #[error("{word:?} is no value of {field}:")]
    UnknownWord {
        /// The filter.
        field: Field,
        /// The value.
        word: String,
    },
    /// No time, or one that cannot be told.
    #[error(transparent)]
    When(#[from] WhenError),
    /// No sum of money.
    #[error("{0:?} is no sum of dollars")]
    NoSum(String),
    /// A range whose end comes before its beginning.
    #[error("the range ends before it begins")]
    EmptyRange,
}

impl QueryError {
    pub(super) fn new(at: Range<usize>, what: impl Into<Problem>) -> Self {
        Self {
            at,
            what: what.into(),
            hint: None,
        }
    }

    pub(super) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// The query on one line and, on a second, marks below the place. Both are indented by two, and fit
    /// into eighty columns. What a terminal might act on is made visible.
    pub fn render(&self, query: &str) -> String {
        super::render::render(query, &self.at)
    }
}

/// Some text of a query, short enough to be named in a message.
pub(super) fn clip(text: &str) -> String {
    const SHOWN: usize = 40;
    match text.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

/// Some text of a query in quotation marks, as it could be written to be looked for. Only when it is short
/// and can be shown as it is: anything else would be no advice.
pub(super) fn quoted(text: &str) -> Option<String> {
    let plain = text.chars().all(|c| super::render::shown(c).is_none());
    let short = text.chars().count() <= 40;
    (plain && short).then(|| super::print::quote(text))
}
