use std::io::Write as _;

use jiff::Timestamp;
use jiff::tz::TimeZone;

use super::*;
use crate::query::{Clock, Filter, Query};
use crate::{Document, Facet, Tag};

struct Nobody;

impl Sessions for Nobody {
    fn passes(&self, _filter: &Filter) -> Result<Passes> {
        Ok([2].into_iter().collect())
    }
}

fn query(text: &str) -> Query {
    let clock = Clock {
        now: "2026-11-15T12:00:00Z".parse().expect("a time"),
        zone: TimeZone::UTC,
    };
    Query::parse(text, &clock).expect("a query")
}

fn event(pass: u64, seq: u64, text: &str) -> Document {
    let at: Timestamp = "2026-11-01T00:00:00Z".parse().expect("a time");
    Document {
        pass,
        seq,
        at: Some(at.as_millisecond() + i64::try_from(seq * 1000).expect("small")),
        place: seq * 10,
        text: text.to_owned(),
        paths: String::new(),
        tags: vec![Tag::new(Facet::Role, "user")],
    }
}

fn filled(directory: &Path, documents: Vec<Document>) -> TantivyIndex {
    let index = TantivyIndex::open_or_create(directory).expect("an index");
    let mut writer = index.writer().expect("a writer");
    let mut part = index.parts(PART).begin().expect("a part");
    for document in documents {
        part.add(document).expect("added");
    }
    writer.add(part.write().expect("written")).expect("added");
    writer.commit("1").expect("committed");
    index
}

fn seqs(index: &dyn Index, text: &str) -> Vec<u64> {
    let wish = Wish {
        order: Order::Newest,
        limit: 100,
        hidden: Passes::default(),
    };
    let found = index
        .view()
        .and_then(|view| view.search(&query(text), &wish, &Nobody));
    let mut found: Vec<u64> = found.expect("searched").iter().map(|hit| hit.seq).collect();
    found.sort_unstable();
    found
}

const TEXTS: [&str; 9] = [
    "the quick brown fox",
    "call getUserName of snake_case_thing",
    "open src/auth/mod.rs and std::fs",
    "commit 3f2a9c0d41bb7e and Straße",
    "GitHub Actions failed",
    "brown quick",
    "数据库 error",
    "quick and then very slow fox",
    "v1.22.3",
];

fn example(directory: &Path) -> TantivyIndex {
    let texts = TEXTS.iter().zip(1_u64..);
    let mut documents: Vec<Document> = texts.map(|(text, seq)| event(1, seq, text)).collect();
    documents[2].paths = "src/auth/mod.rs".to_owned();
    documents[5].pass = 2;
    documents[6].tags = vec![
        Tag::new(Facet::Role, "tool_result"),
        Tag::new(Facet::Tool, "Bash"),
        Tag::new(Facet::Has, "error"),
    ];
    filled(directory, documents)
}

#[test]
fn finds_what_is_asked_for_and_nothing_else() {
    let directory = tempfile::tempdir().expect("a directory");
    let index = example(directory.path());
    for (text, expected) in [
        ("quick", vec![1, 6, 8]),
        ("quick fox", vec![1, 8]),
        ("\"quick brown\"", vec![1]),
        ("quick -fox", vec![6]),
        ("-quick -error", vec![2, 3, 4, 5, 9]),
        ("brown OR error", vec![1, 6, 7]),
        ("quick NEAR/1 fox", vec![1]),
        ("fox NEAR/4 quick", vec![1, 8]),
        ("\"quick fox\"~1", vec![1]),
        ("\"fox brown\"~2", vec![1]),
        ("getusername", vec![2]),
        ("getUserName", vec![2]),
        ("user", vec![2]),
        ("user*", vec![2]),
        ("use*", vec![2]),
        ("snake_case_thing", vec![2]),
        ("snake_case", vec![2]),
        ("case_snake", vec![]),
        ("src/auth/mod.rs", vec![3]),
        ("std::fs", vec![3]),
        ("path:auth/mod.rs", vec![3]),
        ("path:quick", vec![]),
        ("3f2a9c0", vec![4]),
        ("3F2A9C0D41BB7E", vec![4]),
        ("STRASSE", vec![4]),
        ("\"github actions\"", vec![5]),
        ("hub", vec![5]),
        ("数据", vec![7]),
        ("据数", vec![]),
        ("role:tool", vec![7]),
        ("tool:bash", vec![7]),
        ("tool:ba*", vec![7]),
        ("has:error", vec![7]),
        ("role:user quick", vec![1, 6, 8]),
        ("since:2026-11-01T00:00:07Z", vec![7, 8, 9]),
        ("until:2026-11-01T00:00:02Z", vec![1]),
        ("project:x", vec![6]),
        ("-project:x quick", vec![1, 8]),
        ("v1.22.3", vec![9]),
        ("1.22", vec![]),
        ("\"->\"", vec![]),
        ("quick \"->\" fox", vec![1, 8]),
        ("brown -\"->\"", vec![1, 6]),
        ("quick OR \"->\"", vec![1, 6, 8]),
    ] {
        assert_eq!(seqs(&index, text), expected, "{text}");
    }
}

