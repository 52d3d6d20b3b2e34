//! The documents that programs read: what `--json` and `--jsonl` write, as types.
//!
//! Field names are part of the contract with scripts. Names are `snake_case`. What nobody knows is `null`,
//! never zero. docs/json.md is written from the comments of these types; a test says when it is out of date.

mod describe;
#[cfg(test)]
mod docs;

pub mod annotations;
pub mod blocks;
pub mod context;
pub mod convert;
pub mod cord;
pub mod doctor;
pub mod execution;
pub mod explain;
pub mod home;
pub mod import;
pub mod keys;
pub mod prune;
pub mod redact;
pub mod repair;
pub mod search;
pub mod serve;
pub mod share;
pub mod show;
pub mod stats;
pub mod timeline;
pub mod tools;
pub mod trace;
pub mod transcript;
pub mod tree;
pub mod verify;

use std::fmt::Display;

use serde::{Deserialize, Serialize};

/// A point in time, as RFC 3339 writes it, in UTC.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[cfg_attr(feature = "openapi", schema(value_type = String, format = DateTime))]
#[serde(transparent)]
pub struct Time(pub String);

impl Time {
    /// A time that writes itself as RFC 3339.
    pub fn of(at: impl Display) -> Self {
        Self(at.to_string())
    }
}

/// A sum in US dollars: a decimal number as text, exact to the last digit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[cfg_attr(feature = "openapi", schema(value_type = String))]
#[serde(transparent)]
pub struct Usd(pub String);

impl Usd {
    /// A sum that writes itself as a decimal number.
    pub fn of(sum: impl Display) -> Self {
        Self(sum.to_string())
    }
}
