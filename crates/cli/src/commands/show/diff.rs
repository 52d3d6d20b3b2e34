//! What an edit changed.

use std::io::{self, Write};

use anstyle::Style;
use serde_json::Value;
use similar::{ChangeTag, TextDiff};

use super::tool;
use crate::terminal::{CYAN, DIM, Drawing, GREEN, RED, clean, count, expand, fit};

/// Edits beyond this are not compared line by line.
const LARGEST: usize = 1 << 20;

/// Lines around a change.
const CONTEXT: usize = 2;

/// A line of a change.
pub(super) struct Line {
    sign: char,
    text: String,
}

/// What a tool call changes, when it is an edit: `old_string` and `new_string` under the names that
/// agents use, several of them, a patch, or a whole file.
pub(super) fn of(input: &Value) -> Option<Vec<Line>> {
    let text = |key: &str| input.get(key).and_then(Value::as_str);
    for (old, new) in [
        ("old_string", "new_string"),
        ("oldString", "newString"),
        ("old_str", "new_str"),
        ("oldText", "newText"),
    ] {
        if let (Some(old), Some(new)) = (text(old), text(new)) {
            return Some(compare(old, new));
        }
    }
    if let Some(edits) = input.get("edits").and_then(Value::as_array) {
        let lines: Vec<Line> = edits.iter().filter_map(of).flatten().collect();
        return (!lines.is_empty()).then_some(lines);
    }
    let lines = |patch: &str| patch.lines().filter_map(patch_line).collect();
    let patch = input.as_str().or_else(|| {
        ["patch", "patchText", "diff", "input"]
            .iter()
            .find_map(|key| text(key))
    });
    if let Some(patch) = patch.filter(|patch| is_patch(patch)) {
        return Some(lines(tool::patch(patch).unwrap_or(patch)));
    }
    // A shell that is told to apply a patch.
    for key in ["command", "cmd"] {
        let command = match input.get(key) {
            Some(Value::String(text)) => Some(text.clone()),
            Some(Value::Array(words)) => tool::command(words),
            _ => None,
        };
        if let Some(patch) = command.as_deref().and_then(tool::patch) {
            return Some(lines(patch));
        }
    }
    let names_file = ["file_path", "filePath", "path"]
        .iter()
        .any(|key| text(key).is_some());
    let content = text("content").or_else(|| text("file_text"))?;
    names_file.then(|| {
        let line = |text: &str| Line {
            sign: '+',
            text: text.to_owned(),
        };
        content.lines().map(line).collect()
    })
}

fn is_patch(text: &str) -> bool {
    text.contains("*** Begin Patch")
        || text.starts_with("diff --git")
        || (text.contains("--- ") && text.contains("\n+++ "))
}

fn patch_line(line: &str) -> Option<Line> {
    if matches!(line, "*** Begin Patch" | "*** End Patch") {
        return None;
    }
    let marks = ["***", "diff ", "index ", "--- ", "+++ ", "@@"];
    if marks.iter().any(|mark| line.starts_with(mark)) {
        return Some(Line {
            sign: '@',
            text: line.to_owned(),
        });
    }
    let mut chars = line.chars();
    let sign = chars.next().filter(|c| matches!(c, '+' | '-'));
    Some(Line {
        sign: sign.unwrap_or(' '),
        text: match sign {
            Some(_) => chars.as_str().to_owned(),
            None => line.strip_prefix(' ').unwrap_or(line).to_owned(),
        },
    })
}

fn compare(old: &str, new: &str) -> Vec<Line> {
    let whole = |sign: char, text: &str| -> Vec<Line> {
        let line = |line: &str| Line {
            sign,
            text: line.to_owned(),
        };
        text.lines().map(line).collect()
    };
    if old.len() + new.len() > LARGEST {
        return [whole('-', old), whole('+', new)]
            .into_iter()
            .flatten()
            .collect();
    }
    let diff = TextDiff::from_lines(old, new);
    let mut lines = Vec::new();
    for group in diff.grouped_ops(CONTEXT) {
        for change in group.iter().flat_map(|op| diff.iter_changes(op)) {
            let sign = match change.tag() {
                ChangeTag::Equal => ' ',
                ChangeTag::Delete => '-',
                ChangeTag::Insert => '+',
            };
            lines.push(Line {
                sign,
                text: change.value().trim_end_matches(['\n', '\r']).to_owned(),
            });
        }
    }
    lines
}

/// How many lines came and went: `+3 -1`.
pub(super) fn tally(lines: &[Line]) -> String {
    let count = |sign: char| lines.iter().filter(|line| line.sign == sign).count();
    format!("+{} -{}", count('+'), count('-'))
}

/// Writes lines of a change, at most `most`.
pub(super) fn write(
    out: &mut impl Write,
    lines: &[Line],
    indent: usize,
    columns: usize,
    most: usize,
) -> io::Result<()> {
    for line in lines.iter().take(most) {
        let style = match line.sign {
            '+' => GREEN,
            '-' => RED,
            '@' => CYAN,
            _ => Style::new(),
        };
        let text = clean(&line.text);
        let text = expand(&text);
        let text = if most == usize::MAX {
            text.into_owned()
        } else {
            let begin = text.len() - text.trim_start_matches(' ').len();
            let begin = begin.min(columns / 2);
            let sign = if line.sign == '@' { 0 } else { 2 };
            let room = columns.saturating_sub(indent + sign + begin);
            format!("{:begin$}{}", "", fit(&text, room))
        };
        match line.sign {
            '@' => writeln!(out, "{:indent$}{style}{text}{style:#}", "")?,
            sign => writeln!(out, "{:indent$}{style}{sign} {text}{style:#}", "")?,
        }
    }
    if lines.len() > most {
        let more = Drawing::for_locale().more;
        let left = lines.len() - most;
        let left = count(left as u64, "more line");
        writeln!(out, "{:indent$}{DIM}{more} {left}{DIM:#}", "")?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(input: &Value, expected: &[&str]) {
        let lines = of(input).unwrap_or_default();
        let lines: Vec<String> = lines
            .iter()
            .map(|line| format!("{}{}", line.sign, line.text))
            .collect();
        assert_eq!(lines, expected);
    }

    #[test]
    fn every_kind_of_edit() {
        let edit = serde_json::json!({"old_string": "a\nb\nc", "new_string": "a\nB\nc"});
        check(&edit, &[" a", "-b", "+B", " c"]);
        check(
            &serde_json::json!({"edits": [edit, {"old_str": "x", "new_str": "y"}]}),
            &[" a", "-b", "+B", " c", "-x", "+y"],
        );
        let patch = "*** Begin Patch\n*** Update File: a.rs\n@@\n keep\n-old\n+new\n*** End Patch";
        let lines = ["@*** Update File: a.rs", "@@@", " keep", "-old", "+new"];
        check(&serde_json::json!(patch), &lines);
        check(&serde_json::json!({"input": patch}), &lines);
        let shell = format!("cd /w && apply_patch <<'EOF'\n{patch}\nEOF\n");
        check(&serde_json::json!({"cmd": shell}), &lines);
        check(
            &serde_json::json!({"command": ["bash", "-lc", shell]}),
            &lines,
        );
        check(
            &serde_json::json!({"command": ["apply_patch", patch]}),
            &lines,
        );
        check(
            &serde_json::json!({"file_path": "a", "content": "1\n2"}),
            &["+1", "+2"],
        );
        check(&serde_json::json!({"command": "ls"}), &[]);
        check(&serde_json::json!({"content": "no file"}), &[]);
    }
}
