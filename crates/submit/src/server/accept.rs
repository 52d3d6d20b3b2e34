//! What is done with a document: unpacked within limits, checked, looked through, kept.

use std::error::Error;
use std::io::{self, Read, Seek as _, SeekFrom, Write as _};

use quipu_formats::normalized::{self, Severity};
use quipu_model::Timestamp;
use quipu_model::json::{Node, Tape};
use quipu_record::Clock;

use super::answer::{Answer, Problem};
use super::{Held, Response, Service, Storage};
use crate::bytes::{Limited, Measured, TooMuch};
use crate::keys::KeyEntry;
use crate::protocol::{Code, Encoding, Finding, Listed, Receipt, Sha256, TranscriptId};
use crate::scan::{ScanError, each_part};

/// The largest window that zstd may ask for, as a power of two: 8 MiB. More would be memory on demand.
const MAX_WINDOW_LOG: u32 = 23;
/// The sections of a document: what else may be its fields' names is not repeated.
const SECTIONS: [&str; 8] = [
    "schemaVersion",
    "transcriptId",
    "source",
    "session",
    "submitter",
    "privacy",
    "metrics",
    "events",
];
/// How deep the small sections may nest.
const MAX_DEPTH: usize = 128;

/// The request ended before its body did.
#[derive(Debug, thiserror::Error)]
#[error("the request was cut off")]
pub(super) struct Cut;

/// What the server itself keeps cannot be read.
#[derive(Debug, thiserror::Error)]
#[error("what was uploaded cannot be read: {0}")]
struct Unreadable(#[source] io::Error);

/// What was uploaded. When it cannot be read, the server failed and not the client.
pub(super) struct FromStorage<R>(pub(super) R);

impl<R: Read> Read for FromStorage<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self.0.read(buffer) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => Err(error),
            Err(error) => Err(io::Error::other(Unreadable(error))),
            read => read,
        }
    }
}

fn is<T: Error + 'static>(error: &io::Error) -> bool {
    let inner = error.get_ref();
    inner.is_some_and(<dyn Error + Send + Sync>::is::<T>)
}

/// A body, whose failures are told from those of what unpacks it.
pub(super) struct Incoming<'a>(pub(super) &'a mut dyn Read);

impl Read for Incoming<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self.0.read(buffer) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => Err(error),
            Err(error) if is::<Unreadable>(&error) => Err(error),
            Err(_) => Err(io::Error::other(Cut)),
            read => read,
        }
    }
}

/// Why reading a body failed.
pub(super) fn reading(error: &io::Error) -> Problem {
    let inner = error.get_ref();
    if let Some(TooMuch { name, limit }) = inner.and_then(|inner| inner.downcast_ref()) {
        return Problem::too_large(name, *limit);
    }
    if is::<Unreadable>(error) {
        return Problem::internal();
    }
    if is::<Cut>(error) {
        return Problem::new(Code::BadRequest, "the request was cut off");
    }
    let message = "the document does not unpack; is Content-Encoding what it is packed with?";
    Problem::new(Code::BadEncoding, message)
}

fn unpack<'a>(encoding: Encoding, packed: impl Read + 'a) -> io::Result<Box<dyn Read + 'a>> {
    Ok(match encoding {
        Encoding::Identity => Box::new(packed),
        Encoding::Gzip => Box::new(flate2::read::MultiGzDecoder::new(packed)),
        Encoding::Zstd => {
            let mut decoder = zstd::Decoder::new(packed)?;
            decoder.window_log_max(MAX_WINDOW_LOG)?;
            Box::new(decoder)
        }
    })
}

/// What a document says of itself.
#[derive(Debug, Default)]
struct Claims {
    identity_linked: bool,
    wrong: Vec<&'static str>,
    agent: Option<String>,
    title: Option<String>,
    started_at: Option<Timestamp>,
    ended_at: Option<Timestamp>,
}

