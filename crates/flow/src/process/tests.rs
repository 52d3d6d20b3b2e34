use std::time::{Duration, Instant};

use tokio_util::sync::CancellationToken;

use super::{Ended, Listener, ProcessError, Program, run};

#[derive(Default)]
struct Heard {
    out: Vec<u8>,
    err: Vec<u8>,
}

impl Listener for Heard {
    fn stdout(&mut self, bytes: &[u8]) {
        self.out.extend_from_slice(bytes);
    }
    fn stderr(&mut self, bytes: &[u8]) {
        self.err.extend_from_slice(bytes);
    }
}

async fn ran(program: &Program) -> (Ended, Heard) {
    let mut heard = Heard::default();
    let ended = run(program, &mut heard, &CancellationToken::new()).await;
    (ended.expect("the program starts"), heard)
}

fn sh(script: &str) -> Program {
    Program::new(["/bin/sh", "-c", script])
}

#[tokio::test]
async fn output_and_errors_are_kept_apart() {
    let (ended, heard) = ran(&sh("printf out; printf err >&2; exit 3")).await;
    assert_eq!(ended, Ended::Exited(3));
    assert_eq!((&heard.out[..], &heard.err[..]), (&b"out"[..], &b"err"[..]));
}

#[tokio::test]
async fn a_program_that_ends_before_it_has_read_its_input_is_not_an_error() {
    let mut program = sh("exit 0");
    program.stdin = Some(vec![b'x'; 4 << 20]);
    assert_eq!(ran(&program).await.0, Ended::Exited(0));
}

#[tokio::test]
async fn a_program_reads_its_input() {
    let mut program = sh("cat");
    program.stdin = Some(b"hello".to_vec());
    assert_eq!(ran(&program).await.1.out, b"hello");
}

#[tokio::test]
async fn a_program_that_ignores_the_request_to_end_is_made_to() {
    let mut program = sh("trap '' TERM; echo up; sleep 60; sleep 60");
    program.timeout = Some(Duration::from_millis(200));
    program.grace = Duration::from_millis(200);
    let began = Instant::now();
    let (ended, heard) = ran(&program).await;
    assert_eq!(ended, Ended::TimedOut);
    assert!(began.elapsed() < Duration::from_secs(10));
    assert_eq!(heard.out, b"up\n", "what it had said is kept");
}

#[tokio::test]
async fn a_descendant_in_a_session_of_its_own_ends_as_well() {
    let mut program = sh("setsid sleep 61 & echo $!; wait");
    program.timeout = Some(Duration::from_millis(300));
    let (_, heard) = ran(&program).await;
    let pid = String::from_utf8_lossy(&heard.out).trim().to_owned();
    for _ in 0..40 {
        let state = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        if state.is_empty() || state.contains(") Z ") {
            return;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    panic!("{pid} is still there");
}

#[tokio::test]
async fn a_child_that_holds_the_pipe_open_does_not_hold_up_the_run() {
    let began = Instant::now();
    let (ended, heard) = ran(&sh("sleep 5 & echo done")).await;
    assert_eq!((ended, &heard.out[..]), (Ended::Exited(0), &b"done\n"[..]));
    assert!(began.elapsed() < Duration::from_secs(4));
}

#[tokio::test]
async fn a_missing_program_is_named() {
    let mut heard = Heard::default();
    let program = Program::new(["no-such-program-here"]);
    let never = CancellationToken::new();
    let ended = run(&program, &mut heard, &never);
    let error = ended.await.expect_err("it does not exist");
    assert!(
        matches!(&error, ProcessError::NotFound { program } if program == "no-such-program-here")
    );
}
