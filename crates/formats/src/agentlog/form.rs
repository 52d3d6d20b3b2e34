//! Other readings of "canonical JSON" that ids in the wild were made by.
//!
//! The specification's text and its programs disagree (`docs/agentlog.md`). An id that does not match may
//! still be the right one of another reading, and then nobody has tampered with the record. This writes
//! every such reading; it is slow and used only to say what a wrong id is.

use std::collections::BTreeMap;
use std::fmt::{self, Write as _};

use quipu_model::json::{Kind, Node};
use sha2::{Digest as _, Sha256};
use unicode_normalization::UnicodeNormalization as _;

use super::ContentId;
use super::canon::{double, plain};

/// How a canonical form may differ from the one that is right. None of them set is that one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[expect(clippy::struct_excessive_bools, reason = "they combine freely")]
pub struct Form {
    /// Every control character as `\u00xx`, as the specification's text has it.
    pub literal_escapes: bool,
    /// Numbers as in RFC 8785: doubles, with exponents where ECMAScript has them.
    pub jcs_numbers: bool,
    /// Keys sorted by UTF-16 units, before they are normalised.
    pub utf16_keys: bool,
    /// Strings as they are, not in NFC.
    pub no_nfc: bool,
    /// Of a key that is there several times, the last counts.
    pub last_key_wins: bool,
}

/// Deeper values are not looked at: this recurses.
const DEEPEST: usize = 512;

impl Form {
    /// Every form but the right one, those with the fewest differences first.
    pub fn others() -> impl Iterator<Item = Self> {
        let mut forms: Vec<u8> = (1..32).collect();
        forms.sort_by_key(|bits| bits.count_ones());
        forms.into_iter().map(|bits| Self {
            literal_escapes: bits & 1 != 0,
            jcs_numbers: bits & 2 != 0,
            utf16_keys: bits & 4 != 0,
            no_nfc: bits & 8 != 0,
            last_key_wins: bits & 16 != 0,
        })
    }

    /// The form in which this payload has this id.
    pub fn of(payload: Node<'_>, id: ContentId) -> Option<Self> {
        Self::others().find(|form| form.id(payload) == Some(id))
    }

    /// The id of a payload in this form; `None` where it has none.
    pub fn id(self, payload: Node<'_>) -> Option<ContentId> {
        let mut text = String::new();
        self.write(payload, 0, &mut text)?;
        Some(ContentId(Sha256::digest(text.as_bytes()).into()))
    }

    fn write(self, value: Node<'_>, depth: usize, out: &mut String) -> Option<()> {
        if depth > DEEPEST {
            return None;
        }
        match value.kind() {
            Kind::Null | Kind::Bool => out.push_str(value.raw().get()),
            Kind::Number => out.push_str(&self.number(value.raw().get())?),
            Kind::String => self.string(&value.as_raw_str()?.to_text()?, out),
            Kind::List => {
                out.push('[');
                for (n, item) in value.items().enumerate() {
                    if n > 0 {
                        out.push(',');
                    }
                    self.write(item, depth + 1, out)?;
                }
                out.push(']');
            }
            Kind::Object => self.object(value, depth, out)?,
        }
        Some(())
    }

    fn object(self, value: Node<'_>, depth: usize, out: &mut String) -> Option<()> {
        // By what keys are sorted by, then by what they are. Two that are the same only in NFC are two to
        // who looks for duplicates before.
        let mut fields: BTreeMap<(Vec<u16>, String, String), Node<'_>> = BTreeMap::new();
        for (raw, value) in value.fields() {
            let key = raw.to_text()?.into_owned();
            let order = if self.utf16_keys {
                key.encode_utf16().collect()
            } else {
                Vec::new()
            };
            let written = if self.no_nfc {
                key.clone()
            } else {
                key.nfc().collect()
            };
            let told_apart = if self.last_key_wins {
                key
            } else {
                String::new()
            };
            let before = fields.insert((order, written, told_apart), value);
            if before.is_some() && !self.last_key_wins {
                return None;
            }
        }
        out.push('{');
        for (n, ((_, key, _), value)) in fields.into_iter().enumerate() {
            if n > 0 {
                out.push(',');
            }
            self.string(&key, out);
            out.push(':');
            self.write(value, depth + 1, out)?;
        }
        out.push('}');
        Some(())
    }

    fn string(self, text: &str, out: &mut String) {
        let text: String = if self.no_nfc {
            text.to_owned()
        } else {
            text.nfc().collect()
        };
        out.push('"');
        for char in text.chars() {
            match char {
                '"' => out.push_str("\\\""),
                '\\' => out.push_str("\\\\"),
                '\u{8}' if !self.literal_escapes => out.push_str("\\b"),
                '\u{c}' if !self.literal_escapes => out.push_str("\\f"),
                '\n' if !self.literal_escapes => out.push_str("\\n"),
                '\r' if !self.literal_escapes => out.push_str("\\r"),
                '\t' if !self.literal_escapes => out.push_str("\\t"),
                control if control < ' ' => {
                    // A string takes everything.
                    write!(out, "\\u{:04x}", u32::from(control)).ok();
                }
                other => out.push(other),
            }
        }
        out.push('"');
    }

    fn number(self, token: &str) -> Option<String> {
        if self.jcs_numbers {
            return Some(ecmascript(double(token)?));
        }
        let whole = token.parse::<i64>().map(|n| n.to_string()).ok();
        let whole = whole.or_else(|| token.parse::<u64>().map(|n| n.to_string()).ok());
        whole.or_else(|| double(token).map(plain))
    }
}

/// A double as ECMAScript writes it.
fn ecmascript(double: f64) -> String {
    let size = double.abs();
    if size == 0.0 || (1e-6..1e21).contains(&size) {
        return plain(double);
    }
    let text = format!("{double:e}");
    match text.split_once('e') {
        Some((digits, exponent)) if !exponent.starts_with('-') => format!("{digits}e+{exponent}"),
        _ => text,
    }
}

impl fmt::Display for Form {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = [
            (
                self.literal_escapes,
                "literal escapes (every control character as \\u00xx)",
            ),
            (
                self.jcs_numbers,
                "RFC 8785 numbers (doubles, with exponents)",
            ),
            (self.utf16_keys, "keys sorted by UTF-16 units"),
            (self.no_nfc, "strings not normalised"),
            (self.last_key_wins, "the last of duplicate keys counts"),
        ];
        let mut names = names.iter().filter(|(set, _)| *set).map(|(_, name)| *name);
        f.write_str(names.next().unwrap_or("the canonical form"))?;
        names.try_for_each(|name| write!(f, ", {name}"))
    }
}
