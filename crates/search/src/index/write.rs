//! Putting events into the index.
//!
//! Every thread that reads logs fills a part of its own, without waiting for the others; parts are put
//! together by whoever holds the [`Writer`], and appear when they are committed.

use std::path::{Path, PathBuf};

use tantivy::indexer::{
    AddOperation, IndexWriterOptions, LogMergePolicy, NoMergePolicy, SegmentWriter,
};
use tantivy::schema::document::{ReferenceValue, ReferenceValueLeaf};
use tantivy::schema::{Field, Value};
use tantivy::{IndexWriter, SegmentMeta, TantivyError, Term};

use super::schema::Fields;
use super::{IndexError, Part, Parts, Result, TantivyIndex, Writer, Written};
use crate::{Document, words};

/// What a part takes in memory before it is written, if nobody says otherwise.
pub const PART: usize = 48 << 20;

/// What tantivy asks for at least, for a thread of its own that is never given anything to do.
const IDLE: usize = 15_000_000;

/// Parts with more events than this are not put together any more: what that saves a search is less than what
/// it costs an import, in time and in memory.
const LARGE: usize = 10_000;

/// Adds to an index. There is one at a time.
pub(super) struct TantivyWriter {
    engine: IndexWriter<Shown>,
    fields: Fields,
    path: PathBuf,
}

impl std::fmt::Debug for TantivyWriter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TantivyWriter").finish_non_exhaustive()
    }
}

/// Begins parts; shared by threads.
#[derive(Debug, Clone)]
pub(super) struct TantivyParts {
    index: tantivy::Index,
    fields: Fields,
    budget: usize,
}

/// A part of the index that is being filled.
struct TantivyPart {
    parts: TantivyParts,
    segment: tantivy::Segment,
    writer: SegmentWriter,
}

impl std::fmt::Debug for TantivyPart {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TantivyPart").finish_non_exhaustive()
    }
}

impl TantivyWriter {
    /// Begins to write. Fails when another process does.
    pub(super) fn new(index: &TantivyIndex) -> Result<Self> {
        let options = IndexWriterOptions::builder()
            .num_worker_threads(1)
            .memory_budget_per_thread(IDLE)
            .num_merge_threads(1)
            .build();
        let writer = index
            .engine
            .writer_with_options(options)
            .map_err(|error| index.failed(error))?;
        let mut merging = LogMergePolicy::default();
        merging.set_max_docs_before_merge(LARGE);
        merging.set_del_docs_ratio_before_merge(0.3);
        writer.set_merge_policy(Box::new(merging));
        Ok(Self {
            engine: writer,
            fields: index.fields,
            path: index.path.clone(),
        })
    }
}

impl TantivyParts {
    pub(super) fn new(index: &TantivyIndex, budget: usize) -> Self {
        Self {
            index: index.engine.clone(),
            fields: index.fields,
            budget,
        }
    }
}

impl Parts for TantivyParts {
    fn begin(&self) -> Result<Box<dyn Part>> {
        let segment = self.index.new_segment();
        let writer = SegmentWriter::for_segment(self.budget, segment.clone())?;
        Ok(Box::new(TantivyPart {
            parts: self.clone(),
            segment,
            writer,
        }))
    }
}

impl Part for TantivyPart {
    fn add(&mut self, document: Document) -> Result<()> {
        let fields = self.parts.fields;
        let mut parts = String::new();
        words::all_parts(&document.text, &mut parts);
        Ok(self.writer.add_document(AddOperation {
            opstamp: 0,
            document: Shown {
                document,
                parts,
                fields,
            },
        })?)
    }

    fn is_full(&self) -> bool {
        self.writer.mem_usage() + (self.parts.budget / 16) >= self.parts.budget
    }

    fn write(self: Box<Self>) -> Result<Written> {
        let Self {
            segment, writer, ..
        } = *self;
        let documents = writer.max_doc();
        writer.finalize()?;
        let meta = segment.meta().clone().with_max_doc(documents);
        Ok(Written::new(meta))
    }
}

