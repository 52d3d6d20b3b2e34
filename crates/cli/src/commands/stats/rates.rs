//! The prices behind the calls of a session: what a million tokens of each kind cost, and since when.

use quipu_prices::{Bucket, Quote};
use quipu_store::stats::{Call, PricedBy};

use crate::terminal::tokens;

/// The prices that calls were found to have, each once, in the order of the calls.
#[derive(Default)]
pub(super) struct Rates<'q> {
    quotes: Vec<&'q Quote>,
}

impl<'q> Rates<'q> {
    pub(super) fn of(calls: &'q [Call]) -> Self {
        let mut rates = Self::default();
        for quote in calls.iter().filter_map(|call| call.quote.as_ref().ok()) {
            if !rates.quotes.contains(&quote) {
                rates.quotes.push(quote);
            }
        }
        rates
    }

    /// Where the price of a call is from: the number of one of these, or a word.
    pub(super) fn name(&self, call: &Call) -> String {
        match (&call.quote, call.by) {
            (Ok(quote), _) => {
                let at = self.quotes.iter().position(|known| *known == quote);
                at.map_or_else(String::new, |at| format!("[{}]", at + 1))
            }
            (Err(_), Some(PricedBy::Log)) => "as the log says".to_owned(),
            (Err(why), _) => why.to_string(),
        }
    }

    /// A line for each.
    pub(super) fn lines(&self) -> Vec<String> {
        let line = |(at, quote): (usize, &&Quote)| format!("[{}] {}", at + 1, told(quote));
        self.quotes.iter().enumerate().map(line).collect()
    }
}

/// A price in words: whose it is, since when, from where, and what a million tokens of each kind cost.
fn told(quote: &Quote) -> String {
    let mut words = vec![format!("{}/{}", quote.provider(), quote.model())];
    match (quote.service().as_str(), quote.falls_back()) {
        ("standard", None) => {}
        (_, Some(asked)) => words.push(format!("standard ({} has no price)", asked.as_str())),
        (service, None) => words.push(service.to_owned()),
    }
    if quote.above() > 0 {
        words.push(format!("prompts above {} tokens", tokens(quote.above())));
    }
    if let Some(hours) = quote.hours() {
        words.push(format!("{hours} UTC"));
    }
    words.push(match quote.from() {
        Some(day) => format!("since {day}"),
        None => "without a date".to_owned(),
    });
    let words = words.join(", ");
    let source = quote.source();
    let rates = Bucket::ALL.into_iter().filter_map(|bucket| {
        let (rate, assumed) = quote.rate(bucket);
        let name = bucket.as_str().replace('_', " ");
        let unlisted = if assumed { " (not listed)" } else { "" };
        // Reasoning is output unless it has a price of its own.
        let own = bucket != Bucket::Reasoning || rate != quote.rate(Bucket::Output).0;
        own.then(|| format!("{name} ${rate}{unlisted}"))
    });
    let rates: Vec<String> = rates.collect();
    let searches = quote.thousand_searches();
    let searches = searches.map(|sum| format!("; 1,000 web searches ${sum}"));
    format!(
        "{words} ({}): {}{}",
        source.about().unwrap_or(source.as_str()),
        rates.join(", "),
        searches.unwrap_or_default()
    )
}
