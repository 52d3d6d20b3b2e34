//! Sends transcripts to a server.
//!
//! What is small goes in one request. What is not goes in pieces, and after a cut from where the server says it
//! stopped, in this process or in another one. A server that is busy or out of reach is asked again, a few times and not
//! for long.
//!
//! Nothing is sent but to the address that was named: redirects are not followed, and without TLS only this machine is
//! spoken to. The key is in no error, no message and no debug output, even where the server repeats it.

mod address;
mod answer;
mod packed;

#[cfg(test)]
mod tests;

use std::fmt;
use std::io;
use std::time::Duration;

use quipu_http::{Answer, Patience};
use ureq::http::HeaderValue;

pub use packed::Packed;

use self::address::Address;
use crate::keys::SecretKey;
use crate::protocol::{
    Code, Limits, NewUpload, Receipt, Refusal, SHA256, TranscriptId, UPLOAD_OFFSET, Upload,
};

/// How a client behaves.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClientOptions {
    /// How often is tried without getting any further.
    pub attempts: u32,
    /// How long is waited before the second attempt, unless the server says; twice as long each time.
    pub first_wait: Duration,
    /// The longest wait, whatever the server says.
    pub longest_wait: Duration,
    /// How long a request may take.
    pub timeout: Duration,
    /// Up to how many bytes, packed, a transcript is sent in one request.
    pub one_request: u64,
    /// How many bytes are sent in one piece otherwise.
    pub piece: usize,
    /// Whether another machine may be spoken to without TLS. The key and the transcript can be read on the way then.
    pub plain_http: bool,
}

impl Default for ClientOptions {
    fn default() -> Self {
        Self {
            attempts: 5,
            first_wait: Duration::from_secs(1),
            longest_wait: Duration::from_secs(30),
            timeout: Duration::from_secs(120),
            one_request: 1 << 20,
            piece: 4 << 20,
            plain_http: false,
        }
    }
}

/// How far a transcript has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Progress {
    /// How many bytes the server has, as they are sent.
    pub sent: u64,
    /// How many there are.
    pub size: u64,
}

/// Why a transcript was not taken.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// The address is none that can be sent to.
    #[error("cannot submit to this address: {0}")]
    Address(&'static str),
    /// What was packed cannot be read again.
    #[error("cannot read what is to be sent")]
    Io(#[from] io::Error),
    /// The server does not answer.
    #[error("{server} cannot be reached: {reason}")]
    Unreachable {
        /// Where it was sent to.
        server: String,
        /// What went wrong.
        reason: String,
    },
    /// The server sends elsewhere, which is not followed.
    #[error(
        "{server} redirects ({status}), which is not followed: name the address that it should go to"
    )]
    Redirected {
        /// Where it was sent to.
        server: String,
        /// The status of the answer.
        status: u16,
    },
    /// The server says why it does not take it.
    #[error("{server} refuses it ({status}): {}", refusal.message)]
    Refused {
        /// Where it was sent to.
        server: String,
        /// The status of the answer.
        status: u16,
        /// What it says: the code, the places, the limit.
        refusal: Box<Refusal>,
    },
    /// The server says something that no such server says.
    #[error(
        "{server} answers {status} with something else than this protocol has; is there a server for transcripts?"
    )]
    Stranger {
        /// Where it was sent to.
        server: String,
        /// The status of the answer.
        status: u16,
    },
    /// The server says that it took something else.
    #[error("{server} took something else than was sent")]
    OtherReceipt {
        /// Where it was sent to.
        server: String,
    },
    /// The server is busy, and was still after the last attempt.
    #[error("{server} is busy ({status}) after {attempts} attempts")]
    Busy {
        /// Where it was sent to.
        server: String,
        /// The status of the last answer.
        status: u16,
        /// How often it was tried.
        attempts: u32,
    },
}

/// Sends transcripts to one server, with one key.
pub struct Client {
    agent: ureq::Agent,
    address: Address,
    key: SecretKey,
    authorization: HeaderValue,
    options: ClientOptions,
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client")
            .field("server", &self.address.shown())
            .field("key", &self.key)
            .field("options", &self.options)
            .finish_non_exhaustive()
    }
}

