//! Cutting a template into texts and the words of its actions.

use super::Fault;

/// A word of an action, or the text between two.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Word {
    /// Text outside of actions, trimmed as its neighbours ask.
    Text(String),
    /// `{{`
    Open,
    /// `}}`
    Close,
    /// A name: a function, a control word, or the beginning of a path without a dot.
    Name(String),
    /// `.name`
    Field(String),
    /// `.` alone.
    Dot,
    /// `$name` or `$`.
    Variable(String),
    /// A text in quotes.
    Str(String),
    /// A whole number.
    Int(i64),
    /// A number with a fraction.
    Float(f64),
    /// `|`
    Pipe,
    /// `(`
    OpenParen,
    /// `)`
    CloseParen,
    /// `:=`
    Declare,
    /// `=`
    Assign,
    /// `,`
    Comma,
}

/// A word with its place.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Token {
    pub(super) word: Word,
    /// Where it begins, in bytes.
    pub(super) at: usize,
    /// Where it ends.
    pub(super) end: usize,
    /// Whether no space comes before it.
    pub(super) glued: bool,
}

pub(super) fn lex(source: &str) -> Result<Vec<Token>, Fault> {
    let mut lexer = Lexer {
        source,
        at: 0,
        tokens: Vec::new(),
    };
    let mut trim_next = false;
    while lexer.at < source.len() {
        let begins = lexer.at;
        let rest = &source[begins..];
        let open = rest.find("{{");
        let mut text = &rest[..open.unwrap_or(rest.len())];
        if trim_next {
            text = text.trim_start();
        }
        let Some(open) = open else {
            lexer.text(begins, text);
            break;
        };
        let action = begins + open;
        lexer.at = action + 2;
        if lexer.trims() {
            text = text.trim_end();
            lexer.at += 1;
        }
        lexer.text(begins, text);
        trim_next = lexer.action(action)?;
    }
    Ok(lexer.tokens)
}

struct Lexer<'s> {
    source: &'s str,
    at: usize,
    tokens: Vec<Token>,
}

