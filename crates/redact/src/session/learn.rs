//! Names that a session tells along the way: what its remotes are, who is at the prompt, what the module is called.
//!
//! They are learned from all events before any of them is shared, because what is said at the end is a name at the
//! beginning as well.

use std::borrow::Cow;

use quipu_formats::normalized::{self, Beyond};
use quipu_model::json::{Kind, Node, Tape};
use quipu_model::{Event, Header};
use rustc_hash::FxHashMap;

use super::common::{is_common, is_public_owner};
use super::digests::Digests;
use super::names::{Whose, is_stand_in};
use super::review::{Name, NameOf};
use super::tickets::Tickets;

/// Names that are learned at most.
const MOST: usize = 4096;

/// Letters of a repository's name that is no name by itself where it was only mentioned.
const SHORT: usize = 5;

/// How deep values may nest.
const DEEPEST: usize = 128;

/// Where everybody has repositories: behind each is `OWNER/REPOSITORY`.
const FORGES: [&str; 12] = [
    "github.com",
    "githubusercontent.com",
    "ghcr.io",
    "gitlab.com",
    "bitbucket.org",
    "codeberg.org",
    "gitea.com",
    "git.sr.ht",
    "dev.azure.com",
    "huggingface.co",
    "deepwiki.com",
    "hf.co",
];

/// Names below a forge that are pages of it.
const PAGES: [&str; 16] = [
    "orgs",
    "users",
    "repos",
    "settings",
    "features",
    "topics",
    "login",
    "about",
    "search",
    "sponsors",
    "apps",
    "marketplace",
    "issues",
    "pulls",
    "notifications",
    "api",
];

/// Users of machines that everybody has.
const SYSTEM: [&str; 12] = [
    "git", "root", "ubuntu", "admin", "user", "node", "runner", "staff", "wheel", "deploy",
    "www-data", "postgres",
];

/// What a session tells of whose it is.
#[derive(Debug, Default)]
pub struct Learned {
    names: FxHashMap<String, (Name, Whose)>,
    pub(super) digests: Digests,
    pub(super) tickets: Tickets,
    tape: Tape,
    buffer: Vec<u8>,
}

impl Learned {
    /// Takes in an event.
    pub fn event(&mut self, header: &Header, event: &Event, beyond: &Beyond) {
        let mut buffer = std::mem::take(&mut self.buffer);
        buffer.clear();
        normalized::encode(header, event, beyond, &mut buffer);
        let mut tape = std::mem::take(&mut self.tape);
        if let Ok(node) = tape.read(&String::from_utf8_lossy(&buffer), DEEPEST) {
            self.value(node, true);
        }
        tape.shrink();
        (self.tape, self.buffer) = (tape, buffer);
    }

    /// Takes in what is said of the session as a whole.
    pub fn header(&mut self, header: &Header) {
        let at = &header.environment;
        for text in [&at.commit, &header.title].into_iter().flatten() {
            self.text(text);
        }
    }

    pub(super) fn names(&self) -> impl Iterator<Item = (&Name, Whose)> {
        // In one order, so that the same session gives the same copy.
        let mut all: Vec<_> = self.names.iter().collect();
        all.sort_by(|one, other| one.0.cmp(other.0));
        all.into_iter().map(|(_, (name, whose))| (name, *whose))
    }

    fn value(&mut self, node: Node<'_>, is_outer: bool) {
        match node.kind() {
            Kind::Object => {
                for (key, value) in node.fields() {
                    self.text(&key.to_text_lossy());
                    self.value(value, is_outer);
                }
            }
            Kind::List => node.items().for_each(|item| self.value(item, is_outer)),
            Kind::String => {
                let text = node.as_str().unwrap_or(Cow::Borrowed(""));
                // Arguments of calls are JSON in a string.
                if is_outer && matches!(text.trim_start().as_bytes(), [b'{' | b'[', ..]) {
                    let mut tape = Tape::new();
                    if let Ok(node) = tape.read(&text, DEEPEST) {
                        self.value(node, false);
                        return;
                    }
                }
                self.text(&text);
            }
            Kind::Number | Kind::Null | Kind::Bool => {}
        }
    }

    fn name(&mut self, of: NameOf, text: &str, whose: Whose) {
        let text = text.trim_matches(['.', '-', '_', '/', '"', '\'']);
        let text = text.strip_suffix(".git").unwrap_or(text);
        let is_name = (3..=100).contains(&text.len())
            && text.bytes().any(|byte| byte.is_ascii_alphabetic())
            && !text.starts_with("REDACTED");
        if !is_name || is_common(text) || is_stand_in(text) {
            return;
        }
        let key = format!("{} {}", of.word(), text.to_lowercase());
        if let Some((_, known)) = self.names.get_mut(&key) {
            *known = (*known).max(whose);
        } else if self.names.len() < MOST {
            let text = text.to_owned();
            self.names.insert(key, (Name { of, text }, whose));
        }
    }

