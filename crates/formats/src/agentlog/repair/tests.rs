use super::*;
use crate::agentlog::verify::tests::{Trace, id_of};
use crate::agentlog::verify::{self, verify};

const META: &str = r#"{"sdk":{"name":"a","version":"b"}}"#;
const REQUEST: &str = r#"{"model":"m","messages":[],"params":{}}"#;
const RESPONSE: &str = r#"{"model":"m","content":[{"type":"tool_use","id":"t1","name":"ls","input":{}}],"stop_reason":"tool_use","usage":{},"latency_ms":5}"#;
const CHUNK: &str = r#"{"chunk_index":0,"time_unix_nano":5,"delta":{}}"#;
const CALL: &str = r#"{"tool_name":"ls","tool_call_id":"t1","arguments":{}}"#;
const RESULT: &str = r#"{"tool_call_id":"t1","output":"x","is_error":false,"latency_ms":1}"#;

fn mend(text: &str, options: &RepairOptions) -> (String, Report) {
    let mut out = Vec::new();
    let report = repair(text.as_bytes(), &mut out, options).unwrap();
    (String::from_utf8(out).unwrap(), report)
}

fn rules(text: &str) -> Vec<&'static str> {
    let report = verify(text.as_bytes(), &verify::VerifyOptions::default()).unwrap();
    report.counts.keys().map(|rule| rule.name()).collect()
}

fn whole() -> Trace {
    Trace::new()
        .add("chat_request", REQUEST)
        .add("chunk", CHUNK)
        .add_to(1, "chat_response", RESPONSE)
        .add("tool_call", CALL)
        .add("tool_result", RESULT)
        .add("metadata", META)
}

#[test]
fn what_is_right_stays_as_it_is() {
    let text = format!("\u{feff}{}\n \t\n", whole().text.replace('\n', "\r\n"));
    let (mended, report) = mend(&text, &RepairOptions::ALL);
    assert!(mended == text);
    assert_eq!((report.records, report.changes.len()), (7, 0));
}

