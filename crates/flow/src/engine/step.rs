//! One step: from what it is given to its end in the transcript, with all attempts at it.

use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use quipu_model::{Place, RunId, Severity, StepKind};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::action::kind_of;
use super::call::PreparedCall;
use super::chronicle::{End, millis};
use super::context::Context;
use super::frame::Frame;
use super::history::Found;
use super::prepare::{Prepared, prepare};
use super::run::Run;
use super::state::{StepState, StepStatus};
use super::text::first_bytes;
use super::{News, Stop};
use crate::definition::{Action, Backoff, Hook, Retry, Step};

/// A step as it runs: everything that its kind needs.
pub(super) struct Doing<'a> {
    pub(super) run: &'a Arc<Run>,
    pub(super) step: &'a Step,
    pub(super) place: &'a Place,
    pub(super) cancel: &'a CancellationToken,
}

/// What a kind of step gives back beside the state.
#[derive(Default)]
pub(super) struct Done {
    pub(super) state: StepState,
    /// Whether trying again may help; a step that spent its budget is not tried again.
    pub(super) is_final: bool,
}

impl From<StepState> for Done {
    fn from(state: StepState) -> Self {
        Self {
            state,
            ..Self::default()
        }
    }
}

pub(super) type Boxed<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

impl Run {
    /// Runs a step with all attempts at it, and puts its state into the context.
    pub(super) fn step<'a>(
        self: &'a Arc<Self>,
        context: &'a mut Context,
        frame: &'a mut Frame,
        step: &'a Step,
        cancel: &'a CancellationToken,
    ) -> Boxed<'a, Result<(), Stop>> {
        Box::pin(self.step_now(context, frame, step, cancel))
    }

    async fn step_now(
        self: &Arc<Self>,
        context: &mut Context,
        frame: &mut Frame,
        step: &Step,
        cancel: &CancellationToken,
    ) -> Result<(), Stop> {
        if cancel.is_cancelled() {
            return Err(Stop::Cancelled);
        }
        context.current.clone_from(&step.name);
        let mut place = frame.place(&step.name);
        let least = frame.next_attempt(&step.name);
        let visits = frame.visit(&step.name);
        let prepared = if visits > self.options.max_visits {
            Err(format!(
                "step {} has run {} times without leaving; a jump goes round in circles",
                step.name,
                visits - 1
            ))
        } else {
            depended_on(context, step).and_then(|()| prepare(self, context, step))
        };
        let is_circle = visits > self.options.max_visits;
        let input = match &prepared {
            Ok(prepared) => prepared.hash(),
            Err(_) => String::new(),
        };
        let mut discards = Vec::new();
        let mut first = least;
        if let Some(history) = &self.history {
            if !matches!(step.action, Action::Terminal(_)) && prepared.is_ok() {
                match history.find(&place, least, &input) {
                    Found::Answer(answered) => {
                        place.attempt = answered.attempt;
                        self.tell(News::StepAnswered { place: &place });
                        self.counts.answered();
                        frame.saw_inside(&step.name, answered.child_attempts);
                        frame.used(&step.name, answered.attempt);
                        let inside = answered.inside.into_iter();
                        let own = (step.name.clone(), answered.state);
                        for (name, state) in inside.chain([own]) {
                            context.states.insert(name, Arc::new(state));
                        }
                        return Ok(());
                    }
                    Found::Changed(seqs) => discards = seqs,
                    Found::Nothing => {}
                }
            }
            first = history.next_attempt(&place, least);
        }
        let attempts = Attempts {
            first,
            input,
            discards,
            is_circle,
        };
        let state = self
            .attempts(context, frame, step, prepared, attempts, cancel)
            .await?;
        if is_circle && !cancel.is_cancelled() {
            return Err(Stop::Circle(state.error.unwrap_or_default()));
        }
        let cancelled = state.status == StepStatus::Cancelled;
        context.states.insert(step.name.clone(), Arc::new(state));
        if cancelled || cancel.is_cancelled() {
            return Err(Stop::Cancelled);
        }
        Ok(())
    }

    async fn attempts(
        self: &Arc<Self>,
        context: &mut Context,
        frame: &mut Frame,
        step: &Step,
        prepared: Result<Prepared, String>,
        numbers: Attempts,
        cancel: &CancellationToken,
    ) -> Result<StepState, Stop> {
        let kind = kind_of(&step.action);
        let named = quipu_model::Step::new(step.name.clone(), kind.clone());
        let mut place = frame.place(&step.name);
        let most = step
            .retry
            .as_ref()
            .map_or(1, |retry| retry.max_attempts.max(1));
        let mut tries = 0;
        loop {
            tries += 1;
            place.attempt = numbers.first + u64::from(tries) - 1;
            let child = match &prepared {
                Ok(Prepared::Call(_)) => {
                    Some(PreparedCall::run_id(self, &place, &numbers.input, tries))
                }
                _ => None,
            };
            let discards = if tries == 1 {
                numbers.discards.as_slice()
            } else {
                &[]
            };
            self.say_answered(&place)?;
            self.chronicle.started(
                &place,
                named.clone(),
                child.clone(),
                &numbers.input,
                discards,
            )?;
            self.tell(News::StepStarted {
                place: &place,
                kind: &kind,
            });
            self.counts.stepped();
            if tries == 1 {
                self.hooks(context, &place, &step.hooks.pre, cancel).await?;
            }
            let began = Instant::now();
            let before = is_container(&step.action).then(|| context.states.clone());
            let doing = Doing {
                run: self,
                step,
                place: &place,
                cancel,
            };
            let outcome = match &prepared {
                Ok(prepared) => {
                    doing
                        .within_time(context, frame, prepared, child.as_ref())
                        .await
                }
                Err(error) => Ok(StepState::failed(error.clone()).into()),
            };
            let mut done = match outcome {
                Ok(done) => done,
                Err(stop) => {
                    let end = End {
                        child,
                        took: began.elapsed(),
                        stopped: true,
                        child_attempts: frame.inner(&step.name),
                        ..End::default()
                    };
                    self.stopped(&place, &named, &kind, &end, &stop)?;
                    return Err(stop);
                }
            };
            capture(step, &mut done.state);
            let state = &mut done.state;
            if state.error.is_some() && state.status == StepStatus::Completed {
                state.status = StepStatus::Failed;
            }
            if state.error.is_some() && cancel.is_cancelled() {
                state.status = StepStatus::Cancelled;
            }
            let again = tries < most
                && prepared.is_ok()
                && !done.is_final
                && !cancel.is_cancelled()
                && is_retried(step, state);
            let took = began.elapsed();
            let end = End {
                child,
                took,
                retrying: again,
                handled: step.continue_on_error && state.status == StepStatus::Failed,
                stopped: numbers.is_circle || state.status == StepStatus::Cancelled,
                child_attempts: frame.inner(&step.name),
                states: before.map_or_else(Vec::new, |before| left_inside(&before, context)),
                ..End::default()
            };
            state.seq = self
                .chronicle
                .completed(&place, named.clone(), state, &end)?;
            self.tell(News::StepEnded {
                place: &place,
                kind: &kind,
                error: state.error.as_deref(),
                took,
            });
            frame.used(&step.name, place.attempt);
            let Some(retry) = step.retry.as_ref().filter(|_| again) else {
                if !cancel.is_cancelled() {
                    self.hooks(context, &place, &step.hooks.post, cancel)
                        .await?;
                }
                return Ok(done.state);
            };
            let error = done.state.error.as_deref().unwrap_or_default();
            self.wait_before_retry(&place, retry, tries, most, error, cancel)
                .await?;
        }
    }

    async fn wait_before_retry(
        &self,
        place: &Place,
        retry: &Retry,
        tries: u32,
        most: u32,
        error: &str,
        cancel: &CancellationToken,
    ) -> Result<(), Stop> {
        let after = delay(retry, tries, random_fraction());
        let attributes = json!({
            "attempt": tries, "max_attempts": most, "delay_ms": millis(after), "error": error,
        });
        self.chronicle
            .harness(place, "retry", "step_retry", Severity::Warning, &attributes)?;
        self.tell(News::Retrying {
            place,
            after,
            error,
        });
        tokio::select! {
            () = cancel.cancelled() => Err(Stop::Cancelled),
            () = tokio::time::sleep(after) => Ok(()),
        }
    }

    /// A step did not end by itself: the transcript says how far it came.
    fn stopped(
        &self,
        place: &Place,
        named: &quipu_model::Step,
        kind: &StepKind,
        end: &End,
        stop: &Stop,
    ) -> Result<(), Stop> {
        let state = match stop {
            Stop::Cancelled => cancelled("cancelled"),
            Stop::Budget(why) | Stop::Circle(why) => StepState::failed(why.clone()),
            Stop::Paused(pause) => StepState {
                status: StepStatus::Paused,
                ..StepState::said(format!("waits for an approval: {}", pause.message))
            },
            // What cannot be recorded is not recorded.
            Stop::Broken(_) => return Ok(()),
        };
        self.chronicle
            .completed(place, named.clone(), &state, end)?;
        let (error, took) = (state.error.as_deref(), end.took);
        if state.status == StepStatus::Paused {
            self.tell(News::StepPaused { place });
        } else {
            self.tell(News::StepEnded {
                place,
                kind,
                error,
                took,
            });
        }
        Ok(())
    }

    /// Runs hooks of a step. What fails in them is said, and changes nothing else.
    pub(super) async fn hooks(
        self: &Arc<Self>,
        context: &Context,
        place: &Place,
        hooks: &[Hook],
        cancel: &CancellationToken,
    ) -> Result<(), Stop> {
        for hook in hooks {
            if let Err(error) = self.hook(context, place, hook, cancel).await {
                let text = format!("a hook failed: {error}");
                self.warn(
                    place,
                    "tool_lifecycle",
                    "hook_failed",
                    &text,
                    &json!({ "error": error }),
                )?;
            }
        }
        Ok(())
    }

    /// Says that something needs a look, in the transcript and on the display.
    pub(super) fn warn(
        &self,
        place: &Place,
        category: &str,
        name: &str,
        text: &str,
        attributes: &Value,
    ) -> Result<(), Stop> {
        self.chronicle
            .harness(place, category, name, Severity::Warning, attributes)?;
        self.tell(News::Warning { place, text });
        Ok(())
    }
}

