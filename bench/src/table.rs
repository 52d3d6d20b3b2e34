//! The report.

use std::io::{IsTerminal as _, Write as _};
use std::process::ExitCode;

use anyhow::Result;

/// Rows of measured figures, printed as they come.
pub(crate) struct Table {
    missed: Vec<String>,
    notes: Vec<String>,
}

/// What a figure is held against.
#[derive(Clone, Copy)]
pub(crate) enum Goal {
    AtLeast(f64),
    AtMost(f64),
    /// Printed for comparison only.
    Free,
}

impl Table {
    pub(crate) fn new() -> Self {
        println!(
            "{:<60} {:>14} {:>24} {:>8} {:>8}  ",
            "what", "ours", "limit", "ratio", "goal"
        );
        Self {
            missed: Vec::new(),
            notes: Vec::new(),
        }
    }

    /// One row: our figure, what it is compared to, and the ratio that counts.
    pub(crate) fn row(&mut self, what: &str, ours: &str, limit: &str, ratio: f64, goal: Goal) {
        let (goal_text, met) = match goal {
            Goal::AtLeast(bound) => (format!(">={bound:.2}"), ratio >= bound),
            Goal::AtMost(bound) => (format!("<={bound:.2}"), ratio <= bound),
            Goal::Free => ("-".to_owned(), true),
        };
        let verdict = match (goal, met) {
            (Goal::Free, _) => "",
            (_, true) => "ok",
            (_, false) => "MISSED",
        };
        now("");
        println!("{what:<60} {ours:>14} {limit:>24} {ratio:>8.2} {goal_text:>8}  {verdict}");
        if !met {
            self.missed
                .push(format!("{what}: {ratio:.2}, the goal is {goal_text}"));
        }
    }

    /// Something to be said below the table.
    pub(crate) fn note(&mut self, text: impl Into<String>) {
        self.notes.push(text.into());
    }

    /// Ends the table, also when measuring failed before its end. Missed goals are a result, not an error: each
    /// gets a line, and the exit code is 1.
    pub(crate) fn finish(self, measured: Result<()>) -> ExitCode {
        now("");
        for note in &self.notes {
            println!("\n{note}");
        }
        println!();
        for missed in &self.missed {
            println!("missed: {missed}");
        }
        if let Err(error) = measured {
            println!("stopped: {error:#}");
            return ExitCode::FAILURE;
        }
        if self.missed.is_empty() {
            println!("every goal met");
            return ExitCode::SUCCESS;
        }
        ExitCode::FAILURE
    }
}

/// Says what is being done, to whoever waits at a terminal, until something else is said.
pub(crate) fn now(what: &str) {
    let mut terminal = std::io::stderr();
    if terminal.is_terminal() {
        // Nothing depends on it.
        drop(write!(terminal, "\r\x1b[K{what}\r"));
    }
}

/// The median. Of a few noisy figures it is the one to believe.
pub(crate) fn median(mut figures: Vec<f64>) -> f64 {
    figures.sort_by(f64::total_cmp);
    figures[figures.len() / 2]
}

/// A rate with thousands separated.
pub(crate) fn per_second(rate: f64) -> String {
    if rate >= 1e6 {
        format!("{:.2} M/s", rate / 1e6)
    } else {
        format!("{:.1} k/s", rate / 1e3)
    }
}
