//! Markdown that others wrote, inside Markdown of ours.
//!
//! What an agent says is Markdown most of the time, and should look like it. But it may hold HTML that a viewer
//! passes on, pictures that are loaded when they are seen, headings that look like ours, and fences that are never
//! closed. So every line is quoted, which nothing in a line can end; what would be HTML, a picture or a link to
//! anything but a web page is escaped; and code is fenced again, by a fence of ours.
//!
//! Viewers differ. Some know no fences inside of a quote, take all of a folded part for HTML, or read a backslash before
//! `<` as a backslash. So no `<` of a session that could begin a tag is in the file at all, code included: it is
//! `&lt;`, and code that has one stands in tags of ours.
//!
//! The rules by which code is told from text are those of `CommonMark`, made stricter: a span of code ends on its
//! line or is none, and the marks that are left over are escaped. So a viewer cannot see code where there was
//! text, or the other way round.

use super::{entities, fence};

/// Appends a text, quoted.
pub(super) fn quote(out: &mut Vec<u8>, text: &str) {
    let mut lines = text.split('\n').peekable();
    while let Some(line) = lines.next() {
        let Some((indent, mark, info)) = opening(line) else {
            out.extend_from_slice(b"> ");
            escape_line(out, line);
            out.push(b'\n');
            continue;
        };
        let mut code: Vec<&str> = Vec::new();
        for line in lines.by_ref() {
            if closes(line, mark) {
                break;
            }
            code.push(line);
        }
        fenced(out, indent, info, &code);
    }
}

/// A fence that opens: how far it is indented, its mark, and the language behind it.
fn opening(line: &str) -> Option<(usize, &str, &str)> {
    let inner = line.trim_start_matches(' ');
    let indent = line.len() - inner.len();
    let sign = inner.chars().next().filter(|c| matches!(c, '`' | '~'))?;
    let length = inner.len() - inner.trim_start_matches(sign).len();
    let info = inner[length..].trim();
    let is_fence = length >= 3 && !(sign == '`' && info.contains('`'));
    is_fence.then_some((indent, &inner[..length], info))
}

fn closes(line: &str, mark: &str) -> bool {
    let line = line.trim();
    let sign = mark.chars().next().unwrap_or('`');
    line.len() >= mark.len() && line.chars().all(|c| c == sign)
}

/// Whether a text holds what could begin a tag.
pub(super) fn has_tags(text: &str) -> bool {
    let begins = |c: &u8| c.is_ascii_alphabetic() || matches!(c, b'/' | b'!' | b'?');
    let bytes = text.as_bytes();
    memchr::memchr_iter(b'<', bytes).any(|at| bytes.get(at + 1).is_some_and(begins))
}

/// Whether code would do something where it is taken for text.
fn is_active(code: &str) -> bool {
    has_tags(code) || ["](", "![", "]:"].iter().any(|mark| code.contains(mark))
}

fn fenced(out: &mut Vec<u8>, indent: usize, info: &str, code: &[&str]) {
    if code.iter().any(|line| is_active(line)) {
        out.extend_from_slice(b">\n> <pre><code>");
        for (n, line) in code.iter().enumerate() {
            out.extend_from_slice(if n == 0 { b"" } else { b"> " });
            out.extend_from_slice(entities(line.trim_end_matches('\r')).as_bytes());
            out.push(b'\n');
        }
        out.extend_from_slice(b"> </code></pre>\n");
        return;
    }
    let indent = " ".repeat(indent.min(12));
    // Deeply indented it may be code by its indent alone, which a paragraph above would swallow.
    if indent.len() > 3 {
        out.extend_from_slice(b">\n");
    }
    let mark = fence(code.iter().copied());
    let language: String = info
        .chars()
        .take_while(|c| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '#' | '_' | '.'))
        .take(30)
        .collect();
    for line in std::iter::once(format!("{mark}{language}").as_str())
        .chain(code.iter().copied())
        .chain(std::iter::once(mark.as_str()))
    {
        out.extend_from_slice(b"> ");
        // No line may be less indented than the fence: it would end what holds the fence.
        if !line.starts_with(&indent) {
            out.extend_from_slice(indent.as_bytes());
        }
        out.extend_from_slice(line.trim_end_matches('\r').as_bytes());
        out.push(b'\n');
    }
}

/// Appends a line, with what is not Markdown of the harmless kind escaped.
fn escape_line(out: &mut Vec<u8>, line: &str) {
    let mut rest = line;
    while let Some(at) = rest.find(['\\', '`', '<', '!', ']', '&']) {
        out.extend_from_slice(&rest.as_bytes()[..at]);
        rest = &rest[at..];
        let taken = match rest.as_bytes()[0] {
            b'`' => code_span(out, rest),
            b'\\' if rest[1..].starts_with(['<', '&']) => {
                // Not every viewer takes these for escaped.
                out.push(b'\\');
                out.push(b'\\');
                1
            }
            b'\\' => {
                // What is escaped stays so; a mark of nothing does no harm.
                let length = rest[1..].chars().next().map_or(0, char::len_utf8);
                out.extend_from_slice(&rest.as_bytes()[..=length]);
                1 + length
            }
            b'!' if rest[1..].starts_with('[') => escaped(out, b'!'),
            b']' if !may_follow(&rest[1..]) => escaped(out, b']'),
            b'<' => entity(out, b"&lt;"),
            // As an entity it could be anything, a colon in an address too.
            b'&' if rest[1..].starts_with(|c: char| c == '#' || c.is_ascii_alphabetic()) => {
                entity(out, b"&amp;")
            }
            other => {
                out.push(other);
                1
            }
        };
        rest = &rest[taken..];
    }
    out.extend_from_slice(rest.as_bytes());
}

