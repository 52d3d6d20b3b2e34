//! What is asked about transcripts that were taken: lists, receipts, documents, deletions.

use std::collections::BTreeMap;
use std::io::Read as _;

use quipu_record::Clock;

use super::accept::{Incoming, reading};
use super::answer::{Answer, Problem};
use super::body::range;
use super::query::Asked;
use super::{Held, Request, Response, Service, Storage, transcript_id};
use crate::bytes::Limited;
use crate::keys::{self, KeyEntry, Scope};
use crate::protocol::{
    Code, Contribution, Contributions, DeletedAs, Deletion, DeletionRequest, Finding, KeyFacts,
    Listed, Page, SHA256, TranscriptId,
};

/// How many transcripts are looked at for one page. A filter that fits few of many ends a page early, with a `next`.
const MOST_LOOKED_AT: usize = 5_000;
/// How many of them at a time.
const BATCH: usize = 200;
/// The longest request that asks for a deletion.
const MAX_REQUEST: u64 = 16 << 10;

impl<S: Storage, C: Clock> Service<S, C> {
    /// What the key may do.
    pub(super) fn own_key(&self, request: &Request<'_>) -> Answer {
        let key = self.key(request)?;
        let facts = KeyFacts {
            key_id: key.key_id().to_owned(),
            pseudonym: key.pseudonym().to_owned(),
            label: key.label().to_owned(),
            scopes: key.scopes().as_slice().to_vec(),
            created_at: key.created_at(),
            expires_at: key.expires_at(),
        };
        Ok(Response::json(200, &facts))
    }

    /// A page of what the key may see.
    pub(super) fn list(&self, request: &Request<'_>) -> Answer {
        let key = self.key(request)?;
        let mut asked = Asked::parse(request.target().1)?;
        let sees_all = key.may(Scope::Read);
        let mut page = Page {
            transcripts: Vec::new(),
            next: None,
            unreadable: 0,
        };
        let mut looked_at = 0;
        loop {
            let wanted = asked.limit - page.transcripts.len();
            let batch = BATCH.min(MOST_LOOKED_AT - looked_at).max(1);
            // Without a filter, no more than is shown.
            let batch = if sees_all {
                batch.min(wanted.max(1) * 4)
            } else {
                batch
            };
            let scanned = self.storage.scan(asked.after.as_ref(), batch)?;
            page.unreadable += scanned.unreadable;
            looked_at += batch;
            let mut left = scanned.found.len();
            let (mut is_full, mut last) = (false, scanned.last);
            for listed in scanned.found {
                left -= 1;
                let is_own = listed.receipt.key_id == key.key_id();
                if !(sees_all || is_own) || !asked.has(&listed) {
                    continue;
                }
                let id = listed.receipt.transcript_id.clone();
                page.transcripts.push(listed);
                if page.transcripts.len() >= asked.limit {
                    is_full = left > 0 || !scanned.is_end;
                    last = Some(id);
                    left = 0;
                    break;
                }
            }
            let ended = scanned.is_end && left == 0 && !is_full;
            if ended || last.is_none() {
                break;
            }
            asked.after = last;
            if is_full || looked_at >= MOST_LOOKED_AT || page.transcripts.len() >= asked.limit {
                page.next = asked.after.map(String::from);
                break;
            }
        }
        Ok(Response::json(200, &page))
    }

    /// Who submitted how much.
    pub(super) fn submitters(&self, request: &Request<'_>) -> Answer {
        let key = self.key(request)?;
        keys::allow(&key, Scope::Read)?;
        let mut sums: BTreeMap<(String, String), Contribution> = BTreeMap::new();
        let (mut after, mut unreadable) = (None, 0);
        loop {
            let scanned = self.storage.scan(after.as_ref(), BATCH)?;
            unreadable += scanned.unreadable;
            for Listed { receipt, .. } in scanned.found {
                let of = (receipt.pseudonym.clone(), receipt.key_id.clone());
                let sum = sums.entry(of).or_insert_with(|| Contribution {
                    pseudonym: receipt.pseudonym,
                    key_id: receipt.key_id,
                    transcripts: 0,
                    events: 0,
                    bytes: 0,
                    first_at: receipt.received_at,
                    last_at: receipt.received_at,
                });
                sum.transcripts += 1;
                sum.events = sum.events.saturating_add(receipt.events);
                sum.bytes = sum.bytes.saturating_add(receipt.bytes);
                sum.first_at = sum.first_at.min(receipt.received_at);
                sum.last_at = sum.last_at.max(receipt.received_at);
            }
            if scanned.is_end || scanned.last.is_none() {
                break;
            }
            after = scanned.last;
        }
        let submitters = sums.into_values().collect();
        let all = Contributions {
            submitters,
            unreadable,
        };
        Ok(Response::json(200, &all))
    }

    /// What was answered when a transcript was taken.
    pub(super) fn receipt(&self, id: &str, request: &Request<'_>) -> Answer {
        let key = self.key(request)?;
        let listed = self.visible(&transcript_id(id)?, &key)?;
        Ok(Response::json(200, &listed.receipt))
    }

