//! What a log means.

use std::borrow::Cow;

use quipu_model::NoteKind;
use quipu_model::json::{Kind, Node};
use serde::{Deserialize, Serialize};

use super::said::{About, Telling};
use super::wire::{self, Attachments};
use crate::cost::Cost;
use crate::session::learn;
use crate::{Dropped, Entry, Out, Reader, Session, Text, What, blocks, capture, time};

/// Reads a log, or a sample of one.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct Log {
    session: Session,
    /// What was evaluated, for the ids of samples.
    eval: Option<String>,
    cost: Option<Cost>,
    samples: u64,
}

impl Log {
    /// What the log says of itself.
    fn spec(&mut self, eval: Node<'_>) {
        let id = capture::id(eval, "eval_id").or_else(|| capture::id(eval, "task_id"));
        self.eval = id.as_deref().map(str::to_owned);
        learn(&mut self.session.id, || id);
        learn(&mut self.session.title, || eval.text("task"));
        learn(&mut self.session.version, || {
            eval.get("packages")?.text("inspect_ai")
        });
        if let Some(revision) = eval.get("revision") {
            learn(&mut self.session.commit, || revision.text("commit"));
            learn(&mut self.session.repository, || revision.text("origin"));
        }
        let began = time::field(eval, "created").map(quipu_model::Timestamp::as_millisecond);
        self.session.started_at = self.session.started_at.or(began);
    }

    fn field(&mut self, key: &str, value: Node<'_>, out: &mut Out<'_>) {
        match key {
            "eval" => self.spec(value),
            "error" if value.kind() == Kind::Object => {
                return out.push(error(value));
            }
            _ if value.is_null() => return out.skip(Dropped::Empty),
            "version" | "status" | "plan" | "results" | "stats" | "reductions" | "invalidated"
            | "tags" | "metadata" | "location" | "etag" | "log_updates" | "samples" => {}
            other => out.unknown_type("log", other),
        }
        let entry = blocks::kept(NoteKind::Session, value, out);
        out.push(entry);
    }

    fn sample(&mut self, sample: Node<'_>, alone: bool, out: &mut Out<'_>) {
        let epoch = sample.get("epoch").map_or("1", |epoch| epoch.raw().get());
        let id = sample
            .get("id")
            .map(|id| id.as_str().unwrap_or(id.raw().get().into()));
        let name = format!("{}_epoch_{epoch}", id.unwrap_or_default());
        self.samples += 1;
        if alone {
            let eval = self.eval.as_deref().unwrap_or("inspect");
            let made = || Some(Cow::Owned(format!("{eval}_{name}")));
            self.session.id = capture::id(sample, "uuid")
                .or_else(made)
                .map(Cow::into_owned);
            let began =
                time::field(sample, "started_at").map(quipu_model::Timestamp::as_millisecond);
            self.session.started_at = began.or(self.session.started_at);
        }
        let named = (!alone && self.samples > 1).then_some(name);
        let mut telling = Telling::new(Attachments::of(sample), named);
        let at = time::field(sample, "started_at");
        let about = [
            "id", "epoch", "target", "choices", "metadata", "limit", "setup", "files",
        ];
        let about = capture::pick(&[Some(sample)], &about);
        telling.put(
            capture::ended(NoteKind::Session, None::<&str>, about),
            at,
            out,
        );
        let events = sample.get("events").into_iter().flat_map(Node::items);
        let pool: Vec<Node<'_>> = sample
            .path(&["events_data", "messages"])
            .into_iter()
            .flat_map(Node::items)
            .collect();
        let (mut scored, mut counted) = (false, false);
        for event in events {
            let kind = event.text("event").unwrap_or_default();
            scored |= kind == "score";
            counted |= kind == "model";
            self.event(&kind, event, &pool, &mut telling, out);
        }
        // What no event told: all of it where there are none.
        let done = time::field(sample, "completed_at");
        let input = sample
            .get("input")
            .filter(|input| input.kind() == Kind::List);
        let said = input.into_iter().chain(sample.get("messages"));
        for message in said.flat_map(Node::items) {
            let about = About {
                at: done.filter(|_| counted),
                model: message.text("model"),
                ..About::default()
            };
            telling.message(message, &about, out);
        }
        self.ended(sample, scored, counted, &telling, out);
    }

