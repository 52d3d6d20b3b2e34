//! Tables for people.

use std::io::{self, Write};

use anstyle::Style;

use crate::terminal::{DIM, fit, width_of};

/// Between columns.
const GAP: usize = 2;

/// Rows under a header, each column as wide as it needs to be.
pub(crate) struct Table {
    columns: Vec<Column>,
    rows: Vec<Vec<Cell>>,
}

struct Column {
    name: &'static str,
    right: bool,
    cap: Option<Cap>,
}

/// How wide a column may become.
#[derive(Clone, Copy)]
enum Cap {
    /// What is wider is cut.
    Cut(usize),
    /// What is wider is shown whole, and its row gives way.
    Overflow(usize),
}

/// What is done where there is little room.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Give {
    /// A column is left out.
    Drop(usize),
    /// A column is no wider than this.
    Shrink(usize, usize),
}

struct Cell {
    text: String,
    style: Style,
}

impl Table {
    /// A table with these columns. Those whose names begin with `>` are numbers.
    pub(crate) fn new(names: &[&'static str]) -> Self {
        let column = |name: &&'static str| match name.strip_prefix('>') {
            Some(name) => Column {
                name,
                right: true,
                cap: None,
            },
            None => Column {
                name,
                right: false,
                cap: None,
            },
        };
        Self {
            columns: names.iter().map(column).collect(),
            rows: Vec::new(),
        }
    }

    /// Adds a row. Texts are cleaned.
    pub(crate) fn row<T: AsRef<str>>(&mut self, cells: impl IntoIterator<Item = T>) {
        self.styled(cells.into_iter().map(|text| (text, Style::new())));
    }

    /// Adds a row whose cells are coloured.
    pub(crate) fn styled<T: AsRef<str>>(&mut self, cells: impl IntoIterator<Item = (T, Style)>) {
        let cell = |(text, style): (T, Style)| Cell {
            text: fit(text.as_ref(), 400),
            style,
        };
        self.rows.push(cells.into_iter().map(cell).collect());
    }

    /// Cuts what is wider than this in a column.
    pub(crate) fn cut(&mut self, column: usize, width: usize) {
        self.columns[column].cap = Some(Cap::Cut(width));
    }

    /// Makes a column no wider than this. What is wider is shown whole all the same.
    pub(crate) fn overflow(&mut self, column: usize, width: usize) {
        self.columns[column].cap = Some(Cap::Overflow(width));
    }

    /// Writes it, `columns` wide at most: the column `flexible` gives way.
    pub(crate) fn write(
        &self,
        out: &mut impl Write,
        columns: usize,
        flexible: Option<usize>,
    ) -> io::Result<()> {
        self.write_giving(out, columns, flexible, &[])
    }

