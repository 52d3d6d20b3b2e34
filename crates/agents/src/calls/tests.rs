use std::borrow::Cow;

use quipu_model::{NoteKind, Service, Status, Timestamp, Usage};

use crate::summary::{Doer, SpendKey, Waste};
use crate::{Entry, Ledger, Out, Position, Sink, Summary, Text, Value, What};

#[derive(Default)]
struct Sums(Summary);

impl Sink for Sums {
    fn entry(&mut self, _seq: u64, _at: Timestamp, _position: Position, entry: &Entry<'_>) {
        self.0.observe(entry);
    }
}

/// What a log comes to that has just these entries.
fn summed(entries: Vec<Entry<'_>>) -> Summary {
    let (mut sums, mut ledger) = (Sums::default(), Ledger::default());
    let mut out = Out::new(&mut sums, &mut ledger);
    for entry in entries {
        out.push(entry);
    }
    sums.0
}

/// A time, in minutes after midnight.
fn at(minutes: i64) -> Timestamp {
    let day: Timestamp = "2026-02-03T00:00:00Z".parse().unwrap();
    Timestamp::from_second(day.as_second() + minutes * 60).unwrap()
}

fn call(id: &'static str, minutes: i64, usage: Usage) -> Entry<'static> {
    Entry {
        at: Some(at(minutes)),
        model: Some(Cow::Borrowed("m-1")),
        model_call: Some(Cow::Borrowed(id)),
        usage: Some(usage),
        ..Entry::note(NoteKind::Usage, "")
    }
}

fn tokens(input: u64, cache_read: u64, cache_write: u64, output: u64) -> Usage {
    Usage {
        input: Some(input),
        cache_read: Some(cache_read),
        cache_write: Some(cache_write),
        output: Some(output),
        ..Usage::default()
    }
}

fn rows(summary: &Summary) -> Vec<(i64, &str, u8, u64, u64)> {
    summary
        .spend
        .iter()
        .map(|(key, spend)| {
            let total = Usage::from(spend.tokens).total();
            let slot = key.by.slot.unwrap_or(-1) - at(0).as_second() / 900;
            (slot, &*key.model, key.context, spend.calls, total)
        })
        .collect()
}

#[test]
fn a_correction_lands_where_the_call_did() {
    // Told in one quarter of an hour, corrected in the next, under another name and another service.
    let corrected = Entry {
        model: Some(Cow::Borrowed("m-1-renamed")),
        service: Service::Batch,
        ..call("c1", 16, tokens(10, 0, 0, 50))
    };
    let summary = summed(vec![
        call("c1", 14, tokens(10, 0, 0, 1)),
        corrected,
        call("c2", 16, tokens(1, 0, 0, 1)),
    ]);
    assert_eq!(rows(&summary), [(0, "m-1", 0, 1, 60), (1, "m-1", 0, 1, 2)]);
}

#[test]
fn the_class_is_that_of_the_first_prompt() {
    let long = quipu_prices::Context::of(250_000).as_u8();
    let summary = summed(vec![
        // Nothing is known of the prompt at first.
        call("c1", 0, tokens(0, 0, 0, 0)),
        call("c1", 1, tokens(250_000, 0, 0, 5)),
        // Grown over the bound later, it stays where it was.
        call("c2", 2, tokens(100, 0, 0, 5)),
        call("c2", 3, tokens(250_000, 0, 0, 5)),
    ]);
    let classes: Vec<(u8, u64)> = rows(&summary).iter().map(|row| (row.2, row.4)).collect();
    assert_eq!(classes, [(0, 250_005), (long, 250_005)]);
    assert_eq!(summary.calls(), 2);
}

#[test]
fn parts_are_no_larger_than_the_whole() {
    let usage = Usage {
        cache_write: Some(5),
        cache_write_1h: Some(9),
        output: Some(2),
        reasoning: Some(3),
        ..Usage::default()
    };
    let sum = summed(vec![call("c1", 0, usage)]).usage();
    assert_eq!((sum.cache_write, sum.cache_write_1h), (Some(5), Some(5)));
    assert_eq!((sum.output, sum.reasoning), (Some(2), Some(2)));
}

fn waste(summary: &Summary) -> Vec<(Waste, u64, u64)> {
    let all = summary.waste.iter();
    all.map(|(key, spend)| (key.kind, spend.calls, Usage::from(spend.tokens).total()))
        .collect()
}

#[test]
fn caches_are_lost_after_a_pause() {
    let begin = || call("c1", 0, tokens(10, 0, 40_000, 100));
    let kept = call("c2", 4, tokens(10, 40_010, 500, 100));
    assert!(waste(&summed(vec![begin(), kept])).is_empty());
    let lost = || call("c2", 6, tokens(10, 0, 40_500, 100));
    let found = waste(&summed(vec![begin(), lost()]));
    assert_eq!(found, [(Waste::Pause, 1, 40_010)]);
    // Kept for an hour, it is not lost by then; something else must have changed.
    let mut hour = begin();
    hour.usage = hour.usage.map(|usage| Usage {
        cache_write_1h: Some(40_000),
        ..usage
    });
    let found = waste(&summed(vec![hour, lost()]));
    assert_eq!(found, [(Waste::Resent, 1, 40_010)]);
    // A conversation that was cut begins anew, and another model has another cache.
    let cut = call("c2", 6, tokens(10, 0, 9_000, 100));
    assert!(waste(&summed(vec![begin(), cut])).is_empty());
    let other = Entry {
        model: Some(Cow::Borrowed("m-2")),
        ..lost()
    };
    assert!(waste(&summed(vec![begin(), other])).is_empty());
    let other = Entry {
        subagent: Some(Cow::Borrowed("a1")),
        ..lost()
    };
    assert!(waste(&summed(vec![begin(), other])).is_empty());
    // Who does not tell of caches is not blamed.
    let silent = |id, minutes| {
        let usage = Usage {
            input: Some(50_000),
            ..Usage::default()
        };
        call(id, minutes, usage)
    };
    assert!(waste(&summed(vec![silent("c1", 0), silent("c2", 9)])).is_empty());
}

fn tool(id: &'static str, input: &'static str) -> Entry<'static> {
    Entry::new(What::Call {
        name: Cow::Borrowed("Bash"),
        id: Cow::Borrowed(id),
        input: Some(Value::Text(Text::from(input))),
    })
}

