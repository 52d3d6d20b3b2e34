//! What a person sees while a workflow runs. All of it goes to standard error; standard output is data.

use std::collections::BTreeMap;
use std::io::{self, IsTerminal as _, Write as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};
use quipu_flow::engine::{News, Observer, Outcome, RunStatus};
use quipu_model::{Money, Place, RunId};
use quipu_record::{Recorder, TraceError, TraceWriter, Traced};

use super::artifacts::StepArtifacts;
use crate::args::Run;
use crate::commands::emit;
use crate::error::Result;
use crate::terminal::{self, DIM, GREEN, RED, YELLOW, clean, clean_line, say_styled};

/// How often the live line is drawn.
const TICK: Duration = Duration::from_millis(200);

/// How wide a step's path is before what follows is out of line.
const PATH: usize = 32;

/// Shows a run, follows it for `--json`, and has its trace and the files of its steps written.
pub(super) struct Display {
    json: bool,
    quiet: bool,
    verbose: bool,
    bar: Option<ProgressBar>,
    trace: Option<(Option<PathBuf>, PathBuf)>,
    artifacts: Option<StepArtifacts>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    began: Option<Instant>,
    /// The runs that are under way, outermost first.
    runs: Vec<RunId>,
    running: BTreeMap<(RunId, String), Instant>,
    dollars: Money,
    tokens: u64,
    printers: Vec<JoinHandle<io::Result<()>>>,
    traces: Vec<(RunId, TraceWriter)>,
    trace_error: Option<(RunId, TraceError)>,
}

