//! Reads files of rules, those of gitleaks among them.

mod known;

use std::path::Path;

use serde::Deserialize;
use toml::Spanned;

use super::{
    Allow, Check, Expression, Kind, Pattern, Rule, RuleError, RuleSet, Severity, Target, build,
};

/// The largest file of rules that is read.
const FILE_BYTES: u64 = 8 << 20;
/// The most rules of one file.
const RULES: usize = 10_000;
/// How deep files may stand on others.
const DEPTH: usize = 4;

/// Something in a file of rules that is left out, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Remark {
    /// The rule it is about, where it is about one.
    pub rule: Option<String>,
    /// What is left out.
    pub what: String,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct File {
    group: Option<String>,
    extend: Option<Extend>,
    rules: Vec<Spanned<RawRule>>,
    allowlist: Option<RawAllow>,
    allowlists: Vec<RawAllow>,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct Extend {
    use_default: bool,
    path: Option<String>,
    disabled_rules: Vec<String>,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct RawRule {
    id: String,
    description: String,
    group: Option<String>,
    kind: Option<String>,
    label: Option<String>,
    severity: Option<String>,
    keywords: Vec<String>,
    regex: Option<String>,
    names: Vec<String>,
    value: Option<String>,
    secret_group: Option<usize>,
    entropy: Option<f64>,
    check: Option<String>,
    path: Option<String>,
    allowlist: Option<RawAllow>,
    allowlists: Vec<RawAllow>,
    examples: Vec<String>,
    counterexamples: Vec<String>,
    required: Option<toml::Value>,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct RawAllow {
    target_rules: Vec<String>,
    condition: Option<String>,
    commits: Vec<String>,
    paths: Vec<String>,
    regex_target: Option<String>,
    regexes: Vec<String>,
    stopwords: Vec<String>,
    fields: Vec<String>,
    values: Vec<String>,
}

impl RuleSet {
    /// Reads the text of a file of rules. `file` is what errors name, and what the paths in it are relative to.
    ///
    /// # Errors
    ///
    /// What is wrong with it, and where. Nothing of it is used then.
    pub fn parse(text: &str, file: &Path) -> Result<Self, RuleError> {
        Ok(read(text, file, Trust::Unknown, 0)?.0)
    }

    /// The same, with what was left out of it.
    ///
    /// # Errors
    ///
    /// As [`Self::parse`].
    pub fn parse_with_remarks(text: &str, file: &Path) -> Result<(Self, Vec<Remark>), RuleError> {
        read(text, file, Trust::Unknown, 0)
    }

    /// Reads a file of rules.
    ///
    /// # Errors
    ///
    /// The file cannot be read, or as [`Self::parse`].
    pub fn load(path: &Path) -> Result<Self, RuleError> {
        Self::parse(&text_of(path)?, path)
    }

    /// The rules that come with the program.
    pub fn builtin() -> Self {
        let mut all = Self::default();
        let mut written = crate::ready::rules();
        for (name, text) in super::builtin::FILES {
            let rules = written.of(text).unwrap_or_else(|| Self::tested(name, text));
            all.rules.extend(rules.rules);
            all.allow.extend(rules.allow);
        }
        all
    }

    /// Reads a file that comes with the program. A test reads every one of them, and its expressions.
    pub(crate) fn tested(name: &str, text: &str) -> Self {
        let read = read(text, Path::new(name), Trust::Tested, 0);
        read.map(|(rules, _)| rules).unwrap_or_default()
    }

    /// Adds rules: one with the same id is replaced, in its place.
    pub fn extend(&mut self, other: Self) {
        for rule in other.rules {
            match self.rules.iter_mut().find(|known| known.id == rule.id) {
                Some(known) => *known = rule,
                None => self.rules.push(rule),
            }
        }
        self.allow.extend(other.allow);
    }
}

fn text_of(path: &Path) -> Result<String, RuleError> {
    use std::io::Read as _;
    let io = |source| RuleError::Io {
        file: path.to_owned(),
        source,
    };
    let mut text = String::new();
    let file = std::fs::File::open(path).map_err(io)?;
    file.take(FILE_BYTES + 1)
        .read_to_string(&mut text)
        .map_err(io)?;
    Ok(text)
}

/// Whether the expressions of a file are known to work.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Trust {
    /// They are tried.
    Unknown,
    /// Tests have tried them: there is no need each time the program starts.
    Tested,
}

impl Trust {
    fn expression(self, source: &str) -> Result<(), String> {
        match self {
            Self::Unknown => build(&Expression::parse(source)?.hir).map(|_| ()),
            Self::Tested => Ok(()),
        }
    }
}

fn read(
    text: &str,
    file: &Path,
    trust: Trust,
    depth: usize,
) -> Result<(RuleSet, Vec<Remark>), RuleError> {
    let syntax = |line: usize, why: &str| RuleError::Syntax {
        file: file.to_owned(),
        line,
        why: why.to_owned(),
    };
    if text.len() as u64 > FILE_BYTES {
        return Err(syntax(1, "the file is too large for rules"));
    }
    let raw: File = toml::from_str(text).map_err(|error| {
        let line = error.span().map_or(1, |span| line_of(text, span.start));
        syntax(line, error.message())
    })?;
    if raw.rules.len() > RULES {
        return Err(syntax(1, "too many rules"));
    }
    if trust == Trust::Unknown {
        misspelled(text, file, &raw)?;
    }
    let mut reader = Reader {
        text,
        file,
        trust,
        group: raw.group.clone().unwrap_or_else(|| stem(file)),
        remarks: Vec::new(),
    };
    let mut base = RuleSet::default();
    if let Some(extend) = &raw.extend {
        base = reader.base(extend, depth)?;
    }
    let mut own = RuleSet::default();
    for rule in raw.rules {
        let line = line_of(text, rule.span().start);
        let rule = reader.rule(rule.into_inner(), line, own.rules.len())?;
        if own.rules.iter().any(|known| known.id == rule.id) {
            return Err(reader.error(&rule.id, line, "there are two rules of this id"));
        }
        own.rules.push(rule);
    }
    for allow in raw.allowlist.into_iter().chain(raw.allowlists) {
        let allow = reader.allow(allow, None);
        let allow = allow.map_err(|why| reader.error("of [[allowlists]]", 1, &why))?;
        own.allow.push(allow);
    }
    base.extend(own);
    Ok((base, reader.remarks))
}

/// Looks for keys that there are not.
fn misspelled(text: &str, file: &Path, raw: &File) -> Result<(), RuleError> {
    let table = text.parse::<toml::Table>().unwrap_or_default();
    let Some(unknown) = known::unknown(&table) else {
        return Ok(());
    };
    let rule = unknown
        .rule
        .and_then(|rule| Some((rule, raw.rules.get(rule)?)));
    let Some((place, rule)) = rule else {
        let stands = |line: &str| line.trim_start().starts_with(&unknown.key);
        return Err(RuleError::Syntax {
            file: file.to_owned(),
            line: 1 + text.lines().position(stands).unwrap_or(0),
            why: unknown.why,
        });
    };
    let line = line_of(text, rule.span().start);
    Err(RuleError::Rule {
        file: file.to_owned(),
        rule: named(&rule.get_ref().id, place),
        why: format!("{} (line {line})", unknown.why),
    })
}

/// What errors call a rule: its id, or its place in the file.
fn named(id: &str, place: usize) -> String {
    if id.is_empty() {
        format!("number {}", place + 1)
    } else {
        id.to_owned()
    }
}

fn stem(file: &Path) -> String {
    let stem = file
        .file_stem()
        .map(|stem| stem.to_string_lossy().into_owned());
    stem.unwrap_or_else(|| "rules".to_owned())
}

fn line_of(text: &str, at: usize) -> usize {
    let before = &text.as_bytes()[..at.min(text.len())];
    1 + memchr::memchr_iter(b'\n', before).count()
}

struct Reader<'a> {
    text: &'a str,
    file: &'a Path,
    trust: Trust,
    group: String,
    remarks: Vec<Remark>,
}

impl Reader<'_> {
    fn error(&self, rule: &str, line: usize, why: &str) -> RuleError {
        RuleError::Rule {
            file: self.file.to_owned(),
            rule: rule.to_owned(),
            why: if line > 1 {
                format!("{why} (line {line})")
            } else {
                why.to_owned()
            },
        }
    }

    /// What the file stands on.
    fn base(&mut self, extend: &Extend, depth: usize) -> Result<RuleSet, RuleError> {
        let line = 1 + self
            .text
            .lines()
            .position(|line| line.starts_with("[extend]"))
            .unwrap_or(0);
        let syntax = |why: &str| RuleError::Syntax {
            file: self.file.to_owned(),
            line,
            why: why.to_owned(),
        };
        let mut base = RuleSet::default();
        if extend.use_default {
            base = RuleSet::builtin();
        }
        if let Some(path) = &extend.path {
            if depth >= DEPTH {
                return Err(syntax("files stand on each other too deep"));
            }
            let path = self.file.parent().unwrap_or(Path::new("")).join(path);
            let (below, remarks) = read(&text_of(&path)?, &path, Trust::Unknown, depth + 1)?;
            base.extend(below);
            self.remarks.extend(remarks);
        }
        for id in &extend.disabled_rules {
            let before = base.rules.len();
            base.rules.retain(|rule| rule.id != *id);
            if base.rules.len() == before {
                self.remarks.push(Remark {
                    rule: Some(id.clone()),
                    what: "turned off, but there is no such rule".to_owned(),
                });
            }
        }
        Ok(base)
    }

    fn rule(&mut self, raw: RawRule, line: usize, place: usize) -> Result<Rule, RuleError> {
        let name = named(&raw.id, place);
        let rule = self.rule_of(raw);
        rule.map_err(|why| self.error(&name, line, &why))
    }

    fn rule_of(&mut self, raw: RawRule) -> Result<Rule, String> {
        if raw.id.is_empty() {
            return Err("it has no id".to_owned());
        }
        if raw.required.is_some() {
            self.remarks.push(Remark {
                rule: Some(raw.id.clone()),
                what: "`required` is left out: the rule stands alone".to_owned(),
            });
        }
        let pattern = pattern(&raw, self.trust)?;
        if let Some(path) = &raw.path {
            self.trust
                .expression(path)
                .map_err(|why| format!("path: {why}"))?;
        }
        let entropy = raw.entropy.filter(|entropy| *entropy > 0.0);
        let mut allow = Vec::new();
        for list in raw.allowlist.into_iter().chain(raw.allowlists) {
            allow.push(self.allow(list, Some(&raw.id))?);
        }
        Ok(Rule {
            kind: raw.kind.as_deref().map_or(Ok(Kind::Secret), kind)?,
            group: raw.group.unwrap_or_else(|| self.group.clone()),
            label: raw.label.unwrap_or_else(|| raw.id.clone()),
            severity: raw
                .severity
                .as_deref()
                .map_or(Ok(Severity::High), severity)?,
            keywords: lower(&raw.keywords),
            pattern,
            // Zero is how gitleaks says that none is set.
            secret_group: raw.secret_group.filter(|group| *group > 0),
            entropy,
            check: raw.check.as_deref().map(check).transpose()?,
            path: raw.path,
            allow,
            examples: raw.examples,
            counterexamples: raw.counterexamples,
            comes_along: self.trust == Trust::Tested,
            description: raw.description,
            id: raw.id,
        })
    }

    fn allow(&mut self, raw: RawAllow, rule: Option<&str>) -> Result<Allow, String> {
        for expression in raw.regexes.iter().chain(&raw.paths) {
            self.trust
                .expression(expression)
                .map_err(|why| format!("allowlist: {why}"))?;
        }
        let target = match raw.regex_target.as_deref() {
            None | Some("" | "secret") => Target::Secret,
            Some("match") => Target::Match,
            Some("line") => Target::Line,
            Some(other) => return Err(format!("allowlist: no such regexTarget: {other}")),
        };
        let all = match raw.condition.as_deref() {
            None | Some("" | "OR" | "or" | "||") => false,
            Some("AND" | "and" | "&&") => true,
            Some(other) => return Err(format!("allowlist: no such condition: {other}")),
        };
        if !raw.commits.is_empty() {
            self.remarks.push(Remark {
                rule: rule.map(str::to_owned),
                what: "`commits` is left out: a transcript is no commit".to_owned(),
            });
        }
        let hash = |value: &String| value.trim_start_matches("sha256:").to_ascii_lowercase();
        Ok(Allow {
            rules: raw.target_rules,
            regexes: raw.regexes,
            target,
            stopwords: lower(&raw.stopwords),
            files: raw.paths,
            fields: raw.fields,
            values: raw.values.iter().map(hash).collect(),
            all,
            comes_along: self.trust == Trust::Tested,
        })
    }
}

