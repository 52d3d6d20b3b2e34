//! What is secret because of the file it is of.

use super::*;

const FILE: &str = "[REDACTED:file]";

#[test]
fn content_beside_the_name_of_a_secret_file() {
    for (input, expected) in [
        (
            r#"{"input":{"file_path":"/code/.env","content":"A=1\nB=2"}}"#,
            r#"{"input":{"file_path":"/code/.env","content":"F"}}"#,
        ),
        (
            r#"{"toolUseResult":{"type":"text","file":{"filePath":"/code/.env","content":"A=1","numLines":1}}}"#,
            r#"{"toolUseResult":{"type":"text","file":{"filePath":"/code/.env","content":"F","numLines":1}}}"#,
        ),
        (
            r#"{"oldString":"A=1","newString":"A=2","originalFile":"A=1\n","structuredPatch":[{"oldStart":1,"lines":["-A=1","+A=2"]}],"filePath":"C:\\app\\.env"}"#,
            r#"{"oldString":"F","newString":"F#2","originalFile":"F#3","structuredPatch":[{"oldStart":1,"lines":["F#4","F#5"]}],"filePath":"C:\\app\\.env"}"#,
        ),
        (
            r#"{"path":".env","edits":[{"old_string":"a","new_string":"b"}]}"#,
            r#"{"path":".env","edits":[{"old_string":"F","new_string":"F#2"}]}"#,
        ),
        (
            r#"{"file_path":"a.rs","content":"A=1"}"#,
            r#"{"file_path":"a.rs","content":"A=1"}"#,
        ),
        (
            r#"{"file_path":".env.example","content":"A=1"}"#,
            r#"{"file_path":".env.example","content":"A=1"}"#,
        ),
    ] {
        let mut expected = expected.to_owned();
        for number in 2..=5 {
            expected = expected.replace(
                &format!("F#{number}\""),
                &format!("[REDACTED:file#{number}]\""),
            );
        }
        assert_eq!(
            left(input),
            expected.replace("\"F\"", &format!("\"{FILE}\""))
        );
    }
}

#[test]
fn results_of_calls_in_later_records() {
    for (call, result) in [
        (
            r#"{"message":{"id":"m1","content":[{"type":"tool_use","id":"toolu_1","name":"Read","input":{"file_path":"/code/.env"}}]}}"#,
            r#"{"message":{"content":[{"tool_use_id":"toolu_1","type":"tool_result","content":"S","is_error":false}]},"toolUseResult":{"stdout":"S","stderr":""}}"#,
        ),
        (
            r#"{"message":{"content":[{"type":"tool_use","id":"toolu_1","input":{"command":"cat .env | head"}}]}}"#,
            r#"{"toolUseResult":{"stdout":"S"},"message":{"content":[{"tool_use_id":"toolu_1","content":[{"type":"text","text":"S"}]}]}}"#,
        ),
        (
            r#"{"payload":{"type":"function_call","name":"shell","arguments":"{\"command\":[\"bash\",\"-lc\",\"cat .env\"]}","call_id":"c1"}}"#,
            r#"{"payload":{"type":"function_call_output","call_id":"c1","output":"S"}}"#,
        ),
        (
            r#"{"tool_calls":[{"id":"c2","type":"function","function":{"name":"read","arguments":"{\"path\":\"~/.aws/credentials\"}"}}]}"#,
            r#"{"role":"tool","tool_call_id":"c2","content":"S"}"#,
        ),
        (
            r#"{"parts":[{"functionCall":{"id":"g1","name":"read","args":{"absolute_path":"/code/.env"}}}]}"#,
            r#"{"parts":[{"functionResponse":{"id":"g1","name":"read","response":{"output":"S"}}}]}"#,
        ),
    ] {
        let secret = "KEEP=out of this\\nB=2";
        let result = result.replace('S', secret);
        let others =
            "{\"tool_use_id\":\"other\",\"content\":\"KEEP=out of this\\nB=2\"}\n".repeat(3);
        let input = format!("{call}\n{others}{result}\n{result}\n");
        let output = left(&input);
        let expected = format!("{call}\n{others}{0}\n{0}\n", result.replace(secret, FILE));
        assert_eq!(output, expected, "{call}");
        // What comes before its call is known as little as what belongs to none.
        assert_eq!(left(&format!("{result}\n")), format!("{result}\n"));
    }
}

#[test]
fn results_in_the_same_record() {
    for (input, expected) in [
        (
            r#"{"part":{"type":"tool","callID":"o1","state":{"status":"completed","input":{"filePath":"/code/.env"},"output":"A=1 x\nB=2","metadata":{"preview":"A=1 x\nB=2"}}}}"#,
            r#"{"part":{"type":"tool","callID":"o1","state":{"status":"completed","input":{"filePath":"/code/.env"},"output":"F","metadata":{"preview":"F"}}}}"#,
        ),
        (
            r#"{"item":{"id":"i1","type":"command_execution","command":"cat .env","aggregated_output":"A=1 x\nB=2","exit_code":0,"status":"completed"}}"#,
            r#"{"item":{"id":"i1","type":"command_execution","command":"cat .env","aggregated_output":"F","exit_code":0,"status":"completed"}}"#,
        ),
        (
            r#"{"tool_response":{"stdout":"A=1 x\nB=2"},"tool_input":{"command":"cat .env"}}"#,
            r#"{"tool_response":{"stdout":"F"},"tool_input":{"command":"cat .env"}}"#,
        ),
        (
            r#"{"messages":[{"tool_calls":[{"id":"c","function":{"arguments":"{\"path\":\".env\"}"}}]},{"tool_call_id":"c","content":"A=1 x\nB=2"},{"tool_call_id":"d","content":"A=1 x\nB=2"}]}"#,
            r#"{"messages":[{"tool_calls":[{"id":"c","function":{"arguments":"{\"path\":\".env\"}"}}]},{"tool_call_id":"c","content":"F"},{"tool_call_id":"d","content":"A=1 x\nB=2"}]}"#,
        ),
    ] {
        assert_eq!(
            left(input),
            expected.replace("\"F\"", &format!("\"{FILE}\""))
        );
    }
}

