//! What every request passes: host, origin, who asks; and what every answer gets.

use std::net::IpAddr;

use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};
use http::header::{
    AUTHORIZATION, CONTENT_SECURITY_POLICY, HOST, HeaderName, HeaderValue, ORIGIN, REFERRER_POLICY,
    X_CONTENT_TYPE_OPTIONS, X_FRAME_OPTIONS,
};
use http::{HeaderMap, Method};

use super::{Caller, KeyHolder, TOKEN_HEADER};
use crate::App;
use crate::listen::Peer;
use crate::problem::Problem;
use crate::submissions::is_submission;

/// The policy of everything that is not a page: nothing of it runs, nothing frames it.
const POLICY: &str =
    "default-src 'none'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'";

/// The most bytes of all headers.
const LONGEST_HEAD: usize = 64 << 10;

/// Lets a request in, or not.
pub(crate) async fn gate(State(app): State<App>, mut request: Request, next: Next) -> Response {
    let peer = request.extensions().get::<Peer>().copied();
    let admitted = match admit(&app, peer, &request) {
        Ok(Asked::By(caller)) => Ok(caller),
        Ok(Asked::With(key, stranger)) => holder(&app, key, stranger).await.map(Caller::Key),
        Err(problem) => Err(problem),
    };
    let mut response = match admitted {
        Ok(caller) => {
            request.extensions_mut().insert(caller.clone());
            let mut response = next.run(request).await;
            // For the log.
            response.extensions_mut().insert(caller);
            response
        }
        Err(problem) => problem.into_response(),
    };
    harden(response.headers_mut());
    response
}

/// The headers that every answer has, unless a page brought its own policy.
fn harden(headers: &mut HeaderMap) {
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.insert(X_FRAME_OPTIONS, HeaderValue::from_static("DENY"));
    headers.insert(REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
    headers.insert(
        HeaderName::from_static("cross-origin-resource-policy"),
        HeaderValue::from_static("same-origin"),
    );
    if !headers.contains_key(CONTENT_SECURITY_POLICY) {
        headers.insert(CONTENT_SECURITY_POLICY, HeaderValue::from_static(POLICY));
    }
}

fn text<'h>(headers: &'h HeaderMap, name: &HeaderName) -> Option<&'h str> {
    headers.get(name).and_then(|value| value.to_str().ok())
}

fn admit(app: &App, peer: Option<Peer>, request: &Request) -> Result<Asked, Problem> {
    let peer = peer.ok_or_else(Problem::internal)?;
    let headers = request.headers();
    let sizes = headers
        .iter()
        .map(|(name, value)| name.as_str().len() + value.len());
    // What reads from sockets stops soon after this, and not at it.
    if sizes.sum::<usize>() > LONGEST_HEAD {
        let status = http::StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE;
        let problem = Problem::new(status, "too_large", "The headers are too large");
        return Err(problem.detail(format!("they may have {LONGEST_HEAD} bytes")));
    }
    if peer != Peer::Unix {
        to_this_server(app, request)?;
        from_own_pages(request.method(), headers, app)?;
    }
    // Submissions look at keys themselves, and have refusals of their own.
    if is_submission(request.uri().path()) {
        return Ok(Asked::By(Caller::Nobody));
    }
    who(app, peer, headers)
}

/// Refuses what is meant for another server: by its `Host`, or by a target that names a host itself, which goes before it.
fn to_this_server(app: &App, request: &Request) -> Result<(), Problem> {
    let headers = request.headers();
    let foreign = |what: &str| {
        Problem::new(
            http::StatusCode::MISDIRECTED_REQUEST,
            "foreign_host",
            "This server has another name",
        )
        .detail(format!("the {what} names another server"))
        .hint("use the address that `quipu up` prints, or start it with --host-name NAME")
    };
    let host = text(headers, &HOST).is_some_and(|host| app.names().has(host));
    if headers.get_all(HOST).iter().count() != 1 || !host {
        return Err(foreign("Host header"));
    }
    match request.uri().authority() {
        Some(authority) if !app.names().has(authority.as_str()) => Err(foreign("target")),
        _ => Ok(()),
    }
}

