//! From an entry to its line.

use std::borrow::Cow;

use quipu_exchange::encode_log;
use quipu_model::{Event, Notes, Timestamp, Usage};

use super::Line;
use crate::{Charge, Entry, InRun, Position, Repeat, Text, Value, What, run_id, service_number};

/// Writes an entry as a line, without a line end, in the place of what was there. Values may have line ends in them.
pub fn write(seq: u64, at: Timestamp, position: Position, entry: &Entry<'_>, line: &mut Line) {
    line.clear();
    let mut writing = Writing { line };
    writing.number("{\"s\":", seq);
    writing.time(",\"a\":", at);
    writing.number(",\"o\":", position.offset);
    writing.number(",\"l\":", position.line);
    writing.what(&entry.what);
    writing.facts(at, entry);
    if let Some(in_run) = &entry.in_run {
        writing.in_run(in_run);
    }
    writing.key("}");
}

struct Writing<'o> {
    line: &'o mut Line,
}

impl Writing<'_> {
    fn key(&mut self, key: &str) {
        self.line.out().extend_from_slice(key.as_bytes());
    }

    fn number(&mut self, key: &str, number: impl serde::Serialize) {
        self.key(key);
        // A vector takes whatever is written to it.
        drop(serde_json::to_writer(self.line.out(), &number));
    }

    fn some(&mut self, key: &str, number: Option<impl serde::Serialize>) {
        if let Some(number) = number {
            self.number(key, number);
        }
    }

    /// A time: seconds and nanoseconds.
    fn time(&mut self, key: &str, at: Timestamp) {
        self.key(key);
        self.number("[", at.as_second());
        self.number(",", at.subsec_nanosecond());
        self.key("]");
    }

    fn string(&mut self, text: &str) {
        self.line.string(text);
    }

    fn word(&mut self, key: &str, word: Option<&Cow<'_, str>>) {
        if let Some(word) = word {
            self.key(key);
            self.string(word);
        }
    }

    fn text(&mut self, key: &str, text: &Text<'_>) {
        self.key(key);
        match text {
            Text::Raw(raw) => self.line.raw(raw.raw().get()),
            Text::Plain(text) => self.string(text),
        }
    }

    fn value(&mut self, key: &str, value: &Value<'_>) {
        match value {
            Value::Raw(raw) => {
                self.key(key);
                self.line.raw(raw.get());
            }
            Value::Text(text) => self.text(key, text),
            Value::Owned(json) => {
                self.key(key);
                self.key(json.get());
            }
        }
    }

    fn what(&mut self, what: &What<'_>) {
        match what {
            What::User(text) => self.text(",\"k\":\"u\",\"t\":", text),
            What::Assistant(text) => self.text(",\"k\":\"a\",\"t\":", text),
            What::Reasoning(text) => self.text(",\"k\":\"r\",\"t\":", text),
            What::System(text) => self.text(",\"k\":\"s\",\"t\":", text),
            What::Call { name, id, input } => {
                self.word(",\"k\":\"c\",\"n\":", Some(name));
                self.word(",\"i\":", Some(id));
                if let Some(input) = input {
                    self.value(",\"v\":", input);
                }
            }
            What::Result {
                name,
                id,
                output,
                error,
            } => {
                self.word(",\"k\":\"d\",\"n\":", Some(name));
                self.word(",\"i\":", Some(id));
                if let Some(output) = output {
                    self.value(",\"v\":", output);
                }
                if let Some(error) = error {
                    self.text(",\"x\":", error);
                }
            }
            What::Note { kind, text, raw } => {
                self.key(",\"k\":\"n\",\"q\":");
                self.string(kind.as_str());
                if let Some(text) = text {
                    self.text(",\"t\":", text);
                }
                if let Some(raw) = raw {
                    self.value(",\"v\":", raw);
                }
            }
        }
    }

    fn facts(&mut self, at: Timestamp, entry: &Entry<'_>) {
        match entry.at {
            Some(own) if own == at => self.key(",\"d\":1"),
            Some(own) => self.time(",\"d\":", own),
            None => {}
        }
        match entry.when {
            Some(when) if when == at => self.key(",\"w\":1"),
            Some(when) => self.time(",\"w\":", when),
            None => {}
        }
        self.word(",\"id\":", entry.native_id.as_ref());
        self.word(",\"p\":", entry.parent_id.as_ref());
        self.word(",\"sa\":", entry.subagent.as_ref());
        self.word(",\"m\":", entry.model.as_ref());
        self.word(",\"mc\":", entry.model_call.as_ref());
        self.word(",\"sr\":", entry.stop_reason.as_ref());
        self.word(",\"ch\":", entry.child.as_ref());
        self.usage(",\"us\":", entry.usage.as_ref());
        self.some(",\"ca\":", entry.calls);
        self.some(",\"co\":", entry.cost.map(quipu_model::Money::atto));
        self.some(",\"se\":", entry.searches);
        let service = service_number(entry.service);
        self.some(",\"sv\":", (service != 0).then_some(service));
        self.some(",\"ms\":", entry.duration_ms);
        if let Some(status) = entry.status {
            self.key(",\"st\":");
            self.string(status.as_str());
        }
        for (nth, attachment) in entry.attachments.iter().enumerate() {
            self.key(if nth == 0 { ",\"at\":[[" } else { ",[" });
            self.string(&attachment.mime);
            self.number(",", attachment.bytes);
            self.key(",");
            self.string(&attachment.sha256);
            self.key("]");
        }
        if !entry.attachments.is_empty() {
            self.key("]");
        }
        entry.extra.write(",\"ex\":", self.line);
        let flags = [
            entry.opaque,
            entry.synthetic,
            entry.superseded,
            entry.as_told,
            entry.begins_call,
        ];
        let flags = (0..).zip(flags).map(|(bit, flag)| u32::from(flag) << bit);
        let flags: u32 = flags.sum();
        self.some(",\"f\":", (flags != 0).then_some(flags));
        if let Some(voids) = &entry.voids {
            self.number(",\"vo\":[", voids.start);
            self.number(",", voids.end);
            self.key("]");
        }
        self.some(",\"un\":", entry.unit);
        self.usage(",\"rp\":", entry.repeats.as_ref());
        self.charge(",\"cg\":", entry.charge.as_ref());
        self.some(
            ",\"am\":",
            (entry.active_ms != 0).then_some(entry.active_ms),
        );
        if let Some(missed) = &entry.missed {
            self.number(",\"mi\":[", u8::from(missed.pause));
            self.usage(",", Some(&missed.tokens.into()));
            self.key("]");
        }
        if let Some(Repeat { retry, blamed }) = &entry.repeat {
            self.number(",\"re\":[", u8::from(*retry));
            if let Some((charge, tokens)) = blamed {
                self.charge(",", Some(charge));
                self.usage(",", Some(&(*tokens).into()));
            }
            self.key("]");
        }
    }

    fn usage(&mut self, key: &str, usage: Option<&Usage>) {
        let Some(usage) = usage else { return };
        self.key(key);
        let buckets = [
            usage.input,
            usage.cache_read,
            usage.cache_write,
            usage.cache_write_1h,
            usage.output,
            usage.reasoning,
        ];
        for (nth, bucket) in buckets.into_iter().enumerate() {
            let before = if nth == 0 { "[" } else { "," };
            self.number(before, bucket);
        }
        self.key("]");
    }

    fn charge(&mut self, key: &str, charge: Option<&Charge>) {
        let Some(charge) = charge else { return };
        self.key(key);
        match charge.slot {
            Some(slot) => self.number("[", slot),
            None => self.key("[null"),
        }
        match &charge.model {
            Some(model) => {
                self.key(",");
                self.string(model);
            }
            None => self.key(",null"),
        }
        self.number(",", service_number(charge.service));
        self.number(",", charge.context);
        self.number(",", u8::from(charge.told));
        self.key("]");
    }

    /// What only runs have. An event of the exchange format says it.
    fn in_run(&mut self, in_run: &InRun) {
        let InRun {
            place,
            body,
            source,
        } = in_run;
        self.key(",\"run\":{\"place\":[");
        self.string(&place.path);
        self.number(",", place.attempt);
        for iteration in &place.iterations {
            self.number(",", *iteration);
        }
        self.key("]");
        if let Some(body) = body {
            self.key(",\"body\":");
            let event = Event {
                seq: 1,
                run_id: run_id("run"),
                parent_run_id: None,
                timestamp: Timestamp::UNIX_EPOCH,
                place: place.clone(),
                body: body.clone(),
                annotations: Notes::default().into(),
            };
            encode_log(&event, self.line.out());
        }
        if let Some(source) = source {
            self.key(",\"source\":[");
            self.string(&source.file);
            self.number(",", source.offset);
            self.number(",", source.line);
            self.key("]");
        }
        self.key("}");
    }
}
