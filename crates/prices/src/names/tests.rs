use std::collections::BTreeSet;

use proptest::prelude::*;

use super::*;
use crate::table::PRICES;

fn found(name: &str) -> String {
    match find(&normal(name)) {
        Ok(found) => format!("{}/{}", found.provider, found.model),
        Err(Unpriced::Unsaid { providers, .. }) => format!("? {}", providers.join(" ")),
        Err(_) => "-".to_owned(),
    }
}

fn check(pairs: &[(&str, &str)]) {
    for (name, model) in pairs {
        assert_eq!(found(name), *model, "{name}");
    }
}

#[test]
fn bare_names_are_their_makers() {
    check(&[
        ("claude-opus-4-5-20251101", "anthropic/claude-opus-4-5"),
        ("claude-opus-4-6[1m]", "anthropic/claude-opus-4-6"),
        ("claude-sonnet-4@20250514", "anthropic/claude-sonnet-4-0"),
        ("claude-sonnet-4-20250514", "anthropic/claude-sonnet-4-0"),
        ("claude-haiku-4-5-20251001", "anthropic/claude-haiku-4-5"),
        ("Claude Sonnet 4.6", "anthropic/claude-sonnet-4-6"),
        ("claude-4.5-opus-high-thinking", "anthropic/claude-opus-4-5"),
        (
            "CLAUDE-3-7-SONNET-LATEST",
            "anthropic/claude-3-7-sonnet-latest",
        ),
        ("gpt-5-codex", "openai/gpt-5"),
        ("gpt-5.1-codex-max", "openai/gpt-5.1"),
        ("gpt-5-2025-08-07", "openai/gpt-5"),
        ("o3-mini-high", "openai/o3-mini"),
        ("gemini-2.5-pro-preview-06-05", "google/gemini-2.5-pro"),
        ("gemini-3-pro-preview", "google/gemini-3-pro-preview"),
        ("gemini-2.0-flash-001", "google/gemini-2.0-flash"),
        ("grok-code-fast-1", "x-ai/grok-code-fast-1"),
        ("deepseek-chat", "deepseek/deepseek-chat"),
        ("kimi-k2", "moonshotai/kimi-k2"),
        ("glm-4.6", "zai/glm-4.6"),
        ("GLM-4-Plus", "zhipuai/glm-4-plus"),
        ("qwen3-coder-plus", "alibaba/qwen3-coder-plus"),
        ("composer-2.5[fast=true]", "cursor/composer-2.5-fast"),
    ]);
}

#[test]
fn a_provider_may_be_said() {
    check(&[
        ("anthropic/claude-sonnet-4.5", "anthropic/claude-sonnet-4-5"),
        ("anthropic:claude-sonnet-4.5", "anthropic/claude-sonnet-4-5"),
        (
            "openrouter/anthropic/claude-sonnet-4.5",
            "openrouter/anthropic/claude-sonnet-4.5",
        ),
        (
            "openrouter/anthropic/claude-sonnet-4-6",
            "openrouter/anthropic/claude-sonnet-4.6",
        ),
        ("openai-codex/gpt-5-1-codex", "openai/gpt-5.1"),
        ("models/gemini-2.5-pro", "google/gemini-2.5-pro"),
        (
            "publishers/google/models/gemini-2.5-pro",
            "google/gemini-2.5-pro",
        ),
        (
            "vertex_ai/claude-sonnet-4-5@20250929",
            "google/claude-sonnet-4-5",
        ),
        (
            "github-copilot/claude-sonnet-4",
            "github-copilot/claude-sonnet-4",
        ),
        ("azure/gpt-5", "openai/gpt-5"),
        (
            "groq/llama-3.3-70b-versatile",
            "groq/llama-3.3-70b-versatile",
        ),
        ("zhipuai/glm-4.7", "zhipuai/glm-4.7"),
        (
            "accounts/fireworks/models/deepseek-v3-0324",
            "fireworks/deepseek-v3-0324",
        ),
    ]);
}

#[test]
fn amazon_names_region_and_vendor() {
    check(&[
        (
            "us.anthropic.claude-opus-4-5-20251101-v1:0",
            "aws/regional.anthropic.claude-opus-4-5-v1:0",
        ),
        (
            "anthropic.claude-sonnet-4-5-20250929-v1:0",
            "aws/regional.anthropic.claude-sonnet-4-5-20250929-v1:0",
        ),
        (
            "bedrock/global.anthropic.claude-opus-4-6-v1",
            "aws/global.anthropic.claude-opus-4-6-v1:0",
        ),
        (
            "eu.anthropic.claude-3-5-haiku-20241022-v1:0",
            "aws/regional.anthropic.claude-3-5-haiku-20241022-v1:0",
        ),
        (
            "arn:aws:bedrock:us-east-1:123456789012:inference-profile/us.anthropic.claude-opus-4-5-20251101-v1:0",
            "aws/regional.anthropic.claude-opus-4-5-v1:0",
        ),
        (
            "us.meta.llama3-1-70b-instruct-v1:0",
            "aws/meta.llama3-1-70b-instruct-v1:0",
        ),
    ]);
}

