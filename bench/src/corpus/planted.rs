//! Phrases that are put into sessions, and counted.

use std::collections::BTreeMap;

/// A phrase, and what looks like it.
pub(crate) struct Phrase {
    pub(crate) text: &'static str,
    /// In one of so many events.
    every: u64,
    /// The same words otherwise: in another order, with something between them, without one that nothing else says.
    decoys: [&'static str; 3],
}

/// Each has words that nothing else says, beside such as are said all the time.
pub(crate) const PHRASES: [Phrase; 3] = [
    Phrase {
        text: "quagga buffer of amethyst",
        every: 50_021,
        decoys: [
            "amethyst buffer of quagga",
            "quagga buffer made of amethyst",
            "quagga buffer of",
        ],
    },
    Phrase {
        text: "the walrus index returns",
        every: 4_999,
        decoys: [
            "index the walrus returns",
            "the walrus index never returns",
            "the index returns",
        ],
    },
    Phrase {
        text: "lichen in the cupboard",
        every: 211,
        decoys: [
            "cupboard in the lichen",
            "lichen in all the cupboard",
            "lichen in the",
        ],
    },
];

/// How many events of each session say a phrase: by phrase, then by session.
pub(crate) type Counts = BTreeMap<String, BTreeMap<String, u64>>;

/// Puts phrases into what is said.
#[derive(Default)]
pub(crate) struct Planter {
    events: u64,
}

/// A phrase that stands in an event, by its place among [`PHRASES`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Planted(pub(crate) usize);

impl Planter {
    /// Takes what the next event says, and puts into it what is its turn.
    pub(crate) fn put(&mut self, text: &mut String) -> Option<Planted> {
        let event = self.events;
        self.events += 1;
        for (n, phrase) in PHRASES.iter().enumerate() {
            // Not in the first event each, and each in one of the first.
            let turn = (event + phrase.every - 5 - 2 * n as u64) % phrase.every;
            let round = event / phrase.every;
            if turn == 0 {
                put(text, phrase.text, round);
                return Some(Planted(n));
            }
            if turn == 1 {
                let decoy = phrase.decoys[usize::try_from(round % 3).unwrap_or(0)];
                put(text, decoy, round / 3);
                return None;
            }
        }
        None
    }
}

/// Puts words before a text or behind it, at times in capitals.
fn put(text: &mut String, words: &str, round: u64) {
    match round % 3 {
        0 => *text += &["\n", words, "."].concat(),
        1 => text.insert_str(0, &[words, ", "].concat()),
        _ => *text += &[" (", &words.to_uppercase(), ")"].concat(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::words::Words;
    use super::*;

    #[test]
    fn phrases_stand_only_where_they_are_put() {
        let words = Words::new();
        for phrase in &PHRASES {
            let own = phrase.text.split(' ').filter(|word| !words.has(word));
            assert!(own.count() >= 1, "{}", phrase.text);
            for decoy in phrase.decoys {
                assert!(!decoy.contains(phrase.text), "{decoy}");
            }
        }
    }

    #[test]
    fn what_is_put_is_told() {
        let mut planter = Planter::default();
        let mut counts = [0; PHRASES.len()];
        for _ in 0..200_000 {
            let mut text = "something".to_owned();
            let told = planter.put(&mut text);
            let said = text.to_lowercase();
            for (n, phrase) in PHRASES.iter().enumerate() {
                assert_eq!(
                    said.contains(phrase.text),
                    told == Some(Planted(n)),
                    "{text}"
                );
                counts[n] += u64::from(told == Some(Planted(n)));
            }
        }
        assert_eq!(counts, [4, 41, 948]);
    }
}
