//! How the suite speaks to a server: by hand, and with the client.

use std::io::Write as _;
use std::net::TcpStream;
use std::time::Duration;

use serde::de::DeserializeOwned;
use ureq::http::Request;

use super::Subjects;
use crate::client::{Client, ClientOptions, Packed};
use crate::keys::SecretKey;
use crate::protocol::{Encoding, Refusal, SHA256, TranscriptId};

/// How often a server may ask for patience, and for how long at most.
const PATIENCE: usize = 5;
const LONGEST_SECONDS: u64 = 5;

/// An answer.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) status: u16,
    pub(super) headers: Vec<(String, String)>,
    pub(super) body: Vec<u8>,
}

impl Answer {
    pub(super) fn json<T: DeserializeOwned>(&self) -> Result<T, String> {
        serde_json::from_slice(&self.body)
            .map_err(|_| format!("{} without the right body", self.status))
    }

    pub(super) fn header(&self, name: &str) -> Option<&str> {
        let mut all = self.headers.iter();
        all.find(|it| it.0.eq_ignore_ascii_case(name))
            .map(|it| it.1.as_str())
    }

    /// A refusal with this code, and the status that goes with it.
    pub(super) fn refusal(&self, code: crate::protocol::Code) -> Result<Refusal, String> {
        let refusal: Refusal = self.json()?;
        if self.status == code.status() && refusal.code == code {
            Ok(refusal)
        } else {
            Err(format!(
                "{} {:?} and not {code:?}",
                self.status, refusal.code
            ))
        }
    }
}

/// What a request says beside its body.
pub(super) struct Ask<'a> {
    pub(super) method: &'a str,
    pub(super) path: String,
    pub(super) key: Option<&'a SecretKey>,
    pub(super) headers: Vec<(&'a str, String)>,
}

/// A server, and what it is tried with.
pub(super) struct Talk<'a> {
    base: String,
    agent: ureq::Agent,
    pub(super) subjects: &'a Subjects,
}

impl<'a> Talk<'a> {
    pub(super) fn new(address: &str, subjects: &'a Subjects) -> Self {
        let agent = ureq::Agent::config_builder()
            .proxy(None)
            .http_status_as_error(false)
            .max_redirects(0)
            .max_redirects_will_error(false)
            .timeout_global(Some(Duration::from_secs(120)))
            .build()
            .new_agent();
        let base = address.trim_end_matches('/').to_owned();
        Self {
            base,
            agent,
            subjects,
        }
    }

    /// A text without what must not be repeated.
    pub(super) fn hide(&self, text: &str) -> String {
        let mut text = text.replace(&self.subjects.leak.secret, "…");
        for key in [
            &self.subjects.key,
            &self.subjects.other,
            &self.subjects.revoked,
            &self.subjects.reader,
            &self.subjects.admin,
        ] {
            text = text.replace(&key.expose(), "…");
        }
        text
    }

    pub(super) fn client(&self, key: &SecretKey, one_request: u64) -> Result<Client, String> {
        let options = ClientOptions {
            attempts: 3,
            first_wait: Duration::from_millis(50),
            one_request,
            piece: 64 << 10,
            plain_http: true,
            ..ClientOptions::default()
        };
        Client::new(&self.base, key.clone(), options).map_err(|error| error.to_string())
    }

    /// Asks, and again where the server asks for a little patience: it may have a pace, which is none of the checks.
    pub(super) fn ask(&self, ask: &Ask<'_>, body: &[u8]) -> Result<Answer, String> {
        let mut answer = self.ask_once(ask, body)?;
        for _ in 0..PATIENCE {
            let wait = answer.header("retry-after").and_then(|it| it.parse().ok());
            let (429, Some(seconds @ 0..=LONGEST_SECONDS)) = (answer.status, wait) else {
                break;
            };
            std::thread::sleep(Duration::from_secs(seconds));
            answer = self.ask_once(ask, body)?;
        }
        Ok(answer)
    }

    fn ask_once(&self, ask: &Ask<'_>, body: &[u8]) -> Result<Answer, String> {
        let mut request = Request::builder()
            .method(ask.method)
            .uri(format!("{}{}", self.base, ask.path));
        if let Some(key) = ask.key {
            request = request.header("authorization", format!("Bearer {}", key.expose()));
        }
        for (name, value) in &ask.headers {
            request = request.header(*name, value);
        }
        let wrong = |error: &dyn std::fmt::Display| error.to_string();
        let response = if matches!(ask.method, "GET" | "HEAD" | "DELETE") {
            self.agent
                .run(request.body(()).map_err(|error| wrong(&error))?)
        } else {
            self.agent
                .run(request.body(body).map_err(|error| wrong(&error))?)
        };
        let mut response = response.map_err(|error| wrong(&error))?;
        let headers = response.headers().iter();
        let headers = headers
            .filter_map(|(name, value)| Some((name.to_string(), value.to_str().ok()?.to_owned())));
        Ok(Answer {
            status: response.status().as_u16(),
            headers: headers.collect(),
            body: response.body_mut().read_to_vec().unwrap_or_default(),
        })
    }

    /// Asks without a body.
    pub(super) fn get(&self, key: &SecretKey, path: &str) -> Result<Answer, String> {
        let ask = Ask {
            method: "GET",
            path: path.to_owned(),
            key: Some(key),
            headers: Vec::new(),
        };
        self.ask(&ask, b"")
    }

    /// A document in one request, with whatever is said of it.
    pub(super) fn put(
        &self,
        key: Option<&SecretKey>,
        id: &TranscriptId,
        encoding: &str,
        sha256: &str,
        body: &[u8],
    ) -> Result<Answer, String> {
        let ask = Ask {
            method: "PUT",
            path: format!("/v1/transcripts/{id}"),
            key,
            headers: vec![
                ("content-type", "application/json".to_owned()),
                ("content-encoding", encoding.to_owned()),
                (SHA256, sha256.to_owned()),
            ],
        };
        self.ask(&ask, body)
    }

    /// A document in one request, as it is.
    pub(super) fn put_plain(
        &self,
        key: &SecretKey,
        id: &TranscriptId,
        document: &[u8],
    ) -> Result<Answer, String> {
        let packed = pack(id, document, Encoding::Identity)?;
        self.put(
            Some(key),
            id,
            "identity",
            &packed.sha256().to_string(),
            document,
        )
    }

    /// Sends the beginning of a piece, and cuts the connection. `false` where that cannot be done.
    pub(super) fn cut(&self, path: &str, length: usize, begin: &[u8]) -> Result<bool, String> {
        let Some(rest) = self.base.strip_prefix("http://") else {
            return Ok(false);
        };
        let (host, prefix) = rest
            .split_once('/')
            .map_or((rest, String::new()), |(host, path)| {
                (host, format!("/{path}"))
            });
        let mut stream = TcpStream::connect(host).map_err(|error| error.to_string())?;
        let key = self.subjects.key.expose();
        let head = format!(
            "PATCH {prefix}{path} HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer {key}\r\n\
             Content-Type: application/octet-stream\r\nUpload-Offset: 0\r\nContent-Length: {length}\r\n\r\n"
        );
        let sent = stream
            .write_all(head.as_bytes())
            .and_then(|()| stream.write_all(begin));
        sent.map_err(|error| error.to_string())?;
        Ok(true)
    }
}

pub(super) fn pack(
    id: &TranscriptId,
    document: &[u8],
    encoding: Encoding,
) -> Result<Packed, String> {
    Packed::new(id.clone(), document, encoding).map_err(|error| error.to_string())
}
