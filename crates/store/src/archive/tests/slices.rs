//! Pieces of a snapshot are what the whole has there, or an error that names the log.

use proptest::prelude::*;

use super::*;
use crate::archive::{CHUNK, ChunkFault, FRAME};

/// Chunks of three frames.
const FRAMED: Sizes = Sizes {
    chunk: 64,
    small: 16,
    frame: 24,
};

impl Kit {
    fn framed() -> Self {
        Self::with(|directory| Archive::with_sizes(directory, FRAMED).unwrap())
    }

    fn slice(&self, snapshot: &Snapshot, offset: u64, len: usize) -> Result<Vec<u8>, ArchiveError> {
        let mut bytes = Vec::new();
        let slices = self.archive.slices(snapshot);
        slices.reader().append(offset, len, &mut bytes)?;
        Ok(bytes)
    }
}

proptest! {
    #[test]
    fn any_pieces_in_any_order_are_what_the_whole_has(
        len in 1..400_usize,
        pieces in prop::collection::vec((any::<prop::sample::Index>(), any::<prop::sample::Index>()), 1..20),
        text in any::<bool>(),
    ) {
        let kit = Kit::framed();
        let bytes = if text { b"all work and no play ".repeat(20)[..len].to_vec() } else { noise(len, 7) };
        let kept = kit.begin(&key("a"), &bytes);
        prop_assert_eq!(kit.read(&kept), &bytes[..]);
        let slices = kit.archive.slices(&kept);
        let mut reader = slices.reader();
        for (from, to) in pieces {
            let (from, to) = (from.index(len + 1), to.index(len + 1));
            let (from, to) = (from.min(to), from.max(to));
            let mut piece = Vec::new();
            reader.append(from as u64, to - from, &mut piece).unwrap();
            prop_assert_eq!(&piece[..], &bytes[from..to]);
        }
    }
}

#[test]
fn a_piece_behind_the_end_is_refused() {
    let kit = Kit::framed();
    let kept = kit.begin(&key("a"), &noise(100, 1));
    for (offset, len) in [(100, 1), (99, 2), (0, 101), (u64::MAX, 1), (5, usize::MAX)] {
        let error = kit.slice(&kept, offset, len).unwrap_err();
        assert!(error.to_string().contains("/logs/a.jsonl"), "{error}");
    }
    assert!(kit.slice(&kept, 100, 0).unwrap().is_empty());
}

/// Whatever byte of a chunk changes, a piece is right or refused, and so is the whole.
#[test]
fn damage_gives_no_wrong_bytes() {
    let kit = Kit::framed();
    let bytes = noise(64, 1);
    let kept = kit.begin(&key("a"), &bytes);
    let path = kit.chunk(&kept, 0);
    let good = std::fs::read(&path).unwrap();
    let mut refused = 0;
    let mut look = |what: &str, bad: &[u8]| {
        overwrite(&path, bad);
        for (offset, len) in [(0, 64), (0, 5), (20, 10), (30, 5), (60, 4)] {
            match kit.slice(&kept, offset as u64, len) {
                Ok(piece) => assert_eq!(piece, bytes[offset..offset + len], "{what}"),
                Err(error) => {
                    refused += 1;
                    let error = error.to_string();
                    assert!(
                        error.contains("/logs/a.jsonl") && error.contains("chunk"),
                        "{error}"
                    );
                }
            }
        }
    };
    for at in 0..good.len() {
        for bit in 0..8 {
            let mut bad = good.clone();
            bad[at] ^= 1 << bit;
            look(&format!("byte {at}"), &bad);
        }
        look(&format!("cut at {at}"), &good[..at]);
    }
    // The list says as many frames as it can, and as long as they can be.
    let entries = good.len() - 9 - 3 * 8;
    let mut bad = good.clone();
    bad[entries..entries + 24].fill(0xff);
    look("endless frames", &bad);
    let mut bad = good.clone();
    let end = bad.len();
    bad[end - 9..end - 5].fill(0xff);
    look("endless list", &bad);
    // Frames that are others than they were, and the same length in all.
    let mut bad = good.clone();
    let (first, second) = (entries, entries + 8);
    for nth in 0..8 {
        bad.swap(first + nth, second + nth);
    }
    bad[first] += 1;
    bad[second] -= 1;
    look("other frames", &bad);
    assert!(refused > 500, "{refused}");

    overwrite(&path, b"");
    assert!(kit.slice(&kept, 0, 1).is_err());
    std::fs::remove_file(&path).unwrap();
    let error = kit.slice(&kept, 0, 1).unwrap_err();
    let ArchiveError::Chunk { fault, .. } = error else {
        panic!("{error}")
    };
    assert_eq!(fault, ChunkFault::Missing);
}

