//! What a request was made with: parameters and tools, where a log says so.
//!
//! Logs of requests say it in notes of the kind `context`: the settings of a request, whole, whenever they change.
//! Logs of agents say some of it among other things, such as how hard a model is to think.

use quipu_model::Note;
use quipu_model::json::{Kind as JsonKind, Node, Tape};

use super::mend;
use super::text::{Object, list};
use crate::agentlog::{Kind, LIMITS};

/// Keys that are parameters of a call to a model wherever they stand.
const PARAMS: &[&str] = &[
    "candidateCount",
    "effort",
    "frequency_penalty",
    "generationConfig",
    "inferenceConfig",
    "max_completion_tokens",
    "max_output_tokens",
    "max_tokens",
    "presence_penalty",
    "reasoning",
    "reasoning_effort",
    "response_format",
    "seed",
    "stop",
    "stop_sequences",
    "temperature",
    "thinking",
    "tool_choice",
    "top_k",
    "top_p",
];

/// The settings of requests.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Settings {
    /// An object.
    pub(super) params: Option<String>,
    /// A list.
    pub(super) tools: Option<String>,
    /// What else a request of a trace has, by its key.
    pub(super) more: Vec<(String, String)>,
    /// Whether all that the note says is in it.
    pub(super) whole: bool,
    /// Fields that are not all there, since the format does not allow what they hold.
    pub(super) unfit: Vec<String>,
}

impl Settings {
    /// What a note says of the requests after it; `None` where it says nothing of them.
    pub(super) fn of(note: &Note) -> Option<Self> {
        let mut tape = Tape::new();
        let raw = tape.read(note.raw.as_ref()?.get(), LIMITS.max_depth).ok()?;
        if raw.kind() != JsonKind::Object {
            return None;
        }
        let is_object = |it: &Node<'_>| it.kind() == JsonKind::Object;
        // A request names its model, or has its parameters under a name that nothing else has.
        let is_request = raw.text("model").is_some() || raw.get("generationConfig").is_some();
        let has_type = ["type", "method", "jsonrpc"]
            .iter()
            .any(|key| raw.get(key).is_some());
        if is_request && !has_type {
            let params = raw.get("params").filter(is_object);
            let settings = match params {
                Some(params) => Some(Self::of_trace(raw, params)),
                None => Self::of_request(raw),
            };
            return settings.map(Self::fitted);
        }
        if raw.text("type").as_deref() != Some("turn_context") {
            return None;
        }
        let within = raw.get("payload").filter(is_object)?;
        let within = within
            .get("turn_context")
            .filter(is_object)
            .unwrap_or(within);
        let params = object(within.fields().filter(|(key, _)| is_param(*key)));
        (!params.is_empty()).then(|| {
            let settings = Self {
                params: Some(params.end()),
                ..Self::default()
            };
            settings.fitted()
        })
    }

    /// Leaves out what a request may not hold.
    fn fitted(mut self) -> Self {
        let mut unfit = Vec::new();
        let mut fit = |key: &str, json: String| {
            let mut tape = Tape::new();
            let value = tape.read(&json, LIMITS.max_depth).ok();
            let (json, whole) = value.map_or((None, false), |value| {
                mend::fit(Kind::ChatRequest, key, value)
            });
            if !whole {
                unfit.push(key.to_owned());
            }
            json
        };
        self.params = self.params.and_then(|json| fit("params", json));
        self.tools = self.tools.and_then(|json| fit("tools", json));
        let more = self.more.into_iter();
        self.more = more
            .filter_map(|(key, json)| fit(&key, json).map(|json| (key, json)))
            .collect();
        self.unfit = unfit;
        self
    }

    /// Those of a request in a trace.
    fn of_trace(raw: Node<'_>, params: Node<'_>) -> Self {
        let tools = raw.get("tools").filter(|it| it.kind() == JsonKind::List);
        let own = ["params", "model", "messages"];
        let more = raw.fields().filter(|(key, _)| {
            !(own.iter().any(|own| key.is(own)) || tools.is_some() && key.is("tools"))
        });
        Self {
            params: Some(params.raw().get().to_owned()),
            tools: tools.map(|it| it.raw().get().to_owned()),
            more: more
                .map(|(key, value)| {
                    (
                        key.to_text_lossy().into_owned(),
                        value.raw().get().to_owned(),
                    )
                })
                .collect(),
            whole: true,
            unfit: Vec::new(),
        }
    }

    /// Those of a request as a provider takes it.
    fn of_request(raw: Node<'_>) -> Option<Self> {
        let tools = raw.get("tools").filter(|it| it.kind() == JsonKind::List);
        if tools.is_none() && !raw.fields().any(|(key, _)| is_param(key)) {
            return None;
        }
        let params = raw
            .fields()
            .filter(|(key, _)| !key.is("tools") && !key.is("model"));
        Some(Self {
            params: Some(object(params).end()),
            tools: tools.map(|tools| {
                let tools: Vec<String> = tools.items().flat_map(described).collect();
                list(tools.iter().map(String::as_str))
            }),
            more: Vec::new(),
            whole: true,
            unfit: Vec::new(),
        })
    }
}

