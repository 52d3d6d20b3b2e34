//! Where rules without words are tried: at digits, at an `@`, at colons between hex digits.

use std::ops::Range;

use super::attempts::{Around, Attempts};
use super::boundary;
use super::numbers::{self, Trigger};
use super::prefix::Prefixes;
use super::shape::Sequence;
use super::survey::{Survey, has};

/// Rules without words, by what leads to them.
#[derive(Debug, Default)]
pub(super) struct Triggers {
    /// With how far they reach to either side.
    at: Vec<(usize, usize, Option<usize>)>,
    plus: Vec<usize>,
    /// With as many bytes as they take at least, and whether they are addresses.
    colons: Vec<(usize, usize, bool)>,
    numbers: Vec<usize>,
    /// With how many letters there are before the first dot, and between it and the second.
    dots: Vec<(usize, usize, usize)>,
    /// What begins with letters and goes on with a digit, and how many letters that may be.
    lettered: Vec<usize>,
    letters: Vec<usize>,
    /// What those of numbers begin with, and behind them those with letters.
    prefixes: Prefixes,
}

impl Triggers {
    /// Puts rules where they belong. Each comes with all that a match of it can begin with.
    pub(super) fn new(all: Vec<(usize, Trigger, &[Sequence])>) -> Self {
        let mut this = Self::default();
        let (mut digits, mut letters) = (Vec::new(), Vec::new());
        for (rule, trigger, sequences) in all {
            match trigger {
                Trigger::At { before, behind } => this.at.push((rule, before, behind)),
                Trigger::Plus => this.plus.push(rule),
                Trigger::Dots { before, between } => this.dots.push((rule, before, between)),
                Trigger::Colons { least, address } => this.colons.push((rule, least, address)),
                Trigger::Number => {
                    this.numbers.push(rule);
                    digits.push(sequences);
                }
                Trigger::Lettered { letters: count } => {
                    this.lettered.push(rule);
                    letters.push(sequences);
                    if !this.letters.contains(&count) {
                        this.letters.push(count);
                    }
                }
            }
        }
        digits.append(&mut letters);
        this.prefixes = Prefixes::new(&digits);
        this
    }

    /// Adds where rules are to be tried in a part of a text, and where around a place they are to be looked for.
    pub(super) fn gather(
        &self,
        text: &[u8],
        part: Range<usize>,
        survey: &Survey,
        attempts: &mut Attempts,
        around: &mut Around,
    ) {
        let places = |byte: u8| {
            let places = memchr::memchr_iter(byte, &text[part.clone()]);
            places.map(|at| part.start + at)
        };
        if !self.at.is_empty() && survey.has_here(has::AT) {
            for at in places(b'@') {
                for (rule, before, behind) in &self.at {
                    let end = behind.map_or(text.len(), |behind| {
                        text.len().min(at.saturating_add(behind))
                    });
                    around.push(*rule, at.saturating_sub(*before), end);
                }
            }
        }
        if !self.plus.is_empty() && survey.has_here(has::PLUS) {
            for at in places(b'+') {
                if text.get(at + 1).is_some_and(u8::is_ascii_digit) {
                    self.plus.iter().for_each(|rule| attempts.push(at, *rule));
                }
            }
        }
        if !self.colons.is_empty() {
            numbers::colons(text, &survey.colons, |one| {
                for (rule, least, address) in &self.colons {
                    if one.length >= *least
                        && (one.address || !address)
                        && boundary::begins(text, one.begin)
                    {
                        attempts.push(one.begin, *rule);
                    }
                }
            });
        }
        for (rule, before, between) in &self.dots {
            numbers::dots(text, survey.new_rows(), *before, *between, |at| {
                if boundary::begins(text, at) {
                    attempts.push(at, *rule);
                }
            });
        }
        if self.numbers.is_empty() && self.lettered.is_empty() {
            return;
        }
        for at in &survey.numbers {
            self.number(text, *at, attempts);
        }
        for at in &survey.lettered {
            for letters in &self.letters {
                if let Some(start) = at.checked_sub(*letters) {
                    self.with_letters(text, start, attempts);
                }
            }
        }
        // Behind an escape a word begins that does not look so.
        if survey.has_here(has::ESCAPE | has::PERCENT) {
            boundary::behind_escapes(text, part.clone(), |at| {
                if text[at].is_ascii_digit() {
                    self.number(text, at, attempts);
                }
                self.with_letters(text, at, attempts);
            });
        }
    }

    /// Tries what can begin where digits do, or a little before.
    fn number(&self, text: &[u8], at: usize, attempts: &mut Attempts) {
        self.begun(text, at, at, attempts);
        if let Some(before) = at.checked_sub(1)
            && matches!(text[before], b'+' | b'(')
        {
            self.begun(text, before, at, attempts);
        }
    }

    fn begun(&self, text: &[u8], start: usize, at: usize, attempts: &mut Attempts) {
        let possible = self.prefixes.possible(&text[start..]);
        if possible == 0 || !boundary::begins(text, at) {
            return;
        }
        for (index, rule) in self.numbers.iter().enumerate() {
            if Prefixes::is_among(possible, index) {
                attempts.push(start, *rule);
            }
        }
    }

    /// Tries what begins with letters before a digit.
    fn with_letters(&self, text: &[u8], start: usize, attempts: &mut Attempts) {
        let possible = self.prefixes.possible(&text[start..]);
        if possible == 0 || !boundary::begins(text, start) {
            return;
        }
        for (index, rule) in self.lettered.iter().enumerate() {
            if Prefixes::is_among(possible, self.numbers.len() + index) {
                attempts.push(start, *rule);
            }
        }
    }
}
