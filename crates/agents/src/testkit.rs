//! What the tests of every family share.

use std::path::Path;

use proptest::test_runner::{TestRng, TestRunner};
use quipu_model::{Attachment, Body, Event, Timestamp};

use crate::bounds::{MOST_MS, MOST_TOKENS};
use crate::{
    Checkpoint, Collect, Dialect, Entry, Family, Feed, FeedError, Host, Ledger, Origin, Pick,
    Position, Session, Sink, Summary,
};

/// Keeps events and sums them up.
#[derive(Default)]
struct Both {
    events: Collect,
    summary: Summary,
}

impl Sink for Both {
    fn entry(&mut self, seq: u64, at: Timestamp, position: Position, entry: &Entry<'_>) {
        self.summary.observe(entry);
        self.events.entry(seq, at, position, entry);
    }

    fn blob(&mut self, attachment: &Attachment, bytes: &[u8]) {
        self.events.blob(attachment, bytes);
    }
}

/// A log that was read.
pub(crate) struct Read {
    pub(crate) dialect: Dialect,
    pub(crate) session: Session,
    pub(crate) ledger: Ledger,
    pub(crate) summary: Summary,
    pub(crate) events: Vec<Event>,
    pub(crate) blobs: usize,
    pub(crate) error: Option<FeedError>,
}

/// Reads a log whose format is decided from its content. `None` when no family knows it.
pub(crate) fn read(bytes: &[u8], path: &str) -> Option<Read> {
    let (family, dialect) = crate::identify(bytes, true)?;
    Some(read_as(family, dialect, bytes, path))
}

/// Reads a log of a known dialect, and holds it to what is promised of every log: each record is
/// accounted for, numbers are dense, and reading in pieces gives the same.
pub(crate) fn read_as(
    family: &'static dyn Family,
    dialect: Dialect,
    bytes: &[u8],
    path: &str,
) -> Read {
    let whole = in_pieces(family, dialect, bytes, path, &[]);
    account(&whole);
    let mut rng = TestRunner::deterministic().rng().clone();
    for _ in 0..3 {
        let cuts = cuts(bytes.len(), &mut rng);
        let pieces = in_pieces(family, dialect, bytes, path, &cuts);
        assert_eq!(whole.events, pieces.events, "{path} in pieces {cuts:?}");
        assert_eq!(whole.session, pieces.session, "{path} in pieces {cuts:?}");
        assert_eq!(whole.summary, pieces.summary, "{path} in pieces {cuts:?}");
        assert_eq!(whole.ledger.dropped, pieces.ledger.dropped, "{path}");
        assert_eq!(whole.ledger.records, pieces.ledger.records, "{path}");
    }
    whole
}

/// Holds a family to what it picks below its places: `(place below the home, path below the place, what)`.
pub(crate) fn picks(family: &dyn Family, expected: &[(&str, &str, Pick)]) {
    let home = Path::new("/home/me");
    let places = family.places(&Host::new(home, |_| None));
    for (root, below, what) in expected {
        let root = home.join(root);
        let place = places.iter().find(|place| place.root == root).unwrap();
        let below = Path::new(below);
        assert_eq!((place.pick)(below), *what, "{}", below.display());
        let deep = below.components().count();
        assert!(deep <= place.depth + 1, "{}", below.display());
    }
}

fn cuts(len: usize, rng: &mut TestRng) -> Vec<usize> {
    use proptest::prelude::RngExt as _;
    let mut cuts: Vec<usize> = (0..4).map(|_| rng.random_range(0..=len)).collect();
    cuts.sort_unstable();
    cuts
}

