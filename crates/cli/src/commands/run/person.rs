//! A person at the terminal, who can be asked.

use std::io::{self, BufRead as _, IsTerminal as _, Write as _};
use std::sync::Arc;

use indexmap::IndexMap;
use quipu_flow::definition::Workflow;
use quipu_flow::engine::Person;

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

impl Person for Terminal {
    fn line(&self, answer: &str) -> Option<String> {
        self.display.aside(|| {
            say(&clean(answer));
            line("(empty line ends) > ")
        })
    }

    fn consents(&self, message: &str) -> Option<bool> {
        self.display.aside(|| {
            loop {
                let said = line(&format!("{} Approve? [y/n, empty: later] ", clean(message)))?;
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
