//! What sessions come to: tokens, dollars, turns, tools and time, however they are grouped.
//!
//! Everything here is a sum over rows of the catalogue (`spend`, `activity`, `tool_use`), each of which is
//! for one transcript and one quarter of an hour. Copies are not in them, so a sum over any of them counts
//! each call once. Dollars are never kept: they are computed from tokens when they are asked for, with the
//! prices of the day the tokens were spent, and exactly. What has no price is counted apart, never as zero.
//!
//! | module | what it owns |
//! |---|---|
//! | `table` | sums by group, and their order |
//! | `facts` | reading the catalogue |
//! | `sessions` | what single sessions came to, many at once |
//! | `calendar` | which day, week and month a slot of time is in |
//! | `cost` | what tokens cost, and which do not say |
//! | `compare` | the sums that logs have of their own, and why they differ |
//! | `explain` | the calls behind a figure, read from the archive |
//! | `logs` | the same figures from logs, without a store |
//! | `waste` | what need not have been paid for |
//! | `budget` | limits, and whether they hold |

mod budget;
mod calendar;
mod compare;
mod cost;
mod explain;
mod facts;
mod logs;
mod sessions;
mod table;
mod waste;

#[cfg(test)]
mod money;
#[cfg(test)]
mod tests;

pub use budget::{Balance, Budgets, Limited};
pub use compare::{Compared, Reason};
pub(crate) use cost::Pricer;
pub use cost::{PricedBy, Spent, Unpriced};
pub use explain::{Call, Explained, LeftOut, Why};
pub(crate) use facts::{slots, subjects};
pub use logs::{LogsRead, from_logs};
pub use sessions::Figures;
pub use table::{Did, Row, Session, Table};
pub(crate) use table::{Of, Subject};
pub use waste::{Waste, Wasted, WastefulSession};

use std::path::Path;

use jiff::tz::TimeZone;
use quipu_prices::Prices;

use crate::catalogue::{Catalogue, Filter, Result, Slots};

/// What figures can be grouped by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum By {
    /// The day, in the zone that is asked for.
    Day,
    /// The week, as ISO 8601 counts them.
    Week,
    /// The month.
    Month,
    /// The agent.
    Agent,
    /// The model.
    Model,
    /// The directory the session ran in, or the repository where the log does not tell.
    Project,
    /// The branch.
    Branch,
    /// The tool. Tokens are not tools', so they are not shown.
    Tool,
    /// The session; what its sub-agents did is its own.
    Session,
    /// The sub-agent.
    Subagent,
}

impl By {
    /// All of them.
    pub const ALL: [Self; 10] = [
        Self::Day,
        Self::Week,
        Self::Month,
        Self::Agent,
        Self::Model,
        Self::Project,
        Self::Branch,
        Self::Tool,
        Self::Session,
        Self::Subagent,
    ];

    /// The word for it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Day => "day",
            Self::Week => "week",
            Self::Month => "month",
            Self::Agent => "agent",
            Self::Model => "model",
            Self::Project => "project",
            Self::Branch => "branch",
            Self::Tool => "tool",
            Self::Session => "session",
            Self::Subagent => "subagent",
        }
    }

    /// Whether it is a part of the calendar.
    pub const fn is_time(self) -> bool {
        matches!(self, Self::Day | Self::Week | Self::Month)
    }

    /// Whether it is a matter of the transcript, not of its single rows.
    const fn is_of_transcript(self) -> bool {
        matches!(
            self,
            Self::Agent | Self::Project | Self::Branch | Self::Session | Self::Subagent
        )
    }
}

/// At most so many at once.
pub const MOST_GROUPS: usize = 4;

/// Why figures cannot be had in this way.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum Ungroupable {
    /// Tools have no model.
    #[error("tools cannot be told apart by model: a log does not say which model a call was for")]
    ToolsByModel,
    /// Too many.
    #[error("at most {MOST_GROUPS} groups at once")]
    TooMany,
    /// Twice the same.
    #[error("{name} is there twice", name = .0.as_str())]
    Twice(By),
}

/// How figures are asked for.
#[derive(Debug, Clone)]
pub struct Question<'q> {
    /// Of which sessions. Times are of the calls, not of the sessions, to the quarter of an hour; copies are
    /// never counted; sub-agents always; what others submitted when the filter says so.
    pub filter: &'q Filter,
    /// Only of sessions in just these directories.
    pub directories: Option<&'q [String]>,
    /// Grouped by what.
    pub by: &'q [By],
    /// Where days begin.
    pub zone: &'q TimeZone,
    /// At which prices.
    pub prices: &'q Prices,
}

impl Question<'_> {
    /// Whether it can be answered.
    pub fn check(&self) -> std::result::Result<(), Ungroupable> {
        let has = |by| self.by.contains(&by);
        if self.by.len() > MOST_GROUPS {
            return Err(Ungroupable::TooMany);
        }
        for (at, by) in self.by.iter().enumerate() {
            if self.by[..at].contains(by) {
                return Err(Ungroupable::Twice(*by));
            }
        }
        if has(By::Tool) && (has(By::Model) || self.filter.model.is_some()) {
            return Err(Ungroupable::ToolsByModel);
        }
        Ok(())
    }
}

impl dyn Catalogue + '_ {
    /// What the calls of one transcript cost, copies not counted, by the prices of their days.
    pub fn spent(&self, transcript: i64, prices: &Prices) -> Result<Spent> {
        let (mut pricer, mut sum) = (cost::Pricer::new(prices), Spent::default());
        let mut models: Vec<String> = Vec::new();
        self.each_spend(&Slots::Of(transcript), None, &mut |row| {
            let known = models.iter().position(|model| model == row.model);
            let model = known.unwrap_or_else(|| {
                models.push(row.model.to_owned());
                models.len() - 1
            });
            let model = u32::try_from(model).unwrap_or(u32::MAX);
            sum.add(&sessions::priced(&mut pricer, model, row));
        })?;
        Ok(sum)
    }

    /// The figures that are asked for. What cannot be answered ([`Question::check`]) comes out empty.
    pub fn stats(&self, question: &Question<'_>) -> Result<Table> {
        facts::table(self, question)
    }

    /// The directories that sessions ran in which are this one or below it.
    pub fn directories_below(&self, directory: &str) -> Result<Vec<String>> {
        let above = Path::new(directory);
        let mut all = self.directories()?;
        all.retain(|it| Path::new(it).starts_with(above));
        Ok(all)
    }
}
