//! Chunks that are damaged, hostile or refused by the system.

use std::io::Read as _;

use super::*;
use crate::archive::{CHUNK, ChunkFault};

/// Puts something in the place of a chunk; says what reading makes of it.
fn fault_of(kit: &Kit, kept: &Snapshot, index: usize) -> ChunkFault {
    let mut bytes = Vec::new();
    let mut reader = kit.archive.read(kept);
    let error = reader.read_to_end(&mut bytes).unwrap_err();
    // What was handed out before is right, and trying again does not pass over it.
    assert_eq!(bytes.len() as u64, kept.chunks[index].offset);
    assert!(reader.read(&mut [0]).is_err());
    assert!(error.to_string().contains("/logs/a.jsonl"), "{error}");
    let ArchiveError::Chunk { path, fault, .. } = inner(&error) else {
        panic!("{error}")
    };
    assert_eq!(*path, kit.chunk(kept, index));
    assert_eq!(
        kit.archive.check(kept).unwrap_err().to_string(),
        error.to_string()
    );
    fault.clone()
}

#[test]
fn damage_is_named_and_other_sources_still_read() {
    let kit = Kit::tiny();
    let bytes = noise(200, 1);
    let kept = kit.begin(&key("a"), &bytes);
    let other = kit.begin(&key("b"), &noise(200, 2));
    let path = kit.chunk(&kept, 1);
    let good = std::fs::read(&path).unwrap();

    for at in 0..good.len() {
        let mut bad = good.clone();
        bad[at] ^= 1;
        overwrite(&path, &bad);
        let fault = fault_of(&kit, &kept, 1);
        assert!(
            matches!(fault, ChunkFault::Zstd(_) | ChunkFault::Content),
            "{at}: {fault}"
        );
    }
    for cut in 0..good.len() {
        overwrite(&path, &good[..cut]);
        fault_of(&kit, &kept, 1);
    }
    std::fs::copy(kit.chunk(&kept, 0), &path).unwrap();
    assert_eq!(fault_of(&kit, &kept, 1), ChunkFault::Content);
    std::fs::remove_file(&path).unwrap();
    assert_eq!(fault_of(&kit, &kept, 1), ChunkFault::Missing);
    assert!(kit.read(&other) == noise(200, 2));

    // As long as the log is there, keeping it anew puts back what is missing.
    let mended = kit.rewrite(&kept, &bytes);
    assert_eq!((mended.version, &mended.chunks), (1, &kept.chunks));
    assert!(kit.read(&kept) == bytes);
    assert_eq!(std::fs::read(&path).unwrap(), good);
}

#[test]
fn a_damaged_chunk_is_not_taken_for_one_that_is_kept() {
    let kit = Kit::new();
    let kept = kit.begin(&key("a"), b"shared");
    overwrite(&kit.chunk(&kept, 0), b"");
    let again = kit.begin(&key("b"), b"shared");
    assert_eq!(kit.read(&again), b"shared");
    assert_eq!(kit.read(&kept), b"shared");
}

#[test]
fn a_small_tail_that_is_damaged_is_not_built_upon() {
    let kit = Kit::new();
    let kept = kit.begin(&key("a"), b"tail");
    std::fs::remove_file(kit.chunk(&kept, 0)).unwrap();
    let mut writer = kit.archive.grow(&kept).unwrap();
    writer.write(b"and more").unwrap();
    let error = writer.finish(time(0), None, None).unwrap_err();
    assert!(matches!(error, ArchiveError::Chunk { .. }), "{error}");
    assert_eq!(kit.latest(&key("a")), kept);
}

