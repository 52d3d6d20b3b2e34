//! One page to hand to a person.
//!
//! A single HTML file: the normalized transcript as JSON, and a script of our own that draws it. It opens from disk,
//! asks nothing of any network, and gives the JSON back. The text of a session never becomes HTML: it is data in a
//! block that is not run, and the script makes text nodes of it.
//!
//! ```text
//! <!doctype html> … Content-Security-Policy: nothing but this style and this script, by their hashes
//! <script type="application/json" id="quipu-transcript">{"schemaVersion": …}</script>
//! <script type="application/json" id="quipu-images">{"<sha256>": "data:image/png;base64,…"}</script>
//! <script>…</script>
//! ```
//!
//! With a passphrase, both blocks are sealed (`seal.rs`), and nothing of the session is in the file in clear.
//!
//! **Threats:** a session holds what web pages, tools and models said. The JSON has no `<` (`escape.rs`), so no text
//! ends its block. The script uses no sink that takes HTML, and the policy of the page forbids such sinks, other
//! scripts, other styles, forms, and everything that is loaded. Pictures are only shown when their bytes are those
//! of a JPEG, PNG, GIF or WebP; an SVG is a document, not a picture.
//!
//! [`content`] reads a page back, [`decrypt`] one that is sealed. `docs/formats/html.md` has the rest.

mod escape;
mod images;
mod page;
mod read;
mod seal;

#[cfg(test)]
pub(crate) mod tests;

pub use page::{MODULES, Module, STYLE};
pub use read::{Content, Image, PageError, content, decrypt, is_sealed};
pub use seal::{ITERATIONS, Passphrase, Seal};

use std::io::{self, Write};

use quipu_model::{Attachment, Event, Header};

use self::escape::Escape;
use self::images::Images;
use self::seal::Sealer;
use crate::loss::{Field, Loss};
use crate::normalized::{self, Beyond};
use crate::projection::{Beside, Projection};

/// What the page has a place for: whatever the normalized transcript has.
pub const CARRIES: &[Field] = normalized::CARRIES;

/// What is written.
#[derive(Debug, Clone, Default)]
pub struct HtmlOptions {
    /// The name of the page, in place of the session's title.
    pub title: Option<String>,
    /// What the page is sealed with; without it, it is open.
    pub seal: Option<Seal>,
    /// Whether pictures are left out.
    pub without_images: bool,
    /// What the transcript in the page says beside what happened.
    pub transcript: normalized::NormalizedOptions,
}

impl HtmlOptions {
    /// Whether nothing is asked for but the page.
    pub fn is_plain(&self) -> bool {
        self.title.is_none()
            && self.seal.is_none()
            && !self.without_images
            && self.transcript == normalized::NormalizedOptions::default()
    }
}

/// Writes a page.
///
/// # Errors
///
/// Those of whatever is written to.
pub fn writer<'w>(
    header: &Header,
    options: &HtmlOptions,
    mut out: Box<dyn Write + 'w>,
    _beside: Box<dyn Beside + 'w>,
) -> io::Result<Box<dyn Projection + 'w>> {
    let mut head = Vec::new();
    let title = match (&options.seal, &options.title) {
        // What it is called may tell what it is about.
        (Some(_), _) => "A sealed session".to_owned(),
        (None, Some(title)) => crate::text::clean_line(title).into_owned(),
        (None, None) => crate::text::title(header),
    };
    page::begin(&mut head, &title);
    let block = match &options.seal {
        None => {
            page::open_block(&mut head, page::TRANSCRIPT);
            Block::Open(Escape::new(out))
        }
        Some(seal) => {
            page::block(&mut head, page::SEALED, seal.describe().as_bytes());
            page::open_block(&mut head, page::SEALED_TRANSCRIPT);
            out.write_all(&head)?;
            head.clear();
            Block::Sealed(Box::new(Sealer::new(seal, out)))
        }
    };
    let mut block = block;
    block.out().write_all(&head)?;
    let mut header = header.clone();
    if let Some(title) = &options.title {
        header.title = Some(title.clone());
    }
    Ok(Box::new(Page {
        transcript: normalized::Writer::new(&header, &options.transcript, block)?,
        images: Images::new(!options.without_images),
        missing: Vec::new(),
    }))
}

