//! `cargo xtask schemathesis`: requests that the `OpenAPI` document makes up, against a server on loopback.
//!
//! The server serves the samples. Each request is made from the document, valid or broken on purpose, and each answer is held against
//! it: no 5xx, no status, content type or shape that the document does not name, nothing accepted that it forbids, nothing
//! given without a key that needs one.
//!
//! Live streams are left out, because they do not end. The submission protocol is asked more slowly: a key has 600 requests a minute.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};
use serde::Deserialize;

use crate::tool::{self, root};

const VERSION: &str = "schemathesis==4.32.5";

/// Where the server is, as `server.json` in its home says.
#[derive(Deserialize)]
struct Place {
    urls: Vec<String>,
    token: String,
}

pub(crate) fn run(examples: u32, seed: u32) -> Result<()> {
    let Some(schemathesis) = installed()? else {
        return Ok(());
    };
    tool::cargo(["build", "--package", "quipu"]).run()?;
    let quipu = target().join("debug/quipu");
    let home = target().join("schemathesis/home");
    if home.with_file_name("home-samples").exists() {
        std::fs::remove_dir_all(home.with_file_name("home-samples"))?;
    }
    tool::program(
        &quipu.to_string_lossy(),
        ["up", "--demo", "--once", "--home"],
    )
    .args([&home])
    .run()?;
    let home = home.with_file_name("home-samples");
    let key = new_key(&quipu, &home)?;
    let server = Server::start(&quipu, &home)?;
    let place = server.place(&home)?;
    let url = place
        .urls
        .first()
        .context("the server does not listen on TCP")?;
    let document = format!("{url}/api/v1/openapi.json");
    let bounds = [
        "--max-examples".to_owned(),
        examples.to_string(),
        "--seed".to_owned(),
        seed.to_string(),
        "--generation-database".to_owned(),
        "none".to_owned(),
        "--request-timeout".to_owned(),
        "30".to_owned(),
        "--phases".to_owned(),
        "examples,coverage,fuzzing".to_owned(),
        "--continue-on-failure".to_owned(),
        "--max-time".to_owned(),
        "240".to_owned(),
    ];
    let rest = [
        "--exclude-path-regex".to_owned(),
        "^/v1/(transcripts|uploads|limits|keys|submitters)|/stream$".to_owned(),
        "--header".to_owned(),
        format!("x-quipu-token: {}", place.token),
    ];
    let submissions = [
        "--include-path-regex".to_owned(),
        "^/v1/(transcripts|uploads|limits|keys|submitters)".to_owned(),
        "--rate-limit".to_owned(),
        "8/s".to_owned(),
        "--header".to_owned(),
        format!("Authorization: Bearer {key}"),
    ];
    let config = root().join("xtask/schemathesis.toml");
    let mut failed = Vec::new();
    for (name, args) in [
        ("everything but submissions", &rest[..]),
        ("submissions", &submissions),
    ] {
        println!("\n== {name}");
        // Not by `Tool`, which shows its arguments: they have the token.
        let status = Command::new(&schemathesis)
            .arg("--config-file")
            .arg(&config)
            .arg("run")
            .arg(&document)
            .args(&bounds)
            .args(args)
            .current_dir(target().join("schemathesis"))
            .status()
            .context("start schemathesis")?;
        if !status.success() {
            failed.push(name);
        }
    }
    drop(server);
    println!("\nleft out: live streams, which do not end");
    ensure!(
        failed.is_empty(),
        "not as documented: {}",
        failed.join(", ")
    );
    Ok(())
}

fn target() -> PathBuf {
    let target = std::env::var_os("CARGO_TARGET_DIR").unwrap_or_else(|| "target".into());
    root().join(target)
}

/// The program, in an environment of its own below `target`. `None` where it cannot be had, which is said.
fn installed() -> Result<Option<PathBuf>> {
    let directory = target().join("schemathesis");
    std::fs::create_dir_all(&directory)?;
    let environment = directory.join("venv");
    let program = environment.join("bin/schemathesis");
    let works = |program: &Path| tool::program(&program.to_string_lossy(), ["--version"]).works();
    if works(&program) {
        return Ok(Some(program));
    }
    let made = tool::program("python3", ["-m", "venv"])
        .args([&environment])
        .works();
    let pip = environment.join("bin/pip");
    let pip = tool::program(&pip.to_string_lossy(), ["install", "--quiet", VERSION]);
    if made && pip.works() && works(&program) {
        return Ok(Some(program));
    }
    println!("skipped: {VERSION} cannot be had; it needs Python 3.10 or later with venv, and PyPI");
    Ok(None)
}

/// A key that may do everything.
fn new_key(quipu: &Path, home: &Path) -> Result<String> {
    #[derive(Deserialize)]
    struct Made {
        key: String,
    }
    let scopes = ["submit", "read", "admin"].map(|scope| ["--scope", scope]);
    let made = Command::new(quipu)
        .arg("--home")
        .arg(home)
        .args(["keys", "new", "--json"])
        .args(scopes.iter().flatten())
        .stderr(Stdio::inherit())
        .output()
        .context("make a key")?;
    ensure!(made.status.success(), "`quipu keys new` failed");
    let made: Made = serde_json::from_slice(&made.stdout).context("read the key")?;
    Ok(made.key)
}

/// A server that ends with this.
struct Server(Child);

impl Server {
    /// Starts it. What it says of failures is in `server.log` beside its home.
    fn start(quipu: &Path, home: &Path) -> Result<Self> {
        let log = std::fs::File::create(home.with_file_name("server.log"))?;
        let child = Command::new(quipu)
            .arg("--home")
            .arg(home)
            .args(["serve", "--listen", "127.0.0.1:0", "--log-level", "warn"])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log)
            .spawn()
            .context("start the server")?;
        Ok(Self(child))
    }

    /// Where it is, as soon as it says so.
    #[expect(
        clippy::unused_self,
        reason = "only a server that was started is somewhere"
    )]
    fn place(&self, home: &Path) -> Result<Place> {
        let begun = Instant::now();
        while begun.elapsed() < Duration::from_secs(30) {
            let said = std::fs::read(home.join("server.json")).ok();
            let place = said.and_then(|said| serde_json::from_slice::<Place>(&said).ok());
            if let Some(place) = place.filter(|place| !place.urls.is_empty()) {
                return Ok(place);
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        bail!("the server did not say where it is within 30 s")
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.0.kill());
        drop(self.0.wait());
    }
}