#[test]
fn ids_are_made_again_and_all_that_names_them_follows() {
    let text = whole().text;
    let root = id_of(r#"{"sdk":{"name":"quipu","version":"0.1.0"}}"#);
    // Written with ids of its own, as some do, in a form of its own.
    let mut own = text
        .replace("\"kind\" :", "\"kind\":")
        .replace("\"ts\":", "\"x\":  [1, 2],  \"ts\" : ");
    for (n, id) in [root.clone(), id_of(REQUEST), id_of(CALL)]
        .iter()
        .enumerate()
    {
        own = own.replace(id.as_str(), &format!("record-{n}"));
    }
    let (mended, report) = mend(
        &own,
        &RepairOptions {
            relink: false,
            ..RepairOptions::ALL
        },
    );
    assert_eq!(
        mended,
        text.replace("\"ts\":", "\"x\":  [1, 2],  \"ts\" : ")
    );
    assert_eq!(rules(&mended), ["extra-field"]);
    assert_eq!(report.counts[&Sort::Rehashed], 3);
    assert_eq!(report.counts[&Sort::Followed], 4);
    assert_eq!(
        report.changes[0],
        Change {
            line: 1,
            sort: Sort::Rehashed,
            field: "id",
            from: Some("\"record-0\"".to_owned()),
            to: Some(format!("\"{root}\"")),
        }
    );
}

#[test]
fn payloads_that_name_records_are_hashed_with_the_new_names() {
    let summary = |id: &str| {
        format!(
            r#"{{"backend_id":"x", "baseline_trace_id" :"{id}","input_count":0,"output_count":0,"error_count":0,"duration_ms":0}}"#
        )
    };
    let trace = Trace::new().but("0.1.0", "0.2.0");
    let old = id_of(r#"{"sdk":{"name":"quipu","version":"0.1.0"}}"#);
    let new = id_of(r#"{"sdk":{"name":"quipu","version":"0.2.0"}}"#);
    let text = trace.add("replay_summary", &summary(&old)).text;
    let (mended, report) = mend(&text, &RepairOptions::ALL);
    assert!(rules(&mended).is_empty(), "{mended}");
    assert!(mended.contains(&summary(&new)) && mended.contains(&id_of(&summary(&new))));
    assert_eq!(report.counts[&Sort::Referred], 1);
}

#[test]
fn the_nearest_record_before_is_followed() {
    // Two records with one false id: each child belongs to the one before it.
    let fake = format!("sha256:{}", "3".repeat(64));
    let other = META.replace('b', "c");
    let text = Trace::new()
        .add("metadata", META)
        .but(&id_of(META), &fake)
        .under("chat_request", REQUEST, &format!("\"{fake}\""))
        .add("metadata", &other)
        .but(&id_of(&other), &fake)
        .under("chat_request", REQUEST, &format!("\"{fake}\""))
        .text;
    let (mended, _) = mend(
        &text,
        &RepairOptions {
            relink: false,
            ..RepairOptions::ALL
        },
    );
    assert_eq!(rules(&mended), Vec::<&str>::new());
    let parents: Vec<_> = mended
        .lines()
        .filter(|line| line.contains("chat_request"))
        .collect();
    assert!(parents[0].contains(&id_of(META)) && parents[1].contains(&id_of(&other)));
}

#[test]
fn parents_are_hung_where_they_belong() {
    let fake = format!("\"sha256:{}\"", "3".repeat(64));
    let forward = format!("\"{}\"", id_of(META));
    let text = Trace::default()
        .under("metadata", META, &fake)
        .under("chat_request", REQUEST, "null")
        .add("chunk", CHUNK)
        .add("chunk", &CHUNK.replace('0', "1"))
        .under("chat_response", RESPONSE, &forward.replace("sha", "SHA"))
        .add("tool_call", CALL)
        .add_to(4, "tool_result", RESULT)
        .under("metadata", META, "null")
        .text
        .replacen("\"parent\":null,", "", 1);
    let (mended, report) = mend(
        &text,
        &RepairOptions {
            rehash: false,
            ..RepairOptions::ALL
        },
    );
    assert_eq!(rules(&mended), Vec::<&str>::new(), "{mended}");
    assert_eq!(report.counts[&Sort::Relinked], 6);
    assert!(
        mended
            .lines()
            .nth(1)
            .unwrap()
            .starts_with("{\"parent\":\"sha256:")
    );
    let again = mend(&mended, &RepairOptions::ALL);
    assert_eq!(again.0, mended);
}

#[test]
fn a_torn_end_is_left_out_only_when_asked() {
    let text = whole().text;
    let torn = format!("{text}{{\"version\":\"0.1\",\"id\":\"sha");
    let refused = repair(
        torn.as_bytes(),
        Vec::new(),
        &RepairOptions {
            drop_torn: false,
            ..RepairOptions::ALL
        },
    );
    assert!(matches!(
        refused,
        Err(RepairError::Line {
            line: 8,
            fault: Fault::Torn
        })
    ));
    let (mended, report) = mend(&torn, &RepairOptions::ALL);
    assert_eq!(mended, text);
    assert_eq!(report.counts[&Sort::Dropped], 1);
}

#[test]
fn what_is_no_record_is_refused() {
    let text = format!("{}oops\n{}", Trace::new().text, Trace::new().text);
    let refused = repair(text.as_bytes(), Vec::new(), &RepairOptions::ALL).unwrap_err();
    assert!(
        refused.to_string().starts_with("line 2: not JSON"),
        "{refused}"
    );
    let limits = Limits {
        max_total_bytes: 20,
        ..LIMITS
    };
    let refused = repair(
        text.as_bytes(),
        Vec::new(),
        &RepairOptions {
            limits,
            ..RepairOptions::ALL
        },
    );
    assert!(matches!(refused, Err(RepairError::TooLarge(20))));
}

#[test]
fn what_has_no_id_keeps_the_one_it_has() {
    let text = Trace::new()
        .but("{\"sdk\"", "{\"a\":1,\"a\":2,\"sdk\"")
        .text;
    let (mended, report) = mend(&text, &RepairOptions::ALL);
    assert_eq!(mended, text);
    assert!(report.changes.is_empty());
}

#[test]
fn parents_that_name_the_new_id_already_stay() {
    // The response has a wrong id; one of its children names it by that, the other by the right one.
    let fake = format!("sha256:{}", "3".repeat(64));
    let event = r#"{"category":"retry","name":"n","severity":"info"}"#;
    let right = format!("\"{}\"", id_of(RESPONSE));
    let text = Trace::new()
        .add("chat_request", REQUEST)
        .add("chat_response", RESPONSE)
        .but(&id_of(RESPONSE), &fake)
        .under("harness_event", event, &format!("\"{fake}\""))
        .under("tool_call", CALL, &right)
        .text;
    let (mended, report) = mend(&text, &RepairOptions::ALL);
    assert_eq!(mended, text.replace(&fake, &id_of(RESPONSE)));
    assert_eq!(rules(&mended), Vec::<&str>::new());
    assert_eq!(report.counts.get(&Sort::Relinked), None);
}

#[test]
fn a_last_line_that_is_whole_is_not_left_out() {
    let deep = format!("{{\"x\":{}{}}}", "[".repeat(1100), "]".repeat(1100));
    for last in [deep.as_str(), "[1,2]", r#"{"id":"x","id":"y"}"#] {
        let text = Trace::new().text + last;
        let error = repair(text.as_bytes(), std::io::sink(), &RepairOptions::ALL).unwrap_err();
        assert!(
            matches!(error, RepairError::Line { line: 2, .. }),
            "{error}"
        );
    }
}
