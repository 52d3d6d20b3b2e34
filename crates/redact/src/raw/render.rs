//! Writes what is left of a record, and tells what was found in it.

use std::collections::BTreeMap;
use std::io::{self, Write};

use super::edit::{Edit, Finding, Form, hash};
use super::escape;
use super::plan::Plan;
use super::scan::Analysis;
use crate::engine::Certainty;
use crate::{Key, Placeholders};

/// What came of an input as a whole.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Summary {
    /// Bytes that were read.
    pub bytes: u64,
    /// Lines, also a last one without its end.
    pub lines: u64,
    /// What was removed.
    pub redacted: u64,
    /// What is nearly a finding, and stays.
    pub near: u64,
    /// How much was removed by each rule, by its id.
    pub rules: BTreeMap<String, u64>,
    /// Lines that look like JSON and are none, or nest too deep, or hold too many values. They were looked at as text.
    pub broken: u64,
    /// Lines or documents that are longer than is held at once. They were looked at as text, piece by piece.
    pub pieced: u64,
}

/// Where a record begins in the input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct RecordStart {
    pub(super) offset: u64,
    /// From 1.
    pub(super) line: u64,
    /// Bytes of that line that come before it.
    pub(super) column: u64,
}

/// Where records go.
pub(super) struct Sink<'a> {
    pub(super) plan: &'a Plan<'a>,
    pub(super) summary: Summary,
    placeholders: Placeholders,
    /// None where only findings are wanted.
    output: Option<&'a mut dyn Write>,
    report: &'a mut dyn FnMut(Finding),
}

impl<'a> Sink<'a> {
    pub(super) fn new(
        plan: &'a Plan<'a>,
        key: Key,
        output: Option<&'a mut dyn Write>,
        report: &'a mut dyn FnMut(Finding),
    ) -> Self {
        Self {
            plan,
            summary: Summary::default(),
            placeholders: Placeholders::new(key),
            output,
            report,
        }
    }

    /// Writes bytes as they are.
    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        match &mut self.output {
            Some(output) => output.write_all(bytes),
            None => Ok(()),
        }
    }

    /// Writes a record.
    pub(super) fn record(
        &mut self,
        bytes: &[u8],
        analysis: &Analysis,
        mut place: RecordStart,
    ) -> io::Result<()> {
        for placeholder in &analysis.given {
            self.placeholders.given(placeholder);
        }
        let (mut written, mut counted) = (0, 0);
        for edit in &analysis.edits {
            let start = edit.raw.start.max(counted);
            advance(&mut place, &bytes[counted..start]);
            counted = start;
            if edit.certainty == Certainty::Sure {
                if edit.raw.end <= written {
                    continue;
                }
                self.write(&bytes[written..edit.raw.start.max(written)])?;
                let placeholder = self.stand_in(edit);
                self.write(written_as(&placeholder, edit.form).as_bytes())?;
                written = edit.raw.end;
                if edit.form != Form::Cut {
                    self.tell(edit, place, placeholder);
                }
            } else {
                self.tell(edit, place, String::new());
            }
        }
        self.write(&bytes[written..])
    }

    fn stand_in(&mut self, edit: &Edit) -> String {
        if edit.form == Form::Cut {
            return String::new();
        }
        self.placeholders
            .of(edit.what.label(self.plan.engine), &edit.value)
    }

    fn tell(&mut self, edit: &Edit, place: RecordStart, placeholder: String) {
        let engine = self.plan.engine;
        if edit.certainty == Certainty::Sure {
            self.summary.redacted += 1;
            let id = edit.what.id(engine);
            match self.summary.rules.get_mut(id) {
                Some(count) => *count += 1,
                None => {
                    self.summary.rules.insert(id.to_owned(), 1);
                }
            }
        } else {
            self.summary.near += 1;
        }
        (self.report)(Finding {
            line: place.line,
            column: place.column + 1,
            offset: place.offset,
            length: edit.raw.len(),
            field: edit.field.clone(),
            what: edit.what,
            certainty: edit.certainty,
            placeholder,
            hash: hash(edit.what.kind(engine), &edit.value),
        });
    }
}

/// Passes bytes.
pub(super) fn advance(place: &mut RecordStart, bytes: &[u8]) {
    place.offset += bytes.len() as u64;
    match memchr::memrchr(b'\n', bytes) {
        Some(last) => {
            place.line += memchr::memchr_iter(b'\n', bytes).count() as u64;
            place.column = (bytes.len() - last - 1) as u64;
        }
        None => place.column += bytes.len() as u64,
    }
}

fn written_as(placeholder: &str, form: Form) -> String {
    match form {
        Form::Text(strings) => escape::encode(placeholder, strings),
        Form::Number(strings) => {
            let quoted = format!("\"{}\"", escape::encode(placeholder, 1));
            escape::encode(&quoted, strings)
        }
        Form::Cut => String::new(),
    }
}
