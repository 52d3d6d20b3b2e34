//! Where a server listens.

use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::UnixStream;
use std::path::Path;

use super::kit::{Answer, Server, exchange, request};
use crate::cli::env::TestEnv;
use crate::cli::machine::{SESSION, furnish};

fn mode(path: &Path) -> u32 {
    std::fs::metadata(path).unwrap().permissions().mode() & 0o7777
}

#[test]
fn whoever_can_open_the_unix_socket_may_write() {
    let env = TestEnv::new();
    furnish(&env);
    assert_eq!(env.run(&["import"]).code, 0);
    let socket = env.path("made/for it/quipu.sock");
    let running = env.start(&["serve", "--listen", socket.to_str().unwrap()]);
    let line = running.line();
    assert_eq!(line, format!("Serving at {}", socket.display()));
    assert_eq!(mode(&socket), 0o600);
    assert_eq!(mode(socket.parent().unwrap()), 0o700);
    let ask = |method: &str, path: &str, body: &str| {
        let stream = UnixStream::connect(&socket).unwrap();
        let kind = [("Content-Type", "application/json")];
        // The name does not matter: no page of another site gets here.
        let bytes = request(method, path, "quipu", &kind, body.as_bytes());
        Answer::parse(&exchange(stream, &bytes)).unwrap()
    };
    let label = format!("/api/v1/transcripts/{SESSION}/labels");
    let made = ask("POST", &label, r#"{"label": "keep"}"#);
    assert_eq!(made.status, 201, "{}", made.text());
    assert!(ask("GET", "/api/v1/labels", "").text().contains("keep"));
    // Through a port the same takes the token.
    let second = Server::start(
        &env,
        &env.path("other"),
        &[
            "--home",
            env.path("other").to_str().unwrap(),
            "serve",
            "--listen",
            "127.0.0.1:0",
        ],
    );
    let kind = ("Content-Type", "application/json");
    let refused = second.send("POST", &label, &[kind], br#"{"label": "keep"}"#);
    assert_eq!(refused.status, 401, "{}", refused.text());
    // Two servers do not share a socket, whatever their homes.
    let third = env.path("third");
    let ran = env.run(&[
        "--home",
        third.to_str().unwrap(),
        "serve",
        "--listen",
        socket.to_str().unwrap(),
    ]);
    assert_eq!(ran.code, 4);
    assert!(
        ran.stderr.contains("another server listens on HOME/made"),
        "{}",
        ran.stderr
    );
    assert!(!third.join("server.json").exists());
    assert_eq!(ask("GET", "/healthz", "").status, 200);
}

#[test]
fn a_file_in_the_place_of_the_socket_is_left_alone() {
    let env = TestEnv::new();
    let path = env.file("precious.txt", "mine");
    let ran = env.run(&["serve", "--listen", &path]);
    assert_eq!(ran.code, 4, "{}", ran.stderr);
    assert!(ran.stderr.contains("precious.txt"), "{}", ran.stderr);
    assert_eq!(std::fs::read(&path).unwrap(), b"mine");
}

#[test]
fn a_socket_is_announced_by_its_whole_path() {
    let env = TestEnv::new();
    let mut command = env.command(&["serve", "--listen", "./here.sock"]);
    let child = command
        .current_dir(env.dir.path())
        .stdout(std::process::Stdio::null())
        .stderr(std::process::Stdio::null())
        .spawn()
        .unwrap();
    let mut child = scopeguard(child);
    let begun = std::time::Instant::now();
    while !env.path("server.json").exists() {
        assert!(begun.elapsed() < std::time::Duration::from_secs(20));
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    let place: serde_json::Value =
        serde_json::from_slice(&std::fs::read(env.path("server.json")).unwrap()).unwrap();
    let told = place["sockets"][0].as_str().unwrap();
    assert!(Path::new(told).is_absolute(), "{told}");
    drop(UnixStream::connect(told).unwrap());
    child.0.kill().unwrap();
}

struct Kills(std::process::Child);

impl Drop for Kills {
    fn drop(&mut self) {
        self.0.kill().ok();
        self.0.wait().ok();
    }
}

fn scopeguard(child: std::process::Child) -> Kills {
    Kills(child)
}

#[test]
fn an_address_that_cannot_be_used_is_named() {
    let env = TestEnv::new();
    for wrong in [
        "localhost",
        "127.0.0.1",
        "7847",
        "127.0.0.1:99999",
        "",
        "[::1",
    ] {
        let ran = env.run(&["serve", "--listen", wrong]);
        assert_eq!(ran.code, 2, "{wrong}: {}", ran.stderr);
        assert!(
            ran.stderr.contains(&format!("{wrong:?} is neither"))
                && ran.stderr.contains("127.0.0.1:7847"),
            "{}",
            ran.stderr
        );
    }
    for (flag, message) in [("--runs", "--runs"), ("--work-dir", "--work-dir")] {
        let ran = env.run(&["serve", flag, "/nowhere/at/all"]);
        assert_eq!(ran.code, 2, "{}", ran.stderr);
        assert!(ran.stderr.contains(message), "{}", ran.stderr);
    }
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let ran = env.run(&["serve", "--listen", &address]);
    assert_eq!(ran.code, 4);
    assert!(
        ran.stderr.contains(&format!("cannot listen on {address}"))
            && ran.stderr.contains("hint: --listen"),
        "{}",
        ran.stderr
    );
    // What did not start is not announced.
    assert!(!env.path("server.json").exists());
}

#[test]
fn it_speaks_tls() {
    let env = TestEnv::new();
    let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
    let cert = env.file("cert.pem", made.cert.pem());
    let key = env.file("key.pem", made.signing_key.serialize_pem());
    let running = env.start(&[
        "serve",
        "--listen",
        "127.0.0.1:0",
        "--tls-cert",
        &cert,
        "--tls-key",
        &key,
    ]);
    let line = running.line();
    let port = line.strip_prefix("Serving at https://127.0.0.1:").unwrap();
    let root = ureq::tls::Certificate::from_pem(made.cert.pem().as_bytes()).unwrap();
    let tls = ureq::tls::TlsConfig::builder()
        .root_certs(ureq::tls::RootCerts::new_with_certs(&[root]))
        .build();
    let agent = ureq::Agent::config_builder()
        .tls_config(tls)
        .build()
        .new_agent();
    let mut answer = agent
        .get(format!("https://localhost:{port}/healthz"))
        .call()
        .unwrap();
    assert_eq!(answer.body_mut().read_to_string().unwrap(), "ok\n");
    // Somebody who does not speak it, or says nothing, is in nobody's way.
    let address = format!("127.0.0.1:{port}");
    let plain = std::net::TcpStream::connect(&address).unwrap();
    plain
        .set_read_timeout(Some(std::time::Duration::from_secs(20)))
        .unwrap();
    let bytes = request("GET", "/healthz", &address, &[], b"");
    assert!(!exchange(plain, &bytes).starts_with(b"HTTP/1.1 200"));
    let silent = std::net::TcpStream::connect(&address).unwrap();
    let again = agent
        .get(format!("https://localhost:{port}/readyz"))
        .call()
        .unwrap();
    assert_eq!(again.status(), 200);
    let mut running = running;
    running.signal(rustix::process::Signal::TERM);
    assert_eq!(running.ended_within(super::kit::GRACE), Some(0));
    drop(silent);
}

#[test]
fn a_certificate_that_cannot_be_used_is_named() {
    let env = TestEnv::new();
    let simple = || rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
    let (made, other) = (simple(), simple());
    let cert = env.file("cert.pem", made.cert.pem());
    let key = env.file("key.pem", made.signing_key.serialize_pem());
    let foreign = env.file("foreign.pem", other.signing_key.serialize_pem());
    let text = env.file("notes.txt", "not a certificate");
    let missing = env.path("missing.pem");
    let missing = missing.to_str().unwrap();
    for (cert, key, named) in [
        (missing, key.as_str(), "missing.pem"),
        (cert.as_str(), missing, "missing.pem"),
        (text.as_str(), key.as_str(), "notes.txt"),
        (cert.as_str(), text.as_str(), "notes.txt"),
        (cert.as_str(), foreign.as_str(), "foreign.pem"),
    ] {
        let ran = env.run(&[
            "serve",
            "--listen",
            "127.0.0.1:0",
            "--tls-cert",
            cert,
            "--tls-key",
            key,
        ]);
        assert_eq!(ran.code, 4, "{}", ran.stderr);
        assert!(ran.stderr.contains(named), "{named}: {}", ran.stderr);
        assert!(!ran.stderr.contains("PRIVATE"), "{}", ran.stderr);
        // Another address would not help.
        assert!(!ran.stderr.contains("--listen"), "{}", ran.stderr);
    }
    let ran = env.run(&["serve", "--tls-cert", &cert]);
    assert_eq!(ran.code, 2, "one without the other: {}", ran.stderr);
}
