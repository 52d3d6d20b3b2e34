//! Transcripts that awf, the engine the format comes from, wrote.
//!
//! They are not part of this repository. Where they are absent the tests say so and pass.

use std::fs;
use std::path::PathBuf;

use quipu_model::RunId;
use quipu_model::tree::{Forest, Link, Node, NodeId, Placed, RunTree, State, TreeBuilder};

use super::encode;
use crate::{Escapes, Reader, verify};

/// The files, by name; `None` when they are not there.
fn corpus() -> Option<Vec<(String, Vec<u8>)>> {
    let dir = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared/fixtures/awf-run");
    let Ok(entries) = fs::read_dir(dir) else {
        skipped();
        return None;
    };
    let mut files: Vec<(String, Vec<u8>)> = entries
        .map(|entry| entry.unwrap())
        .filter(|entry| entry.path().extension().is_some_and(|ext| ext == "jsonl"))
        .map(|entry| {
            let name = entry.file_name().into_string().unwrap();
            (name, fs::read(entry.path()).unwrap())
        })
        .collect();
    files.sort();
    Some(files)
}

#[expect(
    clippy::print_stderr,
    reason = "a skipped test must not look like one that ran"
)]
fn skipped() {
    eprintln!("SKIPPED: the awf-run fixtures are not beside this repository");
}

fn tree(bytes: &[u8]) -> RunTree {
    let mut reader = Reader::new(bytes);
    let mut builder = TreeBuilder::default();
    while let Some(item) = reader.next_decoded().unwrap() {
        builder.observe(&item.unwrap().event);
    }
    builder.finish()
}

#[test]
fn every_line_is_understood_and_written_again_to_the_byte() {
    let Some(files) = corpus() else { return };
    assert_eq!(files.len(), 50);
    for (name, bytes) in &files {
        let mut reader = Reader::new(&bytes[..]);
        let mut written = String::new();
        while let Some(item) = reader.next_decoded().unwrap() {
            let decoded = item.unwrap_or_else(|bad| panic!("{name}, {}: {}", bad.at, bad.fault));
            assert_eq!(decoded.warnings, [], "{name}, {}", decoded.at);
            written += &encode(&decoded.event, Escapes::Go);
        }
        assert_eq!(written, String::from_utf8_lossy(bytes), "{name}");
    }
}

#[test]
fn every_file_has_a_tree_with_every_step_in_it() {
    let Some(files) = corpus() else { return };
    for (name, bytes) in &files {
        let tree = tree(bytes);
        let report = verify::verify(&mut Reader::new(&bytes[..])).unwrap();
        assert_eq!(tree.events, report.events, "{name}");
        assert_eq!(tree.run_id, report.run_id, "{name}");
        assert_eq!(
            tree.state,
            State::Unmarked,
            "{name}: the engine writes no run events"
        );
        assert!(!tree.nodes.is_empty(), "{name}");
        // One workflow has two loops side by side, which the engine mixes up.
        let ambiguous = tree.nodes.iter().any(|n| n.placed == Placed::Ambiguous);
        assert_eq!(ambiguous, name.starts_with("pl__"), "{name}");
        let unpaired = |node: &&Node| node.started_seq.is_none() || node.ended_seq.is_none();
        assert_eq!(tree.nodes.iter().find(unpaired), None, "{name}");
        let mut hung = tree.roots.len();
        for node in &tree.nodes {
            hung += node.children.len();
        }
        assert_eq!(hung, tree.nodes.len(), "{name}");
    }
}

fn only<'a>(files: &'a [(String, Vec<u8>)], start: &str) -> &'a [u8] {
    let mut found = files.iter().filter(|(name, _)| name.starts_with(start));
    match (found.next(), found.next()) {
        (Some((_, bytes)), None) => bytes,
        _ => panic!("one file should begin with {start}"),
    }
}

fn names(tree: &RunTree, ids: &[NodeId]) -> Vec<String> {
    ids.iter()
        .map(|&id| tree.nodes[id].place.path.clone())
        .collect()
}

#[test]
fn branches_hang_from_their_parallel_step() {
    let Some(files) = corpus() else { return };
    let tree = tree(only(&files, "par__"));
    assert_eq!(names(&tree, &tree.roots), ["p", "f", "op"]);
    let p = &tree.nodes[tree.roots[0]];
    assert_eq!(
        names(&tree, &p.children),
        ["b", "a"],
        "in the order they began"
    );
    for &branch in &p.children {
        assert_eq!(tree.nodes[branch].placed, Placed::Inferred);
    }
    // While `b` was alone one message was sent; while both were at work nobody can tell.
    assert_eq!(tree.nodes[p.children[0]].tally.messages, 2);
    assert_eq!(tree.tally.messages, 2);
    assert!(
        matches!(&tree.nodes[tree.roots[1]].state, State::Failed(why) if why.contains("gemini"))
    );
}

#[test]
fn iterations_hang_from_their_loop() {
    let Some(files) = corpus() else { return };
    let tree = tree(only(&files, "test-loop-simple__"));
    assert_eq!(names(&tree, &tree.roots), ["loop_items"]);
    let children = &tree.nodes[tree.roots[0]].children;
    assert_eq!(
        names(&tree, children),
        ["loop:0/echo_item", "loop:1/echo_item"]
    );
}

#[test]
fn child_runs_are_found_by_the_names_of_their_files() {
    let Some(files) = corpus() else { return };
    let load = |id: &RunId| {
        let suffix = format!("__{id}.jsonl");
        files
            .iter()
            .find(|(name, _)| name.ends_with(&suffix))
            .map(|(_, bytes)| tree(bytes))
            .ok_or_else(|| format!("no file for {id}"))
    };
    let mut deepest = 0;
    for (name, bytes) in files
        .iter()
        .filter(|(name, _)| name.starts_with("subworkflow-"))
    {
        let forest = Forest::grow(tree(bytes), load);
        for (run, tree) in forest.runs.iter().enumerate() {
            for (node, step) in tree.nodes.iter().enumerate() {
                assert_eq!(
                    step.calls.is_some(),
                    forest.link(run, node).is_some(),
                    "{name}"
                );
                if let Some(Link::Run(child)) = forest.link(run, node) {
                    let child = &forest.runs[*child];
                    assert_eq!(child.run_id, step.calls, "{name}");
                    assert_eq!(child.parent_run_id, tree.run_id, "{name}");
                }
            }
        }
        deepest = deepest.max(forest.runs.len());
    }
    assert_eq!(deepest, 3, "the deepest chain of the corpus");
    let root = tree(only(&files, "subworkflow-nested-a__0f2a1073"));
    assert!(Forest::grow(root, load).is_whole());
}
