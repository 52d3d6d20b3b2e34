//! What is tried with transcripts that were taken.

use super::checks::{Check, Done, Outcome, fresh, hold, is_absent, is_taken};
use super::talk::{Answer, Ask, Talk};
use crate::keys::{Scope, SecretKey};
use crate::protocol::{
    Code, Contributions, DeletedAs, Deletion, KeyFacts, Listed, Page, Receipt, TranscriptId,
};

pub(super) const ALL: &[Check] = &[
    ("a key is told what it may do", own_key),
    ("a key may do what its scopes say, and no more", scopes),
    ("a list has what the key may see", list),
    ("a list in pages is the same list", pages),
    ("a list is filtered as asked", filters),
    ("submitters are grouped, for readers", submitters),
    ("a document comes back byte for byte", document),
    ("a part of a document is that part", parts),
    (
        "a transcript that is deleted is gone, and its id is not taken again",
        deleted,
    ),
    (
        "only its submitter or an admin deletes a transcript",
        others_deletion,
    ),
];

/// The most pages that are asked for.
const MOST_PAGES: usize = 10_000;

/// A transcript that was taken.
fn taken(talk: &Talk<'_>, key: &SecretKey) -> Result<(TranscriptId, Vec<u8>, Receipt), String> {
    let (id, document) = fresh(key, "ok")?;
    let receipt = is_taken(&talk.put_plain(key, &id, &document)?, 201)?;
    Ok((id, document, receipt))
}

/// All pages of a list.
fn listed(talk: &Talk<'_>, key: &SecretKey, query: &str) -> Result<Vec<Listed>, String> {
    let mut all = Vec::new();
    let mut after = String::new();
    for _ in 0..MOST_PAGES {
        let said = talk.get(key, &format!("/v1/transcripts?{query}{after}"))?;
        hold(said.status == 200, &format!("{} and not 200", said.status))?;
        let page: Page = said.json()?;
        hold(page.unreadable == 0, "something could not be listed")?;
        all.extend(page.transcripts);
        match page.next {
            Some(next) => after = format!("&after={next}"),
            None => return Ok(all),
        }
    }
    Err("the list has no end".to_owned())
}

fn is_listed(all: &[Listed], id: &TranscriptId) -> bool {
    all.iter().any(|it| it.receipt.transcript_id == *id)
}

fn delete(
    talk: &Talk<'_>,
    key: &SecretKey,
    id: &TranscriptId,
    query: &str,
) -> Result<Answer, String> {
    let ask = Ask {
        method: "DELETE",
        path: format!("/v1/transcripts/{id}{query}"),
        key: Some(key),
        headers: Vec::new(),
    };
    talk.ask(&ask, b"")
}

fn own_key(talk: &Talk<'_>) -> Outcome {
    let subjects = talk.subjects;
    for (key, scopes) in [
        (&subjects.key, [Scope::Submit]),
        (&subjects.reader, [Scope::Read]),
        (&subjects.admin, [Scope::Admin]),
    ] {
        let said = talk.get(key, "/v1/keys/self")?;
        let facts: KeyFacts = said.json()?;
        let same = facts.key_id == key.id().to_string()
            && facts.pseudonym == key.pseudonym()
            && facts.scopes == scopes;
        hold(same, &format!("the key is {facts:?}"))?;
        let text = String::from_utf8_lossy(&said.body).into_owned();
        hold(!text.contains(&key.expose()[16..]), "the secret is told")?;
    }
    let said = talk.get(&subjects.revoked, "/v1/keys/self")?;
    said.refusal(Code::Revoked)?;
    Ok(Done::Passed)
}

