//! Logs that are not as they should be.

use super::*;

#[test]
fn anything_may_stand_anywhere() {
    const VALUES: [&str; 7] = [
        "null",
        "7",
        "-1e400",
        "\"x\"",
        "[]",
        "{}",
        "[[{\"type\":{}}]]",
    ];
    let keys = [
        "type",
        "properties",
        "info",
        "part",
        "id",
        "sessionID",
        "messageID",
        "role",
        "time",
        "tokens",
        "state",
        "text",
        "table",
        "row",
        "data",
        "message_id",
        "partID",
        "delta",
        "messages",
        "parts",
        "error",
        "revert",
        "model",
        "content",
        "timestamp",
        "tool",
        "callID",
    ];
    let mut lines: Vec<String> = Vec::new();
    for key in keys {
        for value in VALUES {
            for (kind, inner) in [
                ("message.updated", "info"),
                ("message.part.updated", "part"),
                ("session.updated", "info"),
            ] {
                lines.push(format!(
                    "{{\"type\":\"{kind}\",\"properties\":{{\"{inner}\":{{\"id\":\"i\",\"messageID\":\"m\",\"role\":\"assistant\",\"type\":\"tool\",\"{key}\":{value}}}}}}}\n"
                ));
            }
            lines.push(format!("{{\"type\":\"text\",\"{key}\":{value}}}\n"));
            for table in ["session", "message", "part", "session_message"] {
                lines.push(format!(
                    "{{\"table\":\"{table}\",\"row\":{{\"data\":{{\"role\":\"assistant\",\"type\":\"tool\",\"{key}\":{value}}},\"{key}\":{value}}}}}\n"
                ));
            }
        }
    }
    let lines = lines.concat();
    for dialect in [ROWS, RUN, EVENTS, SSE] {
        read_as(&OpenCode, dialect, lines.as_bytes(), "x");
    }
    for line in lines.lines() {
        read_as(&OpenCode, EXPORT, line.as_bytes(), "x");
    }
    let deep = "[".repeat(4000) + &"]".repeat(4000);
    read_as(&OpenCode, EXPORT, deep.as_bytes(), "x");
    read_as(
        &OpenCode,
        EVENTS,
        format!("{{\"event\":{deep}}}\n").as_bytes(),
        "x",
    );
}

#[test]
fn a_log_may_end_anywhere() {
    let told = told();
    for end in (0..1000).chain((1000..told.len()).step_by(41)) {
        read_as(&OpenCode, EVENTS, &told.as_bytes()[..end], "x");
    }
    let export = EXPORT_TEXT.as_bytes();
    for end in (0..export.len()).step_by(97) {
        read_as(&OpenCode, EXPORT, &export[..end], "x");
    }
}

/// Of what a message held back some may say nothing: that makes nothing of the record that ends the message.
#[test]
fn parts_that_never_ended_are_handed_over_with_their_message() {
    let ends = |line: &&str| !line.contains("\"end\":") && !line.contains("part.delta");
    let told: Vec<String> = told().lines().filter(ends).map(str::to_owned).collect();
    let read = read_as(&OpenCode, EVENTS, told.join("\n").as_bytes(), "x");
    assert!(read.lines().contains("bash"), "{}", read.lines());
}

#[test]
fn other_rows_are_left_alone() {
    for text in [
        r#"{"table":"sessions","row":{"id":"1"}}"#,
        r#"{"type":"text","text":"x"}"#,
        r#"{"info":{"id":1},"messages":[]}"#,
        r#"{"name":"x","data":{}}"#,
    ] {
        let found = crate::identify(text.as_bytes(), true);
        assert!(
            found.is_none_or(|(family, _)| family.name() != "opencode"),
            "{text}"
        );
    }
}

/// One row that is not as the others are does not keep the others from being read.
#[test]
fn rows_of_any_kind() {
    let mut tape = Tape::new();
    let database = schema();
    fill(&database, tape.read(EXPORT_TEXT, 128).unwrap());
    for id in 2..20 {
        let other = EXPORT_TEXT
            .replace("ses_1", &format!("ses_x{id}"))
            .replace("msg_", &format!("msg_{id}_"))
            .replace("prt_", &format!("prt_{id}_"));
        let mut tape = Tape::new();
        fill(&database, tape.read(&other, 128).unwrap());
    }
    let from = Gathered::Database(&database);
    let before: Vec<u64> = Sessions
        .parts(&from)
        .unwrap()
        .iter()
        .map(|part| records(&from, &part.id))
        .collect();
    assert_eq!(before.len(), 19);
    database
        .execute_batch(
            "update message set id = x'ff00' where id = 'msg_2';
             update message set id = null where id = 'msg_2_2';
             update message set session_id = 'ses_lost' where session_id = 'ses_x3';
             update message set time_created = 'x', time_updated = x'ff', data = x'ff00' where id = 'msg_5_1';
             update part set id = x'ff', time_updated = 'x', data = null where id = 'prt_6_1';
             update part set time_updated = 9223372036854775807 where session_id = 'ses_x7';
             update session set time_updated = 'x', time_created = x'ff' where id = 'ses_x4';
             update session set time_updated = 9223372036854775807, title = x'ff' where id = 'ses_x8';
             update session set id = x'ff00' where id = 'ses_x9';
             update message set session_id = x'ff00' where session_id = 'ses_x9';
             update part set session_id = x'ff00' where session_id = 'ses_x9';
             insert into session (id, time_created) values (null, 1);",
        )
        .unwrap();
    let after = Sessions.parts(&from).unwrap();
    assert_eq!(after.len(), 20);
    let ids: Vec<&str> = after.iter().map(|part| part.id.as_str()).collect();
    assert!(
        ids.contains(&"x'ff00'") && ids.contains(&"ses_lost"),
        "{ids:?}"
    );
    // Nothing is lost of any. What has no session of its own lacks that and the project.
    for id in ids {
        let expected = match id {
            // Only the parts that no message names.
            "ses_x3" => 3 + before[0] - 8,
            "ses_lost" => before[0] - 3,
            _ => before[0],
        };
        assert_eq!(records(&from, id), expected, "{id}");
    }
}
