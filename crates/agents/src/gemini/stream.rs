//! What Gemini CLI writes to standard output.

use std::borrow::Cow;

use quipu_model::json::Node;
use quipu_model::{NoteKind, Status, Timestamp, Usage};
use serde::{Deserialize, Serialize};

use super::parts;
use super::wire::{Counts, disjoint};
use crate::session::learn;
use crate::{Dropped, Entry, Out, Reader, Session, Text, What, time};

/// How much of an answer is held at most. A longer one becomes several messages.
const LONGEST: usize = 16 << 20;

/// Reads `-o stream-json`, and `-o json`.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct Stream {
    session: Session,
    model: Option<String>,
    /// What of an answer has come so far.
    answer: Option<Answer>,
}

#[derive(Debug, Serialize, Deserialize)]
struct Answer {
    text: String,
    /// In microseconds since 1970.
    at: Option<i64>,
}

impl Stream {
    fn event(&mut self, record: Node<'_>, out: &mut Out<'_>) {
        let kind = record.text("type").unwrap_or_default();
        let at = time::field(record, "timestamp");
        if kind == "message" {
            return self.message(record, out);
        }
        self.flush(out);
        match &*kind {
            "init" => {
                out.check(
                    "init",
                    record,
                    &["type", "timestamp", "session_id", "model"],
                );
                learn(&mut self.session.id, || record.text("session_id"));
                self.model = record
                    .text("model")
                    .filter(|model| !model.is_empty() && *model != "auto")
                    .map(Cow::into_owned);
                out.push(Entry {
                    at,
                    ..Entry::keep(NoteKind::Session, record)
                });
            }
            "tool_use" => {
                const FIELDS: &[&str] =
                    &["type", "timestamp", "tool_name", "tool_id", "parameters"];
                out.check("tool_use", record, FIELDS);
                let mut attachments = Vec::new();
                let input = record
                    .get("parameters")
                    .map(|input| out.value(input, &mut attachments));
                out.push(Entry {
                    at,
                    attachments,
                    model: self.model.as_deref().map(Cow::Borrowed),
                    ..Entry::new(What::Call {
                        name: record.text("tool_name").unwrap_or_default(),
                        id: record.text("tool_id").unwrap_or_default(),
                        input,
                    })
                });
            }
            "tool_result" => tool_result(record, out),
            "error" => out.push(Entry {
                at,
                ..Entry::new(What::Note {
                    kind: NoteKind::Error,
                    text: record.get("message").and_then(Text::of),
                    raw: Some(record.into()),
                })
            }),
            "result" => self.result(record, out),
            other => out.unknown_type("stream", other),
        }
    }

    fn message(&mut self, record: Node<'_>, out: &mut Out<'_>) {
        const FIELDS: &[&str] = &["type", "timestamp", "role", "content", "delta", "toolCalls"];
        out.check("stream.message", record, FIELDS);
        let text = record
            .get("content")
            .and_then(Text::of)
            .unwrap_or(Text::EMPTY);
        let user = record.get("role").is_some_and(|role| role.is("user"));
        let delta = record.get("delta").and_then(|n| n.as_bool()) == Some(true);
        if delta && !user {
            let answer = self.answer.get_or_insert_with(|| Answer {
                text: String::new(),
                at: time::field(record, "timestamp").map(Timestamp::as_microsecond),
            });
            answer.text.push_str(&text.read());
            if answer.text.len() >= LONGEST {
                return self.flush(out);
            }
            return out.skip(Dropped::StreamDelta);
        }
        self.flush(out);
        let at = time::field(record, "timestamp");
        let mut calls = record
            .get("toolCalls")
            .into_iter()
            .flat_map(Node::items)
            .peekable();
        let what = if user {
            What::User(text)
        } else {
            What::Assistant(text)
        };
        if calls.peek().is_none() || record.get("content").is_some() {
            out.push(Entry {
                at,
                model: self.model.as_deref().filter(|_| !user).map(Cow::Borrowed),
                ..Entry::new(what)
            });
        }
        for call in calls {
            const FIELDS: &[&str] = &["id", "name", "args", "arguments"];
            out.check("stream.toolCall", call, FIELDS);
            let mut attachments = Vec::new();
            let input = call.get("arguments").or(call.get("args"));
            let input = input.map(|input| out.value(input, &mut attachments));
            out.push(Entry {
                at,
                attachments,
                model: self.model.as_deref().map(Cow::Borrowed),
                ..Entry::new(What::Call {
                    name: call.text("name").unwrap_or_default(),
                    id: call.text("id").unwrap_or_default(),
                    input,
                })
            });
        }
    }

    /// Gives on the answer that has come so far.
    fn flush(&mut self, out: &mut Out<'_>) {
        if let Some(answer) = self.answer.take() {
            out.push(Entry {
                at: answer
                    .at
                    .and_then(|at| Timestamp::from_microsecond(at).ok()),
                model: self.model.as_deref().map(Cow::Borrowed),
                ..Entry::new(What::Assistant(answer.text.into()))
            });
        }
    }

    /// The end, with the vendor's own sums.
    fn result(&mut self, record: Node<'_>, out: &mut Out<'_>) {
        const FIELDS: &[&str] = &["type", "timestamp", "status", "stats", "error"];
        out.check("stream.result", record, FIELDS);
        let stats = record.get("stats");
        let failed = record
            .get("status")
            .is_some_and(|status| status.is("error"));
        let why = record.path(&["error", "message"]).and_then(Text::of);
        let end = Entry {
            at: time::field(record, "timestamp"),
            duration_ms: stats.and_then(|s| s.get("duration_ms")?.as_u64()),
            ..Entry::new(What::Note {
                kind: if failed {
                    NoteKind::Error
                } else {
                    NoteKind::Session
                },
                text: why,
                raw: Some(record.into()),
            })
        };
        let total = stats.and_then(stream_stats);
        self.sums(
            end,
            total,
            stats.and_then(|s| s.get("models")),
            stream_stats,
            out,
        );
    }