fn scopes(talk: &Talk<'_>) -> Outcome {
    let subjects = talk.subjects;
    let (id, document) = fresh(&subjects.reader, "ok")?;
    let said = talk.put_plain(&subjects.reader, &id, &document)?;
    said.refusal(Code::Forbidden)?;
    is_absent(talk, &id)?;
    let ask = Ask {
        method: "POST",
        path: "/v1/uploads".to_owned(),
        key: Some(&subjects.reader),
        headers: vec![("content-type", "application/json".to_owned())],
    };
    talk.ask(&ask, b"{}")?.refusal(Code::Forbidden)?;
    let said = talk.get(&subjects.key, "/v1/submitters")?;
    said.refusal(Code::Forbidden)?;
    // What came with the one key, the other does not see; a reader does.
    let (id, document, receipt) = taken(talk, &subjects.key)?;
    for path in [String::new(), "/document".to_owned()] {
        let path = format!("/v1/transcripts/{id}{path}");
        talk.get(&subjects.other, &path)?.refusal(Code::NotFound)?;
    }
    for key in [&subjects.key, &subjects.reader, &subjects.admin] {
        let said = talk.get(key, &format!("/v1/transcripts/{id}"))?;
        hold(is_taken(&said, 200)? == receipt, "the receipt is another")?;
        let said = talk.get(key, &format!("/v1/transcripts/{id}/document"))?;
        hold(said.body == document, "the document is another")?;
    }
    Ok(Done::Passed)
}

fn list(talk: &Talk<'_>) -> Outcome {
    let subjects = talk.subjects;
    let (own, _, receipt) = taken(talk, &subjects.key)?;
    let (theirs, ..) = taken(talk, &subjects.other)?;
    let seen = listed(talk, &subjects.key, "limit=200")?;
    hold(
        is_listed(&seen, &own),
        "what came with the key is not listed",
    )?;
    let key_id = subjects.key.id().to_string();
    let only_own = seen.iter().all(|it| it.receipt.key_id == key_id);
    hold(only_own, "what came with another key is listed")?;
    let one = seen.iter().find(|it| it.receipt.transcript_id == own);
    let same = one.is_some_and(|it| {
        it.receipt == receipt
            && it.agent.as_deref() == Some("claude-code")
            && it.started_at.map(|at| at.to_string()).as_deref() == Some("2026-06-22T10:00:00Z")
    });
    hold(same, &format!("it is listed as {one:?}"))?;
    let all = listed(talk, &subjects.reader, "limit=200")?;
    hold(
        is_listed(&all, &own) && is_listed(&all, &theirs),
        "a reader does not see everything",
    )?;
    Ok(Done::Passed)
}

fn pages(talk: &Talk<'_>) -> Outcome {
    let subjects = talk.subjects;
    for _ in 0..5 {
        taken(talk, &subjects.key)?;
    }
    let ids = |all: Vec<Listed>| -> Vec<TranscriptId> {
        all.into_iter().map(|it| it.receipt.transcript_id).collect()
    };
    for key in [&subjects.key, &subjects.reader] {
        let whole = ids(listed(talk, key, "limit=200")?);
        let mut once = whole.clone();
        once.sort();
        once.dedup();
        hold(once.len() == whole.len(), "something is listed twice")?;
        hold(whole.len() >= 5, "something is not listed")?;
        for limit in [1, 2, 3] {
            let paged = ids(listed(talk, key, &format!("limit={limit}"))?);
            hold(
                paged == whole,
                &format!("in pages of {limit} it is another list"),
            )?;
        }
    }
    for query in [
        "limit=0",
        "limit=x",
        "limit=1000000",
        "after=../..",
        "since=now",
        "x=1",
    ] {
        let said = talk.get(&subjects.key, &format!("/v1/transcripts?{query}"))?;
        said.refusal(Code::BadRequest)?;
    }
    Ok(Done::Passed)
}