impl<S: Storage, C: Clock> Service<S, C> {
    /// Takes a document, or says why not.
    pub(super) fn accept(
        &self,
        key: &KeyEntry,
        id: &TranscriptId,
        encoding: Encoding,
        sha256: Sha256,
        body: &mut dyn Read,
    ) -> Answer {
        let there = self.storage.held(id)?;
        match &there {
            Some(Held::There(there)) if there.receipt.key_id != key.key_id() => {
                return Err(conflict());
            }
            Some(gone @ Held::Gone(_)) => return self.again(gone.clone(), key, sha256),
            _ => {}
        }
        let mut spool = self.storage.spool()?;
        let (bytes, found) = self.fill(encoding, body, &mut spool)?;
        if found != sha256 {
            let message = "the document has another SHA-256 than transcript-sha256 says";
            return Err(Problem::new(Code::DigestMismatch, message));
        }
        if let Some(there) = there {
            return self.again(there, key, sha256);
        }
        let events = valid(&mut spool)?;
        let claims = claims(&mut spool, key, id)?;
        self.look(&mut spool)?;
        let receipt = Receipt {
            transcript_id: id.clone(),
            key_id: key.key_id().to_owned(),
            pseudonym: key.pseudonym().to_owned(),
            identity_linked: claims.identity_linked,
            sha256,
            bytes,
            events,
            received_at: self.clock.now(),
            duplicate: false,
        };
        spool.seek(SeekFrom::Start(0))?;
        let listed = Listed {
            receipt,
            agent: claims.agent,
            title: claims.title,
            started_at: claims.started_at,
            ended_at: claims.ended_at,
        };
        if let Some(there) = self.storage.keep(&listed, &mut spool)? {
            return self.again(there, key, sha256);
        }
        let path = self.storage.path(id);
        self.taken.kept(&listed.receipt, path.as_deref());
        Ok(Response::json(201, &listed.receipt))
    }

    /// What is answered when something is there: the same as the first time, or that it is something else.
    pub(super) fn again(&self, there: Held, key: &KeyEntry, sha256: Sha256) -> Answer {
        let receipt = match there {
            Held::There(there) => there.receipt,
            Held::Gone(deletion) if deletion.key_id == key.key_id() => {
                let message = "this transcript was deleted; an id is not taken twice, so submit it under a new one";
                return Err(Problem::new(Code::Conflict, message));
            }
            Held::Gone(_) => return Err(conflict()),
        };
        if receipt.key_id != key.key_id() || receipt.sha256 != sha256 {
            return Err(conflict());
        }
        self.storage.assure(&receipt.transcript_id)?;
        // Whoever hears of it may have failed the first time.
        let path = self.storage.path(&receipt.transcript_id);
        self.taken.kept(&receipt, path.as_deref());
        let duplicate = true;
        Ok(Response::json(
            200,
            &Receipt {
                duplicate,
                ..receipt
            },
        ))
    }

    /// Unpacks a document. Limits hold while it is unpacked: a small body may be a large document.
    fn fill(
        &self,
        encoding: Encoding,
        body: &mut dyn Read,
        spool: &mut S::Spool,
    ) -> Result<(u64, Sha256), Problem> {
        let limits = &self.limits;
        let packed = Limited::new(Incoming(body), "encodedBytes", limits.encoded_bytes);
        let plain = unpack(encoding, packed)?;
        let plain = Limited::new(plain, "documentBytes", limits.document_bytes);
        let mut plain = Measured::new(plain);
        let mut piece = vec![0; 64 << 10];
        loop {
            match plain.read(&mut piece) {
                Ok(0) => break,
                Ok(n) => spool.write_all(&piece[..n])?,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(reading(&error)),
            }
        }
        let (bytes, hash) = plain.finish();
        let hash = Sha256::parse(&hash).map_err(|_| Problem::internal())?;
        Ok((bytes, hash))
    }

    /// Looks for secrets.
    fn look(&self, spool: &mut S::Spool) -> Result<(), Problem> {
        spool.seek(SeekFrom::Start(0))?;
        let leaks = self.scan.scan(spool).map_err(|error| scanning(&error))?;
        if leaks.is_empty() {
            return Ok(());
        }
        let message =
            "there are secrets in this transcript; redact it again with newer rules, or by hand";
        let findings = leaks.into_iter().map(|leak| Finding {
            rule: leak.rule,
            field: leak.field,
            seq: leak.seq,
        });
        Err(Problem::new(Code::SecretsFound, message).with(findings, 0))
    }
}

/// Another document has the id. Whose it is, is not said.
fn conflict() -> Problem {
    Problem::new(Code::Conflict, "another document was taken under this id")
}

fn scanning(error: &ScanError) -> Problem {
    match error {
        ScanError::Io(_) => Problem::internal(),
        ScanError::NotADocument => {
            Problem::new(Code::NotATranscript, "this is no normalized transcript")
        }
    }
}

