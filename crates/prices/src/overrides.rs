//! Prices and aliases of one's own.
//!
//! ```toml
//! [prices.aliases]
//! "my-gateway/opus" = "claude-opus-4-5"
//!
//! [[prices.model]]
//! name = "my-gateway/*"
//! input = 3
//! output = "15"
//!
//! [[prices.model]]
//! name = "ollama/*"
//! free = true
//! ```

use std::collections::BTreeMap;
use std::fmt;

use jiff::civil::Date;
use quipu_model::Service;
use serde::Deserialize;
use serde::de::value::MapAccessDeserializer;
use serde::de::{self, Deserializer, Error as _, Visitor};

use crate::context::Context;
use crate::names::normal;
use crate::rate::{Rate, Rates};
use crate::table::{Row, Source};

/// The `[prices]` of a configuration.
///
/// ```
/// use quipu_model::{Service, Timestamp, Usage};
/// use quipu_prices::{Context, Overrides, Prices};
///
/// let overrides = Overrides::parse(r#"
///     [aliases]
///     "my-gateway/opus" = "claude-opus-4-5"
///
///     [[model]]
///     name = "ollama/*"
///     free = true
/// "#).unwrap();
/// let prices = Prices::builtin().with_overrides(&overrides);
/// let quote = |model| prices.quote(model, Timestamp::UNIX_EPOCH, Service::Standard, Context::default());
///
/// assert_eq!(quote("my-gateway/opus").unwrap().model(), "claude-opus-4-5");
/// let usage = Usage { output: Some(1_000), ..Usage::default() };
/// assert_eq!(quote("ollama/llama3").unwrap().cost(&usage).total().to_string(), "0");
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(try_from = "Written")]
pub struct Overrides {
    aliases: Vec<(Pattern, String)>,
    /// Models in the order of the file, each with all rows of the same name.
    models: Vec<(Pattern, Vec<Row>)>,
}

/// What is wrong with a configuration, with the place where it is.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("{0}")]
pub struct InvalidOverrides(toml::de::Error);

impl Overrides {
    /// Reads the contents of the table `[prices]`, as TOML.
    pub fn parse(text: &str) -> Result<Self, InvalidOverrides> {
        toml::from_str(text).map_err(InvalidOverrides)
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.aliases.is_empty() && self.models.is_empty()
    }

    /// Takes over others, which come first.
    pub(crate) fn extend(&mut self, others: &Self) {
        self.aliases.splice(0..0, others.aliases.iter().cloned());
        self.models.splice(0..0, others.models.iter().cloned());
    }

    /// What stands for a name in its normal form.
    pub(crate) fn alias(&self, name: &str) -> Option<&str> {
        best(&self.aliases, name).map(|(_, target)| target.as_str())
    }

    /// The prices for a name in its normal form, and the pattern they are under.
    pub(crate) fn rows(&self, name: &str) -> Option<(&str, &[Row])> {
        best(&self.models, name).map(|(pattern, rows)| (pattern.0.as_str(), rows.as_slice()))
    }
}

/// The entry for a name: the one with this very name, else the first whose pattern fits.
fn best<'a, T>(entries: &'a [(Pattern, T)], name: &str) -> Option<&'a (Pattern, T)> {
    let exact = entries.iter().find(|(pattern, _)| pattern.0 == name);
    exact.or_else(|| entries.iter().find(|(pattern, _)| pattern.fits(name)))
}

/// A name in its normal form, in which `*` stands for anything.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Pattern(String);

impl Pattern {
    fn fits(&self, name: &str) -> bool {
        let Some((start, others)) = self.0.split_once('*') else {
            return self.0 == name;
        };
        let Some(mut rest) = name.strip_prefix(start) else {
            return false;
        };
        // Each piece between two stars is taken at its first place; the last must be the end.
        let mut pieces = others.split('*').peekable();
        while let Some(piece) = pieces.next() {
            if pieces.peek().is_none() {
                return rest.ends_with(piece);
            }
            match rest.find(piece) {
                Some(at) => rest = &rest[at + piece.len()..],
                None => return false,
            }
        }
        false
    }
}

impl<'de> Deserialize<'de> for Pattern {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let text = String::deserialize(from)?;
        match normal(&text) {
            name if name.is_empty() => Err(D::Error::custom("the name of a model is empty")),
            name => Ok(Self(name)),
        }
    }
}

/// The table, as it is written.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    #[serde(default)]
    aliases: BTreeMap<Pattern, Pattern>,
    #[serde(default)]
    model: Vec<Entry>,
}

/// One price.
struct Entry {
    name: Pattern,
    row: Row,
}

impl<'de> Deserialize<'de> for Entry {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_map(EntryVisitor)
    }
}

/// Looks for mistakes while the entry is being read, so that they are reported with its place.
struct EntryVisitor;

impl<'de> Visitor<'de> for EntryVisitor {
    type Value = Entry;

    fn expecting(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str("the price of a model")
    }

    fn visit_map<A: de::MapAccess<'de>>(self, map: A) -> Result<Entry, A::Error> {
        let model = WrittenModel::deserialize(MapAccessDeserializer::new(map))?;
        let wrong = |what| A::Error::custom(format!("model {:?}: {what}", model.name.0));
        let row = model.row().map_err(wrong)?;
        let name = model.name;
        Ok(Entry { name, row })
    }
}

/// One price, as it is written.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenModel {
    name: Pattern,
    #[serde(default)]
    free: bool,
    from: Option<Day>,
    #[serde(default)]
    service: ServiceWord,
    #[serde(default)]
    above: Above,
    input: Option<WrittenRate>,
    cache_read: Option<WrittenRate>,
    cache_write: Option<WrittenRate>,
    cache_write_1h: Option<WrittenRate>,
    output: Option<WrittenRate>,
    reasoning: Option<WrittenRate>,
    /// Of a thousand searches of the web.
    searches: Option<WrittenRate>,
}

