//! What one record of a log says of all entries it becomes.

use std::borrow::Cow;

use quipu_model::Timestamp;

use crate::{Entry, Out, What};

/// What a record says of all entries it becomes. An entry that says something else of itself keeps that. `Own` is what
/// only one family has to know while it reads the record.
#[derive(Debug, Clone, Default)]
pub(crate) struct Common<'a, Own = ()> {
    pub(crate) at: Option<Timestamp>,
    pub(crate) id: Option<Cow<'a, str>>,
    pub(crate) parent: Option<Cow<'a, str>>,
    pub(crate) subagent: Option<Cow<'a, str>>,
    pub(crate) model: Option<Cow<'a, str>>,
    pub(crate) call: Option<Cow<'a, str>>,
    /// Model and call are those of what the model itself said and asked for, and of nothing else in the record.
    pub(crate) only_spoken: bool,
    pub(crate) own: Own,
}

impl<'a, Own> Common<'a, Own> {
    /// Hands over an entry of the record.
    pub(crate) fn put(&self, mut entry: Entry<'a>, out: &mut Out<'_>) {
        fn fill<'a>(to: &mut Option<Cow<'a, str>>, from: Option<&Cow<'a, str>>) {
            if to.is_none() {
                *to = from.cloned();
            }
        }
        entry.at = entry.at.or(self.at);
        fill(&mut entry.native_id, self.id.as_ref());
        fill(&mut entry.parent_id, self.parent.as_ref());
        fill(&mut entry.subagent, self.subagent.as_ref());
        let is_spoken = matches!(
            entry.what,
            What::Assistant(_) | What::Reasoning(_) | What::Call { .. }
        );
        if is_spoken || !self.only_spoken {
            fill(&mut entry.model, self.model.as_ref());
            fill(&mut entry.model_call, self.call.as_ref());
        }
        out.push(entry);
    }
}
