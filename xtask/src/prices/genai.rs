//! The data of genai-prices.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context as _, Result, bail, ensure};
use quipu_model::Money;
use serde::Deserialize;

use super::rules::{self, Clause};
use super::table::{Catalogue, GENAI, Line, Model, Provider, Rates, Span, merged};

/// Providers of voices and vectors, and names that no agent can write.
const LEFT_OUT: [&str; 3] = ["elevenlabs", "openai-decisions", "voyageai"];
const ROUTES: &str = "huggingface_";

/// What its maker gives away and does not sell. A name like this says nothing of who ran the model.
const NOT_SOLD: [(&str, &str); 1] = [("openai", "gpt-oss")];

/// Words in the names of models that do not write text.
const NOT_TEXT: [&str; 20] = [
    "audio",
    "embed",
    "embedding",
    "guard",
    "image",
    "live",
    "lyria",
    "moderation",
    "ocr",
    "realtime",
    "rerank",
    "robotics",
    "safeguard",
    "sonic",
    "speech",
    "transcribe",
    "tts",
    "video",
    "voice",
    "whisper",
];

#[derive(Deserialize)]
struct TheirProvider {
    id: String,
    #[serde(default)]
    fallback_model_providers: Vec<String>,
    models: Vec<TheirModel>,
}

