//! The list of the frames of a chunk, so that a part of it can be read without the rest.
//!
//! It is a frame itself, of a kind that `zstd` passes over, in the layout of zstd's seekable format. Nothing in it is
//! believed: what it says has to fit the file and the frames, and whoever finds that it does not reads the whole chunk.

use std::io;
use std::ops::Range;

use crate::objects::Object;

/// The frame that `zstd` passes over, and what the seekable format ends with.
const SKIPPED: u32 = 0x184D_2A5E;
const SEEKABLE: u32 = 0x8F92_EAB1;

/// What stands before the list, for each frame, and behind it.
const HEAD: usize = 8;
const ENTRY: usize = 8;
const FOOT: usize = 9;

/// No chunk has more frames, and so no list is longer.
const FRAMES: usize = 64;
pub(super) const LONGEST: usize = HEAD + FRAMES * ENTRY + FOOT;

/// How long each frame is, packed and unpacked.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Table(Vec<[u32; 2]>);

/// Where a frame is in its file, and what of the chunk it holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Frame {
    pub(super) packed: Range<u64>,
    pub(super) plain: Range<u64>,
}

impl Table {
    /// Adds a frame.
    pub(super) fn push(&mut self, packed: usize, plain: usize) {
        // A chunk has 4 MiB.
        let short = |len| u32::try_from(len).unwrap_or(u32::MAX);
        self.0.push([short(packed), short(plain)]);
    }

    /// Writes the list behind the frames, unless it would be longer than any that is read.
    pub(super) fn write(&self, out: &mut Vec<u8>) {
        if self.0.len() > FRAMES {
            return;
        }
        let frames = u32::try_from(self.0.len()).unwrap_or(u32::MAX);
        let len = u32::try_from(self.0.len() * ENTRY + FOOT).unwrap_or(u32::MAX);
        let numbers = [SKIPPED, len].into_iter();
        for number in numbers
            .chain(self.0.iter().copied().flatten())
            .chain([frames])
        {
            out.extend_from_slice(&number.to_le_bytes());
        }
        // The frames have checksums of their own; the list repeats none.
        out.push(0);
        out.extend_from_slice(&SEEKABLE.to_le_bytes());
    }

    /// The list in a chunk's file; `None` when it has none, or one that does not fit it. `len` is how long the chunk is.
    pub(super) fn read(object: &dyn Object, len: u64) -> io::Result<Option<Self>> {
        let size = object.len()?;
        let wanted = size.min(LONGEST as u64);
        let mut end = vec![0; usize::try_from(wanted).unwrap_or(0)];
        object.read_at(&mut end, size - wanted)?;
        Ok(Self::parse(&end, size, len))
    }

    /// Parses what a file of `size` bytes ends with.
    fn parse(end: &[u8], size: u64, len: u64) -> Option<Self> {
        let number = |at: usize| {
            let bytes = end.get(at..)?.first_chunk()?;
            Some(u32::from_le_bytes(*bytes))
        };
        let foot = end.len().checked_sub(FOOT)?;
        let frames = usize::try_from(number(foot)?).ok()?;
        let is_ours = number(foot + 5)? == SEEKABLE && end.get(foot + 4) == Some(&0);
        if !is_ours || !(1..=FRAMES).contains(&frames) {
            return None;
        }
        let first = foot.checked_sub(frames * ENTRY)?;
        let head = first.checked_sub(HEAD)?;
        let said = usize::try_from(number(head + 4)?).ok()?;
        if number(head)? != SKIPPED || said != frames * ENTRY + FOOT {
            return None;
        }
        let mut table = Self::default();
        let (mut packed, mut plain) = (0, 0);
        for nth in 0..frames {
            let entry = [
                number(first + nth * ENTRY)?,
                number(first + nth * ENTRY + 4)?,
            ];
            packed += u64::from(entry[0]);
            plain += u64::from(entry[1]);
            table.0.push(entry);
        }
        let fits = plain == len && packed + (end.len() - head) as u64 == size;
        fits.then_some(table)
    }

    /// The frame that holds this byte of the chunk.
    pub(super) fn frame(&self, byte: u64) -> Option<Frame> {
        let (mut packed, mut plain) = (0, 0);
        for [of_file, of_chunk] in &self.0 {
            let frame = Frame {
                packed: packed..packed + u64::from(*of_file),
                plain: plain..plain + u64::from(*of_chunk),
            };
            if frame.plain.contains(&byte) {
                return Some(frame);
            }
            (packed, plain) = (frame.packed.end, frame.plain.end);
        }
        None
    }
}
