//! What a trajectory means.

use std::borrow::Cow;

use quipu_model::json::{Kind, Node};
use quipu_model::{Attachment, Json, Money, NoteKind, Timestamp, Usage};
use serde::{Deserialize, Serialize};

use super::{parts, results, wire};
use crate::blocks;
use crate::cost::Cost;
use crate::session::learn;
use crate::{Dropped, Entry, Out, Reader, Session, Text, Value, What, time};

/// Reads a trajectory.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Trajectory {
    session: Session,
    /// The minor version.
    version: u32,
    model: Option<String>,
    /// What the steps cost, as far as they say.
    cost: Option<Cost>,
    /// Steps that were read, those of sub-agents among them.
    steps: u64,
    /// Whether Quipu wrote it, so that what stands around the steps was worked out from them.
    own: bool,
    /// The trajectory's own name, as long as it is not told.
    own_id: Option<String>,
}

impl Default for Trajectory {
    fn default() -> Self {
        Self {
            session: Session::default(),
            // What has no version is read as one of today.
            version: 7,
            model: None,
            cost: None,
            steps: 0,
            own: false,
            own_id: None,
        }
    }
}

/// Whose steps are read.
#[derive(Clone, Default)]
struct Actor<'a> {
    subagent: Option<Cow<'a, str>>,
    model: Option<Cow<'a, str>>,
}

/// What a step says of all entries it becomes.
pub(super) struct Common<'a> {
    pub(super) at: Option<Timestamp>,
    subagent: Option<Cow<'a, str>>,
    model: Option<Cow<'a, str>>,
    call: Option<Cow<'a, str>>,
    synthetic: bool,
    superseded: bool,
    pub(super) native_id: Option<Cow<'a, str>>,
    pub(super) parent_id: Option<Cow<'a, str>>,
    /// Not told yet.
    usage: Option<Usage>,
    cost: Option<Money>,
    attachments: Vec<Attachment>,
}

impl<'a> Common<'a> {
    /// Something that the agent, a person or a program said or did.
    pub(super) fn put(&mut self, mut entry: Entry<'a>, out: &mut Out<'_>) {
        let is_agents = matches!(
            entry.what,
            What::Assistant(_) | What::Reasoning(_) | What::Call { .. }
        );
        if is_agents {
            entry.model.clone_from(&self.model);
            entry.model_call.clone_from(&self.call);
            entry.usage = self.usage.take();
            entry.cost = self.cost.take();
        }
        if !matches!(entry.what, What::Call { .. } | What::Result { .. }) {
            entry.attachments.append(&mut self.attachments);
        }
        if entry.native_id.is_none() {
            entry.native_id.clone_from(&self.native_id);
            entry.parent_id.clone_from(&self.parent_id);
        }
        self.put_note(entry, out);
    }

    /// Something beside it.
    pub(super) fn put_note(&self, mut entry: Entry<'a>, out: &mut Out<'_>) {
        entry.at = entry.at.or(self.at);
        entry.subagent.clone_from(&self.subagent);
        entry.synthetic |= self.synthetic;
        if self.superseded {
            let seq = out.next_seq();
            entry.voids = Some(seq..seq + 1);
        }
        out.push(entry);
    }

