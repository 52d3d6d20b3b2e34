//! Sessions as tables.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use ::parquet::file::reader::{FileReader as _, SerializedFileReader};
use ::parquet::record::Field as Cell;
use proptest::prelude::*;
use quipu_model::{Body, Content, Event, Header, Money, Notes, Place, Status, Timestamp, Usage};

use super::{ParquetOptions, Tables};
use crate::arbitrary;
use crate::loss::Loss;
use crate::otlp::tests::golden::compare;
use crate::otlp::tests::{Session, assistant, block, call, golden, of_call, result};

type Row = BTreeMap<String, Cell>;
type Sessions<'a> = [(&'a Header, &'a [Event])];

fn write(sessions: &Sessions<'_>, options: &ParquetOptions) -> (Vec<u8>, Vec<u8>, Vec<Loss>) {
    let mut tables = Tables::new(Vec::new(), Vec::new(), options).unwrap();
    let mut losses = Vec::new();
    for (header, events) in sessions {
        tables.begin(header);
        for event in *events {
            tables.event(event).unwrap();
        }
        losses.push(tables.end().unwrap());
    }
    let (events, calls) = tables.close().unwrap();
    (events, calls, losses)
}

fn reader(file: &[u8]) -> SerializedFileReader<bytes::Bytes> {
    SerializedFileReader::new(bytes::Bytes::copy_from_slice(file)).unwrap()
}

fn rows(file: &[u8]) -> Vec<Row> {
    let reader = reader(file);
    let rows = reader.get_row_iter(None).unwrap().map(|row| {
        let row = row.unwrap();
        row.get_column_iter()
            .map(|(name, cell)| (name.clone(), cell.clone()))
            .collect()
    });
    rows.collect()
}

fn text(row: &Row, column: &str) -> Option<String> {
    match &row[column] {
        Cell::Null => None,
        Cell::Str(text) => Some(text.clone()),
        other => panic!("{column} is {other:?}"),
    }
}

fn count(row: &Row, column: &str) -> Option<u64> {
    match &row[column] {
        Cell::Null => None,
        Cell::ULong(count) => Some(*count),
        other => panic!("{column} is {other:?}"),
    }
}

fn money(row: &Row, column: &str) -> Option<Money> {
    match &row[column] {
        Cell::Null => None,
        Cell::Decimal(sum) => {
            assert_eq!((sum.precision(), sum.scale()), (38, 18));
            let bytes: [u8; 16] = sum.data().try_into().unwrap();
            Some(Money::from_atto(i128::from_be_bytes(bytes)))
        }
        other => panic!("{column} is {other:?}"),
    }
}

/// The cells of an event that have to say what the event says.
fn check(row: &Row, header: &Header, event: &Event) {
    let notes = &event.annotations;
    assert_eq!(count(row, "seq"), Some(event.seq));
    if !notes.flags.undated {
        let at = Cell::TimestampMicros(event.timestamp.as_microsecond());
        assert_eq!(row["timestamp"], at);
    }
    assert_eq!(text(row, "run_id").unwrap(), event.run_id.as_str());
    assert_eq!(text(row, "type").unwrap(), event.body.type_word());
    assert_eq!(text(row, "path").unwrap(), event.place.path);
    assert_eq!(count(row, "iteration"), Some(event.place.iteration()));
    for (column, told) in [
        ("native_id", notes.native_id.as_deref()),
        ("parent_id", notes.parent_id.as_deref()),
        ("subagent_id", notes.subagent_id.as_deref()),
        ("model", notes.model.as_deref()),
        ("model_call", notes.model_call.as_deref()),
        ("title", header.title.as_deref()),
        ("cwd", header.environment.cwd.as_deref()),
        ("shell", header.environment.shell.as_deref()),
    ] {
        assert_eq!(text(row, column).as_deref(), told, "{column}");
    }
    assert_eq!(text(row, "agent").as_deref(), header.agent());
    assert_eq!(money(row, "cost_usd"), notes.cost);
    let usage = Usage {
        input: count(row, "input_tokens"),
        cache_read: count(row, "cache_read_tokens"),
        cache_write: count(row, "cache_write_tokens"),
        cache_write_1h: count(row, "cache_write_1h_tokens"),
        output: count(row, "output_tokens"),
        reasoning: count(row, "reasoning_tokens"),
    };
    assert_eq!(usage, notes.usage.unwrap_or_default());
    assert_eq!(count(row, "duration_ms"), notes.duration_ms);
    assert_eq!(row["is_superseded"], Cell::Bool(notes.flags.superseded));
    assert_eq!(row["is_dangling"], Cell::Bool(notes.flags.dangling));
    check_body(row, &event.body);
}

