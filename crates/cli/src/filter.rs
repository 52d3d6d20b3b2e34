//! Which sessions a person means: agents by their names, projects by their directories.

use quipu_agents::{FAMILIES, Host};
use quipu_store::facade::Project;

use crate::error::{CommandError, Result};

/// The directories that a person means.
pub(crate) fn project(text: &str) -> Result<Project> {
    let user = etcetera::home_dir().ok();
    Project::new(text, user.as_deref()).map_err(|error| CommandError::usage(error.to_string()))
}

/// How an agent is named.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Naming {
    /// By its name or the beginning of it.
    Beginning,
    /// By its name.
    Whole,
}

/// A name that no agent has would find nothing, silently. `more` are names that are known besides.
pub(crate) fn check_agents(
    agents: &[String],
    host: &Host,
    more: &[String],
    naming: Naming,
) -> Result<()> {
    let mut known: Vec<&str> = FAMILIES
        .iter()
        .flat_map(|family| {
            let places = family.places(host).into_iter().map(|place| place.brand);
            let dialects = family.dialects().iter().map(|dialect| dialect.brand);
            places.chain(dialects).collect::<Vec<_>>()
        })
        .chain(more.iter().map(String::as_str))
        .collect();
    known.sort_unstable();
    known.dedup();
    let is_known = |agent: &String| {
        let agent = agent.to_lowercase();
        known.iter().any(|name| match naming {
            Naming::Beginning => !agent.is_empty() && name.starts_with(&agent),
            Naming::Whole => *name == agent,
        })
    };
    match agents.iter().find(|agent| !is_known(agent)) {
        None => Ok(()),
        Some(agent) => Err(CommandError::usage(format!("no agent is called {agent:?}"))
            .hint(format!("known are {}", known.join(", ")))),
    }
}
