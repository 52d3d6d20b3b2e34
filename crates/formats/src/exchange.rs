//! Sessions as transcripts, and transcripts as sessions.
//!
//! A transcript that is written here is one that every reader of the format understands. What its vocabulary has no
//! type for is carried by lines of types that it has; what was read and not understood is left out and counted.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::io::{self, Write};

use quipu_model::json::Tape;
use quipu_model::{
    Block, Body, Content, Event, EventType, Fidelity, Header, Note, NoteKind, RunId, Unknown,
};

use crate::loss::{Field, Loss};
use crate::projection::{Beside, Projection};
use quipu_exchange::probe;
use quipu_exchange::{Escapes, Warning, encode};

/// How deep a payload nests at most.
const DEPTH: usize = 128;

/// How much is gathered before it is written.
const CHUNK: usize = 64 << 10;

/// How many names are kept apart of what was changed, and how many characters of each.
const NAMES: usize = 100;
const NAME_CHARS: usize = 100;

/// What the format has a place for: everything that events say, and nothing of the session as a whole but
/// what events repeat.
pub const CARRIES: &[Field] = &[
    Field::Timestamp,
    Field::RunLinks,
    Field::Place,
    Field::Passes,
    Field::Fidelity,
    Field::NativeId,
    Field::ParentId,
    Field::Subagent,
    Field::Model,
    Field::Usage,
    Field::UsageCache,
    Field::UsageCache1h,
    Field::UsageReasoning,
    Field::Cost,
    Field::ModelCall,
    Field::StopReason,
    Field::Duration,
    Field::Status,
    Field::Child,
    Field::Children,
    Field::Attachments,
    Field::Extra,
    Field::Opaque,
    Field::Synthetic,
    Field::Superseded,
    Field::Undated,
    Field::Dangling,
];

/// Nothing can be chosen.
#[derive(Debug, Clone, Copy, Default)]
pub struct ExchangeOptions;

/// Writes a session as a transcript.
///
/// # Errors
///
/// None before the first event.
pub fn writer<'w>(
    header: &Header,
    _options: &ExchangeOptions,
    out: Box<dyn Write + 'w>,
    _beside: Box<dyn Beside + 'w>,
) -> io::Result<Box<dyn Projection + 'w>> {
    let mut loss = Loss::default();
    loss.header(header, CARRIES);
    Ok(Box::new(Lines {
        out,
        held: Vec::with_capacity(CHUNK + (CHUNK >> 2)),
        loss,
        last: 0,
    }))
}

struct Lines<'w> {
    out: Box<dyn Write + 'w>,
    held: Vec<u8>,
    loss: Loss,
    /// The number of the last line. Numbers are dense, so what is left out closes up.
    last: u64,
}

impl Projection for Lines<'_> {
    fn event(&mut self, event: &Event) -> io::Result<()> {
        let loss = &mut self.loss;
        loss.events += 1;
        if let Body::Unknown(unknown) = &event.body {
            loss.dropped(unknown.event_type.clone(), event.seq);
            return Ok(());
        }
        loss.fields(event, CARRIES);
        for _ in event.blobs() {
            loss.dropped("attachment bytes", event.seq);
        }
        loss.carried += 1;
        self.last += 1;
        if self.last != event.seq {
            loss.inferred("seq, because what is left out closes up", event.seq);
        }
        let mut event = Cow::Borrowed(event);
        if self.last != event.seq {
            event.to_mut().seq = self.last;
        }
        let seq = event.seq;
        unknown_blocks_as_text(&mut event, |word| {
            loss.wrapped(format!("block {word:?} as text"), seq);
        });
        encode(&event, Escapes::Plain, &mut self.held).map_err(io::Error::other)?;
        if self.held.len() >= CHUNK {
            self.out.write_all(&self.held)?;
            self.held.clear();
        }
        Ok(())
    }

    fn finish(mut self: Box<Self>) -> io::Result<Loss> {
        self.out.write_all(&self.held)?;
        self.out.flush()?;
        Ok(self.loss)
    }
}

