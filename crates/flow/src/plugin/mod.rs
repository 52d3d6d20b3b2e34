//! Plugins: programs of their own that give operations, kinds of steps and tools.
//!
//! A plugin is a directory with a `plugin.yaml` and a program that speaks MCP on standard input and output. Its tools
//! are its operations (`<plugin>.<tool>`), kinds of steps where `plugin.yaml` says so, and tools for agents
//! (`<plugin>_<tool>`). `docs/plugins.md` describes all of it. A program is started when a run needs it and ends with
//! the run; one that has ended or hangs is started again
//! when it is next asked.

use std::collections::{BTreeMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use jsonschema::Validator;
use rmcp::model::CallToolResult;
use serde_json::{Map, Value};
use tokio::sync::Mutex;
use tokio_util::sync::CancellationToken;

use crate::definition::McpServer;
use crate::operation::{OperationContext, OperationError, OperationOutput, Operations};
use crate::tools::mcp::{self, Connection, McpError};
use crate::tools::{ToolOutcome, ToolRequest, ToolSpec, Toolbox, misfits};

mod manifest;

#[cfg(test)]
mod tests;

pub use manifest::{Plugin, PluginError, search_paths};

/// Plugins that were found, and those of them that are open. Cheap to clone.
#[derive(Clone, Default)]
pub struct Plugins {
    found: BTreeMap<String, Plugin>,
    problems: Vec<PluginError>,
    open: BTreeMap<String, Arc<Open>>,
}

impl std::fmt::Debug for Plugins {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Plugins")
            .field("found", &self.found.keys())
            .field("open", &self.open.keys())
            .finish_non_exhaustive()
    }
}

impl Plugins {
    /// Looks for plugins in directories. Of two with the same name the first is used. One that cannot be read does
    /// not hide the others: see [`problems`](Self::problems).
    pub fn discover(paths: &[PathBuf]) -> Self {
        let mut plugins = Self::default();
        for path in paths {
            for found in manifest::plugins_in(path) {
                match found {
                    Ok(plugin) => {
                        let name = plugin.name.clone();
                        plugins.found.entry(name).or_insert(plugin);
                    }
                    Err(problem) => plugins.problems.push(problem),
                }
            }
        }
        plugins
    }

    /// The plugins that were found, by name.
    pub fn found(&self) -> impl Iterator<Item = &Plugin> {
        self.found.values()
    }

    /// What is wrong with plugins that were found.
    pub fn problems(&self) -> &[PluginError] {
        &self.problems
    }

    /// The plugin that gives a kind of step.
    pub fn of_step(&self, kind: &str) -> Option<&Plugin> {
        self.found().find(|it| it.step_types.contains_key(kind))
    }

    /// Starts plugins: the name that a workflow gives each, and the name it was found by.
    ///
    /// # Errors
    ///
    /// When one was not found or does not begin.
    pub async fn open(
        &mut self,
        names: &BTreeMap<String, String>,
        cancel: &CancellationToken,
    ) -> Result<(), PluginError> {
        for (alias, name) in names {
            if self.open.contains_key(alias) {
                continue;
            }
            let Some(plugin) = self.found.get(name) else {
                let names = self.found.keys().map(String::as_str);
                let like = crate::operation::like(name, names);
                return Err(PluginError::NotFound {
                    name: name.clone(),
                    like: like.map(str::to_owned),
                });
            };
            let open = Open::new(plugin, cancel).await;
            let open = open.map_err(|error| PluginError::Start {
                name: name.clone(),
                why: error.to_string(),
            })?;
            let missing = plugin.step_types.values().find(|it| !open.has(it));
            if let Some(tool) = missing {
                return Err(PluginError::Start {
                    name: name.clone(),
                    why: format!("plugin.yaml names the tool {tool:?}, which it does not have"),
                });
            }
            self.open.insert(alias.clone(), Arc::new(open));
        }
        Ok(())
    }

    /// The operations of the open plugins: `<plugin>.<tool>`.
    pub fn operations(&self) -> Arc<dyn Operations> {
        Arc::new(PluginOperations {
            open: self.open.clone(),
        })
    }

