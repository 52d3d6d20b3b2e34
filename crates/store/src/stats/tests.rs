//! Sums, however they are had, are the same.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use jiff::tz::TimeZone;
use proptest::prelude::*;
use quipu_agents::{
    Activity, Doer, Host, Ledger, Session, Spend, SpendKey, Summary, Tokens, ToolKey, ToolUse, slot,
};
use quipu_model::{Money, Service, Timestamp};
use quipu_prices::Prices;

use super::calendar::tests::zone;
use super::*;
use crate::Store;
use crate::catalogue::{Catalogue, Filter, Order, Reading, SqliteCatalogue, Stamp, TranscriptRow};
use crate::import::{ImportOptions, Progress};

fn at(text: &str) -> Timestamp {
    text.parse().unwrap()
}

/// A reading of which only the figures matter.
fn reading(id: &str, agent: &str, session: Session, summary: Summary) -> Reading {
    Reading {
        key: format!("{id:0>64}"),
        agent: agent.to_owned(),
        dialect: Some("claude"),
        path: PathBuf::from(format!("/home/ada/{id}.jsonl")),
        part: None,
        stamp: Stamp::default(),
        version: 1,
        read_to: 100,
        manifest: None,
        checkpoint: None,
        ledger: Ledger::default(),
        session: Session {
            id: Some(id.to_owned()),
            ..session
        },
        summary: Summary {
            events: 1,
            ..summary
        },
        blobs: Vec::new(),
        passes: crate::catalogue::Passed::default(),
        first_modified: None,
        problem: None,
        received: None,
    }
}

fn spent(key: SpendKey, input: u64, output: u64) -> (SpendKey, Spend) {
    let tokens = Tokens {
        input: Some(input),
        output: Some(output),
        ..Tokens::default()
    };
    let mut spend = Spend::default();
    (spend.calls, spend.tokens) = (1, tokens);
    (key, spend)
}

fn on(model: &str, time: &str) -> SpendKey {
    SpendKey {
        by: Doer {
            slot: Some(slot(at(time))),
            subagent: String::new(),
        },
        model: model.to_owned(),
        ..SpendKey::default()
    }
}

fn stats(catalogue: &dyn Catalogue, filter: &Filter, by: &[By], zone: &TimeZone) -> Table {
    let prices = Prices::builtin();
    let question = Question {
        filter,
        directories: None,
        by,
        zone,
        prices: &prices,
    };
    question.check().unwrap();
    catalogue.stats(&question).unwrap()
}

fn keys(table: &Table) -> Vec<String> {
    table.rows.iter().map(|row| row.key.join(" ")).collect()
}

#[test]
fn days_are_those_of_the_zone() {
    let catalogue = in_memory();
    // The nights in which clocks are changed, in Berlin and in New York.
    let summary = Summary {
        spend: [
            spent(on("gpt-5", "2026-03-28T22:59:00Z"), 1, 0),
            spent(on("gpt-5", "2026-03-28T23:00:00Z"), 10, 0),
            spent(on("gpt-5", "2026-03-29T21:59:00Z"), 100, 0),
            spent(on("gpt-5", "2026-03-29T22:00:00Z"), 1_000, 0),
        ]
        .into(),
        ..Summary::default()
    };
    let read = reading("s1", "codex", Session::default(), summary);
    catalogue.put(&read).unwrap();
    let by_day = |name: &str| {
        let table = stats(&*catalogue, &Filter::default(), &[By::Day], &zone(name));
        let rows = table.rows.into_iter();
        let input = |row: Row| (row.key[0].clone(), row.spent.unwrap().tokens.input.unwrap());
        rows.map(input).collect::<Vec<_>>()
    };
    let days = |all: &[(&str, u64)]| -> Vec<(String, u64)> {
        all.iter().map(|(day, n)| ((*day).to_owned(), *n)).collect()
    };
    assert_eq!(
        by_day("Europe/Berlin"),
        days(&[
            ("2026-03-28", 1),
            ("2026-03-29", 110),
            ("2026-03-30", 1_000)
        ])
    );
    assert_eq!(
        by_day("UTC"),
        days(&[("2026-03-28", 11), ("2026-03-29", 1_100)])
    );
    assert_eq!(
        by_day("America/New_York"),
        days(&[("2026-03-28", 11), ("2026-03-29", 1_100)])
    );
    // A bound in the middle of the day, as a person of Berlin means it.
    let filter = Filter {
        since: Some(at("2026-03-28T23:00:00Z").as_millisecond()),
        until: Some(at("2026-03-29T22:00:00Z").as_millisecond()),
        ..Filter::default()
    };
    let table = stats(&*catalogue, &filter, &[], &zone("Europe/Berlin"));
    assert_eq!(table.total.spent.unwrap().tokens.input, Some(110));
}

