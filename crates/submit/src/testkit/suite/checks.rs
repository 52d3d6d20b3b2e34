//! What is tried.

use std::io::{self, Read as _};
use std::time::{Duration, Instant};

use super::super::document::{fresh_id, transcript};
use super::talk::{Answer, Ask, Talk, pack};
use crate::keys::SecretKey;
use crate::protocol::{
    Code, Encoding, Limits, Receipt, SHA256, TranscriptId, UPLOAD_OFFSET, Upload,
};

/// What became of a check that did not fail.
pub(super) enum Done {
    Passed,
    Skipped,
}

pub(super) type Outcome = Result<Done, String>;
pub(super) type Check = (&'static str, fn(&Talk<'_>) -> Outcome);

pub(super) const ALL: &[Check] = &[
    ("limits are told", limits),
    ("a transcript is taken, however it is packed", taken),
    ("the same again has the same answer", again),
    ("another document under the same id is a conflict", conflict),
    (
        "the id of another key is a conflict that does not say whose",
        anothers,
    ),
    ("an upload goes on after a cut", resumed),
    (
        "a piece that belongs elsewhere is told where the upload stands",
        offsets,
    ),
    ("an upload of another key is not there", foreign_upload),
    ("an upload that is thrown away is gone", abandoned),
    (
        "what is too large is refused by the limit's name",
        too_large,
    ),
    (
        "a small body that unpacks to a large document is refused",
        bombs,
    ),
    ("another digest is refused", digest),
    ("what does not unpack is refused", encodings),
    (
        "what is no valid transcript is refused by rule and field",
        invalid,
    ),
    ("a transcript of another key or id is refused", mismatch),
    (
        "a secret is refused by rule and field, and not repeated",
        leaks,
    ),
    ("without a key that is known nothing is taken", keys),
    ("what is not there is not found", paths),
];

pub(super) fn hold(holds: bool, otherwise: &str) -> Result<(), String> {
    if holds {
        Ok(())
    } else {
        Err(otherwise.to_owned())
    }
}

/// A new transcript.
pub(super) fn fresh(key: &SecretKey, output: &str) -> Result<(TranscriptId, Vec<u8>), String> {
    let id = fresh_id().map_err(|error| error.to_string())?;
    let document = transcript(&id, &key.submitter(false), output);
    Ok((id, document))
}

pub(super) fn is_taken(said: &Answer, status: u16) -> Result<Receipt, String> {
    hold(
        said.status == status,
        &format!("{} and not {status}", said.status),
    )?;
    said.json()
}

/// That nothing was kept.
pub(super) fn is_absent(talk: &Talk<'_>, id: &TranscriptId) -> Result<(), String> {
    let ask = Ask {
        method: "GET",
        path: format!("/v1/transcripts/{id}"),
        key: Some(&talk.subjects.key),
        headers: Vec::new(),
    };
    talk.ask(&ask, b"")?.refusal(Code::NotFound).map(drop)
}

fn limits(talk: &Talk<'_>) -> Outcome {
    let limits = told_limits(talk)?;
    hold(
        limits.encoded_bytes > 0 && limits.document_bytes > 0,
        "nothing is taken",
    )?;
    Ok(Done::Passed)
}

fn told_limits(talk: &Talk<'_>) -> Result<Limits, String> {
    let client = talk.client(&talk.subjects.key, 0)?;
    client.limits().map_err(|error| error.to_string())
}

fn taken(talk: &Talk<'_>) -> Outcome {
    let key = &talk.subjects.key;
    for encoding in Encoding::ALL {
        for one_request in [0, u64::MAX] {
            let (id, document) = fresh(key, "ok")?;
            let mut packed = pack(&id, &document, encoding)?;
            let client = talk.client(key, one_request)?;
            let receipt = client.submit(&mut packed, &mut |_| {});
            let receipt = receipt.map_err(|error| format!("{encoding:?}: {error}"))?;
            let same = receipt.key_id == key.id().to_string()
                && receipt.pseudonym == key.pseudonym()
                && receipt.bytes == document.len() as u64
                && (receipt.events, receipt.duplicate, receipt.identity_linked)
                    == (3, false, false);
            hold(same, &format!("the receipt is {receipt:?}"))?;
        }
    }
    Ok(Done::Passed)
}

