//! What a line of a rollout means.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::sync::LazyLock;

use memchr::memmem::Finder;
use quipu_model::json::Node;
use quipu_model::{NoteKind, Service, Timestamp, Usage};
use serde::{Deserialize, Serialize};

use super::meter::{self, Meter};
use super::results::{self, Ending};
use super::twins::{Fate, Held, Twins, Who};
use super::wire::{self, Item, Line};
use crate::blocks;
use crate::session::{learn, update};
use crate::{Dropped, Entry, Mended, Origin, Out, Reader, Session, Text, What, time};

/// How many calls may have an ending that is not told of yet.
const ENDINGS: usize = 64;

/// Reads a rollout.
#[derive(Debug, Default, Serialize, Deserialize)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a fact of its own, and none follows from the others"
)]
pub(super) struct Rollout {
    session: Session,
    /// The session's id by the name of its file.
    named: Option<String>,
    /// Whether the session said who it is.
    begun: bool,
    /// When the session itself began, in milliseconds since 1970. Turns before that are another's.
    born: Option<i64>,
    /// The first line that is the session's own, where lines are numbered and the log says so.
    own_from: Option<u64>,
    /// Whether the session goes on from another.
    derived: bool,
    /// Whether the turn at hand is a copy of another session's.
    inherited: bool,
    pub(super) model: Option<String>,
    #[serde(with = "crate::calls::service")]
    service: Service,
    turn: Option<String>,
    /// What was said before the first turn, as one number; see [`Self::chain`].
    chained: u64,
    meter: Meter,
    /// Whether tokens are told response by response. Then totals are not counted.
    by_response: bool,
    pub(super) twins: Twins,
    /// Where each prompt is, by sequence number.
    pub(super) prompts: Vec<u64>,
    /// What events told of calls whose results are not there yet.
    pub(super) endings: VecDeque<(u64, Ending)>,
    /// The search that was told of last, whose call does not name itself.
    pub(super) search: Option<String>,
    /// Whether a compaction was written whose event may follow.
    pub(super) compacted: bool,
    /// The image that was told of last.
    pub(super) image: Option<u64>,
    /// How many calls without an id there were.
    pub(super) unnamed: u64,
}

impl Rollout {
    pub(super) fn new(origin: &Origin<'_>) -> Self {
        let stem = origin.stem().unwrap_or_default();
        let stem = stem.strip_suffix(".jsonl").unwrap_or(stem);
        let id = stem
            .strip_prefix("rollout-")
            .and_then(|rest| rest.get("2025-01-02T03-04-05-".len()..))
            .map(|ids| ids.split('_').next().unwrap_or(ids))
            .filter(|id| crate::codex::discover::is_uuid(id));
        Self {
            named: id.map(str::to_owned),
            ..Self::default()
        }
    }

    fn line(&mut self, record: Node<'_>, out: &mut Out<'_>) {
        let line = Line::of(record);
        let kind = line
            .kind
            .and_then(|kind| kind.as_raw_str()?.plain())
            .unwrap_or_default();
        let Some(payload) = line.payload else {
            return self.bare(kind, record, &line, out);
        };
        let item = Item {
            line: line.odd.then_some(record),
            ..Item::of(payload)
        };
        let at = dated(line.timestamp.or(item.timestamp), out);
        if self.session.id.is_none() && kind != "session_meta" {
            self.session.id.clone_from(&self.named);
        }
        if let (Some(from), Some(ordinal)) = (self.own_from, line.ordinal) {
            let inherited = ordinal.as_u64().is_some_and(|ordinal| ordinal < from);
            self.belongs(inherited, at, out);
        }
        match kind {
            "response_item" => self.item(record, payload, &item, at, out),
            "event_msg" => self.event(record, payload, &item, at, out),
            "session_meta" => self.meta(record, payload, at, out),
            "turn_context" => self.context(record, payload, at, out),
            "compacted" => self.compaction(record, payload, at, out),
            "token_usage_record" => self.response_tokens(record, payload, at, out),
            "inter_agent_communication" => self.agent_message(&item, at, out),
            "inter_agent_communication_metadata" => {
                // The message that follows begins a turn as a prompt does.
                if payload.get("trigger_turn").and_then(|n| n.as_bool()) == Some(true) {
                    self.prompts.push(out.next_seq() + 1);
                }
                note(NoteKind::Subagent, record, at, out);
            }
            "world_state" | "retained_context" => note(NoteKind::Context, record, at, out),
            "session_state" | "rollout_reference" => note(NoteKind::Session, record, at, out),
            "realtime_item" => note(NoteKind::Progress, record, at, out),
            "security_risk_score" => note(NoteKind::Permission, record, at, out),
            _ => {
                out.unknown_type("", kind);
                note(NoteKind::UnknownRecord, record, at, out);
            }
        }
        if line.odd {
            out.check("line", record, wire::LINE);
        }
    }

