//! What can be said of an expression without running it: where in a match a keyword of the rule stands.
//!
//! Most rules begin with their keyword, so they are tried where it stands and nowhere else. Of others it is known how far
//! before and behind it a match can reach. Of the rest nothing is known, and they are looked for in the whole text.

use regex_syntax::hir::{Class, Hir, HirKind, Look};
use serde::{Deserialize, Serialize};

/// Sequences that one expression can begin with, at most.
const SEQUENCES: usize = 96;
/// Bytes of a beginning that are looked at, at most.
pub(super) const PREFIX: usize = 40;

/// An expression without what stands before its secret and is not part of it.
#[derive(Debug, Clone)]
pub(super) struct Core {
    /// What is tried.
    pub(super) hir: Hir,
    /// Whether a word has to begin where it begins.
    pub(super) boundary: bool,
}

/// Takes a word boundary and what may or may not stand before the keyword off the front.
///
/// `whole` says that all of the match is the secret: then only boundaries go.
pub(super) fn core(hir: &Hir, whole: bool) -> Core {
    let mut parts = flat(hir);
    let (mut boundary, mut inside, mut skip) = (false, false, 0);
    for part in &parts {
        match part.kind() {
            HirKind::Look(
                Look::WordAscii
                | Look::WordAsciiNegate
                | Look::WordStartAscii
                | Look::WordStartHalfAscii,
            ) => {
                boundary = true;
                inside = matches!(part.kind(), HirKind::Look(Look::WordAsciiNegate));
            }
            HirKind::Repetition(repetition)
                if !whole && !boundary && !repetition.greedy && repetition.min == 0 =>
            {
                if part.properties().explicit_captures_len() > 0 {
                    break;
                }
            }
            _ => break,
        }
        skip += 1;
        if boundary {
            break;
        }
    }
    // A boundary before something that is no word would be one at the end of a word, and no boundary before it is none
    // of a word.
    if boundary && !begins_word(&parts[skip..], !inside) {
        return Core {
            hir: hir.clone(),
            boundary: false,
        };
    }
    let rest = parts.split_off(skip);
    Core {
        hir: Hir::concat(rest),
        boundary,
    }
}

/// Whether every match begins with a letter of a word, or with none.
fn begins_word(parts: &[Hir], word: bool) -> bool {
    let sequences = sequences(parts);
    let first = |set: &Set| set.all(|byte| (byte.is_ascii_alphanumeric() || byte == b'_') == word);
    sequences.is_some_and(|all| all.iter().all(|one| one.sets.first().is_some_and(first)))
}

/// The parts of an expression one behind the other; those of a group that is the first part among them as one.
fn flat(hir: &Hir) -> Vec<Hir> {
    match hir.kind() {
        HirKind::Concat(parts) => parts.clone(),
        _ => vec![hir.clone()],
    }
}

/// Some bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Set([u64; 4]);

impl Set {
    fn new() -> Self {
        Self::default()
    }

    fn add(&mut self, byte: u8) {
        self.0[usize::from(byte >> 6)] |= 1 << (byte & 63);
    }

    fn add_all(&mut self, from: u8, to: u8) {
        for (word, bits) in self.0.iter_mut().enumerate() {
            let low = usize::from(from).max(word * 64);
            let high = usize::from(to).min(word * 64 + 63);
            if low <= high {
                *bits |= !0 >> (63 - (high - low)) << (low - word * 64);
            }
        }
    }

    pub(super) fn has(&self, byte: u8) -> bool {
        self.0[usize::from(byte >> 6)] >> (byte & 63) & 1 == 1
    }

    /// Whether each of them is so; not of none.
    pub(super) fn all(&self, is: impl Fn(u8) -> bool) -> bool {
        *self != Self::new() && self.bytes().all(is)
    }

    /// Each of them.
    pub(super) fn bytes(&self) -> impl Iterator<Item = u8> {
        (0_u8..4).flat_map(|word| {
            let mut bits = self.0[usize::from(word)];
            std::iter::from_fn(move || {
                let bit = u8::try_from(bits.trailing_zeros())
                    .ok()
                    .filter(|bit| *bit < 64)?;
                bits &= bits - 1;
                Some(word * 64 + bit)
            })
        })
    }

    /// Whether it is one letter, but for its case.
    fn is(&self, letter: u8) -> bool {
        let mut both = Self::new();
        both.add(letter.to_ascii_lowercase());
        both.add(letter.to_ascii_uppercase());
        let others = self
            .0
            .iter()
            .zip(both.0)
            .any(|(mine, both)| mine & !both != 0);
        !others && *self != Self::new()
    }

    /// The one of ASCII that they are, but for its case.
    fn letter(&self) -> Option<u8> {
        let first = self.bytes().find(u8::is_ascii)?.to_ascii_lowercase();
        self.is(first).then_some(first)
    }

