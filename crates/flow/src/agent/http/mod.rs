//! Asking a server that speaks the Chat Completions protocol.

use tokio_util::sync::CancellationToken;

use super::program::failed;
use super::{Answer, AskError, AskFailure, AskRequest, Hearer};
use crate::tools::ToolRecorder;

pub(super) const OPTIONS: &[&str] = &[
    "base_url",
    "temperature",
    "top_p",
    "max_tokens",
    "max_completion_tokens",
    "max_rounds",
    "stream",
    "record_chunks",
    "retries",
];

#[derive(Debug, Default)]
pub(super) struct Client;

pub(super) fn check(_request: &AskRequest) -> Result<(), String> {
    Ok(())
}

pub(super) async fn ask(
    _client: &Client,
    _request: &AskRequest,
    _hearer: &mut dyn Hearer,
    _tools: &dyn ToolRecorder,
    _cancel: &CancellationToken,
) -> Result<Answer, AskError> {
    Err(failed(AskFailure::Request("not built yet".to_owned())))
}
