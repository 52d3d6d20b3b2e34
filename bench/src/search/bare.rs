//! Tantivy and nothing else, as its own examples use it: one field, its own words, two threads.

use std::path::Path;

use anyhow::Result;
use tantivy::schema::{Schema, TEXT};
use tantivy::{IndexWriter, TantivyDocument};

use super::texts;

const THREADS: usize = 2;
const MEMORY: usize = 200_000_000;

pub(super) fn index(texts: &Path, to: &Path) -> Result<()> {
    crate::files::remove(to)?;
    std::fs::create_dir_all(to)?;
    let mut schema = Schema::builder();
    let field = schema.add_text_field("text", TEXT);
    let index = tantivy::Index::create_in_dir(to, schema.build())?;
    let mut writer: IndexWriter = index.writer_with_num_threads(THREADS, MEMORY)?;
    texts::each(texts, |text| {
        let mut document = TantivyDocument::new();
        document.add_text(field, text);
        writer.add_document(document)?;
        Ok(())
    })?;
    writer.commit()?;
    writer.wait_merging_threads()?;
    Ok(())
}
