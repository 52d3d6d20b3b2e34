//! A real browser, driven over its debugging pipe.
//!
//! Chromium opens a page from disk without a window. The test says what the page has to become; the browser is asked
//! for the document once it has. Nothing waits for a fixed time, so a busy machine only makes a test slower. Whatever
//! the page would load has to go through a proxy that is this test: it counts who asks.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, sync_channel};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

/// How long a page may take to become what it has to. Only a page that never does takes this long.
const PATIENCE: Duration = Duration::from_secs(120);

/// The host that is asked for last, by the test itself.
const LAST: &str = "last.invalid";

/// The lines that do not name that host.
fn but_last(mut lines: Vec<String>) -> Vec<String> {
    lines.retain(|line| !line.contains(LAST));
    lines
}

/// What a browser made of a page.
pub(super) struct Seen {
    pub(super) dom: String,
    /// What the console says: calls, errors, violations of the page's policy.
    pub(super) console: Vec<String>,
    /// What the page asked for.
    pub(super) requests: Vec<String>,
}

impl Seen {
    pub(super) fn has(&self, text: &str) -> bool {
        self.dom.contains(text)
    }

    /// Whether a script left its mark on the document's tag.
    pub(super) fn is_marked(&self) -> bool {
        let from = self.dom.find("<html").unwrap();
        let tag = &self.dom[from..from + self.dom[from..].find('>').unwrap()];
        tag.contains("pwned")
    }
}

/// A browser that this machine has.
pub(super) struct Chromium(PathBuf);

impl Chromium {
    /// The browser, if this machine has one. If it has none, the test says that it is skipped.
    pub(super) fn find() -> Option<Self> {
        let names = ["chromium", "chromium-browser", "google-chrome"];
        let path = std::env::var_os("PATH").unwrap_or_default();
        let found = std::env::split_paths(&path)
            .flat_map(|folder| names.map(|name| folder.join(name)))
            .find(|program| program.is_file());
        if found.is_none() {
            let mut log = std::io::stderr();
            writeln!(log, "SKIPPED: no Chromium on the PATH").unwrap();
        }
        found.map(Self)
    }

    /// Opens a page, waits until a JavaScript expression holds in it, and says what was seen.
    pub(super) fn open(&self, page: &[u8], hash: &str, until: &str) -> Seen {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("page.html");
        std::fs::File::create(&file)
            .unwrap()
            .write_all(page)
            .unwrap();
        let proxy = Proxy::start();
        let mut session = Session::start(self, &folder.path().join("profile"));
        // The page has a proxy of its own, so what the browser would ask its maker for is not among its requests.
        let own = json!({"proxyServer": format!("http://{}", proxy.address), "proxyBypassList": "<-loopback>"});
        let context = session.call("Target.createBrowserContext", &own);
        let blank = json!({"url": "about:blank", "browserContextId": context["browserContextId"]});
        let target = session.call("Target.createTarget", &blank);
        let attach = json!({"targetId": target["targetId"], "flatten": true});
        session.page = Some(session.call("Target.attachToTarget", &attach)["sessionId"].clone());
        for domain in ["Runtime", "Log", "Page"] {
            session.call(&format!("{domain}.enable"), &json!({}));
        }
        let url = format!("file://{}{hash}", file.display());
        session.call("Page.navigate", &json!({ "url": url }));
        let became = session.evaluate(&format!(
            "new Promise((done) => {{
               const look = () => document.readyState === 'complete' && ({until}) ? done(true) : setTimeout(look, 10);
               look();
             }})"
        ));
        assert_eq!(became, json!(true), "the page never became: {until}");
        // What the page asked for before this was asked for before it, and failed before it.
        session.evaluate(&format!(
            "new Promise((done) => {{
               const last = new Image();
               last.onerror = () => done(true);
               last.src = 'http://{LAST}/';
             }})"
        ));
        let dom = session.evaluate("document.documentElement.outerHTML");
        Seen {
            dom: dom.as_str().unwrap().to_owned(),
            console: but_last(std::mem::take(&mut session.console)),
            requests: but_last(proxy.stop()),
        }
    }
}

/// One browser process and its debugging pipe.
struct Session {
    child: Child,
    to: ChildStdin,
    from: Receiver<Value>,
    calls: u64,
    page: Option<Value>,
    console: Vec<String>,
    until: Instant,
}