#[derive(Deserialize)]
struct TheirModel {
    id: String,
    r#match: Clause,
    prices: Prices,
    #[serde(default)]
    price_variants: Vec<Variant>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Prices {
    Many(Vec<Conditional>),
    One(Box<ModelPrice>),
}

#[derive(Deserialize)]
struct Conditional {
    constraint: Option<Constraint>,
    prices: ModelPrice,
}

#[derive(Deserialize)]
#[serde(tag = "is")]
enum Constraint {
    #[serde(rename = "StartDateConstraint")]
    Day { start_date: String },
    #[serde(rename = "TimeOfDateConstraint")]
    Hours {
        start_time: String,
        end_time: String,
    },
}

#[derive(Deserialize)]
struct Variant {
    when: BTreeMap<String, String>,
    prices: ModelPrice,
    constraint: Option<Constraint>,
}

#[derive(Clone, Default, Deserialize)]
struct ModelPrice {
    input_mtok: Option<Price>,
    cache_read_mtok: Option<Price>,
    cache_write_mtok: Option<Price>,
    cache_write_1h_mtok: Option<Price>,
    output_mtok: Option<Price>,
    output_reasoning_mtok: Option<Price>,
    web_searches_kcount: Option<Price>,
    // What is charged for a call beside its tokens. A sum of tokens would be too small.
    requests_kcount: Option<Price>,
    output_citation_mtok: Option<Price>,
}

#[derive(Clone, Deserialize)]
#[serde(untagged)]
enum Price {
    Flat(String),
    Tiered { base: String, tiers: Vec<Tier> },
}

#[derive(Clone, Deserialize)]
struct Tier {
    start: u64,
    price: String,
}

/// Reads their providers.
pub(crate) fn read(json: &str) -> Result<Catalogue> {
    let theirs: Vec<TheirProvider> = serde_json::from_str(json)?;
    let mut catalogue = Catalogue::new();
    for provider in theirs {
        if provider.id.starts_with(ROUTES) || LEFT_OUT.contains(&provider.id.as_str()) {
            continue;
        }
        let mut ours = Provider {
            resells: provider.fallback_model_providers,
            ..Provider::default()
        };
        for model in &provider.models {
            let about = || format!("{} of {}", model.id, provider.id);
            if writes_text(&model.id) && is_sold(&provider.id, &model.id) {
                let names = rules::names(&model.r#match).with_context(about)?;
                if let Some(priced) = priced(model).with_context(about)? {
                    ours.add(&model.id, names, priced);
                }
            }
        }
        catalogue.insert(provider.id, ours);
    }
    Ok(catalogue)
}

/// Whether a model is one that agents talk to, by its name.
pub(crate) fn writes_text(id: &str) -> bool {
    let id = id.to_lowercase();
    let mut words = id.split(|c: char| !c.is_ascii_alphanumeric());
    !id.contains("nano-banana") && !words.any(|word| NOT_TEXT.contains(&word))
}

fn is_sold(provider: &str, id: &str) -> bool {
    !NOT_SOLD
        .iter()
        .any(|(theirs, start)| *theirs == provider && id.starts_with(start))
}

/// The prices of a model, unless it has none that tokens are charged by.
fn priced(model: &TheirModel) -> Result<Option<Model>> {
    let standard = spans(model)?;
    let lines = || standard.iter().flat_map(|(_, windows)| windows);
    if lines().any(|(_, price)| !price.is_whole()) {
        // An empty list of prices is no price, but for what is called free.
        let is_free = model.id.ends_with(":free") && lines().all(|(_, price)| price.is_empty());
        return Ok(is_free.then(free));
    }
    let mut ours = Model::default();
    let spread_out = |windows: &Windows| -> Result<Vec<Line>> {
        let lists = windows.iter().map(|(hours, price)| price.lines(hours));
        Ok(lists.collect::<Result<Vec<_>>>()?.concat())
    };
    for (from, windows) in &standard {
        let span = Span {
            from: from.clone(),
            lines: spread_out(windows)?,
        };
        ours.services.entry("standard").or_default().push(span);
    }
    for (service, when) in [
        ("batch", ("processing", "batch")),
        ("flex", ("service_tier", "flex")),
        ("priority", ("service_tier", "priority")),
        ("fast", ("service_tier", "fast")),
    ] {
        for (from, windows) in served(model, &standard, when)? {
            let lines = spread_out(&windows)?;
            let span = Span { from, lines };
            ours.services.entry(service).or_default().push(span);
        }
    }
    for spans in ours.services.values_mut() {
        *spans = merged(std::mem::take(spans));
    }
    Ok(Some(ours))
}

fn free() -> Model {
    let zero = Some(Money::ZERO);
    let rates = Rates {
        input: zero,
        cache_read: zero,
        write_5m: zero,
        output: zero,
        ..Rates::default()
    };
    let span = Span {
        from: String::new(),
        lines: vec![Line {
            hours: String::new(),
            above: 0,
            rates,
            source: GENAI,
        }],
    };
    Model {
        services: BTreeMap::from([("standard", vec![span])]),
    }
}

/// Prices by when in the day; the first has no hours and holds when no other does.
type Windows = Vec<(String, ModelPrice)>;

/// The usual prices, by the date they begin.
///
/// Prices for some hours of the day come without a date. They are taken to hold from the date of the price
/// that is listed before them, since they are multiples of that one.
fn spans(model: &TheirModel) -> Result<Vec<(String, Windows)>> {
    let list = match &model.prices {
        Prices::One(price) => {
            return Ok(vec![(
                String::new(),
                vec![(String::new(), (**price).clone())],
            )]);
        }
        Prices::Many(list) => list,
    };
    let mut spans: Vec<(String, Windows)> = Vec::new();
    for conditional in list {
        let price = conditional.prices.clone();
        match &conditional.constraint {
            Some(Constraint::Hours {
                start_time,
                end_time,
            }) => {
                let Some((_, windows)) = spans.last_mut() else {
                    bail!("hours before any price");
                };
                windows.push((format!("{start_time}-{end_time}"), price));
            }
            Some(Constraint::Day { start_date }) => {
                ensure!(!spans.is_empty(), "a date before any price");
                spans.push((start_date.clone(), vec![(String::new(), price)]));
            }
            None => {
                ensure!(spans.is_empty(), "a price for all time behind another");
                spans.push((String::new(), vec![(String::new(), price)]));
            }
        }
    }
    ensure!(
        spans.is_sorted_by(|a, b| a.0 < b.0),
        "the dates are not in order"
    );
    Ok(spans)
}

/// The prices of a service: what it says, and what it does not say as usual. By the date they begin; before the
/// first there is none.
fn served(
    model: &TheirModel,
    standard: &[(String, Windows)],
    (key, word): (&str, &str),
) -> Result<Vec<(String, Windows)>> {
    let mut variants = Vec::new();
    for variant in &model.price_variants {
        if variant.when.len() != 1 || variant.when.get(key).map(String::as_str) != Some(word) {
            continue;
        }
        let from = match &variant.constraint {
            None => "",
            Some(Constraint::Day { start_date }) => start_date,
            Some(Constraint::Hours { .. }) => bail!("{word} by hours"),
        };
        variants.push((from, &variant.prices));
    }
    let Some(first) = variants.iter().map(|(from, _)| *from).min() else {
        return Ok(Vec::new());
    };
    let dates: BTreeSet<&str> = variants
        .iter()
        .map(|(from, _)| *from)
        .chain(standard.iter().map(|(from, _)| from.as_str()))
        .filter(|from| *from >= first)
        .collect();
    let mut spans = Vec::new();
    for date in dates {
        let Some((_, usual)) = standard.iter().rfind(|(from, _)| from.as_str() <= date) else {
            bail!("{word} before any price");
        };
        let mut windows = usual.clone();
        for (_, price) in &mut windows {
            // Of several that hold, the one listed first is asked first.
            for (_, variant) in variants.iter().rev().filter(|(from, _)| *from <= date) {
                price.take(variant);
            }
        }
        spans.push((date.to_owned(), windows));
    }
    Ok(spans)
}

impl ModelPrice {
    /// Whether a call can be priced by it.
    fn is_whole(&self) -> bool {
        self.input_mtok.is_some()
            && self.output_mtok.is_some()
            && self.requests_kcount.is_none()
            && self.output_citation_mtok.is_none()
    }

    fn is_empty(&self) -> bool {
        self.input_mtok.is_none() && self.output_mtok.is_none() && self.requests_kcount.is_none()
    }

    /// Takes over what another says.
    fn take(&mut self, other: &Self) {
        for (mine, theirs) in [
            (&mut self.input_mtok, &other.input_mtok),
            (&mut self.cache_read_mtok, &other.cache_read_mtok),
            (&mut self.cache_write_mtok, &other.cache_write_mtok),
            (&mut self.cache_write_1h_mtok, &other.cache_write_1h_mtok),
            (&mut self.output_mtok, &other.output_mtok),
            (
                &mut self.output_reasoning_mtok,
                &other.output_reasoning_mtok,
            ),
            (&mut self.web_searches_kcount, &other.web_searches_kcount),
        ] {
            if theirs.is_some() {
                mine.clone_from(theirs);
            }
        }
    }

    /// One line for each length of prompts that any of its prices changes at.
    fn lines(&self, hours: &str) -> Result<Vec<Line>> {
        let all = [
            &self.input_mtok,
            &self.cache_read_mtok,
            &self.cache_write_mtok,
            &self.cache_write_1h_mtok,
            &self.output_mtok,
            &self.output_reasoning_mtok,
            &self.web_searches_kcount,
        ];
        let mut starts = BTreeSet::from([0]);
        for price in all.into_iter().flatten() {
            if let Price::Tiered { tiers, .. } = price {
                starts.extend(tiers.iter().map(|tier| tier.start));
            }
        }
        let line = |above| {
            let at = |price: &Option<Price>| price.as_ref().map(|p| p.at(above)).transpose();
            Ok(Line {
                hours: hours.to_owned(),
                above,
                source: GENAI,
                rates: Rates {
                    input: at(&self.input_mtok)?,
                    cache_read: at(&self.cache_read_mtok)?,
                    write_5m: at(&self.cache_write_mtok)?,
                    write_1h: at(&self.cache_write_1h_mtok)?,
                    output: at(&self.output_mtok)?,
                    reasoning: at(&self.output_reasoning_mtok)?,
                    searches: at(&self.web_searches_kcount)?,
                },
            })
        };
        starts.into_iter().map(line).collect()
    }
}

impl Price {
    fn at(&self, above: u64) -> Result<Money> {
        let text = match self {
            Self::Flat(text) => text,
            Self::Tiered { base, tiers } => tiers
                .iter()
                .filter(|tier| tier.start <= above)
                .max_by_key(|tier| tier.start)
                .map_or(base, |tier| &tier.price),
        };
        Money::parse(text).with_context(|| format!("{text} is no price"))
    }
}
