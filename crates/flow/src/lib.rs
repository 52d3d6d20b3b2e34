//! Workflows whose every step, message and tool call is on the record.

pub mod agent;
pub mod beneath;
pub mod definition;
pub mod engine;
pub mod expression;
pub mod http;
mod names;
pub mod operation;
pub mod plugin;
pub mod process;
pub mod template;
pub mod tools;
