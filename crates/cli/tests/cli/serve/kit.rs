//! A server of the real binary, and a client that sends exactly what it is told to.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use quipu_record::SystemClock;
use quipu_submit::KeyStore;
use quipu_submit::keys::{NewKey, Scope, Scopes, SecretKey};
use quipu_submit::protocol::TranscriptId;
use quipu_submit::testkit::{fresh_id, transcript};
use serde_json::Value;
use sha2::{Digest as _, Sha256};

use crate::cli::env::{Running, TestEnv};

/// How long a server may take to end: the grace time, and some more on a busy machine.
pub(super) const GRACE: Duration = Duration::from_secs(9);

/// A server that runs until it is dropped.
pub(super) struct Server {
    pub(super) running: Running,
    pub(super) address: SocketAddr,
    pub(super) home: PathBuf,
    /// What it wrote before it said where it is.
    pub(super) said: Vec<String>,
}

impl Server {
    /// `quipu serve` on a free port.
    pub(super) fn serve(env: &TestEnv, more: &[&str]) -> Self {
        let args = [&["serve", "--listen", "127.0.0.1:0"][..], more].concat();
        Self::start(env, env.dir.path(), &args)
    }

    /// `quipu up` on a free port.
    pub(super) fn up(env: &TestEnv, more: &[&str]) -> Self {
        let args = [&["up", "--listen", "127.0.0.1:0"][..], more].concat();
        Self::start(env, env.dir.path(), &args)
    }

    /// This command, which serves this home.
    pub(super) fn start(env: &TestEnv, home: &Path, args: &[&str]) -> Self {
        Self::of(env.start(args), home)
    }

    pub(super) fn of(running: Running, home: &Path) -> Self {
        let mut said = Vec::new();
        let address = loop {
            let line = running.line();
            if let Some(address) = line.strip_prefix("Serving at http://") {
                break address.parse().unwrap();
            }
            said.push(line);
        };
        Self {
            running,
            address,
            home: home.to_owned(),
            said,
        }
    }

    pub(super) fn get(&self, path: &str) -> Answer {
        self.send("GET", path, &[], b"")
    }

    #[track_caller]
    pub(super) fn json(&self, path: &str) -> Value {
        let answer = self.get(path);
        assert_eq!(answer.status, 200, "{path}: {}", answer.text());
        answer.json()
    }

    pub(super) fn send(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &[u8],
    ) -> Answer {
        let bytes = request(method, path, &self.address.to_string(), headers, body);
        self.raw(&bytes)
    }

    /// Sends these bytes, and reads until the server closes.
    #[track_caller]
    pub(super) fn raw(&self, bytes: &[u8]) -> Answer {
        let all = self.exchange(bytes);
        Answer::parse(&all)
            .unwrap_or_else(|| panic!("not an answer: {:?}", String::from_utf8_lossy(&all)))
    }

    /// What comes back for these bytes until the server closes.
    pub(super) fn exchange(&self, bytes: &[u8]) -> Vec<u8> {
        exchange(self.connect(), bytes)
    }

    pub(super) fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(self.address).unwrap();
        let patience = Some(Duration::from_secs(20));
        stream.set_read_timeout(patience).unwrap();
        stream.set_write_timeout(patience).unwrap();
        stream
    }

    /// What `server.json` says.
    pub(super) fn place(&self) -> Value {
        serde_json::from_slice(&std::fs::read(self.home.join("server.json")).unwrap()).unwrap()
    }

    pub(super) fn token(&self) -> String {
        self.place()["token"].as_str().unwrap().to_owned()
    }

    /// Asks until it is so. Not for ever.
    #[track_caller]
    pub(super) fn until(&self, path: &str, what: impl Fn(&Value) -> bool) -> Value {
        let begun = Instant::now();
        loop {
            let now = self.json(path);
            if what(&now) {
                return now;
            }
            assert!(begun.elapsed() < Duration::from_secs(20), "{path}: {now:#}");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Ends it as a service manager does.
    pub(super) fn end(mut self) {
        self.running.signal(rustix::process::Signal::TERM);
        assert_eq!(self.running.ended_within(GRACE), Some(0));
    }
}

/// The bytes of a request that closes its connection. `Host` is `host` unless the headers have another.
pub(super) fn request(
    method: &str,
    path: &str,
    host: &str,
    headers: &[(&str, &str)],
    body: &[u8],
) -> Vec<u8> {
    let mut head = format!("{method} {path} HTTP/1.1\r\nConnection: close\r\n");
    if !headers.iter().any(|(name, _)| *name == "Host") {
        let more = format!("Host: {host}\r\n");
        head.push_str(&more);
    }
    for (name, value) in headers {
        let more = format!("{name}: {value}\r\n");
        head.push_str(&more);
    }
    if !body.is_empty() || !matches!(method, "GET" | "HEAD") {
        let more = format!("Content-Length: {}\r\n", body.len());
        head.push_str(&more);
    }
    head.push_str("\r\n");
    let mut bytes = head.into_bytes();
    bytes.extend_from_slice(body);
    bytes
}

/// What comes back for these bytes. The server may answer and close before it has all of them.
pub(super) fn exchange(mut stream: impl Read + Write, bytes: &[u8]) -> Vec<u8> {
    drop(stream.write_all(bytes));
    let mut all = Vec::new();
    drop(stream.read_to_end(&mut all));
    all
}

/// What came back.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) status: u16,
    pub(super) head: String,
    pub(super) body: Vec<u8>,
}

