//! Bodies that are made while they are sent, in bounded memory.

use std::fs::File;
use std::io::{self, Read as _, Write};

use axum::body::Body;
use bytes::{Bytes, BytesMut};
use futures_util::StreamExt as _;
use futures_util::stream::unfold;
use tokio::sync::mpsc::{Receiver, Sender, channel};

/// How much of a body is sent at a time.
const PIECE: usize = 64 << 10;

/// How many pieces wait for the client.
const AHEAD: usize = 4;

/// So many bytes of a file, from where it stands. A thread is at work only while a piece is read: not while a client takes its
/// time.
pub(crate) fn file_body(file: File, length: u64) -> Body {
    let pieces = unfold(Some((file, length)), |state| async move {
        let (file, left) = state.filter(|(_, left)| *left > 0)?;
        let read = tokio::task::spawn_blocking(move || piece(file, left)).await;
        Some(match read {
            Ok(Ok((piece, file))) => {
                let left = left - piece.len() as u64;
                (Ok(piece), Some((file, left)))
            }
            Ok(Err(error)) => (Err(error), None),
            // The runtime ends.
            Err(_) => (Err(io::ErrorKind::Other.into()), None),
        })
    });
    // Whoever packs the body asks once more behind its end.
    Body::from_stream(pieces.fuse())
}

fn piece(mut file: File, left: u64) -> io::Result<(Bytes, File)> {
    let most = usize::try_from(left).unwrap_or(PIECE).min(PIECE);
    let mut piece = vec![0; most];
    loop {
        match file.read(&mut piece) {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(read) => {
                piece.truncate(read);
                return Ok((piece.into(), file));
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

/// A body of pieces that somebody else makes. `first` was taken already.
pub(crate) fn body(from: Receiver<io::Result<Bytes>>, first: Option<Bytes>) -> Body {
    let pieces = unfold((from, first), |(mut from, first)| async move {
        match first {
            Some(first) => Some((Ok(first), (from, None))),
            None => from.recv().await.map(|piece| (piece, (from, None))),
        }
    });
    // Whoever packs the body asks once more behind its end.
    Body::from_stream(pieces.fuse())
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

    /// Makes the body. Where that fails, by an error or a panic, the connection is cut, so that nobody takes half for the whole.
    pub(crate) fn make<T, E>(self, make: impl FnOnce(Self) -> Result<T, E>) -> Result<T, E> {
        struct Unfinished(Option<Sender<io::Result<Bytes>>>);
        impl Drop for Unfinished {
            fn drop(&mut self) {
                if let Some(to) = self.0.take() {
                    // Whoever does not listen any more misses nothing.
                    drop(to.blocking_send(Err(io::ErrorKind::Other.into())));
                }
            }
        }
        let mut unfinished = Unfinished(Some(self.to.clone()));
        let made = make(self)?;
        unfinished.0 = None;
        Ok(made)
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

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use http_body_util::BodyExt as _;

    use super::*;

    fn runtime(threads: usize) -> tokio::runtime::Runtime {
        tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .max_blocking_threads(threads)
            .enable_all()
            .build()
            .unwrap()
    }

    #[test]
    fn downloads_that_nobody_reads_take_no_thread() {
        let mut file = tempfile::tempfile().unwrap();
        let bytes: Vec<u8> = (0..1_u32 << 19).flat_map(u32::to_le_bytes).collect();
        file.write_all(&bytes).unwrap();
        runtime(1).block_on(async {
            use std::io::Seek as _;
            let mut bodies = Vec::new();
            for _ in 0..3 {
                let mut file = file.try_clone().unwrap();
                file.rewind().unwrap();
                let mut body = file_body(file, bytes.len() as u64);
                // It has begun.
                assert!(body.frame().await.unwrap().is_ok());
                bodies.push(body);
            }
            let other = tokio::task::spawn_blocking(|| 7);
            let other = tokio::time::timeout(Duration::from_secs(10), other).await;
            assert_eq!(other.unwrap().unwrap(), 7);
        });
        // What is read is the file, and what is missing is an error.
        runtime(1).block_on(async {
            let mut whole = tempfile::tempfile().unwrap();
            whole.write_all(&bytes).unwrap();
            std::io::Seek::rewind(&mut whole).unwrap();
            let more = whole.try_clone().unwrap();
            let body = file_body(whole, bytes.len() as u64).collect().await;
            assert!(body.unwrap().to_bytes() == bytes);
            assert!(file_body(more, 10).collect().await.is_err());
        });
    }

    #[test]
    fn half_a_body_is_not_the_whole() {
        runtime(2).block_on(async {
            for fails in ["no", "error", "panic"] {
                let (writer, from) = pipe();
                let made = tokio::task::spawn_blocking(move || {
                    writer.make(|mut writer| {
                        writer.write_all(&vec![7; PIECE + 10]).unwrap();
                        assert!(fails != "panic", "as it should");
                        if fails == "no" { Ok(()) } else { Err(()) }
                    })
                });
                let body = body(from, None).collect().await;
                assert_eq!(body.is_ok(), fails == "no", "{fails}");
                if let Ok(body) = body {
                    assert_eq!(body.to_bytes().len(), PIECE + 10);
                }
                assert_eq!(made.await.is_err(), fails == "panic");
            }
        });
    }
}
