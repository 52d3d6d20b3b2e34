//! A page, read back.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use memchr::memmem;

use super::escape::restore;
use super::images::sniff;
use super::page;
use super::seal::{Described, Opener, Passphrase};

/// What a page holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Content {
    /// The normalized transcript, as JSON.
    pub transcript: Vec<u8>,
    /// The pictures.
    pub images: Vec<Image>,
}

/// A picture of a page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Image {
    /// The hash by which events refer to it, as the page says.
    pub sha256: String,
    /// What it is, by its bytes.
    pub mime: &'static str,
    /// Its bytes.
    pub bytes: Vec<u8>,
}

/// Why a page cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum PageError {
    /// It has no block for a transcript.
    #[error("not a page with a transcript")]
    NotAPage,
    /// It opens with a passphrase.
    #[error("the page is sealed: it opens with its passphrase")]
    Sealed,
    /// It was sealed in a way that is not known here.
    #[error("the page is sealed in a way that is not known")]
    UnknownSeal,
    /// The passphrase is another, or the page was changed.
    #[error("not the passphrase of the page, or the page was changed")]
    NotOpened,
}

/// Whether a page is sealed.
pub fn is_sealed(page: &[u8]) -> bool {
    block(page, page::SEALED).is_some()
}

/// What an open page holds.
pub fn content(page: &[u8]) -> Result<Content, PageError> {
    let Some(transcript) = block(page, page::TRANSCRIPT) else {
        return Err(if is_sealed(page) {
            PageError::Sealed
        } else {
            PageError::NotAPage
        });
    };
    let images = block(page, page::IMAGES).unwrap_or_default();
    Ok(Content {
        transcript: restore(transcript),
        images: self::images(images),
    })
}

/// What a sealed page holds.
pub fn decrypt(page: &[u8], passphrase: &Passphrase) -> Result<Content, PageError> {
    let described = block(page, page::SEALED).ok_or(PageError::NotAPage)?;
    let described: Described =
        serde_json::from_slice(described).map_err(|_| PageError::UnknownSeal)?;
    let opener = Opener::new(&described, passphrase).ok_or(PageError::UnknownSeal)?;
    let open = |stream, id| {
        let lines = block(page, id).and_then(|lines| std::str::from_utf8(lines).ok());
        let lines = lines.ok_or(PageError::NotAPage)?;
        opener.open(stream, lines).ok_or(PageError::NotOpened)
    };
    let transcript = open(0, page::SEALED_TRANSCRIPT)?;
    let images = open(1, page::SEALED_IMAGES)?;
    Ok(Content {
        transcript,
        images: self::images(&images),
    })
}

/// The text of a block, as it stands there.
fn block<'p>(page: &'p [u8], id: &str) -> Option<&'p [u8]> {
    let opening = page::opening(id);
    let from = memmem::find(page, opening.as_bytes())? + opening.len();
    let length = memmem::find(&page[from..], b"</script>")?;
    Some(&page[from..from + length])
}

/// The pictures of a block; what is no picture is passed over.
fn images(block: &[u8]) -> Vec<Image> {
    let held: std::collections::BTreeMap<String, String> =
        serde_json::from_slice(block).unwrap_or_default();
    let image = |(sha256, url): (String, String)| {
        let (_, text) = url.strip_prefix("data:")?.split_once(";base64,")?;
        let bytes = STANDARD.decode(text).ok()?;
        Some(Image {
            sha256,
            mime: sniff(&bytes)?,
            bytes,
        })
    };
    held.into_iter().filter_map(image).collect()
}