fn again(talk: &Talk<'_>) -> Outcome {
    let key = &talk.subjects.key;
    let (id, document) = fresh(key, "ok")?;
    let first = is_taken(&talk.put_plain(key, &id, &document)?, 201)?;
    let second = is_taken(&talk.put_plain(key, &id, &document)?, 200)?;
    hold(
        second.duplicate && !first.duplicate,
        "it is not said that it was there",
    )?;
    let same = Receipt {
        duplicate: false,
        ..second
    } == first;
    hold(same, "the second receipt is another")?;
    // By the other way as well.
    let mut packed = pack(&id, &document, Encoding::Gzip)?;
    let third = talk.client(key, 0)?.submit(&mut packed, &mut |_| {});
    let third = third.map_err(|error| error.to_string())?;
    hold(
        third.duplicate && third.received_at == first.received_at,
        "an upload is another",
    )?;
    Ok(Done::Passed)
}

fn conflict(talk: &Talk<'_>) -> Outcome {
    let key = &talk.subjects.key;
    let (id, document) = fresh(key, "ok")?;
    is_taken(&talk.put_plain(key, &id, &document)?, 201)?;
    let other = transcript(&id, &key.submitter(false), "not ok");
    talk.put_plain(key, &id, &other)?.refusal(Code::Conflict)?;
    is_taken(&talk.put_plain(key, &id, &document)?, 200)?;
    Ok(Done::Passed)
}

fn anothers(talk: &Talk<'_>) -> Outcome {
    let (key, other) = (&talk.subjects.key, &talk.subjects.other);
    let (id, document) = fresh(key, "ok")?;
    is_taken(&talk.put_plain(key, &id, &document)?, 201)?;
    let theirs = transcript(&id, &other.submitter(false), "ok");
    for document in [&document, &theirs] {
        let said = talk.put_plain(other, &id, document)?;
        said.refusal(Code::Conflict)?;
        let text = String::from_utf8_lossy(&said.body).into_owned();
        let tells = text.contains(&key.id().to_string()) || text.contains(&key.pseudonym());
        hold(!tells, "it is said whose it is")?;
    }
    Ok(Done::Passed)
}

/// Begins an upload of a long document.
fn begun(talk: &Talk<'_>) -> Result<(crate::client::Packed, Upload), String> {
    let key = &talk.subjects.key;
    let (id, document) = fresh(key, &"all is well\n".repeat(40_000))?;
    let packed = pack(&id, &document, Encoding::Identity)?;
    let ask = Ask {
        method: "POST",
        path: "/v1/uploads".to_owned(),
        key: Some(key),
        headers: vec![("content-type", "application/json".to_owned())],
    };
    let body = serde_json::to_vec(&packed.upload()).map_err(|error| error.to_string())?;
    let said = talk.ask(&ask, &body)?;
    hold(said.status == 201, &format!("{} and not 201", said.status))?;
    let upload: Upload = said.json()?;
    hold(upload.offset == 0, "a new upload does not begin at 0")?;
    Ok((packed, upload))
}

fn upload_ask<'a>(method: &'a str, upload: &Upload, key: &'a SecretKey) -> Ask<'a> {
    Ask {
        method,
        path: format!("/v1/uploads/{}", upload.upload_id),
        key: Some(key),
        headers: Vec::new(),
    }
}

fn offset_of(talk: &Talk<'_>, upload: &Upload) -> Result<u64, String> {
    let said = talk.ask(&upload_ask("HEAD", upload, &talk.subjects.key), b"")?;
    let offset = said.header(UPLOAD_OFFSET).and_then(|it| it.parse().ok());
    offset.ok_or_else(|| format!("{} without an offset", said.status))
}

fn resumed(talk: &Talk<'_>) -> Outcome {
    let (mut packed, upload) = begun(talk)?;
    let path = format!("/v1/uploads/{}", upload.upload_id);
    let size = usize::try_from(packed.size()).unwrap_or(usize::MAX);
    let begin = packed
        .piece(0, size / 2)
        .map_err(|error| error.to_string())?;
    if !talk.cut(&path, size, &begin)? {
        return Ok(Done::Skipped);
    }
    let until = Instant::now() + Duration::from_secs(10);
    while offset_of(talk, &upload)? == 0 {
        hold(
            Instant::now() < until,
            "nothing of what came before the cut is there",
        )?;
        std::thread::sleep(Duration::from_millis(20));
    }
    let mut first = None;
    let receipt = talk
        .client(&talk.subjects.key, 0)?
        .submit(&mut packed, &mut |progress| {
            first.get_or_insert(progress.sent);
        });
    let receipt = receipt.map_err(|error| error.to_string())?;
    hold(
        first.is_some_and(|sent| sent > 0),
        "it began from the beginning",
    )?;
    hold(receipt.bytes == packed.bytes(), "something else was taken")?;
    Ok(Done::Passed)
}

