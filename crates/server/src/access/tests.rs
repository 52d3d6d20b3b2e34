use crate::testkit::Served;

#[test]
fn other_hosts_and_origins_are_refused() {
    let served = Served::empty();
    let own = served.address.to_string();
    assert_eq!(served.get("/healthz").status, 200);
    let with = |headers: &[(&str, &str)]| served.send("GET", "/api/v1/transcripts/x", headers, b"");
    assert_eq!(with(&[]).status, 404);
    assert_eq!(with(&[("Host", "evil.example")]).status, 421);
    assert_eq!(with(&[("Host", "evil.example:7847")]).status, 421);
    assert_eq!(
        with(&[("Host", &own), ("Origin", "http://evil.example")]).status,
        403
    );
    assert_eq!(with(&[("Origin", "null")]).status, 403);
    assert_eq!(with(&[("Origin", &format!("http://{own}"))]).status, 404);
    assert_eq!(with(&[("Sec-Fetch-Site", "cross-site")]).status, 403);
    let link = [
        ("Sec-Fetch-Site", "cross-site"),
        ("Sec-Fetch-Mode", "navigate"),
        ("Sec-Fetch-Dest", "document"),
    ];
    assert_eq!(with(&link).status, 404);
    // Two hosts are one too many, whichever of them is ours.
    let two =
        format!("GET /healthz HTTP/1.1\r\nHost: {own}\r\nHost: evil\r\nConnection: close\r\n\r\n");
    assert_eq!(served.raw(two.as_bytes()).status, 421);
    let none = b"GET /healthz HTTP/1.1\r\nConnection: close\r\n\r\n";
    assert!(served.raw(none).status >= 400);
}

#[test]
fn every_answer_is_hardened_and_errors_say_what_to_do() {
    let served = Served::empty();
    for path in ["/healthz", "/nowhere", "/api/v1/transcripts/nothing"] {
        let answer = served.get(path);
        assert_eq!(
            answer.header("x-content-type-options"),
            Some("nosniff"),
            "{path}"
        );
        assert_eq!(answer.header("x-frame-options"), Some("DENY"));
        let policy = answer.header("content-security-policy").unwrap();
        assert!(policy.contains("default-src 'none'") && !policy.contains("unsafe"));
    }
    let answer = served.get("/nowhere");
    assert_eq!(answer.status, 404);
    assert_eq!(
        answer.header("content-type"),
        Some("application/problem+json")
    );
    assert_eq!(answer.json()["type"], "not_found");
}

#[test]
fn a_wrong_token_is_refused_and_keys_are_needed_where_that_is_set() {
    let served = Served::with(|_| {}, |options| options.require_keys = true);
    let with = |headers: &[(&str, &str)]| served.send("GET", "/metrics", headers, b"").status;
    assert_eq!(with(&[]), 401);
    assert_eq!(with(&[("X-Quipu-Token", "wrong")]), 401);
    assert_eq!(with(&[("Authorization", "Bearer qk_wrong")]), 401);
    assert_eq!(with(&[("X-Quipu-Token", served.app.token().expose())]), 200);
    let bearer = format!("Bearer {}", served.app.token().expose());
    assert_eq!(with(&[("Authorization", &bearer)]), 200);
}

#[test]
fn what_a_proxy_hands_on_needs_a_key_although_the_proxy_is_near() {
    let names = vec!["quipu.example".to_owned()];
    let served = Served::with(|_| {}, |options| options.host_names = names);
    let with = |headers: &[(&str, &str)]| {
        let answer = served.send("GET", "/api/v1/transcripts", headers, b"");
        answer.status
    };
    assert_eq!(with(&[]), 200);
    assert_eq!(with(&[("Host", "localhost:1")]), 200);
    assert_eq!(with(&[("Host", "quipu.example")]), 401);
    assert_eq!(with(&[("Host", "Quipu.Example.:443")]), 401);
    for header in ["Forwarded", "Via", "X-Forwarded-For", "X-Real-IP"] {
        assert_eq!(with(&[(header, "203.0.113.9")]), 401, "{header}");
    }
    let token = served.app.token().expose();
    let own = [("Host", "quipu.example"), ("X-Quipu-Token", token)];
    assert_eq!(with(&own), 200);
}
