//! What the fuzz targets do with their input. A body panics when something is wrong.
//!
//! ```text
//! cargo +nightly fuzz run exchange_reader
//! ```

pub mod agentlog;
#[cfg(test)]
mod corpus;
pub mod mcp;
pub mod normalized;
pub mod otlp;
pub mod redact;
pub mod redact_text;
pub mod slow;
pub mod submit;
pub mod workflow;

use quipu_agents::{Checkpoint, Collect, Dialect, Family, Feed, Origin};
use quipu_exchange::{Escapes, Item, Reader, verify};
use quipu_exchange::lines::Limits;
use quipu_model::json::{Kind, Node, Parts, PartsError, SyntaxProblem, Tape};
use quipu_model::tree::TreeBuilder;
use quipu_model::{Event, InvalidJson, Json};
use quipu_search::query::{Clock, Problem, Query};

/// A target and its name, which is also the name of the directory of its corpus.
pub type Target = (&'static str, fn(&[u8]));

/// Those that are no adapters; each of these has one of its own, `agent_` and its name.
pub const TARGETS: [Target; 19] = [
    ("exchange_reader", exchange_reader),
    ("json_cursor", json_cursor),
    ("json_tape", json_tape),
    ("json_parts", json_parts),
    ("draft", draft),
    ("mcp_conversation", mcp::conversation),
    ("search_query", search_query),
    ("normalized_reader", normalized::reader),
    ("agentlog_reader", agentlog::reader),
    ("agentlog_canon", agentlog::canon),
    ("agentlog_verify", agentlog::check),
    ("otlp_request", otlp::request),
    ("redact_raw", redact::raw),
    ("redact_rules", redact_text::rules),
    ("redact_scan", redact_text::scan),
    ("submit_request", submit::request),
    ("workflow_file", workflow::file),
    ("workflow_template", workflow::template),
    ("workflow_expression", workflow::expression),
];

/// Small, so that inputs of a few hundred bytes reach them.
const LIMITS: Limits = Limits {
    max_line_bytes: 1024,
    max_total_bytes: 64 * 1024,
    max_depth: 16,
};

/// Reads a transcript to its end, builds its tree, verifies it, and writes again what it knows.
pub fn exchange_reader(bytes: &[u8]) {
    let mut reader = Reader::with_limits(bytes, LIMITS);
    let mut tree = TreeBuilder::default();
    let mut decoded_events = 0;
    while let Ok(Some(item)) = reader.next_decoded() {
        let Ok(decoded) = item else { continue };
        decoded_events += 1;
        tree.observe(&decoded.event);
        reads_back(&decoded.event);
    }
    let tree = tree.finish();
    let hung = tree.nodes.iter().map(|node| node.children.len());
    assert_eq!(tree.roots.len() + hung.sum::<usize>(), tree.nodes.len());

    let Ok(report) = verify::verify(&mut Reader::with_limits(bytes, LIMITS)) else {
        return;
    };
    assert_eq!(report.events, decoded_events);
    covers(bytes);
}

/// In the open form any event; as a line of a file whatever such a file may hold.
fn reads_back(event: &Event) {
    let (mut open, mut in_file) = (Vec::new(), Vec::new());
    quipu_exchange::encode_log(event, &mut open);
    let is_written = quipu_exchange::encode(event, Escapes::Plain, &mut in_file).is_ok();
    for line in [Some(open), Some(in_file).filter(|_| is_written)] {
        let Some(line) = line else { continue };
        assert_eq!(line.iter().filter(|&&b| b == b'\n').count(), 1);
        let mut reader = Reader::new(&line[..]);
        let read = reader.next_decoded().unwrap().unwrap().unwrap();
        assert_eq!(read.event, *event);
        assert!(reader.next_decoded().unwrap().is_none());
    }
}

/// No line that holds anything goes unmentioned.
fn covers(bytes: &[u8]) {
    let mut mentioned = std::collections::BTreeSet::new();
    let mut reader = Reader::with_limits(bytes, LIMITS);
    while let Some(item) = reader.next().unwrap() {
        mentioned.insert(match item {
            Item::Event(found) => found.at.line,
            Item::Bad(bad) => bad.at.line,
        });
    }
    let lines = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    for (number, line) in (1..).zip(lines.split(|&b| b == b'\n')) {
        let blank = line.iter().all(u8::is_ascii_whitespace);
        assert_eq!(mentioned.contains(&number), !blank, "line {number}");
    }
}

/// Accepts what `serde_json` accepts, but for what is nested too deeply, and reads strings alike.
pub fn json_cursor(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else {
        return;
    };
    let theirs = serde_json::from_str::<&serde_json::value::RawValue>(text);
    match Json::parse(text) {
        Ok(json) => {
            let theirs = theirs.expect("what is accepted is JSON");
            assert_eq!(json.get(), theirs.get().replace(['\n', '\r'], " "));
            let string = serde_json::from_str::<String>(json.get()).ok();
            assert_eq!(json.as_str().map(std::borrow::Cow::into_owned), string);
            assert_eq!(Json::parse(json.get()).unwrap(), json);
        }
        Err(InvalidJson::Syntax(error)) if error.what == SyntaxProblem::Depth => {}
        Err(error) => assert!(theirs.is_err(), "{error}"),
    }
}

/// Takes or refuses a draft; what it takes can be recorded.
pub fn draft(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else {
        return;
    };
    let Ok(request) = quipu_exchange::parse_draft(text, LIMITS.max_depth) else {
        return;
    };
    reads_back(&Event {
        seq: 1,
        run_id: quipu_model::RunId::new("r1").unwrap(),
        parent_run_id: request.parent_run_id,
        timestamp: quipu_model::Timestamp::UNIX_EPOCH,
        place: request.draft.place,
        body: request.draft.body,
        annotations: request.draft.annotations,
    });
}

/// Reads what a cursor reads, and the same things from it.
pub fn json_tape(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else {
        return;
    };
    let mut tape = Tape::new();
    match (tape.read(text, Json::MAX_DEPTH), Json::parse(text)) {
        (Ok(node), Ok(json)) => {
            assert_eq!(node.raw().get().replace(['\n', '\r'], " "), json.get());
            if let Ok(theirs) = serde_json::from_str::<serde_json::Value>(text) {
                assert_eq!(tree(node), theirs);
            }
        }
        (Err(ours), Err(InvalidJson::Syntax(theirs))) => assert_eq!(ours, theirs),
        (ours, theirs) => panic!("{ours:?} but {theirs:?}"),
    }
}

type Divided = (
    Vec<(String, Option<u64>, Vec<u8>, u64, u64)>,
    u64,
    Result<(), PartsError>,
);

fn divide<'a>(pieces: impl Iterator<Item = &'a [u8]>, limit: usize) -> Divided {
    let mut parts = Parts::new(&["events", "a"], limit);
    let mut found = Vec::new();
    let mut result = Ok(());
    for piece in pieces {
        let pushed = parts.push(piece, &mut |part| {
            assert!(part.value.len() <= limit);
            let key = part.key.to_owned();
            found.push((key, part.index, part.value.to_vec(), part.offset, part.line));
        });
        assert!(parts.held() <= 2 * limit);
        if result.is_ok() {
            result = pushed;
        }
    }
    let passed = parts.passed();
    (found, passed, result.and(parts.finish()))
}

