//! What a document says of the session as a whole.

use std::borrow::Cow;

use quipu_model::json::{Kind, Node};
use quipu_model::{Environment, Header, Json, Money, Origin, RunId, Timestamp, Totals, Usage};

use super::value::{commitment, counts, redactions, run_id};
use super::{Base, duration_ms};
use crate::normalized::write::{OWN_ADAPTER, repository_name, transcript_id};
use crate::normalized::{
    ContentPolicy, Extra, NormalizedError, NormalizedOptions, Privacy, Section, Submitter,
    ToolOutput,
};

/// Something a document says of itself that its events do not bear out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mismatch {
    /// The field.
    pub field: Cow<'static, str>,
    /// What it says.
    pub stated: String,
    /// What it should say.
    pub counted: String,
}

/// A field of a document. What a document does not mention is worked out from its events; what it says to be
/// unknown is not.
#[derive(Debug, Clone, Copy, Default)]
pub(super) enum Mention<T> {
    /// It is not there.
    #[default]
    Nothing,
    /// It is `null`.
    Unknown,
    /// It is this.
    Known(T),
}

impl<T: Clone> Mention<T> {
    fn known(&self) -> Option<&T> {
        match self {
            Self::Known(value) => Some(value),
            Self::Nothing | Self::Unknown => None,
        }
    }

    /// What it says, or else what something else says.
    pub(super) fn or(&self, other: Option<&T>) -> Option<T> {
        match self {
            Self::Nothing => other.cloned(),
            Self::Unknown => None,
            Self::Known(value) => Some(value.clone()),
        }
    }

    fn is_said(&self) -> bool {
        !matches!(self, Self::Nothing)
    }
}

/// What the sections of a document say, taken in one by one.
#[derive(Debug, Clone, Default)]
pub struct Head {
    version: Option<String>,
    has_events: bool,
    id: Option<String>,
    origin: Option<Origin>,
    environment: Environment,
    run_id: Option<RunId>,
    parent_run_id: Mention<RunId>,
    parent_call: Option<String>,
    forked_from: Option<String>,
    children: Option<Vec<RunId>>,
    title: Mention<String>,
    started_at: Mention<Timestamp>,
    ended_at: Mention<Timestamp>,
    stated: Stated,
    options: NormalizedOptions,
    seen: Seen,
    unread: Vec<(String, Json)>,
}

#[derive(Debug, Clone, Default)]
struct Seen {
    submitter: bool,
    privacy: bool,
}

/// What the document says its events come to.
#[derive(Debug, Clone, Default)]
struct Stated {
    events: Option<u64>,
    messages: Option<u64>,
    tool_calls: Option<u64>,
    duration_ms: Option<u64>,
    usage: Option<Usage>,
    cost: Mention<Money>,
    models: Option<Vec<String>>,
}

impl Head {
    /// Takes in a field of the document, other than the events.
    ///
    /// # Errors
    ///
    /// When the document is of a version that is not read.
    pub fn take(&mut self, key: &str, node: Node<'_>) -> Result<(), NormalizedError> {
        match key {
            "schemaVersion" => {
                let version = text(node).unwrap_or_else(|| node.raw().get().to_owned());
                if version != "0" && !version.starts_with("0.") {
                    return Err(NormalizedError::Version(version));
                }
                self.version = Some(version);
            }
            "transcriptId" => match text(node) {
                Some(id) => self.id = Some(id),
                None => self.wrong("transcriptId", node),
            },
            "source" => self.source(node),
            "session" => self.session(node),
            "submitter" => self.submitter(node),
            "privacy" => self.privacy(node),
            "metrics" => self.metrics(node),
            // A list is given item by item; this is none.
            "events" => {
                self.has_events = true;
                self.wrong("events", node);
            }
            _ => self.extra(Section::Document, key, node),
        }
        Ok(())
    }

    /// Whether this is what a transcript says.
    pub fn is_transcript(&self) -> bool {
        self.version.is_some() || self.has_events
    }

