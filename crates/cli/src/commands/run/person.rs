//! A person at the terminal, who can be asked.

use std::io::{self, BufRead as _, IsTerminal as _, Write as _};
use std::sync::Arc;

use indexmap::IndexMap;
use quipu_flow::definition::Workflow;
use quipu_flow::engine::{Line, Person, Question, Saying};

use super::display::Display;
use crate::args::Run;
use crate::terminal::{clean, say};

/// The terminal that the program was started from.
pub(super) struct Terminal {
    display: Arc<Display>,
}

impl Terminal {
    /// Somebody to ask, where standard input and standard error are a terminal.
    pub(super) fn if_there(args: &Run, display: &Arc<Display>) -> Option<Arc<dyn Person>> {
        let there = io::stdin().is_terminal() && io::stderr().is_terminal() && !args.json;
        let display = Arc::clone(display);
        there.then(|| Arc::new(Self { display }) as Arc<dyn Person>)
    }
}

/// A line from the terminal; `None` at its end.
fn line(question: &str) -> Option<String> {
    let mut err = io::stderr().lock();
    write!(err, "{question}").and_then(|()| err.flush()).ok()?;
    drop(err);
    let mut line = String::new();
    let read = io::stdin().lock().read_line(&mut line).ok()?;
    (read > 0).then(|| line.trim_end_matches(['\n', '\r']).to_owned())
}

impl Terminal {
    /// Asks beside the display, on a thread of its own: reading a terminal cannot be cancelled.
    fn ask<T: Send + 'static>(
        &self,
        ask: impl FnOnce() -> Option<T> + Send + 'static,
    ) -> Saying<'static, T> {
        let display = Arc::clone(&self.display);
        Box::pin(async move {
            let asking = tokio::task::spawn_blocking(move || display.aside(ask));
            asking.await.ok().flatten()
        })
    }
}

impl Person for Terminal {
    fn line<'a>(&'a self, question: Question<'a>) -> Saying<'a, Line> {
        let answer = clean(question.text).into_owned();
        self.ask(move || {
            say(&answer);
            let text = line("(empty line ends) > ")?;
            Some(Line { text, by: None })
        })
    }

    fn consents<'a>(&'a self, question: Question<'a>) -> Saying<'a, bool> {
        let message = clean(question.text).into_owned();
        self.ask(move || {
            loop {
                let said = line(&format!("{message} Approve? [y/n, empty: later] "))?;
                match said.trim().to_ascii_lowercase().as_str() {
                    "y" | "yes" => return Some(true),
                    "n" | "no" => return Some(false),
                    "" => return None,
                    _ => {}
                }
            }
        })
    }
}

/// Asks for required inputs that were not given, where somebody is there.
pub(super) fn ask_missing(workflow: &Workflow, given: &mut IndexMap<String, String>) {
    if !(io::stdin().is_terminal() && io::stderr().is_terminal()) {
        return;
    }
    for input in &workflow.inputs {
        if !input.required || input.default.is_some() || given.contains_key(&input.name) {
            continue;
        }
        let about = input
            .description
            .as_deref()
            .map(|about| format!(" ({})", clean(about)));
        if let Some(value) = line(&format!("{}{}: ", input.name, about.unwrap_or_default())) {
            given.insert(input.name.clone(), value);
        }
    }
}
