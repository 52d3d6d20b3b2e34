//! Which values of JSON texts are looked at: for tests that hold a reader to what it says it reads.
//!
//! There only in builds with debug assertions, and idle until a test asks for it.

use std::cell::{Cell, RefCell};
use std::ops::Range;

thread_local! {
    static IS_ON: Cell<bool> = const { Cell::new(false) };
    static SEEN: RefCell<Vec<Range<usize>>> = const { RefCell::new(Vec::new()) };
}

/// Notes from now on, in this thread, which values are looked at.
pub fn begin() {
    SEEN.with_borrow_mut(Vec::clear);
    IS_ON.set(true);
}

/// Ends it. Gives where in memory the values were that were looked at.
pub fn end() -> Vec<Range<usize>> {
    IS_ON.set(false);
    SEEN.take()
}

/// A value was looked at, with all that is in it.
#[inline]
pub(super) fn mark(text: &str) {
    if IS_ON.get() {
        let start = text.as_ptr() as usize;
        SEEN.with_borrow_mut(|seen| seen.push(start..start + text.len()));
    }
}
