//! How fast it is: `cargo test --release -p quipu-formats otlp::tests::speed -- --ignored --nocapture`.

use std::io;
use std::time::Instant;

use quipu_model::{Event, LogBody, Notes};

use super::{Session, assistant, block, call, of_call, result};
use crate::otlp::{Convention, Options, writer};
use crate::projection::Nowhere;

/// A session of typical events, and how many bytes of content they have.
pub(crate) fn typical() -> (Session, usize) {
    let mut session = Session::new();
    let line = "fn parse(input: &str) -> Result<Ast, Error> { // \"quoted\"\\n\\t";
    let output = format!("\"{}\"", line.replace('"', "\\\"").repeat(31));
    let input = r#"{"command":"cargo test -p parser --all-features","timeout":120000}"#;
    for n in 0..4_000 {
        let id = format!("toolu_{n:020}");
        let of = format!("msg_{n:020}");
        let text = "I will look at the parser and then run the tests again. ".repeat(4);
        session.add(
            assistant(vec![block(&text)]),
            of_call("claude-opus-4-5", &of),
        );
        session.add(call(&id, "Bash", input), of_call("claude-opus-4-5", &of));
        session.add(result(&id, "Bash", Some(&output), None), Notes::default());
    }
    let mut bytes = Vec::new();
    for event in &session.events {
        crate::exchange::encode_log(event, &mut bytes);
    }
    (session, bytes.len())
}

#[test]
#[ignore = "measures; run it in release"]
#[expect(clippy::print_stderr, reason = "it is run to be read")]
fn speed() {
    let (session, bytes) = typical();
    for convention in [Convention::GenAi, Convention::OpenInference] {
        for content in [false, true] {
            let options = Options {
                convention,
                content,
                ..Options::default()
            };
            let run = |events: &[Event<LogBody>]| {
                let out = Box::new(io::sink());
                let mut to = writer(&session.header, &options, out, Box::new(Nowhere)).unwrap();
                for event in events {
                    to.event(event).unwrap();
                }
                to.finish().unwrap()
            };
            run(&session.events);
            let begun = Instant::now();
            let rounds = 10;
            for _ in 0..rounds {
                run(&session.events);
            }
            #[expect(clippy::cast_precision_loss, reason = "a figure for people")]
            let rate = (bytes * rounds) as f64 / 1e6 / begun.elapsed().as_secs_f64();
            eprintln!("{convention:?} content={content}: {rate:.0} MB/s of {bytes} bytes");
        }
    }
}
