//! From the match rules of genai-prices to names.
//!
//! Their rules are begin, end, contain, equal, and regular expressions for dates. Ours are two: a name, and a
//! name that others may begin with. Dates and other marks that do not change a price are left to the
//! library, which knows them for all models alike.

use anyhow::{Result, bail};
use serde::Deserialize;

use super::table::Name;

/// A rule of theirs.
#[derive(Debug, Deserialize)]
#[serde(tag = "is")]
pub(crate) enum Clause {
    #[serde(rename = "ClauseEquals")]
    Equals { equals: String },
    #[serde(rename = "ClauseStartsWith")]
    StartsWith { starts_with: String },
    #[serde(rename = "ClauseEndsWith")]
    EndsWith { ends_with: String },
    #[serde(rename = "ClauseContains")]
    Contains { contains: String },
    #[serde(rename = "ClauseRegex")]
    Regex { regex: String },
    #[serde(rename = "ClauseOr")]
    Or { or_: Vec<Clause> },
    #[serde(rename = "ClauseAnd")]
    And { and_: Vec<Clause> },
}

/// The names it stands for. Fails where a rule is of a kind that was not seen before: someone must look.
pub(crate) fn names(clause: &Clause) -> Result<Vec<Name>> {
    Ok(match clause {
        Clause::Equals { equals } => vec![named(equals, '=')],
        Clause::EndsWith { ends_with } => vec![named(ends_with, '=')],
        Clause::StartsWith { starts_with } => vec![begun(starts_with)],
        Clause::Contains { contains } => vec![begun(contains)],
        Clause::Regex { regex } => vec![expression(regex)?],
        Clause::Or { or_ } => {
            let lists = or_.iter().map(names).collect::<Result<Vec<_>>>()?;
            lists.into_iter().flatten().collect()
        }
        // What begins so and is no voice. Voices are no marks that the library passes over.
        Clause::And { and_ } => match and_.as_slice() {
            [Clause::StartsWith { starts_with }, Clause::Regex { regex }] if regex == VOICELESS => {
                vec![begun(starts_with)]
            }
            _ => bail!("a rule with parts of a new kind: {and_:?}"),
        },
    })
}

const VOICELESS: &str = "^(?!.*-[tT][tT][sS](?:$|-))";

fn named(name: &str, kind: char) -> Name {
    Name {
        name: name.to_lowercase(),
        kind,
    }
}

/// A beginning. One that ends before a date is the name itself.
fn begun(start: &str) -> Name {
    match start.strip_suffix('@') {
        Some(start) => named(start, '='),
        None => named(start.trim_end_matches('-'), '^'),
    }
}

/// A regular expression, if it is a plain text with a date behind it.
fn expression(regex: &str) -> Result<Name> {
    const DATES: [&str; 3] = [r"-\d{8}$", r"[-@]\d{8}$", r"-\d{4}-\d{2}-\d{2}$"];
    let Some(body) = regex.strip_prefix('^') else {
        bail!("an expression without a beginning: {regex}");
    };
    let dated = DATES.iter().find_map(|date| body.strip_suffix(date));
    let (text, kind) = match (dated, body.strip_suffix(r"-\d"), body.strip_suffix('$')) {
        (Some(text), _, _) | (None, None, Some(text)) => (text, '='),
        (None, Some(text), _) => (text, '^'),
        (None, None, None) => bail!("an expression without an end: {regex}"),
    };
    let mut plain = String::new();
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        match c {
            '\\' => match chars.next() {
                Some(c) if !c.is_ascii_alphanumeric() => plain.push(c),
                _ => bail!("an expression of a new kind: {regex}"),
            },
            '.' | '*' | '+' | '?' | '[' | ']' | '(' | ')' | '{' | '}' | '|' | '^' | '$' => {
                bail!("an expression of a new kind: {regex}")
            }
            c => plain.push(c),
        }
    }
    Ok(named(&plain, kind))
}

#[cfg(test)]
mod tests {
    use super::{Clause, names};

    #[test]
    fn rules_become_names() {
        let check = |json: &str, name: &str, kind: char| {
            let clause: Clause = serde_json::from_str(json).unwrap();
            let found = names(&clause).unwrap();
            let found: Vec<_> = found.iter().map(|n| (n.name.as_str(), n.kind)).collect();
            assert_eq!(found, [(name, kind)], "{json}");
        };
        check(
            r#"{"is":"ClauseEquals","equals":"GLM-4.6"}"#,
            "glm-4.6",
            '=',
        );
        check(
            r#"{"is":"ClauseStartsWith","starts_with":"gpt-5-nano-"}"#,
            "gpt-5-nano",
            '^',
        );
        check(
            r#"{"is":"ClauseContains","contains":"claude-opus-5@"}"#,
            "claude-opus-5",
            '=',
        );
        for regex in [
            r"^grok-4\\.3-\\d{8}$",
            r"^grok-4\\.3[-@]\\d{8}$",
            r"^grok-4\\.3$",
        ] {
            let json = format!(r#"{{"is":"ClauseRegex","regex":"{regex}"}}"#);
            check(&json, "grok-4.3", '=');
        }
        check(
            r#"{"is":"ClauseRegex","regex":"^composer-2\\.5\\[fast=true\\]$"}"#,
            "composer-2.5[fast=true]",
            '=',
        );
    }

    #[test]
    fn a_new_kind_of_rule_is_refused() {
        for regex in ["^gpt-(4|5)$", "gpt", "^gpt-.*$", r"^gpt\\w$", "^gpt"] {
            let json = format!(r#"{{"is":"ClauseRegex","regex":"{regex}"}}"#);
            let clause: Clause = serde_json::from_str(&json).unwrap();
            assert!(names(&clause).is_err(), "{regex}");
        }
    }
}
