//! Where a text says what was looked for.

use std::collections::HashMap;
use std::ops::Range;

use crate::query::Query;
use crate::words;

/// How many places are marked at most.
const MOST: usize = 1_000;

/// A phrase is compared as far as this many words.
const LONGEST: usize = 64;

/// Marks the words of a query in texts.
#[derive(Debug)]
pub struct Marker {
    /// What is looked for: how many words each has.
    sought: Vec<usize>,
    /// For each word, in what it is looked for and at which places, as bits.
    words: HashMap<String, Vec<(usize, u64)>>,
    /// Words that may go on, with the same.
    beginnings: Vec<(String, usize, u64)>,
    /// Every word that is looked for, for texts in which no phrase stands as it was asked for.
    single: HashMap<String, usize>,
}

/// A match in a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mark {
    /// Where it stands, in bytes.
    pub range: Range<usize>,
    /// Which of the words and phrases of the query it is.
    pub sought: usize,
}

/// A piece of a text around what was found in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Snippet {
    /// Where it stands in the text, in bytes.
    pub range: Range<usize>,
    /// What is to be marked in it, from its own beginning, in order.
    pub marks: Vec<Range<usize>>,
}

#[derive(Debug, Clone, Copy, Default)]
struct Progress {
    /// Which words of the phrase were just seen, as bits.
    state: u64,
    /// The word of the text for which this is so.
    position: u32,
}

impl Marker {
    /// Marks what a query looks for.
    pub fn new(query: &Query) -> Self {
        let mut marker = Self {
            sought: Vec::new(),
            words: HashMap::new(),
            beginnings: Vec::new(),
            single: HashMap::new(),
        };
        for wanted in query.words() {
            let mut row = Vec::new();
            words::whole(wanted.text, |word| row.push(word.text.to_owned()));
            row.truncate(LONGEST);
            let index = marker.sought.len();
            let prefix = wanted.prefix || row.len() == 1 && crate::index::is_hash(wanted.text);
            marker.sought.push(row.len());
            let last = row.len().saturating_sub(1);
            for (place, word) in row.into_iter().enumerate() {
                let bit = 1_u64 << place;
                marker.single.entry(word.clone()).or_insert(index);
                if prefix && place == last {
                    marker.beginnings.push((word, index, bit));
                    continue;
                }
                let places = marker.words.entry(word).or_default();
                match places.last_mut() {
                    Some((of, bits)) if *of == index => *bits |= bit,
                    _ => places.push((index, bit)),
                }
            }
        }
        marker
    }

    /// Whether any word is looked for at all.
    pub fn has_words(&self) -> bool {
        !self.single.is_empty()
    }

    /// Where a text says what is looked for, in order and without overlaps.
    pub fn marks(&self, text: &str) -> Vec<Mark> {
        let mut marks = self.rows(text);
        if marks.is_empty() {
            words::each(text, |word| {
                if let Some(sought) = self.single.get(word.text)
                    && marks.len() < MOST
                {
                    let (range, sought) = (word.range, *sought);
                    marks.push(Mark { range, sought });
                }
            });
        }
        marks.sort_by_key(|mark| (mark.range.start, std::cmp::Reverse(mark.range.end)));
        let mut end = 0;
        marks.retain(|mark| {
            let apart = mark.range.start >= end;
            if apart {
                end = mark.range.end;
            }
            apart
        });
        marks
    }

