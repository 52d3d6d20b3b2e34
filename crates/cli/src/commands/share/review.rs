//! Looking over what would be removed.

use std::collections::BTreeMap;
use std::io::{self, BufRead as _, IsTerminal as _, Write as _};

use quipu_api::share::{Review, ReviewedValue, ValuePlace};
use quipu_convert::source::Redacted;
use quipu_redact::session::{Decisions, Excerpt, Finding, Outcome, ValueHash};
use quipu_redact::{Certainty, Profile, Severity};

use crate::args::Share;
use crate::commands::convert::refused;
use crate::error::{CommandError, Result};
use crate::json;
use crate::terminal::{BOLD, DIM, GREEN, RED, YELLOW, bytes, clean_line, columns, count, out, say};

/// How many places of one value are told.
const PLACES: usize = 3;

/// How much of a value is shown.
const LONGEST: usize = 200;

/// How many digits of a hash a value is known by.
const MARK: usize = 10;

/// How many values are held; what is beyond them is only counted.
const MOST: usize = 5_000;

/// Everything that would be removed, and what was nearly, each value once.
pub(super) struct Seen {
    /// By what the value is known by without being told.
    values: BTreeMap<String, Value1>,
    order: Vec<String>,
    /// Findings that there was no room for, and how many of them stay.
    beyond: u64,
    beyond_near: u64,
    /// How many places something goes from.
    removed: u64,
    pub(super) outcome: Outcome,
}

/// How much there is of each.
struct Counted {
    /// Places at which something is taken out: as many as the copy will list.
    removed: u64,
    /// Those at which something had been taken out before.
    before: u64,
    /// Values that rules nearly found.
    nearly: u64,
}

/// A value, for its owner's eyes.
struct Value1 {
    rule: String,
    kind: String,
    severity: Option<Severity>,
    certainty: Certainty,
    placeholder: Option<String>,
    count: u64,
    places: Vec<(u64, String)>,
    before: String,
    value: String,
    behind: String,
    hash: ValueHash,
}

impl Seen {
    pub(super) fn of(source: &mut Redacted) -> Result<Self> {
        let mut values: BTreeMap<String, Value1> = BTreeMap::new();
        let (mut order, mut beyond, mut beyond_near, mut removed) = (Vec::new(), 0, 0, 0);
        let each = |item: &Finding<'_>| {
            let is_near = item.certainty != Certainty::Sure;
            removed += u64::from(!is_near);
            let mark = item.hash.to_string()[..MARK].to_owned();
            if let Some(known) = values.get_mut(&mark) {
                known.count += 1;
                if known.places.len() < PLACES {
                    known.places.push((item.seq, item.field.to_owned()));
                }
                return;
            }
            if values.len() >= MOST {
                beyond += 1;
                beyond_near += u64::from(is_near);
                return;
            }
            order.push(mark.clone());
            values.insert(mark, Value1::of(item));
        };
        let outcome = source.review(Box::new(each)).map_err(refused)?;
        Ok(Self {
            values,
            order,
            beyond,
            beyond_near,
            removed,
            outcome,
        })
    }

    fn counted(&self) -> Counted {
        let is_near = |value: &&Value1| value.certainty != Certainty::Sure;
        let nearly = self.values.values().filter(is_near).count() as u64;
        Counted {
            removed: self.removed,
            before: self.outcome.redactions.saturating_sub(self.removed),
            nearly: nearly + self.beyond_near,
        }
    }

    fn each(&self) -> impl Iterator<Item = (&str, &Value1)> {
        let of = |mark: &String| self.values.get_key_value(mark);
        self.order
            .iter()
            .filter_map(of)
            .map(|(mark, value)| (mark.as_str(), value))
    }
}

impl Value1 {
    fn of(item: &Finding<'_>) -> Self {
        let Excerpt {
            before,
            value,
            behind,
        } = item.excerpt;
        Self {
            hash: item.hash,
            rule: item.rule.to_owned(),
            kind: item.kind.to_owned(),
            severity: item.severity,
            certainty: item.certainty,
            placeholder: item.placeholder.map(str::to_owned),
            count: 1,
            places: vec![(item.seq, item.field.to_owned())],
            before: before.to_owned(),
            value: value.chars().take(LONGEST).collect(),
            behind: behind.to_owned(),
        }
    }

    /// Whether it could open something, and is not removed.
    fn is_risky(&self) -> bool {
        matches!(self.certainty, Certainty::Near(why) if why.is_suspicious())
            && self.severity == Some(Severity::High)
            && !self.is_path()
    }

