//! What the page asks for beside transcripts: rows with some fields, half queries, keys, budgets, logs that are deleted soon.

#![expect(
    clippy::disallowed_methods,
    reason = "files of a test are nobody's secret"
)]

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use quipu_model::Money;
use quipu_store::import::Progress;
use serde_json::{Value, json};

use super::tests::{SAID, fill};
use crate::testkit::Served;

fn names(value: &Value) -> BTreeSet<String> {
    value.as_object().unwrap().keys().cloned().collect()
}

#[test]
fn lists_give_only_the_fields_that_are_asked_for() {
    let served = Served::with(fill, |_| {});
    let whole = served.get("/api/v1/transcripts").json();
    let own = &whole["transcripts"][0];
    let path = format!("/api/v1/transcripts/{}/labels", SAID[2].id);
    for (label, seq) in [("odd", Value::Null), ("odd", json!(1)), ("best", json!(2))] {
        let label = json!({"label": label, "seq": seq});
        assert_eq!(served.as_owner("POST", &path, &label).status, 201);
    }
    let rows = |query: &str| {
        let answer = served.get(&format!("/api/v1/transcripts?{query}"));
        assert_eq!(answer.status, 200, "{query}: {}", answer.text());
        answer.json()["transcripts"].clone()
    };
    assert_eq!(
        rows("fields=id,title&limit=1"),
        json!([{"id": own["id"], "title": own["title"]}])
    );
    // Every field can be named, and is what it is in the whole.
    let mut all: Vec<String> = names(own).into_iter().collect();
    assert_eq!(
        &rows(&format!("fields={}&limit=5000", all.join(",")))[0],
        own
    );
    let worked_out = ["usd", "spent", "did", "subagents", "labels"];
    all.extend(worked_out.map(str::to_owned));
    let every: Vec<&str> = quipu_store::documents::Listed::all().collect();
    assert_eq!(
        BTreeSet::from_iter(all),
        every.iter().map(|it| (*it).to_owned()).collect()
    );
    let rows = rows("fields=run_id,usd,spent,did,subagents,labels");
    for row in rows.as_array().unwrap() {
        let id = row["run_id"].as_str().unwrap();
        let detail = served.get(&format!("/api/v1/transcripts/{id}")).json();
        assert_eq!(row["spent"], detail["spent"]);
        assert!(row["usd"].is_string());
        assert_eq!(row["usd"], detail["spent"]["usd"]);
        assert_eq!(row["did"]["tool_calls"], detail["transcript"]["tool_calls"]);
        assert_eq!(row["subagents"], 0);
        assert_eq!(row["labels"], detail["labels"]);
    }
    assert_eq!(rows[0]["labels"], json!(["best", "odd"]));
    let some = format!(
        "/api/v1/transcripts?ids={1},nothing,{0},{1}&fields=run_id",
        SAID[0].id, SAID[2].id
    );
    let some = served.get(&some).json();
    let expected = json!([{"run_id": SAID[2].id}, {"run_id": SAID[0].id}]);
    assert_eq!(
        (&some["transcripts"], &some["next"]),
        (&expected, &Value::Null)
    );
    for (query, parameter) in [
        ("ids=", "ids"),
        ("ids=last&sort=oldest", "ids"),
        (&format!("ids={}", ["x"; 101].join(",")), "ids"),
        ("fields=id,cost", "fields"),
        ("fields=", "fields"),
        ("fields=id,", "fields"),
        ("fields=id&limit=5001", "limit"),
        ("limit=1001", "limit"),
    ] {
        let answer = served.get(&format!("/api/v1/transcripts?{query}"));
        assert_eq!(answer.status, 400, "{query}");
        assert_eq!(answer.json()["parameter"], parameter, "{query}");
    }
}

#[test]
fn what_is_wrong_with_a_query_has_its_place_and_may_be_an_answer() {
    let served = Served::with(fill, |_| {});
    let ask = |query: &str| served.get(&format!("/api/v1/search?{query}"));
    // `é` has two bytes.
    let wrong = ask("q=%C3%A9+colour:red");
    assert_eq!(wrong.status, 400);
    let wrong = wrong.json();
    assert_eq!(wrong["parameter"], "q");
    assert_eq!(wrong["at"], json!([3, 10]), "{wrong}");
    let told = ask("q=%C3%A9+colour:red&lenient=true");
    assert_eq!(told.status, 200);
    let told = told.json();
    assert_eq!(told["hits"], json!([]));
    assert_eq!(told["problem"]["at"], wrong["at"]);
    assert_eq!(told["problem"]["hint"], wrong["hint"]);
    let detail = format!("q: {}", told["problem"]["detail"].as_str().unwrap());
    assert_eq!(wrong["detail"], detail);
    for half in ["q=", "q=(flaky", "q=since:whenever", "q=/(/"] {
        let told = ask(&format!("{half}&lenient=true"));
        assert_eq!(told.status, 200, "{half}: {}", told.text());
        assert!(told.json()["problem"]["detail"].is_string(), "{half}");
        assert_eq!(ask(half).status, 400, "{half}");
    }
    // Whatever else is wrong is refused, and a query that is right is looked for.
    assert_eq!(ask("q=flaky&limit=0&lenient=true").status, 400);
    assert_eq!(ask("q=flaky&lenience=true").status, 400);
    let found = ask("q=flaky&lenient=true").json();
    assert_eq!(found["hits"].as_array().unwrap().len(), 3);
    assert!(found.get("problem").is_none());
}

