//! The calls behind a figure, and the prices behind the calls.

use quipu_api::{Time, Usd, explain as api};
use quipu_model::Usage;
use quipu_prices::{Bucket, Quote};

use super::stats::{cost, spent, tokens};
use crate::stats::{Call, Explained, LeftOut, PricedBy, Why};

/// The calls behind a figure.
pub fn explained(explained: &Explained) -> api::ExplainedSession {
    let call = |call: &Call| api::ExplainedCall {
        seq: call.seq,
        line: call.line,
        at: call.at.map(Time::of),
        model: call.model.clone(),
        subagent: call.subagent.clone(),
        service: call.service.as_str().to_owned(),
        tokens: tokens(&call.tokens),
        searches: call.searches,
        usd: call.cost().map(Usd::of),
        priced_by: call.by.map(|by| match by {
            PricedBy::Table => api::PricedBy::Table,
            PricedBy::Log => api::PricedBy::Log,
        }),
        told_usd: call.told.map(Usd::of),
        price: call.quote.as_ref().ok().map(price),
        no_price: call.quote.as_ref().err().map(ToString::to_string),
    };
    let left_out = |left: &LeftOut| api::LeftOut {
        why: left.why.as_str().to_owned(),
        of: match &left.why {
            Why::Copied(of) | Why::Retold(of) => Some(of.clone()),
            _ => None,
        },
        times: left.times,
        tokens: tokens(&left.tokens),
    };
    let row = &explained.row;
    let theirs: Usage = row.vendor_usage;
    let why = explained.compared_tokens().map(|it| it.why);
    let why_cost = explained.compared_cost().map(|it| it.why);
    let differs = [why, why_cost].into_iter().flatten().flatten();
    api::ExplainedSession {
        id: Some(row.address.clone()).filter(|address| !address.is_empty()),
        session: row.run_id.clone(),
        agent: row.agent.clone(),
        title: row.title.clone(),
        calls: explained.calls.iter().map(call).collect(),
        left_out: explained.left_out.iter().map(left_out).collect(),
        spent: spent(&explained.spent),
        log_tokens: tokens(&explained.log),
        vendor_tokens: (!theirs.is_empty()).then(|| tokens(&theirs)),
        vendor_usd: row.vendor_cost.clone(),
        differs: differs.map(|reason| reason.to_string()).collect(),
        cost: cost(&explained.spent),
    }
}

/// A price as a document has it.
pub fn price(quote: &Quote) -> api::Price {
    let rate = |bucket: Bucket| {
        let (rate, assumed) = quote.rate(bucket);
        let usd = Usd::of(rate);
        (bucket.as_str().to_owned(), api::Rate { usd, assumed })
    };
    api::Price {
        provider: quote.provider().to_owned(),
        model: quote.model().to_owned(),
        from: quote.from().map(|day| day.to_string()),
        service: quote.service().as_str().to_owned(),
        above: quote.above(),
        source: quote.source().as_str().to_owned(),
        source_date: quote.source().about().map(str::to_owned),
        rule: quote.rule().as_str().to_owned(),
        per_million: Bucket::ALL.into_iter().map(rate).collect(),
        per_thousand_searches: quote.thousand_searches().map(Usd::of),
    }
}
