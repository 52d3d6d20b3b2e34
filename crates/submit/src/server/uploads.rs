//! Documents that come in pieces, so that a cut costs a piece and not the whole.

use std::io::{self, Read};
use std::sync::PoisonError;

use jiff::SignedDuration;
use quipu_model::hex;
use quipu_record::Clock;

use super::accept::{FromStorage, Incoming, reading};
use super::answer::{Answer, Problem};
use super::{OpenUpload, Request, Response, Service, Storage};
use crate::bytes::Limited;
use crate::keys::KeyEntry;
use crate::protocol::{Code, NewUpload, UPLOAD_OFFSET};

/// The longest request that begins an upload.
const MAX_REQUEST: u64 = 16 << 10;

impl<S: Storage, C: Clock> Service<S, C> {
    /// Begins an upload; or says how far the same one came, or that it is not needed.
    pub(super) fn begin(&self, request: &mut Request<'_>) -> Answer {
        let key = self.submitting_key(request)?;
        let what = asked(&mut *request.body)?;
        if what.size > self.limits.encoded_bytes {
            return Err(Problem::too_large(
                "encodedBytes",
                self.limits.encoded_bytes,
            ));
        }
        if let Some(there) = self.storage.held(&what.transcript_id)? {
            return self.again(there, &key, what.sha256);
        }
        let now = self.clock.now();
        let seconds = i64::try_from(self.limits.upload_seconds).unwrap_or(i64::MAX);
        if let Ok(before) = now.checked_sub(SignedDuration::from_secs(seconds)) {
            self.storage.expire(before)?;
        }
        // One at a time, so that several at once are not more than may be.
        let _alone = self
            .beginning
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let open = self.storage.uploads(key.key_id())?;
        if let Some(same) = open.iter().find(|upload| upload.what == what) {
            return Ok(told(200, same));
        }
        if open.len() >= usize::try_from(self.limits.open_uploads).unwrap_or(usize::MAX) {
            let message = "too many uploads were begun with this key and not ended";
            let problem = Problem::new(Code::TooManyRequests, message);
            return Err(problem.header("Retry-After", "60"));
        }
        let mut id = [0; 16];
        getrandom::fill(&mut id).map_err(|_| Problem::internal())?;
        let upload = OpenUpload {
            id: hex::encode(&id),
            key_id: key.key_id().to_owned(),
            what,
            offset: 0,
            touched_at: now,
        };
        self.storage.begin(&upload)?;
        Ok(told(201, &upload))
    }

    /// How far an upload came.
    pub(super) fn offset(&self, id: &str, request: &Request<'_>) -> Answer {
        let key = self.submitting_key(request)?;
        let upload = self.upload(id, &key)?;
        let response = Response::empty(200).header("Upload-Offset", upload.offset);
        Ok(response.header("Upload-Length", upload.what.size))
    }

    /// Throws an upload away.
    pub(super) fn abandon(&self, id: &str, request: &Request<'_>) -> Answer {
        let key = self.submitting_key(request)?;
        let upload = self.upload(id, &key)?;
        self.storage.close(&upload.id)?;
        Ok(Response::empty(204))
    }

    /// Adds a piece. What is there when the request is cut off stays.
    pub(super) fn append(&self, id: &str, request: &mut Request<'_>) -> Answer {
        let key = self.submitting_key(request)?;
        let upload = self.upload(id, &key)?;
        let at = request.header(UPLOAD_OFFSET).and_then(|it| it.parse().ok());
        let Some(mut at) = at else {
            let message = "the header upload-offset says where the piece belongs";
            return Err(Problem::new(Code::BadRequest, message));
        };
        if at != upload.offset {
            return Err(elsewhere(upload.offset));
        }
        let came = self.take_pieces(&upload, &key, &mut at, &mut *request.body);
        // Also what came before a cut.
        let settled = self.storage.settle(id);
        came?;
        settled?;
        if at < upload.what.size {
            return Ok(Response::empty(204).header("Upload-Offset", at));
        }
        self.finish(&upload, &key)
    }

    fn take_pieces(
        &self,
        upload: &OpenUpload,
        key: &KeyEntry,
        at: &mut u64,
        body: &mut dyn Read,
    ) -> Result<(), Problem> {
        let left = upload.what.size - upload.offset.min(upload.what.size);
        let mut body = Limited::new(Incoming(body), "size", left);
        let mut piece = vec![0; 64 << 10];
        loop {
            let n = match body.read(&mut piece) {
                Ok(0) => return Ok(()),
                Ok(n) => n,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(reading(&error)),
            };
            let now = self.clock.now();
            if !self.storage.append(&upload.id, *at, &piece[..n], now)? {
                let upload = self.upload(&upload.id, key)?;
                return Err(elsewhere(upload.offset));
            }
            *at += n as u64;
        }
    }

    /// Everything is there: it is taken, or refused for good. When the server fails, the upload stays.
    fn finish(&self, upload: &OpenUpload, key: &KeyEntry) -> Answer {
        let mut packed = FromStorage(self.storage.uploaded(&upload.id)?);
        let what = &upload.what;
        let answer = self.accept(
            key,
            &what.transcript_id,
            what.encoding,
            what.sha256,
            &mut packed,
        );
        drop(packed);
        let failed = matches!(
            &answer,
            Err(problem) if problem.code().status() >= 500
        );
        if !failed {
            self.storage.close(&upload.id)?;
        }
        answer
    }

    /// An upload of this key. One of another is not there.
    fn upload(&self, id: &str, key: &KeyEntry) -> Result<OpenUpload, Problem> {
        let is_id = id.len() == 32 && id.bytes().all(|byte| byte.is_ascii_hexdigit());
        let upload = if is_id {
            self.storage.upload(id)?
        } else {
            None
        };
        upload
            .filter(|upload| upload.key_id == key.key_id())
            .ok_or_else(|| Problem::new(Code::NotFound, "there is no such upload of this key"))
    }
}

fn asked(body: &mut dyn Read) -> Result<NewUpload, Problem> {
    let mut text = Vec::new();
    let mut body = Limited::new(Incoming(body), "request", MAX_REQUEST);
    body.read_to_end(&mut text)
        .map_err(|error| reading(&error))?;
    serde_json::from_slice(&text).map_err(|_| {
        let message =
            "an upload begins with {\"transcriptId\", \"sha256\", \"size\", \"encoding\"}";
        Problem::new(Code::BadRequest, message)
    })
}

fn told(status: u16, upload: &OpenUpload) -> Response {
    let location = format!("/v1/uploads/{}", upload.id);
    Response::json(status, &upload.told())
        .header("Location", location)
        .header("Upload-Offset", upload.offset)
}

fn elsewhere(offset: u64) -> Problem {
    let message = format!("the upload stands at {offset}");
    Problem::new(Code::OffsetMismatch, message).header("Upload-Offset", offset.to_string())
}
