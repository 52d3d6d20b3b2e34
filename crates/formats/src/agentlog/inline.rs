//! Moving what is written inline as base64 out of a payload.
//!
//! `.agentlog` allows 4096 bytes of it in a content block; what is longer is to be a blob. A payload is
//! looked through for the shapes in which files are written inline, and gets a reference in each place:
//!
//! ```text
//! {"type":"base64","media_type":M,"data":D}   {"type":"blob","uri":U,"blob_id":B,"media_type":M,"size_bytes":N}
//! {…,"url":"data:M;base64,D",…}               {…,"url":U,"blob":{"field":"url","encoding":"data:M;base64","blob_id":B,"size_bytes":N},…}
//! {…,"data":D,"mimeType":M,…}                 {…,"data":U,"mimeType":M,"blob":{"field":"data","encoding":"base64",…},…}
//! ```
//!
//! Only what decodes and encodes again to the very same text is moved, so that nothing is lost; and only
//! from under keys that files are written under. Text that happens to look like base64 stays what it is.

use std::ops::Range;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use quipu_model::Json;
use quipu_model::json::{Kind, Node, Tape};

use sha2::{Digest as _, Sha256};

use super::ContentId;

/// Files of no more bytes than this stay where they are: bytes as they decode, not letters of base64.
pub const MAX_INLINE: usize = 4096;

/// Keys under which a `data:` URL is a file.
const URL_KEYS: [&str; 4] = ["url", "image_url", "file_data", "file_url"];

/// Keys under which base64 is a file, where a key beside it says of what kind.
const DATA_KEYS: [&str; 2] = ["data", "blob"];

/// Keys that say of what kind the data beside them is.
const TYPE_KEYS: [&str; 4] = ["media_type", "mime_type", "mimeType", "format"];

/// Keys under which base64 is a file, whatever is beside it.
const BARE_KEYS: [&str; 1] = ["b64_json"];

/// The key that says what was moved out of the object it is in.
const MARK: &str = "blob";

/// A payload without what was inline in it.
#[derive(Debug)]
pub struct Moved {
    /// The payload, with references in place of files.
    pub payload: Json,
    /// The files, in the order in which they are referred to.
    pub files: Vec<File>,
}

/// A file that was inline.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct File {
    /// Its name: the hash of its bytes.
    pub id: ContentId,
    /// What it was said to be.
    pub media_type: Option<String>,
    /// Its bytes.
    pub bytes: Vec<u8>,
}

/// Moves files that are inline out of a payload; `None` when there are none.
///
/// ```
/// use quipu_model::json::Tape;
/// use quipu_formats::agentlog::inline;
///
/// let data = "AAAA".repeat(2000);
/// let text = format!(r#"{{"source":{{"type":"base64","media_type":"image/png","data":"{data}"}}}}"#);
/// let moved = inline::move_out(Tape::new().read(&text, 16)?).expect("it is long");
/// assert_eq!(moved.files[0].bytes.len(), 6000);
/// assert!(moved.payload.get().starts_with(r#"{"source":{"type":"blob","uri":"agentlog-blob://quipu/"#));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[expect(
    clippy::missing_panics_doc,
    reason = "values in place of values are JSON"
)]
pub fn move_out(payload: Node<'_>) -> Option<Moved> {
    let whole = payload.raw().get();
    // Most payloads are shorter than what would be moved out of them.
    if whole.len() <= MAX_INLINE {
        return None;
    }
    let mut changes: Vec<(Range<usize>, String)> = Vec::new();
    let mut files = Vec::new();
    // Without recursion: a payload may nest as deep as its reader allowed.
    let mut left = vec![payload];
    while let Some(node) = left.pop() {
        match node.kind() {
            Kind::List => left.extend(node.items()),
            Kind::Object => match source(node).or_else(|| field(node)) {
                Some(change) => {
                    let start = change.at.offset() - payload.offset();
                    let end = start + change.at.raw().get().len();
                    changes.push((start..end, change.instead));
                    files.push((start, change.file));
                    // What else is in the object may hold files of its own.
                    left.extend(change.rest);
                }
                None => left.extend(node.fields().map(|(_, value)| value)),
            },
            _ => {}
        }
    }
    if changes.is_empty() {
        return None;
    }
    changes.sort_by_key(|(at, _)| at.start);
    files.sort_by_key(|(at, _)| *at);
    let mut text = String::new();
    let mut behind = 0;
    for (at, instead) in changes {
        text.push_str(&whole[behind..at.start]);
        text.push_str(&instead);
        behind = at.end;
    }
    text.push_str(&whole[behind..]);
    let mut tape = Tape::new();
    let payload = tape.read(&text, usize::MAX);
    Some(Moved {
        payload: payload.expect("values in place of values").raw().into(),
        files: files.into_iter().map(|(_, file)| file).collect(),
    })
}