    /// The agent, where it is known.
    pub fn origin(&self) -> Option<&Origin> {
        self.origin.as_ref()
    }

    /// Where the session took place.
    pub fn environment(&self) -> &Environment {
        &self.environment
    }

    /// What the session is called.
    pub fn title(&self) -> Option<&str> {
        self.title.known().map(String::as_str)
    }

    /// The run that called this one, and the session this one was copied from.
    pub fn links(&self) -> (Option<&RunId>, Option<&str>) {
        (self.parent_run_id.known(), self.forked_from.as_deref())
    }

    /// The tool call in the calling run that began this one.
    pub fn parent_call(&self) -> Option<&str> {
        self.parent_call.as_deref()
    }

    /// When the session began.
    pub fn started_at(&self) -> Option<Timestamp> {
        self.started_at.known().copied()
    }

    /// What events have in common. Sections that come after them have no part in it.
    pub fn base(&self) -> Base {
        let named = self.id.as_deref().and_then(|id| RunId::new(id).ok());
        Base {
            run_id: self.run_id.clone().or(named).unwrap_or_else(nameless),
            parent_run_id: self.parent_run_id.known().cloned(),
            last: Timestamp::UNIX_EPOCH,
            log: self.origin.as_ref().and_then(|origin| origin.path.clone()),
        }
    }

    fn extra(&mut self, section: Section, key: &str, node: Node<'_>) {
        self.options.extra.push(Extra {
            section,
            key: key.to_owned(),
            value: node.raw().into(),
        });
    }

    fn wrong(&mut self, path: &str, node: Node<'_>) {
        if !node.is_null() {
            self.unread.push((path.to_owned(), node.raw().into()));
        }
    }

