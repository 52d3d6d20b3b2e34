use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use super::{HttpError, Request, shown};

/// A server that answers each connection with these bytes and keeps what it was sent. It closes the connection after
/// the answer unless that is `None`: then it never answers.
pub(crate) struct Server {
    pub(crate) url: String,
    pub(crate) seen: tokio::sync::mpsc::Receiver<String>,
    _end: tokio_util::sync::DropGuard,
}

/// Starts a server that gives these answers, one for each connection, the last one again and again.
pub(crate) async fn server(answers: Vec<Option<String>>) -> Server {
    let next = std::sync::atomic::AtomicUsize::new(0);
    serving(move |_| {
        let n = next.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        answers[n.min(answers.len() - 1)].clone()
    })
    .await
}

/// Starts a server that answers a request, head and body, with what is worked out from it.
pub(crate) async fn serving(
    answer: impl Fn(&str) -> Option<String> + Send + Sync + 'static,
) -> Server {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let (sender, seen) = tokio::sync::mpsc::channel(64);
    let end = CancellationToken::new();
    let guard = end.clone().drop_guard();
    let answer = std::sync::Arc::new(answer);
    tokio::spawn(async move {
        loop {
            let (mut stream, _) = tokio::select! {
                () = end.cancelled() => return,
                accepted = listener.accept() => accepted.unwrap(),
            };
            let (sender, end, answer) = (sender.clone(), end.clone(), answer.clone());
            tokio::spawn(async move {
                let request = read_request(&mut stream).await;
                let answer = answer(&request);
                sender.try_send(request).ok();
                match answer {
                    Some(answer) => {
                        stream.write_all(answer.as_bytes()).await.ok();
                        stream.shutdown().await.ok();
                    }
                    None => end.cancelled().await,
                }
            });
        }
    });
    Server {
        url,
        seen,
        _end: guard,
    }
}

/// The head and body of a request.
async fn read_request(stream: &mut tokio::net::TcpStream) -> String {
    let mut all = Vec::new();
    let mut buffer = [0; 4096];
    loop {
        let text = String::from_utf8_lossy(&all).into_owned();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length = head.lines().find_map(|line| {
                let (name, value) = line.split_once(':')?;
                let found = name.eq_ignore_ascii_case("content-length");
                found.then(|| value.trim().parse::<usize>().ok())?
            });
            if body.len() >= length.unwrap_or(0) {
                return text;
            }
        }
        match stream.read(&mut buffer).await {
            Ok(0) | Err(_) => return text,
            Ok(n) => all.extend_from_slice(&buffer[..n]),
        }
    }
}

/// An answer with a length.
#[expect(clippy::unnecessary_wraps, reason = "as servers take answers")]
pub(crate) fn answer(status: &str, headers: &str, body: &str) -> Option<String> {
    let length = body.len();
    Some(format!(
        "HTTP/1.1 {status}\r\ncontent-length: {length}\r\nconnection: close\r\n{headers}\r\n{body}"
    ))
}

#[tokio::test]
async fn a_request_arrives_as_it_was_made_and_its_answer_is_read() {
    let mut server = server(vec![answer(
        "201 Created",
        "x-b: 2\r\nx-a: 1\r\nx-b: 3\r\n",
        "made",
    )])
    .await;
    let request = Request::new("POST", &format!("{}/things?a=b", server.url)).unwrap();
    let request = request.header("X-Key", "secret").unwrap().body("hello");
    let response = request.send(&CancellationToken::new()).await.unwrap();
    assert_eq!(response.status, 201);
    assert_eq!(response.header("x-a"), Some("1"));
    let names: Vec<_> = response.headers();
    assert!(
        names.contains(&("x-b".to_owned(), "2, 3".to_owned())),
        "{names:?}"
    );
    assert_eq!(response.read(100).await.unwrap(), (b"made".to_vec(), false));
    let seen = server.seen.recv().await.unwrap();
    assert!(seen.starts_with("POST /things?a=b HTTP/1.1\r\n"), "{seen}");
    assert!(seen.contains("x-key: secret\r\n"), "{seen}");
    assert!(seen.ends_with("\r\n\r\nhello"), "{seen}");
}

#[tokio::test]
async fn a_body_over_the_cap_is_cut_and_said_to_be() {
    let body = "x".repeat(100_000);
    let server = server(vec![answer("200 OK", "", &body)]).await;
    let response = Request::new("GET", &server.url).unwrap();
    let response = response.send(&CancellationToken::new()).await.unwrap();
    let (body, more) = response.read(1000).await.unwrap();
    assert_eq!((body.len(), more), (1000, true));
}

#[tokio::test]
async fn a_server_that_never_answers_ends_by_the_timeout() {
    let server = server(vec![None]).await;
    let limit = Duration::from_millis(100);
    let request = Request::new("GET", &server.url)
        .unwrap()
        .timeout(Some(limit));
    let error = request.send(&CancellationToken::new()).await.unwrap_err();
    assert!(
        matches!(error, HttpError::TimedOut(it) if it == limit),
        "{error}"
    );
}

#[tokio::test]
async fn a_body_that_never_ends_ends_by_the_timeout() {
    let head = "HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nhalf";
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let holding = tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        read_request(&mut stream).await;
        stream.write_all(head.as_bytes()).await.unwrap();
        tokio::time::sleep(Duration::from_secs(60)).await;
        drop(stream);
    });
    let request = Request::new("GET", &url).unwrap();
    let request = request.timeout(Some(Duration::from_millis(200)));
    let mut response = request.send(&CancellationToken::new()).await.unwrap();
    assert_eq!(response.piece().await.unwrap().unwrap(), "half");
    let error = response.piece().await.unwrap_err();
    assert!(matches!(error, HttpError::TimedOut(_)), "{error}");
    holding.abort();
}

#[tokio::test]
async fn a_request_is_ended_by_cancelling() {
    let mut server = server(vec![None]).await;
    let cancel = CancellationToken::new();
    let sent = tokio::spawn({
        let (request, cancel) = (Request::new("GET", &server.url).unwrap(), cancel.clone());
        async move { request.send(&cancel).await.map(|it| it.status) }
    });
    server.seen.recv().await.unwrap();
    cancel.cancel();
    let error = sent.await.unwrap().unwrap_err();
    assert!(matches!(error, HttpError::Cancelled), "{error}");
}

#[tokio::test]
async fn nobody_listening_is_an_error_with_the_address_and_the_cause() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/x?key=secret", listener.local_addr().unwrap());
    drop(listener);
    let request = Request::new("GET", &url).unwrap();
    let error = request.send(&CancellationToken::new()).await.unwrap_err();
    let text = error.to_string();
    assert!(
        text.contains("refused") && text.contains("127.0.0.1"),
        "{text}"
    );
    assert!(!text.contains("secret"), "{text}");
}

#[test]
fn addresses_that_cannot_be_sent_to_are_named_without_their_credentials() {
    for (url, part) in [
        ("ftp://host/x", "http://"),
        ("/path", "http://"),
        ("http://user:pw@host/x?token=tt", "header"),
        ("http://ho st/", "not a URL"),
    ] {
        let error = Request::new("GET", url).unwrap_err().to_string();
        assert!(error.contains(part), "{url}: {error}");
        assert!(
            !error.contains("pw") && !error.contains("tt="),
            "{url}: {error}"
        );
    }
    assert_eq!(shown("https://u:p@h:1/p/q?k=v#f"), "https://h:1/p/q");
    let request = Request::new("GET", "http://h/").unwrap();
    let error = request.header("X-Key", "a\r\nsecret").unwrap_err();
    assert!(!error.to_string().contains("secret"), "{error}");
}
