//! What somebody learns from a shared copy who looks for it. It holds the copy against the session that it was made of,
//! and names each fact that was to be removed and can be had again.

use std::collections::{BTreeMap, BTreeSet};

use quipu_model::{Header, Timestamp};
use quipu_redact::Profile;
use quipu_redact::profile::{Environment, Times};
use serde_json::Value;

use super::decode::{Told, times};

/// Words that are everybody's: that one of them is part of a name tells nothing.
fn is_everybodys(word: &str) -> bool {
    quipu_redact::session::is_common(word)
}

/// A fact that can be had again: its class, and where.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Leak {
    pub(super) class: &'static str,
    pub(super) fact: String,
    pub(super) at: String,
}

/// Texts of a document, with the way to each.
pub(super) type Texts = Vec<(String, String)>;

/// What is true of a session, and was to be removed.
#[derive(Debug, Default)]
pub(super) struct Facts {
    /// When it began and ended, in milliseconds.
    when: Option<(i64, i64)>,
    /// Every time of an event.
    instants: BTreeSet<String>,
    /// What can be looked up: commits, trees, blobs, sums of files.
    digests: BTreeSet<String>,
    tickets: BTreeSet<String>,
    /// What persons, machines, owners, repositories and directories are called.
    names: BTreeSet<String>,
    /// Counts of tokens, costs and durations that are long enough to be known again.
    numbers: BTreeSet<String>,
    /// Ids of the session, its events and calls.
    ids: BTreeSet<String>,
    transcript: String,
}

/// Every text in a document, but for hashes that nobody without the key can make.
pub(super) fn texts(document: &Value) -> Texts {
    fn walk(path: &str, value: &Value, to: &mut Texts) {
        match value {
            Value::String(text) => to.push((path.to_owned(), text.clone())),
            Value::Number(number) => to.push((path.to_owned(), number.to_string())),
            Value::Array(items) => {
                for (index, item) in items.iter().enumerate() {
                    walk(&format!("{path}[{index}]"), item, to);
                }
            }
            Value::Object(fields) => {
                for (key, value) in fields {
                    let own = ["commitment", "rulesDigest"].contains(&key.as_str());
                    if !own {
                        to.push((format!("{path}{{{key}}}"), key.clone()));
                        walk(&format!("{path}.{key}"), value, to);
                    }
                }
            }
            _ => {}
        }
    }
    let mut all = Vec::new();
    walk("", document, &mut all);
    all
}

impl Facts {
    /// Those of a session, by its header and by its own document.
    pub(super) fn of(header: &Header, original: &Value) -> Self {
        let mut facts = Self {
            transcript: quipu_formats::normalized::transcript_id(&header.run_id),
            ..Self::default()
        };
        let texts = texts(original);
        let mut instants: Vec<i64> = Vec::new();
        for (path, text) in &texts {
            if is_time(path)
                && let Ok(at) = text.parse::<Timestamp>()
            {
                if at.as_second() > 0 && !path.ends_with(".capturedAt") {
                    instants.push(at.as_millisecond());
                    facts.instants.insert(text.clone());
                }
                continue;
            }
            let is_inside = [".extra", ".raw", ".input", ".output", ".content"]
                .iter()
                .any(|part| path.contains(part));
            // A word may be an id as well, and tells nothing.
            let has_digit = text.bytes().any(|byte| byte.is_ascii_digit());
            if path_is_id(path) && !is_inside && has_digit && text.len() >= 12 {
                facts.ids.insert(text.clone());
            }
            facts.take_digests(text);
            facts.take_tickets(text);
            facts.take_names(text);
            if is_number(path) && is_exact(text) {
                facts.numbers.insert(text.clone());
            }
        }
        let bounds = instants.iter().min().zip(instants.iter().max());
        facts.when = bounds.map(|(first, last)| (*first, *last));
        facts.of_header(header);
        facts
            .names
            .retain(|name| !is_everybodys(name) && name.len() >= 3);
        facts
    }

    fn of_header(&mut self, header: &Header) {
        let at = &header.environment;
        self.digests.extend(at.commit.clone());
        for path in at
            .cwd
            .iter()
            .chain(header.origin.iter().filter_map(|it| it.path.as_ref()))
        {
            self.take_home(path);
        }
        if let Some(cwd) = &at.cwd {
            let last = cwd.trim_end_matches(['/', '\\']).rsplit(['/', '\\']).next();
            self.names.extend(last.map(str::to_owned));
        }
        if let Some(address) = &at.repository {
            self.take_slug(address.trim_end_matches(".git"));
        }
    }

