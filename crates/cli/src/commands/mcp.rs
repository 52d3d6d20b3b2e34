//! `quipu mcp-serve` and `quipu mcp-proxy`

use std::sync::Arc;

use quipu_model::{Body, Draft, Place, Step, StepKind};
use quipu_proxy::mcp::{Recording, tee};
use quipu_record::{RecorderOptions, Storage};
use tokio::io::AsyncWriteExt as _;
use tokio::net::UnixStream;

use super::emit;
use crate::args::{McpProxy, McpServe};
use crate::error::{CommandError, Exit, Result, io_error};
use crate::locate::HomePlace;
use crate::terminal::say;

/// Connects standard input and output to the tools of a run.
pub(crate) fn serve(args: &McpServe) -> Result<Exit> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(io_error("cannot start"))?;
    let connected = runtime.block_on(async {
        let socket = UnixStream::connect(&args.connect).await?;
        let (mut from, mut to) = socket.into_split();
        let (mut input, mut output) = (tokio::io::stdin(), tokio::io::stdout());
        let sending = async {
            tokio::io::copy(&mut input, &mut to).await?;
            to.shutdown().await
        };
        let receiving = async {
            tokio::io::copy(&mut from, &mut output).await?;
            output.flush().await
        };
        tokio::pin!(sending, receiving);
        let mut sent = false;
        loop {
            tokio::select! {
                done = &mut receiving => return done,
                done = &mut sending, if !sent => {
                    done?;
                    sent = true;
                }
            }
        }
    });
    // Standard input is read by a thread that cannot be ended.
    runtime.shutdown_background();
    connected.map_err(io_error(format!(
        "cannot reach the run at {}",
        args.connect.display()
    )))?;
    Ok(Exit::Done)
}

/// Stands between an agent and a server, and records the tool calls between them.
pub(crate) fn proxy(args: &McpProxy, place: &HomePlace) -> Result<Exit> {
    let root = match &args.storage {
        Some(root) => root.clone(),
        None => place.home()?,
    };
    let run_id = match &args.run {
        Some(id) => emit::parse_id("--run", id)?,
        None => quipu_flow::engine::new_run_id()
            .map_err(|error| CommandError::new(Exit::Environment, error))?,
    };
    let options = RecorderOptions {
        masker: emit::masker(args.mask, place)?,
        ..RecorderOptions::default()
    };
    let recorder = Arc::new(Storage::at(&root).record(&run_id, options)?);
    let name = args
        .server
        .iter()
        .map(|part| part.to_string_lossy())
        .collect::<Vec<_>>()
        .join(" ");
    let step = Step::new(name, StepKind::from("mcp_proxy"));
    recorder.record(&Draft::new(
        Place::run(),
        Body::RunStarted(Some(step.clone())),
    ))?;
    say(&format!("note: records as {run_id}"));
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .map_err(io_error("cannot start"))?;
    let mut recording = Recording::new(Arc::clone(&recorder), Place::run());
    let ended = runtime.block_on(tee(
        &args.server,
        tokio::io::stdin(),
        tokio::io::stdout(),
        &mut recording,
    ));
    // Standard input is read by a thread that cannot be ended.
    runtime.shutdown_background();
    let end = match &ended {
        Ok(0) => step.succeeded(None),
        Ok(code) => step.failed(format!("the server ended with exit code {code}")),
        Err(error) => step.failed(error.to_string()),
    };
    let closed = recorder.record(&Draft::new(Place::run(), Body::RunCompleted(Some(end))));
    recorder.close()?;
    let code = ended.map_err(|error| CommandError::new(Exit::Environment, error))?;
    closed?;
    if let Some((error, lost)) = recording.error() {
        let lost = crate::terminal::count(lost, "event");
        return Err(CommandError::new(
            Exit::Environment,
            anyhow::anyhow!("{lost} could not be recorded: {error}"),
        ));
    }
    Ok(match u8::try_from(code) {
        Ok(0) => Exit::Done,
        Ok(code) => Exit::Code(code),
        Err(_) => Exit::Found,
    })
}