#[test]
fn what_has_no_price_is_not_free() {
    let catalogue = in_memory();
    let summary = Summary {
        spend: [
            spent(on("gpt-5", "2026-03-28T22:59:00Z"), 1_000_000, 0),
            spent(on("nobody-sells-this", "2026-03-28T22:59:00Z"), 7, 5),
            spent(on("", "2026-03-28T22:59:00Z"), 1, 0),
        ]
        .into(),
        ..Summary::default()
    };
    let read = reading("s1", "codex", Session::default(), summary);
    catalogue.put(&read).unwrap();
    let table = stats(
        &*catalogue,
        &Filter::default(),
        &[By::Model],
        &TimeZone::UTC,
    );
    assert_eq!(keys(&table), ["gpt-5", "nobody-sells-this", "(unnamed)"]);
    let spents: Vec<&Spent> = table
        .rows
        .iter()
        .filter_map(|row| row.spent.as_ref())
        .collect();
    assert_eq!(spents[0].dollars(), Money::parse("1.25"));
    assert_eq!((spents[1].dollars(), spents[1].unpriced), (None, 12));
    let total = table.total.spent.unwrap();
    assert_eq!(
        (total.dollars(), total.unpriced),
        (Money::parse("1.25"), 13)
    );
    let names: Vec<(&str, u64)> = table
        .unpriced
        .iter()
        .map(|it| (it.model.as_str(), it.tokens))
        .collect();
    assert_eq!(names, [("nobody-sells-this", 12), ("", 1)]);
    assert!(table.total.did.is_none(), "turns have no model");
}

/// On 2025-06-10 the price of o3 fell from 10 to 2 dollars a million.
#[test]
fn a_price_that_changes_within_a_session_is_that_of_the_call() {
    let catalogue = in_memory();
    let summary = Summary {
        spend: [
            spent(on("o3", "2025-06-09T23:59:00Z"), 1_000_000, 0),
            spent(on("o3", "2025-06-10T00:01:00Z"), 1_000_000, 0),
        ]
        .into(),
        ..Summary::default()
    };
    let read = reading("s1", "codex", Session::default(), summary);
    catalogue.put(&read).unwrap();
    let table = stats(&*catalogue, &Filter::default(), &[By::Day], &TimeZone::UTC);
    let dollars = |row: &Row| row.spent.as_ref().and_then(Spent::dollars);
    let days: Vec<_> = table.rows.iter().map(dollars).collect();
    assert_eq!(days, [Money::parse("10"), Money::parse("2")]);
    assert_eq!(dollars(&table.total), Money::parse("12"));
    // In New York both calls were made on the same day.
    let zone = zone("America/New_York");
    let table = stats(&*catalogue, &Filter::default(), &[By::Day], &zone);
    let days: Vec<_> = table.rows.iter().map(dollars).collect();
    assert_eq!(days, [Money::parse("12")]);
}

