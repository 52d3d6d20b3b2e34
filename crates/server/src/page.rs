//! The web page: a shell, and the modules that draw it.
//!
//! The files are in `crates/server/page`, and those that exported pages share in `crates/formats/src/html/page`. They are served
//! as they are written, below a name that changes with them, so that a browser keeps them for good. A debug build reads them
//! from where they are written.

use std::fmt::Write as _;

use axum::Router;
use axum::extract::{Path, State};
use axum::response::{IntoResponse as _, Response};
use axum::routing::get;
use bytes::Bytes;
use http::header::{
    ACCEPT, CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, ETAG, HeaderName, HeaderValue,
    IF_NONE_MATCH, VARY,
};
use http::{HeaderMap, StatusCode};
use sha2::{Digest as _, Sha256};

use crate::App;
use crate::access::Caller;
use crate::listen::nowhere;

/// What the page may do: run its own modules, use its own style, ask this server. Strings cannot become HTML.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; \
     connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; \
     require-trusted-types-for 'script'; trusted-types 'none'";

/// The addresses that the page draws. It is the same page; its script looks at the address.
const SCREENS: [&str; 11] = [
    "/sessions",
    "/search",
    "/cost",
    "/tools",
    "/runs",
    "/runs/{id}",
    "/compare",
    "/shared",
    "/t/{id}",
    "/t/{id}/{view}",
    "/signin",
];

macro_rules! files {
    ($($name:literal),+ $(,)?) => {
        &[$(($name, include_str!(concat!("../page/", $name)))),+]
    };
}

/// What only the served page has.
const OWN: &[(&str, &str)] = files![
    "app.css",
    "app.js",
    "api.js",
    "live.js",
    "parts.js",
    "charts.js",
    "palette.js",
    "overview.js",
    "sessions.js",
    "transcript.js",
    "source.js",
    "timeline.js",
    "context.js",
    "ledger.js",
    "cost.js",
    "find.js",
    "runs.js",
    "compare.js",
    "shared.js",
];

const SHELL: &str = include_str!("../page/index.html");

/// The files by name, and the name of all of them together.
struct Files {
    version: String,
    all: Vec<(&'static str, Bytes)>,
    shell: String,
}

impl Files {
    fn read() -> Self {
        let shared = quipu_formats::html::MODULES.iter();
        let shared = shared.map(|module| (module.name, current(SHARED, module.name, module.text)));
        let own = OWN
            .iter()
            .map(|(name, text)| (*name, current("page", name, text)));
        let style = quipu_formats::html::STYLE;
        let style = [("page.css", current(SHARED, "page.css", style))];
        let all: Vec<_> = shared.chain(own).chain(style).collect();
        let shell = String::from_utf8_lossy(&current("page", "index.html", SHELL)).into_owned();
        let mut hash = Sha256::new();
        for (name, bytes) in &all {
            hash.update(name);
            hash.update(bytes);
        }
        hash.update(&shell);
        let hash = hash.finalize();
        let mut version = String::new();
        for byte in &hash[..6] {
            write!(version, "{byte:02x}").unwrap_or_default();
        }
        let mut preloads = String::new();
        for (name, _) in all.iter().filter(|(name, _)| is_script(name)) {
            let link = format!("<link rel=\"modulepreload\" href=\"/page/{version}/{name}\">\n");
            preloads.push_str(&link);
        }
        let shell = shell
            .replace("{{preloads}}", &preloads)
            .replace("{{files}}", &format!("/page/{version}"));
        Self {
            version,
            all,
            shell,
        }
    }
}

fn is_script(name: &str) -> bool {
    std::path::Path::new(name)
        .extension()
        .is_some_and(|it| it == "js")
}

const SHARED: &str = "../formats/src/html/page";

/// A file as it is now.
#[cfg(debug_assertions)]
fn current(folder: &str, name: &str, built: &'static str) -> Bytes {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
    let file = std::fs::read(root.join(folder).join(name));
    file.map_or(Bytes::from_static(built.as_bytes()), Bytes::from)
}

/// A file as it was built.
#[cfg(not(debug_assertions))]
fn current(_folder: &str, _name: &str, built: &'static str) -> Bytes {
    Bytes::from_static(built.as_bytes())
}

/// The files as they are served. A debug build reads them again for each shell.
#[cfg(debug_assertions)]
fn files(again: bool) -> std::sync::Arc<Files> {
    use std::sync::{Arc, LazyLock};
    static FILES: LazyLock<parking_lot::Mutex<Arc<Files>>> =
        LazyLock::new(|| parking_lot::Mutex::new(Arc::new(Files::read())));
    let mut files = FILES.lock();
    if again {
        *files = Arc::new(Files::read());
    }
    Arc::clone(&files)
}

/// The files as they are served.
#[cfg(not(debug_assertions))]
fn files(_again: bool) -> &'static Files {
    static FILES: std::sync::LazyLock<Files> = std::sync::LazyLock::new(Files::read);
    &FILES
}

pub(crate) fn routes() -> Router<App> {
    let screens = SCREENS.into_iter();
    let screens = screens.fold(Router::new(), |router, at| router.route(at, get(shell)));
    screens.route("/page/{version}/{name}", get(file))
}

/// Whether somebody asks for a page, and not for data.
pub(crate) fn is_wanted(headers: &HeaderMap) -> bool {
    let accept = headers.get(ACCEPT).and_then(|value| value.to_str().ok());
    accept.is_some_and(|accept| accept.contains("text/html"))
}

/// The shell of every screen.
pub(crate) async fn shell(State(_): State<App>, headers: HeaderMap) -> Response {
    let files = files(true);
    let tag = format!("\"{}\"", files.version);
    let known = headers
        .get(IF_NONE_MATCH)
        .and_then(|value| value.to_str().ok());
    let known = known.is_some_and(|known| known.contains(&tag));
    let fields = [
        (
            CONTENT_TYPE,
            HeaderValue::from_static("text/html; charset=utf-8"),
        ),
        (CONTENT_SECURITY_POLICY, HeaderValue::from_static(POLICY)),
        (CACHE_CONTROL, HeaderValue::from_static("no-cache")),
        (VARY, HeaderValue::from_static("accept")),
        (
            HeaderName::from_static("cross-origin-opener-policy"),
            HeaderValue::from_static("same-origin"),
        ),
        (
            ETAG,
            HeaderValue::from_str(&tag).unwrap_or(HeaderValue::from_static("\"0\"")),
        ),
    ];
    if known {
        return (StatusCode::NOT_MODIFIED, fields).into_response();
    }
    (fields, files.shell.clone()).into_response()
}

/// A file of the page. One of another version is not here: a page that asks for it is older than this server, and reloads.
async fn file(Path((version, name)): Path<(String, String)>) -> Response {
    let files = files(false);
    let known = files.all.iter().find(|(own, _)| *own == name);
    let Some((_, bytes)) = known.filter(|_| version == files.version) else {
        return nowhere().await.into_response();
    };
    let kind = if is_script(&name) {
        "text/javascript; charset=utf-8"
    } else {
        "text/css; charset=utf-8"
    };
    let fields = [
        (CONTENT_TYPE, HeaderValue::from_static(kind)),
        (
            CACHE_CONTROL,
            HeaderValue::from_static("private, max-age=31536000, immutable"),
        ),
    ];
    (fields, bytes.clone()).into_response()
}

/// Whether the page of a caller may be given the token: a browser of the owner on this machine, where the system says whose it is.
pub(crate) fn may_have_token(app: &App, caller: &Caller) -> bool {
    cfg!(target_os = "linux") && *caller == Caller::Local && !app.options().any_local_user
}
