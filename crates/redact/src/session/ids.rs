//! Ids under other names. Most ids tell when they were made, and some can be looked up, so that they are given back what
//! a profile removes. What was linked by them is linked by what stands for them.

use quipu_formats::normalized::Beyond;
use quipu_model::{
    Attachment, Block, Body, Content, Event, Header, ModelCallId, NativeId, RunId, SessionId,
    SubagentId, ToolCallId,
};

use super::names::is_stand_in;
use crate::Key;

/// What a pseudonym of an id begins with.
const WORD: &str = "id";

/// What stands for ids; with no key, they stay.
#[derive(Debug, Default)]
pub(super) struct Ids(pub(super) Option<Key>);

/// What stands for an id; `None` when it stays.
pub(crate) fn stands_for(key: &Key, id: &str) -> Option<String> {
    (!id.is_empty() && !is_stand_in(id)).then(|| key.pseudonym(WORD, id))
}

/// What stands for the hash of an attachment: of the same shape.
pub(crate) fn stands_for_hash(key: &Key, sha256: &str) -> String {
    quipu_model::hex::encode(&key.hash("attachment", &[sha256.as_bytes()]))
}

impl Ids {
    /// What stands for an id; `None` when it stays.
    pub(super) fn of(&self, id: &str) -> Option<String> {
        stands_for(self.0.as_ref()?, id)
    }

    fn text(&self, id: &mut String) {
        if let Some(stands) = self.of(id) {
            *id = stands;
        }
    }

    fn optional(&self, id: Option<&mut String>) {
        if let Some(id) = id {
            self.text(id);
        }
    }

    fn run(&self, run: &mut RunId) {
        if let Some(stands) = self.of(run.as_str()).and_then(|id| RunId::new(&id).ok()) {
            *run = stands;
        }
    }

    /// Replaces those that a header has.
    pub(super) fn header(&self, header: &mut Header) {
        if self.0.is_none() {
            return;
        }
        self.run(&mut header.run_id);
        header
            .parent_run_id
            .iter_mut()
            .for_each(|run| self.run(run));
        self.optional(header.parent_call.as_mut().map(ToolCallId::text_mut));
        self.optional(header.forked_from.as_mut().map(SessionId::text_mut));
        let children = std::mem::take(&mut header.children);
        header.children = children
            .iter()
            .cloned()
            .map(|mut child| {
                self.run(&mut child);
                child
            })
            .collect();
        if let Some(origin) = &mut header.origin {
            self.optional(origin.session_id.as_mut().map(SessionId::text_mut));
        }
    }

    /// Replaces those that an event has.
    pub(super) fn event(&self, event: &mut Event, beyond: &mut Beyond) {
        if self.0.is_none() {
            return;
        }
        self.run(&mut event.run_id);
        event.parent_run_id.iter_mut().for_each(|run| self.run(run));
        self.optional(beyond.id.as_mut());
        self.body(&mut event.body);
        // To change annotations is to make them.
        if event.annotations.is_empty() {
            return;
        }
        let notes = &mut *event.annotations;
        for id in [
            notes.native_id.as_mut().map(NativeId::text_mut),
            notes.parent_id.as_mut().map(NativeId::text_mut),
            notes.subagent_id.as_mut().map(SubagentId::text_mut),
            notes.model_call.as_mut().map(ModelCallId::text_mut),
        ] {
            self.optional(id);
        }
        notes.child.iter_mut().for_each(|run| self.run(run));
    }

    /// Replaces the hashes of attachments that are not shared: what they are of can be looked up.
    pub(super) fn attachments(&self, event: &mut Event) {
        let Some(key) = &self.0 else { return };
        let stand_in = |blob: &mut Attachment| blob.sha256 = stands_for_hash(key, &blob.sha256);
        match &mut event.body {
            Body::Blob(blob) => stand_in(blob),
            Body::ModelCall(call) => {
                call.request.iter_mut().for_each(stand_in);
                call.response.iter_mut().for_each(stand_in);
            }
            _ => {}
        }
        // To change annotations is to make them.
        if !event.annotations.attachments.is_empty() {
            event.annotations.attachments.iter_mut().for_each(stand_in);
        }
    }

    fn body(&self, body: &mut Body) {
        match body {
            Body::ToolCall(call) => self.text(call.call_id.text_mut()),
            Body::ToolResult(result) => self.text(result.call_id.text_mut()),
            Body::UserMessage(blocks)
            | Body::AssistantMessage(blocks)
            | Body::SystemMessage(blocks) => self.blocks(blocks),
            Body::Unknown(unknown) => self.optional(unknown.child_run_id.as_mut()),
            Body::CallStarted { child_run_id, .. } | Body::CallCompleted { child_run_id, .. } => {
                self.run(child_run_id);
            }
            _ => {}
        }
    }

    fn blocks(&self, blocks: &mut [Block]) {
        for block in blocks {
            if let Content::ToolUse { id, .. } | Content::ToolResult { id, .. } = &mut block.content
            {
                self.text(id.text_mut());
            }
        }
    }
}
