//! Pages in a real browser, where there is one.

use quipu_browser::Chromium;

use super::{fixture, hostile, page};
use crate::html::{HtmlOptions, Passphrase, Seal};

/// The entries of the session are drawn.
const DRAWN: &str = "document.querySelector('[id^=\"ev-\"]')";

#[test]
fn a_page_is_drawn_and_asks_for_nothing() {
    let Some(browser) = Chromium::find() else {
        return;
    };
    let (header, events) = fixture::session();
    let (page, _) = page(&header, &events, &HtmlOptions::default());
    let shown = [
        "<h1>Departures an hour off after the clock change</h1>",
        "id=\"ev-3\"",
        "<span class=\"told\">npm test -- --reporter=dot",
        "✕ failed",
        "⊘ denied",
        "◔ timed out",
        "2 h 25 min later",
        "class=\"line add\"",
        "src=\"data:image/png;base64,",
        "<strong>calendar and the clock</strong>",
        "Sub-agent <code>a7f31c</code>",
    ];
    // Entries further down are drawn when nothing else is to do.
    let drawn = format!(
        "{}.every((it) => document.documentElement.outerHTML.includes(it))",
        serde_json::json!(shown)
    );
    let seen = browser.open(&page, "", &drawn);
    assert_eq!(seen.console, [""; 0]);
    assert_eq!(seen.requests, [""; 0]);
    assert!(!seen.has("Reading the session"));
}

/// One attached as a note of its own, before and behind its message; small ones inside of a result.
#[test]
fn pictures_are_shown_where_they_were_given() {
    let Some(browser) = Chromium::find() else {
        return;
    };
    let tiny = "R0lGODlhAQABAIAAAAAAAP///yH5BAEAAAAALAAAAAABAAEAAAIBRAA7";
    let svg = "PHN2ZyB4bWxucz0iaHR0cDovL3d3dy53My5vcmcvMjAwMC9zdmciLz4=";
    let part = |data: &str| serde_json::json!({"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": data}});
    let at = "2026-03-17T09:12:05Z";
    let lines = [
        serde_json::json!({"at": at, "kind": "user", "text": "Behind.", "native": "a"}),
        serde_json::json!({"at": at, "kind": "note", "note": "attachment", "text": "image/png", "native": "a", "attachments": []}),
        serde_json::json!({"at": at, "kind": "call", "tool": "Look", "id": "c", "input": {"old_string": "a", "new_string": "b"}}),
        serde_json::json!({"at": at, "kind": "result", "tool": "Look", "id": "c", "output": [{"type": "text", "text": "One, and no other:"}, part(tiny), part(svg)]}),
        serde_json::json!({"at": at, "kind": "note", "note": "attachment", "text": "image/png", "native": "b", "attachments": []}),
        serde_json::json!({"at": at, "kind": "user", "text": "Before.", "native": "b"}),
        serde_json::json!({"at": at, "kind": "note", "note": "attachment", "text": "image/png", "native": "c", "attachments": []}),
    ];
    let (header, _) = fixture::session();
    let lines = lines.map(|line| line.to_string()).join("\n");
    let events = fixture::events(&header.run_id, &lines);
    let (page, _) = page(&header, &events, &HtmlOptions::default());
    let seen = browser.open(&page, "", DRAWN);
    assert_eq!(seen.console, [""; 0]);
    let entries: Vec<&str> = seen.dom.split("<article").skip(1).collect();
    let shown = |entry: &str| entry.matches("<img src=\"data:image/").count();
    assert_eq!(entries.len(), 4, "two are in their messages");
    for (entry, said) in [(0, "Behind."), (2, "Before."), (3, "attachment")] {
        assert!(entries[entry].contains(said), "{}", entries[entry]);
        assert_eq!(shown(entries[entry]), 1, "{said}");
    }
    assert!(entries[1].contains(&format!("<img src=\"data:image/gif;base64,{tiny}\"")));
    assert_eq!(shown(entries[1]), 1, "by its bytes, not by what it says");
    assert!(entries[1].contains(">One, and no other:") && entries[1].contains(svg));
}

/// The search says how many it found.
fn found_text(text: &str) -> String {
    format!("document.querySelector('output')?.textContent === '{text}'")
}

