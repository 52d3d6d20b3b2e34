//! Recall on kinds that no rule was written by, by class and by what carries the value.
//!
//! A value counts as found when no four characters in a row of it are left, wherever they come from: a password that is
//! half removed is worse than one that was missed, since nobody looks again.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

use anyhow::{Context as _, Result, ensure};
use quipu_redact::Engine;
use quipu_redact::rule::expand;
use serde::Deserialize;
use serde_json::{Value, json};

use super::corpus::{Corpus, From, Log, Planted};
use super::held_out::HELD_OUT;
use super::settings::{SETTINGS, plain};
use super::{beside, ours};
use crate::table::{Goal, Table, now};

/// How many characters in a row are too many.
const PIECE: usize = 4;
/// How many values of a kind each carrier gets.
const ROUNDS: u64 = 3;

/// The first was written before anybody mended the rules by it, the second after that and before it was measured.
pub(super) const LISTS: &[(&str, &str)] = &[
    ("unseen kinds", include_str!("../../data/unseen.toml")),
    (
        "unseen kinds, second list",
        include_str!("../../data/unseen-2.toml"),
    ),
];

/// Short words that people make passwords of.
const WORDS: &[&str] = &[
    "troubador",
    "horse",
    "battery",
    "staple",
    "dragon",
    "monkey",
    "sunshine",
    "coffee",
    "winter",
    "garden",
    "rocket",
    "banana",
    "silver",
    "falcon",
    "copper",
    "violet",
    "harbor",
    "meadow",
    "ginger",
    "pepper",
];
const SEASONS: &[&str] = &["Spring", "Summer", "Autumn", "Winter"];

#[derive(Deserialize)]
pub(super) struct List {
    pub(super) kind: Vec<Kind>,
}

/// A kind of credential, as bench/data/unseen.toml says it.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Kind {
    pub(super) name: String,
    vendor: String,
    class: String,
    form: String,
    env: String,
    header: Option<String>,
    shell: Option<String>,
    says: Option<String>,
    url: Option<String>,
}

/// A value in a text.
pub(super) struct Carried {
    pub(super) kind: String,
    pub(super) class: String,
    pub(super) carrier: &'static str,
    /// The line of a session.
    line: String,
    /// The same line without the value.
    without: String,
    pub(super) value: String,
    /// What is the same in every value of the kind.
    form: String,
}

/// What became of values.
#[derive(Default, Clone, Copy)]
struct Tally {
    all: usize,
    found: usize,
    half: usize,
}

pub(super) fn list(text: &str) -> Result<List> {
    Ok(toml::from_str(text)?)
}

/// A value of a form.
fn value(form: &str, seed: u64) -> Result<String> {
    let mut form = form.replace('␛', "\u{1b}");
    let mut turn = usize::try_from(seed % 1_000_003)?;
    for (name, words, upper) in [
        ("{word}", WORDS, false),
        ("{Word}", WORDS, true),
        ("{Season}", SEASONS, true),
    ] {
        while form.contains(name) {
            let mut word = words[turn % words.len()].to_owned();
            if upper {
                word[..1].make_ascii_uppercase();
            }
            form = form.replacen(name, &word, 1);
            turn = turn / 3 + 7;
        }
    }
    Ok(expand(&form, seed).context("not a form")?.text)
}

/// A name in the manner of another language.
fn camel(env: &str) -> String {
    let mut out = String::new();
    for (index, part) in env.to_lowercase().split('_').enumerate() {
        let mut part = part.to_owned();
        if index > 0 {
            part[..1].make_ascii_uppercase();
        }
        out.push_str(&part);
    }
    out
}

/// A word of a shell, in quotes where somebody careful would write them.
fn word(value: &str, careful: bool) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "_-./:=@%+,^~".contains(c);
    if careful && !value.chars().all(plain) {
        format!("'{value}'")
    } else {
        value.to_owned()
    }
}

