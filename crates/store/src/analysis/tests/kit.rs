//! Sessions and runs that are made of a few events.

use quipu_model::{Body, Event, Notes, Place, RunId, Timestamp};

use crate::Store;
use crate::catalogue::TranscriptRow;
pub(super) use crate::import::tests::kit::*;

/// A time of the day of all tests, so many milliseconds after three o'clock.
pub(super) fn at(ms: i64) -> Timestamp {
    let three: Timestamp = "2026-01-02T03:00:00Z".parse().unwrap();
    Timestamp::from_millisecond(three.as_millisecond() + ms).unwrap()
}

/// Lines of a session of Claude Code.
#[derive(Default)]
pub(super) struct Session {
    pub(super) lines: String,
    count: usize,
    undated: bool,
}

impl Session {
    pub(super) fn undated() -> Self {
        Self {
            undated: true,
            ..Self::default()
        }
    }

    fn line(&mut self, kind: &str, ms: i64, message: &str) -> &mut Self {
        self.count += 1;
        let time = if self.undated {
            String::new()
        } else {
            format!(r#""timestamp":"{}","#, at(ms))
        };
        let line = format!(
            r#"{{"type":"{kind}","uuid":"{:0>36}",{time}"sessionId":"s1","cwd":"/code",{message}}}"#,
            self.count
        );
        self.lines.push_str(&line);
        self.lines.push('\n');
        self
    }

    pub(super) fn user(&mut self, ms: i64, text: &str) -> &mut Self {
        let message = format!(r#""message":{{"role":"user","content":"{text}"}}"#);
        self.line("user", ms, &message)
    }

    /// An answer of a call: its content, and its tokens.
    pub(super) fn answer(
        &mut self,
        ms: i64,
        call: &str,
        content: &str,
        (input, read, output): (u64, u64, u64),
    ) -> &mut Self {
        let message = format!(
            r#""message":{{"id":"{call}","role":"assistant","model":"m-1","content":[{content}],"usage":{{"input_tokens":{input},"cache_read_input_tokens":{read},"output_tokens":{output}}}}}"#
        );
        self.line("assistant", ms, &message)
    }

    pub(super) fn result(&mut self, ms: i64, id: &str, text: &str, failed: bool) -> &mut Self {
        let message = format!(
            r#""message":{{"role":"user","content":[{{"type":"tool_result","tool_use_id":"{id}","content":"{text}","is_error":{failed}}}]}}"#
        );
        self.line("user", ms, &message)
    }

    pub(super) fn other(&mut self, ms: i64, kind: &str, rest: &str) -> &mut Self {
        self.line(kind, ms, rest)
    }

    /// Imports it.
    pub(super) fn import(&self) -> (Machine, Store, TranscriptRow) {
        let machine = Machine::new();
        write(&machine.session("s1.jsonl"), &self.lines);
        let store = machine.store();
        machine.import(&store);
        let row = rows(&store).remove(0);
        (machine, store, row)
    }
}

pub(super) fn text(text: &str) -> String {
    format!(r#"{{"type":"text","text":"{text}"}}"#)
}

pub(super) fn tool(id: &str, name: &str, input: &str) -> String {
    format!(r#"{{"type":"tool_use","id":"{id}","name":"{name}","input":{input}}}"#)
}

/// Puts a recorded run into the home of a store.
pub(super) fn record(store: &Store, run_id: &str, events: Vec<(i64, Place, Body, Notes)>) {
    let mut lines = Vec::new();
    for (nth, (ms, place, body, notes)) in events.into_iter().enumerate() {
        let event = Event {
            seq: nth as u64 + 1,
            run_id: RunId::new(run_id).unwrap(),
            parent_run_id: None,
            timestamp: at(ms),
            place,
            body,
            annotations: notes.into(),
        };
        quipu_exchange::encode_log(&event, &mut lines);
        if lines.last() != Some(&b'\n') {
            lines.push(b'\n');
        }
    }
    let path = store
        .home()
        .join("transcripts")
        .join(format!("{run_id}.jsonl"));
    write(&path, lines);
}

/// Everything that is there came from somebody else.
pub(super) fn receive_all(store: &Store) {
    let index = rusqlite::Connection::open(store.home().join("index.sqlite")).unwrap();
    let changed = index.execute("update transcript set received_from = 'anon_7c41'", []);
    assert!(changed.unwrap() > 0);
}