    /// Tools of an open plugin for agents: `<plugin>_<tool>`, those that are named, or all when none is.
    ///
    /// # Errors
    ///
    /// When it is not open or does not have one of them.
    pub fn toolbox(&self, name: &str, expose: &[String]) -> Result<Arc<dyn Toolbox>, PluginError> {
        let Some(open) = self.open.get(name) else {
            return Err(PluginError::NotFound {
                name: name.to_owned(),
                like: None,
            });
        };
        if let Some(tool) = expose.iter().find(|it| !open.has(it)) {
            let names = open.tools.iter().map(|it| it.name.as_str());
            return Err(PluginError::NoTool {
                plugin: name.to_owned(),
                tool: tool.clone(),
                like: crate::operation::like(tool, names).map(str::to_owned),
            });
        }
        let mut taken = HashSet::new();
        let tools = open.tools.iter();
        let tools = tools.filter(|it| expose.is_empty() || expose.contains(&it.name));
        let tools = tools.map(|it| (it.name.clone(), mcp::spec(name, &it.tool, &mut taken)));
        Ok(Arc::new(PluginTools {
            tools: tools.collect(),
            open: open.clone(),
        }))
    }

    /// Runs a kind of step that an open plugin gives.
    ///
    /// # Errors
    ///
    /// When no open plugin gives it, its inputs do not fit, or it fails.
    pub async fn step(
        &self,
        kind: &str,
        config: &Map<String, Value>,
        cancel: &CancellationToken,
    ) -> Result<OperationOutput, OperationError> {
        for open in self.open.values() {
            if let Some(tool) = open.plugin.step_types.get(kind) {
                return open.run(kind, tool, config, cancel).await;
            }
        }
        let kinds = self.found().flat_map(|it| it.step_types.keys());
        Err(OperationError::Unknown {
            name: kind.to_owned(),
            like: crate::operation::like(kind, kinds.map(String::as_str)).map(str::to_owned),
        })
    }
}

/// A plugin whose program was started.
struct Open {
    plugin: Plugin,
    server: McpServer,
    tools: Vec<PluginTool>,
    connection: Mutex<Current>,
    cancel: CancellationToken,
}

/// The connection that calls go to.
struct Current {
    connection: Arc<Connection>,
    /// Whether a call had no answer in time: the next one goes to a new program, and the old one ends when no call
    /// waits for it any more.
    hangs: bool,
}

struct PluginTool {
    name: String,
    tool: rmcp::model::Tool,
    /// `None` where its schema is not one.
    validator: Option<Validator>,
}

impl Open {
    async fn new(plugin: &Plugin, cancel: &CancellationToken) -> Result<Self, McpError> {
        let server = plugin.server();
        let connection = Connection::open(&plugin.name, &server, cancel).await?;
        let tools = connection.tools().iter().map(|tool| {
            let schema = Value::Object(tool.input_schema.as_ref().clone());
            PluginTool {
                name: tool.name.to_string(),
                validator: jsonschema::validator_for(&schema).ok(),
                tool: tool.clone(),
            }
        });
        Ok(Self {
            plugin: plugin.clone(),
            server,
            tools: tools.collect(),
            connection: Mutex::new(Current {
                connection: Arc::new(connection),
                hangs: false,
            }),
            cancel: cancel.clone(),
        })
    }

    fn has(&self, tool: &str) -> bool {
        self.tools.iter().any(|it| it.name == tool)
    }

    /// Calls a tool; a program that has ended or hangs is started again first.
    async fn call(
        &self,
        tool: &str,
        arguments: Map<String, Value>,
        cancel: &CancellationToken,
    ) -> Result<CallToolResult, String> {
        let connection = {
            let mut current = self.connection.lock().await;
            if current.hangs || current.connection.is_closed() {
                let again = Connection::open(&self.plugin.name, &self.server, &self.cancel).await;
                *current = Current {
                    connection: Arc::new(again.map_err(|error| error.to_string())?),
                    hangs: false,
                };
            }
            current.connection.clone()
        };
        let timeout = self.plugin.timeout;
        let calling = connection.call(tool, arguments, cancel);
        if let Ok(done) = tokio::time::timeout(timeout, calling).await {
            return done;
        }
        let mut current = self.connection.lock().await;
        if Arc::ptr_eq(&current.connection, &connection) {
            current.hangs = true;
        }
        let name = &self.plugin.name;
        Err(format!("plugin {name}: no answer within {timeout:?}"))
    }

