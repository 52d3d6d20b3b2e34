//! Requests that instrumented programs send: spans and log records, in JSON or protobuf, one line each.
//!
//! A request is a tree: resources, in them scopes, in them records. Here each record becomes a line of its own with the
//! resource and the scope it stands in, again a whole OTLP/JSON request. Such lines can be put into the file of the
//! conversation that they belong to, and what is wrong with one record is no harm to the others.
//!
//! ```
//! use quipu_formats::otlp::request::{Encoding, Limits, Signal, split};
//!
//! let body = br#"{"resourceSpans":[{"resource":{},"scopeSpans":[{"spans":[
//!     {"traceId":"5b8efff798038103d269b633813fc60c","spanId":"eee19b7ec3c1b174","name":"chat"},
//!     {"traceId":"not an id","spanId":"eee19b7ec3c1b175"}]}]}]}"#;
//! let request = split(Signal::Traces, Encoding::Json, body, &Limits::default())?;
//! assert_eq!((request.records.len(), request.rejected), (1, 1));
//! # Ok::<(), quipu_formats::otlp::request::BadRequest>(())
//! ```

use std::borrow::Cow;
use std::sync::Arc;

use quipu_model::Json;
use quipu_model::json::{Node, Tape};

use super::unpack::{self, Fields, Passed, Unreadable};

/// The deepest JSON.
const DEPTH: usize = 128;

/// How many reasons for rejecting records are told. The others are like them.
const REASONS: usize = 4;

/// Which endpoint a request was sent to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Signal {
    /// `/v1/traces`
    Traces,
    /// `/v1/logs`
    Logs,
}

impl Signal {
    /// The names of the lists of resources, scopes and records.
    const fn names(self) -> [&'static str; 3] {
        match self {
            Self::Traces => ["resourceSpans", "scopeSpans", "spans"],
            Self::Logs => ["resourceLogs", "scopeLogs", "logRecords"],
        }
    }

    /// What a record is called.
    pub const fn record(self) -> &'static str {
        match self {
            Self::Traces => "span",
            Self::Logs => "log record",
        }
    }

    /// The field of an answer that says how many were rejected.
    const fn rejected(self) -> &'static str {
        match self {
            Self::Traces => "rejectedSpans",
            Self::Logs => "rejectedLogRecords",
        }
    }
}

/// How a request is written, and its answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Encoding {
    /// `application/json`
    Json,
    /// `application/x-protobuf`
    Protobuf,
}

impl Encoding {
    /// The encoding that a `Content-Type` names. Its parameters do not matter.
    pub fn of(content_type: &str) -> Option<Self> {
        let kind = content_type.split(';').next().unwrap_or_default().trim();
        if kind.eq_ignore_ascii_case("application/json") {
            Some(Self::Json)
        } else if kind.eq_ignore_ascii_case("application/x-protobuf")
            || kind.eq_ignore_ascii_case("application/protobuf")
        {
            Some(Self::Protobuf)
        } else {
            None
        }
    }

    /// The `Content-Type`.
    pub const fn content_type(self) -> &'static str {
        match self {
            Self::Json => "application/json",
            Self::Protobuf => "application/x-protobuf",
        }
    }
}

/// What a request may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// How long a body may be, after it was decompressed.
    pub body: usize,
    /// How many records it may have.
    pub records: usize,
    /// How long a record may be, as JSON.
    pub record: usize,
    /// How long an attribute may be, as JSON.
    pub attribute: usize,
    /// How long a resource and a scope may be together, as JSON. They are repeated with each record.
    pub around: usize,
    /// How much all lines may be together.
    pub lines: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            body: 64 << 20,
            records: 50_000,
            record: 16 << 20,
            attribute: 4 << 20,
            around: 64 << 10,
            lines: 192 << 20,
        }
    }
}

