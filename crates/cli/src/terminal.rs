//! What goes to a person's screen.
//!
//! Transcripts hold text from models, tools and web pages: all of it may carry terminal escapes that
//! retitle a window, rewrite what is above, or paste commands. Nothing from a transcript reaches the
//! screen but through [`clean`].

use std::borrow::Cow;
use std::io::{self, IsTerminal as _, Write as _};

use anstyle::{AnsiColor, Style};

pub(crate) const BOLD: Style = Style::new().bold();
pub(crate) const DIM: Style = Style::new().dimmed();
pub(crate) const RED: Style = AnsiColor::Red.on_default();
pub(crate) const GREEN: Style = AnsiColor::Green.on_default();
pub(crate) const YELLOW: Style = AnsiColor::Yellow.on_default();
pub(crate) const CYAN: Style = AnsiColor::Cyan.on_default();

/// Text with everything that a terminal might act on made visible instead. Tabs and line ends stay, and
/// so do the joiners of emoji and of scripts that need them.
pub(crate) fn clean(text: &str) -> Cow<'_, str> {
    if !text.chars().any(is_active) {
        return Cow::Borrowed(text);
    }
    let mut cleaned = String::with_capacity(text.len() + 16);
    let mut before = None;
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        let between = (before, chars.peek());
        before = Some(c);
        match c {
            '\u{200c}' | '\u{200d}' if matches!(between, (Some(a), Some(b)) if is_joined(a) && is_joined(*b)) =>
            {
                cleaned.push(c);
            }
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

/// Whether a joiner beside it is a matter of spelling: letters beyond ASCII, emoji and their modifiers.
fn is_joined(c: char) -> bool {
    !c.is_ascii() && !c.is_whitespace() && !is_active(c)
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

/// Like [`clean`], on one line and at most `columns` wide as a terminal counts.
pub(crate) fn fit(text: &str, columns: usize) -> String {
    // What is far longer than any line need not be looked at.
    let end = text
        .char_indices()
        .nth(columns.saturating_mul(4))
        .map_or(text.len(), |(at, _)| at);
    let cut = end < text.len();
    let line = clean(text[..end].trim()).replace(['\n', '\t'], " ");
    if !cut && width_of(&line) <= columns {
        return line;
    }
    let more = Drawing::for_locale().more;
    let room = columns.saturating_sub(width_of(more));
    let end = end_of(&line, room);
    format!("{}{more}", &line[..end])
}

/// Like [`fit`], for the path of a file: what is left out is left out at its beginning.
pub(crate) fn fit_path(path: &str, columns: usize) -> String {
    let line = clean(path.trim()).replace(['\n', '\t'], " ");
    if width_of(&line) <= columns {
        return line;
    }
    let more = Drawing::for_locale().more;
    let room = columns.saturating_sub(width_of(more));
    // Whole parts, unless not even the name fits.
    let ends = line.char_indices().filter(|(at, c)| *c == '/' && *at > 0);
    for (at, _) in ends {
        if width_of(&line[at..]) <= room {
            return format!("{more}{}", &line[at..]);
        }
    }
    let name = line.rsplit('/').next().unwrap_or(&line);
    fit(name, columns)
}

/// Where a text ends that is at most `columns` wide.
fn end_of(line: &str, columns: usize) -> usize {
    let (mut left, mut buffer) = (columns, [0; 4]);
    for (at, c) in line.char_indices() {
        let width = width_of(c.encode_utf8(&mut buffer));
        if width > left {
            return at;
        }
        left -= width;
    }
    line.len()
}

/// A line without tabs: each goes to the next of the columns that are multiples of four.
pub(crate) fn expand(line: &str) -> Cow<'_, str> {
    const STOP: usize = 4;
    if !line.contains('\t') {
        return Cow::Borrowed(line);
    }
    let (mut expanded, mut at, mut buffer) = (String::new(), 0, [0; 4]);
    for c in line.chars() {
        if c == '\t' {
            let gap = STOP - at % STOP;
            expanded.extend(std::iter::repeat_n(' ', gap));
            at += gap;
        } else {
            expanded.push(c);
            at += width_of(c.encode_utf8(&mut buffer));
        }
    }
    Cow::Owned(expanded)
}

/// How many columns a text takes that has no escapes in it.
pub(crate) fn width_of(text: &str) -> usize {
    if text.is_ascii() {
        text.len()
    } else {
        console::measure_text_width(text)
    }
}

/// How wide the screen is: `COLUMNS`, else the terminal's own word, else 80; 120 where there is none.
pub(crate) fn columns() -> usize {
    let said = std::env::var("COLUMNS")
        .ok()
        .and_then(|columns| columns.parse().ok());
    said.unwrap_or_else(|| {
        if !io::stdout().is_terminal() {
            return 120;
        }
        let size = console::Term::stdout().size_checked();
        size.map_or(80, |size| usize::from(size.1))
    })
    .clamp(40, 1_000)
}

/// Breaks a line into lines of at most `columns`, between words where there are any. What is indented
/// stays so.
pub(crate) fn wrap(line: &str, columns: usize) -> Vec<String> {
    if width_of(line) <= columns {
        return vec![line.to_owned()];
    }
    let text = line.trim_start_matches(' ');
    let indent = (line.len() - text.len()).min(columns / 2);
    let room = columns.saturating_sub(indent).max(1);
    let mut lines = Vec::new();
    let (mut begin, mut space, mut used) = (0, None, 0);
    let mut buffer = [0; 4];
    for (at, c) in text.char_indices() {
        let width = width_of(c.encode_utf8(&mut buffer));
        if c == ' ' {
            space = Some(at);
        }
        if used + width > room && at > begin {
            let end = space.unwrap_or(at);
            lines.push(text[begin..end].trim_end());
            begin = space.map_or(at, |space: usize| space + 1);
            used = width_of(text.get(begin..at).unwrap_or_default());
            space = None;
            if begin > at {
                continue;
            }
        }
        used += width;
    }
    lines.push(&text[begin..]);
    let indented = |line: &&str| format!("{:indent$}{line}", "");
    lines.iter().map(indented).collect()
}

/// Characters that make a terminal do something, or make text look like other text.
#[inline]
pub(crate) fn is_active(c: char) -> bool {
    // Nearly all text is this.
    if matches!(c, ' '..='~') {
        return false;
    }
    match c {
        '\n' | '\t' => false,
        // C0, DEL and C1 controls; ESC and CSI among them.
        c if c.is_control() => true,
        // Marks, overrides and isolates of direction, and whatever takes no place: fillers, invisible separators,
        // byte order mark, tag characters. Not the selectors of variants, which emoji have.
        '\u{ad}'
        | '\u{34f}'
        | '\u{61c}'
        | '\u{115f}'..='\u{1160}'
        | '\u{17b4}'..='\u{17b5}'
        | '\u{180b}'..='\u{180f}'
        | '\u{200b}'..='\u{200f}'
        | '\u{2028}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}'
        | '\u{3164}'
        | '\u{feff}'
        | '\u{ffa0}'
        | '\u{fff0}'..='\u{fffb}'
        | '\u{1bca0}'..='\u{1bca3}'
        | '\u{1d173}'..='\u{1d17a}'
        | '\u{e0000}'..='\u{e00ff}'
        | '\u{e01f0}'..='\u{e0fff}' => true,
        _ => false,
    }
}

/// Writes a line to stderr, cleaned. If nobody can hear it, there is nobody to tell.
pub(crate) fn say(message: &str) {
    drop(writeln!(io::stderr().lock(), "{}", clean(message)));
}

/// Writes a line to stderr with the colours that are in it, where they are wanted. What others said in it must have been
/// cleaned.
pub(crate) fn say_styled(line: &str) {
    let mut err = anstream::AutoStream::auto(io::stderr().lock());
    drop(writeln!(err, "{line}"));
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
    /// Before what a person said, what the agent said, what it thought.
    pub(crate) person: &'static str,
    pub(crate) agent: &'static str,
    pub(crate) thought: &'static str,
    /// Between facts.
    pub(crate) dot: &'static str,
    /// Something was left out.
    pub(crate) more: &'static str,
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
                person: "❯",
                agent: "●",
                thought: "∴",
                dot: " · ",
                more: "…",
            }
        } else {
            Self {
                branch: "|- ",
                last: "`- ",
                bar: "|  ",
                gap: "   ",
                arrow: "->",
                person: ">",
                agent: "*",
                thought: "~",
                dot: ", ",
                more: "...",
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

/// Bytes for people: `12 B`, `3.4 kB`, `120 MB`.
pub(crate) fn bytes(n: u64) -> String {
    scaled(n, " ", &["B", "kB", "MB", "GB", "TB", "PB"])
}

/// Tokens for people: `950`, `12k`, `3.4M`.
pub(crate) fn tokens(n: u64) -> String {
    scaled(n, "", &["", "k", "M", "G", "T", "P"])
}

fn scaled(n: u64, gap: &str, units: &[&str]) -> String {
    let (mut unit, mut scale) = (0, 1_u64);
    while n / scale >= 1_000 && unit + 1 < units.len() {
        scale *= 1_000;
        unit += 1;
    }
    let (whole, tenth) = (n / scale, n % scale * 10 / scale);
    let digits = if unit == 0 || whole >= 100 || (tenth == 0 && gap.is_empty()) {
        whole.to_string()
    } else {
        format!("{whole}.{tenth}")
    };
    format!("{digits}{gap}{}", units[unit])
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
            ("👩\u{200d}💻", "👩\u{200d}💻"),
            ("می\u{200c}خواهم", "می\u{200c}خواهم"),
            ("pay\u{200d}pal\u{200c}", "pay\\u{200d}pal\\u{200c}"),
        ] {
            assert_eq!(clean(text), shown);
        }
        assert_eq!(clean_line("one\ntwo\tthree", 9), "one two t…");
    }

    #[test]
    fn nothing_that_cannot_be_seen_passes() {
        let hidden =
            r"^[\p{Bidi_Control}\p{Cc}[\p{Default_Ignorable_Code_Point}--\p{Variation_Selector}]]$";
        let hidden = regex::Regex::new(hidden).unwrap();
        let mut buffer = [0; 4];
        let passes = ('\0'..=char::MAX)
            .filter(|c| !matches!(c, '\n' | '\t'))
            .filter(|c| hidden.is_match(c.encode_utf8(&mut buffer)))
            .filter(|c| clean(&format!("a{c}b")).contains(*c));
        let passes: Vec<String> = passes.map(|c| format!("{:04x}", u32::from(c))).collect();
        assert!(passes.is_empty(), "{passes:?}");
    }

    #[test]
    fn lines_fit_as_a_terminal_counts() {
        assert_eq!(fit("plain", 5), "plain");
        assert_eq!(fit("one\ntwo", 6), "one t…");
        assert_eq!(fit("漢字漢字", 5), "漢字…");
        assert_eq!(fit(&"x".repeat(9_000), 3), "xx…");
        assert_eq!(wrap("one two three", 7), ["one two", "three"]);
        assert_eq!(wrap("abcdefgh ij", 4), ["abcd", "efgh", "ij"]);
        assert_eq!(
            wrap("  indented text stays so", 10),
            ["  indented", "  text", "  stays so"]
        );
        assert_eq!(wrap("", 4), [""]);
        assert_eq!(expand("\ta\tb"), "    a   b");
        assert_eq!(
            fit_path("/home/ada/src/relay/retry.rs", 18),
            "…/relay/retry.rs"
        );
        assert_eq!(fit_path("/home/ada/a-very-long-name.rs", 9), "a-very-l…");
    }

    #[test]
    fn numbers_are_short() {
        let sizes = [0, 999, 1_000, 1_250_000, 340_000_000].map(bytes);
        assert_eq!(sizes, ["0 B", "999 B", "1.0 kB", "1.2 MB", "340 MB"]);
        let counts = [0, 950, 12_000, 12_345, 3_400_000].map(tokens);
        assert_eq!(counts, ["0", "950", "12k", "12.3k", "3.4M"]);
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
