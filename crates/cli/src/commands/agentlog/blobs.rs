//! Blobs that traces and sessions refer to.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::path::Path;

use quipu_api::trace::{Blob, Phash, UnusedBlob, UnusedBlobs};
use quipu_record::{Clock as _, SystemClock};
use quipu_store::blobs::gc::{self, Collected, GcError};
use quipu_store::blobs::phash::{self, DHash};
use quipu_store::blobs::{BlobError, BlobId};
use quipu_store::traces::{BlobRow, TraceError, Traces};

use super::store::{give, open};
use crate::args::{AtDirectory, Gc, GetBlob, ListBlobs};
use crate::error::{CommandError, Exit, Result, io_error};
use crate::json;
use crate::locate::HomePlace;
use crate::table::Table;
use crate::terminal::{RED, bytes, columns, count, out, say};

/// How many digits of an id are shown.
const SHORT_ID: usize = 12;

/// Where to look when no blob is meant.
pub(super) const BLOBS_ARE_LISTED: &str = "`quipu agentlog blobs` shows what there is";

/// How large a picture file that is given may be.
const MAX_FILE: u64 = 256 << 20;

impl From<BlobError> for CommandError {
    fn from(error: BlobError) -> Self {
        let exit = match &error {
            BlobError::Missing(_) | BlobError::Damaged(_) => Exit::Data,
            BlobError::File(_) => Exit::Environment,
        };
        Self::new(exit, error)
    }
}

impl From<GcError> for CommandError {
    fn from(error: GcError) -> Self {
        match error {
            GcError::Traces(error) => error.into(),
            GcError::Store(error) => error.into(),
            GcError::Catalogue(error) => error.into(),
            GcError::Blobs(error) => error.into(),
            GcError::Unreadable { .. } | GcError::TooMany(_) => Self::new(Exit::Data, error),
            error => Self::new(Exit::Environment, error),
        }
    }
}

/// The traces whose blobs are meant. Blobs may be there before any trace is.
fn traces(at: &AtDirectory, place: &HomePlace) -> Result<Option<Traces>> {
    let traces = open(at, place)?;
    let home = place.home()?;
    if traces.is_none() && home.join("blobs").is_dir() {
        return Ok(Some(Traces::open(&home)?));
    }
    Ok(traces)
}

pub(super) fn list(args: &ListBlobs, place: &HomePlace) -> Result<Exit> {
    let Some(traces) = traces(&args.at, place)? else {
        if args.json {
            let mut out = out();
            writeln!(out, "[]")?;
            out.flush()?;
        } else {
            say("no blobs are kept yet");
        }
        return Ok(Exit::Done);
    };
    // What sessions refer to is in the catalogue of the home, not of another directory.
    let store = if args.at.at.is_none() {
        place.store()?
    } else {
        None
    };
    let mut rows = traces.blob_rows(store.as_ref().map(quipu_store::Store::catalogue))?;
    let mut distances: BTreeMap<BlobId, u32> = BTreeMap::new();
    if let Some(near) = &args.near {
        let near = traces.near(hash_of(&traces, near)?)?;
        distances.extend(near.into_iter().map(|near| (near.id, near.distance)));
        rows.retain(|row| distances.contains_key(&row.id));
        rows.sort_by_key(|row| (distances.get(&row.id).copied(), row.id));
    }
    let mut out = out();
    if args.json {
        let rows: Vec<Blob> = rows.iter().map(|row| document(row, &distances)).collect();
        writeln!(out, "{}", json::document(&rows)?)?;
        out.flush()?;
        return Ok(Exit::Done);
    }
    if rows.is_empty() {
        say("no blob is like that");
        return Ok(Exit::Done);
    }
    let mut table = Table::new(&[
        "ID",
        "TYPE",
        ">SIZE",
        "LOOKS LIKE",
        ">BITS OFF",
        "USED BY",
        "",
    ]);
    for row in &rows {
        let mut users = Vec::new();
        if row.in_session {
            users.push("a session".to_owned());
        }
        users.extend(row.traces.iter().map(|name| name[..SHORT_ID].to_owned()));
        let mark = match (row.is_here, row.is_damaged) {
            (false, _) => "not here",
            (true, true) => "damaged",
            (true, false) => "",
        };
        let plain = anstyle::Style::new();
        table.styled([
            (row.id.to_string()[..SHORT_ID].to_owned(), plain),
            (row.mime.clone(), plain),
            (bytes(row.size), plain),
            (
                row.phash.map(|hash| hash.to_string()).unwrap_or_default(),
                plain,
            ),
            (
                distances
                    .get(&row.id)
                    .map(ToString::to_string)
                    .unwrap_or_default(),
                plain,
            ),
            (users.join(", "), plain),
            (mark.to_owned(), RED),
        ]);
    }
    table.write(&mut out, columns(), Some(5))?;
    out.flush()?;
    Ok(Exit::Done)
}

