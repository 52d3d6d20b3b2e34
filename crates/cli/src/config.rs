//! `config.toml` in Quipu's home.
//!
//! ```toml
//! [stats]
//! zone = "Europe/Berlin"
//!
//! [budget]
//! day = 20
//! session = 5.50
//!
//! [budget.project]            # by the month
//! "/code/engine" = 100
//!
//! [prices.aliases]            # see docs/prices.md
//! "my-gateway/opus" = "claude-opus-4-5"
//!
//! [redact]                    # see docs/redaction.md
//! profile = "team"            # for redact, share, export and convert, where none is named
//! rules = ["my-rules.toml"]   # beside the built-in ones; relative to this file
//! import = "team"             # remove it before anything is kept; "local" or nothing keeps logs as they are
//! record = true               # mask secrets in what is recorded
//! ```
//!
//! What is wrong with it is an error that names the file, the line and the key. A key that is not known is no error, since
//! another version may know it, but it is said.

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use jiff::tz::TimeZone;
use quipu_model::Money;
use quipu_prices::{Overrides, Prices};
use quipu_store::stats::Budgets;
use serde::Deserialize;
use toml::Spanned;

use crate::error::{CommandError, Exit, Result};
use crate::terminal::say;

/// The name of the file.
const NAME: &str = "config.toml";

/// What a person has set.
#[derive(Debug, Default)]
pub(crate) struct Config {
    pub(crate) prices: Overrides,
    pub(crate) budgets: Budgets,
    pub(crate) zone: Option<String>,
    pub(crate) redact: Redact,
}

/// What is removed, and when.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Redact {
    pub(crate) profile: Option<String>,
    pub(crate) rules: Vec<PathBuf>,
    pub(crate) import: Option<String>,
    pub(crate) record: bool,
}

/// The file as it is written.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Written {
    prices: Overrides,
    budget: Budget,
    stats: Stats,
    redact: Redact,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Budget {
    day: Option<Spanned<toml::Value>>,
    week: Option<Spanned<toml::Value>>,
    month: Option<Spanned<toml::Value>>,
    session: Option<Spanned<toml::Value>>,
    project: BTreeMap<String, Spanned<toml::Value>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Stats {
    zone: Option<Spanned<String>>,
}

/// The keys that are known, by table. Those of `prices` are checked where they are read.
const KNOWN: [(&str, &[&str]); 4] = [
    ("", &["prices", "budget", "stats", "redact"]),
    ("redact", &["profile", "rules", "import", "record"]),
    ("budget", &["day", "week", "month", "session", "project"]),
    ("stats", &["zone"]),
];

impl Config {
    /// Reads the file of a home, if there is one. What is not known is said on standard error.
    pub(crate) fn load(home: &Path) -> Result<Self> {
        let path = home.join(NAME);
        let text = match std::fs::read_to_string(&path) {
            Ok(text) => text,
            // A home that is none is for those to complain of who want to use it.
            Err(error)
                if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) =>
            {
                return Ok(Self::default());
            }
            Err(error) => {
                let error = anyhow::anyhow!("cannot read {}: {error}", path.display());
                return Err(CommandError::new(Exit::Environment, error));
            }
        };
        let (config, unknown) = Self::parse(&path, &text)?;
        for key in unknown {
            say(&format!("warning: {}: {key} is not known", path.display()));
        }
        Ok(config)
    }

    /// What a text says, and the keys in it that are not known.
    fn parse(path: &Path, text: &str) -> Result<(Self, Vec<String>)> {
        let file = File { path, text };
        let written: Written = toml::from_str(text).map_err(|error| file.broken(&error))?;
        let Budget {
            day,
            week,
            month,
            session,
            project,
        } = written.budget;
        let mut projects = Vec::new();
        for (directory, amount) in project {
            let key = format!("budget.project.{directory:?}");
            projects.push((directory, file.amount(&key, &amount)?));
        }
        let limit = |key: &str, amount: Option<Spanned<toml::Value>>| match amount {
            Some(amount) => file.amount(key, &amount).map(Some),
            None => Ok(None),
        };
        let zone = written.stats.zone;
        if let Some(zone) = &zone {
            self::zone(zone.get_ref()).map_err(|_| {
                let what = format!("{:?} is no time zone", zone.get_ref());
                file.wrong("stats.zone", zone.span().start, &what)
            })?;
        }
        let config = Self {
            prices: written.prices,
            budgets: Budgets {
                day: limit("budget.day", day)?,
                week: limit("budget.week", week)?,
                month: limit("budget.month", month)?,
                session: limit("budget.session", session)?,
                projects,
            },
            zone: zone.map(Spanned::into_inner),
            redact: written.redact,
        };
        Ok((config, unknown(text)))
    }

    /// The table of prices, with what was set.
    pub(crate) fn prices(&self) -> Prices {
        Prices::builtin().with_overrides(&self.prices)
    }

    /// The zone that is asked for, else the one that is set, else that of the system.
    pub(crate) fn zone(&self, asked: Option<&str>) -> Result<TimeZone> {
        match asked.or(self.zone.as_deref()) {
            Some(name) => zone(name),
            None => Ok(TimeZone::system()),
        }
    }
}

