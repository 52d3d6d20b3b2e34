//! Calls of tools, and what they gave back.

use std::borrow::Cow;

use quipu_model::json::{Kind, Node};
use quipu_model::{Attachment, Json, NoteKind, Status};

use super::normalize::Common;
use super::{parts, wire};
use crate::blocks;
use crate::{Entry, Out, Text, Value, What, time};

/// A call of a tool.
pub(super) fn call<'a>(call: Node<'a>, common: &mut Common<'a>, out: &mut Out<'_>) {
    if call.kind() != Kind::Object {
        return common.put_note(Entry::keep(NoteKind::UnknownRecord, call), out);
    }
    out.check("tool_call", call, wire::CALL);
    let own = wire::own(call);
    let id = call
        .text("tool_call_id")
        .filter(|_| !wire::marked(own, "no_id"));
    let arguments = call
        .get("arguments")
        .filter(|_| !wire::marked(own, "no_arguments"));
    let raw = own.and_then(|own| own.text("raw"));
    let input = arguments.map(|arguments| match (raw.as_deref(), arguments.get("_raw")) {
        (Some("value"), Some(value)) => value.into(),
        (Some("text"), Some(value)) => json_of(value).map_or_else(|| value.into(), Value::Owned),
        _ => arguments.into(),
    });
    let entry = Entry {
        at: time_of(own),
        native_id: own.and_then(|own| own.text("native_id")),
        parent_id: own.and_then(|own| own.text("parent_id")),
        attachments: own
            .into_iter()
            .flat_map(parts::listed)
            .map(|(it, _)| it)
            .collect(),
        ..Entry::new(What::Call {
            name: call.text("function_name").unwrap_or_default(),
            id: id.unwrap_or_default(),
            input,
        })
    };
    common.put(entry, out);
    if wire::has_extra(call, &["quipu"]) {
        common.put_note(more(call, &["function_name", "arguments"]), out);
    }
}

/// What a tool gave back, or the trajectory of a sub-agent.
pub(super) fn result<'a>(result: Node<'a>, common: &mut Common<'a>, out: &mut Out<'_>) {
    if result.kind() != Kind::Object {
        return common.put_note(Entry::keep(NoteKind::UnknownRecord, result), out);
    }
    out.check("result", result, wire::RESULT);
    let own = wire::own(result);
    let content = result.get("content").filter(|content| !content.is_null());
    let refs = result
        .get("subagent_trajectory_ref")
        .filter(|refs| !refs.is_null());
    let child = match (own, refs) {
        (Some(own), _) => own.text("child"),
        (None, refs) => refs.and_then(|refs| named(refs.items().next()?)),
    };
    let answers = result.text("source_call_id");
    if content.is_none() && answers.is_none() && own.is_none() && refs.is_some() {
        let note = Entry {
            child,
            ..Entry::keep(NoteKind::Subagent, result)
        };
        return common.put_note(note, out);
    }
    let extra = |key: &str| result.path(&["extra", key]);
    let form = own.and_then(|own| own.text("form"));
    let status = extra("status").and_then(|word| Status::from_word(&word.as_str()?));
    let (beside, inside) = attached(content, own);
    let entry = Entry {
        at: time_of(own),
        native_id: own.and_then(|own| own.text("native_id")),
        parent_id: own.and_then(|own| own.text("parent_id")),
        status,
        duration_ms: extra("duration_ms").and_then(|n| n.as_u64()),
        as_told: true,
        attachments: inside,
        child,
        ..Entry::new(What::Result {
            name: own.and_then(|own| own.text("name")).unwrap_or_default(),
            id: answers.or_else(|| own?.text("call_id")).unwrap_or_default(),
            output: content.and_then(|content| output(content, form.as_deref(), own)),
            error: extra("error").and_then(Text::of),
        })
    };
    common.put(entry, out);
    let is_list = content.is_some_and(|content| content.kind() == Kind::List);
    if let Some(content) = content.filter(|_| is_list) {
        let shown = shown(content, own);
        for part in content.items().skip(shown) {
            let Some(path) = parts::path(part) else {
                // It says that something was attached, as the result does.
                continue;
            };
            let its = beside.iter().find(|(_, at)| *at == path);
            let note = Entry {
                attachments: its.map(|(it, _)| it.clone()).into_iter().collect(),
                ..Entry::keep(NoteKind::Attachment, part)
            };
            common.put_note(note, out);
        }
    }
    let several = refs.is_some_and(|refs| refs.items().nth(1).is_some() || has_more(refs));
    if several || wire::has_extra(result, &["quipu", "status", "duration_ms", "error"]) {
        common.put_note(more(result, &["content"]), out);
    }
}

