//! The service without sockets.

use std::io::{self, Read};
use std::sync::{Arc, Mutex};

use jiff::ToSpan as _;
use quipu_model::Timestamp;

use super::*;
use crate::protocol::{NewUpload, Receipt, Refusal, Upload};
use crate::testkit::{fresh_id, transcript};
use crate::{EngineScan, KeyStore, Leak, ScanError, SecretKey};

/// A time that is set.
#[derive(Debug)]
struct Hand(Mutex<Timestamp>);

impl Clock for Hand {
    fn now(&self) -> Timestamp {
        *self.0.lock().unwrap()
    }
}

struct Bench {
    service: Service<Memory, Hand>,
    key: SecretKey,
    _directory: tempfile::TempDir,
}

/// A service that finds nothing.
fn bench(limits: Limits) -> Bench {
    let directory = tempfile::tempdir().unwrap();
    let store = KeyStore::at(directory.path().join("keys.jsonl"));
    let (_, key) = store.create("test", &quipu_record::SystemClock).unwrap();
    let engine = quipu_redact::Engine::new(&quipu_redact::RuleSet::default(), |_| true).unwrap();
    let clock = Hand(Mutex::new("2026-06-22T10:00:00Z".parse().unwrap()));
    let scan = Box::new(EngineScan::for_secrets(engine));
    let service = Service::new(Memory::default(), clock, Box::new(store), scan);
    Bench {
        service: service.with_limits(limits),
        key,
        _directory: directory,
    }
}

impl Bench {
    fn ask(&self, method: &str, path: &str, more: &[(&str, String)], mut body: &[u8]) -> Response {
        let mut headers = vec![(
            "Authorization".to_owned(),
            format!("bearer {}", self.key.expose()),
        )];
        headers.extend(
            more.iter()
                .map(|(name, value)| ((*name).to_owned(), value.clone())),
        );
        self.service.handle(Request {
            method,
            path,
            headers: &headers,
            body: &mut body,
        })
    }

    fn begin(&self, document: &[u8], id: &TranscriptId) -> Response {
        let packed = crate::client::Packed::new(id.clone(), document, Encoding::Identity).unwrap();
        let body = serde_json::to_vec(&packed.upload()).unwrap();
        self.ask("POST", "/v1/uploads", &[], &body)
    }

    fn patch(&self, upload: &Upload, at: u64, piece: &[u8]) -> Response {
        let path = format!("/v1/uploads/{}", upload.upload_id);
        self.ask("PATCH", &path, &[("Upload-Offset", at.to_string())], piece)
    }

    fn document(&self, output: &str) -> (TranscriptId, Vec<u8>) {
        let id = fresh_id().unwrap();
        let document = transcript(&id, &self.key.submitter(true), output);
        (id, document)
    }
}

fn json<T: serde::de::DeserializeOwned>(response: &Response) -> T {
    let Body::Bytes(bytes) = &response.body else {
        panic!("a file");
    };
    serde_json::from_slice(bytes).unwrap()
}

fn code(response: &Response) -> Code {
    json::<Refusal>(response).code
}

#[test]
fn an_upload_in_any_pieces_is_the_document() {
    let bench = bench(Limits::default());
    for size in [1, 7, 1000, 100_000] {
        let (id, document) = bench.document("ok");
        let upload: Upload = json(&bench.begin(&document, &id));
        let mut last = None;
        let mut at = 0;
        for piece in document.chunks(size) {
            last = Some(bench.patch(&upload, at, piece));
            at += piece.len() as u64;
        }
        let last = last.unwrap();
        assert_eq!(last.status, 201);
        assert!(json::<Receipt>(&last).identity_linked);
        assert_eq!(bench.service.storage().document(&id).unwrap(), document);
    }
    assert_eq!(bench.service.storage().open(), 0);
}

#[test]
fn more_than_was_said_is_refused_and_the_upload_stays() {
    let bench = bench(Limits::default());
    let (id, document) = bench.document("ok");
    let upload: Upload = json(&bench.begin(&document, &id));
    let longer = [&document[..], b" "].concat();
    let response = bench.patch(&upload, 0, &longer);
    assert_eq!(code(&response), Code::TooLarge);
    let said: Upload = json(&bench.begin(&document, &id));
    let response = bench.patch(
        &said,
        said.offset,
        &document[usize::try_from(said.offset).unwrap()..],
    );
    assert_eq!(response.status, 201);
}

