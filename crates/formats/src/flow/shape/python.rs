//! Values as Python prints them: `[TextBlock(text='hi'), ToolUseBlock(id='t1', input={'a': 1})]`.
//!
//! It was never meant to be read back, and is often cut off. So this reads as much as is there, and says
//! nothing of what is not.

use quipu_model::Json;

/// A value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Value {
    /// `None`
    None,
    /// `True` or `False`
    Bool(bool),
    /// A number, as written.
    Number(String),
    /// A string.
    Text(String),
    /// A list or a tuple.
    List(Vec<Value>),
    /// Keys and values of a dictionary.
    Map(Vec<(Value, Value)>),
    /// The name of a class, and its fields.
    Object(String, Vec<(String, Value)>),
}

/// How deep values may nest.
const DEPTH: usize = 48;

/// The elements of a list. When the text ends too early, those that are whole. `None` when it is no list.
pub(super) fn list(text: &str) -> Option<Vec<Value>> {
    let mut parser = Parser {
        text: text.trim(),
        at: 0,
        depth: 0,
    };
    if !parser.eat('[') {
        return None;
    }
    let mut items = Vec::new();
    while !parser.eat(']') {
        let Some(item) = parser.value() else {
            break;
        };
        items.push(item);
        if !parser.eat(',') && !parser.peek(']') {
            break;
        }
    }
    (!items.is_empty() || parser.at == parser.text.len()).then_some(items)
}

impl Value {
    /// The text of a string.
    pub(super) fn into_text(self) -> Option<String> {
        match self {
            Self::Text(text) => Some(text),
            _ => None,
        }
    }

    /// The value as JSON; `None` when there is none.
    pub(super) fn to_json(&self) -> Option<Json> {
        let mut text = String::new();
        self.write(&mut text);
        Json::parse(&text).ok()
    }

    /// No deeper than the parser went.
    fn write(&self, to: &mut String) {
        match self {
            Self::None => to.push_str("null"),
            Self::Bool(value) => to.push_str(if *value { "true" } else { "false" }),
            Self::Number(text) if Json::parse(text).is_ok() => to.push_str(text),
            Self::Number(text) | Self::Text(text) => to.push_str(Json::string(text).get()),
            Self::List(items) => {
                to.push('[');
                for (index, item) in items.iter().enumerate() {
                    if index > 0 {
                        to.push(',');
                    }
                    item.write(to);
                }
                to.push(']');
            }
            Self::Map(fields) => {
                let fields = fields.iter().map(|(key, value)| (key.key(), value));
                write_fields(fields, to);
            }
            Self::Object(_, fields) => {
                let fields = fields.iter().map(|(key, value)| (key.clone(), value));
                write_fields(fields, to);
            }
        }
    }

    /// A key. Those that are no texts are as they would print.
    fn key(&self) -> String {
        match self {
            Self::Text(text) | Self::Number(text) => text.clone(),
            other => {
                let mut text = String::new();
                other.write(&mut text);
                text
            }
        }
    }
}

fn write_fields<'a>(fields: impl Iterator<Item = (String, &'a Value)>, to: &mut String) {
    to.push('{');
    for (index, (key, value)) in fields.enumerate() {
        if index > 0 {
            to.push(',');
        }
        to.push_str(Json::string(&key).get());
        to.push(':');
        value.write(to);
    }
    to.push('}');
}

struct Parser<'a> {
    text: &'a str,
    at: usize,
    depth: usize,
}

impl<'a> Parser<'a> {
    fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    fn skip_space(&mut self) {
        let rest = self.rest();
        self.at += rest.len() - rest.trim_start().len();
    }

    fn peek(&mut self, wanted: char) -> bool {
        self.skip_space();
        self.rest().starts_with(wanted)
    }

    fn eat(&mut self, wanted: char) -> bool {
        let there = self.peek(wanted);
        self.at += if there { wanted.len_utf8() } else { 0 };
        there
    }

    fn value(&mut self) -> Option<Value> {
        if self.depth >= DEPTH {
            return None;
        }
        self.depth += 1;
        self.skip_space();
        let value = match self.rest().chars().next()? {
            '\'' | '"' => self.string(false).map(Value::Text),
            '[' => self.items('[', ']').map(Value::List),
            '(' => self.items('(', ')').map(Value::List),
            '{' => self.map(),
            '-' | '+' | '0'..='9' | '.' => Some(Value::Number(self.word("+-.").to_owned())),
            c if c.is_alphabetic() || c == '_' || c == '<' => self.named(),
            _ => None,
        };
        self.depth -= 1;
        value
    }

