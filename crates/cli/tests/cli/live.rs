//! Live sessions of agents: one process imports, one follows, one searches.

use std::io::Write as _;
use std::time::{Duration, Instant};

use serde_json::Value;

use super::env::{Running, TestEnv};
use super::machine::{PROJECT, SESSION, assistant, json, text, user};

fn log(env: &TestEnv, lines: &str) -> String {
    env.file(&format!("{PROJECT}/{SESSION}.jsonl"), lines)
}

fn append(log: &str, text: &str) {
    let mut file = std::fs::OpenOptions::new().append(true).open(log).unwrap();
    file.write_all(text.as_bytes()).unwrap();
}

fn next(tail: &Running) -> Value {
    serde_json::from_str(&tail.line()).unwrap()
}

#[test]
fn tail_shows_the_end_of_a_session_and_what_its_agent_adds() {
    let env = TestEnv::new();
    let log = log(
        &env,
        &(user(SESSION, 0, "first") + &assistant(SESSION, 1, &text("second"))),
    );
    assert_eq!(env.run(&["import"]).code, 0);
    let before = std::fs::read(&log).unwrap();
    let end = env.run(&["tail", SESSION, "-n", "1", "--jsonl"]);
    assert_eq!(end.code, 0, "{}", end.stderr);
    assert_eq!(end.stdout.lines().count(), 1);
    assert!(end.stdout.contains("second"), "{}", end.stdout);
    assert_eq!(std::fs::read(&log).unwrap(), before);

    let id = json(&env, &["list", "--json"])[0]["id"]
        .as_str()
        .unwrap()
        .to_owned();
    for argument in [&id, SESSION, &log] {
        assert_eq!(
            env.run(&["tail", argument, "--from", "1"]).code,
            0,
            "{argument}"
        );
    }
    // Nobody else imports: the follower does.
    let tail = env.start(&["tail", "-f", &id, "-n", "1", "--jsonl"]);
    let first = next(&tail);
    assert!(first.to_string().contains("second"), "{first}");
    for n in 2..5 {
        append(&log, &user(SESSION, n, &format!("toucan{n}")));
        let event = next(&tail);
        assert!(event.to_string().contains(&format!("toucan{n}")), "{event}");
        assert_eq!(
            event["seq"].as_u64().unwrap(),
            first["seq"].as_u64().unwrap() + n as u64 - 1
        );
        let found = json(&env, &["search", &format!("toucan{n}"), "--json"]);
        assert_eq!(found[0]["id"], id.as_str(), "{found:#}");
    }
}

#[test]
fn one_process_imports_one_follows_and_one_searches() {
    const EVENTS: usize = 40;
    let env = TestEnv::new();
    let log = log(&env, &user(SESSION, 0, "quetzal zero"));
    assert_eq!(env.run(&["import"]).code, 0);
    let id = json(&env, &["list", "--json"])[0]["id"]
        .as_str()
        .unwrap()
        .to_owned();
    let watch = env.start(&["import", "--watch"]);
    let watching = watch.error_line();
    assert!(watching.contains("watching"), "{watching}");
    let tail = env.start(&["tail", "-f", &id, "--from", "1", "--jsonl"]);
    let mut found = 0;
    std::thread::scope(|scope| {
        let searcher = scope.spawn(|| {
            let (mut last, begun) = (0, Instant::now());
            while last <= EVENTS && begun.elapsed() < Duration::from_secs(120) {
                let ran = env.run(&["search", "quetzal", "--count"]);
                assert_eq!((ran.code, ran.stderr.as_str()), (0, ""));
                let now: usize = ran.stdout.trim().parse().unwrap();
                assert!(now >= last, "{now} after {last}");
                last = now;
            }
            last
        });
        for n in 1..=EVENTS {
            append(&log, &user(SESSION, n, &format!("quetzal {n}")));
            std::thread::sleep(Duration::from_millis(20));
        }
        for seq in 1..=EVENTS as u64 + 1 {
            let event = next(&tail);
            assert_eq!(event["seq"], seq, "each once, in order");
            assert!(event.to_string().contains("quetzal"), "{event}");
        }
        found = searcher.join().unwrap();
    });
    // The title says it as well.
    assert!(found > EVENTS, "{found}");
    drop((tail, watch));
    // What came of it is what one import makes of the log.
    let grown = super::machine::figures(&env, ".");
    assert_eq!(
        env.run(&["--home", env.path("other").to_str().unwrap(), "import"])
            .code,
        0
    );
    assert_eq!(super::machine::figures(&env, "other"), grown);
}