/// What a blob or a file looks like.
fn hash_of(traces: &Traces, argument: &str) -> Result<DHash> {
    let path = Path::new(argument);
    if path.is_file() {
        let refuse = |error| io_error(format!("could not read {argument}"))(error);
        if path.metadata().map_err(refuse)?.len() > MAX_FILE {
            let error = anyhow::anyhow!("{argument} is larger than {}", bytes(MAX_FILE));
            return Err(CommandError::new(Exit::Data, error));
        }
        let read = std::fs::read(path);
        let read = read.map_err(io_error(format!("could not read {argument}")))?;
        return phash::of_image(&read)
            .map_err(|error| CommandError::new(Exit::Data, error).about(argument));
    }
    let id = match traces.find_blob(argument) {
        Err(TraceError::NoBlob(_)) => {
            let error = anyhow::anyhow!("there is no file {argument}, and no blob begins so");
            return Err(CommandError::new(Exit::Data, error).hint(BLOBS_ARE_LISTED));
        }
        id => id?,
    };
    traces.looks_like(&id)?.ok_or_else(|| {
        let error = anyhow::anyhow!("{id} is not here, or no picture that can be read");
        CommandError::new(Exit::Data, error)
    })
}

fn document(row: &BlobRow, distances: &BTreeMap<BlobId, u32>) -> Blob {
    Blob {
        blob_id: row.id.prefixed(),
        uri: row.id.uri(),
        mime: row.mime.clone(),
        size_bytes: row.size,
        phash: row.phash.map(|hash| Phash {
            algo: phash::ALGORITHM.to_owned(),
            hex: hash.to_string(),
        }),
        distance: distances.get(&row.id).copied().map(u64::from),
        is_here: row.is_here,
        is_damaged: row.is_damaged,
        traces: row.traces.clone(),
        in_session: row.in_session,
    }
}

pub(super) fn get(args: &GetBlob, place: &HomePlace) -> Result<Exit> {
    let traces = traces(&args.at, place)?;
    let traces = traces.ok_or_else(|| TraceError::NoBlob(args.id.clone()))?;
    let id = traces.find_blob(&args.id)?;
    let blob = traces.blobs().get(&id)?;
    give(&blob[..], &traces.blobs().path(&id), args.output.as_ref())
}

pub(super) fn gc(args: &Gc, place: &HomePlace) -> Result<Exit> {
    let found = gc::collect(&place.home()?, SystemClock.now(), args.yes)?;
    let mut out = out();
    if args.json {
        writeln!(out, "{}", json::document(&unused(&found, args.yes))?)?;
        out.flush()?;
        return Ok(Exit::Done);
    }
    let blobs = count(found.unused.len() as u64, "blob");
    let size = bytes(found.bytes());
    if found.unused.is_empty() {
        say("nothing is kept that nothing refers to");
    } else if args.yes {
        writeln!(out, "Removed {blobs}; {size} freed.")?;
    } else {
        let mut table = Table::new(&["ID", ">SIZE"]);
        for (id, size) in &found.unused {
            table.row([id.to_string(), bytes(*size)]);
        }
        table.write(&mut out, columns(), None)?;
        writeln!(out, "\n{blobs} of {size} would go; --yes does it.")?;
    }
    out.flush()?;
    drop(out);
    if found.young > 0 {
        let young = count(found.young, "blob");
        say(&format!(
            "{young} younger than an hour that nothing refers to yet: left alone"
        ));
    }
    Ok(Exit::Done)
}

fn unused(found: &Collected, removed: bool) -> UnusedBlobs {
    let unused = found.unused.iter().map(|(id, size)| UnusedBlob {
        blob_id: id.prefixed(),
        size_bytes: *size,
    });
    UnusedBlobs {
        removed,
        unused: unused.collect(),
        bytes: found.bytes(),
        young: found.young,
        used: found.used,
    }
}
