//! What is kept, and that nothing is lost.

use std::io::{self, Read, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::sync::Barrier;

use super::kit::{root, trace};
use crate::blobs::{Blobs, beside};
use crate::traces::{Checks, How, TraceError, Traces};

fn all_files(directory: &Path) -> Vec<String> {
    let mut found = Vec::new();
    let mut left = vec![directory.to_owned()];
    while let Some(next) = left.pop() {
        for entry in std::fs::read_dir(next).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                left.push(path);
            } else {
                let path = path.strip_prefix(directory).unwrap();
                found.push(path.to_str().unwrap().to_owned());
            }
        }
    }
    found.retain(|path| path.contains(".agentlog") || path.contains("tmp"));
    found.sort();
    found
}

fn put(traces: &Traces, text: &str) -> How {
    traces.put(text.as_bytes(), &Checks::default()).unwrap().how
}

#[test]
fn equal_roots_are_kept_beside_each_other() {
    let home = tempfile::tempdir().unwrap();
    let traces = Traces::open(home.path()).unwrap();
    let [a, b, c] = ["1", "2", "3"].map(|n| trace(&root("dev"), &[&format!(r#"{{"n":{n}}}"#)]));
    let first = traces.put(a.as_bytes(), &Checks::default()).unwrap();
    assert_eq!(first.how, How::New);
    let name = format!(
        "{}/{}.agentlog",
        &first.name.root.hex()[..2],
        &first.name.root.hex()[2..]
    );
    assert!(first.path.ends_with(&name), "{}", first.path.display());
    assert_eq!(
        std::fs::metadata(&first.path).unwrap().permissions().mode() & 0o777,
        0o600
    );

    let second = traces.put(b.as_bytes(), &Checks::default()).unwrap();
    assert_eq!(
        (second.how, second.name.root),
        (How::Beside, first.name.root)
    );
    assert!(second.path.to_str().unwrap().contains('~'));
    assert_eq!([put(&traces, &a), put(&traces, &b)], [How::Already; 2]);
    assert_eq!(put(&traces, &c), How::Beside);
    assert_eq!(all_files(home.path()).len(), 3);
    for (text, kept) in [(&a, &first), (&b, &second)] {
        assert_eq!(&std::fs::read_to_string(&kept.path).unwrap(), text);
        let found = traces.find(&kept.name.to_string()).unwrap();
        assert_eq!(
            (found.same_id, traces.read(&found).unwrap()),
            (3, text.clone().into())
        );
    }
    let Err(TraceError::Several { names, .. }) = traces.find(&first.name.root.to_string()) else {
        panic!("the id names three");
    };
    assert_eq!(names.len(), 3);
    assert!(names.contains(&second.name.to_string()), "{names:?}");
    assert!(matches!(traces.find("0123"), Err(TraceError::None(_))));
}

#[test]
fn a_recording_that_went_on_takes_the_place_of_its_beginning() {
    let home = tempfile::tempdir().unwrap();
    let traces = Traces::open(home.path()).unwrap();
    let long = trace(&root("dev"), &[r#"{"n":1}"#, r#"{"n":2}"#]);
    let short = trace(&root("dev"), &[r#"{"n":1}"#]);
    assert!(long.starts_with(&short));
    let torn = &long[..long.len() - 5];
    assert_eq!(put(&traces, &short), How::New);
    assert_eq!(put(&traces, torn), How::Continued);
    assert_eq!(put(&traces, &long), How::Continued);
    assert_eq!(
        [put(&traces, &short), put(&traces, torn)],
        [How::AlreadyLonger; 2]
    );
    assert_eq!(put(&traces, &long), How::Already);
    let rows = traces.recent(9).unwrap();
    assert_eq!((rows.len(), rows[0].records, rows[0].bad_lines), (1, 3, 0));
    assert_eq!(traces.read(&rows[0]).unwrap(), long.as_bytes());

    // One beside it goes on as well.
    let [other, more] = [&[r#"{"m":1}"#][..], &[r#"{"m":1}"#, r#"{"m":2}"#]];
    let (other, more) = (trace(&root("dev"), other), trace(&root("dev"), more));
    assert_eq!(put(&traces, &other), How::Beside);
    assert_eq!(put(&traces, &more), How::Continued);
    assert_eq!(all_files(home.path()).len(), 2);
    let kept: Vec<Vec<u8>> = traces
        .recent(9)
        .unwrap()
        .iter()
        .map(|row| traces.read(row).unwrap())
        .collect();
    assert!(
        kept.len() == 2 && kept.contains(&long.into_bytes()) && kept.contains(&more.into_bytes())
    );
}

#[test]
fn a_beginning_that_is_still_written_stays_where_it_is() {
    let home = tempfile::tempdir().unwrap();
    let traces = Traces::open(home.path()).unwrap();
    let texts = [1, 2, 3].map(|n| trace(&root("dev"), &[r#"{"n":1}"#; 3][..n]));
    let kept = traces.put(texts[0].as_bytes(), &Checks::default()).unwrap();
    // As a recorder has it.
    let mut options = std::fs::OpenOptions::new();
    let mut live = options.append(true).open(&kept.path).unwrap();
    live.lock().unwrap();
    assert_eq!(put(&traces, &texts[1]), How::Beside);
    live.write_all(&texts[2].as_bytes()[texts[0].len()..])
        .unwrap();
    assert_eq!(std::fs::read_to_string(&kept.path).unwrap(), texts[2]);
    drop(live);
    assert_eq!(put(&traces, &texts[2]), How::Already);
    assert_eq!(all_files(home.path()).len(), 2);
    let longer = trace(&root("dev"), &[r#"{"n":1}"#; 4]);
    assert_eq!(put(&traces, &longer), How::Continued);
    assert_eq!(std::fs::read_to_string(&kept.path).unwrap(), longer);
}

#[test]
fn blobs_beside_a_file_come_with_its_trace() {
    let home = tempfile::tempdir().unwrap();
    let traces = Traces::open(&home.path().join("home")).unwrap();
    let beside = beside(&home.path().join("x.agentlog"));
    let beside = Blobs::open(&beside).unwrap();
    let [used, loose] = [&b"used"[..], b"loose"].map(|bytes| beside.put(bytes).unwrap());
    let text = trace(&root("dev"), &[&format!(r#"{{"n":"{used}"}}"#)]);
    let kept = traces.put(text.as_bytes(), &Checks::default()).unwrap();
    for taken in [1, 0] {
        assert_eq!(traces.take_blobs(&kept.survey, &beside).unwrap(), taken);
    }
    assert_eq!(traces.blobs().get(&used).unwrap(), b"used");
    assert!(traces.blobs().get(&loose).is_err() && beside.get(&used).is_ok());
}

#[test]
fn what_is_no_trace_is_refused_and_leaves_nothing() {
    let home = tempfile::tempdir().unwrap();
    let traces = Traces::open(home.path()).unwrap();
    let good = trace(&root("dev"), &[r#"{"n":1}"#]);
    let (first, second) = good.split_once('\n').unwrap();
    let wrong = good.replacen("\"env\":\"dev\"", "\"env\":\"prod\"", 1);
    let refused = [
        ("", "nothing in it"),
        ("hello\n", "the first line is no record"),
        (second, "not metadata"),
        (&first.replace("sha256:", "md5:"), "no id"),
        (&wrong, "the root record says it is"),
        (&first.replace("\"tags\"", "\"sdk\""), "no canonical form"),
    ];
    for (text, why) in refused {
        let error = traces
            .put(text.as_bytes(), &Checks::default())
            .unwrap_err()
            .to_string();
        assert!(error.contains(why), "{error}");
    }
    assert_eq!(all_files(home.path()), [""; 0]);
    let asked = Checks {
        wrong_root: true,
        ..Checks::default()
    };
    let kept = traces.put(wrong.as_bytes(), &asked).unwrap();
    assert_eq!(
        (kept.how, kept.survey.wrong_ids, kept.survey.first_wrong),
        (How::New, 1, Some(1))
    );
    assert!(!traces.recent(1).unwrap()[0].is_rooted);

    let mut small = Checks::default();
    small.limits.max_total_bytes = 100;
    let error = traces.put(good.as_bytes(), &small).unwrap_err();
    assert!(matches!(error, TraceError::TooLarge(100)), "{error}");
    assert_eq!(all_files(home.path()).len(), 1);
}

/// Gives some bytes, and then an error.
struct Broken<'a>(&'a [u8]);

impl Read for Broken<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.0.is_empty() {
            return Err(io::Error::other("the cable was pulled"));
        }
        self.0.read(buffer)
    }
}

#[test]
fn a_source_that_breaks_leaves_nothing() {
    let home = tempfile::tempdir().unwrap();
    let traces = Traces::open(home.path()).unwrap();
    let good = trace(&root("dev"), &[r#"{"n":1}"#]);
    let error = traces
        .put(Broken(good.as_bytes()), &Checks::default())
        .unwrap_err();
    assert!(
        error.to_string().contains("the cable was pulled"),
        "{error}"
    );
    assert_eq!(all_files(home.path()), [""; 0]);
}

#[test]
fn two_writers_at_once_lose_nothing() {
    const WRITERS: usize = 8;
    const ROUNDS: usize = 10;
    let home = tempfile::tempdir().unwrap();
    let barrier = Barrier::new(WRITERS);
    let hows: Vec<How> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..WRITERS)
            .map(|writer| {
                let (home, barrier) = (home.path(), &barrier);
                scope.spawn(move || {
                    let traces = Traces::open(home).unwrap();
                    let mut hows = Vec::new();
                    for round in 0..ROUNDS {
                        // Half of them say the same, all have the same root, and one is a beginning.
                        let n = writer / 2;
                        let text = trace(&root(&round.to_string()), &[&format!(r#"{{"n":{n}}}"#)]);
                        barrier.wait();
                        hows.push(put(&traces, &text));
                    }
                    hows
                })
            })
            .collect();
        threads
            .into_iter()
            .flat_map(|it| it.join().unwrap())
            .collect()
    });
    let many = |how| hows.iter().filter(|it| **it == how).count();
    assert_eq!(many(How::New), ROUNDS);
    assert_eq!(many(How::Beside), ROUNDS * 3);
    assert_eq!(many(How::Already), ROUNDS * 4);
    assert_eq!(all_files(home.path()).len(), ROUNDS * 4);
    let rows = Traces::open(home.path()).unwrap().recent(1000).unwrap();
    assert_eq!(rows.len(), ROUNDS * 4);
    assert!(rows.iter().all(|row| row.same_id == 4 && row.is_rooted));
}

#[test]
fn two_that_go_on_from_the_same_beginning_are_both_kept() {
    for _ in 0..20 {
        let home = tempfile::tempdir().unwrap();
        let traces = Traces::open(home.path()).unwrap();
        put(&traces, &trace(&root("x"), &[r#"{"n":0}"#]));
        let texts =
            ["1", "2"].map(|n| trace(&root("x"), &[r#"{"n":0}"#, &format!(r#"{{"n":{n}}}"#)]));
        let barrier = Barrier::new(2);
        std::thread::scope(|scope| {
            for text in &texts {
                let (home, barrier) = (home.path(), &barrier);
                scope.spawn(move || {
                    let traces = Traces::open(home).unwrap();
                    barrier.wait();
                    put(&traces, text);
                });
            }
        });
        let traces = Traces::open(home.path()).unwrap();
        let rows = traces.recent(9).unwrap();
        let mut kept: Vec<Vec<u8>> = rows.iter().map(|row| traces.read(row).unwrap()).collect();
        kept.sort();
        assert_eq!(kept, texts.map(String::into_bytes));
    }
}
