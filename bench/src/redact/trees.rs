//! What is found in source trees, and how much of it is none.
//!
//! Packages hold real credentials: keys for tests, tokens and passwords in examples. So each value that was found is
//! classed, by somebody who looked at it, in `bench/data/trees.tsv`; values are named there by a hash. What is in no class
//! counts as false until somebody looks.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use anyhow::{Context as _, Result, anyhow, ensure};
use quipu_redact::raw::{self, RawOptions, What};
use quipu_redact::{Certainty, Engine, Key, Kind};

use crate::files::put;
use crate::table::{Goal, Table, now};

const CLASSES: &str = include_str!("../../data/trees.tsv");
/// How many findings are shown.
const SHOWN: usize = 40;
/// How much is shown around a finding, to either side.
const AROUND: usize = 60;
/// Whoever looks for binary files looks so far.
const HEAD: usize = 8000;

/// What a finding is, to somebody who looked at it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Class {
    /// A credential, if only for tests or as an example: it has the form of one and stands where one stands.
    Credential,
    /// What somebody is to put a credential in place of. It counts as false.
    Placeholder,
    /// Something else.
    False,
    /// Nobody looked at it yet. It counts as false.
    Unknown,
}

impl Class {
    fn parse(word: &str) -> Option<Self> {
        match word {
            "credential" => Some(Self::Credential),
            "placeholder" => Some(Self::Placeholder),
            "false" => Some(Self::False),
            _ => None,
        }
    }

    fn as_str(self) -> &'static str {
        match self {
            Self::Credential => "credential",
            Self::Placeholder => "placeholder",
            Self::False => "false",
            Self::Unknown => "unknown",
        }
    }
}

/// Something in a tree.
struct Finding {
    kind: Kind,
    rule: String,
    /// What a class is kept by.
    hash: String,
    class: Class,
    place: String,
    /// What is around it, and how it begins.
    shown: String,
}

/// What each value is, by its hash.
pub(super) fn classes(text: &str) -> Result<BTreeMap<String, Class>> {
    let mut all = BTreeMap::new();
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        let mut columns = line.split('\t');
        let (hash, class) = (columns.next(), columns.next().and_then(Class::parse));
        let (Some(hash), Some(class)) = (hash, class) else {
            return Err(anyhow!("trees.tsv: {line}"));
        };
        let before = all.insert(hash.to_owned(), class);
        ensure!(before.is_none(), "trees.tsv: {hash} is there twice");
    }
    Ok(all)
}

/// Looks at every file below some directories, and says what is found by rule.
pub(super) fn measure(
    table: &mut Table,
    engine: &Engine,
    trees: &[PathBuf],
    work: &Path,
    seed: u64,
) -> Result<()> {
    now("source trees");
    let classes = classes(CLASSES)?;
    let mut files = Vec::new();
    for tree in trees {
        below(tree, tree, &mut files)?;
    }
    files.sort();
    let (found, bytes) = scan(engine, &files, &classes)?;
    ensure!(
        bytes > 0,
        "no files in the trees: fetch some with `cargo xtask trees`"
    );
    let (secrets, others): (Vec<Finding>, Vec<Finding>) =
        found.into_iter().partition(|it| it.kind == Kind::Secret);
    let counts = |of: &dyn Fn(&Finding) -> bool| secrets.iter().filter(|it| of(it)).count();
    let wrong = counts(&|it| it.class != Class::Credential);
    let megabytes = bytes as f64 / 1e6;
    table.row(
        "source trees: false findings (secret), per 100 MB",
        &wrong.to_string(),
        &format!("in {megabytes:.0} MB"),
        wrong as f64 / megabytes * 100.0,
        Goal::AtMost(10.0),
    );
    let right = counts(&|it| it.class == Class::Credential);
    table.row(
        "source trees: credentials for tests and examples, per 100 MB",
        &right.to_string(),
        &format!("in {megabytes:.0} MB"),
        right as f64 / megabytes * 100.0,
        Goal::Free,
    );
    table.note(by_rule(&secrets, &others)?);
    table.note(sample(&secrets, seed)?);
    let mut all = String::from("# hash\tclass\trule\tplace\twhat\n");
    for it in &secrets {
        writeln!(
            all,
            "{}\t{}\t{}\t{}\t{}",
            it.hash,
            it.class.as_str(),
            it.rule,
            it.place,
            it.shown
        )?;
    }
    let list = work.join("trees.tsv");
    put(&list, all.as_bytes())?;
    table.note(format!("every finding in the trees: {}", list.display()));
    Ok(())
}

/// The files below a directory, and what they are called there. Links are not followed.
fn below(tree: &Path, directory: &Path, files: &mut Vec<(PathBuf, String)>) -> Result<()> {
    let about = || format!("read {}", directory.display());
    for entry in fs::read_dir(directory).with_context(about)? {
        let entry = entry.with_context(about)?;
        let (kind, path) = (entry.file_type()?, entry.path());
        if kind.is_dir() {
            below(tree, &path, files)?;
        } else if kind.is_file() {
            let name = path.strip_prefix(tree).unwrap_or(&path);
            let name = name.to_string_lossy().into_owned();
            files.push((path, name));
        }
    }
    Ok(())
}

