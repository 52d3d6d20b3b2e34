//! Requests that nobody sends by accident.

use std::io::Write as _;

use quipu_submit::keys::Scope;

use super::kit::{Answer, Document, Server, key, spans};
use crate::cli::env::TestEnv;
use crate::cli::machine::{SESSION, furnish};

/// A server of a home with something in it, and a file beside the home that nobody may get.
fn furnished() -> (TestEnv, Server) {
    let env = TestEnv::new();
    furnish(&env);
    env.file("secret.txt", "do not show this");
    assert_eq!(env.run(&["import"]).code, 0);
    let home = env.path("home");
    let home = home.to_str().unwrap();
    assert_eq!(env.run(&["--home", home, "import"]).code, 0);
    let server = Server::start(
        &env,
        &env.path("home"),
        &["--home", home, "serve", "--listen", "127.0.0.1:0"],
    );
    (env, server)
}

/// What is true of every refusal.
#[track_caller]
fn refused(env: &TestEnv, what: &str, answer: &Answer) {
    let text = answer.text();
    assert!(
        (400..500).contains(&answer.status),
        "{what}: {} {text}",
        answer.status
    );
    for hidden in [
        "do not show this",
        "root:x:",
        "panicked",
        "src/",
        ".rs:",
        "stack backtrace",
    ] {
        assert!(!text.contains(hidden), "{what}: {text}");
    }
    let home = env.dir.path().to_str().unwrap();
    assert!(!text.contains(home), "{what}: {text}");
    assert!(
        text.len() < 4096,
        "{what}: an answer of {} bytes",
        text.len()
    );
}

#[test]
fn odd_ids_and_paths_lead_nowhere() {
    let (env, server) = furnished();
    let long = "a".repeat(60_000);
    let ids = [
        "..",
        "%2e%2e",
        "%2e%2e%2f%2e%2e%2fsecret.txt",
        "..%2fsecret.txt",
        "....//secret.txt",
        "%252e%252e%252fsecret.txt",
        "%2fetc%2fpasswd",
        "*",
        "%2a",
        "?*",
        "[a-z]*",
        "%5b%5d",
        "%00",
        "a%00b",
        "%ff%fe",
        "%c0%ae%c0%ae",
        "'%20or%201=1--",
        "%25",
        "%",
        "~",
        "-",
        "--help",
        "%0d%0aSet-Cookie:x=1",
        "${HOME}",
        "CON",
        "\\..\\..",
        &long,
    ];
    let places = [
        ("/api/v1/transcripts/", ""),
        ("/api/v1/transcripts/", "/events"),
        ("/api/v1/transcripts/", "/tree"),
        ("/api/v1/transcripts/", "/export?format=jsonl"),
        ("/api/v1/transcripts/", "/stream"),
        ("/api/v1/blobs/", ""),
        ("/v1/transcripts/", "/document"),
        ("/v1/uploads/", ""),
        ("/api/runs/", "/summary"),
        ("/api/runs/", "/events"),
        ("/api/transcripts/", ""),
        ("/", ""),
    ];
    for (before, after) in places {
        for id in ids {
            let path = format!("{before}{id}{after}");
            let bytes = server.exchange(
                format!(
                    "GET {path} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n\r\n",
                    server.address
                )
                .as_bytes(),
            );
            let answer = Answer::parse(&bytes).unwrap_or_else(|| panic!("{path}: no answer"));
            // The rest is a query here, and the address one that there is.
            if answer.status == 200 && id == "?*" {
                continue;
            }
            assert_eq!(answer.header("set-cookie"), None);
            // Flow Studio says that a run which is not there has no events.
            if answer.status == 200 && before == "/api/runs/" && after == "/events" {
                assert_eq!(answer.json()["events"], serde_json::json!([]), "{path}");
                continue;
            }
            refused(&env, &path, &answer);
            if before.starts_with("/api/v1/") && after != "/stream" {
                let kind = answer.header("content-type");
                assert_eq!(kind, Some("application/problem+json"), "{path}");
            }
        }
    }
    assert_eq!(server.get("/readyz").status, 200);
    // Nothing was made for any of them.
    let names: Vec<String> = std::fs::read_dir(&server.home)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| name.contains("..") || name.contains('*') || name.contains("aaaa"))
        .collect();
    assert_eq!(names, [""; 0]);
    server.end();
}