#[test]
fn a_session_has_its_sub_agents() {
    let catalogue = in_memory();
    let time = "2026-03-28T22:59:00Z";
    let one = |n: u64| Summary {
        spend: [spent(on("gpt-5", time), n, 0)].into(),
        ..Summary::default()
    };
    let parent = Session {
        title: Some("the whole".to_owned()),
        cwd: Some("/code/a".to_owned()),
        ..Session::default()
    };
    let child = |parent: &str| Session {
        parent: Some(parent.to_owned()),
        ..Session::default()
    };
    for (id, session, n) in [
        ("top", parent, 1),
        ("mid", child("top"), 10),
        ("low", child("mid"), 100),
        ("lost", child("gone"), 1_000),
    ] {
        catalogue
            .put(&reading(id, "codex", session, one(n)))
            .unwrap();
    }
    let by = |by: &[By]| {
        let table = stats(&*catalogue, &Filter::default(), by, &TimeZone::UTC);
        let rows = table.rows.iter();
        rows.map(|row| {
            (
                row.key.join(" "),
                row.spent.as_ref().unwrap().tokens.total(),
            )
        })
        .collect::<Vec<_>>()
    };
    assert_eq!(
        by(&[By::Session]),
        [("lost".into(), 1_000), ("top".into(), 111)]
    );
    assert_eq!(
        by(&[By::Session, By::Subagent]),
        [
            ("lost lost".into(), 1_000),
            ("top low".into(), 100),
            ("top mid".into(), 10),
            ("top (main)".into(), 1)
        ]
    );
    let table = stats(
        &*catalogue,
        &Filter::default(),
        &[By::Session],
        &TimeZone::UTC,
    );
    assert_eq!(table.titles["top"], "the whole");
    let projects = by(&[By::Project]);
    assert_eq!(projects, [("(none)".into(), 1_110), ("/code/a".into(), 1)]);
    let all = every(&*catalogue);
    let figures = catalogue.figures(&all, &Prices::builtin()).unwrap();
    let of = |id: &str| {
        let row = all.iter().find(|row| row.run_id == id).unwrap();
        let figures = &figures[&row.id];
        (figures.spent.tokens.total(), figures.subagents)
    };
    assert_eq!(
        ["top", "mid", "low", "lost"].map(of),
        [(111, 2), (110, 1), (100, 0), (1_000, 0)]
    );
}

#[test]
fn what_cannot_be_told_apart_is_refused() {
    let prices = Prices::builtin();
    let filter = Filter::default();
    let check = |by: &[By]| {
        Question {
            filter: &filter,
            directories: None,
            by,
            zone: &TimeZone::UTC,
            prices: &prices,
        }
        .check()
    };
    assert_eq!(
        check(&[By::Tool, By::Model]),
        Err(Ungroupable::ToolsByModel)
    );
    assert_eq!(check(&[By::Day, By::Day]), Err(Ungroupable::Twice(By::Day)));
    assert_eq!(check(&By::ALL[..5]), Err(Ungroupable::TooMany));
    assert_eq!(check(&[By::Day, By::Model]), Ok(()));
}

#[test]
fn addresses_of_one_repository_are_one() {
    for address in [
        "https://github.com/ada/engine.git",
        "https://ada:secret@github.com/ada/engine",
        "git@github.com:ada/engine.git",
        "ssh://git@github.com/ada/engine/",
    ] {
        assert_eq!(facts::plain_address(address), "github.com/ada/engine");
    }
}

#[derive(Debug, Clone)]
struct Made {
    agent: &'static str,
    cwd: Option<&'static str>,
    branch: Option<&'static str>,
    parent: Option<usize>,
    spend: Vec<(SpendKey, Spend)>,
    activity: Vec<(Doer, Activity)>,
    tools: Vec<(ToolKey, ToolUse)>,
}

fn doer() -> impl Strategy<Value = Doer> {
    // Around the days on which clocks change, prices change and years end.
    let days = prop::sample::select(vec![
        "2025-12-31T12:00:00Z",
        "2026-03-29T00:00:00Z",
        "2026-10-25T00:00:00Z",
        "2026-11-01T05:00:00Z",
    ]);
    let slots = (days, -200_i64..200).prop_map(|(day, more)| slot(at(day)) + more);
    let subagents = prop::sample::select(vec!["", "", "one", "two"]);
    (prop::option::weighted(0.9, slots), subagents).prop_map(|(slot, subagent)| Doer {
        slot,
        subagent: subagent.to_owned(),
    })
}

fn tokens() -> impl Strategy<Value = Tokens> {
    let bucket = || prop::option::of(0_u64..5_000_000);
    (
        bucket(),
        bucket(),
        bucket(),
        bucket(),
        0_u64..=100,
        0_u64..=100,
    )
        .prop_map(
            |(input, cache_read, cache_write, output, hour, reasoning)| Tokens {
                input,
                cache_read,
                cache_write,
                cache_write_1h: cache_write.map(|all| all * hour / 100),
                output,
                reasoning: output.map(|all| all * reasoning / 100),
            },
        )
}

