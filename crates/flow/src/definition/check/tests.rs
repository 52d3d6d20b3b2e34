use std::path::Path;

use super::check;
use crate::definition::load::{load, parse};
use crate::definition::places::Places;
use crate::definition::{Diagnostic, Severity};

fn places() -> Places {
    Places::from_lookup(Path::new("/nowhere"), |_| None)
}

/// All findings of a file, one after the other.
fn found_in(text: &str) -> Vec<Diagnostic> {
    match parse(text, Path::new("w.yaml"), &places()) {
        Ok(loaded) => {
            let mut found = loaded.warnings;
            found.extend(check(&loaded.workflow, &places()));
            found
        }
        Err(found) => found.0,
    }
}

fn said(found: &[Diagnostic]) -> String {
    let lines: Vec<String> = found.iter().map(ToString::to_string).collect();
    lines.join("\n")
}

/// Findings of a workflow whose states are given, without its head.
fn states(text: &str) -> String {
    said(&found_in(&format!(
        "name: w\ninputs: [{{name: x}}]\nstates:\n{text}"
    )))
}

#[test]
fn a_file_with_many_mistakes_gets_all_its_findings_at_once() {
    let found = found_in(include_str!("mistakes.yaml"));
    let errors = found
        .iter()
        .filter(|found| found.severity == Severity::Error)
        .count();
    assert!(errors >= 25, "{errors} errors");
    insta::assert_snapshot!(said(&found));
}

#[test]
fn a_file_with_every_key_has_no_errors() {
    let found = found_in(include_str!("../load/everything.yaml"));
    let errors: Vec<&Diagnostic> = found
        .iter()
        .filter(|found| found.severity == Severity::Error)
        .collect();
    assert!(errors.is_empty(), "{}", said(&found));
    let codes: Vec<&str> = found.iter().map(|found| found.code).collect();
    assert_eq!(codes, ["missing-file"; 4], "{}", said(&found));
}

#[test]
fn a_way_that_goes_round_for_ever_is_an_error() {
    let endless = states(
        "  initial: a\n  a: {type: command, command: x, on_success: b}\n  b: {type: command, command: x, on_success: a}\n  end: {type: terminal}\n",
    );
    assert!(
        endless.contains("w.yaml:5:3: error: no way leads from step a to an end: a, b"),
        "{endless}"
    );
    let fine = states(
        "  initial: a\n  a: {type: command, command: x, on_success: b}\n  b: {type: command, command: x, transitions: [{when: inputs.x == 1, goto: end}, {goto: a}]}\n  end: {type: terminal}\n",
    );
    assert_eq!(fine, "");
    let inline = states(
        "  initial: a\n  a: {type: command, command: x, on_success: a, on_failure: {message: over}}\n  end: {type: terminal}\n",
    );
    assert!(!inline.contains("no way leads"), "{inline}");
    let loops = states(
        "  initial: a\n  a: {type: while, while: \"true\", body: [b, c], on_complete: end}\n  b: {type: command, command: x}\n  c: {type: command, command: x, on_success: b}\n  end: {type: terminal}\n",
    );
    assert_eq!(loops, "");
}

#[test]
fn steps_that_no_run_reaches_are_named() {
    let found = states(
        "  initial: end\n  end: {type: terminal}\n  lost: {type: command, command: x, on_success: end}\n",
    );
    assert_eq!(found, "w.yaml:6:3: warning: no run reaches step lost");
}

#[test]
fn a_step_that_is_named_before_it_can_have_run_is_a_warning() {
    let found = states(
        "  initial: a\n  a: {type: command, command: \"{{.states.b.Output}}\", on_success: b}\n  b: {type: command, command: \"{{.states.a.Output}} {{.states.b.Output}}\", on_success: end}\n  end: {type: terminal, message: \"{{.states.b.exit_code}}\"}\n",
    );
    assert_eq!(
        found,
        "w.yaml:5:34: warning: step b has not run when this is worked out\nw.yaml:6:55: warning: step b names itself before it has run"
    );
}

#[test]
fn names_that_nothing_defines_are_found_in_every_place() {
    for (step, expected) in [
        (
            "command: \"{{.states.gone.Output}}\"",
            "there is no step gone",
        ),
        (
            "command: \"{{.states.a.Outptu}}\"",
            "did you mean `Output`?",
        ),
        (
            "command: \"{{.context.working_dirs}}\"",
            "context has no working_dirs",
        ),
        (
            "command: \"{{.awf.prompt_dir}}\"",
            "did you mean `prompts_dir`?",
        ),
        ("command: \"{{.workflow.Nmae}}\"", "did you mean `Name`?"),
        ("command: \"{{.inptus.x}}\"", "did you mean `inputs`?"),
        ("command: \"{{.loop.Item}}\"", "in the body of a loop only"),
        ("command: \"{{.error.Message}}\"", "`on_failure` only"),
        ("command: \"{{.parameters.x}}\"", "this is not one"),
        (
            "command: x, dir: \"{{.states.gone}}\"",
            "there is no step gone",
        ),
        (
            "command: x, env: {A: \"{{.states.gone}}\"}",
            "there is no step gone",
        ),
        (
            "command: x, on_failure: {message: \"{{.states.gone}}\"}",
            "there is no step gone",
        ),
        (
            "command: x, hooks: {pre: [{log: \"{{.states.gone}}\"}]}",
            "there is no step gone",
        ),
        (
            "command: x, transitions: [{when: states.gone.ExitCode == 0, goto: end}]",
            "there is no step gone",
        ),
        (
            "command: x, transitions: [{when: \"states.my-step.ExitCode == 0\", goto: end}]",
            "write states[\"my-step\"]",
        ),
        ("command: \"{{.inputs.y}}\"", "the input y is not declared"),
        ("command: \"{{ .inputs.x \"", "this {{ has no }}"),
    ] {
        let found = states(&format!(
            "  initial: a\n  a: {{type: command, {step}, on_success: my-step}}\n  my-step: {{type: command, command: x, on_success: end}}\n  end: {{type: terminal}}\n"
        ));
        assert!(found.contains(expected), "{step}: {found}");
    }
}