#[test]
fn odd_queries_are_refused_or_passed_over() {
    let (env, server) = furnished();
    let deep = "(".repeat(5000);
    let many = "a%20OR%20".repeat(3000);
    // What cannot be meant is refused.
    let refusals = [
        "/api/v1/transcripts?limit=-1",
        "/api/v1/transcripts?limit=99999999999999999999",
        "/api/v1/transcripts?cursor=%00%ff",
        "/api/v1/transcripts?cursor=../../x",
        "/api/v1/transcripts?since=tomorrowish",
        "/api/v1/search?q=%22",
        &format!("/api/v1/search?q={deep}"),
        &format!("/api/v1/search?q={many}"),
        "/api/v1/search?regex=(a*)*b&q=(a*)*b",
        "/api/v1/search?q=a&limit=0",
        &format!("/api/v1/transcripts/{SESSION}/events?from=-1"),
        &format!("/api/v1/transcripts/{SESSION}/events?from=18446744073709551615"),
        &format!("/api/v1/transcripts/{SESSION}/events?limit=1e9"),
        &format!("/api/v1/transcripts/{SESSION}/export?format=exe"),
        &format!("/api/v1/transcripts/{SESSION}/export?format=markdown&profile=../../secret.txt"),
        &format!("/api/v1/transcripts/{SESSION}/export?format=markdown&profile=/etc/passwd"),
    ];
    for path in refusals {
        let answer = server.get(path);
        refused(&env, path, &answer);
        let kind = answer.header("content-type");
        assert_eq!(kind, Some("application/problem+json"), "{path}");
    }
    // What means something, though nothing is like it, finds nothing.
    let nothing = [
        ("/api/v1/search?q=%00", "hits"),
        ("/api/v1/search?q=%ff", "hits"),
        (
            &format!("/api/v1/transcripts/{SESSION}/events?type=%00"),
            "events",
        ),
    ];
    for (path, list) in nothing {
        let answer = server.get(path);
        assert_eq!(answer.status, 200, "{path}: {}", answer.text());
        assert_eq!(answer.json()[list], serde_json::json!([]), "{path}");
    }
    assert_eq!(server.get("/readyz").status, 200);
    server.end();
}

