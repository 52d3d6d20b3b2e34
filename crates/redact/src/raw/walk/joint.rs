//! Texts that follow each other in a list.

use super::Walk;
use super::frame::{Block, Here, Level};
use super::place::lift;
use crate::engine::Certainty;
use crate::raw::edit::{Edit, Form, What, settle};
use crate::raw::escape::{self, Cursor};
use crate::raw::join;

impl Walk<'_, '_> {
    /// Looks at what texts say together that follow each other in a list.
    pub(super) fn blocks(&mut self, level: &Level, here: Here<'_>) {
        let mut more = Vec::new();
        let mut from = 0;
        for to in 1..=level.blocks.len() {
            let goes_on = level.blocks.get(to).is_some_and(|next| {
                let last = &level.blocks[to - 1];
                next.list == last.list && next.item == last.item + 1
            });
            if !goes_on {
                if to - from > 1 {
                    self.joint(&level.blocks[from..to], here, &mut more);
                }
                from = to;
            }
        }
        settle(&mut self.out.edits, more);
    }

    fn joint(&mut self, blocks: &[Block], here: Here<'_>, more: &mut Vec<Edit>) {
        let mut buffer = Vec::new();
        let texts: Vec<String> = blocks
            .iter()
            .map(|block| {
                let raw = &here.text[block.raw.clone()];
                let said = escape::decode(raw, escape::escapes(raw), &mut buffer);
                said.text.to_owned()
            })
            .collect();
        let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
        let scanner = &mut *self.scanner;
        for spread in join::spread(scanner.plan, &mut scanner.kept.scratch, &texts) {
            for (place, (piece, span)) in spread.parts.iter().enumerate() {
                let block = &blocks[*piece];
                let raw = &here.text[block.raw.clone()];
                let mut cursor = Cursor::default();
                let from = block.raw.start + cursor.find(raw, span.start);
                let to = block.raw.start + cursor.find(raw, span.end);
                more.push(Edit {
                    raw: self.base + lift(here, from)..self.base + lift(here, to),
                    what: What::Rule(spread.rule),
                    certainty: Certainty::Sure,
                    value: if place == 0 {
                        spread.value.clone()
                    } else {
                        String::new()
                    },
                    field: block.field.clone(),
                    form: if place == 0 {
                        Form::Text(here.depth + 1)
                    } else {
                        Form::Cut
                    },
                });
            }
        }
    }
}