/// Why nothing of a request can be taken.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadRequest {
    /// The body is too long.
    #[error("the body has {bytes} bytes; at most {limit} are taken")]
    TooLong {
        /// How long it is.
        bytes: usize,
        /// How long it may be.
        limit: usize,
    },
    /// It is not JSON.
    #[error("the body is not JSON: {0}")]
    NotJson(String),
    /// It is JSON, but not a request.
    #[error("the body is not an OTLP request: {0} must be a list of objects")]
    NotARequest(&'static str),
    /// It is not protobuf.
    #[error("the body is not an OTLP request in protobuf: {0}")]
    NotProtobuf(#[from] Unreadable),
}

/// A span or a log record as a line, without its line end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    /// A whole request in OTLP/JSON with this one record.
    pub line: String,
    /// The trace it is a part of: 32 hexadecimal digits.
    pub trace: Option<String>,
    /// The conversation that it says it is a part of.
    pub conversation: Option<String>,
    /// The program that sent it.
    pub service: Option<Arc<str>>,
    /// Whether it says that it is of a model or an agent; see [`is_of_a_model`].
    pub of_a_model: bool,
    /// When it began, in nanoseconds since 1970; 0 where it does not say.
    pub began: u64,
}

/// A request, as far as it can be taken.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Request {
    /// Its records, in its order.
    pub records: Vec<Record>,
    /// How many records cannot be taken.
    pub rejected: u64,
    /// Why, for the first of them.
    pub reasons: Vec<String>,
    /// Fields that OTLP does not have, and that are not carried.
    pub unknown_fields: u64,
    /// Texts that are not UTF-8, and were mended.
    pub mended: u64,
    bytes: usize,
}

/// A record, and what it stands in.
#[derive(Debug, Clone, Copy)]
pub struct Standing<'a> {
    /// What it is.
    pub signal: Signal,
    /// What sent it.
    pub resource: Option<Node<'a>>,
    /// What in it did.
    pub scope: Option<Node<'a>>,
    /// The schema of the resource.
    pub resource_schema: Option<Node<'a>>,
    /// The schema of the records.
    pub scope_schema: Option<Node<'a>>,
    /// The record.
    pub record: Node<'a>,
}

impl Standing<'_> {
    /// A request with only this record, on one line.
    pub fn line(&self) -> String {
        let around = Around {
            resource: Held::of(self.resource, self.resource_schema),
            scope: Held::of(self.scope, self.scope_schema),
        };
        around.line(self.signal, self.record.raw().get())
    }
}

/// Goes through the records of a request, or of any batch in a file. Wrong types are passed over.
pub fn each<'a>(root: Node<'a>, mut take: impl FnMut(Standing<'a>)) {
    for signal in [Signal::Traces, Signal::Logs] {
        let [resources, scopes, records] = signal.names();
        for of_resource in root.get(resources).into_iter().flat_map(Node::items) {
            for of_scope in of_resource.get(scopes).into_iter().flat_map(Node::items) {
                for record in of_scope.get(records).into_iter().flat_map(Node::items) {
                    take(Standing {
                        signal,
                        resource: of_resource.get("resource"),
                        scope: of_scope.get("scope"),
                        resource_schema: of_resource.get("schemaUrl"),
                        scope_schema: of_scope.get("schemaUrl"),
                        record,
                    });
                }
            }
        }
    }
}

/// The text of an attribute.
pub fn attribute<'a>(of: Node<'a>, key: &str) -> Option<Cow<'a, str>> {
    let mut items = of.get("attributes")?.items();
    let found = items.find(|item| item.get("key").is_some_and(|name| name.is(key)))?;
    let text = found.path(&["value", "stringValue"])?.as_str()?;
    Some(text).filter(|text| !text.is_empty())
}

/// The attributes that name a conversation, the most certain first.
pub const CONVERSATION: [&str; 6] = [
    "gen_ai.conversation.id",
    "session.id",
    "traceloop.association.properties.session_id",
    "traceloop.association.properties.conversation_id",
    "langfuse.session.id",
    "gen_ai.session.id",
];

/// The longest name of a conversation. What is longer is a text, and names none.
const LONGEST_NAME: usize = 512;

