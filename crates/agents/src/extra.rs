//! Fields of records that have no place of their own in an event.
//!
//! An adapter says which fields of an object it maps; all others are kept. They stay where they are in the
//! record until an event is made of the entry, so that an import, which makes none, pays nothing for them.

use quipu_model::Json;
use quipu_model::json::{Node, RawJson};

/// How many objects the fields of one entry may come from: a line, another session that it names, its message, its
/// usage, a block, what is in it, and the other account of a result.
const PARTS: usize = 7;

/// How long the fields of one entry are, as a rule.
const ROOM: usize = 256;

/// The fields of one entry that have no place of their own.
#[derive(Debug, Clone, Default)]
pub struct Extra<'a>([Option<Part<'a>>; PARTS]);

#[derive(Debug, Clone)]
struct Part<'a> {
    /// The name under which the fields stand; those of the record itself stand by themselves.
    name: &'static str,
    from: From<'a>,
}

#[derive(Debug, Clone)]
enum From<'a> {
    /// The fields of an object, but for those that are mapped.
    Rest(Node<'a>, [&'static [&'static str]; 2]),
    /// A value, but for what says word for word the same as another.
    But(Node<'a>, Option<RawJson<'a>>),
    /// A value as it is.
    Made(Json),
}

impl<'a> Extra<'a> {
    /// Keeps the fields of an object that are not mapped. `name` is empty for those of the record itself.
    pub fn rest(&mut self, name: &'static str, object: Node<'a>, mapped: &'static [&'static str]) {
        self.put(name, From::Rest(object, [mapped, &[]]));
    }

    /// Like [`Self::rest`], with two lists of what is mapped.
    pub fn rest_of_two(
        &mut self,
        name: &'static str,
        object: Node<'a>,
        mapped: [&'static [&'static str]; 2],
    ) {
        self.put(name, From::Rest(object, mapped));
    }

    /// Keeps a value under a name, but for a text that is `said` elsewhere.
    pub fn but(&mut self, name: &'static str, value: Node<'a>, said: Option<RawJson<'a>>) {
        self.put(name, From::But(value, said));
    }

    /// Keeps one value under a name.
    pub fn value(&mut self, name: &'static str, value: Json) {
        self.put(name, From::Made(value));
    }

    /// Adds what another has.
    pub fn append(&mut self, other: Self) {
        for part in other.0.into_iter().flatten() {
            self.put(part.name, part.from);
        }
    }

    fn put(&mut self, name: &'static str, from: From<'a>) {
        let room = self.0.iter_mut().find(|part| part.is_none());
        debug_assert!(
            room.is_some(),
            "fields of more objects than there is room for"
        );
        if let Some(room) = room {
            *room = Some(Part { name, from });
        }
    }

    /// The fields as one object; `None` where there are none.
    pub fn to_json(&self) -> Option<Json> {
        // Most entries have a few short fields: one piece of memory holds them.
        let mut text = String::with_capacity(ROOM);
        text.push('{');
        for part in self.0.iter().flatten() {
            match &part.from {
                From::Rest(object, mapped) if part.name.is_empty() => {
                    fields(*object, mapped, &mut text);
                }
                From::Rest(object, mapped) => {
                    inside(part.name, &mut text, |text| fields(*object, mapped, text));
                }
                From::But(object, Some(said)) if object.fields().next().is_some() => {
                    inside(part.name, &mut text, |text| {
                        for (key, value) in object.fields() {
                            if !value.is_null() && value.raw() != *said {
                                field(key.raw().get(), value.raw().get(), text);
                            }
                        }
                    });
                }
                From::But(value, said) => {
                    if !value.is_null() && said.is_none_or(|said| said != value.raw()) {
                        named(part.name, value.raw().get(), &mut text);
                    }
                }
                From::Made(value) => named(part.name, value.get(), &mut text),
            }
        }
        if text.len() == 1 {
            return None;
        }
        text.push('}');
        // Fields that nest too deep to be a value are kept as text.
        let as_text = || Json::parse(&format!(r#"{{"text":{}}}"#, Json::string(&text).get())).ok();
        Json::parse(&text).ok().or_else(as_text)
    }
}

/// The fields of an object that say something and are not mapped, as an object; `None` where there are none.
pub(crate) fn leftover(object: Node<'_>, mapped: &[&str]) -> Option<Json> {
    let mut text = String::from("{");
    fields(object, &[mapped, &[]], &mut text);
    text.push('}');
    (text.len() > 2).then(|| Json::parse(&text).ok())?
}

/// The fields of an object that say something and are not mapped.
fn fields(object: Node<'_>, mapped: &[&[&str]; 2], to: &mut String) {
    for (key, value) in object.fields() {
        let raw = key.raw().get();
        // Comparing texts is cheaper than reading a key, and nearly no key has escapes.
        let plain = raw.trim_matches('"');
        let is_it = |it: &&str| *it == plain || raw.contains('\\') && key.is(it);
        if !value.is_null() && !mapped.iter().copied().flatten().any(is_it) {
            field(raw, value.raw().get(), to);
        }
    }
}

/// Adds an object under a name, unless nothing is put into it.
fn inside(name: &'static str, to: &mut String, put: impl FnOnce(&mut String)) {
    let from = to.len();
    named(name, "{", to);
    let begin = to.len();
    put(to);
    if to.len() == begin {
        to.truncate(from);
    } else {
        to.push('}');
    }
}

/// Adds a value under a name of ours, which needs no escapes.
fn named(name: &'static str, value: &str, to: &mut String) {
    comma(to);
    to.push('"');
    to.push_str(name);
    to.push_str("\":");
    to.push_str(value);
}

fn field(key: &str, value: &str, to: &mut String) {
    comma(to);
    to.push_str(key);
    to.push(':');
    to.push_str(value);
}

/// No value ends with a brace that opens, so one at the end is that of the object.
fn comma(to: &mut String) {
    if !to.ends_with('{') {
        to.push(',');
    }
}