    /// Walks the fields of a section. `take` says whether it knows a field and could read it.
    fn fields(
        &mut self,
        section: Section,
        path: &str,
        node: Node<'_>,
        mut take: impl FnMut(&mut Self, &str, Node<'_>) -> Taken,
    ) {
        if node.kind() != Kind::Object {
            return self.wrong(path, node);
        }
        for (key, value) in node.fields() {
            let key = key.to_text_lossy();
            match take(self, &key, value) {
                Taken::Read => {}
                Taken::Wrong => self.wrong(&format!("{path}.{key}"), value),
                Taken::Unknown => self.extra(section, &key, value),
            }
        }
    }

    fn source(&mut self, node: Node<'_>) {
        let mut origin = Origin::default();
        let (mut known, mut named) = (true, false);
        self.fields(
            Section::Source,
            "source",
            node,
            |head, key, value| match key {
                "agent" => {
                    named = value.kind() == Kind::String;
                    set(&mut origin.agent, text(value))
                }
                "agentVersion" => set_option(&mut origin.agent_version, value),
                "adapter" if value.is(OWN_ADAPTER) => Taken::Read,
                "adapter" => set_option(&mut origin.adapter, value),
                "adapterVersion" => set_option(&mut head.options.adapter_version, value),
                "sessionId" => set_option(&mut origin.session_id, value),
                "path" => set_option(&mut origin.path, value),
                "agentKnown" => set(&mut known, value.as_bool()),
                _ => Taken::Unknown,
            },
        );
        let says = named || origin != Origin::default();
        self.origin = Some(origin).filter(|_| known && says);
    }

    fn session(&mut self, node: Node<'_>) {
        self.fields(
            Section::Session,
            "session",
            node,
            |head, key, value| match key {
                "startedAt" => set_nullable(&mut head.started_at, value, time),
                "endedAt" => set_nullable(&mut head.ended_at, value, time),
                "capturedAt" => {
                    let mut at = Mention::Nothing;
                    let taken = set_nullable(&mut at, value, time);
                    head.options.captured_at = at.known().copied();
                    taken
                }
                "environment" => {
                    head.take_environment(value);
                    Taken::Read
                }
                "runId" => {
                    head.run_id = run_id(value);
                    Taken::of(head.run_id.is_some())
                }
                "parentRunId" => set_nullable(&mut head.parent_run_id, value, run_id),
                "parentCall" => set_option(&mut head.parent_call, value),
                "forkedFrom" => set_option(&mut head.forked_from, value),
                "children" => {
                    let children: Option<Vec<RunId>> = value.items().map(run_id).collect();
                    head.children = children.filter(|_| value.kind() == Kind::List);
                    Taken::of(head.children.is_some())
                }
                "title" => set_nullable(&mut head.title, value, text),
                _ => Taken::Unknown,
            },
        );
    }

    fn take_environment(&mut self, node: Node<'_>) {
        let path = "session.environment";
        self.fields(Section::Environment, path, node, |head, key, value| {
            let at = &mut head.environment;
            match key {
                "os" => set_option(&mut at.os, value),
                "shell" => set_option(&mut at.shell, value),
                "cwd" => set_option(&mut at.cwd, value),
                "repo" => {
                    head.repo(value);
                    Taken::Read
                }
                _ => Taken::Unknown,
            }
        });
    }

    fn repo(&mut self, node: Node<'_>) {
        let path = "session.environment.repo";
        let remote = node.text("remote");
        let follows = remote.as_deref().and_then(repository_name);
        self.fields(Section::Repo, path, node, |head, key, value| {
            let at = &mut head.environment;
            match key {
                "remote" => set_option(&mut at.repository, value),
                "commit" => set_option(&mut at.commit, value),
                "branch" => set_option(&mut at.git_branch, value),
                // The name follows from the address, and is kept where it does not.
                "name" if value.as_str().as_deref() == follows => Taken::Read,
                _ => Taken::Unknown,
            }
        });
    }

    fn submitter(&mut self, node: Node<'_>) {
        self.seen.submitter = true;
        let mut submitter = Submitter::default();
        self.fields(
            Section::Submitter,
            "submitter",
            node,
            |_, key, value| match key {
                "keyId" => set_option(&mut submitter.key_id, value),
                "pseudonym" => set_option(&mut submitter.pseudonym, value),
                "identityLinked" => set_some(&mut submitter.identity_linked, value.as_bool()),
                _ => Taken::Unknown,
            },
        );
        self.options.submitter = Some(submitter).filter(|_| node.kind() == Kind::Object);
    }

    fn privacy(&mut self, node: Node<'_>) {
        self.seen.privacy = true;
        let mut privacy = Privacy::default();
        self.fields(
            Section::Privacy,
            "privacy",
            node,
            |head, key, value| match key {
                "profile" => set_some(&mut privacy.profile, text(value)),
                "redactionApplied" => set_some(&mut privacy.redaction_applied, value.as_bool()),
                "anonymizationApplied" => {
                    set_some(&mut privacy.anonymization_applied, value.as_bool())
                }
                "rulesApplied" => set_some(&mut privacy.rules_applied, texts(value)),
                "redactionCount" => set_some(&mut privacy.redaction_count, value.as_u64()),
                "contentPolicy" => {
                    let mut policy = ContentPolicy::default();
                    head.content_policy(&mut policy, value);
                    privacy.content_policy = Some(policy).filter(|_| value.kind() == Kind::Object);
                    Taken::Read
                }
                "rulesDigest" => set_some(&mut privacy.rules_digest, text(value)),
                "rulesMatched" => set_some(&mut privacy.rules_matched, counts(value)),
                "timeShift" => set_some(&mut privacy.time_shift, value.as_bool()),
                "idsReplaced" => set_some(&mut privacy.ids_replaced, value.as_bool()),
                "numbersRounded" => set_some(&mut privacy.numbers_rounded, value.as_bool()),
                // With fields that are not known it is kept as it is.
                "redactions" => set_known(&mut privacy.redactions, redactions(value)),
                "commitment" => set_known(&mut privacy.commitment, commitment(value)),
                _ => Taken::Unknown,
            },
        );
        self.options.privacy = Some(privacy).filter(|_| node.kind() == Kind::Object);
    }

    fn content_policy(&mut self, policy: &mut ContentPolicy, node: Node<'_>) {
        let path = "privacy.contentPolicy";
        self.fields(
            Section::ContentPolicy,
            path,
            node,
            |_, key, value| match key {
                "includeFileContents" => {
                    set_some(&mut policy.include_file_contents, value.as_bool())
                }
                "toolOutput" => {
                    let word = value.as_str();
                    let word = word.as_deref().map(ToolOutput::from_word);
                    set_some(&mut policy.tool_output, word)
                }
                _ => Taken::Unknown,
            },
        );
    }

    fn metrics(&mut self, node: Node<'_>) {
        self.fields(Section::Metrics, "metrics", node, |head, key, value| {
            let stated = &mut head.stated;
            match key {
                "eventCount" => set_count(&mut stated.events, value),
                "messageCount" => set_count(&mut stated.messages, value),
                "toolCallCount" => set_count(&mut stated.tool_calls, value),
                "durationMs" => set_count(&mut stated.duration_ms, value),
                "tokens" => {
                    head.tokens(value);
                    Taken::Read
                }
                "costUsd" => set_nullable(&mut stated.cost, value, super::value::money),
                "models" => {
                    stated.models = texts(value);
                    Taken::of(stated.models.is_some())
                }
                _ => Taken::Unknown,
            }
        });
    }

    fn tokens(&mut self, node: Node<'_>) {
        let mut usage = Usage::default();
        self.fields(Section::Tokens, "metrics.tokens", node, |_, key, value| {
            match super::value::bucket(&mut usage, key) {
                Some(bucket) => set_count(bucket, value),
                None => Taken::Unknown,
            }
        });
        // Without any count, nothing is said.
        self.stated.usage = Some(usage).filter(|usage| !usage.is_empty());
    }

    /// What is true of the session, when all was read. `counted` is what the events come to.
    pub(in crate::normalized) fn end(
        mut self,
        counted: &Header,
    ) -> (
        Header,
        NormalizedOptions,
        Vec<Mismatch>,
        Vec<(String, Json)>,
    ) {
        let header = Header {
            parent_run_id: self.parent_run_id.or(counted.parent_run_id.as_ref()),
            parent_call: self.parent_call.take().map(Into::into),
            forked_from: self.forked_from.take().map(Into::into),
            children: (self.children.take())
                .map_or_else(|| counted.children.clone(), |all| all.into_iter().collect()),
            title: self.title.or(counted.title.as_ref()),
            origin: self.origin.take(),
            environment: std::mem::take(&mut self.environment),
            started_at: self.started_at.or(counted.started_at.as_ref()),
            ended_at: self.ended_at.or(counted.ended_at.as_ref()),
            totals: self.stated.totals(&counted.totals),
            run_id: counted.run_id.clone(),
        };
        let mismatches = self.stated.mismatches(&header, counted);
        let mut options = self.options;
        options.transcript_id = self.id.filter(|id| *id != transcript_id(&header.run_id));
        let own = env!("CARGO_PKG_VERSION");
        options.adapter_version = options.adapter_version.filter(|version| version != own);
        if !self.seen.submitter {
            options.submitter = None;
        }
        if !self.seen.privacy {
            options.privacy = None;
        }
        (header, options, mismatches, self.unread)
    }
}

impl Stated {
    fn totals(&self, counted: &Totals) -> Totals {
        let models = self.models.as_ref().unwrap_or(&counted.models);
        Totals {
            events: self.events.unwrap_or(counted.events),
            messages: self.messages.unwrap_or(counted.messages),
            tool_calls: self.tool_calls.unwrap_or(counted.tool_calls),
            usage: self.usage.unwrap_or(counted.usage),
            cost: self.cost.or(counted.cost.as_ref()),
            models: models.clone(),
        }
    }

