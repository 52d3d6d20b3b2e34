//! The archive over HTTP: one process, one home, loopback unless told otherwise.
//!
//! ```text
//!  TCP, TLS, Unix socket ──► listen ──► access (host, origin, who asks) ──► routes ──► Store
//!                                                                          ├─ api          /api/v1/…
//!                                                                          ├─ live         event streams
//!                                                                          ├─ flow_studio  /api/runs…
//!                                                                          ├─ submissions  /v1/transcripts, /v1/uploads
//!                                                                          ├─ ingest       /v1/traces, /v1/logs
//!                                                                          └─ control      /api/v1/executions
//! ```
//!
//! # What it promises
//!
//! * **A page of another site reads nothing and changes nothing**: requests with a foreign `Host` or `Origin` are refused.
//! * **Other users of the machine read nothing**: over a Unix socket by the permissions of its file, over loopback by asking the
//!   system who opened the connection (Linux).
//! * **Beyond loopback everything needs a key.**
//! * **What changes something needs the token of this start**, a key, or the Unix socket.
//! * **Requests are bounded**: heads, bodies (before and after they are unpacked), time, connections, and work at once.
//! * **Idle costs nothing**: the system says when files change; nothing is polled.
//!
//! `docs/threat-model.md` says from whom it protects what; `docs/api.md` is the manual.
//!
//! # Where things are
//!
//! | module | what it owns |
//! |---|---|
//! | [`app`] | what every request shares: stores to read with, caches, limits on work at once |
//! | [`options`] | where it listens and what it allows |
//! | [`listen`] | sockets, TLS, who is at the other end, the end of everything |
//! | [`access`] | host and origin, keys and the token, what a caller may do |
//! | [`problem`] | errors as `application/problem+json` |
//! | [`freshness`] | noticing that something changed |
//! | `runs` | recorded runs in the catalogue, before somebody reads from it |
//! | [`importer`] | what the import does that feeds the home |
//! | [`place`] | `server.json`: where the server of a home is |
//! | [`submissions`] | transcripts that others hand over |
//! | [`ingest`] | spans and log records of other programs |
//! | [`keys`] | keys that are shown, and how often somebody may be wrong |
//! | [`api`] | the native interface, `/api/v1` |
//! | `page` | the web page: its shell and its modules |
//! | [`openapi()`] | the OpenAPI document of all of it |
//! | `live` | event streams: of a transcript, of everything |
//! | [`control`] | workflows started, cancelled, approved, answered and resumed |

pub mod access;
pub mod api;
pub mod app;
pub mod control;
pub mod freshness;
pub mod health;
pub mod importer;
pub mod ingest;
pub mod keys;
pub mod listen;
pub mod metrics;
pub mod options;
pub mod place;
pub mod problem;
pub mod submissions;

mod answer;
mod flow_studio;
mod live;
mod openapi;
mod page;
mod routes;
mod runs;
mod stream;
#[cfg(test)]
mod testkit;

pub use app::App;
pub use listen::{Bound, ListenError, Listening};
pub use openapi::openapi;
pub use options::{Listen, Options};
pub use problem::Problem;
pub use routes::router;
