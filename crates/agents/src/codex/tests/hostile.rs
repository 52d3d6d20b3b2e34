//! Logs that are cut off or broken.

use super::*;

/// Every log of these tests, for those that break them.
const STREAM: &[&str] = &[
    r#"{"type":"thread.started","thread_id":"t1"}"#,
    r#"{"type":"item.started","item":{"id":"item_1","type":"command_execution","command":"ls","aggregated_output":"","exit_code":null,"status":"in_progress"}}"#,
    r#"{"type":"item.completed","item":{"id":"item_1","type":"mcp_tool_call","server":"s","tool":"t","arguments":{"q":1},"result":{"content":[]},"error":{"message":"x"},"exit_code":3,"status":"failed"}}"#,
    r#"{"type":"item.completed","item":{"id":"item_5","type":"collab_tool_call","tool":"spawn_agent","receiver_thread_ids":["t2"],"agents_states":{},"status":"completed"}}"#,
    r#"{"type":"turn.completed","usage":{"input_tokens":100,"cached_input_tokens":40,"output_tokens":5}}"#,
    r#"{"id":"0","msg":{"type":"exec_command_end","call_id":"c1","stdout":"a\n","stderr":"","exit_code":0,"duration":{"secs":0,"nanos":5000000}}}"#,
    r#"{"id":"0","msg":{"type":"token_count","info":{"total_token_usage":{"input_tokens":1}}}}"#,
];

#[test]
fn logs_that_are_cut_off() {
    for (dialect, lines) in [(ROLLOUT, SESSION), (EXEC, STREAM)] {
        for line in lines {
            for end in 0..line.len() {
                if line.is_char_boundary(end) {
                    let cut = format!("{}\n{}", lines[0], &line[..end]);
                    read_as(&Codex, dialect, cut.as_bytes(), "x");
                }
            }
        }
    }
}

#[test]
fn values_of_the_wrong_kind() {
    let odd = [
        "null",
        "true",
        "-1",
        "1e999",
        "99999999999999999999999",
        r#""""#,
        r#""\ud800""#,
        r#""9999-99-99T99:99:99Z""#,
        "[]",
        "{}",
        r#"[null,1,"x",{},[]]"#,
        r#"{"type":1,"text":[]}"#,
    ];
    for (dialect, lines) in [(ROLLOUT, SESSION), (EXEC, STREAM)] {
        for line in lines {
            for broken in broken(line, &odd) {
                let log = format!("{}\n{broken}\n{}\n", lines[0], lines[lines.len() - 1]);
                read_as(&Codex, dialect, log.as_bytes(), "x");
            }
        }
    }
    let deep = format!(
        r#"{{"type":"response_item","payload":{{"type":"function_call_output","output":{}{}}}}}"#,
        "[".repeat(120),
        "]".repeat(120)
    );
    read_as(&Codex, ROLLOUT, deep.as_bytes(), "x");
}

/// A line with each of its values in turn replaced by something else.
fn broken(line: &str, odd: &[&str]) -> Vec<String> {
    fn replace(
        value: &serde_json::Value,
        whole: &dyn Fn(serde_json::Value) -> serde_json::Value,
        found: &mut Vec<serde_json::Value>,
    ) {
        let mark = serde_json::Value::String("@@".to_owned());
        found.push(whole(mark));
        match value {
            serde_json::Value::Object(fields) => {
                for (key, inner) in fields {
                    let outer = |new| {
                        let mut copy = fields.clone();
                        copy.insert(key.clone(), new);
                        whole(serde_json::Value::Object(copy))
                    };
                    replace(inner, &outer, found);
                }
            }
            serde_json::Value::Array(items) => {
                for (index, inner) in items.iter().enumerate() {
                    let outer = |new| {
                        let mut copy = items.clone();
                        copy[index] = new;
                        whole(serde_json::Value::Array(copy))
                    };
                    replace(inner, &outer, found);
                }
            }
            _ => {}
        }
    }
    let value: serde_json::Value = serde_json::from_str(line).unwrap();
    let mut marked = Vec::new();
    replace(&value, &|new| new, &mut marked);
    marked
        .iter()
        .map(ToString::to_string)
        .flat_map(|text| {
            odd.iter()
                .map(|odd| text.replace(r#""@@""#, odd))
                .collect::<Vec<_>>()
        })
        .collect()
}
