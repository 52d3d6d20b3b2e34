//! Which directories a person means.

use std::path::{Component, Path, PathBuf};

/// Directories, as a person names them.
#[derive(Debug, Clone)]
pub enum Project {
    /// This one and those below it: as it was written, and where links lead.
    Directory(Vec<PathBuf>),
    /// Those with these parts in their paths, one behind the other.
    Parts(Vec<String>),
}

/// A text does not name a directory.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} names no directory")]
pub struct NotADirectory(String);

impl Project {
    /// `.`, `~` and absolute paths are directories, and so is what ends with a slash or is there; else it
    /// is a name. `user` is the directory that `~` means.
    ///
    /// # Errors
    ///
    /// When the text is empty, or means a directory that cannot be told.
    pub fn new(text: &str, user: Option<&Path>) -> Result<Self, NotADirectory> {
        let refuse = || NotADirectory(text.to_owned());
        if text.is_empty() {
            return Err(refuse());
        }
        let path = match text.strip_prefix('~') {
            Some(rest) if rest.is_empty() || rest.starts_with('/') => {
                user.ok_or_else(refuse)?.join(rest.trim_start_matches('/'))
            }
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
    pub fn has(&self, directory: &str) -> bool {
        self.matches(directory, |part, name| {
            part.to_lowercase().starts_with(&name.to_lowercase())
        })
    }

    /// Like [`Self::has`], but a name is a whole name.
    pub fn has_exactly(&self, directory: &str) -> bool {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_directories() {
        let named = |text: &str, directory: &str| {
            let project = Project::new(text, Some(Path::new("/home/ada"))).unwrap();
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
        assert_eq!(named("~/demo", "/home/ada/demo/sub"), (true, true));
        assert_eq!(named("~", "/home/eve"), (false, false));
        assert!(Project::new("", None).is_err());
        assert!(Project::new("~/demo", None).is_err());
    }
}
