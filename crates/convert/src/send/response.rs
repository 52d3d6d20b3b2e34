//! What an endpoint answers.

use quipu_http::{Answer, one_line};
use serde_json::Value;

use super::Accepted;
use super::secrets::Secrets;

/// Whether it is a page for people. An endpoint for traces has none; a proxy that asks for a password does, and so
/// does the front of a product at an address that is not quite right.
pub(super) fn is_page(answer: &Answer) -> bool {
    let kind = answer.kind.split(';').next().unwrap_or_default().trim();
    ["text/html", "application/xhtml+xml"]
        .iter()
        .any(|page| kind.eq_ignore_ascii_case(page))
}

/// What was taken. The endpoint may take some spans and not others.
pub(super) fn accepted(answer: &Answer, secrets: &Secrets) -> Accepted {
    let (rejected, message) = if answer.kind.contains("protobuf") {
        partial_of_protobuf(&answer.body)
    } else {
        partial_of_json(&answer.body)
    };
    Accepted {
        rejected_spans: rejected,
        message: message.and_then(|message| clean(&message, secrets)),
        attempts: 0,
    }
}

/// What the endpoint says about a batch that it does not take.
pub(super) fn complaint(answer: &Answer, secrets: &Secrets) -> Option<String> {
    if answer.kind.contains("protobuf") {
        // A status: its message is the second field.
        let fields = fields(&answer.body);
        let message = fields.into_iter().find(|(field, _)| *field == 2);
        let (_, Wire::Bytes(message)) = message? else {
            return None;
        };
        return clean(&String::from_utf8_lossy(message), secrets);
    }
    let json: Option<Value> = serde_json::from_slice(&answer.body).ok();
    let message = json.and_then(|it| it["message"].as_str().map(ToOwned::to_owned));
    let message = message.unwrap_or_else(|| String::from_utf8_lossy(&answer.body).into_owned());
    clean(&message, secrets)
}

fn partial_of_json(body: &[u8]) -> (u64, Option<String>) {
    let json: Value = serde_json::from_slice(body).unwrap_or_default();
    let partial = &json["partialSuccess"];
    let rejected = match &partial["rejectedSpans"] {
        Value::String(text) => text.parse().unwrap_or(0),
        other => other.as_u64().unwrap_or(0),
    };
    let message = partial["errorMessage"].as_str().map(ToOwned::to_owned);
    (rejected, message)
}

fn partial_of_protobuf(body: &[u8]) -> (u64, Option<String>) {
    let (mut rejected, mut message) = (0, None);
    for (field, partial) in fields(body) {
        let (1, Wire::Bytes(partial)) = (field, partial) else {
            continue;
        };
        for (field, value) in fields(partial) {
            match (field, value) {
                (1, Wire::Number(number)) => rejected = number,
                (2, Wire::Bytes(text)) => {
                    message = Some(String::from_utf8_lossy(text).into_owned());
                }
                _ => {}
            }
        }
    }
    (rejected, message)
}

/// A field of a protobuf message, as far as answers have them.
enum Wire<'a> {
    Number(u64),
    Bytes(&'a [u8]),
}

/// The fields of a message, up to the first that cannot be read.
fn fields(mut rest: &[u8]) -> Vec<(u64, Wire<'_>)> {
    let mut all = Vec::new();
    while let Some((tag, behind)) = varint(rest) {
        let Some((value, behind)) = varint(behind) else {
            break;
        };
        let (field, behind) = match tag & 7 {
            0 => (Wire::Number(value), behind),
            2 => {
                let length = usize::try_from(value).unwrap_or(usize::MAX);
                let Some((bytes, behind)) = behind.split_at_checked(length) else {
                    break;
                };
                (Wire::Bytes(bytes), behind)
            }
            _ => break,
        };
        all.push((tag >> 3, field));
        rest = behind;
    }
    all
}

fn varint(bytes: &[u8]) -> Option<(u64, &[u8])> {
    let mut number = 0;
    for (n, byte) in bytes.iter().enumerate().take(10) {
        number |= u64::from(byte & 0x7f).checked_shl(7 * u32::try_from(n).ok()?)?;
        if byte & 0x80 == 0 {
            return Some((number, &bytes[n + 1..]));
        }
    }
    None
}

/// A text of another program, for a line of a terminal. `None` where nothing is left.
fn clean(text: &str, secrets: &Secrets) -> Option<String> {
    let plain = one_line(&secrets.hide(text));
    (!plain.is_empty()).then_some(plain)
}