fn filters(talk: &Talk<'_>) -> Outcome {
    let subjects = talk.subjects;
    let (own, _, receipt) = taken(talk, &subjects.key)?;
    let (theirs, ..) = taken(talk, &subjects.other)?;
    let (pseudonym, key_id) = (subjects.key.pseudonym(), subjects.key.id());
    // A time has no sign that has to be escaped but the colon, which need not be.
    let at = receipt.received_at;
    for (query, is_there, others_there) in [
        (format!("pseudonym={pseudonym}"), true, false),
        (format!("keyId={key_id}"), true, false),
        (format!("keyId={key_id}&pseudonym=nobody"), false, false),
        ("agent=claude%2Dcode".to_owned(), true, true),
        ("agent=codex".to_owned(), false, false),
        (format!("since={at}"), true, true),
        (format!("until={at}"), false, false),
    ] {
        let seen = listed(talk, &subjects.reader, &format!("limit=200&{query}"))?;
        let there = (is_listed(&seen, &own), is_listed(&seen, &theirs));
        hold(
            there == (is_there, others_there),
            &format!("{query}: {there:?}"),
        )?;
    }
    // A filter does not show more than the key may see.
    let query = format!("pseudonym={pseudonym}");
    let seen = listed(talk, &subjects.other, &query)?;
    hold(seen.is_empty(), "another's is listed by its pseudonym")?;
    Ok(Done::Passed)
}

fn submitters(talk: &Talk<'_>) -> Outcome {
    let subjects = talk.subjects;
    let counts = || -> Result<(u64, u64), String> {
        let all: Contributions = talk.get(&subjects.reader, "/v1/submitters")?.json()?;
        let of = |key: &SecretKey| {
            let mut own = all
                .submitters
                .iter()
                .filter(|it| it.pseudonym == key.pseudonym());
            let sum = own.next().map_or(0, |it| it.transcripts);
            (sum, own.count())
        };
        let (one, two) = (of(&subjects.key), of(&subjects.other));
        hold((one.1, two.1) == (0, 0), "a pseudonym is there twice")?;
        Ok((one.0, two.0))
    };
    let before = counts()?;
    taken(talk, &subjects.key)?;
    taken(talk, &subjects.key)?;
    taken(talk, &subjects.other)?;
    let after = counts()?;
    hold(
        after == (before.0 + 2, before.1 + 1),
        &format!("{before:?} became {after:?}"),
    )?;
    Ok(Done::Passed)
}

fn document(talk: &Talk<'_>) -> Outcome {
    let key = &talk.subjects.key;
    let (id, document) = fresh(key, "ok")?;
    // Bytes that a server that writes the document anew would not give back.
    let spaced = [b"\n  ".as_slice(), &document, b"\n\n"].concat();
    let receipt = is_taken(&talk.put_plain(key, &id, &spaced)?, 201)?;
    let path = format!("/v1/transcripts/{id}/document");
    let said = talk.get(key, &path)?;
    hold(said.status == 200, &format!("{} and not 200", said.status))?;
    hold(said.body == spaced, "the bytes are others")?;
    let digest = receipt.sha256.to_string();
    hold(
        said.header("transcript-sha256") == Some(digest.as_str()),
        "the digest is not told",
    )?;
    let attached = said.header("content-disposition");
    hold(
        attached.is_some_and(|it| it.starts_with("attachment")),
        "a browser would show it",
    )?;
    let tag = said.header("etag").ok_or("there is no ETag")?.to_owned();
    let ask = Ask {
        method: "GET",
        path,
        key: Some(key),
        headers: vec![("if-none-match", tag)],
    };
    let said = talk.ask(&ask, b"")?;
    hold(said.status == 304, &format!("{} and not 304", said.status))?;
    Ok(Done::Passed)
}

fn parts(talk: &Talk<'_>) -> Outcome {
    let key = &talk.subjects.key;
    let (id, document, _) = taken(talk, key)?;
    let length = document.len();
    let ask = |range: &str| {
        let ask = Ask {
            method: "GET",
            path: format!("/v1/transcripts/{id}/document"),
            key: Some(key),
            headers: vec![("range", range.to_owned())],
        };
        talk.ask(&ask, b"")
    };
    for (range, from, to) in [
        ("bytes=0-9", 0, 10),
        ("bytes=10-", 10, length),
        ("bytes=-7", length - 7, length),
    ] {
        let said = ask(range)?;
        hold(
            said.status == 206,
            &format!("{range}: {} and not 206", said.status),
        )?;
        hold(
            said.body == document[from..to],
            &format!("{range}: other bytes"),
        )?;
        let place = format!("bytes {from}-{}/{length}", to - 1);
        hold(
            said.header("content-range") == Some(place.as_str()),
            &format!(
                "{range}: Content-Range is {:?}",
                said.header("content-range")
            ),
        )?;
    }
    ask(&format!("bytes={length}-"))?.refusal(Code::BadRange)?;
    hold(
        ask("lines=1-2")?.body == document,
        "another unit is not passed over",
    )?;
    Ok(Done::Passed)
}

