//! What becomes of the content of one event.

use quipu_formats::normalized::{self, AsIs, Beyond, ToolOutput};
use quipu_model::{
    Annotations, Block, Body, Content, Event, Json, Note, NoteKind, Step, StepEnd, ToolCall,
    ToolResult,
};

use super::files::{Access, Files, SENSITIVE, Tool, exposed};
use super::json::{Contents, How, described_text, rule, truncate};
use super::mask::{Cut, Mask, POLICY};
use crate::Context;
use crate::profile::{Environment, Profile};
use crate::rule::Kind;
use crate::sensitive::Exposes;

/// The field of `meta` that says what stood in place of a note.
pub(crate) const REPLACES: &str = "replaces";

/// What an event's content is changed by.
pub(super) struct Shaper<'s, 'a> {
    pub(super) mask: &'s mut Mask<'a>,
    pub(super) profile: &'s Profile,
    pub(super) files: &'s mut Files,
    /// Whether the event shows what is in a file that is secret as a whole. Set while it is changed.
    pub(super) is_exposed: bool,
}

impl Shaper<'_, '_> {
    /// Changes all of an event. `given` are parts of its blocks that were found together with other events.
    pub(super) fn event(&mut self, event: &mut Event, beyond: &mut Beyond, given: &[(usize, Cut)]) {
        if is_own(event, beyond) {
            return;
        }
        self.beyond(event, beyond);
        match &mut event.body {
            Body::Note(note) => {
                if self.note(note, beyond) {
                    event.annotations.flags.synthetic = true;
                }
            }
            body => {
                if let Some(note) = self.body(body, given, beyond) {
                    event.body = note;
                    event.annotations.flags.synthetic = true;
                }
            }
        }
        self.place(&mut event.place.path);
        self.annotations(&mut event.annotations);
        if event.annotations.source.is_some()
            && let Some(source) = &mut event.annotations.source
        {
            self.log(&mut source.file);
        }
    }

    /// Changes what annotations may say in words of the log.
    pub(super) fn annotations(&mut self, notes: &mut Annotations) {
        // Looking at them as they are first: to change them is to make them.
        if notes.extra.is_some()
            && let Some(extra) = &mut notes.extra
        {
            self.extra(extra);
        }
        if notes.stop_reason.is_some()
            && let Some(reason) = &mut notes.stop_reason
        {
            // Where no text is to be left, what is not a word is one.
            let is_word = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
            if self.profile.keeps_content() || reason.len() <= 64 && reason.bytes().all(is_word) {
                self.name("stopReason", reason);
            } else {
                let label = "[REDACTED:raw]".to_owned();
                self.mask
                    .whole("stopReason", reason, &rule("raw"), POLICY, label);
            }
        }
    }

    /// Changes what happened. What has to be replaced as a whole is given back.
    pub(super) fn body(
        &mut self,
        body: &mut Body,
        given: &[(usize, Cut)],
        beyond: &mut Beyond,
    ) -> Option<Body> {
        match body {
            Body::UserMessage(blocks) | Body::SystemMessage(blocks) => {
                self.message(blocks, false, given);
            }
            Body::AssistantMessage(blocks) => {
                if !self.profile.reasoning
                    && let [
                        Block {
                            content: Content::Thinking(text),
                            ..
                        },
                    ] = blocks.as_mut_slice()
                {
                    return Some(self.unthought(std::mem::take(text), beyond));
                }
                self.message(blocks, true, given);
            }
            Body::ToolCall(call) => self.call(call),
            Body::ToolResult(result) => self.result(result),
            Body::RunStarted(step) => step.iter_mut().for_each(|step| self.step(step)),
            Body::StepStarted(step) | Body::CallStarted { step, .. } => self.step(step),
            Body::RunCompleted(end) => end.iter_mut().for_each(|end| self.step_end(end)),
            Body::StepCompleted(end) | Body::CallCompleted { end, .. } => self.step_end(end),
            Body::Note(note) => {
                self.note(note, beyond);
            }
            Body::ModelCall(_)
            | Body::Chunk(_)
            | Body::Harness(_)
            | Body::Blob(_)
            | Body::Error(_)
            | Body::Unknown(_) => self.other_kind(body, given),
        }
        None
    }

    /// A note in place of what a model thought.
    fn unthought(&mut self, mut text: String, beyond: &mut Beyond) -> Body {
        self.mask.whole(
            "text",
            &mut text,
            &rule("reasoning"),
            POLICY,
            "[REDACTED:reasoning]".to_owned(),
        );
        beyond
            .meta
            .push((REPLACES.to_owned(), Json::string("reasoning")));
        Body::Note(Note {
            kind: NoteKind::Truncated,
            text: Some(text),
            raw: None,
        })
    }

