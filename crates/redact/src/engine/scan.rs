//! The one pass over a text.

use std::ops::Range;

use regex_automata::hybrid::dfa;
use regex_automata::meta;
use regex_automata::util::captures::Captures;
use regex_automata::{Anchored, Input};

use super::judge::Job;
use super::numbers::{self, Trigger};
use super::overlap::{Candidate, settle};
use super::plan::Action;
use super::{Context, Engine, Found, assign, boundary, encoded};

/// How often a text may be read by the attempts of one rule before the rest is gone over once instead.
const ATTEMPTS: usize = 4;

/// What is reused from text to text.
#[derive(Default)]
pub struct Scratch {
    engine: u64,
    epoch: u64,
    rules: Vec<PerRule>,
    attempts: Vec<(usize, usize)>,
    around: Vec<(usize, usize, usize)>,
    names: Vec<(usize, usize, usize)>,
    candidates: Vec<Candidate>,
    joined: Vec<u8>,
    /// How many bytes rules have read so far, for tests of how the work grows.
    work: u64,
    inner: Option<Box<Scratch>>,
}

impl std::fmt::Debug for Scratch {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Scratch")
            .field("work", &self.work)
            .finish_non_exhaustive()
    }
}

/// What is known of one rule while a text is looked at, and what it works with.
#[derive(Default)]
struct PerRule {
    epoch: u64,
    /// Where its last match ended.
    end: usize,
    work: usize,
    /// From where on it is searched for, because trying it has read too much.
    sweep: Option<usize>,
    tried: Option<dfa::Cache>,
    searched: Option<(meta::Cache, Captures)>,
    swept: Option<(meta::Cache, Captures)>,
}

impl Scratch {
    /// How many bytes rules have read so far: a measure of work that no clock is needed for.
    pub fn work(&self) -> u64 {
        self.work + self.inner.as_ref().map_or(0, |inner| inner.work())
    }

    fn begin(&mut self, engine: &Engine) {
        if self.engine != engine.number {
            self.engine = engine.number;
            self.rules.clear();
            self.rules
                .resize_with(engine.rules.rules.len(), PerRule::default);
        }
        self.epoch += 1;
        self.attempts.clear();
        self.around.clear();
        self.names.clear();
        self.candidates.clear();
    }

    fn rule(&mut self, rule: usize) -> &mut PerRule {
        let this = &mut self.rules[rule];
        if this.epoch != self.epoch {
            this.epoch = self.epoch;
            (this.end, this.work, this.sweep) = (0, 0, None);
        }
        this
    }
}

pub(super) fn scan(
    engine: &Engine,
    scratch: &mut Scratch,
    text: &str,
    context: Context<'_>,
    found: &mut Vec<Found>,
) {
    plain(engine, scratch, text, context);
    if encoded::may_be(text) {
        let mut inner = scratch.inner.take().unwrap_or_default();
        let job = Job::new(engine, text, context);
        encoded::scan(&job, &mut scratch.candidates, |text, context, found| {
            plain(engine, &mut inner, text, context);
            settle(&mut inner.candidates, found);
        });
        scratch.inner = Some(inner);
    }
    if !scratch.candidates.is_empty() {
        settle(&mut scratch.candidates, found);
    }
}

/// Looks at what a text says as it is. Candidates are left in the scratch.
fn plain(engine: &Engine, scratch: &mut Scratch, text: &str, context: Context<'_>) {
    scratch.begin(engine);
    let job = Job::new(engine, text, context);
    gather(&job, scratch);
    job.files(&mut scratch.candidates);
    scratch.attempts.sort_unstable();
    for index in 0..scratch.attempts.len() {
        let (start, rule) = scratch.attempts[index];
        attempt(&job, scratch, start, rule);
    }
    for index in 0..scratch.attempts.len() {
        let (_, rule) = scratch.attempts[index];
        if let Some(from) = scratch.rule(rule).sweep.take() {
            sweep(&job, scratch, rule, from);
        }
    }
    around(&job, scratch);
    names(&job, scratch);
    if context.near {
        job.unnamed(&mut scratch.candidates);
    }
}

/// Where there is something to be tried.
fn gather(job: &Job<'_>, scratch: &mut Scratch) {
    let (plan, text) = (&job.engine.plan, job.text.as_bytes());
    let Scratch {
        attempts,
        around,
        names,
        ..
    } = scratch;
    plan.words.find(text, |word, at| {
        for action in &plan.actions[word] {
            match *action {
                Action::Try { rule, offset } => {
                    let Some(start) = at.checked_sub(offset) else {
                        continue;
                    };
                    let program = &plan.programs[rule];
                    if start + program.least <= text.len()
                        && (!program.boundary || boundary::begins(text, start))
                    {
                        attempts.push((start, rule));
                    }
                }
                Action::Around { rule, reach } => {
                    let begin = at.saturating_sub(reach.before.unwrap_or(at));
                    let end = reach.behind.map_or(text.len(), |behind| {
                        text.len().min(at.saturating_add(behind))
                    });
                    around.push((rule, begin, end));
                }
                Action::Whole { rule } => around.push((rule, 0, text.len())),
                Action::Name { rule, name } => names.push((at, rule, name)),
            }
        }
    });
    for rule in &plan.always {
        around.push((*rule, 0, text.len()));
    }
    if !plan.triggers.is_empty() {
        digits(job, attempts, around);
    }
}

