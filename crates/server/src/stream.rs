//! Bodies that are made while they are sent, in bounded memory.

use std::fs::File;
use std::io::{self, Read as _, Write};

use axum::body::Body;
use bytes::{Bytes, BytesMut};
use futures_util::stream::unfold;
use tokio::sync::mpsc::{Receiver, Sender, channel};

/// How much of a body is sent at a time.
const PIECE: usize = 64 << 10;

/// How many pieces wait for the client.
const AHEAD: usize = 4;

/// So many bytes of a file, from where it stands.
pub(crate) fn file_body(mut file: File, length: u64) -> Body {
    let (to, from) = channel(AHEAD);
    tokio::task::spawn_blocking(move || {
        let mut left = length;
        while left > 0 {
            let most = usize::try_from(left).unwrap_or(PIECE).min(PIECE);
            let mut piece = vec![0; most];
            let read = match file.read(&mut piece) {
                Ok(0) => Err(io::ErrorKind::UnexpectedEof.into()),
                read => read,
            };
            let piece = read.map(|read| {
                piece.truncate(read);
                left -= read as u64;
                Bytes::from(piece)
            });
            let failed = piece.is_err();
            if to.blocking_send(piece).is_err() || failed {
                return;
            }
        }
    });
    body(from, None)
}

/// A body of pieces that somebody else makes. `first` was taken already.
pub(crate) fn body(from: Receiver<io::Result<Bytes>>, first: Option<Bytes>) -> Body {
    let pieces = unfold((from, first), |(mut from, first)| async move {
        match first {
            Some(first) => Some((Ok(first), (from, None))),
            None => from.recv().await.map(|piece| (piece, (from, None))),
        }
    });
    Body::from_stream(pieces)
}

/// Where to write what becomes a body. Writing waits for the client, and fails when the client is gone.
#[derive(Debug)]
pub(crate) struct BodyWriter {
    to: Sender<io::Result<Bytes>>,
    held: BytesMut,
}

/// A writer, and what is written.
pub(crate) fn pipe() -> (BodyWriter, Receiver<io::Result<Bytes>>) {
    let (to, from) = channel(AHEAD);
    let held = BytesMut::with_capacity(PIECE);
    (BodyWriter { to, held }, from)
}

impl BodyWriter {
    fn send(&mut self) -> io::Result<()> {
        if self.held.is_empty() {
            return Ok(());
        }
        let piece = self.held.split().freeze();
        self.held.reserve(PIECE);
        let gone = |_| io::ErrorKind::BrokenPipe.into();
        self.to.blocking_send(Ok(piece)).map_err(gone)
    }

    /// Where to say that the body cannot be finished: the connection is cut, so that nobody takes half for the whole.
    pub(crate) fn failing(&self) -> Sender<io::Result<Bytes>> {
        self.to.clone()
    }
}

impl Write for BodyWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.held.extend_from_slice(bytes);
        if self.held.len() >= PIECE {
            self.send()?;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.send()
    }
}

impl Drop for BodyWriter {
    fn drop(&mut self) {
        // Whoever does not listen any more misses nothing.
        drop(self.send());
    }
}
