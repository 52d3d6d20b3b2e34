//! From a session to its document.

mod event;
mod json;

use std::io::{self, Write};

use quipu_model::{Attachment, Event, Header, Origin, RunId};
use sha2::Digest as _;

pub use self::event::output_field;
use self::json::{Object, string};
use super::{
    Beyond, Commitment, NormalizedOptions, Privacy, SCHEMA_VERSION, Section, Submitter, ToolOutput,
};
use crate::loss::{Field, Loss};
use crate::projection::{Beside, Projection};

/// What the format has a place for: everything but the bytes of attachments.
pub const CARRIES: &[Field] = Field::ALL;

/// What is said to have read a session that no adapter has: it was recorded, not read.
pub(super) const OWN_ADAPTER: &str = "quipu";

/// Bytes are handed on when there are this many.
const BUFFER: usize = 64 * 1024;

/// Writes a document.
///
/// # Errors
///
/// Those of whatever is written to.
pub fn writer<'w>(
    header: &Header,
    options: &NormalizedOptions,
    out: Box<dyn Write + 'w>,
    _beside: Box<dyn Beside + 'w>,
) -> io::Result<Box<dyn Projection + 'w>> {
    Ok(Box::new(Writer::new(header, options, out)?))
}

/// Writes a document, event by event.
pub struct Writer<W> {
    header: Header,
    out: W,
    buffer: Vec<u8>,
    loss: Loss,
}

impl<W: Write> Writer<W> {
    /// Begins a document with all that stands before its events.
    ///
    /// # Errors
    ///
    /// Those of whatever is written to.
    pub fn new(header: &Header, options: &NormalizedOptions, out: W) -> io::Result<Self> {
        let mut buffer = Vec::with_capacity(2 * BUFFER);
        begin(header, options, &mut buffer);
        let mut loss = Loss::default();
        loss.header(header, CARRIES);
        if header.origin.is_none() {
            loss.inferred("source.agent", 0);
        }
        let mut writer = Self {
            header: header.clone(),
            out,
            buffer,
            loss,
        };
        writer.hand_on(BUFFER)?;
        Ok(writer)
    }

    /// Writes an event, and what the model has no place for.
    ///
    /// # Errors
    ///
    /// Those of whatever is written to.
    pub fn write(&mut self, event: &Event, beyond: &Beyond) -> io::Result<()> {
        self.buffer
            .extend_from_slice(if self.loss.events == 0 { b"\n" } else { b",\n" });
        event::event(&self.header, event, beyond, &mut self.buffer);
        self.loss.events += 1;
        self.loss.carried += 1;
        self.loss.fields(event, CARRIES);
        self.unwritten(event, beyond);
        for _ in event.blobs() {
            self.loss.dropped("attachment bytes", event.seq);
        }
        self.hand_on(BUFFER)
    }

    /// Counts fields that held something else than they should, in whose place stands what was made of them.
    fn unwritten(&mut self, event: &Event, beyond: &Beyond) {
        let of_event = beyond.extra.iter().filter(|(key, _)| {
            !matches!(key.as_str(), "role" | "text") && event::is_written(&self.header, event, key)
        });
        let of_tool = beyond
            .tool
            .iter()
            .filter(|(key, _)| event::is_written_in_tool(event, key));
        for (key, _) in of_event.chain(of_tool) {
            self.loss.dropped(format!("unread {key}"), event.seq);
        }
    }

    /// Ends the document.
    ///
    /// # Errors
    ///
    /// Those of whatever is written to.
    pub fn end(mut self) -> io::Result<(Loss, W)> {
        self.buffer.extend_from_slice(b"\n]}\n");
        self.hand_on(0)?;
        self.out.flush()?;
        Ok((self.loss, self.out))
    }

    fn hand_on(&mut self, from: usize) -> io::Result<()> {
        if self.buffer.len() >= from {
            self.out.write_all(&self.buffer)?;
            self.buffer.clear();
        }
        Ok(())
    }
}

