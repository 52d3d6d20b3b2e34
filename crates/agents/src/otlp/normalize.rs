//! What spans and log records mean.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};

use quipu_formats::otlp::request::{self, Signal, Standing};
use quipu_model::json::Node;
use quipu_model::{Json, NoteKind, Timestamp};
use serde::{Deserialize, Serialize};

use super::message::{Message, Part, Role, Talk};
use super::own::Marks;
use super::said::{Key, Request, Said};
use super::wire::{self, Attrs};
use crate::session::{learn, update};
use crate::{Dropped, Entry, Origin, Out, Reader, Session, Text, Value, What, hash};

/// How many spans are remembered, to know which agent something below them is of.
const SPANS: usize = 1 << 17;

/// How many resources and scopes are told once.
const AROUND: usize = 4_096;

/// How far up the agent around a span is looked for.
const DEEPEST: usize = 64;

/// Reads batches.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct Batches {
    session: Session,
    /// Whether the session's id is that of a conversation. That of a trace serves until then.
    named: bool,
    pub(super) said: Said,
    spans: HashMap<u64, KnownSpan>,
    around: HashSet<u64>,
}

/// A span that was read.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct KnownSpan {
    parent: Option<u64>,
    agent: Option<String>,
}

/// A span or a log record, with what it says of all its entries.
#[derive(Debug)]
pub(super) struct Span<'a> {
    pub(super) node: Node<'a>,
    pub(super) attrs: Attrs<'a>,
    pub(super) id: Cow<'a, str>,
    pub(super) trace: Cow<'a, str>,
    parent: Option<Cow<'a, str>>,
    pub(super) name: Cow<'a, str>,
    pub(super) start: Option<Timestamp>,
    pub(super) end: Option<Timestamp>,
    /// That it failed, and what it says of that.
    pub(super) failed: bool,
    pub(super) why: Option<Cow<'a, str>>,
    /// What Quipu wrote of the event that it made the span of.
    pub(super) marks: Option<Marks<'a>>,
    /// Whether Quipu wrote it.
    pub(super) ours: bool,
    pub(super) is_log: bool,
    subagent: Option<String>,
}

/// What a span is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// A call to a model.
    Call,
    /// A use of a tool.
    Tool,
    /// An agent at work.
    Agent,
    /// A step, a workflow, or anything else that calls belong to.
    Chain,
    /// Something that has nothing to do with models.
    Other,
}

