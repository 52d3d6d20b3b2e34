//! The JSON that commands write: the documents of `quipu-api`, filled with what the libraries say.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::io;
use std::path::Path;

use quipu_api::import::{Import, ImportedAgent};
use quipu_api::repair::MendedTranscript;
use quipu_api::transcript::Transcript;
use quipu_api::verify::CheckedTranscript;
use quipu_api::{Time, repair, transcript, tree};
use quipu_exchange::verify::{Finding, Report};
use quipu_model::tree::{Forest, Link, Node, Placed, RunTree, Span, State, Tally};
use quipu_model::{RunId, ToolCallId, Usage};
use quipu_record::Mended;
use quipu_store::catalogue::TranscriptRow;
use quipu_store::import::{Problem, Report as ImportReport};
use serde::Serialize;

use crate::terminal::is_active;
use crate::when;

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

/// A path as documents have it.
pub(crate) fn path(path: &Path) -> String {
    path.display().to_string()
}

/// How often each of them, by name.
pub(crate) fn counts<N: ToString>(
    counts: impl IntoIterator<Item = (N, u64)>,
) -> BTreeMap<String, u64> {
    let named = counts.into_iter().map(|(name, n)| (name.to_string(), n));
    named.collect()
}

/// What an import did.
pub(crate) fn import(report: &ImportReport) -> Import {
    let agents = report.agents.iter().map(|(name, agent)| {
        let agent = ImportedAgent {
            files: agent.files,
            sessions: agent.sessions,
            records: agent.records,
            mapped: agent.mapped,
            noted: agent.noted,
            events: agent.events,
            notes: agent.notes,
            dropped: counts(agent.dropped.clone()),
            mended: counts(agent.mended.clone()),
            unknown: agent.unknown,
            left_out: agent.left_out,
        };
        (name.clone(), agent)
    });
    Import {
        files: report.files,
        unchanged: report.unchanged,
        read: report.read,
        kept: report.kept,
        unknown: report.unknown,
        empty: report.empty,
        credentials: report.credentials,
        bytes: report.bytes,
        new_bytes: report.new_bytes,
        copies: report.copies,
        index_anew: report.index_anew.clone(),
        kept_again: report.kept_again,
        lost: report.lost,
        agents: agents.collect(),
        problems: report.problems.iter().map(problem).collect(),
        unknown_files: report.unknown_examples.iter().map(|it| path(it)).collect(),
    }
}

pub(crate) fn problem(problem: &Problem) -> quipu_api::import::Problem {
    quipu_api::import::Problem {
        path: path(&problem.path),
        what: problem.what.clone(),
        count: problem.count,
    }
}

/// All that the catalogue says of a transcript.
pub(crate) fn transcript(row: &TranscriptRow) -> Transcript {
    let at = |millis: Option<i64>| millis.and_then(when::of_millis).map(Time::of);
    let figures = &row.figures;
    Transcript {
        id: Some(row.address.clone()).filter(|address| !address.is_empty()),
        run_id: row.run_id.clone(),
        native: row.native.clone(),
        agent: row.agent.clone(),
        agent_version: row.agent_version.clone(),
        title: row.title.clone(),
        cwd: row.cwd.clone(),
        branch: row.branch.clone(),
        repository: row.repository.clone(),
        commit: row.commit.clone(),
        parent: row.parent.clone(),
        parent_call: row.parent_call.clone(),
        forked_from: row.forked_from.clone(),
        copy_of: row.copy_of.clone(),
        original: row.original.clone(),
        copied_events: row.copied_events,
        duplicate: row.duplicate,
        reconstructed: row.reconstructed,
        started_at: at(row.started_at),
        ended_at: at(row.ended_at),
        events: figures.events,
        notes: figures.notes,
        prompts: figures.prompts,
        replies: figures.replies,
        tool_calls: figures.tool_calls,
        failures: figures.failures,
        denials: figures.denials,
        errors: figures.errors,
        compactions: figures.compactions,
        attachments: figures.attachments,
        dangling: figures.dangling,
        orphans: figures.orphans,
        calls: figures.calls,
        models: row.models.clone(),
        usage: usage(&row.usage),
        vendor_usage: usage(&row.vendor_usage),
        vendor_cost: row.vendor_cost.clone(),
        path: path(&row.path),
        part: row.part.clone(),
        dialect: row.dialect.clone(),
        key: row.key.clone(),
        size: row.size,
        modified: row.modified.and_then(when::of_nanos).map(Time::of),
    }
}