    /// What is known of a sample at its end.
    fn ended<'a>(
        &mut self,
        sample: Node<'a>,
        scored: bool,
        counted: bool,
        telling: &Telling<'a>,
        out: &mut Out<'_>,
    ) {
        let done = time::field(sample, "completed_at");
        let models = sample.get("model_usage").into_iter().flat_map(Node::fields);
        for (model, node) in models.filter(|_| !counted) {
            self.spent(node);
            let entry = Entry {
                usage: wire::usage(node),
                model: Some(model.to_text_lossy()),
                ..Entry::keep(NoteKind::Usage, node)
            };
            telling.put(entry, done, out);
        }
        let scores = sample.get("scores").into_iter().flat_map(Node::fields);
        for (scorer, score) in scores.filter(|_| !scored) {
            telling.put(result(&scorer.to_text_lossy(), score), done, out);
        }
        if let Some(why) = sample.get("error").filter(|e| e.kind() == Kind::Object) {
            telling.put(error(why), done, out);
        }
    }

    fn spent(&mut self, usage: Node<'_>) {
        if let Some(cost) = usage.get("total_cost").and_then(Cost::of) {
            let sum = self.cost.get_or_insert_default();
            sum.add(cost);
            self.session.vendor_cost = Some(sum.to_text());
        }
    }

    fn event<'a>(
        &mut self,
        kind: &str,
        event: Node<'a>,
        pool: &[Node<'a>],
        telling: &mut Telling<'a>,
        out: &mut Out<'_>,
    ) {
        let at = time::field(event, "timestamp");
        let pending = event.get("pending").and_then(|n| n.as_bool()) == Some(true);
        let entry = match kind {
            "model" if !pending => return self.model(event, pool, telling, out),
            "tool" if !pending => return telling.tool(event, at, out),
            "model" | "tool" => Entry::keep(NoteKind::Progress, event),
            "score" => {
                let scorer = event.text("scorer").unwrap_or_default();
                let score = event.get("score").unwrap_or(event);
                result(&scorer, score)
            }
            "error" => event
                .get("error")
                .map_or_else(|| Entry::keep(NoteKind::Error, event), error),
            // The messages in it are told where they are sent.
            "sample_init" | "state" => Entry::new(What::Note {
                kind: NoteKind::Context,
                text: None,
                raw: elsewhere(event).map(Into::into),
            }),
            "span_begin" if event.get("type").is_some_and(|kind| kind.is("agent")) => {
                named(NoteKind::Subagent, event)
            }
            "span_begin" | "span_end" | "step" => named(NoteKind::Turn, event),
            "subtask" => named(NoteKind::Subagent, event),
            "compaction" => Entry::keep(NoteKind::Compaction, event),
            "approval" => Entry::keep(NoteKind::Permission, event),
            "sandbox" | "logger" | "info" | "input" | "store" | "score_edit" | "checkpoint"
            | "interrupt" | "anchor" => Entry::keep(
                if kind == "sandbox" || kind == "logger" {
                    NoteKind::Progress
                } else {
                    NoteKind::Session
                },
                event,
            ),
            "sample_limit" => Entry::new(What::Note {
                kind: NoteKind::Session,
                text: event
                    .get("message")
                    .and_then(|text| telling.attachments.text(text)),
                raw: Some(event.into()),
            }),
            "branch" => Entry::keep(NoteKind::Fork, event),
            other => {
                out.unknown_type("event", other);
                Entry::keep(NoteKind::UnknownRecord, event)
            }
        };
        let entry = Entry {
            native_id: capture::id(event, "uuid"),
            ..entry
        };
        telling.put(entry, at, out);
    }

    /// A call to a model: what it was given that is new, and what it gave back.
    fn model<'a>(
        &mut self,
        event: Node<'a>,
        pool: &[Node<'a>],
        telling: &mut Telling<'a>,
        out: &mut Out<'_>,
    ) {
        let at = time::field(event, "timestamp");
        let given = About {
            at,
            ..About::default()
        };
        for message in wire::input(event, pool) {
            telling.message(message, &given, out);
        }
        let output = event.get("output");
        let counts = output.and_then(|output| output.get("usage"));
        // A reply out of the cache of the program was paid for when it was made.
        let cached = event.get("cache").is_some_and(|cache| cache.is("read"));
        if let Some(counts) = counts.filter(|_| !cached) {
            self.spent(counts);
        }
        let about = About {
            at: time::field(event, "completed").or(at),
            model: event.text("model").or_else(|| output?.text("model")),
            call: capture::id(event, "uuid"),
            usage: counts.filter(|_| !cached).and_then(wire::usage),
            duration_ms: event.get("working_time").and_then(wire::millis),
        };
        let mut choices = output
            .and_then(|output| output.get("choices"))
            .into_iter()
            .flat_map(Node::items);
        let first = choices.next().and_then(|choice| choice.get("message"));
        if let Some(message) = first {
            telling.message(message, &about, out);
        } else {
            let entry = Entry {
                usage: about.usage,
                model: about.model.clone(),
                model_call: about.call.clone(),
                ..Entry::keep(NoteKind::ModelCall, output.unwrap_or(event))
            };
            telling.put(entry, about.at, out);
        }
        for other in choices {
            telling.put(Entry::keep(NoteKind::ModelCall, other), about.at, out);
        }
        if let Some(why) = event
            .get("error")
            .or_else(|| output?.get("error"))
            .filter(|e| !e.is_null())
        {
            telling.put(error(why), about.at, out);
        }
    }
}

