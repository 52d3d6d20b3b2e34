//! What a call to a model cost.
//!
//! Agents write tokens into their logs, seldom money. This crate knows what tokens cost: a table of prices with
//! the dates from which they hold, which is a file of this crate (`data/prices.tsv`), and what people
//! correct or add in their configuration. It reads no file, asks no network and has no clock.
//!
//! ```
//! use quipu_model::{Service, Timestamp, Usage};
//! use quipu_prices::{Bucket, Context, Prices};
//!
//! let prices = Prices::builtin();
//! let at: Timestamp = "2026-01-02T03:04:05Z".parse().unwrap();
//! let usage = Usage {
//!     input: Some(1_000),
//!     cache_read: Some(20_000),
//!     output: Some(500),
//!     ..Usage::default()
//! };
//! let context = Context::of_usage(&usage);
//! let quote = prices
//!     .quote("claude-opus-4-5-20251101", at, Service::Standard, context)
//!     .unwrap();
//! assert_eq!((quote.provider(), quote.model()), ("anthropic", "claude-opus-4-5"));
//!
//! let cost = quote.cost(&usage);
//! assert_eq!(cost.of(Bucket::CacheRead).to_string(), "0.01");
//! assert_eq!(cost.total().to_string(), "0.0275");
//!
//! // What is not known has no price. It is not free.
//! assert!(prices.quote("my-model", at, Service::Standard, context).is_err());
//! ```
//!
//! # What it promises
//!
//! * **Sums are exact.** A price is a whole number of 1e-18 dollars per token ([`Rate`]), a cost is a whole number
//!   of the same ([`Money`](quipu_model::Money)). Within one quote the cost of a sum is the sum of the costs, so
//!   calls may be summed first and priced once: by model, service, [`Context`] and time.
//! * **Old calls keep old prices.** A [`Quote`] is for an instant, and says from when its price holds.
//! * **Nothing is guessed in silence.** An unknown model has no price ([`Unpriced`]). A name that several sell, at
//!   prices of their own, has none until someone says who it was. If a service has no price of its own, the
//!   usual price is taken and [`Quote::falls_back`] says so; if a kind of tokens has none, [`Cost::assumed`] does.
//! * **It is cheap.** The table is never read as a whole: its lines are sorted, and a lookup is a binary search
//!   in text, some microseconds long. [`Prices::builtin`] does nothing at all.
//!
//! # Where to look
//!
//! | | |
//! |---|---|
//! | [`Prices`] | the table with someone's corrections: names in, quotes out |
//! | [`Quote`], [`Cost`] | one price, and what some usage costs by it |
//! | [`Context`] | classes of prompts by length, since long ones cost more |
//! | [`Overrides`] | the `[prices]` of `config.toml` |
//! | `names.rs` | from the names in logs to the models of the table |
//! | `table.rs` | the lines of the table |
//!
//! Which rule finds what, what the dates mean and where the prices come from is in `docs/prices.md`.
//! `cargo xtask prices` makes the table again.

mod context;
mod error;
mod names;
mod overrides;
mod prices;
mod quote;
mod rate;
mod table;

pub use context::Context;
pub use error::Unpriced;
pub use overrides::{InvalidOverrides, Overrides};
pub use prices::Prices;
pub use quote::{Bucket, Buckets, Cost, Part, Quote, Rule};
pub use rate::{InvalidRate, Rate};
pub use table::{Hours, Source};
