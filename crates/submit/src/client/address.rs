//! The address of a server.

use quipu_http::{AddressError, is_loopback};
use ureq::http::Uri;

use super::ClientError;

/// An address, as far as `/v1`.
pub(super) struct Address {
    base: String,
    uri: Uri,
}

impl Address {
    pub(super) fn parse(text: &str, plain_http: bool) -> Result<Self, ClientError> {
        let wrong = ClientError::Address;
        let uri = quipu_http::address(text).map_err(|error| {
            wrong(match error {
                AddressError::NotAUrl => "it is not a URL, such as https://transcripts.example",
                AddressError::Scheme => "it does not begin with https://",
                AddressError::NoHost => "it names no host",
                AddressError::Port => "there is no such port",
            })
        })?;
        let scheme = uri.scheme_str().unwrap_or_default();
        let authority = uri.authority().map_or("", |it| it.as_str());
        if authority.contains('@') {
            return Err(wrong(
                "it names a user; a submission key is all that is sent",
            ));
        }
        if uri.query().is_some() {
            return Err(wrong(
                "it has a query; the server's address is what /v1 is under",
            ));
        }
        if scheme == "http" && !is_loopback(&uri) && !plain_http {
            return Err(wrong(
                "without TLS, the key and the transcript can be read on the way: it is https:// that is needed",
            ));
        }
        let path = uri.path().trim_end_matches('/');
        let path = path.strip_suffix("/v1").unwrap_or(path);
        let base = format!("{scheme}://{authority}{path}");
        Ok(Self { base, uri })
    }

    /// The address of something under `/v1`.
    pub(super) fn of(&self, what: &str) -> String {
        format!("{}/v1/{what}", self.base)
    }

    /// What may be shown of it: all.
    pub(super) fn shown(&self) -> &str {
        &self.base
    }

    /// As it was named.
    pub(super) fn uri(&self) -> &Uri {
        &self.uri
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_tls_only_this_machine_is_spoken_to() {
        for (text, plain, base) in [
            ("https://a.example/", false, "https://a.example"),
            ("https://a.example/x/v1", false, "https://a.example/x"),
            ("http://127.0.0.1:8080", false, "http://127.0.0.1:8080"),
            ("http://[::1]:1/x/", false, "http://[::1]:1/x"),
            ("http://localhost", false, "http://localhost"),
            ("http://a.example", true, "http://a.example"),
        ] {
            let address = Address::parse(text, plain).ok().unwrap();
            assert_eq!(address.shown(), base);
            assert_eq!(address.of("limits"), format!("{base}/v1/limits"));
        }
        for (text, why) in [
            ("http://a.example", "without TLS"),
            ("http://127.0.0.1.example", "without TLS"),
            ("https://ada:pw@a.example", "names a user"),
            ("https://a.example/?key=x", "query"),
            ("https://a.example:99999", "no such port"),
            ("ftp://a.example", "https://"),
            ("a.example", "https://"),
            ("", "not a URL"),
        ] {
            let error = Address::parse(text, false).err().unwrap();
            assert!(error.to_string().contains(why), "{text}: {error}");
        }
    }
}