#[test]
fn uploads_are_few_and_end_when_nothing_comes() {
    let limits = Limits {
        open_uploads: 2,
        upload_seconds: 60,
        ..Limits::default()
    };
    let bench = bench(limits);
    let mut documents = Vec::new();
    for _ in 0..3 {
        documents.push(bench.document("ok"));
    }
    for (id, document) in &documents[..2] {
        assert_eq!(bench.begin(document, id).status, 201);
        assert_eq!(
            bench.begin(document, id).status,
            200,
            "it is the same upload"
        );
    }
    let (id, document) = &documents[2];
    let response = bench.begin(document, id);
    assert_eq!(code(&response), Code::TooManyRequests);
    assert!(
        response
            .headers
            .iter()
            .any(|(name, _)| *name == "Retry-After")
    );
    let later = bench.service.clock.now().checked_add(61.seconds()).unwrap();
    *bench.service.clock.0.lock().unwrap() = later;
    assert_eq!(bench.begin(document, id).status, 201);
    assert_eq!(bench.service.storage().open(), 1);
}

/// Fails in the middle.
struct Torn<'a>(&'a [u8]);

impl Read for Torn<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self.0.read(buffer)? {
            0 => Err(io::ErrorKind::ConnectionReset.into()),
            n => Ok(n),
        }
    }
}

#[test]
fn what_came_before_a_cut_stays() {
    let bench = bench(Limits::default());
    let (id, document) = bench.document("ok");
    let upload: Upload = json(&bench.begin(&document, &id));
    let headers = [
        (
            "authorization".to_owned(),
            format!("Bearer {}", bench.key.expose()),
        ),
        ("UPLOAD-OFFSET".to_owned(), "0".to_owned()),
    ];
    let half = &document[..document.len() / 2];
    let path = format!("/v1/uploads/{}", upload.upload_id);
    let response = bench.service.handle(Request {
        method: "PATCH",
        path: &path,
        headers: &headers,
        body: &mut Torn(half),
    });
    assert_eq!(code(&response), Code::BadRequest);
    let again: Upload = json(&bench.begin(&document, &id));
    assert_eq!(
        (again.upload_id, again.offset),
        (upload.upload_id, half.len() as u64)
    );
}

#[test]
fn a_gate_makes_wait() {
    struct Shut;
    impl Gate for Shut {
        fn admit(&self, _: &KeyEntry) -> Result<(), Duration> {
            Err(Duration::from_millis(1500))
        }
    }
    let mut bench = bench(Limits::default());
    bench.service.gate = Box::new(Shut);
    let response = bench.ask("GET", "/v1/transcripts/00000000", &[], b"");
    assert_eq!(response.status, 429);
    assert!(response.headers.contains(&("Retry-After", "2".to_owned())));
}

#[test]
fn a_scan_that_fails_keeps_nothing_and_the_upload() {
    struct Broken;
    impl Scan for Broken {
        fn scan(&self, _: &mut dyn Read) -> Result<Vec<Leak>, ScanError> {
            Err(ScanError::Io(io::ErrorKind::Other.into()))
        }
    }
    let mut bench = bench(Limits::default());
    bench.service.scan = Box::new(Broken);
    let (id, document) = bench.document("ok");
    let upload: Upload = json(&bench.begin(&document, &id));
    assert_eq!(code(&bench.patch(&upload, 0, &document)), Code::Internal);
    assert_eq!(bench.service.storage().document(&id), None);
    assert_eq!(bench.service.storage().open(), 1);
    let engine = quipu_redact::Engine::new(&quipu_redact::RuleSet::default(), |_| true).unwrap();
    bench.service.scan = Box::new(EngineScan::for_secrets(engine));
    // Everything is there: an empty piece is what asks for the end.
    assert_eq!(bench.patch(&upload, document.len() as u64, b"").status, 201);
}

