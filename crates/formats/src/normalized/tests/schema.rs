//! The published schema is one that is checked.

use serde_json::Value;

use crate::normalized::schema::{CHECKED, FOR_PEOPLE};
use crate::normalized::{EVENT_FIELDS, SCHEMA, SCHEMA_VERSION};

fn schema() -> Value {
    serde_json::from_str(SCHEMA).unwrap()
}

/// Every keyword of a schema and those inside it, with the schemas themselves.
fn walk(schema: &Value, seen: &mut dyn FnMut(&str, &Value)) {
    let Some(fields) = schema.as_object() else {
        return;
    };
    for (keyword, value) in fields {
        seen(keyword, value);
        match (keyword.as_str(), value) {
            ("properties" | "$defs", Value::Object(inner)) => {
                inner.values().for_each(|schema| walk(schema, seen));
            }
            ("anyOf", Value::Array(inner)) => inner.iter().for_each(|schema| walk(schema, seen)),
            ("items" | "if" | "then", schema) => walk(schema, seen),
            _ => {}
        }
    }
}

#[test]
fn every_keyword_is_one_that_is_checked() {
    let schema = schema();
    walk(&schema, &mut |keyword, value| {
        assert!(
            CHECKED.contains(&keyword) || FOR_PEOPLE.contains(&keyword),
            "{keyword}"
        );
        match keyword {
            "$ref" => {
                let name = value.as_str().unwrap().strip_prefix("#/$defs/").unwrap();
                assert!(schema["$defs"].get(name).is_some(), "{name}");
            }
            "enum" => assert!(
                value
                    .as_array()
                    .unwrap()
                    .iter()
                    .all(|v| v.is_string() || v.is_null())
            ),
            "pattern" => {
                let text = value.as_str().unwrap();
                let rest = text.strip_prefix('^').unwrap().replace("\\.", "");
                assert!(rest.chars().all(|c| c.is_ascii_alphanumeric()), "{text}");
            }
            _ => {}
        }
    });
}

#[test]
fn the_schema_names_every_field_that_is_read() {
    let schema = schema();
    let event = schema["$defs"]["event"]["properties"].as_object().unwrap();
    let named: std::collections::BTreeSet<&str> = event.keys().map(String::as_str).collect();
    let known: std::collections::BTreeSet<&str> = EVENT_FIELDS.iter().copied().collect();
    assert_eq!(named, known);
    assert!(schema["title"].as_str().unwrap().ends_with(SCHEMA_VERSION));
}
