//! What the index is asked.

use quipu_formats::agentlog::Kind;

use super::kit::{START, records_of, root, trace};
use crate::traces::{Checks, Filter, TraceRow, Traces};

const REQUEST: &str = r#"{"model":"m-1","messages":[],"params":{}}"#;
const RESPONSE: &str = r#"{"model":"m-2","content":[{"type":"tool_use","id":"t","name":"bash","input":{}}],
    "stop_reason":"tool_use","usage":{},"latency_ms":1}"#;
const CALL: &str = r#"{"tool_name":"bash","tool_call_id":"t","arguments":{}}"#;
const OTHER_CALL: &str = r#"{"tool_name":"grep","tool_call_id":"u","arguments":{}}"#;

/// A plain trace, one with models and tools, and a replay of the first.
fn filled(traces: &Traces) -> [String; 3] {
    let mut ids = Vec::new();
    let mut put = |text: String| {
        let kept = traces.put(text.as_bytes(), &Checks::default()).unwrap();
        ids.push(kept.name.root.to_string());
        kept.name.root.to_string()
    };
    let plain = put(trace(&root("dev"), &[]));
    put(records_of(
        &root("prod"),
        Some(r#"{"session_tag":"first","trace_id":"0af7651916cd43dd8448eb211c80319c"}"#),
        &[
            (Kind::ChatRequest, REQUEST),
            (Kind::ChatResponse, RESPONSE),
            (Kind::ToolCall, CALL),
            (Kind::ToolCall, OTHER_CALL),
            (Kind::Metadata, r#"{"sdk":{"name":"quipu","version":"2"}}"#),
        ],
    ));
    let summary = format!(
        r#"{{"baseline_trace_id":"{plain}","backend_id":"mock","input_count":0,
            "output_count":0,"error_count":0,"duration_ms":5}}"#
    );
    put(records_of(
        &format!(r#"{{"sdk":{{"name":"quipu","version":"0"}},"baseline_of":"{plain}"}}"#),
        None,
        &[(Kind::ReplaySummary, &summary)],
    ));
    ids.try_into().unwrap()
}

fn ids(rows: &[TraceRow]) -> Vec<&str> {
    rows.iter().map(|row| row.id.as_str()).collect()
}

#[test]
fn by_everything_and_together() {
    let home = tempfile::tempdir().unwrap();
    let traces = Traces::open(home.path()).unwrap();
    let [plain, busy, replay] = filled(&traces);
    let list = |filter: Filter| traces.list(&filter).unwrap();
    let some = |text: &str| vec![text.to_owned()];
    let at =
        |seconds: i64| START.parse::<jiff::Timestamp>().unwrap().as_millisecond() + seconds * 1000;
    let tag = |value: Option<&str>| Filter {
        tags: vec![("env".to_owned(), value.map(str::to_owned))],
        ..Filter::default()
    };
    assert_eq!(list(tag(None)).len(), 2);
    assert_eq!(ids(&list(tag(Some("dev")))), [&plain]);
    assert!(list(tag(Some("de_"))).is_empty());
    let one = [
        Filter {
            session_tags: some("first"),
            ..Filter::default()
        },
        Filter {
            kinds: some("tool_call"),
            ..Filter::default()
        },
        Filter {
            models: some("m-1"),
            tools: some("grep"),
            ..Filter::default()
        },
        Filter {
            since: Some(at(3)),
            ..Filter::default()
        },
        Filter {
            models: vec!["m-1".to_owned(), "m-2".to_owned()],
            ..tag(Some("prod"))
        },
    ];
    for filter in one {
        assert_eq!(ids(&list(filter.clone())), [&busy], "{filter:?}");
    }
    assert_eq!(
        list(Filter {
            until: Some(at(0)),
            ..Filter::default()
        })
        .len(),
        0
    );
    assert_eq!(
        list(Filter {
            until: Some(at(1)),
            ..Filter::default()
        })
        .len(),
        3
    );
    assert_eq!(
        list(Filter {
            models: some("m-1"),
            ..tag(Some("dev"))
        })
        .len(),
        0
    );
    assert_eq!(ids(&traces.replays_of(&plain).unwrap()), [&replay]);
    assert_eq!(traces.recent(2).unwrap().len(), 2);

    let row = traces.find(&busy).unwrap();
    assert_eq!(row.session_tags, ["first"]);
    assert_eq!(row.trace_ids, ["0af7651916cd43dd8448eb211c80319c"]);
    assert_eq!(
        (row.tools["bash"], row.tools["grep"], row.models["m-2"]),
        (1, 1, 1)
    );
    assert_eq!((row.kinds["metadata"], row.records), (2, 6));
    assert_eq!((row.first_ts, row.last_ts), (Some(at(0)), Some(at(5))));
    assert_eq!(traces.find(&replay[..20]).unwrap().replay_of, [plain]);
}

#[test]
fn the_tables_of_the_specification_are_filled() {
    let home = tempfile::tempdir().unwrap();
    let [plain, busy, _] = filled(&Traces::open(home.path()).unwrap());
    let path = home.path().join("traces/index.sqlite");
    let database = rusqlite::Connection::open(path).unwrap();
    let text = |sql: &str| {
        database
            .query_row(sql, [], |row| row.get::<_, String>(0))
            .unwrap()
    };
    assert_eq!(text("pragma journal_mode"), "wal");
    assert_eq!(
        text("select id from traces where session_tag = 'first'"),
        busy
    );
    assert_eq!(
        text("select trace_id from tags where key = 'env' and value = 'dev'"),
        plain
    );
    assert_eq!(text("select baseline_trace_id from replays"), plain);
    assert!(text("select outcome_record_id from replays").starts_with("sha256:"));
    let names = |table: &str| {
        let mut select = database
            .prepare(&format!("pragma table_info({table})"))
            .unwrap();
        let names = select.query_map([], |row| row.get::<_, String>(1)).unwrap();
        names.collect::<Result<Vec<_>, _>>().unwrap().join(" ")
    };
    assert_eq!(names("traces"), "id created_at session_tag root_record_id");
    assert_eq!(names("tags"), "trace_id key value");
    assert_eq!(
        names("replays"),
        "id baseline_trace_id config_hash outcome_record_id created_at"
    );
}

#[test]
fn the_index_is_made_again_whatever_became_of_it() {
    let home = tempfile::tempdir().unwrap();
    let (plain, before) = {
        let traces = Traces::open(home.path()).unwrap();
        let [plain, ..] = filled(&traces);
        (plain, traces.recent(9).unwrap())
    };
    let index = home.path().join("traces/index.sqlite");
    let damages: [&dyn Fn(); 4] = [
        &|| std::fs::remove_file(&index).unwrap(),
        &|| drop(std::fs::File::create(&index).map(|file| file.set_len(5000))),
        &|| {
            let file = std::fs::OpenOptions::new()
                .write(true)
                .open(&index)
                .unwrap();
            std::os::unix::fs::FileExt::write_all_at(&file, &[7; 9000], 4096).unwrap();
        },
        &|| {
            let database = rusqlite::Connection::open(&index).unwrap();
            database
                .execute_batch("update quipu_index set version = 99; delete from traces")
                .unwrap();
        },
    ];
    for (n, damage) in damages.iter().enumerate() {
        damage();
        let traces = Traces::open(home.path()).unwrap();
        assert_eq!(traces.recent(9).unwrap(), before, "{n}");
        assert_eq!(traces.replays_of(&plain).unwrap().len(), 1, "{n}");
    }
    let strays = std::fs::read_dir(home.path().join("traces")).unwrap();
    let strays = strays.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    assert_eq!(strays.filter(|name| name.contains("damaged")).count(), 0);
}

#[test]
fn files_that_come_and_go_behind_its_back_are_noticed() {
    let home = tempfile::tempdir().unwrap();
    let traces = Traces::open(home.path()).unwrap();
    let [plain, busy, _] = filled(&traces);
    let gone = traces.find(&busy).unwrap();
    std::fs::remove_file(traces.path(&gone)).unwrap();
    let grown = traces.find(&plain).unwrap();
    let longer = trace(&root("dev"), &[r#"{"n":1}"#]);
    let mut file = std::fs::OpenOptions::new()
        .append(true)
        .open(traces.path(&grown))
        .unwrap();
    let rest = &longer.as_bytes()[usize::try_from(grown.size).unwrap()..];
    std::io::Write::write_all(&mut file, rest).unwrap();
    let traces = Traces::open(home.path()).unwrap();
    assert!(traces.find(&busy).is_err());
    assert_eq!(traces.find(&plain).unwrap().records, 2);
    assert_eq!(traces.recent(9).unwrap().len(), 2);
}
