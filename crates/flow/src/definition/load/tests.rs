use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::super::{Action, Items, OnFailure, keys};
use super::{Loaded, parse};
use crate::definition::places::Places;

/// A workflow in which every key of the table occurs.
const EVERYTHING: &str = include_str!("everything.yaml");

pub(crate) fn loaded(text: &str) -> Loaded {
    parse(text, Path::new("w.yaml"), &Places::default()).unwrap_or_else(|found| panic!("{found}"))
}

fn findings(text: &str) -> Vec<String> {
    match parse(text, Path::new("w.yaml"), &Places::default()) {
        Ok(loaded) => loaded.warnings.iter().map(ToString::to_string).collect(),
        Err(found) => found.0.iter().map(ToString::to_string).collect(),
    }
}

/// A file with a directory of its own.
fn project(files: &[(&str, &str)]) -> (tempfile::TempDir, Places) {
    use std::io::Write as _;
    let dir = tempfile::tempdir().unwrap();
    for (path, text) in files {
        let path = dir.path().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        let mut file = std::fs::File::create(path).unwrap();
        file.write_all(text.as_bytes()).unwrap();
    }
    let places = Places::from_lookup(dir.path(), |_| None);
    (dir, places)
}

#[test]
fn every_key_of_the_table_is_read_without_a_warning() {
    let loaded = loaded(EVERYTHING);
    assert_eq!(loaded.warnings, []);
    let known = keys::OBJECTS
        .iter()
        .filter(|object| !object.name.contains("template") && object.name != "output")
        .copied()
        .chain(keys::KINDS.iter().map(|kind| &kind.object))
        .flat_map(|object| object.keys);
    for key in known {
        if matches!(key.name, "use_template" | "parameters") {
            continue;
        }
        assert!(
            EVERYTHING.contains(&format!("{}:", key.name)),
            "{} is not in the example",
            key.name
        );
    }
}

#[test]
fn a_step_is_read_with_its_places() {
    let workflow = loaded(EVERYTHING).workflow;
    let build = &workflow.steps["build"];
    assert_eq!(build.timeout, Some(Duration::from_millis(1500)));
    assert!(matches!(
        &build.on_failure,
        Some(OnFailure::Inline { status: 3, .. })
    ));
    let retry = build.retry.as_ref().unwrap();
    assert_eq!(retry.max_attempts, 3);
    assert_eq!(retry.initial_delay, Duration::from_millis(500));
    let Action::Command(command) = &build.action else {
        panic!("a command");
    };
    let command = command.command.as_ref().unwrap();
    let line = EVERYTHING
        .lines()
        .nth(command.at.line as usize - 1)
        .unwrap();
    assert!(line.trim_start().starts_with("make {{"), "{line}");
    assert_eq!(command.at.column as usize, line.find("make").unwrap() + 1);
    let Action::ForEach(each) = &workflow.steps["each"].action else {
        panic!("a loop");
    };
    assert!(matches!(&each.items, Items::List(items) if items.len() == 2));
}

#[test]
fn kinds_are_read_in_any_case_and_step_is_a_command() {
    for kind in ["step", "Step", "COMMAND", "command"] {
        let text = format!(
            "name: w\nstates:\n  initial: a\n  a: {{type: {kind}, command: x, on_success: b}}\n  b: {{type: Terminal}}\n"
        );
        let workflow = loaded(&text).workflow;
        assert!(
            matches!(workflow.steps["a"].action, Action::Command(_)),
            "{kind}"
        );
    }
}

#[test]
fn a_kind_with_a_dot_may_come_from_a_plugin() {
    let with = |head: &str, kind: &str| {
        findings(&format!(
            "name: w\n{head}states:\n  initial: a\n  a: {{type: {kind}, config: {{x: 1}}, on_success: b}}\n  b: {{type: terminal}}\n"
        ))
    };
    assert_eq!(with("", "database.query"), Vec::<String>::new());
    assert_eq!(
        with("plugins: {db: database}\n", "query"),
        Vec::<String>::new()
    );
    assert_eq!(
        with("", "comand"),
        ["w.yaml:4:13: error: comand is not a kind of step\n  hint: did you mean `command`?"]
    );
}

#[test]
fn a_map_for_the_inputs_is_refused_with_what_to_write() {
    let found = findings(
        "name: w\ninputs:\n  id: {type: string}\nstates:\n  initial: a\n  a: {type: terminal}\n",
    );
    assert_eq!(
        found,
        [
            "w.yaml:3:3: error: `inputs` must be a list, not a map\n  hint: write `- name: id` and its keys below it"
        ]
    );
}

