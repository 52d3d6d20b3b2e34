//! Patches that change secret files.

use std::ops::Range;

use memchr::memmem;

use super::is_sensitive;

/// Where, in a text, a patch shows what is in a secret file: the lines below the names of the files, without the
/// headers. Two kinds are known: that of `apply_patch` (`*** Update File: .env`) and unified diffs.
pub fn in_patch(text: &str) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    if memmem::find(text.as_bytes(), b"*** ").is_some() {
        sections(text, &mut found, |line| {
            let named = ["*** Update File: ", "*** Add File: ", "*** Delete File: "]
                .iter()
                .find_map(|head| line.strip_prefix(head));
            match named {
                Some(path) => Head::File(is_sensitive(path)),
                None if line.starts_with("*** ") => Head::Part(line.starts_with("*** End Patch")),
                None => Head::None,
            }
        });
    }
    if memmem::find(text.as_bytes(), b"+++ ").is_some() {
        sections(text, &mut found, |line| {
            if line.starts_with("diff --git ") {
                return Head::File(false);
            }
            if let Some(path) = line
                .strip_prefix("+++ ")
                .or_else(|| line.strip_prefix("--- "))
            {
                let path = path.split('\t').next().unwrap_or_default();
                let path = path
                    .strip_prefix("a/")
                    .or_else(|| path.strip_prefix("b/"))
                    .unwrap_or(path);
                return if line.starts_with('-') && path == "/dev/null" {
                    Head::Part(false)
                } else if line.starts_with('+') && path == "/dev/null" {
                    // A file that is deleted is named in the line before.
                    Head::Part(false)
                } else {
                    Head::File(is_sensitive(path))
                };
            }
            if line.starts_with("@@ ") {
                return Head::Part(false);
            }
            match line.as_bytes().first() {
                Some(b'+' | b'-' | b' ' | b'\\') | None => Head::None,
                _ => Head::Part(true),
            }
        });
    }
    found.sort_by_key(|range| (range.start, range.end));
    found.dedup_by(|next, before| {
        let inside = next.start < before.end;
        if inside {
            before.end = before.end.max(next.end);
        }
        inside
    });
    found
}

/// What a line of a patch is.
enum Head {
    /// It names the file that the lines below are of, which is a secret one or not.
    File(bool),
    /// It divides what is of one file, or ends it.
    Part(bool),
    /// It is one of the lines of the file.
    None,
}

fn sections(text: &str, found: &mut Vec<Range<usize>>, head: impl Fn(&str) -> Head) {
    let mut secret = false;
    let mut begin = None;
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        let bare = line.trim_end_matches(['\n', '\r']);
        let kind = head(bare);
        if !matches!(kind, Head::None) {
            close(text, &mut begin, at, found);
        }
        match kind {
            Head::File(is) => secret = is,
            Head::Part(true) => secret = false,
            Head::Part(false) => {}
            Head::None if secret && !bare.is_empty() => {
                begin.get_or_insert(at);
            }
            Head::None => {}
        }
        at += line.len();
    }
    close(text, &mut begin, text.len(), found);
}

fn close(text: &str, begin: &mut Option<usize>, end: usize, found: &mut Vec<Range<usize>>) {
    if let Some(begin) = begin.take() {
        let body = text[begin..end].trim_end_matches(['\n', '\r']);
        if !body.is_empty() {
            found.push(begin..begin + body.len());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str) -> Vec<&str> {
        in_patch(text)
            .into_iter()
            .map(|range| &text[range])
            .collect()
    }

    #[test]
    fn bodies_of_patches_of_secret_files() {
        let patch = "*** Begin Patch\n*** Update File: app/.env\n@@\n-A=1\n+A=2\n*** Update File: a.rs\n+fn a\n*** End Patch\nDone";
        assert_eq!(shown(patch), ["@@\n-A=1\n+A=2"]);
        let diff = "diff --git a/.env b/.env\nindex 1..2 100644\n--- a/.env\n+++ b/.env\n@@ -1 +1 @@\n-A=1\n+A=2\ndiff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1 +1 @@\n+B=2\n";
        assert_eq!(shown(diff), ["-A=1\n+A=2"]);
        let deleted = "--- a/.env\n+++ /dev/null\n@@ -1 +0,0 @@\n-A=1\n";
        assert_eq!(shown(deleted), ["-A=1"]);
        assert_eq!(shown("+++ b/a.rs\n+x\n*** nothing"), Vec::<&str>::new());
    }
}
