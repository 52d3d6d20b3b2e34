//! What every program that runs workflows sets up in the same way: `quipu run`, and the server.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use quipu_prices::Prices;
use quipu_record::{Masker, RecorderOptions};

use crate::agent::{AgentOptions, Agents, Stub};
use crate::definition::check::check;
use crate::definition::load::{Loaded, load};
use crate::definition::places::Places;
use crate::definition::{Budget, Diagnostic, Diagnostics, Severity, Workflow};
use crate::engine::{EngineOptions, preflight};
use crate::plugin::Plugins;

/// What a run is given by the program that starts it.
pub struct Launch<'a> {
    /// Where transcripts, blobs and the audit file are.
    pub home: &'a Path,
    /// The directory that steps begin in.
    pub root: &'a Path,
    /// Where workflows and what belongs to them are.
    pub places: Places,
    /// What calls cost.
    pub prices: Arc<Prices>,
    /// Replies that nobody gives.
    pub stub: Option<Stub>,
    /// What the run may cost, in place of what its workflow says.
    pub budget: Option<Budget>,
    /// Sees each event before it is written. With one, the values of secret inputs are masked as well.
    pub masker: Option<Arc<Masker>>,
    /// Who starts, resumes and approves.
    pub user: String,
}

impl Launch<'_> {
    /// The options of an engine that runs it. Nobody listens, and nobody can be asked, until the program says otherwise.
    pub fn options(self) -> EngineOptions {
        let mut options = EngineOptions::new(self.home, self.root, self.places);
        options.audit = audit_file(self.home);
        options.recorder = RecorderOptions {
            masker: self.masker,
            ..RecorderOptions::default()
        };
        options.agents = Agents::new(AgentOptions {
            stub: self.stub,
            ..AgentOptions::default()
        });
        options.connector = connector();
        options.prices = self.prices;
        options.budget = self.budget;
        options.user = self.user;
        options
    }
}

/// Where the audit file is: in the home, or where the environment says.
pub fn audit_file(home: &Path) -> Option<PathBuf> {
    match std::env::var_os("QUIPU_AUDIT_LOG").or_else(|| std::env::var_os("AWF_AUDIT_LOG")) {
        Some(off) if off == "off" => None,
        Some(path) if !path.is_empty() => Some(PathBuf::from(path)),
        _ => Some(home.join("audit.jsonl")),
    }
}

/// How an agent reaches the tools of a run: by this program.
pub fn connector() -> Option<Vec<String>> {
    let own = std::env::current_exe().ok()?.to_str()?.to_owned();
    Some(vec![own, "mcp-serve".to_owned(), "--connect".to_owned()])
}

/// Who runs this program, as the system knows it. Not as the environment says: approvals depend on it.
pub fn system_user() -> String {
    let id = rustix::process::getuid().as_raw();
    let known = std::fs::read_to_string("/etc/passwd").unwrap_or_default();
    let name = known.lines().find_map(|line| {
        let mut fields = line.split(':');
        let name = fields.next()?;
        (fields.nth(1)?.parse() == Ok(id)).then(|| name.to_owned())
    });
    name.unwrap_or_else(|| format!("uid-{id}"))
}

/// A workflow file that was read, and all that is wrong with it or looks so.
#[derive(Debug)]
pub struct Checked {
    /// The workflow; `None` when the file cannot be understood.
    pub workflow: Option<Workflow>,
    /// What was found.
    pub found: Vec<Diagnostic>,
}

impl Checked {
    /// Reads a workflow, and looks for what it needs. Agents are not looked for when their replies are `simulated`.
    pub fn load(file: &Path, places: &Places, simulated: bool) -> Self {
        Self::of(load(file, places), places, simulated)
    }

    /// The same for a workflow that was read.
    pub fn of(read: Result<Loaded, Diagnostics>, places: &Places, simulated: bool) -> Self {
        let Loaded {
            workflow,
            mut warnings,
        } = match read {
            Ok(loaded) => loaded,
            Err(Diagnostics(found)) => {
                return Self {
                    workflow: None,
                    found,
                };
            }
        };
        warnings.extend(check(&workflow, places));
        let agents = Agents::new(AgentOptions::default());
        let plugins = Plugins::discover(&places.plugins);
        warnings.extend(preflight(&workflow, &agents, &plugins, simulated));
        Self {
            workflow: Some(workflow),
            found: warnings,
        }
    }

    /// How many errors keep it from running.
    pub fn errors(&self) -> usize {
        let errors = self.found.iter();
        errors
            .filter(|found| found.severity == Severity::Error)
            .count()
    }
}
