//! Events of a run, whatever file they are in: the journal of a run directory, or a transcript that Quipu recorded.

use std::fmt;
use std::str::FromStr;

use quipu_formats::flow::time;
use quipu_model::Timestamp;
use serde_json::{Map, Value, json};

use super::own::Own;

/// Which event of a run it is. The number that the run gave it; where it has none or an old one, the number before it
/// and how many lines behind that one. In a journal without numbers, the line. So ids only go up, and the same file always
/// has the same ones.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Id {
    seq: u64,
    behind: u64,
}

impl fmt::Display for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.behind {
            0 => write!(f, "{}", self.seq),
            behind => write!(f, "{}.{behind}", self.seq),
        }
    }
}

/// A text is not the id of an event.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct NotAnId;

impl FromStr for Id {
    type Err = NotAnId;

    fn from_str(text: &str) -> Result<Self, NotAnId> {
        let (seq, behind) = text.split_once('.').unwrap_or((text, "0"));
        let number = |text: &str| {
            let fits = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
            let number = fits.then(|| text.parse().ok()).flatten();
            number.ok_or(NotAnId)
        };
        Ok(Self {
            seq: number(seq)?,
            behind: number(behind)?,
        })
    }
}

/// An event of a run.
#[derive(Debug, Clone)]
pub(super) struct Record {
    pub(super) id: Id,
    /// The number that the run gave it.
    pub(super) seq: Option<u64>,
    pub(super) event_id: Option<String>,
    pub(super) run_id: String,
    /// When, if that can be read.
    pub(super) at: Option<Timestamp>,
    /// When, as it was written.
    pub(super) ts: Option<String>,
    pub(super) kind: String,
    pub(super) flow: Option<String>,
    pub(super) step: Option<String>,
    pub(super) agent: Option<String>,
    pub(super) payload: Value,
}

/// A time as Python writes it: UTC with `+00:00`, and no fraction where it is none.
pub(super) fn iso(at: Timestamp) -> String {
    let text = time::format(at);
    let text = text.strip_suffix('Z').unwrap_or(&text);
    let text = text.strip_suffix(".000000").unwrap_or(text);
    format!("{text}+00:00")
}

impl Record {
    /// The time as it is served: well formed where it can be read, otherwise as it was written.
    pub(super) fn time(&self) -> Option<String> {
        self.at.map(iso).or_else(|| self.ts.clone())
    }

    /// The event as the list of events has it.
    pub(super) fn listed(&self) -> Value {
        json!({
            "run_id": self.run_id,
            "ts": self.time(),
            "kind": self.kind,
            "flow_key": self.flow,
            "step_id": self.step,
            "agent_key": self.agent,
            "payload": self.payload,
            "seq": self.seq,
            "event_id": self.event_id,
            "id": self.id.to_string(),
        })
    }

    /// The event as the stream has it: with its type, and with the names that the page's own client looks for.
    pub(super) fn streamed(&self) -> Value {
        let mut data = self.listed();
        if let Value::Object(fields) = &mut data {
            for (name, value) in [
                ("type", Value::from(self.kind.clone())),
                ("timestamp", self.time().into()),
                ("runId", self.run_id.clone().into()),
                ("flowKey", self.flow.clone().into()),
                ("stepId", self.step.clone().into()),
            ] {
                fields.insert(name.to_owned(), value);
            }
        }
        data
    }

    /// A text of the payload.
    pub(super) fn said(&self, key: &str) -> Option<&str> {
        self.payload
            .get(key)?
            .as_str()
            .filter(|text| !text.is_empty())
    }

    /// A number of the payload.
    pub(super) fn count(&self, key: &str) -> Option<u64> {
        self.payload.get(key)?.as_u64()
    }
}

/// Reads the lines of a file of events, from its first on.
#[derive(Debug)]
pub(super) struct Reader {
    form: Form,
    run: String,
    line: u64,
    last: Id,
    /// Whether the events have numbers: whether the first has one.
    numbered: Option<bool>,
    /// Lines that are not events.
    pub(super) malformed: u64,
}

#[derive(Debug)]
enum Form {
    Journal,
    Own(Own),
}

impl Reader {
    /// Of the journal of a run directory.
    pub(super) fn journal(run: &str) -> Self {
        Self::new(run, Form::Journal)
    }

    /// Of a transcript that Quipu recorded.
    pub(super) fn recorded(run: &str) -> Self {
        Self::new(run, Form::Own(Own::default()))
    }

    fn new(run: &str, form: Form) -> Self {
        Self {
            form,
            run: run.to_owned(),
            line: 0,
            last: Id::default(),
            numbered: None,
            malformed: 0,
        }
    }

