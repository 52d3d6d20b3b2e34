//! What has been heard so far, and what goes to the hearer.

use std::collections::HashMap;

use quipu_agents::{Entry, Position, Sink};
use quipu_model::{
    Annotations, Attachment, Body, Content, Event, Json, Money, Note, NoteKind, RunId, Timestamp,
    Usage,
};

use super::verdict::{self, Verdict};
use super::{Hearer, SessionHandle, Stream, Which};
use crate::agent::Answer;

/// How much text an answer has at most.
pub(super) const MOST_OUTPUT: usize = 16 << 20;

/// How many calls are waited for at most.
const OPEN_CALLS: usize = 16 << 10;

/// How much is kept of lines that the reader made nothing of.
const MOST_UNREAD: usize = 1 << 20;

/// What has been heard so far.
pub(in crate::agent) struct Account {
    which: Which,
    /// Whether the dialect is not made of lines.
    pub(super) is_whole: bool,
    /// The prompt that the agent may repeat, until it has.
    prompt: Option<String>,
    pub(super) session: Option<String>,
    /// What the agent says the session cost.
    pub(super) vendor_cost: Option<Money>,
    cost: Option<Money>,
    usage: Option<Usage>,
    /// What was counted before in the same session, where the agent reports sums.
    counted_before: Option<Usage>,
    model: Option<String>,
    text: Capped,
    /// The answer as the last record says.
    result: Option<String>,
    /// Why the agent says that it failed.
    failure: Option<String>,
    /// Whether the agent said that it is done.
    pub(in crate::agent) is_done: bool,
    open: HashMap<String, String>,
    unread: String,
    said_or_did: bool,
}

/// A text up to a limit.
#[derive(Default)]
struct Capped {
    text: String,
    is_cut: bool,
    has_any: bool,
}

impl Capped {
    fn push(&mut self, text: &str) {
        self.has_any = true;
        let room = MOST_OUTPUT.saturating_sub(self.text.len());
        let most = (0..=text.len().min(room))
            .rev()
            .find(|at| text.is_char_boundary(*at));
        let (kept, left) = text.split_at(most.unwrap_or(0));
        self.text.push_str(kept);
        self.is_cut |= !left.is_empty();
    }
}

impl Account {
    pub(super) fn new(stream: &Stream, prompt: &str, session: Option<&SessionHandle>) -> Self {
        let dialect = stream.dialect.as_deref().and_then(quipu_agents::dialect);
        let framing = dialect.map(|(_, dialect)| dialect.framing);
        let sums = stream.dialect.as_deref() == Some("codex-exec");
        let before = session.and_then(|session| session.counted);
        Self {
            which: stream.answer,
            is_whole: framing.is_some_and(|it| it != quipu_agents::Framing::Lines),
            prompt: Some(prompt.trim().to_owned()),
            session: session.and_then(|session| session.id.clone()),
            vendor_cost: None,
            cost: None,
            usage: None,
            counted_before: before.filter(|_| sums).map(Usage::from),
            model: None,
            text: Capped::default(),
            result: None,
            failure: None,
            is_done: false,
            open: HashMap::new(),
            unread: String::new(),
            said_or_did: false,
        }
    }

    /// What is known, as an answer.
    pub(in crate::agent) fn answer(&mut self) -> Answer {
        let text = std::mem::take(&mut self.text.text);
        Answer {
            output: self.result.take().unwrap_or(text),
            model: self.model.take(),
            usage: self.usage,
            cost: self.vendor_cost.or(self.cost),
            ..Answer::default()
        }
    }

    /// The agent's own id of the session.
    pub(in crate::agent) fn session(&self) -> Option<&str> {
        self.session.as_deref()
    }

    /// Why the agent says that it failed.
    pub(in crate::agent) fn failure(&mut self) -> Option<String> {
        self.failure.take()
    }

    pub(super) fn is_cut(&self) -> bool {
        self.text.is_cut && self.result.is_none()
    }

    /// The calls whose results have not come, by their ids.
    pub(super) fn open_calls(&mut self) -> Vec<(String, String)> {
        let mut open: Vec<_> = self.open.drain().collect();
        open.sort();
        open
    }

    /// What the agent printed, where the reader made nothing of any of it.
    pub(super) fn only_unread(&mut self) -> Option<String> {
        let unread = std::mem::take(&mut self.unread);
        let is_all = !self.said_or_did && self.result.is_none() && self.failure.is_none();
        (is_all && !unread.is_empty()).then(|| unread.trim_end().to_owned())
    }

    /// Takes in text of the answer. `goes_on` when it is more of the same message.
    pub(super) fn say(&mut self, text: &str, goes_on: bool) {
        self.said_or_did = true;
        if !goes_on {
            match self.which {
                Which::Last => self.text = Capped::default(),
                Which::All | Which::Result if self.text.has_any => self.text.push("\n"),
                Which::All | Which::Result => {}
            }
        }
        self.text.push(text);
    }

    fn count(&mut self, annotations: &mut Annotations) {
        if let Some(mut usage) = annotations.usage {
            if let Some(before) = self.counted_before.take()
                && covers(&usage, &before)
            {
                usage = usage.beyond(&before);
                annotations.usage = Some(usage);
            }
            self.usage.get_or_insert_default().add(&usage);
        }
        if let Some(cost) = annotations.cost {
            *self.cost.get_or_insert_default() += cost;
        }
    }