fn pattern(raw: &RawRule, trust: Trust) -> Result<Pattern, String> {
    match (&raw.regex, &raw.value) {
        (Some(_), _) if !raw.names.is_empty() => {
            Err("it has both `regex` and `names`; one of them says how it is found".to_owned())
        }
        (Some(regex), None) => {
            trust.expression(regex)?;
            let group = raw.secret_group.unwrap_or(0);
            if group > 0 && group > Expression::parse(regex)?.groups() {
                return Err("secretGroup: the expression has fewer groups".to_owned());
            }
            Ok(Pattern::Regex(regex.clone()))
        }
        (None, Some(value)) if !raw.names.is_empty() => {
            trust.expression(value)?;
            let names: Vec<String> = raw.names.iter().map(|name| joined(name)).collect();
            if names.iter().any(|name| name.len() < 2) {
                return Err("a name has at least two letters".to_owned());
            }
            Ok(Pattern::Named {
                names,
                value: value.clone(),
            })
        }
        (None, None) if raw.path.is_some() && raw.names.is_empty() => Ok(Pattern::File),
        _ => Err("it has neither `regex`, nor `names` with `value`, nor `path`".to_owned()),
    }
}

/// A name without what joins words.
fn joined(name: &str) -> String {
    let letters = name.chars().filter(char::is_ascii_alphanumeric);
    letters.map(|letter| letter.to_ascii_lowercase()).collect()
}

fn lower(words: &[String]) -> Vec<String> {
    let words = words.iter().filter(|word| !word.is_empty());
    words.map(|word| word.to_ascii_lowercase()).collect()
}

fn kind(word: &str) -> Result<Kind, String> {
    let kinds = [Kind::Secret, Kind::Pii, Kind::Path, Kind::Identity];
    let kind = kinds.into_iter().find(|kind| kind.as_str() == word);
    kind.ok_or_else(|| format!("no such kind: {word}"))
}

fn severity(word: &str) -> Result<Severity, String> {
    let grades = [Severity::Low, Severity::Medium, Severity::High];
    let grade = grades.into_iter().find(|grade| grade.as_str() == word);
    grade.ok_or_else(|| format!("no such severity: {word}"))
}

fn check(word: &str) -> Result<Check, String> {
    Check::parse(word).ok_or_else(|| format!("no such check: {word}"))
}

#[cfg(test)]
mod tests;