    /// An owner and a repository, with both names.
    fn slug(&mut self, slug: &str, whose: Whose) {
        let mut parts = slug.split('/').filter(|part| !part.is_empty());
        let (Some(owner), name) = (parts.next(), parts.next()) else {
            return;
        };
        let owner = owner.trim_start_matches(['~', '@']);
        if is_public_owner(owner) || PAGES.contains(&owner) {
            if matches!(owner, "orgs" | "users")
                && let Some(owner) = name
            {
                self.name(NameOf::User, owner, whose);
            }
            if owner == "repos"
                && let Some(at) = slug.find("repos/")
            {
                self.slug(&slug[at + 6..], whose);
            }
            return;
        }
        self.name(NameOf::User, owner, whose);
        if let Some(name) = name {
            let name = name.strip_suffix(".git").unwrap_or(name);
            // A short name that was only mentioned is a word of everybody's: `pty`, `viper`.
            if whose == Whose::Own || name.len() > SHORT {
                self.name(NameOf::Repository, name, whose);
            }
            // One of them may have been replaced before.
            if !is_stand_in(owner) && !is_stand_in(name) {
                let both = format!("{owner}/{name}");
                self.name(NameOf::Repository, &both, Whose::Mentioned);
            }
        }
    }

    fn text(&mut self, text: &str) {
        self.digests.learn(text);
        self.tickets.learn(text);
        self.addresses(text);
        self.homes(text);
        if memchr::memchr(b'@', text.as_bytes()).is_some() {
            self.at_signs(text);
        }
        for line in text.lines().filter(|line| line.len() < 512) {
            self.line(line);
        }
    }

    /// `github.com/OWNER/REPOSITORY`, and what `gh` is asked for.
    fn addresses(&mut self, text: &str) {
        for forge in FORGES {
            for (at, _) in text.match_indices(forge) {
                let rest = &text[at + forge.len()..];
                let Some(slug) = rest.strip_prefix(['/', ':']).map(path_of) else {
                    continue;
                };
                let before = &text[..at];
                let line = before.rsplit('\n').next().unwrap_or(before);
                let own = [
                    "module ", "git@", "clone ", "push", "remote", "origin", "To ",
                ];
                let is_own = own.iter().any(|word| line.contains(word)) || slug.contains(".git");
                self.slug(slug, if is_own { Whose::Own } else { Whose::Mentioned });
            }
        }
        for (at, found) in text.match_indices("repos/") {
            // `gh api repos/…`, and the same with the address of the service before it.
            let before = text[..at].trim_end_matches(['/', '\'', '"']);
            if before.ends_with("gh api ")
                || before.ends_with("api")
                || before.ends_with("github.com")
            {
                self.slug(path_of(&text[at + found.len()..]), Whose::Own);
            }
        }
        if text.contains("gh ") {
            for flag in [
                "--repo ",
                "--repo=",
                " -R ",
                "gh repo view ",
                "gh repo clone ",
            ] {
                for (at, _) in text.match_indices(flag) {
                    let slug = path_of(&text[at + flag.len()..]);
                    if slug.matches('/').count() == 1 {
                        self.slug(slug, Whose::Own);
                    }
                }
            }
        }
    }

    fn homes(&mut self, text: &str) {
        for homes in ["/home/", "/Users/", "\\Users\\"] {
            for (at, _) in text.match_indices(homes) {
                let user = word_of(&text[at + homes.len()..]);
                let is_inside = text[..at].ends_with(|c: char| c.is_ascii_alphanumeric());
                // A drive may be before it, as in `C:\Users`.
                if !is_inside && !SYSTEM.contains(&user) && user != "Shared" {
                    self.name(NameOf::User, user, Whose::Own);
                }
            }
        }
    }

