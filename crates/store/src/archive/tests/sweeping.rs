//! Forgetting and sweeping.

use jiff::SignedDuration;

use super::*;
use crate::archive::Swept;

#[test]
fn a_sweep_removes_what_no_version_needs() {
    let kit = Kit::tiny();
    let shared = noise(64, 1);
    let a = kit.begin(&key("a"), &[&shared[..], &noise(64, 2)].concat());
    let b = kit.begin(&key("b"), &[&shared[..], &noise(64, 3)].concat());
    let a2 = kit.rewrite(&a, b"second version");
    assert_eq!(kit.stored().0, 4);
    let all = kit.archive.sweep(time(0), false).unwrap();
    assert_eq!(all, Swept::default());

    assert!(kit.archive.forget(&key("a")).unwrap());
    assert!(!kit.archive.forget(&key("a")).unwrap());
    assert_eq!(kit.archive.latest(&key("a")).unwrap(), None);
    let would = kit.archive.sweep(time(0), true).unwrap();
    assert_eq!((would.chunks, kit.stored().0), (2, 4));
    assert_eq!(kit.read(&a2), b"second version");
    let before = kit.stored().1;
    let did = kit.archive.sweep(time(0), false).unwrap();
    assert_eq!(did, would);
    assert_eq!(kit.stored(), (2, before - did.bytes));
    assert!(kit.read(&b).starts_with(&shared));
    assert!(kit.archive.check(&a2).is_err());
    assert_eq!(kit.archive.sweep(time(0), false).unwrap(), Swept::default());
}

#[test]
fn chunks_that_were_merged_are_swept_unless_another_log_has_them() {
    let kit = Kit::tiny();
    let first = kit.begin(&key("a"), b"tail");
    let copy = kit.begin(&key("b"), b"tail");
    let grown = kit.grow(&first, b" and more");
    assert_eq!((grown.chunks.len(), kit.stored().0), (1, 2));
    assert_eq!(kit.archive.sweep(time(0), false).unwrap().chunks, 0);
    kit.archive.forget(&key("b")).unwrap();
    assert_eq!(kit.archive.sweep(time(0), false).unwrap().chunks, 1);
    assert!(kit.archive.check(&copy).is_err());
    assert_eq!(kit.read(&kit.latest(&key("a"))), b"tail and more");
}

#[test]
fn a_sweep_waits_for_no_writer_and_disturbs_none() {
    let kit = Kit::tiny();
    let mut writer = kit.archive.begin(&key("a")).unwrap();
    writer.write(&noise(100, 1)).unwrap();
    for dry_run in [true, false] {
        let error = kit.archive.sweep(time(0), dry_run).unwrap_err();
        assert!(matches!(error, ArchiveError::Busy { .. }), "{error}");
    }
    let kept = writer.finish(time(0), None, None).unwrap();
    assert_eq!(kit.archive.sweep(time(0), false).unwrap(), Swept::default());
    assert!(kit.read(&kept) == noise(100, 1));
}

#[test]
fn a_sweep_that_fails_half_way_can_be_repeated() {
    let kit = Kit::tiny();
    let kept = kit.begin(&key("a"), &noise(300, 1));
    let gone = kit.begin(&key("b"), &noise(300, 2));
    kit.archive.forget(&key("b")).unwrap();
    // A directory cannot be removed as a file.
    let mut ids: Vec<_> = gone.chunks.iter().map(|chunk| chunk.id).collect();
    ids.sort();
    let in_the_way = kit.archive.inner.chunks.path_of(&ids[2]);
    std::fs::remove_file(&in_the_way).unwrap();
    std::fs::create_dir(&in_the_way).unwrap();
    let error = kit.archive.sweep(time(0), false).unwrap_err().to_string();
    assert!(error.contains(in_the_way.to_str().unwrap()), "{error}");
    assert!(kit.read(&kept) == noise(300, 1));
    std::fs::remove_dir(&in_the_way).unwrap();
    let rest = kit.archive.sweep(time(0), false).unwrap();
    assert_eq!(rest.chunks, 2);
    assert!(kit.read(&kept) == noise(300, 1));
}

#[test]
fn only_old_temporary_files_are_swept() {
    let kit = Kit::tiny();
    kit.begin(&key("a"), b"x");
    let left = kit.root().join("tmp/1-1");
    overwrite(&left, b"left");
    let now = Timestamp::now();
    let young = kit.archive.sweep(now, false).unwrap();
    assert_eq!(young.temporary, 0);
    let later = now + SignedDuration::from_mins(61);
    for dry_run in [true, false] {
        assert!(left.exists());
        let old = kit.archive.sweep(later, dry_run).unwrap();
        assert_eq!((old.temporary, old.bytes, old.chunks), (1, 4, 0));
    }
    assert!(!left.exists());
}

#[test]
fn usage_counts_every_version_and_every_chunk() {
    let kit = Kit::tiny();
    let a = kit.begin(&key("a"), &noise(100, 1));
    kit.rewrite(&a, &noise(30, 2));
    kit.begin(&key("b"), &noise(100, 1));
    let usage = kit.archive.usage().unwrap();
    assert_eq!((usage.sources, usage.versions, usage.damaged), (2, 3, 0));
    assert_eq!((usage.original_bytes, usage.chunks), (230, 3));
    let on_disk: u64 = (0..2)
        .map(|index| kit.chunk(&a, index).metadata().unwrap().len())
        .sum();
    assert!(usage.compressed_bytes > on_disk);
}
