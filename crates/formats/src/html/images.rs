//! Pictures inside of a page.

use std::collections::BTreeMap;
use std::io::{self, Write};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

/// A larger picture is not taken in.
const MOST_OF_ONE: usize = 8 << 20;
/// As much is taken in altogether: they are held until the transcript is written.
const MOST_OF_ALL: usize = 64 << 20;

/// The pictures of a session, each once.
#[derive(Debug)]
pub(super) struct Images {
    wanted: bool,
    /// By their hashes, as addresses that hold them.
    held: BTreeMap<String, String>,
    bytes: usize,
}

impl Images {
    pub(super) fn new(wanted: bool) -> Self {
        Self {
            wanted,
            held: BTreeMap::new(),
            bytes: 0,
        }
    }

    /// Takes a picture, if it is one and there is room.
    pub(super) fn take(&mut self, sha256: &str, bytes: &[u8]) {
        let is_hash = sha256.len() == 64 && sha256.bytes().all(|b| b.is_ascii_hexdigit());
        if !self.wanted || !is_hash || self.has(sha256) {
            return;
        }
        let Some(mime) = sniff(bytes) else { return };
        if bytes.len() > MOST_OF_ONE || self.bytes + bytes.len() > MOST_OF_ALL {
            return;
        }
        self.bytes += bytes.len();
        let mut url = format!("data:{mime};base64,");
        STANDARD.encode_string(bytes, &mut url);
        self.held.insert(sha256.to_owned(), url);
    }

    pub(super) fn has(&self, sha256: &str) -> bool {
        self.held.contains_key(sha256)
    }

    /// Writes them as one object.
    pub(super) fn write(&self, out: &mut impl Write) -> io::Result<()> {
        out.write_all(b"{")?;
        for (n, (sha256, url)) in self.held.iter().enumerate() {
            let lead = if n == 0 { "\n" } else { ",\n" };
            // Neither holds anything that needs an escape.
            write!(out, "{lead}\"{sha256}\":\"")?;
            out.write_all(url.as_bytes())?;
            out.write_all(b"\"")?;
        }
        out.write_all(b"}\n")
    }
}

/// What kind of picture some bytes are, by what they begin with; nothing when a browser would not draw them as a
/// picture alone. What the log says of them does not count.
pub(super) fn sniff(bytes: &[u8]) -> Option<&'static str> {
    match bytes {
        [0x89, b'P', b'N', b'G', b'\r', b'\n', 0x1a, b'\n', ..] => Some("image/png"),
        [0xff, 0xd8, 0xff, ..] => Some("image/jpeg"),
        [b'G', b'I', b'F', b'8', b'7' | b'9', b'a', ..] => Some("image/gif"),
        [
            b'R',
            b'I',
            b'F',
            b'F',
            _,
            _,
            _,
            _,
            b'W',
            b'E',
            b'B',
            b'P',
            ..,
        ] => Some("image/webp"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_pictures_are_taken_each_once_and_as_many_as_there_is_room() {
        let hash = |n: u8| format!("{n:064x}");
        let mut images = Images::new(true);
        images.take(&hash(1), b"\x89PNG\r\n\x1a\nrest");
        images.take(&hash(1), b"GIF89a");
        images.take(
            &hash(2),
            b"<svg xmlns='http://www.w3.org/2000/svg' onload='x'/>",
        );
        images.take("../../etc", b"GIF89a");
        images.take(
            &hash(3),
            &[b"RIFF\0\0\0\0WEBP".as_slice(), &vec![0; MOST_OF_ONE]].concat(),
        );
        let mut out = Vec::new();
        images.write(&mut out).unwrap();
        let read: BTreeMap<String, String> = serde_json::from_slice(&out).unwrap();
        let only = BTreeMap::from([(hash(1), "data:image/png;base64,iVBORw0KGgpyZXN0".to_owned())]);
        assert_eq!(read, only);
        let mut none = Images::new(false);
        none.take(&hash(1), b"GIF89a");
        assert!(!none.has(&hash(1)));
    }
}