#[test]
fn a_search_finds_what_is_folded() {
    let Some(browser) = Chromium::find() else {
        return;
    };
    let (header, events) = fixture::session();
    let (page, _) = page(&header, &events, &HtmlOptions::default());
    // In the output of a tool that is folded at first, behind what is shown of it at first.
    let seen = browser.open(&page, "#q=Departure[]", &found_text("1/1"));
    assert_eq!(seen.console, [""; 0]);
    let from = seen.dom.find("id=\"ev-10\"").unwrap();
    let entry = &seen.dom[from..from + seen.dom[from..].find("</article>").unwrap()];
    assert!(entry.contains("<details class=\"fold\" open"), "{entry}");
    assert!(entry.contains("private on(from: Harbour"), "{entry}");
    assert!(seen.has("is-current-match\" id=\"ev-10\""));
    let found = ">1/1</output>";
    assert!(
        seen.has(found),
        "{}",
        &seen.dom[seen.dom.find("<output").unwrap()..][..200]
    );
    let seen = browser.open(&page, "#q=nowhere%20at%20all", &found_text("none"));
    assert!(seen.has(">none</output>") && !seen.has("is-current-match\" id="));
}

#[test]
fn a_link_to_an_entry_goes_there() {
    let Some(browser) = Chromium::find() else {
        return;
    };
    let (header, events) = fixture::session();
    let (page, _) = page(&header, &events, &HtmlOptions::default());
    // The number of a result is that of the entry of its call.
    let seen = browser.open(
        &page,
        "#ev-25",
        "document.querySelector('#ev-24.is-current')",
    );
    assert_eq!(seen.console, [""; 0]);
    let from = seen.dom.find("id=\"ev-24\"").unwrap();
    let tag = &seen.dom[seen.dom[..from].rfind('<').unwrap()..from];
    assert!(tag.contains("is-current"), "{tag}");
}

#[test]
fn hostile_text_in_every_field_is_text() {
    let Some(browser) = Chromium::find() else {
        return;
    };
    let (header, events) = hostile::session();
    let options = HtmlOptions::default();
    let (page, _) = page(&header, &events, &options);
    for hash in ["", "#q=%3Cscript", "#ev-<img src=x onerror=alert(1)>"] {
        let seen = browser.open(&page, hash, DRAWN);
        assert_eq!(seen.console, [""; 0], "{hash}");
        assert_eq!(seen.requests, [""; 0], "{hash}");
        assert!(!seen.is_marked(), "{hash}");
        for tag in [
            "<svg",
            "<iframe",
            "<object",
            "<embed",
            "<video",
            "<base",
            "href=\"javascript",
            "href=\"data",
            "src=\"http",
        ] {
            assert!(!seen.has(tag), "{hash}: {tag}");
        }
        assert!(seen.has("&lt;script&gt;"), "{hash}: shown as text");
        for mark in ["⟨RLO⟩", "⟨ZWSP⟩", "␀", "␛]0;owned␇"] {
            assert!(seen.has(mark), "{hash}: {mark}");
        }
    }
}

/// What the test above would see if it were not so.
#[test]
fn a_page_that_is_not_careful_is_noticed() {
    let Some(browser) = Chromium::find() else {
        return;
    };
    let page = format!("<!doctype html><html lang=en><body>{}", hostile::HTML);
    let seen = browser.open(
        page.as_bytes(),
        "",
        "document.documentElement.dataset.pwned",
    );
    assert!(seen.is_marked());
    assert!(!seen.requests.is_empty());
    assert!(!seen.console.is_empty());
}

#[test]
fn a_sealed_page_asks_for_its_passphrase() {
    let Some(browser) = Chromium::find() else {
        return;
    };
    let (header, events) = fixture::session();
    let options = HtmlOptions {
        seal: Some(Seal {
            passphrase: Passphrase::new("knots on a cord"),
            salt: [7; 16],
            nonce: [9; 12],
        }),
        ..HtmlOptions::default()
    };
    let (page, _) = page(&header, &events, &options);
    let seen = browser.open(
        &page,
        "",
        "document.querySelector('h1')?.textContent === 'This session is sealed'",
    );
    assert_eq!(seen.console, [""; 0]);
    assert!(seen.has("<h1>This session is sealed</h1>") && !seen.has("Departures"));
}
