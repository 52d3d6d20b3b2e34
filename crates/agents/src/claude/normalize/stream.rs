//! What a stream says of its own sums.

use quipu_model::json::Node;
use quipu_model::{NoteKind, Usage};
use serde::{Deserialize, Serialize};

use super::{Claude, Line};
use crate::blocks;
use crate::common::Kept;
use crate::{Entry, Out, Text, Tokens, What};

/// What was counted of a model in a stream.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize)]
pub(super) struct OfModel {
    counted: Tokens,
    /// How much of it when the last result came.
    at_result: Tokens,
}

impl Claude {
    /// Counts tokens of a stream by model, for its result to be compared with.
    pub(super) fn count_of_model(&mut self, line: &Line<'_>, more: &Usage) {
        let model = line.message.and_then(|message| message.text("model"));
        if let Some(model) = model
            && more.total() > 0
        {
            let known = self.by_model.entry(plain_model(&model).to_owned());
            let known = known.or_default();
            let mut sum = Usage::from(known.counted);
            sum.add(more);
            known.counted = sum.into();
        }
    }

    /// The end of a stream, with the vendor's own sums.
    pub(super) fn result<'a>(&mut self, record: Node<'a>, common: &Kept<'a>, out: &mut Out<'_>) {
        // Of each model, with those of sub-agents; what is said of the whole is the main thread's.
        let models = record.get("modelUsage").filter(|models| {
            let mut all = models.fields();
            all.any(|(_, sums)| model_usage(sums).is_some_and(|usage| usage.total() > 0))
        });
        let total = record.get("usage").and_then(blocks::usage);
        let before = self.at_result.into();
        // Lines of the stream carry the usage a reply began with; the result has what it came to.
        let usage = total.filter(|_| models.is_none()).map(|total| {
            let counted = out.ledger().counted().beyond(&before);
            total.beyond(&counted)
        });
        if let Some(total) = total {
            let mut sum = self
                .session
                .vendor_usage
                .map(Into::into)
                .unwrap_or_default();
            Usage::add(&mut sum, &total);
            self.session.vendor_usage = Some(sum.into());
        }
        if let Some(cost) = record.get("total_cost_usd") {
            self.session.vendor_cost = Some(cost.raw().get().to_owned());
        }
        let failed = record.get("is_error").and_then(|n| n.as_bool()) == Some(true);
        let kind = if failed {
            NoteKind::Error
        } else {
            NoteKind::Session
        };
        let entry = Entry {
            usage: usage.filter(|usage| usage.total() > 0),
            calls: Some(u64::from(self.at_result == out.ledger().counted().into())),
            stop_reason: record.text("stop_reason"),
            duration_ms: record.get("duration_ms").and_then(|n| n.as_u64()),
            ..Entry::new(What::Note {
                kind,
                text: record.get("result").and_then(Text::of),
                raw: Some(record.into()),
            })
        };
        common.put(entry, out);
        if let Some(models) = models {
            self.result_of_models(models, common, out);
        }
        self.at_result = out.ledger().counted().into();
    }

    /// What a stream used of each model beyond what its lines said.
    pub(super) fn result_of_models<'a>(
        &mut self,
        models: Node<'a>,
        common: &Kept<'a>,
        out: &mut Out<'_>,
    ) {
        let mut sum = Usage::default();
        for (name, sums) in models.fields() {
            let Some(total) = model_usage(sums) else {
                continue;
            };
            sum.add(&total);
            let name = name.to_text_lossy();
            let known = self.by_model.entry(plain_model(&name).to_owned());
            let of_model = known.or_default();
            let counted = Usage::from(of_model.counted);
            // The sums are of the whole stream. Where they are less than what was counted of it, they are of the
            // part since the last result.
            let since = counted.beyond(&of_model.at_result.into());
            let less = counted.beyond(&total).total() > 0;
            let more = total.beyond(if less { &since } else { &counted });
            let mut now = counted;
            now.add(&more);
            of_model.counted = now.into();
            of_model.at_result = now.into();
            if more.total() > 0 {
                let entry = Entry {
                    usage: Some(more),
                    // The rest of calls that were counted, unless no line told of any.
                    calls: Some(u64::from(counted.total() == 0)),
                    model: Some(name),
                    ..Entry::keep(NoteKind::Usage, sums)
                };
                common.put(entry, out);
            }
        }
        self.session.vendor_usage = Some(sum.into());
    }
}

/// The sums of a model in the result of a stream.
fn model_usage(sums: Node<'_>) -> Option<Usage> {
    let count = |key: &str| sums.get(key).and_then(|n| n.as_u64());
    let usage = Usage {
        input: count("inputTokens"),
        cache_read: count("cacheReadInputTokens"),
        cache_write: count("cacheCreationInputTokens"),
        output: count("outputTokens"),
        ..Usage::default()
    };
    (!usage.is_empty()).then_some(usage)
}

/// The name of a model without what says how long its prompt may be.
fn plain_model(name: &str) -> &str {
    name.split_once('[').map_or(name, |(plain, _)| plain)
}