    fn rows(&self, text: &str) -> Vec<Mark> {
        let mut marks = Vec::new();
        let mut progress = vec![Progress::default(); self.sought.len()];
        let mut starts = [0_usize; LONGEST];
        words::each(text, |word| {
            if marks.len() >= MOST {
                return;
            }
            let slot = word.position as usize % LONGEST;
            if !word.part {
                starts[slot] = word.range.start;
            }
            let mut step = |sought: usize, bits: u64| {
                let length = self.sought[sought];
                if length == 1 {
                    let range = word.range.clone();
                    marks.push(Mark { range, sought });
                    return;
                }
                // A part stands alone: phrases are made of whole words.
                if word.part {
                    return;
                }
                let before = progress[sought];
                let follows = before.position + 1 == word.position;
                let state = if follows { before.state << 1 } else { 0 };
                let state = (state | 1) & bits;
                progress[sought] = Progress {
                    state,
                    position: word.position,
                };
                if state >> (length - 1) & 1 == 1 {
                    let first = starts[(slot + LONGEST + 1 - length) % LONGEST];
                    let range = first..word.range.end;
                    marks.push(Mark { range, sought });
                }
            };
            let exact = self.words.get(word.text).map_or(&[][..], Vec::as_slice);
            let mut last_seen: Option<(usize, u64)> = None;
            for (sought, bits) in exact {
                let more = self.beginning(word.text, *sought);
                last_seen = Some((*sought, more));
                step(*sought, bits | more);
            }
            for (beginning, sought, bit) in &self.beginnings {
                let done = last_seen.is_some_and(|(of, _)| of == *sought);
                if !done && word.text.starts_with(beginning.as_str()) {
                    step(*sought, *bit);
                }
            }
        });
        marks
    }

    /// The places at which a word is the beginning of one that is looked for in the same phrase.
    fn beginning(&self, word: &str, sought: usize) -> u64 {
        let same = self.beginnings.iter().filter(|(_, of, _)| *of == sought);
        same.filter(|(beginning, ..)| word.starts_with(beginning.as_str()))
            .fold(0, |bits, (.., bit)| bits | bit)
    }
}

/// The piece of a text, about as long as asked for, in which the most is marked.
pub fn snippet(text: &str, marks: &[Mark], length: usize) -> Snippet {
    let mut best = (0, 0..0);
    let mut end = 0;
    for (from, mark) in marks.iter().enumerate() {
        end = end.max(from);
        while end < marks.len() && marks[end].range.end <= mark.range.start + length {
            end += 1;
        }
        let mut kinds: Vec<usize> = marks[from..end].iter().map(|mark| mark.sought).collect();
        kinds.sort_unstable();
        kinds.dedup();
        if kinds.len() > best.0 {
            best = (kinds.len(), from..end);
        }
    }
    let marks = &marks[best.1];
    let first = marks.first().map_or(0, |mark| mark.range.start);
    let last = marks.last().map_or(first, |mark| mark.range.end);
    // What was found stands in the middle.
    let room = length.saturating_sub(last - first);
    let start = floor(text, first.saturating_sub(room / 2));
    let end = floor(text, (start + length).max(last).min(text.len()));
    let (start, end) = at_words(text, start, end, first, last);
    Snippet {
        range: start..end,
        marks: marks
            .iter()
            .map(|mark| mark.range.start - start..mark.range.end - start)
            .collect(),
    }
}

/// Moves both ends to spaces nearby: inwards, or outwards where what was found is in the way.
fn at_words(text: &str, start: usize, end: usize, first: usize, last: usize) -> (usize, usize) {
    const FAR: usize = 24;
    let mut from = start;
    if start > 0 {
        let near = &text[start..first.min(floor(text, start + FAR))];
        let inwards = near.find(char::is_whitespace).map(|at| start + at);
        from = inwards.unwrap_or_else(|| {
            let begin = floor(text, start.saturating_sub(FAR));
            let before = text[begin..start].rfind(char::is_whitespace);
            before.map_or(start, |at| begin + at)
        });
    }
    let mut to = end;
    if end < text.len() {
        let begin = floor(text, end.saturating_sub(FAR)).max(last);
        let near = text.get(begin..end).unwrap_or_default();
        to = near.rfind(char::is_whitespace).map_or(end, |at| begin + at);
    }
    let shown = &text[from..to];
    let from = from + (shown.len() - shown.trim_start().len());
    (from.min(first), to.max(last))
}

fn floor(text: &str, at: usize) -> usize {
    let at = at.min(text.len());
    (0..=at)
        .rev()
        .find(|at| text.is_char_boundary(*at))
        .unwrap_or(0)
}
