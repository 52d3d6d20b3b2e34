//! What Quipu wrote down of an event when it made a span of it: attributes that begin with `quipu.`.

use std::borrow::Cow;

use quipu_model::{Attachment, Place, Status, Timestamp};

use super::wire::Attrs;
use crate::Entry;

/// What is known of an event beside what it says.
#[derive(Debug, Clone, Default)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a mark that an event has or has not"
)]
pub(super) struct Marks<'a> {
    seq: u64,
    pub(super) at: Option<Timestamp>,
    native_id: Option<Cow<'a, str>>,
    parent_id: Option<Cow<'a, str>>,
    pub(super) subagent: Option<Cow<'a, str>>,
    model: Option<Cow<'a, str>>,
    model_call: Option<Cow<'a, str>>,
    stop_reason: Option<Cow<'a, str>>,
    duration_ms: Option<u64>,
    pub(super) status: Option<Status>,
    child: Option<Cow<'a, str>>,
    place: Option<Place>,
    attachments: Vec<Attachment>,
    opaque: bool,
    synthetic: bool,
    superseded: bool,
    undated: bool,
}

impl<'a> Marks<'a> {
    /// Those of an event that has a number; `None` of one that Quipu did not write.
    pub(super) fn of(attrs: &Attrs<'a>, at: Option<Timestamp>) -> Option<Self> {
        let seq = attrs.count("quipu.seq")?;
        let flags = attrs.texts("quipu.flags");
        let has = |word: &str| flags.iter().any(|flag| flag == word);
        let path = attrs.text("quipu.path");
        let iteration = attrs.count("quipu.iteration");
        let told = attrs
            .count("quipu.time_unix_nano")
            .and_then(|nanos| Timestamp::from_nanosecond(i128::from(nanos)).ok());
        let status = attrs.text("quipu.status");
        Some(Self {
            seq,
            at: told.or(at),
            native_id: attrs.text("quipu.native_id"),
            parent_id: attrs.text("quipu.parent_id"),
            subagent: attrs.text("quipu.subagent_id"),
            model: attrs.text("quipu.model"),
            model_call: attrs.text("quipu.model_call"),
            stop_reason: attrs.text("quipu.stop_reason"),
            duration_ms: attrs.count("quipu.duration_ms"),
            status: status.and_then(|word| Status::from_word(&word)),
            child: attrs.text("quipu.child_run_id"),
            place: (path.is_some() || iteration.is_some()).then(|| {
                let path = path.as_deref().unwrap_or_default();
                Place::flat(path, iteration.unwrap_or(0))
            }),
            attachments: attrs
                .texts("quipu.attachments")
                .iter()
                .filter_map(|told| attachment(told))
                .collect(),
            opaque: has("opaque"),
            synthetic: has("synthetic"),
            superseded: has("superseded"),
            undated: has("undated"),
        })
    }

    /// Whether these are of the same event.
    pub(super) fn are_of(&self, other: &Marks<'_>) -> bool {
        self.seq == other.seq
    }

    /// The same for the entry that becomes of it.
    pub(super) fn put_on(&self, entry: &mut Entry<'a>) {
        entry.at = self.at.filter(|_| !self.undated);
        entry.native_id.clone_from(&self.native_id);
        entry.parent_id.clone_from(&self.parent_id);
        entry.subagent.clone_from(&self.subagent);
        for (to, from) in [
            (&mut entry.model, &self.model),
            (&mut entry.model_call, &self.model_call),
            (&mut entry.stop_reason, &self.stop_reason),
        ] {
            if from.is_some() {
                to.clone_from(from);
            }
        }
        entry.duration_ms = self.duration_ms;
        if self.status.is_some() {
            entry.status = self.status;
        }
        entry.child.clone_from(&self.child);
        entry.attachments.extend(self.attachments.iter().cloned());
        entry.opaque |= self.opaque;
        entry.synthetic = self.synthetic;
        entry.superseded = self.superseded;
        if let Some(place) = &self.place {
            entry.in_run.get_or_insert_default().place = place.clone();
        }
    }
}

/// `image/png;bytes=12;sha256=…`
fn attachment(told: &str) -> Option<Attachment> {
    let (told, sha256) = told.rsplit_once(";sha256=")?;
    let (mime, bytes) = told.rsplit_once(";bytes=")?;
    Some(Attachment {
        mime: mime.to_owned(),
        bytes: bytes.parse().ok()?,
        sha256: sha256.to_owned(),
    })
}