/// How often a part of a message counts.
pub(super) enum How<'r> {
    /// It is repeated by requests.
    Asked(&'r mut Request),
    /// The same, and each message is a record of its own.
    AskedInPiece,
    /// A model gave it as an answer.
    Given(&'r mut HashMap<u64, u32>),
    /// The same, in a record of its own.
    GivenInPiece,
    /// It is told nowhere else: Quipu writes what is new.
    Fresh(&'r mut HashMap<u64, u32>),
}

/// What the parts of an answer have in common.
#[derive(Debug, Clone, Default)]
pub(super) struct Told<'a> {
    pub(super) model: Option<Cow<'a, str>>,
    pub(super) model_call: Option<Cow<'a, str>>,
}

impl<'a> Span<'a> {
    fn of(standing: &Standing<'a>) -> Self {
        let node = standing.record;
        let is_log = standing.signal == Signal::Logs;
        let attrs = Attrs::of(node);
        let text = |key: &str| node.text(key).filter(|text| !text.is_empty());
        let (start, end) = if is_log {
            let at = wire::moment(node, "timeUnixNano");
            let at = at.or(wire::moment(node, "observedTimeUnixNano"));
            (at, at)
        } else {
            (
                wire::moment(node, "startTimeUnixNano"),
                wire::moment(node, "endTimeUnixNano"),
            )
        };
        let ours = attrs.has("quipu.run_id");
        let failed = wire::small(node, &["status", "code"]) == Some(2) || attrs.has("error.type");
        Self {
            marks: if ours { Marks::of(&attrs, None) } else { None },
            id: text("spanId").unwrap_or_default(),
            trace: text("traceId").unwrap_or_default(),
            parent: text("parentSpanId"),
            name: text(if is_log { "eventName" } else { "name" })
                .or_else(|| is_log.then(|| attrs.text("event.name")).flatten())
                .unwrap_or_default(),
            why: node
                .path(&["status", "message"])
                .and_then(|why| why.as_str())
                .filter(|why| !why.is_empty()),
            node,
            attrs,
            start,
            end,
            failed,
            ours,
            is_log,
            subagent: None,
        }
    }

    /// How long it took.
    pub(super) fn duration_ms(&self) -> Option<u64> {
        let (from, to) = (self.start?, self.end?);
        let millis = to.as_millisecond().checked_sub(from.as_millisecond())?;
        u64::try_from(millis).ok()
    }

    /// What it is of.
    fn kind(&self) -> Kind {
        let text = |key: &str| self.attrs.peek(key).unwrap_or_default();
        match &*text("gen_ai.operation.name") {
            "chat" | "text_completion" | "generate_content" | "embeddings" | "completion"
            | "call_llm" | "responses" => return Kind::Call,
            "execute_tool" => return Kind::Tool,
            "invoke_agent" | "create_agent" => return Kind::Agent,
            "" => {}
            _ => return Kind::Chain,
        }
        match &*text("openinference.span.kind") {
            "LLM" | "EMBEDDING" => return Kind::Call,
            "TOOL" => return Kind::Tool,
            "AGENT" => return Kind::Agent,
            "" => {}
            _ => return Kind::Chain,
        }
        match &*text("traceloop.span.kind") {
            "tool" => return Kind::Tool,
            "agent" => return Kind::Agent,
            "" => {}
            _ => return Kind::Chain,
        }
        let is_call = self.attrs.has("llm.request.type")
            || self.attrs.has("gen_ai.request.model")
            || self.attrs.has("gen_ai.response.model");
        if is_call { Kind::Call } else { Kind::Other }
    }

    /// An entry of it at a time.
    pub(super) fn at(&self, mut entry: Entry<'a>, at: Option<Timestamp>) -> Entry<'a> {
        entry.at = at;
        if self.ours {
            // What is known of an event of ours stands with it.
            entry.subagent = self.marks.as_ref().and_then(|marks| marks.subagent.clone());
            return entry;
        }
        entry.native_id = (!self.id.is_empty()).then(|| self.id.clone());
        entry.parent_id.clone_from(&self.parent);
        entry.subagent = self.subagent.clone().map(Cow::Owned);
        entry
    }

    /// Keeps with an entry what of the span has no place of its own.
    pub(super) fn keep_rest(&self, entry: &mut Entry<'a>) {
        let mapped = if self.is_log { wire::LOG } else { wire::SPAN };
        let name = if self.is_log { "log" } else { "span" };
        entry.extra.rest(name, self.node, mapped);
        if let Some(rest) = self.attrs.rest() {
            entry.extra.value("attributes", rest);
        }
    }
}

impl Batches {
    pub(super) fn new(origin: &Origin<'_>) -> Self {
        let part = origin.part.filter(|part| !part.is_empty());
        Self {
            named: part.is_some(),
            session: Session {
                id: part.map(str::to_owned),
                ..Session::default()
            },
            ..Self::default()
        }
    }

    /// Reads one record. Gives the reason where nothing comes of it.
    fn one(&mut self, standing: &Standing<'_>, out: &mut Out<'_>) -> Dropped {
        if !Self::is_new(standing, out) {
            return Dropped::DuplicateRecord;
        }
        let mut span = Span::of(standing);
        self.identify(&span);
        self.stands_in(standing, out);
        self.agent_around(&mut span);
        if span.is_log {
            self.log(&span, out);
            // Another record, or a span, told it.
            return Dropped::RepeatedChannel;
        }
        match span.kind() {
            Kind::Call => self.call(&span, out),
            Kind::Tool => self.tool(&span, out),
            kind => self.other(&span, kind, out),
        }
        Dropped::Empty
    }

    /// Takes in the identity of a record. A span has an id; a log record has only what it says.
    fn is_new(standing: &Standing<'_>, out: &mut Out<'_>) -> bool {
        let record = standing.record;
        let text = |key: &str| record.text(key).unwrap_or_default();
        let raw = record.raw().get().as_bytes();
        let (trace, span) = (text("traceId"), text("spanId"));
        let id = match standing.signal {
            Signal::Traces if !span.is_empty() => format!("{trace}:{span}"),
            _ => format!("{trace}:{span}:{:016x}", hash(raw)),
        };
        let ledger = out.ledger();
        if ledger.unit(&id) {
            ledger.says(&id, raw);
            return true;
        }
        if ledger.says(&id, raw) {
            // Sent again, and with something else in it: that is kept, and nothing of it counts again.
            let mut entry = crate::blocks::kept(NoteKind::Progress, record, out);
            entry.at = wire::moment(record, "endTimeUnixNano");
            if let What::Note { text, .. } = &mut entry.what {
                *text = Some(Text::from(
                    "a span that was sent before, with other content",
                ));
            }
            out.push(entry);
        }
        false
    }

    /// Whose session it is.
    fn identify(&mut self, span: &Span<'_>) {
        if !self.named
            && let Some(conversation) = request::conversation(span.node)
        {
            self.session.id = Some(conversation.into_owned());
            self.named = true;
        }
        let trace = span.trace.clone();
        learn(&mut self.session.id, || {
            Some(trace).filter(|id| !id.is_empty())
        });
        // Every span says so; it is the session's, not the event's. Another name stays with the event.
        let own = self.session.id.as_deref();
        for key in request::CONVERSATION {
            span.attrs.mark_if(key, |text| Some(text) == own);
        }
        if !span.ours {
            return;
        }
        self.session.reconstructed = true;
        let text = |key: &str| span.attrs.text(key);
        let session = &mut self.session;
        learn(&mut session.title, || text("quipu.title"));
        learn(&mut session.shell, || text("quipu.shell"));
        learn(&mut session.forked_from, || text("quipu.forked_from"));
        learn(&mut session.parent_call, || text("quipu.parent_call"));
        if span.marks.is_none() {
            learn(&mut session.parent, || text("quipu.parent_run_id"));
        }
        span.attrs.any("quipu.run_id");
        span.attrs.any("quipu.last_seq");
    }

    /// What a record stands in says of the session, and is told once.
    fn stands_in(&mut self, standing: &Standing<'_>, out: &mut Out<'_>) {
        let Some(resource) = standing.resource else {
            return;
        };
        let attrs = Attrs::of(resource);
        let session = &mut self.session;
        let name = attrs.text("service.name");
        // What SDKs say where nobody gave the program a name.
        let name = name.filter(|name| !name.starts_with("unknown_service"));
        learn(&mut session.agent, || name);
        update(&mut session.version, attrs.text("service.version"));
        facts(session, &attrs);
        learn(&mut session.os, || attrs.text("os.type"));
        let raw = |node: Option<Node<'_>>| node.map_or("", |node| node.raw().get()).to_owned();
        let all = format!("{}\n{}", raw(standing.resource), raw(standing.scope));
        let is_told = self.around.contains(&hash(all.as_bytes()));
        let says = attrs.rest().is_some() || standing.scope.is_some();
        if is_told || !says || self.around.len() >= AROUND {
            return;
        }
        self.around.insert(hash(all.as_bytes()));
        let mut made = format!("{{\"resource\":{}", resource.raw().get());
        for (key, node) in [
            ("scope", standing.scope),
            (
                "schemaUrl",
                standing.scope_schema.or(standing.resource_schema),
            ),
        ] {
            if let Some(node) = node {
                made.extend([",\"", key, "\":", node.raw().get()]);
            }
        }
        made.push('}');
        out.push(Entry::new(What::Note {
            kind: NoteKind::Context,
            text: None,
            raw: Some(Value::Owned(wire::parsed(&made))),
        }));
    }

    /// The agent around a span, as far as the spans above it are known. The outermost is the session's own.
    fn agent_around(&mut self, span: &mut Span<'_>) {
        if span.id.is_empty() {
            return;
        }
        let key = |id: &str| hash(format!("{}:{id}", span.trace).as_bytes());
        let parent = span.parent.as_deref().map(key);
        let own = key(&span.id);
        let mut agents = Vec::new();
        let mut above = if span.is_log { Some(own) } else { parent };
        for _ in 0..DEEPEST {
            let Some(known) = above.and_then(|above| self.spans.get(&above)) else {
                break;
            };
            agents.extend(known.agent.as_deref());
            above = known.parent;
        }
        if let [nearest, _, ..] = agents[..] {
            span.subagent = Some(nearest.to_owned());
        }
        if span.is_log || self.spans.len() >= SPANS {
            return;
        }
        let agent = (span.kind() == Kind::Agent).then(|| {
            let name = ["gen_ai.agent.id", "gen_ai.agent.name", "agent.name"]
                .iter()
                .find_map(|key| span.attrs.text(key));
            let name = name.unwrap_or_else(|| span.name.clone());
            name.chars().take(200).collect()
        });
        self.spans.insert(own, KnownSpan { parent, agent });
    }

    /// An agent, a step, or anything else: a note that keeps the span, and of what was said what no call told.
    fn other(&mut self, span: &Span<'_>, kind: Kind, out: &mut Out<'_>) {
        let own = span.ours && span.marks.is_none() && kind == Kind::Other;
        let mut times = HashMap::new();
        let mut events = super::events::of(span);
        for talk in Talk::of(&span.attrs) {
            let mut request = Request::default();
            for message in talk.input.iter().chain(&talk.output) {
                let marks = events.take_for(&message.role);
                let at = match message.role {
                    Role::Assistant => span.end,
                    _ => span.start,
                };
                let how = if span.ours {
                    How::Fresh(&mut times)
                } else {
                    How::Asked(&mut request)
                };
                let marked = (marks.as_ref(), at);
                self.say(span, message, how, &Told::default(), marked, out);
            }
        }
        if span.ours {
            self.own_facts(span);
        } else {
            facts(&mut self.session, &span.attrs);
        }
        // Spans of ours that only hold what has no other place need no note of their own.
        let spent = super::usage::usage(&span.attrs).filter(|_| own);
        let is_note = match kind {
            Kind::Other if own => spent.is_some(),
            _ => true,
        };
        if is_note {
            let note = match kind {
                _ if own => NoteKind::Usage,
                _ if span.failed => NoteKind::Error,
                Kind::Agent if span.subagent.is_some() || span.parent.is_some() => {
                    NoteKind::Subagent
                }
                Kind::Agent | Kind::Chain => NoteKind::Turn,
                _ => NoteKind::Progress,
            };
            let mut entry = span.at(crate::blocks::kept(note, span.node, out), span.start);
            if let What::Note { text, .. } = &mut entry.what {
                let why = span.why.clone().filter(|_| span.failed);
                *text = why.or(Some(span.name.clone())).map(Text::Plain);
            }
            entry.duration_ms = span.duration_ms();
            if own {
                entry.usage = spent;
                entry.cost = super::usage::cost(&span.attrs);
            }
            if let Some(marks) = &span.marks {
                marks.put_on(&mut entry);
                entry.at = marks.at.or(span.start);
            }
            out.push(entry);
        }
        self.events(span, events, out);
    }

    /// What the root of a trace of ours says of the session.
    fn own_facts(&mut self, span: &Span<'_>) {
        let attrs = &span.attrs;
        facts(&mut self.session, attrs);
        let version = ["gen_ai.agent.version", "quipu.agent.version"];
        update(&mut self.session.version, attrs.first_text(&version));
        learn(&mut self.session.os, || attrs.text("os.description"));
    }

    /// Tells the parts of a message that are news. Gives how many.
    pub(super) fn say<'a>(
        &mut self,
        span: &Span<'a>,
        message: &Message,
        mut how: How<'_>,
        told: &Told<'a>,
        (marks, at): (Option<&Marks<'a>>, Option<Timestamp>),
        out: &mut Out<'_>,
    ) -> usize {
        let mut count = 0;
        for part in &message.parts {
            if !self.is_news(span, &message.role, part, &mut how, out) {
                continue;
            }
            let Some(entry) = entry(&message.role, part, out) else {
                continue;
            };
            let mut entry = span.at(entry, at);
            if message.role == Role::Assistant {
                entry.model.clone_from(&told.model);
                entry.model_call.clone_from(&told.model_call);
            }
            if let Some(marks) = marks {
                marks.put_on(&mut entry);
                entry.at = entry.at.or(at.filter(|_| marks.at.is_none()));
            }
            if count == 0
                && let Some(rest) = &message.rest
            {
                self.said.once(rest_key(&message.role, rest));
                entry.extra.value("message", rest.clone());
            }
            count += 1;
            out.push(entry);
        }
        // No part of it is news, or it has none: what else stands in it has no event to be kept with.
        if count == 0
            && let Some(rest) = &message.rest
            && self.said.once(rest_key(&message.role, rest))
        {
            let mut attachments = Vec::new();
            let mut entry = Entry::new(What::Note {
                kind: NoteKind::UnknownRecord,
                text: Some(Text::from(format!("a message ({})", message.role.word()))),
                raw: Some(outside(rest, &mut attachments, out)),
            });
            entry.attachments = attachments;
            out.push(span.at(entry, at));
        }
        count
    }

    /// Whether a part was not told yet.
    pub(super) fn is_news(
        &mut self,
        span: &Span<'_>,
        role: &Role,
        part: &Part,
        how: &mut How<'_>,
        out: &mut Out<'_>,
    ) -> bool {
        let key = Key::of(role, part);
        let number = key.number();
        let mut first_of_span = |side: u8, time: u32| {
            let mut says = [0; 13];
            says[..8].copy_from_slice(&number.to_le_bytes());
            says[8..12].copy_from_slice(&time.to_le_bytes());
            says[12] = side;
            let id = format!("{}:{}", span.trace, span.id);
            out.ledger().says(&id, &says)
        };
        let is_first = match how {
            How::Asked(_) | How::AskedInPiece => true,
            How::Given(times) | How::Fresh(times) => {
                let time = times.entry(number).or_default();
                *time += 1;
                first_of_span(1, *time)
            }
            How::GivenInPiece => {
                let id = format!("{}:{}", span.trace, span.id);
                let time = self.said.piece_given(&id, number);
                first_of_span(1, time)
            }
        };
        if !is_first {
            return false;
        }
        match (key, how) {
            (Key::Id(key), _) => {
                let is_new = self.said.once(key);
                match part {
                    Part::Call { id, name, input } if is_new && !span.ours => {
                        self.said.asks(id, name, input.as_ref())
                    }
                    _ => is_new,
                }
            }
            (Key::Content(key), How::Asked(request)) => self.said.asked(request, key),
            (Key::Content(key), How::AskedInPiece) => {
                let id = format!("{}:{}", span.trace, span.id);
                self.said.asked_in_piece(&id, key)
            }
            (Key::Content(key), How::Given(_) | How::GivenInPiece) => self.said.given(key),
            (Key::Content(_), How::Fresh(_)) => true,
        }
    }
}

/// What else stands in a message is known by what it says, and by whose it is.
fn rest_key(role: &Role, rest: &Json) -> u64 {
    hash(format!("rest\n{}\n{}", role.word(), rest.get()).as_bytes())
}

/// What attributes say of the place where the program runs.
fn facts(session: &mut Session, attrs: &Attrs<'_>) {
    learn(&mut session.cwd, || attrs.text("process.working_directory"));
    learn(&mut session.branch, || attrs.text("vcs.ref.head.name"));
    learn(&mut session.commit, || attrs.text("vcs.ref.head.revision"));
    let repository = "vcs.repository.url.full";
    learn(&mut session.repository, || attrs.text(repository));
}

/// The entry that a part of a message is; `None` where it says nothing.
pub(super) fn entry<'a>(role: &Role, part: &Part, out: &mut Out<'_>) -> Option<Entry<'a>> {
    let mut attachments = Vec::new();
    let what = match part {
        Part::Text(text) if text.is_empty() => return None,
        Part::Text(text) => {
            let said = Text::from(text.clone());
            match role {
                Role::User => What::User(said),
                Role::Assistant => What::Assistant(said),
                Role::System | Role::Tool | Role::Other(_) => What::System(said),
            }
        }
        Part::Reasoning(text) => {
            return Some(Entry {
                opaque: text.is_empty(),
                ..Entry::new(What::Reasoning(Text::from(text.clone())))
            });
        }
        Part::Call { id, name, input } => What::Call {
            name: Cow::Owned(name.clone()),
            id: Cow::Owned(id.clone()),
            input: input
                .as_ref()
                .map(|json| outside(json, &mut attachments, out)),
        },
        Part::Response { id, name, output } => What::Result {
            name: Cow::Owned(name.clone()),
            id: Cow::Owned(id.clone()),
            output: output
                .as_ref()
                .map(|json| outside(json, &mut attachments, out)),
            error: None,
        },
        Part::Media { mime, data } => {
            let kept = out.detach(mime, data);
            let note = Entry::note(NoteKind::Attachment, mime.clone());
            return Some(match kept {
                Some(attachment) => Entry {
                    attachments: vec![attachment],
                    ..note
                },
                None => Entry::new(What::Note {
                    kind: NoteKind::Attachment,
                    text: Some(Text::from(mime.clone())),
                    raw: Some(Value::Owned(Json::string(data))),
                }),
            });
        }
        Part::Other(kind, json) => What::Note {
            kind: match kind.as_str() {
                "uri" | "file" | "image" | "image_url" | "input_image" | "audio"
                | "input_audio" | "document" | "video" => NoteKind::Attachment,
                _ => NoteKind::UnknownRecord,
            },
            text: None,
            raw: Some(outside(json, &mut attachments, out)),
        },
    };
    let mut entry = Entry::new(what);
    entry.attachments = attachments;
    if let Role::Other(word) = role {
        entry.extra.value("role", Json::string(word));
    }
    Some(entry)
}