#[test]
fn one_frame_that_is_damaged_leaves_the_others() {
    let kit = Kit::framed();
    let bytes = noise(64, 1);
    let kept = kit.begin(&key("a"), &bytes);
    let path = kit.chunk(&kept, 0);
    let mut bad = std::fs::read(&path).unwrap();
    bad[20] ^= 1;
    overwrite(&path, &bad);
    assert!(kit.slice(&kept, 0, 24).is_err());
    assert_eq!(kit.slice(&kept, 24, 40).unwrap(), bytes[24..]);
    assert!(kit.archive.check(&kept).is_err());
}

#[test]
fn chunks_of_one_frame_are_read_as_they_were_written_before() {
    let kit = Kit::framed();
    let bytes = noise(64, 1);
    let kept = kit.begin(&key("a"), &bytes);
    overwrite(
        &kit.chunk(&kept, 0),
        &zstd::encode_all(&bytes[..], 3).unwrap(),
    );
    assert_eq!(kit.slice(&kept, 30, 20).unwrap(), bytes[30..50]);
    // The same bytes are kept once, however they are packed.
    kit.begin(&key("b"), &bytes);
    assert_eq!(kit.stored().0, 1);
}

#[test]
fn pieces_can_be_read_after_the_log_was_forgotten() {
    let kit = Kit::framed();
    let bytes = noise(300, 1);
    let kept = kit.begin(&key("a"), &bytes);
    let slices = kit.archive.slices(&kept);
    assert!(kit.archive.forget(&key("a")).unwrap());
    assert!(kit.archive.sweep(time(0), false).unwrap().chunks > 0);
    let mut all = Vec::new();
    slices.reader().append(0, 300, &mut all).unwrap();
    assert_eq!(all, bytes);
}

/// `zstd -d` unpacks a chunk of several frames, and any reader of zstd's seekable format finds them.
#[test]
fn a_chunk_ends_with_a_list_of_its_frames() {
    let kit = Kit::new();
    let bytes = b"one line of a log like all others\n".repeat(CHUNK / 34 + 1);
    let kept = kit.begin(&key("a"), &bytes[..CHUNK]);
    let chunk = std::fs::read(kit.chunk(&kept, 0)).unwrap();
    assert_eq!(zstd::decode_all(&chunk[..]).unwrap(), &bytes[..CHUNK]);
    let number = |at: usize| u32::from_le_bytes(*chunk[at..].first_chunk().unwrap()) as usize;
    let end = chunk.len();
    assert_eq!(number(end - 4), 0x8F92_EAB1);
    assert_eq!((number(end - 9), chunk[end - 5]), (CHUNK / FRAME, 0));
    let list = end - 9 - 8 * (CHUNK / FRAME);
    assert_eq!(
        (number(list - 8), number(list - 4)),
        (0x184D_2A5E, end - list)
    );
    let mut from = 0;
    for nth in 0..CHUNK / FRAME {
        let (packed, plain) = (number(list + 8 * nth), number(list + 8 * nth + 4));
        assert_eq!(plain, FRAME);
        let frame = zstd::decode_all(&chunk[from..from + packed]).unwrap();
        assert_eq!(frame, bytes[nth * FRAME..(nth + 1) * FRAME]);
        from += packed;
    }
    assert_eq!(from, list - 8);
    // What fits into one frame has no list.
    let short = kit.begin(&key("b"), &bytes[..FRAME]);
    let frame = std::fs::read(kit.chunk(&short, 0)).unwrap();
    let one = zstd::zstd_safe::find_frame_compressed_size(&frame).unwrap();
    assert_eq!(one, frame.len());
}