impl Kind {
    /// The texts that hold a value of this kind, each with the name of its carrier.
    fn texts(&self, value: &str, turn: u64) -> Vec<(&'static str, String)> {
        let fill = |template: &str, value: &str| template.replace("«»", value);
        let snake = self.env.to_lowercase();
        let (noun, ends) = (
            if self.class == "password" {
                "password"
            } else {
                "API key"
            },
            [" and it still works.", ", please rotate it.", "."],
        );
        let says = match &self.says {
            Some(says) => fill(says, value),
            None if turn.is_multiple_of(2) => format!("the {} {noun}: {value}", self.vendor),
            None => format!("the {} {noun} is {value}", self.vendor),
        };
        let end = ends[usize::try_from(turn % 3).unwrap_or(0)];
        let mut texts = vec![
            (
                "prose",
                format!("I looked at the setup of yesterday, {says}{end}"),
            ),
            (
                "environment",
                format!(
                    "HOME=/home/ada\nLANG=C.UTF-8\n{}={value}\nSHELL=/bin/bash",
                    self.env
                ),
            ),
            (
                "JSON in a string",
                json!({"name": self.vendor, camel(&self.env): value, "retries": 3}).to_string(),
            ),
            (
                "YAML",
                format!("service:\n  {snake}: {value}\n  timeout: 30"),
            ),
            (
                ".properties",
                format!(
                    "server.port=8080\n{}={value}\nserver.name=a",
                    snake.replace('_', ".")
                ),
            ),
            (
                "TOML",
                format!("[service]\n{snake} = {}\ntimeout = 30", json!(value)),
            ),
        ];
        let careful = turn.is_multiple_of(2);
        let shell = match &self.shell {
            // In quotes of its own already, or a part of a word.
            Some(shell) if !shell.contains(" «»") => fill(shell, value),
            Some(shell) => fill(shell, &word(value, careful)),
            None => format!(
                "export {}={} && ./deploy.sh",
                self.env,
                word(value, careful)
            ),
        };
        texts.push(("shell", format!("$ {shell}\nok")));
        if let Some(header) = &self.header {
            let header = fill(header, value);
            let quote = if careful { '\'' } else { '"' };
            texts.push((
                "header",
                format!("$ curl -sS -H {quote}{header}{quote} https://api.acme.io/v1/items\n{{}}"),
            ));
        }
        if let Some(url) = &self.url {
            texts.push(("URL", format!("GET {}\n200 OK", fill(url, value))));
        }
        texts
    }

    pub(super) fn carried(&self, seed: u64, number: u64) -> Result<Vec<Carried>> {
        let mut all = Vec::new();
        for round in 0..ROUNDS {
            let places = self.texts("", round).len();
            for place in 0..places {
                let chance = seed
                    .wrapping_mul(1_000_003)
                    .wrapping_add(number * 1000 + round * 100 + place as u64);
                let value = value(&self.form, chance)?;
                let (carrier, text) = self.texts(&value, round).swap_remove(place);
                let (_, without) = self.texts("", round).swap_remove(place);
                all.push(Carried {
                    kind: self.name.clone(),
                    class: self.class.clone(),
                    carrier,
                    line: plain(&text, place),
                    without: plain(&without, place),
                    value,
                    form: self.form.clone(),
                });
            }
        }
        Ok(all)
    }
}

/// The older list, every kind in every setting.
fn older(seed: u64) -> Result<Vec<Carried>> {
    let mut all = Vec::new();
    for (number, (kind, template)) in HELD_OUT.iter().enumerate() {
        for (place, (setting, write)) in SETTINGS.iter().enumerate() {
            let chance = seed.wrapping_mul(7919) + (number * 100 + place) as u64;
            let sample = expand(template, chance).context("not a template")?;
            let span = sample.secret.context("no mark")?;
            let mut without = sample.text.clone();
            without.replace_range(span.clone(), "");
            all.push(Carried {
                kind: (*kind).to_owned(),
                class: "held out".to_owned(),
                carrier: setting,
                line: write(&sample.text, number),
                without: write(&without, number),
                value: sample.text[span].to_owned(),
                form: (*template).to_owned(),
            });
        }
    }
    Ok(all)
}

