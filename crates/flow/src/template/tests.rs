use proptest::prelude::*;
use serde_json::{Value, json};

use super::{Template, Variables, fill, render};
use crate::definition::{At, Text};

struct Vars(Value);

impl Variables for Vars {
    fn value(&self, path: &[&str]) -> Option<Value> {
        path.iter()
            .try_fold(&self.0, |value, name| value.get(*name))
            .cloned()
    }
}

fn data() -> Value {
    json!({
        "inputs": {"name": "quipu", "n": 5, "f": 2.5, "yes": true, "no": false, "empty": "",
                   "list": ["a", "b", "c"], "nested": {"b": 1, "a": {"deep": "x"}}, "none": null,
                   "quote": "it's", "csv": "a, b ,c", "my-name": "dash", "big": 1e21},
        "states": {"build": {"Output": "ok\n", "ExitCode": 0, "JSON": {"items": [{"id": 1}, {"id": 2}]}}},
        "env": {"HOME": "/root"},
        "loop": {"Index": 1},
    })
}

fn filled(text: &str) -> String {
    render(&Text::new(text), &Vars(data())).unwrap_or_else(|error| panic!("{text}: {error}"))
}

fn error(text: &str) -> String {
    let text = Text {
        text: text.to_owned(),
        at: At { line: 3, column: 5 },
    };
    render(&text, &Vars(data()))
        .expect_err(&text.text)
        .to_string()
}

