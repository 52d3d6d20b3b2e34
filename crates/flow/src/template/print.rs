//! How values read.

use std::fmt::Write as _;

use serde_json::{Number, Value};

/// The widest field and the most digits that a format may ask for.
const MOST_WIDTH: usize = 10_000;

/// How a value reads where an action prints it: as in Go, save that lists and maps are JSON.
pub(super) fn printed(value: &Value) -> String {
    match value {
        Value::Null => "<no value>".to_owned(),
        Value::String(text) => text.clone(),
        Value::Number(number) => number_text(number),
        other => other.to_string(),
    }
}

/// A value as a word of an action; `None` for lists and maps, which have none.
pub(super) fn literal(value: &Value) -> Option<String> {
    match value {
        Value::Null => Some("nil".to_owned()),
        Value::Array(_) | Value::Object(_) => None,
        Value::String(text) => Some(quoted(text)),
        other => Some(printed(other)),
    }
}

/// The kind of a value in words.
pub(super) fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "nil",
        Value::Bool(_) => "a boolean",
        Value::Number(number) if number.is_f64() => "a number with a fraction",
        Value::Number(_) => "a whole number",
        Value::String(_) => "a text",
        Value::Array(_) => "a list",
        Value::Object(_) => "a map",
    }
}

fn number_text(number: &Number) -> String {
    match number.as_f64() {
        Some(float) if number.is_f64() => float_text(float),
        _ => number.to_string(),
    }
}

/// A number with a fraction as Go's `%v` writes it.
fn float_text(float: f64) -> String {
    let scientific = format!("{float:e}");
    let Some((digits, exponent)) = scientific.split_once('e') else {
        return scientific;
    };
    let exponent: i32 = exponent.parse().unwrap_or_default();
    if (-4..21).contains(&exponent) {
        return format!("{float}");
    }
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{digits}e{sign}{:02}", exponent.abs())
}

/// The values one after the other, with a space between two that are both not texts.
pub(super) fn print(values: &[Value]) -> String {
    let mut out = String::new();
    for (at, value) in values.iter().enumerate() {
        if at > 0 && !value.is_string() && !values[at - 1].is_string() {
            out.push(' ');
        }
        out.push_str(&shown(value));
    }
    out
}

/// The values with spaces between them and a line break after them.
pub(super) fn println(values: &[Value]) -> String {
    let mut words: Vec<String> = values.iter().map(shown).collect();
    if let Some(last) = words.last_mut() {
        last.push('\n');
    } else {
        words.push("\n".to_owned());
    }
    words.join(" ")
}

/// As an action prints it, save that nil reads as in Go's `print`.
fn shown(value: &Value) -> String {
    match value {
        Value::Null => "<nil>".to_owned(),
        other => printed(other),
    }
}

/// What stands between `%` and the letter.
#[derive(Default)]
struct Spec {
    /// Any of `-+0 #`.
    flags: String,
    width: Option<usize>,
    precision: Option<usize>,
}

impl Spec {
    fn has(&self, flag: char) -> bool {
        self.flags.contains(flag)
    }
}

pub(super) fn printf(format: &str, values: &[Value]) -> Result<String, String> {
    let mut out = String::new();
    let mut values_left = values.iter();
    let mut chars = format.chars().peekable();
    while let Some(c) = chars.next() {
        if c != '%' {
            out.push(c);
            continue;
        }
        let mut spec = Spec::default();
        while let Some(flag) = chars.next_if(|c| "-+0 #".contains(*c)) {
            spec.flags.push(flag);
        }
        spec.width = digits(&mut chars)?;
        if chars.next_if_eq(&'.').is_some() {
            spec.precision = Some(digits(&mut chars)?.unwrap_or(0));
        }
        let verb = chars
            .next()
            .ok_or_else(|| "the format ends after %".to_owned())?;
        if verb == '%' {
            out.push('%');
            continue;
        }
        let value = values_left
            .next()
            .ok_or_else(|| format!("there is no value for %{verb}"))?;
        one(&mut out, &spec, verb, value)?;
    }
    match values_left.count() {
        0 => Ok(out),
        left => Err(format!("{left} values more than the format has places")),
    }
}

fn digits(chars: &mut std::iter::Peekable<std::str::Chars<'_>>) -> Result<Option<usize>, String> {
    let mut number = None;
    while let Some(digit) = chars.next_if(char::is_ascii_digit) {
        let digit = digit.to_digit(10).unwrap_or_default() as usize;
        let next = number.unwrap_or(0) * 10 + digit;
        if next > MOST_WIDTH {
            return Err(format!("a width of more than {MOST_WIDTH} is not possible"));
        }
        number = Some(next);
    }
    Ok(number)
}

