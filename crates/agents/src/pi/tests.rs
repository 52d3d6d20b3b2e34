use insta::assert_snapshot;
use quipu_model::LogBody;

use crate::testkit::{hostile, read};

const SESSION: &str = concat!(
    r#"{"type":"session","version":3,"id":"s1","timestamp":"2026-01-02T03:04:05.000Z","cwd":"/code","parentSession":"/x/2026-01-01T00-00-00-000Z_s0.jsonl"}"#,
    "\n",
    r#"{"type":"model_change","id":"e1","parentId":null,"timestamp":"2026-01-02T03:04:05.100Z","provider":"p","modelId":"m"}"#,
    "\n",
    r#"{"type":"message","id":"e2","parentId":"e1","timestamp":"2026-01-02T03:04:06.000Z","message":{"role":"user","content":[{"type":"text","text":"list"},{"type":"image","data":"aGVsbG8=","mimeType":"image/png"}],"timestamp":1767323046000}}"#,
    "\n",
    r#"{"type":"message","id":"e3","parentId":"e2","timestamp":"2026-01-02T03:04:07.000Z","message":{"role":"assistant","content":[{"type":"thinking","thinking":"","thinkingSignature":"x","redacted":true},{"type":"text","text":"I look"},{"type":"toolCall","id":"c1","name":"bash","arguments":{"command":"ls"}}],"api":"a","provider":"p","model":"m","usage":{"input":10,"output":7,"cacheRead":3,"cacheWrite":2,"reasoning":4,"totalTokens":22,"cost":{"total":0.1}},"stopReason":"toolUse","responseId":"r1"}}"#,
    "\n",
    r#"{"type":"message","id":"e4","parentId":"e3","timestamp":"2026-01-02T03:04:09.000Z","message":{"role":"toolResult","toolCallId":"c1","toolName":"bash","content":[{"type":"text","text":"Command timed out after 2 seconds"}],"isError":true}}"#,
    "\n",
    r#"{"type":"message","id":"e5","parentId":"e2","timestamp":"2026-01-02T03:05:00.000Z","message":{"role":"assistant","content":"no tools","model":"m","usage":{"input":1,"output":1,"cost":{"total":0.2}},"stopReason":"error","errorMessage":"overloaded"}}"#,
    "\n",
    r#"{"type":"message","id":"e6","parentId":"e5","timestamp":"2026-01-02T03:05:01.000Z","message":{"role":"bashExecution","command":"false","output":"","exitCode":1,"cancelled":false,"truncated":false}}"#,
    "\n",
    r#"{"type":"message","id":"e6","parentId":"e5","timestamp":"2026-01-02T03:05:01.000Z","message":{"role":"bashExecution","command":"false","output":"","exitCode":1,"cancelled":false,"truncated":false}}"#,
    "\n",
    r#"{"type":"compaction","id":"e7","parentId":"e6","timestamp":"2026-01-02T03:05:02.000Z","summary":"so far","firstKeptEntryId":"e2","tokensBefore":10,"usage":{"input":5,"output":1}}"#,
    "\n",
    r#"{"type":"custom_message","id":"e8","parentId":"e7","timestamp":"2026-01-02T03:05:03.000Z","customType":"x","content":"mind the gap","display":false}"#,
    "\n",
    r#"{"type":"session_info","id":"e9","parentId":"e8","timestamp":"2026-01-02T03:05:04.000Z","name":"Listing"}"#,
    "\n",
    r#"{"type":"sparkle","id":"e10","parentId":"e9","timestamp":"2026-01-02T03:05:05.000Z","glitter":1}"#,
    "\n",
);

#[test]
fn a_session() {
    let read = read(SESSION.as_bytes(), "2026-01-02T03-04-05-000Z_s1.jsonl").unwrap();
    assert_snapshot!(read.lines());
    let usage = read.usage();
    assert_eq!(
        (
            usage.input,
            usage.cache_read,
            usage.cache_write,
            usage.output,
            usage.reasoning
        ),
        (Some(16), Some(3), Some(2), Some(9), Some(4))
    );
    assert_eq!(read.session.vendor_cost.as_deref(), Some("0.3"));
    assert_eq!(read.session.title.as_deref(), Some("Listing"));
    // The first reply and what came of it is no longer on the branch.
    let left: Vec<u64> = read
        .events
        .iter()
        .filter(|event| event.annotations.flags.superseded)
        .map(|event| event.seq)
        .collect();
    assert_eq!(left, [5, 6, 7, 8]);
    assert_eq!(read.blobs, 1);
}

