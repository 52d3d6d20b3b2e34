//! Where an adapter puts what it reads.

use std::borrow::Cow;

use base64::Engine as _;
use quipu_model::json::{Kind, Node, RawStr};
use quipu_model::{Attachment, Json, NoteKind, Timestamp};
use serde::{Deserialize, Serialize};
use sha2::Digest as _;

use crate::{Dropped, Entry, Ledger, Text, Value, What};
use crate::{bounds, drift};

/// A place in a log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Position {
    /// The first byte of the record.
    pub offset: u64,
    /// Its line, from 1.
    pub line: u64,
}

/// A record, byte for byte as its log has it.
#[derive(Debug, Clone, Copy)]
pub struct Record<'a> {
    /// Its first byte.
    pub offset: u64,
    /// Its bytes.
    pub text: &'a str,
}

/// Whoever wants what is read.
pub trait Sink {
    /// Says which record the following entries borrow from; `None` when that one is gone, and before what does not
    /// have the bytes of the log. By default nobody cares.
    fn record(&mut self, _record: Option<Record<'_>>) {}

    /// Takes an entry. `at` is its time, or the last known one where the log gives none.
    fn entry(&mut self, seq: u64, at: Timestamp, position: Position, entry: &Entry<'_>);

    /// Takes content that stood inside the log, such as an image. By default it is not wanted.
    fn blob(&mut self, _attachment: &Attachment, _bytes: &[u8]) {}

    /// Whether such content is wanted. Whoever has to fetch it asks first.
    fn wants_blobs(&self) -> bool {
        false
    }

    /// Whether nothing more is wanted.
    fn is_done(&self) -> bool {
        false
    }
}

/// Takes entries from an adapter, numbers and links them, and keeps the account of records.
pub struct Out<'o> {
    sink: &'o mut dyn Sink,
    ledger: &'o mut Ledger,
    position: Position,
    /// The document at hand, and how far its lines are counted.
    document: Option<(&'o str, Position)>,
    /// Whether the record at hand has become an event, a note, or was dropped.
    became: Became,
    /// The content that was handed over last, by its length and hash as it stood in the log.
    detached: Option<((usize, [u64; 2]), Attachment)>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Became {
    /// No record is at hand.
    Outside,
    Nothing,
    Dropped,
    Note,
    Event,
}

impl<'o> Out<'o> {
    /// Entries go to `sink`.
    pub fn new(sink: &'o mut dyn Sink, ledger: &'o mut Ledger) -> Self {
        Self {
            sink,
            ledger,
            position: Position::default(),
            document: None,
            became: Became::Outside,
            detached: None,
        }
    }

    /// Records are parts of this document.
    pub(crate) fn of_document(mut self, text: &'o str) -> Self {
        self.document = Some((text, Position { offset: 0, line: 1 }));
        self
    }

    /// Reads one record of a document, as [`Self::record`] does.
    pub fn within(&mut self, record: Node<'_>, read: impl FnOnce(&mut Self, Node<'_>)) {
        let position = self.locate(record.offset());
        self.record(position, record, read);
    }

    /// The place in the document at hand that is this far into it.
    pub fn locate(&mut self, offset: usize) -> Position {
        let Some((text, counted)) = &mut self.document else {
            return Position {
                offset: offset as u64,
                line: 0,
            };
        };
        let from = usize::try_from(counted.offset).unwrap_or(usize::MAX);
        if offset < from {
            *counted = Position { offset: 0, line: 1 };
        }
        let from = usize::try_from(counted.offset).unwrap_or(usize::MAX);
        let passed = text.as_bytes().get(from..offset).unwrap_or_default();
        counted.line += memchr::memchr_iter(b'\n', passed).count() as u64;
        counted.offset = offset as u64;
        *counted
    }

    /// Reads one record. Whatever `read` makes of it is accounted for: a record of which it makes
    /// nothing, and does not say why, becomes a note that keeps it.
    pub fn record(
        &mut self,
        position: Position,
        record: Node<'_>,
        read: impl FnOnce(&mut Self, Node<'_>),
    ) {
        self.item(position, |out| {
            #[cfg(all(test, debug_assertions))]
            crate::fields::begin();
            read(out, record);
            if out.became == Became::Nothing {
                out.push(Entry::keep(NoteKind::UnknownRecord, record));
            }
            #[cfg(all(test, debug_assertions))]
            crate::fields::end(record, out.became == Became::Dropped);
        });
    }

    /// Reads a part of a text that is no JSON, accounted for as one record.
    pub fn item(&mut self, position: Position, read: impl FnOnce(&mut Self)) {
        self.position = position;
        self.became = Became::Nothing;
        self.ledger.records += 1;
        read(self);
        match self.became {
            Became::Event => self.ledger.mapped += 1,
            Became::Note => self.ledger.noted += 1,
            Became::Dropped => {}
            Became::Nothing | Became::Outside => self.ledger.drop(Dropped::Empty),
        }
        self.became = Became::Outside;
    }

    /// Takes an entry. Outside of a record it stands for itself: something that only became known at
    /// the end, such as the rest of a message that was not finished.
    pub fn push(&mut self, mut entry: Entry<'_>) {
        let became = if entry.is_note() {
            Became::Note
        } else {
            Became::Event
        };
        self.became = match self.became {
            Became::Outside => Became::Outside,
            Became::Dropped => {
                debug_assert!(false, "a record was dropped and then became something");
                became
            }
            Became::Event => Became::Event,
            Became::Nothing | Became::Note => became,
        };
        bounds::of_entry(&mut entry, &mut self.ledger.drift, self.position);
        let at = self.ledger.settle(&mut entry);
        self.sink.entry(self.ledger.seq, at, self.position, &entry);
    }

    /// Hands over something that earlier records held back. That nothing becomes of it says nothing of the record at
    /// hand.
    pub fn held_back(&mut self, give: impl FnOnce(&mut Self)) {
        let (before, seq) = (self.became, self.ledger.seq);
        self.became = Became::Outside;
        give(self);
        let gave = self.ledger.seq > seq && before == Became::Nothing;
        self.became = if gave { Became::Event } else { before };
    }

    /// Says why the record at hand becomes nothing. Without effect when it became something.
    pub fn skip(&mut self, why: Dropped) {
        if self.became == Became::Nothing {
            self.became = Became::Dropped;
            self.ledger.drop(why);
        }
    }

    /// Whether a record is at hand. Of a document, the reader has to take out the records itself.
    pub fn in_record(&self) -> bool {
        self.became != Became::Outside
    }

    /// Where the record at hand stands.
    pub fn position(&self) -> Position {
        self.position
    }

    /// The number that the next entry gets.
    pub fn next_seq(&self) -> u64 {
        self.ledger.seq + 1
    }

    /// What was counted so far.
    pub fn ledger(&mut self) -> &mut Ledger {
        self.ledger
    }

    /// Takes in the identity of the record at hand. When it was there before, the record is dropped as
    /// a duplicate, and the answer is `false`.
    pub fn unit(&mut self, id: &str) -> bool {
        let new = self.ledger.unit(id);
        if !new {
            self.skip(Dropped::DuplicateRecord);
        }
        new
    }

    /// The record at hand repeats one that was read before.
    pub fn repeated(&mut self) {
        self.skip(Dropped::DuplicateRecord);
    }

    /// Counts a record type that is not known.
    pub fn unknown_type(&mut self, scope: &str, word: &str) {
        let name = drift::name("type", scope, word);
        self.ledger.drift.count(&name, self.position);
    }

    /// Counts the fields of an object that are not known.
    pub fn check(&mut self, scope: &str, object: Node<'_>, known: &[&str]) {
        let at = self.position;
        self.ledger.drift.check(scope, object, known, at);
    }

    /// Counts fields of an object that are known and that no event has a place for, by their names.
    pub fn leave_out(&mut self, scope: &str, object: Node<'_>, fields: &[&str]) {
        let at = self.position;
        self.ledger.drift.leave_out(scope, object, fields, at);
    }

    /// Hands base64 content over to be kept outside. `None` when it is no base64.
    pub fn detach(&mut self, mime: &str, base64: &str) -> Option<Attachment> {
        use base64::engine::general_purpose::{GeneralPurpose, GeneralPurposeConfig};
        use base64::{alphabet, engine::DecodePaddingMode};
        const ANY: GeneralPurposeConfig = GeneralPurposeConfig::new()
            .with_decode_padding_mode(DecodePaddingMode::Indifferent)
            .with_decode_allow_trailing_bits(true);
        // Some records hold the same content twice: what was just handed over is not decoded again.
        let hashed = |seed| twox_hash::XxHash3_64::oneshot_with_seed(seed, base64.as_bytes());
        let known = (base64.len(), [hashed(0), hashed(1)]);
        if let Some((last, attachment)) = &self.detached
            && *last == known
            && attachment.mime == mime
        {
            return Some(attachment.clone());
        }
        let standard = GeneralPurpose::new(&alphabet::STANDARD, ANY);
        let url_safe = GeneralPurpose::new(&alphabet::URL_SAFE, ANY);
        let bytes = standard
            .decode(base64)
            .or_else(|_| url_safe.decode(base64))
            .ok()?;
        let attachment = Attachment {
            mime: mime.to_owned(),
            bytes: bytes.len() as u64,
            sha256: quipu_model::hex::encode(&sha2::Sha256::digest(&bytes)),
        };
        self.sink.blob(&attachment, &bytes);
        self.detached = Some((known, attachment.clone()));
        Some(attachment)
    }

    /// A value with the images and other base64 content in it taken out. What was taken out is named in
    /// its place by the address of a blob, and added to `attachments`.
    pub fn value<'a>(&mut self, node: Node<'a>, attachments: &mut Vec<Attachment>) -> Value<'a> {
        if !may_hold_content(node) {
            return node.into();
        }
        let mut found = Vec::new();
        self.find_base64(node, None, 0, &mut found);
        if found.is_empty() {
            if node.raw().get().len() < LARGE {
                return node.into();
            }
            return match Text::of(node) {
                Some(text) => Value::Text(text),
                None => node.into(),
            };
        }
        let (start, text) = (node.offset(), node.raw().get());
        let mut made = String::with_capacity(1024);
        let mut from = 0;
        for (range, attachment) in found {
            made.push_str(&text[from..range.start - start]);
            made.push('"');
            made.push_str(BLOB_SCHEME);
            made.push_str(&attachment.sha256);
            made.push('"');
            from = range.end - start;
            attachments.push(attachment);
        }
        made.push_str(&text[from..]);
        match Json::parse(&made) {
            Ok(json) => Value::Owned(json),
            Err(_) => node.into(),
        }
    }

    fn find_base64<'a>(
        &mut self,
        node: Node<'a>,
        mime: Option<&Cow<'a, str>>,
        depth: usize,
        found: &mut Vec<(std::ops::Range<usize>, Attachment)>,
    ) {
        if depth > 64 || !may_hold_content(node) {
            return;
        }
        match node.kind() {
            Kind::String if node.raw().get().len() < LARGE => {}
            Kind::String => {
                let inner = node.raw().get().trim_matches('"');
                let (mime, data) = match data_url(inner) {
                    Some((mime, data)) => (mime, data),
                    None => match mime {
                        Some(mime) => (&**mime, inner),
                        None => return,
                    },
                };
                if let Some(attachment) = self.detach(mime, data) {
                    found.push((range(node), attachment));
                }
            }
            Kind::List => {
                for item in node.items() {
                    self.find_base64(item, mime, depth + 1, found);
                }
            }
            Kind::Object => {
                let own = MIME_KEYS.iter().find_map(|key| node.text(key));
                // Some name the media type as they name the kind of everything else.
                let own = own.or_else(|| node.text("type").filter(|it| it.starts_with("image/")));
                for (key, value) in node.fields() {
                    let is_data = DATA_KEYS.iter().any(|data| key.is(data));
                    let string = value.kind() == Kind::String;
                    // A picture is one however small it is.
                    if string && let Some(small) = self.small_picture(own.as_deref(), key, value) {
                        found.push((range(value), small));
                        continue;
                    }
                    let mime = own.as_ref().filter(|_| is_data || !string);
                    self.find_base64(value, mime, depth + 1, found);
                }
            }
            Kind::Null | Kind::Bool | Kind::Number => {}
        }
    }