    /// What the step took, and no entry told.
    fn spend(&mut self, mut entry: Entry<'a>) -> Entry<'a> {
        if self.usage.is_some() || self.cost.is_some() {
            entry.usage = self.usage.take();
            entry.cost = self.cost.take();
            entry.model.clone_from(&self.model);
            entry.model_call.clone_from(&self.call);
        }
        entry
    }
}

impl Trajectory {
    /// A field of the document that is no list of steps.
    fn field(&mut self, key: &str, value: Node<'_>, out: &mut Out<'_>) {
        let session = &mut self.session;
        match key {
            "schema_version" => {
                let text = value.as_str().unwrap_or_default();
                self.version = wire::version(&text).unwrap_or(self.version);
                if matches!(wire::version(&text), Some(0..=8)) {
                    // How it is written is no part of the session.
                    return out.skip(Dropped::Empty);
                }
                out.unknown_type("schema_version", &text);
                out.push(keep(NoteKind::Session, value));
            }
            // The name of the session is the better one: that of a trajectory is that of a part of it.
            "session_id" => {
                if let Some(id) = value.as_str().filter(|id| !id.is_empty()) {
                    session.id = Some(id.into_owned());
                }
                out.skip(Dropped::Empty);
            }
            "trajectory_id" => {
                self.own_id = value.as_str().map(Cow::into_owned);
                learn(&mut session.id, || value.as_str());
                out.skip(Dropped::Empty);
            }
            "agent" => {
                out.check("agent", value, wire::AGENT);
                // There has to be a name and a version, so some write that they know none.
                let known = |key: &str| value.text(key).filter(|text| text != "unknown");
                learn(&mut session.agent, || known("name"));
                learn(&mut session.version, || known("version"));
                self.model = value.text("model_name").map(Cow::into_owned);
                rest(value, &["name", "version", "model_name"], out);
            }
            "extra" => {
                self.about(value);
                rest(value, &["quipu"], out);
            }
            "final_metrics" if self.own => out.skip(Dropped::RepeatedUsage),
            "final_metrics" => {
                if self.cost.is_none()
                    && let Some(cost) = value.get("total_cost_usd").and_then(Cost::of)
                {
                    session.vendor_cost = Some(cost.to_text());
                }
                out.push(keep(NoteKind::Usage, value));
            }
            "continued_trajectory_ref" => out.push(keep(NoteKind::Resume, value)),
            "notes" => out.push(keep(NoteKind::Summary, value)),
            _ => {
                if !wire::TRAJECTORY.contains(&key) {
                    out.unknown_type("trajectory", key);
                }
                out.push(keep(NoteKind::UnknownRecord, value));
            }
        }
    }

    /// What Quipu knew of the session.
    fn about(&mut self, extra: Node<'_>) {
        let Some(own) = extra.get("quipu") else {
            return;
        };
        self.own = true;
        self.own_id = None;
        let session = &mut self.session;
        let environment = |key: &str| own.path(&["environment", key])?.as_str();
        learn(&mut session.title, || own.text("title"));
        learn(&mut session.parent, || own.text("parent_run_id"));
        learn(&mut session.parent_call, || own.text("parent_call"));
        learn(&mut session.forked_from, || own.text("forked_from"));
        learn(&mut session.cwd, || environment("cwd"));
        learn(&mut session.branch, || environment("branch"));
        learn(&mut session.repository, || environment("repository"));
        learn(&mut session.commit, || environment("commit"));
        learn(&mut session.os, || environment("os"));
        learn(&mut session.shell, || environment("shell"));
    }

    /// The trajectory of a sub-agent, and those inside it.
    fn subagent<'a>(&mut self, index: u64, node: Node<'a>, out: &mut Out<'_>) {
        let mut open = vec![(node, index.to_string())];
        while let Some((node, place)) = open.pop() {
            if node.kind() != Kind::Object {
                out.unknown_type("subagent_trajectories", kind_of(node));
                out.push(Entry::keep(NoteKind::UnknownRecord, node));
                continue;
            }
            out.check("trajectory", node, wire::TRAJECTORY);
            let name = wire::own(node)
                .and_then(|own| own.text("subagent_id"))
                .or(node.text("trajectory_id"))
                .or(node.text("session_id"))
                .unwrap_or_else(|| Cow::Owned(format!("subagent-{place}")));
            let actor = Actor {
                model: node.get("agent").and_then(|agent| agent.text("model_name")),
                subagent: Some(name.clone()),
            };
            // Quipu writes no more around the steps of a sub-agent than it read of them.
            if wire::own(node).is_none() {
                out.push(Entry {
                    subagent: Some(name),
                    ..Entry::new(What::Note {
                        kind: NoteKind::Subagent,
                        text: None,
                        raw: Some(blocks::without(node, wire::LISTS)),
                    })
                });
            }
            for step in node.get("steps").into_iter().flat_map(Node::items) {
                self.step(step, &actor, out);
            }
            let below = node.get("subagent_trajectories");
            let below: Vec<Node<'a>> = below.into_iter().flat_map(Node::items).collect();
            let named = below.into_iter().enumerate();
            open.extend(
                named
                    .map(|(n, below)| (below, format!("{place}.{n}")))
                    .rev(),
            );
        }
    }

