//! Redaction before anything is kept.
//!
//! The log is written, without what was found in it, into a file that nobody else sees, and that is what is kept and
//! read. The same log gives the same bytes, so one that has grown is still seen to have grown; but all of it is looked
//! at each time, because what was found before decides which number a placeholder has.

use std::fs::File;
use std::io::{BufReader, BufWriter, Read as _, Seek as _, SeekFrom, Write as _};
use std::path::Path;

use quipu_redact::{Key, raw};

use super::keep::{KeepError, Keeper};

/// Placeholders are numbered by what they stand for; the key only has to be the same each time.
const KEY: [u8; 32] = *b"quipu: numbers of what was found";

/// How much of a file tells whether it is text.
const HEAD: usize = 8 << 10;

impl Keeper<'_> {
    /// The file without what is not to be kept; the file itself where nothing is removed, or where it is no text.
    pub(super) fn scrubbed(&self, mut file: File, name: &Path) -> Result<File, KeepError> {
        let Some(engine) = &self.redact else {
            return Ok(file);
        };
        let mut head = Vec::with_capacity(HEAD);
        file.seek(SeekFrom::Start(0))?;
        (&mut file).take(HEAD as u64).read_to_end(&mut head)?;
        file.seek(SeekFrom::Start(0))?;
        if head.contains(&0) {
            return Ok(file);
        }
        let options = raw::RawOptions {
            file: Some(name.to_string_lossy().into_owned()),
            ..raw::RawOptions::new(Key::from_bytes(KEY))
        };
        let mut plain = tempfile::tempfile_in(self.temporary_directory()?)?;
        {
            let mut out = BufWriter::with_capacity(1 << 16, &mut plain);
            let mut from = BufReader::with_capacity(1 << 16, file);
            raw::redact(engine, &options, &mut from, &mut out, &mut |_| {})?;
            out.flush()?;
        }
        plain.seek(SeekFrom::Start(0))?;
        Ok(plain)
    }
}
