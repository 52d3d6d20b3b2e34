//! Text that others wrote, made safe to look at.
//!
//! What models, tools and web pages say may carry escapes that a terminal acts on, marks that turn the direction
//! of writing around, and characters that cannot be seen. Nothing of that is dropped: it is shown.

use std::borrow::Cow;

/// The same text with everything made visible that a screen would act on or not show. Tabs and line ends stay;
/// a carriage return before a line end is part of it. Colours of a terminal go without a sign: they say nothing
/// about what was said.
pub(crate) fn clean(text: &str) -> Cow<'_, str> {
    if is_clean(text) {
        return Cow::Borrowed(text);
    }
    let mut cleaned = String::with_capacity(text.len() + 16);
    let mut before = None;
    let mut rest = text.chars();
    while let Some(c) = rest.next() {
        let next = rest.clone().next();
        let is_between = before.is_some_and(is_joined) && next.is_some_and(is_joined);
        before = Some(c);
        match c {
            '\x1b' => {
                if let Some(colours) = colours(rest.as_str()) {
                    rest = rest.as_str()[colours..].chars();
                } else {
                    cleaned.push('\u{241b}');
                }
            }
            '\r' if next == Some('\n') => {}
            '\u{200c}' | '\u{200d}' if is_between => cleaned.push(c),
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

/// The same on one line.
pub(crate) fn clean_line(text: &str) -> Cow<'_, str> {
    let cleaned = clean(text);
    if !cleaned.contains(['\n', '\t']) {
        return cleaned;
    }
    Cow::Owned(cleaned.replace(['\n', '\t'], " "))
}

fn is_clean(text: &str) -> bool {
    // Most texts hold nothing but letters: whole bytes are looked at before characters are.
    let is_plain = |b: u8| (0x20..0x7f).contains(&b) || matches!(b, b'\n' | b'\t');
    text.bytes().all(is_plain) || !text.chars().any(is_active)
}

/// How long an instruction is that only changes colours, behind its escape.
fn colours(rest: &str) -> Option<usize> {
    let inner = rest.strip_prefix('[')?;
    let end = inner.find(|c: char| !matches!(c, '0'..='9' | ';' | ':'))?;
    inner[end..].starts_with('m').then_some(end + 2)
}

/// Whether a joiner beside it is a matter of spelling: letters beyond ASCII, emoji and their modifiers.
fn is_joined(c: char) -> bool {
    !c.is_ascii() && !c.is_whitespace() && !is_active(c)
}

/// Whether a screen acts on it, or shows nothing.
fn is_active(c: char) -> bool {
    match c {
        '\n' | '\t' => false,
        '\0'..='\x1f' | '\x7f'..='\u{9f}' => true,
        c if c.is_ascii() => false,
        '\u{ad}'
        | '\u{34f}'
        | '\u{61c}'
        | '\u{115f}'
        | '\u{1160}'
        | '\u{17b4}'
        | '\u{17b5}'
        | '\u{180e}'
        | '\u{200b}'..='\u{200f}'
        | '\u{2028}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}'
        | '\u{3164}'
        | '\u{feff}'
        | '\u{ffa0}'
        | '\u{fff9}'..='\u{fffb}'
        | '\u{e0000}'..='\u{e0fff}' => true,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_screen_would_act_on_is_shown() {
        for (text, shown) in [
            ("plain\n\ttext é", "plain\n\ttext é"),
            ("\x1b[31mred\x1b[0m", "red"),
            ("\x1b[2Jgone", "\u{241b}[2Jgone"),
            ("\x1b]0;title\x07", "\u{241b}]0;title\u{2407}"),
            ("a\r\nb\rc", "a\nb\u{240d}c"),
            ("\0\x7f", "\u{2400}\u{2421}"),
            ("abc\u{202e}fed", "abc\\u{202e}fed"),
            ("a\u{200b}b", "a\\u{200b}b"),
            ("\u{1f469}\u{200d}\u{1f680}", "\u{1f469}\u{200d}\u{1f680}"),
            ("a\u{200d}b", "a\\u{200d}b"),
            ("\x1b", "\u{241b}"),
            ("\x1b[31", "\u{241b}[31"),
        ] {
            assert_eq!(clean(text), shown);
        }
        assert_eq!(clean_line("a\nb\tc"), "a b c");
    }

    proptest::proptest! {
        #[test]
        fn nothing_active_is_left(text in crate::arbitrary::text()) {
            let cleaned = clean(&text);
            let is_joiner = |c| matches!(c, '\u{200c}' | '\u{200d}');
            proptest::prop_assert!(!cleaned.chars().any(|c| is_active(c) && !is_joiner(c)));
            proptest::prop_assert_eq!(clean(&cleaned), cleaned.as_ref());
        }
    }
}
