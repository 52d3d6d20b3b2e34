//! What is let pass by where it stands: the JSON paths of allowlists. The rest of them is for the engine, which does
//! not know of paths.

use crate::rule::Allow;
use crate::{Engine, RuleSet};

/// Paths under which nothing is found, or nothing by some rules.
#[derive(Debug, Default)]
pub(crate) struct Fields {
    lists: Vec<List>,
}

#[derive(Debug)]
struct List {
    patterns: Vec<Vec<String>>,
    /// The rules it is about, by their places; all of them without any.
    rules: Option<Vec<usize>>,
}

impl Fields {
    /// The paths that the allowlists of an engine's rules have. One that also demands something else of a finding is
    /// not among them: it lets less pass than its path says.
    pub(super) fn of(engine: &Engine) -> &Self {
        engine.fields.get_or_init(|| Self::new(engine.rules()))
    }

    fn new(rules: &RuleSet) -> Self {
        let mut lists = Vec::new();
        for allow in &rules.allow {
            let named = |id: &String| rules.rules.iter().position(|rule| rule.id == *id);
            let about =
                (!allow.rules.is_empty()).then(|| allow.rules.iter().filter_map(named).collect());
            lists.extend(list(allow, about));
        }
        for (place, rule) in rules.rules.iter().enumerate() {
            for allow in &rule.allow {
                lists.extend(list(allow, Some(vec![place])));
            }
        }
        Self { lists }
    }

    /// Whether there are any.
    pub(super) fn is_empty(&self) -> bool {
        self.lists.is_empty()
    }

    /// Whether what a rule found under a path may stay: under the path of a pattern, or below it.
    pub(super) fn allow(&self, path: &str, rule: usize) -> bool {
        let path = segments(path);
        self.lists.iter().any(|list| {
            list.rules
                .as_ref()
                .is_none_or(|rules| rules.contains(&rule))
                && list.patterns.iter().any(|pattern| covers(pattern, &path))
        })
    }
}

fn list(allow: &Allow, rules: Option<Vec<usize>>) -> Option<List> {
    let more = !(allow.regexes.is_empty()
        && allow.stopwords.is_empty()
        && allow.files.is_empty()
        && allow.values.is_empty());
    if allow.fields.is_empty() || allow.all && more {
        return None;
    }
    let patterns = allow.fields.iter().map(|field| segments(field)).collect();
    Some(List { patterns, rules })
}

/// The parts of a path: keys, and `[0]` for each place in a list.
fn segments(path: &str) -> Vec<String> {
    let mut parts = Vec::new();
    for part in path.split('.') {
        let mut from = 0;
        for (at, _) in part.match_indices('[') {
            if at > from {
                parts.push(part[from..at].to_owned());
            }
            from = at;
        }
        if from < part.len() {
            parts.push(part[from..].to_owned());
        }
    }
    parts
}

/// Whether a pattern matches a path or what it is in. Places in lists count only where the pattern names them.
fn covers(pattern: &[String], path: &[String]) -> bool {
    // As with the patterns of file names: the last `**` is the only one that ever has to take in more.
    let (mut at, mut of) = (0, 0);
    let mut retry = None;
    loop {
        if of == pattern.len() {
            return true;
        }
        if pattern[of] == "**" {
            of += 1;
            retry = Some((at, of));
            continue;
        }
        let step = path.get(at).map(|part| {
            let place = part.starts_with('[');
            if *part == pattern[of] || pattern[of] == "*" && !place || pattern[of] == "[*]" && place
            {
                Step::Match
            } else if place && !pattern[of].starts_with('[') {
                Step::Pass
            } else {
                Step::Fail
            }
        });
        match (step, retry) {
            (Some(Step::Match), _) => (at, of) = (at + 1, of + 1),
            (Some(Step::Pass), _) => at += 1,
            (Some(Step::Fail) | None, Some((from, then))) if from < path.len() => {
                retry = Some((from + 1, then));
                (at, of) = (from + 1, then);
            }
            _ => return false,
        }
    }
}

enum Step {
    Match,
    Pass,
    Fail,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_and_patterns() {
        let covers = |pattern: &str, path: &str| covers(&segments(pattern), &segments(path));
        for (pattern, path) in [
            ("message.usage", "message.usage.tokens"),
            ("message.usage", "message.usage"),
            ("**.signature", "message.content[0].signature"),
            ("message.content.signature", "message.content[0].signature"),
            ("message.*.signature", "message.content[0].signature"),
            ("**.content[1].text", "a.content[1].text"),
            ("**", "anything"),
            ("a.**.c", "a.c"),
            ("a.**.b.c", "a.b.b.c"),
        ] {
            assert!(covers(pattern, path), "{pattern} {path}");
        }
        for (pattern, path) in [
            ("usage", "message.usage"),
            ("message.usage.tokens", "message.usage"),
            ("**.signature", "message.signatures"),
            ("a.content[1]", "a.content[0].text"),
            ("a.*", "a"),
        ] {
            assert!(!covers(pattern, path), "{pattern} {path}");
        }
    }
}
