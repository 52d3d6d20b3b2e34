//! Sessions that are there several times, in whole or in part.

use super::kit::*;

#[test]
fn a_fork_counts_what_it_adds() {
    let machine = Machine::new();
    let shared = |session: &str| {
        prompt(session, "u1", "ask")
            + &reply(session, "u2", "answer")
            + &prompt(session, "u3", "go")
    };
    write(
        &machine.session("one.jsonl"),
        shared("one") + &reply("one", "u4", "left"),
    );
    write(
        &machine.session("two.jsonl"),
        shared("two") + &reply("two", "u5", "right"),
    );
    let store = machine.store();
    let report = machine.import(&store);
    assert_eq!(report.copies, 1);
    assert_eq!(output_tokens(&store), 15, "the shared reply counts once");
    assert_eq!(listed(&store), ["one", "two"]);
    let copy = rows(&store)
        .into_iter()
        .find(|row| row.copy_of.is_some())
        .unwrap();
    assert_eq!((copy.copied_events, copy.duplicate), (3, false));
    assert_eq!(texts(&store, &copy.run_id).len(), 4, "and is still whole");
}

#[test]
fn growth_of_the_original_does_not_change_what_is_a_copy() {
    let machine = Machine::new();
    let one = machine.session("one.jsonl");
    write(
        &one,
        prompt("one", "u1", "ask") + &reply("one", "u2", "answer"),
    );
    write(
        &machine.session("two.jsonl"),
        prompt("two", "u1", "ask") + &reply("two", "u2", "answer") + &reply("two", "u9", "more"),
    );
    let store = machine.store();
    machine.import(&store);
    assert_eq!(output_tokens(&store), 10);
    append(&one, reply("one", "u5", "later"));
    machine.import(&store);
    assert_eq!(output_tokens(&store), 15);
    machine.import(&store);
    assert_eq!(output_tokens(&store), 15);
}

#[test]
fn a_backup_of_a_session_is_no_session_of_its_own() {
    let machine = Machine::new();
    let short = prompt("s1", "u1", "ask") + &reply("s1", "u2", "answer");
    let long = short.clone() + &prompt("s1", "u3", "more") + &reply("s1", "u4", "fine");
    write(&machine.session("backup/old.jsonl"), &short);
    let store = machine.store();
    machine.import(&store);
    assert_eq!(listed(&store), ["s1"]);
    assert_eq!(texts(&store, "s1").len(), 2);
    write(&machine.session("s1.jsonl"), &long);
    machine.import(&store);
    assert_eq!(listed(&store), ["s1"]);
    assert_eq!(
        texts(&store, "s1").len(),
        4,
        "the id now means the longer one"
    );
    assert_eq!(output_tokens(&store), 10);
    assert_eq!(rows(&store).len(), 2);
}

#[test]
fn the_order_of_import_does_not_matter() {
    let machine = Machine::new();
    let short = prompt("s1", "u1", "ask") + &reply("s1", "u2", "answer");
    let long = short.clone() + &reply("s1", "u4", "fine");
    let (a, b) = (machine.session("a.jsonl"), machine.session("b.jsonl"));
    write(&a, &short);
    write(&b, &long);
    let forward = machine.store_named("forward");
    let backward = machine.store_named("backward");
    for (store, order) in [(&forward, [&a, &b]), (&backward, [&b, &a])] {
        for path in order {
            let paths = [path.clone()];
            let progress = crate::import::Progress::default();
            let host = machine.host();
            store
                .import_paths(&host, &paths, &options(), &progress)
                .unwrap();
        }
    }
    assert_eq!(known(&forward), known(&backward));
}

