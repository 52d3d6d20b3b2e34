//! What is not to be found, though a rule finds it.

use std::ops::Range;
use std::sync::{LazyLock, OnceLock};

use memchr::memmem::Finder;
use regex_automata::meta::Regex;

use crate::rule::{Allow, Expression, RuleSet, Target, build};

/// How much of a line is looked at around a finding, to either side.
const LINE: usize = 512;

/// Comments that say so on the line itself.
const COMMENTS: [&[u8]; 4] = [
    b"gitleaks:allow",
    b"quipu:allow",
    b"pragma: allowlist secret",
    b"nosecret",
];

/// Allowlists, ready to be asked.
#[derive(Debug, Default)]
pub(super) struct Allows {
    /// One list for each rule, and those for all of them last.
    lists: Vec<List>,
    /// Which lists are for which rule.
    of_rule: Vec<Vec<usize>>,
}

#[derive(Debug)]
struct List {
    regexes: Lazy,
    files: Lazy,
    target: Target,
    stopwords: Vec<String>,
    values: Vec<String>,
    all: bool,
}

/// What is asked about.
pub(super) struct Asked<'a> {
    pub(super) rule: usize,
    pub(super) text: &'a str,
    pub(super) file: Option<&'a str>,
    pub(super) matched: Range<usize>,
    pub(super) secret: Range<usize>,
}

impl Allows {
    /// Gets allowlists ready.
    pub(super) fn new(rules: &RuleSet) -> Result<Self, (Option<usize>, String)> {
        let mut this = Self {
            lists: Vec::new(),
            of_rule: vec![Vec::new(); rules.rules.len()],
        };
        for (index, rule) in rules.rules.iter().enumerate() {
            for allow in &rule.allow {
                let list = List::new(allow);
                this.lists.push(list.map_err(|why| (Some(index), why))?);
                this.of_rule[index].push(this.lists.len() - 1);
            }
        }
        for allow in &rules.allow {
            let list = List::new(allow);
            this.lists.push(list.map_err(|why| (None, why))?);
            for (index, rule) in rules.rules.iter().enumerate() {
                if allow.rules.is_empty() || allow.rules.contains(&rule.id) {
                    this.of_rule[index].push(this.lists.len() - 1);
                }
            }
        }
        Ok(this)
    }

    /// Whether some list is about certain files.
    pub(super) fn ask_for_files(&self) -> bool {
        self.lists.iter().any(|list| !list.files.is_empty())
    }

    /// Whether something is not to be found.
    pub(super) fn allow(&self, asked: &Asked<'_>) -> bool {
        commented(asked)
            || self.of_rule[asked.rule]
                .iter()
                .any(|list| self.lists[*list].allows(asked))
    }
}

/// Expressions that are made ready when they are asked for the first time: most never are.
#[derive(Debug)]
struct Lazy {
    sources: Vec<String>,
    ready: OnceLock<Vec<Regex>>,
}

impl Lazy {
    /// Those that tests have read are not read before they are asked for.
    fn new(sources: &[String], tested: bool) -> Result<Self, String> {
        if !tested {
            for source in sources {
                Expression::parse(source)?;
            }
        }
        Ok(Self {
            sources: sources.to_vec(),
            ready: OnceLock::new(),
        })
    }

    fn is_empty(&self) -> bool {
        self.sources.is_empty()
    }

    fn any(&self, text: &str) -> bool {
        let ready = || {
            self.sources
                .iter()
                .filter_map(|one| build(&Expression::parse(one).ok()?.hir).ok())
                .collect()
        };
        let ready = self.ready.get_or_init(ready);
        ready.iter().any(|regex| regex.is_match(text))
    }
}

impl List {
    fn new(allow: &Allow) -> Result<Self, String> {
        Ok(Self {
            regexes: Lazy::new(&allow.regexes, allow.comes_along)?,
            files: Lazy::new(&allow.files, allow.comes_along)?,
            target: allow.target,
            stopwords: allow.stopwords.clone(),
            values: allow.values.clone(),
            all: allow.all,
        })
    }

    fn allows(&self, asked: &Asked<'_>) -> bool {
        let secret = &asked.text[asked.secret.clone()];
        let target = match self.target {
            Target::Secret => secret,
            Target::Match => &asked.text[asked.matched.clone()],
            Target::Line => &asked.text[line(asked.text, &asked.matched)],
        };
        let mut answers = Vec::with_capacity(4);
        if !self.regexes.is_empty() {
            answers.push(self.regexes.any(target));
        }
        if !self.stopwords.is_empty() {
            let lower = secret.to_ascii_lowercase();
            answers.push(
                self.stopwords
                    .iter()
                    .any(|word| lower.contains(word.as_str())),
            );
        }
        if !self.files.is_empty() {
            answers.push(asked.file.is_some_and(|file| self.files.any(file)));
        }
        if !self.values.is_empty() {
            answers.push(self.values.contains(&hash(secret)));
        }
        if self.all {
            !answers.is_empty() && answers.iter().all(|answer| *answer)
        } else {
            answers.contains(&true)
        }
    }
}

/// SHA-256 in hex.
pub(super) fn hash(value: &str) -> String {
    use sha2::{Digest as _, Sha256};
    quipu_model::hex::encode(&Sha256::digest(value.as_bytes()))
}

/// The line that something stands on, as far as it is looked at.
pub(super) fn line(text: &str, around: &Range<usize>) -> Range<usize> {
    let bytes = text.as_bytes();
    let mut low = around.start.saturating_sub(LINE);
    let mut high = bytes.len().min(around.end.saturating_add(LINE));
    while !text.is_char_boundary(low) {
        low += 1;
    }
    while !text.is_char_boundary(high) {
        high -= 1;
    }
    if let Some(at) = memchr::memrchr(b'\n', &bytes[low..around.start]) {
        low += at + 1;
    }
    if let Some(at) = memchr::memchr(b'\n', &bytes[around.end..high]) {
        high = around.end + at;
    }
    low..high
}

fn commented(asked: &Asked<'_>) -> bool {
    // All of them have one of these, and most lines none.
    static ALLOW: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new(b"allow"));
    static NO_SECRET: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new(COMMENTS[3]));
    let line = &asked.text.as_bytes()[line(asked.text, &asked.matched)];
    ALLOW.find(line).is_some()
        && COMMENTS[..3]
            .iter()
            .any(|comment| memchr::memmem::find(line, comment).is_some())
        || NO_SECRET.find(line).is_some()
}
