//! Reads what is given to a name: `NAME=value`, `"name": "value"`, `--name value`, `<name>value</name>`.
//!
//! One reader for all rules that go by names. It looks at each name once, reads forward from it and never far.

use std::ops::Range;

/// The longest name, to either side of the word in it.
const NAME: usize = 80;
/// The longest value.
pub(super) const VALUE: usize = 4096;

/// Something that is given to a name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Assignment {
    /// The name, as it is written.
    pub(super) name: Range<usize>,
    /// The value, without quotes.
    pub(super) value: Range<usize>,
    /// How it is written.
    pub(super) style: Style,
}

/// How a value is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Style {
    /// In quotes.
    Quoted,
    /// As a line of a file of settings, or as a variable of a shell: `NAME=value`.
    Env,
    /// As a word of a command behind a flag, or as the rest of a line of settings: its extent leaves no doubt.
    Line,
    /// Anything else, up to where a value can end.
    Bare,
    /// The whole of a text, whose name is known from outside.
    Whole,
}

fn is_name(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.')
}

/// Reads names and values one behind the other, none of it twice.
#[derive(Debug, Default)]
pub(super) struct Reader {
    /// Values without quotes that end at the same place, and how they were read.
    bare: Option<(Range<usize>, Style)>,
}

impl Reader {
    /// The name that a place is in, and whether it can be one: what goes on for too long cannot.
    pub(super) fn name_at(text: &[u8], at: usize, floor: usize) -> (Range<usize>, bool) {
        let low = at.saturating_sub(NAME).max(floor);
        let before = text[low..at]
            .iter()
            .rev()
            .take_while(|byte| is_name(**byte))
            .count();
        let behind = text[at..].iter().take_while(|byte| is_name(**byte)).count();
        // What a placeholder is called is no name.
        let label = text[..at - before].ends_with(b"[REDACTED:");
        let cut = label || before > 0 && before == at - low && low > floor;
        let (mut begin, mut end) = (at - before, at + behind);
        if cut || behind > NAME {
            return (begin..end, false);
        }
        // Of `\nNAME` the letter belongs to the escape.
        if begin < at
            && begin > 0
            && text[begin - 1] == b'\\'
            && matches!(text[begin], b'n' | b'r' | b't')
        {
            begin += 1;
        }
        // `token->x`, `token.` at the end of a sentence.
        while end > at && matches!(text[end - 1], b'-' | b'.') {
            end -= 1;
        }
        (begin..end, true)
    }

    /// Reads on behind a name. `None` when nothing is given to it.
    pub(super) fn read(&mut self, text: &[u8], name: Range<usize>) -> Option<Assignment> {
        let mut cursor = Cursor { text, at: name.end };
        let flag = text[name.clone()].starts_with(b"--");
        let open = before_name(text, name.start);
        let ticked = text.get(name.end) == Some(&b'`');
        let closed = cursor.close_name();
        cursor.takes(b"**");
        let at_name_end = cursor.at;
        cursor.blanks();
        let spaced = cursor.at > at_name_end;
        // Between backticks are names of files, one behind the other.
        let operator = cursor
            .operator(closed && !ticked)
            .or_else(|| cursor.written_about(ticked));
        cursor.takes(b"**");
        if operator.is_none() && !(spaced && spoken(text, &name, flag, cursor.at)) {
            return None;
        }
        let tight = !spaced && cursor.at < text.len() && !matches!(text[cursor.at], b' ' | b'\t');
        cursor.blanks();
        cursor.annotation(operator);
        let scheme = cursor.scheme();
        let begin = cursor.at;
        if let Some(value) = cursor.quoted() {
            return Some(Assignment {
                name,
                value,
                style: Style::Quoted,
            });
        }
        // A list of names and values has both in quotes.
        if matches!(operator, Some(Operator::Comma)) {
            return None;
        }
        cursor.at = begin;
        let env = operator == Some(Operator::Equals)
            && tight
            && !scheme
            && open
            && text[name.clone()]
                .iter()
                .all(|byte| !byte.is_ascii_lowercase());
        let style = match () {
            () if env => Style::Env,
            () if flag => Style::Line,
            () => Style::Bare,
        };
        if style == Style::Bare && !closed && begins_line(text, name.start) {
            // To the end of the line, or as far as a value goes in code.
            let value = self.bare(text, cursor.at, Style::Line)?;
            if ends_line(text, value.end) {
                let style = Style::Line;
                return Some(Assignment { name, value, style });
            }
        }
        let value = self.bare(text, cursor.at, style)?;
        Some(Assignment { name, value, style })
    }

