//! The limit: axum with one route that says something of the length that is asked for.

use std::io::Write as _;
use std::process::Command;

use anyhow::{Context as _, Result};
use axum::Router;
use axum::body::Bytes;
use axum::http::header::CONTENT_TYPE;
use axum::routing::get;
use axum::serve::ListenerExt as _;

use super::process::Server;

/// Where it says it.
pub(super) const PATH: &str = "/hello";

/// Starts it in a process of its own.
pub(super) fn start(bytes: usize) -> Result<Server> {
    let mut command = Command::new(std::env::current_exe()?);
    command.args(["alone", "hello", &bytes.to_string()]);
    let server = Server::start(command)?;
    server.ready(PATH)?;
    Ok(server)
}

/// Serves until the process is ended.
pub(super) fn serve(bytes: usize) -> Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        // As many as our own server has.
        .worker_threads(2)
        .enable_all()
        .build()
        .context("start a runtime")?;
    let body = format!(r#"{{"hello":"{}"}}"#, "x".repeat(bytes.saturating_sub(12)));
    let body = Bytes::from(body);
    let router = Router::new().route(
        PATH,
        get(move || {
            let body = body.clone();
            async move { ([(CONTENT_TYPE, "application/json")], body) }
        }),
    );
    runtime.block_on(async {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
        println!("Serving at http://{}", listener.local_addr()?);
        std::io::stdout().flush()?;
        let listener = listener.tap_io(|stream| drop(stream.set_nodelay(true)));
        axum::serve(listener, router).await?;
        Ok(())
    })
}
