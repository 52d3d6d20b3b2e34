//! The rules of ATIF once more, written down from its list of fields, so that what the writer writes is not
//! judged by what the writer believes.

use quipu_model::json::{Kind, Node, Tape};

/// What is wrong with a document; nothing when it is right.
pub(super) fn wrongs(text: &str) -> Vec<String> {
    let mut tape = Tape::new();
    let mut wrongs = Vec::new();
    match tape.read(text, 127) {
        Ok(document) => trajectory(document, "", &mut wrongs),
        Err(error) => wrongs.push(format!("no JSON: {error}")),
    }
    wrongs
}

type Wrongs = Vec<String>;

/// An object with these keys and no others; those that end in `!` have to be there.
fn object(node: Node<'_>, at: &str, keys: &str, wrongs: &mut Wrongs) -> bool {
    if node.kind() != Kind::Object {
        wrongs.push(format!("{at} is no object"));
        return false;
    }
    let mut seen = Vec::new();
    for (key, _) in node.fields() {
        let key = key.to_text_lossy().into_owned();
        if !keys
            .split(' ')
            .any(|known| known.trim_end_matches('!') == key)
        {
            wrongs.push(format!("{at} has a key {key}"));
        }
        if seen.contains(&key) {
            wrongs.push(format!("{at} has {key} twice"));
        }
        seen.push(key);
    }
    for key in keys.split(' ').filter_map(|key| key.strip_suffix('!')) {
        if !seen.iter().any(|seen| seen == key) {
            wrongs.push(format!("{at} has no {key}"));
        }
    }
    true
}

fn typed(node: Node<'_>, at: &str, kind: Kind, keys: &[&str], wrongs: &mut Wrongs) {
    for key in keys {
        if let Some(value) = node.get(key)
            && value.kind() != kind
        {
            wrongs.push(format!("{at}/{key} is {:?}, not {kind:?}", value.kind()));
        }
    }
}

fn counts(node: Node<'_>, at: &str, keys: &[&str], wrongs: &mut Wrongs) {
    for key in keys {
        if let Some(value) = node.get(key)
            && !value.raw().get().bytes().all(|b| b.is_ascii_digit())
        {
            wrongs.push(format!("{at}/{key} is no count: {}", value.raw().get()));
        }
    }
}

fn trajectory(node: Node<'_>, at: &str, wrongs: &mut Wrongs) {
    let keys = "schema_version! session_id trajectory_id agent! steps! notes final_metrics continued_trajectory_ref extra subagent_trajectories";
    if !object(node, at, keys, wrongs) {
        return;
    }
    let strings = [
        "schema_version",
        "session_id",
        "trajectory_id",
        "notes",
        "continued_trajectory_ref",
    ];
    typed(node, at, Kind::String, &strings, wrongs);
    typed(node, at, Kind::Object, &["extra", "final_metrics"], wrongs);
    typed(
        node,
        at,
        Kind::List,
        &["steps", "subagent_trajectories"],
        wrongs,
    );
    let version = node.text("schema_version").unwrap_or_default();
    if version != "ATIF-v1.7" && version != "ATIF-v1.8" {
        wrongs.push(format!("{at} has version {version}"));
    }
    if let Some(agent) = node.get("agent") {
        let at = format!("{at}/agent");
        object(
            agent,
            &at,
            "name! version! model_name tool_definitions extra",
            wrongs,
        );
        typed(
            agent,
            &at,
            Kind::String,
            &["name", "version", "model_name"],
            wrongs,
        );
    }
    let mut ids = Vec::new();
    for (n, child) in items(node, "subagent_trajectories").enumerate() {
        trajectory(child, &format!("{at}/subagent_trajectories/{n}"), wrongs);
        match child.text("trajectory_id") {
            Some(id) if !ids.contains(&id) => ids.push(id),
            _ => wrongs.push(format!(
                "{at}/subagent_trajectories/{n} has no id of its own"
            )),
        }
    }
    let mut steps = 0;
    for (n, of) in items(node, "steps").enumerate() {
        let at = format!("{at}/steps/{n}");
        step(of, &at, &ids, version == "ATIF-v1.8", wrongs);
        steps += 1;
        if of.get("step_id").and_then(|id| id.as_u64()) != Some(n as u64 + 1) {
            wrongs.push(format!("{at} has another id"));
        }
    }
    if steps == 0 {
        wrongs.push(format!("{at} has no steps"));
    }
    if let Some(sums) = node.get("final_metrics") {
        let at = format!("{at}/final_metrics");
        let keys = "total_prompt_tokens total_completion_tokens total_cached_tokens total_cost_usd total_steps extra";
        object(sums, &at, keys, wrongs);
        let whole = [
            "total_prompt_tokens",
            "total_completion_tokens",
            "total_cached_tokens",
            "total_steps",
        ];
        counts(sums, &at, &whole, wrongs);
        typed(sums, &at, Kind::Number, &["total_cost_usd"], wrongs);
    }
}

fn items<'a>(node: Node<'a>, key: &str) -> impl Iterator<Item = Node<'a>> {
    node.get(key).into_iter().flat_map(Node::items)
}

