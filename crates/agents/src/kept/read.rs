//! From a line to its entry.

use std::borrow::Cow;

use quipu_exchange::decode_text;
use quipu_model::json::{Node, Tape};
use quipu_model::{Attachment, Money, NoteKind, Place, Source, Status, Timestamp, Usage};

use super::DEPTH;
use crate::{Charge, Entry, Extra, InRun, Missed, Position, Repeat, Text, Value, What, service_of};

/// An entry, and what its sink was told with it.
#[derive(Debug, Clone)]
pub struct Kept<'a> {
    /// Its number.
    pub seq: u64,
    /// Its time, or the last known one.
    pub at: Timestamp,
    /// The place of its record.
    pub position: Position,
    /// The entry.
    pub entry: Entry<'a>,
}

/// Reads a line that [`super::write()`] wrote; `None` when it is something else.
pub fn read<'a>(line: &'a str, tape: &'a mut Tape) -> Option<Kept<'a>> {
    let line = tape.read(line, DEPTH).ok()?;
    let at = time(line.get("a")?)?;
    let mut entry = Entry::new(what(line)?);
    facts(line, at, &mut entry)?;
    if let Some(run) = line.get("run") {
        entry.in_run = Some(Box::new(in_run(run)?));
    }
    Some(Kept {
        seq: line.get("s")?.as_u64()?,
        at,
        position: Position {
            offset: line.get("o")?.as_u64()?,
            line: line.get("l")?.as_u64()?,
        },
        entry,
    })
}

fn time(node: Node<'_>) -> Option<Timestamp> {
    let mut parts = node.items();
    let seconds = parts.next()?.as_i64()?;
    let nanoseconds = i32::try_from(parts.next()?.as_i64()?).ok()?;
    Timestamp::new(seconds, nanoseconds).ok()
}

fn what(line: Node<'_>) -> Option<What<'_>> {
    let text = |key: &str| line.get(key).and_then(Text::of);
    let word = |key: &str| line.text(key);
    let value = |key: &str| line.get(key).map(Value::from);
    Some(match &*line.text("k")? {
        "u" => What::User(text("t")?),
        "a" => What::Assistant(text("t")?),
        "r" => What::Reasoning(text("t")?),
        "s" => What::System(text("t")?),
        "c" => What::Call {
            name: word("n")?,
            id: word("i")?,
            input: value("v"),
        },
        "d" => What::Result {
            name: word("n")?,
            id: word("i")?,
            output: value("v"),
            error: text("x"),
        },
        "n" => What::Note {
            kind: NoteKind::from_word(&word("q")?)?,
            text: text("t"),
            raw: value("v"),
        },
        _ => return None,
    })
}

fn facts<'a>(line: Node<'a>, at: Timestamp, entry: &mut Entry<'a>) -> Option<()> {
    for (key, value) in line.fields() {
        let word = || -> Option<Cow<'a, str>> { value.as_str() };
        let when = || {
            if value.as_u64() == Some(1) {
                Some(at)
            } else {
                time(value)
            }
        };
        // Keys are plain words.
        match key.plain()? {
            "d" => entry.at = Some(when()?),
            "w" => entry.when = Some(when()?),
            "id" => entry.native_id = Some(word()?),
            "p" => entry.parent_id = Some(word()?),
            "sa" => entry.subagent = Some(word()?),
            "m" => entry.model = Some(word()?),
            "mc" => entry.model_call = Some(word()?),
            "sr" => entry.stop_reason = Some(word()?),
            "ch" => entry.child = Some(word()?),
            "us" => entry.usage = Some(usage(value)),
            "ca" => entry.calls = Some(value.as_u64()?),
            "co" => entry.cost = Some(Money::from_atto(value.raw().get().parse().ok()?)),
            "se" => entry.searches = Some(value.as_u64()?),
            "sv" => entry.service = service_of(u8::try_from(value.as_u64()?).ok()?)?,
            "ms" => entry.duration_ms = Some(value.as_u64()?),
            "st" => entry.status = Some(Status::from_word(&word()?)?),
            "at" => entry.attachments = value.items().map(attachment).collect::<Option<_>>()?,
            "ex" => entry.extra = Extra::whole(value.raw()),
            "f" => {
                let flags = value.as_u64()?;
                let flag = |bit: u32| flags >> bit & 1 == 1;
                entry.opaque = flag(0);
                entry.synthetic = flag(1);
                entry.superseded = flag(2);
                entry.as_told = flag(3);
                entry.begins_call = flag(4);
            }
            "vo" => {
                let mut ends = value.items();
                entry.voids = Some(ends.next()?.as_u64()?..ends.next()?.as_u64()?);
            }
            "un" => entry.unit = Some(value.as_u64()?),
            "rp" => entry.repeats = Some(usage(value)),
            "cg" => entry.charge = Some(charge(value)?),
            "am" => entry.active_ms = value.as_u64()?,
            "mi" => {
                let mut parts = value.items();
                entry.missed = Some(Missed {
                    pause: parts.next()?.as_u64()? == 1,
                    tokens: usage(parts.next()?).into(),
                });
            }
            "re" => {
                let mut parts = value.items();
                let retry = parts.next()?.as_u64()? == 1;
                let blamed = match (parts.next(), parts.next()) {
                    (Some(charged), Some(tokens)) => Some((charge(charged)?, usage(tokens).into())),
                    _ => None,
                };
                entry.repeat = Some(Repeat { retry, blamed });
            }
            _ => {}
        }
    }
    Some(())
}

fn usage(node: Node<'_>) -> Usage {
    let mut buckets = node.items().map(|tokens| tokens.as_u64());
    let mut next = || buckets.next().flatten();
    Usage {
        input: next(),
        cache_read: next(),
        cache_write: next(),
        cache_write_1h: next(),
        output: next(),
        reasoning: next(),
    }
}

fn charge(node: Node<'_>) -> Option<Charge> {
    let mut parts = node.items();
    Some(Charge {
        slot: parts.next()?.as_i64(),
        model: parts.next()?.as_str().map(Cow::into_owned),
        service: service_of(u8::try_from(parts.next()?.as_u64()?).ok()?)?,
        context: u8::try_from(parts.next()?.as_u64()?).ok()?,
        told: parts.next()?.as_u64()? == 1,
    })
}

fn attachment(node: Node<'_>) -> Option<Attachment> {
    let mut parts = node.items();
    Some(Attachment {
        mime: parts.next()?.as_str()?.into_owned(),
        bytes: parts.next()?.as_u64()?,
        sha256: parts.next()?.as_str()?.into_owned(),
    })
}

fn in_run(node: Node<'_>) -> Option<InRun> {
    let mut place = node.get("place")?.items();
    let place = Place {
        path: place.next()?.as_str()?.into_owned(),
        attempt: place.next()?.as_u64()?,
        iterations: place.map(|it| it.as_u64()).collect::<Option<_>>()?,
    };
    let body = match node.get("body") {
        Some(body) => {
            let (event, _) = decode_text(body.raw().get()).ok()?;
            Some(event.body)
        }
        None => None,
    };
    let source = match node.get("source") {
        Some(source) => {
            let mut parts = source.items();
            Some(Source {
                file: parts.next()?.as_str()?.into_owned(),
                offset: parts.next()?.as_u64()?,
                line: parts.next()?.as_u64()?,
            })
        }
        None => None,
    };
    Some(InRun {
        place,
        body,
        source,
    })
}
