//! The server of a home, asked where that is faster than to look for oneself.
//!
//! It is a favour: whatever goes wrong, the answer is none, and the caller does without. Nothing is said about it.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::{Duration, Instant};

use quipu_server::access::TOKEN_HEADER;
use quipu_server::place::{Place, running};
use serde::de::DeserializeOwned;

/// How long it may take to reach the server.
const REACH: Duration = Duration::from_millis(100);

/// How long it may take to answer. Looking for oneself seldom takes longer.
const ANSWER: Duration = Duration::from_millis(500);

/// The longest answer, in bytes.
const LONGEST: u64 = 64 << 20;

/// Whether a server may be asked at all.
pub(crate) fn may_ask(no_server: bool) -> bool {
    let variable = std::env::var_os("QUIPU_NO_SERVER");
    !no_server && variable.is_none_or(|set| set.is_empty() || set == "0" || set == "false")
}

/// What the server of a home says at an address, if one runs and is of the same version.
pub(crate) fn ask<T: DeserializeOwned>(home: &Path, target: &str) -> Option<T> {
    let place = running(home)?;
    if place.version != env!("CARGO_PKG_VERSION") {
        return None;
    }
    let body = body(&exchanged(&place, target)?)?.to_vec();
    serde_json::from_slice(&body).ok()
}

/// Everything that comes back from the first place of the server that can be reached.
fn exchanged(place: &Place, target: &str) -> Option<Vec<u8>> {
    for path in &place.sockets {
        if let Ok(stream) = UnixStream::connect(path) {
            let timeouts = |stream: &UnixStream, left| {
                stream.set_write_timeout(left)?;
                stream.set_read_timeout(left)
            };
            return exchange(stream, timeouts, "localhost", place, target);
        }
    }
    for url in &place.urls {
        // A certificate is not for a program of the same machine to check, and the token is for nobody beyond it.
        let address = url.strip_prefix("http://")?.parse::<SocketAddr>().ok()?;
        if !address.ip().is_loopback() {
            continue;
        }
        if let Ok(stream) = TcpStream::connect_timeout(&address, REACH) {
            let timeouts = |stream: &TcpStream, left| {
                stream.set_write_timeout(left)?;
                stream.set_read_timeout(left)
            };
            return exchange(stream, timeouts, &address.to_string(), place, target);
        }
    }
    None
}

/// Sends a request and reads until the other end closes, or it took too long.
fn exchange<S: Read + Write>(
    mut stream: S,
    timeouts: impl Fn(&S, Option<Duration>) -> std::io::Result<()>,
    host: &str,
    place: &Place,
    target: &str,
) -> Option<Vec<u8>> {
    let begun = Instant::now();
    // HTTP/1.0: the answer is in one piece and ends with the connection.
    let head = format!(
        "GET {target} HTTP/1.0\r\nHost: {host}\r\n{TOKEN_HEADER}: {}\r\nCache-Control: no-cache\r\n\
         Accept: application/json\r\n\r\n",
        place.token
    );
    timeouts(&stream, Some(ANSWER)).ok()?;
    stream.write_all(head.as_bytes()).ok()?;
    let mut all = Vec::new();
    let mut some = vec![0; 64 << 10];
    loop {
        let left = ANSWER.checked_sub(begun.elapsed())?;
        timeouts(&stream, Some(left.max(Duration::from_millis(1)))).ok()?;
        match stream.read(&mut some).ok()? {
            0 => return Some(all),
            n => all.extend_from_slice(some.get(..n)?),
        }
        if all.len() as u64 > LONGEST {
            return None;
        }
    }
}

/// The body of an answer that is fine and whole.
fn body(answer: &[u8]) -> Option<&[u8]> {
    let end = memchr::memmem::find(answer, b"\r\n\r\n")?;
    let (head, body) = (answer.get(..end)?, answer.get(end + 4..)?);
    let mut lines = std::str::from_utf8(head).ok()?.split("\r\n");
    let status = lines.next()?.split(' ').nth(1)?;
    let length = lines.find_map(|line| {
        let (name, value) = line.split_once(':')?;
        let is_length = name.eq_ignore_ascii_case("content-length");
        is_length.then(|| value.trim().parse::<usize>().ok())?
    });
    (status == "200" && length == Some(body.len())).then_some(body)
}

/// A value as it stands in the query of an address.
pub(crate) fn encoded(value: &str) -> String {
    let mut text = String::with_capacity(value.len());
    for byte in value.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            text.push(char::from(byte));
        } else {
            let digits = [byte >> 4, byte & 15]
                .map(|digit| char::from(b"0123456789ABCDEF"[usize::from(digit)]));
            text.push('%');
            text.extend(digits);
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_whole_answers_count() {
        let whole = b"HTTP/1.0 200 OK\r\ncontent-type: x\r\nContent-Length: 2\r\n\r\n{}";
        assert_eq!(body(whole), Some(&b"{}"[..]));
        for cut in 0..whole.len() {
            assert_eq!(body(&whole[..cut]), None, "{cut}");
        }
        for other in [
            "HTTP/1.0 404 Not Found\r\ncontent-length: 2\r\n\r\n{}",
            "HTTP/1.0 200 OK\r\n\r\n{}",
            "HTTP/1.0 200 OK\r\ncontent-length: 1\r\n\r\n{}",
            "SSH-2.0-other\r\n\r\n",
            "",
        ] {
            assert_eq!(body(other.as_bytes()), None, "{other}");
        }
    }

    #[test]
    fn values_of_queries_are_encoded() {
        assert_eq!(encoded("a-b \"é\"&c=+%"), "a-b%20%22%C3%A9%22%26c%3D%2B%25");
    }
}