/// The conversation that a record says it is a part of.
pub fn conversation(record: Node<'_>) -> Option<Cow<'_, str>> {
    let named = CONVERSATION.iter().find_map(|key| attribute(record, key));
    named.filter(|name| name.len() <= LONGEST_NAME)
}

/// How the names of attributes and events begin that tell of models and agents.
const OF_MODELS: [&str; 6] = [
    "gen_ai.",
    "llm.",
    "openinference.",
    "traceloop.",
    "langfuse.",
    "quipu.",
];

/// Whether a record says that it is of a model or an agent: by the name of an attribute of it, or of an event of it, or
/// because it names a conversation. What programs send of databases and the web does not.
pub fn is_of_a_model(record: Node<'_>) -> bool {
    let begins = |name: Option<Node<'_>>| {
        let name = name.and_then(|name| name.as_str());
        name.is_some_and(|name| OF_MODELS.iter().any(|word| name.starts_with(word)))
    };
    let tells = |of: Node<'_>| {
        let mut attributes = of.get("attributes").into_iter().flat_map(Node::items);
        attributes.any(|it| begins(it.get("key")))
    };
    let mut events = record.get("events").into_iter().flat_map(Node::items);
    tells(record)
        || begins(record.get("eventName"))
        || attribute(record, "event.name").is_some_and(|name| {
            // Log records of old have their name there.
            OF_MODELS.iter().any(|word| name.starts_with(word))
        })
        || events.any(|event| begins(event.get("name")) || tells(event))
        || conversation(record).is_some()
}

/// When a record began, in nanoseconds since 1970; 0 where it does not say.
pub fn began(signal: Signal, record: Node<'_>) -> u64 {
    let keys: &[&str] = match signal {
        Signal::Traces => &["startTimeUnixNano"],
        Signal::Logs => &["timeUnixNano", "observedTimeUnixNano"],
    };
    let of = |key: &&str| {
        let node = record.get(key)?;
        let count = node.as_u64().or_else(|| node.as_str()?.parse().ok());
        count.filter(|nanos| *nanos > 0)
    };
    keys.iter().find_map(of).unwrap_or(0)
}

/// The trace that a record is a part of, where its id is one.
pub fn trace(record: Node<'_>) -> Option<String> {
    id(record, "traceId", 32)
}

/// An id: so many hexadecimal digits that are not all zero.
fn id(record: Node<'_>, key: &str, digits: usize) -> Option<String> {
    let id = record.get(key)?.as_str()?;
    let is_id = id.len() == digits
        && id.bytes().all(|digit| digit.is_ascii_hexdigit())
        && id.bytes().any(|digit| digit != b'0');
    is_id.then(|| id.to_ascii_lowercase())
}

/// Takes a request apart.
///
/// # Errors
///
/// When it is not a request at all, or too long. What is wrong with single records is in the answer.
pub fn split(
    signal: Signal,
    encoding: Encoding,
    body: &[u8],
    limits: &Limits,
) -> Result<Request, BadRequest> {
    if body.len() > limits.body {
        return Err(BadRequest::TooLong {
            bytes: body.len(),
            limit: limits.body,
        });
    }
    let mut request = Request::default();
    match encoding {
        Encoding::Json => json(signal, body, limits, &mut request)?,
        Encoding::Protobuf => protobuf(signal, body, limits, &mut request)?,
    }
    Ok(request)
}

/// The body of the answer to a request of which this many records were rejected.
pub fn answer(signal: Signal, encoding: Encoding, rejected: u64, why: &str) -> Vec<u8> {
    if rejected == 0 && why.is_empty() {
        return match encoding {
            Encoding::Json => b"{}".to_vec(),
            Encoding::Protobuf => Vec::new(),
        };
    }
    match encoding {
        Encoding::Json => format!(
            "{{\"partialSuccess\":{{\"{}\":\"{rejected}\",\"errorMessage\":{}}}}}",
            signal.rejected(),
            Json::string(why).get()
        )
        .into_bytes(),
        Encoding::Protobuf => {
            let mut partial = super::protobuf::Message::default();
            partial.number_of(1, rejected);
            partial.bytes(2, why.as_bytes());
            let mut answer = super::protobuf::Message::default();
            answer.message(1, &partial);
            answer.into_bytes()
        }
    }
}

/// The body of an answer that refuses a request with a status of HTTP: a `google.rpc.Status`, as OTLP/HTTP has it.
pub fn refusal(encoding: Encoding, status: u16, message: &str) -> Vec<u8> {
    let code = code(status);
    match encoding {
        Encoding::Json => format!(
            "{{\"code\":{code},\"message\":{}}}",
            Json::string(message).get()
        )
        .into_bytes(),
        Encoding::Protobuf => {
            let mut answer = super::protobuf::Message::default();
            answer.number_of(1, code);
            answer.bytes(2, message.as_bytes());
            answer.into_bytes()
        }
    }
}