    fn message(&mut self, blocks: &mut [Block], thinks: bool, given: &[(usize, Cut)]) {
        let across = self.across(blocks, given);
        let is_single = match &*blocks {
            [
                Block {
                    content: Content::Text(_),
                    ..
                },
            ] => true,
            [
                Block {
                    content: Content::Thinking(_),
                    ..
                },
            ] => thinks,
            _ => false,
        };
        for (index, (block, given)) in blocks.iter_mut().zip(across).enumerate() {
            let field = |name: &str| {
                if is_single {
                    name.to_owned()
                } else {
                    format!("blocks[{index}].{name}")
                }
            };
            let (profile, files) = (self.profile, &mut *self.files);
            match &mut block.content {
                Content::Thinking(text) if !profile.reasoning => {
                    let label = "[REDACTED:reasoning]".to_owned();
                    self.mask
                        .whole(&field("text"), text, &rule("reasoning"), POLICY, label);
                }
                Content::Text(text) | Content::Thinking(text) | Content::Stream(text) => {
                    self.text(&field("text"), text, &profile.text, "text", &given);
                }
                Content::Command(text) => self.text(
                    &field("text"),
                    text,
                    &profile.tool_input,
                    "tool-input",
                    &given,
                ),
                Content::ToolUse { name, id, input } => {
                    let access = files.call(id, name, input.as_ref());
                    self.name(&field("name"), name);
                    self.input(&field("input"), input, &access);
                }
                Content::ToolResult { id, content } => {
                    let access = files.result(id, "", None);
                    self.output(&field("content"), content, &access);
                }
                Content::Unknown(whole) => self.unknown(&field("value"), whole),
            }
        }
    }

    /// What goes over the ends of blocks, added to what goes over the ends of events.
    fn across(&mut self, blocks: &[Block], given: &[(usize, Cut)]) -> Vec<Vec<Cut>> {
        let mut all: Vec<Vec<Cut>> = vec![Vec::new(); blocks.len()];
        for (index, given) in given {
            if let Some(of) = all.get_mut(*index) {
                of.push(given.clone());
            }
        }
        let said = |block: &Block| match &block.content {
            Content::Text(_) | Content::Stream(_) => Some(block.block_type()),
            _ => None,
        };
        let mut from = 0;
        for run in blocks.chunk_by(|one, next| said(one).is_some() && said(one) == said(next)) {
            let texts: Vec<&str> = run.iter().filter_map(text_of).collect();
            if run.len() > 1 && texts.len() == run.len() {
                for (index, given) in self.mask.across(&texts).into_iter().enumerate() {
                    all[from + index].extend(given);
                }
            }
            from += run.len();
        }
        all
    }

    /// Changes a text as the policy for it says, and by rules.
    pub(super) fn text(
        &mut self,
        field: &str,
        text: &mut String,
        part: &ToolOutput,
        what: &'static str,
        given: &[Cut],
    ) {
        match part {
            ToolOutput::Full | ToolOutput::Truncated => {
                let name = || field.to_owned();
                let cuts = self.mask.cuts(&name, text, Context::default(), given);
                let is_cut = *part == ToolOutput::Truncated;
                let mut left = if is_cut {
                    self.profile.max_text
                } else {
                    usize::MAX
                };
                let cuts = truncate(text, cuts, &mut left);
                if !cuts.is_empty() {
                    *text = self.mask.apply(&name, text, &cuts);
                }
            }
            ToolOutput::MetadataOnly => {
                let label = format!("[REDACTED:{what}-{}]", described_text(text));
                self.mask.whole(field, text, &rule(what), POLICY, label);
            }
            ToolOutput::None | ToolOutput::Other(_) => {
                self.mask.whole(
                    field,
                    text,
                    &rule(what),
                    POLICY,
                    format!("[REDACTED:{what}]"),
                );
            }
        }
    }

    fn call(&mut self, call: &mut ToolCall) {
        let access = self
            .files
            .call(&call.call_id, &call.name, call.input.as_ref());
        self.name("tool.name", &mut call.name);
        self.input("tool.input", &mut call.input, &access);
    }

    fn result(&mut self, result: &mut ToolResult) {
        let access = self
            .files
            .result(&result.call_id, &result.name, result.input.as_ref());
        self.is_exposed = access.exposes.is_some() && self.mask.secrets;
        self.name("tool.name", &mut result.name);
        self.input("tool.input", &mut result.input, &access);
        let field = normalized::output_field(result, &self.profile.tool_output);
        self.output(field, &mut result.output, &access);
        if let Some(error) = &mut result.error {
            self.error("tool.error", error, access.exposes);
        }
    }