fn offsets(talk: &Talk<'_>) -> Outcome {
    let (mut packed, upload) = begun(talk)?;
    let piece = packed.piece(0, 1000).map_err(|error| error.to_string())?;
    let send = |at: &str| {
        let mut ask = upload_ask("PATCH", &upload, &talk.subjects.key);
        ask.headers.push((UPLOAD_OFFSET, at.to_owned()));
        talk.ask(&ask, &piece)
    };
    let said = send("0")?;
    hold(said.status == 204, &format!("{} and not 204", said.status))?;
    hold(
        said.header(UPLOAD_OFFSET) == Some("1000"),
        "the offset is not 1000",
    )?;
    for at in ["0", "999", "5000"] {
        let said = send(at)?;
        said.refusal(Code::OffsetMismatch)?;
        hold(
            said.header(UPLOAD_OFFSET) == Some("1000"),
            "the offset is not told",
        )?;
    }
    send("x")?.refusal(Code::BadRequest)?;
    hold(
        offset_of(talk, &upload)? == 1000,
        "something was added nevertheless",
    )?;
    // The same upload is begun once, whoever asks again.
    let again = talk
        .client(&talk.subjects.key, 0)?
        .submit(&mut packed, &mut |_| {});
    again.map_err(|error| error.to_string())?;
    Ok(Done::Passed)
}

fn foreign_upload(talk: &Talk<'_>) -> Outcome {
    let (_, upload) = begun(talk)?;
    for method in ["HEAD", "PATCH", "DELETE"] {
        let mut ask = upload_ask(method, &upload, &talk.subjects.other);
        ask.headers.push((UPLOAD_OFFSET, "0".to_owned()));
        let said = talk.ask(&ask, b"x")?;
        hold(
            said.status == 404,
            &format!("{method}: {} and not 404", said.status),
        )?;
    }
    hold(
        offset_of(talk, &upload)? == 0,
        "something was added nevertheless",
    )?;
    let done = talk.ask(&upload_ask("DELETE", &upload, &talk.subjects.key), b"")?;
    hold(done.status == 204, &format!("{} and not 204", done.status))?;
    Ok(Done::Passed)
}

fn abandoned(talk: &Talk<'_>) -> Outcome {
    let (_, upload) = begun(talk)?;
    for status in [204, 404] {
        let said = talk.ask(&upload_ask("DELETE", &upload, &talk.subjects.key), b"")?;
        hold(
            said.status == status,
            &format!("{} and not {status}", said.status),
        )?;
    }
    Ok(Done::Passed)
}

fn too_large(talk: &Talk<'_>) -> Outcome {
    let limits = told_limits(talk)?;
    let key = &talk.subjects.key;
    let (id, document) = fresh(key, "ok")?;
    let mut new = pack(&id, &document, Encoding::Identity)?.upload();
    new.size = limits.encoded_bytes + 1;
    let ask = Ask {
        method: "POST",
        path: "/v1/uploads".to_owned(),
        key: Some(key),
        headers: vec![("content-type", "application/json".to_owned())],
    };
    let body = serde_json::to_vec(&new).map_err(|error| error.to_string())?;
    let refusal = talk.ask(&ask, &body)?.refusal(Code::TooLarge)?;
    let limit = refusal.limit.ok_or("the limit is not named")?;
    let same = (limit.name.as_str(), limit.bytes) == ("encodedBytes", limits.encoded_bytes);
    hold(same, "the limit is not encodedBytes")?;
    Ok(Done::Passed)
}

