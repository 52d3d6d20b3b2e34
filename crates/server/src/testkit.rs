//! A server on a port of its own, and a client that says exactly what it is told to.

use std::fmt::Write as _;
use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::path::Path;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use quipu_agents::Host;
use quipu_prices::Prices;
use quipu_record::{Clock, SystemClock};
use quipu_redact::Key;
use serde_json::Value;

use crate::app::{BuiltinRemovals, KeyCheck, Parts};
use crate::options::{Listen, Options};
use crate::{App, Bound, Listening, router};

/// A server that runs until it is dropped.
pub(crate) struct Served {
    pub(crate) app: App,
    pub(crate) address: SocketAddr,
    home: tempfile::TempDir,
    thread: Option<JoinHandle<Listening>>,
}

impl Served {
    /// Serves an empty home.
    pub(crate) fn empty() -> Self {
        Self::with(|_| {}, |_| {})
    }

    /// Serves a home that `fill` put something into, with options that `set` changed.
    pub(crate) fn with(fill: impl FnOnce(&Path), set: impl FnOnce(&mut Options)) -> Self {
        Self::with_keys(fill, set, None)
    }

    /// The same, with keys.
    pub(crate) fn with_keys(
        fill: impl FnOnce(&Path),
        set: impl FnOnce(&mut Options),
        keys: Option<Box<dyn KeyCheck>>,
    ) -> Self {
        let home = tempfile::tempdir().unwrap();
        fill(home.path());
        let mut options = Options {
            listen: vec![Listen::Tcp {
                address: SocketAddr::new(Ipv4Addr::LOCALHOST.into(), 0),
                or_next: false,
            }],
            ..Options::default()
        };
        set(&mut options);
        Self::serve(home, options, keys, Arc::new(SystemClock))
    }

    /// Serves an empty home with this clock.
    pub(crate) fn with_clock(clock: Arc<dyn Clock>) -> Self {
        let home = tempfile::tempdir().unwrap();
        let options = Options {
            listen: vec![Listen::Tcp {
                address: SocketAddr::new(Ipv4Addr::LOCALHOST.into(), 0),
                or_next: false,
            }],
            ..Options::default()
        };
        Self::serve(home, options, None, clock)
    }

    /// Ends the server and starts another one with the same home.
    pub(crate) fn restarted(mut self) -> Self {
        let options = self.app.options().clone();
        let home = std::mem::replace(&mut self.home, tempfile::tempdir().unwrap());
        drop(self);
        Self::serve(home, options, None, Arc::new(SystemClock))
    }

    fn serve(
        home: tempfile::TempDir,
        options: Options,
        keys: Option<Box<dyn KeyCheck>>,
        clock: Arc<dyn Clock>,
    ) -> Self {
        let parts = Parts {
            home: home.path().to_owned(),
            prices: Prices::builtin(),
            removals: Box::new(BuiltinRemovals(Key::from_bytes([7; 32]))),
            host: Host::new(home.path().join("nobody"), |_| None),
            keys,
        };
        let app = App::with_clock(parts, options, clock).unwrap();
        let (tell, told) = std::sync::mpsc::sync_channel(1);
        let served = app.clone();
        let thread = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_multi_thread()
                .worker_threads(2)
                .enable_all()
                .build()
                .unwrap();
            runtime.block_on(async {
                let bound = Bound::open(&served).await.unwrap();
                tell.send(bound.urls()).unwrap();
                let routes = router(&served);
                bound.serve(served, routes).await
            })
        });
        let urls = told.recv().unwrap();
        let address = urls[0].trim_start_matches("http://").parse().unwrap();
        Self {
            app,
            address,
            home,
            thread: Some(thread),
        }
    }

    /// The home.
    pub(crate) fn home(&self) -> &Path {
        self.home.path()
    }

    /// Asks for something, as a program of the owner would.
    pub(crate) fn get(&self, path: &str) -> Answer {
        self.send("GET", path, &[], b"")
    }

    /// The same, with the token of this start.
    pub(crate) fn as_owner(&self, method: &str, path: &str, body: &Value) -> Answer {
        let body = body.to_string();
        let headers = [
            ("x-quipu-token", self.app.token().expose()),
            ("content-type", "application/json"),
        ];
        self.send(method, path, &headers, body.as_bytes())
    }

    /// Sends exactly this, with a fitting `Host` unless another is given.
    pub(crate) fn send(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &[u8],
    ) -> Answer {
        let mut head = format!("{method} {path} HTTP/1.1\r\nConnection: close\r\n");
        if !headers
            .iter()
            .any(|(name, _)| name.eq_ignore_ascii_case("host"))
        {
            write!(head, "Host: {}\r\n", self.address).unwrap();
        }
        for (name, value) in headers {
            write!(head, "{name}: {value}\r\n").unwrap();
        }
        if !body.is_empty() || method != "GET" {
            write!(head, "Content-Length: {}\r\n", body.len()).unwrap();
        }
        head.push_str("\r\n");
        let mut bytes = head.into_bytes();
        bytes.extend_from_slice(body);
        self.raw(&bytes)
    }

    /// Sends these bytes, and reads until the server closes.
    pub(crate) fn raw(&self, bytes: &[u8]) -> Answer {
        let mut stream = self.connect();
        // The server may answer and close before it has all of it.
        drop(stream.write_all(bytes));
        let mut all = Vec::new();
        drop(stream.read_to_end(&mut all));
        Answer::parse(&all)
    }

    /// A connection.
    pub(crate) fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(self.address).unwrap();
        stream
            .set_read_timeout(Some(Duration::from_secs(20)))
            .unwrap();
        stream
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        self.app.ending().cancel();
        if let Some(thread) = self.thread.take() {
            drop(thread.join());
        }
    }
}

/// What came back.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

impl Answer {
    fn parse(bytes: &[u8]) -> Self {
        let end = bytes.windows(4).position(|four| four == b"\r\n\r\n");
        let end = end.unwrap_or_else(|| panic!("no answer: {:?}", String::from_utf8_lossy(bytes)));
        let head = String::from_utf8(bytes[..end].to_vec()).unwrap();
        let mut lines = head.split("\r\n");
        let status = lines.next().unwrap().split(' ').nth(1).unwrap();
        let headers: Vec<(String, String)> = lines
            .filter_map(|line| line.split_once(": "))
            .map(|(name, value)| (name.to_lowercase(), value.to_owned()))
            .collect();
        let mut body = bytes[end + 4..].to_vec();
        if headers
            .iter()
            .any(|(name, value)| name == "transfer-encoding" && value == "chunked")
        {
            body = unchunk(&body);
        }
        Self {
            status: status.parse().unwrap(),
            headers,
            body,
        }
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(other, _)| other == name);
        found.map(|(_, value)| value.as_str())
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|_| panic!("not JSON: {}", self.text()))
    }
}

fn unchunk(mut rest: &[u8]) -> Vec<u8> {
    let mut body = Vec::new();
    while let Some(end) = rest.windows(2).position(|two| two == b"\r\n") {
        let length = std::str::from_utf8(&rest[..end]).unwrap();
        let length = usize::from_str_radix(length.trim(), 16).unwrap();
        if length == 0 {
            break;
        }
        body.extend_from_slice(&rest[end + 2..end + 2 + length]);
        rest = &rest[end + 4 + length..];
    }
    body
}