    /// What stands there without quotes.
    fn bare(&mut self, text: &[u8], at: usize, style: Style) -> Option<Range<usize>> {
        let quoted = |byte: &u8| matches!(byte, b'"' | b'\'' | b'`');
        let begin = at + usize::from(text.get(at).is_some_and(quoted));
        // A reference of C or Rust, an anchor of YAML.
        if style != Style::Env && text.get(begin) == Some(&b'&') {
            return None;
        }
        let known = self
            .bare
            .as_ref()
            .filter(|(span, kind)| *kind == style && span.contains(&begin));
        let end = known.map_or_else(
            || {
                (begin..text.len())
                    .find(|at| ends(text, *at, style))
                    .unwrap_or(text.len())
            },
            |(span, _)| span.end,
        );
        self.bare = Some((begin..end, style));
        (1..=VALUE).contains(&(end - begin)).then_some(begin..end)
    }
}

/// Whether a value without quotes ends at a place.
fn ends(text: &[u8], at: usize, style: Style) -> bool {
    let next = text.get(at + 1).copied().unwrap_or(b' ');
    match text[at] {
        0..=b' ' | b';' | b'"' | b'\'' | b'`' | b'\\' | 0x7f => true,
        _ if style == Style::Env => false,
        b'<' | b'>' => true,
        // A bracket or a comma within a word of a command is part of it; at its end it belongs to what is around.
        b',' => style != Style::Line || !next.is_ascii_alphanumeric() || is_given(&text[at + 1..]),
        b')' | b']' | b'}' => style != Style::Line || !next.is_ascii_alphanumeric(),
        b'&' => {
            style == Style::Bare
                || !next.is_ascii_graphic()
                || b"&\"'`;)<>".contains(&next)
                || is_given(&text[at + 1..])
        }
        _ => false,
    }
}

/// Where the word ends that a place is in, without what a sentence puts behind it.
pub(super) fn word_end(text: &[u8], from: usize) -> usize {
    let most = text.len().min(from.saturating_add(VALUE));
    let mut end = from;
    while end < most && text[end].is_ascii() && text[end] != b'[' && !ends(text, end, Style::Line) {
        end += 1;
    }
    while end > from && matches!(text[end - 1], b'.' | b',' | b':' | b'!' | b'?') {
        end -= 1;
    }
    end
}

/// Whether a name and what gives it something begin here, or the rest of a character of HTML: `user=`, `amp;`.
fn is_given(text: &[u8]) -> bool {
    let name = text.iter().take(NAME).take_while(|byte| is_name(**byte));
    let length = name.count();
    let plain = text[..length].iter().all(|byte| !byte.is_ascii_digit());
    match text.get(length) {
        Some(b'=' | b'[') => length > 0,
        Some(b':') => length > 0 && plain,
        Some(b';') => (2..=6).contains(&length),
        Some(b'#') => length == 0 && text.get(1).is_some_and(u8::is_ascii_digit),
        _ => false,
    }
}

