//! Other users of the machine.

use std::process::Command;

use super::kit::{Answer, Server, spans};
use crate::cli::env::TestEnv;
use crate::cli::machine::furnish;

/// Runs a script as somebody else. Nothing where that cannot be done.
fn as_nobody(script: &str) -> Option<Vec<u8>> {
    let mut command = Command::new("setpriv");
    let command = command
        .args([
            "--reuid=65534",
            "--regid=65534",
            "--clear-groups",
            "bash",
            "-c",
            script,
        ])
        .current_dir("/");
    let ran = command.output().ok()?;
    Some(ran.stdout)
}

fn can_be_nobody() -> bool {
    if !rustix::process::geteuid().is_root() {
        eprintln!("SKIPPED: only root can become another user");
        return false;
    }
    if as_nobody("id -u").as_deref() != Some(b"65534\n") {
        eprintln!("SKIPPED: setpriv and bash are needed to become another user");
        return false;
    }
    true
}

fn get(port: u16, path: &str) -> String {
    format!(
        "exec 3<>/dev/tcp/127.0.0.1/{port}; printf 'GET {path} HTTP/1.1\\r\\nHost: 127.0.0.1:{port}\\r\\n\
         Connection: close\\r\\n\\r\\n' >&3; cat <&3"
    )
}

#[test]
#[cfg(target_os = "linux")]
fn others_cannot_use_the_port_unless_they_are_let() {
    if !can_be_nobody() {
        return;
    }
    let env = TestEnv::new();
    furnish(&env);
    assert_eq!(env.run(&["import"]).code, 0);
    let server = Server::serve(&env, &[]);
    for path in ["/api/v1/transcripts", "/healthz", "/metrics", "/v1/limits"] {
        let bytes = as_nobody(&get(server.address.port(), path)).unwrap();
        let answer = Answer::parse(&bytes).unwrap();
        assert_eq!(answer.status, 403, "{path}: {}", answer.text());
        assert_eq!(answer.json()["type"], "forbidden");
        assert!(!answer.text().contains("Make it work"));
        assert_eq!(server.get(path).status, 200, "the owner still may");
    }
    // Nor can they leave something behind and go before anybody looks.
    let body = spans(1, "smuggled");
    let port = server.address.port();
    let script = format!(
        "for i in $(seq 40); do exec 3<>/dev/tcp/127.0.0.1/{port}; printf 'POST /v1/traces HTTP/1.1\\r\\nHost: 127.0.0.1:{port}\\r\\n\
         Content-Type: application/json\\r\\nContent-Length: {}\\r\\n\\r\\n%s' '{}' >&3; exec 3>&-; done",
        body.len(),
        String::from_utf8(body.clone()).unwrap(),
    );
    as_nobody(&script).unwrap();
    std::thread::sleep(std::time::Duration::from_millis(800));
    let found = server.json("/api/v1/search?q=smuggled");
    assert_eq!(found["hits"].as_array().unwrap().len(), 0, "{found:#}");
    server.end();

    let server = Server::serve(&env, &["--any-local-user"]);
    let bytes = as_nobody(&get(server.address.port(), "/api/v1/transcripts")).unwrap();
    let answer = Answer::parse(&bytes).unwrap();
    assert_eq!(answer.status, 200);
    assert!(answer.text().contains("Make it work"));
    server.end();
}

#[test]
fn others_cannot_open_the_files_of_the_server() {
    if !can_be_nobody() {
        return;
    }
    let env = TestEnv::new();
    // Where everybody can look.
    let open = std::os::unix::fs::PermissionsExt::from_mode(0o777);
    std::fs::set_permissions(env.dir.path(), open).unwrap();
    let socket = env.path("quipu.sock");
    let server = Server::serve(&env, &["--listen", socket.to_str().unwrap()]);
    let home = env.dir.path().display();
    for file in ["server.json", "server.lock", "index.sqlite"] {
        let read = as_nobody(&format!("head -c 1 {home}/{file}; true")).unwrap();
        assert_eq!(read, b"", "{file}");
    }
    let script = format!("test -w {} && echo open; true", socket.display());
    assert_eq!(as_nobody(&script).unwrap(), b"");
    server.end();
}
