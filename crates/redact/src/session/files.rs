//! Which calls are about files, and which files.

use std::ops::Range;

use quipu_model::Json;
use quipu_model::json::{Kind, Node, Tape};
use rustc_hash::FxHashMap;

use super::json::rule;
use super::mask::{Cut, POLICY};
use crate::rule::Kind as RuleKind;
use crate::sensitive::{Exposes, exposed_by, in_patch, is_sensitive, looks_secret, written_by};

/// Calls that are remembered until their result is there.
const MOST: usize = 1 << 16;

/// Fields that name a file.
const PATHS: &[&str] = &[
    "file_path",
    "filepath",
    "path",
    "file",
    "filename",
    "notebook_path",
    "target_file",
    "absolute_path",
    "relative_path",
    "uri",
    "target",
    "paths",
    "files",
];

/// Fields that are a command line.
const COMMANDS: &[&str] = &["command", "cmd", "script", "commandline", "shell_command"];

/// Fields that are the content of a file.
const CONTENTS: &[&str] = &[
    "content",
    "contents",
    "file_text",
    "new_string",
    "old_string",
    "new_str",
    "old_str",
    "insert_text",
    "new_source",
    "old_source",
    "patch",
    "diff",
    "code_edit",
    "originalfile",
    "structuredpatch",
    "oldstring",
    "newstring",
    "replacement",
    "new_content",
    "old_content",
    "filecontent",
    "file_content",
    "lines",
];

/// Tools that give back what is in a file, by what their names begin or end with.
const READERS: &[&str] = &[
    "read",
    "readfile",
    "viewfile",
    "view",
    "openfile",
    "cat",
    "getfilecontents",
    "notebookread",
    "readmanyfiles",
];

/// Tools that change what is in a file.
const WRITERS: &[&str] = &[
    "write",
    "writefile",
    "writetofile",
    "createfile",
    "create",
    "edit",
    "editfile",
    "multiedit",
    "notebookedit",
    "strreplace",
    "strreplaceeditor",
    "strreplacebasededittool",
    "replace",
    "replaceinfile",
    "applypatch",
    "applydiff",
    "insert",
    "updatefile",
    "searchreplace",
    "fswrite",
    "fsread",
    "patch",
    "texteditor",
];

/// What a call does with files.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Access {
    /// What kind of call it is.
    pub(super) tool: Tool,
    /// The file, where it names one.
    pub(super) file: Option<String>,
    /// What it shows of files that are secret as a whole.
    pub(super) exposes: Option<Exposes>,
}

/// What kind of call it is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Tool {
    /// It has nothing to do with files as such.
    #[default]
    Other,
    /// It gives back what is in one.
    Reads,
    /// It changes what is in one.
    Writes,
}

/// Calls whose result is not there yet.
#[derive(Debug, Default)]
pub(super) struct Files(FxHashMap<String, Access>);

impl Files {
    /// Takes in a call.
    pub(super) fn call(&mut self, id: &str, name: &str, input: Option<&Json>) -> Access {
        let access = access(name, input);
        if access != Access::default() && !id.is_empty() && self.0.len() < MOST {
            self.0.insert(id.to_owned(), access.clone());
        }
        access
    }

    /// What the call did that this is the result of.
    pub(super) fn result(&mut self, id: &str, name: &str, input: Option<&Json>) -> Access {
        let own = access(name, input);
        match self.0.get(id) {
            Some(access) if own.tool == Tool::Other || own.file.is_none() => Access {
                exposes: own.exposes.or(access.exposes),
                ..access.clone()
            },
            _ => own,
        }
    }
}

