//! What a session is written with: time, words, and the account of what stands in it.

use jiff::Timestamp;

use super::dice::Dice;
use super::planted::{Planted, Planter};
use super::truth::Tokens;
use super::words::Words;

/// What all sessions of a corpus share.
pub(super) struct Pen {
    pub(super) dice: Dice,
    pub(super) words: Words,
    pub(super) planter: Planter,
}

/// A line of a log.
#[derive(Clone)]
pub(super) struct Line {
    pub(super) text: String,
    pub(super) planted: Option<Planted>,
    /// The tokens of a call that does not name its request.
    pub(super) unnamed: Option<Tokens>,
}

/// The first moment that anything is said, in milliseconds since 1970: the beginning of 2026.
const BEGINNING: i64 = 1_767_225_600_000;
const DAY: i64 = 86_400_000;
/// Over so many days sessions are spread.
const DAYS: usize = 240;

impl Pen {
    pub(super) fn new(seed: u64) -> Self {
        Self {
            dice: Dice::new(seed),
            words: Words::new(),
            planter: Planter::default(),
        }
    }

    /// When a session begins.
    pub(super) fn begin(&mut self) -> i64 {
        let day = i64::try_from(self.dice.below(DAYS)).unwrap_or(0);
        let moment = i64::try_from(self.dice.below(70_000_000)).unwrap_or(0);
        BEGINNING + day * DAY + moment
    }

    /// Some seconds later; now and then after a pause.
    pub(super) fn later(&mut self, at: &mut i64) -> Timestamp {
        let ms = 300 + self.dice.below(4_000);
        let pause = if self.dice.below(400) == 0 {
            self.dice.below(1_200_000)
        } else {
            0
        };
        *at += i64::try_from(ms + pause).unwrap_or(0);
        Timestamp::from_millisecond(*at).unwrap_or(Timestamp::UNIX_EPOCH)
    }

    /// What somebody says, as a JSON string, and what was put into it.
    pub(super) fn prose(&mut self, least: usize, more: usize) -> (String, Option<Planted>) {
        let words = least + self.dice.below(more);
        let mut text = self.words.prose(&mut self.dice, words);
        let planted = self.planter.put(&mut text);
        (quote(&text), planted)
    }

    /// What a tool gives back: mostly little, sometimes very much.
    pub(super) fn output(&mut self) -> (String, Option<Planted>) {
        let lines = match self.dice.below(100) {
            0..60 => 2 + self.dice.below(20),
            60..93 => 20 + self.dice.below(130),
            93..99 => 150 + self.dice.below(350),
            _ => 1_000 + self.dice.below(3_000),
        };
        let mut text = self.words.code(&mut self.dice, lines);
        let planted = self.planter.put(&mut text);
        (quote(&text), planted)
    }

    /// How long a log is to become.
    pub(super) fn length(&mut self) -> usize {
        60_000 + self.dice.below(900_000)
    }

    pub(super) fn name(&mut self) -> String {
        self.words.name(&mut self.dice).to_owned()
    }
}

/// A text as JSON has it.
pub(super) fn quote(text: &str) -> String {
    serde_json::to_string(text).expect("a text can be written")
}