/// What an event says beside the messages it repeats: nothing, unless something else changed.
fn elsewhere(event: Node<'_>) -> Option<Node<'_>> {
    let mut changes = event.get("changes")?.items();
    let repeats = |change: Node<'_>| {
        change
            .text("path")
            .is_some_and(|path| path.starts_with("/messages") || path.starts_with("/output"))
    };
    changes.any(|change| !repeats(change)).then_some(event)
}

fn named(kind: NoteKind, event: Node<'_>) -> Entry<'_> {
    Entry::new(What::Note {
        kind,
        text: event.get("name").and_then(Text::of),
        raw: Some(event.into()),
    })
}

/// What a scorer found.
fn result<'a>(scorer: &str, score: Node<'a>) -> Entry<'a> {
    let value = score.get("value");
    let value = value.map(|value| value.as_str().unwrap_or(value.raw().get().into()));
    Entry::new(What::Note {
        kind: NoteKind::Session,
        text: Some(Text::from(format!(
            "score {scorer}: {}",
            value.unwrap_or_default()
        ))),
        raw: Some(score.into()),
    })
}

fn error(error: Node<'_>) -> Entry<'_> {
    Entry::new(What::Note {
        kind: NoteKind::Error,
        text: Text::of(error).or_else(|| error.get("message").and_then(Text::of)),
        raw: Some(error.into()),
    })
}

impl Reader for Log {
    /// A line: what an archive says of itself, or a sample.
    fn record(&mut self, record: Node<'_>, out: &mut Out<'_>) {
        if let Some(log) = record.get("inspect_log") {
            if let Some(eval) = log.get("eval") {
                self.spec(eval);
            }
            let entry = blocks::kept(NoteKind::Session, log, out);
            out.push(entry);
        } else if let Some(sample) = record.get("inspect_sample") {
            self.sample(sample, true, out);
        }
    }

    fn lists(&self) -> &'static [&'static str] {
        &["samples"]
    }

    fn part(&mut self, key: &str, index: Option<u64>, value: Node<'_>, out: &mut Out<'_>) {
        if key == "samples" && index.is_some() {
            self.sample(value, false, out);
        } else {
            self.field(key, value, out);
        }
    }

    crate::state::keeps_session!();
}
