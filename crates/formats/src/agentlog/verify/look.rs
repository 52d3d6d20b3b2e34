//! A look at one record: what checks of its fields have in common.

use std::fmt;
use std::hash::RandomState;

use quipu_model::json::Node;

use super::super::record::At;
use super::Rule;
use super::examine::Detail;
use super::found::{Found, Path};
use crate::shape::{Wanted, what};

/// What is needed to check a record, and what comes of it.
pub(super) struct Look<'b> {
    pub(super) at: At,
    pub(super) found: &'b mut Found,
    /// The ids of tool uses that responses asked for, hashed.
    pub(super) uses: &'b mut Vec<u64>,
    pub(super) hasher: &'b RandomState,
    pub(super) detail: Detail,
}

impl Look<'_> {
    #[cold]
    pub(super) fn find(&mut self, rule: Rule, path: &Path<'_>, message: fmt::Arguments<'_>) {
        self.found.add(rule, Some(self.at), Some(path), message);
    }

    /// Whether a value is of the type that it should be.
    #[inline]
    pub(super) fn is(&mut self, path: &Path<'_>, value: Node<'_>, wanted: Wanted) -> bool {
        let fits = wanted.fits(value);
        if !fits {
            self.mistyped(path, value, wanted.as_str());
        }
        fits
    }

    /// A value is of another type than it should be.
    #[cold]
    pub(super) fn mistyped(&mut self, path: &Path<'_>, value: Node<'_>, wanted: &str) {
        self.find(
            Rule::FieldType,
            path,
            format_args!("{} where {wanted} should be", what(value)),
        );
    }
}
