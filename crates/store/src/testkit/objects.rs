//! What every implementation of [`Objects`] has to do.

use std::sync::atomic::{AtomicBool, Ordering};

use quipu_model::Timestamp;

use super::{Check, Outcome, Report, expect, failed};
use crate::objects::{ObjectName, Objects};

/// Tries an implementation, in which there is nothing yet. What is tried is left there.
pub fn conformance(objects: &(dyn Objects + 'static)) -> Report {
    super::run(ALL, objects)
}

const ALL: &[Check<dyn Objects>] = &[
    ("what is put is read back", read_back),
    ("an object that is there is not put again", once),
    ("of several who put at once, one does", one_of_many),
    ("an object is replaced as a whole", replaced),
    ("what is not there is missing, not an error", missing),
    ("a part of an object is read", part),
    ("no more is read than is allowed", capped),
    ("names are listed in order, by how they begin", listed),
    ("what is deleted is gone", deleted),
    ("an object can be looked at and touched", looked_at),
    ("what is put stays when it is made durable", durable),
];

/// Far more than any object here.
const MOST: u64 = 1 << 30;

fn name(text: &str) -> Result<ObjectName, String> {
    ObjectName::new(text).map_err(failed)
}

fn get(objects: &dyn Objects, name: &ObjectName) -> Result<Option<Vec<u8>>, String> {
    objects.get(name, MOST).map_err(failed)
}

/// So many bytes, which differ from those with another seed.
fn bytes(len: usize, seed: u8) -> Vec<u8> {
    let cycle = (0..251_u8).cycle();
    cycle.map(|byte| byte ^ seed).take(len).collect()
}

fn read_back(objects: &dyn Objects) -> Outcome {
    for (text, len) in [("rb/empty", 0), ("rb/one", 1), ("rb/long.zst", 3_000_001)] {
        let (name, bytes) = (name(text)?, bytes(len, 1));
        let put = objects.put_if_absent(&name, &bytes).map_err(failed)?;
        expect("putting said", put, true)?;
        let found = get(objects, &name)?;
        expect("the same was read", found == Some(bytes), true)?;
    }
    Ok(())
}

fn once(objects: &dyn Objects) -> Outcome {
    let name = name("on/ce")?;
    objects.put_if_absent(&name, b"first").map_err(failed)?;
    let again = objects.put_if_absent(&name, b"second").map_err(failed)?;
    expect("putting again said", again, false)?;
    expect("bytes", get(objects, &name)?, Some(b"first".to_vec()))
}

fn one_of_many(objects: &dyn Objects) -> Outcome {
    let name = &name("ma/ny")?;
    let put: Vec<Result<bool, String>> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..8_u8)
            .map(|seed| {
                let bytes = bytes(100_000, seed);
                scope.spawn(move || objects.put_if_absent(name, &bytes).map_err(failed))
            })
            .collect();
        let joined = threads.into_iter().map(std::thread::ScopedJoinHandle::join);
        joined
            .map(|put| put.unwrap_or_else(|_| Err("a thread panicked".to_owned())))
            .collect()
    });
    let put: Vec<bool> = put.into_iter().collect::<Result<_, _>>()?;
    expect("so many put", put.iter().filter(|put| **put).count(), 1)?;
    let winner = put.iter().position(|put| *put).unwrap_or(0);
    let expected = bytes(100_000, u8::try_from(winner).unwrap_or(0));
    let found = get(objects, name)?;
    expect(
        "the bytes of that one are kept",
        found == Some(expected),
        true,
    )
}

fn replaced(objects: &dyn Objects) -> Outcome {
    let name = &name("re/placed")?;
    let (one, other) = (bytes(200_000, 1), bytes(150_000, 2));
    objects.replace(name, &one).map_err(failed)?;
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let reader = scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                let found = get(objects, name)?;
                let is_whole = found.is_some_and(|it| it == one || it == other);
                expect("one of the two is read, and all of it", is_whole, true)?;
            }
            Ok(())
        });
        let mut written = Ok(());
        for nth in 0..40 {
            let bytes = if nth % 2 == 0 { &other } else { &one };
            written = written.and(objects.replace(name, bytes).map_err(failed));
        }
        done.store(true, Ordering::Relaxed);
        let read = reader.join();
        written.and(read.unwrap_or_else(|_| Err("a thread panicked".to_owned())))
    })?;
    let found = get(objects, name)?;
    expect("the last one stays", found == Some(one), true)
}

fn missing(objects: &dyn Objects) -> Outcome {
    let name = name("no/thing")?;
    expect("bytes", get(objects, &name)?, None)?;
    let range = objects.get_range(&name, 0..1).map_err(failed)?;
    expect("a part", range, None)?;
    expect("a look", objects.look(&name).map_err(failed)?, None)?;
    expect("deleting", objects.delete(&name).map_err(failed)?, false)?;
    // Nothing to be done, and not an error.
    objects.touch(&name);
    let opened = objects.open(&name).map_err(failed)?;
    expect("it can be opened", opened.is_some(), false)
}

