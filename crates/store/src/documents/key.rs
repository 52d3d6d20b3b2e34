//! Submission keys.

use quipu_api::Time;
use quipu_api::keys::Key;
use quipu_submit::keys::KeyEntry;

/// What is kept of a key. Its secret is not.
pub fn key(entry: &KeyEntry) -> Key {
    let scopes = entry.scopes().as_slice().iter();
    Key {
        key_id: entry.key_id().to_owned(),
        pseudonym: entry.pseudonym().to_owned(),
        label: entry.label().to_owned(),
        scopes: scopes.map(ToString::to_string).collect(),
        created_at: Time::of(entry.created_at()),
        revoked_at: entry.revoked_at().map(Time::of),
        expires_at: entry.expires_at().map(Time::of),
    }
}