fn bombs(talk: &Talk<'_>) -> Outcome {
    let limits = told_limits(talk)?;
    let (id, document) = fresh(&talk.subjects.key, "ok")?;
    let digest = pack(&id, &document, Encoding::Identity)?
        .sha256()
        .to_string();
    let make = |encoding| {
        let spaces = io::repeat(b' ').take(limits.document_bytes + 1);
        let packed = crate::client::Packed::new(id.clone(), spaces, encoding);
        packed.map_err(|error| error.to_string())
    };
    for encoding in [Encoding::Gzip, Encoding::Zstd] {
        let mut bomb = make(encoding)?;
        hold(
            bomb.size() < limits.encoded_bytes,
            "the limits do not allow for one",
        )?;
        let body = bomb
            .piece(0, usize::MAX)
            .map_err(|error| error.to_string())?;
        let key = Some(&talk.subjects.key);
        let said = talk.put(key, &id, encoding.as_str(), &digest, &body)?;
        let limit = said.refusal(Code::TooLarge)?.limit;
        let named = limit.is_some_and(|limit| limit.name == "documentBytes");
        hold(named, "the limit is not documentBytes")?;
        let refused = talk
            .client(&talk.subjects.key, 0)?
            .submit(&mut bomb, &mut |_| {});
        hold(refused.is_err(), "in pieces it was taken")?;
    }
    is_absent(talk, &id)?;
    Ok(Done::Passed)
}

fn digest(talk: &Talk<'_>) -> Outcome {
    let key = &talk.subjects.key;
    let (id, document) = fresh(key, "ok")?;
    let other = "0".repeat(64);
    let said = talk.put(Some(key), &id, "identity", &other, &document)?;
    said.refusal(Code::DigestMismatch)?;
    let said = talk.put(Some(key), &id, "identity", "none", &document)?;
    said.refusal(Code::BadRequest)?;
    is_absent(talk, &id)?;
    // A byte less, under the digest of the whole.
    let packed = pack(&id, &document, Encoding::Identity)?;
    let (cut, digest) = (&document[..document.len() - 1], packed.sha256().to_string());
    let said = talk.put(Some(key), &id, "identity", &digest, cut)?;
    said.refusal(Code::DigestMismatch)?;
    is_absent(talk, &id)?;
    Ok(Done::Passed)
}

fn encodings(talk: &Talk<'_>) -> Outcome {
    let key = Some(&talk.subjects.key);
    let (id, document) = fresh(&talk.subjects.key, "ok")?;
    let digest = pack(&id, &document, Encoding::Identity)?
        .sha256()
        .to_string();
    for encoding in ["gzip", "zstd"] {
        let said = talk.put(key, &id, encoding, &digest, &document)?;
        said.refusal(Code::BadEncoding)?;
    }
    for encoding in [Encoding::Gzip, Encoding::Zstd] {
        let mut packed = pack(&id, &document, encoding)?;
        let mut body = packed
            .piece(0, usize::MAX)
            .map_err(|error| error.to_string())?;
        body.truncate(body.len() / 2);
        let said = talk.put(key, &id, encoding.as_str(), &digest, &body)?;
        said.refusal(Code::BadEncoding)?;
    }
    let said = talk.put(key, &id, "br", &digest, &document)?;
    said.refusal(Code::UnsupportedEncoding)?;
    is_absent(talk, &id)?;
    Ok(Done::Passed)
}

fn invalid(talk: &Talk<'_>) -> Outcome {
    let key = &talk.subjects.key;
    let (id, document) = fresh(key, "ok")?;
    let text = String::from_utf8(document).map_err(|error| error.to_string())?;
    for (from, to, rule) in [
        ("\"eventCount\":3", "\"eventCount\":4", "metrics"),
        ("\"seq\":2", "\"seq\":1", "seq-order"),
        (
            "\"schemaVersion\":\"0.1.0\"",
            "\"schemaVersion\":\"7\"",
            "version",
        ),
        ("{", "[", "document"),
    ] {
        let broken = text.replacen(from, to, 1);
        hold(broken != text, "the document has another shape")?;
        let refusal = talk
            .put_plain(key, &id, broken.as_bytes())?
            .refusal(Code::NotATranscript)?;
        let named = refusal.findings.iter().any(|finding| finding.rule == rule);
        hold(named, &format!("{rule} is not named"))?;
    }
    is_absent(talk, &id)?;
    Ok(Done::Passed)
}