#[test]
fn names_in_a_document_are_not_repeated_in_findings() {
    let bench = bench(Limits::default());
    let (id, document) = bench.document("ok");
    let text = String::from_utf8(document).unwrap();
    let broken = text.replacen('{', "{\"hunter2\":1,\"hunter2\":2,", 1);
    let packed = crate::client::Packed::new(id.clone(), broken.as_bytes(), Encoding::Identity);
    let headers = [
        ("Content-Type", "application/json; charset=utf-8".to_owned()),
        ("Transcript-Sha256", packed.unwrap().sha256().to_string()),
    ];
    let path = format!("/v1/transcripts/{id}");
    let response = bench.ask("PUT", &path, &headers, broken.as_bytes());
    let refusal: Refusal = json(&response);
    assert_eq!(refusal.code, Code::NotATranscript);
    assert_eq!(
        (
            refusal.findings[0].rule.as_str(),
            refusal.findings[0].field.as_str()
        ),
        ("section-twice", "*")
    );
    assert!(
        !String::from_utf8(response.body.into_bytes().unwrap())
            .unwrap()
            .contains("hunter2")
    );
}

#[test]
fn a_submitter_that_is_said_twice_is_refused() {
    let bench = bench(Limits::default());
    let (id, document) = bench.document("ok");
    let text = String::from_utf8(document).unwrap();
    let twice = text.replacen(
        "\"submitter\":{",
        "\"submitter\":{\"pseudonym\":\"anon_0\",",
        1,
    );
    let packed = crate::client::Packed::new(id.clone(), twice.as_bytes(), Encoding::Identity);
    let headers = [
        ("Content-Type", "application/json".to_owned()),
        ("Transcript-Sha256", packed.unwrap().sha256().to_string()),
    ];
    let response = bench.ask(
        "PUT",
        &format!("/v1/transcripts/{id}"),
        &headers,
        twice.as_bytes(),
    );
    assert_eq!(code(&response), Code::SubmitterMismatch);
}

#[test]
fn of_several_at_once_under_one_id_one_is_kept() {
    let bench = bench(Limits::default());
    let id = fresh_id().unwrap();
    let put = &|n: usize| {
        let document = transcript(&id, &bench.key.submitter(false), &format!("output {n}"));
        let packed = crate::client::Packed::new(id.clone(), &document[..], Encoding::Identity);
        let headers = [
            ("Content-Type", "application/json".to_owned()),
            ("Transcript-Sha256", packed.unwrap().sha256().to_string()),
        ];
        let path = format!("/v1/transcripts/{id}");
        bench.ask("PUT", &path, &headers, &document).status
    };
    let statuses: Vec<u16> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..8).map(|n| scope.spawn(move || put(n))).collect();
        threads
            .into_iter()
            .map(|thread| thread.join().unwrap())
            .collect()
    });
    let kept = statuses.iter().filter(|status| **status == 201).count();
    let refused = statuses.iter().filter(|status| **status == 409).count();
    assert_eq!((kept, refused), (1, 7), "{statuses:?}");
}

#[test]
fn any_request_has_an_answer() {
    use proptest::prelude::*;
    let bench = bench(Limits::default());
    proptest!(|(
        method in "(GET|PUT|POST|PATCH|HEAD|DELETE|X)",
        path in "/v1/(transcripts|uploads|limits)?(/[0-9a-f.%/]{0,40})?",
        name in "(content-encoding|content-type|upload-offset|transcript-sha256|content-length)",
        value in "(gzip|zstd|application/json|[0-9]{0,30}|[ -~]{0,20})",
        body: Vec<u8>,
    )| {
        let response = bench.ask(&method, &path, &[(&name, value)], &body);
        prop_assert!((200..500).contains(&response.status), "{}", response.status);
        prop_assert_eq!(bench.service.storage().open(), 0);
    });
    let new = NewUpload {
        transcript_id: fresh_id().unwrap(),
        sha256: Sha256::parse(&"0".repeat(64)).unwrap(),
        size: 0,
        encoding: Encoding::Zstd,
    };
    let upload: Upload = json(&bench.ask(
        "POST",
        "/v1/uploads",
        &[],
        &serde_json::to_vec(&new).unwrap(),
    ));
    let response = bench.patch(&upload, 0, b"");
    assert!(
        response.status == 400,
        "an empty document is none: {}",
        response.status
    );
}

/// Remembers what it is told.
#[derive(Default)]
struct Told(Mutex<Vec<String>>);

impl Taken for Arc<Told> {
    fn kept(&self, receipt: &Receipt, _: Option<&Path>) {
        let line = format!("kept {}", receipt.transcript_id);
        self.0.lock().unwrap().push(line);
    }

    fn removed(&self, id: &TranscriptId) {
        self.0.lock().unwrap().push(format!("removed {id}"));
    }
}

