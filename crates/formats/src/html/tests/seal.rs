//! Sealed pages.

use super::{fixture, golden, page, transcript};
use crate::html::{HtmlOptions, PageError, Passphrase, Seal, content, decrypt, is_sealed};

fn sealed() -> HtmlOptions {
    HtmlOptions {
        seal: Some(Seal {
            passphrase: Passphrase::new("knots on a cord"),
            salt: *b"0123456789abcdef",
            nonce: *b"fedcba987654",
        }),
        ..HtmlOptions::default()
    }
}

#[test]
fn a_sealed_page_opens_with_its_passphrase_alone() {
    let (header, events) = fixture::session();
    let (page, loss) = page(&header, &events, &sealed());
    assert!(loss.is_complete());
    let bare = crate::html::page::without_assets(&page);
    golden::check("src/html/tests/golden/sealed.html", &bare);
    assert!(is_sealed(&page));
    let text = String::from_utf8_lossy(&page);
    for said in ["Departures", "ferry", "/ada/", "Lisbon", "claude-opus"] {
        assert!(!text.contains(said), "{said}");
    }
    assert!(text.contains("<title>A sealed session</title>"));
    assert!(matches!(content(&page), Err(PageError::Sealed)));
    let opened = decrypt(&page, &Passphrase::new("knots on a cord")).unwrap();
    assert_eq!(opened.transcript, transcript(&header, &events));
    assert_eq!(opened.images[0].bytes, fixture::HARBOUR);
    let wrong = decrypt(&page, &Passphrase::new("knots on a chord"));
    assert!(matches!(wrong, Err(PageError::NotOpened)));
}

#[test]
fn a_page_that_was_changed_does_not_open() {
    let (header, mut events) = fixture::session();
    // More than a piece.
    for (n, event) in events.clone().into_iter().cycle().take(9000).enumerate() {
        events.push(quipu_model::Event {
            seq: events[0].seq + n as u64,
            ..event
        });
    }
    let (page, _) = page(&header, &events, &sealed());
    let passphrase = Passphrase::new("knots on a cord");
    let text = String::from_utf8(page.clone()).unwrap();
    let from = text.find("id=\"quipu-sealed-transcript\">").unwrap() + 29;
    let to = from + text[from..].find("</script>").unwrap();
    let lines: Vec<&str> = text[from..to].lines().collect();
    assert!(lines.len() > 2, "{} pieces", lines.len());
    let with = |lines: &[&str]| {
        let page = [&text[..from], &lines.join("\n"), "\n", &text[to..]].concat();
        decrypt(page.as_bytes(), &passphrase)
    };
    assert_eq!(
        with(&lines).unwrap().transcript,
        transcript(&header, &events)
    );
    let mut turned = lines.clone();
    turned.swap(0, 1);
    let cut = &lines[..lines.len() - 1];
    let again = [&lines[..1], &lines[..]].concat();
    for lines in [turned.as_slice(), cut, &again, &[]] {
        assert!(matches!(with(lines), Err(PageError::NotOpened)));
    }
    // A page that would keep the machine busy for ever.
    let greedy = text.replace("\"iterations\":600000", "\"iterations\":4000000000");
    assert!(matches!(
        decrypt(greedy.as_bytes(), &passphrase),
        Err(PageError::UnknownSeal)
    ));
}

#[test]
fn a_passphrase_is_not_shown_and_may_be_composed_either_way() {
    let shown = format!("{:?}", sealed());
    assert!(!shown.contains("knots"), "{shown}");
    assert_eq!(Passphrase::new("caf\u{e9}"), Passphrase::new("cafe\u{301}"));
}
