//! Logs that their agents delete, and whether they are kept by then.

use std::borrow::Cow;
use std::path::Path;

use jiff::{Span, Timestamp};
use quipu_agents::{FAMILIES, Host};
use serde_json::Value;

use crate::Store;
use crate::catalogue::{Result, SourceRow};
use crate::import::{Candidate, Found, Search};

/// When an agent deletes its logs. Only Claude Code does by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Expiry {
    /// After so many days without a word.
    pub days: i64,
}

/// What is kept of a log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogState {
    /// Nothing.
    New,
    /// What it was before it changed.
    Changed,
    /// All of it.
    Kept,
}

impl LogState {
    /// What is known of a log comes to this.
    pub fn of<'r>(log: &Candidate, known: impl IntoIterator<Item = &'r SourceRow>) -> Self {
        let mut state = Self::New;
        for row in known.into_iter().filter(|row| !row.is_in_place()) {
            // A database changes with every word; what counts is that sessions of it are kept.
            let (own, known) = (&log.stamp, &row.stamp);
            let is_same = own.size == known.size && own.modified == known.modified;
            if log.found == Found::Many || is_same {
                return Self::Kept;
            }
            state = Self::Changed;
        }
        state
    }
}

/// Logs that an agent deletes soon.
#[derive(Debug, Clone)]
pub struct Expiring {
    /// When it deletes them.
    pub expiry: Expiry,
    /// How many there are, kept or not.
    pub all: u64,
    /// Those that are not kept as they are, the first to go first.
    pub logs: Vec<(Candidate, LogState)>,
}

impl Expiry {
    /// The agent.
    pub const AGENT: &'static str = "claude-code";

    /// What is deleted within so many days is deleted soon.
    pub const SOON: i64 = 7;

    /// What it does unless its settings say otherwise.
    const USUAL: i64 = 30;

    /// As the settings on this machine say, or as the agent does by itself.
    pub fn of(host: &Host) -> Self {
        let places = FAMILIES.iter().flat_map(|family| family.places(host));
        let mut roots = places.filter(|place| place.brand == Self::AGENT);
        let said = roots.find_map(|place| {
            let path = place.root.parent()?.join("settings.json");
            let small = path
                .metadata()
                .is_ok_and(|it| it.is_file() && it.len() < 1 << 20);
            if !small || quipu_agents::is_credential(&path) {
                return None;
            }
            let settings: Value = serde_json::from_slice(&std::fs::read(&path).ok()?).ok()?;
            settings["cleanupPeriodDays"].as_i64()
        });
        let days = said.filter(|days| *days > 0).unwrap_or(Self::USUAL);
        Self { days }
    }

    /// Whether the agent deletes this soon.
    pub fn is_soon(&self, log: &Candidate, now: Timestamp) -> bool {
        let is_own = log.place.is_some_and(|place| place.0 == Self::AGENT);
        let ago = self.days.saturating_sub(Self::SOON).saturating_mul(24);
        let soon = Span::new()
            .try_hours(ago)
            .and_then(|ago| now.checked_sub(ago))
            .unwrap_or(Timestamp::MIN);
        is_own && log.found == Found::Log && modified(log).is_some_and(|at| at < soon)
    }

    /// Whole days until what was last written to at this time is deleted, about.
    pub fn days_left(&self, modified: Timestamp, now: Timestamp) -> i64 {
        let ago = (now.as_second() - modified.as_second()).div_euclid(86_400);
        self.days.saturating_sub(ago).max(0)
    }

    /// Looks for logs that are deleted soon.
    pub fn look(&self, host: &Host, now: Timestamp) -> Vec<Candidate> {
        let search = Search::of_places(host, &[Self::AGENT.to_owned()]);
        let mut soon = search.found;
        soon.retain(|log| self.is_soon(log, now));
        soon.sort_by(|a, b| (a.stamp.modified, &a.path).cmp(&(b.stamp.modified, &b.path)));
        soon
    }
}

