use insta::assert_snapshot;

use crate::testkit::{hostile, read};

const THREAD: &str = include_str!("../../fixtures/amp/session.json");

#[test]
fn a_thread() {
    let read = read(THREAD.as_bytes(), "T-1.json").unwrap();
    assert_snapshot!(read.lines());
    let usage = read.usage();
    assert_eq!(
        (
            usage.input,
            usage.cache_read,
            usage.cache_write,
            usage.output
        ),
        (Some(12), Some(3), Some(4), Some(7))
    );
    assert_eq!(read.session.cwd.as_deref(), Some("/tmp/a b"));
    assert_eq!(read.blobs, 1);
}

#[test]
fn broken_documents() {
    hostile(&super::Amp, super::THREAD, THREAD);
}
