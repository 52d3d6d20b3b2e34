//! `quipu mcp-serve` and `quipu mcp-proxy`

use tokio::io::AsyncWriteExt as _;
use tokio::net::UnixStream;

use crate::args::{McpProxy, McpServe};
use crate::error::{Exit, Result, io_error};
use crate::locate::HomePlace;

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

/// Stands between an agent and a server.
pub(crate) fn proxy(_args: &McpProxy, _place: &HomePlace) -> Result<Exit> {
    Ok(Exit::Done)
}
