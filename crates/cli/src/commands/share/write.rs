//! Writing what is shared, and looking at it once more.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufReader, Read, Seek as _, SeekFrom, Write as _};
use std::path::Path;

use quipu_api::share as api;
use quipu_convert::output::NewFile;
use quipu_convert::source::Redacted;
use quipu_convert::{Format, Source as _, TargetOptions};
use quipu_formats::normalized::{Privacy, embedded, transcript_id};
use quipu_formats::projection::Nowhere;
use quipu_redact::raw;
use quipu_redact::{Certainty, Engine, Key, Kind};
use quipu_submit::client::{Client, ClientError, Packed};
use quipu_submit::{Encoding, SecretKey, TranscriptId};
use sha2::{Digest as _, Sha256};

use crate::args::{Share, ShareAs};
use crate::commands::convert::refused;
use crate::error::{CommandError, Exit, Result, io_error};
use crate::json;
use crate::terminal::{bytes, clean, count, say};

pub(super) fn write(
    args: &Share,
    source: &mut Redacted,
    engine: &Engine,
    key: Option<&SecretKey>,
) -> Result<Exit> {
    let header = source.header().map_err(refused)?;
    let document = source.document();
    let id = document.and_then(|document| document.transcript_id.clone());
    let id = id.unwrap_or_else(|| transcript_id(&header.run_id));
    if let Some(path) = &args.output {
        match args.to {
            ShareAs::Transcript => file(source, Format::Normalized, path, args.force, engine)?,
            ShareAs::Html => file(source, Format::Html, path, args.force, engine)?,
            ShareAs::Bundle => bundle(source, path, args.force, engine)?,
        }
        say(&format!("{} written", clean(&path.display().to_string())));
    }
    let outcome = source.outcome();
    if let Some(privacy) = outcome.and_then(|outcome| outcome.options.privacy.as_ref()) {
        tell(privacy);
    }
    if let (Some(server), Some(key)) = (&args.submit, key) {
        submit(source, engine, server, key, &id)?;
    }
    Ok(Exit::Done)
}

fn not_made(path: &Path) -> impl Fn(io::Error) -> CommandError + '_ {
    |error| match error.kind() {
        io::ErrorKind::AlreadyExists => {
            let error = anyhow::anyhow!("{} is there already", path.display());
            CommandError::new(Exit::Environment, error).hint("--force writes over it")
        }
        _ => io_error(format!("could not make {}", path.display()))(error),
    }
}

/// Writes a file that is there once it is whole and nothing was found in it.
fn file(
    source: &mut Redacted,
    format: Format,
    path: &Path,
    force: bool,
    engine: &Engine,
) -> Result<()> {
    let new = NewFile::begin(path, force).map_err(not_made(path))?;
    let written = new.file().map_err(not_made(path))?;
    project(source, format, &written)?;
    look_again(engine, format, written)?;
    new.finish().map_err(not_made(path))
}

fn project(source: &mut Redacted, format: Format, to: &File) -> Result<()> {
    let out = Box::new(io::BufWriter::with_capacity(1 << 18, to));
    let written = quipu_convert::write(
        source,
        format,
        &TargetOptions::default(),
        out,
        Box::new(Nowhere),
    );
    written.map(drop).map_err(refused)
}

/// What was written is what leaves: the rules are held against it once more.
fn look_again(engine: &Engine, format: Format, mut file: File) -> Result<()> {
    let unreadable = || io_error("could not read what was written");
    file.seek(SeekFrom::Start(0)).map_err(unreadable())?;
    let options = raw::RawOptions {
        shape: Some(raw::Shape::Json),
        ..raw::RawOptions::new(Key::from_bytes([0; 32]))
    };
    let mut left: Vec<String> = Vec::new();
    // Of a page, the transcript in it: the rest is ours.
    let mut input: Box<dyn Read> = match format {
        Format::Html => Box::new(embedded(file)),
        _ => Box::new(BufReader::with_capacity(1 << 18, file)),
    };
    let looked = raw::check(engine, &options, &mut input, &mut |finding| {
        let is_secret = match finding.what {
            raw::What::Rule(rule) => engine.rules().rules[rule].kind == Kind::Secret,
            raw::What::File | raw::What::Environment => false,
        };
        if finding.certainty == Certainty::Sure && is_secret && left.len() < 20 {
            left.push(format!("{} in {}", finding.what.id(engine), finding.field));
        }
    });
    looked.map_err(|error| io_error("could not read what was written")(io::Error::other(error)))?;
    if left.is_empty() {
        return Ok(());
    }
    let error = anyhow::anyhow!(
        "{} still there after redaction, so nothing was shared",
        count(left.len() as u64, "secret")
    );
    let hint =
        "a value that you keep is not looked at again only if a rule file allows it: docs/rules.md";
    Err(CommandError::new(Exit::Found, error)
        .details(left)
        .hint(hint))
}