#[test]
fn sub_agents_hang_from_their_session() {
    let machine = Machine::new();
    write(
        &machine.session("s1.jsonl"),
        prompt("s1", "u1", "ask") + &reply("s1", "u2", "answer"),
    );
    let line = |text: String| {
        text.replace(
            r#""type":"user""#,
            r#""isSidechain":true,"agentId":"a7","type":"user""#,
        )
        .replace(
            r#""type":"assistant""#,
            r#""isSidechain":true,"agentId":"a7","type":"assistant""#,
        )
    };
    write(
        &machine.session("s1/subagents/agent-a7.jsonl"),
        line(prompt("s1", "v1", "look") + &reply("s1", "v2", "found")),
    );
    write(
        &machine.session("s1/subagents/agent-a7.meta.json"),
        r#"{"agentType":"explore","description":"Look around"}"#,
    );
    let store = machine.store();
    machine.import(&store);
    assert_eq!(listed(&store), ["s1"], "sub-agents are not in the way");
    let children = store.catalogue().children("s1").unwrap();
    assert_eq!(children.len(), 1);
    assert_eq!(children[0].run_id, "s1.agent-a7");
    assert_eq!(children[0].title.as_deref(), Some("Look around"));
    assert_eq!(output_tokens(&store), 10, "and what they cost is counted");
    assert_eq!(store.catalogue().find("s1").unwrap().run_id, "s1");
}

#[test]
fn prompts_bring_back_sessions_that_are_gone() {
    let machine = Machine::new();
    write(
        &machine.session("s1.jsonl"),
        prompt("s1", "u1", "still here"),
    );
    let line = |session: &str, text: &str| {
        format!(
            r#"{{"display":"{text}","pastedContents":{{}},"timestamp":1767323045000,"project":"/code","sessionId":"{session}"}}"#
        ) + "\n"
    };
    write(
        &machine.home(".claude/history.jsonl"),
        line("s1", "still here") + &line("gone", "what was asked") + &line("gone", "and then"),
    );
    let store = machine.store();
    machine.import(&store);
    assert_eq!(listed(&store), ["gone", "s1"]);
    assert_eq!(texts(&store, "gone"), ["what was asked", "and then"]);
    let gone = store.catalogue().find("gone").unwrap();
    assert!(gone.reconstructed);
    assert_eq!(gone.cwd.as_deref(), Some("/code"));
    assert!(!store.catalogue().find("s1").unwrap().reconstructed);
    let report = machine.import(&store);
    assert_eq!((report.read, report.unchanged), (0, 2));
}

/// Whatever is copied from what, each reply counts once: three logs of two sessions, of which the one that
/// was forked is older than the longest log of its original.
#[test]
fn no_reply_is_counted_by_nobody() {
    let machine = Machine::new();
    let lines = |session: &str, from: usize, to: usize| -> String {
        (from..to)
            .map(|n| reply(session, &format!("r{n}"), "x"))
            .collect()
    };
    let age = |path: &std::path::Path, second: u64| {
        let at = std::time::UNIX_EPOCH + std::time::Duration::from_secs(1_700_000_000 + second);
        let file = std::fs::File::options().append(true).open(path).unwrap();
        file.set_modified(at).unwrap();
    };
    for (name, log, second) in [
        ("backup.jsonl", lines("s1", 0, 10), 0),
        ("s2.jsonl", lines("s2", 0, 10) + &lines("s2", 100, 103), 500),
        ("s1.jsonl", lines("s1", 0, 20), 1000),
    ] {
        let path = machine.session(name);
        write(&path, log);
        age(&path, second);
    }
    let store = machine.store();
    machine.import(&store);
    assert_eq!(output_tokens(&store), 23 * 5);
    let before = known(&store);
    let (store, _) = machine.rebuild(store);
    assert_eq!(known(&store), before, "made again as it was");
}

#[test]
fn an_account_that_repeats_nothing_is_no_copy() {
    let machine = Machine::new();
    write(
        &machine.session("s1.jsonl"),
        prompt("s1", "u1", "ask") + &reply("s1", "u2", "answer"),
    );
    let stream = reply("s1", "v1", "later").replace("sessionId", "session_id");
    let captured = machine.home("captured.jsonl");
    write(&captured, stream);
    let store = machine.store();
    machine.import(&store);
    let paths = [captured];
    let progress = crate::import::Progress::default();
    store
        .import_paths(&machine.host(), &paths, &options(), &progress)
        .unwrap();
    assert_eq!(output_tokens(&store), 10);
    assert!(rows(&store).iter().all(|row| !row.duplicate));
}

