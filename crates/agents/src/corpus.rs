//! Real logs, read in place. They are not part of the project; where they are absent the test says so.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::testkit::read;

pub(crate) fn fixtures() -> Option<PathBuf> {
    let below = "shared/fixtures";
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let given = std::env::var_os("QUIPU_FIXTURES").map(PathBuf::from);
    let path = given.unwrap_or_else(|| workspace.join("..").join(below));
    if path.is_dir() {
        return path.canonicalize().ok();
    }
    #[expect(
        clippy::print_stderr,
        reason = "a test that does nothing has to say so"
    )]
    {
        eprintln!("skipped: no logs at {}", path.display());
    }
    None
}

pub(crate) fn files(directory: &Path, found: &mut Vec<PathBuf>) {
    let mut entries: Vec<PathBuf> = std::fs::read_dir(directory)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    entries.sort();
    for path in entries {
        if path.is_dir() {
            files(&path, found);
        } else {
            found.push(path);
        }
    }
}

/// The logs of one folder, by name; none where they are absent.
pub(crate) fn logs(folder: &str) -> Vec<(String, Vec<u8>)> {
    let mut paths = Vec::new();
    if let Some(root) = fixtures() {
        files(&root.join(folder), &mut paths);
    }
    let log = |path: PathBuf| {
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        (name, std::fs::read(path).unwrap())
    };
    paths.into_iter().map(log).collect()
}

/// The logs of one folder as the JSON documents in them: one, or one a line. What does not read is left out.
pub(crate) fn documents(folder: &str) -> Vec<(String, Vec<u8>, Vec<serde_json::Value>)> {
    let parse = |(name, bytes): (String, Vec<u8>)| {
        let documents = match serde_json::from_slice(&bytes) {
            Ok(document) => vec![document],
            Err(_) => bytes
                .split(|byte| *byte == b'\n')
                .filter_map(|line| serde_json::from_slice(line).ok())
                .collect(),
        };
        (name, bytes, documents)
    };
    logs(folder).into_iter().map(parse).collect()
}

/// Every log of the corpus: each record is accounted for, and reading in pieces gives the same (which
/// [`read`] sees to). What reads as what is printed with `--nocapture`.
#[test]
#[expect(clippy::print_stderr, reason = "shows what reads as what")]
fn every_log_is_accounted_for() {
    let Some(root) = fixtures() else {
        return;
    };
    let mut paths = Vec::new();
    files(&root, &mut paths);
    let mut table: BTreeMap<(String, &str), [u64; 6]> = BTreeMap::new();
    for path in &paths {
        let name = path.strip_prefix(&root).unwrap().to_str().unwrap();
        let folder = name.split('/').next().unwrap_or_default();
        if matches!(folder, "MANIFEST.tsv" | "awf-run" | "atif") {
            continue;
        }
        let bytes = std::fs::read(path).unwrap();
        let Some(read) = read(&bytes, name) else {
            eprintln!("not known: {name}");
            continue;
        };
        if let Some(error) = &read.error {
            eprintln!("{name}: {error}");
        }
        let dropped: u64 = read.ledger.dropped.values().sum();
        let row = table
            .entry((folder.to_owned(), read.dialect.name))
            .or_default();
        let unknown = read.ledger.drift.unknown.len() as u64;
        for (sum, n) in row.iter_mut().zip([
            1,
            read.ledger.records,
            read.ledger.mapped,
            read.ledger.noted,
            dropped,
            unknown,
        ]) {
            *sum += n;
        }
        for (unknown, sighting) in &read.ledger.drift.unknown {
            eprintln!(
                "  {name}:{} {unknown} {}",
                sighting.first.line, sighting.count
            );
        }
    }
    for ((folder, dialect), [files, records, mapped, noted, dropped, unknown]) in table {
        eprintln!(
            "{folder:24} {dialect:18} files {files:3} records {records:6} events {mapped:6} notes {noted:5} dropped {dropped:5} unknown {unknown:3}"
        );
    }
}

/// No real log is claimed by two families that are both sure.
#[test]
fn no_log_is_claimed_twice() {
    let Some(root) = fixtures() else {
        return;
    };
    let mut paths = Vec::new();
    files(&root, &mut paths);
    for path in paths {
        let bytes = std::fs::read(&path).unwrap();
        let sure = crate::Head::look(&bytes, true, |head| {
            let claims = crate::claims(head).into_iter();
            let sure = claims.filter(|(_, claim)| claim.sure);
            sure.map(|(family, _)| family.name()).collect::<Vec<_>>()
        });
        assert!(sure.len() < 2, "{}: {sure:?}", path.display());
    }
}