    /// Whether it is the name of a file, or of directories.
    fn is_path(&self) -> bool {
        let is_part = |c: char| c.is_ascii_alphanumeric() || "_-.+@~/\\".contains(c);
        let before = self.before.rfind(|c: char| !is_part(c)).map_or(0, |at| {
            at + self.before[at..].chars().next().map_or(0, char::len_utf8)
        });
        let behind = self.behind.find(|c: char| !is_part(c));
        let behind = &self.behind[..behind.unwrap_or(self.behind.len())];
        is_path(&self.before[before..], &self.value, behind)
    }

    /// Whether a person may keep it: what a profile leaves out whatever it says is not theirs to keep.
    fn is_policy(&self) -> bool {
        self.kind == POLICY
    }
}

/// The kind of what a profile leaves out whatever it says.
const POLICY: &str = "policy";

/// Whether a value is in the name of a file, by what joins it on both sides.
fn is_path(before: &str, value: &str, behind: &str) -> bool {
    let is_separator = |c: char| matches!(c, '/' | '\\');
    let whole = format!("{before}{value}{behind}");
    let last = whole.rsplit(is_separator).next().unwrap_or(&whole);
    // `loom.rs`, `archive.tar.gz`: letters behind a point.
    let has_ending = last.rsplit_once('.').is_some_and(|(stem, ending)| {
        !stem.is_empty()
            && (1..=5).contains(&ending.len())
            && ending.bytes().all(|byte| byte.is_ascii_alphanumeric())
            && ending.bytes().any(|byte| byte.is_ascii_alphabetic())
    });
    let begins = ["/", "~/", "./", "../"]
        .iter()
        .any(|it| whole.starts_with(it))
        && !whole.starts_with("//");
    let is_inside = begins && behind.starts_with(is_separator);
    let directories = value.matches(is_separator).count();
    (has_ending && whole.contains(is_separator)) || is_inside || begins && directories >= 2
}

/// What is to be done; `None` when it is not to be shared.
pub(super) fn decide(args: &Share, seen: &Seen, profile: &Profile) -> Result<Option<Decisions>> {
    let mut decisions = Decisions::default();
    for (flag, marks) in [("--keep", &args.keep), ("--remove", &args.remove)] {
        for mark in marks {
            let Some(value) = seen.values.get(mark) else {
                let error = CommandError::usage(format!("{flag} {mark}: nothing has that mark"));
                return Err(error.hint("`quipu share ID --review` shows the marks"));
            };
            if value.is_policy() && flag == "--keep" {
                let error = CommandError::usage(format!(
                    "{flag} {mark}: the profile {} leaves out {}",
                    profile.name, value.rule
                ));
                return Err(error.hint("choose another profile: docs/profiles.md"));
            }
        }
    }
    let hash = |mark: &String| seen.values.get(mark).map(|value| value.hash);
    decisions.keep.extend(args.keep.iter().filter_map(hash));
    decisions.remove.extend(args.remove.iter().filter_map(hash));
    if args.json {
        let mut out = out();
        writeln!(out, "{}", json::document(&document(seen, profile))?)?;
        out.flush()?;
    }
    let on_terminal = io::stdin().is_terminal() && io::stderr().is_terminal();
    if args.review || (on_terminal && !args.yes) {
        if !args.json {
            show(seen)?;
        }
        if args.review {
            return Ok(Some(decisions));
        }
        return ask(seen, decisions);
    }
    if !args.yes {
        let error = CommandError::usage("there is no terminal to look it over on");
        return Err(
            error.hint("--review shows what would be removed; --yes goes on without a person")
        );
    }
    let undecided: Vec<&str> = seen
        .each()
        .filter(|(mark, value)| {
            let decided = |marks: &[String]| marks.iter().any(|given| given == mark);
            value.is_risky() && !decided(&args.keep) && !decided(&args.remove)
        })
        .map(|(mark, _)| mark)
        .collect();
    // What goes need not be looked at, however much it is.
    if undecided.is_empty() && seen.beyond_near == 0 {
        return Ok(Some(decisions));
    }
    let what = count(undecided.len() as u64, "value");
    say(&format!(
        "not shared: {what} may be secrets, and nobody has looked"
    ));
    for mark in undecided.iter().take(20) {
        if let Some(value) = seen.values.get(*mark) {
            let (seq, field) = &value.places[0];
            say(&format!("  {mark}  {} at event {seq}, {field}", value.rule));
        }
    }
    say("hint: look with --review, then say --keep MARK or --remove MARK for each");
    Ok(None)
}

