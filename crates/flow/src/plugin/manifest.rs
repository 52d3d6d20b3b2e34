//! `plugin.yaml`, and where plugins are looked for.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::Deserialize;
use serde_json::{Map, Value};

use super::{DEFAULT_TIMEOUT, environment};
use crate::definition::McpServer;

/// The most bytes of a `plugin.yaml`.
const MAX_MANIFEST: u64 = 1 << 20;

/// What is wrong with a plugin.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PluginError {
    /// There is none of this name.
    #[error("there is no plugin {name:?}{}", hint(.like.as_deref()))]
    NotFound {
        /// The name.
        name: String,
        /// A name that is much like it.
        like: Option<String>,
    },
    /// It has no tool of this name.
    #[error("plugin {plugin} has no tool {tool:?}{}", hint(.like.as_deref()))]
    NoTool {
        /// The plugin.
        plugin: String,
        /// The name.
        tool: String,
        /// A name that is much like it.
        like: Option<String>,
    },
    /// Its `plugin.yaml` cannot be read.
    #[error("{file}: {why}")]
    Manifest {
        /// The file.
        file: String,
        /// What is wrong with it.
        why: String,
    },
    /// Its program does not begin.
    #[error("plugin {name}: {why}")]
    Start {
        /// Its name.
        name: String,
        /// Why, with what it wrote to standard error.
        why: String,
    },
}

fn hint(like: Option<&str>) -> String {
    like.map(|it| format!("; did you mean {it:?}?"))
        .unwrap_or_default()
}

/// A plugin as its `plugin.yaml` describes it.
#[derive(Debug, Clone, PartialEq)]
pub struct Plugin {
    /// Its name.
    pub name: String,
    /// Its version.
    pub version: Option<String>,
    /// What it is for.
    pub description: Option<String>,
    /// Its directory.
    pub dir: PathBuf,
    /// Its program and arguments.
    pub command: Vec<String>,
    /// Kinds of steps that it gives, and its tool for each.
    pub step_types: BTreeMap<String, String>,
    /// Settings, which its program is given.
    pub config: Map<String, Value>,
    /// How long a call may take.
    pub timeout: Duration,
    /// What was not understood of the file.
    pub warnings: Vec<String>,
}

#[derive(Deserialize)]
struct Manifest {
    name: Option<String>,
    version: Option<String>,
    description: Option<String>,
    command: Option<Vec<String>>,
    #[serde(default)]
    capabilities: Vec<String>,
    #[serde(default)]
    step_types: BTreeMap<String, String>,
    #[serde(default)]
    config: Map<String, Value>,
    timeout_seconds: Option<f64>,
    #[serde(flatten)]
    more: BTreeMap<String, Value>,
}

/// What a plugin may say of itself that Quipu does not need: who made it, and what it needs of other programs.
const IGNORED: [&str; 8] = [
    "quipu_version",
    "awf_version",
    "author",
    "authors",
    "license",
    "homepage",
    "repository",
    "events",
];

impl Plugin {
    /// Reads the `plugin.yaml` of a directory.
    ///
    /// # Errors
    ///
    /// When it is not there or does not fit.
    pub fn read(dir: &Path) -> Result<Self, PluginError> {
        let file = dir.join("plugin.yaml");
        let wrong = |why: String| PluginError::Manifest {
            file: file.display().to_string(),
            why,
        };
        let mut text = String::new();
        let opened = std::fs::File::open(&file).map_err(|e| wrong(e.to_string()))?;
        let read = opened.take(MAX_MANIFEST + 1).read_to_string(&mut text);
        let read = read.map_err(|e| wrong(e.to_string()))?;
        if read as u64 > MAX_MANIFEST {
            return Err(wrong(format!("it has more than {MAX_MANIFEST} bytes")));
        }
        let manifest: Manifest =
            serde_saphyr::from_str(&text).map_err(|error| wrong(error.to_string()))?;
        manifest.plugin(dir).map_err(wrong)
    }

    /// The server that it is.
    pub(super) fn server(&self) -> McpServer {
        let mut command = self.command.clone();
        if let Some(program) = command.first_mut() {
            let path = Path::new(program);
            // A path is from the plugin's directory; a name without a slash is looked up.
            if program.contains('/') && path.is_relative() {
                *program = self.dir.join(path).display().to_string();
            }
        }
        McpServer {
            command,
            env: environment(&self.dir, &self.config),
            ..McpServer::default()
        }
    }
}

impl Manifest {
    fn plugin(self, dir: &Path) -> Result<Plugin, String> {
        let name = self.name.ok_or("name is missing")?;
        let plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
        if name.is_empty() || name.len() > 64 || !name.chars().all(plain) {
            return Err(format!(
                "name: {name:?} must be 1 to 64 letters, digits, - and _"
            ));
        }
        let command = self.command.filter(|it| !it.is_empty());
        let command = command.ok_or(
            "command is missing: the program that speaks MCP on standard input and output. \
             Plugins that are made for awf itself speak another protocol",
        )?;
        let timeout = match self.timeout_seconds {
            None => DEFAULT_TIMEOUT,
            Some(seconds) => Duration::try_from_secs_f64(seconds)
                .ok()
                .filter(|it| !it.is_zero())
                .ok_or("timeout_seconds must be more than 0")?,
        };
        let mut warnings = Vec::new();
        for key in self
            .more
            .keys()
            .filter(|it| !IGNORED.contains(&it.as_str()))
        {
            warnings.push(format!("{key} is not known and has no effect"));
        }
        for capability in &self.capabilities {
            if !["operations", "step_types", "tools"].contains(&capability.as_str()) {
                warnings.push(format!("the capability {capability} has no effect"));
            }
        }
        let dir = std::path::absolute(dir).map_err(|e| e.to_string())?;
        Ok(Plugin {
            name,
            version: self.version,
            description: self.description,
            dir,
            command,
            step_types: self.step_types,
            config: self.config,
            timeout,
            warnings,
        })
    }
}

/// The plugins of a directory: itself, or the directories in it. A directory that is not there has none.
pub(super) fn plugins_in(path: &Path) -> Vec<Result<Plugin, PluginError>> {
    if path.join("plugin.yaml").exists() {
        return vec![Plugin::read(path)];
    }
    let mut dirs: Vec<PathBuf> = std::fs::read_dir(path)
        .into_iter()
        .flatten()
        .flatten()
        .map(|it| it.path())
        .filter(|it| it.join("plugin.yaml").exists())
        .collect();
    dirs.sort();
    dirs.iter().map(|it| Plugin::read(it)).collect()
}

/// Where plugins are looked for: the directories of `QUIPU_PLUGINS_PATH` and `AWF_PLUGINS_PATH`, `.quipu/plugins` and
/// `.awf/plugins` of the workspace, and `plugins` of Quipu's home.
pub fn search_paths(
    workspace: &Path,
    home: &Path,
    variable: impl Fn(&str) -> Option<OsString>,
) -> Vec<PathBuf> {
    let mut paths = Vec::new();
    for name in ["QUIPU_PLUGINS_PATH", "AWF_PLUGINS_PATH"] {
        if let Some(value) = variable(name) {
            let given = std::env::split_paths(&value);
            paths.extend(given.filter(|it| !it.as_os_str().is_empty()));
        }
    }
    paths.push(workspace.join(".quipu/plugins"));
    paths.push(workspace.join(".awf/plugins"));
    paths.push(home.join("plugins"));
    paths
}
