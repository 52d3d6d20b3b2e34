//! Logs that grow, change and go.

use std::fs;

use super::kit::*;
use crate::Store;
use crate::archive::SourceKey;
use crate::catalogue::AdvanceKind;
use crate::live::What;

#[test]
fn a_log_is_read_once_and_then_from_where_it_ended() {
    let machine = Machine::new();
    let path = machine.session("s1.jsonl");
    write(
        &path,
        prompt("s1", "u1", "hello") + &reply("s1", "u2", "hi"),
    );
    let store = machine.store();
    let report = machine.import(&store);
    assert_eq!((report.read, report.unchanged), (1, 0));
    assert_eq!(texts(&store, "s1"), ["hello", "hi"]);

    let report = machine.import(&store);
    assert_eq!((report.read, report.unchanged, report.bytes), (0, 1, 0));

    let more = prompt("s1", "u3", "more") + &reply("s1", "u4", "fine");
    append(&path, &more);
    let report = machine.import(&store);
    assert_eq!(report.read, 1);
    assert_eq!(report.bytes, more.len() as u64, "only what is new is read");
    assert_eq!(report.agents["claude-code"].records, 2);
    assert_eq!(texts(&store, "s1"), ["hello", "hi", "more", "fine"]);
    assert_eq!(output_tokens(&store), 10);

    // As if it had been read at once.
    let other = machine.store_named("other");
    machine.import(&other);
    assert_eq!(known(&store), known(&other));
}

#[test]
fn any_split_of_appends_is_the_same_as_none() {
    let whole: String = (0..6)
        .map(|n| prompt("s1", &format!("u{n}"), "ask") + &reply("s1", &format!("a{n}"), "answer"))
        .collect();
    let machine = Machine::new();
    let path = machine.session("s1.jsonl");
    write(&path, &whole);
    let at_once = machine.store_named("at-once");
    machine.import(&at_once);
    for step in [1, 7, 100, 333, 1000] {
        let store = machine.store_named(&format!("by-{step}"));
        fs::remove_file(&path).unwrap();
        write(&path, "");
        for piece in whole.as_bytes().chunks(step.max(whole.len() / 40)) {
            append(&path, piece);
            machine.import(&store);
        }
        let strip = |known: Vec<String>| -> Vec<String> {
            // The file was made again, so it is another file at another time.
            known
                .into_iter()
                .map(|row| row.split(", modified:").next().unwrap().to_owned())
                .collect()
        };
        assert_eq!(strip(known(&store)), strip(known(&at_once)), "by {step}");
        assert_eq!(store.read(rows(&store).remove(0)).unwrap().events.len(), 12);
    }
}

#[test]
fn a_rewritten_log_is_read_again_and_the_old_one_kept() {
    let machine = Machine::new();
    let path = machine.session("s1.jsonl");
    write(
        &path,
        prompt("s1", "u1", "before") + &reply("s1", "u2", "yes"),
    );
    let store = machine.store();
    machine.import(&store);
    write(&path, prompt("s1", "u9", "after"));
    machine.import(&store);
    assert_eq!(texts(&store, "s1"), ["after"]);
    assert_eq!(output_tokens(&store), 0);
    let key = SourceKey::new("claude-code", path);
    let versions = store.archive().source(&key).unwrap().unwrap().versions;
    assert_eq!(versions.len(), 2, "nothing that was kept is lost");
}

#[test]
fn a_log_that_its_agent_deleted_is_still_there() {
    let machine = Machine::new();
    let path = machine.session("s1.jsonl");
    write(&path, prompt("s1", "u1", "keep me"));
    let store = machine.store();
    machine.import(&store);
    fs::remove_file(&path).unwrap();
    let report = machine.import(&store);
    assert_eq!(report.files, 0);
    assert_eq!(listed(&store), ["s1"]);
    assert_eq!(texts(&store, "s1"), ["keep me"]);
}