    /// `git@host:owner/name`, `ssh user@host`, `user@host:~$`.
    fn at_signs(&mut self, text: &str) {
        for (at, _) in text.match_indices('@') {
            let (before, rest) = (&text[..at], &text[at + 1..]);
            let from = before
                .rfind(|c: char| !(c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.')))
                .map_or(0, |at| at + 1);
            // A word that is cut by a letter which is none of ours begins there.
            let Some(user) = before.get(from..) else {
                continue;
            };
            let host = word_of(rest);
            let behind = &rest[host.len()..];
            if user.is_empty() || host.len() < 3 {
                continue;
            }
            let line = before[..from].rsplit('\n').next().unwrap_or_default();
            let is_remote = user == "git" && behind.starts_with([':', '/']);
            let is_prompt = line.len() <= 2 && is_prompt(behind, line.starts_with('['));
            let is_login = ["ssh ", "scp ", "rsync ", "sftp "]
                .iter()
                .any(|word| line.contains(word));
            if is_remote {
                self.slug(path_of(&behind[1..]), Whose::Own);
            }
            if (is_prompt || is_login) && !SYSTEM.contains(&user) {
                self.name(NameOf::User, user, Whose::Own);
            }
            if (is_remote || is_prompt || is_login) && !FORGES.contains(&host) {
                self.host(host);
            }
        }
    }

    /// A machine, and what it is called in its own network.
    fn host(&mut self, host: &str) {
        let is_address = host
            .bytes()
            .all(|byte| byte.is_ascii_digit() || byte == b'.');
        if is_address || ["localhost", "example.com"].contains(&host) {
            return;
        }
        self.name(NameOf::Host, host, Whose::Mentioned);
        let mut labels: Vec<&str> = host.split('.').collect();
        // `com`, `internal`: everybody's.
        if labels.len() > 1 {
            labels.pop();
        }
        for label in labels {
            self.name(NameOf::Host, label, Whose::Own);
        }
    }

    fn line(&mut self, line: &str) {
        let line = line.trim();
        let words = || line.split_whitespace();
        if let Some(module) = line.strip_prefix("module ").filter(|it| !it.contains(' ')) {
            let (host, path) = module.split_once('/').unwrap_or((module, ""));
            if FORGES.contains(&host) {
                self.slug(path, Whose::Own);
            } else if host.contains('.') {
                self.host(host);
                self.slug(path, Whose::Own);
            }
        } else if let Some(package) = line.strip_prefix("> ") {
            // What npm says when it runs a script: `> @scope/name@1.0.0 test`.
            if let Some((name, version)) = package.rsplit_once('@')
                && version.starts_with(|c: char| c.is_ascii_digit())
            {
                self.package(name, Whose::Own);
            }
        } else if let Some(name) = line.strip_prefix("\"name\": \"@") {
            self.package(
                &format!("@{}", name.trim_end_matches([',', '"'])),
                Whose::Own,
            );
        } else if line.ends_with(')')
            && let Some(at) = line.find(" (/")
            && ["Compiling", "Checking", "Documenting"]
                .contains(&words().next().unwrap_or_default())
        {
            // A package that cargo has by its path is one of the session's own.
            if let Some(name) = line[..at].split_whitespace().nth(1) {
                self.name(NameOf::Repository, name, Whose::Own);
            }
        } else if let Some(rest) = ["Linux ", "Darwin "]
            .iter()
            .find_map(|it| line.strip_prefix(it))
        {
            let mut words = rest.split_whitespace();
            let (host, version) = (words.next(), words.next());
            let is_version = version
                .is_some_and(|it| it.starts_with(|c: char| c.is_ascii_digit()) && it.contains('.'));
            if let Some(host) = host.filter(|_| is_version) {
                self.host(host);
            }
        } else if is_listed(line) {
            for name in words()
                .skip(2)
                .take(2)
                .filter(|name| !SYSTEM.contains(name))
            {
                self.name(NameOf::User, name, Whose::Own);
            }
        } else {
            self.person(line);
        }
    }

    fn package(&mut self, package: &str, whose: Whose) {
        if let Some((scope, name)) = package.strip_prefix('@').and_then(|it| it.split_once('/')) {
            if !is_public_owner(scope) {
                self.name(NameOf::User, scope, whose);
                self.name(NameOf::Repository, name, whose);
            }
        } else {
            self.name(NameOf::Repository, package, whose);
        }
    }

    /// Who git says somebody is.
    fn person(&mut self, line: &str) {
        let line = line
            .trim_start_matches("git config ")
            .trim_start_matches("--global ");
        let heads = [
            "user.name=",
            "user.name ",
            "Author: ",
            "Committer: ",
            "Commit: ",
            "GIT_AUTHOR_NAME=",
        ];
        let Some(name) = heads.iter().find_map(|head| line.strip_prefix(head)) else {
            return;
        };
        let name = name.split('<').next().unwrap_or_default();
        let name = name.trim().trim_matches(['"', '\'']);
        let is_person = name.len() <= 60
            && name.split(' ').count() <= 4
            && name
                .chars()
                .all(|c| c.is_alphabetic() || matches!(c, ' ' | '.' | '-' | '\''));
        if is_person {
            self.name(NameOf::User, name, Whose::Own);
        }
    }
}

/// The path that a text begins with.
fn path_of(text: &str) -> &str {
    let is_part =
        |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.' | '/' | '~' | '@');
    let end = text.find(|c: char| !is_part(c)).unwrap_or(text.len());
    text[..end].trim_end_matches('.')
}

/// The word that a text begins with.
fn word_of(text: &str) -> &str {
    let is_part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
    let end = text.find(|c: char| !is_part(c)).unwrap_or(text.len());
    text[..end].trim_end_matches('.')
}

/// Whether what is behind `user@host` is the rest of a shell's prompt.
fn is_prompt(behind: &str, is_bracketed: bool) -> bool {
    let line = behind.lines().next().unwrap_or_default();
    let ends = |part: &str| {
        part.contains("$ ")
            || part.contains("# ")
            || part.contains("% ")
            || part.ends_with(['$', '#', '%'])
    };
    match line.as_bytes().first() {
        Some(b':') => line[1..].starts_with(['~', '/']) && ends(line),
        Some(b' ') => {
            (is_bracketed && line.contains(']') || line.contains(" % ") || line.ends_with(" %"))
                && ends(line)
        }
        _ => false,
    }
}

/// Whether a line is one of a list of files with their owners.
fn is_listed(line: &str) -> bool {
    let bytes = line.as_bytes();
    let is_mode = |byte: &u8| matches!(byte, b'r' | b'w' | b'x' | b's' | b'S' | b't' | b'T' | b'-');
    bytes.len() > 30
        && matches!(bytes[0], b'-' | b'd' | b'l')
        && bytes[1..10].iter().all(is_mode)
        && line
            .split_whitespace()
            .nth(1)
            .is_some_and(|links| links.bytes().all(|byte| byte.is_ascii_digit()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn learned(text: &str) -> Vec<String> {
        let mut learned = Learned::default();
        learned.text(text);
        let mut names: Vec<String> = learned
            .names()
            .filter(|(name, _)| !name.text.contains('/'))
            .map(|(name, _)| format!("{} {}", name.of.word(), name.text))
            .collect();
        names.sort();
        names
    }

    #[test]
    fn names_are_learned_from_what_programs_say() {
        for (text, expected) in [
            (
                "origin\tgit@github.com:quillfeather/orrery.git (fetch)",
                &["repo orrery", "user quillfeather"][..],
            ),
            (
                "see https://github.com/quillfeather/orrery/pull/7.",
                &["repo orrery", "user quillfeather"],
            ),
            (
                "gh api repos/quillfeather/orrery/pulls",
                &["repo orrery", "user quillfeather"],
            ),
            (
                "gh pr list --repo quillfeather/orrery",
                &["repo orrery", "user quillfeather"],
            ),
            (
                "module github.com/brindlewick/kestrelhub/v2",
                &["repo kestrelhub", "user brindlewick"],
            ),
            (
                "> @wrenlock/orrery@1.0.0 test",
                &["repo orrery", "user wrenlock"],
            ),
            (
                "   Compiling kestrelhub v0.1.0 (/code/kestrelhub)",
                &["repo kestrelhub"],
            ),
            (
                "marlowe@thornfield:~/src$ ls",
                &["host thornfield", "user marlowe"],
            ),
            (
                "[marlowe@thornfield src]$ ls",
                &["host thornfield", "user marlowe"],
            ),
            (
                "ssh marlowe@build7.orrery.internal uptime",
                &[
                    "host build7",
                    "host build7.orrery.internal",
                    "host orrery",
                    "user marlowe",
                ],
            ),
            (
                "Linux thornfield 6.1.0-18-amd64 #1 SMP",
                &["host thornfield"],
            ),
            (
                "-rw-r--r-- 1 marlowe staff 4711 Jun  4 09:00 notes.md",
                &["user marlowe"],
            ),
            (
                "cat /home/marlowe/x C:\\Users\\quill\\y",
                &["user marlowe", "user quill"],
            ),
            ("Author: Ada Marlowe <a@example.com>", &["user Ada Marlowe"]),
        ] {
            assert_eq!(learned(text), expected, "{text}");
        }
    }

    #[test]
    fn what_everybody_uses_is_not_a_name() {
        for text in [
            "go get github.com/stretchr/testify github.com/golang/go",
            "https://github.com/features/actions and https://github.com/topics/rust",
            "mail me@example.com, a@b, @decorator",
            "/home/runner/work /Users/Shared/x /home/ubuntu",
            "the module that is here",
            "root@localhost:/# ls",
        ] {
            assert!(learned(text).is_empty(), "{text}: {:?}", learned(text));
        }
    }
}