impl Session {
    fn start(program: &Chromium, profile: &Path) -> Self {
        // The browser reads commands from descriptor 3 and answers on 4; the shell moves our pipes there.
        let mut child = Command::new("sh")
            .args([
                "-c",
                r#"exec "$@" 3<&0 4>&1 </dev/null >/dev/null 2>&1"#,
                "sh",
            ])
            .arg(&program.0)
            .args(["--headless", "--no-sandbox", "--disable-gpu"])
            .args(["--disable-quic", "--no-first-run", "--disable-sync"])
            .args(["--disable-extensions", "--disable-background-networking"])
            .args(["--disable-component-update", "--disable-default-apps"])
            .args(["--disable-dev-shm-usage", "--metrics-recording-only"])
            .args(["--window-size=1280,900", "--remote-debugging-pipe"])
            .args(["--no-startup-window", "--proxy-server=http://127.0.0.1:9"])
            .arg(format!("--user-data-dir={}", profile.display()))
            .env("TZ", "UTC")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let (to, out) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        let (send, from) = sync_channel(1024);
        std::thread::spawn(move || {
            let mut out = BufReader::new(out);
            let mut message = Vec::new();
            while out.read_until(0, &mut message).is_ok_and(|read| read > 0) {
                message.pop();
                let value = serde_json::from_slice(&message).unwrap();
                message.clear();
                if send.send(value).is_err() {
                    return;
                }
            }
        });
        Self {
            child,
            to,
            from,
            calls: 0,
            page: None,
            console: Vec::new(),
            until: Instant::now() + PATIENCE,
        }
    }

    /// Sends a command and waits for its answer; what the console says meanwhile is kept.
    fn call(&mut self, method: &str, params: &Value) -> Value {
        self.calls += 1;
        let mut message = json!({"id": self.calls, "method": method, "params": params});
        if let Some(page) = &self.page {
            message["sessionId"] = page.clone();
        }
        let mut bytes = message.to_string().into_bytes();
        bytes.push(0);
        self.to.write_all(&bytes).unwrap();
        loop {
            let left = self.until.saturating_duration_since(Instant::now());
            let Ok(mut message) = self.from.recv_timeout(left) else {
                panic!("the browser gave no answer to {method}");
            };
            if message["id"] == json!(self.calls) {
                assert!(message["error"].is_null(), "{method}: {message}");
                return message["result"].take();
            }
            let told = ["Runtime.consoleAPICalled", "Runtime.exceptionThrown"];
            let happened = message["method"].as_str().unwrap_or_default();
            if told.contains(&happened) || happened == "Log.entryAdded" {
                self.console.push(message["params"].to_string());
            }
        }
    }

    /// What an expression gives in the page.
    fn evaluate(&mut self, expression: &str) -> Value {
        let params = json!({"expression": expression, "awaitPromise": true, "returnByValue": true});
        let answer = self.call("Runtime.evaluate", &params);
        assert!(answer["exceptionDetails"].is_null(), "{answer}");
        answer["result"]["value"].clone()
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        // It may have ended by itself.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// Takes connections, notes what they ask for, and says no.
struct Proxy {
    address: SocketAddr,
    asked: Arc<Mutex<Vec<String>>>,
    thread: std::thread::JoinHandle<()>,
}

/// What a proxy is asked for when it should stop.
const STOP: &str = "STOP";

impl Proxy {
    fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let asked = Arc::new(Mutex::new(Vec::new()));
        let list = Arc::clone(&asked);
        let thread = std::thread::spawn(move || {
            for stream in listener.incoming() {
                let stream = stream.unwrap();
                stream
                    .set_read_timeout(Some(Duration::from_secs(2)))
                    .unwrap();
                let mut line = String::new();
                // A connection that is closed without a word asks for nothing.
                drop(BufReader::new(&stream).read_line(&mut line));
                let line = line.trim();
                if line == STOP {
                    return;
                }
                list.lock().unwrap().push(line.to_owned());
                let no = b"HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n";
                drop((&stream).write_all(no));
            }
        });
        Self {
            address,
            asked,
            thread,
        }
    }

    /// Everything that was asked for.
    fn stop(self) -> Vec<String> {
        let mut stream = TcpStream::connect(self.address).unwrap();
        stream.write_all(format!("{STOP}\n").as_bytes()).unwrap();
        self.thread.join().unwrap();
        self.asked.lock().unwrap().clone()
    }
}
