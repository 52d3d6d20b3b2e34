//! Fields of records that have no place of their own in an event.
//!
//! An adapter says which fields of an object it maps; all others are kept. They stay where they are in the
//! record until an event is made of the entry, so that an import, which makes none, pays nothing for them.

use quipu_model::Json;
use quipu_model::json::{Building, Node, RawJson, Target};

use crate::kept::Line;

/// The fields of one entry that have no place of their own.
#[derive(Debug, Clone, Default)]
pub struct Extra<'a>(Vec<Part<'a>>);

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
    /// All fields, as one object.
    Whole(RawJson<'a>),
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

    /// What [`Self::to_json`] gave.
    pub(crate) fn whole(object: RawJson<'a>) -> Self {
        Self(vec![Part {
            name: "",
            from: From::Whole(object),
        }])
    }

    /// Adds what another has.
    pub fn append(&mut self, mut other: Self) {
        if self.0.is_empty() {
            *self = other;
        } else {
            self.0.append(&mut other.0);
        }
    }

    fn put(&mut self, name: &'static str, from: From<'a>) {
        self.0.push(Part { name, from });
    }

    /// The fields as one object; `None` where there are none.
    pub fn to_json(&self) -> Option<Json> {
        match &self.0[..] {
            [] => return None,
            [
                Part {
                    from: From::Whole(object),
                    ..
                },
            ] => return Some((*object).into()),
            _ => {}
        }
        let mut object = Building::default();
        self.put_into(&mut object);
        finished(object)
    }

    /// Writes what [`Self::to_json`] gives into a line, behind this key.
    pub(crate) fn write(&self, key: &str, mut line: &mut Line) {
        if let []
        | [
            Part {
                from: From::Whole(_),
                ..
            },
        ] = &self.0[..]
        {
            return self.write_made(key, line);
        }
        let before = line.mark();
        line.put(key);
        let mut object = Building::on(&mut *line);
        self.put_into(&mut object);
        if object.is_empty() {
            line.back_to(before);
            return;
        }
        object.close();
        if line.may_be_too_deep() {
            line.back_to(before);
            self.write_made(key, line);
        }
    }

    fn write_made(&self, key: &str, mut line: &mut Line) {
        if let Some(made) = self.to_json() {
            line.put(key);
            line.value(made.as_raw());
        }
    }

    fn put_into<T: Target>(&self, object: &mut Building<T>) {
        for part in &self.0 {
            match &part.from {
                From::Rest(from, mapped) if part.name.is_empty() => {
                    fields(*from, mapped, object);
                }
                From::Rest(from, mapped) => {
                    object.inside(part.name, |object| fields(*from, mapped, object));
                }
                From::But(value, Some(said)) if value.fields().next().is_some() => {
                    object.inside(part.name, |object| {
                        for (key, value) in value.fields() {
                            if !value.is_null() && value.raw() != *said {
                                object.field(key, value.raw());
                            }
                        }
                    });
                }
                From::But(value, said) => {
                    if !value.is_null() && said.is_none_or(|said| said != value.raw()) {
                        object.named(part.name, value.raw());
                    }
                }
                From::Made(value) => object.named(part.name, value.as_raw()),
                // Nothing is added to what was read back.
                From::Whole(value) => object.named("", *value),
            }
        }
    }
}

/// The fields of an object that say something and are not mapped, as an object; `None` where there are none.
pub(crate) fn leftover(from: Node<'_>, mapped: &[&str]) -> Option<Json> {
    let mut object = Building::default();
    fields(from, &[mapped, &[]], &mut object);
    finished(object)
}

fn finished(object: Building) -> Option<Json> {
    if object.is_empty() {
        return None;
    }
    // Fields that nest too deep to be a value are kept as text.
    Some(object.finish().unwrap_or_else(|text| {
        let mut object = Building::default();
        object.named("text", Json::string(&text).as_raw());
        object.finish().unwrap_or_else(|_| Json::null())
    }))
}

/// The fields of an object that say something and are not mapped.
fn fields<T: Target>(from: Node<'_>, mapped: &[&[&str]; 2], to: &mut Building<T>) {
    for (key, value) in from.fields() {
        let is_mapped = mapped.iter().any(|names| names.iter().any(|it| key.is(it)));
        if !is_mapped && !value.is_null() {
            to.field(key, value.raw());
        }
    }
}
