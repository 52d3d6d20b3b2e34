//! What a receipt by itself must be, and what all of a run must be.

use quipu_model::Money;
use quipu_model::json::{Kind, Node};

use super::{Findings, Rule};
use crate::flow::receipt::{COUNTS, REQUIRED, Receipt};
use crate::flow::time;
use crate::shape::{Wanted, what};

/// Checks the fields of a receipt.
pub(in crate::flow) fn check(document: Node<'_>, receipt: &Receipt, path: &str, to: &mut Findings) {
    for wanted in REQUIRED {
        field(document, *wanted, path, None, to);
    }
    if let Some(tokens) = document.get("tokens").filter(|n| n.kind() == Kind::Object) {
        for key in COUNTS {
            if tokens.get(key).is_none() {
                to.add(Rule::FieldMissing, path, None, || {
                    format!("tokens.{key} is missing")
                });
            }
        }
        self::tokens(tokens, path, to);
    }
    let duration = document.get("duration_ms");
    if let Some(duration) = duration.filter(|n| n.kind() == Kind::Number && n.as_u64().is_none()) {
        let text = duration.raw().get();
        to.add(Rule::FieldType, path, None, || {
            format!("duration_ms is {text}")
        });
    }
    for key in ["started_at", "completed_at"] {
        time(document, key, path, None, to);
    }
    if let Some(status) = &receipt.status
        && !["succeeded", "failed"].contains(&status.as_str())
    {
        to.add(Rule::StatusUnknown, path, None, || {
            format!("the status is {status:?}")
        });
    }
    if receipt.is_stub() && receipt.succeeded() == Some(true) {
        to.add(Rule::StubSuccess, path, None, || {
            "a stub says that it succeeded".to_owned()
        });
    }
    duration_fits(receipt, path, to);
}

/// Checks that a field is there, and its type.
fn field(
    of: Node<'_>,
    (key, wanted): (&str, Wanted),
    path: &str,
    line: Option<u64>,
    to: &mut Findings,
) {
    match of.get(key) {
        None => to.add(Rule::FieldMissing, path, line, || {
            format!("{key} is missing")
        }),
        Some(value) if !wanted.fits(value) => to.add(Rule::FieldType, path, line, || {
            format!("{key} is {}, not {}", what(value), wanted.as_str())
        }),
        Some(_) => {}
    }
}

/// Checks a time, which has to be there or not.
pub(in crate::flow) fn time(
    document: Node<'_>,
    key: &str,
    path: &str,
    line: Option<u64>,
    to: &mut Findings,
) {
    let Some(text) = document.text(key) else {
        return;
    };
    match time::parse(&text) {
        None => to.add(Rule::TimeUnreadable, path, line, || {
            format!("{key} is {text:?}")
        }),
        Some(time) if !time.form.is_well_formed() => {
            to.add(Rule::TimeMalformed, path, line, || {
                format!("{key} is {text:?}")
            });
        }
        Some(_) => {}
    }
}

fn tokens(tokens: Node<'_>, path: &str, to: &mut Findings) {
    let mut sum = [None; 3];
    for (key, value) in tokens.fields() {
        let key = key.to_text_lossy();
        // Counts of a hostile writer may be beyond 64 bits.
        let count = value.raw().get().parse::<u128>().ok();
        if count.is_none() {
            let value = value.raw().get();
            let value: String = value.chars().take(40).collect();
            to.add(Rule::TokensInvalid, path, None, || {
                format!("tokens.{key} is {value}")
            });
        }
        if let Some(at) = COUNTS.iter().position(|name| *name == key) {
            sum[at] = count;
        }
    }
    if let [Some(prompt), Some(completion), Some(total)] = sum
        && prompt.checked_add(completion) != Some(total)
    {
        to.add(Rule::TokensSum, path, None, || {
            format!("{prompt} and {completion} are not {total}")
        });
    }
}

fn duration_fits(receipt: &Receipt, path: &str, to: &mut Findings) {
    let times = receipt.started_at.zip(receipt.completed_at);
    let Some(((from, until), said)) = times.zip(receipt.duration_ms) else {
        return;
    };
    let nanos = until.at.as_nanosecond() - from.at.as_nanosecond();
    let off = i128::from(said) * 1_000_000 - nanos;
    // A writer may cut or round the milliseconds.
    if off.abs() > 1_000_000 {
        to.add(Rule::DurationMismatch, path, None, || {
            let took = nanos.div_euclid(1_000_000);
            format!("duration_ms is {said}, but {took} ms passed")
        });
    }
}

/// Checks the fields of a line that is as documented.
pub(in crate::flow) fn line(line: Node<'_>, path: &str, number: u64, to: &mut Findings) {
    let mut wanted = vec![("timestamp", Wanted::Text)];
    if line.get("role").is_some_and(|role| role.is("tool")) {
        wanted.push(("tool_input", Wanted::Object));
        for key in ["content", "tool_output"] {
            if line.get(key).is_some() {
                wanted.push((key, Wanted::Text));
            }
        }
    }
    for wanted in wanted {
        field(line, wanted, path, Some(number), to);
    }
}

/// Checks that what the run cost never goes down. The receipts are in the order in which steps were completed.
pub(in crate::flow) fn costs<'a>(
    receipts: impl Iterator<Item = (&'a str, &'a Receipt)>,
    to: &mut Findings,
) {
    let mut before: Option<Money> = None;
    for (path, receipt) in receipts {
        let Some(now) = receipt.cumulative_run_usd else {
            continue;
        };
        if let Some(before) = before
            && now < before
        {
            to.add(Rule::CostOrder, path, None, || {
                format!("{now} is less than {before}")
            });
        }
        if let Some(own) = receipt.cost_usd
            && now < own
        {
            to.add(Rule::CostOrder, path, None, || {
                format!("the run cost {now}, of which the step {own}")
            });
        }
        before = Some(before.map_or(now, |before| before.max(now)));
    }
}
