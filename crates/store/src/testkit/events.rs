//! What every implementation of [`EventBlocks`] has to do.

use std::collections::HashSet;

use super::{Check, Outcome, Report, expect, failed};
use crate::events::{BlockWriter, EventBlocks, Fault};

/// Tries an implementation, in which there is nothing yet. What is tried is left there.
pub fn conformance(events: &(dyn EventBlocks + 'static)) -> Report {
    super::run(ALL, events)
}

const ALL: &[Check<dyn EventBlocks>] = &[
    ("what is finished is read", finished),
    ("what is missing is said to be", missing),
    ("a writer that is dropped leaves all as it was", dropped),
    ("a log that grows keeps the addresses of its blocks", grows),
    ("what is open does not change", unchanged),
    ("what begins anew takes the place of what was there", anew),
    ("nothing is read behind the end", end),
    ("keys are listed, and what is removed is gone", removed),
    ("long blocks and tails are kept", long),
    ("keys can be written at the same time", together),
];

/// The key of a log: the SHA-256 of something.
fn key(nth: u8) -> String {
    format!("{nth:02x}").repeat(32)
}

fn begin(events: &dyn EventBlocks, key: &str) -> Result<Box<dyn BlockWriter>, String> {
    events.begin(key).map_err(failed)
}

fn resume(events: &dyn EventBlocks, key: &str) -> Result<Box<dyn BlockWriter>, String> {
    let resumed = events.resume(key).map_err(failed)?;
    resumed.ok_or_else(|| "there is nothing to go on from".to_owned())
}

fn reads(events: &dyn EventBlocks, key: &str, tail: &[u8], blocks: &[(u64, &[u8])]) -> Outcome {
    let open = events.open(key).map_err(failed)?;
    expect("the tail", open.tail(), tail)?;
    for (at, block) in blocks {
        let read = open.read(*at, block.len()).map_err(failed)?;
        expect("a block", &read[..], *block)?;
    }
    Ok(())
}

fn finished(events: &dyn EventBlocks) -> Outcome {
    let key = key(1);
    let mut writer = begin(events, &key)?;
    let one = writer.append(b"one").map_err(failed)?;
    let two = writer.append(b"two blocks").map_err(failed)?;
    let taken = writer.taken();
    expect("room is taken for the blocks", taken >= 13, true)?;
    writer.finish(b"tail").map_err(failed)?;
    reads(
        events,
        &key,
        b"tail",
        &[(one, b"one"), (two, b"two blocks")],
    )?;
    let empty = begin(events, &self::key(2))?;
    empty.finish(b"nothing").map_err(failed)?;
    reads(events, &self::key(2), b"nothing", &[])
}

fn missing(events: &dyn EventBlocks) -> Outcome {
    let key = key(3);
    let opened = events.open(&key);
    expect("it is missing", matches!(opened, Err(Fault::Missing)), true)?;
    let resumed = events.resume(&key).map_err(failed)?;
    expect("there is something to go on from", resumed.is_some(), false)?;
    events.remove(&key).map_err(failed)
}

fn dropped(events: &dyn EventBlocks) -> Outcome {
    let key = key(4);
    let mut writer = begin(events, &key)?;
    writer.append(b"lost").map_err(failed)?;
    drop(writer);
    let opened = events.open(&key);
    expect("it is missing", matches!(opened, Err(Fault::Missing)), true)?;
    let mut writer = begin(events, &key)?;
    let at = writer.append(b"kept").map_err(failed)?;
    writer.finish(b"tail").map_err(failed)?;
    for again in [begin(events, &key)?, resume(events, &key)?] {
        let mut again = again;
        again.append(b"lost").map_err(failed)?;
        drop(again);
        reads(events, &key, b"tail", &[(at, b"kept")])?;
    }
    Ok(())
}

fn grows(events: &dyn EventBlocks) -> Outcome {
    let key = key(5);
    let mut writer = begin(events, &key)?;
    let mut blocks = vec![(
        writer.append(b"block 0").map_err(failed)?,
        b"block 0".to_vec(),
    )];
    writer.finish(b"tail 0").map_err(failed)?;
    for nth in 1..20 {
        let mut writer = resume(events, &key)?;
        let block = format!("block {nth}").into_bytes();
        let before = writer.taken();
        blocks.push((writer.append(&block).map_err(failed)?, block));
        expect("more room is taken", writer.taken() > before, true)?;
        let tail = format!("tail {nth}");
        writer.finish(tail.as_bytes()).map_err(failed)?;
        let blocks: Vec<(u64, &[u8])> = blocks.iter().map(|(at, it)| (*at, &it[..])).collect();
        reads(events, &key, tail.as_bytes(), &blocks)?;
    }
    Ok(())
}

fn unchanged(events: &dyn EventBlocks) -> Outcome {
    let key = key(6);
    let mut writer = begin(events, &key)?;
    let at = writer.append(b"first").map_err(failed)?;
    writer.finish(b"tail 1").map_err(failed)?;
    let open = events.open(&key).map_err(failed)?;
    let is_same = || -> Outcome {
        expect("the tail", open.tail(), b"tail 1")?;
        let read = open.read(at, 5).map_err(failed)?;
        expect("the block", &read[..], b"first")
    };
    let mut writer = resume(events, &key)?;
    writer.append(b"second").map_err(failed)?;
    is_same()?;
    writer.finish(b"a longer tail").map_err(failed)?;
    is_same()?;
    let mut writer = begin(events, &key)?;
    writer.append(b"other").map_err(failed)?;
    writer.finish(b"other tail").map_err(failed)?;
    is_same()
}

fn anew(events: &dyn EventBlocks) -> Outcome {
    let key = key(7);
    let mut writer = begin(events, &key)?;
    writer.append(b"long before").map_err(failed)?;
    writer.finish(b"old").map_err(failed)?;
    let mut writer = begin(events, &key)?;
    expect("no room is taken yet", writer.taken(), 0)?;
    let at = writer.append(b"now").map_err(failed)?;
    reads(events, &key, b"old", &[])?;
    writer.finish(b"new").map_err(failed)?;
    reads(events, &key, b"new", &[(at, b"now")])
}

fn end(events: &dyn EventBlocks) -> Outcome {
    let key = key(8);
    let mut writer = begin(events, &key)?;
    let at = writer.append(b"block").map_err(failed)?;
    writer.finish(b"tail").map_err(failed)?;
    let open = events.open(&key).map_err(failed)?;
    for (at, len) in [(at, 1 << 20), (at + (1 << 30), 1), (u64::MAX / 2, 1)] {
        expect("it fails", open.read(at, len).is_err(), true)?;
    }
    Ok(())
}

fn removed(events: &dyn EventBlocks) -> Outcome {
    let keys = [key(9), key(10)];
    for key in &keys {
        let mut writer = begin(events, key)?;
        writer.append(b"block").map_err(failed)?;
        writer.finish(b"tail").map_err(failed)?;
    }
    let listed = |key: &String| events.keys().contains(key);
    expect("both are listed", keys.iter().all(listed), true)?;
    expect("they take room", events.bytes() > 0, true)?;
    let open = events.open(&keys[0]).map_err(failed)?;
    events.remove(&keys[0]).map_err(failed)?;
    events.remove(&keys[0]).map_err(failed)?;
    expect("the tail of what is open", open.tail(), b"tail")?;
    let found: Vec<bool> = keys.iter().map(listed).collect();
    expect("those are listed", found, vec![false, true])?;
    let opened = events.open(&keys[0]);
    expect("it is missing", matches!(opened, Err(Fault::Missing)), true)
}

fn long(events: &dyn EventBlocks) -> Outcome {
    let key = key(11);
    let (block, tail) = (vec![7; 5 << 20], vec![8; 3 << 20]);
    let mut writer = begin(events, &key)?;
    let at = writer.append(&block).map_err(failed)?;
    writer.finish(&tail).map_err(failed)?;
    let open = events.open(&key).map_err(failed)?;
    expect("the tail is the same", open.tail() == tail, true)?;
    let read = open.read(at + 1000, 1 << 20).map_err(failed)?;
    expect(
        "a part of the block is the same",
        read == block[..1 << 20],
        true,
    )
}

fn together(events: &dyn EventBlocks) -> Outcome {
    let keys: Vec<String> = (20..28).map(key).collect();
    let written: Outcome = std::thread::scope(|scope| {
        let threads: Vec<_> = keys
            .iter()
            .map(|key| {
                scope.spawn(move || {
                    let mut writer = begin(events, key)?;
                    let at = writer.append(key.as_bytes()).map_err(failed)?;
                    writer.finish(key.as_bytes()).map_err(failed)?;
                    reads(events, key, key.as_bytes(), &[(at, key.as_bytes())])
                })
            })
            .collect();
        let mut joined = threads.into_iter().map(std::thread::ScopedJoinHandle::join);
        joined.try_for_each(|it| it.unwrap_or_else(|_| Err("a thread panicked".to_owned())))
    });
    written?;
    let there: HashSet<String> = events.keys();
    expect(
        "all are listed",
        keys.iter().all(|key| there.contains(key)),
        true,
    )
}
