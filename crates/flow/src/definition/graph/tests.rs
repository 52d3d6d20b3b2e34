use std::path::Path;

use super::{Format, render};
use crate::definition::Workflow;
use crate::definition::load::parse;
use crate::definition::places::Places;

fn workflow(text: &str) -> Workflow {
    parse(text, Path::new("w.yaml"), &Places::default())
        .unwrap_or_else(|found| panic!("{found}"))
        .workflow
}

const RELEASE: &str = r#"
name: release
states:
  initial: build
  build:
    type: command
    command: make
    transitions:
      - {when: states.build.ExitCode == 0, goto: checks}
      - {goto: fix}
  fix: {type: agent, provider: claude, prompt: fix it, on_success: build, on_failure: bad}
  checks: {type: parallel, parallel: [lint, test], on_success: consent, on_failure: {message: no, status: 3}}
  lint: {type: command, command: lint}
  test: {type: command, command: test}
  consent: {type: approval, message: "go?", on_success: publish, on_failure: bad}
  publish: {type: for_each, items: [a], body: [push], on_complete: tell}
  push: {type: operation, operation: http.request, inputs: {}}
  tell: {type: call_workflow, workflow: announce, on_success: good}
  good: {type: terminal}
  bad: {type: terminal, status: failure}
"#;

#[test]
fn a_workflow_is_drawn_in_each_format() {
    let workflow = workflow(RELEASE);
    for (name, format) in [
        ("mermaid", Format::Mermaid),
        ("dot", Format::Dot),
        ("svg", Format::Svg),
        ("text", Format::Text),
    ] {
        assert_eq!(name.parse(), Ok(format));
        insta::assert_snapshot!(name, render(&workflow, format));
    }
    assert!("png".parse::<Format>().is_err());
}

#[test]
fn names_cannot_become_syntax_in_any_format() {
    let hostile = r#"
name: "x\"]; evil -> y; <script>"
states:
  initial: "a\"]; click n0 href \"javascript:alert(1)\""
  "a\"]; click n0 href \"javascript:alert(1)\"":
    type: command
    command: x
    transitions:
      - {when: "inputs.x == \"</text><script>alert(1)</script>\"", goto: "<b>&\\"}
      - {goto: "<b>&\\"}
  "<b>&\\": {type: terminal}
"#;
    let workflow = workflow(hostile);
    let mermaid = render(&workflow, Format::Mermaid);
    for line in mermaid.lines() {
        assert!(
            line.matches('"').count() % 2 == 0 && line.matches('"').count() <= 2,
            "{line}"
        );
        assert!(
            !line.contains("<script") && !line.contains("click n0 href \""),
            "{line}"
        );
    }
    let dot = render(&workflow, Format::Dot);
    for line in dot.lines() {
        let plain = line.replace("\\\\", "").replace("\\\"", "");
        assert!(plain.matches('"').count() % 2 == 0, "{line}");
        let outside: String = plain.split('"').step_by(2).collect();
        assert!(
            !outside.contains("evil") && !outside.contains("click"),
            "{line}"
        );
    }
    let svg = render(&workflow, Format::Svg);
    assert!(!svg.contains("<script") && !svg.contains("<b>"), "{svg}");
    let text = render(&workflow, Format::Text);
    assert!(text.lines().count() < 10, "{text}");
}

#[test]
fn a_long_chain_and_a_circle_are_drawn() {
    use std::fmt::Write as _;
    let mut text = String::from("name: w\nstates:\n  initial: s0\n");
    for at in 0..3000 {
        writeln!(
            text,
            "  s{at}: {{type: command, command: x, on_success: s{}, on_failure: s0}}",
            at + 1
        )
        .unwrap();
    }
    text.push_str("  s3000: {type: terminal}\n");
    let workflow = workflow(&text);
    for format in [Format::Mermaid, Format::Dot, Format::Svg, Format::Text] {
        assert!(render(&workflow, format).contains("s2999"));
    }
}