/// Divides a document at once and in pieces, whose length the first byte says. The parts of what is JSON
/// are those that a tape finds.
pub fn json_parts(bytes: &[u8]) {
    let [piece, document @ ..] = bytes else {
        return;
    };
    let piece = usize::from(*piece).max(1);
    for limit in [16, 64 * 1024] {
        let whole = divide(std::iter::once(document), limit);
        let pieces = divide(document.chunks(piece), limit);
        assert_eq!((&whole.0, whole.1), (&pieces.0, pieces.1));
        assert_eq!(whole.2.is_ok(), pieces.2.is_ok());
    }
    let Ok(text) = std::str::from_utf8(document) else {
        return;
    };
    let mut tape = Tape::new();
    let Ok(node) = tape.read(text, 64) else {
        return;
    };
    if node.kind() != Kind::Object || text.len() > 64 * 1024 {
        return;
    }
    let mut expected = Vec::new();
    for (key, value) in node.fields() {
        let key = key.to_text_lossy().into_owned();
        if value.kind() == Kind::List && ["events", "a"].contains(&key.as_str()) {
            let items = value.items().zip(0_u64..);
            expected.extend(items.map(|(item, index)| (key.clone(), Some(index), item.bytes())));
        } else {
            expected.push((key, None, value.bytes()));
        }
    }
    let (found, _, result) = divide(document.chunks(piece), 64 * 1024);
    assert_eq!(result, Ok(()));
    let found: Vec<_> = found
        .iter()
        .map(|(key, index, value, ..)| (key.clone(), *index, value.as_slice()))
        .collect();
    assert_eq!(found, expected);
}