/// Where numbers are to be tried.
fn digits(
    job: &Job<'_>,
    attempts: &mut Vec<(usize, usize)>,
    around: &mut Vec<(usize, usize, usize)>,
) {
    let (plan, text) = (&job.engine.plan, job.text.as_bytes());
    let (mut with_numbers, mut with_colons, mut with_at) = (false, false, false);
    for (rule, trigger) in &plan.triggers {
        match *trigger {
            Trigger::At { .. } => with_at = true,
            Trigger::Plus => {
                for at in memchr::memchr_iter(b'+', text) {
                    if text.get(at + 1).is_some_and(u8::is_ascii_digit) {
                        attempts.push((at, *rule));
                    }
                }
            }
            Trigger::Dots { before, between } => numbers::dots(text, before, between, |at| {
                if boundary::begins(text, at) {
                    attempts.push((at, *rule));
                }
            }),
            Trigger::Colons => with_colons = true,
            Trigger::Number { .. } | Trigger::Lettered { .. } => with_numbers = true,
        }
    }
    if with_at {
        for at in memchr::memchr_iter(b'@', text) {
            for (rule, trigger) in &plan.triggers {
                if let Trigger::At { before, behind } = *trigger {
                    let end = behind.map_or(text.len(), |behind| {
                        text.len().min(at.saturating_add(behind))
                    });
                    around.push((*rule, at.saturating_sub(before), end));
                }
            }
        }
    }
    if with_colons {
        numbers::colons(text, |at| {
            for (rule, trigger) in &plan.triggers {
                if *trigger == Trigger::Colons && boundary::begins(text, at) {
                    attempts.push((at, *rule));
                }
            }
        });
    }
    if with_numbers {
        numbers::numbers(text, |at| number(job, at, attempts));
    }
}

fn number(job: &Job<'_>, at: usize, attempts: &mut Vec<(usize, usize)>) {
    let (plan, text) = (&job.engine.plan, job.text.as_bytes());
    let before = at.checked_sub(1).map_or(b' ', |before| text[before]);
    if before.is_ascii_alphabetic() {
        lettered(job, at, attempts);
    }
    if !boundary::begins(text, at) {
        return;
    }
    let Some(cluster) = numbers::cluster(text, at) else {
        return;
    };
    for (rule, trigger) in &plan.triggers {
        let Trigger::Number { least, row, dot } = *trigger else {
            continue;
        };
        if cluster.length + 1 < least || cluster.row < row || (dot && cluster.dots == 0) {
            continue;
        }
        attempts.push((at, *rule));
        if matches!(before, b'+' | b'(') {
            attempts.push((at - 1, *rule));
        }
    }
}

/// Tries what begins with letters before a digit.
fn lettered(job: &Job<'_>, at: usize, attempts: &mut Vec<(usize, usize)>) {
    let (plan, text) = (&job.engine.plan, job.text.as_bytes());
    let low = at.saturating_sub(10);
    let letters = text[low..at]
        .iter()
        .rev()
        .take_while(|byte| byte.is_ascii_alphabetic());
    let count = letters.count();
    let edge = (at - count).checked_sub(1).map_or(b' ', |edge| text[edge]);
    // Within a longer word, as in base64, there is nothing to try.
    if count == 10 || edge == b'_' || (edge.is_ascii_digit() && !boundary::begins(text, at - count))
    {
        return;
    }
    for (rule, trigger) in &plan.triggers {
        if let Trigger::Lettered { letters } = *trigger
            && letters <= count
            && boundary::begins(text, at - letters)
        {
            attempts.push((at - letters, *rule));
        }
    }
}

/// Tries a rule at one place.
fn attempt(job: &Job<'_>, scratch: &mut Scratch, start: usize, rule: usize) {
    let program = &job.engine.plan.programs[rule];
    let text = job.text.as_bytes();
    let per = scratch.rule(rule);
    if start < per.end || per.sweep.is_some() {
        return;
    }
    let Some(tried) = program.tried() else {
        per.sweep = Some(start);
        return;
    };
    let cache = per.tried.get_or_insert_with(|| tried.create_cache());
    let limit = program.most.map_or(text.len(), |most| {
        text.len().min(start.saturating_add(most))
    });
    let (read, end) = walk(tried, cache, text, start..limit);
    per.work += read;
    let over = per.work > ATTEMPTS * text.len() + 4096;
    scratch.work += read as u64;
    let end = match end {
        End::Match(end) => end,
        End::None => {
            if over {
                scratch.rule(rule).sweep = Some(start + 1);
            }
            return;
        }
        End::Unknown => {
            scratch.rule(rule).sweep = Some(start);
            return;
        }
    };
    let per = scratch.rule(rule);
    per.end = end.max(start + 1);
    if over {
        per.sweep = Some(per.end);
    }
    let mut secret = start..end;
    if program.groups > 0
        && let Some(regex) = program.searched()
    {
        let (cache, captures) = per
            .searched
            .get_or_insert_with(|| (regex.create_cache(), regex.create_captures()));
        let input = Input::new(text).span(start..end).anchored(Anchored::Yes);
        regex.search_captures_with(cache, &input, captures);
        secret = job.secret(rule, captures).unwrap_or(secret);
    }
    job.consider(&mut scratch.candidates, rule, start..end, secret);
}

