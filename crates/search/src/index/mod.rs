//! The index: events by what they say.

mod collect;
mod compile;
mod health;
mod passes;
mod phrase;
mod read;
mod schema;
#[cfg(test)]
mod tests;
mod traits;
mod write;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use tantivy::directory::MmapDirectory;
use tantivy::store::Compressor;
use tantivy::{IndexSettings, TantivyError};

pub(crate) use compile::is_hash;
use health::ReadOnly;
pub use passes::Passes;
pub use read::{Hit, Order, Sessions, Wish};
use schema::Fields;
pub use traits::{Index, Part, Parts, View, Writer, Written};
pub use write::PART;
use write::{TantivyParts, TantivyWriter};

/// What an index can fail with.
#[derive(Debug, thiserror::Error)]
pub enum IndexError {
    /// The files of the index are not there, not whole, or not of this version.
    #[error("the search index in {path} cannot be used: {why}")]
    Unusable {
        /// Its directory.
        path: PathBuf,
        /// What is wrong.
        why: String,
    },
    /// Another process is writing.
    #[error("another process is writing to the search index in {0}")]
    Busy(PathBuf),
    /// Reading or writing failed.
    #[error("the search index: {0}")]
    Engine(#[from] TantivyError),
    /// What is known of sessions could not be looked up.
    #[error(transparent)]
    Sessions(Box<dyn std::error::Error + Send + Sync>),
}

/// The result of looking something up.
pub type Result<T, E = IndexError> = std::result::Result<T, E>;

/// An index of tantivy's in a directory.
#[derive(Debug, Clone)]
pub struct TantivyIndex {
    engine: tantivy::Index,
    fields: Fields,
    path: PathBuf,
}

impl TantivyIndex {
    /// Opens an index that is there.
    pub fn open(path: &Path) -> Result<Option<Self>> {
        if !path.join("meta.json").exists() {
            return Ok(None);
        }
        health::guarded(path, || Self::open_or_create(path)).map(Some)
    }

    /// Opens an index, or begins one where there is none.
    pub fn open_or_create(path: &Path) -> Result<Self> {
        let (schema, fields) = schema::schema();
        let directory = MmapDirectory::open(path).map_err(TantivyError::from)?;
        let settings = IndexSettings {
            docstore_compression: Compressor::None,
            docstore_compress_dedicated_thread: false,
            ..IndexSettings::default()
        };
        let index = tantivy::Index::builder()
            .schema(schema)
            .settings(settings)
            .tokenizers(schema::tokenizers());
        let index = match ReadOnly::of(path, &directory) {
            Some(directory) => index.open_or_create(directory),
            None => index.open_or_create(directory),
        };
        let index = index.map_err(|error| unusable(path, &error))?;
        Ok(Self {
            engine: index,
            fields,
            path: path.to_owned(),
        })
    }

    /// Begins an index, in place of whatever is there.
    pub fn create_anew(path: &Path) -> Result<Self> {
        let refuse = |error: std::io::Error| IndexError::Unusable {
            path: path.to_owned(),
            why: error.to_string(),
        };
        // Whatever is there is not relied upon, not even that it is a directory.
        if !path.is_dir() {
            std::fs::remove_file(path)
                .and_then(|()| std::fs::create_dir(path))
                .map_err(refuse)?;
        }
        for entry in std::fs::read_dir(path).map_err(refuse)? {
            let entry = entry.map_err(refuse)?;
            if entry.file_type().is_ok_and(|kind| kind.is_file()) {
                std::fs::remove_file(entry.path()).map_err(refuse)?;
            }
        }
        Self::open_or_create(path)
    }

    fn failed(&self, error: TantivyError) -> IndexError {
        match error {
            TantivyError::LockFailure(..) => IndexError::Busy(self.path.clone()),
            error => IndexError::Engine(error),
        }
    }
}

impl Index for TantivyIndex {
    fn mark(&self) -> Result<Option<String>> {
        let metas = self.engine.load_metas();
        Ok(metas.map_err(|error| unusable(&self.path, &error))?.payload)
    }

    fn damages(&self, all: bool) -> Vec<String> {
        self.look(all)
            .unwrap_or_else(|error| vec![error.to_string()])
    }

    fn view(&self) -> Result<Arc<dyn View>> {
        Ok(Arc::new(self.searcher()?))
    }

    fn writer(&self) -> Result<Box<dyn Writer>> {
        Ok(Box::new(TantivyWriter::new(self)?))
    }

    fn parts(&self, budget: usize) -> Box<dyn Parts> {
        Box::new(TantivyParts::new(self, budget))
    }
}

fn unusable(path: &Path, error: &TantivyError) -> IndexError {
    IndexError::Unusable {
        path: path.to_owned(),
        why: error.to_string(),
    }
}