#[test]
fn the_catalogue_is_made_again_from_the_archive() {
    let machine = Machine::new();
    for n in 0..5 {
        let session = format!("s{n}");
        let path = machine.session(&format!("{session}.jsonl"));
        write(
            &path,
            prompt(&session, &format!("u{n}"), "ask") + &reply(&session, &format!("a{n}"), "ok"),
        );
    }
    let store = machine.store();
    machine.import(&store);
    let before = known(&store);
    fs::remove_dir_all(machine.home(".claude")).unwrap();
    let (store, report) = machine.rebuild(store);
    assert_eq!(report.read, 5);
    assert_eq!(known(&store), before);
}

#[test]
fn what_was_kept_before_a_crash_is_not_kept_twice() {
    let machine = Machine::new();
    for n in 0..5 {
        let session = format!("s{n}");
        write(
            &machine.session(&format!("{session}.jsonl")),
            prompt(&session, &format!("u{n}"), "ask"),
        );
    }
    let undisturbed = machine.store_named("undisturbed");
    machine.import(&undisturbed);
    // Killed after the archive was written and before the catalogue was.
    let store = machine.store();
    machine.import(&store);
    let home = store.home().to_owned();
    drop(store);
    for name in ["index.sqlite", "index.sqlite-wal", "index.sqlite-shm"] {
        drop(fs::remove_file(home.join(name)));
    }
    let store = machine.store();
    let report = machine.import(&store);
    assert_eq!((report.read, report.new_bytes), (5, 0));
    assert_eq!(known(&store), known(&undisturbed));
    for source in store.archive().sources() {
        assert_eq!(source.unwrap().versions.len(), 1);
    }
}

#[test]
fn a_catalogue_that_is_gone_takes_nothing_with_it() {
    let machine = Machine::new();
    let gone = machine.session("gone.jsonl");
    write(&gone, prompt("gone", "u1", "only here"));
    write(
        &machine.session("here.jsonl"),
        prompt("here", "u2", "still there"),
    );
    let store = machine.store();
    machine.import(&store);
    fs::remove_file(&gone).unwrap();
    let home = store.home().to_owned();
    drop(store);
    for name in ["index.sqlite", "index.sqlite-wal", "index.sqlite-shm"] {
        drop(fs::remove_file(home.join(name)));
    }
    let refused = crate::Store::open_existing(&home).unwrap_err();
    assert!(refused.to_string().contains("--rebuild"), "{refused}");
    let store = machine.store();
    machine.import(&store);
    assert_eq!(texts(&store, "gone"), ["only here"]);
    let report = machine.import(&store);
    assert_eq!((report.read, report.unchanged), (0, 1));
}

#[test]
fn a_damaged_catalogue_is_made_again() {
    let machine = Machine::new();
    write(&machine.session("s1.jsonl"), prompt("s1", "u1", "hello"));
    let store = machine.store();
    machine.import(&store);
    let home = store.home().to_owned();
    drop(store);
    write(&home.join("index.sqlite"), [0x5a; 5000]);
    let refused = crate::Store::open(&home).unwrap_err();
    assert!(refused.to_string().contains("--rebuild"), "{refused}");
    let progress = crate::import::Progress::default();
    let (store, _) = crate::Store::rebuild(&home, &machine.host(), &options(), &progress).unwrap();
    assert_eq!(texts(&store, "s1"), ["hello"]);
    let left = fs::read_dir(&home)
        .unwrap()
        .map(|it| it.unwrap().file_name());
    let left: Vec<String> = left.map(|it| it.into_string().unwrap()).collect();
    assert!(!left.iter().any(|name| name.contains("new")), "{left:?}");
}

