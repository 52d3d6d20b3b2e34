//! What strings and numbers say.

use std::cell::Cell;

use quipu_model::json::{Node, RawStr, Tape};

use super::frame::{Block, Here, Level, Outer, Spot, Taint};
use super::place::field;
use super::sealed::{looks_like_json, sealed};
use super::{LONGEST_WORD, MAX_STRINGS, Walk};
use crate::is_placeholder;
use crate::raw::edit::What;
use crate::raw::escape::{self, Unescaped};
use crate::raw::keys::Class;
use crate::raw::scan::{MAX_DEPTH, Marked, Piece, environment};
use crate::raw::taint;
use crate::sensitive::{Exposes, in_patch, looks_secret, written_by};

impl Walk<'_, '_> {
    pub(super) fn number(&mut self, level: &Level, here: Here<'_>, node: Node<'_>, spot: Spot<'_>) {
        let text = node.raw().get();
        // Nothing that opens anything is shorter.
        if text.len() >= 4 {
            let marked = self.digits(spot.name, text).into_iter().collect();
            self.scan(text, marked, level, here, node, spot);
        }
    }

    pub(super) fn string(
        &mut self,
        level: &mut Level,
        here: Here<'_>,
        node: Node<'_>,
        spot: Spot<'_>,
    ) {
        let inner = &node.bytes()[1..];
        let raw = &inner[..inner.len() - 1];
        if raw.is_empty() || sealed(raw, spot) {
            return;
        }
        let word = || {
            spot.class.any(Class::FORM)
                && raw.len() <= LONGEST_WORD
                && !raw.iter().any(|byte| matches!(byte, b' ' | b'\\'))
        };
        let mut decoded = std::mem::take(&mut level.decoded);
        let said = if let Some(plain) = node.as_raw_str().and_then(RawStr::plain) {
            // A patch has lines.
            Unescaped {
                text: plain,
                patch: false,
            }
        } else {
            let start = node.offset() + 1;
            let raw = &here.text[start..start + raw.len()];
            escape::decode(raw, node.escapes(), &mut decoded)
        };
        let text = said.text;
        match spot.taint {
            Taint::Whole(Exposes::Printed) if looks_like_json(text) || !looks_secret(text) => {
                self.content(said, level, here, node, spot);
            }
            Taint::Whole(Exposes::File | Exposes::Printed) if !word() => {
                if !is_placeholder(text) {
                    self.push(
                        text,
                        std::iter::once(0..text.len()),
                        What::File,
                        level,
                        here,
                        node,
                        spot.key,
                    );
                }
            }
            Taint::Whole(Exposes::Environment) if !word() => {
                let values = environment(text);
                if values.is_empty() {
                    self.content(said, level, here, node, spot);
                }
                self.push(
                    text,
                    values.into_iter(),
                    What::Environment,
                    level,
                    here,
                    node,
                    spot.key,
                );
            }
            _ => self.content(said, level, here, node, spot),
        }
        level.decoded = decoded;
    }

    /// Looks at what a string says.
    fn content(
        &mut self,
        Unescaped { text, patch }: Unescaped<'_>,
        level: &mut Level,
        here: Here<'_>,
        node: Node<'_>,
        spot: Spot<'_>,
    ) {
        if here.depth < MAX_STRINGS
            && looks_like_json(text)
            && self.nested(text, level, here, node, spot)
        {
            return;
        }
        let mut marked = self.header(spot.name, text);
        let mut secret = Vec::new();
        if self.scanner.plan.files {
            if spot.class.any(Class::COMMAND)
                && memchr::memchr2(b'>', b'|', text.as_bytes()).is_some()
            {
                secret = written_by(text);
            }
            if secret.is_empty() && patch {
                secret = in_patch(text);
            }
        }
        while let Some(given) = level.given.pop_if(|given| given.place <= node.place()) {
            if given.place == node.place() {
                marked.push(given.marked);
            }
        }
        marked.extend(secret.into_iter().map(Marked::file));
        marked.sort_by_key(|mark| mark.range.start);
        if spot.class.any(Class::TEXT) && spot.key.is_some()
            || spot.key.is_none() && text.ends_with('\n')
        {
            self.goes_on(text, level, here, node, spot);
        }
        self.scan(text, marked, level, here, node, spot);
    }

    /// A text that may go on elsewhere is remembered.
    fn goes_on(
        &mut self,
        text: &str,
        level: &mut Level,
        here: Here<'_>,
        node: Node<'_>,
        spot: Spot<'_>,
    ) {
        let raw = node.offset() + 1..node.offset() + node.bytes().len() - 1;
        if let Some(lane) = spot.lane
            && here.depth == 0
        {
            self.out.pieces.push(Piece {
                lane: lane ^ taint::hash(spot.name.unwrap_or_default().as_bytes()),
                raw: self.base + raw.start..self.base + raw.end,
                text: text.to_owned(),
                field: field(level, here, spot.key),
            });
        }
        // In an object that is an item of a list, or itself one.
        let list = match (spot.key, level.frames.as_slice()) {
            (Some(_), [.., list, _]) | (None, [.., list]) if !list.object => list,
            _ => return,
        };
        if list.many {
            let block = Block {
                list: list.at,
                item: list.items,
                raw,
                field: field(level, here, spot.key),
            };
            level.blocks.push(block);
        }
    }

    /// Looks at a string that is JSON as JSON, and says whether it is.
    fn nested(
        &mut self,
        text: &str,
        level: &Level,
        here: Here<'_>,
        node: Node<'_>,
        spot: Spot<'_>,
    ) -> bool {
        let mut tape = self.scanner.kept.tapes.pop().unwrap_or_default();
        let read = tape.read(text, MAX_DEPTH / 8).is_ok();
        if read {
            let start = node.offset() + 1;
            let outer = Outer {
                root: here.root,
                frames: &level.frames,
                key: spot
                    .key
                    .or_else(|| level.frames.last().and_then(|frame| frame.key)),
                class: spot.class,
                taint: spot.taint,
                start,
                raw: &here.text[start..start + node.bytes().len() - 2],
                cursor: Cell::default(),
                up: here.outer,
            };
            self.tree(here.depth + 1, text, tape.root(text), Some(&outer));
        }
        Tape::shrink(&mut tape);
        self.scanner.kept.tapes.push(tape);
        read
    }
}
