//! The lines of the table.
//!
//! Both files are sorted by their bytes and have one fact per line, with tabs between the columns. So the lines
//! with some beginning stand together, and are found by halving the text: nothing is read that was not asked
//! for. What the columns mean is in `docs/prices.md`.

use jiff::civil::Date;
use jiff::tz::TimeZone;
use quipu_model::{Money, Service, Timestamp};

use crate::context::Context;
use crate::rate::{Rate, Rates};

/// The prices.
pub(crate) const PRICES: &str = include_str!("../data/prices.tsv");
/// The names that lead to them.
pub(crate) const NAMES: &str = include_str!("../data/names.tsv");

/// Where a price is from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Source {
    /// The package genai-prices, which knows dates.
    GenaiPrices,
    /// The package `LiteLLM`, which knows none.
    LiteLlm,
    /// The price of the first, taken to hold since ever because the second says the same.
    Both,
    /// A page of the vendor, read by a person.
    Vendor,
    /// The configuration.
    Config,
}

impl Source {
    const LETTERS: [(&'static str, Self); 4] = [
        ("g", Self::GenaiPrices),
        ("l", Self::LiteLlm),
        ("gl", Self::Both),
        ("v", Self::Vendor),
    ];

    /// Its name.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::GenaiPrices => "genai-prices",
            Self::LiteLlm => "litellm",
            Self::Both => "genai-prices and litellm",
            Self::Vendor => "vendor",
            Self::Config => "config",
        }
    }

    /// Which version of it and of when, as the head of the table says.
    pub fn about(self) -> Option<&'static str> {
        let (letter, _) = Self::LETTERS.iter().find(|(_, source)| *source == self)?;
        PRICES
            .lines()
            .take_while(|line| line.starts_with('#'))
            .find_map(|line| {
                let said = line.strip_prefix("# source ")?.strip_prefix(&letter[..1])?;
                said.strip_prefix(": ")
            })
    }
}

/// Hours of the day, by UTC, in which a price holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Hours {
    from: u16,
    to: u16,
}

impl Hours {
    /// Reads `01:00-04:00`.
    fn parse(text: &str) -> Option<Self> {
        let minute = |text: &str| {
            let (hours, minutes) = text.split_once(':')?;
            let (hours, minutes): (u16, u16) = (hours.parse().ok()?, minutes.parse().ok()?);
            (hours < 24 && minutes < 60).then_some(hours * 60 + minutes)
        };
        let (from, to) = text.split_once('-')?;
        Some(Self {
            from: minute(from)?,
            to: minute(to)?,
        })
    }

    fn contains(self, minute: u16) -> bool {
        if self.from <= self.to {
            (self.from..self.to).contains(&minute)
        } else {
            minute >= self.from || minute < self.to
        }
    }
}

impl std::fmt::Display for Hours {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let [from_h, from_m, to_h, to_m] =
            [self.from / 60, self.from % 60, self.to / 60, self.to % 60];
        write!(to, "{from_h:02}:{from_m:02}-{to_h:02}:{to_m:02}")
    }
}

/// An instant, as prices see it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Moment {
    date: Date,
    minute: u16,
}

impl From<Timestamp> for Moment {
    fn from(at: Timestamp) -> Self {
        let at = at.to_zoned(TimeZone::UTC);
        let hours = at.hour().unsigned_abs();
        let minutes = at.minute().unsigned_abs();
        Self {
            date: at.date(),
            minute: u16::from(hours) * 60 + u16::from(minutes),
        }
    }
}

/// One price of a model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Row {
    pub(crate) service: Service,
    /// The first day of it, by UTC. Without one it holds until the next that has one.
    pub(crate) from: Option<Date>,
    /// When in the day it holds. Without any it holds when no other does.
    pub(crate) hours: Option<Hours>,
    /// The length that prompts must exceed.
    pub(crate) above: u64,
    pub(crate) rates: Rates,
    pub(crate) source: Source,
}

impl Row {
    /// Reads a line, behind provider and model. A test holds that every line of the table reads.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let mut columns = text.split('\t');
        let mut next = || columns.next().map(|text| (text != "-").then_some(text));
        let service = next()??;
        let from = next()?.map(str::parse);
        let hours = next()?.map(Hours::parse);
        let above = next()??.parse().ok()?;
        let mut rate = || -> Option<Option<Rate>> {
            match next()? {
                Some(text) => Rate::per_million(text).ok().map(Some),
                None => Some(None),
            }
        };
        let rates = Rates {
            input: rate()??,
            cache_read: rate()?,
            write_5m: rate()?,
            write_1h: rate()?,
            output: rate()??,
            reasoning: rate()?,
            searches: match next()? {
                Some(text) => Some(Money::parse(text)?),
                None => None,
            },
        };
        let letters = next()??;
        let (_, source) = Source::LETTERS.iter().find(|(word, _)| *word == letters)?;
        if columns.next().is_some() {
            return None;
        }
        Some(Self {
            service: *Service::ALL
                .iter()
                .find(|known| known.as_str() == service)?,
            from: from.transpose().ok()?,
            hours: match hours {
                Some(hours) => Some(hours?),
                None => None,
            },
            above,
            rates,
            source: *source,
        })
    }

    /// The one of some prices that holds: of those that began, the last; of these, the one for the hour; of
    /// these, the one for the longest prompts that are not too long.
    pub(crate) fn pick(
        rows: &[Self],
        service: Service,
        at: Moment,
        context: Context,
    ) -> Option<Self> {
        let began = |row: &&Self| row.service == service && row.from <= Some(at.date);
        let from = rows.iter().filter(began).map(|row| row.from).max()?;
        let dated = || rows.iter().filter(began).filter(|row| row.from == from);
        let hours = dated()
            .filter_map(|row| row.hours)
            .find(|hours| hours.contains(at.minute));
        dated()
            .filter(|row| row.hours == hours && row.above <= context.above())
            .max_by_key(|row| row.above)
            .copied()
    }
}

/// The prices of a model of the table.
pub(crate) fn rows(provider: &str, model: &str) -> Vec<Row> {
    let key = format!("{provider}\t{model}\t");
    lines(PRICES, &key).filter_map(Row::parse).collect()
}

/// What follows in the lines that begin with something.
pub(crate) fn lines<'a>(text: &'a str, start: &str) -> impl Iterator<Item = &'a str> {
    let found = text.get(first(text, start)..).unwrap_or_default();
    found
        .lines()
        .map_while(move |line| line.strip_prefix(start))
}

/// Where the first line stands that is not less than some text. Lines of the head are less than all others.
fn first(text: &str, start: &str) -> usize {
    let bytes = text.as_bytes();
    let (mut low, mut high) = (0, bytes.len());
    // Lines that begin before `low` are less, lines that begin at `high` or behind are not.
    while low < high {
        let middle = usize::midpoint(low, high);
        let line = memchr::memrchr(b'\n', &bytes[low..middle]).map_or(low, |at| low + at + 1);
        let end = memchr::memchr(b'\n', &bytes[line..]).map_or(bytes.len(), |at| line + at);
        let is_less = bytes[line] == b'#' || bytes[line..end] < *start.as_bytes();
        if is_less {
            low = end + 1;
        } else {
            high = line;
        }
    }
    low
}

#[cfg(test)]
mod tests;
