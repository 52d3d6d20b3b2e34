//! The slow engine that the fast one is held to: every rule whose word stands in a text is searched for in all of it.

use regex_automata::util::captures::Captures;

use super::judge::Job;
use super::overlap::{Candidate, settle};
use super::survey::Survey;
use super::{Context, Engine, Found, assign, encoded};

/// Looks at a text as [`Engine::scan`] does, the slow way.
pub fn scan(engine: &Engine, text: &str, context: Context<'_>, found: &mut Vec<Found>) {
    let mut candidates = plain(engine, text, context);
    let mut survey = Survey::default();
    survey.take(text.as_bytes(), 0..text.len());
    if encoded::may_be(text, &survey) {
        let job = Job::new(engine, text, context);
        encoded::scan(&job, &survey, &mut candidates, |text, context, found| {
            settle(&mut plain(engine, text, context), found);
        });
    }
    settle(&mut candidates, found);
}

fn plain(engine: &Engine, text: &str, context: Context<'_>) -> Vec<Candidate> {
    let job = Job::new(engine, text, context);
    let mut candidates = Vec::new();
    job.files(&mut candidates);
    let mut there = vec![false; engine.plan.actions.len()];
    let mut names = Vec::new();
    engine.plan.words.find(text.as_bytes(), |word, at| {
        there[word] = true;
        for (rule, name) in &engine.plan.names[word] {
            names.push((at, *rule, *name));
        }
    });
    for (rule, program) in engine.plan.programs.iter().enumerate() {
        let data = &engine.rules.rules[rule];
        let keyed = data.keywords.is_empty() || program.keywords.iter().any(|word| there[*word]);
        if !matches!(data.pattern, crate::rule::Pattern::Regex(_)) || !keyed {
            continue;
        }
        let Some(regex) = program.searched() else {
            continue;
        };
        let mut captures: Captures = regex.create_captures();
        job.search(&mut candidates, rule, 0..text.len(), |input| {
            regex.search_captures(input, &mut captures);
            captures
                .get_match()
                .map(|whole| (whole.range(), job.secret(rule, &captures)))
        });
    }
    let mut joined = Vec::new();
    if let Some(name) = context.name.filter(|_| text.len() <= assign::VALUE) {
        job.named_whole(&mut candidates, &mut joined, name);
    }
    names.sort_unstable();
    let mut reader = assign::Reader::default();
    let (mut end, mut current) = (0, None);
    for (at, rule, name) in names {
        if at >= end {
            let (begun, read) = assign::Reader::name_at(text.as_bytes(), at, end);
            end = begun.end.max(at + 1);
            current = read.then(|| reader.read(text.as_bytes(), begun)).flatten();
        }
        if let Some(assignment) = &current {
            assign::joined(&text.as_bytes()[assignment.name.clone()], &mut joined);
            job.named(&mut candidates, &joined, rule, name, assignment);
        }
    }
    if context.near {
        job.unnamed(&mut candidates);
    }
    candidates
}

/// The words that the engine looks for first, to be compared with other ways to find them.
#[cfg(feature = "testkit")]
pub fn words(engine: &Engine) -> Vec<String> {
    let words = engine.plan.words.all();
    words
        .map(|word| String::from_utf8_lossy(word).into_owned())
        .collect()
}

/// How often these words are in a text, as the engine finds them.
#[cfg(feature = "testkit")]
pub fn count_words(engine: &Engine, text: &[u8]) -> usize {
    let mut count = 0;
    engine.plan.words.find(text, |_, _| count += 1);
    count
}
