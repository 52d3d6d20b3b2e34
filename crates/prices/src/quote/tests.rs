use proptest::prelude::*;
use quipu_model::Timestamp;

use super::*;
use crate::{Context, Prices};

fn quote(model: &str) -> Quote {
    let at = Timestamp::UNIX_EPOCH;
    Prices::builtin()
        .quote(model, at, Service::Standard, Context::default())
        .unwrap()
}

fn usage(tokens: [u64; 4], of_them: [u64; 2]) -> Usage {
    let [input, cache_read, cache_write, output] = tokens.map(Some);
    let [cache_write_1h, reasoning] = of_them.map(Some);
    Usage {
        input,
        cache_read,
        cache_write,
        cache_write_1h,
        output,
        reasoning,
    }
}

#[test]
fn every_kind_has_its_price() {
    let cost = quote("claude-opus-4-5").cost(&usage([1_000_000; 4], [400_000, 900_000]));
    for (bucket, dollars) in [
        (Bucket::Input, "5"),
        (Bucket::CacheRead, "0.5"),
        (Bucket::CacheWrite, "3.75"),
        (Bucket::CacheWrite1h, "4"),
        (Bucket::Output, "25"),
        (Bucket::Reasoning, "0"),
    ] {
        assert_eq!(cost.of(bucket).to_string(), dollars, "{bucket:?}");
    }
    assert_eq!(cost.total().to_string(), "38.25");
    assert!(cost.assumed().is_empty());
}

#[test]
fn reasoning_may_have_a_price_of_its_own() {
    let quote = quote("qwen-plus-2025-04-28");
    let parts: Vec<_> = quote.parts(&usage([0, 0, 0, 10], [0, 4])).collect();
    let shown: Vec<_> = parts
        .iter()
        .map(|p| (p.bucket, p.tokens, p.rate.to_string()))
        .collect();
    assert_eq!(
        shown,
        [
            (Bucket::Output, 6, "1.2".to_owned()),
            (Bucket::Reasoning, 4, "4".to_owned())
        ]
    );
}

#[test]
fn what_has_no_price_is_assumed_and_said() {
    let copilot = quote("github-copilot/claude-opus-4.7");
    let cost = copilot.cost(&usage([0, 0, 3_000_000, 0], [1_000_000, 0]));
    // Its hour has no price, so it is priced as the five minutes.
    assert_eq!(cost.of(Bucket::CacheWrite1h).to_string(), "6.25");
    assert_eq!(
        cost.assumed().iter().collect::<Vec<_>>(),
        [Bucket::CacheWrite1h]
    );

    let old = quote("claude-2");
    let cost = old.cost(&usage([0, 1_000_000, 0, 1_000_000], [0, 0]));
    assert_eq!(
        cost.of(Bucket::CacheRead),
        cost.total() - cost.of(Bucket::Output)
    );
    assert_eq!(cost.of(Bucket::CacheRead).to_string(), "8");
    assert!(cost.assumed().contains(Bucket::CacheRead));
    // Without such tokens nothing was assumed.
    assert!(old.cost(&usage([1, 0, 0, 1], [0, 0])).assumed().is_empty());
}

#[test]
fn parts_that_are_larger_than_their_whole_are_counted() {
    let quote = quote("claude-opus-4-5");
    let only_parts = Usage {
        cache_write_1h: Some(1_000_000),
        reasoning: Some(1_000_000),
        ..Usage::default()
    };
    let cost = quote.cost(&only_parts);
    assert_eq!(cost.of(Bucket::CacheWrite1h).to_string(), "10");
    assert_eq!(cost.of(Bucket::CacheWrite).to_string(), "0");
    assert_eq!(cost.of(Bucket::Output).to_string(), "25");
    assert_eq!(quote.cost(&Usage::default()), Cost::default());
}

fn any_usage() -> impl Strategy<Value = Usage> {
    let part = |whole: Option<u64>| match whole {
        Some(whole) => proptest::option::of(0..=whole).boxed(),
        None => Just(None).boxed(),
    };
    let tokens = || proptest::option::of(0_u64..1 << 60);
    (tokens(), tokens(), tokens(), tokens()).prop_flat_map(
        move |(input, cache_read, cache_write, output)| {
            (part(cache_write), part(output)).prop_map(move |(cache_write_1h, reasoning)| Usage {
                input,
                cache_read,
                cache_write,
                cache_write_1h,
                output,
                reasoning,
            })
        },
    )
}

proptest! {
    #[test]
    fn costs_add_up(
        usages in proptest::collection::vec(any_usage(), 0..8),
        model in proptest::sample::select(vec![
            "claude-opus-4-5", "claude-2", "gpt-5-codex", "qwen-plus-2025-04-28",
            "deepseek-chat", "github-copilot/claude-opus-4.7",
        ]),
    ) {
        let quote = quote(model);
        let mut sum = Usage::default();
        for usage in &usages {
            sum.add(usage);
        }
        let apart: Cost = usages.iter().map(|usage| quote.cost(usage)).sum();
        prop_assert_eq!(quote.cost(&sum), apart);
        let parts: Money = quote.parts(&sum).map(|part| part.money()).sum();
        prop_assert_eq!(parts, apart.total());
        let tokens: u64 = quote.parts(&sum).map(|part| part.tokens).sum();
        prop_assert_eq!(tokens, sum.total());
    }
}

#[test]
fn searches_cost_what_a_thousand_cost() {
    let at: quipu_model::Timestamp = "2026-06-01T00:00:00Z".parse().unwrap();
    let quote = |prices: &crate::Prices, model: &str| {
        let context = crate::Context::default();
        prices
            .quote(model, at, quipu_model::Service::Standard, context)
            .unwrap()
    };
    let builtin = crate::Prices::builtin();
    let opus = quote(&builtin, "claude-opus-4-5");
    assert_eq!(opus.searches(0).unwrap().to_string(), "0");
    assert_eq!(opus.searches(3).unwrap().to_string(), "0.03");
    // Someone's own price, and none.
    let own: crate::Overrides = toml::from_str(
        "[[model]]\nname = \"mine\"\ninput = 1\noutput = 2\nsearches = 2.5\n
         [[model]]\nname = \"other\"\ninput = 1\noutput = 2\n
         [[model]]\nname = \"free\"\nfree = true\n",
    )
    .unwrap();
    let prices = crate::Prices::builtin().with_overrides(&own);
    assert_eq!(
        quote(&prices, "mine").searches(4).unwrap().to_string(),
        "0.01"
    );
    assert_eq!(quote(&prices, "other").searches(4), None);
    assert_eq!(
        quote(&prices, "other").searches(0).unwrap().to_string(),
        "0"
    );
    assert_eq!(quote(&prices, "free").searches(4).unwrap().to_string(), "0");
}
