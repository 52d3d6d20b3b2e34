//! Records of streams: a secret that is spread over several of them.
//!
//! Records that hold a piece of something are held back until enough of them are there to be looked at together. The
//! bounds: a secret is found when it is spread over at most [`WINDOW`] / 2 records of its stream and stands within the
//! last and first [`REACH`](super::join::REACH) bytes of long pieces, and no more than [`MOST_BYTES`] / 2 bytes of
//! records lie between.

use std::collections::VecDeque;
use std::io;

use super::edit::{Edit, Form, What, settle};
use super::escape::Cursor;
use super::join;
use super::render::{RecordStart, Sink};
use super::scan::{Analysis, Scanner, text_of};
use crate::engine::Certainty;

/// How many records with pieces are held back at most.
const WINDOW: usize = 256;

/// How many bytes are.
const MOST_BYTES: usize = 8 << 20;

/// A stream is over when so many records that are of none have come.
const OTHERS: usize = 32;

/// Records that are held back.
#[derive(Debug, Default)]
pub(super) struct Streams {
    held: VecDeque<Held>,
    pieces: usize,
    bytes: usize,
    others: usize,
}

struct Held {
    bytes: Vec<u8>,
    analysis: Analysis,
    place: RecordStart,
}

impl std::fmt::Debug for Held {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Held")
            .field("place", &self.place)
            .finish_non_exhaustive()
    }
}

impl Streams {
    /// Takes the next record. It is written when what it is part of is known.
    pub(super) fn push(
        &mut self,
        scanner: &mut Scanner<'_>,
        sink: &mut Sink<'_>,
        bytes: &[u8],
        analysis: Analysis,
        place: RecordStart,
    ) -> io::Result<()> {
        let piece = !analysis.pieces.is_empty();
        if self.held.is_empty() && !piece {
            return sink.record(bytes, &analysis, place);
        }
        self.held.push_back(Held {
            bytes: bytes.to_vec(),
            analysis,
            place,
        });
        self.bytes += bytes.len();
        self.pieces += usize::from(piece);
        self.others = if piece { 0 } else { self.others + 1 };
        if self.others >= OTHERS {
            return self.finish(scanner, sink);
        }
        if self.pieces >= WINDOW || self.bytes > MOST_BYTES {
            self.look(scanner);
            let (pieces, bytes) = (self.pieces / 2, self.bytes / 2);
            self.release(sink, pieces, bytes)?;
        }
        Ok(())
    }

    /// Writes all that is held back.
    pub(super) fn finish(
        &mut self,
        scanner: &mut Scanner<'_>,
        sink: &mut Sink<'_>,
    ) -> io::Result<()> {
        if self.pieces > 1 {
            self.look(scanner);
        }
        self.release(sink, 0, 0)?;
        self.others = 0;
        Ok(())
    }

    /// Writes the oldest until no more are left than are said.
    fn release(&mut self, sink: &mut Sink<'_>, pieces: usize, bytes: usize) -> io::Result<()> {
        let full = self.pieces >= WINDOW;
        while let Some(oldest) = self.held.front() {
            let enough = if full {
                self.pieces <= pieces
            } else {
                self.bytes <= bytes
            };
            if enough && (pieces > 0 || bytes > 0) {
                return Ok(());
            }
            sink.record(&oldest.bytes, &oldest.analysis, oldest.place)?;
            self.bytes -= oldest.bytes.len();
            self.pieces -= usize::from(!oldest.analysis.pieces.is_empty());
            self.held.pop_front();
        }
        Ok(())
    }

    /// Looks at what the records of each stream say together.
    fn look(&mut self, scanner: &mut Scanner<'_>) {
        let mut lanes: Vec<(u64, usize, usize)> = Vec::new();
        for (record, held) in self.held.iter().enumerate() {
            for (piece, of) in held.analysis.pieces.iter().enumerate() {
                lanes.push((of.lane, record, piece));
            }
        }
        lanes.sort_unstable();
        let mut mended = Vec::new();
        let mut more: Vec<(usize, Edit)> = Vec::new();
        for lane in lanes.chunk_by(|a, b| a.0 == b.0) {
            if lane.len() < 2 {
                continue;
            }
            let piece = |at: usize| &self.held[lane[at].1].analysis.pieces[lane[at].2];
            let texts: Vec<&str> = (0..lane.len()).map(|at| piece(at).text.as_str()).collect();
            for spread in join::spread(scanner.plan, &mut scanner.kept.scratch, &texts) {
                let allowed = &scanner.plan.fields;
                if allowed.allow(&piece(spread.parts[0].0).field, spread.rule) {
                    continue;
                }
                for (place, (at, span)) in spread.parts.iter().enumerate() {
                    let record = lane[*at].1;
                    let piece = piece(*at);
                    let raw = text_of(&self.held[record].bytes[piece.raw.clone()], &mut mended);
                    let mut cursor = Cursor::default();
                    let from = piece.raw.start + cursor.find(raw, span.start);
                    let to = piece.raw.start + cursor.find(raw, span.end);
                    let first = place == 0;
                    let edit = Edit {
                        raw: from..to,
                        what: What::Rule(spread.rule),
                        certainty: Certainty::Sure,
                        value: if first {
                            spread.value.clone()
                        } else {
                            String::new()
                        },
                        field: piece.field.clone(),
                        form: if first { Form::Text(1) } else { Form::Cut },
                    };
                    more.push((record, edit));
                }
            }
        }
        more.sort_by_key(|(record, edit)| (*record, edit.raw.start));
        while let Some((record, _)) = more.last() {
            let record = *record;
            let from = more.partition_point(|(of, _)| *of < record);
            let edits = more.drain(from..).map(|(_, edit)| edit).collect();
            settle(&mut self.held[record].analysis.edits, edits);
        }
    }
}
