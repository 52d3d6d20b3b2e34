use quipu_model::Usage;

use super::*;
use crate::table::Source;

fn at(text: &str) -> Timestamp {
    text.parse().unwrap()
}

fn quote(model: &str, time: &str, service: Service, prompt: u64) -> Quote {
    Prices::builtin()
        .quote(model, at(time), service, Context::of(prompt))
        .unwrap()
}

fn input(quote: &Quote) -> String {
    quote.rate(crate::Bucket::Input).0.to_string()
}

#[test]
fn a_price_changes_on_its_day() {
    let before = quote("o3", "2025-06-09T23:59:59.999Z", Service::Standard, 10);
    let after = quote("o3", "2025-06-10T00:00:00Z", Service::Standard, 10);
    assert_eq!((input(&before).as_str(), before.from()), ("10", None));
    assert_eq!(input(&after), "2");
    assert_eq!(after.from().unwrap().to_string(), "2025-06-10");
}

#[test]
fn long_prompts_cost_more_while_they_do() {
    let model = "claude-opus-4-6";
    for (time, prompt, price, above) in [
        ("2026-03-12T12:00:00Z", 200_000, "5", 0),
        ("2026-03-12T12:00:00Z", 200_001, "10", 200_000),
        ("2026-03-13T12:00:00Z", 200_001, "5", 0),
    ] {
        let quote = quote(model, time, Service::Standard, prompt);
        assert_eq!(
            (input(&quote).as_str(), quote.above()),
            (price, above),
            "{time}"
        );
    }
}

#[test]
fn a_service_without_a_price_is_the_usual_one_and_says_so() {
    let batch = quote(
        "claude-opus-4-5",
        "2026-01-01T00:00:00Z",
        Service::Batch,
        10,
    );
    assert_eq!((input(&batch).as_str(), batch.falls_back()), ("2.5", None));
    assert_eq!(batch.source(), Source::Both);

    let flex = quote("claude-opus-4-5", "2026-01-01T00:00:00Z", Service::Flex, 10);
    assert_eq!(
        (input(&flex).as_str(), flex.falls_back()),
        ("5", Some(Service::Flex))
    );
    assert_eq!(flex.service(), Service::Standard);

    // There, but not yet.
    let early = quote(
        "claude-opus-4-6",
        "2026-10-13T00:00:00Z",
        Service::Batch,
        10,
    );
    assert_eq!(early.falls_back(), Some(Service::Batch));
    let late = quote(
        "claude-opus-4-6",
        "2026-10-14T00:00:00Z",
        Service::Batch,
        10,
    );
    assert_eq!(late.falls_back(), None);
}

#[test]
fn some_prices_know_hours() {
    for (time, price, hours) in [
        ("2026-10-01T00:59:59Z", "0.15", None),
        ("2026-10-01T01:00:00Z", "0.3", Some("01:00-04:00")),
        ("2026-10-01T04:00:00Z", "0.15", None),
        ("2026-10-01T09:59:59Z", "0.3", Some("06:00-10:00")),
        ("2026-07-01T02:00:00Z", "0.14", None),
    ] {
        let quote = quote("deepseek-v4-flash", time, Service::Standard, 10);
        let shown = quote.hours().map(|hours| hours.to_string());
        assert_eq!(
            (input(&quote).as_str(), shown.as_deref()),
            (price, hours),
            "{time}"
        );
    }
}

#[test]
fn what_has_no_price() {
    let prices = Prices::builtin();
    let quote = |model: &str| {
        prices.quote(
            model,
            Timestamp::UNIX_EPOCH,
            Service::Standard,
            Context::default(),
        )
    };
    assert_eq!(quote("  ").unwrap_err(), Unpriced::NoModel);
    assert_eq!(quote("<synthetic>").unwrap_err(), Unpriced::Synthetic);
    let unknown = quote("Ollama/Llama3").unwrap_err();
    assert_eq!(
        unknown.to_string(),
        "no price is known for \"Ollama/Llama3\""
    );
    let unsaid = quote("llama-3.3-70b-versatile").unwrap_err();
    assert!(
        unsaid
            .to_string()
            .ends_with(" does not say who sold it: groq"),
        "{unsaid}"
    );
}

#[test]
fn corrections_come_first() {
    let overrides = Overrides::parse(
        r#"
        [aliases]
        "my-gateway/opus" = "Claude-Opus-4-5"
        "<synthetic>" = "claude-opus-4-5"

        [[model]]
        name = "claude-opus-4-5"
        from = 2026-01-01
        input = 1
        output = 2

        [[model]]
        name = "claude-opus-4-5"
        from = 2026-01-01
        above = 200000
        input = 3
        output = 4
        "#,
    )
    .unwrap();
    let prices = Prices::builtin().with_overrides(&overrides);
    let quote = |model, time, prompt| {
        let context = Context::of(prompt);
        prices
            .quote(model, at(time), Service::Batch, context)
            .unwrap()
    };
    let own = quote("my-gateway/opus", "2026-01-01T00:00:00Z", 300_000);
    assert_eq!((input(&own).as_str(), own.provider()), ("3", "config"));
    assert_eq!((own.rule(), own.source()), (Rule::Config, Source::Config));
    assert_eq!(own.alias(), Some("claude-opus-4-5"));
    assert_eq!(own.falls_back(), Some(Service::Batch));
    // Before its first day the table holds.
    let old = quote("my-gateway/opus", "2025-12-31T00:00:00Z", 300_000);
    assert_eq!((input(&old).as_str(), old.provider()), ("2.5", "anthropic"));
    assert_eq!(old.alias(), Some("claude-opus-4-5"));
    // Names beside the corrected one keep their price.
    let dated = quote("claude-opus-4-5-20251101", "2026-02-01T00:00:00Z", 10);
    assert_eq!(dated.provider(), "anthropic");
}

#[test]
fn what_is_free_costs_nothing() {
    let overrides = Overrides::parse("[[model]]\nname = \"ollama/*\"\nfree = true\n").unwrap();
    let prices = Prices::builtin().with_overrides(&overrides);
    let context = Context::of(1_000_000);
    let quote = prices
        .quote(
            "ollama/llama3",
            Timestamp::UNIX_EPOCH,
            Service::Standard,
            context,
        )
        .unwrap();
    let usage = Usage {
        input: Some(5),
        cache_write: Some(5),
        cache_write_1h: Some(5),
        output: Some(5),
        ..Usage::default()
    };
    let cost = quote.cost(&usage);
    assert_eq!(cost.total(), quipu_model::Money::ZERO);
    assert!(cost.assumed().is_empty());
}