/// A few kilobytes that unpack to a gigabyte, under the name of what should be there.
#[test]
fn a_hostile_frame_is_refused() {
    let kit = Kit::new();
    let kept = kit.begin(&key("a"), &noise(5000, 1));
    let path = kit.chunk(&kept, 0);

    let mut bomb = zstd::Encoder::new(Vec::new(), 19).unwrap();
    std::io::copy(&mut std::io::repeat(0).take(1 << 30), &mut bomb).unwrap();
    let bomb = bomb.finish().unwrap();
    overwrite(&path, &bomb);
    let fault = fault_of(&kit, &kept, 0);
    assert!(
        matches!(fault, ChunkFault::Zstd(_) | ChunkFault::TooLarge),
        "{fault}"
    );

    // The same in a frame that is small enough to be read.
    let bomb = zstd::encode_all(&vec![0; CHUNK + 1][..], 19).unwrap();
    assert!(bomb.len() < 5000);
    overwrite(&path, &bomb);
    let fault = fault_of(&kit, &kept, 0);
    assert!(matches!(fault, ChunkFault::Zstd(_)), "{fault}");

    // More than the manifest says, by one.
    let bomb = zstd::encode_all(&vec![0; 5001][..], 3).unwrap();
    overwrite(&path, &bomb);
    fault_of(&kit, &kept, 0);

    // A file that would fill the memory by itself.
    let file = std::fs::File::create(&path).unwrap();
    file.set_len(1 << 40).unwrap();
    assert_eq!(fault_of(&kit, &kept, 0), ChunkFault::TooLarge);
}

/// A writer that is dropped after any number of bytes, as by a kill, changes nothing that is read.
#[test]
fn a_writer_that_is_dropped_leaves_the_source_as_it_was() {
    let kit = Kit::tiny();
    let kept = kit.begin(&key("a"), &noise(100, 1));
    let more = noise(200, 2);
    for len in 0..more.len() {
        for rewrite in [false, true] {
            let mut writer = if rewrite {
                kit.archive.rewrite(&kept).unwrap()
            } else {
                kit.archive.grow(&kept).unwrap()
            };
            writer.write(&more[..len]).unwrap();
            drop(writer);
            assert_eq!(kit.latest(&key("a")), kept);
        }
    }
    assert!(kit.read(&kept) == noise(100, 1));
    let mut never = kit.archive.begin(&key("b")).unwrap();
    never.write(&more).unwrap();
    drop(never);
    assert_eq!(kit.archive.latest(&key("b")).unwrap(), None);
    assert!(kit.archive.sweep(time(0), false).unwrap().chunks > 0);
    assert_eq!(kit.stored().0, 2);
    assert!(kit.read(&kept) == noise(100, 1));
}

#[test]
fn when_the_system_refuses_a_chunk_the_source_stays_as_it_was() {
    let kit = Kit::tiny();
    let kept = kit.begin(&key("a"), &noise(100, 1));
    let chunks = kit.root().join("chunks");
    let aside = kit.root().join("aside");
    std::fs::rename(&chunks, &aside).unwrap();
    overwrite(&chunks, b"in the way");

    let mut writer = kit.archive.grow(&kept).unwrap();
    let error = writer.write(&noise(200, 2)).unwrap_err();
    let ArchiveError::File(error) = error else {
        panic!("{error}")
    };
    assert!(error.path.starts_with(&chunks), "{error}");
    // What it holds is not the log any more.
    let again = writer.write(b"x").unwrap_err();
    assert!(matches!(again, ArchiveError::Unfinished { .. }), "{again}");
    let error = writer.finish(time(0), None, None).unwrap_err();
    assert!(matches!(error, ArchiveError::Unfinished { .. }), "{error}");

    let small = kit.archive.rewrite(&kept).and_then(|mut writer| {
        writer.write(b"small")?;
        writer.finish(time(0), None, None)
    });
    assert!(matches!(small.unwrap_err(), ArchiveError::File(_)));
    assert_eq!(kit.latest(&key("a")), kept);
    let tmp = std::fs::read_dir(kit.root().join("tmp")).unwrap();
    assert_eq!(tmp.count(), 0);

    std::fs::remove_file(&chunks).unwrap();
    std::fs::rename(aside, &chunks).unwrap();
    assert!(kit.read(&kit.grow(&kept, b"")) == noise(100, 1));
}

#[test]
fn when_the_system_refuses_a_manifest_the_error_names_it() {
    let kit = Kit::new();
    let manifest = kit.manifest(&key("a"));
    std::fs::create_dir_all(&manifest).unwrap();
    let mut writer = kit.archive.begin(&key("a")).unwrap();
    writer.write(b"x").unwrap();
    let error = writer.finish(time(0), None, None).unwrap_err();
    assert!(
        error.to_string().contains(manifest.to_str().unwrap()),
        "{error}"
    );
}