/// Refuses what a page of another site sends.
fn from_own_pages(method: &Method, headers: &HeaderMap, app: &App) -> Result<(), Problem> {
    let host = text(headers, &HOST);
    let foreign = || {
        Problem::forbidden("pages of other sites may not use this server")
            .hint("use it from its own address, or from a program that sends no Origin header")
    };
    if headers.contains_key(ORIGIN) {
        let one = headers.get_all(ORIGIN).iter().count() == 1;
        let own =
            one && text(headers, &ORIGIN).is_some_and(|origin| app.names().is_own(origin, host));
        return if own { Ok(()) } else { Err(foreign()) };
    }
    // Images, scripts and forms of other sites send no Origin, but browsers say where they come from. A link that a
    // person follows is a page of its own.
    let header = |name: &'static str| text(headers, &HeaderName::from_static(name)).unwrap_or("");
    let is_link = method == Method::GET
        && header("sec-fetch-mode") == "navigate"
        && header("sec-fetch-dest") == "document";
    match header("sec-fetch-site") {
        "cross-site" | "same-site" if !is_link => Err(foreign()),
        _ => Ok(()),
    }
}

/// Headers that proxies add.
const FORWARDED: [&str; 5] = [
    "forwarded",
    "via",
    "x-forwarded-for",
    "x-forwarded-host",
    "x-real-ip",
];

/// Whether a proxy handed the request on: it says so, or the request names the server by a name that only others use.
fn is_forwarded(app: &App, headers: &HeaderMap) -> bool {
    FORWARDED.iter().any(|name| headers.contains_key(*name))
        || text(headers, &HOST).is_some_and(|host| app.names().is_public(host))
}

/// Who asks.
enum Asked {
    By(Caller),
    /// Whoever has this key. The address is that of a stranger.
    With(String, Option<IpAddr>),
}

/// Who has a key. Keys that were shown before are known; others are looked up in a file, in which time this thread serves others.
async fn holder(app: &App, key: String, stranger: Option<IpAddr>) -> Result<KeyHolder, Problem> {
    if let Some(holder) = app.keys().recall(&key, stranger) {
        return holder;
    }
    let app = app.clone();
    let looked_up = tokio::task::spawn_blocking(move || app.keys().check(&key, stranger));
    looked_up.await.map_err(|_| Problem::internal())?
}

fn who(app: &App, peer: Peer, headers: &HeaderMap) -> Result<Asked, Problem> {
    let bearer = text(headers, &AUTHORIZATION)
        .and_then(|value| value.split_once(' '))
        .filter(|(scheme, _)| scheme.eq_ignore_ascii_case("bearer"))
        .map(|(_, key)| key.trim());
    let token = headers
        .get(TOKEN_HEADER)
        .and_then(|value| value.to_str().ok())
        .or(bearer.filter(|key| !key.starts_with("qk_")));
    if let Some(token) = token {
        if peer.is_local() && app.token().is(token) {
            return Ok(Asked::By(Caller::Owner));
        }
        return Err(Problem::unauthorized("this is not the token of this start")
            .hint("each start has a token of its own; it is in server.json in Quipu's home"));
    }
    if let Some(key) = bearer {
        return Ok(Asked::With(key.to_owned(), peer.stranger()));
    }
    // A proxy on this machine speaks for strangers, who are not trusted because the proxy is near.
    if is_forwarded(app, headers) {
        return Ok(Asked::By(Caller::Nobody));
    }
    Ok(Asked::By(match peer {
        Peer::Unix => Caller::Owner,
        Peer::Loopback(_) if !app.options().require_keys => Caller::Local,
        Peer::Loopback(_) | Peer::Remote(_) => Caller::Nobody,
    }))
}
