//! A trace as lines: each record below the one it follows.
//!
//! The last record that follows another stays in its column, so a conversation is one line from top to
//! bottom; what branches off before (a call beside others, a note) goes into the first free column to the
//! right, and ends where nothing follows it.

use std::collections::HashMap;
use std::io::{self, Read};

use quipu_formats::agentlog::{Item, Parent, Reader};

/// No record.
const NONE: u32 = u32::MAX;

/// So many columns are drawn; what is further right is not.
const MOST: usize = 24;

/// Who follows whom: a few bytes per record.
#[derive(Debug, Default)]
pub(super) struct Family {
    parents: Vec<u32>,
    /// The last record that follows each.
    last_child: Vec<u32>,
    repeated: Vec<bool>,
}

impl Family {
    pub(super) fn read<R: Read>(reader: &mut Reader<R>) -> io::Result<Self> {
        let mut family = Self::default();
        // Where an id is there several times, the nearest before is meant.
        let mut rows: HashMap<[u8; 16], u32> = HashMap::new();
        while let Some(item) = reader.next()? {
            let Item::Record(record) = item else { continue };
            let row = u32::try_from(family.parents.len()).unwrap_or(NONE);
            if row == NONE {
                let error = "a trace of more than 4 billion records";
                return Err(io::Error::new(io::ErrorKind::FileTooLarge, error));
            }
            let parent = match record.parent() {
                Parent::Id(id) => rows.get(&half(&id.0)).copied(),
                _ => None,
            };
            if let Some(parent) = parent {
                family.last_child[parent as usize] = row;
            }
            let before = record.id().and_then(|id| rows.insert(half(&id.0), row));
            family.parents.push(parent.unwrap_or(NONE));
            family.last_child.push(NONE);
            family.repeated.push(before.is_some());
        }
        Ok(family)
    }

    pub(super) fn parent(&self, row: u32) -> Option<u32> {
        self.parents
            .get(row as usize)
            .copied()
            .filter(|parent| *parent != NONE)
    }

    pub(super) fn is_repeated(&self, row: u32) -> bool {
        self.repeated.get(row as usize).is_some_and(|again| *again)
    }

    fn last_child(&self, row: u32) -> Option<u32> {
        self.last_child
            .get(row as usize)
            .copied()
            .filter(|child| *child != NONE)
    }
}

/// Half of an id tells records apart as well as all of it.
fn half(id: &[u8; 32]) -> [u8; 16] {
    std::array::from_fn(|n| id[n])
}

/// The lines before a record.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Drawn {
    pub(super) text: String,
    pub(super) width: usize,
}

/// Draws the rows of a trace, one after the other.
#[derive(Debug)]
pub(super) struct Painter<'f> {
    family: &'f Family,
    unicode: bool,
    /// The record that each column waits to go on with.
    columns: Vec<Option<u32>>,
}

impl<'f> Painter<'f> {
    pub(super) fn new(family: &'f Family, unicode: bool) -> Self {
        Self {
            family,
            unicode,
            columns: Vec::new(),
        }
    }

    /// The lines before the next record, which is this one.
    pub(super) fn row(&mut self, row: u32) -> Drawn {
        let parent = self.family.parent(row);
        let from = parent.and_then(|parent| self.columns.iter().position(|it| *it == Some(parent)));
        let goes_on = parent.is_some_and(|parent| self.family.last_child(parent) == Some(row));
        let column = match from {
            Some(column) if goes_on => column,
            from => self.free(from.map_or(0, |from| from + 1)),
        };
        self.columns[column] = Some(row);
        let drawn = self.draw(column, from.filter(|from| *from != column));
        if self.family.last_child(row).is_none() {
            self.columns[column] = None;
        }
        while self.columns.last() == Some(&None) {
            self.columns.pop();
        }
        drawn
    }

    /// The first free column from one on.
    fn free(&mut self, from: usize) -> usize {
        let found = self.columns.iter().skip(from).position(Option::is_none);
        let column = found.map_or(self.columns.len().max(from), |at| from + at);
        if column >= self.columns.len() {
            self.columns.resize(column + 1, None);
        }
        column
    }

    fn draw(&self, column: usize, from: Option<usize>) -> Drawn {
        let [star, bar, branch, cross, dash] = if self.unicode {
            ["●", "│", "├", "┼", "─"]
        } else {
            ["*", "|", "|", "+", "-"]
        };
        let (mut text, mut width) = (String::new(), 0);
        // A line to a new column crosses those between.
        let crossed = |at: usize| from.is_some_and(|from| (from..column).contains(&at));
        for (at, held) in self.columns.iter().enumerate().take(MOST) {
            let (mark, gap) = match held {
                _ if at == column => (star, " "),
                _ if from == Some(at) => (branch, dash),
                Some(_) if crossed(at) => (cross, dash),
                None if crossed(at) => (dash, dash),
                Some(_) => (bar, " "),
                None => (" ", " "),
            };
            text.push_str(mark);
            text.push_str(gap);
            width += 2;
        }
        let kept = text.trim_end().len();
        width -= text.len() - kept;
        text.truncate(kept);
        if column >= MOST {
            text.push_str(if self.unicode { "…" } else { ">" });
            width += 1;
        }
        Drawn { text, width }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A family from the parents of its members.
    fn family(parents: &[Option<u32>]) -> Family {
        let mut family = Family::default();
        for (row, parent) in (0..).zip(parents) {
            if let Some(parent) = parent {
                family.last_child[*parent as usize] = row;
            }
            family.parents.push(parent.unwrap_or(NONE));
            family.last_child.push(NONE);
            family.repeated.push(false);
        }
        family
    }

    fn drawn(parents: &[Option<u32>], unicode: bool) -> Vec<String> {
        let family = family(parents);
        let mut painter = Painter::new(&family, unicode);
        let rows = 0..u32::try_from(parents.len()).unwrap();
        rows.map(|row| painter.row(row).text).collect()
    }

    #[test]
    fn a_chain_is_one_line() {
        let rows = drawn(&[None, Some(0), Some(1), Some(2)], true);
        assert_eq!(rows, ["●", "●", "●", "●"]);
    }

    #[test]
    fn what_branches_off_goes_to_the_right_and_comes_to_an_end() {
        // A response with three calls, of which the last goes on; a note in between.
        let parents = [
            None,
            Some(0),
            Some(1),
            Some(1),
            Some(1),
            Some(2),
            Some(3),
            Some(1),
            Some(7),
            Some(8),
        ];
        assert_eq!(
            drawn(&parents, true),
            [
                "●",
                "●",
                "├─●",
                "├─┼─●",
                "├─┼─┼─●",
                "│ ● │",
                "│   ●",
                "●",
                "●",
                "●"
            ]
        );
        assert_eq!(drawn(&parents[..4], false), ["*", "*", "|-*", "*"]);
    }

    #[test]
    fn what_follows_nothing_has_a_line_of_its_own() {
        assert_eq!(
            drawn(&[None, None, Some(0), Some(1)], true),
            ["●", "│ ●", "● │", "  ●"]
        );
        let wide: Vec<Option<u32>> = std::iter::repeat_n(None, 30)
            .chain((0..30).map(Some))
            .collect();
        let rows = drawn(&wide, true);
        assert!(
            rows[29].ends_with('…') && rows[29].chars().count() < 60,
            "{}",
            rows[29]
        );
    }
}