    fn mismatches(&self, header: &Header, counted: &Header) -> Vec<Mismatch> {
        let mut found = Vec::new();
        let mut compare = |field: &'static str, stated: Option<String>, counted: String| {
            if let Some(stated) = stated.filter(|stated| *stated != counted) {
                found.push(Mismatch {
                    field: Cow::Borrowed(field),
                    stated,
                    counted,
                });
            }
        };
        let number = |n: Option<u64>| n.map(|n| n.to_string());
        let totals = &counted.totals;
        compare("eventCount", number(self.events), totals.events.to_string());
        compare(
            "messageCount",
            number(self.messages),
            totals.messages.to_string(),
        );
        compare(
            "toolCallCount",
            number(self.tool_calls),
            totals.tool_calls.to_string(),
        );
        let took = number(duration_ms(header)).unwrap_or_else(|| "unknown".to_owned());
        compare("durationMs", number(self.duration_ms), took);
        let cost = |cost: Option<Money>| cost.map_or_else(|| "null".to_owned(), |c| c.to_string());
        let stated = self
            .cost
            .is_said()
            .then(|| cost(self.cost.known().copied()));
        compare("costUsd", stated, cost(totals.cost));
        let models = |models: &Vec<String>| models.join(", ");
        compare(
            "models",
            self.models.as_ref().map(models),
            models(&totals.models),
        );
        let stated = self.usage.unwrap_or_default();
        for (field, stated, counted) in [
            ("tokens.input", stated.input, totals.usage.input),
            ("tokens.output", stated.output, totals.usage.output),
            (
                "tokens.cacheRead",
                stated.cache_read,
                totals.usage.cache_read,
            ),
            (
                "tokens.cacheWrite",
                stated.cache_write,
                totals.usage.cache_write,
            ),
            (
                "tokens.cacheWrite1h",
                stated.cache_write_1h,
                totals.usage.cache_write_1h,
            ),
            ("tokens.reasoning", stated.reasoning, totals.usage.reasoning),
        ] {
            // Events need not say what they used; then there is nothing to compare with.
            if let Some(counted) = counted {
                compare(field, number(stated), counted.to_string());
            }
        }
        found
    }
}

