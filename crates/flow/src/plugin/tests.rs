use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde_json::{Map, Value, json};
use tokio_util::sync::CancellationToken;

use super::{Plugin, PluginError, Plugins, search_paths};
use crate::operation::{OperationContext, OperationError};
use crate::tools::Router;
use crate::tools::mcp::tests::SERVER;
use crate::tools::tests::{Told, request};

fn examples() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/plugins")
}

fn put(path: &Path, text: &str) {
    std::io::Write::write_all(&mut std::fs::File::create(path).unwrap(), text.as_bytes()).unwrap();
}

/// A directory with a plugin whose program is a shell script.
fn plugin(manifest: &str, script: &str) -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    let at = dir.path().join("one");
    std::fs::create_dir(&at).unwrap();
    put(&at.join("plugin.yaml"), manifest);
    let file = at.join("run.sh");
    put(&file, &format!("#!/bin/sh\n{script}"));
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o755)).unwrap();
    dir
}

const FAKE: &str =
    "name: fake\ncommand: [./run.sh]\ntimeout_seconds: 1\nstep_types: {fake.echo: echo}\n";

async fn opened(path: &Path, name: &str) -> Plugins {
    let mut plugins = Plugins::discover(&[path.to_owned()]);
    assert_eq!(plugins.problems(), []);
    let never = CancellationToken::new();
    let names = BTreeMap::from([("it".to_owned(), name.to_owned())]);
    plugins.open(&names, &never).await.unwrap();
    plugins
}

async fn run(plugins: &Plugins, name: &str, inputs: Value) -> Result<Value, OperationError> {
    let Value::Object(inputs) = inputs else {
        panic!("inputs are an object")
    };
    let context = OperationContext { root: "/".into() };
    let never = CancellationToken::new();
    let done = plugins
        .operations()
        .run(name, &inputs, &context, &never)
        .await;
    done.map(|it| Value::Object(it.response))
}

#[tokio::test]
async fn the_sample_plugin_gives_operations_a_kind_of_step_and_tools() {
    let plugins = opened(&examples(), "text").await;
    assert_eq!(plugins.operations().names(), ["it.upper", "it.count"]);
    let text = "say \"hi\"\nC:\\new ä";
    let upper = run(&plugins, "it.upper", json!({"text": text})).await;
    let said = upper.unwrap()["text"].as_str().unwrap().to_owned();
    // Whether other letters than those of ASCII are changed is up to the awk of the machine.
    assert_eq!(said.replace('Ä', "ä"), "SAY \"HI\"\nC:\\NEW ä");
    let Value::Object(config) = json!({"text": "one two\nthree"}) else {
        unreachable!()
    };
    let never = CancellationToken::new();
    let counted = plugins.step("text.count", &config, &never).await.unwrap();
    let counted = Value::Object(counted.response);
    assert_eq!(counted, json!({"words": 3, "lines": 2}));
    let toolbox = plugins.toolbox("it", &["upper".to_owned()]).unwrap();
    let router = Router::new(vec![toolbox]);
    let names: Vec<_> = router.tools().into_iter().map(|it| it.name).collect();
    assert_eq!(names, ["it_upper"]);
    let told = Told::default();
    let call = request("it_upper", json!({"text": "x"}));
    let outcome = router.call(call, &told, &never).await;
    assert_eq!(outcome.output["structuredContent"], json!({"text": "X"}));
    assert_eq!(told.names(), ["call", "result"]);
    let outcome = router
        .call(request("it_upper", json!({})), &told, &never)
        .await;
    assert!(
        outcome
            .error
            .unwrap()
            .contains("\"text\" is a required property")
    );
}

#[tokio::test]
async fn names_and_inputs_that_do_not_fit_are_said_with_suggestions() {
    let mut plugins = opened(&examples(), "text").await;
    let never = CancellationToken::new();
    let error = run(&plugins, "it.uper", json!({})).await.unwrap_err();
    assert!(
        error.to_string().contains("did you mean it.upper?"),
        "{error}"
    );
    let error = run(&plugins, "no.upper", json!({})).await.unwrap_err();
    assert!(matches!(error, OperationError::Unknown { .. }), "{error}");
    let error = run(&plugins, "it.upper", json!({"text": 1})).await;
    assert!(matches!(error.unwrap_err(), OperationError::Inputs(_)));
    let error = plugins.step("text.cont", &Map::new(), &never).await;
    let error = error.unwrap_err().to_string();
    assert!(error.contains("did you mean text.count?"), "{error}");
    let error = plugins.toolbox("it", &["uppr".to_owned()]).err().unwrap();
    assert!(
        error.to_string().contains("did you mean \"upper\"?"),
        "{error}"
    );
    let names = BTreeMap::from([("x".to_owned(), "txt".to_owned())]);
    let error = plugins.open(&names, &never).await.unwrap_err();
    assert!(
        error.to_string().contains("did you mean \"text\"?"),
        "{error}"
    );
}

