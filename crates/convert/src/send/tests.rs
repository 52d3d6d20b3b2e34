//! Sending, to a server of our own on this machine.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpListener;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use super::{Encoding, Lines, SendError, SendOptions, Sender, Sent, post};

/// What the server was sent.
#[derive(Debug, Default)]
struct Request {
    line: String,
    headers: Vec<String>,
    body: Vec<u8>,
}

impl Request {
    fn header(&self, name: &str) -> Option<&str> {
        let mut all = self.headers.iter().filter_map(|it| it.split_once(": "));
        all.find(|it| it.0.eq_ignore_ascii_case(name))
            .map(|it| it.1)
    }
}

/// A server that gives these answers, one to a connection, and then is no more.
fn server(answers: &[&str]) -> (String, JoinHandle<Vec<Request>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let answers: Vec<String> = answers.iter().map(|&it| it.to_owned()).collect();
    let thread = std::thread::spawn(move || {
        let mut requests = Vec::new();
        for answer in answers {
            let (stream, _) = listener.accept().unwrap();
            stream
                .set_read_timeout(Some(Duration::from_secs(10)))
                .unwrap();
            let mut reader = BufReader::new(stream);
            let mut request = Request::default();
            reader.read_line(&mut request.line).unwrap();
            loop {
                let mut line = String::new();
                reader.read_line(&mut line).unwrap();
                if line.trim().is_empty() {
                    break;
                }
                request.headers.push(line.trim().to_owned());
            }
            let length = request
                .header("content-length")
                .map_or(0, |it| it.parse().unwrap());
            request.body.resize(length, 0);
            reader.read_exact(&mut request.body).unwrap();
            reader.get_mut().write_all(answer.as_bytes()).unwrap();
            requests.push(request);
        }
        requests
    });
    (address, thread)
}

fn answer(status: &str, more: &str, body: &str) -> String {
    let length = body.len();
    format!(
        "HTTP/1.1 {status}\r\nconnection: close\r\ncontent-length: {length}\r\n{more}\r\n{body}"
    )
}

fn quick() -> SendOptions {
    SendOptions {
        first_wait: Duration::from_millis(1),
        longest_wait: Duration::from_millis(50),
        timeout: Duration::from_secs(10),
        ..SendOptions::default()
    }
}

const BATCH: &[u8] = b"{\"resourceSpans\":[]}\n";

#[test]
fn a_batch_is_posted_to_the_path_of_traces() {
    let (address, server) = server(&[&answer("200 OK", "", "{}")]);
    let headers = [("x-api-key".to_owned(), "open sesame".to_owned())];
    let accepted = post(&format!("http://{address}"), BATCH, &headers).unwrap();
    assert_eq!((accepted.rejected_spans, accepted.attempts), (0, 1));
    assert_eq!(accepted.message, None);
    let request = &server.join().unwrap()[0];
    assert_eq!(request.line.trim(), "POST /v1/traces HTTP/1.1");
    assert_eq!(request.header("content-type"), Some("application/json"));
    assert_eq!(request.header("x-api-key"), Some("open sesame"));
    assert_eq!(request.body, b"{\"resourceSpans\":[]}");
}

#[test]
fn a_path_is_kept_and_a_user_becomes_a_header() {
    let (address, server) = server(&[&answer("202 Accepted", "", "")]);
    let endpoint = format!("http://ada:p%40ss@{address}/api/otel?project=x");
    post(&endpoint, BATCH, &[]).unwrap();
    let request = &server.join().unwrap()[0];
    assert_eq!(request.line.trim(), "POST /api/otel?project=x HTTP/1.1");
    assert_eq!(request.header("authorization"), Some("Basic YWRhOnBAc3M="));
    assert_eq!(request.header("host"), Some(address.as_str()));
}

#[test]
fn spans_that_are_rejected_are_told() {
    for body in [
        r#"{"partialSuccess":{"rejectedSpans":"3","errorMessage":"too\nold"}}"#,
        r#"{"partialSuccess":{"rejectedSpans":3,"errorMessage":"too\nold"}}"#,
    ] {
        let json = "content-type: application/json\r\n";
        let (address, server) = server(&[&answer("200 OK", json, body)]);
        let accepted = post(&format!("http://{address}/"), BATCH, &[]).unwrap();
        assert_eq!(accepted.rejected_spans, 3);
        assert_eq!(accepted.message.as_deref(), Some("too old"));
        server.join().unwrap();
    }
}