fn access(name: &str, input: Option<&Json>) -> Access {
    let mut access = Access {
        tool: tool(name),
        ..Access::default()
    };
    let Some(input) = input else { return access };
    let mut tape = Tape::new();
    let Ok(node) = tape.read(input.get(), 128) else {
        return access;
    };
    if let Some(text) = node.as_str() {
        access.exposes = exposed_by(&text);
    }
    for (key, value) in node.fields() {
        let key = key.to_text_lossy().to_ascii_lowercase();
        if PATHS.contains(&&*key) {
            each(value, &mut |path| {
                if is_sensitive(path) {
                    access.exposes = Some(Exposes::File);
                }
                access.file.get_or_insert_with(|| path.to_owned());
            });
        } else if COMMANDS.contains(&&*key) {
            let mut line = String::new();
            each(value, &mut |word| {
                line.push_str(word);
                line.push(' ');
            });
            access.exposes = access.exposes.or_else(|| exposed_by(line.trim_end()));
        }
    }
    access
}

/// The texts of a value, or of a list.
fn each(node: Node<'_>, take: &mut dyn FnMut(&str)) {
    match node.kind() {
        Kind::String => take(&node.as_str().unwrap_or_default()),
        Kind::List => node
            .items()
            .filter_map(|item| item.as_str())
            .for_each(|text| take(&text)),
        _ => {}
    }
}

fn tool(name: &str) -> Tool {
    let own = name.rsplit("__").next().unwrap_or(name);
    let own = own.rsplit(['.', '/', ':']).next().unwrap_or(own);
    let letters = own.bytes().filter(u8::is_ascii_alphanumeric);
    let plain: String = letters
        .map(|byte| char::from(byte.to_ascii_lowercase()))
        .collect();
    if READERS.contains(&&*plain) {
        Tool::Reads
    } else if WRITERS.contains(&&*plain) {
        Tool::Writes
    } else {
        Tool::Other
    }
}

/// Whether what is given to a name is the content of a file.
pub(super) fn is_content(name: &str) -> bool {
    CONTENTS
        .iter()
        .any(|content| content.eq_ignore_ascii_case(name))
}

/// Takes out the content of a file.
pub(super) fn cut(text: &str, span: Range<usize>) -> Cut {
    let lines = text[span.clone()].lines().count();
    Cut {
        span,
        rule: rule("file-contents"),
        kind: POLICY,
        placeholder: format!("[REDACTED:file-contents-{lines}-lines]"),
    }
}

/// What is in a patch, but for the files that it names.
pub(super) fn patch(text: &str) -> Vec<Cut> {
    const BEGIN: &str = "*** Begin Patch\n";
    let mut cuts = Vec::new();
    let Some(begin) = text.find(BEGIN).map(|begin| begin + BEGIN.len()) else {
        return cuts;
    };
    let (mut at, mut from) = (begin, begin);
    for line in text[begin..].split_inclusive('\n') {
        if line.starts_with("*** ") {
            take(text, from..at, &mut cuts);
            from = at + line.len();
            if line.starts_with("*** End Patch") {
                return cuts;
            }
        }
        at += line.len();
    }
    take(text, from..at, &mut cuts);
    cuts
}

fn take(text: &str, span: Range<usize>, cuts: &mut Vec<Cut>) {
    // The end of the last line stays, so that what follows is on a line of its own.
    let end = span.start + text[span.clone()].trim_end_matches('\n').len();
    let inside = &text[span.start..end];
    if !inside.is_empty() && !crate::is_placeholder(inside) {
        cuts.push(cut(text, span.start..end));
    }
}

/// The rule that receipts name for files that are secret as a whole.
pub(super) const SENSITIVE: &str = "sensitive-file";

/// Takes out what is in a secret file.
pub(super) fn secret(span: Range<usize>) -> Cut {
    Cut {
        span,
        rule: SENSITIVE.to_owned(),
        kind: RuleKind::Secret.as_str(),
        placeholder: format!("[REDACTED:{SENSITIVE}]"),
    }
}

/// Parts of a text that are in a secret file: what a patch changes there, what a command writes there.
pub(super) fn secret_parts(text: &str, name: Option<&str>) -> Vec<Range<usize>> {
    let is_command = name.is_some_and(|name| {
        COMMANDS
            .iter()
            .any(|command| command.eq_ignore_ascii_case(name))
    });
    if is_command && memchr::memchr2(b'>', b'|', text.as_bytes()).is_some() {
        let written = written_by(text);
        if !written.is_empty() {
            return written;
        }
    }
    if text.len() > 16 {
        in_patch(text)
    } else {
        Vec::new()
    }
}

