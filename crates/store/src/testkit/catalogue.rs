//! What every implementation of [`Catalogue`] has to do.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use quipu_agents::{Ledger, Session, Spend, SpendKey, Summary, Tokens, ToolKey, ToolUse};

use super::{Check, Outcome, Report, expect, failed};
use crate::catalogue::{
    Advance, AdvanceKind, Catalogue, CatalogueError, Copied, Filter, NotFound, Order, Pass, Passed,
    Reading, Slots, Stamp,
};

/// Makes a catalogue in which there is nothing.
type Make = dyn Fn() -> Arc<dyn Catalogue>;

/// Tries an implementation. Every check is given a catalogue of its own.
pub fn conformance(make: &(dyn Fn() -> Arc<dyn Catalogue> + 'static)) -> Report {
    super::run(ALL, make)
}

const ALL: &[Check<Make>] = &[
    ("what is put comes out, and unknown is not zero", put),
    ("transcripts are filtered and ordered", filtered),
    (
        "a transcript is found by its id and the beginning of it",
        found,
    ),
    ("sub-agents are known by their session", children),
    ("what is known of logs can be asked and forgotten", sources),
    ("what is done at once is done wholly or not at all", at_once),
    ("what was committed is seen by another", another),
    ("passes count once they are live", passes),
    ("what was spent is given by the quarter of an hour", spent),
    ("relatives are found, and copies marked", relatives),
    (
        "what was added is told in order, from any place on",
        advances,
    ),
    ("what is put down is sound", sound),
    ("several threads may put at the same time", together),
];

/// What an advance says: its places, its events, what became of the transcript.
type Told = (u64, u64, u64, u64, AdvanceKind);

fn told(catalogue: &dyn Catalogue, behind: u64) -> Result<Vec<Told>, String> {
    let rows = catalogue.advances(behind, 100).map_err(failed)?;
    let told = |row: &Advance| (row.first, row.last, row.from, row.to, row.kind);
    Ok(rows.iter().map(told).collect())
}

fn advances(make: &Make) -> Outcome {
    use AdvanceKind::{Again, Gone, Grown};
    let catalogue = &*make();
    let span = catalogue.advances_span().map_err(failed)?;
    expect(
        "the places of an empty catalogue",
        (span.first, span.last),
        (1, 0),
    )?;
    let other = make().advances_span().map_err(failed)?;
    if span.generation == other.generation {
        return Err("two catalogues have the same generation".to_owned());
    }
    let put = |key: &str, events, holds| catalogue.put_advance(key, events, holds).map_err(failed);
    for id in ["one", "two"] {
        catalogue.put(&reading(id)).map_err(failed)?;
    }
    let (one, two) = (key("one"), key("two"));
    put(&one, 3, 0)?;
    // Nothing new; then more of the same log, which is told with what was before it.
    put(&one, 3, 3)?;
    put(&one, 5, 3)?;
    put(&two, 2, 0)?;
    put(&one, 6, u64::MAX)?;
    // The last two were read otherwise.
    put(&one, 7, 4)?;
    // It was cut short.
    put(&two, 1, 1)?;
    let all = [
        (1, 5, 1, 5, Grown),
        (6, 7, 1, 2, Grown),
        (8, 8, 6, 6, Grown),
        (9, 11, 5, 7, Again),
        (12, 12, 2, 1, Again),
    ];
    expect("all advances", told(catalogue, 0)?, all.to_vec())?;
    let cut = [(4, 5, 4, 5, Grown), all[1]];
    expect(
        "from the middle",
        told(catalogue, 3)?[..2].to_vec(),
        cut.to_vec(),
    )?;
    expect("cut", told(catalogue, 9)?[0], (10, 11, 6, 7, Grown))?;
    let row = catalogue.find("one").map_err(failed)?;
    let first = catalogue.advances(0, 1).map_err(failed)?.remove(0);
    expect("the address", first.address, row.address)?;
    expect("the agent", first.agent, Some(row.agent))?;
    catalogue.forget(&one).map_err(failed)?;
    expect("a loss", told(catalogue, 12)?, vec![(13, 13, 0, 0, Gone)])?;
    put(&one, 2, u64::MAX)?;
    expect(
        "a return",
        told(catalogue, 13)?,
        vec![(14, 15, 1, 2, Grown)],
    )?;
    let span = catalogue.advances_span().map_err(failed)?;
    expect("the places", (span.first, span.last), (1, 15))
}

fn reading(id: &str) -> Reading {
    let mut summary = Summary {
        events: 4,
        prompts: 1,
        tool_calls: 2,
        first_at: Some(1_000),
        last_at: Some(2_000),
        title: Some(format!("about {id}")),
        ..Summary::default()
    };
    let mut spend = Spend::default();
    spend.calls = 1;
    spend.tokens = Tokens {
        input: Some(10),
        output: Some(5),
        ..Tokens::default()
    };
    summary.spend.insert(spent_on("model-1", Some(7)), spend);
    summary.models.insert("model-1".to_owned());
    let tool = ToolKey {
        tool: "Bash".to_owned(),
        ..ToolKey::default()
    };
    let used = ToolUse {
        calls: 2,
        failures: 1,
    };
    summary.tools.insert(tool, used);
    Reading {
        key: key(id),
        agent: "claude-code".to_owned(),
        dialect: Some("claude"),
        path: PathBuf::from(format!("/logs/{id}.jsonl")),
        part: None,
        stamp: Stamp::default(),
        version: 1,
        read_to: 100,
        manifest: None,
        checkpoint: None,
        ledger: Ledger::default(),
        session: Session {
            id: Some(id.to_owned()),
            cwd: Some("/code/Tower".to_owned()),
            branch: Some("main".to_owned()),
            ..Session::default()
        },
        summary,
        blobs: Vec::new(),
        first_modified: None,
        passes: Passed::default(),
        problem: None,
        received: None,
    }
}

/// The key of a log.
fn key(id: &str) -> String {
    crate::address::Digest::of(id.as_bytes()).to_string()
}

fn spent_on(model: &str, slot: Option<i64>) -> SpendKey {
    let mut key = SpendKey {
        model: model.to_owned(),
        ..SpendKey::default()
    };
    key.by.slot = slot;
    key
}

fn put_one(catalogue: &dyn Catalogue, reading: &Reading) -> Result<i64, String> {
    let put = catalogue.put(reading).map_err(failed)?;
    put.ok_or_else(|| "what was put has no transcript".to_owned())
}

/// A session of Claude's, a later one of Codex's, and a sub-agent of the first.
fn three(make: &Make) -> Result<Arc<dyn Catalogue>, String> {
    let catalogue = make();
    put_one(&*catalogue, &reading("aaa1"))?;
    let mut codex = reading("aab2");
    "codex".clone_into(&mut codex.agent);
    codex.session.cwd = Some("/code/garden".to_owned());
    codex.session.branch = Some("dev".to_owned());
    (codex.summary.first_at, codex.summary.last_at) = (Some(8_000), Some(9_000));
    codex.summary.models = ["gpt-x".to_owned()].into();
    put_one(&*catalogue, &codex)?;
    let mut child = reading("child");
    child.session.parent = Some("aaa1".to_owned());
    child.summary.first_at = Some(1_500);
    put_one(&*catalogue, &child)?;
    Ok(catalogue)
}

fn ids(catalogue: &dyn Catalogue, filter: &Filter, order: Order) -> Result<Vec<String>, String> {
    let rows = catalogue.list(filter, order, None).map_err(failed)?;
    Ok(rows.into_iter().map(|row| row.run_id).collect())
}

fn owned(ids: &[&str]) -> Vec<String> {
    ids.iter().map(ToString::to_string).collect()
}

fn put(make: &Make) -> Outcome {
    let catalogue = three(make)?;
    let row = catalogue.find("aaa1").map_err(failed)?;
    expect("title", row.title.as_deref(), Some("about aaa1"))?;
    expect("models", row.models.clone(), owned(&["model-1"]))?;
    let tokens = (row.usage.input, row.usage.output, row.usage.cache_read);
    expect("tokens", tokens, (Some(10), Some(5), None))?;
    expect("path", &*row.path, Path::new("/logs/aaa1.jsonl"))?;
    let again = put_one(&*catalogue, &reading("aaa1"))?;
    expect("the number of the transcript stays", again, row.id)?;
    let same = catalogue.row(row.id).map_err(failed)?;
    expect(
        "the same again changes nothing",
        format!("{same:?}"),
        format!("{row:?}"),
    )?;
    let mut empty = reading("empty");
    (empty.summary.events, empty.summary.notes) = (0, 0);
    let put = catalogue.put(&empty).map_err(failed)?;
    expect("a log without events has a transcript", put, None)
}

/// Asks for something.
type Change = fn(&mut Filter);

fn filtered(make: &Make) -> Outcome {
    let catalogue = three(make)?;
    let all = Filter::default();
    let newest = ids(&*catalogue, &all, Order::Newest)?;
    expect(
        "newest first, without sub-agents",
        newest,
        owned(&["aab2", "aaa1"]),
    )?;
    let oldest = ids(&*catalogue, &all, Order::Oldest)?;
    expect("oldest first", oldest, owned(&["aaa1", "aab2"]))?;
    let limited = catalogue
        .list(&all, Order::Newest, Some(1))
        .map_err(failed)?;
    expect("at most one", limited.len(), 1)?;
    let filters: [(Change, &[&str]); 9] = [
        (|it| it.subagents = true, &["aaa1", "aab2", "child"]),
        (|it| it.agents = vec!["CLAUDE".to_owned()], &["aaa1"]),
        (|it| it.agents = vec!["x".to_owned()], &[]),
        (|it| it.project = Some("tower".to_owned()), &["aaa1"]),
        (|it| it.branch = Some("dev".to_owned()), &["aab2"]),
        (|it| it.model = Some("GPT".to_owned()), &["aab2"]),
        (|it| it.title = Some("ABOUT AAA".to_owned()), &["aaa1"]),
        (|it| it.since = Some(5_000), &["aab2"]),
        (|it| it.until = Some(5_000), &["aaa1"]),
    ];
    for (change, expected) in filters {
        let mut filter = Filter::default();
        change(&mut filter);
        let mut found = ids(&*catalogue, &filter, Order::Oldest)?;
        found.sort();
        expect(&format!("{filter:?}"), found, owned(expected))?;
    }
    let sums = catalogue.by_agent(&all).map_err(failed)?;
    let sums: Vec<(String, u64)> = sums
        .into_iter()
        .map(|it| (it.name, it.transcripts))
        .collect();
    let expected = vec![("claude-code".to_owned(), 1), ("codex".to_owned(), 1)];
    expect("sums by agent", sums, expected)
}

fn found(make: &Make) -> Outcome {
    let catalogue = three(make)?;
    let find = |id: &str| catalogue.find(id).map(|row| row.run_id);
    expect(
        "by its id",
        find("aaa1").map_err(failed)?,
        "aaa1".to_owned(),
    )?;
    expect(
        "by its beginning",
        find("aab").map_err(failed)?,
        "aab2".to_owned(),
    )?;
    expect("the last", find("last").map_err(failed)?, "aab2".to_owned())?;
    let several = matches!(find("aa"), Err(NotFound::Several(_, ids)) if ids == ["aaa1", "aab2"]);
    expect("of several, all are named", several, true)?;
    let none = matches!(find("zz"), Err(NotFound::None(id)) if id == "zz");
    expect("of none, it is said", none, true)?;
    let row = catalogue.find("aaa1").map_err(failed)?;
    let address = row.address.clone();
    let by_address = find(&address).map_err(failed)?;
    expect("by its address", by_address, "aaa1".to_owned())?;
    let all = catalogue.run_ids().map_err(failed)?;
    expect("all ids", all, owned(&["aaa1", "aab2", "child"]))?;
    let at = catalogue.transcripts_at(Path::new("/logs/aab2.jsonl"));
    expect("by its log", at.map_err(failed)?.len(), 1)
}

fn children(make: &Make) -> Outcome {
    let catalogue = three(make)?;
    let children = catalogue.children("aaa1").map_err(failed)?;
    let children: Vec<String> = children.into_iter().map(|row| row.run_id).collect();
    expect("sub-agents", children, owned(&["child"]))?;
    let counts = catalogue.child_counts().map_err(failed)?;
    expect("how many", counts.get("aaa1").copied(), Some(1))?;
    let below = catalogue.below(&["aaa1", "nothing"]).map_err(failed)?;
    let below: Vec<&str> = below.iter().map(|(root, _)| root.as_str()).collect();
    expect("below", below, vec!["aaa1"])
}

fn sources(make: &Make) -> Outcome {
    let catalogue = three(make)?;
    let mut more = reading("aaa1");
    more.checkpoint = Some(vec![0, 159, 146, 150]);
    more.version = 3;
    more.blobs = vec![key("blob")];
    put_one(&*catalogue, &more)?;
    let id = key("aaa1");
    let checkpoint = catalogue.checkpoint(&id).map_err(failed)?;
    expect(
        "the checkpoint",
        checkpoint,
        Some((3, vec![0, 159, 146, 150])),
    )?;
    expect("it is known", catalogue.knows(&id).map_err(failed)?, true)?;
    let blob = key("blob");
    let uses = || catalogue.uses_blob(&blob).map_err(failed);
    expect("the blob is used", uses()?, true)?;
    expect(
        "blobs",
        catalogue.blobs().map_err(failed)?,
        vec![blob.clone()],
    )?;
    let there = catalogue.sources_at(Path::new("/logs/aaa1.jsonl"));
    expect("logs in this place", there.map_err(failed)?.len(), 1)?;
    catalogue.distrust(&id).map_err(failed)?;
    let after = (
        catalogue.knows(&id).map_err(failed)?,
        catalogue.checkpoint(&id).map_err(failed)?,
    );
    expect(
        "what is distrusted is not relied upon",
        after,
        (false, None),
    )?;
    catalogue.forget(&id).map_err(failed)?;
    expect(
        "what is forgotten is gone",
        catalogue.source(&id).map_err(failed)?.is_none(),
        true,
    )?;
    expect("and its transcript", catalogue.find("aaa1").is_err(), true)?;
    expect("and its use of a blob", uses()?, false)?;
    let keep: HashSet<String> = [key("aab2")].into();
    catalogue.keep_only(&keep).map_err(failed)?;
    let left = catalogue.sources().map_err(failed)?;
    let left: Vec<String> = left.into_iter().map(|row| row.key).collect();
    expect("only this is kept", left, vec![key("aab2")])
}

fn at_once(make: &Make) -> Outcome {
    let catalogue = make();
    let failing: Result<(), String> = catalogue
        .at_once(|| {
            catalogue.put(&reading("lost")).map_err(Stop::from)?;
            // What was done is seen by whoever does it.
            catalogue.find("lost").map_err(|_| Stop::Other)?;
            Err::<(), Stop>(Stop::Meant)
        })
        .map_err(|stop| format!("{stop:?}"));
    expect(
        "it failed as it was meant to",
        failing,
        Err("Meant".to_owned()),
    )?;
    expect(
        "nothing is left of it",
        catalogue.find("lost").is_err(),
        true,
    )?;
    let done = catalogue.at_once(|| {
        catalogue.put(&reading("one"))?;
        catalogue.put(&reading("two"))
    });
    let done: Option<i64> = done.map_err(|error: CatalogueError| failed(error))?;
    expect("what it gives is given", done.is_some(), true)?;
    let all = catalogue.run_ids().map_err(failed)?;
    expect("all of it is there", all, owned(&["one", "two"]))
}

#[derive(Debug)]
enum Stop {
    Meant,
    Other,
}

impl From<CatalogueError> for Stop {
    fn from(_: CatalogueError) -> Self {
        Self::Other
    }
}

fn another(make: &Make) -> Outcome {
    let catalogue = three(make)?;
    let other = catalogue.another().map_err(failed)?;
    expect("what was put", other.find("aaa1").is_ok(), true)?;
    put_one(&*catalogue, &reading("later"))?;
    expect("what was put later", other.find("later").is_ok(), true)?;
    let unseen = catalogue.at_once(|| {
        catalogue.put(&reading("not yet"))?;
        Ok::<_, CatalogueError>(other.find("not-yet").is_err() && other.find("not yet").is_err())
    });
    let unseen: bool = unseen.map_err(failed)?;
    expect("what is not committed is not seen", unseen, true)
}

fn passes(make: &Make) -> Outcome {
    let catalogue = make();
    let mut first = reading("one");
    let pass = |id, provisional| Pass { id, provisional };
    first.passes = Passed::Whole(vec![pass(1, false), pass(2, true)]);
    let transcript = put_one(&*catalogue, &first)?;
    let live = || catalogue.live_passes().map_err(failed);
    expect("none is live", live()?, Vec::new())?;
    expect(
        "not yet indexed",
        catalogue.count_not_indexed().map_err(failed)?,
        1,
    )?;
    let unknown = catalogue.put_live(&[1, 2, 99]).map_err(failed)?;
    expect("unknown passes", unknown, vec![99])?;
    expect("both are live", live()?, vec![1, 2])?;
    expect("indexed", catalogue.count_not_indexed().map_err(failed)?, 0)?;
    let of = catalogue.transcript_of_pass(1).map_err(failed)?;
    expect("whose pass it is", of, Some(transcript))?;
    // What was provisional is replaced when the log goes on.
    first.passes = Passed::More(vec![pass(3, false)]);
    put_one(&*catalogue, &first)?;
    catalogue.put_live(&[3]).map_err(failed)?;
    expect("those are live", live()?, vec![1, 3])?;
    let dead = catalogue.dead_passes().map_err(failed)?;
    expect("that is to be taken out", dead, vec![2])?;
    catalogue.bury(&[2]).map_err(failed)?;
    expect(
        "it was",
        catalogue.dead_passes().map_err(failed)?,
        Vec::new(),
    )?;
    expect("the next one", catalogue.next_pass().map_err(failed)?, 4)?;
    catalogue.put_next_pass(10).map_err(failed)?;
    expect("the next one", catalogue.next_pass().map_err(failed)?, 10)?;
    catalogue.put_meta("name", "value").map_err(failed)?;
    let meta = catalogue.meta("name").map_err(failed)?;
    expect("a value", meta, Some("value".to_owned()))?;
    catalogue.forget_passes().map_err(failed)?;
    expect("none is left", live()?, Vec::new())
}

fn spent(make: &Make) -> Outcome {
    let catalogue = make();
    put_one(&*catalogue, &reading("one"))?;
    // What has no time in a session that has one is put to its beginning.
    let mut timeless = reading("two");
    (timeless.summary.first_at, timeless.summary.last_at) = (None, None);
    timeless.summary.spend.clear();
    timeless.summary.tools.clear();
    let mut undated = Spend::default();
    undated.calls = 2;
    let key = spent_on("other", None);
    timeless.summary.spend.insert(key, undated);
    put_one(&*catalogue, &timeless)?;
    let calls = |slots: Slots, model: Option<&str>| -> Result<Vec<(String, u64)>, String> {
        let mut found = Vec::new();
        let mut take = |row: &crate::catalogue::SpendRow<'_>| {
            found.push((row.model.to_owned(), row.calls));
        };
        catalogue
            .each_spend(&slots, model, &mut take)
            .map_err(failed)?;
        found.sort();
        Ok(found)
    };
    let dated = ("model-1".to_owned(), 1);
    let no_time = ("other".to_owned(), 2);
    let between = |since, until| Slots::Between { since, until };
    expect(
        "all",
        calls(Slots::All, None)?,
        vec![dated.clone(), no_time.clone()],
    )?;
    expect(
        "without a time",
        calls(Slots::Undated, None)?,
        vec![no_time],
    )?;
    expect(
        "since",
        calls(between(Some(7), None), None)?,
        vec![dated.clone()],
    )?;
    expect("until", calls(between(None, Some(7)), None)?, Vec::new())?;
    expect("of a model", calls(Slots::All, Some("MODEL"))?, vec![dated])?;
    let mut tools = Vec::new();
    let mut take = |row: &crate::catalogue::ActivityRow<'_>| {
        tools.push((row.tool.to_owned(), row.did.tool_calls, row.did.failures));
    };
    catalogue
        .each_tool_use(&Slots::All, &mut take)
        .map_err(failed)?;
    expect("tools", tools, vec![("Bash".to_owned(), 2, 1)])?;
    let subjects = catalogue.subjects(&Filter::default()).map_err(failed)?;
    expect("whose figures they are", subjects.len(), 2)?;
    let directories = catalogue.directories().map_err(failed)?;
    expect("directories", directories, owned(&["/code/Tower"]))
}