    /// Each of them alone, but for its case, when there are few and more than one.
    fn few(&self) -> Option<Vec<Self>> {
        let mut sets: Vec<(u8, Self)> = Vec::new();
        for byte in self.bytes() {
            let lower = byte.to_ascii_lowercase();
            let known = sets.iter().position(|(known, _)| *known == lower);
            let index = known.unwrap_or(sets.len());
            if index == 6 {
                return None;
            }
            if known.is_none() {
                sets.push((lower, Self::new()));
            }
            sets[index].1.add(byte);
        }
        let digits = self.all(|byte| byte.is_ascii_digit());
        let few = if digits { 2 } else { 6 };
        (2..=few)
            .contains(&sets.len())
            .then(|| sets.into_iter().map(|(_, set)| set).collect())
    }

    /// All bytes.
    pub(super) const ALL: Self = Self([!0; 4]);

    pub(super) fn union(&mut self, other: &Self) {
        for (mine, theirs) in self.0.iter_mut().zip(other.0) {
            *mine |= theirs;
        }
    }
}

/// What a match can begin with, byte by byte.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Sequence {
    pub(super) sets: Vec<Set>,
    /// Whether something else may follow than what comes next.
    open: bool,
}

/// All that a match of these parts can begin with. `None` when that is too much to say.
pub(super) fn sequences(parts: &[Hir]) -> Option<Vec<Sequence>> {
    let mut all = vec![Sequence {
        sets: Vec::new(),
        open: true,
    }];
    for part in parts {
        append(&mut all, part)?;
        if all.iter().all(|one| !one.open) {
            break;
        }
    }
    Some(all)
}

fn append(all: &mut Vec<Sequence>, hir: &Hir) -> Option<()> {
    if all.iter().all(|one| !one.open) {
        return Some(());
    }
    match hir.kind() {
        HirKind::Empty | HirKind::Look(_) => {}
        HirKind::Literal(literal) => {
            for byte in &literal.0 {
                let mut set = Set::new();
                set.add(*byte);
                push(all, set);
            }
        }
        HirKind::Class(class) => match set_of(class) {
            Some(set) => match set.few() {
                // `[?&]code=` is as good as two words.
                Some(sets) if all.len() * sets.len() <= SEQUENCES => {
                    let (open, mut forks): (Vec<_>, Vec<_>) =
                        all.drain(..).partition(|one| one.open);
                    for set in sets {
                        let mut fork = open.clone();
                        push(&mut fork, set);
                        forks.append(&mut fork);
                    }
                    *all = forks;
                }
                _ => push(all, set),
            },
            None => close(all),
        },
        HirKind::Capture(capture) => append(all, &capture.sub)?,
        HirKind::Repetition(repetition) => {
            for _ in 0..repetition.min.min(u32::try_from(PREFIX).unwrap_or(0)) {
                append(all, &repetition.sub)?;
            }
            if repetition.max != Some(repetition.min) {
                optional(all, repetition)?;
            }
        }
        HirKind::Concat(parts) => {
            for part in parts {
                append(all, part)?;
            }
        }
        // Too much to follow: what is known so far is known.
        HirKind::Alternation(parts) if all.len() * parts.len() > SEQUENCES => close(all),
        HirKind::Alternation(parts) => {
            let (open, mut forks): (Vec<_>, Vec<_>) = all.drain(..).partition(|one| one.open);
            for part in parts {
                let mut fork = open.clone();
                append(&mut fork, part)?;
                forks.append(&mut fork);
            }
            *all = forks;
        }
    }
    if all.len() > SEQUENCES {
        close(all);
    }
    (all.len() <= SEQUENCES * 8).then_some(())
}

/// What may be there a few times more or not. More than twice more is not followed.
fn optional(all: &mut Vec<Sequence>, repetition: &regex_syntax::hir::Repetition) -> Option<()> {
    let more = repetition.max.map(|max| max.saturating_sub(repetition.min));
    let more = more.and_then(|more| usize::try_from(more).ok());
    let Some(more @ 1..=2) = more.filter(|more| all.len() * (more + 1) <= SEQUENCES) else {
        close(all);
        return Some(());
    };
    let mut fork: Vec<_> = all.iter().filter(|one| one.open).cloned().collect();
    for _ in 0..more {
        append(&mut fork, &repetition.sub)?;
        all.extend(fork.iter().cloned());
    }
    Some(())
}

fn push(all: &mut [Sequence], set: Set) {
    for one in all.iter_mut().filter(|one| one.open) {
        one.sets.push(set);
        one.open = one.sets.len() < PREFIX;
    }
}

fn close(all: &mut [Sequence]) {
    for one in all {
        one.open = false;
    }
}