/// Parts of a text that a call gave back which shows secrets.
pub(super) fn exposed(exposes: Exposes, text: &str) -> Vec<Cut> {
    match exposes {
        Exposes::File => vec![secret(0..text.len())],
        Exposes::Printed if looks_secret(text) => vec![secret(0..text.len())],
        Exposes::Printed => Vec::new(),
        Exposes::Environment => environment(text).into_iter().map(secret).collect(),
    }
}

/// What is given to names, line by line.
fn environment(text: &str) -> Vec<Range<usize>> {
    let mut at = 0;
    let mut found = Vec::new();
    for line in text.split_inclusive('\n') {
        let end = at + line.trim_end_matches(['\n', '\r']).len();
        if let Some(equals) = text[at..end].find('=') {
            let name = text[at..at + equals]
                .trim_start_matches("export ")
                .trim_start_matches("declare -x ");
            let is_name = !name.is_empty()
                && name
                    .bytes()
                    .all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
            if is_name && at + equals + 1 < end {
                found.push(at + equals + 1..end);
            }
        }
        at += line.len();
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tools_are_known_by_their_names() {
        for (name, expected) in [
            ("Read", Tool::Reads),
            ("read_file", Tool::Reads),
            ("mcp__fs__read_file", Tool::Reads),
            ("apply_patch", Tool::Writes),
            ("MultiEdit", Tool::Writes),
            ("str_replace_based_edit_tool", Tool::Writes),
            ("Bash", Tool::Other),
            ("", Tool::Other),
        ] {
            assert_eq!(tool(name), expected, "{name}");
        }
    }

    #[test]
    fn a_result_is_of_the_file_that_its_call_names() {
        let mut files = Files::default();
        let input = Json::parse(r#"{"file_path":"/code/a.rs"}"#).unwrap();
        let call = files.call("c1", "Read", Some(&input));
        assert_eq!(
            (call.tool, call.file.as_deref()),
            (Tool::Reads, Some("/code/a.rs"))
        );
        assert_eq!(files.result("c1", "", None), call);
        assert_eq!(files.result("c2", "Read", None).tool, Tool::Reads);
        assert_eq!(files.result("c2", "Bash", None), Access::default());
    }

    #[test]
    fn what_shows_secrets_is_known() {
        let text = "HOME=/home/ada\nexport TOKEN=x\nnothing = here\nEMPTY=\n";
        let values: Vec<&str> = environment(text)
            .into_iter()
            .map(|span| &text[span])
            .collect();
        assert_eq!(values, ["/home/ada", "x"]);
        let mut files = Files::default();
        let read = Json::parse(r#"{"file_path":"/code/.env"}"#).unwrap();
        assert_eq!(
            files.call("c1", "Read", Some(&read)).exposes,
            Some(Exposes::File)
        );
        let shown = Json::parse(r#"{"command":["bash","-lc","cat .env"]}"#).unwrap();
        assert!(files.call("c2", "shell", Some(&shown)).exposes.is_some());
        assert!(files.result("c2", "shell", None).exposes.is_some());
    }

    #[test]
    fn a_patch_keeps_the_files_it_names() {
        let text = "x <<E\n*** Begin Patch\n*** Update File: a.rs\n@@\n-old\n+new\n*** Add File: b\n+b\n*** End Patch\nE";
        let cuts = patch(text);
        let gone: Vec<&str> = cuts.iter().map(|cut| &text[cut.span.clone()]).collect();
        assert_eq!(gone, ["@@\n-old\n+new", "+b"]);
        assert_eq!(cuts[0].placeholder, "[REDACTED:file-contents-3-lines]");
        assert!(patch("nothing").is_empty());
    }
}