/// What takes the place of a value.
struct Change<'a> {
    at: Node<'a>,
    instead: String,
    file: File,
    /// What else is to be looked through.
    rest: Vec<Node<'a>>,
}

/// The source of a content block of the Anthropic kind. The whole object changes.
fn source(object: Node<'_>) -> Option<Change<'_>> {
    if !object.get("type")?.is("base64") {
        return None;
    }
    let bytes = decode(object.get("data")?)?;
    let media_type = object.text("media_type");
    let id = blob_id(&bytes);
    let mut instead = format!(
        "{{\"type\":\"blob\",\"uri\":\"{}\",\"blob_id\":\"{}\"",
        uri(id),
        id
    );
    if let Some(media_type) = object.get("media_type") {
        instead += ",\"media_type\":";
        instead += media_type.raw().get();
    }
    instead += &[",\"size_bytes\":", &bytes.len().to_string()].concat();
    for (key, value) in object.fields() {
        let known = ["type", "data", "media_type"];
        if known.iter().any(|known| key.is(known)) {
            continue;
        }
        // What is written here would then be there twice.
        if ["uri", "blob_id", "size_bytes"]
            .iter()
            .any(|ours| key.is(ours))
        {
            return None;
        }
        instead += &[",", key.raw().get(), ":", value.raw().get()].concat();
    }
    instead.push('}');
    Some(Change {
        at: object,
        instead,
        file: File {
            id,
            media_type: media_type.map(Into::into),
            bytes,
        },
        // They are copied as they stand.
        rest: Vec::new(),
    })
}

/// A field that holds a file. Its value changes, and a mark beside it says what it was.
fn field(object: Node<'_>) -> Option<Change<'_>> {
    if object
        .get(MARK)
        .is_some_and(|mark| mark.kind() != Kind::String)
    {
        return None;
    }
    let typed = TYPE_KEYS.iter().find_map(|key| object.get(key));
    for (key, value) in object.fields() {
        let is_any = |keys: &[&str]| keys.iter().any(|it| key.is(it));
        let found = if is_any(&URL_KEYS) {
            data_url(value)
        } else if (is_any(&DATA_KEYS) && typed.is_some()) || is_any(&BARE_KEYS) {
            let media_type = typed.and_then(|typed| typed.as_str());
            let media_type = media_type.filter(|it| is_mime(it));
            decode(value).map(|bytes| ("base64".to_owned(), media_type.map(Into::into), bytes))
        } else {
            None
        };
        let Some((encoding, media_type, bytes)) = found else {
            continue;
        };
        // The mark takes the key that the file itself is under: there is no room for both.
        if key.is(MARK) || object.get(MARK).is_some() {
            continue;
        }
        let id = blob_id(&bytes);
        let instead = format!(
            "\"{}\",\"{MARK}\":{{\"field\":{},\"encoding\":{},\"blob_id\":\"{}\",\"size_bytes\":{}}}",
            uri(id),
            key.raw().get(),
            Json::string(&encoding).get(),
            id,
            bytes.len()
        );
        let others = object.fields().map(|(_, other)| other);
        return Some(Change {
            at: value,
            instead,
            file: File {
                id,
                media_type,
                bytes,
            },
            rest: others
                .filter(|other| other.offset() != value.offset())
                .collect(),
        });
    }
    None
}

/// How many bytes a text is, where it is base64, alone or as a `data:` address, and more than may be inline.
pub fn too_long(text: &str) -> Option<usize> {
    if text.len() <= MAX_INLINE {
        return None;
    }
    base64_len(text).filter(|bytes| *bytes > MAX_INLINE)
}

/// How many bytes a text is that is base64, alone or as a `data:` address.
fn base64_len(text: &str) -> Option<usize> {
    let digits = match text.strip_prefix("data:") {
        Some(rest) => rest.split_once(";base64,")?.1,
        None => text,
    };
    let digits = digits.trim_end_matches('=');
    let is_digit = |b: u8| b.is_ascii_alphanumeric() || b"+/-_".contains(&b);
    // Some writers break it into lines.
    let mut count = 0;
    for byte in digits.bytes() {
        if is_digit(byte) {
            count += 1;
        } else if !byte.is_ascii_whitespace() {
            return None;
        }
    }
    // Words are made of the same letters, but have spaces between them: lines of base64 are long.
    let breaks = digits.len() - count;
    (breaks * 32 <= count).then_some(count * 3 / 4)
}

/// Base64 in the parts of a content that is more than may be inline there: in parts that are neither text nor a
/// tool's.
pub(super) fn in_parts(payload: Node<'_>) -> Vec<Node<'_>> {
    let messages = payload.get("messages").into_iter().flat_map(Node::items);
    let contents = messages.chain([payload]).filter_map(|it| it.get("content"));
    let mut left: Vec<Node<'_>> = contents.flat_map(Node::items).collect();
    let mut inside = Vec::new();
    while let Some(part) = left.pop() {
        let is = |name: &str| part.get("type").is_some_and(|it| it.is(name));
        if is("tool_result") {
            left.extend(part.get("content").into_iter().flat_map(Node::items));
        } else if !is("text") && !is("thinking") && !is("tool_use") {
            inside.push(part);
        }
    }
    let mut found = Vec::new();
    while let Some(node) = inside.pop() {
        match node.kind() {
            Kind::List => inside.extend(node.items()),
            Kind::Object => inside.extend(node.fields().map(|(_, value)| value)),
            Kind::String if node.as_str().is_some_and(|text| too_long(&text).is_some()) => {
                found.push(node);
            }
            _ => {}
        }
    }
    found
}

/// The bytes of a string that is long, and base64.
fn decode(value: Node<'_>) -> Option<Vec<u8>> {
    exact(value.as_raw_str()?.to_text()?.as_ref())
}

/// The bytes that a text is the base64 of. Padding is where it belongs and nothing else is in between, so
/// the bytes encode to the same text again.
fn exact(text: &str) -> Option<Vec<u8>> {
    too_long(text)?;
    STANDARD.decode(text).ok()
}

/// What is before the comma of a `data:` URL, what it says of the type, and the bytes.
fn data_url(value: Node<'_>) -> Option<(String, Option<String>, Vec<u8>)> {
    let raw = value.as_raw_str().filter(|raw| raw.starts_with("data:"))?;
    let text = raw.to_text()?;
    let (head, data) = text.split_once(',')?;
    let media_type = head.strip_prefix("data:")?.strip_suffix(";base64")?;
    let media_type = Some(media_type).filter(|it| is_mime(it));
    let bytes = exact(data)?;
    Some((head.to_owned(), media_type.map(Into::into), bytes))
}

/// The name of bytes that are kept outside of a trace.
pub fn blob_id(bytes: &[u8]) -> ContentId {
    ContentId(Sha256::digest(bytes).into())
}

/// The address of a blob that Quipu keeps.
pub fn uri(id: ContentId) -> String {
    format!("agentlog-blob://quipu/{}", id.hex())
}

/// Whether a text has the form of a media type (RFC 6838), parameters apart.
pub fn is_mime(text: &str) -> bool {
    let essence = text.split(';').next().unwrap_or_default().trim_end();
    let is_name = |name: &str| {
        let is_of_name = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$&-^_.+".contains(&byte);
        name.len() <= 127
            && name.starts_with(|char: char| char.is_ascii_alphanumeric())
            && name.bytes().all(is_of_name)
    };
    essence
        .split_once('/')
        .is_some_and(|(kind, sub)| is_name(kind) && is_name(sub))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn moved(text: &str) -> Option<Moved> {
        move_out(Tape::new().read(text, 200).unwrap())
    }

    fn long(seed: u8, bytes: usize) -> (Vec<u8>, String) {
        let bytes: Vec<u8> = (0..bytes)
            .map(|n| seed.wrapping_add(n.to_le_bytes()[0]))
            .collect();
        let text = STANDARD.encode(&bytes);
        (bytes, text)
    }

    #[test]
    fn blocks_of_every_provider() {
        let (bytes, data) = long(1, 4100);
        let (other, also) = long(2, 5000);
        let text = format!(
            r#"{{"messages":[{{"content":[
                {{"type":"image","source":{{"type":"base64","media_type":"image/png","data":"{data}","x":[1]}}}},
                {{"type":"image_url","image_url":{{"url":"data:image/jpeg;base64,{also}","detail":"low"}}}},
                {{"type":"input_image","image_url":"data:image/png;base64,{data}"}},
                {{"type":"input_audio","input_audio":{{"data":"{also}","format":"wav"}}}},
                {{"inlineData":{{"mimeType":"image/webp","data":"{data}"}}}}]}}]}}"#
        );
        let moved = moved(&text).unwrap();
        let said: Vec<_> = moved
            .files
            .iter()
            .map(|it| it.media_type.as_deref())
            .collect();
        let types = [
            Some("image/png"),
            Some("image/jpeg"),
            Some("image/png"),
            None,
            Some("image/webp"),
        ];
        assert_eq!(said, types);
        let kept: Vec<_> = moved.files.iter().map(|it| &it.bytes).collect();
        assert_eq!(kept, [&bytes, &other, &bytes, &other, &bytes]);
        let json: serde_json::Value = serde_json::from_str(moved.payload.get()).unwrap();
        let content = &json["messages"][0]["content"];
        let source = &content[0]["source"];
        assert_eq!(
            (&source["type"], &source["x"][0]),
            (&"blob".into(), &1.into())
        );
        assert_eq!(source["uri"], uri(blob_id(&bytes)));
        assert_eq!(source["size_bytes"], 4100);
        let url = &content[1]["image_url"];
        assert_eq!(url["detail"], "low");
        assert_eq!(url["url"], uri(blob_id(&other)));
        assert_eq!(url["blob"]["encoding"], "data:image/jpeg;base64");
        assert_eq!(content[3]["input_audio"]["blob"]["field"], "data");
        assert_eq!(
            content[4]["inlineData"]["blob"]["blob_id"],
            blob_id(&bytes).to_string()
        );
        assert!(super::tests::moved(moved.payload.get()).is_none());
    }

    #[test]
    fn what_is_no_file_stays() {
        let (_, data) = long(1, 4100);
        let short = STANDARD.encode([7; MAX_INLINE]);
        let stays = [
            // Text, however much it looks like it.
            format!(r#"{{"type":"text","text":"{data}"}}"#),
            format!(r#"{{"data":"{data}"}}"#),
            format!(r#"{{"arguments":{{"content":"data:image/png;base64,{data}"}}}}"#),
            // Short enough.
            format!(r#"{{"type":"base64","media_type":"image/png","data":"{short}"}}"#),
            // Not what encodes to the same again.
            format!(r#"{{"type":"base64","data":"{data} "}}"#),
            format!(r#"{{"type":"base64","data":"{}=B"}}"#, &data[..4098]),
            format!(r#"{{"url":"data:text/plain,{data}"}}"#),
            // The mark is there already.
            format!(r#"{{"url":"data:image/png;base64,{data}","blob":{{}}}}"#),
            format!(r#"{{"type":"base64","uri":"u","data":"{data}"}}"#),
        ];
        for text in stays {
            let text = format!(r#"{{"pad":"{}","x":{text}}}"#, " ".repeat(MAX_INLINE));
            assert!(moved(&text).is_none(), "{}", &text[4100..4200]);
        }
    }

    /// What is written inline is measured as it decodes, here and by `verify`.
    #[test]
    fn a_file_is_moved_out_just_where_the_check_would_find_it() {
        use crate::agentlog::verify::{Rule, VerifyOptions, verify};
        for bytes in [3072, 3073, MAX_INLINE - 1, MAX_INLINE, MAX_INLINE + 1, 6000] {
            let (_, data) = long(3, bytes);
            for part in [
                format!(
                    r#"{{"type":"image","source":{{"type":"base64","media_type":"image/png","data":"{data}"}}}}"#
                ),
                format!(
                    r#"{{"type":"image_url","image_url":{{"url":"data:image/png;base64,{data}"}}}}"#
                ),
            ] {
                let payload = format!(
                    r#"{{"model":"m","messages":[{{"role":"user","content":[{part}]}}],"params":{{}}}}"#
                );
                let record = |kind: &str, parent: &str, payload: &str| {
                    let json = Json::parse(payload).unwrap();
                    let id = crate::agentlog::Canon::new()
                        .id(Tape::new().read(json.get(), 64).unwrap())
                        .unwrap();
                    let line = format!(
                        r#"{{"version":"0.1","id":"{id}","kind":"{kind}","ts":"2026-04-24T10:00:00.000Z","parent":{parent},"payload":{payload}}}"#
                    );
                    (format!("\"{id}\""), line)
                };
                let root = r#"{"sdk":{"name":"quipu","version":"0"}}"#;
                let (root, first) = record("metadata", "null", root);
                let (_, second) = record("chat_request", &root, &payload);
                let file = format!("{first}\n{second}\n");
                let report = verify(file.as_bytes(), &VerifyOptions::default()).unwrap();
                let is_found = report
                    .findings
                    .iter()
                    .any(|it| it.rule == Rule::InlineBase64);
                let is_moved = moved(&payload).is_some();
                assert_eq!(
                    (is_found, is_moved),
                    (bytes > MAX_INLINE, bytes > MAX_INLINE),
                    "{bytes}"
                );
                let in_parts = in_parts(Tape::new().read(&payload, 64).unwrap()).len();
                assert_eq!(in_parts > 0, is_found, "{bytes}");
            }
        }
    }

    #[test]
    fn base64_is_told_from_words() {
        assert_eq!(base64_len("AAAA"), Some(3));
        assert_eq!(base64_len("AAA="), Some(2));
        assert_eq!(base64_len("data:image/png;base64,AAAA"), Some(3));
        assert_eq!(base64_len("data:text/plain,AAAA"), None);
        assert_eq!(base64_len("a line of words that go on"), None);
        assert_eq!(base64_len("https://example.com/?a=b"), None);
        let lines = format!("{0}\n{0}\n", "A".repeat(76));
        assert_eq!(base64_len(&lines), Some(114));
    }

    #[test]
    fn deep_payloads_are_no_trouble() {
        let (_, data) = long(1, 4100);
        let object = format!(r#"{{"url":"data:image/png;base64,{data}"}}"#);
        let text = format!("{}{object}{}", "[".repeat(900), "]".repeat(900));
        let moved = move_out(Tape::new().read(&text, 1000).unwrap()).unwrap();
        assert!(moved.payload.get().ends_with("]]]"));
    }
}