/// What became of a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Taken {
    Read,
    /// It holds something else than it should.
    Wrong,
    Unknown,
}

impl Taken {
    fn of(read: bool) -> Self {
        if read { Self::Read } else { Self::Wrong }
    }
}

fn set<T>(to: &mut T, value: Option<T>) -> Taken {
    let read = value.is_some();
    if let Some(value) = value {
        *to = value;
    }
    Taken::of(read)
}

fn set_some<T>(to: &mut Option<T>, value: Option<T>) -> Taken {
    let read = value.is_some();
    *to = value;
    Taken::of(read)
}

/// As [`set_some`], but what cannot be read is kept.
fn set_known<T>(to: &mut Option<T>, value: Option<T>) -> Taken {
    match set_some(to, value) {
        Taken::Wrong => Taken::Unknown,
        taken => taken,
    }
}

fn set_option<T: From<String>>(to: &mut Option<T>, node: Node<'_>) -> Taken {
    *to = text(node).map(T::from);
    Taken::of(to.is_some() || node.is_null())
}

fn set_count(to: &mut Option<u64>, node: Node<'_>) -> Taken {
    *to = node.as_u64();
    Taken::of(to.is_some() || node.is_null())
}

fn set_nullable<T>(
    to: &mut Mention<T>,
    node: Node<'_>,
    read: impl FnOnce(Node<'_>) -> Option<T>,
) -> Taken {
    match read(node) {
        Some(value) => *to = Mention::Known(value),
        None if node.is_null() => *to = Mention::Unknown,
        None => return Taken::Wrong,
    }
    Taken::Read
}

fn text(node: Node<'_>) -> Option<String> {
    node.as_str().map(Cow::into_owned)
}

fn texts(node: Node<'_>) -> Option<Vec<String>> {
    let all: Option<Vec<String>> = node.items().map(text).collect();
    all.filter(|_| node.kind() == Kind::List)
}

fn time(node: Node<'_>) -> Option<Timestamp> {
    node.as_str()?.parse().ok()
}

/// The run of a document that does not name one.
fn nameless() -> RunId {
    RunId::new("transcript").expect("a plain word is a run id")
}
