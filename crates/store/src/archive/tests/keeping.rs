//! Keeping logs and reading them back.

use std::io::{BufRead as _, Cursor, Read as _};

use proptest::prelude::*;

use super::*;
use crate::archive::{CHUNK, Meta, Prefix, SMALL};

#[test]
fn gives_back_what_was_kept() {
    let kit = Kit::new();
    assert_eq!(kit.archive.latest(&key("a")).unwrap(), None);
    for len in [
        0,
        1,
        1000,
        SMALL,
        CHUNK - 1,
        CHUNK,
        CHUNK + 1,
        2 * CHUNK + 7,
    ] {
        let (key, bytes) = (key(&len.to_string()), noise(len, 1));
        let kept = kit.begin(&key, &bytes);
        assert_eq!((kept.version, kept.size), (1, len as u64));
        assert_eq!(kept.chunks.len(), len.div_ceil(CHUNK));
        assert_eq!(kit.latest(&key), kept);
        assert!(kit.read(&kept) == bytes, "{len}");
        kit.archive.check(&kept).unwrap();
    }
    kit.archive.sync().unwrap();
}

#[test]
fn remembers_what_it_was_told() {
    let kit = Kit::new();
    let meta: Meta = serde_json::from_str(r#"{"inode":7,"nested":{"a":[1,null]}}"#).unwrap();
    let key = key("a").with_part("session \u{1} 7");
    let writer = kit.archive.begin(&key).unwrap();
    let modified = Timestamp::new(1, 123_456_789).unwrap();
    let kept = writer.finish(time(5), Some(modified), Some(meta.clone()));
    let kept = kept.unwrap();
    assert_eq!(kept.meta, Some(meta));
    assert_eq!((kept.taken, kept.modified), (time(5), Some(modified)));
    assert_eq!(kit.latest(&key), kept);
}

#[test]
fn parts_of_a_log_are_sources_of_their_own() {
    let kit = Kit::new();
    let whole = kit.begin(&key("a"), b"whole");
    let part = kit.begin(&key("a").with_part("1"), b"part");
    assert_eq!(kit.read(&whole), b"whole");
    assert_eq!(kit.read(&part), b"part");
    let mut sources: Vec<_> = kit.archive.sources().map(|s| s.unwrap().key).collect();
    sources.sort();
    assert_eq!(sources, [key("a"), key("a").with_part("1")]);
    // An empty part is none.
    assert_eq!(kit.latest(&key("a").with_part("")), whole);
    assert_eq!(kit.grow(&kit.latest(&key("a").with_part("")), b"!").size, 6);
    assert_eq!(kit.latest(&key("a")).size, 6);
}

#[test]
fn only_the_tail_is_stored_when_a_log_grows() {
    let kit = Kit::new();
    let bytes = noise(2 * CHUNK + SMALL, 2);
    let first = kit.begin(&key("a"), &bytes);
    let before = kit.stored();
    let tail = noise(1000, 3);
    let grown = kit.grow(&first, &tail);
    let after = kit.stored();
    assert_eq!(after.0, before.0 + 1);
    assert!(after.1 - before.1 < 1100, "{before:?} {after:?}");
    assert_eq!((grown.version, grown.size), (1, first.size + 1000));
    assert_eq!(grown.chunks[..3], first.chunks);
    assert!(kit.read(&grown) == [bytes, tail].concat());
    assert_eq!(kit.latest(&key("a")), grown);
}

#[test]
fn growing_by_nothing_stores_nothing() {
    let kit = Kit::new();
    let first = kit.begin(&key("a"), b"abc");
    let before = kit.stored();
    let mut writer = kit.archive.grow(&first).unwrap();
    writer.write(b"").unwrap();
    let same = writer.finish(time(9), None, None).unwrap();
    assert_eq!((same.size, same.version, same.taken), (3, 1, time(9)));
    assert_eq!(same.chunks, first.chunks);
    assert_eq!(kit.stored(), before);
    assert_eq!(kit.read(&kit.latest(&key("a"))), b"abc");
}

#[test]
fn a_rewritten_log_keeps_both_versions() {
    let kit = Kit::new();
    let first = kit.begin(&key("a"), b"first\n");
    let second = kit.rewrite(&first, b"second\n");
    let third = kit.rewrite(&second, b"sec");
    let source = kit.archive.source(&key("a")).unwrap().unwrap();
    assert_eq!(source.versions, [first, second, third]);
    let texts: Vec<_> = source.versions.iter().map(|v| kit.read(v)).collect();
    assert_eq!(texts, [&b"first\n"[..], b"second\n", b"sec"]);
    let numbers: Vec<_> = source.versions.iter().map(|v| v.version).collect();
    assert_eq!(numbers, [1, 2, 3]);
}

#[test]
fn a_rewritten_log_shares_its_beginning() {
    for (changed, shared) in [(0, 0), (63, 0), (64, 1), (140, 2), (148, 3), (241, 4)] {
        let kit = Kit::tiny();
        // It grew, so not all of its chunks are cut where those of a new log would be.
        let bytes = noise(242, 4);
        let first = kit.begin(&key("a"), &bytes[..148]);
        let first = kit.grow(&first, &bytes[148..]);
        let lens: Vec<_> = first.chunks.iter().map(|chunk| chunk.len).collect();
        assert_eq!(lens, [64, 64, 20, 64, 30]);

        let mut other = bytes.clone();
        other[changed] ^= 1;
        let second = kit.rewrite(&first, &other);
        assert_eq!(second.version, 2);
        assert_eq!(second.chunks[..shared], first.chunks[..shared], "{changed}");
        assert!(kit.read(&kit.latest(&key("a"))) == other);
        assert!(kit.read(&first) == bytes);
        let manifest = std::fs::read_to_string(kit.manifest(&key("a"))).unwrap();
        let keep: u32 = lens[..shared].iter().sum();
        let last = manifest.lines().last().unwrap();
        assert!(last.contains(&format!("\"keep\":{keep},")), "{last}");
    }
}

#[test]
fn a_rewrite_that_only_adds_is_growth() {
    let kit = Kit::tiny();
    let first = kit.begin(&key("a"), &noise(100, 5));
    let same = kit.rewrite(&first, &noise(100, 5));
    assert_eq!((same.version, &same.chunks), (1, &first.chunks));
    let more = kit.rewrite(&same, &noise(1000, 5));
    assert_eq!(more.version, 1);
    assert!(kit.read(&kit.latest(&key("a"))) == noise(1000, 5));
    let less = kit.rewrite(&more, &noise(999, 5));
    assert_eq!(less.version, 2);
}

#[test]
fn many_small_appends_make_few_files_and_little_work() {
    let kit = Kit::new();
    let bytes = noise(600 << 10, 6);
    let mut kept = kit.begin(&key("a"), b"");
    for piece in bytes.chunks(1 << 10) {
        kept = kit.grow(&kept, piece);
    }
    assert!(kit.read(&kept) == bytes);
    // Two that have outgrown merging, and a handful on the way there.
    assert!(kept.chunks.len() <= 2 + 8, "{}", kept.chunks.len());
    let written = kit.stored().1;
    assert!(written < 10 * bytes.len() as u64, "{written}");
    kit.archive.sweep(time(0), false).unwrap();
    assert_eq!(kit.stored().0, kept.chunks.len() as u64);
    assert!(kit.read(&kit.latest(&key("a"))) == bytes);
}

#[test]
fn a_small_tail_is_merged_with_a_large_append() {
    let kit = Kit::new();
    let bytes = noise(CHUNK + SMALL, 7);
    let mut kept = kit.begin(&key("a"), &bytes[..1000]);
    kept = kit.grow(&kept, &bytes[1000..1100]);
    assert_eq!(kept.chunks.len(), 2);
    kept = kit.grow(&kept, &bytes[1100..]);
    let lens: Vec<_> = kept.chunks.iter().map(|chunk| chunk.len as usize).collect();
    assert_eq!(lens, [CHUNK, SMALL]);
    assert!(kit.read(&kept) == bytes);
}

#[test]
fn a_chunk_that_is_large_enough_is_left_alone() {
    let kit = Kit::tiny();
    for (len, chunks) in [(TINY.small - 1, 1), (TINY.small, 2)] {
        let bytes = noise(len + 30, 7);
        let kept = kit.begin(&key(&len.to_string()), &bytes[..len]);
        let kept = kit.grow(&kept, &bytes[len..]);
        assert_eq!(kept.chunks.len(), chunks, "{len}");
        assert!(kit.read(&kept) == bytes);
    }
}

#[test]
fn reading_can_begin_anywhere() {
    let kit = Kit::tiny();
    let bytes = noise(300, 8);
    let kept = kit.begin(&key("a"), &bytes);
    for offset in 0..=310 {
        let mut rest = Vec::new();
        let mut reader = kit.archive.read_from(&kept, offset as u64);
        reader.read_to_end(&mut rest).unwrap();
        assert_eq!(rest, bytes[offset.min(300)..], "{offset}");
    }
    // What lies before is not even opened.
    std::fs::remove_file(kit.chunk(&kept, 0)).unwrap();
    let mut rest = Vec::new();
    let mut reader = kit.archive.read_from(&kept, 64);
    reader.read_to_end(&mut rest).unwrap();
    assert_eq!(rest, bytes[64..]);
}

#[test]
fn lines_can_be_read_across_chunks() {
    let kit = Kit::tiny();
    let lines: Vec<String> = (0..50).map(|n| format!("{{\"line\":{n}}}")).collect();
    let kept = kit.begin(&key("a"), (lines.join("\n") + "\n").as_bytes());
    let read: Result<Vec<_>, _> = kit.archive.read(&kept).lines().collect();
    assert_eq!(read.unwrap(), lines);
}

#[test]
fn tells_whether_a_file_still_begins_with_it() {
    let kit = Kit::tiny();
    let bytes = noise(200, 9);
    let kept = kit.begin(&key("a"), &bytes);
    let matches = |file: &[u8]| kept.matches_prefix(Cursor::new(file)).unwrap();
    assert_eq!(matches(&bytes), Prefix::Same);
    assert_eq!(matches(&[&bytes[..], b"more"].concat()), Prefix::Same);
    for at in 0..200 {
        let differs = Prefix::Differs {
            at: at as u64 / 64 * 64,
        };
        assert_eq!(matches(&bytes[..at]), differs, "cut at {at}");
        let mut changed = bytes.clone();
        changed[at] ^= 0x20;
        assert_eq!(matches(&changed), differs, "changed at {at}");
    }
    let empty = kit.begin(&key("empty"), b"");
    assert_eq!(
        empty.matches_prefix(Cursor::new(b"x")).unwrap(),
        Prefix::Same
    );
}

#[test]
fn a_huge_log_is_compared_by_samples() {
    let kit = Kit::new();
    // Chunks 0 to 17, of which 0, 16 and 17 are compared.
    let mut bytes = vec![b'x'; 17 * CHUNK + 10];
    let kept = kit.begin(&key("a"), &bytes);
    assert_eq!(kept.chunks.len(), 18);
    let matches = |file: &[u8]| kept.matches_prefix(Cursor::new(file)).unwrap();
    assert_eq!(matches(&bytes), Prefix::Same);
    let at = 17 * CHUNK as u64;
    assert_eq!(matches(&bytes[..bytes.len() - 1]), Prefix::Differs { at });
    bytes[3 * CHUNK] = b'y';
    assert_eq!(matches(&bytes), Prefix::Same);
    bytes[17 * CHUNK - 1] = b'y';
    let at = 16 * CHUNK as u64;
    assert_eq!(matches(&bytes), Prefix::Differs { at });
    bytes[CHUNK - 1] = b'y';
    assert_eq!(matches(&bytes), Prefix::Differs { at: 0 });
}

#[test]
fn the_same_chunk_is_stored_once() {
    let kit = Kit::new();
    let bytes = noise(10_000, 10);
    let first = kit.begin(&key("a"), &bytes);
    let path = kit.chunk(&first, 0);
    let before = std::fs::metadata(&path).unwrap().modified().unwrap();
    let second = kit.begin(&key("b"), &bytes);
    assert_eq!(first.chunks, second.chunks);
    assert_eq!(kit.stored().0, 1);
    let after = std::fs::metadata(&path).unwrap().modified().unwrap();
    assert_eq!(before, after);
}

/// What is done to a log in the property below.
#[derive(Debug, Clone)]
enum Act {
    /// It grows by these bytes, which are written in pieces of so many.
    Grow(Vec<u8>, usize),
    /// It is cut to this share (of 100) of its length, then gets these bytes.
    Rewrite(usize, Vec<u8>),
    /// A writer takes these bytes and is dropped.
    GiveUp(Vec<u8>),
    /// Another process opens the archive.
    Reopen,
    /// Unneeded chunks are removed.
    Sweep,
}

fn acts() -> impl Strategy<Value = Vec<Act>> {
    let bytes = || {
        prop_oneof![
            prop::collection::vec(any::<u8>(), 0..20),
            prop::collection::vec(any::<u8>(), 0..300),
        ]
    };
    let act = prop_oneof![
        5 => (bytes(), 1usize..100).prop_map(|(bytes, piece)| Act::Grow(bytes, piece)),
        1 => (0usize..=100, bytes()).prop_map(|(share, bytes)| Act::Rewrite(share, bytes)),
        1 => bytes().prop_map(Act::GiveUp),
        1 => Just(Act::Reopen),
        1 => Just(Act::Sweep),
    ];
    prop::collection::vec(act, 0..25)
}

proptest! {
    /// Whatever is done to a log in whatever pieces, every version reads back as it was.
    #[test]
    fn every_version_reads_back(acts in acts()) {
        let mut kit = Kit::tiny();
        let key = key("a");
        let mut kept = kit.begin(&key, b"");
        // What each version should hold.
        let mut model: Vec<Vec<u8>> = vec![Vec::new()];
        for act in acts {
            match act {
                Act::Grow(bytes, piece) => {
                    let mut writer = kit.archive.grow(&kept).unwrap();
                    for piece in bytes.chunks(piece) {
                        writer.write(piece).unwrap();
                    }
                    kept = writer.finish(time(3), None, None).unwrap();
                    model.last_mut().unwrap().extend_from_slice(&bytes);
                }
                Act::Rewrite(share, bytes) => {
                    let old = model.last().unwrap();
                    let mut new = old[..old.len() * share / 100].to_vec();
                    new.extend_from_slice(&bytes);
                    let version = kept.version;
                    kept = kit.rewrite(&kept, &new);
                    if kept.version == version {
                        prop_assert!(new.starts_with(old));
                        model.pop();
                    }
                    model.push(new);
                }
                Act::GiveUp(bytes) => {
                    let mut writer = kit.archive.grow(&kept).unwrap();
                    writer.write(&bytes).unwrap();
                }
                Act::Reopen => {
                    kit.archive = Archive::with_sizes(&kit.root(), TINY).unwrap();
                    kept = kit.latest(&key);
                }
                Act::Sweep => {
                    kit.archive.sweep(time(0), false).unwrap();
                }
            }
            prop_assert_eq!(&kit.latest(&key), &kept);
            let source = kit.archive.source(&key).unwrap().unwrap();
            let versions: Vec<_> = source.versions.iter().map(|v| kit.read(v)).collect();
            prop_assert_eq!(&versions, &model);
            let matches = kept.matches_prefix(Cursor::new(model.last().unwrap()));
            prop_assert_eq!(matches.unwrap(), Prefix::Same);
        }
    }
}