/// The number that gRPC has for what a status of HTTP says.
const fn code(status: u16) -> u64 {
    match status {
        // The deadline is over.
        408 | 504 => 4,
        // Not allowed.
        403 => 7,
        // Too much.
        413 | 429 => 8,
        // Not available; try again.
        502 | 503 => 14,
        // Nobody said who asks.
        401 => 16,
        // The server failed.
        500.. => 13,
        // Bad input.
        _ => 3,
    }
}

/// What records stand in.
#[derive(Debug, Default)]
struct Around<'a> {
    resource: Held<'a>,
    scope: Held<'a>,
}

/// A resource or a scope, as JSON.
#[derive(Debug, Default)]
struct Held<'a> {
    itself: Option<Cow<'a, str>>,
    schema: Option<Cow<'a, str>>,
    /// It is longer than may be, and not held at all.
    is_long: bool,
}

impl<'a> Held<'a> {
    fn of(itself: Option<Node<'a>>, schema: Option<Node<'a>>) -> Self {
        let raw = |node: Option<Node<'a>>| {
            let node = node.filter(|node| !node.is_null());
            node.map(|node| Cow::Borrowed(node.raw().get()))
        };
        Self {
            itself: raw(itself),
            schema: raw(schema),
            is_long: false,
        }
    }

    /// Unpacks the fields of a message that are neither records nor lists of them.
    fn unpack(
        message: &'a [u8],
        limit: usize,
        passed: &mut Passed,
        unpack: impl FnOnce(&[u8], usize, &mut Passed) -> Result<String, Unreadable>,
    ) -> Result<Self, Unreadable> {
        let (mut itself, mut schema) = (None, None);
        for field in Fields::new(message) {
            let field = field?;
            let before = match (field.number, field.bytes()) {
                (1, Some(bytes)) => itself.replace(bytes),
                (3, Some(bytes)) => schema.replace(bytes),
                (2, Some(_)) => continue,
                _ => {
                    passed.unknown += 1;
                    continue;
                }
            };
            // Of several the last is meant.
            passed.unknown += u64::from(before.is_some());
        }
        let mut held = Self::default();
        match itself.map(|bytes| unpack(bytes, limit, passed)) {
            Some(Ok(json)) => held.itself = Some(Cow::Owned(json)),
            Some(Err(Unreadable::Long(_))) => held.is_long = true,
            Some(Err(error)) => return Err(error),
            None => {}
        }
        match schema.filter(|bytes| !bytes.is_empty()) {
            Some(bytes) if bytes.len() > limit => held.is_long = true,
            Some(bytes) => {
                let text = unpack::text(bytes, passed);
                held.schema = Some(Cow::Owned(Json::string(&text).get().to_owned()));
            }
            None => {}
        }
        Ok(held)
    }

    fn len(&self) -> usize {
        let all = [&self.itself, &self.schema];
        all.into_iter().flatten().map(|it| it.len()).sum()
    }

    fn write(&self, name: &str, line: &mut String) {
        for (name, value) in [(name, &self.itself), ("schemaUrl", &self.schema)] {
            if let Some(value) = value {
                line.push('"');
                line.push_str(name);
                line.push_str("\":");
                line.push_str(value);
                line.push(',');
            }
        }
    }
}

impl Around<'_> {
    fn len(&self) -> usize {
        self.resource.len() + self.scope.len()
    }

    fn is_longer_than(&self, limit: usize) -> bool {
        self.resource.is_long || self.scope.is_long || self.len() > limit
    }

    fn line(&self, signal: Signal, record: &str) -> String {
        let [resources, scopes, records] = signal.names();
        let mut line = String::with_capacity(record.len() + self.len() + 128);
        line.push_str("{\"");
        line.push_str(resources);
        line.push_str("\":[{");
        self.resource.write("resource", &mut line);
        line.push('"');
        line.push_str(scopes);
        line.push_str("\":[{");
        self.scope.write("scope", &mut line);
        line.push('"');
        line.push_str(records);
        line.push_str("\":[");
        line.push_str(record);
        line.push_str("]}]}]}");
        // A line break inside a string is always escaped.
        if line.contains(['\n', '\r']) {
            line = line.replace(['\n', '\r'], " ");
        }
        line
    }
}