/// What was attached to a result: what stands behind its content, with its place, and what is in it or nowhere.
fn attached(
    content: Option<Node<'_>>,
    own: Option<Node<'_>>,
) -> (Vec<(Attachment, String)>, Vec<Attachment>) {
    let (mut beside, mut inside) = (Vec::new(), Vec::new());
    let added = content.filter(|content| content.kind() == Kind::List);
    let added: Vec<Node<'_>> = added
        .into_iter()
        .flat_map(|content| content.items().skip(shown(content, own)))
        .collect();
    for (attachment, path) in own.into_iter().flat_map(parts::listed) {
        let is_beside = |path: &String| {
            added
                .iter()
                .any(|part| parts::path(*part).as_deref() == Some(path))
        };
        match path.filter(is_beside) {
            Some(path) => beside.push((attachment, path)),
            None => inside.push(attachment),
        }
    }
    (beside, inside)
}

/// Whether a reference says more than where a trajectory is.
fn has_more(refs: Node<'_>) -> bool {
    let mut refs = refs.items();
    refs.any(|of| of.get("extra").is_some_and(|extra| !extra.is_null()))
}

/// The rest of a call or a result, as a note.
fn more<'a>(of: Node<'a>, read: &[&str]) -> Entry<'a> {
    Entry::new(What::Note {
        kind: NoteKind::Context,
        text: None,
        raw: Some(blocks::without(of, read)),
    })
}

/// What a reference names: a trajectory in the same document, another session, or a file.
fn named(of: Node<'_>) -> Option<Cow<'_, str>> {
    let names = ["trajectory_id", "session_id", "trajectory_path"];
    names
        .iter()
        .find_map(|name| of.text(name))
        .filter(|name| !name.is_empty())
}

fn time_of(own: Option<Node<'_>>) -> Option<quipu_model::Timestamp> {
    time::parse(&own?.text("time")?)
}

/// How many parts of a list were there before Quipu added some for what was attached.
fn shown(parts: Node<'_>, own: Option<Node<'_>>) -> usize {
    let added = own
        .and_then(|own| own.get("added"))
        .and_then(|n| n.as_u64());
    let added = usize::try_from(added.unwrap_or(0)).unwrap_or(usize::MAX);
    parts.items().count().saturating_sub(added)
}

/// What a tool gave back, as it was before it became the content of an observation.
fn output<'a>(content: Node<'a>, form: Option<&str>, own: Option<Node<'a>>) -> Option<Value<'a>> {
    let text = |content: Node<'a>| match form {
        Some("error") => None,
        Some("json") => Some(json_of(content).map_or_else(|| content.into(), Value::Owned)),
        _ => Some(Text::of(content).map_or_else(|| content.into(), Value::Text)),
    };
    if content.kind() != Kind::List {
        return text(content);
    }
    let shown = shown(content, own);
    if wire::marked(own, "text") && shown == 1 {
        return text(content.items().next()?.get("text")?);
    }
    if shown == content.items().count() {
        return Some(content.into());
    }
    if shown == 0 {
        return None;
    }
    let parts: Vec<&str> = content
        .items()
        .take(shown)
        .map(|part| part.raw().get())
        .collect();
    let list = Json::parse(&format!("[{}]", parts.join(",")));
    Some(list.map_or_else(|_| content.into(), Value::Owned))
}

/// The value whose JSON is the text of a string.
fn json_of(node: Node<'_>) -> Option<Json> {
    Json::parse(&node.as_str()?).ok()
}

/// A value that was carried as text because it is too deep.
pub(super) fn undone(value: Node<'_>, own: Node<'_>) -> Option<Json> {
    if wire::marked(Some(own), "deep") {
        json_of(value)
    } else {
        None
    }
}