    fn input(&mut self, field: &str, input: &mut Option<Json>, access: &Access) {
        let Some(input) = input else { return };
        let is_secret = access.exposes == Some(Exposes::File) && self.mask.secrets;
        let contents = match access.tool {
            _ if self.profile.file_contents && !is_secret => Contents::Stay,
            Tool::Other => Contents::Patches,
            Tool::Reads | Tool::Writes => Contents::Named,
        };
        let (part, what) = (&self.profile.tool_input, "tool-input");
        self.json(
            field,
            input,
            How {
                contents,
                ..how(part, what, self.profile, access)
            },
        );
    }

    fn output(&mut self, field: &str, output: &mut Option<Json>, access: &Access) {
        let Some(output) = output else { return };
        let is_exposed = access.exposes == Some(Exposes::File) && self.mask.secrets;
        if is_exposed || field == "tool.output" {
            // What had been taken out of it before is not there any more, or never was.
            self.mask.old.forget_inside("tool.outputValue");
        }
        if is_exposed {
            return self.sensitive_json("tool.output", output);
        }
        let part = &self.profile.tool_output;
        if !self.profile.file_contents && access.tool == Tool::Reads && output.as_str().is_some() {
            let lines = output.as_str().map_or(0, |text| text.lines().count());
            let label = format!("[REDACTED:file-contents-{lines}-lines]");
            return self
                .mask
                .whole_json(field, output, &rule("file-contents"), POLICY, label);
        }
        let contents = match (self.profile.file_contents, access.tool) {
            (false, Tool::Reads | Tool::Writes) => Contents::Lines,
            _ => Contents::Stay,
        };
        self.json(
            field,
            output,
            How {
                contents,
                exposes: access.exposes.filter(|_| self.mask.secrets),
                ..how(part, "tool-output", self.profile, access)
            },
        );
    }

    fn json(&mut self, field: &str, json: &mut Json, how: How<'_>) {
        self.mask.json(field, json, how);
    }

    fn sensitive_json(&mut self, field: &str, json: &mut Json) {
        let label = format!("[REDACTED:{SENSITIVE}]");
        self.mask
            .whole_json(field, json, SENSITIVE, Kind::Secret.as_str(), label);
    }

    pub(super) fn error(&mut self, field: &str, error: &mut String, exposes: Option<Exposes>) {
        let exposes = exposes.filter(|_| self.mask.secrets);
        if exposes.is_some_and(|exposes| !exposed(exposes, error).is_empty()) {
            let label = format!("[REDACTED:{SENSITIVE}]");
            return self
                .mask
                .whole(field, error, SENSITIVE, Kind::Secret.as_str(), label);
        }
        let part = self.profile.tool_output.clone();
        self.text(field, error, &part, "tool-output", &[]);
    }

    /// A name of a tool or a step, which is structure: only what rules find in it goes.
    pub(super) fn name(&mut self, field: &str, name: &mut String) {
        self.mask
            .text(&|| field.to_owned(), name, Context::default());
    }

    fn place(&mut self, path: &mut String) {
        self.name("path", path);
    }

    /// Where a log is.
    fn log(&mut self, file: &mut String) {
        if self.profile.environment == Environment::Keep {
            return self.name("source.file", file);
        }
        // Where somebody keeps their files, and what they call them, is nobody else's business.
        // It is another than the log of the document, and is not to be taken for that.
        let label = "[REDACTED:file]".to_owned();
        let kind = Kind::Path.as_str();
        self.mask
            .whole("source.file", file, "environment-path", kind, label);
    }

    fn step(&mut self, step: &mut Step) {
        self.name("meta.name", &mut step.name);
        let mut kind = step.kind.to_string();
        self.name("meta.stepKind", &mut kind);
        step.kind = kind.into();
    }

    fn step_end(&mut self, end: &mut StepEnd) {
        self.step(&mut end.step);
        if let Some(error) = &mut end.error {
            self.error("meta.error", error, None);
        }
        self.output("meta.result", &mut end.result, &Access::default());
    }

    /// Changes a note. Whether it had to be replaced.
    fn note(&mut self, note: &mut Note, beyond: &mut Beyond) -> bool {
        let replaces = match beyond.as_is {
            AsIs::Event if self.is_unlike(note) => Some("event"),
            AsIs::Event => return false,
            AsIs::Meta if !self.profile.keeps_content() => Some("meta"),
            AsIs::Meta | AsIs::Nothing => None,
        };
        if let Some(replaces) = replaces {
            // What is not known at all is written as it stands or not at all.
            self.mask.old.clear();
            self.mask.forget();
            let mut text = note
                .raw
                .as_ref()
                .map_or_else(String::new, |raw| raw.get().to_owned());
            self.mask.whole(
                "text",
                &mut text,
                &rule("raw"),
                POLICY,
                "[REDACTED:raw]".to_owned(),
            );
            *note = Note {
                kind: NoteKind::Truncated,
                text: Some(text),
                raw: None,
            };
            *beyond = Beyond {
                meta: vec![(REPLACES.to_owned(), Json::string(replaces))],
                id: beyond.id.take(),
                ..Beyond::default()
            };
            return true;
        }
        if let Some(text) = &mut note.text {
            let part = self.profile.text.clone();
            self.text("text", text, &part, "text", &[]);
        }
        if let Some(raw) = &mut note.raw {
            let field = if beyond.as_is == AsIs::Meta {
                "meta"
            } else {
                "meta.raw"
            };
            self.unknown(field, raw);
        }
        false
    }

