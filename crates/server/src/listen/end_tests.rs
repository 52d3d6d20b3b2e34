//! What clients hear who ask while the server ends.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use crate::testkit::Served;

fn ask(served: &Served, path: &str) -> TcpStream {
    let mut stream = served.connect();
    write!(
        stream,
        "GET {path} HTTP/1.1\r\nHost: {}\r\n\r\n",
        served.address
    )
    .unwrap();
    stream
}

fn heard(mut stream: TcpStream) -> String {
    let mut all = Vec::new();
    stream.read_to_end(&mut all).unwrap();
    String::from_utf8(all).unwrap()
}

#[test]
fn everybody_who_asked_before_the_end_is_answered() {
    for round in 0..10 {
        let served = Served::empty();
        let mut asked: Vec<TcpStream> = (0..60).map(|_| ask(&served, "/healthz")).collect();
        // Somebody who is connected, and asks a moment later.
        let mut late = served.connect();
        served.app.ending().cancel();
        std::thread::sleep(Duration::from_millis(5));
        write!(
            late,
            "GET /healthz HTTP/1.1\r\nHost: {}\r\n\r\n",
            served.address
        )
        .unwrap();
        asked.push(late);
        for (n, stream) in asked.into_iter().enumerate() {
            let told = heard(stream);
            assert!(told.starts_with("HTTP/1.1 200"), "{round}, {n}: {told:?}");
            assert!(told.ends_with("ok\n"), "{round}, {n}: {told:?}");
        }
    }
}

#[test]
fn an_answer_that_takes_long_has_its_time_and_who_says_nothing_holds_nobody_up() {
    let served = Served::empty();
    let silent = served.connect();
    // All who may read at once do, for a while. There are eight at most.
    let app = served.app.clone();
    let (begun, go_on) = (Instant::now(), Duration::from_millis(600));
    let held = std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .enable_all()
            .build()
            .unwrap();
        let works = (0..8).map(|_| {
            let app = app.clone();
            runtime.spawn(async move {
                app.read(move |_| {
                    std::thread::sleep(go_on.saturating_sub(begun.elapsed()));
                    Ok(())
                })
                .await
            })
        });
        let works: Vec<_> = works.collect();
        runtime.block_on(async {
            for work in works {
                drop(work.await);
            }
        });
    });
    std::thread::sleep(Duration::from_millis(100));
    let asked = ask(&served, "/api/v1/transcripts");
    std::thread::sleep(Duration::from_millis(100));
    served.app.ending().cancel();
    let told = heard(asked);
    assert!(told.starts_with("HTTP/1.1 200"), "{told}");
    assert!(begun.elapsed() >= go_on, "it did not have to wait");
    assert_eq!(heard(silent), "");
    assert!(begun.elapsed() < go_on * 4, "{:?}", begun.elapsed());
    held.join().unwrap();
}