/// What is asked of a server.
enum Ask<'a> {
    Limits,
    Put(&'a Packed, &'a [u8]),
    Begin(&'a NewUpload),
    Append(&'a str, u64, &'a [u8]),
}

impl Client {
    /// A client of a server, by the address that `/v1` is under.
    ///
    /// # Errors
    ///
    /// When the address cannot be used.
    pub fn new(address: &str, key: SecretKey, options: ClientOptions) -> Result<Self, ClientError> {
        let address = Address::parse(address, options.plain_http)?;
        let value = format!("Bearer {}", key.expose());
        let wrong = |_| ClientError::Address("the key cannot be sent");
        let mut authorization = HeaderValue::from_str(&value).map_err(wrong)?;
        authorization.set_sensitive(true);
        let agent = quipu_http::agent(address.uri(), options.timeout);
        Ok(Self {
            agent,
            address,
            key,
            authorization,
            options,
        })
    }

    /// What the server takes.
    ///
    /// # Errors
    ///
    /// It does not say.
    pub fn limits(&self) -> Result<Limits, ClientError> {
        let answer = self.insist(&mut self.patience(), &Ask::Limits)?;
        answer::json(&answer).ok_or_else(|| self.stranger(&answer))
    }

    /// Submits a transcript. It may be submitted again: the answer is the same.
    ///
    /// # Errors
    ///
    /// It was not taken.
    pub fn submit(
        &self,
        packed: &mut Packed,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<Receipt, ClientError> {
        let size = packed.size();
        let receipt = if size <= self.options.one_request {
            let body = packed.piece(0, usize::try_from(size).unwrap_or(usize::MAX))?;
            let answer = self.insist(&mut self.patience(), &Ask::Put(packed, &body))?;
            self.receipt(&answer)?
        } else {
            self.in_pieces(packed, progress)?
        };
        let same = receipt.sha256 == packed.sha256() && receipt.transcript_id == *packed.id();
        if !same {
            let server = self.address.shown().to_owned();
            return Err(ClientError::OtherReceipt { server });
        }
        progress(Progress { sent: size, size });
        Ok(receipt)
    }

    /// Asks where the upload stands, and sends from there, until it is taken.
    fn in_pieces(
        &self,
        packed: &mut Packed,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<Receipt, ClientError> {
        let what = packed.upload();
        let mut patience = self.patience();
        let mut furthest = 0;
        loop {
            let answer = self.insist(&mut patience, &Ask::Begin(&what))?;
            let Some(upload) = answer::json::<Upload>(&answer) else {
                // It is there already: of an earlier run, or the answer was lost.
                return self.receipt(&answer);
            };
            let mut at = upload.offset;
            if at > what.size || !is_segment(&upload.upload_id) {
                return Err(self.stranger(&answer));
            }
            loop {
                if at > furthest {
                    // It gets further, so it is worth trying.
                    (patience, furthest) = (self.patience(), at);
                }
                progress(Progress {
                    sent: at,
                    size: what.size,
                });
                let piece = packed.piece(at, self.options.piece)?;
                let ask = Ask::Append(&upload.upload_id, at, &piece);
                let answer = match self.once(&ask) {
                    Ok(answer) => answer,
                    Err(error) => {
                        if !patience.wait(None) {
                            return Err(error);
                        }
                        break;
                    }
                };
                if answer.status == 204 {
                    at += piece.len() as u64;
                    if at < what.size {
                        continue;
                    }
                    // It has all of it and does not say so. It is asked again, but not for ever.
                    furthest = what.size;
                    let error = self.stranger(&answer);
                    if !patience.wait(answer.retry_after) {
                        return Err(error);
                    }
                    break;
                }
                if answer.is_success() {
                    return self.receipt(&answer);
                }
                // The upload stands elsewhere or is no more, or the server is busy: it is asked where to go on.
                let lost = matches!(
                    answer::code(&answer),
                    Some(Code::OffsetMismatch | Code::NotFound)
                );
                let after = answer.retry_after;
                let error = self.refused(&answer, patience.attempts());
                if !lost && !matches!(error, ClientError::Busy { .. }) {
                    return Err(error);
                }
                if !patience.wait(after) {
                    return Err(error);
                }
                break;
            }
        }
    }

    fn patience(&self) -> Patience {
        let options = &self.options;
        Patience::new(options.attempts, options.first_wait, options.longest_wait)
    }

    /// Asks until there is an answer that is worth something.
    fn insist(&self, patience: &mut Patience, ask: &Ask<'_>) -> Result<Answer, ClientError> {
        loop {
            let (error, after) = match self.once(ask) {
                Ok(answer) if answer.is_success() => return Ok(answer),
                Ok(answer) => {
                    let after = answer.retry_after;
                    (self.refused(&answer, patience.attempts()), after)
                }
                Err(error) => (error, None),
            };
            if !matches!(
                error,
                ClientError::Busy { .. } | ClientError::Unreachable { .. }
            ) {
                return Err(error);
            }
            if !patience.wait(after) {
                return Err(error);
            }
        }
    }

    fn once(&self, ask: &Ask<'_>) -> Result<Answer, ClientError> {
        let authorization = || self.authorization.clone();
        let response = match ask {
            Ask::Limits => self.agent.get(self.address.of("limits")).call(),
            Ask::Put(packed, body) => self
                .agent
                .put(self.address.of(&format!("transcripts/{}", packed.id())))
                .header("authorization", authorization())
                .header("content-type", "application/json")
                .header("content-encoding", packed.encoding().as_str())
                .header(SHA256, packed.sha256().to_string())
                .send(*body),
            Ask::Begin(what) => self
                .agent
                .post(self.address.of("uploads"))
                .header("authorization", authorization())
                .header("content-type", "application/json")
                .send(serde_json::to_vec(what).map_err(io::Error::from)?),
            Ask::Append(id, at, piece) => self
                .agent
                .patch(self.address.of(&format!("uploads/{id}")))
                .header("authorization", authorization())
                .header("content-type", "application/octet-stream")
                .header(UPLOAD_OFFSET, at.to_string())
                .send(*piece),
        };
        response
            .map(|response| Answer::read(response, answer::MAX_ANSWER))
            .map_err(|error| ClientError::Unreachable {
                server: self.address.shown().to_owned(),
                reason: self.hide(&error.to_string()),
            })
    }

    fn receipt(&self, answer: &Answer) -> Result<Receipt, ClientError> {
        answer::json(answer).ok_or_else(|| self.stranger(answer))
    }

    fn stranger(&self, answer: &Answer) -> ClientError {
        ClientError::Stranger {
            server: self.address.shown().to_owned(),
            status: answer.status,
        }
    }

    /// What an answer means that is no success.
    fn refused(&self, answer: &Answer, attempts: u32) -> ClientError {
        let (server, status) = (self.address.shown().to_owned(), answer.status);
        if answer.is_redirect() {
            return ClientError::Redirected { server, status };
        }
        if matches!(status, 429 | 500 | 502..=504) {
            return ClientError::Busy {
                server,
                status,
                attempts,
            };
        }
        match answer::json::<Refusal>(answer) {
            Some(mut refusal) => {
                refusal.message = self.hide(&refusal.message);
                refusal.findings.truncate(Refusal::MAX_FINDINGS);
                for finding in &mut refusal.findings {
                    finding.rule = self.hide(&finding.rule);
                    finding.field = self.hide(&finding.field);
                }
                ClientError::Refused {
                    server,
                    status,
                    refusal: Box::new(refusal),
                }
            }
            None => self.stranger(answer),
        }
    }

    /// A text of another program, for a line of a terminal, without the key.
    fn hide(&self, text: &str) -> String {
        answer::clean(text, &self.key.expose())
    }
}

/// Whether the id of an upload can be part of an address without changing where the address leads.
fn is_segment(id: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
    (1..=200).contains(&id.len()) && id.bytes().all(plain) && !id.bytes().all(|byte| byte == b'.')
}

/// What is submitted under which id, packed: for those who have the bytes at hand.
///
/// # Errors
///
/// It was not taken.
pub fn submit(
    address: &str,
    key: SecretKey,
    id: TranscriptId,
    document: &[u8],
) -> Result<Receipt, ClientError> {
    let mut packed = Packed::new(id, document, crate::Encoding::Zstd)?;
    Client::new(address, key, ClientOptions::default())?.submit(&mut packed, &mut |_| {})
}