    /// Letters, digits and `more`.
    fn word(&mut self, more: &str) -> &'a str {
        let rest = self.rest();
        let fits = |c: char| c.is_alphanumeric() || c == '_' || more.contains(c);
        let end = rest.find(|c| !fits(c)).unwrap_or(rest.len());
        self.at += end;
        &rest[..end]
    }

    fn items(&mut self, open: char, close: char) -> Option<Vec<Value>> {
        self.eat(open);
        let mut items = Vec::new();
        while !self.eat(close) {
            items.push(self.value()?);
            if !self.eat(',') && !self.peek(close) {
                return None;
            }
        }
        Some(items)
    }

    fn map(&mut self) -> Option<Value> {
        self.eat('{');
        let mut fields = Vec::new();
        while !self.eat('}') {
            let key = self.value()?;
            if !self.eat(':') {
                return None;
            }
            fields.push((key, self.value()?));
            if !self.eat(',') && !self.peek('}') {
                return None;
            }
        }
        Some(Value::Map(fields))
    }

    /// `None`, `True`, `False`, `b'bytes'`, or a class with its fields.
    fn named(&mut self) -> Option<Value> {
        let name = self.word(".");
        match name {
            "None" => return Some(Value::None),
            "True" | "False" => return Some(Value::Bool(name == "True")),
            "b" | "r" | "u" if self.rest().starts_with(['\'', '"']) => {
                return self.string(name == "r").map(Value::Text);
            }
            "nan" | "inf" => return Some(Value::Text(name.to_owned())),
            "" => return None,
            _ => {}
        }
        if !self.eat('(') {
            return None;
        }
        let mut fields = Vec::new();
        while !self.eat(')') {
            self.skip_space();
            let before = self.at;
            let key = self.word("").to_owned();
            if key.is_empty() || !self.eat('=') {
                // A field without a name.
                self.at = before;
                fields.push((fields.len().to_string(), self.value()?));
            } else {
                fields.push((key, self.value()?));
            }
            if !self.eat(',') && !self.peek(')') {
                return None;
            }
        }
        Some(Value::Object(name.to_owned(), fields))
    }

    /// A string in either kind of quotes.
    fn string(&mut self, raw: bool) -> Option<String> {
        let mut chars = self.rest().char_indices();
        let (_, quote) = chars.next()?;
        let mut text = String::new();
        while let Some((at, c)) = chars.next() {
            if c == quote {
                self.at += at + 1;
                return Some(text);
            }
            if c != '\\' || raw {
                text.push(c);
                continue;
            }
            let (_, escape) = chars.next()?;
            match escape {
                'n' => text.push('\n'),
                'r' => text.push('\r'),
                't' => text.push('\t'),
                '0' => text.push('\0'),
                'x' | 'u' | 'U' => {
                    let digits = match escape {
                        'x' => 2,
                        'u' => 4,
                        _ => 8,
                    };
                    let code = (0..digits).try_fold(0u32, |code, _| {
                        let (_, digit) = chars.next()?;
                        Some((code << 4) | digit.to_digit(16)?)
                    })?;
                    text.push(char::from_u32(code).unwrap_or('\u{fffd}'));
                }
                '\n' => {}
                '\\' | '\'' | '"' => text.push(escape),
                other => {
                    text.push('\\');
                    text.push(other);
                }
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn blocks_read_back() {
        let text = r#"[TextBlock(text='It\'s \u00e9 \\ done\n'), ToolUseBlock(id='t1', name="Read", input={'file': '/code/a', 'n': -1.5, 'all': True, 'x': None, 'of': ['a', ()]})]"#;
        let blocks = list(text).unwrap();
        let Value::Object(class, fields) = &blocks[0] else {
            panic!("{blocks:?}");
        };
        assert_eq!(class, "TextBlock");
        assert_eq!(fields[0].1, Value::Text("It's é \\ done\n".to_owned()));
        let Value::Object(_, fields) = &blocks[1] else {
            panic!("{blocks:?}");
        };
        assert_eq!(
            fields[2].1.to_json().unwrap().get(),
            r#"{"file":"/code/a","n":-1.5,"all":true,"x":null,"of":["a",[]]}"#
        );
    }

    #[test]
    fn what_is_cut_off_gives_what_is_whole() {
        let text = "[TextBlock(text='one'), TextBlock(text='tw";
        assert_eq!(list(text).unwrap().len(), 1);
        assert_eq!(list("[TextBlock(text='on"), None);
        assert_eq!(list("plain text"), None);
        assert_eq!(list("[]"), Some(Vec::new()));
        let deep = "[".repeat(10_000);
        assert_eq!(list(&deep), None);
    }

    proptest! {
        #[test]
        fn anything_is_read_without_harm(text in "[\\[\\](){}'\"\\\\,:=a-cNx0-9é ]{0,60}") {
            for value in list(&text).unwrap_or_default() {
                value.to_json();
            }
        }
    }
}
