//! The parts of a content: text, thinking, tool uses, and bytes that should not be there.

use quipu_model::json::{Kind as JsonKind, Node};

use super::Rule;
use super::found::Path;
use super::look::Look;
use crate::agentlog::inline::{MAX_INLINE, too_long};

/// Parts inside of parts are looked into so deep: a tool result inside of a message has parts of its own.
const DEEPEST: usize = 4;

/// The content of a message: text, or parts.
pub(super) fn content(look: &mut Look<'_>, path: &Path<'_>, value: Node<'_>) {
    match value.kind() {
        JsonKind::String => {}
        JsonKind::List => parts(look, path, value, false, 0),
        _ => look.mistyped(path, value, "a string or a list of parts"),
    }
}

/// The content of a response: parts, whose tool uses are remembered.
pub(super) fn response(look: &mut Look<'_>, path: &Path<'_>, value: Node<'_>) {
    if value.kind() == JsonKind::List {
        parts(look, path, value, true, 0);
    } else {
        look.mistyped(path, value, "a list of parts");
    }
}

fn parts(look: &mut Look<'_>, path: &Path<'_>, list: Node<'_>, asks: bool, depth: usize) {
    for (n, value) in list.items().enumerate() {
        let path = path.index(n);
        if value.kind() == JsonKind::Object {
            part(look, &path, value, asks, depth);
        } else {
            look.mistyped(&path, value, "an object");
        }
    }
}

fn part(look: &mut Look<'_>, path: &Path<'_>, value: Node<'_>, asks: bool, depth: usize) {
    let Some(type_node) = value.get("type") else {
        let at = path.key("type");
        look.find(Rule::FieldMissing, &at, format_args!("`type` is not there"));
        return;
    };
    let Some(name) = type_node.as_raw_str() else {
        look.mistyped(&path.key("type"), type_node, "a string");
        return;
    };
    let name = name.to_text_lossy();
    match &*name {
        "text" | "thinking" => string(look, path, value, "text"),
        "tool_use" => {
            string(look, path, value, "id");
            string(look, path, value, "name");
            match value.get("input") {
                Some(input) if input.kind() == JsonKind::Object => {}
                other => wrong(look, path, other, "input", "an object"),
            }
            if asks && let Some(id) = value.get("id").and_then(|id| id.as_raw_str()) {
                let id = look.hash(id);
                look.uses.push(id);
            }
        }
        "tool_result" => {
            if let Some(inner) = value.get("content")
                && inner.kind() == JsonKind::List
                && depth < DEEPEST
            {
                parts(look, &path.key("content"), inner, false, depth + 1);
            }
        }
        "image" => inline(look, path, value, 0),
        _ => {
            let name = super::excerpt(&name);
            let at = path.key("type");
            look.find(Rule::PartType, &at, format_args!("part of type {name:?}"));
            inline(look, path, value, 0);
        }
    }
}

#[inline]
fn string(look: &mut Look<'_>, path: &Path<'_>, part: Node<'_>, key: &'static str) {
    match part.get(key) {
        Some(value) if value.kind() == JsonKind::String => {}
        other => wrong(look, path, other, key, "a string"),
    }
}

#[cold]
fn wrong(look: &mut Look<'_>, path: &Path<'_>, value: Option<Node<'_>>, key: &str, wanted: &str) {
    let path = path.key(key);
    match value {
        None => look.find(
            Rule::FieldMissing,
            &path,
            format_args!("`{key}` is not there"),
        ),
        Some(value) => look.mistyped(&path, value, wanted),
    }
}

/// Looks for bytes in a part that is neither text nor a tool's.
fn inline(look: &mut Look<'_>, path: &Path<'_>, value: Node<'_>, depth: usize) {
    if depth > DEEPEST {
        return;
    }
    match value.kind() {
        JsonKind::Object => {
            for (key, value) in value.fields() {
                let key = key.to_text_lossy();
                inline(look, &path.key(&key), value, depth + 1);
            }
        }
        JsonKind::List => {
            for (n, value) in value.items().enumerate() {
                inline(look, &path.index(n), value, depth + 1);
            }
        }
        JsonKind::String if value.raw().get().len() > MAX_INLINE => {
            let text = value.as_str().unwrap_or_default();
            if let Some(bytes) = too_long(&text) {
                let message = format_args!("{bytes} bytes as base64, more than {MAX_INLINE}");
                look.find(Rule::InlineBase64, path, message);
            }
        }
        _ => {}
    }
}
