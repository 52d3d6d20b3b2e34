//! A query with marks below a place in it.

use std::ops::Range;

use unicode_width::{UnicodeWidthChar as _, UnicodeWidthStr as _};

/// How much of a query is shown, in columns.
const COLUMNS: usize = 72;
/// How much of that before the place, at most.
const BEFORE: usize = 40;
const INDENT: &str = "  ";
const CUT: &str = "…";

pub(super) fn render(query: &str, at: &Range<usize>) -> String {
    // It may be the place of another query.
    let start = floor(query, at.start);
    let end = floor(query, at.end).max(start);
    let fits = |text: &str| text.len() <= 4 * COLUMNS && width(&visible(text)) <= COLUMNS;
    let (from, to) = if fits(query) {
        (0, query.len())
    } else {
        window(query, start)
    };
    let cut = |left_out: bool| if left_out { CUT } else { "" };
    let mut line = format!("{}{}", cut(from > 0), visible(&query[from..start]));
    let column = width(&line);
    let place = visible(&query[start..end.min(to)]);
    line += &place;
    line += &visible(&query[end.min(to)..to]);
    line += cut(to < query.len());
    let marks = "^".repeat(width(&place).max(1));
    format!("{INDENT}{line}\n{INDENT}{:column$}{marks}", "")
}

/// From where to where a query is shown around a place.
fn window(query: &str, start: usize) -> (usize, usize) {
    let columns = |c: char| shown(c).map_or_else(|| c.width().unwrap_or(0), |text| width(&text));
    let mut room = BEFORE;
    let mut from = start;
    for (at, c) in query[..start].char_indices().rev() {
        let Some(left) = room.checked_sub(columns(c)) else {
            break;
        };
        (room, from) = (left, at);
        // What has no width could go on for ever.
        if start - at > 4 * BEFORE {
            break;
        }
    }
    room += COLUMNS - BEFORE;
    let mut to = start;
    for c in query[start..].chars() {
        let Some(left) = room.checked_sub(columns(c)) else {
            break;
        };
        (room, to) = (left, to + c.len_utf8());
        if to - start > 4 * COLUMNS {
            break;
        }
    }
    (from, to)
}

fn width(text: &str) -> usize {
    text.width()
}

fn floor(text: &str, at: usize) -> usize {
    let at = at.min(text.len());
    let boundary = (0..=at).rev().find(|at| text.is_char_boundary(*at));
    boundary.unwrap_or(0)
}

/// Text with everything that a terminal might act on made visible instead.
fn visible(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match shown(c) {
            Some(text) => out += &text,
            None => out.push(c),
        }
    }
    out
}

/// What stands for a character that is not shown as it is.
pub(super) fn shown(c: char) -> Option<String> {
    match c {
        '\t' | '\n' => Some(" ".to_owned()),
        // The control pictures of Unicode stand for the characters 0 to 31 and 127.
        '\0'..='\x1f' => char::from_u32(0x2400 + u32::from(c)).map(String::from),
        '\x7f' => Some('\u{2421}'.to_string()),
        // Other controls, direction marks, what is invisible, tags.
        c if c.is_control() => Some(c.escape_unicode().to_string()),
        '\u{ad}'
        | '\u{61c}'
        | '\u{200b}'..='\u{200f}'
        | '\u{2028}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}'
        | '\u{feff}'
        | '\u{fff9}'..='\u{fffb}'
        | '\u{e0000}'..='\u{e007f}' => Some(c.escape_unicode().to_string()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_are_below_the_place() {
        for (query, at, expected) in [
            ("agnet:x foo", 0..6, "  agnet:x foo\n  ^^^^^^"),
            ("foo OR", 4..6, "  foo OR\n      ^^"),
            ("foo ", 4..4, "  foo \n      ^"),
            ("", 0..0, "  \n  ^"),
            // Wide characters, and marks on letters.
            ("日本 (x", 7..8, "  日本 (x\n       ^"),
            ("日本", 0..3, "  日本\n  ^^"),
            ("e\u{301}e\u{301} )", 7..8, "  e\u{301}e\u{301} )\n     ^"),
            ("👩\u{1f3fd} )", 9..10, "  👩\u{1f3fd} )\n     ^"),
            // What a terminal would act on.
            ("a\tb\nc)", 5..6, "  a b c)\n       ^"),
            ("\x1b[31m)", 5..6, "  ␛[31m)\n       ^"),
            ("\u{202e}x )", 5..6, "  \\u{202e}x )\n            ^"),
            ("\u{85})", 2..3, "  \\u{85})\n        ^"),
        ] {
            assert_eq!(render(query, &at), expected, "{query:?}");
        }
    }

    #[test]
    fn long_queries_are_cut() {
        let query = format!("{} OR {}", "a".repeat(500), "b".repeat(500));
        let drawn = render(&query, &(501..503));
        let expected = format!(
            "  …{} OR {}…\n  {}^^",
            "a".repeat(39),
            "b".repeat(29),
            " ".repeat(41)
        );
        assert_eq!(drawn, expected);
        // A place that is longer than what is shown of it.
        let drawn = render(&query, &(100..900));
        let lines: Vec<&str> = drawn.lines().collect();
        assert_eq!(lines[1].trim_start(), "^".repeat(32));
        // What has no width does not make it longer.
        let drawn = render(&"\u{301}".repeat(100_000), &(50_000..50_001));
        assert!(drawn.len() < 2_000);
    }

    #[test]
    fn a_place_that_is_not_there_is_no_panic() {
        for (start, end) in [(1, 2), (2, 1), (7, 9), (0, usize::MAX)] {
            let at = start..end;
            assert!(render("日本", &at).contains('^'), "{at:?}");
        }
    }
}