impl Request {
    fn reject(&mut self, why: impl FnOnce() -> String) {
        self.reject_many(1, why);
    }

    /// Counts records that cannot be taken, and says why.
    pub fn reject_many(&mut self, count: u64, why: impl FnOnce() -> String) {
        if count == 0 {
            return;
        }
        self.rejected += count;
        if self.reasons.len() < REASONS {
            let why = why();
            if !self.reasons.contains(&why) {
                self.reasons.push(why);
            }
        }
    }

    /// Whether there were as many records as may be. Those behind them are counted, and not looked at.
    fn is_full(&self, limits: &Limits) -> bool {
        self.records.len() as u64 + self.rejected >= limits.records as u64
    }

    fn too_many(&mut self, beyond: u64, signal: Signal, limits: &Limits) {
        let (what, limit) = (signal.record(), limits.records);
        self.reject_many(beyond, || format!("more than {limit} {what}s in a request"));
    }

    /// Takes a record, unless something is wrong with it.
    fn take(&mut self, signal: Signal, around: &Around<'_>, record: Node<'_>, limits: &Limits) {
        let what = signal.record();
        let trace = trace(record);
        let raw = record.raw().get();
        if signal == Signal::Traces {
            if trace.is_none() {
                return self.reject(|| format!("{what}: traceId must be 32 hexadecimal digits"));
            }
            if id(record, "spanId", 16).is_none() {
                return self.reject(|| format!("{what}: spanId must be 16 hexadecimal digits"));
            }
        }
        if raw.len() > limits.record {
            return self.reject(|| format!("{what}: longer than {} bytes", limits.record));
        }
        let attributes = record.get("attributes").into_iter().flat_map(Node::items);
        let mut long = attributes.filter(|it| it.raw().get().len() > limits.attribute);
        if let Some(long) = long.next() {
            let name: String = long
                .text("key")
                .unwrap_or_default()
                .chars()
                .take(60)
                .collect();
            return self.reject(|| {
                let limit = limits.attribute;
                format!("{what}: attribute {name:?} is longer than {limit} bytes")
            });
        }
        if around.is_longer_than(limits.around) {
            return self.reject(|| {
                let limit = limits.around;
                format!("{what}: its resource and scope are longer than {limit} bytes")
            });
        }
        let line = around.line(signal, raw);
        if self.bytes + line.len() > limits.lines {
            return self.reject(|| {
                let limit = limits.lines;
                format!("{what}s with their resources take more than {limit} bytes")
            });
        }
        self.bytes += line.len();
        self.records.push(Record {
            line,
            trace,
            conversation: conversation(record).map(Cow::into_owned),
            service: None,
            of_a_model: is_of_a_model(record),
            began: began(signal, record),
        });
    }

    /// Says which program sent the records from here on.
    fn sent_by(&mut self, from: usize, resource: Option<&str>) {
        let mut tape = Tape::new();
        let resource = resource.and_then(|resource| tape.read(resource, DEPTH).ok());
        let service = resource.and_then(|resource| attribute(resource, "service.name"));
        if let Some(service) = service {
            let service: Arc<str> = service.into();
            for record in self.records.iter_mut().skip(from) {
                record.service = Some(Arc::clone(&service));
            }
        }
    }
}

