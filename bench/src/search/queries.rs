//! What is looked for: words and phrases that the texts themselves have, chosen by chance.

use std::collections::HashMap;

use anyhow::{Result, ensure};
use jiff::{Timestamp, tz::TimeZone};
use quipu_search::words;

use super::texts::{Event, Texts};
use crate::corpus::dice::Dice;

/// How many queries there are of each kind.
pub(crate) const EACH: usize = 200;

/// What comes first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Order {
    Relevance,
    Newest,
}

/// What is looked for, whatever the language.
#[derive(Debug, Clone)]
pub(crate) enum Wanted {
    /// A word, a name, or words in a row.
    Text(String),
    /// A word that begins like this.
    Begins(String),
    Both(String, String),
    Either(String, String),
    /// A word, the name of a filter, and its value.
    Filtered(String, &'static str, String),
    /// A word, not earlier than a day.
    Since(String, Day),
}

/// The beginning of a day, UTC.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Day(Timestamp);

impl Day {
    fn of(milliseconds: i64) -> Self {
        let day = milliseconds - milliseconds.rem_euclid(86_400_000);
        Self(Timestamp::from_millisecond(day).unwrap_or(Timestamp::UNIX_EPOCH))
    }

    pub(crate) fn milliseconds(self) -> i64 {
        self.0.as_millisecond()
    }
}

impl Wanted {
    /// In our own language.
    pub(crate) fn query(&self) -> String {
        match self {
            Self::Text(text) if text.contains(' ') => format!("\"{text}\""),
            Self::Text(text) => text.clone(),
            Self::Begins(text) => format!("{text}*"),
            Self::Both(a, b) => format!("{a} {b}"),
            Self::Either(a, b) => format!("{a} OR {b}"),
            Self::Filtered(text, filter, value) => format!("{text} {filter}:{value}"),
            Self::Since(text, day) => {
                let day = day.0.to_zoned(TimeZone::UTC).date();
                format!("{text} since:{day}")
            }
        }
    }
}

/// Queries of one kind.
pub(crate) struct Class {
    pub(crate) name: &'static str,
    pub(crate) queries: Vec<Wanted>,
}

/// So many texts are looked at to learn what is said often.
const SAMPLE: usize = 20_000;

/// Makes queries of each kind, the same for the same texts.
pub(crate) fn classes(texts: &Texts) -> Result<Vec<Class>> {
    let mut sampler = Sampler {
        texts,
        dice: Dice::new(7),
    };
    let (common, pairs) = frequent(texts)?;
    ensure!(
        common.len() >= EACH && pairs.len() >= EACH,
        "there are too few words to look for"
    );
    let texts = |all: Vec<String>| all.into_iter().map(Wanted::Text).collect();
    let mut classes = vec![
        Class {
            name: "common word",
            queries: texts(common),
        },
        Class {
            name: "phrase, common",
            queries: texts(pairs),
        },
    ];
    let mut add = |name, make: &mut dyn FnMut(&mut Sampler<'_>) -> Result<Wanted>| -> Result<()> {
        let queries = (0..EACH)
            .map(|_| make(&mut sampler))
            .collect::<Result<_>>()?;
        classes.push(Class { name, queries });
        Ok(())
    };
    add("word", &mut |it| Ok(Wanted::Text(it.word()?.0)))?;
    add("phrase, rare", &mut |it| Ok(Wanted::Text(it.run(4)?)))?;
    add("name in code", &mut |it| Ok(Wanted::Text(it.name()?)))?;
    add("two words", &mut |it| {
        let text = it.run(2)?;
        let (a, b) = text.split_once(' ').unwrap_or((&text, &text));
        Ok(Wanted::Both(a.to_owned(), b.to_owned()))
    })?;
    add("one word OR another", &mut |it| {
        Ok(Wanted::Either(it.word()?.0, it.word()?.0))
    })?;
    add("word begins", &mut |it| {
        let word = it.word_of(5)?.0;
        Ok(Wanted::Begins(word[..3 + it.dice.below(2)].to_owned()))
    })?;
    add("word role:", &mut |it| {
        let (word, event) = it.word()?;
        Ok(Wanted::Filtered(word, "role", event.role.clone()))
    })?;
    add("word tool:", &mut |it| {
        loop {
            let (word, event) = it.word()?;
            if !event.tool.is_empty() {
                return Ok(Wanted::Filtered(word, "tool", event.tool.clone()));
            }
        }
    })?;
    add("word project:", &mut |it| {
        let (word, event) = it.word()?;
        Ok(Wanted::Filtered(word, "project", event.project.clone()))
    })?;
    add("word since:", &mut |it| {
        let word = it.word()?.0;
        Ok(Wanted::Since(word, Day::of(it.event().at)))
    })?;
    Ok(classes)
}

struct Sampler<'t> {
    texts: &'t Texts,
    dice: Dice,
}