fn escaped(out: &mut Vec<u8>, byte: u8) -> usize {
    out.extend_from_slice(&[b'\\', byte]);
    1
}

fn entity(out: &mut Vec<u8>, entity: &[u8]) -> usize {
    out.extend_from_slice(entity);
    1
}

/// Whether what comes behind the end of a label may stay: an address of a web page, or no address at all.
fn may_follow(behind: &str) -> bool {
    match behind.as_bytes().first() {
        Some(b'(') => {
            let address = behind[1..].trim_start().to_ascii_lowercase();
            address.starts_with("https://") || address.starts_with("http://")
        }
        // A definition, or the use of one.
        Some(b':' | b'[') => false,
        _ => true,
    }
}

/// A span of code when it closes on this line, otherwise escaped marks. How many bytes were taken.
fn code_span(out: &mut Vec<u8>, rest: &str) -> usize {
    let run = |text: &str| text.len() - text.trim_start_matches('`').len();
    let length = run(rest);
    let mut at = length;
    while let Some(next) = rest[at..].find('`') {
        let found = run(&rest[at + next..]);
        at += next + found;
        if found == length {
            let code = &rest[length..at - length];
            if is_active(code) {
                out.extend_from_slice(b"<code>");
                out.extend_from_slice(entities(code).as_bytes());
                out.extend_from_slice(b"</code>");
            } else {
                out.extend_from_slice(&rest.as_bytes()[..at]);
            }
            return at;
        }
    }
    for _ in 0..length {
        out.extend_from_slice(b"\\`");
    }
    length
}

#[cfg(test)]
mod tests {
    use super::*;

    fn quoted(text: &str) -> String {
        let mut out = Vec::new();
        quote(&mut out, text);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn markdown_of_the_harmless_kind_stays() {
        let text = "# A\n\n- **b** `c < d`\n- [e](https://f.g)\n\n```rust\na < b\n```\n\n| a | b |";
        assert_eq!(
            quoted(text),
            "> # A\n> \n> - **b** `c < d`\n> - [e](https://f.g)\n> \n> ```rust\n> a < b\n> ```\n> \n> | a | b |\n"
        );
    }

    #[test]
    fn what_a_viewer_would_act_on_is_escaped() {
        for (text, shown) in [
            (
                "<script>alert(1)</script>",
                "&lt;script>alert(1)&lt;/script>",
            ),
            ("</details>", "&lt;/details>"),
            ("![x](https://e.vil/p.png)", "\\![x](https://e.vil/p.png)"),
            ("[x](javascript:alert)", "[x\\](javascript:alert)"),
            ("[x]: javascript:alert", "[x\\]: javascript:alert"),
            (
                "[x](&#106;avascript:alert)",
                "[x\\](&amp;#106;avascript:alert)",
            ),
            ("`` <b> `", "\\`\\` &lt;b> \\`"),
            ("\\`<b>`", "\\`&lt;b>\\`"),
            ("``a ` <b>`` <i>", "<code>a &#96; &lt;b&gt;</code> &lt;i>"),
            ("`[x](y)`", "<code>&#91;x&#93;(y)</code>"),
            ("\\<b>", "\\\\&lt;b>"),
            ("a & b &amp;", "a & b &amp;amp;"),
            ("\\", "\\"),
        ] {
            assert_eq!(quoted(text), format!("> {shown}\n"), "{text}");
        }
    }

    #[test]
    fn a_fence_ends_where_we_say() {
        // Never closed: what follows in the file is not swallowed.
        assert_eq!(
            quoted("```\nb\n> ```` \n~~~"),
            "> `````\n> b\n> > ```` \n> ~~~\n> `````\n"
        );
        // With a tag in it, it is not fenced at all.
        assert_eq!(
            quoted("```html\n<b>\n\n[x](y)\n```\nc"),
            ">\n> <pre><code>&lt;b&gt;\n> \n> &#91;x&#93;(y)\n> </code></pre>\n> c\n"
        );
        // Indented: not one line less than the fence.
        assert_eq!(
            quoted("- a\n    ```\nb\n    ```\n<i>"),
            "> - a\n>\n>     ```\n>     b\n>     ```\n> &lt;i>\n"
        );
        assert_eq!(quoted("```a`b"), "> \\`\\`\\`a\\`b\n", "no fence");
    }
}