    /// A line without an envelope: the first generation, and what came before it.
    fn bare(&mut self, kind: &str, record: Node<'_>, line: &Line<'_>, out: &mut Out<'_>) {
        let at = dated(line.timestamp, out);
        let has = |key: &str| record.get(key).is_some();
        if kind.is_empty() && has("record_type") {
            return note(NoteKind::Session, record, at, out);
        }
        if kind.is_empty() && has("id") && !has("role") {
            learn(&mut self.session.id, || record.text("id"));
            self.begun = true;
            self.facts(record);
            self.chained = self
                .session
                .id
                .as_ref()
                .map_or(0, |id| crate::hash(id.as_bytes()));
            return note(NoteKind::Session, record, at, out);
        }
        if self.session.id.is_none() {
            self.session.id.clone_from(&self.named);
        }
        update(&mut self.model, record.text("model"));
        let item = Item::of(record);
        self.item(record, record, &item, at, out);
    }

    /// Gives what is said before there are turns an identity. A copy begins as its original does, so each
    /// is known by the session that it began in and all that came before it. What a copy may write in
    /// another way is left out.
    pub(super) fn chain(&mut self, said: u64, out: &mut Out<'_>) {
        if self.turn.is_some() {
            return;
        }
        self.chained = (self.chained.rotate_left(23) ^ said).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let mut digits = [0; 16];
        for (i, digit) in digits.iter_mut().enumerate() {
            *digit = b'a' + u8::try_from((self.chained >> (i * 4)) & 15).unwrap_or(0);
        }
        let unit = std::str::from_utf8(&digits).unwrap_or_default();
        out.ledger().unit(unit);
    }

    /// What the head of a rollout says of the session.
    fn facts(&mut self, meta: Node<'_>) {
        learn(&mut self.session.cwd, || meta.text("cwd"));
        update(&mut self.session.version, meta.text("cli_version"));
        if let Some(git) = meta.get("git") {
            learn(&mut self.session.branch, || git.text("branch"));
            learn(&mut self.session.commit, || git.text("commit_hash"));
            learn(&mut self.session.repository, || git.text("repository_url"));
        }
        if self.session.started_at.is_none() {
            self.session.started_at = time::field(meta, "timestamp").map(Timestamp::as_millisecond);
        }
    }