    fn take_home(&mut self, text: &str) {
        for homes in ["/home/", "/Users/", "\\Users\\"] {
            for (at, _) in text.match_indices(homes) {
                let user: String = text[at + homes.len()..]
                    .chars()
                    .take_while(|c| is_name(*c))
                    .collect();
                self.names.insert(user);
            }
        }
    }

    /// The last two names of an address.
    fn take_slug(&mut self, address: &str) {
        let mut parts = address.rsplit(['/', ':']);
        for part in [parts.next(), parts.next()].into_iter().flatten() {
            if !part.contains('.') {
                self.names.insert(part.to_owned());
            }
        }
    }

    fn take_names(&mut self, text: &str) {
        self.take_home(text);
        let word = |from: &str| -> String {
            from.chars()
                .take_while(|c| is_name(*c) || *c == '/')
                .collect()
        };
        // What its own remotes are, what was pushed, and what programs say of the repository at hand.
        for line in text.lines() {
            let line = line.trim();
            let is_remote =
                (line.ends_with("(fetch)") || line.ends_with("(push)")) && line.contains('\t');
            if is_remote && let Some(address) = line.split_whitespace().nth(1) {
                self.take_slug(address.trim_end_matches(".git"));
            }
            if let Some(module) = line.strip_prefix("module github.com/") {
                let slug: Vec<&str> = module.split('/').take(2).collect();
                self.take_slug(&slug.join("/"));
            }
            if let Some(package) = line.strip_prefix("> @") {
                let scope = package.split('/').next().unwrap_or_default();
                self.names.insert(scope.to_owned());
            }
            prompt(line, &mut self.names);
        }
        for (at, found) in text.match_indices("gh api repos/") {
            let slug = word(&text[at + found.len()..]);
            let slug: Vec<&str> = slug.split('/').take(2).collect();
            if slug.len() == 2 {
                self.take_slug(&slug.join("/"));
            }
        }
    }

    /// The number of an issue or a pull request, of which the address says whose it is.
    fn take_tickets(&mut self, text: &str) {
        for kind in ["/issues/", "/pull/"] {
            for (at, _) in text.match_indices(kind) {
                let number = &text[at + kind.len()..];
                let end = number.find(|c: char| !c.is_ascii_digit());
                let number = &number[..end.unwrap_or(number.len())];
                if number.len() >= 4 {
                    self.tickets.insert(number.to_owned());
                }
            }
        }
    }

    fn take_digests(&mut self, text: &str) {
        for word in hex_words(text) {
            let is_sum = [40, 64].contains(&word.len());
            // Sums of something have nearly all digits; made-up ones have few.
            let digits: BTreeSet<u8> = word.bytes().collect();
            let is_long = is_sum && digits.len() >= 8;
            if is_long {
                self.digests.insert(word.to_owned());
            }
        }
        for (before, word) in text.split_whitespace().zip(text.split_whitespace().skip(1)) {
            let word = word.trim_end_matches([']', ',', '.', ')']);
            let is_short = word.len() >= 7
                && word
                    .bytes()
                    .all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
            let is_mixed = word.bytes().any(|byte| byte.is_ascii_digit())
                && word.bytes().any(|byte| byte.is_ascii_alphabetic());
            if is_short && is_mixed && (before == "commit" || before.starts_with('[')) {
                self.digests.insert(word.to_owned());
            }
        }
    }

