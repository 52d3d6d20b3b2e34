//! The history as the model sees it, one message a line.
//!
//! `{"type":"assistant","content":"…","tool_calls":[…],"model_id":"…"}`; older versions have `role` in the
//! place of `type`.

use std::borrow::Cow;

use quipu_model::NoteKind;
use quipu_model::json::Node;
use serde::{Deserialize, Serialize};

use crate::openai_chat::message;
use crate::{Dropped, Entry, Origin, Out, Reader, Session, Text, What, capture, state};

/// Every field of a message.
const FIELDS: &[&str] = &[
    "type",
    "role",
    "id",
    "content",
    "summary",
    "encrypted_content",
    "status",
    "prompt_index",
    "tool_calls",
    "tool_call_id",
    "model_id",
    "model_fingerprint",
    "reasoning_effort",
    "reasoning_content",
    "synthetic_reason",
    "images",
];

pub(super) fn open(origin: &Origin<'_>, saved: Option<&[u8]>) -> Option<Box<dyn Reader>> {
    if let Some(saved) = saved {
        return Some(Box::new(state::load::<Messages>(saved)?));
    }
    // The log does not name its session; the directory it is in does.
    let named = origin.above().next().filter(|name| name.len() == 36);
    let session = Session {
        id: named.map(str::to_owned),
        ..Session::default()
    };
    Some(Box::new(Messages { session }))
}

/// Reads the messages of a history.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Messages {
    session: Session,
}

impl Messages {
    fn line(record: Node<'_>, out: &mut Out<'_>) {
        out.check("message", record, FIELDS);
        let model = record.text("model_id");
        let put = |mut entry: Entry<'_>, out: &mut Out<'_>| {
            entry.model = model.as_deref().map(|model| Cow::Owned(model.to_owned()));
            if let What::User(text) = entry.what {
                let synthetic = record.get("synthetic_reason").is_some_and(|r| !r.is_null())
                    || text.starts_with("<system-reminder>");
                entry.what = if synthetic {
                    What::System(text)
                } else {
                    What::User(text)
                };
                entry.synthetic = synthetic;
            }
            out.push(entry);
        };
        let kind = record
            .text("type")
            .or(record.text("role"))
            .unwrap_or_default();
        let role = match &*kind {
            "tool_result" => "tool",
            "reasoning" => {
                let texts = record.get("summary").into_iter().flat_map(Node::items);
                let texts: Vec<Cow<'_, str>> = texts.filter_map(|part| part.text("text")).collect();
                let text = Text::from(texts.join("\n\n"));
                let entry = Entry {
                    opaque: text.is_empty(),
                    native_id: capture::id(record, "id"),
                    ..Entry::new(What::Reasoning(text))
                };
                return put(entry, out);
            }
            role => role,
        };
        if message::entries_of(role, record, out, &mut |entry, out| put(entry, out)) {
            out.skip(Dropped::Empty);
        } else {
            out.unknown_type("message", role);
            out.push(Entry::keep(NoteKind::UnknownRecord, record));
        }
    }
}

impl Reader for Messages {
    fn record(&mut self, record: Node<'_>, out: &mut Out<'_>) {
        capture::records(record, out, Self::line);
    }

    fn sidecar(&mut self, _name: &str, document: Node<'_>, _out: &mut Out<'_>) {
        super::normalize::summary(&mut self.session, document);
    }

    crate::state::keeps_session!();
}