#[test]
fn unknown_keys_are_warnings_with_a_suggestion() {
    let found = findings(
        "name: w\ndescripton: x\nstates:\n  initial: a\n  a:\n    type: command\n    comand: y\n    command: x\n    prompt: z\n    on_sucess: b\n    on_success: b\n  b: {type: terminal}\n",
    );
    assert_eq!(
        found,
        [
            "w.yaml:2:1: warning: `descripton` is not a key of the workflow\n  hint: did you mean `description`?",
            "w.yaml:7:5: warning: `comand` is not a key of step a\n  hint: did you mean `command`?",
            "w.yaml:9:5: warning: `prompt` has no effect on step a\n  hint: it belongs to agent steps",
            "w.yaml:10:5: warning: `on_sucess` is not a key of step a\n  hint: did you mean `on_success`?",
        ]
    );
}

#[test]
fn broken_yaml_and_other_files_are_refused() {
    for (text, expected) in [
        ("", "the file is empty"),
        ("- a\n", "the workflow must be a map, not a list"),
        ("name: w\nname: x\n", "duplicate"),
        ("name: [\n", "error"),
    ] {
        let found = findings(text).join("\n");
        assert!(found.contains(expected), "{text:?}: {found}");
    }
}

#[test]
fn a_step_template_is_filled_in_and_the_steps_own_fields_win() {
    let (dir, places) = project(&[(
        ".awf/templates/run.yaml",
        r#"
name: run
parameters:
  - {name: cmd, required: true}
  - {name: tries, default: 4}
  - {name: where, default: "{{.inputs.dir}}"}
states:
  initial: it
  it:
    type: command
    command: "{{.parameters.cmd}} in {{ .inputs.x }}{{if eq .parameters.cmd .inputs.y}}!{{end}}"
    dir: "{{parameters.where}}"
    timeout: 30
    description: from the template
    continue_on_error: true
    retry: {max_attempts: "{{.parameters.tries}}"}
    on_success: nowhere
"#,
    )]);
    let text = "name: w\nstates:\n  initial: a\n  a:\n    use_template: run\n    parameters: {cmd: make}\n    on_success: b\n    timeout: 2s\n  b: {type: terminal}\n";
    let file = dir.path().join("w.yaml");
    let loaded = parse(text, &file, &places).unwrap_or_else(|found| panic!("{found}"));
    assert_eq!(loaded.warnings, []);
    let step = &loaded.workflow.steps["a"];
    let Action::Command(command) = &step.action else {
        panic!("a command");
    };
    assert_eq!(
        command.command.as_ref().unwrap().text,
        "make in {{ .inputs.x }}{{if eq \"make\" .inputs.y}}!{{end}}"
    );
    assert_eq!(command.dir.as_ref().unwrap().text, "{{.inputs.dir}}");
    assert_eq!(step.timeout, Some(Duration::from_secs(2)));
    assert_eq!(step.description.as_deref(), Some("from the template"));
    assert!(step.continue_on_error);
    assert_eq!(step.retry.as_ref().unwrap().max_attempts, 4);
    assert_eq!(step.on_success.as_ref().unwrap().text, "b");
    let other = parse(&text.replace("make", "ls"), &file, &places).unwrap();
    assert_ne!(loaded.workflow.digest, other.workflow.digest);
}

#[test]
fn templates_that_use_themselves_or_miss_parameters_are_errors() {
    let (dir, places) = project(&[
        (
            ".awf/templates/a.yaml",
            "name: a\nstates:\n  s: {use_template: b}\n",
        ),
        (
            ".awf/templates/b.yaml",
            "name: b\nstates:\n  s: {use_template: a}\n",
        ),
        (
            ".awf/templates/c.yaml",
            "name: c\nparameters: [{name: need, required: true}]\nstates:\n  s: {type: command, command: \"{{.parameters.need}} {{.parameters.odd}}\"}\n",
        ),
    ]);
    let with = |step: &str| {
        let text = format!(
            "name: w\nstates:\n  initial: x\n  x: {{{step}, on_success: y}}\n  y: {{type: terminal}}\n"
        );
        let found = parse(&text, &dir.path().join("w.yaml"), &places);
        let found = found.expect_err("it is wrong").0;
        found.iter().fold(String::new(), |mut all, found| {
            writeln!(all, "{}", found.message).unwrap();
            all
        })
    };
    assert!(with("use_template: a").contains("uses itself"));
    assert!(with("use_template: gone").contains("there is no step template gone"));
    let missing = with("use_template: c");
    assert!(missing.contains("needs the parameter `need`"), "{missing}");
    let odd = with("use_template: c, parameters: {need: 1}");
    assert!(odd.contains("undefined variable: parameters.odd"), "{odd}");
    assert!(with("use_template: ../../c").contains("there is no step template"));
}

#[test]
fn a_workflow_of_a_pack_knows_its_pack() {
    let file = PathBuf::from("/x/.awf/workflow-packs/tools/workflows/w.yaml");
    let text = "name: w\nstates:\n  initial: a\n  a: {type: terminal}\n";
    let workflow = parse(text, &file, &Places::default()).unwrap().workflow;
    assert_eq!(workflow.pack.as_deref(), Some("tools"));
    assert_eq!(workflow.digest.len(), 64);
}