const OMP: &str = concat!(
    r#"{"type":"title","v":1,"title":"Look","updatedAt":"2026-01-02T03:04:05.000Z","pad":"   "}"#,
    "\n",
    r#"{"type":"session","version":3,"id":"child","timestamp":"2026-01-02T03:04:05.000Z","cwd":"/code"}"#,
    "\n",
    r#"{"type":"session_init","id":"a","parentId":null,"timestamp":"2026-01-02T03:04:05.000Z","systemPrompt":["be brief","be kind"],"task":"look","tools":["grep"],"agent":"scout"}"#,
    "\n",
    r#"{"type":"message","id":"b","parentId":"a","timestamp":"2026-01-02T03:04:06.000Z","message":{"role":"user","content":"look","attribution":"agent"}}"#,
    "\n",
    r#"{"type":"message","id":"c","parentId":"b","timestamp":"2026-01-02T03:04:06.000Z","message":{"role":"developer","content":"a note"}}"#,
    "\n",
    r#"{"type":"custom","customType":"tool_execution_start","data":{"toolCallId":"t"},"id":"d","parentId":"c","timestamp":"2026-01-02T03:04:07.000Z"}"#,
    "\n",
    r#"{"type":"model_usage","id":"e","parentId":"d","timestamp":"2026-01-02T03:04:07.000Z","purpose":"title","api":"a","provider":"p","model":"tiny","usage":{"input":1,"output":2,"cost":{"total":1e-7}},"stopReason":"stop"}"#,
    "\n",
    r#"{"type":"title_change","id":"f","parentId":"e","timestamp":"2026-01-02T03:04:08.000Z","title":"Looked","source":"auto"}"#,
    "\n",
    r#"{"type":"credential_pin","id":"g","parentId":"f","timestamp":"2026-01-02T03:04:08.000Z","provider":"p","hash":"00"}"#,
    "\n",
);

#[test]
fn a_sub_agent_of_oh_my_pi() {
    let path = "--work--/2026-01-02T03-00-00-000Z_parent/0-Scout.jsonl";
    let read = read(OMP.as_bytes(), path).unwrap();
    assert_snapshot!(read.lines());
    assert_eq!(read.dialect.name, "omp");
    assert_eq!(read.session.parent.as_deref(), Some("parent"));
    assert_eq!(read.session.title.as_deref(), Some("Looked"));
    assert_eq!(read.session.vendor_cost.as_deref(), Some("0.0000001"));
}

#[test]
fn the_first_version_had_no_ids() {
    let log = concat!(
        r#"{"type":"session","id":"old","timestamp":"2025-01-02T03:04:05.000Z","cwd":"/w","provider":"p","modelId":"m","thinkingLevel":"off"}"#,
        "\n",
        r#"{"type":"message","timestamp":"2025-01-02T03:04:06.000Z","message":{"role":"user","content":"hi","timestamp":1735787046000}}"#,
        "\n",
        r#"{"type":"message","timestamp":"2025-01-02T03:04:06.000Z","message":{"role":"user","content":"hi","timestamp":1735787046000}}"#,
        "\n",
    );
    let read = read(log.as_bytes(), "old.jsonl").unwrap();
    assert_eq!(
        read.words(),
        ["note.session", "message.user", "message.user"]
    );
    assert!(read.ledger.drift.is_empty(), "{:?}", read.ledger.drift);
}

const STREAM: &str = concat!(
    r#"{"type":"session","version":3,"id":"s2","timestamp":"2026-01-02T03:04:05.000Z","cwd":"/w"}"#,
    "\n",
    r#"{"type":"agent_start"}"#,
    "\n",
    r#"{"type":"message_start","message":{"role":"user","content":[{"type":"text","text":"hi"}],"timestamp":1767323046000}}"#,
    "\n",
    r#"{"type":"message_end","message":{"role":"user","content":[{"type":"text","text":"hi"}],"timestamp":1767323046000}}"#,
    "\n",
    r#"{"type":"message_start","message":{"role":"assistant","content":[],"model":"m","usage":{"input":0,"output":0},"timestamp":1767323047000}}"#,
    "\n",
    r#"{"type":"message_update","message":{"role":"assistant","content":[{"type":"text","text":"he"}],"model":"m","timestamp":1767323047000},"assistantMessageEvent":{"type":"text_delta","delta":"he"}}"#,
    "\n",
    r#"{"type":"message_end","message":{"role":"assistant","content":[{"type":"text","text":"hello"}],"model":"m","usage":{"input":2,"output":1},"stopReason":"stop","timestamp":1767323047000}}"#,
    "\n",
    r#"{"type":"turn_end","message":{"role":"assistant","content":[{"type":"text","text":"hello"}],"usage":{"input":2,"output":1}},"toolResults":[]}"#,
    "\n",
    r#"{"type":"auto_retry_start","attempt":1,"maxAttempts":3,"delayMs":2000,"errorMessage":"busy"}"#,
    "\n",
    r#"{"type":"message_update","message":{"role":"assistant","content":[{"type":"text","text":"and th"}],"model":"m","timestamp":1767323048000},"assistantMessageEvent":{"type":"text_delta","delta":"and th"}}"#,
    "\n",
);

