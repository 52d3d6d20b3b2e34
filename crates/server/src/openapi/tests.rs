#![expect(
    clippy::disallowed_methods,
    reason = "files of a test are nobody's secret"
)]

use std::collections::BTreeSet;
use std::path::Path;

use serde_json::Value;

use super::openapi;
use crate::testkit::Served;

/// Every operation: its method, its path and what it says.
fn operations(document: &Value) -> Vec<(String, String, Value)> {
    let paths = document["paths"].as_object().unwrap();
    let all = paths.iter().flat_map(|(path, item)| {
        let item = item.as_object().unwrap();
        let one = |(method, operation): (&String, &Value)| {
            (method.clone(), path.clone(), operation.clone())
        };
        item.iter().map(one).collect::<Vec<_>>()
    });
    all.collect()
}

#[test]
fn the_document_in_docs_is_the_one_that_is_served() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/openapi.json");
    let made = serde_json::to_string_pretty(&openapi()).unwrap() + "\n";
    if std::env::var_os("QUIPU_BLESS").is_some() {
        std::fs::write(&path, &made).unwrap();
    }
    let there = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        there == made,
        "docs/openapi.json is old; `QUIPU_BLESS=1 cargo nextest run -p quipu-server the_document_in_docs` writes it"
    );
}

#[test]
fn references_lead_somewhere_and_operations_have_ids_of_their_own() {
    let document = openapi();
    let mut stack = vec![&document];
    while let Some(value) = stack.pop() {
        match value {
            Value::Object(fields) => {
                if let Some(Value::String(to)) = fields.get("$ref") {
                    let to = to.strip_prefix('#').unwrap();
                    assert!(document.pointer(to).is_some(), "{to}");
                }
                stack.extend(fields.values());
            }
            Value::Array(values) => stack.extend(values),
            _ => {}
        }
    }
    let mut ids = BTreeSet::new();
    let tags = document["tags"].as_array().unwrap();
    for (method, path, operation) in operations(&document) {
        let id = operation["operationId"].as_str();
        let id = id
            .unwrap_or_else(|| panic!("{method} {path} has no id"))
            .to_owned();
        assert!(ids.insert(id.clone()), "{id} twice");
        let text = operation["summary"].as_str().unwrap_or_default();
        assert!(!text.is_empty(), "{method} {path} says nothing");
        let tag = &operation["tags"][0];
        let known = tags.iter().find(|known| known["name"] == *tag);
        assert!(known.is_some(), "{method} {path}");
        // Every id of the address is a parameter, and no other.
        let named: BTreeSet<&str> = path
            .split('/')
            .filter_map(|part| part.strip_prefix('{')?.strip_suffix('}'))
            .collect();
        let parameters = operation["parameters"]
            .as_array()
            .cloned()
            .unwrap_or_default();
        let own = parameters.iter().filter(|one| one["in"] == "path");
        let own: BTreeSet<&str> = own.map(|one| one["name"].as_str().unwrap()).collect();
        assert_eq!(own, named, "{method} {path}");
        assert!(
            operation["responses"].get("421").is_some(),
            "{method} {path}"
        );
    }
    assert!(ids.len() > 60, "{}", ids.len());
}

/// What an operation may answer, by its status.
fn documented<'d>(document: &'d Value, operation: &'d Value, status: u16) -> Option<&'d Value> {
    let response = operation["responses"].get(status.to_string())?;
    match response["$ref"].as_str() {
        Some(to) => document.pointer(&to[1..]),
        None => Some(response),
    }
}

#[test]
fn what_is_asked_for_that_is_not_there_is_answered_as_documented() {
    let served = Served::empty();
    let document = openapi();
    let mut asked = 0;
    for (method, path, operation) in operations(&document) {
        // Streams have no end, and one that follows everything is there.
        if method != "get" || path.ends_with("/stream") || path == "/api/v1/doctor" {
            continue;
        }
        let address = path
            .replace("{sha256}", &"0".repeat(64))
            .replace("{id}", "00000000-none")
            .replace(['{', '}'], "");
        let answer = served.get(&address);
        let said = documented(&document, &operation, answer.status);
        let said = said.unwrap_or_else(|| panic!("{address}: {} is not documented", answer.status));
        let kind = answer.header("content-type").unwrap_or_default();
        let kind = kind.split(';').next().unwrap();
        assert!(
            said["content"].get(kind).is_some(),
            "{address}: {} of {kind} is not documented: {}",
            answer.status,
            answer.text()
        );
        asked += 1;
    }
    assert!(asked > 40, "{asked}");
}