/// Whether only blanks, the sign of a list or of a change, or `export` are before the name on its line.
fn begins_line(text: &[u8], begin: usize) -> bool {
    let low = begin.saturating_sub(40);
    let before = &text[low..begin];
    let (line, begun) = match memchr::memrchr(b'\n', before) {
        Some(at) => (&before[at + 1..], true),
        None => (before, low == 0),
    };
    let line = line.trim_ascii();
    let escaped = before.ends_with(b"\\n") || before.ends_with(b"\\r");
    escaped || begun && matches!(line, b"" | b"-" | b"+" | b"export" | b"set")
}

/// Whether nothing but a comment is behind a value on its line.
fn ends_line(text: &[u8], end: usize) -> bool {
    let behind = &text[end..];
    let blanks = behind
        .iter()
        .take(24)
        .take_while(|byte| matches!(byte, b' ' | b'\t'));
    let blanks = blanks.count();
    match behind.get(blanks) {
        None | Some(b'\n' | b'\r') => true,
        Some(b'\\') => matches!(behind.get(blanks + 1), Some(b'n' | b'r')),
        Some(b'#') => blanks > 0,
        _ => false,
    }
}

/// Whether a line, a command or a quote begins before the name.
fn before_name(text: &[u8], begin: usize) -> bool {
    let Some(before) = begin.checked_sub(1).map(|at| text[at]) else {
        return true;
    };
    matches!(
        before,
        b' ' | b'\t' | b'\n' | b'\r' | b'"' | b'\'' | b'`' | b';' | b'+' | b'-'
    ) || (begin >= 2 && matches!(before, b'n' | b'r' | b't') && text[begin - 2] == b'\\')
}

/// Names to which a value is given by a mere blank: a flag of a command, a line of a `.netrc`, a statement of SQL.
fn spoken(text: &[u8], name: &Range<usize>, flag: bool, at: usize) -> bool {
    let word = &text[name.clone()];
    let next = text.get(at).copied().unwrap_or(b' ');
    if flag {
        return next != b'-';
    }
    let password = word.eq_ignore_ascii_case(b"password");
    if !password && !word.eq_ignore_ascii_case(b"account") {
        return false;
    }
    if password && next == b'\'' {
        return true;
    }
    let line = &text[name.start.saturating_sub(120)..name.start];
    let line = line
        .rsplit(|byte| *byte == b'\n')
        .next()
        .unwrap_or_default();
    let has = |word: &[u8]| memchr::memmem::find(line, word).is_some();
    next != b'\n' && (has(b"machine ") || has(b"login "))
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Operator {
    Equals,
    Colon,
    Comma,
    Tag,
}

struct Cursor<'a> {
    text: &'a [u8],
    at: usize,
}

