//! Traces that are kept are listed, searched, priced and counted like sessions.

use serde_json::Value;

use super::env::TestEnv;
use super::machine::json;
use super::recorded;

/// A trace of one call of a model, kept.
fn kept(env: &TestEnv, asked: &str, answered: &str) -> Value {
    let id = |payload: &str| {
        let ran = env.run_with(&["agentlog", "id"], payload);
        assert_eq!(ran.code, 0, "{}", ran.stderr);
        ran.stdout.trim().to_owned()
    };
    let payloads = [
        (
            "metadata",
            r#"{"sdk":{"name":"t","version":"1"},"tags":{"env":"dev"}}"#.to_owned(),
        ),
        (
            "chat_request",
            format!(
                r#"{{"model":"claude-sonnet-4-5","messages":[{{"role":"user","content":"{asked}"}}],"params":{{}}}}"#
            ),
        ),
        (
            "chat_response",
            format!(
                r#"{{"model":"claude-sonnet-4-5","content":[{{"type":"text","text":"{answered}"}}],"stop_reason":"end_turn","latency_ms":10,"usage":{{"input_tokens":1000,"output_tokens":200,"thinking_tokens":0}}}}"#
            ),
        ),
    ];
    let (mut lines, mut parent) = (Vec::new(), "null".to_owned());
    for (n, (kind, payload)) in payloads.iter().enumerate() {
        let own = id(payload);
        lines.push(format!(
            "{{\"version\":\"0.1\",\"id\":\"{own}\",\"kind\":\"{kind}\",\
             \"ts\":\"2026-04-24T10:00:0{n}.000Z\",\"parent\":{parent},\"payload\":{payload}}}\n"
        ));
        parent = format!("\"{own}\"");
    }
    let file = env.file("in/a.agentlog", lines.concat());
    json(env, &["agentlog", "keep", &file, "--json"])
}

fn traces(list: &Value) -> Vec<&Value> {
    let rows = list.as_array().unwrap().iter();
    rows.filter(|row| row["dialect"] == "agentlog").collect()
}