#[test]
#[expect(clippy::too_many_lines, reason = "one odd head after the other")]
fn odd_heads_are_refused() {
    let (env, server) = furnished();
    let host = server.address;
    let own = format!("Host: {host}\r\nConnection: close\r\n");
    let long = "x".repeat(100 << 10);
    let many: String = (0..500).map(|n| format!("X-{n}: y\r\n")).collect();
    let cases: Vec<(&str, String)> = vec![
        (
            "a long header",
            format!("GET /healthz HTTP/1.1\r\n{own}X-Long: {long}\r\n\r\n"),
        ),
        (
            "many headers",
            format!("GET /healthz HTTP/1.1\r\n{own}{many}\r\n"),
        ),
        (
            "a long address",
            format!("GET /{long}{long} HTTP/1.1\r\n{own}\r\n"),
        ),
        (
            "an id of a megabyte",
            format!(
                "GET /api/v1/transcripts/{} HTTP/1.1\r\n{own}\r\n",
                "a".repeat(1 << 20)
            ),
        ),
        (
            "two lengths",
            format!(
                "POST /v1/traces HTTP/1.1\r\n{own}Content-Length: 2\r\nContent-Length: 30\r\n\r\n{{}}"
            ),
        ),
        (
            "a length that is not one",
            format!("POST /v1/traces HTTP/1.1\r\n{own}Content-Length: -1\r\n\r\n"),
        ),
        (
            "garbage in chunks",
            format!(
                "POST /v1/traces HTTP/1.1\r\n{own}Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n{{}}\r\n0\r\n\r\n"
            ),
        ),
        (
            "a chunk that is too long",
            format!(
                "POST /v1/traces HTTP/1.1\r\n{own}Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffffffff\r\n"
            ),
        ),
        (
            "a transfer that is not known",
            format!("POST /v1/traces HTTP/1.1\r\n{own}Transfer-Encoding: gzip, identity\r\n\r\n"),
        ),
        (
            "HTTP/1.0 without a host",
            "GET /api/v1/transcripts HTTP/1.0\r\n\r\n".to_owned(),
        ),
        (
            "no host",
            "GET /healthz HTTP/1.1\r\nConnection: close\r\n\r\n".to_owned(),
        ),
        (
            "an address elsewhere",
            format!("GET http://evil.example/api/v1/transcripts HTTP/1.1\r\n{own}\r\n"),
        ),
        (
            "an address elsewhere with a user",
            format!("GET http://{host}@evil.example/api/v1/transcripts HTTP/1.1\r\n{own}\r\n"),
        ),
        (
            "a tunnel",
            format!("CONNECT evil.example:443 HTTP/1.1\r\n{own}\r\n"),
        ),
        (
            "another name",
            "GET /healthz HTTP/1.1\r\nHost: evil.example\r\nConnection: close\r\n\r\n".to_owned(),
        ),
        (
            "an empty name",
            "GET /healthz HTTP/1.1\r\nHost:\r\nConnection: close\r\n\r\n".to_owned(),
        ),
        (
            "two names in one",
            format!(
                "GET /healthz HTTP/1.1\r\nHost: {host}, evil.example\r\nConnection: close\r\n\r\n"
            ),
        ),
        (
            "a name that ends well",
            "GET /healthz HTTP/1.1\r\nHost: evil-localhost\r\nConnection: close\r\n\r\n".to_owned(),
        ),
        (
            "a page elsewhere",
            format!("GET /api/v1/transcripts HTTP/1.1\r\n{own}Origin: http://evil.example\r\n\r\n"),
        ),
        (
            "a page without a name",
            format!("GET /api/v1/transcripts HTTP/1.1\r\n{own}Origin: null\r\n\r\n"),
        ),
        (
            "a page of another port",
            format!("GET /api/v1/transcripts HTTP/1.1\r\n{own}Origin: http://127.0.0.1:1\r\n\r\n"),
        ),
        (
            "two origins",
            format!(
                "GET /api/v1/transcripts HTTP/1.1\r\n{own}Origin: http://{host}\r\nOrigin: http://evil.example\r\n\r\n"
            ),
        ),
        (
            "a folded header",
            format!("GET /healthz HTTP/1.1\r\n{own}X: a\r\n b\r\n\r\n"),
        ),
        (
            "a space before the colon",
            "GET /healthz HTTP/1.1\r\nHost : localhost\r\n\r\n".to_owned(),
        ),
        (
            "TRACE",
            format!("TRACE /api/v1/transcripts HTTP/1.1\r\n{own}\r\n"),
        ),
        (
            "OPTIONS",
            format!(
                "OPTIONS /api/v1/transcripts HTTP/1.1\r\n{own}Origin: http://evil.example\r\nAccess-Control-Request-Method: POST\r\n\r\n"
            ),
        ),
        (
            "a method of one's own",
            format!("STEAL /api/v1/transcripts HTTP/1.1\r\n{own}\r\n"),
        ),
        ("binary", "\u{16}\u{3}\u{1}\u{2}\r\n\r\n".to_owned()),
        (
            "another protocol",
            "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_owned(),
        ),
        ("HTTP/9.9", format!("GET /healthz HTTP/9.9\r\n{own}\r\n")),
    ];
    for (what, bytes) in cases {
        let bytes = server.exchange(bytes.as_bytes());
        // Some are cut off without a word, which is an answer, too; none is served.
        if let Some(answer) = Answer::parse(&bytes) {
            refused(&env, what, &answer);
            assert_eq!(answer.header("access-control-allow-origin"), None, "{what}");
        } else {
            assert!(
                bytes.is_empty(),
                "{what}: {}",
                String::from_utf8_lossy(&bytes)
            );
        }
    }
    // Two requests where a proxy may see one.
    let smuggled = format!(
        "POST /v1/traces HTTP/1.1\r\nHost: {host}\r\nContent-Length: 6\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n\
         GET /api/v1/transcripts HTTP/1.1\r\n{own}\r\n"
    );
    let bytes = server.exchange(smuggled.as_bytes());
    let text = String::from_utf8_lossy(&bytes);
    assert!(!text.contains("Make it work"), "{text}");
    assert_eq!(server.get("/readyz").status, 200);
    server.end();
}