    /// Writes it, `columns` wide at most: where `flexible` would get too narrow, the others give, one
    /// after the other.
    pub(crate) fn write_giving(
        &self,
        out: &mut impl Write,
        columns: usize,
        flexible: Option<usize>,
        giving: &[Give],
    ) -> io::Result<()> {
        /// The flexible column is never narrower, and others give before it gets as narrow as this.
        const LEAST: usize = 12;
        const NARROW: usize = 16;
        let mut widths: Vec<usize> = self.columns.iter().map(|it| width_of(it.name)).collect();
        for row in &self.rows {
            for (width, cell) in widths.iter_mut().zip(row) {
                *width = (*width).max(width_of(&cell.text));
            }
        }
        for (width, column) in widths.iter_mut().zip(&self.columns) {
            if let Some(Cap::Cut(cap) | Cap::Overflow(cap)) = column.cap {
                *width = (*width).min(cap);
            }
        }
        let mut shown: Vec<bool> = self.columns.iter().map(|_| true).collect();
        // A column without a name that nobody fills is not there.
        for (n, column) in self.columns.iter().enumerate() {
            shown[n] = !column.name.is_empty() || widths[n] > 0;
        }
        if let Some(flexible) = flexible {
            let room = |widths: &[usize], shown: &[bool]| {
                let others: usize = (0..widths.len())
                    .filter(|n| *n != flexible && shown[*n])
                    .map(|n| widths[n] + GAP)
                    .sum();
                columns.saturating_sub(others)
            };
            let enough = widths[flexible].min(NARROW);
            for give in giving {
                if room(&widths, &shown) >= enough {
                    break;
                }
                match *give {
                    Give::Drop(column) => shown[column] = false,
                    Give::Shrink(column, to) => widths[column] = widths[column].min(to),
                }
            }
            let left = room(&widths, &shown).max(LEAST);
            widths[flexible] = widths[flexible].min(left);
        }
        let header = self.columns.iter().map(|it| (it.name.to_owned(), DIM));
        self.line(out, &header.collect::<Vec<_>>(), &widths, &shown)?;
        for row in &self.rows {
            let mut excess = 0;
            let mut cells = Vec::with_capacity(row.len());
            for (n, cell) in row.iter().enumerate() {
                let mut width = widths[n];
                if matches!(self.columns[n].cap, Some(Cap::Overflow(_))) {
                    excess += width_of(&cell.text).saturating_sub(width);
                    width = usize::MAX;
                } else if Some(n) == flexible {
                    width = width.saturating_sub(excess);
                }
                cells.push((fit(&cell.text, width), cell.style));
            }
            let mut widths = widths.clone();
            if let Some(flexible) = flexible {
                widths[flexible] = widths[flexible].saturating_sub(excess);
            }
            self.line(out, &cells, &widths, &shown)?;
        }
        Ok(())
    }

    fn line(
        &self,
        out: &mut impl Write,
        cells: &[(String, Style)],
        widths: &[usize],
        shown: &[bool],
    ) -> io::Result<()> {
        let last = (0..cells.len()).rfind(|n| shown[*n] && !cells[*n].0.is_empty());
        for (n, (text, style)) in cells.iter().enumerate() {
            if !shown[n] {
                continue;
            }
            let Some(last) = last.filter(|last| n <= *last) else {
                break;
            };
            let pad = widths[n].saturating_sub(width_of(text));
            let (before, after) = if self.columns[n].right {
                (pad, 0)
            } else {
                (0, pad)
            };
            // Nothing behind the last word of a line.
            let after = if n == last { 0 } else { after + GAP };
            write!(out, "{:before$}{style}{text}{style:#}{:after$}", "", "")?;
        }
        writeln!(out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_flexible_column_gives_way() {
        let mut table = Table::new(&["NAME", "TITLE", ">N"]);
        table.row(["a", "a title that is far too long for the line", "7"]);
        table.row(["bcd\x1b", "", "1234"]);
        let mut out = Vec::new();
        table.write(&mut out, 36, Some(1)).unwrap();
        let text = anstream::adapter::strip_str(std::str::from_utf8(&out).unwrap()).to_string();
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[0], "NAME  TITLE                        N");
        assert_eq!(lines[1], "a     a title that is far too…     7");
        assert_eq!(lines[2], "bcd␛                            1234");
    }

    #[test]
    fn others_give_before_the_flexible_column_is_too_narrow() {
        let mut table = Table::new(&["ID", "TITLE", ">N", "MARKS"]);
        table.overflow(0, 4);
        table.row(["abcd", "a title that is rather long", "7", "some marks"]);
        table.row(["an-odd-id", "a title that is rather long", "7", ""]);
        let written = |columns: usize| {
            let mut out = Vec::new();
            let giving = [Give::Drop(2), Give::Shrink(3, 5)];
            table
                .write_giving(&mut out, columns, Some(1), &giving)
                .unwrap();
            let text = anstream::adapter::strip_str(std::str::from_utf8(&out).unwrap()).to_string();
            text.lines().map(str::to_owned).collect::<Vec<_>>()
        };
        let wide = written(50);
        assert_eq!(wide[1], "abcd  a title that is rather long  7  some marks");
        assert_eq!(wide[2], "an-odd-id  a title that is rathe…  7");
        let narrow = written(30);
        assert_eq!(narrow[0], "ID    TITLE              MARKS");
        assert_eq!(narrow[1], "abcd  a title that is …  some…");
        assert_eq!(narrow[2], "an-odd-id  a title tha…");
    }
}