    /// Takes out a picture that is smaller than other content that is taken out: where a type says that it is one.
    fn small_picture(
        &mut self,
        mime: Option<&str>,
        key: RawStr<'_>,
        value: Node<'_>,
    ) -> Option<Attachment> {
        let mime = mime.filter(|mime| mime.starts_with("image/"))?;
        let raw = value.raw().get();
        let data = raw.strip_prefix('"')?.strip_suffix('"')?;
        let is_small = raw.len() < LARGE && !data.is_empty();
        if !is_small || !SMALL_KEYS.iter().any(|data| key.is(data)) {
            return None;
        }
        self.detach(mime, data)
    }
}

/// Whether there may be something in a value to be taken out: it is large, or has a picture in it.
fn may_hold_content(node: Node<'_>) -> bool {
    let text = node.raw().get();
    text.len() >= LARGE || memchr::memmem::find(text.as_bytes(), b"image/").is_some()
}

/// Where a value stands.
fn range(node: Node<'_>) -> std::ops::Range<usize> {
    let start = node.offset();
    start..start + node.raw().get().len()
}

/// The address of a blob, but for its hash.
pub const BLOB_SCHEME: &str = "agentlog-blob://quipu/";

/// Shorter strings stay where they are, unless they are said to be pictures.
const LARGE: usize = 1024;