    /// The accepted bytes.
    pub(super) fn document(&self, id: &str, request: &Request<'_>) -> Answer {
        let key = self.key(request)?;
        let id = transcript_id(id)?;
        let listed = self.visible(&id, &key)?;
        let tag = format!("\"{}\"", listed.receipt.sha256);
        let is_known = request.header("if-none-match").is_some_and(|tags| {
            let mut tags = tags.split(',').map(str::trim);
            tags.any(|it| it == "*" || it.trim_start_matches("W/") == tag)
        });
        if is_known {
            return Ok(Response::empty(304).header("ETag", tag));
        }
        let Some(body) = self.storage.document(&id)? else {
            // It was deleted between the one and the other.
            return Err(absent());
        };
        let length = body.len();
        let is_same = request.header("if-range").is_none_or(|of| of.trim() == tag);
        let asked = request.header("range").filter(|_| is_same);
        let Ok(part) = asked.map(|header| range(header, length)).transpose() else {
            let message = format!("the document has {length} bytes");
            let problem = Problem::new(Code::BadRange, message);
            return Err(problem.header("Content-Range", format!("bytes */{length}")));
        };
        let part = part.flatten();
        let response = match part {
            Some(part) => {
                let place = format!("bytes {}-{}/{length}", part.start, part.end - 1);
                Response::with_body(206, body.part(&part)).header("Content-Range", place)
            }
            None => Response::with_body(200, body),
        };
        Ok(response
            .header("Content-Type", "application/json")
            .header("ETag", tag)
            .header("Accept-Ranges", "bytes")
            .header("Transcript-Sha256", listed.receipt.sha256)
            .header(
                "Content-Disposition",
                format!("attachment; filename=\"{id}.json\""),
            )
            .header("X-Content-Type-Options", "nosniff"))
    }

    /// Deletes a transcript, for its submitter or an admin.
    pub(super) fn delete(&self, id: &str, request: &mut Request<'_>) -> Answer {
        let key = self.key(request)?;
        let id = transcript_id(id)?;
        let reason = self.reason(request)?;
        let listed = match self.storage.held(&id)? {
            Some(Held::There(listed)) => listed,
            // Whoever did not hear the answer asks again.
            Some(Held::Gone(deletion)) if may_know(&key, &deletion.key_id) => {
                // The deletion is kept before the document goes; what failed in between is done now.
                let deletion = self.storage.remove(&deletion)?;
                self.taken.removed(&id);
                return Ok(Response::json(200, &deletion));
            }
            _ => return Err(absent()),
        };
        let receipt = &listed.receipt;
        let deleted_as = if receipt.key_id == key.key_id() {
            DeletedAs::Submitter
        } else if key.may(Scope::Admin) {
            DeletedAs::Admin
        } else if key.may(Scope::Read) {
            return Err(keys::allow(&key, Scope::Admin)
                .err()
                .map_or_else(absent, Problem::from));
        } else {
            return Err(absent());
        };
        let deletion = self.storage.remove(&Deletion {
            transcript_id: id.clone(),
            sha256: receipt.sha256,
            bytes: receipt.bytes,
            key_id: receipt.key_id.clone(),
            pseudonym: receipt.pseudonym.clone(),
            received_at: receipt.received_at,
            deleted_at: self.clock.now(),
            deleted_by: key.key_id().to_owned(),
            deleted_as,
            reason,
        })?;
        self.taken.removed(&id);
        Ok(Response::json(200, &deletion))
    }

    /// Why a transcript is to be deleted. It is kept for good, so there must be no secret in it either.
    fn reason(&self, request: &mut Request<'_>) -> Result<Option<String>, Problem> {
        let mut text = Vec::new();
        let mut body = Limited::new(Incoming(&mut *request.body), "request", MAX_REQUEST);
        body.read_to_end(&mut text)
            .map_err(|error| reading(&error))?;
        if text.iter().all(u8::is_ascii_whitespace) {
            return Ok(None);
        }
        let asked: DeletionRequest = serde_json::from_slice(&text).map_err(|_| {
            let message = "a deletion is asked for without a body, or with {\"reason\"}";
            Problem::new(Code::BadRequest, message)
        })?;
        let Some(reason) = asked.reason else {
            return Ok(None);
        };
        if reason.chars().count() > Deletion::MAX_REASON || reason.chars().any(char::is_control) {
            let most = Deletion::MAX_REASON;
            let message = format!("a reason is one line of at most {most} characters");
            return Err(Problem::new(Code::BadRequest, message));
        }
        let leaks = self
            .scan
            .scan(&mut &text[..])
            .map_err(|_| Problem::internal())?;
        if leaks.is_empty() {
            return Ok(Some(reason));
        }
        let findings = leaks.into_iter().map(|leak| Finding {
            rule: leak.rule,
            field: leak.field,
            seq: leak.seq,
        });
        let message = "there is a secret in the reason, which is kept for good";
        Err(Problem::new(Code::SecretsFound, message).with(findings, 0))
    }

    /// A transcript that the key may see. What it may not see is not there.
    fn visible(&self, id: &TranscriptId, key: &KeyEntry) -> Result<Box<Listed>, Problem> {
        match self.storage.held(id)? {
            Some(Held::There(listed)) if may_know(key, &listed.receipt.key_id) => Ok(listed),
            Some(Held::Gone(deletion)) if may_know(key, &deletion.key_id) => {
                Err(Problem::gone(*deletion))
            }
            _ => Err(absent()),
        }
    }
}

/// Whether a key may know of what came with another, or with itself.
fn may_know(key: &KeyEntry, of: &str) -> bool {
    key.may(Scope::Read) || of == key.key_id()
}

fn absent() -> Problem {
    let message = "no such transcript came with this key";
    Problem::new(Code::NotFound, message)
}

/// The header is written as answers have it.
const _: () = assert!(SHA256.eq_ignore_ascii_case("Transcript-Sha256"));
