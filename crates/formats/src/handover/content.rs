//! What tools gave back, in the shapes that agents write it, and the bytes that were taken out of it.

use std::borrow::Cow;
use std::collections::HashMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use quipu_model::json::{Kind, Node, Tape};
use quipu_model::{Attachment, Json};

/// What stands in a value in the place of bytes that are kept outside, before their hash.
const BLOB_SCHEME: &str = "agentlog-blob://";

/// The images that both providers take.
const IMAGES: [&str; 4] = ["image/png", "image/jpeg", "image/gif", "image/webp"];

/// The bytes of the attachments of the event at hand.
#[derive(Debug, Default)]
pub(crate) struct Blobs {
    bytes: HashMap<String, (String, Vec<u8>)>,
    /// How many of them were written.
    placed: usize,
}

impl Blobs {
    pub(crate) fn take(&mut self, attachment: &Attachment, bytes: &[u8]) {
        let held = (attachment.mime.clone(), bytes.to_vec());
        self.bytes.insert(attachment.sha256.clone(), held);
    }

    /// Forgets them, and says how many of an event's attachments were not written.
    pub(crate) fn settle(&mut self, attachments: &[Attachment]) -> usize {
        let left = attachments.len().saturating_sub(self.placed);
        self.placed = 0;
        self.bytes.clear();
        left
    }

    /// An image by its hash: its type, and itself in base64.
    pub(crate) fn image(&mut self, sha256: &str) -> Option<(String, String)> {
        let (mime, bytes) = self.bytes.get(sha256)?;
        let mime = mime.to_ascii_lowercase();
        if !IMAGES.contains(&mime.as_str()) {
            return None;
        }
        self.placed += 1;
        Some((mime, STANDARD.encode(bytes)))
    }
}

/// What a tool gave back.
pub(crate) enum Output {
    /// Nothing.
    Nothing,
    /// A text, as a JSON string.
    Text(String),
    /// Texts and images.
    Parts(Vec<Part>),
    /// Another value, as the text of its JSON.
    Value(String),
}

/// One part of what a tool gave back.
pub(crate) enum Part {
    /// A text, as a JSON string.
    Text(String),
    /// An image.
    Image {
        /// Its type.
        mime: String,
        /// Itself, in base64.
        data: String,
    },
}

impl Output {
    /// Takes an output apart. An image whose bytes are not there is told of in words.
    pub(crate) fn of(output: Option<&Json>, blobs: &mut Blobs) -> Self {
        let Some(text) = output.map(Json::get).filter(|text| *text != "null") else {
            return Self::Nothing;
        };
        if text.starts_with('"') {
            return Self::Text(whole(text));
        }
        if !text.starts_with('[') {
            return Self::Value(text.to_owned());
        }
        let mut tape = Tape::new();
        let parts: Option<Vec<Part>> = tape
            .read(text, Json::MAX_DEPTH)
            .ok()
            .and_then(|list| list.items().map(|item| Part::of(item, blobs)).collect());
        match parts {
            Some(parts) if !parts.is_empty() => Self::Parts(parts),
            _ => Self::Value(text.to_owned()),
        }
    }
}

impl Output {
    /// Adds why it failed, unless that is what it says.
    pub(crate) fn with_error(self, error: &str) -> Self {
        let why = Json::string(error).get().to_owned();
        match self {
            Self::Nothing => Self::Text(why),
            // The word for a failure without a reason; the result is marked as failed anyway.
            output if error == "failed" => output,
            Self::Text(text) if unquoted(&text).contains(error) => Self::Text(text),
            Self::Text(text) => Self::Parts(vec![Part::Text(text), Part::Text(why)]),
            Self::Parts(mut parts) => {
                let says = |part: &Part| matches!(part, Part::Text(text) if unquoted(text).contains(error));
                if !parts.iter().any(says) {
                    parts.push(Part::Text(why));
                }
                Self::Parts(parts)
            }
            Self::Value(value) => {
                let value = Json::string(&value).get().to_owned();
                Self::Parts(vec![Part::Text(value), Part::Text(why)])
            }
        }
    }
}

impl Part {
    fn of(item: Node<'_>, blobs: &mut Blobs) -> Option<Self> {
        if item.kind() == Kind::String {
            return Some(Self::Text(whole(item.raw().get())));
        }
        // The Agent Client Protocol puts content into content.
        let item = match item.get("content") {
            Some(inner) if item.get("type").is_some_and(|kind| kind.is("content")) => inner,
            _ => item,
        };
        let kind = item.text("type")?;
        match &*kind {
            "text" | "input_text" | "output_text" => {
                let text = item
                    .get("text")
                    .filter(|text| text.kind() == Kind::String)?;
                Some(Self::Text(whole(text.raw().get())))
            }
            "image" | "input_image" => Self::image(item, blobs),
            _ => None,
        }
    }

