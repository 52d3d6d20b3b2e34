//! A JSON Schema of workflow files, so that editors complete and check them. It is made from the table of keys.

use serde_json::{Map, Value, json};

use super::keys::{CUSTOM, KINDS, Key, Object, STEP, Shape, WORKFLOW};

/// The schema, draft 2020-12.
pub fn json_schema() -> Value {
    let mut definitions = Map::new();
    let mut workflow = object(&WORKFLOW, &mut definitions);
    workflow["properties"]["states"] = json!({
        "description": about(&WORKFLOW, "states"),
        "type": "object",
        "required": ["initial"],
        "properties": {"initial": {"type": "string", "description": "The step that a run begins with."}},
        "additionalProperties": {"$ref": "#/$defs/step"},
    });
    let step = step(&mut definitions);
    definitions.insert("step".to_owned(), step);
    let mut schema = json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Quipu workflow",
        "description": "A workflow file, run by `quipu run`.",
    });
    if let (Value::Object(schema), Value::Object(workflow)) = (&mut schema, workflow) {
        schema.extend(workflow);
        schema.insert("$defs".to_owned(), Value::Object(definitions));
    }
    schema
}

fn about(object: &Object, name: &str) -> String {
    let key = object.keys.iter().find(|key| key.name == name);
    key.map(|key| key.about.to_owned()).unwrap_or_default()
}

/// A step: keys of every kind, and for each kind which of them it has.
fn step(definitions: &mut Map<String, Value>) -> Value {
    let names: Vec<&str> = KINDS.iter().map(|kind| kind.name).collect();
    let mut common = properties(&STEP, definitions);
    common.insert(
        "type".to_owned(),
        json!({
            "description": about(&STEP, "type"),
            "anyOf": [
                {"enum": ["step"]},
                {"enum": names},
                // In any case, and kinds of plugins.
                {"type": "string", "minLength": 1},
            ],
        }),
    );
    let mut kinds = Vec::new();
    for kind in KINDS {
        let spelled = spellings(kind.name);
        let mut required: Vec<&str> = vec!["type"];
        required.extend(kind.object.required);
        // A step template may give what is required.
        kinds.push(json!({
            "if": {
                "properties": {"type": {"type": "string", "pattern": spelled}},
                "required": ["type"],
                "not": {"required": ["use_template"]},
            },
            "then": {
                "description": kind.about,
                "properties": properties(&kind.object, definitions),
                "required": required,
            },
        }));
    }
    let mut all = properties(&CUSTOM, definitions);
    for kind in KINDS {
        for key in kind.object.keys {
            all.entry(key.name.to_owned())
                .or_insert_with(|| json!({"description": key.about}));
        }
    }
    all.extend(common);
    json!({
        "description": "A step.",
        "type": "object",
        "properties": all,
        "additionalProperties": false,
        "anyOf": [{"required": ["type"]}, {"required": ["use_template"]}],
        "allOf": kinds,
    })
}

/// A pattern for a word in any case.
fn spellings(name: &str) -> String {
    let letters = |name: &str| {
        name.chars().fold(String::new(), |mut out, c| {
            if c.is_ascii_alphabetic() {
                out.extend(['[', c, c.to_ascii_uppercase(), ']']);
            } else {
                out.push(c);
            }
            out
        })
    };
    match name {
        "command" => format!("^({}|{})$", letters("command"), letters("step")),
        name => format!("^{}$", letters(name)),
    }
}

fn object(object: &'static Object, definitions: &mut Map<String, Value>) -> Value {
    json!({
        "type": "object",
        "properties": properties(object, definitions),
        "required": object.required,
        "additionalProperties": false,
    })
}

fn properties(object: &'static Object, definitions: &mut Map<String, Value>) -> Map<String, Value> {
    let described = |key: &'static Key, definitions: &mut Map<String, Value>| {
        let mut shape = shape(&key.shape, definitions);
        shape["description"] = key.about.into();
        (key.name.to_owned(), shape)
    };
    object
        .keys
        .iter()
        .map(|key| described(key, definitions))
        .collect()
}