#[test]
fn what_a_command_prints_beside_a_secret_file_stays() {
    for output in ["cat: .env: No such file", "fn main() {}\\n// A=1\\nok", ""] {
        let input = format!("{{\"command\":\"ls && cat .env\",\"output\":\"{output}\"}}");
        assert_eq!(left(&input), input);
    }
    let read = r#"{"input":{"path":".env"},"output":"cat: .env: No such file"}"#;
    assert!(left(read).ends_with("\"output\":\"[REDACTED:file]\"}"));
}

#[test]
fn environments_keep_their_names() {
    let input = concat!(
        r#"{"id":"t1","input":{"command":"printenv"}}"#,
        "\n",
        r#"{"tool_use_id":"t1","content":"HOME=/home/ada\nTOKEN=\"a b\"\nnot one\nEMPTY="}"#,
        "\n"
    );
    assert_eq!(
        left(input),
        concat!(
            r#"{"id":"t1","input":{"command":"printenv"}}"#,
            "\n",
            r#"{"tool_use_id":"t1","content":"HOME=[REDACTED:env]\nTOKEN=[REDACTED:env#2]\nnot one\nEMPTY="}"#,
            "\n"
        )
    );
}

#[test]
fn what_is_written_to_secret_files() {
    for (input, expected) in [
        (
            r#"{"command":"cat > .env <<EOF\nA=1\nB=2\nEOF\nls"}"#,
            r#"{"command":"cat > .env <<EOF\n[REDACTED:file]\nEOF\nls"}"#,
        ),
        (
            r#"{"command":"echo A=1 > .env"}"#,
            r#"{"command":"echo [REDACTED:file] > .env"}"#,
        ),
        (
            r#"{"args":"{\"command\":[\"sh\",\"-c\",\"echo A=1 >> .env\"]}"}"#,
            r#"{"args":"{\"command\":[\"sh\",\"-c\",\"echo [REDACTED:file] >> .env\"]}"}"#,
        ),
        (
            r#"{"input":"*** Begin Patch\n*** Add File: .env\n+A=1\n*** End Patch"}"#,
            r#"{"input":"*** Begin Patch\n*** Add File: .env\n[REDACTED:file]\n*** End Patch"}"#,
        ),
        (
            r#"{"stdout":"--- a/.env\n+++ b/.env\n@@ -1 +1 @@\n-A=1\n+A=2\n"}"#,
            r#"{"stdout":"--- a/.env\n+++ b/.env\n@@ -1 +1 @@\n[REDACTED:file]\n"}"#,
        ),
    ] {
        assert_eq!(left(input), expected);
        assert_eq!(left(expected), expected);
    }
}

#[test]
fn a_secret_file_itself() {
    let options = RawOptions {
        file: Some("/code/.env".into()),
        ..options()
    };
    let text = "# comment\nexport A=one\n\nB=\"two words\"\r\njust text\n";
    let done = run(&engine(), &options, text.as_bytes());
    assert_eq!(
        done.text(),
        "# comment\nexport A=[REDACTED:file]\n\nB=[REDACTED:file#2]\r\n[REDACTED:file#3]\n"
    );
    assert_eq!(done.findings[0].what.id(&engine()), "sensitive-file");
    let again = run(&engine(), &options, &done.bytes);
    assert_eq!(again.bytes, done.bytes);
    assert_eq!(again.findings, []);
    let options = RawOptions {
        file: Some("service-account.json".into()),
        ..options
    };
    let done = run(
        &engine(),
        &options,
        b"{\n \"type\": \"service_account\",\n \"k\": [\"a b\"]\n}",
    );
    assert_eq!(
        done.text(),
        "{\n \"type\": \"service_account\",\n \"k\": [\"[REDACTED:file]\"]\n}"
    );
    let options = RawOptions {
        files: false,
        ..options
    };
    let done = run(
        &engine(),
        &options,
        b"{\"file_path\":\".env\",\"content\":\"A\"}",
    );
    assert_eq!(done.findings, []);
}

/// A certificate stays; a private key beside it goes.
#[test]
fn a_file_of_certificates_and_keys_is_looked_into() {
    let options = RawOptions {
        file: Some("/etc/tls/server.pem".into()),
        ..options()
    };
    let body = "MIIBUjCB2qADAgECAhB3pQ7kV1mZx9sD2fG5hJ8LMAoGCCqGSM49BAMCMA8xDTALBgNV";
    let certificate = format!("-----BEGIN CERTIFICATE-----\n{body}\n-----END CERTIFICATE-----\n");
    let left = run(&engine(), &options, certificate.as_bytes());
    assert_eq!(
        (left.text(), left.findings.len()),
        (certificate.as_str(), 0)
    );
    let key = format!("-----BEGIN PRIVATE KEY-----\n{body}\n-----END PRIVATE KEY-----\n");
    let done = run(
        &engine(),
        &options,
        format!("{certificate}{key}").as_bytes(),
    );
    assert!(done.text().starts_with(&certificate), "{}", done.text());
    assert!(
        !done.text()[certificate.len()..].contains("MIIB"),
        "{}",
        done.text()
    );
}