#[test]
fn protobuf_is_sent_and_understood() {
    let kind = "content-type: application/x-protobuf\r\n";
    let (address, server) = server(&[&answer("200 OK", kind, "\n\u{7}\u{8}\u{2}\u{12}\u{3}old")]);
    let options = SendOptions {
        encoding: Encoding::Protobuf,
        ..quick()
    };
    let sender = Sender::new(&format!("http://{address}"), &[], options).unwrap();
    let batch = br#"{"resourceSpans":[{"resource":{"attributes":[]},"scopeSpans":[]}]}"#;
    let accepted = sender.post(batch).unwrap();
    assert_eq!(accepted.rejected_spans, 2);
    assert_eq!(accepted.message.as_deref(), Some("old"));
    let request = &server.join().unwrap()[0];
    assert_eq!(
        request.header("content-type"),
        Some("application/x-protobuf")
    );
    assert_eq!(request.body, [10, 2, 10, 0]);
    assert!(matches!(sender.post(b"no"), Err(SendError::Batch(_))));
}

#[test]
fn a_busy_endpoint_is_asked_again_when_it_says() {
    let busy = answer("503 Service Unavailable", "retry-after: 0\r\n", "");
    let later = answer("429 Too Many Requests", "retry-after: 3600\r\n", "");
    let (address, server) = server(&[&busy, &later, &answer("200 OK", "", "{}")]);
    let sender = Sender::new(&format!("http://{address}"), &[], quick()).unwrap();
    let begun = Instant::now();
    let accepted = sender.post(BATCH).unwrap();
    assert_eq!(accepted.attempts, 3);
    assert!(
        begun.elapsed() < Duration::from_secs(5),
        "an hour is too long"
    );
    assert_eq!(server.join().unwrap().len(), 3);
}

#[test]
fn it_is_not_asked_for_ever() {
    let busy = answer("502 Bad Gateway", "", "");
    let (address, server) = server(&[&busy, &busy]);
    let options = SendOptions {
        attempts: 2,
        ..quick()
    };
    let sender = Sender::new(&format!("http://{address}"), &[], options).unwrap();
    let error = sender.post(BATCH).unwrap_err();
    assert_eq!(
        error.to_string(),
        format!("http://{address}/v1/traces is busy (502) after 2 attempts")
    );
    server.join().unwrap();
}