#[test]
fn a_stream() {
    let read = read(STREAM.as_bytes(), "out.jsonl").unwrap();
    assert_eq!(read.dialect.name, "pi-stream");
    assert_eq!(
        read.words(),
        [
            "note.session",
            "note.turn",
            "message.user",
            "message.assistant",
            "note.retry",
            // What had come of a message when the stream ended.
            "message.assistant",
        ]
    );
    assert_eq!(read.usage().total(), 3);
    let LogBody::Exchange(last) = &read.events[5].body else {
        panic!("{:?}", read.events[5]);
    };
    assert!(format!("{last:?}").contains("and th"));
}

#[test]
fn broken_logs() {
    hostile(&super::Pi, super::SESSION, SESSION);
    hostile(&super::Pi, super::OMP, OMP);
    hostile(&super::Pi, super::STREAM, STREAM);
}

/// The totals that the agent writes beside each usage come to what is counted.
#[test]
fn real_totals() {
    let mut seen = 0;
    for folder in ["pi", "omp", "openclaw"] {
        for (name, bytes) in crate::corpus::logs(folder) {
            let read = read(&bytes, &name).unwrap();
            let is_stream = read.dialect.name == "pi-stream";
            let text = String::from_utf8_lossy(&bytes);
            let total: u64 = text
                .lines()
                .filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok())
                .filter(|line| line["type"] == if is_stream { "message_end" } else { "message" })
                .filter_map(|line| line["message"]["usage"]["totalTokens"].as_u64())
                .sum();
            seen += usize::from(total > 0);
            assert_eq!(read.usage().total(), total, "{name}");
        }
    }
    assert!(seen == 0 || seen >= 5, "{seen}");
}

#[test]
fn places_of_the_machine() {
    use crate::{Family as _, Host, Pick};
    let host = Host::new("/home/u", |_| None);
    let places = super::Pi.places(&host);
    let picked = |brand: &str, below: &str| {
        let place = places.iter().find(|place| place.brand == brand).unwrap();
        (place.pick)(below.as_ref())
    };
    assert_eq!(picked("pi", "--w--/2026_a.jsonl"), Pick::Log);
    assert_eq!(picked("pi", "--w--/auth.json"), Pick::Skip);
    assert_eq!(picked("openclaw", "main/sessions/a.jsonl"), Pick::Log);
    assert_eq!(picked("openclaw", "main/agent/a.jsonl"), Pick::Skip);
}

/// `OpenClaw` lets results follow calls, and first entries the session.
#[test]
fn parents_that_are_no_entries() {
    let log = concat!(
        r#"{"type":"session","id":"s","version":3,"timestamp":"2026-01-02T03:04:05Z","cwd":"/w"}"#,
        "\n",
        r#"{"type":"message","id":"m1","parentId":"s","timestamp":"2026-01-02T03:04:06Z","message":{"role":"user","content":"hi"}}"#,
        "\n",
        r#"{"type":"message","id":"m2","parentId":"m1","timestamp":"2026-01-02T03:04:07Z","message":{"role":"assistant","content":[{"type":"toolCall","id":"c","name":"x","arguments":{}}]}}"#,
        "\n",
        r#"{"type":"message","id":"m3","parentId":"c","timestamp":"2026-01-02T03:04:08Z","message":{"role":"toolResult","toolCallId":"c","toolName":"x","content":"y","isError":false}}"#,
        "\n",
        r#"{"type":"message","id":"m4","parentId":"s","timestamp":"2026-01-02T03:04:09Z","message":{"role":"user","content":"more"}}"#,
        "\n",
    );
    let read = read(log.as_bytes(), "s.jsonl").unwrap();
    assert_eq!(
        read.words(),
        [
            "note.session",
            "message.user",
            "tool.call",
            "tool.result",
            "message.user"
        ]
    );
}