fn check_body(row: &Row, body: &Body) {
    match body {
        Body::UserMessage(blocks)
        | Body::AssistantMessage(blocks)
        | Body::SystemMessage(blocks) => match &blocks[..] {
            [one] if matches!(one.content, Content::Text(_)) => {
                let Content::Text(said) = &one.content else {
                    return;
                };
                assert_eq!(text(row, "text").as_ref(), Some(said));
                assert_eq!(row["blocks"], Cell::Null);
            }
            [one] if matches!(one.content, Content::Thinking(_)) => {}
            blocks => {
                let all = text(row, "blocks").unwrap();
                let all = quipu_model::Json::parse(&all).unwrap();
                assert!(all.get().starts_with('['), "{blocks:?}");
            }
        },
        Body::ToolResult(result) => {
            assert_eq!(
                text(row, "call_id").as_deref(),
                Some(result.call_id.as_str())
            );
            let input = result.input.as_ref().map(|it| it.get().to_owned());
            assert_eq!(text(row, "tool_input"), input);
            assert_eq!(text(row, "error"), result.error);
            let output = text(row, "tool_output");
            match &result.output {
                None => assert_eq!(output, None),
                Some(json) if json.get().starts_with('"') => {
                    assert_eq!(row["tool_output_is_json"], Cell::Bool(false));
                    if let Some(said) = json.as_str() {
                        assert_eq!(output.as_deref(), Some(&*said));
                    }
                }
                Some(json) => {
                    assert_eq!(row["tool_output_is_json"], Cell::Bool(true));
                    assert_eq!(output.as_deref(), Some(json.get()));
                }
            }
        }
        Body::Note(note) => {
            assert_eq!(text(row, "text"), note.text);
            let raw = note.raw.as_ref().map(|it| it.get().to_owned());
            assert_eq!(text(row, "raw"), raw);
        }
        _ => {}
    }
}

proptest! {
    #[test]
    fn rows_say_what_events_say(
        sessions in proptest::collection::vec(arbitrary::session(), 0..3),
        row_group_rows in 1_usize..8,
    ) {
        let options = ParquetOptions { row_group_rows, ..ParquetOptions::default() };
        let given: Vec<_> = sessions.iter().map(|(header, events)| (header, &events[..])).collect();
        let (events, calls, losses) = write(&given, &options);
        let again = write(&given, &options);
        prop_assert_eq!((&events, &calls), (&again.0, &again.1));
        let mut read = rows(&events).into_iter();
        for ((header, events), loss) in given.iter().zip(&losses) {
            prop_assert_eq!(loss.events, events.len() as u64);
            for event in *events {
                check(&read.next().unwrap(), header, event);
            }
        }
        prop_assert!(read.next().is_none());
        // Every call and every result is in just one row.
        let calls = rows(&calls);
        let is_call = |event: &&Event| matches!(event.body, Body::ToolCall(_));
        let is_result = |event: &&Event| matches!(event.body, Body::ToolResult(_));
        let all = || given.iter().flat_map(|(_, events)| events.iter());
        let has = |column: &str| calls.iter().filter(|row| count(row, column).is_some()).count();
        prop_assert_eq!(has("call_seq"), all().filter(is_call).count());
        prop_assert_eq!(has("result_seq"), all().filter(is_result).count());
        prop_assert!(calls.iter().all(|row| count(row, "call_seq").or(count(row, "result_seq")).is_some()));
    }
}

#[test]
fn what_has_no_time_is_not_said_to_be_of_1970() {
    let mut undated = Notes::default();
    undated.flags.undated = true;
    let mut session = Session::new();
    let at = Timestamp::UNIX_EPOCH;
    let said = || assistant(vec![block("x")]);
    session.add_at(at, Place::run(), said(), undated.clone());
    session.user("hello");
    session.add_at(at, Place::run(), said(), undated);
    let (events, _, losses) = write(
        &[(&session.header, &session.events)],
        &ParquetOptions::default(),
    );
    let times: Vec<Cell> = rows(&events)
        .iter()
        .map(|row| row["timestamp"].clone())
        .collect();
    let told = Cell::TimestampMicros(session.events[1].timestamp.as_microsecond());
    assert_eq!(times, [Cell::Null, told.clone(), told]);
    assert!(losses[0].is_complete());
}

