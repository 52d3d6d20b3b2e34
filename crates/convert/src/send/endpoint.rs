//! The address that is sent to.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use quipu_http::AddressError;
use ureq::http::header::AUTHORIZATION;
use ureq::http::{HeaderName, HeaderValue, Uri};

use super::SendError;
use super::secrets::Secrets;

/// An address, taken apart: what may be shown, and what may not.
pub(super) struct Endpoint {
    /// Without the user.
    uri: Uri,
    /// Without the user and the query.
    shown: String,
    authorization: Option<HeaderValue>,
    user: Option<String>,
}

impl Endpoint {
    pub(super) fn parse(text: &str) -> Result<Self, SendError> {
        let wrong = SendError::Endpoint;
        let uri = quipu_http::address(text).map_err(|error| {
            wrong(match error {
                AddressError::NotAUrl => "it is not a URL, such as http://localhost:4318",
                AddressError::Scheme => "it does not begin with http:// or https://",
                AddressError::NoHost => "it names no host",
                AddressError::Port => "it is not a URL: its port is not a number from 1 to 65535",
            })
        })?;
        let scheme = uri.scheme_str().unwrap_or_default();
        let authority = uri.authority().map_or("", |it| it.as_str());
        let (user, host) = match authority.rsplit_once('@') {
            Some((user, host)) => (Some(user), host),
            None => (None, authority),
        };
        let path = match uri.path() {
            "" | "/" => "/v1/traces",
            path => path,
        };
        let shown = format!("{scheme}://{host}{path}");
        let whole = match uri.query() {
            Some(query) => format!("{shown}?{query}"),
            None => shown.clone(),
        };
        Ok(Self {
            uri: whole.parse().map_err(|_| wrong("it is not a URL"))?,
            shown,
            authorization: user.map(basic).transpose()?,
            user: user.map(ToOwned::to_owned),
        })
    }

    pub(super) fn uri(&self) -> &Uri {
        &self.uri
    }

    /// What may be shown of it.
    pub(super) fn shown(&self) -> &str {
        &self.shown
    }

    pub(super) fn authorization(&self) -> Option<(HeaderName, HeaderValue)> {
        let value = self.authorization.clone()?;
        Some((AUTHORIZATION, value))
    }

    /// What of it must not be shown.
    pub(super) fn secrets(&self) -> Secrets {
        let mut secrets = Secrets::default();
        if let Some(query) = self.uri.query() {
            secrets.add_query(query);
        }
        if let Some(user) = &self.user {
            secrets.add(user);
            let plain = unescape(user);
            let plain = String::from_utf8_lossy(&plain);
            secrets.add(&plain);
            for text in [user.as_str(), &plain] {
                let (name, password) = text.split_once(':').unwrap_or(("", text));
                secrets.add(password);
                // A token may stand in the place of the name.
                if password.is_empty() {
                    secrets.add(name);
                }
            }
        }
        secrets
    }
}

/// `user:password` as a header.
fn basic(user: &str) -> Result<HeaderValue, SendError> {
    let value = format!("Basic {}", STANDARD.encode(unescape(user)));
    let wrong = |_| SendError::Endpoint("its user cannot be sent");
    let mut value = HeaderValue::from_str(&value).map_err(wrong)?;
    value.set_sensitive(true);
    Ok(value)
}

/// Resolves `%41`. What is no such escape stays as it is.
fn unescape(text: &str) -> Vec<u8> {
    let bytes = text.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        let digits = text.get(at + 1..at + 3);
        let escaped = digits.and_then(|digits| u8::from_str_radix(digits, 16).ok());
        match (bytes[at], escaped) {
            (b'%', Some(byte)) => {
                out.push(byte);
                at += 3;
            }
            (byte, _) => {
                out.push(byte);
                at += 1;
            }
        }
    }
    out
}
