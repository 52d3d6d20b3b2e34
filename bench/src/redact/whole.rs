//! The engine beside one that tries every rule on every text: the findings have to be the same.

use quipu_model::json::{Kind, Node, Tape};
use quipu_redact::engine::whole;
use quipu_redact::{Context, Engine, Found, Scratch};

use super::corpus::Corpus;
use crate::cpu::cpu;
use crate::table::{Goal, Table, now};

/// How deep a line may nest.
const DEPTH: usize = 128;

/// The texts of some logs, with the names they are given to.
fn texts(corpus: &Corpus, most: usize) -> Vec<(Option<String>, String)> {
    let (mut all, mut bytes, mut tape) = (Vec::new(), 0, Tape::new());
    for log in &corpus.logs {
        for line in log.bytes.split(|byte| *byte == b'\n') {
            if bytes >= most {
                return all;
            }
            bytes += line.len() + 1;
            if let Ok(text) = std::str::from_utf8(line)
                && let Ok(node) = tape.read(text, DEPTH)
            {
                walk(node, None, &mut all);
            }
        }
    }
    all
}

/// The tape is no deeper than it was told to be, and neither is this.
fn walk(node: Node<'_>, name: Option<&str>, all: &mut Vec<(Option<String>, String)>) {
    match node.kind() {
        Kind::Object => {
            for (key, value) in node.fields() {
                walk(value, Some(&key.to_text_lossy()), all);
            }
        }
        Kind::List => {
            for item in node.items() {
                walk(item, name, all);
            }
        }
        _ => {
            if let Some(text) = node.as_str() {
                all.push((name.map(str::to_owned), text.into_owned()));
            }
        }
    }
}

/// Times both on the same texts.
pub(super) fn measure(table: &mut Table, corpus: &Corpus, engine: &Engine, bytes: usize) {
    now("the engine that tries every rule on every text");
    let texts = texts(corpus, bytes);
    let size: usize = texts.iter().map(|(_, text)| text.len()).sum();
    let mut scratch = Scratch::default();
    let (mut ours, mut theirs): (Vec<Found>, Vec<Found>) = (Vec::new(), Vec::new());
    let (mut fast, mut slow, mut different) = (0.0, 0.0, 0);
    // In turns, so that a noisy machine is noisy for both.
    for some in texts.chunks(2_000) {
        let began = cpu();
        let mut spans = Vec::new();
        for (name, text) in some {
            ours.clear();
            let name = name.as_deref();
            engine.scan(
                &mut scratch,
                text,
                Context {
                    name,
                    ..Context::default()
                },
                &mut ours,
            );
            spans.push(ours.clone());
        }
        let middle = cpu();
        for ((name, text), ours) in some.iter().zip(&spans) {
            theirs.clear();
            let name = name.as_deref();
            whole::scan(
                engine,
                text,
                Context {
                    name,
                    ..Context::default()
                },
                &mut theirs,
            );
            different += usize::from(*ours != theirs);
        }
        fast += middle - began;
        slow += cpu() - middle;
    }
    let speed = |seconds: f64| format!("{:.0} MB/s", size as f64 / 1e6 / seconds.max(1e-9));
    table.row(
        "every rule on every text: times faster than that",
        &speed(fast),
        &speed(slow),
        slow / fast.max(1e-9),
        Goal::AtLeast(7.0),
    );
    table.row(
        "every rule on every text: texts with other findings",
        &different.to_string(),
        &format!("of {}", texts.len()),
        different as f64,
        Goal::AtMost(0.0),
    );
}