    fn meta(&mut self, record: Node<'_>, meta: Node<'_>, at: Option<Timestamp>, out: &mut Out<'_>) {
        out.check("session_meta", meta, wire::META);
        let id = meta.text("id").or(meta.text("session_id"));
        if self.begun && id.as_deref() != self.session.id.as_deref() {
            // The head of the session that this one goes on from, copied along with it.
            self.derived = true;
            self.chained = id.as_ref().map_or(0, |id| crate::hash(id.as_bytes()));
            learn(&mut self.session.forked_from, || id);
            return note(NoteKind::Fork, record, at, out);
        }
        let again = std::mem::replace(&mut self.begun, true);
        if !again {
            update(&mut self.session.id, id);
            if self.session.id.is_none() {
                self.session.id.clone_from(&self.named);
            }
        }
        self.facts(meta);
        let spawn = meta.path(&["source", "subagent", "thread_spawn"]);
        learn(&mut self.session.parent, || {
            meta.text("parent_thread_id")
                .or_else(|| spawn?.text("parent_thread_id"))
        });
        learn(&mut self.session.forked_from, || {
            meta.text("forked_from_id")
                .or_else(|| meta.get("history_base")?.text("thread_id"))
        });
        if !again {
            let origin = self
                .session
                .forked_from
                .as_ref()
                .or(self.session.id.as_ref());
            self.chained = origin.map_or(0, |origin| crate::hash(origin.as_bytes()));
        }
        self.derived |= self.session.parent.is_some() || self.session.forked_from.is_some();
        self.born = self
            .session
            .id
            .as_deref()
            .and_then(uuid_time)
            .or(self.session.started_at);
        self.own_from = meta
            .get("subagent_history_start_ordinal")
            .and_then(|n| n.as_u64());
        let kind = if again {
            NoteKind::Resume
        } else {
            NoteKind::Session
        };
        note(kind, record, at, out);
    }

    fn context(
        &mut self,
        record: Node<'_>,
        context: Node<'_>,
        at: Option<Timestamp>,
        out: &mut Out<'_>,
    ) {
        out.check("turn_context", context, wire::TURN);
        let context = context.get("turn_context").unwrap_or(context);
        learn(&mut self.session.cwd, || context.text("cwd"));
        let turn = context.get("turn_id").and_then(|n| n.as_str());
        self.turn(turn.as_deref(), None, at, out);
        if let Some(tier) = context.text("service_tier") {
            self.service = blocks::openai_service(&tier);
        }
        let before = self.model.take();
        self.model = context.text("model").map(Cow::into_owned);
        let changed = before.is_some() && self.model.is_some() && before != self.model;
        self.model = self.model.take().or(before);
        let kind = if changed {
            NoteKind::ModelChange
        } else {
            NoteKind::Context
        };
        note(kind, record, at, out);
    }

    /// A turn begins, or is told of again.
    fn turn(
        &mut self,
        id: Option<&str>,
        started: Option<Timestamp>,
        at: Option<Timestamp>,
        out: &mut Out<'_>,
    ) {
        let Some(id) = id.filter(|id| !id.is_empty()) else {
            return;
        };
        if self.turn.as_deref() != Some(id) {
            self.turn = Some(id.to_owned());
            out.ledger().unit(&format!("turn:{id}"));
        }
        // A copied turn keeps the id that it was given when it was begun, and that tells the time.
        if self.derived
            && self.own_from.is_none()
            && let Some(born) = self.born
        {
            let began = uuid_time(id).map(|began| began < born).or_else(|| {
                // Times of turns are whole seconds.
                Some(started?.as_millisecond() / 1000 < born / 1000)
            });
            if let Some(inherited) = began {
                self.belongs(inherited, at, out);
            }
        }
    }

    /// Whether what follows is a copy of another session's. Where the copy ends is noted.
    fn belongs(&mut self, inherited: bool, at: Option<Timestamp>, out: &mut Out<'_>) {
        if self.inherited && !inherited {
            let from = self
                .session
                .forked_from
                .as_deref()
                .or(self.session.parent.as_deref());
            let said = format!(
                "copied from {} until here",
                from.unwrap_or("another session")
            );
            out.push(Entry {
                at,
                ..Entry::note(NoteKind::Fork, said)
            });
        }
        self.inherited = inherited;
    }

