//! What is attached: put beside the document where it has a place, and else a text that says so.

use std::collections::HashMap;
use std::io;

use quipu_model::json::{Kind, Node, Tape};
use quipu_model::{Attachment, Json};

use super::Version;
use super::json::{Object, comma};
use crate::projection::Beside;

/// What lies beside the document.
pub(super) struct Gallery<'w> {
    beside: Box<dyn Beside + 'w>,
    version: Version,
    /// By hash.
    placed: HashMap<String, Placed>,
}

struct Placed {
    kind: &'static str,
    media_type: String,
    path: String,
}

impl<'w> Gallery<'w> {
    pub(super) fn new(beside: Box<dyn Beside + 'w>, version: Version) -> Self {
        Self {
            beside,
            version,
            placed: HashMap::new(),
        }
    }

    /// Puts content beside the document, where the format can refer to its kind.
    pub(super) fn put(&mut self, attachment: &Attachment, bytes: &[u8]) -> io::Result<()> {
        let sha256 = &attachment.sha256;
        if self.placed.contains_key(sha256) || !is_hash(sha256) {
            return Ok(());
        }
        let Some((kind, media_type, folder, ending)) = kind_of(&attachment.mime, self.version)
        else {
            return Ok(());
        };
        let path = format!("{folder}/{sha256}.{ending}");
        if self.beside.put(&path, bytes)? {
            let placed = Placed {
                kind,
                media_type,
                path,
            };
            self.placed.insert(sha256.clone(), placed);
        }
        Ok(())
    }

    /// Where content lies.
    pub(super) fn path(&self, sha256: &str) -> Option<&str> {
        self.placed.get(sha256).map(|placed| placed.path.as_str())
    }

    /// Whether a value is a part that names a file, as it stands in a trajectory that was read. The file is
    /// wherever it was.
    pub(super) fn is_part(&self, value: &str) -> bool {
        let mut tape = Tape::new();
        let part = tape.read(value, Json::MAX_DEPTH);
        part.is_ok_and(|part| names_file(part, self.version))
    }

    /// Appends the part that shows it. `false` when it is not there, and the part says so.
    pub(super) fn part(&self, attachment: &Attachment, out: &mut Vec<u8>) -> bool {
        comma(out);
        let mut part = Object::begin(out);
        let Some(placed) = self.placed.get(&attachment.sha256) else {
            part.text("type", "text");
            let Attachment {
                mime,
                bytes,
                sha256,
            } = attachment;
            let mime = if mime.is_empty() {
                "unknown type"
            } else {
                mime
            };
            let text = format!("[attachment not included: {mime}, {bytes} bytes, sha256 {sha256}]");
            part.text("text", &text);
            part.end();
            return false;
        };
        part.text("type", placed.kind);
        let mut source = Object::begin(part.key("source"));
        source.text("media_type", &placed.media_type);
        source.text("path", &placed.path);
        source.end();
        part.end();
        true
    }
}

/// Whether it is a part of a kind that the version has, with a file and nothing else.
fn names_file(part: Node<'_>, version: Version) -> bool {
    let only = |node: Node<'_>, names: [&str; 2]| {
        let count = node.fields().count();
        count == 2 && names.iter().all(|name| node.get(name).is_some())
    };
    let Some(source) = part.get("source").filter(|it| it.kind() == Kind::Object) else {
        return false;
    };
    if !only(part, ["type", "source"]) || !only(source, ["media_type", "path"]) {
        return false;
    }
    let mime = source.text("media_type").unwrap_or_default();
    let has_path = source.text("path").is_some_and(|path| !path.is_empty());
    let known = kind_of(&mime, version);
    has_path
        && known.is_some_and(|(kind, media_type, ..)| {
            part.get("type").is_some_and(|it| it.is(kind)) && mime == media_type
        })
}

fn is_hash(text: &str) -> bool {
    text.len() == 64 && text.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'))
}

/// How the format refers to content of a media type: kind of part, media type, folder, ending.
fn kind_of(
    mime: &str,
    version: Version,
) -> Option<(&'static str, String, &'static str, &'static str)> {
    let mime = mime.to_ascii_lowercase();
    let image = |media_type: &str, ending| Some(("image", media_type.to_owned(), "images", ending));
    let audio = |ending| Some(("audio", mime.clone(), "audio", ending));
    match &*mime {
        "image/jpeg" | "image/jpg" => image("image/jpeg", "jpg"),
        "image/png" => image("image/png", "png"),
        "image/gif" => image("image/gif", "gif"),
        "image/webp" => image("image/webp", "webp"),
        _ if version != Version::V1_8 => None,
        "audio/wav" | "audio/x-wav" => audio("wav"),
        "audio/mpeg" | "audio/mp3" => audio("mp3"),
        "audio/ogg" => audio("ogg"),
        "audio/flac" => audio("flac"),
        "audio/aac" => audio("aac"),
        "audio/webm" => audio("webm"),
        _ => None,
    }
}