/// Reads a log that grows: at each cut, all that is there is read, and then reading goes on from a
/// checkpoint, by way of bytes, as another process would.
pub(crate) fn in_pieces(
    family: &'static dyn Family,
    dialect: Dialect,
    bytes: &[u8],
    path: &str,
    cuts: &[usize],
) -> Read {
    let origin = Origin {
        path: Path::new(path),
        part: None,
    };
    let open = |state: Option<&[u8]>| family.open(&dialect, &origin, state).unwrap();
    let mut feed = Feed::new(dialect.framing, open(None));
    let mut sink = Both::default();
    let mut from = 0;
    for &cut in cuts {
        feed.push(&bytes[from..cut], &mut sink);
        from = cut;
        if let Some(checkpoint) = feed.checkpoint() {
            let checkpoint = Checkpoint::from_bytes(&checkpoint.to_bytes()).unwrap();
            from = usize::try_from(checkpoint.offset).unwrap();
            let reader = open(Some(checkpoint.reader_state()));
            feed = Feed::resume(checkpoint, reader);
        }
    }
    feed.push(&bytes[from..], &mut sink);
    let error = feed.finish(&mut sink).err();
    let Both {
        events: mut sink,
        summary,
    } = sink;
    sink.mark(feed.ledger());
    Read {
        summary,
        dialect,
        session: feed.session().clone(),
        ledger: feed.ledger().clone(),
        blobs: sink.blobs.len(),
        events: sink.events,
        error,
    }
}

/// Numbers that no honest log has, as JSON.
const HOSTILE_NUMBERS: [&str; 7] = [
    "9223372036854775807",
    "4611686018427387904",
    "18446744073709551615",
    "1e308",
    "-1",
    "\"12\"",
    "1.5",
];

/// Holds a reader to what is promised of logs that are broken: cut off anywhere, with a value of the wrong kind
/// anywhere, or with numbers that cannot be everywhere, they are read without harm, each record is accounted for,
/// and no number that cannot be gets out.
pub(crate) fn hostile(family: &'static dyn Family, dialect: Dialect, log: &str) {
    let check = |log: &[u8]| {
        let read = in_pieces(family, dialect, log, "log", &[]);
        account(&read);
        believable(&read);
    };
    for end in 0..log.len() {
        check(&log.as_bytes()[..end]);
    }
    let lines: Vec<&str> = match dialect.framing {
        crate::Framing::Document | crate::Framing::Parts | crate::Framing::Page => vec![log],
        _ => log.lines().collect(),
    };
    let deep = format!("{}1{}", "[".repeat(100), "]".repeat(100));
    let wrong = [
        "null",
        "true",
        "-1",
        "1e400",
        "18446744073709551615",
        "\"\"",
        "\"x\"",
        "[]",
        "{}",
    ];
    let wrong = wrong
        .into_iter()
        .chain(["[null,[],{}]", "{\"x\":{\"type\":[]}}", deep.as_str()]);
    let wrong: Vec<serde_json::Value> = wrong
        .filter_map(|text| serde_json::from_str(text).ok())
        .collect();
    for number in HOSTILE_NUMBERS {
        let lines = lines.iter().map(|line| with_numbers(line, number));
        check(lines.collect::<Vec<_>>().join("\n").as_bytes());
    }
    for (index, line) in lines.iter().enumerate() {
        let Ok(whole) = serde_json::from_str::<serde_json::Value>(line) else {
            continue;
        };
        for place in places(&whole) {
            for value in &wrong {
                let mut changed = whole.clone();
                if let Some(at) = changed.pointer_mut(&place) {
                    *at = value.clone();
                }
                let changed = changed.to_string();
                let mut log: Vec<&str> = lines.clone();
                log[index] = &changed;
                check(log.join("\n").as_bytes());
            }
        }
    }
}

/// A line with each number in it replaced. What is not JSON stays as it is.
fn with_numbers(line: &str, number: &str) -> String {
    fn mark(value: &mut serde_json::Value) {
        match value {
            serde_json::Value::Number(_) => *value = "\u{1}number".into(),
            serde_json::Value::Array(items) => items.iter_mut().for_each(mark),
            serde_json::Value::Object(fields) => fields.values_mut().for_each(mark),
            _ => {}
        }
    }
    // Server-sent events have a word before the JSON.
    let (word, json) = match line.strip_prefix("data: ") {
        Some(json) => ("data: ", json),
        None => ("", line),
    };
    let Ok(mut value) = serde_json::from_str::<serde_json::Value>(json) else {
        return line.to_owned();
    };
    mark(&mut value);
    let json = value.to_string().replace("\"\\u0001number\"", number);
    format!("{word}{json}")
}

