//! The data of `LiteLLM`, for what genai-prices does not have.
//!
//! It has no dates, so it is asked last: for a provider that the other does not know, for models that their
//! maker sells and the other does not list, and for services. Where both list a model, the other is right.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context as _, Result};
use quipu_model::Money;
use serde_json::value::RawValue;

use super::genai::writes_text;
use super::table::{BOTH, Catalogue, LITELLM, Line, Model, Name, Rates, Span};

/// Their words for the makers of models, and ours.
const MAKERS: [(&str, &str); 10] = [
    ("anthropic", "anthropic"),
    ("dashscope", "alibaba"),
    ("deepseek", "deepseek"),
    ("gemini", "google"),
    ("minimax", "minimax"),
    ("mistral", "mistral"),
    ("moonshot", "moonshotai"),
    ("openai", "openai"),
    ("xai", "x-ai"),
    ("zai", "zai"),
];

/// Lengths of prompts that their keys name, in thousands.
const TIERS: [u64; 7] = [32, 100, 128, 200, 256, 272, 512];

const SERVICES: [(&str, &str); 3] = [
    ("batch", "_batches"),
    ("flex", "_flex"),
    ("priority", "_priority"),
];

type Fields = BTreeMap<String, Box<RawValue>>;

/// Adds what is missing to a catalogue. Gives the models on whose price of a day the two differ, for someone
/// to look at.
pub(crate) fn add(json: &str, day: &str, to: &mut Catalogue) -> Result<BTreeSet<String>> {
    let mut differ = BTreeSet::new();
    let theirs: BTreeMap<String, Fields> = serde_json::from_str(json)?;
    for (key, fields) in &theirs {
        let word =
            |name: &str| -> Option<&str> { serde_json::from_str(fields.get(name)?.get()).ok() };
        let maker = MAKERS
            .iter()
            .find(|(word_, _)| word("litellm_provider") == Some(word_));
        let Some((prefix, provider)) = maker else {
            continue;
        };
        let name = key
            .strip_prefix(prefix)
            .and_then(|name| name.strip_prefix('/'));
        let name = name.unwrap_or(key).to_lowercase();
        let is_chat = matches!(word("mode"), Some("chat" | "responses"));
        if !is_chat || name.contains('/') || !writes_text(&name) {
            continue;
        }
        let lines = lines(fields, "").with_context(|| key.clone())?;
        if !is_priced(&lines) {
            continue;
        }
        let ours = to.entry((*provider).to_owned()).or_default();
        if ours.knows(&name) {
            if let Some(model) = ours.models.get_mut(&name) {
                if !agrees(model, &lines, day) {
                    differ.insert(format!("{provider}/{name}"));
                }
                add_services(fields, &lines, model).with_context(|| key.clone())?;
            }
            continue;
        }
        let mut model = Model::default();
        model
            .services
            .insert("standard", vec![since_ever(lines.clone())]);
        add_services(fields, &lines, &mut model).with_context(|| key.clone())?;
        let own = Name {
            name: name.clone(),
            kind: '=',
        };
        ours.add(&name, vec![own], model);
    }
    Ok(differ)
}

/// Whether one of the usual prices of a day is what they say.
fn agrees(model: &Model, usual: &[Line], day: &str) -> bool {
    let spans = model
        .services
        .get("standard")
        .map_or(&[][..], Vec::as_slice);
    let Some(span) = spans.iter().rfind(|span| span.from.as_str() <= day) else {
        return false;
    };
    let tokens = |line: &Line| (line.above, line.rates.input, line.rates.output);
    let mut lines = span.lines.iter();
    lines.any(|ours| usual.first().map(tokens) == Some(tokens(ours)))
}

/// Adds services to a model, where the usual price never changed and both agree on it. Only then can a price
/// without a date be trusted to be as old.
fn add_services(fields: &Fields, usual: &[Line], model: &mut Model) -> Result<()> {
    let agreed = match model.services.get("standard").map(Vec::as_slice) {
        Some([only]) => same_tokens(&only.lines, usual),
        _ => false,
    };
    if !agreed {
        return Ok(());
    }
    let mut found = Vec::new();
    for (service, suffix) in SERVICES {
        found.push((service, lines(fields, suffix)?));
    }
    if let Some(times) = fast(fields) {
        let scaled = usual.iter().map(|line| line.times(times)).collect();
        found.push(("fast", scaled));
    }
    for (service, lines) in found {
        // A service with fewer steps than the usual price has some that are not told.
        if !is_priced(&lines) || lines.len() != usual.len() {
            continue;
        }
        let spans = model.services.entry(service).or_default();
        match spans.first_mut() {
            Some(first) if first.from.is_empty() => {}
            Some(first) if contradicts(&lines, &first.lines) => spans.insert(0, since_ever(lines)),
            Some(first) => {
                first.from.clear();
                for line in &mut first.lines {
                    line.source = BOTH;
                }
            }
            None => spans.push(since_ever(lines)),
        }
    }
    Ok(())
}

