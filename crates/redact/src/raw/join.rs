//! Secrets that are spread over pieces: blocks of a message, records of a stream.

use std::ops::Range;

use super::plan::{Plan, touches_placeholder};
use crate::engine::Certainty;
use crate::rule::Kind;
use crate::{Context, Found, Scratch};

/// How much of a piece is looked at together with its neighbours, from either end.
pub(super) const REACH: usize = 4096;

/// Something that is spread over pieces.
pub(super) struct Spread {
    pub(super) rule: usize,
    /// What the pieces say together.
    pub(super) value: String,
    /// Which pieces, and what part of what each says; at least two.
    pub(super) parts: Vec<(usize, Range<usize>)>,
}

/// Looks at what pieces say together. Only what no piece says alone is found, and only secrets: where one text ends and
/// another begins, a phone number soon comes about.
pub(super) fn spread(plan: &Plan<'_>, scratch: &mut Scratch, pieces: &[&str]) -> Vec<Spread> {
    let mut out = Vec::new();
    let mut run = Run::default();
    for (piece, text) in pieces.iter().enumerate() {
        if text.len() <= 2 * REACH {
            run.push(piece, 0, text);
            continue;
        }
        let head = floor(text, REACH);
        run.push(piece, 0, &text[..head]);
        run.close(plan, scratch, &mut out);
        let tail = floor(text, text.len() - REACH);
        run.push(piece, tail, &text[tail..]);
    }
    run.close(plan, scratch, &mut out);
    out
}

/// The nearest place at or before another where a character begins.
pub(super) fn floor(text: &str, mut at: usize) -> usize {
    at = at.min(text.len());
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    at
}

/// The nearest place at or behind another where a character begins.
pub(super) fn ceil(text: &str, mut at: usize) -> usize {
    at = at.min(text.len());
    while !text.is_char_boundary(at) {
        at += 1;
    }
    at
}

#[derive(Default)]
struct Run {
    text: String,
    /// Which piece, where in the run it begins, and how much of the piece is before that.
    parts: Vec<(usize, usize, usize)>,
}

impl Run {
    fn push(&mut self, piece: usize, before: usize, text: &str) {
        if !text.is_empty() {
            self.parts.push((piece, self.text.len(), before));
            self.text.push_str(text);
        }
    }

    fn close(&mut self, plan: &Plan<'_>, scratch: &mut Scratch, out: &mut Vec<Spread>) {
        if self.parts.len() > 1 {
            let mut found = Vec::new();
            let context = Context {
                file: plan.file,
                ..Context::default()
            };
            plan.engine.scan(scratch, &self.text, context, &mut found);
            let mut first = 0;
            for found in found {
                out.extend(self.parts_of(plan, &found, &mut first));
            }
        }
        self.text.clear();
        self.parts.clear();
    }

    /// The parts of the pieces that a finding is spread over. Findings come in order, so that parts before `first` are
    /// not looked at again.
    fn parts_of(&self, plan: &Plan<'_>, found: &Found, first: &mut usize) -> Option<Spread> {
        let secret = plan.engine.rules().rules[found.rule].kind == Kind::Secret;
        if found.certainty != Certainty::Sure || !secret {
            return None;
        }
        let span = floor(&self.text, found.span.start)..ceil(&self.text, found.span.end);
        if touches_placeholder(&self.text, &span) {
            return None;
        }
        let mut parts = Vec::new();
        for (place, &(piece, start, before)) in self.parts.iter().enumerate().skip(*first) {
            let end = self
                .parts
                .get(place + 1)
                .map_or(self.text.len(), |next| next.1);
            if end <= span.start {
                *first = place;
                continue;
            }
            if start >= span.end {
                break;
            }
            let (from, to) = (span.start.max(start), span.end.min(end));
            parts.push((piece, from - start + before..to - start + before));
        }
        (parts.len() > 1).then(|| Spread {
            rule: found.rule,
            value: self.text[span].to_owned(),
            parts,
        })
    }
}