fn json(
    signal: Signal,
    body: &[u8],
    limits: &Limits,
    request: &mut Request,
) -> Result<(), BadRequest> {
    let text = std::str::from_utf8(body).map_err(|error| {
        let at = error.valid_up_to();
        BadRequest::NotJson(format!("not UTF-8 at byte {at}"))
    })?;
    let mut tape = Tape::new();
    let root = tape
        .read(text.trim_start_matches('\u{feff}'), DEPTH)
        .map_err(|error| BadRequest::NotJson(error.to_string()))?;
    let [resources, scopes, records] = signal.names();
    let lists = |of: Node<'_>, known: &[&str]| {
        let others = of
            .fields()
            .filter(|(key, value)| !value.is_null() && !known.iter().any(|name| key.is(name)));
        others.count() as u64
    };
    if root.kind() != quipu_model::json::Kind::Object {
        return Err(BadRequest::NotARequest(resources));
    }
    request.unknown_fields += lists(root, &[resources]);
    let mut beyond = 0;
    for of_resource in items(root, resources)? {
        request.unknown_fields += lists(of_resource, &["resource", scopes, "schemaUrl"]);
        let from = request.records.len();
        let mut around = Around {
            resource: Held::of(of_resource.get("resource"), of_resource.get("schemaUrl")),
            scope: Held::default(),
        };
        for of_scope in items(of_resource, scopes)? {
            request.unknown_fields += lists(of_scope, &["scope", records, "schemaUrl"]);
            around.scope = Held::of(of_scope.get("scope"), of_scope.get("schemaUrl"));
            for record in items(of_scope, records)? {
                if request.is_full(limits) {
                    beyond += 1;
                } else {
                    request.take(signal, &around, record, limits);
                }
            }
        }
        request.sent_by(from, around.resource.itself.as_deref());
    }
    request.too_many(beyond, signal, limits);
    Ok(())
}

/// The objects in a list; none where there is no list.
fn items<'a>(
    of: Node<'a>,
    name: &'static str,
) -> Result<impl Iterator<Item = Node<'a>>, BadRequest> {
    use quipu_model::json::Kind;
    let list = of.get(name).filter(|list| !list.is_null());
    let is_list = |list: Node<'a>| {
        list.kind() == Kind::List && list.items().all(|item| item.kind() == Kind::Object)
    };
    if !list.is_none_or(is_list) {
        return Err(BadRequest::NotARequest(name));
    }
    Ok(list.into_iter().flat_map(Node::items))
}

fn protobuf(
    signal: Signal,
    body: &[u8],
    limits: &Limits,
    request: &mut Request,
) -> Result<(), BadRequest> {
    let (mut passed, mut beyond) = (Passed::default(), 0);
    for field in Fields::new(body) {
        let field = field?;
        match field.bytes() {
            Some(of_resource) if field.number == 1 => {
                beyond += protobuf_resource(signal, of_resource, limits, request, &mut passed)?;
            }
            _ => passed.unknown += 1,
        }
    }
    request.too_many(beyond, signal, limits);
    request.unknown_fields += passed.unknown;
    request.mended += passed.mended;
    Ok(())
}

/// The messages in field 2: the scopes of a resource, the records of a scope. Nothing is held, so that many small ones
/// take no more memory than a few large ones.
fn messages(message: &[u8]) -> impl Iterator<Item = Result<&[u8], Unreadable>> {
    Fields::new(message).filter_map(|field| match field {
        Ok(field) if field.number == 2 => field.bytes().map(Ok),
        Ok(_) => None,
        Err(error) => Some(Err(error)),
    })
}

/// Gives how many records were beyond the limit.
fn protobuf_resource(
    signal: Signal,
    message: &[u8],
    limits: &Limits,
    request: &mut Request,
    passed: &mut Passed,
) -> Result<u64, BadRequest> {
    let mut around = Around {
        resource: Held::unpack(message, limits.around, passed, unpack::resource)?,
        scope: Held::default(),
    };
    let (from, mut beyond) = (request.records.len(), 0);
    let mut tape = Tape::new();
    for of_scope in messages(message) {
        let of_scope = of_scope?;
        around.scope = Held::unpack(of_scope, limits.around, passed, unpack::scope)?;
        for bytes in messages(of_scope) {
            let bytes = bytes?;
            if request.is_full(limits) {
                beyond += 1;
                continue;
            }
            let json = match signal {
                Signal::Traces => unpack::span(bytes, limits.record, passed),
                Signal::Logs => unpack::log(bytes, limits.record, passed),
            };
            // What is wrong inside of one record is no harm to the others.
            match json {
                Ok(json) => match tape.read(&json, DEPTH) {
                    Ok(record) => request.take(signal, &around, record, limits),
                    Err(error) => request.reject(|| format!("{}: {error}", signal.record())),
                },
                Err(error) => request.reject(|| format!("{}: {error}", signal.record())),
            }
        }
    }
    request.sent_by(from, around.resource.itself.as_deref());
    Ok(beyond)
}
