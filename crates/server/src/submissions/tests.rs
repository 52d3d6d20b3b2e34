use quipu_record::SystemClock;
use quipu_redact::rule::{Sample, expand};
use quipu_submit::keys::{NewKey, Scope, Scopes, SecretKey};
use quipu_submit::testkit::{Leaky, Subjects, conformance, fresh_id, transcript};
use quipu_submit::{KeyStore, TranscriptId};
use sha2::{Digest as _, Sha256};

use crate::testkit::{Answer, Served};

fn make(keys: &KeyStore, scope: Scope) -> SecretKey {
    let new = NewKey {
        scopes: Scopes::new([scope]),
        ..NewKey::default()
    };
    keys.make(new, &SystemClock).unwrap().1
}

fn keys_of(served: &Served) -> KeyStore {
    KeyStore::at(served.home().join("keys.jsonl"))
}

#[test]
fn the_protocol_holds_over_sockets() {
    // One of the checks sends and is gone at once: nobody can tell any more who that was.
    let served = Served::with(|_| {}, |options| options.any_local_user = true);
    let keys = keys_of(&served);
    let revoked = make(&keys, Scope::Submit);
    keys.revoke(&revoked.id().to_string(), &SystemClock)
        .unwrap();
    let Sample { text, secret, .. } = expand("the token is «ghp_{alnum:36}» # mine", 7).unwrap();
    let secret = text[secret.unwrap()].to_owned();
    let subjects = Subjects {
        key: make(&keys, Scope::Submit),
        other: make(&keys, Scope::Submit),
        revoked,
        reader: make(&keys, Scope::Read),
        admin: make(&keys, Scope::Admin),
        leak: Leaky {
            text,
            secret,
            rule: "github-pat".to_owned(),
        },
    };
    let report = conformance(&format!("http://{}", served.address), &subjects);
    assert!(report.failed.is_empty(), "{:#?}", report.failed);
    assert!(
        report.skipped.is_empty() && report.passed.len() >= 28,
        "{report:?}"
    );
}

fn put(served: &Served, key: &SecretKey, id: &TranscriptId, body: &[u8]) -> Answer {
    let digest = quipu_model::hex::encode(&Sha256::digest(body));
    let headers = [
        ("Authorization", format!("Bearer {}", key.expose())),
        ("Content-Type", "application/json".to_owned()),
        ("Transcript-Sha256", digest),
    ];
    let headers: Vec<(&str, &str)> = headers
        .iter()
        .map(|(name, value)| (*name, value.as_str()))
        .collect();
    served.send("PUT", &format!("/v1/transcripts/{id}"), &headers, body)
}

#[test]
fn what_is_submitted_is_listed_searched_and_shown_until_it_is_deleted() {
    let served = Served::empty();
    let key = make(&keys_of(&served), Scope::Submit);
    let id = fresh_id().unwrap();
    let body = transcript(&id, &key.submitter(false), "all 12 zeppelins passed");
    let answer = put(&served, &key, &id, &body);
    assert_eq!(answer.status, 201, "{}", answer.text());
    let list = served.get("/api/v1/transcripts").json();
    assert_eq!(
        list["transcripts"][0]["received_from"],
        key.pseudonym(),
        "{list}"
    );
    let hits = served.get("/api/v1/search?q=zeppelins").json();
    assert_eq!(hits["hits"].as_array().unwrap().len(), 1, "{hits}");
    // The bytes are those that were accepted.
    let bearer = format!("Bearer {}", key.expose());
    let path = format!("/v1/transcripts/{id}/document");
    let document = served.send("GET", &path, &[("Authorization", &bearer)], b"");
    assert_eq!((document.status, document.body), (200, body));
    let path = format!("/v1/transcripts/{id}");
    let deleted = served.send("DELETE", &path, &[("Authorization", &bearer)], b"");
    assert_eq!(deleted.status, 200, "{}", deleted.text());
    let list = served.get("/api/v1/transcripts").json();
    assert_eq!(list["transcripts"].as_array().unwrap().len(), 0, "{list}");
    let hits = served.get("/api/v1/search?q=zeppelins").json();
    assert_eq!(hits["hits"].as_array().unwrap().len(), 0, "{hits}");
}