impl<W: Write> Projection for Writer<W> {
    fn blob(&mut self, _attachment: &Attachment, _bytes: &[u8]) -> io::Result<()> {
        Ok(())
    }

    fn event(&mut self, event: &Event) -> io::Result<()> {
        self.write(event, &Beyond::default())
    }

    fn takes_more(&self) -> bool {
        true
    }

    fn event_and_more(&mut self, event: &Event, more: &Beyond) -> io::Result<()> {
        self.write(event, more)
    }

    fn finish(self: Box<Self>) -> io::Result<Loss> {
        self.end().map(|(loss, _)| loss)
    }
}

impl<W> std::fmt::Debug for Writer<W> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Writer")
            .field("header", &self.header)
            .field("loss", &self.loss)
            .finish_non_exhaustive()
    }
}

/// Writes one event as it stands in a document, without a line's end. `header` is that of the session, which events
/// need not repeat. It is what [`super::decode`] reads.
pub fn encode(header: &Header, event: &Event, beyond: &Beyond, out: &mut Vec<u8>) {
    event::event(header, event, beyond, out);
}

/// Who shares a document and what was removed from it, as they stand in one, where they are known.
pub(crate) fn shared(
    submitter: Option<&Submitter>,
    privacy: Option<&Privacy>,
) -> (Option<Vec<u8>>, Option<Vec<u8>>) {
    let object = |write: &dyn Fn(&mut Fields<'_>)| {
        let mut bytes = Vec::new();
        let mut object = Fields(Object::begin(&mut bytes), &[]);
        write(&mut object);
        object.0.end();
        bytes
    };
    (
        submitter.map(|it| object(&|fields| self::submitter(fields, it))),
        privacy.map(|it| object(&|fields| self::privacy(fields, it))),
    )
}

/// The id of a run's document: of the shape of a random UUID, but always the same for the same run.
pub fn transcript_id(run_id: &RunId) -> String {
    let mut hash = sha2::Sha256::new();
    hash.update(b"quipu normalized transcript\n");
    hash.update(run_id.as_str().as_bytes());
    let hash = hash.finalize();
    let mut id = String::with_capacity(36);
    for (index, byte) in hash.iter().take(16).enumerate() {
        if matches!(index, 4 | 6 | 8 | 10) {
            id.push('-');
        }
        let byte = match index {
            6 => byte & 0x0f | 0x40,
            8 => byte & 0x3f | 0x80,
            _ => *byte,
        };
        id.extend(
            [byte >> 4, byte & 15].map(|digit| char::from(b"0123456789abcdef"[usize::from(digit)])),
        );
    }
    id
}

/// All that stands before the events. Each section is a line, as each event will be.
fn begin(header: &Header, options: &NormalizedOptions, out: &mut Vec<u8>) {
    let mut line = |name: &str, write: &mut dyn FnMut(&mut Vec<u8>)| {
        out.extend_from_slice(if name == "schemaVersion" {
            b"{"
        } else {
            b",\n"
        });
        string(out, name);
        out.push(b':');
        write(out);
    };
    let object = |write: &dyn Fn(&mut Fields<'_>)| {
        let mut bytes = Vec::new();
        let mut object = Fields(Object::begin(&mut bytes), &options.extra);
        write(&mut object);
        object.0.end();
        bytes
    };
    let id = options.transcript_id.clone();
    let id = id.unwrap_or_else(|| transcript_id(&header.run_id));
    line("schemaVersion", &mut |out| string(out, SCHEMA_VERSION));
    line("transcriptId", &mut |out| string(out, &id));
    for (name, bytes) in [
        ("source", object(&|fields| source(fields, header, options))),
        (
            "session",
            object(&|fields| session(fields, header, options)),
        ),
        (
            "submitter",
            match &options.submitter {
                Some(submitter) => object(&|fields| self::submitter(fields, submitter)),
                None => b"null".to_vec(),
            },
        ),
        (
            "privacy",
            match &options.privacy {
                Some(privacy) => object(&|fields| self::privacy(fields, privacy)),
                None => b"null".to_vec(),
            },
        ),
        ("metrics", object(&|fields| metrics(fields, header))),
    ] {
        line(name, &mut |out| out.extend_from_slice(&bytes));
    }
    for extra in &options.extra {
        if extra.section == Section::Document {
            line(&extra.key, &mut |out| {
                out.extend_from_slice(extra.value.get().as_bytes());
            });
        }
    }
    line("events", &mut |out| out.push(b'['));
}

