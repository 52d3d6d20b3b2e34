//! The names of a session's surroundings, and what stands for them wherever they are met.

use std::ops::Range;

use memchr::memmem::Finder;
use quipu_model::Header;

use super::review::{Name, NameOf};
use crate::profile::Environment;
use crate::{Key, is_placeholder};

/// Branches and users that have the same name everywhere.
const COMMON: &[&str] = &[
    "main",
    "master",
    "develop",
    "development",
    "trunk",
    "head",
    "root",
    "user",
    "users",
    "home",
    "admin",
    "ubuntu",
    "runner",
    "node",
    "app",
    "code",
    "work",
    "workspace",
    "default",
    "guest",
    "shared",
    "public",
    "test",
    "build",
    "tests",
    "repo",
    "project",
    "projects",
    "source",
    "server",
    "client",
    "backend",
    "frontend",
    "website",
    "docs",
    "tools",
    "scripts",
    "packages",
    "core",
    "data",
    "demo",
    "example",
    "examples",
    "sample",
    "temp",
    "api",
    "web",
    "src",
    "lib",
    "cli",
    "desktop",
    "documents",
    "downloads",
    "github",
];

/// Names, longest first, and what stands for them.
#[derive(Debug, Default)]
pub(super) struct Names(Vec<Known>);

#[derive(Debug)]
struct Known {
    finder: Finder<'static>,
    length: usize,
    of: NameOf,
    stands: String,
}

impl Names {
    /// Those that a header tells, and some more.
    pub(super) fn of(header: &Header, more: &[Name], how: Environment, key: &Key) -> Self {
        let mut names = Self::default();
        if how == Environment::Keep {
            return names;
        }
        let at = &header.environment;
        let log = header
            .origin
            .as_ref()
            .and_then(|origin| origin.path.as_deref());
        let mut add = |of: NameOf, text: &str, whole: &str| {
            names.add(of, text, stands_for(of, whole, how, key));
        };
        if let Some(cwd) = at.cwd.as_deref() {
            add(NameOf::Directory, cwd, cwd);
            // How some agents name a folder after a directory.
            let folder = cwd.replace(['/', '.', '\\', ':', '_'], "-");
            add(NameOf::Directory, &folder, cwd);
            // What the project is called is mostly what its directory is.
            add(NameOf::Directory, last(cwd), cwd);
        }
        if let Some(address) = at.repository.as_deref() {
            add(NameOf::Repository, address, address);
            if let Some(slug) = slug(address) {
                add(NameOf::Repository, slug, address);
                let (owner, name) = slug.rsplit_once('/').unwrap_or(("", slug));
                add(NameOf::Repository, name, address);
                add(NameOf::User, last(owner), owner);
            }
        }
        if let Some(branch) = at.git_branch.as_deref()
            && branch.bytes().any(|byte| !byte.is_ascii_alphabetic())
        {
            add(NameOf::Branch, branch, branch);
        }
        for path in [at.cwd.as_deref(), log].into_iter().flatten() {
            if let Some(user) = home_of(path).map(|home| &path[home]) {
                for user in spelled(user) {
                    add(NameOf::User, &user, &user.to_lowercase());
                }
            }
        }
        for name in more {
            for text in spelled(&name.text) {
                add(name.of, &text, &name.text.to_lowercase());
            }
        }
        names.0.sort_by_key(|name| std::cmp::Reverse(name.length));
        names
    }

    fn add(&mut self, of: NameOf, text: &str, stands: Option<String>) {
        let is_common = COMMON
            .iter()
            .any(|common| common.eq_ignore_ascii_case(text));
        let is_root = text.chars().all(|c| matches!(c, '/' | '\\' | '-' | '.'));
        let known = self
            .0
            .iter()
            .any(|name| name.finder.needle() == text.as_bytes());
        if let Some(stands) = stands
            && text.len() >= 3
            && !(is_common || is_root || known || is_stand_in(text))
        {
            let finder = Finder::new(text).into_owned();
            self.0.push(Known {
                finder,
                length: text.len(),
                of,
                stands,
            });
        }
    }

    /// Whether there are none.
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Where names are in a text, in order and without overlaps, and which.
    pub(super) fn find(&self, text: &str) -> Vec<(Range<usize>, usize)> {
        let mut found = Vec::new();
        for (index, name) in self.0.iter().enumerate() {
            for start in name.finder.find_iter(text.as_bytes()) {
                let span = start..start + name.length;
                if is_word(text, &span) {
                    found.push((span, index));
                }
            }
        }
        found.sort_by_key(|(span, _)| (span.start, std::cmp::Reverse(span.end)));
        let mut end = 0;
        found.retain(|(span, _)| {
            let keep = span.start >= end;
            if keep {
                end = span.end;
            }
            keep
        });
        found
    }

    /// What a name is of, and what stands for it.
    pub(super) fn get(&self, index: usize) -> (NameOf, &str) {
        let name = &self.0[index];
        (name.of, &name.stands)
    }
}

/// The last name of a path.
fn last(path: &str) -> &str {
    let path = path.trim_end_matches(['/', '\\']);
    path.rsplit(['/', '\\']).next().unwrap_or(path)
}

/// A name as it is, and as people and programs spell it.
fn spelled(name: &str) -> [String; 4] {
    let lower = name.to_lowercase();
    let mut letters = lower.chars();
    let first = letters.next().map(char::to_uppercase);
    let capital = first.into_iter().flatten().chain(letters).collect();
    [name.to_owned(), name.to_uppercase(), capital, lower]
}

