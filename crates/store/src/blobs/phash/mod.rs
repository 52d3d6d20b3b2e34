//! What a picture looks like, in 64 bits.
//!
//! The difference hash `dhash64` of `.agentlog`: a picture is made grey and shrunk to 9 by 8, and each bit
//! says whether a point is brighter than the one to its left. Pictures that look alike differ in few bits.
//! The bits are those that Python's `imagehash.dhash` gives, so hashes in traces of others can be compared.

mod resample;

#[cfg(feature = "images")]
mod decode;

#[cfg(test)]
mod tests;

use std::fmt;
use std::str::FromStr;

#[cfg(feature = "images")]
pub use decode::{ImageError, MAX_PIXELS, of_image};

/// What `phash.algo` of a `blob_ref` says of such a hash.
pub const ALGORITHM: &str = "dhash64";

/// Pictures that differ in no more bits are nearly the same.
pub const NEAR: u32 = 10;

/// How wide and high a picture is when it is compared.
const WIDTH: usize = 9;
const HEIGHT: usize = 8;

/// The difference hash of a picture. Shown and parsed as 16 lowercase hex digits.
///
/// ```
/// use quipu_store::blobs::phash::DHash;
///
/// let hash: DHash = "00ff00ff00ff00ff".parse()?;
/// assert_eq!(hash.distance("00ff00ff00ff00fe".parse()?), 1);
/// assert!(hash.is_near("00ff00ff00ff0000".parse()?));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DHash(pub u64);

impl DHash {
    /// Of a grey picture, given as its points row by row.
    ///
    /// `None` when there are not as many points as that, or none at all.
    pub fn of_grey(width: usize, height: usize, points: &[u8]) -> Option<Self> {
        if width == 0 || width.checked_mul(height) != Some(points.len()) || points.is_empty() {
            return None;
        }
        let small = resample::resize(width, height, points, WIDTH, HEIGHT);
        let mut bits = 0;
        for row in small.chunks_exact(WIDTH) {
            for pair in row.windows(2) {
                bits = bits << 1 | u64::from(pair[1] > pair[0]);
            }
        }
        Some(Self(bits))
    }

    /// In how many bits two hashes differ.
    pub fn distance(self, other: Self) -> u32 {
        (self.0 ^ other.0).count_ones()
    }

    /// Whether two pictures are nearly the same: [`NEAR`] bits or fewer.
    pub fn is_near(self, other: Self) -> bool {
        self.distance(other) <= NEAR
    }
}

impl fmt::Display for DHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

/// The text is no difference hash.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("not a difference hash in 16 hex digits: {0:?}")]
pub struct NotAHash(String);

impl FromStr for DHash {
    type Err = NotAHash;

    fn from_str(text: &str) -> Result<Self, NotAHash> {
        let is_hex = text.len() == 16 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
        let bits = is_hex.then(|| u64::from_str_radix(text, 16).ok()).flatten();
        bits.map(Self).ok_or_else(|| NotAHash(text.to_owned()))
    }
}
