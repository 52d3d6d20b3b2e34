//! The streams, read by a decoder that others wrote, which reconnects at any time.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use bytes::Bytes;
use futures_util::{Stream, StreamExt as _};
use sse_stream::SseStream;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use super::kit::*;
use crate::testkit::Served;

const EVENTS: u64 = 1500;
const CLIENTS: u64 = 6;

/// The body of an answer, as the bytes come.
async fn asked(
    address: SocketAddr,
    path: &str,
    last: Option<&str>,
) -> impl Stream<Item = Result<Bytes, Infallible>> + Unpin + use<> {
    let mut stream = TcpStream::connect(address).await.unwrap();
    let last = last.map_or(String::new(), |id| format!("Last-Event-ID: {id}\r\n"));
    let head = format!("GET {path} HTTP/1.0\r\nHost: {address}\r\n{last}\r\n");
    stream.write_all(head.as_bytes()).await.unwrap();
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await.unwrap());
    }
    assert!(head.starts_with(b"HTTP/1.0 200"), "{head:?}");
    Box::pin(futures_util::stream::unfold(stream, |mut stream| async {
        let mut piece = vec![0; 7001];
        let n = stream.read(&mut piece).await.ok()?;
        piece.truncate(n);
        (n > 0).then(|| (Ok(piece.into()), stream))
    }))
}

/// Any numbers will do, as long as they are the same each time.
struct Random(u64);

impl Random {
    fn below(&mut self, most: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % most
    }
}

/// Reads until it has as many events, and goes away at any time: after some events, or some microseconds.
async fn read(address: SocketAddr, path: String, begin: Option<String>, seed: u64) -> Vec<String> {
    let mut random = Random(0x9e37_79b9_7f4a_7c15 ^ (seed << 32));
    let (mut last, mut lines) = (begin, Vec::new());
    while (lines.len() as u64) < EVENTS {
        let mut frames = SseStream::from_bytes_stream(asked(address, &path, last.as_deref()).await);
        let mut left = random.below(200);
        let until = tokio::time::sleep(Duration::from_micros(random.below(40_000)));
        let mut until = std::pin::pin!(until);
        while left > 0 && (lines.len() as u64) < EVENTS {
            let frame = tokio::select! {
                () = &mut until => break,
                frame = frames.next() => frame.unwrap().unwrap(),
            };
            let Some(id) = frame.id else {
                let name = frame.event.unwrap();
                assert!(
                    !["missed", "again", "gone"].contains(&name.as_str()),
                    "{name}"
                );
                continue;
            };
            last = Some(id);
            lines.push(frame.data.unwrap());
            left -= 1;
        }
    }
    lines
}

fn write_slowly(home: &Path) {
    let recorder = record(home, RUN);
    start(&recorder);
    for n in 2..=EVENTS {
        say(
            &recorder,
            &format!("event {n} {}", "é".repeat((n % 300) as usize)),
        );
        if n % 5 == 0 {
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

/// What all clients had, while the run was recorded and they came and went.
fn all_had(path: &str) -> (Served, Vec<Vec<String>>) {
    let served = Served::empty();
    let mut begin = None;
    if path == "/api/v1/stream" {
        let mut client = Sse::open(served.address, path, None);
        let cursor = client.expect("connected").json()["cursor"].clone();
        begin = cursor.as_str().map(str::to_owned);
    }
    let home = served.home().to_owned();
    let writer = std::thread::spawn(move || write_slowly(&home));
    while lines_of(&served).is_empty() {
        std::thread::sleep(Duration::from_millis(1));
    }
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let had = runtime.block_on(async {
        let clients =
            (1..=CLIENTS).map(|seed| read(served.address, path.to_owned(), begin.clone(), seed));
        let clients = futures_util::future::join_all(clients);
        let had = tokio::time::timeout(Duration::from_secs(60), clients);
        had.await.unwrap()
    });
    writer.join().unwrap();
    (served, had)
}

fn lines_of(served: &Served) -> Vec<String> {
    let path = file_of(served.home(), RUN);
    if path.is_file() {
        lines(&path)
    } else {
        Vec::new()
    }
}

#[test]
fn clients_that_come_and_go_have_every_line_of_a_run_once() {
    let (served, had) = all_had(&format!("/api/v1/transcripts/{RUN}/stream"));
    let expected = lines_of(&served);
    assert!(had.iter().all(|had| *had == expected));
}

#[test]
fn clients_that_come_and_go_have_every_line_of_everything_once() {
    let (served, had) = all_had("/api/v1/stream");
    let expected = lines_of(&served);
    assert!(had.iter().all(|had| *had == expected));
}
