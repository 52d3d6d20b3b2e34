//! The way in: whoever has a question asks here.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::{Map, Value};
use tokio_util::sync::CancellationToken;

use super::program::failed;
use super::provider::Provider;
use super::stub::{self, Stub};
use super::{Answer, AskError, AskFailure, AskRequest, Hearer, chat, command, program};
use crate::tools::ToolRecorder;

/// Options that every provider takes.
const COMMON: &[&str] = &["model", "binary", "output_format", "timeout"];

/// How agents are asked.
#[derive(Debug, Clone, Default)]
pub struct AgentOptions {
    /// Replies that nobody gives; agents are asked unless it is set.
    pub stub: Option<Stub>,
    /// Programs that are started instead of those on the `PATH`, by provider.
    pub programs: BTreeMap<String, PathBuf>,
}

/// Asks agents. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Agents {
    options: Arc<AgentOptions>,
}

impl Agents {
    /// Asks agents in this way.
    pub fn new(options: AgentOptions) -> Self {
        Self {
            options: Arc::new(options),
        }
    }

    /// Asks an agent, and hands what it says to `hearer` as it says it. Tool calls that Quipu makes for the agent go
    /// to `tools`.
    ///
    /// # Errors
    ///
    /// When there is no answer; the error has what was heard until then.
    pub async fn ask(
        &self,
        request: &AskRequest,
        hearer: &mut dyn Hearer,
        tools: &dyn ToolRecorder,
        cancel: &CancellationToken,
    ) -> Result<Answer, AskError> {
        let refused = |why| failed(AskFailure::Request(why));
        let provider = Provider::named(&request.provider).map_err(refused)?;
        if request.prompt.trim().is_empty() {
            return Err(refused("the prompt is empty".to_owned()));
        }
        if cancel.is_cancelled() {
            return Err(failed(AskFailure::Cancelled));
        }
        if let Some(stub) = &self.options.stub {
            return stub::ask(stub, provider, request, hearer, tools, cancel).await;
        }
        if provider == Provider::OpenAi {
            return chat::ask(request, hearer, tools, cancel).await;
        }
        let program = self.program_for(provider, request).map_err(refused)?;
        let invocation = command::build(provider, request, program).map_err(refused)?;
        program::ask(invocation, request, hearer, cancel).await
    }

    /// Passes over replies of a script that were given in earlier executions of a run.
    pub fn pass_over(&self, step: &str, times: u64) {
        if let Some(Stub::Script(script) | Stub::Transcript(script)) = &self.options.stub {
            (0..times).for_each(|_| script.skip(step));
        }
    }

    /// Whether a provider is known and its options fit. Texts with a template in them are not looked at.
    ///
    /// # Errors
    ///
    /// What is wrong, and what would be right.
    pub fn check(&self, provider: &str, options: &Map<String, Value>) -> Result<(), String> {
        let provider = Provider::named(provider)?;
        let mut request = AskRequest::new(provider.name(), "x", ".");
        request.options = options
            .iter()
            .filter(|(_, value)| !has_template(value) || provider == Provider::Cli)
            .map(|(key, value)| (key.clone(), value.clone()))
            .collect();
        if provider == Provider::OpenAi {
            return chat::check(&request);
        }
        command::build(provider, &request, provider.name().to_owned()).map(|_| ())
    }

    /// Options that the provider does not know, each with a message. They are passed over.
    pub fn unknown_options(&self, provider: &str, options: &Map<String, Value>) -> Vec<String> {
        let Ok(provider) = Provider::named(provider) else {
            return Vec::new();
        };
        let known: Vec<&str> = [COMMON, command::known_options(provider)].concat();
        let unknown = options.keys().filter(|key| !known.contains(&key.as_str()));
        unknown
            .map(|key| {
                let nearest = known
                    .iter()
                    .map(|name| (strsim::jaro_winkler(name, key), name))
                    .max_by(|a, b| a.0.total_cmp(&b.0));
                let hint = match nearest {
                    Some((likeness, name)) if likeness > 0.8 => format!("; did you mean {name}?"),
                    _ => String::new(),
                };
                format!("{} has no option {key:?}{hint}", provider.name())
            })
            .collect()
    }

    /// Whether there is a provider of this name.
    pub fn is_known(&self, provider: &str) -> bool {
        Provider::named(provider).is_ok()
    }

    /// The program of a provider; `None` for servers, for `cli` and for providers that are not known.
    pub fn program(&self, provider: &str) -> Option<&str> {
        let known = Provider::named(provider).ok()?;
        let other = self.options.programs.get(known.name());
        other.and_then(|path| path.to_str()).or(known.program())
    }

    /// Whether the program of a provider is there. Providers without a program of their own are.
    pub fn is_installed(&self, provider: &str) -> bool {
        let Ok(known) = Provider::named(provider) else {
            return false;
        };
        let named = std::env::var(known.variable()).ok();
        match named.as_deref().or(self.program(provider)) {
            Some(program) => is_program(program),
            None => true,
        }
    }

    /// The program that is started: named by the step, by the variables of the step, by whoever made this, by the
    /// variables of this process, or by its own name.
    fn program_for(&self, provider: Provider, request: &AskRequest) -> Result<String, String> {
        let options = super::options::Options(&request.options);
        if let Some(program) = options.value("binary")? {
            return Ok(program);
        }
        let variable = provider.variable();
        if let Some(program) = request.env.get(&variable) {
            return Ok(program.clone());
        }
        if let Some(program) = self.options.programs.get(provider.name()) {
            let program = program.to_str();
            return program.map(str::to_owned).ok_or_else(|| {
                format!(
                    "the program of {} has a name that is not UTF-8",
                    provider.name()
                )
            });
        }
        if let Ok(program) = std::env::var(&variable) {
            return Ok(program);
        }
        Ok(provider.program().unwrap_or_default().to_owned())
    }
}

impl Default for Agents {
    fn default() -> Self {
        Self::new(AgentOptions::default())
    }
}

/// Whether a value has a template in it somewhere.
fn has_template(value: &Value) -> bool {
    match value {
        Value::String(text) => text.contains("{{"),
        Value::Array(items) => items.iter().any(has_template),
        Value::Object(fields) => fields.values().any(has_template),
        _ => false,
    }
}

/// Whether a program can be started: a path that leads to one, or a name on the `PATH`.
fn is_program(program: &str) -> bool {
    let is_executable = |path: &Path| {
        use std::os::unix::fs::PermissionsExt as _;
        let metadata = path.metadata();
        metadata.is_ok_and(|it| it.is_file() && it.permissions().mode() & 0o111 != 0)
    };
    if program.contains('/') {
        return is_executable(Path::new(program));
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|dir| is_executable(&dir.join(program)))
}