    fn step<'a>(&mut self, step: Node<'a>, actor: &Actor<'a>, out: &mut Out<'_>) {
        self.steps += 1;
        if let Some(name) = self.own_id.take()
            && self.session.id.as_deref() != Some(&name)
        {
            out.push(named(&name));
        }
        let source = step.text("source").unwrap_or_default();
        if step.kind() != Kind::Object || !matches!(&*source, "user" | "system" | "agent") {
            out.unknown_type("step", &source);
            let mut note = Entry::keep(NoteKind::UnknownRecord, step);
            note.subagent.clone_from(&actor.subagent);
            return out.push(note);
        }
        out.check("step", step, wire::STEP);
        let own = wire::own(step);
        let mut common = self.common(step, actor, out);
        if let Some(text) = step.get("reasoning_content").and_then(Text::of)
            && !text.is_empty()
        {
            common.put(Entry::new(What::Reasoning(text)), out);
        }
        if !wire::marked(own, "filler") {
            message(step, &source, &mut common, out);
        }
        for call in step.get("tool_calls").into_iter().flat_map(Node::items) {
            results::call(call, &mut common, out);
        }
        let observed = step.get("observation").filter(|it| !it.is_null());
        let results = observed.and_then(|observed| observed.get("results"));
        for result in results.into_iter().flat_map(Node::items) {
            results::result(result, &mut common, out);
        }
        let unread = observed.filter(|_| results.is_none());
        beside(step, own, unread, &mut common, out);
        out.skip(Dropped::Empty);
    }

    /// What a step says of all that is in it.
    fn common<'a>(&mut self, step: Node<'a>, actor: &Actor<'a>, out: &mut Out<'_>) -> Common<'a> {
        let own = wire::own(step);
        let is_copied = wire::is_copied(step);
        let metrics = step.get("metrics").filter(|it| !it.is_null() && !is_copied);
        let usage = metrics.and_then(|metrics| wire::usage(metrics, self.version));
        let cost = metrics.and_then(|metrics| metrics.get("cost_usd").and_then(Cost::of));
        if let Some(metrics) = metrics {
            out.check("metrics", metrics, wire::METRICS);
            if let Some(cost) = cost {
                let mut sum = self.cost.unwrap_or_default();
                sum.add(cost);
                self.cost = Some(sum);
                self.session.vendor_cost = Some(sum.to_text());
            }
        }
        let is_agents = step.get("source").is_some_and(|source| source.is("agent"));
        let model = step.text("model_name").or_else(|| {
            let whole = actor.model.clone();
            whole.or_else(|| self.model.clone().map(Cow::Owned))
        });
        // Steps are calls to a model unless they say otherwise. One that goes on with a call that was counted
        // is counted by itself.
        let no_call = step
            .get("llm_call_count")
            .is_some_and(|n| n.as_u64() == Some(0));
        let named = own.and_then(|own| own.text("model_call"));
        let call = match named {
            Some(call) if (usage.is_some() || cost.is_some()) && out.ledger().knows_call(&call) => {
                Some(Cow::Owned(format!("{call}#{}", self.steps)))
            }
            Some(call) => Some(call),
            None if no_call => None,
            None => Some(Cow::Owned(format!("step-{}", self.steps))),
        };
        let events = || {
            let list = own.and_then(|own| own.get("events"));
            list.into_iter().flat_map(Node::items)
        };
        let first = events().next();
        // What several events are known by is known of each.
        let shared = |key: &str| {
            let id = first?.text(key)?;
            let is_shared = events().all(|event| event.text(key).as_ref() == Some(&id));
            is_shared.then_some(id)
        };
        let native_id = match own {
            Some(_) => shared("native_id"),
            None => step
                .get("step_id")
                .map(|id| id.as_str().unwrap_or(Cow::Borrowed(id.raw().get()))),
        };
        let listed = events().flat_map(parts::listed);
        Common {
            at: time::field(step, "timestamp"),
            subagent: actor.subagent.clone(),
            model: model.filter(|_| is_agents),
            call: call.filter(|_| is_agents),
            synthetic: is_copied || wire::marked(own, "synthetic"),
            superseded: wire::marked(own, "superseded"),
            native_id,
            parent_id: shared("parent_id"),
            usage,
            cost: cost.map(Cost::money),
            attachments: listed
                .filter(|(_, path)| path.is_none())
                .map(|(it, _)| it)
                .collect(),
        }
    }
}

