//! The document inside a page, taken out as its bytes come.

use memchr::{memchr, memmem};

/// What stands before the document in a page that Quipu wrote.
pub(crate) const OPEN: &[u8] = b"<script type=\"application/json\" id=\"quipu-transcript\">";

/// Where in a page the bytes at hand are.
#[derive(Debug, Default)]
pub(super) struct Page {
    state: State,
    /// The end of what was looked at: the mark may be cut in two.
    held: Vec<u8>,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum State {
    #[default]
    Before,
    Inside,
    Behind,
}

impl Page {
    /// What of these bytes is the document's.
    pub(super) fn take<'b>(&mut self, bytes: &'b [u8]) -> &'b [u8] {
        let inside = match self.state {
            State::Behind => return &[],
            State::Inside => bytes,
            State::Before => match self.begin(bytes) {
                Some(inside) => inside,
                None => return &[],
            },
        };
        // In the document every `<` is escaped.
        match memchr(b'<', inside) {
            Some(end) => {
                self.state = State::Behind;
                &inside[..end]
            }
            None => inside,
        }
    }

    fn begin<'b>(&mut self, bytes: &'b [u8]) -> Option<&'b [u8]> {
        let before = self.held.len();
        self.held.extend_from_slice(bytes);
        if let Some(at) = memmem::find(&self.held, OPEN) {
            self.state = State::Inside;
            self.held = Vec::new();
            return Some(&bytes[at + OPEN.len() - before..]);
        }
        let keep = self.held.len().min(OPEN.len() - 1);
        self.held.drain(..self.held.len() - keep);
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_document_is_the_same_however_the_page_is_cut() {
        let page = [
            b"<!doctype html><script>1 < 2</script>".as_slice(),
            OPEN,
            b"{\"a\":\"\\u003C\"}",
            b"</script><p>",
        ]
        .concat();
        for size in 1..page.len() {
            let mut taking = Page::default();
            let taken: Vec<u8> = page
                .chunks(size)
                .flat_map(|piece| taking.take(piece).to_vec())
                .collect();
            assert_eq!(
                String::from_utf8(taken).unwrap(),
                "{\"a\":\"\\u003C\"}",
                "{size}"
            );
        }
    }
}
