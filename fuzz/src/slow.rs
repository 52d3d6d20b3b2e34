//! The canonical form again, slowly: a text to a tree, the tree to a text. Nothing is shared with the one that
//! is used but the tables of Unicode, and nothing here is clever.

use std::collections::BTreeMap;

use unicode_normalization::UnicodeNormalization as _;

/// The text has no canonical form, or is no JSON.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct None;

type Result<T> = std::result::Result<T, None>;

enum Value {
    Literal(&'static str),
    Number(String),
    String(String),
    List(Vec<Value>),
    /// By their keys in NFC; a `BTreeMap` of strings is in the order of their UTF-8 bytes.
    Object(BTreeMap<String, Value>),
}

/// The canonical form of a JSON text that nests no deeper than `depth` lists and objects.
pub fn canonical(text: &str, depth: usize) -> Result<String> {
    let mut parser = Parser {
        chars: text.chars().collect(),
        at: 0,
    };
    let value = parser.value(depth)?;
    parser.space();
    if parser.at < parser.chars.len() {
        return Err(None);
    }
    let mut out = String::new();
    print(&value, &mut out);
    Ok(out)
}

struct Parser {
    chars: Vec<char>,
    at: usize,
}

impl Parser {
    fn peek(&self) -> Option<char> {
        self.chars.get(self.at).copied()
    }

    fn take(&mut self) -> Result<char> {
        let char = self.peek().ok_or(None)?;
        self.at += 1;
        Ok(char)
    }

    fn space(&mut self) {
        while matches!(self.peek(), Some(' ' | '\t' | '\n' | '\r')) {
            self.at += 1;
        }
    }

    /// Takes this character, if it comes next.
    fn takes(&mut self, char: char) -> bool {
        let there = self.peek() == Some(char);
        self.at += usize::from(there);
        there
    }

    fn value(&mut self, depth: usize) -> Result<Value> {
        self.space();
        match self.peek().ok_or(None)? {
            '{' if depth > 0 => self.object(depth - 1),
            '[' if depth > 0 => self.list(depth - 1),
            '"' => self.string().map(Value::String),
            '-' | '0'..='9' => self.number(),
            _ => self.literal(),
        }
    }

    fn literal(&mut self) -> Result<Value> {
        for word in ["null", "true", "false"] {
            let end = self.at + word.len();
            if self
                .chars
                .get(self.at..end)
                .is_some_and(|there| there.iter().copied().eq(word.chars()))
            {
                self.at = end;
                return Ok(Value::Literal(word));
            }
        }
        Err(None)
    }

    fn list(&mut self, depth: usize) -> Result<Value> {
        self.take()?;
        let mut items = Vec::new();
        self.space();
        if self.takes(']') {
            return Ok(Value::List(items));
        }
        loop {
            items.push(self.value(depth)?);
            self.space();
            match self.take()? {
                ',' => {}
                ']' => return Ok(Value::List(items)),
                _ => return Err(None),
            }
        }
    }

    fn object(&mut self, depth: usize) -> Result<Value> {
        self.take()?;
        let mut fields = BTreeMap::new();
        self.space();
        if self.takes('}') {
            return Ok(Value::Object(fields));
        }
        loop {
            self.space();
            let key: String = self.string()?.nfc().collect();
            self.space();
            if !self.takes(':') {
                return Err(None);
            }
            let value = self.value(depth)?;
            if fields.insert(key, value).is_some() {
                return Err(None);
            }
            self.space();
            match self.take()? {
                ',' => {}
                '}' => return Ok(Value::Object(fields)),
                _ => return Err(None),
            }
        }
    }

    fn string(&mut self) -> Result<String> {
        if !self.takes('"') {
            return Err(None);
        }
        // As UTF-16, where an escape is one unit whatever it is.
        let mut units: Vec<u16> = Vec::new();
        loop {
            match self.take()? {
                '"' => return String::from_utf16(&units).map_err(|_| None),
                '\\' => units.push(self.escape()?),
                control if u32::from(control) < 0x20 => return Err(None),
                char => units.extend_from_slice(char.encode_utf16(&mut [0; 2])),
            }
        }
    }

    fn escape(&mut self) -> Result<u16> {
        Ok(match self.take()? {
            char @ ('"' | '\\' | '/') => char as u16,
            'b' => 8,
            't' => 9,
            'n' => 10,
            'f' => 12,
            'r' => 13,
            'u' => {
                let mut unit = 0;
                for _ in 0..4 {
                    let digit = self.take()?.to_digit(16).ok_or(None)?;
                    unit = unit * 16 + digit;
                }
                u16::try_from(unit).map_err(|_| None)?
            }
            _ => return Err(None),
        })
    }

    fn digits(&mut self) -> Result<()> {
        let begin = self.at;
        while self.peek().is_some_and(|char| char.is_ascii_digit()) {
            self.at += 1;
        }
        if self.at == begin { Err(None) } else { Ok(()) }
    }