impl<'t> Sampler<'t> {
    fn event(&mut self) -> &'t Event {
        &self.texts.events[self.dice.below(self.texts.events.len())]
    }

    /// Looks at texts until one has what is wanted. Gives up when that is none of very many.
    fn find<T>(&mut self, take: impl Fn(&str, &mut Dice) -> Option<T>) -> Result<(T, &'t Event)> {
        for _ in 0..100_000 {
            let event = self.event();
            let text = self.texts.read(event)?;
            if let Some(found) = take(&text, &mut self.dice) {
                return Ok((found, event));
            }
        }
        anyhow::bail!("the texts have nothing of this kind to look for")
    }

    /// A word of some text. One that is said often comes often.
    fn word(&mut self) -> Result<(String, &'t Event)> {
        self.word_of(2)
    }

    fn word_of(&mut self, letters: usize) -> Result<(String, &'t Event)> {
        self.find(|text, dice| {
            let words = plain(text);
            let long: Vec<_> = words.iter().filter(|it| it.0.len() >= letters).collect();
            Some(long.get(dice.below(long.len()))?.0.clone())
        })
    }

    /// Words in a row.
    fn run(&mut self, length: usize) -> Result<String> {
        let found = self.find(|text, dice| {
            let words = plain(text);
            let from = dice.below(words.len());
            let run = words.get(from..from + length)?;
            let rows = run.windows(2).all(|pair| follows(text, &pair[0], &pair[1]));
            let run: Vec<&str> = run.iter().map(|it| it.0.as_str()).collect();
            rows.then(|| run.join(" "))
        })?;
        Ok(found.0)
    }

    /// A name that is made of several words.
    fn name(&mut self) -> Result<String> {
        let found = self.find(|text, dice| {
            let ends = |c: char| !(c.is_ascii_alphanumeric() || c == '_' || c == '/' || c == '.');
            let names: Vec<&str> = text.split(ends).filter(|it| is_name(it)).collect();
            Some((*names.get(dice.below(names.len()))?).to_owned())
        })?;
        Ok(found.0)
    }
}

fn is_name(text: &str) -> bool {
    let inner = text.trim_matches(['_', '/', '.']);
    inner.len() == text.len()
        && text.starts_with(|c: char| c.is_ascii_alphabetic())
        && text.contains(['_', '/'])
}

type Placed = (String, std::ops::Range<usize>);

/// Words that are the same in every language of queries.
fn plain(text: &str) -> Vec<Placed> {
    let mut found = Vec::new();
    words::whole(text, |word| {
        let is_plain = word.text.len() >= 2 && word.text.bytes().all(|b| b.is_ascii_lowercase());
        if is_plain && text.get(word.range.clone()) == Some(word.text) {
            found.push((word.text.to_owned(), word.range));
        }
    });
    found
}

/// Whether nothing but a space is between two words.
fn follows(text: &str, a: &Placed, b: &Placed) -> bool {
    text.get(a.1.end..b.1.start) == Some(" ")
}

/// The words, and the pairs of them, that most texts have.
fn frequent(texts: &Texts) -> Result<(Vec<String>, Vec<String>)> {
    let (mut words, mut pairs) = (HashMap::new(), HashMap::new());
    let step = (texts.events.len() / SAMPLE).max(1);
    for event in texts.events.iter().step_by(step) {
        let text = texts.read(event)?;
        let mut found = plain(&text);
        let rows = found.windows(2).filter(|it| follows(&text, &it[0], &it[1]));
        let mut rows: Vec<String> = rows.map(|it| format!("{} {}", it[0].0, it[1].0)).collect();
        rows.sort_unstable();
        rows.dedup();
        for pair in rows {
            *pairs.entry(pair).or_insert(0_u64) += 1;
        }
        found.sort_unstable_by(|a, b| a.0.cmp(&b.0));
        found.dedup_by(|a, b| a.0 == b.0);
        for (word, _) in found {
            *words.entry(word).or_insert(0_u64) += 1;
        }
    }
    Ok((most(words), most(pairs)))
}

fn most(counts: HashMap<String, u64>) -> Vec<String> {
    let mut counts: Vec<(String, u64)> = counts.into_iter().collect();
    counts.sort_unstable_by(|a, b| (b.1, &a.0).cmp(&(a.1, &b.0)));
    counts.into_iter().take(EACH).map(|it| it.0).collect()
}
