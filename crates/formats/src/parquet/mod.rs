//! Tables for analysis: sessions as two Parquet files, for `DuckDB` and friends.
//!
//! * `events`: a row for each event, with all that is known of it.
//! * `calls`: a row for each tool call, joined with its result.
//!
//! Any number of sessions go into one pair of files. Rows are collected until there are enough for a row
//! group and then written column by column, so memory does not grow with what is written.
//!
//! Times are microseconds in UTC, tokens and numbers are unsigned, and money is `DECIMAL(38,18)`, so that sums
//! are exact. The same sessions give the same bytes. `docs/formats/parquet.md` has the columns, and queries.
//!
//! ```
//! use quipu_formats::parquet::{ParquetOptions, Tables};
//! use quipu_model::{Header, RunId};
//!
//! let header = Header::new(RunId::new("r1").unwrap());
//! let mut tables = Tables::new(Vec::new(), Vec::new(), &ParquetOptions::default())?;
//! tables.begin(&header);
//! let loss = tables.end()?;
//! assert_eq!(loss.events, 0);
//! let (events, calls) = tables.close()?;
//! assert!(events.starts_with(b"PAR1") && calls.ends_with(b"PAR1"));
//! # Ok::<(), std::io::Error>(())
//! ```

mod calls;
mod column;
mod events;
mod table;
mod values;

#[cfg(test)]
mod tests;

use std::io::{self, Write};

use quipu_model::{Body, Event, Header, Timestamp};

use self::calls::Calls;
use self::table::Table;
use crate::loss::{Field, Loss};
use crate::plain;

/// How tables are written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ParquetOptions {
    /// A row group is written when its rows hold so many bytes: this much is held in memory.
    pub row_group_bytes: usize,
    /// Or when there are so many of them.
    pub row_group_rows: usize,
}

impl Default for ParquetOptions {
    fn default() -> Self {
        Self {
            row_group_bytes: 32 << 20,
            // What DuckDB reads in one go.
            row_group_rows: 122_880,
        }
    }
}

/// What has a column.
pub const CARRIES: &[Field] = Field::ALL;

/// A session under way.
struct Session {
    header: Header,
    loss: Loss,
    /// The last time that an event told.
    last: Option<Timestamp>,
}

impl Session {
    /// When an event happened. One that does not tell is put beside the one before that did; where there is none, no time is
    /// known.
    fn time(&mut self, event: &Event) -> Option<Timestamp> {
        if !event.annotations.flags.undated {
            self.last = Some(event.timestamp);
        }
        self.last
    }
}

/// Writes sessions as a table of events and one of calls.
pub struct Tables<E: Write + Send, C: Write + Send> {
    events: Table<E>,
    calls: Table<C>,
    joins: Calls,
    session: Option<Session>,
    /// Whether a session was begun and not ended before another was.
    cut_off: bool,
}

impl<E: Write + Send, C: Write + Send> Tables<E, C> {
    /// Begins two files. They are written to in large parts, so they need no buffer.
    ///
    /// # Errors
    ///
    /// Those of whatever is written to.
    pub fn new(events: E, calls: C, options: &ParquetOptions) -> io::Result<Self> {
        let events = Table::new("events", events::COLUMNS, events, options);
        let calls = Table::new("calls", calls::COLUMNS, calls, options);
        Ok(Self {
            events: events.map_err(io::Error::other)?,
            calls: calls.map_err(io::Error::other)?,
            joins: Calls::default(),
            session: None,
            cut_off: false,
        })
    }

    /// Begins a session. What is known of it as a whole is in each of its rows.
    pub fn begin(&mut self, header: &Header) {
        self.cut_off |= self.session.is_some();
        self.session = Some(Session {
            header: header.clone(),
            loss: Loss::default(),
            last: None,
        });
    }

    /// Whether there is a session that was not given to its end. What is there of it cannot be taken out again.
    pub fn is_open(&self) -> bool {
        self.cut_off || self.session.is_some()
    }

    /// Takes the next event of the session.
    ///
    /// # Errors
    ///
    /// Those of whatever is written to; and when no session was begun.
    pub fn event(&mut self, event: &Event) -> io::Result<()> {
        let session = self.session.as_mut().ok_or_else(no_session)?;
        let at = session.time(event);
        let Session { header, loss, .. } = session;
        loss.events += 1;
        loss.carried += 1;
        plain::count(event, loss);
        let word = event.body.type_word();
        let event = &*plain::plain(event);
        loss.fields(event, CARRIES);
        for _ in &event.annotations.attachments {
            loss.dropped("attachment bytes", event.seq);
        }
        events::write(&mut self.events, header, (event, word), at, loss)?;
        match &event.body {
            Body::ToolCall(call) => self.joins.called(&mut self.calls, header, event, call),
            Body::ToolResult(result) => {
                let table = &mut self.calls;
                self.joins.answered(table, header, event, result, loss)
            }
            _ => Ok(()),
        }
    }

    /// Ends the session, and says what the tables do not have.
    ///
    /// # Errors
    ///
    /// Those of whatever is written to; and when no session was begun.
    pub fn end(&mut self) -> io::Result<Loss> {
        let session = self.session.take().ok_or_else(no_session)?;
        let Session {
            header, mut loss, ..
        } = session;
        self.joins.end(&mut self.calls, &header)?;
        // Rows say what is known of a session; where there are none, nothing does.
        let carried = if loss.events == 0 { &[][..] } else { CARRIES };
        loss.header(&header, carried);
        Ok(loss)
    }

    /// Writes what is left and the ends of both files, and gives back what was written to.
    ///
    /// # Errors
    ///
    /// Those of whatever is written to.
    pub fn close(self) -> io::Result<(E, C)> {
        Ok((self.events.close()?, self.calls.close()?))
    }
}

fn no_session() -> io::Error {
    io::Error::other("no session was begun")
}
