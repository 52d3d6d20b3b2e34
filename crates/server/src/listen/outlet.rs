//! Answers to clients who may not read them.
//!
//! A long answer is made while it is sent: its maker waits for the client, and has one of few threads. A client that stops
//! reading must not keep it.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::patience::Patience;

/// A connection that fails when its client does not take what it is sent.
pub(super) struct Outlet<I> {
    inner: I,
    patience: Patience,
    heard: Arc<AtomicBool>,
}

impl<I> Outlet<I> {
    /// A connection with so much time to spare.
    pub(super) fn new(inner: I, most: Duration) -> Self {
        let patience = Patience::new(most);
        Self {
            inner,
            patience,
            heard: Arc::default(),
        }
    }

    /// Whether the client has said anything, from now on.
    pub(super) fn heard(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.heard)
    }

    fn told<T>(
        &mut self,
        context: &mut Context<'_>,
        done: Poll<io::Result<T>>,
        bytes: impl FnOnce(&T) -> usize,
    ) -> Poll<io::Result<T>> {
        match done {
            Poll::Ready(done) => {
                self.patience.moved(done.as_ref().map_or(0, bytes));
                Poll::Ready(done)
            }
            Poll::Pending => self.patience.wait(context).map(Err),
        }
    }
}

impl<I: AsyncRead + Unpin> AsyncRead for Outlet<I> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let done = Pin::new(&mut self.inner).poll_read(context, buffer);
        if !buffer.filled().is_empty() {
            self.heard.store(true, Ordering::Relaxed);
        }
        done
    }
}

impl<I: AsyncWrite + Unpin> AsyncWrite for Outlet<I> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let done = Pin::new(&mut self.inner).poll_write(context, bytes);
        self.told(context, done, |n| *n)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let done = Pin::new(&mut self.inner).poll_write_vectored(context, bytes);
        self.told(context, done, |n| *n)
    }

    fn is_write_vectored(&self) -> bool {
        self.inner.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let done = Pin::new(&mut self.inner).poll_flush(context);
        self.told(context, done, |()| 0)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let done = Pin::new(&mut self.inner).poll_shutdown(context);
        self.told(context, done, |()| 0)
    }
}
