use serde_json::{Value, json};

use super::{Expression, number};
use crate::definition::{At, Text};
use crate::template::Variables;

struct Vars(Value);

impl Variables for Vars {
    fn value(&self, path: &[&str]) -> Option<Value> {
        path.iter()
            .try_fold(&self.0, |value, name| value.get(*name))
            .cloned()
    }
}

fn vars() -> Vars {
    Vars(json!({
        "inputs": {"n": "5", "ratio": "2.5", "debug": "true", "name": "quipu", "off": "false", "list": ["a", "b"]},
        "states": {
            "build": {"Output": "all ok\n", "ExitCode": 0, "Status": "completed",
                      "JSON": {"items": [{"name": "x"}], "count": 3}},
            "my-step": {"ExitCode": 2},
        },
        "env": {"HOME": "/root"},
        "loop": {"index": 1, "last": false},
        "workflow": {"Name": "w"},
    }))
}

fn holds(text: &str) -> bool {
    Expression::parse(&Text::new(text))
        .and_then(|expression| expression.eval_bool(&vars()))
        .unwrap_or_else(|error| panic!("{text}: {error}"))
}

fn error(text: &str) -> String {
    let text = Text {
        text: text.to_owned(),
        at: At { line: 7, column: 9 },
    };
    Expression::parse(&text)
        .and_then(|expression| expression.eval_bool(&vars()))
        .expect_err(&text.text)
        .to_string()
}

#[test]
fn conditions_of_workflow_files_hold_or_do_not() {
    for (text, expected) in [
        ("inputs.n > 3", true),
        ("inputs.n == 5 && inputs.ratio < 3", true),
        ("inputs.debug", true),
        ("!inputs.off", true),
        ("inputs.name == \"quipu\"", true),
        ("inputs.name in [\"a\", \"quipu\"]", true),
        ("\"a\" in inputs.list", true),
        ("states.build.ExitCode == 0", true),
        ("states.build.Output contains \"ok\"", true),
        ("contains(states.build.Output, \"ok\")", true),
        ("not contains(states.build.Output, 'no')", true),
        (
            "has_prefix(inputs.name, \"qui\") and has_suffix(inputs.name, \"pu\")",
            true,
        ),
        ("states['my-step'].ExitCode == 2", true),
        ("states[\"build\"].Status == \"completed\"", true),
        ("states.build.JSON.count == 3", true),
        ("states.build.JSON.items[0].name == \"x\"", true),
        ("len(states.build.JSON.items) == 1", true),
        ("states.build.Output matches \"^all\"", true),
        ("env.HOME startsWith \"/\"", true),
        ("loop.index == 1 ? !loop.last : false", true),
        ("workflow.Name == 'w' // a remark", true),
        ("inputs?.name != nil", true),
        ("inputs.n > 3 or inputs.n < 1", true),
        ("states.build.ExitCode != 0", false),
    ] {
        assert_eq!(holds(text), expected, "{text}");
    }
}

#[test]
fn a_comparison_with_a_missing_value_is_false() {
    for text in [
        "inputs.gone",
        "inputs.gone > 3",
        "inputs.gone < 3",
        "inputs.gone == 3",
        "env.GONE contains \"a\"",
        "states.gone.ExitCode == 0",
        "states.gone.ExitCode > 0",
        "states.gone.Output contains \"ok\"",
        "contains(states.gone.Output, \"ok\")",
        "states.build.JSON.gone.deeper == 1",
        "inputs.gone && inputs.debug",
    ] {
        assert!(!holds(text), "{text}");
    }
    for text in [
        "!inputs.gone",
        "inputs.gone == nil",
        "inputs.gone != \"a\"",
        "inputs.gone > 3 || states.build.ExitCode == 0",
        "(inputs.gone ?? 4) == 4",
    ] {
        assert!(holds(text), "{text}");
    }
}

#[test]
fn errors_name_their_place() {
    assert_eq!(
        error("inputs.n >"),
        "line 7, column 19: the expression ends too early"
    );
    assert_eq!(
        error("inputs.n == 1 }"),
        "line 7, column 23: not an expression from here: \"}\""
    );
    assert_eq!(
        error("inputs.n + 1"),
        "line 7, column 9: the result is a number, and true or false is needed"
    );
    assert_eq!(
        error("true and loop.item.x > 1"),
        "line 7, column 18: undefined variable: loop.item.x"
    );
    assert!(error("{{inputs.n}} > 1").contains("without {{ and }}"));
}

#[test]
fn hostile_expressions_are_refused_and_do_not_overflow() {
    for text in [
        "(".repeat(10_000),
        "!".repeat(10_000) + "true",
        "not ".repeat(3_000) + "true",
        "-".repeat(10_000) + "1",
        "len(1..1000000000000) > 0".to_owned(),
        "[".repeat(9_000),
        "a ? ".repeat(3_000),
        "$env.x".to_owned(),
        "inputs.list[".repeat(40) + "0" + &"]".repeat(40),
        "true &&".repeat(10_000),
    ] {
        let text = Text::new(text);
        assert!(Expression::parse(&text).is_err(), "{:.20}", text.text);
    }
    assert!(error("len(repeat('x', 1000000000)) > 0").contains("repeat"));
    assert!(holds("repeat('ab', 2) == 'abab'"));
    let long = "true && ".repeat(1_000) + "true";
    assert!(holds(&long));
}

#[test]
fn the_paths_of_an_expression_are_found() {
    let text = Text::new("states.a.ExitCode == 0 && \"inputs.no\" != inputs['x y'] // env.no");
    let expression = Expression::parse(&text).unwrap();
    let paths: Vec<String> = expression
        .references()
        .iter()
        .map(|(path, _)| path.join("/"))
        .collect();
    assert_eq!(paths, ["inputs/x y", "states/a/ExitCode"]);
}

#[test]
fn whole_numbers_are_worked_out_from_templates() {
    for (text, expected) in [
        ("10", 10),
        ("{{.inputs.n}}", 5),
        ("{{inputs.n}} * 2 + 1", 11),
        ("({{.inputs.n}} - 2) * -3", -9),
        ("7 / 2", 3),
        ("7 % 4", 3),
    ] {
        assert_eq!(number(&Text::new(text), &vars()), Ok(expected), "{text}");
    }
    for text in [
        "",
        "a",
        "1 +",
        "1.5",
        "1 / 0",
        "{{.inputs.gone}}",
        "9223372036854775807 + 1",
        "2 2",
        "(1",
    ] {
        assert!(number(&Text::new(text), &vars()).is_err(), "{text}");
    }
    let deep = Text::new("(".repeat(100_000));
    assert!(number(&deep, &vars()).is_err());
}