/// Nothing that was read has a number in it that cannot be.
fn believable(read: &Read) {
    let buckets = |usage: &quipu_model::Usage| {
        let all = [usage.input, usage.cache_read, usage.cache_write];
        let more = [usage.cache_write_1h, usage.output, usage.reasoning];
        all.into_iter().chain(more).flatten().max().unwrap_or(0)
    };
    let dialect = read.dialect.name;
    for event in &read.events {
        let said = &event.annotations;
        let most = said.usage.as_ref().map_or(0, buckets);
        assert!(most <= MOST_TOKENS, "{dialect}: {most} tokens");
        let took = said.duration_ms.unwrap_or(0);
        assert!(took <= MOST_MS, "{dialect}: {took} ms");
    }
    let vendor = read
        .session
        .vendor_usage
        .map_or(0, |it| buckets(&it.into()));
    assert!(vendor <= MOST_TOKENS * 1_000, "{dialect}: {vendor} tokens");
    let sum = buckets(&read.usage());
    assert!(sum < 1 << 62, "{dialect}: {sum} tokens in all");
}

/// Where the values inside a value are.
fn places(value: &serde_json::Value) -> Vec<String> {
    let mut found = Vec::new();
    let mut open = vec![(String::new(), value)];
    while let Some((place, value)) = open.pop() {
        match value {
            serde_json::Value::Array(items) => {
                let items = items.iter().enumerate();
                open.extend(items.map(|(index, item)| (format!("{place}/{index}"), item)));
            }
            serde_json::Value::Object(fields) => {
                let escape = |key: &str| key.replace('~', "~0").replace('/', "~1");
                let fields = fields.iter();
                open.extend(fields.map(|(key, item)| (format!("{place}/{}", escape(key)), item)));
            }
            _ => {}
        }
        found.push(place);
    }
    found
}

fn account(read: &Read) {
    let ledger = &read.ledger;
    let dropped: u64 = ledger.dropped.values().sum();
    assert_eq!(
        ledger.records,
        ledger.mapped + ledger.noted + dropped,
        "every record is accounted for: {ledger:?}"
    );
    for (index, event) in read.events.iter().enumerate() {
        assert_eq!(event.seq, index as u64 + 1);
    }
}

impl Read {
    /// One line per event: what a golden test compares.
    pub(crate) fn lines(&self) -> String {
        let mut text = format!(
            "{} id={:?} version={:?} cwd={:?} parent={:?} fork={:?}\n",
            self.dialect.name,
            self.session.id,
            self.session.version,
            self.session.cwd,
            self.session.parent,
            self.session.forked_from
        );
        for event in &self.events {
            let mut line = Vec::new();
            quipu_exchange::encode_log(event, &mut line);
            let line = String::from_utf8(line).unwrap();
            let short: String = line.trim_end().chars().take(400).collect();
            text.push_str(&short);
            text.push('\n');
        }
        let dropped: Vec<String> = self
            .ledger
            .dropped
            .iter()
            .map(|(why, n)| format!("{}={n}", why.as_str()))
            .collect();
        let unknown: Vec<&str> = self
            .ledger
            .drift
            .unknown
            .keys()
            .map(String::as_str)
            .collect();
        let (dropped, unknown) = (dropped.join(" "), unknown.join(" "));
        let records = self.ledger.records;
        text + &format!("records={records} dropped=[{dropped}] unknown=[{unknown}]\n")
    }

    /// The words of the events, in order, notes with their kind.
    pub(crate) fn words(&self) -> Vec<String> {
        self.events
            .iter()
            .map(|event| match &event.body {
                Body::Note(note) => format!("note.{}", note.kind),
                body => body.type_word().to_owned(),
            })
            .collect()
    }

    /// The tokens of all events.
    pub(crate) fn usage(&self) -> quipu_model::Usage {
        let mut sum = quipu_model::Usage::default();
        for usage in self
            .events
            .iter()
            .filter_map(|event| event.annotations.usage)
        {
            sum.add(&usage);
        }
        sum
    }
}