fn relatives(make: &Make) -> Outcome {
    let catalogue = make();
    let one = put_one(&*catalogue, &reading("same"))?;
    let mut copy = reading("same");
    copy.key = key("another file");
    copy.path = PathBuf::from("/logs/copy.jsonl");
    let two = put_one(&*catalogue, &copy)?;
    put_one(&*catalogue, &reading("stranger"))?;
    expect(
        "its relative",
        catalogue.relatives(one).map_err(failed)?,
        vec![two],
    )?;
    let related = catalogue.related(&[two]).map_err(failed)?;
    expect("those are related", related, vec![one, two])?;
    let lineage = catalogue.lineage(two).map_err(failed)?;
    expect(
        "the id that copies share",
        lineage.native,
        "same".to_owned(),
    )?;
    let copied = Copied {
        copy_of: Some(one),
        events: 4,
        duplicate: true,
    };
    catalogue.put_copied(two, &copied, None).map_err(failed)?;
    catalogue.settle_run_ids().map_err(failed)?;
    let row = catalogue.row(two).map_err(failed)?;
    expect(
        "it is a copy",
        (row.duplicate, row.copied_events),
        (true, 4),
    )?;
    let ids = ids(&*catalogue, &Filter::default(), Order::Oldest)?;
    expect("copies are not listed", ids, owned(&["same", "stranger"]))?;
    let compared = catalogue.compared_with(&key("same")).map_err(failed)?;
    expect("those were compared with it", compared.contains(&two), true)
}

