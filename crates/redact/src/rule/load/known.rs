//! The keys that a file of rules may have. What is misspelled would do nothing, and nobody would see it.

use toml::{Table, Value};

/// A key that there is not, and where it stands.
pub(super) struct Unknown {
    /// Which of the rules, from zero; `None` outside of them.
    pub(super) rule: Option<usize>,
    /// What is wrong, with the key in it.
    pub(super) why: String,
    /// The key alone.
    pub(super) key: String,
}

/// Keys of a file: those that are used, and those of gitleaks and betterleaks that are not.
const FILE: &[&str] = &[
    "group",
    "extend",
    "rules",
    "allowlist",
    "allowlists",
    // Not used.
    "title",
    "description",
    "version",
    "minVersion",
    "prefilter",
    "filter",
];
const EXTEND: &[&str] = &["useDefault", "path", "disabledRules", "url"];
const RULE: &[&str] = &[
    "id",
    "description",
    "group",
    "kind",
    "label",
    "severity",
    "keywords",
    "regex",
    "names",
    "value",
    "secretGroup",
    "entropy",
    "check",
    "path",
    "allowlist",
    "allowlists",
    "examples",
    "counterexamples",
    "required",
    // Not used.
    "tags",
    "report",
    "skipReport",
    "confidence",
    "filter",
    "validate",
    "components",
    "analyze",
    "valueGroup",
    "revoke",
    "specificity",
];
const ALLOW: &[&str] = &[
    "description",
    "id",
    "targetRules",
    "condition",
    "commits",
    "paths",
    "regexTarget",
    "regexes",
    "stopwords",
    "fields",
    "values",
];

/// The first key of a file that there is not.
pub(super) fn unknown(file: &Table) -> Option<Unknown> {
    let rules = file.get("rules").into_iter().flat_map(tables);
    within(file, FILE, None, "")
        .or_else(|| {
            let extend = file.get("extend").into_iter().flat_map(tables);
            first(extend, EXTEND, None, "extend.")
        })
        .or_else(|| lists(file, None))
        .or_else(|| {
            rules.enumerate().find_map(|(index, rule)| {
                within(rule, RULE, Some(index), "").or_else(|| lists(rule, Some(index)))
            })
        })
}

fn lists(table: &Table, rule: Option<usize>) -> Option<Unknown> {
    ["allowlist", "allowlists"].into_iter().find_map(|name| {
        let lists = table.get(name).into_iter().flat_map(tables);
        first(lists, ALLOW, rule, &format!("{name}."))
    })
}

fn first<'a>(
    mut tables: impl Iterator<Item = &'a Table>,
    known: &[&str],
    rule: Option<usize>,
    place: &str,
) -> Option<Unknown> {
    tables.find_map(|table| within(table, known, rule, place))
}

fn within(table: &Table, known: &[&str], rule: Option<usize>, place: &str) -> Option<Unknown> {
    let key = table.keys().find(|key| !known.contains(&key.as_str()))?;
    let meant = known.iter().find(|known| alike(known, key));
    let meant = meant.map_or_else(String::new, |known| format!("; `{known}` is one"));
    Some(Unknown {
        rule,
        why: format!("there is no key `{place}{key}`{meant}"),
        key: key.clone(),
    })
}

/// Whether two keys differ in their case, in what joins their words, or in an `s` at the end.
fn alike(one: &str, other: &str) -> bool {
    let plain = |key: &str| {
        let letters = key.chars().filter(char::is_ascii_alphanumeric);
        let joined: String = letters.map(|letter| letter.to_ascii_lowercase()).collect();
        joined.trim_end_matches('s').to_owned()
    };
    plain(one) == plain(other)
}

fn tables(value: &Value) -> Box<dyn Iterator<Item = &Table> + '_> {
    match value {
        Value::Table(table) => Box::new(std::iter::once(table)),
        Value::Array(all) => Box::new(all.iter().filter_map(Value::as_table)),
        _ => Box::new(std::iter::empty()),
    }
}
