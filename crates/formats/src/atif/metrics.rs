//! Tokens and money of a step, and of all steps.

use quipu_model::{Money, Usage};

use super::json::Object;

/// Sums. They are wider than what is added, so they are exact. What is not known is nothing, which is not zero.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Metrics {
    /// All of the prompt, with what was read from a cache or written to one.
    prompt: Option<u128>,
    cached: Option<u128>,
    written: Option<u128>,
    written_1h: Option<u128>,
    completion: Option<u128>,
    reasoning: Option<u128>,
    cost: Option<Money>,
}

fn add(sum: &mut Option<u128>, more: Option<u128>) {
    if let Some(more) = more {
        *sum = Some(sum.unwrap_or(0).saturating_add(more));
    }
}

impl Metrics {
    pub(super) fn of(usage: Option<Usage>, cost: Option<Money>) -> Self {
        let usage = usage.unwrap_or_default();
        let wide = |count: Option<u64>| count.map(u128::from);
        let mut prompt = None;
        for part in [usage.input, usage.cache_read, usage.cache_write] {
            add(&mut prompt, wide(part));
        }
        Self {
            prompt,
            cached: wide(usage.cache_read),
            written: wide(usage.cache_write),
            written_1h: wide(usage.cache_write_1h),
            completion: wide(usage.output),
            reasoning: wide(usage.reasoning),
            cost,
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    pub(super) fn add(&mut self, more: &Self) {
        add(&mut self.prompt, more.prompt);
        add(&mut self.cached, more.cached);
        add(&mut self.written, more.written);
        add(&mut self.written_1h, more.written_1h);
        add(&mut self.completion, more.completion);
        add(&mut self.reasoning, more.reasoning);
        if let Some(cost) = more.cost {
            self.cost = Some(self.cost.map_or(cost, |sum| sum.saturating_add(cost)));
        }
    }

    /// The `metrics` of a step.
    pub(super) fn write(&self, out: &mut Vec<u8>) {
        const NAMES: [&str; 4] = [
            "prompt_tokens",
            "completion_tokens",
            "cached_tokens",
            "cost_usd",
        ];
        self.named(NAMES, None, out);
    }

    /// The `final_metrics` of a trajectory.
    pub(super) fn write_final(&self, steps: u64, out: &mut Vec<u8>) {
        const NAMES: [&str; 4] = [
            "total_prompt_tokens",
            "total_completion_tokens",
            "total_cached_tokens",
            "total_cost_usd",
        ];
        self.named(NAMES, Some(steps), out);
    }

    fn named(&self, names: [&'static str; 4], steps: Option<u64>, out: &mut Vec<u8>) {
        let mut object = Object::begin(out);
        let counts = [self.prompt, self.completion, self.cached];
        for (name, count) in names.into_iter().zip(counts) {
            if let Some(count) = count {
                object.number(name, count);
            }
        }
        if let Some(cost) = self.cost {
            object.shown(names[3], cost);
        }
        if let Some(steps) = steps {
            object.number("total_steps", steps);
        }
        let mut extra = Vec::new();
        let mut within = Object::within(&mut extra);
        for (name, count) in [
            ("cache_creation_input_tokens", self.written),
            ("cache_creation_1h_input_tokens", self.written_1h),
            ("reasoning_tokens", self.reasoning),
        ] {
            if let Some(count) = count {
                within.number(name, count);
            }
        }
        if !extra.is_empty() {
            object.around("extra", *b"{}", &extra);
        }
        object.end();
    }
}