fn part(objects: &dyn Objects) -> Outcome {
    let name = name("pa/rt")?;
    let all = bytes(1000, 3);
    objects.put_if_absent(&name, &all).map_err(failed)?;
    for (from, to) in [(0, 1000), (0, 1), (999, 1000), (250, 750), (1000, 1000)] {
        let found = objects.get_range(&name, from..to).map_err(failed)?;
        let within = |place: u64| usize::try_from(place).unwrap_or(usize::MAX);
        let expected = all.get(within(from)..within(to)).map(<[u8]>::to_vec);
        expect("a part", found, expected)?;
    }
    for beyond in [0..1001, 1000..1001, 5000..5001, 0..u64::MAX] {
        let found = objects.get_range(&name, beyond);
        expect("a part beyond the end is an error", found.is_err(), true)?;
    }
    let object = objects.open(&name).map_err(failed)?;
    let object = object.ok_or("it is missing")?;
    expect("length", object.len().map_err(failed)?, 1000)?;
    let mut buffer = [0; 100];
    object.read_at(&mut buffer, 800).map_err(failed)?;
    expect("a part", &buffer[..], &all[800..900])?;
    let beyond = object.read_at(&mut buffer, 901);
    expect("reading beyond the end is an error", beyond.is_err(), true)
}

fn capped(objects: &dyn Objects) -> Outcome {
    let name = name("ca/pped")?;
    objects.put_if_absent(&name, b"12345").map_err(failed)?;
    let found = objects.get(&name, 5).map_err(failed)?;
    expect("bytes", found, Some(b"12345".to_vec()))?;
    let more = objects.get(&name, 4);
    expect("a longer object is an error", more.is_err(), true)
}

fn listed(objects: &dyn Objects) -> Outcome {
    let names = ["la/b", "la/ba", "la/c", "lab/a", "lb/a"];
    for text in names.iter().rev() {
        objects.put_if_absent(&name(text)?, b"x").map_err(failed)?;
    }
    let list = |prefix: &str| -> Result<Vec<String>, String> {
        let names = objects.list(prefix).map(|name| match name {
            Ok(name) => Ok(name.to_string()),
            Err(error) => Err(failed(error)),
        });
        names.collect()
    };
    expect("all", list("l")?, names.map(str::to_owned).to_vec())?;
    expect(
        "folder",
        list("la/")?,
        names[..3].iter().map(ToString::to_string).collect(),
    )?;
    expect(
        "begin",
        list("la/b")?,
        names[..2].iter().map(ToString::to_string).collect(),
    )?;
    expect("none", list("lx")?, Vec::new())?;
    let all = list("")?;
    expect("in order", all.is_sorted(), true)?;
    expect(
        "all of all",
        names.iter().all(|name| all.iter().any(|it| it == name)),
        true,
    )
}

fn deleted(objects: &dyn Objects) -> Outcome {
    let name = name("de/leted")?;
    objects.put_if_absent(&name, b"x").map_err(failed)?;
    expect("deleting", objects.delete(&name).map_err(failed)?, true)?;
    expect(
        "deleting again",
        objects.delete(&name).map_err(failed)?,
        false,
    )?;
    expect("bytes", get(objects, &name)?, None)?;
    let listed = objects.list("de/").count();
    expect("names", listed, 0)?;
    let again = objects.put_if_absent(&name, b"y").map_err(failed)?;
    expect("putting it again said", again, true)?;
    expect("bytes", get(objects, &name)?, Some(b"y".to_vec()))
}

fn looked_at(objects: &dyn Objects) -> Outcome {
    let name = name("lo/ok")?;
    objects.put_if_absent(&name, b"12345").map_err(failed)?;
    let look = objects
        .look(&name)
        .map_err(failed)?
        .ok_or("it is missing")?;
    expect("length", look.len, 5)?;
    objects.touch(&name);
    let after = objects
        .look(&name)
        .map_err(failed)?
        .ok_or("it is missing")?;
    expect("length after it was touched", after.len, 5)?;
    // Clocks of two machines may differ.
    let hour = 3600;
    let is_now = |at: Timestamp| (at.as_second() - Timestamp::now().as_second()).abs() < hour;
    expect("the time is now", after.written.is_none_or(is_now), true)?;
    expect("time does not go back", look.written <= after.written, true)?;
    expect("bytes", get(objects, &name)?, Some(b"12345".to_vec()))
}

fn durable(objects: &dyn Objects) -> Outcome {
    let name = name("du/rable")?;
    objects.put_if_absent(&name, b"x").map_err(failed)?;
    objects.sync().map_err(failed)?;
    objects.sync().map_err(failed)?;
    expect("bytes", get(objects, &name)?, Some(b"x".to_vec()))
}
