//! Who asks, and what they may do.
//!
//! | who | how | may |
//! |---|---|---|
//! | the owner | over the Unix socket, or with the token of this start | everything |
//! | a program of the owner | over loopback | read, hand over OTLP |
//! | a key | `Authorization: Bearer qk_…` | what its scopes say |
//! | anybody else | | ask whether the server is there |
//!
//! Handlers name what they need in their arguments ([`MayRead`], [`MayWrite`], [`MayIngest`]): one that does not compiles, but a test
//! asks every route as nobody.

mod host;
mod middleware;
#[cfg(test)]
mod tests;
mod token;

use axum::extract::FromRequestParts;
use http::request::Parts;

pub use host::HostNames;
pub(crate) use middleware::gate;
pub use token::Token;

use crate::App;
use crate::listen::Peer;
use crate::problem::Problem;

/// The header with the token of this start.
pub const TOKEN_HEADER: &str = "x-quipu-token";

/// What a key allows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// Hand over transcripts.
    Submit,
    /// Read everything.
    Read,
    /// Change things: labels, runs, keys.
    Admin,
}

/// What a key that was shown turns out to be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyHolder {
    /// The public id of the key.
    pub key_id: String,
    /// Whether it may hand over transcripts.
    pub submit: bool,
    /// Whether it may read.
    pub read: bool,
    /// Whether it may change things.
    pub admin: bool,
}

/// Who asks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Caller {
    /// Whoever runs the server.
    Owner,
    /// A program of the same user on the same machine, which did not show the token.
    Local,
    /// Somebody with a key.
    Key(KeyHolder),
    /// Somebody without one.
    Nobody,
}

impl Caller {
    /// Whether they may read what is kept.
    pub fn may_read(&self) -> bool {
        match self {
            Self::Owner | Self::Local => true,
            Self::Key(key) => key.read || key.admin,
            Self::Nobody => false,
        }
    }

    /// Whether they may change what is kept, or start something.
    pub fn may_write(&self) -> bool {
        match self {
            Self::Owner => true,
            Self::Key(key) => key.admin,
            Self::Local | Self::Nobody => false,
        }
    }

    /// Whether they may hand over telemetry.
    pub fn may_ingest(&self) -> bool {
        match self {
            Self::Owner | Self::Local => true,
            Self::Key(key) => key.submit || key.admin,
            Self::Nobody => false,
        }
    }

    /// Who they are, for notes and logs. It names a key by its public id.
    pub fn name(&self) -> &str {
        match self {
            Self::Owner | Self::Local => "owner",
            Self::Key(key) => &key.key_id,
            Self::Nobody => "nobody",
        }
    }

    fn refusal(&self, what: &str) -> Problem {
        match self {
            Self::Key(key) => Problem::forbidden(format!(
                "the key {} has no scope that allows to {what}",
                key.key_id
            ))
            .hint("`quipu keys new --scope …` makes a key with other scopes"),
            Self::Local => Problem::unauthorized(format!(
                "to {what}, send the token of this start in the header {TOKEN_HEADER}"
            ))
            .hint("the token is in server.json in Quipu's home; a key with the scope admin will do, too"),
            Self::Owner | Self::Nobody => {
                Problem::unauthorized(format!("to {what}, send a key: Authorization: Bearer qk_…"))
                    .hint("`quipu keys new` makes a key on the machine of the server")
            }
        }
    }
}

/// Who asks, as the gate found out.
fn caller(parts: &Parts) -> Caller {
    let known = parts.extensions.get::<Caller>().cloned();
    known.unwrap_or(Caller::Nobody)
}

macro_rules! need {
    ($(#[doc = $doc:literal])+ $name:ident, $may:ident, $what:literal) => {
        $(#[doc = $doc])+
        #[derive(Debug, Clone)]
        pub struct $name(pub Caller);

        impl FromRequestParts<App> for $name {
            type Rejection = Problem;

            async fn from_request_parts(parts: &mut Parts, _app: &App) -> Result<Self, Problem> {
                let caller = caller(parts);
                if caller.$may() {
                    Ok(Self(caller))
                } else {
                    Err(caller.refusal($what))
                }
            }
        }
    };
}

need!(
    /// The caller may read.
    MayRead,
    may_read,
    "read"
);
need!(
    /// The caller may change things.
    MayWrite,
    may_write,
    "change something"
);
need!(
    /// The caller may hand over telemetry.
    MayIngest,
    may_ingest,
    "hand over telemetry"
);

/// Who is at the other end of the connection.
impl FromRequestParts<App> for Peer {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _app: &App) -> Result<Self, Problem> {
        let peer = parts.extensions.get::<Peer>();
        peer.copied().ok_or_else(Problem::internal)
    }
}