/// What of a transcript is not in the events of the session as it was written, counted by its name.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Changes {
    /// Fields that the model has no place for.
    pub unkept: BTreeMap<String, u64>,
    /// What was taken for something else.
    pub read_as: BTreeMap<String, u64>,
}

impl Changes {
    /// Counts what the reader of the transcript warned of.
    pub fn warned(&mut self, warnings: &[Warning]) {
        for warning in warnings {
            match warning {
                Warning::UnknownField(name) => count(&mut self.unkept, without_index(name)),
                Warning::Annotation { name, .. } => count(&mut self.unkept, (*name).to_owned()),
                Warning::Fidelity(word) => count(
                    &mut self.read_as,
                    format!("fidelity {word:?} as agent_emitted"),
                ),
                _ => {}
            }
        }
    }

    fn reads(&mut self, what: &str, word: &str, as_what: &str) {
        count(&mut self.read_as, format!("{what} {word:?} as {as_what}"));
    }
}

/// Names come from the file, and there may be as many as it has lines.
fn count(of: &mut BTreeMap<String, u64>, mut name: String) {
    if let Some((at, _)) = name.char_indices().nth(NAME_CHARS) {
        name.truncate(at);
    }
    if of.len() >= NAMES && !of.contains_key(&name) {
        "others".clone_into(&mut name);
    }
    *of.entry(name).or_default() += 1;
}

/// `payload.blocks[].x` for `payload.blocks[7].x`.
fn without_index(name: &str) -> String {
    match name
        .split_once('[')
        .and_then(|(start, rest)| Some((start, rest.split_once(']')?.1)))
    {
        Some((start, end)) if start == "payload.blocks" => format!("{start}[]{end}"),
        _ => name.to_owned(),
    }
}

/// An event as it was read, understood as far as it can be: what is outside of the vocabulary is read by its shape, or
/// becomes a note that keeps it. What is not as it was is counted.
pub fn into_log(mut event: Event, changes: &mut Changes) -> Event {
    if let Body::Unknown(unknown) = event.body {
        // The model knows a child run of any event.
        match unknown.child_run_id.as_deref().map(RunId::new) {
            Some(Ok(child)) if event.annotations.child.is_none() => {
                event.annotations.child = Some(child);
            }
            None => {}
            Some(_) => count(&mut changes.unkept, "child_run_id".to_owned()),
        }
        event.body = by_shape(unknown, changes);
    }
    let mut event = Cow::Owned(event);
    unknown_blocks_as_text(&mut event, |word| changes.reads("block", word, "text"));
    event.into_owned()
}

/// Blocks that are not known keep their place: as text that is their JSON. `with` is given the type of each.
pub(crate) fn unknown_blocks_as_text(event: &mut Cow<'_, Event>, mut with: impl FnMut(&str)) {
    let is_unknown = |block: &Block| matches!(block.content, Content::Unknown(_));
    if !event
        .body
        .blocks()
        .unwrap_or_default()
        .iter()
        .any(is_unknown)
    {
        return;
    }
    let (Body::UserMessage(blocks) | Body::AssistantMessage(blocks) | Body::SystemMessage(blocks)) =
        &mut event.to_mut().body
    else {
        return;
    };
    for block in blocks {
        if let Content::Unknown(json) = &block.content {
            let mut tape = Tape::new();
            let read = tape.read(json.get(), DEPTH).ok();
            let word = read.and_then(|block| block.text("type").map(Cow::into_owned));
            with(&word.unwrap_or_default());
            *block = Block::text(Fidelity::AgentEmitted, json.get());
        }
    }
}