/// How many events there are, when all is as it should be.
fn valid<R: Read + io::Seek>(spool: &mut R) -> Result<u64, Problem> {
    spool.seek(SeekFrom::Start(0))?;
    let report = normalized::verify(spool).map_err(|_| Problem::internal())?;
    if report.is_valid() {
        return Ok(report.events);
    }
    let errors = report
        .findings
        .iter()
        .filter(|it| it.severity == Severity::Error);
    let findings: Vec<Finding> = errors
        .map(|finding| Finding {
            rule: finding.rule.name().to_owned(),
            field: field(&finding.path),
            seq: finding.seq,
        })
        .collect();
    let more = report
        .count(Severity::Error)
        .saturating_sub(findings.len() as u64);
    let message = "this is no valid normalized transcript; `quipu verify` says more";
    Err(Problem::new(Code::NotATranscript, message).with(findings, more))
}

/// The path of a finding. What follows the name of a section is the schema's; what does not may be anything.
fn field(path: &str) -> String {
    let end = path.find(['.', '[']).unwrap_or(path.len());
    if path.is_empty() || SECTIONS.contains(&&path[..end]) {
        path.to_owned()
    } else {
        "*".to_owned()
    }
}

/// Whether a document is the transcript and of the key that it came as.
fn claims<R: Read + io::Seek>(
    spool: &mut R,
    key: &KeyEntry,
    id: &TranscriptId,
) -> Result<Claims, Problem> {
    spool.seek(SeekFrom::Start(0))?;
    let mut claims = Claims::default();
    let (mut id_right, mut submitter_seen) = (false, false);
    let mut tape = Tape::new();
    let read = each_part(spool, &mut |part| {
        let is_told = matches!(
            part.key,
            "transcriptId" | "submitter" | "source" | "session"
        );
        if part.index.is_some() || !is_told {
            return;
        }
        let Some(node) = std::str::from_utf8(part.value)
            .ok()
            .and_then(|text| tape.read(text, MAX_DEPTH).ok())
        else {
            return;
        };
        match part.key {
            "transcriptId" => id_right = node.is(id.as_str()),
            "submitter" => {
                submitter_seen = true;
                claims.submitter(node, key);
            }
            "source" => {
                claims.agent = text(node, "agent").filter(|it| it.len() <= Listed::MAX_AGENT);
            }
            _ => {
                let title = text(node, "title");
                claims.title = title.map(|it| it.chars().take(Listed::MAX_TITLE).collect());
                let time = |name| text(node, name).and_then(|it| it.parse().ok());
                (claims.started_at, claims.ended_at) = (time("startedAt"), time("endedAt"));
            }
        }
    });
    read.map_err(|error| scanning(&error))?;
    if !id_right {
        claims.wrong.push("transcriptId");
    }
    if !submitter_seen {
        claims.wrong.push("submitter");
    }
    if claims.wrong.is_empty() {
        return Ok(claims);
    }
    let message = "the transcript says that it is another one, or of another key than it came with";
    let findings = claims.wrong.iter().map(|field| Finding {
        rule: "submitter".to_owned(),
        field: (*field).to_owned(),
        seq: None,
    });
    Err(Problem::new(Code::SubmitterMismatch, message).with(findings, 0))
}

/// A field that is a text which says something.
fn text(node: Node<'_>, name: &str) -> Option<String> {
    let text = node.get(name)?.as_raw_str()?.to_text_lossy().into_owned();
    Some(text).filter(|text| !text.trim().is_empty())
}

impl Claims {
    /// Every field of a name has to be right: of two, readers take the one or the other.
    fn submitter(&mut self, node: Node<'_>, key: &KeyEntry) {
        let (mut ids, mut pseudonyms, mut linked) = (Vec::new(), Vec::new(), Vec::new());
        for (name, value) in node.fields() {
            match &*name.to_text_lossy() {
                "keyId" => ids.push(value.is(key.key_id())),
                "pseudonym" => pseudonyms.push(value.is(key.pseudonym())),
                "identityLinked" => linked.push(value.as_bool()),
                _ => {}
            }
        }
        for (field, right) in [
            ("submitter.keyId", ids),
            ("submitter.pseudonym", pseudonyms),
        ] {
            if right.is_empty() || right.contains(&false) {
                self.wrong.push(field);
            }
        }
        match linked.as_slice() {
            [] => {}
            [Some(linked)] => self.identity_linked = *linked,
            _ => self.wrong.push("submitter.identityLinked"),
        }
    }
}
