//! The normalized transcript.
