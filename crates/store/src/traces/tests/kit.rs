//! Traces to test with.

use quipu_formats::agentlog::{ContentId, Draft, Kind, Writer};
use quipu_model::{Json, Timestamp};

/// When the first record of every trace is written; each record is a second later.
pub(crate) const START: &str = "2026-04-24T10:00:00.000Z";

/// The payload of a root with a tag.
pub(crate) fn root(tag: &str) -> String {
    format!(r#"{{"sdk":{{"name":"quipu","version":"0.1.0"}},"tags":{{"env":"{tag}"}}}}"#)
}

/// A trace: a root, and harness events with these payloads.
pub(crate) fn trace(root: &str, payloads: &[&str]) -> String {
    let records: Vec<(Kind, &str)> = payloads
        .iter()
        .map(|it| (Kind::HarnessEvent, *it))
        .collect();
    records_of(root, None, &records)
}

/// A trace: a root with this meta, and these records, each after the one before it.
pub(crate) fn records_of(root: &str, meta: Option<&str>, records: &[(Kind, &str)]) -> String {
    let mut writer = Writer::new(Vec::new());
    let meta = meta.map(|meta| Json::parse(meta).unwrap());
    let mut at: Timestamp = START.parse().unwrap();
    let mut parent: Option<ContentId> = None;
    let all = std::iter::once((Kind::Metadata, root)).chain(records.iter().copied());
    for (kind, payload) in all {
        let payload = Json::parse(payload).unwrap();
        let mut draft = Draft::new(kind, at, parent, &payload);
        if let (None, Some(meta)) = (parent, &meta) {
            draft = draft.with_meta(meta);
        }
        parent = Some(writer.append(&draft).unwrap());
        at += jiff::SignedDuration::from_secs(1);
    }
    String::from_utf8(writer.into_inner()).unwrap()
}
