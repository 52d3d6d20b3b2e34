mod shown;

use std::path::Path;
use std::sync::atomic::AtomicBool;

use jiff::tz::TimeZone;
use quipu_prices::Prices;
use quipu_search::index::{Index as _, TantivyIndex};
use quipu_search::query::{Clock, Query};

use super::*;
use crate::Store;
use crate::import::tests::kit::*;

fn query(text: &str) -> Query {
    let clock = Clock {
        now: "2026-11-15T12:00:00Z".parse().unwrap(),
        zone: TimeZone::UTC,
    };
    Query::parse(text, &clock).unwrap()
}

fn answer(store: &Store, text: &str, sort: Sort, context: u64) -> Answer {
    let query = query(text);
    let ask = Ask {
        query: &query,
        sort,
        limit: 20,
        context,
        copies: false,
        snippet: 80,
        guard: Show::default(),
    };
    store.search(&ask, &Prices::builtin()).unwrap()
}

/// The sessions and numbers of what is found, in order.
fn found(store: &Store, text: &str) -> Vec<(String, u64)> {
    let mut all: Vec<_> = answer(store, text, Sort::Relevance, 0)
        .found
        .iter()
        .map(|found| (found.row.run_id.clone(), found.event.seq))
        .collect();
    all.sort();
    all
}

fn one(session: &str, seq: u64) -> Vec<(String, u64)> {
    vec![(session.to_owned(), seq)]
}

fn two_sessions(machine: &Machine) -> Store {
    write(
        &machine.session("one.jsonl"),
        prompt("one", "u1", "why does parseHeader fail")
            + &reply("one", "u2", "because of src/http/header.rs"),
    );
    write(
        &machine.session("two.jsonl"),
        prompt("two", "u3", "write a zanzibar tuple rewrite") + &reply("two", "u4", "done"),
    );
    let store = machine.store();
    let report = machine.import(&store);
    assert_eq!(report.index_anew, None, "there was none before");
    assert!(report.problems.is_empty(), "{:?}", report.problems);
    store
}

#[test]
fn what_is_imported_is_found() {
    let machine = Machine::new();
    let store = two_sessions(&machine);
    assert_eq!(
        found(&store, "header"),
        [("one".to_owned(), 1), ("one".to_owned(), 2)]
    );
    assert_eq!(found(&store, "parseheader"), one("one", 1));
    assert_eq!(found(&store, "\"zanzibar tuple rewrite\""), one("two", 1));
    assert_eq!(found(&store, "\"tuple zanzibar\""), []);
    assert_eq!(
        found(&store, "agent:claude role:assistant src/http"),
        one("one", 2)
    );
    assert_eq!(found(&store, "agent:codex"), []);
    assert_eq!(found(&store, "session:two done"), one("two", 2));
    assert_eq!(found(&store, "project:code zanzibar"), one("two", 1));
    assert_eq!(found(&store, "project:cod zanzibar"), []);
    assert_eq!(found(&store, "model:m-1 -done"), one("one", 2));
    // The model has no price, so nothing is known of the cost.
    assert_eq!(found(&store, "cost:>0"), []);
}

#[test]
fn what_is_found_is_shown_with_its_place() {
    let machine = Machine::new();
    let store = two_sessions(&machine);
    let answer = answer(&store, "\"src/http/header.rs\"", Sort::Newest, 1);
    let [found] = answer.found.as_slice() else {
        panic!("{:?}", answer.found);
    };
    let text = &found.event.text;
    let marked: Vec<&str> = found.marks.iter().map(|mark| &text[mark.clone()]).collect();
    assert_eq!(marked, ["src/http/header.rs"]);
    assert_eq!(
        &text[found.snippet.clone()],
        "because of src/http/header.rs"
    );
    assert_eq!(
        (found.event.role, found.before.len(), found.after.len()),
        ("assistant", 1, 0)
    );
    assert_eq!(found.before[0].text, "why does parseHeader fail");
}

#[test]
fn a_log_that_grows_is_found_once() {
    let machine = Machine::new();
    let store = two_sessions(&machine);
    for n in 0..3 {
        let more = prompt("one", &format!("v{n}"), &format!("again header number{n}"));
        append(&machine.session("one.jsonl"), more);
        machine.import(&store);
    }
    let expected: Vec<_> = (1..=5).map(|seq| ("one".to_owned(), seq)).collect();
    assert_eq!(found(&store, "header"), expected);
    assert_eq!(found(&store, "number1"), one("one", 4));
    assert_eq!(answer(&store, "header", Sort::Newest, 0).not_indexed, 0);
}

#[test]
fn a_log_that_is_written_anew_is_found_as_it_is() {
    let machine = Machine::new();
    let store = two_sessions(&machine);
    write(
        &machine.session("two.jsonl"),
        prompt("two", "u9", "something else"),
    );
    machine.import(&store);
    assert_eq!(found(&store, "zanzibar"), []);
    assert_eq!(found(&store, "else"), one("two", 1));
}

#[test]
fn what_was_not_put_down_is_not_there_and_is_done_again() {
    let machine = Machine::new();
    let store = two_sessions(&machine);
    // As if the process had died after the index was committed, and before the catalogue was.
    let set = |sql: &str| tamper(&store, sql);
    set("update pass set live = 0");
    let all = answer(&store, "header", Sort::Newest, 0);
    assert_eq!((all.found.len(), all.not_indexed), (0, 2));
    machine.import(&store);
    let all = answer(&store, "header", Sort::Newest, 0);
    assert_eq!((all.found.len(), all.not_indexed), (2, 0));
    // As if it had died before anything was put down of a pass.
    set(
        "delete from pass; delete from dead_pass; update meta set value = '1' where name = 'next_pass'",
    );
    machine.import(&store);
    let all = answer(&store, "header", Sort::Relevance, 0);
    assert_eq!((all.found.len(), all.not_indexed), (2, 0));
    assert_eq!(
        store
            .count_matches(&query("header"), &Prices::builtin())
            .unwrap(),
        2
    );
}

