//! A trace as every other format is written.

use std::io::{self, Write};

use quipu_model::{Attachment, Event, Header};

use super::{Facts, Made, ProjectionOptions, Projector, Sink};
use crate::loss::{Field, Loss};
use crate::projection::{Beside, Projection};

/// What a trace has a place for. What its records do not have themselves stands in `meta.quipu`.
const CARRIES: &[Field] = &[
    Field::Timestamp,
    Field::RunLinks,
    Field::Place,
    Field::NativeId,
    Field::Subagent,
    Field::Model,
    Field::Usage,
    Field::UsageCache,
    Field::UsageReasoning,
    Field::Cost,
    Field::ModelCall,
    Field::StopReason,
    Field::Duration,
    Field::Status,
    Field::Child,
    Field::Children,
    Field::Attachments,
    Field::Synthetic,
    Field::Superseded,
    Field::Undated,
    Field::Opaque,
    Field::Dangling,
    Field::UsageCache1h,
    Field::Title,
    Field::ParentCall,
    Field::ForkedFrom,
    Field::Agent,
    Field::AgentVersion,
    Field::SessionId,
    Field::Cwd,
    Field::Branch,
    Field::Repository,
    Field::Commit,
    Field::Os,
    Field::Shell,
];

/// Writes a session as a trace.
///
/// # Errors
///
/// None before the first event.
pub fn writer<'w>(
    header: &Header,
    options: &ProjectionOptions,
    out: Box<dyn Write + 'w>,
    beside: Box<dyn Beside + 'w>,
) -> io::Result<Box<dyn Projection + 'w>> {
    let mut lost = Loss::default();
    lost.header(header, CARRIES);
    Ok(Box::new(Trace {
        projector: Projector::new(Facts::of(header), *options),
        lines: Lines { out, beside },
        lost,
    }))
}

struct Trace<'w> {
    projector: Projector,
    lines: Lines<'w>,
    /// What the projector does not look at.
    lost: Loss,
}

struct Lines<'w> {
    out: Box<dyn Write + 'w>,
    beside: Box<dyn Beside + 'w>,
}

impl Sink for Lines<'_> {
    fn record(&mut self, made: &Made<'_>) -> io::Result<()> {
        self.out.write_all(made.line)
    }

    fn blob(&mut self, attachment: &Attachment, bytes: &[u8]) -> io::Result<()> {
        self.beside.blob(attachment, bytes).map(drop)
    }
}

impl Projection for Trace<'_> {
    fn blob(&mut self, attachment: &Attachment, bytes: &[u8]) -> io::Result<()> {
        self.lines.blob(attachment, bytes)
    }

    fn event(&mut self, event: &Event) -> io::Result<()> {
        if super::events::kind(&event.body).is_some() && event.annotations.extra.is_some() {
            // Fields that such a record does not take are counted where it is made.
            self.lost
                .fields(event, &[CARRIES, &[Field::Extra]].concat());
        } else {
            self.lost.fields(event, CARRIES);
        }
        self.projector.event(event, &mut self.lines)
    }

    fn finish(mut self: Box<Self>) -> io::Result<Loss> {
        let mut loss = self.projector.finish(&mut self.lines)?;
        self.lines.out.flush()?;
        loss.dropped.extend(self.lost.dropped);
        Ok(loss)
    }
}