/// Whether the steps that this one depends on have succeeded.
fn depended_on(context: &Context, step: &Step) -> Result<(), String> {
    for other in &step.depends_on {
        match context.states.get(&other.text) {
            Some(state) if state.is_ok() => {}
            Some(_) => {
                return Err(format!(
                    "step {} depends on {}, which failed",
                    step.name, other.text
                ));
            }
            None => {
                return Err(format!(
                    "step {} depends on {}, which has not run",
                    step.name, other.text
                ));
            }
        }
    }
    Ok(())
}

/// Whether a step has others inside.
fn is_container(action: &Action) -> bool {
    matches!(
        action,
        Action::Parallel(_) | Action::ForEach(_) | Action::While(_)
    )
}

/// What the steps inside a container left behind: those whose state is not the one from before.
fn left_inside(before: &BTreeMap<String, Arc<StepState>>, context: &Context) -> Vec<(String, u64)> {
    let is_new = |(name, state): &(&String, &Arc<StepState>)| {
        before
            .get(*name)
            .is_none_or(|known| !Arc::ptr_eq(known, state))
    };
    let states = context.states.iter().filter(is_new);
    states
        .filter(|(_, state)| state.seq > 0)
        .map(|(name, state)| (name.clone(), state.seq))
        .collect()
}

