//! What every implementation of [`Index`] has to do.

use std::sync::Arc;

use jiff::Timestamp;
use jiff::tz::TimeZone;

use crate::index::{Index, Order, Passes, Sessions, View, Wish, Written};
use crate::query::{Clock, Filter, Query};
use crate::{Document, Facet, Tag};

/// What an implementation did otherwise than it should.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// What was tried.
    pub check: &'static str,
    /// What happened.
    pub why: String,
}

/// What became of the checks.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Report {
    /// Those that went as they should.
    pub passed: Vec<&'static str>,
    /// Those that did not.
    pub failed: Vec<Failure>,
}

type Outcome = Result<(), String>;

/// Makes an index in which there is nothing.
type Make<'m> = &'m dyn Fn() -> Arc<dyn Index>;

/// Tries an implementation. Every check is given an index of its own.
pub fn conformance(make: &dyn Fn() -> Arc<dyn Index>) -> Report {
    let mut report = Report::default();
    for (check, run) in ALL {
        match run(make) {
            Ok(()) => report.passed.push(check),
            Err(why) => report.failed.push(Failure { check, why }),
        }
    }
    report
}

type Check = (&'static str, fn(Make<'_>) -> Outcome);

const ALL: &[Check] = &[
    ("what is committed is found, and not before", committed),
    ("a view does not change", unchanged),
    ("words, phrases and tags are told apart", asked),
    ("events come in the order that is asked for", ordered),
    ("passes are hidden", hidden),
    ("passes are removed, and nothing is left of them", removed),
    (
        "sessions are asked for what the index does not know",
        sessions,
    ),
    ("an index is marked", marked),
    ("one writes at a time", alone),
    ("threads fill parts at the same time", together),
];

/// A part takes so many bytes of memory at most.
const BUDGET: usize = 16 << 20;

/// Says of every session that it is of pass 2.
struct Second;

impl Sessions for Second {
    fn passes(&self, _filter: &Filter) -> crate::index::Result<Passes> {
        Ok([2].into_iter().collect())
    }
}

fn failed(error: impl std::fmt::Display) -> String {
    format!("it failed: {error}")
}

fn expect<T: PartialEq + std::fmt::Debug>(what: &str, found: &T, expected: &T) -> Outcome {
    if found == expected {
        return Ok(());
    }
    Err(format!("{what}: {expected:?} was expected, not {found:?}"))
}

fn query(text: &str) -> Result<Query, String> {
    let clock = Clock {
        now: Timestamp::UNIX_EPOCH,
        zone: TimeZone::UTC,
    };
    Query::parse(text, &clock).map_err(failed)
}

fn event(pass: u64, seq: u64, text: &str) -> Document {
    Document {
        pass,
        seq,
        at: i64::try_from(seq).ok().map(|seq| seq * 1000),
        place: seq * 10,
        text: text.to_owned(),
        paths: String::new(),
        tags: vec![Tag::new(Facet::Role, "user")],
    }
}

fn written(index: &dyn Index, documents: Vec<Document>) -> Result<Written, String> {
    let mut part = index.parts(BUDGET).begin().map_err(failed)?;
    for document in documents {
        part.add(document).map_err(failed)?;
    }
    part.write().map_err(failed)
}

fn add(index: &dyn Index, documents: Vec<Document>) -> Outcome {
    let mut writer = index.writer().map_err(failed)?;
    writer.add(written(index, documents)?).map_err(failed)?;
    writer.commit("mark").map_err(failed)?;
    writer.finish().map_err(failed)
}

fn found(view: &dyn View, text: &str, wish: &Wish) -> Result<Vec<u64>, String> {
    let hits = view.search(&query(text)?, wish, &Second).map_err(failed)?;
    Ok(hits.into_iter().map(|hit| hit.seq).collect())
}

/// The events that are found now, the latest first.
fn now(index: &dyn Index, text: &str) -> Result<Vec<u64>, String> {
    found(&*index.view().map_err(failed)?, text, &newest())
}

