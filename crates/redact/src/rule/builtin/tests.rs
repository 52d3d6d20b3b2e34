//! Every rule finds its own examples, all of the secret and no more, and none of its counterexamples.

use std::collections::{BTreeMap, HashSet};
use std::fmt::Write as _;
use std::ops::Range;
use std::path::Path;

use super::FILES;
use crate::rule::{Kind, Pattern, Rule, RuleSet, expand};
use crate::{Certainty, Context, Engine, Found, Scratch};

const SEEDS: Range<u64> = 0..12;

fn rules() -> RuleSet {
    let mut all = RuleSet::default();
    for (name, text) in FILES {
        let rules = RuleSet::parse(text, Path::new(name));
        all.extend(rules.unwrap_or_else(|error| panic!("{error}")));
    }
    all
}

fn scan(engine: &Engine, text: &str) -> Vec<Found> {
    let mut found = Vec::new();
    engine.scan(
        &mut Scratch::default(),
        text,
        Context::default(),
        &mut found,
    );
    found.retain(|found| found.certainty == Certainty::Sure);
    found
}

fn seeded(templates: &[String]) -> impl Iterator<Item = (&String, u64)> {
    templates
        .iter()
        .flat_map(|template| SEEDS.map(move |seed| (template, seed)))
}

fn none_wrong(wrong: &[String]) {
    assert!(
        wrong.is_empty(),
        "{}\n{} wrong",
        wrong.join("\n"),
        wrong.len()
    );
}

#[test]
fn every_rule_finds_its_examples_and_nothing_else() {
    let all = rules();
    let mut wrong = Vec::new();
    for rule in &all.rules {
        let engine = Engine::new(&all, |other| other.id == rule.id)
            .unwrap_or_else(|error| panic!("{error}"));
        for template in &rule.examples {
            for seed in SEEDS {
                let sample =
                    expand(template, seed).unwrap_or_else(|| panic!("{}: {template}", rule.id));
                let found: Vec<_> = scan(&engine, &sample.text)
                    .into_iter()
                    .map(|found| found.span)
                    .collect();
                let Some(secret) = sample.secret.clone() else {
                    wrong.push(format!("{}: nothing is marked: {template}", rule.id));
                    break;
                };
                if found != [secret.clone()] {
                    wrong.push(format!(
                        "{}: {template} (seed {seed}): {found:?} is not {secret:?}",
                        rule.id
                    ));
                    break;
                }
            }
        }
        for (template, seed) in seeded(&rule.counterexamples) {
            let sample =
                expand(template, seed).unwrap_or_else(|| panic!("{}: {template}", rule.id));
            let found = scan(&engine, &sample.text);
            if !found.is_empty() {
                wrong.push(format!(
                    "{}: counterexample {template} (seed {seed}): {found:?}",
                    rule.id
                ));
                break;
            }
        }
    }
    none_wrong(&wrong);
}

#[test]
fn together_they_leave_nothing_of_any_secret() {
    let all = rules();
    let engine = Engine::new(&all, |rule| rule.kind == Kind::Secret).unwrap();
    let mut wrong = Vec::new();
    for rule in all.rules.iter().filter(|rule| rule.kind == Kind::Secret) {
        for (template, seed) in seeded(&rule.examples) {
            let sample = expand(template, seed).unwrap();
            let secret = sample.secret.clone().unwrap();
            let mut open = secret.start;
            for found in scan(&engine, &sample.text) {
                if found.span.start <= open {
                    open = open.max(found.span.end);
                }
            }
            if open < secret.end {
                wrong.push(format!(
                    "{}: {template} (seed {seed}): {open} of {secret:?}",
                    rule.id
                ));
                break;
            }
        }
    }
    none_wrong(&wrong);
}