#[test]
fn calls_are_joined_with_their_results() {
    let mut session = Session::new();
    let of = of_call("claude-opus-4-5", "msg_1");
    session.add(call("a", "Bash", r#"{"command":"ls"}"#), of);
    session.add(call("b", "Read", "{}"), Notes::default());
    session.add(result("a", "", Some("\"a\\nb\""), None), Notes::default());
    let denied = Notes {
        status: Some(Status::Denied),
        ..Notes::default()
    };
    session.add(result("x", "Edit", None, Some("no")), denied);
    let (_, calls, losses) = write(
        &[(&session.header, &session.events)],
        &ParquetOptions::default(),
    );
    let rows = rows(&calls);
    assert_eq!(rows.len(), 3);
    let first = &rows[0];
    assert_eq!(text(first, "tool").as_deref(), Some("Bash"));
    assert_eq!(text(first, "output").as_deref(), Some("a\nb"));
    assert_eq!(text(first, "status").as_deref(), Some("ok"));
    assert_eq!(text(first, "model").as_deref(), Some("claude-opus-4-5"));
    assert_eq!(count(first, "duration_ms"), Some(2_000));
    assert_eq!(
        (count(first, "call_seq"), count(first, "result_seq")),
        (Some(1), Some(3))
    );
    let alone = &rows[1];
    assert_eq!(text(alone, "status").as_deref(), Some("denied"));
    assert_eq!(count(alone, "call_seq"), None);
    let waiting = &rows[2];
    assert_eq!(text(waiting, "tool").as_deref(), Some("Read"));
    assert_eq!(text(waiting, "status"), None);
    assert_eq!(
        losses[0].inferred["calls of which only the result is there"].count,
        1
    );
}

#[test]
fn row_groups_are_bounded_by_bytes() {
    let mut session = Session::new();
    for _ in 0..100 {
        session.user(&"x".repeat(1_000));
    }
    let options = ParquetOptions {
        row_group_bytes: 20_000,
        ..ParquetOptions::default()
    };
    let (events, ..) = write(&[(&session.header, &session.events)], &options);
    let groups = reader(&events).metadata().num_row_groups();
    assert!((5..=10).contains(&groups), "{groups}");
}

#[test]
fn a_sum_with_too_many_digits_is_counted_and_not_changed() {
    let mut session = Session::new();
    for atto in [10_i128.pow(38) - 1, -(10_i128.pow(38)), i128::MIN] {
        let notes = Notes {
            cost: Some(Money::from_atto(atto)),
            ..Notes::default()
        };
        session.add(assistant(vec![block("x")]), notes);
    }
    let (events, _, losses) = write(
        &[(&session.header, &session.events)],
        &ParquetOptions::default(),
    );
    let rows = rows(&events);
    assert_eq!(
        money(&rows[0], "cost_usd"),
        Some(Money::from_atto(10_i128.pow(38) - 1))
    );
    assert_eq!(money(&rows[1], "cost_usd"), None);
    assert_eq!(losses[0].dropped["cost of more than 38 digits"].count, 2);
}

#[test]
fn a_session_without_events_is_lost_and_said_to_be() {
    let session = Session::new();
    let (events, _, losses) = write(&[(&session.header, &[])], &ParquetOptions::default());
    assert_eq!(rows(&events).len(), 0);
    assert!(losses[0].dropped.contains_key("source.agent"));
}

/// What the rows say, not the bytes: those change with every version of the compression.
fn dump(file: &[u8]) -> String {
    let reader = reader(file);
    let mut out = String::new();
    for column in reader.metadata().file_metadata().schema_descr().columns() {
        let logical = column.logical_type_ref();
        writeln!(
            out,
            "{} {} {logical:?}",
            column.name(),
            column.physical_type()
        )
        .unwrap();
    }
    for row in rows(file) {
        out.push('\n');
        for (name, cell) in row {
            if !matches!(cell, Cell::Null | Cell::Bool(false)) {
                writeln!(out, "{name}: {cell}").unwrap();
            }
        }
    }
    out
}

#[test]
fn golden() {
    let session = golden::session();
    let (events, calls, _) = write(
        &[(&session.header, &session.events)],
        &ParquetOptions::default(),
    );
    compare("parquet/tests/golden/events.txt", dump(&events).as_bytes());
    compare("parquet/tests/golden/calls.txt", dump(&calls).as_bytes());
}