fn newest() -> Wish {
    Wish {
        order: Order::Newest,
        limit: 100,
        hidden: Passes::default(),
    }
}

fn committed(make: Make<'_>) -> Outcome {
    let index = make();
    expect("an empty index finds", &now(&*index, "fox")?, &Vec::new())?;
    let mut writer = index.writer().map_err(failed)?;
    let part = written(&*index, vec![event(1, 7, "a quick fox")])?;
    expect(
        "what is only written finds",
        &now(&*index, "fox")?,
        &Vec::new(),
    )?;
    writer.add(part).map_err(failed)?;
    expect(
        "what is only added finds",
        &now(&*index, "fox")?,
        &Vec::new(),
    )?;
    writer.commit("mark").map_err(failed)?;
    writer.finish().map_err(failed)?;
    expect("what is committed finds", &now(&*index, "fox")?, &vec![7])?;
    let view = index.view().map_err(failed)?;
    let hits = view.search(&query("fox")?, &newest(), &Second);
    let hits = hits.map_err(failed)?;
    let hit = hits.first().ok_or("nothing was found")?;
    expect("its place", &(hit.pass, hit.seq, hit.place), &(1, 7, 70))?;
    expect("its time", &hit.at, &Some(7000))?;
    expect(
        "the highest pass",
        &view.highest_pass().map_err(failed)?,
        &1,
    )?;
    expect("how many there are", &view.events(), &1)
}

fn unchanged(make: Make<'_>) -> Outcome {
    let index = make();
    add(&*index, vec![event(1, 1, "fox")])?;
    let before = index.view().map_err(failed)?;
    add(&*index, vec![event(2, 2, "fox")])?;
    expect("before", &found(&*before, "fox", &newest())?, &vec![1])?;
    expect("now", &now(&*index, "fox")?, &vec![2, 1])
}

fn asked(make: Make<'_>) -> Outcome {
    let index = make();
    let mut tagged = event(1, 3, "a slow dog");
    tagged.tags = vec![Tag::new(Facet::Role, "assistant")];
    add(
        &*index,
        vec![
            event(1, 1, "the quick brown fox"),
            event(1, 2, "brown quick"),
            tagged,
        ],
    )?;
    for (text, expected) in [
        ("quick", vec![2, 1]),
        ("QUICK brown", vec![2, 1]),
        ("\"quick brown\"", vec![1]),
        ("quick -fox", vec![2]),
        ("dog OR fox", vec![3, 1]),
        ("role:assistant", vec![3]),
        ("elephant", Vec::new()),
    ] {
        expect(text, &now(&*index, text)?, &expected)?;
        let view = index.view().map_err(failed)?;
        let count = view.count(&query(text)?, &Passes::default(), &Second);
        expect(text, &count.map_err(failed)?, &(expected.len() as u64))?;
    }
    Ok(())
}

fn ordered(make: Make<'_>) -> Outcome {
    let index = make();
    add(
        &*index,
        vec![
            event(1, 1, "fox"),
            event(2, 2, "a fox in a long text about many other things"),
            event(
                3,
                3,
                "another long text about many things, one of them a fox",
            ),
        ],
    )?;
    let view = index.view().map_err(failed)?;
    expect(
        "the newest first",
        &found(&*view, "fox", &newest())?,
        &vec![3, 2, 1],
    )?;
    let limited = Wish {
        limit: 2,
        ..newest()
    };
    expect("at most two", &found(&*view, "fox", &limited)?, &vec![3, 2])?;
    let best = Wish {
        order: Order::Relevance,
        limit: 1,
        hidden: Passes::default(),
    };
    expect("the best", &found(&*view, "fox", &best)?, &vec![1])?;
    let by_pass = Wish {
        order: Order::ByPass(Arc::new(vec![0, 5, 9, 7])),
        ..newest()
    };
    expect("by pass", &found(&*view, "fox", &by_pass)?, &vec![2, 3, 1])
}