    fn compaction<'a>(
        &mut self,
        record: Node<'a>,
        payload: Node<'a>,
        at: Option<Timestamp>,
        out: &mut Out<'_>,
    ) {
        out.check("compacted", payload, wire::COMPACTED);
        self.compacted = true;
        let mut attachments = Vec::new();
        // It repeats what is left of the conversation, images included.
        let raw = out.value(record, &mut attachments);
        let text = payload.get("message").and_then(Text::of);
        out.push(Entry {
            at,
            attachments,
            ..Entry::new(What::Note {
                kind: NoteKind::Compaction,
                text: text.filter(|text| !text.is_empty()),
                raw: Some(raw),
            })
        });
    }

    fn event(
        &mut self,
        record: Node<'_>,
        payload: Node<'_>,
        item: &Item<'_>,
        at: Option<Timestamp>,
        out: &mut Out<'_>,
    ) {
        let kind = item
            .kind
            .and_then(|kind| kind.as_raw_str()?.plain())
            .unwrap_or_default();
        match kind {
            "token_count" => return self.tokens(record, payload, item, at, out),
            "user_message"
            | "agent_message"
            | "agent_reasoning"
            | "agent_reasoning_raw_content" => {
                let who = match kind {
                    "user_message" => Who::User,
                    "agent_message" => Who::Assistant,
                    _ => Who::Reasoning,
                };
                out.leave_out(kind, payload, &["client_id"]);
                if let Some(raw) = item.text.and_then(|text| text.as_raw_str()) {
                    self.shown(who, raw.raw().get(), Text::Raw(raw), at, out);
                    out.skip(Dropped::RepeatedChannel);
                }
                return;
            }
            "item_completed" => return self.turn_item(record, payload, at, out),
            "context_compacted" => {
                if std::mem::take(&mut self.compacted) {
                    return out.skip(Dropped::RepeatedChannel);
                }
                return note(NoteKind::Compaction, record, at, out);
            }
            "raw_response_item" if self.twins.items => {
                return out.skip(Dropped::RepeatedChannel);
            }
            "turn.completed" => {
                let total = payload.get("usage").and_then(meter::usage);
                return self.count(total, None, None, record, at, out);
            }
            "image_generation_end" => return self.image(payload, item, at, out),
            kind if wire::is_delta(kind) => return out.skip(Dropped::StreamDelta),
            _ => {}
        }
        let Some((about, known)) = wire::event(kind) else {
            out.unknown_type("event_msg", kind);
            return note(NoteKind::UnknownRecord, record, at, out);
        };
        if !known.is_empty() {
            out.check(kind, payload, known);
        }
        let mut entry = Entry {
            at,
            ..Entry::new(What::Note {
                kind: about,
                text: item.text.and_then(Text::of),
                raw: Some(record.into()),
            })
        };
        match kind {
            "task_started" | "turn_started" => {
                let turn = item.turn.and_then(|n| n.as_str());
                let started = time::field(payload, "started_at");
                self.turn(turn.as_deref(), started, at, out);
            }
            "thread_name_updated" => {
                update(&mut self.session.title, payload.text("thread_name"));
            }
            "thread_rolled_back" => {
                let turns = payload
                    .get("num_turns")
                    .and_then(|n| n.as_u64())
                    .unwrap_or(0);
                entry.voids = self.roll_back(turns, out.next_seq());
            }
            "web_search_end" => update(&mut self.search, payload.text("call_id")),
            _ => {}
        }
        if let Some(call) = item
            .call
            .or(payload.get("event_id"))
            .and_then(|call| call.as_str())
        {
            let ending = results::of_event(payload);
            entry.child = ending.child.clone().map(Cow::Owned);
            entry.status = ending.status();
            entry.duration_ms = ending.duration_ms;
            if about != NoteKind::Permission {
                self.ends(&call, ending);
            }
        } else {
            entry.duration_ms = payload.get("duration_ms").and_then(|n| n.as_u64());
        }
        out.push(entry);
    }

    /// Remembers what an event says of a call, for its result.
    pub(super) fn ends(&mut self, call: &str, ending: Ending) {
        let call = crate::hash(call.as_bytes());
        if let Some((_, known)) = self.endings.iter_mut().find(|(c, _)| *c == call) {
            return known.merge(ending);
        }
        if self.endings.len() == ENDINGS {
            self.endings.pop_front();
        }
        self.endings.push_back((call, ending));
    }

    /// The numbers of the last turns, which count no longer.
    fn roll_back(&mut self, turns: u64, next: u64) -> Option<std::ops::Range<u64>> {
        let turns = usize::try_from(turns).unwrap_or(usize::MAX);
        let left = self.prompts.len().saturating_sub(turns);
        let from = *self.prompts.get(left)?;
        self.prompts.truncate(left);
        Some(from..next)
    }

    /// A text that was shown, and that is mostly also an item. Whoever calls this says at the end that
    /// the record was a repetition, which is without effect when a text stands for itself.
    pub(super) fn shown(
        &mut self,
        who: Who,
        raw: &str,
        text: Text<'_>,
        at: Option<Timestamp>,
        out: &mut Out<'_>,
    ) {
        let nanos = at.map(Timestamp::as_nanosecond);
        if self.twins.event(who, raw, nanos) == Fate::Stands {
            self.stands(who, text, at, out);
        }
    }

    /// A text that stands for the item that is not there.
    fn stands(&mut self, who: Who, text: Text<'_>, at: Option<Timestamp>, out: &mut Out<'_>) {
        let what = match who {
            Who::User if super::items::is_injected(&text) => {
                out.push(Entry {
                    at,
                    synthetic: true,
                    ..Entry::new(What::System(text))
                });
                return;
            }
            Who::User => {
                self.prompts.push(out.next_seq());
                What::User(text)
            }
            Who::Assistant => What::Assistant(text),
            Who::Reasoning => What::Reasoning(text),
        };
        let model = self.model.as_deref().filter(|_| who != Who::User);
        out.push(Entry {
            at,
            model: model.map(Cow::Borrowed),
            ..Entry::new(what)
        });
    }

    /// What waited for its item in vain.
    pub(super) fn stand(&mut self, held: Vec<Held>, out: &mut Out<'_>) {
        for Held { who, raw, at } in held {
            let at = at.and_then(|at| Timestamp::from_nanosecond(at).ok());
            let text = serde_json::from_str(&raw).unwrap_or(raw);
            self.stands(who, Text::Plain(Cow::Owned(text)), at, out);
        }
    }

    fn tokens(
        &mut self,
        record: Node<'_>,
        payload: Node<'_>,
        item: &Item<'_>,
        at: Option<Timestamp>,
        out: &mut Out<'_>,
    ) {
        out.check("token_count", payload, wire::TOKEN_COUNT);
        let Some(info) = item.info.filter(|info| !info.is_null()) else {
            // Limits of the account, without token counts.
            return note(NoteKind::Usage, record, at, out);
        };
        let (mut total, mut call) = (None, None);
        for (key, value) in info.fields() {
            match key.plain() {
                Some("total_token_usage") => {
                    out.check("tokens", value, wire::TOKENS);
                    total = meter::usage(value);
                }
                Some("last_token_usage") => call = meter::usage(value),
                _ => {}
            }
        }
        if self.by_response {
            return out.skip(Dropped::RepeatedUsage);
        }
        self.count(total, call, None, record, at, out);
    }

    /// Tokens of one response, with its id and the total so far.
    fn response_tokens(
        &mut self,
        record: Node<'_>,
        payload: Node<'_>,
        at: Option<Timestamp>,
        out: &mut Out<'_>,
    ) {
        let call = payload.get("usage").and_then(meter::usage);
        let total = payload.get("thread_token_usage").and_then(meter::usage);
        self.by_response = true;
        self.count(total, call, payload.text("response_id"), record, at, out);
    }

    /// Counts what a total adds, or a call where there is no total.
    pub(super) fn count(
        &mut self,
        total: Option<Usage>,
        call: Option<Usage>,
        response: Option<Cow<'_, str>>,
        record: Node<'_>,
        at: Option<Timestamp>,
        out: &mut Out<'_>,
    ) {
        let added = match total {
            Some(total) => {
                let Some(added) = self.meter.take(total, call) else {
                    return out.skip(Dropped::RepeatedUsage);
                };
                let counts = [total.input, total.cache_read, total.output];
                let said = counts.into_iter().fold(1, |sum: u64, count| {
                    sum.wrapping_mul(0x100_0000_01b3) ^ count.unwrap_or(0)
                });
                self.chain(said, out);
                Some(added)
            }
            None => call,
        };
        // What a sub-agent was given is its parent's, where the log says itself which part of it that is.
        // All else that was copied counts, since its original may be gone; where it is there, the turns tell
        // that it is a copy. Times alone do not tell: those of the turn and of the session may differ by
        // more than they should.
        let anothers = self.inherited && self.own_from.is_some() && self.session.parent.is_some();
        let added = added.filter(|added| added.total() > 0 && !anothers);
        if let Some(added) = &added {
            let mut sum = self
                .session
                .vendor_usage
                .map(Usage::from)
                .unwrap_or_default();
            sum.add(added);
            self.session.vendor_usage = Some(sum.into());
        }
        out.push(Entry {
            at,
            model: self.model.as_deref().map(Cow::Borrowed),
            model_call: response,
            usage: added,
            service: self.service,
            ..Entry::keep(NoteKind::Usage, record)
        });
    }
}