/// Every text of a line of JSON, decoded as often as it is one.
fn decoded(line: &str, out: &mut String) {
    fn walk(value: &Value, out: &mut String) {
        match value {
            Value::String(text) => {
                out.push('\n');
                out.push_str(text);
                if text.starts_with('{') {
                    decoded(text, out);
                }
            }
            Value::Array(all) => all.iter().for_each(|one| walk(one, out)),
            Value::Object(all) => all.values().for_each(|one| walk(one, out)),
            _ => {}
        }
    }
    match serde_json::from_str::<Value>(line) {
        Ok(value) => walk(&value, out),
        Err(_) => out.push_str(line),
    }
}

/// A text without placeholders: they are named after kinds, and share letters with values.
fn bare(text: &str) -> String {
    let (mut out, mut rest) = (String::new(), text);
    while let Some((before, behind)) = rest.split_once("[REDACTED:") {
        out.push_str(before);
        out.push('\n');
        rest = behind.split_once(']').map_or("", |(_, behind)| behind);
    }
    out + rest
}

/// Pieces of a value that are of this value alone.
fn pieces(carried: &Carried, without: &str) -> Vec<String> {
    // What is between colour codes, one by one.
    let mut parts = vec![];
    for part in carried.value.split('\u{1b}') {
        let code = part.strip_prefix('[').and_then(|part| part.split_once('m'));
        parts.push(code.map_or(part, |(_, behind)| behind));
    }
    let mut all = Vec::new();
    for part in parts {
        let chars: Vec<char> = part.chars().collect();
        let own = chars
            .windows(PIECE)
            .map(|window| window.iter().collect::<String>())
            .filter(|piece| {
                !carried.form.contains(piece.as_str()) && !without.contains(piece.as_str())
            });
        all.extend(own);
    }
    all
}

