//! What kind of file some bytes are.

pub use quipu_formats::agentlog::inline::is_mime;

/// The MIME type that bytes show by how they begin; `None` when nothing tells.
///
/// ```
/// use quipu_store::blobs::mime;
///
/// assert_eq!(mime::sniff(b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR"), Some("image/png"));
/// assert_eq!(mime::sniff(b"once upon a time"), None);
/// assert_eq!(mime::of(b"once upon a time"), "text/plain");
/// ```
pub fn sniff(bytes: &[u8]) -> Option<&'static str> {
    infer::get(bytes).map(|kind| kind.mime_type())
}

/// The MIME type of bytes that nothing else is said of: what they show, else plain text where they are
/// text, else no more than that they are bytes.
pub fn of(bytes: &[u8]) -> &'static str {
    sniff(bytes).unwrap_or(if is_text(bytes) {
        "text/plain"
    } else {
        "application/octet-stream"
    })
}

/// The type to put down for bytes that somebody says to be of the type `said`. What the bytes show counts
/// more: a wrong word would make a program fail that believes it.
pub fn settle(bytes: &[u8], said: Option<&str>) -> String {
    match (sniff(bytes), said) {
        (Some(shown), _) => shown.to_owned(),
        (None, Some(said)) if is_mime(said) => said.to_owned(),
        (None, _) => of(bytes).to_owned(),
    }
}

/// Text that has no control characters but those of lines and tabs. A character may be cut off at the end.
fn is_text(bytes: &[u8]) -> bool {
    let text = match std::str::from_utf8(bytes) {
        Ok(text) => text,
        Err(error) if error.error_len().is_none() => {
            std::str::from_utf8(&bytes[..error.valid_up_to()]).unwrap_or_default()
        }
        Err(_) => return false,
    };
    !text.is_empty() && !text.contains(|c: char| c.is_control() && !matches!(c, '\n' | '\r' | '\t'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_bytes_show_counts_more_than_what_is_said() {
        let png = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR";
        assert_eq!(settle(png, Some("image/jpeg")), "image/png");
        assert_eq!(settle(b"{}", Some("application/json")), "application/json");
        assert_eq!(settle(b"{}", Some("not a type")), "text/plain");
        assert_eq!(settle(b"\0\x01", None), "application/octet-stream");
    }

    #[test]
    fn kinds_are_told_by_their_first_bytes() {
        let kinds: [(&[u8], &str); 8] = [
            (b"GIF89a\x01\0\x01\0", "image/gif"),
            (b"\xff\xd8\xff\xe0\0\x10JFIF", "image/jpeg"),
            (b"RIFF\x24\0\0\0WEBPVP8 ", "image/webp"),
            (b"RIFF\x24\0\0\0WAVEfmt ", "audio/x-wav"),
            (b"%PDF-1.7\n", "application/pdf"),
            (b"\x1f\x8b\x08\0", "application/gzip"),
            ("h\u{e9}llo\n".as_bytes(), "text/plain"),
            (b"", "application/octet-stream"),
        ];
        for (bytes, mime) in kinds {
            assert_eq!(of(bytes), mime);
        }
    }

    #[test]
    fn the_form_of_a_type() {
        for right in [
            "image/png",
            "text/plain; charset=utf-8",
            "application/vnd.x+json",
        ] {
            assert!(is_mime(right), "{right}");
        }
        for wrong in ["", "png", "/png", "image/", "image/p ng", "image/\u{1b}"] {
            assert!(!is_mime(wrong), "{wrong}");
        }
    }
}
