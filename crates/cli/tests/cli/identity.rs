//! A transcript has an id that is its own for good. The id of a session, its beginning, and `last` are names for it.

use serde_json::Value;

use super::env::TestEnv;
use super::machine::{assistant, json, text, user};
use super::recorded::home;

const SESSION: &str = "5d2cf00d-0000-4000-8000-000000000003";

fn string(value: &Value) -> String {
    value.as_str().unwrap().to_owned()
}

/// The file and the id of each transcript, sorted.
fn ids(list: &Value) -> Vec<(String, String)> {
    let rows = list.as_array().unwrap().iter();
    let mut all: Vec<_> = rows
        .map(|row| (string(&row["path"]), string(&row["id"])))
        .collect();
    all.sort();
    all
}

fn all(env: &TestEnv) -> Value {
    json(env, &["list", "--all", "--json"])
}

/// The path of the log that an argument means.
fn opened(env: &TestEnv, argument: &str) -> String {
    string(&json(env, &["show", argument, "--json"])["session"]["path"])
}

/// A longer copy of the session, elsewhere.
fn import_longer_copy(env: &TestEnv) -> String {
    let log = user(SESSION, 1, "where is the quetzal")
        + &assistant(SESSION, 2, &text("no quetzal here"))
        + &user(SESSION, 3, "look again");
    let log = env.file("logs/copy/s.jsonl", log);
    let ran = env.run(&["import", &log]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    "HOME/logs/copy/s.jsonl".to_owned()
}

#[test]
fn a_link_opens_the_same_log_after_a_longer_copy_was_imported() {
    let env = home();
    let short = "HOME/logs/s.jsonl".to_owned();
    let found = json(&env, &["search", "no quetzal here", "--json"]);
    let (id, seq) = (string(&found[0]["id"]), found[0]["seq"].to_string());
    let event = |id: &str| {
        json(&env, &["show", id, "--from", &seq, "--to", &seq, "--json"])["events"].clone()
    };
    assert_eq!(opened(&env, SESSION), short);
    assert_eq!(opened(&env, &id), short);
    let linked = event(&id);
    assert!(linked.to_string().contains("no quetzal here"), "{linked}");
    let before = ids(&all(&env));

    let long = import_longer_copy(&env);
    let list = all(&env);
    let after = ids(&list);
    assert_eq!(after.len(), 3);
    assert!(before.iter().all(|it| after.contains(it)), "{after:?}");
    // The link opens what it opened; the id of the session means the best copy of it.
    assert_eq!(opened(&env, &id), short);
    assert_eq!(event(&id)[0]["payload"], linked[0]["payload"]);
    for name in [SESSION, "5d2cf00d"] {
        assert_eq!(opened(&env, name), long);
    }
    let rows = list.as_array().unwrap();
    let copy = rows
        .iter()
        .find(|row| row["path"] == short.as_str())
        .unwrap();
    let best = rows
        .iter()
        .find(|row| row["path"] == long.as_str())
        .unwrap();
    assert_eq!(
        (&copy["id"], &best["run_id"]),
        (&Value::from(id.clone()), &Value::from(SESSION))
    );
    assert_eq!(copy["original"], best["id"]);
    let by_session = json(&env, &["stats", "--by", "session", "--json"]);
    let rows = by_session["rows"].as_array().unwrap();
    assert!(
        rows.iter().any(|row| row["id"] == best["id"]),
        "{by_session:#}"
    );
    let mask = |env: &TestEnv| {
        let ran = env.run(&[
            "search",
            &format!("session:{id}"),
            "quetzal",
            "--copies",
            "--json",
        ]);
        serde_json::from_str::<Value>(&ran.stdout).unwrap()
    };
    assert!(
        mask(&env)
            .as_array()
            .unwrap()
            .iter()
            .all(|hit| hit["id"] == id.as_str())
    );
    assert_eq!(mask(&env).as_array().unwrap().len(), 2);

    assert_eq!(env.run(&["import", "--rebuild"]).code, 0);
    assert_eq!(ids(&all(&env)), after);
}

#[test]
fn the_name_of_a_copy_is_good_after_it_became_the_best_one() {
    let env = home();
    let long = import_longer_copy(&env);
    let short = "HOME/logs/s.jsonl".to_owned();
    let run_id = |path: &str| {
        let list = all(&env);
        let rows = list.as_array().unwrap();
        string(&rows.iter().find(|row| row["path"] == path).unwrap()["run_id"])
    };
    let copy = run_id(&short);
    assert_eq!(opened(&env, &copy), short);
    // Now the copy has most.
    let log = std::fs::read_to_string(env.path("logs/s.jsonl")).unwrap()
        + &user(SESSION, 3, "look again")
        + &user(SESSION, 4, "and again");
    let log = env.file("logs/s.jsonl", log);
    assert_eq!(env.run(&["import", &log]).code, 0);
    assert_eq!(run_id(&short), SESSION);
    assert_eq!(opened(&env, SESSION), short);
    assert_eq!(opened(&env, &copy), short, "the name that it had as a copy");
    assert_eq!(opened(&env, &run_id(&long)), long);
}

#[test]
fn the_beginning_of_an_id_is_enough_and_last_is_the_latest() {
    let env = home();
    for (path, id) in ids(&all(&env)) {
        if path.ends_with("s.jsonl") {
            assert_eq!(opened(&env, &id), path);
            assert_eq!(opened(&env, &id[..14]), path);
        }
        assert_eq!(env.run(&["show", &id]).code, 0);
    }
    let last = env.run(&["show", "last"]);
    assert_eq!(last.code, 0, "{}", last.stderr);
    assert!(last.stdout.contains("nightly"), "{}", last.stdout);
}

#[test]
fn ids_of_two_homes_differ_and_outlive_what_is_derived() {
    let env = home();
    let known = ids(&all(&env));
    let other = ids(&all(&home()));
    assert!(
        other
            .iter()
            .all(|(_, it)| known.iter().all(|(_, own)| own != it))
    );
    // Either of the two that know where transcripts are from may be lost.
    std::fs::remove_file(env.path("origin")).unwrap();
    assert_eq!(ids(&all(&env)), known);
    for file in ["index.sqlite", "index.sqlite-wal", "index.sqlite-shm"] {
        std::fs::remove_file(env.path(file)).ok();
    }
    assert_eq!(env.run(&["import", "--rebuild"]).code, 0);
    assert_eq!(ids(&all(&env)), known);
}