fn spend() -> impl Strategy<Value = (SpendKey, Spend)> {
    let models = prop::sample::select(vec![
        "claude-opus-4-5-20251101",
        "claude-sonnet-4-5",
        "gpt-5",
        "gemini-2.5-pro",
        "deepseek-chat",
        "nobody-sells-this",
        "",
    ]);
    let service = prop::sample::select(Service::ALL.to_vec());
    (doer(), models, service, 0_u8..13, 0_u64..5, tokens()).prop_map(
        |(by, model, service, context, calls, tokens)| {
            let key = SpendKey {
                by,
                model: model.to_owned(),
                service,
                context,
                told: false,
            };
            let mut spend = Spend::default();
            (spend.calls, spend.tokens) = (calls, tokens);
            (key, spend)
        },
    )
}

fn activity() -> impl Strategy<Value = (Doer, Activity)> {
    (doer(), prop::array::uniform6(0_u64..1_000)).prop_map(|(by, n)| {
        let did = Activity {
            prompts: n[0],
            replies: n[1],
            tool_calls: n[2],
            failures: n[3],
            denials: n[4],
            active_ms: n[5],
        };
        (by, did)
    })
}

fn tool() -> impl Strategy<Value = (ToolKey, ToolUse)> {
    let tools = prop::sample::select(vec!["Bash", "Read", "=cmd"]);
    (doer(), tools, 0_u64..50, 0_u64..50).prop_map(|(by, tool, calls, failures)| {
        let tool = tool.to_owned();
        (ToolKey { by, tool }, ToolUse { calls, failures })
    })
}

fn made() -> impl Strategy<Value = Made> {
    (
        prop::sample::select(vec!["claude-code", "codex"]),
        prop::option::of(prop::sample::select(vec!["/code/a", "/code/b"])),
        prop::option::of(prop::sample::select(vec!["main", "dev"])),
        prop::option::of(0_usize..6),
        prop::collection::vec(spend(), 0..8),
        prop::collection::vec(activity(), 0..6),
        prop::collection::vec(tool(), 0..6),
    )
        .prop_map(
            |(agent, cwd, branch, parent, spend, activity, tools)| Made {
                agent,
                cwd,
                branch,
                parent,
                spend,
                activity,
                tools,
            },
        )
}

fn in_memory() -> Arc<dyn Catalogue> {
    Arc::new(SqliteCatalogue::in_memory().unwrap())
}

fn filled(all: &[Made]) -> Arc<dyn Catalogue> {
    let catalogue = in_memory();
    for (n, made) in all.iter().enumerate() {
        let session = Session {
            cwd: made.cwd.map(str::to_owned),
            branch: made.branch.map(str::to_owned),
            parent: made.parent.map(|parent| format!("session-{parent}")),
            ..Session::default()
        };
        let summary = Summary {
            spend: made.spend.iter().cloned().collect(),
            activity: made.activity.iter().cloned().collect(),
            tools: made.tools.iter().cloned().collect(),
            ..Summary::default()
        };
        let read = reading(&format!("session-{n}"), made.agent, session, summary);
        catalogue.put(&read).unwrap();
    }
    catalogue
}

/// The rows of a table, added up again.
fn added(table: &Table) -> (Option<Spent>, Option<Did>) {
    let mut spent: Option<Spent> = None;
    let mut did: Option<Did> = None;
    for row in &table.rows {
        if let Some(more) = &row.spent {
            spent.get_or_insert_default().add(more);
        }
        if let Some(more) = row.did {
            let sum = did.get_or_insert_default();
            sum.tool_calls += more.tool_calls;
            sum.failures += more.failures;
            if let Some(session) = more.session {
                let sums = sum.session.get_or_insert_default();
                sums.prompts += session.prompts;
                sums.replies += session.replies;
                sums.denials += session.denials;
                sums.active_ms += session.active_ms;
            }
        }
    }
    (spent, did)
}

