//! Archives: a file per sample.
//!
//! An archive comes from anywhere. Names in it are looked up and never used as paths; how much is unpacked, and of how many
//! files, has a limit.

use std::fs::File;
use std::io::{BufReader, Read as _, Write};

use zip::ZipArchive;

use super::SAMPLE;
use crate::{Dialect, Gather, GatherError, Gathered, Part};

/// How long a file in an archive may be when it is unpacked.
const LONGEST: u64 = 512 << 20;

/// How many files an archive may have.
const MOST: usize = 100_000;

/// Takes samples out of an archive.
pub(super) struct Archive;

impl Gather for Archive {
    fn parts(&self, from: &Gathered<'_>) -> Result<Vec<Part>, GatherError> {
        let mut archive = open(from)?;
        let mut parts = Vec::new();
        for index in 0..archive.len() {
            let entry = archive.by_index_raw(index).map_err(broken)?;
            let Ok(name) = entry.name() else {
                continue;
            };
            if let Some(id) = sample(&name) {
                parts.push(Part {
                    id: id.to_owned(),
                    stamp: format!("{:08x}-{}", entry.crc32(), entry.size()),
                });
            }
        }
        parts.sort_by(|a, b| a.id.cmp(&b.id));
        Ok(parts)
    }

    fn write(
        &self,
        from: &Gathered<'_>,
        part: &str,
        to: &mut dyn Write,
    ) -> Result<(), GatherError> {
        let mut archive = open(from)?;
        // A log that did not come to its end has only what it began with.
        for (name, field) in [
            ("header.json", "inspect_log"),
            ("_journal/start.json", "inspect_log"),
        ] {
            if let Some(text) = read(&mut archive, name)? {
                line(field, &text, to)?;
                break;
            }
        }
        let name = format!("samples/{part}.json");
        let text = read(&mut archive, &name)?;
        let text = text.ok_or_else(|| GatherError::Unknown(format!("no sample {part}")))?;
        line("inspect_sample", &text, to)
    }

    fn dialect(&self) -> Dialect {
        SAMPLE
    }

    /// The name of the first file in an archive stands near its beginning.
    fn holds_file(&self, begin: &[u8]) -> bool {
        const NAME: usize = 30;
        const FIRST: [&[u8]; 4] = [b"_journal/", b"header.json", b"samples/", b"summaries"];
        let name = begin.get(NAME..).unwrap_or_default();
        begin.starts_with(b"PK\x03\x04") && FIRST.iter().any(|first| name.starts_with(first))
    }
}

/// The sample that a file of an archive is.
fn sample(name: &str) -> Option<&str> {
    name.strip_prefix("samples/")?.strip_suffix(".json")
}

#[expect(clippy::needless_pass_by_value, reason = "it is handed to `map_err`")]
fn broken(error: zip::result::ZipError) -> GatherError {
    GatherError::Unknown(format!("the archive cannot be read: {error}"))
}

fn open(from: &Gathered<'_>) -> Result<ZipArchive<BufReader<File>>, GatherError> {
    let Gathered::File(path) = from else {
        return Err(GatherError::Unknown("an archive is a file".to_owned()));
    };
    let archive = ZipArchive::new(BufReader::new(File::open(path)?)).map_err(broken)?;
    if archive.len() > MOST {
        let why = format!("an archive of {} files is not read", archive.len());
        return Err(GatherError::Unknown(why));
    }
    Ok(archive)
}

/// A file of an archive; `None` when it is not there.
fn read(
    archive: &mut ZipArchive<BufReader<File>>,
    name: &str,
) -> Result<Option<Vec<u8>>, GatherError> {
    let entry = match archive.by_name(name) {
        Ok(entry) => entry,
        Err(zip::result::ZipError::FileNotFound) => return Ok(None),
        Err(error) => return Err(broken(error)),
    };
    // What it says of its size need not be true.
    let mut bytes = Vec::new();
    entry.take(LONGEST + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > LONGEST {
        let why = format!("{name} has more than {LONGEST} bytes");
        return Err(GatherError::Unknown(why));
    }
    Ok(Some(bytes))
}

/// A document as a line with one field.
fn line(field: &str, document: &[u8], to: &mut dyn Write) -> Result<(), GatherError> {
    write!(to, "{{\"{field}\":")?;
    // A line break inside a string is always escaped.
    for piece in document.split(|byte| matches!(byte, b'\n' | b'\r')) {
        to.write_all(piece)?;
    }
    to.write_all(b"}\n")?;
    Ok(())
}