/// What is found, and how much was looked at.
fn scan(
    engine: &Engine,
    files: &[(PathBuf, String)],
    classes: &BTreeMap<String, Class>,
) -> Result<(Vec<Finding>, usize)> {
    let (next, bytes) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let found = Mutex::new(Vec::new());
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let one = || -> Result<()> {
        while let Some((path, name)) = files.get(next.fetch_add(1, Ordering::Relaxed)) {
            let text = fs::read(path).with_context(|| format!("read {}", path.display()))?;
            if text[..text.len().min(HEAD)].contains(&0) {
                continue;
            }
            bytes.fetch_add(text.len(), Ordering::Relaxed);
            let some = in_file(engine, &text, name, classes)?;
            found
                .lock()
                .map_err(|_| anyhow!("a thread stopped"))?
                .extend(some);
        }
        Ok(())
    };
    std::thread::scope(|scope| -> Result<()> {
        let threads: Vec<_> = (0..threads).map(|_| scope.spawn(one)).collect();
        for thread in threads {
            thread.join().map_err(|_| anyhow!("a thread stopped"))??;
        }
        Ok(())
    })?;
    let mut found = found
        .into_inner()
        .map_err(|_| anyhow!("a thread stopped"))?;
    found.sort_by(|a, b| (&a.rule, &a.place).cmp(&(&b.rule, &b.place)));
    Ok((found, bytes.into_inner()))
}

fn in_file(
    engine: &Engine,
    text: &[u8],
    name: &str,
    classes: &BTreeMap<String, Class>,
) -> Result<Vec<Finding>> {
    let mut options = RawOptions::new(Key::from_bytes([7; 32]));
    options.file = Some(name.to_owned());
    let (mut found, mut whole) = (Vec::new(), false);
    raw::check(engine, &options, &mut &*text, &mut |finding| {
        // A file that is secret as a whole is found once, whatever its lines.
        let again = whole;
        whole |= finding.what == What::File;
        if finding.certainty != Certainty::Sure || finding.what == What::File && again {
            return;
        }
        let begin = usize::try_from(finding.offset)
            .unwrap_or(usize::MAX)
            .min(text.len());
        let end = (begin + finding.length).min(text.len());
        let value = String::from_utf8_lossy(&text[begin..end]);
        let mut hash = Engine::hash(&value);
        hash.truncate(16);
        found.push(Finding {
            kind: finding.what.kind(engine),
            rule: finding.what.id(engine).to_owned(),
            class: classes.get(&hash).copied().unwrap_or(Class::Unknown),
            hash,
            place: format!("{name}:{}:{}", finding.line, finding.column),
            shown: shown(text, begin, end),
        });
    })?;
    Ok(found)
}

/// How a value begins, between what is around it. The rest of it is for whoever opens the file.
pub(super) fn shown(text: &[u8], begin: usize, end: usize) -> String {
    let clean = |bytes: &[u8]| -> String {
        let text = String::from_utf8_lossy(bytes);
        let shown = |c: char| if c.is_control() { ' ' } else { c };
        text.chars().map(shown).collect()
    };
    let before = clean(&text[begin.saturating_sub(AROUND)..begin]);
    let behind = clean(&text[end..text.len().min(end + AROUND / 3)]);
    let length = end - begin;
    let first = clean(&text[begin..begin + length.min(6).min(length / 2)]);
    format!("{before}«{first}…{length}»{behind}")
}

fn by_rule(secrets: &[Finding], others: &[Finding]) -> Result<String> {
    let mut rules: BTreeMap<&str, BTreeMap<Class, usize>> = BTreeMap::new();
    for it in secrets {
        *rules
            .entry(&it.rule)
            .or_default()
            .entry(it.class)
            .or_default() += 1;
    }
    let mut rows: Vec<_> = rules
        .iter()
        .map(|(rule, classes)| {
            let of = |class| classes.get(&class).copied().unwrap_or(0);
            let wrong = of(Class::Placeholder) + of(Class::False) + of(Class::Unknown);
            (
                wrong,
                *rule,
                [
                    Class::Credential,
                    Class::Placeholder,
                    Class::False,
                    Class::Unknown,
                ]
                .map(of),
            )
        })
        .collect();
    rows.sort_by(|a, b| (b.0, a.1).cmp(&(a.0, b.1)));
    let mut text = format!(
        "source trees, by rule:\n  {:<34} {:>10} {:>11} {:>6} {:>8}\n",
        "rule", "credential", "placeholder", "false", "unknown"
    );
    for (_, rule, [credential, placeholder, wrong, unknown]) in rows {
        writeln!(
            text,
            "  {rule:<34} {credential:>10} {placeholder:>11} {wrong:>6} {unknown:>8}"
        )?;
    }
    let mut kinds: BTreeMap<&str, usize> = BTreeMap::new();
    for it in others {
        *kinds.entry(&it.rule).or_default() += 1;
    }
    let kinds: Vec<String> = kinds
        .iter()
        .map(|(rule, n)| format!("{rule} {n}"))
        .collect();
    write!(text, "  of people, in no class: {}", kinds.join(", "))?;
    Ok(text)
}

/// Some findings, the same for the same seed, for somebody to check.
fn sample(found: &[Finding], seed: u64) -> Result<String> {
    let mut order: Vec<(String, &Finding)> = found
        .iter()
        .map(|it| {
            (
                Engine::hash(&format!("{seed} {} {}", it.place, it.rule)),
                it,
            )
        })
        .collect();
    order.sort_by(|a, b| a.0.cmp(&b.0));
    let mut text = format!(
        "source trees, {} of {} findings:",
        order.len().min(SHOWN),
        found.len()
    );
    for (_, it) in order.iter().take(SHOWN) {
        write!(
            text,
            "\n  {} {} {}\n      {}",
            it.class.as_str(),
            it.rule,
            it.place,
            it.shown
        )?;
    }
    Ok(text)
}
