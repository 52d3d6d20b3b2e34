//! Limits on what is spent, and whether they hold.

use jiff::tz::TimeZone;
use jiff::{Timestamp, Zoned};
use quipu_model::Money;
use quipu_prices::Prices;

use super::{By, Question, Spent};
use crate::catalogue::{Catalogue, Filter, Result};

/// Limits in dollars.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Budgets {
    /// For a day.
    pub day: Option<Money>,
    /// For a week, from Monday.
    pub week: Option<Money>,
    /// For a month of the calendar.
    pub month: Option<Money>,
    /// For a session with its sub-agents.
    pub session: Option<Money>,
    /// For a directory and those below it, by the month.
    pub projects: Vec<(String, Money)>,
}

/// What a limit is for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Limited {
    /// Today.
    Day(String),
    /// This week.
    Week(String),
    /// This month.
    Month(String),
    /// A session that something was spent on today.
    Session(String),
    /// A directory, this month.
    Project(String),
}

impl Limited {
    /// The word for it, and what it is about.
    pub fn parts(&self) -> (&'static str, &str) {
        match self {
            Self::Day(day) => ("day", day),
            Self::Week(week) => ("week", week),
            Self::Month(month) => ("month", month),
            Self::Session(session) => ("session", session),
            Self::Project(project) => ("project", project),
        }
    }
}

/// A limit, and what was spent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Balance {
    /// What it is for.
    pub of: Limited,
    /// How much there was.
    pub limit: Money,
    /// What was spent.
    pub spent: Spent,
}

impl Balance {
    /// Whether more was spent than there was. What has no price is not in it.
    pub fn is_exceeded(&self) -> bool {
        self.spent.cost > self.limit
    }
}

impl Budgets {
    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// What was spent of each, at this time. Of sessions, only those that exceed their limit.
    pub fn balances(
        &self,
        catalogue: &dyn Catalogue,
        now: Timestamp,
        zone: &TimeZone,
        prices: &Prices,
    ) -> Result<Vec<Balance>> {
        let now = now.to_zoned(zone.clone());
        let books = Books {
            catalogue,
            zone,
            prices,
        };
        let mut balances = Vec::new();
        let today = begin(&now, 0);
        let monday = i64::from(now.weekday().to_monday_zero_offset());
        let first = i64::from(now.day()) - 1;
        let week = now.date().iso_week_date();
        for (limit, days, of) in [
            (self.day, 0, Limited::Day(now.date().to_string())),
            (
                self.week,
                monday,
                Limited::Week(format!("{:04}-W{:02}", week.year(), week.week())),
            ),
            (
                self.month,
                first,
                Limited::Month(now.strftime("%Y-%m").to_string()),
            ),
        ] {
            if let Some(limit) = limit {
                let spent = books.total(begin(&now, days), None)?;
                balances.push(Balance { of, limit, spent });
            }
        }
        if let Some(limit) = self.session {
            balances.extend(books.sessions(today, limit)?);
        }
        for (project, limit) in &self.projects {
            let directories = catalogue.directories_below(project)?;
            balances.push(Balance {
                of: Limited::Project(project.clone()),
                limit: *limit,
                spent: books.total(begin(&now, first), Some(&directories))?,
            });
        }
        Ok(balances)
    }
}

/// The beginning of the day so many days ago, in milliseconds.
fn begin(now: &Zoned, days: i64) -> i64 {
    let date = now.date().saturating_sub(jiff::Span::new().days(days));
    date.to_zoned(now.time_zone().clone())
        .map_or(i64::MIN, |at| at.timestamp().as_millisecond())
}

struct Books<'b> {
    catalogue: &'b dyn Catalogue,
    zone: &'b TimeZone,
    prices: &'b Prices,
}

impl Books<'_> {
    fn total(&self, since: i64, directories: Option<&[String]>) -> Result<Spent> {
        let filter = Filter {
            since: Some(since),
            ..Filter::default()
        };
        let table = self.catalogue.stats(&Question {
            filter: &filter,
            directories,
            by: &[],
            zone: self.zone,
            prices: self.prices,
        })?;
        Ok(table.total.spent.unwrap_or_default())
    }

    /// The sessions that something was spent on since then and that exceed their limit.
    fn sessions(&self, since: i64, limit: Money) -> Result<Vec<Balance>> {
        let table = |since| {
            let filter = Filter {
                since,
                ..Filter::default()
            };
            self.catalogue.stats(&Question {
                filter: &filter,
                directories: None,
                by: &[By::Session],
                zone: self.zone,
                prices: self.prices,
            })
        };
        let lately = table(Some(since))?;
        if lately.rows.is_empty() {
            return Ok(Vec::new());
        }
        let mut exceeded = Vec::new();
        for row in table(None)?.rows {
            let (Some(spent), Some(session)) = (row.spent, row.key.into_iter().next()) else {
                continue;
            };
            let went_on = lately
                .rows
                .iter()
                .any(|row| row.key.first() == Some(&session));
            if went_on && spent.cost > limit {
                exceeded.push(Balance {
                    of: Limited::Session(session),
                    limit,
                    spent,
                });
            }
        }
        Ok(exceeded)
    }
}