    fn judge(&mut self, verdict: Verdict) {
        match verdict {
            Verdict::Failed(why) => self.failure = Some(why),
            Verdict::Done(result) => {
                self.failure = None;
                self.is_done = true;
                if self.which == Which::Result && result.is_some() {
                    self.result = result;
                }
            }
        }
    }
}

/// Whether a usage can be the sum of another and more.
fn covers(usage: &Usage, before: &Usage) -> bool {
    [
        (usage.input, before.input),
        (usage.cache_read, before.cache_read),
        (usage.output, before.output),
    ]
    .into_iter()
    .all(|(now, before)| now.unwrap_or(0) >= before.unwrap_or(0))
}

/// Takes the entries of one line.
pub(super) struct Taking<'a> {
    hearer: &'a mut dyn Hearer,
    account: &'a mut Account,
    /// The line that is read.
    pub(super) line: &'a [u8],
    run_id: RunId,
}

impl<'a> Taking<'a> {
    pub(super) fn new(hearer: &'a mut dyn Hearer, account: &'a mut Account) -> Self {
        Self {
            hearer,
            account,
            line: &[],
            run_id: quipu_agents::run_id("agent"),
        }
    }

    /// A note of Quipu's own, with the bytes that it is about.
    pub(super) fn note(&mut self, kind: NoteKind, text: String, about: Option<&[u8]>) {
        let raw = about.map(|bytes| Json::string(&String::from_utf8_lossy(bytes)));
        let note = Note {
            kind,
            text: Some(text),
            raw,
        };
        self.hearer.event(Body::Note(note), Annotations::default());
    }

    /// Takes in what an event says; `false` when the hearer has it already.
    fn take_in(&mut self, event: &mut Event) -> bool {
        let account = &mut *self.account;
        account.count(&mut event.annotations);
        let own = event.annotations.subagent_id.is_none();
        match &mut event.body {
            Body::UserMessage(_) => {
                let said: String = event.body.texts().collect();
                let is_echo = own && account.prompt.as_deref() == Some(said.trim());
                if is_echo {
                    account.prompt = None;
                    return false;
                }
            }
            Body::AssistantMessage(blocks) if own => {
                account.said_or_did = true;
                // A failure that was overcome.
                account.failure = None;
                for block in blocks {
                    if let Content::Text(text) = &block.content {
                        account.say(text, false);
                        self.hearer.text(text);
                    }
                }
            }
            Body::ToolCall(call) => {
                account.said_or_did = true;
                if account.open.len() < OPEN_CALLS && !call.call_id.as_str().is_empty() {
                    let id = call.call_id.as_str().to_owned();
                    account.open.insert(id, call.name.clone());
                }
            }
            Body::ToolResult(result) => {
                account.open.remove(result.call_id.as_str());
            }
            Body::Note(note) => {
                keep_whole(note, self.line);
                let unread = matches!(note.kind, NoteKind::UnknownRecord | NoteKind::MalformedLine);
                let room = MOST_UNREAD.saturating_sub(account.unread.len());
                if unread && self.line.len() < room {
                    account.unread.push_str(&String::from_utf8_lossy(self.line));
                    account.unread.push('\n');
                } else if !unread {
                    account.said_or_did |= note.kind != NoteKind::Error;
                }
            }
            _ => {}
        }
        if own && let Some(model) = &event.annotations.model {
            // Sums of tokens name models as well, also those that did not answer.
            if matches!(event.body, Body::Note(_)) {
                account.model.get_or_insert_with(|| model.clone());
            } else {
                account.model = Some(model.clone());
            }
        }
        true
    }
}

/// Notes on lines that do not read show their beginning. Nothing else keeps such a line, so the note does.
fn keep_whole(note: &mut Note, line: &[u8]) {
    if note.kind == NoteKind::MalformedLine && note.raw.is_none() && !line.is_empty() {
        note.raw = Some(Json::string(&String::from_utf8_lossy(line)));
    }
}

impl Sink for Taking<'_> {
    fn entry(&mut self, seq: u64, at: Timestamp, position: Position, entry: &Entry<'_>) {
        let mut event = entry.to_event(seq, at, &self.run_id, position, "");
        // Where it stood in what was printed says nothing once that is gone, and the recorder knows the time.
        event.annotations.source = None;
        event.annotations.flags.undated = false;
        if !self.take_in(&mut event) {
            return;
        }
        let mut denials = Vec::new();
        if let Body::Note(note) = &event.body
            && let Some(heard) = verdict::of(note)
        {
            if let Some(model) = heard.model {
                self.account.model.get_or_insert(model);
            }
            if let Some(verdict) = heard.verdict {
                self.account.judge(verdict);
            }
            denials = heard.denials;
            if let Some(body) = heard.instead {
                // The record that an error was read from is kept beside it; harness events have it themselves.
                if matches!(body, Body::Error(_)) && event.annotations.extra.is_none() {
                    event.annotations.extra = verdict::extra(note);
                }
                event.body = body;
            }
        }
        self.hearer.event(event.body, event.annotations);
        for denial in denials {
            self.hearer.event(denial, Annotations::default());
        }
    }

    fn blob(&mut self, attachment: &Attachment, bytes: &[u8]) {
        self.hearer.blob(attachment, bytes);
    }

    fn wants_blobs(&self) -> bool {
        true
    }
}