impl Writer for TantivyWriter {
    fn add(&mut self, part: Written) -> Result<()> {
        let segment: SegmentMeta = part.take().ok_or_else(|| IndexError::Unusable {
            path: self.path.clone(),
            why: "a part of another index was to be added".to_owned(),
        })?;
        Ok(self.engine.add_segment(segment)?)
    }

    fn remove(&mut self, pass: u64) {
        self.engine
            .delete_term(Term::from_field_u64(self.fields.pass, pass));
    }

    fn commit(&mut self, mark: &str) -> Result<()> {
        let mut commit = self.engine.prepare_commit()?;
        commit.set_payload(mark);
        commit.commit()?;
        restrict(&self.path);
        Ok(())
    }

    fn keep_apart(&mut self) {
        self.engine.set_merge_policy(Box::new(NoMergePolicy));
    }

    fn purge(&mut self) -> Result<()> {
        let segments = self.engine.index().searchable_segment_metas()?;
        let segments = segments.iter().filter(|segment| segment.has_deletes());
        let segments: Vec<_> = segments.map(SegmentMeta::id).collect();
        for segment in segments {
            match self.engine.merge(&[segment]).wait() {
                // A part of which nothing was left is gone by itself.
                Ok(_) | Err(TantivyError::InvalidArgument(_)) => {}
                Err(error) => return Err(error.into()),
            }
        }
        self.engine.garbage_collect_files().wait()?;
        Ok(())
    }

    fn finish(self: Box<Self>) -> Result<()> {
        let Self { engine, path, .. } = *self;
        engine.wait_merging_threads()?;
        restrict(&path);
        Ok(())
    }
}

/// What was said is nobody else's business.
fn restrict(directory: &Path) {
    let Ok(files) = std::fs::read_dir(directory) else {
        return;
    };
    for file in files.flatten() {
        // The directory is private as well; where this is refused, that has to do.
        quipu_files::restrict(&file.path());
    }
}

/// An event, as the index asks for it.
#[derive(Debug)]
struct Shown {
    document: Document,
    parts: String,
    fields: Fields,
}

#[derive(Debug, Clone)]
enum Shows<'a> {
    Text(&'a str),
    Number(u64),
    Signed(i64),
}

impl tantivy::Document for Shown {
    type Value<'a> = Shows<'a>;
    type FieldsValuesIter<'a> = Box<dyn Iterator<Item = (Field, Shows<'a>)> + 'a>;

    fn iter_fields_and_values(&self) -> Self::FieldsValuesIter<'_> {
        let Self {
            document,
            parts,
            fields,
        } = self;
        let at = document.at.unwrap_or(i64::MIN);
        let always = [
            (fields.text, Shows::Text(&document.text)),
            (fields.pass, Shows::Number(document.pass)),
            (fields.seq, Shows::Number(document.seq)),
            (fields.place, Shows::Number(document.place)),
            (fields.at, Shows::Signed(at)),
        ];
        let paths = (!document.paths.is_empty()).then(|| Shows::Text(&document.paths));
        let paths = paths.into_iter().map(|paths| (fields.path, paths));
        let parts = (!parts.is_empty()).then(|| Shows::Text(parts));
        let parts = parts.into_iter().map(|parts| (fields.part, parts));
        let tags = document.tags.iter();
        let tags = tags.map(|tag| (fields.tag, Shows::Text(&tag.0)));
        Box::new(always.into_iter().chain(parts).chain(paths).chain(tags))
    }
}

impl<'a> Value<'a> for Shows<'a> {
    type ArrayIter = std::iter::Empty<Self>;
    type ObjectIter = std::iter::Empty<(&'a str, Self)>;

    fn as_value(&self) -> ReferenceValue<'a, Self> {
        ReferenceValue::Leaf(match self {
            Self::Text(text) => ReferenceValueLeaf::Str(text),
            Self::Number(number) => ReferenceValueLeaf::U64(*number),
            Self::Signed(number) => ReferenceValueLeaf::I64(*number),
        })
    }
}