    fn image(item: Node<'_>, blobs: &mut Blobs) -> Option<Self> {
        let source = item.get("source").unwrap_or(item);
        let mime = ["media_type", "mimeType", "mediaType"]
            .iter()
            .find_map(|key| source.text(key));
        let data = ["data", "image_url", "url"]
            .iter()
            .find_map(|key| source.text(key))?;
        let is_image = |mime: &str| IMAGES.contains(&mime);
        let found = if let Some(address) = data.strip_prefix(BLOB_SCHEME) {
            let sha256 = address.rsplit('/').next().unwrap_or(address);
            blobs.image(sha256)
        } else if let Some((mime, data)) = of_url(&data) {
            Some((mime.to_owned(), data.to_owned())).filter(|(mime, _)| is_image(mime))
        } else {
            mime.filter(|mime| is_image(mime) && !data.contains(':'))
                .map(|mime| (mime.into_owned(), data.into_owned()))
        };
        Some(match found {
            Some((mime, data)) => Self::Image { mime, data },
            None => Self::Text(Json::string("[image not included]").get().to_owned()),
        })
    }
}

/// `data:image/png;base64,…`
fn of_url(url: &str) -> Option<(&str, &str)> {
    url.strip_prefix("data:")?.split_once(";base64,")
}

/// A JSON string without halves of surrogate pairs, which are valid JSON and which not every reader takes.
pub(crate) fn whole(json: &str) -> String {
    if !json.contains("\\ud") && !json.contains("\\uD") {
        return json.to_owned();
    }
    Json::string(&unquoted(json)).get().to_owned()
}

/// The text of a JSON string, with U+FFFD for half of a surrogate pair.
fn unquoted(json: &str) -> Cow<'_, str> {
    let mut tape = Tape::new();
    match tape.read(json, 1).ok().and_then(|node| node.as_raw_str()) {
        Some(raw) => Cow::Owned(raw.to_text_lossy().into_owned()),
        None => Cow::Borrowed(json),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts(output: &str, blobs: &mut Blobs) -> String {
        match Output::of(Some(&Json::parse(output).unwrap()), blobs) {
            Output::Nothing => "nothing".to_owned(),
            Output::Text(text) => format!("text {text}"),
            Output::Value(text) => format!("value {text}"),
            Output::Parts(parts) => {
                let parts = parts.iter().map(|part| match part {
                    Part::Text(text) => text.clone(),
                    Part::Image { mime, data } => format!("{mime} {data}"),
                });
                parts.collect::<Vec<_>>().join(" | ")
            }
        }
    }

    #[test]
    fn outputs_of_every_agent_are_texts_and_images() {
        let mut blobs = Blobs::default();
        let attachment = Attachment {
            mime: "image/png".to_owned(),
            bytes: 3,
            sha256: "ab".to_owned(),
        };
        blobs.take(&attachment, b"abc");
        for (output, what) in [
            ("null", "nothing"),
            ("\"a\\nb\"", "text \"a\\nb\""),
            ("{\"a\":1}", "value {\"a\":1}"),
            ("[]", "value []"),
            ("[{\"type\":\"text\",\"text\":\"a\"}]", "\"a\""),
            (r#"[{"type":"input_text","text":"a"},"b"]"#, "\"a\" | \"b\""),
            (
                r#"[{"type":"content","content":{"type":"text","text":"a"}}]"#,
                "\"a\"",
            ),
            (
                r#"[{"type":"tool_reference","name":"x"}]"#,
                "value [{\"type\":\"tool_reference\",\"name\":\"x\"}]",
            ),
            (
                r#"[{"type":"image","source":{"type":"base64","media_type":"image/png","data":"agentlog-blob://quipu/ab"}}]"#,
                "image/png YWJj",
            ),
            (
                r#"[{"type":"input_image","image_url":"data:image/gif;base64,Zg=="}]"#,
                "image/gif Zg==",
            ),
            (
                r#"[{"type":"image","mimeType":"image/png","data":"Zg=="}]"#,
                "image/png Zg==",
            ),
            (
                r#"[{"type":"image","data":"agentlog-blob://quipu/cd"}]"#,
                "\"[image not included]\"",
            ),
            (
                r#"[{"type":"image","mimeType":"image/svg+xml","data":"Zg=="}]"#,
                "\"[image not included]\"",
            ),
        ] {
            assert_eq!(parts(output, &mut blobs), what, "{output}");
        }
        assert_eq!(blobs.settle(&[attachment.clone(), attachment.clone()]), 1);
        assert_eq!(blobs.settle(&[attachment]), 1);
    }
}