impl Cursor<'_> {
    fn peek(&self) -> u8 {
        self.text.get(self.at).copied().unwrap_or(0)
    }

    fn takes(&mut self, word: &[u8]) -> bool {
        let takes = self.text[self.at..].starts_with(word);
        if takes {
            self.at += word.len();
        }
        takes
    }

    fn blanks(&mut self) {
        let blanks = self.text[self.at..].iter().take(24);
        self.at += blanks
            .take_while(|byte| matches!(byte, b' ' | b'\t'))
            .count();
    }

    /// The quote or bracket that ends a name. Says whether there was a quote.
    fn close_name(&mut self) -> bool {
        let from = self.at;
        while self.peek() == b'\\' && self.at - from < 4 {
            self.at += 1;
        }
        let quote = matches!(self.peek(), b'"' | b'\'' | b'`');
        if quote {
            self.at += 1;
        } else {
            self.at = from;
        }
        if self.peek() == b']' {
            self.at += 1;
        }
        quote
    }

    fn operator(&mut self, closed: bool) -> Option<Operator> {
        // Most names stand in sentences, and nothing is given to them.
        if !matches!(
            self.peek(),
            b'=' | b'!' | b':' | b'?' | b'+' | b'|' | b',' | b'>' | b'v'
        ) {
            return None;
        }
        for word in [
            &b"==="[..],
            b"!==",
            b"==",
            b"!=",
            b"=>",
            b":=",
            b"::=",
            b"?=",
            b"+=",
            b"||=",
        ] {
            if self.takes(word) {
                return Some(Operator::Equals);
            }
        }
        if self.text[self.at..].starts_with(b"::") {
            return None;
        }
        match self.peek() {
            b'=' => Some(self.step(Operator::Equals)),
            b':' => Some(self.step(Operator::Colon)),
            b',' if closed => Some(self.step(Operator::Comma)),
            b'>' if !closed => Some(self.step(Operator::Tag)),
            b'v' if closed && (self.takes(b"value=") || self.takes(b"value:")) => {
                Some(Operator::Equals)
            }
            _ => None,
        }
    }

    /// In a table or a sentence: ``| `NAME` | `value` |``, ``set `NAME` to `value` ``. Both stand in quotes.
    fn written_about(&mut self, ticked: bool) -> Option<Operator> {
        if !ticked {
            return None;
        }
        let goes_on = [&b"| "[..], b"to ", b"is "]
            .iter()
            .any(|word| self.takes(word));
        goes_on.then_some(Operator::Comma)
    }

    fn step(&mut self, operator: Operator) -> Operator {
        self.at += 1;
        operator
    }

    /// Goes over the type that stands between a name and its value: `key: &str = "…"`.
    fn annotation(&mut self, operator: Option<Operator>) {
        if operator != Some(Operator::Colon) {
            return;
        }
        let rest = &self.text[self.at..self.text.len().min(self.at + 48)];
        let typed = |byte: &u8| byte.is_ascii_alphanumeric() || b"&'_<>[]|.? ".contains(byte);
        let length = rest.iter().take_while(|byte| typed(byte)).count();
        let kind = &rest[..length];
        let behind = rest.get(length + 1).copied().unwrap_or(0);
        let given = kind.ends_with(b" ") || matches!(behind, b'"' | b'\'');
        if given
            && rest.get(length) == Some(&b'=')
            && kind
                .first()
                .is_some_and(|byte| byte.is_ascii_alphabetic() || *byte == b'&')
        {
            self.at += length + 1;
            self.blanks();
        }
    }

    /// Goes over the word that says what kind of credentials follow, within quotes as without.
    fn scheme(&mut self) -> bool {
        for word in [
            &b"Bearer "[..],
            b"bearer ",
            b"Basic ",
            b"basic ",
            b"Token ",
            b"token ",
            b"ApiKey ",
        ] {
            if self.takes(word) {
                return true;
            }
        }
        false
    }

    /// What is within quotes, if there are any here.
    fn quoted(&mut self) -> Option<Range<usize>> {
        let from = self.at;
        // Prefixes of strings in Python, Rust, C#.
        if matches!(self.peek(), b'b' | b'r' | b'u' | b'f' | b'@') {
            self.at += 1;
        }
        let escapes = self.text[self.at..]
            .iter()
            .take(8)
            .take_while(|byte| **byte == b'\\')
            .count();
        self.at += escapes;
        let quote = self.peek();
        if !matches!(quote, b'"' | b'\'' | b'`') {
            self.at = from;
            return None;
        }
        self.at += 1;
        self.scheme();
        let begin = self.at;
        let rest = &self.text[begin..self.text.len().min(begin + VALUE)];
        let mut at = 0;
        while at < rest.len() {
            match rest[at] {
                b'\n' => break,
                b'\\' if escapes == 0 => at += 1,
                byte if byte == quote => {
                    let end = begin + at - escapes.min(at);
                    return (end > begin).then_some(begin..end);
                }
                _ => {}
            }
            at += 1;
        }
        self.at = begin;
        None
    }
}