/// What stands beside a step: notes that were put there, and what has no other place.
fn beside<'a>(
    step: Node<'a>,
    own: Option<Node<'a>>,
    observed: Option<Node<'a>>,
    common: &mut Common<'a>,
    out: &mut Out<'_>,
) {
    let notes = own.and_then(|own| own.get("notes"));
    let told = own_condensed(step).map(|note| note.place());
    for note in notes.into_iter().flat_map(Node::items) {
        if told != Some(note.place()) && note.get("part").is_none() {
            // What a note took stands in the step that was made for it.
            let entry = common.spend(noted(note));
            common.put_note(entry, out);
        }
    }
    if common.usage.is_some() || common.cost.is_some() {
        let note = common.spend(Entry::note(NoteKind::ModelCall, ""));
        common.put_note(note, out);
    }
    if let Some(observed) = observed {
        common.put_note(Entry::keep(NoteKind::UnknownRecord, observed), out);
    }
    let mut read = wire::READ.to_vec();
    if wire::has_extra(step, &["quipu", "context_management"]) {
        read.retain(|key| *key != "extra");
    }
    let metrics = step.get("metrics").filter(|it| !it.is_null());
    let is_copied = wire::is_copied(step);
    if is_copied && own.is_none() {
        read.retain(|key| *key != "is_copied_context");
    }
    if metrics.is_some_and(|metrics| is_copied || wire::says_more(metrics)) {
        read.retain(|key| *key != "metrics");
    }
    let is_more = |(key, value): (quipu_model::json::RawStr<'_>, Node<'_>)| {
        !value.is_null() && !read.iter().any(|known| key.is(known))
    };
    if step.fields().any(is_more) {
        let note = Entry::new(What::Note {
            kind: NoteKind::Context,
            text: None,
            raw: Some(blocks::without(step, &read)),
        });
        common.put_note(note, out);
    }
}

/// What is said in a step.
fn message<'a>(step: Node<'a>, source: &str, common: &mut Common<'a>, out: &mut Out<'_>) {
    let Some(message) = step.get("message") else {
        return;
    };
    let managed = step.path(&["extra", "context_management"]);
    let kind = managed.and_then(|managed| managed.text("type"));
    let is_condensed = matches!(kind.as_deref(), Some("compaction" | "pruning"));
    if is_condensed && source == "system" {
        return common.put_note(condensed(step, message, managed), out);
    }
    let said = |text: Text<'a>| match source {
        "user" => What::User(text),
        "system" => What::System(text),
        _ => What::Assistant(text),
    };
    match message.kind() {
        Kind::String => {
            if let Some(text) = Text::of(message)
                && (source != "agent" || !text.is_empty())
            {
                common.put(Entry::new(said(text)), out);
            }
        }
        Kind::List => {
            let own = wire::own(step);
            let count = message.items().count();
            for (n, part) in message.items().enumerate() {
                if parts::is_added(n, count, own) {
                    parts::added(n, part, own, common, out);
                } else if let Some(text) = parts::text(part) {
                    common.put(Entry::new(said(text)), out);
                } else {
                    parts::attached(part, Vec::new(), common, out);
                }
            }
        }
        Kind::Null => {}
        _ => common.put_note(Entry::keep(NoteKind::UnknownRecord, message), out),
    }
    // What the context was managed by is no message.
    if let Some(managed) = managed.filter(|_| !is_condensed || source != "system") {
        common.put_note(Entry::keep(NoteKind::Context, managed), out);
    }
}

