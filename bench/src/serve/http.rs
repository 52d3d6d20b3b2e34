//! As much of HTTP/1.1 as it takes to ask and to read answers: requests are bytes that are ready before the clock runs.

use std::net::SocketAddr;
use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};
use memchr::memmem;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

/// The longest head and the longest answer that are read.
const HEAD: usize = 64 << 10;
const BODY: usize = 64 << 20;

/// How long a connection may take to open.
const PATIENCE: Duration = Duration::from_secs(10);

/// A request for an address on a server, with more headers, each with its line end.
pub(crate) fn get(address: SocketAddr, path: &str, headers: &str) -> Vec<u8> {
    format!("GET {path} HTTP/1.1\r\nHost: {address}\r\nAccept: */*\r\n{headers}\r\n").into_bytes()
}

/// A text as a value in a query.
pub(super) fn escaped(text: &str) -> String {
    use std::fmt::Write as _;
    let mut escaped = String::new();
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            escaped.push(char::from(byte));
        } else {
            write!(escaped, "%{byte:02X}").expect("a text takes everything");
        }
    }
    escaped
}

/// What the head of an answer says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Head {
    pub(super) status: u16,
    pub(super) body: Length,
    /// How long the head is, with the empty line.
    pub(super) len: usize,
}

/// How the end of a body is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Length {
    Bytes(usize),
    Chunks,
}

impl Head {
    /// The head at the beginning of what was read, once all of it was.
    pub(super) fn parse(read: &[u8]) -> Result<Option<Self>> {
        let Some(end) = memmem::find(read, b"\r\n\r\n") else {
            ensure!(read.len() < HEAD, "the head of an answer does not end");
            return Ok(None);
        };
        let status = read.get(9..12).and_then(number);
        let status = status.context("an answer does not begin with a status")?;
        let status = u16::try_from(status)?;
        let mut body = None;
        for (name, value) in lines(&read[..end]) {
            if name.eq_ignore_ascii_case(b"content-length") {
                let length = number(value).context("a length is not a number")?;
                ensure!(length <= BODY, "an answer is longer than {BODY} bytes");
                body = Some(Length::Bytes(length));
            } else if name.eq_ignore_ascii_case(b"transfer-encoding") {
                body = Some(Length::Chunks);
            }
        }
        if matches!(status, 204 | 304) {
            body = Some(Length::Bytes(0));
        }
        Ok(Some(Self {
            status,
            body: body.context("an answer does not say how long it is")?,
            len: end + 4,
        }))
    }
}

fn lines(head: &[u8]) -> impl Iterator<Item = (&[u8], &[u8])> {
    let lines = head.split(|byte| *byte == b'\n').skip(1);
    lines.filter_map(|line| {
        let colon = memchr::memchr(b':', line)?;
        Some((&line[..colon], line[colon + 1..].trim_ascii()))
    })
}

fn number(text: &[u8]) -> Option<usize> {
    std::str::from_utf8(text).ok()?.parse().ok()
}

/// A body that comes in chunks, as it comes.
#[derive(Debug, Default)]
pub(super) struct Chunks {
    /// What is left of the chunk, with its line end.
    left: usize,
    /// The line with the size of the next chunk, as far as it is known.
    size: Vec<u8>,
    last: bool,
    ended: bool,
}

impl Chunks {
    /// Takes more of what was read, and puts what the body says into `out`. Gives whether the body has ended.
    pub(super) fn push(&mut self, mut read: &[u8], out: &mut Vec<u8>) -> Result<bool> {
        while !read.is_empty() && !self.ended {
            if self.left > 2 {
                let piece = read.len().min(self.left - 2);
                out.extend_from_slice(&read[..piece]);
                read = &read[piece..];
                self.left -= piece;
            } else if self.left > 0 {
                read = &read[1..];
                self.left -= 1;
                self.ended = self.last && self.left == 0;
            } else {
                let Some(end) = memchr::memchr(b'\n', read) else {
                    self.size.extend_from_slice(read);
                    ensure!(self.size.len() < 64, "the size of a chunk does not end");
                    break;
                };
                self.size.extend_from_slice(&read[..end]);
                read = &read[end + 1..];
                let text = std::str::from_utf8(self.size.trim_ascii())?;
                let size = usize::from_str_radix(text, 16).context("a chunk has no size")?;
                ensure!(size <= BODY, "a chunk is longer than {BODY} bytes");
                self.size.clear();
                self.left = size + 2;
                self.last = size == 0;
            }
        }
        Ok(self.ended)
    }
}

/// A connection that is used again and again.
pub(super) struct Connection {
    stream: TcpStream,
    read: Vec<u8>,
    body: Vec<u8>,
    /// Where the last answer is.
    head: Option<Head>,
}