fn set_of(class: &Class) -> Option<Set> {
    let mut set = Set::new();
    match class {
        Class::Bytes(class) => {
            for range in class.ranges() {
                set.add_all(range.start(), range.end());
            }
        }
        Class::Unicode(class) => {
            for range in class.ranges() {
                let end = u8::try_from(u32::from(range.end()))
                    .ok()
                    .filter(u8::is_ascii)?;
                let begin = u8::try_from(u32::from(range.start())).ok()?;
                set.add_all(begin, end);
            }
        }
    }
    Some(set)
}

/// The place of a keyword in what a match can begin with.
fn place(sequence: &Sequence, keyword: &[u8]) -> Option<usize> {
    let spells = |sets: &[Set]| {
        let mut pairs = sets.iter().zip(keyword);
        pairs.all(|(set, byte)| set.is(*byte))
    };
    sequence.sets.windows(keyword.len().max(1)).position(spells)
}

/// A word of which matches are known.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Anchor {
    pub(super) word: String,
    /// How many bytes of the match are before it.
    pub(super) offset: usize,
    /// What can stand behind it; anything without.
    pub(super) next: Option<Set>,
}

/// Words of which one stands in every match.
///
/// Where keywords stand in some matches only, what the others begin with is a word as well. Where they stand in none, they
/// are about the text around, and nothing is known.
pub(super) fn anchors(hir: &Hir, keywords: &[String]) -> Option<Vec<Anchor>> {
    let all = sequences(std::slice::from_ref(hir))?;
    let mut places = Vec::new();
    let mut given = false;
    for sequence in &all {
        let found = keywords
            .iter()
            .filter_map(|keyword| Some((keyword, place(sequence, keyword.as_bytes())?)));
        // The longest says most.
        let best = found.max_by_key(|(keyword, _)| keyword.len());
        given |= best.is_some();
        let best = best
            .map(|(keyword, place)| (keyword.clone(), place))
            .or_else(|| spelled(sequence))?;
        let (word, offset) = best;
        let next = sequence.sets.get(offset + word.len()).copied();
        let best = Anchor { word, offset, next };
        if !places.contains(&best) {
            places.push(best);
        }
    }
    given.then_some(places)
}

/// The longest word that a match begins with for certain, if it is long enough to be rare.
fn spelled(sequence: &Sequence) -> Option<(String, usize)> {
    let mut best: Option<(String, usize)> = None;
    let mut word = String::new();
    for (index, set) in sequence.sets.iter().enumerate() {
        match set.letter() {
            Some(letter) => word.push(char::from(letter)),
            None => word.clear(),
        }
        if word.len() >= 4
            && best
                .as_ref()
                .is_none_or(|(best, _)| word.len() > best.len())
        {
            best = Some((word.clone(), index + 1 - word.len()));
        }
    }
    best
}

/// How far a match reaches before and behind the first byte of a keyword in it; `None` for no end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Reach {
    pub(super) before: Option<usize>,
    pub(super) behind: Option<usize>,
}

/// How far every match reaches around a keyword. `None` when there may be matches without any.
pub(super) fn reach(hir: &Hir, keywords: &[String]) -> Option<Reach> {
    let parts = match hir.kind() {
        HirKind::Capture(capture) => return reach(&capture.sub, keywords),
        HirKind::Alternation(parts) => {
            let mut reaches = parts.iter().map(|part| reach(part, keywords));
            let first = reaches.next()??;
            return reaches.try_fold(first, |sum, reach| Some(wider(sum, reach?)));
        }
        HirKind::Concat(parts) => parts.as_slice(),
        _ => std::slice::from_ref(hir),
    };
    for (index, part) in parts.iter().enumerate() {
        let before = parts[..index].iter().try_fold(0_usize, |sum, part| {
            Some(sum.saturating_add(part.properties().maximum_len()?))
        });
        let behind = |from: usize| {
            parts[from..].iter().try_fold(0_usize, |sum, part| {
                Some(sum.saturating_add(part.properties().maximum_len()?))
            })
        };
        if let Some(places) = sequences(&parts[index..]).and_then(|all| {
            let first = |one: &Sequence| {
                let places = keywords
                    .iter()
                    .filter_map(|word| place(one, word.as_bytes()));
                places.min()
            };
            all.iter().map(first).collect::<Option<Vec<usize>>>()
        }) {
            return Some(Reach {
                before: before.map(|sum| sum + places.into_iter().max().unwrap_or(0)),
                behind: behind(index),
            });
        }
        if matches!(part.kind(), HirKind::Capture(_) | HirKind::Alternation(_))
            && let Some(inner) = reach(part, keywords)
        {
            let add = |sum: Option<usize>, more: Option<usize>| Some(sum?.saturating_add(more?));
            return Some(Reach {
                before: add(before, inner.before),
                behind: add(inner.behind, behind(index + 1)),
            });
        }
    }
    None
}

