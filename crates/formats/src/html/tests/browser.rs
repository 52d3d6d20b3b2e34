//! Pages in a real browser, where there is one.
//!
//! Chromium opens the page from disk without a window, runs it for a while of virtual time, and prints the document
//! as it is then. What the console says goes to the log. Whatever it would load has to go through a proxy that is
//! this test: it counts who asks.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use super::{fixture, hostile, page};
use crate::html::{Options, Passphrase, Seal};

/// What a browser made of a page.
struct Seen {
    dom: String,
    /// What the console says.
    console: Vec<String>,
    /// What was asked for, but for what this browser asks its maker for by itself.
    requests: Vec<String>,
}

impl Seen {
    fn has(&self, text: &str) -> bool {
        self.dom.contains(text)
    }

    /// The tag of the document, where a script would leave its mark.
    fn is_marked(&self) -> bool {
        let from = self.dom.find("<html").unwrap();
        let tag = &self.dom[from..from + self.dom[from..].find('>').unwrap()];
        tag.contains("pwned")
    }
}

/// The browser, if this machine has one. It is not an error if it has none.
fn chromium() -> Option<PathBuf> {
    let names = ["chromium", "chromium-browser", "google-chrome"];
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found = std::env::split_paths(&path)
        .flat_map(|folder| names.map(|name| folder.join(name)))
        .find(|program| program.is_file());
    if found.is_none() {
        let mut log = std::io::stderr();
        writeln!(log, "SKIPPED: no Chromium on the PATH").unwrap();
    }
    found
}

/// Takes connections and says no, until it is told to stop.
fn refuse(listener: TcpListener, is_done: Arc<AtomicBool>) -> Arc<Mutex<Vec<String>>> {
    let asked = Arc::new(Mutex::new(Vec::new()));
    let list = Arc::clone(&asked);
    listener.set_nonblocking(true).unwrap();
    std::thread::spawn(move || {
        while !is_done.load(Ordering::Relaxed) {
            let Ok((stream, _)) = listener.accept() else {
                std::thread::sleep(Duration::from_millis(5));
                continue;
            };
            stream.set_nonblocking(false).unwrap();
            let limit = Some(Duration::from_secs(2));
            stream.set_read_timeout(limit).unwrap();
            let mut line = String::new();
            let mut reader = BufReader::new(&stream);
            let _read = reader.read_line(&mut line);
            list.lock().unwrap().push(line.trim().to_owned());
            let _written =
                (&stream).write_all(b"HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n");
        }
    });
    asked
}

/// Opens a page, and says what was seen. A browser that is short of time writes the page down before its entries are
/// drawn, and one that finds no room does not begin; then it is opened again, a few times and later each time. What it says
/// or asks for counts from every time.
fn open(program: &Path, page: &[u8], hash: &str) -> Seen {
    let mut seen = open_once(program, page, hash);
    for wait in 1..4 {
        if seen.has("id=\"ev-") || seen.has("quipu-sealed") {
            break;
        }
        if seen.dom.trim().is_empty() {
            std::thread::sleep(Duration::from_secs(wait));
        }
        let again = open_once(program, page, hash);
        seen.dom = again.dom;
        seen.console.extend(again.console);
        seen.requests.extend(again.requests);
    }
    seen
}

