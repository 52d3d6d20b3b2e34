//! A real browser for tests and benches, driven over its debugging pipe.
//!
//! Chromium opens a page from disk ([`Chromium::open`]) or from a server on this machine ([`Chromium::visit`]), without a window.
//! The test says what the page has to become; the browser is asked for the document once it has. Nothing waits for a
//! fixed time, so a busy machine only makes a test slower. Whatever a page would load from elsewhere has to go through a
//! proxy that is this test: it counts who asks.
//!
//! ```no_run
//! if let Some(browser) = quipu_browser::Chromium::find() {
//!     let mut tab = browser.visit("http://127.0.0.1:7847/");
//!     tab.until("document.querySelector('main[data-ready]')");
//!     tab.press("?");
//!     assert!(tab.console().is_empty() && tab.requests().is_empty());
//! }
//! ```

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::disallowed_methods,
    reason = "only tests and benches use it, and a panic is how a test fails"
)]

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
#[derive(Debug)]
pub struct Seen {
    /// The document, as HTML.
    pub dom: String,
    /// What the console says: calls, errors, violations of the page's policy.
    pub console: Vec<String>,
    /// What the page asked for.
    pub requests: Vec<String>,
}

impl Seen {
    /// Whether a text is in the document.
    pub fn has(&self, text: &str) -> bool {
        self.dom.contains(text)
    }

    /// Whether a script left its mark on the document's tag.
    ///
    /// # Panics
    ///
    /// When there is no document.
    pub fn is_marked(&self) -> bool {
        let from = self.dom.find("<html").unwrap();
        let tag = &self.dom[from..from + self.dom[from..].find('>').unwrap()];
        tag.contains("pwned")
    }
}

/// A browser that this machine has.
#[derive(Debug)]
pub struct Chromium(PathBuf);

impl Chromium {
    /// The browser, if this machine has one. If it has none, the test says that it is skipped.
    pub fn find() -> Option<Self> {
        let names = ["chromium", "chromium-browser", "google-chrome"];
        let path = std::env::var_os("PATH").unwrap_or_default();
        let found = std::env::split_paths(&path)
            .flat_map(|folder| names.map(|name| folder.join(name)))
            .find(|program| program.is_file());
        if found.is_none() {
            let mut log = std::io::stderr();
            drop(writeln!(log, "SKIPPED: no Chromium on the PATH"));
        }
        found.map(Self)
    }

    /// Opens a page from disk, waits until a JavaScript expression holds in it, and says what was seen.
    ///
    /// # Panics
    ///
    /// When the browser does not do what it is told, or the page never becomes what it has to.
    pub fn open(&self, page: &[u8], hash: &str, until: &str) -> Seen {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("page.html");
        std::fs::write(&file, page).unwrap();
        let mut tab = self.tab("<-loopback>");
        tab.go(&format!("file://{}{hash}", file.display()));
        tab.until(&format!("document.readyState === 'complete' && ({until})"));
        tab.settle();
        Seen {
            dom: tab.text("document.documentElement.outerHTML"),
            console: tab.console(),
            requests: tab.requests(),
        }
    }

    /// Opens an address of a server on this machine.
    ///
    /// # Panics
    ///
    /// When the browser does not do what it is told.
    pub fn visit(&self, url: &str) -> Tab {
        let mut tab = self.blank(url.split('/').nth(2).unwrap());
        tab.go(url);
        tab
    }

    /// An empty tab with nothing kept from before, which may ask a server on this machine.
    ///
    /// # Panics
    ///
    /// When the browser does not do what it is told.
    pub fn blank(&self, host: &str) -> Tab {
        self.tab(&format!("<-loopback>;{host}"))
    }

