//! What one record of a log says of all entries it becomes.

use std::borrow::Cow;
use std::cell::RefCell;

use quipu_model::Timestamp;
use quipu_model::json::Node;

use crate::{Entry, Extra, Out, What};

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

impl<'a> Common<'a> {
    /// What a call to a model says of all entries of its response.
    pub(crate) fn of_call(id: Option<&'a str>, model: Option<&'a str>) -> Self {
        Self {
            id: id.map(Cow::Borrowed),
            call: id.map(Cow::Borrowed),
            model: model.map(Cow::Borrowed),
            ..Self::default()
        }
    }
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

/// The same, with the record itself: its fields that have no place of their own go with the first entry.
pub(crate) struct Kept<'a> {
    pub(crate) common: Common<'a>,
    pub(crate) record: Node<'a>,
    pub(crate) extra: RefCell<Extra<'a>>,
}

impl<'a> Kept<'a> {
    pub(crate) fn new(record: Node<'a>, common: Common<'a>) -> Self {
        Self {
            common,
            record,
            extra: RefCell::default(),
        }
    }

    /// Keeps the fields of an object that are not mapped, with the first entry. `name` is empty for those that stand
    /// by themselves.
    pub(crate) fn keep(
        &self,
        name: &'static str,
        object: Node<'a>,
        mapped: &'static [&'static str],
    ) {
        self.extra.borrow_mut().rest(name, object, mapped);
    }

    /// Hands over an entry of the record.
    pub(crate) fn put(&self, mut entry: Entry<'a>, out: &mut Out<'_>) {
        let extra = self.extra.take();
        if !entry.keeps(self.record) {
            entry.extra.append(extra);
        }
        self.common.put(entry, out);
    }
}
