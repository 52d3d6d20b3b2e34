//! A session of a file that holds many.

use std::io;
use std::path::{Path, PathBuf};

use quipu_agents::{Family, GatherError, Gathered};

use super::{Bytes, Log, Reading, Source, SourceError};

/// The bytes of one session, as they are taken out of the file.
struct Part {
    path: PathBuf,
    family: &'static dyn Family,
    id: String,
}

impl Part {
    fn bytes(&self) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        if let Some(gather) = self.family.gather() {
            let written = gather.write(&Gathered::File(&self.path), &self.id, &mut bytes);
            written.map_err(io::Error::other)?;
        }
        Ok(bytes)
    }
}

impl Bytes for Part {
    fn pieces(&self, take: &mut dyn FnMut(&[u8]) -> bool) -> io::Result<()> {
        take(&self.bytes()?);
        Ok(())
    }

    fn reader(&self) -> io::Result<Box<dyn io::Read + '_>> {
        Ok(Box::new(io::Cursor::new(self.bytes()?)))
    }

    fn beside(&self, _names: &[PathBuf]) -> io::Result<Vec<(String, Vec<u8>)>> {
        Ok(Vec::new())
    }
}

/// All sessions of a file.
pub(super) fn parts(
    path: &Path,
    family: &'static dyn Family,
    reading: &Reading,
) -> Result<Vec<Box<dyn Source>>, SourceError> {
    let broken = |error: GatherError| SourceError::Broken {
        path: path.to_owned(),
        why: error.to_string(),
    };
    let Some(gather) = family.gather() else {
        return Err(SourceError::Unknown(path.to_owned()));
    };
    let parts = gather.parts(&Gathered::File(path)).map_err(broken)?;
    if parts.is_empty() {
        return Err(SourceError::Empty(path.to_owned()));
    }
    let source = |part: quipu_agents::Part| -> Box<dyn Source> {
        let bytes = Part {
            path: path.to_owned(),
            family,
            id: part.id.clone(),
        };
        let mut log = Log::new(bytes, path, (family, gather.dialect()), &reading.prices);
        log.part = Some(part.id);
        Box::new(log)
    };
    Ok(parts.into_iter().map(source).collect())
}
