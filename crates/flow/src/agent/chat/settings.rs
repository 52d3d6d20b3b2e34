//! What a question to a server is sent with.

use serde_json::{Map, Value, json};

use crate::agent::AskRequest;
use crate::agent::options::Options;

pub(in crate::agent) const OPTIONS: &[&str] = &[
    "base_url",
    "api_key_env",
    "temperature",
    "top_p",
    "max_tokens",
    "max_completion_tokens",
    "max_rounds",
    "stream",
    "record_chunks",
    "retries",
];

/// How often the model may call tools before it has to answer.
const ROUNDS: u64 = 25;

/// How often a request is tried again.
const RETRIES: u64 = 3;

/// The address, the key and the parameters.
pub(super) struct Settings {
    pub(super) url: String,
    pub(super) key: Option<String>,
    pub(super) model: String,
    /// What the body has beside the messages and the tools.
    pub(super) params: Map<String, Value>,
    pub(super) stream: bool,
    pub(super) rounds: u64,
    pub(super) retries: u64,
    pub(super) record_chunks: bool,
}

impl Settings {
    pub(super) fn read(request: &AskRequest) -> Result<Self, String> {
        let params = check(request)?;
        let options = Options(&request.options);
        let base = options.text("base_url")?;
        let base = base.or_else(|| variable(request, "OPENAI_BASE_URL"));
        let base = base.ok_or(
            "no address: set options.base_url or OPENAI_BASE_URL, e.g. https://api.example.com/v1",
        )?;
        let model = options.text("model")?;
        let model = model.or_else(|| variable(request, "OPENAI_MODEL"));
        let key = options.text("api_key_env")?;
        let key = variable(request, key.as_deref().unwrap_or("OPENAI_API_KEY"));
        Ok(Self {
            url: format!("{}/chat/completions", base.trim().trim_end_matches('/')),
            key: key.map(|key| key.trim().to_owned()),
            model: model.ok_or("no model: set options.model or OPENAI_MODEL")?,
            params,
            stream: !options.has("stream") || options.flag("stream")?,
            rounds: options.count("max_rounds")?.unwrap_or(ROUNDS),
            retries: retries(options)?,
            record_chunks: options.flag("record_chunks")?,
        })
    }
}

/// The parameters of the request, checked; what only the environment tells need not be there.
pub(super) fn check(request: &AskRequest) -> Result<Map<String, Value>, String> {
    let options = Options(&request.options);
    if let Some(base) = options.text("base_url")? {
        crate::http::Request::new("POST", &base).map_err(|error| error.to_string())?;
    }
    let mut params = Map::new();
    for (key, most) in [("temperature", 2.0), ("top_p", 1.0)] {
        if let Some(number) = options.number(key, 0.0, most)? {
            params.insert(key.to_owned(), json!(number));
        }
    }
    for key in ["max_completion_tokens", "max_tokens"] {
        if let Some(count) = options.count(key)? {
            params.insert(key.to_owned(), json!(count));
        }
    }
    options.count("max_rounds")?;
    options.flag("record_chunks")?;
    options.flag("stream")?;
    retries(options)?;
    Ok(params)
}

fn retries(options: Options<'_>) -> Result<u64, String> {
    let retries = options.number("retries", 0.0, 10.0)?;
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "it is from 0 to 10"
    )]
    Ok(retries.map_or(RETRIES, |it| it as u64))
}

/// A variable of the step, or of this process. An empty one is not set.
fn variable(request: &AskRequest, name: &str) -> Option<String> {
    let value = request.env.get(name).cloned();
    let value = value.or_else(|| std::env::var(name).ok());
    value.filter(|value| !value.trim().is_empty())
}