#[test]
fn loops_inside_of_themselves_are_refused() {
    let found = states(
        "  initial: a\n  a: {type: for_each, items: [1], body: [b], on_complete: end}\n  b: {type: for_each, items: [1], body: [a]}\n  end: {type: terminal}\n",
    );
    assert!(found.contains("step a is inside of itself"), "{found}");
    let itself = states(
        "  initial: a\n  a: {type: parallel, parallel: [a], on_success: end}\n  end: {type: terminal}\n",
    );
    assert!(itself.contains("step a is inside of itself"), "{itself}");
}

#[test]
fn a_called_workflow_must_exist_and_take_what_it_is_given() {
    use std::io::Write as _;
    let dir = tempfile::tempdir().unwrap();
    let workflows = dir.path().join(".quipu/workflows");
    std::fs::create_dir_all(&workflows).unwrap();
    let write = |name: &str, text: &str| {
        let mut file = std::fs::File::create(workflows.join(name)).unwrap();
        file.write_all(text.as_bytes()).unwrap();
    };
    write(
        "child.yaml",
        "name: child\ninputs: [{name: need, required: true}, {name: may}]\nstates:\n  initial: end\n  end: {type: terminal}\n",
    );
    write(
        "back.yaml",
        "name: back\nstates:\n  initial: a\n  a: {type: call_workflow, workflow: top, on_success: end}\n  end: {type: terminal}\n",
    );
    let places = Places::from_lookup(dir.path(), |_| None);
    let with = |call: &str| {
        write(
            "top.yaml",
            &format!(
                "name: top\nstates:\n  initial: a\n  a: {{type: call_workflow, {call}, on_success: end}}\n  end: {{type: terminal}}\n"
            ),
        );
        let loaded = load(&workflows.join("top.yaml"), &places).unwrap();
        let messages: Vec<String> = check(&loaded.workflow, &places)
            .into_iter()
            .map(|found| found.message)
            .collect();
        messages.join("; ")
    };
    assert_eq!(
        with("workflow: child, inputs: {need: 1}, outputs: {o: end}"),
        ""
    );
    assert_eq!(with("workflow: \"{{.env.W}}\""), "");
    // Outputs are worked out over the values of the called workflow, whose steps are others.
    let output = |template: &str| {
        with(&format!(
            "workflow: child, inputs: {{need: 1}}, outputs: {{o: \"{template}\"}}"
        ))
    };
    assert_eq!(output("{{.states.end.Output}}!"), "");
    assert_eq!(output("{{.states.edn.Output}}"), "child has no step edn");
    assert!(
        output("{{.states.end").contains("}}"),
        "{}",
        output("{{.states.end")
    );
    assert_eq!(
        with("workflow: chid"),
        "there is no workflow chid; did you mean child?"
    );
    assert_eq!(
        with("workflow: child, inputs: {mey: 1}, outputs: {o: ende}"),
        "child needs the input need; child does not declare the input mey; child has no step ende"
    );
    assert_eq!(
        with("workflow: top"),
        "the workflow top leads back to this one"
    );
    assert_eq!(
        with("workflow: back"),
        "the workflow back leads back to this one"
    );
    assert!(with("workflow: ../../x").contains("may not contain .."));
}

#[test]
fn large_files_are_checked_in_linear_time() {
    use std::fmt::Write as _;
    let mut text = String::from("name: w\ninputs: [{name: x}]\nstates:\n  initial: s0\n");
    for at in 0..500 {
        let before = if at == 0 { 0 } else { at - 1 };
        write!(
            text,
            "  s{at}:\n    type: command\n    command: \"echo {{{{.inputs.x}}}} {{{{.states.s{before}.Output | trimSpace}}}}\"\n    transitions:\n      - {{when: states.s{at}.ExitCode == 0, goto: s{next}}}\n      - {{goto: s500}}\n",
            next = at + 1
        )
        .unwrap();
    }
    text.push_str("  s500: {type: terminal}\n");
    let began = std::time::Instant::now();
    let found = found_in(&text);
    let took = began.elapsed();
    assert_eq!(
        said(&found),
        "w.yaml:7:36: warning: step s0 names itself before it has run"
    );
    // Unoptimised; a release build is some twenty times faster.
    assert!(took < std::time::Duration::from_secs(2), "{took:?}");
}