/// All transcripts.
fn every(catalogue: &dyn Catalogue) -> Vec<TranscriptRow> {
    let all = Filter {
        subagents: true,
        duplicates: true,
        ..Filter::default()
    };
    catalogue.list(&all, Order::Oldest, None).unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn sessions_come_to_the_same_one_by_one_and_in_groups(
        mut all in prop::collection::vec(made(), 1..6),
        is_tree in any::<bool>(),
    ) {
        if is_tree {
            for (n, made) in all.iter_mut().enumerate() {
                made.parent = made.parent.filter(|parent| *parent < n);
            }
        }
        let catalogue = filled(&all);
        let rows = every(&*catalogue);
        let figures = catalogue.figures(&rows, &Prices::builtin()).unwrap();
        prop_assert_eq!(figures.len(), rows.len());
        // Those that are above themselves have no top; that they come to an end is all that is asked of them.
        for row in rows.iter().filter(|row| is_tree && row.parent.is_none()) {
            let table = stats(&*catalogue, &Filter::default(), &[By::Session], &TimeZone::UTC);
            let group = table.rows.iter().find(|group| group.key[0] == row.run_id);
            let (spent, did) = group.map_or_else(Default::default, |group| {
                (group.spent.clone().unwrap(), group.did.unwrap())
            });
            prop_assert_eq!(&figures[&row.id].spent, &spent);
            prop_assert_eq!(figures[&row.id].did.tool_calls, did.tool_calls);
            prop_assert_eq!(figures[&row.id].did.session.unwrap_or_default(), did.session.unwrap_or_default());
        }
    }

    #[test]
    fn sums_are_the_same_however_they_are_grouped(
        all in prop::collection::vec(made(), 1..6),
        zone in prop::sample::select(vec!["UTC", "Europe/Berlin", "America/New_York", "Asia/Kathmandu"]),
        groups in prop::collection::vec(prop::sample::subsequence(By::ALL.to_vec(), 0..=4), 6),
    ) {
        let catalogue = filled(&all);
        let zone = self::zone(zone);
        let filter = Filter::default();
        let whole = stats(&*catalogue, &filter, &[], &zone).total;
        let singly = By::ALL.iter().map(|by| vec![*by]);
        for by in groups.into_iter().chain(singly) {
            if by.contains(&By::Tool) && by.contains(&By::Model) {
                continue;
            }
            let table = stats(&*catalogue, &filter, &by, &zone);
            let (spent, did) = added(&table);
            let some = !table.rows.is_empty();
            if let Some(total) = &table.total.spent {
                prop_assert_eq!(Some(total), whole.spent.as_ref());
                prop_assert_eq!(spent, some.then(|| total.clone()));
            }
            if let Some(total) = table.total.did {
                prop_assert_eq!(did, some.then_some(total));
                if !by.contains(&By::Tool) {
                    prop_assert_eq!(Some(total), whole.did);
                }
            }
        }
    }
}

/// Logs of agents that are in no repository. Where there are none, it says so.
pub(super) fn fixtures() -> Option<PathBuf> {
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let given = std::env::var_os("QUIPU_FIXTURES").map(PathBuf::from);
    let path = given.unwrap_or_else(|| workspace.join("../shared/fixtures"));
    let found = path.canonicalize().ok();
    #[expect(
        clippy::print_stderr,
        reason = "a test that does nothing has to say so"
    )]
    if found.is_none() {
        eprintln!("skipped: no logs at {}", path.display());
    }
    found
}

/// Imports what lies at a path into a store of its own.
pub(super) fn imported(home: &Path, host: &Host, path: &Path) -> Store {
    let store = Store::open(home).unwrap();
    let options = ImportOptions {
        now: at("2026-11-15T12:00:00Z"),
        agents: Vec::new(),
        dry_run: false,
        threads: 2,
        redact: None,
    };
    store
        .import_paths(host, &[path.to_owned()], &options, &Progress::default())
        .unwrap();
    store
}

#[test]
fn logs_come_to_the_same_with_and_without_a_store() {
    let Some(root) = fixtures() else {
        return;
    };
    let directory = tempfile::tempdir().unwrap();
    let host = Host::new(directory.path().join("home"), |_| None);
    let prices = Prices::builtin();
    let filter = Filter::default();
    let mut entries: Vec<PathBuf> = std::fs::read_dir(root)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.is_dir())
        .collect();
    entries.sort();
    for path in entries {
        let name = path.file_name().unwrap();
        let store = imported(&directory.path().join(name), &host, &path);
        for by in [
            &[By::Day][..],
            &[By::Model, By::Agent],
            &[By::Project],
            &[By::Tool],
        ] {
            let question = Question {
                filter: &filter,
                directories: None,
                by,
                zone: &zone("Europe/Berlin"),
                prices: &prices,
            };
            let kept = store.catalogue().stats(&question).unwrap();
            let paths = [path.clone()];
            let (loose, _) = from_logs(&host, &paths, &question, &|_| true, false).unwrap();
            assert_eq!(kept, loose, "{} {by:?}", path.display());
            if by != [By::Tool] {
                let (skimmed, _) = from_logs(&host, &paths, &question, &|_| true, true).unwrap();
                let spent = |table: &Table| {
                    let rows = table
                        .rows
                        .iter()
                        .filter(|row| row.spent.as_ref().is_some_and(|it| it.calls > 0));
                    rows.map(|row| (row.key.clone(), row.spent.clone()))
                        .collect::<Vec<_>>()
                };
                assert_eq!(spent(&kept), spent(&skimmed), "{} {by:?}", path.display());
                assert_eq!(kept.total.spent, skimmed.total.spent);
            }
        }
    }
}