impl Display {
    pub(super) fn new(args: &Run, root: &Path, artifacts: Option<StepArtifacts>) -> Self {
        let shows_bar = !args.json && !args.quiet && io::stderr().is_terminal();
        let bar = shows_bar.then(|| {
            let style = ProgressStyle::with_template("{spinner} {msg}");
            let style = style.unwrap_or_else(|_| ProgressStyle::default_spinner());
            let bar = ProgressBar::new_spinner().with_style(style);
            bar.enable_steady_tick(TICK);
            bar
        });
        Self {
            json: args.json,
            quiet: args.quiet || args.json,
            verbose: args.verbose,
            bar,
            trace: args.agentlog.clone().map(|path| (path, root.to_owned())),
            artifacts,
            state: Mutex::default(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for what follows the run, and says how its trace came out.
    pub(super) fn finish(&self) -> Result<()> {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
        let (printers, traces, error) = {
            let mut state = self.lock();
            (
                std::mem::take(&mut state.printers),
                std::mem::take(&mut state.traces),
                state.trace_error.take(),
            )
        };
        for printer in printers {
            match printer.join() {
                Ok(printed) => printed?,
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
        let written = self
            .artifacts
            .as_ref()
            .map_or(Ok(()), StepArtifacts::finish);
        if let Some((run, error)) = error {
            return Err(emit::not_traced(error, &run));
        }
        for (run, trace) in traces {
            let traced: Traced = trace
                .finish()
                .map_err(|error| emit::not_traced(error, &run))?;
            if !self.quiet {
                emit::tell(&traced);
            }
        }
        written
    }

    /// Does something while the live line is out of the way.
    pub(super) fn aside<T>(&self, act: impl FnOnce() -> T) -> T {
        match &self.bar {
            Some(bar) => {
                bar.disable_steady_tick();
                bar.set_draw_target(indicatif::ProgressDrawTarget::hidden());
                let done = act();
                bar.set_draw_target(indicatif::ProgressDrawTarget::stderr());
                bar.enable_steady_tick(TICK);
                done
            }
            None => act(),
        }
    }

    fn line(&self, text: &str) {
        match &self.bar {
            Some(bar) => bar.suspend(|| say_styled(text)),
            None => say_styled(text),
        }
    }

    /// What a step says, line by line, with its name before it.
    fn speak(&self, place: &Place, text: &str) {
        if !self.verbose || self.quiet {
            return;
        }
        let name = clean(&name_of(place)).into_owned();
        for line in text.lines().filter(|line| !line.trim().is_empty()) {
            self.line(&format!("    {DIM}{name}:{DIM:#} {}", clean(line)));
        }
    }

    fn refresh(&self, state: &State) {
        let Some(bar) = &self.bar else {
            return;
        };
        let mut running: Vec<(&String, &Instant)> = state
            .running
            .iter()
            .map(|((_, name), since)| (name, since))
            .collect();
        running.sort_by_key(|(_, since)| **since);
        let names: Vec<&str> = running
            .iter()
            .take(3)
            .map(|(path, _)| path.as_str())
            .collect();
        let mut parts = vec![match running.len() {
            0..=3 => names.join(", "),
            more => format!("{} and {} more", names.join(", "), more - 3),
        }];
        if let Some(began) = state.began {
            parts.push(terminal::duration(
                u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX),
            ));
        }
        if state.tokens > 0 {
            parts.push(format!("{} tokens", terminal::tokens(state.tokens)));
            parts.push(format!("${:.4}", state.dollars));
        }
        bar.set_message(clean_line(
            &parts.join(" · "),
            terminal::columns().saturating_sub(4),
        ));
    }

    /// What a line says of the news, if anything.
    fn line_of(&self, state: &mut State, run: &RunId, news: News<'_>) -> Option<String> {
        let indent = Self::indent(state, run);
        match news {
            News::RunStarted {
                workflow,
                resumed,
                parent,
            } => {
                state.began.get_or_insert_with(Instant::now);
                if parent.is_none() {
                    state.runs.clear();
                }
                state.runs.push(run.clone());
                let verb = if resumed { "resumes" } else { "runs" };
                let indent = "  ".repeat(state.runs.len() - 1);
                Some(format!("{indent}{} {verb} as {run}", clean(workflow)))
            }
            News::StepStarted { place, .. } => {
                let at = (run.clone(), name_of(place));
                state.running.insert(at, Instant::now());
                None
            }
            News::StepEnded {
                place,
                kind,
                error,
                took: time,
            } => {
                state.running.remove(&(run.clone(), name_of(place)));
                let (style, mark) = match error {
                    None => (GREEN, "ok"),
                    Some(_) => (RED, "failed"),
                };
                let name = clean(&name_of(place)).into_owned();
                let why = error
                    .map(|error| format!("  {}", clean_line(error, 120)))
                    .unwrap_or_default();
                Some(format!(
                    "{indent}{style}{mark:<6}{style:#} {name:<PATH$} {DIM}{} {}{DIM:#}{why}",
                    clean(kind),
                    took(time),
                ))
            }
            News::StepPaused { place } => {
                state.running.remove(&(run.clone(), name_of(place)));
                let name = clean(&name_of(place)).into_owned();
                Some(format!("{indent}{YELLOW}waits{YELLOW:#}  {name:<PATH$}"))
            }
            News::Discarded { steps } => Some(format!(
                "{indent}{YELLOW}again{YELLOW:#}  discards {}: {}",
                terminal::count(steps.len() as u64, "step"),
                clean_line(&steps.join(", "), 400)
            )),
            News::StepAnswered { place } => self
                .verbose
                .then(|| format!("{indent}{DIM}kept   {}{DIM:#}", clean(&name_of(place)))),
            News::Retrying {
                place,
                after,
                error,
            } => Some(format!(
                "{indent}{YELLOW}retry{YELLOW:#}  {} in {}: {}",
                clean(&name_of(place)),
                took(after),
                clean_line(error, 120)
            )),
            News::Said { place, text } => {
                self.speak(place, text);
                None
            }
            News::Printed { place, bytes, .. } => {
                self.speak(place, &String::from_utf8_lossy(bytes));
                None
            }
            News::Log { text, .. } => Some(format!("{indent}{}", clean(text))),
            News::Warning { place, text } => Some(format!(
                "{indent}{YELLOW}note{YELLOW:#}   {}{}",
                match place.path.as_str() {
                    "" => String::new(),
                    _ => format!("{}: ", clean(&name_of(place))),
                },
                clean_line(text, 200)
            )),
            News::Spent { dollars, tokens } => {
                (state.dollars, state.tokens) = (dollars, tokens);
                None
            }
            News::RunEnded { outcome } => {
                let is_root = state.runs.first() == Some(run);
                state.runs.retain(|known| known != run);
                is_root.then(|| end_of(outcome))
            }
        }
    }

    /// How far in a run is, as spaces.
    fn indent(state: &State, run: &RunId) -> String {
        let depth = state
            .runs
            .iter()
            .position(|known| known == run)
            .unwrap_or_default();
        "  ".repeat(depth + 1)
    }
}

/// A step as people read it: its path, the passes it is in, and the attempt.
fn name_of(place: &Place) -> String {
    match place.attempt {
        1 => place.label(),
        attempt => format!("{} (attempt {attempt})", place.label()),
    }
}

fn took(took: Duration) -> String {
    terminal::duration(u64::try_from(took.as_millis()).unwrap_or(u64::MAX))
}

impl Observer for Display {
    fn tell(&self, run: &RunId, news: News<'_>) {
        let mut state = self.lock();
        let line = self.line_of(&mut state, run, news);
        if let Some(line) = line.filter(|_| !self.quiet || matches!(news, News::RunEnded { .. }))
            && !self.json
        {
            self.line(&line);
        }
        if let News::RunEnded { outcome } = news
            && state.runs.is_empty()
            && !self.json
            && let Some(message) = outcome.message.as_deref()
        {
            if let Some(bar) = &self.bar {
                bar.finish_and_clear();
            }
            let mut out = io::stdout().lock();
            // A reader that has gone away does not change how the run ended.
            writeln!(out, "{}", clean(message)).ok();
        }
        self.refresh(&state);
    }

    fn opened(&self, recorder: &Arc<Recorder>) {
        if let Some(artifacts) = &self.artifacts {
            artifacts.follow(recorder);
        }
        let mut state = self.lock();
        if self.json {
            let mut follower = recorder.follow(recorder.last_seq() + 1);
            state.printers.push(std::thread::spawn(move || {
                while let Some(batch) = follower.recv()? {
                    let mut out = io::stdout().lock();
                    for (_, line) in batch.lines() {
                        out.write_all(line)?;
                    }
                    out.flush()?;
                }
                Ok(())
            }));
        }
        if let Some((path, root)) = &self.trace {
            // One file holds one trace; called runs have their own among the traces.
            let path = path.as_deref().filter(|_| state.traces.is_empty());
            let options = emit::trace_options(path, root, quipu_record::Durability::None);
            match TraceWriter::follow(recorder, options) {
                Ok(trace) => state.traces.push((recorder.run_id().clone(), trace)),
                Err(error) => {
                    let error = TraceError::Io(error);
                    state.trace_error = Some((recorder.run_id().clone(), error));
                }
            }
        }
    }
}

fn end_of(outcome: &Outcome) -> String {
    let (style, word) = match outcome.status {
        RunStatus::Succeeded => (GREEN, "succeeded"),
        RunStatus::Failed => (RED, "failed"),
        RunStatus::Cancelled => (YELLOW, "cancelled"),
        RunStatus::Paused => (YELLOW, "paused"),
    };
    let mut parts = vec![terminal::count(outcome.steps, "step"), took(outcome.took)];
    if outcome.answered > 0 {
        parts.push(format!("{} kept", outcome.answered));
    }
    if outcome.tokens > 0 {
        parts.push(format!("{} tokens", terminal::tokens(outcome.tokens)));
        parts.push(format!("${:.4}", outcome.dollars));
    }
    if outcome.unpriced > 0 {
        parts.push(format!(
            "{} without a known price",
            terminal::count(outcome.unpriced, "call")
        ));
    }
    let error = outcome
        .error
        .as_deref()
        .map(|error| format!(": {}", clean(error)))
        .unwrap_or_default();
    format!(
        "{} {style}{word}{style:#} ({}){error}\n{DIM}run {}{DIM:#}",
        clean(&outcome.workflow),
        parts.join(", "),
        outcome.run_id
    )
}
