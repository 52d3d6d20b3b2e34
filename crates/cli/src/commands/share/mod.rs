//! `quipu share`

mod review;
mod write;

use quipu_convert::source::{Redacted, Removal};
use quipu_convert::{Reading, Source};
use quipu_formats::normalized::Submitter;
use quipu_submit::keys::SecretKey;

use super::export;
use crate::args::Share;
use crate::error::{CommandError, Exit, Result, io_error};
use crate::locate::HomePlace;
use crate::redaction;
use crate::terminal::say;
use review::Seen;

/// The profile where none is named.
const OTHERWISE: &str = "research";

pub(crate) fn run(args: &Share, place: &HomePlace) -> Result<Exit> {
    if args.output.is_none() && args.submit.is_none() && !args.review {
        let error = CommandError::usage("where to?");
        return Err(
            error.hint("name a file with -o, a server with --submit, or only look with --review")
        );
    }
    let removal = redaction::Removal::of(&args.rules, place, OTHERWISE)?;
    let key = args.key_file.as_deref().map(secret_key).transpose()?;
    let source = one(args, place)?;
    // Only now: what cannot be shared makes nobody an identity.
    let identity = redaction::identity(place)?;
    let linked = removal.profile.identity_linked;
    let submitter = match &key {
        Some(key) => key.submitter(linked),
        None => Submitter {
            key_id: None,
            pseudonym: Some(identity.pseudonym("anon", "submitter")),
            identity_linked: Some(linked),
        },
    };
    let profile = removal.profile.clone();
    let mut source = Redacted::new(
        source,
        Removal {
            engine: removal.engine.clone(),
            profile: removal.profile,
            key: identity,
            decisions: redaction::names(),
            submitter: Some(submitter),
        },
    );
    let seen = Seen::of(&mut source)?;
    let Some(decisions) = review::decide(args, &seen, &profile)? else {
        return Ok(Exit::Found);
    };
    if args.review {
        return Ok(Exit::Done);
    }
    source.decide(decisions);
    if linked {
        say("note: the profile links what is shared to whoever has the submission key");
    }
    write::write(args, &mut source, &removal.engine, key.as_ref())
}

/// The session that is meant.
fn one(args: &Share, place: &HomePlace) -> Result<Box<dyn Source>> {
    let reading = Reading::default();
    let mut sources = export::of(place.meant(&args.id)?, &reading)?;
    match sources.len() {
        1 => Ok(sources.remove(0)),
        n => {
            let error = anyhow::anyhow!("{} holds {n} sessions", args.id);
            let hint = "`quipu import` it, then share one of them by its id";
            Err(CommandError::new(Exit::Data, error).hint(hint))
        }
    }
}

fn secret_key(path: &std::path::Path) -> Result<SecretKey> {
    let about = format!("could not read {}", path.display());
    let text = std::fs::read_to_string(path).map_err(io_error(about))?;
    let line = text.lines().next().unwrap_or_default().trim();
    SecretKey::parse(line).map_err(|_| {
        // What is wrong with it is not said: it may be a key all the same.
        let error = anyhow::anyhow!("the first line of {} is no submission key", path.display());
        CommandError::new(Exit::Data, error)
            .hint("`quipu keys new` makes one, on the server's side")
    })
}
