//! What made-up sessions say: prose and code with as many different words as real ones have, a few of which
//! are said all the time.

use std::collections::HashSet;
use std::fmt::Write as _;

use super::dice::Dice;

const WORDS: usize = 30_000;
const NAMES: usize = 20_000;

/// The words that are said most, the most frequent first.
const FREQUENT: [&str; 72] = [
    "the",
    "to",
    "of",
    "and",
    "is",
    "in",
    "file",
    "test",
    "when",
    "error",
    "value",
    "returns",
    "should",
    "because",
    "after",
    "before",
    "buffer",
    "parse",
    "token",
    "config",
    "handler",
    "request",
    "async",
    "match",
    "module",
    "write",
    "queue",
    "index",
    "session",
    "cache",
    "state",
    "build",
    "branch",
    "commit",
    "render",
    "struct",
    "field",
    "thread",
    "lock",
    "retry",
    "timeout",
    "stream",
    "encode",
    "decode",
    "path",
    "update",
    "remove",
    "add",
    "check",
    "fails",
    "lines",
    "output",
    "command",
    "result",
    "types",
    "schema",
    "query",
    "row",
    "table",
    "user",
    "client",
    "server",
    "message",
    "event",
    "naïve",
    "größer",
    "日本語",
    "データ",
    "привет",
    "été",
    "señal",
    "→",
];

/// What the other words are made of.
const SYLLABLES: [&str; 60] = [
    "al", "an", "ar", "bel", "ber", "bo", "cal", "cen", "cor", "dan", "del", "dor", "el", "en",
    "er", "fan", "fer", "fol", "gal", "gen", "gor", "hal", "hem", "is", "jan", "jor", "kal", "ken",
    "lan", "len", "lor", "mal", "men", "mor", "nal", "nen", "nor", "ol", "or", "pal", "pen", "por",
    "ral", "ren", "ron", "sal", "sen", "sor", "tal", "ten", "tor", "ul", "un", "val", "ven", "vor",
    "wal", "wen", "zan", "zel",
];

/// A vocabulary. There is one, the same for every corpus.
pub(crate) struct Words {
    all: Vec<String>,
    /// How much is said of each word and of those before it.
    shares: Vec<u64>,
    /// Names as they stand in code.
    names: Vec<String>,
}

impl Words {
    pub(crate) fn new() -> Self {
        let mut dice = Dice::new(1);
        let mut all: Vec<String> = FREQUENT.map(str::to_owned).to_vec();
        let mut known: HashSet<String> = all.iter().cloned().collect();
        while all.len() < WORDS {
            let word: String = (0..2 + dice.below(3))
                .map(|_| dice.pick(&SYLLABLES))
                .collect();
            if known.insert(word.clone()) {
                all.push(word);
            }
        }
        let mut sum = 0;
        let shares = (0..WORDS as u64).map(|rank| {
            // The second word is said about half as often as the first, the third a third as often.
            sum += 1_000_000_000 / (rank + 3);
            sum
        });
        let mut words = Self {
            shares: shares.collect(),
            all,
            names: Vec::new(),
        };
        words.names = (0..NAMES).map(|_| words.make_name(&mut dice)).collect();
        words
    }

    fn make_name(&self, dice: &mut Dice) -> String {
        let parts: Vec<String> = (0..=dice.below(3))
            .map(|_| self.ascii(dice).to_owned())
            .collect();
        let upper = |word: &String| word[..1].to_uppercase() + &word[1..];
        match dice.below(3) {
            0 => parts.join("_"),
            1 => parts[0].clone() + &parts[1..].iter().map(upper).collect::<String>(),
            _ => parts.iter().map(upper).collect(),
        }
    }

    #[cfg(test)]
    pub(super) fn has(&self, word: &str) -> bool {
        self.all.iter().any(|other| other == word)
    }

    pub(crate) fn word(&self, dice: &mut Dice) -> &str {
        let all = self.shares.last().copied().unwrap_or(1);
        let at = dice.next() % all;
        &self.all[self.shares.partition_point(|share| *share <= at)]
    }

    fn ascii(&self, dice: &mut Dice) -> &str {
        loop {
            let word = self.word(dice);
            if word.is_ascii() {
                return word;
            }
        }
    }

    /// A name, some far more often than others.
    pub(crate) fn name(&self, dice: &mut Dice) -> &str {
        let below = 1 + dice.below(NAMES);
        &self.names[dice.below(below)]
    }

    pub(crate) fn prose(&self, dice: &mut Dice, words: usize) -> String {
        let mut text = String::new();
        for n in 0..words {
            if n > 0 {
                text.push_str(match dice.below(40) {
                    0 => ".\n",
                    1 | 2 => ". ",
                    3 | 4 => ", ",
                    _ => " ",
                });
            }
            if dice.chance(4) {
                let name = self.name(dice);
                text.push('`');
                text.push_str(name);
                text.push('`');
            } else {
                text.push_str(self.word(dice));
            }
        }
        text
    }

    /// Something like source code, a diff, or what a compiler says.
    pub(crate) fn code(&self, dice: &mut Dice, lines: usize) -> String {
        let mut text = String::new();
        for n in 0..lines {
            let indent = dice.below(4) * 4;
            let (a, b, c) = (self.name(dice), self.name(dice), self.word(dice));
            let number = dice.below(10_000);
            let written = match dice.below(10) {
                0 => writeln!(text, "{:indent$}let {a} = {b}::new({number});", ""),
                1 => writeln!(
                    text,
                    "{:indent$}if {a}.{b}() {{ return Err(\"{c}\".into()); }}",
                    ""
                ),
                2 => writeln!(
                    text,
                    "{n:>6}\tpub fn {a}(&self, {c}: usize) -> Result<{b}> {{"
                ),
                3 => writeln!(
                    text,
                    "{:indent$}// {c} {} {}",
                    "",
                    self.word(dice),
                    self.word(dice)
                ),
                4 => writeln!(text, "src/{a}/{b}.rs:{number}:{n}: {c}"),
                5 => writeln!(text, "+{:indent$}self.{a}.insert(\"{c}\", {b});", ""),
                6 => writeln!(text, "test {a}::tests::{b} ... ok"),
                7 => writeln!(text, "{:08x} {c} {a} ({number} ms)", dice.next() >> 32),
                8 => writeln!(text, "warning: unused variable: `{a}` in {b}"),
                _ => writeln!(text, "{:indent$}}}", ""),
            };
            written.expect("a string takes all");
        }
        text
    }
}
