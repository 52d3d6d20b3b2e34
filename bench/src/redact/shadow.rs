//! What another tool's thirteen patterns miss, and what they find that is nothing: as was measured of it, beside ours.

use std::fmt::Write as _;

use anyhow::{Context as _, Result};
use quipu_redact::Engine;
use quipu_redact::rule::expand;
use serde_json::json;

use super::ours;
use crate::table::{Goal, Table};

/// What it kept, and should not have.
const MISSED: &[(&str, &str)] = &[
    ("AWS secret key", "AWS_SECRET_ACCESS_KEY=«{alnum:40}»"),
    (
        "GitHub fine-grained token",
        "«github_pat_{alnum:22}_{alnum:59}»",
    ),
    ("GitLab token", "«glpat-{alnum:20}»"),
    ("Slack bot token", "«xoxb-{digit:12}-{digit:13}-{alnum:24}»"),
    (
        "Slack webhook",
        "https://hooks.slack.com/services/«T{upnum:8}/B{upnum:10}/{alnum:24}»",
    ),
    ("Google API key", "key=«AIza{alnum:35}»"),
    ("Stripe live key", "«sk_live_{alnum:24}»"),
    ("Hugging Face token", "«hf_{alpha:34}»"),
    ("npm token", "«npm_{alnum:36}»"),
    (
        "Azure account key",
        "AccountName=acme;AccountKey=«{alnum:86}==»;EndpointSuffix=core.windows.net",
    ),
    ("bearer header", "Authorization: Bearer «{alnum:40}»"),
    ("basic header", "Authorization: Basic «YWRtaW46{alnum:20}»"),
    (
        "PGP private key",
        "«-----BEGIN PGP PRIVATE KEY BLOCK-----\n\n{lines:4}\n-----END PGP PRIVATE KEY BLOCK-----»",
    ),
    (
        "private key, cut off",
        "-----BEGIN RSA PRIVATE KEY-----\n«{lines:4}»",
    ),
    (
        "e-mail of an international domain",
        "«ada.lovelace@bücher-{lower:8}.de»",
    ),
    ("phone with parentheses", "call «(415) 555-{digit:4}»"),
];

/// What it removed, and should not have.
const WRONG: &[(&str, &str)] = &[
    ("a time", "12:34:56"),
    ("a path in C++ or Rust", "a::b"),
    ("a selector of CSS", "a::before"),
    ("a version", "version 1.2.3.4"),
    (
        "words with dashes",
        "task-management-system-configuration-file",
    ),
    ("milliseconds", "1745552520123"),
    ("sixteen letters and digits", "AB12CDEF34567890"),
];

pub(super) fn measure(table: &mut Table, engine: &Engine) -> Result<()> {
    let mut text = String::from("The thirteen patterns of Shadow, as documented, and ours:\n");
    let (mut right, mut all) = (0, 0);
    let mut add = |what: &str, theirs: &str, ours: bool, said: [&str; 2]| -> Result<()> {
        all += 1;
        right += usize::from(ours);
        let said = if ours { said[0] } else { said[1] };
        Ok(writeln!(
            text,
            "  {what:<36} theirs: {theirs:<18} ours: {said}"
        )?)
    };
    for (what, template) in MISSED {
        let sample = expand(template, 11).context("a template")?;
        let secret = &sample.text[sample.secret.clone().context("a mark")?];
        let gone = !said(engine, &json!({"text": sample.text}).to_string())?.contains(secret);
        add(what, "kept", gone, ["removed", "KEPT"])?;
    }
    for (what, line, secret) in structures()? {
        let after = said(engine, &line)?;
        add(what, "kept", !after.contains(&secret), ["removed", "KEPT"])?;
    }
    for (what, template) in WRONG {
        let after = said(
            engine,
            &json!({"text": format!("see {template} here")}).to_string(),
        )?;
        add(
            what,
            "removed",
            after.contains(template),
            ["kept", "REMOVED"],
        )?;
    }
    // The password goes, the host stays, and it is not called an address for mail.
    let url = expand("postgres://user:«{alnum:16}»@db.internal/app", 12).context("a template")?;
    let password = &url.text[url.secret.clone().context("a mark")?];
    let after = said(engine, &json!({"text": url.text}).to_string())?;
    let fine =
        !after.contains(password) && after.contains("postgres://") && !after.contains("email");
    add(
        "a database with a password",
        "partly, as e-mail",
        fine,
        ["password removed", "OTHERWISE"],
    )?;
    table.note(text);
    table.row(
        "Shadow's misses and false alarms: right ones of ours",
        &format!("{right} of {all}"),
        "0 as documented",
        f64::from(u32::try_from(right)?) / f64::from(u32::try_from(all)?),
        Goal::AtLeast(1.0),
    );
    Ok(())
}

/// What stands where it does not look: in names, in numbers, in two pieces.
fn structures() -> Result<Vec<(&'static str, String, String)>> {
    let token = expand("ghp_{alnum:36}", 13).context("a template")?.text;
    let card = card();
    let split = json!({"content": [{"type": "text", "text": &token[..20]}, {"type": "text", "text": &token[20..]}]});
    Ok(vec![
        (
            "a token as a name",
            json!({token.clone(): 1}).to_string(),
            token.clone(),
        ),
        ("a card as a number", format!("{{\"card\":{card}}}"), card),
        (
            "a token in two blocks",
            split.to_string(),
            token[20..].to_owned(),
        ),
    ])
}

/// A number of sixteen digits that is right, of nobody's card.
fn card() -> String {
    let digits: Vec<u32> = "453921876540913"
        .chars()
        .filter_map(|c| c.to_digit(10))
        .collect();
    let sum: u32 = digits
        .iter()
        .rev()
        .enumerate()
        .map(|(n, digit)| match (n % 2, digit * 2) {
            (0, twice) if twice > 9 => twice - 9,
            (0, twice) => twice,
            _ => *digit,
        })
        .sum();
    let text: String = digits.iter().map(u32::to_string).collect();
    format!("{text}{}", (10 - sum % 10) % 10)
}

fn said(engine: &Engine, line: &str) -> Result<String> {
    let redacted = ours::redact(engine, format!("{line}\n").as_bytes())?;
    Ok(String::from_utf8_lossy(&redacted.bytes).into_owned())
}
