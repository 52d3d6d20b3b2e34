//! Accepted means stored: kill -9 in the middle, a full disk, two processes on one directory.
//!
//! The victims are this test binary, run again with a directory in its environment. They say on their standard output what
//! they accepted.

#![expect(
    clippy::print_stdout,
    reason = "a process that is killed says how far it came"
)]

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use quipu_record::SystemClock;
use quipu_submit::client::Packed;
use quipu_submit::protocol::{Code, Listed, Receipt, Refusal, TranscriptId, Upload};
use quipu_submit::server::{Disk, Held, Request, Response, Service, Storage};
use quipu_submit::testkit::{fresh_id, transcript};
use quipu_submit::{Encoding, KeyStore, SecretKey};

use super::suite::service;

const DIRECTORY: &str = "QUIPU_TEST_SUBMIT_DIRECTORY";
const KEY: &str = "QUIPU_TEST_SUBMIT_KEY";

struct Bench<S> {
    service: Service<S, SystemClock>,
    key: SecretKey,
}

impl<S: Storage> Bench<S> {
    fn ask(&self, method: &str, path: &str, more: &[(&str, String)], mut body: &[u8]) -> Response {
        let mut headers = vec![(
            "Authorization".to_owned(),
            format!("Bearer {}", self.key.expose()),
        )];
        let more = more.iter();
        headers.extend(more.map(|(name, value)| ((*name).to_owned(), value.clone())));
        self.service.handle(Request {
            method,
            path,
            headers: &headers,
            body: &mut body,
        })
    }

    fn put(&self, id: &TranscriptId, document: &[u8]) -> Response {
        let packed = Packed::new(id.clone(), document, Encoding::Identity).unwrap();
        let headers = [
            ("Content-Type", "application/json".to_owned()),
            ("Transcript-Sha256", packed.sha256().to_string()),
        ];
        self.ask("PUT", &format!("/v1/transcripts/{id}"), &headers, document)
    }
}

fn json<T: serde::de::DeserializeOwned>(response: Response) -> T {
    serde_json::from_slice(&response.body.into_bytes().unwrap()).unwrap()
}

fn bench(directory: &Path, key: SecretKey) -> Bench<Disk> {
    let disk = Disk::open(&directory.join("submissions")).unwrap();
    let service = service(disk, KeyStore::at(directory.join("keys.jsonl")));
    Bench { service, key }
}

fn new_key(directory: &Path) -> SecretKey {
    let store = KeyStore::at(directory.join("keys.jsonl"));
    store.create("test", &SystemClock).unwrap().1
}

