//! One pass over the text of an event, borrowing everything.
//!
//! A [`Scan`] holds slices of the line: a caller who needs the type and the sequence number pays
//! for no string. All values are raw first and interpreted later, so a field of the wrong kind is a
//! finding about that field rather than a line that cannot be read. Repeated keys: the last wins.

use std::borrow::Cow;

use quipu_model::EventType;
use quipu_model::json::{Cursor, RawJson, SyntaxError};

use super::Fault;

/// What a payload looks like, by the five dispatch rules of the exchange format. It depends on the
/// payload alone, not on the event's type.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Shape {
    /// Null or missing.
    Null,
    /// Rule 1: an array of blocks.
    Blocks,
    /// Rule 2: an object with `role`.
    Message,
    /// Rule 3: an object with `call_id`.
    Tool,
    /// Rule 4: an object with `kind`.
    Step,
    /// Rule 5: anything else.
    Other,
}

/// An event as slices of its line.
#[derive(Debug)]
pub struct Scan<'a> {
    /// The sequence number.
    pub seq: u64,
    /// The event type as written.
    pub event_type: Cow<'a, str>,
    pub(super) envelope: Envelope<'a>,
}

impl<'a> Scan<'a> {
    /// Scans the object that `text` begins with; also gives how much of the text that is.
    pub(super) fn parse(text: &'a str, max_depth: usize) -> Result<(Self, usize), Fault> {
        let mut cursor = Cursor::new(text, max_depth);
        let envelope = Envelope::read(&mut cursor).map_err(|e| Fault::syntax(&e, max_depth))?;
        Ok((Self::new(envelope)?, cursor.offset()))
    }

    fn new(envelope: Envelope<'a>) -> Result<Self, Fault> {
        let field = |name, why: &str| Fault::Field {
            name,
            why: why.to_owned(),
        };
        let seq = envelope
            .seq
            .ok_or_else(|| field("seq", "missing"))?
            .as_u64()
            .ok_or_else(|| field("seq", "not a whole number that is zero or greater"))?;
        let event_type = envelope
            .event_type
            .ok_or_else(|| field("type", "missing"))?
            .as_str()
            .ok_or_else(|| field("type", "not a string"))?;
        Ok(Self {
            seq,
            event_type,
            envelope,
        })
    }

    /// The kind of the event: the type, or what a line of that type says that it carries.
    pub fn kind(&self) -> Cow<'_, str> {
        let carried = self.envelope.as_kind.and_then(|raw| raw.as_str());
        let is_kind = |word: &Cow<'_, str>| {
            EventType::from_word(word).is_some_and(|kind| !kind.is_exchange())
        };
        carried
            .filter(is_kind)
            .unwrap_or(Cow::Borrowed(&*self.event_type))
    }

    /// The run as written; `None` when it is missing or not a string.
    pub fn run_id(&self) -> Option<Cow<'a, str>> {
        self.envelope.run_id.and_then(|raw| raw.as_str())
    }

    /// What the payload looks like, by the five dispatch rules.
    pub fn shape(&self) -> Shape {
        self.envelope.payload.shape()
    }
}

