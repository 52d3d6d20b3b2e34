//! What is true of the run as a whole: `meta.json`.

use quipu_model::json::Tape;
use quipu_model::{Event, Header, Json, Step, StepEnd, Timestamp};

use super::Object;
use crate::flow::SCHEMA_VERSION;
use crate::flow::scan::DEPTH;
use crate::loss::Loss;
use crate::plain;

/// What the events of the run itself say.
#[derive(Debug, Default)]
pub(super) struct RunMeta {
    started: Option<Timestamp>,
    completed: Option<Timestamp>,
    step: Option<Step>,
    /// What the end calls the run, where the beginning does not.
    ended: Option<Step>,
    error: Option<String>,
    result: Option<Json>,
}

impl RunMeta {
    pub(super) fn started(&mut self, event: &Event, step: Option<&Step>, loss: &mut Loss) {
        if self.started.is_some() {
            loss.dropped(plain::name(event), event.seq);
            return;
        }
        self.started = Some(event.timestamp);
        self.step = step.cloned();
    }

    pub(super) fn completed(&mut self, event: &Event, end: Option<&StepEnd>, loss: &mut Loss) {
        if self.completed.is_some() {
            loss.dropped(plain::name(event), event.seq);
            return;
        }
        self.completed = Some(event.timestamp);
        if let Some(end) = end {
            self.ended = Some(&end.step)
                .filter(|step| self.step.as_ref() != Some(step))
                .cloned();
            self.error.clone_from(&end.error);
            self.result.clone_from(&end.result);
        }
    }

    /// The run goes on: how it ended before is not how it ends.
    pub(super) fn goes_on(&mut self) {
        self.completed = None;
        self.ended = None;
        self.error = None;
        self.result = None;
    }

    /// The word for how the run ended, where its result has one that is neither a success nor a failure.
    fn status(&self) -> Option<&'static str> {
        let mut tape = Tape::new();
        let result = tape.read(self.result.as_ref()?.get(), DEPTH).ok()?;
        match &*result.text("status")? {
            "cancelled" => Some("canceled"),
            "paused" => Some("paused"),
            _ => None,
        }
    }

    /// How many events are in it.
    pub(super) fn events(&self) -> u64 {
        u64::from(self.started.is_some()) + u64::from(self.completed.is_some())
    }

    pub(super) fn document(&self, header: &Header) -> Vec<u8> {
        let mut made = Object::default();
        made.text("id", header.run_id.as_str());
        made.some("title", header.title.as_deref());
        let status = self.status();
        match (self.completed, status, &self.error) {
            (None, _, _) => made.raw("status", "null"),
            (_, Some(status), _) => made.text("status", status),
            (_, None, Some(_)) => made.text("status", "failed"),
            (_, None, None) => made.text("status", "succeeded"),
        }
        // A run that waits has not ended.
        let completed = self.completed.filter(|_| status != Some("paused"));
        for (key, at) in [("started_at", self.started), ("completed_at", completed)] {
            match at {
                Some(at) => made.time(key, at),
                None => made.raw(key, "null"),
            }
        }
        made.some("error", self.error.as_deref());
        let parent = header.parent_run_id.as_ref();
        made.some("parent_run_id", parent.map(quipu_model::RunId::as_str));
        for (key, step) in [("run", &self.step), ("ended", &self.ended)] {
            if let Some(step) = step {
                made.object(key, |made| {
                    made.text("name", &step.name);
                    made.text("kind", &step.kind);
                });
            }
        }
        if let Some(result) = &self.result {
            made.raw("result", result.get());
        }
        if let Some(origin) = &header.origin {
            made.object("source", |made| {
                made.text("agent", &origin.agent);
                made.some("agent_version", origin.agent_version.as_deref());
            });
        }
        made.text("schema_version", SCHEMA_VERSION);
        made.end().into_bytes()
    }
}
