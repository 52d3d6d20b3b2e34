//! The inputs of a run: defaults, and whether the values fit.

use std::path::Path;

use indexmap::IndexMap;
use regex::Regex;
use serde_json::Value;

use super::{Input, InputKind, Workflow};
use crate::template::printed;

/// What is wrong with an input.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("inputs.{name}: {message}")]
pub struct InputError {
    /// The input.
    pub name: String,
    /// What is wrong.
    pub message: String,
}

/// The values of all inputs: those given, and defaults. Values of the command line stay texts; whether they read as
/// numbers or booleans is only checked. An input that is not declared is kept, as awf does.
///
/// # Errors
///
/// All that is wrong, in the order of the file.
pub fn resolve(
    workflow: &Workflow,
    given: &IndexMap<String, String>,
) -> Result<IndexMap<String, Value>, Vec<InputError>> {
    let mut values = IndexMap::new();
    let mut errors = Vec::new();
    for input in &workflow.inputs {
        let value = match given.get(&input.name) {
            Some(given) => Some(Value::String(given.clone())),
            None => input.default.clone(),
        };
        let mut wrong = |message: String| {
            errors.push(InputError {
                name: input.name.clone(),
                message,
            });
        };
        let empty = match &value {
            None | Some(Value::Null) => true,
            Some(Value::String(text)) => text.is_empty(),
            Some(_) => false,
        };
        if empty && input.required {
            wrong("required but not provided".to_owned());
            continue;
        }
        let Some(value) = value else {
            continue;
        };
        if !empty {
            fits(input, &printed(&value))
                .into_iter()
                .for_each(&mut wrong);
        }
        values.insert(input.name.clone(), value);
    }
    for (name, value) in given {
        if !values.contains_key(name) && !workflow.inputs.iter().any(|input| input.name == *name) {
            values.insert(name.clone(), Value::String(value.clone()));
        }
    }
    if errors.is_empty() {
        Ok(values)
    } else {
        Err(errors)
    }
}

/// A boolean as inputs write it.
pub(crate) fn boolean(text: &str) -> Option<bool> {
    match text.to_ascii_lowercase().as_str() {
        "true" | "yes" | "1" => Some(true),
        "false" | "no" | "0" => Some(false),
        _ => None,
    }
}

/// What is wrong with a value of an input.
pub(crate) fn fits(input: &Input, text: &str) -> Vec<String> {
    let mut wrong = Vec::new();
    let shown: String = text.chars().take(200).collect();
    let rules = &input.validation;
    match input.kind {
        InputKind::String => {}
        InputKind::Integer => match text.trim().parse::<i64>() {
            Ok(number) => {
                if let Some(min) = rules.min.filter(|min| number < *min) {
                    wrong.push(format!("value {number} is less than minimum {min}"));
                }
                if let Some(max) = rules.max.filter(|max| number > *max) {
                    wrong.push(format!("value {number} exceeds maximum {max}"));
                }
            }
            Err(_) => wrong.push(format!("value {shown:?} is not an integer")),
        },
        InputKind::Boolean => {
            if boolean(text).is_none() {
                wrong.push(format!(
                    "value {shown:?} is not a boolean (true, yes, 1, false, no, 0)"
                ));
            }
        }
    }
    if let Some(pattern) = &rules.pattern {
        match Regex::new(&pattern.text) {
            Ok(regex) if regex.is_match(text) => {}
            Ok(_) => wrong.push(format!(
                "value {shown:?} does not match pattern {:?}",
                pattern.text
            )),
            Err(_) => wrong.push(format!("pattern {:?} cannot be read", pattern.text)),
        }
    }
    if !rules.allowed.is_empty() && !rules.allowed.iter().any(|allowed| allowed == text) {
        wrong.push(format!(
            "value {shown:?} not in allowed values [{}]",
            rules.allowed.join(" ")
        ));
    }
    if rules.file_exists && !Path::new(text).is_file() {
        wrong.push(format!("file {shown:?} does not exist"));
    }
    if !rules.file_extension.is_empty() {
        let ends = |ending: &String| {
            let ending = ending.trim_start_matches('.');
            let own = Path::new(text).extension().and_then(|own| own.to_str());
            own.is_some_and(|own| own.eq_ignore_ascii_case(ending))
        };
        if !rules.file_extension.iter().any(ends) {
            wrong.push(format!(
                "file {shown:?} does not end in one of [{}]",
                rules.file_extension.join(" ")
            ));
        }
    }
    wrong
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use serde_json::json;

    use super::*;
    use crate::definition::load::parse;
    use crate::definition::places::Places;

    fn workflow() -> Workflow {
        let text = r#"
name: w
inputs:
  - {name: id, required: true, validation: {pattern: "^[a-z]+$"}}
  - {name: env, default: dev, validation: {enum: [dev, prod]}}
  - {name: n, type: integer, default: 3, validation: {min: 1, max: 9}}
  - {name: yes, type: boolean}
  - {name: file, validation: {file_exists: true, file_extension: [.md]}}
states:
  initial: end
  end: {type: terminal}
"#;
        parse(text, Path::new("w.yaml"), &Places::default())
            .unwrap_or_else(|found| panic!("{found}"))
            .workflow
    }

    fn given(pairs: &[(&str, &str)]) -> IndexMap<String, String> {
        pairs
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect()
    }

    #[test]
    fn defaults_fill_in_and_values_stay_as_they_were_given() {
        let values = resolve(
            &workflow(),
            &given(&[("id", "abc"), ("n", "7"), ("more", "x")]),
        );
        assert_eq!(
            serde_json::to_value(values.unwrap()).unwrap(),
            json!({"id": "abc", "env": "dev", "n": "7", "more": "x"})
        );
    }

    #[test]
    fn all_errors_are_said_together() {
        let wrong = [
            ("id", ""),
            ("env", "test"),
            ("n", "12"),
            ("yes", "maybe"),
            ("file", "/no/such.txt"),
        ];
        let errors = resolve(&workflow(), &given(&wrong)).expect_err("they are wrong");
        let said: Vec<String> = errors.iter().map(ToString::to_string).collect();
        assert_eq!(
            said,
            [
                "inputs.id: required but not provided",
                "inputs.env: value \"test\" not in allowed values [dev prod]",
                "inputs.n: value 12 exceeds maximum 9",
                "inputs.yes: value \"maybe\" is not a boolean (true, yes, 1, false, no, 0)",
                "inputs.file: file \"/no/such.txt\" does not exist",
                "inputs.file: file \"/no/such.txt\" does not end in one of [.md]",
            ]
        );
    }

    #[test]
    fn values_are_checked_by_their_type() {
        for (name, value, fine) in [
            ("n", "5", true),
            ("n", "five", false),
            ("n", "0", false),
            ("yes", "NO", true),
            ("yes", "1", true),
            ("id", "ABC", false),
        ] {
            let given = given(&[("id", "abc"), (name, value)]);
            assert_eq!(resolve(&workflow(), &given).is_ok(), fine, "{name}={value}");
        }
    }
}