fn show(seen: &Seen) -> Result<()> {
    let mut out = out();
    let width = columns().saturating_sub(14).max(20);
    for (mark, value) in seen.each() {
        let (style, word) = match (value.certainty, value.severity) {
            (Certainty::Near(_), _) if value.is_risky() => (YELLOW, "stays?"),
            (Certainty::Near(_), _) => (DIM, "stays"),
            (Certainty::Sure, Some(Severity::High)) => (RED, "goes"),
            (Certainty::Sure, _) => (GREEN, "goes"),
        };
        let (seq, field) = &value.places[0];
        let times = match value.count {
            1 => String::new(),
            n => format!(" and {} more", n - 1),
        };
        writeln!(
            out,
            "{DIM}{mark}{DIM:#}  {style}{word:6}{style:#} {BOLD}{}{BOLD:#} {DIM}event {seq} {}{times}{DIM:#}",
            value.rule,
            clean_line(field, 60),
        )?;
        let text = format!("{}{}{}", value.before, value.value, value.behind);
        writeln!(out, "            {}", clean_line(&text, width))?;
    }
    out.flush()?;
    drop(out);
    let Counted {
        removed,
        before,
        nearly,
    } = seen.counted();
    let places = count(removed, "redaction");
    say(&format!(
        "{places} would be made; {} nearly",
        count(nearly, "value")
    ));
    if before > 0 {
        say(&format!("{} there already", count(before, "redaction")));
    }
    if seen.beyond > 0 {
        say(&format!(
            "… and {} that are not listed",
            count(seen.beyond, "more")
        ));
    }
    let cut = seen.outcome.cut;
    if cut.events > 0 {
        let (events, size) = (count(cut.events, "event"), bytes(cut.bytes));
        say(&format!(
            "{events} of {size} are beyond what the profile allows"
        ));
    }
    Ok(())
}

/// Asks what is to be done.
fn ask(seen: &Seen, mut decisions: Decisions) -> Result<Option<Decisions>> {
    say("share it? y yes, n no; k MARK keeps a value, r MARK removes one, l lists again");
    let mut lines = io::stdin().lock().lines();
    loop {
        #[expect(clippy::print_stderr, reason = "a prompt has no end of line")]
        {
            eprint!("> ");
        }
        let Some(line) = lines.next().transpose()? else {
            say("not shared");
            return Ok(None);
        };
        let mut words = line.split_whitespace();
        match (words.next(), words.next()) {
            (Some("y" | "yes"), None) => return Ok(Some(decisions)),
            (Some("n" | "no" | "q"), None) => {
                say("not shared");
                return Ok(None);
            }
            (Some("l"), None) => show(seen)?,
            (Some(verb @ ("k" | "r")), Some(mark)) => match seen.values.get(mark) {
                None => say(&format!("nothing has the mark {mark}")),
                Some(value) if verb == "k" && value.is_policy() => {
                    say(&format!("the profile leaves out {}", value.rule));
                }
                Some(value) => {
                    let (to, from, word) = if verb == "k" {
                        (&mut decisions.keep, &mut decisions.remove, "stays")
                    } else {
                        (&mut decisions.remove, &mut decisions.keep, "goes")
                    };
                    from.remove(&value.hash);
                    to.insert(value.hash);
                    say(&format!("{} {word}", value.rule));
                }
            },
            _ => say("y, n, k MARK, r MARK or l"),
        }
    }
}

fn document(seen: &Seen, profile: &Profile) -> Review {
    let values = seen.each().map(|(mark, value)| ReviewedValue {
        mark: mark.to_owned(),
        rule: value.rule.clone(),
        r#type: value.kind.clone(),
        severity: value.severity.map(|it| it.as_str().to_owned()),
        removed: value.certainty == Certainty::Sure,
        nearly: match value.certainty {
            Certainty::Sure => None,
            Certainty::Near(why) => Some(why.as_str().to_owned()),
        },
        risky: value.is_risky(),
        placeholder: value.placeholder.clone(),
        count: value.count,
        places: value
            .places
            .iter()
            .map(|(seq, field)| ValuePlace {
                seq: *seq,
                field: field.clone(),
            })
            .collect(),
    });
    Review {
        profile: profile.name.clone(),
        redactions: seen.counted().removed,
        redacted_before: seen.counted().before,
        values: values.collect(),
        not_listed: seen.beyond,
    }
}