#[test]
fn a_damaged_chunk_is_kept_again_from_the_log() {
    let machine = Machine::new();
    write(&machine.session("s1.jsonl"), prompt("s1", "u1", "hello"));
    let store = machine.store();
    machine.import(&store);
    let chunks = store.home().join("archive/chunks");
    let mut left = vec![chunks];
    while let Some(path) = left.pop() {
        if path.is_dir() {
            left.extend(fs::read_dir(&path).unwrap().map(|e| e.unwrap().path()));
        } else {
            fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o600))
                .unwrap();
            write(&path, b"not a frame");
        }
    }
    let (store, report) = machine.rebuild(store);
    assert_eq!((report.kept_again, report.lost), (1, 0));
    assert_eq!(texts(&store, "s1"), ["hello"]);
    assert_eq!(machine.import(&store).unchanged, 1);
}

#[test]
fn a_rebuild_that_was_killed_is_finished_by_the_next_import() {
    let machine = Machine::new();
    let gone = machine.session("gone.jsonl");
    write(&gone, prompt("gone", "u1", "only here"));
    let store = machine.store();
    machine.import(&store);
    fs::remove_file(&gone).unwrap();
    write(
        &machine.session("here.jsonl"),
        prompt("here", "u2", "hello"),
    );
    machine.import(&store);
    // As a kill leaves it: some rows are missing, and that it is not finished is written down.
    let row = store.catalogue().find("gone").unwrap();
    store.catalogue().forget(&row.key).unwrap();
    write(&store.home().join("rebuild.pending"), "");
    machine.import(&store);
    assert_eq!(texts(&store, "gone"), ["only here"]);
    assert!(!store.home().join("rebuild.pending").exists());
}

#[test]
fn a_long_first_line_does_not_hide_a_log() {
    let machine = Machine::new();
    let path = machine.session("s1.jsonl");
    write(
        &path,
        prompt("s1", "u1", &"x".repeat(700_000)) + &reply("s1", "u2", "yes"),
    );
    let store = machine.store();
    machine.import(&store);
    assert_eq!(listed(&store), ["s1"]);
    append(&path, reply("s1", "u3", "more"));
    machine.import(&store);
    assert_eq!((listed(&store).len(), output_tokens(&store)), (1, 10));
}

#[test]
fn a_log_has_one_name_whatever_links_lead_to_it() {
    let machine = Machine::new();
    let real = machine.home("dotfiles/claude/projects/-code/s1.jsonl");
    write(&real, prompt("s1", "u1", "hello"));
    std::os::unix::fs::symlink(machine.home("dotfiles/claude"), machine.home(".claude")).unwrap();
    let store = machine.store();
    machine.import(&store);
    append(&real, prompt("s1", "u2", "again"));
    let paths = [machine.session("s1.jsonl")];
    let progress = crate::import::Progress::default();
    store
        .import_paths(&machine.host(), &paths, &options(), &progress)
        .unwrap();
    assert_eq!(rows(&store).len(), 1);
    assert_eq!(texts(&store, "s1"), ["hello", "again"]);
}

#[test]
fn whoever_follows_hears_of_what_is_read_and_forgotten() {
    let machine = Machine::new();
    let path = machine.session("s1.jsonl");
    write(&path, prompt("s1", "u1", "hello"));
    let store = machine.store();
    // As another process does it.
    let other = machine.store();
    let mut changes = other.changes().unwrap();
    let mut heard = || changes.next(std::time::Duration::from_secs(10)).unwrap();
    machine.import(&store);
    let row = rows(&store).remove(0);
    let change = |what| {
        crate::live::Heard::Change(crate::live::Change {
            key: row.key.clone(),
            what,
        })
    };
    assert_eq!(heard(), change(What::Read));
    append(&path, reply("s1", "u2", "hi"));
    machine.import(&store);
    assert_eq!(heard(), change(What::Read));
    let holdings = store.holdings(vec![row.clone()]).unwrap();
    store.prune(&holdings, options().now).unwrap();
    assert_eq!(heard(), change(What::Forgotten));
}

/// Somebody who follows everything: what he has of each transcript, and the place behind which he goes on.
#[derive(Default)]
struct Everything {
    had: std::collections::BTreeMap<String, Vec<String>>,
    place: u64,
}