    /// A tab whose requests go to a proxy of its own, except those to hosts that may be asked.
    fn tab(&self, bypass: &str) -> Tab {
        let folder = tempfile::tempdir().unwrap();
        let proxy = Proxy::start();
        let mut session = Session::start(self, &folder.path().join("profile"));
        // The page has a proxy of its own, so what the browser would ask its maker for is not among its requests.
        let own =
            json!({"proxyServer": format!("http://{}", proxy.address), "proxyBypassList": bypass});
        let context = session.call("Target.createBrowserContext", &own);
        let blank = json!({"url": "about:blank", "browserContextId": context["browserContextId"]});
        let target = session.call("Target.createTarget", &blank);
        let attach = json!({"targetId": target["targetId"], "flatten": true});
        session.page = Some(session.call("Target.attachToTarget", &attach)["sessionId"].clone());
        for domain in ["Runtime", "Log", "Page"] {
            session.call(&format!("{domain}.enable"), &json!({}));
        }
        Tab {
            session,
            proxy: Some(proxy),
            _folder: folder,
        }
    }
}

/// A page that is open.
#[derive(Debug)]
pub struct Tab {
    session: Session,
    proxy: Option<Proxy>,
    _folder: tempfile::TempDir,
}

impl Tab {
    /// Goes to an address.
    ///
    /// # Panics
    ///
    /// When the browser does not do what it is told.
    pub fn go(&mut self, url: &str) {
        self.session.begin();
        self.session.call("Page.navigate", &json!({ "url": url }));
    }