/// How attempts are numbered, and what the first says.
struct Attempts {
    first: u64,
    input: String,
    discards: Vec<u64>,
    is_circle: bool,
}

impl Doing<'_> {
    /// Runs the step within its time. What is cut off has time to end, so that what it started ends with it.
    async fn within_time(
        &self,
        context: &mut Context,
        frame: &mut Frame,
        prepared: &Prepared,
        child: Option<&RunId>,
    ) -> Result<Done, Stop> {
        let Some(most) = self.step.timeout.or_else(|| prepared.usual_timeout()) else {
            return self.act(context, frame, prepared, child).await;
        };
        let cut = self.cancel.child_token();
        let inner = Doing {
            cancel: &cut,
            ..*self
        };
        let acting = inner.act(context, frame, prepared, child);
        tokio::pin!(acting);
        let in_time = tokio::select! {
            done = &mut acting => Some(done),
            () = tokio::time::sleep(most) => None,
        };
        if let Some(done) = in_time {
            return done;
        }
        cut.cancel();
        let ended = acting.await;
        if self.cancel.is_cancelled() {
            return ended;
        }
        let mut done = match ended {
            Ok(done) => done,
            Err(Stop::Cancelled) => Done::default(),
            Err(stop) => return Err(stop),
        };
        done.state.status = StepStatus::Failed;
        done.state.error = Some(format!("no end within {}", spoken(most)));
        done.state.exit_code = Some(-1);
        Ok(done)
    }
}