impl Answer {
    /// A whole answer: as long as its head says.
    pub(super) fn parse(bytes: &[u8]) -> Option<Self> {
        let end = bytes.windows(4).position(|four| four == b"\r\n\r\n")?;
        let head = String::from_utf8(bytes[..end].to_vec()).unwrap();
        let mut answer = Self {
            status: head.split(' ').nth(1)?.parse().ok()?,
            head,
            body: bytes[end + 4..].to_vec(),
        };
        if answer.header("transfer-encoding") == Some("chunked") {
            answer.body = unchunk(&answer.body)?;
        } else if let Some(length) = answer.header("content-length") {
            // To HEAD, only the length is said.
            let length: usize = length.parse().ok()?;
            if answer.body.len() != length && !answer.body.is_empty() {
                return None;
            }
        }
        Some(answer)
    }

    pub(super) fn header(&self, name: &str) -> Option<&str> {
        let lines = self.head.split("\r\n").skip(1);
        lines
            .filter_map(|line| line.split_once(": "))
            .find(|(other, _)| other.eq_ignore_ascii_case(name))
            .map(|(_, value)| value)
    }

    pub(super) fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    #[track_caller]
    pub(super) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|_| panic!("not JSON: {}", self.text()))
    }
}

/// None when it was cut off.
fn unchunk(mut rest: &[u8]) -> Option<Vec<u8>> {
    let mut body = Vec::new();
    loop {
        let end = rest.windows(2).position(|two| two == b"\r\n")?;
        let length = std::str::from_utf8(&rest[..end]).ok()?;
        let length = usize::from_str_radix(length.trim(), 16).ok()?;
        if length == 0 {
            return Some(body);
        }
        body.extend_from_slice(rest.get(end + 2..end + 2 + length)?);
        rest = rest.get(end + 4 + length..)?;
    }
}

/// A new key of a home.
pub(super) fn key(home: &Path, scope: Scope) -> SecretKey {
    let new = NewKey {
        scopes: Scopes::new([scope]),
        ..NewKey::default()
    };
    let keys = KeyStore::at(home.join("keys.jsonl"));
    keys.make(new, &SystemClock).unwrap().1
}

/// A document to hand over.
pub(super) struct Document {
    pub(super) id: TranscriptId,
    pub(super) bytes: Vec<u8>,
}

impl Document {
    pub(super) fn new(key: &SecretKey, output: &str) -> Self {
        let id = fresh_id().unwrap();
        let bytes = transcript(&id, &key.submitter(false), output);
        Self { id, bytes }
    }

    /// The request that hands it over, packed or not.
    pub(super) fn put(
        &self,
        key: &SecretKey,
        host: &str,
        packed: Option<(&str, &[u8])>,
    ) -> Vec<u8> {
        let bearer = format!("Bearer {}", key.expose());
        let digest = quipu_model::hex::encode(&Sha256::digest(&self.bytes));
        let mut headers = vec![
            ("Authorization", bearer.as_str()),
            ("Content-Type", "application/json"),
            ("Transcript-Sha256", digest.as_str()),
        ];
        let mut body = self.bytes.as_slice();
        if let Some((encoding, packed)) = packed {
            headers.push(("Content-Encoding", encoding));
            body = packed;
        }
        let path = format!("/v1/transcripts/{}", self.id);
        request("PUT", &path, host, &headers, body)
    }

    /// Hands it over.
    pub(super) fn sent(&self, server: &Server, key: &SecretKey) -> Answer {
        server.raw(&self.put(key, &server.address.to_string(), None))
    }

    /// What the server has of it.
    pub(super) fn fetched(&self, server: &Server, key: &SecretKey) -> Answer {
        let bearer = format!("Bearer {}", key.expose());
        let path = format!("/v1/transcripts/{}/document", self.id);
        server.send("GET", &path, &[("Authorization", &bearer)], b"")
    }
}

/// A request of OTLP: one call of a model in a trace of its own, which said this.
pub(super) fn spans(trace: u128, said: &str) -> Vec<u8> {
    use serde_json::json;
    let text = |key: &str, value: &str| json!({"key": key, "value": {"stringValue": value}});
    let body = json!({"resourceSpans": [{
        "resource": {"attributes": [text("service.name", "shop-bot")]},
        "scopeSpans": [{"scope": {"name": "t"}, "spans": [{
            "traceId": format!("{trace:032x}"), "spanId": "b7ad6b7169203331",
            "name": "chat gpt-4o", "kind": 3,
            "startTimeUnixNano": "1760000000000000000", "endTimeUnixNano": "1760000001000000000",
            "attributes": [
                text("gen_ai.operation.name", "chat"), text("gen_ai.request.model", "gpt-4o"),
                text("gen_ai.input.messages",
                    &json!([{"role": "user", "parts": [{"type": "text", "content": said}]}]).to_string()),
            ],
        }]}],
    }]});
    body.to_string().into_bytes()
}

/// Text that does not pack well, and has no secret in it: words of few letters.
pub(super) fn noise(length: usize) -> String {
    let mut state = 0x9E37_79B9_7F4A_7C15_u64;
    let mut text = String::with_capacity(length + 8);
    while text.len() < length {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        for n in 0..7 {
            let letter = b'a' + u8::try_from((state >> (n * 8)) & 15).unwrap();
            text.push(char::from(letter));
        }
        text.push(' ');
    }
    text
}