impl Everything {
    /// Takes what became known; gives how many events were told again.
    fn catch_up(&mut self, store: &Store) -> usize {
        let mut again = 0;
        for advance in store.catalogue().advances(self.place, 1000).unwrap() {
            assert_eq!(advance.first, self.place + 1, "{advance:?}");
            self.place = advance.last;
            let had = self.had.entry(advance.address.clone()).or_default();
            match advance.kind {
                AdvanceKind::Gone => {
                    had.clear();
                    continue;
                }
                AdvanceKind::Again => {
                    let from = usize::try_from(advance.from).unwrap();
                    again += had.len() - (from - 1);
                    had.truncate(from - 1);
                }
                AdvanceKind::Grown => {}
            }
            assert_eq!(had.len() as u64 + 1, advance.from, "{advance:?}");
            let row = store.find(&advance.address).unwrap();
            let events = store.events(&row).unwrap();
            let events = events.events(advance.from..=advance.to).unwrap();
            had.extend(events.iter().map(|event| format!("{:?}", event.body)));
        }
        again
    }

    /// Whether he has what there is.
    fn has_all(&self, store: &Store) {
        for row in rows(store) {
            let events = store.read(row.clone()).unwrap().events;
            let there: Vec<String> = events
                .iter()
                .map(|event| format!("{:?}", event.body))
                .collect();
            assert_eq!(self.had[&row.address], there, "{}", row.run_id);
        }
    }
}

#[test]
fn what_is_added_to_logs_is_put_down_once_and_in_order() {
    let machine = Machine::new();
    let store = machine.store();
    let path = machine.session("s1.jsonl");
    let other = machine.session("s2.jsonl");
    let mut follower = Everything::default();
    write(&path, prompt("s1", "u1", "hello"));
    write(&other, prompt("s2", "v1", "hello, too"));
    for n in 2..20 {
        machine.import(&store);
        assert_eq!(follower.catch_up(&store), 0, "{n}");
        follower.has_all(&store);
        append(&path, reply("s1", &format!("u{n}"), "hi"));
        append(&path, prompt("s1", &format!("w{n}"), "and then?"));
        if n % 5 == 0 {
            append(&other, reply("s2", &format!("v{n}"), "yes"));
        }
    }
    machine.import(&store);
    // Nothing has changed.
    let place = follower.place;
    follower.catch_up(&store);
    let place_now = follower.place;
    assert!(place_now > place);
    machine.import(&store);
    assert_eq!(follower.catch_up(&store), 0);
    assert_eq!(follower.place, place_now);
    // Another log where one was.
    write(&path, prompt("s1", "x1", "from the beginning"));
    machine.import(&store);
    assert!(follower.catch_up(&store) > 10);
    follower.has_all(&store);
    // A run, with a line that is not an event and one that is not whole.
    let run = store.home().join("transcripts/r1.jsonl");
    let line = |seq: u32| {
        format!(
            r#"{{"seq":{seq},"run_id":"r1","type":"note","path":"","iteration":0,"timestamp":"2026-06-08T08:14:40Z","payload":null}}"#
        )
    };
    write(&run, line(1) + "\nnot an event\n" + &line(2) + "\n");
    store.refresh_runs().unwrap();
    assert_eq!(follower.catch_up(&store), 0);
    append(&run, line(3));
    store.refresh_runs().unwrap();
    assert_eq!(follower.catch_up(&store), 0);
    append(&run, "\n".to_owned() + &line(4) + "\n");
    store.refresh_runs().unwrap();
    assert_eq!(follower.catch_up(&store), 0);
    let address = store.find("r1").unwrap().address;
    assert_eq!(follower.had[&address].len(), 4);
    std::fs::remove_file(&run).unwrap();
    store.refresh_runs().unwrap();
    follower.catch_up(&store);
    assert_eq!(follower.had[&address], Vec::<String>::new());
}