#[test]
fn newest_comes_first_whatever_the_segment() {
    let directory = tempfile::tempdir().expect("a directory");
    let index = filled(
        directory.path(),
        (0..50).map(|n| event(1, n * 2, "word")).collect(),
    );
    let again = filled(
        directory.path(),
        (0..50).map(|n| event(2, n * 2 + 1, "word")).collect(),
    );
    drop(index);
    let wish = Wish {
        order: Order::Newest,
        limit: 7,
        hidden: Passes::default(),
    };
    let view = again.view().expect("a view");
    let found = view
        .search(&query("word"), &wish, &Nobody)
        .expect("searched");
    let found: Vec<u64> = found.iter().map(|hit| hit.seq).collect();
    assert_eq!(found, [99, 98, 97, 96, 95, 94, 93]);
    let wish = Wish {
        order: Order::ByPass(std::sync::Arc::new(vec![0, 9, 3])),
        ..wish
    };
    let found = view
        .search(&query("word"), &wish, &Nobody)
        .expect("searched");
    let found: Vec<u64> = found.iter().map(|hit| hit.seq).collect();
    assert_eq!(found, [98, 96, 94, 92, 90, 88, 86]);
}

#[test]
fn a_pass_can_be_taken_out_or_hidden() {
    let directory = tempfile::tempdir().expect("a directory");
    let index = filled(
        directory.path(),
        vec![event(1, 1, "word"), event(2, 2, "word")],
    );
    let wish = Wish {
        order: Order::Relevance,
        limit: 10,
        hidden: [1].into_iter().collect(),
    };
    let view = index.view().expect("a view");
    let found = view
        .search(&query("word"), &wish, &Nobody)
        .expect("searched");
    assert_eq!(found.iter().map(|hit| hit.seq).collect::<Vec<_>>(), [2]);
    let mut writer = index.writer().expect("a writer");
    writer.remove(1);
    writer.commit("2").expect("committed");
    assert_eq!(seqs(&index, "word"), [2]);
    assert_eq!(index.mark().expect("a mark").as_deref(), Some("2"));
    // The view is as it was.
    assert_eq!(view.events(), 2);
}

#[test]
fn a_small_part_takes_more_than_one_event() {
    let directory = tempfile::tempdir().expect("a directory");
    let index = TantivyIndex::open_or_create(directory.path()).expect("an index");
    let mut part = index.parts(16 << 20).begin().expect("a part");
    for n in 0..5_000 {
        assert!(!part.is_full(), "after {n}");
        part.add(event(1, n, &format!("word{n} of a text")))
            .expect("added");
    }
}

#[test]
fn there_is_one_writer_at_a_time() {
    let directory = tempfile::tempdir().expect("a directory");
    let index = TantivyIndex::open_or_create(directory.path()).expect("an index");
    let one = index.writer().expect("a writer");
    assert!(matches!(index.writer(), Err(IndexError::Busy(_))));
    drop(one);
    index.writer().expect("another writer");
}

#[test]
fn damage_is_noticed() {
    let directory = tempfile::tempdir().expect("a directory");
    drop(filled(directory.path(), vec![event(1, 1, "word")]));
    let meta = std::fs::File::create(directory.path().join("meta.json"));
    meta.and_then(|mut meta| meta.write_all(b"{"))
        .expect("written");
    let error = TantivyIndex::open_or_create(directory.path()).expect_err("damaged");
    assert!(matches!(error, IndexError::Unusable { .. }), "{error}");
}

#[test]
fn ten_thousand_words_are_looked_up_quickly() {
    let directory = tempfile::tempdir().expect("a directory");
    let index = example(directory.path());
    let words: Vec<String> = (0..9_999).map(|n| format!("w{n}")).collect();
    let any = format!("{} OR quick", words.join(" OR "));
    assert_eq!(seqs(&index, &any), [1, 6, 8]);
    assert_eq!(seqs(&index, &format!("{} quick", words.join(" "))).len(), 0);
}