/// A step that says that the context was condensed.
fn condensed<'a>(step: Node<'a>, message: Node<'a>, managed: Option<Node<'a>>) -> Entry<'a> {
    if let Some(note) = own_condensed(step) {
        let text = Text::of(message).filter(|_| !wire::marked(Some(note), "no_text"));
        let mut entry = noted(note);
        if let What::Note { text: said, .. } = &mut entry.what {
            *said = text;
        }
        return entry;
    }
    let text = Text::of(message);
    // Where the message is no text, only the step has all of it.
    let raw = managed.filter(|_| text.is_some()).unwrap_or(step);
    Entry::new(What::Note {
        kind: NoteKind::Compaction,
        text,
        raw: Some(raw.into()),
    })
}

/// The note that Quipu made such a step of.
fn own_condensed(step: Node<'_>) -> Option<Node<'_>> {
    step.path(&["extra", "context_management"])?;
    let notes = wire::own(step)?.get("notes")?;
    let is_one = |note: &Node<'_>| note.get("kind").is_some_and(|kind| kind.is("compaction"));
    notes.items().find(is_one)
}

/// A note that Quipu put beside a step.
pub(super) fn noted(note: Node<'_>) -> Entry<'_> {
    let kind = note
        .text("kind")
        .and_then(|word| NoteKind::from_word(&word));
    let Some(kind) = kind else {
        return Entry::keep(NoteKind::Session, note);
    };
    let text = note.get("text").and_then(Text::of);
    let raw = note.get("raw").map(|raw| match results::undone(raw, note) {
        Some(json) => Value::Owned(json),
        None => raw.into(),
    });
    Entry {
        at: note.text("time").and_then(|text| time::parse(&text)),
        native_id: note.text("native_id"),
        parent_id: note.text("parent_id"),
        attachments: parts::listed(note).map(|(it, _)| it).collect(),
        ..Entry::new(What::Note { kind, text, raw })
    }
}

/// What is left of an object, as a note; of nothing, none.
fn rest(value: Node<'_>, read: &[&str], out: &mut Out<'_>) {
    let is_more = value.kind() != Kind::Object
        || value
            .fields()
            .any(|(key, value)| !value.is_null() && !read.iter().any(|known| key.is(known)));
    if !is_more {
        return out.skip(Dropped::Empty);
    }
    if value.kind() != Kind::Object {
        return out.push(keep(NoteKind::Session, value));
    }
    out.push(Entry::new(What::Note {
        kind: NoteKind::Session,
        text: None,
        raw: Some(blocks::without(value, read)),
    }));
}

/// The name of a trajectory whose session has another.
fn named(name: &str) -> Entry<'static> {
    let raw = format!(r#"{{"trajectory_id":{}}}"#, Json::string(name).get());
    Entry::new(What::Note {
        kind: NoteKind::Session,
        text: None,
        raw: Json::parse(&raw).ok().map(Value::Owned),
    })
}

/// A note that keeps a field of the document.
fn keep(kind: NoteKind, value: Node<'_>) -> Entry<'_> {
    match Text::of(value) {
        Some(text) => Entry::note(kind, text),
        None => Entry::keep(kind, value),
    }
}

fn kind_of(node: Node<'_>) -> &'static str {
    match node.kind() {
        Kind::Null => "null",
        Kind::Bool => "bool",
        Kind::Number => "number",
        Kind::String => "string",
        Kind::List => "list",
        Kind::Object => "object",
    }
}

impl Reader for Trajectory {
    /// Not met, because trajectories are read in parts.
    fn record(&mut self, record: Node<'_>, out: &mut Out<'_>) {
        out.within(record, |_, _| {});
    }

    fn lists(&self) -> &'static [&'static str] {
        wire::LISTS
    }

    fn part(&mut self, key: &str, index: Option<u64>, value: Node<'_>, out: &mut Out<'_>) {
        match (key, index) {
            ("steps", Some(_)) => self.step(value, &Actor::default(), out),
            ("subagent_trajectories", Some(index)) => self.subagent(index, value, out),
            _ => self.field(key, value, out),
        }
    }

    crate::state::keeps_session!();
}