/// A note that keeps a record.
pub(super) fn note(kind: NoteKind, record: Node<'_>, at: Option<Timestamp>, out: &mut Out<'_>) {
    out.push(Entry {
        at,
        ..Entry::keep(kind, record)
    });
}

/// The time of a line.
fn dated(time: Option<Node<'_>>, out: &mut Out<'_>) -> Option<Timestamp> {
    let time = time.filter(|time| !time.is_null())?;
    let at = time::of(time);
    if at.is_none() {
        out.ledger().mend(Mended::Timestamp);
    }
    at
}

/// The time that an id of the seventh version begins with, in milliseconds since 1970.
fn uuid_time(id: &str) -> Option<i64> {
    if !crate::codex::discover::is_uuid(id) || id.as_bytes().get(14) != Some(&b'7') {
        return None;
    }
    let digits: String = id.chars().filter(|c| *c != '-').take(12).collect();
    i64::from_str_radix(&digits, 16).ok()
}

/// Types of lines that say nothing of calls to models: what is said, and what tools did.
static SAID: LazyLock<[Finder<'static>; 3]> = LazyLock::new(|| {
    [
        "\"type\":\"response_item\"",
        "\"type\":\"exec_command_end\"",
        "\"type\":\"exec_command_output_delta\"",
    ]
    .map(Finder::new)
});

/// What every count of tokens is called, at its end. Some items have one.
static TOKENS: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new("_tokens\""));

/// Items that are paid for by themselves.
static SEARCHES: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new("web_search"));

/// Where the type of a line is at the latest; that of its payload follows in as many bytes.
const TYPE_WITHIN: usize = 128;

impl Reader for Rollout {
    fn record(&mut self, record: Node<'_>, out: &mut Out<'_>) {
        self.line(record, out);
    }

    fn finish(&mut self, out: &mut Out<'_>) {
        let mut held = Vec::new();
        self.twins.other(|waited| held.push(waited));
        self.stand(held, out);
    }

    fn can_skip(&self, line: &[u8]) -> bool {
        // Where lines are numbered, each may say that the copy ends here.
        if !self.begun || self.own_from.is_some() || self.session.id.is_none() {
            return false;
        }
        let head = &line[..line.len().min(TYPE_WITHIN)];
        SAID.iter().any(|kind| kind.find(head).is_some())
            && SEARCHES
                .find(&line[..line.len().min(2 * TYPE_WITHIN)])
                .is_none()
            && TOKENS.find(line).is_none()
    }

    crate::state::keeps_session!();
}
