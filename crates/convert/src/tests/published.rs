//! A reader of the published text of the normalized transcript, written from that text and from nothing of ours.
//!
//! It is strict: what the text shows as a string is a string, what it shows is there, and what it says to be optional may
//! be missing but is never empty. Of what nobody knows (the system that a session ran on, say) the key is missing; only
//! `agentVersion` may be null, because the text says so, and the times of a session in which nothing has a time.

use std::collections::{BTreeMap, BTreeSet};

use quipu_model::Timestamp;
use serde_json::{Map, Value};

const TYPES: [(&str, &str); 7] = [
    ("user_message", "user"),
    ("assistant_message", "assistant"),
    ("reasoning", "assistant"),
    ("tool_call", "assistant"),
    ("tool_result", "tool"),
    ("system", "system"),
    ("meta", "system"),
];
const STATUSES: [&str; 4] = ["ok", "error", "denied", "timeout"];
const OUTPUTS: [&str; 4] = ["full", "truncated", "metadata-only", "none"];

/// What in a document is not as published.
pub(super) fn violations(document: &Value) -> Vec<String> {
    let mut found = Found::default();
    let top = found.object("", Some(document));
    found.is(
        "schemaVersion",
        top.get("schemaVersion") == Some(&"0.1.0".into()),
    );
    let id = top.get("transcriptId").and_then(Value::as_str);
    found.is("transcriptId", id.is_some_and(is_uuid_4));
    let events = top.get("events").and_then(Value::as_array);
    found.is("events", events.is_some());
    let events: &[Value] = events.map_or(&[], Vec::as_slice);
    source(&mut found, top.get("source"));
    session(&mut found, top.get("session"), events);
    submitter(&mut found, top.get("submitter"));
    privacy(&mut found, top.get("privacy"), events);
    metrics(&mut found, &top, events);
    let (mut ids, mut last) = (BTreeSet::new(), None);
    for it in events {
        event(&mut found, it);
        let at = it.get("seq").and_then(Value::as_u64);
        found.is("events: seq is monotonic", at > last);
        last = at;
        let id = it.get("id").and_then(Value::as_str).unwrap_or_default();
        found.is("events: ids are stable", ids.insert(id.to_owned()));
    }
    found.0.into_iter().collect()
}

#[derive(Default)]
struct Found(BTreeSet<String>);

impl Found {
    fn is(&mut self, what: &str, fits: bool) {
        if !fits {
            self.0.insert(what.to_owned());
        }
    }

    fn object(&mut self, what: &str, value: Option<&Value>) -> Map<String, Value> {
        let object = value.and_then(Value::as_object);
        self.is(what, object.is_some());
        object.cloned().unwrap_or_default()
    }

    fn text(&mut self, within: &str, object: &Map<String, Value>, name: &str) {
        let text = object.get(name).and_then(Value::as_str);
        self.is(
            &format!("{within}.{name}"),
            text.is_some_and(|text| !text.is_empty()),
        );
    }

    /// A text that may be missing, but is not empty.
    fn optional(&mut self, within: &str, object: &Map<String, Value>, name: &str) {
        if object.contains_key(name) {
            self.text(within, object, name);
        }
    }

    fn flag(&mut self, within: &str, object: &Map<String, Value>, name: &str) {
        let flag = object.get(name).is_some_and(Value::is_boolean);
        self.is(&format!("{within}.{name}"), flag);
    }

    /// A count that may be missing.
    fn count(&mut self, within: &str, object: &Map<String, Value>, name: &str) {
        let fits = object.get(name).is_none_or(Value::is_u64);
        self.is(&format!("{within}.{name}"), fits);
    }
}

fn is_uuid_4(id: &str) -> bool {
    let shape: Vec<usize> = id.split('-').map(str::len).collect();
    let digits = id.bytes().filter(|b| *b != b'-');
    shape == [8, 4, 4, 4, 12]
        && digits
            .clone()
            .all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'))
        && id.as_bytes()[14] == b'4'
        && matches!(id.as_bytes()[19], b'8' | b'9' | b'a' | b'b')
}

fn is_time(value: &Value) -> bool {
    value
        .as_str()
        .is_some_and(|text| text.parse::<Timestamp>().is_ok())
}

fn source(found: &mut Found, value: Option<&Value>) {
    let source = found.object("source", value);
    for name in ["agent", "adapter", "adapterVersion"] {
        found.text("source", &source, name);
    }
    let version = source.get("agentVersion");
    found.is(
        "source.agentVersion",
        version.is_some_and(|version| version.is_string() || version.is_null()),
    );
}

fn session(found: &mut Found, value: Option<&Value>, events: &[Value]) {
    let session = found.object("session", value);
    let is_dated = events.iter().any(|event| event.get("undated").is_none());
    for name in ["startedAt", "endedAt"] {
        let fits = session
            .get(name)
            .is_some_and(|at| is_time(at) || at.is_null() && !is_dated);
        found.is(&format!("session.{name}"), fits);
    }
    let captured = session.get("capturedAt").is_some_and(is_time);
    found.is("session.capturedAt", captured);
    let environment = found.object("session.environment", session.get("environment"));
    for name in ["os", "shell", "cwd"] {
        found.optional("session.environment", &environment, name);
    }
    if environment.contains_key("repo") {
        let repo = found.object("session.environment.repo", environment.get("repo"));
        for name in ["name", "remote", "commit"] {
            found.optional("session.environment.repo", &repo, name);
        }
    }
}