    /// Whether anything would be taken out of an event of a type that is not known.
    fn is_unlike(&mut self, note: &Note) -> bool {
        let Some(raw) = &note.raw else { return false };
        let mut changed = raw.clone();
        self.unknown("", &mut changed);
        self.mask.forget();
        // It is written as it stands, with its time and its ids.
        changed != *raw || self.profile.replaces_ids()
    }

    /// A value of which nobody knows what it is: it stays where all content does.
    pub(super) fn unknown(&mut self, field: &str, json: &mut Json) {
        let is_kept = self.profile.changes_nothing() || !spells_text_out(json);
        if self.profile.keeps_content() && is_kept {
            let nothing = Access::default();
            let name = field.rsplit('.').next();
            let how = How {
                name,
                ..how(&ToolOutput::Full, "raw", self.profile, &nothing)
            };
            self.mask.json(field, json, how);
        } else {
            self.mask.whole_json(
                field,
                json,
                &rule("raw"),
                POLICY,
                "[REDACTED:raw]".to_owned(),
            );
        }
    }

    /// Fields of a record that have no place of their own. They may repeat what a tool gave back.
    fn extra(&mut self, extra: &mut Json) {
        if self.is_exposed {
            self.sensitive_json("extra", extra);
        } else {
            self.unknown("extra", extra);
        }
    }

    /// Fields that are not known here.
    fn beyond(&mut self, event: &Event, beyond: &mut Beyond) {
        let is_tool = matches!(event.body, Body::ToolCall(_) | Body::ToolResult(_));
        for (key, value) in &mut beyond.extra {
            let words = [
                "role",
                "status",
                "type",
                "sidechain",
                "seq",
                "id",
                "timestamp",
            ];
            match key.as_str() {
                // What a call says beside itself is a text as any.
                "text" if is_tool && value.as_str().is_some() => {
                    let mut text = value.as_str().unwrap_or_default().into_owned();
                    let part = self.profile.text.clone();
                    self.text("text", &mut text, &part, "text", &[]);
                    if value.as_str().as_deref() != Some(&text) {
                        *value = Json::string(&text);
                    }
                }
                key if words.contains(&key) => {}
                key => self.unknown(&named("", key), value),
            }
        }
        for (key, value) in &mut beyond.tool {
            if !matches!(key.as_str(), "status" | "nativeStatus") {
                self.unknown(&named("tool", key), value);
            }
        }
        for (key, value) in &mut beyond.meta {
            self.unknown(&named("meta", key), value);
        }
    }
}

/// The name of a field in another.
pub(super) fn named(of: &str, key: &str) -> String {
    let mut path = of.to_owned();
    quipu_formats::normalized::path::push_name(&mut path, key);
    path
}

fn how<'h>(
    part: &'h ToolOutput,
    what: &'static str,
    profile: &Profile,
    access: &'h Access,
) -> How<'h> {
    How {
        part,
        what,
        most: profile.max_text,
        contents: Contents::Stay,
        exposes: None,
        file: access.file.as_deref(),
        name: None,
    }
}

fn text_of(block: &Block) -> Option<&str> {
    match &block.content {
        Content::Text(text) | Content::Stream(text) => Some(text),
        _ => None,
    }
}

/// Whether a note was put there by this.
pub(crate) fn is_own(event: &Event, beyond: &Beyond) -> bool {
    let Body::Note(note) = &event.body else {
        return false;
    };
    event.annotations.flags.synthetic
        && note.kind == NoteKind::Truncated
        && note.text.as_deref().is_some_and(crate::is_placeholder)
        && note.raw.is_none()
        && matches!(beyond.meta.as_slice(), [(key, _)] if key == REPLACES)
}

/// Whether a value has ids of tokens or their probabilities: they spell a text out, with all that was removed from it.
fn spells_text_out(json: &Json) -> bool {
    ["token_ids\"", "\"logprobs\"", "_logprobs\""]
        .iter()
        .any(|name| memchr::memmem::find(json.get().as_bytes(), name.as_bytes()).is_some())
}