/// Each of these begins like a model that has a price, and is another one or may be.
#[test]
fn what_may_be_another_model_is_not_taken_for_it() {
    check(&[
        ("deepseek-v4-flash-free", "-"),
        ("claude-opus-4-5-fast", "-"),
        ("claude-opus-4-50", "-"),
        ("claude-opus-4-5-1", "-"),
        ("gpt-5-super", "-"),
        ("gpt-5.1-codex-maxi", "-"),
        ("gemini-2.5-pro-tts", "-"),
        ("deepseek-r1:8b", "-"),
        ("gemma-3-27b-it-q4", "-"),
    ]);
}

#[test]
fn local_and_invented_models_are_unknown() {
    check(&[
        ("ollama/llama3.1", "-"),
        ("ollama/claude-opus-4-5", "-"),
        ("my-gateway/claude-opus-4-5", "-"),
        ("mistral:7b", "-"),
        ("llama3.1:8b", "-"),
        ("sonnet", "-"),
        ("opus", "-"),
        ("gpt", "-"),
        ("claude", "-"),
        ("anthropic/", "-"),
        ("/", "-"),
        ("claude-opus-4-5\t=", "-"),
        ("claude-opus-4-5\n", "anthropic/claude-opus-4-5"),
    ]);
}

/// Resellers differ, and much of what they sell also runs at home.
#[test]
fn a_name_that_only_others_sell_says_who() {
    for name in [
        "llama-3.3-70b-versatile",
        "qwen/qwen3-32b",
        "openai/gpt-oss-120b",
    ] {
        let who = found(name);
        assert!(who.starts_with("? "), "{name}: {who}");
    }
    assert!(found("qwen/qwen3-32b").contains("groq"));
    assert!(found("qwen/qwen3-32b").contains("openrouter"));
    // But for a suffix that only one has.
    for name in ["qwen/qwen3-coder:free", "google/gemma-3-27b-it:free"] {
        assert_eq!(found(name), format!("openrouter/{name}"));
    }
}

/// Every provider of the table can be said, and no word leads nowhere.
#[test]
fn words_and_providers_are_the_same() {
    let rows = PRICES.lines().filter(|line| !line.starts_with('#'));
    let sold: BTreeSet<_> = rows.filter_map(|line| line.split('\t').next()).collect();
    let said: BTreeSet<_> = providers().collect();
    assert_eq!(sold, said);
    assert!(PROVIDERS.is_sorted());
    assert!(MAKERS.is_sorted());
    for (start, makers) in MAKERS {
        assert!(makers.iter().all(|maker| said.contains(maker)), "{start}");
    }
}

#[test]
fn versions_have_two_spellings() {
    for (name, other) in [
        ("claude-sonnet-4-6", Some("claude-sonnet-4.6")),
        ("a-1-2-3", Some("a-1.2.3")),
        ("claude-opus-4-20250514", None),
        ("gpt-4-05-06", None),
        ("7-1", None),
        ("ä1-2ä", Some("ä1.2ä")),
        ("", None),
    ] {
        assert_eq!(respelt(name).as_deref(), other, "{name}");
    }
}

/// A log can name a thousand models, each worse than the last.
#[test]
fn bad_names_take_no_time() {
    let began = std::time::Instant::now();
    for at in 0..1_000 {
        let marks = "-1".repeat(at % 70);
        assert_eq!(found(&format!("gpt-{at}{marks}-x")), "-");
    }
    assert_eq!(found(&"claude-".repeat(1_000_000)), "-");
    // Some hundred microseconds each where nothing is optimised; the bound is for busy machines.
    assert!(began.elapsed().as_secs() < 20, "{:?}", began.elapsed());
}

proptest! {
    #[test]
    fn no_name_does_harm(name in "\\PC{0,200}") {
        let _found = find(&normal(&name));
    }

    #[test]
    fn no_name_that_is_like_one_does_harm(
        word in proptest::sample::select(PROVIDERS.to_vec()),
        sign in "[/:.@]{0,2}",
        start in proptest::sample::select(MAKERS.to_vec()),
        rest in "[-a-z0-9.:@\\[\\]/äß\\t]{0,40}",
    ) {
        let name = format!("{}{sign}{}{rest}", word.0, start.0);
        if let Ok(found) = find(&normal(&name)) {
            prop_assert!(!crate::table::rows(found.provider, found.model).is_empty());
        }
    }
}