fn by_shape(unknown: Unknown, changes: &mut Changes) -> Body {
    let word = unknown.event_type.as_str();
    // A payload that does not fit a type of the vocabulary is not made to fit, except a message.
    if EventType::from_word(word).is_none_or(|it| it == EventType::SystemMessage) {
        let mut warnings = Vec::new();
        if let Some(body) = probe(word, unknown.payload.get(), DEPTH, &mut warnings) {
            changes.warned(&warnings);
            if body.type_word() != word {
                changes.reads("type", word, body.type_word());
            }
            return body;
        }
    }
    Body::Note(Note {
        kind: NoteKind::UnknownRecord,
        text: Some(unknown.event_type),
        raw: Some(unknown.payload),
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use quipu_model::{BlockType, Content, Json};

    use super::*;
    use crate::arbitrary;
    use crate::projection::Nowhere;
    use quipu_exchange::{Reader, encode_log};

    fn read(bytes: &[u8]) -> (Vec<Event>, Changes) {
        let mut reader = Reader::new(bytes);
        let (mut events, mut changes) = (Vec::new(), Changes::default());
        while let Some(item) = reader.next_decoded().unwrap() {
            let decoded = item.unwrap();
            changes.warned(&decoded.warnings);
            events.push(into_log(decoded.event, &mut changes));
        }
        (events, changes)
    }

    fn read_whole(bytes: &[u8]) -> Vec<Event> {
        let (events, changes) = read(bytes);
        assert_eq!(changes, Changes::default());
        events
    }

    proptest! {
        /// Every kind comes back as it was.
        #[test]
        fn a_session_reads_back((header, events) in arbitrary::session()) {
            let mut bytes = Vec::new();
            let out: Box<dyn Write> = Box::new(&mut bytes);
            let mut to = writer(&header, &ExchangeOptions, out, Box::new(Nowhere)).unwrap();
            for event in &events {
                to.event(event).unwrap();
            }
            let loss = to.finish().unwrap();
            prop_assert_eq!(loss.carried, events.len() as u64);
            prop_assert_eq!(loss.events, events.len() as u64);
            prop_assert_eq!(read_whole(&bytes), events);
        }

        /// System messages and notes included, whatever blocks they hold.
        #[test]
        fn what_imported_logs_say_reads_back((_, events) in arbitrary::session()) {
            let mut bytes = Vec::new();
            for event in &events {
                encode_log(event, &mut bytes);
            }
            prop_assert_eq!(read_whole(&bytes), events);
        }
    }

    #[test]
    fn every_kind_of_block_of_a_system_message_reads_back() {
        let json = |text| Some(Json::parse(text).unwrap());
        let contents = [
            Content::Text("Be brief.".to_owned()),
            Content::Thinking("Why?".to_owned()),
            Content::ToolUse {
                name: "Read".to_owned(),
                id: "t1".into(),
                input: json(r#"{"path":"a.rs"}"#),
            },
            Content::ToolResult {
                id: "t1".into(),
                content: json(r#"["fn main() {}"]"#),
            },
            Content::Command("ls".to_owned()),
            Content::Stream("half".to_owned()),
        ];
        assert_eq!(contents.len(), BlockType::ALL.len());
        let blocks = |contents: &[Content]| {
            let both = |content: &Content| {
                Fidelity::ALL.iter().map({
                    let content = content.clone();
                    move |&fidelity| Block {
                        fidelity,
                        content: content.clone(),
                    }
                })
            };
            contents.iter().flat_map(both).collect::<Vec<_>>()
        };
        let mut bytes = Vec::new();
        let event = |blocks| Event {
            seq: 1,
            run_id: RunId::new("r").unwrap(),
            parent_run_id: None,
            timestamp: "2026-06-08T08:14:42Z".parse().unwrap(),
            place: quipu_model::Place::run(),
            body: Body::SystemMessage(blocks),
            annotations: quipu_model::Annotations::default(),
        };
        let written = event(blocks(&contents));
        encode_log(&written, &mut bytes);
        assert_eq!(read_whole(&bytes), [written]);
    }

    fn line(event_type: &str, payload: &str) -> String {
        format!(
            concat!(
                r#"{{"seq":1,"run_id":"r","type":"{}","path":"","iteration":0,"#,
                r#""timestamp":"2026-06-08T08:14:42Z","payload":{}}}"#,
                "\n"
            ),
            event_type, payload
        )
    }

    #[test]
    fn unknown_types_are_read_by_the_shape_of_their_payload() {
        for (word, payload, expected) in [
            (
                "message.critic",
                r#"{"role":"assistant","blocks":[{"type":"text","fidelity":"router","text":"no"}]}"#,
                Some("message.assistant"),
            ),
            (
                "message.critic",
                r#"{"role":"user","blocks":[]}"#,
                Some("message.user"),
            ),
            (
                "message.developer",
                r#"{"role":"system","blocks":[]}"#,
                Some("message.system"),
            ),
            (
                "tool.asked",
                r#"{"name":"Read","call_id":"c","input":{},"output":null,"fidelity":"router"}"#,
                Some("tool.call"),
            ),
            (
                "tool.gave",
                r#"{"name":"Read","call_id":"c","input":{},"output":7,"fidelity":"router"}"#,
                Some("tool.result"),
            ),
            (
                "step.retry.started",
                r#"{"name":"a","kind":"agent"}"#,
                Some("step.started"),
            ),
            (
                "step.retry.completed",
                r#"{"name":"a","kind":"agent","error":"late"}"#,
                Some("step.completed"),
            ),
            ("step.retry", r#"{"name":"a","kind":"agent"}"#, None),
            ("message.critic", r#"{"role":"critic","blocks":[]}"#, None),
            ("run.paused", r#"{"why":"lunch"}"#, None),
            ("run.paused", "null", None),
            ("blocks", r#"[{"type":"text"}]"#, None),
        ] {
            let (events, changes) = read(line(word, payload).as_bytes());
            if let Some(expected) = expected {
                assert_eq!(events[0].body.type_word(), expected, "{word} {payload}");
                let told = format!("type {word:?} as {expected}");
                assert_eq!(changes.read_as, [(told, 1)].into(), "{word}");
            } else {
                let Body::Note(note) = &events[0].body else {
                    panic!("{word} {payload}: {:?}", events[0].body)
                };
                assert_eq!(note.text.as_deref(), Some(word));
                assert_eq!(note.raw.as_ref().unwrap().get(), payload, "kept whole");
            }
        }
    }

    #[test]
    fn what_is_not_kept_as_it_was_is_counted() {
        let message = |blocks: &str| {
            line(
                "message.assistant",
                &format!(r#"{{"role":"assistant","blocks":[{blocks}],"mood":1}}"#),
            )
        };
        let lines = [
            message(
                r#"{"type":"text","fidelity":"","text":"a","x":1},{"type":"text","fidelity":"","text":"b","x":2}"#,
            ),
            message(r#"{"type":"image","fidelity":"router","data":"…"}"#),
            line("run.started", "null").replace(r#","payload""#, r#","colour":"red","payload""#),
            line("run.started", "null").replace(r#","payload""#, r#","usage":7,"payload""#),
            line("run.paused", "null").replace(r#","type""#, r#","child_run_id":"c","type""#),
        ];
        let (events, changes) = read(lines.concat().as_bytes());
        assert_eq!(events[0].body.texts().collect::<Vec<_>>(), ["a", "b"]);
        let count = |of: &[(&str, u64)]| -> BTreeMap<String, u64> {
            of.iter()
                .map(|(name, n)| ((*name).to_owned(), *n))
                .collect()
        };
        assert_eq!(
            changes.unkept,
            count(&[
                ("payload.blocks[].x", 2),
                ("payload.mood", 2),
                ("colour", 1),
                ("usage", 1)
            ])
        );
        assert_eq!(
            changes.read_as,
            count(&[
                (r#"fidelity "" as agent_emitted"#, 2),
                (r#"block "image" as text"#, 1)
            ])
        );
        assert_eq!(events[4].annotations.child, RunId::new("c").ok());
    }

    #[test]
    fn names_that_are_counted_are_bounded() {
        let mut changes = Changes::default();
        for n in 0..10_000 {
            changes.warned(&[Warning::UnknownField(format!("{n}{}", "x".repeat(1000)))]);
        }
        assert_eq!(changes.unkept.len(), NAMES + 1);
        assert_eq!(changes.unkept.values().sum::<u64>(), 10_000);
        assert!(changes.unkept.keys().all(|name| name.len() <= NAME_CHARS));
    }
}