/// A directory with everything in it: the transcript, a page, and what was removed.
fn bundle(source: &mut Redacted, path: &Path, force: bool, engine: &Engine) -> Result<()> {
    quipu_files::create_directory(path).map_err(not_made(path))?;
    let mut files = BTreeMap::new();
    for (name, format) in [
        ("transcript.json", Format::Normalized),
        ("transcript.html", Format::Html),
    ] {
        let at = path.join(name);
        file(source, format, &at, force, engine)?;
        files.insert(name.to_owned(), digest(&at)?);
    }
    let privacy = source
        .outcome()
        .and_then(|outcome| outcome.options.privacy.as_ref());
    let document = api::Bundle {
        files,
        privacy: privacy.map(summary),
        check: "quipu verify transcript.json".to_owned(),
    };
    let at = path.join("receipt.json");
    let new = NewFile::begin(&at, force).map_err(not_made(&at))?;
    writeln!(new.writer(), "{}", json::document(&document)?).map_err(not_made(&at))?;
    new.finish().map_err(not_made(&at))
}

fn digest(path: &Path) -> Result<String> {
    let about = || io_error(format!("could not read {}", path.display()));
    let mut file = File::open(path).map_err(about())?;
    let mut hash = Sha256::new();
    let mut piece = vec![0; 1 << 16];
    loop {
        let read = file.read(&mut piece).map_err(about())?;
        if read == 0 {
            break;
        }
        hash.update(&piece[..read]);
    }
    Ok(format!(
        "sha256:{}",
        quipu_model::hex::encode(&hash.finalize())
    ))
}

fn summary(privacy: &Privacy) -> api::Privacy {
    let matched = privacy.rules_matched.as_ref();
    let commitment = privacy.commitment.as_ref();
    api::Privacy {
        profile: privacy.profile.clone(),
        redaction_count: privacy.redaction_count,
        rules_digest: privacy.rules_digest.clone(),
        rules_matched: matched.map(|matched| matched.iter().cloned().collect()),
        commitment: commitment.map(|commitment| api::Commitment {
            algorithm: commitment.algorithm.clone(),
            root: commitment.root.clone(),
            leaves: commitment.leaves,
        }),
    }
}

fn tell(privacy: &Privacy) {
    let profile = privacy.profile.as_deref().unwrap_or_default();
    let removed = count(privacy.redaction_count.unwrap_or_default(), "redaction");
    say(&format!("profile {profile}: {removed}"));
    if let Some(commitment) = &privacy.commitment {
        say(&format!("commitment {}", commitment.root));
    }
}

fn submit(
    source: &mut Redacted,
    engine: &Engine,
    server: &str,
    key: &SecretKey,
    id: &str,
) -> Result<()> {
    let id = TranscriptId::parse(id).map_err(|error| CommandError::new(Exit::Data, error))?;
    let document = tempfile::tempfile()?;
    project(source, Format::Normalized, &document)?;
    look_again(engine, Format::Normalized, document.try_clone()?)?;
    let mut document = document;
    document.seek(SeekFrom::Start(0))?;
    let mut packed = Packed::new(id, document, Encoding::Zstd)?;
    let client = Client::new(
        server,
        key.clone(),
        quipu_submit::client::ClientOptions::default(),
    )
    .map_err(not_sent)?;
    let receipt = client.submit(&mut packed, &mut |_| {}).map_err(not_sent)?;
    let again = if receipt.duplicate {
        ", which had it"
    } else {
        ""
    };
    say(&format!(
        "{} taken by {}{again}: {}, sha256 {}",
        receipt.transcript_id.as_str(),
        clean(server),
        bytes(receipt.bytes),
        receipt.sha256
    ));
    Ok(())
}

fn not_sent(error: ClientError) -> CommandError {
    match error {
        ClientError::Address(_) => CommandError::new(Exit::Usage, error),
        ClientError::Refused { ref refusal, .. } => {
            let places: Vec<String> = refusal
                .findings
                .iter()
                .map(|finding| match finding.seq {
                    Some(seq) => format!("{} in event {seq}, {}", finding.rule, finding.field),
                    None => format!("{} in {}", finding.rule, finding.field),
                })
                .collect();
            CommandError::new(Exit::Environment, error).details(places)
        }
        error => CommandError::new(Exit::Environment, error),
    }
}
