//! Finding the words that say which rules to try: the table of our own beside the automaton that everybody uses.

use aho_corasick::{AhoCorasick, MatchKind};
use anyhow::Result;
use quipu_redact::Engine;
use quipu_redact::engine::whole;

use super::corpus::Corpus;
use crate::cpu::cpu;
use crate::table::{Goal, Table, median, now};

pub(super) fn measure(
    table: &mut Table,
    corpus: &Corpus,
    engine: &Engine,
    rounds: usize,
) -> Result<()> {
    now("words of rules, by a table and by an automaton");
    let words = whole::words(engine);
    let automaton = AhoCorasick::builder()
        .ascii_case_insensitive(true)
        .match_kind(MatchKind::Standard)
        .build(words.iter().filter(|word| !word.is_empty()))?;
    let bytes: usize = corpus.logs.iter().map(|log| log.bytes.len()).sum();
    let (mut ratios, mut speeds) = (Vec::new(), (Vec::new(), Vec::new()));
    let mut counts = (0, 0);
    for _ in 0..rounds.max(1) {
        let began = cpu();
        counts.0 = corpus
            .logs
            .iter()
            .map(|log| whole::count_words(engine, &log.bytes))
            .sum::<usize>();
        let between = cpu();
        counts.1 = corpus
            .logs
            .iter()
            .map(|log| automaton.find_overlapping_iter(&log.bytes).count())
            .sum::<usize>();
        let (ours, theirs) = (between - began, cpu() - between);
        let speed = |seconds: f64| bytes as f64 / 1e6 / seconds;
        ratios.push(theirs / ours);
        speeds.0.push(speed(ours));
        speeds.1.push(speed(theirs));
    }
    table.row(
        &format!("words of rules, {} of them: times as fast", words.len()),
        &format!("{:.0} MB/s", median(speeds.0)),
        &format!("aho-corasick {:.0} MB/s", median(speeds.1)),
        median(ratios),
        Goal::AtLeast(1.5),
    );
    table.note(format!(
        "The table finds {} words, the automaton {}.",
        counts.0, counts.1
    ));
    Ok(())
}
