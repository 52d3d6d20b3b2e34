//! The texts in what is kept between two readings of a log.

use std::fmt::Display;

use serde::Serialize;
use serde::ser::{
    self, SerializeMap, SerializeSeq, SerializeStruct, SerializeStructVariant, SerializeTuple,
    SerializeTupleStruct, SerializeTupleVariant,
};

/// Every text in a value, names of fields not counted.
pub(crate) fn texts<T: Serialize + ?Sized>(value: &T) -> Vec<String> {
    let mut texts = Texts(Vec::new());
    // Only a value that cannot be serialised fails here, and such a value is not kept either.
    drop(value.serialize(&mut texts));
    texts.0
}

struct Texts(Vec<String>);

/// Nothing here fails of itself; a value may refuse to be serialised.
#[derive(Debug)]
struct Refused;

impl Display for Refused {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("the value cannot be serialised")
    }
}

impl std::error::Error for Refused {}

impl ser::Error for Refused {
    fn custom<T: Display>(_: T) -> Self {
        Self
    }
}

type Done = Result<(), Refused>;

/// Values that hold no text.
macro_rules! without_text {
    ($($name:ident: $kind:ty,)*) => {
        $(fn $name(self, _: $kind) -> Done {
            Ok(())
        })*
    };
}

impl ser::Serializer for &mut Texts {
    type Ok = ();
    type Error = Refused;
    type SerializeSeq = Self;
    type SerializeTuple = Self;
    type SerializeTupleStruct = Self;
    type SerializeTupleVariant = Self;
    type SerializeMap = Self;
    type SerializeStruct = Self;
    type SerializeStructVariant = Self;

    without_text! {
        serialize_bool: bool,
        serialize_i8: i8,
        serialize_i16: i16,
        serialize_i32: i32,
        serialize_i64: i64,
        serialize_i128: i128,
        serialize_u8: u8,
        serialize_u16: u16,
        serialize_u32: u32,
        serialize_u64: u64,
        serialize_u128: u128,
        serialize_f32: f32,
        serialize_f64: f64,
        serialize_char: char,
        serialize_unit_struct: &'static str,
    }

    fn serialize_str(self, text: &str) -> Done {
        if !text.is_empty() {
            self.0.push(text.to_owned());
        }
        Ok(())
    }

    fn serialize_bytes(self, bytes: &[u8]) -> Done {
        self.serialize_str(&String::from_utf8_lossy(bytes))
    }

    fn serialize_none(self) -> Done {
        Ok(())
    }

    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Done {
        value.serialize(self)
    }

    fn serialize_unit(self) -> Done {
        Ok(())
    }

    fn serialize_unit_variant(self, _: &'static str, _: u32, _: &'static str) -> Done {
        Ok(())
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(self, _: &'static str, value: &T) -> Done {
        value.serialize(self)
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        _: u32,
        _: &'static str,
        value: &T,
    ) -> Done {
        value.serialize(self)
    }

    fn serialize_seq(self, _: Option<usize>) -> Result<Self, Refused> {
        Ok(self)
    }

    fn serialize_tuple(self, _: usize) -> Result<Self, Refused> {
        Ok(self)
    }

    fn serialize_tuple_struct(self, _: &'static str, _: usize) -> Result<Self, Refused> {
        Ok(self)
    }

    fn serialize_tuple_variant(
        self,
        _: &'static str,
        _: u32,
        _: &'static str,
        _: usize,
    ) -> Result<Self, Refused> {
        Ok(self)
    }

    fn serialize_map(self, _: Option<usize>) -> Result<Self, Refused> {
        Ok(self)
    }

    fn serialize_struct(self, _: &'static str, _: usize) -> Result<Self, Refused> {
        Ok(self)
    }

    fn serialize_struct_variant(
        self,
        _: &'static str,
        _: u32,
        _: &'static str,
        _: usize,
    ) -> Result<Self, Refused> {
        Ok(self)
    }

    fn is_human_readable(&self) -> bool {
        false
    }
}

/// Values that hold others: each of those is looked at.
macro_rules! holding {
    ($($kind:ident: $($name:ident)* / $($named:ident)?,)*) => {
        $(impl $kind for &mut Texts {
            type Ok = ();
            type Error = Refused;

            $(fn $name<T: Serialize + ?Sized>(&mut self, value: &T) -> Done {
                value.serialize(&mut **self)
            })*

            $(fn $named<T: Serialize + ?Sized>(&mut self, _: &'static str, value: &T) -> Done {
                value.serialize(&mut **self)
            })?

            fn end(self) -> Done {
                Ok(())
            }
        })*
    };
}

holding! {
    SerializeSeq: serialize_element /,
    SerializeTuple: serialize_element /,
    SerializeTupleStruct: serialize_field /,
    SerializeTupleVariant: serialize_field /,
    SerializeMap: serialize_key serialize_value /,
    SerializeStruct: / serialize_field,
    SerializeStructVariant: / serialize_field,
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[derive(Serialize)]
    enum Told {
        Nothing,
        One(String),
        Two(&'static str, u8),
        Named { name: Option<String> },
    }

    #[derive(Serialize)]
    struct State {
        told: Vec<Told>,
        names: BTreeMap<String, (u64, String)>,
    }

    #[test]
    fn every_text_of_a_state_is_found() {
        let named = |name: &str| Told::Named {
            name: Some(name.to_owned()),
        };
        let state = State {
            told: vec![
                Told::Nothing,
                Told::One("a".to_owned()),
                Told::Two("b", 1),
                named("c"),
                named(""),
            ],
            names: BTreeMap::from([("d".to_owned(), (2, "e".to_owned()))]),
        };
        assert_eq!(texts(&state), ["a", "b", "c", "d", "e"]);
    }
}
