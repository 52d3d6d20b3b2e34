//! A server on this machine: as little HTTP as it takes, one request to a connection.

use std::collections::VecDeque;
use std::io::{self, BufRead as _, BufReader, Read, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use quipu_record::Clock;

use crate::server::{Body, Request, Response, Service, Storage};

/// How long the head of a request may be.
const MAX_HEAD: u64 = 32 << 10;
/// How much of a body is read that nobody wants, so that the answer is not lost with it.
const MAX_REST: u64 = 8 << 20;
/// How long a peer may be silent.
const PATIENCE: Duration = Duration::from_secs(10);

/// What goes wrong with a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// The connection is cut after so many bytes of the body; no answer is given.
    Cut(u64),
    /// What is asked for is done, and the answer is lost.
    LoseAnswer,
    /// It is answered with this status, and nothing is done.
    Fail(u16),
}

/// A server that runs until it is dropped.
#[derive(Debug)]
pub struct Host {
    address: SocketAddr,
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug, Default)]
struct Shared {
    faults: Mutex<VecDeque<Option<Fault>>>,
    requests: AtomicU64,
    ends: AtomicBool,
}

impl Host {
    /// Starts a server around a service.
    ///
    /// # Errors
    ///
    /// There is no port to listen on.
    pub fn start<S, C>(service: Arc<Service<S, C>>) -> io::Result<Self>
    where
        S: Storage + 'static,
        C: Clock + 'static,
    {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let address = listener.local_addr()?;
        let shared = Arc::new(Shared::default());
        let inner = Arc::clone(&shared);
        let thread = std::thread::spawn(move || {
            for stream in listener.incoming() {
                if inner.ends.load(Ordering::SeqCst) {
                    break;
                }
                // A connection that fails is its peer's affair.
                if let Ok(stream) = stream {
                    drop(serve(&service, &inner, &stream));
                }
            }
        });
        Ok(Self {
            address,
            shared,
            thread: Some(thread),
        })
    }

    /// Where it is.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Lets so many requests pass, and the next one go wrong.
    pub fn fault(&self, after: usize, fault: Fault) {
        let mut faults = self
            .shared
            .faults
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        faults.extend(std::iter::repeat_n(None, after));
        faults.push_back(Some(fault));
    }

    /// How many requests there were.
    pub fn requests(&self) -> u64 {
        self.shared.requests.load(Ordering::SeqCst)
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        self.shared.ends.store(true, Ordering::SeqCst);
        // It waits for a connection: this is one.
        drop(TcpStream::connect(self.address));
        if let Some(thread) = self.thread.take() {
            drop(thread.join());
        }
    }
}

/// A body of a length that was told. It fails when it ends before.
struct Incoming<R> {
    inner: R,
    left: u64,
    /// How much of it comes before the connection is cut.
    until_cut: Option<u64>,
}

impl<R: Read> Read for Incoming<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let most = self.until_cut.unwrap_or(u64::MAX).min(self.left);
        let most = usize::try_from(most)
            .unwrap_or(usize::MAX)
            .min(buffer.len());
        if self.left == 0 || buffer.is_empty() {
            return Ok(0);
        }
        let n = self.inner.read(&mut buffer[..most])?;
        if n == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        self.left -= n as u64;
        self.until_cut = self.until_cut.map(|left| left - n as u64);
        Ok(n)
    }
}

fn serve<S: Storage, C: Clock>(
    service: &Service<S, C>,
    shared: &Shared,
    stream: &TcpStream,
) -> io::Result<()> {
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    let mut reader = BufReader::new(stream);
    let (first, headers) = head(&mut reader)?;
    let mut words = first.split_ascii_whitespace();
    let (Some(method), Some(path)) = (words.next(), words.next()) else {
        return Err(io::ErrorKind::InvalidData.into());
    };
    shared.requests.fetch_add(1, Ordering::SeqCst);
    let fault = shared
        .faults
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .pop_front()
        .flatten();
    let length = headers
        .iter()
        .find(|it| it.0.eq_ignore_ascii_case("content-length"));
    let mut body = Incoming {
        inner: reader,
        left: length.and_then(|it| it.1.parse().ok()).unwrap_or(0),
        until_cut: match fault {
            Some(Fault::Cut(after)) => Some(after),
            _ => None,
        },
    };
    let response = if let Some(Fault::Fail(status)) = fault {
        Response {
            status,
            headers: Vec::new(),
            body: Body::default(),
        }
    } else {
        service.handle(Request {
            method,
            path,
            headers: &headers,
            body: &mut body,
        })
    };
    if matches!(fault, Some(Fault::Cut(_) | Fault::LoseAnswer)) {
        return Ok(());
    }
    io::copy(&mut (&mut body).take(MAX_REST), &mut io::sink())?;
    answer(stream, response, method == "HEAD")
}

/// The first line of a request, and its headers.
fn head(reader: &mut impl io::BufRead) -> io::Result<(String, Vec<(String, String)>)> {
    let mut reader = reader.take(MAX_HEAD);
    let mut first = String::new();
    reader.read_line(&mut first)?;
    let mut headers = Vec::new();
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line)? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let Some((name, value)) = line.trim().split_once(':') else {
            return Ok((first, headers));
        };
        headers.push((name.to_owned(), value.trim().to_owned()));
    }
}

fn answer(mut stream: &TcpStream, response: Response, without_body: bool) -> io::Result<()> {
    let mut out = Vec::new();
    write!(
        out,
        "HTTP/1.1 {} X\r\nConnection: close\r\n",
        response.status
    )?;
    for (name, value) in &response.headers {
        write!(out, "{name}: {value}\r\n")?;
    }
    if !matches!(response.status, 204 | 304) {
        write!(out, "Content-Length: {}\r\n", response.body.len())?;
    }
    out.extend_from_slice(b"\r\n");
    stream.write_all(&out)?;
    if !without_body {
        io::copy(&mut response.body.into_reader()?, &mut stream)?;
    }
    Ok(())
}