#[test]
fn keys_are_made_listed_and_revoked_by_whoever_may_write() {
    let served = Served::empty();
    let with = |key: &str, method: &str, path: &str| {
        let bearer = format!("Bearer {key}");
        served.send(method, path, &[("Authorization", &bearer)], b"")
    };
    assert_eq!(served.get("/api/v1/keys").status, 401);
    let make = |body: Value| served.as_owner("POST", "/api/v1/keys", &body);
    let reader = make(json!({"label": "Ada", "scopes": ["read"], "expires": "90d"}));
    assert_eq!(reader.status, 201, "{}", reader.text());
    assert_eq!(reader.header("cache-control"), Some("no-store"));
    let reader = reader.json();
    assert_eq!(reader["scopes"], json!(["read"]));
    assert!(reader["expires_at"].is_string());
    let admin = make(json!({"scopes": ["admin"]})).json();
    let key = |made: &Value| made["key"].as_str().unwrap().to_owned();
    let listed = with(&key(&admin), "GET", "/api/v1/keys");
    assert!(!listed.text().contains("qk_"), "{}", listed.text());
    let listed = listed.json();
    let mut without = reader.clone();
    without.as_object_mut().unwrap().remove("key");
    assert_eq!(listed[0], without);
    assert_eq!(listed.as_array().unwrap().len(), 2);
    // Whoever only reads neither sees nor changes them.
    assert_eq!(
        with(&key(&reader), "GET", "/api/v1/transcripts").status,
        200
    );
    assert_eq!(with(&key(&reader), "GET", "/api/v1/keys").status, 403);
    let one = format!("/api/v1/keys/{}", reader["key_id"].as_str().unwrap());
    assert_eq!(with(&key(&reader), "DELETE", &one).status, 403);
    let revoked = with(&key(&admin), "DELETE", &one);
    assert_eq!(revoked.status, 200);
    assert!(revoked.json()["revoked_at"].is_string());
    assert_eq!(
        with(&key(&reader), "GET", "/api/v1/transcripts").status,
        403
    );
    for (body, parameter) in [
        (json!({"scopes": ["root"]}), "scopes"),
        (json!({"label": "two\nlines"}), "label"),
        (json!({"expires": "soon"}), "expires"),
    ] {
        let answer = make(body);
        assert_eq!(answer.status, 400);
        assert_eq!(answer.json()["parameter"], parameter);
    }
    for (id, status) in [("key_00", 400), ("key_000000000000", 404), ("..", 400)] {
        let path = format!("/api/v1/keys/{id}");
        let answer = served.as_owner("DELETE", &path, &json!({}));
        assert_eq!(answer.status, status, "{id}");
    }
    let samples = Served::with(|_| {}, |options| options.samples = true);
    assert_eq!(
        samples.as_owner("POST", "/api/v1/keys", &json!({})).status,
        409
    );
}

#[test]
fn budgets_are_told_as_the_command_tells_them() {
    let none = Served::with(fill, |_| {});
    assert_eq!(none.get("/api/v1/budgets").json(), json!({"budgets": []}));
    let served = Served::with(fill, |options| {
        options.budgets.month = Money::parse("20");
        options.budgets.projects = vec![("/code".to_owned(), Money::ZERO)];
    });
    let told = served.get("/api/v1/budgets?zone=UTC").json();
    let told = told["budgets"].as_array().unwrap();
    let what: Vec<&Value> = told.iter().map(|it| &it["budget"]).collect();
    assert_eq!(what, ["month", "project"]);
    assert_eq!(told[0]["limit_usd"], "20");
    assert_eq!(told[0]["exceeded"], false);
    assert_eq!(told[1]["of"], "/code");
    assert!(told[0]["spent"]["calls"].is_u64());
    let wrong = served.get("/api/v1/budgets?zone=Mars/Olympus");
    assert_eq!(
        (wrong.status, wrong.json()["parameter"].clone()),
        (400, json!("zone"))
    );
}

#[test]
fn logs_that_are_deleted_soon_are_told_where_this_server_imports() {
    let old = |home: &std::path::Path| {
        let logs = home.join("nobody/.claude/projects/-code");
        std::fs::create_dir_all(&logs).unwrap();
        let path = logs.join("11111111-1111-4111-8111-111111111111.jsonl");
        std::fs::write(&path, "{}\n").unwrap();
        let then = SystemTime::now() - Duration::from_secs(86_400 * 26 + 3_600);
        let file = std::fs::File::options().write(true).open(&path).unwrap();
        file.set_modified(then).unwrap();
    };
    let served = Served::with(old, |_| {});
    let nothing = served.get("/api/v1/expiring").json();
    assert_eq!(
        nothing,
        json!({"looked_at": null, "agents": [], "logs": [], "more": 0})
    );
    served.app.importer().begins(Arc::new(Progress::default()));
    let told = served.get("/api/v1/expiring").json();
    assert!(told["looked_at"].is_string());
    assert_eq!(
        told["agents"],
        json!([{"agent": "claude-code", "after_days": 30, "expiring": 1, "expiring_new": 1}])
    );
    assert_eq!(
        (&told["logs"][0]["days_left"], &told["logs"][0]["bytes"]),
        (&json!(4), &json!(3))
    );
    // It is not looked for again at once, and what is told is what was found.
    std::fs::remove_dir_all(served.home().join("nobody")).unwrap();
    assert_eq!(served.get("/api/v1/expiring").json(), told);
}
