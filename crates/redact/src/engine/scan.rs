//! The one pass over a text.

use std::ops::Range;

use regex_automata::hybrid::dfa;
use regex_automata::meta;
use regex_automata::util::captures::Captures;
use regex_automata::{Anchored, Input};

use super::assign::Assignment;
use super::attempts::{Around, Attempts};
use super::judge::Job;
use super::nameless::Nameless;
use super::overlap::{Candidate, settle};
use super::plan::Action;
use super::survey::Survey;
use super::{Context, Engine, Found, assign, boundary, encoded};

/// How often a text may be read by the attempts of one rule before the rest is gone over once instead.
const ATTEMPTS: usize = 1;

/// How much of a text is looked at before rules are tried in it.
const PART: usize = 32 << 10;

/// What is reused from text to text.
#[derive(Default)]
pub struct Scratch {
    engine: u64,
    epoch: u64,
    rules: Vec<PerRule>,
    attempts: Attempts,
    around: Around,
    names: Vec<(usize, usize)>,
    candidates: Vec<Candidate>,
    joined: Vec<u8>,
    /// How many bytes rules have read so far, for tests of how the work grows.
    work: u64,
    survey: Survey,
    nameless: Nameless,
    /// Whether some rule is to be searched for at the end.
    sweeps: bool,
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
    /// Made when the rule is first tried: of most rules nothing is ever.
    tried: Option<Box<dfa::Cache>>,
    captured: Option<Box<Searching>>,
    searched: Option<Box<Searching>>,
    swept: Option<Box<Searching>>,
}

/// What an expression is searched for with.
struct Searching {
    cache: meta::Cache,
    captures: Captures,
}

impl Searching {
    fn new(regex: &meta::Regex) -> Box<Self> {
        Box::new(Self {
            cache: regex.create_cache(),
            captures: regex.create_captures(),
        })
    }
}

impl Scratch {
    /// How many bytes rules have read so far: a measure of work that no clock is needed for.
    pub fn work(&self) -> u64 {
        self.work + self.inner.as_ref().map_or(0, |inner| inner.work())
    }

    /// Takes back memory where the automata of many rules have grown. They grow again where they are needed.
    pub(crate) fn shrink(&mut self) {
        const KEEP: usize = 16 << 20;
        let tried = |rule: &PerRule| rule.tried.as_ref().map_or(0, |cache| cache.memory_usage());
        let meta =
            |one: &Option<Box<Searching>>| one.as_ref().map_or(0, |one| one.cache.memory_usage());
        let all = |rule: &PerRule| {
            tried(rule) + meta(&rule.captured) + meta(&rule.searched) + meta(&rule.swept)
        };
        if self.rules.iter().map(all).sum::<usize>() > KEEP {
            self.engine = 0;
        }
        if let Some(inner) = &mut self.inner {
            inner.shrink();
        }
    }

    fn begin(&mut self, engine: &Engine) {
        if self.engine != engine.number {
            self.engine = engine.number;
            self.rules.clear();
            self.nameless.clear();
            self.rules
                .resize_with(engine.rules.rules.len(), PerRule::default);
        }
        self.epoch += 1;
        self.attempts.clear();
        self.around.clear();
        self.names.clear();
        self.candidates.clear();
        self.survey.begin();
        self.sweeps = false;
    }

    /// Remembers that a rule is to be searched for from a place on.
    fn sweep(&mut self, rule: usize, from: usize) {
        self.rule(rule).sweep = Some(from);
        self.sweeps = true;
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
    if encoded::may_be(text, &scratch.survey) {
        let mut inner = scratch.inner.take().unwrap_or_default();
        let job = Job::new(engine, text, context);
        encoded::scan(
            &job,
            &scratch.survey,
            &mut scratch.candidates,
            |text, context, found| {
                plain(engine, &mut inner, text, context);
                settle(&mut inner.candidates, found);
            },
        );
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
    job.files(&mut scratch.candidates);
    let mut names = Names::default();
    Names::whole(&job, scratch);
    let mut begin = 0;
    // Part by part, so that what is held does not grow with the text.
    while begin < text.len() {
        let end = text.len().min(begin + PART);
        gather(&job, scratch, begin..end);
        // What comes later may still be tried before this.
        let sure = if end == text.len() {
            usize::MAX
        } else {
            end.saturating_sub(engine.plan.back)
        };
        attempts(&job, scratch, sure);
        names.read(&job, scratch, sure);
        if scratch.around.len() > PART {
            scratch.around.merge();
        }
        begin = end;
    }
    if scratch.sweeps {
        for rule in 0..scratch.rules.len() {
            if let Some(from) = scratch.rule(rule).sweep.take() {
                sweep(&job, scratch, rule, from);
            }
        }
    }
    around(&job, scratch);
    if context.near {
        job.unnamed(&mut scratch.candidates);
    }
}

/// Where there is something to be tried in a part of a text.
fn gather(job: &Job<'_>, scratch: &mut Scratch, part: Range<usize>) {
    let (plan, text) = (&job.engine.plan, job.text.as_bytes());
    let Scratch {
        attempts,
        around,
        names,
        survey,
        ..
    } = scratch;
    survey.take(text, part.clone());
    plan.words.find_in(text, part.clone(), |word, at| {
        if !plan.names[word].is_empty() {
            names.push((at, word));
        }
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
                        attempts.push(start, rule);
                    }
                }
                Action::Around { rule, reach } => {
                    let begin = at.saturating_sub(reach.before.unwrap_or(at));
                    let end = reach.behind.map_or(text.len(), |behind| {
                        text.len().min(at.saturating_add(behind))
                    });
                    around.push(rule, begin, end);
                }
                Action::Whole { rule } => around.push(rule, 0, text.len()),
            }
        }
    });
    if part.start == 0 {
        for rule in &plan.always {
            around.push(*rule, 0, text.len());
        }
    }
    plan.triggers.gather(text, part, survey, attempts, around);
}

