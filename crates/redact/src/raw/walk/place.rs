//! Where things stand: in the bytes of the record, and by the keys they stand under.

use quipu_model::json::{Kind, Node};

use super::frame::{Frame, Here, Level, Outer};
use crate::raw::edit::{Edit, Form};
use crate::raw::escape::Cursor;
use crate::raw::join;

/// The longest path that is told.
const LONGEST_PATH: usize = 256;

pub(super) fn lift(here: Here<'_>, at: usize) -> usize {
    here.outer.map_or(at, |outer| outer.lift(at))
}

/// An edit of what a value says, as an edit of the record.
pub(super) fn placed(
    mut edit: Edit,
    base: usize,
    here: Here<'_>,
    node: Node<'_>,
    path: &str,
    cursor: &mut Cursor,
) -> Edit {
    let (start, len) = (node.offset(), node.bytes().len());
    let (from, to) = if node.kind() == Kind::Number {
        edit.form = Form::Number(here.depth);
        (start, start + len)
    } else {
        edit.form = Form::Text(here.depth + 1);
        if node.plain_bytes().is_some() {
            (start + 1 + edit.raw.start, start + 1 + edit.raw.end)
        } else {
            let raw = &here.text[start + 1..start + len - 1];
            let from = start + 1 + cursor.find(raw, edit.raw.start);
            (from, start + 1 + cursor.find(raw, edit.raw.end))
        }
    };
    edit.raw = base + lift(here, from)..base + lift(here, to);
    path.clone_into(&mut edit.field);
    edit
}

/// Where a value stands: `message.content[0].text`.
pub(super) fn field(level: &Level, here: Here<'_>, key: Option<u32>) -> String {
    let mut path = String::new();
    if let Some(outer) = here.outer {
        around(outer, &mut path);
    }
    within(&level.frames, here.root, key, &mut path);
    path
}

fn around(outer: &Outer<'_>, path: &mut String) {
    if let Some(up) = outer.up {
        around(up, path);
    }
    let key = outer
        .frames
        .last()
        .filter(|frame| frame.object)
        .and(outer.key);
    within(outer.frames, outer.root, key, path);
}

fn within(frames: &[Frame], root: Node<'_>, key: Option<u32>, path: &mut String) {
    use std::fmt::Write as _;
    for (place, frame) in frames.iter().enumerate() {
        if path.len() > LONGEST_PATH {
            path.push('…');
            return;
        }
        let next = frames.get(place + 1);
        if !frame.object {
            // Writing to a string does not fail.
            write!(path, "[{}]", frame.items.saturating_sub(1)).unwrap_or_default();
            continue;
        }
        let key = match next {
            Some(next) => next.key,
            None => key,
        };
        let name = key
            .and_then(|key| root.go_to(key).as_str())
            .unwrap_or_default();
        if !path.is_empty() {
            path.push('.');
        }
        path.push_str(&name[..join::floor(&name, LONGEST_PATH)]);
    }
}