    /// The event on the next line; `None` where it has none.
    pub(super) fn take(&mut self, line: &[u8]) -> Option<Record> {
        self.line += 1;
        let text = String::from_utf8_lossy(line);
        let text = text.trim_start_matches('\u{feff}').trim();
        if text.is_empty() {
            return None;
        }
        let read = match &mut self.form {
            Form::Journal => journal(&self.run, text),
            Form::Own(own) => own.take(text),
        };
        let Some(mut record) = read else {
            self.malformed += 1;
            return None;
        };
        record.id = self.number(record.seq);
        Some(record)
    }

    /// Passes over a line that is too long to be read.
    pub(super) fn skip(&mut self) {
        self.line += 1;
        self.malformed += 1;
    }

    fn number(&mut self, seq: Option<u64>) -> Id {
        let numbered = *self.numbered.get_or_insert(seq.is_some());
        let seq = if numbered { seq } else { Some(self.line) };
        self.last = match seq.filter(|seq| *seq > self.last.seq) {
            Some(seq) => Id { seq, behind: 0 },
            None => Id {
                behind: self.last.behind + 1,
                ..self.last
            },
        };
        self.last
    }
}

/// Fields that a line of a journal has beside its payload.
const FIELDS: &[&str] = &[
    "event_id",
    "seq",
    "run_id",
    "ts",
    "kind",
    "flow_key",
    "step_id",
    "agent_key",
    "payload",
    "event",
    "timestamp",
];

/// An event of the journal of a run directory. There are two writers: one writes `kind` and `ts`, the other `event` and
/// `timestamp` with everything else beside them.
fn journal(run: &str, text: &str) -> Option<Record> {
    let Value::Object(mut fields) = serde_json::from_str(text).ok()? else {
        return None;
    };
    let word = |key: &str| {
        let text = fields.get(key).and_then(Value::as_str);
        text.filter(|text| !text.is_empty()).map(str::to_owned)
    };
    let kind = word("kind").or_else(|| word("event"))?;
    let ts = word("ts").or_else(|| word("timestamp"));
    let at = ts.as_deref().and_then(time::parse).map(|time| time.at);
    let mut record = Record {
        id: Id::default(),
        seq: fields.get("seq").and_then(Value::as_u64),
        event_id: word("event_id"),
        run_id: word("run_id").unwrap_or_else(|| run.to_owned()),
        at,
        ts,
        kind,
        flow: word("flow_key"),
        step: word("step_id"),
        agent: word("agent_key"),
        payload: Value::Null,
    };
    record.payload = if let Some(payload) = fields.remove("payload") {
        payload
    } else {
        let rest = fields.into_iter();
        let rest: Map<String, Value> = rest
            .filter(|(key, _)| !FIELDS.contains(&key.as_str()))
            .collect();
        Value::Object(rest)
    };
    Some(record)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn ids(lines: &[&str]) -> Vec<String> {
        let mut reader = Reader::journal("r");
        let records = lines.iter().filter_map(|line| reader.take(line.as_bytes()));
        records.map(|record| record.id.to_string()).collect()
    }

    #[test]
    fn ids_only_go_up_whatever_the_numbers_do() {
        let numbered = [
            r#"{"kind": "a", "seq": 1}"#,
            r#"{"event": "b"}"#,
            r#"{"kind": "c", "seq": 3}"#,
            r#"{"kind": "d", "seq": 2}"#,
            r#"{"kind": "e", "seq": 3}"#,
            r#"{"kind": "f", "seq": 4}"#,
        ];
        assert_eq!(ids(&numbered), ["1", "1.1", "3", "3.1", "3.2", "4"]);
        let plain = [
            r#"{"kind": "a"}"#,
            "",
            "not JSON",
            r#"{"kind": "b", "seq": 1}"#,
        ];
        assert_eq!(ids(&plain), ["1", "4"]);
    }

    #[test]
    fn both_writers_are_read() {
        let mut reader = Reader::journal("r");
        let line = br#"{"event": "run:started", "timestamp": "2025-12-09T10:00:00+00:00Z", "flow_key": "build", "n": 1}"#;
        let record = reader.take(line).unwrap();
        let listed = record.listed();
        assert_eq!(listed["kind"], "run:started");
        assert_eq!(listed["ts"], "2025-12-09T10:00:00+00:00");
        assert_eq!(listed["run_id"], "r");
        assert_eq!(listed["payload"], json!({"n": 1}));
        assert!(reader.take(b"[1]").is_none() && reader.malformed == 1);
    }

    proptest! {
        #[test]
        fn an_id_is_read_back(seq in any::<u64>(), behind in any::<u64>()) {
            let id = Id { seq, behind };
            prop_assert_eq!(id.to_string().parse(), Ok(id));
        }

        #[test]
        fn any_line_is_read_without_harm(line in proptest::collection::vec(any::<u8>(), 0..60)) {
            Reader::journal("r").take(&line);
            Reader::recorded("r").take(&line);
        }
    }
}
