//! What goes to a person's screen.
//!
//! Transcripts hold text from models, tools and web pages: all of it may carry terminal escapes that
//! retitle a window, rewrite what is above, or paste commands. Nothing from a transcript reaches the
//! screen but through [`clean`].

use std::borrow::Cow;
use std::io::{self, Write as _};

use anstyle::{AnsiColor, Style};

pub(crate) const BOLD: Style = Style::new().bold();
pub(crate) const DIM: Style = Style::new().dimmed();
pub(crate) const RED: Style = AnsiColor::Red.on_default();
pub(crate) const GREEN: Style = AnsiColor::Green.on_default();
pub(crate) const YELLOW: Style = AnsiColor::Yellow.on_default();
pub(crate) const CYAN: Style = AnsiColor::Cyan.on_default();

/// Text with everything that a terminal might act on made visible instead. Tabs and line ends stay.
pub(crate) fn clean(text: &str) -> Cow<'_, str> {
    if !text.chars().any(is_active) {
        return Cow::Borrowed(text);
    }
    let mut cleaned = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        match c {
            // The control pictures of Unicode stand for the characters 0 to 31 and 127.
            '\0'..='\x1f' if is_active(c) => {
                cleaned.extend(char::from_u32(0x2400 + u32::from(c)));
            }
            '\x7f' => cleaned.push('\u{2421}'),
            c if is_active(c) => cleaned.extend(c.escape_unicode()),
            c => cleaned.push(c),
        }
    }
    Cow::Owned(cleaned)
}

/// Like [`clean`], on one line and at most `width` characters long.
pub(crate) fn clean_line(text: &str, width: usize) -> String {
    let mut line = String::new();
    for (n, c) in clean(text.trim()).chars().enumerate() {
        if n == width {
            line.push('…');
            break;
        }
        line.push(if matches!(c, '\n' | '\t') { ' ' } else { c });
    }
    line
}

/// Characters that make a terminal do something, or make text look like other text.
fn is_active(c: char) -> bool {
    match c {
        '\n' | '\t' => false,
        // C0, DEL and C1 controls; ESC and CSI among them.
        c if c.is_control() => true,
        // Direction overrides and isolates, invisible separators, byte order mark, tag characters.
        '\u{200b}'..='\u{200f}'
        | '\u{2028}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}'
        | '\u{feff}'
        | '\u{e0000}'..='\u{e007f}' => true,
        _ => false,
    }
}

/// Writes a line to stderr, cleaned. If nobody can hear it, there is nobody to tell.
pub(crate) fn say(message: &str) {
    drop(writeln!(io::stderr().lock(), "{}", clean(message)));
}

/// stdout, with colours where they are wanted, buffered.
pub(crate) fn out() -> io::BufWriter<anstream::AutoStream<io::StdoutLock<'static>>> {
    io::BufWriter::new(anstream::AutoStream::auto(io::stdout().lock()))
}

/// The characters that trees are drawn with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Drawing {
    pub(crate) branch: &'static str,
    pub(crate) last: &'static str,
    pub(crate) bar: &'static str,
    pub(crate) gap: &'static str,
    pub(crate) arrow: &'static str,
}

impl Drawing {
    /// Lines where the locale can show them, ASCII where it says it cannot.
    pub(crate) fn for_locale() -> Self {
        let locale = ["LC_ALL", "LC_CTYPE", "LANG"]
            .into_iter()
            .filter_map(|name| std::env::var(name).ok())
            .find(|value| !value.is_empty());
        let unicode = locale.is_none_or(|locale| {
            let locale = locale.to_ascii_lowercase();
            locale.contains("utf-8") || locale.contains("utf8")
        });
        if unicode {
            Self {
                branch: "├─ ",
                last: "└─ ",
                bar: "│  ",
                gap: "   ",
                arrow: "→",
            }
        } else {
            Self {
                branch: "|- ",
                last: "`- ",
                bar: "|  ",
                gap: "   ",
                arrow: "->",
            }
        }
    }
}

/// A duration for people.
pub(crate) fn duration(millis: u64) -> String {
    match millis {
        0..1_000 => format!("{millis} ms"),
        1_000..60_000 => format!("{}.{} s", millis / 1_000, millis % 1_000 / 100),
        60_000..3_600_000 => format!("{} min {} s", millis / 60_000, millis % 60_000 / 1_000),
        _ => format!(
            "{} h {} min",
            millis / 3_600_000,
            millis % 3_600_000 / 60_000
        ),
    }
}

/// `1 event`, `2 events`.
pub(crate) fn count(n: u64, what: &str) -> String {
    let plural = if n == 1 { "" } else { "s" };
    format!("{n} {what}{plural}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_become_visible() {
        for (text, shown) in [
            ("plain\ttext\n", "plain\ttext\n"),
            ("\x1b]0;owned\x07", "␛]0;owned␇"),
            ("\u{9b}31m", "\\u{9b}31m"),
            ("a\rb\0c\x7f", "a␍b␀c␡"),
            ("\u{202e}txt.exe", "\\u{202e}txt.exe"),
            ("é 漢 🙂", "é 漢 🙂"),
        ] {
            assert_eq!(clean(text), shown);
        }
        assert_eq!(clean_line("one\ntwo\tthree", 9), "one two t…");
    }

    #[test]
    fn durations() {
        let shown = [999, 1_250, 61_000, 3_720_000].map(duration);
        assert_eq!(shown, ["999 ms", "1.2 s", "1 min 1 s", "1 h 2 min"]);
        assert_eq!(
            (count(1, "event"), count(0, "event")),
            ("1 event".into(), "0 events".into())
        );
    }
}
