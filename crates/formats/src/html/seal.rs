//! A page that only opens with a passphrase.
//!
//! AES-256-GCM, with a key made from the passphrase by PBKDF2-HMAC-SHA-256: what every browser can take apart by
//! itself. Content is sealed in pieces, so that a page is written in bounded memory:
//!
//! ```text
//! key      PBKDF2(passphrase as UTF-8 in NFC, salt, iterations), 32 bytes
//! piece n  base64(AES-GCM(key, nonce xor (stream, is last, n), plain text)), a line each
//!          stream: 0 the transcript, 1 the pictures; both and the last one's mark are in byte 7, n in bytes 8 to 11
//! ```
//!
//! No piece can be changed, moved, repeated or left out unseen. How long the content is can be seen.

use std::fmt;
use std::io::{self, Write};

use aes_gcm::aead::{Aead as _, AeadInOut as _, KeyInit as _};
use aes_gcm::{Aes256Gcm, Nonce};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use pbkdf2::hmac::Hmac;
use serde::{Deserialize, Serialize};
use sha2::Sha256;
use unicode_normalization::UnicodeNormalization as _;

/// How often the passphrase is hashed.
pub const ITERATIONS: u32 = 600_000;
/// A page that asks for more is not opened: it would only keep the machine busy.
const MOST_ITERATIONS: u32 = 10_000_000;

/// So much plain text is in a piece.
const PIECE: usize = 1 << 20;

/// What a page is sealed with. Salt and nonce are not secret, but must be random, and other ones for every page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Seal {
    /// The passphrase.
    pub passphrase: Passphrase,
    /// Makes keys of the same passphrase differ.
    pub salt: [u8; 16],
    /// Where the counting of pieces begins.
    pub nonce: [u8; 12],
}

/// A passphrase, which is not shown.
#[derive(Clone, PartialEq, Eq)]
pub struct Passphrase(String);

impl Passphrase {
    /// A passphrase. However its letters are composed, it is the same.
    pub fn new(text: &str) -> Self {
        Self(text.nfc().collect())
    }
}

impl fmt::Debug for Passphrase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Passphrase(…)")
    }
}

/// How a page is sealed, as it says itself.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Described {
    v: u32,
    kdf: String,
    cipher: String,
    iterations: u32,
    salt: String,
    nonce: String,
}

const VERSION: u32 = 1;
const KDF: &str = "PBKDF2-HMAC-SHA256";
const CIPHER: &str = "AES-256-GCM";

impl Seal {
    /// What has to be known to open it, beside the passphrase. Nothing in it ends a block.
    pub(super) fn describe(&self) -> String {
        format!(
            "{{\"v\":{VERSION},\"kdf\":\"{KDF}\",\"cipher\":\"{CIPHER}\",\"iterations\":{ITERATIONS},\"salt\":\"{}\",\"nonce\":\"{}\"}}",
            STANDARD.encode(self.salt),
            STANDARD.encode(self.nonce)
        )
    }
}

/// Opens what was sealed.
pub(super) struct Opener {
    cipher: Aes256Gcm,
    nonce: [u8; 12],
}

impl Opener {
    /// The opener for a page; nothing when it is sealed in a way that is not known here.
    pub(super) fn new(described: &Described, passphrase: &Passphrase) -> Option<Self> {
        let is_known = described.v == VERSION && described.kdf == KDF && described.cipher == CIPHER;
        if !is_known || !(1..=MOST_ITERATIONS).contains(&described.iterations) {
            return None;
        }
        let salt = STANDARD.decode(&described.salt).ok()?;
        let nonce = STANDARD.decode(&described.nonce).ok()?.try_into().ok()?;
        Some(Self {
            cipher: cipher(passphrase, &salt, described.iterations),
            nonce,
        })
    }

    /// The plain text of a stream, from its lines; nothing when a piece is not as it was sealed.
    pub(super) fn open(&self, stream: u8, lines: &str) -> Option<Vec<u8>> {
        let mut plain = Vec::with_capacity(lines.len() / 4 * 3);
        let mut lines = lines.trim().lines().zip(0..).peekable();
        // Even of nothing there is a last piece.
        lines.peek()?;
        while let Some((line, number)) = lines.next() {
            let sealed = STANDARD.decode(line).ok()?;
            let nonce = nonce(self.nonce, stream, lines.peek().is_none(), number);
            let piece = self.cipher.decrypt(&Nonce::from(nonce), sealed.as_slice());
            plain.extend_from_slice(&piece.ok()?);
        }
        Some(plain)
    }
}

fn cipher(passphrase: &Passphrase, salt: &[u8], iterations: u32) -> Aes256Gcm {
    let mut key = [0; 32];
    let secret = passphrase.0.as_bytes();
    // It only fails for keys of a length that cannot be, which this is not.
    let made = pbkdf2::pbkdf2::<Hmac<Sha256>>(secret, salt, iterations, &mut key);
    debug_assert!(made.is_ok());
    Aes256Gcm::new(&key.into())
}

fn nonce(base: [u8; 12], stream: u8, is_last: bool, number: u32) -> [u8; 12] {
    let mut nonce = base;
    nonce[7] ^= stream << 1 | u8::from(is_last);
    for (byte, n) in nonce[8..].iter_mut().zip(number.to_be_bytes()) {
        *byte ^= n;
    }
    nonce
}

/// Seals what is written, stream by stream.
pub(super) struct Sealer<W> {
    out: W,
    cipher: Aes256Gcm,
    nonce: [u8; 12],
    plain: Vec<u8>,
    line: String,
    stream: u8,
    number: u32,
}

impl<W: Write> Sealer<W> {
    pub(super) fn new(seal: &Seal, out: W) -> Self {
        Self {
            out,
            cipher: cipher(&seal.passphrase, &seal.salt, ITERATIONS),
            nonce: seal.nonce,
            plain: Vec::with_capacity(PIECE + 16),
            line: String::new(),
            stream: 0,
            number: 0,
        }
    }

    /// What is below.
    pub(super) fn get_mut(&mut self) -> &mut W {
        &mut self.out
    }

    /// Ends a stream; what comes next is another.
    pub(super) fn end(&mut self) -> io::Result<()> {
        self.piece(true)?;
        self.stream += 1;
        self.number = 0;
        Ok(())
    }

    fn piece(&mut self, is_last: bool) -> io::Result<()> {
        let nonce = nonce(self.nonce, self.stream, is_last, self.number);
        self.cipher
            .encrypt_in_place(&Nonce::from(nonce), b"", &mut self.plain)
            .map_err(|_| io::Error::other("a piece is too long to be sealed"))?;
        self.number = (self.number.checked_add(1))
            .ok_or_else(|| io::Error::other("the session is too long to be sealed"))?;
        self.line.clear();
        STANDARD.encode_string(&self.plain, &mut self.line);
        self.line.push('\n');
        self.plain.clear();
        self.out.write_all(self.line.as_bytes())
    }
}

impl<W: Write> Write for Sealer<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        // A full piece is only sealed when more follows: the last one has to say that it is.
        if self.plain.len() == PIECE {
            self.piece(false)?;
        }
        let taken = bytes.len().min(PIECE - self.plain.len());
        self.plain.extend_from_slice(&bytes[..taken]);
        Ok(taken)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}
