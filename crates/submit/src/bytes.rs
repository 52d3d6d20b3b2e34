//! Bytes that are counted and hashed as they are read.

use std::io::{self, Read};

use quipu_model::hex;
use sha2::{Digest as _, Sha256};

/// Reads, and keeps account of what was read.
pub(crate) struct Measured<R> {
    inner: R,
    hash: Sha256,
    bytes: u64,
}

impl<R: Read> Measured<R> {
    pub(crate) fn new(inner: R) -> Self {
        let hash = Sha256::new();
        Self {
            inner,
            hash,
            bytes: 0,
        }
    }

    /// How much was read, and its SHA-256 in hex.
    pub(crate) fn finish(self) -> (u64, String) {
        (self.bytes, hex::encode(&self.hash.finalize()))
    }
}

impl<R: Read> Read for Measured<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let n = self.inner.read(buffer)?;
        self.hash.update(&buffer[..n]);
        self.bytes = self.bytes.saturating_add(n as u64);
        Ok(n)
    }
}

/// What a reader says that gives no more than so much.
#[derive(Debug, thiserror::Error)]
#[error("there are more than {limit} bytes")]
pub(crate) struct TooMuch {
    /// What the limit is called.
    pub(crate) name: &'static str,
    /// How much it gives.
    pub(crate) limit: u64,
}

/// Reads up to a limit. One byte more is an error, and not an end: a cut would be taken for the whole.
pub(crate) struct Limited<R> {
    inner: R,
    name: &'static str,
    limit: u64,
    left: u64,
}

impl<R: Read> Limited<R> {
    pub(crate) fn new(inner: R, name: &'static str, limit: u64) -> Self {
        Self {
            inner,
            name,
            limit,
            left: limit,
        }
    }
}

impl<R: Read> Read for Limited<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let n = self.inner.read(buffer)?;
        let Some(left) = self.left.checked_sub(n as u64) else {
            let (name, limit) = (self.name, self.limit);
            return Err(io::Error::other(TooMuch { name, limit }));
        };
        self.left = left;
        Ok(n)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_is_an_error_and_no_end() {
        let mut out = Vec::new();
        assert_eq!(
            Limited::new(&b"abc"[..], "x", 3)
                .read_to_end(&mut out)
                .unwrap(),
            3
        );
        let error = Limited::new(&b"abcd"[..], "x", 3)
            .read_to_end(&mut out)
            .unwrap_err();
        assert_eq!(error.to_string(), "there are more than 3 bytes");
    }
}