fn result(id: &'static str, status: Status) -> Entry<'static> {
    Entry {
        status: Some(status),
        ..Entry::new(What::Result {
            name: Cow::Borrowed(""),
            id: Cow::Borrowed(id),
            output: None,
            error: None,
        })
    }
}

#[test]
fn the_same_tool_call_again() {
    let mut again = tool("t3", "ls");
    again.model_call = Some(Cow::Borrowed("c1"));
    let mut twice = tool("t4", "ls");
    twice.model_call = Some(Cow::Borrowed("c1"));
    let summary = summed(vec![
        tool("t1", "ls"),
        result("t1", Status::Ok),
        tool("t2", "pwd"),
        result("t2", Status::Error),
        call("c1", 0, tokens(100, 0, 0, 5)),
        again,
        twice,
        tool("t5", "pwd"),
    ]);
    // The call that asked for both is blamed once.
    assert_eq!(
        waste(&summary),
        [
            (Waste::Repeat, 1, 0),
            (Waste::Repeat, 1, 105),
            (Waste::Retry, 1, 0)
        ]
    );
    let tools: Vec<(&str, u64, u64)> = summary
        .tools
        .iter()
        .map(|(key, used)| (&*key.tool, used.calls, used.failures))
        .collect();
    assert_eq!(tools.iter().map(|it| it.1).sum::<u64>(), 5);
    assert_eq!(tools.iter().map(|it| it.2).sum::<u64>(), 1);
}

#[test]
fn active_time_leaves_out_pauses() {
    let note = |minutes| Entry {
        at: Some(at(minutes)),
        ..Entry::note(NoteKind::Session, "")
    };
    // A gap of five minutes counts, one of six does not, and going back in time is nothing.
    let summary = summed(vec![
        note(0),
        note(5),
        note(11),
        note(14),
        note(13),
        note(16),
    ]);
    let active: Vec<u64> = summary
        .activity
        .values()
        .map(|did| did.active_ms / 60_000)
        .collect();
    assert_eq!(active, [8, 3], "by the slot of the later event");
}

#[test]
fn what_makes_too_many_rows_is_still_counted() {
    let models: Vec<String> = (0..9_000).map(|n| format!("model-{n}")).collect();
    let entries = models.iter().enumerate().map(|(n, model)| Entry {
        at: Some(at(i64::try_from(n).unwrap() * 15)),
        model: Some(Cow::Borrowed(model)),
        usage: Some(tokens(1, 0, 0, 1)),
        ..Entry::note(NoteKind::Usage, "")
    });
    let summary = summed(entries.collect());
    assert_eq!((summary.calls(), summary.usage().total()), (9_000, 18_000));
    assert!(summary.spend.len() <= 8_193, "{}", summary.spend.len());
    let others = SpendKey {
        by: Doer::default(),
        model: "(others)".to_owned(),
        ..SpendKey::default()
    };
    assert_eq!(summary.spend[&others].calls, 9_000 - 8_192);
}

fn used(id: &'static str, name: &'static str) -> Entry<'static> {
    Entry::new(What::Call {
        name: Cow::Borrowed(name),
        id: Cow::Borrowed(id),
        input: None,
    })
}