impl TryFrom<Written> for Overrides {
    type Error = String;

    fn try_from(written: Written) -> Result<Self, String> {
        for target in written.aliases.values() {
            if written.aliases.contains_key(target) {
                return Err(format!("aliases: {:?} is itself an alias", target.0));
            }
        }
        let mut overrides = Self::default();
        for (alias, target) in written.aliases {
            overrides.aliases.push((alias, target.0));
        }
        for Entry { name, row } in written.model {
            let known = overrides
                .models
                .iter_mut()
                .find(|(other, _)| *other == name);
            let Some((_, rows)) = known else {
                overrides.models.push((name, vec![row]));
                continue;
            };
            let key = |row: &Row| (row.service, row.from, row.above);
            if rows.iter().any(|other| key(other) == key(&row)) {
                let what = "two prices for the same from, service and above";
                return Err(format!("model {:?}: {what}", name.0));
            }
            rows.push(row);
        }
        for (name, rows) in &overrides.models {
            check_bases(rows).map_err(|what| format!("model {:?}: {what}", name.0))?;
        }
        Ok(overrides)
    }
}

/// Long prompts have prices beside those of short ones, not instead of them.
fn check_bases(rows: &[Row]) -> Result<(), &'static str> {
    let is_base = |row: &Row, other: &Row| {
        other.above == 0 && (other.service, other.from) == (row.service, row.from)
    };
    if rows
        .iter()
        .all(|row| rows.iter().any(|other| is_base(row, other)))
    {
        Ok(())
    } else {
        Err("a price with above needs one without, for the same from and service")
    }
}

impl WrittenModel {
    fn row(&self) -> Result<Row, &'static str> {
        let rate = |written: &Option<WrittenRate>| written.as_ref().map(|written| written.0);
        let parts = [
            &self.input,
            &self.cache_read,
            &self.cache_write,
            &self.cache_write_1h,
            &self.output,
            &self.reasoning,
            &self.searches,
        ];
        let rates = match (self.free, rate(&self.input), rate(&self.output)) {
            (true, ..) if parts.into_iter().any(Option::is_some) => {
                return Err("free and a price");
            }
            (true, ..) => Rates::FREE,
            (false, Some(input), Some(output)) => Rates {
                input,
                cache_read: rate(&self.cache_read),
                write_5m: rate(&self.cache_write),
                write_1h: rate(&self.cache_write_1h),
                output,
                reasoning: rate(&self.reasoning),
                searches: rate(&self.searches).map(|rate| rate.times(1_000_000)),
            },
            (false, None, _) => return Err("input is missing; what costs nothing is free = true"),
            (false, _, None) => return Err("output is missing; what costs nothing is free = true"),
        };
        Ok(Row {
            service: self.service.0,
            from: self.from.as_ref().map(|day| day.0),
            hours: None,
            above: self.above.0,
            rates,
            source: Source::Config,
        })
    }
}

/// A price per million tokens: a number, or the text of one.
struct WrittenRate(Rate);

impl<'de> Deserialize<'de> for WrittenRate {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_any(RateVisitor)
    }
}

struct RateVisitor;

impl Visitor<'_> for RateVisitor {
    type Value = WrittenRate;

    fn expecting(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str("a price in dollars per million tokens")
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<WrittenRate, E> {
        Rate::per_million(text).map(WrittenRate).map_err(E::custom)
    }

    fn visit_i64<E: de::Error>(self, number: i64) -> Result<WrittenRate, E> {
        self.visit_str(&number.to_string())
    }

    fn visit_u64<E: de::Error>(self, number: u64) -> Result<WrittenRate, E> {
        self.visit_str(&number.to_string())
    }

    // The shortest text of a binary fraction is the decimal that was written.
    fn visit_f64<E: de::Error>(self, number: f64) -> Result<WrittenRate, E> {
        self.visit_str(&number.to_string())
    }
}

/// A day, as a date of TOML or as text.
struct Day(Date);

impl<'de> Deserialize<'de> for Day {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum Either {
            Text(String),
            Date(toml::value::Datetime),
        }
        let text = match Either::deserialize(from) {
            Ok(Either::Text(text)) => text,
            Ok(Either::Date(date)) => date.to_string(),
            Err(_) => return Err(D::Error::custom("from is a date, as 2026-03-13")),
        };
        let date = text
            .parse()
            .ok()
            .filter(|_| text.len() == "2026-03-13".len());
        date.map(Self)
            .ok_or_else(|| D::Error::custom("from is a date, as 2026-03-13"))
    }
}

#[derive(Default)]
struct ServiceWord(Service);

impl<'de> Deserialize<'de> for ServiceWord {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let word = String::deserialize(from)?;
        let known = Service::ALL.iter().find(|known| known.as_str() == word);
        known.copied().map(Self).ok_or_else(|| {
            let words = Service::ALL.map(Service::as_str).join(", ");
            D::Error::custom(format!("service is one of {words}"))
        })
    }
}

/// The length that prompts must exceed. It must be one that tells classes of prompts apart, since calls are
/// summed by class.
#[derive(Default)]
struct Above(u64);

impl<'de> Deserialize<'de> for Above {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let above = u64::deserialize(from)?;
        if Context::is_bound(above) {
            return Ok(Self(above));
        }
        let mut bounds: Vec<_> = Context::all().map(Context::above).collect();
        bounds.sort_unstable();
        let bounds: Vec<_> = bounds.iter().map(u64::to_string).collect();
        let bounds = bounds.join(", ");
        Err(D::Error::custom(format!("above is one of {bounds}")))
    }
}

#[cfg(test)]
mod tests;
