//! Messages, and what a sample has told already.

use std::borrow::Cow;
use std::collections::HashSet;

use quipu_model::json::{Kind, Node};
use quipu_model::{NoteKind, Status, Timestamp};

use super::wire::{self, Attachments};
use crate::{Entry, Out, Text, Value, What, blocks, capture, data_url};

/// What is told of a sample, and to whom it belongs.
pub(super) struct Telling<'a> {
    pub(super) attachments: Attachments<'a>,
    /// The sample, where the log has several.
    pub(super) sample: Option<String>,
    /// The messages that were told, by hash.
    told: HashSet<u64>,
    called: HashSet<u64>,
    answered: HashSet<u64>,
}

/// What is known of a message beside it.
#[derive(Clone, Default)]
pub(super) struct About<'a> {
    pub(super) at: Option<Timestamp>,
    pub(super) model: Option<Cow<'a, str>>,
    pub(super) call: Option<Cow<'a, str>>,
    pub(super) usage: Option<quipu_model::Usage>,
    pub(super) duration_ms: Option<u64>,
}

impl<'a> Telling<'a> {
    pub(super) fn new(attachments: Attachments<'a>, sample: Option<String>) -> Self {
        Self {
            attachments,
            sample,
            told: HashSet::new(),
            called: HashSet::new(),
            answered: HashSet::new(),
        }
    }

    pub(super) fn put(&self, mut entry: Entry<'a>, at: Option<Timestamp>, out: &mut Out<'_>) {
        entry.at = at;
        entry.subagent = self.sample.clone().map(Cow::Owned);
        out.push(entry);
    }

    /// A message, unless it was told before.
    pub(super) fn message(&mut self, message: Node<'a>, about: &About<'a>, out: &mut Out<'_>) {
        let id = capture::id(message, "id");
        let hash = match &id {
            Some(id) => crate::hash(id.as_bytes()),
            None => crate::hash(message.raw().get().as_bytes()),
        };
        if !self.told.insert(hash) {
            return;
        }
        let role = message.text("role").unwrap_or_default();
        if role == "tool" {
            return self.tool_message(message, id, about.at, out);
        }
        let mut about = about.clone();
        let content = message
            .get("content")
            .map(|content| self.attachments.resolve(content));
        if let Some(content) = content {
            if let Some(text) = Text::of(content)
                && !text.is_empty()
            {
                self.said(&role, What::Assistant(text), id.clone(), &mut about, out);
            }
            for item in content.items() {
                let entry = self.item(item, out);
                self.spoken(&role, entry, id.clone(), &mut about, out);
            }
        }
        for call in message.get("tool_calls").into_iter().flat_map(Node::items) {
            self.call(call, id.clone(), &mut about, out);
        }
        if about.usage.is_some() {
            // A reply without content.
            let entry = Entry::keep(NoteKind::ModelCall, message);
            self.spoken(&role, entry, id, &mut about, out);
        }
    }

    fn said(
        &self,
        role: &str,
        what: What<'a>,
        id: Option<Cow<'a, str>>,
        about: &mut About<'a>,
        out: &mut Out<'_>,
    ) {
        self.spoken(role, Entry::new(what), id, about, out);
    }

    /// Gives an entry what its message knows. What is not the model's is a prompt, or an instruction.
    fn spoken(
        &self,
        role: &str,
        mut entry: Entry<'a>,
        id: Option<Cow<'a, str>>,
        about: &mut About<'a>,
        out: &mut Out<'_>,
    ) {
        if role == "assistant" {
            entry.model.clone_from(&about.model);
            entry.model_call.clone_from(&about.call);
            entry.usage = about.usage.take();
            entry.duration_ms = about.duration_ms.take();
        } else if let What::Assistant(text) = entry.what {
            let system = matches!(role, "system" | "developer");
            entry = Entry {
                synthetic: system,
                ..Entry::new(if system {
                    What::System(text)
                } else {
                    What::User(text)
                })
            };
        }
        entry.native_id = id;
        self.put(entry, about.at, out);
    }