fn ended(id: &'static str) -> Entry<'static> {
    Entry::new(What::Result {
        name: Cow::Borrowed(""),
        id: Cow::Borrowed(id),
        output: None,
        error: None,
    })
}

/// What results are said to be of, and how many calls are left without one.
#[test]
fn calls_that_share_an_id_are_answered_one_after_the_other() {
    #[derive(Default)]
    struct Names(Vec<String>);
    impl Sink for Names {
        fn entry(&mut self, _: u64, _: Timestamp, _: Position, entry: &Entry<'_>) {
            if let What::Result { name, .. } = &entry.what {
                self.0.push(name.to_string());
            }
        }
    }
    let (mut names, mut ledger) = (Names::default(), Ledger::default());
    let mut out = Out::new(&mut names, &mut ledger);
    for entry in [
        used("call_0", "read"),
        used("call_0", "write"),
        used("call_0", "list"),
        ended("call_0"),
        ended("call_0"),
        ended("other"),
    ] {
        out.push(entry);
    }
    assert_eq!(names.0, ["read", "write", ""]);
    assert_eq!(ledger.open_calls().collect::<Vec<_>>(), [3]);
    assert_eq!(ledger.orphans, 1);
}

#[test]
fn every_model_that_is_named_is_listed() {
    let named = |model: &'static str| Entry {
        model: Some(Cow::Borrowed(model)),
        ..Entry::new(What::Assistant(Text::from("hi")))
    };
    let summary = summed(vec![
        named("silent"),
        named(""),
        call("c1", 0, tokens(1, 0, 0, 1)),
        named("silent"),
    ]);
    let models: Vec<&str> = summary.models.iter().map(String::as_str).collect();
    assert_eq!(models, ["m-1", "silent"]);
    assert_eq!(summary.spend.len(), 1);
}

#[test]
fn searches_are_counted_once_per_call_and_as_they_come_without_one() {
    let searched = |id: &'static str, n: u64| Entry {
        searches: Some(n),
        ..call(id, 0, tokens(10, 0, 0, 1))
    };
    let item = Entry {
        at: Some(at(0)),
        model: Some(Cow::Borrowed("m-1")),
        searches: Some(1),
        ..used("ws_1", "web_search")
    };
    let summary = summed(vec![
        searched("c1", 1),
        searched("c1", 3),
        searched("c1", 2),
        searched("c2", 1),
        item.clone(),
        item,
    ]);
    let spend: Vec<_> = summary.spend.values().collect();
    assert_eq!(spend.len(), 1);
    assert_eq!((spend[0].calls, spend[0].searches), (2, 6));
}

#[test]
fn what_a_log_says_that_calls_cost_is_summed_apart_from_what_it_does_not_say() {
    let told = |id: &'static str, cost: &str| Entry {
        cost: quipu_model::Money::parse(cost),
        ..call(id, 0, tokens(10, 0, 0, 1))
    };
    let summary = summed(vec![
        told("c1", "0.1"),
        told("c1", "0.25"),
        told("c2", "0.5"),
        call("c3", 0, tokens(7, 0, 0, 0)),
    ]);
    let rows: Vec<_> = summary
        .spend
        .iter()
        .map(|(key, spend)| (key.told, spend.calls, spend.told().to_string()))
        .collect();
    let expected = [(false, 1, "0".to_owned()), (true, 2, "0.75".to_owned())];
    assert_eq!(rows, expected);
}

#[test]
fn a_sum_of_calls_that_were_counted_adds_none() {
    let sum = |calls: u64| Entry {
        calls: Some(calls),
        model: Some(Cow::Borrowed("m-1")),
        usage: Some(tokens(5, 0, 0, 0)),
        ..Entry::note(NoteKind::Session, "")
    };
    let summary = summed(vec![call("c1", 0, tokens(1, 0, 0, 1)), sum(0), sum(2)]);
    assert_eq!(summary.calls(), 3);
    assert_eq!(summary.usage().input, Some(11));
}