/// A value with the images in it taken out.
pub(super) fn outside<'a>(
    json: &Json,
    attachments: &mut Vec<quipu_model::Attachment>,
    out: &mut Out<'_>,
) -> Value<'a> {
    let mut tape = quipu_model::json::Tape::new();
    let made = tape
        .read(json.get(), 256)
        .map(|node| out.value(node, attachments).to_json());
    Value::Owned(made.unwrap_or_else(|_| json.clone()))
}

impl Reader for Batches {
    fn record(&mut self, record: Node<'_>, out: &mut Out<'_>) {
        out.check(
            "batch",
            record,
            &["resourceSpans", "resourceLogs", RECEIVED],
        );
        let before = out.next_seq();
        let (mut any, mut repeated) = (None, 0_u64);
        request::each(record, |standing| {
            if out.in_record() {
                let from = out.next_seq();
                let why = self.one(&standing, out);
                any = Some(why);
                repeated += u64::from(out.next_seq() == from && why != Dropped::Empty);
            } else {
                // Each record of a document stands for itself.
                out.within(standing.record, |out, _| {
                    let before = out.next_seq();
                    let why = self.one(&standing, out);
                    nothing(before, why, out);
                });
            }
        });
        if let Some(received) = record.get(RECEIVED) {
            // A trace whose first spans did not say which conversation they are of.
            update(&mut self.session.parent, received.text("conversation"));
            out.push(Entry::keep(NoteKind::Session, record));
        }
        if !out.in_record() {
            return;
        }
        let is_empty = || super::discover::is_batch(record).then_some(Dropped::Empty);
        if let Some(why) = any.or_else(is_empty) {
            nothing(before, why, out);
        }
        if out.next_seq() > before && repeated > 0 {
            // A line becomes events as a whole; what of it came before is counted by name.
            let at = out.position();
            let drift = &mut out.ledger().drift;
            (0..repeated).for_each(|_| drift.count("left_out:batch.repeated", at));
        }
    }

    crate::state::keeps_session!();
}

/// A line of the receiver's own: which conversation the rest of a trace is in.
const RECEIVED: &str = "quipuReceived";

/// Says why nothing became of the record at hand, if nothing did.
fn nothing(before: u64, why: Dropped, out: &mut Out<'_>) {
    if out.next_seq() == before {
        out.skip(why);
    }
}