/// What holds a secret, by name and by form, and in all that names are given values by.
#[test]
fn secrets_vanish_however_they_are_given() {
    let kinds = [
        ("ACME_API_KEY", "{alnum:32}"),
        ("ACME_CLIENT_SECRET", "{b64u:39}x"),
        ("ACME_TOKEN", "{hex:40}"),
        ("AWS_SECRET_ACCESS_KEY", "{b64:39}x"),
        ("HEROKU_API_KEY", "{uuid}"),
        ("TWILIO_AUTH_TOKEN", "{hex:32}"),
        ("GITHUB_TOKEN", "ghp_{alnum:36}"),
        ("ANTHROPIC_API_KEY", "sk-ant-api03-{b64u:93}AA"),
    ];
    let all = rules();
    let engine = Engine::new(&all, |rule| rule.kind == Kind::Secret).unwrap();
    let (mut missed, mut count) = (Vec::new(), 0);
    for (carrier, (name, template)) in include_str!("carriers.txt")
        .lines()
        .flat_map(|carrier| kinds.map(|kind| (carrier, kind)))
    {
        let lower = name.to_ascii_lowercase();
        let camel = lower
            .split('_')
            .enumerate()
            .map(|(index, word)| match index {
                0 => word.to_owned(),
                _ => word[..1].to_ascii_uppercase() + &word[1..],
            });
        let named = carrier
            .replace("\\n", "\n")
            .replace("camelName", &camel.collect::<String>())
            .replace("kebab-name", &lower.replace('_', "-"))
            .replace("NAME", name);
        let named = if carrier.contains("NAME") {
            named
        } else {
            named.replace("name", &lower)
        };
        for seed in SEEDS {
            let secret = expand(template, seed).unwrap().text;
            let text = named.replace("@@", &secret);
            let begin = text.find(&secret).unwrap();
            let found = scan(&engine, &text);
            count += 1;
            if !found
                .iter()
                .any(|found| found.span.start <= begin && found.span.end >= begin + secret.len())
            {
                missed.push(format!("{carrier}: {name} (seed {seed})"));
            }
        }
    }
    // Random characters spell a word now and then.
    assert!(
        missed.len() * 200 <= count,
        "{}\n{} of {count}",
        missed.join("\n"),
        missed.len()
    );
}

/// Text that was a string of JSON once more has its lines joined by `\\n`.
#[test]
fn an_escape_ends_a_secret_as_a_line_does() {
    let all = rules();
    let engine = Engine::new(&all, |rule| rule.kind == Kind::Secret).unwrap();
    let mut wrong = Vec::new();
    for (rule, template) in all
        .rules
        .iter()
        .flat_map(|rule| rule.examples.iter().map(move |template| (rule, template)))
    {
        if rule.kind != Kind::Secret || !template.ends_with('»') {
            continue;
        }
        let mut sample = expand(template, 1).unwrap();
        let end = sample.text.len();
        sample.text.push_str("\\nand then = more of it\\n");
        if let Some(found) = scan(&engine, &sample.text)
            .iter()
            .find(|found| found.span.end > end)
        {
            let by = &engine.rules().rules[found.rule].id;
            wrong.push(format!("{}: {template}: {by} goes on", rule.id));
        }
    }
    none_wrong(&wrong);
}

