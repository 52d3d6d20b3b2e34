//! What is known of a session as a whole, by name.

use quipu_model::{Header, Timestamp};

use super::clean::clean_line;
use super::say::{duration, usage};

/// The title, or what stands for it.
pub(crate) fn title(header: &Header) -> String {
    match header.title.as_deref().map(clean_line) {
        Some(title) if !title.trim().is_empty() => title.trim().to_owned(),
        _ => "A session without a title".to_owned(),
    }
}

/// The agent's name, for what it says.
pub(crate) fn speaker(header: &Header) -> String {
    match header.agent().map(clean_line) {
        Some(name) if !name.trim().is_empty() => name.trim().to_owned(),
        _ => "Assistant".to_owned(),
    }
}

/// A time as it is written.
pub(crate) fn time(at: Timestamp) -> String {
    at.to_string()
}

/// Everything else, in the order in which people ask.
pub(crate) fn facts(header: &Header) -> Vec<(&'static str, String)> {
    let line = |text: &str| clean_line(text).into_owned();
    let some = |text: Option<&str>| text.map(line);
    let origin = header.origin.as_ref();
    let at = &header.environment;
    let totals = &header.totals;
    let took = header.started_at.zip(header.ended_at).map(|(from, to)| {
        let ms = to.duration_since(from).as_millis();
        duration(u64::try_from(ms).unwrap_or(0))
    });
    let joined = |texts: &[String]| (!texts.is_empty()).then(|| line(&texts.join(", ")));
    let children: Vec<String> = header.children.iter().map(ToString::to_string).collect();
    [
        ("agent", origin.map(|it| line(&it.agent))),
        (
            "agent version",
            origin.and_then(|it| some(it.agent_version.as_deref())),
        ),
        ("models", joined(&totals.models)),
        ("started", header.started_at.map(time)),
        ("ended", header.ended_at.map(time)),
        ("took", took),
        ("events", Some(totals.events.to_string())),
        ("messages", Some(totals.messages.to_string())),
        ("tool calls", Some(totals.tool_calls.to_string())),
        (
            "tokens",
            Some(usage(&totals.usage)).filter(|it| !it.is_empty()),
        ),
        ("cost", totals.cost.map(|cost| format!("${cost}"))),
        ("directory", some(at.cwd.as_deref())),
        ("branch", some(at.git_branch.as_deref())),
        ("commit", some(at.commit.as_deref())),
        ("repository", some(at.repository.as_deref())),
        ("system", some(at.os.as_deref())),
        ("shell", some(at.shell.as_deref())),
        ("run", Some(header.run_id.to_string())),
        (
            "session",
            origin.and_then(|it| some(it.session_id.as_deref())),
        ),
        ("log", origin.and_then(|it| some(it.path.as_deref()))),
        (
            "called by run",
            header.parent_run_id.as_ref().map(ToString::to_string),
        ),
        ("called by", some(header.parent_call.as_deref())),
        ("forked from", some(header.forked_from.as_deref())),
        ("runs called", joined(&children)),
    ]
    .into_iter()
    .filter_map(|(name, value)| value.map(|value| (name, value)))
    .collect()
}