/// What is written is checked, whatever happens to it.
#[test]
fn damaged_files_are_seen_and_never_panic() {
    let directory = tempfile::tempdir().expect("a directory");
    let texts = ["one two three", "two three four", "three four five"];
    let documents = texts.iter().zip(1..).map(|(text, seq)| event(2, seq, text));
    let index = filled(directory.path(), documents.collect());
    assert_eq!(index.damages(true), Vec::<String>::new());
    drop(index);
    let files: Vec<PathBuf> = std::fs::read_dir(directory.path())
        .expect("listed")
        .map(|entry| entry.expect("an entry").path())
        .filter(|path| {
            path.extension()
                .is_none_or(|it| it != "lock" && it != "json")
        })
        .filter(|path| path.metadata().is_ok_and(|it| it.len() > 0))
        .collect();
    assert!(files.len() >= 6, "{files:?}");
    for path in files {
        let whole = std::fs::read(&path).expect("read");
        // The checksum follows the content. The names of its fields are not checked.
        let content = whole.len().saturating_sub(100).max(1);
        for n in 0..8 {
            let mut bytes = whole.clone();
            let name = path.display();
            match n {
                0 => bytes.clear(),
                1 => bytes.truncate(bytes.len() / 2),
                n => bytes[content * (n - 2) / 8] ^= 0x10,
            }
            std::fs::remove_file(&path).expect("removed");
            let mut file = std::fs::File::create(&path).expect("created");
            file.write_all(&bytes).expect("written");
            let damages = match TantivyIndex::open(directory.path()) {
                Ok(Some(index)) => {
                    // Whatever it answers, it answers.
                    let wish = Wish {
                        limit: 10,
                        ..Wish::default()
                    };
                    let view = index.view();
                    drop(view.and_then(|view| view.search(&query("two"), &wish, &Nobody)));
                    index.damages(true)
                }
                Ok(None) => vec!["it is not there".to_owned()],
                Err(error) => vec![error.to_string()],
            };
            assert!(!damages.is_empty(), "{name}, damage {n}");
        }
        let mut file = std::fs::File::create(&path).expect("created");
        file.write_all(&whole).expect("written");
    }
}

#[test]
fn an_index_that_may_not_be_written_to_can_be_searched() {
    let directory = tempfile::tempdir().expect("a directory");
    drop(filled(directory.path(), vec![event(2, 1, "one two")]));
    let lock = directory.path().join(".tantivy-meta.lock");
    std::fs::remove_file(&lock).ok();
    let mapped = MmapDirectory::open(directory.path()).expect("a directory");
    let (_, fields) = schema::schema();
    let engine = tantivy::Index::builder()
        .schema(schema::schema().0)
        .tokenizers(schema::tokenizers())
        .open_or_create(ReadOnly::new(mapped))
        .expect("opened");
    let index = TantivyIndex {
        engine,
        fields,
        path: directory.path().to_owned(),
    };
    assert_eq!(seqs(&index, "two"), [1]);
    assert!(!lock.exists(), "nothing is left behind");
}

/// Several parts of texts with few words, so that phrases are often almost there.
fn crowded(directory: &Path, seed: u64, removed: u64) -> TantivyIndex {
    const WORDS: [&str; 4] = ["ant", "bee", "cat", "dog"];
    let mut state = seed | 1;
    let mut dice = move |below: u64| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state % below
    };
    let index = TantivyIndex::open_or_create(directory).expect("an index");
    let mut writer = index.writer().expect("a writer");
    writer.keep_apart();
    let mut seq = 0;
    for _ in 0..3 {
        let mut part = index.parts(PART).begin().expect("a part");
        for _ in 0..300 {
            seq += 1;
            let words: Vec<&str> = (0..=dice(12)).map(|_| WORDS[dice(4) as usize]).collect();
            let mut document = event(1 + dice(5), seq, &words.join(" "));
            document.at = document
                .at
                .map(|at| at - at % 60_000 + dice(40).cast_signed() * 1000);
            part.add(document).expect("added");
        }
        writer.add(part.write().expect("written")).expect("added");
    }
    writer.commit("1").expect("committed");
    writer.remove(removed);
    writer.commit("2").expect("committed");
    index
}

#[test]
fn phrases_by_themselves_are_found_as_phrases_among_other_conditions() {
    for seed in 1..=6_u64 {
        let directory = tempfile::tempdir().expect("a directory");
        let view = crowded(directory.path(), seed * 7919, 1 + seed % 5).view();
        let view = view.expect("a view");
        let ranks = std::sync::Arc::new(vec![0, 3, 1, 4, 1, 5]);
        for order in [Order::Relevance, Order::Newest, Order::ByPass(ranks)] {
            for (limit, hidden) in [(1, None), (7, Some(3)), (40, Some(2)), (5000, None)] {
                let wish = Wish {
                    order: order.clone(),
                    limit,
                    hidden: hidden.into_iter().collect(),
                };
                for phrase in [
                    "ant bee",
                    "bee bee",
                    "cat ant dog",
                    "ant bee ant bee",
                    "eel ant",
                ] {
                    let found = |text: &str| {
                        let found = view.search(&query(text), &wish, &Nobody);
                        found.expect("searched")
                    };
                    let alone = found(&format!("\"{phrase}\""));
                    // Every event has this role.
                    let among = found(&format!("\"{phrase}\" role:user"));
                    assert_eq!(alone, among, "{phrase:?}, {wish:?}, seed {seed}");
                    assert_eq!(alone.is_empty(), phrase == "eel ant");
                }
            }
        }
    }
}

#[test]
fn an_index_in_a_directory_passes_the_suite() {
    let root = tempfile::tempdir().expect("a directory");
    let next = std::sync::atomic::AtomicUsize::new(0);
    let make = || -> Arc<dyn Index> {
        let nth = next.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let directory = root.path().join(nth.to_string());
        std::fs::create_dir(&directory).expect("a directory");
        Arc::new(TantivyIndex::open_or_create(&directory).expect("an index"))
    };
    let report = crate::testkit::conformance(&make);
    assert_eq!(report.failed, []);
    assert!(!report.passed.is_empty());
}