/// A duration for people: `500ms`, `1.5s`, `2m`.
pub(super) fn spoken(duration: Duration) -> String {
    let millis = duration.as_millis();
    match millis {
        0..1000 => format!("{millis}ms"),
        millis if millis % 60_000 == 0 => format!("{}m", millis / 60_000),
        millis if millis % 1000 == 0 => format!("{}s", millis / 1000),
        millis => format!("{}.{:03}s", millis / 1000, millis % 1000),
    }
}

pub(super) fn cancelled(why: &str) -> StepState {
    StepState {
        status: StepStatus::Cancelled,
        error: Some(why.to_owned()),
        exit_code: Some(-1),
        ..StepState::default()
    }
}

fn capture(step: &Step, state: &mut StepState) {
    let Some(capture) = &step.capture else {
        return;
    };
    let most = capture.max_size.map_or(usize::MAX, |most| {
        usize::try_from(most).unwrap_or(usize::MAX)
    });
    for (name, text) in [
        (&capture.stdout, &state.output),
        (&capture.stderr, &state.stderr),
    ] {
        if let Some(name) = name {
            let text = first_bytes(text, most);
            state.data.insert(name.clone(), text.into());
        }
    }
}

/// Whether trying again is what the step asks for after this.
fn is_retried(step: &Step, state: &StepState) -> bool {
    let (Some(retry), StepStatus::Failed) = (&step.retry, state.status) else {
        return false;
    };
    let codes = &retry.retryable_exit_codes;
    codes.is_empty() || state.exit_code.is_none_or(|code| codes.contains(&code))
}

/// The delay after a number of tries; `random` from 0 to 1 decides how far it is off.
fn delay(retry: &Retry, tries: u32, random: f64) -> Duration {
    let initial = retry.initial_delay.as_secs_f64();
    let grown = match retry.backoff {
        Backoff::Constant => initial,
        Backoff::Linear => initial * f64::from(tries),
        Backoff::Exponential => initial * retry.multiplier.powf(f64::from(tries) - 1.0),
    };
    let capped = match retry.max_delay {
        Duration::ZERO => grown,
        most => grown.min(most.as_secs_f64()),
    };
    // A year is as good as for ever, and every duration can say it.
    let capped = capped.clamp(0.0, 31_536_000.0);
    let off = capped * retry.jitter.clamp(0.0, 1.0) * (random * 2.0 - 1.0);
    Duration::from_secs_f64((capped + off).max(0.0))
}

/// A number from 0 to 1.
fn random_fraction() -> f64 {
    let mut bytes = [0; 4];
    if getrandom::fill(&mut bytes).is_err() {
        return 0.5;
    }
    f64::from(u32::from_le_bytes(bytes)) / f64::from(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn retry(backoff: Backoff) -> Retry {
        Retry {
            max_attempts: 5,
            initial_delay: Duration::from_millis(100),
            max_delay: Duration::from_millis(450),
            backoff,
            multiplier: 2.0,
            jitter: 0.0,
            retryable_exit_codes: Vec::new(),
        }
    }

    fn delays(retry: &Retry, random: f64) -> Vec<u64> {
        (1..=4)
            .map(|tries| millis(delay(retry, tries, random)))
            .collect()
    }

    #[test]
    fn delays_grow_as_the_file_says_and_stop_at_the_longest() {
        assert_eq!(delays(&retry(Backoff::Constant), 0.5), [100, 100, 100, 100]);
        assert_eq!(delays(&retry(Backoff::Linear), 0.5), [100, 200, 300, 400]);
        assert_eq!(
            delays(&retry(Backoff::Exponential), 0.5),
            [100, 200, 400, 450]
        );
    }

    #[test]
    fn jitter_goes_both_ways() {
        let mut retry = retry(Backoff::Constant);
        retry.jitter = 0.5;
        assert_eq!((delays(&retry, 0.0)[0], delays(&retry, 1.0)[0]), (50, 150));
    }

    #[test]
    fn a_duration_that_overflows_is_a_long_one() {
        let mut retry = retry(Backoff::Exponential);
        (retry.max_delay, retry.multiplier) = (Duration::ZERO, f64::MAX);
        assert!(delay(&retry, 9, 1.0) > Duration::from_secs(1_000_000));
    }
}