#[test]
fn what_was_a_copy_counts_when_its_original_is_rewritten() {
    let machine = Machine::new();
    let log = prompt("s1", "u1", "ask") + &reply("s1", "u2", "answer");
    write(&machine.session("a.jsonl"), &log);
    write(&machine.session("b.jsonl"), &log);
    let store = machine.store();
    machine.import(&store);
    assert_eq!((listed(&store).len(), output_tokens(&store)), (1, 5));
    write(&machine.session("a.jsonl"), prompt("s9", "u9", "other"));
    machine.import(&store);
    assert_eq!(listed(&store), ["s1", "s9"]);
    assert_eq!(output_tokens(&store), 5);
}

#[test]
fn what_is_forgotten_is_found_again() {
    let machine = Machine::new();
    write(&machine.session("s1.jsonl"), prompt("s1", "u1", "ask"));
    write(&machine.session("s1/tool-results/out.txt"), "a long output");
    let store = machine.store();
    let kept = machine.import(&store).kept;
    assert_eq!(kept, 1);
    assert_eq!(machine.import(&store).unchanged, 2);
    let holdings = store.holdings(rows(&store)).unwrap();
    store.prune(&holdings, options().now).unwrap();
    assert_eq!(store.archive().sources().count(), 0);
    let report = machine.import(&store);
    assert_eq!((report.read, report.kept), (1, 1));
}

/// What a session's log tells of a call that a sub-agent made: 10 tokens in and 5 out.
fn told(session: &str, id: &str, agent: &str, call: &str) -> String {
    let message = format!(
        r#"{{"id":"msg_{call:0>24}","role":"assistant","model":"m-2","content":[],"usage":{{"input_tokens":10,"output_tokens":5}}}}"#
    );
    format!(
        r#"{{"type":"progress","uuid":"{id:0>36}","sessionId":"{session}","timestamp":"2026-01-02T03:04:07.000Z","data":{{"type":"agent_progress","agentId":"{agent}","message":{{"type":"assistant","message":{message}}}}}}}"#
    ) + "\n"
}

/// The same call, as the sub-agent's own log tells it.
fn done(session: &str, id: &str, agent: &str, call: &str) -> String {
    let plain =
        reply(session, id, "done").replace(&format!("msg-{id}"), &format!("msg_{call:0>24}"));
    let side = format!(r#"{{"isSidechain":true,"agentId":"{agent}","#);
    plain.replacen('{', &side, 1)
}

#[test]
fn a_sub_agents_call_counts_once_whether_its_own_log_is_there_or_not() {
    let machine = Machine::new();
    let parent = machine.session("s1.jsonl");
    let own = machine.session("s1/subagents/agent-a1.jsonl");
    write(
        &parent,
        prompt("s1", "u1", "go") + &reply("s1", "u2", "well") + &told("s1", "u3", "a1", "c1"),
    );
    let store = machine.store();
    machine.import(&store);
    assert_eq!(output_tokens(&store), 10, "only the session tells of it");
    write(
        &own,
        done("s1", "x1", "a1", "c1") + &done("s1", "x2", "a1", "c2"),
    );
    machine.import(&store);
    assert_eq!(
        output_tokens(&store),
        15,
        "the sub-agent's own log has it and another"
    );
    let of = |id: &str| {
        let row = rows(&store)
            .into_iter()
            .find(|row| row.run_id == id)
            .unwrap();
        (row.usage.output, row.copy_of.is_some())
    };
    assert_eq!(
        of("s1"),
        (Some(5), false),
        "a session is not a copy of its sub-agent"
    );
    assert_eq!(of("s1.agent-a1"), (Some(10), false));
    // It stays so when either log is read again.
    append(&parent, reply("s1", "u4", "more"));
    machine.import(&store);
    assert_eq!(output_tokens(&store), 20);
    append(&own, done("s1", "x3", "a1", "c3"));
    machine.import(&store);
    assert_eq!(output_tokens(&store), 25);
    // Another store that meets both at once comes to the same.
    let other = machine.store_named("other");
    machine.import(&other);
    assert_eq!(known(&other), known(&store));
}