    /// Notes what each model was used for, or all of them together.
    fn sums<'a>(
        &mut self,
        mut end: Entry<'a>,
        total: Option<Usage>,
        models: Option<Node<'a>>,
        read: fn(Node<'_>) -> Option<Usage>,
        out: &mut Out<'_>,
    ) {
        let each: Vec<(Cow<'a, str>, Usage)> = models
            .into_iter()
            .flat_map(Node::fields)
            .filter_map(|(name, node)| Some((name.to_text_lossy(), read(node)?)))
            .collect();
        let mut sum = Usage::default();
        for (_, usage) in &each {
            sum.add(usage);
        }
        let total = total.or((!each.is_empty()).then_some(sum));
        if let Some(total) = total {
            self.session.vendor_usage = Some(total.into());
        }
        if each.is_empty() || Some(sum) != total {
            end.usage = total;
            end.model = self
                .model
                .as_deref()
                .map(|model| Cow::Owned(model.to_owned()));
            out.push(end);
            return;
        }
        let at = end.at;
        out.push(end);
        for (model, usage) in each {
            out.push(Entry {
                at,
                usage: Some(usage),
                model: Some(model),
                ..Entry::new(What::Note {
                    kind: NoteKind::Usage,
                    text: None,
                    raw: None,
                })
            });
        }
    }

    /// The one object of `-o json`.
    fn answer(&mut self, document: Node<'_>, out: &mut Out<'_>) {
        const FIELDS: &[&str] = &["session_id", "response", "stats", "error", "warnings"];
        out.check("answer", document, FIELDS);
        learn(&mut self.session.id, || document.text("session_id"));
        if let Some(text) = document.get("response").and_then(Text::of) {
            out.push(Entry::new(What::Assistant(text)));
        }
        let error = document.get("error").filter(|error| !error.is_null());
        if let Some(error) = error {
            let text = error.get("message").and_then(Text::of).or(Text::of(error));
            out.push(match text {
                Some(text) => Entry::note(NoteKind::Error, text),
                None => Entry::keep(NoteKind::Error, error),
            });
        }
        let stats = document.get("stats").unwrap_or(document);
        let end = Entry::keep(NoteKind::Session, stats);
        self.sums(end, None, stats.get("models"), model_tokens, out);
    }
}

fn tool_result(record: Node<'_>, out: &mut Out<'_>) {
    const FIELDS: &[&str] = &["type", "timestamp", "tool_id", "status", "output", "error"];
    out.check("tool_result", record, FIELDS);
    let failed = record
        .get("status")
        .is_some_and(|status| status.is("error"));
    let mut attachments = Vec::new();
    let output = record.get("output").filter(|output| !output.is_null());
    let error = record.get("error").filter(|error| !error.is_null());
    let kind = error
        .and_then(|error| error.text("type"))
        .unwrap_or_default();
    let why = error.and_then(|error| error.get("message").and_then(Text::of).or(Text::of(error)));
    let (output, why) = match (output, why) {
        (Some(output), None) if failed => (None, Text::of(output)),
        (output, why) => (
            output.map(|output| parts::value(output, &mut attachments, out)),
            why,
        ),
    };
    let why = why.or(failed.then_some(Text::Plain(Cow::Borrowed("failed"))));
    let status = why.is_some().then(|| {
        let kind = kind.to_ascii_lowercase();
        let is = |words: [&str; 4]| words.iter().any(|word| kind.contains(word));
        if is(["cancel", "denied", "reject", "permission"]) {
            Status::Denied
        } else if is(["timeout", "timed", "time_out", "deadline"]) {
            Status::Timeout
        } else {
            Status::Error
        }
    });
    out.push(Entry {
        at: time::field(record, "timestamp"),
        status,
        attachments,
        ..Entry::new(What::Result {
            name: Cow::Borrowed(""),
            id: record.text("tool_id").unwrap_or_default(),
            output,
            error: why,
        })
    });
}

/// Sums of the stream. Thoughts are not named, but they are in the total.
fn stream_stats(stats: Node<'_>) -> Option<Usage> {
    let count = |key: &str| stats.get(key).and_then(|n| n.as_u64());
    let (prompt, candidates) = (count("input_tokens"), count("output_tokens"));
    let thoughts = count("total_tokens").map(|total| {
        total
            .saturating_sub(prompt.unwrap_or(0))
            .saturating_sub(candidates.unwrap_or(0))
    });
    disjoint(&Counts {
        prompt,
        cached: count("cached"),
        candidates,
        thoughts,
        tool: None,
    })
}

/// Sums of one model of `-o json`.
fn model_tokens(model: Node<'_>) -> Option<Usage> {
    let tokens = model.get("tokens")?;
    let count = |key: &str| tokens.get(key).and_then(|n| n.as_u64());
    disjoint(&Counts {
        prompt: count("prompt"),
        cached: count("cached"),
        candidates: count("candidates"),
        thoughts: count("thoughts"),
        tool: count("tool"),
    })
}

impl Reader for Stream {
    fn record(&mut self, record: Node<'_>, out: &mut Out<'_>) {
        if out.in_record() {
            self.event(record, out);
        } else {
            out.within(record, |out, record| self.answer(record, out));
        }
    }

    fn finish(&mut self, out: &mut Out<'_>) {
        self.flush(out);
    }

    crate::state::keeps_session!();
}