/// A name in lower case, without what joins its words.
pub(super) fn joined(name: &[u8], into: &mut Vec<u8>) {
    into.clear();
    let letters = name.iter().filter(|byte| byte.is_ascii_alphanumeric());
    into.extend(letters.map(u8::to_ascii_lowercase));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(text: &str, word: &str) -> Option<(String, Style)> {
        let at = text.find(word).unwrap();
        let mut reader = Reader::default();
        let (name, whole) = Reader::name_at(text.as_bytes(), at, 0);
        let found = reader.read(text.as_bytes(), name).filter(|_| whole)?;
        Some((text[found.value].to_owned(), found.style))
    }

    #[test]
    fn values_are_read_however_they_are_given() {
        let cases = [
            ("DB_PASSWORD=abc,d", "PASSWORD", "abc,d", Style::Env),
            ("export PASSWORD='a b'", "PASSWORD", "a b", Style::Quoted),
            (r#"{"api_key": "v1"}"#, "api_key", "v1", Style::Quoted),
            (r#"{\"api_key\": \"v1\"}"#, "api_key", "v1", Style::Quoted),
            ("password: v1, x", "password", "v1", Style::Bare),
            ("password := `v1`", "password", "v1", Style::Quoted),
            ("--password v1 --x", "password", "v1", Style::Line),
            ("--password=v1", "password", "v1", Style::Line),
            ("--password a&3,b$c --x", "password", "a&3,b$c", Style::Line),
            ("(--password v1)", "password", "v1", Style::Line),
            ("--password v1&& x", "password", "v1", Style::Line),
            ("db.password=a,b&3\nx=1", "password", "a,b&3", Style::Line),
            ("  password: a&3 # x\n", "password", "a&3", Style::Line),
            ("password: v1,", "password", "v1", Style::Bare),
            ("f(password=v1, x)", "password", "v1", Style::Bare),
            ("?password=a&b3&user=x", "password", "a", Style::Bare),
            ("?password=v1&amp;user=x", "password", "v1", Style::Bare),
            ("<password>v1</password>", "password", "v1", Style::Bare),
            (
                "<add key=\"password\" value=\"v1\"/>",
                "password",
                "v1",
                Style::Quoted,
            ),
            ("X-Api-Key: v1", "Api", "v1", Style::Line),
            ("Authorization: Bearer v1", "Auth", "v1", Style::Line),
            ("-H \"Authorization: Bearer v1\"", "Auth", "v1", Style::Bare),
            ("'token': 'Bearer v1'", "token", "v1", Style::Quoted),
            ("api_key: str = \"v1\"", "api_key", "v1", Style::Quoted),
            ("const TOKEN: &str = \"v1\";", "TOKEN", "v1", Style::Quoted),
            ("os.environ['TOKEN'] = 'v1'", "TOKEN", "v1", Style::Quoted),
            ("setenv(\"TOKEN\", \"v1\")", "TOKEN", "v1", Style::Quoted),
            (
                "machine x login y password v1\n",
                "password",
                "v1",
                Style::Bare,
            ),
            (
                "ALTER USER x PASSWORD 'v1'",
                "PASSWORD",
                "v1",
                Style::Quoted,
            ),
            ("x\\nTOKEN=v1\\ny", "TOKEN", "v1", Style::Env),
            ("?token=v1&x=2", "token", "v1", Style::Bare),
        ];
        for (text, word, expected, style) in cases {
            assert_eq!(
                value(text, word),
                Some((expected.to_owned(), style)),
                "{text}"
            );
        }
        for text in [
            "the password is x",
            "password",
            "password(x)",
            "token::new()",
            "password ",
        ] {
            assert_eq!(value(text, &text[..5]), None, "{text}");
        }
    }

    #[test]
    fn names_are_whole_and_not_endless() {
        assert_eq!(Reader::name_at(b"a.token_x=1", 2, 0), (0..9, true));
        assert_eq!(Reader::name_at(b"\\nTOKEN=1", 2, 0), (2..7, true));
        assert!(!Reader::name_at("a".repeat(400).as_bytes(), 200, 0).1);
    }
}