/// An open page around a transcript that is a document already: what is written to it stands in the page with the values
/// that it has.
pub struct Around<'w>(Block<'w>);

impl<'w> Around<'w> {
    /// Begins the page.
    ///
    /// # Errors
    ///
    /// Those of whatever is written to.
    pub fn begin(header: &Header, out: impl Write + 'w) -> io::Result<Self> {
        let mut out: Box<dyn Write + 'w> = Box::new(out);
        let mut head = Vec::new();
        page::begin(&mut head, &crate::text::title(header));
        page::open_block(&mut head, page::TRANSCRIPT);
        out.write_all(&head)?;
        Ok(Self(Block::Open(Escape::new(out))))
    }

    /// Ends the page, in which there are no pictures.
    ///
    /// # Errors
    ///
    /// Those of whatever is written to.
    pub fn end(mut self) -> io::Result<()> {
        self.0.next()?;
        Images::new(false).write(&mut self.0)?;
        self.0.end()
    }
}

impl Write for Around<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl std::fmt::Debug for Around<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Around").finish_non_exhaustive()
    }
}

/// What the two blocks of a page are written through.
enum Block<'w> {
    Open(Escape<Box<dyn Write + 'w>>),
    Sealed(Box<Sealer<Box<dyn Write + 'w>>>),
}

impl<'w> Block<'w> {
    /// What is below, for what stands between the blocks.
    fn out(&mut self) -> &mut Box<dyn Write + 'w> {
        match self {
            Self::Open(escape) => escape.get_mut(),
            Self::Sealed(sealer) => sealer.get_mut(),
        }
    }

    /// Ends one block and begins the next, whose name is for an open or a sealed page.
    fn next(&mut self) -> io::Result<()> {
        let mut between = Vec::new();
        let name = match self {
            Self::Open(escape) => {
                escape.end();
                page::IMAGES
            }
            Self::Sealed(sealer) => {
                sealer.end()?;
                page::SEALED_IMAGES
            }
        };
        page::close_block(&mut between);
        page::open_block(&mut between, name);
        self.out().write_all(&between)
    }

    fn end(&mut self) -> io::Result<()> {
        match self {
            Self::Open(escape) => escape.end(),
            Self::Sealed(sealer) => sealer.end()?,
        }
        let mut tail = Vec::new();
        page::close_block(&mut tail);
        page::end(&mut tail);
        self.out().write_all(&tail)?;
        self.out().flush()
    }
}

impl Write for Block<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Open(escape) => escape.write(bytes),
            Self::Sealed(sealer) => sealer.write(bytes),
        }
    }

    /// Nothing: what is below is flushed when the page ends.
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

struct Page<'w> {
    transcript: normalized::Writer<Block<'w>>,
    images: Images,
    /// The events with attachments, and the hashes of those.
    missing: Vec<(u64, String)>,
}

impl Projection for Page<'_> {
    fn blob(&mut self, attachment: &Attachment, bytes: &[u8]) -> io::Result<()> {
        self.images.take(&attachment.sha256, bytes);
        Ok(())
    }

    fn event(&mut self, event: &Event) -> io::Result<()> {
        self.event_and_more(event, &Beyond::default())
    }

    fn takes_more(&self) -> bool {
        true
    }

    fn event_and_more(&mut self, event: &Event, more: &Beyond) -> io::Result<()> {
        for attachment in event.blobs() {
            if !self.images.has(&attachment.sha256) {
                self.missing.push((event.seq, attachment.sha256.clone()));
            }
        }
        self.transcript.write(event, more)
    }

    fn finish(self: Box<Self>) -> io::Result<Loss> {
        let (mut loss, mut block) = self.transcript.end()?;
        block.next()?;
        self.images.write(&mut block)?;
        block.end()?;
        // The transcript has no place for bytes; the page has one for pictures.
        loss.dropped.remove(ATTACHMENT_BYTES);
        for (seq, sha256) in &self.missing {
            if !self.images.has(sha256) {
                loss.dropped(ATTACHMENT_BYTES, *seq);
            }
        }
        Ok(loss)
    }
}

/// Under this name bytes are counted that are not carried.
const ATTACHMENT_BYTES: &str = "attachment bytes";
