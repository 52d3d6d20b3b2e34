use insta::assert_snapshot;

use crate::testkit::{hostile, read};

const CHAT: &str = "\n# aider chat started at 2026-01-02 03:04:05\n\n> aider --model m  \n> Git repo: .git with 2 files  \n\n#### add a retry  \n#### and a test  \n\nI will.\n\n#### Step 1\n\nWrap the call.\n\n> a quotation\n\n> Tokens: 2.5k sent, 120 received.  \n> Applied edit to a.py  \n> Commit 1234567 feat: retry  \n\n# aider chat started at 2026-01-03 03:04:05\n\n#### thanks  \n";

#[test]
fn a_chat() {
    let read = read(CHAT.as_bytes(), "/code/repo/.aider.chat.history.md").unwrap();
    assert_snapshot!(read.lines());
    assert_eq!(read.session.cwd.as_deref(), Some("/code/repo"));
    assert!(read.session.id.is_some());
    // The same chat is known again when it has grown.
    let begun = &CHAT[..CHAT.find("I will").unwrap()];
    let begun = crate::testkit::read(begun.as_bytes(), "elsewhere.md").unwrap();
    assert_eq!(begun.session.id, read.session.id);
}

/// An editor may have taken the spaces from the ends of lines.
#[test]
fn a_chat_that_was_tidied_up() {
    let chat =
        "# aider chat started at 2026-01-02 03:04:05\n\n#### hi\nhello\n\n> Applied edit to a\n";
    let read = read(chat.as_bytes(), "x.md").unwrap();
    assert_eq!(
        read.words(),
        [
            "note.session",
            "message.user",
            "message.assistant",
            "note.file_snapshot"
        ]
    );
}

const ANALYTICS: &str = include_str!("../../fixtures/aider-analytics/session.jsonl");

#[test]
fn analytics() {
    let read = read(ANALYTICS.as_bytes(), "analytics.jsonl").unwrap();
    assert_eq!(read.dialect.name, "aider-analytics");
    assert_eq!(read.words(), ["note.session", "note.model_call"]);
    assert_eq!(read.usage().total(), 107);
    assert_eq!(read.session.vendor_cost.as_deref(), Some("0.001"));
    assert_eq!(read.session.version.as_deref(), Some("0.86.0"));
}

#[test]
fn broken_chats() {
    hostile(&super::Aider, super::CHAT, CHAT);
    hostile(&super::Aider, super::ANALYTICS, ANALYTICS);
}

#[test]
fn nothing_is_looked_for() {
    use crate::{Family as _, Host};
    assert!(
        super::Aider
            .places(&Host::new("/home/u", |_| None))
            .is_empty()
    );
}