fn wider(one: Reach, other: Reach) -> Reach {
    let max = |one: Option<usize>, other: Option<usize>| Some(one?.max(other?));
    Reach {
        before: max(one.before, other.before),
        behind: max(one.behind, other.behind),
    }
}

/// All bytes that can stand in a match. `None` when other scripts can.
pub(super) fn alphabet(hir: &Hir) -> Option<Set> {
    let mut set = Set::new();
    match hir.kind() {
        HirKind::Empty | HirKind::Look(_) => {}
        HirKind::Literal(literal) => literal.0.iter().for_each(|byte| set.add(*byte)),
        HirKind::Class(class) => set = set_of(class)?,
        HirKind::Capture(capture) => return alphabet(&capture.sub),
        HirKind::Repetition(repetition) => return alphabet(&repetition.sub),
        HirKind::Concat(parts) | HirKind::Alternation(parts) => {
            for part in parts {
                set.union(&alphabet(part)?);
            }
        }
    }
    Some(set)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rule::Expression;

    fn hir(source: &str) -> Hir {
        Expression::parse(source).unwrap().hir
    }

    fn words(words: &[&str]) -> Vec<String> {
        words.iter().map(|word| (*word).to_owned()).collect()
    }

    #[test]
    fn sets_hold_what_was_added() {
        for (from, to) in [(0, 255), (0, 0), (63, 64), (b'a', b'z'), (200, 255), (5, 4)] {
            let mut set = Set::new();
            set.add_all(from, to);
            let expected: Vec<u8> = (from..=to).collect();
            assert_eq!(set.bytes().collect::<Vec<_>>(), expected);
            assert!((0..=255).all(|byte| set.has(byte) == expected.contains(&byte)));
        }
        let mut set = Set::new();
        assert!(!set.is(b'a') && !set.all(|_| true));
        set.add(b'A');
        assert!(set.is(b'a') && set.letter() == Some(b'a'));
        set.add(b'b');
        assert!(!set.is(b'a') && set.letter().is_none());
    }

    #[test]
    fn rules_begin_with_their_keyword() {
        type Case<'a> = (&'a str, &'a [&'a str], &'a [(&'a str, usize)]);
        let cases: [Case<'_>; 8] = [
            (r"\bghp_[0-9a-zA-Z]{36}\b", &["ghp_"], &[("ghp_", 0)]),
            (
                r"(?i)\b(clojars_[a-z0-9]{60})",
                &["clojars_"],
                &[("clojars_", 0)],
            ),
            (
                r"\b((?:A3T[A-Z0-9]|AKIA|ASIA)[A-Z2-7]{16})\b",
                &["a3t", "akia", "asia"],
                &[("a3t", 0), ("akia", 0), ("asia", 0)],
            ),
            (r"\b([rs]k_live_[a-z]{3})", &["k_live_"], &[("k_live_", 1)]),
            (
                r"(?i)[\w.-]{0,50}?(?:adafruit)(?:[ \t\w.-]{0,20})=([a-z]{32})",
                &["adafruit"],
                &[("adafruit", 0)],
            ),
            (r"(?:ya)?29\.[a-z]{3}", &["29."], &[("29.", 0), ("29.", 2)]),
            (
                r"[?&]code=([a-z]{3})",
                &["?code=", "&code="],
                &[("&code=", 0), ("?code=", 0)],
            ),
            (
                r"\bcal_(?:live_)?[0-9a-f]{32}",
                &["cal_live_"],
                &[("cal_", 0), ("cal_live_", 0)],
            ),
        ];
        for (source, keywords, expected) in cases {
            let core = core(&hir(source), false);
            let found = anchors(&core.hir, &words(keywords)).unwrap();
            let mut found: Vec<(String, usize)> = found
                .into_iter()
                .map(|anchor| (anchor.word, anchor.offset))
                .collect();
            found.sort_unstable();
            found.dedup();
            let expected: Vec<(String, usize)> = expected
                .iter()
                .map(|(word, at)| (word.to_string(), *at))
                .collect();
            assert_eq!(found, expected, "{source}");
        }
    }

    #[test]
    fn others_reach_so_far_around_it() {
        let source = r"(?:^|[\s>])([a-z]{3}\dQ~[a-z.-]{31,34})(?:$|[\s<])";
        let found = reach(&hir(source), &words(&["q~"])).unwrap();
        assert_eq!(found.before, Some(5));
        let behind = found.behind.unwrap();
        assert!((37..=45).contains(&behind), "{behind}");
        assert_eq!(
            reach(&hir("[a-z]+@x"), &words(&["@x"])).unwrap().before,
            None
        );
        assert_eq!(reach(&hir("v1.0-[a-f]{3}"), &words(&["cloudflare"])), None);
        assert_eq!(reach(&hir("(?:abcd)?x"), &words(&["abcd"])), None);
    }
}