/// Tries rules in the order of their places, up to where nothing can come in between any more.
fn attempts(job: &Job<'_>, scratch: &mut Scratch, sure: usize) {
    if scratch.attempts.is_empty() {
        return;
    }
    let mut attempts = std::mem::take(&mut scratch.attempts);
    for (start, rule) in attempts.before(sure) {
        attempt(job, scratch, start, rule);
    }
    scratch.attempts = attempts;
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
        scratch.sweep(rule, start);
        return;
    };
    let cache = per
        .tried
        .get_or_insert_with(|| Box::new(tried.create_cache()));
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
                scratch.sweep(rule, start + 1);
            }
            return;
        }
        End::Unknown => {
            scratch.sweep(rule, start);
            return;
        }
    };
    let next = end.max(start + 1);
    scratch.rule(rule).end = next;
    if over {
        scratch.sweep(rule, next);
    }
    let per = scratch.rule(rule);
    let mut secret = start..end;
    if program.groups > 0
        && let Some(regex) = program.captured()
    {
        let Searching { cache, captures } =
            &mut **per.captured.get_or_insert_with(|| Searching::new(regex));
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
    let Searching { cache, captures } = &mut **rules[rule]
        .swept
        .get_or_insert_with(|| Searching::new(regex));
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
    for (rule, begin, end) in around.drain() {
        let Some(regex) = job.engine.plan.programs[rule].searched() else {
            continue;
        };
        *work += (end - begin) as u64;
        let Searching { cache, captures } = &mut **rules[rule]
            .searched
            .get_or_insert_with(|| Searching::new(regex));
        job.search(candidates, rule, begin..end, |input| {
            regex.search_captures_with(cache, input, captures);
            captures
                .get_match()
                .map(|whole| (whole.range(), job.secret(rule, captures)))
        });
    }
}

/// Reads the names that words stand in, each once, and what is given to them.
#[derive(Default)]
struct Names {
    reader: assign::Reader,
    /// Where the last name ended, and what is given to it.
    end: usize,
    current: Option<Assignment>,
}

impl Names {
    /// Takes the whole text for what is given to the name it has.
    fn whole(job: &Job<'_>, scratch: &mut Scratch) {
        let Scratch {
            candidates,
            joined,
            nameless,
            ..
        } = scratch;
        if let Some(name) = job.context.name.filter(|_| job.text.len() <= assign::VALUE)
            && !nameless.has(name.as_bytes())
            && !job.named_whole(candidates, joined, name)
        {
            nameless.add(name.as_bytes());
        }
    }

    /// Reads names in their order, up to where no word can come in between any more.
    fn read(&mut self, job: &Job<'_>, scratch: &mut Scratch, sure: usize) {
        let Scratch {
            names,
            candidates,
            joined,
            work,
            ..
        } = scratch;
        if names.is_empty() {
            return;
        }
        names.sort_unstable();
        let text = job.text.as_bytes();
        let count = names.partition_point(|(at, _)| *at < sure);
        for (at, word) in names.drain(..count) {
            if at >= self.end {
                let (begun, read) = assign::Reader::name_at(text, at, self.end);
                self.end = begun.end.max(at + 1);
                self.current = read.then(|| self.reader.read(text, begun)).flatten();
                if let Some(assignment) = &self.current {
                    *work += assignment.value.len() as u64;
                    assign::joined(&text[assignment.name.clone()], joined);
                }
            }
            if let Some(assignment) = &self.current {
                for (rule, name) in &job.engine.plan.names[word] {
                    job.named(candidates, joined, *rule, *name, assignment);
                }
            }
        }
    }
}