/// Reads a query and prints it as one that reads the same, or says where in it the mistake is.
pub fn search_query(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else {
        return;
    };
    let clock = Clock {
        now: quipu_model::Timestamp::UNIX_EPOCH,
        zone: jiff::tz::Offset::constant(5).to_time_zone(),
    };
    match Query::parse(text, &clock) {
        Ok(query) => {
            assert!(query.words().all(|word| !word.text.trim().is_empty()));
            match Query::parse(&query.to_string(), &clock) {
                Ok(same) => assert_eq!(same, query),
                // The printed form may be longer than the one that was read.
                Err(error) => assert!(matches!(
                    error.what,
                    Problem::TooLong | Problem::TooManyTerms | Problem::TooDeep
                )),
            }
        }
        Err(error) => {
            assert!(text.get(error.at.clone()).is_some(), "{error:?}");
            let drawn = error.render(text);
            assert_eq!(drawn.lines().count(), 2);
            assert!(drawn.lines().all(|line| !line.contains(char::is_control)));
        }
    }
}

fn tree(node: Node<'_>) -> serde_json::Value {
    match node.kind() {
        Kind::Object => node
            .fields()
            .map(|(key, value)| (key.to_text_lossy().into_owned(), tree(value)))
            .collect::<serde_json::Map<_, _>>()
            .into(),
        Kind::List => node.items().map(tree).collect::<Vec<_>>().into(),
        Kind::String => node.as_str().unwrap().into_owned().into(),
        _ => serde_json::from_str(node.raw().get()).unwrap(),
    }
}

/// Reads a log in one of the dialects of a family, at once and in two pieces. The first byte says in
/// which dialect, the second where it is cut.
pub fn agent(family: &str, bytes: &[u8]) {
    let family = quipu_agents::family(family).expect("a family that there is");
    let [dialect, cut, log @ ..] = bytes else {
        return;
    };
    let dialects = family.dialects();
    let Some(dialect) = dialects.get(usize::from(*dialect) % dialects.len().max(1)) else {
        return;
    };
    // What is decided from content must not fail either.
    quipu_agents::identify(log, true);
    let whole = read(family, dialect, log, None);
    let pieces = read(
        family,
        dialect,
        log,
        Some(log.len() * usize::from(*cut) / 256),
    );
    assert_eq!(whole, pieces, "{}", dialect.name);
}

type Read = (Vec<quipu_model::Event>, quipu_agents::Session, u64);

fn read(family: &dyn Family, dialect: &Dialect, log: &[u8], cut: Option<usize>) -> Read {
    let limits = quipu_agents::Limits {
        line: 16 * 1024,
        document: 64 * 1024,
        depth: 32,
    };
    let origin = Origin {
        path: std::path::Path::new("log"),
        part: None,
    };
    let open = |state: Option<&[u8]>| family.open(dialect, &origin, state).expect("a reader");
    let mut feed = Feed::new(dialect.framing, open(None)).limits(limits);
    let mut events = Collect::default();
    let mut from = 0;
    if let Some(cut) = cut {
        feed.push(&log[..cut], &mut events);
        from = cut;
        if let Some(checkpoint) = feed.checkpoint() {
            let checkpoint = Checkpoint::from_bytes(&checkpoint.to_bytes()).expect("reads back");
            from = usize::try_from(checkpoint.offset).expect("a place in the log");
            let reader = open(Some(checkpoint.reader_state()));
            feed = Feed::resume(checkpoint, reader).limits(limits);
        }
    }
    feed.push(&log[from..], &mut events);
    drop(feed.finish(&mut events));
    let ledger = feed.ledger();
    let dropped: u64 = ledger.dropped.values().sum();
    assert_eq!(ledger.records, ledger.mapped + ledger.noted + dropped);
    for event in &events.events {
        let mut line = Vec::new();
        quipu_exchange::encode_log(event, &mut line);
        assert_eq!(line.iter().filter(|&&b| b == b'\n').count(), 1);
    }
    let records = ledger.records;
    (events.events, feed.session().clone(), records)
}
