//! `quipu keys`

use std::io::Write as _;

use quipu_api::keys;
use quipu_model::Timestamp;
use quipu_record::{Clock as _, SystemClock};
use quipu_store::documents;
use quipu_submit::KeyStore;
use quipu_submit::keys::{KeyStoreError, NewKey, Scopes};

use crate::args::KeysCommand;
use crate::error::{CommandError, Exit, Result};
use crate::locate::HomePlace;
use crate::table::Table;
use crate::terminal::{columns, out, say};
use crate::{json, when};

/// Where the keys of a home are.
const NAME: &str = "keys.jsonl";

pub(crate) fn run(command: &KeysCommand, place: &HomePlace) -> Result<Exit> {
    let store = KeyStore::at(place.home()?.join(NAME));
    let mut out = out();
    match command {
        KeysCommand::New {
            label,
            scopes,
            expires,
            json,
        } => {
            let new = NewKey {
                label,
                scopes: Scopes::new(scopes.iter().copied()),
                expires_at: expires.as_deref().map(end).transpose()?,
            };
            let (entry, key) = store.make(new, &SystemClock).map_err(failed)?;
            if *json {
                let document = keys::NewKey {
                    entry: documents::key(&entry),
                    key: key.expose(),
                };
                writeln!(out, "{}", json::document(&document)?)?;
            } else {
                writeln!(out, "{}", key.expose())?;
            }
            out.flush()?;
            drop(out);
            say(&format!(
                "this is the only time that {} is shown; only a hash of it is kept",
                entry.key_id()
            ));
        }
        KeysCommand::List { json } => {
            let entries = store.list().map_err(failed)?;
            if *json {
                let all = entries.iter().map(documents::key).collect::<Vec<_>>();
                writeln!(out, "{}", json::document(&all)?)?;
            } else if entries.is_empty() {
                say("there are no submission keys; `quipu keys new` makes one");
            } else {
                let mut table = Table::new(&["KEY", "PSEUDONYM", "MAY", "MADE", "ENDS", "FOR"]);
                let now = SystemClock.now();
                for entry in &entries {
                    let ends = match (entry.revoked_at(), entry.expires_at()) {
                        (Some(at), _) => format!("revoked {}", when::local_time(at)),
                        (None, Some(at)) if at <= now => {
                            format!("expired {}", when::local_time(at))
                        }
                        (None, Some(at)) => when::local_time(at),
                        (None, None) => String::new(),
                    };
                    table.row([
                        entry.key_id().to_owned(),
                        entry.pseudonym().to_owned(),
                        entry.scopes().to_string(),
                        when::local_time(entry.created_at()),
                        ends,
                        entry.label().to_owned(),
                    ]);
                }
                table.write(&mut out, columns(), Some(5))?;
            }
            out.flush()?;
        }
        KeysCommand::Revoke { key } => {
            let entry = store.revoke(key, &SystemClock).map_err(failed)?;
            say(&format!("{} counts no more", entry.key_id()));
        }
    }
    Ok(Exit::Done)
}

/// So long from now on.
fn end(age: &str) -> Result<Timestamp> {
    let now = SystemClock.now();
    let ago = now.duration_since(when::age(age, now)?);
    now.checked_add(ago)
        .map_err(|_| CommandError::usage(format!("{age} is too far ahead")))
}

fn failed(error: KeyStoreError) -> CommandError {
    let exit = match error {
        KeyStoreError::Io { .. } | KeyStoreError::Random(_) => Exit::Environment,
        KeyStoreError::Line { .. } | KeyStoreError::TooLong { .. } => Exit::Data,
        KeyStoreError::NoSuchKey(_)
        | KeyStoreError::Ambiguous(_)
        | KeyStoreError::Label
        | KeyStoreError::Expiry => Exit::Usage,
    };
    CommandError::new(exit, error)
}