fn is_param(key: quipu_model::json::RawStr<'_>) -> bool {
    PARAMS.iter().any(|param| key.is(param))
}

fn object<'a>(fields: impl Iterator<Item = (quipu_model::json::RawStr<'a>, Node<'a>)>) -> Object {
    let mut object = Object::new();
    for (key, value) in fields.filter(|(_, value)| !value.is_null()) {
        let json = value.raw().get();
        // A single text to stop at is a list of one.
        let json = match value.kind() {
            JsonKind::String if key.is("stop") => &list([json]),
            _ => json,
        };
        object = object.raw(&key.to_text_lossy(), json);
    }
    object
}

/// A tool as the format describes it: `name`, `description`, `input_schema`. What a provider says beyond that stays.
fn described(tool: Node<'_>) -> Vec<String> {
    // One list of functions in each tool.
    if let Some(functions) = tool.get("functionDeclarations") {
        return functions.items().flat_map(described).collect();
    }
    if tool.kind() != JsonKind::Object {
        return Vec::new();
    }
    let function = tool
        .get("function")
        .filter(|it| it.kind() == JsonKind::Object);
    let inner = function.unwrap_or(tool);
    let name = inner.text("name").or_else(|| inner.text("type"));
    let mut object = Object::new().text("name", &name.unwrap_or_default());
    for (key, value) in inner.fields() {
        let key = match key.plain() {
            Some("name") => continue,
            // What a tool takes has several names.
            Some("parameters") if inner.get("input_schema").is_none() => "input_schema".into(),
            _ => key.to_text_lossy(),
        };
        object = object.raw(&key, value.raw().get());
    }
    vec![object.end()]
}

#[cfg(test)]
mod tests {
    use super::*;
    use quipu_model::{Json, NoteKind};

    fn settings(raw: &str) -> Option<Settings> {
        Settings::of(&Note {
            kind: NoteKind::Context,
            text: None,
            raw: Some(Json::parse(raw).unwrap()),
        })
    }

    #[test]
    fn the_settings_of_a_request_are_its_parameters_and_tools() {
        let found = settings(
            r#"{"model":"m","temperature":0.5,"stop":"END","metadata":{"user":"u"},"tools":[
                {"type":"function","function":{"name":"a","description":"A","parameters":{"x":1}}},
                {"name":"b","input_schema":{}},
                {"type":"web_search","max_uses":2},
                {"functionDeclarations":[{"name":"c","parameters":{}}]}]}"#,
        )
        .unwrap();
        assert_eq!(
            found.params.as_deref(),
            Some(r#"{"temperature":0.5,"stop":["END"],"metadata":{"user":"u"}}"#)
        );
        assert_eq!(
            found.tools.as_deref(),
            Some(
                r#"[{"name":"a","description":"A","input_schema":{"x":1}},{"name":"b","input_schema":{}},{"name":"web_search","type":"web_search","max_uses":2},{"name":"c","input_schema":{}}]"#
            )
        );
    }

    #[test]
    fn those_of_a_trace_stay_as_they_are() {
        let found = settings(
            r#"{"model":"m","params":{"temperature":1.0},"tools":[{"name":"t"}],"system_fingerprint":"f"}"#,
        )
        .unwrap();
        assert_eq!(found.params.as_deref(), Some(r#"{"temperature":1.0}"#));
        assert_eq!(found.tools.as_deref(), Some(r#"[{"name":"t"}]"#));
        assert_eq!(found.more, [("system_fingerprint".into(), "\"f\"".into())]);
    }

    #[test]
    fn what_is_not_of_requests_is_not_taken_for_it() {
        assert_eq!(settings(r#"{"type":"attachment","tools":[]}"#), None);
        assert_eq!(settings(r#"{"cwd":"/","branch":"main"}"#), None);
        assert_eq!(
            settings(r#"{"method":"session/new","model":"m","params":{"x":1}}"#),
            None
        );
        assert_eq!(settings(r#"{"params":{"x":1}}"#), None);
        assert_eq!(settings(r#"{"seed":1,"tools":[]}"#), None);
        assert_eq!(
            settings(r#"{"type":"x","payload":{"effort":"high"}}"#),
            None
        );
        assert_eq!(settings("[1]"), None);
        let turn = r#"{"type":"turn_context","payload":{"cwd":"/","model":"m","effort":"high","summary":"auto"}}"#;
        let turn = settings(turn).unwrap();
        assert_eq!(turn.params.as_deref(), Some(r#"{"effort":"high"}"#));
        assert!(!turn.whole);
    }
}