/// An object, and what is not known here that may belong into it.
struct Fields<'a>(Object<'a>, &'a [super::Extra]);

impl Fields<'_> {
    /// Ends the fields of a section with those that are not known here.
    fn rest(&mut self, section: Section) {
        for extra in self.1.iter().filter(|extra| extra.section == section) {
            self.0.any(&extra.key, &extra.value);
        }
    }

    fn section(&mut self, name: &str, write: impl FnOnce(&mut Fields<'_>)) {
        let extra = self.1;
        self.0.field(name, |out| {
            let mut inner = Fields(Object::begin(out), extra);
            write(&mut inner);
            inner.0.end();
        });
    }

    fn has(&self, section: Section) -> bool {
        self.1.iter().any(|extra| extra.section == section)
    }
}

fn source(fields: &mut Fields<'_>, header: &Header, options: &NormalizedOptions) {
    let own = env!("CARGO_PKG_VERSION");
    let version = options.adapter_version.as_deref().unwrap_or(own);
    let object = &mut fields.0;
    let origin = header.origin.as_ref();
    let agent = origin.map_or("unknown", |origin| origin.agent.as_str());
    let said = |field: fn(&Origin) -> Option<&str>| origin.and_then(field);
    object.string("agent", agent);
    object.nullable(
        "agentVersion",
        said(|origin| origin.agent_version.as_deref()),
    );
    let adapter = said(|origin| origin.adapter.as_deref());
    object.string("adapter", adapter.unwrap_or(OWN_ADAPTER));
    object.string("adapterVersion", version);
    object.optional("sessionId", said(|origin| origin.session_id.as_deref()));
    object.optional("path", said(|origin| origin.path.as_deref()));
    if origin.is_none() {
        object.bool("agentKnown", false);
    }
    fields.rest(Section::Source);
}

fn session(fields: &mut Fields<'_>, header: &Header, options: &NormalizedOptions) {
    let time = |object: &mut Object<'_>, name: &str, at| match at {
        Some(at) => object.time(name, at),
        None => object.nullable(name, None),
    };
    let object = &mut fields.0;
    time(object, "startedAt", header.started_at);
    time(object, "endedAt", header.ended_at);
    if let Some(at) = options.captured_at {
        object.time("capturedAt", at);
    }
    fields.section("environment", |fields| environment(fields, header));
    let object = &mut fields.0;
    object.string("runId", header.run_id.as_str());
    let parent = header.parent_run_id.as_ref().map(AsRef::as_ref);
    object.nullable("parentRunId", parent);
    object.nullable("parentCall", header.parent_call.as_deref());
    object.nullable("forkedFrom", header.forked_from.as_deref());
    object.list("children", &header.children, |out, child| {
        string(out, child.as_str());
    });
    object.nullable("title", header.title.as_deref());
    fields.rest(Section::Session);
}

fn environment(fields: &mut Fields<'_>, header: &Header) {
    let at = &header.environment;
    let object = &mut fields.0;
    object.optional("os", at.os.as_deref());
    object.optional("shell", at.shell.as_deref());
    object.optional("cwd", at.cwd.as_deref());
    let known = [&at.repository, &at.commit, &at.git_branch];
    if known.iter().any(|field| field.is_some()) || fields.has(Section::Repo) {
        fields.section("repo", |fields| {
            let named = fields
                .1
                .iter()
                .any(|extra| extra.section == Section::Repo && extra.key == "name");
            let name = at.repository.as_deref().filter(|_| !named);
            let object = &mut fields.0;
            object.optional("name", name.and_then(repository_name));
            object.optional("remote", at.repository.as_deref());
            object.optional("commit", at.commit.as_deref());
            object.optional("branch", at.git_branch.as_deref());
            fields.rest(Section::Repo);
        });
    }
    fields.rest(Section::Environment);
}