    /// Waits until a JavaScript expression holds.
    ///
    /// # Panics
    ///
    /// When it never does.
    pub fn until(&mut self, expression: &str) {
        self.session.begin();
        let became = self.session.evaluate(&format!(
            "new Promise((done) => {{
               const end = Date.now() + {};
               const look = () => {{
                 try {{ if ({expression}) return done(true); }} catch {{}}
                 if (Date.now() > end) done(document.body.innerText.slice(0, 2000));
                 else setTimeout(look, 10);
               }};
               look();
             }})",
            (PATIENCE / 2).as_millis()
        ));
        assert_eq!(became, json!(true), "the page never became: {expression}");
    }

    /// What an expression gives.
    ///
    /// # Panics
    ///
    /// When the page throws.
    pub fn get(&mut self, expression: &str) -> Value {
        self.session.begin();
        self.session.evaluate(expression)
    }

    /// What an expression gives, as text.
    ///
    /// # Panics
    ///
    /// When it is not text.
    pub fn text(&mut self, expression: &str) -> String {
        let value = self.get(expression);
        value.as_str().expect("a text").to_owned()
    }

    /// Presses a key as a person does: a letter, or a name such as `Enter`.
    ///
    /// # Panics
    ///
    /// When the browser does not do what it is told.
    pub fn press(&mut self, key: &str) {
        let (code, text) = match key {
            "Enter" => (13, "\r"),
            "Escape" => (27, ""),
            "Tab" => (9, ""),
            "Home" => (36, ""),
            "ArrowDown" => (40, ""),
            "ArrowUp" => (38, ""),
            key => (u32::from(key.to_ascii_uppercase().as_bytes()[0]), key),
        };
        for kind in ["keyDown", "keyUp"] {
            let mut params = json!({"type": kind, "key": key, "windowsVirtualKeyCode": code});
            if kind == "keyDown" && !text.is_empty() {
                params["text"] = json!(text);
            }
            self.session.call("Input.dispatchKeyEvent", &params);
        }
    }

    /// Types a text, letter by letter.
    ///
    /// # Panics
    ///
    /// When the browser does not do what it is told.
    pub fn write(&mut self, text: &str) {
        for letter in text.chars() {
            self.press(letter.encode_utf8(&mut [0; 4]));
        }
    }

    /// Clicks with the mouse where an element is.
    ///
    /// # Panics
    ///
    /// When there is no such element on the screen.
    pub fn click(&mut self, selector: &str) {
        self.until(&format!("document.querySelector({})", json!(selector)));
        let place = self.get(&format!(
            "(() => {{
               const node = document.querySelector({});
               node.scrollIntoView({{ block: 'center', behavior: 'instant' }});
               const box = node.getBoundingClientRect();
               return [box.x + box.width / 2, box.y + box.height / 2];
             }})()",
            json!(selector)
        ));
        for (kind, buttons) in [("mousePressed", 1), ("mouseReleased", 0)] {
            let params = json!({"type": kind, "x": place[0], "y": place[1], "button": "left", "buttons": buttons, "clickCount": 1});
            self.session.call("Input.dispatchMouseEvent", &params);
        }
    }

    /// Makes the window as wide and as high as this, in these colours.
    ///
    /// # Panics
    ///
    /// When the browser does not do what it is told.
    pub fn look(&mut self, width: u32, height: u32, dark: bool) {
        let size =
            json!({"width": width, "height": height, "deviceScaleFactor": 1, "mobile": false});
        self.session
            .call("Emulation.setDeviceMetricsOverride", &size);
        let scheme = if dark { "dark" } else { "light" };
        let media = json!({"features": [{"name": "prefers-color-scheme", "value": scheme}]});
        self.session.call("Emulation.setEmulatedMedia", &media);
    }

    /// Waits until all that the page has asked for elsewhere has reached the proxy.
    ///
    /// # Panics
    ///
    /// When the browser does not do what it is told.
    pub fn settle(&mut self) {
        // What the page asked for before this was asked for before it, and failed before it.
        self.get(&format!(
            "new Promise((done) => {{
               const last = new Image();
               last.onerror = () => done(true);
               last.src = 'http://{LAST}/';
             }})"
        ));
    }

    /// Does something that only the debugging protocol can, such as `Network.enable`; gives its answer.
    ///
    /// # Panics
    ///
    /// When the browser does not know it.
    pub fn command(&mut self, method: &str, params: &Value) -> Value {
        self.session.begin();
        self.session.call(method, params)
    }

    /// The addresses that the page has asked for since the last time, if `Network.enable` was done.
    pub fn sent(&mut self) -> Vec<String> {
        // What was told until now is read while an answer is waited for.
        self.get("true");
        std::mem::take(&mut self.session.sent)
    }

    /// The ids of the processes that draw pages. That of this tab is among them.
    ///
    /// # Panics
    ///
    /// When the browser does not tell.
    pub fn renderers(&mut self) -> Vec<u64> {
        self.session.begin();
        // Only the browser as a whole knows, not the page.
        let page = self.session.page.take();
        let all = self.session.call("SystemInfo.getProcessInfo", &json!({}));
        self.session.page = page;
        let all = all["processInfo"].as_array().expect("a list");
        let drawing = all.iter().filter(|it| it["type"] == "renderer");
        drawing.filter_map(|it| it["id"].as_u64()).collect()
    }

    /// What the console has said since the last time.
    pub fn console(&mut self) -> Vec<String> {
        but_last(std::mem::take(&mut self.session.console))
    }

    /// What the page asked for elsewhere. It can be asked once.
    ///
    /// # Panics
    ///
    /// When the proxy has stopped.
    pub fn requests(&mut self) -> Vec<String> {
        but_last(self.proxy.take().map(Proxy::stop).unwrap_or_default())
    }
}

/// One browser process and its debugging pipe.
#[derive(Debug)]
struct Session {
    child: Child,
    to: ChildStdin,
    from: Receiver<Value>,
    calls: u64,
    page: Option<Value>,
    console: Vec<String>,
    sent: Vec<String>,
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
            .args(["--disable-features=AutofillServerCommunication,OptimizationHints,Translate"])
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
            sent: Vec::new(),
            until: Instant::now() + PATIENCE,
        }
    }

    /// Gives the page its time anew.
    fn begin(&mut self) {
        self.until = Instant::now() + PATIENCE;
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
            if happened == "Network.requestWillBeSent" {
                let url = message["params"]["request"]["url"].as_str();
                self.sent.push(url.unwrap_or_default().to_owned());
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
#[derive(Debug)]
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