#[test]
fn a_refusal_is_final_and_says_why() {
    let text = answer("415 Unsupported Media Type", "", "no \u{1b}[31mJSON");
    let json = answer("400 Bad Request", "", r#"{"code":3,"message":"bad span"}"#);
    for (answer, told) in [
        (text, "refuses it: 415, no  [31mJSON"),
        (json, "refuses it: 400, bad span"),
    ] {
        let (address, server) = server(&[&answer]);
        let error = post(&format!("http://{address}"), BATCH, &[]).unwrap_err();
        assert!(error.to_string().ends_with(told), "{error}");
        assert_eq!(server.join().unwrap().len(), 1);
    }
}

#[test]
fn redirects_are_not_followed() {
    let (elsewhere, trap) = server(&[]);
    let moved = format!("location: http://{elsewhere}/v1/traces\r\n");
    let (address, server) = server(&[&answer("307 Temporary Redirect", &moved, "")]);
    let error = post(&format!("http://{address}"), BATCH, &[]).unwrap_err();
    assert!(matches!(error, SendError::Redirected { status: 307, .. }));
    server.join().unwrap();
    trap.join().unwrap();
}

#[test]
fn what_opens_doors_is_in_no_error() {
    // Nobody listens where a listener was a moment ago.
    let address = TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap();
    let endpoint = format!("http://ada:hunter2@{address}/x?key=hunter2");
    let headers = [("authorization".to_owned(), "Bearer hunter2".to_owned())];
    let sender = Sender::new(&endpoint, &headers, quick()).unwrap();
    let error = sender.post(BATCH).unwrap_err();
    assert!(
        error
            .to_string()
            .starts_with(&format!("http://{address}/x cannot be reached"))
    );
    let shown = format!("{sender:?} {error} {error:?}");
    assert!(
        shown.contains("authorization") && !shown.contains("hunter2"),
        "{shown}"
    );
    let wrong = [("x".to_owned(), "hunter2\n".to_owned())];
    let error = Sender::new(&endpoint, &wrong, quick()).unwrap_err();
    assert!(!format!("{error} {error:?}").contains("hunter2"));
}

#[test]
fn addresses_that_cannot_be_sent_to_are_refused() {
    for (endpoint, why) in [
        ("localhost:4318", "begin with http"),
        ("ftp://localhost", "begin with http"),
        ("/v1/traces", "begin with http"),
        ("http://", "not a URL"),
        ("http://a b", "not a URL"),
        ("", "not a URL"),
        ("http://localhost:99999/", "not a URL"),
        ("http://ada:pw@localhost:99999/x", "not a URL"),
        ("http://[::1]:65536", "not a URL"),
        ("http://localhost:0", "not a URL"),
    ] {
        let error = Sender::new(endpoint, &[], quick()).unwrap_err();
        assert!(error.to_string().contains(why), "{endpoint}: {error}");
    }
}

#[test]
fn each_line_is_a_batch() {
    let ok = answer("200 OK", "", r#"{"partialSuccess":{"rejectedSpans":"1"}}"#);
    let (address, server) = server(&[&ok, &ok, &ok]);
    let sender = Sender::new(&format!("http://{address}"), &[], quick()).unwrap();
    let mut sent = Sent::default();
    let mut lines = Lines::new(&sender, &mut sent);
    lines.write_all(b"{\"a\":1}\n{\"b\"").unwrap();
    lines.write_all(b":2}\n\n{\"c\":3}").unwrap();
    lines.flush().unwrap();
    assert_eq!((sent.batches, sent.rejected_spans), (3, 3));
    let bodies: Vec<Vec<u8>> = server
        .join()
        .unwrap()
        .into_iter()
        .map(|it| it.body)
        .collect();
    assert_eq!(bodies, [&b"{\"a\":1}"[..], b"{\"b\":2}", b"{\"c\":3}"]);
}

#[test]
fn a_name_and_a_port_are_an_address() {
    for endpoint in [
        "http://localhost",
        "http://localhost:65535",
        "http://[::1]",
        "http://[::1]:4318/x",
        "https://ada:pass@example.com/x",
    ] {
        assert!(Sender::new(endpoint, &[], quick()).is_ok(), "{endpoint}");
    }
}

#[test]
fn a_page_is_no_answer_to_a_batch() {
    for kind in ["text/html; charset=utf-8", "Text/HTML"] {
        let kind = format!("content-type: {kind}\r\n");
        let page = answer("200 OK", &kind, "<!doctype html><p>Sign in");
        let (address, server) = server(&[&page]);
        let error = post(&format!("http://{address}"), BATCH, &[]).unwrap_err();
        assert!(matches!(error, SendError::Page { status: 200, .. }));
        assert!(error.to_string().contains("answers with a page"));
        server.join().unwrap();
    }
}

#[test]
fn an_endpoint_that_repeats_a_secret_is_not_repeated() {
    let echo = "no Bearer hunter2, key=s3same nor swordfish, YWRhOnN3b3JkZmlzaA==";
    let partial = format!(r#"{{"partialSuccess":{{"rejectedSpans":1,"errorMessage":"{echo}"}}}}"#);
    for (status, body) in [("401 Unauthorized", echo), ("200 OK", &partial)] {
        let (address, server) = server(&[&answer(status, "", body)]);
        let endpoint = format!("http://ada:swordfish@{address}/x?key=s3same");
        let headers = [("x-api-key".to_owned(), "Bearer hunter2".to_owned())];
        let told = match post(&endpoint, BATCH, &headers) {
            Ok(accepted) => accepted.message.unwrap(),
            Err(error) => format!("{error} {error:?}"),
        };
        for secret in ["hunter2", "s3same", "swordfish", "YWRh"] {
            assert!(!told.contains(secret), "{told}");
        }
        assert!(told.contains('…'), "{told}");
        server.join().unwrap();
    }
}

#[test]
fn rejected_spans_are_lost() {
    let mut loss = quipu_formats::loss::Loss::default();
    let mut sent = Sent::default();
    sent.count(&mut loss);
    assert!(loss.is_complete());
    sent.rejected_spans = 3;
    sent.count(&mut loss);
    sent.count(&mut loss);
    assert_eq!(loss.dropped[super::REJECTED].count, 6);
    assert!(!loss.is_complete());
}