impl Lexer<'_> {
    fn rest(&self) -> &str {
        &self.source[self.at..]
    }

    /// Whether a `-` follows that removes the white space before the action.
    fn trims(&self) -> bool {
        let mut next = self.rest().chars();
        next.next() == Some('-') && next.next().is_some_and(char::is_whitespace)
    }

    fn text(&mut self, at: usize, text: &str) {
        if !text.is_empty() {
            self.push(Word::Text(text.to_owned()), at, at + text.len(), true);
        }
    }

    fn push(&mut self, word: Word, at: usize, end: usize, glued: bool) {
        self.tokens.push(Token {
            word,
            at,
            end,
            glued,
        });
    }

    /// Reads an action to its end; whether the white space after it is removed.
    fn action(&mut self, action: usize) -> Result<bool, Fault> {
        let unclosed = || Fault::new(action, "this {{ has no }}");
        let skipped = self.rest().len() - self.rest().trim_start().len();
        if self.rest().trim_start().starts_with("/*") {
            self.at += skipped + 2;
            let end = self.rest().find("*/").ok_or_else(unclosed)?;
            self.at += end + 2;
            let trims = self.rest().starts_with(|c: char| c.is_whitespace())
                && self.rest().trim_start().starts_with("-}}");
            let spaces = self.rest().len() - self.rest().trim_start().len();
            self.at += spaces + usize::from(trims);
            if !self.rest().starts_with("}}") {
                return Err(Fault::new(action, "a comment ends with */}}"));
            }
            self.at += 2;
            return Ok(trims);
        }
        self.push(Word::Open, action, self.at, true);
        loop {
            let spaces = self.rest().len() - self.rest().trim_start().len();
            self.at += spaces;
            let glued = spaces == 0;
            if self.rest().is_empty() || self.rest().starts_with("{{") {
                return Err(unclosed());
            }
            if !glued && self.rest().starts_with("-}}") {
                self.push(Word::Close, self.at, self.at + 3, false);
                self.at += 3;
                return Ok(true);
            }
            if self.rest().starts_with("}}") {
                self.push(Word::Close, self.at, self.at + 2, glued);
                self.at += 2;
                return Ok(false);
            }
            let at = self.at;
            let (word, length) = self.word()?;
            self.at += length;
            self.push(word, at, self.at, glued);
        }
    }

    /// The next word and how many bytes long it is.
    fn word(&self) -> Result<(Word, usize), Fault> {
        let rest = self.rest();
        let first = rest.chars().next().unwrap_or(' ');
        let second = rest[first.len_utf8()..].chars().next();
        Ok(match first {
            '|' => (Word::Pipe, 1),
            '(' => (Word::OpenParen, 1),
            ')' => (Word::CloseParen, 1),
            ',' => (Word::Comma, 1),
            ':' if second == Some('=') => (Word::Declare, 2),
            '=' => (Word::Assign, 1),
            '"' => self.quoted()?,
            '`' => match rest[1..].find('`') {
                Some(end) => (Word::Str(rest[1..=end].to_owned()), end + 2),
                None => return Err(Fault::new(self.at, "this ` is not closed")),
            },
            '\'' => self.character()?,
            '$' => {
                let name = name(&rest[1..]);
                (Word::Variable(name.to_owned()), 1 + name.len())
            }
            '.' if second.is_some_and(begins_name) => {
                let name = name(&rest[1..]);
                (Word::Field(name.to_owned()), 1 + name.len())
            }
            '.' if !second.is_some_and(|c| c.is_ascii_digit()) => (Word::Dot, 1),
            '+' | '-' | '.' | '0'..='9' => self.number()?,
            _ if begins_name(first) => {
                let name = name(rest);
                (Word::Name(name.to_owned()), name.len())
            }
            _ => {
                return Err(Fault::new(
                    self.at,
                    format!("{first:?} does not belong here"),
                ));
            }
        })
    }

    fn quoted(&self) -> Result<(Word, usize), Fault> {
        let rest = self.rest();
        let mut escaped = false;
        for (at, c) in rest.char_indices().skip(1) {
            match c {
                _ if escaped => escaped = false,
                '\\' => escaped = true,
                '\n' => break,
                '"' => return Ok((Word::Str(self.unescaped(&rest[1..at])?), at + 1)),
                _ => {}
            }
        }
        Err(Fault::new(self.at, "this \" is not closed"))
    }

    fn character(&self) -> Result<(Word, usize), Fault> {
        let rest = self.rest();
        let wrong = || {
            Fault::new(
                self.at,
                "one character belongs between '…'; texts are written \"…\"",
            )
        };
        let from = if rest.starts_with("'\\'") { 3 } else { 1 };
        let end = from + rest[from..].find('\'').ok_or_else(wrong)?;
        let text = self.unescaped(&rest[1..end])?;
        let mut chars = text.chars();
        match (chars.next(), chars.next()) {
            (Some(c), None) => Ok((Word::Int(i64::from(u32::from(c))), end + 1)),
            _ => Err(wrong()),
        }
    }

    fn unescaped(&self, text: &str) -> Result<String, Fault> {
        let mut out = String::with_capacity(text.len());
        let mut chars = text.chars();
        while let Some(c) = chars.next() {
            if c != '\\' {
                out.push(c);
                continue;
            }
            let escape = chars.next().unwrap_or('\\');
            let hex = |chars: &mut std::str::Chars<'_>, digits: usize| {
                let code: String = chars.take(digits).collect();
                (code.len() == digits)
                    .then(|| u32::from_str_radix(&code, 16).ok())
                    .flatten()
                    .and_then(char::from_u32)
            };
            let c = match escape {
                'n' => Some('\n'),
                't' => Some('\t'),
                'r' => Some('\r'),
                'a' => Some('\u{7}'),
                'b' => Some('\u{8}'),
                'f' => Some('\u{c}'),
                'v' => Some('\u{b}'),
                '\\' | '"' | '\'' => Some(escape),
                'x' => hex(&mut chars, 2),
                'u' => hex(&mut chars, 4),
                'U' => hex(&mut chars, 8),
                _ => None,
            };
            out.push(c.ok_or_else(|| {
                Fault::new(
                    self.at,
                    format!("\\{escape} is not an escape that texts have"),
                )
            })?);
        }
        Ok(out)
    }

    fn number(&self) -> Result<(Word, usize), Fault> {
        let rest = self.rest();
        let body = rest.strip_prefix(['+', '-']).unwrap_or(rest);
        let length = body
            .char_indices()
            .scan(' ', |before, (at, c)| {
                let signed = matches!(c, '+' | '-') && matches!(before, 'e' | 'E');
                let goes_on = c.is_ascii_alphanumeric() || matches!(c, '.' | '_') || signed;
                *before = c;
                goes_on.then_some(at + c.len_utf8())
            })
            .last()
            .unwrap_or(0)
            + (rest.len() - body.len());
        let text = &rest[..length];
        let wrong = || Fault::new(self.at, format!("{text} is not a number"));
        let digits = text.replace('_', "");
        let unsigned = digits.trim_start_matches(['+', '-']);
        let sign = if digits.starts_with('-') { -1 } else { 1 };
        for (prefix, base) in [("0x", 16), ("0o", 8), ("0b", 2)] {
            if let Some(number) = unsigned.to_ascii_lowercase().strip_prefix(prefix) {
                let number = i64::from_str_radix(number, base).map_err(|_| wrong())?;
                return Ok((Word::Int(sign * number), length));
            }
        }
        if let Ok(number) = digits.parse::<i64>() {
            return Ok((Word::Int(number), length));
        }
        match digits.parse::<f64>() {
            Ok(number)
                if number.is_finite()
                    && unsigned
                        .starts_with(['.', '0', '1', '2', '3', '4', '5', '6', '7', '8', '9']) =>
            {
                Ok((Word::Float(number), length))
            }
            _ => Err(wrong()),
        }
    }
}

fn begins_name(c: char) -> bool {
    c.is_alphabetic() || c == '_'
}

/// The name that a text begins with. Unlike in Go, a `-` between two letters is part of it, since names of steps and
/// inputs may have one.
fn name(text: &str) -> &str {
    let mut end = 0;
    for (at, c) in text.char_indices() {
        let after = text[at + c.len_utf8()..].chars().next();
        let inner_dash =
            c == '-' && at > 0 && after.is_some_and(|c| c.is_alphanumeric() || c == '_');
        if !(c.is_alphanumeric() || c == '_' || inner_dash) {
            break;
        }
        end = at + c.len_utf8();
    }
    &text[..end]
}
