//! Who serves a model, by its name, where that is sure.

/// A provider, under the names that the two conventions have for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Provider {
    /// `gen_ai.provider.name`.
    pub(super) gen_ai: &'static str,
    /// `llm.system`: whose model it is.
    pub(super) system: &'static str,
}

/// What the conventions say for a provider that is none of those they know, or is not known.
pub(super) const OTHER: &str = "_OTHER";

const fn provider(gen_ai: &'static str, system: &'static str) -> Provider {
    Provider { gen_ai, system }
}

/// Who made a model. Other companies may serve it too, so a name with a route in it (`openrouter/…`)
/// tells nothing, while one that only the maker uses does.
pub(super) fn of(model: &str) -> Option<Provider> {
    let name = model.to_ascii_lowercase();
    if name.contains(['/', '@']) {
        return None;
    }
    // Names of Amazon's service: `anthropic.claude-…-v1:0`, with a region before them perhaps.
    if name.contains("anthropic.claude") {
        return Some(provider("aws.bedrock", "anthropic"));
    }
    if name.contains(':') {
        return None;
    }
    let begins = |with: &[&str]| with.iter().any(|it| name.starts_with(it));
    let is_o = name.strip_prefix('o').is_some_and(|rest| {
        let digits = rest.trim_start_matches(|c: char| c.is_ascii_digit());
        digits.len() < rest.len() && (digits.is_empty() || digits.starts_with('-'))
    });
    if begins(&["claude-"]) {
        Some(provider("anthropic", "anthropic"))
    } else if begins(&["gpt-oss"]) {
        // Open weights: anyone may serve them.
        None
    } else if is_o || begins(&["gpt-", "chatgpt-", "codex-"]) {
        Some(provider("openai", "openai"))
    } else if begins(&["gemini-"]) {
        Some(provider("gcp.gemini", "vertexai"))
    } else if begins(&["grok-"]) {
        Some(provider("x_ai", "xai"))
    } else if matches!(name.as_str(), "deepseek-chat" | "deepseek-reasoner") {
        Some(provider("deepseek", "deepseek"))
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::of;

    #[test]
    fn only_names_that_one_provider_uses_tell_it() {
        for (model, provider) in [
            ("claude-opus-4-5-20251101", Some("anthropic")),
            ("gpt-5.1-codex", Some("openai")),
            ("o3", Some("openai")),
            ("o4-mini", Some("openai")),
            ("gemini-3-pro", Some("gcp.gemini")),
            ("grok-4", Some("x_ai")),
            ("deepseek-chat", Some("deepseek")),
            ("us.anthropic.claude-sonnet-4-v1:0", Some("aws.bedrock")),
            ("amazon.nova-pro", None),
            ("anthropic/claude-sonnet-4", None),
            ("gpt-oss-120b", None),
            ("qwen3:8b", None),
            ("o", None),
            ("orca", None),
            ("claude-sonnet-4@20250514", None),
            ("<synthetic>", None),
            ("", None),
        ] {
            assert_eq!(of(model).map(|it| it.gen_ai), provider, "{model}");
        }
    }
}
