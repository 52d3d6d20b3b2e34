//! Columns of a row group, as they fill.
//!
//! Rows come one by one and are written column by column. So each column keeps its values until the row
//! group is full: texts one behind another in one buffer, numbers in a list.

use ::parquet::basic::{LogicalType, Repetition, TimeUnit, Type as Physical};
use ::parquet::data_type::{BoolType, ByteArray, ByteArrayType, FixedLenByteArray};
use ::parquet::data_type::{FixedLenByteArrayType, Int64Type};
use ::parquet::errors::ParquetError;
use ::parquet::file::writer::SerializedColumnWriter;
use ::parquet::schema::types::Type;
use quipu_model::{Money, Timestamp};

/// How many digits a sum of money has, and how many of them behind the point.
const DIGITS: i32 = 38;
const PLACES: i32 = 18;

/// The first number with more digits than that.
const TOO_MUCH: u128 = 10_u128.pow(38);

/// What a column holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// One of few texts, or the same as in the row before: kept once.
    Word,
    /// Any text.
    Text,
    /// A count that is never negative.
    Count,
    /// A point in time, in microseconds.
    Time,
    /// A sum of dollars.
    Money,
    Flag,
}

/// A column by its name, what it holds, and whether every row has a value.
pub(super) type Spec = (&'static str, Kind, Required);

/// Whether every row has a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Required {
    Yes,
    No,
}

#[derive(Debug)]
enum Values {
    /// Texts in one buffer, and where each begins and how long it is.
    Texts {
        bytes: Vec<u8>,
        places: Vec<(usize, usize)>,
    },
    Numbers(Vec<i64>),
    Money(Vec<[u8; 16]>),
    Flags(Vec<bool>),
}

/// The values of a column in the row group that fills.
#[derive(Debug)]
pub(super) struct Column {
    kind: Kind,
    required: Required,
    values: Values,
    /// For every row whether there is a value: 1 or 0.
    levels: Vec<i16>,
    /// How many rows are whole.
    rows: usize,
}

impl Column {
    pub(super) fn new((_, kind, required): Spec) -> Self {
        let values = match kind {
            Kind::Word | Kind::Text => Values::Texts {
                bytes: Vec::new(),
                places: Vec::new(),
            },
            Kind::Count | Kind::Time => Values::Numbers(Vec::new()),
            Kind::Money => Values::Money(Vec::new()),
            Kind::Flag => Values::Flags(Vec::new()),
        };
        Self {
            kind,
            required,
            values,
            levels: Vec::new(),
            rows: 0,
        }
    }

    /// Takes note that the row has a value. `false` when it has one already.
    fn take(&mut self) -> bool {
        let is_new = self.levels.len() == self.rows;
        if is_new {
            self.levels.push(1);
        }
        is_new
    }

    /// Adds a text that the caller writes. Gives how many bytes that took.
    pub(super) fn text_with(&mut self, write: impl FnOnce(&mut Vec<u8>)) -> usize {
        if !self.take() {
            return 0;
        }
        let Values::Texts { bytes, places } = &mut self.values else {
            return 0;
        };
        let from = bytes.len();
        write(bytes);
        places.push((from, bytes.len() - from));
        bytes.len() - from
    }

    /// Adds a text. Gives how many bytes that took.
    pub(super) fn text(&mut self, text: &str) -> usize {
        if self.kind == Kind::Word
            && let Values::Texts { bytes, places } = &self.values
            && let Some(&(from, len)) = places.last()
            && bytes.get(from..from + len) == Some(text.as_bytes())
        {
            if self.take()
                && let Values::Texts { places, .. } = &mut self.values
            {
                places.push((from, len));
            }
            return 0;
        }
        self.text_with(|bytes| bytes.extend_from_slice(text.as_bytes()))
    }

    pub(super) fn count(&mut self, count: u64) {
        // The column is said to be of unsigned numbers, which are kept with the same bits.
        self.number(count.cast_signed());
    }

    pub(super) fn time(&mut self, at: Timestamp) {
        self.number(at.as_microsecond());
    }

    fn number(&mut self, number: i64) {
        if self.take()
            && let Values::Numbers(numbers) = &mut self.values
        {
            numbers.push(number);
        }
    }

    /// Adds a sum of dollars. `false` when it has more digits than the column.
    pub(super) fn money(&mut self, money: Money) -> bool {
        let fits = money.atto().unsigned_abs() < TOO_MUCH;
        if fits
            && self.take()
            && let Values::Money(sums) = &mut self.values
        {
            sums.push(money.atto().to_be_bytes());
        }
        fits
    }

    pub(super) fn flag(&mut self, flag: bool) {
        if self.take()
            && let Values::Flags(flags) = &mut self.values
        {
            flags.push(flag);
        }
    }

    /// Ends a row: without a value, if none was given.
    pub(super) fn end_row(&mut self) {
        if self.levels.len() == self.rows {
            self.levels.push(0);
        }
        self.rows += 1;
    }

    /// Writes the column of a row group, and empties it.
    pub(super) fn write(
        &mut self,
        writer: &mut SerializedColumnWriter<'_>,
    ) -> Result<(), ParquetError> {
        let levels = (self.required == Required::No).then_some(&self.levels[..]);
        match &mut self.values {
            Values::Texts { bytes, places } => {
                let whole = ByteArray::from(std::mem::take(bytes));
                let texts: Vec<ByteArray> = places
                    .drain(..)
                    .map(|(from, len)| whole.slice(from, len))
                    .collect();
                let to = writer.typed::<ByteArrayType>();
                to.write_batch(&texts, levels, None)?;
            }
            Values::Numbers(numbers) => {
                let to = writer.typed::<Int64Type>();
                to.write_batch(numbers, levels, None)?;
                numbers.clear();
            }
            Values::Money(sums) => {
                let sums: Vec<FixedLenByteArray> = sums
                    .drain(..)
                    .map(|sum| FixedLenByteArray::from(sum.to_vec()))
                    .collect();
                let to = writer.typed::<FixedLenByteArrayType>();
                to.write_batch(&sums, levels, None)?;
            }
            Values::Flags(flags) => {
                let to = writer.typed::<BoolType>();
                to.write_batch(flags, levels, None)?;
                flags.clear();
            }
        }
        self.levels.clear();
        self.rows = 0;
        Ok(())
    }
}

/// A column as the file says what it is.
pub(super) fn schema((name, kind, required): Spec) -> Result<Type, ParquetError> {
    let (physical, logical) = match kind {
        Kind::Word | Kind::Text => (Physical::BYTE_ARRAY, Some(LogicalType::String)),
        Kind::Count => (Physical::INT64, Some(LogicalType::integer(64, false))),
        Kind::Time => {
            let logical = LogicalType::timestamp(true, TimeUnit::MICROS);
            (Physical::INT64, Some(logical))
        }
        Kind::Money => {
            let logical = LogicalType::decimal(PLACES, DIGITS);
            (Physical::FIXED_LEN_BYTE_ARRAY, Some(logical))
        }
        Kind::Flag => (Physical::BOOLEAN, None),
    };
    let repetition = match required {
        Required::Yes => Repetition::REQUIRED,
        Required::No => Repetition::OPTIONAL,
    };
    let mut column = Type::primitive_type_builder(name, physical)
        .with_repetition(repetition)
        .with_logical_type(logical);
    if kind == Kind::Money {
        column = column
            .with_length(16)
            .with_precision(DIGITS)
            .with_scale(PLACES);
    }
    column.build()
}
