//! Calls that are written into the text.
//!
//! Before models were given tools, they were told to write `<read_file><path>…</path></read_file>`. What came
//! back was put into the next message as `[read_file for '…'] Result:`.

use quipu_model::Json;

/// Every tool that was called in this way.
const TOOLS: [&str; 32] = [
    "execute_command",
    "read_file",
    "write_to_file",
    "replace_in_file",
    "search_files",
    "list_files",
    "list_code_definition_names",
    "browser_action",
    "web_fetch",
    "web_search",
    "use_mcp_tool",
    "access_mcp_resource",
    "load_mcp_documentation",
    "ask_followup_question",
    "attempt_completion",
    "plan_mode_respond",
    "act_mode_respond",
    "new_task",
    "condense",
    "summarize_task",
    "report_bug",
    "new_rule",
    "focus_chain",
    "use_skill",
    "apply_diff",
    "insert_content",
    "search_and_replace",
    "edit_file",
    "switch_mode",
    "update_todo_list",
    "codebase_search",
    "fetch_instructions",
];

/// Tools whose parameters are whole files, in which anything can stand: also the end of a call.
const WRITERS: [&str; 6] = [
    "write_to_file",
    "replace_in_file",
    "apply_diff",
    "insert_content",
    "edit_file",
    "attempt_completion",
];

/// A part of a reply.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Piece<'a> {
    /// What was said.
    Text(&'a str),
    /// What was thought.
    Thought(&'a str),
    /// What was called, and with what.
    Call { name: &'a str, input: Json },
}

/// Takes a reply apart.
pub(super) fn pieces(text: &str) -> Vec<Piece<'_>> {
    let mut pieces = Vec::new();
    let mut rest = text;
    while let Some((before, name, inside, behind)) = next_element(rest) {
        said(before, &mut pieces);
        pieces.push(if name == "thinking" {
            Piece::Thought(inside.trim())
        } else {
            Piece::Call {
                name,
                input: parameters(inside),
            }
        });
        rest = behind;
    }
    said(rest, &mut pieces);
    pieces
}

fn said<'a>(text: &'a str, pieces: &mut Vec<Piece<'a>>) {
    let text = text.trim();
    if !text.is_empty() {
        pieces.push(Piece::Text(text));
    }
}

/// The first element of a text that is a call or a thought: what is before it, its name, what is inside,
/// what is behind.
fn next_element(text: &str) -> Option<(&str, &str, &str, &str)> {
    let mut from = 0;
    while let Some(open) = text.get(from..)?.find('<') {
        let at = from + open;
        from = at + 1;
        let Some((name, inside)) = tag(&text[from..]) else {
            continue;
        };
        // A call begins a line.
        let before = text[..at].trim_end_matches([' ', '\t']);
        let begins = before.is_empty() || before.ends_with('\n');
        if !begins || !(name == "thinking" || TOOLS.contains(&name)) {
            continue;
        }
        let (inside, behind) = element(name, inside, WRITERS.contains(&name));
        return Some((&text[..at], name, inside, behind));
    }
    None
}

/// The name that a tag has, and what is behind it. `text` begins behind the `<`.
fn tag(text: &str) -> Option<(&str, &str)> {
    const LONGEST: usize = 40;
    let end = text.bytes().take(LONGEST).position(|b| b == b'>')?;
    Some((&text[..end], &text[end + 1..]))
}

/// What is inside of an element, and what is behind it. An element without an end was cut off.
fn element<'a>(name: &str, text: &'a str, to_last: bool) -> (&'a str, &'a str) {
    let close = format!("</{name}>");
    let end = if to_last {
        text.rfind(&close)
    } else {
        text.find(&close)
    };
    match end {
        Some(end) => (&text[..end], &text[end + close.len()..]),
        None => (text, ""),
    }
}

/// The parameters of a call, all of them texts.
fn parameters(text: &str) -> Json {
    /// No tool has more.
    const MOST: usize = 64;
    let mut made = String::from("{");
    let mut rest = text;
    for _ in 0..MOST {
        let Some(open) = rest.find('<') else {
            break;
        };
        let inside = &rest[open + 1..];
        let Some((name, value)) = tag(inside) else {
            rest = inside;
            continue;
        };
        let is_name = !name.is_empty()
            && name
                .bytes()
                .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_');
        if !is_name {
            rest = inside;
            continue;
        }
        let (value, behind) = element(name, value, true);
        if made.len() > 1 {
            made.push(',');
        }
        made.push_str(Json::string(name).get());
        made.push(':');
        made.push_str(Json::string(value.trim_matches('\n')).get());
        rest = behind;
    }
    made.push('}');
    Json::parse(&made).unwrap_or_else(|_| Json::string(text))
}

/// The tool whose result a text begins with, and the result as far as it is in the text.
pub(super) fn result(text: &str) -> Option<(&str, &str)> {
    let inside = text.strip_prefix('[')?;
    let end = inside.find([' ', ']'])?;
    let name = &inside[..end];
    if !TOOLS.contains(&name) {
        return None;
    }
    let (_, result) = inside.split_once("] Result:")?;
    Some((name, result.trim_start()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reply_is_taken_apart() {
        let text = "<thinking>\nhm\n</thinking>\n\nI look.\n\n<read_file>\n<path>a <b>.txt</path>\n</read_file>";
        let pieces = pieces(text);
        assert_eq!(pieces[0], Piece::Thought("hm"));
        assert_eq!(pieces[1], Piece::Text("I look."));
        let Piece::Call { name, input } = &pieces[2] else {
            panic!("{pieces:?}");
        };
        assert_eq!(*name, "read_file");
        assert_eq!(input.get(), r#"{"path":"a <b>.txt"}"#);
        assert_eq!(pieces.len(), 3);
    }

    #[test]
    fn what_only_looks_like_a_call_is_text() {
        for text in ["use `<read_file>` now", "a < b > c", "<", "<b>bold</b>", ""] {
            let pieces = pieces(text);
            assert!(
                pieces.iter().all(|piece| matches!(piece, Piece::Text(_))),
                "{pieces:?}"
            );
        }
    }

    #[test]
    fn results_name_their_tool() {
        assert_eq!(
            result("[read_file for 'a.txt'] Result:\nhello"),
            Some(("read_file", "hello"))
        );
        assert_eq!(
            result("[attempt_completion] Result:"),
            Some(("attempt_completion", ""))
        );
        assert_eq!(result("[ERROR] You did not use a tool"), None);
        assert_eq!(result("[x] Result:"), None);
    }
}
