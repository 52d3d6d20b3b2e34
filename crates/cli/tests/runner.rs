//! The `quipu` command, through the real binary. One test binary for all, so that it links once.

#![allow(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    clippy::format_collect,
    clippy::large_stack_arrays,
    clippy::print_stderr,
    reason = "tests may panic, write plain files and talk"
)]

mod cli;
