//! What transcripts come to.

mod blocks;
mod context;
mod corpus;
mod kit;
mod timeline;
mod tools;