const MIME_KEYS: [&str; 5] = ["media_type", "mimeType", "mime_type", "mime", "mediaType"];
const DATA_KEYS: [&str; 5] = ["data", "blob", "base64", "content", "bytes"];

/// Where a small picture is looked for. What is named `content` may be a word that is base64 by chance.
const SMALL_KEYS: [&str; 4] = ["data", "blob", "base64", "bytes"];

/// The media type and the content of a `data:` address.
pub fn data_url(text: &str) -> Option<(&str, &str)> {
    let (head, data) = text.strip_prefix("data:")?.split_once(',')?;
    Some((head.strip_suffix(";base64")?, data))
}

impl What<'_> {
    /// Whether it is a message or reasoning without any text.
    pub fn is_blank(&self) -> bool {
        match self {
            Self::User(text) | Self::Assistant(text) | Self::System(text) => text.is_empty(),
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use quipu_model::json::Tape;

    /// Counts the bytes of what is taken out.
    #[derive(Default)]
    struct Taken(Vec<u64>);

    impl Sink for Taken {
        fn entry(&mut self, _: u64, _: Timestamp, _: Position, _: &Entry<'_>) {}

        fn blob(&mut self, attachment: &Attachment, _: &[u8]) {
            self.0.push(attachment.bytes);
        }
    }

    fn take(json: &str) -> (Vec<u64>, String) {
        let (mut sink, mut ledger) = (Taken::default(), Ledger::default());
        let mut tape = Tape::new();
        let node = tape.read(json, 128).unwrap();
        let mut attachments = Vec::new();
        let value = Out::new(&mut sink, &mut ledger).value(node, &mut attachments);
        let left = match value {
            Value::Owned(json) => json.get().to_owned(),
            _ => json.to_owned(),
        };
        assert_eq!(attachments.len(), sink.0.len());
        (sink.0, left)
    }

    #[test]
    fn pictures_are_taken_out_whatever_their_size() {
        for json in [
            r#"[{"type":"image","source":{"type":"base64","media_type":"image/png","data":"aGVsbG8="}}]"#,
            r#"{"content":[{"type":"image","data":"aGVsbG8=","mimeType":"image/jpeg"},{"type":"text","text":"aGVsbG8"}]}"#,
        ] {
            let (taken, left) = take(json);
            assert_eq!(taken, [5], "{json}");
            assert!(
                !left.contains("aGVsbG8=") && left.contains(BLOB_SCHEME),
                "{left}"
            );
        }
        // Beside something large as well.
        let long = "x y ".repeat(1_000);
        let json = format!(r#"[{{"mimeType":"image/png","data":"aGVsbG8="}},"{long}"]"#);
        assert_eq!(take(&json).0, [5]);
    }

    #[test]
    fn other_small_content_stays() {
        for json in [
            r#"{"mimeType":"application/pdf","data":"aGVsbG8="}"#,
            r#"{"mimeType":"image/png","data":""}"#,
            r#"{"mimeType":"image/png","data":"no base64!"}"#,
            r#"{"mimeType":"image/svg+xml","content":"word"}"#,
            r#"{"mimeType":"image/png","name":"logo"}"#,
            r#"{"data":"aGVsbG8=","text":"image/png"}"#,
            r#""data:image/png;base64,aGVsbG8=""#,
        ] {
            assert_eq!(take(json), (vec![], json.to_owned()));
        }
    }
}
