//! What becomes of events that are neither messages nor tools nor steps.

use quipu_model::{Body, Chunk, Failure, HarnessEvent, ModelCall, Unknown};

use super::content::Shaper;
use super::json::rule;
use super::mask::{Cut, POLICY};

impl Shaper<'_, '_> {
    /// Changes an event of such a kind. Its fields are named as the normalized transcript names them.
    pub(super) fn other_kind(&mut self, body: &mut Body, given: &[(usize, Cut)]) {
        match body {
            Body::ModelCall(call) => self.model_call(call),
            Body::Chunk(chunk) => self.chunk(chunk, given),
            Body::Harness(event) => self.harness(event),
            Body::Blob(blob) => self.name("meta.fields.mime", &mut blob.mime),
            Body::Error(failure) => self.failure(failure),
            Body::Unknown(unknown) => self.unknown_event(unknown),
            _ => {}
        }
    }

    fn model_call(&mut self, call: &mut ModelCall) {
        if let Some(provider) = &mut call.provider {
            self.name("meta.fields.provider", provider);
        }
        if let Some(params) = &mut call.params {
            self.unknown("meta.fields.params", params);
        }
        for (field, blob) in [
            ("meta.fields.request.mime", &mut call.request),
            ("meta.fields.response.mime", &mut call.response),
        ] {
            if let Some(blob) = blob {
                self.name(field, &mut blob.mime);
            }
        }
        if let Some(error) = &mut call.error {
            self.error("meta.fields.error", error, None);
        }
    }

    /// A chunk as the provider sent it repeats the text, and what is found in several chunks together cannot be found
    /// in it. It stays where all content does.
    fn chunk(&mut self, chunk: &mut Chunk, given: &[(usize, Cut)]) {
        let cuts: Vec<Cut> = given.iter().map(|(_, cut)| cut.clone()).collect();
        let part = self.profile.text.clone();
        self.text("meta.fields.text", &mut chunk.text, &part, "text", &cuts);
        let Some(delta) = &mut chunk.delta else {
            return;
        };
        if self.profile.changes_nothing() {
            self.unknown("meta.fields.delta", delta);
        } else {
            let label = "[REDACTED:raw]".to_owned();
            self.mask
                .whole_json("meta.fields.delta", delta, &rule("raw"), POLICY, label);
        }
    }

    fn harness(&mut self, event: &mut HarnessEvent) {
        self.name("meta.fields.category", &mut event.category);
        self.name("meta.fields.name", &mut event.name);
        if let Some(attributes) = &mut event.attributes {
            self.unknown("meta.fields.attributes", attributes);
        }
    }

    fn failure(&mut self, failure: &mut Failure) {
        if let Some(source) = &mut failure.source {
            self.name("meta.fields.source", source);
        }
        if let Some(code) = &mut failure.code {
            self.name("meta.fields.code", code);
        }
        self.error("meta.fields.message", &mut failure.message, None);
    }

    fn unknown_event(&mut self, unknown: &mut Unknown) {
        self.name("meta.event", &mut unknown.event_type);
        if let Some(child) = &mut unknown.child_run_id {
            self.name("meta.childRunId", child);
        }
        self.unknown("meta.fields", &mut unknown.payload);
    }
}