#[test]
fn both_spellings_of_a_path_are_filled_in() {
    for (text, expected) in [
        ("no template", "no template"),
        ("{{.inputs.name}}", "quipu"),
        ("{{inputs.name}}", "quipu"),
        ("a {{ .states.build.ExitCode }} b", "a 0 b"),
        ("{{states.build.Output}}", "ok\n"),
        ("{{.inputs.my-name}}{{inputs.my-name}}", "dashdash"),
        ("{{$.inputs.name}}", "quipu"),
        ("{{.states.build.JSON.items}}", r#"[{"id":1},{"id":2}]"#),
        ("{{(index .states.build.JSON.items 1).id}}", "2"),
        ("{{.inputs.none}}", "<no value>"),
        ("}} {", "}} {"),
    ] {
        assert_eq!(filled(text), expected, "{text}");
    }
}

#[test]
fn functions_give_what_they_promise() {
    for (text, expected) in [
        ("{{escape .inputs.name}}", "quipu"),
        ("{{escape .inputs.quote}}", r"'it'\''s'"),
        ("{{escape \"\"}}", "''"),
        ("{{json .inputs.nested}}", r#"{"a":{"deep":"x"},"b":1}"#),
        ("{{json .inputs.name}}", "\"quipu\""),
        ("{{split .inputs.csv \",\"}}", r#"["a","b","c"]"#),
        ("{{join (split .inputs.csv \",\") \"-\"}}", "a-b-c"),
        (
            "{{.states.build.Output | trimSpace | printf \"%q\"}}",
            "\"ok\"",
        ),
        ("{{len .inputs.list}} {{len .inputs.name}}", "3 5"),
        (
            "{{slice .inputs.name 1 3}} {{slice .inputs.list 2}}",
            "ui [\"c\"]",
        ),
        ("{{index .inputs \"my-name\"}}", "dash"),
        (
            "{{not .inputs.no}} {{and 1 0 2}} {{or 0 \"\" \"x\"}}",
            "true 0 x",
        ),
        ("{{and false (index .inputs.list 9)}}", "false"),
        (
            "{{eq .inputs.n 1 5}} {{ne .inputs.n 5}} {{lt 1 2.5}} {{ge \"b\" \"a\"}}",
            "true false true true",
        ),
        ("{{print 1 2 \"a\" 3}}|{{println \"a\" 1}}", "1 2a3|a 1\n"),
        (
            "{{printf \"%05d|%-4s|%4s|%.2f|%x|%v|%t|%+d|%%\" 42 \"a\" \"b\" 2.5 255 .inputs.list true 3}}",
            "00042|a   |   b|2.50|ff|[\"a\",\"b\",\"c\"]|true|+3|%",
        ),
        (
            "{{.inputs.big}} {{.inputs.f}} {{1.0}} {{'a'}} {{0x10}} {{`raw`}}",
            "1e+21 2.5 1 97 16 raw",
        ),
    ] {
        assert_eq!(filled(text), expected, "{text}");
    }
}

#[test]
fn control_words_variables_and_trimming_work() {
    for (text, expected) in [
        ("{{if .inputs.yes}}y{{else}}n{{end}}", "y"),
        (
            "{{if .inputs.no}}y{{else if eq .inputs.n 5}}five{{else}}n{{end}}",
            "five",
        ),
        ("{{if .inputs.empty}}y{{end}}", ""),
        ("{{range .inputs.list}}<{{.}}>{{end}}", "<a><b><c>"),
        (
            "{{range $i, $x := .inputs.list}}{{$i}}={{$x}} {{end}}",
            "0=a 1=b 2=c ",
        ),
        ("{{range $k, $v := .inputs.nested}}{{$k}} {{end}}", "a b "),
        (
            "{{range .states.build.JSON.items}}{{.id}}{{$.inputs.name}}{{end}}",
            "1quipu2quipu",
        ),
        ("{{range .inputs.none}}x{{else}}empty{{end}}", "empty"),
        (
            "{{range .inputs.list}}{{if eq . \"b\"}}{{continue}}{{end}}{{.}}{{end}}",
            "ac",
        ),
        (
            "{{range .inputs.list}}{{if eq . \"b\"}}{{break}}{{end}}{{.}}{{end}}",
            "a",
        ),
        ("{{range 3}}{{.}}{{end}}", "012"),
        (
            "{{with .inputs.nested}}{{.b}}{{end}}{{with .inputs.empty}}x{{else}}none{{end}}",
            "1none",
        ),
        ("{{with $x := .inputs.name}}{{$x}}{{end}}", "quipu"),
        ("{{$x := 1}}{{if true}}{{$x = 2}}{{end}}{{$x}}", "2"),
        ("a  {{- .inputs.n -}}  b", "a5b"),
        (
            "a {{/* a remark with }} in it */}} b {{- /* x */ -}} c",
            "a  bc",
        ),
        ("{{-3}}", "-3"),
        ("{{ .inputs.name | printf \"%s-%s\" \"x\" }}", "x-quipu"),
    ] {
        assert_eq!(filled(text), expected, "{text}");
    }
}

#[test]
fn one_single_action_gives_its_value_with_its_type() {
    let eval = |text: &str| {
        let template = Template::parse(&Text::new(text)).unwrap();
        template.eval(&Vars(data())).unwrap()
    };
    assert_eq!(eval("{{.inputs.n}}"), json!(5));
    assert_eq!(eval("{{.inputs.list}}"), json!(["a", "b", "c"]));
    assert_eq!(eval(" {{.inputs.n}}"), json!(" 5"));
    assert_eq!(eval("{{.inputs.n}}{{.inputs.n}}"), json!("55"));
    let value =
        json!({"a": "{{.inputs.n}}", "b": ["x {{.inputs.name}}", 1, null], "c": {"d": "plain"}});
    assert_eq!(
        fill(&value, &Vars(data())).unwrap(),
        json!({"a": 5, "b": ["x quipu", 1, null], "c": {"d": "plain"}})
    );
}

#[test]
fn errors_name_the_place_and_what_may_be_meant() {
    for (text, expected) in [
        (
            "{{.inputs.nmae}}",
            "line 3, column 7: undefined variable: inputs.nmae; did you mean `name`?",
        ),
        (
            "a\n  {{inputs.missing}}",
            "line 4, column 9: undefined variable: inputs.missing",
        ),
        (
            "{{.input.name}}",
            "line 3, column 7: undefined variable: input.name; did you mean `inputs`?",
        ),
        (
            "{{.states.biuld.Output}}",
            "line 3, column 7: undefined variable: states.biuld.Output; did you mean `build`?",
        ),
        ("{{.inputs.name", "line 3, column 5: this {{ has no }}"),
        (
            "{{if .inputs.yes}}",
            "line 3, column 5: this if has no {{end}}",
        ),
        (
            "{{end}}",
            "line 3, column 5: {{end}} belongs to no if, range or with",
        ),
        (
            "{{upper .inputs.name}}",
            "line 3, column 7: upper is not a function; to take an input, write {{.inputs.upper}}",
        ),
        (
            "{{trimspace .inputs.name}}",
            "line 3, column 7: trimspace is not a function; did you mean `trimSpace`?",
        ),
        (
            "{{.inputs.name | .inputs.n}}",
            "line 3, column 22: a function must come after |",
        ),
        (
            "{{define \"x\"}}{{end}}",
            "line 3, column 5: define is not available in workflow files",
        ),
        (
            "{{index .inputs.list 7}}",
            "line 3, column 7: index: 7 is not in a list of 3",
        ),
        (
            "{{eq .inputs.n \"5\"}}",
            "line 3, column 7: eq: a whole number and a text cannot be compared",
        ),
        ("{{$gone}}", "line 3, column 7: undefined variable: $gone"),
        (
            "{{.inputs.name.deep}}",
            "line 3, column 7: undefined variable: inputs.name.deep",
        ),
        (
            "{{break}}",
            "line 3, column 5: break belongs inside a range",
        ),
        (
            "{{readFile \"/no/such/file\"}}",
            "line 3, column 7: readFile: cannot read /no/such/file: No such file or directory (os error 2)",
        ),
        ("{{}}", "line 3, column 7: a value is missing here"),
        (
            "{{printf \"%d\" \"a\"}}",
            "line 3, column 7: printf: %d does not take a text",
        ),
        (
            "{{range .inputs.name}}{{end}}",
            "line 3, column 13: range goes over lists and maps, not over a text",
        ),
    ] {
        assert_eq!(error(text), expected, "{text}");
    }
}

#[test]
fn a_file_is_read_up_to_its_limit() {
    use std::io::Write as _;
    let dir = tempfile::tempdir().unwrap();
    let mut file = std::fs::File::create(dir.path().join("f")).unwrap();
    file.write_all(b"text").unwrap();
    let vars = Vars(json!({"context": {"WorkingDir": dir.path().to_str().unwrap()}}));
    let read = || render(&Text::new("{{readFile \"f\"}}"), &vars);
    assert_eq!(read().unwrap(), "text");
    file.write_all(&vec![b'x'; 1 << 20]).unwrap();
    assert!(read().unwrap_err().message.contains("larger than 1 MiB"));
}

#[test]
fn hostile_templates_end_in_an_error() {
    let nested = "{{if true}}".repeat(2_000) + &"{{end}}".repeat(2_000);
    assert!(error(&nested).contains("nested deeper"));
    let parens = format!("{{{{{}1{}}}}}", "(".repeat(5_000), ")".repeat(5_000));
    assert!(error(&parens).contains("nested deeper"));
    assert!(error("{{range 2000000}}{{end}}").contains("iterations"));
    assert!(error("{{range 2000}}{{range 2000}}{{end}}{{end}}").contains("iterations"));
    assert!(error("{{range 900000}}{{printf \"%9999d\" 1}}{{end}}").contains("64 MiB"));
    assert!(error("{{printf \"%99999999999d\" 1}}").contains("width"));
}

#[test]
fn the_paths_of_a_template_are_found_with_their_places() {
    let text = Text {
        text: "{{.inputs.a}}\n{{range .states.s.JSON}}{{.x}}{{$.env.HOME}}{{loop.index}}{{end}}"
            .to_owned(),
        at: At { line: 2, column: 3 },
    };
    let found: Vec<(String, u32, u32)> = Template::parse(&text)
        .unwrap()
        .references()
        .into_iter()
        .map(|(reference, at)| (reference.path.join("."), at.line, at.column))
        .collect();
    assert_eq!(
        found,
        [
            ("inputs.a".to_owned(), 2, 5),
            ("states.s.JSON".to_owned(), 3, 11),
            ("env.HOME".to_owned(), 3, 35),
            ("loop.index".to_owned(), 3, 49),
        ]
    );
}

/// The same data for the other evaluator.
fn oracle(text: &str) -> Option<String> {
    use gtmpl_ng::Value as Other;
    fn convert(value: &Value) -> Other {
        match value {
            Value::Null => Other::Nil,
            Value::Bool(yes) => Other::Bool(*yes),
            Value::Number(number) if number.is_i64() => Other::from(number.as_i64().unwrap()),
            Value::Number(number) => Other::from(number.as_f64().unwrap()),
            Value::String(text) => Other::String(text.clone()),
            Value::Array(items) => Other::Array(items.iter().map(convert).collect()),
            Value::Object(map) => Other::Object(
                map.iter()
                    .map(|(key, value)| (key.clone(), convert(value)))
                    .collect(),
            ),
        }
    }
    gtmpl_ng::template(text, convert(&data())).ok()
}

#[test]
fn the_other_evaluator_gives_the_same_for_the_common_language() {
    for text in [
        "plain",
        "{{.inputs.name}} and {{.inputs.n}}",
        "{{if .inputs.yes}}y{{else}}n{{end}}",
        "{{if .inputs.no}}y{{else}}n{{end}}",
        "{{range .inputs.list}}<{{.}}>{{end}}",
        "{{range $i, $x := .inputs.list}}{{$i}}{{$x}}{{end}}",
        "{{with .inputs.name}}[{{.}}]{{end}}",
        "{{$x := .inputs.name}}{{$x}}",
        "a {{- .inputs.n -}} b",
        "{{len .inputs.list}}",
        "{{index .inputs.list 1}}",
        "{{eq .inputs.n 5}} {{lt 1 2}} {{and true false}} {{or false true}} {{not true}}",
        "{{printf \"%s-%d\" .inputs.name 3}}",
        "{{/* remark */}}x",
        "{{.inputs.name | printf \"%s!\"}}",
        "{{if and .inputs.yes (eq .inputs.name \"quipu\")}}both{{end}}",
    ] {
        assert_eq!(Some(filled(text)), oracle(text), "{text}");
    }
}

/// Templates of the part of the language that both evaluators have.
fn common() -> impl Strategy<Value = String> {
    let plain = "[a-z \n]{0,6}";
    let value = prop_oneof![
        Just("$.inputs.name".to_owned()),
        Just("$.inputs.n".to_owned()),
        Just("$.inputs.yes".to_owned()),
        Just("$.inputs.no".to_owned()),
        Just("$.inputs.empty".to_owned()),
        Just("(len $.inputs.list)".to_owned()),
        Just("(index $.inputs.list 1)".to_owned()),
        Just("(eq $.inputs.n 5)".to_owned()),
        "[a-z]{0,5}".prop_map(|text| format!("{text:?}")),
        (0_i64..100).prop_map(|number| number.to_string()),
    ];
    let action =
        (value.clone(), any::<bool>(), any::<bool>()).prop_map(|(value, before, after)| {
            let (before, after) = (
                if before { "- " } else { " " },
                if after { " -" } else { " " },
            );
            format!("{{{{{before}{value}{after}}}}}")
        });
    let leaf = prop_oneof![plain.prop_map(String::from), action];
    leaf.prop_recursive(3, 24, 4, move |inner| {
        let many = prop::collection::vec(inner, 0..4).prop_map(|parts| parts.concat());
        prop_oneof![
            many.clone(),
            (value.clone(), many.clone(), many.clone()).prop_map(|(condition, yes, no)| {
                format!("{{{{if {condition}}}}}{yes}{{{{else}}}}{no}{{{{end}}}}")
            }),
            many.prop_map(|body| {
                format!("{{{{range $x := $.inputs.list}}}}{{{{$x}}}}{body}{{{{end}}}}")
            }),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn random_templates_give_what_the_other_evaluator_gives(text in common()) {
        prop_assert_eq!(Some(filled(&text)), oracle(&text));
    }

    #[test]
    fn any_text_is_a_template_or_an_error(text in "(\\{\\{|\\}\\}|[-. $a-z\"'`|()=:,0-9\n/*é]|if |end|range |inputs|else){0,24}") {
        let text = Text::new(text);
        if let Ok(template) = Template::parse(&text) {
            template.render(&Vars(data())).ok();
            template.references();
        }
    }
}
