//! `quipu keys`

use std::io::Write as _;

use quipu_api::Time;
use quipu_api::keys::{Key, NewKey};
use quipu_record::SystemClock;
use quipu_submit::KeyStore;
use quipu_submit::keys::{KeyEntry, KeyStoreError};

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
        KeysCommand::New { label, json } => {
            let (entry, key) = store.create(label, &SystemClock).map_err(failed)?;
            if *json {
                let document = NewKey {
                    entry: of(&entry),
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
                let all = entries.iter().map(of).collect::<Vec<_>>();
                writeln!(out, "{}", json::document(&all)?)?;
            } else if entries.is_empty() {
                say("there are no submission keys; `quipu keys new` makes one");
            } else {
                let mut table = Table::new(&["KEY", "PSEUDONYM", "MADE", "REVOKED", "FOR"]);
                for entry in &entries {
                    let revoked = entry.revoked_at().map(when::local_time);
                    table.row([
                        entry.key_id().to_owned(),
                        entry.pseudonym().to_owned(),
                        when::local_time(entry.created_at()),
                        revoked.unwrap_or_default(),
                        entry.label().to_owned(),
                    ]);
                }
                table.write(&mut out, columns(), Some(4))?;
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

fn of(entry: &KeyEntry) -> Key {
    Key {
        key_id: entry.key_id().to_owned(),
        pseudonym: entry.pseudonym().to_owned(),
        label: entry.label().to_owned(),
        created_at: Time::of(entry.created_at()),
        revoked_at: entry.revoked_at().map(Time::of),
    }
}

fn failed(error: KeyStoreError) -> CommandError {
    let exit = match error {
        KeyStoreError::Io { .. } | KeyStoreError::Random(_) => Exit::Environment,
        KeyStoreError::Line { .. } | KeyStoreError::TooLong { .. } => Exit::Data,
        KeyStoreError::NoSuchKey(_) | KeyStoreError::Ambiguous(_) | KeyStoreError::Label => {
            Exit::Usage
        }
    };
    CommandError::new(exit, error)
}