    /// What of it can be had again from a copy that a profile made.
    pub(super) fn in_copy(&self, copy: &Value, profile: &Profile) -> BTreeSet<Leak> {
        let mut leaks = BTreeSet::new();
        let texts = texts(copy);
        for (path, text) in &texts {
            let mut add = |class: &'static str, fact: &str| {
                leaks.insert(Leak {
                    class,
                    fact: fact.to_owned(),
                    at: path.clone(),
                });
            };
            if profile.times != Times::Keep {
                self.times_in(path, text, &mut add);
                if is_number(path) && self.numbers.contains(text) {
                    let is_sum = path.starts_with(".metrics.");
                    add(if is_sum { "exact-sum" } else { "exact-number" }, text);
                }
            }
            if profile.environment != Environment::Keep {
                for id in words_of(text).filter(|word| self.ids.contains(*word)) {
                    add("id", id);
                }
                if !is_number(path) {
                    for number in words_of(text).filter(|word| self.tickets.contains(*word)) {
                        add("ticket", number);
                    }
                }
                for word in hex_words(text) {
                    let is_prefix = |digest: &String| digest.starts_with(word) || word == digest;
                    if word.len() >= 7 && self.digests.iter().any(is_prefix) {
                        add("digest", word);
                    }
                }
                if *text == self.transcript {
                    add(
                        "digest",
                        "transcriptId is an unkeyed hash of the session's id",
                    );
                }
                // The name of the agent may stay, also where a person has the same name.
                if !path.starts_with(".source.a") {
                    self.names_in(text, &mut add);
                }
            }
        }
        leaks
    }

    fn times_in(&self, path: &str, text: &str, add: &mut dyn FnMut(&'static str, &str)) {
        if is_time(path) && text.parse::<Timestamp>().is_ok() {
            if self.instants.contains(text) {
                add("time", text);
            }
            let fraction = text.split_once('.').map(|(_, behind)| behind);
            if fraction.is_some_and(|it| {
                self.instants
                    .iter()
                    .any(|was| was.ends_with(&format!(".{it}")))
            }) {
                add("sub-second", text);
            }
            return;
        }
        let Some((first, last)) = self.when else {
            return;
        };
        let mut told = Vec::new();
        times(text, &mut told);
        for Told { how, at, within } in told {
            if at >= first - within && at <= last + within {
                let is_model = path.ends_with("].model")
                    || path.contains(".models[")
                    || text.contains("claude-");
                let class = if is_model && how == "date" {
                    "model-date"
                } else {
                    "time-in-text"
                };
                let class = if path_is_id(path) {
                    "time-in-id"
                } else {
                    class
                };
                add(class, &format!("{how}: {}", excerpt(text)));
            }
        }
    }

    fn names_in(&self, text: &str, add: &mut dyn FnMut(&'static str, &str)) {
        let lower = text.to_lowercase();
        for name in &self.names {
            if has(&lower, &name.to_lowercase()) {
                add("name", name);
            }
            for part in parts(name) {
                if has(&lower, &part) {
                    add("name-part", &part);
                }
            }
        }
        for word in lower
            .split(|c: char| !c.is_alphanumeric())
            .filter(|word| word.len() >= 7)
        {
            for name in &self.names {
                let name = name.to_lowercase();
                if name.len() >= 7 && word != name && !is_everybodys(word) && is_near(word, &name) {
                    add("name-near", word);
                }
            }
        }
    }
}

/// Names that are made of another: its parts that are not everybody's words, and all of them together.
fn parts(name: &str) -> Vec<String> {
    let lower = name.to_lowercase();
    let of =
        |text: &str| -> Vec<String> { text.split(['-', '_', '.']).map(str::to_owned).collect() };
    let split = of(&lower);
    if split.len() < 2 {
        return Vec::new();
    }
    let mut parts: Vec<String> = split
        .iter()
        .filter(|part| part.len() >= 5 && !is_everybodys(part))
        .cloned()
        .collect();
    let initials: String = split
        .iter()
        .filter_map(|part| part.chars().next())
        .collect();
    if split.len() >= 3 && !is_everybodys(&initials) {
        parts.push(initials);
    }
    parts.push(split.concat());
    parts.push(split.join("_"));
    parts
}

/// Whether a text has a name, by itself or as part of a longer one.
fn has(text: &str, name: &str) -> bool {
    let joins = |c: char| c.is_alphanumeric() || name.len() < 4 && matches!(c, '_' | '-');
    text.match_indices(name).any(|(at, found)| {
        let before = text[..at].chars().next_back();
        let behind = text[at + found.len()..].chars().next();
        // Seven letters in a row are the same by intent.
        name.len() >= 7 || !before.is_some_and(joins) && !behind.is_some_and(joins)
    })
}

/// Whether two words differ by one letter that was added, left out or changed, or by two that changed places.
fn is_near(one: &str, other: &str) -> bool {
    let (one, other): (Vec<char>, Vec<char>) = (one.chars().collect(), other.chars().collect());
    let same = one.iter().zip(&other).take_while(|(a, b)| a == b).count();
    let (a, b) = (&one[same..], &other[same..]);
    match (a, b) {
        ([_, a @ ..], [_, b @ ..]) if a == b => true,
        ([a, b, rest @ ..], [c, d, other @ ..]) if (a, b) == (d, c) && rest == other => true,
        _ => a.len() == b.len() + 1 && a[1..] == *b || b.len() == a.len() + 1 && b[1..] == *a,
    }
}

/// `user@host:~/code$ ls`
fn prompt(line: &str, names: &mut BTreeSet<String>) {
    let Some((user, rest)) = line.split_once('@') else {
        return;
    };
    let Some((host, rest)) = rest.split_once(':') else {
        return;
    };
    let is_prompt =
        (rest.starts_with('~') || rest.starts_with('/')) && rest.contains(['$', '#', '%']);
    let plain = |word: &str| !word.is_empty() && word.chars().all(is_name);
    if is_prompt && plain(user) && plain(host) {
        names.insert(user.to_owned());
        names.insert(host.to_owned());
    }
}

fn is_name(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.')
}

/// Words that an id may be, by themselves and with what joins their parts.
fn words_of(text: &str) -> impl Iterator<Item = &str> {
    let joined = text.split(|c: char| !(c.is_ascii_alphanumeric() || matches!(c, '_' | '-')));
    let dotted = text.split(|c: char| !(c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.')));
    joined.chain(dotted).filter(|word| word.len() >= 12)
}

fn hex_words(text: &str) -> impl Iterator<Item = &str> {
    let words = text.split(|c: char| !c.is_ascii_alphanumeric());
    words.filter(|word| {
        word.len() >= 7
            && word
                .bytes()
                .all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
    })
}

fn is_time(path: &str) -> bool {
    [".timestamp", ".startedAt", ".endedAt", ".capturedAt"]
        .iter()
        .any(|name| path.ends_with(name))
}

/// Whether a field is a number that a program counted.
fn is_number(path: &str) -> bool {
    let counted = [
        "usage.",
        "tokens.",
        "costUsd",
        "durationMs",
        "attachments[",
        "source.offset",
    ];
    let is_counted = counted.iter().any(|name| path.contains(name));
    let is_text = ["}", "sha256", "mime"]
        .iter()
        .any(|end| path.ends_with(end));
    // How long all of it took follows from its times.
    path.starts_with(".events[") && is_counted && !is_text || path.starts_with(".metrics.tokens.")
}

/// Whether a number has more than two digits that tell something.
fn is_exact(number: &str) -> bool {
    let digits: String = number.chars().filter(char::is_ascii_digit).collect();
    digits.trim_matches('0').len() >= 3
}

fn path_is_id(path: &str) -> bool {
    let ids = [
        ".id",
        "Id",
        ".modelCall",
        ".parentCall",
        ".forkedFrom",
        ".child",
    ];
    ids.iter().any(|name| path.ends_with(name)) || path.contains(".children[")
}

fn excerpt(text: &str) -> String {
    text.chars().take(60).collect()
}

/// What two copies have in common that nobody but one person's program could have put there.
pub(super) fn links(one: &Value, other: &Value) -> BTreeSet<Leak> {
    let pseudonyms = |copy: &Value| -> BTreeMap<String, String> {
        let mut found = BTreeMap::new();
        for (path, text) in texts(copy) {
            for word in text.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_')) {
                let is_made = word.split_once('_').is_some_and(|(kind, hash)| {
                    kind.bytes().all(|byte| byte.is_ascii_lowercase())
                        && hash.len() == 16
                        && hash.bytes().all(|byte| byte.is_ascii_hexdigit())
                });
                let is_id = path_is_id(&path) && text.len() > 12 && word.len() > 12;
                if is_made || is_id {
                    found.insert(word.to_owned(), path.clone());
                }
            }
        }
        found
    };
    let (one, other) = (pseudonyms(one), pseudonyms(other));
    one.into_iter()
        .filter(|(word, _)| other.contains_key(word))
        .map(|(fact, at)| Leak {
            class: "link",
            fact,
            at,
        })
        .collect()
}