fn mismatch(talk: &Talk<'_>) -> Outcome {
    let (key, other) = (&talk.subjects.key, &talk.subjects.other);
    let (id, _) = fresh(key, "ok")?;
    let (another, _) = fresh(key, "ok")?;
    let mut wrong_name = key.submitter(false);
    wrong_name.pseudonym = Some(other.pseudonym());
    let mut nobody = key.submitter(false);
    nobody.key_id = None;
    for (of, submitter, field) in [
        (&id, wrong_name, "submitter.pseudonym"),
        (&id, nobody, "submitter.keyId"),
        (&id, other.submitter(false), "submitter.keyId"),
        (&another, key.submitter(false), "transcriptId"),
    ] {
        let document = transcript(of, &submitter, "ok");
        let refusal = talk
            .put_plain(key, &id, &document)?
            .refusal(Code::SubmitterMismatch)?;
        let named = refusal
            .findings
            .iter()
            .any(|finding| finding.field == field);
        hold(named, &format!("{field} is not named"))?;
    }
    is_absent(talk, &id)?;
    Ok(Done::Passed)
}

fn leaks(talk: &Talk<'_>) -> Outcome {
    let (key, leak) = (&talk.subjects.key, &talk.subjects.leak);
    let (id, document) = fresh(key, &leak.text)?;
    let said = talk.put_plain(key, &id, &document)?;
    let refusal = said.refusal(Code::SecretsFound)?;
    let named = refusal.findings.iter().any(|finding| {
        finding.rule == leak.rule && finding.field == "tool.output" && finding.seq == Some(3)
    });
    hold(named, &format!("the findings are {:?}", refusal.findings))?;
    let text = String::from_utf8_lossy(&said.body).into_owned();
    hold(!text.contains(&leak.secret), "the secret is repeated")?;
    let mut packed = pack(&id, &document, Encoding::Zstd)?;
    let refused = talk.client(key, 0)?.submit(&mut packed, &mut |_| {});
    hold(refused.is_err(), "in pieces it was taken")?;
    is_absent(talk, &id)?;
    Ok(Done::Passed)
}

fn keys(talk: &Talk<'_>) -> Outcome {
    let subjects = talk.subjects;
    let (id, document) = fresh(&subjects.key, "ok")?;
    let digest = pack(&id, &document, Encoding::Identity)?
        .sha256()
        .to_string();
    let stranger = SecretKey::random().map_err(|error| error.to_string())?;
    // The id of one key with the secret of another.
    let (one, two) = (subjects.key.expose(), subjects.other.expose());
    let forged = SecretKey::parse(&format!("{}{}", &one[..16], &two[16..]));
    let forged = forged.map_err(|error| error.to_string())?;
    for key in [None, Some(&stranger), Some(&forged)] {
        let said = talk.put(key, &id, "identity", &digest, &document)?;
        said.refusal(Code::Unauthorized)?;
        hold(
            said.header("www-authenticate").is_some(),
            "it is not said how to authenticate",
        )?;
    }
    let said = talk.put(Some(&subjects.revoked), &id, "identity", &digest, &document)?;
    said.refusal(Code::Revoked)?;
    is_absent(talk, &id)?;
    Ok(Done::Passed)
}

fn paths(talk: &Talk<'_>) -> Outcome {
    let key = Some(&talk.subjects.key);
    for (method, path, code) in [
        ("GET", "/v1/nothing", Code::NotFound),
        ("PUT", "/v1/limits", Code::MethodNotAllowed),
        ("POST", "/v1/transcripts/00000000", Code::MethodNotAllowed),
        ("PUT", "/v1/transcripts/..%2f..%2fx", Code::BadRequest),
        ("PUT", "/v1/transcripts", Code::MethodNotAllowed),
        ("GET", "/v1/transcripts?colour=blue", Code::BadRequest),
        ("GET", "/v1/transcripts/..%2fx/document", Code::BadRequest),
        ("DELETE", "/v1/transcripts/%2e%2e", Code::BadRequest),
        ("GET", "/v1/transcripts/00000000/document", Code::NotFound),
        ("DELETE", "/v1/transcripts/00000000", Code::NotFound),
        ("POST", "/v1/keys/self", Code::MethodNotAllowed),
        (
            "PATCH",
            "/v1/uploads/00000000000000000000000000000000",
            Code::NotFound,
        ),
    ] {
        let ask = Ask {
            method,
            path: path.to_owned(),
            key,
            headers: vec![
                ("content-type", "application/json".to_owned()),
                (SHA256, "0".repeat(64)),
                (UPLOAD_OFFSET, "0".to_owned()),
            ],
        };
        talk.ask(&ask, b"{}")?.refusal(code)?;
    }
    Ok(Done::Passed)
}