#[tokio::test]
async fn a_plugin_that_crashes_hangs_or_floods_gives_an_error_and_works_again() {
    let dir = plugin(FAKE, SERVER);
    let plugins = opened(dir.path(), "fake").await;
    let began = Instant::now();
    for (what, part) in [
        ("crash", "exit code 3; it said: out of cheese"),
        ("hang", "no answer within 1s"),
        ("huge", "a line of more than"),
        ("bad", "it went wrong"),
    ] {
        let error = run(&plugins, "it.echo", json!({"text": what})).await;
        let error = error.unwrap_err().to_string();
        assert!(error.contains(part), "{what}: {error}");
    }
    assert!(began.elapsed() < Duration::from_secs(20));
    for what in ["crash", "hang", "huge"] {
        run(&plugins, "it.echo", json!({"text": what}))
            .await
            .unwrap_err();
        let said = run(&plugins, "it.echo", json!({"text": "hi"})).await;
        assert_eq!(said.unwrap(), json!({"output": "hello"}));
    }
}

#[tokio::test]
async fn a_plugin_ends_with_the_run() {
    let dir = tempfile::tempdir().unwrap();
    let pid_file = dir.path().join("pid");
    let script = format!("echo $$ > {}\n{SERVER}", pid_file.display());
    let place = plugin(FAKE, &script);
    let mut plugins = Plugins::discover(&[place.path().to_owned()]);
    let run = CancellationToken::new();
    let names = BTreeMap::from([("it".to_owned(), "fake".to_owned())]);
    plugins.open(&names, &run).await.unwrap();
    let pid = std::fs::read_to_string(&pid_file).unwrap();
    run.cancel();
    let began = Instant::now();
    loop {
        let state = std::fs::read_to_string(format!("/proc/{}/stat", pid.trim()));
        if state.map_or(true, |it| it.contains(") Z ")) {
            break;
        }
        assert!(began.elapsed() < Duration::from_secs(10));
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

#[tokio::test]
async fn a_plugin_is_given_its_settings_and_its_directory() {
    let manifest = "name: fake\ncommand: [./run.sh]\nconfig: {level: 3}\n";
    let place = plugin(
        manifest,
        &format!("printf '%s' \"$QUIPU_PLUGIN_CONFIG\" > \"$QUIPU_PLUGIN_DIR/seen\"\n{SERVER}"),
    );
    opened(place.path(), "fake").await;
    let seen = std::fs::read_to_string(place.path().join("one/seen")).unwrap();
    assert_eq!(seen, "{\"level\":3}");
}

#[test]
fn files_that_do_not_fit_are_named_and_do_not_hide_others() {
    for (manifest, part) in [
        ("name: x", "command is missing"),
        ("command: [a]", "name is missing"),
        ("name: ../x\ncommand: [a]", "letters, digits"),
        ("name: [", "plugin.yaml"),
        ("name: x\ncommand: [a]\ntimeout_seconds: -1", "more than 0"),
    ] {
        let dir = plugin(manifest, "");
        let error = Plugin::read(&dir.path().join("one")).unwrap_err();
        assert!(matches!(error, PluginError::Manifest { .. }));
        assert!(error.to_string().contains(part), "{part}: {error}");
        let plugins = Plugins::discover(&[dir.path().to_owned(), examples()]);
        assert_eq!(plugins.problems(), [error]);
        assert!(plugins.found().any(|it| it.name == "text"));
    }
    let odd = "name: x\ncommand: [a]\nawf_version: '1'\ncolour: red\ncapabilities: [validators]\n";
    let dir = plugin(odd, "");
    let read = Plugin::read(&dir.path().join("one")).unwrap();
    assert_eq!(
        read.warnings,
        [
            "colour is not known and has no effect",
            "the capability validators has no effect"
        ]
    );
}

#[test]
fn plugins_are_looked_for_in_order() {
    let variable = |name: &str| (name == "AWF_PLUGINS_PATH").then(|| "/a:/b".into());
    let paths = search_paths(Path::new("/w"), Path::new("/h"), variable);
    let expected = [
        "/a",
        "/b",
        "/w/.quipu/plugins",
        "/w/.awf/plugins",
        "/h/plugins",
    ];
    assert_eq!(paths, expected.map(PathBuf::from));
    let first = plugin("name: text\ncommand: [first]\n", "");
    let plugins = Plugins::discover(&[first.path().to_owned(), examples()]);
    let found: Vec<_> = plugins.found().map(|it| it.command.clone()).collect();
    assert_eq!(found, [["first"]]);
    assert!(
        Plugins::discover(&["/no/such/place".into()])
            .found()
            .next()
            .is_none()
    );
    assert_eq!(plugins.of_step("text.count").map(|it| &it.name[..]), None);
}
