//! Bytes that are kept outside of events: images and the like. Always handed out as a download, with a type that runs nothing.

use std::io::{Read as _, Seek as _, SeekFrom};

use axum::body::Body;
use axum::extract::State;
use axum::response::{IntoResponse as _, Response};
use bytes::Bytes;
use http::header::{
    ACCEPT_RANGES, CACHE_CONTROL, CONTENT_DISPOSITION, CONTENT_LENGTH, CONTENT_RANGE, CONTENT_TYPE,
    ETAG, HeaderValue, RANGE,
};
use http::{HeaderMap, StatusCode};
use quipu_store::blobs::{BlobId, mime};

use super::query::Path;
use crate::App;
use crate::access::MayRead;
use crate::answer::is_known;
use crate::problem::Problem;
use crate::stream::file_body;

/// Types that a browser may show. Everything else is bytes: what can hold a script is never called by its name.
const SHOWN: [&str; 5] = [
    "image/png",
    "image/jpeg",
    "image/gif",
    "image/webp",
    "text/plain",
];

/// A blob, whole or a range of it.
#[utoipa::path(
    get,
    path = "/api/v1/blobs/{sha256}",
    operation_id = "getBlob",
    tag = "transcripts",
    params(("sha256" = String, Path, description = "The SHA-256 of the bytes: 64 hex digits")),
    responses(
        (status = 200, description = "The bytes, as an attachment", content(
            (Vec<u8> = "application/octet-stream"),
            (Vec<u8> = "image/png"),
            (Vec<u8> = "image/jpeg"),
            (Vec<u8> = "image/gif"),
            (Vec<u8> = "image/webp"),
            (String = "text/plain")
        )),
        (status = 206, description = "The bytes of the range that was asked for"),
        (status = 404, body = Problem),
        (status = 416, body = Problem)
    )
)]
pub(crate) async fn blob(
    State(app): State<App>,
    _: MayRead,
    Path(sha256): Path<String>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let id: BlobId = sha256
        .parse()
        .map_err(|_| Problem::bad_parameter("sha256", "it is not 64 hex digits"))?;
    // Weak, since the same bytes may be packed in several ways.
    let etag = HeaderValue::from_str(&format!("W/\"{sha256}\""))
        .map_err(|_| Problem::bad_parameter("sha256", "it is not 64 hex digits"))?;
    let (file, length, kind) = app
        .read(move |store| {
            let missing = || Problem::not_found("no blob with this SHA-256 is kept");
            let path = store.blobs().path(&id);
            let mut file = std::fs::File::open(path).map_err(|_| missing())?;
            let length = file.metadata().map_err(Problem::store)?.len();
            let mut head = Vec::new();
            file.by_ref()
                .take(512)
                .read_to_end(&mut head)
                .map_err(Problem::store)?;
            let kind = mime::of(&head);
            let kind = SHOWN.iter().find(|shown| **shown == kind).copied();
            Ok((file, length, kind.unwrap_or("application/octet-stream")))
        })
        .await?;
    if is_known(&headers, &etag) {
        return Ok((StatusCode::NOT_MODIFIED, [(ETAG, etag)]).into_response());
    }
    let range = headers.get(RANGE).and_then(|value| value.to_str().ok());
    let (status, from, to) = match range.map(|text| ranged(text, length)) {
        None | Some(Ranged::Ignored) => (StatusCode::OK, 0, length),
        Some(Ranged::Part(from, to)) => (StatusCode::PARTIAL_CONTENT, from, to),
        Some(Ranged::Beyond) => {
            let problem = Problem::new(
                StatusCode::RANGE_NOT_SATISFIABLE,
                "bad_range",
                "There is no such range",
            );
            let all = HeaderValue::from_str(&format!("bytes */{length}"));
            let all = all.map_err(|_| Problem::internal())?;
            let detail = format!("the blob has {length} bytes");
            return Err(problem.detail(detail).header(CONTENT_RANGE, all));
        }
    };
    let mut response = (status, part(file, from, to - from)?).into_response();
    let to_set = response.headers_mut();
    to_set.insert(ETAG, etag);
    to_set.insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    to_set.insert(CONTENT_LENGTH, HeaderValue::from(to - from));
    to_set.insert(ACCEPT_RANGES, HeaderValue::from_static("bytes"));
    // What a blob holds never changes: it is named by it.
    to_set.insert(
        CACHE_CONTROL,
        HeaderValue::from_static("private, max-age=31536000, immutable"),
    );
    let name = format!("attachment; filename=\"{sha256}\"");
    if let Ok(name) = HeaderValue::from_str(&name) {
        to_set.insert(CONTENT_DISPOSITION, name);
    }
    if status == StatusCode::PARTIAL_CONTENT
        && let Ok(range) = HeaderValue::from_str(&format!("bytes {from}-{}/{length}", to - 1))
    {
        to_set.insert(CONTENT_RANGE, range);
    }
    Ok(response)
}

fn part(mut file: std::fs::File, from: u64, length: u64) -> Result<Body, Problem> {
    if length == 0 {
        return Ok(Body::from(Bytes::new()));
    }
    file.seek(SeekFrom::Start(from)).map_err(Problem::store)?;
    Ok(file_body(file, length))
}

/// What a `Range` header means.
#[derive(Debug, PartialEq, Eq)]
enum Ranged {
    /// From one byte, up to another that is not among them.
    Part(u64, u64),
    /// Nothing of it is there.
    Beyond,
    /// It is not one range of bytes: the whole is given, as the standard says.
    Ignored,
}

fn ranged(text: &str, length: u64) -> Ranged {
    let Some(range) = text.trim().strip_prefix("bytes=") else {
        return Ranged::Ignored;
    };
    let Some((from, to)) = range.split_once('-') else {
        return Ranged::Ignored;
    };
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    let (from, to) = (from.trim(), to.trim());
    if !digits(from) || !digits(to) {
        return Ranged::Ignored;
    }
    match (from.parse::<u64>(), to.parse::<u64>()) {
        (Ok(from), Ok(to)) if from > to => Ranged::Ignored,
        (Ok(from), to) if from < length && (to.is_ok() || text.ends_with('-')) => {
            let end = to.map_or(length, |to| to.saturating_add(1).min(length));
            Ranged::Part(from, end)
        }
        (Ok(_), _) => Ranged::Beyond,
        (Err(_), Ok(last)) if from.is_empty() && last > 0 && length > 0 => {
            Ranged::Part(length.saturating_sub(last), length)
        }
        (Err(_), Ok(_)) if from.is_empty() => Ranged::Beyond,
        _ => Ranged::Ignored,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_read_as_the_standard_says() {
        let of = |text: &str| ranged(text, 10);
        assert_eq!(of("bytes=0-3"), Ranged::Part(0, 4));
        assert_eq!(of("bytes=4-"), Ranged::Part(4, 10));
        assert_eq!(of("bytes=8-99"), Ranged::Part(8, 10));
        assert_eq!(of("bytes=-3"), Ranged::Part(7, 10));
        assert_eq!(of("bytes=-99"), Ranged::Part(0, 10));
        assert_eq!(of("bytes=10-"), Ranged::Beyond);
        assert_eq!(of("bytes=-0"), Ranged::Beyond);
        for odd in [
            "bytes=5-4",
            "bytes=a-b",
            "lines=0-1",
            "bytes=0-1,3-4",
            "bytes=",
            "bytes=-",
            "bytes=+1-2",
        ] {
            assert_eq!(of(odd), Ranged::Ignored, "{odd}");
        }
    }
}
