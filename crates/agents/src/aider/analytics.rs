//! What the lines of the analytics log mean.

use quipu_model::json::Node;
use quipu_model::{NoteKind, Usage};
use serde::{Deserialize, Serialize};

use super::wire::FIELDS;
use crate::cost::Cost;
use crate::session::{learn, update};
use crate::{Entry, Out, Reader, Session, time};

/// Reads an analytics log. All runs of one person stand in it.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct Analytics {
    session: Session,
    cost: Cost,
}

impl Reader for Analytics {
    fn record(&mut self, record: Node<'_>, out: &mut Out<'_>) {
        out.check("event", record, FIELDS);
        let event = record.text("event").unwrap_or_default();
        let about = record.get("properties");
        let text = |key: &str| about.and_then(|about| about.text(key));
        let count = |key: &str| about.and_then(|about| about.get(key)?.as_u64());
        learn(&mut self.session.id, || {
            let user = record.text("user_id")?;
            Some(format!("aider-analytics-{user}").into())
        });
        update(&mut self.session.version, text("aider_version"));
        let kind = match &*event {
            "message_send" => NoteKind::ModelCall,
            "message_send_exception" | "exit" if text("exception").is_some() => NoteKind::Error,
            _ => NoteKind::Session,
        };
        let is_call = event == "message_send";
        let usage = Usage {
            input: count("prompt_tokens"),
            output: count("completion_tokens"),
            ..Usage::default()
        };
        if is_call && let Some(cost) = about.and_then(|about| Cost::of(about.get("cost")?)) {
            self.cost.add(cost);
            self.session.vendor_cost = Some(self.cost.to_text());
        }
        out.push(Entry {
            at: time::field(record, "time"),
            model: text("main_model"),
            usage: Some(usage).filter(|usage| is_call && !usage.is_empty()),
            ..Entry::keep(kind, record)
        });
    }

    crate::state::keeps_session!();
}