#[test]
fn heads_bodies_and_methods_that_are_fine_work() {
    let (_env, server) = furnished();
    let host = server.address.to_string();
    let head = server.send("HEAD", "/api/v1/transcripts", &[], b"");
    assert_eq!((head.status, head.body.len()), (200, 0));
    let with_body = server.send(
        "GET",
        "/api/v1/transcripts",
        &[],
        b"a body that nobody reads",
    );
    assert_eq!(with_body.status, 200);
    let large = server.send("GET", "/api/v1/transcripts", &[], &vec![b'x'; 1 << 20]);
    assert_eq!(large.status, 200);
    let absolute =
        format!("GET http://{host}/healthz HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
    assert_eq!(server.raw(absolute.as_bytes()).status, 200);
    let old = format!("GET /healthz HTTP/1.0\r\nHost: {host}\r\n\r\n");
    assert_eq!(server.raw(old.as_bytes()).status, 200);
    let origin = format!("http://{host}");
    assert_eq!(
        server
            .send("GET", "/healthz", &[("Origin", &origin)], b"")
            .status,
        200
    );
    // Several at once on one connection are answered in order.
    let one = |path: &str| format!("GET {path} HTTP/1.1\r\nHost: {host}\r\n\r\n");
    let last = format!("GET /nowhere HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
    let bytes = server.exchange((one("/healthz") + &one("/readyz") + &last).as_bytes());
    let text = String::from_utf8_lossy(&bytes);
    let at = |what: &str| {
        text.find(what)
            .unwrap_or_else(|| panic!("{what} in {text}"))
    };
    assert!(at("ok\n") < at("ready\n") && at("ready\n") < at("not_found"));
    server.end();
}

/// What unpacks to this many bytes of nothing.
fn bombs(length: usize) -> [(&'static str, Vec<u8>); 2] {
    let piece = vec![b' '; 1 << 20];
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    let mut zstd = zstd::Encoder::new(Vec::new(), 19).unwrap();
    for _ in 0..length >> 20 {
        gzip.write_all(&piece).unwrap();
        zstd.write_all(&piece).unwrap();
    }
    [
        ("gzip", gzip.finish().unwrap()),
        ("zstd", zstd.finish().unwrap()),
    ]
}

/// The most memory that a process had, in KiB.
fn peak(server: &Server) -> u64 {
    let status = format!("/proc/{}/status", server.running.child.id());
    let Ok(status) = std::fs::read_to_string(status) else {
        return 0;
    };
    let line = status
        .lines()
        .find(|line| line.starts_with("VmHWM"))
        .unwrap();
    line.split_ascii_whitespace()
        .nth(1)
        .unwrap()
        .parse()
        .unwrap()
}

#[test]
fn bodies_that_unpack_to_too_much_are_refused() {
    let (env, server) = furnished();
    let key = key(&server.home, Scope::Submit);
    let host = server.address.to_string();
    let limits = server.json("/v1/limits");
    let most = limits
        .as_object()
        .unwrap()
        .values()
        .filter_map(serde_json::Value::as_u64)
        .max()
        .unwrap();
    let most = usize::try_from(most).unwrap();
    assert!(most <= 512 << 20, "{limits}");
    for (encoding, bomb) in bombs(most + (32 << 20)) {
        assert!(bomb.len() < most / 100);
        let document = Document::new(&key, "x");
        let answer = server.raw(&document.put(&key, &host, Some((encoding, &bomb))));
        refused(&env, encoding, &answer);
        assert_eq!(answer.status, 413, "{encoding}: {}", answer.text());
        let headers = [
            ("Content-Type", "application/json"),
            ("Content-Encoding", encoding),
        ];
        let answer = server.send("POST", "/v1/traces", &headers, &bomb);
        assert_eq!(answer.status, 413, "{encoding}: {}", answer.text());
        // Garbage is not a crash, nor is half of something.
        for broken in [&b"garbage"[..], &bomb[..bomb.len() / 2]] {
            let answer = server.raw(&document.put(&key, &host, Some((encoding, broken))));
            refused(&env, encoding, &answer);
            let answer = server.send("POST", "/v1/logs", &headers, broken);
            refused(&env, encoding, &answer);
        }
    }
    assert!(peak(&server) < 400 << 10, "{} KiB", peak(&server));
    assert_eq!(
        server
            .send(
                "POST",
                "/v1/traces",
                &[("Content-Type", "application/json")],
                &spans(1, "x")
            )
            .status,
        200
    );
    server.end();
}
