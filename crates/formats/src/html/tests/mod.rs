//! Pages: what is in them, and what a browser makes of them.

mod browser;
pub(crate) mod fixture;
pub(crate) mod golden;
mod hostile;
mod seal;

use proptest::prelude::*;
use quipu_model::{Event, Header};
use serde_json::Value;

use super::{CARRIES, HtmlOptions, content, writer};
use crate::loss::{Field, Loss};
use crate::normalized;
use crate::projection::Nowhere;

/// The page of a session.
pub(super) fn page(header: &Header, events: &[Event], options: &HtmlOptions) -> (Vec<u8>, Loss) {
    let mut out = Vec::new();
    let mut writer = writer(header, options, Box::new(&mut out), Box::new(Nowhere)).unwrap();
    let harbour = fixture::harbour();
    for event in events {
        if event.annotations.attachments.contains(&harbour) {
            writer.blob(&harbour, fixture::HARBOUR).unwrap();
        }
        writer.event(event).unwrap();
    }
    let loss = writer.finish().unwrap();
    (out, loss)
}

fn transcript(header: &Header, events: &[Event]) -> Vec<u8> {
    let options = normalized::NormalizedOptions::default();
    let mut writer = normalized::Writer::new(header, &options, Vec::new()).unwrap();
    for event in events {
        writer.write(event, &normalized::Beyond::default()).unwrap();
    }
    writer.end().unwrap().1
}

#[test]
fn the_page_of_a_session_is_the_same_as_ever() {
    let (header, events) = fixture::session();
    let (page, loss) = page(&header, &events, &HtmlOptions::default());
    golden::check(
        "src/html/tests/golden/session.html",
        &crate::html::page::without_assets(&page),
    );
    assert_eq!(loss.events, events.len() as u64);
    assert_eq!(loss.carried, loss.events);
    assert!(loss.is_complete(), "the picture is in the page: {loss}");
    assert_eq!(CARRIES.len(), Field::ALL.len());
}

#[test]
fn a_page_gives_back_its_transcript_and_its_pictures() {
    let (header, events) = fixture::session();
    let (page, _) = page(&header, &events, &HtmlOptions::default());
    let read = content(&page).unwrap();
    let value = |bytes: &[u8]| serde_json::from_slice::<Value>(bytes).unwrap();
    assert_eq!(
        value(&read.transcript),
        value(&transcript(&header, &events))
    );
    let [image] = read.images.as_slice() else {
        panic!("one picture: {:?}", read.images.len())
    };
    assert_eq!(image.sha256, fixture::harbour().sha256);
    assert_eq!(
        (image.mime, image.bytes.as_slice()),
        ("image/png", fixture::HARBOUR)
    );
}

#[test]
fn a_page_reads_back_as_the_session_it_shows() {
    let (header, events) = fixture::session();
    let (page, _) = page(&header, &events, &HtmlOptions::default());
    let mut read = Vec::new();
    let found = normalized::read(normalized::embedded(&page[..]), &mut |event| {
        read.push(event);
    });
    assert_eq!(found.unwrap().header, header);
    assert_eq!(read.len(), events.len());
    // Values of tools are texts of JSON, in which our escapes stay; they say the same.
    let value =
        |events: &[Event]| serde_json::from_slice::<Value>(&transcript(&header, events)).unwrap();
    assert_eq!(value(&read), value(&events));
}

#[test]
fn what_has_no_place_is_counted() {
    let (header, events) = fixture::session();
    let options = HtmlOptions {
        without_images: true,
        ..HtmlOptions::default()
    };
    let (page, loss) = page(&header, &events, &options);
    assert_eq!(loss.dropped["attachment bytes"].count, 1);
    assert!(content(&page).unwrap().images.is_empty());
}

#[test]
fn the_title_is_text() {
    let (mut header, _) = fixture::session();
    header.title = Some("</title><script>alert(1)</script>\u{202e}\n\"&".to_owned());
    let (page, _) = page(&header, &[], &HtmlOptions::default());
    let text = String::from_utf8(page).unwrap();
    let title =
        "<title>&lt;/title&gt;&lt;script&gt;alert(1)&lt;/script&gt;\\u{202e} &quot;&amp;</title>";
    assert!(text.contains(title), "{}", &text[..600]);
    let options = HtmlOptions {
        title: Some("Another".to_owned()),
        ..HtmlOptions::default()
    };
    let (page, _) = super::tests::page(&header, &[], &options);
    assert!(
        String::from_utf8(page)
            .unwrap()
            .contains("<title>Another</title>")
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn nothing_that_is_said_ends_its_block((header, events) in crate::arbitrary::session()) {
        let (page, loss) = page(&header, &events, &HtmlOptions::default());
        let text = String::from_utf8(page.clone()).unwrap();
        prop_assert_eq!(text.matches("<script").count(), 3);
        prop_assert_eq!(text.matches("</script").count(), 3);
        prop_assert!(loss.carried <= loss.events);
        let read = content(&page).unwrap();
        prop_assert_eq!(
            String::from_utf8(read.transcript).unwrap(),
            String::from_utf8(transcript(&header, &events)).unwrap()
        );
    }
}
