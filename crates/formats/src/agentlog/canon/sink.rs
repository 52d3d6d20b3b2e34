//! Where canonical bytes go.

use sha2::{Digest as _, Sha256};

/// Takes canonical bytes.
pub(super) trait Sink {
    fn put(&mut self, bytes: &[u8]);
    fn byte(&mut self, byte: u8);
}

impl Sink for Vec<u8> {
    #[inline]
    fn put(&mut self, bytes: &[u8]) {
        self.extend_from_slice(bytes);
    }

    #[inline]
    fn byte(&mut self, byte: u8) {
        self.push(byte);
    }
}

/// How much is gathered before it is hashed.
const BLOCK: usize = 16 * 1024;

/// What is gathered in.
#[derive(Debug)]
pub(super) struct Block(Box<[u8; BLOCK]>);

impl Default for Block {
    fn default() -> Self {
        Self(Box::new([0; BLOCK]))
    }
}

/// Hashes what is put to it, a block at a time.
pub(super) struct Hashing<'b> {
    block: &'b mut [u8; BLOCK],
    len: usize,
    hash: Sha256,
}

impl<'b> Hashing<'b> {
    pub(super) fn new(block: &'b mut Block) -> Self {
        Self {
            block: &mut block.0,
            len: 0,
            hash: Sha256::new(),
        }
    }

    pub(super) fn finish(mut self) -> [u8; 32] {
        self.hash.update(&self.block[..self.len]);
        self.hash.finalize().into()
    }

    #[cold]
    fn spill(&mut self, bytes: &[u8]) {
        self.hash.update(&self.block[..self.len]);
        self.len = 0;
        if bytes.len() >= BLOCK {
            self.hash.update(bytes);
        } else {
            self.block[..bytes.len()].copy_from_slice(bytes);
            self.len = bytes.len();
        }
    }
}

impl Sink for Hashing<'_> {
    #[inline]
    fn put(&mut self, bytes: &[u8]) {
        match self.block.get_mut(self.len..self.len + bytes.len()) {
            Some(room) => {
                copy(bytes, room);
                self.len += bytes.len();
            }
            None => self.spill(bytes),
        }
    }

    #[inline]
    fn byte(&mut self, byte: u8) {
        match self.block.get_mut(self.len) {
            Some(room) => {
                *room = byte;
                self.len += 1;
            }
            None => self.spill(&[byte]),
        }
    }
}

/// Copies to a place of the same length. Most of what is put is a few bytes long, for which calling the
/// system's copy costs more than the copy; two pieces that overlap do as well.
#[inline]
fn copy(from: &[u8], to: &mut [u8]) {
    fn pieces<const N: usize>(from: &[u8], to: &mut [u8]) -> Option<()> {
        let (first, last) = (*from.first_chunk::<N>()?, *from.last_chunk::<N>()?);
        *to.first_chunk_mut()? = first;
        *to.last_chunk_mut()? = last;
        Some(())
    }
    let copied = match from.len() {
        4..8 => pieces::<4>(from, to),
        8..16 => pieces::<8>(from, to),
        16..=32 => pieces::<16>(from, to),
        _ => None,
    };
    if copied.is_none() {
        to.copy_from_slice(from);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_length_is_copied_and_hashed() {
        let bytes: Vec<u8> = (0..40_000u32).map(|n| (n % 251) as u8).collect();
        for len in 0..100 {
            let mut to = vec![0; len];
            copy(&bytes[..len], &mut to);
            assert_eq!(to, bytes[..len]);
        }
        for step in [1, 3, 7, 20, 33, 1000, BLOCK, BLOCK + 1, 40_000] {
            let mut block = Block::default();
            let mut hashing = Hashing::new(&mut block);
            for piece in bytes.chunks(step) {
                match piece {
                    [byte] => hashing.byte(*byte),
                    _ => hashing.put(piece),
                }
            }
            let expected: [u8; 32] = Sha256::digest(&bytes).into();
            assert_eq!(hashing.finish(), expected, "{step}");
        }
    }
}