#[test]
fn an_index_that_is_gone_or_damaged_is_made_anew_and_it_is_said() {
    let machine = Machine::new();
    let store = two_sessions(&machine);
    let path = index_path(store.home());
    for damage in [
        &(|path: &Path| std::fs::remove_dir_all(path).unwrap()) as &dyn Fn(&Path),
        &|path| write(&path.join("meta.json"), "{"),
        &|path| {
            for file in std::fs::read_dir(path).unwrap().flatten() {
                write(&file.path(), b"garbage");
            }
        },
    ] {
        damage(&path);
        let query = query("header");
        let ask = Ask {
            query: &query,
            sort: Sort::Newest,
            limit: 5,
            context: 0,
            copies: false,
            snippet: 80,
            guard: Show::default(),
        };
        let failed = store.search(&ask, &Prices::builtin()).unwrap_err();
        assert!(failed.to_string().contains("`quipu import"), "{failed}");
        let report = machine.import(&store);
        assert!(report.index_anew.is_some());
        assert_eq!(found(&store, "header").len(), 2);
        assert!(machine.import(&store).index_anew.is_none());
    }
}

#[test]
fn what_is_forgotten_is_in_no_file_of_the_index() {
    let machine = Machine::new();
    let store = two_sessions(&machine);
    let index = || {
        TantivyIndex::open(&index_path(store.home()))
            .unwrap()
            .unwrap()
    };
    let before = index().view().unwrap().events();
    let row = store.catalogue().find("two").unwrap();
    let holdings = store.holdings(vec![row]).unwrap();
    store.prune(&holdings, options().now).unwrap();
    assert_eq!(found(&store, "zanzibar"), []);
    let view = index().view().unwrap();
    assert_eq!((view.events(), view.removed()), (before - 2, 0));
    assert_eq!(found(&store, "header").len(), 2);
    // Also when nothing is left of a part.
    let rows = rows(&store);
    let holdings = store.holdings(rows).unwrap();
    store.prune(&holdings, options().now).unwrap();
    assert_eq!(index().view().unwrap().events(), 0);
}

#[test]
fn what_is_in_a_fork_as_well_is_shown_once() {
    let machine = Machine::new();
    let shared = |session: &str| prompt(session, "u1", "ask about it") + &reply(session, "u2", "x");
    write(
        &machine.session("one.jsonl"),
        shared("one") + &reply("one", "u4", "left"),
    );
    write(
        &machine.session("two.jsonl"),
        shared("two") + &reply("two", "u5", "right"),
    );
    let store = machine.store();
    machine.import(&store);
    let all = answer(&store, "ask", Sort::Newest, 0);
    assert_eq!((all.found.len(), all.found[0].copies), (1, 1));
}

#[test]
fn patterns_are_looked_for_in_what_is_said() {
    let machine = Machine::new();
    write(
        &machine.session("one.jsonl"),
        prompt("one", "u1", r#"say \"hello\"\tand go"#)
            + &reply("one", "u2", r"caf\u00e9 \u0068ello"),
    );
    let store = machine.store();
    machine.import(&store);
    let seqs = |text: &str| -> Vec<u64> {
        let pattern = Pattern::new(text).unwrap();
        let matches = store
            .search_pattern(
                &pattern,
                10,
                false,
                (80, &Show::default()),
                &AtomicBool::new(false),
            )
            .unwrap();
        assert!(matches.problems.is_empty());
        matches.found.iter().map(|found| found.event.seq).collect()
    };
    assert_eq!(seqs(r#""hello"\tand"#), [1]);
    assert_eq!(seqs("hel+o"), [2, 1], "also where it is written in escapes");
    assert_eq!(seqs("café"), [2]);
    assert_eq!(seqs("^caf.$|nothing"), Vec::<u64>::new());
    assert_eq!(seqs("[hH]ello$"), [2]);
}

#[test]
fn a_search_works_while_an_import_runs() {
    let machine = Machine::new();
    let store = two_sessions(&machine);
    for n in 0..40 {
        let name = format!("more{n}");
        let text = "header ".repeat(200);
        write(
            &machine.session(&format!("{name}.jsonl")),
            prompt(&name, &format!("w{n}"), &text),
        );
    }
    std::thread::scope(|scope| {
        let importing = scope.spawn(|| machine.import(&machine.store()));
        while !importing.is_finished() {
            let all = answer(&store, "header", Sort::Newest, 0);
            assert!(all.found.len() >= 2);
            assert!(all.found.iter().all(|found| found.problem.is_none()));
        }
    });
    assert_eq!(
        store
            .count_matches(&query("header"), &Prices::builtin())
            .unwrap(),
        42
    );
}

#[test]
fn a_text_too_long_for_one_document_is_found_in_all_of_it() {
    let machine = Machine::new();
    let long = "filler words ".repeat(120_000) + "needle at the end";
    write(&machine.session("one.jsonl"), prompt("one", "u1", &long));
    let store = machine.store();
    machine.import(&store);
    assert_eq!(found(&store, "needle"), one("one", 1));
    assert_eq!(found(&store, "filler"), one("one", 1));
}