    fn number(&mut self) -> Result<Value> {
        let begin = self.at;
        self.takes('-');
        if !self.takes('0') {
            self.digits()?;
        }
        if self.takes('.') {
            self.digits()?;
        }
        if self.takes('e') || self.takes('E') {
            if !self.takes('+') {
                self.takes('-');
            }
            self.digits()?;
        }
        let token: String = self.chars[begin..self.at].iter().collect();
        number(&token).map(Value::Number)
    }
}

fn number(token: &str) -> Result<String> {
    if let Ok(whole) = token.parse::<i128>()
        && (i128::from(i64::MIN)..=i128::from(u64::MAX)).contains(&whole)
    {
        return Ok(whole.to_string());
    }
    let double: f64 = token.parse().map_err(|_| None)?;
    if !double.is_finite() {
        return Err(None);
    }
    Ok(without_exponent(double))
}

/// The shortest digits, with the point put where the exponent says.
fn without_exponent(double: f64) -> String {
    if double == 0.0 {
        return "0".to_owned();
    }
    let text = format!("{:e}", double.abs());
    let (digits, exponent) = text.split_once('e').expect("an exponent");
    let exponent: i32 = exponent.parse().expect("a number");
    let digits: Vec<char> = digits.chars().filter(|char| *char != '.').collect();
    let sign = if double < 0.0 { "-" } else { "" };
    let digit = |place: i32| {
        let index = usize::try_from(exponent - place).ok();
        index
            .and_then(|index| digits.get(index))
            .copied()
            .unwrap_or('0')
    };
    let whole: String = (0..=exponent.max(0)).rev().map(digit).collect();
    let last = exponent - i32::try_from(digits.len()).expect("few digits") + 1;
    if last >= 0 {
        return format!("{sign}{whole}");
    }
    let fraction: String = (last..0).rev().map(digit).collect();
    format!("{sign}{whole}.{fraction}")
}

fn print(value: &Value, out: &mut String) {
    match value {
        Value::Literal(word) => out.push_str(word),
        Value::Number(digits) => out.push_str(digits),
        Value::String(text) => print_string(text, out),
        Value::List(items) => {
            out.push('[');
            for (n, item) in items.iter().enumerate() {
                if n > 0 {
                    out.push(',');
                }
                print(item, out);
            }
            out.push(']');
        }
        Value::Object(fields) => {
            out.push('{');
            for (n, (key, value)) in fields.iter().enumerate() {
                if n > 0 {
                    out.push(',');
                }
                print_string(key, out);
                out.push(':');
                print(value, out);
            }
            out.push('}');
        }
    }
}

fn print_string(text: &str, out: &mut String) {
    out.push('"');
    for char in text.nfc() {
        match char {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\u{8}' => out.push_str("\\b"),
            '\t' => out.push_str("\\t"),
            '\n' => out.push_str("\\n"),
            '\u{c}' => out.push_str("\\f"),
            '\r' => out.push_str("\\r"),
            control if u32::from(control) < 0x20 => {
                out.push_str(&format!("\\u{:04x}", u32::from(control)));
            }
            other => out.push(other),
        }
    }
    out.push('"');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn some_forms_that_are_known() {
        for (text, form) in [
            (
                "{\"b\":2,\"a\":{\"z\":1,\"y\":2}}",
                r#"{"a":{"y":2,"z":1},"b":2}"#,
            ),
            (
                "[1.00, -0, -0.0, 1e21, 1e-7, 1.5e3, 5e-1]",
                "[1,0,0,1000000000000000000000,0.0000001,1500,0.5]",
            ),
            (
                "[18446744073709551615,18446744073709551616]",
                "[18446744073709551615,18446744073709552000]",
            ),
            (
                "[-9223372036854775808,-9223372036854775809]",
                "[-9223372036854775808,-9223372036854776000]",
            ),
            (
                "\"e\\u0301\\n\\u0001\\u007f\\/\"",
                "\"\u{e9}\\n\\u0001\u{7f}/\"",
            ),
            (
                "{\"\\ud83d\\ude00\":1,\"\\uff5e\":2}",
                "{\"\u{ff5e}\":2,\"\u{1f600}\":1}",
            ),
            (" [ true , null,false ] ", "[true,null,false]"),
        ] {
            assert_eq!(canonical(text, 8).as_deref(), Ok(form), "{text}");
        }
        for text in [
            "",
            "{\"a\":1,\"a\":2}",
            "{\"\\u00e9\":1,\"e\\u0301\":2}",
            "\"\\ud800\"",
            "1e400",
            "01",
            "[1,]",
            "NaN",
            "[[[]]]",
        ] {
            assert_eq!(canonical(text, 2), Err(None), "{text}");
        }
    }
}
