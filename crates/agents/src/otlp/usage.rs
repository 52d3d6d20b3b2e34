//! Tokens and dollars of a call to a model.
//!
//! The conventions count cached tokens as part of the prompt: `gen_ai.usage.input_tokens` and `llm.token_count.prompt` are
//! all of it, and what was read from and written to a cache is said beside it. So the tokens that no cache was involved in
//! are the prompt without these. Where the cached ones are more than the prompt, the program does not follow that rule and
//! has passed on the counts of a vendor that keeps them apart; then the prompt is taken for the uncached tokens alone.

use quipu_model::{Money, Usage};

use super::wire::Attrs;

const PROMPT: &[&str] = &[
    "gen_ai.usage.input_tokens",
    "gen_ai.usage.prompt_tokens",
    "llm.token_count.prompt",
    "llm.usage.prompt_tokens",
];
const OUTPUT: &[&str] = &[
    "gen_ai.usage.output_tokens",
    "gen_ai.usage.completion_tokens",
    "llm.token_count.completion",
    "llm.usage.completion_tokens",
];
const READ: &[&str] = &[
    "gen_ai.usage.cache_read.input_tokens",
    "gen_ai.usage.cache_read_input_tokens",
    "gen_ai.usage.input_tokens.cached",
    "llm.token_count.prompt_details.cache_read",
    "llm.token_count.prompt_details.cache_input",
    "llm.usage.cache_read_input_tokens",
];
const WRITTEN: &[&str] = &[
    "gen_ai.usage.cache_write.input_tokens",
    "gen_ai.usage.cache_creation.input_tokens",
    "gen_ai.usage.cache_creation_input_tokens",
    "gen_ai.usage.input_tokens.cache_write",
    "llm.token_count.prompt_details.cache_write",
    "llm.usage.cache_creation_input_tokens",
];
const REASONING: &[&str] = &[
    "gen_ai.usage.reasoning.output_tokens",
    "gen_ai.usage.reasoning_tokens",
    "gen_ai.usage.output_tokens.reasoning",
    "llm.token_count.completion_details.reasoning",
    "llm.usage.reasoning_tokens",
];
const TOTAL: &[&str] = &[
    "llm.token_count.total",
    "llm.usage.total_tokens",
    "gen_ai.usage.total_tokens",
];
const COST: &[&str] = &[
    "quipu.cost_usd",
    "llm.cost.total",
    "gen_ai.usage.cost",
    "gen_ai.usage.total_cost",
];

/// The tokens of a call, in buckets that do not overlap; `None` where nothing is said of any.
pub(super) fn usage(attrs: &Attrs<'_>) -> Option<Usage> {
    let prompt = attrs.same_count(PROMPT);
    let cache_read = attrs.same_count(READ);
    let cache_write = attrs.same_count(WRITTEN);
    let output = attrs.same_count(OUTPUT);
    let cached = cache_read
        .unwrap_or(0)
        .saturating_add(cache_write.unwrap_or(0));
    let usage = Usage {
        input: prompt.map(|prompt| prompt.checked_sub(cached).unwrap_or(prompt)),
        cache_read,
        cache_write,
        cache_write_1h: attrs.count("quipu.usage.cache_write_1h"),
        output,
        reasoning: attrs.same_count(REASONING),
    };
    if let (Some(prompt), Some(output)) = (prompt, output) {
        for key in TOTAL {
            attrs.is_sum(key, prompt.saturating_add(output));
        }
    }
    (!usage.is_empty()).then_some(usage)
}

/// What a call cost, where the program says so. Programs write zero for models whose price they do not know.
pub(super) fn cost(attrs: &Attrs<'_>) -> Option<Money> {
    let mut costs = COST.iter().filter_map(|key| attrs.money(key));
    costs.find(|cost| *cost > Money::ZERO)
}