/// A time zone by its name.
fn zone(name: &str) -> Result<TimeZone> {
    if name.eq_ignore_ascii_case("utc") {
        return Ok(TimeZone::UTC);
    }
    TimeZone::get(name).map_err(|_| {
        CommandError::usage(format!("{name:?} is no time zone"))
            .hint("write a name such as Europe/Berlin, America/New_York or UTC")
    })
}

/// A sum of dollars as a person writes it.
pub(crate) fn dollars(text: &str) -> Option<Money> {
    let digits = text.trim().trim_start_matches('$');
    Money::parse(digits).filter(|sum| *sum >= Money::ZERO)
}

/// Keys that are in no list.
fn unknown(text: &str) -> Vec<String> {
    let Ok(table) = text.parse::<toml::Table>() else {
        return Vec::new();
    };
    let mut unknown = Vec::new();
    for (name, known) in KNOWN {
        let within = match name {
            "" => Some(&table),
            name => table.get(name).and_then(toml::Value::as_table),
        };
        let keys = within.into_iter().flat_map(toml::Table::keys);
        for key in keys.filter(|key| !known.contains(&key.as_str())) {
            unknown.push(match name {
                "" => key.clone(),
                name => format!("{name}.{key}"),
            });
        }
    }
    unknown
}

/// The file, for errors.
struct File<'f> {
    path: &'f Path,
    text: &'f str,
}

impl File<'_> {
    fn line(&self, at: usize) -> usize {
        let before = self.text.get(..at).unwrap_or_default();
        1 + before.matches('\n').count()
    }

    fn broken(&self, error: &toml::de::Error) -> CommandError {
        let line = error.span().map_or(1, |span| self.line(span.start));
        let error = anyhow::anyhow!("{}:{line}: {}", self.path.display(), error.message());
        CommandError::new(Exit::Data, error)
    }

    fn wrong(&self, key: &str, at: usize, what: &str) -> CommandError {
        let line = self.line(at);
        let error = anyhow::anyhow!("{}:{line}: {key}: {what}", self.path.display());
        CommandError::new(Exit::Data, error)
    }

    /// Floats are read as they were written: the shortest text of one is what a person wrote.
    fn amount(&self, key: &str, value: &Spanned<toml::Value>) -> Result<Money> {
        let sum = match value.get_ref() {
            toml::Value::Integer(n) => dollars(&n.to_string()),
            toml::Value::Float(n) => dollars(&n.to_string()),
            toml::Value::String(text) => dollars(text),
            _ => None,
        };
        sum.ok_or_else(|| {
            let what = "no sum of dollars; write 20, 5.50 or \"0.10\"";
            self.wrong(key, value.span().start, what)
        })
    }
}

/// Where the configuration of a home is.
pub(crate) fn path(home: &Path) -> PathBuf {
    home.join(NAME)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<(Config, Vec<String>)> {
        Config::parse(Path::new("config.toml"), text)
    }

    #[test]
    fn amounts_are_exact() {
        let text = "[budget]\nday = 20\nweek = 0.1\nsession = \"$5.55\"\n\
            [budget.project]\n\"/code/x\" = 100.25\n";
        let (config, unknown) = parse(text).unwrap();
        let budgets = config.budgets;
        assert_eq!(budgets.day, Money::parse("20"));
        assert_eq!(budgets.week, Money::parse("0.1"));
        assert_eq!(budgets.session, Money::parse("5.55"));
        let project = ("/code/x".to_owned(), Money::parse("100.25").unwrap());
        assert_eq!((budgets.month, budgets.projects), (None, vec![project]));
        assert!(unknown.is_empty());
    }

    #[test]
    fn errors_name_the_place() {
        for (text, said) in [
            ("[budget]\nday = -1\n", "config.toml:2: budget.day: no sum"),
            (
                "[budget]\n\nday = true\n",
                "config.toml:3: budget.day: no sum",
            ),
            ("a = \n", "config.toml:1: "),
            (
                "[stats]\nzone = \"Mars\"\n",
                "config.toml:2: stats.zone: \"Mars\" is no time zone",
            ),
            ("[stats]\nzone = 3\n", "config.toml:2: "),
        ] {
            let error = parse(text).unwrap_err().to_string();
            assert!(error.starts_with(said), "{text:?}: {error}");
        }
    }

    #[test]
    fn what_is_not_known_is_told() {
        let text = "theme = \"dark\"\n[budget]\nyear = 5\n[stats]\nzone = \"UTC\"\n";
        let (config, unknown) = parse(text).unwrap();
        assert_eq!(unknown, ["theme", "budget.year"]);
        assert_eq!(config.zone.as_deref(), Some("UTC"));
    }
}