fn hidden(make: Make<'_>) -> Outcome {
    let index = make();
    add(&*index, vec![event(1, 1, "fox"), event(2, 2, "fox")])?;
    let view = index.view().map_err(failed)?;
    let hidden: Passes = [2].into_iter().collect();
    let count = view.count(&query("fox")?, &hidden, &Second);
    expect("how many", &count.map_err(failed)?, &1)?;
    for order in [Order::Newest, Order::Relevance] {
        let wish = Wish {
            order,
            limit: 10,
            hidden: hidden.clone(),
        };
        expect("found", &found(&*view, "fox", &wish)?, &vec![1])?;
    }
    Ok(())
}

fn removed(make: Make<'_>) -> Outcome {
    let index = make();
    add(&*index, vec![event(1, 1, "fox"), event(2, 2, "fox")])?;
    add(&*index, vec![event(2, 3, "fox"), event(3, 4, "fox")])?;
    let mut writer = index.writer().map_err(failed)?;
    writer.keep_apart();
    writer.remove(2);
    expect(
        "before it is committed",
        &now(&*index, "fox")?,
        &vec![4, 3, 2, 1],
    )?;
    writer.commit("mark").map_err(failed)?;
    expect("after that", &now(&*index, "fox")?, &vec![4, 1])?;
    writer.purge().map_err(failed)?;
    writer.finish().map_err(failed)?;
    expect("after it was purged", &now(&*index, "fox")?, &vec![4, 1])?;
    let left = index.view().map_err(failed)?;
    expect("what still takes room", &left.removed(), &0)?;
    expect("how many there are", &left.events(), &2)?;
    expect("damages", &index.damages(true), &Vec::new())
}

fn sessions(make: Make<'_>) -> Outcome {
    let index = make();
    add(&*index, vec![event(1, 1, "fox"), event(2, 2, "fox")])?;
    expect("a branch", &now(&*index, "fox branch:main")?, &vec![2])?;
    expect(
        "not on a branch",
        &now(&*index, "fox -branch:main")?,
        &vec![1],
    )
}

fn marked(make: Make<'_>) -> Outcome {
    let index = make();
    let mut writer = index.writer().map_err(failed)?;
    writer.commit("one 1").map_err(failed)?;
    let mark = || index.mark().map_err(failed);
    expect("the mark", &mark()?, &Some("one 1".to_owned()))?;
    writer.commit("two").map_err(failed)?;
    writer.finish().map_err(failed)?;
    expect("the mark", &mark()?, &Some("two".to_owned()))
}

fn alone(make: Make<'_>) -> Outcome {
    let index = make();
    let writer = index.writer().map_err(failed)?;
    expect("another is refused", &index.writer().is_err(), &true)?;
    writer.finish().map_err(failed)?;
    expect("the next one is not", &index.writer().is_ok(), &true)
}

fn together(make: Make<'_>) -> Outcome {
    let index = &*make();
    let parts: Vec<Result<Written, String>> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..4)
            .map(|thread| {
                let events = (0..50).map(|nth| event(thread, thread * 50 + nth, "fox"));
                let events: Vec<Document> = events.collect();
                scope.spawn(move || written(index, events))
            })
            .collect();
        let joined = threads.into_iter().map(std::thread::ScopedJoinHandle::join);
        joined
            .map(|it| it.unwrap_or_else(|_| Err("a thread panicked".to_owned())))
            .collect()
    });
    let mut writer = index.writer().map_err(failed)?;
    for part in parts {
        writer.add(part?).map_err(failed)?;
    }
    writer.commit("mark").map_err(failed)?;
    writer.finish().map_err(failed)?;
    let view = index.view().map_err(failed)?;
    let count = view.count(&query("fox")?, &Passes::default(), &Second);
    expect("all are found", &count.map_err(failed)?, &200)
}