#[test]
fn a_retry_tells_again_what_was_kept() {
    let mut bench = bench(Limits::default());
    let told = Arc::new(Told::default());
    bench.service.taken = Box::new(Arc::clone(&told));
    let (id, document) = bench.document("ok");
    let packed = crate::client::Packed::new(id.clone(), &document[..], Encoding::Identity);
    let headers = [
        ("Content-Type", "application/json".to_owned()),
        ("Transcript-Sha256", packed.unwrap().sha256().to_string()),
    ];
    let path = format!("/v1/transcripts/{id}");
    assert_eq!(bench.ask("PUT", &path, &headers, &document).status, 201);
    assert_eq!(bench.ask("PUT", &path, &headers, &document).status, 200);
    assert_eq!(bench.begin(&document, &id).status, 200);
    assert_eq!(*told.0.lock().unwrap(), vec![format!("kept {id}"); 3]);
}

#[test]
fn several_uploads_that_begin_at_once_are_not_too_many() {
    let limits = Limits {
        open_uploads: 2,
        ..Limits::default()
    };
    let bench = bench(limits);
    let documents: Vec<_> = (0..8).map(|_| bench.document("ok")).collect();
    let begin = |(id, document): &(TranscriptId, Vec<u8>)| bench.begin(document, id).status;
    let statuses: Vec<u16> = std::thread::scope(|scope| {
        let threads = documents.iter().map(|one| scope.spawn(move || begin(one)));
        let threads: Vec<_> = threads.collect();
        threads.into_iter().map(|it| it.join().unwrap()).collect()
    });
    let begun = statuses.iter().filter(|status| **status == 201).count();
    assert_eq!(begun, 2, "{statuses:?}");
    assert_eq!(bench.service.storage().open(), 2);
}

#[test]
fn an_upload_that_the_server_cannot_read_is_not_the_clients_fault() {
    struct Failing;
    impl Read for Failing {
        fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
            Err(io::Error::other("the disk is broken"))
        }
    }
    for encoding in [Encoding::Identity, Encoding::Gzip, Encoding::Zstd] {
        let mut packed = accept::FromStorage(Failing);
        let bench = bench(Limits::default());
        let (id, _) = bench.document("ok");
        let entry = keys::authenticate(
            &*bench.service.keys,
            Some(&format!("Bearer {}", bench.key.expose())),
        );
        let sha256 = Sha256::parse(&"0".repeat(64)).unwrap();
        let answer = bench
            .service
            .accept(&entry.unwrap(), &id, encoding, sha256, &mut packed);
        assert_eq!(code(&answer.unwrap_err().into()), Code::Internal);
    }
}

#[test]
fn a_deletion_that_failed_half_way_is_done_when_it_is_asked_for_again() {
    let directory = tempfile::tempdir().unwrap();
    let store = KeyStore::at(directory.path().join("keys.jsonl"));
    let (_, key) = store.create("test", &quipu_record::SystemClock).unwrap();
    let engine = quipu_redact::Engine::new(&quipu_redact::RuleSet::default(), |_| true).unwrap();
    let scan = Box::new(EngineScan::for_secrets(engine));
    let disk = Disk::open(&directory.path().join("submissions")).unwrap();
    let service = Service::new(disk, quipu_record::SystemClock, Box::new(store), scan);
    let id = fresh_id().unwrap();
    let document = transcript(&id, &key.submitter(false), "ok");
    let packed = crate::client::Packed::new(id.clone(), &document[..], Encoding::Identity);
    let headers = [
        ("Authorization", format!("Bearer {}", key.expose())),
        ("Content-Type", "application/json".to_owned()),
        ("Transcript-Sha256", packed.unwrap().sha256().to_string()),
    ];
    let headers = headers.map(|(name, value)| (name.to_owned(), value));
    let ask = |method: &str, mut body: &[u8]| {
        let path = format!("/v1/transcripts/{id}");
        let request = Request {
            method,
            path: &path,
            headers: &headers,
            body: &mut body,
        };
        service.handle(request).status
    };
    assert_eq!(ask("PUT", &document), 201);
    let path = service.storage().path(&id).unwrap();
    assert_eq!(ask("DELETE", b""), 200);
    // As if the document could not be taken away after the deletion was kept.
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::io::Write::write_all(&mut std::fs::File::create(&path).unwrap(), &document).unwrap();
    assert_eq!(ask("DELETE", b""), 200);
    assert!(!path.exists());
}