#[test]
fn keys_open_what_their_scopes_say() {
    let served = Served::with(|_| {}, |options| options.require_keys = true);
    let keys = keys_of(&served);
    let (read, submit) = (make(&keys, Scope::Read), make(&keys, Scope::Submit));
    let with = |key: &SecretKey, path: &str| {
        let bearer = format!("Bearer {}", key.expose());
        served
            .send("GET", path, &[("Authorization", &bearer)], b"")
            .status
    };
    assert_eq!(with(&read, "/api/v1/transcripts"), 200);
    assert_eq!(with(&submit, "/api/v1/transcripts"), 403);
    assert_eq!(served.get("/api/v1/transcripts").status, 401);
    assert_eq!(served.get("/v1/limits").status, 200);
    keys.revoke(&read.id().to_string(), &SystemClock).unwrap();
    assert_eq!(
        with(&read, "/api/v1/transcripts"),
        403,
        "a revoked key is refused at once"
    );
}

#[test]
fn a_storage_that_could_not_be_opened_is_tried_again() {
    // A file is where the directory belongs.
    let served = Served::with(
        |home| drop(std::fs::File::create(home.join("submissions")).unwrap()),
        |_| {},
    );
    let key = make(&keys_of(&served), Scope::Submit);
    let id = fresh_id().unwrap();
    let body = transcript(&id, &key.submitter(false), "all 12 zeppelins passed");
    let answer = put(&served, &key, &id, &body);
    assert_eq!(answer.status, 503, "{}", answer.text());
    assert_eq!(answer.json()["code"], "unavailable");
    assert!(answer.header("retry-after").is_some());
    std::fs::remove_file(served.home().join("submissions")).unwrap();
    let answer = put(&served, &key, &id, &body);
    assert_eq!(answer.status, 201, "{}", answer.text());
}

#[test]
fn a_full_disk_is_said_and_anything_else_is_not_for_good() {
    use std::io::ErrorKind::{PermissionDenied, QuotaExceeded, StorageFull};
    for (kind, status) in [
        (StorageFull, 507),
        (QuotaExceeded, 507),
        (PermissionDenied, 503),
    ] {
        assert_eq!(super::unopened(&kind.into()).status(), status);
    }
}

/// Waits until something is so.
fn until(mut is_so: impl FnMut() -> bool) -> bool {
    let begun = std::time::Instant::now();
    while begun.elapsed() < std::time::Duration::from_secs(20) {
        if is_so() {
            return true;
        }
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    false
}

#[test]
fn submitting_and_deleting_do_not_wait_for_an_import() {
    let served = Served::empty();
    let key = make(&keys_of(&served), Scope::Submit);
    let count = || {
        let list = served.get("/api/v1/transcripts").json();
        list["transcripts"].as_array().unwrap().len()
    };
    let submit = || {
        let id = fresh_id().unwrap();
        let body = transcript(&id, &key.submitter(false), "all 12 zeppelins passed");
        let answer = put(&served, &key, &id, &body);
        assert_eq!(answer.status, 201, "{}", answer.text());
        id
    };
    let first = submit();
    assert!(until(|| count() == 1));
    let lock = std::fs::File::options()
        .write(true)
        .open(served.home().join("import.lock"))
        .unwrap();
    lock.lock().unwrap();
    let begun = std::time::Instant::now();
    submit();
    submit();
    let bearer = format!("Bearer {}", key.expose());
    let path = format!("/v1/transcripts/{first}");
    let deleted = served.send("DELETE", &path, &[("Authorization", &bearer)], b"");
    assert_eq!(deleted.status, 200, "{}", deleted.text());
    let took = begun.elapsed();
    assert!(took < std::time::Duration::from_secs(8), "{took:?}");
    assert_eq!(count(), 1, "nothing could be imported yet");
    lock.unlock().unwrap();
    assert!(until(|| count() == 2), "{}", count());
}

#[test]
fn an_answer_that_says_that_nothing_changed_has_no_length() {
    let served = Served::empty();
    let key = make(&keys_of(&served), Scope::Submit);
    let id = fresh_id().unwrap();
    let body = transcript(&id, &key.submitter(false), "all 12 zeppelins passed");
    assert_eq!(put(&served, &key, &id, &body).status, 201);
    let bearer = format!("Bearer {}", key.expose());
    let path = format!("/v1/transcripts/{id}/document");
    let document = served.send("GET", &path, &[("Authorization", &bearer)], b"");
    let tag = document.header("etag").unwrap();
    let headers = [("Authorization", bearer.as_str()), ("If-None-Match", tag)];
    let same = served.send("GET", &path, &headers, b"");
    assert_eq!(same.status, 304);
    assert_eq!(same.header("content-length"), None);
}
