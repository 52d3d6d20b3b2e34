//! Which sessions a person means: agents by their names, projects by their directories.

use std::path::{Component, Path, PathBuf};

use quipu_agents::{FAMILIES, Host};

use crate::error::{CommandError, Result};

/// Directories, as a person names them.
#[derive(Debug, Clone)]
pub(crate) enum Project {
    /// This one and those below it: as it was written, and where links lead.
    Directory(Vec<PathBuf>),
    /// Those with these parts in their paths, one behind the other.
    Parts(Vec<String>),
}

impl Project {
    /// `.`, `~` and absolute paths are directories, and so is what ends with a slash or is there; else it
    /// is a name.
    pub(crate) fn new(text: &str) -> Result<Self> {
        let refuse = || CommandError::usage(format!("{text:?} names no directory"));
        if text.is_empty() {
            return Err(refuse());
        }
        let path = match text.strip_prefix('~') {
            Some(rest) if rest.is_empty() || rest.starts_with('/') => etcetera::home_dir()
                .map_err(|_| refuse())?
                .join(rest.trim_start_matches('/')),
            _ => PathBuf::from(text),
        };
        let is_named = path.is_absolute()
            || text.ends_with('/')
            || ["./", "../"].iter().any(|begin| text.starts_with(begin))
            || [".", ".."].contains(&text);
        if is_named || (text.contains('/') && path.is_dir()) {
            let written = normal(&std::path::absolute(&path).map_err(|_| refuse())?);
            let mut directories = vec![written];
            directories.extend(std::fs::canonicalize(&path));
            directories.dedup();
            return Ok(Self::Directory(directories));
        }
        Ok(Self::Parts(parts(text).map(str::to_owned).collect()))
    }

    /// Whether it is this directory, or one below it. A name may be the beginning of one, in any case.
    pub(crate) fn has(&self, directory: &str) -> bool {
        self.matches(directory, |part, name| {
            part.to_lowercase().starts_with(&name.to_lowercase())
        })
    }

    /// Like [`Self::has`], but a name is a whole name.
    pub(crate) fn has_exactly(&self, directory: &str) -> bool {
        self.matches(directory, |part, name| part == name)
    }

    fn matches(&self, directory: &str, is_last: fn(&str, &str) -> bool) -> bool {
        match self {
            Self::Directory(those) => {
                let directory = normal(Path::new(directory));
                those.iter().any(|it| directory.starts_with(it))
            }
            Self::Parts(names) => {
                let Some((last, before)) = names.split_last() else {
                    return false;
                };
                let there: Vec<&str> = parts(directory).collect();
                there.windows(names.len()).any(|window| {
                    let same = before.iter().zip(window);
                    same.into_iter()
                        .all(|(name, part)| name.to_lowercase() == part.to_lowercase())
                        && is_last(window[names.len() - 1], last)
                })
            }
        }
    }
}

fn parts(path: &str) -> impl Iterator<Item = &str> {
    path.split(['/', '\\']).filter(|part| !part.is_empty())
}

/// A path without `.` and `..`.
fn normal(path: &Path) -> PathBuf {
    let mut normal = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => {
                normal.pop();
            }
            part => normal.push(part),
        }
    }
    normal
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_directories() {
        let named = |text: &str, directory: &str| {
            let project = Project::new(text).unwrap();
            (project.has(directory), project.has_exactly(directory))
        };
        assert_eq!(named("demo", "/w/demo"), (true, true));
        assert_eq!(named("demo", "/w/demo/sub"), (true, true));
        assert_eq!(named("dem", "/w/demo"), (true, false));
        assert_eq!(named("DEMO", "/w/demo"), (true, false));
        assert_eq!(named("emo", "/w/demo"), (false, false));
        assert_eq!(named("w/demo", "/x/w/demo"), (true, true));
        assert_eq!(named("w/demo", "/w/x/demo"), (false, false));
        assert_eq!(named("/w/demo", "/w/demo/"), (true, true));
        assert_eq!(named("/w/demo/", "/w/demo/sub"), (true, true));
        assert_eq!(named("/w/./x/../demo", "/w/demo"), (true, true));
        assert_eq!(named("/w/dem", "/w/demo"), (false, false));
        assert_eq!(named("relay", r"C:\src\relay"), (true, true));
        let here = std::env::current_dir().unwrap();
        assert_eq!(named(".", here.join("sub").to_str().unwrap()), (true, true));
        assert_eq!(named("./sub", here.to_str().unwrap()), (false, false));
        assert!(Project::new("").is_err());
    }
}
