//! The `quipu` command, through the real binary. One test binary for all, so that it links once.

mod cli;
