//! Bodies of requests, from clients who may be slow.

use std::error::Error;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use hyper::body::Incoming;

use super::patience::Patience;

/// A body that fails when its client takes too long. What is done with the body takes as long as it takes.
pub(super) struct Patient {
    inner: Incoming,
    patience: Patience,
}

impl Patient {
    /// A body with so much time to spare.
    pub(super) fn new(inner: Incoming, most: Duration) -> Self {
        let patience = Patience::new(most);
        Self { inner, patience }
    }
}

impl Body for Patient {
    type Data = Bytes;
    type Error = Box<dyn Error + Send + Sync>;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        if let Poll::Ready(frame) = Pin::new(&mut self.inner).poll_frame(context) {
            let length = match &frame {
                Some(Ok(frame)) => frame.data_ref().map_or(0, Bytes::len),
                _ => 0,
            };
            self.patience.moved(length);
            return Poll::Ready(frame.map(|frame| frame.map_err(Into::into)));
        }
        let late = self.patience.wait(context);
        late.map(|error| Some(Err(error.into())))
    }

    fn is_end_stream(&self) -> bool {
        self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.inner.size_hint()
    }
}

/// Whether a body failed because its client took too long.
pub(crate) fn is_late(error: &(dyn Error + 'static)) -> bool {
    let mut next = Some(error);
    while let Some(error) = next {
        let kind = error.downcast_ref::<io::Error>().map(io::Error::kind);
        if kind == Some(io::ErrorKind::TimedOut) {
            return true;
        }
        next = error.source();
    }
    false
}
