//! What a tool gave back, as the content of an observation.

use quipu_model::Json;
use quipu_model::json::{Kind, Node, Tape};

use super::json::{comma, string};

/// The content of an observation.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Output {
    pub(super) content: Content,
    /// What the content stands for, where it is not the output as it is.
    pub(super) form: Option<&'static str>,
}

#[derive(Debug, Default, PartialEq, Eq)]
pub(super) enum Content {
    #[default]
    None,
    /// A JSON string.
    Text(Vec<u8>),
    /// The inside of a list of parts.
    Parts(Vec<u8>),
}

/// The output of a tool, or why there is none. Text is text, and lists of texts and images are parts; any
/// other value is carried as its JSON text.
pub(super) fn of(
    output: Option<&Json>,
    error: Option<&str>,
    image: impl FnMut(&str, &mut Vec<u8>) -> bool,
) -> Output {
    let Some(value) = output.filter(|value| !value.is_null()) else {
        let Some(error) = error else {
            return Output::default();
        };
        return Output {
            content: Content::Text(quoted(error)),
            form: Some("error"),
        };
    };
    let text = value.get();
    if text.starts_with('"') {
        return Output {
            content: Content::Text(text.as_bytes().to_vec()),
            form: None,
        };
    }
    if text.starts_with('[')
        && let Some(parts) = parts(text, image)
    {
        return Output {
            content: Content::Parts(parts),
            form: None,
        };
    }
    Output {
        content: Content::Text(quoted(text)),
        form: Some("json"),
    }
}

fn quoted(text: &str) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len() + 2);
    string(text, &mut out);
    out
}

/// A list of texts and images, as models are given them.
fn parts(text: &str, mut image: impl FnMut(&str, &mut Vec<u8>) -> bool) -> Option<Vec<u8>> {
    let mut tape = Tape::new();
    let list = tape.read(text, Json::MAX_DEPTH).ok()?;
    let mut out = Vec::with_capacity(text.len());
    for item in list.items() {
        comma(&mut out);
        let kind = item.get("type").filter(|_| item.kind() == Kind::Object)?;
        if kind.is("text") && is_text(item) {
            out.extend_from_slice(item.raw().get().as_bytes());
        } else {
            let has_file = kind.is("image") || kind.is("audio");
            if !has_file || !image(item.raw().get(), &mut out) {
                return None;
            }
        }
    }
    (!out.is_empty()).then_some(out)
}

/// Whether there is a text and nothing else.
fn is_text(item: Node<'_>) -> bool {
    let mut fields = item.fields();
    let mut next = |name: &str| {
        let field = fields.next();
        field.is_some_and(|(key, value)| key.is(name) && value.kind() == Kind::String)
    };
    next("type") && next("text") && fields.next().is_none()
}
