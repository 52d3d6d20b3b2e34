//! Finding, checking and linking the files of a storage.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use quipu_exchange::verify::{Report, Rule};
use quipu_model::tree::Link;
use quipu_model::{Body, Draft, Place, Step};

use super::{Site, run_id, said};
use crate::{NotFound, Recorder, Storage};

fn call(recorder: &Recorder, child: &str, completed: bool) {
    let step = Step::new("sub", "call_workflow");
    let child_run_id = run_id(child);
    let started = Body::CallStarted {
        child_run_id: child_run_id.clone(),
        step: step.clone(),
    };
    recorder
        .record(&Draft::new(Place::step("sub"), started))
        .unwrap();
    if completed {
        let end = step.succeeded(None);
        let ended = Body::CallCompleted { child_run_id, end };
        recorder
            .record(&Draft::new(Place::step("sub"), ended))
            .unwrap();
    }
}

fn rules(report: &Report) -> Vec<&'static str> {
    report.counts.keys().map(|rule| rule.name()).collect()
}

fn verify(site: &Site, id: &str) -> Report {
    site.storage
        .verify(&site.path(id), Default::default())
        .unwrap()
}

#[test]
fn linked_runs_are_clean() {
    let site = Site::new();
    let parent = site.record("p");
    let child = parent.child(&run_id("c")).unwrap();
    child.record(&said("hello")).unwrap();
    call(&parent, "c", true);
    for id in ["p", "c"] {
        let report = verify(&site, id);
        assert!(
            report.is_clean() && report.counts.is_empty(),
            "{:?}",
            report.findings
        );
    }
}

#[test]
fn broken_links_are_found() {
    let site = Site::new();
    let parent = site.record("p");
    call(&parent, "never", true);
    call(&parent, "pending", false);
    site.record("stray")
        .record(&said("I have no parent"))
        .unwrap();
    call(&parent, "stray", true);
    let report = verify(&site, "p");
    assert_eq!(
        rules(&report),
        ["child-missing", "link-broken", "step-open", "child-pending"]
    );

    let child = parent.child(&run_id("unnamed")).unwrap();
    child.record(&said("hello")).unwrap();
    let report = verify(&site, "unnamed");
    assert_eq!(rules(&report), ["parent-absent"]);
    assert!(report.is_clean(), "a parent may not have got to it");
    fs::remove_file(site.path("p")).unwrap();
    assert_eq!(rules(&verify(&site, "unnamed")), ["parent-absent"]);
}

#[test]
fn names_and_permissions_are_checked() {
    let site = Site::new();
    site.record("r").record(&said("hello")).unwrap();
    let other = site.path("other");
    fs::copy(site.path("r"), &other).unwrap();
    fs::set_permissions(&other, fs::Permissions::from_mode(0o640)).unwrap();
    let directory = other.parent().unwrap();
    let report = verify(&site, "other");
    assert_eq!(rules(&report), ["file-name", "permissions"]);
    assert_eq!(report.counts[&Rule::Permissions], 1);
    fs::set_permissions(directory, fs::Permissions::from_mode(0o777)).unwrap();
    assert_eq!(verify(&site, "other").counts[&Rule::Permissions], 2);
    fs::set_permissions(directory, fs::Permissions::from_mode(0o700)).unwrap();
}

#[test]
fn runs_are_found_by_the_beginning_of_their_id() {
    let site = Site::new();
    for id in ["abc-1", "abc-2", "xyz", "xy"] {
        site.record(id).record(&said("hello")).unwrap();
    }
    let directory = site.path("xyz").parent().unwrap().to_owned();
    fs::rename(site.path("xyz"), directory.join("nightly__xyz.jsonl")).unwrap();
    let storage = Storage::at(site.dir.path());
    let found = |prefix: &str| {
        storage
            .find_by_prefix(prefix)
            .map(|path| path.file_name().unwrap().to_owned())
    };
    assert_eq!(found("abc-1").unwrap(), "abc-1.jsonl");
    assert_eq!(found("xyz").unwrap(), "nightly__xyz.jsonl");
    assert_eq!(
        found("xy").unwrap(),
        "xy.jsonl",
        "the whole id goes before a beginning"
    );
    assert!(matches!(found("abc"), Err(NotFound::Several(_, ids)) if ids == ["abc-1", "abc-2"]));
    assert!(matches!(found("q"), Err(NotFound::None(..))));
    assert!(storage.find(&run_id("xyz")).is_some() && storage.find(&run_id("q")).is_none());
}

#[test]
fn a_label_that_is_not_unique_is_not_guessed() {
    let site = Site::new();
    site.record("a1").record(&said("hello")).unwrap();
    let directory = site.path("a1").parent().unwrap().to_owned();
    fs::rename(site.path("a1"), directory.join("x__a1.jsonl")).unwrap();
    fs::copy(directory.join("x__a1.jsonl"), directory.join("y__a1.jsonl")).unwrap();
    let storage = Storage::at(site.dir.path());
    assert!(storage.find(&run_id("a1")).is_none());
    let names = vec!["x__a1".to_owned(), "y__a1".to_owned()];
    assert!(matches!(storage.find_by_prefix("a1"), Err(NotFound::Several(_, it)) if it == names));
    assert!(storage.find_by_prefix("x__a1").is_ok());
}

#[test]
fn the_forest_follows_links_and_shows_what_is_wrong() {
    let site = Site::new();
    let root = site.record("root");
    let child = root.child(&run_id("child")).unwrap();
    call(&root, "child", true);
    call(&root, "gone", true);
    call(&child, "root", true);
    fs::OpenOptions::new()
        .append(true)
        .open(site.path("child"))
        .and_then(|mut file| std::io::Write::write_all(&mut file, b"oops\n"))
        .unwrap();
    let mut remarks = Vec::new();
    let forest = site
        .storage
        .forest(&site.path("root"), Default::default(), |remark| {
            remarks.push(remark);
        })
        .unwrap();
    assert_eq!(forest.runs.len(), 2);
    assert_eq!(forest.link(0, 0), Some(&Link::Run(1)));
    assert_eq!(
        forest.link(0, 1),
        Some(&Link::Missing("no transcript".to_owned()))
    );
    assert_eq!(forest.link(1, 0), Some(&Link::Cycle));
    assert!(!forest.is_whole());
    assert_eq!(remarks.len(), 1);
    assert_eq!(
        (remarks[0].path.clone(), remarks[0].at.line),
        (site.path("child"), 3)
    );
}
