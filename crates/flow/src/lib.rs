//! Workflows whose every step, message and tool call is on the record.

pub mod agent;
pub mod definition;
pub mod expression;
mod names;
pub mod operation;
pub mod process;
pub mod template;
pub mod tools;
