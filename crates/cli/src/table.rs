//! Tables for people.

use std::io::{self, Write};

use anstyle::Style;

use crate::terminal::{DIM, fit, width_of};

/// Rows under a header, each column as wide as it needs to be.
pub(crate) struct Table {
    columns: Vec<Column>,
    rows: Vec<Vec<Cell>>,
}

struct Column {
    name: &'static str,
    right: bool,
}

struct Cell {
    text: String,
    style: Style,
}

impl Table {
    /// A table with these columns. Those whose names begin with `>` are numbers.
    pub(crate) fn new(names: &[&'static str]) -> Self {
        let column = |name: &&'static str| match name.strip_prefix('>') {
            Some(name) => Column { name, right: true },
            None => Column { name, right: false },
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

    /// Writes it, `columns` wide at most: the column `flexible` gives way.
    pub(crate) fn write(
        &self,
        out: &mut impl Write,
        columns: usize,
        flexible: Option<usize>,
    ) -> io::Result<()> {
        const GAP: usize = 2;
        const LEAST: usize = 24;
        let mut widths: Vec<usize> = self.columns.iter().map(|it| width_of(it.name)).collect();
        for row in &self.rows {
            for (width, cell) in widths.iter_mut().zip(row) {
                *width = (*width).max(width_of(&cell.text));
            }
        }
        if let Some(flexible) = flexible {
            let gaps = GAP * (widths.len() - 1);
            let others = widths.iter().sum::<usize>() + gaps - widths[flexible];
            let left = columns.saturating_sub(others).max(LEAST);
            widths[flexible] = widths[flexible].min(left);
        }
        let header = self.columns.iter().map(|it| (it.name.to_owned(), DIM));
        self.line(out, &header.collect::<Vec<_>>(), &widths)?;
        for row in &self.rows {
            let cells = row.iter().zip(&widths);
            let cells = cells.map(|(cell, width)| (fit(&cell.text, *width), cell.style));
            self.line(out, &cells.collect::<Vec<_>>(), &widths)?;
        }
        Ok(())
    }

    fn line(
        &self,
        out: &mut impl Write,
        cells: &[(String, Style)],
        widths: &[usize],
    ) -> io::Result<()> {
        let last = cells.iter().rposition(|cell| !cell.0.is_empty());
        for (n, (text, style)) in cells.iter().enumerate() {
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
            let after = if n == last { 0 } else { after + 2 };
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
}
