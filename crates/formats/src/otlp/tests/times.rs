//! When spans begin and end.

use quipu_model::{Body, Note, NoteKind, Notes, Place, Timestamp};
use serde_json::Value;

use super::{Session, assistant, block, call, named, result, spans, user};
use crate::otlp::OtlpOptions;

fn undated() -> Notes {
    let mut notes = Notes::default();
    notes.flags.undated = true;
    notes
}

fn snapshot() -> Body {
    Body::Note(Note {
        kind: NoteKind::UnknownRecord,
        text: None,
        raw: None,
    })
}

fn of(id: &str) -> Notes {
    Notes {
        subagent_id: Some(id.into()),
        ..Notes::default()
    }
}

fn time(span: &Value, which: &str) -> u64 {
    span[which].as_str().unwrap().parse().unwrap()
}

/// Whether each span is over before the one it is a part of.
pub(super) fn assert_nested(spans: &[Value]) {
    for span in spans {
        let outer = spans.iter().find(|it| it["spanId"] == span["parentSpanId"]);
        if let Some(outer) = outer {
            let (inner, end) = (
                time(span, "endTimeUnixNano"),
                time(outer, "endTimeUnixNano"),
            );
            assert!(inner <= end, "{span:#}\nends after\n{outer:#}");
        }
    }
}

#[test]
fn what_has_no_time_before_all_that_has_one_is_at_the_beginning() {
    let mut session = Session::new();
    session.add_at(Timestamp::UNIX_EPOCH, Place::run(), snapshot(), undated());
    session.user("hello");
    session.add_at(Timestamp::UNIX_EPOCH, Place::run(), user("and"), undated());
    session.add(assistant(vec![block("yes")]), Notes::default());
    let (out, loss) = session.write(&OtlpOptions::default());
    let spans = spans(&out);
    let root = spans.last().unwrap();
    assert_eq!(root["startTimeUnixNano"], "1780906483000000000");
    assert_eq!(root["endTimeUnixNano"], "1780906484000000000");
    assert_eq!(root["events"][0]["timeUnixNano"], "1780906483000000000");
    assert!(!String::from_utf8_lossy(&out).contains("Nano\":\"0\""));
    let count = |what: &str| loss.inferred[what].count;
    assert_eq!(count("time, that of the session's beginning"), 1);
    assert_eq!(count("time, that of the event before"), 1);
}

#[test]
fn a_session_without_any_time_says_so() {
    let mut session = Session::new();
    session.add_at(Timestamp::UNIX_EPOCH, Place::run(), user("x"), undated());
    let (_, loss) = session.write(&OtlpOptions::default());
    assert_eq!(loss.inferred["time, of which nothing is told"].count, 1);
}

#[test]
fn a_sub_agent_lasts_as_long_as_its_tools() {
    let mut session = Session::new();
    session.add(call("t1", "Bash", "{}"), of("x"));
    session.user("meanwhile");
    // The result does not say whose it is.
    session.add(result("t1", "Bash", Some("1"), None), Notes::default());
    session.add(call("t2", "Bash", "{}"), of("x"));
    session.user("and no result");
    let spans = session.spans(&OtlpOptions::default());
    assert_nested(&spans);
    let agent = named(&spans, "invoke_agent x");
    assert_eq!(
        named(&spans, "execute_tool Bash")["parentSpanId"],
        agent["spanId"]
    );
}

#[test]
fn a_sub_agent_that_goes_on_after_its_call_is_beside_it() {
    let mut session = Session::new();
    session.add(call("t1", "Task", "{}"), Notes::default());
    session.add(user("look around"), of("t1"));
    session.add(
        result("t1", "Task", Some("\"begun\""), None),
        Notes::default(),
    );
    session.add(assistant(vec![block("done")]), of("t1"));
    let spans = session.spans(&OtlpOptions::default());
    assert_nested(&spans);
    let (agent, root) = (named(&spans, "invoke_agent t1"), spans.last().unwrap());
    assert_eq!(agent["parentSpanId"], root["spanId"]);
    let task = named(&spans, "execute_tool Task");
    assert_eq!(task["endTimeUnixNano"], "1780906485000000000", "as it was");
}
