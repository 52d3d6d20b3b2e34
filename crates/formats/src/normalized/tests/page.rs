//! The transcript inside a page.

use std::io::Read as _;

use crate::normalized::page::{CLOSE, OPEN};
use crate::normalized::{NormalizedError, embedded, read};

const DOCUMENT: &str = r#"{"schemaVersion":"0.1.0","events":[{"seq":1,"type":"user_message","text":"a \u003c/script> b"}]}"#;

fn page(before: &str) -> Vec<u8> {
    let mut page = format!("<!doctype html><script>var a = '<b>';</script>{before}").into_bytes();
    page.extend_from_slice(OPEN);
    page.extend_from_slice(DOCUMENT.as_bytes());
    page.extend_from_slice(CLOSE);
    page.extend_from_slice(b"><p>after</p></html>");
    page
}

/// Gives so many bytes at a time.
struct Drip<'a>(&'a [u8], usize);

impl std::io::Read for Drip<'_> {
    fn read(&mut self, to: &mut [u8]) -> std::io::Result<usize> {
        let n = self.1.min(to.len()).min(self.0.len());
        let (now, later) = self.0.split_at(n);
        to[..n].copy_from_slice(now);
        self.0 = later;
        Ok(n)
    }
}

#[test]
fn the_transcript_is_found_however_the_page_comes() {
    for before in ["", &"<i>x</i>".repeat(20_000)] {
        let page = page(before);
        for piece in [1, 2, 7, 53, 54, 55, 4096, 1 << 20] {
            if before.len() > 1000 && piece < 50 {
                continue;
            }
            let mut found = String::new();
            embedded(Drip(&page, piece))
                .read_to_string(&mut found)
                .unwrap();
            assert_eq!(found, DOCUMENT);
        }
        let mut texts = Vec::new();
        let result = read(embedded(&page[..]), &mut |event| {
            texts.extend(event.body.texts().map(str::to_owned));
        });
        assert_eq!(result.unwrap().events, 1);
        assert_eq!(texts, ["a </script> b"]);
    }
}

#[test]
fn a_page_without_one_says_so() {
    let fails = |page: &[u8]| read(embedded(page), &mut |_| {}).unwrap_err();
    assert!(matches!(
        fails(b"<p>nothing</p>"),
        NormalizedError::NoTranscript
    ));
    assert!(matches!(fails(b""), NormalizedError::NoTranscript));
    let sealed = br#"<script type="application/json" id="quipu-sealed">{"salt":"x"}</script>"#;
    let error = fails(sealed);
    assert!(matches!(error, NormalizedError::Sealed));
    assert!(error.to_string().contains("passphrase"));
    // A page whose own script speaks of sealed pages is not sealed.
    let speaks = page("<script>text(\"quipu-sealed\")</script>");
    assert!(read(embedded(&speaks[..]), &mut |_| {}).is_ok());
    let cut = page("");
    let end = cut.len() - b"</script><p>after</p></html>".len();
    assert!(matches!(fails(&cut[..end]), NormalizedError::PageCut));
}