/// The texts that a list of counterexamples makes: each as it is, and in what carries texts in logs.
fn carried(text: &str) -> [(&'static str, String); 5] {
    let json = serde_json::json!({ "type": "text", "text": text }).to_string();
    [
        ("plain", text.to_owned()),
        ("json", json),
        ("env", format!("NOTE={text}\nHOME=/root")),
        ("shell", format!("$ echo '{}'", text.replace('\'', "'\\''"))),
        ("header", format!("X-Note: {text}\r\nAccept: */*\r\n")),
    ]
}

/// Scans every line of a list in every carrier, and says what is found.
fn found_in(list: &str, wanted: impl Fn(&Rule) -> bool) -> Vec<String> {
    let engine = Engine::new(&rules(), wanted).unwrap();
    let mut wrong = Vec::new();
    let lines = list
        .lines()
        .filter(|line| !line.is_empty() && !line.starts_with("# "));
    for template in lines {
        let first = SEEDS.flat_map(|seed| {
            let sample = expand(template, seed).unwrap_or_else(|| panic!("{template}"));
            carried(&sample.text).map(|(carrier, text)| (seed, carrier, scan(&engine, &text)))
        });
        let mut first = first
            .filter_map(|(seed, carrier, found)| Some((seed, carrier, found.into_iter().next()?)));
        if let Some((seed, carrier, found)) = first.next() {
            let rule = &engine.rules().rules[found.rule].id;
            wrong.push(format!(
                "{rule}: {template} ({carrier}, seed {seed}): {:?}",
                found.span
            ));
        }
    }
    wrong
}

#[test]
fn what_only_looks_like_a_secret_stays() {
    let wrong = found_in(include_str!("innocent.txt"), |rule| {
        rule.kind == Kind::Secret
    });
    none_wrong(&wrong);
}

#[test]
fn what_only_looks_like_a_person_stays() {
    let wrong = found_in(include_str!("innocent-people.txt"), |rule| {
        matches!(rule.kind, Kind::Secret | Kind::Pii)
    });
    none_wrong(&wrong);
}

#[test]
fn rules_are_well_made() {
    let mut ids = HashSet::new();
    let mut wrong = Vec::new();
    let all = rules();
    for (rule, say) in all
        .rules
        .iter()
        .map(|rule| (rule, |what: &str| format!("{}: {what}", rule.id)))
    {
        let mut is = |right: bool, what: &str| {
            if !right {
                wrong.push(say(what));
            }
        };
        is(ids.insert(rule.id.clone()), "there are two of this id");
        is(
            !rule.description.is_empty() && !rule.examples.is_empty(),
            "description and examples are wanted",
        );
        let label = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
        is(
            !rule.label.is_empty() && rule.label.bytes().all(label),
            "the label is a word in lower case",
        );
        // Some are found by their digits or dots; that none is looked for everywhere, the plan has a test for.
        let keyed = matches!(rule.pattern, Pattern::Named { .. }) || !rule.keywords.is_empty();
        let shaped = rule.kind == Kind::Pii
            || rule.kind == Kind::Identity
            || matches!(rule.id.as_str(), "discord-token" | "asana-token-form");
        is(keyed || shaped, "keywords are wanted");
        is(
            rule.keywords.iter().all(|word| word.len() >= 3),
            "keywords have three letters or more",
        );
        if let Pattern::Named { names, .. } = &rule.pattern {
            is(
                names.iter().all(|name| name.len() >= 3),
                "names have three letters or more",
            );
        }
        for sample in rule
            .examples
            .iter()
            .filter_map(|template| expand(template, 1))
        {
            let text = sample.text.to_ascii_lowercase();
            let stands = rule
                .keywords
                .iter()
                .any(|word| text.contains(word.as_str()));
            is(
                rule.keywords.is_empty() || stands,
                "an example has none of the keywords",
            );
        }
    }
    none_wrong(&wrong);
    let secrets = all.rules.iter().filter(|rule| rule.kind == Kind::Secret);
    assert!(secrets.count() >= 230);
}

/// A sample that is the same for every seed is no secret: it may stand in a file as it is.
#[test]
fn no_example_holds_a_secret() {
    let made_up = |rule: &&Rule| rule.kind == Kind::Secret;
    for rule in rules().rules.iter().filter(made_up) {
        for template in &rule.examples {
            let secret = |seed| {
                let sample = expand(template, seed).unwrap();
                sample.text[sample.secret.unwrap()].to_owned()
            };
            assert_ne!(secret(1), secret(2), "{}: {template}", rule.id);
        }
    }
}

#[test]
fn the_table_in_the_docs_is_that_of_the_files() {
    let all = rules();
    let mut groups: BTreeMap<&str, Vec<&Rule>> = BTreeMap::new();
    for rule in &all.rules {
        groups.entry(&rule.group).or_default().push(rule);
    }
    let mut table =
        String::from("| group | rules | by form | by name | what |\n|---|---:|---:|---:|---|\n");
    for (name, text) in FILES {
        let group = name.trim_end_matches(".toml");
        let rules = &groups[group];
        let named = rules
            .iter()
            .filter(|rule| matches!(rule.pattern, Pattern::Named { .. }))
            .count();
        let what = text
            .lines()
            .next()
            .unwrap()
            .trim_start_matches("# ")
            .trim_end_matches('.');
        writeln!(
            table,
            "| `{group}` | {} | {} | {named} | {what} |",
            rules.len(),
            rules.len() - named
        )
        .unwrap();
    }
    let secrets = all
        .rules
        .iter()
        .filter(|rule| rule.kind == Kind::Secret)
        .count();
    write!(
        table,
        "\n{} rules, {secrets} of them for secrets.\n",
        all.rules.len()
    )
    .unwrap();
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/rules.md");
    let page = std::fs::read_to_string(&path).unwrap();
    let (begin, end) = ("<!-- table -->\n", "<!-- /table -->\n");
    let (before, rest) = page.split_once(begin).unwrap();
    let (known, behind) = rest.split_once(end).unwrap();
    if std::env::var_os("QUIPU_BLESS").is_some() {
        let page = format!("{before}{begin}{table}{end}{behind}");
        std::io::Write::write_all(&mut std::fs::File::create(&path).unwrap(), page.as_bytes())
            .unwrap();
        return;
    }
    assert_eq!(
        known, table,
        "docs/rules.md is not what the files say; QUIPU_BLESS=1 writes it anew"
    );
}