fn deleted(talk: &Talk<'_>) -> Outcome {
    let subjects = talk.subjects;
    let key = &subjects.key;
    let (id, document, receipt) = taken(talk, key)?;
    let said = delete(talk, key, &id, "")?;
    hold(said.status == 200, &format!("{} and not 200", said.status))?;
    let deletion: Deletion = said.json()?;
    let key_id = key.id().to_string();
    let same = deletion.transcript_id == id
        && deletion.sha256 == receipt.sha256
        && (&deletion.key_id, &deletion.deleted_by) == (&key_id, &key_id)
        && deletion.deleted_as == DeletedAs::Submitter;
    hold(same, &format!("the deletion is {deletion:?}"))?;
    let again: Deletion = delete(talk, key, &id, "")?.json()?;
    hold(again == deletion, "asked again, it is another deletion")?;
    for of in ["", "/document"] {
        let path = format!("/v1/transcripts/{id}{of}");
        for reader in [key, &subjects.reader] {
            let refusal = talk.get(reader, &path)?.refusal(Code::Gone)?;
            let told = refusal.deletion.is_some_and(|it| *it == deletion);
            hold(told, "the deletion is not told")?;
        }
        talk.get(&subjects.other, &path)?.refusal(Code::NotFound)?;
    }
    let seen = listed(talk, &subjects.reader, "limit=200")?;
    hold(!is_listed(&seen, &id), "it is still listed")?;
    talk.put_plain(key, &id, &document)?
        .refusal(Code::Conflict)?;
    let packed = super::talk::pack(&id, &document, crate::protocol::Encoding::Zstd)?;
    let ask = Ask {
        method: "POST",
        path: "/v1/uploads".to_owned(),
        key: Some(key),
        headers: vec![("content-type", "application/json".to_owned())],
    };
    let body = serde_json::to_vec(&packed.upload()).map_err(|error| error.to_string())?;
    talk.ask(&ask, &body)?.refusal(Code::Conflict)?;
    let said = talk.put_plain(&subjects.other, &id, &document)?;
    let refusal = said.refusal(Code::Conflict)?;
    hold(
        !refusal.message.contains("deleted"),
        "a stranger is told that it was deleted",
    )?;
    Ok(Done::Passed)
}

fn others_deletion(talk: &Talk<'_>) -> Outcome {
    let subjects = talk.subjects;
    let (id, document, _) = taken(talk, &subjects.key)?;
    delete(talk, &subjects.other, &id, "")?.refusal(Code::NotFound)?;
    delete(talk, &subjects.reader, &id, "")?.refusal(Code::Forbidden)?;
    let said = talk.get(&subjects.key, &format!("/v1/transcripts/{id}/document"))?;
    hold(said.body == document, "it was deleted nevertheless")?;
    let deletion: Deletion = delete(talk, &subjects.admin, &id, "")?.json()?;
    let by_admin = deletion.deleted_as == DeletedAs::Admin
        && deletion.deleted_by == subjects.admin.id().to_string()
        && deletion.key_id == subjects.key.id().to_string();
    hold(by_admin, &format!("the deletion is {deletion:?}"))?;
    // Its submitter is told who did it.
    let said = talk.get(&subjects.key, &format!("/v1/transcripts/{id}"))?;
    let refusal = said.refusal(Code::Gone)?;
    hold(refusal.deletion.is_some(), "its submitter is not told")?;
    Ok(Done::Passed)
}