fn shape(shape: &'static Shape, definitions: &mut Map<String, Value>) -> Value {
    match shape {
        Shape::Text | Shape::Template => json!({"type": ["string", "number", "boolean"]}),
        Shape::Expression => json!({"type": ["string", "boolean"]}),
        Shape::Step => json!({"type": "string", "minLength": 1}),
        Shape::Bool => json!({"type": "boolean"}),
        Shape::Whole(least, most) => {
            let mut whole = json!({"type": "integer"});
            if *least > i64::MIN {
                whole["minimum"] = (*least).into();
            }
            if *most < i64::from(u32::MAX) {
                whole["maximum"] = (*most).into();
            }
            whole
        }
        Shape::Number(least, most) => {
            let mut number = json!({"type": "number", "minimum": least});
            if *most < f64::MAX {
                number["maximum"] = (*most).into();
            }
            number
        }
        Shape::Duration => json!({
            "anyOf": [
                {"type": "number", "minimum": 0},
                {"type": "string", "pattern": r"^(\{\{.*|\+?([0-9.]+(ns|us|µs|ms|s|m|h|d)?)+)$"},
            ],
        }),
        Shape::Words(words) => json!({"enum": words}),
        Shape::Any => json!({}),
        Shape::Schema => json!({"type": ["object", "boolean"]}),
        Shape::List(item) => json!({"type": "array", "items": self::shape(item, definitions)}),
        Shape::MapOf(value) => {
            json!({"type": "object", "additionalProperties": self::shape(value, definitions)})
        }
        Shape::Either(shapes) => {
            let any: Vec<Value> = shapes
                .iter()
                .map(|shape| self::shape(shape, definitions))
                .collect();
            json!({"anyOf": any})
        }
        Shape::Object(object) => {
            let name = object.name.replace(' ', "_");
            if !definitions.contains_key(&name) {
                // A place is taken first, so that an object that names itself ends.
                definitions.insert(name.clone(), Value::Null);
                let schema = self::object(object, definitions);
                definitions.insert(name.clone(), schema);
            }
            json!({"$ref": format!("#/$defs/{name}")})
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;
    use std::path::{Path, PathBuf};

    use super::*;
    use crate::definition::node::Node;

    fn docs(name: &str) -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("../../docs")
            .join(name)
    }

    fn valid(text: &str) -> Result<(), String> {
        let validator = jsonschema::validator_for(&json_schema()).unwrap();
        let file = Node::parse(text).unwrap().json();
        let errors: Vec<String> = validator
            .iter_errors(&file)
            .map(|error| format!("{}: {error}", error.instance_path()))
            .collect();
        if errors.is_empty() {
            Ok(())
        } else {
            Err(errors.join("\n"))
        }
    }

    #[test]
    fn the_published_schema_is_the_one_that_the_table_gives() {
        let made = serde_json::to_string_pretty(&json_schema()).unwrap() + "\n";
        let path = docs("workflow.schema.json");
        if std::env::var_os("QUIPU_BLESS").is_some() {
            let mut file = std::fs::File::create(&path).unwrap();
            file.write_all(made.as_bytes()).unwrap();
        }
        let kept = std::fs::read_to_string(&path).unwrap_or_default();
        assert!(
            kept == made,
            "docs/workflow.schema.json is old; run this test with QUIPU_BLESS=1"
        );
    }

    #[test]
    fn files_that_load_fit_the_schema() {
        valid(include_str!("load/everything.yaml")).unwrap_or_else(|errors| panic!("{errors}"));
        for text in [
            "name: w\nstates:\n  initial: a\n  a: {type: Step, command: x, timeout: 1m30s, on_success: b}\n  b: {type: TERMINAL}\n",
            "name: w\nstates:\n  initial: a\n  a: {use_template: t, parameters: {x: 1}, on_success: b}\n  b: {type: terminal}\n",
            "name: w\nbudget_usd: 3\nstates:\n  initial: a\n  a: {type: db.query, config: {x: 1}, on_failure: {message: no}}\n",
        ] {
            valid(text).unwrap_or_else(|errors| panic!("{text}: {errors}"));
        }
    }

    #[test]
    fn files_that_do_not_load_do_not_fit_the_schema() {
        for text in [
            "states: {initial: a}\n",
            "name: w\n",
            "name: w\nstates: {a: {type: terminal}}\n",
            "name: w\nstates: {initial: a, a: {type: agent, prompt: x}}\n",
            "name: w\nstates: {initial: a, a: {type: parallel, parallel: [b], max_concurrent: many}}\n",
            "name: w\nstates: {initial: a, a: {type: terminal, status: failed}}\n",
            "name: w\nstates: {initial: a, a: {command: x}}\n",
            "name: w\ninputs: {x: {type: string}}\nstates: {initial: a, a: {type: terminal}}\n",
            "name: w\ninputs: [{name: x, type: float}]\nstates: {initial: a, a: {type: terminal}}\n",
            "name: w\nstates: {initial: a, a: {type: step, command: x, retry: {max_attempts: 0}}}\n",
            "name: w\nstates: {initial: a, a: {type: step, command: x, timeout: soon}}\n",
            "name: w\nstates: {initial: a, a: {type: step, comand: x}}\n",
            "name: w\nstates: {initial: a, a: {type: for_each, body: [b]}}\n",
        ] {
            assert!(valid(text).is_err(), "{text}");
        }
    }
}