fn step(
    node: Node<'_>,
    at: &str,
    trajectories: &[std::borrow::Cow<'_, str>],
    audio: bool,
    wrongs: &mut Wrongs,
) {
    let shared =
        "step_id! timestamp source! message! extra is_copied_context llm_call_count observation";
    let agents = "model_name reasoning_effort reasoning_content tool_calls metrics";
    let source = node.text("source").unwrap_or_default();
    let keys = match &*source {
        "agent" => format!("{shared} {agents}"),
        "user" | "system" => shared.to_owned(),
        _ => return wrongs.push(format!("{at} is by {source}")),
    };
    if !object(node, at, &keys, wrongs) {
        return;
    }
    typed(
        node,
        at,
        Kind::String,
        &["timestamp", "model_name", "reasoning_content"],
        wrongs,
    );
    typed(
        node,
        at,
        Kind::Object,
        &["extra", "metrics", "observation"],
        wrongs,
    );
    typed(node, at, Kind::Bool, &["is_copied_context"], wrongs);
    counts(node, at, &["step_id", "llm_call_count"], wrongs);
    if let Some(time) = node.text("timestamp") {
        let civil = time.len() >= 20 && time.as_bytes()[4] == b'-' && time.ends_with('Z');
        if !civil || time.parse::<quipu_model::Timestamp>().is_err() {
            wrongs.push(format!("{at} has the time {time}"));
        }
    }
    let no_model = node
        .get("llm_call_count")
        .is_some_and(|n| n.as_u64() == Some(0));
    if no_model && (node.get("metrics").is_some() || node.get("reasoning_content").is_some()) {
        wrongs.push(format!("{at} spends without a model"));
    }
    if let Some(message) = node.get("message") {
        content(message, &format!("{at}/message"), audio, wrongs);
    }
    let mut calls = Vec::new();
    for (n, call) in items(node, "tool_calls").enumerate() {
        let at = format!("{at}/tool_calls/{n}");
        object(
            call,
            &at,
            "tool_call_id! function_name! arguments! extra",
            wrongs,
        );
        typed(
            call,
            &at,
            Kind::String,
            &["tool_call_id", "function_name"],
            wrongs,
        );
        typed(call, &at, Kind::Object, &["arguments", "extra"], wrongs);
        calls.extend(call.text("tool_call_id"));
    }
    if let Some(of) = node.get("metrics") {
        metrics(of, &format!("{at}/metrics"), wrongs);
    }
    if let Some(of) = node.get("observation") {
        observation(
            of,
            &format!("{at}/observation"),
            &calls,
            trajectories,
            audio,
            wrongs,
        );
    }
}

fn metrics(metrics: Node<'_>, at: &str, wrongs: &mut Wrongs) {
    let keys = "prompt_tokens completion_tokens cached_tokens cost_usd prompt_token_ids completion_token_ids logprobs extra";
    object(metrics, at, keys, wrongs);
    counts(
        metrics,
        at,
        &["prompt_tokens", "completion_tokens", "cached_tokens"],
        wrongs,
    );
    typed(metrics, at, Kind::Number, &["cost_usd"], wrongs);
    let count = |key: &str| {
        metrics
            .get(key)
            .and_then(|n| n.raw().get().parse::<u128>().ok())
    };
    if count("cached_tokens") > count("prompt_tokens") {
        wrongs.push(format!("{at} has more from a cache than there is"));
    }
}

fn observation(
    observation: Node<'_>,
    at: &str,
    calls: &[std::borrow::Cow<'_, str>],
    trajectories: &[std::borrow::Cow<'_, str>],
    audio: bool,
    wrongs: &mut Wrongs,
) {
    object(observation, at, "results!", wrongs);
    for (n, result) in items(observation, "results").enumerate() {
        let at = format!("{at}/results/{n}");
        object(
            result,
            &at,
            "source_call_id content subagent_trajectory_ref extra",
            wrongs,
        );
        typed(result, &at, Kind::String, &["source_call_id"], wrongs);
        typed(result, &at, Kind::Object, &["extra"], wrongs);
        if let Some(id) = result.text("source_call_id")
            && !calls.contains(&id)
        {
            wrongs.push(format!("{at} answers {id}, which was not called"));
        }
        if let Some(of) = result.get("content") {
            content(of, &format!("{at}/content"), audio, wrongs);
        }
        for child in items(result, "subagent_trajectory_ref") {
            object(
                child,
                &at,
                "trajectory_id trajectory_path session_id extra",
                wrongs,
            );
            let path = child.get("trajectory_path").is_some();
            if !path
                && !child
                    .text("trajectory_id")
                    .is_some_and(|id| trajectories.contains(&id))
            {
                wrongs.push(format!("{at} refers to nothing"));
            }
        }
    }
}

fn content(node: Node<'_>, at: &str, audio: bool, wrongs: &mut Wrongs) {
    match node.kind() {
        Kind::String => {}
        Kind::List => {
            for part in node.items() {
                match part.text("type").as_deref() {
                    Some("text") => {
                        object(part, at, "type! text!", wrongs);
                        typed(part, at, Kind::String, &["text"], wrongs);
                    }
                    Some("image") => {
                        object(part, at, "type! source!", wrongs);
                        source(
                            part,
                            at,
                            "media_type! path!",
                            "image/jpeg image/png image/gif image/webp",
                            wrongs,
                        );
                    }
                    Some("audio") if audio => {
                        object(part, at, "type! source!", wrongs);
                        source(part, at, "media_type! path! duration_sec", "", wrongs);
                    }
                    other => wrongs.push(format!("{at} has a part {other:?}")),
                }
            }
        }
        other => wrongs.push(format!("{at} is {other:?}")),
    }
}

fn source(part: Node<'_>, at: &str, keys: &str, types: &str, wrongs: &mut Wrongs) {
    let Some(source) = part.get("source") else {
        return;
    };
    object(source, at, keys, wrongs);
    let media_type = source.text("media_type").unwrap_or_default();
    if !types.is_empty() && !types.split(' ').any(|known| known == media_type) {
        wrongs.push(format!("{at} has an image that is {media_type}"));
    }
    let path = source.text("path").unwrap_or_default();
    if path.is_empty() || path.starts_with('/') || path.contains("..") || path.contains("data:") {
        wrongs.push(format!("{at} has an image at {path}"));
    }
}