/// What stands for a name; `None` when it stays.
pub(super) fn stands_for(of: NameOf, name: &str, how: Environment, key: &Key) -> Option<String> {
    match how {
        Environment::Keep => None,
        Environment::Pseudonym => Some(key.pseudonym(of.word(), name)),
        Environment::Drop => Some(format!("[REDACTED:{}]", of.word())),
    }
}

/// Whether a text stands for a name already.
pub(super) fn is_stand_in(text: &str) -> bool {
    let is_pseudonym = text.split_once('_').is_some_and(|(word, hash)| {
        ["dir", "repo", "branch", "user", "host"].contains(&word)
            && hash.len() == 16
            && hash
                .bytes()
                .all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
    });
    is_pseudonym || is_placeholder(text)
}

/// The owner and name of a repository, such as `ada/app`.
fn slug(address: &str) -> Option<&str> {
    let address = address.trim_end_matches('/').trim_end_matches(".git");
    let (before, _) = address.rsplit_once('/')?;
    let begin = before.rfind(['/', ':', '@']).map_or(0, |at| at + 1);
    (begin > 0 && before.len() > begin).then(|| &address[begin..])
}

/// Where in a path the name of the person is whose home it is in.
pub(super) fn home_of(path: &str) -> Option<Range<usize>> {
    let before = ["/home/", "/Users/", "\\Users\\", "/users/"]
        .into_iter()
        .find_map(|homes| {
            let rest = match path.as_bytes() {
                [drive, b':', ..] if drive.is_ascii_alphabetic() => path.get(2..)?,
                _ => path,
            };
            rest.starts_with(homes)
                .then(|| path.len() - rest.len() + homes.len())
        })?;
    let end = path[before..]
        .find(['/', '\\'])
        .map_or(path.len(), |at| before + at);
    (end > before).then_some(before..end)
}

/// Whether what is around a name is not part of a longer one.
fn is_word(text: &str, span: &Range<usize>) -> bool {
    let joins = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-');
    let mut behind = text[span.end..].chars();
    let next = behind.next();
    let goes_on = match next {
        Some('.') => behind.next().is_some_and(char::is_alphanumeric) && !is_git(&text[span.end..]),
        Some(c) => joins(c),
        None => false,
    };
    let mut ahead = text[..span.start].chars().rev();
    let follows = match ahead.next() {
        // As in `main..branch`, where nothing is joined.
        Some('.') => ahead.next().is_some_and(char::is_alphanumeric),
        Some(c) => joins(c),
        None => false,
    };
    !goes_on && !follows
}

fn is_git(behind: &str) -> bool {
    behind
        .strip_prefix(".git")
        .is_some_and(|rest| !rest.starts_with(char::is_alphanumeric))
}

#[cfg(test)]
mod tests {
    use quipu_model::{Origin, RunId};

    use super::*;

    fn replaced(text: &str) -> String {
        let mut header = Header::new(RunId::new("r").unwrap());
        header.environment.cwd = Some("/home/ada/code/app".to_owned());
        header.environment.repository = Some("git@example.com:lovelace/engine.git".to_owned());
        header.environment.git_branch = Some("fix/loom-7".to_owned());
        header.origin = Some(Origin {
            path: Some("/home/ada/.claude/projects/-home-ada-code-app/x.jsonl".to_owned()),
            ..Origin::default()
        });
        let host = Name {
            of: NameOf::Host,
            text: "analytical".to_owned(),
        };
        let key = Key::from_bytes([3; 32]);
        let names = Names::of(&header, &[host], Environment::Drop, &key);
        let mut out = String::new();
        let mut end = 0;
        for (span, index) in names.find(text) {
            out.push_str(&text[end..span.start]);
            out.push_str(names.get(index).1);
            end = span.end;
        }
        out + &text[end..]
    }

    #[test]
    fn the_longest_name_is_replaced_and_only_whole_ones() {
        for (text, expected) in [
            ("cd /home/ada/code/app/src", "cd [REDACTED:dir]/src"),
            (
                "/home/ada/code/app2 ada-x adam",
                "/home/[REDACTED:user]/code/app2 ada-x adam",
            ),
            ("/home/ada/code/app.", "[REDACTED:dir]."),
            ("p/-home-ada-code-app/x", "p/[REDACTED:dir]/x"),
            (
                "git clone git@example.com:lovelace/engine.git",
                "git clone [REDACTED:repo]",
            ),
            (
                "https://example.com/lovelace/engine.git",
                "https://example.com/[REDACTED:repo].git",
            ),
            ("on fix/loom-7, on main", "on [REDACTED:branch], on main"),
            (
                "git log main..fix/loom-7",
                "git log main..[REDACTED:branch]",
            ),
            (
                "the engine of Ada, of ADA",
                "the [REDACTED:repo] of [REDACTED:user], of [REDACTED:user]",
            ),
            ("lovelace/other, a.ada", "[REDACTED:user]/other, a.ada"),
            ("ada@analytical:~$", "[REDACTED:user]@[REDACTED:host]:~$"),
        ] {
            assert_eq!(replaced(text), expected);
        }
    }

    #[test]
    fn homes_are_known_on_every_system() {
        for (path, user) in [
            ("/home/ada/x", Some("ada")),
            ("/Users/ada", Some("ada")),
            ("C:\\Users\\ada\\x", Some("ada")),
            ("/home/", None),
            ("/srv/home/ada", None),
            ("/", None),
        ] {
            assert_eq!(home_of(path).map(|span| &path[span]), user, "{path}");
        }
    }

    #[test]
    fn what_stands_for_a_name_is_no_name() {
        let key = Key::from_bytes([3; 32]);
        assert!(is_stand_in(&key.pseudonym("dir", "/code")));
        assert!(is_stand_in("[REDACTED:dir]"));
        assert!(!is_stand_in("dir_x") && !is_stand_in("/code"));
    }
}