#[test]
fn explanations_add_up_to_the_last_digit() {
    let Some(root) = fixtures() else {
        return;
    };
    let directory = tempfile::tempdir().unwrap();
    let host = Host::new(directory.path().join("home"), |_| None);
    let prices = Prices::builtin();
    let mut copies = 0;
    for name in ["claude", "codex", "gemini", "opencode", "copilot", "pi"] {
        let store = imported(&directory.path().join(name), &host, &root.join(name));
        let half = Filter {
            since: Some(at("2025-11-01T00:00:00Z").as_millisecond()),
            ..Filter::default()
        };
        for filter in [Filter::default(), half] {
            let question = Question {
                filter: &filter,
                directories: None,
                by: &[],
                zone: &TimeZone::UTC,
                prices: &prices,
            };
            let figure = store
                .catalogue()
                .stats(&question)
                .unwrap()
                .total
                .spent
                .unwrap();
            let all = Filter {
                subagents: true,
                duplicates: true,
                ..filter.clone()
            };
            let mut sum = Spent::default();
            for row in store.catalogue().list(&all, Order::Oldest, None).unwrap() {
                let explained = store.explain(row, &filter, &prices).unwrap();
                let mut calls = Money::ZERO;
                for call in &explained.calls {
                    calls += call.cost().unwrap_or(Money::ZERO);
                }
                assert_eq!(calls, explained.spent.cost);
                copies += explained
                    .left_out
                    .iter()
                    .filter(|left| matches!(left.why, Why::Copied(_)))
                    .count();
                sum.add(&explained.spent);
            }
            assert_eq!(sum, figure, "{name}");
        }
    }
    assert!(copies > 0, "there are forks among them");
}

/// What a table does not have is priced by the log, where the log says what it cost.
#[test]
fn a_model_without_a_price_costs_what_its_log_says() {
    let money = |text: &str| Money::parse(text).unwrap();
    let tokens = quipu_model::Usage {
        input: Some(10),
        ..quipu_model::Usage::default()
    };
    for (model, told, cost, unpriced) in [
        ("big-secret", Some("0.5"), Some("0.5"), 0),
        ("big-secret", Some("0"), None, 10),
        ("big-secret", Some("-1"), None, 10),
        ("big-secret", None, None, 10),
        ("big-secret-free", Some("0"), Some("0"), 0),
        ("big-secret-free", None, None, 10),
    ] {
        let mut spent = Spent {
            calls: 1,
            tokens,
            ..Spent::default()
        };
        let by = spent.price(model, None, told.map(money));
        assert_eq!(spent.dollars(), cost.map(money), "{model} {told:?}");
        assert_eq!((by.is_some(), spent.unpriced), (cost.is_some(), unpriced));
    }
}

#[test]
fn searches_are_in_the_sum_and_without_a_price_are_told() {
    let prices = Prices::builtin();
    let at = at("2026-06-01T00:00:00Z");
    let quote = |model: &str| {
        let service = Service::Standard;
        prices
            .quote(model, at, service, quipu_prices::Context::default())
            .unwrap()
    };
    let mut spent = Spent {
        searches: 2,
        ..Spent::default()
    };
    spent.price("claude-opus-4-5", Some(&quote("claude-opus-4-5")), None);
    assert_eq!(spent.dollars(), Money::parse("0.02"));
    let mut spent = Spent {
        searches: 2,
        ..Spent::default()
    };
    spent.price("deepseek-chat", Some(&quote("deepseek-chat")), None);
    assert_eq!((spent.unpriced_searches, spent.is_priced()), (2, false));
    assert_eq!(spent.dollars(), None);
}
