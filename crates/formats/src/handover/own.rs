//! Logs that are a sub-agent's own: its line is the main one.
//!
//! In an agent's log, what a sub-agent says stands beside the conversation. But a sub-agent's own log has nothing else, and
//! written beside a conversation that is not there, no agent would open it.

use std::io;

use quipu_model::{Attachment, Body, Event, Header, SubagentId};

use crate::loss::Loss;
use crate::projection::Projection;

/// How many events are held to see whether an agent speaks as well. Some logs of agents begin with a sub-agent.
const FIRST: usize = 32;

/// How it is counted that a sub-agent's line is the main one.
pub(crate) const MAIN: &str = "subagent (as the main line)";

/// Writes the line of the sub-agent whose log it is as the main one.
pub(crate) struct OwnLine<'w> {
    inner: Box<dyn Projection + 'w>,
    whose: Whose,
    /// Whether it is known that the session is a sub-agent's.
    is_child: bool,
    /// Attachments of the next event, while events are held.
    blobs: Vec<Blob>,
    loss: Loss,
}

type Blob = (Attachment, Vec<u8>);

enum Whose {
    /// Not known yet: what came so far, and who spoke first.
    Unknown {
        held: Vec<(Vec<Blob>, Event)>,
        first: Option<SubagentId>,
    },
    Agent,
    Subagent(SubagentId),
}

impl<'w> OwnLine<'w> {
    pub(crate) fn new(header: &Header, inner: Box<dyn Projection + 'w>) -> Self {
        Self {
            inner,
            whose: Whose::Unknown {
                held: Vec::new(),
                first: None,
            },
            is_child: header.parent_run_id.is_some(),
            blobs: Vec::new(),
            loss: Loss::default(),
        }
    }

    /// Writes an event of a log of which it is known whose it is.
    fn write(&mut self, event: &Event) -> io::Result<()> {
        match &self.whose {
            Whose::Subagent(own) if beside(event) == Some(own) => {
                self.loss.wrapped(MAIN, event.seq);
                let mut event = event.clone();
                event.annotations.subagent_id = None;
                self.inner.event(&event)
            }
            _ => self.inner.event(event),
        }
    }

    /// Writes what was held, now that it is known whose log it is.
    fn decide(&mut self, whose: Option<SubagentId>) -> io::Result<()> {
        let whose = whose.map_or(Whose::Agent, Whose::Subagent);
        let Whose::Unknown { held, .. } = std::mem::replace(&mut self.whose, whose) else {
            return Ok(());
        };
        for (blobs, event) in held {
            for (attachment, bytes) in blobs {
                self.inner.blob(&attachment, &bytes)?;
            }
            self.write(&event)?;
        }
        for (attachment, bytes) in std::mem::take(&mut self.blobs) {
            self.inner.blob(&attachment, &bytes)?;
        }
        Ok(())
    }
}

/// The sub-agent that an event is of. The agents of a workflow take turns; none of them is beside another.
fn beside(event: &Event) -> Option<&SubagentId> {
    let agent = event.annotations.subagent_id.as_ref();
    agent.filter(|_| event.place.path.is_empty())
}

impl Projection for OwnLine<'_> {
    fn blob(&mut self, attachment: &Attachment, bytes: &[u8]) -> io::Result<()> {
        if matches!(self.whose, Whose::Unknown { .. }) {
            self.blobs.push((attachment.clone(), bytes.to_vec()));
            return Ok(());
        }
        self.inner.blob(attachment, bytes)
    }

    fn event(&mut self, event: &Event) -> io::Result<()> {
        let Whose::Unknown { held, first } = &mut self.whose else {
            return self.write(event);
        };
        let agent = beside(event);
        // A note does not say who speaks.
        if agent.is_none() && !matches!(event.body, Body::Note(_)) {
            self.decide(None)?;
            return self.write(event);
        }
        if first.is_none() {
            *first = agent.cloned();
        }
        held.push((std::mem::take(&mut self.blobs), event.clone()));
        let is_known = self.is_child && first.is_some();
        if is_known || held.len() >= FIRST {
            let first = first.take();
            self.decide(first)?;
        }
        Ok(())
    }

    fn finish(mut self: Box<Self>) -> io::Result<Loss> {
        if let Whose::Unknown { first, .. } = &mut self.whose {
            let first = first.take();
            self.decide(first)?;
        }
        let mut loss = self.inner.finish()?;
        loss.add(&self.loss);
        Ok(loss)
    }
}
