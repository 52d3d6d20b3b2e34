//! The JSON that commands write: the documents of `quipu-api`. Those of the store are filled by `quipu_store::documents`.

use std::borrow::Cow;
use std::io;

use quipu_api::repair;
use quipu_api::repair::MendedTranscript;
use quipu_api::verify::CheckedTranscript;
use quipu_exchange::verify::{Finding, Report};
use quipu_model::RunId;
use quipu_record::Mended;
pub(crate) use quipu_store::documents::{counts, forest, import, path, problem, transcript};
use serde::Serialize;

use crate::terminal::is_active;

/// JSON as it goes out: characters that a terminal might act on, or that make text look like other text,
/// are written as escapes. To a reader of JSON it is the same.
pub(crate) fn escape(text: &str) -> Cow<'_, str> {
    // White space between values is no part of a text.
    let is_escaped = |c: char| is_active(c) && c != '\r';
    if !text.contains(is_escaped) {
        return Cow::Borrowed(text);
    }
    let mut escaped = String::with_capacity(text.len() + 16);
    let mut units = [0; 2];
    for c in text.chars() {
        if is_escaped(c) {
            for unit in c.encode_utf16(&mut units) {
                escaped.push_str("\\u");
                let digits = [12, 8, 4, 0].map(|shift| u32::from(*unit >> shift & 15));
                escaped.extend(digits.map(|digit| char::from_digit(digit, 16).unwrap_or('0')));
            }
        } else {
            escaped.push(c);
        }
    }
    Cow::Owned(escaped)
}

/// A document, over several lines.
pub(crate) fn document(value: &impl Serialize) -> io::Result<String> {
    // By way of a value, so that keys are in the order of the alphabet.
    let value = serde_json::to_value(value)?;
    Ok(escape(&format!("{value:#}")).into_owned())
}

/// A document on one line.
pub(crate) fn line(value: &impl Serialize) -> io::Result<String> {
    let value = serde_json::to_value(value)?;
    Ok(escape(&value.to_string()).into_owned())
}

pub(crate) fn report(path: &str, report: &Report) -> CheckedTranscript {
    let counts = report.counts.iter();
    CheckedTranscript {
        file: path.to_owned(),
        clean: report.is_clean(),
        run_id: report.run_id.as_ref().map(id),
        parent_run_id: report.parent_run_id.as_ref().map(id),
        children: report.children.iter().map(|it| id(&it.run_id)).collect(),
        events: report.events,
        last_seq: report.last_seq,
        bytes: report.bytes,
        counts: self::counts(counts.map(|(rule, n)| (rule.name(), *n))),
        findings: report.findings.iter().map(finding).collect(),
    }
}

fn id(id: &RunId) -> String {
    id.as_str().to_owned()
}

fn finding(finding: &Finding) -> quipu_api::verify::Finding {
    quipu_api::verify::Finding {
        rule: finding.rule.name().to_owned(),
        severity: finding.rule.severity().to_string(),
        line: finding.at.map(|at| at.line),
        offset: finding.at.map(|at| at.offset),
        seq: finding.seq,
        message: finding.message.clone(),
        hint: finding.rule.hint().map(str::to_owned),
    }
}

pub(crate) fn mended(file: &str, mended: &Mended) -> MendedTranscript {
    let set_aside = mended.set_aside.as_ref();
    MendedTranscript {
        file: file.to_owned(),
        mended: !mended.is_empty(),
        ended_line: mended.ended_line,
        made_private_from: mended.made_private.map(|mode| format!("{mode:o}")),
        set_aside: set_aside.map(|torn| repair::SetAside {
            offset: torn.offset,
            bytes: torn.bytes,
            file: path(&torn.path),
        }),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn what_a_terminal_might_act_on_is_escaped_and_reads_the_same() {
        let text = "a\u{9b}b\u{7f}c\u{202e}d\u{200d}e\u{e0041}f\n\té🙂\x1b";
        let value = json!({ text: [text] });
        for written in [document(&value).unwrap(), line(&value).unwrap()] {
            assert!(!written.contains(is_active), "{written:?}");
            assert!(written.contains("a\\u009bb\\u007fc\\u202ed\\u200de\\udb40\\udc41f\\n\\té🙂"));
            assert_eq!(serde_json::from_str::<Value>(&written).unwrap(), value);
        }
        assert_eq!(escape("{\r\n}"), "{\r\n}");
    }
}
