//! Images and other things that are attached: parts of messages and of what tools gave back.
//!
//! Their bytes are in files beside the document, which is not here. So a part is kept as it is, in a note, by which
//! it can be written again.

use quipu_model::json::{Kind, Node};
use quipu_model::{Attachment, NoteKind};

use super::normalize::{Common, noted};
use crate::{Entry, Out, Text, What};

/// The text of a part that is one.
pub(super) fn text(part: Node<'_>) -> Option<Text<'_>> {
    let is_text = part.get("type").is_some_and(|kind| kind.is("text"));
    part.get("text").and_then(Text::of).filter(|_| is_text)
}

/// What Quipu knew of what was attached, and where it lies.
pub(super) fn listed(own: Node<'_>) -> impl Iterator<Item = (Attachment, Option<String>)> + '_ {
    let list = own.get("attachments").into_iter().flat_map(Node::items);
    list.filter_map(|item| {
        let attachment = Attachment {
            mime: item.text("mime")?.into_owned(),
            bytes: item.get("bytes")?.as_u64()?,
            sha256: item.text("sha256")?.into_owned(),
        };
        let path = item.text("path").map(std::borrow::Cow::into_owned);
        Some((attachment, path))
    })
}

/// Where the file of a part lies.
pub(super) fn path(part: Node<'_>) -> Option<std::borrow::Cow<'_, str>> {
    part.path(&["source", "path"])?.as_str()
}

/// Whether Quipu added this part of a message for something attached. The first versions told only how many there
/// are at the end.
pub(super) fn is_added(n: usize, count: usize, own: Option<Node<'_>>) -> bool {
    let Some(added) = own.and_then(|own| own.get("added")) else {
        return false;
    };
    if added.kind() == Kind::List {
        let n = u64::try_from(n).ok();
        return added.items().any(|at| at.as_u64() == n);
    }
    let added = usize::try_from(added.as_u64().unwrap_or(0)).unwrap_or(usize::MAX);
    n >= count.saturating_sub(added)
}

/// A part that Quipu added: the note that it was made of, or what an event had attached.
pub(super) fn added<'a>(
    n: usize,
    part: Node<'a>,
    own: Option<Node<'a>>,
    common: &Common<'a>,
    out: &mut Out<'_>,
) {
    let notes = own.and_then(|own| own.get("notes"));
    let mut notes = notes.into_iter().flat_map(Node::items);
    let n = u64::try_from(n).ok();
    let is_its = |note: &Node<'_>| note.get("part").is_some_and(|at| at.as_u64() == n);
    if let Some(note) = notes.find(is_its) {
        let mut entry = noted(note);
        if let What::Note { raw, .. } = &mut entry.what
            && raw.is_none()
            && path(part).is_some()
        {
            *raw = Some(part.into());
        }
        return common.put_note(entry, out);
    }
    let Some(place) = path(part) else {
        // It says that something was attached, as its event does.
        return;
    };
    let events = own.and_then(|own| own.get("events"));
    let events = events.into_iter().flat_map(Node::items);
    let its = events
        .flat_map(listed)
        .find(|(_, at)| at.as_deref() == Some(&*place));
    attached(
        part,
        its.map(|(it, _)| it).into_iter().collect(),
        common,
        out,
    );
}

/// A note that keeps a part.
pub(super) fn attached<'a>(
    part: Node<'a>,
    attachments: Vec<Attachment>,
    common: &Common<'a>,
    out: &mut Out<'_>,
) {
    let note = Entry {
        attachments,
        native_id: common.native_id.clone(),
        parent_id: common.parent_id.clone(),
        ..Entry::keep(NoteKind::Attachment, part)
    };
    common.put_note(note, out);
}