/// This binary again, as a victim. `limit` is how long its files may become, in kibibytes.
fn victim(name: &str, directory: &Path, key: &SecretKey, limit: Option<u32>) -> Child {
    let binary = std::env::current_exe().unwrap();
    let mut command = match limit {
        // The signal is ignored, so that a write fails as on a full disk.
        Some(limit) => {
            let mut command = Command::new("bash");
            let script = format!("trap '' XFSZ; ulimit -f {limit}; exec \"$0\" \"$@\"");
            command.args(["-c", &script]).arg(binary);
            command
        }
        None => Command::new(binary),
    };
    command
        .args([
            "--exact",
            name,
            "--nocapture",
            "--test-threads=1",
            "--ignored",
        ])
        .env(DIRECTORY, directory)
        .env(KEY, key.expose())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

/// What a victim is given.
fn given() -> Option<(PathBuf, SecretKey)> {
    let directory = std::env::var_os(DIRECTORY)?;
    let key = SecretKey::parse(&std::env::var(KEY).unwrap()).unwrap();
    Some((directory.into(), key))
}

/// Everything that is there, checked: document and receipt belong together.
fn all_there(directory: &Path) -> BTreeMap<TranscriptId, Listed> {
    let root = directory.join("submissions");
    let scanned = Disk::scan_below(&root, None, usize::MAX).unwrap();
    assert_eq!(scanned.unreadable, 0);
    let mut all = BTreeMap::new();
    for listed in scanned.found {
        let id = listed.receipt.transcript_id.clone();
        let document = fs::read(Disk::document_below(&root, &id)).unwrap();
        let packed = Packed::new(id.clone(), &document[..], Encoding::Identity).unwrap();
        assert_eq!(packed.sha256(), listed.receipt.sha256, "{id} is whole");
        all.insert(id, listed);
    }
    all
}

#[test]
fn accepted_means_stored_when_killed_at_any_moment() {
    let directory = tempfile::tempdir().unwrap();
    let key = new_key(directory.path());
    let mut accepted = 0;
    for round in 0..12_u64 {
        // Two at once, so that one opens the directory while the other works, and is killed while it does.
        let mut victims: Vec<Child> = (0..2)
            .map(|_| {
                victim(
                    "crash::submits_until_it_is_killed",
                    directory.path(),
                    &key,
                    None,
                )
            })
            .collect();
        let mut heard = Vec::new();
        let (started, wait) = std::sync::mpsc::sync_channel(1);
        for victim in &mut victims {
            let lines = BufReader::new(victim.stdout.take().unwrap()).lines();
            let started = started.clone();
            heard.push(std::thread::spawn(move || {
                let mut ids = Vec::new();
                for line in lines.map_while(Result::ok) {
                    if let Some(("ack", id)) = line.split_once(' ') {
                        // The line may be cut off by the kill.
                        ids.extend(TranscriptId::parse(id).ok().filter(|_| id.len() == 36));
                        started.try_send(()).ok();
                    }
                }
                ids
            }));
        }
        wait.recv_timeout(Duration::from_secs(30))
            .expect("something is accepted");
        std::thread::sleep(Duration::from_millis(7 * round));
        for victim in &mut victims {
            victim.kill().unwrap();
            victim.wait().unwrap();
        }
        let there = all_there(directory.path());
        for ids in heard {
            for id in ids.join().unwrap() {
                assert!(
                    there.contains_key(&id),
                    "{id} was accepted and is not there"
                );
                accepted += 1;
            }
        }
    }
    assert!(accepted > 12, "{accepted}");
    // Whoever opens it next finds it clean, and goes on.
    let bench = bench(directory.path(), key);
    let sessions = directory.path().join("submissions/tmp");
    assert_eq!(fs::read_dir(sessions).unwrap().count(), 1);
    let id = fresh_id().unwrap();
    let document = transcript(&id, &bench.key.submitter(false), "ok");
    assert_eq!(bench.put(&id, &document).status, 201);
}

#[test]
#[ignore = "a victim of another test"]
fn submits_until_it_is_killed() {
    let Some((directory, key)) = given() else {
        return;
    };
    let bench = &bench(&directory, key);
    // Bounded, should nobody kill it.
    std::thread::scope(|scope| {
        for thread in 0..3 {
            scope.spawn(move || {
                for n in 0..2_000 {
                    let id = fresh_id().unwrap();
                    let output = "x".repeat(n % 50 * 1000);
                    let document = transcript(&id, &bench.key.submitter(false), &output);
                    if thread == 0 {
                        in_pieces(bench, &id, &document);
                    } else {
                        let _: Receipt = json(bench.put(&id, &document));
                    }
                    let mut out = std::io::stdout().lock();
                    writeln!(out, "ack {id}").unwrap();
                }
            });
        }
    });
}

fn in_pieces(bench: &Bench<Disk>, id: &TranscriptId, document: &[u8]) {
    let packed = Packed::new(id.clone(), document, Encoding::Identity).unwrap();
    let body = serde_json::to_vec(&packed.upload()).unwrap();
    let upload: Upload = json(bench.ask("POST", "/v1/uploads", &[], &body));
    let path = format!("/v1/uploads/{}", upload.upload_id);
    let mut at = 0;
    for piece in document.chunks(document.len() / 2 + 1) {
        let response = bench.ask("PATCH", &path, &[("Upload-Offset", at.to_string())], piece);
        at += piece.len();
        assert!(matches!(response.status, 204 | 201), "{}", response.status);
    }
}

#[test]
fn an_upload_goes_on_after_the_server_was_killed() {
    let directory = tempfile::tempdir().unwrap();
    let key = new_key(directory.path());
    let id = fresh_id().unwrap();
    let document = transcript(&id, &key.submitter(false), &"all is well\n".repeat(9000));
    let mut file = fs::File::create(directory.path().join("document.json")).unwrap();
    file.write_all(&document).unwrap();
    let name = "crash::uploads_half_and_waits";
    let mut victim = victim(name, directory.path(), &key, None);
    let mut lines = BufReader::new(victim.stdout.take().unwrap()).lines();
    let said = lines.find_map(|line| {
        let line = line.unwrap();
        line.strip_prefix("at ")
            .map(|at| at.parse::<usize>().unwrap())
    });
    victim.kill().unwrap();
    victim.wait().unwrap();
    let bench = bench(directory.path(), key);
    let packed = Packed::new(id.clone(), &document[..], Encoding::Identity).unwrap();
    let body = serde_json::to_vec(&packed.upload()).unwrap();
    let upload: Upload = json(bench.ask("POST", "/v1/uploads", &[], &body));
    // What was answered for is there; what came after it need not be.
    let at = usize::try_from(upload.offset).unwrap();
    assert_eq!(Some(at), said);
    let path = format!("/v1/uploads/{}", upload.upload_id);
    let header = [("Upload-Offset", at.to_string())];
    let response = bench.ask("PATCH", &path, &header, &document[at..]);
    assert_eq!(response.status, 201);
    let receipt: Receipt = json(response);
    assert_eq!(receipt.bytes, document.len() as u64);
}

#[test]
#[ignore = "a victim of another test"]
fn uploads_half_and_waits() {
    let Some((directory, key)) = given() else {
        return;
    };
    let bench = bench(&directory, key);
    let document = fs::read(directory.join("document.json")).unwrap();
    let value: serde_json::Value = serde_json::from_slice(&document).unwrap();
    let id = TranscriptId::parse(value["transcriptId"].as_str().unwrap()).unwrap();
    let packed = Packed::new(id, &document[..], Encoding::Identity).unwrap();
    let body = serde_json::to_vec(&packed.upload()).unwrap();
    let upload: Upload = json(bench.ask("POST", "/v1/uploads", &[], &body));
    let path = format!("/v1/uploads/{}", upload.upload_id);
    let half = &document[..document.len() / 2];
    let response = bench.ask("PATCH", &path, &[("Upload-Offset", "0".into())], half);
    assert_eq!(response.status, 204);
    // More, which nobody was answered for.
    let now = quipu_record::Clock::now(&SystemClock);
    let storage = bench.service.storage();
    let more = storage.append(&upload.upload_id, half.len() as u64, b"more", now);
    assert!(more.unwrap());
    println!("\nat {}", half.len());
    std::io::stdout().flush().unwrap();
    std::thread::sleep(Duration::from_secs(60));
}

#[test]
fn a_full_disk_keeps_nothing_half() {
    let directory = tempfile::tempdir().unwrap();
    let key = new_key(directory.path());
    // Files of up to 64 KiB: receipts fit, the document does not.
    let name = "crash::meets_a_full_disk";
    let victim = victim(name, directory.path(), &key, Some(64));
    let output = victim.wait_with_output().unwrap();
    let said = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{said}");
    assert!(said.contains("went as it should"), "{said}");
    let there = all_there(directory.path());
    assert_eq!(there.len(), 1, "what fitted is there, and nothing else");
    let root = directory.path().join("submissions");
    assert_eq!(fs::read_dir(root.join("tmp")).unwrap().count(), 0);
}

#[test]
#[ignore = "a victim of another test"]
fn meets_a_full_disk() {
    let Some((directory, key)) = given() else {
        return;
    };
    let bench = bench(&directory, key);
    let large = fresh_id().unwrap();
    let document = transcript(&large, &bench.key.submitter(false), &"x".repeat(100_000));
    let response = bench.put(&large, &document);
    assert_eq!(response.status, 507);
    assert_eq!(json::<Refusal>(response).code, Code::InsufficientStorage);
    assert_eq!(bench.service.storage().held(&large).unwrap(), None);
    // An upload is added to as far as there is room, piece by piece, and stays.
    let packed = Packed::new(large, &document[..], Encoding::Identity).unwrap();
    let body = serde_json::to_vec(&packed.upload()).unwrap();
    let upload: Upload = json(bench.ask("POST", "/v1/uploads", &[], &body));
    let path = format!("/v1/uploads/{}", upload.upload_id);
    let mut at = 0;
    let failed = document.chunks(10_000).find_map(|piece| {
        let header = [("Upload-Offset", at.to_string())];
        let response = bench.ask("PATCH", &path, &header, piece);
        if response.status == 204 {
            at += piece.len();
            return None;
        }
        Some(response.status)
    });
    assert_eq!(failed, Some(507));
    let there = bench.service.storage().upload(&upload.upload_id).unwrap();
    assert_eq!(
        there.unwrap().offset,
        at as u64,
        "a piece is there wholly or not at all"
    );
    // What is small still goes.
    let small = fresh_id().unwrap();
    let document = transcript(&small, &bench.key.submitter(false), "ok");
    assert_eq!(bench.put(&small, &document).status, 201);
    let held = bench.service.storage().held(&small).unwrap();
    assert!(matches!(held, Some(Held::There(_))));
    println!("\nwent as it should");
}