fn open_once(program: &Path, page: &[u8], hash: &str) -> Seen {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("page.html");
    std::fs::File::create(&file)
        .unwrap()
        .write_all(page)
        .unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let is_done = Arc::new(AtomicBool::new(false));
    let asked = refuse(listener, Arc::clone(&is_done));
    let mut child = Command::new(program)
        .args([
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-quic",
        ])
        .args(["--no-first-run", "--disable-sync", "--disable-extensions"])
        .args([
            "--disable-background-networking",
            "--disable-component-update",
        ])
        .args([
            "--disable-default-apps",
            "--disable-dev-shm-usage",
            "--metrics-recording-only",
        ])
        .args(["--enable-logging=stderr", "--v=0"])
        .arg(format!("--proxy-server=http://127.0.0.1:{port}"))
        .arg("--proxy-bypass-list=<-loopback>")
        .arg(format!(
            "--user-data-dir={}",
            folder.path().join("profile").display()
        ))
        .args([
            "--window-size=1280,900",
            "--virtual-time-budget=8000",
            "--dump-dom",
        ])
        .arg(format!("file://{}{hash}", file.display()))
        .env("TZ", "UTC")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdout = child.stdout.take().unwrap();
    let mut stderr = child.stderr.take().unwrap();
    let dom = std::thread::spawn(move || {
        let mut bytes = Vec::new();
        stdout.read_to_end(&mut bytes).unwrap();
        String::from_utf8_lossy(&bytes).into_owned()
    });
    let log = std::thread::spawn(move || {
        let mut bytes = Vec::new();
        stderr.read_to_end(&mut bytes).unwrap();
        String::from_utf8_lossy(&bytes).into_owned()
    });
    let begun = Instant::now();
    while child.try_wait().unwrap().is_none() {
        if begun.elapsed() > Duration::from_secs(90) {
            child.kill().unwrap();
            child.wait().unwrap();
            panic!("the browser did not finish");
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    is_done.store(true, Ordering::Relaxed);
    let log = log.join().unwrap();
    let is_own = |line: &str| {
        ["google.com", "googleapis.com", "gvt1.com"]
            .iter()
            .any(|it| line.contains(it))
    };
    let mut requests = asked.lock().unwrap().clone();
    requests.retain(|line| !is_own(line));
    Seen {
        dom: dom.join().unwrap(),
        console: log
            .lines()
            .filter(|line| line.contains("CONSOLE"))
            .map(ToOwned::to_owned)
            .collect(),
        requests,
    }
}

#[test]
fn a_page_is_drawn_and_asks_for_nothing() {
    let Some(program) = chromium() else { return };
    let (header, events) = fixture::session();
    let (page, _) = page(&header, &events, &Options::default());
    let seen = open(&program, &page, "");
    assert_eq!(seen.console, [""; 0]);
    assert_eq!(seen.requests, [""; 0]);
    for shown in [
        "<h1>Departures an hour off after the clock change</h1>",
        "id=\"ev-3\"",
        "<span class=\"told\">npm test -- --reporter=dot",
        "✕ failed",
        "⊘ denied",
        "◔ timed out",
        "2 h 25 min later",
        "class=\"line add\"",
        "src=\"data:image/png;base64,",
        "<strong>calendar and the clock</strong>",
        "Sub-agent <code>a7f31c</code>",
    ] {
        assert!(seen.has(shown), "{shown}");
    }
    assert!(!seen.has("Reading the session"));
}

/// One attached as a note of its own, before and behind its message; small ones inside of a result.
#[test]
fn pictures_are_shown_where_they_were_given() {
    let Some(program) = chromium() else { return };
    let tiny = "R0lGODlhAQABAIAAAAAAAP///yH5BAEAAAAALAAAAAABAAEAAAIBRAA7";
    let svg = "PHN2ZyB4bWxucz0iaHR0cDovL3d3dy53My5vcmcvMjAwMC9zdmciLz4=";
    let part = |data: &str| serde_json::json!({"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": data}});
    let at = "2026-03-17T09:12:05Z";
    let lines = [
        serde_json::json!({"at": at, "kind": "user", "text": "Behind.", "native": "a"}),
        serde_json::json!({"at": at, "kind": "note", "note": "attachment", "text": "image/png", "native": "a", "attachments": []}),
        serde_json::json!({"at": at, "kind": "call", "tool": "Look", "id": "c", "input": {"old_string": "a", "new_string": "b"}}),
        serde_json::json!({"at": at, "kind": "result", "tool": "Look", "id": "c", "output": [{"type": "text", "text": "One, and no other:"}, part(tiny), part(svg)]}),
        serde_json::json!({"at": at, "kind": "note", "note": "attachment", "text": "image/png", "native": "b", "attachments": []}),
        serde_json::json!({"at": at, "kind": "user", "text": "Before.", "native": "b"}),
        serde_json::json!({"at": at, "kind": "note", "note": "attachment", "text": "image/png", "native": "c", "attachments": []}),
    ];
    let (header, _) = fixture::session();
    let lines = lines.map(|line| line.to_string()).join("\n");
    let events = fixture::events(&header.run_id, &lines);
    let (page, _) = page(&header, &events, &Options::default());
    let seen = open(&program, &page, "");
    assert_eq!(seen.console, [""; 0]);
    let entries: Vec<&str> = seen.dom.split("<article").skip(1).collect();
    let shown = |entry: &str| entry.matches("<img src=\"data:image/").count();
    assert_eq!(entries.len(), 4, "two are in their messages");
    for (entry, said) in [(0, "Behind."), (2, "Before."), (3, "attachment")] {
        assert!(entries[entry].contains(said), "{}", entries[entry]);
        assert_eq!(shown(entries[entry]), 1, "{said}");
    }
    assert!(entries[1].contains(&format!("<img src=\"data:image/gif;base64,{tiny}\"")));
    assert_eq!(shown(entries[1]), 1, "by its bytes, not by what it says");
    assert!(entries[1].contains(">One, and no other:") && entries[1].contains(svg));
}

#[test]
fn a_search_finds_what_is_folded() {
    let Some(program) = chromium() else { return };
    let (header, events) = fixture::session();
    let (page, _) = page(&header, &events, &Options::default());
    // In the output of a tool that is folded at first, behind what is shown of it at first.
    let seen = open(&program, &page, "#q=Departure[]");
    assert_eq!(seen.console, [""; 0]);
    let from = seen.dom.find("id=\"ev-10\"").unwrap();
    let entry = &seen.dom[from..from + seen.dom[from..].find("</article>").unwrap()];
    assert!(entry.contains("<details class=\"fold\" open"), "{entry}");
    assert!(entry.contains("private on(from: Harbour"), "{entry}");
    assert!(seen.has("is-current-match\" id=\"ev-10\""));
    let found = ">1/1</output>";
    assert!(
        seen.has(found),
        "{}",
        &seen.dom[seen.dom.find("<output").unwrap()..][..200]
    );
    let seen = open(&program, &page, "#q=nowhere%20at%20all");
    assert!(seen.has(">none</output>") && !seen.has("is-current-match\" id="));
}

#[test]
fn a_link_to_an_entry_goes_there() {
    let Some(program) = chromium() else { return };
    let (header, events) = fixture::session();
    let (page, _) = page(&header, &events, &Options::default());
    // The number of a result is that of the entry of its call.
    let seen = open(&program, &page, "#ev-25");
    assert_eq!(seen.console, [""; 0]);
    let from = seen.dom.find("id=\"ev-24\"").unwrap();
    let tag = &seen.dom[seen.dom[..from].rfind('<').unwrap()..from];
    assert!(tag.contains("is-current"), "{tag}");
}

#[test]
fn hostile_text_in_every_field_is_text() {
    let Some(program) = chromium() else { return };
    let (header, events) = hostile::session();
    let options = Options::default();
    let (page, _) = page(&header, &events, &options);
    for hash in ["", "#q=%3Cscript", "#ev-<img src=x onerror=alert(1)>"] {
        let seen = open(&program, &page, hash);
        assert_eq!(seen.console, [""; 0], "{hash}");
        assert_eq!(seen.requests, [""; 0], "{hash}");
        assert!(!seen.is_marked(), "{hash}");
        for tag in [
            "<svg",
            "<iframe",
            "<object",
            "<embed",
            "<video",
            "<base",
            "href=\"javascript",
            "href=\"data",
            "src=\"http",
        ] {
            assert!(!seen.has(tag), "{hash}: {tag}");
        }
        assert!(seen.has("&lt;script&gt;"), "{hash}: shown as text");
        for mark in ["⟨RLO⟩", "⟨ZWSP⟩", "␀", "␛]0;owned␇"] {
            assert!(seen.has(mark), "{hash}: {mark}");
        }
    }
}

/// What the test above would see if it were not so.
#[test]
fn a_page_that_is_not_careful_is_noticed() {
    let Some(program) = chromium() else { return };
    let page = format!("<!doctype html><html lang=en><body>{}", hostile::HTML);
    let seen = open(&program, page.as_bytes(), "");
    assert!(seen.is_marked());
    assert!(!seen.requests.is_empty());
    assert!(!seen.console.is_empty());
}

#[test]
fn a_sealed_page_asks_for_its_passphrase() {
    let Some(program) = chromium() else { return };
    let (header, events) = fixture::session();
    let options = Options {
        seal: Some(Seal {
            passphrase: Passphrase::new("knots on a cord"),
            salt: [7; 16],
            nonce: [9; 12],
        }),
        ..Options::default()
    };
    let (page, _) = page(&header, &events, &options);
    let seen = open(&program, &page, "");
    assert_eq!(seen.console, [""; 0]);
    assert!(seen.has("<h1>This session is sealed</h1>") && !seen.has("Departures"));
}