    /// One item of a message's content.
    fn item(&self, item: Node<'a>, out: &mut Out<'_>) -> Entry<'a> {
        let text = |key: &str| item.get(key).and_then(|text| self.attachments.text(text));
        match item.text("type").as_deref() {
            Some("text") => Entry::new(What::Assistant(text("text").unwrap_or(Text::EMPTY))),
            Some("reasoning") => {
                let redacted = item.get("redacted").and_then(|n| n.as_bool()) == Some(true);
                // What is redacted is there in a form that only the provider reads; the summary is for people.
                let said = if redacted {
                    text("summary")
                } else {
                    text("reasoning")
                };
                let said = said.unwrap_or(Text::EMPTY);
                Entry {
                    opaque: redacted || said.is_empty(),
                    ..Entry::new(What::Reasoning(said))
                }
            }
            Some(kind @ ("image" | "audio" | "video" | "document")) => {
                self.attached(kind, item, out)
            }
            Some("data" | "tool_use") => Entry::keep(NoteKind::Attachment, item),
            other => {
                out.unknown_type("content", other.unwrap_or_default());
                Entry::keep(NoteKind::UnknownRecord, item)
            }
        }
    }

    fn attached(&self, kind: &str, item: Node<'a>, out: &mut Out<'_>) -> Entry<'a> {
        let data = item
            .get(kind)
            .and_then(|data| self.attachments.resolve(data).as_str());
        let inside = data
            .as_deref()
            .and_then(data_url)
            .and_then(|(mime, data)| Some((mime.to_owned(), out.detach(mime, data)?)));
        match inside {
            Some((mime, attachment)) => Entry {
                attachments: vec![attachment],
                ..Entry::note(NoteKind::Attachment, mime)
            },
            None => blocks::kept(NoteKind::Attachment, item, out),
        }
    }

    fn call(
        &mut self,
        call: Node<'a>,
        message: Option<Cow<'a, str>>,
        about: &mut About<'a>,
        out: &mut Out<'_>,
    ) {
        let id = call.text("id").unwrap_or_default();
        if !self.called.insert(crate::hash(id.as_bytes())) {
            return;
        }
        let mut attachments = Vec::new();
        let input = call
            .get("arguments")
            .map(|input| match self.attachments.text(input) {
                Some(text) => Value::Text(text),
                None => out.value(input, &mut attachments),
            });
        let entry = Entry {
            attachments,
            ..Entry::new(What::Call {
                name: call.text("function").unwrap_or_default(),
                id,
                input,
            })
        };
        self.spoken("assistant", entry, message, about, out);
    }

    /// A tool that ran, and its call where no reply had it.
    pub(super) fn tool(&mut self, event: Node<'a>, at: Option<Timestamp>, out: &mut Out<'_>) {
        let message = capture::id(event, "message_id");
        if let Some(message) = &message {
            self.told.insert(crate::hash(message.as_bytes()));
        }
        self.call(
            event,
            None,
            &mut About {
                at,
                ..About::default()
            },
            out,
        );
        let mut entry = self.result(event, "id", "result", out);
        entry.native_id = message;
        entry.duration_ms = event.get("working_time").and_then(wire::millis);
        let done = crate::time::field(event, "completed").or(at);
        self.put(entry, done, out);
    }

    /// What a tool gave back, as a message. Mostly its event told it.
    fn tool_message(
        &mut self,
        message: Node<'a>,
        id: Option<Cow<'a, str>>,
        at: Option<Timestamp>,
        out: &mut Out<'_>,
    ) {
        let call = message.text("tool_call_id").unwrap_or_default();
        if self.answered.contains(&crate::hash(call.as_bytes())) {
            return;
        }
        let mut entry = self.result(message, "tool_call_id", "content", out);
        entry.native_id = id;
        self.put(entry, at, out);
    }

    fn result(&mut self, of: Node<'a>, id: &str, output: &str, out: &mut Out<'_>) -> Entry<'a> {
        let id = of.text(id).unwrap_or_default();
        self.answered.insert(crate::hash(id.as_bytes()));
        let error = of.get("error").filter(|error| error.kind() == Kind::Object);
        let why = error.map(|error| {
            let text = error
                .get("message")
                .and_then(|text| self.attachments.text(text));
            text.unwrap_or_else(|| Text::from("failed"))
        });
        let mut attachments = Vec::new();
        let output = of
            .get(output)
            .map(|output| self.attachments.resolve(output));
        let output =
            output.filter(|output| !(output.is_null() || (why.is_some() && output.is(""))));
        let output = output.map(|output| match self.only_text(output) {
            Some(text) => Value::Text(text),
            None => out.value(output, &mut attachments),
        });
        Entry {
            attachments,
            status: Some(error.map_or(Status::Ok, |error| {
                wire::status(&error.text("type").unwrap_or_default())
            })),
            ..Entry::new(What::Result {
                name: of.text("function").unwrap_or_default(),
                id,
                output,
                error: why,
            })
        }
    }

    /// What a tool gave back, when it is only a text.
    fn only_text(&self, output: Node<'a>) -> Option<Text<'a>> {
        if let Some(text) = Text::of(output) {
            return Some(text);
        }
        let mut items = output.items();
        match (items.next(), items.next()) {
            (Some(one), None) if one.get("type").is_some_and(|kind| kind.is("text")) => {
                self.attachments.text(one.get("text")?)
            }
            _ => None,
        }
    }
}
