//! From any log to any format.

#[cfg(feature = "http")]
pub mod send;
