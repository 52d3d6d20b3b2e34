//! A run directory as one log: its records, in the order in which the run is told.

use std::fs;
use std::io::Write;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use quipu_exchange::lines::Limits;
use quipu_formats::flow::{self, FlowError};

use super::RUN;
use crate::{Dialect, Gather, GatherError, Gathered, Part, is_credential};

/// Takes the run out of its directory.
pub(super) struct Runs;

/// How many files of a run are looked at, and how deep.
const MOST: usize = 200_000;
const DEEPEST: usize = 8;

impl Gather for Runs {
    fn parts(&self, from: &Gathered<'_>) -> Result<Vec<Part>, GatherError> {
        let root = root(from)?;
        let name = root.file_name().unwrap_or_default().to_string_lossy();
        Ok(vec![Part {
            id: name.into_owned(),
            stamp: stamp(root),
        }])
    }

    fn write(
        &self,
        from: &Gathered<'_>,
        _part: &str,
        to: &mut dyn Write,
    ) -> Result<(), GatherError> {
        let mut line = Vec::new();
        let limits = Limits::default();
        let walked = flow::walk(root(from)?, &limits, &is_credential, &mut |record| {
            line.clear();
            record.encode(&mut line);
            to.write_all(&line)
        });
        match walked {
            Ok(_) => Ok(()),
            Err(FlowError::Io { source, .. }) => Err(source.into()),
            Err(error) => Err(GatherError::Unknown(error.to_string())),
        }
    }

    fn dialect(&self) -> Dialect {
        RUN
    }

    fn holds(&self, directory: &Path) -> bool {
        flow::is_run(directory) || flow::is_flow(directory)
    }
}

fn root<'a>(from: &Gathered<'a>) -> Result<&'a Path, GatherError> {
    match from {
        Gathered::Tree(root) => Ok(root),
        _ => Err(GatherError::Unknown("a run is a directory".to_owned())),
    }
}

/// Changes whenever a file of the run does. The order in which a directory lists its files has no part in it.
fn stamp(root: &Path) -> String {
    let (mut files, mut bytes, mut all) = (0usize, 0u64, 0u64);
    let mut open = vec![(root.to_owned(), 0)];
    while let Some((directory, depth)) = open.pop() {
        let Ok(listing) = fs::read_dir(&directory) else {
            continue;
        };
        for entry in listing.flatten() {
            // Not of what a link leads to.
            let Ok(metadata) = entry.metadata() else {
                continue;
            };
            let path = entry.path();
            if metadata.is_dir() && depth < DEEPEST {
                open.push((path, depth + 1));
                continue;
            }
            let name = path.strip_prefix(root).unwrap_or(&path);
            let (size, at) = (metadata.len(), (metadata.mtime(), metadata.mtime_nsec()));
            let told = format!("{}\0{size}\0{at:?}\0{}", name.display(), metadata.ino());
            files += 1;
            bytes = bytes.wrapping_add(size);
            all = all.wrapping_add(crate::hash(told.as_bytes()));
            if files >= MOST {
                open.clear();
                break;
            }
        }
    }
    format!("{files}.{bytes}.{all:016x}")
}
