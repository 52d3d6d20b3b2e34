//! What values of documents have to be, in the checkers whose rules are tables.

use quipu_model::json::{Kind, Node};

/// What a value has to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wanted {
    Text,
    /// A whole number from 0, written as one.
    Count,
    Number,
    Bool,
    List,
    Object,
    TextOrList,
    TextOrNumber,
    TextOrObject,
}

impl Wanted {
    /// In words.
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Text => "a string",
            Self::Count => "a whole number",
            Self::Number => "a number",
            Self::Bool => "true or false",
            Self::List => "a list",
            Self::Object => "an object",
            Self::TextOrList => "a string or a list",
            Self::TextOrNumber => "a string or a number",
            Self::TextOrObject => "a string or an object",
        }
    }

    /// Whether a value is that.
    #[inline]
    pub(crate) fn fits(self, value: Node<'_>) -> bool {
        match (self, value.kind()) {
            (
                Self::Text | Self::TextOrList | Self::TextOrNumber | Self::TextOrObject,
                Kind::String,
            )
            | (Self::Number | Self::TextOrNumber, Kind::Number)
            | (Self::Bool, Kind::Bool)
            | (Self::List | Self::TextOrList, Kind::List)
            | (Self::Object | Self::TextOrObject, Kind::Object) => true,
            (Self::Count, Kind::Number) => {
                let digits = value.raw().get();
                digits.bytes().all(|digit| digit.is_ascii_digit())
            }
            _ => false,
        }
    }
}

/// What a value is, in words.
pub(crate) fn what(value: Node<'_>) -> &'static str {
    match value.kind() {
        Kind::Null => "null",
        Kind::Bool => "a boolean",
        Kind::Number => "a number",
        Kind::String => "a string",
        Kind::List => "a list",
        Kind::Object => "an object",
    }
}
