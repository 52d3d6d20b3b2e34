//! Normalized transcripts: the document in which sessions are shared, whichever agent they are of.
//!
//! What stands in one is known to `quipu_formats::normalized`, which also writes them; here its events become
//! entries, so that a transcript from elsewhere is searched and priced like a log of one's own. There is no
//! `wire.rs` for that reason. A document may be of any length: it is read in parts.
//!
//! Pages that hold such a document are another dialect of the same: the document is taken out as the page comes.

mod discover;
mod normalize;

#[cfg(test)]
mod tests;

pub(crate) use normalize::{entry, part};

use crate::{Dialect, Family, Framing, Origin, Reader};

/// See the module.
pub(crate) struct Normalized;

/// The dialect of transcripts by themselves, for whoever reads them in another way than as a log.
pub const NORMALIZED: &str = "normalized";

/// The dialect of pages with a transcript in them.
pub const NORMALIZED_PAGE: &str = "normalized-page";

pub(crate) const TRANSCRIPT: Dialect = Dialect::framed(NORMALIZED, "quipu", Framing::Parts);

/// The same, in a page that Quipu wrote.
pub(crate) const PAGE: Dialect = Dialect::framed(NORMALIZED_PAGE, "quipu", Framing::Page);

impl Family for Normalized {
    // It has no places: transcripts lie wherever someone put them.
    crate::family::known!("normalized", [TRANSCRIPT, PAGE]);

    fn open(
        &self,
        _dialect: &Dialect,
        _origin: &Origin<'_>,
        saved: Option<&[u8]>,
    ) -> Option<Box<dyn Reader>> {
        // Documents are read as a whole each time, so that there is nothing to go on from.
        match saved {
            Some(_) => None,
            None => Some(Box::new(normalize::Transcript::default())),
        }
    }
}
