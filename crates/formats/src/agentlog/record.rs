//! What is on a line: the envelope, and the payload as it stands.
//!
//! Nothing is checked here but that the line is one object whose envelope says each thing once. What the
//! fields hold is for whoever asks; [`verify`](super::verify) asks for all of it.

use std::borrow::Cow;

use quipu_model::Timestamp;
use quipu_model::json::{Kind as JsonKind, Node, RawStr};

use super::{Canon, CanonError, ContentId, Kind};

/// One record, borrowed from its line.
#[derive(Debug, Clone, Copy)]
pub struct Record<'a> {
    /// The line, the place of its first byte in the file, and its number from 1.
    pub at: At,
    whole: Node<'a>,
    fields: [Option<Node<'a>>; Field::ALL.len()],
}

/// Where a record is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct At {
    /// The line, from 1.
    pub line: u64,
    /// Its first byte in the file.
    pub offset: u64,
}

/// A field of the envelope.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Field {
    /// The version of the format.
    Version,
    /// The hash of the payload.
    Id,
    /// What the record is.
    Kind,
    /// When it was written.
    Ts,
    /// What it follows.
    Parent,
    /// Anything; not hashed.
    Meta,
    /// What it says; all that is hashed.
    Payload,
}

impl Field {
    /// All of them, in the order in which they are written.
    pub const ALL: [Self; 7] = [
        Self::Version,
        Self::Id,
        Self::Kind,
        Self::Ts,
        Self::Parent,
        Self::Meta,
        Self::Payload,
    ];

    /// The field as it is written.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Version => "version",
            Self::Id => "id",
            Self::Kind => "kind",
            Self::Ts => "ts",
            Self::Parent => "parent",
            Self::Meta => "meta",
            Self::Payload => "payload",
        }
    }

    #[inline]
    fn of(key: RawStr<'_>) -> Option<Self> {
        Some(match key.plain() {
            Some("version") => Self::Version,
            Some("id") => Self::Id,
            Some("kind") => Self::Kind,
            Some("ts") => Self::Ts,
            Some("parent") => Self::Parent,
            Some("meta") => Self::Meta,
            Some("payload") => Self::Payload,
            Some(_) => return None,
            // Spelled with escapes, which nobody does.
            None => return Self::ALL.into_iter().find(|field| key.is(field.as_str())),
        })
    }
}

/// What the `parent` of a record is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Parent<'a> {
    /// The field is not there.
    Missing,
    /// `null`: the record is a root.
    Null,
    /// The id of another record.
    Id(ContentId),
    /// Something else, as it stands.
    Other(Cow<'a, str>),
}

impl<'a> Record<'a> {
    /// The record that a value is. The error is why it is none.
    pub fn read(whole: Node<'a>, at: At) -> Result<Self, NotARecord> {
        if whole.kind() != JsonKind::Object {
            return Err(NotARecord::NotAnObject);
        }
        let mut fields = [None; Field::ALL.len()];
        for (key, value) in whole.fields() {
            if let Some(field) = Field::of(key)
                && fields[field as usize].replace(value).is_some()
            {
                return Err(NotARecord::Twice(field));
            }
        }
        Ok(Self { at, whole, fields })
    }

    /// The value of a field of the envelope.
    #[inline]
    pub fn get(&self, field: Field) -> Option<Node<'a>> {
        self.fields[field as usize]
    }

    /// The whole object.
    pub fn node(&self) -> Node<'a> {
        self.whole
    }

    /// The record as it stands on its line.
    pub fn text(&self) -> &'a str {
        self.whole.raw().get()
    }

    /// Fields that the envelope does not have.
    pub fn extra(&self) -> impl Iterator<Item = (RawStr<'a>, Node<'a>)> {
        self.whole
            .fields()
            .filter(|(key, _)| Field::of(*key).is_none())
    }

    /// The id, where it is one.
    pub fn id(&self) -> Option<ContentId> {
        self.get(Field::Id)?.as_str()?.parse().ok()
    }

    /// The kind, where it is known.
    pub fn kind(&self) -> Option<Kind> {
        Kind::from_word(&self.get(Field::Kind)?.as_str()?)
    }

    /// The time, where it can be read as one that ends in `Z`. [`verify`](super::verify) wants it as RFC 3339
    /// has it.
    pub fn ts(&self) -> Option<Timestamp> {
        let text = self.get(Field::Ts)?.as_str()?;
        text.ends_with('Z').then(|| text.parse().ok()).flatten()
    }

    /// What it follows.
    pub fn parent(&self) -> Parent<'a> {
        let Some(node) = self.get(Field::Parent) else {
            return Parent::Missing;
        };
        if node.is_null() {
            return Parent::Null;
        }
        let other =
            |node: Node<'a>| Parent::Other(node.as_str().unwrap_or(node.raw().get().into()));
        let id = node.as_str().and_then(|text| text.parse().ok());
        id.map_or_else(|| other(node), Parent::Id)
    }

    /// What it says.
    pub fn payload(&self) -> Option<Node<'a>> {
        self.get(Field::Payload)
    }

    /// The id that the payload has, whatever the record says. A payload that is not there has that of
    /// nothing at all, which no record has.
    ///
    /// # Errors
    ///
    /// When it has no canonical form.
    pub fn content_id(&self) -> Result<ContentId, CanonError> {
        self.content_id_by(&mut Canon::new())
    }

    /// As [`Self::content_id`], with buffers that are used again.
    ///
    /// # Errors
    ///
    /// When the payload has no canonical form.
    pub fn content_id_by(&self, canon: &mut Canon) -> Result<ContentId, CanonError> {
        match self.payload() {
            Some(payload) => canon.id(payload),
            None => Ok(ContentId([0; 32])),
        }
    }
}

/// Why a value is no record.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NotARecord {
    /// It is a list, a string, a number ….
    #[error("not an object")]
    NotAnObject,
    /// The envelope has a field twice.
    #[error("field `{}` is there twice", .0.as_str())]
    Twice(Field),
}