/// Declares a struct of raw fields that is read from an object.
macro_rules! raw_object {
    (
        $(#[$doc:meta])* $name:ident
        { $($field:ident = $key:literal,)* }
        $({ $special:ident: $special_type:ident = $special_key:literal, })?
    ) => {
        $(#[$doc])*
        #[derive(Debug, Default)]
        pub(super) struct $name<'a> {
            $(pub(super) $field: Option<RawJson<'a>>,)*
            $(pub(super) $special: $special_type<'a>,)?
            /// All other fields, in order. Most objects have none, so that costs nothing.
            pub(super) others: Vec<(Cow<'a, str>, RawJson<'a>)>,
        }

        impl<'a> $name<'a> {
            pub(super) fn read(cursor: &mut Cursor<'a>) -> Result<Self, SyntaxError> {
                let mut this = Self::default();
                cursor.object(|key, cursor| {
                    let key = key.to_text_lossy();
                    match &*key {
                        $($key => this.$field = Some(cursor.value()?),)*
                        $($special_key => this.$special = $special_type::read(cursor)?,)?
                        _ => this.others.push((key, cursor.value()?)),
                    }
                    Ok::<(), SyntaxError>(())
                })?;
                Ok(this)
            }
        }
    };
}

raw_object! {
    /// The outer object of a line.
    Envelope {
        seq = "seq",
        run_id = "run_id",
        parent_run_id = "parent_run_id",
        child_run_id = "child_run_id",
        event_type = "type",
        path = "path",
        iteration = "iteration",
        timestamp = "timestamp",
        iterations = "iterations",
        attempt = "attempt",
        as_kind = "as",
        event = "event",
        check = "check",
    }
    { payload: Payload = "payload", }
}

raw_object! {
    /// The object in `payload`.
    PayloadObject {
        role = "role",
        call_id = "call_id",
        kind = "kind",
        name = "name",
        error = "error",
        result = "result",
        input = "input",
        output = "output",
        fidelity = "fidelity",
    }
    { blocks: Blocks = "blocks", }
}

raw_object! {
    /// A content block.
    BlockObject {
        block_type = "type",
        fidelity = "fidelity",
        text = "text",
        thinking = "thinking",
        tool_name = "tool_name",
        tool_id = "tool_id",
        tool_input = "tool_input",
        tool_content = "tool_content",
        command = "command",
        chunk = "chunk",
    }
}

/// The value of `payload`.
#[derive(Debug, Default)]
pub(super) enum Payload<'a> {
    #[default]
    Missing,
    Object(PayloadObject<'a>),
    /// The blocks of a message, without the object around them.
    List(Vec<Block<'a>>),
    Other(RawJson<'a>),
}

impl<'a> Payload<'a> {
    pub(super) fn read(cursor: &mut Cursor<'a>) -> Result<Self, SyntaxError> {
        match cursor.peek() {
            Some(b'{') => PayloadObject::read(cursor).map(Self::Object),
            Some(b'[') => read_blocks(cursor).map(Self::List),
            _ => cursor.value().map(Self::Other),
        }
    }

    pub(super) fn shape(&self) -> Shape {
        match self {
            Self::Missing => Shape::Null,
            Self::Other(raw) if raw.is_null() => Shape::Null,
            Self::List(_) => Shape::Blocks,
            Self::Other(_) => Shape::Other,
            // A key that is there counts, whatever its value.
            Self::Object(object) => match object {
                o if o.role.is_some() => Shape::Message,
                o if o.call_id.is_some() => Shape::Tool,
                o if o.kind.is_some() => Shape::Step,
                _ => Shape::Other,
            },
        }
    }
}

/// The value of `blocks`.
#[derive(Debug, Default)]
pub(super) enum Blocks<'a> {
    #[default]
    Missing,
    List(Vec<Block<'a>>),
    Other(RawJson<'a>),
}

impl<'a> Blocks<'a> {
    fn read(cursor: &mut Cursor<'a>) -> Result<Self, SyntaxError> {
        match cursor.peek() {
            Some(b'[') => read_blocks(cursor).map(Self::List),
            _ => cursor.value().map(Self::Other),
        }
    }
}

fn read_blocks<'a>(cursor: &mut Cursor<'a>) -> Result<Vec<Block<'a>>, SyntaxError> {
    let mut blocks = Vec::new();
    cursor.list(|cursor| {
        let (object, text) = cursor.with_text(|cursor| match cursor.peek() {
            Some(b'{') => BlockObject::read(cursor).map(Some),
            _ => cursor.value().map(|_| None),
        })?;
        blocks.push(Block { object, text });
        Ok::<(), SyntaxError>(())
    })?;
    Ok(blocks)
}

/// An element of a list of blocks.
#[derive(Debug)]
pub(super) struct Block<'a> {
    /// Its fields; `None` when it is not an object.
    pub(super) object: Option<BlockObject<'a>>,
    /// The whole of it.
    pub(super) text: RawJson<'a>,
}