fn usage(usage: &Usage) -> transcript::Usage {
    transcript::Usage {
        input: usage.input,
        cache_read: usage.cache_read,
        cache_write: usage.cache_write,
        output: usage.output,
        reasoning: usage.reasoning,
    }
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

pub(crate) fn forest(forest: &Forest) -> tree::Forest {
    let run = |(index, run): (usize, &RunTree)| {
        let nodes = run.nodes.iter().enumerate();
        tree::Run {
            run: index as u64,
            run_id: run.run_id.as_ref().map(id),
            parent_run_id: run.parent_run_id.as_ref().map(id),
            name: run.name.clone(),
            state: state(&run.state),
            error: error(&run.state),
            span: span(run.span),
            events: run.events,
            tally: tally(&run.tally),
            roots: indexes(&run.roots),
            steps: nodes
                .map(|(id, node)| step(id, node, forest.link(index, id)))
                .collect(),
        }
    };
    tree::Forest {
        whole: forest.is_whole(),
        runs: forest.runs.iter().enumerate().map(run).collect(),
    }
}

fn indexes(indexes: &[usize]) -> Vec<u64> {
    indexes.iter().map(|index| *index as u64).collect()
}

fn step(index: usize, node: &Node, link: Option<&Link>) -> tree::Step {
    tree::Step {
        step: index as u64,
        parent: node.parent.map(|parent| parent as u64),
        children: indexes(&node.children),
        path: node.place.path.clone(),
        iteration: node.place.iteration(),
        name: node.name.clone(),
        kind: node.kind.to_string(),
        state: state(&node.state),
        error: error(&node.state),
        started_seq: node.started_seq,
        ended_seq: node.ended_seq,
        span: span(node.span),
        tally: tally(&node.tally),
        placed: match node.placed {
            Placed::ByPath => tree::Placed::ByPath,
            Placed::Inferred => tree::Placed::Inferred,
            Placed::Ambiguous => tree::Placed::Ambiguous,
        },
        calls: node.calls.as_ref().map(id),
        link: link.map(|link| match link {
            Link::Run(run) => tree::Link::Run(*run as u64),
            Link::Missing(why) => tree::Link::Missing(why.clone()),
            Link::Cycle => tree::Link::Cycle(true),
        }),
    }
}

fn state(state: &State) -> tree::State {
    match state {
        State::Open => tree::State::Open,
        State::Done => tree::State::Done,
        State::Failed(_) => tree::State::Failed,
        State::Unmarked => tree::State::Unmarked,
    }
}

fn error(state: &State) -> Option<String> {
    match state {
        State::Failed(error) => Some(error.clone()),
        _ => None,
    }
}

fn span(span: Span) -> tree::Span {
    tree::Span {
        from: span.from.map(Time::of),
        to: span.to.map(Time::of),
        millis: span.millis(),
    }
}

fn tally(tally: &Tally) -> tree::Tally {
    let calls = |calls: &[(String, ToolCallId)]| -> Vec<tree::NamedCall> {
        let named = calls.iter().map(|(name, id)| tree::NamedCall {
            name: name.clone(),
            call_id: id.to_string(),
        });
        named.collect()
    };
    tree::Tally {
        messages: tally.messages,
        tool_calls: tally.tool_calls,
        tool_failures: tally.tool_failures,
        dangling: calls(&tally.dangling),
        orphans: calls(&tally.orphans),
        foreign: tally.foreign,
        inferred: tally.inferred,
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
