//! Requests to a server, as bytes that look like HTTP.

use std::sync::LazyLock;

use quipu_redact::{Engine, Kind, Rule, RuleSet, rule::Pattern};
use quipu_submit::keys::{KeyEntry, Keys, Refused};
use quipu_submit::protocol::Limits;
use quipu_submit::server::{Memory, Request, Service};
use quipu_submit::{EngineScan, KeyStore, SecretKey};
use sha2::{Digest as _, Sha256};

/// Small, so that inputs of a few hundred bytes reach them.
const LIMITS: Limits = Limits {
    encoded_bytes: 2048,
    document_bytes: 4096,
    open_uploads: 2,
    upload_seconds: 60,
};

/// The only key.
struct Only(KeyEntry);

impl Keys for Only {
    fn check(&self, _presented: &SecretKey) -> Result<KeyEntry, Refused> {
        Ok(self.0.clone())
    }
}

static KEY: LazyLock<(KeyEntry, SecretKey)> = LazyLock::new(|| {
    let directory = std::env::temp_dir().join(format!("quipu-fuzz-{}", std::process::id()));
    let store = KeyStore::at(directory.join("keys.jsonl"));
    let key = store
        .create("fuzz", &quipu_record::SystemClock)
        .expect("a key can be made");
    std::fs::remove_dir_all(&directory).expect("and the file of it removed");
    key
});

/// Sends a request twice: no answer is a fault of the server, each is JSON, none contains the key, and what was accepted
/// is accepted again.
pub fn request(bytes: &[u8]) {
    let rule = Rule::new(
        "word",
        Kind::Secret,
        Pattern::Regex(r"\btok_[0-9a-z]{4}\b".into()),
    );
    let rules = RuleSet {
        rules: vec![rule],
        allow: Vec::new(),
    };
    let engine = Engine::new(&rules, |_| true).expect("the rule is right");
    let scan = Box::new(EngineScan::for_secrets(engine));
    let keys = Box::new(Only(KEY.0.clone()));
    let service =
        Service::new(Memory::default(), quipu_record::SystemClock, keys, scan).with_limits(LIMITS);
    let once = ask(&service, bytes);
    let again = ask(&service, bytes);
    let (Some(once), Some(again)) = (once, again) else {
        return;
    };
    assert!(!bytes.starts_with(b"PUT") || (once < 300) == (again < 300));
}

fn ask(service: &Service<Memory, quipu_record::SystemClock>, bytes: &[u8]) -> Option<u16> {
    let end = bytes.windows(2).position(|pair| pair == b"\n\n")?;
    let (head, body) = (std::str::from_utf8(&bytes[..end]).ok()?, &bytes[end + 2..]);
    // Nor is who sends it.
    let body = body
        .utf8_chunks()
        .next()
        .filter(|chunk| chunk.invalid().is_empty())
        .map_or_else(
            || body.to_vec(),
            |chunk| {
                chunk
                    .valid()
                    .replace("@key", KEY.0.key_id())
                    .replace("@name", KEY.0.pseudonym())
                    .into_bytes()
            },
        );
    let mut lines = head.lines();
    let (method, path) = lines.next()?.split_once(' ')?;
    let mut headers = vec![(
        "Authorization".to_owned(),
        format!("Bearer {}", KEY.1.expose()),
    )];
    for line in lines {
        let (name, value) = line.split_once(':')?;
        // A digest is nothing that a fuzzer finds.
        let value = match value.trim() {
            "right" => Sha256::digest(&body)
                .iter()
                .map(|byte| format!("{byte:02x}"))
                .collect(),
            other => other.to_owned(),
        };
        headers.push((name.to_owned(), value));
    }
    let response = service.handle(Request {
        method,
        path,
        headers: &headers,
        body: &mut &body[..],
    });
    let status = response.status;
    assert!((200..500).contains(&status), "{status}");
    let body = response
        .body
        .into_bytes()
        .expect("what memory keeps can be read");
    // Part of a document is not a document.
    if !body.is_empty() && status != 206 {
        serde_json::from_slice::<serde_json::Value>(&body).expect("answers are JSON");
    }
    assert!(!String::from_utf8_lossy(&body).contains(&*KEY.1.expose()));
    Some(status)
}
