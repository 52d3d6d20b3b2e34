//! Runs and the runs they called.

use std::collections::HashMap;

use super::{events, grow};
use crate::tree::{Forest, Link, RunTree};

/// Grows a forest from scripts, the first of which is the root. Renders it as
/// `run: child, child`, with `*` for a cycle and `!` for a child that is missing.
fn forest(scripts: &[(&str, &str)]) -> (Forest, String) {
    let trees: HashMap<&str, RunTree> = scripts
        .iter()
        .map(|&(run, script)| (run, grow(&events(run, script))))
        .collect();
    let mut loaded = Vec::new();
    let forest = Forest::grow(trees[scripts[0].0].clone(), |id| {
        loaded.push(id.clone());
        trees
            .get(id.as_str())
            .cloned()
            .ok_or_else(|| format!("no run {id}"))
    });
    let count = loaded.len();
    loaded.sort();
    loaded.dedup();
    assert_eq!(loaded.len(), count, "each child is asked for once");

    let name = |run: usize| forest.runs[run].run_id.as_ref().unwrap().to_string();
    let mut text = Vec::new();
    for (run, tree) in forest.runs.iter().enumerate() {
        let links: Vec<String> = (0..tree.nodes.len())
            .filter_map(|node| forest.link(run, node))
            .map(|link| match link {
                Link::Run(child) => name(*child),
                Link::Cycle => "*".to_owned(),
                Link::Missing(why) => format!("! {why}"),
            })
            .collect();
        text.push(
            format!("{}: {}", name(run), links.join(", "))
                .trim_end()
                .to_owned(),
        );
    }
    (forest, text.join("\n"))
}

#[track_caller]
fn check_forest(scripts: &[(&str, &str)], expected: &[&str], is_whole: bool) {
    let (forest, found) = forest(scripts);
    assert_eq!(found, expected.join("\n"));
    assert_eq!(forest.is_whole(), is_whole);
}

#[test]
fn a_forest_follows_links_over_three_levels() {
    check_forest(
        &[
            ("a", "start x command\n end x\n call b b\n return b b"),
            ("b", "call c c\n return c c"),
            ("c", "start y command\n end y"),
        ],
        &["a: b", "b: c", "c:"],
        true,
    );
}

#[test]
fn a_forest_says_what_is_missing() {
    check_forest(
        &[("a", "call b b\n return b b\n call b b\n return b b")],
        &["a: ! no run b, ! no run b"],
        false,
    );
}

#[test]
fn a_forest_is_not_whole_while_anything_is_open() {
    check_forest(&[("a", "start x command")], &["a:"], false);
    check_forest(&[("a", "run w")], &["a:"], false);
    check_forest(&[("a", "run w\n done w !failed")], &["a:"], true);
    check_forest(
        &[("a", "call b b\n return b b"), ("b", "start x command")],
        &["a: b", "b:"],
        false,
    );
    check_forest(&[("a", "msg -")], &["a:"], true);
}

#[test]
fn a_forest_has_no_cycles() {
    check_forest(&[("a", "call a a\n return a a")], &["a: *"], false);
    check_forest(
        &[
            ("a", "call b b\n return b b"),
            ("b", "call c c\n return c c"),
            ("c", "call a a\n return a a\n call b b\n return b b"),
        ],
        &["a: b", "b: c", "c: *, *"],
        false,
    );
    // `x` is found through `b`, and only later seen to be called by `c`, which it calls.
    check_forest(
        &[
            ("a", "call b b\n return b b\n call c c\n return c c"),
            ("b", "call x x\n return x x"),
            ("c", "call x x\n return x x"),
            ("x", "call c c\n return c c"),
        ],
        &["a: b, c", "b: x", "c: *", "x: c"],
        false,
    );
}

#[test]
fn a_child_may_be_called_twice() {
    check_forest(
        &[
            ("a", "call b b\n return b b\n call b b\n return b b"),
            ("b", "start x command\n end x"),
        ],
        &["a: b, b", "b:"],
        true,
    );
}

#[test]
fn steps_that_call_nothing_lead_nowhere() {
    let (forest, _) = forest(&[("a", "start x command\n end x")]);
    assert_eq!(forest.link(0, 0), None);
    assert_eq!(forest.link(7, 7), None);
}
