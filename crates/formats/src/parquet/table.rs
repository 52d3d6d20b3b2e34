//! A table in a file: rows in, row groups out.

use std::io::{self, Write};
use std::sync::Arc;

use ::parquet::basic::{Compression, ZstdLevel};
use ::parquet::errors::ParquetError;
use ::parquet::file::properties::{EnabledStatistics, WriterProperties, WriterVersion};
use ::parquet::file::writer::SerializedFileWriter;
use ::parquet::schema::types::{ColumnPath, Type};
use quipu_model::{Money, Timestamp};

use super::ParquetOptions;
use super::column::{self, Column, Kind, Spec};

/// Rows that are collected until there are enough for a row group.
pub(super) struct Table<W: Write + Send> {
    writer: SerializedFileWriter<W>,
    columns: Vec<Column>,
    rows: usize,
    bytes: usize,
    max_rows: usize,
    max_bytes: usize,
}

impl<W: Write + Send> Table<W> {
    pub(super) fn new(
        name: &str,
        specs: &[Spec],
        out: W,
        options: &ParquetOptions,
    ) -> Result<Self, ParquetError> {
        let fields = specs.iter().map(|spec| column::schema(*spec).map(Arc::new));
        let fields = fields.collect::<Result<Vec<_>, _>>()?;
        let schema = Type::group_type_builder(name).with_fields(fields).build()?;
        let mut properties = WriterProperties::builder()
            .set_writer_version(WriterVersion::PARQUET_1_0)
            .set_created_by("quipu".to_owned())
            .set_compression(Compression::ZSTD(ZstdLevel::try_new(1)?))
            .set_statistics_enabled(EnabledStatistics::Chunk)
            .set_offset_index_disabled(true)
            .set_dictionary_enabled(false);
        for (name, kind, _) in specs {
            let path = ColumnPath::from(*name);
            properties = match kind {
                // What is said is never the same twice, and its first letters help nobody to find it.
                Kind::Text => {
                    properties.set_column_statistics_enabled(path, EnabledStatistics::None)
                }
                Kind::Word => properties.set_column_dictionary_enabled(path, true),
                _ => properties,
            };
        }
        let properties = Arc::new(properties.build());
        Ok(Self {
            writer: SerializedFileWriter::new(out, Arc::new(schema), properties)?,
            columns: specs.iter().map(|spec| Column::new(*spec)).collect(),
            rows: 0,
            bytes: 0,
            max_rows: options.row_group_rows.max(1),
            max_bytes: options.row_group_bytes,
        })
    }

    pub(super) fn text(&mut self, column: usize, text: &str) {
        self.bytes += self.columns[column].text(text);
    }

    pub(super) fn text_if(&mut self, column: usize, text: Option<&str>) {
        if let Some(text) = text {
            self.text(column, text);
        }
    }

    pub(super) fn text_with(&mut self, column: usize, write: impl FnOnce(&mut Vec<u8>)) {
        self.bytes += self.columns[column].text_with(write);
    }

    pub(super) fn count(&mut self, column: usize, count: u64) {
        self.columns[column].count(count);
    }

    pub(super) fn count_if(&mut self, column: usize, count: Option<u64>) {
        if let Some(count) = count {
            self.count(column, count);
        }
    }

    pub(super) fn time(&mut self, column: usize, at: Timestamp) {
        self.columns[column].time(at);
    }

    /// `false` when it has more digits than the column.
    pub(super) fn money(&mut self, column: usize, money: Money) -> bool {
        self.columns[column].money(money)
    }

    pub(super) fn flag(&mut self, column: usize, flag: bool) {
        self.columns[column].flag(flag);
    }

    /// Ends a row, and writes a row group when there are enough.
    pub(super) fn end_row(&mut self) -> io::Result<()> {
        self.rows += 1;
        for column in &mut self.columns {
            column.end_row();
        }
        // What a row takes beside its texts.
        self.bytes += self.columns.len() * 4;
        if self.rows >= self.max_rows || self.bytes >= self.max_bytes {
            self.flush().map_err(io::Error::other)?;
        }
        Ok(())
    }

    fn flush(&mut self) -> Result<(), ParquetError> {
        if self.rows == 0 {
            return Ok(());
        }
        let mut group = self.writer.next_row_group()?;
        for column in &mut self.columns {
            let Some(mut writer) = group.next_column()? else {
                return Err(ParquetError::General(
                    "fewer columns than expected".to_owned(),
                ));
            };
            column.write(&mut writer)?;
            writer.close()?;
        }
        group.close()?;
        (self.rows, self.bytes) = (0, 0);
        Ok(())
    }

    /// Writes what is left and the end of the file, and gives back what was written to.
    pub(super) fn close(mut self) -> io::Result<W> {
        self.flush().map_err(io::Error::other)?;
        self.writer.into_inner().map_err(io::Error::other)
    }
}
