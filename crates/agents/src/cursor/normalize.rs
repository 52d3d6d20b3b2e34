//! What is read the same way wherever it stands.

use std::borrow::Cow;

use quipu_model::Json;
use quipu_model::json::{Kind, Tape};

use crate::{Entry, Text, Value, What};

/// Hands over what was said to the agent: what a person asked, and what the editor put around it.
pub(super) fn asked<'a>(text: Cow<'a, str>, mut put: impl FnMut(Entry<'a>)) {
    const OPEN: &str = "<user_query>";
    const CLOSE: &str = "</user_query>";
    if !text.contains(OPEN) {
        let injected = is_injected(&text);
        return put(said(text.into(), injected));
    }
    let mut at = 0;
    while let Some(open) = text[at..].find(OPEN).map(|found| at + found) {
        let begin = open + OPEN.len();
        let (end, next) = match text[begin..].find(CLOSE) {
            Some(close) => (begin + close, begin + close + CLOSE.len()),
            None => (text.len(), text.len()),
        };
        around(cut(&text, at, open), &mut put);
        put(said(trimmed(cut(&text, begin, end)).into(), false));
        at = next;
    }
    around(cut(&text, at, text.len()), &mut put);
}

/// What stands beside what was asked.
fn around<'a>(text: Cow<'a, str>, put: &mut impl FnMut(Entry<'a>)) {
    if !text.trim().is_empty() {
        put(said(trimmed(text).into(), true));
    }
}

fn said(text: Text<'_>, injected: bool) -> Entry<'_> {
    let what = if injected {
        What::System(text)
    } else {
        What::User(text)
    };
    Entry {
        synthetic: injected,
        ..Entry::new(what)
    }
}

/// Whether a text was put there by the editor.
fn is_injected(text: &str) -> bool {
    const MARKS: [&str; 9] = [
        "<user_info>",
        "<system_reminder>",
        "<system-reminder>",
        "<attached_files>",
        "<open_and_recently_viewed_files>",
        "<additional_data>",
        "<project_layout>",
        "<rules>",
        "<git_status>",
    ];
    let text = text.trim_start();
    MARKS.iter().any(|mark| text.starts_with(mark))
}

/// A part of a text, borrowed where the text is.
fn cut<'a>(text: &Cow<'a, str>, from: usize, to: usize) -> Cow<'a, str> {
    match text {
        Cow::Borrowed(text) => Cow::Borrowed(text.get(from..to).unwrap_or_default()),
        Cow::Owned(text) => Cow::Owned(text.get(from..to).unwrap_or_default().to_owned()),
    }
}

fn trimmed(text: Cow<'_, str>) -> Cow<'_, str> {
    match text {
        Cow::Borrowed(text) => Cow::Borrowed(text.trim()),
        Cow::Owned(text) => Cow::Owned(text.trim().to_owned()),
    }
}

/// Hands over what the agent said. Where it reasoned, transcripts have only a mark.
pub(super) fn answered<'a>(text: Cow<'a, str>, mut put: impl FnMut(Entry<'a>)) {
    const WITHHELD: &str = "[REDACTED]";
    let said = text.trim_end();
    let Some(rest) = said.strip_suffix(WITHHELD) else {
        return put(Entry::new(What::Assistant(text.into())));
    };
    let rest = rest.trim_end().len();
    if rest > 0 {
        put(Entry::new(What::Assistant(cut(&text, 0, rest).into())));
    }
    put(Entry {
        opaque: true,
        ..Entry::new(What::Reasoning(Text::EMPTY))
    });
}

/// What stands as JSON in a string: structured when it is a list or an object, and else the string.
pub(super) fn unpacked(text: Cow<'_, str>) -> Value<'_> {
    let mut tape = Tape::new();
    let structured = tape
        .read(&text, Json::MAX_DEPTH)
        .is_ok_and(|node| matches!(node.kind(), Kind::List | Kind::Object));
    match structured.then(|| Json::parse(&text)) {
        Some(Ok(json)) => Value::Owned(json),
        _ => Value::Text(text.into()),
    }
}
