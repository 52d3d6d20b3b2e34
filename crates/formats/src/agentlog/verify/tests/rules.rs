//! Every rule, broken.

use std::collections::BTreeSet;

use super::*;

/// A file for each rule that breaks it, and where it is found. Other rules may be broken by it as well.
#[expect(clippy::too_many_lines, reason = "a table")]
fn broken() -> Vec<(Rule, Trace, Option<&'static str>)> {
    let root = Trace::new;
    let request = || root().add("chat_request", REQUEST);
    let with = |kind: &str, payload: &str| root().add(kind, payload);
    let req = |from: &str, to: &str| root().add("chat_request", &REQUEST.replace(from, to));
    let res = |from: &str, to: &str| request().add("chat_response", &RESPONSE.replace(from, to));
    let blob = |more: &str| {
        let payload =
            format!(r#"{{"mime":"image/png","size_bytes":3,"blob_id":"{BLOB_ID}"{more}}}"#);
        root().add("blob_ref", &payload)
    };
    let chunk = |n: u32, nanos: u32| {
        format!(r#"{{"chunk_index":{n},"time_unix_nano":{nanos},"delta":{{}}}}"#)
    };
    let image = format!(
        r#"[{{"type":"image","source":{{"type":"base64","data":"{}"}}}}]"#,
        "iVBORw0K".repeat(700)
    );
    let fake = format!("\"sha256:{}\"", "3".repeat(64));
    vec![
        (Rule::EmptyTrace, Trace::default(), None),
        (
            Rule::TornTail,
            root().line(r#"{"version":"0.1","id":"sha25"#),
            None,
        ),
        (Rule::NotUtf8, root().line("{\"a\":\"\u{fffd}\"}\n"), None),
        (Rule::NotJson, root().but("}}}", "}}} x"), None),
        (Rule::NotARecord, root().line("[1]\n"), None),
        (
            Rule::TooDeep,
            with(
                "error",
                &format!(r#"{{"x":{}{}}}"#, "[".repeat(1023), "]".repeat(1023)),
            ),
            None,
        ),
        (
            Rule::DuplicateKey,
            root().but("{\"sdk\"", "{\"a\":1,\"a\":2,\"sdk\""),
            Some("payload.a"),
        ),
        (
            Rule::DuplicateKey,
            root().but("\"kind\":", "\"ts\":1,\"kind\":"),
            Some("ts"),
        ),
        (
            Rule::DuplicateKey,
            root().but("{\"sdk\"", "{\"caf\u{e9}\":1,\"cafe\u{301}\":2,\"sdk\""),
            Some("payload[\"cafe\\u{301}\"]"),
        ),
        (
            Rule::LoneSurrogate,
            root().but("quipu", "\\ud800"),
            Some("payload.sdk.name"),
        ),
        (
            Rule::NumberRange,
            root().but("{\"sdk\"", "{\"a\":[1,1e400],\"sdk\""),
            Some("payload.a[1]"),
        ),
        (
            Rule::LoneSurrogate,
            root().but("\"metadata\"", "\"meta\\udc00\""),
            Some("kind"),
        ),
        (
            Rule::FieldMissing,
            root().but("\"ts\"", "\"when\""),
            Some("ts"),
        ),
        (
            Rule::FieldMissing,
            root().but("\"parent\":null,", ""),
            Some("parent"),
        ),
        (
            Rule::FieldMissing,
            req(r#""model":"m","#, ""),
            Some("payload.model"),
        ),
        (
            Rule::FieldMissing,
            res(r#","text":"yo""#, ""),
            Some("payload.content[0].text"),
        ),
        (Rule::FieldType, root().but("\"0.1\"", "1"), Some("version")),
        (
            Rule::FieldType,
            root().but("\"payload\"", "\"meta\":null,\"payload\""),
            Some("meta"),
        ),
        (
            Rule::FieldType,
            req(r#""hi""#, "7"),
            Some("payload.messages[0].content"),
        ),
        (
            Rule::FieldType,
            with(
                "metadata",
                r#"{"sdk":{"name":"a","version":"b"},"tags":{"a b":1}}"#,
            ),
            Some("payload.tags[\"a b\"]"),
        ),
        (
            Rule::FieldType,
            with(
                "metadata",
                r#"{"sdk":{"name":"a","version":"b"},"baseline_of":"x"}"#,
            ),
            Some("payload.baseline_of"),
        ),
        (
            Rule::FieldRange,
            res(":5}", ":-5}"),
            Some("payload.latency_ms"),
        ),
        (
            Rule::FieldRange,
            res(r#""input_tokens":1"#, r#""input_tokens":1.5"#),
            Some("payload.usage.input_tokens"),
        ),
        (
            Rule::FieldRange,
            with("harness_event", &HARNESS.replace("retry.attempted", "")),
            Some("payload.name"),
        ),
        (
            Rule::VersionForm,
            root().but("\"0.1\"", "\"new\""),
            Some("version"),
        ),
        (
            Rule::VersionUnknown,
            root().but("\"0.1\"", "\"9.9\""),
            Some("version"),
        ),
        (
            Rule::VersionNewer,
            root().but("\"0.1\"", "\"0.1.1\""),
            Some("version"),
        ),
        (Rule::UnknownKind, with("dream", "{}"), Some("kind")),
        (Rule::IdForm, root().but("sha256:", "sha1:"), Some("id")),
        (Rule::IdMismatch, root().but("quipu", "other"), Some("id")),
        (Rule::TsForm, root().but("04-24", "02-30"), Some("ts")),
        (Rule::TsPrecision, root().but(".000Z", "Z"), Some("ts")),
        (
            Rule::ParentForm,
            root().under("error", ERROR, "\"zzz\""),
            Some("parent"),
        ),
        (
            Rule::RootKind,
            Trace::default().add("error", ERROR),
            Some("kind"),
        ),
        (
            Rule::RootParent,
            Trace::default().under("metadata", ROOT, &fake),
            Some("parent"),
        ),
        (
            Rule::ParentNull,
            root().under("metadata", ROOT, "null"),
            Some("parent"),
        ),
        (
            Rule::ParentSelf,
            root().under("error", ERROR, &format!("\"{}\"", id_of(ERROR))),
            Some("parent"),
        ),
        (
            Rule::ParentUnknown,
            root().under("error", ERROR, &fake),
            Some("parent"),
        ),
        (
            Rule::ParentUnread,
            root().line("oops\n").under("error", ERROR, &fake),
            Some("parent"),
        ),
        (
            Rule::TsOrder,
            with("error", ERROR).but("10:00:01", "09:59:59"),
            Some("ts"),
        ),
        (
            Rule::MarkerParent,
            request().add_to(0, "metadata", r#"{"sdk":{"name":"a","version":"b"}}"#),
            Some("parent"),
        ),
        (
            Rule::MessageRole,
            req(r#""user""#, r#""boss""#),
            Some("payload.messages[0].role"),
        ),
        (
            Rule::ToolIncomplete,
            req(r#""params":{}"#, r#""params":{},"tools":[{"name":"ls"}]"#),
            Some("payload.tools[0].description"),
        ),
        (
            Rule::ParamsRange,
            req(r#""params":{}"#, r#""params":{"temperature":2.5}"#),
            Some("payload.params.temperature"),
        ),
        (
            Rule::ParamsRange,
            req(r#""params":{}"#, r#""params":{"max_tokens":0}"#),
            Some("payload.params.max_tokens"),
        ),
        (
            Rule::PartType,
            res(r#""type":"text""#, r#""type":"smell""#),
            Some("payload.content[0].type"),
        ),
        (
            Rule::InlineBase64,
            req(r#""hi""#, &image),
            Some("payload.messages[0].content[0].source.data"),
        ),
        (
            Rule::StopReason,
            res("end_turn", "policy_blocked"),
            Some("payload.stop_reason"),
        ),
        (
            Rule::ResponseParent,
            with("chat_response", RESPONSE),
            Some("parent"),
        ),
        (
            Rule::ToolCallId,
            with("tool_call", CALL),
            Some("payload.tool_call_id"),
        ),
        (
            Rule::ResultParent,
            with("tool_result", RESULT),
            Some("parent"),
        ),
        (
            Rule::ResultCallId,
            request()
                .add("chat_response", ASKS)
                .add("tool_call", CALL)
                .add("tool_result", &RESULT.replace("t1", "t2")),
            Some("payload.tool_call_id"),
        ),
        (
            Rule::SdkText,
            with("metadata", r#"{"sdk":{"name":[],"version":"b"}}"#),
            Some("payload.sdk.name"),
        ),
        (
            Rule::ErrorSource,
            with("error", &ERROR.replace("llm", "moon")),
            Some("payload.source"),
        ),
        (
            Rule::SummaryParent,
            request()
                .add("replay_summary", SUMMARY)
                .add("replay_summary", &SUMMARY.replace('7', "8")),
            Some("parent"),
        ),
        (
            Rule::ChunkParent,
            with("chunk", &chunk(0, 5)),
            Some("parent"),
        ),
        (
            Rule::ChunkIndex,
            request().add("chunk", &chunk(1, 5)),
            Some("payload.chunk_index"),
        ),
        (
            Rule::ChunkTime,
            request()
                .add("chunk", &chunk(0, 5))
                .add_to(1, "chunk", &chunk(1, 4)),
            Some("payload.time_unix_nano"),
        ),
        (
            Rule::ChunkResponse,
            request().add("chunk", &chunk(0, 5)),
            None,
        ),
        (
            Rule::HarnessCategory,
            with("harness_event", &HARNESS.replace("\"retry\"", "\"nap\"")),
            Some("payload.category"),
        ),
        (
            Rule::HarnessSeverity,
            with("harness_event", &HARNESS.replace("info", "loud")),
            Some("payload.severity"),
        ),
        (
            Rule::Mime,
            with(
                "blob_ref",
                &format!(r#"{{"mime":"png","size_bytes":3,"blob_id":"{BLOB_ID}"}}"#),
            ),
            Some("payload.mime"),
        ),
        (
            Rule::BlobId,
            with(
                "blob_ref",
                r#"{"mime":"image/png","size_bytes":3,"blob_id":"abc"}"#,
            ),
            Some("payload.blob_id"),
        ),
        (
            Rule::BlobUri,
            blob(r#","uri":"agentlog-blob://local/abc""#),
            Some("payload.uri"),
        ),
        (
            Rule::BlobElsewhere,
            blob(r#","uri":"https://example.com/x""#),
            Some("payload.uri"),
        ),
        (
            Rule::Phash,
            blob(r#","phash":{"algo":"dhash64","hex":"xyz"}"#),
            Some("payload.phash.hex"),
        ),
        (
            Rule::PhashAlgo,
            blob(r#","phash":{"algo":"phash","hex":"00"}"#),
            Some("payload.phash.algo"),
        ),
        (
            Rule::EmbeddingDim,
            blob(r#","embedding":{"model":"e","dim":2.0,"vec":[1,2,3]}"#),
            Some("payload.embedding.dim"),
        ),
        (
            Rule::EmbeddingDim,
            blob(r#","embedding":{"model":"e","dim":3,"vec":[1]}"#),
            Some("payload.embedding.dim"),
        ),
        (
            Rule::ExtraField,
            root().but("\"payload\"", "\"extra\":1,\"payload\""),
            Some("extra"),
        ),
        (
            Rule::MetaKey,
            root().but("\"payload\"", "\"meta\":{\"trace_id\":\"x\"},\"payload\""),
            Some("meta.trace_id"),
        ),
        (Rule::CrLf, root().but("}}}\n", "}}}\r\n"), None),
        (Rule::BlankLine, root().line("  \n"), None),
        (Rule::Unterminated, root().but("}}}\n", "}}}"), None),
    ]
}

#[test]
fn every_rule_is_broken_by_something() {
    let mut covered: BTreeSet<Rule> = BTreeSet::new();
    for (rule, trace, field) in broken() {
        let mut bytes = trace.text.into_bytes();
        if rule == Rule::NotUtf8 {
            let at = bytes
                .windows(3)
                .position(|w| w == "\u{fffd}".as_bytes())
                .unwrap();
            bytes.splice(at..at + 3, [0xff]);
        }
        let report = check(&bytes);
        let finding = report.findings.iter().find(|finding| {
            finding.rule == rule && (field.is_none() || finding.field.as_deref() == field)
        });
        let finding = finding.unwrap_or_else(|| panic!("{rule:?} at {field:?}: {report:#?}"));
        assert_eq!(finding.severity, rule.severity(true));
        assert_eq!(
            report.is_clean(),
            report.findings.iter().all(|f| f.severity == Severity::Note)
        );
        covered.insert(rule);
    }
    // These have tests of their own.
    covered.extend([
        Rule::LineTooLong,
        Rule::TooManyValues,
        Rule::ByteOrderMark,
        Rule::PairingCapped,
        Rule::DiagnosisCapped,
    ]);
    let all: BTreeSet<Rule> = Rule::ALL.iter().copied().collect();
    assert_eq!(covered, all);
}

#[test]
fn one_fault_is_found_once() {
    for (rule, trace, _) in broken() {
        let alone = [
            Rule::VersionUnknown,
            Rule::UnknownKind,
            Rule::TsForm,
            Rule::ParentUnknown,
            Rule::TsOrder,
            Rule::StopReason,
            Rule::ParentNull,
            Rule::ChunkParent,
            Rule::BlobId,
            Rule::MarkerParent,
            Rule::TornTail,
            Rule::EmptyTrace,
        ];
        if alone.contains(&rule) {
            assert_eq!(names(&check(trace.text.as_bytes())), [rule.name()]);
        }
    }
}

#[test]
fn names_and_sections_are_in_order() {
    let names: BTreeSet<_> = Rule::ALL.iter().map(|rule| rule.name()).collect();
    assert_eq!(names.len(), Rule::ALL.len());
    for rule in Rule::ALL {
        let name = rule.name();
        assert!(
            name.bytes()
                .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-'),
            "{name}"
        );
        assert!(!rule.hint().is_empty() && !rule.section().is_empty());
        // Nothing that is certain becomes less so.
        assert!(rule.severity(false) <= rule.severity(true));
    }
}

#[test]
fn permissive_allows_what_may_be_newer_and_nothing_else() {
    let newer = Trace::new()
        .but("\"0.1\"", "\"1.0\"")
        .add("dream", r#"{"of":"sheep"}"#)
        .add("error", &ERROR.replace("llm", "moon"));
    assert!(!check(newer.text.as_bytes()).is_clean());
    let report = permissive(newer.text.as_bytes());
    assert_eq!(
        names(&report),
        ["version-unknown", "unknown-kind", "error-source"]
    );
    assert!(report.is_clean());
    assert_eq!(report.unknown_kinds, 1);
    for (rule, trace, _) in broken() {
        let still = !permissive(trace.text.as_bytes()).is_clean();
        assert_eq!(still, rule.severity(false) > Severity::Note, "{rule:?}");
    }
}

#[test]
fn every_rule_is_in_the_docs() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/agentlog.md");
    let docs = std::fs::read_to_string(path).unwrap();
    for rule in Rule::ALL {
        let row = format!("| `{}` | {} |", rule.name(), rule.section());
        assert!(docs.contains(&row), "docs/agentlog.md has no row {row}");
    }
}