/// How much of each carrier's values is left, each tallied by `class` and carrier.
fn tally(
    engine: &Engine,
    all: &[Carried],
    missed: &mut BTreeMap<String, BTreeMap<String, usize>>,
) -> Result<BTreeMap<(String, &'static str), Tally>> {
    let mut bytes = Vec::new();
    for carried in all {
        bytes.extend_from_slice(carried.line.as_bytes());
        bytes.push(b'\n');
    }
    let redacted = ours::redact_with(engine, &bytes, false)?;
    let after = String::from_utf8(redacted.bytes)?;
    let after: Vec<&str> = after.lines().collect();
    ensure!(after.len() == all.len(), "another number of lines");
    let mut tallies: BTreeMap<(String, &'static str), Tally> = BTreeMap::new();
    for (carried, after) in all.iter().zip(after) {
        let (mut left, mut without) = (String::new(), String::new());
        decoded(after, &mut left);
        decoded(&carried.without, &mut without);
        let left = bare(&left);
        let own = pieces(carried, &without);
        ensure!(!own.is_empty(), "{} has no piece of its own", carried.kind);
        let count = own
            .iter()
            .filter(|piece| left.contains(piece.as_str()))
            .count();
        let tally = tallies
            .entry((carried.class.clone(), carried.carrier))
            .or_default();
        tally.all += 1;
        tally.found += usize::from(count == 0);
        let half = count > 0 && count < own.len();
        tally.half += usize::from(half);
        if count > 0 {
            let place = if half {
                format!("{} (a piece left)", carried.carrier)
            } else {
                carried.carrier.to_owned()
            };
            *missed
                .entry(carried.kind.clone())
                .or_default()
                .entry(place)
                .or_default() += 1;
        }
    }
    Ok(tallies)
}

/// A table with classes down and carriers across.
fn grid(tallies: &BTreeMap<(String, &'static str), Tally>) -> Result<String> {
    let mut carriers: Vec<&str> = Vec::new();
    let mut classes: Vec<&str> = Vec::new();
    for (class, carrier) in tallies.keys() {
        if !carriers.contains(carrier) {
            carriers.push(carrier);
        }
        if !classes.contains(&class.as_str()) {
            classes.push(class);
        }
    }
    let sum = |class: Option<&str>, carrier: Option<&str>| {
        let mut sum = Tally::default();
        for ((of, by), tally) in tallies {
            if class.is_none_or(|class| class == of) && carrier.is_none_or(|carrier| carrier == *by)
            {
                sum.all += tally.all;
                sum.found += tally.found;
                sum.half += tally.half;
            }
        }
        sum
    };
    let part = |tally: Tally| match tally.all {
        0 => "-".to_owned(),
        all => format!("{:.3}", tally.found as f64 / all as f64),
    };
    let mut out = format!("  {:<10}", "");
    for carrier in &carriers {
        write!(out, " {carrier:>16}")?;
    }
    writeln!(out, " {:>8} {:>12}", "all", "of")?;
    for class in classes.iter().map(|class| Some(*class)).chain([None]) {
        write!(out, "  {:<10}", class.unwrap_or("all"))?;
        for carrier in &carriers {
            write!(out, " {:>16}", part(sum(class, Some(carrier))))?;
        }
        let all = sum(class, None);
        writeln!(
            out,
            " {:>8} {:>12}",
            part(all),
            format!("{} ({} half)", all.all, all.half)
        )?;
    }
    Ok(out)
}

/// What other tools find of the same values. A tool that names a line only is believed, and half of a value counts for
/// all of it.
fn beside_others(all: &[Carried], work: &Path, peers: &Path) -> Result<String> {
    let mut bytes = Vec::new();
    for carried in all {
        bytes.extend_from_slice(carried.line.as_bytes());
        bytes.push(b'\n');
    }
    let planted = all.iter().enumerate().map(|(line, carried)| Planted {
        log: 0,
        line,
        kind: carried.kind.clone(),
        setting: carried.carrier.to_owned(),
        secret: Some(carried.value.clone()),
        from: From::HeldOut,
    });
    let corpus = Corpus {
        planted: planted.collect(),
        decoys: Vec::new(),
        bytes: bytes.len(),
        logs: vec![Log {
            name: "unseen.jsonl".to_owned(),
            bytes,
        }],
    };
    let (found, absent) = beside::measure(&corpus, work, peers, usize::MAX)?;
    let mut text = String::new();
    for peer in found {
        let mut tallies: BTreeMap<(String, &'static str), Tally> = BTreeMap::new();
        for (carried, is_found) in all.iter().zip(&peer.found) {
            let place = (carried.class.clone(), carried.carrier);
            let tally = tallies.entry(place).or_default();
            tally.all += 1;
            tally.found += usize::from(*is_found);
        }
        write!(
            text,
            "\n{}, on the same lines:\n{}",
            peer.name,
            grid(&tallies)?
        )?;
    }
    for name in absent {
        writeln!(text, "{name} could not be installed: not measured")?;
    }
    Ok(text)
}

pub(super) fn measure(
    table: &mut Table,
    engine: &Engine,
    seed: u64,
    others: Option<(&Path, &Path)>,
) -> Result<()> {
    now("looking for kinds that no rule was written by");
    let mut lists = Vec::new();
    for (what, text) in LISTS {
        let mut unseen = Vec::new();
        for (number, kind) in list(text)?.kind.iter().enumerate() {
            unseen.extend(kind.carried(seed, number as u64)?);
        }
        lists.push((*what, unseen));
    }
    lists.push(("the older held-out kinds", older(seed)?));
    for (what, all) in lists {
        let mut missed = BTreeMap::new();
        let tallies = tally(engine, &all, &mut missed)?;
        let count = tallies.values().map(|tally| tally.found).sum::<usize>();
        table.row(
            &format!("{what}, in every carrier, found whole"),
            &count.to_string(),
            &format!("of {}", all.len()),
            count as f64 / all.len() as f64,
            Goal::AtLeast(0.95),
        );
        let half = tallies.values().map(|tally| tally.half).sum::<usize>();
        table.row(
            &format!("{what}, half removed"),
            &half.to_string(),
            &format!("of {}", all.len()),
            half as f64,
            Goal::AtMost(0.0),
        );
        let mut note = format!("{what}, recall by class and carrier:\n{}", grid(&tallies)?);
        for (kind, places) in &missed {
            let places: Vec<String> = places
                .iter()
                .map(|(place, n)| format!("{place} {n}"))
                .collect();
            writeln!(note, "  missed {kind}: {}", places.join(", "))?;
        }
        if let Some((work, peers)) = others {
            now(&format!("other tools: {what}"));
            note += &beside_others(&all, work, peers)?;
        }
        table.note(note);
    }
    Ok(())
}