fn submitter(found: &mut Found, value: Option<&Value>) {
    let submitter = found.object("submitter", value);
    found.optional("submitter", &submitter, "keyId");
    found.optional("submitter", &submitter, "pseudonym");
    found.flag("submitter", &submitter, "identityLinked");
}

fn privacy(found: &mut Found, value: Option<&Value>, events: &[Value]) {
    let privacy = found.object("privacy", value);
    found.text("privacy", &privacy, "profile");
    found.flag("privacy", &privacy, "redactionApplied");
    found.flag("privacy", &privacy, "anonymizationApplied");
    let policy = found.object("privacy.contentPolicy", privacy.get("contentPolicy"));
    found.flag("privacy.contentPolicy", &policy, "includeFileContents");
    let output = policy.get("toolOutput").and_then(Value::as_str);
    found.is(
        "privacy.contentPolicy.toolOutput",
        output.is_some_and(|it| OUTPUTS.contains(&it)),
    );
    let none = Vec::new();
    let list = |value: Option<&Value>| -> Vec<Value> {
        value.and_then(Value::as_array).unwrap_or(&none).clone()
    };
    let mut all = list(privacy.get("redactions"));
    for event in events {
        all.extend(list(event.get("redactions")));
    }
    let count = privacy.get("redactionCount").and_then(Value::as_u64);
    found.is("privacy.redactionCount", count == Some(all.len() as u64));
    // The rules that applied: those that took something out, each once.
    let applied: Vec<Value> = list(privacy.get("rulesApplied"));
    let once: BTreeSet<&str> = applied.iter().filter_map(Value::as_str).collect();
    found.is("privacy.rulesApplied", once.len() == applied.len());
    let ruled = all.iter().filter_map(|it| it.get("ruleId")?.as_str());
    let ruled: BTreeSet<&str> = ruled.collect();
    found.is("privacy.rulesApplied are those that applied", ruled == once);
    let of_log = |it: &&Value| it.get("field") == Some(&"source.file".into());
    let of_log = all.iter().filter(of_log).count();
    found.is("redactions: the log is named once", of_log == 0);
    for it in &all {
        let it = found.object("redactions", Some(it));
        for name in ["field", "ruleId", "type", "placeholder"] {
            found.text("redactions", &it, name);
        }
    }
}

fn metrics(found: &mut Found, top: &Map<String, Value>, events: &[Value]) {
    let metrics = found.object("metrics", top.get("metrics"));
    let of_type = |types: &[&str]| -> u64 {
        let is = |event: &&Value| {
            let kind = event.get("type").and_then(Value::as_str);
            kind.is_some_and(|kind| types.contains(&kind))
        };
        events.iter().filter(is).count() as u64
    };
    let counts: BTreeMap<&str, u64> = BTreeMap::from([
        ("eventCount", events.len() as u64),
        (
            "messageCount",
            of_type(&["user_message", "assistant_message", "system"]),
        ),
        ("toolCallCount", of_type(&["tool_call"])),
    ]);
    for (name, count) in counts {
        let stated = metrics.get(name).and_then(Value::as_u64);
        found.is(&format!("metrics.{name}"), stated == Some(count));
    }
    let at =
        |name: &str| -> Option<Timestamp> { top.get("session")?.get(name)?.as_str()?.parse().ok() };
    if let (Some(from), Some(to)) = (at("startedAt"), at("endedAt")) {
        let took = to.as_millisecond() - from.as_millisecond();
        let stated = metrics.get("durationMs").and_then(Value::as_i64);
        found.is("metrics.durationMs", stated == Some(took));
    }
    if metrics.contains_key("tokens") {
        let tokens = found.object("metrics.tokens", metrics.get("tokens"));
        found.is("metrics.tokens", !tokens.is_empty());
        for name in tokens.keys() {
            found.count("metrics.tokens", &tokens, name);
        }
    }
}

fn event(found: &mut Found, value: &Value) {
    let event = found.object("event", Some(value));
    found.text("event", &event, "id");
    let kind = event
        .get("type")
        .and_then(Value::as_str)
        .unwrap_or_default();
    let role = event
        .get("role")
        .and_then(Value::as_str)
        .unwrap_or_default();
    let fits = TYPES.contains(&(kind, role));
    found.is("event.type and event.role", fits);
    found.is(
        "event.timestamp",
        event.get("timestamp").is_some_and(is_time),
    );
    let text = event.get("text");
    found.is("event.text", text.is_none_or(Value::is_string));
    let is_tool = matches!(kind, "tool_call" | "tool_result");
    found.is("event.tool", event.contains_key("tool") == is_tool);
    if !is_tool {
        return;
    }
    let tool = found.object("event.tool", event.get("tool"));
    found.text("tool", &tool, "callId");
    found.is("tool.name", tool.get("name").is_some_and(Value::is_string));
    found.is(
        "tool.output",
        tool.get("output").is_none_or(Value::is_string),
    );
    found.count("tool", &tool, "durationMs");
    let status = tool.get("status").and_then(Value::as_str);
    let known = status.is_some_and(|status| STATUSES.contains(&status));
    let is_result = kind == "tool_result";
    found.is(
        "tool.status",
        known || !is_result && !tool.contains_key("status"),
    );
    if is_result && tool.get("error").is_some_and(Value::is_string) {
        found.is("tool.output of a failure", tool.contains_key("output"));
    }
}