/// Whether something that some lines say is not what the others say.
fn contradicts(some: &[Line], others: &[Line]) -> bool {
    some.len() != others.len()
        || some.iter().zip(others).any(|(a, b)| {
            let rates = a.rates.all().into_iter().zip(b.rates.all());
            a.above != b.above || rates.into_iter().any(|(a, b)| a.is_some() && a != b)
        })
}

fn since_ever(lines: Vec<Line>) -> Span {
    Span {
        from: String::new(),
        lines,
    }
}

/// Whether there is a price, and not nothing: they write zero for what they do not know, too.
fn is_priced(lines: &[Line]) -> bool {
    let is_something = |rate: Option<Money>| rate.is_some_and(|rate| rate > Money::ZERO);
    let whole = |line: &Line| line.rates.input.is_some() && line.rates.output.is_some();
    lines.iter().all(whole)
        && lines
            .iter()
            .any(|line| is_something(line.rates.input) || is_something(line.rates.output))
}

fn same_tokens(ours: &[Line], theirs: &[Line]) -> bool {
    ours.len() == theirs.len()
        && ours.iter().zip(theirs).all(|(a, b)| {
            (a.above, a.rates.input, a.rates.output) == (b.above, b.rates.input, b.rates.output)
        })
}

/// How many times the usual price the fast service costs, in hundredths.
fn fast(fields: &Fields) -> Option<i128> {
    let entry: Fields = serde_json::from_str(fields.get("provider_specific_entry")?.get()).ok()?;
    let hundredth = Money::parse("0.01")?.atto();
    let times = Money::parse(entry.get("fast")?.get())?.atto();
    (times % hundredth == 0).then_some(times / hundredth)
}

impl Line {
    fn times(&self, hundredths: i128) -> Self {
        let times =
            |rate: Option<Money>| rate.map(|rate| Money::from_atto(rate.atto() * hundredths / 100));
        let rates = &self.rates;
        Self {
            rates: Rates {
                input: times(rates.input),
                cache_read: times(rates.cache_read),
                write_5m: times(rates.write_5m),
                write_1h: times(rates.write_1h),
                output: times(rates.output),
                reasoning: times(rates.reasoning),
                searches: None,
            },
            hours: self.hours.clone(),
            above: self.above,
            source: self.source,
        }
    }
}

/// Their prices for a service, by the length of the prompt.
fn lines(fields: &Fields, suffix: &str) -> Result<Vec<Line>> {
    if let Some(list) = fields.get("tiered_pricing").filter(|_| suffix.is_empty()) {
        let list: Vec<Fields> = serde_json::from_str(list.get())?;
        return list.iter().map(bracket).collect();
    }
    let mut lines = Vec::new();
    for thousands in [0].into_iter().chain(TIERS) {
        let tier = match thousands {
            0 => String::new(),
            _ => format!("_above_{thousands}k_tokens"),
        };
        let rates = rates(fields, &format!("{tier}{suffix}"))?;
        if rates == Rates::default() && thousands > 0 {
            continue;
        }
        lines.push(Line {
            hours: String::new(),
            above: thousands * 1000,
            rates,
            source: LITELLM,
        });
    }
    Ok(lines)
}

fn bracket(fields: &Fields) -> Result<Line> {
    let range = fields.get("range").context("a tier without a range")?;
    let range: [f64; 2] = serde_json::from_str(range.get())?;
    // The numbers are whole, and are written with a point.
    let above = format!("{}", range[0])
        .parse()
        .context("the range of a tier")?;
    Ok(Line {
        hours: String::new(),
        above,
        rates: rates(fields, "")?,
        source: LITELLM,
    })
}

fn rates(fields: &Fields, suffix: &str) -> Result<Rates> {
    let million = |key: &str| -> Result<Option<Money>> {
        let key = format!("{key}{suffix}");
        let Some(raw) = fields.get(&key).filter(|raw| raw.get() != "null") else {
            return Ok(None);
        };
        let token = Money::parse(raw.get()).with_context(|| format!("{key} is no price"))?;
        Ok(Some(Money::from_atto(token.atto() * 1_000_000)))
    };
    Ok(Rates {
        input: million("input_cost_per_token")?,
        cache_read: million("cache_read_input_token_cost")?,
        write_5m: million("cache_creation_input_token_cost")?,
        write_1h: million("cache_creation_input_token_cost_above_1hr")?,
        output: million("output_cost_per_token")?,
        reasoning: million("output_cost_per_reasoning_token")?,
        searches: None,
    })
}
