//! The history of prompts, from which sessions that are gone can be put together again in part.
//!
//! Claude Code deletes sessions after a while, but keeps every prompt that was typed, with its session's
//! id, in one file.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufRead as _, BufReader, Write};

use quipu_model::json::{Node, Tape};
use serde::{Deserialize, Serialize};

use super::HISTORY;
use crate::session::learn;
use crate::{
    Dialect, Entry, Gather, GatherError, Gathered, Origin, Out, Part, Reader, Session, Text, What,
    state, time,
};

/// Takes the prompts of each session out of the history.
pub(super) struct History;

impl Gather for History {
    fn parts(&self, from: &Gathered<'_>) -> Result<Vec<Part>, GatherError> {
        let mut counts: BTreeMap<String, u64> = BTreeMap::new();
        each_line(from, |session, _| {
            *counts.entry(session.to_owned()).or_default() += 1;
            Ok(())
        })?;
        let part = |(id, prompts): (String, u64)| Part {
            id,
            stamp: prompts.to_string(),
        };
        Ok(counts.into_iter().map(part).collect())
    }

    fn write(
        &self,
        from: &Gathered<'_>,
        part: &str,
        to: &mut dyn Write,
    ) -> Result<(), GatherError> {
        each_line(from, |session, line| {
            if session == part {
                to.write_all(line)?;
            }
            Ok(())
        })
    }

    fn dialect(&self) -> Dialect {
        HISTORY
    }
}

fn each_line(
    from: &Gathered<'_>,
    mut take: impl FnMut(&str, &[u8]) -> Result<(), GatherError>,
) -> Result<(), GatherError> {
    let Gathered::File(path) = from else {
        return Err(GatherError::Unknown("the history is a file".to_owned()));
    };
    let mut file = BufReader::new(File::open(path)?);
    let (mut line, mut tape) = (Vec::new(), Tape::new());
    while file.read_until(b'\n', &mut line)? > 0 {
        let text = String::from_utf8_lossy(&line);
        if let Ok(record) = tape.read(text.trim(), 128)
            && let Some(session) = record.text("sessionId")
        {
            take(&session, &line)?;
        }
        line.clear();
    }
    Ok(())
}

pub(super) fn open(_origin: &Origin<'_>, saved: Option<&[u8]>) -> Option<Box<dyn Reader>> {
    state::open(saved, Prompts::default)
}

/// Reads the prompts of one session.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Prompts {
    session: Session,
}

impl Reader for Prompts {
    fn record(&mut self, record: Node<'_>, out: &mut Out<'_>) {
        self.session.reconstructed = true;
        learn(&mut self.session.id, || record.text("sessionId"));
        learn(&mut self.session.cwd, || record.text("project"));
        let said = record.get("display").and_then(Text::of);
        out.check(
            "prompt",
            record,
            &[
                "display",
                "pastedContents",
                "timestamp",
                "project",
                "sessionId",
            ],
        );
        let Some(text) = said else {
            return;
        };
        out.push(Entry {
            at: time::field(record, "timestamp"),
            ..Entry::new(What::User(text))
        });
        // What was pasted stands apart from what was typed.
        for (_, pasted) in record
            .get("pastedContents")
            .into_iter()
            .flat_map(Node::fields)
        {
            if let Some(content) = pasted.get("content").and_then(Text::of) {
                out.push(Entry {
                    at: time::field(record, "timestamp"),
                    native_id: pasted
                        .get("id")
                        .map(|id| Cow::Owned(id.raw().get().to_owned())),
                    ..Entry::new(What::User(content))
                });
            }
        }
    }

    crate::state::keeps_session!();
}