#[test]
fn a_trace_is_listed_searched_priced_and_shown() {
    let env = TestEnv::new();
    kept(&env, "where is the quetzal", "in the forest");
    let list = json(&env, &["list", "--json"]);
    let rows = traces(&list);
    let [row] = rows[..] else { panic!("{list:#}") };
    assert_eq!(
        (&row["prompts"], &row["calls"], &row["usage"]["input"]),
        (&1.into(), &1.into(), &1000.into()),
        "{row:#}"
    );
    let id = row["id"].as_str().unwrap();
    let found = json(&env, &["search", "quetzal", "--json"]);
    assert_eq!(found[0]["id"], id, "{found:#}");
    let seq = found[0]["seq"].to_string();
    let shown = json(&env, &["show", id, "--from", &seq, "--to", &seq, "--json"]);
    assert!(shown["events"].to_string().contains("quetzal"), "{shown:#}");
    let spent = json(&env, &["stats", "--by", "agent", "--json"]);
    assert_eq!(
        spent["total"]["spent"]["tokens"]["input"], 1000,
        "{spent:#}"
    );
    assert!(
        spent["total"]["spent"]["usd"].as_str().is_some()
            || spent["total"]["spent"]["usd"].is_number()
    );
    let proof = env.run(&["stats", "explain", id]);
    assert_eq!(proof.code, 0, "{}", proof.stderr);
    // It is given back as it was.
    let out = env.path("out.agentlog").to_str().unwrap().to_owned();
    let ran = env.run(&["export", id, "--to", "agentlog", "-o", &out]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert_eq!(
        std::fs::read(out).unwrap(),
        std::fs::read(env.path("in/a.agentlog")).unwrap()
    );
    // Its events can be deleted, and it outlives the catalogue.
    std::fs::remove_dir_all(env.path("events")).unwrap();
    let again = json(&env, &["show", id, "--from", &seq, "--to", &seq, "--json"]);
    assert_eq!(again["events"], shown["events"]);
    assert_eq!(env.run(&["import", "--rebuild"]).code, 0);
    let list = json(&env, &["list", "--json"]);
    assert_eq!(traces(&list)[0]["id"], id);
    assert_eq!(env.run(&["doctor", "--check"]).code, 0);
}

#[test]
fn a_trace_that_went_on_is_known_with_all_of_it_and_one_that_is_gone_is_forgotten() {
    let env = TestEnv::new();
    let kept = kept(&env, "where is the quetzal", "in the forest");
    let events = |env: &TestEnv| {
        let list = json(env, &["list", "--json"]);
        traces(&list)
            .first()
            .map(|row| row["events"].as_u64().unwrap())
    };
    let before = events(&env).unwrap();
    let path = kept[0]["path"]
        .as_str()
        .unwrap()
        .replace("HOME", env.dir.path().to_str().unwrap());
    let text = std::fs::read_to_string(&path).unwrap();
    let last = text.lines().last().unwrap();
    let ran = env.run_with(
        &["agentlog", "id"],
        r#"{"category":"retry","name":"toucan","severity":"info"}"#,
    );
    let line = format!(
        "{{\"version\":\"0.1\",\"id\":\"{}\",\"kind\":\"harness_event\",\"ts\":\"2026-04-24T10:00:09.000Z\",\"parent\":{},\"payload\":{{\"category\":\"retry\",\"name\":\"toucan\",\"severity\":\"info\"}}}}\n",
        ran.stdout.trim(),
        serde_json::from_str::<Value>(last).unwrap()["id"],
    );
    let longer = env.file("in/b.agentlog", text + &line);
    assert_eq!(env.run(&["agentlog", "keep", &longer]).code, 0);
    let list = json(&env, &["list", "--json"]);
    assert_eq!(traces(&list).len(), 1, "{list:#}");
    assert!(list[0]["events"].as_u64().unwrap() + list[0]["notes"].as_u64().unwrap() > before);
    let found = json(&env, &["search", "toucan", "--json"]);
    assert_eq!(found.as_array().unwrap().len(), 1, "{found:#}");
    std::fs::remove_file(path).unwrap();
    assert_eq!(events(&env), None);
    assert_eq!(
        json(&env, &["search", "quetzal", "--json"]),
        Value::Array(Vec::new())
    );
}

#[test]
fn the_trace_of_a_run_or_session_is_not_counted_beside_it() {
    let env = recorded::home();
    let total = |env: &TestEnv| json(env, &["stats", "--json"])["total"]["spent"]["tokens"].clone();
    let before = total(&env);
    for id in ["run-1", "5d2cf00d"] {
        let out = env.path("t.agentlog").to_str().unwrap().to_owned();
        let ran = env.run(&["export", id, "--to", "agentlog", "-o", &out, "--force"]);
        assert_eq!(ran.code, 0, "{}", ran.stderr);
        assert_eq!(env.run(&["agentlog", "keep", &out]).code, 0);
    }
    let all = json(&env, &["list", "--all", "--json"]);
    assert_eq!(traces(&all).len(), 2, "{all:#}");
    for trace in traces(&all) {
        assert_eq!(trace["duplicate"], true, "{trace:#}");
    }
    assert_eq!(traces(&json(&env, &["list", "--json"])).len(), 0);
    assert_eq!(total(&env), before);
}

#[test]
fn importing_a_trace_takes_the_blobs_beside_it() {
    let env = TestEnv::new();
    // The SHA-256 of "x".
    let digest = "2d711642b726b04401627ca9fbac32f5c8530fb1903cc4db02258717921a4881";
    env.file(&format!("in/a.agentlog.blobs/2d/{}", &digest[2..]), "x");
    // Another that it refers to is damaged, and to a third it does not refer.
    let damaged = "3a6eb0790f39ac87c94f3856b2dd2c5d110e6811602261a9a923d3bb23adc8b7";
    let other = "c2356069e9d1e79ca924378153cfbbfb4d4416b1f99d41a2940bfdb66c5319db";
    env.file(&format!("in/a.agentlog.blobs/c2/{}", &other[2..]), "b");
    kept(
        &env,
        &format!("what is in sha256:{digest}"),
        &format!("not sha256:{damaged}"),
    );
    let wrong = env.file(&format!("in/a.agentlog.blobs/3a/{}", &damaged[2..]), "x");
    std::fs::remove_dir_all(env.path("traces")).unwrap();
    std::fs::remove_dir_all(env.path("blobs")).unwrap();
    let file = env.path("in/a.agentlog");
    let ran = env.run(&["import", file.to_str().unwrap()]);
    assert!(ran.stderr.contains("damaged"), "{}", ran.stderr);
    let blob = env.path(&format!("blobs/2d/{}", &digest[2..]));
    assert_eq!(std::fs::read(&blob).unwrap(), b"x");
    assert!(std::path::Path::new(&wrong).exists(), "it is only read");
    let long_ago = std::time::UNIX_EPOCH + std::time::Duration::from_secs(1_700_000_000);
    let opened = std::fs::File::open(&blob).unwrap();
    opened.set_modified(long_ago).unwrap();
    assert_eq!(env.run(&["agentlog", "gc", "--yes"]).code, 0);
    assert!(blob.exists());
    assert!(!env.path(&format!("blobs/c2/{}", &other[2..])).exists());
}