impl Connection {
    pub(super) async fn open(address: SocketAddr) -> Result<Self> {
        let stream = tokio::time::timeout(PATIENCE, TcpStream::connect(address)).await;
        let stream = stream.with_context(|| format!("{address} does not answer"))?;
        let stream = stream.with_context(|| format!("connect to {address}"))?;
        stream.set_nodelay(true)?;
        Ok(Self {
            stream,
            read: Vec::with_capacity(16 << 10),
            body: Vec::new(),
            head: None,
        })
    }

    pub(super) async fn send(&mut self, request: &[u8]) -> Result<()> {
        self.read.clear();
        self.body.clear();
        self.head = None;
        self.stream.write_all(request).await?;
        Ok(())
    }

    /// Asks, and reads the whole answer. Gives its status.
    pub(super) async fn ask(&mut self, request: &[u8]) -> Result<u16> {
        self.send(request).await?;
        let head = self.head().await?;
        match head.body {
            Length::Bytes(length) => {
                while self.read.len() < head.len + length {
                    self.more().await?;
                }
            }
            Length::Chunks => {
                let mut chunks = Chunks::default();
                while !chunks.push(&self.read[head.len..], &mut self.body)? {
                    ensure!(self.body.len() <= BODY, "an answer does not end");
                    self.read.truncate(head.len);
                    self.more().await?;
                }
            }
        }
        Ok(head.status)
    }

    /// Reads the head of an answer.
    pub(super) async fn head(&mut self) -> Result<Head> {
        loop {
            if let Some(head) = Head::parse(&self.read)? {
                self.head = Some(head);
                return Ok(head);
            }
            self.more().await?;
        }
    }

    /// What was read of a body that does not end, so far.
    pub(super) fn begun(&self) -> &[u8] {
        let from = self.head.map_or(0, |head| head.len);
        &self.read[from..]
    }

    /// The socket, for what is read as it comes.
    pub(super) fn into_stream(self) -> TcpStream {
        self.stream
    }

    async fn more(&mut self) -> Result<()> {
        self.read.reserve(16 << 10);
        if self.stream.read_buf(&mut self.read).await? == 0 {
            bail!("the server closed the connection");
        }
        Ok(())
    }

    /// The body of the last answer.
    pub(super) fn body(&self) -> &[u8] {
        match self.head {
            Some(Head {
                body: Length::Bytes(length),
                len,
                ..
            }) => self.read.get(len..len + length).unwrap_or_default(),
            _ => &self.body,
        }
    }

    /// A header of the last answer.
    pub(super) fn header(&self, name: &str) -> Option<String> {
        let head = self.read.get(..self.head?.len)?;
        let mut lines = lines(head);
        let found = lines.find(|line| line.0.eq_ignore_ascii_case(name.as_bytes()))?;
        String::from_utf8(found.1.to_vec()).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_head_says_how_long_the_body_is() {
        let head = b"HTTP/1.1 200 OK\r\nETag: x\r\ncontent-length: 12\r\n\r\nabc";
        let parsed = Head::parse(head).unwrap().unwrap();
        assert_eq!((parsed.status, parsed.body), (200, Length::Bytes(12)));
        assert_eq!(&head[parsed.len..], b"abc");
        assert!(Head::parse(b"HTTP/1.1 200 OK\r\n").unwrap().is_none());
        assert!(Head::parse(b"HTTP/1.1 200 OK\r\nA: b\r\n\r\n").is_err());
        let known = Head::parse(b"HTTP/1.1 304 Not Modified\r\nETag: x\r\n\r\n");
        assert_eq!(known.unwrap().unwrap().body, Length::Bytes(0));
        let live = Head::parse(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n");
        assert_eq!(live.unwrap().unwrap().body, Length::Chunks);
    }

    #[test]
    fn chunks_are_the_same_however_they_come() {
        let sent = b"5\r\nhello\r\nd\r\n, over there\n\r\n0\r\n\r\n";
        for piece in 1..sent.len() {
            let (mut chunks, mut body, mut ended) = (Chunks::default(), Vec::new(), false);
            for read in sent.chunks(piece) {
                ended = chunks.push(read, &mut body).unwrap();
            }
            assert!(ended);
            assert_eq!(body, b"hello, over there\n");
        }
        assert!(Chunks::default().push(b"x\r\n", &mut Vec::new()).is_err());
    }

    #[test]
    fn a_query_is_escaped() {
        assert_eq!(escaped("\"a b\" tool:x*"), "%22a%20b%22%20tool%3Ax%2A");
    }
}