/// What a repository is called, by its address.
pub(super) fn repository_name(address: &str) -> Option<&str> {
    // What stands for an address is no address.
    if address.starts_with('[') && address.ends_with(']') {
        return Some(address);
    }
    let name = address.trim_end_matches('/').trim_end_matches(".git");
    name.rsplit(['/', ':', '\\'])
        .next()
        .filter(|name| !name.is_empty())
}

fn submitter(fields: &mut Fields<'_>, submitter: &Submitter) {
    let object = &mut fields.0;
    object.optional("keyId", submitter.key_id.as_deref());
    object.optional("pseudonym", submitter.pseudonym.as_deref());
    object.optional_bool("identityLinked", submitter.identity_linked);
    fields.rest(Section::Submitter);
}

fn privacy(fields: &mut Fields<'_>, privacy: &Privacy) {
    let object = &mut fields.0;
    object.optional("profile", privacy.profile.as_deref());
    object.optional_bool("redactionApplied", privacy.redaction_applied);
    object.optional_bool("anonymizationApplied", privacy.anonymization_applied);
    if let Some(rules) = &privacy.rules_applied {
        object.list("rulesApplied", rules, |out, rule| string(out, rule));
    }
    object.count("redactionCount", privacy.redaction_count);
    if let Some(policy) = &privacy.content_policy {
        fields.section("contentPolicy", |fields| {
            let object = &mut fields.0;
            object.optional_bool("includeFileContents", policy.include_file_contents);
            let output = policy.tool_output.as_ref();
            object.optional("toolOutput", output.map(ToolOutput::as_str));
            fields.rest(Section::ContentPolicy);
        });
    }
    let object = &mut fields.0;
    object.optional("rulesDigest", privacy.rules_digest.as_deref());
    if let Some(matched) = &privacy.rules_matched {
        object.field("rulesMatched", |out| {
            let mut object = Object::begin(out);
            for (rule, count) in matched {
                object.counted(rule, *count);
            }
            object.end();
        });
    }
    object.optional_bool("timeShift", privacy.time_shift);
    object.optional_bool("idsReplaced", privacy.ids_replaced);
    object.optional_bool("numbersRounded", privacy.numbers_rounded);
    if let Some(redactions) = &privacy.redactions {
        object.list("redactions", redactions, event::redaction);
    }
    if let Some(commitment) = &privacy.commitment {
        let Commitment {
            algorithm,
            root,
            leaves,
        } = commitment;
        object.object("commitment", |object| {
            object.string("algorithm", algorithm);
            object.string("root", root);
            object.number("leaves", *leaves);
        });
    }
    fields.rest(Section::Privacy);
}

fn metrics(fields: &mut Fields<'_>, header: &Header) {
    let totals = &header.totals;
    let object = &mut fields.0;
    object.number("eventCount", totals.events);
    object.number("messageCount", totals.messages);
    object.number("toolCallCount", totals.tool_calls);
    object.count("durationMs", super::read::duration_ms(header));
    if !totals.usage.is_empty() || fields.has(Section::Tokens) {
        fields.section("tokens", |fields| {
            event::usage(&mut fields.0, &totals.usage);
            fields.rest(Section::Tokens);
        });
    }
    let object = &mut fields.0;
    object.field("costUsd", |out| match totals.cost {
        Some(cost) => out.extend_from_slice(cost.to_string().as_bytes()),
        None => out.extend_from_slice(b"null"),
    });
    object.list("models", &totals.models, |out, model| string(out, model));
    fields.rest(Section::Metrics);
}