    async fn run(
        &self,
        called: &str,
        tool: &str,
        inputs: &Map<String, Value>,
        cancel: &CancellationToken,
    ) -> Result<OperationOutput, OperationError> {
        let found = self.tools.iter().find(|it| it.name == tool);
        let Some(found) = found else {
            let names = self.tools.iter().map(|it| it.name.as_str());
            let like = crate::operation::like(tool, names);
            let plugin = called.split_once('.').map_or(called, |it| it.0);
            return Err(OperationError::Unknown {
                name: called.to_owned(),
                like: like.map(|it| format!("{plugin}.{it}")),
            });
        };
        let validator = found.validator.as_ref();
        let wrong = validator.and_then(|it| misfits(it, &Value::Object(inputs.clone())));
        if let Some(wrong) = wrong {
            return Err(OperationError::Inputs(format!("{called}: {wrong}")));
        }
        let result = self.call(tool, inputs.clone(), cancel).await;
        if cancel.is_cancelled() {
            return Err(OperationError::Cancelled);
        }
        output(called, result.map_err(OperationError::Failed)?)
    }
}

/// What a step is given of a result: an object as it is, anything else under a name.
fn output(called: &str, result: CallToolResult) -> Result<OperationOutput, OperationError> {
    let text = mcp::text_of(&result);
    if result.is_error == Some(true) {
        let why = text.filter(|it| !it.is_empty());
        let why = why.unwrap_or("it failed".to_owned());
        return Err(OperationError::Failed(format!("{called}: {why}")));
    }
    let under = |name: &str, value: Value| Map::from_iter([(name.to_owned(), value)]);
    let response = match (result.structured_content, text) {
        (Some(Value::Object(map)), _) => map,
        (Some(value), _) => under("value", value),
        (None, Some(text)) => match serde_json::from_str(&text) {
            Ok(Value::Object(map)) => map,
            _ => under("output", text.into()),
        },
        (None, None) => {
            let content = serde_json::to_value(&result.content).unwrap_or(Value::Null);
            under("content", content)
        }
    };
    Ok(OperationOutput { response })
}

struct PluginOperations {
    open: BTreeMap<String, Arc<Open>>,
}

impl Operations for PluginOperations {
    fn names(&self) -> Vec<String> {
        let of = |(name, open): (&String, &Arc<Open>)| -> Vec<String> {
            let tools = open.tools.iter();
            tools.map(|it| format!("{name}.{}", it.name)).collect()
        };
        self.open.iter().flat_map(of).collect()
    }

    fn run<'a>(
        &'a self,
        name: &'a str,
        inputs: &'a Map<String, Value>,
        _: &'a OperationContext,
        cancel: &'a CancellationToken,
    ) -> std::pin::Pin<Box<dyn Future<Output = Result<OperationOutput, OperationError>> + Send + 'a>>
    {
        Box::pin(async move {
            let found = name.split_once('.').and_then(|(plugin, tool)| {
                let open = self.open.get(plugin)?;
                Some((open, tool))
            });
            let Some((open, tool)) = found else {
                let names = self.names();
                let like = crate::operation::like(name, names.iter().map(String::as_str));
                return Err(OperationError::Unknown {
                    name: name.to_owned(),
                    like: like.map(str::to_owned),
                });
            };
            open.run(name, tool, inputs, cancel).await
        })
    }
}

struct PluginTools {
    tools: Vec<(String, ToolSpec)>,
    open: Arc<Open>,
}

impl Toolbox for PluginTools {
    fn tools(&self) -> Vec<ToolSpec> {
        self.tools.iter().map(|it| it.1.clone()).collect()
    }

    fn call<'a>(
        &'a self,
        request: &'a ToolRequest,
        cancel: &'a CancellationToken,
    ) -> std::pin::Pin<Box<dyn Future<Output = ToolOutcome> + Send + 'a>> {
        Box::pin(async move {
            let tool = self.tools.iter().find(|it| it.1.name == request.name);
            let (Some((tool, _)), Some(arguments)) = (tool, mcp::arguments(&request.input)) else {
                return ToolOutcome::failed("the input is not an object");
            };
            match self.open.call(tool, arguments, cancel).await {
                Ok(result) => mcp::outcome(result),
                Err(why) => ToolOutcome::failed(why),
            }
        })
    }
}

/// How long a plugin has for a call that sets no time itself.
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(600);

/// The variables that a plugin's program is given.
fn environment(dir: &Path, config: &Map<String, Value>) -> BTreeMap<String, String> {
    let config = Value::Object(config.clone()).to_string();
    BTreeMap::from([
        ("QUIPU_PLUGIN_CONFIG".to_owned(), config),
        ("QUIPU_PLUGIN_DIR".to_owned(), dir.display().to_string()),
    ])
}