fn modified(log: &Candidate) -> Option<Timestamp> {
    Timestamp::from_nanosecond(i128::from(log.stamp.modified?)).ok()
}

impl Store {
    /// Which of these logs are not kept as they are.
    ///
    /// # Errors
    ///
    /// When the catalogue cannot be used.
    pub fn expiring(&self, expiry: Expiry, logs: &[Candidate]) -> Result<Expiring> {
        let mut lost = Vec::new();
        for log in logs {
            let known = self.catalogue().sources_at(&unpacked(&log.path))?;
            match LogState::of(log, &known) {
                LogState::Kept => {}
                state => lost.push((log.clone(), state)),
            }
        }
        Ok(Expiring {
            expiry,
            all: logs.len() as u64,
            logs: lost,
        })
    }
}

/// The path of a log before it was compressed.
pub fn unpacked(path: &Path) -> Cow<'_, Path> {
    match path.extension() {
        Some(ending) if ending == "zst" => path.with_extension("").into(),
        _ => path.into(),
    }
}

#[cfg(test)]
#[expect(
    clippy::disallowed_methods,
    reason = "files of a test are nobody's secret"
)]
mod tests {
    use std::time::{Duration, SystemTime};

    use super::*;
    use crate::import::{ImportOptions, Progress};

    #[test]
    fn what_is_deleted_soon_is_told_until_it_is_kept() {
        const DAY: u64 = 86_400;
        let user = tempfile::tempdir().unwrap();
        let home = user.path().join("quipu");
        let projects = user.path().join(".claude/projects/-code");
        std::fs::create_dir_all(&projects).unwrap();
        let now = Timestamp::try_from(SystemTime::now()).unwrap();
        for (name, days) in [("old", 25), ("older", 29), ("overdue", 40), ("young", 3)] {
            let line = format!(
                r#"{{"type":"user","uuid":"{name}","sessionId":"{name}","timestamp":"2026-10-01T10:00:00.000Z","cwd":"/code","version":"2.1.0","message":{{"role":"user","content":"Hello"}}}}"#
            );
            let path = projects.join(format!("{name}.jsonl"));
            std::fs::write(&path, line + "\n").unwrap();
            let then = SystemTime::now() - Duration::from_secs(days * DAY + DAY / 2);
            let file = std::fs::File::options().write(true).open(&path).unwrap();
            file.set_modified(then).unwrap();
        }
        let host = Host::new(user.path(), |_| None);
        let expiry = Expiry::of(&host);
        assert_eq!(expiry.days, 30);
        let logs = expiry.look(&host, now);
        let store = Store::open(&home).unwrap();
        let names = |logs: &[(Candidate, LogState)]| -> Vec<String> {
            let stems = logs.iter().map(|(log, _)| log.path.file_stem().unwrap());
            stems.map(|it| it.to_string_lossy().into_owned()).collect()
        };
        let lost = store.expiring(expiry, &logs).unwrap();
        assert_eq!(
            (lost.all, names(&lost.logs)),
            (3, ["overdue", "older", "old"].map(str::to_owned).to_vec())
        );
        assert!(lost.logs.iter().all(|(_, state)| *state == LogState::New));
        let left = |at: usize| expiry.days_left(modified(&lost.logs[at].0).unwrap(), now);
        assert_eq!([left(0), left(1), left(2)], [0, 1, 5]);
        let options = ImportOptions {
            now,
            agents: Vec::new(),
            dry_run: false,
            threads: 1,
            redact: None,
        };
        store.import(&host, &options, &Progress::default()).unwrap();
        let kept = store.expiring(expiry, &logs).unwrap();
        assert_eq!((kept.all, kept.logs.len()), (3, 0));
        // Settings say otherwise: what was written to three days ago is deleted soon, too.
        let settings = user.path().join(".claude/settings.json");
        std::fs::write(settings, r#"{"cleanupPeriodDays": 8}"#).unwrap();
        let expiry = Expiry::of(&host);
        assert_eq!((expiry.days, expiry.look(&host, now).len()), (8, 4));
    }
}