fn sound(make: &Make) -> Outcome {
    let catalogue = three(make)?;
    catalogue.seal().map_err(failed)?;
    expect("damages", catalogue.damages(true), Vec::new())?;
    catalogue.compact().map_err(failed)?;
    expect("damages", catalogue.damages(false), Vec::new())?;
    expect(
        "it has a version",
        catalogue.version().map_err(failed)? > 0,
        true,
    )?;
    expect(
        "logs of earlier versions",
        catalogue.outdated().map_err(failed)?,
        0,
    )
}

fn together(make: &Make) -> Outcome {
    let catalogue = &*make();
    let done: Outcome = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..4)
            .map(|thread| {
                scope.spawn(move || {
                    (0..10).try_for_each(|nth| -> Outcome {
                        let log = reading(&format!("t{thread}-{nth}"));
                        let put = catalogue.at_once(|| catalogue.put(&log));
                        put.map(drop).map_err(|error: CatalogueError| failed(error))
                    })
                })
            })
            .collect();
        let mut joined = threads.into_iter().map(std::thread::ScopedJoinHandle::join);
        joined.try_for_each(|it| it.unwrap_or_else(|_| Err("a thread panicked".to_owned())))
    });
    done?;
    expect(
        "all are there",
        catalogue.run_ids().map_err(failed)?.len(),
        40,
    )
}
