//! One module per command.

pub(crate) mod demo;
pub(crate) mod emit;
pub(crate) mod render;
pub(crate) mod repair;
pub(crate) mod show;
pub(crate) mod tail;
pub(crate) mod tree;
pub(crate) mod verify;