fn one(out: &mut String, spec: &Spec, verb: char, value: &Value) -> Result<(), String> {
    let unfit = || format!("%{verb} does not take {}", kind(value));
    let cut = |text: String| match spec.precision {
        Some(most) => text.chars().take(most).collect(),
        None => text,
    };
    let integer = || value.as_i64().ok_or_else(unfit);
    let float = || value.as_f64().ok_or_else(unfit);
    let based = |number: i64, digits: String, prefix: &str| {
        let prefix = if spec.has('#') { prefix } else { "" };
        let sign = if number < 0 { "-" } else { "" };
        signed(spec, &format!("{sign}{prefix}{digits}"))
    };
    let (text, numeric) = match verb {
        'v' if value.is_number() => (signed(spec, &shown(value)), true),
        'v' => (shown(value), false),
        's' => (cut(shown(value)), false),
        'q' => match value {
            Value::String(text) => (quoted(&cut(text.clone())), false),
            _ => return Err(unfit()),
        },
        't' => match value {
            Value::Bool(yes) => (yes.to_string(), false),
            _ => return Err(unfit()),
        },
        'd' => (signed(spec, &integer()?.to_string()), true),
        'b' => {
            let n = integer()?;
            (based(n, format!("{:b}", n.unsigned_abs()), "0b"), true)
        }
        'o' => {
            let n = integer()?;
            (based(n, format!("{:o}", n.unsigned_abs()), "0"), true)
        }
        'x' | 'X' => {
            let (digits, number) = if let Value::String(text) = value {
                (hex(text), 0)
            } else {
                let n = integer()?;
                (format!("{:x}", n.unsigned_abs()), n)
            };
            let text = based(number, digits, "0x");
            let text = if verb == 'X' {
                text.to_uppercase()
            } else {
                text
            };
            (text, value.is_number())
        }
        'c' => {
            let code = u32::try_from(integer()?).ok().and_then(char::from_u32);
            (code.ok_or_else(unfit)?.to_string(), false)
        }
        'f' | 'F' => {
            let precision = spec.precision.unwrap_or(6);
            (signed(spec, &format!("{:.precision$}", float()?)), true)
        }
        'e' | 'E' => {
            let precision = spec.precision.unwrap_or(6);
            let text = exponent(&format!("{:.precision$e}", float()?));
            let text = if verb == 'E' {
                text.to_uppercase()
            } else {
                text
            };
            (signed(spec, &text), true)
        }
        'g' | 'G' => (signed(spec, &float_text(float()?)), true),
        _ => return Err(format!("%{verb} is not a verb that printf has")),
    };
    pad(out, spec, &text, numeric);
    Ok(())
}

/// Two digits of exponent at least, with a sign.
fn exponent(text: &str) -> String {
    match text.split_once('e') {
        Some((digits, power)) => {
            let (sign, power) = match power.strip_prefix('-') {
                Some(power) => ('-', power),
                None => ('+', power),
            };
            format!("{digits}e{sign}{power:0>2}")
        }
        None => text.to_owned(),
    }
}

fn signed(spec: &Spec, text: &str) -> String {
    match (text.starts_with('-'), spec.has('+'), spec.has(' ')) {
        (false, true, _) => format!("+{text}"),
        (false, false, true) => format!(" {text}"),
        _ => text.to_owned(),
    }
}

fn pad(out: &mut String, spec: &Spec, text: &str, numeric: bool) {
    let missing = spec.width.unwrap_or(0).saturating_sub(text.chars().count());
    if spec.has('-') {
        out.push_str(text);
        out.extend(std::iter::repeat_n(' ', missing));
    } else if spec.has('0') && numeric {
        let (sign, digits) = match text.strip_prefix(['+', '-']) {
            Some(digits) => text.split_at(text.len() - digits.len()),
            None => ("", text),
        };
        out.push_str(sign);
        out.extend(std::iter::repeat_n('0', missing));
        out.push_str(digits);
    } else {
        out.extend(std::iter::repeat_n(' ', missing));
        out.push_str(text);
    }
}

fn hex(text: &str) -> String {
    text.bytes().fold(String::new(), |mut out, byte| {
        // Writing to a string cannot fail.
        write!(out, "{byte:02x}").ok();
        out
    })
}

/// A text in quotes, as templates read it.
fn quoted(text: &str) -> String {
    let mut out = String::from("\"");
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            c if u32::from(c) < 0x20 || c == '\u{7f}' => {
                // Writing to a string cannot fail.
                write!(out, "\\x{:02x}", u32::from(c)).ok();
            }
            c => out.push(c),
        }
    }
    out.push('"');
    out
}
