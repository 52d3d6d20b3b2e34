//! Spans inside of spans: none ends after the one it is a part of.
//!
//! A span that is under way lasts at least as long as its parts. One that is written lasts as it does: what goes on after it is
//! a part of the one around it.

use std::collections::VecDeque;
use std::io;

use super::ids::SpanId;
use super::span::{Nanos, Span};
use super::tracer::Tracer;

/// How many spans are remembered that may have parts after their end.
const MAX_ENDED: usize = 1_024;

/// Spans that were written, and that others may name as what they are a part of.
#[derive(Debug, Default)]
pub(super) struct Ended(VecDeque<End>);

#[derive(Debug, Clone, Copy)]
struct End {
    id: SpanId,
    at: Nanos,
    parent: Option<SpanId>,
}

impl Ended {
    fn add(&mut self, span: &Span) {
        if self.0.len() >= MAX_ENDED {
            self.0.pop_front();
        }
        self.0.push_back(End {
            id: span.id,
            at: span.end.max(span.start),
            parent: span.parent,
        });
    }

    fn get(&self, id: SpanId) -> Option<End> {
        self.0.iter().rev().find(|it| it.id == id).copied()
    }
}

impl Tracer<'_> {
    /// Writes a span that nothing is a part of.
    pub(super) fn write(&mut self, mut span: Span) -> io::Result<()> {
        self.fit(&mut span);
        self.out.span(&span)
    }

    /// Writes a span that others may be a part of.
    pub(super) fn write_outer(&mut self, mut span: Span) -> io::Result<()> {
        self.fit(&mut span);
        self.ended.add(&span);
        self.out.span(&span)
    }

    /// Finds what a span is a part of, and has it last as long.
    fn fit(&mut self, span: &mut Span) {
        let end = span.end.max(span.start);
        // Each turn goes one further out, so there are no more than are remembered.
        for _ in 0..=MAX_ENDED {
            let Some(parent) = span.parent.filter(|it| *it != self.root.id) else {
                return;
            };
            if let Some(outer) = self.under_way(parent) {
                outer.touch(span.start);
                outer.touch(end);
                return;
            }
            if self.tools.touch(parent, span.start, end) {
                return;
            }
            match self.ended.get(parent) {
                Some(outer) if outer.at >= end => return,
                Some(outer) => span.parent = outer.parent,
                None => span.parent = Some(self.root.id),
            }
        }
        span.parent = Some(self.root.id);
    }
}