enum End {
    Match(usize),
    None,
    /// The automaton does not know what to do with a byte.
    Unknown,
}

/// Runs an automaton from one place until it can say nothing more. Also says how many bytes it took.
fn walk(tried: &dfa::DFA, cache: &mut dfa::Cache, text: &[u8], span: Range<usize>) -> (usize, End) {
    let input = Input::new(text).span(span.clone()).anchored(Anchored::Yes);
    let Ok(mut state) = tried.start_state_forward(cache, &input) else {
        return (0, End::Unknown);
    };
    let mut last = End::None;
    for (index, byte) in text[span.clone()].iter().enumerate() {
        let Ok(next) = tried.next_state(cache, state, *byte) else {
            return (index, End::Unknown);
        };
        state = next;
        if state.is_tagged() {
            if state.is_match() {
                last = End::Match(span.start + index);
            } else if state.is_dead() {
                return (index + 1, last);
            } else if state.is_quit() {
                return (index, End::Unknown);
            }
        }
    }
    let next = match text.get(span.end) {
        Some(byte) => tried.next_state(cache, state, *byte),
        None => tried.next_eoi_state(cache, state),
    };
    match next {
        Ok(state) if state.is_match() => last = End::Match(span.end),
        Ok(state) if !state.is_quit() => {}
        _ => return (span.len(), End::Unknown),
    }
    (span.len(), last)
}

/// Goes over the rest of a text once, with the expression searched for.
fn sweep(job: &Job<'_>, scratch: &mut Scratch, rule: usize, from: usize) {
    let program = &job.engine.plan.programs[rule];
    let text = job.text.as_bytes();
    let Some(regex) = program.swept() else { return };
    let Scratch {
        rules,
        candidates,
        work,
        ..
    } = scratch;
    let (cache, captures) = rules[rule]
        .swept
        .get_or_insert_with(|| (regex.create_cache(), regex.create_captures()));
    *work += (text.len() - from.min(text.len())) as u64;
    let mut at = from;
    while at <= text.len() {
        regex.search_captures_with(cache, &Input::new(text).span(at..text.len()), captures);
        let Some(whole) = captures.get_match() else {
            break;
        };
        let begun = captures
            .get_group(program.groups + 1)
            .map_or(whole.start(), |group| group.start);
        let secret = if program.groups > 0 {
            job.secret(rule, captures)
        } else {
            None
        };
        job.consider(
            candidates,
            rule,
            begun..whole.end(),
            secret.unwrap_or(begun..whole.end()),
        );
        at = whole.end().max(whole.start() + 1);
    }
}

/// Searches for rules around their words, no byte twice.
fn around(job: &Job<'_>, scratch: &mut Scratch) {
    let Scratch {
        around,
        rules,
        candidates,
        work,
        ..
    } = scratch;
    around.sort_unstable();
    let mut index = 0;
    while index < around.len() {
        let (rule, begin, mut end) = around[index];
        index += 1;
        while index < around.len() && around[index].0 == rule && around[index].1 <= end {
            end = end.max(around[index].2);
            index += 1;
        }
        let Some(regex) = job.engine.plan.programs[rule].searched() else {
            continue;
        };
        *work += (end - begin) as u64;
        let (cache, captures) = rules[rule]
            .searched
            .get_or_insert_with(|| (regex.create_cache(), regex.create_captures()));
        job.search(candidates, rule, begin..end, |input| {
            regex.search_captures_with(cache, input, captures);
            captures
                .get_match()
                .map(|whole| (whole.range(), job.secret(rule, captures)))
        });
    }
}

/// Reads the names that words stand in, each once, and what is given to them.
fn names(job: &Job<'_>, scratch: &mut Scratch) {
    let Scratch {
        names,
        candidates,
        joined,
        work,
        ..
    } = scratch;
    if let Some(name) = job.context.name.filter(|_| job.text.len() <= assign::VALUE) {
        job.named_whole(candidates, joined, name);
    }
    names.sort_unstable();
    let text = job.text.as_bytes();
    let mut reader = assign::Reader::default();
    let mut end = 0;
    let mut current = None;
    for (at, rule, name) in names.iter().copied() {
        if at >= end {
            let (begun, read) = assign::Reader::name_at(text, at, end);
            end = begun.end.max(at + 1);
            current = read.then(|| reader.read(text, begun)).flatten();
            if let Some(assignment) = &current {
                *work += assignment.value.len() as u64;
                assign::joined(&text[assignment.name.clone()], joined);
            }
        }
        if let Some(assignment) = &current {
            job.named(candidates, joined, rule, name, assignment);
        }
    }
}
